"""Renyi divergences from a privacy profile, all orders from the same few points.

With h(s) = H_s(P||Q), h'(s) = H_s(Q||P) and alpha > 1,

    E_Q[(P/Q)^alpha] - 1 = alpha (alpha-1) int_1^inf (s^(alpha-2) h(s) + s^(-alpha-1) h'(s)) ds,                  (*)

because x^alpha - 1 - alpha (x - 1) is that mixture of (x - s)_+ and (1 - s x)_+, s >= 1 (Taylor's formula at 1). So any
function above h gives an upper end and any function below it a lower end: chords through certified values, and the
valleys between them (`pairs.profile`). Against a power a chord is integrated in closed form, with positive weights.

Points are shared by all orders. With t = (alpha - 1) scale, orders up to t = 2^k have the points of those up to
2^(k-1), and more where chords may lie too high. So an answer does not depend on what was asked before.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..numerics.rounding import ROUNDOFF
from ..numerics.sides import Side
from ..pairs.profile import ProfilePair, ProfilePoints, vertices_below

Array = NDArray[np.float64]

#: Orders of t up to 2^LEAST share one set of points, and so do those above 2^(MOST - 1).
LEAST, MOST = -3, 6
NEAR = 3  # octaves beyond are asked for with less care, twice as much for each
LARGEST_LOSS = 690.0  # of a point: growths do not overflow
LARGEST_EXPONENT = 600.0  # that points are chosen for
MISSED = 1e-300  # what profiles may leave out
UNDERFLOW = -660.0  # of the logarithm; below, a profile's tail is enough
FAR_OUT = 25.0  # scales from which on it is asked
SHARPER = 0.1  # of the width that is asked for, of values at points
PASSES, PIECES = 20, 8  # of refinement, and of an interval in each of them
MOST_POINTS = 1_000
KEPT = 64


class Known(NamedTuple):
    """A profile at growths: lower bounds, and the logarithms of upper ones."""

    growth: Array
    lower: Array
    log_upper: Array

    @property
    def points(self) -> ProfilePoints:
        return ProfilePoints(self.growth, self.lower, np.exp(self.log_upper))


class Points(NamedTuple):
    """Both profiles at common growths; the same object twice where the pair is symmetric."""

    forward: Known
    backward: Known


def log_excess(pair: ProfilePair, order: float, side: Side, width: float) -> float:
    """log of E_Q[(P/Q)^order] - 1 on `side`; chords may raise the divergence by about `width`, relatively.

    inf where there is mass at infinite loss, or no end of losses from above. Rounding of exponents is not included.
    """
    whole = pair
    if pair.halves is not None:
        pair = pair.halves[1 if side is Side.UPPER else 0]
    if pair.infinite_mass > 0.0 or (side is Side.UPPER and pair.max_loss.upper == math.inf):
        return math.inf
    octave = math.ceil(math.log2((order - 1.0) * pair.scale))
    octave = min(max(octave, LEAST), MOST)
    known = (
        points(pair, octave, width) if side is Side.UPPER else points_below(whole, octave, width)
    )
    parts = _parts(known, order, side)
    if side is Side.UPPER and pair.max_loss.upper > LARGEST_LOSS:
        # Beyond the last point the profile is at most what it was there.
        last = float(known.forward.log_upper[-1])
        beyond = (order - 1.0) * float(pair.max_loss.upper) + math.log(order) + last
        parts = np.append(parts, beyond)
    return float(np.logaddexp.reduce(parts))


@lru_cache(maxsize=KEPT)
def points(pair: ProfilePair, octave: int, width: float) -> Points:
    """Points for orders up to 1 + 2^octave/scale."""
    top = min(float(pair.max_loss.upper), LARGEST_LOSS)
    if octave < LEAST:
        inner = pair.scale * 2.0 ** np.arange(-2.0, 12.0)
        return _at(pair, np.concatenate(([0.0], inner[inner < 0.9 * top], [top])), width)
    known = points(pair, octave - 1, width)
    order = 1.0 + 2.0**octave / pair.scale
    if (
        pair.log_tail(np.ones(1)) is None
    ):  # where the largest loss outweighs all else, points would not help
        order = min(order, 1.0 + LARGEST_EXPONENT / top)
    for _ in range(PASSES):
        parts = _parts(known, order, Side.UPPER)
        log_total = float(np.logaddexp.reduce(parts))
        gap = _gaps(known.forward, parts, order) * np.exp(parts - log_total)
        # The divergence is log1p of the total, over order - 1.
        log_size = math.log(np.logaddexp(0.0, log_total)) + float(np.logaddexp(0.0, -log_total))
        wanted = width * 2.0 ** max(0, octave - NEAR) * math.exp(min(log_size, 5.0))
        if not gap.sum() > wanted or known.forward.growth.size > MOST_POINTS:
            break
        # An interval in k pieces has 1/k^2 of its gap.
        root = np.cbrt(gap)
        pieces = np.ceil(root * math.sqrt(root.sum() / wanted))
        known = _split(pair, known, np.clip(pieces, 1, PIECES).astype(np.int64), width)
    return known


@lru_cache(maxsize=KEPT)
def points_below(pair: ProfilePair, octave: int, width: float) -> Points:
    """Points of the lower half; the first ones are high enough for lines across loss 0: its orders may be two laws."""
    if pair.halves is None:
        return points(pair, octave, width)
    known = points(pair.halves[0], octave, width)

    def raised(one: ProfilePair, half: Known) -> Known:
        logs, first = half.log_upper.copy(), half.growth[1:2]
        logs[1] = max(
            logs[1], math.log(max(float(one.profile(first, width, 0.0).upper[0]), 1e-300))
        )
        return half._replace(log_upper=logs)

    forward = raised(pair, known.forward)
    return Points(
        forward, forward if pair.reverse is None else raised(pair.reverse, known.backward)
    )


def _gaps(known: Known, parts: Array, order: float) -> Array:
    """About the shares of `parts` by which chords lie above a profile that falls like e^-(k loss) between points."""
    loss = np.log1p(known.growth)
    step = np.diff(loss)
    with np.errstate(divide="ignore", invalid="ignore"):
        below = np.full(step.size, -math.inf)
        for power in (order - 1.0, -order):
            logs = known.log_upper + power * loss
            fall = np.abs(np.diff(logs))
            mean = step * np.where(fall > 1e-9, _mean(fall), 1.0)
            below = np.logaddexp(below, np.maximum(logs[1:], logs[:-1]) + np.log(mean))
        gap = -np.expm1(below + math.log(order * (order - 1.0)) - parts)
    return np.clip(np.where(known.log_upper[:-1] > -math.inf, gap, 0.0), 0.0, 1.0)


def _split(pair: ProfilePair, known: Points, pieces: NDArray[np.int64], width: float) -> Points:
    """With every interval in so many pieces, alike in the loss."""
    loss = np.log1p(known.forward.growth)
    fresh = _at(
        pair,
        np.concatenate(
            [
                np.linspace(loss[i], loss[i + 1], int(k) + 1)[1:-1]
                for i, k in enumerate(pieces)
                if k > 1
            ]
        ),
        width,
    )

    def joined(old: Known, new: Known) -> Known:
        growth, lower, upper = (np.append(*ends) for ends in zip(old, new, strict=True))
        order = np.argsort(growth)
        return _falling(growth[order], lower[order], upper[order])

    forward = joined(known.forward, fresh.forward)
    if known.backward is known.forward:
        return Points(forward, forward)
    return Points(forward, joined(known.backward, fresh.backward))


def _at(pair: ProfilePair, losses: Array, width: float) -> Points:
    """The profiles at these losses."""
    growth = np.expm1(losses)
    # At the largest loss nothing is left; how its growth is rounded, the allowance for exponents pays for.
    beyond = losses >= float(pair.max_loss.upper)

    def values(one: ProfilePair) -> Known:
        lower, logs = np.zeros(growth.size), np.full(growth.size, math.inf)
        logs[beyond] = -math.inf
        far = ~beyond & (losses > FAR_OUT * pair.scale)
        if np.any(far) and (tail := one.log_tail(growth[far])) is not None:
            logs[far] = tail
        asked = logs > UNDERFLOW
        found = one.profile(growth[asked], SHARPER * width, MISSED)
        lower[asked] = found.lower
        with np.errstate(divide="ignore"):
            logs[asked] = np.minimum(logs[asked], np.log(found.upper))
        return _falling(growth, lower, logs)

    forward = values(pair)
    return Points(forward, forward if pair.reverse is None else values(pair.reverse))


def _falling(growth: Array, lower: Array, log_upper: Array) -> Known:
    """A profile does not rise, so an upper value bounds all that follow; far out a bound may get worse."""
    log_upper = np.minimum.accumulate(log_upper)
    return Known(growth, np.minimum(lower, np.exp(log_upper)), log_upper)


def _parts(known: Points, order: float, side: Side) -> Array:
    """The logs of (*)'s intervals between points, on `side`."""
    sums = []
    for one, other, integral in (
        (known.forward, known.backward, _forward),
        (known.backward, known.forward, _backward),
    ):
        if side is Side.UPPER:
            sums.append(integral(one.growth, one.log_upper, order, 1.0))
        else:
            growth, value = vertices_below(one.points, other.points)
            with np.errstate(divide="ignore"):
                logs = integral(growth, np.log(value), order, -1.0)
            sums.append(np.logaddexp.reduceat(logs, np.searchsorted(growth, one.growth[:-1])))
    found: Array = np.logaddexp(*sums)
    return found


