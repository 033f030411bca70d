"""Products of laws on one lattice by sums of nonnegative products: relative accuracy everywhere, quadratic cost.

For the rare composition whose tilted law has a deep valley at the losses of interest (one round in the bulk, or one
near its largest loss, but little between), where no tilt lifts them over the rounding of an integral. Nothing is
subtracted, so every number has a relative error, and no mass is left out. One round needs no lattice: its atoms are
read where they lie.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..numerics.rounding import ROUNDOFF
from ..numerics.sides import Bounds, Side
from ..numerics.tuning import DIRECT_WORK
from ..pairs.discrete import Losses
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

    def __init__(self, lower: _Side, upper: _Side, plan: Plan) -> None:
        self._lower, self._upper, self.stride = lower, upper, 1.0 / plan.rate
        self.infinity = Bounds(lower.infinity * (1.0 - 2e-15), min(1.0, upper.infinity * (1.0 + 2e-15)))

    @classmethod
    def of(cls, ledger: Sequence[tuple[Pair, int]], plan: Plan, question: Question | None = None) -> DirectReading:
        """The composition of a ledger. Raises TooExpensive or MemoryError."""
        if plan.rounds == 1:
            [(pair, _)] = ledger
            laws = [law for law in Rounds.of(pair, 1, plan.resolutions(ledger)) if isinstance(law, Rounds)]
            if laws:
                one, two = (_Side(law.mass, law.loss, law.loss_error, law.infinity_mass) for law in laws)
                return cls(one, two, plan)
        resolution = shared_lattice(plan, [pair for pair, _ in ledger])
        both = [formed(pair, (Side.LOWER, Side.UPPER), resolution, plan.max_gap) for pair, _ in ledger]
        counts = [count for _, count in ledger]
        lower, upper = (_Side.product(list(zip(laws, counts, strict=True))) for laws in zip(*both, strict=True))
        return cls(lower, upper, plan)

    def lowers(self, eps: Array) -> Array:
        return np.asarray(self._lower.read(eps + self._lower.loss_error + 1e-15 * eps, -1.0) + self.infinity.lower)

    def uppers(self, eps: Array) -> Array:
        found = self._upper.read(eps - self._upper.loss_error - 1e-15 * eps, 1.0) + self.infinity.upper
        return np.asarray(np.minimum(1.0, found * (1.0 + 1e-15)))


class _Side:
    """Atoms of one side, sorted by loss, and how far they may be off; terms : that every mass is a sum of."""

    def __init__(self, mass: Array, loss: Array, loss_error: float, infinity: float, terms: int = 0) -> None:
        self._atoms, self.loss_error, self.infinity = Losses(mass, loss, 0.0, 0.0), loss_error, infinity
        self._relative = ROUNDOFF * (2.0 * terms + 8.0 * mass.size + 128.0)

    @classmethod
    def product(cls, laws: Sequence[tuple[PLD, int]]) -> _Side:
        """Of laws on one lattice."""
        sizes, counts = np.array([(law.masses.size, count) for law, count in laws], np.float64).T
        if 0.5 * ((sizes @ counts) ** 2 - sizes**2 @ counts) > DIRECT_WORK:
            raise TooExpensive
        mass, low, terms = np.ones(1), 0, 0
        for law, count in laws:
            for _ in range(count):
                terms += min(mass.size, law.masses.size) + 2
                mass = np.convolve(mass, law.masses)
                low += law.low
        loss_error = sum(law.loss_error * count for law, count in laws) * (1.0 + 1e-9)
        infinity = compose_infinity((law.infinity, count) for law, count in laws)
        loss: Array = (low + np.arange(mass.size, dtype=np.float64)) * laws[0][0].step
        return cls(mass, loss, loss_error, infinity, terms)

    def read(self, eps: Array, sign: float) -> Array:
        """delta of the finite part, moved by its error in the direction of `sign`."""
        return np.maximum(self._atoms.divergence(eps) * (1.0 + sign * self._relative) + sign * UNDERFLOW, 0.0)
