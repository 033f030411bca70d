"""The end of a stretch of numbers that satisfy a condition, on the safe side.

A condition is a function `excess(x)`, zero or negative where x satisfies it: log(delta(x)/delta), say,
where the delta of a bound has to stay below a given one. Both searches

1. walk over a geometric grid from the wanted end until a grid point satisfies the condition,
2. refine the sign change before it by Brent's method,
3. step from the root into the satisfied side until `excess`, evaluated once more, is <= 0.

*Guarantee: the number returned satisfies the condition, as evaluated.* If `excess` is monotone, one
step of the grid (`steps=1`) is enough and no number nearer to the wanted end satisfies it, up to
`rtol`. If not, a sign change between two grid points may be overlooked: that costs tightness, never
validity.
"""

from __future__ import annotations

import math
from collections.abc import Callable

_STEPS = 240  # over 27 powers of e this is a ratio of 1.12 from one grid point to the next
_RTOL = 4e-15  # of Brent's method, about 18 ulp; SciPy refuses less than 4
_CAP = 800.0  # Brent's method needs finite values: log(1e-347), past the range of doubles

Excess = Callable[[float], float]


def smallest_satisfying(
    excess: Excess, *, low: float, high: float, steps: int = _STEPS, rtol: float = _RTOL
) -> float | None:
    """The smallest x in [low, high] with excess(x) <= 0, as far as the grid sees; None if there is none.

    0 < low <= high. `excess` may be infinite, not nan. Up to steps + 1 evaluations on the grid, 10 to 60
    for the rest.
    """
    return _first(excess, low, high, steps, rtol)


def largest_satisfying(
    excess: Excess, *, low: float, high: float, steps: int = _STEPS, rtol: float = _RTOL
) -> float | None:
    """The largest x in [low, high] with excess(x) <= 0; otherwise as `smallest_satisfying`."""
    return _first(excess, high, low, steps, rtol)


def _first(excess: Excess, start: float, stop: float, steps: int, rtol: float) -> float | None:
    """The satisfying number that comes first on the way from `start` to `stop`."""
    ratio = math.log(stop / start) / steps
    violated = None
    for index in range(steps + 1):
        point = stop if index == steps else start * math.exp(ratio * index)
        if excess(point) <= 0:
            return point if violated is None else _refined(excess, violated, point, rtol)
        violated = point
    return None


def _refined(excess: Excess, violated: float, satisfied: float, rtol: float) -> float:
    """A satisfying number next to the sign change between the two."""

    from scipy.optimize import brentq  # slow to load

    def capped(x: float) -> float:
        return min(max(excess(x), -_CAP), _CAP)

    root = float(brentq(capped, violated, satisfied, rtol=rtol, xtol=1e-300, maxiter=1000))
    step = math.copysign(rtol * root, satisfied - violated)
    while abs(satisfied - root) > abs(step):
        if excess(root) <= 0:
            return root
        root, step = root + step, 2 * step
    return satisfied
