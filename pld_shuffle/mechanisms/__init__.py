"""Mechanisms: what was run, in the field's parameters, and the proven pair that stands for it."""

from .allocation import RandomAllocation
from .base import Mechanism, as_mechanism
from .central import Gaussian, Laplace, PoissonGaussian
from .counted_bits import CountedBits
from .dummies import DummyReports
from .imported import DiscretePair
from .labels import ShuffledRandomizer, ShuffledRR
from .ldp import Epoch, ShuffledLDP
from .mixed_budgets import MixedRandomizers, MixedRR
from .sampling import PoissonSampled, Subsampled
from .shuffled import Shuffled
from .shuffled_batches import ShuffledBatches
from .sticky import StickyCohort
from .summed_noise import SummedNoise
from .summed_reports import Summed
from .threshold import Threshold
from .zero_out import ZeroOut

__all__ = [
    "CountedBits", "DiscretePair", "DummyReports", "Epoch", "Gaussian", "Laplace", "Mechanism", "MixedRR",
    "MixedRandomizers", "PoissonGaussian", "PoissonSampled", "RandomAllocation", "Shuffled",
    "ShuffledBatches", "ShuffledLDP", "ShuffledRR", "ShuffledRandomizer", "StickyCohort", "Subsampled",
    "Summed", "SummedNoise", "Threshold", "ZeroOut", "as_mechanism",
]  # fmt: skip
