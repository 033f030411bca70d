"""Pairs of counted bits: the supremum over all datasets, several rounds of it, and one concrete pair of datasets.

The view is the number of ones among n users who send r randomised bits each (docs/bits.md).

* `BitPair` has the profile of the supremum over all datasets in both orders (section 4): exact for one round.
* `BlockPair`: several rounds, in each of which the others may hold what they like (section 7). One round's supremum is
  at its worst with all others at 0 for large losses, and with all others at 1 for losses below 0. No dataset is both,
  but over rounds a profile of the supremum pays for that again and again. Here the supremum is taken over what an
  adversary can do: choose the others' values round by round, knowing what it has seen. Every dataset's pair lies below
  a mixture of two, the ends of a chord over the number of ones (Theorem 5). So what one more round can add is the
  larger of two sums, and a few dozen rounds are one table over the loss so far.
* `AbsentBitPair`: users who take part independently, by the swap theorem.
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
from .bits import LARGEST_GROWTH, BitShares, bit_attack, bit_profile
from .cohort import Cohort
from .pair import Atoms, Pair, Resolution
from .profile import ProfilePair, ProfilePoints, UpperPair, profile_atoms
from .slots import SlotLaw
from .swap import typed_profile

Array = NDArray[np.float64]

BLOCK = 64  # rounds in one table; what is lost between blocks falls like 1 / sqrt(BLOCK)
POINTS_PER_SCALE = 24.0  # of the losses' lattice: it costs epsilon 1 / (12 x the square of this)
LONGEST = 650.0  # a table's losses; beyond, its last value holds
MISSED = (1e-15, 1e-25, 1e-50, 1e-100, 1e-300)  # what the tables may leave out
MANY_ONES = 100.0  # variance of their number from which on one attack is enough: speed against width
SWAP_POINTS = 240  # of a profile by the swap theorem


@dataclass(frozen=True)
class BitPair(UpperPair):
    """The pair of n users' bits, or of a hidden cohort of n that the target belongs to with probability `rate`."""

    n: int
    shares: BitShares
    bits: int = 1
    rate: float = 1.0
    even = True

    @property
    def max_loss(self) -> Bounds:
        return _largest(self.shares, self.bits, self.rate)

    @property
    def scale(self) -> float:
        return rough_scale(self.n, self.shares, self.bits, self.rate)

    def upper(self, expm1_eps: Array, truncated_mass: float) -> Array:
        return np.asarray(bit_profile(self.n, self.shares, expm1_eps, bits=self.bits, rate=self.rate).upper)

    def sampled(self, cohort: Cohort) -> ProfilePair:
        if cohort.absence > 0.0:
            raise TypeError("bits of users who take part independently are accounted by their laws")
        return replace(self, rate=self.rate * cohort.rate)

    def repeated(self, count: int) -> list[tuple[Pair, int]]:
        if self.rate < 1.0 or count == 1:
            return [(self, count)]
        blocks, rest = divmod(count, BLOCK)
        found: list[tuple[Pair, int]] = [(BlockPair(self, BLOCK), blocks)] if blocks else []
        if rest:
            found.append((self if rest == 1 else BlockPair(self, rest), 1))
        return found


@dataclass(frozen=True)
class BlockPair(UpperPair):
    """The pair of 2 to BLOCK rounds of `one`, rate 1."""

    one: BitPair
    rounds: int
    even = True

    @property
    def max_loss(self) -> Bounds:
        low, high = self.one.max_loss
        return Bounds(self.rounds * low * (1.0 - ROUNDOFF), self.rounds * high * (1.0 + 4.0 * ROUNDOFF))

    @property
    def scale(self) -> float:
        return min(math.sqrt(self.rounds) * self.one.scale, float(self.max_loss.upper))

    def upper(self, expm1_eps: Array, truncated_mass: float) -> Array:
        """The table read off between its points: the supremum is convex in s."""
        share = next((m for m in MISSED if m <= truncated_mass), MISSED[-1])
        size = 1 << (self.rounds - 1).bit_length()  # a few tables serve all numbers of rounds
        values = _table(self.one, size, share)[self.rounds - 1]
        known = np.expm1(_step(self.one) * np.arange(values.size))
        found = np.interp(expm1_eps, known, values) * (1.0 + 64.0 * ROUNDOFF)
        end = self.rounds * self.one.max_loss.upper * (1.0 + 1e-12)
        return np.where(np.log1p(expm1_eps) > end + 1e-15, 0.0, found)


