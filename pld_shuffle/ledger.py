"""The ledger: which mechanisms were run, how often. The one place where repetition is counted."""

from __future__ import annotations

import copy
import json
import os
import threading
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np

from . import checkpoint
from .checkpoint import Log
from .mechanisms import Mechanism, as_mechanism
from .numerics.validation import UnlikelyWarning, positive_int
from .pairs.pair import Pair
from .storage import shortened, write_text
from .trainlog import LogWarning, Rounds, training_log

SHOWN = 3  # mechanisms in a repr
#: No delta that anybody means is larger, and hardly an epsilon smaller.
LARGEST_DELTA, SMALL_EPSILON = 0.1, 1e-5

Self = TypeVar("Self", bound="Ledger")


class Ledger:
    """Rounds composed so far, equal mechanisms pooled; two of one class are equal if settings and rounds are.

    State can be saved and restored (`state_dict`, `to_json`, `save` and their counterparts; the format is in
    `checkpoint`): the mechanisms with their counts, no arrays. A restored object gives the very same numbers
    as the saved one from the next `compose` on. Any number of threads may compose and ask: every round is counted,
    and questions wait for each other. As long as the ledger has not changed, an answer may depend,
    within the accuracy asked for, on questions asked earlier; a restored object has not been asked any.
    """

    SETTINGS: ClassVar[tuple[str, ...]] = ()  #: the constructor's arguments

    def __init__(self) -> None:
        self._counts: dict[Mechanism, int] = {}
        self._logs: list[Log] = []
        self._pairs: dict[tuple[str, Mechanism], Pair] = {}
        self._lock = threading.RLock()

    def __reduce__(self) -> Any:
        """Pickled or copied: settings, rounds and logs alone; what was computed is computed again."""
        with self._lock:
            return _made, (type(self), self._settings(), self.ledger, tuple(self._logs))

    @property
    def ledger(self) -> Rounds:
        """The distinct mechanisms with their counts, in the order of their first appearance."""
        with self._lock:
            return tuple(self._counts.items())

    @property
    def rounds(self) -> int:
        """Number of rounds composed so far."""
        with self._lock:
            return sum(self._counts.values())

    def compose(self: Self, mechanism: Mechanism, count: int = 1) -> Self:
        """Add `count` rounds of `mechanism`; returns this object.

        Raises TypeError or ValueError, also for a mechanism of another neighbouring relation than the
        ledger's, and then nothing has been added.
        """
        with self._lock:
            mechanism, count = self._checked(mechanism, count)
            self._pay(mechanism, count)
            self._hold(mechanism, count)
        return self

    def _pay(self, mechanism: Mechanism, count: int) -> None:
        """Where there is a budget: pay for the rounds, or raise, and then nothing has changed."""

    def _hold(self, mechanism: Mechanism, count: int) -> None:
        self._counts[mechanism] = self._counts.get(mechanism, 0) + count

    def _adopt(self: Self, other: Self) -> None:
        """Become another object; the lock stays."""
        self.__dict__.update({name: value for name, value in vars(other).items() if name != "_lock"})

    def _pair(self, mechanism: Mechanism, name: str = "pair") -> Pair:
        """The pair (or the attack_pair) of a mechanism, the same object for equal mechanisms."""
        if (name, mechanism) not in self._pairs:
            self._pairs[name, mechanism] = getattr(mechanism, name)
        return self._pairs[name, mechanism]

    def _checked(self, mechanism: Mechanism, count: int) -> tuple[Mechanism, int]:
        """Both, if this ledger can take them."""
        mechanism = as_mechanism(mechanism)
        count = positive_int("count", count)
        held = next(iter(self._counts), mechanism)
        if held.relation != mechanism.relation:
            raise ValueError(
                f"mechanism must be for the ledger's neighbouring relation {held.relation!r}, got"
                f" {mechanism.relation!r} with {mechanism!r}"
            )
        return mechanism, count

    def compose_log(self: Self, log: Any) -> Self:
        """Add all rounds of a training log, or none of them; returns this object.

        log : a path or "-", an open file, a pandas or polars data frame, or mappings, one for each round
        (see `trainlog.training_log`). Raises LogError (a ValueError), which names what is wrong and where,
        TypeError or OSError. Gives a LogWarning for what a person should look at.
        """
        found = training_log(log)
        with self._lock:
            self._adopt(composed(copy.copy(self), found.rounds))
            if found.sha256 is not None:
                self._logs.append(Log(found.name, found.sha256))
        for note in found.notes:
            warnings.warn(note, LogWarning, stacklevel=2)
        return self

    def _look_at(self, delta: Any = (), epsilon: Any = ()) -> None:
        """Warn of a question that was hardly meant: about nothing, at a large delta, at a tiny epsilon."""
        least = float(np.min(delta)) if np.size(delta) else 0.0
        largest = float(np.max(epsilon)) if np.size(epsilon) else 0.0
        users = max((held.users or 0 for held, _ in self.ledger), default=0)
        if not self.ledger:
            text = "nothing has been composed, so nothing is spent"
        elif least >= 1.0:
            text = f"every epsilon holds at delta={least:g}, so 0 does; was an epsilon meant?"
        elif least * users >= 1.0 or least > LARGEST_DELTA:
            text = (
                f"delta={least:g} is at least 1/n with n={users:,}" if users else f"delta={least:g} is large"
            ) + "; such a guarantee allows for publishing somebody's data (or was an epsilon meant?)"
        elif 0.0 < largest <= SMALL_EPSILON:
            text = f"epsilon={largest:g} is small; was a delta meant?"
        else:
            return
        warnings.warn(text, UnlikelyWarning, stacklevel=4)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ledger) or type(other) is not type(self):
            return NotImplemented
        return self._settings() == other._settings() and dict(self.ledger) == dict(other.ledger)

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __repr__(self) -> str:
        held = self.ledger
        shown = ", ".join(f"({shortened(repr(mechanism))}, {count})" for mechanism, count in held[:SHOWN])
        if len(held) > SHOWN:
            shown += f", ... and {len(held) - SHOWN:,} more"
        settings = "".join(f"{name}={value!r}, " for name, value in self._settings().items())
        return f"{type(self).__name__}({settings}ledger=[{shown}])"

    def state_dict(self) -> dict[str, Any]:
        """Settings, mechanisms and counts as plain data that JSON can hold, and the logs they were read from.

        Raises CheckpointError, a ValueError, for a mechanism that is not one of the package's own.
        """
        with self._lock:
            return checkpoint.ledger_state(type(self).__name__, self._settings(), self.ledger, self._logs)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Replace settings and ledger by those of a state of the same class.

        Raises CheckpointError, a ValueError, that names what is wrong; then this object is unchanged.
        """
        fresh = self._of_state(state)
        with self._lock:
            self._adopt(fresh)

    def to_json(self) -> str:
        """`state_dict` as JSON text, with who wrote it and when; numbers are exact."""
        state = {"written": checkpoint.written(), **self.state_dict()}
        return json.dumps(state, indent=1, allow_nan=False)

    @classmethod
    def from_json(cls: type[Self], text: str | bytes) -> Self:
        """A new object from the text that `to_json` gave. Raises CheckpointError, a ValueError."""
        state = checkpoint.from_json(text)
        if isinstance(state, dict):
            state.pop("written", None)  # whoever it was
        return cls._of_state(state)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `to_json` to a file, all of it or nothing. Raises CheckpointError or OSError."""
        write_text(path, self.to_json() + "\n")

    @classmethod
    def load(cls: type[Self], path: str | os.PathLike[str]) -> Self:
        """A new object from the file that `save` wrote. Raises CheckpointError or OSError."""
        return cls.from_json(Path(path).read_bytes())

    def _settings(self) -> dict[str, Any]:
        """The constructor's arguments by their names."""
        return {name: getattr(self, f"_{name}") for name in self.SETTINGS}

    @classmethod
    def _of_settings(cls: type[Self], settings: Mapping[str, Any]) -> Self:
        """A new object with these settings and no rounds."""
        return cls(**settings)

    @classmethod
    def _of_state(cls: type[Self], state: Any) -> Self:
        """A new object as `state_dict` described it; CheckpointError."""
        found = checkpoint.read_ledger_state(cls.__name__, cls.SETTINGS, state)
        with checkpoint.at("checkpoint"):
            return _made(cls, *found)


def composed(ledger: Self, rounds: Iterable[tuple[Mechanism, int]]) -> Self:
    """The ledger, after these rounds."""
    for mechanism, count in rounds:
        ledger.compose(mechanism, count)
    return ledger


def listed(name: str, rounds: Any) -> list[tuple[Mechanism, int]]:
    """The (mechanism, count) pairs; TypeError naming the argument for anything else."""
    found = list(rounds) if isinstance(rounds, Iterable) else [rounds]
    for pair in found:
        if not (isinstance(pair, (tuple, list)) and len(pair) == 2):
            raise TypeError(f"{name} must be (mechanism, count) pairs, got {pair!r}")
    return found


def _made(
    maker: type[Self], settings: Mapping[str, Any], ledger: Iterable[tuple[Mechanism, int]], logs: Iterable[Log]
) -> Self:
    """A new object with these settings and rounds, which has not been asked anything."""
    new = maker._of_settings(settings)
    for i, (mechanism, count) in enumerate(ledger):
        with checkpoint.at(f"ledger[{i}]"):
            new._hold(*new._checked(mechanism, count))
    new._logs.extend(logs)
    return new
