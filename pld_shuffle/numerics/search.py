"""Searches that return a proven end: the value returned has been asked for by itself.

`safe_end`: the most wasteful value of a parameter whose certified upper bound meets a target. The search keeps a value
that meets it and one that does not, guesses where the target is crossed by secants on scales on which the quantity is
nearly straight, and stops when the two are neighbours. Far from the target a loose bracket decides; near it, and at
both ends of the answer, a tight one. So guesses affect speed, never correctness.

`crossing`: where a function falls to 0, on the right side of it, for one function or for many that are asked together.
Regula falsi with the Illinois rule (Dowell and Jarratt 1971); every fifth point is the middle.

`first_satisfying`: a walk over a geometric grid from the wanted end until a point satisfies excess <= 0, and `crossing`
before it. A sign change between two grid points may be overlooked: that costs tightness, never validity.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from .sides import Bounds
from .validation import nonnegatives, positive_float, positive_int, real, tolerance

Number = float  # the type checker's float includes int: whole parameters are ints throughout


class Scale(NamedTuple):
    """Increasing coordinates in which the logarithm of what is spent is nearly straight."""

    there: Callable[[float], float]
    back: Callable[[float], float]


LOG = Scale(math.log, math.exp)
# Epsilon grows like a power of e^eps0 - 1.
EXPONENTIAL = Scale(
    lambda value: value + math.log(-math.expm1(-value)),
    lambda place: max(place, 0.0) + math.log1p(math.exp(-abs(place))),
)

LOOSE_RTOL = 0.1
FIRST_FACTOR = 4.0  # the first stride of a search
VALUE_RTOL = 1e-4  # default relative tolerance of a float parameter


class InfeasibleError(ValueError):
    """No value of the parameter is proven to meet the target; the text says what is in the way.

    best : bounds at the better end of the range, where a search asked for them.
    """

    best: Bounds | None = None


@dataclass(frozen=True)
class SafeEnd:
    """Where a search ended.

    value : meets the target: ``achieved.upper <= target``.
    achieved : bounds at `value`.
    unmet : the nearest value that was not proven to meet it (the next integer, or a float within the
        tolerance); None if `value` is the end of the range.
    unmet_bounds : bounds there: if their lower bound exceeds the target, `unmet` violates it; otherwise the
        bracket is too wide to tell.
    """

    value: Number
    achieved: Bounds
    unmet: Number | None = None
    unmet_bounds: Bounds | None = None


def safe_end(
    spent: Callable[[Any], Bounds], target: float, *, low: Number, high: Number, increasing: bool, whole: bool = False,
    rtol: float = VALUE_RTOL, start: Number | None = None, loose: Callable[[Any], Bounds] | None = None,
    stride: float = FIRST_FACTOR, scale: Scale = LOG,
) -> SafeEnd:  # fmt: skip
    """The most wasteful value in [low, high] with ``spent(value).upper <= target``.

    spent : certified bounds on the quantity at a value (epsilon at a delta, delta at an epsilon,
        an error); must be monotone in the value, up to the width of its brackets.
    target : what must not be exceeded.
    low, high : the range, 0 < low <= high; integers if `whole`.
    increasing : whether `spent` grows with the value: then the largest safe value is returned, else the
        smallest.
    whole : whether values are integers; then `unmet` is the very next one.
    rtol : otherwise, the relative distance of `value` and `unmet` at most.
    start, stride : a guess, and the factor by which it may be wrong; they affect speed only.
    loose : cheaper bounds on the same quantity, to decide where they can.
    scale : coordinates in which the logarithm of `spent` is nearly straight; for speed.

    Returns a `SafeEnd`. Raises InfeasibleError if not even the better end of the range meets the target, and
    TypeError or ValueError naming a bad argument. Complexity: about ten questions, most of them to `loose`.

    The least gamma for 100 rounds at (1, 1e-6), within 1 %:

    >>> from pld_shuffle import Accountant, ShuffledRR
    >>> def epsilon(gamma):
    ...     return Accountant().compose(ShuffledRR(k=4, n=10**5, gamma=gamma), 100).epsilon_bounds(1e-6)
    >>> end = safe_end(epsilon, 1.0, low=1e-3, high=1.0, increasing=False, rtol=1e-2)
    >>> end.achieved.upper <= 1.0 < end.unmet_bounds.lower and end.unmet < end.value
    True
    """
    target = float(nonnegatives("target", real("target", target)))
    check = positive_int if whole else positive_float
    low, high = check("low", low), check("high", high)
    if not low <= high:
        raise ValueError(f"low must not exceed high, got {low!r} > {high!r}")
    start = low if start is None else min(max(check("start", start), low), high)
    ends = (low, high) if increasing else (high, low)
    search = _Search(spent, loose, target, ends, whole, tolerance("rtol", rtol), scale)
    return search.run(start, stride)


def _bounds(name: str, found: Any) -> Bounds:
    """What the caller's function of that name returned, if it is a bracket."""
    if not isinstance(found, Bounds):
        raise TypeError(f"{name} must return Bounds, got {found!r}")
    return found


