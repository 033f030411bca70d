"""An accountant that works with exact Renyi divergences, the ideal opponent of `accountant.Accountant`.

The divergences are those of the package's own pairs at any real order (`composition.renyi_divergence`). They add
up over adaptive rounds (Mironov 2017) and convert to (epsilon, delta) by Canonne, Kamath, Steinke 2020, Prop. 12.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from .bounds import DeltaAtOrder, EpsilonAtOrder, rdp_to_delta, rdp_to_epsilon
from .composition import renyi_divergence as divergences
from .ledger import Ledger
from .mechanisms import Mechanism, as_mechanism
from .numerics.sides import Bounds
from .numerics.validation import (
    Numbers,
    Scalar,
    nonnegatives,
    probabilities,
    real,
    real_array,
)

Array = NDArray[np.float64]


def renyi_bounds(mechanism: Mechanism, alpha: Any, *, rtol: float = divergences.RTOL) -> Bounds:
    """Bounds(lower, upper) on the Renyi divergence of one round, the larger of both orders of two neighbours.

    Parameters: mechanism; alpha, orders > 1 (inf gives the largest loss), scalar or array; rtol, the
    relative width asked for, in (1e-9, 1]. The upper end is that of the pair, the lower end that of the attack pair, as
    in `Accountant`: where they differ, the width is what the proof may lose, too. Raises TypeError or ValueError naming
    the argument. Costs: see `composition.renyi_divergence`.
    """
    known = as_mechanism(mechanism)
    if known.attack_pair is known.pair:
        return divergences.renyi_bounds(known.pair, alpha, rtol=rtol)
    upper = divergences.renyi_divergence(known.pair, alpha, rtol=rtol)
    return Bounds(divergences.renyi_lower(known.attack_pair, alpha, rtol=rtol), upper)


def renyi_divergence(mechanism: Mechanism, alpha: Any) -> Any:
    """Renyi divergence of one round's pair at orders `alpha` > 1, from above; float, or array for an array.

    Multiply by the number of rounds to compose.
    """
    return divergences.renyi_divergence(as_mechanism(mechanism).pair, alpha)


class RenyiAccountant(Ledger):
    """(epsilon, delta) of the adaptive composition of all rounds, by exact Renyi divergences.

    The same `compose`, `get_epsilon` and `get_delta` as `Accountant`, so that one can be swapped
    for the other. This is the best that Renyi accounting can do with these pairs: exact divergences,
    every real order > 1, and the conversion of Canonne, Kamath, Steinke 2020, Prop. 12. What is left
    to `Accountant` is what the conversion loses. All answers are upper bounds; infinite where the
    divergence is (a strong adversary's loss).

    >>> from pld_shuffle import ShuffledLDP
    >>> acc = RenyiAccountant().compose(ShuffledLDP(eps0=4.0, n=10_000), 10)
    >>> round(acc.get_epsilon(1e-6), 3)
    1.491
    """

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[tuple[Mechanism, float], float] = {}

    @overload
    def get_rdp(self, alpha: Scalar) -> float: ...
    @overload
    def get_rdp(self, alpha: Numbers) -> Array: ...
    def get_rdp(self, alpha: Any) -> Any:
        """Renyi divergence of all rounds at orders `alpha` > 1, from above; float or array."""
        orders = real_array("alpha", alpha)
        if not np.all(orders > 1.0):
            raise ValueError(f"alpha must be greater than 1, got {alpha!r}")
        totals = [self._total(float(order)) for order in orders.ravel()]
        return np.array(totals).reshape(orders.shape) if orders.ndim else totals[0]

    @overload
    def get_epsilon(self, delta: Scalar) -> float: ...
    @overload
    def get_epsilon(self, delta: Numbers) -> Array: ...
    def get_epsilon(self, delta: Any) -> Any:
        """Upper bound on epsilon at `delta` in [0, 1]; float, or array for an array.

        At delta = 0 the sum of the largest losses (order infinity). About 25 orders are evaluated.
        """
        values = probabilities("delta", delta)
        found = [self.epsilon_at_order(float(value)).epsilon for value in values.ravel()]
        return np.array(found).reshape(values.shape) if values.ndim else found[0]

    @overload
    def get_delta(self, epsilon: Scalar) -> float: ...
    @overload
    def get_delta(self, epsilon: Numbers) -> Array: ...
    def get_delta(self, epsilon: Any) -> Any:
        """Upper bound on delta at `epsilon` in [0, inf]; float, or array for an array."""
        values = nonnegatives("epsilon", epsilon)
        found = [self.delta_at_order(float(value)).delta for value in values.ravel()]
        return np.array(found).reshape(values.shape) if values.ndim else found[0]

    def epsilon_at_order(self, delta: float) -> EpsilonAtOrder:
        """The smallest epsilon over all orders, and its order (inf: the largest losses)."""
        failure = float(probabilities("delta", real("delta", delta)))
        pure = EpsilonAtOrder(self._largest_loss, math.inf)
        if failure >= 1.0:
            return EpsilonAtOrder(0.0, math.inf)
        if failure <= 0.0 or pure.epsilon == 0.0 or self._total(2.0) == math.inf:
            return pure

        def epsilon(order: float, total: float) -> float:
            return rdp_to_epsilon(orders=[order], rdp=[total], delta=failure).epsilon

        order, value = self._best(epsilon)
        return EpsilonAtOrder(value, order) if value < pure.epsilon else pure

    def delta_at_order(self, epsilon: float) -> DeltaAtOrder:
        """The smallest delta over all orders, and its order (inf: the largest losses)."""
        target = float(nonnegatives("epsilon", real("epsilon", epsilon)))
        if target >= self._largest_loss:
            return DeltaAtOrder(0.0, math.inf)
        if self._total(2.0) == math.inf:
            return DeltaAtOrder(1.0, math.inf)

        def log_delta(order: float, total: float) -> float:
            found = rdp_to_delta(orders=[order], rdp=[total], epsilon=max(target, 1e-300)).delta
            return math.log(found)

        order, value = self._best(log_delta)
        return DeltaAtOrder(min(1.0, math.exp(value) * (1.0 + 1e-13)), order)

    @property
    def _largest_loss(self) -> float:
        return math.fsum(
            count * float(mechanism.pair.max_loss.upper) for mechanism, count in self.ledger
        )

    def _total(self, order: float) -> float:
        """The composed divergence at one order."""
        total = 0.0
        for mechanism, count in self.ledger:
            key = (mechanism, order)
            if key not in self._known:
                pair = mechanism.pair
                self._known[key] = float(divergences.renyi_divergence(pair, order, rtol=1e-3))
            total += count * self._known[key]
        return total * (1.0 + 1e-15 * len(self._counts))

    def _best(self, value: Callable[[float, float], float]) -> tuple[float, float]:
        """The order with the least value(order, divergence), and that value.

        A grid of factors 2 in order - 1, from 2^-7 to 2^20, downhill from 16; then golden section.
        Every order is valid, so a missed minimum costs tightness only.
        """
        seen: dict[float, float] = {}

        def at(exponent: float) -> float:
            if exponent not in seen:
                order = 1.0 + 2.0**exponent
                seen[exponent] = value(order, self._total(order))
            return seen[exponent]

        best = 4.0
        step = 2.0
        while step >= 1.0:
            moved = True
            while moved:
                moved = False
                for exponent in (best - step, best + step):
                    if -7.0 <= exponent <= 20.0 and at(exponent) < at(best):
                        best, moved = exponent, True
            step /= 2.0
        low, high = best - 1.0, best + 1.0
        golden = 0.5 * (math.sqrt(5.0) - 1.0)
        inner = (high - golden * (high - low), low + golden * (high - low))
        for _ in range(10):
            if at(inner[0]) <= at(inner[1]):
                high = inner[1]
            else:
                low = inner[0]
            inner = (high - golden * (high - low), low + golden * (high - low))
        found = min(seen, key=lambda exponent: seen[exponent])
        return 1.0 + 2.0**found, seen[found]


__all__ = ["RenyiAccountant", "renyi_bounds", "renyi_divergence"]
