"""Numbers as text, read without a guess; files that are written whole or not at all; a table that grows by a row.

A number is written in decimal, in ASCII, without grouping (``10,000`` is ten in some countries). An integer may be
written as a decimal (``4.0``, ``5e3``), since spreadsheets and data frames do so; it is read exactly. Files are written
aside, flushed, and put in place in one step (`os.replace`). A table that grows is flushed line by line: a writer that
is killed leaves at most one torn line, the last, which is dropped when the file is opened again.
"""

from __future__ import annotations

import contextlib
import csv
import io
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?", re.ASCII)
_GROUPED = re.compile(r"[+-]?[0-9]{1,3}(?:[,_' ][0-9]{3})+", re.ASCII)
MOST_DIGITS = 18  # of an integer (10^18 users are enough for anybody)
LONGEST_QUOTE = 40


def quoted(text: str) -> str:
    """A text for a message: in quotes, and not too long."""
    return repr(shortened(text, LONGEST_QUOTE))


def shortened(text: str, most: int = 100) -> str:
    """A text of hardly more than `most` characters."""
    return text if len(text) <= most else text[:most] + "..."


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


def writable(path: str | os.PathLike[str]) -> Path:
    """The file that `replacing` would write; ValueError where it could not, as far as one can tell."""
    target, wrong = Path(os.path.realpath(path)), None
    if target.exists() and not target.is_file():
        wrong = "be a regular file"
    elif not target.parent.is_dir():
        wrong = "lie in a directory that exists"
    elif not os.access(target.parent, os.W_OK):
        wrong = "lie in a directory that can be written"
    if wrong is not None:
        raise ValueError(f"path must {wrong}, got {os.fspath(path)!r}")
    return target


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A binary file to write into; it becomes `path` if the block ends without an exception.

    Links are followed, the permissions of an existing file are kept. Raises OSError, or ValueError as `writable`.
    """
    target = writable(path)
    os.umask(umask := os.umask(0o022))
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~umask
    handle, temporary = tempfile.mkstemp(prefix=f".{target.stem}-", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write `text` as UTF-8, with its line ends as they are, all of it or nothing."""
    with replacing(path) as file:
        file.write(text.encode("utf-8"))


@contextlib.contextmanager
def growing_table(
    path: str | os.PathLike[str], columns: Sequence[str]
) -> Iterator[tuple[list[dict[str, str | None]], Callable[[Mapping[str, Any]], None]]]:
    """The rows of a CSV file, made if it is not there, and what appends one to it; None is an empty cell.

    Numbers are written so that they read back exactly, a row on one line. One writer at a time. Raises ValueError if
    the suffix is another or the file holds anything but rows of these `columns`; OSError.
    """
    if Path(path).suffix.lower() != ".csv":
        raise ValueError(f"output must end in .csv; got {os.fspath(path)!r}")
    with open(path, "a+b") as file:

        def write(cells: Iterable[Any]) -> None:
            text = io.StringIO()
            csv.writer(text, lineterminator="\n").writerow(cells)
            file.write(text.getvalue().encode("utf-8"))
            file.flush()

        file.seek(0)
        data, header = file.read(), ",".join(columns).encode() + b"\n"
        whole = data.rfind(b"\n") + 1
        rows, line = [], 1
        try:
            if data[: len(header)] != header[: len(data)]:
                raise ValueError("another header")
            for line, text in enumerate(data[len(header) : whole].split(b"\n")[:-1], 2):  # noqa: B007
                (cells,) = csv.reader([text.decode("utf-8")], strict=True)
                rows.append(dict(zip(columns, (cell or None for cell in cells), strict=True)))
        except (ValueError, csv.Error) as error:
            wrong = f"output {os.fspath(path)!r} is there and no table to go on with: line {line}, {error}"
            raise ValueError(wrong) from error
        file.truncate(whole)  # without a torn last line
        if whole == 0:
            write(columns)
        yield rows, lambda row: write(None if row[c] is None else " ".join(str(row[c]).split()) for c in columns)
