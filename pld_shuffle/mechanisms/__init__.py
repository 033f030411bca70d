"""Mechanisms: what was run, in the field's parameters, and the proven pair that stands for it."""

from .allocation import RandomAllocation, ShuffledBatches
from .base import Mechanism, ZeroOut, as_mechanism
from .central import Gaussian, Laplace, PoissonGaussian
from .imported import DiscretePair
from .labels import DummyReports, MixedRandomizers, MixedRR, ShuffledRandomizer, ShuffledRR
from .ldp import Epoch, ShuffledLDP
from .sampling import PoissonSampled, StickyCohort, Subsampled
from .shuffled import CountedBits, Shuffled
from .summed_noise import Summed, SummedNoise, Threshold

__all__ = [
    "CountedBits", "DiscretePair", "DummyReports", "Epoch", "Gaussian", "Laplace", "Mechanism", "MixedRR",
    "MixedRandomizers", "PoissonGaussian", "PoissonSampled", "RandomAllocation", "Shuffled",
    "ShuffledBatches", "ShuffledLDP", "ShuffledRR", "ShuffledRandomizer", "StickyCohort", "Subsampled",
    "Summed", "SummedNoise", "Threshold", "ZeroOut", "as_mechanism",
]  # fmt: skip
