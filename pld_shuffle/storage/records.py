"""Records on disk: plain data as JSON and arrays as npz files, read strictly.

A record says what it is (``schema``) and which ``version`` of that. Whatever a writer of this package cannot have
written is a `CheckpointError` that says where. Nothing is unpickled, and sizes are checked before they are read.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from .files import replacing

MOST_BYTES = 2**28  # of one archive, unpacked
MOST_MEMBERS = 64
MOST_OVERHEAD = 2**16  # of their headers, packed


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
def nested() -> Iterator[None]:
    """Nothing that was saved is nested deeply: what is, cannot be one of ours."""
    try:
        yield
    except RecursionError:
        raise CheckpointError("checkpoint: nested too deeply") from None


def fields_of(state: Any, names: set[str], place: str) -> Mapping[str, Any]:
    """`state` if it is a mapping with just these fields."""
    if not isinstance(state, Mapping):
        raise CheckpointError(f"{place}: expected a mapping, got {state!r}")
    for problem, wrong in (("unknown", state.keys() - names), ("missing", names - state.keys())):
        if wrong:
            raise CheckpointError(f"{place}: {problem} field {', '.join(sorted(map(repr, wrong)))}")
    return state


def check_header(state: Any, schema: str, versions: tuple[int, ...]) -> int:
    """The version; what it is and which version come first, since other complaints would follow from these."""
    if not isinstance(state, Mapping):
        raise CheckpointError(f"checkpoint: expected a mapping, got {state!r}")
    for name in ("schema", "version"):
        if name not in state:
            raise CheckpointError(f"checkpoint: missing field {name!r}")
    if state["schema"] != schema:
        raise CheckpointError(f"schema: expected {schema!r}, got {state['schema']!r}")
    version = state["version"]
    if type(version) is not int or version not in versions:
        known = " and ".join(map(str, versions))
        noun = "version" if len(versions) == 1 else "versions"
        verb = "is" if len(versions) == 1 else "are"
        raise CheckpointError(f"version: only {noun} {known} {verb} known here, got {version!r}")
    return version


def to_json(state: Mapping[str, Any]) -> str:
    """A state as JSON text."""
    return json.dumps(state, indent=1, allow_nan=False)


@nested()
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


def write_arrays(path: str | os.PathLike[str], arrays: Mapping[str, Any]) -> None:
    """Write arrays and numbers to an npz file, all of it or nothing."""
    with replacing(path) as file:
        np.savez(file, **arrays)


def read_arrays(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The arrays of an npz file by name, those without dimensions as Python scalars.

    Raises CheckpointError if it is none, or unpacks to more than MOST_BYTES; OSError if it cannot be read.
    """
    name = os.fspath(path)
    with open(path, "rb") as file:
        held = os.fstat(file.fileno()).st_size
        if not held <= MOST_BYTES + MOST_OVERHEAD:
            raise CheckpointError(f"{name!r} has {held} bytes")
        data = file.read(held)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
        size = sum(member.file_size for member in members)
        if not (len(members) <= MOST_MEMBERS and size <= MOST_BYTES):
            raise CheckpointError(f"{name!r} unpacks to {size} bytes in {len(members)} arrays")
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            found = {key: arrays[key] for key in arrays.files}
        wrong = [key for key, array in found.items() if not isinstance(array, np.ndarray)]
        if wrong or len(found) < len(members):
            raise ValueError(f"{wrong[0]!r} is no array" if wrong else "an array comes twice")
    except CheckpointError:
        raise
    except Exception as error:  # damage shows in any of zipfile's, zlib's and numpy's ways
        raise CheckpointError(f"{name!r} is no npz file of numbers: {error}") from error
    return {key: array.item() if array.ndim == 0 else array for key, array in found.items()}
