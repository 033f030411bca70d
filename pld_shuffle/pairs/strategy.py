"""Rounds whose pair is chosen as they go: the value of the best strategy, as a profile.

A type is a dataset of all others, an order of the two neighbours, a sign of a move: whatever may be chosen anew in
every round, as outputs suggest. Let there be functions G_k, one for every type k, with

    H_s(every choice) <= sum_k w_k G_k(s)   for all s > 0, the weights w of the choice the same for every s.

With s = e^y let V_0(s) = (1 - s)_+, and let V_t be the best strategy's H_s of t rounds. V_(t-1) is convex, so it is a
mean of functions (x - s)_+ and a constant, and one round more, first, makes of each of them x H_(s/x). So

    V_t(s) <= max over k of  V_(t-1)(inf) + sum_x x V_(t-1)''(x) G_k(s/x),

because a mean of types is at most the largest (docs/swap.md, Theorem M). Exact pairs of all types make it an equality.
Where several families of types are proved, each of them bounds V_t, and so does the least, point by point.

On a lattice of y a polygon through values of V_(t-1) lies above it, and only needs G_k at points of the lattice: the
sum is a convolution with the masses of the polygon through these, E V_(t-1)(y - L) for L of an upper law. With lower
laws of pairs that may really be chosen it is a lower bound. The class is closed under exchange of the neighbours, so
V_t(-y) = 1 - e^-y + e^-y V_t(y), and V_T is the profile of a symmetric pair. It composes with everything else, even if
other rounds lie in between and choose as well: with V^a, V^b of two such lists let W(y) = E V^a(y - L_b); buying a
round of either list never raises W, since the other list's law is fixed. From below it is what a single list comes to.

Where the order of the neighbours is the same in every round, V_t(-y) = 1 - e^-y + e^-y V'_t(y), V' that of the reversed
pairs: two functions, each of which needs the other one, and V_T is the profile of a pair that is not symmetric. All
else stays as it is.

The pair of the largest type at every s, composed T times, is larger: in every round it has the tails of all types.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..numerics.lattice import SNAP, place
from ..numerics.rounding import ROUNDOFF
from ..numerics.sides import Bounds, Side
from ..numerics.tuning import TRANSFORM_WORK
from .discrete import EitherOrder, OrderedPair
from .pair import Atoms, Pair, Resolution, completed
from .profile import SAME, ProfilePair, ProfilePoints, WorstPair, profile_atoms

Array = NDArray[np.float64]
#: Upper bounds on the profiles of types, and on those of the reversed pairs: shape (types, losses).
Types = tuple[Array, Array]

POINTS, COARSEST = 24.0, 8.0  # of the lattice, a scale of one round
FINEST, ATTACKED = 1e4, 68.0  # the same at most, over rounds^(2/3); and where attacks tell the rest
MISSED = (1e-15, 1e-25, 1e-35, 1e-50, 1e-65, 1e-80, 1e-100, 1e-130, 1e-180, 1e-300)  # what the lattice may leave out
LONGEST = 650.0  # losses of one round; beyond, the last value holds
HULL = 300.0  # losses between the ends of hulls
TABLE = 256  # up to so many rounds a power of two of them is kept, with all rounds on the way
BLOCK = 1024  # rounds of choices given by their masses that are one strategy; between blocks all tails are there
FFT_CONSTANT = 12.0  # of the rounding of transforms, as in `composition.product`
# Logarithms of values: what the next tilt may lose, the last of transforms, and the largest of weights.
TILTED, MOST_TRANSFORMED, STEEPEST = 9.0, 250.0, 600.0
WORK = (1e9, 2e10)  # operations of one table, where an attack tells the rest, and where not: width against speed
SEEN, NOISE = 1e4, 1e-3  # times what is missed: values whose relative error by transforms may be so large
DIRECT_WORK = 1e8  # multiplications up to which transforms are not worth their errors
CHUNK = 2**20  # numbers in one transform
TINY = 1e-300  # more than all underflows of one
MOST_BLOCKS, FINER = 512, 32  # in which a lower end changes its choice; the lattice of one block is finer
LINES = 200.0  # points of a lower end in a scale of all rounds
MOST_CHOICES = 128  # that a lower end has, about, of all that are proved
MANY_FINER = 512, 8  # over their number, at most: how much finer its lattice is, as it loses by a step's first power
MERGED = 2.0  # scales of a round over which lower laws merge atoms; beyond, rounding down loses less


class Laws(NamedTuple):
    """Laws on one lattice: masses at -M step ... M step of shape (laws, 2 M + 1), and at infinity."""

    masses: Array
    infinite: Array

    @property
    def reach(self) -> int:
        return int(self.masses.shape[1] // 2)


@dataclass(frozen=True)
class Strategy(Pair):
    """`rounds` rounds of a pair whose types are chosen as they go.

    one : a `ProfilePair` of one round, whatever its type, that has one of these methods, or both:

    * `types(expm1_eps)`: families of `Types` at growths e^y - 1, each of them proved, and closed under exchange of the
      neighbours. The upper end is theirs.
    * `choices`, `OrderedPair`s, and with each its reverse: all that may be chosen, or some of it where there are types.
      The lower end is theirs. Without them lower atoms are the upper ones, less rounding, and an attack has to tell how
      far the truth is below. Where a lower end is content with some of them, families of all are `proved`.

    If its order is the same in all rounds it says whether it is `back`, the other order, which is its `reverse`, and
    nothing has to be closed under exchange.
    """

    one: Any
    rounds: int

    @property
    def max_loss(self) -> Bounds:
        low, high = self.one.max_loss
        return Bounds(self.rounds * low * (1.0 - 4e-16), self.rounds * high * (1.0 + 4e-16))

    @property
    def scale(self) -> float:
        return math.sqrt(self.rounds) * float(self.one.scale)

    @property
    def symmetric(self) -> bool:
        return self.one.reverse is None

    @property
    def encloses(self) -> bool:
        return bool(self.one.choices)

    def atoms(self, sides: Sequence[Side], resolution: Resolution) -> list[Atoms]:
        """O(rounds types points log points); tables of at most 4 questions are kept."""
        one, rounds = self.one, self.rounds
        missed = next((m for m in MISSED if m <= 10.0 * resolution.truncated_mass), MISSED[-1])
        finest = FINEST / rounds ** (2.0 / 3.0) if one.choices and not _many(one) else ATTACKED
        wanted = max(POINTS, _even(min(self.scale / resolution.points[0], finest), round))
        return [_atoms(one, rounds, wanted, missed, side) for side in sides]


@lru_cache(maxsize=16)
def _atoms(one: Any, rounds: int, wanted: float, missed: float, side: Side) -> Atoms:
    orders = (one,) if one.reverse is None else (one.reverse, one) if one.back else (one, one.reverse)
    way = -1 if orders[0] is not one else 1  # both orders have one table
    points, proved = _proved(orders, rounds, wanted, missed)
    if side is Side.LOWER and one.choices:
        lower = _attained(orders, rounds, points, missed)[::way]
        return profile_atoms(lower[0], lower[-1], side)
    found = _upper_atoms(orders[0].scale / points, proved[::way])
    if side is Side.UPPER:
        return found
    less = replace(found, mass=found.mass * SAME, infinity_mass=found.infinity_mass * SAME, total=None)
    return completed(less, side) if one.reverse is None else less


def in_blocks(one: Any, count: int, most: int) -> list[tuple[Pair, int]]:
    """`count` rounds as blocks of at most `most`; between blocks there are the tails of all types at once."""
    blocks, rest = divmod(count, most)
    found: list[tuple[Pair, int]] = [(Strategy(one, most), blocks)] if blocks else []
    if rest:
        found.append((one if rest == 1 else Strategy(one, rest), 1))
    return found


@dataclass(frozen=True, eq=False)
class AnyOf(WorstPair):
    """Any of several pairs of two datasets, in either order, chosen anew in every round: from both sides.

    The entry for whoever knows all that may be chosen by its masses, `EitherOrder`s of one order or two. One round is
    the largest of all; `count` rounds are the best strategy's.
    """

    pairs: tuple[EitherOrder, ...]
    pointwise = True

    @cached_property
    def choices(self) -> tuple[OrderedPair, ...]:
        """Each order by itself: a strategy that keeps to it."""
        return tuple(OrderedPair(order, p.truncated_mass, p.mass_error) for p in self.pairs for order in p.orders)

    @property
    def top_mass(self) -> float:
        return self.pairs[0].top_mass if len(self.pairs) == 1 else 0.0

    def repeated(self, count: int) -> list[tuple[Pair, int]]:
        return in_blocks(self, count, BLOCK)


@dataclass(frozen=True)
class InOrder(ProfilePair):
    """One order of datasets that are chosen anew in every round, the order being the same in all of them.

    datasets : what says `worst`, the worst of them at every epsilon, all there is in one round; and `every`, of all the
    pairs in both orders, one that dominates the rest, if any, being last; none if there is nothing to choose.
    attacked : whether an attack tells how far the truth is below; else a lower end chooses among some of them.
    """

    datasets: Any
    back: bool = False
    attacked: bool = False
    pointwise = False

    @property
    def reverse(self) -> InOrder:  # type: ignore[override]
        return replace(self, back=not self.back)

    @property
    def proved(self) -> list[list[OrderedPair]]:
        """Families of them."""
        return [[both[self.back] for both in self.datasets.every], [self._alone]]

    @property
    def choices(self) -> list[OrderedPair]:
        """Some, for a lower end."""
        every = [] if self.attacked else self.datasets.every[:-1]
        return [both[self.back] for both in every[:: max(1, len(every) // MOST_CHOICES)]]

    @cached_property
    def _worst(self) -> EitherOrder:
        worst: EitherOrder = self.datasets.worst
        return replace(worst, orders=(worst.orders[-self.back],))

    @property
    def max_loss(self) -> Bounds:
        return self._worst.max_loss

    @property
    def scale(self) -> float:
        return self._worst.scale

    @property
    def infinity_mass(self) -> float:
        return self._worst.infinity_mass

    def profile(self, expm1_eps: Array, rtol: float, truncated_mass: float) -> Bounds:
        return self._worst.profile(expm1_eps, rtol, truncated_mass)

    def repeated(self, count: int) -> list[tuple[Pair, int]]:
        if count > 1 and self.datasets.every:
            return in_blocks(self, count, BLOCK)
        return [(self._alone, count)]

    @property
    def _alone(self) -> OrderedPair:
        return OrderedPair(self._worst.orders[0], self._worst.truncated_mass, self._worst.mass_error)


def _many(one: Any) -> bool:
    """Whether a lower end has only some of what is proved: then time counts."""
    return hasattr(one, "proved")


def _upper_atoms(step: float, values: Sequence[Array]) -> Atoms:
    """The pair of the hulls of values at 0, step, ..., in each order."""
    loss = step * np.arange(float(values[0].size))
    hulls = [hull(loss, value)[None] for value in values]
    masses, infinite = lattice_laws(hulls[0], hulls[-1], step)
    loss = np.append(-loss[:0:-1], loss)
    kept = (masses[0] > 0.0) | (loss == 0.0)
    found = Atoms(masses[0][kept], loss[kept], float(infinite[0]), loss_error=4.0 * ROUNDOFF * float(loss[-1]))
    return completed(found, Side.UPPER) if len(values) == 1 else found


def _even(points: float, to: Callable[[float], int]) -> float:
    """One of a few numbers of points, so that tables are found again."""
    return float(max(COARSEST, POINTS * 2.0 ** (0.5 * to(2.0 * math.log2(points / POINTS)))))


def _proved(orders: tuple[Any, ...], rounds: int, points: float, missed: float) -> tuple[float, list[Array]]:
    """The lattice's points in a scale, and upper bounds on V_rounds there, in each order."""
    known = rounds if rounds > TABLE else 1 << (rounds - 1).bit_length()  # a few tables serve all numbers of rounds
    points, values = _values(orders, known, points, missed)
    return points, values[min(rounds, len(values)) - 1]


