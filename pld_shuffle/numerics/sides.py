"""Which side of the truth a number is on.

A bound is never an anonymous float inside the package: one-sided objects carry a `Side`, two-sided
answers are `Bounds`, whose fields have names.
"""

from __future__ import annotations

import enum
from typing import Any, NamedTuple


class Side(enum.Enum):
    """The side of the truth on which a quantity is certified to lie."""

    LOWER = "lower"
    UPPER = "upper"


class Bounds(NamedTuple):
    """A certified enclosure: ``lower <= truth <= upper``; floats, or arrays of one shape."""

    lower: Any
    upper: Any
