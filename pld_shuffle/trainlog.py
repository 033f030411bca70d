"""Training logs: one CSV row per round in, the rounds as (mechanism, count) pairs out.

A federated training job writes one row per round, and the cohort changes from round to round::

    round,mechanism,n,eps0,population
    1,ldp,4873,2.0,1000000
    2,ldp,5120,2.0,1000000

Columns (a cell that is blank counts as not given; blank lines are skipped):

==============  ==========================================================================
``mechanism``   ``ldp`` (any eps0-LDP randomizer, the default), ``randomizer`` (any randomizer of
                known total variation) or ``rr`` (k-ary randomized response)
``n``           users whose reports are shuffled together in the round; required
``eps0``        local budget; required for ``ldp``, this or ``gamma`` for ``rr``, this or ``p`` and
                ``q`` for ``randomizer``
``tv``          largest total variation of two output laws, ``randomizer`` only; required there
``p``, ``q``    largest likelihood ratios within a pair of laws, and against the others' law;
                ``randomizer`` only
``k``           alphabet size, ``rr`` only; required there
``gamma``       probability of a uniformly random answer, ``rr`` only
``adversary``   ``rr`` only: ``strong``, ``weak`` or ``strong-conditional``
``analysis``    ``ldp`` only: ``stronger-clones`` or ``clones``
``population``  the cohort is a uniformly random set of n out of this many users ...
``rate``        ... or makes up this share of the users; at most one of the two
``count``       how many equal rounds the row stands for (default 1)
``round``       a label; never used in a computation
==============  ==========================================================================

Guarantee: a log is read to its end before anything is returned, so it is accounted in full or
not at all.  A bad value is a :class:`LogError` that names the line and the column.  A column of
another name is ignored, and a note says so.

The command line builds its mechanisms with the same :func:`mechanism_from_fields`, so flags and
columns have one meaning.
"""

from __future__ import annotations

import csv
import io
import itertools
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from importlib import resources
from pathlib import Path

from pld_shuffle.mechanisms import (
    Mechanism,
    ShuffledLDP,
    ShuffledRandomizer,
    ShuffledRR,
    Subsampled,
)
from pld_shuffle.validation import positive_int

__all__ = [
    "COLUMNS",
    "FieldError",
    "LogError",
    "TrainingLog",
    "integer_from_text",
    "mechanism_from_fields",
    "number_from_text",
    "parse_training_log",
    "read_training_log",
    "sample_training_log",
]

#: Fields of a mechanism by the kind of value they hold.
_INTEGER_FIELDS = frozenset({"n", "k", "population"})
_NUMBER_FIELDS = frozenset({"eps0", "gamma", "rate", "tv", "p", "q"})
_WORD_FIELDS = frozenset({"adversary", "analysis"})
_SAMPLING_FIELDS = frozenset({"population", "rate"})

#: Fields that say something about a mechanism of that name, and those it cannot do without.
_FIELDS_OF = {
    "ldp": frozenset({"n", "eps0", "analysis"}) | _SAMPLING_FIELDS,
    "randomizer": frozenset({"n", "eps0", "tv", "p", "q"}) | _SAMPLING_FIELDS,
    "rr": frozenset({"n", "k", "eps0", "gamma", "adversary"}) | _SAMPLING_FIELDS,
}
_REQUIRED_FIELDS_OF = {"ldp": ("n", "eps0"), "randomizer": ("n", "tv"), "rr": ("n", "k")}

#: Every column a log may have with a meaning.
COLUMNS = (
    "round",
    "mechanism",
    "n",
    "eps0",
    "k",
    "gamma",
    "tv",
    "p",
    "q",
    "adversary",
    "analysis",
    "population",
    "rate",
    "count",
)

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?", re.ASCII)
#: Integers of more digits than this are refused (10^18 users are enough for anybody).
_MOST_DIGITS = 18
_LONGEST_QUOTE = 40


class FieldError(ValueError):
    """A bad value of one named field.

    Attributes
    ----------
    field : str
        Name of the field: a log's column, or a command-line flag without its dashes.
    reason : str
        What is wrong, value included.
    """

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


class LogError(ValueError):
    """A training log that cannot be accounted.

    Attributes
    ----------
    name : str
        The log's name: a file name, or ``standard input``.
    line : int
        Line of the file, counted from 1.
    column : str or None
        Name of the column, None where the line as a whole is at fault.
    reason : str
        What is wrong, value included.
    """

    def __init__(self, name: str, line: int, column: str | None, reason: str) -> None:
        place = f"{name}, line {line}"
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


