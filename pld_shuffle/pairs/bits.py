"""Counts of randomised bits: what the number of ones gives away, certified over every dataset.

n users send `bits` bits each, 1 with probability `one` for a user who holds 1, `zero` < `one` for one who holds 0. The
view is the number of ones: a shuffler of equal bits, or secure aggregation, shows no more. Its likelihood ratio
increases, so H_s is a difference of two tails, at the best threshold. Tilted by the ratio at which the two reports
balance, this is a Fourier sum of about 15 terms of weight, whatever n is, and exact. It is also bounded for every
number of ones at once, convexly. The search halves the range of ones until the better of the two bounds is close enough
to the best single number. Proofs: docs/swap.md, "Counts of randomised bits".

The pairs: `BitPair` has the profile of the supremum over all datasets in both orders, exact for one round. Over rounds
the others may hold what they like in each of them (`strategy.Strategy`): the types are datasets, or ranges of them,
where noise is small (Lemma B6), else the ends of a chord over the number of ones (Theorem B5). `BitAttackPair` is the
pair of two datasets: an attack.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from ..numerics.integer_laws import Trials, binomial_window, counts
from ..numerics.sides import ROUNDOFF, Array, Bounds, Side
from ..numerics.validation import positive_float
from .discrete import Losses, OrderedPair
from .pair import ALL_USERS, Atoms, Cohort, Pair, Resolution, zoned
from .profile import ProfilePair, UpperPair, amplified_loss
from .slots import SlotLaw
from .strategy import POINTS, Types, hull, in_blocks

MOST = 4_000  # sums per growth; beyond, the bound stays as wide as it is
LISTED = 256  # datasets that are types, or ranges of them: width against speed
LOUD, MOST_NOISE = 4.0, 1e4  # times the least noise, where ranges become few; variance of the bits kept of one kind
HALVINGS = 12  # of the range of ones in a hidden cohort
LARGEST_GROWTH = 1e140  # beyond every ratio of shares
#: Of randomised response; beyond, shares leave the range that the sums are good for.
LARGEST_BIT_EPS0 = 280.0


@dataclass(frozen=True)
class BitShares:
    """P(bit = 1) for the two values, with complements and difference as precise as the shares themselves.

    one, zero : probabilities with 0 < zero < one < 1. not_one, not_zero : their complements. gap : one -
    zero. Every field is right to 4 units in the last place; `of` and `randomized_response` see to that.

    >>> BitShares.randomized_response(40.0).not_one
    4.248354255291589e-18
    """

    one: float
    zero: float
    not_one: float
    not_zero: float
    gap: float

    def __post_init__(self) -> None:
        if not 1e-130 < self.zero < 1.0:
            raise ValueError(f"zero must be in (1e-130, 1), got {self.zero!r}")
        if not self.zero < self.one <= 1.0:
            raise ValueError(f"one must be above zero={self.zero!r} and below 1, got {self.one!r}")
        if not (self.not_one > 0.0 and self.not_zero > 0.0):
            raise ValueError(f"complements must be positive, got {self.not_one!r}, {self.not_zero!r}")
        for name, share, rest in (("one", self.one, self.not_one), ("zero", self.zero, self.not_zero)):
            if not abs(share + rest - 1.0) <= 8.0 * ROUNDOFF:
                raise ValueError(f"{name} and its complement must sum to 1, got {share!r} + {rest!r}")
        if not abs(self.one - self.zero - self.gap) <= 8.0 * ROUNDOFF * self.one:
            raise ValueError(f"gap must be one - zero = {self.one - self.zero!r}, got {self.gap!r}")

    @classmethod
    def of(cls, one: float, zero: float) -> BitShares:
        """Given the two probabilities, as floats exactly. Raises ValueError unless 0 < zero < one < 1."""
        return cls(float(one), float(zero), 1.0 - one, 1.0 - zero, one - zero)

    @classmethod
    def randomized_response(cls, eps0: float) -> BitShares:
        """Binary randomised response: one = e^eps0 / (e^eps0 + 1) = 1 - zero; eps0 in (0, 290)."""
        budget = positive_float("eps0", eps0)
        if not budget < 290.0:
            raise ValueError(f"eps0 must be below 290, got {eps0!r}")
        low = math.exp(-budget) / (1.0 + math.exp(-budget))
        high = 1.0 / (1.0 + math.exp(-budget))
        return cls(high, low, low, high, math.tanh(0.5 * budget))

    @classmethod
    def random_answers(cls, gamma: float) -> BitShares:
        """A fair coin with probability gamma, the truth otherwise; gamma in (2e-130, 1)."""
        chance = float(gamma)
        if not 2e-130 < chance < 1.0:
            raise ValueError(f"gamma must be in (2e-130, 1), got {gamma!r}")
        half = 0.5 * chance
        return cls(1.0 - half, half, half, 1.0 - half, 1.0 - chance)

    @property
    def mirrored(self) -> BitShares:
        """The same bits counted by zeros: the other order of two neighbours, ones j becoming M - j."""
        return BitShares(self.not_zero, self.not_one, self.zero, self.one, self.gap)

    @property
    def chances(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """(probability, complement) of a one, for the two values."""
        return (self.one, self.not_one), (self.zero, self.not_zero)

    @property
    def symmetric(self) -> bool:
        """Whether mirroring changes nothing, so that both orders have one profile."""
        return self.one == self.not_zero and self.zero == self.not_one


def bit_profile(
    n: int, shares: BitShares, expm1_eps: ArrayLike, *, bits: int = 1, rate: float = 1.0,
    ones: tuple[int, int] | None = None, rtol: float = 1e-4,
) -> Bounds:  # fmt: skip
    """Bounds on the supremum of H_s, s = 1 + growth, over all neighbouring datasets in both orders.

    n : users who send their bits in one round. shares : the two probabilities. bits : bits a user sends, independently
    given the value. expm1_eps : array of s - 1 = expm1(eps) >= 0, any shape.
    rate : n / N if the n users are a fresh uniformly random, hidden subset of N > n; else 1.
    ones : of everybody, only datasets with this many ones (lowest, highest) among the others' n-1 values, and only the
    order in which the target holds 1 first; other values are excluded then.
    rtol : the upper end stops being improved when it is this near the best dataset found, relative in epsilon, roughly;
    it is certified whatever rtol is.

    Returns Bounds(lower, upper) of arrays: lower by a dataset, upper for all of them. Users may also hold a
    value v in [0, 1] and send 1 with probability zero + v (one - zero): H is convex in each bit's
    probability.

    Source: docs/swap.md, Theorems B1 to B4. Cost: about 20 microseconds a growth, whatever n is; up to some
    hundred microseconds where the count has a variance below a few hundred.

    >>> s = BitShares.randomized_response(1.0)
    >>> bounds = bit_profile(1000, s, np.expm1([0.12661]))
    >>> print(f"{bounds.lower[0]:.3g} {bounds.upper[0]:.3g}")
    1e-06 1e-06
    """
    grown = np.asarray(expm1_eps, np.float64)
    flat = np.minimum(grown.ravel(), LARGEST_GROWTH)
    orders = [shares] if ones is not None or shares.symmetric else [shares, shares.mirrored]
    found = [_ordered(n, order, flat, bits, ones or (0, n - 1), rate, rtol) for order in orders]
    lower = np.max([bounds.lower for bounds in found], axis=0) * (1.0 - 8.0 * ROUNDOFF)
    upper = np.max([bounds.upper for bounds in found], axis=0) * (1.0 + 8.0 * ROUNDOFF)
    return Bounds(lower.reshape(grown.shape), np.minimum(upper, 1.0).reshape(grown.shape))


def _ordered(
    users: int, shares: BitShares, expm1_eps: Array, bits: int, ones: tuple[int, int], rate: float, rtol: float
) -> Bounds:
    """One order of the neighbours, the target holding 1 first; growth >= 0."""
    if rate == 1.0:
        return _everybody(users, shares, expm1_eps, bits, ones, rtol)
    lower = np.maximum(*(_equal_others(users, shares, expm1_eps, bits, rate, held) for held in (False, True)))
    # Theorem B4: at a share x of ones in the cohort, a full profile at another growth. Halve ranges of x
    # until the upper end is near the lower one, or the number of ranges is too large.
    upper = np.zeros(expm1_eps.size)
    todo = [(0, users, np.arange(expm1_eps.size))]
    for level in range(HALVINGS):
        following = []
        for low, high, open_ in todo:
            value = _cohort(users, shares, expm1_eps[open_], bits, rate, (low, high), rtol)
            # About the square of the deviations at which the threshold lies.
            distance = -2.0 * np.log(np.maximum(value / np.minimum(expm1_eps[open_] + 1e-300, 1.0), 1e-300))
            enough = lower[open_] * (1.0 + rtol * (1.0 + np.clip(distance, 0.0, 100.0)))
            done = (value <= np.maximum(enough, upper[open_])) | (low == high) | (level == HALVINGS - 1)
            upper[open_[done]] = np.maximum(upper[open_[done]], value[done])
            rest = open_[~done]
            if rest.size:
                middle = (low + high) // 2
                following += [(low, middle, rest), (middle + 1, high, rest)]
        todo = following
    return Bounds(lower, upper)


def _everybody(
    users: int, shares: BitShares, expm1_eps: Array, bits: int, ones: tuple[int, int], rtol: float
) -> Bounds:
    from . import bit_kernels

    lower, upper = np.empty(expm1_eps.size), np.empty(expm1_eps.size)
    bit_kernels.all_expm1_epsilons(
        np.ascontiguousarray(expm1_eps), float(bits), shares.one, shares.not_one, shares.zero,
        shares.not_zero, shares.gap, float(bits * (users - 1)), float(bits * ones[0]),
        float(bits * ones[1]), rtol, MOST, lower, upper,
    )  # fmt: skip
    return Bounds(lower, upper)


def _full_expm1_eps(expm1_eps: Array, rate: float, share: float) -> tuple[Array, Array]:
    """(u, relative rounding): the growth t - 1 at which the full profile is read, for a share of ones."""
    linear = rate - expm1_eps * (1.0 - rate * share)
    root = np.sqrt(linear * linear + 4.0 * rate * (1.0 - share) * expm1_eps)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        found = np.where(
            linear > 0.0, 2.0 * expm1_eps / (linear + root), (root - linear) / (2.0 * rate * (1.0 - share))
        )
        rounding = 16.0 * ROUNDOFF * (1.0 + (rate + expm1_eps) / (np.abs(linear) + root))
    found = np.where(np.isfinite(found), np.minimum(found, LARGEST_GROWTH), LARGEST_GROWTH)
    return found, np.where(np.isfinite(rounding), np.minimum(rounding, 1.0), 1.0)


def _cohort(
    users: int, shares: BitShares, expm1_eps: Array, bits: int, rate: float, ones: tuple[int, int], rtol: float
) -> Array:
    """Upper bound for a hidden cohort whose members hold between ones[0] and ones[1] ones (of n)."""
    share = ones[0] / users
    full, rounding = _full_expm1_eps(expm1_eps, rate, share)
    limits = (max(ones[0] - 1, 0), min(ones[1], users - 1))
    height = _everybody(users, shares, full * (1.0 - rounding), bits, limits, rtol).upper
    weight = 1.0 - share + share * (1.0 + expm1_eps) / (1.0 + full * (1.0 - rounding))
    return np.asarray(np.minimum(rate * weight * (1.0 + 8.0 * ROUNDOFF) * height, 1.0))


def _equal_others(users: int, shares: BitShares, expm1_eps: Array, bits: int, rate: float, held: bool) -> Array:
    """Lower bound, attained: all of the others hold the same value, 1 or 0."""
    full, rounding = _full_expm1_eps(expm1_eps, rate, 1.0 if held else 0.0)
    place = (users - 1, users - 1) if held else (0, 0)
    height = _everybody(users, shares, full * (1.0 + rounding), bits, place, 1.0).lower
    weight = (1.0 + expm1_eps) / (1.0 + full * (1.0 + rounding)) if held else 1.0
    return np.asarray(rate * weight * (1.0 - 8.0 * ROUNDOFF) * height)


def bit_attack(
    n: int, shares: BitShares, all_hold_one: bool, *, bits: int = 1, rate: float = 1.0, truncated_mass: float = 1e-40
) -> OrderedPair:
    """The exact pair where the n-1 others all hold 1, or all hold 0, and the target 1 under P, 0 under Q: an attack.

    The other order is `shares.mirrored` next to others of the other value. rate < 1 : a hidden cohort of a population
    that holds this value. truncated_mass : P-mass that may be left out, in [1e-250, 0.01].

    Source: docs/swap.md, Theorem B4. Cost O(sqrt(n)). Raises MemoryError if that is too much.

    >>> attack = bit_attack(3, BitShares.randomized_response(1.0), False)
    >>> attack.losses.loss.round(4).tolist()
    [-1.0, 0.1409, 0.66, 1.0]
    """
    own, rest = (shares.one, shares.not_one) if all_hold_one else (shares.zero, shares.not_zero)
    # A target may have more bits than others are likely to report: all that matters is beyond their window then.
    others = counts([Trials(bits * (n - 1), own, rest)], truncated_mass, spare=bits)
    with_one, with_zero = (binomial_pmf(bits, pair) for pair in shares.chances)
    if rate < 1.0:
        absent = with_one if all_hold_one else with_zero
        with_one, with_zero = (rate * target + (1.0 - rate) * absent for target in (with_one, with_zero))
    # Only counts to which every part contributes: some are cut at an end of a window that is no end of the range.
    size = others.masses.size
    start, stop = bits if others.below > 0.0 else 0, size if others.above > 0.0 else size + bits
    p_mass, q_mass = (np.convolve(others.masses, target) for target in (with_one, with_zero))
    known = np.minimum(p_mass, q_mass) > 1e-290  # else something underflows
    known[:start] = known[stop:] = False
    left_out = min(1.0, 4.0 * truncated_mass + float(np.sum(p_mass[~known])))
    p_mass, q_mass = p_mass[known], q_mass[known]
    error = 2.0 * others.largest_error + 16.0 * ROUNDOFF * (bits + 4.0)
    if bits == 1 and rate == 1.0:
        k = np.arange(others.low, others.low + known.size, dtype=np.float64)[known]
        loss, loss_error = _equal_others_loss(n, shares, all_hold_one, k)
    else:
        loss = np.log(p_mass / q_mass)
        loss_error = 2.0 * error + 8.0 * ROUNDOFF * float(np.max(np.abs(loss)))
    order = np.argsort(loss, kind="stable")  # increasing but for rounding
    return OrderedPair(Losses(p_mass[order], loss[order], 0.0, loss_error), left_out, error)


def _equal_others_loss(users: int, shares: BitShares, all_hold_one: bool, k: Array) -> tuple[Array, float]:
    """log(P/Q) at k ones, one bit a user and all others of one value, and a bound on its absolute error.

    It is log1p(gap (b(k-1) - b(k)) / (zero b(k-1) + not_zero b(k))), b the law of the others' ones. With the ratio of
    neighbouring masses of a binomial law put in, nothing cancels but k against its mean.
    """
    own, rest = (shares.one, shares.not_one) if all_hold_one else (shares.zero, shares.not_zero)
    below = shares.zero * rest * k + shares.not_zero * own * (users - k)
    above = shares.one * rest * k + shares.not_one * own * (users - k)
    ratio = shares.gap * (k - users * own) / below
    near = np.abs(ratio) < 0.5  # else nothing cancels in the quotient itself
    with np.errstate(divide="ignore"):
        loss = np.where(near, np.log1p(ratio), np.log(above / below))
    least = float(np.min(np.minimum(above, below), where=near, initial=math.inf))
    loss_error = 8.0 * ROUNDOFF * (shares.gap * users * own / least + 2.0)
    return loss, loss_error + 16.0 * ROUNDOFF * float(np.max(np.abs(loss)))


def dataset_profiles(
    n: int, shares: BitShares, expm1_eps: Array, *, bits: int = 1, rate: float = 1.0
) -> tuple[Array, Array]:
    """Upper bounds on H_s of types of datasets, and on that of the reversed pairs; shape (types, growths).

    Of all n users j of the others' bits (n - 1) hold 1, j = 0, 1, ... Up to LISTED datasets are types of their own; of
    more of them a range is asked as one dataset, that without the users who differ in it (docs/swap.md, Lemma B6). Of a
    hidden cohort, bits = 1, the n members are known before the target takes a member's place with probability `rate`,
    and x = 0, ..., n of them hold 1: the cohort not known, a dataset is a mean of these (Theorems M and B4).

    P(count >= m) - Q(count >= m) is a sum of positive terms. O(LISTED (width + growths)), width of a count's window.
    """
    others = bits * n if rate < 1.0 else bits * (n - 1)
    ones, zeros = ([binomial_pmf(count, pair) for count in range(bits + 1)] for pair in shares.chances)
    # A^r - B^r over A - B, of the generating functions of r bits.
    between = sum((np.convolve(ones[i], zeros[bits - 1 - i]) for i in range(bits)), np.zeros(bits))
    found, noise = [], [first * second for first, second in shares.chances]
    for low, high in _ranges(others, LISTED, noise[0] / noise[1]):
        low, high = min(low, int(MOST_NOISE / noise[0])), max(high, others - int(MOST_NOISE / noise[1]))
        if rate < 1.0:
            laws = list(_of_cohorts(n, low, high, shares, rate))
        else:
            laws = [(*ones_law(low, others - high, shares), np.zeros(1))]
        rows = []
        for law, error, absent in laws:
            error += ROUNDOFF * (64.0 * bits + 4.0 * law.size + 256.0)
            apart = rate * shares.gap * np.convolve(law, between)
            first, second = (rate * np.convolve(law, one[bits]) + absent for one in (ones, zeros))
            orders = (apart, second), (apart[::-1], first[::-1])
            rows.append([_best_tail(*order, error, expm1_eps) for order in orders])
        found.append(np.max(rows, axis=0))
    ahead, behind = np.array(found).transpose(1, 0, 2)
    return ahead, behind


def _ranges(last: int, most: int, noise: float = 1.0) -> list[tuple[int, int]]:
    """0, ..., last in at most about `most` ranges (lowest, highest), which grow from either end.

    There a few users may be most of one kind's noise. noise : variance of a bit of those who are counted, over that of
    the others. Most ranges are where that of all is LOUD times the least at most.
    """
    if last < most:
        return [(j, j) for j in range(last + 1)]
    cut = int(LOUD * last * min(noise, 1.0 / noise))
    if cut < last:
        far = [(cut + 1 + low, cut + 1 + high) for low, high in _ranges(last - cut - 1, max(most // 8, 2))]
        found = _ranges(cut, max(most // 4, 2)) + far
        return found if noise > 1.0 else [(last - high, last - low) for low, high in found[::-1]]
    half = (last + 1) // 2
    place = np.append(0.0, np.geomspace(1.0, half, 4 * most))
    share = 0.75 * place / half + 0.25 * np.log1p(place) / math.log1p(half)
    ends = np.unique(np.interp(np.linspace(0.0, 1.0, most // 2 + 1), share, place).astype(np.int64)).tolist()
    first = [(low, high - 1) for low, high in itertools.pairwise(ends)]
    middle = [(half, half)] if last % 2 == 0 else []
    return first + middle + [(last - high, last - low) for low, high in first[::-1]]


def ones_law(ones: int, zeros: int, shares: BitShares) -> tuple[Array, float]:
    """The law of the number of ones that so many bits give, but for tails of 1e-300, and its masses' relative error."""
    known = counts([Trials(ones, shares.one, shares.not_one), Trials(zeros, shares.zero, shares.not_zero)], 1e-300)
    return known.masses, 4.0 * known.largest_error


