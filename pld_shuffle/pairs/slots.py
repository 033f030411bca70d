"""One formula: what n shuffled reports say about the target, a sum of n independent terms.

The target's report has law R_0 or R_1. Every place in the shuffled view, a slot, has law W. With D_s = R_0 - s R_1 the
hockey-stick divergence at s = e^eps is

    H_s = E (1/n) (sum over slots i of L_i)_+,   L_i = (D_s/W)(z_i),  z_i ~ W independent,                      (*)

plus the mass of R_0 on reports that W never makes (docs/theory.md, section 11). A `SlotLaw` is this law: masses of
groups of reports, first under R_0, second under R_1, others under W. If W is only known to be at least a sub-law (the
privacy blanket, labels), the rest of a slot says nothing: L = 0 there. Analyses and attacks differ in W only. Sampling
does not leave the formula: in a hidden cohort R_b becomes q R_b + (1-q) W, and "absent" is one more report.

`slot_profile` evaluates (*) by a contour integral at the saddle point, so that it is relatively accurate at every
delta, at a cost that does not grow with n (docs/theory.md, section 8). Few views are listed instead (`listed`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from ..numerics.integer_laws import chernoff_window
from ..numerics.sides import ROUNDOFF, Array, Bounds, Index, Side
from ..numerics.tuning import MOST_VIEWS, SLOT_POINTS
from ..randomizers.base import LocalRandomizer
from .discrete import EitherOrder, Losses, OrderedPair
from .pair import ALL_USERS, Atoms, Cohort, Resolution
from .profile import ProfilePair

TAIL = 1e-18  # of unbounded noise, beyond which a report counts as revealed, where no other is asked for
MAX_GROUPS = 16  # of reports whose views are listed
FEW_FACTORS = 20  # of a factorial, below which it is multiplied out
LEAST_MASS, FEW_VIEWS = 1e-40, 30_000  # of views that are listed for values of the profile
LARGEST_ERROR = 1e-6  # of masses of views that are listed, relative
FULL = 2.0**-50  # rounding of a sum of masses, per group


@dataclass(frozen=True, eq=False)
class SlotLaw:
    """n slots; masses of groups of reports under R_0, R_1 and W, arrays of one shape (groups,).

    whole : W is a law of its own, so the masses of `others` sum to 1. error : of the masses, relative.
    """

    n: int
    first: Array
    second: Array
    others: Array
    whole: bool
    error: float

    @classmethod
    def of(cls, n: int, masses: Array, error: float, *, whole: bool) -> SlotLaw:
        """From rows (first, second, others)."""
        first, second, others = masses
        return cls(n, first, second, others, whole, error)

    def at(self, side: Side, tail: float) -> SlotLaw:
        """The law on a side: itself, being known exactly."""
        return self

    def profile(self, expm1_eps: Array, rtol: float) -> Bounds:
        """Bounds on H_s at s = 1 + growth >= 1."""
        views = _few_views(self)
        listed = Bounds(np.zeros(expm1_eps.size), np.ones(expm1_eps.size))
        if views is not None:
            listed = views.profile(expm1_eps, rtol, 0.0)
            near = (listed.lower >= 1e12 * views.truncated_mass) | (listed.upper == 0.0)
            if views.truncated_mass < LEAST_MASS or np.all(near):
                return listed
        found = slot_profile(
            self.first, self.second, self.others, self.n, expm1_eps, rtol=rtol, mass_error=self.error,
            law=self.whole,
        )  # fmt: skip
        return Bounds(np.maximum(found.lower, listed.lower), np.minimum(found.upper, listed.upper))

    def log_tail(self, expm1_eps: Array) -> Array:
        """Upper bounds on log H_s at s = 1 + growth > 1; loses a factor of about the deviations that s is out."""
        held = self.others > 0.0
        if np.any(self.first[~held] > 0.0):
            return np.zeros(expm1_eps.size)
        first, second, others = self.first[held], self.second[held], self.others[held]
        value = (first - second - np.outer(expm1_eps, second)) / others
        size = (first + second + np.outer(expm1_eps, second)) / others
        value_error = (3.0 * self.error + 8.0 * ROUNDOFF) * size
        return log_positive_part(self.n, others, value, value_error, self.error)

    @property
    def max_loss(self) -> Bounds:
        """The largest loss; inf where reports are possible with R_0 only. Others' law does not matter for it."""
        loss = self._largest
        if not 0.0 < loss < math.inf:
            return Bounds(loss, loss)
        error = 2.1 * self.error  # of the logarithm of a ratio of two masses
        return Bounds(max(0.0, loss * (1.0 - 1e-15) - error), loss * (1.0 + 1e-15) + error)

    @property
    def scale(self) -> float:
        """Rough standard deviation of the loss, by the chi-square divergence, as if the loss were normal."""
        covered = self.others > 0.0
        square = float(np.sum((self.first - self.second)[covered] ** 2 / self.others[covered]))
        bare = float(np.sum(np.maximum(self.first - self.second, 0.0)[~covered]))
        return min(math.sqrt(math.log1p(square / self.n)) + bare, self._largest)

    @property
    def _largest(self) -> float:
        """The largest loss, not rounded to a side."""
        shown = self.first > 0.0
        if np.any(self.second[shown] == 0.0):
            return math.inf
        return float(np.log(np.max(self.first[shown] / self.second[shown], initial=1.0)))

    @property
    def infinity_mass(self) -> float:
        """A lower bound on the mass at infinite loss: no report of the view is possible with R_1."""
        never = self.second == 0.0
        bare = float(np.sum(self.first[never & (self.others == 0.0)]))
        covered = float(np.sum(self.first[never & (self.others > 0.0)]))
        others = float(np.sum(self.others[never]))
        if not self.whole:
            others += max(0.0, 1.0 - float(np.sum(self.others)))
        share = min(1.0, others * (1.0 - 2.0 * self.error - 1e-15)) ** (self.n - 1)
        return (bare + covered * share) * (1.0 - 2.0 * self.error - 1e-15 * self.second.size)

    @property
    def top_mass(self) -> float:
        """A lower bound on the P-mass at the largest loss."""
        return 0.0

    def views(self, truncated_mass: float, most: float) -> EitherOrder | None:
        """All views but for so much mass, if there are at most so many of them; one report may be the target's."""
        covered, rest = self.others > 0.0, 0.0 if self.whole else rest_of(self.others)
        # What says nothing is known as well as what it leaves of 1.
        error = self.error if self.whole else self.error / max(rest, 1e-300) + 2.0 * ROUNDOFF
        if not (0 < covered.sum() < MAX_GROUPS and self.n * error <= LARGEST_ERROR):
            return None
        masses = np.array([self.first, self.second, self.others])
        seen, bare = masses[:, covered], masses[:2, ~covered]
        if rest > 0.0:
            seen = np.append(seen, [[0.0], [0.0], [rest]], axis=1)
        tail = 0.5 * truncated_mass / seen.shape[1]
        ends = [chernoff_window(self.n - 1, min(1.0, share), tail) for share in seen[2].tolist()]
        windows = [range(low, high + 2) for low, high in ends]
        many = math.prod(map(len, windows)) / max(map(len, windows)) > most
        return None if many else listed(self.n, seen, bare, windows, truncated_mass, error, self.error)

    @property
    def complete(self) -> bool:
        """Whether R_0 and R_1 have all their reports here; a profile on s >= 1 needs none that do not speak for R_0."""
        gaps = [abs(math.fsum([-1.0, *law.tolist()])) for law in (self.first, self.second)]
        return max(gaps) <= self.error + FULL * self.first.size

    def reversed(self) -> SlotLaw:
        """R_0 and R_1 exchanged."""
        return replace(self, first=self.second, second=self.first)

    def ordered_pair(self) -> SlotPair:
        """The pair of R_0 against R_1: that of two datasets, where W is the law of all others."""
        return SlotPair(self, ordered=True)

    def sampled(self, cohort: Cohort) -> SlotLaw:
        """The law of a hidden cohort of n."""
        if cohort.everybody:
            return self
        masses, error = np.array([self.first, self.second, self.others]), self.error
        if not self.whole:  # what is certainly below W is a blanket, too, and what it leaves is known exactly
            masses[2] *= 1.0 - 2.0 * error - 2.0 * ROUNDOFF
            error = 3.0 * error + 2.0 * ROUNDOFF
        rest = 0.0 if self.whole else rest_of(masses[2])
        if rest > 0.0:  # a group of its own for what the target never shows
            masses = np.append(masses, [[0.0], [0.0], [rest]], axis=1)
        first, second, others = cohort.with_absence(masses)
        error += 2.0 * ROUNDOFF
        if cohort.rate < 1.0:
            first, second = (cohort.rate * law + (1.0 - cohort.rate) * others for law in (first, second))
            error += 4.0 * ROUNDOFF
        return SlotLaw(self.n, first, second, others, True, error)


