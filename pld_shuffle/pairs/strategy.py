"""Rounds whose pair is chosen as they go: the value of the best strategy, as a profile.

A type is a dataset of all others, an order of the two neighbours, a sign of a move: whatever may be chosen anew in
every round, as outputs suggest. With functions G_k, one for every type k, that bound every choice by weights which are
the same for every s, and s = e^y, the best strategy's H_s of t rounds is at most (docs/swap.md, Theorem M)

    V_t(s) = max over k of  V_(t-1)(inf) + sum_x x V_(t-1)''(x) G_k(s/x),     V_0(s) = (1 - s)_+ .

Where several families of types are proved, the least bound holds. On a lattice of y a polygon through values of V_(t-1)
lies above it, and only needs G_k at points of the lattice: the sum is a convolution, E V_(t-1)(y - L) for L of an upper
law. From below there are tests A of some choice, one for every y of the lattice: V_t(s) >= P(A) - s Q(A). One round
more takes after an outcome of loss l the test for y - l, rounded to the lattice; of all choices the one that is best at
y. A test is nearly as good at losses close to its own, so that both ends converge like the square of the step.

Below 0, V_t(-y) = 1 - e^-y + e^-y V'_t(y), with V' for the reversed pairs, and a test for -y takes what the reversed
one for y does not. Where the neighbours may be exchanged V' is V; where their order is the same in every round there
are two functions, each of which needs the other one. Either way V_T composes with all other rounds, even if these lie
in between and choose as well: a round of either list never raises the value, since the other list's law is fixed.

A round may have two independent parts, the second one the first in the other order (a user moves from one count to
another). Whoever chooses the second part as the first suggests is no weaker: so the upper end is that of twice as many
rounds; from below both parts are chosen at once.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..numerics.lattice import fast_length
from ..numerics.sides import ROUNDOFF, Array, Bounds, Side
from ..numerics.tuning import TRANSFORM_WORK
from .discrete import EitherOrder, OrderedPair
from .pair import AddedUp, Alike, Atoms, Pair, Resolution, completed
from .profile import SAME, ProfilePair, ProfilePoints, WorstPair, profile_atoms

#: Upper bounds on the profiles of types, and on those of the reversed pairs: shape (types, losses).
Types = tuple[Array, Array]
#: Types of two independent outcomes, the second one's in the other order; if there are none, all pairs.
Boxes = list[tuple[int, int]]
#: What is chosen for a round: independent outcomes.
Choice = tuple[OrderedPair, ...]

POINTS, COARSEST, FINEST = 24.0, 8.0, 288.0  # of the lattice, a scale; the last over sqrt(rounds) or 3, or 1.5
SHORT = 4.0  # scales up to the largest loss: such a lattice may be finer, and the loss counts
MISSED = (1e-15, 1e-17, 1e-25, 1e-35, 1e-50, 1e-65, 1e-80, 1e-100, 1e-130, 1e-180, 1e-300)  # that may be left out
LONGEST = 650.0  # losses of one round; beyond, the last value holds
FARTHEST = 700.0  # losses that tests tell
HULL = 300.0  # losses between the ends of hulls
TABLE = 256  # up to so many rounds a power of two of them is kept, with all rounds on the way
BLOCK = 1024  # rounds of choices given by their masses that are one strategy; between blocks all tails are there
FEWER = 128  # as many of them where many types take time
FFT_CONSTANT = 12.0  # of the rounding of transforms, as in `composition.product`
# Logarithms of values: what the next tilt may lose, the last of transforms, and the largest of weights.
TILTED, MOST_TRANSFORMED, STEEPEST = 9.0, 250.0, 600.0
WORK = (1e9, 2e10)  # operations of one table, where an attack tells the rest, and where not: width against speed
SEEN, NOISE = 1e4, 1e-3  # times what is missed: values whose relative error by transforms may be so large
DIRECT_WORK = 1e8  # multiplications up to which transforms are not worth their errors
CHUNK = 2**20  # numbers in one transform
FEW_ROWS = 8  # that are summed one by one: in small products of matrices threads mostly wait for each other
TINY = 1e-300  # more than all underflows of one
SOME = 16  # types of which errors of transforms are looked at
FEW_ROUNDS = 32  # over which what rounding does to a mean hardly adds up
LINES = 200.0  # points of a lower end in a scale of all rounds


class Laws(NamedTuple):
    """Laws on one lattice: masses at -M step ... M step of shape (laws, 2 M + 1), and at infinity."""

    masses: Array
    infinite: Array

    @property
    def reach(self) -> int:
        return int(self.masses.shape[1] // 2)

    def times(self, other: Laws, boxes: Boxes) -> Laws:
        """Products with independent laws; what lies beyond the lattice is infinite, or at its lower end."""
        reach, rows, infinite = self.reach, [], []
        more = 1.0 + ROUNDOFF * (8.0 * reach + 16.0)
        for i, k in boxes or itertools.product(range(len(self.masses)), repeat=2):
            row, (lost, gone) = np.convolve(self.masses[i], other.masses[k]), (self.infinite[i], other.infinite[k])
            row[reach] += row[:reach].sum()
            rows.append(more * row[reach:-reach])
            beyond = row[-reach:].sum() + lost * (other.masses[k].sum() + gone) + gone * self.masses[i].sum()
            infinite.append(more * beyond)
        return Laws(np.array(rows), np.array(infinite))


@dataclass(frozen=True)
class Strategy(AddedUp):
    """`rounds` rounds of a pair whose types are chosen as they go.

    one : a `ProfilePair` of one round, whatever its type, that has

    * `types(expm1_eps)`: families of `Types` at growths e^y - 1, each of them proved, and closed under exchange of the
      neighbours. The upper end is theirs.
    * `choices`, each of them independent `OrderedPair`s, and with each its reverse: some that may be chosen. The lower
      end is theirs. If there are none lower atoms are the upper ones, less rounding, and an attack has to tell how far
      the truth is below.
    * `finest`: points of the lattice in a scale, at most; `least`: for up to `FEW_ROUNDS` rounds at least.
    * `thinned`: of as many choices one is kept over more rounds.
    * `boxes`: None, or which products of two types, the second one reversed, the types of a round of two outcomes are.

    If its order is the same in all rounds it says whether it is `back`, the other order, which is its `reverse`, and
    nothing has to be closed under exchange. If a round has two parts, `parts` are these, and they have the types.
    """

    one: Any
    rounds: int

    @property
    def parts(self) -> tuple[tuple[Pair, int], ...]:  # type: ignore[override]
        return ((self.one, self.rounds),)

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
        finest = min(one.finest, FINEST / min(math.sqrt(rounds), 1.5 if ends_soon(one) else 3.0))
        least = one.least if rounds <= FEW_ROUNDS else POINTS
        wanted = max(least, _even(min(self.scale / resolution.points[0], finest), round))
        return [_atoms(one, rounds, wanted, missed, side) for side in sides]


@lru_cache(maxsize=16)
def _atoms(one: Any, rounds: int, wanted: float, missed: float, side: Side) -> Atoms:
    orders = (one,) if one.reverse is None else (one.reverse, one) if one.back else (one, one.reverse)
    way = -1 if orders[0] is not one else 1  # both orders have one table
    points, proved = _proved(orders, rounds, wanted, missed)
    if side is Side.LOWER and one.choices:
        lower = _attained(orders, rounds, points, missed)[::way]
        return profile_atoms(lower[0], lower[-1], side)
    found = _upper_atoms(_lattice(orders)[0].scale / points, proved[::way])
    if side is Side.UPPER:
        return found
    less = replace(found, mass=found.mass * SAME, infinity_mass=found.infinity_mass * SAME, total=None)
    return completed(less, side) if one.reverse is None else less


def ends_soon(one: Any) -> bool:
    """Whether few scales lead to the largest loss."""
    return float(one.max_loss.upper) < SHORT * float(one.scale)


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
    finest, least, thinned, boxes = FINEST, POINTS, 1, None

    @cached_property
    def choices(self) -> tuple[Choice, ...]:
        """Each order by itself: a strategy that keeps to it."""
        return tuple((order,) for pair in self.pairs for order in pair.ordered[: len(pair.orders)])

    def types(self, expm1_eps: Array) -> list[Types]:
        rows = np.array([[order.profile(expm1_eps).upper for order in pair.ordered] for pair in self.pairs])
        return [(np.concatenate((rows[:, 0], rows[:, 1])), np.concatenate((rows[:, 1], rows[:, 0])))]

    @property
    def top_mass(self) -> float:
        return self.pairs[0].top_mass if len(self.pairs) == 1 else 0.0

    def repeated(self, count: int) -> list[tuple[Pair, int]]:
        return in_blocks(self, count, BLOCK)


@dataclass(frozen=True)
class InOrder(Alike, ProfilePair):
    """One order of datasets that are chosen anew in every round, the order being the same in all of them.

    datasets : what says `worst`, the worst of them at every epsilon, all there is in one round; and over rounds
    `ranges`, pairs in both orders that dominate the datasets of one range each, none if there is nothing to choose, and
    `some` of the datasets.
    """

    datasets: Any
    back: bool = False
    pointwise = False
    # There are many types; of several lattices the last one tells most.
    finest, least, thinned, boxes = POINTS, 68.0, 4, None

    @property
    def reverse(self) -> InOrder:  # type: ignore[override]
        return replace(self, back=not self.back)

    @property
    def choices(self) -> list[Choice]:
        return [(both[self.back],) for both in self.datasets.some]

    def types(self, expm1_eps: Array) -> list[Types]:
        return [(both[self.back], both[not self.back]) for both in _profiles(self.datasets, expm1_eps.tobytes())]

    @cached_property
    def like(self) -> EitherOrder:  # type: ignore[override]
        """One round: the worst dataset at every epsilon."""
        worst: EitherOrder = self.datasets.worst
        return replace(worst, orders=(worst.orders[-self.back],))

    @property
    def infinity_mass(self) -> float:
        return self.like.infinity_mass

    def profile(self, expm1_eps: Array, rtol: float, truncated_mass: float) -> Bounds:
        return self.like.profile(expm1_eps, rtol, truncated_mass)

    def repeated(self, count: int) -> list[tuple[Pair, int]]:
        if count > 1 and self.datasets.ranges:
            return in_blocks(self, count, FEWER)
        return [(self.datasets.worst.ordered[self.back], count)]


@dataclass(frozen=True)
class BothWays(AddedUp):
    """One count in either order at once, independently: as one number rises, another one falls.

    datasets : as `InOrder` has it; and what says `together`, choices of both parts, with each its reverse.
    attacked : whether an attack tells how far the truth is below; else the lower end is that of these choices.
    """

    datasets: Any
    attacked: bool = False
    reverse = None
    finest, least, thinned, boxes = POINTS, POINTS, 1, None

    @cached_property
    def parts(self) -> tuple[tuple[Pair, int], ...]:  # type: ignore[override]
        one = InOrder(self.datasets)
        return (one, 1), (one.reverse, 1)

    @property
    def choices(self) -> list[Choice]:
        return [] if self.attacked else self.datasets.together

    @property
    def infinity_mass(self) -> float:
        return max(pair.infinity_mass for pair, _ in self.parts)

    def atoms(self, sides: Sequence[Side], resolution: Resolution) -> list[Atoms]:
        return Strategy(self, 1).atoms(sides, resolution)

    def repeated(self, count: int) -> list[tuple[Pair, int]]:
        blocks = in_blocks(self, count, FEWER)
        return [(Strategy(self, 1) if pair is self else pair, times) for pair, times in blocks]


def _upper_atoms(step: float, values: Sequence[Array]) -> Atoms:
    """The pair of the hulls of values at 0, step, ..., in each order; losses may be larger than exponentials can be."""
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
    parts = _lattice(orders)
    steps = rounds * len(parts) // len(orders)
    known = steps if steps > TABLE else 1 << (steps - 1).bit_length()  # a few tables serve all numbers of rounds
    points, values = _values(parts, known, points, missed, parts is not orders)
    found = values[min(steps, len(values)) - 1]
    if parts is not orders:  # either part may come first
        found = [_symmetric(np.minimum(*found), parts[0].scale / points)]
    return points, found


def _lattice(orders: tuple[Any, ...]) -> tuple[Any, ...]:
    """The orders, or the parts of a round, whose laws are put on the lattice."""
    return tuple(one for one, _ in orders[0].parts) if isinstance(orders[0], BothWays) else orders


@lru_cache(maxsize=4)
def _values(
    orders: tuple[Any, ...], rounds: int, points: float, missed: float, turning: bool
) -> tuple[float, list[list[Array]]]:
    """Points there is time for; upper bounds on V_1, V_2, ... at losses 0, step, ..., of many rounds on the last.

    turning : whether both orders follow each other.
    """
    reach, end, slopes = _steered(orders, rounds, missed)
    one = orders[0]
    step = one.scale / points
    every = _upper_laws(orders, step, reach)
    size = every[0][0].reach
    sums = rounds * sum(law.infinite.size for laws in every for law in laws) * (end / step + 2.0 * size)
    tilts = slopes if sums * size > DIRECT_WORK else ()
    # Multiplications of direct sums take less time than those of transforms.
    room = WORK[bool(one.choices)] / (sums * (3.0 * TRANSFORM_WORK * len(tilts) or 0.25 * size))
    if room < 1.0 and points > COARSEST:
        return _values(orders, rounds, _even(points * room ** (1.0 if tilts else 0.5), math.floor), missed, turning)
    places = max(math.ceil(end / step), size)
    games = [_Game(laws, step, places, tilts, Side.UPPER) for laws in every]
    loss, values = step * np.arange(places + 1.0), [np.zeros(places + 1) for _ in games]
    # What is left out as infinite is as much at every loss beyond the reach, and is taken off: it must not end.
    tops = [
        math.inf if any(law.infinite.any() for law in laws) else float(one.max_loss.upper) * (1.0 + 1e-12)
        for one, laws in zip(orders, every, strict=True)
    ]
    found: list[list[Array]] = []
    for done in range(1, rounds + 1):
        values = values[::-1] if turning else values
        values = [
            game.before(value, float(value[-1]), other, float(other[-1]))
            for game, value, other in zip(games, values, values[::-1], strict=True)
        ]
        for top, value in zip(tops, values, strict=True):
            value[loss >= done * (max(tops) if turning else top)] = 0.0
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
    known = np.array([one.profile(np.expm1(asked), 1e-2, 0.1 * missed / rounds).upper for one in orders])
    ended = known <= known[:, -1:] * (1.0 + 1e-6) + missed / rounds  # what is at infinity stays
    reach = float(asked[np.argmax(ended.all(axis=0))])
    step = scale / COARSEST
    every = _upper_laws(orders, step, reach)
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
    noisy = bool(orders[0].choices) and any(
        _noisy(laws, step, math.ceil(end / step), tuple(found), rounds, missed) for laws in every
    )
    return reach, end, () if noisy else tuple(found)


def _noisy(laws: list[Laws], step: float, places: int, tilts: tuple[float, ...], rounds: int, missed: float) -> bool:
    """Whether errors of transforms show under these tilts: log V is not concave where single losses are most of it."""
    some = [Laws(*(rows[:: 1 + len(rows) // SOME] for rows in law)) for law in laws]
    upper, lower = (_Game(some, step, places, tilts, side) for side in (Side.UPPER, Side.LOWER))
    last = value = np.zeros(places + 1)
    for _ in range(rounds):
        last, value = value, upper.before(value, value[-1], value, value[-1])
    seen = value > SEEN * missed
    return bool(np.any(value[seen] > (1.0 + NOISE / rounds) * lower.before(last, last[-1], last, last[-1])[seen]))


@lru_cache(maxsize=2)
def _profiles(datasets: Any, growths: bytes) -> list[tuple[Array, Array]]:
    """Of either family upper bounds on the profiles of the pairs, and of the reversed ones: both orders want them."""
    expm1_eps = np.frombuffer(growths)
    found = []
    for some in (datasets.ranges, [datasets.worst.ordered]):
        known = np.array([[one.profile(expm1_eps).upper for one in both] for both in some])
        found.append((known[:, 0], known[:, 1]))
    return found


def _upper_laws(orders: Sequence[Any], step: float, reach: float) -> list[list[Laws]]:
    """Of every order, of every family; all of one reach."""
    loss = step * np.arange(math.ceil(reach / step) + 2.0)
    # A little earlier than the lattice's points, because profiles fall.
    growth = np.expm1(loss) * (1.0 - 16.0 * ROUNDOFF * (1.0 + loss))
    ended = loss >= max(float(one.max_loss.upper) for one in orders) * (1.0 + 1e-12)
    found = []
    for one in orders:
        laws = []
        for both in one.types(growth):
            ahead, behind = (np.where(ended, 0.0, values) for values in both)
            first = Laws(*lattice_laws(ahead, behind, step))
            if one.boxes is not None:
                first = first.times(Laws(*lattice_laws(behind, ahead, step)), one.boxes)
            laws.append(first)
        found.append(laws)
    return found


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


def _symmetric(values: Array, step: float) -> Array:
    """The largest convex function below bounds on a symmetric pair's profile and what follows from them for s < 1."""
    loss = step * np.arange(float(values.size))
    behind = (-np.expm1(-loss[1:]) + np.exp(-loss[1:]) * values[1:]) * (1.0 + 8.0 * ROUNDOFF)
    return hull(np.append(-loss[:0:-1], loss), np.append(behind[::-1], values))[values.size - 1 :]


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
    """V_rounds from both sides, below by the tests of a strategy that chooses anew in every round.

    The points are as far apart as their lines need, which start at an upper value and end at a lower one.
    """
    parts, proved = _lattice(orders), _proved(orders, rounds, points, missed)[1]
    scale, times = parts[0].scale, len(parts) // len(orders)
    step, places = scale / points, proved[0].size - 1
    reach, _, slopes = _steered(parts, rounds * times, missed)
    coins = rounds > FEW_ROUNDS
    thin = orders[0].thinned if coins else 1
    every = [_labelled(one.choices[::thin], step, math.ceil(reach / step), missed / rounds, coins) for one in orders]
    sums = rounds * sum(laws.infinite.size * (places + 2.0 * laws.reach) for laws in every)
    tilts = slopes if sums * every[0].reach > DIRECT_WORK else ()
    games = [_Tests(laws, step, places, tilts) for laws in every]
    known = [Tests(np.zeros(places + 1), np.zeros(places + 1), 0.0) for _ in orders]
    for _ in range(rounds):
        both = zip(known, known[::-1], strict=True)
        known = [game.before(*tests) for game, tests in zip(games, both, strict=True)]
    apart = max(1, int(scale * math.sqrt(rounds) / (step * LINES)))
    loss, found = step * np.arange(places + 1.0), []
    told = slice(0, int(np.count_nonzero(loss < FARTHEST)), apart)
    for tests, high in zip(known, proved, strict=True):
        low = np.maximum(tests.power - tests.level * (1.0 + ROUNDOFF * (16.0 + 16.0 * loss)), tests.limit)
        low *= 1.0 - 8.0 * ROUNDOFF
        found.append(ProfilePoints(np.expm1(loss[told]), low[told], high[told], tests.limit))
    return found


