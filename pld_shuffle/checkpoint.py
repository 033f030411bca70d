"""Checkpoints: ledgers as plain data, laws as npz files; written and read back without a change.

What is stored of a ledger are its mechanisms and counts, never arrays: everything else follows from them.
A mechanism is its public name and its constructor arguments,

    {"kind": "Subsampled", "arguments": {"mechanism": {"kind": ...}, "population": 1000000}}

with nested mechanisms and local randomizers (kind "randomizers.RAPPOR") in the same form, tuples as lists,
and infinity as the string "inf", since JSON has none. Python writes the shortest decimal that reads back as
the same double, and integers in full, so the round trip is exact; this is checked when saving.

Reading is strict: version, fields and types must be those of this schema, names are looked up among the
package's public names only, arguments pass the constructors' own checks, and none may be left to a
default. Everything else is a `CheckpointError` that says where. A mechanism that gains an argument needs a
new VERSION.

Guarantee: a restored ledger equals the saved one entry by entry, in the same order, so it gives the very same
doubles (with the same releases of this package and its libraries, on the same machine).
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import json
import math
import numbers
import os
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .bracket import Side
from .files import replacing
from .mechanism import Mechanism, as_mechanism
from .validation import nonnegatives, positive_float, positive_int, probabilities, real

if TYPE_CHECKING:
    from .pld import PLD

VERSION = 1
#: Modules whose public classes have names here: the package itself, and others with their name in front.
HOMES = ("", "randomizers", "shuffled", "protocols.binomial_shift", "interop.imported")
PLD_SCHEMA = "pld_shuffle.PLD"
_INFINITIES = {"inf": math.inf, "-inf": -math.inf}
_PLD_FIELDS = frozenset(
    {"schema", "version", "masses", "low", "step", "side", "infinity", "max_loss", "slack", "atoms"}
)


class CheckpointError(ValueError):
    """Something that cannot be saved, or a checkpoint that cannot be read; the text says where."""


@contextlib.contextmanager
def at(place: str) -> Iterator[None]:
    """Turn a complaint about a value into one that says where it stands."""
    try:
        yield
    except CheckpointError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise CheckpointError(f"{place}: {error}") from error


@contextlib.contextmanager
def _nested() -> Iterator[None]:
    """Nothing that was saved is nested deeply: what is, cannot be one of ours."""
    try:
        yield
    except RecursionError:
        raise CheckpointError("checkpoint: nested too deeply") from None


# --- mechanisms and local randomizers --------------------------------------------------------


def mechanism_state(mechanism: Mechanism) -> dict[str, Any]:
    """`mechanism` as plain data; CheckpointError unless it is one of the package's, all the way down.

    >>> from pld_shuffle import ShuffledLDP
    >>> mechanism_state(ShuffledLDP(eps0=4.0, n=1000))["kind"]
    'ShuffledLDP'
    """
    state = _named(as_mechanism(mechanism))
    if mechanism_from_state(state) != mechanism:
        raise CheckpointError(f"{mechanism!r} does not come back the same from its arguments")
    return state


@_nested()
def mechanism_from_state(state: Any, place: str = "mechanism") -> Mechanism:
    """The mechanism that `mechanism_state` wrote; CheckpointError, which says where, otherwise."""
    value = _decoded(state, place)
    if not isinstance(value, Mechanism):
        raise CheckpointError(f"{place}: expected a mechanism, got {state!r}")
    return value


def _named(value: Any) -> dict[str, Any]:
    kind = _kind(type(value))
    if kind is None:
        raise CheckpointError(
            f"cannot save {value!r}: {type(value).__name__} is no public mechanism or randomizer of "
            "pld_shuffle"
        )
    return {"kind": kind, "arguments": _arguments(value)}


def _arguments(value: Any) -> dict[str, Any]:
    """The encoded constructor arguments of a mechanism or a local randomizer."""
    if isinstance(value, Mechanism):
        given = value.arguments()
    else:
        given = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return {name: _encoded(item) for name, item in given.items()}


def _kind(found: type) -> str | None:
    """The public name of a mechanism's or randomizer's class, None if it has none."""
    for home in HOMES:
        if _public(home, found.__name__) is found:
            return f"{home}.{found.__name__}" if home else found.__name__
    return None


def _class_of(kind: str) -> type | None:
    """The class with that public name, None if there is none."""
    home, _, name = kind.rpartition(".")
    found = _public(home, name) if home in HOMES else None
    return found if found is not None and _kind(found) == kind else None


def _public(home: str, name: str) -> type | None:
    """The class of that name in a module, if it is a mechanism or a local randomizer."""
    module = importlib.import_module(f"{__package__}.{home}" if home else str(__package__))
    if name.startswith("_") or not (home or name in module.__all__):
        return None
    found = getattr(module, name, None)
    if not (dataclasses.is_dataclass(found) and isinstance(found, type)):
        return None
    return found if home == "randomizers" or issubclass(found, Mechanism) else None


def _encoded(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        if value in _INFINITIES:
            raise CheckpointError(f"the text {value!r} cannot be told from a number")
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        number = float(value)
        if math.isnan(number):
            raise CheckpointError("nan cannot be saved")
        return number if math.isfinite(number) else str(number)
    if isinstance(value, (tuple, list)):
        return [_encoded(item) for item in value]
    return _named(value)


def _decoded(state: Any, place: str) -> Any:
    if isinstance(state, str):
        return _INFINITIES.get(state, state)
    if isinstance(state, float) and not math.isfinite(state):
        raise CheckpointError(f"{place}: expected a finite number, or 'inf', got {state!r}")
    if state is None or isinstance(state, (bool, int, float)):
        return state
    if isinstance(state, (list, tuple)):
        return tuple(_decoded(item, f"{place}[{i}]") for i, item in enumerate(state))
    fields = _fields(state, {"kind", "arguments"}, place)
    kind = fields["kind"]
    found = _class_of(kind) if isinstance(kind, str) else None
    if found is None:
        raise CheckpointError(f"{place}: unknown kind {kind!r}")
    given = fields["arguments"]
    if not isinstance(given, Mapping):
        raise CheckpointError(f"{place}.arguments: expected a mapping, got {given!r}")
    with at(f"{place} ({kind})"):
        value = found(**{n: _decoded(item, f"{place}.{n}") for n, item in given.items()})
    expected = _arguments(value)
    if given != expected:
        _fields(given, set(expected), f"{place} ({kind})")
        raise CheckpointError(f"{place} ({kind}): {dict(given)!r} reads back as {expected!r}")
    return value


def _fields(state: Any, names: set[str], place: str) -> Mapping[str, Any]:
    """`state` if it is a mapping with just these fields."""
    if not isinstance(state, Mapping):
        raise CheckpointError(f"{place}: expected a mapping, got {state!r}")
    for problem, wrong in (("unknown", state.keys() - names), ("missing", names - state.keys())):
        if wrong:
            raise CheckpointError(f"{place}: {problem} field {', '.join(sorted(map(repr, wrong)))}")
    return state


# --- ledgers ---------------------------------------------------------------------------------


def ledger_state(
    owner: str, settings: Mapping[str, Any], ledger: Iterable[tuple[Mechanism, int]]
) -> dict[str, Any]:
    """The state of a ledger: plain data that JSON can hold.

    owner, the class it belongs to; settings, that class's constructor arguments (numbers).
    """
    entries = [{"mechanism": mechanism_state(m), "count": count} for m, count in ledger]
    header = {"schema": f"pld_shuffle.{owner}", "version": VERSION}
    return {**header, **settings, "ledger": entries}


@_nested()
def read_ledger_state(
    owner: str, settings: Iterable[str], state: Any
) -> tuple[dict[str, Any], list[tuple[Mechanism, int]]]:
    """(settings, ledger) of a state; CheckpointError for anything that `ledger_state` cannot have written."""
    names = set(settings)
    _check_header(state, f"pld_shuffle.{owner}")
    fields = _fields(state, {"schema", "version", "ledger", *names}, "checkpoint")
    entries = fields["ledger"]
    if not isinstance(entries, (list, tuple)):
        raise CheckpointError(f"ledger: expected a list, got {entries!r}")
    ledger: dict[Mechanism, int] = {}
    for i, entry in enumerate(entries):
        place = f"ledger[{i}]"
        entry = _fields(entry, {"mechanism", "count"}, place)
        mechanism = mechanism_from_state(entry["mechanism"], f"{place}.mechanism")
        if mechanism in ledger:
            raise CheckpointError(f"{place}: {mechanism!r} comes twice")
        with at(place):
            ledger[mechanism] = positive_int("count", entry["count"])
    return {name: fields[name] for name in names}, list(ledger.items())


def _check_header(state: Any, schema: str) -> None:
    """What it is and which version comes first: other complaints would follow from these."""
    if not isinstance(state, Mapping):
        raise CheckpointError(f"checkpoint: expected a mapping, got {state!r}")
    for name in ("schema", "version"):
        if name not in state:
            raise CheckpointError(f"checkpoint: missing field {name!r}")
    if state["schema"] != schema:
        raise CheckpointError(f"schema: expected {schema!r}, got {state['schema']!r}")
    version = state["version"]
    if type(version) is not int or version != VERSION:
        raise CheckpointError(f"version: only version {VERSION} is known here, got {version!r}")


def to_json(state: Mapping[str, Any]) -> str:
    """A state as JSON text."""
    return json.dumps(state, indent=1, allow_nan=False)


@_nested()
def from_json(text: str) -> Any:
    """The state in a JSON text; CheckpointError if it is not JSON, or a field comes twice."""
    if not isinstance(text, str):
        raise TypeError(f"text must be a str, got {text!r}")

    def refuse(name: str) -> Any:
        raise CheckpointError(f"not JSON: {name}")

    with at("not JSON"):
        return json.loads(text, parse_constant=refuse, object_pairs_hook=_without_repeats)


def decoded(data: bytes) -> str:
    """The text in a file's bytes; CheckpointError if they are not UTF-8."""
    with at("not JSON"):
        return data.decode("utf-8")


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = sorted({name for name in names if names.count(name) > 1})
        raise CheckpointError(f"field {', '.join(map(repr, repeated))} comes twice")
    return found


