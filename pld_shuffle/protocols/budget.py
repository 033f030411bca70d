"""Calibration of a protocol to a privacy budget: the least noise that the accountant can prove.

A protocol has one positive parameter of noise, in which its privacy is monotone; `search.safe_end`
searches. That it is monotone only steers the search: what is returned was accounted for by itself, and its
certified *upper* epsilon at delta is at most the one asked for.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

from ..composition.attempts import AccuracyWarning, Composition
from ..mechanisms import Mechanism
from ..numerics.search import FIRST_FACTOR, LOOSE_RTOL, safe_end
from ..numerics.sides import Bounds
from ..numerics.validation import open_unit, positive_float, positive_int
from ..randomizers.base import settle

Ledger = tuple[tuple[Mechanism, int], ...]

RTOL = 1e-3  # of the accountant's brackets on delta, `Protocol.accountant`'s default
WIDTH = 1e-5  # relative width to which the parameter is found; far below what it does to the error


@dataclass(frozen=True)
class Budget:
    """What all rounds may spend together. Raises TypeError or ValueError naming the argument."""

    epsilon: float
    delta: float
    rounds: int

    def __post_init__(self) -> None:
        settle(
            self,
            epsilon=positive_float("epsilon", self.epsilon),
            delta=open_unit("delta", self.delta),
            rounds=positive_int("rounds", self.rounds),
        )


@dataclass(frozen=True)
class Search:
    """Where to look for the parameter: [low, high], from `guess`, which may be wrong by a factor of `stride`.

    increasing : epsilon grows with the parameter.
    """

    low: float
    high: float
    guess: float
    increasing: bool = False
    stride: float = FIRST_FACTOR


def least_noise(ledger: Callable[[float], Ledger], search: Search, budget: Budget) -> float:
    """The parameter of the least noise for the budget, asked for by itself; InfeasibleError if there is none.

    ledger : what all rounds cost with this noise.
    """
    # So that an accountant asked for delta, whose bracket is a little different, says at most delta, too.
    failure = budget.delta * (1.0 - RTOL)

    def spent(parameter: float, rtol: float = RTOL) -> Bounds[float]:
        """What is proved, from both sides; no attack is needed to look for it."""
        pairs = [(mechanism.pair, count) for mechanism, count in ledger(parameter)]
        return Composition(pairs, rtol).epsilons(failure)

    with warnings.catch_warnings():
        # A bracket wider than wanted is certified all the same, and its upper end decides.
        warnings.simplefilter("ignore", AccuracyWarning)
        end = safe_end(
            spent, budget.epsilon, low=search.low, high=search.high, increasing=search.increasing,
            rtol=WIDTH, start=search.guess, stride=search.stride,
            loose=lambda parameter: spent(parameter, LOOSE_RTOL),
        )  # fmt: skip
    return end.value
