"""Many steps of a game in which one of the others' directions is the best: Theorem H of docs/shuffled_batches.md, 3.

Seen from a step, the value of the later ones is convex. If its curvature falls by no more than e^(-lam x) (forward; for
the other order e^(lam x), towards the left), all others at minus the target's contribution are worse than any other
direction, once `THINNED` of the terms on one side are made longer and rarer: then all earlier steps have that law, and
their sum is a slot law. Both things are certified: the first by making the value larger (`softened`), the second by an
inequality between four integrals for every cell of directions (`rate`).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..numerics.sides import Bounds
from .allocation import _edges, _merged
from .game import Played, calls
from .gaussian import gaussian_delta

Array = NDArray[np.float64]

THINNED = 0.003  # probability that a term on the side of the calls in question is 0, the others being longer
RATES = tuple(0.85**k for k in range(20))  # lam, tried from the largest one down
FIRST_CELL, GROWTH = 0.006, 0.1  # width of the first cell of cosines, and how much of its place more others have
# Strikes for every integral, at distances of a sinh, which is even up to so many deviations of a step.
STRIKES, DENSE = 128, 2.0
FAR = 400.0  # deviations of a step, where the last strike is at most
CELL, TAIL = 0.03, 1e-20  # of the law that all others are compared with
FORGOTTEN = 1e-9  # slope of a value at its ends that is not looked at closely


def _weights(at: Array, rate: float) -> Array:
    """Weights of a piecewise linear function's values in its integral with e^(rate y) from the first place on."""
    gap = np.diff(at)
    u = rate * gap
    scale = np.exp(rate * at[:-1]) * gap / (u * u)
    ends = scale * (np.expm1(u) - u), scale * (1.0 + np.exp(u) * (u - 1.0))
    return np.asarray(np.append(ends[0], 0.0) + np.append(0.0, ends[1]))


def _cosines() -> Array:
    number = math.ceil(math.log1p(2.0 * GROWTH / FIRST_CELL) / math.log1p(GROWTH))
    return np.asarray(np.minimum(1.0, FIRST_CELL / GROWTH * np.expm1(math.log1p(GROWTH) * np.arange(number + 1)) - 1.0))


@lru_cache(maxsize=256)
def rate(sigma: float, forward: bool, expm1_eps: float, excess: float) -> float | None:
    """The largest lam of RATES for which one direction is the worst, up to `excess` in the mean; None if there is none.

    With C the calls of L (puts, in the other order) and P its puts (calls), both at distances y >= 0 from 0: for all
    cosines c the integral of e^(-lam y) C over y >= 0 and that of e^(lam y) P up to the end, where P is at most
    `excess`, are together at most those of the thinned law at c = -1. In a cell of c, C is at most that of its left
    end, and P that of its right one (Theorem G).
    """
    mu, s = 1.0 / sigma, 1.0 + expm1_eps

    def delta_at(eps: float) -> float:
        return float(gaussian_delta(Bounds(mu, mu * (1.0 + 1e-15)), np.array([eps * (1.0 - 1e-15)])).upper[0])

    middle = delta_at(math.log1p(expm1_eps))
    # (1 - a l_1 - b l_2)_+ times `factor`: of the law in front, with s and y over it.
    (one, a), (two, b) = ((1.0, s), (s, 1.0 / s)) if forward else ((s, 1.0 / s), (1.0, s))
    starts = (middle, middle + expm1_eps) if forward else (middle + expm1_eps, middle)

    def places(end: float) -> Array:
        dense = DENSE * mu
        return np.asarray(dense * np.sinh(np.linspace(0.0, math.asinh(end / dense), STRIKES)))

    def beyond(end: float) -> float:
        """P at c = 1."""
        return two * delta_at(math.log((1.0 + end) / s if forward else s + end))

    end = expm1_eps + 4.0 * mu
    while beyond(end) > excess:
        end *= 1.2
        if end > FAR * mu:
            return None
    near, far, cosines = places(2.0 * end), places(end), _cosines()
    inner = np.array([np.append(starts[0], one * calls(mu, c, True, a, near[1:] / one)) for c in cosines[:-1].tolist()])
    outer = np.array([np.append(starts[1], two * calls(mu, c, False, b, far[1:] / two)) for c in cosines[1:].tolist()])
    rows = _merged(sigma, _edges(sigma, TAIL, CELL))
    first, second = (rows[0], rows[1]) if forward else (rows[1], rows[0])
    held = rows[2] > 0.0
    value = (first - s * second)[held] / rows[2][held] * (1.0 if forward else -1.0)
    mass = rows[2][held]
    ahead, behind, kept = np.maximum(value, 0.0) / (1.0 - THINNED), np.maximum(-value, 0.0), 1.0 - THINNED
    for lam in RATES:
        u, m = lam * ahead, np.minimum(behind, end)
        gained = kept * float(mass @ (np.expm1(-u) + u))
        lost = float(mass @ (lam * behind * np.expm1(lam * m) - lam * m * np.exp(lam * m) + np.expm1(lam * m)))
        found = inner @ _weights(near, -lam) + inner[:, -1] * math.exp(-lam * near[-1]) / lam
        if np.all(found + outer @ _weights(far, lam) <= (gained + lost) / lam**2 * (1.0 - 1e-9)):
            return lam
    return None


