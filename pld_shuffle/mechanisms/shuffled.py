"""Named local randomizers in a shuffler, with the tightest proven analysis.

For every pair of values of the target, any of these bounds what the shuffled reports give away, and so does the least
of them (`pairs.profile.Several`): the swap theorem (docs/swap.md) with V the law of some value, or the blanket; the
blanket itself, where the adversary is told who drew from it (Balle, Bell, Gascon, Nissim 2019, section 5;
docs/theory.md, section 8); the (p, beta, q) reduction and stronger clones, which follow from it. For one randomised bit
the number of ones is all there is to see: `pairs.bits` is exact.

*Lower ends* are attacks: n-1 users with one chosen value, and two chosen values of the target, are concrete
neighbouring datasets, the slot law (`pairs.slots`) with W the law of the chosen value. The randomizer lists the triples
(first, second, others) to try; reports of noise are merged to cells, which is a lower side.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property, partial
from typing import Annotated, ClassVar

import numpy as np

from ..composition.composition import Composition
from ..numerics.sides import Bounds, Side
from ..numerics.validation import PositiveInt, UserCount, choice, positive_int, real, tolerance
from ..pairs.bits import LARGEST_BIT_EPS0, BitAttackPair, BitPair, BitShares, bit_attacks
from ..pairs.few_users import among_few
from ..pairs.pair import ALL_USERS, Attacks, Cohort, Pair
from ..pairs.profile import ProfilePair, Several, worst
from ..pairs.slots import NoiseLaw, SlotLaw, SlotPair
from ..pairs.swap import independent_users
from ..pairs.swap_pairs import SMALL, TypedPair
from ..randomizers.base import LocalRandomizer
from ..randomizers.joint import DiscreteRandomizer, known_randomizer
from ..randomizers.noise_laws import LARGEST_EPS0
from .base import SMALLEST_EPS0, Mechanism, OfReports, OnCohorts, local_epsilon, said
from .labels import ShuffledRandomizer, ShuffledRR
from .ldp import ShuffledLDP, bit_orders

ANALYSES = ("tightest", "blanket", "reduction", "stronger-clones")
PROBES, PROBED = (0.0, 3.0, 5.0, 8.0), 3e-3  # deviations where the blanket is compared, and its relative width


@dataclass(frozen=True, repr=False)
class Shuffled(OnCohorts, OfReports):
    """n users shuffle reports of a named randomizer, with the tightest proven analysis.

    randomizer : one of `pld_shuffle.randomizers`, the same for all users.
    n : users whose reports are shuffled together, the target included.
    analysis : "tightest" (default): the least of all that are proved for somebody who sees the shuffled reports and
        knows every other user's value; exact for one randomised bit. "blanket": somebody who is told who drew from
        the blanket, too. "reduction" (total variation and eps0) and "stronger-clones" (eps0 only) need pure LDP.

    With the default, lower ends come from an attack. For Gaussian noise of sigma below 1/2, or of up to 12 users and
    sigma of 0.8 or more, upper ends are the blanket's. Rounds must be independent: RAPPOR's permanent noise is drawn
    afresh in each round (its reports from one memoised filter are one round of ``rappor.memoised``). Upper ends of a
    `DiscreteRandomizer` of more than 64 inputs are the blanket's. Raises ValueError or TypeError naming the argument.

    >>> from pld_shuffle.randomizers import KRandomizedResponse
    >>> Shuffled(KRandomizedResponse(k=4, eps0=2.0), n=1000, analysis="blanket").core
    ShuffledRR(k=4, n=1000, eps0=2.0, adversary='weak')
    """

    randomizer: Annotated[LocalRandomizer, known_randomizer]
    n: UserCount
    analysis: Annotated[str, partial(choice, options=ANALYSES)] = "tightest"

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.core  # an analysis that does not apply is refused here

    @cached_property
    def core(self) -> Mechanism:
        """The mechanism of the analysis that was asked for; of the blanket (or reduction) for "tightest"."""
        if self.analysis != "tightest":
            return self._analysed(self.analysis)
        # Beyond that eps0 nobody hides anybody, and the reduction is all there is to say.
        strong = self.randomizer.pure and self.randomizer.eps0 > LARGEST_EPS0
        return self._analysed("reduction" if strong else "blanket")

    def amplified(self, rate: float) -> Pair:
        return self.core.amplified(rate)

    def sampled(self, cohort: Cohort) -> Pair:
        """The proven pairs; those that are better nowhere are left out."""
        randomizer, n = self.randomizer, self.n
        everybody = cohort.everybody
        if self._shares is not None and everybody:
            return BitPair(n, self._shares)
        base = self.core.pair if everybody else self.core.sampled(cohort)
        if not self._swaps(cohort):
            return base
        told = Blanket(randomizer, n).pair
        if not everybody:
            told = told.sampled(cohort)
        swap = TypedPair(randomizer, n, cohort, told)
        if not swap.known:
            return base
        if randomizer.tailed:
            return swap  # it asks the blanket, too
        pairs: list[Pair] = [swap]
        if self._shares is not None and cohort.absence == 0.0:
            pairs.append(BitPair(n, self._shares, rate=cohort.rate))
        # The reduction and stronger clones are proved to be above the blanket. Where the swap theorem is
        # better by far, or knows the blanket, nothing else is looked at.
        probes = told.losses_at(*PROBES)
        if not (
            independent_users(n, cohort)
            or np.all(swap.upper(probes, SMALL) <= 0.99 * told.profile(probes, PROBED, SMALL).lower)
        ):
            pairs.append(base)
        return swap if len(pairs) == 1 else Several(tuple(pairs))

    def _swaps(self, cohort: Cohort) -> bool:
        """Whether the swap theorem is asked, on a cohort."""
        randomizer, n = self.randomizer, self.n
        if self.analysis != "tightest":
            return False
        if randomizer.tailed:
            # Among few users it gains nothing, and the blanket is known by sums of unbounded ratios.
            return not (cohort.everybody and n <= randomizer.few_users)
        if not (randomizer.pure and randomizer.eps0 <= LARGEST_EPS0):
            return False  # nothing to tell, or reports that no other value can make
        # Else nobody covers the target often enough.
        return cohort.rate < 1.0 or n * math.exp(-randomizer.eps0) >= 1.0

    @property
    def _shares(self) -> BitShares | None:
        """The randomised bit, if that is what every user sends."""
        randomizer = self.randomizer
        bit = self.analysis == "tightest" and randomizer.k_ary == 2
        if not (bit and 0.0 < randomizer.eps0 <= LARGEST_BIT_EPS0):
            return None
        return BitShares.randomized_response(randomizer.eps0)

    def sampled_attack(self, cohort: Cohort) -> Pair:
        """The strongest attack on a cohort; of another analysis than the tightest that one's own pair.

        Who stands in for an absent target looks like the others: so cohorts have other strongest attacks.
        """
        randomizer, n = self.randomizer, self.n
        if self.analysis != "tightest":
            core = self.core
            return core.attack_pair if cohort.everybody else core.sampled_attack(cohort)
        if self._shares is not None and cohort.absence == 0.0:
            return Attacks.of(bit_attacks(n, self._shares, cohort, eps0=randomizer.eps0))
        return strongest_attack(randomizer, n, cohort)

    def stand_in_attack(self, cohort: Cohort) -> tuple[Pair, Pair] | None:
        if self._shares is not None:
            return bit_orders(BitAttackPair(self.n, self._shares, eps0=self.randomizer.eps0))
        return stand_in_attack(self.randomizer, self.n, cohort)

    def _analysed(self, analysis: str) -> Mechanism:
        randomizer, n = self.randomizer, self.n
        if analysis == "blanket":
            if randomizer.k_ary:
                return ShuffledRR(randomizer.k_ary, n, eps0=randomizer.eps0, adversary="weak")
            return Blanket(randomizer, n)
        if not randomizer.pure:
            raise ValueError(f"analysis {analysis!r} needs pure LDP with a finite positive eps0, got {randomizer!r}")
        eps0 = randomizer.eps0 + randomizer.eps0_error
        if analysis == "reduction":
            return ShuffledRandomizer(n, eps0=eps0, tv=min(1.0, randomizer.tv * (1.0 + 1e-13)))
        return ShuffledLDP(eps0=eps0, n=n, analysis="stronger-clones")

    def alternatives(self, *, delta: float, rounds: int = 1, rtol: float = 1e-3) -> dict[str, Bounds]:
        """Bounds on epsilon at `delta` after `rounds` rounds, by each analysis that applies alone.

        Keys are those of `analysis`, and what only "tightest" uses: "swap" (the swap theorem), "bits" (exact).
        """
        count, width = positive_int("rounds", rounds), tolerance("rtol", rtol)
        best = replace(self, analysis="tightest").pair
        names = {TypedPair: "swap", BitPair: "bits"}
        parts = best.pairs if isinstance(best, Several) else (best,)
        pairs: dict[str, Pair] = {names[type(pair)]: pair for pair in parts if type(pair) in names}
        for analysis in ANALYSES[1:]:
            if analysis == "blanket" or self.randomizer.pure:
                pairs[analysis] = self._analysed(analysis).pair
        return {name: Composition([(pair, count)], width).epsilons(delta) for name, pair in pairs.items()}

    def assumptions(self) -> dict[str, str]:
        if self.analysis != "tightest":
            return self.core.assumptions()
        how = "exact for the number of ones" if self._shares else "the least of swap theorem, blanket and reduction"
        return said(
            f"{how}, for {self.randomizer!r}; reports of a round are independent, and all users run the same randomizer"
        )


__all__ = ["Blanket", "Shuffled"]


FINER = 8  # times as many cells for few users
FEW_TAIL = 1e-15  # what is left out of unbounded noise among few users
MAX_CHOICES = 256  # attacks tried
SCALES = (2.0, 5.0)  # at which they are compared, and next to the largest loss
Triple = tuple[float, float, float]


@dataclass(frozen=True, repr=False)
class Blanket(OfReports):
    """n users shuffle reports of a named randomizer; the blanket adversary, exactly.

    randomizer : one of `pld_shuffle.randomizers`, the same for all users. Finite ones by the kinds of pairs of
        inputs they list (both orders of each); Laplace and Gaussian by the pair (0, 1), the worst one.
    n : users whose reports are shuffled together, the target included; at most 10^13.

    Raises ValueError or TypeError naming the argument. Cost of a law: a few hundred evaluations of
    `pairs.slots.slot_profile` for every kind of pair of inputs.

    >>> from pld_shuffle.randomizers import UnaryEncoding
    >>> Blanket(UnaryEncoding(k=4, eps0=2.0), n=1000).users
    1000
    """

    randomizer: Annotated[LocalRandomizer, known_randomizer]
    n: UserCount

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.randomizer.pure and not self.randomizer.eps0 <= LARGEST_EPS0:
            raise ValueError(f"randomizer must have an eps0 of at most {LARGEST_EPS0:g}, got {self.randomizer!r}")

    @cached_property
    def pair(self) -> ProfilePair:
        """The worst of all pairs of inputs."""
        randomizer, n = self.randomizer, self.n
        # The randomizer attains eps0: the largest loss, where it is known exactly.
        exact = randomizer.pure and randomizer.eps0_error == 0.0
        largest = Bounds(randomizer.eps0, randomizer.eps0) if exact else None
        if not randomizer.continuous:
            laws = [SlotLaw.of(n, masses, randomizer.mass_error, whole=False) for masses in randomizer.slot_laws()]
            return worst([SlotPair(law, largest) for law in laws])
        pair = SlotPair(NoiseLaw(n, randomizer), largest)
        if n > randomizer.few_users:
            return pair
        tail = FEW_TAIL if randomizer.tailed else 0.0
        below, above = (
            SlotLaw.of(n, masses, randomizer.mass_error, whole=False)
            for side in Side
            for masses in randomizer.slot_laws(side, tail, refined=FINER)
        )
        return among_few(pair, below, above, tailed=randomizer.tailed, tail=tail)

    def assumptions(self) -> dict[str, str]:
        return said(
            f"exact pair of the blanket adversary for {self.randomizer!r}",
            adversary="sees the shuffled reports, knows every other user's value, and sees which of the"
            " other users' reports came from the privacy blanket",
        )


def attack_law(randomizer: LocalRandomizer, n: int, triple: Triple, *, refined: float = 1.0) -> SlotLaw:
    """The slots of (first, second, others)."""
    masses = randomizer.attack_law(*triple, refined=refined)
    return SlotLaw.of(n, masses, randomizer.mass_error, whole=True)


def strongest_triples(
    randomizer: LocalRandomizer, n: int, triples: Iterable[Triple], cohort: Cohort = ALL_USERS
) -> list[Triple]:
    """Those with the largest divergence of one round on a cohort: two scales out, and farther."""
    tried = list(triples)
    laws = [attack_law(randomizer, n, triple).sampled(cohort) for triple in tried]
    top = min(max(float(law.max_loss.lower) for law in laws), 100.0)
    far = np.expm1(np.minimum(np.append(np.array(SCALES) * max(law.scale for law in laws), top), 0.9 * top))
    strengths = np.array([law.profile(far, 1e-6).lower for law in laws])
    best = np.argmax(strengths, axis=0)[np.max(strengths, axis=0) > 0.0]
    return [tried[k] for k in dict.fromkeys(best.tolist())] or tried[:1]


def strongest_attack(randomizer: LocalRandomizer, n: int, cohort: Cohort = ALL_USERS) -> Pair:
    """The pairs of the strongest attacks, on a cohort. All others are alike, so that the hidden cohort says nothing."""
    found: list[Pair] = []
    for triple in strongest_triples(randomizer, n, randomizer.attacks(MAX_CHOICES), cohort):
        if randomizer.tailed:
            pair = SlotPair(NoiseLaw(n, randomizer, cohort, triple), Bounds(math.inf, math.inf), ordered=True)
        else:
            pair = attack_law(randomizer, n, triple).sampled(cohort).ordered_pair()
        if n <= randomizer.few_users and cohort.everybody:
            finer = attack_law(randomizer, n, triple, refined=FINER)
            pair = among_few(pair, finer, finer, tailed=randomizer.tailed)
        found.append(pair)
    return Attacks.of(found)


def stand_in_attack(randomizer: LocalRandomizer, n: int, cohort: Cohort) -> tuple[ProfilePair, ProfilePair]:
    """The strongest attack in which all others hold the target's second value: its pair, and it reversed."""
    triples = (triple for triple in randomizer.attacks(MAX_CHOICES) if triple[1] == triple[2])
    law = attack_law(randomizer, n, strongest_triples(randomizer, n, triples, cohort)[0])
    return law.ordered_pair(), law.reversed().ordered_pair()


