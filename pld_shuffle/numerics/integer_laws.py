"""Laws on the integers, mass by mass, each to a relative accuracy: what the sum of many integers of noise may be.

Deep in the tails a mass of 1e-250 is as accurate as the largest one, because nothing is ever subtracted:

* binomial, Poisson and negative binomial sums: ratios f(k)/f(k-1) are multiplied outwards from the mode.
* the difference of two equal Poisson or negative binomial numbers (Skellam, and sums of discrete Laplace noise): ratios
  from a recurrence with three terms, run backwards from an enclosure (`kernels.falling_ratios`).
* sums of discrete Gaussians, nearly discrete Gaussians unless sigma is small. Where they are not, masses are sums over
  a few hundred nodes of the characteristic function, tilted to where they are asked for (docs/sums.md, section 3).

`counts` is the law of a number of successes in independent trials, in classes of one probability each. Its windows are
Chernoff's, exp(-n KL(x/n || p)), about sqrt(4 p (1-p)) times narrower than Hoeffding's, which does not know p
(Koskela, Heikkila and Honkela, Lemma 6).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from . import kernels
from .sides import ROUNDOFF, Array, Index

MISSED = 1e-290  # of the mass, roughly, that a window may leave out on a side
MOST_MISSED = 1e-120  # the same, where a window is as long as it may be
MAX_WINDOW = 2**22  # integers
STEP_ULPS = 6.0  # rounding of one ratio and one product
NEARLY_CONSTANT = 1e-13  # how far the periodic factor may be from constant to be called so
SMALLEST_SIGMA = 0.1
FAR = math.log(1.0 / MISSED)
MAX_ATOMS = 5e7


@dataclass(frozen=True, eq=False)
class IntegerLaw:
    """P[X = low + i] is masses[i], up to a relative error.

    error : of any mass. step : of the ratio of two neighbouring masses, at most. below, above : what the window leaves
    out on either side, at most; 0 where the law ends there. steepest : no two neighbours have ratios beyond
    e^+-steepest; inf where nothing is known. symmetric : about some place. log_concave : f(i)^2 >= f(i-1) f(i+1).
    """

    low: int
    masses: Array
    error: float
    step: float
    below: float = 0.0
    above: float = 0.0
    steepest: float = math.inf
    symmetric: bool = False
    log_concave: bool = True

    def wrapped(self, modulus: int) -> IntegerLaw:
        """The law modulo `modulus`, on 0 ... modulus - 1."""
        place = (self.low + np.arange(self.masses.size)) % modulus
        return replace(
            self, low=0, masses=np.bincount(place, self.masses, modulus).astype(np.float64), error=self.error
            + ROUNDOFF * (2.0 + self.masses.size / modulus), step=math.inf, log_concave=False,
        )  # fmt: skip


def binomial_law(trials: int, chance: float) -> IntegerLaw:
    """Bin(trials, chance), 0 < chance < 1. MemoryError beyond MAX_WINDOW counts."""
    _require_window(75.0 * math.sqrt(trials * chance * (1.0 - chance)))
    found = counts([Trials(trials, chance, 1.0 - chance)], MISSED)
    step = found.drift + 4.0 * ROUNDOFF
    return IntegerLaw(
        found.low, found.masses, found.largest_error, step, found.below, found.above, symmetric=chance == 0.5
    )


def poisson_law(mean: float) -> IntegerLaw:
    """Poisson(mean), mean > 0."""
    return _outwards(lambda k: mean / k, int(mean), 0.0, math.sqrt(mean))


def negative_binomial_law(shape: float, chance: float) -> IntegerLaw:
    """Failures before success number `shape` > 0, each trial succeeding with 0 < chance < 1."""
    fail = 1.0 - chance
    mode = max(0, int((shape - 1.0) * fail / chance)) if shape > 1.0 else 0
    spread = math.sqrt(shape * fail) / chance
    law = _outwards(lambda k: fail * (((k - 1.0) + shape) / k), mode, fail, spread)
    return law if shape >= 1.0 else replace(law, log_concave=False)


def skellam_law(variance: float) -> IntegerLaw:
    """The difference of two Poisson numbers of mean variance / 2: exp(-v) I_k(v)."""
    half = 0.5 * variance
    # I(x) = x asinh(x/v) - sqrt(x^2 + v^2) + v, the exponent of Chernoff's bound.
    reach = _where(
        lambda x: x * math.asinh(x / variance) - x * x / (math.hypot(x, variance) + variance), variance + 40.0
    )
    # The enclosure at the end is wide, and shrinks by about e^(-2k/v) a step.
    end = math.ceil(reach + 20.0 * variance / reach) + 64
    _require_window(2.0 * end)
    return _symmetric((1.0, half, 0.0), end, (end + 1) / half, (end + 1) / half + 1.0, math.inf)


def two_sided_law(shape: float, width: float) -> IntegerLaw:
    """The difference of two negative binomial numbers, whose tails fall like exp(-width k); shape 1: discrete Laplace.

    Log-concave if shape >= 1.
    """
    ratio = math.exp(-width)
    if shape == 1.0:  # masses exp(-width |k|) tanh(width / 2)
        _require_window(2.0 * FAR / width)
        half = math.tanh(0.5 * width) * np.exp(-width * np.arange(math.ceil(FAR / width) + 1.0))
        error = ROUNDOFF * (4.0 * FAR + 16.0)
        beyond = max(float(half[-1]) * ratio / -math.expm1(-width) * (1.0 + 1e-6), 1e-300)
        masses = np.append(half[:0:-1], half)
        return IntegerLaw(
            1 - half.size, masses, error, 2.0 * error, beyond, beyond, width * (1.0 + 1e-15), symmetric=True
        )

    def mean(theta: float) -> float:
        """K'(theta), of shape 1."""
        up, down = math.expm1(width - theta), math.expm1(width + theta)
        return 1.0 / up - 1.0 / down

    def exponent(share: float) -> float:
        """theta K'(theta) - K(theta) at theta = share times the end of K's domain."""
        theta = share * width
        logs = math.log(-math.expm1(theta - width)) + math.log(-math.expm1(-theta - width))
        return shape * (theta * mean(theta) + logs - 2.0 * math.log(-math.expm1(-width)))

    share = _where(exponent, 1.0 - 1e-12, bounded=True)
    reach = shape * mean(share * width)
    # The enclosure at the end is wide, and shrinks by |shape - k| / (shape + k) a step.
    end = math.ceil(reach + 40.0 / width + 20.0 * shape / reach) + 64
    _require_window(2.0 * reach)
    k = end + 1.0
    # Mediants: f(k-1)/f(k) lies between the ratio of the terms of its sums with j = 0 and the one for large j.
    ends = sorted((k / (ratio * (k - 1.0 + shape)), 1.0 / ratio))
    start = ends[0] * (1.0 - 8.0 * ROUNDOFF), ends[1] * (1.0 + 8.0 * ROUNDOFF)
    numbers = (1.0 + ratio * ratio, ratio * shape, ratio)
    law = _symmetric(numbers, end, *start, width if shape >= 1.0 else math.inf)
    return law if shape >= 1.0 else replace(law, log_concave=False)


