"""Named local randomizers in a shuffler, with the tightest proven analysis.

For every pair of values of the target, any of these bounds what the shuffled reports give away, and so does the least
of them (`pairs.least`):

* the swap theorem (docs/swap.md) with V the law of some value, or the blanket: nothing is revealed but u ~ 1/n;
* the blanket: the adversary is told who drew from it (docs/theory.md, section 8);
* the (p, beta, q) reduction and stronger clones, which follow from the blanket.

For one randomised bit the number of ones is all there is to see: `pairs.bit_pair` is exact.

An attack goes the other way: n-1 users with one chosen value, and two chosen values of the target, are
concrete neighbouring datasets. Their divergence is what *no* analysis can go below.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from itertools import islice

import numpy as np

from ..composition.attempts import Composition
from ..numerics.rounding import ROUNDOFF
from ..numerics.sides import Bounds
from ..numerics.validation import choice, positive_int, tolerance, user_count
from ..pairs.bit_pair import BitAttackPair, bit_pair, worst_bit_attack
from ..pairs.bits import LARGEST_BIT_EPS0, BitShares
from ..pairs.cohort import ALL_USERS, Cohort
from ..pairs.coins import CoinMixture
from ..pairs.least import Array, UpperProfile, least
from ..pairs.noise_types import LARGEST_EPS0, gaussian_guest, gaussian_types, laplace_types, trimmed
from ..pairs.pair import Pair
from ..pairs.profile import ProfilePair, SteeredProfile
from ..randomizers import (
    RAPPOR,
    BinaryRandomizedResponse,
    DiscreteRandomizer,
    FiniteRandomizer,
    Gaussian,
    KRandomizedResponse,
    Laplace,
    LocalRandomizer,
)
from ..randomizers.joint import Types
from .attack import Attack, AttackBounds, noise_attack, strongest_attack
from .base import Mechanism, composed
from .blanket import (
    GAUSSIAN_ERROR,
    LAPLACE_ERROR,
    Blanket,
    few_tailed,
    is_pure,
    known_randomizer,
    mass_error,
)
from .ldp import ShuffledLDP
from .randomized_response import ShuffledRR
from .reduction import ShuffledRandomizer
from .shared import EVERYBODY, SUBSTITUTION

ANALYSES = ("tightest", "blanket", "reduction", "stronger-clones")
NOISE_CELLS, MOST_CELLS = 16, 32  # of the types of Laplace noise, for each unit of eps0 and at most
NOISE_ALLOWANCE = 0.002  # of these types; half as much again for an eps0 above 1
#: Of Gaussian noise in the swap theorem; below, types are many and users per type few.
SMALLEST_SIGMA = 0.5
GAUSSIAN_MISSED = 1e-14  # of its types, ...
GIVEN_AWAY = (5e-3, 2e-4)  # ... of which so much of delta is given away, whichever is better
SWAP_POINTS, LAPLACE_POINTS, GAUSSIAN_POINTS = 240, 120, 100  # each costs up to a few milliseconds
SMALL = 1e-12  # delta where nothing is asked
PROBED = 3e-3  # relative width of the blanket where it is compared
FAR_OUT, ALIKE = 6.0, 1e-3  # deviations of all rounds; of delta, by an estimate that is too large
MAX_TARGETS = 24  # ordered pairs of values that are looked at one by one


@dataclass(frozen=True)
class Shuffled(Mechanism):
    """n users shuffle reports of a named randomizer, with the tightest proven analysis.

    Parameters
    ----------
    randomizer : one of `pld_shuffle.randomizers`, the same for all users.
    n : users whose reports are shuffled together, the target included.
    analysis : "tightest" (default): the least of all that are proved for somebody who sees the shuffled reports and
        knows every other user's value; exact for one randomised bit. "blanket": somebody who is told who drew from
        the blanket, too. "reduction" (total variation and eps0) and "stronger-clones" (eps0 only) need pure LDP.

    With the default, lower ends come from an attack. For Gaussian noise of sigma below 1/2, or of up to 12 users and
    sigma of 0.8 or more, upper ends are the blanket's. Rounds must be independent: RAPPOR's permanent noise is drawn
    afresh in each round (its reports from one memoised filter are one round of ``rappor.memoised``). A
    `DiscreteRandomizer` of more than five inputs is analysed by its blanket. Raises ValueError or TypeError naming the
    argument.

    >>> from pld_shuffle.randomizers import KRandomizedResponse
    >>> Shuffled(KRandomizedResponse(k=4, eps0=2.0), n=1000, analysis="blanket").core
    ShuffledRR(k=4, n=1000, eps0=2.0, adversary='weak')
    """

    any_cohort = True

    randomizer: LocalRandomizer
    n: int
    analysis: str = "tightest"

    def __post_init__(self) -> None:
        object.__setattr__(self, "randomizer", known_randomizer(self.randomizer))
        object.__setattr__(self, "n", user_count(self.n))
        choice("analysis", self.analysis, ANALYSES)
        _ = self.core  # an analysis that does not apply is refused here

    @cached_property
    def core(self) -> Mechanism:
        """The mechanism of the analysis that was asked for; of the blanket (or reduction) for "tightest"."""
        if self.analysis != "tightest":
            return self._analysed(self.analysis)
        # Beyond that eps0 nobody hides anybody, and the reduction is all there is to say.
        strong = is_pure(self.randomizer) and self.randomizer.eps0 > LARGEST_EPS0
        return self._analysed("reduction" if strong else "blanket")

    @cached_property
    def pair(self) -> Pair:
        return self._proved(ALL_USERS)

    @cached_property
    def attack_pair(self) -> Pair:
        return self._attacked(ALL_USERS) or self.core.attack_pair

    def sampled(self, cohort: Cohort) -> Pair:
        return self._proved(cohort)

    def sampled_attack(self, cohort: Cohort) -> Pair:
        return self._attacked(cohort) or self.core.sampled_attack(cohort)

    def amplified(self, rate: float) -> Pair:
        return self.core.amplified(rate)

    # -- what is proved ----------------------------------------------------------------------------

    def _proved(self, cohort: Cohort) -> Pair:
        everybody = cohort.everybody
        if self._shares is not None and everybody:
            return bit_pair(self.n, self._shares)
        base = self.core.pair if everybody else self.core.sampled(cohort)
        # Among so few the swap theorem gains nothing, and the blanket is known by sums of ratios.
        few = everybody and few_tailed(self.randomizer, self.n)
        if few or not self._swaps(cohort.rate):
            return base

        @cache
        def profiles() -> list[UpperProfile]:
            return self._profiles(cohort)

        def profile(growth: Array, missed: float) -> Array:
            return np.asarray(np.min([one(growth, missed) for one in profiles()], axis=0))

        several = None
        if everybody and isinstance(base, CoinMixture):  # k-ary randomised response

            def several(pair: Pair, count: int) -> list[tuple[Pair, int]]:
                alike = _lost_without_swap(base.scale, self.randomizer.eps0, count) <= ALIKE
                return [(base if alike else pair, count)]

        points = SWAP_POINTS
        if self._noise:
            points = GAUSSIAN_POINTS if isinstance(self.randomizer, Gaussian) else LAPLACE_POINTS
        pair = least(
            [profile], largest=base.max_loss, scale=base.scale, most_points=points, above=base
        )
        rough = None
        if isinstance(self.randomizer, Laplace):
            rough = replace(pair, function=self._worst_laplace(cohort))
        return replace(pair, several=several, rough=rough)

    def _profiles(self, cohort: Cohort) -> list[UpperProfile]:
        """What bounds one round; the least of them counts."""
        blanket_of_all = Blanket(self.randomizer, self.n)
        told, glance = blanket_of_all.pair, blanket_of_all.glance
        if not cohort.everybody:
            told, glance = told.sampled(cohort), glance.sampled(cohort)
        if isinstance(self.randomizer, Gaussian):
            swap = self._gaussian_swap(cohort, told)
        else:
            swap = self._swap(self._choices(cohort.rate), cohort, told)
        found = [swap]
        if self._shares is not None and cohort.absence == 0.0:
            bits = bit_pair(self.n, self._shares, rate=cohort.rate)
            found.append(lambda growth, missed: bits.profile(growth, 0.0, missed).upper)

        def blanket(growth: Array, missed: float) -> Array:
            return np.asarray(told.profile(growth, 1e-6, missed).upper)

        # The reduction and stronger clones are proved to be above the blanket. Where the swap theorem is
        # better by far, nothing else is looked at.
        probes = np.expm1(_reach(told, [0.0, 8.0]))
        if not np.all(swap(probes, SMALL) <= 0.99 * glance.profile(probes, PROBED, SMALL).lower):
            found.append(blanket)
        return found

    def _swaps(self, rate: float) -> bool:
        """Whether the swap theorem is asked, for a cohort of that rate."""
        randomizer = self.randomizer
        if self.analysis != "tightest" or not (self._targets or self._noise):
            return False
        # Else nobody covers the target often enough.
        return rate < 1.0 or not is_pure(randomizer) or self.n * math.exp(-randomizer.eps0) >= 4.0

    def _gaussian_swap(self, cohort: Cohort, told: ProfilePair) -> UpperProfile:
        """The bound by the swap theorem; of the unbounded ratios as many are given away as delta allows."""
        from ..pairs.swap import typed_profile  # loads numba

        assert isinstance(self.randomizer, Gaussian)
        sigma, n = self.randomizer.sigma, self.n
        types = gaussian_types(sigma, n, missed=GAUSSIAN_MISSED)
        guest = gaussian_guest(sigma, missed=GAUSSIAN_MISSED)

        def bound(growth: Array, missed: float, given: float) -> Array:
            """With types by powers of ten of what they give away, and the blanket where that is all."""
            blanket = told.profile(growth, 0.1, missed).upper
            level = np.round(np.log10(np.maximum(given * blanket, 10.0 * GAUSSIAN_MISSED)))
            found = np.empty(growth.size)
            for power in np.unique(level):
                here = level == power
                *kept, host = (trimmed(rows, 10.0**power) for rows in (*types, guest))
                found[here] = typed_profile(
                    kept, n, growth[here], cohort=cohort, mass_error=GAUSSIAN_ERROR, guest=host
                )
            least_one: Array = np.minimum(found, blanket)
            return least_one

        far = np.expm1(_reach(told, [4.0]))
        best = min(GIVEN_AWAY, key=lambda given: float(bound(far, SMALL, given)[0]))
        return lambda growth, missed: bound(growth, missed, best)

    def _worst_laplace(self, cohort: Cohort) -> SteeredProfile:
        """The swap theorem for the target (0, 1) next to users who hold 0, others are hardly worse: no bound."""
        from ..pairs.swap import typed_profile  # loads numba

        def profile(growth: Array, rtol: float, missed: float) -> Bounds:
            found = typed_profile(self._laplace_types[:1], self.n, growth, cohort=cohort)
            return Bounds(found, found)

        return profile

    @cached_property
    def _laplace_types(self) -> Sequence[Array]:
        eps0 = self.randomizer.eps0
        cells = min(MOST_CELLS, math.ceil(NOISE_CELLS * max(1.0, eps0)))
        allowance = NOISE_ALLOWANCE if eps0 <= 1.0 else 1.5 * NOISE_ALLOWANCE
        return laplace_types(eps0, self.n, cells=cells, allowance=allowance)

    def _choices(self, rate: float) -> list[list[Sequence[Array]]]:
        """For every kind of target the types (`pairs.swap.typed_profile`) by shared law."""
        randomizer = self.randomizer
        if isinstance(randomizer, Laplace):
            return [[self._laplace_types]]
        assert isinstance(randomizer, FiniteRandomizer)
        found: dict[int, list[Sequence[Array]]] = {}
        for types in randomizer.types():
            found.setdefault(types.pair, []).append(_with_shared(types))
        # A hidden cohort has no shared law.
        return [options if rate == 1.0 else options[:1] for options in found.values()]

    def _swap(
        self,
        choices: list[list[Sequence[Array]]],
        cohort: Cohort,
        told: ProfilePair,
    ) -> UpperProfile:
        """The largest over targets of the bound by the shared law that is the best where it matters."""
        from ..pairs.swap import typed_profile  # loads numba

        noise = self._noise
        error = LAPLACE_ERROR if noise else 4.0 * mass_error(self.randomizer)

        def bound(types: Sequence[Array], growth: Array) -> Array:
            found = typed_profile(types, self.n, growth, cohort=cohort, mass_error=error)
            return np.asarray(found)

        far = np.expm1(_reach(told, [4.0]))
        best = [
            min(options, key=lambda types: float(bound(types, far)[0]))
            if len(options) > 1
            else options[0]
            for options in choices
        ]

        def worst(growth: Array, missed: float) -> Array:
            return np.asarray(np.max([bound(types, growth) for types in best], axis=0))

        return worst

    @cached_property
    def _targets(self) -> list[tuple[int, int]]:
        """One ordered pair of the target's values of each kind; none where only the blanket is used."""
        randomizer = self.randomizer
        if not isinstance(randomizer, FiniteRandomizer):
            return []
        if is_pure(randomizer) and not randomizer.eps0 <= LARGEST_EPS0:
            return []
        if not 0.0 < randomizer.eps0 < math.inf:
            return []  # nothing to tell, or reports that no other value can make
        if isinstance(randomizer, DiscreteRandomizer) and randomizer.inputs > 5:
            return []
        found = list(islice(randomizer.ordered_pairs(), MAX_TARGETS + 1))
        return found if len(found) <= MAX_TARGETS else []

    @property
    def _noise(self) -> bool:
        """Whether the swap theorem is used for a continuous value."""
        randomizer = self.randomizer
        if isinstance(randomizer, Gaussian):
            known = randomizer.sigma >= SMALLEST_SIGMA
        else:
            known = isinstance(randomizer, Laplace) and randomizer.eps0 <= LARGEST_EPS0
        return self.analysis == "tightest" and known

    @property
    def _shares(self) -> BitShares | None:
        """The randomised bit, if that is what every user sends."""
        randomizer = self.randomizer
        binary = isinstance(randomizer, BinaryRandomizedResponse) or (
            isinstance(randomizer, KRandomizedResponse) and randomizer.k == 2
        )
        if self.analysis == "tightest" and binary and 0.0 < randomizer.eps0 <= LARGEST_BIT_EPS0:
            return BitShares.randomized_response(randomizer.eps0)
        return None

    def _attacked(self, cohort: Cohort) -> ProfilePair | BitAttackPair | None:
        """The strongest attack on a cohort; None where the lower end is the core's own pair.

        Who stands in for an absent target looks like the others: so cohorts have other strongest attacks.
        """
        randomizer, n = self.randomizer, self.n
        if self.analysis != "tightest":
            return None
        if isinstance(randomizer, Gaussian) or self._noise:
            assert isinstance(randomizer, (Laplace, Gaussian))
            return noise_attack(randomizer, n, cohort)
        if self._shares is not None and cohort.absence == 0.0:
            return worst_bit_attack(n, self._shares, rate=cohort.rate, eps0=randomizer.eps0)
        if not self._targets:
            return None
        found = strongest_attack(randomizer, n, None, cohort).pair
        return found if cohort.everybody else found.sampled(cohort)

    # -- other analyses ----------------------------------------------------------------------------

    def _analysed(self, analysis: str) -> Mechanism:
        randomizer, n = self.randomizer, self.n
        if analysis == "blanket":
            if isinstance(randomizer, KRandomizedResponse):
                return ShuffledRR(randomizer.k, n, eps0=randomizer.eps0, adversary="weak")
            if isinstance(randomizer, BinaryRandomizedResponse):
                return ShuffledRR(2, n, eps0=randomizer.eps0, adversary="weak")
            return Blanket(randomizer, n)
        if not is_pure(randomizer):
            raise ValueError(
                f"analysis {analysis!r} needs pure LDP with a finite positive eps0, got {randomizer!r}"
            )
        eps0 = _eps0_above(randomizer)
        if analysis == "reduction":
            return ShuffledRandomizer(n, eps0=eps0, tv=min(1.0, randomizer.tv * (1.0 + 1e-13)))
        return ShuffledLDP(eps0=eps0, n=n, analysis="stronger-clones")

    def alternatives(
        self, *, delta: float, rounds: int = 1, rtol: float = 1e-3
    ) -> dict[str, Bounds]:
        """Bounds on epsilon at `delta` after `rounds` rounds, by every other analysis that applies."""
        count, width = positive_int("rounds", rounds), tolerance("rtol", rtol)
        found = {}
        for analysis in ANALYSES[1:]:
            try:
                mechanism = self._analysed(analysis)
            except ValueError:  # does not apply to this randomizer
                continue
            found[analysis] = Composition([(mechanism.pair, count)], width).epsilons(delta)
        return found

    def attack_bounds(
        self,
        *,
        delta: float | None = None,
        epsilon: float | None = None,
        rounds: int = 1,
        choices: Iterable[tuple[int, int, int]] | None = None,
        rtol: float = 1e-3,
    ) -> AttackBounds:
        """What the strongest of a few concrete attacks spends over `rounds` rounds: see `Attack`.

        Give `delta` for bounds on epsilon, or `epsilon` for bounds on delta. `choices`: (first, second,
        others) to try; by default one triple of each kind, or, where they are more than 256, the first ones and
        those of the farthest pair. The best one is found by one round's divergence, then
        composed. Finite randomizers only. Raises TypeError or ValueError naming the argument.
        """
        attack = strongest_attack(self.randomizer, self.n, choices)
        return AttackBounds(composed(attack.pair, delta, epsilon, rounds, rtol), attack)

    def assumptions(self) -> dict[str, str]:
        if self.analysis != "tightest" or not (self._targets or self._noise or self._shares):
            return self.core.assumptions()
        how = (
            "exact for the number of ones"
            if self._shares
            else "the least of swap theorem, blanket and reduction"
        )
        return {
            "neighbours": SUBSTITUTION,
            "adversary": "sees the shuffled reports and knows every other user's value",
            "analysis": f"{how}, for {self.randomizer!r}; reports of a round are independent, and all users run the"
            " same randomizer",
            "sampling": EVERYBODY,
        }


