"""Named local randomizers that know their privacy parameters (see base.py for the notation)."""

from .base import LocalRandomizer
from .joint import DiscreteRandomizer, FiniteRandomizer, Types, as_randomizer
from .noise import Gaussian, Laplace
from .one_hot import RAPPOR, UnaryEncoding
from .randomized_response import (
    BinaryRandomizedResponse,
    HadamardResponse,
    KRandomizedResponse,
    LocalHashing,
    SubsetSelection,
)

__all__ = [
    "RAPPOR", "BinaryRandomizedResponse", "DiscreteRandomizer", "FiniteRandomizer", "Gaussian",
    "HadamardResponse", "KRandomizedResponse", "Laplace", "LocalHashing", "LocalRandomizer",
    "SubsetSelection", "Types", "UnaryEncoding", "as_randomizer",
]  # fmt: skip
