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

from ..numerics.rounding import ROUNDOFF
from ..numerics.sides import Bounds
from .allocation import _edges, _merged
from .game import Played, calls
from .gaussian import gaussian_delta
from .slots import rest_of

Array = NDArray[np.float64]

THINNED = 0.003  # probability that a term on the side of the calls in question is 0, the others being longer
RATES = tuple(0.85**k for k in range(20))  # lam, tried from the largest one down
FIRST_CELL, GROWTH = 0.006, 0.12  # width of the first cell of cosines, and how much of its place more others have
# Strikes for every integral, at distances of a sinh, which is even up to so many deviations of a step.
STRIKES, DENSE = 128, 2.0
FAR = 400.0  # deviations of a step, where the last strike is at most
CELL, TAIL = 0.03, 1e-20  # of the law that all others are compared with
FORGOTTEN = 1e-9  # slope of a value at its ends that is not looked at closely
HIGH, TILTS, LEFT_OUT = 6.0, 64, 1e-9  # deviations up to which values are not cut; tilts tried; of all frequencies


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


def softened(played: Played, lam: float, forward: bool) -> tuple[Array, float]:
    """Weights w of (x - y)_+ at the places y of the value, and a constant: above it, and its curvature is slow.

    Beyond the places it is continued from above, constant on the left.
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
    chords = np.concatenate(([0.0], np.diff(value) / h, [total]))
    return np.maximum(0.0, np.diff(chords)) + 4e-16, float(value[0])


def preceded(
    place: Array, weights: Array, law: tuple[Array, Array], count: int, ends: tuple[float, float, float]
) -> Played:
    """Upper values of sum of w E (x + S - y)_+ between the outer ends of x, S a sum of so many terms; y on a lattice.

    law : values and their masses, the rest being at 0. By the trapezoidal rule along Re z = tilt, where the integral is
    that of weights' and law's transforms over z^2. Its aliases are positive. Smoothing by a normal number of deviation
    h bounds what is left out (docs/shuffled_batches.md, section 4). High values are cut: beyond, every term is paid.
    """
    from .contour_kernels import characteristics

    value, mass = law
    h, total = float(place[1] - place[0]), math.fsum(weights.tolist())
    low, middle, high = ends
    top = float(place[np.searchsorted(np.cumsum(weights), 0.999 * total)]) - low
    cap = math.inf
    for _ in range(8):
        cap = top + HIGH * math.sqrt(count * float(mass @ np.minimum(np.abs(value), cap) ** 2))
    jumps = count * float(mass @ np.maximum(0.0, value - cap)) * (1.0 + 1e-12)
    value = np.append(np.minimum(value, cap), 0.0)
    mass = np.append(mass, rest_of(mass))
    shifted = place - place[0]

    tilts = np.geomspace(1e-3 / cap, min(600.0 / cap, 20.0 / h), TILTS)
    log_moment = np.log([mass @ np.exp(z * value) for z in tilts.tolist()])
    size = np.array([weights @ np.exp(-z * shifted) for z in tilts.tolist()])
    level = count * log_moment + np.log(size) - 2.0 * np.log(tilts) + tilts * (middle - place[0])
    i = int(np.clip(np.argmin(level), 1, TILTS - 2))
    tilt, away = float(tilts[i]), np.delete(np.abs(tilts - tilts[i]), i)
    needed = (np.delete(level, i) - level[i] + math.log(1e8)) / away
    period = max(high - middle, middle - low) + max(float(needed[:i].min()), float(needed[i:].min()))
    number = 2 ** math.ceil(math.log2(max(period, high - low + 2.0 * h) / h))

    tilted = weights * np.exp(-tilt * shifted)
    known = np.fft.rfft(np.bincount(np.arange(place.size) % number, tilted, number)) / size[i]
    known = np.concatenate((known, np.conj(known[-2:0:-1]), [1.0]))  # up to one period of it
    y = 2.0 * math.pi / (number * h) * np.arange(number + 1)
    pole = tilt / (tilt + 1j * y)
    weight = np.abs(known) * np.abs(pole) ** 2 * np.exp(-0.5 * (h * y) ** 2)
    left_out = np.cumsum(weight[::-1])[::-1] + number * weight[-1]
    blurred = ROUNDOFF * 10.0 * math.log2(number) * float(np.sum(np.abs(pole) ** 2))  # the first Fourier transform
    last = int(np.argmax(np.append(left_out, 0.0) <= LEFT_OUT))
    y, known, pole, weight = y[:last], known[:last], pole[:last], weight[:last]

    p = mass * np.exp(tilt * value - log_moment[i])
    centre = float(p @ value)
    versine, sine = np.empty(last), np.empty(last)
    characteristics(y, value - centre, p, np.array([p.size]), versine, sine)
    modulus = 0.5 * np.log1p(np.maximum(versine * versine + sine * sine - 2.0 * versine, -1.0 + 1e-300))
    angle = np.arctan2(sine, 1.0 - versine)
    start = count * centre - place[0] + low
    turned = count * angle + y * (start + h * h * tilt)
    terms = known * pole**2 * np.exp(count * modulus - 0.5 * (h * y) ** 2 + 1j * turned)
    terms[0] *= 0.5
    folded = np.zeros(number, complex)
    np.add.at(folded, np.arange(last) % number, terms)
    found = 2.0 * number * np.fft.ifft(folded).real[: math.ceil((high - low) / h) + 1]
    # What is rounded: the transforms, powers and phases, and both Fourier transforms.
    own = ROUNDOFF * (3.0 * p.size + 20.0 + 2.0 * tilt * np.abs(value) + abs(log_moment[i]))
    wrong = np.minimum(1.0, y * float(p @ (np.abs(value - centre) * own)))
    reach = np.exp(np.minimum(0.0, (count - 1.0) * np.log(np.exp(modulus) + wrong)))
    far = abs(count * centre) + abs(place[0]) + abs(low) + number * h
    steps = 4.0 * (count * (np.abs(modulus) + np.abs(angle)) + y * far) + 100.0 + 10.0 * math.log2(number)
    power = count * wrong * reach + np.exp(count * modulus) * ROUNDOFF * steps
    error = 2.0 * (float(weight @ power) + blurred + float(left_out[min(last, number)]))
    at = low + h * np.arange(found.size)
    exponent = level[i] + tilt * (at - middle) + 0.5 * (h * tilt) ** 2
    rounding = count * ROUNDOFF * (p.size + 20.0 + 2.0 * float(p @ np.abs(tilt * value))) + 1e-12
    upper = np.exp(exponent + rounding) * (found + error) / (number * h)
    return Played(at, upper + total * jumps)
