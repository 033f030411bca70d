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

Version 1 (releases up to 0.2.0) is read as what it meant then: `Subsampled` had the general amplification only, and the
"tightest" analysis of `Shuffled` was the blanket, or the reduction where eps0 is over 150.

Guarantee: a restored ledger equals the saved one entry by entry, in the same order, so it gives the very same
doubles (with the same releases of this package and its libraries, on the same machine).
"""

from __future__ import annotations

import dataclasses
import importlib
import math
import numbers
import os
from collections.abc import Iterable, Mapping
from typing import Any

from .composition.pld import PLD
from .mechanisms import Mechanism, Shuffled, ShuffledRandomizer, as_mechanism
from .numerics.validation import positive_int
from .storage.records import (
    CheckpointError,
    at,
    check_header,
    decoded,
    fields_of,
    from_json,
    nested,
    to_json,
)

VERSION = 2
#: What stands in front of the public names of classes here, and the module that has them.
HOMES = {
    "": "mechanisms",
    "randomizers": "randomizers",
    "shuffled": "mechanisms.shuffled",
    "protocols.binomial_shift": "mechanisms.binomial_shift",
    "interop.imported": "mechanisms.imported",
}
_INFINITIES = {"inf": math.inf, "-inf": -math.inf}


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


@nested()
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
    module = importlib.import_module(f"{__package__}.{HOMES[home]}")
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
    fields = fields_of(state, {"kind", "arguments"}, place)
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
        fields_of(given, set(expected), f"{place} ({kind})")
        raise CheckpointError(f"{place} ({kind}): {dict(given)!r} reads back as {expected!r}")
    return value


def _from_version_1(state: Any, place: str) -> Any:
    """The state of version 2 that means what `state` meant in version 1."""
    if isinstance(state, (list, tuple)):
        return [_from_version_1(item, f"{place}[{i}]") for i, item in enumerate(state)]
    if not (isinstance(state, Mapping) and isinstance(state.get("arguments"), Mapping)):
        return state
    given = {n: _from_version_1(item, f"{place}.{n}") for n, item in state["arguments"].items()}
    new = {**state, "arguments": given}
    kind, analysis = state.get("kind"), given.get("analysis")
    if kind == "Subsampled":
        if "analysis" in given:
            raise CheckpointError(f"{place} (Subsampled): version 1 has no field 'analysis'")
        given["analysis"] = "general"
    elif kind == "ShuffledLDP" and analysis == "tightest":
        raise CheckpointError(f"{place} (ShuffledLDP): version 1 has no analysis 'tightest'")
    elif kind == "Shuffled" and analysis == "tightest":
        meant = _decoded(new, place)
        strong = isinstance(meant, Shuffled) and isinstance(meant.core, ShuffledRandomizer)
        given["analysis"] = "reduction" if strong else "blanket"
    return new


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


@nested()
def read_ledger_state(
    owner: str, settings: Iterable[str], state: Any
) -> tuple[dict[str, Any], list[tuple[Mechanism, int]]]:
    """(settings, ledger) of a state; CheckpointError for anything that `ledger_state` cannot have written."""
    names = set(settings)
    version = check_header(state, f"pld_shuffle.{owner}", (1, VERSION))
    fields = fields_of(state, {"schema", "version", "ledger", *names}, "checkpoint")
    entries = fields["ledger"]
    if not isinstance(entries, (list, tuple)):
        raise CheckpointError(f"ledger: expected a list, got {entries!r}")
    ledger: dict[Mechanism, int] = {}
    for i, entry in enumerate(entries):
        place = f"ledger[{i}]"
        entry = fields_of(entry, {"mechanism", "count"}, place)
        written = entry["mechanism"]
        if version == 1:
            written = _from_version_1(written, f"{place}.mechanism")
        mechanism = mechanism_from_state(written, f"{place}.mechanism")
        if mechanism in ledger and version > 1:  # two names of version 1 may be one mechanism now
            raise CheckpointError(f"{place}: {mechanism!r} comes twice")
        with at(place):
            count = positive_int("count", entry["count"])
            ledger[mechanism] = ledger.get(mechanism, 0) + count
    return {name: fields[name] for name in names}, list(ledger.items())


def save_pld(pld: PLD, path: str | os.PathLike[str]) -> None:
    """`PLD.save`."""
    pld.save(path)


def load_pld(path: str | os.PathLike[str]) -> PLD:
    """`PLD.load`."""
    return PLD.load(path)


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