def _of_cohorts(n: int, low: int, high: int, shares: BitShares, rate: float) -> Iterator[tuple[Array, float, Array]]:
    """Of hidden cohorts with low, ..., high ones: the others' law, its relative error, what comes without the target.

    Of the members whose bits differ in the range one stays, who holds 1 or 0; a target that takes anybody's place of
    these takes that one's.
    """
    kept = [(low + 1, n - high, high), (low, n - high + 1, low)] if low < high else [(low, n - low, low)]
    one, zero = (binomial_pmf(1, pair) for pair in shares.chances)
    for ones, zeros, replaced in kept:  # replaced / n : that the target takes the place of a 1
        law, error = ones_law(max(ones - 1, 0), max(zeros - 1, 0), shares)
        if ones and zeros:
            share = replaced / n
            mixed, both = share * zero + (1.0 - share) * one, np.convolve(one, zero)
        else:
            mixed, both = np.ones(1), one if ones else zero
        yield np.convolve(law, mixed), error + 16.0 * ROUNDOFF, (1.0 - rate) * np.convolve(law, both)


def _best_tail(apart: Array, base: Array, error: float, expm1_eps: Array) -> Array:
    """The largest of P(count >= m) - s Q(count >= m), from above, for a likelihood ratio that rises in the count.

    apart : P - Q of counts >= 1, 2, ...; base : Q of counts 0, 1, ...; both up to the relative error.
    """
    before, after = np.append(0.0, apart), np.append(apart, 0.0)
    base = np.maximum(base, 1e-300)
    excess, doubt = (before - after) / base, error * (before + after) / base
    # At the first count whose ratio may be above s. Those between it and the best one are below s by its doubt at most.
    start = np.searchsorted(np.maximum.accumulate(excess + doubt), expm1_eps, side="right")
    tail = np.append(np.cumsum(base[::-1])[::-1], 0.0)[start]
    value = np.append(before, 0.0)[start] * (1.0 + error) - expm1_eps * tail * (1.0 - error)
    return np.asarray(np.clip(value + 2.0 * np.append(doubt, 0.0)[start] * tail + 1e-290, 0.0, 1.0))


