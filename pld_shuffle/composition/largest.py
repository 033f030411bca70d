"""Compositions whose answer is next to the sum of the largest losses, as with large eps0 and few others who show it.

If the second largest loss of every round lies at least `gap` below its largest, then at an epsilon within `gap` of
the sum of the largest losses only one outcome counts: every round at its largest loss. So there

    delta(eps) = prod p_i^count_i (1 - exp(eps - sum count_i l_i)),

p_i the masses of the largest losses l_i. Farther below, this is a lower bound.

Next to rounds of far smaller losses, of total B, the same holds with delta_B(eps - sum count_i l_i) in the place of the
last factor, but for outcomes with another loss than the largest: these exceed eps only if B exceeds `gap`, and

    P(B > gap) <= delta_B(gap/2) / (1 - exp(-gap/2)).
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
FAR = 60.0  # deviations of all small losses that a large one is beyond
SPREAD_OUT = 50.0  # deviations; losses that reach farther have no large mass at their end


class AtLargest(Reading):
    """Every round at its largest loss, but those of `rest`; good within `gap` of their sum, or beyond it.

    missed : mass at infinity, and P(B > gap).
    """

    def __init__(
        self, log_mass: Bounds, limit: Bounds, gap: float, missed: float,
        rest: Reading | None = None,
    ) -> None:  # fmt: skip
        self.log_mass, self.limit = log_mass, limit
        self.gap, self._missed, self._rest = gap, missed, rest

    def beside(self, rest: Reading, beyond: Bounds) -> AtLargest:
        """The same next to rounds composed in `rest`, whose delta at gap/2 is `beyond`."""
        far = float(beyond.upper) / -math.expm1(-0.5 * self.gap) * (1.0 + 1e-9)
        return AtLargest(self.log_mass, self.limit, self.gap, self._missed + far, rest)

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

    def clear_of(self, parts: Sequence[Sequence[tuple[Pair, int]]]) -> bool:
        """Whether the gap of the first part, no accident of its cells, is beyond all that the other one can add."""
        least = min(pair.scale for pair, _ in parts[0])
        spread = math.sqrt(sum(count * pair.scale**2 for pair, count in parts[1]))
        return self.gap > max(FAR * spread, 10.0 * least / CELLS)

    def lower(self, eps: float) -> float:
        """Certified lower bound on delta(eps)."""
        over = eps * (1.0 + 1e-15) - self.limit.lower
        mass = math.exp(self.log_mass.lower) * (1.0 - 1e-15)
        if self._rest is not None:
            return self._rest.lower(max(over, 0.0)) * mass
        return -math.expm1(over) * mass if over < 0.0 else 0.0

    def upper(self, eps: float) -> float:
        """Certified upper bound on delta(eps)."""
        over = eps * (1.0 - 1e-15) - self.limit.upper
        mass = math.exp(self.log_mass.upper) * (1.0 + 1e-15)
        if over < (0.0 if self._rest is not None else -self.gap):
            return 1.0
        finite = -math.expm1(min(over, 0.0)) if self._rest is None else self._rest.upper(over)
        return min(1.0, finite * mass + self._missed)


def stands_apart(ledger: Sequence[tuple[Pair, int]]) -> tuple[list[tuple[Pair, int]], ...] | None:
    """(pairs of few, large losses; pairs whose losses are far smaller, all together), if there are both."""
    ordered = sorted(ledger, key=lambda item: -item[0].scale)
    for cut in range(1, len(ordered)):
        large, small = ordered[:cut], ordered[cut:]
        spread = math.sqrt(sum(count * pair.scale**2 for pair, count in small))
        if large[-1][0].scale > FAR * spread:
            few = all(pair.max_loss.upper < SPREAD_OUT * pair.scale for pair, _ in large)
            return (large, small) if few else None
    return None
