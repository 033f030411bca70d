"""Where a function falls to 0, on the right side of it: one search for a number, one for arrays, one over a grid.

* `crossing`, `crossings`: regula falsi with the Illinois rule. The end that stays again counts for half, so that the
  next point is likely to lie beyond the crossing (Dowell and Jarratt 1971). Every fifth point is the middle, which
  bounds the number of steps.
* `smallest_satisfying`, `largest_satisfying`: a walk over a geometric grid from the wanted end until a point satisfies
  excess <= 0, and `crossing` before it. If the excess is monotone, one step of the grid is enough, and no number nearer
  to the wanted end satisfies it, up to rtol. If not, a sign change between two grid points may be overlooked: that
  costs tightness, never validity.

*Guarantee: what is returned has been asked for by itself, or was given, and satisfied excess <= 0.*
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Point = tuple[float, float]  # and the excess there
Excess = Callable[[float], float]

MOST_STEPS = 300
GRID_STEPS = 240  # over 27 powers of e this is a ratio of 1.12 from one point of a grid to the next
NEXT = 2e-15  # relative distance of two points that are as good as neighbours


def crossing(
    excess: Excess,
    wrong: Point,
    right: Point,
    *,
    close: float = 0.0,
    rtol: float = NEXT,
) -> float:
    """A point with excess <= 0, next to one with excess > 0; such points to start from.

    Next to it: within `rtol`, relative, or with an excess above -close.
    """
    last = 0
    for step in range(MOST_STEPS):
        (start, over), (end, under) = wrong, right
        low, high = min(start, end), max(start, end)
        if under > -close or high - low <= rtol * high:
            break
        point = math.sqrt(low * high) if 0.0 < 4.0 * low < high else 0.5 * (low + high)
        if step % 5 < 4 and over - under > 0.0:
            # An infinite one gives no number, which is not between.
            straight = end + (start - end) * ((under + 0.5 * close) / (under - over))
            if low < straight < high:
                point = straight
        found = excess(point)
        if found > 0.0:
            wrong, right = (point, found), (end, 0.5 * under if last > 0 else under)
            last = 1
        else:
            wrong, right = (start, 0.5 * over if last < 0 else over), (point, found)
            last = -1
    return right[0]


def crossings(
    excess: Callable[[Array], Array],
    wrong: tuple[Array, Array],
    right: tuple[Array, Array],
    *,
    close: float = 0.0,
    rtol: float = NEXT,
) -> Array:
    """`crossing` for many functions, asked together; shape (functions,) each."""
    (start, over), (end, under) = wrong, right
    before = under > 0.0
    for step in range(MOST_STEPS):
        far = (under <= -close) & (np.abs(end - start) > rtol * np.maximum(end, start))
        if not far.any():
            break
        with np.errstate(divide="ignore", invalid="ignore"):
            point = end + (start - end) * ((under + 0.5 * close) / (under - over))
            between = np.abs(point - start) + np.abs(point - end) <= np.abs(end - start)
        point = np.where(between & (step % 5 < 4), point, 0.5 * (start + end))
        found = excess(point)
        held = found <= 0.0
        half = np.where((held == before) & (step > 0), 0.5, 1.0)
        over, under = np.where(held, half * over, found), np.where(held, found, half * under)
        start, end = np.where(held, start, point), np.where(held, point, end)
        before = held
    return end


def smallest_satisfying(
    excess: Excess, *, low: float, high: float, steps: int = GRID_STEPS, rtol: float = NEXT
) -> float | None:
    """The smallest x in [low, high], 0 < low, with excess(x) <= 0, as far as the grid sees; None if there is none.

    `excess` may be infinite, not nan. Up to steps + 1 evaluations on the grid, 10 to 60 for the rest.
    """
    ratio = math.log(high / low) / steps
    violated = None
    for index in range(steps + 1):
        point = high if index == steps else low * math.exp(ratio * index)
        found = excess(point)
        if found <= 0.0:
            return (
                point if violated is None else crossing(excess, violated, (point, found), rtol=rtol)
            )
        violated = point, found
    return None


def largest_satisfying(
    excess: Excess, *, low: float, high: float, steps: int = GRID_STEPS, rtol: float = NEXT
) -> float | None:
    """The largest x in [low, high] with excess(x) <= 0; otherwise as `smallest_satisfying`."""
    return smallest_satisfying(excess, low=high, high=low, steps=steps, rtol=rtol)
