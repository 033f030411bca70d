"""Concrete attacks on a named local randomizer: what no analysis can go below.

n-1 users with one chosen value, and two chosen values of the target, are concrete neighbouring datasets. Their
divergence is the slot law with W the law of the chosen value (`pairs.slots`). The randomizer lists the triples
(first, second, others) to try; reports of noise are merged to cells, which is a lower side.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..pairs.cohort import ALL_USERS, Cohort
from ..pairs.few_users import among_few
from ..pairs.pair import Attacks, Pair
from ..pairs.profile import ProfilePair
from ..pairs.slots import SlotLaw
from ..randomizers.base import LocalRandomizer
from .blanket import FINER

MAX_CHOICES = 256  # attacks tried
SCALES = (2.0, 5.0)  # at which they are compared, and next to the largest loss
Triple = tuple[float, float, float]


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
