"""Named local randomizers that know their privacy parameters (see base.py for the notation)."""

from .base import ContinuousRandomizer, FiniteRandomizer, LocalRandomizer, PairLaw
from .binary_randomized_response import BinaryRandomizedResponse
from .discrete import DiscreteRandomizer, PairParameters
from .gaussian import Gaussian
from .hadamard_response import HadamardResponse
from .joint import Types
from .k_randomized_response import KRandomizedResponse
from .laplace import Laplace
from .local_hashing import LocalHashing
from .rappor import RAPPOR
from .subset_selection import SubsetSelection
from .unary_encoding import UnaryEncoding

__all__ = [
    "RAPPOR",
    "BinaryRandomizedResponse",
    "ContinuousRandomizer",
    "DiscreteRandomizer",
    "FiniteRandomizer",
    "Gaussian",
    "HadamardResponse",
    "KRandomizedResponse",
    "Laplace",
    "LocalHashing",
    "LocalRandomizer",
    "PairLaw",
    "PairParameters",
    "SubsetSelection",
    "Types",
    "UnaryEncoding",
]