def binomial_pmf(trials: int, chances: tuple[float, float]) -> Array:
    """All masses of a number of trials' successes; chances : probability and complement."""
    law = binomial_window(trials, min(chances), 0, trials)
    return law if chances[0] <= chances[1] else law[::-1]


BLOCK = 256  # rounds whose types are chosen as they go; what is lost between blocks falls like 1 / sqrt(BLOCK)
LEAST_NOISE = 100.0  # variance of the count at the least noisy dataset, which chords need; below, datasets are types
MANY_ONES = 100.0  # variance of their number from which on one attack is enough: speed against width


@dataclass(frozen=True)
class _OfBits(Pair):
    """What both pairs of n users' bits, or of a hidden cohort of n, have in common."""

    n: int
    shares: BitShares
    bits: int = 1
    rate: float = 1.0

    @property
    def max_loss(self) -> Bounds:
        """log(1 + rate (ratio - 1)), the ratio of a target whose bits are all 1, or all 0."""
        ratio = self.shares.gap / min(self.shares.zero, self.shares.not_one)
        loss = amplified_loss(self.bits * math.log1p(ratio), self.rate)
        return Bounds(loss * (1.0 - 64.0 * ROUNDOFF), loss * (1.0 + 64.0 * ROUNDOFF))

    @property
    def scale(self) -> float:
        """Rough standard deviation of the loss, at equal others."""
        shares = self.shares
        variance = self.n * min(shares.zero * shares.not_zero, shares.one * shares.not_one)
        spread = self.rate * math.sqrt(self.bits) * shares.gap / math.sqrt(variance)
        return float(min(math.log1p(spread), self.max_loss.upper))


