"""Shuffled batches: upper ends for one epoch of a fresh permutation, and the attack they are measured against.

All theorems are those of docs/shuffled_batches.md, section 3. One record or more is left out: Theorem D, by the
envelope of Lemma 3, a slot law that is not whole, or by Theorems G and H (`game`) where that is far above the
attack. Every record is used: Theorem S, a sum over bins of u of the same for the others' batches, to which the
guest's is added by its call function, at a few strikes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np

from ..numerics.sides import ROUNDOFF, Array, Bounds, Side, above, below
from .allocation import GaussianSteps, HiddenStepPair, StepsLaw, _edges, _mass_error, _power, _spread
from .game import THINNED, Played, lattice, normal, play, preceded, rate, softened
from .gaussian import GaussianPair
from .pair import Atoms, Cohort, Resolution, completed
from .profile import MAX_POINTS, SAME, ProfilePair, ProfilePoints, at_distances, points, profile_atoms
from .slots import SlotLaw, rest_of

# That chords of a profile may err by, in e^eps, relative: of the attack, of the bound, and where less is proved.
CHORD = 1e-5, 8e-5, 8e-4
# Width of cells, in deviations, and of integrals: a first look, where no games are played, for many points, for one.
LOOK, MANY, ONE = range(3)
ACCURACY = (0.15, 1e-2), (0.05, 1e-3), (0.02, 2e-5)
POINTS_RTOL = 2e-4  # of an attack's values
ROUGH = 1e-2  # of values at a first look
FIRST_LOOK = 40  # points where the distances of all others are read from
LEAST_TAIL = 1e-290
# Games: how far off the envelope is at least, in e^eps, relative; points times steps of the largest one; steps that are
# played, at least, over sigma^2, and at most, which is that over sigma^-3, too (with little noise Theorem H costs 1 %);
# what may be left out, and of the sum of the others; deviations of that sum. Between strikes: how far the logarithm of
# the profile falls, at most, and over the root of the batches; moves of starts that are tried, over all batches; the
# least profile, over what may be missed. Of many points with few batches and little noise none is played: that would
# gain 1 %, in four times the time.
NEAR, LARGEST_GAME, MOST_PLAYED = 0.003, 2e7, (250, 25.0, 1000)
FLOOR, EXCESS, DEEP = 5e-4, 1e-3, 5.0
FALL, APART, MOVED, FAINT = 6.0, 0.3, (0.4, 1.8), 1e4
FEW, LITTLE = 500, 1.25
# Theorem S: ends of the bins of k u; strikes over k(s - 1); by how much a bin lowers W, at least, for one point and for
# many.
BINS = (0.4, 1.0, 1.8, 3.0, 5.0, 8.0, 13.0, 20.0, 30.0)
STRIKES = (0.0, 0.02, 0.08, 0.3, 1.0)
LEAST_BIN, COVERED = (2e-3, 0.03), 1e-11
# The guest: chances of the largest of the others' deviations; deviations along the target's contribution, and cuts.
CHANCES = (1.0, 0.6, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-6, 1e-8, 1e-11, 1e-15, 1e-20, 1e-26, 1e-33)
REACH, CUTS = 14.0, 161


class _OneEnd(ProfilePair):
    """A profile whose certificate is one end, on `side`: both sides of a law are one polygon.

    Its points do not depend on the question, but for the tail that may be left out.
    """

    side: ClassVar[Side]
    encloses = False  # the other end measures widths only
    chord = CHORD[0]

    def atoms(self, sides: Sequence[Side], resolution: Resolution) -> list[Atoms]:
        known = self._both_orders(resolution)
        known = known if self.side is Side.UPPER else self._across(*known)
        found = profile_atoms(*known, self.side)
        factor = SAME if self.side is Side.UPPER else 1.0 / SAME
        other = next(side for side in Side if side is not self.side)
        spare = completed(replace(found, mass=found.mass * factor, total=None), other)
        return [found if side is self.side else spare for side in sides]

    def _points(self, resolution: Resolution) -> ProfilePoints:
        tail = max(resolution.truncated_mass, LEAST_TAIL)
        # Up to 40 times what is asked: all looks of a question mostly share their points, and these are dear.
        known = _kept_points(self, 1e-4 ** max(3, math.ceil(-0.25 * math.log10(tail) - 0.4)))
        last = int(np.count_nonzero(known.upper > tail)) + 1
        return ProfilePoints(known.expm1_eps[:last], known.lower[:last], known.upper[:last])

    def points_at(self, tail: float) -> ProfilePoints:
        """The profile down to where it is below `tail`."""
        scale = self.scale
        first = points(
            lambda g: self.profile(g, ROUGH, tail), width=1.0, truncated_mass=tail, scale=scale, most=FIRST_LOOK
        )
        at, log_h = np.log1p(first.expm1_eps), np.log(np.maximum(first.upper, 1e-300))
        slope = np.gradient(log_h, at)
        bend = np.gradient(slope, at) + slope * slope - slope  # second derivative in e^eps over the profile
        least = np.minimum(0.1 / np.maximum(at, scale) ** 2, 1.0 / scale**2)
        allowed = (1.0 + 1e3 * tail / np.maximum(first.upper, tail)) * (1.0 + np.maximum(0.0, -slope) * (at + scale))
        density = np.sqrt(np.clip(bend, least, 1.0 / scale**2) / (8.0 * self.chord * allowed))
        expm1_eps = np.expm1(at_distances(at, 1.0 / density, MAX_POINTS))
        lower, upper = self.profile(expm1_eps, POINTS_RTOL, tail)
        return ProfilePoints(expm1_eps, np.array(lower), np.array(upper))


@lru_cache(maxsize=32)
def _kept_points(pair: _OneEnd, tail: float) -> ProfilePoints:
    return pair.points_at(tail)


class BatchesAttack(_OneEnd, HiddenStepPair):
    """One order of the attack, all others at minus the target's contribution: the lower half of its pair."""

    side = Side.LOWER


