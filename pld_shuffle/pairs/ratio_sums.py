"""The sum of independent likelihood ratios as a finite law on a side: doubled, and doubled again.

X = dP/dQ of one step under Q, S the sum of k copies. The pair of a contribution that is hidden in one of the k steps is
the law of S/k under Q: H_s = E(S/k - s)_+ in one order, E(1 - s S/k)_+ in the other (`allocation`). One law answers
both orders at every s.

Sums of laws of 2^j steps are laws of 2^(j+1) steps. After each addition the values are put on knots: every run of
neighbouring sums is split between the two knots next to its mean (upper: a mean-preserving spread), or merged with
its cell (lower). Either is kept by adding what is independent, since E f(. + Z) is convex where f is. So the last law
is on its side, whatever the knots are. All terms are positive: masses are relatively accurate however small they are.

Knots decide the width only. A cell of width w and mass q of a partial sum spreads E f(S) by about q w^2 g/12, g = E f''
of it and all the rest; f'' = 1/E(S - s)_+ at every s in turn asks for the same relative error everywhere. So knots have
the density (q g)^(1/3), with q and g from a look at coarse laws (`Wanted` says which s count).

Values are centred, V = S - k. Rounding: masses to `error`, relative; values to `drift` (S + k), absolute.
"""

# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, check-untyped-defs=False

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..numerics.compiled import kernel
from ..numerics.rounding import ROUNDOFF
from ..numerics.sides import Side
from .pair import Atoms

Array = NDArray[np.float64]

BLOCK = 4  # rows that are summed before they are added to the rest
FAR, NEAR, OCTAVES = 12.0, 241, 81  # deviations that are looked at evenly, and points there and beyond
NOUGHT = 1e-9  # of S/count; octaves end there
SAME = 1e-12  # relative distance of sums that are one
LEAST = 1e-12  # of S/count; smaller ones have an infinite loss in one order, and none in the other
EVERYWHERE = (0.1, 0.25)  # of knots that go wherever the logarithm of a value changes: for one s, for all


@dataclass(frozen=True, eq=False)
class RatioLaw:
    """A law of V = S - steps on a side.

    value, mass : ascending, and under Q. infinite : what the mean has at infinity, of `steps` in all.
    """

    steps: int
    value: Array
    mass: Array
    infinite: float
    error: float
    drift: float

    @classmethod
    def of(cls, rows: Array, top: int, error: float) -> RatioLaw:
        """One step, from masses in rows: those of P in row `top`, those of Q in the last one."""
        ahead, others = rows[top], rows[-1]
        held = others > 0.0
        value = (ahead[held] - others[held]) / others[held]
        order = np.argsort(value, kind="stable")
        infinite = float(np.sum(ahead[~held]))
        return cls(1, value[order], others[held][order], infinite, error + ROUNDOFF, 2.0 * error + 4.0 * ROUNDOFF)

    def plus(self, other: RatioLaw, knots: Array, side: Side) -> RatioLaw:
        """The law of the sum, on the knots that lie inside of its range."""
        low, high = self.value[0] + other.value[0], self.value[-1] + other.value[-1]
        knots = np.concatenate(([low], knots[(knots > low) & (knots < high)], [high] if high > low else []))
        upper = side is Side.UPPER and knots.size > 1
        ends = knots if upper else np.append(knots[0], 0.5 * (knots[1:] + knots[:-1]))
        mass, moment = np.empty(knots.size), np.empty(knots.size)
        longest = np.empty(1)
        _added(
            self.value, self.mass, other.value, other.mass, self is other, upper, ends, mass, moment, longest
        )  # fmt: skip
        held = mass > 0.0
        value = knots[held] if upper else moment[held] / mass[held]
        depth = 3.0 * (2.0 * BLOCK * float(longest[0]) + self.value.size / BLOCK + 16.0) * ROUNDOFF
        return RatioLaw(
            self.steps + other.steps, value, mass[held], self.infinite + other.infinite,
            (self.error + other.error) * (1.0 + 1e-6) + depth, max(self.drift, other.drift) + depth,
        )  # fmt: skip


NOTHING = RatioLaw(0, np.zeros(1), np.ones(1), 0.0, 0.0, 0.0)


