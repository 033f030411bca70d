"""Pairs of counted bits: the supremum over all datasets, and one concrete pair of datasets (docs/bits.md).

The view is the number of ones among n users who send r randomised bits each.

* `bit_pair` has the profile of the supremum over all datasets in both orders (docs/bits.md, section 4): exact for one
  round, an upper bound over rounds.
* `BitAttackPair` is the pair of two datasets: an attack.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..numerics.rounding import ROUNDOFF
from ..numerics.sides import Bounds, Side
from .atoms import Atoms
from .bit_rounds import with_rounds
from .bits import BitShares, bit_attack, bit_profile
from .cohort import Cohort
from .least import least
from .pair import Pair, Resolution
from .profile import ProfilePair
from .slots import SlotLaw

Array = NDArray[np.float64]


def bit_pair(n: int, shares: BitShares, *, bits: int = 1, rate: float = 1.0) -> ProfilePair:
    """The pair of n users' bits, or of a hidden cohort of n that the target belongs to with probability `rate`."""

    def profile(growth: Array, missed: float) -> Array:
        return np.asarray(bit_profile(n, shares, growth, bits=bits, rate=rate).upper)

    def hidden(cohort: Cohort) -> ProfilePair:
        if cohort.absence > 0.0:
            raise TypeError("bits of users who take part independently are accounted by their laws")
        return bit_pair(n, shares, bits=bits, rate=rate * cohort.rate)

    pair = least(
        [profile],
        largest=_largest(shares, bits, rate),
        scale=rough_scale(n, shares, bits, rate),
        hidden=hidden,
        even=True,
    )
    if rate < 1.0:
        return pair
    return with_rounds(pair, n, shares, bits, lambda growth: profile(growth, 0.0))


def worst_bit_attack(
    n: int, shares: BitShares, *, bits: int = 1, rate: float = 1.0, eps0: float | None = None
) -> BitAttackPair:
    """The strongest at four deviations: all others hold the target's first value, or its second.

    eps0 : the largest loss of one report, where it is known exactly.
    """
    orders = [shares] if shares.symmetric else [shares, shares.mirrored]
    attacks = [
        BitAttackPair(n, order, bits, rate, all_hold_one=one, eps0=eps0)
        for order in orders
        for one in (False, True)
    ]
    far = min(4.0 * attacks[0].scale, 0.9 * float(attacks[0].max_loss.lower))

    def strength(attack: BitAttackPair) -> float:
        [law] = attack.atoms([Side.LOWER], Resolution(1.0, missed=1e-12))
        return float(law.mass @ np.maximum(0.0, -np.expm1(far - law.loss)))

    return max(attacks, key=strength)


def worst_absent_bit_attack(n: int, shares: BitShares, cohort: Cohort) -> ProfilePair:
    """The same for one bit each of users who take part independently (`Cohort.presence`), two deviations out."""
    orders = [shares] if shares.symmetric else [shares, shares.mirrored]
    attacks = [
        BitAttackPair(n, order, all_hold_one=one).slot_law().ordered_pair().sampled(cohort)
        for order in orders
        for one in (False, True)
    ]
    far = np.expm1([2.0 * max(attack.scale for attack in attacks)])
    return max(attacks, key=lambda attack: float(attack.profile(far, 1e-3, 0.0).lower[0]))


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
        missed = min(max(resolution.missed, 1e-250), 0.01)
        ones = self.n - 1 if self.all_hold_one else 0
        found = bit_attack(self.n, self.shares, ones, bits=self.bits, rate=self.rate, missed=missed)
        # Inside the window masses sum to 1: too much for a lower law, and enough for an upper one.
        factor = {
            Side.UPPER: 1.0 + found.mass_error,
            Side.LOWER: (1.0 - found.mass_error) * (1.0 - found.missed),
        }
        return [
            Atoms(
                found.p_mass * factor[side],
                found.loss,
                missed=found.missed,
                slack=found.loss_error,
                visited=found.loss.size,
                total=1.0 if side is Side.UPPER else 1.0 - found.missed,
                doubt=4.0 * found.mass_error,
            )
            for side in sides
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
