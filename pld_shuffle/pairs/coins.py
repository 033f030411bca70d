"""The canonical pair: a target hiding among labelled users, as a mixture of tilted coins.

Each of the other users shows one of two coin labels, a neutral label, or nothing (`Shown`). The target shows a coin
label, the one matching the dataset with probability (1+theta)/2; a neutral label; or reveals that its report is
independent of its value (null). Given m coin labels and c neutral ones the view is the *tilted-coin pair*: toss m fair
coins, t = (2 heads - m)/m, and P, Q have densities 1 + theta t, 1 - theta t, with

    theta(m, c) = theta m / (m + kappa c + absent),

kappa and absent the weights of a neutral label and of the target's absence against a coin label, and (m, c) has the
same law under P and Q (docs/theory.md, section 2; section 11, Theorem C). So a hidden cohort is a smaller bias.
*Amplification* at rate r is what holds for any pair (section 5). Buckets are certified by post-processing (section 3);
the atoms of one cell of the lattice, which lie between the same two points, are summed.

*Several classes* (`MixedCoins`). A user of class i shows a label with a probability of its own; the bias is
theta m/(m + kappa c), whatever these are; buckets remain certified (docs/people.md, section 10).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..numerics.integer_laws import Counts, Trials, counts
from ..numerics.lattice import require_memory
from ..numerics.sides import ROUNDOFF, Array, Bounds, Index, Side
from .pair import Atoms, Cohort, Pair, Resolution, completed
from .profile import ProfilePair, at_distances
from .slots import SlotLaw, SlotPair

MAX_COMPONENTS = 4_000_000
MAX_CUTS = 100_000
#: Intervals of the bias get longer where the mass is small, by at most this factor (its logarithm).
LONGEST_INTERVAL = 1.5
#: Up to so many atoms every number of neutral labels is kept. That costs little, and it is more accurate far out
#: in the tails, where a long interval would put mass on biases that are much rarer.
KEEP_EVERY = 8_000_000
#: Sums of masses below this have lost their ratios to subnormal rounding: they count as missed.
SMALLEST_CELL = 1e-290
#: Relative error of the labels' rates, which took a few operations each.
LABEL_ERROR = 64.0 * ROUNDOFF
#: Losses are log1p of a ratio known to a few ulp, and lattice points are rounded: relative error below
#: LOSS_ULPS u, booked as slack.
LOSS_ULPS = 48.0
#: Up to so many atoms are summed one by one; beyond, the profile is asked by contour integrals.
MOST_WALKED = 2e7
MOST_SEPARATE = 1000  # coins of all components together, up to which every atom is kept by itself


class Labels(NamedTuple):
    """The law of a number of labels of both kinds, and roughly that of the neutral ones given the coin labels.

    odds, start, cut_below, cut_above, error, half : as `coin_kernels.split_neutral` takes them.
    neutrals, deviation : rough mean and standard deviation of the number of neutral labels.
    """

    odds: Array
    start: int
    cut_below: bool
    cut_above: bool
    error: float
    half: int
    neutrals: float
    deviation: float


@dataclass(frozen=True)
class Components:
    """Tilted coins (coins, bias, gap = 1 - bias, weight), a null mass, and the mass left out.

    For a lower bound weights sum to at most 1 - null, for an upper bound `truncated_mass` is the P-mass that must be
    put at infinite loss. All arrays have one shape (components,).
    """

    coins: Index
    bias: Array
    gap: Array
    weight: Array
    null: float
    truncated_mass: float


class Shown(NamedTuple):
    """Probabilities that a user shows a coin label, a neutral one, or neither: each as precise as the others."""

    coin: float
    neutral: float
    neither: float

    @property
    def no_coin(self) -> float:
        """1 - coin, precisely."""
        return self.neutral + self.neither


@dataclass(frozen=True)
class CoinMixture(Pair):
    """The numbers of the canonical pair; see the module.

    n : users, the target included. others, target : what another user shows, and what the target does.
    theta, gap : bias of the target's label; gap = 1 - theta is given apart, so that it keeps its precision.
    local_loss : the largest loss of the labels themselves.
    label_ratio : others.coin / target.coin, where these may be subnormal.
    participation : the probability that the target is in the cohort of n.
    amplification : the rate of the general amplification; at most one of the last two is below 1.
    """

    n: int
    others: Shown
    target: Shown
    theta: float
    gap: float
    local_loss: Bounds
    label_ratio: float | None = None
    participation: float = 1.0
    amplification: float = 1.0

    @property
    def trivial(self) -> bool:
        """Whether the view never carries information."""
        return self.theta <= 0.0 or self.target.coin <= 0.0

    @property
    def _ratio(self) -> float:
        """others.coin / target.coin."""
        return self.others.coin / self.target.coin if self.label_ratio is None else self.label_ratio

    @property
    def kappa(self) -> float:
        """Weight of a neutral label against a coin label in the likelihood."""
        if self.target.neutral <= 0.0 or self.others.neutral <= 0.0:
            return 0.0
        return self.target.neutral / self.others.neutral * self._ratio

    @property
    def absent(self) -> float:
        """Weight of the target's absence against a coin label in the likelihood."""
        q = self.participation
        return (1.0 - q) / q * self.n * self._ratio

    @cached_property
    def max_loss(self) -> Bounds:
        if self.trivial:
            return Bounds(0.0, 0.0)
        q, r = self.participation, self.amplification
        if q == r == 1.0 or (self.local_loss.upper == math.inf and q == 1.0):
            return self.local_loss
        # With every label on the target's side: x/(1-x), at the bias of n coins.
        odds = self.theta / (self.gap + (1.0 - q) / q * self._ratio)
        loss = math.log1p(2.0 * r * odds)
        return Bounds(loss * (1.0 - 16.0 * ROUNDOFF), loss * (1.0 + 16.0 * ROUNDOFF))

    @cached_property
    def scale(self) -> float:
        if self.trivial:
            return 0.0
        m = 1.0 + (self.n - 1) * self.others.coin
        heavy = m + self.kappa * self.n * self.others.neutral + self.absent
        x = min(self.theta * m / heavy / math.sqrt(m), 0.999)
        spread = math.log1p(2.0 * self.amplification * x / (1.0 - x))
        return min(spread, float(self.max_loss.upper))

    def amplified(self, rate: float) -> CoinMixture:
        if self.participation < 1.0:
            raise TypeError(f"a pair on a cohort cannot be amplified once more, got {self!r}")
        return replace(self, amplification=self.amplification * rate)

    def sampled(self, cohort: Cohort) -> Pair:
        """The pair of Theorem C. "Absent" is one more neutral label."""
        if self.target.neither > 0.0 or self.amplification < 1.0:
            raise TypeError(f"the labels of the pair must hide who took part, got {self!r}")
        found, presence = replace(self, participation=self.participation * cohort.rate), cohort.presence
        if cohort.absence == 0.0:
            return found
        coin, neutral, neither = (presence * share for share in self.others)
        if cohort.certain:  # absent is silent: the target never is
            ratio = None if self.label_ratio is None else presence * self.label_ratio
            return replace(found, others=Shown(coin, neutral, neither + cohort.absence), label_ratio=ratio)
        if self.target.neutral != self.others.neutral:
            return SlotPair(self.slot_law()).sampled(replace(cohort, rate=found.participation))
        neutral += cohort.absence
        target = Shown(presence * self.target.coin, neutral, 0.0)
        return replace(found, others=Shown(coin, neutral, neither), target=target)

    def slot_law(self) -> SlotLaw:
        """The labels of one slot: the law of the target under both datasets, and of the others; nobody is absent."""
        coin, (shown, neutral, _) = self.target.coin, self.others
        first = np.array([0.5 * (1.0 + self.theta) * coin, 0.5 * self.gap * coin, self.target.neutral, 0.0])
        others = np.array([0.5 * shown, 0.5 * shown, neutral, self.others.neither])
        held = (first > 0.0) | (others > 0.0)
        second = first[[1, 0, 2, 3]]
        return SlotLaw(self.n, first[held], second[held], others[held], True, LABEL_ERROR)

    @property
    def as_profile(self) -> ProfilePair | None:
        """This pair by the contour integrals of its slot law, each O(1) whatever n is; None where masses underflow."""
        least = self.target.coin * (self.gap if self.gap > 0.0 else 1.0)
        if min(self.others.coin, least) < SMALLEST_CELL:
            return None
        whole = replace(self, amplification=1.0)
        law = self.slot_law().sampled(Cohort(self.participation))
        pair = SlotPair(law, whole.max_loss)
        return pair if self.amplification == 1.0 else pair.amplified(self.amplification)

    def _walk(self, resolution: Resolution) -> float:
        """About how many atoms the components of `resolution` have."""
        mean = 1.0 + (self.n - 1) * self.others.coin
        window = math.sqrt(2.0 * math.log(16.0 / resolution.truncated_mass))
        sizes = 2.0 * window * math.sqrt(mean * min(1.0, self.others.no_coin)) + 1.0
        sizes = min(sizes, sizes / mean / max(resolution.size_width, 1e-300) + 1.0)
        return sizes * (1.0 + 0.5 * min(mean, window * math.sqrt(mean)))

    # -- components --------------------------------------------------------------------------------

    def components(self, side: Side, resolution: Resolution) -> Components:
        """The mixture of tilted coins, bucketed onto `side`.

        Cost O(sqrt(n) + components). Raises MemoryError, before allocating, if the resolution would
        need more than MAX_COMPONENTS components.
        """
        upper = side is Side.UPPER
        sign = 1.0 if upper else -1.0
        truncated_mass = resolution.truncated_mass / 4.0
        others = self._coins_of_others(truncated_mass)
        below, above = others.below, others.above
        # Mass below the window would be worse than anything in it: at infinity for an upper bound. Mass
        # above it is dominated by what is inside, if every size has the same bias. A lower bound drops both.
        inside = 1.0 if upper else 1.0 - below - above
        # The target's slot adds a coin label or not; a target that is absent is like any other user.
        q = self.participation
        adds = q * self.target.coin + (1.0 - q) * self.others.coin
        adds_none = q * self.target.neutral + (1.0 - q) * self.others.no_coin
        if self.others.neutral <= 0.0 and q == 1.0:
            adds_none = 0.0  # a neutral target that no other user resembles is a null view
        one_bias = self.kappa == 0.0 and self.absent == 0.0
        # Others show size or size - 1 coin labels: `same` and `fewer` are the masses of these.
        padded = np.concatenate(([0.0], others.masses, [0.0]))
        same, fewer, sizes_low = padded[1:], padded[:-1], others.low
        if adds_none == 0.0:
            same, fewer, sizes_low = same[:0], others.masses, sizes_low + 1
        null = 1.0 - (adds + adds_none) if adds + adds_none + self.target.neither < 1.0 else self.target.neither
        if sizes_low == 0:
            null += inside * adds_none * float(same[0]) * (1.0 + sign * others.largest_error)
            same, fewer, sizes_low = same[1:], fewer[1:], 1
        starts = _bucket_starts(sizes_low, sizes_low + fewer.size, resolution.size_width)
        ends = np.append(starts[1:], sizes_low + fewer.size) - 1

        def summed(part: Array | None = None) -> Array:
            """Sums over each bucket of the masses, times `part`."""
            sums = np.zeros(starts.size)
            for share, masses in ((adds_none, same), (adds, fewer)):
                if masses.size:
                    values = masses if part is None else part * masses
                    sums += share * np.add.reduceat(values, starts - sizes_low)
            return sums

        weight = summed()
        # The error of a mass grows with its distance: no more than at the ends, nor than all distances together.
        error = np.maximum(others.error_at(starts - 1), others.error_at(ends))
        far = others.drift * (adds + adds_none) * others.spread
        error = np.minimum(error, others.error + far / np.maximum(np.maximum(weight, far), 1e-300))
        factor = inside * (1.0 + sign * (error + ROUNDOFF * (ends - starts + 8.0)))
        weight *= factor
        left_out = below if one_bias else below + above
        if self.kappa > 0.0:
            coins, bias, gap, weight, lost = self._split_neutral(starts, ends, weight, upper, resolution)
            left_out += lost
        elif one_bias:
            coins = starts if upper else ends
            bias, gap = np.full(coins.size, self.theta), np.full(coins.size, self.gap)
        else:
            sizes = np.arange(sizes_low, sizes_low + fewer.size, dtype=np.float64)
            keep, fall = (factor * summed(part) for part in self._kept(sizes))
            coins, keep, fall, weight = self._bucketed(starts, ends, weight, keep, fall, upper)
            bias, gap = self.theta * keep, self.gap * keep + fall
        return Components(coins, bias, gap, weight, null, left_out)

    def _coins_of_others(self, truncated_mass: float) -> Counts:
        """The law of the number of coin labels among the other users."""
        return counts([Trials(self.n - 1, self.others.coin, self.others.no_coin)], truncated_mass)

    def _kept(self, sizes: Any) -> tuple[Array, Array]:
        """keep = bias/theta of so many coins, and 1 - keep: either may be tiny, and keeps its precision."""
        whole: Array = sizes + self.absent
        keep: Array = sizes / whole
        fall: Array = self.absent / whole
        return keep, fall

    def _bucketed(
        self, starts: Index, ends: Index, weight: Array, keep: Array, fall: Array, upper: bool
    ) -> tuple[Index, Array, Array, Array]:
        """(coins, keep, 1 - keep, weight) of buckets; keep and fall: sums over the bucket, times its weights."""
        far_keep, far_fall = self._kept(starts)
        seen = weight > 0.0
        keep = np.divide(keep, weight, out=far_keep.copy(), where=seen)
        fall = np.divide(fall, weight, out=far_fall.copy(), where=seen)
        rounding = ROUNDOFF * (16.0 + (ends - starts))
        if not upper:
            # The smaller of the two is moved, and the other is what is left.
            small, large = np.minimum(1.0, fall * (1.0 + rounding)), keep * (1.0 - rounding)
            keep, fall = (np.where(fall < keep, 1.0 - small, large), np.where(fall < keep, small, 1.0 - large))
            return ends, keep, fall, weight
        near_keep, near_fall = self._kept(ends)
        single = starts == ends
        by_fall = far_fall < 0.5
        size = np.where(by_fall, far_fall, near_keep)
        width = np.where(by_fall, far_fall - near_fall, near_keep - far_keep)
        part = np.where(by_fall, far_fall - fall, keep - far_keep)
        width = np.where(single | (width <= 0.0), 1.0, width)
        # The share of the larger bias, that of `ends`, rounded up.
        share = np.where(single, 1.0, np.clip((part + 2.0 * rounding * size) / width, 0.0, 1.0))
        rest = ~single & (share < 1.0)
        return (
            np.concatenate((starts, starts[rest])),
            np.concatenate((near_keep, far_keep[rest])),
            np.concatenate((near_fall, far_fall[rest])),
            np.concatenate((weight * share, (weight * (1.0 - share))[rest])),
        )

    def _split_neutral(
        self, starts: Index, ends: Index, weight: Array, upper: bool, resolution: Resolution
    ) -> tuple[Index, Array, Array, Array, float]:
        """Components (coins, bias, gap, weight) after splitting by the number of neutral labels; what windows miss."""
        from . import coin_kernels

        labels = self._labels(int(starts[0]), int(ends[-1]), resolution)
        log_truncated_mass = math.log(12.0 / resolution.truncated_mass)
        cuts, every, most = self._cuts(labels, starts.size, resolution)
        coins = np.empty(most, np.int64)
        bias, gap, share = np.empty(most), np.empty(most), np.empty(most)
        used, lost = coin_kernels.split_neutral(
            *labels[:6], self.kappa, self.absent, self.theta, self.gap, starts, ends, weight, cuts, every,
            log_truncated_mass, upper, coins, bias, gap, share,
        )  # fmt: skip
        sign = 1.0 if upper else -1.0
        rounding = ROUNDOFF * (8.0 + 10.0 * labels.half) + 3.0 * labels.error
        return coins[:used], bias[:used], gap[:used], share[:used] * (1.0 + sign * rounding), lost

    def _labels(self, fewest: int, most: int, resolution: Resolution) -> Labels:
        """The law of the number of all users' labels, so far as `fewest` to `most` coin labels need it."""
        rate = min(1.0, self.others.neutral / self.others.no_coin)
        rest_rate = self.others.neither / self.others.no_coin
        mean = self.n * self.others.no_coin * rate
        deviation = math.sqrt(mean * rest_rate)
        if rest_rate <= 0.0:  # everybody shows a label
            return Labels(np.empty(0), self.n, False, False, 0.0, 1, mean, deviation)
        log_truncated_mass = math.log(12.0 / resolution.truncated_mass)
        half = math.ceil(math.sqrt(2.0 * log_truncated_mass) * deviation + log_truncated_mass)
        low, high = (m + math.floor((self.n - m) * rate) for m in (fewest, most))
        low, high = max(0, low - half), min(self.n, high + 1 + half)
        shown = np.arange(low, high, dtype=np.float64)
        odds = (self.n - shown) / (shown + 1.0) * (rate / rest_rate)
        return Labels(odds, low, low > 0, high < self.n, 8.0 * ROUNDOFF, half, mean, deviation)

    def _cuts(self, labels: Labels, buckets: int, resolution: Resolution) -> tuple[Array, bool, int]:
        """How a number of neutral labels is cut into intervals: cuts, whether all are kept, the most components."""
        neutrals, window = labels.neutrals, 2.0 * labels.half + 1.0
        reach = math.sqrt(2.0 * math.log(12.0 / resolution.truncated_mass))
        mean_coins = 1.0 + (self.n - 1) * self.others.coin
        others = self.absent + self.kappa * neutrals
        relative = labels.deviation * self.kappa / (mean_coins + others)
        # The loss 2 artanh(x), x = theta(m, c) t, moves by 2 x / (1 - x^2) per relative move of theta: far more
        # than by itself near x = 1. Few coins get there, at ten deviations.
        most_coins = mean_coins + 10.0 * math.sqrt(mean_coins)
        x = self.theta * min(1.0, 10.0 / math.sqrt(mean_coins)) * most_coins / (most_coins + others)
        steep = relative / max(1.0 - x, self.gap)
        cuts = np.empty(0)
        if steep > 0.0:  # otherwise everybody without a coin label has a neutral one
            cuts = _normal_cuts(resolution.bias_width / steep, -resolution.pull * relative, reach)
        atoms = 1.0 + reach * math.sqrt(mean_coins)  # per component
        few = buckets * (window + 4.0) * atoms <= KEEP_EVERY
        # Without cuts the bias hardly moves over all the numbers: next to many who are not in the cohort.
        every = (few and (cuts.size > 0 or self.absent == 0.0)) or cuts.size + 1 >= window
        most = buckets * (math.ceil(window) + 6 if every else cuts.size + 3)
        if most > MAX_COMPONENTS:
            raise MemoryError(f"a mixture of {most} coin components is too large; use a larger rtol or a larger delta")
        return cuts, every, most

    # -- atoms -------------------------------------------------------------------------------------

    def atoms(self, sides: Sequence[Side], resolution: Resolution) -> list[Atoms]:
        """Cost O(sqrt n) atoms per component plus the number of cells."""
        if self.trivial:
            return [Atoms.none() for _ in sides]
        if self._walk(resolution) > MOST_WALKED and (profile := self.as_profile) is not None:
            return profile.atoms(sides, resolution)
        return [completed(self._summed(side, resolution), side) for side in sides]

    def _summed(self, side: Side, resolution: Resolution) -> Atoms:
        """The atoms of one side."""
        from . import coin_kernels

        sign = 1.0 if side is Side.UPPER else -1.0
        rate, step = self.amplification, resolution.step
        parts = self.components(side, resolution)
        if parts.coins.size == 0:  # less likely than what may be missed
            return replace(Atoms.none(), mass=np.array([parts.null]), truncated_mass=parts.truncated_mass)
        # Two tails of a fair coin, both masses of each atom: at most 2 * 2 exp(-reach^2/2) / 2 of P-mass.
        coin_truncated_mass = resolution.truncated_mass / 4.0
        window = math.sqrt(2.0 * math.log(4.0 / coin_truncated_mass))
        steps = 0.5 * window * np.sqrt(parts.coins)
        clipped = 2.0 * float(steps.max()) > window**2
        rounding = ROUNDOFF * (96.0 + 4.0 * steps + parts.coins.size)
        weight = parts.weight * (1.0 + sign * rounding)
        if parts.coins.max() <= MOST_SEPARATE and parts.coins.sum() <= MOST_SEPARATE:
            return self._separate(parts, weight)
        edges = self._edges(parts, window, resolution)
        count = edges.size - 1
        cells = np.zeros((4, count))
        top_gap = float(parts.gap.min())
        top_bias = float(parts.bias[parts.gap == top_gap].max())
        centre, top_x, top_y, infinity_mass = coin_kernels.coin_cells(
            parts.coins, parts.bias, parts.gap, weight, window, edges, top_bias, top_gap, cells
        )
        cell_x = cells[coin_kernels.SUM_X] + cells[coin_kernels.LOST_X]
        cell_y = cells[coin_kernels.SUM_Y] + cells[coin_kernels.LOST_Y]
        sum_x = float(cell_x.sum()) + top_x + infinity_mass
        null = parts.null + centre + 2.0 * (1.0 - rate) * sum_x
        kept = np.flatnonzero(cell_y > SMALLEST_CELL)
        lost = (cell_y <= SMALLEST_CELL) & (cell_x + cell_y > 0.0)
        tiny = 2.0 * float(np.sum(cell_x[lost] + cell_y[lost])) + 1e-300 if lost.any() else 0.0
        p = cell_y[kept] + 2.0 * rate * cell_x[kept]
        q = cell_y[kept]
        loss = np.log1p(2.0 * rate * cell_x[kept] / q)
        # Sums over atoms round the ratio of a cell; merging leaves 1e-14 of a step.
        most = _most_in_a_cell(parts, edges, 0.5 * window)
        summed = ROUNDOFF * (LOSS_ULPS + 2.0 * (most + 4.0))
        ratio_error = summed * loss
        if top_y > 0.0:
            p = np.append(p, top_y + 2.0 * rate * top_x)
            q = np.append(q, top_y)
            loss = np.append(loss, math.log1p(2.0 * rate * top_bias / top_gap))
            ratio_error = np.append(ratio_error, 0.0)
        mass = np.concatenate((q[::-1], [null], p))
        loss = np.concatenate((-loss[::-1], [0.0], loss))
        ratio_error = np.concatenate((ratio_error[::-1], [0.0], ratio_error))
        truncated_mass = parts.truncated_mass + (coin_truncated_mass if clipped else 0.0) + tiny
        loss_error = summed * float(loss[-1]) + 2e-14 * step
        return Atoms(mass, loss, 2.0 * rate * infinity_mass, truncated_mass, loss_error, ratio_error)

    def _separate(self, parts: Components, weight: Array) -> Atoms:
        """Every atom by itself, for few components of few coins."""
        rate, coins = self.amplification, parts.coins
        halves = [_fair_coins(m) for m in coins.tolist()]
        more = coins - coins // 2  # numbers of heads that are more than half
        m, bias, gap, held = (np.repeat(part, more) for part in (coins, parts.bias, parts.gap, weight))
        heads = m + 1 + np.arange(m.size) - np.repeat(np.cumsum(more), more)
        x, y = bias * ((2.0 * heads - m) / m), gap + bias * (2.0 * (m - heads) / m)
        mass = held * np.concatenate([half[1:] for half in halves])
        centre = float(weight @ [half[0] for half in halves])
        infinity_mass, sum_x = float((mass * x)[y <= 0.0].sum()), float((mass * x).sum())
        finite = y > 0.0
        ratio = 2.0 * rate * x[finite] / y[finite]
        order = np.argsort(ratio, kind="stable")
        order = order[ratio[order] > 0.0]
        y, x = (mass * y)[finite][order], (mass * x)[finite][order]
        loss = np.log1p(ratio[order])
        null = parts.null + centre + 2.0 * (1.0 - rate) * sum_x
        missed = parts.truncated_mass + 1e-300 * (1.0 + loss.size)  # what underflows
        error = ROUNDOFF * LOSS_ULPS * float(loss.max(initial=0.0))
        mass = np.concatenate((y[::-1], [null], y + 2.0 * rate * x))
        loss = np.concatenate((-loss[::-1], [0.0], loss))
        return Atoms(mass, loss, 2.0 * rate * infinity_mass, missed, error, separate=True)

    def _edges(self, parts: Components, window: float, resolution: Resolution) -> Array:
        """Edges of the cells, as values of x/y, y = 1 - x, up to the largest loss inside the windows."""
        share = np.minimum(1.0, (window + 2.0 / np.sqrt(parts.coins)) / np.sqrt(parts.coins))
        x = float(np.max(parts.bias * share))
        if x >= parts.bias.max():
            y = float(parts.gap.min())
            if y <= 0.0:  # theta = 1: the last finite atom has t = 1 - 2/m
                y = 2.0 / float(parts.coins.max())
        else:
            y = 1.0 - x
        rate = self.amplification
        count = math.ceil(math.log1p(2.0 * rate * x / y) / resolution.step) + 2
        require_memory(count)
        with np.errstate(over="ignore"):  # the last ones may be beyond every loss
            edges: Array = np.expm1(resolution.step * resolution.cells(count + 1)) / (2.0 * rate)
        edges[0] = -1.0
        return edges


