"""What the published bounds accept: argument checks, `OutOfRange`, and rounding to the safe side.

Two kinds of refusal are kept apart. An argument that no bound could use (delta = 2, n = 0, a bool)
is a plain `ValueError` or `TypeError`. An argument that is meaningful but outside what a theorem
covers (eps0 = 4 in a theorem for eps0 < 1/2) is `OutOfRange`, a subclass of `ValueError`, so that
a comparison can catch it and say why the bound does not apply. No function of this package ever
returns nan.

Every function of this package evaluates the stated formula and then moves the answer to its safe
side by `SLACK` (relative in epsilon and eps0, absolute in log delta), which is far above the
rounding of the few operations involved: an upper bound is never returned too small because of
floating point.
"""

from __future__ import annotations

import math
import operator
import sys
from typing import Any, SupportsIndex, cast

from .. import validation

__all__ = ["EPS0_LIMIT", "SLACK", "OutOfRange"]

# Measured: the formulas agree with 50-digit evaluations to about 1e-14 (tests); 1e-12 leaves a
# wide margin.
SLACK = 1e-12

# Moments of the privacy amplification variable grow like exp(3 eps0); beyond this they would leave
# the
# range of doubles. No bound gives amplification there unless n > e^200.
EPS0_LIMIT = 200.0


_real = validation.real
positive = validation.positive_float


class OutOfRange(ValueError):
    """The arguments are meaningful, but outside the range in which the cited theorem holds."""


def fraction(name: str, value: Any) -> float:
    """`value` as a float in (0, 1); raises TypeError or ValueError naming it."""
    number = _real(name, value)
    if not 0 < number < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {value!r}")
    return number


def small_or_zero(name: str, value: Any) -> float:
    """`value` as a float in [0, 1); raises TypeError or ValueError naming it."""
    number = _real(name, value)
    if not 0 <= number < 1:
        raise ValueError(f"{name} must satisfy 0 <= {name} < 1, got {value!r}")
    return number


def count(name: str, value: Any, *, minimum: int = 1) -> int:
    """`value` as an int >= minimum; raises TypeError or ValueError naming it."""
    if isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    try:
        number = operator.index(cast(SupportsIndex, value))
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {value!r}") from None
    if not number >= minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {value!r}")
    return number


def local_budget(value: Any) -> float:
    """eps0 as a float in (0, EPS0_LIMIT]; raises OutOfRange above."""
    eps0 = positive("eps0", value)
    if not eps0 <= EPS0_LIMIT:
        raise OutOfRange(f"eps0 = {eps0!r}: evaluated only for eps0 <= {EPS0_LIMIT:g}")
    return eps0


def above(value: float) -> float:
    """A positive number moved up by the relative SLACK."""
    return value * (1 + SLACK)


def below(value: float) -> float:
    """A positive number moved down by the relative SLACK."""
    return value * (1 - SLACK)


def delta_above(log_delta: float) -> float:
    """exp(log_delta) moved up by SLACK, at most 1 (a vacuous bound) and never 0 by underflow."""
    if log_delta >= 0:
        return 1.0
    return min(1.0, max(math.exp(log_delta + SLACK * (1 - log_delta)), sys.float_info.min))


def log_expm1(x: float) -> float:
    """log(e^x - 1) for x > 0, without overflow."""
    if x > 30:
        return x + math.log1p(-math.exp(-x))
    return math.log(math.expm1(x))