@dataclass(frozen=True)
class BitPair(_OfBits, UpperPair):
    """The pair of n users' bits, or of a hidden cohort of n that the target belongs to with probability `rate`.

    back : None for either order, anew in every round; else the target holds 1 under P, or 0 if it is `back`, in all
    rounds: for one bit of everybody.
    """

    back: bool | None = None
    even = True
    choices = ()  # an attack is the lower end
    finest, least, thinned, boxes = 68.0, POINTS, 1, None

    @property
    def reverse(self) -> BitPair | None:  # type: ignore[override]
        return None if self.back is None else replace(self, back=not self.back)

    @property
    def _shares(self) -> BitShares:
        """The reversed pair counts zeros."""
        return self.shares.mirrored if self.back else self.shares

    def upper(self, expm1_eps: Array, truncated_mass: float) -> Array:
        if self.rate < 1.0 and self.bits == 1 and self.n < LISTED:
            return np.asarray(np.max(self._datasets(expm1_eps), axis=(0, 1)))
        ones = None if self.back is None else (0, self.n - 1)
        found = bit_profile(self.n, self._shares, expm1_eps, bits=self.bits, rate=self.rate, ones=ones)
        return np.asarray(found.upper)

    def _datasets(self, expm1_eps: Array) -> Types:
        return dataset_profiles(self.n, self._shares, expm1_eps, bits=self.bits, rate=self.rate)

    def sampled(self, cohort: Cohort) -> ProfilePair:
        if cohort.absence > 0.0:
            raise TypeError("bits of users who take part independently are accounted by their laws")
        return replace(self, rate=self.rate * cohort.rate)

    def repeated(self, count: int) -> list[tuple[Pair, int]]:
        if self.rate < 1.0 and not self.listed:
            return [(self, count)]
        return in_blocks(self, count, BLOCK)

    @property
    def listed(self) -> bool:
        """Whether the types are datasets, or ranges of them. Else they are the ends of chords, which need noise."""
        noise = min(self.n * self.bits * first * second for first, second in self.shares.chances)
        return noise < LEAST_NOISE and (self.bits == 1 or self.rate == 1.0)

    def types(self, expm1_eps: Array) -> list[Types]:
        """Datasets or ranges of them (Lemma B6); or what is above all, and the ends of chords (Theorem B5)."""
        from . import bit_kernels

        shares = self._shares
        if self.listed:
            first, second = self._datasets(expm1_eps)
            if self.back is None and not shares.symmetric:
                first, second = np.concatenate((first, second)), np.concatenate((second, first))
            return [(first, second)]
        asked = np.minimum(expm1_eps, LARGEST_GROWTH)
        every = [hull(np.log1p(expm1_eps), one.upper(asked, 0.0))[None] for one in (self, self.reverse or self)]
        known = []
        for order in [shares, shares.mirrored][: 1 if shares.symmetric else 2]:
            left, right = np.empty(expm1_eps.size), np.empty(expm1_eps.size)
            bit_kernels.all_chords(
                asked, float(self.bits), order.one, order.not_one, order.zero, order.not_zero, order.gap,
                float(self.bits * (self.n - 1)), left, right,
            )  # fmt: skip
            known.append((left, right))
        # The reversed pair counts zeros, so its chord runs the other way.
        ends = [
            end
            for (left, right), (other_left, other_right) in zip(known, known[::-1], strict=True)
            for end in ((left, other_right), (right, other_left))
        ]
        ahead, behind = (np.array(end) for end in zip(*ends[: None if self.back is None else 2], strict=True))
        return [(every[0], every[1]), (ahead, behind)]


