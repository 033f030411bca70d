"""Filters and odometers: rounds, their parameters and which is the last may depend on everything that was seen.

An `Accountant` is right for rounds that were fixed beforehand. To choose the next mechanism by looking at outputs, and
to ask an accountant about what was run in the end, gives too small a number in general (Rogers et al. 2016; Regehr et
al. 2026, arXiv:2602.15815). Proofs, and when an accountant is enough: docs/howto/adaptive.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .accountant import Accountant
from .checkpoint import mechanism_from_state, rounds_state
from .composition.exchange import Budget, GaussianBudget, RenyiBudget
from .ledger import Ledger, composed, listed
from .mechanisms import Mechanism, as_mechanism
from .numerics.search import first_satisfying
from .numerics.sides import ROUNDOFF, Array, Side
from .numerics.validation import integer_in, open_unit, positive_float, positive_int, real, real_array
from .pairs.pair import Pair
from .renyi import RenyiAccountant

Planned = Iterable[tuple[Mechanism, int]]

SPACING = 4.0  # of the orders of an odometer, less 1, one to the next
PRECISION = 1e-3  # of `least_epsilon`
NEAR = 1.02  # times the accountant's epsilon: below, Renyi divergences are not asked whether they need less


class BudgetExceeded(ValueError):
    """Rounds that are not admitted; nothing of them has been composed."""


class PrivacyFilter(Ledger):
    """A run of adaptively chosen rounds that is (epsilon, delta)-DP, whatever is chosen and whenever it stops.

    epsilon, delta : the budget; epsilon positive and finite, delta in (0, 1).
    planned : (mechanism, count) pairs that will probably be run. They only decide between the two ways to pay; any
        other mechanisms can be composed instead. ValueError if the budget does not admit them.
    reserved : (mechanism, count) pairs that can be composed for nothing whenever one likes, which is as cheap as an
        accountant. What is left of the budget buys others, and more of these. ValueError if they are too much.
    order : pay with Renyi divergences of this order > 1 (inf: with largest losses); None: with Gaussian noise, or as
        `planned` says. Orders are better for few rounds of large bounded losses.

    The guarantee is for everything composed, together: `epsilon` at `delta`. What it assumes: each mechanism, and
    whether there is one, is chosen from outputs of earlier rounds only; `admits` was asked before the round was run
    (`compose` asks). Raises TypeError or ValueError naming the argument, also for a mechanism without a pair for both
    orders of two neighbours if Gaussian noise pays. Complexity: milliseconds for each distinct mechanism, then
    microseconds a round. Source: docs/howto/adaptive.md, Theorem 1; with `order`, Feldman and Zrnic 2021.

    >>> from pld_shuffle import PrivacyFilter, ShuffledLDP
    >>> run, step = PrivacyFilter(epsilon=1.0, delta=1e-6), ShuffledLDP(eps0=2.0, n=10_000)
    >>> run.compose(step, 20).admits(step, 100)
    False
    >>> stronger = ShuffledLDP(eps0=3.0, n=10_000)  # because the first rounds did not say enough
    >>> while run.admits(stronger):
    ...     run = run.compose(stronger)
    >>> run.rounds, round(run.remaining, 2)
    (31, 0.04)
    """

    SETTINGS = ("epsilon", "delta", "reserved", "order", "total", "left")

    def __init__(
        self, epsilon: float, delta: float, planned: Planned = (), *, reserved: Planned = (), order: float | None = None
    ) -> None:
        super().__init__()
        self._epsilon = positive_float("epsilon", epsilon, Side.LOWER)
        self._delta = open_unit("delta", delta, Side.LOWER)
        self._order: float | None = None if order is None else real("order", order)
        if self._order is not None and not self._order > 1.0:
            raise ValueError(f"order must be greater than 1, got {order!r}")
        self._reserved = dict(composed(Ledger(), listed("reserved", reserved)).ledger)
        if self._reserved and self._order is not None:
            raise ValueError(f"order must be None where rounds are reserved, got {order!r}")
        for mechanism in self._reserved:
            self._checked(mechanism, 1)
        self._budget: Budget = self._paying(self._order)
        if rounds := listed("planned", planned):
            self._choose(rounds)
        self._left = max(self._budget.total, 0.0)

    @classmethod
    def least_epsilon(cls, planned: Planned, delta: float) -> float:
        """The smallest epsilon, to 1e-3 relative from above, whose filter admits a run: what adaptivity costs.

        >>> from pld_shuffle import Accountant, PrivacyFilter, ShuffledLDP
        >>> run = [(ShuffledLDP(eps0=2.0, n=10_000), 50)]
        >>> f"{PrivacyFilter.least_epsilon(run, 1e-6) / Accountant().compose(*run[0]).get_epsilon(1e-6):.2f}"
        '1.00'
        """
        rounds, delta = listed("planned", planned), open_unit("delta", delta)
        plain = composed(Accountant(), rounds).get_epsilon(delta)
        if not 0.0 < plain < math.inf:
            raise ValueError(f"planned must lose something, and something finite, got {rounds!r}")
        pairs = [(mechanism.pair, count) for mechanism, count in rounds]
        high = math.inf
        if all(pair.symmetric for pair, _ in pairs):
            budget = GaussianBudget(2.0 * plain, delta)
            if budget.share_after(pairs) >= 0.0:
                found = first_satisfying(lambda x: -budget.at(x).share_after(pairs), plain, 2.0 * plain, rtol=PRECISION)
                high = math.inf if found is None else found
        if high < NEAR * plain:
            return high
        by_order = RenyiBudget(0.0, delta, composed(RenyiAccountant(), rounds).epsilon_at_order(delta).order)
        spent = sum(count * next(by_order.offers(pair, math.inf))[1] for pair, count in pairs)
        return min(high, (spent - by_order.total) * (1.0 + 1e-9))

    @property
    def epsilon(self) -> float:
        """The guarantee, at `delta`."""
        return self._epsilon

    @property
    def delta(self) -> float:
        """The guarantee's delta."""
        return self._delta

    @property
    def order(self) -> float | None:
        """The order of the Renyi divergences that are paid with; None: Gaussian noise."""
        return self._order

    @property
    def remaining(self) -> float:
        """The share of the budget that is left, from 1 down to 0."""
        return self._left / self._budget.total if self._budget.total > 0.0 else 0.0

    def admits(self, mechanism: Mechanism, count: int = 1) -> bool:
        """Whether `count` more rounds of `mechanism` fit, one after the other; nothing changes."""
        with self._lock:
            mechanism, count = self._checked(mechanism, count)
            bought = max(0, count - self._reserved.get(mechanism, 0))
            return self._budget.after(self._pair(mechanism), self._left, bought) >= 0.0

    def would_exceed(self, mechanism: Mechanism, *, epsilon: float, delta: float, count: int = 1) -> bool:
        """As an accountant's, for bridges: not `admits`; also True for a smaller epsilon or delta than the budget's."""
        return epsilon < self._epsilon or delta < self._delta or not self.admits(mechanism, count)

    def get_epsilon(self, delta: float) -> float:
        """The guarantee, whatever was run: the budget's epsilon, at its delta or a larger one; inf at a smaller one."""
        return self._epsilon if real("delta", delta) >= self._delta else math.inf

    def get_delta(self, epsilon: float) -> float:
        """The guarantee the other way round: the budget's delta, or 1 at a smaller epsilon than the budget's."""
        return self._delta if real("epsilon", epsilon) >= self._epsilon else 1.0

    def assumptions(self) -> dict[str, str]:
        """What the guarantee rests on, besides the assumptions of the mechanisms."""
        order = self._order
        paid = "Gaussian noise" if order is None else f"Renyi divergences of order {order:g}"
        return {
            "adaptivity": "mechanisms, their parameters and the last round may depend on all earlier outputs",
            "budget": f"epsilon={self._epsilon!r} at delta={self._delta!r}, fixed before the first round",
            "analysis": f"rounds are bought with {paid}",
        }

    def _pay(self, mechanism: Mechanism, count: int) -> None:
        free = min(count, self._reserved.get(mechanism, 0)) if self._reserved else 0
        left = self._budget.after(self._pair(mechanism), self._left, count - free)
        if left < 0.0:
            raise BudgetExceeded(
                f"mechanism must fit into the budget of epsilon={self._epsilon!r} at delta={self._delta!r},"
                f" of which {self.remaining:.3g} is left, got {count} rounds of {mechanism!r}"
            )
        self._left = left
        if free:
            self._reserved[mechanism] -= free

    def _checked(self, mechanism: Mechanism, count: int) -> tuple[Mechanism, int]:
        mechanism, count = super()._checked(mechanism, count)
        if self._order is None and not self._pair(mechanism).symmetric:
            raise ValueError(
                f"mechanism must have a pair for both orders of two neighbours, or the filter an order,"
                f" got {mechanism!r}"
            )
        return mechanism, count

    def _paying(self, order: float | None) -> Budget:
        if order is None:
            held = [(self._pair(mechanism), count) for mechanism, count in self._reserved.items()]
            return GaussianBudget(self._epsilon, self._delta, held)
        return RenyiBudget(self._epsilon, self._delta, order)

    def _choose(self, rounds: list[tuple[Mechanism, int]]) -> None:
        """Pay as leaves the largest share of the budget after the planned rounds."""
        orders = [self._order]
        if self._order is None and not self._reserved:
            orders = [composed(RenyiAccountant(), rounds).epsilon_at_order(self._delta).order]
            if all(mechanism.pair.symmetric for mechanism, _ in rounds):
                orders.insert(0, None)
        pairs = [(self._pair(mechanism), count) for mechanism, count in rounds]
        ways = [(self._paying(order), order) for order in orders]
        shares = [way.share_after(pairs) for way, _ in ways]
        self._budget, self._order = ways[int(np.argmax(shares))]
        if max(shares) < 0.0:
            raise ValueError(
                f"planned must fit into epsilon={self._epsilon!r} at delta={self._delta!r}, got {rounds!r};"
                " see PrivacyFilter.least_epsilon"
            )

    def _settings(self) -> dict[str, Any]:
        reserved = rounds_state((mechanism, count) for mechanism, count in self._reserved.items() if count)
        return {
            "epsilon": self._epsilon, "delta": self._delta, "reserved": reserved,
            "order": "inf" if self._order == math.inf else self._order,
            "total": self._budget.total, "left": self._left,
        }  # fmt: skip

    @classmethod
    def _of_settings(cls, settings: Mapping[str, Any]) -> PrivacyFilter:
        """With the budget as it was: another one would be found for what is reserved now."""
        order = settings["order"]
        new = cls(settings["epsilon"], settings["delta"], order=math.inf if order == "inf" else order)
        for held in settings["reserved"]:
            mechanism = mechanism_from_state(held["mechanism"], "reserved")
            new._reserved[mechanism] = positive_int("count", held["count"])
        most = max(new._budget.total, 0.0)
        total, left = real("total", settings["total"]), real("left", settings["left"])
        if not total <= most:
            raise ValueError(f"total must be at most {most!r}, got {total!r}")
        if not 0.0 <= left <= max(total, 0.0):
            raise ValueError(f"left must be from 0 to {total!r}, got {left!r}")
        if new._order is None:
            new._budget = GaussianBudget(new._epsilon, new._delta, total=total)
        new._left = left
        return new

    def __copy__(self) -> PrivacyFilter:
        new = self._of_settings(self._settings())
        new._counts, new._logs = dict(self._counts), list(self._logs)
        new._budget, new._pairs = self._budget, self._pairs  # with the prices that it knows
        return new