@dataclass(frozen=True)
class AbsentBitPair(UpperPair):
    """One bit each of users who take part independently: the larger of both orders, each by the better shared law.

    The number of reports is published, too. These two numbers are all that a shuffler shows, so the swap theorem holds.
    """

    n: int
    shares: BitShares
    cohort: Cohort

    @property
    def max_loss(self) -> Bounds:
        return _largest(self.shares, 1, self.cohort.rate)

    @property
    def scale(self) -> float:
        return rough_scale(self.n, self.shares, 1, self.cohort.rate * self.cohort.presence)

    @property
    def most_points(self) -> int:
        return SWAP_POINTS

    def upper(self, expm1_eps: Array, truncated_mass: float) -> Array:
        share = self.shares
        one, zero = [share.one, share.not_one], [share.zero, share.not_zero]
        orders = [(one, zero)] if share.symmetric else [(one, zero), (zero, one)]
        found = [
            [
                typed_profile(
                    [np.array([*order, shared, other]) for other in (one, zero)],
                    self.n, expm1_eps, cohort=self.cohort, mass_error=1e-15,
                )
                for shared in (one, zero)
            ]
            for order in orders
        ]  # fmt: skip
        return np.asarray(np.max(np.min(found, axis=1), axis=0))


@lru_cache(maxsize=64)
def _table(one: BitPair, rounds: int, truncated_mass: float) -> list[Array]:
    """Upper bounds on the profiles of 1, 2, ... rounds at losses 0, step, 2 step, ..."""
    from . import bit_kernels

    step = _step(one)
    reach = _reach(one, truncated_mass / rounds)
    laws, endless = zip(*_laws(one, reach), strict=True)
    controls, ends = np.array(laws[1:]), np.array(endless[1:])
    most = _steps_to(one, rounds * one.max_loss.upper)
    places = math.ceil(1.1 * math.sqrt(rounds) * reach + rounds * one.scale**2 / step)
    while True:
        places = max(reach, min(places, most))
        rounding = 1.0 + ROUNDOFF * (8.0 * reach + 64.0 + 8.0 * places * step)
        loss = step * np.arange(places + 1)
        further = loss[1 : reach + 1]
        value, found = np.zeros(places + 1), []
        for _ in range(rounds):
            # E(x R - 1)_+ for x > 1 from x < 1: the class is closed under exchange of the neighbours.
            above = np.expm1(further) + np.exp(further) * value[1 : reach + 1]
            known = np.concatenate((above[::-1], value, np.full(reach, value[-1])))
            value = np.empty(places + 1)
            bit_kernels.best_step(known, controls, ends, laws[0], endless[0], step, value)
            value *= rounding
            found.append(np.minimum(value * np.exp(loss) * rounding, 1.0))
        if places >= most or found[-1][-1] <= 100.0 * truncated_mass:
            return found
        places = math.ceil(1.3 * places)


def _step(one: BitPair) -> float:
    """The spacing of a table's losses."""
    return one.scale / POINTS_PER_SCALE


def _steps_to(one: BitPair, loss: float) -> int:
    """How many steps lie in front of a loss, or of the largest one that numbers have room for."""
    return math.ceil(min(loss, LONGEST) / _step(one)) + 1


def _reach(one: BitPair, truncated_mass: float) -> int:
    """How many steps one round's law needs."""
    most = _steps_to(one, one.max_loss.upper)
    steps = math.ceil(4.0 * POINTS_PER_SCALE)
    while steps < most and float(one.upper(np.expm1([_step(one) * steps]), 0.0)[0]) > truncated_mass:
        steps = math.ceil(1.1 * steps)
    return int(min(steps, most))


def _laws(one: BitPair, reach: int) -> list[tuple[Array, float]]:
    """Masses of Q on the lattice and the mass of P at infinity: of the supremum, then of the ends of chords."""
    from . import bit_kernels

    step = _step(one)
    loss = step * np.arange(reach + 1)
    # A little earlier than the lattice points: profiles fall.
    expm1_eps = np.minimum(np.expm1(loss) * (1.0 - 16.0 * ROUNDOFF * (1.0 + loss)), LARGEST_GROWTH)
    every = one.upper(expm1_eps, 0.0)
    known = []
    for shares in [one.shares, one.shares.mirrored][: 1 if one.shares.symmetric else 2]:
        left, right = np.empty(expm1_eps.size), np.empty(expm1_eps.size)
        bit_kernels.all_chords(
            expm1_eps, float(one.bits), shares.one, shares.not_one, shares.zero, shares.not_zero,
            shares.gap, float(one.bits * (one.n - 1)), left, right,
        )  # fmt: skip
        known.append((left, right))
    ends = []
    # The reversed pair counts zeros, so its chord runs the other way.
    for (left, right), (other_left, other_right) in zip(known, known[::-1], strict=True):
        ends += [(left, other_right), (right, other_left)]
    return [_hull_law(every, step), *(_law(*end, step) for end in ends)]