@lru_cache(maxsize=64)  # a long log has thousands of laws
def _few_views(law: SlotLaw) -> EitherOrder | None:
    """All views, if they are few."""
    return law.views(1e-300, FEW_VIEWS) or law.views(LEAST_MASS, FEW_VIEWS)


@dataclass(frozen=True)
class NoiseLaw:
    """The slot law of the blanket of noise on a continuous value, by finite laws below and above; or of an attack.

    attack : the target's two inputs, and that of everybody else. Then all laws are on the lower side, reports beyond
    the target's tail being merged.
    """

    n: int
    randomizer: LocalRandomizer
    cohort: Cohort = ALL_USERS
    attack: tuple[float, float, float] | None = None

    def at(self, side: Side, tail: float) -> SlotLaw:
        """The law on a side, where the target's tail of that mass may be given away."""
        return _noise_law(self, Side.LOWER if self.attack else side, tail)

    def reversed(self) -> NoiseLaw:
        """The blanket's is itself: the noise is symmetric."""
        if self.attack is None:
            return self
        first, second, others = self.attack
        return replace(self, attack=(second, first, others))

    def sampled(self, cohort: Cohort) -> NoiseLaw:
        """The law of a hidden cohort of n."""
        return replace(self, cohort=cohort)


@lru_cache(maxsize=64)
def _noise_law(law: NoiseLaw, side: Side, tail: float) -> SlotLaw:
    whole = law.attack is not None
    if law.attack is None:
        [masses] = law.randomizer.slot_laws(side, tail)
    else:
        masses = law.randomizer.attack_law(*law.attack, truncated_mass=tail)
    return SlotLaw.of(law.n, masses, law.randomizer.mass_error, whole=whole).sampled(law.cohort)


