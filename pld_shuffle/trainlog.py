"""Training logs: one row per round in, the rounds as (mechanism, count) pairs out.

    round,mechanism,n,eps0,population
    1,ldp,4873,2.0,1000000

The columns are the fields of `pld_shuffle.fields` (docs/fields.md, ``pld-shuffle account --help``). ``mechanism`` is
``ldp`` by default, ``count`` says how many equal rounds a row stands for, ``round`` is a label that is never used in a
computation. A blank cell counts as not given; blank lines are skipped.

Guarantee: a log is read to its end before anything is returned, so it is accounted in full or not at all. A bad value
is a `LogError` that names the line and the column. So is a column whose name is nearly that of a field: to pass over
``counts`` would count 50 rounds as one. Any other column is ignored, and a note says so.
"""

from __future__ import annotations

import csv
import io
import itertools
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from .fields import COLUMNS, FieldError, mechanism_from_values, near_miss, values_of
from .mechanisms import Mechanism
from .numerics.compiled import expect
from .numerics.tuning import PAIR_SECONDS
from .storage import quoted

__all__ = ["COLUMNS", "SAMPLE", "LogError", "LogWarning", "TrainingLog", "training_log"]

#: The log that ships with the package: 200 rounds, cohorts around 5,000 of 100,000 users. It is made up, by
#: ``benchmarks/make_sample_log.py`` from a fixed seed.
SAMPLE = Path(__file__).parent / "data" / "sample_log.csv"

#: A row: its place (line of the file or number of the row), and its cells in the header's order.
Row = tuple[int, Sequence[Any]]
Rounds = tuple[tuple[Mechanism, int], ...]


class LogWarning(UserWarning):
    """Something about a log that a person should see; the log is accounted."""


class LogError(ValueError):
    """A training log that cannot be accounted.

    name : the log's, a file name or ``standard input``. line : line of the file, or row of a log that is no file; both
    counted from 1, and 0 is all rows. column : its name, None where the line as a whole is at fault. reason : what is
    wrong, value included.
    """

    def __init__(self, name: str, line: int, column: str | None, reason: str, *, unit: str = "line") -> None:
        place = f"{name}, {unit} {line}" if line else name
        if column is not None:
            place += f", column {column!r}"
        super().__init__(f"{place}: {reason}")
        self.name, self.line, self.column, self.reason = name, line, column, reason


@dataclass(frozen=True)
class TrainingLog:
    """A log that was read in full.

    name : the log's, as messages give it. rounds : one (mechanism, count) per row, in order. notes : one-line remarks
    that a person should see, on columns ignored and round numbers missing. sha256 : of the file's bytes; None for a
    log that is no file.
    """

    name: str
    rounds: Rounds
    notes: tuple[str, ...] = ()
    sha256: str | None = None


def training_log(source: Any, name: str = "training log") -> TrainingLog:
    """A training log from whatever holds one; raises LogError for the first thing that is wrong, TypeError or OSError.

    source : the path of a UTF-8 file (with or without a byte-order mark) or ``-`` for standard input; a file open
    for reading, text or bytes; a pandas or polars data frame; or one mapping per round, from the names of
    columns to numbers or texts. None and "" count as not given, as do the gaps of a pandas frame.
    name : what messages call a log that has no file name; they count the rows of a frame or of mappings from 1.
    Time and memory are linear in the log; equal rows share one mechanism.

    >>> training_log([{"n": 5000, "eps0": 2.0, "count": 10}]).rounds
    ((ShuffledLDP(eps0=2.0, n=5000), 10),)
    """
    if isinstance(source, TrainingLog):
        return source
    if isinstance(source, (str, os.PathLike)) and os.fspath(source) == "-":
        if sys.stdin is None:
            raise LogError("standard input", 0, None, "it is closed")
        source, name = getattr(sys.stdin, "buffer", sys.stdin), "standard input"
    elif isinstance(source, (str, os.PathLike)):
        path = Path(source)
        source, name = io.BytesIO(path.read_bytes()), path.name
    elif isinstance(getattr(source, "name", None), str):
        name = Path(source.name).name
    unit, digest, remarks = "row", None, []
    try:
        if hasattr(source, "read"):
            unit, data = "line", source.read()
            digest = sha256(data.encode() if isinstance(data, str) else data).hexdigest()
            text = _decoded(data)
            if text.rstrip(" ")[-1:] not in ("", "\n", "\r"):
                remarks = ["the last line has no end; was the log written to its end?"]
            rows = _lines(text)
            place, header = next(rows, (1, []))
        else:
            header, cells = _table(source)
            place, rows = 0, iter(enumerate(cells, 1))
        rounds, notes = _read(header, place, rows, unit)
    except _Wrong as error:
        raise LogError(name, *error.args, unit=unit) from error.__cause__
    expect(PAIR_SECONDS * len(dict(rounds)))
    return TrainingLog(name, rounds, tuple(f"{name}: {note}" for note in (*remarks, *notes)), digest)


class _Wrong(Exception):
    """What is wrong with a log: its line or row, the column or None, the reason."""


