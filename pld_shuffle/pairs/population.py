"""Hidden cohorts of many sizes out of one population, any eps0-LDP randomizer: what they have in common.

A training log has another cohort size in every round. By Theorem C the bound for a cohort of n out of N users is, at
s = 1 + g, for a type k of laws and a contour,

    (1/(2 pi N)) int |E exp(z (L_k - E L_k))|^n e^(-g N Re z) |dz|/|z|^2.

This is an integral of exponentials of n with positive weights, so it is *convex in n*. If the N users take part
independently with probability r, then n is binomial, (1 - r + r |E ...|)^N takes the place of the power, and the bound
is *convex in r*. So the values at two sizes (or rates), on one contour, bound all sizes between them by straight
lines. These lie too high by about the square of the relative distance of the two sizes.

Proof: docs/swap.md, "Cohorts of many sizes" and "Users who take part independently".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..numerics.validation import MOST_USERS
from .cohort import Cohort
from .pair import Resolution
from .profile import MAX_POINTS, ProfilePoints, spaced
from .swap import hidden_profiles, independent_users

Array = NDArray[np.float64]

ZONE = 0.1  # sizes within this factor share the growths at which they are known
REACHES = 2.0 ** (0.25 * np.arange(1, 40))  # in scales, of the last growth
TIGHT_EPS0 = 5.0  # at 6, the least of all bounds is 0.2 % of epsilon smaller
KEPT = 2_000  # cells whose values are remembered


_Cell = tuple[float, float, Array, Array]  # two sizes, and bounds for them


class Population:
    """Contour bounds for hidden cohorts of all sizes out of `users`, for every eps0-LDP randomizer.

    absence : probability that a member of a cohort sends nothing. independent : whether users take part
    independently; then sizes are mean numbers of participants.
    """

    def __init__(
        self, eps0: float, users: int, absence: float = 0.0, independent: bool = False
    ) -> None:
        self.eps0, self.users, self.absence, self.independent = eps0, users, absence, independent
        self._over = math.expm1(eps0) * (1.0 + 2.0**-51)
        self._grids: dict[tuple[float, ...], Array] = {}
        self._cells: dict[tuple[float, ...], _Cell] = {}

    def points(self, size: float, scale: float, resolution: Resolution) -> ProfilePoints:
        """Upper bounds at growths that all sizes of a zone share, as fine as `resolution` asks.

        scale : rough standard deviation of the loss of a cohort of that size. O(growths), and a compiled loop over
        them where no size of the same cell was asked for yet.
        """
        zone = _zone(size)
        key = (zone, resolution.step, resolution.point_width, resolution.missed, resolution.pull)
        if key not in self._grids:
            top = _first(zone + 1)
            self._grids[key] = self._grid(top, scale * math.sqrt(top / size), resolution)
        growth = self._grids[key]
        factor = math.log1p(resolution.cell)
        number = math.floor(math.log(size) / factor)
        place = (number, resolution.cell, *key)
        if place not in self._cells:
            if len(self._cells) > KEPT:
                self._cells.clear()
            # A little more on either side than needed, whatever the logarithms' rounding.
            first, last = math.exp(number * factor), math.exp((number + 1) * factor)
            if self.independent:
                first, last = first * (1.0 - 1e-9), last * (1.0 + 1e-9)
            else:
                first, last = (math.floor(first) - 1) // 2 * 2, (math.ceil(last) + 2) // 2 * 2
            ends = self.bounds([first, last], math.sqrt(first * last), growth)
            self._cells[place] = first, last, *ends
        first, last, low, high = self._cells[place]
        share = (size - first) / (last - first)
        if not 0.0 <= share <= 1.0:
            raise ArithmeticError(f"size {size} is not between {first} and {last}")
        value = ((1.0 - share) * low + share * high) * (1.0 + 1e-13)
        return ProfilePoints(growth, value, value)

    def bounds(self, sizes: Sequence[float], middle: float, growth: Array) -> Array:
        """Bounds for `sizes`, shape (sizes, growths), that bound the sizes between them by interpolation.

        sizes : even; with `independent` mean numbers of participants, at most half of all. middle : the size that
        contours are chosen for.
        """
        return hidden_profiles(
            self._over,
            self.users,
            sizes,
            middle,
            growth,
            absence=self.absence,
            independent=self.independent,
        )

    def _grid(self, size: int, scale: float, resolution: Resolution) -> Array:
        """Growths up to where a cohort of that size has less than `missed`."""
        share = 1.0 if self.independent else size / self.users
        largest = math.log1p(share * self._over) * (1.0 + 1e-14)
        losses = np.minimum(scale * REACHES, largest)
        even = size + size % 2
        tail = self.bounds([even], even, np.expm1(losses))[0]
        small = np.flatnonzero(tail <= resolution.missed)
        reach = float(losses[small[0] if small.size else -1])
        if reach > 0.75 * largest:
            reach = largest
        width, centre = resolution.points
        return np.expm1(spaced(reach, width, scale, centre, MAX_POINTS))


@dataclass(frozen=True)
class Member:
    """One size of a population's cohorts; scale : rough standard deviation of its loss."""

    population: Population
    size: float
    scale: float

    @classmethod
    def of(cls, eps0: float, size: int, cohort: Cohort, scale: float) -> Member | None:
        """The cohort as one of a population's; None if its rate is no number of users over another."""
        if cohort.rate == 1.0:
            if not independent_users(size, cohort):
                return None
            return cls(population(eps0, size, 0.0, True), size * cohort.presence, scale)
        users = round(size / cohort.rate)
        if not (size < users and size / users == cohort.rate):
            return None
        return cls(population(eps0, users, cohort.absence), size, scale)

    @property
    def typical(self) -> tuple[int, Cohort]:
        """Users and cohort of one that is almost like it, the same for all its kin."""
        known = self.population
        size = min(_first(_zone(self.size) + 0.5), known.users - 1, MOST_USERS)
        if known.independent:
            return known.users, Cohort(presence=size / known.users)
        return size, Cohort(size / known.users, 1.0 - known.absence, known.absence)

    @property
    def tight(self) -> bool:
        """Whether the contour bound is the least of the known ones to a few in a million of epsilon."""
        return self.population.eps0 <= TIGHT_EPS0

    @property
    def kin(self) -> tuple[Population, int]:
        """Equal for sizes whose losses are almost alike."""
        return self.population, _zone(self.size)

    def points(self, resolution: Resolution) -> ProfilePoints | None:
        """Upper bounds on the profile, as fine as `resolution` asks, and within its cell of sizes; None without one."""
        if resolution.cell * self.size < 4.0:
            return None
        return self.population.points(self.size, self.scale, resolution)


def _zone(size: float) -> int:
    return math.floor(math.log(size) / math.log1p(ZONE))


def _first(zone: float) -> int:
    """About the first size of a zone."""
    return math.ceil(math.exp(zone * math.log1p(ZONE)))


@lru_cache(maxsize=64)
def population(
    eps0: float, users: int, absence: float = 0.0, independent: bool = False
) -> Population:
    """The one `Population` of these numbers, so that all rounds of a log share what it remembers."""
    return Population(eps0, users, absence, independent)