def _quoted(text: str) -> str:
    shown = text if len(text) <= _LONGEST_QUOTE else text[:_LONGEST_QUOTE] + "..."
    return repr(shown)


def number_from_text(field: str, text: str) -> float:
    """The finite decimal number written in `text`, e.g. ``2``, ``0.5`` or ``1e-6``.

    Raises
    ------
    FieldError
        If `text` is no decimal number ("nan" and "inf" are none), or one so large or so small
        that a double would hold infinity or zero in its place.
    """
    text = text.strip()
    if not _NUMBER.fullmatch(text):
        raise FieldError(field, f"expected a number, got {_quoted(text)}")
    value = float(text)
    if abs(value) == float("inf"):
        raise FieldError(field, f"too large for a double: {_quoted(text)}")
    if value == 0 and re.search("[1-9]", re.split("[eE]", text)[0]):
        raise FieldError(field, f"too small for a double: {_quoted(text)}")
    return value


def integer_from_text(field: str, text: str) -> int:
    """The integer written in `text`; ``5000``, ``5000.0`` and ``5e3`` are the same, exactly.

    (Spreadsheets and data frames write integers as ``4.0`` where a column has gaps.)

    Raises
    ------
    FieldError
        If `text` is no decimal number, has a fractional part, or more than 18 digits.
    """
    text = text.strip()
    if not _NUMBER.fullmatch(text):
        raise FieldError(field, f"expected an integer, got {_quoted(text)}")
    value = Decimal(text)
    if value.adjusted() >= _MOST_DIGITS:
        raise FieldError(field, f"too large, more than {_MOST_DIGITS} digits: {_quoted(text)}")
    # The first test is for 1e-999999999, whose remainder underflows to zero.
    if (value != 0 and value.adjusted() < 0) or value % 1 != 0:
        raise FieldError(field, f"expected an integer, got {_quoted(text)}")
    return int(value)


def _blamed_field(message: str, candidates: tuple[str, ...], otherwise: str) -> str:
    """The candidate that an error message names first."""
    for word in re.findall(r"\w+", message):
        if word in candidates:
            return str(word)
    return otherwise


def mechanism_from_fields(fields: Mapping[str, str]) -> Mechanism:
    """The mechanism described by texts, such as the cells of a log's row or flags.

    Parameters
    ----------
    fields : mapping of str to str
        Values as texts by the names of the module docstring, without ``round`` and ``count``.
        Fields that were not given are absent.

    Returns
    -------
    ShuffledLDP, ShuffledRandomizer, ShuffledRR or Subsampled
        Subsampled where ``population`` or ``rate`` is given.

    Raises
    ------
    FieldError
        For a value that is no number, out of range, missing, or that has no meaning for the
        mechanism (such as ``k`` with ``ldp``: a number nobody uses is a misunderstanding).
    """
    name = fields.get("mechanism", "ldp").strip()
    if name not in _FIELDS_OF:
        known = ", ".join(_FIELDS_OF)
        raise FieldError("mechanism", f"expected one of {known}, got {_quoted(name)}")
    given = {key: text for key, text in fields.items() if key != "mechanism"}
    for key in given:
        if key not in _FIELDS_OF[name]:
            raise FieldError(key, f"has no meaning for the mechanism {name!r}")
    for key in _REQUIRED_FIELDS_OF[name]:
        if key not in given:
            raise FieldError(key, f"required for the mechanism {name!r}, not given")
    if name == "rr" and ("eps0" in given) == ("gamma" in given):
        which = "both" if "gamma" in given else "neither"
        raise FieldError("gamma", f"give exactly one of gamma and eps0, got {which}")
    if name == "randomizer" and not (
        ("eps0" in given) != ("p" in given) and ("p" in given) == ("q" in given)
    ):
        raise FieldError("eps0", "give either eps0, or p and q")
    if given.keys() >= _SAMPLING_FIELDS:
        raise FieldError("rate", "give at most one of population and rate, got both")

    integers = {key: integer_from_text(key, given[key]) for key in given.keys() & _INTEGER_FIELDS}
    numbers = {key: number_from_text(key, given[key]) for key in given.keys() & _NUMBER_FIELDS}
    words = {key: given[key].strip() for key in given.keys() & _WORD_FIELDS}
    population = integers.pop("population", None)
    rate = numbers.pop("rate", None)
    try:
        mechanism: Mechanism
        if name == "ldp":
            mechanism = ShuffledLDP(**numbers, **integers, **words)  # type: ignore[arg-type]
        elif name == "randomizer":
            mechanism = ShuffledRandomizer(**numbers, **integers)  # type: ignore[arg-type]
        else:
            mechanism = ShuffledRR(**numbers, **integers, **words)  # type: ignore[arg-type]
        if population is not None:
            mechanism = Subsampled(mechanism, population=population)
        elif rate is not None:
            mechanism = Subsampled(mechanism, rate=rate)
    except (TypeError, ValueError) as error:
        blamed = _blamed_field(str(error), tuple(given), otherwise="mechanism")
        raise FieldError(blamed, str(error)) from error
    return mechanism


