"""Reading answers off a composition: both sides, with everything neglected put on the safe side."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..numerics.convolution import Law, Reader
from ..numerics.crossing import crossing, crossings
from ..numerics.sides import Bounds
from ..pairs.gaussian import gaussian_delta, root
from .one_side import OneSide

Array = NDArray[np.float64]

EPSILON_WIDTH = 1e-9  # an epsilon known to so much needs no relative accuracy in delta
CLOSE = 1e-12  # a search for an epsilon stops so near to the wanted delta, relative to it
TABLE = 65  # places that bracket the answers to many questions
RELATIVE_DOWN_TO = 1e-100  # rtol is promised for deltas above this


class Reading(ABC):
    """Certified bounds on delta at any epsilon, good near some."""

    @abstractmethod
    def lower(self, eps: float) -> float:
        """Certified lower bound on delta(eps)."""

    @abstractmethod
    def upper(self, eps: float) -> float:
        """Certified upper bound on delta(eps)."""

    def lowers(self, eps: Array) -> Array:
        """Lower bounds at many finite eps, shape (questions,)."""
        return np.array([self.lower(one) for one in eps.tolist()], np.float64)

    def uppers(self, eps: Array) -> Array:
        """Upper bounds at many finite eps, shape (questions,)."""
        return np.array([self.upper(one) for one in eps.tolist()], np.float64)

    def noise(self, eps: float) -> float:
        """Relative size at eps of what transforms may have got wrong."""
        return 0.0

    def missed(self, eps: float) -> float:
        """Relative size at eps of mass that windows missed."""
        return 0.0

    def width(self, eps: float) -> float:
        """upper / lower - 1 at eps."""
        lower = self.lower(eps)
        return self.upper(eps) / lower - 1.0 if lower > 0.0 else math.inf


class GaussianReading(Reading):
    """Gaussian noise alone: the closed form."""

    def __init__(self, square: Bounds) -> None:
        self._mu = root(square)

    def lower(self, eps: float) -> float:
        return float(self._at(eps).lower)

    def upper(self, eps: float) -> float:
        return float(self._at(eps).upper)

    def lowers(self, eps: Array) -> Array:
        return np.asarray(gaussian_delta(self._mu, eps)[0])

    def uppers(self, eps: Array) -> Array:
        return np.asarray(gaussian_delta(self._mu, eps)[1])

    def _at(self, eps: float) -> Bounds:
        if eps == math.inf:
            return Bounds(0.0, 0.0)
        lower, upper = gaussian_delta(self._mu, np.array([eps]))
        return Bounds(lower[0], upper[0])


class Composed(Reading):
    """Both sides of a composition under one tilt: reads delta near the tilted mean."""

    def __init__(self, lower: Reader, upper: Reader, infinity: Bounds, slack: float) -> None:
        self._lower = lower
        self._upper = upper
        self._infinity = infinity
        self._slack = slack

    @classmethod
    def of(cls, lower: OneSide, lower_law: Law, upper: OneSide, upper_law: Law) -> Composed:
        """Put the two sides of one attempt together."""
        slack = max(lower.slack, upper.slack) * (1.0 + 1e-9)
        # Each is 1 - prod (1 - w): a few ulp, and the masses w carry their own allowance.
        infinity = Bounds(
            lower.infinity * (1.0 - 2e-15) + 0.0, min(1.0, upper.infinity * (1.0 + 2e-15))
        )
        return cls(Reader(lower_law), Reader(upper_law), infinity, slack)

    def lower(self, eps: float) -> float:
        """Certified lower bound on delta(eps)."""
        if eps == math.inf:
            return float(self._infinity.lower)
        shift = self._slack + 1e-15 * eps
        finite = self._lower.bracket(eps + shift)[0]
        return float(min(1.0, (finite + self._infinity.lower) * (1.0 - 1e-15)))

    def upper(self, eps: float) -> float:
        """Certified upper bound on delta(eps)."""
        if eps == math.inf:
            return float(self._infinity.upper)
        shift = self._slack + 1e-15 * eps
        finite = self._upper.bracket(eps - shift)[1]
        return float(min(1.0, (finite + self._infinity.upper) * (1.0 + 1e-15)))

    def lowers(self, eps: Array) -> Array:
        lower = self._lower.brackets(eps + (self._slack + 1e-15 * eps))[0] + self._infinity.lower
        return np.asarray(np.minimum(1.0, lower * (1.0 - 1e-15)))

    def uppers(self, eps: Array) -> Array:
        upper = self._upper.brackets(eps - (self._slack + 1e-15 * eps))[1] + self._infinity.upper
        return np.asarray(np.minimum(1.0, upper * (1.0 + 1e-15)))

    def noise(self, eps: float) -> float:
        """Relative size at eps of what windows and transforms may have got wrong."""
        return max(self._lower.noise(eps), self._upper.noise(eps))

    def missed(self, eps: float) -> float:
        """Relative size at eps of the upper side's mass at infinity, most of it missed by windows."""
        lower = self.lower(eps)
        return (
            float(self._infinity.upper - self._infinity.lower) / lower if lower > 0.0 else math.inf
        )