@kernel("1 1 1 1 b b 1 o1 o1 o1", lambda x, p, y, *rest: 4e-7 * x.size * y.size, error_model="numpy")
def _added(x, p, y, q, same, upper, ends, mass, moment, longest):
    """Fill mass and moment (not used above) of the sums on knots (upper) or in cells that begin at `ends`.

    same : y is x, and pairs are taken once. longest : the most sums of one row in one cell.
    """
    m = ends.shape[0]
    block_mass = np.zeros(m)
    block_moment = np.zeros(m)
    inverse = np.zeros(m)
    for c in range(m):
        mass[c] = 0.0
        moment[c] = 0.0
        if c < m - 1:
            inverse[c] = 1.0 / (ends[c + 1] - ends[c])
    last = m - 2 if upper else m - 1
    start = 0
    lowest = 0
    most = 0
    for i in range(x.shape[0]):
        first = i if same else 0
        while start < last and ends[start + 1] <= x[i] + y[first]:
            start += 1
        c = start
        if i % BLOCK == 0:
            lowest = start
        weight = p[i]  # a pair of equals is there once
        begun = first
        for j in range(first, y.shape[0]):
            value = x[i] + y[j]
            while c < last and ends[c + 1] <= value:
                c += 1
                most = max(most, j - begun)
                begun = j
            here = weight * q[j]
            weight = 2.0 * p[i] if same else p[i]
            if upper:
                right = here * min(1.0, max(0.0, (value - ends[c]) * inverse[c]))
                block_mass[c] += here - right
                block_mass[c + 1] += right
            else:
                block_mass[c] += here
                block_moment[c] += here * value
        most = max(most, y.shape[0] - begun)
        if i % BLOCK == BLOCK - 1 or i == x.shape[0] - 1:
            for k in range(lowest, min(c + 2, m)):
                mass[k] += block_mass[k]
                moment[k] += block_moment[k]
                block_mass[k] = 0.0
                block_moment[k] = 0.0
    longest[0] = most


@dataclass(frozen=True, eq=False)
class RatioSum:
    """S - count on a side, as the sum of two laws: a profile needs no knots for the last addition."""

    side: Side
    count: int
    left: RatioLaw
    right: RatioLaw | None
    knots: Array

    @cached_property
    def whole(self) -> RatioLaw:
        """Both in one, on knots of its own."""
        return self.left if self.right is None else self.left.plus(self.right, self.knots, self.side)

    @property
    def error(self) -> float:
        """Relative, of masses."""
        return self.left.error + (0.0 if self.right is None else self.right.error) + 4.0 * ROUNDOFF

    @property
    def drift(self) -> float:
        """Of S/count, relative to S/count + 1."""
        return max(self.left.drift, 0.0 if self.right is None else self.right.drift) + 8.0 * ROUNDOFF

    @property
    def infinite(self) -> float:
        """P-mass at infinite loss."""
        found = self.left.infinite + (0.0 if self.right is None else self.right.infinite)
        return found / self.count * (1.0 + (1.0 if self.side is Side.UPPER else -1.0) * self.error)

    @cached_property
    def _suffix(self) -> tuple[Array, Array, Array]:
        """Masses, moments and absolute moments of the right law from every value on, and before it: (2, values + 1)."""
        assert self.right is not None
        terms = (self.right.mass, self.right.mass * self.right.value, self.right.mass * np.abs(self.right.value))
        found = []
        for term in terms:
            before = np.append(0.0, np.cumsum(term))
            beyond = np.append(np.cumsum(term[::-1])[::-1], 0.0)
            found.append(np.array([beyond, before]))
        return found[0], found[1], found[2]

    def profile(self, expm1_eps: float, backward: bool) -> float:
        """H_s at s = 1 + expm1_eps of (P, Q), or of (Q, P), on the side."""
        sign = 1.0 if self.side is Side.UPPER else -1.0
        moved = 2.2 * sign * self.drift  # of the strike, towards 0
        factor = (1.0 + sign * (self.error + self.drift)) / self.count
        if backward:
            s = 1.0 + expm1_eps
            part, doubt = self._part(self.count * (moved - expm1_eps / s), True)
            return max(0.0, part + sign * doubt) * factor * s
        part, doubt = self._part(self.count * (expm1_eps - moved * (1.0 + expm1_eps)), False)
        return max(0.0, part + sign * doubt) * factor + self.infinite

    def _part(self, strike: float, put: bool) -> tuple[float, float]:
        """E(V - strike)_+ or, for a put, E(strike - V)_+, of finite V, and its rounding."""
        x, p = self.left.value, self.left.mass
        if self.right is None:
            gain = float(p @ np.maximum(strike - x if put else x - strike, 0.0))
            return gain, 2.0 * x.size * ROUNDOFF * gain
        mass, moment, size = (sums[int(put)] for sums in self._suffix)
        away = strike - x
        at = np.searchsorted(self.right.value, away)
        gain = away * mass[at] - moment[at] if put else moment[at] - away * mass[at]
        doubt = size[at] + np.abs(away) * mass[at]
        terms = self.right.value.size + x.size + 8.0
        return float(p @ np.maximum(gain, 0.0)), terms * ROUNDOFF * float(p @ doubt)

    def atoms(self, backward: bool, tail: float) -> Atoms:
        """Atoms of (P, Q), or of (Q, P), on the side; P-masses of up to `tail` at either end are put aside."""
        law = self.whole
        upper = self.side is Side.UPPER
        sign = 1.0 if upper is not backward else -1.0  # of what values are moved by
        excess = law.value / self.count
        excess = excess + sign * (law.drift + 8.0 * ROUNDOFF) * (2.0 + np.abs(excess))
        held = excess > LEAST - 1.0
        mass = law.mass * (1.0 + (1.0 if upper else -1.0) * (law.error + 8.0 * ROUNDOFF))
        gone = float(np.sum(mass[~held]))
        mass, excess = mass[held], excess[held]
        loss = np.log1p(excess)
        if backward:
            mass, loss, infinite = mass[::-1], -loss[::-1], gone if upper else 0.0
            if gone > tail and not upper:
                mass, loss = np.append(mass, gone), np.append(loss, -math.log(LEAST) * (1.0 - 1e-15))
        else:
            mass, infinite = mass * (1.0 + excess), self.infinite + (gone * LEAST if upper else 0.0)
        below, above = np.cumsum(mass), np.cumsum(mass[::-1])[::-1]
        first, last = int(np.searchsorted(below, tail)), int(np.count_nonzero(above > tail))
        rest = [float(np.sum(mass[:first])), float(np.sum(mass[last:]))]
        mass, loss = mass[first:last].copy(), loss[first:last]
        if upper:  # the lowest losses rise, the highest are revealed
            mass[0] += rest[0]
            infinite += rest[1]
        else:  # the highest losses fall
            mass[-1] += rest[1]
        error = 16.0 * ROUNDOFF * max(1.0, float(np.abs(loss).max()))
        return Atoms(mass, loss, infinite, loss_error=error, separate=True)


