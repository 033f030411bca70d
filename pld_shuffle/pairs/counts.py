"""Counts that the target changes, whatever the others are: one of them, or two that move apart.

A count of users that are told apart by a number c (how many of a bin there are, how many of the others hold the value)
has a pair of its own for every c, in a fixed order: under P the target is in it, or holds the value. A user may appear
in one count (`OneCount`: the order is the same in every round), or leave one for another, each with coins of its own
(`TwoCounts`: a product of one pair and of another's reverse; exchanging the two datasets exchanges the counts). The
others may be chosen anew in every round, as outputs suggest: c is a type of `strategy.Strategy`. Two counts are chosen
one after the other, with the first one's outcome in sight, which is no less than both at once.

Few types are enough. Let H_c(s) be the divergences of all c, a < c < b, and

    e(s) = the largest of  H_c(s) - ((b-c) H_a(s) + (c-a) H_b(s))/(b-a)  and 0.

Then every c is a mixture of a and b with e(s) added to both, in the sense of Theorem M (docs/swap.md): its weights are
the same at every s. Ranges are halved until e is a small share of the largest H(s). A type that another one dominates
at every s is left out.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from ..numerics.rounding import ROUNDOFF
from ..numerics.sides import Bounds
from .discrete import EitherOrder, Losses, OrderedPair
from .pair import Pair
from .profile import ProfilePair, UpperPair
from .strategy import Strategy, Types, in_blocks, lattice_laws, values_of_one_round

Array = NDArray[np.float64]

BLOCK = 1024  # rounds of choices that are one strategy
EXCESS = 2e-4  # e over the largest divergence: width against the number of types
SAME_TYPE = 1e-9  # by how much a type may be above another one and be left out; booked
COARSE, ENDS = 8.0, 128  # points at which attacks are compared: in a scale, and in all
MOST_ATTACKS = 20  # of one count, whose products are tried
MOST_FACTORS = 16  # types whose products are types: width against speed
FAINTEST = 1e-290  # masses that are looked at
CELLS = 128.0  # in which a product's losses are seen, a scale: a share of 1e-5 of their variance


class Counts(ABC):
    """One count, whatever c is."""

    @property
    @abstractmethod
    def scale(self) -> float:
        """As `Pair.scale`, of the most telling c, were no loss infinite."""

    @abstractmethod
    def max_loss(self, back: bool) -> Bounds:
        """As `Pair.max_loss`, of all c."""

    @abstractmethod
    def profile(self, back: bool, expm1_eps: Array) -> Bounds:
        """The largest of all c, in one order."""

    @abstractmethod
    def types(self, expm1_eps: Array) -> list[Types]:
        """Families of upper bounds on the profiles and the reversed profiles of types, as `Strategy` has them."""

    @property
    @abstractmethod
    def strongest(self) -> tuple[EitherOrder, ...]:
        """Pairs of some c: two orders each, under the first P has the target."""

    @property
    def alone(self) -> EitherOrder | None:
        """The only pair, where c does not matter."""
        return None

    @property
    @abstractmethod
    def number(self) -> int:
        """Of types, at most."""

    def together(self, first: int, second: int) -> bool:
        """Whether two of `types` may be those of two counts at once."""
        return True

    def attacked(self, first: int, second: int) -> bool:
        """The same of `strongest`."""
        return True


@dataclass(frozen=True, eq=False)
class Listed(Counts):
    """Counts whose pairs are known.

    pairs : for c = 0, 1, ...; few of too many where not `every` one is there.
    beyond : a pair that dominates those of all larger c, if any. worst : one that dominates them all.
    """

    pairs: tuple[EitherOrder, ...]
    beyond: EitherOrder | None
    worst: EitherOrder
    every: bool = True

    @cached_property
    def scale(self) -> float:  # type: ignore[override]
        return max(math.sqrt(float(order.mass @ order.loss**2)) for pair in self.pairs for order in pair.orders)

    def max_loss(self, back: bool) -> Bounds:
        return one_order(self.worst, back).max_loss

    def profile(self, back: bool, expm1_eps: Array) -> Bounds:
        return one_order(self.worst, back).profile(expm1_eps, 0.0, 0.0)

    def types(self, expm1_eps: Array) -> list[Types]:
        return [_types(self, expm1_eps.tobytes())]

    @property
    def number(self) -> int:
        return len(self.pairs) + 1

    @cached_property
    def strongest(self) -> tuple[EitherOrder, ...]:  # type: ignore[override]
        """Wherever it is the largest, in either order."""
        growth = np.expm1(np.arange(ENDS) * self.scale / COARSE)
        return tuple(self.pairs[k] for k in np.unique(_profiles(self.pairs, growth).argmax(axis=0)))

    @property
    def alone(self) -> EitherOrder | None:
        return self.worst if self.pairs == (self.worst,) else None


def one_order(pair: EitherOrder, back: bool) -> EitherOrder:
    """The pair, or the reversed one, by itself."""
    return replace(pair, orders=(pair.orders[-1 if back else 0],))


@lru_cache(maxsize=2)
def _types(counts: Listed, asked: bytes) -> Types:
    """Kept for the other order."""
    pairs = counts.pairs if counts.every else (counts.worst,)
    found = _profiles(pairs if counts.beyond is None else (*pairs, counts.beyond), np.frombuffer(asked))
    kept, excess = thinned(found)
    ahead, behind = np.split(found[kept] + excess, 2, axis=1)
    return ahead, behind


def _profiles(pairs: Sequence[EitherOrder], expm1_eps: Array) -> Array:
    """A row for every pair: from above, one order, and then the other one."""
    return np.array([np.concatenate([_upper(pair, k, expm1_eps) for k in (0, -1)]) for pair in pairs])


def _upper(pair: EitherOrder, order: int, expm1_eps: Array) -> Array:
    """One order's profile from above, by sums from the top."""
    losses, eps = pair.orders[order], np.log1p(expm1_eps)
    error = 4.0 * losses.error + ROUNDOFF * (16.0 + 4.0 * losses.mass.size + 4.0 * eps)
    place = np.searchsorted(losses.loss, eps)
    p = np.append(np.cumsum(losses.mass[::-1])[::-1], 0.0)[place]
    q = np.append(np.cumsum((losses.mass * np.exp(-losses.loss))[::-1])[::-1], 0.0)[place] * (1.0 + expm1_eps)
    found = np.maximum(p - q, 0.0) + error * (p + q) + losses.infinity_mass
    return np.asarray(found * (1.0 + 2.0 * pair.mass_error) + pair.truncated_mass)