@dataclass(frozen=True)
class DeltaQuestion:
    """What is delta at this epsilon?"""

    eps: float

    def answer(self, composed: Reading, max_loss: float) -> Bounds:
        return Bounds(composed.lower(self.eps), composed.upper(self.eps))

    def place(self, found: Bounds) -> float:
        """Where the answer is read off."""
        return self.eps

    def promised(self, found: Bounds) -> bool:
        """Whether rtol is promised there."""
        return bool(found.upper >= RELATIVE_DOWN_TO)

    def log_delta(self, found: Bounds) -> float:
        return math.log(max(found.lower or found.upper, 1e-300))

    def width(self, composed: Reading, found: Bounds) -> float:
        if found.upper == found.lower:
            return 0.0
        if found.upper < found.lower:
            raise ArithmeticError(f"inverted bracket {found} at {self}")
        return float(found.upper / found.lower - 1.0) if found.lower > 0.0 else math.inf


@dataclass(frozen=True)
class EpsilonQuestion:
    """What is the smallest epsilon >= 0 with delta(epsilon) <= delta?"""

    delta: float

    def answer(self, composed: Reading, max_loss: float) -> Bounds:
        upper = self._least_proven(composed, max_loss)
        return Bounds(self._largest_excluded(composed, upper), upper)

    def _least_proven(self, composed: Reading, max_loss: float) -> float:
        """The least eps with upper(eps) <= delta; upper decreases everywhere."""

        def excess(eps: float) -> float:
            upper = composed.upper(eps)
            return _excess(upper, self.delta, upper <= self.delta)

        low = high = 0.0, excess(0.0)
        while high[1] > 0.0:
            if high[0] >= min(max_loss, 1e15):
                return max_loss
            end = min(max(1.0, 2.0 * high[0]), max_loss)
            low, high = high, (end, excess(end))
        return crossing(excess, low, high, close=CLOSE)

    def _largest_excluded(self, composed: Reading, upper: float) -> float:
        """The largest eps near `upper` with lower(eps) > delta, 0 if none is found.

        Far from the tilted mean the certificate eats the lower bound, so the search starts at `upper`.
        """

        def excess(eps: float) -> float:
            lower = composed.lower(eps)
            return _excess(self.delta, lower, lower > self.delta)

        stride = 1e-9 * upper if upper < math.inf else 0.0
        high = low = upper, excess(upper)
        while low[1] > 0.0:
            if low[0] <= 0.0 or stride == 0.0:
                return 0.0
            end = max(0.0, low[0] - stride)
            high, low = low, (end, excess(end))
            stride *= 16.0
        return crossing(excess, high, low, close=CLOSE)

    def place(self, found: Bounds) -> float:
        """Where the answer is read off."""
        return float(found.upper)

    def promised(self, found: Bounds) -> bool:
        """Whether rtol is promised there."""
        return self.delta >= RELATIVE_DOWN_TO

    def log_delta(self, found: Bounds) -> float:
        return math.log(self.delta)

    def width(self, composed: Reading, found: Bounds) -> float:
        if found.upper < found.lower:
            raise ArithmeticError(f"inverted bracket {found} at {self}")
        # Near the pure-DP limit delta falls to 0 within rounding: there epsilon itself must be known.
        if found.upper <= found.lower * (1.0 + EPSILON_WIDTH):
            return 0.0
        if found.upper == math.inf:
            return math.inf
        # delta at the two ends bounds the bracket of delta anywhere between them.
        return max(composed.width(found.upper), composed.width(found.lower))


