"""One round of a pair that is known by its profile: delta(epsilon) is the profile, so no law is made.

Every end returned has been asked for by itself: an upper end of epsilon is a point where the profile is at most delta,
a lower end one where it is larger. Between such points a search guesses by secants, on the scale of a normal loss.
"""

from __future__ import annotations

import math

import numpy as np

from ..numerics.sides import Bounds, Side
from ..numerics.tuning import MANY_COINS
from ..pairs.coins import CoinMixture
from ..pairs.pair import Pair
from ..pairs.profile import ProfilePair
from .reading import EPSILON_WIDTH, SMALLEST_DELTA

LARGEST_LOSS = 700.0  # beyond it growths overflow
MOST_STEPS = 60
MOST_SIZES = 10  # of delta, tried for one that is asked for
TIGHTER = 1.0 / 50.0  # of rtol, for profiles and for searches
MISSED = 1e-3 * TIGHTER  # of delta, that a profile may leave out
LOOK = 1.0  # rtol of a first search, which finds where to begin
HARDER = 1e-2  # times as much of rtol, where that was not enough
SHARPEST = 2e-9  # no profile is asked for less
NEAR = 7.0  # a search may add to the width of delta a part of it like that, and so many times what a profile may
STEEP = 12.0  # a smaller fall of log delta with log epsilon wants profiles that are as much narrower
NEXT = 4e-16  # more than the rounding of expm1 and log1p


class OneRound:
    """Answers about one round of `pair`, and to what width delta is known there.

    None where its profile has no end, or is too wide and a law may be sharper (`ProfilePair.pointwise`).
    """

    def __init__(self, pair: ProfilePair, rtol: float, faintest: float = math.inf) -> None:
        """faintest : of log(1/delta); beyond it a law is cheaper."""
        self._pair = pair
        self._rtol = rtol
        self._faintest = faintest

    @classmethod
    def of(cls, pair: Pair, rtol: float) -> OneRound | None:
        """For a pair that is known by its profile, or as well by it: many coins, next to log(1/delta)."""
        if isinstance(pair, ProfilePair):
            return cls(pair, rtol)
        if isinstance(pair, CoinMixture) and pair.max_loss.upper < math.inf and (profile := pair.as_profile):
            faintest = pair.n * pair.others.coin / MANY_COINS
            return cls(profile, rtol, faintest) if faintest > 1.0 and profile.scale > 0.0 else None
        return None

    def delta(self, eps: float) -> tuple[Bounds, float] | None:
        """Bounds on delta at eps >= 0, below the largest loss."""
        if not eps <= LARGEST_LOSS or 0.5 * (eps / self._pair.scale) ** 2 > self._faintest:
            return None
        expm1_eps = math.expm1(eps)
        size, tighter, found, width = 1e-6, 1.0, Bounds(0.0, 1.0), math.inf
        for _ in range(MOST_SIZES):
            asked = _Asked(self._pair.near(expm1_eps), tighter * self._rtol, size)
            ends = ((Side.LOWER, 1.0 + NEXT), (Side.UPPER, 1.0 - NEXT))
            found = Bounds(*(asked.at(expm1_eps * move, side) for side, move in ends))
            width = found.upper / found.lower - 1.0 if found.lower > 0.0 else math.inf
            if width <= self._rtol or tighter < 1.0 or size <= SMALLEST_DELTA:
                break
            # An end that is far too large is what was left out of the other delta, and says little.
            about = math.sqrt(found.lower) * math.sqrt(found.upper) if found.lower > 0.0 else found.upper**2
            if 0.1 * about <= size <= 10.0 * about or about > 1e-6:
                tighter = HARDER
            size = max(about, SMALLEST_DELTA)
        return self._judged(found, width)

    def epsilon(self, delta: float) -> tuple[Bounds, float] | None:
        """Bounds on the smallest eps with delta(eps) <= delta, delta in (0, 1)."""
        if -math.log(delta) > self._faintest:
            return None
        found, width, side = Bounds(0.0, 0.0), math.inf, self._pair.side or Side.UPPER
        look = _Asked(self._pair, LOOK, delta)
        place = look.crossing(Side.UPPER)
        first = None if place is None or place[1] == 0.0 else (place[1], look.curve)
        for tighter in (1.0, HARDER):
            asked = _Asked(self._pair if first is None else self._pair.near(first[0]), tighter * self._rtol, delta)
            lower = upper = asked.crossing(side, first)
            if upper is not None and upper[1] > 0.0 and self._pair.side is None:
                lower = asked.crossing(Side.LOWER, (upper[1], asked.curve))
            if upper is None or lower is None:
                return None
            low, high, reached = max(0.0, lower[0]), upper[1], 0.0
            ends = Bounds(math.log1p(low) * (1.0 - NEXT), math.log1p(high) * (1.0 + NEXT))
            if ends.upper > ends.lower * (1.0 + EPSILON_WIDTH):
                least, most = (asked.at(high, side) for side in Side)
                reached = most / least - 1.0 if least > 0.0 else math.inf
            if reached <= width:  # more work may be too much
                found, width = ends, reached
            if width <= self._rtol:
                break
        return self._judged(found, width)

    def at_most(self, eps: float, delta: float) -> bool:
        """Whether one value shows that delta(eps) is at most delta, a rough one where that is enough."""
        if not (eps <= LARGEST_LOSS and delta > 0.0):
            return False
        place = math.expm1(eps) * (1.0 - NEXT)
        pair = self._pair.near(place)
        widths = (LOOK, math.sqrt(LOOK * self._rtol), self._rtol)
        return any(_Asked(pair, rtol, delta).at(place, Side.UPPER) <= delta for rtol in widths)

    def _judged(self, found: Bounds, width: float) -> tuple[Bounds, float] | None:
        final = self._pair.pointwise and self._faintest == math.inf
        return (found, width) if width <= self._rtol or final else None


