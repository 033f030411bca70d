"""Counts of a random sample, those below a threshold suppressed: the worst count hides like a waiting time.

X_c = Bin(c, p) + D is a bin's count of c users who take part with probability p each, and of D dummies, D log-concave.
It is published where it is at least K. One user more makes it X_{c+1}. Neither neighbour knows c, so the pair is the
supremum over all c >= 0. It is the profile of one pair (docs/sums.md, section 4), with f_c the law of X_c and P that
of the dataset with the user:

    P: f_1(t), t >= K,   and p f_c(K-1), c = 1, 2, ...        Q: f_0(t),   and p f_{c-1}(K-1).

Without dummies this is P[T = c + 1] next to P[T = c], T the number of users until K of them take part. Who sees only
whether a bin is published sees the sum of all t.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial

import numpy as np

from ..numerics.integer_laws import MISSED, IntegerLaw, binomial_law, negative_binomial_law
from ..numerics.sides import ROUNDOFF, Array
from .discrete import EitherOrder, OrderedPair
from .pair import Attacks, Pair
from .profile import BothOrders, ProfilePair
from .shifted import losses, shifted, side_by_side
from .strategy import BothWays, InOrder

HIDDEN, SHOWN, PARTS = 16.0, 8.0, 8.0  # deviations below a threshold and above it; ranges in one of them
NEAR, MOST_RANGES = (5.0, -3.0), 256  # where there are more ranges, and how many at most
TILTS = 0.05, 10.0, 20  # over the scale of losses: between which attacks are tried alone, and how many
#: Where the best counts of two bins are looked for, in scales of one; how often each is chosen anew there, and from how
#: many.
NEAREST, FARTHEST, PLACES, TURNS, ROUGH = 0.1, 30.0, 64, 2, 16
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
        if self.dummies is None:  # with the user the wait is shorter
            waiting = shifted(self._waiting, 1)
            return replace(waiting, orders=waiting.orders[::-1])
        if self.alone:
            return shifted(self.dummies, 1)
        both = self._range(0, None)
        left = max(one.truncated_mass for one in both)
        return EitherOrder(tuple(one.losses for one in both), left, mass_error=both[0].mass_error)

    @cached_property
    def _starts(self) -> list[int]:
        """Where ranges of c begin: close to each other where what is published is neither all nor nothing."""
        count = self._count(0)
        values = count.low + np.arange(float(count.masses.size))
        mean = float(values @ count.masses)
        spread = float((values - mean) ** 2 @ count.masses)
        away = np.append(np.arange(HIDDEN, -SHOWN, -1.0 / PARTS), NEAR)  # deviations of the count below the threshold
        deviation = 0.5 * (np.sqrt(away * away + 4.0 * max(self.least - mean + spread, 1.0)) - away)
        *far, low, high = np.maximum((deviation * deviation - spread) / self.rate, 0.0).astype(int)
        near = np.arange(low, high, max(1, int((high - low) / MOST_RANGES)))
        return [int(c) for c in np.unique(np.concatenate(([0], far, near)))]

    @cached_property
    def ranges(self) -> list[tuple[OrderedPair, OrderedPair]]:
        """Pairs, and the reversed ones, that dominate all c of a range each; none where c does not matter."""
        ends = [*(start - 1 for start in self._starts[1:]), None]
        return [] if self.alone else [self._range(*both) for both in zip(self._starts, ends, strict=True)]

    @cached_property
    def some(self) -> list[tuple[OrderedPair, OrderedPair]]:
        """Single c."""
        return [self._range(users, users) for users in self._starts]

    @cached_property
    def _strongest(self) -> list[tuple[int, int]]:
        """The single c with the largest moments in either order, under each of some tilts: the best of many rounds."""
        seen = [k for k, both in enumerate(self.some) if _enough(both[0]) and _enough(both[1])]
        best: set[tuple[int, int]] = set()
        for slope in (np.geomspace(*TILTS) / self.worst.scale).tolist() if seen else ():
            with np.errstate(over="ignore"):
                moments = [
                    [float(one.losses.mass @ np.exp(slope * one.losses.loss)) for one in self.some[k]] for k in seen
                ]
            one, other = np.argmax(moments, axis=0).tolist()
            best.add((seen[one], seen[other]))
        return sorted(best)

    @property
    def _alone(self) -> list[tuple[OrderedPair, OrderedPair]]:
        return [(self.some[one][0], self.some[other][1]) for one, other in self._strongest]

    @property
    def attacks(self) -> Attacks:
        """On one bin: strategies, next to other rounds single datasets."""
        return _any([order for both in self._alone for order in both], self.pair)

    @property
    def attacks_on_two(self) -> Attacks:
        """On two bins: strategies, next to other rounds single datasets."""
        return _any([side_by_side(*both) for both in self._alone], BothWays(self))

    @cached_property
    def together(self) -> list[tuple[OrderedPair, OrderedPair]]:
        """Counts of two bins, of a user more and of a user less: those of many rounds, the best found for each epsilon
        of one round, and their reverses.

        Either is as good next to the other one as its neighbours are, from the best counts for a smaller epsilon and
        from the best ones of a few.
        """
        single = self.some
        ways = [[both[k].losses for both in single] for k in (0, 1)]
        few = list(itertools.product(range(0, len(single), 1 + len(single) // ROUGH), repeat=2))
        before, found = [0, 0], {places for both in self._strongest for places in (both, both[::-1])}
        for eps in np.geomspace(NEAREST, FARTHEST, PLACES) * max(both[1].scale for both in single):
            values = [ways[0][one].beside(ways[1][other], eps) for one, other in few]
            for best in (before, list(few[int(np.argmax(values))])):
                for k in (1, 0) * TURNS:
                    rest = ways[1 - k][best[1 - k]]
                    best[k] = _climbed(best[k], [partial(one.beside, rest, eps) for one in ways[k]])
                found |= {(best[0], best[1]), (best[1], best[0])}
        return [(single[one][0], single[other][1]) for one, other in sorted(found)]

    def _range(self, first: int, last: int | None) -> tuple[OrderedPair, OrderedPair]:
        """What dominates c = first, ..., last, and its reverse: the row between them, and what is left then."""
        low, entering = self._entering
        end = low + entering.masses.size if last is None else last + 1
        row = _from(low, entering.masses, first)[: max(end - first, 1)]
        row = np.append(row, np.zeros(max(end - first, 1) - row.size))
        laws = [self._count(first + 1), self._count(first)]
        seen = [_from(law.low, law.masses, self.least) for law in laws]
        if last is not None:
            laws += laws if last == first else [self._count(last + 1), self._count(last)]
        size = 1 if self.only_bins else max(one.size for one in seen)
        sides = []
        for k, then in enumerate((row[1:], row[:-1])):
            shown = np.zeros(size)
            shown[: seen[k].size] = seen[k].sum() if self.only_bins else seen[k]
            left = [law.masses[: max(self.least - law.low, 0)].sum() for law in laws[2:][k : k + 1]]
            sides.append(np.concatenate((shown, then, left)))
        error = sum(law.error for law in (*laws, entering)) + ROUNDOFF * (8.0 + 4.0 * sides[0].size)
        outside = sum(law.below + law.above for law in laws)
        missed = entering.below + entering.above if row.size > 1 else 0.0
        return _ordered(sides[0], sides[1], error, outside, missed)

    @cached_property
    def _count(self) -> Callable[[int], IntegerLaw]:
        """The laws of X_users: neighbouring ranges share them."""
        return cache(self._law)

    def _law(self, users: int) -> IntegerLaw:
        found = IntegerLaw(0, np.ones(1), 0.0, 0.0) if self.dummies is None else self.dummies
        if users == 0 or self.rate == 1.0:
            return replace(found, low=found.low + users)
        part = binomial_law(users, self.rate)
        masses = np.convolve(part.masses, found.masses)
        error = part.error + found.error + ROUNDOFF * (min(part.masses.size, found.masses.size) + 2.0)
        return IntegerLaw(part.low + found.low, masses, error, 0.0, part.below + found.below, part.above + found.above)

    @cached_property
    def _waiting(self) -> IntegerLaw:
        """Those who do not take part before the threshold is reached."""
        return negative_binomial_law(float(self.least), self.rate)

    @cached_property
    def _entering(self) -> tuple[int, IntegerLaw]:
        """p f_c(K-1), whose user is the one who reaches the threshold, from some c on."""
        if self.dummies is None:
            return self._waiting.low + self.least - 1, self._waiting
        none = _from(self.dummies.low, np.append(self.dummies.masses, np.zeros(self.least)), 0)
        now, held = none[: self.least].copy(), [self.rate * float(none[self.least - 1])]
        while now.sum() > MISSED:
            if len(held) * self.least > MOST_WORK:
                raise MemoryError(f"a threshold of {self.least} at rate {self.rate} needs more than {MOST_WORK} masses")
            now[1:] = (1.0 - self.rate) * now[1:] + self.rate * now[:-1]
            now[0] *= 1.0 - self.rate
            held.append(self.rate * float(now[-1]))
        error = self.dummies.error + ROUNDOFF * 4.0 * len(held)
        return 0, IntegerLaw(0, np.array(held), error, 0.0, self.dummies.below, MISSED)


def _enough(one: OrderedPair) -> bool:
    return one.scale > FAINT * float(np.abs(one.losses.loss).max(initial=0.0))


def _climbed(start: int, values: Sequence[Callable[[], Array]]) -> int:
    """A place where the value is no smaller than at its neighbours, by strides that double."""
    best, stride = (values[start](), start), 1
    while stride:
        nexts = [place for place in (best[1] - stride, best[1] + stride) if 0 <= place < len(values)]
        now = max([(values[place](), place) for place in nexts], default=best)
        best, stride = (now, 2 * stride) if now[0] > best[0] else (best, stride // 2)
    return best[1]


def _from(low: int, masses: Array, first: int) -> Array:
    """The masses at first, first + 1, ... of those that begin at `low`."""
    return np.append(np.zeros(max(low - first, 0)), masses[max(first - low, 0) :])


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