# --- laws ------------------------------------------------------------------------------------


def save_pld(pld: PLD, path: str | os.PathLike[str]) -> None:
    """Write a law to an npz file, all of it or nothing."""
    with replacing(path) as file:
        np.savez(
            file,
            schema=np.str_(PLD_SCHEMA),
            version=np.int64(VERSION),
            masses=pld.masses,
            low=np.int64(pld.low),
            step=np.float64(pld.step),
            side=np.str_(pld.side.value),
            infinity=np.float64(pld.infinity),
            max_loss=np.float64(pld.max_loss),
            slack=np.float64(pld.slack),
            atoms=np.int64(pld.atoms),
        )


def load_pld(path: str | os.PathLike[str]) -> PLD:
    """The law in a file that `save_pld` wrote; CheckpointError if it holds anything else.

    Nothing is unpickled. Raises OSError if the file cannot be read.
    """
    from .pld import EXCESS, PLD

    fields = _archive(path)
    _check_header(fields, PLD_SCHEMA)
    _fields(fields, set(_PLD_FIELDS), "checkpoint")
    masses = fields["masses"]
    if not (isinstance(masses, np.ndarray) and masses.dtype == np.float64 and masses.ndim == 1):
        raise CheckpointError(f"masses: expected float64 of shape (points,), got {masses!r}")
    total = float(masses.sum()) if masses.size else math.nan
    if not (np.all(masses >= 0.0) and 0.0 <= total <= 1.0 + EXCESS):
        raise CheckpointError(f"masses: expected a law, got {masses.size} entries, sum {total!r}")
    if fields["side"] not in [side.value for side in Side]:
        raise CheckpointError(f"side: expected 'lower' or 'upper', got {fields['side']!r}")
    for name in ("low", "atoms"):
        if type(fields[name]) is not int:
            raise CheckpointError(f"{name}: expected an integer, got {fields[name]!r}")
    with at("checkpoint"):
        step = positive_float("step", fields["step"])
        infinity = float(probabilities("infinity", real("infinity", fields["infinity"])))
        slack = float(nonnegatives("slack", real("slack", fields["slack"])))
        max_loss = real("max_loss", fields["max_loss"])
    if math.isnan(max_loss) or not slack < math.inf or not fields["atoms"] >= 0:
        raise CheckpointError(
            f"checkpoint: max_loss {max_loss!r}, slack {slack!r}, {fields['atoms']!r} atoms"
        )
    masses.setflags(write=False)
    return PLD(
        masses, fields["low"], step, Side(fields["side"]), infinity, max_loss, slack, fields["atoms"]
    )  # fmt: skip


def _archive(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The arrays of an npz file by name, those without dimensions as Python scalars."""
    with open(path, "rb") as file:
        try:
            with np.load(file, allow_pickle=False) as archive:
                found = {name: archive[name] for name in archive.files}
        except (
            ValueError,
            TypeError,
            AttributeError,
            EOFError,
            zipfile.BadZipFile,
            zlib.error,
        ) as error:
            raise CheckpointError(
                f"{os.fspath(path)!r} is no npz file of numbers: {error}"
            ) from error
    return {name: array.item() if array.ndim == 0 else array for name, array in found.items()}


__all__ = [
    "CheckpointError",
    "at",
    "decoded",
    "from_json",
    "ledger_state",
    "load_pld",
    "mechanism_from_state",
    "mechanism_state",
    "read_ledger_state",
    "save_pld",
    "to_json",
]
