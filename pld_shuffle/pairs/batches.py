"""Shuffled batches: upper ends for one epoch of a fresh permutation, and the attack they are measured against.

All theorems are those of docs/shuffled_batches.md, section 3. One record or more is left out: Theorem D, by the
envelope of Lemma 3, a slot law that is not whole, or by Theorems G (`game`) and H (`one_type`) where that is far above
the attack. Every record is used: Theorem S, a sum over bins of u of the same for the others' batches, to which the
guest's is added by its call function, at a few strikes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..numerics.rounding import above, below
from ..numerics.sides import Bounds, Side
from .allocation import GaussianSteps, HiddenStepPair, StepsLaw, _edges, _mass_error, _power, _spread
from .cohort import Cohort
from .game import lattice, normal, play
from .gaussian import GaussianPair
from .one_type import THINNED, rate, softened
from .pair import Atoms, Resolution, completed
from .profile import SAME, ProfilePair, ProfilePoints, points, profile_atoms
from .slots import SlotLaw, rest_of

Array = NDArray[np.float64]

# Of a profile, that its chords may err by near loss 0; where most points are expensive; for few batches, of which less
# is proved.
CHORD, FEW = (2.5e-4, 1.25e-3, 2.5e-3), 500
# Width of cells, in deviations, and of integrals: for one point, for many, at a first look, where no games are played.
ONE, MANY, LOOK = range(3)
ACCURACY = (0.02, 2e-5), (0.05, 5e-4), (0.15, 1e-2)
POINTS_RTOL = 2e-4  # of an attack's values
ROUGH = 1e-2  # of values at a first look
FIRST_LOOK = 40  # points where the distances of all others are read from
LEAST_TAIL = 1e-290
# The game: the least that the envelope may be above the attack; points times steps of the largest one; steps of one
# that others precede, at least and over sigma^2 (half of it for many points), and up to which all are played (a fourth
# of it for Theorem S); what may be left out of it, and of the sum of the others; strikes between the two, at least and
# over the root of the game's share, for one point and for many. Of many points with fewer steps, and little noise, none
# is played: it would gain 1 %, in ten times the time.
NEAR, LARGEST_GAME = 1.012, 2e7
MOST_PLAYED, FEWEST_PLAYED = (100, 25.0, 1000), 500
FLOOR, EXCESS = 5e-4, 1e-4
CHORDS = (14, 90.0), (9, 40.0)
MOSTLY_PLAYED = 1.25  # noise from which on most points of a profile are games
# Theorem S: ends of the bins of k u; strikes over k(s - 1); 1 - Z; least k/c; by how much a bin lowers W, at least,
# for one point and for many.
BINS = (0.4, 1.0, 1.8, 3.0, 5.0, 8.0, 13.0, 20.0, 30.0)
STRIKES = (0.0, 0.02, 0.08, 0.3, 1.0)
MISSING, LEAST_COVER, LEAST_BIN = 0.2, 10.0, (2e-3, 0.03)
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
        faint = 1.0 + 1e3 * tail / np.maximum(first.upper, tail)
        density = np.sqrt(np.clip(bend, least, 1.0 / scale**2) / (8.0 * self.chord * faint))
        number = np.append(0.0, np.cumsum(0.5 * (density[1:] + density[:-1]) * np.diff(at)))
        losses = np.interp(np.linspace(0.0, number[-1], math.ceil(number[-1]) + 1), number, at)
        expm1_eps = np.expm1(losses)
        lower, upper = self.profile(expm1_eps, POINTS_RTOL, tail)
        return ProfilePoints(expm1_eps, np.array(lower), np.array(upper))


@lru_cache(maxsize=32)
def _kept_points(pair: _OneEnd, tail: float) -> ProfilePoints:
    return pair.points_at(tail)


class BatchesAttack(_OneEnd, HiddenStepPair):
    """One order of the attack, all others at minus the target's contribution: the lower half of its pair."""

    side = Side.LOWER


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
        return CHORD[2 if self.count < FEW else not self.spare or self.steps.sigma >= MOSTLY_PLAYED]

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
        cell, rtol = ACCURACY[effort]
        rows, error = self._envelope(expm1_eps, tail, cell)
        rate = float(self.rate.upper)
        found = self._enveloped(rows, error, expm1_eps, rtol)
        steps = self._game(expm1_eps, found, effort)
        if steps is None:
            return found
        start = -self.count * expm1_eps * (1.0 - rate) / rate * (1.0 - 1e-14)
        played = self._play(steps, expm1_eps, [start], 1.0, found, effort)
        return found if played is None else min(found, rate * played[0] * (1.0 + 1e-14))

    def _enveloped(self, rows: Array, error: float, expm1_eps: float, rtol: float) -> float:
        """Theorem D by the envelope alone; with r = 0 it is no bound."""
        law = SlotLaw.of(self.count, rows, error, whole=False).sampled(Cohort(float(self.rate.upper)))
        return float(law.profile(np.array([expm1_eps]), rtol).upper[0])

    def _game(self, expm1_eps: float, enveloped: float, effort: int) -> int | None:
        """Steps of the game, the last ones of all.

        None where the attack is near, so that the envelope is not at fault, or these steps take too large a lattice.
        """
        count = self.count - (not self.spare)
        little = effort == MANY and count < FEWEST_PLAYED and self.steps.sigma < MOSTLY_PLAYED  # to gain
        if effort == LOOK or little or self.steps.first * self.steps.second != 0:
            return None
        least, each, most = MOST_PLAYED
        most = most if self.spare and effort == ONE else most // 4
        fewer = least + math.ceil(each * self.steps.sigma**2 / (2 if effort else 1))
        steps = count if count <= most else min(most, fewer)
        mean = self._mean(steps, enveloped)
        if steps * sum(lattice(self.steps.sigma, expm1_eps, steps, mean)) > LARGEST_GAME:
            return None
        near = enveloped <= NEAR * float(self._attack.profile(np.array([expm1_eps]), 1e-3, 0.0).upper[0])
        return None if near else steps

    def _mean(self, steps: int, found: float) -> float:
        """What the game may neglect of single steps, if others go before it."""
        return math.inf if steps >= self.count - (not self.spare) else 1e-3 * found * self.count

    def _play(
        self, steps: int, expm1_eps: float, starts: list[float], share: float, found: float, effort: int
    ) -> list[float] | None:
        """E (start + sum of L)_+ over the number of steps, for all batches (but the guest's).

        The last steps are a game, and the earlier ones have one type (Theorem H); None where that is not certified.
        """
        count, sigma, forward = self.count - (not self.spare), self.steps.sigma, self.steps.first == 1
        rest, excess = count - steps, EXCESS * found
        lam = rate(sigma, forward, expm1_eps, 10.0 ** math.floor(math.log10(excess))) if rest else 1.0
        if lam is None:
            return None
        played = play(sigma, forward, expm1_eps, steps, share, FLOOR * found, self._mean(steps, found))
        if not rest:
            return [played.at(start) / count for start in starts]
        cell, rtol = ACCURACY[effort]
        fewest, each = CHORDS[effort > ONE or not self.spare]
        number = fewest + math.ceil(each * math.sqrt(steps / count))
        rows, error = self._worst(expm1_eps, _power(1e-6 * found), cell)
        first, second, others = rows[:, :-1]
        tilt = share * expm1_eps / float(np.sum((first - (1.0 + expm1_eps) * second) ** 2 / np.maximum(others, 1e-300)))
        places, weights, constant = softened(
            played, share * lam, forward, number, EXCESS * found * count, tilt, count * expm1_eps
        )

        slope = 1.01 * float(weights.sum())

        def value(start: float) -> float:
            parts = [
                weight * self._shifted(rows, error, share, (start - y) / rest, rest, expm1_eps, rtol)
                for y, weight in zip(places.tolist(), weights.tolist(), strict=True)
            ]
            return (math.fsum(parts) * (1.0 + 1e-12) + constant) / count + slope * excess

        return [value(start) for start in starts]

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

    def _all_used(self, expm1_eps: float, tail: float, effort: int) -> float:
        """Theorem S: the sum over bins of u, the expectation over the guest by chords between strikes."""
        apart, (cell, rtol) = self._apart(expm1_eps), ACCURACY[effort]
        if self._cover is None:
            return apart
        rho, c = self._cover
        rows, error = self._envelope(expm1_eps, tail, cell)
        others, n = self.count - 1, float(self.count)
        strikes = np.array(STRIKES[:: 2 if effort else 1]) * others * max(expm1_eps, self.scale)
        guest = _guest_calls(self.steps, expm1_eps, rho, others, strikes)
        ends = [0.0]
        for one, beyond in itertools.pairwise([*(end / n for end in BINS if end < 0.95 * n / c), math.inf]):
            if (beyond - ends[-1]) * c > LEAST_BIN[effort > ONE]:
                ends.append(one)

        def summed(values_of: Callable[[float], list[float]]) -> float:
            found = apart * math.exp(n * math.log1p(-ends[-1]))
            for start, end in itertools.pairwise(ends):
                weight = math.exp(n * math.log1p(-start)) - math.exp(n * math.log1p(-end))
                share = (1.0 - end * c) / (1.0 - end) * (1.0 - 1e-14 - 2.0 * error)  # W is at least that
                values = values_of(share)
                slopes = np.maximum.accumulate(np.clip(np.diff(values) / np.diff(strikes), 0.0, 1.0))
                kinks = np.diff(slopes, prepend=0.0, append=1.0)
                found += weight / n * (values[0] + float(kinks @ guest))
            return found * (1.0 + 1e-12)

        found = summed(
            lambda share: [self._shifted(rows, error, share, v / others, others, expm1_eps, rtol) for v in strikes]
        )
        steps = self._game(expm1_eps, self._enveloped(rows, error, expm1_eps, rtol), effort)
        if steps is None:
            return found

        def played(share: float) -> list[float]:
            values = self._play(steps, expm1_eps, strikes.tolist(), share, found, effort)
            return [math.inf] * strikes.size if values is None else [others * value for value in values]

        return min(found, summed(played))

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
        """rho and c with V = min(N(0), rho N(w_1), ...)/Z <= c N(w_i), Z >= 1 - MISSING; None if c is of order k."""
        if self.count < 2:
            return None
        others, rho = replace(self, steps=replace(self.steps, first=1, second=0)), 1.0
        while (missing := (self.count - 1) * others._apart(rho - 1.0)) > MISSING:
            rho *= 1.05
        c = rho / (1.0 - missing) * (1.0 + 1e-12)
        return (rho, c) if 0.95 * self.count / c > LEAST_COVER else None

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

    @property
    def max_loss(self) -> Bounds:
        return Bounds(math.inf, math.inf)

    @property
    def reverse(self) -> BatchesBound | None:
        if self.steps.first == -self.steps.second:
            return None  # the mirror image
        return replace(self, steps=self.steps.reversed())


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