@dataclass(frozen=True)
class Strike:
    """Where a game is played. level : of the profile there, roughly; slope : how fast its logarithm falls.

    gap : to the next one.
    """

    growth: float
    level: float
    slope: float
    gap: float


@dataclass(frozen=True)
class BatchesBound(_OneEnd):
    """One order of shuffled batches: the less of Theorem D or S, and of the noise of the target's batch, were it known.

    spare : whether a record or more is left out; rate : the probability that it is not the target. uneven : whether the
    last batch is smaller: then the target's slot is one of all, or of all but the last one, by a coin that is revealed.
    """

    steps: GaussianSteps
    count: int
    rate: Bounds
    spare: bool
    uneven: bool = False

    side = Side.UPPER

    @property
    def chord(self) -> float:  # type: ignore[override]
        return CHORD[1 if self.spare and not self._little else 2]

    @property
    def _little(self) -> bool:
        """Whether there is little to gain by games at many points."""
        return self.count < FEW and self.steps.sigma < LITTLE

    def profile(self, expm1_eps: Array, rtol: float, truncated_mass: float) -> Bounds:
        upper = self.upper(expm1_eps, truncated_mass, LOOK if rtol >= ROUGH else MANY if expm1_eps.size > 1 else ONE)
        return Bounds(upper, upper)

    def upper(self, expm1_eps: Array, truncated_mass: float, effort: int = ONE) -> Array:
        """Upper bounds on H_s at s = 1 + growth."""
        if self.uneven:
            ways = [replace(self, uneven=False, count=count) for count in (self.count - 1, self.count)]
            return np.asarray(np.max([way.upper(expm1_eps, truncated_mass, effort) for way in ways], axis=0))
        known = self._known.profile(expm1_eps, 1e-9, truncated_mass).upper
        value, tail = self._left_out if self.spare else self._all_used, _power(0.25 * truncated_mass)
        found = [
            value(g, tail, effort) if most > truncated_mass else most
            for g, most in zip(expm1_eps.tolist(), known.tolist(), strict=True)
        ]
        return np.asarray(np.minimum(found, known))

    def _left_out(self, expm1_eps: float, tail: float, effort: int) -> float:
        """Theorem D."""
        played = self._games(expm1_eps, np.array([self._start(expm1_eps)]), tail, effort)
        if played is not None:
            return float(self.rate.upper * played[0]) / self.count * (1.0 + 1e-14)
        cell, rtol = ACCURACY[effort]
        return self._enveloped(*self._envelope(expm1_eps, tail, cell), expm1_eps, rtol)

    def _start(self, expm1_eps: float) -> float:
        """The sum before the first batch, in Theorem D, over rate/count."""
        rate = float(self.rate.upper)
        return -self.count * expm1_eps * (1.0 - rate) / rate * (1.0 - 1e-14)

    def _enveloped(self, rows: Array, error: float, expm1_eps: float, rtol: float) -> float:
        """Theorem D by the envelope alone; with r = 0 it is no bound."""
        law = SlotLaw.of(self.count, rows, error, whole=False).sampled(Cohort(float(self.rate.upper)))
        return float(law.profile(np.array([expm1_eps]), rtol).upper[0])

    def _games(self, expm1_eps: float, starts: Array, tail: float, effort: int, share: float = 1.0) -> Array | None:
        """Upper values of E (start + sum of L)_+ over all batches (but the guest's), by games at the strikes next to s.

        share : what the others' law keeps. The value is convex in strike and start jointly: a chord between two games
        holds, wherever it ends in each; the best of some is taken. None where games would gain nothing, or are large.
        """
        if effort == LOOK or (effort == MANY and self._little) or self.steps.first * self.steps.second != 0:
            return None
        i = 0
        while _nth(self, i + 1).growth <= expm1_eps:
            i += 1
        before, low, high, after = (_nth(self, max(0, j)) for j in range(i - 1, i + 3))
        if effort == ONE:  # a game at the strike itself
            here = self._strike(expm1_eps, low.level)
            game = _played(self, here, here, here, share, ONE) if _gains(self, here) else None
            return None if game is None else game.at(starts) * (1.0 + 1e-13)
        if low.level < FAINT * tail or not (_gains(self, low) and _gains(self, high)):
            return None
        one, two = _played(self, before, low, high, share, MANY), _played(self, low, high, after, share, MANY)
        if one is None or two is None:
            return None
        step = high.growth - low.growth
        part, scale = (expm1_eps - low.growth) / step, self.count * step

        def split(moves: Array) -> Array:
            left, right = starts[:, None] - part * moves, starts[:, None] + (1.0 - part) * moves
            rounded = 8.0 * ROUNDOFF * (np.abs(starts[:, None]) + moves + self.count * expm1_eps)
            return np.asarray((1.0 - part) * one.at(left + rounded) + part * two.at(right + rounded))

        moves = scale * np.linspace(*MOVED, 41) * np.ones((starts.size, 1))
        best = np.take_along_axis(moves, np.argmin(split(moves), axis=1)[:, None], axis=1)
        return np.asarray(split(best + scale * np.linspace(-0.03, 0.03, 31)).min(axis=1) * (1.0 + 1e-13))

    def _after(self, last: Strike) -> Strike:
        half = self._strike(last.growth + 0.5 * last.gap, last.level)
        return self._strike(last.growth + half.gap, half.level)

    def _strike(self, growth: float, before: float) -> Strike:
        """before : the level of a smaller strike, roughly."""
        cell, rtol = ACCURACY[LOOK]

        def level(growth: float) -> float:
            return max(1e-300, self._enveloped(*self._envelope(growth, _power(1e-10 * before), cell), growth, rtol))

        near, step, here = growth + self.scale, max(0.05 * growth, 0.01 * self.scale), level(growth)
        slope = max(1e-9, math.log(here / level(growth + step)) / step)
        fall = min(FALL, APART * math.sqrt(self.count))
        return Strike(growth, here, slope, min(fall / slope, 4.0 * near))

    def _worst(self, expm1_eps: float, tail: float, cell: float) -> tuple[Array, float]:
        """Rows (first, second, others) of Theorem H's law: all others are at -1, and a few terms are 0."""
        edges = _edges(self.steps.sigma, tail, cell)
        rows = _spread(self.steps.sigma, edges)
        first, second, others = rows[1 - self.steps.first], rows[1 - self.steps.second], rows[2]
        second[-1] = 0.0
        value = first - (1.0 + expm1_eps) * second
        longer = value >= 0.0 if self.steps.first == 1 else value <= 0.0
        others = others * np.where(longer, 1.0 - THINNED, 1.0)
        others[-1] = 0.0
        return np.array([first, second, others]), _mass_error(self.steps.sigma, edges)

    def _last(self, effort: int) -> int:
        """Steps of games, the last ones of all."""
        fewest, each, most = MOST_PLAYED
        sigma, count = self.steps.sigma, self.count - (not self.spare)
        usual = max(fewest, math.ceil(max(each * sigma**2, most / sigma**3)))
        return count if effort == ONE and count <= most else min(count, usual, most)

    def _preceded(
        self, later: Played, count: int, growth: float, share: float, lam: float, least: float,
        ends: tuple[float, float, float],
    ) -> Played:  # fmt: skip
        """The value of all steps, the `count` before the game having one type (Theorem H)."""
        s = 1.0 + growth
        weights, constant = softened(later, share * lam, self.steps.first == 1)
        rows, error = self._worst(growth, _power(1e-6 * least), ACCURACY[MANY][0])
        held = rows[2] > 0.0
        first, second, others = rows[:, held]
        others = share * others
        value = (first - s * second) / others + (3.0 * error + 8.0 * ROUNDOFF) * (first + s * second) / others
        bare = float(np.sum(np.maximum(0.0, rows[0] - s * rows[1])[~held])) * (1.0 + 1e-9)
        found = preceded(later.place, weights, (value, others), count, ends)
        spare = 1.01 * float(weights.sum()) * count * (EXCESS * least + bare) + constant
        mass_error = count * (error + 1e-15) * (1.0 + 1.0 / rest_of(others))
        value = found.value * math.exp(mass_error) + spare
        return Played(found.place, found.place + np.minimum.accumulate(value - found.place))  # no slope is above 1

    def _all_used(self, expm1_eps: float, tail: float, effort: int) -> float:
        """Theorem S: the sum over bins of u, the expectation over the guest by chords between strikes."""
        apart = self._apart(expm1_eps)
        if self._cover is None:
            return apart
        rho, c = self._cover
        others, n = self.count - 1, float(self.count)
        strikes = np.array(STRIKES[:: 2 if effort != ONE else 1]) * others * max(expm1_eps, self.scale)
        guest = _guest_calls(self.steps, expm1_eps, rho, others, strikes)
        ends = [0.0]
        for one, beyond in itertools.pairwise([*(end / n for end in BINS if end < 0.95 * n / c), math.inf]):
            if (beyond - ends[-1]) * c > LEAST_BIN[effort != ONE]:
                ends.append(one)
        cell, rtol = ACCURACY[effort]
        rows, error = self._envelope(expm1_eps, tail, cell)
        found = apart * math.exp(n * math.log1p(-ends[-1]))
        for start, end in itertools.pairwise(ends):
            weight = math.exp(n * math.log1p(-start)) - math.exp(n * math.log1p(-end))
            share = (1.0 - end * c) / (1.0 - end) * (1.0 - COVERED)  # W is at least that
            values = self._games(expm1_eps, strikes, tail, effort, share)
            if values is None:
                shifts = (strikes / others).tolist()
                parts = [self._shifted(rows, error, share, v, others, expm1_eps, rtol) for v in shifts]
                values = np.array(parts)
            slopes = np.maximum.accumulate(np.clip(np.diff(values) / np.diff(strikes), 0.0, 1.0))
            found += weight / n * (values[0] + float(np.diff(slopes, prepend=0.0, append=1.0) @ guest))
        return found * (1.0 + 1e-12)

    def _shifted(
        self, rows: Array, error: float, share: float, shift: float, count: int, expm1_eps: float, rtol: float
    ) -> float:
        """E (S + v)_+ of so many batches, whose W keeps that share; shift : v for one of them."""
        moved = rows * np.array([[1.0], [1.0], [share]])
        moved = np.append(moved, [[0.0], [0.0], [rest_of(moved[2])]], axis=1)
        moved[0] += max(0.0, shift) * moved[2]
        moved[1] += max(0.0, -shift) / (1.0 + expm1_eps) * (1.0 - 1e-15) * moved[2]
        most = 1.0 + abs(shift)
        moved[:2] /= most  # laws are of mass 1 at most
        law = SlotLaw.of(count, moved, error + 1e-15, whole=True)
        return count * most * float(law.profile(np.array([expm1_eps]), rtol).upper[0])

    def _envelope(self, expm1_eps: float, tail: float, cell: float) -> tuple[Array, float]:
        """Rows (first, second, others) of Lemma 3's envelope at s = 1 + growth, and the masses' relative error.

        The place where P = s Q is an end of cells; next to it values are 0 but for their rounding, which the slots'
        integral knows.
        """
        one, two = self.steps.first, self.steps.second
        middle = 0.5 * (one + two) / self.steps.sigma
        place = middle + math.log1p(expm1_eps) * self.steps.sigma / (one - two)
        edges = _edges(self.steps.sigma, tail, cell, place)
        rows = _spread(self.steps.sigma, edges)
        left = edges[:-1] < place
        left = np.concatenate((left, [False], left))  # of the cells' ends, and of the vertices between
        others = np.append(np.where(left, rows[0, :-1], rows[2, :-1]), 0.0)
        first, second = rows[1 - one], rows[1 - two]
        second[-1] = 0.0
        return np.array([first, second, others]), _mass_error(self.steps.sigma, edges)

    @cached_property
    def _cover(self) -> tuple[float, float] | None:
        """rho and c with V = min(N(0), rho N(w_1), ...)/Z <= c N(w_i), c about the least; None if c is above k."""
        others, best, rho = replace(self, steps=replace(self.steps, first=1, second=0)), (1.0, math.inf), 1.0
        while self.count > 1:
            missing = (self.count - 1) * others._apart(rho - 1.0)
            c = rho / (1.0 - missing) * (1.0 + 1e-12) if missing < 1.0 else math.inf
            if c > best[1]:
                break
            best = rho, c
            rho *= 1.05
        return best if 0.95 * self.count > BINS[0] * best[1] else None

    def _apart(self, expm1_eps: float) -> float:
        return float(self._known.profile(np.array([expm1_eps]), 1e-9, 0.0).upper[0])

    @property
    def covered(self) -> bool:
        """Whether Theorem S says anything."""
        fewest = replace(self, uneven=False, count=self.count - 1) if self.uneven else self
        return fewest._cover is not None

    @cached_property
    def _attack(self) -> HiddenStepPair:
        return HiddenStepPair(StepsLaw(replace(self.steps, others=-1), self.count, self.rate))

    @cached_property
    def _known(self) -> GaussianPair:
        """The noise of a known batch."""
        square = ((self.steps.first - self.steps.second) / self.steps.sigma) ** 2
        return GaussianPair(Bounds(below(square, 4.0), above(square, 4.0)))

    @cached_property
    def scale(self) -> float:  # type: ignore[override]
        return min(self._attack.scale, self._known.scale)

    max_loss = Bounds(math.inf, math.inf)

    @property
    def reverse(self) -> BatchesBound | None:
        if self.steps.first == -self.steps.second:
            return None  # the mirror image
        return replace(self, steps=self.steps.reversed())