class PrivacyOdometer(Ledger):
    """An epsilon that holds at any time one may stop, chosen by what was seen, for adaptively chosen rounds.

    delta : in (0, 1).
    orders : Renyi orders > 1 among which delta is shared out equally. One order is tight near one length of the run
        only; `PrivacyOdometer.planned` chooses them.

    `get_epsilon()` after every round may be published and acted upon: the run up to any stopping time has loss at most
    the epsilon shown then, but for delta: E(1 - e^(epsilon - L))_+ <= delta with the epsilon of that time. Raises
    TypeError or ValueError naming the argument. Source: docs/howto/adaptive.md, Theorem 3; Feldman and Zrnic 2021.

    >>> from pld_shuffle import PrivacyOdometer, ShuffledLDP
    >>> step = ShuffledLDP(eps0=2.0, n=10_000)
    >>> run = PrivacyOdometer.planned([(step, 100)], delta=1e-6)
    >>> [round(run.compose(step, count).get_epsilon(), 2) for count in (10, 90)]
    [0.43, 1.43]
    """

    SETTINGS = ("delta", "orders")

    def __init__(self, delta: float, orders: ArrayLike) -> None:
        super().__init__()
        self._delta = open_unit("delta", delta, Side.LOWER)
        self._orders = real_array("orders", orders).ravel()
        if not (self._orders.size and np.all((self._orders > 1.0) & (self._orders < math.inf))):
            raise ValueError(f"orders must be greater than 1, and finite, got {orders!r}")
        share = self._delta / self._orders.size * (1.0 - 2.0 * ROUNDOFF)
        self._ways = [RenyiBudget(0.0, share, float(order)) for order in self._orders]

    @classmethod
    def planned(cls, planned: Planned, delta: float, *, orders: int = 3) -> PrivacyOdometer:
        """An odometer that is good near the end of a planned run, and at shorter ones: at 1/16 of it, 1/256, ..."""
        best = composed(RenyiAccountant(), listed("planned", planned)).epsilon_at_order(delta).order
        powers = SPACING ** np.arange(integer_in("orders", orders, 1, 12))
        return cls(delta, 1.0 + min(best - 1.0, 2.0**20) * powers)

    @property
    def delta(self) -> float:
        """The delta of every epsilon shown."""
        return self._delta

    def get_epsilon(self) -> float:
        """An upper bound on epsilon of all rounds so far, at `delta`, valid as a time to stop."""
        held = self.ledger
        if not held:
            return 0.0
        spent = [
            sum(count * next(way.offers(mechanism.pair, math.inf))[1] for mechanism, count in held) - way.total
            for way in self._ways
        ]
        least = min(spent) + 1e-14 * (len(held) + 8) * max(map(abs, spent))
        return max(0.0, least)

    def assumptions(self) -> dict[str, str]:
        """What the epsilon shown rests on, besides the assumptions of the mechanisms."""
        orders = ", ".join(f"{order:.4g}" for order in self._orders)
        return {
            "adaptivity": "mechanisms, their parameters and the time to stop may depend on all earlier outputs",
            "analysis": f"Renyi divergences of orders {orders}, fixed before the first round",
        }

    def _settings(self) -> dict[str, Any]:
        return {"delta": self._delta, "orders": self._orders.tolist()}


