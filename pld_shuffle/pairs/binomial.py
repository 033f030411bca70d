"""Binomial counts moved by one, and two of them moved in opposite directions.

Let Z ~ Bin(m, p), b its masses. All the other users' bits known, the adversary sees

    BinomialShift      Z or Z + 1: one sum. P = law of 1 + Z, Q = law of Z, either may be the first.
    BinomialExchange   (Z_1 + 1, Z_2) or (Z_1, Z_2 + 1), Z_1 and Z_2 independent: a histogram in which one
                       user moves from one bin to another. Symmetric by exchanging the coordinates.

The likelihood ratio f(i) = b(i-1)/b(i) = i (1-p) / ((m-i+1) p) rises in i, so the best sets are tails,
and with T(i) = P[Z >= i], F(i) = P[Z <= i]

    H_s(1 + Z || Z) = T(i-1) - s T(i)      at the least i with f(i) > s,
    H_s(Z || 1 + Z) = F(i) - s F(i-1)      at the largest i with 1/f(i) > s,
    H_s of the exchange = sum_j [ b(j) T(i_j - 1) - s b(j-1) T(i_j) ]   at the least i_j with f(i_j) > s f(j).

Neighbouring is symmetric, and a user may hold 0 in one round and 1 in the next, so `BinomialShift` has the
maximum of the first two as its profile at every s >= 1: it dominates both orders, hence every adaptive
composition of them. For an adversary who knows all other values it is exact for one round; over rounds it is
an upper bound, since no single sequence of orders attains it (lower bounds of an accountant then enclose the
stated pair, not the protocol's truth). `BinomialExchange` is one pair in both orders: exact for any number of
rounds. Nothing is conditioned on. Bounds hold everything neglected: windows leave out 1e-290 of mass, masses
carry their rounding.

Binomial noise: Balcer and Cheu 2020; profiles of products: Zhu, Dong, Wang 2022.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..numerics.binomial import binomial_window, chernoff_window
from ..numerics.rounding import ROUNDOFF
from ..numerics.sides import Bounds
from .profile import ProfilePair

Array = NDArray[np.float64]

_MISSED = 1e-290
MAX_WINDOW = 2**22  # counts; 74 standard deviations of up to 3e9 fair coins
_CHUNK = 2**21  # entries of a table at a time


class _Tails(NamedTuple):
    """Masses of Bin(m, p) on a window, sums over its ends, and bounds on their errors.

    mass[i] = b(low + i). above[i] = P[Z >= low + i], one entry more; below[i] = P[Z < low + i].
    Errors are absolute bounds for the entries of the same name, without what the window leaves out.
    """

    low: int
    mass: Array
    mass_error: Array
    above: Array
    above_error: Array
    below: Array
    below_error: Array


@lru_cache(maxsize=16)
def _tails(m: int, p: float) -> _Tails:
    low, high = chernoff_window(m, p, _MISSED)
    if not high - low < MAX_WINDOW:
        raise MemoryError(f"a binomial window of {high - low + 1} counts is over the limit of {MAX_WINDOW}")
    mass = binomial_window(m, p, low, high)
    mode = min(max(int((m + 1) * p), low), high)
    distance = np.abs(np.arange(low, high + 1) - mode)
    # Relative: 8 u per step from the mode, and the same on average, with the summing, from the scale.
    error = ROUNDOFF * (8.0 * distance + 16.0)
    error += float(mass @ error) + ROUNDOFF * mass.size
    error *= mass
    summing = ROUNDOFF * np.arange(mass.size + 1)
    above = np.append(np.cumsum(mass[::-1])[::-1], 0.0)
    above_error = np.append(np.cumsum(error[::-1])[::-1], 0.0) + summing[::-1] * above
    below = np.append(0.0, np.cumsum(mass))
    below_error = np.append(0.0, np.cumsum(error)) + summing * below
    tails = _Tails(low, mass, error, above, above_error, below, below_error)
    for array in tails[1:]:
        array.setflags(write=False)
    return tails


@dataclass(frozen=True)
class BinomialPair(ProfilePair):
    """n noise bits of each count, 1 with probability `chance` <= 1/2: counting zeros instead exchanges orders only."""

    n: int
    chance: float

    @property
    def max_loss(self) -> Bounds:
        """inf: a count outside the other law's support has infinite loss."""
        return Bounds(math.inf, math.inf)

    def renyi(self, order: float) -> Bounds:
        """inf: both laws have counts that the other does not have."""
        return Bounds(math.inf, math.inf)

    @property
    def _ends(self) -> tuple[float, float]:
        """Lower bounds on b(0) and b(m)."""
        logs = (self.n * math.log1p(-self.chance), self.n * math.log(self.chance))
        first, last = (math.exp(log + 8.0 * ROUNDOFF * (log - 1.0)) for log in logs)
        return first, last

    def _scale(self, moves: float) -> float:
        """Rough deviation of the loss; moves : root of the number of counts that move."""
        return math.log1p(moves / math.sqrt(self.n * self.chance * (1.0 - self.chance)))


