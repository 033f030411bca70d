"""Tables: rows of numbers and words as CSV or JSON, and a file that grows by one row at a time.

A row maps the columns to None, int, float or one line of text. CSV writes None as an empty cell; JSON, which
has no infinity, writes it as "inf". Doubles are written so that they read back exactly, so a row is the same
after a round trip. Texts that look like numbers become numbers.

A `GrowingTable` appends whole lines and flushes each. A writer that is killed leaves at most one torn line,
the last: it has no line end, and is dropped when the file is opened again. A file that is no table of these
columns is refused and not touched.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from .files import write_text
from .texts import text_of, value_of

Row = dict[str, Any]
LINES = (".jsonl", ".ndjson")


def to_csv(rows: Sequence[Mapping[str, Any]], path: str | os.PathLike[str]) -> None:
    """Write rows of equal columns as CSV with a header, all of it or nothing."""
    columns = _columns(rows)
    lines = [_csv_line(columns), *(_csv_line(_cells(row, columns)) for row in rows)]
    write_text(path, "".join(lines))


def to_json(rows: Sequence[Mapping[str, Any]], path: str | os.PathLike[str]) -> None:
    """Write rows of equal columns as one JSON list of objects, all of it or nothing."""
    columns = _columns(rows)
    body = ",\n".join(" " + _json_line(row, columns).rstrip("\n") for row in rows)
    write_text(path, f"[\n{body}\n]\n" if rows else "[]\n")


class GrowingTable:
    """A CSV file (.csv) or JSON lines (.jsonl, .ndjson) that holds rows, and takes more.

    path : made if it is not there. columns : what every row has. A context manager; one writer at a time.
    Raises ValueError if the suffix is another or the file holds anything else; OSError.
    """

    def __init__(self, path: str | os.PathLike[str], columns: Sequence[str]) -> None:
        self._path = Path(path)
        self._columns = tuple(columns)
        suffix = self._path.suffix.lower()
        if suffix not in (".csv", *LINES):
            known = ", ".join((".csv", *LINES))
            raise ValueError(f"output must end in one of {known}; got {os.fspath(path)!r}")
        self._csv = suffix == ".csv"
        self._header = _csv_line(self._columns) if self._csv else ""
        file = self._path.open("r+b" if self._path.exists() else "x+b")
        try:
            self._rows = self._opened(file)
        except BaseException:
            file.close()
            raise
        self._file = file

    @property
    def rows(self) -> list[Row]:
        """The rows found when the file was opened."""
        return self._rows

    def append(self, row: Mapping[str, Any]) -> None:
        """Write one row and flush it."""
        line = (
            _csv_line(_cells(row, self._columns)) if self._csv else _json_line(row, self._columns)
        )
        self._file.write(line.encode("utf-8"))
        self._file.flush()

    def __enter__(self) -> GrowingTable:
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    def _opened(self, file: BinaryIO) -> list[Row]:
        """Read everything; then drop a torn last line and stand at the end."""
        data = file.read()
        whole = data.rfind(b"\n") + 1
        try:
            lines = data[:whole].decode("utf-8").split("\n")[:-1]
        except UnicodeDecodeError as error:
            raise self._refused(1, "not UTF-8") from error
        start = self._header or '{"' + self._columns[0] + '"'
        if not lines and data[: len(start)] != start.encode()[: len(data)]:
            raise self._refused(1, "another beginning")
        if lines and self._csv and lines.pop(0) + "\n" != self._header:
            raise self._refused(1, "another header")
        first = 2 if self._csv else 1
        rows = [self._row(line, number) for number, line in enumerate(lines, first)]
        file.seek(whole)
        file.truncate()
        if whole == 0:
            file.write(self._header.encode("utf-8"))
            file.flush()
        return rows

    def _row(self, line: str, number: int) -> Row:
        try:
            if self._csv:
                (cells,) = csv.reader([line], strict=True)
                return dict(zip(self._columns, map(_value, cells), strict=True))
            found = json.loads(line)
            if not isinstance(found, dict) or tuple(found) != self._columns:
                raise ValueError("other fields")
            return {name: _value(value) for name, value in found.items()}
        except (ValueError, TypeError, csv.Error) as error:
            raise self._refused(number, str(error)) from error

    def _refused(self, line: int, reason: str) -> ValueError:
        return ValueError(
            f"output {os.fspath(self._path)!r} is there and no table to go on with: line {line}, {reason}"
        )


def _value(cell: Any) -> Any:
    return None if cell is None or cell == "" else value_of(text_of(cell))


def _columns(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    columns = tuple(rows[0]) if rows else ()
    for i, row in enumerate(rows):
        if tuple(row) != columns:
            raise ValueError(f"rows[{i}] has other columns than rows[0]: {', '.join(row)}")
    return columns


def _cells(row: Mapping[str, Any], columns: Iterable[str]) -> list[str]:
    return ["" if row[name] is None else text_of(row[name]) for name in columns]


def _csv_line(cells: Iterable[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()


def _json_line(row: Mapping[str, Any], columns: Iterable[str]) -> str:
    ready = {name: _json_value(row[name]) for name in columns}
    return json.dumps(ready, allow_nan=False, ensure_ascii=False) + "\n"


def _json_value(value: Any) -> Any:
    found = None if value is None else value_of(text_of(value))
    return str(found) if isinstance(found, float) and math.isinf(found) else found