class IndividualFilter:
    """A filter for each of many users: who has too little left no longer takes part (Feldman, Zrnic 2021, section 4).

    epsilon : every user's budget, positive and finite, shape (users,).
    delta : in (0, 1).

    Neighbouring datasets differ in the data of one user, and whom a round asks may depend on outputs of earlier rounds
    and on names, not on data. Then each user has (epsilon, delta) of its own, at the prices of `PrivacyFilter`; rounds
    in which a user does not take part cost that user nothing.

    *The catch.* If whom a round asks, or a user's price, depends on data (a norm, say), then so does what is left:
    it must stay hidden, and the bound is for users who are added or removed, with mechanisms for that relation.
    Raises TypeError or ValueError naming the argument. A round takes a few passes over the users asked.

    >>> from pld_shuffle import IndividualFilter, ShuffledLDP
    >>> users = IndividualFilter(epsilon=[0.5, 1.0], delta=1e-6)
    >>> step = ShuffledLDP(eps0=2.0, n=10_000)
    >>> [int(sum(users.compose(step)[i] for _ in range(30))) for i in (0, 1)]
    [17, 30]
    """

    def __init__(self, epsilon: ArrayLike, delta: float) -> None:
        caps = real_array("epsilon", epsilon, Side.LOWER)
        if not (caps.ndim == 1 and caps.size and np.all((caps > 0.0) & (caps < math.inf))):
            raise ValueError(f"epsilon must be positive and finite, of shape (users,), got {epsilon!r}")
        delta = open_unit("delta", delta, Side.LOWER)
        # The allowance for tails is that of the largest budget: it is the smallest, and so right for all.
        self._budget = GaussianBudget(float(caps.max()), delta)
        known, place = np.unique(caps, return_inverse=True)
        totals = np.array([GaussianBudget(float(cap), delta).total for cap in known])
        self._totals: Array = totals[place.ravel()]
        self._left = self._totals.copy()
        self._pairs: dict[Mechanism, Pair] = {}

    @property
    def remaining(self) -> Array:
        """The share of each user's budget that is left, shape (users,). It may depend on data: keep it hidden."""
        return np.asarray(self._left / self._totals)

    def admits(self, mechanism: Mechanism, users: Any = None) -> NDArray[np.bool_]:
        """Which of the `users` (indices or a mask; None: all) may take part in one more round of `mechanism`."""
        return self._after(mechanism, users) >= 0.0

    def compose(self, mechanism: Mechanism, users: Any = None) -> NDArray[np.bool_]:
        """The same, and those pay for it. Let none of the others take part."""
        after = self._after(mechanism, users)
        fits = after >= 0.0
        if users is None:
            self._left = after if fits.all() else np.where(fits, after, self._left)
        else:
            chosen = np.arange(self._left.size)[users]
            if np.unique(chosen).size < chosen.size:
                raise ValueError("users must be different from each other")
            self._left[chosen[fits]] = after[fits]
        return fits

    def _after(self, mechanism: Mechanism, users: Any) -> Array:
        pair = self._pairs.setdefault(as_mechanism(mechanism), mechanism.pair)
        if not pair.symmetric:
            raise ValueError(f"mechanism must have a symmetric pair, got {mechanism!r}")
        return self._budget.after_each(pair, self._left if users is None else self._left[users])
