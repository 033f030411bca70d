"""The whole privacy profile of a composition, from laws under a ladder of tilts.

A law that was composed under one tilt bounds delta at every epsilon, and well near its own (`reading`). So a ladder of
deltas, each a tenth of the one before, gives a few laws; epsilons in between are read off the two next to them. Any
number of points costs no further composition. Where a law did not become accurate, the rung itself is a bound: delta
at a larger epsilon is at most that of the rung.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..numerics.sides import Array, Bounds, Side
from ..pairs.pair import Alike, Pair
from ..pairs.profile import ProfilePair, UpperPair
from .composition import AccuracyWarning, Composition
from .pld import log_finite
from .reading import Reading

RUNG = 0.1  # delta of a rung over that of the one before
FEW = 1e-14  # below that, rungs are farther apart: delta^1.5
LOWEST = 1e-100  # below that, the lowest rung's law is asked
NEAR = 0.98  # of the largest loss: laws of few atoms are costly there
READ_TOGETHER = 128  # points of one law
MOST_POINTS = 4_000  # of one law of a composed profile
_UP, _DOWN = 1.0 + 1e-15, 1.0 - 1e-15


class Curve:
    """delta as a function of growth = expm1(epsilon) >= 0, for `rounds` rounds of a pair."""

    def __init__(self, pair: Pair, rounds: int, rtol: float = 1e-4) -> None:
        low, high = (float(end) * rounds for end in pair.max_loss)
        self.max_loss = Bounds(low * _DOWN, high * _UP)
        self.scale = min(math.sqrt(rounds) * pair.scale, high)
        self.pair, self.rounds, self.rtol = pair, rounds, rtol
        self._composition = Composition([(pair, rounds)], rtol)
        self._rungs: list[tuple[float, float, Bounds, Reading | None]] = []

    @cached_property
    def infinity_mass(self) -> float:
        """A lower bound on the mass at infinite loss, the limit of the profile."""
        known = self.pair.as_profile
        mass = 0.0 if known is None else known.infinity_mass
        return -math.expm1(log_finite(mass, self.rounds)) * (1.0 - 1e-14)

    def ends(self, expm1_eps: Array, truncated_mass: float, side: Side) -> Array:
        """Values on that side of the profile, each from the rungs next to it; good above `truncated_mass`."""
        above = side is Side.UPPER
        eps, found = np.log1p(expm1_eps) * (_DOWN if above else _UP), np.zeros(expm1_eps.size)
        inside = np.flatnonzero(eps < self.max_loss.upper)
        if inside.size == 0:
            return found
        if self._composition.lawless:
            found[inside] = [self._composition.deltas(at)[int(above)] for at in eps[inside].tolist()]
            return found
        self._descend(float(np.max(eps)), max(truncated_mass, LOWEST))
        found[inside], nearer = (1.0, np.minimum) if above else (0.0, np.maximum)
        place = np.searchsorted(np.maximum.accumulate([rung[0] for rung in self._rungs]), eps[inside])
        for k, (_, delta, known, law) in enumerate(self._rungs):
            near = inside[(place == k) | (place == k + 1)]
            for start in range(0, near.size, READ_TOGETHER):
                here = near[start : start + READ_TOGETHER]
                at, best = eps[here], found[here]
                if law is not None:
                    best = nearer(best, law.uppers(at) if above else law.lowers(at))
                found[here] = np.where(at >= known.upper if above else at < known.lower, nearer(best, delta), best)
        return found

    def _descend(self, eps: float, truncated_mass: float) -> None:
        """Rungs until one lies beyond eps, or below `truncated_mass`, or next to the largest loss."""
        far = min(eps, NEAR * float(self.max_loss.upper))
        while not self._rungs or (self._rungs[-1][0] < far and self._rungs[-1][1] > truncated_mass):
            before = self._rungs[-1][1] if self._rungs else 3.0
            delta = RUNG * before if before > FEW else before**1.5
            with warnings.catch_warnings():
                # Whoever asked for the whole measures its bracket, and warns if that is too wide.
                warnings.simplefilter("ignore", AccuracyWarning)
                found = self._composition.epsilons(delta)
            self._rungs.append((found.upper, delta, found, self._composition.latest))


@dataclass(frozen=True, eq=False)
class ComposedPair(Alike, ProfilePair):
    """All rounds of a curve as one pair. Ledgers compose the rounds themselves."""

    curve: Curve
    most_points = MOST_POINTS

    def repeated(self, count: int) -> list[tuple[Pair, int]]:
        return self.curve.pair.repeated(count * self.curve.rounds)

    @cached_property
    def reverse(self) -> ComposedPair | None:  # type: ignore[override]
        curve = self.curve
        behind = curve.pair.reverse if isinstance(curve.pair, ProfilePair) else None
        return None if behind is None else ComposedPair(Curve(behind, curve.rounds, curve.rtol))

    @property
    def like(self) -> Curve:  # type: ignore[override]
        return self.curve

    @property
    def infinity_mass(self) -> float:
        return self.curve.infinity_mass

    def profile(self, expm1_eps: Array, rtol: float, truncated_mass: float) -> Bounds:
        return Bounds(*(self.curve.ends(expm1_eps, truncated_mass, side) for side in Side))


@dataclass(frozen=True, eq=False)
class HiddenSupremum(Alike, UpperPair):
    """The amplification of a curve that is known from above only: a hidden cohort that is drawn once."""

    ahead: Curve
    rate: float
    most_points = MOST_POINTS

    @cached_property
    def like(self) -> ProfilePair:  # type: ignore[override]
        return ComposedPair(self.ahead).amplified(self.rate)

    def upper(self, expm1_eps: Array, truncated_mass: float) -> Array:
        return np.asarray(self.like.profile(expm1_eps, self.ahead.rtol, truncated_mass).upper)
