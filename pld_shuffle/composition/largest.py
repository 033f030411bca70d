"""Compositions whose answer is next to the sum of the largest losses, as with large eps0 and few others who show it.

If the second largest loss of every round lies at least `gap` below its largest, then at an epsilon within `gap` of
the sum of the largest losses only one outcome counts: every round at its largest loss. So there

    delta(eps) = prod p_i^count_i (1 - exp(eps - sum count_i l_i)),

p_i the masses of the largest losses l_i. Farther below, this is a lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..numerics.rounding import ROUNDOFF
from ..numerics.sides import Bounds, Side
from ..pairs.pair import Pair
from .plan import FEW_LAWS, Plan
from .reading import Reading

CELLS = 2000  # of a law between no loss and the largest


class AtLargest(Reading):
    """Every round at its largest loss; good within `gap` of their sum."""

    def __init__(self, log_mass: Bounds, limit: Bounds, gap: float, missed: float) -> None:
        self._log_mass, self._limit = log_mass, limit
        self._gap, self._missed = gap, missed

    @classmethod
    def of(cls, ledger: Sequence[tuple[Pair, int]], plan: Plan) -> AtLargest | None:
        """That reading, if all largest losses are finite and stand alone, and together carry delta."""
        if len(ledger) > FEW_LAWS or any(pair.max_loss.upper == math.inf for pair, _ in ledger):
            return None
        logs, limits, missed, gap, rounding = [0.0, 0.0], [0.0, 0.0], 0.0, math.inf, 0.0
        for pair, count in ledger:
            largest = float(pair.max_loss.upper)
            step = largest / CELLS
            try:
                found = pair.atoms([Side.LOWER, Side.UPPER], plan.resolution(step))
            except MemoryError:
                return None
            below, above = found
            least = largest - 2.0 * step
            # An atom stands for others of its cell.
            second = (
                above.loss[above.loss < least].max(initial=-largest)
                + (0.0 if above.separate else step)
                + above.slack
            )
            top = [float(atoms.mass[atoms.loss >= least].sum()) for atoms in found]
            if not min(top) > 0.0:
                return None
            for side in (0, 1):
                logs[side] += count * math.log(top[side])
            # Merged atoms of the lower side lie at their own loss, or above it.
            limits[0] += count * (float(below.loss[below.loss >= least].min()) - below.slack)
            limits[1] += count * largest
            missed += count * (above.infinite + above.missed)
            gap = min(gap, largest - float(second))
            rounding += 8.0 * ROUNDOFF * count * (2.0 + abs(math.log(top[0])))
        if gap <= 0.0 or logs[0] < plan.log_delta:
            return None
        rounds = 1e-15 * len(ledger)
        return cls(
            Bounds(logs[0] - rounding, logs[1] + rounding),
            Bounds(limits[0] * (1.0 - rounds), limits[1] * (1.0 + rounds)),
            gap * (1.0 - 1e-9),
            missed * (1.0 + 1e-9),
        )

    def lower(self, eps: float) -> float:
        """Certified lower bound on delta(eps)."""
        rest = self._limit.lower - eps * (1.0 + 1e-15)
        return (
            -math.expm1(-rest) * math.exp(self._log_mass.lower) * (1.0 - 1e-15)
            if rest > 0.0
            else 0.0
        )

    def upper(self, eps: float) -> float:
        """Certified upper bound on delta(eps)."""
        rest = self._limit.upper - eps * (1.0 - 1e-15)
        if rest > self._gap:
            return 1.0
        finite = -math.expm1(-max(rest, 0.0)) * math.exp(self._log_mass.upper) * (1.0 + 1e-15)
        return min(1.0, finite + self._missed)
