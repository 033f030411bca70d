"""From a privacy profile, known at points from both sides, to atoms of a privacy loss (docs/theory.md, section 9).

A pair (P, Q) is its profile h(s) = H_s(P||Q), a convex function of s = e^eps: a kink of h at s, where the
slope rises by q, is an atom of Q-mass q and P-mass s q with loss log s. So a convex polygon above h is a pair that
dominates, and one below h is a pair that is dominated:

* Upper: the polygon through certified upper values at the points ("connect the dots"), or its convex hull.
* Lower: between two neighbouring points h lies above the lines through the two points on either side. The convex hull
  of these valleys and the points is the polygon.

Notation: growth g = s - 1 = expm1(eps), so that losses may be tiny. Losses above 0 come from the profile
itself, those below 0 from the reversed pair's (h(1/s) = (g + h'(s))/s); a symmetric pair has one profile
for both. The mass at loss 0 is what both leave.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import ClassVar

import numpy as np

from ..numerics.search import crossing
from ..numerics.sides import ROUNDOFF, Array, Bounds, Side
from ..numerics.tuning import FEW_PROFILES, SLOT_POINTS
from .pair import Atoms, Cohort, Pair, Resolution, completed

#: Bounds on delta, arrays, at growths expm1(eps) >= 0.
Profile = Callable[[Array], Bounds]

MAX_POINTS = 20_000
LOSS_ULPS = 16.0
LONGEST_DISTANCE = 8.0
# Deviations up to which points are spaced for a normal law: at least, at most, and for each unit of tilt times scale,
# which moves such a law.
HEAVY = (10.0, 40.0, 4.0)
ROUGH = 1e-3  # relative width of values that only say where points belong
BELOW, NEAR_END = (0.25, 0.7)  # logarithms: of the end below what is missed, and where a search for it stops
LOOK = 1e-2  # relative width of values that show which of many profiles are the largest
CLOSEST = 1e-4  # of the distance between points
MANY, LOOSEST = 64, 64.0  # points, from which on some may be looser; and how many times
SAME = 1.0 - 2.0**-40  # a lower law may not have more mass than the upper one, rounding included
# Vertices move by this to the safe side: more than the rounding of the hull's comparisons (6 u of a value).
_MARGIN = 64.0 * ROUNDOFF


@dataclass(frozen=True)
class ProfilePoints:
    """A profile at growths 0 = g_0 < g_1 < ... : lower <= h <= upper, and a lower bound on h(inf).

    last_slope : a slope >= the profile's in front of the last point, where the largest loss is an atom (else
    0).
    """

    expm1_eps: Array
    lower: Array
    upper: Array
    infinity: float = 0.0
    last_slope: float = 0.0


def points(
    profile: Profile, *, width: float, truncated_mass: float, scale: float, max_loss: float = math.inf,
    infinity: float = 0.0, top_mass: float = 0.0, centre: float | None = None, tilt: float = 0.0,
    most: int = MAX_POINTS, rough: Profile | None = None, looser: Callable[[float], Profile] | None = None,
) -> ProfilePoints:  # fmt: skip
    """The profile at losses from 0 up to where it is below `truncated_mass`, or to max_loss.

    `scale` is about one standard deviation of the loss. `width` shrinks so that a finite max_loss is a point,
    and grows so that there are at most MAX_POINTS. rough : the profile, known well enough to see where its mass is.
    looser : the profile with errors so many times as large, for where there is little mass under the tilt.
    """

    largest = min(max_loss, 690.0)
    reach = _reach(rough or profile, truncated_mass, min(scale, largest), largest, infinity)
    if 0.75 * max_loss < reach and max_loss <= 700.0:
        # A few more points, and what is known of the largest loss counts.
        reach = max_loss
    low, high, each = HEAVY
    if centre is not None and reach > min(max(low, each * tilt * scale), high) * scale:
        losses = spaced_by_mass(rough or profile, reach, width, scale, tilt, most)
    else:
        losses = spaced(reach, width, scale, centre, most)
    slope = 0.0
    if reach >= max_loss:
        slope = -top_mass * math.exp(-max_loss) * (1.0 - 8.0 * ROUNDOFF)
    expm1_eps = np.expm1(losses)
    if looser is None or rough is None or losses.size < MANY:
        lower, upper = (np.array(end) for end in profile(expm1_eps))
    else:
        lower, upper = np.empty(losses.size), np.empty(losses.size)
        loose = _looseness(rough, losses, tilt)
        for times in np.unique(loose).tolist():
            here = loose == times
            lower[here], upper[here] = looser(times)(expm1_eps[here])
    if reach >= max_loss and infinity == 0.0:
        # Nothing is left there. The rounding of its growth is in the slack.
        lower[-1] = upper[-1] = 0.0
    return ProfilePoints(expm1_eps, lower, upper, infinity, slope)


def _reach(profile: Profile, truncated_mass: float, scale: float, largest: float, infinity: float) -> float:
    """About the loss where the profile is a little below `truncated_mass`, or the largest loss.

    By interpolation, log h falling like the square of the loss.
    """

    def excess(square: float) -> float:
        """log of the profile over what is missed, and a little more."""
        upper = float(profile(np.array([math.expm1(math.sqrt(square))])).upper[0])
        return math.log(max((upper - infinity * (1.0 + 1e-10)) / truncated_mass, 1e-300)) + BELOW

    over = max(math.log(scale / truncated_mass), 1.0)
    point = min(scale * math.sqrt(2.0 * over), 0.9 * largest)
    before = 1e-3 * point
    while (found := excess(point**2)) > 0.0:
        if point > 0.98 * largest:
            return largest
        before, over, point = point, found, min(2.0 * point, 0.5 * (point + largest))
    return math.sqrt(crossing(excess, (before**2, over), (point**2, found), close=NEAR_END, rtol=0.04))


def spaced(reach: float, width: float, scale: float, centre: float | None, most: int) -> Array:
    """Losses from 0 to `reach`, `width` apart; with a `centre` (in scales) near it, and farther apart elsewhere.

    Distances like density^(-1/3) have the least variance within the cells for their number; but at most
    LONGEST_DISTANCE widths, for laws that are not normal.
    """
    if centre is None:
        return np.linspace(0.0, reach, max(2, min(most, math.ceil(reach / width))) + 1)
    grid = np.linspace(0.0, reach, 2001)
    expm1_eps = np.exp(np.minimum((grid / scale - centre) ** 2 / 6.0, math.log(LONGEST_DISTANCE)))
    return at_distances(grid, width * expm1_eps, most)


def _looseness(rough: Profile, losses: Array, tilt: float) -> Array:
    """How many times as large errors may be, a power of 4: like the inverse root of the mass there under the tilt."""
    grid = np.linspace(0.0, losses[-1], MANY)
    mass = _tilted_mass(rough, grid, tilt)
    share = np.interp(losses, grid, np.log(mass + 1e-300)) + np.log(np.gradient(losses))
    loose = np.exp(np.minimum(0.5 * (share.max() - share), math.log(LOOSEST)))
    return np.asarray(4.0 ** np.floor(np.log(loose) / math.log(4.0)))


def _tilted_mass(profile: Profile, grid: Array, tilt: float) -> Array:
    """About the masses between losses under the tilt, over the largest."""
    expm1_eps = np.expm1(grid)
    slopes = -np.diff(profile(expm1_eps).upper) / np.diff(expm1_eps)
    slopes = np.maximum.accumulate(np.append(slopes, 0.0)[::-1])[::-1]
    mass = np.append(slopes[0], -np.diff(slopes))
    log_mass = np.log(np.maximum(mass, 1e-300)) + (1.0 + tilt) * grid
    return np.asarray(np.exp(log_mass - log_mass.max()))


def spaced_by_mass(profile: Profile, reach: float, width: float, scale: float, tilt: float, most: int) -> Array:
    """`spaced` for losses of heavy tails: distances like density^(-1/3) of the mass that a coarse look at them finds.

    Under the tilt, and with the variance within cells that distances of `width` would give.
    """
    near = np.linspace(0.0, 8.0 * scale, 33)
    far = np.geomspace(8.0 * scale, reach, 16 + math.ceil(24.0 * math.log(reach / (8.0 * scale))))[1:]
    grid = np.append(near, far)
    mass = _tilted_mass(profile, grid, tilt)
    longest = np.maximum(LONGEST_DISTANCE, grid / (LONGEST_DISTANCE * width))
    return at_distances(grid, width * distances_by_mass(grid, mass, longest), most)


def distances_by_mass(grid: Array, mass: Array, longest: Array) -> Array:
    """Distances like density^(-1/3), up to `longest` times the least, with the variance in cells of distance 1."""
    density = mass / np.gradient(grid)
    with np.errstate(divide="ignore", over="ignore"):
        distance = np.minimum((density.max() / density) ** (1.0 / 3.0), longest)
    distance *= math.sqrt(float(mass.sum()) / float(mass @ distance**2))
    return np.asarray(distance)


def at_distances(grid: Array, distance: Array, most: int) -> Array:
    """Points from 0 to the last of `grid`, as far apart as `distance` says, or farther if they were over `most`."""
    density = 1.0 / distance
    count = np.append(0.0, np.cumsum(0.5 * (density[1:] + density[:-1]) * np.diff(grid)))
    pieces = max(2, min(most, math.ceil(count[-1])))
    losses: Array = np.interp(np.linspace(0.0, count[-1], pieces + 1), count, grid)
    losses[-1] = grid[-1]
    return losses


def profile_atoms(forward: ProfilePoints, backward: ProfilePoints, side: Side) -> Atoms:
    """The pair with profile `forward`, and `backward` for the reversed pair, as atoms on `side`."""
    upper = side is Side.UPPER
    if upper:  # points are connected; behind the last one the profile is constant
        right, left = ((known.expm1_eps, known.upper) for known in (forward, backward))
    else:
        right, left = vertices_below(forward, backward), vertices_below(backward, forward)
    sign = 1.0 if upper else -1.0
    right, left = ((g, h * (1.0 + sign * _MARGIN)) for g, h in (right, left))
    right, left, middle = _joined(right, left, upper)
    middle *= 1.0 + sign * _MARGIN
    (gain, high), (loss_gain, low) = (_kinks(*points, upper) for points in (right, left))
    # P-masses: s q for losses above 0; a loss below 0 has the reversed pair's Q-mass, which is q.
    mass = np.concatenate((low[::-1], [middle], high * (1.0 + gain)))
    losses = np.concatenate((-np.log1p(loss_gain)[::-1], [0.0], np.log1p(gain)))
    infinity_mass = float(right[1][-1])
    loss_error = LOSS_ULPS * ROUNDOFF * float(max(losses[-1], -losses[0]))
    atoms = Atoms(mass, losses, infinity_mass, 0.0, loss_error, separate=True)
    return completed(atoms, side) if forward is backward else atoms


_Vertices = tuple[Array, Array]


def vertices_below(known: ProfilePoints, reverse: ProfilePoints) -> _Vertices:
    """Vertices of a function below the profile: the points' lower values, and the valleys between them."""
    g, high = known.expm1_eps, known.upper
    floor = known.infinity
    # Raised before lines are drawn: vertices between points must not be raised later.
    low = np.maximum(known.lower, floor)
    # The point on the left of 0 is the reversed pair's first one.
    other = float(reverse.expm1_eps[1])
    before_g = np.append(-other / (1.0 + other), g[:-1])
    before = np.append((other + reverse.upper[1]) / (1.0 + other), high[:-1])
    rising = (low - before) / (g - before_g)  # slope of the line from the left, at every point
    falling = np.full(g.size, known.last_slope)  # and from the right; a profile never rises
    falling[:-1] = (high[1:] - low[:-1]) / np.diff(g)
    gap = np.diff(g)
    left, right = rising[:-1], np.minimum(falling[1:], 0.0)
    # Where the lines cross: low_i + left d = low_{i+1} - right (gap - d).
    with np.errstate(divide="ignore", invalid="ignore"):
        where = (np.diff(low) - right * gap) / (left - right)
    inside = (left < right) & (where > 0.0) & (where < gap)
    # Vertices keep a distance. A crossing close to the point on its right moves left, where the lower line
    # is below both. One close to the point on its left is replaced by that point, put down to the crossing: the
    # right line, which falls from before it, is above the rest. So no vertex is below `floor`.
    near = inside & (where < CLOSEST * gap)
    start = low.copy()
    down = low[1:][near] - right[near] * (gap - where)[near]
    start[:-1][near] = np.minimum(start[:-1][near], down)
    inside &= ~near
    position = np.where(inside, np.minimum(where, (1.0 - CLOSEST) * gap), 0.5 * gap)
    chord = np.minimum(start[:-1], start[:-1] + (low[1:] - start[:-1]) * position / gap)
    # Where the lines do not cross, one of them lies above the chord between the lower values.
    lines = np.minimum(low[:-1] + left * position, low[1:] - right * (gap - position))
    cross = np.where(inside, lines, chord)
    expm1_eps = np.concatenate((g, g[:-1] + position))
    value = np.concatenate((start, cross * (1.0 - 8.0 * ROUNDOFF)))
    # Beyond the last point: on along the last line, until the value at infinite loss is reached.
    if low[-1] > floor:
        if (low[-1] - floor) / LARGEST_QUESTION < -rising[-1]:
            expm1_eps = np.append(expm1_eps, g[-1] + (low[-1] - floor) / -rising[-1])
            value = np.append(value, floor)
        else:  # noise: no line to follow
            value[g.size - 1] = floor
    order = np.argsort(expm1_eps, kind="stable")
    return expm1_eps[order], np.maximum(value[order], floor)


