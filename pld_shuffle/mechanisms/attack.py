"""Concrete attacks on a named local randomizer: what no analysis can go below.

n-1 users with one chosen value, and two chosen values of the target, are concrete neighbouring datasets. Their
divergence is the slot law with W the law of the chosen value (`pairs.slots`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..numerics.validation import positive_int, user_count
from ..pairs.cohort import ALL_USERS, Cohort
from ..pairs.few_users import FewUsersPair
from ..pairs.profile import ProfilePair
from ..pairs.slots import SlotLaw
from ..randomizers.base import LocalRandomizer
from ..randomizers.joint import FiniteRandomizer
from ..randomizers.noise import Noise
from .base import AttackBounds, Mechanism
from .blanket import FINER, known_randomizer
from .shared import EVERYBODY

MAX_CHOICES = 256  # attacks tried


@dataclass(frozen=True)
class Attack(Mechanism):
    """Two concrete neighbouring datasets: the target holds `first` or `second`, all n-1 others hold `others`.

    The pair is ordered (D has `first`), and exact: what it spends, `randomizer` in a shuffler spends at
    least, over any number of rounds. Inputs are 0 ... inputs-1 of a finite randomizer.

    Raises ValueError or TypeError naming the argument.
    """

    randomizer: FiniteRandomizer
    n: int
    first: int
    second: int
    others: int

    def __post_init__(self) -> None:
        randomizer = known_randomizer(self.randomizer)
        if not isinstance(randomizer, FiniteRandomizer):
            raise TypeError(f"randomizer must be finite to be attacked, got {randomizer!r}")
        object.__setattr__(self, "n", user_count(self.n))
        for name in ("first", "second", "others"):
            value = positive_int(name, getattr(self, name), least=0)
            if not value < randomizer.inputs:
                raise ValueError(f"{name} must be below inputs={randomizer.inputs}, got {value!r}")
            object.__setattr__(self, name, value)
        if self.first == self.second:
            raise ValueError(f"second must differ from first, got {self.second!r}")

    @cached_property
    def pair(self) -> ProfilePair:
        masses = self.randomizer.attack_law(self.first, self.second, self.others)
        return SlotLaw.of(self.n, masses, self.randomizer.mass_error, whole=True).ordered_pair()

    def assumptions(self) -> dict[str, str]:
        return {
            "neighbours": f"the target holds {self.first} or {self.second}, all others hold {self.others}",
            "adversary": "sees the shuffled reports",
            "analysis": "exact divergence of these two datasets: a lower bound for any analysis",
            "sampling": EVERYBODY,
        }


def strongest_attack(
    randomizer: LocalRandomizer,
    n: int,
    choices: Iterable[tuple[int, int, int]] | None,
    cohort: Cohort = ALL_USERS,
) -> Attack:
    """The attack (first, second, others) with the largest divergence of one round on a cohort, two scales out."""
    if not isinstance(randomizer, FiniteRandomizer):
        raise TypeError(f"randomizer must be finite to be attacked, got {randomizer!r}")
    tried = randomizer.attacks(MAX_CHOICES) if choices is None else choices
    attacks = [Attack(randomizer, n, *triple) for triple in tried]
    if not attacks:
        raise ValueError("choices must not be empty")
    pairs = [attack.pair if cohort.everybody else attack.pair.sampled(cohort) for attack in attacks]
    growth = np.expm1([2.0 * min(max(pair.scale for pair in pairs), 100.0)])
    strengths = [float(pair.profile(growth, 1e-6, 0.0).lower[0]) for pair in pairs]
    return attacks[int(np.argmax(strengths))]


def noise_attack(randomizer: Noise, n: int, cohort: Cohort = ALL_USERS) -> ProfilePair:
    """The attack on noise, on a cohort: of the two orders the one with the larger divergence two scales out."""
    law = noise_law(randomizer, n).sampled(cohort)
    growth = np.expm1([2.0 * min(law.scale, 100.0)])
    strengths = [float(order.profile(growth, 1e-6).lower[0]) for order in (law, law.reversed())]
    turned = strengths[1] > strengths[0]
    pair = (law.reversed() if turned else law).ordered_pair()
    if n > randomizer.few_users or not cohort.everybody:
        return pair
    finer = noise_law(randomizer, n, refined=FINER)
    finer = finer.reversed() if turned else finer
    return FewUsersPair.of(pair, finer, finer, tailed=randomizer.tailed)


def noise_law(randomizer: Noise, n: int, *, refined: float = 1.0) -> SlotLaw:
    """The target at 0 against 1 and all others at 0, reports merged to cells."""
    masses = randomizer.attack_law(0.0, 1.0, 0.0, refined=refined)
    return SlotLaw.of(n, masses, randomizer.mass_error, whole=True)


__all__ = ["Attack", "AttackBounds", "strongest_attack"]
