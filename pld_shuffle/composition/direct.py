"""Products of laws on one lattice by sums of nonnegative products: relative accuracy everywhere, quadratic cost.

For the rare composition whose tilted law has a deep valley at the losses of interest (one round in the bulk, or one
near its largest loss, but little between), where no tilt lifts them over the rounding of an integral. Nothing is
subtracted, so every number has a relative error, and no mass is left out. One round needs no lattice: its atoms are
read where they lie.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..numerics import kernels
from ..numerics.rounding import ROUNDOFF
from ..numerics.sides import Bounds, Side
from ..numerics.tuning import DIRECT_WORK
from ..pairs.pair import Pair
from .aliases import TooExpensive
from .moments import Rounds
from .plan import Plan
from .pld import PLD, compose_infinity, formed
from .product import shared_lattice
from .reading import Question, Reading

Array = NDArray[np.float64]

UNDERFLOW = 1e-290  # more than the products that underflow, in all


class DirectReading(Reading):
    """Both sides of a composition by direct convolution."""

    def __init__(self, lower: _Side | _OneRound, upper: _Side | _OneRound, plan: Plan) -> None:
        self._lower, self._upper, self.stride = lower, upper, 1.0 / plan.rate
        self.infinity = Bounds(lower.infinity * (1.0 - 2e-15), min(1.0, upper.infinity * (1.0 + 2e-15)))

    @classmethod
    def of(cls, ledger: Sequence[tuple[Pair, int]], plan: Plan, question: Question | None = None) -> DirectReading:
        """The composition of a ledger. Raises TooExpensive or MemoryError."""
        if plan.rounds == 1:
            [(pair, _)] = ledger
            below, above = Rounds.of(pair, 1, plan.resolutions(ledger))
            if isinstance(below, Rounds) and isinstance(above, Rounds):
                return cls(_OneRound(below), _OneRound(above), plan)
        resolution = shared_lattice(plan, [pair for pair, _ in ledger])
        both = [formed(pair, (Side.LOWER, Side.UPPER), resolution, plan.max_gap) for pair, _ in ledger]
        counts = [count for _, count in ledger]
        lower, upper = (_Side(list(zip(laws, counts, strict=True))) for laws in zip(*both, strict=True))
        return cls(lower, upper, plan)

    def lowers(self, eps: Array) -> Array:
        return np.asarray(self._lower.read(eps + self._lower.loss_error + 1e-15 * eps, -1.0) + self.infinity.lower)

    def uppers(self, eps: Array) -> Array:
        found = self._upper.read(eps - self._upper.loss_error - 1e-15 * eps, 1.0) + self.infinity.upper
        return np.asarray(np.minimum(1.0, found * (1.0 + 1e-15)))


class _OneRound:
    """The atoms of one round on one side."""

    def __init__(self, law: Rounds) -> None:
        self._law, self.loss_error, self.infinity = law, law.loss_error, law.infinity_mass

    def read(self, eps: Array, sign: float) -> Array:
        """delta of the finite part, moved by its error in the direction of `sign`. O(atoms) an epsilon."""
        mass, loss = self._law.mass, self._law.loss
        relative = ROUNDOFF * (mass.size + 16.0)
        found = [float(-np.expm1(np.minimum(one - loss, 0.0)) @ mass) for one in eps]
        return np.maximum(np.array(found) * (1.0 + sign * relative) + sign * UNDERFLOW, 0.0)


class _Side:
    """The product of laws of one side."""

    def __init__(self, laws: Sequence[tuple[PLD, int]]) -> None:
        sizes, counts = np.array([(law.masses.size, count) for law, count in laws], np.float64).T
        if 0.5 * ((sizes @ counts) ** 2 - sizes**2 @ counts) > DIRECT_WORK:
            raise TooExpensive
        self._step = laws[0][0].step
        mass, self._low, terms = np.ones(1), 0, 0
        for law, count in laws:
            for _ in range(count):
                terms += min(mass.size, law.masses.size) + 2
                mass = np.convolve(mass, law.masses)
                self._low += law.low
        self._relative = 2.0 * ROUNDOFF * terms + 8.0 * ROUNDOFF * (mass.size + 16.0)
        self._plain, self._hockey = np.zeros((2, mass.size + 1))
        kernels.hockey_sums(mass, 1.0, -math.expm1(-self._step), self._plain[:-1], self._hockey[:-1])
        self.loss_error = sum(law.loss_error * count for law, count in laws) * (1.0 + 1e-9)
        self.infinity = compose_infinity((law.infinity, count) for law, count in laws)

    def read(self, eps: Array, sign: float) -> Array:
        """delta of the finite part, moved by its error in the direction of `sign`."""
        size = self._plain.size - 1
        first = np.clip(np.floor(eps / self._step) + 1 - self._low, 0, size).astype(np.int64)
        gap = np.where(first < size, (self._low + first) * self._step - eps, 0.0)
        value = -np.expm1(-gap) * self._plain[first] + np.exp(-gap) * self._hockey[first]
        found = value * (1.0 + sign * self._relative) + sign * UNDERFLOW
        return np.asarray(np.maximum(found, 0.0))