class Tests(NamedTuple):
    """A test at every loss y = 0, step, ...: its P-mass at least, its Q-mass at most, times e^y.

    limit : P-mass of the test of what is certain to tell the datasets apart, which has no Q-mass.
    """

    power: Array
    level: Array
    limit: float


class _Labelled(NamedTuple):
    """Outcomes at multiples of a step next to their losses, for every choice: shape (choices, 2 M + 1).

    ahead : P-masses from below. behind : Q-masses from above, times e^multiple. infinite : P-masses from below.
    """

    ahead: Array
    behind: Array
    infinite: Array

    @property
    def reach(self) -> int:
        return int(self.ahead.shape[1] // 2)


def _labelled(choices: Sequence[Choice], step: float, reach: int, missed: float, coins: bool) -> _Labelled:
    """No test takes what is left out, `missed` at most. coins : throw one that keeps the mean, not to the nearest.

    Outcomes of several parts stand at the sums of their multiples.
    """
    known = {part: _labels(part, step, reach, missed, coins) for choice in choices for part in choice}
    rows = []
    for choice in choices:
        ahead, behind, infinite = known[choice[0]]
        for part in choice[1:]:
            p, q, more = known[part]
            rounding = ROUNDOFF * (p.size + 2.0)
            ahead, behind = _together(ahead, p) * (1.0 - rounding), _together(behind, q) * (1.0 + rounding)
            infinite = (infinite + more * (1.0 - infinite)) * (1.0 - 4.0 * ROUNDOFF)
        rows.append((ahead, behind, infinite))
    return _Labelled(*(np.array(column) for column in zip(*rows, strict=True)))


def _together(one: Array, other: Array) -> Array:
    """Their convolution, of nonnegative terms where there are any."""
    found = np.zeros(one.size + other.size - 1)
    first, second = np.flatnonzero(one), np.flatnonzero(other)
    if first.size and second.size:
        start, end = first[0] + second[0], first[-1] + second[-1] + 1
        found[start:end] = np.convolve(one[first[0] : first[-1] + 1], other[second[0] : second[-1] + 1])
    return found


def _labels(pair: OrderedPair, step: float, reach: int, missed: float, coins: bool) -> tuple[Array, Array, float]:
    """One row of `_Labelled`, of a pair alone."""
    atoms = pair.losses.atoms(Side.LOWER, pair.truncated_mass, pair.mass_error, missed)
    place = np.clip(atoms.loss / step, -float(reach), reach - 1.0)
    up = place - np.floor(place) if coins else np.rint(place - np.floor(place))
    doubt = 6.0 * (pair.losses.error + pair.mass_error) + ROUNDOFF * (16.0 + 8.0 * np.abs(atoms.loss))
    ahead, behind = np.zeros((2, 2 * reach + 1))
    for label, share in ((np.floor(place), 1.0 - up), (np.floor(place) + 1.0, up)):
        index, mass = label.astype(np.int64) + reach, share * atoms.mass
        ahead += np.bincount(index, mass, 2 * reach + 1)
        behind += np.bincount(index, mass * np.exp(label * step - atoms.loss + doubt), 2 * reach + 1)
    rounding = ROUNDOFF * (16.0 + up.size)
    return ahead * (1.0 - rounding), behind * (1.0 + rounding), atoms.infinity_mass


class _Tests:
    """One round more, from below: after every outcome the test that is best at the multiple it stands at.

    Whatever multiples outcomes stand at, these are tests of a strategy. The best test at a loss is nearly the best one
    at losses close to it, so what is lost falls like the square of the step.
    """

    def __init__(self, laws: _Labelled, step: float, places: int, slopes: tuple[float, ...]) -> None:
        self._laws = laws
        self._sums = [_Sums(masses, step, places, slopes) for masses in (laws.ahead, laws.behind)]
        loss = step * np.arange(1.0, laws.reach + 1.0)
        self._decay = np.exp(-loss) * (1.0 + ROUNDOFF * (4.0 + 4.0 * loss))

    def before(self, here: Tests, other: Tests) -> Tests:
        """other : of the reversed pairs. The test for -y takes what the other one for y does not."""
        laws, rounding, reach = self._laws, 16.0 * ROUNDOFF, self._laws.reach
        missing = np.zeros(max(reach + 1 - other.power.size, 0))
        taken = np.append(other.level[1:], missing)[:reach] * self._decay * (1.0 + rounding)
        left = self._decay * (1.0 - np.append(other.power[1:], missing + other.limit)[:reach])
        power = np.concatenate(((1.0 - taken)[::-1], here.power, np.full(reach, here.limit)))
        level = np.concatenate((left[::-1], here.level, np.zeros(reach))) * (1.0 + rounding)
        # What holds anywhere is taken off, so that no tilt sees it beyond the last place. Where it is more it is taken.
        better = power - level > here.limit
        power, level = np.where(better, power - here.limit, 0.0) * (1.0 - rounding), np.where(better, level, 0.0)
        held = laws.ahead.sum(axis=1) * (1.0 - ROUNDOFF * laws.ahead.shape[1]) * here.limit
        sure = (held + laws.infinite) * (1.0 - rounding)
        found = Tests(np.zeros(here.power.size), np.zeros(here.power.size), float(sure.max()))
        for tilt in range(self._sums[0].tilts):
            ways = (self._sums[k].under(tilt, one, sign) for k, one, sign in ((0, power, -1.0), (1, level, 1.0)))
            for (part, p), (_, q) in zip(*ways, strict=True):
                p = p + sure[part, None]
                best = np.argmax(p - q, axis=0)[None]
                p, q = (np.take_along_axis(one, best, 0)[0] for one in (p, q))
                better = p - q > found.power - found.level
                found = Tests(np.where(better, p, found.power), np.where(better, q, found.level), found.limit)
        return found


class _Game:
    """One round more, on a lattice of losses up to `places` steps, from one side."""

    def __init__(
        self, families: Sequence[Laws], step: float, places: int, slopes: tuple[float, ...], side: Side = Side.UPPER
    ) -> None:
        self._families, self._places = families, places
        self._sign, self._best = (1.0, np.min) if side is Side.UPPER else (-1.0, np.max)
        self._reach = reach = families[0].reach
        self._decay = np.exp(-step * np.arange(1.0, reach + 1.0))
        self._rise = -np.expm1(-step * np.arange(1.0, reach + 1.0))
        self._sums = [_Sums(laws.masses, step, places, slopes) for laws in families]

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
        found = []
        for (masses, infinite), sums in zip(self._families, self._sums, strict=True):
            rest = infinite + masses.sum(axis=1) * limit * (1.0 + self._sign * ROUNDOFF * (masses.shape[1] + 8.0))
            for tilt in range(sums.tilts):
                rows = sums.under(tilt, whole, self._sign)
                found.append(np.max([np.max(mean + rest[part, None], axis=0) for part, mean in rows], axis=0))
        return np.minimum(np.minimum.accumulate(self._best(found, axis=0) * safe + 1e-300), 1.0)


class _Sums:
    """Means of what lies on a lattice, one for every row of masses, moved to one side by their errors.

    Convolutions by transforms under a tilt have errors relative to the largest tilted value; each tilt gives a bound,
    so the best holds. Where values fall too far for that they are sums of nonnegative terms.
    """

    def __init__(self, masses: Array, step: float, places: int, slopes: tuple[float, ...]) -> None:
        self._masses, self._places, self._reach = masses, places, masses.shape[1] // 2
        reach = self._reach
        index = np.arange(-reach, places + reach + 1.0)
        self._size = fast_length(index.size)
        eta = FFT_CONSTANT * ROUNDOFF * math.log2(self._size)
        self._tilts: list[tuple[Array, Any, Array]] = []
        for tilt in np.unique(np.minimum(step * np.array(slopes), STEEPEST / (reach + 0.5 * places))):
            error = 4.0 * eta + ROUNDOFF * (16.0 + 8.0 * tilt * (places + 2.0 * reach))
            tilted = masses * np.exp(tilt * np.arange(-reach, reach + 1.0))
            weight = np.exp(tilt * (index - 0.5 * places))
            self._tilts.append((weight, np.fft.rfft(tilted, self._size), error * tilted.sum(axis=1)))
        self.tilts = len(self._tilts) or 1

    def under(self, tilt: int, whole: Array, sign: float) -> Iterator[tuple[slice, Array]]:
        """By one of so many `tilts`, some rows after the other. whole : from -M to M steps beyond the last place."""
        reach, places = self._reach, self._places
        if not self._tilts:
            size = self._masses.shape[1]
            if len(self._masses) <= FEW_ROWS:
                means = np.array([np.convolve(whole, row, "valid") for row in self._masses])
            else:
                means = np.empty((len(self._masses), places + 1))
                windows = np.lib.stride_tricks.sliding_window_view(whole[::-1], size)[::-1]
                for first in range(0, places + 1, max(1, CHUNK // size)):
                    part = slice(first, first + max(1, CHUNK // size))
                    means[:, part] = self._masses @ np.ascontiguousarray(windows[part]).T
            yield slice(None), means * (1.0 + sign * ROUNDOFF * (size + 8.0))
            return
        weight, transform, error = self._tilts[tilt]
        tilted = whole * weight
        # Squares of tilted values may underflow. What underflows elsewhere is below TINY.
        known, top = np.fft.rfft(tilted, self._size), max(float(tilted.max()), TINY)
        missing = sign * ((top * float(np.linalg.norm(tilted / top)) * (1.0 + 1e-9) + TINY) * error + TINY)
        rows = max(1, CHUNK // self._size)
        for first in range(0, error.size, rows):
            part = slice(first, first + rows)
            mean = np.fft.irfft(known * transform[part], self._size, axis=1)[:, 2 * reach :][:, : places + 1]
            with np.errstate(over="ignore"):  # an infinite upper bound says nothing
                mean = np.maximum(mean + missing[part, None], 0.0) / weight[reach : reach + places + 1]
            yield part, mean
