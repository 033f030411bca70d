"""Renyi divergence of coin mixtures: certified sums over the numbers of coins.

A mixture on a cohort of rate r consists of mirrored atoms (p, q), (q, p) with q = b y, p = b (y + 2 r x) (see
`pairs.coins`), and of loss-0 mass. With l = log(p/q) > 0 the two atoms of a mirror pair add to E_Q[(P/Q)^alpha] - 1

    p^alpha q^(1-alpha) + q^alpha p^(1-alpha) - p - q
        = b y e^(alpha l) (1 - e^(-(alpha-1) l)) (1 - e^(-alpha l)),

which has no cancellation, neither for tiny divergences nor for alpha near 1. Loss-0 mass adds nothing.

The *excess* E(m, theta) is the sum of these over the fair tosses of T(m, theta). It is an expectation of a convex even
function of theta t: so it falls with m, rises with theta, and is convex in theta. That bounds the average over numbers
of coins from both sides. A bucket of sizes has at most its mass times the excess of its smallest size, and at least its
mass times that of its largest. The law of m is log-concave, so a long bucket's mass lies between the geometric chord
and the tangents of its end points. Buckets are split until the two sides agree.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..numerics.log_binomial import log_binomial_pmf
from ..numerics.sides import Bounds, Side
from ..pairs.coins import CoinMixture
from .renyi_kernels import log_excesses, log_neutral_excess

Array = NDArray[np.float64]
Sizes = NDArray[np.int64]

#: Allowance for rounding on the logarithm of an excess: absolute, and times its exponents.
ROUNDING = 1e-10
ROUNDING_PER_EXPONENT = 4e-15
MAX_BUCKETS = 3000  # of numbers of coins, for one enclosure; with neutral labels:
MAX_NEUTRAL_BUCKETS = 400
SHORT = 256  # buckets up to so many sizes are summed size by size


def log_mixture_excess(pair: CoinMixture, rate: float, order: float, rtol: float) -> Bounds:
    """Bounds on log of (E_Q[(P/Q)^order] - 1) for a pair without infinite loss."""
    coins = _CoinLaw(pair, rate, order)
    budget = MAX_NEUTRAL_BUCKETS if pair.kappa > 0.0 else MAX_BUCKETS
    first, end = _first_edges(pair)
    last = np.append(first[1:] - 1, end)
    lower, upper = coins.buckets(first, last)
    if end < pair.n:
        # Sizes beyond the end, dominated by the end: geometric by log-concavity, the ratio is < 1.
        beyond = np.array([end, end + 1], np.int64)
        weight = coins.log_weight(beyond)
        ratio = weight[1] - weight[0]
        at_end = coins.log_excess(beyond[:1], beyond[:1], Side.UPPER)[0]
        tail = weight[1] - math.log(-math.expm1(ratio)) + at_end
    else:
        tail = -math.inf
    while True:
        log_lower = float(np.logaddexp.reduce(lower))
        log_upper = float(np.logaddexp(np.logaddexp.reduce(upper), tail))
        # The divergence is log1p(excess) / (order - 1): at most as wide as the excess.
        width = float(np.logaddexp(0.0, log_upper)) - float(np.logaddexp(0.0, log_lower))
        if width <= rtol * float(np.logaddexp(0.0, log_lower)):
            break
        gap = np.exp(upper - log_upper) - np.exp(lower - log_upper)
        gap[last == first] = 0.0
        most = np.argsort(gap)[::-1]
        covering = int(np.searchsorted(np.cumsum(gap[most]), 0.95 * gap.sum())) + 1
        chosen = most[: max(0, min(covering, budget - first.size))]
        chosen = chosen[gap[chosen] > 0.0]
        if chosen.size == 0:
            break
        parts = np.concatenate([_quarters(int(first[i]), int(last[i])) for i in chosen])
        kept = np.ones(first.size, bool)
        kept[chosen] = False
        new_lower, new_upper = coins.buckets(parts[:, 0], parts[:, 1])
        first = np.concatenate((first[kept], parts[:, 0]))
        last = np.concatenate((last[kept], parts[:, 1]))
        lower = np.concatenate((lower[kept], new_lower))
        upper = np.concatenate((upper[kept], new_upper))
    exponents = order * math.log1p(2.0 * rate * pair.theta / pair.gap)
    slack = ROUNDING + ROUNDING_PER_EXPONENT * exponents
    return Bounds(log_lower - slack, log_upper + slack)


class _CoinLaw:
    """The law of the number m >= 1 of coin labels, and excesses at one order on either side."""

    def __init__(self, pair: CoinMixture, rate: float, order: float) -> None:
        self._pair = pair
        self._rate = rate
        self._order = order
        self._neutral = pair.kappa > 0.0
        self._chance = min(pair.coin_rate, 1.0 - 2.0**-53)
        self.largest = pair.n
        self._known: dict[tuple[int, int, bool], float] = {}
        self._floor = -math.inf  # log of a lower bound on the whole

    def log_weight(self, sizes: Sizes) -> Array:
        """log of the probability of m coin labels with the target's label among them, or neutral.

        Log-concave in m: a binomial law, times an affine function if there are neutral labels.
        """
        pair = self._pair
        m = sizes.astype(np.float64)
        if not self._neutral:
            if pair.n == 1:
                return np.full(m.shape, math.log(pair.target_coin))
            logs = log_binomial_pmf(m - 1.0, trials=pair.n - 1, chance=self._chance)
            return logs + math.log(pair.target_coin)
        n, chance = pair.n, self._chance
        affine = (
            pair.target_neutral * ((n - m) / (n * (1.0 - chance)))
            + pair.target_coin * (m / n) / chance
        )
        return log_binomial_pmf(m, trials=n, chance=chance) + np.log(affine)

    def log_mass(self, first: Sizes, last: Sizes) -> tuple[Array, Array]:
        """Lower and upper bounds on the logs of the masses of the buckets first .. last."""
        lower, upper = np.empty(first.size), np.empty(first.size)
        short = last - first < SHORT
        if short.any():
            begin, length = first[short], (last - first + 1)[short]
            starts = np.concatenate(([0], np.cumsum(length)[:-1]))
            sizes = np.repeat(begin - starts, length) + np.arange(length.sum())
            logs = self.log_weight(sizes)
            peak = np.maximum.reduceat(logs, starts)
            sums = np.add.reduceat(np.exp(logs - np.repeat(peak, length)), starts)
            lower[short] = upper[short] = peak + np.log(sums)
        if not short.all():
            low, high = first[~short], last[~short]
            count = (high - low + 1).astype(np.float64)
            at_low, at_high = self.log_weight(low), self.log_weight(high)
            rise = self.log_weight(low + 1) - at_low
            fall = self.log_weight(high - 1) - at_high
            chord = (at_high - at_low) / (count - 1.0)
            lower[~short] = at_low + _log_geometric(chord, count)
            upper[~short] = np.minimum(
                at_low + _log_geometric(rise, count), at_high + _log_geometric(fall, count)
            )
        return lower, upper

    def log_excess(self, law_coins: Sizes, coins: Sizes, side: Side) -> Array:
        """log of the excess of `coins` coins with the neutral labels of `law_coins`; remembered."""
        upper = side is Side.UPPER
        keys = list(zip(law_coins.tolist(), coins.tolist(), [upper] * coins.size, strict=True))
        if not self._neutral:
            keys = [(size, size, False) for _, size, _ in keys]
        fresh = sorted({key for key in keys if key not in self._known})
        pair = self._pair
        if fresh and not self._neutral:
            out = np.empty(len(fresh))
            sizes = np.array([size for _, size, _ in fresh], np.int64)
            log_excesses(self._order, sizes, pair.theta, pair.gap, self._rate, out)
            self._known.update(zip(fresh, out.tolist(), strict=True))
        elif fresh:
            share = min(1.0, pair.neutral_rate / (1.0 - pair.coin_rate))
            for key in fresh:
                self._known[key] = log_neutral_excess(
                    self._order, pair.n, share, pair.kappa, pair.theta, pair.gap, self._rate,
                    key[0], key[1], key[2],
                )  # fmt: skip
        return np.array([self._known[key] for key in keys])

    def buckets(self, first: Sizes, last: Sizes) -> tuple[Array, Array]:
        """Lower and upper bounds on the logs of the buckets' shares of the excess."""
        low_mass, high_mass = self.log_mass(first, last)
        if not self._neutral:
            upper = high_mass + self.log_excess(first, first, Side.UPPER)
            return low_mass + self.log_excess(last, last, Side.LOWER), upper
        # With the largest theta every excess is cheap: enough for buckets that hold next to nothing.
        upper = high_mass + self._log_largest_excess(first)
        lower = np.full(first.size, -math.inf)
        if self._floor == -math.inf:
            best = np.array([np.argmax(upper)])
            inside = self.log_excess(first[best], last[best], Side.LOWER)
            self._floor = float(low_mass[best][0] + inside[0])
        held = np.flatnonzero(upper > self._floor - 50.0)
        # Upper: law and theta of the largest size on the smallest number of coins; and vice versa.
        upper[held] = high_mass[held] + self.log_excess(last[held], first[held], Side.UPPER)
        lower[held] = low_mass[held] + self.log_excess(first[held], last[held], Side.LOWER)
        return np.minimum(lower, upper), upper

    def _log_largest_excess(self, coins: Sizes) -> Array:
        """log of the excess without neutral labels."""
        out = np.empty(coins.size)
        pair = self._pair
        log_excesses(self._order, coins, pair.theta, pair.gap, self._rate, out)
        return out


