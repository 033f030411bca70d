"""Counts from bit vectors: what the protocols on unary encodings and on RAPPOR reports share.

Every user sends a vector of k bits in which the own value's bit is 1 with probability a and every
other bit with probability b < a. The number N_j of ones at place j has mean b n + (a - b) c_j, so
(N_j - b n) / (a - b) estimates the count c_j without bias, with variance
(c_j a (1-a) + (n - c_j) b (1-b)) / (a - b)^2; bits are independent. The lecture notes describe the
system; the estimate is that of Erlingsson, Pihur, Korolova 2014, section 4, for one-hot filters.
With RAPPOR a and b are those of both steps together.

Privacy of one report of every user: `Shuffled` with the randomizer. If not whole reports but only the sums of the bits
are published, see `CountedHistogram`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..randomizers import RAPPOR, UnaryEncoding
from ..randomizers.base import FloatArray
from ..randomizers.bits import BitArray
from ..randomizers.border import bit_array, generator
from .bin_errors import BinErrors, HistogramEstimate
from .protocol import Protocol


class BitCounts(BinErrors, Protocol):
    """A protocol of n users who send one vector of k noisy bits each; `randomizer` has the noise."""

    randomizer: UnaryEncoding | RAPPOR

    @property
    def k(self) -> int:
        """Number of bins."""
        return self.randomizer.k

    def shuffle(self, messages: ArrayLike, rng: np.random.Generator) -> NDArray[Any]:
        """The messages (rows) in uniformly random order; the bits of one message stay together."""
        return generator(rng).permutation(self._received(messages), axis=0)

    def analyze(self, messages: ArrayLike) -> HistogramEstimate:
        """Counts and standard errors from messages of shape (n, k), rows in any order."""
        found = self._received(messages).sum(axis=0, dtype=np.int64)
        channel = self.randomizer.channel
        counts = (found - self.n * channel.one_if_zero) / self._contrast
        return self._estimate(counts)

    @property
    def _contrast(self) -> float:
        """a - b, which is the randomizer's total variation."""
        return self.randomizer.tv

    def _received(self, messages: ArrayLike) -> BitArray:
        bits = bit_array("messages", messages, self.k)
        if bits.shape != (self.n, self.k):
            raise ValueError(f"messages must have shape ({self.n}, {self.k}), got {bits.shape}")
        return bits

    def _variances(self, counts: NDArray[Any]) -> FloatArray:
        channel = self.randomizer.channel
        own = counts * channel.one_if_one * channel.zero_if_one
        others = (self.n - counts) * channel.one_if_zero * channel.zero_if_zero
        return np.asarray((own + others) / self._contrast**2)


def one_hot_rappor(randomizer: RAPPOR) -> RAPPOR:
    """`randomizer` unchanged; ValueError if it has a Bloom filter."""
    if randomizer.bits is not None:
        raise ValueError(f"randomizer must have one-hot filters, got {randomizer!r}")
    return randomizer
