"""Slots of few users, whose ratios to the others' law are continuous: sums of ratios instead of a contour.

Local noise has slot laws (`pairs.slots`) of three kinds of reports: on the left R_1 = W, and u = R_0/W varies; on the
right R_0 = W, and v = R_1/W varies; the rest of W says nothing. With L slots on the left and R on the right

    H_s = (1/n) sum over L, R of P(L, R) E (u_1 + ... + u_L + R - s (L + v_1 + ... + v_R))_+ .

The laws of the sums U of u and V of v do not depend on s: they are made once for each number of slots, on a lattice.
A sum is kept as what it is short of its largest value (U), or above its smallest (V), and cells are graded there, so
that losses next to the largest one keep their precision. Placing an atom between two points with its mean kept makes
(.)_+ larger, merging atoms makes it smaller (docs/theory.md, section 8).

Ratios of Gaussian noise have a long tail: there both sums are kept from their smallest values, on a lattice and in
cells that grow beyond it, where sums are placed anew.

Either side is a law of its own, known to rounding: so points of its profile may be as close as one likes. The
contour of `pairs.slots` decays slowly where the sum has few terms, and not at all next to the largest loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, repeat
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ..numerics.rounding import ROUNDOFF
from ..numerics.sides import Bounds, Side
from .cohort import Cohort
from .slots import NoiseLaw, SlotLaw, SlotPair, rest_of

Array = NDArray[np.float64]
L = TypeVar("L")

MOST_USERS, MOST_TAILED = 32, 12  # the latter if ratios have a long tail
PER_DEVIATION = 128.0  # lattice points, of one slot's ratio
FEWEST, MOST = 256, 1024  # lattice points of one slot
POINTS = 10_000  # of the sum of all slots, where they are of one kind
NEAR = 4  # steps of the lattice next to the largest loss, in which cells are graded
GRADED = np.append(0.25 * 0.7 ** np.arange(64.0, 0.0, -1.0), np.arange(0.25, NEAR + 0.75, 0.25))
# Of ratios with a long tail: points of the lattice, cells beyond, and cells of what is added to these.
BULK, DISTANT, COARSE = 4096, 700, 256
TERMS = DISTANT * (2 * COARSE + DISTANT) + 2 * BULK  # of one of their sums


@dataclass(frozen=True, eq=False)
class FewSlots(SlotLaw):
    """A slot law whose profile is asked on one side only, by sums of ratios.

    tailed : the largest ratios are of no account, and far beyond most of them.
    """

    side: Side
    tailed: bool = False

    @classmethod
    def of_side(cls, side: Side, law: SlotLaw, *, tailed: bool = False) -> FewSlots | None:
        """The law's side; None for other kinds of reports, too many users, or a rest that may be none."""
        found = cls(law.n, law.first, law.second, law.others, law.whole, law.error, side, tailed)
        seen, left, right = found._kinds
        other_kinds = np.any(seen & ~(left | right))
        many = law.n > (MOST_TAILED if tailed else MOST_USERS)
        return None if other_kinds or many or 0.0 < found.rest < 1e-9 else found

    @cached_property
    def _kinds(self) -> tuple[NDArray[np.bool_], ...]:
        """Reports that are others' too, and which of these are on the left and on the right."""
        seen = self.others > 0.0
        left = seen & (self.second == self.others)
        return seen, left, seen & (self.first == self.others) & ~left

    @cached_property
    def left(self) -> tuple[Array, Array]:
        """The u of the left reports, known to twice the masses' error, and their masses."""
        return self._ratios(self.first, 1)

    @cached_property
    def right(self) -> tuple[Array, Array]:
        """The v of the right ones, and their masses."""
        return self._ratios(self.second, 2)

    def _ratios(self, law: Array, kind: int) -> tuple[Array, Array]:
        held = self._kinds[kind]
        return law[held] / self.others[held], self.others[held]

    @cached_property
    def rest(self) -> float:
        """The mass of what says nothing."""
        return 0.0 if self.whole else rest_of(self.others)

    def profile(self, expm1_eps: Array, rtol: float = 0.0) -> Bounds:
        """Bounds on H_s of this side's law at s = 1 + growth >= 1; O(n^2) lattice points each."""
        from .few_users_kernels import positive_parts

        (top, low, high), (u, v) = self._ends, self._sums
        total, size = np.empty(expm1_eps.size), np.empty(expm1_eps.size)
        # Places of a long tail have their own errors booked.
        place_error = 64.0 * ROUNDOFF + (0.0 if self.tailed else 4.0 * self.error)
        positive_parts(
            self.n, self._weight, top, low, high, self._sign * place_error, u.start, u.gap, u.prefix, u.moment, v.start,
            v.gap, v.mass, expm1_eps, total, size,
        )  # fmt: skip
        terms = u.gap.size + v.gap.size + self.n * (POINTS + GRADED.size**2 + 16.0)
        relative = 4.0 * ROUNDOFF * terms * size + self._mass_error * total
        lower, upper = np.maximum(total - relative, 0.0) / self.n, (total + relative) / self.n
        bare = ~self._kinds[0]
        for first, second in zip(self.first[bare], self.second[bare], strict=True):
            alone = first - second - expm1_eps * second
            term_error = (2.0 * self.error + 8.0 * ROUNDOFF) * (first + second + expm1_eps * second)
            lower += np.maximum(alone - term_error, 0.0)
            upper += np.maximum(alone + term_error, 0.0)
        rounding = 4.0 * ROUNDOFF * (1.0 + float(np.count_nonzero(bare)))
        return Bounds(lower * (1.0 - rounding), upper * (1.0 + rounding))

    @property
    def top_mass(self) -> float:
        """A lower bound on the P-mass at the largest loss: every slot that says anything has the largest ratio."""
        if self.tailed:
            return 0.0
        top, low, _ = self._ends
        (u, left), (v, right) = self.left, self.right
        mass, gain = (right[v == low], 1.0) if top * low < 1.0 else (left[u == top], top)
        share = float(mass.sum())
        found = gain * share * (self.rest + share) ** (self.n - 1)
        return found * (1.0 - self._mass_error - 2.0 * self.n * self.error)

    @cached_property
    def _ends(self) -> tuple[float, float, float]:
        """The largest u, the least and the largest v."""
        u, v = self.left[0], self.right[0]
        return float(u.max(initial=1.0)), float(v.min(initial=1e300)), float(v.max(initial=1.0))

    @cached_property
    def _sums(self) -> tuple[_Sums, _Sums]:
        """Of what the u are short of the largest one, and of what the v are above the least one."""
        top, low, _ = self._ends
        (u, left), (v, right) = self.left, self.right
        alone = self.rest == 0.0 and not (u.size and v.size)
        if self.tailed and u.size:
            least = float(u.min())
            above = below = _tailed_sums(self.side, self.n, u - u.min(), left, alone)
            if not (np.array_equal(u, v) and np.array_equal(left, right)):
                above = [NOTHING] + [NOTHING[:, :0]] * self.n
                if v.size:
                    above = _tailed_sums(self.side, self.n, v - low, right, alone)
            # What places are rounded by, relative to themselves: on the upper side u grows, and v falls.
            place_error = 4.0 * self.error + 64.0 * ROUNDOFF
            if self.side is Side.LOWER:  # where moments are sums
                place_error += 4.0 * ROUNDOFF * self.n * TERMS
            place_error *= self._sign
            over = [
                np.stack((m, count * (top - least) * m - moment - place_error * (moment + count * least * m)))
                for count, (m, moment) in enumerate(below)
            ]
            above = [
                np.stack((m, moment - place_error * (moment + count * low * m)))
                for count, (m, moment) in enumerate(above)
            ]
            return _Sums.of([part[:, ::-1] for part in over]), _Sums.of(above)
        # No sum of gaps of that size leaves anything positive.
        reach = self.n * max(top - 1.0, 1.0 - low) * (1.0 + 1e-9)
        return (
            _Sums.of(_gap_sums(self.side, self.n, top - u, left, reach, alone)),
            _Sums.of(_gap_sums(self.side, self.n, v - low, right, reach, alone)),
        )

    @cached_property
    def _weight(self) -> Array:
        """Probabilities that the rest has n - L - R slots, over what L and R have of it."""
        found, n = np.zeros((self.n + 1, self.n + 1)), self.n
        for left in range(n + 1 if self.left[0].size else 1):
            for right in range(n + 1 - left if self.right[0].size else 1):
                ways = math.comb(n, left) * math.comb(n - left, right)
                found[left, right] = ways * self.rest ** (n - left - right)
        return found

    @cached_property
    def _mass_error(self) -> float:
        """Relative error of products of masses: given, and of convolutions."""
        given = self.error * (1.0 + (1.0 / self.rest if self.rest > 0.0 else 0.0))
        terms = TERMS if self.tailed else POINTS + GRADED.size**2
        return 1.01 * self.n * (given + 4.0 * ROUNDOFF * (terms + 16.0))

    @property
    def _sign(self) -> float:
        return 1.0 if self.side is Side.UPPER else -1.0