@lru_cache(maxsize=MOST_SEPARATE)
def _fair_coins(m: int) -> Array:
    """Probabilities of m/2 heads among m fair coins, which is 0 if m is odd, and of every number above."""
    return np.array(
        [math.comb(m, m // 2) * (1 - m % 2) / 2**m, *(math.comb(m, a) / 2**m for a in range(m // 2 + 1, m + 1))]
    )


def _most_in_a_cell(parts: Components, edges: Array, window: float) -> float:
    """At most so many atoms of one component are in one cell; window: where its walk ends, in sqrt(coins).

    Its values of x are 2 bias/coins apart, and x/y = e is x = e/(1 + e).
    """
    x = 1.0 / (1.0 + 1.0 / np.maximum(edges, 1e-300))
    widest = float(np.diff(x).max())
    density = float(np.max(parts.coins / np.maximum(2.0 * parts.bias, 1e-250)))
    return float(min(widest * density, window * math.sqrt(float(parts.coins.max())))) + 3.0


def _normal_cuts(width: float, centre: float, window: float) -> Array:
    """Cuts of a normal variable for the least within-interval variance at about `width` in the bulk.

    Widths grow like density^(-1/3), that is exp((d - centre)^2 / 6): where the mass (as tilted around
    `centre`) is small, intervals may be long, up to e^LONGEST_INTERVAL widths: an upper bound has mass at
    both ends of an interval. Standardised, ascending; at most MAX_CUTS of them.
    """
    span = max(window, 1.0) * 1.05
    if width >= 4.0 * span:
        return np.empty(0)
    grid = centre + np.linspace(-2.0 * span, 2.0 * span, 4001)
    widths = max(width, 1e-12) * np.exp(np.minimum((grid - centre) ** 2 / 6.0, LONGEST_INTERVAL))
    return at_distances(grid, widths, MAX_CUTS)[1:-1]


def _bucket_starts(first: int, stop: int, width: float) -> Index:
    """Start of each bucket of first .. stop-1; a bucket spans at most a factor 1 + width."""
    if width * stop < 1.0:
        return np.arange(first, stop, dtype=np.int64)
    ratio = math.log1p(width)
    steps = np.arange(math.ceil(math.log(stop / first) / ratio) + 1)
    starts = np.floor(first * np.exp(ratio * steps)).astype(np.int64)
    return np.asarray(starts[(np.diff(starts, prepend=-1) > 0) & (starts < stop)])


RAREST = 1e-280  # what windows may leave out of the law of the labels, at least


class LabelClass(NamedTuple):
    """So many users who show a label with probability `rate`; silent = 1 - rate."""

    number: int
    rate: float
    silent: float


@dataclass(frozen=True)
class MixedCoins(CoinMixture):
    """A `CoinMixture` whose other users are of several classes; see the module.

    coin, neutral : probability that a label is a coin label, or a neutral one. `others` are means.
    """

    classes: tuple[LabelClass, ...] = ()
    coin: float = 1.0
    neutral: float = 0.0
    as_profile = None

    @classmethod
    def of(
        cls, classes: tuple[LabelClass, ...], *, coin: float, neutral: float, target: Shown, theta: float, gap: float,
        local_loss: Bounds,
    ) -> MixedCoins:  # fmt: skip
        """The pair of a target among these users; classes of one rate are put together."""
        numbers: dict[tuple[float, float], int] = {}
        for number, *rates in classes:
            numbers[rates[0], rates[1]] = numbers.get((rates[0], rates[1]), 0) + number
        classes = tuple(LabelClass(number, *rates) for rates, number in numbers.items())
        n = 1 + sum(part.number for part in classes)
        shown = math.fsum(part.number * part.rate for part in classes) / max(1, n - 1)
        others = Shown(shown * coin, shown * neutral, 1.0 - shown)
        return cls(n, others, target, theta, gap, local_loss, classes=classes, coin=coin, neutral=neutral)

    def sampled(self, cohort: Cohort) -> Pair:
        raise TypeError(f"no pair is known for a hidden cohort of users of several classes, got {self!r}")

    def slot_law(self) -> SlotLaw:
        raise TypeError(f"users of several classes have no one law, got {self!r}")

    def _coins_of_others(self, truncated_mass: float) -> Counts:
        parts = [
            Trials(part.number, part.rate * self.coin, part.silent + part.rate * self.neutral) for part in self.classes
        ]
        return counts(parts, truncated_mass)

    def _labels(self, fewest: int, most: int, resolution: Resolution) -> Labels:
        # Given coin labels as many as their window allows, the labels lie at the end of theirs: so that one is wider.
        law = counts([Trials(*part) for part in self.classes], max(resolution.truncated_mass**2, RAREST))
        kept = np.flatnonzero(law.masses > SMALLEST_CELL)
        answers = law.masses[kept[0] : kept[-1] + 1]
        # With the target's there is one more.
        low = law.low + int(kept[0]) + 1
        shown = low + np.arange(answers.size - 1.0)
        odds = answers[1:] / answers[:-1] * (shown / (shown + 1.0)) * self.neutral
        high = low + answers.size - 1
        neutrals = (self.n - 1) * self.others.neutral
        deviation = math.sqrt(neutrals * (1.0 - self.others.neutral / self.others.no_coin))
        error = 2.0 * law.largest_error
        return Labels(odds, low, low > 1, high < self.n, error, answers.size, neutrals, deviation)
