"""Safe-side root finding: the returned unknown itself satisfies the bound.

A bound is a function `excess(x)`, negative or zero where the bound is satisfied (log delta(x)
minus the log of the allowed delta, say). It need not be monotone: several published bounds rise
again for large epsilon although the mechanism's delta(epsilon) cannot. It is therefore scanned on
a grid first, one sign change is refined by Brent's method, and the root is moved into the
satisfied side until `excess` there, evaluated once more, is <= 0. A sign change overlooked between
two grid points costs tightness, never validity.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.optimize import brentq

__all__ = ["largest_satisfying", "smallest_of_falling", "smallest_satisfying"]

_STEPS = 240  # grid points of the scan
_RTOL = 4e-15  # Brent's relative tolerance (the smallest SciPy allows is 4 ulp)


def _geometric(low: float, high: float) -> list[float]:
    ratio = math.log(high / low) / _STEPS
    grid = [low * math.exp(ratio * i) for i in range(_STEPS)]
    return [*grid, high]


def _refine(
    excess: Callable[[float], float], satisfied: float, violated: float, excess_there: float
) -> float:
    """A point between the two that satisfies the bound, close to the sign change."""
    if excess_there == math.inf:  # Brent needs finite ends: halve until the violated end is finite
        while abs(violated - satisfied) > _RTOL * abs(satisfied):
            middle = 0.5 * (satisfied + violated)
            value = excess(middle)
            if value == math.inf:
                violated = middle
            elif value > 0:
                violated = middle
                break
            else:
                satisfied = middle
        else:
            return satisfied
    if not excess(satisfied) < 0:
        return satisfied
    root = float(
        brentq(lambda x: max(excess(x), -1e300), violated, satisfied, rtol=_RTOL, xtol=1e-300)
    )
    inward = math.copysign(_RTOL * abs(root), satisfied - violated)
    while abs(inward) < abs(satisfied - root):
        if excess(root) <= 0:
            return root
        root += inward
        inward *= 2
    return satisfied


def smallest_satisfying(
    excess: Callable[[float], float], *, low: float, high: float
) -> float | None:
    """The smallest x in [low, high] at which excess(x) <= 0, as far as the scan sees; None if
    there is none.

    `excess` may be +inf, not nan. About 240 evaluations for the scan and 20 for the refinement.
    """
    violated: float | None = None
    excess_there = 0.0
    for point in _geometric(low, high):
        value = excess(point)
        if value <= 0:
            return point if violated is None else _refine(excess, point, violated, excess_there)
        violated, excess_there = point, value
    return None


def largest_satisfying(
    excess: Callable[[float], float], *, low: float, high: float
) -> float | None:
    """The largest x in [low, high] at which excess(x) <= 0, as far as the scan sees; None if there
    is none.
    """
    violated: float | None = None
    excess_there = 0.0
    for point in reversed(_geometric(low, high)):
        value = excess(point)
        if value <= 0:
            return point if violated is None else _refine(excess, point, violated, excess_there)
        violated, excess_there = point, value
    return None


def smallest_of_falling(
    excess: Callable[[float], float], *, low: float, high: float, rtol: float = 1e-10
) -> float | None:
    """As `smallest_satisfying` for an `excess` known to fall: no scan, about 15 evaluations. None
    if excess(high) > 0.

    The answer is at most about 3 `rtol` above the crossing.
    """

    def clipped(x: float) -> float:
        return min(max(excess(x), -800.0), 800.0)

    if clipped(low) <= 0:
        return low
    if clipped(high) > 0:
        return None
    root = float(brentq(clipped, low, high, rtol=rtol, xtol=1e-300))
    step = rtol * root
    while root < high:
        if clipped(root) <= 0:
            return root
        root, step = root + step, 2 * step
    return high
