"""The canonical pair: a target hiding in a crowd, as a mixture of tilted coins.

Every shuffle pair of the package is a `CrowdPair`. Each of the n-1 other users independently shows
one of two coin labels (probability coin_rate/2 each), a neutral label (neutral_rate), or nothing.
The target shows a coin label with probability target_coin, namely the one matching the dataset with
probability (1+theta)/2; a neutral label with probability target_neutral; or reveals that its report
is independent of its value (null). The adversary sees the three counts, or the null event.

Given m coin labels and c neutral ones the view is the *tilted-coin pair* T(m, theta(m, c)): toss m fair
coins, t = (2 heads - m)/m, and P, Q have densities 1 + theta t, 1 - theta t, with

    theta(m, c) = theta m / (m + kappa c),   kappa = target_neutral coin_rate / (neutral_rate target_coin),

and (m, c) has the same law under P and Q. (docs/theory.md, section 2;
Feldman-McMillan-Talwar 2021, Thm 3.2 for the case without neutral labels.)

Bucketing, certified by post-processing: T(m, theta) dominates T(m+1, theta) (add a fair coin), and
T(m, theta) dominates T(m, theta') for theta' <= theta. So sizes in a bucket are replaced by their smallest
(upper) or largest (lower); thetas by the two extremes with the mean kept (upper) or their mean (lower).
Cost: O(sqrt n) for the weights, a number of components that depends on the wanted accuracy only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .bracket import Side
from .tails import chernoff_window

Array = NDArray[np.float64]

ROUNDOFF = 2.0**-53
MAX_COMPONENTS = 4_000_000
MAX_CUTS = 100_000
LARGEST_GROWTH = 1.5
# Up to so many atoms every number of neutral labels is kept: cheap, and right far out in the tails, where the
# outermost intervals put mass on thetas that are rarer by far.
KEEP_EVERY = 8_000_000


@dataclass(frozen=True)
class Resolution:
    """How finely a law is formed; smaller is tighter and slower, every value is certified.

    missed : P-mass that windows may leave out (it goes to the safe side).
    crowd_width : relative width of a bucket of crowd sizes m; 0 keeps every m.
    bias_width : relative width of an interval of theta where most of the mass is.
    pull : z^2 of one round under the tilt; it says where the mass of theta moves to.
    profile_width : distance of the dots of a privacy profile, in units of loss; 0 means one lattice step.
    """

    missed: float = 1e-15
    crowd_width: float = 0.0
    bias_width: float = 1e-3
    pull: float = 0.0
    profile_width: float = 0.0


@dataclass(frozen=True)
class CoinMixture:
    """Components (coins, bias, gap = 1 - bias, weight), a null mass, and the mass left out.

    For a lower bound weights sum to at most 1 - null, for an upper bound `missed` is the P-mass that
    must be put at infinite loss. All arrays have one shape (components,). `lower_share` of an upper
    mixture: where nothing was bucketed, this share of it is a lower mixture, so one kernel run serves both.
    """

    coins: NDArray[np.int64]
    bias: Array
    gap: Array
    weight: Array
    null: float
    missed: float
    lower_share: float | None = None


@dataclass(frozen=True)
class CrowdPair:
    """The numbers of the canonical pair (see the module).

    gap = 1 - theta and max_loss = log((1 + theta)/(1 - theta)) are given apart, so that they keep their
    precision. max_loss is exact (eps0 itself) if exact_loss, else rounded upwards.
    """

    n: int
    coin_rate: float
    neutral_rate: float
    target_coin: float
    target_neutral: float
    null: float
    theta: float
    gap: float
    max_loss: float
    exact_loss: bool = True
    silent_rate: float | None = (
        None  # 1 - coin_rate - neutral_rate, where it needs its own precision
    )

    @property
    def trivial(self) -> bool:
        """Whether the view never carries information."""
        return self.theta <= 0.0 or self.target_coin <= 0.0

    @property
    def kappa(self) -> float:
        """Weight of a neutral label against a coin label in the likelihood."""
        if self.target_neutral <= 0.0 or self.neutral_rate <= 0.0:
            return 0.0
        return self.target_neutral * self.coin_rate / (self.neutral_rate * self.target_coin)

    @property
    def mean_crowd(self) -> float:
        """Expected number of coin labels, the target's included."""
        return 1.0 + (self.n - 1) * self.coin_rate

    @property
    def spread(self) -> float:
        """Rough standard deviation of x = theta t, only to choose steps."""
        m = self.mean_crowd
        return self.theta * m / (m + self.kappa * self.n * self.neutral_rate) / math.sqrt(m)

    def mixture(self, side: Side, resolution: Resolution) -> CoinMixture:
        """The mixture of tilted coins, bucketed onto `side`.

        Cost O(sqrt(n) + components). Raises MemoryError, before allocating, if the resolution would
        need more than MAX_COMPONENTS components.
        """
        upper = side is Side.UPPER
        sign = 1.0 if upper else -1.0
        if self.trivial:
            empty = np.empty(0)
            return CoinMixture(np.empty(0, np.int64), empty, empty, empty, 1.0, 0.0)
        missed = resolution.missed / 4.0
        low, high = chernoff_window(self.n - 1, self.coin_rate, missed)
        sizes_low, pmf = low + 1, _pmf_window(self.n - 1, self.coin_rate, low, high)
        # Relative rounding of each entry; see binomial_pmf. The sum's error is at most the same.
        mode = int(self.coin_rate * self.n)
        distance = np.abs(np.arange(low, high + 1) - mode)
        # ... and the rate itself is rounded: log pmf moves by (x - np) / (1 - p) per relative move of p.
        stride = 6.0 + 9.0 / (1.0 - self.coin_rate) if self.coin_rate < 1.0 else 0.0
        summing = stride * float(np.sum(pmf * distance)) + pmf.size
        pmf *= 1.0 + sign * ROUNDOFF * (16.0 + stride * (1.0 + distance) + summing)
        # Mass below the window would be worse than anything in it: at infinity for an upper bound. Mass
        # above it is dominated by what is inside (without neutral labels). A lower bound drops both.
        below = missed if low > 0 else 0.0
        above = missed if high < self.n - 1 else 0.0
        if not upper:
            pmf *= 1.0 - below - above
        if self.kappa > 0.0:
            # The target may be neutral: sizes low .. high+1, the mixture of both cases.
            sizes_low = low
            pmf = np.append(self.target_neutral * pmf, 0.0) + np.append(0.0, self.target_coin * pmf)
            scale = self.target_neutral + self.target_coin
        else:
            scale = self.target_coin
            pmf = pmf * scale
        # Neutral targets of a pair without neutral others never arise; their label is a null view.
        null = self.null + (1.0 - self.null - scale if scale + self.null < 1.0 else 0.0)
        if sizes_low == 0:
            null += pmf[0]
            pmf = pmf[1:]
            sizes_low = 1
        starts = _bucket_starts(sizes_low, sizes_low + pmf.size, resolution.crowd_width)
        weight = np.add.reduceat(pmf, starts - sizes_low)
        ends = np.append(starts[1:], sizes_low + pmf.size) - 1
        left_out = below
        if self.kappa > 0.0:
            coins, bias, gap, weight = self._split(starts, ends, weight, upper, resolution)
            left_out += missed + above  # here, more coin labels are not better hidden
        else:
            coins = starts if upper else ends
            bias = np.full(coins.size, self.theta)
            gap = np.full(coins.size, self.gap)
        lower_share = None
        if upper and self.kappa == 0.0 and starts.size == pmf.size:
            farthest = 1.0 + float(distance.max(initial=0.0))
            worst = ROUNDOFF * (16.0 + stride * farthest + summing)
            lower_share = (1.0 - 3.0 * worst) * (1.0 - below - above)
        return CoinMixture(coins, bias, gap, weight, null, left_out, lower_share)

    def _split(
        self,
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
        weight: Array,
        upper: bool,
        resolution: Resolution,
    ) -> tuple[NDArray[np.int64], Array, Array, Array]:
        """Components (coins, bias, gap, weight) after splitting by the number of neutral labels."""
        from . import kernels

        rate = min(1.0, self.neutral_rate / (1.0 - self.coin_rate))
        rest_rate = 1.0 - rate
        if self.silent_rate is not None:
            rest_rate = self.silent_rate / (1.0 - self.coin_rate)
        log_missed = math.log(12.0 / resolution.missed)
        trials = self.n * (1.0 - self.coin_rate)
        deviation = math.sqrt(trials * rate * rest_rate)
        reach = math.sqrt(2.0 * log_missed)
        window = 2.0 * (reach * deviation + log_missed)
        relative = deviation * self.kappa / (self.mean_crowd + self.kappa * trials * rate)
        # The loss 2 artanh(x), x = theta t, moves by 2 x / (1 - x^2) per relative move of theta: far more
        # than by itself near t = 1 if theta is near 1. Few coins get there, at ten deviations.
        x = self.theta * min(1.0, 10.0 / math.sqrt(self.mean_crowd))
        steep = relative / max(1.0 - x, self.gap)
        cuts = np.empty(0)
        if steep > 0.0:  # otherwise everybody without a coin label has a neutral one
            cuts = _normal_cuts(resolution.bias_width / steep, -resolution.pull * relative, reach)
        atoms = 1.0 + reach * math.sqrt(self.mean_crowd)  # per component
        every = starts.size * (window + 4.0) * atoms <= KEEP_EVERY or cuts.size + 1 >= window
        room = starts.size * (math.ceil(window) + 6 if every else cuts.size + 3)
        if room > MAX_COMPONENTS:
            raise MemoryError(
                f"a mixture of {room} coin components is too large; use a larger rtol or a larger delta"
            )
        coins = np.empty(room, np.int64)
        bias, gap, share = np.empty(room), np.empty(room), np.empty(room)
        used = kernels.split_neutral(
            self.n, rate, rest_rate, self.kappa, self.theta, self.gap, starts, ends, weight, cuts,
            every, log_missed, upper, coins, bias, gap, share,
        )  # fmt: skip
        share = share[:used]
        if upper:
            share *= 1.0 + ROUNDOFF * (8.0 + 5.0 * window)
        else:
            share *= 1.0 - ROUNDOFF * (8.0 + 5.0 * window) - 3.0 * math.exp(-log_missed)
        return coins[:used], bias[:used], gap[:used], share