@dataclass(frozen=True, eq=False)
class SlotPair(ProfilePair):
    """The pair of a slot law, known on either side (`SlotLaw`, `NoiseLaw`, `few_users.FewLaws`).

    largest : the largest loss, where it is known better than from the masses. ordered : the pair is for R_0 against R_1
    alone, otherwise it must have the same profile in both orders. half : the side whose law stands for both.
    """

    law: Any
    largest: Bounds | None = None
    ordered: bool = False
    half: Side | None = None

    most_points = SLOT_POINTS

    def profile(self, expm1_eps: Array, rtol: float, truncated_mass: float) -> Bounds:
        tail = min(0.05, 0.25 * truncated_mass)
        lower, upper = (self.law.at(self.half or side, tail) for side in Side)
        found = upper.profile(expm1_eps, rtol)
        return found if lower is upper else Bounds(lower.profile(expm1_eps, rtol).lower, found.upper)

    def _usual(self, side: Side) -> SlotLaw:
        found: SlotLaw = self.law.at(self.half or side, TAIL)
        return found

    @property
    def max_loss(self) -> Bounds:
        if self.largest is not None:
            return self.largest
        law = self._usual(Side.UPPER)
        orders = [law.max_loss, law.reversed().max_loss] if self.ordered else [law.max_loss]
        return max(orders, key=lambda bounds: float(bounds.upper))

    @property
    def scale(self) -> float:
        return self._usual(Side.UPPER).scale

    @property
    def infinity_mass(self) -> float:
        return self._usual(Side.LOWER).infinity_mass

    @property
    def top_mass(self) -> float:
        return self._usual(Side.UPPER).top_mass

    @cached_property
    def reverse(self) -> SlotPair | None:  # type: ignore[override]
        if not self.ordered:
            return None
        return replace(self, law=self.law.reversed(), largest=self.max_loss, ordered=False)

    @cached_property
    def halves(self) -> tuple[ProfilePair, ProfilePair] | None:  # type: ignore[override]
        if self.half is not None or self._usual(Side.LOWER) is self._usual(Side.UPPER):
            return None
        below, above = (replace(self, half=side, largest=self.max_loss) for side in Side)
        return below, above

    def log_tail(self, expm1_eps: Array) -> Array:
        return self._usual(Side.UPPER).log_tail(expm1_eps)

    def atoms(self, sides: Sequence[Side], resolution: Resolution) -> list[Atoms]:
        """Where few views are likely they are cheaper than points of the profile, and exact."""
        views: EitherOrder | None = None
        if type(self.law) is SlotLaw and self.law.complete:
            views = self.law.views(0.25 * resolution.truncated_mass, MOST_VIEWS)
        if views is None or views.orders[0].infinity_mass == 0.0 < self.infinity_mass:  # of views too rare to be listed
            return super().atoms(sides, resolution)
        if not self.ordered:
            return views.atoms(sides, resolution)
        return OrderedPair(views.orders[0], views.truncated_mass, views.mass_error).atoms(sides, resolution)

    def sampled(self, cohort: Cohort) -> SlotPair:
        return SlotPair(self.law.sampled(cohort), ordered=self.ordered)


