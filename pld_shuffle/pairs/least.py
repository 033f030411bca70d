"""The least of several proven profiles of one supremum.

Let h be the largest hockey-stick divergence over a class of datasets (and randomizers) that is closed under exchanging
the two neighbours, so h(s) = 1 - s + s h(1/s). As a supremum of convex functions it is convex. If every one of several
functions lies above h, so does their minimum, and so does the largest convex function below that minimum, taken over
s < 1 and s > 1 jointly. This hull is a profile, hence a dominating pair that composes (docs/theory.md, section 11).

An upper bound only: how far above h it lies is told by an attack, not by this pair. What it calls its lower side is
the same polygon, so that the width of an answer measures lattice and windows, and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..numerics.hockey import HockeySums
from ..numerics.lattice import place
from ..numerics.sides import Bounds, Side
from .atoms import Atoms, completed
from .cohort import Cohort
from .coins import CoinMixture
from .pair import Pair, Resolution
from .population import Member
from .profile import SAME, LooseProfile, ProfilePair, profile_atoms

Array = NDArray[np.float64]
#: (growth, missed) -> upper bounds on h(1 + growth), arrays of one shape; `missed` is small enough an error.
UpperProfile = Callable[[Array, float], Array]

POINTS_PER_SCALE = 500  # of the lattice on which coins are turned into a profile
SIZE_WIDTH = 1e-5  # of its buckets of numbers of coins
MISSED = (1e-30, 1e-60, 1e-120, 1e-300)  # what its windows may leave out


@dataclass(frozen=True, eq=False)
class LeastProfile(LooseProfile):
    """A pair from the least of several upper profiles; see the module.

    even : whether points have equal distances, for profiles that are cheap and losses that are skewed.
    several : (this pair, count) -> what dominates so many rounds, where more is known of them than the product.
    member : this cohort as one of a population's, if it is one. Next to others of them it is cheaper, and the polygon
        a little higher (`Resolution.cell`).
    among : the pairs of the several profiles, where they are known.
    alone_until : up to this growth the first of them is known to be the least.
    rough : a cheap pair of almost the same losses, for sketches; no bound.
    """

    even: bool = False
    several: Callable[[Pair, int], list[tuple[Pair, int]]] | None = None
    member: Member | None = None
    among: tuple[Pair, ...] = ()
    alone_until: float = -1.0
    rough: Pair | None = None

    @property
    def sketched(self) -> Pair:
        return self if self.rough is None else self.rough

    @property
    def kin(self) -> Hashable:
        return self if self.member is None else self.member.kin

    def repeated(self, count: int) -> list[tuple[Pair, int]]:
        if self.several is None or count == 1:
            return super().repeated(count)
        return self.several(self, count)

    @property
    def interpolates(self) -> bool:
        return self.member is not None and self.member.tight

    @property
    def encloses(self) -> bool:
        """No: another resolution is another polygon."""
        return False

    def atoms(self, sides: Sequence[Side], resolution: Resolution) -> list[Atoms]:
        if self.even and resolution.point_width > 0.0:
            resolution = replace(resolution, step=resolution.points[0], point_width=0.0)
        # No bracket measures how far the polygon lies above the profile: so it gets points to spare.
        resolution = replace(resolution, point_width=0.5 * resolution.point_width)
        above = self._polygon(resolution)
        below = completed(
            replace(above, mass=above.mass * SAME, infinite=0.0, total=None), Side.LOWER
        )
        return [above if side is Side.UPPER else below for side in sides]

    def _polygon(self, resolution: Resolution) -> Atoms:
        """Atoms of the polygon above the profile."""
        known = None if self.member is None else self.member.points(resolution)
        if known is not None:
            return profile_atoms(known, known, Side.UPPER)
        return super().atoms([Side.UPPER], resolution)[0]


def least(
    profiles: Sequence[UpperProfile],
    *,
    largest: Bounds,
    scale: float,
    hidden: Callable[[Cohort], ProfilePair] | None = None,
    most_points: int = 6_000,
    even: bool = False,
    member: Member | None = None,
    among: tuple[Pair, ...] = (),
    alone_until: float = -1.0,
    above: Pair | None = None,
) -> LeastProfile:
    """The pair of the least of `profiles`. largest : of the losses; scale : rough deviation of the loss.

    above : a pair that dominates, too; asked where the profiles underflow.
    """
    above = above.as_profile if isinstance(above, CoinMixture) else above
    tail = above.log_tail if isinstance(above, ProfilePair) else None

    def profile(growth: Array, rtol: float, missed: float) -> Bounds:
        upper = np.min([one(growth, missed) for one in profiles], axis=0)
        return Bounds(upper, upper)

    return LeastProfile(
        profile, largest, scale, hidden=hidden, most_points=most_points, even=even, member=member,
        among=among, alone_until=alone_until, tail=tail,  # type: ignore[arg-type]
    )  # fmt: skip


def upper_profile(pair: Pair) -> UpperProfile:
    """(growth, missed) -> upper bounds on the profile of a pair of coins, or of one known by its profile."""
    if isinstance(pair, CoinMixture):
        return CoinProfile(pair)
    if not isinstance(pair, ProfilePair):
        raise TypeError(f"pair must be of coins or have a profile, got {pair!r}")
    return lambda growth, missed: pair.profile(growth, 1e-6, missed).upper


class CoinProfile:
    """(growth, missed) -> upper bounds on the profile of a mixture of coins, by one fine lattice."""

    def __init__(self, pair: CoinMixture) -> None:
        self._pair = pair
        self._top = math.expm1(min(float(pair.max_loss.upper), 700.0)) * (1.0 + 1e-15)
        self._known: dict[float, tuple[HockeySums, float, float]] = {}

    def __call__(self, growth: Array, missed: float) -> Array:
        sums, rest, slack = self._law(next((m for m in MISSED if m <= 0.01 * missed), MISSED[-1]))
        # Losses may be too small by `slack`: the profile is read that much earlier.
        asked = growth - slack * (1.0 + growth) * (1.0 + 1e-9)
        upper = sums.at(np.maximum(asked, 0.0)).upper + rest + np.where(asked < 0.0, slack, 0.0)
        return np.where(growth >= self._top, 0.0, np.minimum(upper, 1.0))

    def _law(self, missed: float) -> tuple[HockeySums, float, float]:
        """Sums over positive losses, the mass at infinity, and the slack of losses."""
        if missed not in self._known:
            pair, step = self._pair, self._pair.scale / POINTS_PER_SCALE
            resolution = Resolution(step, missed=missed, size_width=SIZE_WIDTH)
            [atoms] = pair.atoms([Side.UPPER], resolution)
            cell = np.floor(atoms.loss / step).astype(np.int64)
            offset = np.clip(atoms.loss - cell * step, 0.0, step)
            masses, low = place(
                atoms.mass, cell, offset, step=step, side=Side.UPPER, blur=atoms.blur
            )
            first = max(0, 1 - low)
            sums = HockeySums.of(masses[first:], low + first, step)
            self._known[missed] = sums, atoms.infinite + atoms.missed, atoms.slack
        return self._known[missed]