def _joined(right: _Vertices, left: _Vertices, upper: bool) -> tuple[_Vertices, _Vertices, float]:
    """Convex hulls on both sides of 0 with a common value there, and the P-mass (and Q-mass) at loss 0.

    The value at 0 falls until the polygon is convex there: down to the chord between its neighbours, the
    reversed pair's vertex being at -k/(1+k) with value (k + b)/(1+k).
    """
    start = min(float(right[1][0]), float(left[1][0]))
    while True:
        ahead, behind = _hull(start, right), _hull(start, left)
        g, a = (float(part[1]) if part.size > 1 else math.inf for part in ahead)
        k, b = (float(part[1]) if part.size > 1 else math.inf for part in behind)
        slopes = sum((y - start) / x if x < math.inf else 0.0 for x, y in ((g, a), (k, b)))
        middle = 1.0 - start + slopes
        if middle >= 0.0:
            return ahead, behind, middle
        chord = ((k + b) * g + a * k) / (g * (1.0 + k) + k)
        if upper and not chord < start:  # a rounding error below zero: more mass is the safe side
            return ahead, behind, 0.0
        nudged = start + middle / (1.0 + 1.0 / g + 1.0 / k) * (1.0 + 1e-6)
        start = chord if chord < start else min(nudged, math.nextafter(start, 0.0))


