"""The error of an estimate before it is made: what is exact and what a paper bounds it by."""

from __future__ import annotations

import math
from typing import NamedTuple


class ExpectedError(NamedTuple):
    """Mean squared error of one estimate, over the randomness of the protocol.

    exact
        The exact mean squared error: for the data given, or for the worst data if none was.
    published
        The paper's upper bound on the worst case; None where the paper states only an order.
    """

    exact: float
    published: float | None = None

    @property
    def root(self) -> float:
        """Square root of the exact mean squared error, in the units of the estimate."""
        return math.sqrt(self.exact)


def bernstein_radius(*, variance: float, largest: float, failure: float) -> float:
    """t with P[|S - E S| >= t] <= failure, for S a sum of independent variables.

    variance: of S. largest: every summand is within `largest` of its mean. failure: in (0, 1).
    t solves t^2 = 2 L (variance + largest t / 3), L = log(2 / failure): Bernstein's inequality
    (Boucheron, Lugosi, Massart, Concentration inequalities, 2013, equation 2.10), both tails.
    """
    log_odds = math.log(2 / failure)
    half = largest * log_odds / 3
    return half + math.sqrt(half * half + 2 * variance * log_odds)