@lru_cache(maxsize=4)
def _values(orders: tuple[Any, ...], rounds: int, points: float, missed: float) -> tuple[float, list[list[Array]]]:
    """Points there is time for; upper bounds on V_1, V_2, ... at losses 0, step, ..., of many rounds on the last."""
    reach, end, slopes = _steered(orders, rounds, missed)
    one = orders[0]
    step = one.scale / points
    every = _upper_laws(orders, step, reach, missed / rounds)
    size = every[0][0].reach
    sums = rounds * sum(law.infinite.size for laws in every for law in laws) * (end / step + 2.0 * size)
    tilts = slopes if sums * size > DIRECT_WORK else ()
    # Multiplications of direct sums take less time than those of transforms.
    room = WORK[bool(one.choices)] / (sums * (3.0 * TRANSFORM_WORK * len(tilts) or 0.25 * size))
    if room < 1.0 and points > COARSEST:
        return _values(orders, rounds, _even(points * room ** (1.0 if tilts else 0.5), math.floor), missed)
    places = max(math.ceil(end / step), size)
    games = [_Game(laws, step, places, tilts, Side.UPPER) for laws in every]
    loss, values = step * np.arange(places + 1.0), [np.zeros(places + 1) for _ in games]
    found: list[list[Array]] = []
    for done in range(1, rounds + 1):
        values = [
            game.before(value, float(value[-1]), other, float(other[-1]))
            for game, value, other in zip(games, values, values[::-1], strict=True)
        ]
        for order, value in zip(orders, values, strict=True):
            value[loss >= done * float(order.max_loss.upper) * (1.0 + 1e-12)] = 0.0
        found = [*found, values] if rounds <= TABLE else [values]
    return points, found


