"""Epsilon spent after each round of a log, certified at every round.

Prefixes between a and about 2a rows share one tilt and one integral (of `composition.contour` or `.product`): one more
round multiplies its nodes, and the ends after all prefixes of a segment are searched for together. Upper ends are the
analyses', lower ends the attacks': nothing else is multiplied.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from .composition.attempts import PATIENCE
from .composition.composition import Composition, selected
from .composition.contour import Integral, Products, preferred
from .composition.moments import MomentFunction, Moments, Rounds, TooExpensive, laplace_of
from .composition.plan import Plan, Sketch
from .composition.pld import formed
from .composition.product import LEAST_DELTA, LatticeIntegral, LatticeProducts, shared_lattice
from .composition.reading import FARTHEST, nearest_epsilons
from .mechanisms import Mechanism, as_mechanism
from .mechanisms.base import attacked
from .numerics.sides import Array, Bounds, Index, Side
from .numerics.tuning import PREFIX_SHARE
from .numerics.validation import positive_int, probabilities, real, tolerance
from .pairs.pair import Attacks, Pair
from .pairs.profile import Several

Rows = Sequence[tuple[Mechanism, int]]
Pairs = list[tuple[Pair, int]]
Laws = Mapping[Pair, MomentFunction]

DIRECT = 2  # prefixes of up to so many rounds are composed on their own
FEW_ROUNDS = 8  # up to which a lower end far below the upper one is, too: few losses of few rounds lie off the lattice
FAR_BELOW = 2e-3  # of epsilon
RARE = 2.0  # times the logarithm of a normal loss's moment, which is 1 at most without rare losses
MOVED = 1.0  # of a round's deviation: a tilt that moves its mean by less leaves its law as it is


@dataclass(frozen=True)
class Trajectory:
    """Epsilon after chosen prefixes of a log; arrays of one shape (prefixes,).

    rounds : number of rounds composed so far. lower, upper : certified bounds on epsilon; the lower ones are attacks'
    where the analysis is not exact. attacked : whether it is so for any of the rounds.
    """

    rounds: Index
    lower: Array
    upper: Array
    attacked: bool = False


def epsilon_trajectory(
    rounds: Rows, delta: float, *, every: int = 1, rtol: float = 1e-3, total: Bounds | None = None,
    laws: Callable[[Side], Laws] = lambda side: {}, progress: Callable[[int, int], None] | None = None,
) -> Trajectory:  # fmt: skip
    """Bounds on epsilon at `delta` after every `every`-th entry of `rounds`, and after the last.

    Parameters: rounds, a non-empty sequence of (mechanism, count) in the order they were run; delta in
    [0, 1]; rtol, as for `Accountant`; total, certified bounds on epsilon after all rounds, if they are known: they are
    the last row then; laws, of `Accountant.laws` after a question at this delta, which are not formed again then;
    progress, called with (entries done, entries in all).
    Both ends are certified. How wide delta is known there is planned, not measured: laws of few losses, from below, may
    be known to a hundredth instead of rtol, which is 1e-4 of epsilon or so.
    Raises TypeError or ValueError naming the argument. Cost O(len(rounds)) formations and transforms.
    """
    rows = [(as_mechanism(mechanism), positive_int("count", count)) for mechanism, count in rounds]
    if not rows:
        raise ValueError("rounds must not be empty")
    target = float(probabilities("delta", real("delta", delta)))
    every = positive_int("every", every)
    wanted = sorted({*range(every, len(rows) + 1, every), len(rows)})
    width = tolerance("rtol", rtol)
    known = {mechanism: (mechanism.pair, mechanism.attack_pair) for mechanism in dict(rows)}
    proved, attacks = ([(known[mechanism][i], count) for mechanism, count in rows] for i in (0, 1))
    told = 0

    def tell(done: int) -> None:
        """Entries of both sides."""
        nonlocal told
        if progress is not None and done // 2 > told:
            told = done // 2
            progress(told, len(rows))

    proved, attacks = (
        [(chosen.get(pair, pair), count) for pair, count in ledger]
        for ledger, kind in ((proved, Several), (attacks, Attacks))
        for chosen in (selected(ledger, target, kind),)
    )
    unknown = wanted if total is None else wanted[:-1]
    above = _Run(proved, target, width, unknown, Side.UPPER, laws(Side.UPPER), tell).ends()
    below = _Run(
        attacks, target, width, unknown, Side.LOWER, laws(Side.LOWER), lambda done: tell(len(rows) + done)
    ).ends(above)
    if total is not None:
        below[len(rows)], above[len(rows)] = float(total.lower), float(total.upper)
        tell(2 * len(rows))
    return Trajectory(
        np.cumsum([count for _, count in rows])[np.array(wanted) - 1].astype(np.int64),
        np.array([min(below[row], above[row]) for row in wanted]),
        np.array([above[row] for row in wanted]),
        attacked(known),
    )


class _Run:
    """One side's ends after all prefixes."""

    def __init__(
        self, rows: Pairs, delta: float, rtol: float, wanted: list[int], side: Side, laws: Laws,
        tell: Callable[[int], None],
    ) -> None:  # fmt: skip
        self._rows, self._wanted, self._tell = rows, wanted, tell
        self._delta, self._rtol, self._side, self._laws = delta, rtol, side, laws
        self._rounds = np.cumsum([count for _, count in rows])

    def ends(self, near: dict[int, float] | None = None) -> dict[int, float]:
        """Epsilon after the wanted rows; near : guesses of it."""
        found: dict[int, float] = {}
        done = 0
        shared = LEAST_DELTA < self._delta < 1.0
        # Tilts fall like 1/sqrt(rounds): both ends of a segment are then three deviations from its tilted mean.
        stretch = min(4.0, (1.0 + 3.0 / math.sqrt(-2.0 * math.log(self._delta))) ** 4) if shared else 2.0
        while done < len(self._rows):
            reach = stretch * float(self._rounds[done - 1]) if done else float(DIRECT)
            end = max(done + 1, int(np.searchsorted(self._rounds, reach, side="right")))
            asked = [row for row in self._wanted if done < row <= end]
            if done and shared and asked:
                ends = self._segment(done, end, asked, near or {})
                least = near if near is not None and self._rounds[done] <= FEW_ROUNDS else {}
                found.update({row: eps for row, eps in ends.items() if eps >= (1.0 - FAR_BELOW) * least.get(row, 0.0)})
            for row in asked:
                if row not in found:
                    composition = Composition(_pooled(self._rows[:row]), self._rtol)
                    both = composition.epsilons(self._delta)
                    found[row] = both.upper if self._side is Side.UPPER else both.lower
                self._tell(row)
            done = end
        return found

    def _segment(self, done: int, end: int, asked: list[int], near: dict[int, float]) -> dict[int, float]:
        """The ends after the rows of `asked`, all in (done, end], under one tilt, where it allows them."""
        first, ledger = dict(_counted(self._rows[:done])), _counted(self._rows[:end])
        if not first:
            return {}  # no loss yet
        middle = math.sqrt(float(self._rounds[done - 1]) * float(self._rounds[end - 1]))
        held = _counted(self._rows[: 1 + int(np.searchsorted(self._rounds, middle))])
        log_delta, rounds = math.log(self._delta), sum(count for _, count in held)
        sketch = Sketch.at_delta(held, self._delta, rounds)
        tilt, times = sketch.saddle_of_delta(log_delta), sum(count for _, count in ledger) / rounds
        plan = Plan.steered(sketch, tilt, held, log_delta=log_delta, rtol=self._rtol, times=times)
        plan = replace(plan, share=PREFIX_SHARE, lattice_share=1.0)
        known = {pair: i for i, (pair, _) in enumerate(ledger)}
        products = Products(
            np.array([first.get(pair, 0) for pair, _ in ledger], np.float64),
            np.array([known.get(pair, 0) for pair, _ in self._rows[done:end]], np.int64),
            np.array([count if pair in known else 0.0 for pair, count in self._rows[done:end]]),
            np.array(asked, np.int64) - done,
        )
        laws = self._known(plan.tilt, ledger)
        ways: list[Callable[..., Integral | LatticeProducts]] = [partial(self._contour, laws), self._lattice]
        if preferred(held, sketch):
            ways.pop()
        elif not laws:  # then it has to be faster by as much as forming takes
            ways.pop(0)
        for way in ways:
            try:
                eps = self._ends(way(plan, ledger, products), asked, near)
            except (MemoryError, TooExpensive):
                continue
            return {row: end for row, end in zip(asked, eps.tolist(), strict=True) if end == end}
        return {}  # they are composed one by one

    def _known(self, tilt: float, ledger: Pairs) -> Laws:
        """Laws for more rounds are no coarser, and a tilt that hardly moves one round has hardly shaped its law.

        But they were formed under a smaller tilt. Where this one makes their rare losses count, these are too coarse:
        then the moment is far above that of a normal loss.
        """
        known = {pair: self._laws[pair] for pair, _ in ledger if pair in self._laws and tilt * pair.scale < MOVED}
        logs = Moments(list(known.values())).log_moments(tilt)[0].tolist() if known else []
        normal = [0.5 * tilt * (tilt + 1.0) * pair.scale**2 for pair in known]
        return {pair: known[pair] for pair, log, usual in zip(known, logs, normal, strict=True) if log < RARE * usual}

    def _contour(self, known: Laws, plan: Plan, ledger: Pairs, products: Products) -> Integral:
        """The products by nodes on a contour."""
        missing = [item for item in ledger if item[0] not in known and laplace_of(item[0]) is None]
        resolutions = plan.resolutions(missing) if missing else {}
        laws = [
            known[pair] if pair in known else Rounds.of(pair, 1, resolutions, [self._side])[0] for pair, _ in ledger
        ]
        return Integral.planned(laws, replace(plan, patience=PATIENCE), plan.rate, products=products)

    def _lattice(self, plan: Plan, ledger: Pairs, products: Products) -> LatticeProducts:
        """The products on one lattice."""
        resolution = shared_lattice(plan, dict(ledger))
        laws = [formed(pair, [self._side], resolution, plan.max_gap)[0] for pair, _ in ledger]
        held = np.flatnonzero(products.first)
        times = plan.rounds / float(products.first.sum())
        integral = LatticeIntegral(
            [laws[i] for i in held], products.first[held], plan, times=times, terms=products.terms
        )
        row_of = dict(zip(held.tolist(), integral.rows, strict=True))
        rows = np.array([row_of[i] if i in row_of else integral.row(law) for i, law in enumerate(laws)])
        return LatticeProducts(integral, products.sums(rows))

    def _ends(self, products: Integral | LatticeProducts, rows: list[int], near: dict[int, float]) -> Array:
        """The ends of products, one for each of `rows`; nan where there is none."""
        delta, start, stride = np.full(len(rows), self._delta), np.maximum(products.centre, 0.0), 1.0 / products.c
        if self._side is Side.UPPER:
            return nearest_epsilons(self._side, products.uppers, delta, start, stride, FARTHEST)
        start = np.minimum([near.get(row, value) for row, value in zip(rows, start, strict=True)], FARTHEST)
        found = nearest_epsilons(self._side, products.lowers, delta, start, stride, FARTHEST)
        found = np.where(np.isnan(found), 0.0, found)
        return np.where(products.lost.lower > self._delta, math.inf, found)


def _counted(rows: Pairs) -> Pairs:
    """Rounds of each pair that has any loss."""
    return [(pair, count) for pair, count in _pooled(rows) if pair.scale > 0.0]


def _pooled(rows: Pairs) -> Pairs:
    pool: dict[Pair, int] = {}
    for pair, count in rows:
        pool[pair] = pool.get(pair, 0) + count
    return list(pool.items())