@lru_cache(maxsize=1024)
def _nth(bound: BatchesBound, i: int) -> Strike:
    return bound._after(_nth(bound, i - 1)) if i else bound._strike(0.0, 1.0)


@lru_cache(maxsize=1024)
def _gains(bound: BatchesBound, strike: Strike) -> bool:
    """Whether the envelope is at fault there: the attack is not near, in e^eps."""
    cell, rtol = ACCURACY[MANY]
    rows, error = bound._envelope(strike.growth, _power(1e-6 * strike.level), cell)
    attack = float(bound._attack.profile(np.array([strike.growth]), 1e-3, 0.0).upper[0])
    above = math.log(bound._enveloped(rows, error, strike.growth, rtol) / attack) / strike.slope
    return above > NEAR * (strike.growth + bound.scale)


@lru_cache(maxsize=128)
def _played(
    bound: BatchesBound, before: Strike, here: Strike, after: Strike, share: float, effort: int
) -> Played | None:
    """Upper values of all steps but the guest's, for starts that are asked between the strikes before and after."""
    count, sigma, forward = bound.count - (not bound.spare), bound.steps.sigma, bound.steps.first == 1
    steps, least = bound._last(effort), math.sqrt(here.level * after.level)
    moved = [MOVED[1] * bound.count * (two.growth - one.growth) for one, two in ((before, here), (here, after))]
    low, middle, high = (bound._start(one.growth) for one in (after, here, before))
    low, high, rest = low - moved[1], high + moved[0], count - steps
    depth = -low + rest * here.growth + DEEP * math.sqrt(rest * (1.0 + 4.5 / sigma**2)) / sigma
    excess = 10.0 ** math.floor(math.log10(EXCESS * least))
    lam = rate(sigma, forward, here.growth, excess) if rest else 1.0
    if lam is None or steps * sum(lattice(sigma, here.growth, steps, depth)) > LARGEST_GAME:
        return None
    game = play(sigma, forward, here.growth, steps, share, FLOOR * least, depth)
    if rest:
        high += 0.0 if bound.spare else STRIKES[-1] * count * max(after.growth, bound.scale)
        game = bound._preceded(game, rest, here.growth, share, lam, least, (low, middle, high))
    cell, rtol = ACCURACY[MANY]
    rows, error = bound._envelope(here.growth, _power(1e-6 * here.level), cell)
    most = bound._shifted(rows, error, share, middle / count, count, here.growth, rtol)
    return None if game.at(np.array([middle]))[0] > most else game


