"""A published bound is one object: ``bound.epsilon(eps0=, delta=, n=)``, and of a `DeltaBound` also its delta.

*Two refusals.* An argument that no bound could use (delta = 2, n = 0, a bool) is a ValueError or TypeError. One that
has a meaning but lies outside what a theorem covers is `OutOfRange`. No bound returns nan.

*Rounding.* A Fraction or a longdouble becomes the neighbouring double for which the bound is larger. A bound is
evaluated as it is written, then moved to its safe side by `MARGIN`, relative in epsilon, absolute in log delta.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import IntEnum
from typing import Any

from ..numerics import validation
from ..numerics.search import first_satisfying
from ..numerics.sides import Side

MARGIN = 1e-12
"""The formulas agree with 50-digit evaluations to about 1e-14 (tests); this leaves a wide margin."""

EPS0_LIMIT = 200.0
"""Largest eps0 evaluated. Moments of the blanket grow like exp(3 eps0) and would leave the doubles beyond
about 236; no bound amplifies there unless n > e^200."""

SHARE = 1 - 1e-9
"""Of eps0, up to which epsilon is looked for."""

COUNT_LIMIT = 10**18
"""Largest number of users, rounds or values: beyond every population, and exact to 1e-16 as a double."""


class OutOfRange(ValueError):
    """The arguments are meaningful, but outside the range in which the cited theorem holds."""


class Adversary(IntEnum):
    """Whom a bound covers; each sees all that the one before sees."""

    REPORTS = 0
    WEAK = 1
    STRONG = 2

    @property
    def sees(self) -> str:
        """In words."""
        return (
            "only the shuffled reports",
            "who of the other users answered at random",
            "who answered at random, the target included",
        )[self]


class Bound(ABC):
    """An upper bound for one round of n honest users, substitution of one user's value.

    name, source : for tables, and to find the proof. covers : the adversary it holds for. only : the randomizers it is
    for, "k-ary randomized response" say; "" is every eps0-LDP randomizer. needs : of what it covers, for messages.
    """

    name: str
    source: str
    covers: Adversary = Adversary.REPORTS
    only: str = ""
    needs: str = "enough users to amplify, below eps0"

    @abstractmethod
    def formula(self, eps0: float, delta: float, n: int) -> float:
        """epsilon by the theorem, rounded up; +inf outside its range."""

    def epsilon(self, *, eps0: float, delta: float, n: int) -> float:
        """The bound: eps0 in (0, 200], delta in (0, 1), n users."""
        value = self.formula(local_budget(eps0), failure("delta", delta), count("n", n))
        if not value < math.inf:
            at = f"eps0 = {eps0!r}, delta = {delta:g}, n = {n!r}"
            raise OutOfRange(f"{self.source} gives no epsilon at {at}: it needs {self.needs}")
        return value


class DeltaBound(Bound):
    """delta as a function of epsilon; vacuous (1) or refused from eps0 on, where pure local privacy takes over.

    Several such bounds rise again for large epsilon although the delta of a mechanism cannot. Epsilon is therefore
    looked for on a grid up to eps0 times `SHARE`, in about 260 evaluations. *The answer is safe*: fed back into the
    bound, it does not miss the target.
    """

    @abstractmethod
    def curve(self, eps0: float, n: int) -> Callable[[float], float]:
        """An upper bound on delta, at most 1, as a function of epsilon; OutOfRange if it is not covered."""

    def delta(self, *, epsilon: float, eps0: float, n: int) -> float:
        """What the theorem states, at most 1. One evaluation."""
        return self.curve(local_budget(eps0), count("n", n))(target("epsilon", epsilon))

    def formula(self, eps0: float, delta: float, n: int) -> float:
        """The smallest epsilon below eps0 with at most this delta."""
        curve, top = self.curve(eps0, n), eps0 * SHARE
        solution = first_satisfying(lambda x: log_ratio(curve(x), delta), 1e-12 * top, top)
        return math.inf if solution is None else solution


# --- what a bound accepts, and how it rounds -----------------------------------------------------


def target(name: str, value: Any) -> float:
    """An epsilon to be reached, in (0, inf), rounded down."""
    return validation.positive_float(name, value, Side.LOWER)


def failure(name: str, value: Any) -> float:
    """A delta to be reached, in (0, 1), rounded down."""
    return validation.open_unit(name, value, Side.LOWER)


def local_budget(value: Any) -> float:
    """eps0 as a float in (0, EPS0_LIMIT], rounded up; OutOfRange above."""
    eps0 = validation.positive_float("eps0", value, Side.UPPER)
    if not eps0 <= EPS0_LIMIT:
        raise OutOfRange(f"eps0 = {eps0!r}: evaluated only for eps0 <= {EPS0_LIMIT:g}")
    return eps0


def count(name: str, value: Any, *, least: int = 1) -> int:
    """An int in [least, COUNT_LIMIT]."""
    return validation.integer_in(name, value, least, COUNT_LIMIT)


def raised(value: float) -> float:
    """A positive number moved up by the relative MARGIN."""
    return value * (1 + MARGIN)


def lowered(value: float) -> float:
    """A positive number moved down by the relative MARGIN."""
    return value * (1 - MARGIN)


def delta_above(log_delta: float) -> float:
    """exp(log_delta) moved up by MARGIN, at most 1 (a vacuous bound) and never 0 by underflow."""
    if log_delta >= 0:
        return 1.0
    return min(1.0, max(math.exp(log_delta + MARGIN * (1 - log_delta)), sys.float_info.min))


def log_ratio(value: float, limit: float) -> float:
    """log(value/limit) for value >= 0 and limit > 0: positive exactly if value > limit."""
    ratio = value / limit
    return math.log(ratio) if ratio > 0 else -math.inf


def log_expm1(x: float) -> float:
    """log(e^x - 1) for x > 0, without overflow."""
    if x > 30:
        return x + math.log1p(-math.exp(-x))
    return math.log(math.expm1(x))
