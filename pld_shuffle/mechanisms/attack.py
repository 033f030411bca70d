"""Concrete attacks on a named local randomizer: what no analysis can go below.

n-1 users with one chosen value, and two chosen values of the target, are concrete neighbouring datasets. Their
divergence is the slot law with W the law of the chosen value (`pairs.slots`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np

from ..numerics.validation import positive_int, user_count
from ..pairs.cohort import ALL_USERS, Cohort
from ..pairs.few_users import MOST_USERS
from ..pairs.noise_types import gaussian_attack, laplace_attack
from ..pairs.profile import ProfilePair
from ..pairs.slots import SlotLaw, few_users_pair
from ..randomizers import DiscreteRandomizer, FiniteRandomizer, Gaussian, Laplace, LocalRandomizer
from .base import AttackBounds, Mechanism
from .blanket import (
    FINER,
    GAUSSIAN_CELLS,
    GAUSSIAN_ERROR,
    LAPLACE_CELLS,
    LAPLACE_ERROR,
    few_tailed,
    grouped,
    known_randomizer,
    mass_error,
)
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
    def pair(self) -> ProfilePair:  # type: ignore[override]
        masses = grouped(*self.randomizer.joint_law((self.first, self.second, self.others)))
        law = SlotLaw(self.n, *masses, True, mass_error(self.randomizer))
        return law.ordered_pair()

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
    tried = list(_triples(randomizer) if choices is None else choices)
    attacks = [Attack(randomizer, n, *triple) for triple in tried]
    if not attacks:
        raise ValueError("choices must not be empty")
    pairs = [attack.pair if cohort.everybody else attack.pair.sampled(cohort) for attack in attacks]
    growth = np.expm1([2.0 * min(max(pair.scale for pair in pairs), 100.0)])
    strengths = [float(pair.profile(growth, 1e-6, 0.0).lower[0]) for pair in pairs]
    return attacks[int(np.argmax(strengths))]


def noise_attack(randomizer: Laplace | Gaussian, n: int, cohort: Cohort = ALL_USERS) -> ProfilePair:
    """The attack on noise, on a cohort: of the two orders the one with the larger divergence two scales out."""
    law = noise_law(randomizer, n).sampled(cohort)
    growth = np.expm1([2.0 * min(law.loss_scale, 100.0)])
    strengths = [float(order.profile(growth, 1e-6).lower[0]) for order in (law, law.reversed())]
    turned = strengths[1] > strengths[0]
    pair = (law.reversed() if turned else law).ordered_pair()
    tailed = few_tailed(randomizer, n)
    if n > MOST_USERS or not cohort.everybody or not (tailed or isinstance(randomizer, Laplace)):
        return pair
    finer = noise_law(randomizer, n, finer=True)
    finer = finer.reversed() if turned else finer
    return few_users_pair(pair, finer, finer, tailed=tailed)


def noise_law(randomizer: Laplace | Gaussian, n: int, *, finer: bool = False) -> SlotLaw:
    """The target at 0 against 1 and all others at 0, reports merged to cells; finer ones for few users."""
    if isinstance(randomizer, Laplace):
        cells = LAPLACE_CELLS * (FINER if finer else 1)
        masses = laplace_attack(
            randomizer.eps0, first=0.0, second=1.0, others=0.0, cells=cells, graded=finer
        )
        error = LAPLACE_ERROR
    else:
        cells = GAUSSIAN_CELLS * (FINER if finer else 1)
        missed = 1e-15 if randomizer.sigma > 0.051 else 1e-4  # so that densities do not underflow
        masses = gaussian_attack(
            randomizer.sigma, first=0.0, second=1.0, others=0.0, missed=missed, cells=cells
        )
        error = GAUSSIAN_ERROR
    return SlotLaw(n, masses[0], masses[1], masses[2], True, error)


def _triples(randomizer: FiniteRandomizer) -> Iterable[tuple[int, int, int]]:
    """(first, second, others) for the default search: one of each kind, where that is few enough."""
    pairs = list(islice(randomizer.ordered_pairs(), MAX_CHOICES))
    found = [(*pair, others) for pair in pairs for others in randomizer.kinds(pair)]
    # Kinds may stand for values that the randomizer does not have; an attack needs real ones.
    found = [triple for triple in found if max(triple) < randomizer.inputs]
    if len(found) <= MAX_CHOICES or not isinstance(randomizer, DiscreteRandomizer):
        return found[:MAX_CHOICES]
    found = found[: MAX_CHOICES // 2]
    for worst in (randomizer.farthest_pair, randomizer.worst_pair):
        others = range(min(randomizer.inputs, MAX_CHOICES // 8))
        found += [(*worst, z) for z in others]
        found += [(*worst[::-1], z) for z in others]
    return found


__all__ = ["Attack", "AttackBounds", "strongest_attack"]
