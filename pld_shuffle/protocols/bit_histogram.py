"""Histograms from bit vectors: unary encoding, and RAPPOR.

Every user sends a vector of k bits in which the own value's bit is 1 with probability a and every
other bit with probability b < a. The number N_j of ones at place j has mean b n + (a - b) c_j, so
(N_j - b n) / (a - b) estimates the count c_j without bias, with variance
(c_j a (1-a) + (n - c_j) b (1-b)) / (a - b)^2; bits are independent. The lecture notes describe the
system; the estimate is that of Erlingsson, Pihur, Korolova 2014, section 4.
With RAPPOR a and b are those of both steps together.

Privacy of one report of every user: `Shuffled` with the randomizer. If not whole reports but only the sums of the bits
are published, see `CountedHistogram`.

In a `BitHistogram` all noise is fresh in every round: a `RAPPOR` draws *both* its steps afresh, so rounds compose
like any others. With the permanent noise drawn once and kept, as RAPPOR is meant for values that do not change, use
`rappor_histogram`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..mechanisms.shared import SMALLEST_EPS0
from ..mechanisms.shuffled import Shuffled
from ..randomizers import RAPPOR, UnaryEncoding
from ..randomizers.base import FloatArray
from ..randomizers.border import EPS0_MAX, bit_array, generator
from ..randomizers.one_hot import BitArray
from .budget import Budget, Search
from .histogram import Histogram, HistogramEstimate
from .protocol import OneMechanism

Variant = Literal["symmetric", "optimised"]
VARIANTS: tuple[Variant, ...] = ("symmetric", "optimised")


@dataclass(frozen=True, kw_only=True)
class BitCounts(Histogram):
    """A protocol of n users who send one vector of k noisy bits each; `randomizer` has the noise."""

    randomizer: UnaryEncoding | RAPPOR

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.randomizer, UnaryEncoding | RAPPOR):
            raise TypeError(
                f"randomizer must be a UnaryEncoding or a RAPPOR, got {self.randomizer!r}"
            )

    @property
    def k(self) -> int:
        """Number of bins."""
        return self.randomizer.k

    def shuffle(self, messages: ArrayLike, rng: np.random.Generator) -> NDArray[Any]:
        """The messages (rows) in uniformly random order; the bits of one message stay together."""
        return generator(rng).permutation(self._vectors(messages), axis=0)

    def analyze(self, messages: ArrayLike) -> HistogramEstimate:
        """Counts and standard errors from messages of shape (n, k), rows in any order."""
        found = self._vectors(messages).sum(axis=0, dtype=np.int64)
        channel = self.randomizer.channel
        counts = (found - self.n * channel.one_if_zero) / self._contrast
        return self._estimate(counts)

    @property
    def _contrast(self) -> float:
        """a - b, which is the randomizer's total variation."""
        return self.randomizer.tv

    def _vectors(self, messages: ArrayLike) -> BitArray:
        bits = bit_array("messages", messages, self.k)
        if bits.shape != (self.n, self.k):
            raise ValueError(f"messages must have shape ({self.n}, {self.k}), got {bits.shape}")
        return bits

    def _variances(self, counts: NDArray[Any]) -> FloatArray:
        channel = self.randomizer.channel
        own = counts * channel.one_if_one * channel.zero_if_one
        others = (self.n - counts) * channel.one_if_zero * channel.zero_if_zero
        return np.asarray((own + others) / self._contrast**2)


@dataclass(frozen=True, kw_only=True)
class BitHistogram(BitCounts, OneMechanism):
    """Histogram of n values in 0 ... k-1 from unary encodings or RAPPOR reports.

    randomizer: a `UnaryEncoding`, or a `RAPPOR`, both steps of which are drawn afresh in every round.

    The pair is an upper bound, for one round and for many.

    `from_budget` takes k and, if wanted, the `variant` of `UnaryEncoding` (else the one with the smaller worst error),
    and finds the largest eps0, at most 700 and at most 2 epsilon/rounds + 2 log(honest + 1) + 10, where hardly any
    bit is wrong. `from_theorem` is unary encoding with eps0 from the closed form of Feldman et al. 2023;
    `bounds.OutOfRange` where that allows no amplification.
    """

    @classmethod
    def _within(
        cls, budget: Budget, *, variant: Variant | None = None, **design: Any
    ) -> BitHistogram:
        """For variant=None, the one with the smaller worst error."""
        variants = VARIANTS if variant is None else (variant,)
        found = [
            super(BitHistogram, cls)._within(budget, variant=one, **design) for one in variants
        ]
        return min(found, key=lambda protocol: protocol.expected_error().exact)

    @classmethod
    def _at(
        cls, parameter: float, *, k: int, variant: Variant = "optimised", **design: Any
    ) -> BitHistogram:
        return cls(randomizer=UnaryEncoding(k=k, eps0=parameter, variant=variant), **design)

    def _search(self, budget: Budget) -> Search:
        # An equal share of the budget as local epsilon needs no other users.
        share = budget.epsilon / budget.rounds * (1 - 1e-12)
        safe = min(max(share, SMALLEST_EPS0), EPS0_MAX)
        most = min(EPS0_MAX, 2 * safe + 2 * math.log(self.honest + 1) + 10)
        # One round's loss has a variance of about e^eps0/n.
        square = budget.epsilon**2 / (2 * budget.rounds * -math.log(budget.delta))
        guess = max(safe, math.log1p(self.honest * square))
        return Search(safe, most, guess, increasing=True, stride=1.1)

    @classmethod
    def _theorem(
        cls, budget: Budget, honest: int, *, k: int, variant: Variant = "optimised"
    ) -> dict[str, Any]:
        from ..bounds import StrongerClonesClosedForm

        closed = StrongerClonesClosedForm()
        eps0 = closed.eps0(epsilon=budget.epsilon, delta=budget.delta, n=honest)
        return {"randomizer": UnaryEncoding(k=k, eps0=eps0, variant=variant)}

    @property
    def mechanism(self) -> Shuffled:
        """One round: the randomizer, shuffled."""
        return Shuffled(self.randomizer, self.honest)

    def randomize(self, values: ArrayLike, rng: np.random.Generator) -> BitArray:
        """One message of k bits per user, shape (n, k), for `values` of shape (n,); all noise is fresh."""
        return self.randomizer.sample(self._numbers(values, self.k), rng)
