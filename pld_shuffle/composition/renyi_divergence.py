"""Renyi divergence of the package's own pairs at any real order; those known by a profile are `renyi_profile`'s.

With alpha the order, R(alpha) = log(E_Q[(P/Q)^alpha]) / (alpha - 1). A coin mixture on a cohort of
rate r consists of mirrored atoms (p, q), (q, p) with q = b y, p = b (y + 2 r x) (see `pairs.coins`), and
of loss-0 mass. With l = log(p/q) > 0 the two atoms of a mirror pair add to E_Q[(P/Q)^alpha] - 1

    p^alpha q^(1-alpha) + q^alpha p^(1-alpha) - p - q
        = b y e^(alpha l) (1 - e^(-(alpha-1) l)) (1 - e^(-alpha l)),

which has no cancellation, neither for tiny divergences nor for alpha near 1; loss-0 mass adds
nothing. The *excess* E(m, theta), the sum of these over the fair tosses of T(m, theta), is an
expectation of a convex even function of theta t, so it falls with m, and rises with theta and is
convex in it. That gives both sides of the average over numbers of coins: a bucket of sizes has at most
its mass times the excess of its smallest size, and at least its mass times that of its largest;
the law of m is log-concave, so a long bucket's mass lies between the geometric chord and the
tangents of its end points. Buckets are split until the two sides agree.

Everything is summed in logs. Guarantee: `renyi_bounds` encloses the divergence; the enclosure's
width is `rtol` where the budget of buckets and intervals allows it (otherwise wider, still valid:
measured 2e-3 for the weak adversary at order 40, 1e-2 at 10^4), and rounding is covered by the
measured allowance ROUNDING on the logarithm of the excess. Mass at infinite loss makes the
divergence infinite.

Sources: Mironov 2017 (Renyi DP, additive over adaptive rounds); Canonne, Kamath, Steinke 2020,
Prop. 12 (conversion, `bounds.rdp`); Zhu, Dong, Wang 2022, Prop. 30 (both halves of subsampling).
"""

# mypy: allow-untyped-decorators
from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..numerics.compiled import jit
from ..numerics.log_binomial import log_binomial_pmf
from ..numerics.sides import Bounds, Side
from ..numerics.validation import real_array, tolerance
from ..pairs.coin_kernels import central_coin_mass
from ..pairs.coins import CoinMixture
from ..pairs.pair import Pair, Resolution
from ..pairs.profile import ProfilePair
from .pld import PLD, formed
from .renyi_profile import log_excess

Array = NDArray[np.float64]
Sides = tuple[Side, ...]
Sizes = NDArray[np.int64]

#: Allowance for rounding on the logarithm of an excess: absolute, and times its exponents.
ROUNDING = 1e-10
ROUNDING_PER_EXPONENT = 4e-15
#: Relative width asked of an enclosure, and the most buckets of numbers of coins that are spent on it.
RTOL = 1e-4
MAX_BUCKETS = 3000
MAX_NEUTRAL_BUCKETS = 400
#: Relative width of the buckets of numbers of coins in a lattice law, and laws that are remembered.
SIZE_WIDTH = 1e-5
LAWS_KEPT = 32
#: From so many users on, and for enclosures that need not be tighter, a lattice law is tried first.
LATTICE_USERS, LATTICE_RTOL = 3_000, 1e-3
#: Buckets up to this many sizes are summed size by size.
SHORT = 256
#: Intervals of the number of neutral labels, at most, for each bucket of sizes.
MAX_PARTS = 250
#: ... and the relative change of theta over one of them, unless that would be more than MAX_PARTS.
WIDTH_OF_PART = 0.005


# --- compiled: the excess of one tilted coin -------------------------------------------------


@jit
def _log_summand(order: float, x: float, y: float, rate: float) -> float:
    """log of y e^(a l) (1 - e^(-(a-1) l)) (1 - e^(-a l)), l = log1p(2 rate x / y); x > 0."""
    loss = math.log1p(2.0 * rate * x / y)
    return (
        math.log(y)
        + order * loss
        + math.log(-math.expm1(-(order - 1.0) * loss))
        + math.log(-math.expm1(-order * loss))
    )


