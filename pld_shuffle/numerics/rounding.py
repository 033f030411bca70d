"""Rounding of doubles, and numbers moved to a side of the truth.

A result of one operation is known to half a unit in the last place. A number derived by a few operations is
made once per side: rounded to nearest at every step, and then moved by the sum of the steps' errors.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

ROUNDOFF = 2.0**-53  # the unit roundoff u: one operation errs by at most u, relative


def above(value: float, operations: float = 1.0) -> float:
    """A number not below the exact one, for a value with relative error up to `operations` u."""
    return math.nextafter(value + abs(value) * (operations * ROUNDOFF), math.inf)


def below(value: float, operations: float = 1.0) -> float:
    """A number not above the exact one, for a value with relative error up to `operations` u."""
    return math.nextafter(value - abs(value) * (operations * ROUNDOFF), -math.inf)


def total(values: NDArray[np.float64]) -> float:
    """The sum of nonnegative numbers, of relative error u (1 + 1e-12), sooner than by `math.fsum`.

    Halves are added by two-sums (Knuth), whose errors are exact: their own sum, of size u log2(size), errs by
    u^2 log2(size)^2 at most.
    """
    lost = 0.0
    while values.size > 200:
        half = values.size // 2
        a, b, rest = values[:half], values[half : 2 * half], values[2 * half :]
        added = a + b
        moved = added - a
        lost += float(((a - (added - moved)) + (b - moved)).sum())
        values = np.append(added, rest)
    return math.fsum((*values.tolist(), lost))
