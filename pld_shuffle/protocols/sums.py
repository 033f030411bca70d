"""Sums by randomized response: of bits, and of real numbers in [0, 1] in one message per user or in several bits.

Protocols and errors are in docs/protocols.md. Bits: Cheu, Smith, Ullman, Zeber, Zhilyaev 2019, several of them their
section 5. Reals: Balle, Bell, Gascon, Nissim 2019, Algorithms 2 and 3; every user rounds alone and hockey-stick
divergence is jointly convex, so (k+1)-ary randomized response dominates, attained by values on the grid.

ZSUM (Balcer and Cheu 2020; Cheu 2022, section 3.2): every user sends the true bit and noise Ber(r), r near 1. The
analyzer reports 0 unless more than n ones arrive, so that a true sum of 0 is always reported as 0. That makes it the
one biased estimate here; its error is exact. The histogram runs one ZSUM per bin, so that empty bins are reported as
empty. The view is the number of ones (in every bin), x + Bin(honest, r), with exact pairs (docs/sums.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..fields import Range
from ..mechanisms import CountedBits, SummedNoise, Threshold
from ..numerics.search import InfeasibleError
from ..numerics.sides import Array
from ..numerics.tuning import JOINT_BITS
from ..numerics.validation import OpenUnit, PositiveInt, integer_in, positive_int, probabilities
from ..randomizers.base import IntArray, generator
from ..shares import Binomial
from .histograms import Bins, HistogramEstimate
from .protocol import Budget, ExpectedError, GammaNoise, Ledger, OneMechanism, OneMessage

TRIED = 10_000  # numbers of cells


@dataclass(frozen=True, kw_only=True)
class BinarySum(OneMessage):
    """Sum of n bits by binary randomized response.

    gamma: probability of a random bit, in (0, 1).
    """

    analyze = GammaNoise._sum

    def expected_error(self) -> ExpectedError:
        """n (gamma/2)(1 - gamma/2) / (1 - gamma)^2, the same for all data."""
        return ExpectedError(self.n * self.gamma / 2 * (1 - self.gamma / 2) / (1 - self.gamma) ** 2)


@dataclass(frozen=True, kw_only=True)
class RealSum(OneMessage):
    """Sum of n values in [0, 1] by randomized rounding and randomized response.

    k: number of rounding cells, at least 1 (messages are integers 0 ... k; for k = 1, one bit, the pair is exact).
    gamma: probability of a random answer, in (0, 1).

    `from_budget` without k takes one with which the worst-case error is about the least: each k tried is the best one
    for the noise per value that the last one needed, or 1/16 more or less, as long as the error falls.
    """

    k: PositiveInt

    analyze = GammaNoise._sum

    @classmethod
    def _within(cls, budget: Budget, *, k: int | None = None, **design: Any) -> RealSum:
        """For k=None, about ten compositions for each k that is tried."""
        best = super()._within(budget, k=1 if k is None else k, **design)
        while k is None:
            step = max(1, best.k // 16)
            for cells in (_best_cells(best), best.k + step, max(1, best.k - step)):
                try:
                    other = super()._within(budget, k=cells, **design)
                except InfeasibleError:
                    continue  # more cells need more noise, so this budget may be one for fewer
                if other.expected_error() < best.expected_error():
                    best = other
                    break
            else:
                break
        return best

    @property
    def _values(self) -> int:  # type: ignore[override]
        return self.k + 1

    def randomize(self, values: ArrayLike, rng: np.random.Generator) -> IntArray:
        """One message in 0 ... k per user; `values` has shape (n,), numbers in [0, 1]."""
        return self.randomizer.sample(_rounded(self, values, self.k, rng), rng)

    def expected_error(self, values: ArrayLike | None = None) -> ExpectedError:
        """Mean squared error for the `values`, shape (n,), or for the worst values."""
        if values is None:
            exact = self.n * float(_worst(self.k, self.gamma)[1])
        else:
            numbers = self._one_each(probabilities("values", values))
            exact = float(np.sum(_variances(self.k, self.gamma, numbers, numbers * self.k % 1)))
        return ExpectedError(exact / (1 - self.gamma) ** 2)

    @property
    def worst_value(self) -> float:
        """A value in [0, 1] with the largest variance; the worst data are n of it."""
        return 1 - float(_worst(self.k, self.gamma)[0]) / self.k


@dataclass(frozen=True, kw_only=True)
class UnarySum(GammaNoise):
    """Sum of n values in [0, 1], `bits` one-bit messages per user.

    bits: r, at least 1 (for `from_budget` by default the paper's sqrt(n), rounded up). gamma: probability of a random
    bit, in (0, 1).

    One round of up to 128 bits is accounted jointly. Otherwise the ledger is an upper bound: it is for messages
    shuffled position by position (bits all different), and lower ends of its brackets are not the joint shuffle's.
    """

    bits: PositiveInt

    analyze = GammaNoise._sum

    @property
    def _messages(self) -> int:  # type: ignore[override]
        return self.bits

    @classmethod
    def _at(cls, parameter: float, *, bits: int | None = None, **design: Any) -> UnarySum:
        if bits is None:
            bits = math.isqrt(integer_in("n", design["n"], 1) - 1) + 1
        return super()._at(parameter, bits=bits, **design)

    def ledger(self, rounds: int = 1) -> Ledger:
        """All bits together for one round of a few; else `message_mechanism`, one position, `bits` times a round."""
        count = positive_int("rounds", rounds)
        if count == 1 and 1 < self.bits <= JOINT_BITS:
            return ((CountedBits(self.honest, gamma=self.gamma, bits=self.bits), 1),)
        return ((self.message_mechanism, self.bits * count),)

    def randomize(self, values: ArrayLike, rng: np.random.Generator) -> IntArray:
        """`bits` messages per user, shape (n, bits); `values` has shape (n,), numbers in [0, 1]."""
        ones = _rounded(self, values, self.bits, rng)
        unary = (np.arange(self.bits) < ones[:, np.newaxis]).astype(np.int64)
        return self.randomizer.sample(unary, rng)

    def expected_error(self, values: ArrayLike | None = None) -> ExpectedError:
        """Mean squared error for the `values`, shape (n,), or for the worst (half-way between cells)."""
        if values is None:
            rounding = self.n / 4
        else:
            parts = self._one_each(probabilities("values", values)) * self.bits % 1
            rounding = float(np.sum(parts * (1 - parts)))
        noise = self.n * (self.gamma / 2) * (1 - self.gamma / 2) / (1 - self.gamma) ** 2
        return ExpectedError(noise / self.bits + rounding / self.bits**2)


def _rounded(protocol: GammaNoise, values: ArrayLike, cells: int, rng: np.random.Generator) -> IntArray:
    """Every user's value times `cells`, rounded at random without bias."""
    scaled = protocol._one_each(probabilities("values", values)) * cells
    whole = np.floor(scaled)
    up = generator(rng).random(protocol.n) < scaled - whole
    return np.asarray(whole.astype(np.int64) + up)


def _variances(k: Any, gamma: Any, values: Any, fractions: Any) -> Array:
    """Variance of y / k for each value; `fractions` is the fractional part of value * k."""
    rounding = (1 - gamma) * fractions * (1 - fractions) / k**2
    uniform = gamma * (k + 2) / (12 * k)
    return np.asarray(rounding + uniform + gamma * (1 - gamma) * (values - 0.5) ** 2)


def _worst(k: Any, gamma: Any) -> tuple[Array, Array]:
    """How far below 1 the worst value is, in cells, and its variance."""
    gap = np.maximum(0.0, (1 - gamma * k) / (2 * (1 - gamma)))
    return gap, _variances(k, gamma, 1 - gap / k, gap)


def _best_cells(protocol: RealSum) -> int:
    """About the k with the least worst-case error if gamma/(k+1) stayed as it is."""
    per_value = protocol.gamma / (protocol.k + 1)
    # From here on rounding, (1 - gamma)/(4 k^2), is below 1e-4 of the noise, at least gamma/12.
    most = max(3.0, min(math.sqrt(3e4 * (1 - protocol.gamma) / protocol.gamma), 1 / per_value))
    cells = np.unique(np.geomspace(1.0, most, TRIED).astype(np.int64))
    cells = cells[per_value * (cells + 1) < 1]
    gamma = per_value * (cells + 1)
    return int(cells[np.argmin(_worst(cells, gamma)[1] / (1 - gamma) ** 2)]) if cells.size else 1


P = TypeVar("P", bound="RateNoise")


@dataclass(frozen=True, kw_only=True)
class RateNoise(OneMechanism):
    """A protocol with noise bits that are 1 with probability `rate`, r; `from_budget` looks for the largest r >= 1/2.

    1 - r is at least 1e-3/honest, or 1e-14.
    """

    rate: OpenUnit

    @classmethod
    def _at(cls: type[P], parameter: float, **design: Any) -> P:
        return cls(rate=1.0 - parameter, **design)

    def _search(self, budget: Budget) -> Range:
        guess = 2.0 * budget.rounds * -math.log(budget.delta) / (self.honest * budget.epsilon**2)
        return Range(max(min(1e-3 / self.honest, 0.25), 1e-14), 0.5, guess, False)

    def _noise(self, rng: np.random.Generator, *shape: int) -> IntArray:
        return (generator(rng).random(shape) < self.rate).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class ZeroSum(RateNoise):
    """Sum of n bits with two messages each; a true sum of 0 is reported as 0 with certainty.

    rate: r, probability that the noise bit is 1, in (0, 1).

    One user's two messages alone are not private (the first is the value): all privacy comes from
    the sum of the other users' noise bits, and there is no local randomizer to amplify.
    """

    @property
    def mechanism(self) -> SummedNoise:
        """One round: a count with one noise bit of every honest user."""
        return SummedNoise(Binomial(1, self.rate), self.honest)

    def randomize(self, values: ArrayLike, rng: np.random.Generator) -> IntArray:
        """Two bits per user, shape (n, 2); `values` has shape (n,), integers 0 or 1."""
        return np.stack([self._numbers(values, 2), self._noise(rng, self.n)], axis=1)

    def analyze(self, messages: ArrayLike) -> float:
        """Number of ones minus n r, or 0 if at most n ones arrived; from all 2 n messages."""
        ones = int(self._received(messages, 2, 2).sum())
        return ones - self.n * self.rate if ones > self.n else 0.0

    def expected_error(self, true_sum: int | None = None) -> ExpectedError:
        """Exact mean squared error for a true sum of `true_sum`, or for the worst one (O(log n))."""
        if true_sum is None:
            return ExpectedError(worst_zero_sum_error(self.n, self.rate))
        place = np.array([integer_in("true_sum", true_sum, 0, self.n)])
        return ExpectedError(float(zero_sum_errors(place, self.n, self.rate)[0]))


@dataclass(frozen=True, kw_only=True)
class ZeroSumHistogram(Bins, RateNoise):
    """Histogram of n values in 0 ... k-1 by one ZSUM per bin; an empty bin is reported as 0 with certainty.

    k: number of bins, at least 2. rate: r, probability that a noise bit is 1, in (0, 1).
    Every user sends 2 k messages; message 2 j + b is the bit b of bin j.
    """

    @property
    def mechanism(self) -> Threshold:
        """One round: one bin's count falls by one and another's rises by one, noise bits are dummies."""
        return Threshold(1.0, 1, Binomial(1, self.rate), self.honest)

    def randomize(self, values: ArrayLike, rng: np.random.Generator) -> IntArray:
        """2 k messages per user, shape (n, k, 2); `values` has shape (n,), integers in 0 ... k-1."""
        bins = np.arange(self.k)
        own = (self._numbers(values, self.k)[:, np.newaxis] == bins).astype(np.int64)
        return np.stack([2 * bins + own, 2 * bins + self._noise(rng, self.n, self.k)], axis=2)

    def analyze(self, messages: ArrayLike) -> HistogramEstimate:
        """Counts, and root mean squared errors as if they were true, from all 2 k n messages in any order."""
        labels = self._received(messages, 2 * self.k, 2 * self.k)
        found = np.bincount(labels, minlength=2 * self.k).reshape(self.k, 2)
        if not np.all(found.sum(axis=1) == 2 * self.n):
            raise ValueError(f"messages must be {2 * self.n} for every bin, got {found.sum(axis=1)}")
        ones = found[:, 1]
        return self._with_errors(np.where(ones > self.n, ones - self.n * self.rate, 0.0))

    def expected_error(self, counts: ArrayLike | None = None) -> ExpectedError:
        if counts is None:
            return ExpectedError(worst_zero_sum_error(self.n, self.rate))
        return super().expected_error(counts)

    def _variances(self, counts: NDArray[Any]) -> Array:
        return zero_sum_errors(np.rint(counts).astype(np.int64), self.n, self.rate)


def zero_sum_errors(sums: IntArray, n: int, rate: float) -> Array:
    """Mean squared errors of ZSUM for the true `sums`, integers in 0 ... n (docs/protocols.md)."""
    from scipy.stats import binom  # takes longer to load than the rest of the package

    least = (n + 1) - sums  # eta from here on is reported
    first = (least - n * rate) * (1 - rate) * least * binom.pmf(least, n, rate)
    kept = first + n * rate * (1 - rate) * binom.sf(least - 1, n - 1, rate)
    return np.asarray(sums.astype(np.float64) ** 2 * binom.cdf(n - sums, n, rate) + kept)


def worst_zero_sum_error(n: int, rate: float) -> float:
    """The largest of the mean squared errors: bisection for where they stop rising."""
    from scipy.stats import binom

    rising, falling = -1, n
    while falling - rising > 1:
        s = (rising + falling) // 2
        t = n - s
        lost = s**2 - (n * rate - t) ** 2
        if (2 * s + 1) * binom.cdf(t - 1, n, rate) > binom.pmf(t, n, rate) * lost:
            rising = s
        else:
            falling = s
    return float(zero_sum_errors(np.array([falling]), n, rate)[0])
