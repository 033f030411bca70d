"""One formula: what n shuffled reports say about the target, a sum of n independent terms.

The target's report has law R_0 or R_1. Every place in the shuffled view, a slot, has law W. With D_s = R_0 - s R_1 the
hockey-stick divergence at s = e^eps is

    H_s = E (1/n) (sum over slots i of L_i)_+,   L_i = (D_s/W)(z_i),  z_i ~ W independent,                      (*)

plus the mass of R_0 on reports that W never makes (docs/theory.md, section 11). A `SlotLaw` is this law: masses of
groups of reports, first under R_0, second under R_1, others under W. If W is only known to be at least a sub-law (the
privacy blanket, labels), the rest of a slot says nothing: L = 0 there. Analyses and attacks differ in W only.

Sampling does not leave the formula:

* a hidden random cohort of n that the target belongs to with probability q: the target's slot is like any other with
  probability 1 - q. So R_b becomes q R_b + (1-q) W;
* each of n users takes part with probability q, independently, and the number of reports is visible: one more report,
  "absent", with probability 1-q for everybody. The n may themselves be a hidden cohort: dropouts.

`blanket.profile` evaluates (*), certified from both sides; `few_users` does where noise hides among few.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..numerics.rounding import ROUNDOFF
from ..numerics.sides import Bounds, Side
from . import blanket
from .cohort import Cohort
from .few_users import FewSlots
from .profile import LooseProfile, ProfilePair

Array = NDArray[np.float64]

MAX_POINTS = 6_000  # of one law; each costs a contour
WIDE = 3e-4  # relative width of a profile of few users that is looked at twice
TAIL = 1e-18  # of unbounded noise, beyond which a report counts as revealed, where no other is asked for


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

    def profile(self, growth: Array, rtol: float) -> Bounds:
        """Bounds on H_s at s = 1 + growth >= 1."""
        return blanket.profile(
            self.first, self.second, self.others, self.n, growth, rtol=rtol, mass_error=self.error,
            law=self.whole,
        )  # fmt: skip

    def few(self, side: Side, *, tailed: bool = False) -> FewSlots | None:
        """The law by sums of ratios, if there are few users and reports are those of local noise."""
        rest = 0.0 if self.whole else blanket.rest_of(self.others)
        return FewSlots.of(
            side, self.n, self.first, self.second, self.others, rest, self.error, tailed
        )

    def log_tail(self, growth: Array) -> Array:
        """Upper bounds on log H_s at s = 1 + growth > 1; loses a factor of about the deviations that s is out."""
        held = self.others > 0.0
        if np.any(self.first[~held] > 0.0):
            return np.zeros(growth.size)
        first, second, others = self.first[held], self.second[held], self.others[held]
        value = (first - second - np.outer(growth, second)) / others
        size = (first + second + np.outer(growth, second)) / others
        wrong = (3.0 * self.error + 8.0 * ROUNDOFF) * size
        return log_positive_part(self.n, others, value, wrong, self.error)

    @property
    def largest_loss(self) -> float:
        """To nearest; inf if a report is possible with R_0 only."""
        return blanket.largest_loss(self.first, self.second, self.others)

    @property
    def loss_scale(self) -> float:
        """Rough standard deviation of the loss."""
        return blanket.loss_scale(self.first, self.second, self.others, self.n)

    @property
    def infinite_mass(self) -> float:
        """A lower bound on the mass at infinite loss: no report of the view is possible with R_1."""
        never = self.second == 0.0
        bare = float(np.sum(self.first[never & (self.others == 0.0)]))
        covered = float(np.sum(self.first[never & (self.others > 0.0)]))
        others = float(np.sum(self.others[never]))
        if not self.whole:
            others += max(0.0, 1.0 - float(np.sum(self.others)))
        share = min(1.0, others * (1.0 - 2.0 * self.error - 1e-15)) ** (self.n - 1)
        return (bare + covered * share) * (1.0 - 2.0 * self.error - 1e-15 * self.second.size)

    def reversed(self) -> SlotLaw:
        """R_0 and R_1 exchanged."""
        return replace(self, first=self.second, second=self.first)

    def ordered_pair(self) -> ProfilePair:
        """The pair of R_0 against R_1: that of two datasets, where W is the law of all others."""
        return slot_pair(lambda tail: (self, self), ordered=True)

    def sampled(self, cohort: Cohort) -> SlotLaw:
        """The law of a hidden cohort of n."""
        if cohort.everybody:
            return self
        first, second, others = cohort.with_absence(np.array(self._completed()))
        error = self.error + 2.0 * ROUNDOFF
        if cohort.rate < 1.0:
            first, second = (
                cohort.rate * law + (1.0 - cohort.rate) * others for law in (first, second)
            )
            error += 4.0 * ROUNDOFF
        return SlotLaw(self.n, first, second, others, True, error)

    def _completed(self) -> tuple[Array, Array, Array]:
        """With a group of its own for the rest of W, which the target never shows."""
        rest = 0.0 if self.whole else blanket.rest_of(self.others)
        if rest == 0.0:
            return self.first, self.second, self.others
        return np.append(self.first, 0.0), np.append(self.second, 0.0), np.append(self.others, rest)


def log_positive_part(n: int, others: Array, value: Array, wrong: Array, error: float) -> Array:
    """Upper bounds on log E(S)_+/n, S a sum of n values with these masses (and else 0); shape (points, groups).

    S_+ <= e^(xS)/(e x) for every x > 0; the best x is searched for. wrong : errors of values. error : of masses,
    relative.
    """
    highest = np.maximum(value.max(axis=1), 1e-6 * np.abs(value).max(axis=1))
    low, high = np.log(1e-3 / n / highest), np.log(600.0 / highest)

    def moment(exponent: Array, doubtful: float) -> Array:
        x = np.exp(exponent)[:, None]
        rise = np.expm1(x * value)
        total = rise @ others
        if doubtful > 0.0:
            doubt = x * wrong * (1.0 + rise) + doubtful * np.abs(rise)
            total = total + 1.1 * (doubt @ others)
        with np.errstate(divide="ignore"):
            return np.asarray(n * np.log1p(np.maximum(total, -1.0)) - exponent)

    golden = 0.5 * (math.sqrt(5.0) - 1.0)
    for _ in range(25):
        one, two = high - golden * (high - low), low + golden * (high - low)
        left = moment(one, 0.0) <= moment(two, 0.0)
        low, high = np.where(left, low, one), np.where(left, two, high)
    found = moment(low, error + ROUNDOFF * (others.size + 16.0)) - 1.0 - math.log(n)
    return np.asarray(found + 16.0 * ROUNDOFF * np.abs(found) + 1e-12)


#: The law on either side of a pair of inputs, for a tail that may be cut off.
SlotLaws = Callable[[float], tuple[SlotLaw, SlotLaw]]


def slot_pair(
    laws: SlotLaws, *, largest: Bounds | None = None, ordered: bool = False
) -> ProfilePair:
    """The pair of a slot law, `laws(tail)` = (lower, upper); the same object twice where it is known exactly.

    largest : the largest loss, where it is known better than from the masses. ordered : the pair is for R_0 against R_1
    alone, otherwise it must have the same profile in both orders.
    """
    below, above = laws(TAIL)

    def profile(growth: Array, rtol: float, missed: float) -> Bounds:
        lower, upper = laws(min(0.05, 0.25 * missed))
        found = upper.profile(growth, rtol)
        if lower is upper:
            return found
        return Bounds(lower.profile(growth, rtol).lower, found.upper)

    if largest is None:
        orders = [_largest(above)] + ([_largest(above.reversed())] if ordered else [])
        largest = max(orders, key=lambda bounds: float(bounds.upper))

    def changed(change: Callable[[SlotLaw], SlotLaw]) -> SlotLaws:
        def new_laws(tail: float) -> tuple[SlotLaw, SlotLaw]:
            lower, upper = laws(tail)
            one = change(upper)
            return (one if lower is upper else change(lower)), one

        return new_laws

    halves = None
    if below is not above:
        lower_half, upper_half = (
            slot_pair(lambda tail, k=k: (laws(tail)[k],) * 2, largest=largest, ordered=ordered)  # type: ignore[misc]
            for k in range(2)
        )
        halves = lower_half, upper_half
    return LooseProfile(
        profile,
        largest,
        above.loss_scale,
        infinite_mass=below.infinite_mass,
        most_points=MAX_POINTS,
        reverse=slot_pair(changed(SlotLaw.reversed), largest=largest) if ordered else None,
        hidden=lambda cohort: slot_pair(changed(lambda law: law.sampled(cohort)), ordered=ordered),
        halves=halves,
        tail=above.log_tail,
    )


def few_users_pair(
    pair: LooseProfile, below: SlotLaw, above: SlotLaw, *, tailed: bool = False, tail: float = 0.0
) -> LooseProfile:
    """`pair` of local noise by sums of ratios, of laws on either side of its own; as it is where users are many.

    tailed : the largest ratios are far beyond most. tail : what the laws leave out; where less may be missed, the pair
    is asked.
    """
    lower, upper = (
        law.few(side, tailed=tailed) for law, side in ((below, Side.LOWER), (above, Side.UPPER))
    )
    if lower is None or upper is None:
        return pair
    reverse = pair.reverse
    if reverse is not None:
        reverse = few_users_pair(
            reverse, below.reversed(), above.reversed(), tailed=tailed, tail=tail
        )

    def half(k: int, few: FewSlots, law: SlotLaw) -> ProfilePair:
        back = None if reverse is None or reverse.halves is None else reverse.halves[k]

        def profile(growth: Array, rtol: float, missed: float) -> Bounds:
            if missed < 4.0 * tail:
                return (pair.halves or (pair, pair))[k].profile(growth, rtol, missed)
            return few.profile(growth)

        return LooseProfile(
            profile, pair.largest, pair.spread, infinite_mass=law.infinite_mass, top_mass=few.top_mass,
            most_points=MAX_POINTS, reverse=back,
        )  # fmt: skip

    def profile(growth: Array, rtol: float, missed: float) -> Bounds:
        """Where a lattice is too coarse for a point, by a contour too; that of a long tail is no better."""
        if missed < 4.0 * tail:
            return pair.profile(growth, rtol, missed)
        low, high = lower.profile(growth).lower, upper.profile(growth).upper
        wide = high > (1.0 + max(rtol, WIDE)) * low + missed
        if np.any(wide) and tail == 0.0:
            low[wide] = np.maximum(low[wide], below.profile(growth[wide], WIDE / 4.0).lower)
            high[wide] = np.minimum(high[wide], above.profile(growth[wide], WIDE / 4.0).upper)
        return Bounds(low, high)

    halves = half(0, lower, below), half(1, upper, above)
    return replace(pair, function=profile, top_mass=lower.top_mass, reverse=reverse, halves=halves)


def _largest(law: SlotLaw) -> Bounds:
    """The largest loss of the law on the upper side; inf where that has reports given away."""
    loss = law.largest_loss
    if not 0.0 < loss < math.inf:
        return Bounds(loss, loss)
    error = 2.1 * law.error  # of the logarithm of a ratio of two masses
    return Bounds(max(0.0, loss * (1.0 - 1e-15) - error), loss * (1.0 + 1e-15) + error)
