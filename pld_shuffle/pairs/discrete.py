"""Pairs given by their masses: one order of two datasets, or the worse of both.

A pair (P, Q) covers one order of the two datasets. Where neighbouring is symmetric the pair must dominate
both orders: its profile is the maximum of the two (a maximum of profiles is the profile of some pair).
Masses are given by their logarithms, so that they may be as small as they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

import numpy as np
from numpy.typing import ArrayLike

from ..numerics import kernels
from ..numerics.sides import ROUNDOFF, Array, Bounds, Side
from ..numerics.validation import real_array
from .pair import AddedUp, Atoms, Pair, Resolution, completed
from .profile import ProfilePair

MOST_SEPARATE = 1000  # atoms up to which none is put on a lattice
FAR_BEYOND = 1.1  # times the largest loss that was kept
LEAST_SCALE = 1e-8  # of losses that are not known to be 0
MOST_PAIRS = 10**7  # combinations of atoms
SUM_TOLERANCE = 1e-9  # how far masses may be from summing to 1


@dataclass(frozen=True, eq=False)
class Losses:
    """Atoms of one order, sorted by loss: P-masses, finite losses, and the P-mass at infinite loss."""

    mass: Array
    loss: Array
    infinity_mass: float
    error: float  # how far a loss may be off; masses are known to this relative precision

    @classmethod
    def of(cls, log_p: Array, log_q: Array) -> Losses:
        """From the logarithms of both laws' masses, arrays of one shape (outcomes,). O(outcomes log outcomes)."""
        seen = log_p > -math.inf
        log_p, log_q = log_p[seen], log_q[seen]
        finite = log_q > -math.inf
        loss = log_p[finite] - log_q[finite]
        order = np.argsort(loss, kind="stable")
        exponents = np.abs(np.concatenate((log_p, log_q[finite])))
        error = ROUNDOFF * (4.0 + 2.0 * float(exponents.max())) if np.any(loss) else 0.0  # equal logarithms are equal
        return cls(np.exp(log_p[finite][order]), loss[order], math.fsum(np.exp(log_p[~finite])), error)

    def atoms(self, side: Side, truncated_mass: float = 0.0, mass_error: float = 0.0, spare: float = 0.0) -> Atoms:
        """As `Atoms`, masses rounded to the safe side; `truncated_mass` and `mass_error` as in `EitherOrder`.

        spare : what may be left out on either end besides: the far tails of a long law.
        """
        factor = 1.0 + (2.0 if side is Side.UPPER else -2.0) * (self.error + mass_error)
        mass, loss = (self.mass * factor, self.loss) if self.mass.size else (np.zeros(1), np.zeros(1))
        size = mass.size
        first = min(int(np.searchsorted(np.cumsum(mass), spare)), size - 1)
        tail = np.cumsum(mass[::-1])
        last = max(size - int(np.searchsorted(tail, spare)), first + 1)
        lost = float(tail[size - last - 1]) * (1.0 + ROUNDOFF * size) if last < size else 0.0
        if side is Side.UPPER:  # the least losses move up, the largest to infinity
            first, loss = 0, np.maximum(loss, loss[first])
        return Atoms(
            mass[first:last], loss[first:last], self.infinity_mass * factor, truncated_mass + lost, 2.0 * self.error,
            separate=size <= MOST_SEPARATE,
        )  # fmt: skip

    @cached_property
    def _sums(self) -> tuple[Array, Array, Array]:
        """At every atom, and beyond all, its loss, the P-mass from there on, and H there."""
        hockey = np.zeros(self.mass.size + 1)
        kernels.hockey_at_atoms(self.mass, np.diff(self.loss, append=math.inf), hockey[:-1])
        above = np.append(np.cumsum(self.mass[::-1])[::-1], 0.0)
        return np.append(self.loss, math.inf), above, hockey

    def divergence(self, eps: Array) -> Array:
        """H at e^eps, without the infinite part: relative rounding 16 u + 8 u per atom.

        At a distance d below an atom, what was 1 - e^(l - L) there is (1 - e^-d) + e^-d (1 - e^(l - L)).
        """
        at = np.searchsorted(self.loss, eps)
        loss, above, hockey = (one[at] for one in self._sums)
        fall = np.expm1(np.minimum(eps, 1e300) - loss)  # as exact as needed in 1 + fall: hockey <= above
        return np.asarray((1.0 + fall) * hockey - fall * above)

    def beside(self, other: Losses, eps: Array) -> Array:
        """H at e^eps of both outcomes together, independent of each other, infinite parts included: to nearest."""
        found = self.divergence(np.subtract.outer(eps, other.loss)) @ other.mass
        return np.asarray(found + self.infinity_mass + other.infinity_mass * (1.0 - self.infinity_mass))

    def bounds(self, expm1_eps: Array, mass_error: float) -> Bounds:
        """Of the profile, infinite part and all errors included. O(atoms) once, and O(growths log atoms)."""
        eps = np.log1p(expm1_eps)
        shift = 4.0 * self.error + 4.0 * ROUNDOFF * eps
        relative = 2.0 * (self.error + mass_error) + ROUNDOFF * (32.0 + 10.0 * self.mass.size)
        low, high = self.divergence(np.array([eps + shift, eps - shift])) + self.infinity_mass
        return Bounds(low * (1.0 - relative), high * (1.0 + relative))

    def with_independent(self, other: Losses) -> Losses:
        """The law of the sum of two independent losses. O(atoms log atoms) for all pairs of atoms."""
        loss = np.add.outer(self.loss, other.loss).ravel()
        order = np.argsort(loss, kind="stable")
        mass = np.multiply.outer(self.mass, other.mass).ravel()[order]
        infinity_mass = self.infinity_mass + other.infinity_mass * (1.0 - self.infinity_mass)
        error = self.error + other.error + 4.0 * ROUNDOFF * (1.0 + float(np.abs(loss).max(initial=0.0)))
        return Losses(mass, loss[order], infinity_mass, error)

    @property
    def top(self) -> float:
        """The largest finite loss, to nearest; 0 if there is none."""
        return float(self.loss[-1]) if self.loss.size else 0.0