@lru_cache(maxsize=16)
def _steered(orders: tuple[Any, ...], rounds: int, missed: float) -> tuple[float, float, tuple[float, ...]]:
    """Where one round's profile and V_rounds are down to `missed`, and slopes of -log V_rounds for tilts.

    By Chernoff's bound, V_t(y) <= e^(t psi(a) - a y) with psi(a) the largest log E e^(a L), on a coarse lattice.
    """
    scale, top = orders[0].scale, min(max(float(one.max_loss.upper) for one in orders), LONGEST)
    span = -math.log(missed)
    asked = np.append(np.minimum(np.geomspace(scale, max(top, 100.0 * scale), 96), top), top)
    known = np.max([one.profile(np.expm1(asked), 1e-2, 0.1 * missed / rounds).upper for one in orders], axis=0)
    reach = float(asked[np.argmax(known <= known[-1] * (1.0 + 1e-6) + missed / rounds)])  # what is at infinity stays
    step = scale / COARSEST
    every = _upper_laws(orders, step, reach, missed / rounds)
    size = every[0][0].reach
    slopes = np.geomspace(0.1 / (scale * math.sqrt(rounds)), 500.0 / (size * step), 128)
    tilted = np.exp(np.multiply.outer(step * np.arange(-size, size + 1.0), slopes))
    # Of families each is proved, of orders the larger one counts.
    moments = np.max([np.min([(law.masses @ tilted).max(axis=0) for law in laws], axis=0) for laws in every], axis=0)
    psi = rounds * np.log(np.maximum(moments, missed))  # all may be at infinity
    end = min(max(float(np.min((psi + span) / slopes)), step), rounds * top + step)
    if span > MOST_TRANSFORMED:
        return reach, end, ()
    # What tilts lose at y against the best one. The next one is the largest that is good where the last ones are not.
    lost = psi[:, None] - np.multiply.outer(slopes, np.linspace(0.0, end, 512))
    lost -= lost.min(axis=0)
    found, y = [], 0
    while y < lost.shape[1]:
        best = int(np.flatnonzero(lost[:, y] <= TILTED)[-1])
        found.append(float(slopes[best]))
        y = int(np.flatnonzero(lost[best] <= TILTED)[-1]) + 1
    noisy = bool(orders[0].choices and not _many(orders[0])) and any(
        _noisy(laws, step, math.ceil(end / step), tuple(found), rounds, missed) for laws in every
    )
    return reach, end, () if noisy else tuple(found)


