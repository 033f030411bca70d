"""Reading answers off a composition: both sides, with everything neglected put on the safe side.

A `Reading` bounds delta at any epsilon, well near some. A `Question` is asked of it for many values at once, and every
end of an answer has been asked for by itself: an upper end of epsilon is a point where the upper bound on delta is at
most delta, a lower end one where the lower bound is larger.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..numerics.search import crossing
from ..numerics.sides import Array, Bounds, Side
from ..pairs.gaussian import gaussian_delta, root

Ends = tuple[Array, Array, Array]  # lower ends, upper ends, and how wide delta is known there

EPSILON_WIDTH = 1e-9  # an epsilon known to so much needs no relative accuracy in delta
CLOSE = 1e-7  # a search for an epsilon stops so near to the wanted delta, relative to it
SMALLEST_DELTA = 1e-280  # windows cannot follow a delta below this in double precision
RELATIVE_DOWN_TO = 1e-100  # rtol is promised for deltas above this
MOST_STRIDES = 200
FARTHEST = 1e15  # no larger epsilon is searched for


class Reading:
    """Certified bounds on delta at any finite epsilon, good near `centre`; and on the mass at infinity."""

    infinity: Bounds = Bounds(0.0, 0.0)
    centre: float = 0.0
    stride: float = 1.0  # about how far apart epsilons are whose deltas differ by a small factor
    _lower: Any  # what is asked for lower bounds, and for upper ones
    _upper: Any

    def lowers(self, eps: Array) -> Array:
        """Lower bounds at many finite eps, shape (questions,)."""
        return np.asarray(np.minimum(self._lower.lowers(eps), 1.0))

    def uppers(self, eps: Array) -> Array:
        """Upper bounds at many finite eps, shape (questions,)."""
        return np.asarray(np.minimum(self._upper.uppers(eps), 1.0))


class GaussianReading(Reading):
    """Gaussian noise alone: the closed form."""

    def __init__(self, square: Bounds) -> None:
        self._mu = root(square)
        self.stride = float(self._mu.upper)

    def lowers(self, eps: Array) -> Array:
        return np.asarray(gaussian_delta(self._mu, eps).lower)

    def uppers(self, eps: Array) -> Array:
        return np.asarray(gaussian_delta(self._mu, eps).upper)


@dataclass(frozen=True)
class Question:
    """What is delta at `eps`, or the smallest epsilon >= 0 at `delta`? Exactly one of them is given."""

    eps: float | None = None
    delta: float | None = None

    @property
    def value(self) -> float:
        """What is given."""
        given = self.eps if self.delta is None else self.delta
        assert given is not None
        return given

    def answer(self, reading: Reading, max_loss: float) -> tuple[Bounds, float]:
        """The answer, and how wide delta is known there."""
        read = read_deltas if self.delta is None else read_epsilons
        lower, upper, width = read(reading, np.array([self.value], np.float64), max_loss)
        return Bounds(float(lower[0]), float(upper[0])), float(width[0])

    def promised(self, found: Bounds) -> bool:
        """Whether rtol is promised there."""
        return bool((found.upper if self.delta is None else self.delta) >= RELATIVE_DOWN_TO)

    def log_delta(self, found: Bounds) -> float:
        """About where delta is, from an answer."""
        delta = (found.lower or found.upper) if self.delta is None else self.delta
        return math.log(max(delta, 1e-300))


def read_deltas(reading: Reading, eps: Array, max_loss: float) -> Ends:
    """Bounds on delta at every eps, and widths."""
    lower, upper = (np.full(eps.size, float(end)) for end in reading.infinity)
    finite = eps < math.inf
    lower[finite], upper[finite] = reading.lowers(eps[finite]), reading.uppers(eps[finite])
    _require_order(lower, upper, "delta", "epsilon", eps)
    return lower, upper, ratio(lower, upper)


def read_epsilons(reading: Reading, delta: Array, max_loss: float) -> Ends:
    """Bounds on the smallest epsilon for every delta in (0, 1), and widths of delta there."""
    top = min(max_loss, FARTHEST)
    start = np.full(delta.size, min(max(reading.centre, 0.0), top))
    proven = nearest_epsilons(Side.UPPER, reading.uppers, delta, start, reading.stride, top)
    # Beyond the largest losses delta is 0, whatever is read there.
    upper = np.where(np.isnan(proven), max_loss, proven)
    # Far from the tilted mean the certificate eats the lower bound, so that search starts at the upper end.
    excluded = nearest_epsilons(Side.LOWER, reading.lowers, delta, np.minimum(upper, top), reading.stride, top)
    lower = np.where(np.isnan(excluded), 0.0, excluded)
    never = reading.infinity.lower > delta
    lower, upper = np.where(never, math.inf, lower), np.where(never, math.inf, upper)
    _require_order(lower, upper, "epsilon", "delta", delta)
    last = np.minimum(upper, top)
    width = ratio(reading.lowers(last), reading.uppers(last))
    width[np.isinf(upper) & ~never] = math.inf
    # Near the pure-DP limit delta falls to 0 within rounding: there epsilon itself must be known.
    return lower, upper, np.where(never | (upper <= lower * (1.0 + EPSILON_WIDTH)), 0.0, width)


def nearest_epsilons(
    side: Side, bound: Callable[[Array], Array], delta: Array, start: Array, stride: float, top: float
) -> Array:
    """The least epsilon found whose upper bound is at most delta, or the largest whose lower one is above; else nan.

    bound : on delta on that side, at epsilons. One for each delta, up to `top`. stride : about how far the logarithm of
    delta moves by 1. From `start` a step as long as that says, and a little longer; steps double until both kinds of
    points are found.
    """
    upper, aim = side is Side.UPPER, np.log(delta)

    def excess(eps: Array) -> Array:
        """A difference of logarithms, at most 0 exactly where the comparison of the numbers themselves holds."""
        found = bound(eps)
        held, gap = found <= delta, np.log(np.clip(found, 1e-300, 1e300)) - aim
        if not upper:
            held, gap = found > delta, -gap
        return np.asarray(np.where(held, np.minimum(gap, 0.0), np.maximum(gap, 1e-300)))

    right, wrong, under, over = np.full((4, start.size), math.nan)
    point, reach = np.where(np.isnan(start), 0.0, start), np.zeros(start.size)
    for _ in range(MOST_STRIDES):
        found = excess(point)
        held = found <= 0.0
        open_ended = np.isnan(right) | np.isnan(wrong)
        good, bad = held & open_ended, ~held & open_ended
        right, under = np.where(good, point, right), np.where(good, found, under)
        wrong, over = np.where(bad, point, wrong), np.where(bad, found, over)
        open_ended = np.isnan(right) | np.isnan(wrong)
        # At an end of the range nothing more can be asked.
        left = held == upper
        ended = np.where(left, point <= 0.0, point >= top)
        if np.all(~open_ended | ended):
            break
        guess = 1.05 * stride * np.minimum(np.abs(found), 4.0) + 1e-13 * point + 1e-300
        reach = np.maximum(2.0 * reach, guess)
        point = np.where(open_ended, np.clip(point + np.where(left, -reach, reach), 0.0, top), point)
    both = ~np.isnan(right) & ~np.isnan(wrong)
    if both.any():
        fill = start if both.all() else np.zeros(start.size)
        ends = (
            (np.where(both, end, fill), np.where(both, value, 0.0)) for end, value in ((wrong, over), (right, under))
        )
        right = np.where(both, crossing(excess, *ends, close=CLOSE), right)
    return right


def ratio(lower: Array, upper: Array) -> Array:
    """upper / lower - 1; 0 where both are 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = upper / lower - 1.0
    return np.where(upper == lower, 0.0, np.where(lower > 0.0, found, math.inf))


def _require_order(lower: Array, upper: Array, answer: str, asked: str, value: Array) -> None:
    """A bracket that comes out inverted is a defect: it is never returned."""
    wrong = ~(lower <= upper)
    if wrong.any():
        one = int(np.argmax(wrong))
        raise ArithmeticError(
            f"inverted bracket [{lower[one]!r}, {upper[one]!r}] on {answer} at {asked} {value[one]!r};"
            " please report it with the accountant's to_json()"
        )