@dataclass(frozen=True, eq=False)
class FewLaws:
    """A slot law of local noise known by finite laws below and above, each with a profile by sums of ratios.

    usual : the law by the contour. tail : what the finite laws leave out; where less may be missed, it is asked.
    """

    usual: SlotLaw | NoiseLaw
    below: FewSlots
    above: FewSlots
    tail: float

    def at(self, side: Side, tail: float) -> SlotLaw:
        """The law on a side, where the target's tail of that mass may be given away."""
        if tail < self.tail:
            return self.usual.at(side, tail)
        return self.above if side is Side.UPPER else self.below

    @cached_property
    def _mirror(self) -> FewLaws:
        below, above = self.below.reversed(), self.above.reversed()
        assert isinstance(below, FewSlots) and isinstance(above, FewSlots)
        return FewLaws(self.usual.reversed(), below, above, self.tail)

    def reversed(self) -> FewLaws:
        """R_0 and R_1 exchanged."""
        return self._mirror

    def sampled(self, cohort: Cohort) -> SlotLaw | NoiseLaw:
        """The law of a hidden cohort of n."""
        return self.usual.sampled(cohort)


def among_few(pair: SlotPair, below: SlotLaw, above: SlotLaw, *, tailed: bool = False, tail: float = 0.0) -> SlotPair:
    """The pair by sums of ratios; `pair` itself where users are many, or the kinds of reports others."""
    lower, upper = (FewSlots.of_side(side, law, tailed=tailed) for side, law in zip(Side, (below, above), strict=True))
    if lower is None or upper is None:
        return pair
    assert not isinstance(pair.law, FewLaws)
    return replace(pair, law=FewLaws(pair.law, lower, upper, tail))


