"""Many rounds of a pair whose order anybody may choose as the rounds go: the best strategy's value, as a profile.

A query may move up one user's noisy sum in a round, and down in the next one, as outputs suggest. Let V_0(y) =
(1 - e^y)_+, and let

    V_t(y) = max over both orders of E V_(t-1)(y - L),     L the order's loss.

V_T(eps) is what the best strategy makes of T rounds at e^eps, by induction from the last round (docs/sums.md, section
1). The pair of the larger profile, composed T times, is larger: in every round it has both orders' tails at once.

V_T is convex in s = e^y, as a maximum of means of convex functions, and V_T(-y) = 1 - e^-y + e^-y V_T(y), as the two
orders are each other's reverse. So it is the profile of a symmetric pair, and rounds y >= 0 are enough. That pair
composes with everything else, even if other rounds lie in between and choose as well: with V^a, V^b of two such lists
let W(y) = E V^a(y - L_b); buying a round of either list never raises W, since the other list's law is fixed.

On a lattice of upper laws every V_t is an upper bound. All terms are nonnegative: V_T is relatively accurate however
small it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..numerics.lattice import SNAP, place
from ..numerics.rounding import ROUNDOFF
from ..numerics.sides import Bounds, Side
from ..numerics.tuning import CHOSEN_WORK
from .discrete import EitherOrder
from .pair import Atoms, Pair, Resolution, completed
from .profile import SAME, ProfilePoints, profile_atoms

Array = NDArray[np.float64]

FINEST, COARSEST = 100.0, 4.0  # lattice points in a scale of one round, at most, and for a first look


@dataclass(frozen=True, eq=False)
class ChosenOrders(Pair):
    """`rounds` rounds of a pair in orders that are chosen as they go: an upper bound.

    Its lower atoms are the same, less rounding: an attack tells how far the truth is below, not this pair.
    """

    pair: EitherOrder
    rounds: int

    @property
    def max_loss(self) -> Bounds:
        low, high = self.pair.max_loss
        return Bounds(self.rounds * low * (1.0 - 4e-16), self.rounds * high * (1.0 + 4e-16))

    @property
    def scale(self) -> float:
        return math.sqrt(self.rounds) * self.pair.scale

    @property
    def encloses(self) -> bool:
        return False

    def atoms(self, sides: Sequence[Side], resolution: Resolution) -> list[Atoms]:
        """O(rounds * points of the result * points of a round)."""
        missed = max(0.1 * resolution.truncated_mass / self.rounds, 1e-290)
        pair = self.pair
        known = [order.atoms(Side.UPPER, pair.truncated_mass, pair.mass_error, missed) for order in pair.orders]
        # As fine as asked for, or as the work allows.
        work = self.rounds * sum(float(atoms.loss[-1] - atoms.loss[0]) for atoms in known) / CHOSEN_WORK
        reach = self._reach(known, resolution.truncated_mass, work)
        finest = math.sqrt(work * reach)
        step = max(resolution.points[0] / math.sqrt(self.rounds), finest, pair.scale / FINEST)
        values = _values([_law(atoms, step) for atoms in known], self.rounds, step, math.ceil(reach / step) + 1)
        infinite = float(values[-1])
        eps = step * np.arange(values.size)
        points = ProfilePoints(np.expm1(eps), values, values, infinite)
        [found] = [profile_atoms(points, points, Side.UPPER)]
        less = completed(
            replace(found, mass=found.mass * SAME, infinity_mass=found.infinity_mass * SAME, total=None), Side.LOWER
        )
        return [found if side is Side.UPPER else less for side in sides]

    def _reach(self, known: Sequence[Atoms], missed: float, work: float) -> float:
        """About where nothing is left but `missed`, and what is at infinity, by a coarse look."""
        most = float(self.max_loss.upper)
        reach = self.scale * (0.5 * self.scale + math.sqrt(-2.0 * math.log(missed)))
        step = max(self.pair.scale / COARSEST, math.sqrt(work * reach))
        laws = [_law(atoms, step) for atoms in known]
        least = missed + 2.0 * self.rounds * max(law[2] for law in laws)
        while True:
            values = _values(laws, self.rounds, step, math.ceil(min(reach, most) / step) + 1)
            if values[-1] <= least or reach >= most:
                return min(step * (1.0 + float(np.argmax(values <= least) or values.size)), most + step)
            reach *= 1.5


def _law(atoms: Atoms, step: float) -> tuple[Array, int, float]:
    """Masses, index of the first one, and mass at infinity, on the lattice; rounding moves losses up beforehand."""
    size = float(np.abs(atoms.loss).max()) + step
    loss = atoms.loss + (atoms.loss_error + 4.0 * SNAP * (size + step) + 8.0 * ROUNDOFF * size)
    cell = np.floor(loss / step).astype(np.int64)
    masses, low = place(atoms.mass, cell, np.clip(loss - cell * step, 0.0, step), step=step, side=Side.UPPER)
    return masses * (1.0 + 16.0 * ROUNDOFF), low, (atoms.infinity_mass + atoms.truncated_mass) * (1.0 + ROUNDOFF)


def _values(laws: Sequence[tuple[Array, int, float]], rounds: int, step: float, nodes: int) -> Array:
    """V_rounds at 0, step, ..., from above."""
    lowest = min(low for _, low, _ in laws)
    highest = max(low + masses.size - 1 for masses, low, _ in laws)
    left, right = max(highest, 0), max(-lowest, 0)
    decay = np.exp(-step * np.arange(1, left + 1))
    rise = -np.expm1(-step * np.arange(1, left + 1))
    values = np.zeros(nodes)
    for _ in range(rounds):  # beyond the nodes, the last value is above
        far = np.append(values[1:], np.full(max(left - nodes + 1, 0), values[-1]))[:left]
        behind = (rise + decay * far) * (1.0 + 8.0 * ROUNDOFF)
        whole = np.concatenate((behind[::-1], values, np.full(right, values[-1])))
        values = np.zeros(nodes)
        for masses, low, infinite in laws:
            first = left - (low + masses.size - 1)
            mean = np.convolve(whole[first : first + nodes + masses.size - 1], masses, mode="valid")
            np.maximum(values, mean * (1.0 + ROUNDOFF * (masses.size + 8.0)) + infinite, out=values)
    return np.minimum(np.minimum.accumulate(values), 1.0)
