"""Numbers as text: what a person, a spreadsheet or another program wrote, read without a guess.

A number is written in decimal (``2``, ``0.5``, ``1e-6``), in ASCII, without grouping (``10,000`` is ten in some
countries); "nan" and "inf" are words, not numbers. An integer may be written as a decimal (``4.0``, ``5e3``), since
spreadsheets and data frames do so where a column has gaps; it is read exactly. `text_of` gives every value one text,
so that equal values have equal texts, and `value_of` reads it back.
"""

from __future__ import annotations

import numbers
import re
from decimal import Decimal
from typing import Any

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?", re.ASCII)
_GROUPED = re.compile(r"[+-]?[0-9]{1,3}(?:[,_' ][0-9]{3})+", re.ASCII)
#: Integers of more digits than this are refused (10^18 users are enough for anybody).
MOST_DIGITS = 18
LONGEST_QUOTE = 40


def quoted(text: str) -> str:
    """A text for a message: in quotes, and not too long."""
    return repr(text if len(text) <= LONGEST_QUOTE else text[:LONGEST_QUOTE] + "...")


def parse_number(text: str) -> float:
    """The finite decimal number written in `text`.

    Raises ValueError if `text` is no decimal number, or one so large or so small that a double would hold
    infinity or zero in its place.
    """
    text = _written(text, "a number")
    value = float(text)
    if abs(value) == float("inf"):
        raise ValueError(f"too large for a double: {quoted(text)}")
    if value == 0 and re.search("[1-9]", re.split("[eE]", text)[0]):
        raise ValueError(f"too small for a double: {quoted(text)}")
    return value


def parse_integer(text: str) -> int:
    """The integer written in `text`; ``5000``, ``5000.0`` and ``5e3`` are the same, exactly.

    Raises ValueError if `text` is no decimal number, has a fractional part, or more than 18 digits.
    """
    text = _written(text, "an integer")
    value = Decimal(text)
    if value.adjusted() >= MOST_DIGITS:
        raise ValueError(f"too large, more than {MOST_DIGITS} digits: {quoted(text)}")
    # The first test is for 1e-999999999, whose remainder underflows to zero.
    if (value != 0 and value.adjusted() < 0) or value % 1 != 0:
        raise ValueError(f"expected an integer, got {quoted(text)}")
    return int(value)


def _written(text: str, what: str) -> str:
    """The text without blanks around it; ValueError unless it is a decimal number."""
    text = text.strip()
    if not _NUMBER.fullmatch(text):
        grouped = "; digits are not grouped here" if _GROUPED.fullmatch(text) else ""
        raise ValueError(f"expected {what}, got {quoted(text)}{grouped}")
    return text


def text_of(value: Any) -> str:
    """The one text of a number or word: "4" for 4, 4.0 and " 4e0 "; shortest decimals, one line.

    Raises TypeError for anything but numbers (no bool) and texts.
    """
    if isinstance(value, bool) or not isinstance(value, (str, numbers.Real)):
        raise TypeError(f"must be a number or a text, got {value!r}")
    if isinstance(value, str):
        text = " ".join(value.split())
    elif isinstance(value, numbers.Integral):
        text = str(int(value))
    else:
        double = float(value)
        whole = abs(double) < 1e18 and double.is_integer()
        text = str(int(double)) if whole else repr(double)
    return str(value_of(text))


def value_of(text: str) -> int | float | str:
    """The number written in a text, as an int where it is one; the text itself if it is no number."""
    if text in ("inf", "-inf"):
        return float(text)
    for parse in (parse_integer, parse_number):
        try:
            return parse(text)
        except ValueError:
            pass
    return text
