"""Pairs of the swap theorem: of every eps0-LDP randomizer, and of a known one. Upper ends, whatever the others hold.

*Cohorts of many sizes.* A training log has another cohort size in every round. By Theorem C the bound for a cohort of
n out of N users is, at s = 1 + g, for a type k of laws and a contour,

    (1/(2 pi N)) int |E exp(z (L_k - E L_k))|^n e^(-g N Re z) |dz|/|z|^2.

This is an integral of exponentials of n with positive weights, so it is *convex in n*. If the N users take part
independently with probability r, then n is binomial, (1 - r + r |E ...|)^N takes the place of the power, and the bound
is *convex in r*. So the values at two sizes (or rates), on one contour, bound all sizes between them by straight
lines. These lie too high by about the square of the relative distance of the two sizes.

Proof: docs/swap.md, "Cohorts of many sizes" and "Users who take part independently".
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from ..numerics.sides import Bounds
from ..numerics.tuning import FEW_PROFILES, SIZE_ZONE, TYPED_POINTS
from ..numerics.validation import MOST_USERS
from ..randomizers.base import LocalRandomizer
from ..randomizers.joint import Types
from ..randomizers.noise_laws import TYPES_MISSED, trimmed
from .cohort import Cohort
from .coins import CoinMixture
from .pair import Pair, Resolution
from .profile import (
    CHORDS,
    MAX_POINTS,
    ProfilePair,
    ProfilePoints,
    UpperPair,
    largest,
    spaced,
)
from .swap import any_ldp_profile, hidden_profiles, independent_users, typed_profile

Array = NDArray[np.float64]

REACHES = 2.0 ** (0.25 * np.arange(1, 40))  # in scales, of the last growth
TIGHT_EPS0 = 5.0  # at 6, the least of all bounds is 0.2 % of epsilon smaller
KEPT = 2_000  # cells whose values are remembered
GIVEN_AWAY = (5e-3, 2e-4)  # of delta, by types of unbounded noise, whichever is better
SMALL = 1e-12  # delta where nothing is asked


def stronger_clones(eps0: float, n: int) -> CoinMixture:
    """The labels of stronger clones (docs/theory.md, section 4)."""
    shrink = math.exp(-eps0)
    return labels(eps0, n, 2.0 * shrink / (1.0 + shrink))


def labels(eps0: float, n: int, coin_rate: float) -> CoinMixture:
    """A target that shows one of two labels, which each of the others shows with probability coin_rate/2."""
    shrink = math.exp(-eps0)
    return CoinMixture(
        n=n, coin_rate=coin_rate, neutral_rate=0.0, target_coin=1.0, target_neutral=0.0, null=0.0,
        theta=math.tanh(0.5 * eps0), gap=2.0 * shrink / (1.0 + shrink), local_loss=Bounds(eps0, eps0),
    )  # fmt: skip


@dataclass(frozen=True)
class AnyLDPPair(UpperPair):
    """n users shuffle the reports of any eps0-LDP randomizer, on a cohort: Theorems S and C of docs/swap.md."""

    eps0: float
    n: int
    cohort: Cohort

    def upper(self, growth: Array, missed: float) -> Array:
        return any_ldp_profile(self.eps0, self.n, growth, cohort=self.cohort)

    def log_tail(self, growth: Array) -> Array | None:
        known = self._clones.as_profile
        return None if known is None else known.log_tail(growth)

    @cached_property
    def _clones(self) -> CoinMixture:
        clones = stronger_clones(self.eps0, self.n).sampled(self.cohort)
        assert isinstance(clones, CoinMixture)
        return clones

    @property
    def max_loss(self) -> Bounds:
        return self._clones.max_loss

    @cached_property
    def scale(self) -> float:  # type: ignore[override]
        return self._clones.scale

    # -- next to cohorts of other sizes ------------------------------------------------------------

    @cached_property
    def _population(self) -> Population | None:
        """What it is a cohort of; None if its rate is no number of users over another."""
        n, cohort = self.n, self.cohort
        if cohort.rate == 1.0:
            independent = independent_users(n, cohort)
            return Population(self.eps0, n, 0.0, True) if independent else None
        users = round(n / cohort.rate)
        if not (n < users and n / users == cohort.rate):
            return None
        return Population(self.eps0, users, cohort.absence, False)

    @property
    def _size(self) -> float:
        return self.n * (self.cohort.presence if self.cohort.rate == 1.0 else 1.0)

    @property
    def typical(self) -> AnyLDPPair:
        """One that is almost like it, the same for all its kin."""
        known = self._population
        return self if known is None else known.member(_first(_zone(self._size) + 0.5))

    @property
    def kin(self) -> Hashable:
        known = self._population
        return self if known is None else (known, _zone(self._size))

    @property
    def interpolates(self) -> bool:
        """Whether the contour bound is the least of the known ones to a few in a million of epsilon."""
        return self._population is not None and self.eps0 <= TIGHT_EPS0

    def _points(self, resolution: Resolution) -> ProfilePoints:
        if self._population is None or resolution.cell * self._size < 4.0:
            return super()._points(resolution)
        return self._population.points(self._size, resolution)


@dataclass(frozen=True)
class Population:
    """Contour bounds for hidden cohorts of all sizes out of `users`, for every eps0-LDP randomizer.

    absence : probability that a member of a cohort sends nothing. independent : whether users take part
    independently; then sizes are mean numbers of participants.
    """

    eps0: float
    users: int
    absence: float
    independent: bool

    def member(self, size: float) -> AnyLDPPair:
        """The pair of a cohort of about that size."""
        size = min(round(size), self.users - 1, MOST_USERS)
        if self.independent:
            return AnyLDPPair(self.eps0, self.users, Cohort(presence=size / self.users))
        share = Cohort(size / self.users, 1.0 - self.absence, self.absence)
        return AnyLDPPair(self.eps0, size, share)

    def points(self, size: float, resolution: Resolution) -> ProfilePoints:
        """Upper bounds at growths that all sizes of a zone share, as fine as `resolution` asks.

        O(growths), and a compiled loop over them where no size of the same cell was asked for yet.
        """
        growth = _grid(self, _zone(size), replace(resolution, tilt=0.0, cell=0.0))
        factor = math.log1p(resolution.cell)
        number = math.floor(math.log(size) / factor)
        # A little more on either side than needed, whatever the logarithms' rounding.
        first, last = math.exp(number * factor), math.exp((number + 1) * factor)
        if self.independent:
            first, last = first * (1.0 - 1e-9), last * (1.0 + 1e-9)
        else:
            first, last = (math.floor(first) - 1) // 2 * 2, (math.ceil(last) + 2) // 2 * 2
        low, high = _cell(self, first, last, growth.tobytes())
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
        over = math.expm1(self.eps0) * (1.0 + 2.0**-51)
        return hidden_profiles(
            over, self.users, sizes, middle, growth, absence=self.absence, independent=self.independent
        )  # fmt: skip


@lru_cache(maxsize=64)
def _grid(known: Population, zone: int, resolution: Resolution) -> Array:
    """Growths up to where the largest cohort of the zone has less than is missed."""
    size = _first(zone + 1)
    member = known.member(size)
    losses = np.minimum(member.scale * REACHES, float(member.max_loss.upper) * (1.0 + 1e-14))
    tail = known.bounds([size + size % 2], size + size % 2, np.expm1(losses))[0]
    small = np.flatnonzero(tail <= resolution.missed)
    reach = float(losses[small[0] if small.size else -1])
    if reach > 0.75 * losses[-1]:
        reach = float(losses[-1])
    width, centre = resolution.points
    return np.expm1(spaced(reach, width, member.scale, centre, MAX_POINTS))


@lru_cache(maxsize=KEPT)
def _cell(known: Population, first: float, last: float, growth: bytes) -> Array:
    """Bounds for the two sizes."""
    return known.bounds([first, last], math.sqrt(first * last), np.frombuffer(growth))


def _zone(size: float) -> int:
    return math.floor(math.log(size) / math.log1p(SIZE_ZONE))


def _first(zone: float) -> int:
    """About the first size of a zone."""
    return math.ceil(math.exp(zone * math.log1p(SIZE_ZONE)))


@dataclass(frozen=True, eq=False)
class TypedPair(UpperPair):
    """n users shuffle the reports of a known randomizer, on a cohort, whatever the others hold.

    For every kind of target the bound by the shared law V that is the best where it matters; the largest of these.

    blanket : the pair of the blanket adversary on the same cohort, which has the same largest loss.
    roughly : for noise, next to users who hold 0 only; others are hardly worse. No bound then.
    """

    randomizer: LocalRandomizer
    n: int
    cohort: Cohort
    blanket: ProfilePair
    roughly: bool = False

    @property
    def most_points(self) -> int:
        return TYPED_POINTS // 2 if self.randomizer.continuous else TYPED_POINTS

    @property
    def max_loss(self) -> Bounds:
        return self.blanket.max_loss

    @property
    def scale(self) -> float:
        return self.blanket.scale

    @property
    def sketched(self) -> Pair:
        return replace(self, roughly=True) if self.randomizer.continuous else self

    def log_tail(self, growth: Array) -> Array | None:
        return self.blanket.log_tail(growth)

    @property
    def known(self) -> bool:
        """Whether there are types at all."""
        return bool(self._best)

    def upper(self, growth: Array, missed: float) -> Array:
        """The largest over all kinds of targets."""

        def ask(k: int, asked: Array) -> Bounds:
            bound = self._bound(self._best[k], asked, missed)
            return Bounds(bound, bound)

        chords = self._chords if len(self._best) > FEW_PROFILES else ()
        found = largest(growth, len(self._best), ask, chords, float(self.max_loss.upper))
        return np.asarray(found.upper)

    @cached_property
    def _chords(self) -> list[Array]:
        growth = np.expm1(float(self.max_loss.upper) * CHORDS[:-1])
        return [self._bound(types, growth, SMALL) for types in self._best]

    @cached_property
    def _best(self) -> list[Types]:
        """One of every kind of target, by the bound four deviations out."""
        choices: dict[int, list[Types]] = {}
        for types in self.randomizer.types(self.n):
            # A hidden cohort has no shared law.
            if types.pair not in choices or self.cohort.rate == 1.0:
                choices.setdefault(types.pair, []).append(types)
        far = self.blanket.losses_at(4.0)
        return [
            min(options, key=lambda types: float(self._bound(types, far, SMALL)[0]))
            if len(options) > 1
            else options[0]
            for options in choices.values()
        ]

    def _bound(self, types: Types, growth: Array, missed: float) -> Array:
        if types.guest is not None:
            return self._trimmed(types, growth, missed, self._given_away)
        laws = types.laws[:1] if self.roughly else types.laws
        if types.shared == "blanket":
            # That of a user who reports from V, too: the blanket is nobody's law.
            first, second, shared, _ = laws[0]
            laws = (*laws, np.array([first, second, shared, shared]))
        return self._typed(laws, growth)

    def _typed(self, laws: Sequence[Array], growth: Array, guest: Array | None = None) -> Array:
        # A few operations made the masses of joint laws.
        error = self.randomizer.mass_error * (1.0 if self.randomizer.continuous else 4.0)
        return typed_profile(
            laws, self.n, growth, cohort=self.cohort, mass_error=error, guest=guest
        )

    @cached_property
    def _given_away(self) -> float:
        """The share of delta that types of unbounded ratios give away."""
        far = self.blanket.losses_at(4.0)
        [types] = self._best
        return min(GIVEN_AWAY, key=lambda given: float(self._trimmed(types, far, SMALL, given)[0]))

    def _trimmed(self, types: Types, growth: Array, missed: float, given: float) -> Array:
        """With types by powers of ten of what they give away, and the blanket where that is all."""
        assert types.guest is not None
        guest, blanket = types.guest, self.blanket.profile(growth, 0.1, missed).upper
        level = np.round(np.log10(np.maximum(given * blanket, 10.0 * TYPES_MISSED)))
        found = np.empty(growth.size)
        for power in np.unique(level):
            here = level == power
            kept = [trimmed(rows, 10.0**power) for rows in types.laws]
            found[here] = self._typed(kept, growth[here], trimmed(guest, 10.0**power))
        return np.asarray(np.minimum(found, blanket))
