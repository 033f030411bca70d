"""What the published bounds accept, and how they round.

*Two refusals.* An argument that no bound could use (delta = 2, n = 0, a bool) is a ValueError or
TypeError of the package's border. One that has a meaning but lies outside what a theorem covers
(eps0 = 4 where the theorem needs eps0 < 1/2) is `OutOfRange`, a ValueError of its own: a comparison
catches it and says why the bound does not apply. No function of this package returns nan.

*Rounding of arguments.* A Fraction or a longdouble becomes the neighbouring double for which the bound is
larger: a target (epsilon, delta) is rounded down, what is spent (eps0, a Renyi divergence) is rounded up.

*Rounding of answers.* A bound is evaluated as it is written and then moved to its safe side by `MARGIN`,
relative in epsilon and eps0, absolute in log delta. That is far more than the rounding of the few operations.
"""

from __future__ import annotations

import math
import sys
from typing import Any

from ..numerics import validation
from ..numerics.sides import Side

MARGIN = 1e-12
"""The formulas agree with 50-digit evaluations to about 1e-14 (tests); this leaves a wide margin."""

EPS0_LIMIT = 200.0
"""Largest eps0 evaluated. Moments of the blanket grow like exp(3 eps0) and would leave the doubles beyond
about 236; no bound amplifies there unless n > e^200."""

COUNT_LIMIT = 10**18
"""Largest number of users, rounds or values: beyond every population, and exact to 1e-16 as a double."""


class OutOfRange(ValueError):
    """The arguments are meaningful, but outside the range in which the cited theorem holds."""


def target(name: str, value: Any) -> float:
    """An epsilon to be reached, in (0, inf), rounded down."""
    return validation.positive_float(name, value, Side.LOWER)


def failure(name: str, value: Any) -> float:
    """A delta to be reached, in (0, 1), rounded down."""
    return validation.open_unit(name, value, Side.LOWER)


def local_budget(value: Any, rounding: Side = Side.UPPER) -> float:
    """eps0 as a float in (0, EPS0_LIMIT], rounded up unless told otherwise; OutOfRange above."""
    eps0 = validation.positive_float("eps0", value, rounding)
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
