"""A composition by one contour integral: no lattice, any number of rounds (docs/theory.md, section 7).

Let M(z) = E[exp(z L); L < inf] of the composed loss, the product of the rounds' own. For every c > 0

    delta(eps) = P(L = inf) + (1/(2 pi i)) int_(c - i inf)^(c + i inf) M(z) e^(-z eps) dz/(z (z + 1)),

and the rounds' atoms may lie anywhere. One more round of Gaussian noise smooths the integrand; both ends come from the
same values of M. Nodes of the trapezoidal rule only add what is never negative, and where |phi|^rounds is negligible
they are skipped, and booked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..numerics.sides import ROUNDOFF, Array, Bounds, Side
from ..numerics.tuning import (
    BOOKED_SHARE,
    INTEGRAL_WORK,
    INTEGRAL_WORK_PER_POINT,
    MANY_ROUNDS,
    NUMBERS,
    ROUNDS_A_PAIR,
    SMOOTHING_SHARE,
)
from ..pairs.gaussian import noise_of
from ..pairs.pair import Pair
from .moments import (
    RATES,
    MomentFunction,
    Moments,
    Rounds,
    TiltedLaws,
    TooExpensive,
    laplace_of,
    log_geometric,
    log_peak,
)
from .plan import Plan, Sketch
from .pld import log_finite
from .reading import Question, Reading

Complex = NDArray[np.complex128]
Ledger = Sequence[tuple[Pair, int]]

REFORMED = 3  # times that atoms are formed, for a better saddle point
FEW_ATOMS = 2_000  # only so small laws are formed again: a larger c asks for far finer ones
LARGEST_RATE = 1e9
LARGEST_ANGLE = 6e6  # that `contour_kernels.turns` reduces exactly
RETURNED = 4  # nodes at a time where products have come back above the floor: speed
FEW_LAWS = 128  # that may stand for all far from the real line: speed
NEXT_BALL = 0.9  # share of the last radius that the next ones are tried with


@dataclass(frozen=True)
class Products:
    """Products of the same laws: the first, and others with more rounds, row by row.

    first : how often each law is in all of them, shape (laws,). law, times : which law each further row multiplies by,
    and how often, shape (rows,). ends : how many of these rows each product has, ascending, shape (products,).
    """

    first: Array
    law: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    times: Array = field(default_factory=lambda: np.zeros(0))
    ends: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, np.int64))

    @property
    def terms(self) -> int:
        """The most summands of a sum."""
        return self.first.size + self.law.size

    @cached_property
    def least(self) -> Array:
        """How often each law is in the product with the fewest rounds."""
        rows = slice(int(self.ends[0]))
        return self.first + np.bincount(self.law[rows], self.times[rows], self.first.size)

    def sums(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sums over the rounds of every product, shape (products, ...), of one value for each law, (laws, ...)."""
        start: NDArray[Any] = self.first @ values
        if not self.law.size:
            return start[None]
        steps = (values[self.law].T * self.times).T
        grown = np.concatenate((np.zeros_like(steps[:1]), np.cumsum(steps, axis=0)))
        return np.asarray(start + grown[self.ends])