@dataclass(frozen=True)
class _Search:
    """One search; see the module. A good value meets the target, a bad one is not proven to.

    ends : of the range, the better one first. tight, rough : bounds at the values asked so far.
    """

    spent: Callable[[Any], Bounds]
    loose: Callable[[Any], Bounds] | None
    target: float
    ends: tuple[Number, Number]
    whole: bool
    rtol: float
    scale: Scale
    tight: dict[Number, Bounds] = field(default_factory=dict)
    rough: dict[Number, Bounds] = field(default_factory=dict)

    def run(self, start: Number, stride: float) -> SafeEnd:
        while True:
            good, bad = self._narrowed(*self._bracketed(start, stride))
            achieved = self._asked(good)
            if achieved.upper <= self.target:
                return SafeEnd(good, achieved, bad, None if bad is None else self._asked(bad))
            # A loose bracket happened to reach less far up than the tight one.
            start, stride = good, 1.0 + self.rtol

    # -- questions ---------------------------------------------------------------------------------

    def _asked(self, value: Number) -> Bounds:
        """Tight bounds at `value`."""
        if value not in self.tight:
            self.tight[value] = _bounds("spent", self.spent(value))
        return self.tight[value]

    def _known(self, value: Number) -> Bounds:
        """Bounds that tell whether `value` meets the target: loose ones where they can."""
        if self.loose is not None and value not in self.tight:
            if value not in self.rough:
                self.rough[value] = _bounds("loose", self.loose(value))
            if not self.rough[value].lower <= self.target < self.rough[value].upper:
                return self.rough[value]
        return self._asked(value)

    def _met(self, value: Number) -> bool:
        return bool(self._known(value).upper <= self.target)

    def _crossing(self) -> float:
        """Where the target seems to be crossed, on the scale: the secant of the two points nearest to it; or nan."""
        known = []
        for value, (low, high) in (self.rough | self.tight).items():
            spent = float(high) if value in self.tight else math.sqrt(low * high) or float(high)
            if 0.0 < spent < math.inf and self.target > 0.0:
                excess = math.log(spent) - math.log(self.target)
                known.append((abs(excess), excess, self.scale.there(value)))
        if len(known) < 2:
            return math.nan
        (_, first, start), (_, second, end) = sorted(known)[:2]
        return start + (end - start) * first / (first - second) if first != second else math.nan

    # -- the search --------------------------------------------------------------------------------

    def _bracketed(self, start: Number, stride: float) -> tuple[Number, Number | None]:
        """A good and a bad value, by strides that double on the scale, not far over the crossing."""
        value = start
        met = self._met(value)
        end = self.ends[met]
        length = math.log(stride)
        while value != end:
            before = value
            here, ahead = self.scale.there(before), self._crossing()
            reach = 1.25 * abs(ahead - here) + 0.1 * length
            stepped = reach if (ahead > here) is (end > before) and reach < length else length
            value = self._between(here + math.copysign(stepped, end - before), before, end)
            length *= 2.0
            if self._met(value) is not met:
                return (before, value) if met else (value, before)
        if met:
            return value, None
        best = self._known(value)
        error = InfeasibleError(f"even {value!r} is not proven to meet {self.target!r}: there, {best}")
        error.best = best
        raise error

    def _narrowed(self, good: Number, bad: Number | None) -> tuple[Number, Number | None]:
        """The bracket, narrowed to neighbours: by secants, and by halves where they do not help."""
        there = self.scale.there
        bisect = False
        while bad is not None and abs(bad - good) > (1 if self.whole else self.rtol * min(good, bad)):
            width = abs(there(bad) - there(good))
            value = self._guess(good, bad, bisect)
            if self._met(value):
                good = value
            else:
                bad = value
            bisect = not bisect and abs(there(bad) - there(good)) > 0.5 * width
        return good, bad

    def _guess(self, good: Number, bad: Number, bisect: bool) -> Number:
        """A value strictly between, where the target seems to be crossed, or in the middle.

        A little beyond the crossing, towards the farther end: so that both ends come close.
        """
        there = self.scale.there
        low, high = sorted((good, bad))
        if self.whole and bisect and high - low < 0.5 * low:
            return (low + high) // 2  # exact where the scale rounds
        middle, crossing = 0.5 * (there(low) + there(high)), self._crossing()
        if not bisect and there(low) <= crossing <= there(high):
            tolerated = (there(high) - there(low)) * min(
                0.5, 0.4 * (1.0 if self.whole else self.rtol * low) / (high - low)
            )
            middle = crossing + (tolerated if crossing < middle else -tolerated)
        return self._between(middle, low, high, open_end=True)

    def _between(self, scaled: float, before: Number, end: Number, *, open_end: bool = False) -> Number:
        """The value at a place of the scale: after `before`, at most (if open, before) `end`."""
        value: Number = self.scale.back(scaled)
        low, high = sorted((before, end))
        if not self.whole:
            return min(max(value, low), high)
        least = low + 1 if open_end or before == low else low
        most = high - 1 if open_end or before == high else high
        return min(max(round(value), least), most)