def _hull(start: float, points: _Vertices) -> _Vertices:
    """Lower convex hull from (0, start) on; it ends with slope 0."""
    expm1_eps = np.append(0.0, points[0][1:])
    value = np.append(start, points[1][1:])
    from ..numerics import kernels

    kept = np.empty(expm1_eps.size, np.int64)
    index = kept[: kernels.lower_hull(expm1_eps, value, kept)]
    return expm1_eps[index], value[index]


def _kinks(expm1_eps: Array, value: Array, upper: bool) -> tuple[Array, Array]:
    """Positions and Q-masses of the kinks after the first vertex, rounded to the safe side."""
    slopes = np.append(np.diff(value) / np.diff(expm1_eps), 0.0)
    rounding = 8.0 * ROUNDOFF * (np.abs(slopes[1:]) + np.abs(slopes[:-1]))
    rise = np.diff(slopes)
    mass = np.maximum(0.0, rise + rounding if upper else rise - rounding)
    return expm1_eps[1:], mass


LARGEST_QUESTION = 1e300  # the largest growth that a profile is asked for


class ProfilePair(Pair):
    """A pair known by its privacy profile H_s(P||Q), s = 1 + growth >= 1, and by that of (Q, P).

    A kind of such a pair is a frozen dataclass of named numbers, arrays and other pairs that says `profile`, `max_loss`
    and `scale`; everything else has a default. Atoms are made here.
    """

    @property
    def most_points(self) -> int:
        """At how many growths the profile may be asked for one law."""
        return MAX_POINTS

    side: ClassVar[Side | None] = None  # the only one that its profile is certified on
    loosened: ClassVar[bool] = False  # whether values cost so much that some are worth a look before

    @property
    def pointwise(self) -> bool:
        """Whether one value of the profile is as sharp as a law of many.

        It is not near the largest loss if the profile is a sum of rounded masses.
        """
        return True

    @abstractmethod
    def profile(self, expm1_eps: Array, rtol: float, truncated_mass: float) -> Bounds:
        """Bounds (arrays) at growths, rounding included; of relative width rtol, or of width missed, is enough."""

    def near(self, expm1_eps: float) -> ProfilePair:
        """The same pair, to be asked next to that growth for single values: its laws may be made for them."""
        return self

    @property
    def top_mass(self) -> float:
        """A lower bound on the P-mass at exactly the largest loss."""
        return 0.0

    @property
    def reverse(self) -> ProfilePair | None:
        """The pair of (Q, P), where its profile differs."""
        return None

    @property
    def halves(self) -> tuple[ProfilePair, ProfilePair] | None:
        """A pair that is dominated and one that dominates, where the profile's two ends are theirs.

        They are known better than they agree. So each side's law is made of its own half: the valleys of the lower one
        would drown in what is between them.
        """
        return None

    def log_tail(self, expm1_eps: Array) -> Array | None:
        """Upper bounds on the logarithm of the profile, for where it underflows; None where there are none."""
        return None

    @property
    def outline(self) -> ProfilePair:
        """A pair of about this shape that is cheap to ask: it says where points belong, and certifies nothing."""
        return self

    @property
    def symmetric(self) -> bool:
        return self.reverse is None

    def atoms(self, sides: Sequence[Side], resolution: Resolution) -> list[Atoms]:
        if self.scale == 0.0:
            return [Atoms.none() for _ in sides]
        if self.halves is None:
            known = self._both_orders(resolution)
            found = [profile_atoms(*known, side) for side in sides]
        else:
            below, above = self.halves
            found = [
                profile_atoms(*above._both_orders(resolution), side)
                if side is Side.UPPER
                else profile_atoms(*self._across(*below._both_orders(resolution)), side)
                for side in sides
            ]
        # An atom at the largest loss is used as a slope there; where that loss is rounded, it lies lower.
        loss_error = self.max_loss.upper - self.max_loss.lower if self.top_mass > 0.0 else 0.0
        return [replace(atoms, loss_error=atoms.loss_error + loss_error) for atoms in found]

    def _both_orders(self, resolution: Resolution) -> tuple[ProfilePoints, ProfilePoints]:
        """The points of this pair and of the reversed one; the same object for a symmetric one."""
        forward = self._points(resolution)
        return forward, forward if self.reverse is None else self.reverse._points(resolution)

    def _across(self, forward: ProfilePoints, backward: ProfilePoints) -> tuple[ProfilePoints, ProfilePoints]:
        """The first points of the lower half, high enough for lines across loss 0: there its orders may be two laws."""

        def raised(pair: ProfilePair, known: ProfilePoints) -> ProfilePoints:
            upper = known.upper.copy()
            upper[1] = max(upper[1], pair.profile(known.expm1_eps[1:2], 1e-6, 0.0).upper[0])
            return replace(known, upper=upper)

        first = raised(self, forward)
        return first, first if self.reverse is None else raised(self.reverse, backward)

    def _points(self, resolution: Resolution) -> ProfilePoints:
        width, centre = resolution.points
        truncated_mass, tilt = resolution.truncated_mass, resolution.tilt
        # Errors of values count about as much as points' distance. Under the tilt t cells add (t^2 + t) width^2 / 8 to
        # log M, and relative errors themselves times 1 - 1/M, where log M is about (t^2 + t) scale^2 / 2.
        grown = max(1.0, 0.5 * tilt * (tilt + 1.0) * self.scale**2)
        rtol = min(1e-3, max(1e-7, 0.2 * (width / self.scale) ** 2 * grown))

        def looser(times: float) -> Profile:
            return partial(self.profile, rtol=min(times * rtol, max(rtol, ROUGH)), truncated_mass=truncated_mass)

        fine, rough = looser(1.0), partial(self.outline.profile, rtol=max(rtol, ROUGH), truncated_mass=truncated_mass)
        return points(
            fine, width=width, truncated_mass=truncated_mass, scale=self.scale, max_loss=self.max_loss.upper,
            infinity=self.infinity_mass, top_mass=self.top_mass, centre=centre, tilt=tilt, most=self.most_points,
            rough=rough, looser=looser if self.loosened and centre is not None else None,
        )  # fmt: skip

    def losses_at(self, *scales: float) -> Array:
        """Growths at so many scales, inside of the range of losses."""
        most = min(0.8 * float(self.max_loss.upper), 100.0)
        return np.expm1(np.minimum(np.array(scales) * self.scale, most))

    @property
    def as_profile(self) -> ProfilePair:
        return self

    def sampled(self, cohort: Cohort) -> ProfilePair:
        cohort.require_all_present(self)
        return self.amplified(cohort.rate)

    def amplified(self, rate: float) -> ProfilePair:
        """For s >= 1, H_s(rP + (1-r)Q || Q) = r H_{1 + (s-1)/r}(P || Q); both halves in one pair."""
        if self.reverse is not None:
            raise TypeError(f"the pair must be symmetric to be amplified, got {self!r}")
        return AmplifiedPair(self, rate)


