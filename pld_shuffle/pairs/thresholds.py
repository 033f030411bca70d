"""Counts of a random sample, those below a threshold suppressed: the worst count hides like a waiting time.

X_c = Bin(c, p) + D is a bin's count of c users who take part with probability p each, and of D dummies, D log-concave.
It is published where it is at least K. One user more makes it X_{c+1}. Neither neighbour knows c, so the pair is the
supremum over all c >= 0. Put the events in a row, the smallest first:

    {X_0 >= t}, t = ..., K + 1, K;   {X_1 >= K}, {X_2 >= K}, ...

Under P, the dataset with the user, c is one more. The best set is always one of these (docs/sums.md, section 4), so the
supremum is the profile of one pair, whose masses are the differences along the row: with f_c the law of X_c

    P: f_1(t), t >= K,   and p f_c(K-1), c = 1, 2, ...        Q: f_0(t),   and p f_{c-1}(K-1).

Without dummies this is P[T = c + 1] next to P[T = c], T the number of users until K of them take part: *sample and
threshold hides a user exactly as well as a negative binomial number does that is moved by one*. Who sees only whether a
bin is published cannot tell the sets with c = 0 apart. Where nothing else is known there is no c that is worse.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..numerics.integer_laws import MISSED, IntegerLaw, binomial_law, negative_binomial_law
from ..numerics.rounding import ROUNDOFF
from .discrete import EitherOrder, OrderedPair
from .pair import Attacks, Pair
from .profile import BothOrders, ProfilePair
from .shifted import losses, shifted, side_by_side
from .strategy import InOrder

Array = NDArray[np.float64]

SPARE = 2.5  # users over those at the threshold, from which on one pair without a threshold stands for all
MOST_CHOICES = 1024  # numbers of users that are told apart; of more, the worst one at every epsilon is all there is
MOST_DATASETS = 32  # that are tried as attacks
FAINT = 1e-4  # scale of an attack over its largest loss; the others give too little away
MOST_WORK = 2**31  # users times counts below the threshold
#: Masses below the first are left out; ratios to masses below the second are not trusted. Next to either, what a window
#: of the dummies' law leaves out is nothing.
SMALLEST, SMALLEST_RATIO = 1e-265, 1e-275


@dataclass(frozen=True, eq=False)
class Bin:
    """A bin with the user and without, whatever the number c of others in it is.

    only_bins : counts are not published. MemoryError where tables would be too large. O(least^2 / rate), without
    dummies O(least / rate).
    """

    rate: float
    least: int
    dummies: IntegerLaw | None
    only_bins: bool

    @property
    def alone(self) -> bool:
        """Whether c does not matter: what is published of many users; of fewer it is less."""
        return self.rate == 1.0 and not self.only_bins

    @cached_property
    def pair(self) -> ProfilePair:
        """With the order of the datasets the same in every round: whoever is added can only raise a count."""
        one = InOrder(self)
        return self.worst if len(self.worst.orders) == 1 else BothOrders((one, one.reverse))

    @cached_property
    def worst(self) -> EitherOrder:
        if self.dummies is None:
            waiting = shifted(negative_binomial_law(float(self.least), self.rate), 1)  # with the user it is shorter
            return replace(waiting, orders=waiting.orders[::-1])
        if self.alone:
            return shifted(self.dummies, 1)
        both = self._at_least(0)
        error = both[0].mass_error
        return EitherOrder(tuple(x.losses for x in both), max(x.truncated_mass for x in both), mass_error=error)

    @cached_property
    def every(self) -> list[tuple[OrderedPair, OrderedPair]]:
        """For every c, and a pair that dominates those of all larger c."""
        most = math.ceil(SPARE * self.least / self.rate) + self.least if self.rate < 1.0 else self.least
        if self.alone or most > MOST_CHOICES:
            return []
        # With c others of whom nothing is hidden, more are post-processing.
        beyond = self._at_least(most) if self.only_bins else replace(self, least=0)._published(most)
        return [*(self._published(count) for count in range(most)), beyond]

    def _at_least(self, users: int) -> tuple[OrderedPair, OrderedPair]:
        """What dominates all c from `users` on: the row from there on. From 0 on it has counts, where they are seen."""
        dummies = self.dummies or IntegerLaw(0, np.ones(1), 0.0, 0.0)
        p, q, top = _row(self.rate, self.least, dummies)
        if self.only_bins and top + users > 1:
            p, q = (np.append(x[: top + users].sum(), x[top + users :]) for x in (p, q))
        error = dummies.error + ROUNDOFF * (8.0 + 4.0 * p.size)
        return _ordered(p, q, error, dummies.below + dummies.above, MISSED)

    @cached_property
    def _seen(self) -> list[tuple[OrderedPair, OrderedPair]]:
        """Of some numbers of users that give away enough."""
        most = math.ceil(2.0 * self.least / self.rate)
        first = max(1, self.least - 1) if self.dummies is None else 1  # of fewer nothing is published
        some = np.unique(np.geomspace(first, most, MOST_DATASETS).astype(int))
        found = [self._published(int(count)) for count in (range(most + 1) if most <= MOST_DATASETS else some)]
        return [
            both
            for both in found
            if max(one.scale - FAINT * float(np.abs(one.losses.loss).max(initial=0.0)) for one in both) > 0.0
        ]

    @property
    def attacks(self) -> Attacks:
        """On one bin: strategies, next to other rounds single datasets."""
        return _any([order for both in self._seen for order in both], self.pair)

    @property
    def attacks_on_two(self) -> Attacks:
        """On two bins: any c where one user more is, and one near the strongest where one less is.

        In one round whoever looks at one bin only, and knows its worst count.
        """
        strongest = max(range(len(self._seen)), key=lambda k: self._seen[k][1].scale, default=0)
        falling = [fewer for _, fewer in self._seen[max(0, strongest - 1) : strongest + 2]]
        return _any([side_by_side(more, fewer) for more, _ in self._seen for fewer in falling], self.worst)

    def _published(self, users: int) -> tuple[OrderedPair, OrderedPair]:
        """What is seen with users + 1 next to what is seen with `users`, and the reverse."""
        laws = [binomial_law(n, self.rate) if n > 0 and self.rate < 1.0 else None for n in (users + 1, users)]
        low, masses, error, outside = [], [], 8.0 * ROUNDOFF, 0.0
        for n, law in zip((users + 1, users), laws, strict=True):
            low.append(n if self.rate == 1.0 else 0 if law is None else law.low)
            masses.append(np.ones(1) if law is None else law.masses)
            for part in (law, self.dummies):
                error += 0.0 if part is None else part.error
                outside += 0.0 if part is None else part.below + part.above
            if self.dummies is not None:
                low[-1] += self.dummies.low
                masses[-1] = np.convolve(masses[-1], self.dummies.masses)
                error += ROUNDOFF * (self.dummies.masses.size + 2.0)
        start, size = min(low), max(first + mass.size for first, mass in zip(low, masses, strict=True)) - min(low)
        hidden = start + np.arange(size) < self.least
        shown = []
        for first, mass in zip(low, masses, strict=True):
            counts = np.zeros(size)
            counts[first - start : first - start + mass.size] = mass
            seen = counts[~hidden]
            shown.append(np.append(counts[hidden].sum(), seen.sum() if self.only_bins else seen))
        return _ordered(shown[0], shown[1], error + ROUNDOFF * size, outside)


def _ordered(p: Array, q: Array, error: float, outside: float, missed: float = 0.0) -> tuple[OrderedPair, OrderedPair]:
    """Both orders of masses known to `error`; `outside`, next to either, may be anywhere, `missed` is left out."""
    found = []
    for ahead, behind in ((p, q), (q, p)):
        kept = (ahead >= SMALLEST) & (behind >= SMALLEST_RATIO)
        lone = float(ahead[(ahead >= SMALLEST) & ~kept].sum())
        certain = outside == 0.0 and not np.any((behind > 0.0) & ~kept & (ahead >= SMALLEST))
        known = losses(ahead[kept], behind[kept], 2.0 * error, lone if certain else 0.0)
        left = missed + p.size * SMALLEST + outside + (0.0 if certain else lone * (1.0 + error))
        found.append(OrderedPair(known, left * (1.0 + 1e-9), error))
    return found[0], found[1]


def _any(found: list[OrderedPair], alone: Pair) -> Attacks:
    return Attacks(tuple(found or [OrderedPair(losses(np.ones(1), np.ones(1), ROUNDOFF, 0.0))]), alone)


def _row(rate: float, least: int, dummies: IntegerLaw) -> tuple[Array, Array, int]:
    """Masses along the row under P and under Q, and how many of them are for no users."""
    high = dummies.low + dummies.masses.size
    none = np.zeros(max(least, high) + 1)
    none[dummies.low : high] = dummies.masses
    one = (1.0 - rate) * none + rate * np.append(0.0, none[:-1])
    now, held = none[:least].copy(), [rate * float(none[least - 1])]
    while now.sum() > MISSED:
        if len(held) * least > MOST_WORK:
            raise MemoryError(f"a threshold of {least} at rate {rate} needs more than {MOST_WORK} masses")
        now[1:] = (1.0 - rate) * now[1:] + rate * now[:-1]
        now[0] *= 1.0 - rate
        held.append(rate * float(now[-1]))
    below = np.array(held)
    p, q = np.append(one[least:], below[1:]), np.append(none[least:], below[:-1])
    return p, q, none.size - least