MOST_STEPS = 300
GRID_STEPS = 240  # over 27 powers of e this is a ratio of 1.12 from one point of a grid to the next
NEXT = 2e-15  # relative distance of two points that are as good as neighbours


def crossing(
    excess: Callable[[Any], Any], wrong: tuple[Any, Any], right: tuple[Any, Any], *,
    close: float = 0.0, rtol: float = NEXT,
) -> Any:  # fmt: skip
    """Points with excess <= 0, next to ones with excess > 0; such points, with their excess, to start from.

    wrong, right : (points, excess), numbers or arrays of one shape, one entry for each function. Next to it: within
    `rtol`, relative, or with an excess above -close. Shape as given (a number: an array without dimensions).
    """
    (start, over), (end, under) = wrong, right
    before: Any = math.nan
    with np.errstate(divide="ignore", invalid="ignore"):
        for step in range(MOST_STEPS):
            low, high = np.minimum(start, end), np.maximum(start, end)
            far = (under <= -close) & (high - low > rtol * high)
            if not far.any():
                break
            point = end + (start - end) * ((under + 0.5 * close) / np.subtract(under, over))
            # An infinite excess gives no number, which is not between.
            between = (low <= point) & (point <= high) & (step % 5 < 4)
            if not between.all():
                wide = (low > 0.0) & (4.0 * low < high)
                middle = np.where(wide, np.sqrt(np.abs(low)) * np.sqrt(high), 0.5 * (low + high))
                point = np.where(between, point, middle)
            found = excess(point)
            held = np.less_equal(found, 0.0)
            half = np.where(held == before, 0.5, 1.0)
            over, under = np.where(held, half * over, found), np.where(held, found, half * under)
            start, end = np.where(held, start, point), np.where(held, point, end)
            before = held
    return end


def first_satisfying(
    excess: Callable[[float], float], start: float, end: float, *, steps: int = GRID_STEPS, rtol: float = NEXT
) -> float | None:
    """The number nearest to `start`, from there to `end`, with excess <= 0, as far as the grid sees; None if none.

    Both are positive. `excess` may be infinite, not nan. Up to steps + 1 evaluations on the grid, 10 to 60 besides.
    """
    ratio = math.log(end / start) / steps
    violated = None
    for index in range(steps + 1):
        point = end if index == steps else start * math.exp(ratio * index)
        found = excess(point)
        if found <= 0.0:
            if violated is None:
                return point
            return float(crossing(lambda x: excess(float(x)), violated, (point, found), rtol=rtol))
        violated = point, found
    return None