@dataclass(frozen=True)
class ShiftPair(BinomialPair):
    """The pair (1 + Z, Z) and its reverse, whichever is worse."""

    @property
    def scale(self) -> float:
        return self._scale(1.0)

    @property
    def infinity_mass(self) -> float:
        """max(b(0), b(m)), rounded downwards."""
        return max(self._ends)

    def profile(self, expm1_eps: Array, rtol: float, truncated_mass: float) -> Bounds:
        rising, falling = self._rising(expm1_eps), self._falling(expm1_eps)
        return Bounds(
            np.maximum(np.maximum(rising.lower, falling.lower), self.infinity_mass),
            np.maximum(rising.upper, falling.upper),
        )

    def _rising(self, expm1_eps: Array) -> Bounds:
        """Bounds on H_s(1 + Z || Z)."""
        tails, p = _tails(self.n, self.chance), self.chance
        least = np.floor((self.n + 1) * (p / ((1.0 - p) / (1.0 + expm1_eps) + p))) + 1.0
        i = np.minimum(least, self.n + 1)
        return _difference(
            tails.above, tails.above_error, _at(i - 1, tails), _at(i, tails), expm1_eps, _steepness(i, self.n)
        )

    def _falling(self, expm1_eps: Array) -> Bounds:
        """Bounds on H_s(Z || 1 + Z)."""
        tails, p = _tails(self.n, self.chance), self.chance
        largest = np.ceil((self.n + 1) * (p / (p + (1.0 + expm1_eps) * (1.0 - p)))) - 1.0
        i = np.maximum(largest, 0.0)
        return _difference(
            tails.below, tails.below_error, _at(i + 1, tails), _at(i, tails), expm1_eps, _steepness(i, self.n)
        )


@dataclass(frozen=True)
class ExchangePair(BinomialPair):
    """Two counts, one falling by one as the other rises: the same in both orders."""

    @property
    def scale(self) -> float:
        return self._scale(math.sqrt(2.0))

    @property
    def infinity_mass(self) -> float:
        """b(0) + b(m) - b(0) b(m), rounded downwards."""
        first, last = self._ends
        return (first + last * (1.0 - first)) * (1.0 - 4.0 * ROUNDOFF)

    def profile(self, expm1_eps: Array, rtol: float, truncated_mass: float) -> Bounds:
        tails = _tails(self.n, self.chance)
        rows = max(1, _CHUNK // (tails.mass.size + 1))
        found = [self._exchange(expm1_eps[start : start + rows], tails) for start in range(0, expm1_eps.size, rows)]
        lower, upper = (np.concatenate(ends) for ends in zip(*found, strict=True))
        return Bounds(np.maximum(lower, self.infinity_mass), upper)

    def _exchange(self, expm1_eps: Array, tails: _Tails) -> Bounds:
        m = self.n
        # j runs over the window and one beyond: b(j) under P, b(j-1) under Q.
        j = tails.low + np.arange(tails.mass.size + 1, dtype=np.float64)
        here, before = np.append(tails.mass, 0.0), np.append(0.0, tails.mass)
        here_error, before_error = (np.append(tails.mass_error, 0.0), np.append(0.0, tails.mass_error))
        steep = 1.0 + expm1_eps[:, np.newaxis]
        # f(i) > s f(j)  <=>  i > (m+1) j s / (m+1-j + j s)
        i = np.minimum(np.floor((m + 1) * (j / ((m + 1 - j) / steep + j))) + 1.0, m + 1)
        larger, smaller = _at(i - 1, tails), _at(i, tails)
        first, second = tails.above[larger], steep * tails.above[smaller]
        value = (first * here - second * before).sum(axis=1)
        total = ((first * here + second * before) * _steepness(i, m)).sum(axis=1)
        error = (tails.above_error[larger] * here + first * here_error).sum(axis=1)
        error += (steep * tails.above_error[smaller] * before + second * before_error).sum(axis=1)
        # The error bounds' own rounding; sums and products; a set next to the best one.
        error = 1.01 * error + ROUNDOFF * (64.0 + 2.0 * j.size) * total
        return _around(value, error)


def _at(i: Array, tails: _Tails) -> NDArray[np.int64]:
    """The index of the sums from (or below) i; beyond the window's ends, the ends."""
    return np.clip(i - tails.low, 0, tails.mass.size).astype(np.int64)


def _steepness(i: Array, m: int) -> Array:
    """How strongly log f feels a relative move of i, 1 + i/(m+1-i); one more below, so that it is finite."""
    return 1.0 + i / (m + 2.0 - i)


def _difference(
    sums: Array,
    errors: Array,
    larger: NDArray[np.int64],
    smaller: NDArray[np.int64],
    expm1_eps: Array,
    steepness: Array,
) -> Bounds:
    """sums[larger] - s sums[smaller]: the best set, or one next to it with a ratio within rounding of s."""
    steep = 1.0 + expm1_eps
    value = sums[larger] - steep * sums[smaller]
    error = 1.01 * (errors[larger] + steep * errors[smaller])
    error += 64.0 * ROUNDOFF * steepness * (sums[larger] + steep * sums[smaller])
    return _around(value, error)


def _around(value: Array, error: Array) -> Bounds:
    """value -+ error, the windows' missed mass above, no less than 0."""
    return Bounds(np.maximum(value - error, 0.0), np.clip(value + error, 0.0, 1.0) + 8.0 * _MISSED)