@dataclass(frozen=True)
class HiddenOrder(ProfilePair):
    """One order of a pair (P_1, P_0) on a hidden sample: P = (1-q) P_0 + q P_1 against P_0, or backwards.

    ahead : (P_1, P_0). back : (P_0, P_1), where its profile differs. With h the profile of `ahead`, and of `back`,
    and g = s - 1: H_s(P||P_0) = q h(g/q), and H_s(P_0||P) = c h(g/c), c = q - g (1-q), 0 from c = 0 on.
    """

    ahead: ProfilePair
    rate: float
    back: ProfilePair | None = None
    backwards: bool = False

    @property
    def _inner(self) -> ProfilePair:
        return (self.back or self.ahead) if self.backwards else self.ahead

    def profile(self, expm1_eps: Array, rtol: float, truncated_mass: float) -> Bounds:
        rest = expm1_eps * (1.0 - self.rate) if self.backwards else np.zeros(expm1_eps.shape)
        shares = [self.rate - rest + sign * 4e-16 * (self.rate + rest) for sign in (-1.0, 1.0)]
        # The growth is rounded: asked a little lower for the upper side, a little higher for the lower.
        near = (1.0 + 1e-15, 1.0 - 1e-15)
        with np.errstate(over="ignore"):
            asked = [expm1_eps / np.maximum(c, 1e-300) * move for c, move in zip(shares, near, strict=True)]
        both = np.minimum(np.concatenate(asked), LARGEST_QUESTION)
        found = self._inner.profile(both, rtol, truncated_mass / self.rate)
        lower, upper = found.lower[: expm1_eps.size], found.upper[expm1_eps.size :]
        # Beyond the largest growth that is asked for there is what is at infinity.
        lower = np.where(asked[0] > LARGEST_QUESTION, self._inner.infinity_mass, lower)
        ends = [
            np.where(c > 0.0, c * value * move, 0.0)
            for c, value, move in zip(shares, (lower, upper), near[::-1], strict=True)
        ]
        return Bounds(ends[0], np.minimum(ends[1], 1.0))

    @property
    def max_loss(self) -> Bounds:
        inner = self._inner
        if not self.backwards or self.rate == 1.0:
            return amplified_losses(inner.max_loss, inner.scale, self.rate)[0]
        low, high = (-math.log1p(self.rate * math.expm1(-end)) for end in inner.max_loss)
        return Bounds(low * (1.0 - 4e-15), high * (1.0 + 4e-15))

    @property
    def scale(self) -> float:
        known = amplified_losses(self._inner.max_loss, self._inner.scale, self.rate)[1]
        return min(known, float(self.max_loss.upper))

    @property
    def most_points(self) -> int:
        return self.ahead.most_points

    @property
    def reverse(self) -> ProfilePair | None:
        return replace(self, backwards=not self.backwards)