def bit_attacks(
    n: int, shares: BitShares, cohort: Cohort = ALL_USERS, *, bits: int = 1, eps0: float | None = None
) -> list[Pair]:
    """All others hold the target's first value, or its second.

    Where many bits count the strongest at four deviations is the strongest wherever it matters, and the only one.

    eps0 : the largest loss of one report, where it is known exactly.
    """
    orders = [shares] if shares.symmetric else [shares, shares.mirrored]
    attacks = [BitAttackPair(n, order, bits, all_hold_one=one, eps0=eps0) for order in orders for one in (False, True)]
    if n * bits * min(shares.zero * shares.not_zero, shares.one * shares.not_one) > MANY_ONES:
        # Numbers of almost one size are all like one of them.
        typical = tuple(replace(attack, n=math.ceil(zoned(n))) for attack in attacks)
        attacks = [attacks[_strongest(typical, replace(cohort, rate=zoned(cohort.rate)))]]
    return [attack.sampled(cohort) for attack in attacks]


@lru_cache(maxsize=4096)
def _strongest(attacks: tuple[BitAttackPair, ...], cohort: Cohort) -> int:
    """The number of the attack with the largest delta at four deviations."""
    pairs = [attack.sampled(cohort) for attack in attacks]
    far = min(4.0 * pairs[0].scale, 0.9 * float(pairs[0].max_loss.lower))
    strengths = []
    for pair in pairs:
        [law] = pair.atoms([Side.LOWER], Resolution(1.0, truncated_mass=1e-12))
        strengths.append(float(law.mass @ np.maximum(0.0, -np.expm1(far - law.loss))))
    return int(np.argmax(strengths))