@dataclass(frozen=True, eq=False)
class _Sums:
    """Laws of the sums of 0, 1, ..., n gaps: atoms start[k] to start[k + 1], ascending, and sums up to each atom."""

    start: NDArray[np.int64]
    gap: Array
    mass: Array
    prefix: Array
    moment: Array

    @classmethod
    def of(cls, atoms: list[Array]) -> _Sums:
        """From masses and moments, shape (2, atoms), of each sum."""
        start = np.append(0, np.cumsum([part.shape[1] for part in atoms])).astype(np.int64)
        prefix = np.concatenate([np.cumsum(part, axis=1) for part in atoms], axis=1)
        masses, moments = np.concatenate(atoms, axis=1)
        return cls(start, moments / masses, masses, *np.ascontiguousarray(prefix))


NOTHING = np.array([[1.0], [0.0]])  # the sum of no gaps


def _gap_sums(side: Side, n: int, gap: Array, mass: Array, reach: float, alone: bool) -> list[Array]:
    """Masses and moments of the sums of 0, ..., n gaps, up to `reach`.

    alone : all slots are of this kind, so that only the sum of n of them is needed.
    """
    gap, mass = gap[gap < reach], mass[gap < reach]
    span, step = float(gap.max(initial=0.0)), 1.0
    if span > 0.0:
        spread = max(_deviation(gap, mass), span / MOST)
        wanted = min(MOST, max(FEWEST, PER_DEVIATION * span / spread))
        if alone:
            wanted = POINTS * span / min(reach, n * span)
        step = span / math.ceil(wanted)
    one = _Sum.placed(side, gap / step, mass)
    most = math.ceil(reach / step) + 1
    sums = _all_sums(one, n, alone, lambda law, other: law.plus(other, most))
    return [NOTHING, *(NOTHING[:, :0] if law is None else np.array([[1.0], [step]]) * law.atoms for law in sums)]