@dataclass(frozen=True, eq=False)
class AmplifiedPair(HiddenOrder):
    """The general amplification of a symmetric pair: one order on a hidden sample, and its mirror image."""

    reverse = None

    @property
    def infinity_mass(self) -> float:
        return self.rate * self.ahead.infinity_mass * (1.0 - 4e-16)

    @property
    def top_mass(self) -> float:
        """An atom at the largest loss keeps its Q-mass; its P-mass is r p + (1 - r) p e^-loss."""
        kept = self.rate + (1.0 - self.rate) * math.exp(-self.ahead.max_loss.upper)
        return self.ahead.top_mass * kept * (1.0 - 2e-15)

    @property
    def pointwise(self) -> bool:
        return self.ahead.pointwise

    def log_tail(self, expm1_eps: Array) -> Array | None:
        tail = self.ahead.log_tail(expm1_eps / self.rate * (1.0 - 4e-16))
        return None if tail is None else tail + math.log(self.rate) + 1e-13


class UpperPair(ProfilePair):
    """A pair whose profile is known from above only: how far above, an attack tells, not this pair.

    A kind says `upper`, `max_loss` and `scale`. What is called its lower side is the same polygon, so that the width of
    an answer measures lattice and windows, and nothing else.
    """

    @property
    def most_points(self) -> int:
        return SLOT_POINTS

    encloses = False  # another resolution is another polygon
    #: Whether points have equal distances, for profiles that are cheap and losses that are skewed.
    even: ClassVar[bool] = False

    @abstractmethod
    def upper(self, expm1_eps: Array, truncated_mass: float) -> Array:
        """Upper bounds on H_s at s = 1 + growth; `truncated_mass` is small enough an error."""

    def profile(self, expm1_eps: Array, rtol: float, truncated_mass: float) -> Bounds:
        upper = self.upper(expm1_eps, truncated_mass)
        return Bounds(upper, upper)

    def _points(self, resolution: Resolution) -> ProfilePoints:
        """As many points as there may be serve finer lattices, too: what they miss is little beside delta."""
        place, missed = (resolution.points[1], resolution.tilt), resolution.truncated_mass
        kept: tuple[object, float, ProfilePoints] | None = self.__dict__.get("_kept")
        if kept is not None and kept[0] == place and 1e-3 * kept[1] <= missed <= 1e3 * kept[1]:
            return kept[2]
        found = super()._points(replace(resolution, truncated_mass=0.1 * missed))
        if found.expm1_eps.size > self.most_points:
            self.__dict__["_kept"] = place, missed, found
        return found

    def atoms(self, sides: Sequence[Side], resolution: Resolution) -> list[Atoms]:
        if self.even and resolution.point_width > 0.0:
            resolution = replace(resolution, step=resolution.points[0], point_width=0.0)
        [above] = super().atoms([Side.UPPER], resolution)
        below = completed(replace(above, mass=above.mass * SAME, infinity_mass=0.0, total=None), Side.LOWER)
        return [above if side is Side.UPPER else below for side in sides]