def _noisy(laws: list[Laws], step: float, places: int, tilts: tuple[float, ...], rounds: int, missed: float) -> bool:
    """Whether errors of transforms show under these tilts: log V is not concave where single losses are most of it."""
    upper, lower = (_Game(laws, step, places, tilts, side) for side in (Side.UPPER, Side.LOWER))
    last = value = np.zeros(places + 1)
    for _ in range(rounds):
        last, value = value, upper.before(value, value[-1], value, value[-1])
    seen = value > SEEN * missed
    return bool(np.any(value[seen] > (1.0 + NOISE / rounds) * lower.before(last, last[-1], last, last[-1])[seen]))


def _upper_laws(orders: Sequence[Any], step: float, reach: float, missed: float) -> list[list[Laws]]:
    """Of every order, of every family; all of one reach."""
    if not hasattr(orders[0], "types"):
        families = [getattr(one, "proved", [one.choices]) for one in orders]
        placed = [[[_placed(pair, Side.UPPER, step, missed) for pair in some] for some in known] for known in families]
        size = max(_reach(laws) for every in placed for laws in every)
        return [[_aligned(laws, size) for laws in every] for every in placed]
    loss = step * np.arange(math.ceil(reach / step) + 2.0)
    # A little earlier than the lattice's points, because profiles fall.
    growth = np.expm1(loss) * (1.0 - 16.0 * ROUNDOFF * (1.0 + loss))
    ended = loss >= max(float(one.max_loss.upper) for one in orders) * (1.0 + 1e-12)
    return [
        [Laws(*lattice_laws(np.where(ended, 0.0, f), np.where(ended, 0.0, b), step)) for f, b in one.types(growth)]
        for one in orders
    ]


