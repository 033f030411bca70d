"""A composition that grows round by round under one tilt, one side of it.

Rounds are multiplied in blocks on a fine step; finished blocks live on a coarser one. So a prefix costs two short
transforms, whatever came before. The laws do not depend on the tilt, and are formed once for all prefixes.
"""

from __future__ import annotations

import math
from collections.abc import Hashable

import numpy as np

from ..numerics import convolution
from ..numerics.convolution import Law, Reader, RunningProduct, Tails
from ..numerics.lattice import place
from ..numerics.sides import Bounds, Side
from ..numerics.solving import next_satisfying
from ..pairs.pair import Pair
from .plan import BATCH, Plan
from .pld import PLD, formed
from .reading import Composed

KEPT_POINTS = 2**24  # of formed laws
COARSER, FINER = 0.9, 1.6  # than planned: what a lattice may be and still serve


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


class OneReading:
    """A prefix's law, read on the side it is certified on."""

    def __init__(self, law: Law, infinity: float, slack: float) -> None:
        reader = Reader(law)
        around = Bounds(infinity * (1.0 - 2e-15), min(1.0, infinity * (1.0 + 2e-15)))
        self._composed = Composed(reader, reader, around, slack)
        self._middle = (law.low + int(np.argmax(law.mass))) * law.step

    def delta(self, eps: float, side: Side) -> float:
        """The bound on delta at eps."""
        return self._composed.upper(eps) if side is Side.UPPER else self._composed.lower(eps)

    def epsilon(self, delta: float, side: Side, near: float | None = None) -> float:
        """The least eps proven to have delta, or the largest near that which is excluded; delta > 0."""
        upper = side is Side.UPPER
        aim = math.log(delta)

        def excess(eps: float) -> float:
            found = self.delta(eps, side)
            log = math.log(found) - aim if found > 0.0 else -math.inf
            return log if upper else 1e-15 - log

        if upper and self.delta(0.0, side) <= delta:
            return 0.0
        start = max(near or self._middle, 1e-300)
        found = next_satisfying(excess, start, upwards=upper)
        return (math.inf if upper else 0.0) if found is None else found


class Prefix:
    """One side of a growing composition; for plan.rounds rounds in all, in `rows` rows."""

    def __init__(self, plan: Plan, side: Side, laws: Laws, rows: int) -> None:
        self._plan = plan
        self._side = side
        self._laws = laws
        self._log_finite = 0.0
        self._slack = 0.0
        self.rounds = 0
        self.spread = 0.0  # of all rounds: about the relative width in delta that the lattice costs
        blocks = -(-rows // BATCH) + 1
        self._ratio = max(1, math.floor(plan.step(blocks) / laws.step))
        deviation = math.sqrt(plan.tilted_variance)
        self._blocks = _running(deviation / (self._ratio * laws.step), plan.tail)
        self._finished = 0
        self._deviation = deviation / laws.step * math.sqrt(min(1.0, BATCH / rows))
        self._open: list[tuple[Pair, int]] = []
        self._block = _running(self._deviation, plan.tail)
        self._multiplied = 0
        self._tilted: dict[Pair, tuple[Law, float, float]] = {}
        self._spreads: dict[Hashable, float] = {}
        self._alike: dict[tuple[Pair, int, int], Law] = {}  # blocks of equal rows

    def extend(self, pair: Pair, count: int) -> None:
        """Multiply by one row."""
        _, infinity, slack = self._law(pair)
        self._log_finite += count * math.log1p(-min(infinity, 1.0 - 1e-16))
        self._slack += count * slack
        self.rounds += count
        self.spread += count * self._spread(pair)
        self._open.append((pair, count))
        if len(self._open) == BATCH:
            self._blocks.extend(self._coarse_block())
            self._finished += 1
            self._open, self._multiplied = [], 0
            self._block = _running(self._deviation, self._plan.tail)

    def reading(self) -> OneReading:
        """The prefix so far."""
        if not self._open:
            law = self._blocks.value()
        else:
            law = self._coarse_block()
            law = self._blocks.times(law) if self._finished else law
        return OneReading(law, -math.expm1(self._log_finite) + 0.0, self._slack * (1.0 + 1e-9))

    def _law(self, pair: Pair) -> tuple[Law, float, float]:
        """Tilted law, mass at infinity and slack of one round; remembered for the latest pairs."""
        found = self._tilted.get(pair)
        if found is None:
            if len(self._tilted) > 2 * BATCH:
                self._tilted.clear()
            mine = self._laws.of(pair, self._side)
            found = mine.tilted(self._plan.tilt), mine.infinity, mine.slack
            self._tilted[pair] = found
        return found

    def _spread(self, pair: Pair) -> float:
        """How far apart, in logarithms, the two sides' tilted masses of one round are; of one pair for all its kin."""
        if pair.kin not in self._spreads:
            lower, upper = (
                self._laws.of(pair, side).tilted(self._plan.tilt).log_scale
                for side in (Side.LOWER, Side.UPPER)
            )
            self._spreads[pair.kin] = upper - lower
        return self._spreads[pair.kin]

    def _coarse_block(self) -> Law:
        """The open block on the coarse step."""
        first = self._open[0]
        alike = all(row == first for row in self._open)
        key = (*first, len(self._open))
        if alike and key in self._alike:
            return self._alike[key]
        for pair, count in self._open[self._multiplied :]:
            self._block.extend(self._law(pair)[0], count)
        self._multiplied = len(self._open)
        law = self._coarser(self._block.value())
        if alike:
            self._alike[key] = law
        return law

    def _coarser(self, law: Law) -> Law:
        if self._ratio == 1:
            return law
        self._slack += 2e-14 * self._ratio * law.step
        plan, step = self._plan, law.step * self._ratio
        index = law.low + np.arange(law.mass.size, dtype=np.int64)
        cell = index // self._ratio
        offset = (index - cell * self._ratio).astype(np.float64) * law.step
        mass, low = place(
            law.mass, cell, offset, step=step, side=self._side, tilt=plan.tilt, reach=plan.reach
        )
        return convolution.relabelled(law, mass, low, step)


def _running(deviation: float, tail: float) -> RunningProduct:
    """A running product sized for laws up to this standard deviation (in lattice points)."""
    reach = math.sqrt(2.0 * math.log(2.0 / tail))
    return RunningProduct(math.ceil(3.2 * reach * deviation) + 256, Tails(deviation, tail))