@dataclass(frozen=True, eq=False)
class Several(UpperPair):
    """Several proven pairs of one supremum: an answer may be the least of theirs.

    Let h be the largest hockey-stick divergence over a class of datasets (and randomizers) that is closed under
    exchanging the two neighbours, so h(s) = 1 - s + s h(1/s). As a supremum of convex functions it is convex. If every
    one of several functions lies above h, so does their minimum, and so does the largest convex function below that
    minimum, taken over s < 1 and s > 1 jointly. This hull is a profile, hence a dominating pair that composes
    (docs/theory.md, section 11). It is what this pair is where one pair is wanted.
    """

    pairs: tuple[Pair, ...]

    @cached_property
    def _known(self) -> list[ProfilePair]:
        return [known for pair in self.pairs if (known := pair.as_profile) is not None]

    def upper(self, expm1_eps: Array, truncated_mass: float) -> Array:
        found = [pair.profile(expm1_eps, 1e-6, truncated_mass).upper for pair in self._known]
        return np.asarray(np.min(found, axis=0))

    @property
    def max_loss(self) -> Bounds:
        return min((pair.max_loss for pair in self.pairs), key=lambda bounds: float(bounds.upper))

    @property
    def scale(self) -> float:
        return min(pair.scale for pair in self.pairs)

    @property
    def most_points(self) -> int:
        return min(pair.most_points for pair in self._known)

    def log_tail(self, expm1_eps: Array) -> Array | None:
        tails = [tail for pair in self._known if (tail := pair.log_tail(expm1_eps)) is not None]
        return np.asarray(np.min(tails, axis=0)) if tails else None


