"""A named local randomizer, exactly: the blanket adversary (Balle, Bell, Gascon, Nissim 2019, section 5), and attacks.

Beyond the shuffled reports the adversary sees who of the other n-1 users drew their report from the blanket (the part
of the law that does not depend on the value), and those users' other reports. Its divergence is exact: the slot law
with W the blanket (`pairs.slots`; proof in docs/theory.md, section 8).

n-1 users with one chosen value, and two chosen values of the target, are concrete neighbouring datasets: the slot law
with W the law of the chosen value. No analysis can go below it. The randomizer lists the triples (first, second,
others) to try; reports of noise are merged to cells, which is a lower side.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from ..numerics.sides import Bounds, Side
from ..numerics.validation import users
from ..pairs.cohort import ALL_USERS, Cohort
from ..pairs.few_users import among_few
from ..pairs.pair import Attacks, Pair
from ..pairs.profile import ProfilePair, worst
from ..pairs.slots import NoiseLaw, SlotLaw, SlotPair
from ..randomizers.base import LocalRandomizer
from ..randomizers.discrete import known_randomizer
from ..randomizers.noise_laws import LARGEST_EPS0
from .base import OfReports, said

FINER = 8  # times as many cells for few users
FEW_TAIL = 1e-15  # what is left out of unbounded noise among few users
MAX_CHOICES = 256  # attacks tried
SCALES = (2.0, 5.0)  # at which they are compared, and next to the largest loss
Triple = tuple[float, float, float]


@dataclass(frozen=True, repr=False)
class Blanket(OfReports):
    """n users shuffle reports of a named randomizer; the blanket adversary, exactly.

    Parameters
    ----------
    randomizer : one of `pld_shuffle.randomizers`, the same for all users. Finite ones by the kinds of pairs of
        inputs they list (both orders of each); Laplace and Gaussian by the pair (0, 1), the worst one.
    n : users whose reports are shuffled together, the target included; at most 10^13.

    Raises ValueError or TypeError naming the argument. Cost of a law: a few hundred evaluations of
    `pairs.slots.slot_profile` for every kind of pair of inputs.

    >>> from pld_shuffle.randomizers import UnaryEncoding
    >>> Blanket(UnaryEncoding(k=4, eps0=2.0), n=1000).users
    1000
    """

    randomizer: LocalRandomizer
    n: int

    CHECKS: ClassVar = {"randomizer": known_randomizer, "n": users}

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
