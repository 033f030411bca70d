"""Sums of p (1 - e^(eps - x))_+ over masses p at lattice points x, at any eps.

Let x' be the next lattice point above eps, d = x' - eps. A mass at x >= x' counts

    1 - e^(eps - x) = (1 - e^-d) + e^-d (1 - e^(x' - x)).

So two suffix sums at lattice points, made once, answer every eps. All terms are nonnegative.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from . import kernels
from .rounding import ROUNDOFF
from .sides import Bounds

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class HockeySums:
    """Masses at (low + i) step and their suffix sums; see the module."""

    low: int
    step: float
    plain: Array
    hockey: Array

    @classmethod
    def of(cls, masses: Array, low: int, step: float) -> HockeySums:
        """O(points)."""
        plain, hockey = np.zeros(masses.size), np.zeros(masses.size)
        kernels.hockey_sums(masses, 1.0, -math.expm1(-step), plain, hockey)
        return cls(low, step, plain, hockey)

    def at(self, growth: Array) -> Bounds:
        """Bounds (arrays) on the sum at e^eps = 1 + growth >= 1, rounding included."""
        size = self.plain.size
        if size == 0:
            return Bounds(np.zeros(growth.shape), np.zeros(growth.shape))
        eps = np.log1p(growth)
        above = np.clip(np.floor(eps / self.step) + 1.0 - self.low, 0.0, size).astype(np.int64)
        index = np.minimum(above, size - 1)
        loss = (self.low + index) * self.step
        gap = np.where(above < size, loss - eps, 0.0)
        share = np.exp(-gap)
        value = np.where(
            above < size, share * self.hockey[index] - np.expm1(-gap) * self.plain[index], 0.0
        )
        # eps and the lattice points are known to an ulp each: the sum falls by at most the mass above per
        # unit of eps, the last point's included if rounding may have put eps on its other side.
        near = eps <= loss * (1.0 + 8.0 * ROUNDOFF)
        beside = self.plain[np.maximum(above - 1, 0)]
        error = np.where(near, 16.0 * ROUNDOFF * (np.abs(loss) + eps) * beside, 0.0)
        error = error + 8.0 * ROUNDOFF * (size + 16.0) * value + np.where(near, 1e-300, 0.0)
        return Bounds(np.maximum(value - error, 0.0), value + error)
