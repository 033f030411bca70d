"""An accountant that works with exact Renyi divergences, the ideal opponent of `accountant.Accountant`.

The divergences are those of the package's own pairs at any real order (`composition.renyi`). They add up over adaptive
rounds (Mironov 2017) and convert to (epsilon, delta) by Canonne, Kamath, Steinke 2020, Prop. 12.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from .bounds import EpsilonAtOrder, rdp_to_epsilon
from .composition.renyi import renyi_bounds
from .ledger import Ledger
from .numerics.validation import probabilities, real, real_array

# Relative widths of divergences: of those that count, and of those that only say where to look.
TIGHT, LOOSE = 4e-4, 0.05


class RenyiAccountant(Ledger):
    """(epsilon, delta) of the adaptive composition of all rounds, by exact Renyi divergences.

    The same `compose` and `get_epsilon` as `Accountant`, so that one can be swapped for the other. This is
    the best that Renyi accounting can do with these pairs: exact divergences, every real order > 1, and the conversion
    of Canonne, Kamath, Steinke 2020, Prop. 12. What is left to `Accountant` is what the conversion loses. All answers
    are upper bounds; infinite where the divergence is (a strong adversary's loss).

    >>> from pld_shuffle import ShuffledLDP
    >>> acc = RenyiAccountant().compose(ShuffledLDP(eps0=4.0, n=10_000), 10)
    >>> round(acc.get_epsilon(1e-6), 2)
    1.49
    """

    def get_rdp(self, alpha: Any, rtol: float = TIGHT) -> Any:
        """Renyi divergence of all rounds at orders `alpha` > 1, from above, to a relative width; float or array."""
        orders = real_array("alpha", alpha)
        ends = [count * renyi_bounds(mechanism.pair, orders, rtol=rtol).upper for mechanism, count in self.ledger]
        total = sum(ends, np.zeros(orders.shape)) * (1.0 + 1e-15 * (1 + len(ends)))
        return total if orders.ndim else float(total)

    def get_epsilon(self, delta: Any) -> Any:
        """Upper bound on epsilon at `delta` in [0, 1]; float, or array for an array.

        At delta = 0 the sum of the largest losses (order infinity). About 20 orders are evaluated.
        """
        values = probabilities("delta", delta)
        self._look_at(values)
        found = [self.epsilon_at_order(float(value)).epsilon for value in values.ravel()]
        return np.array(found).reshape(values.shape) if values.ndim else found[0]

    def epsilon_at_order(self, delta: float) -> EpsilonAtOrder:
        """The smallest epsilon over all orders, and its order (inf: the largest losses)."""
        failure = float(probabilities("delta", real("delta", delta)))
        largest = math.fsum(count * float(mechanism.pair.max_loss.upper) for mechanism, count in self.ledger)
        pure = EpsilonAtOrder(largest, math.inf)
        if failure >= 1.0:
            return EpsilonAtOrder(0.0, math.inf)
        if failure <= 0.0 or pure.epsilon == 0.0 or self.get_rdp(2.0, LOOSE) == math.inf:
            return pure
        found = self._best(lambda order, rdp: rdp_to_epsilon(orders=[order], rdp=[rdp], delta=failure).epsilon)
        return min(EpsilonAtOrder(*found), pure)

    def _best(self, value: Callable[[float, float], float]) -> tuple[float, float]:
        """The least value(order, divergence), and its order.

        With loose divergences factors 4 and 2 in order - 1, downhill from about where the tilted loss is out four
        deviations, and a minimum of one variable between the last ones; with tight ones once more nearby. Every order
        is valid: a missed minimum costs tightness only.
        """
        from scipy.optimize import minimize_scalar

        def order(exponent: float) -> float:
            return float(1.0 + 2.0 ** min(max(exponent, -7.0), 20.0))

        @cache
        def at(exponent: float, rtol: float = LOOSE) -> float:
            return value(order(exponent), self.get_rdp(order(exponent), rtol))

        square = sum(count * mechanism.pair.scale**2 for mechanism, count in self.ledger)
        best = float(round(math.log2(4.0 / math.sqrt(square))))
        for step in (2.0, 1.0):
            while at(beside := min((best - step, best + step), key=at)) < at(best):
                best = beside
        for rtol, near in ((LOOSE, 1.0), (TIGHT, 0.5)):
            best = minimize_scalar(at, bounds=(best - near, best + near), args=(rtol,), options={"xatol": 0.02}).x
        return at(best, TIGHT), order(best)
