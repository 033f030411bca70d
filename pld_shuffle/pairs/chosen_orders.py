"""Rounds in which one of several pairs is chosen as the rounds go: the best strategy's value, as a profile.

A query may move up one user's noisy sum in a round, and down in the next one, as outputs suggest; counts below a
threshold may be any. Let V_0(y) = (1 - e^y)_+, and

    V_t(y) = max over all choices of E V_(t-1)(y - L),     L the choice's loss.

V_T(eps) is what the best strategy makes of T rounds at e^eps, by induction from the last round (docs/sums.md, section
1). The pair of the larger profile, composed T times, is larger: in every round it has all choices' tails at once.

V_T is convex in s = e^y, as a maximum of means of convex functions. With W_t that of the reversed pairs,
V_t(-y) = 1 - e^-y + e^-y W_t(y): nodes y >= 0 of both are enough, of one where all choices come with their reverse. So
it is the profile of a pair. That pair composes with everything else, even if other rounds lie in between and choose as
well: with V^a, V^b of two such lists let W(y) = E V^a(y - L_b); buying a round of either list never raises W, since the
other list's law is fixed. Of a single list it is what a strategy has that sees all other rounds first.

A round may be several independent outcomes, stages. Whoever chooses in every stage after seeing those before can do
more: so it is an upper end, while a lower end chooses for all stages at once.

On a lattice of upper laws every V_t is an upper bound, on one of lower laws a lower bound: E V(y - L) is jointly convex
in a law's two masses. All terms are nonnegative: V_T is relatively accurate however small it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..numerics.lattice import SNAP, place
from ..numerics.rounding import ROUNDOFF
from ..numerics.sides import Bounds, Side
from ..numerics.tuning import CHOSEN_WORK
from .discrete import OrderedPair
from .pair import Atoms, Pair, Resolution
from .profile import ProfilePoints, profile_atoms

Array = NDArray[np.float64]

FINEST = (600.0, 2e4)  # lattice points in a scale of one round, at most, and where there are few atoms
FEW_WORK = 0.01  # share of the work that few atoms may cost, which are summed one by one
MOST_BLOCKS, FINER = 32, 8  # in which a lower end changes its choice; the lattice of one block is finer

MERGED = 2.0  # scales of a round over which lower laws merge atoms; beyond, rounding down loses less

Together = tuple[OrderedPair, ...]  # independent outcomes of one round


class Choices(NamedTuple):
    """What may be chosen in a round.

    upper : stages; in each one of these pairs. lower : any of these, each for the whole round.
    """

    upper: tuple[Together, ...]
    lower: tuple[Together, ...]


class _Law(NamedTuple):
    """Masses on the lattice, the index of the first one, and the mass at infinity."""

    masses: Array
    low: int
    infinity: float


@dataclass(frozen=True, eq=False)
class Chosen(Pair):
    """`rounds` rounds of what is chosen as they go; `reverse` is the same of the reversed pairs.

    one : the worst of a single round, in any order; it says how large losses are.
    """

    one: Pair
    forward: Choices
    reverse: Choices
    rounds: int
    _known: dict[tuple[Side, float, float], tuple[ProfilePoints, ProfilePoints]] = field(default_factory=dict)

    @property
    def max_loss(self) -> Bounds:
        low, high = self.one.max_loss
        return Bounds(self.rounds * low * (1.0 - 4e-16), self.rounds * high * (1.0 + 4e-16))

    @property
    def scale(self) -> float:
        return math.sqrt(self.rounds) * self.one.scale

    @property
    def symmetric(self) -> bool:
        return self.forward is self.reverse

    def atoms(self, sides: Sequence[Side], resolution: Resolution) -> list[Atoms]:
        """O(rounds * points of the result * points of all choices of a round) on each side."""
        # By powers, so that attempts share what is known.
        missed = max(0.05 * resolution.truncated_mass / self.rounds, 1e-290)
        missed = 10.0 ** (24.0 * math.floor(math.log10(missed) / 24.0))
        step = resolution.points[0] / math.sqrt(self.rounds)
        step = max(self._finest(missed), self.one.scale * 2.0 ** math.floor(math.log2(step / self.one.scale)))
        found = []
        for side in sides:
            if (side, missed, step) not in self._known:
                self._known[side, missed, step] = self._points(side, step, missed)
            found.append(profile_atoms(*self._known[side, missed, step], side))
        return found

    def _finest(self, missed: float) -> float:
        """The step that the work allows, or that rounding does."""
        tail = math.sqrt(-2.0 * math.log(missed))
        pairs = [pair for stage in self.forward.upper for pair in stage] * (1 if self.symmetric else 2)
        nodes = math.sqrt(self.rounds) * (0.5 * self.scale + tail)  # at a step of one scale, and of a law 2 tail
        dense = max(math.sqrt(self.rounds * len(pairs) * 2.0 * tail * nodes / CHOSEN_WORK), 1.0 / FINEST[0])
        atoms = 2.0 * sum(pair.losses.mass.size for pair in pairs)
        sparse = max(self.rounds * atoms * nodes / (FEW_WORK * CHOSEN_WORK), 1.0 / FINEST[1])
        return self.one.scale * min(dense, sparse)

    def _points(self, side: Side, step: float, missed: float) -> tuple[ProfilePoints, ProfilePoints]:
        """The profile and that of the reversed pair: on the lower side of the best of the lattice's laws."""
        found = []
        for known, limit in self._values(side, step, missed):
            most = values = np.append(known, known[-1]) if known.size == 1 else known
            if side is Side.LOWER:  # the laws' own profile is above it by rounding, and by what was left out
                most = values * (1.0 + self.rounds * ROUNDOFF * (8.0 * values.size + 64.0)) + 2.0 * self.rounds * missed
            eps = step * np.arange(most.size)
            found.append(ProfilePoints(np.expm1(eps), values, most, limit))
        return found[0], found[-1]

    def _values(self, side: Side, step: float, missed: float) -> list[tuple[Array, float]]:
        """V_rounds at 0, step, ... on `side`, and its limit from below, of the pair and of the reversed one."""
        kinds = [self.forward] if self.symmetric else [self.forward, self.reverse]
        block = 1
        if side is Side.LOWER and self.rounds > MOST_BLOCKS:  # whoever changes the choice rarely does hardly worse
            block = 2 ** math.ceil(math.log2(self.rounds / MOST_BLOCKS))
        values = [(np.zeros(1), 0.0) for _ in kinds]
        for size, count in ((block, self.rounds // block), (self.rounds % block, 1)):
            if size > 0 and side is Side.LOWER:
                laws = [[[_power(choice, size, step, missed) for choice in kind.lower]] for kind in kinds]
            else:
                laws = [[[_law(pair, side, step, missed) for pair in stage] for stage in kind.upper] for kind in kinds]
            for _ in range(count if size > 0 else 0):
                values = [_best(one, side, step, missed, values[k], values[-1 - k]) for k, one in enumerate(laws)]
        return values


def _power(choice: Together, count: int, step: float, missed: float) -> _Law:
    """A lower law of so many rounds of one choice, convolved on a finer lattice."""
    parts = [_law(pair, Side.LOWER, step / FINER, missed) for pair in choice]
    square, found = reduce(partial(_product, missed=missed), parts), None
    while count:
        if count % 2:
            found = square if found is None else _product(found, square, missed)
        count //= 2
        square = _product(square, square, missed) if count else square
    assert found is not None
    cell, rest = np.divmod(found.low + np.arange(found.masses.size), FINER)
    gap = MERGED * max(pair.scale for pair in choice)
    masses, low = place(found.masses, cell, rest * (step / FINER), step=step, side=Side.LOWER, max_gap=gap)
    return _Law(masses * (1.0 - 16.0 * ROUNDOFF), low, found.infinity)


def _product(one: _Law, other: _Law, missed: float) -> _Law:
    """From below: of two independent losses, but for tails of `missed`."""
    masses = np.convolve(one.masses, other.masses)
    infinity = one.infinity + other.infinity * (1.0 - one.infinity)
    less = 1.0 - ROUNDOFF * (masses.size + 16.0)
    first = int(np.searchsorted(np.cumsum(masses), missed))
    last = masses.size - int(np.searchsorted(np.cumsum(masses[::-1]), missed))
    return _Law(masses[first:last] * less, one.low + other.low + first, infinity * less)


def _law(pair: OrderedPair, side: Side, step: float, missed: float) -> _Law:
    """On the lattice, up to `missed` of its mass left out; rounding moves losses to the safe side beforehand."""
    atoms = pair.losses.atoms(side, pair.truncated_mass, pair.mass_error, missed)
    sign = 1.0 if side is Side.UPPER else -1.0
    size = float(np.abs(atoms.loss).max()) + step
    loss = atoms.loss + sign * (atoms.loss_error + 4.0 * SNAP * (size + step) + 8.0 * ROUNDOFF * size)
    cell = np.floor(loss / step).astype(np.int64)
    offset = np.clip(loss - cell * step, 0.0, step)
    masses, low = place(atoms.mass, cell, offset, step=step, side=side, max_gap=MERGED * pair.scale)
    infinity = atoms.infinity_mass + (atoms.truncated_mass if side is Side.UPPER else 0.0)
    return _Law(masses * (1.0 + sign * 16.0 * ROUNDOFF), low, infinity * (1.0 + sign * ROUNDOFF))


def _best(
    stages: Sequence[Sequence[_Law]], side: Side, step: float, missed: float,
    values: tuple[Array, float], reverse: tuple[Array, float],
) -> tuple[Array, float]:  # fmt: skip
    """V of one more round at 0, step, ... where little is left, and its limit."""
    upper = side is Side.UPPER
    tops = [max(law.low + law.masses.size - 1 for law in stage) for stage in stages]
    # Nodes that are needed after all stages, after all but the first one, ...
    spans = [(0, values[0].size + max(0, sum(tops)) + 1)]
    for stage, top in zip(stages, tops, strict=True):
        spans.append((spans[-1][0] - top, spans[-1][1] - min(law.low for law in stage)))
    known, limit = _spread(values, reverse, spans[-1], side, step), values[1]
    for stage, (first, last), (start, _) in zip(stages[::-1], spans[-2::-1], spans[:0:-1], strict=True):
        best, most = np.zeros(last - first), 0.0
        for masses, low, infinity in stage:
            begin = first - (low + masses.size - 1) - start
            mean = _convolved(known[begin : begin + last - first + masses.size - 1], masses)
            rounding = ROUNDOFF * (masses.size + 16.0)
            np.maximum(best, mean * (1.0 + (rounding if upper else -rounding)) + infinity, out=best)
            most = max(most, (float(masses.sum()) * limit * (1.0 - rounding) + infinity) * (1.0 - rounding))
        known, limit = best, most
    if upper:
        known = np.minimum(np.minimum.accumulate(known), 1.0)
    kept = int(np.argmax(known <= known[-1] + missed))  # the last one has nothing but what lies beyond
    return known[: kept + 1], limit


def _convolved(known: Array, masses: Array) -> Array:
    """All full sums, masses of 0 left out where most are."""
    held = np.flatnonzero(masses)
    if held.size > masses.size / 16:
        return np.convolve(known, masses, mode="valid")
    size = known.size - masses.size + 1
    found = np.zeros(size)
    for at in held:
        found += masses[at] * known[masses.size - 1 - at :][:size]
    return found


def _spread(
    values: tuple[Array, float], reverse: tuple[Array, float], span: tuple[int, int], side: Side, step: float
) -> Array:
    """V at all nodes of `span`, also at negative ones; beyond those known the last value, or the limit."""
    upper = side is Side.UPPER
    ahead, behind = (
        np.append(array, np.full(max(end - array.size, 0), array[-1] if upper else limit))
        for (array, limit), end in ((values, span[1]), (reverse, 1 - span[0]))
    )
    back = np.arange(max(1, 1 - span[1]), 1 - span[0])[::-1]
    below = -np.expm1(-step * back) + np.exp(-step * back) * behind[back]
    margin = 1.0 + (8.0 if upper else -8.0) * ROUNDOFF
    return np.append(below * margin, ahead[max(span[0], 0) : max(span[1], 0)])
