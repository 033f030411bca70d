"""What an attacker can do: privacy profiles read as hypothesis tests, certified from both sides.

The attacker sees everything the adversary of the accountant sees, knows all that the two neighbouring
datasets D and D' share, and guesses which one it is: for substitution, which of two values the target has
(for add-remove neighbours this would be membership). A test answers D' on a set A of views; with P, Q the
laws of the view under D, D', FPR = P(A) and TPR = Q(A). Let h(g) = sup_A Q(A) - g P(A) be the hockey-stick
divergence, delta(epsilon) = h(e^epsilon). Then (Wasserman and Zhou 2010; Dong, Roth and Su 2022, section
2.3; Kairouz, Oh and Viswanath 2015)

    largest TPR at FPR alpha = 1 - f(alpha) = min over g >= 0 of  v(g) = alpha g + h(g),

f being the trade-off curve: `<=` is the definition of h, equality the duality of Neyman and Pearson. The
pairs here are symmetric (P, Q and Q, P have one profile), so h(g) = 1 - g + g h(1/g) gives the g below 1,
and f is its own inverse.

Certificates: h is convex and decreasing, so v is convex. delta is bracketed at finitely many points.

* Every point gives an upper bound of the minimum.
* Between neighbours a < b: v(g) >= alpha a + h(b), as h decreases; and v(g) lies above the line through a and
  the point before, and above that through b and the point after (convexity). Such a line is taken lowest
  within the brackets: the lower bound at the near end, the upper bound at the other point.
* Beyond the last point g: v >= alpha g. Below g = 1 all this holds for f = max g (1 - alpha - h(1/g)).
* If v is smaller somewhere above g = 1 than at 1, then it is larger everywhere below; and conversely.

Intervals that may hold the minimum are halved until the two sides are as close as the brackets of delta allow.
Distances of points enter quadratically: some twenty points do, most read off one composition.

Sides: an upper bound on TPR or advantage (a lower one on f) binds *every*
attack. The other side is what the best test attains against the stated *pair*. Where that pair only
dominates the protocol (stronger clones, say), no attack on the protocol itself need attain it.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np

from .ledger import Ledger
from .numerics.sides import Bounds
from .numerics.validation import probabilities, tolerance

__all__ = ["AttackRisk", "Profile"]

U = 1e-15  # relative rounding of a handful of operations, at least six half-ulps
SMALLEST_RATE = 1e-90  # below, TPR is bounded by its neighbours: delta is not known so well there
SMALLEST_COMPLEMENT = 1e-12  # no accuracy relative to less is asked of 1 - v
LARGEST_LOSS = 700.0  # e^x is a double


class Profile(Protocol):
    """What is asked: an `Accountant`, or anything with certified answers of a symmetric pair."""

    def delta_bounds(self, epsilon: Any, /) -> Bounds:
        """Bounds on delta at epsilon in [0, inf]."""

    def epsilon_bounds(self, delta: Any, /) -> Bounds:
        """Bounds on epsilon at delta; only delta = 0, the largest loss, is asked for."""


class AttackRisk:
    """Certified limits of attacks on everything an accountant has composed; see the module.

    Parameters
    ----------
    accountant : an `Accountant` (later rounds count as soon as they are composed), or another `Profile`.
    rtol : relative width of TPR and f that the search adds to what the brackets of delta leave open; in
        (1e-9, 1]. (The latter is small against TPR and against 1 - alpha, not against a much smaller f.)

    Arguments are scalars or arrays, answers `Bounds` of the same shape. Raises ValueError or TypeError
    naming the argument. Cost: about 20 readings of delta for each rate.

    >>> from pld_shuffle import Accountant, ShuffledLDP
    >>> risk = AttackRisk(Accountant().compose(ShuffledLDP(eps0=4.0, n=1_000), 10))
    >>> [f"{risk.true_positive_rate(rate).upper:.3g}" for rate in (1e-6, 1e-3)]
    ['0.000107', '0.02']
    >>> f"{risk.advantage().upper:.3f}"
    '0.393'
    """

    def __init__(self, accountant: Profile, rtol: float = 1e-3) -> None:
        for question in ("delta_bounds", "epsilon_bounds"):
            if not callable(getattr(accountant, question, None)):
                raise TypeError(f"accountant must be an accountant, got {accountant!r}")
        self._accountant = accountant
        self._rtol = tolerance("rtol", rtol)

    def trade_off(self, alpha: Any) -> Bounds:
        """f(alpha): the least type II error (missed D') of any test with type I error `alpha` in [0, 1].

        The lower bound binds every attack. f is also the FPR that a TPR of 1 - alpha costs.
        """
        return self._rates("alpha", alpha)[1]

    def true_positive_rate(self, fpr: Any) -> Bounds:
        """The largest true-positive rate of any test at false-positive rate `fpr` in [0, 1], 1 - f(fpr).

        The relative accuracy is kept down to fpr = 1e-90. At fpr = 0 it is delta(inf). Why low rates are the
        ones to look at: Carlini et al. 2022.
        """
        return self._rates("fpr", fpr)[0]

    def advantage(self) -> Bounds[float]:
        """The largest TPR - FPR of any test: delta(0), the total variation of P and Q (Yeom et al. 2018)."""
        return self._profile().delta_bounds(0.0)

    def _profile(self) -> Profile:
        """The accountant, if all its pairs are symmetric; ValueError otherwise."""
        rounds = self._accountant.ledger if isinstance(self._accountant, Ledger) else ()
        for mechanism, _ in rounds:
            if not mechanism.pair.symmetric:
                raise ValueError(f"accountant must hold symmetric pairs only, got {mechanism!r}")
        return self._accountant

    def _rates(self, name: str, rates: Any) -> tuple[Bounds, Bounds]:
        """TPR and 1 - TPR of the best test at each false-positive rate."""
        values = probabilities(name, rates)
        readings = _Readings(self._profile())
        found = np.empty((*values.shape, 4))
        for place, rate in np.ndenumerate(values):
            hit, missed = _power(readings, float(rate), self._rtol)
            found[place] = (*hit, *missed)
        low, high, rest, most = map(_plain, np.moveaxis(found, -1, 0))
        return Bounds(low, high), Bounds(rest, most)


def _plain(values: Any) -> Any:
    """A float for a scalar question, the array for an array."""
    return float(values) if np.ndim(values) == 0 else values


class _Readings:
    """delta at the points asked for so far, and the largest loss."""

    def __init__(self, accountant: Profile) -> None:
        self._accountant = accountant
        self._known: dict[float, Bounds] = {}
        self.limit = min(float(accountant.epsilon_bounds(0.0).upper), LARGEST_LOSS)

    def deltas(self, points: Iterable[float]) -> list[Bounds]:
        """Bounds on delta at each of the points."""
        points = list(points)
        new = [x for x in points if x not in self._known]
        if new:
            found = self._accountant.delta_bounds(np.array(new))
            sides = zip(found.lower.tolist(), found.upper.tolist(), strict=True)
            self._known.update(zip(new, (Bounds(*pair) for pair in sides), strict=True))
        return [self._known[x] for x in points]


def _power(readings: _Readings, rate: float, rtol: float) -> tuple[Bounds, Bounds]:
    """The best test at FPR `rate`: bounds on its TPR, and on 1 - TPR, each as formed best."""
    if rate == 0.0:
        return _both(rate, hit=readings.deltas([math.inf])[0])
    if rate < SMALLEST_RATE:  # TPR increases with FPR, and is concave
        none, some = (_power(readings, near, rtol)[0] for near in (0.0, SMALLEST_RATE))
        chord = rate / SMALLEST_RATE * some.lower * (1.0 - U)
        return _both(rate, hit=Bounds(max(none.lower, chord), some.upper))
    if rate == 1.0:
        return _both(rate, missed=Bounds(0.0, 0.0))
    halves = [_Half(readings, rate, rtol, sign) for sign in (1.0, -1.0)]
    if rate > 0.5:
        halves.reverse()
    for half in halves:
        half.spread()
        if half.holds_minimum:
            return half.power()
    (hit, missed), (other_hit, other_missed) = (half.power() for half in halves)
    return (
        Bounds(*map(min, zip(hit, other_hit, strict=True))),
        Bounds(*map(max, zip(missed, other_missed, strict=True))),
    )


def _both(
    rate: float, *, hit: Bounds | None = None, missed: Bounds | None = None
) -> tuple[Bounds, Bounds]:
    """TPR and 1 - TPR from one of them; guessing without looking has a TPR of `rate`."""
    if hit is None:
        assert missed is not None
        hit = Bounds(1.0 - missed.upper - U, 1.0 - missed.lower + U)
    if missed is None:
        missed = Bounds(1.0 - hit.upper - U, 1.0 - hit.lower + U)
    most = min(1.0, (1.0 - rate) * (1.0 + U))
    return (
        Bounds(max(rate, hit.lower), min(1.0, hit.upper)),
        Bounds(max(0.0, missed.lower), min(most, missed.upper)),
    )


class _Half:
    """The minimum of v on one side of g = 1, at points x = |log g|, ascending from 0.

    Above (sign 1) the values are v itself. Below (sign -1) they are v - 1 = -g (1 - alpha - h(1/g)), formed
    without cancellation, so that a small f keeps its relative accuracy.
    """

    def __init__(self, readings: _Readings, alpha: float, rtol: float, sign: float) -> None:
        self._readings = readings
        self._alpha, self._rest = alpha, 1.0 - alpha
        self._rtol = rtol
        self._sign = sign
        self._points: list[float] = []
        self._low: list[float] = []
        self._high: list[float] = []
        self._add(0.0)

    @property
    def holds_minimum(self) -> bool:
        """Whether v is for certain no larger on this side than at g = 1, so (convexity) on the other side."""
        return min(self._high[1:], default=math.inf) <= self._low[0]

    def power(self) -> tuple[Bounds, Bounds]:
        """What the minimum of this half says of the best test."""
        bounds = self._refined()
        if self._sign > 0.0:
            return _both(self._alpha, hit=bounds)
        return _both(self._alpha, missed=Bounds(-bounds.upper, -bounds.lower))

    def spread(self) -> None:
        """Add points outwards until the minimum cannot lie beyond."""
        # Of the order of the loss's deviation, if that is small.
        stride = float(self._readings.deltas([0.0])[0].upper)
        x = 0.0
        while stride > 0.0 and x < self._reach():
            x = min(stride + 1.5 * x, self._reach())
            self._add(x)
            if self._low[-1] >= self._high[-2]:
                return  # larger than before for certain, so (convexity) increasing from here on

    def _reach(self) -> float:
        """Where the bound beyond the last point would reach the least value known; it only steers."""
        least = min(self._high)
        known, steep = (least, self._alpha) if self._sign > 0.0 else (self._rest, -least)
        ratio = known / steep if steep > 0.0 else math.inf
        return max(0.0, min(self._readings.limit, math.log(ratio) * (1.0 + U) + U))

    def _value(self, x: float, delta: float, up: float) -> float:
        """The value at x given h(e^x), rounded upwards (up = 1) or downwards (up = -1)."""
        growth = math.exp(x)
        if self._sign > 0.0:
            return (self._alpha * growth + delta) * (1.0 + up * U)
        value = (delta - self._rest * (1.0 - up * U)) / growth
        if up < 0.0:
            value = min(0.0, value)
        return value + up * U * abs(value)

    def _add(self, *new: float) -> None:
        for x, delta in zip(new, self._readings.deltas(new), strict=True):
            place = bisect(self._points, x)
            self._points.insert(place, x)
            self._low.insert(place, self._value(x, delta.lower, -1.0))
            self._high.insert(place, self._value(x, delta.upper, 1.0))

    def _refined(self) -> Bounds:
        """Halve the intervals that may hold less than is allowed, each time to a quarter of the error."""
        beyond = self._beyond()
        for _ in range(math.ceil(-math.log2(self._rtol))):
            floors = self._floors()
            best = int(np.argmin(self._high))
            enough = self._high[best] - self._allowance(best)
            if min(float(floors.min()), beyond) >= enough or len(self._points) == 1:
                break
            edges = zip(self._points, self._points[1:], floors, strict=False)
            middles = [0.5 * (left + right) for left, right, floor in edges if floor < enough]
            if not middles:
                break
            self._add(*middles)
        return Bounds(min(float(self._floors().min()), beyond), min(self._high))

    def _allowance(self, best: int) -> float:
        """How far apart the two sides may stay: the search need not be much better than the brackets."""
        upper, width = self._high[best], self._high[best] - self._low[best]
        scale = upper if self._sign > 0.0 else self._rest * math.exp(-self._points[best])
        noise = min(width, self._rtol * scale)
        size = min(abs(upper), max(1.0 - abs(upper), SMALLEST_COMPLEMENT))  # of TPR and f
        return noise + 0.5 * max(self._rtol * size, noise)

    def _beyond(self) -> float:
        """Lower bound beyond the last point."""
        limit = self._value(self._points[-1], 0.0, -1.0)
        if len(self._points) > 1 and self._low[-1] >= self._high[-2]:
            limit = max(limit, self._low[-1])
        return limit

    def _floors(self) -> Any:
        """Lower bound on each interval between neighbours."""
        points, low, high = np.array(self._points), np.array(self._low), np.array(self._high)
        if points.size == 1:
            return low
        far = self._readings.deltas(self._points[1:])
        floors = np.array(
            [self._value(x, end.lower, -1.0) for x, end in zip(points, far, strict=False)]
        )
        if points.size > 2:
            gaps = self._sign * np.diff(points)
            # Length in g of an interval over that of the one before, or after.
            longer = np.expm1(gaps[1:]) / -np.expm1(-gaps[:-1])
            shorter = -np.expm1(-gaps[:-1]) / np.expm1(gaps[1:])
            floors[1:] = np.maximum(floors[1:], _extended(high[:-2], low[1:-1], longer))
            floors[:-1] = np.maximum(floors[:-1], _extended(high[2:], low[1:-1], shorter))
        return floors


def _extended(before: Any, value: Any, ratio: Any) -> Any:
    """The least value, one interval on, of the line through `before` and `value`, rounded downwards."""
    fall = np.maximum(0.0, before - value) * ratio
    return value - fall * (1.0 + 20.0 * U) - U * (np.abs(value) + fall)
