"""Calibration of a protocol to a privacy budget: the least noise that the accountant can prove.

A protocol has one positive parameter of noise, in which its privacy is monotone; `calibration.safe_end`
searches. That it is monotone only steers the search: what is returned was accounted for by itself, and its
certified *upper* epsilon at delta is at most the one asked for.

`Calibrated.from_budget` is the one implementation. A protocol says which protocol it begins with (`_begun`), how
the parameter is put in (`_with_noise`), and where to look for it (`_search`).
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, TypeVar

from ..composition.attempts import AccuracyWarning, Composition
from ..numerics.search import FIRST_FACTOR, LOOSE_RTOL, InfeasibleError, safe_end
from ..numerics.sides import Bounds
from ..numerics.validation import open_unit, positive_float, positive_int
from .protocol import Protocol

P = TypeVar("P", bound="Calibrated")

RTOL = 1e-3  # of the accountant's brackets on delta, `Protocol.accountant`'s default
WIDTH = 1e-5  # relative width to which the parameter is found; far below what it does to the error


@dataclass(frozen=True)
class Budget:
    """What all rounds may spend together. Raises TypeError or ValueError naming the argument."""

    epsilon: float
    delta: float
    rounds: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive_float("epsilon", self.epsilon))
        object.__setattr__(self, "delta", open_unit("delta", self.delta))
        object.__setattr__(self, "rounds", positive_int("rounds", self.rounds))


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


class Calibrated(Protocol):
    """A protocol whose noise is found from a privacy budget."""

    @classmethod
    def from_budget(
        cls: type[P],
        epsilon: float,
        delta: float,
        n: int,
        *,
        rounds: int = 1,
        honest_fraction: float = 1.0,
        **design: Any,
    ) -> P:
        """The least noise whose `rounds` rounds the accountant proves (epsilon, delta)-private.

        design : the protocol's other parameters, as for its constructor; the class says which have a default
        here. Raises TypeError or ValueError naming a bad argument, and `calibration.InfeasibleError`, a
        ValueError, if the most noise is not enough, naming budget and users. About ten compositions.
        """
        budget = Budget(epsilon, delta, rounds)
        return cls._within(budget, n=n, honest_fraction=honest_fraction, **design)

    @classmethod
    def _within(cls: type[P], budget: Budget, **design: Any) -> P:
        """The protocol with the least error for the budget; to be overridden where the design is looked for, too."""
        return cls._begun(**design)._calibrated(budget)

    @classmethod
    @abstractmethod
    def _begun(cls: type[P], *_: Any, **design: Any) -> P:
        """A protocol of this design (by keyword: n, honest_fraction and the protocol's own) with any noise."""

    @abstractmethod
    def _with_noise(self: P, parameter: float) -> P:
        """The same protocol with other noise."""

    @abstractmethod
    def _search(self, budget: Budget) -> Search:
        """Where to look for the parameter of `_with_noise`."""

    def _calibrated(self: P, budget: Budget) -> P:
        """This protocol with the least noise for the budget."""
        search = self._search(budget)
        # So that an accountant asked for delta, whose bracket is a little different, says at most delta, too.
        failure = budget.delta * (1.0 - RTOL)

        def spent(parameter: float, rtol: float = RTOL) -> Bounds[float]:
            """What is proved, from both sides; no attack is needed to look for it."""
            ledger = self._with_noise(parameter).ledger(budget.rounds)
            pairs = [(mechanism.pair, count) for mechanism, count in ledger]
            return Composition(pairs, rtol).epsilons(failure)

        with warnings.catch_warnings():
            # A bracket wider than wanted is certified all the same, and its upper end decides.
            warnings.simplefilter("ignore", AccuracyWarning)
            try:
                end = safe_end(
                    spent, budget.epsilon, low=search.low, high=search.high,
                    increasing=search.increasing, rtol=WIDTH, start=search.guess, stride=search.stride,
                    loose=lambda parameter: spent(parameter, LOOSE_RTOL),
                )  # fmt: skip
            except InfeasibleError as error:
                least = error.best
                assert least is not None
                noisiest = self._with_noise(search.low if search.increasing else search.high)
                raise InfeasibleError(
                    f"epsilon={budget.epsilon!r} at delta={budget.delta!r} cannot be proved for n={self.n}"
                    f" users ({self.honest} honest) and rounds={budget.rounds}: with the most noise,"
                    f" {noisiest!r} spends {least.lower:.4g} to {least.upper:.4g}; more honest users, fewer"
                    " rounds, or a larger epsilon or delta would help"
                ) from error
        return self._with_noise(end.value)