def gaussian_law(sigma: float, shares: int) -> IntegerLaw:
    """The sum of `shares` numbers, each k with probability proportional to exp(-k^2 / (2 sigma^2)), sigma >= 0.1."""
    square = 2.0 * shares * sigma * sigma
    reach = min(math.ceil(math.sqrt(square * FAR)) + 1, MAX_WINDOW // 2)
    if not reach * (reach / square) >= math.log(1.0 / MOST_MISSED):
        _require_window(math.sqrt(square * FAR))
    waves = 2.001 * shares * math.exp(-((math.pi * sigma) ** 2)) if shares > 1 else 0.0
    ripple = math.expm1(min(waves, 1.0))
    places = np.arange(reach + 1, dtype=np.float64)
    decay = np.exp(-(places * (places / square)))
    error = ROUNDOFF * (6.0 * FAR + 40.0)
    if ripple <= NEARLY_CONSTANT:
        half = decay
        error += ripple
    else:
        period = min(reach, shares // 2)
        known, more = _gaussian_period(sigma, shares, period)
        rest = np.arange(reach + 1) % shares
        nearest = np.minimum(rest, shares - rest)
        # Inside of the first period nothing is to be extended, and it is all there is where it reaches far.
        half = known[nearest] * np.exp(-((places - nearest) * ((places + nearest) / square)))
        error = 2.0 * error + more
    kept = int(np.searchsorted(-half, -1e-3 * MISSED))  # the law falls from 0 on
    # P[X >= x] <= exp(-x^2 / (2 m sigma^2)): a share's law is sub-Gaussian (Canonne, Kamath, Steinke 2020, Cor. 17).
    beyond = math.exp(-((reach + 1.0) ** 2) / square) * (1.0 + 1e-12)
    beyond += (half.size - kept) * 2e-3 * MISSED
    masses = np.append(half[kept - 1 : 0 : -1], half[:kept])
    if ripple <= NEARLY_CONSTANT:
        total = float(masses.sum())
        masses, error = masses / total, 2.0 * error + ROUNDOFF * masses.size
    return IntegerLaw(1 - kept, masses, error, 2.0 * error, beyond, beyond, symmetric=True)


# --- how -----------------------------------------------------------------------------------------


def _require_window(size: float) -> None:
    if not size <= MAX_WINDOW:
        raise MemoryError(f"a law of about {size:.0f} integers is over the limit of {MAX_WINDOW}")


def _where(exponent: Callable[[float], float], start: float, *, bounded: bool = False) -> float:
    """About where a growing function is FAR; beyond `start` if that is needed and not forbidden."""
    low, high = 0.0, start
    while not bounded and exponent(high) < FAR:
        low, high = high, 2.0 * high
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if exponent(middle) < FAR else (low, middle)
    return high


def _outwards(ratio: Callable[[Array], Array], mode: int, last: float, spread: float) -> IntegerLaw:
    """A law on 0, 1, ... by f(k)/f(k-1) = ratio(k): at most 1 after the mode, and monotone with the limit `last`."""
    _require_window(2.0 * math.sqrt(2.0 * math.log(1.0 / MOST_MISSED)) * spread)
    up = _products(lambda i: ratio(mode + i), MAX_WINDOW)
    down = _products(lambda i: 1.0 / ratio(mode + 1.0 - i), mode)
    low, high = mode - down.size, mode + up.size
    masses = np.concatenate((down[::-1], [1.0], up))
    # The law is normalised to 1 inside: what is outside is far below rounding. Errors grow with the distance.
    whole = float(masses.sum())
    distance = np.abs(np.arange(low, high + 1) - mode)
    mean = float(masses @ distance) / whole
    step = STEP_ULPS * ROUNDOFF
    error = step * (float(distance.max()) + mean + 4.0) + ROUNDOFF * masses.size
    masses /= whole
    after = max(float(ratio(np.array([high + 1.0]))[0]), last) * (1.0 + 1e-12)
    above = float(masses[-1]) * after / (1.0 - after) * (1.0 + 1e-6)
    below = 0.0
    if low > 0:
        before = 1.0 / float(ratio(np.array([float(low)]))[0]) * (1.0 + 1e-12)  # f(low-1)/f(low), and smaller below
        below = float(masses[0]) * before / (1.0 - before) * (1.0 + 1e-6)
    if not max(above, below) <= MOST_MISSED:
        _require_window(2.0 * MAX_WINDOW)
    return IntegerLaw(low, masses, error, step + 4.0 * ROUNDOFF, below, above)


def _products(ratio: Callable[[Array], Array], most: int) -> Array:
    """ratio(1), ratio(1) ratio(2), ... down to MISSED, `most` of them at most."""
    parts: list[Array] = []
    start, value, chunk = 1, 1.0, 64
    while start <= most and value > MISSED and start <= MAX_WINDOW:
        index = np.arange(start, min(start + chunk, most + 1), dtype=np.float64)
        part = value * np.cumprod(ratio(index))
        kept = int(np.searchsorted(-part, -MISSED))
        parts.append(np.asarray(part[: kept + 1], np.float64))
        start, value, chunk = start + part.size, float(part[-1]), 2 * chunk
    found = np.concatenate(parts) if parts else np.empty(0)
    return found[found >= 1e-3 * MISSED]


def _symmetric(
    numbers: tuple[float, float, float], end: int, start_low: float, start_high: float, steepest: float
) -> IntegerLaw:
    """A law with f(-k) = f(k) by `kernels.falling_ratios`, from an enclosure of f(end) / f(end + 1)."""
    low, high = np.empty(end), np.empty(end)
    kernels.falling_ratios(*numbers, start_low, start_high, 1, low, high)
    middle = 0.5 * (low + high)
    ratio_error = 0.5 * (high - low) / low + 8.0 * ROUNDOFF
    with np.errstate(under="ignore"):
        half = np.cumprod(np.append(1.0, 1.0 / middle))
    kept = int(np.searchsorted(-half, -MISSED))
    half, ratio_error = half[: kept + 1], ratio_error[:kept]
    if not half[-1] <= MOST_MISSED:
        _require_window(2.0 * MAX_WINDOW)
    errors = np.append(0.0, np.cumsum(ratio_error))
    masses = np.append(half[:0:-1], half)
    whole = float(masses.sum())
    mean = 2.0 * float(half @ errors) / whole
    error = float(errors[-1]) + mean + ROUNDOFF * (masses.size + 4.0)
    masses /= whole
    fall = float(low[min(kept, end) - 1])  # at least the ratio from there on, or else the limit of ratios
    fall = min(fall, math.exp(steepest)) if math.isfinite(steepest) else fall
    if numbers[1] < numbers[2]:  # the ratios fall towards their limit
        fall = 1.0 / numbers[2]
    beyond = float(masses[-1]) / (fall - 1.0) * (1.0 + 1e-6)
    step = float(ratio_error.max(initial=0.0)) + 4.0 * ROUNDOFF
    return IntegerLaw(-(half.size - 1), masses, error, step, beyond, beyond, steepest * (1.0 + 1e-15), symmetric=True)


def _gaussian_period(sigma: float, shares: int, most: int) -> tuple[Array, float]:
    """P[X = i] for i = 0 ... most <= shares / 2, and their relative error; sigma small. See docs/sums.md, section 3."""
    support = np.arange(-math.ceil(9.0 * sigma) - 2, math.ceil(9.0 * sigma) + 4, dtype=np.float64)
    found = np.empty(most + 1)
    error, start = 0.0, 0
    while start <= most:
        centre, tilted = _tilted(sigma, shares, start, support)
        spread = math.sqrt(shares * tilted.variance)
        width = max(0, int(0.7 * spread))
        if start > 0 and width > 0:
            centre, tilted = _tilted(sigma, shares, start + width, support)
        last = min(most, centre + width)
        values, ratio_error = tilted.masses(shares, centre, np.arange(start, last + 1), spread)
        found[start : last + 1] = values
        error = max(error, ratio_error)
        start = last + 1
    return found, error


def _tilted(sigma: float, shares: int, centre: int, support: Array) -> tuple[int, _Tilted]:
    """One share's law tilted until the sum's mean is about `centre`."""
    low, high = 0.0, 0.5 / sigma**2
    target = centre / shares
    for _ in range(60 if centre else 0):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _Tilted.of(sigma, middle, support).mean < target else (low, middle)
    return centre, _Tilted.of(sigma, low if not centre else 0.5 * (low + high), support)


@dataclass(frozen=True, eq=False)
class _Tilted:
    """One share tilted by e^(tilt k): masses on `support`, mean, variance; log E e^(tilt X) untilted."""

    tilt: float
    support: Array
    mass: Array
    mean: float
    variance: float
    log_moment: float

    @classmethod
    def of(cls, sigma: float, tilt: float, support: Array) -> _Tilted:
        plain = np.exp(-0.5 * (support / sigma) ** 2)
        plain /= plain.sum()
        # log E e^(tX) = log1p(2 E sinh^2(tX/2)) for a symmetric law: no cancellation at small tilts.
        even = np.abs(support) <= support[-1] - 2.0
        moment = math.log1p(2.0 * float(plain[even] @ np.sinh(0.5 * tilt * support[even]) ** 2))
        exponent = tilt * support - 0.5 * (support / sigma) ** 2
        mass = np.exp(exponent - exponent.max())
        mass /= mass.sum()
        mean = float(mass @ support)
        return cls(tilt, support, mass, mean, float(mass @ (support - mean) ** 2), moment)

    def masses(self, shares: int, centre: int, places: Index, spread: float) -> tuple[Array, float]:
        """P[X = i] of the sum at `places` around `centre`, and a bound on their relative error."""
        reach = int(np.abs(places - centre).max())
        nodes = 2 * (reach + math.ceil(12.0 * spread) + 24) + 1
        u = ROUNDOFF * (self.support.size + 20.0)
        # |phi|^2 <= 1 - 4 sum p_j p_(j+1) sin^2(t/2): nodes beyond `last` weigh less than 1e-20 each.
        steps = float(self.mass[:-1] @ self.mass[1:])
        near = min(1.0, math.sqrt(23.0 / max(shares * steps, 1e-300)))
        last = min((nodes - 1) // 2, math.ceil(math.asin(near) * nodes / math.pi))
        t = np.arange(1, last + 1) * (2.0 * math.pi / nodes)
        away = self.support - self.mean
        x = -2.0 * (np.sin(0.5 * np.outer(t, away)) ** 2 @ self.mass)
        y = np.sin(np.outer(t, away)) @ self.mass
        grown = np.maximum(2.0 * x + x * x + y * y, -1.0 + 1e-15)  # |phi|^2 - 1
        size = np.exp(0.5 * shares * np.log1p(grown))
        turn = shares * np.arctan2(y, 1.0 + x) + t * (shares * self.mean - centre)
        wide = np.abs(x) + t * (math.sqrt(self.variance) + abs(self.mean))
        ratio_error = u * (shares * wide / (1.0 + grown) + 4.0)
        angle = np.outer(2.0 * math.pi / nodes * np.arange(1, last + 1), places - centre)
        values = (1.0 + 2.0 * (np.cos(turn - angle.T) @ size)) / nodes
        # Rounding; the nodes left out; what the sum confuses modulo `nodes`.
        whole = 1.0 + 2.0 * float(size.sum())
        off = (2.0 * float(size @ ratio_error) + (last + 40.0) * ROUNDOFF * whole) / nodes
        off += 1e-20 if last < (nodes - 1) // 2 else 0.0
        off += self._outside(shares, centre, nodes - reach)
        scale = np.exp(shares * self.log_moment - self.tilt * places)
        exponents = shares * self.log_moment * u + 4.0 * ROUNDOFF * self.tilt * float(places.max())
        relative = off / float(values.min()) if values.min() > 0.0 else math.inf
        return values * scale, 1.01 * relative + exponents + 1e-19 * shares

    def _outside(self, shares: int, centre: int, distance: int) -> float:
        """A bound on the tilted probability that the sum is so far away from its centre, by Chernoff."""
        found = 0.0
        for sign in (1.0, -1.0):
            turn = sign * min(1.0, distance / (shares * self.variance + distance))
            grow = math.log(float(self.mass @ np.exp(turn * (self.support - self.mean))))
            log = shares * (grow + turn * self.mean) - turn * (centre + sign * distance)
            found += math.exp(min(0.0, log + 1e-13 * shares))
        return found


# --- successes in independent trials --------------------------------------------------------------


def chernoff_window(n: int, p: float, truncated_mass: float) -> tuple[int, int]:
    """Integers (low, high): each tail of Bin(n, p) outside holds at most `truncated_mass`. O(log n).

    The exponent is rounded to about 1e-16 n p relative to its leading terms; a slack of 1e-6 in the
    exponent covers that for every n up to 1e12 at these scales (terms cancel from |x - np|, not n).
    """
    if p <= 0.0 or n == 0:
        return 0, 0
    if p >= 1.0:
        return n, n
    need = math.log(1.0 / truncated_mass) + 1e-6
    mean, rest_mean = n * p, n * (1.0 - p)  # 1 - p is exact where it matters, for p >= 1/2

    def exponent(x: int) -> float:
        shift = x - mean if p < 0.5 else (x - n) + rest_mean
        first = x * math.log1p(shift / mean) if x > 0 else 0.0
        rest = (n - x) * math.log1p(-shift / rest_mean) if x < n else 0.0
        return first + rest

    def first_outside(inside: int, outside: int) -> int:
        """The x nearest to the mean whose tail, of mass at most exp(-exponent(x)), satisfies the need."""
        while abs(outside - inside) > 1:
            middle = (inside + outside) // 2
            if exponent(middle) >= need:
                outside = middle
            else:
                inside = middle
        return outside

    return first_outside(math.floor(mean), -1) + 1, first_outside(math.ceil(mean), n + 1) - 1


def binomial_window(n: int, p: float, low: int, high: int) -> Array:
    """Bin(n, p) on low .. high, normalised to 1 there. MemoryError beyond MAX_ATOMS of them.

    By ratios outwards from the mode; the scale is the sum, never lgamma. The relative rounding error of an entry is at
    most 5 u (|x - mode| + 2) plus that of the sum.
    """
    if not high - low < MAX_ATOMS:
        raise MemoryError(f"a window of {high - low} counts is over the limit of {MAX_ATOMS:.0f}")
    if not (0.0 < p < 1.0 and n > 0):
        return np.ones(high - low + 1)
    mode, odds = min(max(int((n + 1) * p), low), high), p / (1.0 - p)
    up, down = np.arange(mode, high), np.arange(mode, low, -1)
    right = np.cumprod(odds * ((n - up) / (up + 1.0)))
    left = np.cumprod(down / ((n - down + 1.0) * odds))
    masses = np.concatenate((left[::-1], [1.0], right))
    return np.asarray(masses / masses.sum())


class Trials(NamedTuple):
    """So many independent trials of one probability; `rest` is 1 - probability, kept apart as either may be tiny."""

    number: int
    probability: float
    rest: float


class Counts(NamedTuple):
    """The law of a number of successes on the window low, low + 1, ..., normalised to 1 there.

    mode : roughly the likeliest number. error, drift : relative error of its mass, and what every step away from it
    adds. spread : the mean distance from it, at most. below, above : probability that a class leaves its window on that
    side, at most.
    """

    low: int
    masses: Array
    mode: int
    error: float
    drift: float
    spread: float
    below: float
    above: float

    @property
    def high(self) -> int:
        """The largest number in the window."""
        return self.low + self.masses.size - 1

    def error_at(self, number: Any) -> Any:
        """Relative error of the mass of a number, or of many."""
        return self.error + self.drift * np.abs(number - self.mode)

    @property
    def largest_error(self) -> float:
        """Relative error of any mass."""
        return float(max(self.error_at(self.low), self.error_at(self.high)))


def counts(classes: Sequence[Trials], truncated_mass: float, spare: int = 0) -> Counts:
    """The law of the successes in all trials; each tail holds at most `truncated_mass`, beyond `spare` numbers more.

    Every class by itself on its window, and their convolution: all terms are positive, so nothing cancels. Cost
    O(width) for one class, and the product of the widths, which are O(sqrt(count)), for each further one.
    """
    found = Counts(0, np.ones(1), 0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for part in classes:
        one = _binomial_counts(part, truncated_mass / len(classes), spare)
        if found.high == found.low == 0:
            found = one._replace(
                error=found.error + one.error, below=found.below + one.below, above=found.above + one.above
            )
            continue
        masses = np.convolve(found.masses, one.masses)
        summing = ROUNDOFF * (4.0 + min(found.masses.size, one.masses.size))
        worst = found.largest_error + one.largest_error + summing
        below, above = found.below + one.below, found.above + one.above
        found = Counts(found.low + one.low, masses, 0, worst, 0.0, 0.0, below, above)
    return found


def _binomial_counts(trials: Trials, truncated_mass: float, spare: int) -> Counts:
    """The law of one class."""
    count, rare = trials.number, min(trials.probability, trials.rest)
    # The rarer of the two outcomes is the one whose probability keeps its precision.
    low, high = chernoff_window(count, rare, truncated_mass)
    low, high = max(low - spare, 0), min(high + spare, count)
    masses = binomial_window(count, rare, low, high)
    if rare < trials.probability:
        low, high, masses = count - high, count - low, masses[::-1]
    # Relative rounding; see `binomial_window`. The rate itself is rounded, too: log pmf moves by (x - np) / (1 - p)
    # per relative move of p.
    drift = 6.0 + 9.0 / (1.0 - rare) if rare > 0.0 else 0.0
    # The sum's error is at most that of its terms, at their mean distance from the mode.
    inside = 1.0 - 2.0 * truncated_mass
    distance = float(masses.size)
    if inside > 0.0:
        deviation = math.sqrt(count * rare * (1.0 - rare))
        distance = min(distance, 1.01 * (deviation + 1.0) / inside)
    error = 16.0 + drift * (1.0 + distance) + masses.size
    below, above = truncated_mass if low > 0 else 0.0, truncated_mass if high < count else 0.0
    mode = int(trials.probability * (count + 1))
    return Counts(low, masses, mode, ROUNDOFF * error, ROUNDOFF * drift, distance, below, above)
