"""Several rounds of counted bits, in each of which the others may hold what they like (docs/bits.md, section 7).

One round's supremum over all datasets is at its worst with all others at 0 for large losses and with all others at 1
for losses below 0. No dataset is both. Over rounds a profile of the supremum pays for that again and again. Here the
supremum is taken over what an adversary can do: choose the others' values round by round, knowing what it has seen.

Every dataset's pair lies below a mixture of two, the ends of a chord over the number of ones (Theorem 5). So what one
more round can add is the larger of two sums, and a few dozen rounds are one table over the loss so far.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..numerics.rounding import ROUNDOFF
from ..numerics.sides import Bounds, Side
from .bits import LARGEST_GROWTH, BitShares
from .least import LeastProfile, least
from .pair import Pair
from .profile import ProfilePoints, profile_atoms

Array = NDArray[np.float64]
#: growth -> upper bounds on the supremum over all datasets, one round.
Supremum = Callable[[Array], Array]

BLOCK = 64  # rounds in one table; what is lost between blocks falls like 1 / sqrt(BLOCK)
POINTS_PER_SCALE = 24.0  # of the losses' lattice: it costs epsilon 1 / (12 x the square of this)
LONGEST = 650.0  # a table's losses; beyond, its last value holds
MISSED = (1e-15, 1e-25, 1e-50, 1e-100, 1e-300)  # what the tables may leave out


class BitRounds:
    """Pairs of 2 to BLOCK rounds of n users' bits; tables are made once and kept.

    supremum : of one round, over all datasets and both orders. largest, scale : of one round's loss.
    """

    def __init__(
        self, n: int, shares: BitShares, bits: int, supremum: Supremum, largest: Bounds, scale: float
    ) -> None:  # fmt: skip
        self._others = bits * (n - 1)
        self._shares, self._bits = shares, bits
        self._supremum, self._largest, self._scale = supremum, largest, scale
        self._step = scale / POINTS_PER_SCALE
        self._tables: dict[tuple[float, int], list[Array]] = {}
        self._pairs: dict[int, LeastProfile] = {}

    def repeated(self, one: Pair, count: int) -> list[tuple[Pair, int]]:
        """(pair, count) whose product dominates `count` rounds of the pair `one`."""
        blocks, rest = divmod(count, BLOCK)
        found: list[tuple[Pair, int]] = [(self.pair(BLOCK), blocks)] if blocks else []
        if rest:
            found.append((one if rest == 1 else self.pair(rest), 1))
        return found

    def pair(self, rounds: int) -> LeastProfile:
        """The pair of so many rounds."""
        if rounds not in self._pairs:
            low, high = self._largest
            largest = Bounds(
                rounds * low * (1.0 - ROUNDOFF), rounds * high * (1.0 + 4.0 * ROUNDOFF)
            )
            scale = min(math.sqrt(rounds) * self._scale, float(largest.upper))

            def profile(growth: Array, missed: float) -> Array:
                return self._profile(rounds, growth, missed)

            self._pairs[rounds] = least([profile], largest=largest, scale=scale, even=True)
        return self._pairs[rounds]

    def _profile(self, rounds: int, growth: Array, missed: float) -> Array:
        """The table read off between its points: the supremum is convex in s."""
        share = next((m for m in MISSED if m <= missed), MISSED[-1])
        size = 1 << (rounds - 1).bit_length()  # a few tables serve all numbers of rounds
        if (share, size) not in self._tables:
            self._tables[share, size] = self._table(size, share)
        values = self._tables[share, size][rounds - 1]
        known = np.expm1(self._step * np.arange(values.size))
        found = np.interp(growth, known, values) * (1.0 + 64.0 * ROUNDOFF)
        end = rounds * self._largest.upper * (1.0 + 1e-12)
        return np.where(np.log1p(growth) > end + 1e-15, 0.0, found)

    def _table(self, rounds: int, missed: float) -> list[Array]:
        """Upper bounds on the profiles of 1, 2, ... rounds at losses 0, step, 2 step, ..."""
        from . import bit_kernels

        step = self._step
        reach = self._reach(missed / rounds)
        laws, endless = zip(*self._laws(reach), strict=True)
        controls, ends = np.array(laws[1:]), np.array(endless[1:])
        most = self._steps_to(rounds * self._largest.upper)
        places = math.ceil(1.1 * math.sqrt(rounds) * reach + rounds * self._scale**2 / step)
        while True:
            places = max(reach, min(places, most))
            rounding = 1.0 + ROUNDOFF * (8.0 * reach + 64.0 + 8.0 * places * step)
            loss = step * np.arange(places + 1)
            further = loss[1 : reach + 1]
            value, found = np.zeros(places + 1), []
            for _ in range(rounds):
                # E(x R - 1)_+ for x > 1 from x < 1: the class is closed under exchange of the neighbours.
                above = np.expm1(further) + np.exp(further) * value[1 : reach + 1]
                known = np.concatenate((above[::-1], value, np.full(reach, value[-1])))
                value = np.empty(places + 1)
                bit_kernels.best_step(known, controls, ends, laws[0], endless[0], step, value)
                value *= rounding
                found.append(np.minimum(value * np.exp(loss) * rounding, 1.0))
            if places >= most or found[-1][-1] <= 100.0 * missed:
                return found
            places = math.ceil(1.3 * places)

    def _steps_to(self, loss: float) -> int:
        """How many steps lie in front of a loss, or of the largest one that numbers have room for."""
        return math.ceil(min(loss, LONGEST) / self._step) + 1

    def _reach(self, missed: float) -> int:
        """How many steps one round's law needs."""
        most = self._steps_to(self._largest.upper)
        steps = math.ceil(4.0 * POINTS_PER_SCALE)
        while steps < most:
            growth = np.expm1([self._step * steps])
            if float(self._supremum(growth)[0]) <= missed:
                break
            steps = math.ceil(1.1 * steps)
        return int(min(steps, most))

    def _laws(self, reach: int) -> list[tuple[Array, float]]:
        """Masses of Q on the lattice and the mass of P at infinity: of the supremum, then of the ends of chords."""
        from . import bit_kernels

        loss = self._step * np.arange(reach + 1)
        # A little earlier than the lattice points: profiles fall.
        growth = np.minimum(np.expm1(loss) * (1.0 - 16.0 * ROUNDOFF * (1.0 + loss)), LARGEST_GROWTH)
        every = self._supremum(growth)
        known = []
        for shares in [self._shares, self._shares.mirrored][: 1 if self._shares.symmetric else 2]:
            left, right = np.empty(growth.size), np.empty(growth.size)
            bit_kernels.all_chords(
                growth, float(self._bits), shares.one, shares.not_one, shares.zero, shares.not_zero,
                shares.gap, float(self._others), left, right,
            )  # fmt: skip
            known.append((left, right))
        ends = []
        # The reversed pair counts zeros, so its chord runs the other way.
        for (left, right), (other_left, other_right) in zip(known, known[::-1], strict=True):
            ends += [(left, other_right), (right, other_left)]
        return [_hull_law(every, self._step), *(_law(*end, self._step) for end in ends)]


