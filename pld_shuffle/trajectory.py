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

from .composition.aliases import TooDear
from .composition.attempts import Composition
from .composition.plan import Plan, sharing
from .composition.prefix import Laws
from .composition.sketch import Sketch
from .composition.spectrum import LEAST_DELTA, Spectrum, Totals
from .mechanisms import Mechanism, as_mechanism
from .mechanisms.base import attacked
from .numerics.sides import Side
from .numerics.validation import positive_int, probabilities, real, tolerance
from .pairs.pair import Pair
from .storage import data_frame

Rows = Sequence[tuple[Mechanism, int]]
Pairs = list[tuple[Pair, int]]

SHARES = (0.6, 0.3, 0.1)  # of rtol that a lattice is planned with, until it keeps to rtol
DIRECT = 4  # prefixes of up to so many rounds are composed on their own
SURE = 4_096  # distinct pairs that frequencies are chosen by
CHUNK = 512  # prefixes whose sums are held at once


@dataclass(frozen=True)
class Trajectory:
    """Epsilon after chosen prefixes of a log; arrays of one shape (prefixes,).

    rounds : number of rounds composed so far. lower, upper : certified bounds on epsilon; the lower ones are attacks'
    where the analysis is not exact. attacked : whether it is so for any of the rounds.
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
    told = 0

    def tell(done: int) -> None:
        """Entries of both sides."""
        nonlocal told
        if progress is not None and done // 2 > told:
            told = done // 2
            progress(told, len(rows))

    above = _Run(proved, target, width, wanted, Side.UPPER, tell).ends()
    below = _Run(
        attacks, target, width, wanted, Side.LOWER, lambda done: tell(len(rows) + done)
    ).ends(above)
    total = np.cumsum([count for _, count in rows])
    return Trajectory(
        total[np.array(wanted) - 1].astype(np.int64),
        np.array([min(below[row], above[row]) for row in wanted]),
        np.array([above[row] for row in wanted]),
        attacked(known),
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
        tell: Callable[[int], None],
    ) -> None:
        self._rows = rows
        self._delta = delta
        self._rtol = rtol
        self._wanted = wanted
        self._side = side
        self._tell = tell
        self._many = sharing({pair for pair, _ in rows})
        self._rounds = np.cumsum([count for _, count in rows])
        self._laws: Laws | None = None
        self._share = SHARES[0]  # of rtol that these laws take

    def ends(self, near: dict[int, float] | None = None) -> dict[int, float]:
        """Epsilon after the wanted rows; near : guesses of it."""
        found: dict[int, float] = {}
        done = 0
        shared = LEAST_DELTA < self._delta < 1.0
        # Tilts fall like 1/sqrt(rounds): both ends of a segment are then two deviations from its tilted mean.
        stretch = (
            min(4.0, (1.0 + 2.0 / math.sqrt(-2.0 * math.log(self._delta))) ** 4) if shared else 2.0
        )
        while done < len(self._rows):
            reach = stretch * float(self._rounds[done - 1]) if done else float(DIRECT)
            end = max(done + 1, int(np.searchsorted(self._rounds, reach, side="right")))
            asked = [row for row in self._wanted if done < row <= end]
            if done and shared and len(asked) > 2:
                found.update(self._segment(done, end, asked, near or {}))
            for row in asked:
                if row not in found:
                    composition = Composition(_pooled(self._rows[:row]), self._rtol)
                    both = composition.epsilon(self._delta)
                    found[row] = both.upper if self._side is Side.UPPER else both.lower
                self._tell(row)
            done = end
        return found

    def _segment(
        self, done: int, end: int, asked: list[int], near: dict[int, float]
    ) -> dict[int, float]:
        """The ends after the rows of `asked`, all in (done, end], under one tilt, where it allows them."""
        most = _counted(self._rows[:end])
        middle = math.sqrt(float(self._rounds[done - 1]) * float(self._rounds[end - 1]))
        held = _pooled(self._rows[: 1 + int(np.searchsorted(self._rounds, middle))])
        rounds = sum(count for _, count in held)
        if not _counted(self._rows[:done]):
            return {}  # no loss yet
        sketch = Sketch.at_delta(
            [item for item in held if item[0].scale > 0.0], self._delta, rounds
        )
        tilt = sketch.saddle_of_delta(math.log(self._delta))
        plan = Plan.steered(
            sketch, tilt, log_delta=math.log(self._delta), rounds=rounds, rtol=self._rtol
        )
        plan = replace(plan, many=self._many)
        for share in SHARES:
            if share > self._share:
                continue
            finer = replace(plan, share=share)
            if self._laws is None or share < self._share or not self._laws.serves(finer):
                self._laws, self._share = Laws(finer, int(self._rounds[-1])), share
            try:
                # Under the tilt of its own, a prefix feels the lattice as one of `rounds` rounds does.
                spread = self._laws.spread(dict(held), tilt)
                if spread > math.log1p(self._rtol):
                    continue
                found = self._prefixes(finer, self._laws, most, done, end, asked, near)
            except (MemoryError, TooDear):
                return {}  # the rows are composed one by one
            width = math.expm1(spread + max(width for _, width in found.values()))
            if width <= self._rtol:
                return {row: eps for row, (eps, _) in found.items()}
        return {}

    def _prefixes(
        self,
        plan: Plan,
        laws: Laws,
        most: dict[Pair, int],
        done: int,
        end: int,
        asked: list[int],
        near: dict[int, float],
    ) -> dict[int, tuple[float, float]]:
        """Ends and log widths under one tilt."""
        before = _counted(self._rows[:done])
        sure = dict(list(before.items())[:SURE])
        spectrum = Spectrum(
            [laws.of(pair, self._side) for pair in sure],
            np.array(list(sure.values()), np.float64),
            sum(most.values()) / sum(sure.values()),
            plan,
        )
        number = {pair: index for index, pair in enumerate(sure)}
        for row, (pair, _) in enumerate(self._rows[:end], 1):
            if pair in most and pair not in number:
                number[pair] = len(number)
                spectrum.add(laws.of(pair, self._side))
            if row > done:
                self._tell(row)
        rows = spectrum.rows()
        rows = np.concatenate((rows, np.zeros_like(rows[:1])))  # the last for rounds without loss
        totals = np.array([before.get(pair, 0) for pair in number] + [0]) @ rows
        found: dict[int, tuple[float, float]] = {}
        for first in range(done, asked[-1], CHUNK):
            chunk = self._rows[first : first + CHUNK]
            index = np.array([number.get(pair, -1) for pair, _ in chunk])
            counts = np.array([count for _, count in chunk], np.float64)
            sums = totals + np.cumsum(counts[:, None] * rows[index], axis=0)
            totals = sums[-1]
            here = [row for row in asked if first < row <= first + len(chunk)]
            if not here:
                continue
            products = Totals(
                spectrum, sums[np.array(here) - first - 1], first + len(chunk) + len(number)
            )
            guesses = np.array([near.get(row, math.nan) for row in here])
            guesses = np.where(np.isfinite(guesses), guesses, products.means)
            eps, width = products.epsilons(self._delta, guesses)
            found.update(zip(here, zip(eps.tolist(), width.tolist(), strict=True), strict=True))
        return found


def _counted(rows: Pairs) -> dict[Pair, int]:
    """Rounds of each pair that has any loss."""
    return dict((pair, count) for pair, count in _pooled(rows) if pair.scale > 0.0)


def _pooled(rows: Pairs) -> Pairs:
    pool: dict[Pair, int] = {}
    for pair, count in rows:
        pool[pair] = pool.get(pair, 0) + count
    return list(pool.items())
