"""A pair given by its probability mass functions.

`DiscretePair` is a mechanism like any other; `PLD.from_pmfs` is the law of one ordered pair. Masses are
given by their logarithms, so that they may be as small as they are.

A pair (P, Q) covers one order of the two datasets. Where neighbouring is symmetric the pair must dominate
both orders: its profile is the maximum of the two (a maximum of profiles is the profile of some pair).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .atoms import Atoms, placed
from .bracket import Bounds, Side
from .crowd import Resolution
from .mechanism import Mechanism, ProfileMechanism
from .pld import PLD
from .validation import real_array

Array = NDArray[np.float64]

SUM_TOLERANCE = 1e-9  # how far masses may be from summing to 1
_U = 2.0**-53


@dataclass(frozen=True, eq=False)
class Losses:
    """Atoms of one order, sorted by loss: P-masses, finite losses, and the P-mass at infinite loss."""

    mass: Array
    loss: Array
    infinite: float
    error: float  # how far a loss may be off; masses are known to this relative precision

    @classmethod
    def of(cls, log_p: Array, log_q: Array) -> Losses:
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
            _U * (4.0 + 2.0 * float(exponents.max())),
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


@dataclass(frozen=True)
class DiscretePair(ProfileMechanism):
    """A mechanism whose dominating pair is given by finite mass functions.

    Parameters
    ----------
    log_p, log_q : natural logarithms of the masses of P and Q, one entry per outcome (-inf for 0);
        each sums to 1 within 1e-9.
    symmetric : True (default) covers both orders, (P, Q) and (Q, P); False is the ordered pair alone, for a
        neighbouring relation whose datasets are in that order, or if both orders are composed.

    That the pair dominates what was run is the caller's claim. Raises ValueError or TypeError.

    >>> pair = DiscretePair([math.log(0.75), math.log(0.25)], [math.log(0.25), math.log(0.75)])
    >>> round(pair.max_loss, 6)  # binary randomised response with eps0 = log 3
    1.098612
    """

    log_p: tuple[float, ...]
    log_q: tuple[float, ...]
    symmetric: bool = True

    def __post_init__(self) -> None:
        log_p, log_q = checked_pmfs(self.log_p, self.log_q)
        object.__setattr__(self, "log_p", tuple(log_p.tolist()))
        object.__setattr__(self, "log_q", tuple(log_q.tolist()))
        if not isinstance(self.symmetric, bool):
            raise TypeError(f"symmetric must be True or False, got {self.symmetric!r}")

    @cached_property
    def _orders(self) -> tuple[Losses, ...]:
        """The orders that are covered."""
        log_p, log_q = np.array(self.log_p), np.array(self.log_q)
        one = Losses.of(log_p, log_q)
        return (one, Losses.of(log_q, log_p)) if self.symmetric else (one,)

    @cached_property
    def _top(self) -> float:
        return max(
            (float(order.loss[-1]) for order in self._orders if order.loss.size), default=0.0
        )

    @property
    def _error(self) -> float:
        return max(order.error for order in self._orders)

    @property
    def max_loss(self) -> float:
        """The largest loss, rounded upwards; inf if a loss is infinite."""
        if self.infinite_mass > 0.0:
            return math.inf
        return self._top + self._error if self._top > 0.0 else 0.0

    @property
    def max_loss_below(self) -> float:
        return self.max_loss if self.max_loss in (0.0, math.inf) else self._top - self._error

    @property
    def infinite_mass(self) -> float:
        return max(order.infinite for order in self._orders) * (1.0 - 2.0 * self._error)

    @property
    def top_mass(self) -> float:
        if self.infinite_mass > 0.0 or not self.symmetric:
            return 0.0
        near = self._top - 2.0 * self._error
        sums = [float(order.mass[order.loss >= near].sum()) for order in self._orders]
        return max(sums) * (1.0 - 4.0 * self._error)

    @cached_property
    def loss_scale(self) -> float:  # type: ignore[override]
        """Root of the mean square of the finite losses; about 1 where all are 0 but some are infinite."""
        scale = 0.0
        for order in self._orders:
            scale = max(scale, math.sqrt(float(order.mass @ order.loss**2)))
        lost = any(order.infinite > 0.0 for order in self._orders)
        return 1.0 if lost and scale < 1e-12 else scale

    def profile(self, growth: Array) -> Bounds:
        ascending = np.argsort(growth, kind="stable")
        eps = np.log1p(growth[ascending])
        shift = 4.0 * self._error + 4.0 * _U * eps
        relative = 2.0 * self._error + _U * (16.0 + 8.0 * growth.size + 2.0 * len(self.log_p))
        lower, upper = np.zeros(growth.size), np.zeros(growth.size)
        for order in self._orders:
            high = order.divergence(eps - shift) + order.infinite
            low = order.divergence(eps + shift) + order.infinite
            upper = np.maximum(upper, high * (1.0 + relative))
            lower = np.maximum(lower, low * (1.0 - relative))
        # At the largest loss nothing finite is left, however eps was rounded.
        over = eps >= (self._top + self._error) * (1.0 - 4.0 * _U)
        limit = max(order.infinite for order in self._orders)
        upper[over] = limit * (1.0 + relative)
        lower[over] = limit * (1.0 - relative)
        bounds = Bounds(np.empty(growth.size), np.empty(growth.size))
        bounds.lower[ascending], bounds.upper[ascending] = lower, np.minimum(upper, 1.0)
        return bounds

    def form(
        self, *, step: float, side: Side, resolution: Resolution, reach: float = math.inf
    ) -> PLD:
        if self.symmetric:
            return super().form(step=step, side=side, resolution=resolution, reach=reach)
        return placed(
            self._orders[0].atoms(side), step=step, side=side, reach=reach, max_loss=self.max_loss
        )

    def both(
        self, *, step: float, resolution: Resolution, reach: float = math.inf
    ) -> tuple[PLD, PLD]:
        if self.symmetric:
            return super().both(step=step, resolution=resolution, reach=reach)
        return Mechanism.both(self, step=step, resolution=resolution, reach=reach)

    def on_cohort(self, rate: float) -> Mechanism:
        if not self.symmetric:
            return Mechanism.on_cohort(self, rate)
        return super().on_cohort(rate)

    def __repr__(self) -> str:
        return f"DiscretePair({len(self.log_p)} outcomes, symmetric={self.symmetric})"

    def assumptions(self) -> dict[str, str]:
        orders = "in either order" if self.symmetric else "in the given order"
        return {
            "neighbours": f"two neighbouring datasets, {orders}",
            "adversary": "sees one of the outcomes of the pair",
            "analysis": f"the given pair of {len(self.log_p)} outcomes dominates what was run",
            "sampling": "none besides what the pair accounts for",
        }


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


def pld_from_pmfs(log_p: ArrayLike, log_q: ArrayLike, *, step: float, side: Side) -> PLD:
    """The law of the ordered pair on one side; see `PLD.from_pmfs`."""
    losses = Losses.of(*checked_pmfs(log_p, log_q))
    top = float(losses.loss[-1]) if losses.loss.size else 0.0
    return placed(
        losses.atoms(side), step=step, side=side, reach=math.inf,
        max_loss=top + losses.error * (1.0 if side is Side.UPPER else -1.0),
    )  # fmt: skip
