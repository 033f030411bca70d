"""The ledger: which mechanisms were run, how often. The one place where repetition is counted."""

from __future__ import annotations

from typing import TypeVar

from .mechanisms import Mechanism, as_mechanism
from .validation import positive_int

Self = TypeVar("Self", bound="Ledger")


class Ledger:
    """Rounds composed so far, equal mechanisms pooled."""

    def __init__(self) -> None:
        self._counts: dict[Mechanism, int] = {}

    @property
    def ledger(self) -> tuple[tuple[Mechanism, int], ...]:
        """The distinct mechanisms with their counts, in the order of their first appearance."""
        return tuple(self._counts.items())

    @property
    def rounds(self) -> int:
        """Number of rounds composed so far."""
        return sum(self._counts.values())

    def compose(self: Self, mechanism: Mechanism, count: int = 1) -> Self:
        """Add `count` rounds of `mechanism`; returns this object.

        Raises TypeError or ValueError, and then nothing has been added.
        """
        mechanism = as_mechanism(mechanism)
        count = positive_int("count", count)
        self._counts[mechanism] = self._counts.get(mechanism, 0) + count
        return self