@jit
def _log_excess(order: float, m: int, theta: float, gap: float, rate: float) -> float:
    """log E(m, theta), m >= 1 coins, 0 < theta < 1, gap = 1 - theta, sampling rate `rate`.

    Walks the heads from the centre outwards, with b from a recurrence. It stops once Chernoff's
    bound on the tosses beyond, in pieces and with the summand at each piece's end, is below e^-38
    of the sum.
    """
    if m % 2 == 0:
        heads = m // 2 + 1
        b = central_coin_mass(m) * (m - heads + 1.0) / heads
    else:
        heads = (m + 1) // 2
        b = central_coin_mass(m + 1)
    scale = 2.0 * theta / m
    offset = 0.0
    total = 0.0
    peak = -math.inf
    wait = 16 + int(2.0 * math.sqrt(m))
    check = heads + wait
    while heads <= m:
        x = scale * (heads - 0.5 * m)
        y = gap + scale * (m - heads)
        loss = math.log1p(2.0 * rate * x / y)
        exponent = offset + order * loss + math.log(y)
        factor = b * math.expm1(-(order - 1.0) * loss) * math.expm1(-order * loss)
        if exponent > peak:
            total = total * math.exp(peak - exponent) + factor
            peak = exponent
        else:
            total += factor * math.exp(exponent - peak)
        b *= (m - heads) / (heads + 1.0)
        heads += 1
        if b < 1e-200:
            if b == 0.0:
                break
            b *= 1e200
            offset -= 200.0 * math.log(10.0)
        if heads == check and heads < m:
            limit = peak + math.log(total) - 44.0
            width = 0.5 * math.sqrt(m)
            start = heads
            small = True
            while small and start <= m:
                end = min(m, start + int(width))
                share = start / m
                tail = math.log(2.0) + share * math.log(share)
                if share < 1.0:
                    tail += (1.0 - share) * math.log1p(-share)
                y = gap + scale * (m - end)
                bound = _log_summand(order, scale * (end - 0.5 * m), y, rate) - m * tail
                small = bound < limit
                start = end + 1
                width *= 1.25
                limit -= 0.1
            if small:
                break
            wait += wait // 4
            check = heads + wait
    return peak + math.log(total)


@jit
def _log_excesses(
    order: float, coins: Sizes, theta: float, gap: float, rate: float, out: Array
) -> None:
    """Fill out[i] with log E(coins[i], theta)."""
    for i in range(coins.size):
        out[i] = _log_excess(order, coins[i], theta, gap, rate)


@jit
def _log_neutral_excess(
    order: float,
    n: int,
    chance: float,
    kappa: float,
    theta: float,
    gap: float,
    rate: float,
    law_coins: int,
    coins: int,
    upper: bool,
) -> float:
    """log of the average excess of `coins` coins over the neutral labels that come with law_coins.

    The number c of neutral labels has law proportional to Bin(n - m, chance)(c) (m + kappa c), m =
    law_coins, and theta(c) = theta m / (m + kappa c). Intervals of c are replaced by the extreme
    thetas with the mean kept (upper; convexity in theta) or by their mean (lower). The window leaves
    out at most 3 e^-D of the law, with D so large that even the largest theta there adds less than
    e^-38 of the rest.
    """
    m = law_coins
    trials = n - m
    typical = m / (m + kappa * trials * chance)
    centre = _log_excess(order, coins, theta * typical, gap * typical + (1.0 - typical), rate)
    depth = 42.0 + _log_excess(order, coins, theta, gap, rate) - centre
    spread = math.sqrt(2.0 * trials * chance * (1.0 - chance) * depth) + depth
    mean = trials * chance
    low = max(0, int(mean - spread) - 1)
    high = min(trials, int(mean + spread) + 2)
    if chance >= 1.0:
        low = trials
    # Intervals edges[i] .. edges[i+1]-1 over which m + kappa c grows by one factor each.
    growth = math.log((m + kappa * high) / (m + kappa * low))
    wanted = min(MAX_PARTS, max(16, int(growth / WIDTH_OF_PART) + 1))
    edges = np.empty(wanted + 1, np.int64)
    edges[0] = low
    parts = 0
    while parts < wanted and edges[parts] <= high:
        goal = int(((m + kappa * low) * math.exp(growth * (parts + 1) / wanted) - m) / kappa)
        goal = max(goal, edges[parts] + 1)
        parts += 1
        edges[parts] = goal if parts < wanted and goal <= high else high + 1
    mode = min(max(int((trials + 1) * chance), low), high)
    odds = chance / (1.0 - chance) if chance < 1.0 else 1.0
    # Per interval: sums of (m + kappa c) and of the same times theta's ratio, m, over e^reference.
    reference = np.full(parts, -math.inf)
    mass = np.zeros(parts)
    slope = np.zeros(parts)
    home = 0
    while edges[home + 1] <= mode:
        home += 1
    logs = 0.0
    part = home
    for c in range(mode, high + 1):
        if c >= edges[part + 1]:
            part += 1
        if mass[part] == 0.0:
            reference[part] = logs
        value = math.exp(logs - reference[part])
        mass[part] += value * (m + kappa * c)
        slope[part] += value * m
        if c < high:
            logs += math.log(odds * ((trials - c) / (c + 1.0)))
    logs = 0.0
    part = home
    for c in range(mode - 1, low - 1, -1):
        logs += math.log((c + 1.0) / ((trials - c) * odds))
        if c < edges[part]:
            part -= 1
        if mass[part] == 0.0:
            reference[part] = logs
        value = math.exp(logs - reference[part])
        mass[part] += value * (m + kappa * c)
        slope[part] += value * m
    top = -math.inf
    for part in range(parts):
        if mass[part] > 0.0:
            top = max(top, reference[part] + math.log(mass[part]))
    held = 0.0
    for part in range(parts):
        if mass[part] > 0.0:
            held += mass[part] * math.exp(reference[part] - top)
    total = 0.0
    peak = -math.inf
    near, at_near = 1.0, 0.0
    far, at_far = 1.0, 0.0
    for part in range(parts):
        share = reference[part] + math.log(mass[part] / held) - top
        ratio = slope[part] / mass[part]
        if upper:
            # The last end belongs to the next interval as well: one more evaluation, not two.
            if part == 0:
                far = m / (m + kappa * low)
                at_far = _log_excess(order, coins, theta * far, gap * far + (1.0 - far), rate)
            near, at_near = far, at_far
            far = m / (m + kappa * edges[part + 1])
            at_far = _log_excess(order, coins, theta * far, gap * far + (1.0 - far), rate)
            portion = max(0.0, (ratio - far) / (near - far)) + 1e-13 * near / (near - far)
            portion = min(1.0, portion)
            term = (
                share + at_near + math.log(portion + (1.0 - portion) * math.exp(at_far - at_near))
            )
        else:
            ratio = min(1.0, ratio)
            term = share + _log_excess(
                order, coins, theta * ratio, gap * ratio + (1.0 - ratio), rate
            )
        if term > peak:
            total = total * math.exp(peak - term) + 1.0
            peak = term
        else:
            total += math.exp(term - peak)
    return peak + math.log(total)


