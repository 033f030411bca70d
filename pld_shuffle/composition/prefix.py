"""Laws on one lattice for all prefixes of a log, and a ledger that grows.

The laws do not depend on the tilt, and are formed once for all prefixes. What is multiplied are their characteristic
functions (`spectrum`): one more round costs a sum of two short rows.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import replace

import numpy as np

from ..numerics.sides import Side
from ..pairs.pair import Pair
from .plan import Plan, sharing
from .pld import PLD, formed
from .sketch import Sketch
from .spectrum import Spectrum, Totals

KEPT_POINTS = 2**24  # of formed laws
COARSER, FINER = 0.9, 1.6  # than planned: what a lattice may be and still serve
SHARE = 0.6  # of rtol that a growing ledger's lattice is planned with


class Laws:
    """Laws of pairs on one lattice; each is formed once, up to some memory.

    rounds : that the lattice is planned for. most : rounds that the laws will be used for.
    """

    def __init__(self, plan: Plan, most: int) -> None:
        self.step = plan.step(plan.rounds)
        self._resolution = plan.resolution(self.step, most)
        self._reach = plan.reach
        self._known: dict[tuple[Pair, Side], PLD] = {}
        self._points = 0

    def serves(self, plan: Plan) -> bool:
        """Whether the lattice is about the one that `plan` would choose."""
        return COARSER * self.step <= plan.step(plan.rounds) <= FINER * self.step

    def of(self, pair: Pair, side: Side) -> PLD:
        """The law of `pair` on that side."""
        found = self._known.get((pair, side))
        if found is None:
            [found] = formed(pair, [side], self._resolution, self._reach)
            self._points += found.masses.size
            if self._points <= KEPT_POINTS:
                self._known[pair, side] = found
        return found

    def spread(self, rows: Mapping[Pair, float], tilt: float) -> float:
        """How far apart, in logarithms, the two sides' tilted masses of all rounds are; of one pair for all its kin.

        About the relative width in delta that the lattice costs.
        """
        kinds: dict[Hashable, float] = {}
        total = 0.0
        for pair, count in rows.items():
            if pair.kin not in kinds:
                lower, upper = (
                    self.of(pair, side).tilted(tilt).log_scale for side in (Side.LOWER, Side.UPPER)
                )
                kinds[pair.kin] = upper - lower
            total += count * kinds[pair.kin]
        return total


class Growing:
    """The upper side of a ledger that may come to have twice the rounds of `counts`, under one tilt.

    Raises TooDear where too many frequencies matter, MemoryError where a lattice would be too large.
    """

    def __init__(self, counts: Mapping[Pair, int], delta: float, rtol: float) -> None:
        ledger = [(pair, count) for pair, count in counts.items() if pair.scale > 0.0]
        rounds = sum(count for _, count in ledger)
        self._most = 2 * rounds
        self._held: dict[Pair, int] = {}
        log_delta = math.log(delta)
        sketch = Sketch.at_delta(ledger, delta, self._most)
        # In the middle of all that is to come, on the scale of logarithms: tilts fall like 1/sqrt(rounds).
        tilt = sketch.saddle_of_delta(log_delta) / math.sqrt(math.sqrt(2.0))
        plan = Plan.steered(
            sketch, tilt, log_delta=log_delta, rounds=self._most, rtol=rtol, factor=2.0
        )
        plan = replace(plan, share=SHARE, levels=2, many=sharing(counts))
        self._laws = Laws(plan, self._most)
        number = np.array([count for _, count in ledger], np.float64)
        first = [self._laws.of(pair, Side.UPPER) for pair, _ in ledger]
        self._spectrum = Spectrum(first, number, 2.0, plan)
        self._totals = number @ self._spectrum.rows()
        self._terms = len(ledger)
        self._held = dict(counts)

    def reach(self, counts: Mapping[Pair, int]) -> bool:
        """Multiply by what is missing; False if that is too much, or if there were more rounds before."""
        new = {pair: count - self._held.get(pair, 0) for pair, count in counts.items()}
        if (
            any(pair not in counts for pair in self._held)
            or min(new.values()) < 0
            or sum(counts.values()) > self._most
        ):
            return False
        for pair, count in new.items():
            if count > 0 and pair.scale > 0.0:
                row = self._spectrum.add(self._laws.of(pair, Side.UPPER))
                self._totals = self._totals + count * row
                self._terms += 1
        self._held = dict(counts)
        return True

    def delta(self, epsilon: float) -> float:
        """An upper bound on delta at epsilon."""
        totals = Totals(self._spectrum, self._totals[None, :], self._terms)
        return float(totals.bounds(np.array([epsilon]))[1][0])
