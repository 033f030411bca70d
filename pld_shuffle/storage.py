"""Files that are written whole or not at all, and tables of rows, also one that grows by a row at a time.

The content of a file goes into a temporary one of the same directory, is flushed to the disk, and takes the place of
the old file in one step (`os.replace`, atomic on POSIX and on Windows). So whoever reads sees the old content or the
new, and neither a crash nor a full disk spoils what was there.

A row maps the columns to None, int, float or one line of text. CSV writes None as an empty cell; JSON, which has no
infinity, writes it as "inf". Doubles are written so that they read back exactly, so a row is the same after a round
trip. Texts that look like numbers become numbers. A `GrowingTable` appends whole lines and flushes each. A writer
that is killed leaves at most one torn line, the last: it has no line end, and is dropped when the file is opened
again. A file that is no table of these columns is refused and not touched.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from .texts import text_of, value_of

Row = dict[str, Any]
SUFFIXES = (".csv", ".jsonl", ".ndjson")


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A binary file to write into; it becomes `path` if the block ends without an exception.

    Links are followed, the permissions of an existing file are kept. Raises OSError if the directory
    cannot be written, ValueError if `path` is there and no regular file.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise ValueError(f"path must be a regular file, got {os.fspath(path)!r}")
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


def data_frame(columns: Mapping[str, Any]) -> Any:
    """A pandas DataFrame of these columns. ImportError, which says what to do, without pandas."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError("to_frame needs pandas: python -m pip install pandas") from error
    return pandas.DataFrame(dict(columns))


class GrowingTable:
    """A CSV file (.csv) or JSON lines (.jsonl, .ndjson) that holds rows, and takes more.

    path : made if it is not there. columns : what every row has. A context manager; one writer at a time. `rows` are
    those found when the file was opened. Raises ValueError if the suffix is another or the file holds anything else;
    OSError.
    """

    def __init__(self, path: str | os.PathLike[str], columns: Sequence[str]) -> None:
        self._path = Path(path)
        self._columns = tuple(columns)
        suffix = self._path.suffix.lower()
        if suffix not in SUFFIXES:
            known = ", ".join(SUFFIXES)
            raise ValueError(f"output must end in one of {known}; got {os.fspath(path)!r}")
        self._csv = suffix == ".csv"
        self._file = self._path.open("r+b" if self._path.exists() else "x+b")
        try:
            self.rows = self._read()
        except BaseException:
            self._file.close()
            raise

    def append(self, row: Mapping[str, Any]) -> None:
        """Write one row and flush it."""
        self._file.write(_line(row, self._columns, self._csv).encode("utf-8"))
        self._file.flush()

    def __enter__(self) -> GrowingTable:
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    def _read(self) -> list[Row]:
        """Read everything; then drop a torn last line and stand at the end."""
        header = _csv_line(self._columns) if self._csv else ""
        data = self._file.read()
        whole = data.rfind(b"\n") + 1
        try:
            lines = data[:whole].decode("utf-8").split("\n")[:-1]
        except UnicodeDecodeError as error:
            raise self._refused(1, "not UTF-8") from error
        start = (header or '{"' + self._columns[0] + '"').encode()
        if not lines and data[: len(start)] != start[: len(data)]:
            raise self._refused(1, "another beginning")
        if lines and header and lines.pop(0) + "\n" != header:
            raise self._refused(1, "another header")
        rows = [self._row(line, number) for number, line in enumerate(lines, 1 + self._csv)]
        self._file.seek(whole)
        self._file.truncate()
        if whole == 0:
            self._file.write(header.encode("utf-8"))
            self._file.flush()
        return rows

    def _row(self, line: str, number: int) -> Row:
        try:
            if self._csv:
                (cells,) = csv.reader([line], strict=True)
                found = dict(zip(self._columns, cells, strict=True))
            else:
                found = json.loads(line)
                if not isinstance(found, dict) or tuple(found) != self._columns:
                    raise ValueError("other fields")
            return {n: None if v in (None, "") else value_of(text_of(v)) for n, v in found.items()}
        except (ValueError, TypeError, csv.Error) as error:
            raise self._refused(number, str(error)) from error

    def _refused(self, line: int, reason: str) -> ValueError:
        return ValueError(
            f"output {os.fspath(self._path)!r} is there and no table to go on with: line {line}, {reason}"
        )


def _line(row: Mapping[str, Any], columns: Iterable[str], as_csv: bool) -> str:
    """A row as a line of CSV, or of JSON."""
    texts = {name: None if row[name] is None else text_of(row[name]) for name in columns}
    if as_csv:
        return _csv_line("" if text is None else text for text in texts.values())
    values = {name: None if text is None else value_of(text) for name, text in texts.items()}
    ready = {n: str(v) if isinstance(v, float) and math.isinf(v) else v for n, v in values.items()}
    return json.dumps(ready, allow_nan=False, ensure_ascii=False) + "\n"


def _csv_line(cells: Iterable[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()