def listed(
    n: int, masses: Array, bare: Array, windows: Sequence[range], truncated_mass: float, error: float, told_error: float
) -> EitherOrder:
    """All views in windows of the counts, which miss so much, as a pair of their masses; R_0 against R_1.

    masses : rows R_0, R_1 and W of reports. bare : rows R_0 and R_1 of those that W never makes. error : of W's masses,
    relative; told_error : of all masses of reports that the target makes. A view with counts c has mass
    n! prod W_j^c_j/c_j! under W; under R_b that times the mean of R_b/W over its reports.
    """
    (first, second, others), groups = masses, masses.shape[1]
    order = sorted(range(groups), key=lambda j: len(windows[j]))  # the widest window is not walked
    some = [grid.ravel() for grid in np.meshgrid(*(np.array(windows[j]) for j in order[:-1]), indexing="ij")]
    last: Index = n - np.sum([np.zeros_like(some[0]) if some else [0], *some], axis=0, dtype=np.int64)
    possible = (last >= windows[order[-1]].start) & (last < windows[order[-1]].stop)
    counts = np.empty((groups, int(possible.sum())), np.int64)
    counts[order] = [part[possible] for part in (*some, last)]
    counts = counts[:, first @ counts > 0.0]
    mass, mass_error = _multinomial(n, others, counts)
    ahead, behind = ((law / others) @ counts / n for law in (first, second))
    told = (first > 0.0) | (second > 0.0)
    with np.errstate(divide="ignore"):
        apart = float(np.max(np.abs(first - second)[told] / np.minimum(first, second)[told], initial=0.0))
        if apart <= 1.0:  # small losses keep their precision
            loss = np.log1p(((first - second) / others) @ counts / n / behind)
        else:
            loss = np.log(ahead / behind)
        loss = np.append(loss, np.log(bare[0] / bare[1])[bare[0] > 0.0])
    weight = np.append(mass * ahead, bare[0][bare[0] > 0.0])
    finite = loss < math.inf
    largest = float(np.abs(loss[finite]).max(initial=0.0))
    loss_error = 4.2 * told_error + ROUNDOFF * ((2.0 * groups + 16.0) * min(apart, 1.0) + 16.0 * largest)
    mass_error += 1.01 * (n * error + 4.0 * told_error) + loss_error  # n masses and a ratio
    left_out, top = 1e-300 * mass.size, largest
    if not all(len(window) > n for window in windows):  # views that are left out may say more than any that is listed
        left_out += truncated_mass
        with np.errstate(divide="ignore"):
            either = np.log(np.hstack((masses[:2], bare))[:, np.append(told, np.any(bare > 0.0, axis=0))])
        top = float(np.abs(either[0] - either[1]).max())
    rising = np.argsort(loss[finite], kind="stable")
    infinity_mass = float(weight[~finite].sum())
    losses = Losses(weight[finite][rising], loss[finite][rising], infinity_mass, loss_error)
    return EitherOrder((losses,), left_out, top + loss_error if infinity_mass == 0.0 else math.inf, mass_error)


def _multinomial(n: int, others: Array, counts: Index) -> tuple[Array, float]:
    """(n! prod W_j^c_j/c_j! for every column c of counts, a bound on their relative rounding).

    log c! = c log c - c + rest(c), and sum c log(c/m) = sum (c log(c/m) + m - c) - n (sum W - 1), m = n W, whose terms
    are small where c is near m, so that nothing of size n log n is rounded.
    """
    mean = n * others[:, None]
    off = counts - mean
    rest = np.array([_rest(row) for row in counts]) if counts.size else np.zeros(counts.shape)
    bulk = counts * np.log1p(off / mean, out=np.zeros(counts.shape), where=counts > 0)
    exponent = _rest(np.array([n])) + n * math.fsum([-1.0, *others]) - np.sum(bulk - off + rest, axis=0)
    size = 200.0 + float(np.max(np.sum(np.abs(bulk) + np.abs(off), axis=0), initial=0.0))
    return np.exp(exponent), ROUNDOFF * (others.size + 8.0) * size


