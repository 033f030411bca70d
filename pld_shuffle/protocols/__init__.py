"""Shuffle-model protocols: what users send, what the analyzer makes of it, and what it costs in privacy."""

from .histograms import (
    BallsIntoBins,
    BitHistogram,
    FakeUsers,
    HistogramEstimate,
    MixDUMP,
    PrivateHistogram,
    RAPPORHistogram,
)
from .protocol import ExpectedError, Protocol
from .sums import BinarySum, RealSum, UnarySum, ZeroSum, ZeroSumHistogram

__all__ = [
    "BallsIntoBins", "BinarySum", "BitHistogram", "ExpectedError", "FakeUsers", "HistogramEstimate",
    "MixDUMP", "PrivateHistogram", "Protocol", "RAPPORHistogram", "RealSum", "UnarySum",
    "ZeroSum", "ZeroSumHistogram",
]  # fmt: skip