def amplified_loss(loss: float, rate: float) -> float:
    """log(1 + rate (e^loss - 1)), rounded upwards."""
    if loss == math.inf or rate == 1.0:
        return loss
    if loss > 700.0:  # log(rate e^loss + 1 - rate) = loss + log(rate + (1 - rate) e^-loss)
        return (loss + math.log(rate)) * (1.0 + 4e-16) if rate > 1e-300 else loss
    return math.log1p(rate * math.expm1(loss)) * (1.0 + 2e-15)


def amplified_losses(largest: Bounds, scale: float, rate: float) -> tuple[Bounds, float]:
    """The largest loss and the scale of losses, after amplification."""
    low, high = (float(end) for end in largest)
    found = Bounds(amplified_loss(low, rate) * (1.0 - 4e-15), amplified_loss(high, rate))
    return found, min(amplified_loss(min(scale, 700.0), rate), float(found.upper))


#: At losses of 0.6^k times the largest one, largest last: where chords of many profiles are joined.
CHORDS = np.append(0.0, 0.6 ** np.arange(20.0, -1.0, -1.0))


def largest(
    expm1_eps: Array, count: int, ask: Callable[[int, Array], Bounds], places: Array, ends: Sequence[Array],
    look: Callable[[int, Array], Bounds] | None = None,
) -> Bounds:  # fmt: skip
    """The largest of many convex profiles; those whose chord is below another one are not asked.

    ask : (which, growths) -> bounds. ends : of every profile upper bounds at `places`, the last of which is the growth
    of the largest loss, where nothing is left; empty to ask them all. look : as ask, rough and cheap; it comes before.
    """
    lower, upper = np.zeros(expm1_eps.size), np.zeros(expm1_eps.size)
    chords = []
    if len(ends):
        ahead = np.append(places[:-1], places[-1] * (1.0 + 1e-12))  # a little beyond, where certainly nothing is left
        chords = [np.interp(expm1_eps, ahead, np.append(end, 0.0)) * (1.0 + 1e-12) for end in ends]
    known = np.zeros(expm1_eps.size)
    for k, chord in enumerate(chords):
        if look is not None and np.any(here := chord > known):
            found = look(k, expm1_eps[here])
            known[here] = np.maximum(known[here], found.lower)
            chord[here] = np.minimum(chord[here], found.upper)
    for k in sorted(range(count), key=lambda k: -chords[k].max() if chords else 0.0):
        here = chords[k] > upper if chords else np.ones(expm1_eps.size, bool)
        if np.any(here):
            found = ask(k, expm1_eps[here])
            lower[here] = np.maximum(lower[here], found.lower)
            upper[here] = np.maximum(upper[here], found.upper)
    return Bounds(lower, upper)


