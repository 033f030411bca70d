"""Pairs of the swap theorem: of every eps0-LDP randomizer, and of a known one. Upper ends, whatever the others hold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..numerics.sides import Array, Bounds
from ..numerics.tuning import FEW_PROFILES, TYPED_POINTS
from ..randomizers.base import LocalRandomizer
from ..randomizers.joint import Types
from .coins import CoinMixture, Shown
from .pair import Alike, Cohort, zoned
from .profile import ProfilePair, UpperPair, largest
from .swap import MOST_RATE, any_ldp_profile, by_moment, independent_users, typed_profile

SMALL = 1e-12  # delta where nothing is asked
BESIDE = 3e-4  # relative width of the blanket's profile beside that of types of unbounded noise
PROBED = (0.5, 2.5, 4.5, 8.0)  # deviations where shared laws are compared
COMPARED = np.concatenate((np.arange(0.0, 9.0, 0.6), 9.0 * 1.5 ** np.arange(30.0)))  # kinds of targets, in scales


def stronger_clones(eps0: float, n: int) -> CoinMixture:
    """The labels of stronger clones (docs/theory.md, section 4)."""
    shrink = math.exp(-eps0)
    return labels(eps0, n, 2.0 * shrink / (1.0 + shrink), math.tanh(0.5 * eps0))


def labels(eps0: float, n: int, coin: float, neither: float) -> CoinMixture:
    """A target that shows one of two labels, which each of the others shows with probability coin/2 = (1-neither)/2."""
    shrink, others, target = math.exp(-eps0), Shown(coin, 0.0, neither), Shown(1.0, 0.0, 0.0)
    theta, gap = math.tanh(0.5 * eps0), 2.0 * shrink / (1.0 + shrink)
    return CoinMixture(n, others, target, theta, gap, local_loss=Bounds(eps0, eps0))


@dataclass(frozen=True)
class AnyLDPPair(Alike, UpperPair):
    """n users shuffle the reports of any eps0-LDP randomizer, on a cohort: Theorems S and C of docs/swap.md."""

    eps0: float
    n: int
    cohort: Cohort

    def upper(self, expm1_eps: Array, truncated_mass: float) -> Array:
        return any_ldp_profile(self.eps0, self.n, expm1_eps, cohort=self.cohort)

    def log_tail(self, expm1_eps: Array) -> Array | None:
        known = self.like.as_profile
        return None if known is None else known.log_tail(expm1_eps)

    @cached_property
    def like(self) -> CoinMixture:  # type: ignore[override]
        """The labels of stronger clones on the same cohort."""
        clones = stronger_clones(self.eps0, self.n).sampled(self.cohort)
        assert isinstance(clones, CoinMixture)
        return clones

    @property
    def typical(self) -> AnyLDPPair:
        """One that is almost like it, the same for all cohorts of about its size and presence."""
        n, cohort = self.n, self.cohort
        if cohort.rate < 1.0:
            zone, presence = math.ceil(zoned(n)), zoned(cohort.presence)
            like = Cohort(zone / round(n / cohort.rate), presence, certain=cohort.certain)
            return AnyLDPPair(self.eps0, zone, like)
        if independent_users(n, cohort):
            presence = zoned(n * cohort.presence) / n
            return AnyLDPPair(self.eps0, n, Cohort(presence=min(presence, MOST_RATE)))
        return self


@dataclass(frozen=True, eq=False)
class TypedPair(Alike, UpperPair):
    """n users shuffle the reports of a known randomizer, on a cohort, whatever the others hold.

    For every kind of target the bound by the shared law V that is the best where it matters; the largest of these.

    blanket : the pair of the blanket adversary on the same cohort, which has the same largest loss.
    """

    randomizer: LocalRandomizer
    n: int
    cohort: Cohort
    blanket: ProfilePair

    @property
    def most_points(self) -> int:
        if self.randomizer.continuous:
            return TYPED_POINTS // 2
        return TYPED_POINTS if len(self._best) <= FEW_PROFILES else TYPED_POINTS // 5

    @property
    def like(self) -> ProfilePair:  # type: ignore[override]
        return self.blanket

    def log_tail(self, expm1_eps: Array) -> Array | None:
        return self.blanket.log_tail(expm1_eps)

    @property
    def outline(self) -> ProfilePair:
        return self.blanket if self.max_loss.upper == math.inf else self

    @property
    def known(self) -> bool:
        """Whether there are types at all."""
        return bool(self._best)

    def upper(self, expm1_eps: Array, truncated_mass: float) -> Array:
        """The largest over all kinds of targets; at most the blanket's where users come independently."""

        def ask(k: int, asked: Array) -> Bounds:
            bound = self._least(self._best[k], asked, truncated_mass)
            return Bounds(bound, bound)

        places, ends = (self._places, self._chords) if len(self._best) > FEW_PROFILES else (expm1_eps, ())
        found = np.asarray(largest(expm1_eps, len(self._best), ask, places, ends).upper)
        # Far out a mean over who comes has no good contour. Types of tailed noise have asked the blanket.
        if independent_users(self.n, self.cohort) and not self.randomizer.tailed:
            found = np.minimum(found, self.blanket.profile(expm1_eps, 1e-6, truncated_mass).upper)
        return found

    @cached_property
    def _places(self) -> Array:
        """Where kinds of targets are compared: in scales, and then up to the largest loss."""
        top, near = float(self.max_loss.upper), COMPARED * self.scale
        return np.asarray(np.expm1(np.append(near[near < 0.9 * top], top)))

    @cached_property
    def _chords(self) -> list[Array]:
        error, cohort, places = 4.0 * self.randomizer.mass_error, self.cohort, self._places[:-1]
        return [by_moment(types.laws, self.n, places, cohort=cohort, mass_error=error) for types, *_ in self._best]

    @cached_property
    def _best(self) -> list[list[Types]]:
        """Of every kind of target those of the best shared law, at each of `PROBED`; of many kinds at one of them."""
        choices: dict[int, list[Types]] = {}
        for types in self.randomizer.types(self.n):
            # A hidden cohort has no shared law.
            if types.pair not in choices or self.cohort.rate == 1.0:
                choices.setdefault(types.pair, []).append(types)
        far = self.blanket.losses_at(*(PROBED if len(choices) <= FEW_PROFILES else (4.0,)))
        return [
            [options[k] for k in np.argmin([self._bound(one, far, SMALL) for one in options], axis=0).tolist()]
            if len(options) > 1
            else options
            for options in choices.values()
        ]

    def _least(self, best: list[Types], expm1_eps: Array, truncated_mass: float) -> Array:
        """By the shared laws that are the best at the probes before and after each point; any is proved."""
        after = np.searchsorted(self.blanket.losses_at(*PROBED[: len(best)]), expm1_eps)
        found = np.full(expm1_eps.size, np.inf)
        for types in {id(one): one for one in best}.values():
            chosen = np.array([one is types for one in best])
            here = chosen[np.maximum(after - 1, 0)] | chosen[np.minimum(after, len(best) - 1)]
            if np.any(here):
                found[here] = np.minimum(found[here], self._bound(types, expm1_eps[here], truncated_mass))
        return found

    def _bound(self, types: Types, expm1_eps: Array, truncated_mass: float) -> Array:
        if types.uncovered_user is not None:
            known = np.asarray(self.blanket.profile(expm1_eps, BESIDE, truncated_mass).upper)
            return np.asarray(np.minimum(known, self._typed(types.laws, expm1_eps, types.uncovered_user, known)))
        laws = types.laws
        if types.shared == "blanket":
            # That of a user who reports from V, too: the blanket is nobody's law.
            first, second, shared, _ = laws[0]
            laws = (*laws, np.array([first, second, shared, shared]))
        return self._typed(laws, expm1_eps)

    def _typed(
        self, laws: Sequence[Array], expm1_eps: Array, uncovered_user: Array | None = None, known: Array | None = None
    ) -> Array:
        # A few operations made the masses of joint laws.
        error = self.randomizer.mass_error * (1.0 if self.randomizer.continuous else 4.0)
        return typed_profile(
            laws, self.n, expm1_eps, cohort=self.cohort, mass_error=error, uncovered_user=uncovered_user, known=known
        )
