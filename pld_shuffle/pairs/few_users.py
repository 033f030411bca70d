"""Slots of few users, whose ratios to the others' law are continuous: sums of ratios instead of a contour.

Local noise has slot laws (`pairs.slots`) of three kinds of reports: on the left R_1 = W, and u = R_0/W varies; on the
right R_0 = W, and v = R_1/W varies; the rest of W says nothing. With L slots on the left and R on the right

    H_s = (1/n) sum over L, R of P(L, R) E (u_1 + ... + u_L + R - s (L + v_1 + ... + v_R))_+ .

The laws of the sums U of u and V of v do not depend on s: they are made once for each number of slots, on a lattice.
A sum is kept as what it is short of its largest value (U), or above its smallest (V), and cells are graded there, so
that losses next to the largest one keep their precision. Placing an atom between two points with its mean kept makes
(.)_+ larger, merging atoms makes it smaller (docs/theory.md, section 8).

Either side is a law of its own, known to rounding: so points of its profile may be as close as one likes. The
contour of `pairs.blanket` decays slowly where the sum has few terms, and not at all next to the largest loss.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, repeat

import numpy as np
from numpy.typing import NDArray

from ..numerics.rounding import ROUNDOFF
from ..numerics.sides import Bounds, Side

Array = NDArray[np.float64]

MOST_USERS = 32
PER_DEVIATION = 128.0  # lattice points, of one slot's ratio
FEWEST, MOST = 256, 1024  # lattice points of one slot
POINTS = 10_000  # of the sum of all slots, where they are of one kind
NEAR = 4  # steps of the lattice next to the largest loss, in which cells are graded
GRADED = np.append(0.25 * 0.7 ** np.arange(64.0, 0.0, -1.0), np.arange(0.25, NEAR + 0.75, 0.25))


@dataclass(frozen=True, eq=False)
class FewSlots:
    """The profile of a slot law's side: n slots, (u or v, mass) of the left and of the right ones, mass of the rest.

    error : of the masses, relative; that of the ratios is twice as much.
    """

    side: Side
    n: int
    left: tuple[Array, Array]
    right: tuple[Array, Array]
    rest: float
    error: float

    @classmethod
    def of(
        cls, side: Side, n: int, first: Array, second: Array, others: Array, rest: float, error: float
    ) -> FewSlots | None:  # fmt: skip
        """From masses of groups; None for other kinds of reports, too many users, or a rest that may be none."""
        left, right = second == others, first == others
        known = bool(np.all((others > 0.0) & (left | right)))
        if not known or n > MOST_USERS or 0.0 < rest < 1e-9:
            return None
        right &= ~left
        u, v = (law[kind] / others[kind] for law, kind in ((first, left), (second, right)))
        return cls(side, n, (u, others[left]), (v, others[right]), rest, error)

    def profile(self, growth: Array) -> Bounds:
        """Bounds on H_s of this side's law at s = 1 + growth >= 1; O(n^2) lattice points each."""
        from .few_users_kernels import positive_parts

        (top, low, high), (u, v) = self._ends, self._sums
        total, error = np.empty(growth.size), np.empty(growth.size)
        sign = 1.0 if self.side is Side.UPPER else -1.0
        wrong = sign * (4.0 * self.error + 32.0 * ROUNDOFF)
        positive_parts(
            self.n, self._weight, top, low, high, wrong, u.start, u.gap, u.prefix, u.moment, v.start, v.gap,
            v.mass, growth, total, error,
        )  # fmt: skip
        relative = error + self._doubt * total
        return Bounds(
            np.maximum(total - relative, 0.0) / self.n * (1.0 - 4.0 * ROUNDOFF),
            (total + relative) / self.n * (1.0 + 4.0 * ROUNDOFF),
        )

    @property
    def top_mass(self) -> float:
        """A lower bound on the P-mass at the largest loss: every slot that says anything has the largest ratio."""
        top, low, _ = self._ends
        (u, left), (v, right) = self.left, self.right
        mass, gain = (right[v == low], 1.0) if top * low < 1.0 else (left[u == top], top)
        share = float(mass.sum())
        found = gain * share * (self.rest + share) ** (self.n - 1)
        return found * (1.0 - self._doubt - 2.0 * self.n * self.error)

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
        # No sum of gaps of that size leaves anything positive.
        reach = self.n * max(top - 1.0, 1.0 - low) * (1.0 + 1e-9)
        return (
            _Sums.of(self.side, self.n, top - u, left, reach, alone),
            _Sums.of(self.side, self.n, v - low, right, reach, alone),
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
    def _doubt(self) -> float:
        """Relative error of products of masses: given, and of convolutions."""
        given = self.error * (1.0 + (1.0 / self.rest if self.rest > 0.0 else 0.0))
        return 1.01 * self.n * (given + 4.0 * ROUNDOFF * (POINTS + GRADED.size**2 + 16.0))


@dataclass(frozen=True, eq=False)
class _Sums:
    """Laws of the sums of 0, 1, ..., n gaps: atoms start[k] to start[k + 1], ascending, and sums up to each atom."""

    start: NDArray[np.int64]
    gap: Array
    mass: Array
    prefix: Array
    moment: Array

    @classmethod
    def of(cls, side: Side, n: int, gap: Array, mass: Array, reach: float, alone: bool) -> _Sums:
        """alone : all slots are of this kind, so that only the sum of n of them is needed."""
        gap, mass = gap[gap < reach], mass[gap < reach]
        span, step = float(gap.max(initial=0.0)), 1.0
        if span > 0.0:
            mean, whole = float(gap @ mass) / mass.sum(), float(mass.sum())
            deviation = math.sqrt(float((gap - mean) ** 2 @ mass) / whole)
            spread = max(deviation, span / MOST)
            wanted = min(MOST, max(FEWEST, PER_DEVIATION * span / spread))
            if alone:
                wanted = POINTS * span / min(reach, n * span)
            step = span / math.ceil(wanted)
        one = _Sum.placed(side, gap / step, mass)
        most = math.ceil(reach / step) + 1
        atoms = [np.array([[1.0], [0.0]])]
        if alone:
            atoms += [np.empty((2, 0))] * (n - 1) + [one.repeated(n, most).atoms]
        else:
            sums = accumulate(repeat(one, n), lambda law, other: law.plus(other, most))
            atoms += [law.atoms for law in sums]
        start = np.append(0, np.cumsum([part.shape[1] for part in atoms])).astype(np.int64)
        scale = np.array([[1.0], [step]])
        prefix = scale * np.concatenate([np.cumsum(part, axis=1) for part in atoms], axis=1)
        masses, moments = scale * np.concatenate(atoms, axis=1)
        return cls(start, moments / masses, masses, *np.ascontiguousarray(prefix))


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
        points = max(NEAR + 1, math.ceil(float(gap.max(initial=0.0)) * (1.0 - 1e-12)))
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
        both = _Sum.placed(
            self.side, np.add.outer(gaps, more).ravel(), np.outer(masses, others).ravel()
        )
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

    def repeated(self, count: int, most: int) -> _Sum:
        """The law of the sum of `count` such gaps."""
        if count == 1:
            return self
        half = self.repeated(count // 2, most)
        both = half.plus(half, most)
        return both.plus(self, most) if count % 2 else both

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
    below = np.clip(np.searchsorted(places, gap, "right") - 1, 0, places.size - 2)
    share = np.clip((gap - places[below]) / (places[below + 1] - places[below]), 0.0, 1.0)
    masses = np.bincount(below, mass * (1.0 - share), places.size)
    masses += np.bincount(below + 1, mass * share, places.size)
    return np.stack((masses, masses * places))


def _merged(ends: Array, gap: Array, mass: Array) -> Array:
    """(2, cells): masses and moments of what is up to the first end, up to the second, ..."""
    cell = np.minimum(np.searchsorted(ends, gap, "left"), ends.size - 1)
    return np.stack([np.bincount(cell, weight, ends.size) for weight in (mass, mass * gap)])


def _add_product(far: Array, one: Array, other: Array) -> None:
    """Add masses and moments of the sums of two gaps; their slots' numbers add up."""
    size = one.shape[1] + other.shape[1] - 1
    far[0, :size] += np.convolve(one[0], other[0])
    far[1, :size] += np.convolve(one[0], other[1]) + np.convolve(one[1], other[0])
