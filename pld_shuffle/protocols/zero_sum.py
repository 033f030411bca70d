"""ZSUM, sums of bits that report 0 for 0, and the histogram built on it (Balcer and Cheu 2020).

Every user sends two bits, the true one and noise Ber(r), r near 1 (Cheu 2022, section 3.2). The analyzer
reports 0 unless more than n ones arrive, so that a true sum of 0 is always reported as 0. The truncation
makes it biased; the error is exact (docs/protocols.md). The histogram runs one ZSUM per bin, messages labelled by
the bin: empty bins are reported as empty, however many there are.

Privacy: the view is the number of ones (in every bin), x + Bin(honest, r), with exact pairs (docs/sums.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..fields import Range
from ..mechanisms import SummedNoise, Threshold
from ..numerics.validation import integer_in, open_unit
from ..randomizers.base import FloatArray, IntArray, generator
from ..shares import Binomial
from .histograms import Bins, HistogramEstimate
from .protocol import Budget, ExpectedError, OneMechanism

P = TypeVar("P", bound="RateNoise")


@dataclass(frozen=True, kw_only=True)
class RateNoise(OneMechanism):
    """A protocol with noise bits that are 1 with probability `rate`, r; `from_budget` looks for the largest r >= 1/2.

    1 - r is at least 1e-3/honest, or 1e-14.
    """

    rate: float

    CHECKS: ClassVar = {"rate": open_unit}

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

    def _variances(self, counts: NDArray[Any]) -> FloatArray:
        return zero_sum_errors(np.rint(counts).astype(np.int64), self.n, self.rate)


def zero_sum_errors(sums: IntArray, n: int, rate: float) -> FloatArray:
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
