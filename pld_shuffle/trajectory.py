"""Epsilon spent after each round of a log, certified at every round.

Prefixes between a and 2a rows share one tilt and one pair of lattices. Rows are multiplied in blocks on
the fine step; finished blocks live on a coarser one. So a prefix costs two short transforms a side, and
the log is formed about twice in all. A prefix whose bracket comes out wider than rtol is composed on its own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .composition.attempts import Composition
from .composition.one_side import OneSide
from .composition.plan import BATCH, Plan
from .composition.reading import Composed, EpsilonQuestion
from .composition.sketch import Sketch
from .mechanisms import Mechanism, as_mechanism
from .numerics.convolution import Law, RunningProduct, Tails
from .numerics.validation import positive_int, probabilities, real, tolerance
from .pairs.pair import Pair
from .storage.frames import data_frame

Rows = Sequence[tuple[Mechanism, int]]
Pairs = list[tuple[Pair, int]]

DIRECT = 12  # prefixes up to so many rows are composed on their own


@dataclass(frozen=True)
class Trajectory:
    """Epsilon after chosen prefixes of a log; arrays of one shape (prefixes,).

    rounds : number of rounds composed so far; lower, upper : certified enclosure of epsilon, the lower end by
    attacks where the analysis is not exact; attacked : whether it is so for any of the rounds.
    """

    rounds: NDArray[np.int64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    attacked: bool = False

    def to_frame(self) -> Any:
        """A pandas DataFrame with the columns rounds, lower and upper; ImportError without pandas."""
        return data_frame({"rounds": self.rounds, "lower": self.lower, "upper": self.upper})


def epsilon_trajectory(
    rounds: Rows,
    delta: float,
    *,
    every: int = 1,
    rtol: float = 1e-3,
    progress: Callable[[int, int], None] | None = None,
) -> Trajectory:
    """Bounds on epsilon at `delta` after every `every`-th entry of `rounds`, and after the last.

    Parameters: rounds, a non-empty sequence of (mechanism, count) in the order they were run; delta in
    [0, 1]; rtol, as for `Accountant`; progress, called with (entries done, entries in all).
    Raises TypeError or ValueError naming the argument. Cost O(len(rounds)) formations and transforms.
    """
    rows = [(as_mechanism(mechanism), positive_int("count", count)) for mechanism, count in rounds]
    if not rows:
        raise ValueError("rounds must not be empty")
    target = float(probabilities("delta", real("delta", delta)))
    every = positive_int("every", every)
    wanted = sorted({*range(every, len(rows) + 1, every), len(rows)})
    width = tolerance("rtol", rtol)
    known: dict[Mechanism, tuple[Pair, Pair]] = {}
    for mechanism, _ in rows:
        if mechanism not in known:
            known[mechanism] = mechanism.pair, mechanism.attack_pair
    proved = [(known[mechanism][0], count) for mechanism, count in rows]
    attacks = [(known[mechanism][1], count) for mechanism, count in rows]
    above = _Run(proved, target, width, wanted, progress).bounds()
    below = above
    attacked = any(one is not other for one, other in known.values())
    if attacked:
        below = _Run(attacks, target, width, wanted, None).bounds()
    total = np.cumsum([count for _, count in rows])
    return Trajectory(
        total[np.array(wanted) - 1].astype(np.int64),
        np.array([min(below[row][0], above[row][1]) for row in wanted]),
        np.array([above[row][1] for row in wanted]),
        attacked,
    )


class _Run:
    def __init__(
        self,
        rows: Pairs,
        delta: float,
        rtol: float,
        wanted: list[int],
        progress: Callable[[int, int], None] | None,
    ) -> None:
        self._rows = rows
        self._delta = delta
        self._rtol = rtol
        self._wanted = wanted
        self._progress = progress

    def bounds(self) -> dict[int, tuple[float, float]]:
        found: dict[int, tuple[float, float]] = {}
        done = 0
        shared = self._delta > 1e-250 and self._delta < 1.0
        while done < len(self._rows):
            end = min(len(self._rows), max(DIRECT, 2 * done))
            asked = [row for row in self._wanted if done < row <= end]
            if end > DIRECT and shared and len(asked) > 2:
                found.update(self._segment(done, end, asked))
            for row in asked:
                if row not in found:
                    composition = Composition(_pooled(self._rows[:row]), self._rtol)
                    found[row] = composition.epsilon(self._delta)
                self._report(row)
            done = end
        return found

    def _report(self, row: int) -> None:
        if self._progress is not None:
            self._progress(row, len(self._rows))

    def _segment(self, done: int, end: int, asked: list[int]) -> dict[int, tuple[float, float]]:
        """Bounds after the rows of `asked`, all in (done, end], where the shared tilt allows them."""
        rows = [(pair, count) for pair, count in self._rows[:end] if pair.scale > 0.0]
        if len(rows) < end:
            return {}  # rows without loss: leave it to the general path
        middle = max(1, round(math.sqrt(max(done, 1) * end)))
        pooled = _pooled(self._rows[:middle])
        held = sum(count for _, count in pooled)
        laws = sum(count for _, count in rows)
        sketch = Sketch(pooled, max(1e-5 * self._delta / laws, 1e-300))
        tilt = sketch.saddle_of_delta(math.log(self._delta))
        plan = Plan.steered(
            sketch,
            tilt,
            log_delta=math.log(self._delta),
            rounds=laws,
            rtol=self._rtol,
            factor=laws / held,
        )
        plan = replace(plan, share=0.7, levels=2)
        if max(count for _, count in rows) > 4 * BATCH:
            return {}
        runs = OneSide.pair(plan)
        seen = Counter(pair for pair, _ in rows)
        for run in runs:
            run.keep = frozenset(pair for pair, times in seen.items() if times > 1)
        sides = [_Prefix(plan, run, laws, len(rows)) for run in runs]
        question = EpsilonQuestion(self._delta)
        found: dict[int, tuple[float, float]] = {}
        want = set(asked)
        try:
            for row, (pair, count) in enumerate(rows, 1):
                for side in sides:
                    side.extend(pair, count)
                if row in want:
                    lower, upper = sides
                    composed = Composed.of(lower.run, lower.value(), upper.run, upper.value())
                    limit = math.inf
                    bounds = question.answer(composed, limit)
                    if question.width(composed, bounds) <= self._rtol:
                        found[row] = bounds
                if row > done:
                    self._report(row)
        except MemoryError:
            pass  # a window outgrew its estimate: the rest is composed row by row
        return found


class _Prefix:
    """One side of a growing prefix: a block on the fine step, finished blocks on the coarse one."""

    def __init__(self, plan: Plan, run: OneSide, laws: int, rows: int) -> None:
        self.run = run
        self._plan = plan
        self._step = plan.step(laws)
        blocks = -(-rows // BATCH) + 1
        self._ratio = max(1, math.floor(plan.step(blocks) / self._step))
        coarse = self._ratio * self._step
        deviation = math.sqrt(plan.tilted_variance)
        self._blocks = _running(deviation / coarse, plan.tail)
        self._finished = 0
        self._share = laws / rows
        self._deviation = deviation / self._step * math.sqrt(min(1.0, BATCH / rows))
        self._block = _running(self._deviation, plan.tail)
        self._open = 0

    def extend(self, pair: Pair, count: int) -> None:
        """Multiply by one row."""
        self._block.extend(self.run.law(pair, count, self._step), count)
        self._open += 1
        if self._open == BATCH:
            self._blocks.extend(self._coarse(self._block.value()))
            self._finished += 1
            self._block = _running(self._deviation, self._plan.tail)
            self._open = 0

    def value(self) -> Law:
        """The prefix's law."""
        if not self._open:
            return self._blocks.value()
        law = self._coarse(self._block.value())
        return self._blocks.times(law) if self._finished else law

    def _coarse(self, law: Law) -> Law:
        return self.run.coarser(law, self._ratio) if self._ratio > 1 else law


def _running(deviation: float, tail: float) -> RunningProduct:
    """A running product sized for laws up to this standard deviation (in lattice points)."""
    reach = math.sqrt(2.0 * math.log(2.0 / tail))
    return RunningProduct(math.ceil(3.2 * reach * deviation) + 256, Tails(deviation, tail))


def _pooled(rows: Pairs) -> Pairs:
    pool: dict[Pair, int] = {}
    for pair, count in rows:
        pool[pair] = pool.get(pair, 0) + count
    return list(pool.items())
