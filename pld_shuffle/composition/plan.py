"""What one attempt at a question works with: the tilt, and how rtol is shared out.

Splitting or merging mass inside cells of width h changes log M(t) by about (t^2 + t) h^2 / 12 upwards and half as much
downwards. So r laws on step h widen the bracket on delta by r (t^2 + t) h^2 / 8; the step that spends a given share of
rtol follows. Windows follow delta. Buckets of numbers of coins follow z^2 = (t^2 + t) variance.

*The sketch* is the log moment generating function K(t) of a ledger over coarse laws. The saddle point K'(t) = eps is
the tilt under which the composed loss has mean eps; there it estimates delta(eps) well enough to choose windows. All
this affects speed and width. That an answer is a bound never depends on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from ..numerics.lattice import aligned
from ..numerics.search import crossing
from ..numerics.sides import Array, Bounds, Side
from ..numerics.tuning import CHEAP_PAIRS, KEPT, LATTICE_SHARE, SKETCHED_POINTS
from ..pairs.gaussian import GaussianPair, noise_of
from ..pairs.pair import Pair, Resolution, power_below, zoned
from ..pairs.profile import MAX_POINTS, ProfilePair, at_distances, distances_by_mass
from .moments import Moments, Rounds
from .pld import PLD, formed

WIDEST_CELL = 0.05  # of the rate's inverse: speed
FEW_CELLS = 16  # there is nothing to save, and what matters may lie beyond the last


@dataclass(frozen=True)
class Plan:
    """What one attempt works with: the tilt, the order of delta, and the shares of the budget.

    variance : of the composed loss. share : of rtol that is spent, lowered from attempt to attempt. lattice_share : the
    same for the lattice alone, on top. patience : times as much work as usual that a contour may take before a lattice
    is asked.
    """

    tilt: float
    variance: float
    log_delta: float
    rounds: int
    rtol: float
    share: float = 1.0
    lattice_share: float = 1.0
    patience: float = 1.0

    @classmethod
    def steered(
        cls, sketch: Sketch, tilt: float, ledger: Sequence[tuple[Pair, int]], *, log_delta: float,
        rtol: float, times: float = 1.0,
    ) -> Plan:  # fmt: skip
        """The plan for the rounds of a ledger under `tilt`, or `times` as many of them."""
        variance = times * max(sketch.moments(0.0)[2], 1e-4 * sketch.scale**2)
        rounds = math.ceil(times * sum(count for _, count in ledger))
        # Where lattices are cheap, brackets may as well be tighter than asked.
        lattice_share = LATTICE_SHARE if len(ledger) < CHEAP_PAIRS else 1.0
        return cls(tilt, variance, log_delta, rounds, rtol, lattice_share=lattice_share)

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
        """Gaps beyond this are better rounded down than merged over."""
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
            size_width = whole.size_width * norm**2 / (share * total)
            bias_width = whole.bias_width * norm / math.sqrt(share * total) * steep
            point_width = whole.point_width * math.sqrt(self.rounds) * cube / spread
            own = replace(whole, size_width=size_width, bias_width=bias_width, pull=pull, point_width=point_width)
            found[pair] = self._spaced(pair, own, known)
        return found

    def _spaced(self, pair: Pair, resolution: Resolution, known: dict[Hashable, tuple[Array, Array]]) -> Resolution:
        """The resolution with cells that are wide where there is little mass under the tilt.

        known : of kinds of pairs, distances of points for a cell of one scale, and the losses in scales they hold at.
        """
        if isinstance(pair, ProfilePair):
            return resolution  # has points of its own
        key = sketch_key(pair)
        if key not in known:
            law = _law(pair, resolution.truncated_mass)
            tilted = law.tilted(self.tilt)[0]
            sizes = np.abs(law.low + np.arange(tilted.size))
            mass: Array = np.bincount(sizes, tilted, 2).astype(np.float64)
            grid = np.arange(mass.size, dtype=np.float64) * law.step
            longest = max(1.0, WIDEST_CELL / (self.rate * resolution.step))
            known[key] = grid / pair.scale, distances_by_mass(grid, mass, np.full(grid.size, longest))
        grid, distance = known[key]
        width = resolution.step / pair.scale
        losses = at_distances(grid, width * distance, MAX_POINTS)
        knots = np.rint(losses / width).astype(np.int64)
        knots = knots[np.diff(knots, prepend=-1) > 0]
        return replace(resolution, knots=knots) if knots.size > FEW_CELLS else resolution


LARGEST_NOISE = 10.0  # deviation of Gaussian losses whose exponential is a double far beyond them


class Sketch:
    """Coarse laws of all pairs of a ledger, in one flat array."""

    def __init__(self, ledger: Sequence[tuple[Pair, int]], truncated_mass: float) -> None:
        self.truncated_mass = truncated_mass
        self.scale = math.sqrt(sum(count * pair.scale**2 for pair, count in ledger))
        pooled = _pooled(ledger)
        laws = [_law(pair, truncated_mass) for pair, _ in pooled]
        self._count = np.array([count for _, count in pooled], np.float64)
        self._moments = Moments([_atoms(law) for law in laws])
        held = self._moments.sizes
        #: Whether all losses are multiples of one, so that a lattice has them as they are.
        self.regular = bool(held.size == 1 and held[0] <= 3)
        self._top = float(self._count @ np.array([law.losses[-1] for law in laws]))
        self.infinity = float(self._count @ np.array([law.infinity for law in laws]))
        self._largest = 40.0 / min(law.step for law in laws)

    @classmethod
    def at_delta(cls, ledger: Sequence[tuple[Pair, int]], delta: float, rounds: int) -> Sketch:
        """Good down to `delta`; rounds : as many as the laws will be used for."""
        return cls(ledger, max(1e-5 * delta / rounds, 1e-300))

    def moments(self, tilt: float) -> tuple[float, float, float]:
        """K, K' and K'' at `tilt`."""
        k, mean, variance = (self._moments.slopes(tilt) @ self._count).tolist()
        return k, mean, variance

    def log_delta(self, tilt: float, eps: float | None = None) -> float:
        """Estimate of log delta at `eps`, by default at the saddle point's own epsilon."""
        k, mean, variance = self.moments(tilt)
        eps = mean if eps is None else eps
        if eps == math.inf:
            finite = -math.inf
        else:
            finite = k - tilt * eps - math.log1p(tilt * (1.0 + tilt) * math.sqrt(2 * math.pi * variance))
        floor = math.log(self.infinity) if self.infinity > 0.0 else -math.inf
        return min(0.0, float(np.logaddexp(finite, floor)))

    def saddle(self, eps: float) -> float:
        """The tilt >= 0 with K' = eps, clamped at 0 and at a largest tilt."""
        return self._solve(lambda tilt: eps - self.moments(tilt)[1])

    def saddle_of_delta(self, log_delta: float) -> float:
        """The tilt >= 0 whose saddle point has about that delta."""
        return self._solve(lambda tilt: self.log_delta(tilt) - log_delta)

    def saturated(self, tilt: float) -> bool:
        """Whether more tilt is useless, the largest losses already holding most of the tilted mass."""
        _, mean, _ = self.moments(tilt)
        return tilt * self.scale > 3.0 and tilt * (self._top - mean) < 2.0

    def _solve(self, excess: Callable[[float], float]) -> float:
        """The tilt at which a decreasing function falls to 0, to 0.1 %; where more is useless if it does not."""
        low = 0.0, excess(0.0)
        if low[1] <= 0.0:
            return 0.0
        if self.saturated(self._largest):
            # As a last resort on the way up: beyond saturation nothing changes.
            asked = excess

            def excess(tilt: float) -> float:
                found = asked(tilt)
                return -1.0 if found > 0.0 and self.saturated(tilt) else found

        first = min(1.0 / math.sqrt(max(self.moments(0.0)[2], 1e-300)), self._largest)
        high = first, excess(first)
        while high[1] > 0.0:
            if high[0] >= self._largest:
                return self._largest
            end = min(4.0 * high[0], self._largest)
            low, high = high, (end, excess(end))
        return float(crossing(excess, low, high, rtol=1e-3))


