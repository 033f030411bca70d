"""Theorem C among few users: by the sums of all datasets, instead of a contour for all of them. Arrays only.

A dataset says how many of the K users who come have which type of law. Its E X_+ is a finite sum, and the maximum over
datasets is the theorem's bound as it stands. Where users take part independently, it is taken for every number K that
matters, by a contour if K is not so small; of rare numbers H_s is at most K/n times the target's own. Proof:
docs/swap.md, "Few users".
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from ..numerics.binomial import Trials, counts
from ..numerics.rounding import ROUNDOFF
from .cohort import Cohort

Array = NDArray[np.float64]
_Sum = tuple[Array, Array, Array]  # masses, bases, slopes

ROUNDED = 2.0**-50  # relative error of a mass that took a few operations
MOST_CASES = 20_000  # of sums, all datasets together: width against speed
RARE, LITTLE = 1e-40, 3e-4  # chance of numbers that are not looked at; share of a bound that a rare one may make


def few_come(n: int, cohort: Cohort, values: int) -> bool:
    """Whether `by_dataset` says more than a contour: few users of a hidden cohort, or few who come."""
    return not (cohort.certain or cohort.everybody) and _cases(1 + int(n * cohort.presence), values) <= MOST_CASES


def by_dataset(
    n: int, cohort: Cohort, types: Sequence[Array], relative: float, expm1_eps: Array, known: Array,
    contour: Callable[[int, float, Array], Array],
) -> Array:  # fmt: skip
    """Upper bounds, at most `known`: those of Theorem C for every number of users who come, where `few_come`.

    types : (weight, excess, base, slope, line_error) as in `swap`, not moved and without absence. relative : error of
    masses. contour : the bound of a number of users who come, their share of all, and points, for larger numbers.
    """
    weight, _, base, slope, line_error = types
    numbers = counts([Trials(n, cohort.presence, cohort.absence)], RARE)
    chances = numbers.masses * (1.0 + numbers.largest_error)
    come = np.arange(numbers.low, numbers.low + chances.size)
    shares = cohort.rate_above * come / n * (1.0 + ROUNDED)
    growth = expm1_eps[:, None, None]
    with np.errstate(over="ignore"):  # then nothing is told
        own = base + line_error[:, :, 0] - (slope - line_error[:, :, 1]) * growth
    alone = (np.maximum(own, 0.0) * weight).sum(axis=2).max(axis=1) * (1.0 + relative + 64.0 * ROUNDOFF)
    told = np.outer(chances * shares, alone)  # for each number of users, where no more is said
    matter = told > LITTLE * known
    asked = [j for j in np.flatnonzero(matter.any(axis=1)).tolist() if 0.0 < shares[j] < 1.0]
    values = int(np.count_nonzero(weight))
    listed = [j for j in asked if _cases(int(come[j]), values) <= MOST_CASES]
    most = int(come[listed[-1]]) if listed else 0
    sums = [_sums(most, w[w > 0.0], b[w > 0.0], c[w > 0.0]) for w, b, c in zip(weight, base, slope, strict=True)]
    for j in asked:
        number, share, points = int(come[j]), float(shares[j]), expm1_eps[matter[j]]
        if j in listed:
            bound = _largest(number, sums, types, share, relative, points)
        else:
            bound = contour(number, share, points)
        told[j, matter[j]] = np.minimum(told[j, matter[j]], chances[j] * bound)
    found = (told.sum(axis=0) + numbers.below + numbers.above) * (1.0 + ROUNDED * chances.size)
    return np.asarray(np.minimum(known, found))


def _cases(n: int, values: int) -> int:
    """How many sums all datasets of n users have, of types with so many values in all."""
    return math.comb(n + values - 1, n)


def _largest(
    n: int, sums: Sequence[list[_Sum]], types: Sequence[Array], rate: float, relative: float, expm1_eps: Array
) -> Array:
    """rate/n times the largest E (sum L - n (1 - rate) g/rate)_+ of all datasets of n users."""
    _, _, base, slope, line_error = types
    away = n * (1.0 - rate) / rate
    error = n * (line_error[:, :, 0].max() + expm1_eps * line_error[:, :, 1].max())
    size = n * np.abs(base).max() + expm1_eps * (n * np.abs(slope).max() + away)
    error += ROUNDOFF * (n + 16.0) * size
    found = np.zeros(expm1_eps.size)
    for split in _splits(n, len(sums)):
        mass, rise, fall = reduce(_joint, (law[m] for law, m in zip(sums, split, strict=True)))
        value = rise[:, None] - np.multiply.outer(fall + away, expm1_eps) + error
        np.maximum(found, np.maximum(mass, 1e-300) @ np.maximum(value, 0.0), out=found)
    return np.asarray(rate / n * found * (1.0 + n * (relative + 64.0 * ROUNDOFF)))


def _splits(n: int, parts: int) -> Iterator[tuple[int, ...]]:
    """All ways to write n as an ordered sum of so many parts."""
    for bars in itertools.combinations(range(n + parts - 1), parts - 1):
        ends = (-1, *bars, n + parts - 1)
        yield tuple(after - before - 1 for before, after in itertools.pairwise(ends))


def _sums(most: int, weight: Array, base: Array, slope: Array) -> list[_Sum]:
    """The sum of 0, 1, ... `most` independent values."""
    found = []
    for m in range(most + 1):
        numbers = np.array(list(_splits(m, weight.size)), np.float64)
        ways = [math.factorial(m) / math.prod(math.factorial(int(j)) for j in row) for row in numbers]
        found.append((np.array(ways) * np.prod(weight**numbers, axis=1), numbers @ base, numbers @ slope))
    return found


def _joint(one: _Sum, other: _Sum) -> _Sum:
    """Of two independent sums."""
    (p, a, b), (q, c, d) = one, other
    return np.outer(p, q).ravel(), np.add.outer(a, c).ravel(), np.add.outer(b, d).ravel()
