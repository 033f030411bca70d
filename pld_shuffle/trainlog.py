"""Training logs: one row per round in, the rounds as (mechanism, count) pairs out.

A federated training job writes one row per round, and the cohort changes from round to round::

    round,mechanism,n,eps0,population
    1,ldp,4873,2.0,1000000
    2,ldp,5120,2.0,1000000

The columns are the fields of `pld_shuffle.fields`; docs/fields.md and ``pld-shuffle account --help`` list
them. ``mechanism`` is ``ldp`` by default, ``count`` says how many equal rounds a row stands for, ``round`` is
a label that is never used in a computation. A blank cell counts as not given; blank lines are skipped.

A log may also be an open file, a list of mappings, or a pandas or polars data frame (`training_log`). It is
read as strictly.

Guarantee: a log is read to its end before anything is returned, so it is accounted in full or not at all. A
bad value is a `LogError` that names the line and the column. So is a column whose name is nearly that of a
field: to pass over ``counts`` would count 50 rounds as one. Any other column is ignored, and a note says so.
"""

from __future__ import annotations

import copy
import csv
import io
import itertools
import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Protocol

from .fields import (
    COLUMNS,
    MECHANISM_FIELDS,
    Field,
    FieldError,
    mechanism_from_values,
    near_miss,
    values_of,
)
from .mechanisms import Mechanism
from .numerics.validation import positive_int
from .texts import quoted

__all__ = [
    "COLUMNS",
    "FieldError",
    "LogError",
    "LogWarning",
    "TrainingLog",
    "compose_log",
    "integer_from_text",
    "mechanism_from_fields",
    "number_from_text",
    "parse_training_log",
    "read_training_log",
    "sample_training_log",
    "training_log",
]

#: A row: its place (line of the file or number of the row), and its cells in the header's order.
Row = tuple[int, Sequence[Any]]


class LogWarning(UserWarning):
    """Something about a log that a person should see; the log is accounted."""


class LogError(ValueError):
    """A training log that cannot be accounted.

    Attributes
    ----------
    name : str
        The log's name: a file name, or ``standard input``.
    line : int
        Line of the file, or row of a log that is no file; both counted from 1. 0 is all rows.
    column : str or None
        Name of the column, None where the line as a whole is at fault.
    reason : str
        What is wrong, value included.
    """

    def __init__(
        self, name: str, line: int, column: str | None, reason: str, *, unit: str = "line"
    ) -> None:
        place = f"{name}, {unit} {line}" if line else name
        if column is not None:
            place += f", column {column!r}"
        super().__init__(f"{place}: {reason}")
        self.name = name
        self.line = line
        self.column = column
        self.reason = reason


@dataclass(frozen=True)
class TrainingLog:
    """A log that was read in full.

    Attributes
    ----------
    name : str
        The log's name, as messages give it.
    rounds : tuple of (mechanism, count)
        One entry per row, in the order of the file: what was run, and how many times.
    notes : tuple of str
        One-line remarks that a person should see: columns ignored, round numbers missing.
    """

    name: str
    rounds: tuple[tuple[Mechanism, int], ...]
    notes: tuple[str, ...] = ()

    @property
    def total_rounds(self) -> int:
        """Rounds in all: the sum of the rows' counts."""
        return sum(count for _, count in self.rounds)


def number_from_text(field: str, text: str) -> float:
    """The finite decimal number written in `text`, e.g. ``2``, ``0.5`` or ``1e-6``.

    Raises
    ------
    FieldError
        If `text` is no decimal number ("nan" and "inf" are none), or one so large or so small
        that a double would hold infinity or zero in its place.
    """
    return float(Field(field, float, "", "").parse(text))


def integer_from_text(field: str, text: str) -> int:
    """The integer written in `text`; ``5000``, ``5000.0`` and ``5e3`` are the same, exactly.

    Raises
    ------
    FieldError
        If `text` is no decimal number, has a fractional part, or more than 18 digits.
    """
    return int(Field(field, int, "", "").parse(text))


def mechanism_from_fields(fields: Mapping[str, str]) -> Mechanism:
    """The mechanism described by texts, such as the cells of a log's row or flags.

    Parameters
    ----------
    fields : mapping of str to str
        Values as texts by the names of the columns, without ``round`` and ``count``. Fields that
        were not given are absent.

    Raises
    ------
    FieldError
        For a text that is no number, and as `fields.mechanism_from_values`.
    """
    return mechanism_from_values(values_of(fields, MECHANISM_FIELDS))