def additions(count: int) -> list[tuple[int, int]]:
    """Pairs of laws to add, each a new one; 0 is a single step, and the last pair is `count` steps."""
    found: list[tuple[int, int]] = []
    power, rest = 0, -1
    while count:
        if count & 1:
            if rest >= 0:
                found.append((rest, power))
            rest = len(found) if rest >= 0 else power
        count >>= 1
        if count:
            found.append((power, power))
            power = len(found)
    return found


def _grid(count: int, low: float, high: float, deviation: float) -> Array:
    """Where a law of `count` ratios is looked at: evenly near its mean 0, in octaves above and towards S = 0."""
    reach = FAR * deviation
    near = np.linspace(max(low, -reach), min(high, reach), NEAR)
    above = np.geomspace(reach, high, OCTAVES) if high > reach else np.empty(0)
    below = count * np.geomspace(NOUGHT, 0.5, OCTAVES) - count
    return np.unique(np.concatenate(([low], below[(below > low) & (below < high)], near, above)))


def _log_parts(law: RatioLaw) -> Array:
    """The smaller one of log E(V - v)_+ and log E(v - V)_+ at every value v."""
    v, q = law.value, law.mass
    gap = np.diff(v)
    beyond, before = np.cumsum(q[::-1])[::-1], np.cumsum(q)
    call = np.append(np.cumsum((beyond[1:] * gap)[::-1])[::-1], 0.0)
    put = np.append(0.0, np.cumsum(before[:-1] * gap))
    found: Array = np.log(np.maximum(np.minimum(call, put), 1e-300))
    return found


@dataclass(frozen=True)
class Wanted:
    """What a sum of steps is made for; it decides where knots go, and nothing else.

    depth : log of how far below its largest value E(S - s)_+ still matters, at every s. log_value : of E(S/count - s)_+
    at the one s that matters instead. power : of S/count whose mean matters instead, less 2: that of a moment, if
    rounds are composed under its tilt.
    """

    depth: float
    log_value: float | None = None
    power: float | None = None

    def bends(self, law: RatioLaw) -> Array:
        """f'' of the f whose mean should be known, at every value of the sum."""
        if self.power is not None:
            return np.exp(self.power * np.log(np.maximum(1.0 + law.value / law.steps, LEAST)))
        log_part = _log_parts(law)
        top = float(log_part.max())
        if self.log_value is None:
            log_bend = -np.maximum(log_part - top, -self.depth)
        else:
            away = log_part - min(self.log_value + math.log(law.steps), top)
            log_bend = -np.abs(away) - np.maximum(away, 0.0)
        found: Array = np.abs(np.gradient(log_part, law.value)) * np.exp(log_bend - log_bend.max())
        return found


