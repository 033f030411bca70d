"""Shuffle-model protocols: what users send, what the analyzer makes of it, and what it costs in privacy."""

from ..mechanisms.binomial_shift import BinomialExchange, BinomialShift
from .bin_errors import HistogramEstimate
from .binary_sum import BinarySum
from .bit_histogram import BitHistogram
from .expected_error import ExpectedError
from .histogram import PrivateHistogram
from .one_bit_mean import OneBitMean
from .protocol import Protocol
from .rappor_histogram import RAPPORHistogram
from .real_sum import RealSum
from .unary_sum import UnarySum
from .zero_sum import ZeroSum, ZeroSumHistogram

__all__ = [
    "BinarySum",
    "BinomialExchange",
    "BinomialShift",
    "BitHistogram",
    "ExpectedError",
    "HistogramEstimate",
    "OneBitMean",
    "PrivateHistogram",
    "Protocol",
    "RAPPORHistogram",
    "RealSum",
    "UnarySum",
    "ZeroSum",
    "ZeroSumHistogram",
]