class _Placed(NamedTuple):
    """Masses on the lattice, the index of the first one, and the mass at infinity."""

    masses: Array
    low: int
    infinite: float


def _reach(found: Sequence[_Placed]) -> int:
    return max(max(-one.low, one.low + one.masses.size - 1, 1) for one in found)


def _aligned(found: Sequence[_Placed], reach: int = 0) -> Laws:
    reach = reach or _reach(found)
    masses = np.zeros((len(found), 2 * reach + 1))
    for row, one in zip(masses, found, strict=True):
        row[reach + one.low :][: one.masses.size] = one.masses
    return Laws(masses, np.array([one.infinite for one in found]))


def _placed(pair: OrderedPair, side: Side, step: float, missed: float) -> _Placed:
    """On the lattice, up to `missed` of its mass left out; rounding moves losses to the safe side beforehand."""
    atoms = pair.losses.atoms(side, pair.truncated_mass, pair.mass_error, missed)
    sign = 1.0 if side is Side.UPPER else -1.0
    size = float(np.abs(atoms.loss).max()) + step
    loss = atoms.loss + sign * (atoms.loss_error + 4.0 * SNAP * (size + step) + 8.0 * ROUNDOFF * size)
    cell = np.floor(loss / step).astype(np.int64)
    offset = np.clip(loss - cell * step, 0.0, step)
    masses, low = place(atoms.mass, cell, offset, step=step, side=side, max_gap=MERGED * pair.scale)
    infinite = atoms.infinity_mass + (atoms.truncated_mass if side is Side.UPPER else 0.0)
    return _Placed(masses * (1.0 + sign * 16.0 * ROUNDOFF), low, infinite * (1.0 + sign * ROUNDOFF))


