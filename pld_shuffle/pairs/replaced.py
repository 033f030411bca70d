"""Replacement hidden in one of k steps of Gaussian noise: sums whose values are the same for every s.

With z ~ N(0, 1) under W, mu = 1/sigma, X = e^(mu z - mu^2/2), Y = e^(-mu z - mu^2/2) a step has

    L = X - s Y = 2 e^(-mu^2/2) sqrt(s) sinh(mu y),   y = z - c ~ N(-c, 1),   c = log(s)/(2 mu) :

the values sinh(mu y) do not depend on s, their masses do. So the sums of many s are made at once, in the same cells
(docs/shuffled_batches.md, section 4, Lemma 6). From above a cell's mass is spread to its ends. From below only what
lies in a cell is known under W, P and Q: then every set T of cells is a test, with P(T) - s Q(T) <= H_s for all s.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..numerics.compiled import kernel
from ..numerics.sides import ROUNDOFF, Array, Bounds, Side
from ..numerics.tuning import RATIO_KNOTS, SUM_RTOL
from .ratio_sums import RatioLaw, Wanted, additions, beyond, chosen_knots, coarse_laws

FAINT = 1e-7  # what the lowest values of all steps may change, relative: they are one
TOGETHER, REACH = 16, 0.6  # s that are asked together at most; deviations between them, over the root of the steps
LOOKED = 400  # cells of the law that knots are chosen with
CLOSE = 0.01  # deviations from a sum of 0 where octaves begin
FARTHEST = 36.0  # deviations from any of the three points; beyond, masses underflow
# Nodes and weights of a cell: their error is below 1e-16 of it where it is at most WIDEST.
LEGENDRE = np.polynomial.legendre.leggauss(8)
WIDEST = 2.0  # a cell's width, in deviations, times the largest slope of an exponent in it
LEAST, SMALLEST = 1e-290, 1e-280  # of what logarithms are taken of, and W-mass of a cell that is kept from below
UNDERFLOW = 1e-305  # times the largest ratio: more than all that underflows


@dataclass(frozen=True, eq=False)
class Laws:
    """Laws of sums, each in a column: masses under W on `place` (above), or under W, P and Q of cells near it (below).

    P and Q of a sum are those of its steps, one with the contribution, added. mass : shape (1 or 3, cells, columns), to
    a relative `error`. middle : s of the middle column, its logarithm, and that of the unit of places there.
    """

    place: Array
    mass: Array
    error: float
    middle: tuple[float, float] = (0.0, 0.0)

    def plus(self, other: Laws, knots: Array) -> Laws:
        """The laws of the sum on knots: spread to them, or merged in cells, in which sums are by their places."""
        x, y, upper = self.place, other.place, self.mass.shape[0] == 1
        low, high = float(x[0] + y[0]), float(x[-1] + y[-1])
        knots = np.concatenate(([low], knots[(knots > low) & (knots < high)], [high]))
        ends = knots if upper else np.append(low, 0.5 * (knots[1:] + knots[:-1]))
        block, most = max(4, round(math.sqrt(0.5 * x.size))), np.zeros(1)
        (p, more), (q, rest) = self._factors, other._factors
        found = np.empty((2 if upper else 1, ends.size, p.shape[1]))
        _added_each(x, p, more, y, q, rest, self is other, upper, block, ends, found, most)
        if not upper:
            found = np.moveaxis(found.reshape(ends.size, 3, -1), 1, 0)
        depth = 4.0 * (2.0 * float(most[0]) + block + x.size / block + 16.0) * ROUNDOFF
        error = (self.error + other.error) * (1.0 + 1e-6) + depth
        return Laws.spread(ends, found, error, depth) if upper else Laws.merged(found, error, self.middle)

    @property
    def _factors(self) -> tuple[Array, Array]:
        """Masses of which products are added: under W; or rows p and q, of which p q' + q p' are, for W, P and Q."""
        w, *others = self.mass
        return (np.concatenate((w, w, w), axis=1), np.concatenate((0.5 * w, *others), axis=1)) if others else (w, w)

    @classmethod
    def spread(cls, ends: Array, found: Array, error: float, inexact: float) -> Laws:
        """From masses and moments from the end where a cell begins, which may lack `inexact` of it, or of its place."""
        (mass, moment), width = found, np.diff(ends)[:, None]
        place = np.maximum(np.abs(ends[1:]), np.abs(ends[:-1]))[:, None]
        right = moment[:-1] / width + inexact * (1.0 + place / width) * mass[:-1]
        right = np.minimum(mass[:-1], right)
        mass[:-1] -= right
        mass[1:] += right
        return cls(ends, mass[None], error + 4.0 * ROUNDOFF)

    @classmethod
    def merged(cls, mass: Array, error: float, middle: tuple[float, float]) -> Laws:
        """From masses under W, P and Q; places are the values of the middle column, and certify nothing."""
        mass = mass[:, mass[0].min(axis=1) > SMALLEST]
        column = mass[:, :, mass.shape[2] // 2]
        place = column[1] / column[0] * math.exp(-middle[1]) - column[2] / column[0] * math.exp(middle[0] - middle[1])
        order = np.argsort(place, kind="stable")
        return cls(place[order], mass[:, order], error, middle)


@kernel(
    "1 2 2 1 2 2 b b i 1 o3 o1", lambda x, p, more, y, *rest: 3e-7 * x.size * y.size * p.shape[1],
    rows=True, error_model="numpy",
)  # fmt: skip
def _added_each(x, p, more, y, q, rest, same, levers, block, ends, found, most):
    """Fill products of masses in cells that begin at `ends`, of all columns; with levers, and moments from there.

    Without: p times `rest` plus `more` times q. same : y is x, and pairs are taken once. most : the most sums in one
    cell of a block of rows. Those of a block are added first, then blocks.
    """
    m = ends.shape[0]
    n = y.shape[0]
    width = p.shape[1]
    kinds = found.shape[0]
    some = np.zeros((kinds, m, width))  # of a block
    number = np.zeros(m)
    edge = np.full(m + 1, math.inf)
    for c in range(m):
        edge[c] = ends[c]
        for kind in range(kinds):
            for k in range(width):
                found[kind, c, k] = 0.0
    start = 0
    lowest = 0
    largest = 0.0
    for i in range(x.shape[0]):
        begun = i if same else 0
        while edge[start + 1] <= x[i] + y[begun]:
            start += 1
        c = start
        if i % block == 0:
            lowest = start
        p_i = p[i]
        more_i = more[i]
        for j in range(begun, n):
            value = x[i] + y[j]
            while edge[c + 1] <= value:
                c += 1
            times = 2.0 if same and j > i else 1.0
            number[c] += 1.0
            q_j = q[j]
            here = some[0, c]
            if levers:
                there = some[1, c]
                away = value - edge[c]
                for k in range(width):
                    weight = times * p_i[k] * q_j[k]
                    here[k] += weight
                    there[k] += away * weight
            else:
                rest_j = rest[j]
                for k in range(width):
                    here[k] += times * (p_i[k] * rest_j[k] + more_i[k] * q_j[k])
        if i % block == block - 1 or i == x.shape[0] - 1:
            for c in range(lowest, m):
                if number[c] > 0.0:
                    largest = max(largest, number[c])
                    number[c] = 0.0
                    for kind in range(kinds):
                        for k in range(width):
                            found[kind, c, k] += some[kind, c, k]
                            some[kind, c, k] = 0.0
    most[0] = largest


def summed(law: Laws, operations: Sequence[tuple[int, int]], knots: Sequence[Array]) -> tuple[Laws, Laws]:
    """Two laws whose sum is that of all steps: only a value of it is wanted."""
    known = [law]
    for (left, right), places in zip(operations[:-1], knots, strict=True):
        known.append(known[left].plus(known[right], places))
    if not operations:
        nothing = np.zeros((law.mass.shape[0], 1, law.mass.shape[2]))
        nothing[0] = 1.0
        return law, Laws(np.zeros(1), nothing, 0.0)
    left, right = operations[-1]
    return known[left], known[right]


def mean_above(one: Laws, other: Laws) -> Array:
    """E(V + V')_+ of every column, from above."""
    error = one.error + other.error + 8.0 * (one.place.size + other.place.size + 4.0) * ROUNDOFF
    columns = range(one.mass.shape[2])
    return (1.0 + 1.01 * error) * np.array(
        [beyond(-one.place, one.mass[0, :, k].copy(), other.place, other.mass[0, :, k].copy()) for k in columns]
    )


def best_tests(one: Laws, other: Laws, log_s: Array) -> tuple[Array, Array, float]:
    """P- and Q-masses of the best test of every column, added over all steps, and their relative error."""
    found = np.empty((2, log_s.size))
    for column, log in enumerate(log_s.tolist()):
        laws = []
        for mass in (one.mass[..., column], other.mass[..., column]):
            value = mass[1] / mass[0] * math.exp(-0.5 * log) - mass[2] / mass[0] * math.exp(0.5 * log)
            order = np.argsort(value, kind="stable")
            laws.append((value[order], mass[:, order]))
        (x, p), (y, q) = laws
        rest = np.append(np.cumsum(q[:, ::-1], axis=1)[:, ::-1], np.zeros((3, 1)), axis=1)
        w, a, b = rest[:, np.searchsorted(y, -x, side="right")]
        found[:, column] = p[1] @ w + p[0] @ a, p[2] @ w + p[0] @ b
    error = 1.01 * (one.error + other.error) + 4.0 * (one.place.size + other.place.size + 4.0) * ROUNDOFF
    return found[0], found[1], error


@dataclass(frozen=True, eq=False)
class _Window:
    """Where y is looked at for shifts c near one of them; values are over `unit`, and at least -1."""

    noise: float
    low: float
    high: float

    @property
    def unit(self) -> float:
        return -math.sinh(self.low / self.noise)

    def laws(self, side: Side, shift: Array, places: Array) -> Laws:
        """One step in cells between these places of y. What is beyond them is at their ends, or left out."""
        from scipy.special import ndtr

        mu, (node, weight) = 1.0 / self.noise, LEGENDRE
        farthest = max(-self.low - float(shift.min()), self.high + float(shift.max()), 1.0) + mu
        pieces = math.ceil((self.high - self.low) * (farthest + mu) / WIDEST)
        edges = np.unique(np.concatenate((places, np.linspace(self.low, self.high, pieces + 1))))
        cell = np.searchsorted(places, edges[:-1], side="right") - 1
        half, first = 0.5 * np.diff(edges)[:, None], np.searchsorted(cell, np.arange(places.size - 1))
        offset = half * (1.0 + node) + (edges[:-1] - places[cell])[:, None]
        y, weight = places[cell][:, None] + offset, half * weight / math.sqrt(2.0 * math.pi)

        def cells(centre: float, lever: Array) -> Array:
            density = np.exp(-0.5 * (y[..., None] + (shift - centre)) ** 2)
            return np.asarray(np.add.reduceat(np.sum((weight * lever)[..., None] * density, axis=1), first))

        alone = np.ones(y.shape)

        error = (12.0 * farthest**2 + 16.0 * farthest * (float(shift.max()) + mu) + 4.0 * edges.size + 128.0) * ROUNDOFF
        if side is Side.LOWER:
            log = 2.0 * mu * float(shift[shift.size // 2])
            unit = math.log(2.0 * self.unit) + 0.5 * (log - mu * mu)
            return Laws.merged(np.array([cells(centre, alone) for centre in (0.0, mu, -mu)]), error, (log, unit))
        lever = np.cosh(mu * (y - 0.5 * offset)) * np.sinh(0.5 * mu * offset) * (2.0 / self.unit)
        last = np.zeros((1, shift.size))
        mass, moment = (np.append(cells(0.0, one), last, axis=0) for one in (alone, lever))
        mass[0] += ndtr(self.low + shift)
        mass[-1] += ndtr(-self.high - shift)
        inexact = error + (4.0 * mu * max(-self.low, self.high) + 32.0) * ROUNDOFF
        ends = np.sinh(mu * places) / self.unit
        return Laws.spread(ends + inexact * np.abs(ends), np.array([mass, moment]), error, inexact)


@lru_cache(maxsize=64)
def _chosen(
    noise: float, count: int, tail: float, shift: float, reach: float, rtol: float
) -> tuple[_Window, list[Array]]:
    """The window for shifts near one, places of a step in it, and knots of all sums but the last."""
    from scipy.special import ndtr, ndtri

    mu, operations = 1.0 / noise, additions(count)
    # Steps below `low` are as rare as FAINT, and rarer still are others that make up for them, as one step may.
    lows = np.linspace(float(ndtri(FAINT / count)), 0.0, LOOKED)
    needed = math.asinh(max(1, count - 1) * math.sinh(mu * shift)) / mu
    others = np.minimum(1.0, ndtr(mu - 2.0 * shift + lows) / max(LEAST, float(ndtr(mu - shift - needed))))
    rare = int(np.count_nonzero(np.asarray(ndtr(lows) * others) <= FAINT / count))
    low = float(lows[max(rare, 1) - 1]) - shift - reach
    high = min(mu - float(ndtri(tail)), FARTHEST - reach) - shift + reach
    window, places = _Window(noise, low, high), np.linspace(low, high, LOOKED)
    if not operations or high <= 0.0:  # every sum is a step, or none is above 0
        return window, [np.union1d(places, [min(0.0, high)]), *[np.empty(0)] * (len(operations) - 1)]
    law = window.laws(Side.LOWER, np.array([shift]), places)
    guide = RatioLaw(1, law.place, law.mass[0, :, 0], 0.0, 0.0, 0.0)
    steps, close = tuple((left, right, False) for left, right in operations), math.sinh(CLOSE * mu) / window.unit
    looked = coarse_laws(guide, steps, 0.0, close)[0][-1]
    least = math.log(tail) - math.log(2.0 * window.unit) - mu * shift + 0.5 * mu * mu  # of values that matter
    value = max(math.log(max(looked.profile(Side.LOWER, 0.0, False), LEAST)), least)
    wanted = Wanted(0.0, one=(value, rtol), above=True, close=close)
    first, *knots = chosen_knots(guide, steps, RATIO_KNOTS[1], wanted)
    inside = np.arcsinh(first * window.unit) / mu
    inside = inside[(inside > low) & (inside < high)]
    return window, [np.concatenate(([low], inside, [high])), *knots]


def each_summed(noise: float, count: int, side: Side, tail: float, expm1_eps: Array, rtol: float) -> Bounds:
    """H_s on a side: from above, or a convex function below it, from both sides.

    The function is the largest of the tests' lines, one for each s that is asked.
    """
    mu, upper = 1.0 / noise, side is Side.UPPER
    shift, reach = np.log1p(expm1_eps) / (2.0 * mu), REACH / math.sqrt(count)
    # Merged masses err by a third of what spread ones do.
    near, grade = np.rint(shift / reach), SUM_RTOL[1] * 2.0 ** (math.floor(math.log2(rtol)) + (0 if upper else 1))
    begins = np.flatnonzero(np.append(True, np.diff(near) != 0.0))
    found, slope = np.empty(shift.size), np.empty(shift.size)
    for begin, end in zip(begins, np.append(begins[1:], shift.size), strict=True):
        window, (places, *knots) = _chosen(noise, count, tail, reach * float(near[begin]), reach, grade)
        for first in range(begin, end, TOGETHER):
            here = slice(first, min(end, first + TOGETHER))
            sums = summed(window.laws(side, shift[here], places), additions(count), knots)
            if upper:
                found[here] = _above(window, count, shift[here], mean_above(*sums))
            else:
                p, q, error = best_tests(*sums, 2.0 * mu * shift[here])
                q, error = q / count * (1.0 + error), error + 16.0 * ROUNDOFF
                s = 1.0 + expm1_eps[here]
                lost = UNDERFLOW * (s + np.exp(mu * (window.high + shift[here])))
                found[here] = p / count * (1.0 - error) - s * q * (1.0 + 8.0 * ROUNDOFF) - lost
                slope[here] = q
    if upper:
        return Bounds(np.minimum(found, 1.0), np.minimum(found, 1.0))
    kept = found > 0.0
    falls = (expm1_eps - expm1_eps[kept][:, None]) * slope[kept][:, None]
    lines = found[kept][:, None] * (1.0 + 8.0 * ROUNDOFF) - (falls - 8.0 * ROUNDOFF * np.abs(falls))
    return Bounds(np.maximum(found, 0.0), np.max(lines, axis=0, initial=0.0))


def _above(window: _Window, count: int, shift: Array, mean: Array) -> Array:
    """H_s from E(sum)_+, with the P-mass beyond the window."""
    from scipy.special import ndtr

    mu = 1.0 / window.noise
    logs = np.log(np.maximum(mean, LEAST)), math.log(2.0 * window.unit / count) + mu * shift - 0.5 * mu * mu
    error = 8.0 * ROUNDOFF * (4.0 + np.abs(logs[0]) + abs(math.log(window.unit)) + mu * (shift + mu))
    lost = UNDERFLOW * np.exp(mu * (window.high + shift))
    return np.asarray(np.exp(logs[0] + logs[1]) * (1.0 + error) + lost + ndtr(mu - window.high - shift) * (1.0 + 1e-12))
