"""Named local randomizers that know their privacy parameters (see base.py for the notation)."""

from .base import LocalRandomizer
from .discrete import DiscreteRandomizer, as_randomizer
from .hadamard_response import HadamardResponse
from .joint import FiniteRandomizer, Types
from .local_hashing import LocalHashing
from .noise import Gaussian, Laplace
from .one_hot import RAPPOR, UnaryEncoding
from .randomized_response import BinaryRandomizedResponse, KRandomizedResponse, SubsetSelection

__all__ = [
    "RAPPOR", "BinaryRandomizedResponse", "DiscreteRandomizer", "FiniteRandomizer", "Gaussian",
    "HadamardResponse", "KRandomizedResponse", "Laplace", "LocalHashing", "LocalRandomizer",
    "SubsetSelection", "Types", "UnaryEncoding", "as_randomizer",
]  # fmt: skip