def _excess(much: float, little: float, held: bool) -> float:
    """log(much/little), at most 0 exactly where the comparison of the two held."""
    found = math.log(min(max(much, 1e-300), 1e300)) - math.log(min(max(little, 1e-300), 1e300))
    return min(found, 0.0) if held else max(found, 1e-300)


def read_deltas(composed: Reading, eps: Array, max_loss: float) -> tuple[Array, Array, Array]:
    """Answers and widths of a `DeltaQuestion` for every eps, finite and below the largest loss."""
    lower, upper = composed.lowers(eps), composed.uppers(eps)
    return lower, upper, _ratio(lower, upper)


def read_epsilons(composed: Reading, delta: Array, max_loss: float) -> tuple[Array, Array, Array]:
    """Answers and widths of an `EpsilonQuestion` for every delta in (0, 1).

    A table from the lower end for the largest delta to the upper end for the smallest one brackets all others, and
    their searches go on together. Every end has been asked for by itself.
    """
    lower, upper, width = np.zeros(delta.size), *np.full((2, delta.size), math.inf)
    reached = delta > composed.upper(math.inf)
    if reached.any():
        found = _ends_of(composed, delta[reached], max_loss)
        lower[reached], upper[reached], width[reached] = found
    return lower, upper, width


def _ends_of(composed: Reading, delta: Array, max_loss: float) -> Array:
    """`read_epsilons` for deltas above the mass at infinity, shape (3, questions)."""
    first = EpsilonQuestion(float(delta.max())).answer(composed, max_loss)
    last = EpsilonQuestion(float(delta.min())).answer(composed, max_loss)
    if last.upper == math.inf:
        return np.array([0.0, math.inf, math.inf])[:, None].repeat(delta.size, axis=1)
    table = np.linspace(first.lower, last.upper, TABLE)
    aim = np.log(delta)

    def excess(eps: Array) -> Array:
        """At most 0 where delta is proven."""
        upper = composed.uppers(eps)
        return _signed(_logs(upper) - aim, upper <= delta)

    def shortfall(eps: Array) -> Array:
        """At most 0 where delta is excluded."""
        lower = composed.lowers(eps)
        return _signed(aim - _logs(lower), lower > delta)

    # The first place that proves each delta, and the last one that excludes it.
    proven = np.minimum.accumulate(composed.uppers(table))
    right = np.minimum(np.searchsorted(-proven, -delta), TABLE - 1)
    upper = crossings(excess, table[np.maximum(right - 1, 0)], table[right], close=CLOSE)
    excluded = np.maximum.accumulate(composed.lowers(table)[::-1])[::-1]
    right = np.searchsorted(-excluded, -delta) - 1
    none = right < 0
    right = np.maximum(right, 0)
    lower = crossings(shortfall, table[np.minimum(right + 1, TABLE - 1)], table[right], close=CLOSE)
    lower[none] = 0.0
    if np.any(upper < lower):
        raise ArithmeticError(f"inverted brackets at delta = {delta[upper < lower][0]!r}")
    width = np.maximum(
        *(_ratio(composed.lowers(end), composed.uppers(end)) for end in (lower, upper))
    )
    # Near the pure-DP limit delta falls to 0 within rounding: there epsilon itself must be known.
    width = np.where(upper <= lower * (1.0 + EPSILON_WIDTH), 0.0, width)
    return np.array([lower, upper, width])


def _signed(excess: Array, held: NDArray[np.bool_]) -> Array:
    """A difference of logarithms, at most 0 exactly where the comparison of the numbers themselves held."""
    return np.where(held, np.minimum(excess, 0.0), np.maximum(excess, 1e-300))


def _logs(delta: Array) -> Array:
    """log delta, finite also where it is 0 or infinite."""
    return np.log(np.clip(delta, 1e-300, 1e300))


def _ratio(lower: Array, upper: Array) -> Array:
    """upper / lower - 1; 0 where both are 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = upper / lower - 1.0
    return np.where(upper == lower, 0.0, np.where(lower > 0.0, found, math.inf))