@dataclass(frozen=True, eq=False)
class OrderedPair(Pair):
    """One order of a pair given by its masses; `truncated_mass` as in `EitherOrder`."""

    losses: Losses
    truncated_mass: float = 0.0
    mass_error: float = 0.0
    symmetric = False

    @property
    def max_loss(self) -> Bounds:
        return _largest([self.losses]) if self.truncated_mass == 0.0 else Bounds(math.inf, math.inf)

    @property
    def scale(self) -> float:
        return _scale([self.losses])

    def profile(self, expm1_eps: Array, rtol: float = 0.0, truncated_mass: float = 0.0) -> Bounds:
        """Bounds at growths; as exact as masses are known, whatever is asked for."""
        found = self.losses.bounds(expm1_eps, self.mass_error)
        return Bounds(found.lower, np.minimum(found.upper + self.truncated_mass, 1.0))

    def atoms(self, sides: Sequence[Side], resolution: Resolution) -> list[Atoms]:
        spare = resolution.truncated_mass if self.losses.mass.size > MOST_SEPARATE else 0.0
        return [self.losses.atoms(side, self.truncated_mass, self.mass_error, spare) for side in sides]


@dataclass(frozen=True, eq=False)
class EitherOrder(ProfilePair):
    """The worse of two orders at every epsilon; of one, where both are alike.

    missed : P-mass that is in neither order's atoms. largest : no loss of it is larger; inf where nothing is known.
    mass_error : relative error of all masses, besides that of the losses.
    """

    orders: tuple[Losses, ...]
    truncated_mass: float = 0.0
    largest: float = math.inf
    mass_error: float = 0.0
    pointwise = False

    @classmethod
    def mirrored(cls, mass: Array, loss: Array, infinity_mass: float) -> EitherOrder:
        """The symmetric pair with these P-masses at losses above 0, which ascend, and at infinite loss."""
        behind = mass * np.exp(-loss)
        still = max(0.0, 1.0 - math.fsum((infinity_mass, *mass.tolist(), *behind.tolist())))
        every = np.concatenate((behind[::-1], [still], mass)), np.concatenate((-loss[::-1], [0.0], loss))
        error = 4.0 * ROUNDOFF * float(loss.max(initial=0.0))
        return cls((Losses(*every, infinity_mass, error),), mass_error=8.0 * ROUNDOFF)

    def atoms(self, sides: Sequence[Side], resolution: Resolution) -> list[Atoms]:
        """Of two orders by points of their profile; one order is its own mirror image, and has atoms."""
        if len(self.orders) > 1:
            return super().atoms(sides, resolution)
        return [completed(self._one_order(side, resolution), side) for side in sides]

    def _one_order(self, side: Side, resolution: Resolution) -> Atoms:
        [order] = self.orders
        if order.mass.size > MOST_SEPARATE:
            return order.atoms(side, self.truncated_mass, self.mass_error, resolution.truncated_mass)
        found = order.atoms(side, self.truncated_mass, self.mass_error)
        # A negligible atom far beyond all others is better at infinity.
        if self.truncated_mass == 0.0 or self.largest > FAR_BEYOND * self.orders[0].top:
            return found
        lost = self.truncated_mass if side is Side.UPPER else 0.0
        mass, loss = (np.append(found.mass, lost), np.append(found.loss, self.largest * (1.0 + 4e-15)))
        return replace(found, mass=mass, loss=np.maximum.accumulate(loss), truncated_mass=0.0)

    def profile(self, expm1_eps: Array, rtol: float, truncated_mass: float) -> Bounds:
        known = [order.bounds(expm1_eps, self.mass_error) for order in self.orders]
        lower, upper = (np.max(ends, axis=0) for ends in zip(*known, strict=True))
        upper += np.where(np.log1p(expm1_eps) < self.largest * (1.0 + 4e-15), self.truncated_mass, 0.0)
        return Bounds(lower, np.minimum(upper, 1.0))

    @property
    def ordered(self) -> tuple[OrderedPair, OrderedPair]:
        """Either order by itself, and its reverse."""
        one, *other = (OrderedPair(order, self.truncated_mass, self.mass_error) for order in self.orders)
        return one, other[0] if other else one

    @property
    def _error(self) -> float:
        return max(order.error for order in self.orders)

    @cached_property
    def max_loss(self) -> Bounds:  # type: ignore[override]
        if self.truncated_mass == 0.0 or any(order.infinity_mass > 0.0 for order in self.orders):
            return _largest(self.orders)
        return Bounds(self.largest * (1.0 - 4e-15), self.largest * (1.0 + 4e-15))

    @cached_property
    def scale(self) -> float:  # type: ignore[override]
        return _scale(self.orders)

    @property
    def infinity_mass(self) -> float:
        infinity_mass = max(order.infinity_mass for order in self.orders)
        return infinity_mass * (1.0 - 2.0 * (self._error + self.mass_error))

    @property
    def top_mass(self) -> float:
        if self.infinity_mass > 0.0 or self.truncated_mass > 0.0:
            return 0.0
        near = max(order.top for order in self.orders) - 2.0 * self._error
        sums = [float(order.mass[order.loss >= near].sum()) for order in self.orders]
        return max(sums) * (1.0 - 4.0 * (self._error + self.mass_error))