def _rest(counts: Index) -> Array:
    """log c! - c log c + c, to 200 roundings: by Stirling's series, whose error is below the first term left out.

    Every number between the least and the largest is computed once.
    """
    least = int(counts.min())
    every = np.arange(least, int(counts.max()) + 1)
    c = np.maximum(every, FEW_FACTORS)
    series = 0.5 * np.log(2.0 * math.pi * c)
    for k, factor in enumerate((1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)):
        series += factor * (1.0 / c) ** (2 * k + 1)
    first = [math.log(math.factorial(k)) - k * math.log(max(k, 1)) + k for k in range(FEW_FACTORS)]
    known = np.where(every < FEW_FACTORS, np.array(first)[np.minimum(every, FEW_FACTORS - 1)], series)
    return np.asarray(known[counts - least])


def slot_profile(
    first: Any, second: Any, blanket: Any, n: int, expm1_eps: Any, *, rtol: float = 1e-6, mass_error: float = 0.0,
    law: bool = False,
) -> Bounds:  # fmt: skip
    """Bounds on delta(eps) of the blanket adversary; see the module.

    first, second, blanket : masses of the groups of reports under the target's two inputs and under the blanket, shape
    (groups,). n : users, the target included. expm1_eps : e^eps - 1 >= 0, finite, of any shape, that of the bounds.
    rtol : wanted relative width, above 1e-9. Not promised: where the law of the sum has atoms near 0, or rounding is
    larger (u sqrt(n) times a small factor), the bracket is wider. mass_error : bound on the relative error of every
    mass. law : whether `blanket` is a law itself, so that gamma is 1 exactly (an attack).

    >>> bounds = slot_profile([0.75, 0.25], [0.25, 0.75], [0.25, 0.25], 1, 1.0)
    >>> float(bounds.lower) <= 0.25 <= float(bounds.upper)
    True
    """
    from . import contour_kernels

    masses, points = np.array([first, second, blanket], np.float64), np.asarray(expm1_eps, np.float64)
    flat = np.ascontiguousarray(points.ravel())
    lower, upper, error = np.empty(flat.size), np.empty(flat.size), mass_error
    said = law | (masses[0] > 0.0) | (masses[1] > 0.0)  # what the target never makes says nothing
    first, second, hidden = (part[said] for part in masses)
    rest = rest_of(hidden)
    near = FULL * hidden.size
    if law or rest >= near:
        rest = 0.0 if law else rest
        contour_kernels.profile(n, first, second, hidden, rest, flat, rtol, error, lower, upper)
    else:
        # Up to rounding the blanket is everything: a smaller one is an upper bound, a larger one a lower.
        spare = np.empty(flat.size)
        contour_kernels.profile(n, first, second, hidden, 0.0, flat, rtol, error + near, lower, spare)
        smaller = hidden * (1.0 - 2.0 * near)
        contour_kernels.profile(n, first, second, smaller, rest_of(smaller), flat, rtol, error, spare, upper)
    return Bounds(lower.reshape(points.shape), upper.reshape(points.shape))


def rest_of(blanket: Array) -> float:
    """1 - gamma, correctly rounded."""
    return max(0.0, -math.fsum([-1.0, *blanket.tolist()]))


def log_positive_part(n: int, others: Array, value: Array, value_error: Array, error: float) -> Array:
    """Upper bounds on log E(S)_+/n, S a sum of n values with these masses (and else 0); shape (points, groups).

    S_+ <= e^(xS)/(e x) for every x > 0; the best x is searched for. value_error : errors of values. error : of masses,
    relative.
    """
    highest = np.maximum(value.max(axis=1), 1e-6 * np.abs(value).max(axis=1))
    low, high = np.log(1e-3 / n / highest), np.log(600.0 / highest)

    def moment(exponent: Array, mass_error: float) -> Array:
        x = np.exp(exponent)[:, None]
        rise = np.expm1(x * value)
        total = rise @ others
        if mass_error > 0.0:
            term_error = x * value_error * (1.0 + rise) + mass_error * np.abs(rise)
            total = total + 1.1 * (term_error @ others)
        with np.errstate(divide="ignore"):
            return np.asarray(n * np.log1p(np.maximum(total, -1.0)) - exponent)

    golden = 0.5 * (math.sqrt(5.0) - 1.0)
    for _ in range(25):
        one, two = high - golden * (high - low), low + golden * (high - low)
        left = moment(one, 0.0) <= moment(two, 0.0)
        low, high = np.where(left, low, one), np.where(left, two, high)
    found = moment(low, error + ROUNDOFF * (others.size + 16.0)) - 1.0 - math.log(n)
    return np.asarray(found + 16.0 * ROUNDOFF * np.abs(found) + 1e-12)
