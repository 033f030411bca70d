"""Which side of the truth a number is on.

A bound is never an anonymous float inside the package: one-sided objects carry a `Side`, two-sided
answers are `Bounds`, whose fields have names.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, NamedTuple


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