@dataclass(frozen=True, eq=False)
class Together(AddedUp):
    """Independent outcomes of several pairs, each so many times: their product."""

    parts: tuple[tuple[Pair, int], ...]

    def repeated(self, count: int) -> list[tuple[Pair, int]]:
        """The parts themselves: nobody needs the product."""
        return [(pair, count * times) for pair, times in self.parts]

    def atoms(self, sides: Sequence[Side], resolution: Resolution) -> list[Atoms]:
        """All combinations of atoms, for a law of one round. MemoryError beyond MOST_PAIRS of them."""
        found = []
        for side in sides:
            each = [law for pair, times in self.parts for law in pair.atoms([side], resolution) * times]
            if not (size := math.prod(law.mass.size for law in each)) <= MOST_PAIRS:
                raise MemoryError(f"a product of {size} atoms is over the limit of {MOST_PAIRS}")
            laws = (Losses(law.mass, law.loss, law.infinity_mass, law.loss_error) for law in each)
            law, missed = reduce(Losses.with_independent, laws), sum(law.truncated_mass for law in each)
            found.append(Atoms(law.mass, law.loss, law.infinity_mass, missed, law.error))
        return found


#: Nothing at all is told.
NOTHING = EitherOrder.mirrored(np.empty(0), np.empty(0), 0.0)


def _largest(orders: Sequence[Losses]) -> Bounds:
    if any(order.infinity_mass > 0.0 for order in orders):
        return Bounds(math.inf, math.inf)
    top, error = max(order.top for order in orders), max(order.error for order in orders)
    if top == 0.0 < error:
        return Bounds(0.0, math.inf)  # not known: no lattice is as fine as the error
    return Bounds(max(0.0, top - error), max(0.0, top + error))


def _scale(orders: Sequence[Losses]) -> float:
    """Root of the mean square of the finite losses; about 1 where all are 0 but some are infinite.

    Losses that are 0 but for their error may be something: 0 would say that there is nothing to tell.
    """
    least = LEAST_SCALE if any(order.error > 0.0 for order in orders) else 0.0
    scale = max(math.sqrt(float(order.mass @ order.loss**2)) for order in orders)
    lost = any(order.infinity_mass > 0.0 for order in orders)
    return 1.0 if lost and scale < 1e-12 else max(scale, least)


def checked_pmfs(log_p: ArrayLike, log_q: ArrayLike) -> tuple[Array, Array]:
    """Both as float arrays of one shape (outcomes,); ValueError or TypeError naming the wrong one."""
    found = []
    for name, value in (("log_p", log_p), ("log_q", log_q)):
        array = real_array(name, value)
        if not (array.ndim == 1 and array.size > 0):
            raise ValueError(f"{name} must be a non-empty one-dimensional array, got {array.shape}")
        if not bool(np.all(array <= SUM_TOLERANCE)):
            raise ValueError(f"{name} must hold logarithms of probabilities, got {array.max()!r}")
        total = math.fsum(np.exp(array))
        if not abs(total - 1.0) <= SUM_TOLERANCE:
            raise ValueError(f"{name} must be the logarithms of masses that sum to 1, got {total!r}")
        found.append(array)
    if found[0].shape != found[1].shape:
        raise ValueError(f"log_q must have as many outcomes as log_p, got {found[1].size} and {found[0].size}")
    return found[0], found[1]