def _guest_calls(steps: GaussianSteps, expm1_eps: float, rho: float, others: int, strikes: Array) -> Array:
    """Upper bounds on the integral of ((dP - s dQ)_+ - y dV)_+ at all strikes y, for any contributions of the others.

    V >= N(0) min(1, rho e^(-mu^2/2 - mu sqrt(a^2 + t^2))) in deviations a along the target's contribution and t, the
    largest ones of `others` normal numbers (and 0). In cells of a and t that factor is its least value.
    """
    from scipy.special import ndtr, ndtri

    if steps.first == -steps.second:  # P - sQ is (P - t N(0)) + t (N(0) - t Q), each with its part of the strike
        middle = math.expm1(0.5 * math.log1p(expm1_eps)) * (1.0 - 1e-15)
        part = strikes / (2.0 + middle) * (1.0 - 1e-15)
        one, two = (
            _guest_calls(replace(steps, first=first, second=1 - first), middle, rho, others, part) for first in (1, 0)
        )
        return np.asarray((one + (1.0 + middle) * two) * (1.0 + 1e-15))
    mu, s = 1.0 / steps.sigma, 1.0 + expm1_eps
    chance = np.array(CHANCES)
    t = np.maximum(0.0, -ndtri(np.minimum(0.5, chance[1:] / others))) + 1e-9
    if steps.first == 1:
        a = np.linspace(0.5 * mu, mu + REACH, CUTS)
        away = a[1:]
    else:  # mirrored, so that the target's law is larger on the right
        a = np.linspace(-0.5 * mu, REACH, CUTS)
        away = np.maximum(np.abs(a[1:]), 0.5 * mu)
    log_factor = math.log(rho) - 0.5 * mu * mu - mu * np.hypot(away[:, None], t)
    factor = np.exp(np.minimum(0.0, log_factor)) * (1.0 - 1e-12)
    taken = strikes[:, None, None] * factor
    low, high = a[:-1, None], a[1:, None]
    if steps.first == 1:  # N(1) - (s + y m) N(0)
        ahead, behind, centres = np.ones_like(taken), s + taken, (mu, 0.0)
        start = (np.log(behind) + 0.5 * mu * mu) / mu
    else:  # (1 - y m) N(0) - s N(-1), after mirroring
        ahead, behind, centres = np.maximum(0.0, 1.0 - taken), np.full_like(taken, s), (0.0, -mu)
        with np.errstate(divide="ignore"):
            start = (np.log(s) - np.log(ahead)) / mu - 0.5 * mu
    start = np.clip(start, low, high)
    (one, doubt), (two, more) = (normal(c - start) for c in centres)
    cells = ahead * (one - ndtr(centres[0] - high)) - behind * (two - ndtr(centres[1] - high))
    doubt = 2.0 * (ahead * doubt + behind * more)  # those of the far ends are smaller
    cells = np.maximum(0.0, cells) + np.where(start < high, doubt, 0.0)
    found = cells.sum(axis=1) @ -np.diff(chance)
    everything = ndtr(centres[0] - a[0])
    return np.asarray((found + chance[-1] * everything + ndtr(centres[0] - a[-1])) * (1.0 + 1e-12))