def thinned(values: Array) -> tuple[list[int], Array]:
    """Rows of which all rows are mixtures, with what has to be added to these; values of shape (rows, points)."""
    least, excess = EXCESS * values.max(axis=0), np.zeros(values.shape[1])
    kept, todo = {0, len(values) - 1}, [(0, len(values) - 1)]
    while todo:
        a, b = todo.pop()
        if b - a < 2:
            continue
        share = (np.arange(a + 1, b) - a)[:, None] / (b - a)
        over = (values[a + 1 : b] - (1.0 - share) * values[a] - share * values[b]).max(axis=0)
        if np.all(over <= least):
            excess = np.maximum(excess, over + 8.0 * ROUNDOFF * least / EXCESS)
        else:
            kept.add((a + b) // 2)
            todo += [(a, (a + b) // 2), ((a + b) // 2, b)]
    found: list[int] = []  # a row that lies below another one is none of them
    raised, coarse = values * (1.0 + SAME_TYPE), np.ascontiguousarray(values[:, ::16])
    for k in sorted(kept, key=lambda k: -float(values[k].sum())):
        over = np.flatnonzero(np.all(coarse[found] * (1.0 + SAME_TYPE) >= coarse[k], axis=1))
        if not any(np.all(raised[found[i]] >= values[k]) for i in over):
            found.append(k)
    return found, excess + SAME_TYPE * values.max(axis=0)


@dataclass(frozen=True, eq=False)
class OneCount(ProfilePair):
    """The target is in a count under P, and not under Q; `back`: the other way round. The same in all rounds."""

    counts: Counts
    back: bool = False

    @cached_property
    def reverse(self) -> OneCount:  # type: ignore[override]
        found = OneCount(self.counts, not self.back)
        found.__dict__["reverse"] = self
        return found

    def profile(self, expm1_eps: Array, rtol: float, truncated_mass: float) -> Bounds:
        """Exact for one round: there the worst c may depend on epsilon."""
        return self.counts.profile(self.back, expm1_eps)

    @property
    def pointwise(self) -> bool:
        return False

    @property
    def max_loss(self) -> Bounds:
        return self.counts.max_loss(self.back)

    @property
    def scale(self) -> float:
        return self.counts.scale

    def types(self, expm1_eps: Array) -> list[Types]:
        return [both[::-1] if self.back else both for both in self.counts.types(expm1_eps)]

    @cached_property
    def choices(self) -> tuple[OrderedPair, ...]:
        return tuple(ordered(pair, self.back) for pair in self.counts.strongest)

    def repeated(self, count: int) -> list[tuple[Pair, int]]:
        alone = self.counts.alone
        return in_blocks(self, count, BLOCK) if alone is None else [(ordered(alone, self.back), count)]


@dataclass(frozen=True, eq=False)
class TwoCounts(UpperPair):
    """The target leaves one count for another one: a pair of the first one, and a reversed one of the second."""

    counts: Counts

    @cached_property
    def part(self) -> OneCount | TwoCounts:
        """One count, whose types are chosen after the other's; where there are few the pair itself."""
        return self if self.counts.number <= MOST_FACTORS else OneCount(self.counts)

    @property
    def max_loss(self) -> Bounds:
        ahead, back = (self.counts.max_loss(order) for order in (False, True))
        return Bounds(ahead.lower + back.lower, ahead.upper + back.upper)

    @property
    def scale(self) -> float:
        return math.sqrt(2.0) * self.counts.scale

    def upper(self, expm1_eps: Array, truncated_mass: float) -> Array:
        step, values = values_of_one_round(self, truncated_mass)
        growth = np.expm1(step * np.arange(float(values.size)))
        return np.asarray(np.interp(expm1_eps * (1.0 - 4.0 * ROUNDOFF), growth, values) * (1.0 + 8.0 * ROUNDOFF))

    def tail(self, expm1_eps: Array) -> Array:
        """A rough upper bound: half of the loss in either count."""
        half = np.expm1(0.5 * np.log1p(expm1_eps))
        return np.asarray(sum(self.counts.profile(back, half).upper for back in (False, True)))

    def types(self, expm1_eps: Array) -> list[Types]:
        """Products of two types."""
        step, found = math.log1p(expm1_eps[1]), []
        for both in self.counts.types(expm1_eps):
            (first, certain), (second, lost) = (lattice_laws(*order, step) for order in (both, both[::-1]))
            places = [at for at in product(range(len(first)), repeat=2) if self.counts.together(*at)]
            known = {
                (a, b): _tails(np.convolve(first[a], second[b]), step, expm1_eps.size) + certain[a] + lost[b]
                for a, b in places
            }
            found.append((np.array([known[a, b] for a, b in places]), np.array([known[b, a] for a, b in places])))
        return found

    @cached_property
    def choices(self) -> tuple[OrderedPair, ...]:
        """Products of the strongest datasets, where these are the largest."""
        loss: Array = np.arange(0.0, ENDS) * self.scale / COARSE
        strongest = self.counts.strongest
        pairs = strongest[:: math.ceil(len(strongest) / MOST_ATTACKS)]
        places = [at for at in product(range(len(pairs)), repeat=2) if self.counts.attacked(*at)]
        seen = [(_seen(pair, 0, self.scale / CELLS), _seen(pair, -1, self.scale / CELLS)) for pair in pairs]
        found = [_product(seen[a][0], seen[b][1], self.scale / CELLS) for a, b in places]
        values = [one.losses.divergence(loss) + one.losses.infinity_mass for one in found]
        best = {places[k] for k in np.argmax(values, axis=0)}
        return tuple(found[places.index(at)] for at in sorted({*best, *((b, a) for a, b in best)}))

    def repeated(self, count: int) -> list[tuple[Pair, int]]:
        alone = self.counts.alone
        if alone is not None:
            return [(ordered(alone, back), count) for back in (False, True)]
        blocks, rest = divmod(count, BLOCK)
        return [(Strategy(self, size), times) for size, times in ((BLOCK, blocks), (rest, 1)) if size * times > 0]


def _tails(masses: Array, step: float, size: int) -> Array:
    """The profile of a law at -M step ... M step from above, at 0, step, ..."""
    middle = masses.size // 2
    loss = step * np.arange(float(middle + 1))
    above = masses[middle + 1 :]
    p = np.append(np.cumsum(above[::-1])[::-1], 0.0)
    q = np.append(np.cumsum((above * np.exp(-loss[1:]))[::-1])[::-1], 0.0) * np.exp(loss)
    rounding = ROUNDOFF * (8.0 * masses.size + 16.0 * loss + 32.0)
    return np.asarray(np.maximum(p - q, 0.0) + rounding * (p + q))[:size]


def ordered(pair: EitherOrder, back: bool) -> OrderedPair:
    """One order, as it is composed."""
    return OrderedPair(pair.orders[-1 if back else 0], pair.truncated_mass, pair.mass_error)


def _seen(pair: EitherOrder, order: int, cell: float) -> OrderedPair:
    """One order, its losses seen to a cell, without what is truncated: less than is there."""
    losses = pair.orders[order]
    return OrderedPair(
        _in_cells(losses.mass, losses.loss, losses.infinity_mass, losses.error, cell), 0.0, pair.mass_error
    )


def _product(one: OrderedPair, other: OrderedPair, cell: float) -> OrderedPair:
    """Independent outcomes of both, seen to a cell."""
    first, second = one.losses, other.losses
    loss, mass = np.add.outer(first.loss, second.loss).ravel(), np.multiply.outer(first.mass, second.mass).ravel()
    infinite = first.infinity_mass + second.infinity_mass * (1.0 - first.infinity_mass)
    found = _in_cells(mass, loss, infinite, first.error + second.error, cell)
    return OrderedPair(found, 0.0, one.mass_error + other.mass_error)


def _in_cells(mass: Array, loss: Array, infinite: float, error: float, cell: float) -> Losses:
    """Masses of P and of Q summed over cells of the loss, but for those that underflow."""
    behind = mass * np.exp(-loss)
    kept = np.minimum(mass, behind) > FAINTEST
    _, place = np.unique(np.rint(loss[kept] / cell), return_inverse=True)
    p, q = (np.bincount(place, one[kept]).astype(np.float64) for one in (mass, behind))
    ratio = np.log(p / q)
    order = np.argsort(ratio, kind="stable")
    error = 2.0 * error + ROUNDOFF * (8.0 + mass.size + 4.0 * float(np.abs(loss).max(initial=0.0)))
    return Losses(p[order], ratio[order], infinite, error)