@dataclass(frozen=True)
class BitAttackPair(_OfBits):
    """All n-1 others hold 0 (or all 1), the target 1 against 0: the ordered pair, or of a hidden cohort."""

    all_hold_one: bool = False
    eps0: float | None = None  # the largest loss itself, where it is known exactly
    symmetric = False

    @property
    def max_loss(self) -> Bounds:
        known = self.eps0 is not None and self.rate == 1.0
        return Bounds(self.eps0, self.eps0) if known else super().max_loss

    def atoms(self, sides: Sequence[Side], resolution: Resolution) -> list[Atoms]:
        truncated_mass = min(max(resolution.truncated_mass, 1e-250), 0.01)
        found = bit_attack(
            self.n, self.shares, self.all_hold_one, bits=self.bits, rate=self.rate, truncated_mass=truncated_mass
        )
        known, left_out, error = found.losses, found.truncated_mass, found.mass_error
        # Inside the window masses sum to 1: too much for a lower law, and enough for an upper one.
        totals = {Side.UPPER: (1.0, 1.0 + error), Side.LOWER: (1.0 - left_out, (1.0 - error) * (1.0 - left_out))}
        return [
            Atoms(known.mass * factor, known.loss, 0.0, left_out, known.error, total=total, mass_error=4.0 * error)
            for total, factor in (totals[side] for side in sides)
        ]

    def sampled(self, cohort: Cohort) -> Pair:
        hidden = replace(cohort, rate=self.rate * cohort.rate)
        if cohort.absence > 0.0:  # a third report, "absent": no longer a number of ones alone
            return self.slot_law().ordered_pair().sampled(hidden)
        return replace(self, rate=hidden.rate)

    def slot_law(self) -> SlotLaw:
        """The law of one slot, where a user sends one bit."""
        if self.bits != 1:
            raise TypeError(f"users who take part independently send one bit each, got {self!r}")
        share = self.shares
        one = np.array([share.one, share.not_one])
        zero = np.array([share.zero, share.not_zero])
        return SlotLaw(self.n, one, zero, one if self.all_hold_one else zero, True, 8.0 * ROUNDOFF)
