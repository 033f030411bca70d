"""Which side of the truth a number is on, and how numbers are moved to a side.

A bound is never an anonymous float inside the package: one-sided objects carry a `Side`, two-sided answers are
`Bounds`, whose fields have names. A result of one operation is known to half a unit in the last place. A number derived
by a few operations is made once per side: rounded to nearest at every step, and then moved by the sum of the steps'
errors.
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
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Index = NDArray[np.int64]

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
    Array = Index = Any

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


ROUNDOFF = 2.0**-53  # the unit roundoff u: one operation errs by at most u, relative


def above(value: float, operations: float = 1.0) -> float:
    """A number not below the exact one, for a value with relative error up to `operations` u."""
    return math.nextafter(value + abs(value) * (operations * ROUNDOFF), math.inf)


def below(value: float, operations: float = 1.0) -> float:
    """A number not above the exact one, for a value with relative error up to `operations` u."""
    return math.nextafter(value - abs(value) * (operations * ROUNDOFF), -math.inf)


def total(values: Array) -> float:
    """The sum of nonnegative numbers, below 1e300 in all: of relative error u (1 + 1e-6), faster than by `math.fsum`.

    Each is split into a multiple of 2^-52 s, s >= twice the sum a power of 2, and a rest of at most 2^-53 s (Rump,
    Ogita and Oishi 2008, section 3). The multiples are added without error, whatever the order; of the rests, up to
    2^23 in number, a sum by pairs errs by 1e-7 u of all.
    """
    _, exponent = math.frexp(float(values.sum()))
    size = math.ldexp(1.0, max(exponent + 2, -900))
    multiple = (values + size) - size
    return float(multiple.sum() + (values - multiple).sum())