# --- the average over numbers of coins ------------------------------------------------------------


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
            _log_excesses(self._order, sizes, pair.theta, pair.gap, self._rate, out)
            self._known.update(zip(fresh, out.tolist(), strict=True))
        elif fresh:
            share = min(1.0, pair.neutral_rate / (1.0 - pair.coin_rate))
            for key in fresh:
                self._known[key] = _log_neutral_excess(
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
        _log_excesses(self._order, coins, pair.theta, pair.gap, self._rate, out)
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


def _log_mixture_excess(pair: CoinMixture, rate: float, order: float, rtol: float) -> Bounds:
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


def _quarters(first: int, last: int) -> Sizes:
    """Four (or fewer) buckets that make up first .. last, shape (parts, 2)."""
    edges = np.unique(np.linspace(first, last + 1, 5).astype(np.int64))
    edges[-1] = last + 1
    return np.stack((edges[:-1], edges[1:] - 1), axis=1)


# --- divergences -----------------------------------------------------------------------------


def renyi_bounds(pair: Pair, alpha: Any, *, rtol: float = RTOL) -> Bounds:
    """Bounds(lower, upper) on the Renyi divergence of one round's pair.

    Parameters: pair; alpha, orders > 1 (inf gives the largest loss), scalar or array; rtol, the
    relative width asked for, in (1e-9, 1]. Both directions, R(P||Q) and R(Q||P), are covered, since
    neighbouring is symmetric. inf where the pair has mass at infinite loss.
    Raises TypeError or ValueError naming the argument. Cost, for a coin mixture: up to MAX_BUCKETS
    sums of O(sqrt(n)) terms (times the intervals of neutral labels), per order: milliseconds for
    n <= 10^5, seconds for 10^9, minutes beyond. For a profile: some hundred points, once for all orders.
    """
    return _bounds(pair, alpha, rtol, tuple(Side))


def renyi_divergence(pair: Pair, alpha: Any, *, rtol: float = RTOL) -> Any:
    """Renyi divergence of one round's pair at orders `alpha` > 1, from above.

    The upper end of `renyi_bounds` (which see); float, or array for an array. Multiply by the
    number of rounds to compose.
    """
    return _bounds(pair, alpha, rtol, (Side.UPPER,)).upper


def renyi_lower(pair: Pair, alpha: Any, *, rtol: float = RTOL) -> Any:
    """As `renyi_divergence`, from below."""
    return _bounds(pair, alpha, rtol, (Side.LOWER,)).lower


def _bounds(pair: Pair, alpha: Any, rtol: float, sides: Sides) -> Bounds:
    """The ends on `sides`; what is not asked may be trivial."""
    orders = real_array("alpha", alpha)
    if not np.all(orders > 1.0):
        raise ValueError(f"alpha must be greater than 1, got {alpha!r}")
    width = tolerance("rtol", rtol)
    found = [_divergence(pair, float(order), width, sides) for order in orders.ravel()]
    if orders.ndim == 0:
        return found[0]
    lower = np.array([bounds.lower for bounds in found], np.float64).reshape(orders.shape)
    upper = np.array([bounds.upper for bounds in found], np.float64).reshape(orders.shape)
    return Bounds(lower, upper)


def _divergence(pair: Pair, order: float, rtol: float, sides: Sides) -> Bounds:
    largest = pair.max_loss
    if pair.scale == 0.0 and largest.upper == 0.0:
        return Bounds(0.0, 0.0)
    if order == math.inf:
        return largest
    exact = pair.renyi(order)
    if exact is not None:
        return exact
    if isinstance(pair, ProfilePair):
        return _profile_divergence(pair, order, rtol, sides)
    if not (isinstance(pair, CoinMixture) and pair.participation == 1.0):
        return _lattice_divergence(pair, order)
    if pair.trivial:
        return Bounds(0.0, 0.0)
    if pair.gap <= 0.0:  # theta = 1: the toss that shows only heads has infinite loss
        return Bounds(math.inf, math.inf)
    if pair.n >= LATTICE_USERS and rtol >= LATTICE_RTOL and (order - 1.0) * pair.scale < 30.0:
        found = _lattice_divergence(pair, order)
        if found.upper <= (1.0 + rtol) * found.lower:
            return found
    logs = _log_mixture_excess(pair, pair.amplification, order, rtol)
    lower = float(np.logaddexp(0.0, logs.lower)) / (order - 1.0)
    upper = float(np.logaddexp(0.0, logs.upper)) / (order - 1.0)
    # No divergence exceeds the largest loss.
    upper = min(upper * (1.0 + 1e-15), float(largest.upper))
    return Bounds(min(lower, upper) * (1.0 - 1e-15), upper)


def _profile_divergence(pair: ProfilePair, order: float, rtol: float, sides: Sides) -> Bounds:
    """From points of the pair's profile."""
    ends = [0.0, float(pair.max_loss.upper)]
    for side in sides:
        logs = log_excess(pair, order, side, rtol)
        sign = 1.0 if side is Side.UPPER else -1.0
        # The largest loss is in `ends`: exponents go no further.
        logs += sign * (ROUNDING + ROUNDING_PER_EXPONENT * order * min(ends[1], 1e3))
        value = float(np.logaddexp(0.0, logs)) / (order - 1.0) * (1.0 + sign * 1e-15)
        if side is Side.UPPER:
            ends[1] = min(ends[1], value)
        else:
            ends[0] = value
    return Bounds(min(ends), ends[1])


def _lattice_divergence(pair: Pair, order: float) -> Bounds:
    """From lattice laws of a pair: their divergences, which enclose its own."""
    ends = []
    top = float(pair.max_loss.upper)
    for law in _laws(pair, math.ceil(math.log2(order - 1.0))):
        with np.errstate(divide="ignore"):
            logs = np.log(law.masses) + (order - 1.0) * law.losses
        total = float(np.logaddexp.reduce(logs))
        if law.infinity > 0.0:
            total = float(np.logaddexp(total, math.log(law.infinity) + (order - 1.0) * top))
        slack = law.slack + ROUNDING / (order - 1.0) + ROUNDING_PER_EXPONENT * law.losses[-1]
        sign = 1.0 if law.side is Side.UPPER else -1.0
        value = total / (order - 1.0) + sign * float(slack)
        ends.append(min(max(0.0, value), top))
    return Bounds(min(ends), max(ends))


@lru_cache(maxsize=LAWS_KEPT)
def _laws(pair: Pair, octave: int) -> list[PLD]:
    """Both laws of a pair, for orders up to 1 + 2^octave and not much smaller ones."""
    scale, top = pair.scale, float(pair.max_loss.upper)
    most = 2.0**octave
    # What windows miss counts with the largest loss: e^((order - 1) top) times, if that is finite.
    missed = math.exp(-20.0 - min(640.0, most * top)) if top < math.inf else 1e-290
    resolution = Resolution(
        scale / 400.0, missed=missed, size_width=SIZE_WIDTH, point_width=scale / 30.0,
        pull=(most * scale) ** 2,
    )  # fmt: skip
    return formed(pair, list(Side), resolution)
