"""The least of several proven profiles of one supremum.

Let h be the largest hockey-stick divergence over a class of datasets (and randomizers) that is closed under exchanging
the two neighbours, so h(s) = 1 - s + s h(1/s). As a supremum of convex functions it is convex. If every one of several
functions lies above h, so does their minimum, and so does the largest convex function below that minimum, taken over
s < 1 and s > 1 jointly. This hull is a profile, hence a dominating pair that composes (docs/theory.md, section 11).

An upper bound only: how far above h it lies is told by an attack, not by this pair. What it calls its lower side is
the same polygon, so that the width of an answer measures lattice and windows, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..numerics.sides import Bounds
from .cohort import Cohort
from .pair import Pair
from .profile import LooseProfile, ProfilePair, UpperPair

Array = NDArray[np.float64]
MISSED = (1e-30, 1e-60, 1e-120, 1e-300)  # what windows may leave out
#: (growth, missed) -> upper bounds on h(1 + growth), arrays of one shape; `missed` is small enough an error.
UpperProfile = Callable[[Array, float], Array]


@dataclass(frozen=True, eq=False)
class LeastProfile(LooseProfile, UpperPair):
    """The old pair of upper profiles. To be deleted: make a kind of `UpperPair` instead."""

    even: bool = False  # type: ignore[misc]
    several: Callable[[Pair, int], list[tuple[Pair, int]]] | None = None

    def upper(self, growth: Array, missed: float) -> Array:
        return np.asarray(self.function(growth, 1e-6, missed).upper)

    def repeated(self, count: int) -> list[tuple[Pair, int]]:
        if self.several is None or count == 1:
            return super().repeated(count)
        return self.several(self, count)


def least(
    profiles: Sequence[UpperProfile],
    *,
    largest: Bounds,
    scale: float,
    hidden: Callable[[Cohort], ProfilePair] | None = None,
    most_points: int = 6_000,
    even: bool = False,
) -> LeastProfile:
    """The pair of the least of `profiles`. largest : of the losses; scale : rough deviation of the loss."""

    def profile(growth: Array, rtol: float, missed: float) -> Bounds:
        upper = np.min([one(growth, missed) for one in profiles], axis=0)
        return Bounds(upper, upper)

    return LeastProfile(profile, largest, scale, hidden=hidden, most_points=most_points, even=even)


def upper_profile(pair: Pair) -> UpperProfile:
    """(growth, missed) -> upper bounds on the profile of a pair of coins, or of one known by its profile."""
    known = pair.as_profile
    if known is None:
        raise TypeError(f"pair must be of coins or have a profile, got {pair!r}")
    return lambda growth, missed: known.profile(growth, 1e-6, missed).upper
