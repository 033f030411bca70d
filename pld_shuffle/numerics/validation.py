"""The border: every number a caller passes in is checked here once, so the inside can trust it.

Conditions are written in their positive form (``if not 0 < value``), so that nan fails them, and the
messages name the argument and show the value.

A number need not be a double (a Fraction, a longdouble, a large integer). `rounding` says what becomes
of it: `Side.LOWER` gives the largest double at most the number, `Side.UPPER` the smallest at least the
number, on the side on which the caller's proof still covers the number itself. None refuses it: the
parameter of a mechanism has two ends to serve, and no double next to it serves both. A double is never
changed.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache, wraps
from typing import Annotated, Any, TypeVar, get_type_hints

import numpy as np
from numpy.typing import NDArray

from .sides import Side

#: What type checkers let through as one number, and as an array of them.
Scalar = float | Fraction | np.floating[Any] | np.integer[Any]
Numbers = Sequence[Scalar] | Sequence[Sequence[Scalar]] | NDArray[Any]

T = TypeVar("T")


class UnlikelyWarning(UserWarning):
    """A value that is allowed, and probably not what was meant. The answer is to what was asked."""


MOST_USERS = 10**13
MOST_INTEGER = 10**100  # a product of three is a double


def real(name: str, value: Any, rounding: Side | None = None) -> float:
    """`value` as a float, on the side `rounding` of it (module docstring).

    TypeError if it is not a real number (bool is not a number here), ValueError if it is too large
    for a double, or without `rounding` not a double.
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a real number, got {value!r}")
    # numpy rounds its integers before it compares them
    exact: Any = int(value) if isinstance(value, numbers.Integral) else value
    try:
        number = float(exact)
    except OverflowError:
        raise ValueError(f"{name} must be a double, got a number too large for one") from None
    # `float` rounds to nearest; the comparison with a double is exact. nan is a double.
    if rounding is None and number != exact and number == number:
        raise ValueError(f"{name} must be a double, such as {number!r}, got {value!r}")
    if rounding is Side.LOWER and number > exact:
        return math.nextafter(number, -math.inf)
    if rounding is Side.UPPER and number < exact:
        return math.nextafter(number, math.inf)
    return number


def positive_float(name: str, value: Any, rounding: Side | None = None) -> float:
    """`value` as a float with 0 < value < inf."""
    number = real(name, value, rounding)
    if not 0.0 < number < math.inf:
        raise ValueError(f"{name} must be positive and finite, got {value!r}")
    return number


def between(low: float, high: float, ends: str = "[]", rounding: Side | None = None) -> Callable[..., float]:
    """What reads a number between `low` and `high`: themselves, too, at "[" and "]", and not at "(" and ")"."""

    def check(name: str, value: Any, rounding: Side | None = rounding) -> float:
        number = real(name, value, rounding)
        if not (low <= number <= high and (ends[0] == "[" or low < number) and (ends[1] == "]" or number < high)):
            raise ValueError(f"{name} must be in {ends[0]}{low:g}, {high:g}{ends[1]}, got {value!r}")
        return number

    return check


open_unit = between(0.0, 1.0, "()")
unit_interval = between(0.0, 1.0, "(]")
tolerance = between(1e-9, 1.0, "(]", Side.LOWER)  # a relative width


def integer_in(name: str, value: Any, lowest: int, highest: int | None = None) -> int:
    """`value` as an int in [lowest, highest]; 1e4 is an integer, 2.5, nan and True are none."""
    whole = isinstance(value, numbers.Integral) or (
        isinstance(value, (float, np.floating)) and float(value).is_integer()
    )
    if isinstance(value, (bool, np.bool_)) or not whole:
        raise TypeError(f"{name} must be an integer, got {value!r}")
    number = int(value)
    if not lowest <= number <= (MOST_INTEGER if highest is None else highest):
        limits = f"in [{lowest}, {highest}]" if highest is not None else f"at least {lowest}"
        limits += " and at most 1e100" if highest is None and number > lowest else ""
        raise ValueError(f"{name} must be {limits}, got {value!r}")
    return number


def positive_int(name: str, value: Any, *, least: int = 1) -> int:
    """`value` as an int with value >= least."""
    return integer_in(name, value, least)


