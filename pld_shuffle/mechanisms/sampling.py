"""Rounds in which a random part of the users takes part.

Who stays away sends one more report, "absent", whatever the value; the number of reports is visible. So a Poisson
sample is everybody's shuffle of a randomizer with one more report, and dropouts are that in a cohort (docs/swap.md):
what is proved for shuffled reports is proved for them.

*A sticky cohort* (docs/people.md, section 3): the general amplification (Balle, Barthe, Gaboardi 2018, Thm 2) of the
*composed* pair of the T rounds, once. For T = 1 Theorem C of docs/swap.md is sharper. The lower ends' attack: all other
users hold the target's second value, so that who stands in looks like the second dataset (`pairs.profile.HiddenOrder`).
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from functools import cached_property, partial
from typing import Annotated

from ..composition.curve import ComposedPair, Curve, HiddenSupremum
from ..numerics.validation import PositiveInt, UnlikelyWarning, between, choice, integer_in, positive_int
from ..pairs.discrete import NOTHING
from ..pairs.pair import ALL_USERS, Cohort, Pair
from ..pairs.profile import HiddenOrder
from ..randomizers.base import settle
from .base import CONCURRENT, OUTPUTS_ONLY, Mechanism, OfMechanism, as_mechanism, sampling_rate

ANALYSES = ("tightest", "general")


class _Sampled(OfMechanism):
    """A mechanism on a hidden cohort. A new scheme: say which `Cohort` it is, and what it assumes."""

    def __post_init__(self) -> None:
        if isinstance(as_mechanism(self.mechanism), _Sampled):
            raise TypeError(f"mechanism must be a mechanism, not sampled, got {self.mechanism!r}")
        super().__post_init__()

    @property
    @abstractmethod
    def cohort(self) -> Cohort:
        """Who takes part."""

    def _require_pair(self) -> None:
        """Raise TypeError at once, and not at the first question, if no pair is proven."""
        if not self.mechanism.any_cohort:
            _ = self.pair

    @cached_property
    def pair(self) -> Pair:  # type: ignore[override]
        mechanism, cohort = self.mechanism, self.cohort
        return mechanism.pair if cohort.everybody else mechanism.sampled(cohort)

    @cached_property
    def attack_pair(self) -> Pair:  # type: ignore[override]
        mechanism, cohort = self.mechanism, self.cohort
        return mechanism.attack_pair if cohort.everybody else mechanism.sampled_attack(cohort)

    def stand_in_attack(self, cohort: Cohort) -> tuple[Pair, Pair] | None:
        """Cohorts are drawn from a pool of equal others, so that they say nothing."""
        if not cohort.everybody:
            return None
        orders = self.mechanism.stand_in_attack(self.cohort)
        if orders is None or self.cohort.everybody:
            return orders
        return orders[0].sampled(self.cohort), orders[1].sampled(self.cohort)

    @property
    def hidden(self) -> bool:
        return not self.cohort.everybody or self.mechanism.hidden


@dataclass(frozen=True, repr=False)
class Subsampled(_Sampled):
    """A mechanism run on a uniformly random cohort of fixed size, hidden from the adversary.

    mechanism : a mechanism, not subsampled itself; its n is the cohort size.
    population | rate : exactly one; the number N >= n of users the cohort is drawn from, or n/N in
        [1e-12, 1]. No population has a rate between n/(n+1) and 1: such a rate is a bound for all below it.
    dropout : probability in [0, 1) that a member of the cohort sends nothing, independently of all others and of the
        data; the number of reports is visible. It must be the same for all, the target included.
    dropout_limit : instead of dropout, in [0, 1). Every other user drops out with a probability of its own, which is
        at most this; the target's own need not be known. The lower end is that of a target who never does, among
        others who all do with this probability.
    colluding : how many of the population show the adversary all they know. Their number is taken off N: the
        cohort is at worst n of the others, who must be more than n.
    analysis : "tightest" (default): for a mechanism of the shuffle model Theorem C of docs/swap.md, attained if all
        others hold the same value. "general", and for a central mechanism: the general amplification, which lets the
        absent target be replaced by the worst report (Zhu, Dong, Wang 2022, Prop. 30). Where "general" is asked for,
        the lower end is that of the general pair. Otherwise it is an attack's.

    The cohort is drawn anew for every round, without looking at the data, and nobody but the shuffler learns who is in
    it. Neighbours: substitution. The adversary sees the shuffled reports only, whatever else the mechanism's own
    adversary sees. At a fixed population the bound grows with the cohort, so the largest of varying cohorts is safe for
    all. Raises ValueError or TypeError.

    >>> from pld_shuffle import ShuffledLDP
    >>> Subsampled(ShuffledLDP(eps0=3.0, n=1000), population=100_000).rate
    0.01
    """

    mechanism: Mechanism
    _: KW_ONLY
    population: int | None = None
    rate: float = None  # type: ignore[assignment]
    analysis: Annotated[str, partial(choice, options=ANALYSES)] = "tightest"
    dropout: Annotated[float, between(0.0, 1.0, "[)")] = 0.0
    dropout_limit: Annotated[float, between(0.0, 1.0, "[)")] = 0.0
    colluding: Annotated[int, partial(integer_in, lowest=0)] = 0

    rarely = ("analysis", "dropout", "dropout_limit", "colluding")

    def __post_init__(self) -> None:
        super().__post_init__()
        given, colluding = {"dropout": self.dropout, "dropout_limit": self.dropout_limit}, self.colluding
        if given["dropout"] > 0.0 and given["dropout_limit"] > 0.0:
            raise ValueError(f"give one of dropout and dropout_limit, got {given}")
        if self.analysis == "general" and any([*given.values(), colluding]):
            raise ValueError(
                "dropout, dropout_limit and colluding need analysis 'tightest', got"
                f" {given}, colluding={colluding!r} with 'general'"
            )
        if colluding > 0 and self.population is None:
            raise ValueError(f"colluding needs a population, got {colluding!r} with rate={self.rate!r}")
        if not any(given.values()):
            _look_at(self.rate)
        population, rate = population_and_rate(self.mechanism, self.population, self.rate, colluding)
        settle(self, rate=rate, population=population)
        self._require_pair()

    @property
    def cohort(self) -> Cohort:
        absence = self.dropout or self.dropout_limit
        return Cohort(self.rate, 1.0 - absence, absence, certain=self.dropout_limit > 0.0)

    @cached_property
    def pair(self) -> Pair:  # type: ignore[override]
        if self.analysis == "general" and self.rate < 1.0:
            return self.mechanism.amplified(self.rate)
        return super().pair

    @cached_property
    def attack_pair(self) -> Pair:  # type: ignore[override]
        return self.pair if self.analysis == "general" and self.rate < 1.0 else super().attack_pair

    def assumptions(self) -> dict[str, str]:
        cohort, dropout = f"rate {self.rate:g}", ""
        if self.population is not None:
            cohort = f"{self.users} of {self.population} users ({cohort})"
        if self.colluding:
            cohort += f", {self.colluding} of them colluding and free to stay away from the cohort"
        if self.dropout:
            dropout = (
                f"; each member, the target included, drops out with the same probability {self.dropout:g},"
                " independently of all others and of the data, and the number of reports is visible"
            )
        if self.dropout_limit:
            dropout = (
                f"; each other member drops out with a probability of its own, at most {self.dropout_limit:g},"
                " independently of all others and of the data; the target's is any; the number of reports is visible"
            )
        return self.mechanism.hidden_assumptions() | {
            "sampling": f"uniformly random cohort of fixed size, {cohort}, drawn anew every round without looking at"
            f" the data, not revealed to the adversary{dropout}; {OUTPUTS_ONLY}"
        }


@dataclass(frozen=True, repr=False)
class PoissonSampled(_Sampled):
    """A mechanism of the shuffle model in which every user takes part with one probability, independently.

    mechanism : a mechanism of the shuffle model, not sampled itself; its n counts all users who may take part.
    rate : probability of taking part, the same for all, in [1e-12, 1].

    Who takes part is drawn anew for every round, without looking at the data. The number of reports is visible, who
    sent them is not. Neighbours: substitution. At small delta a fixed cohort of the mean size spends less; near epsilon
    0 it can be the other way round. Central Gaussian noise on a Poisson sample is `PoissonGaussian`. Raises ValueError,
    or TypeError for mechanisms that no proof covers.

    >>> from pld_shuffle import ShuffledLDP
    >>> PoissonSampled(ShuffledLDP(eps0=3.0, n=100_000), rate=0.01).users
    100000
    """

    mechanism: Mechanism
    rate: Annotated[float, sampling_rate]

    def __post_init__(self) -> None:
        super().__post_init__()
        _look_at(self.rate)
        try:
            self._require_pair()
        except TypeError as error:
            raise TypeError(
                "mechanism must be of the shuffle model, with known labels or laws (Gaussian noise on the sum over a"
                f" Poisson sample is PoissonGaussian(sigma, rate, norm)), got {self.mechanism!r}"
            ) from error

    @property
    def cohort(self) -> Cohort:
        return Cohort(presence=self.rate)

    def assumptions(self) -> dict[str, str]:
        return self.mechanism.hidden_assumptions() | {
            "sampling": f"each of {self.users} users, the target included, takes part independently with the same"
            f" probability (rate {self.rate:g}), drawn anew every round without looking at the data; the number of"
            f" reports is visible, who sent them is not; {OUTPUTS_ONLY}"
        }


def population_and_rate(
    mechanism: Mechanism, population: int | None, rate: float | None, colluding: int = 0
) -> tuple[int | None, float]:
    """The population, if that was given, and the share of it that takes part; ValueError or TypeError."""
    if (population is None) == (rate is None):
        raise ValueError(f"give exactly one of population and rate, got population={population!r}, rate={rate!r}")
    if population is not None:
        population = positive_int("population", population)
        n = mechanism.users
        if n is None:
            raise ValueError(f"population needs a mechanism with users; give rate, got {mechanism!r}")
        if not population >= n:
            raise ValueError(f"population must be at least n={n}, got {population!r}")
        if colluding > 0 and not population - colluding > n:
            raise ValueError(f"colluding must leave more than n={n} of population={population}, got {colluding!r}")
        rate = n / (population - colluding)
    return population, sampling_rate("rate" if population is None else f"population={population}: rate", rate)


def _look_at(rate: float | None) -> None:
    if rate == 1.0:
        text = "rate=1 is everybody, so nothing is sampled; one per cent is rate=0.01"
        warnings.warn(text, UnlikelyWarning, stacklevel=4)


ATTACK_RTOL = 3e-4  # well inside what one round is asked for: then no law is made of it


@dataclass(frozen=True, repr=False)
class StickyCohort(OfMechanism):
    """`rounds` rounds of a mechanism on one hidden cohort that stays the same in all of them.

    mechanism : one round; its n is the cohort size. For neighbours by substitution, with a symmetric pair.
    rounds : how many rounds the cohort takes part in.
    population | rate : exactly one; the number N >= n of users the cohort is drawn from, or n/N in [1e-12, 1].

    One entry of a ledger is the whole life of one cohort, drawn without looking at the data, which nobody but the
    shuffler ever learns. Another cohort, drawn independently, is one more. **Panels that share out the users are not
    independent**: compose the costliest panel's mechanism, without a cohort (docs/people.md, section 3). **Do not
    account for it as `Subsampled` rounds**: below, 1.107 is right, and .045 is wrong.

    Lower ends are those of a concrete attack (the module's) for `ShuffledLDP`, counted bits and named randomizers, of
    the pair where the mechanism's own are, and otherwise 0. Complexity: about ten compositions of the rounds, and O(1)
    for each point of their profile. Raises ValueError or TypeError naming the argument.

    >>> from pld_shuffle import Accountant, ShuffledLDP
    >>> batch = ShuffledLDP(eps0=3.0, n=1000, analysis="stronger-clones")
    >>> sticky = Accountant().compose(StickyCohort(batch, 50, rate=0.01))
    >>> fresh = Accountant().compose(Subsampled(batch, rate=0.01), 50)
    >>> round(sticky.get_epsilon(1e-6), 3), round(fresh.get_epsilon(1e-6), 3)
    (1.107, 0.045)
    """

    unsampled = "a cohort that is drawn once cannot be drawn anew"

    mechanism: Mechanism
    rounds: PositiveInt
    _: KW_ONLY
    population: int | None = None
    rate: float = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        super().__post_init__()
        mechanism = self.mechanism
        if isinstance(as_mechanism(mechanism), StickyCohort):
            raise TypeError(f"mechanism must be a mechanism, one round of it, got {mechanism!r}")
        if not (mechanism.relation == "replace-one" and mechanism.pair.symmetric):
            raise TypeError(f"mechanism must have a symmetric pair for the substitution of one user, got {mechanism!r}")
        if self.population is not None and isinstance(mechanism, Subsampled):
            raise ValueError(
                f"population needs a mechanism with users, all in every round; give rate, got {mechanism!r}"
            )
        population, rate = population_and_rate(mechanism, self.population, self.rate)
        settle(self, population=population, rate=rate)

    @property
    def _fresh(self) -> Mechanism | None:
        """The one round, if there is only one, on a cohort that may as well be a fresh one."""
        once = self.rounds == 1 and self.rate < 1.0 and self.mechanism.unsampled is None
        inside = isinstance(self.mechanism, (Subsampled, PoissonSampled))
        return Subsampled(self.mechanism, rate=self.rate) if once and not inside else None

    @cached_property
    def pair(self) -> Pair:  # type: ignore[override]
        if self._fresh is not None:
            return self._fresh.pair
        pair = self.mechanism.pair
        known = Curve(pair, self.rounds)
        return ComposedPair(known).amplified(self.rate) if pair.encloses else HiddenSupremum(known, self.rate)

    @cached_property
    def attack_pair(self) -> Pair:  # type: ignore[override]
        if self._fresh is not None:
            return self._fresh.attack_pair
        if self.mechanism.attack_pair is self.mechanism.pair:
            return self.pair
        orders = self.mechanism.stand_in_attack(ALL_USERS)
        if orders is None:
            return NOTHING
        ahead, back = (ComposedPair(Curve(pair, self.rounds, ATTACK_RTOL)) for pair in orders)
        return HiddenOrder(ahead, self.rate, back)

    @property
    def hidden(self) -> bool:
        return self.rate < 1.0 or self.mechanism.hidden

    def assumptions(self) -> dict[str, str]:
        base = self.mechanism.hidden_assumptions()
        inner = f"; in it, {base['sampling']}" if self.mechanism.hidden else ""
        return base | {
            "sampling": f"one uniformly random cohort (rate {self.rate:g}), drawn once, the same for all {self.rounds}"
            f" rounds, never revealed to the adversary, and independent of the cohorts of other entries{inner};"
            f" {OUTPUTS_ONLY}; {CONCURRENT}"
        }