class Integral:
    """One side of compositions near some epsilons: P(L = inf) and E[(1 - e^(eps - L))_+] of the finite part.

    products : which of the laws are composed; by default every one as often as it says. variance : mu^2 of the
    Gaussian noise among the rounds. tau : of the smoothing on top. tolerance : relative size of what may be booked.
    step : of the lattice that would do as well. Raises TooExpensive.
    """

    def __init__(
        self, laws: Sequence[MomentFunction], variance: float, c: float, tau: float, tolerance: float, step: float,
        products: Products | None = None,
    ) -> None:  # fmt: skip
        self.c, self._tau = c, tau
        self.laws = laws
        moments = self._moments = Moments(laws)
        self._products = products or Products(moments.counts)
        self._square = variance + tau * tau
        tilted = self._tilted = TiltedLaws(moments, c)
        sums, square = self._products.sums, self._square
        lift = 0.5 * (c * c + c) * square
        self._mean = sums(tilted.means)
        means = sums(np.abs(tilted.means))
        self._log = sums(tilted.log_moments) + lift  # of L - mean
        rounding = (8.0 + self._products.terms) * ROUNDOFF
        self._turned = rounding * means + 16.0 * ROUNDOFF
        self._log_error = sums(tilted.moment_errors) * (1.0 + rounding) + 8.0 * ROUNDOFF * lift
        self._log_error += rounding * (c * means + sums(np.abs(tilted.log_moments)))
        self._deviation = math.sqrt(float(sums(tilted.variances).max()) + square)
        lost = np.array([log_finite(law.infinity_mass) for law in laws])
        lost = -np.expm1(sums(lost)) + 0.0
        self.lost = Bounds(lost * (1.0 - 2e-15 - rounding), np.minimum(lost * (1.0 + 2e-15 + rounding), 1.0))
        self._loss_error = sums(np.array([law.loss_error for law in laws])) * (1.0 + 1e-9 + rounding)
        # A lattice holds the composed loss under its tilt, and every law before that.
        points = max(14.0 * self._deviation, moments.reach) / step
        self._most_work = min(INTEGRAL_WORK_PER_POINT * points, INTEGRAL_WORK) * len(laws)
        self._aliases(tolerance)
        self._walk(tolerance)

    @classmethod
    def planned(
        cls, laws: Sequence[MomentFunction], plan: Plan, c: float, square: float = 0.0,
        products: Products | None = None,
    ) -> Integral:  # fmt: skip
        """With the smoothing, the tolerance and the work that a plan allows; square : mu^2 of the noise."""
        smoothing = SMOOTHING_SHARE * plan.rtol * plan.share / (c * (c + 1.0))
        tau = 0.0 if square >= smoothing else math.sqrt(smoothing)
        tolerance = BOOKED_SHARE * plan.rtol * min(1.0, plan.share)
        found = cls(laws, square, c, tau, tolerance, plan.step / plan.patience, products)
        del found._moments, found._tilted  # large, and of no use once the nodes are known
        return found

    # -- aliases -----------------------------------------------------------------------------------

    def _aliases(self, tolerance: float) -> None:
        """Chernoff's bounds at a few rates, and the period that makes aliases small."""
        c = self.c
        near = RATES / self._deviation
        rates = np.concatenate((c + near, c - near[near < c], [0.0]))
        of_laws = np.array([sum(self._moments.log_moments(float(rate))) for rate in rates]).T
        logs = self._products.sums(of_laws) + 0.5 * (rates * rates + rates) * self._square * (1.0 + 8.0 * ROUNDOFF)
        logs += 1e-9 + self._products.terms * ROUNDOFF * self._products.sums(np.abs(of_laws))
        self._rates, self._log_moments = rates, logs + log_peak(rates)
        # The tilted means, and what delta is about there.
        centre = self.centre = self._mean + (c + 0.5) * self._square
        log_value = (
            self._log
            + c * (self._mean - centre)
            - math.log1p(c * (1.0 + c) * math.sqrt(2.0 * math.pi) * self._deviation)
        )
        need = self._log_moments - np.outer(centre, rates) - log_value[:, None] - math.log(0.1 * tolerance)
        wide = need / np.abs(rates - c)
        right, left = (wide[:, side].min(axis=1).max() for side in (rates > c, rates < c))
        self._period = max(float(right), float(left), 4.0 * self._deviation)
        self.h = 2.0 * math.pi / self._period

    def _log_alias(self, eps: Array) -> Array:
        """log of a bound on sum over m != 0 of F(eps + m period) e^(c m period)."""
        distance = np.abs(self._rates - self.c)
        bound = self._log_moments - np.outer(eps, self._rates)
        bound += 1e-13 * (np.abs(self._log_moments) + np.abs(np.outer(eps, self._rates)))
        bound += log_geometric(distance * self._period)
        above = self._rates > self.c
        return np.asarray(np.logaddexp(bound[:, above].min(axis=1), bound[:, ~above].min(axis=1)))

    # -- nodes -------------------------------------------------------------------------------------

    def _weight(self, y: Array) -> Array:
        """The size of a node with |phi| = 1, for both integrals together; 1 and a little at y = 0."""
        c = self.c
        plain = np.sqrt((1.0 + (y / c) ** 2) * (1.0 + (y / (c + 1.0)) ** 2))
        return np.asarray(np.exp(-0.5 * self._square * y * y) * (1.0 / plain + self._extra))

    def _walk(self, tolerance: float) -> None:
        c, h, square = self.c, self.h, self._square
        if self._tau > 70.0:  # smoothing over losses whose exponential is no double
            raise TooExpensive
        self._extra = c * (c + 1.0) * self._tau**2 * math.exp(self._tau**2 / 8.0)
        last = max(2.0, 12.0 / (math.sqrt(square) * h))
        floor = tolerance / last  # booked for every node left out
        while float(self._weight(np.array([last * h]))[0]) > floor:
            last *= 1.1
        last = math.ceil(last)
        if last * h * self._tilted.farthest > LARGEST_ANGLE:
            raise TooExpensive
        # Behind the last node: weights fall, and faster than a geometric series.
        ratio = math.exp(-square * h * h * last)
        booked = floor / -math.expm1(-square * h * h * last) if ratio < 1.0 else math.inf
        self.work, self._floor = 0.0, floor
        kept: list[tuple[Array, Complex, Array]] = []
        k, chunk, left_out = 1, 8, False
        while k <= last:
            index = np.arange(k, min(k + chunk, last + 1))
            nodes, sizes = self._nodes(np.asarray(index * h, np.float64))
            kept.append(nodes)
            k = int(index[-1]) + 1
            behind = self._covered(sizes, float(index[-1]) * h, (last + 0.5) * h)
            jump = int(behind / h * (1.0 - 1e-12)) + 1 - k
            if jump > 0:
                left_out = True
                booked += jump * floor
                k += jump
                chunk = 1 if jump > chunk else max(1, chunk // 2)
            else:
                chunk = min(2 * chunk, RETURNED if left_out else max(8, k // 4))
        y, log_phi, error = (np.concatenate(parts, axis=-1) for parts in zip(*kept, strict=True))
        weight = 1.0 / (1.0 + 1j * y / c) / (1.0 + 1j * y / (c + 1.0))
        turned = np.exp(log_phi + 1j * y * (c + 0.5) * square)
        error = error + np.abs(turned) * ROUNDOFF * 8.0 * y * (c + 0.5) * square
        # What adds nothing is not carried along.
        both = np.abs(weight) + self._extra
        carried = np.abs(turned) * both
        held = carried.max(axis=0) > floor
        self._y, self._turned_nodes, self._node_weight = y[held], turned[:, held], weight[held]
        self._booked = 2.0 * (booked + carried[:, ~held].sum(axis=1) + (error * both).sum(axis=1)) * (1.0 + 1e-6)
        self._sizes = carried[:, held]

    def _charge(self, nodes: int) -> None:
        """Count the work of so many nodes."""
        self.work += nodes * (self._tilted.size + 1)
        if self.work > self._most_work or nodes * self._products.terms > NUMBERS:
            raise TooExpensive

    def _nodes(self, y: Array) -> tuple[tuple[Array, Complex, Array], Array]:
        """Nodes at y: logs of the integrands' phi, and errors; and the size of every law's phi at the last one."""
        self._charge(y.size)
        square, sums = self._square, self._products.sums
        found, value_error = self._tilted.values(y)
        most = np.exp(found.real) + value_error
        with np.errstate(divide="ignore"):
            log_bound = sums(np.log(most)) - 0.5 * square * y * y
        turn = np.abs(found.imag) + np.abs(np.maximum(found.real, -700.0))
        rounding = (4.0 + self._products.terms) * ROUNDOFF
        error = ROUNDOFF * (64.0 + 4.0 * square * y * y) + sums(value_error / most + rounding * turn)
        log_phi = np.asarray(sums(found), np.complex128) - 0.5 * square * y * y
        return (y, log_phi, np.exp(np.minimum(log_bound, 1.0)) * error), most[:, -1]

    def _covered(self, sizes: Array, y: float, end: float) -> float:
        """From y, where the laws' |phi| are at most `sizes`, to where all nodes are certainly below the floor.

        Nodes are left out in balls: |phi| grows by E|X| times the distance at most, to either side of a station. The
        first ball is about y; stations follow as long as their balls meet, twice as many at a time. Only the first laws
        are asked where they say nearly as much as all.
        """
        stations = 1
        while True:
            radius = part = self._free(sizes, y)
            if sizes.size > FEW_LAWS and (found := self._free(sizes[:FEW_LAWS], y)) > 0.5 * radius:
                part, sizes = found, sizes[:FEW_LAWS]
            y += radius
            radius = NEXT_BALL * part
            if radius < self.h or y >= end:
                return min(y, end)
            left = math.ceil(0.5 * (end - y) / radius)
            turns = np.arange(1, 2 * min(stations, left), 2)
            at = np.minimum(y + radius * turns, end)
            self._charge(at.size)
            most = self._tilted.most(at, sizes.size)
            log_size = self._log_most(most, radius)
            held = log_size <= math.log(self._floor) - np.log(self._weight(at - radius))
            if not held.all():
                return y + 2.0 * radius * int(np.argmin(held))
            if at[-1] + radius >= end:
                return end
            y, sizes = float(at[-1]), most[:, -1]
            stations *= 2

    def _log_most(self, sizes: Array, distance: float) -> Array:
        """log of a bound on the product's |phi| up to that distance from nodes with these sizes of the first laws."""
        first = sizes.shape[0]
        grown = sizes + distance * self._tilted.spreads[:first, None]
        return np.asarray(self._products.least[:first] @ np.log(np.minimum(1.0, grown)))

    def _free(self, sizes: Array, y: float) -> float:
        """How far the nodes behind y are certainly below the floor."""

        def log_most(distance: float) -> float:
            return float(self._log_most(sizes[:, None], distance)[0])

        limit = math.log(self._floor) - math.log(float(self._weight(np.array([y]))[0]))
        if limit >= 0.0:
            return math.inf
        if log_most(self.h) > limit:
            return 0.0
        low, high = self.h, 2.0 * self.h
        while log_most(high) <= limit:
            low, high = high, 2.0 * high
        for _ in range(6):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if log_most(middle) <= limit else (low, middle)
        return low

    # -- answers -----------------------------------------------------------------------------------

    def uppers(self, eps: Array) -> Array:
        """Upper bounds on delta at real epsilons, shape (products,); of one product at many."""
        eps = eps - self._loss_error - 1e-15 * np.abs(eps)
        exponent, value, _, error, log_error = self._values(eps)
        found = np.maximum((value + error) * self._scale(exponent + log_error), 0.0) + 1e-300
        found = np.where(self._lost(exponent, log_error), math.inf, found)
        return np.asarray((found + self.lost.upper) * (1.0 + 1e-15))

    def lowers(self, eps: Array) -> Array:
        """Lower bounds at real epsilons."""
        eps = eps + self._loss_error + 1e-15 * np.abs(eps)
        exponent, value, density, error, log_error = self._values(eps)
        alias = np.exp(np.minimum(self._log_alias(eps), 700.0))
        scale = self._scale(exponent - log_error)
        found = (value - error - np.maximum(density, 0.0)) * scale - alias
        found = np.where(self._lost(exponent, log_error), 0.0, np.maximum(found, 0.0))
        return np.asarray((found + self.lost.lower) * (1.0 - 1e-15))

    def _scale(self, exponent: Array) -> Array:
        """What both sums are multiplied by."""
        c = self.c
        return np.asarray(np.exp(np.minimum(exponent, 601.0)) / (self._period * c * (c + 1.0)))

    @staticmethod
    def _lost(exponent: Array, log_error: Array) -> NDArray[np.bool_]:
        """Whether eps is too far below the tilted mean, or nothing but rounding is left."""
        return (exponent > 600.0) | (log_error > 1.0)

    def _values(self, eps: Array) -> tuple[Array, Array, Array, Array, Array]:
        """log of the scale, both sums relative to it, their error, and the error of the log."""
        c = self.c
        shift = self._mean - eps
        exponent = self._log + c * shift
        value, density = np.empty((2, eps.size))
        nodes = np.broadcast_to(self._turned_nodes, (eps.size, self._y.size))
        most = max(1, NUMBERS // max(32, 32 * self._y.size))
        for start in range(0, eps.size, most):
            part = slice(start, start + most)
            wave = nodes[part] * np.exp(1j * np.outer(shift[part], self._y))
            value[part] = 1.0 + 2.0 * (wave * self._node_weight).real.sum(axis=1)
            density[part] = self._extra * (1.0 + 2.0 * wave.real.sum(axis=1))
        # Phases are known to a few ulp of y times the means and eps.
        turned = self._turned + 4.0 * ROUNDOFF * (np.abs(eps) + np.abs(shift))
        rounding = ROUNDOFF * (16.0 + self._y.size) * self._sizes.sum(axis=1)
        error = self._booked + 2.0 * (self._sizes @ self._y * turned + rounding)
        error = error + 8.0 * ROUNDOFF * (1.0 + np.abs(density))
        log_error = self._log_error + ROUNDOFF * (
            32.0 + 4.0 * np.abs(self._log) + 4.0 * c * (np.abs(eps) + np.abs(shift)) + np.abs(exponent)
        )
        return exponent, value, density, error, log_error


def _saddle(laws: Sequence[MomentFunction], square: float, question: Question, start: float) -> float:
    """About the c where the integrand of the question's answer is least on the real line."""

    moments = Moments(laws)

    def beyond(c: float) -> bool:
        log, mean, variance = map(float, moments.slopes(c) @ moments.counts)
        eps = mean + (c + 0.5) * square - 1.0 / c - 1.0 / (c + 1.0)
        if question.delta is None:
            assert question.eps is not None
            return bool(eps >= question.eps)
        variance += square + 1.0 / c**2 + 1.0 / (c + 1.0) ** 2
        value = log + 0.5 * (c * c + c) * square - c * eps - math.log(c * (c + 1.0))
        return value - 0.5 * math.log(2.0 * math.pi * variance) <= math.log(question.delta)

    low = high = start
    while beyond(low) and low > 1e-9 * start:
        low, high = 0.5 * low, low
    while not beyond(high) and high < LARGEST_RATE:
        low, high = high, 2.0 * high
    for _ in range(6):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if beyond(middle) else (middle, high)
    return 0.5 * (low + high)


def preferred(ledger: Sequence[tuple[Pair, int]], sketch: Sketch) -> bool:
    """Whether an integral is worth a try before any lattice: many rounds, or noise in closed form."""
    rounds = sum(count for _, count in ledger)
    closed = any(noise_of(pair) is not None or laplace_of(pair) is not None for pair, _ in ledger)
    many = rounds + ROUNDS_A_PAIR * len(ledger) >= MANY_ROUNDS
    return closed or (many and not sketch.regular)


class Contour(Reading):
    """Both sides of a composition: reads delta near the tilted mean."""

    def __init__(self, lower: Integral, upper: Integral, pairs: Sequence[Pair]) -> None:
        self._lower, self._upper, self._pairs = lower, upper, pairs
        self.infinity = Bounds(float(lower.lost.lower[0]), float(upper.lost.upper[0]))
        self.centre, self.stride = float(upper.centre[0]), 1.0 / upper.c

    @classmethod
    def of(cls, ledger: Sequence[tuple[Pair, int]], plan: Plan, question: Question) -> Contour:
        """The composition of a ledger. Raises TooExpensive or MemoryError."""
        if plan.rounds == 1:
            raise TooExpensive
        noise = [noise_of(pair) for pair, _ in ledger]
        square = next((found for found in noise if found is not None), Bounds(0.0, 0.0))
        rest = [item for item, found in zip(ledger, noise, strict=True) if found is None]
        c = plan.rate
        for _ in range(REFORMED):
            resolutions = plan.resolutions([item for item in rest if laplace_of(item[0]) is None])
            below, above = zip(*(Rounds.of(pair, count, resolutions) for pair, count in rest), strict=True)
            del resolutions  # large
            before, c = c, _saddle(above, square.upper, question, c)
            if 0.6 * c < before < 1.6 * c or any(law.size > FEW_ATOMS for law in above):
                break
            plan = replace(plan, tilt=c)
        lower = Integral.planned(below, plan, c, square.lower)
        upper = Integral.planned(above, plan, c, square.upper)
        return cls(lower, upper, [pair for pair, _ in rest])

    def laws(self, side: Side) -> dict[Pair, MomentFunction]:
        """The laws of single rounds on a side."""
        return dict(zip(self._pairs, (self._upper if side is Side.UPPER else self._lower).laws, strict=True))