WAYS = ("eps0", "gamma", "one_if_one", "one_if_zero")
RealOrNone = Annotated[float | None, lambda name, value: None if value is None else real(name, value)]


@dataclass(frozen=True, repr=False)
class CountedBits(OnCohorts):
    """n users send randomised bits, and only the number of ones is published.

    n : users whose bits are counted together, the target included.
    eps0 | gamma | one_if_one, one_if_zero : one of the three. eps0 in [1e-9, 280]: randomised response; gamma in
        (2e-130, 1): a fair coin with probability gamma, the truth otherwise; or the probabilities of a 1 for the
        values 1 and 0, 0 < one_if_zero < one_if_one < 1.
    bits : bits a user sends in one round, independent given the value; all count together.

    A user may also hold a number in [0, 1] and round it at random, every bit by itself or not: one-bit means, unary
    sums. Upper ends hold for every dataset; lower ends come from an attack, all other users holding one value. Raises
    ValueError or TypeError naming the argument.

    >>> CountedBits(100_000, eps0=8.0)
    CountedBits(n=100000, eps0=8.0)
    """

    n: UserCount
    _: KW_ONLY
    eps0: RealOrNone = None
    gamma: RealOrNone = None
    one_if_one: RealOrNone = None
    one_if_zero: RealOrNone = None
    bits: PositiveInt = 1
    rarely: ClassVar[tuple[str, ...]] = ("bits",)
    any_cohort = False  # several bits have no pair where users may be absent

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.shares

    @cached_property
    def shares(self) -> BitShares:
        """The probabilities of a 1; ValueError unless they are given in exactly one way."""
        given = {name: value for name in WAYS if (value := getattr(self, name)) is not None}
        if set(given) == {"eps0"}:
            budget = local_epsilon("eps0", given["eps0"])
            if not budget <= LARGEST_BIT_EPS0:
                raise ValueError(f"eps0 must be at most {LARGEST_BIT_EPS0:g}, got {budget!r}")
            return BitShares.randomized_response(budget)
        if set(given) == {"gamma"}:
            return BitShares.random_answers(given["gamma"])
        if set(given) == {"one_if_one", "one_if_zero"}:
            one, zero = given["one_if_one"], given["one_if_zero"]
            if not 1e-130 < zero < one < 1.0:
                raise ValueError(f"one_if_one must be in (one_if_zero, 1), one_if_zero > 1e-130, got {one!r}, {zero!r}")
            return BitShares.of(one, zero)
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in WAYS)
        raise ValueError(f"give eps0, or gamma, or one_if_one and one_if_zero, got {values}")

    def assumptions(self) -> dict[str, str]:
        return said(
            "exact for one round, an upper bound over rounds; the bits of a round are independent, and all users run"
            " the same randomizer",
            adversary="sees the number of ones and knows every other user's value",
        )

    @cached_property
    def pair(self) -> BitPair:  # type: ignore[override]
        return BitPair(self.n, self.shares, self.bits)

    def sampled(self, cohort: Cohort) -> Pair:
        """The pair of a hidden cohort: with one bit a user the less of docs/swap.md, Theorem B4, and the coin labels.

        If users take part independently the number of reports is published, too. For one bit each these two numbers
        are all that a shuffler shows, and the swap theorem is for that. TypeError for several bits.
        """
        if cohort.absence > 0.0:
            if self.bits > 1:
                raise TypeError(f"users who take part independently send one bit each, got {self!r}")
            return Shuffled(DiscreteRandomizer(self.shares.chances), self.n).sampled(cohort)
        known = BitPair(self.n, self.shares, self.bits, cohort.rate)
        if self.bits > 1:
            return known
        local = max(float(self.pair.max_loss.upper), SMALLEST_EPS0)
        tv = min(1.0, self.shares.gap * (1.0 + 1e-14))
        labels = ShuffledRandomizer(self.n, tv=tv, eps0=local).pair.sampled(cohort)
        return Several((known, labels))

    def stand_in_attack(self, cohort: Cohort) -> tuple[Pair, Pair] | None:
        return bit_orders(BitAttackPair(self.n, self.shares, self.bits))

    def sampled_attack(self, cohort: Cohort) -> Pair:
        return Attacks.of(bit_attacks(self.n, self.shares, cohort, bits=self.bits))