def hull(loss: Array, values: Array) -> Array:
    """The largest convex function below bounds on a profile at equidistant losses: what is noise is cut off."""
    from ..numerics import kernels

    found, kept = values.copy(), np.empty(values.size, np.int64)
    width = max(8, int(HULL / (loss[1] - loss[0])))
    for first in range(0, values.size, width):  # exponentials of all losses have no room
        part = slice(first, first + 2 * width)
        growth = np.expm1(loss[part] - loss[first])
        vertices = kept[: kernels.lower_hull(growth, found[part], kept)]
        found[part] = np.interp(growth, growth[vertices], found[part][vertices])
    return np.asarray(found * (1.0 + 32.0 * ROUNDOFF))


def lattice_laws(ahead: Array, behind: Array, step: float) -> tuple[Array, Array]:
    """The laws whose profiles join known points: masses of P at losses -M step ... M step, and at infinity.

    ahead, behind : of every law upper bounds on the profile, and on the reversed pair's, at losses 0, step, ..., M
    step; shape (laws, M + 1). Where points are not convex a negative mass is raised to 0: more mass is above.
    """
    start = np.maximum(ahead[:, :1], behind[:, :1])
    wide, grown, reach = math.expm1(step), math.exp(step), ahead.shape[1] - 1
    sides, slopes = [], []
    for values in (ahead, behind):
        rises = np.diff(np.concatenate((start, values[:, 1:], values[:, -1:]), axis=1))
        mass = rises[:, 1:] - grown * rises[:, :-1]
        mass += 8.0 * ROUNDOFF * (np.abs(rises[:, 1:]) + grown * np.abs(rises[:, :-1]))
        sides.append(np.maximum(mass, 0.0) / wide)
        slopes.append(rises[:, :1] / wide)
    middle = np.maximum(0.0, 1.0 - start + slopes[0] + slopes[1] + 32.0 * ROUNDOFF)
    # Masses of Q for the reversed pair: P's are e^-loss times these.
    loss = step * np.arange(1.0, reach + 1.0)
    left = sides[1] * np.exp(-loss) * (1.0 + 8.0 * ROUNDOFF * (loss + 1.0))
    return np.concatenate((left[:, ::-1], middle, sides[0] * (1.0 + 4.0 * ROUNDOFF)), axis=1), ahead[:, -1]


