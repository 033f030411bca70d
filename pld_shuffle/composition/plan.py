"""What one attempt at a question works with: the tilt, and how rtol is shared out.

Splitting or merging mass inside cells of width h changes log M(t) by about (t^2 + t) h^2 / 12 upwards and half as much
downwards. So r laws on step h widen the bracket on delta by r (t^2 + t) h^2 / 8; the step that spends a given share of
rtol follows. Windows follow delta. Buckets of numbers of coins follow z^2 = (t^2 + t) variance.

All this affects speed and width. That an answer is a bound never depends on it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from ..numerics.lattice import aligned
from ..pairs.pair import Pair, Resolution
from .sketch import Sketch

BATCH = 24  # distinct laws multiplied before the step grows
FEW_LAWS = 24  # up to so many distinct pairs may have a lattice each
UNEVEN = 4.0  # times the step of another pair, from where pairs get lattices of their own
LEVEL_POINTS = 2**18  # a window of one level
LEVEL_WORK = 2**21  # window times distinct laws


@dataclass(frozen=True)
class Plan:
    """What one attempt works with: the tilt, the order of delta, and the shares of the budget."""

    tilt: float
    sensitivity: float  # t^2 + t, with a floor: how strongly log delta feels variance
    variance: float  # of the composed loss, sketched
    tilted_variance: float
    log_delta: float
    rounds: int
    rtol: float
    share: float = 1.0  # of rtol that is spent, lowered from attempt to attempt
    lattice_share: float = 1.0  # the same for the lattice alone, on top
    levels: int = 1
    many: bool = False  # distinct pairs, which then share what they have in common, see `sharing`
    own_lattices: bool = False  # a lattice of its own for each pair, with its largest loss on it
    direct: bool = False  # multiply without transforms, see convolution.direct_product

    @classmethod
    def steered(
        cls,
        sketch: Sketch,
        tilt: float,
        *,
        log_delta: float,
        rounds: int,
        rtol: float,
        factor: float = 1.0,
    ) -> Plan:
        """The plan for `rounds` rounds, `factor` times as many as were sketched, under `tilt`."""
        variance = max(sketch.moments(0.0)[2], 1e-4 * sketch.scale**2)
        effective = max(tilt, 1.0 / math.sqrt(variance))
        return cls(
            tilt=tilt,
            sensitivity=effective * effective + effective,
            variance=variance * factor,
            tilted_variance=sketch.moments(tilt)[2] * factor,
            log_delta=log_delta,
            rounds=rounds,
            rtol=rtol,
        )

    def step(self, laws: int) -> float:
        """The step on which `laws` laws spend one level's share of the lattice budget."""
        budget = 0.5 * self.rtol * self.share * self.lattice_share / self.levels
        return math.sqrt(8.0 * budget / (laws * self.sensitivity))

    def resolution(self, step: float, most: int | None = None) -> Resolution:
        """What laws on that step are formed with; most : rounds they will be used for, if more than `rounds`."""
        budget = 0.02 * self.rtol * self.share
        log_missed = self.log_delta + math.log(budget / (most or self.rounds))
        z_square = max(1.0, self.sensitivity * self.variance)
        # Where the lattice takes next to nothing, buckets may take more.
        budget = (0.2 if self.lattice_share == 1.0 else 0.4) * self.rtol * self.share
        return Resolution(
            step,
            missed=math.exp(max(log_missed, -690.0)),
            size_width=2.0 * budget / z_square,
            bias_width=math.sqrt(8.0 * budget / (z_square * (1.0 + z_square / self.rounds))),
            pull=z_square / self.rounds,
            point_width=math.sqrt(8.0 * budget / (self.rounds * self.sensitivity)),
            tilt=self.tilt,
            cell=math.sqrt(2.0 * budget / z_square) if self.many else 0.0,
        )

    def resolutions(self, ledger: Sequence[tuple[Pair, int]]) -> dict[Pair, Resolution]:
        """What each pair's law is formed with, the budget going where it saves most.

        A law of scale s, used k times on step h, costs s/h and widens the bracket by k h^2: so h ~ (s/k)^(1/3).
        One with buckets of relative width w costs 1/w, and widens it by z^2 w, z^2 = (t^2 + t) k s^2: so w ~ 1/z.
        """
        if len(ledger) == 1:
            [(pair, _)] = ledger
            step = aligned(self.step(self.rounds), float(pair.max_loss.upper))
            return {pair: self.resolution(step)}
        shares = [math.sqrt(count) * pair.scale for pair, count in ledger]
        norm, total = math.hypot(*shares), sum(shares)
        cubes = [_wanted(pair, count) for pair, count in ledger]
        spread = math.sqrt(
            sum(count * cube**2 for (_, count), cube in zip(ledger, cubes, strict=True))
        )
        found = {}
        for (pair, count), share, cube in zip(ledger, shares, cubes, strict=True):
            step = aligned(self.step(1) * cube / spread, float(pair.max_loss.upper))
            whole = self.resolution(step)
            # All of z^2 and of the budget, turned into this pair's part of them.
            pull = whole.pull * self.rounds * (share / norm) ** 2 / count
            steep = math.sqrt((1.0 + whole.pull) / (1.0 + pull))
            found[pair] = replace(
                whole,
                size_width=whole.size_width * norm**2 / (share * total),
                bias_width=whole.bias_width * norm / math.sqrt(share * total) * steep,
                pull=pull,
                point_width=whole.point_width * math.sqrt(self.rounds) * cube / spread,
            )
        return found

    @property
    def tail(self) -> float:
        """Tilted mass that one convolution may leave out."""
        return 1e-8 * self.rtol * min(1.0, self.share) / math.sqrt(self.rounds)

    @property
    def reach(self) -> float:
        """Gaps beyond this are better rounded down than merged over."""
        return 2.0 / self.tilt if self.tilt > 0.0 else math.inf

    def fits(self, laws: int, distinct: int) -> bool:
        """Whether `laws` laws are worth multiplying in one level."""
        points = 14.0 * math.sqrt(self.tilted_variance) / self.step(laws)
        return points <= LEVEL_POINTS and points * distinct <= LEVEL_WORK

    def levelled(self, distinct: int) -> Plan:
        """This plan with the number of levels it will need."""
        laws, plan = self.rounds, self
        if plan.own_lattices:
            plan = replace(plan, levels=2)
        while not plan.fits(laws, distinct) and laws > 4:
            size = batch_rounds(laws, distinct)
            laws = -(-laws // size) + 1
            distinct = -(-distinct // BATCH) + 1
            plan = replace(plan, levels=plan.levels + 1)
        return plan


def _wanted(pair: Pair, count: int) -> float:
    """The step that is worth its cost for a pair, relative to another's."""
    return float((pair.scale / count) ** (1.0 / 3.0))


def uneven(ledger: Sequence[tuple[Pair, int]]) -> bool:
    """Whether one step for all pairs would be far too fine for some of them."""
    wanted = [_wanted(pair, count) for pair, count in ledger]
    return max(wanted) > UNEVEN * min(wanted)


def sharing(pairs: Collection[Pair]) -> bool:
    """Whether distinct pairs should share profiles: many do, few where nothing is lost."""
    return len(pairs) > FEW_LAWS or (len(pairs) > 1 and all(pair.interpolates for pair in pairs))


def batch_rounds(laws: int, distinct: int) -> int:
    """Rounds put together before the step grows."""
    return BATCH if distinct > BATCH else max(2, math.isqrt(laws))