def _decoded(data: bytes, name: str) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise LogError(name, 1, None, "is UTF-16; save the log as UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        wrong = f"byte 0x{data[error.start]:02x} is not UTF-8"
        raise LogError(name, line, None, wrong) from error


class _Reader:
    """Reads rows under one header; whatever is wrong is a LogError that names the place.

    name : the log's. unit : what a place is, "line" or "row".
    """

    def __init__(self, name: str, unit: str) -> None:
        self._name = name
        self._unit = unit

    def error(self, place: int, column: str | None, reason: str) -> LogError:
        return LogError(self._name, place, column, reason, unit=self._unit)

    def read(self, header: Sequence[str], place: int, rows: Iterable[Row]) -> TrainingLog:
        """All rows, the header at `place`."""
        positions = self._positions(header, place)
        described = [column for column in positions if column != "round"]
        rounds: list[tuple[Mechanism, int]] = []
        labels: list[tuple[int, str]] = []
        seen: dict[str, tuple[Mechanism, int]] = {}
        for place, cells in rows:
            if "round" in positions:
                labels.append((place, str(cells[positions["round"]])))
            given = {column: cells[positions[column]] for column in described}
            key = repr(given)  # tells 1 from True, which are equal
            if key not in seen:
                seen[key] = self._round(given, place)
            rounds.append(seen[key])
        if not rounds:
            raise self.error(place + 1, None, "the log has a header and no rounds")
        notes = [self._ignored(header)]
        if all(count == 1 for _, count in rounds):
            notes.append(self._numbering(labels))
        return TrainingLog(
            name=self._name,
            rounds=tuple(rounds),
            notes=tuple(note for note in notes if note is not None),
        )

    def _positions(self, header: Sequence[str], place: int) -> dict[str, int]:
        """Position of every column that has a meaning."""
        positions: dict[str, int] = {}
        for position, title in enumerate(header):
            if title in positions:
                raise self.error(place, title, "appears twice in the header")
            if title in COLUMNS:
                positions[title] = position
        if not {"n", "mechanism"} & positions.keys():
            form = "begin with a comma-separated header" if self._unit == "line" else "have columns"
            found = quoted(",".join(header))
            raise self.error(place, "n", f"missing: the log must {form}, got {found}")
        for title in header:
            meant = None if title in COLUMNS else near_miss(title, taken=positions)
            if meant is not None:
                wrong = f"is no column; did you mean {meant!r}? Rename it or take it out"
                raise self.error(place, title, wrong)
        return positions

    def _round(self, given: Mapping[str, Any], place: int) -> tuple[Mechanism, int]:
        """Mechanism and count of one row."""
        values: dict[str, Any] = {}
        for column, cell in given.items():
            try:
                values |= values_of({column: cell}, COLUMNS)
            except (FieldError, TypeError) as error:
                reason = error.reason if isinstance(error, FieldError) else str(error)
                raise self.error(place, column, reason) from error
        count = values.pop("count", 1)
        try:
            return mechanism_from_values(values), positive_int("count", count)
        except FieldError as error:
            raise self.error(place, error.field, error.reason) from error
        except ValueError as error:
            raise self.error(place, "count", str(error)) from error

    def _ignored(self, header: Sequence[str]) -> str | None:
        unknown = list(dict.fromkeys(title for title in header if title not in COLUMNS))
        if not unknown:
            return None
        noun = "column" if len(unknown) == 1 else "columns"
        shown = ", ".join(title or "one without a name" for title in unknown)
        return f"{self._name}: ignored unknown {noun} {shown}"

    def _numbering(self, labels: list[tuple[int, str]]) -> str | None:
        """A remark where round numbers do not count up by one: rows may be missing or doubled."""
        numbers = []
        for place, text in labels:
            if not re.fullmatch("[0-9]{1,18}", text, re.ASCII):
                return None  # labels of another kind
            numbers.append((place, int(text)))
        for (_, before), (place, number) in itertools.pairwise(numbers):
            if number != before + 1:
                return (
                    f"{self._name}: round {number} follows round {before} at {self._unit} {place}; "
                    "the rows are accounted as they stand"
                )
        return None


def parse_training_log(text: str, name: str = "training log") -> TrainingLog:
    """Read a training log from its text; columns and meaning as in the module docstring.

    Parameters
    ----------
    text : str
        The CSV text: a header line, then one line per round.
    name : str
        What error messages and notes call the log.

    Raises
    ------
    LogError
        For the first thing that is wrong; nothing is returned for the rows before it.

    Notes
    -----
    Time and memory are linear in the text; equal rows share one mechanism.
    """
    lines = _lines(text, name)
    place, header = next(lines, (1, []))
    if not header:
        raise LogError(name, 1, None, "the log is empty")
    return _Reader(name, "line").read(header, place, _rows(lines, header, name))


def _lines(text: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """(line, stripped cells) of every row of the CSV text that is not blank."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, skipinitialspace=True)
    line = 1
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if cells not in ([], [""]):
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        raise LogError(name, max(line, reader.line_num), None, f"not CSV: {error}") from error


def _rows(
    lines: Iterable[tuple[int, list[str]]], header: Sequence[str], name: str
) -> Iterator[Row]:
    """The same, as many cells in each as there are columns."""
    for line, cells in lines:
        if len(cells) < len(header):
            missing = header[len(cells)] or None
            wrong = f"cell missing: {len(cells)} cells under {len(header)} columns"
            raise LogError(name, line, missing, wrong)
        if len(cells) > len(header):
            wrong = f"{len(cells)} cells under {len(header)} columns"
            raise LogError(name, line, None, wrong)
        yield line, cells


def training_log(source: Any, name: str = "training log") -> TrainingLog:
    """A training log from whatever holds one.

    Parameters
    ----------
    source : TrainingLog, path or "-", open file, data frame, or iterable of mappings
        A path or ``-`` as for `read_training_log`; a file open for reading, text or bytes; a pandas
        or polars data frame; or one mapping per round, from the names of columns to numbers or
        texts. None and "" count as not given, as do the gaps of a pandas frame.
    name : str
        What messages call a log that has no file name. They count the rows of a frame or of
        mappings from 1.

    Raises
    ------
    LogError
        As `parse_training_log`.
    TypeError
        For anything else.
    OSError
        If a file cannot be read.

    Examples
    --------
    >>> training_log([{"n": 5000, "eps0": 2.0, "count": 10}]).total_rounds
    10
    """
    if isinstance(source, TrainingLog):
        return source
    if isinstance(source, (str, os.PathLike)):
        return read_training_log(source)
    if hasattr(source, "read"):
        data = source.read()
        named = getattr(source, "name", None)
        name = Path(named).name if isinstance(named, str) else name
        text = _decoded(bytes(data), name) if not isinstance(data, str) else data
        return parse_training_log(text.removeprefix("\ufeff"), name)
    header, rows = _table(source)
    if not header:
        raise LogError(name, 0, None, "the log is empty", unit="row")
    return _Reader(name, "row").read(header, 0, enumerate(rows, 1))


class Composes(Protocol):
    """Whatever rounds can be added to: an accountant."""

    def compose(self, mechanism: Mechanism, count: int = 1, /) -> object:
        """Add `count` rounds of `mechanism`."""


def compose_log(ledger: Composes, source: Any) -> TrainingLog:
    """Compose all rounds of a log onto an accountant, or none of them if something is wrong.

    Parameters
    ----------
    ledger : Accountant or RenyiAccountant
    source : as for `training_log`

    Raises
    ------
    LogError, TypeError, OSError
        As `training_log`.
    ValueError
        As ``ledger.compose``, for mechanisms of another neighbouring relation than the ledger's.

    What a person should see of the log (columns ignored, round numbers missing) is a `LogWarning`.
    """
    log = training_log(source)
    trial = copy.copy(ledger)
    for accountant in (trial, ledger):
        for mechanism, count in log.rounds:
            accountant.compose(mechanism, count)
    for note in log.notes:
        warnings.warn(note, LogWarning, stacklevel=3)
    return log


def _table(source: Any) -> tuple[list[str], Iterable[Sequence[Any]]]:
    """Header and rows of a data frame or of mappings."""
    if hasattr(source, "iter_rows"):  # polars
        return list(source.columns), source.iter_rows()
    if hasattr(source, "itertuples"):  # pandas, which has gaps for cells that are blank
        cells = source.itertuples(index=False, name=None)
        gaps = source.isna().itertuples(index=False, name=None)
        pairs = zip(cells, gaps, strict=True)
        return [str(title) for title in source.columns], (
            [None if gap else cell for cell, gap in zip(*pair, strict=True)] for pair in pairs
        )
    wanted = "a path, an open file, a data frame or an iterable of mappings"
    if not isinstance(source, Iterable) or isinstance(source, (Mapping, bytes)):
        raise TypeError(f"source must be {wanted}, got {source!r}")
    mappings = list(source)
    for row in mappings:
        if not isinstance(row, Mapping):
            raise TypeError(f"source must be {wanted}, got {row!r} in it")
    header = list(dict.fromkeys(title for row in mappings for title in row))
    return [str(title) for title in header], (
        [row.get(title) for title in header] for row in mappings
    )


def read_training_log(source: str | os.PathLike[str]) -> TrainingLog:
    """Read a training log from a UTF-8 file (with or without a byte-order mark).

    Parameters
    ----------
    source : path, or "-"
        ``-`` reads standard input to its end.

    Raises
    ------
    LogError
        As :func:`parse_training_log`, and for text that is not UTF-8.
    OSError
        If the file cannot be read.
    """
    if os.fspath(source) == "-":
        name = "standard input"
        stream = getattr(sys.stdin, "buffer", None)
        text = sys.stdin.read() if stream is None else _decoded(stream.read(), name)
        return parse_training_log(text.removeprefix("\ufeff"), name)
    path = Path(source)
    return parse_training_log(_decoded(path.read_bytes(), path.name), path.name)


def sample_training_log() -> TrainingLog:
    """The log that ships with the package: 200 rounds, cohorts around 5,000 of 1,000,000 users.

    It is made up, by ``benchmarks/make_sample_log.py`` from a fixed seed.
    """
    data = (resources.files("pld_shuffle") / "data" / "sample_log.csv").read_bytes()
    return parse_training_log(_decoded(data, "sample_log.csv"), "sample_log.csv")