def chosen_knots(law: RatioLaw, steps: list[tuple[int, int]], number: int, wanted: Wanted) -> list[Array]:
    """Knots of one step and of all sums; the arguments are those of `ratio_sum`."""
    deviation = math.sqrt(float(law.mass @ law.value**2))
    low, high = float(law.value[0]), float(law.value[-1])
    laws = [law.plus(NOTHING, _grid(1, low, high, deviation), Side.UPPER)]
    for left, right in steps:
        count = laws[left].steps + laws[right].steps
        high = laws[left].value[-1] + laws[right].value[-1]
        grid = _grid(count, low * count, high, deviation * math.sqrt(count))
        laws.append(laws[left].plus(laws[right], grid, Side.UPPER))
    weights = [np.zeros(law.value.size) for law in laws]
    weights[-1] = wanted.bends(laws[-1])
    for k in range(len(laws) - 1, 0, -1):
        left, right = steps[k - 1]
        for part, rest in ((left, right), (right, left)):
            found = np.empty(laws[part].value.size)
            _expected(laws[part].value, laws[rest].value, laws[rest].mass, laws[k].value, weights[k], found)
            weights[part] += found
    everywhere = EVERYWHERE[int(wanted.log_value is None)]
    return [_spaced(law, weight, number, everywhere) for law, weight in zip(laws, weights, strict=True)]


def _spaced(law: RatioLaw, weight: Array, number: int, everywhere: float) -> Array:
    grid, gap = law.value, np.diff(law.value)
    important = np.cbrt(law.mass / np.gradient(grid) * weight)
    octaves = np.arcsinh(grid / math.sqrt(float(law.mass @ grid**2)))
    octaves += np.log(np.minimum(1.0, 1.0 + grid / law.steps) + NOUGHT)
    important = 0.5 * (important[1:] + important[:-1]) * gap
    share = important / important.sum() + everywhere * np.diff(octaves) / (octaves[-1] - octaves[0])
    places = np.append(0.0, np.cumsum(share))
    knots: Array = np.interp(np.linspace(0.0, places[-1], number + 1), places, grid)
    return knots


@kernel("1 1 1 1 1 o1", lambda at, y, *rest: 3e-7 * at.size * y.size)
def _expected(at, y, q, grid, weight, found):
    """found[i] = sum_j q[j] weight(at[i] + y[j]), interpolated on its grid, and constant beyond."""
    last = grid.shape[0] - 2
    start = 0
    for i in range(at.shape[0]):
        while start < last and grid[start + 1] <= at[i] + y[0]:
            start += 1
        c = start
        total = 0.0
        for j in range(y.shape[0]):
            v = at[i] + y[j]
            while c < last and grid[c + 1] <= v:
                c += 1
            share = min(1.0, max(0.0, (v - grid[c]) / (grid[c + 1] - grid[c])))
            total += q[j] * (weight[c] + share * (weight[c + 1] - weight[c]))
        found[i] = total


def _distinct(left: RatioLaw, right: RatioLaw, number: int) -> Array | None:
    """The sums of two laws themselves, where they are not more than knots would be: few values stay exact."""
    if left.value.size * right.value.size > 16 * number:
        return None
    sums = np.sort(np.add.outer(left.value, right.value).ravel())
    found = sums[np.append(True, np.diff(sums) > SAME * float(np.abs(sums).max()))]
    return found if found.size <= number else None


def ratio_sum(laws: Sequence[RatioLaw], count: int, number: int, wanted: Wanted) -> list[RatioSum]:
    """The sum of `count` steps on each side, from the laws of one step; number : of knots, about."""
    steps = additions(count)
    if not steps:
        return [RatioSum(side, 1, law, None, law.value) for side, law in zip(Side, laws, strict=True)]
    knots = chosen_knots(laws[0], steps, number, wanted)
    found = []
    for side, law in zip(Side, laws, strict=True):
        known = [law if law.value.size <= number or wanted.log_value is None else law.plus(NOTHING, knots[0], side)]
        for (left, right), places in zip(steps[:-1], knots[1:-1], strict=True):
            own = _distinct(known[left], known[right], number)
            known.append(known[left].plus(known[right], places if own is None else own, side))
        left, right = steps[-1]
        own = _distinct(known[left], known[right], number)
        found.append(RatioSum(side, count, known[left], known[right], knots[-1] if own is None else own))
    return found