def _read(header: Sequence[str], place: int, rows: Iterable[Row], unit: str) -> tuple[Rounds, list[str]]:
    """The rounds in all rows, the header at `place`, and remarks. unit : what a place is."""
    positions = _positions(header, place, unit)
    described = [column for column in positions if column != "round"]
    rounds: list[tuple[Mechanism, int]] = []
    labels: list[tuple[int, str]] = []
    seen: dict[str, tuple[Mechanism, int]] = {}
    blanks: dict[tuple[Any, str], list[int]] = {}  # places, of a kind of mechanism and a column
    kinds: dict[Any, int] = {}
    for place, cells in rows:
        if "round" in positions:
            labels.append((place, str(cells[positions["round"]])))
        given = {column: cells[positions[column]] for column in described}
        key = repr(given)  # tells 1 from True, which are equal
        if key not in seen:
            seen[key] = _round(given, place)
            one, other = (seen[key][0].relation, rounds[0][0].relation) if rounds else ("", "")
            if one != other:
                wrong = f"a round for neighbours that are {one}, in a log of others that are {other}"
                raise _Wrong(place, "neighbours" if "neighbours" in positions else None, wrong)
        rounds.append(seen[key])
        kind = given.get("mechanism")
        kinds[kind] = kinds.get(kind, 0) + 1
        for column in (column for column, cell in given.items() if cell in (None, "") and column != "count"):
            blanks.setdefault((kind, column), []).append(place)
    if not rounds:
        raise _Wrong(place + 1, None, "the log has a header and no rounds")
    notes = []
    if unknown := list(dict.fromkeys(title for title in header if title not in COLUMNS)):
        noun = "column" if len(unknown) == 1 else "columns"
        shown = ", ".join(title or "one without a name" for title in unknown)
        notes.append(f"ignored unknown {noun} {shown}")
    for (kind, column), places in blanks.items():
        if len(places) == 1 and kinds[kind] > 2:
            notes.append(f"{column} is blank at {unit} {places[0]} alone, which counts as not given")
    # Labels may be of another kind, and rows may stand for many rounds.
    if all(count == 1 for _, count in rounds) and all(re.fullmatch("[0-9]{1,18}", label) for _, label in labels):
        for (_, before), (place, label) in itertools.pairwise(labels):
            if int(label) != int(before) + 1:
                notes.append(
                    f"round {int(label)} follows round {int(before)} at {unit} {place}; "
                    "the rows are accounted as they stand"
                )
                break
    return tuple(rounds), notes


def _positions(header: Sequence[str], place: int, unit: str) -> dict[str, int]:
    """Position of every column that has a meaning."""
    if not header:
        raise _Wrong(place, None, "the log is empty")
    positions: dict[str, int] = {}
    for position, title in enumerate(header):
        if title in positions:
            raise _Wrong(place, title, "appears twice in the header")
        if title in COLUMNS:
            positions[title] = position
    for title in header if len(header) > 1 else ():  # one title: it may be all of them
        meant = None if title in COLUMNS else near_miss(title, taken=positions)
        if meant is not None:
            raise _Wrong(place, title, f"is no column; did you mean {meant!r}? Rename it or take it out")
    if not {"n", "mechanism"} & positions.keys():
        form = "begin with a comma-separated header" if unit == "line" else "have columns"
        wrong = f"missing: the log must {form}, got {quoted(','.join(header))}"
        raise _Wrong(place, "n", f"{wrong}; columns are {', '.join(COLUMNS[:4])}, ...: pld-shuffle account --help")
    return positions


def _round(given: Mapping[str, Any], place: int) -> tuple[Mechanism, int]:
    """Mechanism and count of one row."""
    values: dict[str, Any] = {}
    column = None
    try:
        for column, cell in given.items():
            values |= values_of({column: cell}, COLUMNS)
        count = values.pop("count", 1)
        return mechanism_from_values(values), count
    except FieldError as error:
        raise _Wrong(place, error.field, error.reason) from error
    except (TypeError, ValueError) as error:
        raise _Wrong(place, column, str(error)) from error


def _decoded(data: Any) -> str:
    """The text in a file's bytes, without a byte-order mark."""
    if isinstance(data, str):
        return data.removeprefix("\ufeff")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise _Wrong(1, None, "is UTF-16; save the log as UTF-8")
    try:
        return bytes(data).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _Wrong(line, None, f"byte 0x{data[error.start]:02x} is not UTF-8") from error


def _lines(text: str) -> Iterator[Row]:
    """(line, stripped cells) of every row of the CSV text that is not blank, as many cells in each as in the first."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, skipinitialspace=True)
    line, header = 1, None
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if cells not in ([], [""]):
                header = header or cells
                if len(cells) != len(header):
                    missing = (header[len(cells) :] or [""])[0] or None
                    wrong = f"{len(cells)} cells under {len(header)} columns"
                    raise _Wrong(line, missing, f"cell missing: {wrong}" if missing else wrong)
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        raise _Wrong(max(line, reader.line_num), None, f"not CSV: {error}") from error


def _table(source: Any) -> tuple[list[str], Iterable[Sequence[Any]]]:
    """Header and rows of a data frame or of mappings."""
    if hasattr(source, "iter_rows"):  # polars
        return list(source.columns), source.iter_rows()
    if hasattr(source, "itertuples"):  # pandas, which has gaps for cells that are blank
        whole = source.astype(object).where(source.notna(), None)
        return [str(title) for title in source.columns], whole.itertuples(index=False, name=None)
    wanted = "a path, an open file, a data frame or an iterable of mappings"
    if not isinstance(source, Iterable) or isinstance(source, (Mapping, bytes)):
        raise TypeError(f"source must be {wanted}, got {source!r}")
    rows = list(source)
    for row in rows:
        if not isinstance(row, Mapping):
            raise TypeError(f"source must be {wanted}, got {row!r} in it")
    header = list(dict.fromkeys(title for row in rows for title in row))
    return [str(title) for title in header], ([row.get(t) for t in header] for row in rows)