def _all_sums(one: L, n: int, alone: bool, plus: Callable[[L, L], L]) -> Sequence[L | None]:
    """1, 2, ..., n times a law; `alone`: n times only."""

    def repeated(count: int) -> L:
        if count == 1:
            return one
        half = repeated(count // 2)
        both = plus(half, half)
        return plus(both, one) if count % 2 else both

    if alone:
        return [*[None] * (n - 1), repeated(n)]
    sums: Iterator[L] = accumulate(repeat(one, n), plus)
    return list(sums)


def _tailed_sums(side: Side, n: int, gap: Array, mass: Array, alone: bool) -> list[Array]:
    """The same where the largest gaps are far beyond most: a lattice, and cells that grow with the gap beyond it."""
    step = max(_deviation(gap, mass), 1e-6 * float(gap.max())) / PER_DEVIATION or 1.0
    # Splitting moves an atom up by a cell, at most 5 % with every slot.
    reach = 2.0 * max(1.0, n * float(gap.max()) / step / BULK)
    # Closer together where the tail begins.
    far = BULK * np.exp(math.log(reach) * np.linspace(0.0, 1.0, DISTANT + 1) ** 2)
    lattice, coarse = np.arange(BULK + 1.0), np.linspace(0.0, BULK, COARSE + 1)
    upper = side is Side.UPPER

    def placed(gaps: Array, masses: Array) -> Array:
        if upper:
            return _split(np.concatenate((lattice, far[1:])), gaps, masses)
        return _merged(np.concatenate((lattice[:-1] + 0.5, far)), gaps, masses)

    def summed(one: Array, other: Array) -> Array:
        """All gaps of one law with all of another."""
        (a, first), (b, second) = (
            (law[1, law[0] > 0.0] / law[0, law[0] > 0.0], law[0, law[0] > 0.0]) for law in (one, other)
        )
        return placed(np.add.outer(a, b).ravel(), np.outer(first, second).ravel())

    def coarser(law: Array) -> Array:
        """The bulk in fewer cells, to be added to what is far beyond it."""
        there = law[:, : BULK + 1][:, law[0, : BULK + 1] > 0.0]
        gaps = there[1] / there[0]
        return _split(coarse, gaps, there[0]) if upper else _merged(coarse, gaps, there[0])

    def plus(one: Array, other: Array) -> Array:
        bulk = np.zeros((2, 2 * BULK + 1))
        _add_product(bulk, one[:, : BULK + 1], other[:, : BULK + 1])
        if upper:  # all of it at points of the lattice
            bulk[1] = bulk[0] * np.arange(2 * BULK + 1.0)
        over = bulk[:, BULK + 1 :][:, bulk[0, BULK + 1 :] > 0.0]
        found = placed(over[1] / over[0], over[0])
        found[:, : BULK + 1] += bulk[:, : BULK + 1]
        distant, beyond = one[:, BULK + 1 :], other[:, BULK + 1 :]
        for part, rest in ((distant, coarser(other)), (distant, beyond), (beyond, coarser(one))):
            found += summed(part, rest)
        if upper:
            found[1] = found[0] * np.concatenate((lattice, far[1:]))
        return found

    sums = _all_sums(placed(gap / step, mass), n, alone, plus)
    shown = [NOTHING[:, :0] if law is None else law[:, law[0] > 0.0] for law in sums]
    return [NOTHING, *(np.array([[1.0], [step]]) * law for law in shown)]


def _deviation(gap: Array, mass: Array) -> float:
    mean = float(gap @ mass) / float(mass.sum())
    return math.sqrt(float((gap - mean) ** 2 @ mass) / float(mass.sum()))


@dataclass(frozen=True, eq=False)
class _Sum:
    """A law of gaps >= 0, in steps of the lattice: masses and moments, shape (2, slots).

    near : at 0, and in the cells of GRADED. far : at the points 1, 2, ... of the lattice, nothing at the first NEAR.
    Upper laws have their atoms at the cells' ends and at lattice points, lower ones somewhere in cells around them.
    """

    side: Side
    near: Array
    far: Array

    @classmethod
    def placed(cls, side: Side, gap: Array, mass: Array) -> _Sum:
        """Atoms on the slots: split between two of them, or merged."""
        points = max(NEAR + 1, math.ceil(float(gap.max(initial=0.0)) * (1.0 - 8.0 * ROUNDOFF)))
        lattice = np.arange(NEAR + 1.0, points + 1.0)
        if side is Side.UPPER:
            slots = _split(np.concatenate(([0.0], GRADED, lattice)), gap, mass)
        else:
            slots = _merged(np.concatenate(([0.0], GRADED, lattice + 0.5)), gap, mass)
        far = np.zeros((2, points))
        far[:, NEAR:] = slots[:, GRADED.size + 1 :]
        return cls(side, slots[:, : GRADED.size + 1], far)

    def plus(self, one: _Sum, most: int) -> _Sum:
        """The law of the sum of two independent gaps, up to so many points of the lattice."""
        sizes = self.far.shape[1], one.far.shape[1]
        far = np.zeros((2, sum(sizes) + NEAR + 1))
        _add_product(far[:, 1:], self.far, one.far)
        _add_product(far, self._coarse, one.far)
        _add_product(far, one._coarse, self.far)
        (gaps, masses), (more, others) = (law._near_atoms for law in (self, one))
        both = _Sum.placed(self.side, np.add.outer(gaps, more).ravel(), np.outer(masses, others).ravel())
        far[:, : both.far.shape[1]] += both.far
        if self.side is Side.UPPER:  # all of it at points of the lattice
            far[1] = far[0] * np.arange(1.0, far.shape[1] + 1.0)
        return _Sum(self.side, both.near, far[:, :most])

    @property
    def _coarse(self) -> Array:
        """What is near, at the points 0, 1, ..., NEAR + 1 of the lattice."""
        lattice = np.arange(NEAR + 2.0)
        if self.side is Side.UPPER:
            return _split(lattice, *self._near_atoms)
        return _merged(lattice + 0.5, *self._near_atoms)

    @property
    def _near_atoms(self) -> tuple[Array, Array]:
        mass, moment = self.near[:, self.near[0] > 0.0]
        return moment / mass, mass

    @property
    def atoms(self) -> Array:
        """Masses and moments of the slots that have mass, in ascending order of moment / mass."""
        slots = np.concatenate((self.near, self.far), axis=1)
        slots = slots[:, slots[0] > 0.0]
        return slots[:, np.argsort(slots[1] / slots[0], kind="stable")]


def _split(places: Array, gap: Array, mass: Array) -> Array:
    """(2, places): every atom split between the two places around it, its mean kept."""
    if gap.size and not float(gap.max()) <= places[-1] * (1.0 + 16.0 * ROUNDOFF):
        raise AssertionError("atoms beyond the last place")
    below = np.clip(np.searchsorted(places, gap, "right") - 1, 0, places.size - 2)
    share = np.clip((gap - places[below]) / (places[below + 1] - places[below]), 0.0, 1.0)
    masses = np.bincount(below, mass * (1.0 - share), places.size)
    masses += np.bincount(below + 1, mass * share, places.size)
    return np.stack((masses, masses * places)).astype(np.float64)  # integers of no atoms


def _merged(ends: Array, gap: Array, mass: Array) -> Array:
    """(2, cells): masses and moments of what is up to the first end, up to the second, ..."""
    cell = np.minimum(np.searchsorted(ends, gap, "left"), ends.size - 1)
    found = [np.bincount(cell, weight, ends.size) for weight in (mass, mass * gap)]
    return np.stack(found).astype(np.float64)


def _add_product(far: Array, one: Array, other: Array) -> None:
    """Add masses and moments of the sums of two gaps; their slots' numbers add up."""
    size = one.shape[1] + other.shape[1] - 1
    far[0, :size] += np.convolve(one[0], other[0])
    far[1, :size] += np.convolve(one[0], other[1]) + np.convolve(one[1], other[0])