def _hull_law(value: Array, step: float) -> tuple[Array, float]:
    """As `_law` for the supremum, which is convex: noise in its bounds is cut off by their hull."""
    reach = value.size - 1
    known = ProfilePoints(np.expm1(step * np.arange(reach + 1)), value, value)
    atoms = profile_atoms(known, known, Side.UPPER)
    place = reach + np.rint(atoms.loss / step).astype(np.int64)
    mass = np.zeros(2 * reach + 1)
    np.add.at(mass, place, atoms.mass * np.exp(-step * (place - reach)) * (1.0 + 64.0 * ROUNDOFF))
    return mass, atoms.infinite


def _law(ahead: Array, behind: Array, step: float) -> tuple[Array, float]:
    """The law whose profile joins known points: masses of Q at losses -reach ... reach steps, and P's mass at infinity.

    ahead, behind : upper bounds on the profile, and on the reversed pair's, at losses 0, step, ... Where points are not
    convex, a negative mass is raised to 0: more mass is above.
    """
    reach = ahead.size - 1
    loss = step * np.arange(reach + 1)
    growth = np.expm1(loss)
    start = max(float(ahead[0]), float(behind[0]))
    rounding = 8.0 * ROUNDOFF * (reach + 8.0)
    parts, first = [], []
    for value in (ahead, behind):
        value = np.concatenate(([start], value[1:]))
        slopes = np.append(np.diff(value) / np.diff(growth), 0.0)
        size = np.abs(slopes[1:]) + np.abs(slopes[:-1])
        parts.append(np.maximum(0.0, np.diff(slopes) + rounding * size))
        first.append(float(slopes[0]))
    middle = max(0.0, 1.0 - start + first[0] + first[1]) + 8.0 * rounding
    backward = parts[1] * np.exp(loss[1:]) * (1.0 + 64.0 * ROUNDOFF)
    return np.concatenate((backward[::-1], [middle], parts[0])), float(ahead[-1])


def with_rounds(
    pair: LeastProfile, n: int, shares: BitShares, bits: int, supremum: Supremum
) -> LeastProfile:
    """The pair of one round, which knows how to repeat itself."""
    rounds = BitRounds(n, shares, bits, supremum, pair.largest, pair.scale)
    return replace(pair, several=rounds.repeated)
