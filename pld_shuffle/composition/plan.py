"""What one attempt at a question works with: the tilt, and how rtol is shared out.

Splitting or merging mass inside cells of width h changes log M(t) by about (t^2 + t) h^2 / 12 upwards and half as much
downwards. So r laws on step h widen the bracket on delta by r (t^2 + t) h^2 / 8; the step that spends a given share of
rtol follows. Windows follow delta. Buckets of numbers of coins follow z^2 = (t^2 + t) variance.

All this affects speed and width. That an answer is a bound never depends on it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..numerics.lattice import aligned
from ..numerics.tuning import CHEAP_PAIRS, LATTICE_SHARE
from ..pairs.pair import Pair, Resolution
from ..pairs.profile import MAX_POINTS, ProfilePair, at_distances, distances_by_mass
from .sketch import Sketch, sketch_key, tilted_sizes

Array = NDArray[np.float64]

WIDEST_CELL = 0.05  # of the rate's inverse: speed
FEW_CELLS = 16  # there is nothing to save, and what matters may lie beyond the last


@dataclass(frozen=True)
class Plan:
    """What one attempt works with: the tilt, the order of delta, and the shares of the budget.

    variance : of the composed loss. beyond : whether the answer is so near the sum of the largest losses that no tilt
    has its mean there. share : of rtol that is spent, lowered from attempt to attempt. lattice_share : the same for the
    lattice alone, on top. patience : times as much work as usual that a contour may take before a lattice is asked.
    """

    tilt: float
    variance: float
    log_delta: float
    rounds: int
    rtol: float
    beyond: bool = False
    share: float = 1.0
    lattice_share: float = 1.0
    patience: float = 1.0

    @classmethod
    def steered(
        cls, sketch: Sketch, tilt: float, ledger: Sequence[tuple[Pair, int]], *, log_delta: float,
        rtol: float, times: float = 1.0,
    ) -> Plan:  # fmt: skip
        """The plan for the rounds of a ledger under `tilt`, or `times` as many of them."""
        variance = max(sketch.moments(0.0)[2], 1e-4 * sketch.scale**2)
        return cls(
            tilt,
            variance * times,
            log_delta,
            math.ceil(times * sum(count for _, count in ledger)),
            rtol,
            beyond=sketch.beyond(tilt, log_delta),
            # Where lattices are cheap, brackets may as well be tighter than asked.
            lattice_share=LATTICE_SHARE if len(ledger) < CHEAP_PAIRS else 1.0,
        )

    @property
    def rate(self) -> float:
        """The tilt, with a floor; it is the real part of the nodes of an integral."""
        return max(self.tilt, 1.0 / math.sqrt(self.variance))

    @property
    def sensitivity(self) -> float:
        """t^2 + t: how strongly log delta feels variance."""
        return self.rate * (self.rate + 1.0)

    @property
    def step(self) -> float:
        """The step on which the laws of all rounds spend the lattice's share of the budget."""
        return self._step(self.rounds)

    def _step(self, rounds: float) -> float:
        budget = 0.5 * self.rtol * self.share * self.lattice_share
        return math.sqrt(8.0 * budget / (rounds * self.sensitivity))

    @property
    def max_gap(self) -> float:
        """Gaps beyond this are better rounded down than merged over: all, where the largest loss must not move."""
        if self.beyond:
            return 0.0
        return 2.0 / self.tilt if self.tilt > 0.0 else math.inf

    def resolution(self, step: float) -> Resolution:
        """What laws on that step are formed with."""
        budget = 0.02 * self.rtol * self.share
        log_truncated_mass = self.log_delta + math.log(budget / self.rounds)
        z_square = max(1.0, self.sensitivity * self.variance)
        # Where the lattice takes next to nothing, buckets may take more.
        budget = (0.2 if self.lattice_share == 1.0 else 0.4) * self.rtol * self.share
        return Resolution(
            step,
            truncated_mass=math.exp(max(log_truncated_mass, -690.0)),
            size_width=2.0 * budget / z_square,
            bias_width=math.sqrt(8.0 * budget / (z_square * (1.0 + z_square / self.rounds))),
            pull=z_square / self.rounds,
            point_width=math.sqrt(8.0 * budget / (self.rounds * self.sensitivity)),
            tilt=self.tilt,
        )

    def resolutions(self, ledger: Sequence[tuple[Pair, int]]) -> dict[Pair, Resolution]:
        """What each pair's law is formed with if it need not share a lattice: the budget goes where it saves most.

        A law of scale s, used k times on step h, costs s/h and widens the bracket by k h^2: so h ~ (s/k)^(1/3).
        One with buckets of relative width w costs 1/w, and widens it by z^2 w, z^2 = (t^2 + t) k s^2: so w ~ 1/z.
        """
        if len(ledger) == 1:
            [(pair, _)] = ledger
            return {pair: self._spaced(pair, self.resolution(aligned(self.step, float(pair.max_loss.upper))), {})}
        shares = [math.sqrt(count) * pair.scale for pair, count in ledger]
        norm, total = math.hypot(*shares), sum(shares)
        cubes = [float((pair.scale / count) ** (1.0 / 3.0)) for pair, count in ledger]
        spread = math.sqrt(sum(count * cube**2 for (_, count), cube in zip(ledger, cubes, strict=True)))
        found: dict[Pair, Resolution] = {}
        known: dict[Hashable, tuple[Array, Array]] = {}
        for (pair, count), share, cube in zip(ledger, shares, cubes, strict=True):
            step = aligned(self._step(1.0) * cube / spread, float(pair.max_loss.upper))
            whole = self.resolution(step)
            # All of z^2 and of the budget, turned into this pair's part of them.
            pull = whole.pull * self.rounds * (share / norm) ** 2 / count
            steep = math.sqrt((1.0 + whole.pull) / (1.0 + pull))
            found[pair] = self._spaced(
                pair,
                replace(
                    whole,
                    size_width=whole.size_width * norm**2 / (share * total),
                    bias_width=whole.bias_width * norm / math.sqrt(share * total) * steep,
                    pull=pull,
                    point_width=whole.point_width * math.sqrt(self.rounds) * cube / spread,
                ),
                known,
            )
        return found

    def _spaced(self, pair: Pair, resolution: Resolution, known: dict[Hashable, tuple[Array, Array]]) -> Resolution:
        """The resolution with cells that are wide where there is little mass under the tilt.

        known : of kinds of pairs, distances of points for a cell of one scale, and the losses in scales they hold at.
        """
        if isinstance(pair, ProfilePair) or self.beyond:
            return resolution  # has points of its own, or no tilt
        key = sketch_key(pair)
        if key not in known:
            grid, mass = tilted_sizes(pair, self.tilt, resolution.truncated_mass)
            if grid.size < 2:
                return resolution
            longest = max(1.0, WIDEST_CELL / (self.rate * resolution.step))
            known[key] = grid / pair.scale, distances_by_mass(grid, mass, np.full(grid.size, longest))
        grid, distance = known[key]
        width = resolution.step / pair.scale
        losses = at_distances(grid, width * distance, MAX_POINTS)
        knots = np.rint(losses / width).astype(np.int64)
        knots = knots[np.diff(knots, prepend=-1) > 0]
        return replace(resolution, knots=knots) if knots.size > FEW_CELLS else resolution