@lru_cache(maxsize=16)
def _attained(orders: tuple[Any, ...], rounds: int, points: float, missed: float) -> list[ProfilePoints]:
    """V_rounds from both sides, below by whoever changes the choice `MOST_BLOCKS` times: blocks lose less on a lattice.

    The points are as far apart as their lines need, which start at an upper value and end at a lower one.
    """
    scale, proved = orders[0].scale, _proved(orders, rounds, points, missed)[1]
    closest, slopes = scale / points, _steered(orders, rounds, missed)[2]
    block = 2 ** max(0, math.ceil(math.log2(rounds / MOST_BLOCKS)))
    finer = 1 if block == 1 else math.ceil(0.5 * FINER * math.sqrt(block))
    finest = max(1, min(MANY_FINER[0] // len(orders[0].choices), MANY_FINER[1])) if _many(orders[0]) else 1
    step = closest / finest if block == 1 else closest * finer / FINER
    places = math.ceil(closest * (proved[0].size - 1) / step)
    known = [(np.zeros(places + 1), 0.0) for _ in orders]
    for size, count in ((rounds % block, 1), (block, rounds // block)):
        if size > 0:
            every = [
                _aligned([_power(pair, size, step, finer, missed / rounds, slopes) for pair in one.choices])
                for one in orders
            ]
            sums = count * sum(laws.infinite.size * (places + 2.0 * laws.reach) for laws in every)
            tilts = slopes if sums * every[0].reach > DIRECT_WORK else ()
            games = [_Game([laws], step, places, tilts, Side.LOWER) for laws in every]
            for _ in range(count):
                known = [
                    (game.before(*here, *other), _limit(laws, here[1]))
                    for game, laws, here, other in zip(games, every, known, known[::-1], strict=True)
                ]
    apart = max(1, int(scale * math.sqrt(rounds) / (step * LINES)))
    growth, above = np.expm1(step * np.arange(0.0, places + 1.0, apart)), closest * np.arange(proved[0].size)
    upper = [np.interp(growth * (1.0 - 8.0 * ROUNDOFF), np.expm1(above), p) * (1.0 + 8.0 * ROUNDOFF) for p in proved]
    return [ProfilePoints(growth, v[::apart], high, end) for (v, end), high in zip(known, upper, strict=True)]


def _limit(laws: Laws, limit: float) -> float:
    """From below, what holds at infinity if one more round comes first."""
    rest = laws.masses.sum(axis=1) * (1.0 - ROUNDOFF * laws.masses.shape[1])
    return float((rest * limit + laws.infinite).max()) * (1.0 - 8.0 * ROUNDOFF)


def _power(pair: OrderedPair, count: int, step: float, finer: int, missed: float, slopes: tuple[float, ...]) -> _Placed:
    """A lower law of so many rounds of one choice, convolved on a finer lattice."""
    fine = step / finer
    square, found = _placed(pair, Side.LOWER, fine, missed), None
    if finer == 1:
        return square
    while count:
        if count % 2:
            found = square if found is None else _product(found, square, fine, missed, slopes)
        count //= 2
        square = _product(square, square, fine, missed, slopes) if count else square
    assert found is not None
    cell, rest = np.divmod(found.low + np.arange(found.masses.size), finer)
    gap = MERGED * pair.scale
    masses, low = place(found.masses, cell, rest * fine, step=step, side=Side.LOWER, max_gap=gap)
    return _Placed(masses * (1.0 - 16.0 * ROUNDOFF), low, found.infinite)


def _product(one: _Placed, other: _Placed, step: float, missed: float, slopes: tuple[float, ...]) -> _Placed:
    """From below: of two independent losses, but for tails of `missed`."""
    laws = _aligned([_Placed(one.masses, one.low, 0.0)])
    places = other.masses.size + 2 * laws.reach - 1
    tilts = slopes if one.masses.size * other.masses.size > DIRECT_WORK else ()
    game = _Game([laws], step, places, tilts, Side.LOWER)
    masses = np.max(game.means(np.pad(other.masses, 2 * laws.reach), 0.0, 0), axis=0)
    infinite = one.infinite + other.infinite * (1.0 - one.infinite)
    first = int(np.searchsorted(np.cumsum(masses), missed))
    last = masses.size - int(np.searchsorted(np.cumsum(masses[::-1]), missed))
    low = other.low - laws.reach + first
    return _Placed(masses[first:last] * (1.0 - 8.0 * ROUNDOFF), low, infinite * (1.0 - 8.0 * ROUNDOFF))


class _Game:
    """One round more, on a lattice of losses up to `places` steps, from one side.

    Convolutions by transforms under a tilt have errors relative to the largest tilted value; each tilt gives a bound,
    so the best holds. Where values fall too far for that they are sums of nonnegative terms.
    """

    def __init__(
        self, families: Sequence[Laws], step: float, places: int, slopes: tuple[float, ...], side: Side
    ) -> None:
        from scipy import fft

        self._families, self._step, self._places = families, step, places
        self._upper, self._sign = side is Side.UPPER, 1.0 if side is Side.UPPER else -1.0
        self._reach = reach = families[0].reach
        self._decay = np.exp(-step * np.arange(1.0, reach + 1.0))
        self._rise = -np.expm1(-step * np.arange(1.0, reach + 1.0))
        self._tilts: list[tuple[Array, list[tuple[Array, Array]]]] = []
        index = np.arange(-reach, places + reach + 1.0)
        self._size = int(fft.next_fast_len(index.size, real=True))
        eta = FFT_CONSTANT * ROUNDOFF * math.log2(self._size)
        for tilt in np.unique(np.minimum(step * np.array(slopes), STEEPEST / (reach + 0.5 * places))):
            error = 4.0 * eta + ROUNDOFF * (16.0 + 8.0 * tilt * (places + 2.0 * reach))
            transforms = []
            for masses, _ in families:
                tilted = masses * np.exp(tilt * np.arange(-reach, reach + 1.0))
                transforms.append((fft.rfft(tilted, self._size), error * tilted.sum(axis=1)))
            self._tilts.append((np.exp(tilt * (index - 0.5 * places)), transforms))

    def before(self, value: Array, limit: float, other: Array, other_limit: float) -> Array:
        """The best strategy's value if one more round comes first. limit : what holds beyond the last place.

        other : of the reversed pairs; the same where they are alike.
        """
        reach, missing = self._reach, max(self._reach - self._places, 0)
        safe = 1.0 + self._sign * 8.0 * ROUNDOFF
        far = np.append(other[1:], np.full(missing, other_limit))[:reach]
        behind = (self._rise + self._decay * far) * safe
        # What holds anywhere is taken off, so that no tilt sees it beyond the last place.
        whole = np.maximum(np.concatenate((behind[::-1], value, np.full(reach, limit))) - limit, 0.0) * safe
        known = [self.means(whole, limit, k) for k in range(len(self._families))]
        if not self._upper:
            return np.asarray(np.max([mean for means in known for mean in means], axis=0) * safe)
        found = np.min([mean for means in known for mean in means], axis=0)
        return np.minimum(np.minimum.accumulate(found * safe + 1e-300), 1.0)

    def means(self, whole: Array, limit: float, k: int) -> list[Array]:
        """The largest mean over types of `whole` and a limit, once for every tilt."""
        masses, infinite = self._families[k]
        rounding = 1.0 + self._sign * ROUNDOFF * (masses.shape[1] + 8.0)
        rest = infinite + masses.sum(axis=1) * limit * rounding
        if not self._tilts:
            means = [np.convolve(whole, one, mode="valid") * rounding for one in masses]
            return [np.max(np.array(means) + rest[:, None], axis=0)]
        return [self._largest(whole * weight, *known[k], rest, weight) for weight, known in self._tilts]

    def _largest(self, whole: Array, transform: Array, error: Array, rest: Array, weight: Array) -> Array:
        """The same by transforms of tilted values."""
        from scipy import fft

        inside = slice(self._reach, self._reach + self._places + 1)
        # Squares of tilted values may underflow. What underflows elsewhere is below TINY.
        known, top = fft.rfft(whole, self._size), max(float(whole.max()), TINY)
        missing = self._sign * ((top * float(np.linalg.norm(whole / top)) * (1.0 + 1e-9) + TINY) * error + TINY)
        found, rows = np.zeros(self._places + 1), max(1, CHUNK // self._size)
        for first in range(0, error.size, rows):
            part = slice(first, first + rows)
            mean = fft.irfft(known * transform[part], self._size, axis=1)[:, 2 * self._reach :][:, : self._places + 1]
            mean = np.maximum(mean + missing[part, None], 0.0) / weight[inside] + rest[part, None]
            found = np.maximum(found, mean.max(axis=0))
        return found
