"""Pairs of counted bits: the supremum over all datasets, several rounds of it, and one concrete pair of datasets.

The view is the number of ones among n users who send r randomised bits each (docs/swap.md).

* `BitPair` has the profile of the supremum over all datasets in both orders (section 4): exact for one round.
* Over rounds the others may hold what they like in each of them (`strategy.Strategy`). The types are datasets, or
  ranges of them, where noise is small (Lemma B6), else the ends of a chord over the number of ones (Theorem B5).
* `BitAttackPair` is the pair of two datasets: an attack.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..numerics.rounding import ROUNDOFF
from ..numerics.sides import Bounds, Side
from .bits import LARGEST_GROWTH, LISTED, BitShares, bit_attack, bit_profile, dataset_profiles
from .cohort import ALL_USERS, Cohort, zoned
from .pair import Atoms, Pair, Resolution
from .profile import ProfilePair, UpperPair
from .slots import SlotLaw
from .strategy import Types, hull, in_blocks

Array = NDArray[np.float64]

BLOCK = 256  # rounds whose types are chosen as they go; what is lost between blocks falls like 1 / sqrt(BLOCK)
LEAST_NOISE = 100.0  # variance of the count at the least noisy dataset, which chords need; below, datasets are types
MANY_ONES = 100.0  # variance of their number from which on one attack is enough: speed against width


@dataclass(frozen=True)
class BitPair(UpperPair):
    """The pair of n users' bits, or of a hidden cohort of n that the target belongs to with probability `rate`.

    back : None for either order, anew in every round; else the target holds 1 under P, or 0 if it is `back`, in all
    rounds: for one bit of everybody.
    """

    n: int
    shares: BitShares
    bits: int = 1
    rate: float = 1.0
    back: bool | None = None
    even = True
    choices = ()  # an attack is the lower end
    finest = 68.0

    @property
    def reverse(self) -> BitPair | None:  # type: ignore[override]
        return None if self.back is None else replace(self, back=not self.back)

    @property
    def _shares(self) -> BitShares:
        """The reversed pair counts zeros."""
        return self.shares.mirrored if self.back else self.shares

    @property
    def max_loss(self) -> Bounds:
        return _largest(self.shares, self.bits, self.rate)

    @property
    def scale(self) -> float:
        return rough_scale(self.n, self.shares, self.bits, self.rate)

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
        if self.rate < 1.0 and not self._listed:
            return [(self, count)]
        return in_blocks(self, count, BLOCK)

    @property
    def _listed(self) -> bool:
        """Whether the types are datasets, or ranges of them. Else they are the ends of chords, which need noise."""
        noise = min(self.n * self.bits * first * second for first, second in self.shares.chances)
        return noise < LEAST_NOISE and (self.bits == 1 or self.rate == 1.0)

    def types(self, expm1_eps: Array) -> list[Types]:
        """Datasets or ranges of them (Lemma B6); or what is above all, and the ends of chords (Theorem B5)."""
        from . import bit_kernels

        shares = self._shares
        if self._listed:
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
class BitAttackPair(Pair):
    """All n-1 others hold 0 (or all 1), the target 1 against 0: the ordered pair, or of a hidden cohort."""

    n: int
    shares: BitShares
    bits: int = 1
    rate: float = 1.0
    all_hold_one: bool = False
    eps0: float | None = None  # the largest loss itself, where it is known exactly

    @property
    def max_loss(self) -> Bounds:
        if self.eps0 is not None and self.rate == 1.0:
            return Bounds(self.eps0, self.eps0)
        return _largest(self.shares, self.bits, self.rate)

    @property
    def scale(self) -> float:
        return rough_scale(self.n, self.shares, self.bits, self.rate)

    @property
    def symmetric(self) -> bool:
        return False

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
        others = one if self.all_hold_one else zero
        return SlotLaw(self.n, one, zero, others, True, 8.0 * ROUNDOFF)


def _largest(shares: BitShares, bits: int, rate: float) -> Bounds:
    """log(1 + rate (ratio - 1)), the ratio of a target whose bits are all 1, or all 0."""
    odds = shares.gap / min(shares.zero, shares.not_one)
    loss = bits * math.log1p(odds)
    if rate < 1.0:  # far out, 1 - rate is nothing beside the rest
        loss = math.log1p(rate * math.expm1(loss)) if loss < 700.0 else loss + math.log(rate)
    return Bounds(loss * (1.0 - 64.0 * ROUNDOFF), loss * (1.0 + 64.0 * ROUNDOFF))


def rough_scale(n: int, shares: BitShares, bits: int, rate: float) -> float:
    """Rough standard deviation of the loss, at equal others."""
    variance = n * min(shares.zero * shares.not_zero, shares.one * shares.not_one)
    spread = rate * math.sqrt(bits) * shares.gap / math.sqrt(variance)
    return float(min(math.log1p(spread), _largest(shares, bits, rate).upper))
