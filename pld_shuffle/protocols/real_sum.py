"""Sum of real numbers in [0, 1] (Balle, Bell, Gascon, Nissim 2019, Algorithms 2 and 3).

A value x is rounded at random to a multiple of 1/k without bias, x k = floor + f, up with
probability f; the result, one of k+1 values, goes through randomized response with probability
gamma of a random answer. Per user, for the message y / k,

    mean      (1 - gamma) x + gamma / 2
    variance  (1 - gamma) f (1-f) / k^2 + gamma (k+2) / (12 k) + gamma (1 - gamma) (x - 1/2)^2,

so that (sum y / k - gamma n / 2) / (1 - gamma) is unbiased. The paper bounds the variance by
(1 - gamma) / (4 k^2) + gamma / 2 (proof of Theorem 2). The exact worst case lies in the outermost
rounding cell: with x = 1 - g/k, at g = max(0, (1 - gamma k) / (2 (1 - gamma))).
In the paper gamma = c (k+1) / n, and k = (n/c)^(1/3) balances the two terms.

Privacy: rounding is a random choice among inputs of (k+1)-ary randomized response, made by every user alone.
The law of the view is then a mixture over the target's rounded value, for both neighbours; hockey-stick
divergence is jointly convex, so randomized response over k+1 values dominates, and it is attained by values on
the grid: `ShuffledRR` with the weak adversary for k >= 2, `CountedBits` for k = 1 (see `histogram`). `from_budget`
looks for the k with the least exact worst-case error; `from_theorem` is Theorem 2 with the gamma of Theorem 1 and
the paper's k.

k = 1 is the one-bit mean of the lecture notes (their equation 9.2): the message is 1 with
probability 1/(e^eps0+1) + x (e^eps0-1)/(e^eps0+1), gamma = 2/(e^eps0+1). Its error falls like 1/sqrt(n): the
rounding alone is up to 1/(2 sqrt(n)), whatever the privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..numerics.search import InfeasibleError
from ..numerics.validation import integer_in
from ..randomizers.base import FloatArray, IntArray, settle
from ..randomizers.border import generator, unit_array
from .budget import Budget
from .protocol import ExpectedError, Protocol
from .randomized_response import OneResponse, one_bit_gamma


def rounded(
    protocol: Protocol, values: ArrayLike, parts: int, rng: np.random.Generator
) -> IntArray:
    """One integer in 0 ... parts per user: the numbers in [0, 1] times `parts`, rounded without bias."""
    scaled = protocol._one_each(unit_array("values", values)) * parts
    cells = np.floor(scaled)
    up = generator(rng).random(protocol.n) < scaled - cells
    return np.asarray(cells.astype(np.int64) + up)


class RoundedSum(OneResponse):
    """n values in [0, 1] by randomized rounding to k cells and randomized response."""

    if TYPE_CHECKING:

        @property
        def k(self) -> int: ...

    @property
    def _values(self) -> int:
        return self.k + 1

    def randomize(self, values: ArrayLike, rng: np.random.Generator) -> IntArray:
        """One message in 0 ... k per user; `values` has shape (n,), numbers in [0, 1]."""
        return self.randomizer.sample(rounded(self, values, self.k, rng), rng)

    def analyze(self, messages: ArrayLike) -> float:
        """Unbiased estimate, from the n messages in any order."""
        return self._sum(messages) / self._scale

    def expected_error(self, values: ArrayLike | None = None) -> ExpectedError:
        """Mean squared error for the `values`, shape (n,), or for the worst values.

        `published` is the bound in the proof of Theorem 2, in both cases for the worst values.
        """
        if values is None:
            exact = self._worst_variance
        else:
            numbers = self._one_each(unit_array("values", values))
            exact = float(np.sum(self._variances(numbers, numbers * self.k % 1)))
        bound = (1 - self.gamma) / (4 * self.k**2) + self.gamma / 2
        return ExpectedError(
            exact=exact / (1 - self.gamma) ** 2 / self._scale**2,
            published=self.n * bound / (1 - self.gamma) ** 2 / self._scale**2,
        )

    @property
    def worst_value(self) -> float:
        """A value in [0, 1] with the largest variance; the worst data are n of it."""
        return 1 - self._worst_gap / self.k

    @property
    def _worst_gap(self) -> float:
        return max(0.0, (1 - self.gamma * self.k) / (2 * (1 - self.gamma)))

    @property
    def _worst_variance(self) -> float:
        value, gap = np.array([self.worst_value]), np.array([self._worst_gap])
        return self.n * float(self._variances(value, gap)[0])

    def _variances(self, values: FloatArray, fractions: FloatArray) -> FloatArray:
        """Variance of y / k for each value; `fractions` is the fractional part of value * k."""
        rounding = (1 - self.gamma) * fractions * (1 - fractions) / self.k**2
        uniform = self.gamma * (self.k + 2) / (12 * self.k)
        apart = self.gamma * (1 - self.gamma) * (values - 0.5) ** 2
        return np.asarray(rounding + uniform + apart)


@dataclass(frozen=True, kw_only=True)
class OneBitMean(RoundedSum):
    """Mean of n values in [0, 1], one bit each: `RealSum` with k = 1, divided by n; the pair is exact.

    gamma: probability of a random bit, in (0, 1). `from_theorem` is that of `BinarySum`.
    """

    @property
    def k(self) -> int:
        """Number of rounding cells, 1."""
        return 1

    @property
    def _scale(self) -> int:
        return self.n

    @classmethod
    def _theorem(cls, budget: Budget, honest: int) -> dict[str, Any]:
        return {"gamma": one_bit_gamma(budget, honest)}


@dataclass(frozen=True, kw_only=True)
class RealSum(RoundedSum):
    """Sum of n values in [0, 1] by randomized rounding and randomized response.

    k: number of rounding cells, at least 1 (messages are integers 0 ... k). gamma: probability of
    a random answer, in (0, 1).

    `from_budget` without k looks for the one with the least exact worst-case error (a local minimum: k one less and
    one more, for k >= 128 about 1/64 less and more, are calibrated and worse, so the error is within about 1e-3 of
    the least): four to forty of them are tried. `from_theorem` is Theorem 2 of Balle et al. 2019, with
    k = (n/c)^(1/3), c = gamma n/(k+1) of Theorem 1; `bounds.OutOfRange` unless epsilon <= 1 and gamma < 1.
    """

    k: int

    def __post_init__(self) -> None:
        super().__post_init__()
        settle(self, k=integer_in("k", self.k, 1))

    @classmethod
    def _within(cls, budget: Budget, *, k: int | None = None, **design: Any) -> RealSum:
        """For k=None, a local minimum of the worst-case error: about ten compositions for each k that is tried."""

        def at(cells: int) -> RealSum:
            return super(RealSum, cls)._within(budget, k=cells, **design)

        if k is not None:
            return at(k)

        @cache
        def tried(cells: int) -> RealSum | None:
            try:
                return at(cells)
            except InfeasibleError:
                return None  # more cells need more noise, so this budget may be one for fewer

        best = at(1)
        for _ in range(6):
            cells = _best_cells(best)
            other = tried(cells)
            if other is None or not _worst_error(other) < _worst_error(best):
                break
            best = other
        return _descended(best, tried)

    @classmethod
    def _theorem(cls, budget: Budget, honest: int) -> dict[str, Any]:
        from ..bounds import BalleTheorem1

        def gamma(values: int) -> float:
            theorem = BalleTheorem1(values)
            return theorem.gamma(epsilon=budget.epsilon, delta=budget.delta, n=honest)

        # Theorem 1 asks for a gamma proportional to the number of values, here k+1.
        k = max(1, round((gamma(2) / 2) ** (-1 / 3)))
        return {"k": k, "gamma": gamma(k + 1)}


def _worst_error(protocol: RealSum) -> float:
    return protocol.expected_error().exact


def _best_cells(protocol: RealSum) -> int:
    """The k with the least worst-case error if gamma/(k+1) stayed as it is; a convex search."""
    per_value = protocol.gamma / (protocol.k + 1)

    def error(k: int) -> float:
        gamma = per_value * (k + 1)
        return _worst_error(RealSum(k=k, gamma=gamma, n=protocol.n)) if gamma < 1 else np.inf

    low, high = 1, max(3, min(_most_cells(protocol), int(1 / per_value)))
    while high - low > 2:
        middle = (low + high) // 2
        if error(middle) <= error(middle + 1):
            high = middle + 1
        else:
            low = middle
    return min(range(low, high + 1), key=error)


def _most_cells(protocol: RealSum) -> int:
    """From here on rounding, (1 - gamma)/(4 k^2), is below 1e-4 of the noise, at least gamma/12."""
    return math.ceil(math.sqrt(3e4 * (1 - protocol.gamma) / protocol.gamma))


def _descended(start: RealSum, at: Callable[[int], RealSum | None]) -> RealSum:
    """A protocol from which no step of max(1, k/64) cells, up or down, has a smaller error.

    Steps double while they help. Upwards they end at `_most_cells`.
    """
    best, stride = start, 1
    while True:
        finest = max(1, best.k // 64)
        stride = max(stride, finest)
        for cells in (best.k - stride, best.k + stride):
            if not (1 <= cells < best.k or best.k < cells <= _most_cells(best)):
                continue
            other = at(cells)
            if other is not None and _worst_error(other) < _worst_error(best):
                best, stride = other, 2 * stride
                break
        else:
            if stride == finest:
                return best
            stride //= 2
