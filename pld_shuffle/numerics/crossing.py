"""Where a function falls to 0, on the right side of it.

* `crossing`: regula falsi with the Illinois rule, for one function or for many that are asked together. The end that
  stays again counts for half, so that the next point is likely to lie beyond the crossing (Dowell and Jarratt 1971).
  Every fifth point is the middle, which bounds the number of steps.
* `first_satisfying`: a walk over a geometric grid from the wanted end until a point satisfies excess <= 0, and
  `crossing` before it. If the excess is monotone, one step of the grid is enough, and no number nearer to the wanted
  end satisfies it, up to rtol. If not, a sign change between two grid points may be overlooked: that costs tightness,
  never validity.

*Guarantee: what is returned has been asked for by itself, or was given, and satisfied excess <= 0.*
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

MOST_STEPS = 300
GRID_STEPS = 240  # over 27 powers of e this is a ratio of 1.12 from one point of a grid to the next
NEXT = 2e-15  # relative distance of two points that are as good as neighbours


def crossing(
    excess: Callable[[Any], Any],
    wrong: tuple[Any, Any],
    right: tuple[Any, Any],
    *,
    close: float = 0.0,
    rtol: float = NEXT,
) -> Any:
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