def worst(pairs: Sequence[ProfilePair]) -> ProfilePair:
    """The pair that dominates all the given ones."""
    return pairs[0] if len(pairs) == 1 else WorstPair(tuple(pairs))


@dataclass(frozen=True, eq=False)
class WorstPair(ProfilePair):
    """The pair whose profile is the largest of the given ones, in either order: it dominates them all.

    A maximum of convex functions is convex, so it is a profile. Exact for one round; over rounds an upper bound.
    """

    pairs: tuple[ProfilePair, ...]

    def profile(self, expm1_eps: Array, rtol: float, truncated_mass: float) -> Bounds:
        def ask(k: int, asked: Array, rtol: float = rtol) -> Bounds:
            return self.pairs[k].profile(asked, rtol, truncated_mass)

        top = float(self.max_loss.upper)
        many = len(self.pairs) > FEW_PROFILES and top < 700.0
        places = np.expm1(top * CHORDS) if many else CHORDS
        look = partial(ask, rtol=LOOK) if many and rtol < LOOK else None
        return largest(expm1_eps, len(self.pairs), ask, places, self._chords if many else (), look=look)

    @cached_property
    def _chords(self) -> list[Array]:
        expm1_eps = np.expm1(float(self.max_loss.upper) * CHORDS[:-1])
        return [pair.profile(expm1_eps, 1e-2, 0.0).upper for pair in self.pairs]

    @cached_property
    def max_loss(self) -> Bounds:  # type: ignore[override]
        return Bounds(*(max(ends) for ends in zip(*(p.max_loss for p in self.pairs), strict=True)))

    @cached_property
    def scale(self) -> float:  # type: ignore[override]
        return max(pair.scale for pair in self.pairs)

    @property
    def infinity_mass(self) -> float:
        return max(pair.infinity_mass for pair in self.pairs)

    @property
    def most_points(self) -> int:
        return min(pair.most_points for pair in self.pairs)

    def log_tail(self, expm1_eps: Array) -> Array | None:
        tails = [tail for pair in self.pairs if (tail := pair.log_tail(expm1_eps)) is not None]
        return np.max(tails, axis=0) if len(tails) == len(self.pairs) else None  # type: ignore[no-any-return]

    def sampled(self, cohort: Cohort) -> ProfilePair:
        return WorstPair(tuple(pair.sampled(cohort) for pair in self.pairs))


@dataclass(frozen=True, eq=False)
class BothOrders(WorstPair):
    """Two neighbouring datasets in either order, where the orders' profiles differ: their pairs, forward and backward.

    In a ledger the order is the same in every round. So a composition of many rounds is asked once in each order, and
    the larger answer holds (`composition.composition`). Wherever one pair is wanted, it is the worse of the two.
    """