def _normal_cuts(width: float, centre: float, reach: float) -> Array:
    """Cuts of a normal variable for the least within-interval variance at about `width` in the bulk.

    Widths grow like density^(-1/3), that is exp((d - centre)^2 / 6): where the mass (as tilted around
    `centre`) is small, intervals may be long, up to e^LARGEST_GROWTH widths: an upper bound has mass at
    both ends of an interval. Standardised, ascending; at most MAX_CUTS of them.
    """
    span = max(reach, 1.0) * 1.05
    grid = centre + np.linspace(-2.0 * span, 2.0 * span, 4001)
    growth = np.exp(np.minimum((grid - centre) ** 2 / 6.0, LARGEST_GROWTH))
    count = np.concatenate(([0.0], np.cumsum(0.5 * (1.0 / growth[1:] + 1.0 / growth[:-1]))))
    count *= (grid[1] - grid[0]) / max(width, 1e-12)
    pieces = max(1, min(MAX_CUTS, math.ceil(count[-1])))
    cuts: Array = np.interp(np.arange(1, pieces) * (count[-1] / pieces), count, grid)
    return cuts


def _pmf_window(n: int, p: float, low: int, high: int) -> Array:
    """Bin(n, p) on low .. high, normalised to 1 there."""
    from . import kernels

    out = np.ones(high - low + 1)
    if 0.0 < p < 1.0 and n > 0:
        kernels.binomial_pmf(n, p, low, high, out)
    return out


def _bucket_starts(first: int, stop: int, width: float) -> NDArray[np.int64]:
    """Start of each bucket of first .. stop-1; a bucket spans at most a factor 1 + width."""
    if width * stop < 1.0:
        return np.arange(first, stop, dtype=np.int64)
    ratio = math.log1p(width)
    steps = np.arange(math.ceil(math.log(stop / first) / ratio) + 1)
    starts = np.unique(np.floor(first * np.exp(ratio * steps)).astype(np.int64))
    return starts[starts < stop]
