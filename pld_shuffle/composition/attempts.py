"""One question: attempts with less and less error, until the bracket is tight.

Three evaluators compose a ledger under a plan: a contour integral over atoms wherever they lie (`contour`), the same
integral on a lattice (`product`), and direct convolution (there, too). Each gives a reading, or raises `TooExpensive`.
An attempt asks the first one that is not too expensive and *measures* the bracket it gives. If that is too wide, the
next attempt spends less error, or asks another evaluator first. How hard an attempt tries is one number, `Plan.share`:
the less of rtol it spends, the more it costs.

Everything here steers. Whatever is returned is certified, and `Found.width` says how wide it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..numerics.sides import Bounds
from ..numerics.tuning import FAR, FUTILE_ATTEMPTS, MOST_ATTEMPTS
from ..pairs.pair import Pair
from .contour import Contour, preferred
from .moments import TooExpensive
from .plan import Plan, Sketch
from .product import DirectReading, LatticeReading
from .reading import SMALLEST_DELTA, Question, Reading

Ledger = Sequence[tuple[Pair, int]]
Evaluator = type[Contour] | type[LatticeReading] | type[DirectReading]

PATIENCE = 64.0  # times as much work of a contour, where a lattice has no answer
# What an attack's bracket may be: of what is between analyses and the attack, of rtol, and of delta.
PART_OF_GAP, TIMES, MOST_WIDTH = 0.02, 5.0, 0.01
WIDEST = 1e6  # share of rtol that is spent at most, where everything else is too expensive


@dataclass(frozen=True)
class Task:
    """A question about a ledger; max_loss : the sum of the largest losses. encloses : as in `Pair`, of all pairs.

    above : an upper end that is known otherwise, of which this one is the attack; -inf if there is none.
    """

    ledger: Ledger
    question: Question
    max_loss: float
    encloses: bool
    above: float = -math.inf

    def wanted(self, bounds: Bounds, width: float, rtol: float) -> float:
        """What width of delta will do: rtol, or up to TIMES rtol where far more is between analyses and attack."""
        own = bounds.upper - bounds.lower
        gap = self.above - bounds.upper
        part = PART_OF_GAP * gap / own * width if 0.0 < own < gap < math.inf > width else 0.0
        return max(rtol, min(part, TIMES * rtol, MOST_WIDTH))


@dataclass(frozen=True)
class Found:
    """A bracket; how wide delta is known there; what stopped the search, or the reading of a bracket that is tight."""

    bounds: Bounds
    width: float = math.inf
    reason: str = ""
    reading: Reading | None = None

    def met(self, other: Found, encloses: bool) -> Found:
        """Both together. Where another resolution is another pair, the lower end is only the numerical one."""
        upper = min(self.bounds.upper, other.bounds.upper)
        lower = max(self.bounds.lower, other.bounds.lower) if encloses else other.bounds.lower
        return replace(other, bounds=Bounds(min(lower, upper), upper), width=min(self.width, other.width))


class Attempts:
    """The attempts at one question under a sketched tilt; start : of `sketched`."""

    def __init__(self, task: Task, rtol: float, start: tuple[Sketch, float, float]) -> None:
        sketch, tilt, log_delta = start
        plan = Plan.steered(sketch, tilt, task.ledger, log_delta=log_delta, rtol=rtol)
        if log_delta < math.log(SMALLEST_DELTA):
            # Honest, not tight: the upper bound is what windows miss.
            plan = replace(plan, share=1e4)
        self._task, self._plan = task, plan
        #: Which one comes first; the others are asked where it is too expensive, or does not get better.
        self._evaluators: list[Evaluator] = [LatticeReading, Contour, DirectReading]
        if sum(count for _, count in task.ledger) == 1:
            self._evaluators = [DirectReading]
        elif preferred(task.ledger, sketch):
            self._evaluators = [Contour, LatticeReading, DirectReading]
        #: The share at which an evaluator was too expensive; with less it would be, too.
        self._refused: dict[Evaluator, float] = {}
        self._widths, self._shrink, self._wanted = [math.inf], 1.0, plan.rtol

    def run(self) -> Found:
        """Compose, measure, and compose again with less error, until the bracket is tight or gets no better."""
        task = self._task
        best = Found(Bounds(0.0, 1.0 if task.question.delta is None else task.max_loss))
        for attempt in range(MOST_ATTEMPTS):
            reading, reason = self._composed()
            if reading is None:
                best = replace(best, reason=reason)
                if not self._cheaper():
                    break
                continue
            bounds, width = task.question.answer(reading, task.max_loss)
            self._wanted = task.wanted(bounds, width, self._plan.rtol)
            tight = width <= self._wanted
            best = best.met(Found(bounds, width, "", reading if tight else None), task.encloses)
            far = attempt == 0 and isinstance(reading, LatticeReading) and math.inf > width > FAR * self._wanted
            if tight or not self._next(attempt, bounds, width, far):
                break
        return best

    def _composed(self) -> tuple[Reading | None, str]:
        """A reading of the first evaluator that is not too expensive, or why there is none."""
        reason = ""
        for evaluator in self._evaluators:
            if self._plan.share <= self._refused.get(evaluator, 0.0):
                continue
            try:
                return evaluator.of(self._task.ledger, self._plan, self._task.question), ""
            except (TooExpensive, MemoryError) as error:
                self._refused[evaluator] = self._plan.share
                reason = f": {error}" if str(error) else reason
        return None, reason

    def _cheaper(self) -> bool:
        """Plan for more error: a wide bracket is better than none. False where one is known that is hardly wider."""
        known = len(self._widths) > 1
        if self._plan.share >= WIDEST or (known and self._shrink > 0.4):
            return False
        self._shrink = math.sqrt(self._shrink)
        grown = 1.0 / self._shrink if known else 4.0
        lattice_share = self._plan.lattice_share if known else min(1.0, 4.0 * self._plan.lattice_share)
        self._plan = replace(self._plan, share=grown * self._plan.share, lattice_share=lattice_share)
        return True

    def _next(self, attempt: int, found: Bounds, width: float, far: bool) -> bool:
        """Plan for less error, or for another evaluator; False if neither would help.

        far : whether a first lattice was far too wide.
        """
        plan, question = self._plan, self._task.question
        better = min(plan.log_delta, question.log_delta(found))
        if not far and better < plan.log_delta - 2.0 and attempt < MOST_ATTEMPTS // 2:
            # delta is far smaller than sketched: what the windows missed may be all of the bracket.
            self._plan = replace(plan, log_delta=better)
            return True
        heavy = math.isinf(width) and Contour in self._refused and question.promised(found)
        if plan.patience < PATIENCE and (heavy or far):
            # Atoms are far narrower than lattices, and hold tails that no lattice does: worth more work.
            self._evaluators = [Contour, LatticeReading, DirectReading]
            self._refused.clear()
            self._plan = replace(plan, patience=PATIENCE)
            return True
        if attempt >= FUTILE_ATTEMPTS and (math.isinf(width) or not question.promised(found)):
            return False
        if width > 0.9 * self._widths[-1] or math.isinf(width):
            self._evaluators.append(self._evaluators.pop(0))  # the same, another way
            if math.isinf(width):
                return True
            if len(self._widths) > 3 and width > 0.9 * min(self._widths[:-2]):
                return False  # what is left is rounding
        # Widths fall like the share, or like its root where laws have few losses.
        power = 1.0
        if len(self._widths) > 1 and width < self._widths[-1]:
            power = math.log(self._shrink) / math.log(width / self._widths[-1])
        shrink = (0.7 * self._wanted / width) ** min(max(power, 1.0), 2.0)
        self._shrink = min(0.5, max(1.0 / 64.0, shrink))
        self._widths.append(width)
        self._plan = replace(plan, share=plan.share * self._shrink)
        return True


def sketched(ledger: Ledger, question: Question) -> tuple[Sketch, float, float]:
    """A sketch that is good near the answer, the tilt there, and about log delta."""
    rounds = sum(count for _, count in ledger)
    if question.delta is not None:
        log_delta = math.log(max(min(question.delta, 0.5), SMALLEST_DELTA))
        sketch = Sketch.at_delta(ledger, math.exp(log_delta), rounds)
        return sketch, sketch.saddle_of_delta(log_delta), log_delta
    assert question.eps is not None
    truncated_mass = 1e-30
    while True:
        sketch = Sketch(ledger, truncated_mass)
        tilt = sketch.saddle(question.eps) if question.eps < math.inf else 0.0
        log_delta = sketch.log_delta(tilt, question.eps)
        if log_delta > math.log(truncated_mass) + math.log(1e4 * rounds) or truncated_mass <= 1e-300:
            return sketch, tilt, log_delta
        truncated_mass = max(truncated_mass**3 if truncated_mass > 1e-100 else 1e-300, 1e-300)
