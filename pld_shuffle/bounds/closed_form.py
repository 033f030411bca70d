"""A closed-form bound on epsilon, valid up to some eps0, and what follows from it for the other unknowns."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from .domain import OutOfRange, above, count, delta_above, fraction, local_budget, positive
from .solving import largest_satisfying


@dataclass(frozen=True)
class ClosedForm:
    """epsilon = `bracket`(eps0, log delta, n), for eps0 <= `largest_eps0`(log delta, n).

    source, limit : how messages name the bound and its range. bracket : e^epsilon - 1, to nearest; what is
    returned is rounded up.
    """

    source: str
    limit: str
    largest_eps0: Callable[[float, int], float]
    bracket: Callable[[float, float, int], float]

    def epsilon(self, *, eps0: float, delta: float, n: int) -> float:
        """The bound itself; OutOfRange beyond `largest_eps0`."""
        budget, failure, users = local_budget(eps0), fraction("delta", delta), count("n", n)
        limit = self.largest_eps0(math.log(failure), users)
        if not budget <= limit:
            raise OutOfRange(
                f"eps0 = {eps0!r}: {self.source} needs eps0 <= {self.limit} = {limit:.4g}"
            )
        return self._epsilon(budget, math.log(failure), users)

    def eps0(self, *, epsilon: float, delta: float, n: int) -> float:
        """The largest eps0 in range with `epsilon` at most the one given; OutOfRange if there is none."""
        target, failure = positive("epsilon", epsilon), fraction("delta", delta)
        users, log_delta = count("n", n), math.log(failure)
        limit = self.largest_eps0(log_delta, users) * (1 - 1e-15)
        solution = None
        if limit > 1e-12:
            solution = largest_satisfying(
                lambda eps0: self._epsilon(eps0, log_delta, users) - target, low=1e-12, high=limit
            )
        if solution is None:
            raise OutOfRange(
                f"{self.source} allows no eps0 at epsilon = {epsilon!r}, delta = {delta!r}, n = {n!r}"
            )
        return solution

    def delta(
        self,
        root: float,
        log_least: float,
        log_solved: float,
        *,
        epsilon: float,
        eps0: float,
        n: int,
    ) -> float:
        """The larger of the least delta in range and the solved one; no solution unless root > 0."""
        log_delta = max(log_least, log_solved) if root > 0 else log_least
        if not (root > 0 and log_delta < 0):
            raise OutOfRange(
                f"{self.source} gives no delta < 1 at epsilon = {epsilon!r}, eps0 = {eps0!r}, n = {n!r}"
            )
        # The slack covers that `epsilon` itself is moved up: d log(delta)/d log(epsilon) is about
        # 2 log(1/delta).
        return delta_above(log_delta + 8e-12 * (1 - log_delta))

    def _epsilon(self, eps0: float, log_delta: float, n: int) -> float:
        return above(math.log1p(self.bracket(eps0, log_delta, n)))