def _decoded(data: bytes, name: str) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise LogError(name, 1, None, "is UTF-16; save the log as UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        wrong = f"byte 0x{data[error.start]:02x} is not UTF-8"
        raise LogError(name, line, None, wrong) from error


def _header_positions(header: list[str], name: str, line: int) -> dict[str, int]:
    """Position of every column that has a meaning."""
    positions: dict[str, int] = {}
    for position, title in enumerate(header):
        if title not in COLUMNS:
            continue
        if title in positions:
            raise LogError(name, line, title, "appears twice in the header")
        positions[title] = position
    if "n" not in positions:
        found = _quoted(",".join(header))
        raise LogError(
            name,
            line,
            "n",
            f"missing: the log must begin with a comma-separated header, got {found}",
        )
    return positions


def _ignored_columns_note(header: list[str], name: str) -> str | None:
    unknown = list(dict.fromkeys(title for title in header if title not in COLUMNS))
    if not unknown:
        return None
    shown = []
    for title in unknown:
        if not title:
            shown.append("one without a name")
        elif title.lower() in COLUMNS:
            shown.append(f"{title} (did you mean {title.lower()}?)")
        else:
            shown.append(title)
    noun = "column" if len(shown) == 1 else "columns"
    return f"{name}: ignored unknown {noun} " + ", ".join(shown)


def _numbering_note(labels: list[tuple[int, str]], name: str) -> str | None:
    """A remark where round numbers do not count up by one: rows may be missing or doubled."""
    numbers = []
    for line, text in labels:
        if not re.fullmatch("[0-9]{1,18}", text, re.ASCII):
            return None  # labels of another kind
        numbers.append((line, int(text)))
    for (_, before), (line, number) in itertools.pairwise(numbers):
        if number != before + 1:
            return (
                f"{name}: round {number} follows round {before} at line {line}; "
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
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, skipinitialspace=True)
    header: list[str] | None = None
    positions: dict[str, int] = {}
    rounds: list[tuple[Mechanism, int]] = []
    labels: list[tuple[int, str]] = []
    seen: dict[tuple[str, ...], tuple[Mechanism, int]] = {}
    line = 1
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if len(cells) == 0 or cells == [""]:
                pass
            elif header is None:
                header = cells
                positions = _header_positions(header, name, line)
            else:
                if len(cells) < len(header):
                    missing = header[len(cells)] or None
                    wrong = f"cell missing: {len(cells)} cells under {len(header)} columns"
                    raise LogError(name, line, missing, wrong)
                if len(cells) > len(header):
                    wrong = f"{len(cells)} cells under {len(header)} columns"
                    raise LogError(name, line, None, wrong)
                if "round" in positions:
                    labels.append((line, cells[positions["round"]]))
                key = tuple(cells[positions[c]] for c in positions if c != "round")
                if key not in seen:
                    given = {c: cells[p] for c, p in positions.items() if cells[p] != ""}
                    try:
                        seen[key] = _round_from_fields(given)
                    except FieldError as error:
                        raise LogError(name, line, error.field, error.reason) from error
                rounds.append(seen[key])
            line = reader.line_num + 1
    except csv.Error as error:
        raise LogError(name, max(line, reader.line_num), None, f"not CSV: {error}") from error
    if header is None:
        raise LogError(name, 1, None, "the log is empty")
    if not rounds:
        raise LogError(name, line, None, "the log has a header and no rounds")
    notes = [_ignored_columns_note(header, name)]
    if all(count == 1 for _, count in rounds):
        notes.append(_numbering_note(labels, name))
    return TrainingLog(
        name=name,
        rounds=tuple(rounds),
        notes=tuple(note for note in notes if note is not None),
    )


def _round_from_fields(given: dict[str, str]) -> tuple[Mechanism, int]:
    """Mechanism and count of one row."""
    fields = {key: text for key, text in given.items() if key not in ("round", "count")}
    mechanism = mechanism_from_fields(fields)
    count = integer_from_text("count", given.get("count", "1"))
    try:
        positive_int("count", count)
    except (TypeError, ValueError) as error:
        raise FieldError("count", str(error)) from error
    return mechanism, count


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