def _forward(growth: Array, logs: Array, order: float, sign: float) -> Array:
    """log of alpha (alpha-1) int s^(alpha-2) h ds over every interval, h linear in it, rounded to the side of `sign`.

    Relative to the power at the right end.
    """
    rate, d = order - 1.0, np.log1p(np.diff(growth) / (1.0 + growth[:-1]))
    low, high = d * _mean(rate * d), d * np.exp(d) * _mean(order * d)
    return _combined(logs, d, low, high - low, high, sign) + _log_scale(rate, growth[1:], order)


def _backward(growth: Array, logs: Array, order: float, sign: float) -> Array:
    """As `_forward`, of s^(-alpha-1); relative to the power at the left end."""
    rate, d = order - 1.0, np.log1p(np.diff(growth) / (1.0 + growth[:-1]))
    low, high = d * _mean(order * d), d * _mean(rate * d)
    return _combined(logs, d, low, high - low, high, sign) + _log_scale(-order, growth[:-1], order)


def _combined(logs: Array, d: Array, whole: Array, rise: Array, size: Array, sign: float) -> Array:
    """log of the integral of a function that is linear between points, over intervals of length d of the loss.

    logs : of the function at points. whole : of 1. rise : of s/s_0 - 1, a difference of numbers up to `size`.
    """
    wrong = sign * 16.0 * ROUNDOFF * size / np.expm1(d)
    far = rise / np.expm1(d)  # of what goes from 0 to 1
    near = whole - far
    with np.errstate(divide="ignore"):
        near = logs[:-1] + np.log(np.maximum(near + 2.0 * wrong, 0.0))
        far = logs[1:] + np.log(np.maximum(far + wrong, 0.0))
    return np.asarray(np.logaddexp(near, far))


def _log_scale(power: float, growth: Array, order: float) -> Array:
    found: Array = power * np.log1p(growth) + math.log(order * (order - 1.0))
    return found


def _mean(z: Array) -> Array:
    """(1 - e^-z)/z, z > 0."""
    found: Array = -np.expm1(-z) / z
    return found
