"""Epsilon spent after each round of a log, certified at every round.

Prefixes between a and 2a rows share one tilt and one lattice (`composition.prefix`), and the log is formed about twice
in all. Upper ends are the analyses', lower ends the attacks': nothing else is multiplied. What the lattice takes of
rtol is told by the two sides' tilted masses, round by round; where that is too much, the lattice is made finer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .composition.attempts import Composition
from .composition.plan import BATCH, FEW_LAWS, Plan
from .composition.prefix import Laws, Prefix
from .composition.sketch import Sketch
from .mechanisms import Mechanism, as_mechanism
from .numerics.sides import Side
from .numerics.validation import positive_int, probabilities, real, tolerance
from .pairs.pair import Pair
from .storage.frames import data_frame

Rows = Sequence[tuple[Mechanism, int]]
Pairs = list[tuple[Pair, int]]

SHARES = (0.6, 0.3, 0.1)  # of rtol that a lattice is planned with, until it keeps to rtol
DIRECT = 4  # prefixes up to so many rows are composed on their own


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
    Both ends are certified; that the lattice keeps to rtol is estimated, not measured, on the shared lattice.
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
    above = _Run(proved, target, width, wanted, Side.UPPER, progress).ends()
    below = _Run(attacks, target, width, wanted, Side.LOWER, None).ends(above)
    total = np.cumsum([count for _, count in rows])
    return Trajectory(
        total[np.array(wanted) - 1].astype(np.int64),
        np.array([min(below[row], above[row]) for row in wanted]),
        np.array([above[row] for row in wanted]),
    )


class _Run:
    """One side's ends after all prefixes."""

    def __init__(
        self,
        rows: Pairs,
        delta: float,
        rtol: float,
        wanted: list[int],
        side: Side,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        self._rows = rows
        self._delta = delta
        self._rtol = rtol
        self._wanted = wanted
        self._side = side
        self._progress = progress
        self._told = 0
        self._many = len({pair for pair, _ in rows}) > FEW_LAWS
        self._most = sum(count for _, count in rows)
        self._laws: Laws | None = None
        self._share = SHARES[0]  # of rtol that these laws take

    def ends(self, near: dict[int, float] | None = None) -> dict[int, float]:
        """Epsilon after the wanted rows; near : guesses of it."""
        found: dict[int, float] = {}
        done = 0
        shared = self._delta > 1e-250 and self._delta < 1.0
        while done < len(self._rows):
            end = min(len(self._rows), max(DIRECT, 2 * done))
            asked = [row for row in self._wanted if done < row <= end]
            if end > DIRECT and shared and len(asked) > 2:
                found.update(self._segment(done, end, asked, near or {}))
            for row in asked:
                if row not in found:
                    composition = Composition(_pooled(self._rows[:row]), self._rtol)
                    both = composition.epsilon(self._delta)
                    found[row] = both.upper if self._side is Side.UPPER else both.lower
                self._report(row)
            done = end
        return found

    def _report(self, row: int) -> None:
        if self._progress is not None and row > self._told:
            self._told = row
            self._progress(row, len(self._rows))

    def _segment(
        self, done: int, end: int, asked: list[int], near: dict[int, float]
    ) -> dict[int, float]:
        """The ends after the rows of `asked`, all in (done, end], where the shared tilt allows them."""
        rows = [(pair, count) for pair, count in self._rows[:end] if pair.scale > 0.0]
        if len(rows) < end or max(count for _, count in rows) > 4 * BATCH:
            return {}  # rows without loss, or like many: leave it to the general path
        middle = max(1, round(math.sqrt(max(done, 1) * end)))
        pooled = _pooled(self._rows[:middle])
        held = sum(count for _, count in pooled)
        rounds = sum(count for _, count in rows)
        sketch = Sketch(pooled, max(1e-5 * self._delta / rounds, 1e-300))
        tilt = sketch.saddle_of_delta(math.log(self._delta))
        plan = Plan.steered(
            sketch,
            tilt,
            log_delta=math.log(self._delta),
            rounds=rounds,
            rtol=self._rtol,
            factor=rounds / held,
        )
        plan = replace(plan, levels=2, many=self._many)
        for share in SHARES:
            if share > self._share:
                continue
            finer = replace(plan, share=share)
            if self._laws is None or share < self._share or not self._laws.serves(finer):
                self._laws, self._share = Laws(finer, self._most), share
            try:
                found = self._prefixes(finer, self._laws, rows, done, asked, held, near)
            except MemoryError:
                return {}  # a window outgrew its estimate: the rows are composed one by one
            if found is not None:
                return found
        return {}

    def _prefixes(
        self,
        plan: Plan,
        laws: Laws,
        rows: Pairs,
        done: int,
        asked: list[int],
        held: int,
        near: dict[int, float],
    ) -> dict[int, float] | None:
        """The ends under one tilt, that of `held` rounds; None as soon as the lattice takes more than rtol."""
        prefix = Prefix(plan, self._side, laws, len(rows))
        found: dict[int, float] = {}
        want = set(asked)
        guess: float | None = None
        for row, (pair, count) in enumerate(rows, 1):
            prefix.extend(pair, count)
            if row in want:
                # Under the tilt of its own, a prefix feels the lattice as one of `held` rounds does.
                if prefix.spread * held / prefix.rounds > math.log1p(self._rtol):
                    return None
                reading = prefix.reading()
                guess = near.get(row, guess)
                found[row] = guess = reading.epsilon(self._delta, self._side, guess)
            if row > done:
                self._report(row)
        return found


def _pooled(rows: Pairs) -> Pairs:
    pool: dict[Pair, int] = {}
    for pair, count in rows:
        pool[pair] = pool.get(pair, 0) + count
    return list(pool.items())