def softened(
    played: Played, lam: float, forward: bool, number: int, least: float, tilt: float, mean: float
) -> tuple[Array, Array, float]:
    """Strikes y, weights w and a constant: constant + sum of w (x - y)_+ is above a value of slow curvature.

    number : of strikes between the places where the value is about `least` and where its slope is nearly 1, half of
    them denser where a normal law around -mean, with saddle point `tilt`, meets the curvature.
    """
    place, h = played.place, float(played.place[1] - played.place[0])
    slopes = np.concatenate(([0.0], np.diff(played.value) / h, [1.0]))
    slopes = np.maximum.accumulate(slopes)
    kinks = np.diff(slopes) + 4e-16 * slopes[1:]
    if forward:
        last = int(np.argmax(slopes[1:] >= 1.0 - FORGOTTEN))
        kinks[last] += max(0.0, float(slopes[-1] - slopes[last + 1]))
        kinks[last + 1 :] = 0.0
    rising = lam * (place - place[0]) if forward else lam * (place[-1] - place)
    log_kinks = np.log(np.maximum(kinks, 1e-300)) + rising
    log_kinks = np.maximum.accumulate(log_kinks) if forward else np.maximum.accumulate(log_kinks[::-1])[::-1]
    kinks = np.exp(log_kinks - rising)
    # A kink is spread over a cell of its own, whose mean is not on its right; beyond the lattice there are more cells.
    rest = kinks[-1 if forward else 0] / (-math.expm1(-lam * h)) * math.exp(-lam * h)
    slope = np.cumsum(kinks) + (0.0 if forward else rest)
    value = np.concatenate(([0.0], np.cumsum(slope[:-1]) * h))
    if not forward:
        value += rest * h / (-math.expm1(-lam * h))
    value += float(played.value[0]) + 0.1 * lam * h * h * slope + 0.25 * h * kinks
    total = float(slope[-1] + (rest if forward else 0.0)) * (1.0 + 1e-12)
    first = max(0, int(np.searchsorted(value, float(played.value[0]) + least)) - 1)
    last = max(first + 1, min(place.size - 1, int(np.searchsorted(slope, slope[-1] - 1e-3)) + 1))
    part = slice(first, last + 1)
    depth = np.clip(-place[part], 0.0, mean)
    bend = np.cbrt(kinks[part])
    more = bend * np.exp(tilt / 3.0 * depth * (1.0 - 0.5 * depth / max(mean, 1e-300)))
    near = np.cumsum(bend / bend.sum() + more / more.sum())
    at = first + np.round(np.interp(np.linspace(near[0], near[-1], number), near, np.arange(near.size)))
    at = np.unique(at).astype(np.int64)
    chords = np.concatenate(([0.0], np.diff(value[at]) / np.diff(place[at]), [total]))
    return place[at], np.maximum(0.0, np.diff(chords)) + 4e-16, float(value[at[0]])