class _Asked:
    """A profile where it is of the order of `delta`, with all that has been asked: a side alone, where it has a law."""

    def __init__(self, pair: ProfilePair, rtol: float, delta: float) -> None:
        halves = None if pair.side else pair.halves
        self._pairs = dict(zip(Side, halves or (pair, pair), strict=True))
        self._tolerance = max(TIGHTER * rtol, SHARPEST)
        self._whole = pair.side is not None  # both ends are wanted of one search
        self._spent = NEAR if pair.side or halves else 1.0
        self._delta = delta
        self._top = math.expm1(min(float(pair.max_loss.upper), LARGEST_LOSS)) * (1.0 + NEXT)
        self._known: dict[Side, dict[float, float]] = {side: {} for side in Side}
        self._ends = pair.max_loss.upper < LARGEST_LOSS and pair.infinity_mass == 0.0
        self.curve: dict[float, float] = {}  # about where the profile is, by the last search

    def at(self, expm1_eps: float, side: Side) -> float:
        known, pair = self._known, self._pairs[side]
        if expm1_eps not in known[side]:
            found = pair.profile(np.array([expm1_eps]), self._tolerance, MISSED * self._delta)
            for end, value in zip(Side, found, strict=True):
                if self._pairs[end] is pair:
                    known[end][expm1_eps] = float(value[0])
        if self._ends and expm1_eps == self._top:
            known[side][expm1_eps] = 0.0  # whatever rounding leaves
        return known[side][expm1_eps]

    def _width(self, expm1_eps: float) -> float:
        """Of the bracket there, relative; 0 if nothing is known from below, or on one side only."""
        lower, upper = (self._known[side].get(expm1_eps, 0.0) for side in Side)
        return upper / lower - 1.0 if upper > lower > 0.0 else 0.0

    def crossing(self, side: Side, first: tuple[float, dict[float, float]] | None = None) -> tuple[float, float] | None:
        """(bad, good): growths with values above delta and not above it; (0, 0) if 0 is good.

        That of the side, the good one for an upper end, has a value next to delta; or they are hardly apart. first :
        where to ask first, and a profile of about that shape, from 0 on: guesses, and nothing else.
        """
        delta, sign, top, values = self._delta, 1.0 if side is Side.UPPER else -1.0, self._top, self._known[side]
        start = self.at(0.0, side) if first is None else first[1][0.0]
        if start <= delta:
            return 0.0, 0.0
        wanted = _deviations(delta / start)
        if not self.curve:  # a small loss, and a slowly falling delta, feel errors of delta more
            steep = start / delta - 1.0 if first is None else _steepness(*first)
            self._tolerance = max(SHARPEST, self._tolerance * min(1.0, steep / STEEP))
        normal = start * math.sqrt(2.0 * math.pi) * wanted  # as if the loss were normal
        place, shape = (max(normal, 1e-300), {0.0: start}) if first is None else first
        value = self.at(min(place, top), side)
        if first is not None and shape.get(place, 0.0) > 0.0:
            shape = {expm1_eps: value / shape[place] * known for expm1_eps, known in shape.items()}
        for step in range(MOST_STEPS):
            bad = max((expm1_eps for expm1_eps, value in values.items() if value > delta), default=-1.0)
            if bad < 0.0 and step > (6 if sign > 0.0 else 1):  # it may be nowhere above
                if self.at(0.0, side) <= delta:
                    return 0.0, 0.0
                continue
            good = min((g for g, value in values.items() if value <= delta and g > bad), default=None)
            if good is None and bad >= top:
                return None
            self.curve = ({0.0: start} if len(values) > 1 else shape) | values
            spent = self._tolerance if first is None else self._spent * self._tolerance
            spent = max(spent, self._width(bad if good is None else good) / NEAR)
            aim = sign
            if good is not None and (bad >= 0.0 or sign > 0.0):
                end = values[good if sign > 0.0 else bad]
                if max(end, delta) <= (1.0 + spent) * min(end, delta) or good - bad <= 1e-14 * good:
                    if bad >= 0.0 or not self._whole:
                        return bad, good
                    aim = -sign
            places = {expm1_eps: _deviations(value / start) for expm1_eps, value in self.curve.items()}
            guess = _interpolated(places, wanted + aim * 0.3 * spent / (wanted + 1.25))
            bad = max(bad, 0.0)
            if not bad < guess < (math.inf if good is None else good) or step % 8 == 7:
                guess = 2.0 * bad + start if good is None else 0.5 * (bad + good)
            self.at(min(guess, top), side)
        return None if good is None else (max(bad, 0.0), good)  # bounds that jump have no value next to delta