def users(name: str, value: Any) -> int:
    """`value` as a number of users, 1 <= value <= MOST_USERS."""
    n = positive_int(name, value)
    if not n <= MOST_USERS:
        raise ValueError(f"{name} must be at most 10**13, got {value!r}")
    return n


def choice(name: str, value: Any, options: tuple[str, ...]) -> str:
    """`value` if it is one of the strings `options`."""
    if value not in options:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, options))}, got {value!r}")
    return str(value)


def flag(name: str, value: Any) -> bool:
    """`value` if it is a bool."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return value


def instance(kind: type | tuple[type, ...], words: str) -> Callable[[str, Any], Any]:
    """What lets values of a class pass; TypeError for others, which says in `words` what they must be."""

    def check(name: str, value: Any) -> Any:
        if not isinstance(value, kind):
            raise TypeError(f"{name} must be {words}, got {value!r}")
        return value

    return check


def real_array(name: str, value: Any, rounding: Side | None = None) -> NDArray[np.float64]:
    """`value`, a real number or an array-like of them, as a float array (0-d for a scalar).

    With `rounding`, every entry lies on that side of the number given, and Fractions and integers
    of any size are welcome. Without, every entry must be a double, and Fractions are refused.
    """
    try:
        array = np.asarray(value)
    except ValueError as error:  # rows of several lengths
        raise ValueError(f"{name} must be a number or an array with rows of one length, got {value!r}") from error
    kind = array.dtype.kind
    if kind in "iuf":
        doubles = array.astype(np.float64)
        # numpy rounds its integers before it compares them
        exact = np.abs(doubles) < 2.0**53 if kind in "iu" else (doubles == array) | (array != array)
        if np.all(exact):
            return doubles
    if kind not in "iufO" or (kind == "O" and rounding is None):
        raise TypeError(f"{name} must be a real number or an array of them, got {value!r}")
    entries = [real(name, entry, rounding) for entry in array.ravel().tolist()]
    return np.array(entries, dtype=np.float64).reshape(array.shape)


def entries(most: float, meant: str) -> Callable[..., NDArray[np.float64]]:
    """What reads a float array with every entry from 0 to `most`."""

    def check(name: str, value: Any, rounding: Side | None = None) -> NDArray[np.float64]:
        array = real_array(name, value, rounding)
        if not np.all((array >= 0.0) & (array <= most)):
            raise ValueError(f"{name} must be {meant}, got {value!r}")
        return array

    return check


probabilities, nonnegatives = entries(1.0, "in [0, 1]"), entries(math.inf, "nonnegative")


Check = Callable[[str, Any], Any]


@cache
def _checks(kind: type) -> list[tuple[str, Check]]:
    """The checks in a class's annotations, those of base classes first."""
    hints = get_type_hints(kind, include_extras=True).items()
    return [(name, check) for name, hint in hints for check in getattr(hint, "__metadata__", ())]


class Checked:
    """A frozen dataclass that reads its arguments as their annotations say, those of its base classes first.

    ``Annotated[int, check]``: called with the argument's name and value, `check` returns what is kept, or raises. A
    subclass that annotates a field again says again what checks it.
    """

    def __post_init__(self) -> None:
        for name, check in _checks(type(self)):  # type: ignore[arg-type]
            object.__setattr__(self, name, check(name, getattr(self, name)))


PositiveInt = Annotated[int, positive_int]
UserCount = Annotated[int, users]
PositiveFloat = Annotated[float, positive_float]
OpenUnit = Annotated[float, open_unit]


def keywords_only(meant: str) -> Callable[[type[T]], type[T]]:
    """Class decorator: positional arguments are a TypeError that says what may be `meant`.

    For classes of one name of which each takes another number.
    """

    def guarded(maker: type[T]) -> type[T]:
        build: Callable[..., None] = maker.__init__

        @wraps(build)
        def by_keyword(self: T, *positional: Any, **given: Any) -> None:
            if positional:
                shown = ", ".join(map(repr, positional))
                raise TypeError(f"{maker.__name__} takes keywords only, got {shown}: {meant}")
            build(self, **given)

        maker.__init__ = by_keyword  # type: ignore[method-assign,assignment]
        return maker

    return guarded
