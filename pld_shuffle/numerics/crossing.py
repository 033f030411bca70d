"""Where a monotone function falls to 0, on the right side of it: regula falsi with the Illinois rule.

The end that stays again counts for half, so that the next point is likely to lie beyond the crossing (Dowell and
Jarratt 1971). Every fifth point is the middle, which bounds the number of steps. What is returned has been asked for
by itself, or was given.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Point = tuple[float, float]  # and the excess there

MOST_STEPS = 300
NEXT = 2e-15  # relative distance of two points that are as good as neighbours


def crossing(
    excess: Callable[[float], float],
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
        if under > -close or abs(end - start) <= rtol * max(end, start):
            break
        point = 0.5 * (start + end)
        if step % 5 < 4 and over - under > 0.0:
            # An infinite one gives no number, which is not between.
            straight = end + (start - end) * ((under + 0.5 * close) / (under - over))
            if min(start, end) < straight < max(start, end):
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
    wrong: Array,
    right: Array,
    *,
    close: float = 0.0,
    rtol: float = NEXT,
) -> Array:
    """`crossing` for many functions, asked together; shape (functions,) each."""
    over, under = excess(wrong), excess(right)
    before = under > 0.0
    for step in range(MOST_STEPS):
        far = (under <= -close) & (np.abs(right - wrong) > rtol * np.maximum(right, wrong))
        if not far.any():
            break
        with np.errstate(divide="ignore", invalid="ignore"):
            point = right + (wrong - right) * ((under + 0.5 * close) / (under - over))
            between = np.abs(point - wrong) + np.abs(point - right) <= np.abs(right - wrong)
        point = np.where(between & (step % 5 < 4), point, 0.5 * (wrong + right))
        found = excess(point)
        held = found <= 0.0
        half = np.where((held == before) & (step > 0), 0.5, 1.0)
        over, under = np.where(held, half * over, found), np.where(held, found, half * under)
        wrong, right = np.where(held, wrong, point), np.where(held, point, right)
        before = held
    return right