def _hull_law(value: Array, step: float) -> tuple[Array, float]:
    """As `_law` for the supremum, which is convex: noise in its bounds is cut off by their hull."""
    reach = value.size - 1
    known = ProfilePoints(np.expm1(step * np.arange(reach + 1)), value, value)
    atoms = profile_atoms(known, known, Side.UPPER)
    place = reach + np.rint(atoms.loss / step).astype(np.int64)
    mass = np.zeros(2 * reach + 1)
    np.add.at(mass, place, atoms.mass * np.exp(-step * (place - reach)) * (1.0 + 64.0 * ROUNDOFF))
    return mass, atoms.infinity_mass


def _law(ahead: Array, behind: Array, step: float) -> tuple[Array, float]:
    """The law whose profile joins known points: masses of Q at losses -reach ... reach steps, and P's mass at infinity.

    ahead, behind : upper bounds on the profile, and on the reversed pair's, at losses 0, step, ... Where points are not
    convex, a negative mass is raised to 0: more mass is above.
    """
    reach = ahead.size - 1
    loss = step * np.arange(reach + 1)
    expm1_eps = np.expm1(loss)
    start = max(float(ahead[0]), float(behind[0]))
    rounding = 8.0 * ROUNDOFF * (reach + 8.0)
    parts, first = [], []
    for value in (ahead, behind):
        value = np.concatenate(([start], value[1:]))
        slopes = np.append(np.diff(value) / np.diff(expm1_eps), 0.0)
        size = np.abs(slopes[1:]) + np.abs(slopes[:-1])
        parts.append(np.maximum(0.0, np.diff(slopes) + rounding * size))
        first.append(float(slopes[0]))
    middle = max(0.0, 1.0 - start + first[0] + first[1]) + 8.0 * rounding
    backward = parts[1] * np.exp(loss[1:]) * (1.0 + 64.0 * ROUNDOFF)
    return np.concatenate((backward[::-1], [middle], parts[0])), float(ahead[-1])


def bit_attacks(
    n: int, shares: BitShares, *, bits: int = 1, rate: float = 1.0, eps0: float | None = None
) -> list[BitAttackPair]:
    """All others hold the target's first value, or its second; the strongest at four deviations comes first.

    Where many bits count it is the strongest wherever it matters, and the only one.

    eps0 : the largest loss of one report, where it is known exactly.
    """
    orders = [shares] if shares.symmetric else [shares, shares.mirrored]
    attacks = [
        BitAttackPair(n, order, bits, rate, all_hold_one=one, eps0=eps0) for order in orders for one in (False, True)
    ]
    far = min(4.0 * attacks[0].scale, 0.9 * float(attacks[0].max_loss.lower))

    def strength(attack: BitAttackPair) -> float:
        [law] = attack.atoms([Side.LOWER], Resolution(1.0, truncated_mass=1e-12))
        return float(law.mass @ np.maximum(0.0, -np.expm1(far - law.loss)))

    ranked = sorted(attacks, key=strength, reverse=True)
    many = n * bits * min(shares.zero * shares.not_zero, shares.one * shares.not_one) > MANY_ONES
    return ranked[:1] if many else ranked


def absent_bit_attacks(n: int, shares: BitShares, cohort: Cohort) -> list[ProfilePair]:
    """The same for one bit each of users who take part independently (`Cohort.presence`), at two deviations."""
    orders = [shares] if shares.symmetric else [shares, shares.mirrored]
    attacks = [
        BitAttackPair(n, order, all_hold_one=one).slot_law().ordered_pair().sampled(cohort)
        for order in orders
        for one in (False, True)
    ]
    far = np.expm1([2.0 * max(attack.scale for attack in attacks)])
    return sorted(attacks, key=lambda attack: -float(attack.profile(far, 1e-3, 0.0).lower[0]))


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
        # Inside the window masses sum to 1: too much for a lower law, and enough for an upper one.
        factor = {
            Side.UPPER: 1.0 + found.mass_error,
            Side.LOWER: (1.0 - found.mass_error) * (1.0 - found.truncated_mass),
        }
        return [
            Atoms(
                found.p_mass * factor[side],
                found.loss,
                truncated_mass=found.truncated_mass,
                loss_error=found.loss_error,
                total=1.0 if side is Side.UPPER else 1.0 - found.truncated_mass,
                mass_error=4.0 * found.mass_error,
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
