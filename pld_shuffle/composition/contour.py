"""A composition by one contour integral: no lattice, any number of rounds.

Let M(z) = E[exp(z L); L < inf] of the composed loss, the product of the rounds' own. For every c > 0

    delta(eps) = P(L = inf) + (1/(2 pi i)) int_(c - i inf)^(c + i inf) M(z) e^(-z eps) dz/(z (z + 1)),

and the rounds' atoms may lie anywhere. docs/theory.md, section 7, has the proofs of what follows.

* *Smoothing.* One more round of Gaussian noise, mu = tau, multiplies M by exp((z^2 + z) tau^2/2). It raises delta, by
  at most tau^2 e^(tau^2/8) times the density of the smoothed loss at eps, whose integral has the same integrand without
  z (z + 1). So both ends come from the same values. Gaussian noise of the ledger is such a factor itself.
* *Trapezoidal rule.* Nodes c + i k h add, by Poisson summation, terms that are never negative: nothing has to be
  done above; below they are bounded by Chernoff.
* *Skipping.* For the tilted law of one round |phi(y + d)| <= |phi(y)| + d E|X|: where |phi|^rounds is negligible,
  it stays so for a while, and what is skipped is booked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..numerics.rounding import ROUNDOFF
from ..numerics.sides import Bounds
from ..pairs.gaussian import noise_of
from ..pairs.pair import Pair
from .aliases import BOOKED_SHARE, RATES, TooDear, log_geometric, log_peak
from .plan import FEW_LAWS, Plan
from .pld import compose_infinity
from .reading import DeltaQuestion, EpsilonQuestion, Reading
from .rounds import AnyRounds, AnyTilted, Rounds, laplace_of
from .sketch import Sketch

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]
Question = DeltaQuestion | EpsilonQuestion

#: Of rtol that the placement of upper atoms may take: more where rounding on the lattices of many rounds counts.
LATTICE_SHARE, MANY_LATTICE_SHARE = 1.0 / 16.0, 0.25
SMOOTHING_SHARE = 0.1  # of rtol that smoothing takes
#: Atoms times nodes on one side: so many are always allowed, and never more than so many. In between, WORK_PER_POINT
#: for every point that a lattice would have.
WORK = (2e5, 8e7)
WORK_PER_POINT = 12.0
MANY_ROUNDS = 300  # from there on a lattice is dearer as a rule
VERY_MANY_ROUNDS = 30_000
CHUNK = 256
WAVES = 2**18  # nodes times questions at once
REFORMED = 3  # times that atoms are formed, for a better saddle point
FEW_ATOMS = 2_000  # only so small laws are formed again: a larger c asks for far finer ones
LARGEST_RATE = 1e9
LARGEST_ANGLE = 6e6  # that `contour_kernels.turns` reduces exactly
NEXT_BALL = 0.9  # share of the last radius that the next ones are tried with


class Integral:
    """E[(1 - e^(eps - L))_+] for the finite part of one side's composition, near one epsilon.

    variance : mu^2 of the Gaussian noise among the rounds. tau : of the smoothing on top. tolerance : relative
    size of what may be booked. step : of the lattice that would do as well. Raises TooDear.
    """

    def __init__(
        self,
        laws: Sequence[AnyRounds],
        variance: float,
        c: float,
        tau: float,
        tolerance: float,
        step: float,
    ) -> None:
        self._c, self._tau = c, tau
        self._laws = laws
        self._square = variance + tau * tau
        tilted = [law.tilted(c) for law in laws]
        square = self._square
        lift = 0.5 * (c * c + c) * square
        self._mean = math.fsum(law.count * law.mean for law in tilted)
        means = math.fsum(law.count * abs(law.mean) for law in tilted)
        self._log = math.fsum(law.count * law.log_moment for law in tilted) + lift  # of L - mean
        self._turned = ROUNDOFF * (4.0 * means + 16.0)
        self._log_error = math.fsum(law.count * law.moment_error for law in tilted) + ROUNDOFF * (
            8.0 * lift + 4.0 * c * means
        )
        self._deviation = math.sqrt(math.fsum(law.count * law.variance for law in tilted) + square)
        # A lattice holds the composed loss under its tilt, and every law before that.
        reach = max([14.0 * self._deviation, *(law.reach for law in laws)])
        work = WORK_PER_POINT * reach / step
        self._most_work = min(max(work, WORK[0]), WORK[1])
        self._aliases(tolerance)
        self._walk(tilted, tolerance)

    # -- aliases -----------------------------------------------------------------------------------

    def _aliases(self, tolerance: float) -> None:
        """Chernoff's bounds at a few rates, and the period that makes aliases small."""
        c = self._c
        near = RATES / self._deviation
        rates = np.concatenate((c + near, c - near[near < c], [0.0]))
        logs = []
        for rate in rates:
            found = [law.log_moment(float(rate)) for law in self._laws]
            value = math.fsum(
                law.count * (log + error)
                for law, (log, error) in zip(self._laws, found, strict=True)
            )
            value += 0.5 * (rate * rate + rate) * self._square * (1.0 + 8.0 * ROUNDOFF)
            logs.append(value + 1e-9)
        self._rates, self._log_moments = rates, np.array(logs) + log_peak(rates)
        # The tilted mean, and what delta is about there.
        centre = self._mean + (c + 0.5) * self._square
        log_value = (
            self._log
            + c * (self._mean - centre)
            - math.log1p(c * (1.0 + c) * math.sqrt(2.0 * math.pi) * self._deviation)
        )
        need = self._log_moments - rates * centre - log_value - math.log(0.1 * tolerance)
        wide = need / np.abs(rates - c)
        right, left = wide[rates > c], wide[rates < c]
        self._period = max(float(right.min()), float(left.min()), 4.0 * self._deviation)
        self.h = 2.0 * math.pi / self._period

    def _log_alias(self, eps: Array) -> Array:
        """log of a bound on sum over m != 0 of F(eps + m period) e^(c m period)."""
        distance = np.abs(self._rates - self._c)
        bound = self._log_moments - np.outer(eps, self._rates)
        bound += 1e-13 * (np.abs(self._log_moments) + np.abs(np.outer(eps, self._rates)))
        bound += log_geometric(distance * self._period)
        above = self._rates > self._c
        return np.asarray(np.logaddexp(bound[:, above].min(axis=1), bound[:, ~above].min(axis=1)))

    # -- nodes -------------------------------------------------------------------------------------

    def _weight(self, y: Array) -> Array:
        """The size of a node with |phi| = 1, for both integrals together; 1 and a little at y = 0."""
        c = self._c
        plain = np.sqrt((1.0 + (y / c) ** 2) * (1.0 + (y / (c + 1.0)) ** 2))
        return np.asarray(np.exp(-0.5 * self._square * y * y) * (1.0 / plain + self._extra))

    def _walk(self, tilted: Sequence[AnyTilted], tolerance: float) -> None:
        c, h, square = self._c, self.h, self._square
        if self._tau > 70.0:  # smoothing over losses whose exponential is no double
            raise TooDear
        self._extra = c * (c + 1.0) * self._tau**2 * math.exp(self._tau**2 / 8.0)
        last = max(2.0, 12.0 / (math.sqrt(square) * h))
        floor = tolerance / last  # booked for every node left out
        while float(self._weight(np.array([last * h]))[0]) > floor:
            last *= 1.1
        last = math.ceil(last)
        if last * h * max((law.reach for law in tilted), default=0.0) > LARGEST_ANGLE:
            raise TooDear
        # Behind the last node: weights fall, and faster than a geometric series.
        ratio = math.exp(-square * h * h * last)
        booked = floor / -math.expm1(-square * h * h * last) if ratio < 1.0 else math.inf
        self.work, self._tilted, self._floor = 0.0, tilted, floor
        kept: list[tuple[Array, Complex, Array]] = []
        k, chunk = 1, 8
        while k <= last:
            index = np.arange(k, min(k + chunk, last + 1))
            nodes, sizes = self._nodes(np.asarray(index * h, np.float64))
            kept.append(nodes)
            k = int(index[-1]) + 1
            behind = self._covered(sizes, float(index[-1]) * h, (last + 0.5) * h)
            jump = int(behind / h * (1.0 - 1e-12)) + 1 - k
            if jump > 0:
                booked += jump * floor
                k += jump
                chunk = 1 if jump > chunk else max(1, chunk // 2)
            else:
                chunk = min(2 * chunk, CHUNK)
        y, log_phi, error = (np.concatenate(parts) for parts in zip(*kept, strict=True))
        weight = 1.0 / (1.0 + 1j * y / c) / (1.0 + 1j * y / (c + 1.0))
        turned = np.exp(log_phi + 1j * y * (c + 0.5) * square)
        error = error + np.abs(turned) * ROUNDOFF * 8.0 * y * (c + 0.5) * square
        # What adds nothing is not carried along.
        carried = np.abs(turned) * (np.abs(weight) + self._extra)
        held = carried > floor
        booked += float(carried[~held].sum())
        self._y, self._turned_nodes = y[held], turned[held]
        self._node_weight = weight[held]
        both = np.abs(weight) + self._extra
        self._booked = 2.0 * (booked + float((error * both).sum())) * (1.0 + 1e-6)
        self._sizes = np.abs(self._turned_nodes) * both[held]

    def _charge(self, nodes: int) -> None:
        """Count the work of so many nodes."""
        self.work += nodes * sum(law.size for law in self._tilted)
        if self.work > self._most_work:
            raise TooDear

    def _nodes(self, y: Array) -> tuple[tuple[Array, Complex, Array], list[float]]:
        """Nodes at y: log of the integrand's phi, and its error; and the size of every law's phi at the last one."""
        self._charge(y.size)
        square = self._square
        log_phi = np.asarray(-0.5 * square * y * y, np.complex128)
        log_bound = -0.5 * square * y * y
        error = ROUNDOFF * (64.0 + 4.0 * square * y * y)
        sizes = []
        for law in self._tilted:
            found, wrong = law.values(y)
            log_phi = log_phi + law.count * found
            with np.errstate(divide="ignore"):
                most = np.exp(found.real) + wrong
            log_bound = log_bound + law.count * np.log(most)
            turn = np.abs(found.imag) + np.abs(np.maximum(found.real, -700.0))
            error = error + law.count * (wrong / most + 4.0 * ROUNDOFF * turn)
            sizes.append(float(most[-1]))
        return (y, log_phi, np.exp(np.minimum(log_bound, 1.0)) * error), sizes

    def _covered(self, sizes: list[float], y: float, end: float) -> float:
        """From y, where the laws' |phi| are at most `sizes`, to where all nodes are certainly below the floor.

        Nodes are left out in balls: |phi| grows by E|X| times the distance at most, to either side of a station. The
        first ball is about y; stations follow as long as their balls meet, twice as many at a time.
        """
        stations = 1
        while True:
            radius = self._free(sizes, y)
            y += radius
            radius *= NEXT_BALL
            if radius < self.h or y >= end:
                return min(y, end)
            left = math.ceil(0.5 * (end - y) / radius)
            turns = np.arange(1, 2 * min(stations, left), 2)
            at = np.minimum(y + radius * turns, end)
            self._charge(at.size)
            log_size, sizes = np.zeros(at.size), []
            for law in self._tilted:
                most = law.most(at)
                log_size += law.count * np.log(np.minimum(1.0, most + radius * law.spread))
                sizes.append(float(most[-1]))
            held = log_size <= math.log(self._floor) - np.log(self._weight(at - radius))
            if not held.all():
                return y + 2.0 * radius * int(np.argmin(held))
            if at[-1] + radius >= end:
                return end
            y = float(at[-1])
            stations *= 2

    def _free(self, sizes: list[float], y: float) -> float:
        """How far the nodes behind y are certainly below the floor."""

        def log_most(distance: float) -> float:
            """log of a bound on |phi|^rounds up to that distance."""
            return sum(
                law.count * math.log(min(1.0, size + distance * law.spread))
                for law, size in zip(self._tilted, sizes, strict=True)
            )

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
        """Upper bounds at real epsilons, shape (questions,)."""
        exponent, value, _, error, log_error = self._values(eps)
        found = np.maximum((value + error) * self._scale(exponent + log_error), 0.0) + 1e-300
        return np.where(self._lost(exponent, log_error), math.inf, found)

    def lowers(self, eps: Array) -> Array:
        """Lower bounds at real epsilons, shape (questions,)."""
        exponent, value, density, error, log_error = self._values(eps)
        alias = np.exp(np.minimum(self._log_alias(eps), 700.0))
        scale = self._scale(exponent - log_error)
        found = (value - error - np.maximum(density, 0.0)) * scale - alias
        return np.where(self._lost(exponent, log_error), 0.0, np.maximum(found, 0.0))

    def noise(self, eps: float) -> float:
        """What was booked for nodes and rounding, relative to the answer; inf if it is more than that."""
        _, value, _, error, _ = self._values(np.array([eps]))
        return float(error[0] / value[0]) if value[0] > error[0] else math.inf

    def _scale(self, exponent: Array) -> Array:
        """What both sums are multiplied by."""
        c = self._c
        return np.asarray(np.exp(np.minimum(exponent, 601.0)) / (self._period * c * (c + 1.0)))

    @staticmethod
    def _lost(exponent: Array, log_error: Array) -> NDArray[np.bool_]:
        """Whether eps is too far below the tilted mean, or nothing but rounding is left."""
        return (exponent > 600.0) | (log_error > 1.0)

    def _values(self, eps: Array) -> tuple[Array, Array, Array, Array, Array]:
        """log of the scale, both sums relative to it, their error, and the error of the log."""
        c = self._c
        shift = self._mean - eps
        exponent = self._log + c * shift
        value, density = np.empty((2, eps.size))
        most = max(1, WAVES // max(1, self._y.size))
        for start in range(0, eps.size, most):
            part = slice(start, start + most)
            wave = self._turned_nodes * np.exp(1j * np.outer(shift[part], self._y))
            value[part] = 1.0 + 2.0 * (wave * self._node_weight).real.sum(axis=1)
            density[part] = self._extra * (1.0 + 2.0 * wave.real.sum(axis=1))
        # Phases are known to a few ulp of y times the means and eps.
        turned = self._turned + 4.0 * ROUNDOFF * (np.abs(eps) + np.abs(shift))
        rounding = ROUNDOFF * (16.0 + self._y.size) * float(self._sizes.sum())
        error = self._booked + 2.0 * (float(self._sizes @ self._y) * turned + rounding)
        error = error + 8.0 * ROUNDOFF * (1.0 + np.abs(density))
        log_error = self._log_error + ROUNDOFF * (
            32.0 + 4.0 * abs(self._log) + 4.0 * c * (np.abs(eps) + np.abs(shift)) + np.abs(exponent)
        )
        return exponent, value, density, error, log_error


def _saddle(laws: Sequence[AnyRounds], square: float, question: Question, start: float) -> float:
    """About the c where the integrand of the question's answer is least on the real line."""

    def beyond(c: float) -> bool:
        slopes = [law.slopes(c) for law in laws]
        counts = [law.count for law in laws]
        mean = (c + 0.5) * square + sum(k * one for k, (one, _) in zip(counts, slopes, strict=True))
        eps = mean - 1.0 / c - 1.0 / (c + 1.0)
        if isinstance(question, DeltaQuestion):
            return eps >= question.eps
        variance = square + sum(k * one for k, (_, one) in zip(counts, slopes, strict=True))
        variance += 1.0 / c**2 + 1.0 / (c + 1.0) ** 2
        log = sum(law.count * law.log_moment(c)[0] for law in laws) + 0.5 * (c * c + c) * square
        value = log - c * eps - math.log(c * (c + 1.0)) - 0.5 * math.log(2.0 * math.pi * variance)
        return value <= math.log(question.delta)

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
    """Whether an integral is worth a try before any lattice: many rounds, few atoms, or noise in closed form."""
    rounds = sum(count for _, count in ledger)
    closed = any(noise_of(pair) is not None or laplace_of(pair) is not None for pair, _ in ledger)
    return closed or (not sketch.regular and (rounds >= MANY_ROUNDS or sketch.sparse))


class Contour(Reading):
    """Both sides of a composition: reads delta near the tilted mean."""

    def __init__(self, lower: Integral, upper: Integral, infinity: Bounds, slack: Bounds) -> None:
        self._lower, self._upper = lower, upper
        self._infinity, self._slack = infinity, slack

    @classmethod
    def of(
        cls, ledger: Sequence[tuple[Pair, int]], plan: Plan, question: Question
    ) -> Contour | None:
        """The composition, if an integral is likely to be cheaper than a lattice."""
        if len(ledger) > FEW_LAWS or plan.direct:
            return None
        noise = [noise_of(pair) for pair, _ in ledger]
        square = next((found for found in noise if found is not None), Bounds(0.0, 0.0))
        rest = [item for item, found in zip(ledger, noise, strict=True) if found is None]
        share = LATTICE_SHARE if plan.rounds < VERY_MANY_ROUNDS else MANY_LATTICE_SHARE
        plan = replace(plan, lattice_share=max(plan.lattice_share, share))
        c = max(plan.tilt, 1.0 / math.sqrt(plan.variance))
        try:
            for _ in range(REFORMED):
                resolutions = plan.resolutions(
                    [item for item in rest if laplace_of(item[0]) is None]
                )
                below, above = zip(
                    *(Rounds.of(pair, count, resolutions) for pair, count in rest), strict=True
                )
                before, c = c, _saddle(above, square.upper, question, c)
                if 0.6 * c < before < 1.6 * c or any(law.size > FEW_ATOMS for law in above):
                    break
                plan = replace(plan, tilt=c, sensitivity=c * c + c)
            above = tuple(
                law.capped(float(pair.max_loss.upper), c, plan.log_delta)
                if isinstance(law, Rounds)
                else law
                for law, (pair, _) in zip(above, rest, strict=True)
            )
            smoothing = SMOOTHING_SHARE * plan.rtol * plan.share / (c * (c + 1.0))
            tau = 0.0 if square.lower >= smoothing else math.sqrt(smoothing)
            tolerance = BOOKED_SHARE * plan.rtol * min(1.0, plan.share)
            lower = Integral(below, square.lower, c, tau, tolerance, plan.step(plan.rounds))
            upper = Integral(above, square.upper, c, tau, tolerance, plan.step(plan.rounds))
        except (TooDear, MemoryError):
            return None
        lost = [
            compose_infinity((law.infinite, law.count) for law in side) for side in (below, above)
        ]
        infinity = Bounds(lost[0] * (1.0 - 2e-15) + 0.0, min(1.0, lost[1] * (1.0 + 2e-15)))
        slack = [
            math.fsum(law.count * law.slack for law in side) * (1.0 + 1e-9)
            for side in (below, above)
        ]
        return cls(lower, upper, infinity, Bounds(*slack))

    def lower(self, eps: float) -> float:
        """Certified lower bound on delta(eps)."""
        return self._infinity.lower if eps == math.inf else float(self.lowers(np.array([eps]))[0])

    def upper(self, eps: float) -> float:
        """Certified upper bound on delta(eps)."""
        return self._infinity.upper if eps == math.inf else float(self.uppers(np.array([eps]))[0])

    def lowers(self, eps: Array) -> Array:
        finite = self._lower.lowers(eps + self._slack.lower + 1e-15 * eps)
        return np.asarray(np.minimum(1.0, (finite + self._infinity.lower) * (1.0 - 1e-15)))

    def uppers(self, eps: Array) -> Array:
        finite = self._upper.uppers(eps - self._slack.upper - 1e-15 * eps)
        return np.asarray(np.minimum(1.0, (finite + self._infinity.upper) * (1.0 + 1e-15)))

    def noise(self, eps: float) -> float:
        """Relative size at eps of what was booked for nodes and rounding; large where delta has a deep valley."""
        return 0.0 if eps == math.inf else self._upper.noise(eps)

    def missed(self, eps: float) -> float:
        """Relative size at eps of the upper side's mass at infinity, most of it missed by windows."""
        lower = self.lower(eps)
        return (
            float(self._infinity.upper - self._infinity.lower) / lower if lower > 0.0 else math.inf
        )
