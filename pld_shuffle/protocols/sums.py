"""Sums by randomized response: of bits, and of real numbers in [0, 1] in one message per user or in several bits.

All estimates are unbiased; protocols and errors are in docs/protocols.md.

* Bits (Cheu, Smith, Ullman, Zeber, Zhilyaev 2019). Privacy: `CountedBits`; exact.
* Reals (Balle, Bell, Gascon, Nissim 2019, Algorithms 2 and 3). Every user rounds alone and hockey-stick divergence is
  jointly convex, so (k+1)-ary randomized response dominates, attained by values on the grid: `ShuffledRR` with the weak
  adversary, `CountedBits` for k = 1.
* Several bits (Cheu et al. 2019, section 5). A round of up to JOINT_BITS bits is `CountedBits` with r bits a user; one
  of more is r runs, as in the paper, whose epsilon is .05 to 1.3 % larger.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ..mechanisms import CountedBits
from ..numerics.search import InfeasibleError
from ..numerics.tuning import JOINT_BITS
from ..numerics.validation import integer_in, positive_int, probabilities
from ..randomizers.base import FloatArray, IntArray, generator
from .protocol import Budget, ExpectedError, GammaNoise, Ledger, OneMessage

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

    k: int

    CHECKS: ClassVar = {"k": positive_int}

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
    def _values(self) -> int:
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

    bits: int

    CHECKS: ClassVar = {"bits": positive_int}

    analyze = GammaNoise._sum

    @property
    def _messages(self) -> int:
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


def _variances(k: Any, gamma: Any, values: Any, fractions: Any) -> FloatArray:
    """Variance of y / k for each value; `fractions` is the fractional part of value * k."""
    rounding = (1 - gamma) * fractions * (1 - fractions) / k**2
    uniform = gamma * (k + 2) / (12 * k)
    return np.asarray(rounding + uniform + gamma * (1 - gamma) * (values - 0.5) ** 2)


def _worst(k: Any, gamma: Any) -> tuple[FloatArray, FloatArray]:
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
