"""What an attacker can do: privacy profiles read as hypothesis tests, certified from both sides.

The attacker sees what the adversary of the accountant sees, knows all that two neighbouring datasets D and D' share,
and guesses which one it is. With P, Q the laws of the view under D, D' and h(g) = sup_A Q(A) - g P(A), so that
delta(epsilon) = h(e^epsilon), the duality of Neyman and Pearson says (Wasserman and Zhou 2010; Dong, Roth and Su 2022,
section 2.3)

    largest TPR at FPR alpha = min over g >= 0 of  v(g) = alpha g + h(g).

The pairs here are symmetric, so h(g) = 1 - g + g h(1/g) gives the g below 1. delta is bracketed at finitely many points
g. Every point gives an upper bound of the minimum; below it, between neighbours a < b, v being convex,
v(g) >= alpha a + h(b), and v lies above the lines through the points on either side. An upper bound binds *every*
attack; the other side is what the best test attains against the stated *pair*, which need not be the protocol.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .accountant import Accountant
from .ledger import Ledger
from .numerics.sides import Array, Bounds
from .numerics.validation import probabilities, tolerance

U = 1e-15  # relative rounding of a handful of operations, at least six half-ulps
SMALLEST_RATE = 1e-90  # below, TPR is bounded by its neighbours: delta is not known so well there
LARGEST_POINT = 700.0  # log g: e^x is a double
MOST_POINTS = 256


class AttackRisk:
    """Certified limits of attacks on everything an accountant has composed; see the module.

    accountant : an `Accountant` (later rounds count as soon as they are composed), or what has its `delta_bounds`.
    rtol : relative width of TPR that the search adds to what the brackets of delta leave open; in (1e-9, 1].

    Arguments are scalars or arrays, answers `Bounds` of the same shape. Raises ValueError or TypeError
    naming the argument. Cost: about 20 readings of delta for each rate.

    >>> from pld_shuffle import Accountant, ShuffledLDP
    >>> risk = AttackRisk(Accountant().compose(ShuffledLDP(eps0=4.0, n=1_000), 10))
    >>> [f"{risk.true_positive_rate(rate).upper:.3g}" for rate in (1e-6, 1e-3)]
    ['0.000107', '0.02']
    >>> f"{risk.advantage().upper:.3f}"
    '0.393'
    """

    def __init__(self, accountant: Accountant, rtol: float = 1e-3) -> None:
        if not callable(getattr(accountant, "delta_bounds", None)):
            raise TypeError(f"accountant must be an accountant, got {accountant!r}")
        self._accountant = accountant
        self._rtol = tolerance("rtol", rtol)

    def true_positive_rate(self, fpr: Any) -> Bounds:
        """The largest true-positive rate of any test at false-positive rate `fpr` in [0, 1], 1 - f(fpr).

        The relative accuracy is kept down to fpr = 1e-90. At fpr = 0 it is delta(inf). Why low rates are the
        ones to look at: Carlini et al. 2022.
        """
        values = probabilities("fpr", fpr)
        readings = _Readings(self._profile())
        found = np.array([_power(readings, float(rate), self._rtol) for rate in values.flat])
        low, high = found.reshape(*values.shape, 2).T
        return Bounds(float(low), float(high)) if values.ndim == 0 else Bounds(low.T, high.T)

    def advantage(self) -> Bounds[float]:
        """The largest TPR - FPR of any test: delta(0), the total variation of P and Q (Yeom et al. 2018)."""
        return self._profile().delta_bounds(0.0)

    def _profile(self) -> Accountant:
        """The accountant, if all its pairs are symmetric; ValueError otherwise."""
        rounds = self._accountant.ledger if isinstance(self._accountant, Ledger) else ()
        for mechanism, _ in rounds:
            if not mechanism.pair.symmetric:
                raise ValueError(f"accountant must hold symmetric pairs only, got {mechanism!r}")
        return self._accountant


class _Readings:
    """h at the points asked for so far."""

    def __init__(self, accountant: Accountant) -> None:
        self._accountant = accountant
        self._known: dict[float, tuple[float, float]] = {}

    def deltas(self, points: Array) -> tuple[Array, Array]:
        """Bounds on delta at each of the points."""
        new = [x for x in points.tolist() if x not in self._known]
        if new:
            found = self._accountant.delta_bounds(np.array(new))
            self._known.update(zip(new, zip(*map(np.ndarray.tolist, found), strict=True), strict=True))
        low, high = zip(*(self._known[x] for x in points.tolist()), strict=True)
        return np.array(low), np.array(high)

    def hockey_stick(self, points: Array) -> list[Array]:
        """Bounds on h(e^x) = 1 - e^x + e^x h(e^-x), every term of which is positive below x = 0."""
        below, ratio = np.minimum(points, 0.0), np.exp(np.minimum(points, 0.0))
        return [ratio * delta - np.expm1(below) for delta in self.deltas(np.abs(points))]


def _power(readings: _Readings, rate: float, rtol: float) -> tuple[float, float]:
    """Bounds on the TPR of the best test at FPR `rate`."""
    if rate == 1.0:
        return 1.0, 1.0
    if rate == 0.0:
        hidden, shown = readings.deltas(np.array([math.inf]))
        return float(hidden[0]), float(shown[0])
    if rate < SMALLEST_RATE:  # TPR increases with FPR, and is concave
        none, some = (_power(readings, near, rtol) for near in (0.0, SMALLEST_RATE))
        return max(none[0], rate / SMALLEST_RATE * some[0] * (1.0 - U)), some[1]
    low, high = _least(readings, rate, rtol)
    return max(rate, low), min(1.0, high)


def _least(readings: _Readings, rate: float, rtol: float) -> tuple[float, float]:
    """Bounds on the minimum of v over g = e^x."""
    points = np.array([-math.inf, 0.0])
    # Of the order of the loss's deviation, if that is small.
    stride = float(readings.deltas(np.zeros(1))[1][0])
    while True:
        least, most = readings.hockey_stick(points[1:])
        part = rate * np.exp(points)  # 0 at g = 0, where h = 1
        low = (part + np.append(1.0, least)) * (1.0 - U)
        high = (part + np.append(1.0, most)) * (1.0 + U)
        floors = np.append(_floors(points, part, low, high, least), part[-1] * (1.0 - U))
        if points.size > 2 and low[-1] >= high[-2]:
            floors[-1] = max(floors[-1], low[-1])  # it increases from here on (convexity)
        floors = np.maximum(floors, rate * (1.0 - U))  # no test is worse than guessing
        best = int(np.argmin(high))
        # The search need not be much better than the brackets.
        noise = min(high[best] - low[best], rtol * high[best])
        enough = high[best] - noise - 0.5 * max(rtol * high[best], noise)
        # From rate g = high[best] on, nothing is smaller.
        middles = np.append(
            0.5 * (points[:-1] + points[1:]), min(1.5 * points[-1] + stride, math.log(high[best] / rate))
        )
        middles[0] = 1.5 * points[1] - stride
        wanted = (floors < enough) & (np.abs(middles) <= LARGEST_POINT)
        grown = np.unique(np.append(points, middles[wanted]))
        if grown.size == points.size or grown.size > MOST_POINTS:
            return float(floors.min()), float(high[best])
        points = grown


def _floors(points: Array, part: Array, low: Array, high: Array, least: Array) -> Array:
    """Lower bound of v on each interval between neighbours; part : alpha g. least : below h, but for the first."""
    floors = (part[:-1] + least) * (1.0 - U)
    if points.size > 2:
        gaps = np.diff(points)
        # Length in g of an interval over that of the one before, or after.
        longer = np.expm1(gaps[1:]) / -np.expm1(-gaps[:-1])
        shorter = -np.expm1(-gaps[:-1]) / np.expm1(gaps[1:])
        floors[1:] = np.maximum(floors[1:], _extended(high[:-2], low[1:-1], longer))
        floors[:-1] = np.maximum(floors[:-1], _extended(high[2:], low[1:-1], shorter))
    return floors


def _extended(before: Array, value: Array, ratio: Array) -> Array:
    """The least value, one interval on, of the line through `before` and `value`, rounded downwards."""
    fall = np.maximum(0.0, before - value) * ratio
    return np.asarray(value - fall * (1.0 + 20.0 * U) - U * (np.abs(value) + fall))
