"""One side of one attempt: forms the laws batch by batch and multiplies them.

Long compositions are multiplied in levels, on a step that grows like the square root of the rounds (Ghazi et al. 2022),
so that arrays do not grow with the rounds. At each level masses are placed anew on the safe side.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..numerics import convolution
from ..numerics.convolution import Law
from ..numerics.lattice import aligned, place
from ..numerics.sides import Side
from ..pairs.pair import Pair, Resolution
from .plan import Plan, batch_rounds
from .pld import PLD, formed, log_finite

Item = tuple[Pair | Law, int]

WAITING_POINTS = 2**23  # of laws formed for both sides, held until the other side needs them


class OneSide:
    """One side of one attempt: forms the laws batch by batch, multiplies, and lets the step grow."""

    def __init__(self, plan: Plan, side: Side, formed: dict[tuple[Pair, float], PLD]) -> None:
        self._plan = plan
        self._side = side
        self._formed = formed
        self._waiting_points = 0
        self._log_finite = 0.0
        self.slack = 0.0
        self.keep: frozenset[Pair] = frozenset()  # pairs that will be asked for again
        self._kept: dict[tuple[Pair, float], tuple[Law, float, float]] = {}
        self._resolutions: dict[Pair, Resolution] = {}

    @classmethod
    def pair(cls, plan: Plan) -> tuple[OneSide, OneSide]:
        """The lower and the upper side; what one forms for both, the other picks up."""
        formed: dict[tuple[Pair, float], PLD] = {}
        return cls(plan, Side.LOWER, formed), cls(plan, Side.UPPER, formed)

    @property
    def infinity(self) -> float:
        """P-mass at infinite loss of everything formed so far, 1 - prod (1 - w)^count."""
        return -math.expm1(self._log_finite) + 0.0

    def run(self, ledger: list[tuple[Pair, int]]) -> Law:
        """The product over a whole ledger."""
        plan = self._plan
        step = plan.step(plan.rounds)
        if plan.own_lattices:
            # What has few losses loses most when these are no points of the lattice.
            fewest = min(
                (pair for pair, _ in ledger), key=lambda pair: pair.max_loss.upper / pair.scale
            )
            common = aligned(plan.step(len(ledger)), float(fewest.max_loss.upper))
            parts: list[Item] = []
            self._resolutions = plan.resolutions(ledger)
            # First those that are the first to be refused for their size.
            found = self._resolutions
            for pair, count in sorted(
                ledger, key=lambda item: -item[0].scale / found[item[0]].step
            ):
                own = found[pair].step
                law = self._reduced([(pair, count)], own, count)
                parts.append((self._moved(law, max(common, own)), 1))
                reach = max(abs(law.low), abs(law.low + law.mass.size)) * law.step
                self.slack += 1e-14 * reach + 2e-14 * common
            widest = max(law.step for law, _ in parts if isinstance(law, Law))
            parts = [(self._moved(law, widest), 1) for law, _ in parts if isinstance(law, Law)]
            return self._reduced(parts, widest, len(parts))
        limits = {float(pair.max_loss.upper) for pair, _ in ledger}
        if len(limits) == 1:
            step = aligned(step, limits.pop())
        return self._reduced(list(ledger), step, plan.rounds)

    def law(self, item: Pair | Law, count: int, step: float) -> Law:
        """The tilted law of an item; a pair is formed here, and its mass and slack booked."""
        if isinstance(item, Law):
            return item
        formed_before = self._kept.get((item, step))
        if formed_before is None:
            pld = self._form(item, step)
            formed_before = pld.tilted(self._plan.tilt), pld.infinity, pld.slack
            if item in self.keep:
                self._kept[item, step] = formed_before
        law, infinity, slack = formed_before
        self._log_finite += log_finite(infinity, count)
        self.slack += count * slack
        return law

    def _form(self, pair: Pair, step: float) -> PLD:
        """This side's law of `pair`; the other side's is left for it, up to some memory."""
        waiting = self._formed.pop((pair, step), None)
        if waiting is not None and waiting.side is self._side:
            return waiting
        plan = self._plan
        resolution = self._resolutions.get(pair) or plan.resolution(step)
        if self._waiting_points > WAITING_POINTS:
            return formed(pair, [self._side], resolution, plan.reach)[0]
        other_side = Side.UPPER if self._side is Side.LOWER else Side.LOWER
        mine, other = formed(pair, [self._side, other_side], resolution, plan.reach)
        self._formed[pair, step] = other
        self._waiting_points += other.masses.size
        return mine

    def _reduced(self, items: Sequence[Item], step: float, laws: int) -> Law:
        """The product of all items, on a step that has grown where there were many."""
        plan = self._plan
        if laws <= 4 or plan.fits(laws, len(items)):
            formed = [(self.law(item, count, step), count) for item, count in items]
            if plan.direct:
                return convolution.direct_product(formed)
            return convolution.product(formed, plan.tail)
        size = batch_rounds(laws, len(items))
        batch: list[tuple[Law, int]] = []
        held = 0
        products: list[tuple[Law, int]] = []

        def close() -> None:
            nonlocal batch, held
            if batch:
                products.append((convolution.product(batch, plan.tail), 1))
            batch, held = [], 0

        for item, count in items:
            law = self.law(item, count, step)
            repeats, rest = divmod(count, size)
            if repeats:
                products.append((convolution.product([(law, size)], plan.tail), repeats))
            if rest:
                batch.append((law, rest))
                held += rest
                if held >= size:
                    close()
        close()
        fewer = sum(count for _, count in products)
        ratio = math.floor(plan.step(fewer) / step)
        if ratio >= 2:
            products = [(self.coarser(law, ratio, count), count) for law, count in products]
            step = products[0][0].step
        return self._reduced(products, step, fewer)

    def coarser(self, law: Law, ratio: int, count: int = 1) -> Law:
        """`law`, used `count` times, on a step `ratio` times as long, by integer arithmetic."""
        self.slack += 2e-14 * count * ratio * law.step
        index = law.low + np.arange(law.mass.size, dtype=np.int64)
        cell = index // ratio
        return self._placed(law, cell, (index - cell * ratio) * law.step, law.step * ratio)

    def _moved(self, law: Law, step: float) -> Law:
        """`law` on another, longer step."""
        if step == law.step:
            return law
        loss = (law.low + np.arange(law.mass.size)) * law.step
        cell = np.floor(loss / step).astype(np.int64)
        return self._placed(law, cell, np.clip(loss - cell * step, 0.0, step), step)

    def _placed(self, law: Law, cell: np.ndarray, offset: np.ndarray, step: float) -> Law:
        plan = self._plan
        mass, low = place(
            law.mass, cell, offset, step=step, side=self._side, tilt=plan.tilt, reach=plan.reach
        )
        return convolution.relabelled(law, mass, low, step)
