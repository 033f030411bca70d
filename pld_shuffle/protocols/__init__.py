"""Shuffle-model protocols: what users send, what the analyzer makes of it, and what it costs in privacy."""

from ..mechanisms.binomial_shift import BinomialExchange, BinomialShift
from .binary_sum import BinarySum
from .bit_histogram import BitHistogram
from .histogram import HistogramEstimate, PrivateHistogram
from .protocol import ExpectedError, Protocol
from .rappor_histogram import RAPPORHistogram
from .real_sum import OneBitMean, RealSum
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