def _interpolated(places: dict[float, float], wanted: float) -> float:
    """Where a place is wanted, by the parabola through the three nearest ones; nan if they cannot tell."""
    near, other, *third = (x for _, x in sorted((abs(place - wanted), x) for x, place in places.items())[:3])
    start, end = places[near], places[other]
    if not (end != start and math.isfinite(end)):
        return math.nan
    slope = (other - near) / (end - start)
    guess = near + (wanted - start) * slope
    for x in third:
        if places[x] not in (start, end) and math.isfinite(places[x]):
            bend = ((x - other) / (places[x] - end) - slope) / (places[x] - start)
            guess += (wanted - start) * (wanted - end) * bend
    return guess


def _steepness(place: float, shape: dict[float, float]) -> float:
    """How fast log delta falls with log epsilon at a place, from the next one."""
    if shape[place] <= 0.0:
        return math.inf
    level, eps = math.log(shape[place]), math.log1p(place)
    fall, other = min((abs(math.log(value) - level), x) for x, value in shape.items() if x != place and value > 0.0)
    return fall * eps / abs(eps - math.log1p(other))


def _deviations(ratio: float) -> float:
    """Within 7 % the z >= 0 with psi(z) = ratio psi(0), psi(z) = phi(z) - z (1 - Phi(z)); inf for ratio 0."""
    fall = -math.log(min(ratio, 1.0)) if ratio > 0.0 else math.inf
    return (math.sqrt(0.5 * math.pi + 1.4 * fall) - math.sqrt(0.5 * math.pi)) / 0.7
