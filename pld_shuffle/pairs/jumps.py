"""Sums of slots some of whose values are far out: how many of these there are, and how large, is summed directly.

Gaussian noise has unbounded ratios, and E exp(zL) feels the largest one. A value above a height is a *jump*. What
remains has a short tail, and a contour; to it comes the total T of all jumps, of a compound Poisson law. H_s is at most
the mean of F(T), a bound for the sum of what remains and T. It is known by two real moments, and by contours for the
totals that matter. Proof: docs/swap.md, "Jumps".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from ..numerics.sides import ROUNDOFF, Array

#: (weight, excess, base, slope, line_error) of types of laws, shape (types, points).
Types = tuple[Array, Array, Array, Array, Array]

HEIGHT = 2.0  # of jumps, in deviations of the sum: of n users less than 1/4 jump
TOTALS, ARGUMENTS, SHIFTS = 192, 24, 32  # of T, and of either moment: width against speed
TERMS = 24  # jumps at a time: more would not matter
WIDE, MATTERS = 1.5, 0.01  # of totals on one contour, times its saddle point; share of H_s that asks for one
GAIN = 0.15  # of a bound by moments, that a contour may leave
FARTHEST = 7.0  # u, times n, beyond the logarithm of 1/H_s
ROUNDED = 1e-9  # relative error of what is summed here: positive terms


class _Bulk(NamedTuple):
    """What is left of types and a guest without their jumps; and those."""

    types: Types
    guest: Array
    means: Array  # of the sums of n users of a type and the guest
    spreads: Array  # bounds on their variances
    totals: Array
    jumps: Array  # expected numbers, by total
    masses: Array  # of totals of no jump, one, two and so on
    excess: float  # mean of what jumps have beyond the largest total


def profile(
    n: float, types: Types, guest: Array, max_u: float, share: float, coins: bool, relative: float, plain: Array,
    known: Array, expm1_eps: Array, contour: Callable[[Types, Array, Array, float], float],
) -> Array:  # fmt: skip
    """Upper bounds as those of `swap_kernels.profile` for n users of these types and a guest.

    coins : each of n/share users comes with probability `share`, types have no excess, and the case that all come is
    the caller's. plain : the target's own divergence. known : bounds; what is hardly below them is not looked for.
    contour : types, a guest, (masses, totals) of jumps, and the growth -> their mean of F.
    """
    found = plain.copy()
    for i, g in enumerate(expm1_eps.tolist()):
        value = types[2] - g * types[3]
        height = HEIGHT * math.sqrt(n * float(np.max(np.sum(types[0] * value * value, axis=1))))
        worst = int(np.argmax(np.sum(types[0] * np.maximum(value, 0.0) ** 2, axis=1)))
        weight, excess, base, slope, error = (part[worst : worst + 1] for part in types)
        bulk = _split(n, (weight, excess, base, slope, error), guest, g, share, coins, height, 0.0)
        parts, beyond, _ = _parts(n, bulk, g, share, coins, 0.0, relative)
        rough = max(float(parts.sum()) + beyond, 1e-300)  # it shows how far u has to go
        last = max(FARTHEST - math.log(rough), FARTHEST) / n
        last = min(0.5, share * last) if coins else min(max_u, last)
        bulk = _split(n, types, guest, g, share, coins, height, last)
        parts, answer, saddle = _parts(n, bulk, g, share, coins, last, relative)
        # Where the mean is positive contours gain nothing.
        enough, near = MATTERS * (float(parts.sum()) + answer), bulk.totals < -float(bulk.means.min())
        if answer + float(parts @ np.where(near, GAIN, 1.0)) > known[i]:
            enough = math.inf
        for part, masses in _bins(bulk, saddle):
            some = float(parts[part].sum())
            if some > enough and near[part.start]:
                some = min(some, contour(bulk.types, bulk.guest, np.array([masses, bulk.totals[part]]), g))
            answer += some
        if coins:
            answer += math.exp((n / share - 1.0) * math.log1p(-last)) * (plain[i] + share * g)
        elif max_u > 0.0:
            answer += math.exp(n * math.log1p(-last)) * plain[i]
        found[i] = min(found[i], answer * (1.0 + ROUNDED))
    return np.asarray(found)


def _split(
    n: float, types: Types, guest: Array, g: float, share: float, coins: bool, height: float, last: float
) -> _Bulk:
    """Values above the height are jumps; those below -height are lifted. last : the greatest u, or v of the coins."""
    weight, excess, base, slope, error = types
    shift = (1.0 - share) / share * g
    given = base - g * slope
    factor = np.minimum(1.0, 1.0 - last / (1.0 - last) * excess)  # the least that divides a value; 1 with coins
    jumping = (given > height) & (weight > 0.0)
    value = np.where(jumping, 0.0, np.maximum(given, -height))
    error = error[:, :, 0] + g * error[:, :, 1] + 8.0 * ROUNDOFF * (np.abs(base) + g * np.abs(slope))
    # One guest may be lifted more.
    mass, own = guest[0], guest[1] - g * guest[2]
    far = own > height
    rest = np.where(far, 0.0, np.maximum(own, -1.0 - 0.3 * math.sqrt(n)))
    means, mean = np.sum(weight * value, axis=1), float(mass @ rest)
    spreads = n * np.sum(weight / factor * value**2, axis=1) + float(mass @ rest**2)
    if coins:  # of a number of values, mean included
        spreads += n * (means + g) ** 2
    totals = np.linspace(0.0, 1.0, TOTALS + 1) * (n * (g + shift) + 8.0 * math.sqrt(float(spreads.max())))
    # Of every jump, a user is missing from the rest; its mean is added instead.
    lift = max(g if coins else 0.0, -float(means.min()), -mean)
    column = np.any(jumping, axis=0)
    numbers = (n / (1.0 - last) if coins else n) * np.where(jumping, weight, 0.0)[:, column]
    sizes = ((given + error) / factor + lift)[:, column]
    alone, size = mass[far], own[far] + lift
    calls = [
        float(np.max(np.sum(numbers * np.maximum(sizes - t, 0.0), axis=1)) + alone @ np.maximum(size - t, 0.0))
        for t in totals.tolist()
    ]
    slopes = np.diff(calls) / totals[1]
    jumps = np.concatenate(([0.0], np.maximum(np.diff(slopes), 0.0), [-slopes[-1]])) * (1.0 + ROUNDED)
    number = (float(numbers.sum(axis=1).max()) + float(alone.sum())) * (1.0 + ROUNDED)
    jumps[0] = max(0.0, number - float(jumps.sum()))
    kept = (weight, excess, value, 0.0 * value, np.stack([error, 0.0 * error], axis=2))
    visitor = np.array([mass, rest, 0.0 * rest])
    return _Bulk(kept, visitor, n * (means - shift) + mean, spreads, totals, jumps, _masses(jumps), calls[-1])


def _parts(
    n: float, bulk: _Bulk, g: float, share: float, coins: bool, last: float, relative: float
) -> tuple[Array, float, float]:
    """F at totals, times their masses; the mean of F over larger ones; and about the saddle point without jumps.

    X_+ <= e^(xX)/(e x), and X_+ <= (X + c)^2/(4c): the greatest of all types at one x, or one c.
    """
    weight, excess, base, _, _ = bulk.types
    shift, v, totals = (1.0 - share) / share * g, 0.0 if coins else last / (1.0 - last), bulk.totals
    beta, (mass, own, _) = 1.0 - v * excess, bulk.guest
    deviation = math.sqrt(float(bulk.spreads.max()))
    arguments = np.geomspace(0.2, 4.0 * (2.0 + n * (g + shift) / deviation), ARGUMENTS) / deviation
    logs = np.full(ARGUMENTS, math.inf)
    for k, x in enumerate(arguments.tolist()):
        error = (8.0 * relative + ROUNDOFF * (base.shape[1] + 64.0)) * (1.0 + x)
        start = _moment(weight, x * (base + (g if coins else -shift)), error)
        visitor = _moment(mass[None], x * own[None], error)
        rise = 0.0
        if v > 0.0 and start < math.inf:  # M is convex in v
            rise = max(_moment(weight * beta, x * base / beta, error) - start, 0.0) / (v * (1.0 + start))
        room = n * (1.0 - rise * (1.0 + v))
        if room > 0.0 and start + visitor < math.inf:
            power = n / share * (math.log1p(share * start) - x * g) if coins else n * math.log1p(start)
            logs[k] = power + math.log1p(visitor) - 1.0 - math.log(x * room)
    far = np.exp(np.minimum(np.min(logs[:, None] + np.outer(arguments, totals), axis=0), 700.0))
    mean = bulk.means[:, None] + totals
    moved = np.abs(mean).max(axis=0) + deviation * np.geomspace(0.05, 20.0, SHIFTS)[:, None]
    slack = relative * n * (2.0 + g + shift)
    square = (np.abs(mean + moved[:, None]) + slack) ** 2 + bulk.spreads[:, None]
    near = np.min(np.max(square, axis=1) / moved, axis=0) / (4.0 * n)
    values = share * np.minimum(far, near) * (1.0 + ROUNDED)
    return bulk.masses * values, _beyond(bulk, float(values[-1]), share / n), float(arguments[np.argmin(logs)])


def _moment(mass: Array, exponent: Array, error: float) -> float:
    """E exp(x L) - 1, the largest of all types, rounded up; 0 without a guest."""
    if float(exponent.max(initial=0.0)) > 700.0:
        return math.inf
    found = float(np.max(np.sum(mass * np.expm1(exponent), axis=-1)))
    return found + error * (2.0 + abs(found)) * (1.0 + float(np.abs(exponent).max(initial=0.0)))


def _masses(jumps: Array) -> Array:
    """Of totals of no jump, one, two and so on: those of the exponential of their law."""
    found = np.zeros(jumps.size)
    found[0] = math.exp(jumps[0])
    placed = np.arange(found.size) * jumps
    for j in range(1, found.size):
        found[j] = placed[1 : j + 1] @ found[j - 1 :: -1] / j
    return found


def _beyond(bulk: _Bulk, last: float, slope: float) -> float:
    """The mean of `last` + slope (T - the largest total), over larger T, and of what jumps have beyond it."""
    jumps, totals = bulk.jumps, bulk.totals
    number, mean = float(jumps.sum()), float(jumps @ totals)
    over, start, rise, found, ways = np.zeros(totals.size), last, slope, 0.0, 1.0
    for k in range(1, TERMS + 1):  # jumps, from any total on
        ahead = np.append(over, start + rise * totals[1:])
        over = np.correlate(ahead, jumps, "valid") / k
        start, rise, ways = (number * start + mean * rise) / k, number * rise / k, ways * number / k
        found += float(over[0])
    found += 2.0 * ways * (last + (TERMS + 1.0) * (mean + 1.0) * slope)
    return (found + bulk.excess * math.exp(number) * slope) * (1.0 + ROUNDED)


def _bins(bulk: _Bulk, saddle: float) -> Iterator[tuple[slice, Array]]:
    """No jump; and neighbouring totals that share a contour, with their masses."""
    masses = bulk.masses
    count = max(1, int(WIDE / (saddle * float(bulk.totals[1]))))
    for first in (0, *range(1, masses.size, count)):
        part = slice(first, min(first + count, masses.size) if first else 1)
        if masses[part].sum() > 0.0:
            yield part, masses[part]
