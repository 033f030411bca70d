"""Whether a ledger stays within a privacy budget: asked round after round, answered mostly from memory.

The idea. Fewer rounds spend less, so a ledger proven to be within the budget proves it for every ledger
with no larger counts. On a question that memory cannot answer, a ledger of rounds that come twice or more, on average,
is first asked about with all counts doubled (or grown by less, where that was too much): in a training loop
that is one question for many rounds. A loose bracket decides where it can, and one of the wanted rtol near
the boundary. For pairs that have not been seen before, the upper side of the growing product is kept (`Growing`), and
multiplied by what is new: as often as it proves that the ledger is within, nothing else is composed.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ..numerics.search import LOOSE_RTOL
from ..numerics.sides import Side
from ..numerics.tuning import PREFIX_SHARE
from ..pairs.pair import Pair
from .composition import AccuracyWarning, Composition
from .moments import TooExpensive
from .plan import Plan, Sketch
from .pld import PLD, formed
from .product import LEAST_DELTA, LatticeIntegral, LatticeProducts, shared_lattice

Counts = Mapping[Pair, int]

STRIDES = 1e-3, 1.0  # of counts, relative: the least and the largest


class Budget:
    """What is known to fit into (epsilon, delta), and what is known not to."""

    def __init__(self, epsilon: float, delta: float, rtol: float) -> None:
        self._epsilon = epsilon
        self._delta = delta
        self._rtol = rtol
        self._within: Counts = {}
        self._beyond: Counts | None = None
        self._stride = STRIDES[1]
        self._last: set[Pair] = set()
        self._growing: Growing | None = None
        self._resting = 0  # up to so many rounds, none is kept

    def holds(self, counts: Counts) -> bool:
        """Whether `counts` rounds are proven to spend at most epsilon at delta."""
        if _covers(self._within, counts):
            return True
        if self._beyond is not None and _covers(counts, self._beyond):
            return False
        # Among many different rounds, one that comes again is no loop.
        repeated = counts.keys() == self._last and sum(counts.values()) >= 2 * len(counts)
        self._last = set(counts)
        if repeated and self._stride >= STRIDES[0]:
            grown = {item: math.ceil(n * (1.0 + self._stride)) for item, n in counts.items()}
            if self._asked(grown):
                self._stride = min(2.0 * self._stride, STRIDES[1])
                return True
            self._stride *= 0.5
        if self._kept(counts):
            self._within = counts
            return True
        return self._asked(counts)

    def _kept(self, counts: Counts) -> bool:
        """Whether the growing product proves that these counts are within the budget."""
        rounds = sum(counts.values())
        if rounds <= self._resting or not LEAST_DELTA < self._delta < 1.0:
            return False
        try:
            if self._growing is None or not self._growing.reach(counts):
                self._growing = Growing(counts, self._delta, self._rtol)
            # Not so near the limit that a bracket of rtol could disagree: the accountant's word goes there.
            return self._growing.delta(self._epsilon) * (1.0 + self._rtol) <= self._delta
        except (MemoryError, TooExpensive):  # not the kind of ledger that grows round by round
            self._growing, self._resting = None, 2 * rounds
            return False

    def _asked(self, counts: Counts) -> bool:
        """The answer for these counts, remembered."""
        encloses = all(pair.encloses for pair in counts)
        for rtol in (LOOSE_RTOL, self._rtol):
            with warnings.catch_warnings():
                # An undecided bracket is an answer here: not proven.
                warnings.simplefilter("ignore", AccuracyWarning)
                spent = Composition(list(counts.items()), rtol).epsilons(self._delta)
            if spent.upper <= self._epsilon:
                self._within = counts
                return True
            # Under another rtol, a pair that is only an upper bound is another one.
            if spent.lower > self._epsilon and (rtol == self._rtol or encloses):
                self._beyond = counts
                return False
        return False


def _covers(larger: Counts, smaller: Counts) -> bool:
    """Whether `larger` has at least the counts of `smaller`."""
    return all(larger.get(pair, 0) >= count for pair, count in smaller.items())


class Growing:
    """The upper side of a ledger that may come to have twice the rounds of `counts`, under one tilt.

    Raises TooExpensive where too many nodes matter, MemoryError where a lattice would be too large.
    """

    def __init__(self, counts: Counts, delta: float, rtol: float) -> None:
        ledger = [(pair, count) for pair, count in counts.items() if pair.scale > 0.0]
        self._most = 2 * sum(count for _, count in ledger)
        sketch = Sketch.at_delta(ledger, delta, self._most)
        # In the middle of all that is to come, on the scale of logarithms: tilts fall like 1/sqrt(rounds).
        tilt = sketch.saddle_of_delta(math.log(delta)) / math.sqrt(math.sqrt(2.0))
        plan = Plan.steered(sketch, tilt, ledger, log_delta=math.log(delta), rtol=rtol, times=2.0)
        plan = replace(plan, share=PREFIX_SHARE, lattice_share=0.5)
        self._resolution, self._gap = shared_lattice(plan, counts), plan.max_gap
        number = np.array([count for _, count in ledger], np.float64)
        laws = [self._law(pair) for pair, _ in ledger]
        self._integral = LatticeIntegral(laws, number, plan, times=2.0, terms=self._most)
        self._total = number @ np.stack(self._integral.rows)
        self._held = dict(counts)

    def _law(self, pair: Pair) -> PLD:
        return formed(pair, [Side.UPPER], self._resolution, self._gap)[0]

    def reach(self, counts: Counts) -> bool:
        """Multiply by what is missing; False if that is too much, or if there were more rounds before."""
        new = {pair: count - self._held.get(pair, 0) for pair, count in counts.items()}
        if any(pair not in counts for pair in self._held) or min(new.values()) < 0 or sum(counts.values()) > self._most:
            return False
        for pair, count in new.items():
            if count > 0 and pair.scale > 0.0:
                self._total += count * self._integral.row(self._law(pair))
        self._held = dict(counts)
        return True

    def delta(self, epsilon: float) -> float:
        """An upper bound on delta at epsilon."""
        return float(LatticeProducts(self._integral, self._total[None, :]).uppers(np.array([epsilon]))[0])