def _log_geometric(step: Array, count: Array) -> Array:
    """log of 1 + e^step + ... + e^(step (count - 1)), for steps of either sign."""
    size = np.abs(step)
    safe = np.where(size * count > 1e-9, size, 1.0)
    falling = np.log(-np.expm1(-safe * count)) - np.log(-np.expm1(-safe))
    near = np.log(count) - 0.5 * size * (count - 1.0)
    total = np.where(size * count > 1e-9, falling, near)
    return np.asarray(total + np.maximum(step, 0.0) * (count - 1.0))


def _first_edges(pair: CoinMixture) -> tuple[Sizes, int]:
    """Starts of a first coarse set of buckets of 1 .. last, and last: beyond is negligible mass."""
    n, chance = pair.n, pair.coin_rate
    mean = max(1.0, n * chance)
    sigma = math.sqrt(n * chance * (1.0 - chance)) + 1.0
    last = min(n, math.ceil(mean + 12.0 * sigma + 60.0))
    points = 97 if pair.kappa == 0.0 else 33
    grid = np.concatenate(
        (
            np.geomspace(1.0, last, points // 2),
            mean + sigma * np.linspace(-12.0, 12.0, points),
            np.arange(1.0, 9.0),
        )
    )
    edges = np.unique(np.floor(grid).astype(np.int64))
    return edges[(edges >= 1) & (edges <= last)], last


def _quarters(first: int, last: int) -> Sizes:
    """Four (or fewer) buckets that make up first .. last, shape (parts, 2)."""
    edges = np.unique(np.linspace(first, last + 1, 5).astype(np.int64))
    edges[-1] = last + 1
    return np.stack((edges[:-1], edges[1:] - 1), axis=1)
