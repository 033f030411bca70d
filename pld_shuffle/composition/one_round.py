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
from .reading import EPSILON_WIDTH

LARGEST_LOSS = 700.0  # beyond it growths overflow
MOST_STEPS = 60
TIGHTER = 1.0 / 50.0  # of rtol, for profiles and for searches
MISSED = 1e-3 * TIGHTER  # of delta, that a profile may leave out
LOOK = 1.0  # rtol of a first search, which finds where to begin
HARDER = 1e-2  # times as much of rtol, where that was not enough
SHARPEST = 2e-9  # no profile is asked for less
NEAR = 0.2  # of the width of delta that a search for epsilon may add
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
        size, found, width = 1e-6, Bounds(0.0, 1.0), math.inf
        for tighter in (1.0, 1.0, HARDER):
            asked = _Asked(self._pair, tighter * self._rtol, size)
            found = Bounds(asked.at(expm1_eps * (1.0 + NEXT)).lower, asked.at(expm1_eps * (1.0 - NEXT)).upper)
            width = found.upper / found.lower - 1.0 if found.lower > 0.0 else math.inf
            if width <= self._rtol:
                break
            size = found.upper
        return self._judged(found, width)

    def epsilon(self, delta: float) -> tuple[Bounds, float] | None:
        """Bounds on the smallest eps with delta(eps) <= delta, delta in (0, 1)."""
        if -math.log(delta) > self._faintest:
            return None
        found, width = Bounds(0.0, 0.0), math.inf
        look = _Asked(self._pair, LOOK, delta)
        place = look.crossing(Side.UPPER)
        first = None if place is None or place[1] == 0.0 else place[1]
        for tighter in (1.0, HARDER):
            asked = _Asked(self._pair, tighter * self._rtol, delta, look, first)
            upper, lower = (asked.crossing(self._pair.side or side) for side in (Side.UPPER, Side.LOWER))
            if upper is None or lower is None:
                return None
            low, high = max(0.0, lower[0]), upper[1]
            found = Bounds(math.log1p(low) * (1.0 - NEXT), math.log1p(high) * (1.0 + NEXT))
            least, most = asked.at(high)
            width = most / least - 1.0 if least > 0.0 else math.inf
            if found.upper <= found.lower * (1.0 + EPSILON_WIDTH):
                width = 0.0
            if width <= self._rtol:
                break
        return self._judged(found, width)

    def at_most(self, eps: float, delta: float) -> bool:
        """Whether one value shows that delta(eps) is at most delta, a rough one where that is enough."""
        if not (eps <= LARGEST_LOSS and delta > 0.0):
            return False
        place = math.expm1(eps) * (1.0 - NEXT)
        return any(_Asked(self._pair, rtol, delta).at(place).upper <= delta for rtol in (LOOK, self._rtol))

    def _judged(self, found: Bounds, width: float) -> tuple[Bounds, float] | None:
        final = self._pair.pointwise and self._faintest == math.inf
        return (found, width) if width <= self._rtol or final else None


class _Asked:
    """A profile where it is of the order of `delta`, with all that has been asked."""

    def __init__(
        self, pair: ProfilePair, rtol: float, delta: float, look: _Asked | None = None, first: float | None = None
    ) -> None:
        """first : about where it is delta, by a look at it: guesses, and nothing else."""
        self._pair = pair
        self._first = first
        self._guesses = {} if look is None or first is None else {x: bounds.upper for x, bounds in look._known.items()}
        self._tolerance = max(TIGHTER * rtol, SHARPEST)
        self._spent = NEAR * rtol if pair.side and look is not None else 0.0
        self._delta = delta
        self._top = math.expm1(min(float(pair.max_loss.upper), LARGEST_LOSS)) * (1.0 + NEXT)
        self._known: dict[float, Bounds] = {}
        self._ends = pair.max_loss.upper < LARGEST_LOSS and pair.infinity_mass == 0.0

    def at(self, expm1_eps: float) -> Bounds:
        if self._ends and expm1_eps == self._top:
            return self._known.setdefault(expm1_eps, Bounds(0.0, 0.0))  # whatever rounding leaves
        if expm1_eps not in self._known:
            truncated_mass = MISSED * self._delta
            found = self._pair.profile(np.array([expm1_eps]), self._tolerance, truncated_mass)
            self._known[expm1_eps] = Bounds(float(found.lower[0]), float(found.upper[0]))
        return self._known[expm1_eps]

    def _width(self, expm1_eps: float) -> float:
        """Of the bracket there, relative; 0 if nothing is known from below."""
        lower, upper = self._known[expm1_eps]
        return upper / lower - 1.0 if lower > 0.0 else 0.0

    def crossing(self, side: Side) -> tuple[float, float] | None:
        """(bad, good): growths with values above delta and not above it; (0, 0) if 0 is good.

        That of the side, the good one for an upper end, has a value next to delta; or they are hardly apart.
        """
        delta, (index, sign) = self._delta, (1, 1.0) if side is Side.UPPER else (0, -1.0)
        top = self._top
        start = self._guesses[0.0] if self._guesses else self.at(0.0)[index]
        if start <= delta:
            return 0.0, 0.0
        wanted = _deviations(delta / start)
        if not any(self._known):  # a small loss feels errors of delta more
            self._tolerance = max(SHARPEST, self._tolerance * min(1.0, start / delta - 1.0))
            normal = start * math.sqrt(2.0 * math.pi) * wanted  # as if the loss were normal
            self.at(min(max(normal, 1e-300) if self._first is None else self._first, top))
        guesses = {0.0: start}
        if self._first is not None and self._guesses[self._first] > 0.0:
            factor = self._known[self._first][index] / self._guesses[self._first]
            guesses = {expm1_eps: factor * value for expm1_eps, value in self._guesses.items()}
        for step in range(MOST_STEPS):
            values = {expm1_eps: bounds[index] for expm1_eps, bounds in self._known.items()}
            bad = max((expm1_eps for expm1_eps, value in values.items() if value > delta), default=-1.0)
            if bad < 0.0 and step > (6 if sign > 0.0 else 1):  # it may be nowhere above
                if self.at(0.0)[index] <= delta:
                    return 0.0, 0.0
                continue
            good = min((g for g, value in values.items() if value <= delta and g > bad), default=None)
            if good is None and bad >= top:
                return None
            spent = max(self._tolerance, self._spent, NEAR * self._width(bad if good is None else good))
            if good is not None and (bad >= 0.0 or sign > 0.0):
                end = values[good if sign > 0.0 else bad]
                if max(end, delta) <= (1.0 + spent) * min(end, delta) or good - bad <= 1e-14 * good:
                    return bad, good
            places = {expm1_eps: _deviations(value / start) for expm1_eps, value in (guesses | values).items()}
            guess = _interpolated(places, wanted + sign * 0.3 * spent / (wanted + 1.25))
            bad = max(bad, 0.0)
            if not bad < guess < (math.inf if good is None else good) or step % 8 == 7:
                guess = 2.0 * bad + start if good is None else 0.5 * (bad + good)
            self.at(min(guess, top))
        return None


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


def _deviations(ratio: float) -> float:
    """Within 7 % the z >= 0 with psi(z) = ratio psi(0), psi(z) = phi(z) - z (1 - Phi(z)); inf for ratio 0."""
    fall = -math.log(min(ratio, 1.0)) if ratio > 0.0 else math.inf
    return (math.sqrt(0.5 * math.pi + 1.4 * fall) - math.sqrt(0.5 * math.pi)) / 0.7