def _law(pair: Pair, truncated_mass: float) -> PLD:
    """The coarse upper law of one round, for a power of 100 below, so that it is found again."""
    outline = pair.outline if isinstance(pair, ProfilePair) else pair
    return _coarse_law(outline, max(power_below(truncated_mass, 0.01), 1e-300))


@lru_cache(maxsize=KEPT)
def _coarse_law(pair: Pair, truncated_mass: float) -> PLD:
    step = aligned(pair.scale / SKETCHED_POINTS, float(pair.max_loss.upper))
    size_width = min(0.1, -1.0 / math.log(truncated_mass))
    resolution = Resolution(step, truncated_mass=truncated_mass, size_width=size_width, bias_width=0.2)
    return formed(pair, [Side.UPPER], resolution)[0]


def _atoms(law: PLD) -> Rounds:
    """The finite masses, one at least: a law without mass is harmless."""
    held = law.masses > 0.0
    held[0] |= not held.any()
    return Rounds(np.maximum(law.masses[held], 1e-300), law.losses[held], law.infinity, law.loss_error, 1)


def sketch_key(pair: Pair) -> Hashable:
    """Equal for pairs of one kind whose losses are almost alike, so that one of them is sketched for all."""
    largest = min(float(pair.max_loss.upper), 1e9)
    return type(pair), zoned(max(pair.scale, 1e-300)), zoned(max(largest, 1e-300))


def _pooled(ledger: Sequence[tuple[Pair, int]]) -> list[tuple[Pair, float]]:
    """One pair for all that are alike, counted by variance; much noise is many rounds of less."""
    kinds: dict[Hashable, tuple[Pair, float]] = {}
    for pair, count in ledger:
        key = sketch_key(pair)
        if noise_of(pair) is not None and pair.scale > LARGEST_NOISE:
            kinds[key] = GaussianPair(Bounds(LARGEST_NOISE**2, LARGEST_NOISE**2)), 0.0
        first, held = kinds.setdefault(key, (pair, 0.0))
        kinds[key] = first, held + count * (pair.scale / first.scale) ** 2
    return list(kinds.values())
