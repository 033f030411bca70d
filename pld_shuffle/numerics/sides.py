"""Which side of the truth a number is on.

A bound is never an anonymous float inside the package: one-sided objects carry a `Side`, two-sided
answers are `Bounds`, whose fields have names.
"""

from __future__ import annotations

import enum
import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import TYPE_CHECKING, Any, NamedTuple

#: Significant digits of a bound for people.
DIGITS = 6


class Side(enum.Enum):
    """The side of the truth on which a quantity is certified to lie."""

    LOWER = "lower"
    UPPER = "upper"


if TYPE_CHECKING:
    # For type checkers the ends are floats or arrays, which a NamedTuple of Python 3.10 cannot say.
    from typing_extensions import TypeVar

    Ends = TypeVar("Ends", default=Any, covariant=True)

    class Bounds(tuple[Ends, ...]):
        def __new__(cls, lower: Ends, upper: Ends) -> Bounds[Ends]: ...
        @property
        def lower(self) -> Ends: ...
        @property
        def upper(self) -> Ends: ...

else:

    class Bounds(NamedTuple):
        """A certified enclosure: ``lower <= truth <= upper``; floats, or arrays of one shape."""

        lower: Any
        upper: Any


def _rounded(value: float, rounding: str) -> str:
    if not math.isfinite(value):
        return str(value)
    context = Context(prec=DIGITS, rounding=rounding)
    return format(float(context.create_decimal_from_float(value)), f".{DIGITS}g")


def upper_text(value: float) -> str:
    """An upper bound, rounded up."""
    return _rounded(value, ROUND_CEILING)


def lower_text(value: float) -> str:
    """A lower bound, rounded down."""
    return _rounded(value, ROUND_FLOOR)
