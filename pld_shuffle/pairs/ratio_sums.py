"""The sum of independent likelihood ratios as a finite law on a side: doubled, and doubled again.

X = dP/dQ of one step under Q, S the sum of k copies. The pair of a contribution that is hidden in one of the k steps is
the law of S/k under Q: H_s = E(S/k - s)_+ in one order, E(1 - s S/k)_+ in the other (`allocation`). One law answers
both orders at every s. Epochs are products of such sums.

After every addition and multiplication the values are put on knots: spread to the two knots around them (upper), or
merged in cells (lower). Either side is kept by whatever comes after, so the last law is on its side, whatever the knots
are (docs/shuffled_batches.md, section 4, Lemma 4). Knots decide the width only: they have the density (q g)^(1/3) for
the masses q of a cell and the bend g that what comes after has there, by a look at coarse laws.

Values are centred, V = S - k. Rounding: masses to `error`, relative; values to `drift` (S + k), absolute.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from ..numerics.compiled import kernel
from ..numerics.sides import ROUNDOFF, Array, Side, total
from .pair import Atoms

FEW = 1024  # steps of a law whose errors would be counted often
RUN = 64  # sums of one row in one cell that are added before they are added to the others
FAR, NEAR, OCTAVES = 12.0, 121, 101  # deviations that are looked at evenly, and points there and beyond
DENSE = 3.0  # points for each factor of e, where there is a strike
NOUGHT = 1e-9  # of S/count; octaves end there
SAME = 1e-12  # relative distance of sums that are one
SMALLEST, FAINT = 1e-140, 1e5  # factor of a product; and of an epoch, over its drift
LEAST = 1e-12  # of S/count; smaller ones have an infinite loss in one order, and none in the other
STEEP = 0.2  # distance of logarithms of products that are looked at, at most
Operation = tuple[int, int, bool]  # two laws, and whether they are multiplied; the result is the next law
FEWEST = 250  # knots where their number depends on what is wanted
EVERYWHERE = (0.1, 0.25)  # of knots that go wherever the logarithm of a value changes: for one s well, otherwise


@dataclass(frozen=True, eq=False)
class RatioLaw:
    """A law of V = S - steps on a side.

    value, mass : ascending, and under Q. infinite : what the mean has at infinity, of `steps` in all. A law of products
    has steps = 0, values S/k themselves, none below 0, and a drift relative to them; lost : by how much the mean
    of an upper law is too large at most, of `steps` in all, and Q-mass that factors leave out: what a put may lack.
    whole : whether the masses of the law that this one stands for add up to 1 exactly.
    parts : of a law that is only asked for its profile, whose sum or product it is; value and mass are theirs, then.
    """

    steps: int
    value: Array
    mass: Array
    infinite: float
    error: float
    drift: float
    lost: float = 0.0
    whole: bool = False
    parts: tuple[RatioLaw, RatioLaw] | None = None

    @property
    def ratio(self) -> Array:
        """The values of S over the number of steps."""
        return 1.0 + self.value / self.steps if self.steps else self.value

    def ratios(self, tail: float, side: Side) -> RatioLaw:
        """To be multiplied: P-mass of the largest values, and Q-mass of the smallest, up to `tail` are left out."""
        value, mass, steps = self.ratio, self.mass, max(1, self.steps)
        least = max(LEAST, FAINT * self.drift) if self.steps else SMALLEST
        first = max(int(np.searchsorted(np.cumsum(mass), tail)), int(np.searchsorted(value, least)))
        last = int(np.count_nonzero(np.cumsum((mass * value)[::-1])[::-1] > tail))
        lost = (float(np.sum(mass[:first])) + float(np.sum(mass[last:]))) * (1.0 + 1e-6)
        gone = (float(mass[:first] @ np.maximum(value[:first], 0.0)) + float(mass[last:] @ value[last:])) * (1.0 + 1e-6)
        drift = self.drift
        if self.steps:
            drift = 1.01 * (drift + 4.0 * ROUNDOFF) * (1.0 + 1.0 / float(value[first]))
        gone += drift * (gone + lost)
        if side is Side.LOWER:
            lost = gone = 0.0
        infinite, lost = self.infinite / steps + gone, self.lost / steps + lost
        return RatioLaw(0, value[first:last], mass[first:last], infinite, self.error, drift, lost)

    @classmethod
    def of(cls, rows: Array, top: int, error: float) -> RatioLaw:
        """One step, from masses in rows: those of P in row `top`, those of Q in the last one."""
        ahead, others = rows[top], rows[-1]
        held = others > 0.0
        value = (ahead[held] - others[held]) / others[held]
        order = np.argsort(value, kind="stable")
        infinite = float(np.sum(ahead[~held]))
        return cls(1, value[order], others[held][order], infinite, error + ROUNDOFF, 2.0 * error + 4.0 * ROUNDOFF)

    def lifted(self) -> RatioLaw:
        """Of an upper law: mass of ratio 0 has the next ratio, since drifts and cells are relative to the values."""
        if self.value[0] > -self.steps:
            return self
        value, mass = self.value[1:], self.mass[1:].copy()
        mass[0] += self.mass[0]
        lost = float(self.mass[0] * (value[0] + self.steps)) * (1.0 + 1e-6)
        return replace(self, value=value, mass=mass, lost=self.lost + lost)

    def settled(self, mass: float, doubt: float) -> RatioLaw:
        """With a total mass that is known, `doubt` of its error is a move of values instead, and does not add up.

        Of a whole law all of the error is, as its mass is 1. Lemma 5 of docs/shuffled_batches.md.
        """
        mass, doubt = (1.0, self.error) if self.whole else (mass, doubt)
        away = np.abs(self.value)
        far = float(np.max(away / (self.value + 2.0 * self.steps)))
        known = total(self.mass)
        far += 2.0 * float(self.mass @ away) / known / self.steps
        drift = self.drift + 2.02 * doubt * far
        scaled = self.mass * (mass / known)
        return replace(self, mass=scaled, error=max(0.0, self.error - doubt) + 8.0 * ROUNDOFF, drift=drift)

    def beside(self, other: RatioLaw, times: bool = False) -> RatioLaw:
        """The law of the sum, or of the product, of which only the profile is known."""
        drift = self.drift + other.drift if times else max(self.drift, other.drift)
        both = self.infinite * other.infinite if times else 0.0
        return RatioLaw(
            self.steps + other.steps, self.value, self.mass, self.infinite + other.infinite - both,
            (self.error + other.error) * (1.0 + 1e-6), drift + 4.0 * ROUNDOFF, self.lost + other.lost,
            self.whole and other.whole, (self, other),
        )  # fmt: skip

    def plus(self, other: RatioLaw, knots: Array, side: Side, times: bool = False) -> RatioLaw:
        """The law of the sum, or of the product, on the knots that lie inside of its range."""
        x, y = self.value, other.value
        low, high = (x[k] * y[k] if times else x[k] + y[k] for k in (0, -1))
        knots = np.concatenate(([low], knots[(knots > low) & (knots < high)], [high] if high > low else []))
        upper = side is Side.UPPER and knots.size > 1
        ends = knots if upper else np.append(knots[0], 0.5 * (knots[1:] + knots[:-1]))
        mass, moment, longest = np.empty(knots.size), np.empty(knots.size), np.zeros(2)
        block = max(4, round(math.sqrt(0.5 * x.size)))  # rows, likewise
        _added(x, self.mass, y, other.mass, self is other, times, block, ends, mass, moment, longest)
        if upper:
            right = np.minimum(mass[:-1], np.maximum(0.0, moment[:-1] / np.diff(ends)))
            mass[:-1] -= right
            mass[1:] += right
        held = mass > 0.0
        value = knots[held] if upper else ends[held] + moment[held] / mass[held]
        terms = float(longest.sum()) + block + x.size / block
        depth = 3.0 * (terms + 16.0) * ROUNDOFF
        # Means are rounded like the widths of cells; here relative to what drifts are relative to.
        widths = np.diff(ends, append=high)
        widths /= np.maximum(widths, ends + 2.0 * (self.steps + other.steps)) + 1e-300
        both = self.beside(other, times)
        drift = both.drift + depth * float(widths.max())
        return replace(both, value=value, mass=mass[held], error=both.error + depth, drift=drift, parts=None)

    def profile(self, side: Side, expm1_eps: float, backward: bool) -> float:
        """H_s at s = 1 + expm1_eps of (P, Q), or of (Q, P), on the side."""
        sign = 1.0 if side is Side.UPPER else -1.0
        drift, count = self.drift + 8.0 * ROUNDOFF, max(1, self.steps)
        # The strike moves towards 0.
        moved, s = sign * drift * (2.2 if self.steps else 1.1), 1.0 + expm1_eps
        if backward:
            strike = count * (moved - expm1_eps / s) if self.steps else (1.0 + moved) / s
        else:
            strike = count * (expm1_eps - moved * s) if self.steps else s * (1.0 - moved)
        found, depth = self._beyond(strike, backward)
        found *= (1.0 + sign * (self.error + drift + 2.0 * (depth + 4.0) * ROUNDOFF)) / count
        return found * s + self._left(side)[1] if backward else found + self._left(side)[0]

    def _beyond(self, strike: float, backward: bool) -> tuple[float, int]:
        """E(V - strike)_+ or, backward, E(strike - V)_+, and how many positive numbers are added in turn."""
        if self.parts is None:
            away = strike - self.value if backward else self.value - strike
            return float(self.mass @ np.maximum(away, 0.0)), self.value.size
        one, other = self.parts
        at, weight = (strike - one.value, one.mass) if self.steps else (strike / one.value, one.mass * one.value)
        value, mass = other.value, other.mass
        if backward:
            at, weight, value, mass = -at[::-1], weight[::-1].copy(), -value[::-1], mass[::-1].copy()
        return beyond(at, weight, value, mass), 2 * (one.value.size + other.value.size)

    def _left(self, side: Side) -> tuple[float, float]:
        """P-mass at infinite loss, and what a put lacks."""
        factor = 1.0 + (1.0 if side is Side.UPPER else -1.0) * (self.error + self.drift + 4.0 * ROUNDOFF)
        return self.infinite / max(1, self.steps) * factor, self.lost / max(1, self.steps) * factor

    def atoms(self, side: Side, backward: bool, tail: float) -> Atoms:
        """Atoms of (P, Q), or of (Q, P), on the side; P-masses of up to `tail` at either end are put aside."""
        upper = side is Side.UPPER
        sign = 1.0 if upper is not backward else -1.0  # of what values are moved by
        drift = self.drift + 8.0 * ROUNDOFF
        excess = self.value / self.steps if self.steps else self.value - 1.0
        excess = excess + sign * drift * (2.0 + np.abs(excess) if self.steps else 2.0 * self.value)
        held = excess > LEAST - 1.0
        mass = self.mass * (1.0 + (1.0 if upper else -1.0) * (self.error + 8.0 * ROUNDOFF))
        infinite, lost = self._left(side)
        gone = float(np.sum(mass[~held])) + lost
        mass, excess = mass[held], excess[held]
        loss = np.log1p(excess)
        if backward:
            mass, loss, infinite = mass[::-1], -loss[::-1], gone if upper else 0.0
            if gone > tail and not upper:
                mass, loss = np.append(mass, gone), np.append(loss, -math.log(LEAST) * (1.0 - 1e-15))
        else:
            mass, infinite = mass * (1.0 + excess), infinite + (gone * LEAST if upper else 0.0)
        below, above = np.cumsum(mass), np.cumsum(mass[::-1])[::-1]
        first = min(int(np.searchsorted(below, tail)), mass.size - 1)
        last = max(int(np.count_nonzero(above > tail)), first + 1)
        rest = [float(np.sum(mass[:first])), float(np.sum(mass[last:]))]
        mass, loss = mass[first:last].copy(), loss[first:last]
        if upper:  # the lowest losses rise, the highest are revealed
            mass[0] += rest[0]
            infinite += rest[1]
        else:  # the highest losses fall
            mass[-1] += rest[1]
        error = 16.0 * ROUNDOFF * max(1.0, float(np.abs(loss).max()))
        return Atoms(mass, loss, infinite, loss_error=error, separate=True)


NOTHING = RatioLaw(0, np.zeros(1), np.ones(1), 0.0, 0.0, 0.0, whole=True)


@kernel("1 1 1 1 b b i 1 o1 o1 o1", lambda x, p, y, *rest: 4e-7 * x.size * y.size, error_model="numpy")
def _added(x, p, y, q, same, times, block, ends, mass, moment, longest):
    """Fill mass of sums or products, and their moment from its end, in cells that begin at `ends`.

    same : y is x, and pairs are taken once. longest : the most sums in a run, up to RUN of a row in a cell, and the
    most runs in a cell of a block beyond one for each row. Runs are added first, then those of a block, then blocks.
    """
    m = ends.shape[0]
    n = y.shape[0]
    some = np.zeros(m)  # masses and moments of a block
    lever = np.zeros(m)
    more = np.zeros(m)
    edge = np.full(m + 1, math.inf)
    for c in range(m):
        edge[c] = ends[c]
        mass[c] = 0.0
        moment[c] = 0.0
    start = 0
    lowest = 0
    most = 0
    runs = 0.0
    for i in range(x.shape[0]):
        begun = i if same else 0
        slope, shift = (x[i], 0.0) if times else (1.0, x[i])
        value = slope * y[begun] + shift
        while edge[start + 1] <= value:
            start += 1
        c = start
        if i % block == 0:
            lowest = start
        weight = 2.0 * p[i] if same else p[i]
        total = -0.5 * q[begun] if same else 0.0  # a pair of equals is there once
        away = total * (value - edge[c])
        for j in range(begun, n):
            value = slope * y[j] + shift
            if edge[c + 1] <= value or j - begun == RUN:
                some[c] += weight * total
                lever[c] += weight * away
                total = 0.0
                away = 0.0
                most = max(most, j - begun)
                begun = j
                if value < edge[c + 1]:
                    more[c] += 1.0
                while edge[c + 1] <= value:
                    c += 1
            total += q[j]
            away += q[j] * (value - edge[c])
        some[c] += weight * total
        lever[c] += weight * away
        most = max(most, n - begun)
        if i % block == block - 1 or i == x.shape[0] - 1:
            for k in range(lowest, c + 1):
                mass[k] += some[k]
                moment[k] += lever[k]
                some[k] = 0.0
                lever[k] = 0.0
                runs = max(runs, more[k])
                more[k] = 0.0
    longest[0] = most
    longest[1] = runs


@kernel("1 1 1 1", lambda at, weight, y, *rest: 4e-7 * (at.size + y.size))
def beyond(at, weight, y, q):
    """The sum of weight[i] q[j] (y[j] - at[i])_+; `at` falls, `y` rises; in linear time."""
    j = y.shape[0] - 1
    mass, value, total = 0.0, 0.0, 0.0  # of y beyond at[i]
    for i in range(at.shape[0]):
        if i > 0:
            value += mass * (at[i - 1] - at[i])
        while j >= 0 and y[j] > at[i]:
            mass += q[j]
            value += q[j] * (y[j] - at[i])
            j -= 1
        total += weight[i] * value
    return total


def additions(count: int) -> list[tuple[int, int]]:
    """Pairs of laws to add, each a new one; 0 is a single step, and the last pair is `count` steps.

    Equal laws have half as many pairs of values: so factors 2, then 3 and 5, and otherwise one step more.
    """
    found: list[tuple[int, int]] = []

    def copies(number: int, law: int) -> int:
        if number == 1:
            return law
        if number % 2 == 0:
            half = copies(number // 2, law)
            found.append((half, half))
        elif (factor := next((p for p in (3, 5) if number % p == 0), number)) < number:
            return copies(number // factor, copies(factor, law))
        else:
            found.append((copies(number - 1, law), law))
        return len(found)

    copies(count, 0)
    return found


def _product_grid(law: RatioLaw, other: RatioLaw) -> Array:
    """`_grid` for the product of two laws: by the logarithm, near its means under Q and P."""
    low, high = (math.log(float(law.value[k] * other.value[k])) for k in (0, -1))
    ends = np.zeros(2)
    for one in (law, other):
        loss = np.log(one.value)
        for k, (sign, mass) in enumerate(((-1.0, one.mass), (1.0, one.mass * one.value))):
            mean = float(mass @ loss / mass.sum())
            ends[k] += mean + sign * FAR * math.sqrt(float(mass @ (loss - mean) ** 2 / mass.sum()))
    near = np.linspace(
        max(low, ends[0]), min(high, ends[1]), max(NEAR, min(10 * NEAR, int((ends[1] - ends[0]) / STEEP)))
    )
    above = np.geomspace(ends[1], high, OCTAVES) if high > ends[1] > 0.0 else np.empty(0)
    below = -np.geomspace(-ends[0], -low, OCTAVES) if low < ends[0] < 0.0 else np.empty(0)
    return np.asarray(np.exp(np.unique(np.concatenate(([low], below, near, above, [high])))))


def _grid(count: int, low: float, high: float, deviation: float, close: float | None = None) -> Array:
    """Where a law of `count` ratios is looked at: evenly near its mean 0, in octaves above and towards S = 0.

    Or in octaves from the mean, if they begin anywhere.
    """
    if close is not None:
        end = max(-low, high)
        away = np.geomspace(close, end, max(OCTAVES, int(DENSE * math.log(end / close))))
        return np.concatenate((-away[::-1], away))
    reach = FAR * deviation
    near = np.linspace(max(low, -reach), min(high, reach), NEAR)
    above = np.geomspace(reach, high, OCTAVES) if high > reach else np.empty(0)
    below = count * np.geomspace(NOUGHT, 0.5, OCTAVES) - count
    return np.unique(np.concatenate(([low], below[(below > low) & (below < high)], near, above)))


def _log_parts(law: RatioLaw) -> Array:
    """The smaller one of log E(V - v)_+ and log E(v - V)_+ at every value v."""
    v, q = law.value, law.mass
    gap = np.diff(v)
    beyond, before = np.cumsum(q[::-1])[::-1], np.cumsum(q)
    call = np.append(np.cumsum((beyond[1:] * gap)[::-1])[::-1], 0.0)
    put = np.append(0.0, np.cumsum(before[:-1] * gap))
    return np.asarray(np.log(np.maximum(np.minimum(call, put), 1e-300)))


@dataclass(frozen=True)
class Wanted:
    """What a sum of steps is made for; it decides where knots go, and nothing else.

    depth : log of how far below its largest value E(S - s)_+ still matters, at every s. tail : what factors of a
    product may lose at either end. one : if only one s matters, the log of E(S/count - s)_+ there, and what it may err
    by, relative; above : whether it lies above the mean, which only one order of the datasets asks for; None for both.
    close : where octaves on either side of s = 1 begin, if what counts is there, for values of any size.
    """

    depth: float
    tail: float = 0.0
    one: tuple[float, float] | None = None
    above: bool | None = None
    close: float | None = None

    def bends(self, law: RatioLaw) -> tuple[Array, float]:
        """f'' of the f whose mean should be known, at every value of the sum, and what that may err by."""
        log_part = _log_parts(law)
        top, allowed = float(log_part.max()), 0.0
        if self.one is None:
            log_bend = np.minimum(top - log_part, self.depth)
            log_bend -= log_bend.max()
        else:
            log_value, rtol = self.one
            value = min(log_value + math.log(max(1, law.steps)), top)
            away = log_part - value
            log_bend = -np.abs(away) - np.maximum(away, 0.0) - math.log(1.5)  # its integral is 1 next to one s
            if self.above is not None:
                log_bend[(law.ratio > 1.0) != self.above] = -math.inf
            allowed = (1.0 if law.steps else 0.7) * rtol * math.exp(value)  # products err by more than is foreseen
        found: Array = np.abs(np.gradient(log_part, law.value)) * np.exp(log_bend)
        return found, allowed


@lru_cache(maxsize=8)
def coarse_laws(
    law: RatioLaw, operations: tuple[Operation, ...], tail: float, close: float | None
) -> tuple[list[RatioLaw], dict[int, RatioLaw]]:
    """Coarse laws of one step and of all sums and products, and the factors of these; the arguments of `ratio_sum`."""
    deviation = math.sqrt(float(law.mass @ law.value**2))
    low, high = float(law.value[0]), float(law.value[-1])
    laws = [law.plus(NOTHING, _grid(1, low, high, deviation, close), Side.UPPER)]
    factors: dict[int, RatioLaw] = {}
    for left, right, times in operations:
        if times:
            for part in {left, right} - factors.keys():
                factors[part] = laws[part].ratios(tail, Side.UPPER)
            one, other = factors[left], factors[right]
            laws.append(one.plus(other, _product_grid(one, other), Side.UPPER, True))
            continue
        count = laws[left].steps + laws[right].steps
        high = laws[left].value[-1] + laws[right].value[-1]
        grid = _grid(count, low * count, high, deviation * math.sqrt(count), close)
        laws.append(laws[left].plus(laws[right], grid, Side.UPPER))
    return laws, factors


@lru_cache(maxsize=4)
def chosen_knots(law: RatioLaw, operations: tuple[Operation, ...], number: int, wanted: Wanted) -> list[Array]:
    """Knots of one step and of all sums and products; the arguments are those of `ratio_sum`."""
    low, high = float(law.value[0]), float(law.value[-1])
    if not high - low > SAME * max(abs(low), abs(high)):  # one value, and so have all sums and products
        return [law.value[:1]] * (1 + len(operations))
    laws, factors = coarse_laws(law, operations, wanted.tail, wanted.close)
    weights = [np.zeros(law.value.size) for law in laws]
    weights[-1], allowed = wanted.bends(laws[-1])
    for k in range(len(laws) - 1, 0, -1):
        left, right, times = operations[k - 1]
        for part, rest in {(left, right), (right, left)}:
            at = laws[part].ratio if times else laws[part].value
            other = factors[rest] if times else laws[rest]
            found = np.empty(at.size)
            _expected(at, other.value, other.mass, laws[k].value, weights[k], times, found)
            found *= 2.0 if left == right else 1.0
            weights[part] += found / max(1, laws[part].steps) ** 2 if times else found
    made = len(laws) if wanted.one is None else len(laws) - 1  # the last one is only asked for its profile
    parts = [_important(*one) for one in zip(laws[:made], weights, strict=False)]
    many = wanted.one is None or wanted.above is None or wanted.close is not None
    everywhere = EVERYWHERE[many]
    # A law errs by its cube over the squared number of knots, 3/24 for both sides as a rule; 2/3 of that is measured.
    # Its cost grows like the square of the number, so numbers like cube^(1/4) are the best.
    roots = np.array([max(1e-200, float(part.sum())) ** 0.75 for part in parts])
    usual = math.sqrt(float(np.mean(roots**2)))
    if allowed > 0.0:
        enough = (1.0 + everywhere) * usual**2 * math.sqrt(roots.size / (12.0 * allowed))
        number = min(number, max(FEWEST, math.ceil(enough)))
    numbers = np.ceil(number * roots / usual).astype(int).tolist()
    return [_spaced(*one, everywhere, wanted.close) for one in zip(laws[:made], parts, numbers, strict=True)]


def _important(law: RatioLaw, weight: Array) -> Array:
    """The density of the best knots, times the distance to the next value."""
    root = np.cbrt(law.mass / np.gradient(law.value) * weight)
    return np.asarray(0.5 * (root[1:] + root[:-1]) * np.diff(law.value))


def _spaced(law: RatioLaw, important: Array, number: int, everywhere: float, close: float | None) -> Array:
    grid = law.value
    if close is not None:
        octaves = np.arcsinh(grid / close)
    elif law.steps:
        octaves = np.arcsinh(grid / math.sqrt(float(law.mass @ grid**2)))
        octaves += np.log(np.minimum(1.0, law.ratio) + NOUGHT)
    else:
        loss = np.log(grid)
        octaves = np.arcsinh(loss / math.sqrt(float(law.mass @ loss**2) / float(law.mass.sum())))
    share = important / max(1e-200, float(important.sum())) + everywhere * np.diff(octaves) / (octaves[-1] - octaves[0])
    places = np.append(0.0, np.cumsum(share))
    return np.asarray(np.interp(np.linspace(0.0, places[-1], number + 1), places, grid))


@kernel("1 1 1 1 1 b o1", lambda at, y, *rest: 3e-7 * at.size * y.size)
def _expected(at, y, q, grid, weight, times, found):
    """found[i] = sum_j q[j] weight(at[i] + y[j]), interpolated on its grid, and constant beyond.

    times : of products, and y[j]^2 before the weight: the second derivative of f(y x).
    """
    last = grid.shape[0] - 2
    start = 0
    for i in range(at.shape[0]):
        slope, shift = (max(at[i], 0.0), 0.0) if times else (1.0, at[i])
        while start < last and grid[start + 1] <= slope * y[0] + shift:
            start += 1
        c = start
        total = 0.0
        for j in range(y.shape[0]):
            v = slope * y[j] + shift
            while c < last and grid[c + 1] <= v:
                c += 1
            share = min(1.0, max(0.0, (v - grid[c]) / (grid[c + 1] - grid[c])))
            bend = y[j] * y[j] if times else 1.0
            total += bend * q[j] * (weight[c] + share * (weight[c + 1] - weight[c]))
        found[i] = total


def _distinct(left: RatioLaw, right: RatioLaw, number: int, times: bool) -> Array | None:
    """The sums (or products) of two laws, where they are not more than knots would be: few values stay exact."""
    if left.value.size * right.value.size > 16 * number:
        return None
    sums = np.sort((np.multiply if times else np.add).outer(left.value, right.value).ravel())
    found = sums[np.append(True, np.diff(sums) > SAME * float(np.abs(sums).max()))]
    return found if found.size <= number else None


def ratio_sum(
    law: RatioLaw, guide: RatioLaw, side: Side, count: int, number: int, wanted: Wanted, epochs: int = 1
) -> RatioLaw:
    """The sum of `count` steps on a side, from the law of one; number : of knots, about; guide : a law, for the knots.

    epochs : so many such sums are multiplied, over `count` each. With likelihood ratios S/count of independent epochs
    the product is theirs, and E f(S S') is convex in S, as S' >= 0: products keep a side as sums do.
    """
    sums = [(left, right, False) for left, right in additions(count)]
    base = len(sums)
    operations = (*sums, *((base + left, base + right, True) for left, right in additions(epochs)))
    if not operations:
        return law
    knots = chosen_knots(guide, operations, number, wanted)
    if law.value.size > knots[0].size and wanted.one is not None:
        given, law = law, law.plus(NOTHING, knots[0], side)
        law = law.settled(total(given.mass), law.error - given.error)
    known = [law]
    factors: dict[int, RatioLaw] = {}
    for k, (left, right, times) in enumerate(operations, 1):
        if times:
            for part in {left, right} - factors.keys():
                factors[part] = known[part].ratios(wanted.tail, side)
        one, other = (factors[left], factors[right]) if times else (known[left], known[right])
        if wanted.one is not None and k == len(operations):
            return one.beside(other, times)
        places = knots[min(k, len(knots) - 1)]
        own = _distinct(one, other, max(FEWEST, 4 * places.size), times)
        law = one.plus(other, places if own is None else own, side, times)
        if 0 < law.steps <= FEW:
            law = law.settled(total(one.mass) * total(other.mass), law.error - one.error - other.error)
        known.append(law)
    return law
