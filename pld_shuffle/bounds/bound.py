"""A published bound, solved for each of its three unknowns: epsilon, delta and eps0.

A theorem comes in one of two forms: `EpsilonBound` gives epsilon from eps0 and delta, `DeltaBound`
gives delta from epsilon and eps0. What it gives is evaluated. The other unknowns are solved for:
the smallest epsilon, the smallest delta or the largest eps0 at which the bound still proves the
target. *Each answer is safe*: fed back into the bound, it does not miss the target (`solving`
evaluates the bound at the very number it returns).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass

from ..numerics.solving import largest_satisfying, smallest_satisfying
from .domain import (
    EPS0_LIMIT,
    OutOfRange,
    count,
    delta_above,
    failure,
    local_budget,
    log_ratio,
    target,
)


@dataclass(frozen=True)
class EpsilonBound:
    """epsilon = formula(eps0, delta, n), an upper bound; +inf outside the theorem's range.

    It has to rise with eps0 and with 1/delta. `source` and `needs` name the theorem and its range
    in messages.
    """

    source: str
    needs: str
    formula: Callable[[float, float, int], float]

    def epsilon(self, *, eps0: float, delta: float, n: int) -> float:
        """The bound itself. One evaluation."""
        value = self.formula(local_budget(eps0), failure("delta", delta), count("n", n))
        return self._found(
            "epsilon", value if value < math.inf else None, eps0=eps0, delta=delta, n=n
        )

    def eps0(self, *, epsilon: float, delta: float, n: int) -> float:
        """The largest eps0 in range with at most this epsilon. About 20 evaluations."""
        limit, fail, users = target("epsilon", epsilon), failure("delta", delta), count("n", n)
        solution = largest_satisfying(
            lambda x: self.formula(x, fail, users) - limit, low=1e-12, high=EPS0_LIMIT, steps=1
        )
        return self._found("eps0", solution, epsilon=epsilon, delta=delta, n=n)

    def delta(self, *, epsilon: float, eps0: float, n: int) -> float:
        """The smallest delta in range with at most this epsilon. About 20 evaluations."""
        limit, budget, users = target("epsilon", epsilon), local_budget(eps0), count("n", n)
        solution = largest_satisfying(  # in log(1/delta), in which epsilon is nearly a square root
            lambda x: self.formula(budget, math.exp(-x), users) - limit,
            low=1e-12,
            high=-math.log(sys.float_info.min),
            steps=1,
        )
        value = None if solution is None else math.exp(-solution)
        return self._found("delta", value, epsilon=epsilon, eps0=eps0, n=n)

    def _found(self, unknown: str, value: float | None, **given: float) -> float:
        return _found(value, f"{self.source} gives no {unknown}", f"it needs {self.needs}", **given)


#: The solvers stay below eps0 by this factor: at eps0 pure local privacy takes over.
_BELOW_ONE = 1 - 1e-9


@dataclass(frozen=True)
class DeltaBound:
    """log delta = formula(epsilon, eps0, n), an upper bound, to nearest.

    It need not be monotone: several bounds rise again for large epsilon although the delta of a mechanism
    cannot. Epsilon and eps0 are therefore looked for on a grid. `source` names the theorem in messages.
    """

    source: str
    formula: Callable[[float, float, int], float]

    def delta(self, *, epsilon: float, eps0: float, n: int) -> float:
        """The bound itself, at most 1. One evaluation."""
        return self._delta(target("epsilon", epsilon), local_budget(eps0), count("n", n))

    def epsilon(self, *, eps0: float, delta: float, n: int) -> float:
        """The smallest epsilon < eps0 with at most this delta. About 260 evaluations."""
        budget, fail, users = local_budget(eps0), failure("delta", delta), count("n", n)
        top = budget * _BELOW_ONE
        solution = smallest_satisfying(
            lambda x: log_ratio(self._delta(x, budget, users), fail),
            low=min(1e-12, top / 2),
            high=top,
        )
        return self._found("epsilon below eps0", solution, eps0=eps0, delta=delta, n=n)

    def eps0(self, *, epsilon: float, delta: float, n: int) -> float:
        """The largest eps0 > epsilon with at most this delta. About 260 evaluations."""
        wanted, fail, users = target("epsilon", epsilon), failure("delta", delta), count("n", n)
        bottom, solution = wanted / _BELOW_ONE, None
        if bottom < EPS0_LIMIT:
            # beyond `top` there is no amplification, whatever the bound
            top = min(EPS0_LIMIT, max(2 * wanted, 2 * math.log(users) + wanted + 60))
            solution = largest_satisfying(
                lambda x: log_ratio(self._delta(wanted, x, users), fail), low=bottom, high=top
            )
        return self._found("eps0 above epsilon", solution, epsilon=epsilon, delta=delta, n=n)

    def _delta(self, epsilon: float, eps0: float, n: int) -> float:
        return delta_above(self.formula(epsilon, eps0, n))

    def _found(self, unknown: str, value: float | None, **given: float) -> float:
        return _found(
            value, f"{self.source} gives no {unknown}", "too few users to amplify", **given
        )


def _found(value: float | None, failed: str, reason: str, **given: float) -> float:
    if value is None:
        at = ", ".join(f"{name} = {number!r}" for name, number in given.items())
        raise OutOfRange(f"{failed} at {at}: {reason}")
    return value
