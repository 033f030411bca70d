"""What all protocols share: who takes part, who can be trusted, and what the rounds cost.

Privacy is accounted for the `honest` users only. Messages of the others are whatever they like, but do
not depend on the honest users' data, so the whole view is a post-processing of the honest users' shuffled
messages (Cheu 2022, section 2.2, robust privacy; Cheu et al. 2019, section 3.2). The guarantee is for honest
users. Errors (`expected_error`) are those of a run in which everybody follows the protocol.

Rounds: the same users take part in every round and draw fresh noise; their values may change from round
to round, also in answer to earlier outputs (adaptive composition). The exception is `RAPPORHistogram`, whose
collections share the memoised noise: it is for values that do not change, and its `ledger` knows.

What a round costs: `ledger(rounds)` and `accountant(rounds)`, for every protocol. Most are `OneMechanism`,
one round being one `mechanism`, which can be composed with others by hand and run on random cohorts
(`on_cohort`). `UnarySum` (a round is several mechanisms) and `RAPPORHistogram` (several collections are not
several rounds) are not: their `mechanism` raises an AttributeError that says what to use.

Upper ends of an accountant's brackets hold for the protocol, whatever the rounds. Lower ends are those of an
attack, or enclose the *stated* pair: they are the protocol's own where its docstring calls the pair exact, for
one round or for any number.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..numerics.validation import integer_in, positive_int, unit_interval
from .messages import shuffled

if TYPE_CHECKING:
    from ..accountant import Accountant
    from ..mechanisms import Mechanism, Subsampled


class Protocol(ABC):
    """A protocol of n users, `honest_fraction` of whom are relied upon for privacy."""

    n: int
    honest_fraction: float

    @property
    def honest(self) -> int:
        """Number of users whose noise is counted on, floor(honest_fraction n)."""
        return honest_users(self.n, self.honest_fraction)

    def _check_users(self) -> None:
        """Check and convert `n` and `honest_fraction`; for a frozen dataclass's __post_init__."""
        honest_users(self.n, self.honest_fraction)
        object.__setattr__(self, "n", int(self.n))
        object.__setattr__(self, "honest_fraction", float(self.honest_fraction))

    def shuffle(self, messages: ArrayLike, rng: np.random.Generator) -> NDArray[Any]:
        """All messages, of all users together, in uniformly random order."""
        return shuffled(messages, rng)

    @abstractmethod
    def ledger(self, rounds: int = 1) -> tuple[tuple[Mechanism, int], ...]:
        """The mechanisms that account for `rounds` rounds, with their counts."""

    def accountant(self, rounds: int = 1, *, rtol: float = 1e-3) -> Accountant:
        """An accountant with `rounds` rounds of this protocol composed.

        Its upper bounds hold for the protocol, its lower ones for the stated pairs; see the module.
        """
        from ..accountant import Accountant

        accountant = Accountant(rtol=rtol)
        for mechanism, count in self.ledger(rounds):
            accountant.compose(mechanism, count)
        return accountant


class OneMechanism(Protocol):
    """A protocol one round of which is one mechanism."""

    @property
    @abstractmethod
    def mechanism(self) -> Mechanism:
        """What one round costs: compose it in an `Accountant`."""

    def ledger(self, rounds: int = 1) -> tuple[tuple[Mechanism, int], ...]:
        """The mechanism, `rounds` times."""
        return ((self.mechanism, positive_int("rounds", rounds)),)

    def on_cohort(self, population: int) -> Subsampled:
        """One round run by n users drawn from `population` users uniformly, hidden from the adversary.

        Every user of the cohort knows of being in it. So given the others' part of the cohort, the h honest
        members are a uniform choice among the honest users of the population, at least
        H = floor(honest_fraction population) by assumption, and an honest user is among them with
        probability h/H <= n/H, *not* n/population: that is the rate here. The mechanism is that of `honest`
        users, so at least that many must be honest in *every* cohort; how many a random cohort happens to
        have is random, and cohorts with fewer are not covered. Draw anew for every round.

        population: at least n. Raises TypeError or ValueError. `Subsampled(self.mechanism, population=...)`
        would be wrong for honest_fraction < 1: it takes `honest` for the size of the cohort.
        """
        from ..mechanisms import Subsampled

        people = positive_int("population", population)
        if not people >= self.n:
            raise ValueError(f"population must be at least n={self.n}, got {population!r}")
        if self.honest == self.n:
            return Subsampled(self.mechanism, population=people)
        relied_upon = honest_users(people, self.honest_fraction)
        return Subsampled(self.mechanism, rate=min(1.0, self.n / relied_upon))


def honest_users(n: object, honest_fraction: object) -> int:
    """floor(honest_fraction n); ValueError or TypeError for bad ones, or if nobody is left.

    The fraction is read as the decimal number it prints as: 0.29 of 100 users are 29, although the
    double next to 0.29 is a little below it.
    """
    users = integer_in("n", n, 1)
    fraction = unit_interval("honest_fraction", honest_fraction)
    honest = math.floor(Fraction(repr(fraction)) * users)
    if not honest >= 1:
        raise ValueError(f"honest_fraction={fraction!r} leaves no honest user of n={users!r}")
    return honest