def _lost_without_swap(scale: float, eps0: float, count: int) -> float:
    """About how much larger, relatively, the blanket of k-ary randomised response makes delta over so many rounds.

    Others who hold a third value are a little better than the blanket: of a slot they leave (1-s)/p with probability
    p : k-1 in place of 1-s and 0 with 1 : p-2+k, s = e^eps, p = e^eps0. So its variance is lower by
    (1 - 1/p) (1-s)^2/(p+k-1), and log h at x scales by x^4 scale^2/(4 p (p-1)). As E e^(cL) is a constant and c(c+1)
    times the integrals of e^(c eps) h over losses of either sign, T rounds feel a rise dh of the profile as T c(c+1)
    such integrals of dh, relative to E e^(cL); z deviations out c is z/(scale sqrt(T)). On the large side.
    """
    p, x = math.exp(eps0), np.linspace(0.0, 12.0, 49)
    gain = np.minimum(1.0, 1.5 * x**4 * scale**2 / (4.0 * p * (p - 1.0)))
    profile = np.exp(-0.5 * x * x) / (2.5 * (1.0 + x * x))  # of a normal loss, over its deviation
    grown = np.exp(FAR_OUT / math.sqrt(count) * x)
    moment = math.exp(FAR_OUT**2 / (2.0 * count))  # E e^(cL)
    return 2.0 * FAR_OUT**2 / moment * float(np.sum(profile * gain * grown)) * float(x[1])


def _with_shared(types: Types) -> list[Array]:
    """The laws, and that of a user who reports from V: the blanket is nobody's law."""
    first, second, shared, _ = types.laws[0]
    own = [np.array([first, second, shared, shared])] if types.shared == "blanket" else []
    return [*types.laws, *own]


def _reach(pair: ProfilePair, scales: list[float]) -> Array:
    """Losses at so many scales, inside of the range."""
    most = min(0.8 * float(pair.max_loss.upper), 100.0)
    return np.minimum(np.array(scales) * pair.scale, most)


def _eps0_above(randomizer: LocalRandomizer) -> float:
    """eps0 as it was given; where it is a logarithm of ratios of masses, for each hash of a filter, rounded up."""
    if any(field.name == "eps0" for field in fields(randomizer)):  # type: ignore[arg-type]
        return randomizer.eps0
    hashes = randomizer.hashes if isinstance(randomizer, RAPPOR) else 1
    return randomizer.eps0 * (1.0 + 1e-14) + 32.0 * ROUNDOFF * hashes


__all__ = ["Attack", "AttackBounds", "Blanket", "Shuffled", "is_pure"]
