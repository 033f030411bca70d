"""A sticky cohort: drawn once, hidden, and the same for many rounds (docs/people.md, section 3).

Let h be the profile of the T rounds on a known cohort, to which the target belongs with probability r. By advanced
joint convexity (Balle, Barthe, Gaboardi 2018, Thm 2) the view of all T rounds together has H_s <= r h((s - 1 + r)/r), s
>= 1, and by reflection for s < 1: the general amplification of the *composed* pair, once. For T = 1 Theorem C of
docs/swap.md is sharper. The lower ends' attack: all other users hold the target's second value, so that who stands in
looks like the second dataset. With (P_0, P_1) the two views of a known cohort it is the ordered pair (r P_0 + (1-r)
P_1, P_1); the reversed one has H_s = (1-b) H_{r s/(1-b)}(P_1 || P_0), b = s (1-r), and 0 from b = 1 on.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import ClassVar

from ..composition.curve import ComposedPair, Curve, HiddenSupremum
from ..numerics.validation import positive_int
from ..pairs.cohort import ALL_USERS
from ..pairs.discrete import NOTHING
from ..pairs.pair import Pair
from ..pairs.profile import HiddenOrder
from ..randomizers.base import settle
from .base import CONCURRENT, OUTPUTS_ONLY, Mechanism, OfMechanism, as_mechanism
from .sampling import PoissonSampled, Subsampled, population_and_rate

ATTACK_RTOL = 3e-4  # well inside what one round is asked for: then no law is made of it


@dataclass(frozen=True, repr=False)
class StickyCohort(OfMechanism):
    """`rounds` rounds of a mechanism on one hidden cohort that stays the same in all of them.

    Parameters
    ----------
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
    rounds: int
    _: KW_ONLY
    population: int | None = None
    rate: float = None  # type: ignore[assignment]

    CHECKS: ClassVar = {"rounds": positive_int}

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
        if pair.encloses:
            return ComposedPair(known).amplified(self.rate)
        return HiddenSupremum(known, self.rate)

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

    @property
    def derived(self) -> str:  # type: ignore[override]
        return "" if self.population is None else "rate"

    def assumptions(self) -> dict[str, str]:
        base = self.mechanism.hidden_assumptions()
        inner = f"; in it, {base['sampling']}" if self.mechanism.hidden else ""
        return base | {
            "sampling": f"one uniformly random cohort (rate {self.rate:g}), drawn once, the same for all {self.rounds}"
            f" rounds, never revealed to the adversary, and independent of the cohorts of other entries{inner};"
            f" {OUTPUTS_ONLY}; {CONCURRENT}"
        }
