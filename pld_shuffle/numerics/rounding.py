"""Rounding of doubles, and numbers moved to a side of the truth.

A result of one operation is known to half a unit in the last place. A number derived by a few operations is
made once per side: rounded to nearest at every step, and then moved by the sum of the steps' errors.
"""

from __future__ import annotations

import math

ROUNDOFF = 2.0**-53  # the unit roundoff u: one operation errs by at most u, relative


def above(value: float, operations: float = 1.0) -> float:
    """A number not below the exact one, for a value with relative error up to `operations` u."""
    return math.nextafter(value + abs(value) * (operations * ROUNDOFF), math.inf)


def below(value: float, operations: float = 1.0) -> float:
    """A number not above the exact one, for a value with relative error up to `operations` u."""
    return math.nextafter(value - abs(value) * (operations * ROUNDOFF), -math.inf)
