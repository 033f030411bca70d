"""Pairs given by their masses: one order of two datasets, or the worse of both.

A pair (P, Q) covers one order of the two datasets. Where neighbouring is symmetric the pair must dominate
both orders: its profile is the maximum of the two (a maximum of profiles is the profile of some pair).
Masses are given by their logarithms, so that they may be as small as they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..numerics.lattice import HockeySums
from ..numerics.rounding import ROUNDOFF, above
from ..numerics.sides import Bounds, Side
from ..numerics.validation import real_array
from .pair import Atoms, Pair, Resolution
from .profile import ProfilePair

Array = NDArray[np.float64]

SUM_TOLERANCE = 1e-9  # how far masses may be from summing to 1


@dataclass(frozen=True, eq=False)
class Losses:
    """Atoms of one order, sorted by loss: P-masses, finite losses, and the P-mass at infinite loss."""

    mass: Array
    loss: Array
    infinite: float
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
        return cls(
            np.exp(log_p[finite][order]),
            loss[order],
            math.fsum(np.exp(log_p[~finite])),
            ROUNDOFF * (4.0 + 2.0 * float(exponents.max())),
        )

    def atoms(self, side: Side) -> Atoms:
        """As `Atoms`, masses rounded to the safe side."""
        factor = 1.0 + (2.0 if side is Side.UPPER else -2.0) * self.error
        mass, loss = (self.mass, self.loss) if self.mass.size else (np.zeros(1), np.zeros(1))
        return Atoms(mass * factor, loss, self.infinite * factor, 0.0, 2.0 * self.error, mass.size)

    def divergence(self, eps: Array) -> Array:
        """H at e^eps for ascending eps, without the infinite part: relative rounding 8 u per eps and atom.

        From the top downwards, with d the distance to the next eps above: what was (1 - e^(eps' - L))
        becomes (1 - e^-d) + e^-d (1 - e^(eps' - L)); all terms are nonnegative.
        """
        index = np.searchsorted(eps, self.loss, side="left") - 1  # the last eps below the loss
        held = index >= 0
        index, mass, loss = index[held], self.mass[held], self.loss[held]
        own = np.bincount(index, -mass * np.expm1(eps[index] - loss), eps.size)
        weight = np.bincount(index, mass, eps.size)
        gap = np.diff(eps, append=math.inf)
        fall = -np.expm1(-gap)
        out = np.empty(eps.size)
        above = value = 0.0
        for j in range(eps.size - 1, -1, -1):
            value = own[j] + fall[j] * above + (1.0 - fall[j]) * value
            above += weight[j]
            out[j] = value
        return out

    @property
    def top(self) -> float:
        """The largest finite loss, to nearest; 0 if there is none."""
        return float(self.loss[-1]) if self.loss.size else 0.0


@dataclass(frozen=True, eq=False)
class OrderedPair(Pair):
    """One order of a pair given by its masses."""

    losses: Losses

    @property
    def max_loss(self) -> Bounds:
        return _largest([self.losses])

    @property
    def scale(self) -> float:
        return _scale([self.losses])

    @property
    def symmetric(self) -> bool:
        return False

    def atoms(self, sides: Sequence[Side], resolution: Resolution) -> list[Atoms]:
        return [self.losses.atoms(side) for side in sides]


@dataclass(frozen=True, eq=False)
class EitherOrder(ProfilePair):
    """The worse of two orders at every epsilon."""

    orders: tuple[Losses, Losses]
    pointwise = False

    def profile(self, growth: Array, rtol: float, missed: float) -> Bounds:
        error = self._error
        ascending = np.argsort(growth, kind="stable")
        eps = np.log1p(growth[ascending])
        shift = 4.0 * error + 4.0 * ROUNDOFF * eps
        size = sum(order.mass.size for order in self.orders)
        relative = 2.0 * error + ROUNDOFF * (16.0 + 8.0 * growth.size + 2.0 * size)
        lower, upper = np.zeros(growth.size), np.zeros(growth.size)
        for order in self.orders:
            high = order.divergence(eps - shift) + order.infinite
            low = order.divergence(eps + shift) + order.infinite
            upper = np.maximum(upper, high * (1.0 + relative))
            lower = np.maximum(lower, low * (1.0 - relative))
        bounds = Bounds(np.empty(growth.size), np.empty(growth.size))
        bounds.lower[ascending], bounds.upper[ascending] = lower, np.minimum(upper, 1.0)
        return bounds

    @property
    def _error(self) -> float:
        return max(order.error for order in self.orders)

    @property
    def max_loss(self) -> Bounds:
        return _largest(self.orders)

    @property
    def scale(self) -> float:
        return _scale(self.orders)

    @property
    def infinite_mass(self) -> float:
        infinite = max(order.infinite for order in self.orders)
        return infinite * (1.0 - 2.0 * self._error)

    @property
    def top_mass(self) -> float:
        if self.infinite_mass > 0.0:
            return 0.0
        near = max(order.top for order in self.orders) - 2.0 * self._error
        sums = [float(order.mass[order.loss >= near].sum()) for order in self.orders]
        return max(sums) * (1.0 - 4.0 * self._error)


@dataclass(frozen=True)
class LatticePair(ProfilePair):
    """The symmetric pair with P-mass masses[i] at loss (low + i) step > 0, `infinity` at infinite loss."""

    step: float
    low: int
    masses: tuple[float, ...]
    infinity: float

    @property
    def max_loss(self) -> Bounds:
        if self.infinity > 0.0:
            return Bounds(math.inf, math.inf)
        top = above((self.low + len(self.masses) - 1) * self.step) if self.masses else 0.0
        return Bounds(top * (1.0 - 4e-15), top)

    @property
    def infinite_mass(self) -> float:
        return self.infinity * (1.0 - 4.0 * ROUNDOFF)

    @cached_property
    def scale(self) -> float:  # type: ignore[override]
        p = np.array(self.masses, np.float64)
        x = (self.low + np.arange(p.size)) * self.step
        scale = math.sqrt(float(np.sum(p * x * x * (1.0 + np.exp(-x)))))
        return max(scale, self.step if self.infinity > 0.0 else 0.0)

    @cached_property
    def _sums(self) -> HockeySums:
        return HockeySums.of(np.array(self.masses, np.float64), self.low, self.step)

    def profile(self, growth: Array, rtol: float, missed: float) -> Bounds:
        finite = self._sums.at(growth)
        return Bounds(
            (finite.lower + self.infinity * (1.0 - 2.0 * ROUNDOFF)) * (1.0 - 2.0 * ROUNDOFF),
            np.minimum((finite.upper + self.infinity) * (1.0 + 4.0 * ROUNDOFF), 1.0),
        )


def _largest(orders: Sequence[Losses]) -> Bounds:
    if any(order.infinite > 0.0 for order in orders):
        return Bounds(math.inf, math.inf)
    top, error = max(order.top for order in orders), max(order.error for order in orders)
    return Bounds(top - error, top + error) if top > 0.0 else Bounds(0.0, 0.0)


def _scale(orders: Sequence[Losses]) -> float:
    """Root of the mean square of the finite losses; about 1 where all are 0 but some are infinite."""
    scale = max(math.sqrt(float(order.mass @ order.loss**2)) for order in orders)
    lost = any(order.infinite > 0.0 for order in orders)
    return 1.0 if lost and scale < 1e-12 else scale


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
            raise ValueError(
                f"{name} must be the logarithms of masses that sum to 1, got {total!r}"
            )
        found.append(array)
    if found[0].shape != found[1].shape:
        raise ValueError(
            f"log_q must have as many outcomes as log_p, got {found[1].size} and {found[0].size}"
        )
    return found[0], found[1]
