"""Sums of one-hot bits: what two counts at once give away, and the pairs of it.

Every user encodes one value out of k in k bits, each sent through `shares`; the view is the k sums of bits. A change of
value touches two of them, independently: the old value's sum (1 before, 0 after) and the new one's (0 before, 1 after).
j_a and j_b of the others hold these values, j_a + j_b <= n-1, with equality for k = 2. So the pair is a product, and

    H_s = sum over atoms of both  p p' (1 - s e^(-l - l'))_+ .

Proof: docs/swap.md, counts of one-hot bits.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np

from ..numerics.sides import ROUNDOFF, Array, Bounds, Side
from .bits import (
    LISTED,
    BitAttackPair,
    BitPair,
    BitShares,
    binomial_pmf,
    bit_attack,
    bit_profile,
    dataset_profiles,
    ones_law,
)
from .discrete import EitherOrder, Losses, OrderedPair
from .pair import ALL_USERS, Atoms, Attacks, Cohort, Pair
from .profile import HiddenOrder, ProfilePair, UpperPair, points, profile_atoms
from .shifted import losses, side_by_side, with_attack
from .slots import SlotLaw
from .strategy import FEW_ROUNDS, FINEST, POINTS, Boxes, Choice, Strategy, Types

FEW, LEAST = 16, -650.0  # users of whom all datasets are asked: width against speed; logarithm of the smallest mass
PIECES = 4  # of either half of the range of ones
BOX = 0.2  # of the distance from equal others, that ranges of both counts may be wide: width against speed
MOST_POINTS = 1_500  # at which the profile is asked for one law
MISSED = (1e-30, 1e-60, 1e-120, 1e-300)  # what windows may leave out


@dataclass(frozen=True)
class _OfTwoCounts(ProfilePair):
    """What both pairs have in common."""

    n: int
    shares: BitShares
    most_points = MOST_POINTS

    @property
    def max_loss(self) -> Bounds:
        """Of the two sums together."""
        loss = math.log1p(self.shares.gap / self.shares.zero) + math.log1p(self.shares.gap / self.shares.not_one)
        return Bounds(loss * (1.0 - 64.0 * ROUNDOFF), loss * (1.0 + 64.0 * ROUNDOFF))

    @property
    def scale(self) -> float:
        return min(math.sqrt(2.0) * BitPair(self.n, self.shares).scale, float(self.max_loss.upper))


@dataclass(frozen=True)
class TwoCountPair(_OfTwoCounts, UpperPair):
    """The pair of the sums of n users' one-hot bits, whatever the others hold; `third`: also neither of two values."""

    third: bool = True
    even = True
    finest, least, thinned = FINEST, POINTS, 1

    def repeated(self, count: int) -> list[tuple[Pair, int]]:
        """Over several rounds both counts' users are chosen anew in every round; over many each count's by itself."""
        if count == 1:
            return [(self, 1)]
        if count <= FEW_ROUNDS and (self.n <= LISTED or not BitPair(self.n, self.shares).listed):
            return [(Strategy(self, count), 1)]
        if self.shares.symmetric:  # a bit that falls is one that rises, seen as zeros
            return BitPair(self.n, self.shares).repeated(2 * count)
        ways = (BitPair(self.n, self.shares, back=back) for back in (False, True))
        return [part for one in ways for part in one.repeated(count)]

    @property
    def choices(self) -> tuple[Choice, ...]:
        """All others hold the target's second value, or its first one, or a third."""
        orders, held = (self.shares, self.shares.mirrored), [(False, False), (True, True), (False, True)]
        kept = held[: 2 + self.third]
        return tuple(tuple(bit_attack(self.n, *each) for each in zip(orders, ones, strict=True)) for ones in kept)

    def types(self, expm1_eps: Array) -> list[Types]:
        """Of one count, in the order in which the target holds 1 first: ranges of datasets, or the ends of a chord."""
        if self.n > LISTED:
            return BitPair(self.n, self.shares, back=False).types(expm1_eps)
        rows = dataset_profiles(self.n, self.shares, expm1_eps)
        parts = self._boxes[0]
        ahead, behind = (np.array([np.max(one[low : high + 1], axis=0) for low, high in parts]) for one in rows)
        return [(ahead, behind)]

    @property
    def boxes(self) -> Boxes:
        return self._boxes[1]

    @cached_property
    def _boxes(self) -> tuple[list[tuple[int, int]], Boxes]:
        """Ranges of the others who hold the old value, or the new one, and pairs of them that cover all datasets.

        They are small next to datasets whose others all hold one value.
        """
        if self.n > LISTED:
            return [], []  # all pairs
        found, todo, most = [], [(0, self.n - 1, 0, self.n - 1)], self.n - 1
        while todo:
            a, b, c, d = todo.pop()
            if a + c > most or (b + d < most and not self.third):
                continue
            if max(b - a, d - c) <= BOX * min(a + most - d, most - b + c, a + c if self.third else most):
                found.append(((a, b), (c, d)))
            else:
                halves = [{(i, (i + k) // 2), (min((i + k) // 2 + 1, k), k)} for i, k in ((a, b), (c, d))]
                todo += [(*one, *other) for one, other in itertools.product(*halves)]
        parts = sorted({part for both in found for part in both})
        return parts, [(parts.index(one), parts.index(other)) for one, other in found]

    def upper(self, expm1_eps: Array, truncated_mass: float) -> Array:
        """The largest H_s, for every dataset and in either order. O(PIECES) laws of some hundred points each."""
        eps, found, law = np.log1p(expm1_eps), np.zeros(expm1_eps.size), partial(_law, self.n, self.shares)
        less = _enough(truncated_mass)
        for part, other in itertools.product(_ranges(self.n - 1), repeat=2):
            if part[0] + other[0] <= self.n - 1 and (self.third or part[1] + other[1] >= self.n - 1):
                old, new = law(part, Side.UPPER, less, False), law(other, Side.UPPER, less, True)
                found = np.maximum(found, _product(old, new, eps, 1.0))
        return np.asarray(np.minimum(found, 1.0))


@dataclass(frozen=True)
class EqualOthers(TwoCountPair):
    """An attack over few rounds: which value all others hold is chosen in each. Over one, or many, there is none."""

    def repeated(self, count: int) -> list[tuple[Pair, int]]:
        return [part for part in TwoCountPair(self.n, self.shares, self.third).repeated(count) if part[0].encloses]


@dataclass(frozen=True)
class TwoCountAttack(_OfTwoCounts):
    """The pair of two datasets whose others all hold the target's second value, or, if `first`, its first one."""

    first: bool = False

    @property
    def reverse(self) -> TwoCountAttack:
        return replace(self, first=not self.first)

    def repeated(self, count: int) -> list[tuple[Pair, int]]:
        """Over several rounds each count by itself: a bit that falls is one that rises, seen as zeros."""
        if count == 1:
            return [(self, 1)]
        orders = [self.shares] if self.shares.symmetric else [self.shares, self.shares.mirrored]
        return [(BitAttackPair(self.n, order, all_hold_one=self.first), 2 * count // len(orders)) for order in orders]

    def profile(self, expm1_eps: Array, rtol: float, truncated_mass: float) -> Bounds:
        eps, ends = np.log1p(expm1_eps), []
        held = ((self.n - 1) * self.first, (self.n - 1) * (not self.first))
        for side, sign in zip(Side, (-1.0, 1.0), strict=True):
            old, new = (
                _law(self.n, self.shares, (ones, ones), side, _enough(truncated_mass), reverse)
                for ones, reverse in zip(held, (False, True), strict=True)
            )
            ends.append(np.minimum(_product(old, new, eps, sign), 1.0))
        return Bounds(*ends)

    def sampled(self, cohort: Cohort) -> ProfilePair:
        """Who stands in for an absent target looks like the others."""
        cohort.require_all_present(self)
        ahead, back = (self.reverse, self) if self.first else (self, self.reverse)
        return HiddenOrder(ahead, cohort.rate, back, self.first)


def two_counts(n: int, shares: BitShares, k: int) -> tuple[Pair, Pair]:
    """The pair of the sums, and attacks: of few users all datasets, exactly, also as they are chosen over rounds."""
    if not _few(n, shares):
        attacks = two_count_attacks(n, shares, k)
        every = attacks.pairs if isinstance(attacks, Attacks) else (attacks,)
        return TwoCountPair(n, shares, k > 2), Attacks(every, EqualOthers(n, shares, k > 2))
    counts = []
    for held in range(n):
        one, zero, error = _one_count(n, shares, held)
        counts.append([OrderedPair(losses(p, q, error, 0.0), 0.0, error) for p, q in ((one, zero), (zero, one))])
    # The reverse of two counts is these counts exchanged.
    pairs = [(side_by_side(counts[a][0], counts[b][1]), side_by_side(counts[b][0], counts[a][1]))
        for a in range(n) for b in range(a if k > 2 else max(a, n - 1 - a), n - a)]  # fmt: skip
    return with_attack(*(EitherOrder((one.losses, other.losses), mass_error=one.mass_error) for one, other in pairs))


def _few(n: int, shares: BitShares) -> bool:
    """Whether all counts are listed: none of their masses underflows."""
    return n <= FEW and n * math.log(min(itertools.chain(*shares.chances))) >= LEAST


def _one_count(n: int, shares: BitShares, held: int) -> tuple[Array, Array, float]:
    """The laws of one count if the target holds it, and if not, and their error; so many of the others do. O(n^2)."""
    others, error = ones_law(held, n - 1 - held, shares)
    p, q = (np.convolve(others, binomial_pmf(1, chance)) for chance in shares.chances)
    return p, q, error + ROUNDOFF * (64.0 * n + 256.0)


def _few_hidden(n: int, shares: BitShares, cohort: Cohort) -> list[OrderedPair]:
    """The attacks of `TwoCountAttack` on a hidden cohort of few users, as all pairs of counts."""
    cohort.require_all_present(shares)
    old, new = _one_count(n, shares, 0), _one_count(n, shares, n - 1)
    ahead, back = np.outer(old[0], new[1]).ravel(), np.outer(old[1], new[0]).ravel()
    seen, error = cohort.rate * ahead + (1.0 - cohort.rate) * back, 2.0 * max(old[2], new[2])
    return [OrderedPair(losses(p, q, error, 0.0), 0.0, error) for p, q in ((seen, back), (back, seen))]


def two_count_attacks(n: int, shares: BitShares, k: int, cohort: Cohort = ALL_USERS) -> Pair:
    """Of a cohort: all others hold the target's second value, or the first one, or a third; the strongest is first.

    The third value's own sum is not looked at. Then each of n users sends two bits, and what they say of the target is
    a sum of one function of each: two sums say all.
    """
    attacks: list[Any] = (
        _few_hidden(n, shares, cohort)
        if _few(n, shares)
        else [TwoCountAttack(n, shares, first).sampled(cohort) for first in (False, True)]
    )
    if k > 2 or n == 1:
        one, zero = (np.array(chance) for chance in shares.chances)
        first, second, others = (np.outer(*bits).ravel() for bits in ((one, zero), (zero, one), (zero, zero)))
        attacks.append(SlotLaw(n, first, second, others, True, 16.0 * ROUNDOFF).sampled(cohort).ordered_pair())
    far = np.expm1([min(4.0 * max(one.scale for one in attacks), 0.9 * float(attacks[0].max_loss.lower))])
    attacks.sort(key=lambda one: -float(one.profile(far, 1e-3, 1e-9).lower[0]))
    return Attacks.of(attacks)


@lru_cache(maxsize=1024)
def _law(n: int, shares: BitShares, ones: tuple[int, int], side: Side, truncated_mass: float, reverse: bool) -> Atoms:
    """One count as atoms on a side, for datasets with `ones` in a range; reversed: the target holds 0 first."""
    ahead, behind = shares, shares.mirrored
    near, far = ones, (n - 1 - ones[1], n - 1 - ones[0])
    if reverse:
        ahead, behind, near, far = behind, ahead, far, near
    noise = min(shares.one * shares.not_one, shares.zero * shares.not_zero) * n
    largest = max(math.log(shares.one / shares.zero), math.log(shares.not_zero / shares.not_one))
    scale = min(shares.gap / math.sqrt(noise), largest)
    width = scale / (40.0 if ones[0] < ones[1] else 120.0)
    known = []
    for order, part in ((ahead, near), (behind, far)):
        profile = partial(bit_profile, n, order, ones=part)
        largest = math.log1p(order.gap / order.zero) * (1.0 + 16.0 * ROUNDOFF)  # an upper bound, however small
        known.append(points(profile, width=width, truncated_mass=truncated_mass, scale=scale, max_loss=largest))
    return profile_atoms(known[0], known[1], side)


def _enough(truncated_mass: float) -> float:
    """What the windows of a count leave out: much less than is left out anyway."""
    return next((m for m in MISSED if m <= 0.01 * truncated_mass), MISSED[-1])


def _ranges(others: int) -> list[tuple[int, int]]:
    """Ranges of j, cut at powers of 4 from either end, over each of which a factor's supremum is taken.

    s < 1 and s > 1 have different worst datasets; what that loses goes away with more pieces.
    """
    cuts = {0, others // 2, others, others + 1}
    for power in range(1, PIECES):
        cuts |= {others // 4**power, others - others // 4**power}
    return [(low, high - 1) for low, high in itertools.pairwise(sorted(cuts))]


def _product(first: Atoms, second: Atoms, eps: Array, sign: float) -> Array:
    """H at e^eps of the product of two laws of atoms, rounded to the side of `sign`."""
    one, other = (Losses(law.mass, law.loss, law.infinity_mass, 0.0) for law in (first, second))
    far = float(np.abs(second.loss).max())
    error = first.loss_error + second.loss_error + 4.0 * ROUNDOFF * (eps + far)
    rounding = ROUNDOFF * (48.0 + 10.0 * first.loss.size + 4.0 * second.loss.size)
    return one.beside(other, eps - sign * error) * (1.0 + sign * rounding)
