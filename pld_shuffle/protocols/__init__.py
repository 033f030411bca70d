"""Shuffle-model protocols: what users send, and what the analyzer makes of it."""

from .binary_sum import BinarySum, ZeroSum
from .bit_histogram import BitHistogram
from .expected_error import ExpectedError
from .histogram import HistogramEstimate, PrivateHistogram
from .real_sum import RealSum

__all__ = [
    "BinarySum",
    "BitHistogram",
    "ExpectedError",
    "HistogramEstimate",
    "PrivateHistogram",
    "RealSum",
    "ZeroSum",
]
