"""Checkpoints: ledgers as plain data, written as JSON and read back without a change.

Stored are mechanisms and counts, never arrays. A mechanism is its public name and its constructor arguments,
{"kind": "Subsampled", "arguments": {"mechanism": {"kind": ...}, "population": 1000000}}, with nested mechanisms and
local randomizers (kind "randomizers.RAPPOR") in the same form, tuples as lists, and infinity as the string "inf".

That the round trip is exact is checked when saving. Reading is strict: arguments pass the constructors' own checks, and
none may be left to a default; else a `CheckpointError` says where. A mechanism that gains an argument needs a new
SCHEMA.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import json
import math
import numbers
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from functools import cache
from typing import Any, NamedTuple

from . import __version__
from .mechanisms import Mechanism, as_mechanism
from .numerics.validation import positive_int

__all__ = ["CheckpointError", "mechanism_from_state", "mechanism_state"]

SCHEMA = "pld_shuffle/checkpoint/3"
#: What stands in front of the names of classes here, and the module that has them.
HOMES = {
    "": "mechanisms",
    "randomizers": "randomizers",
    "shares": "shares",
    "shuffled": "mechanisms.shuffled",
    "interop.imported": "mechanisms.imported",
}
_INFINITIES = {"inf": math.inf, "-inf": -math.inf}


class Log(NamedTuple):
    """A file that rounds were read from: its name, and the SHA-256 of its bytes."""

    name: str
    sha256: str


class CheckpointError(ValueError):
    """Something that cannot be saved, or a checkpoint that cannot be read; the text says where."""


@contextlib.contextmanager
def at(place: str) -> Iterator[None]:
    """Turn a complaint about a value into one that says where it stands."""
    try:
        yield
    except CheckpointError:
        raise
    except RecursionError:  # nothing that was saved is nested deeply
        raise CheckpointError(f"{place}: nested too deeply") from None
    except (TypeError, ValueError, OverflowError) as error:
        raise CheckpointError(f"{place}: {error}") from error


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


@at("checkpoint")
def mechanism_from_state(state: Any, place: str = "mechanism") -> Mechanism:
    """The mechanism that `mechanism_state` wrote; CheckpointError, which says where, otherwise."""
    value = _decoded(state, place)
    if not isinstance(value, Mechanism):
        raise CheckpointError(f"{place}: expected a mechanism, got {state!r}")
    return value


@cache
def _kinds() -> dict[str, type]:
    """The classes of mechanisms and local randomizers by their public names."""
    found: dict[type, str] = {}
    for home, place in HOMES.items():
        module = importlib.import_module(f"{__package__}.{place}")
        for name in vars(module) if home else module.__all__:
            value = getattr(module, name)
            if (
                isinstance(value, type)
                and dataclasses.is_dataclass(value)
                and (home in ("randomizers", "shares") or issubclass(value, Mechanism))
                and not name.startswith("_")
            ):
                found.setdefault(value, f"{home}.{name}" if home else name)
    return {name: value for value, name in found.items()}


def _named(value: Any) -> dict[str, Any]:
    for kind, found in _kinds().items():
        if found is type(value):
            return {"kind": kind, "arguments": _arguments(value)}
    raise CheckpointError(
        f"cannot save {value!r}: {type(value).__name__} is no public mechanism or randomizer of pld_shuffle"
    )


def _arguments(value: Any) -> dict[str, Any]:
    """The encoded constructor arguments of a mechanism or a local randomizer."""
    if isinstance(value, Mechanism):
        given = value.arguments()
    else:
        given = {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
    return {name: _encoded(item) for name, item in given.items()}


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
    kind, given = fields["kind"], fields["arguments"]
    if not (isinstance(kind, str) and kind in _kinds()):
        raise CheckpointError(f"{place}: unknown kind {kind!r}")
    if not isinstance(given, Mapping):
        raise CheckpointError(f"{place}.arguments: expected a mapping, got {given!r}")
    here = f"{place} ({kind})"
    with at(here):
        value = _kinds()[kind](**{n: _decoded(v, f"{place}.{n}") for n, v in given.items()})
    expected = _arguments(value)
    if given != expected:
        _fields(given, set(expected), here)
        raise CheckpointError(f"{here}: {dict(given)!r} reads back as {expected!r}")
    return value


def _fields(state: Any, names: set[str], place: str) -> Mapping[str, Any]:
    """`state` if it is a mapping with just these fields."""
    if not isinstance(state, Mapping):
        raise CheckpointError(f"{place}: expected a mapping, got {state!r}")
    for problem, wrong in (("unknown", state.keys() - names), ("missing", names - state.keys())):
        if wrong:
            raise CheckpointError(f"{place}: {problem} field {', '.join(sorted(map(repr, wrong)))}")
    return state


def written() -> dict[str, str]:
    """Who writes something now: package, version and date (UTC)."""
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return {"package": "pld_shuffle", "version": __version__, "date": now}


def ledger_state(
    owner: str, settings: Mapping[str, Any], ledger: Iterable[tuple[Mechanism, int]], logs: Sequence[Log]
) -> dict[str, Any]:
    """The state of a ledger: plain data that JSON can hold.

    owner, the class it belongs to; settings, that class's constructor arguments (numbers); logs, the files it was read
    from, as far as known.
    """
    read = [log._asdict() for log in logs]
    return {"schema": SCHEMA, "owner": owner, **settings, "logs": read, "ledger": rounds_state(ledger)}


def rounds_state(rounds: Iterable[tuple[Mechanism, int]]) -> list[dict[str, Any]]:
    """Mechanisms with their counts as plain data; errors as of `mechanism_state`."""
    return [{"mechanism": mechanism_state(mechanism), "count": count} for mechanism, count in rounds]


@at("checkpoint")
def read_ledger_state(
    owner: str, settings: Iterable[str], state: Any
) -> tuple[dict[str, Any], list[tuple[Mechanism, int]], list[Log]]:
    """(settings, ledger, logs) of a state; CheckpointError for anything that `ledger_state` cannot have written."""
    if not isinstance(state, Mapping):
        raise CheckpointError(f"checkpoint: expected a mapping, got {state!r}")
    # What it is comes first: other complaints would follow from it.
    for name, known in (("schema", SCHEMA), ("owner", owner)):
        if name in state and state[name] != known:
            raise CheckpointError(f"{name}: expected {known!r}, got {state[name]!r}")
    fields = _fields(state, {"schema", "owner", "logs", "ledger", *settings}, "checkpoint")
    for name in ("logs", "ledger"):
        if not isinstance(fields[name], (list, tuple)):
            raise CheckpointError(f"{name}: expected a list, got {fields[name]!r}")
    ledger: dict[Mechanism, int] = {}
    for i, entry in enumerate(fields["ledger"]):
        place = f"ledger[{i}]"
        entry = _fields(entry, {"mechanism", "count"}, place)
        mechanism = mechanism_from_state(entry["mechanism"], f"{place}.mechanism")
        if mechanism in ledger:
            raise CheckpointError(f"{place}: {mechanism!r} comes twice")
        with at(place):
            ledger[mechanism] = positive_int("count", entry["count"])
    logs = [Log(**_fields(log, {*Log._fields}, f"logs[{i}]")) for i, log in enumerate(fields["logs"])]
    return {name: fields[name] for name in settings}, list(ledger.items()), logs


def from_json(text: str | bytes) -> Any:
    """The state in a JSON text; CheckpointError if it is not JSON in UTF-8, or a field comes twice."""
    if not isinstance(text, (str, bytes)):
        raise TypeError(f"text must be a str, got {text!r}")
    with at("not JSON"):
        text = text.decode("utf-8") if isinstance(text, bytes) else text
        return json.loads(text, object_pairs_hook=_without_repeats)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise CheckpointError(f"field {name!r} comes twice")
        found[name] = value
    return found
