"""Whether a ledger stays within a privacy budget: asked round after round, answered mostly from memory.

The idea. Fewer rounds spend less, so a ledger proven to be within the budget proves it for every ledger
with no larger counts. On a question that memory cannot answer, a ledger that repeats known mechanisms
is first asked about with all counts doubled (or grown by less, where that was too much): in a training loop
that is one question for many rounds. A loose bracket decides where it can, and one of the wanted rtol near
the boundary. A mechanism that has not been seen before costs a question.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping

from .composition import AccuracyWarning, Composition
from .mechanisms import Mechanism

Counts = Mapping[Mechanism, int]

LOOSE_RTOL = 0.1
FEW = 8  # up to so many distinct mechanisms a loose bracket is much cheaper than a tight one
LARGEST_GROWTH = 1.0
SMALLEST_GROWTH = 1e-3


class Budget:
    """What is known to fit into (epsilon, delta), and what is known not to."""

    def __init__(self, epsilon: float, delta: float, rtol: float) -> None:
        self._epsilon = epsilon
        self._delta = delta
        self._rtol = rtol
        self._within: Counts = {}
        self._beyond: Counts | None = None
        self._growth = LARGEST_GROWTH
        self._last: set[Mechanism] = set()

    def holds(self, counts: Counts) -> bool:
        """Whether `counts` rounds are proven to spend at most epsilon at delta."""
        if _covers(self._within, counts):
            return True
        if self._beyond is not None and _covers(counts, self._beyond):
            return False
        repeated = counts.keys() == self._last
        self._last = set(counts)
        if repeated and self._growth >= SMALLEST_GROWTH:
            grown = {item: math.ceil(n * (1.0 + self._growth)) for item, n in counts.items()}
            if self._asked(grown):
                self._growth = min(2.0 * self._growth, LARGEST_GROWTH)
                return True
            self._growth *= 0.5
        return self._asked(counts)

    def _asked(self, counts: Counts) -> bool:
        """The answer for these counts, remembered."""
        for rtol in (LOOSE_RTOL, self._rtol) if len(counts) <= FEW else (self._rtol,):
            with warnings.catch_warnings():
                # An undecided bracket is an answer here: not proven.
                warnings.simplefilter("ignore", AccuracyWarning)
                spent = Composition(list(counts.items()), rtol).epsilon(self._delta)
            if spent.upper <= self._epsilon:
                self._within = counts
                return True
            if spent.lower > self._epsilon:
                self._beyond = counts
                return False
        return False


def _covers(larger: Counts, smaller: Counts) -> bool:
    """Whether `larger` has at least the counts of `smaller`."""
    return all(larger.get(mechanism, 0) >= count for mechanism, count in smaller.items())
