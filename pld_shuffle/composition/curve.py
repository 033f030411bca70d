"""The whole privacy profile of a composition, from laws under a ladder of tilts.

A law that was composed under one tilt bounds delta at every epsilon, and well near its own (`reading`). So a ladder of
deltas, each a tenth of the one before, gives a few laws; epsilons in between are read off the two next to them. Any
number of points costs no further composition. Where a law did not become accurate, the rung itself is a bound: delta
at a larger epsilon is at most that of the rung.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
from numpy.typing import NDArray

from ..numerics.sides import Bounds
from ..pairs.pair import Pair
from .attempts import AccuracyWarning, Composition
from .reading import Reading

Array = NDArray[np.float64]

RUNG = 0.1  # delta of a rung over that of the one before
FEW = 1e-14  # below that, rungs are farther apart: delta^1.5
LOWEST = 1e-100  # below that, the lowest rung's law is asked
NEAR = 0.98  # of the largest loss: laws of few atoms are costly there
_UP, _DOWN = 1.0 + 1e-15, 1.0 - 1e-15


class Curve:
    """delta as a function of growth = expm1(epsilon) >= 0, for `rounds` rounds of a pair."""

    def __init__(self, pair: Pair, rounds: int, rtol: float = 1e-4) -> None:
        low, high = (float(end) * rounds for end in pair.max_loss)
        self.largest = Bounds(low * _DOWN, high * _UP)
        self.scale = min(math.sqrt(rounds) * pair.scale, high)
        self._composition = Composition([(pair, rounds)], rtol)
        self._rungs: list[tuple[float, float, Bounds, Reading | None]] = []

    def lower(self, growth: Array, missed: float) -> Array:
        """Below the profile; good where delta is above `missed`."""
        return np.array([self._at(eps, missed).lower for eps in np.log1p(growth) * _UP])

    def upper(self, growth: Array, missed: float) -> Array:
        """Above the profile; good where delta is above `missed`."""
        return np.array([self._at(eps, missed).upper for eps in np.log1p(growth) * _DOWN])

    def _at(self, eps: float, missed: float) -> Bounds:
        if eps >= self.largest.upper:
            return Bounds(0.0, 0.0)
        if self._composition.lawless:
            return self._composition.delta(eps)
        self._descend(eps, max(missed, LOWEST))
        above = next((i for i, rung in enumerate(self._rungs) if rung[0] >= eps), len(self._rungs))
        lower, upper = 0.0, 1.0
        for _, delta, found, law in self._rungs[max(0, above - 1) : above + 1]:
            if law is not None:
                lower, upper = max(lower, law.lower(eps)), min(upper, law.upper(eps))
            if eps >= found.upper:
                upper = min(upper, delta)
            elif eps < found.lower:
                lower = max(lower, delta)
        return Bounds(min(lower, upper), upper)

    def _descend(self, eps: float, missed: float) -> None:
        """Rungs until one lies beyond eps, or below `missed`, or next to the largest loss."""
        far = min(eps, NEAR * float(self.largest.upper))
        while not self._rungs or (self._rungs[-1][0] < far and self._rungs[-1][1] > missed):
            before = self._rungs[-1][1] if self._rungs else 3.0
            delta = RUNG * before if before > FEW else before**1.5
            with warnings.catch_warnings():
                # Whoever asked for the whole measures its bracket, and warns if that is too wide.
                warnings.simplefilter("ignore", AccuracyWarning)
                found = self._composition.epsilon(delta)
            self._rungs.append((found.upper, delta, found, self._composition.latest))
