"""The old pair of upper profiles. To be deleted: make a kind of `profile.UpperPair` instead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..numerics.sides import Bounds
from .profile import MAX_POINTS, UpperPair

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LeastProfile(UpperPair):
    """The least of some functions (growth, missed) -> upper bounds."""

    profiles: Sequence[Callable[[Array, float], Array]]
    largest: Bounds
    spread: float
    most_points: int = MAX_POINTS

    def upper(self, growth: Array, missed: float) -> Array:
        return np.asarray(np.min([one(growth, missed) for one in self.profiles], axis=0))

    @property
    def max_loss(self) -> Bounds:
        return self.largest

    @property
    def scale(self) -> float:
        return self.spread


def least(
    profiles: Sequence[Callable[[Array, float], Array]], *, largest: Bounds, scale: float, most_points: int
) -> LeastProfile:  # fmt: skip
    """The pair of the least of `profiles`."""
    return LeastProfile(profiles, largest, scale, most_points)
