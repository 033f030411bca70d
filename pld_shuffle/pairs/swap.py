"""Upper bounds for shuffled reports and nothing but them, whatever the other users hold. Arrays only.

n users run randomizers; the target's report has law R_0 or R_1. With s = 1 + growth, Theorems S and C of docs/swap.md
both read

    H_s <= E[((q/n) sum_i L_i + (1-q)(1-s))_+],    L_i = ((R_0 - s R_1)/W_i)(z_i),  z_i ~ W_i independent,

either with q = 1 and the others' laws moved away from a law V, by the minimum u of n uniform numbers (swap with the
first clone), or with a hidden cohort of n users out of n/q and W_i the others' own laws. Where the sum mixes *types* of
laws, Hoelder's inequality on one contour shared by all types leaves only the pure ones. The integral is a trapezoidal
sum over about twenty nodes with a proven error.

*Few users* (`by_dataset`). A dataset says how many of the K users who come have which type of law. Its E X_+ is a
finite sum, and the maximum over datasets is Theorem C's bound as it stands. Where users take part independently, it is
taken for every number K that matters, by a contour if K is not so small; of rare numbers H_s is at most K/n times the
target's own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import lru_cache, reduce
from typing import Any

import numpy as np

from ..numerics.integer_laws import Trials, counts
from ..numerics.sides import ROUNDOFF, Array
from .jumps import Types
from .jumps import profile as by_jumps
from .pair import ALL_USERS, Cohort

ROUNDED = 2.0**-50  # relative error of a mass that took a few operations
#: The types S1, S2, T1, S3, T2 of any eps0-LDP randomizers, V = R_0. Every report is a corner of the hexagon that pairs
#: (R_0, R_1)/W lie in: the powers of p = e^eps0 of both, and of W up to a factor.
EXTREME = (
    ((1, 0, 0), (-1, 0, 1)),
    ((0, 1, 0), (0, -1, 1)),
    ((1, 0, 0), (0, 1, 0), (-1, -1, 1)),
    ((1, 1, 0), (-1, -1, 1)),
    ((1, 1, 0), (-1, 0, 1), (0, -1, 1)),
)
NOBODY = np.zeros((3, 0))  # no guest
NO_JUMP = np.array([[1.0], [0.0]])  # one case of the total 0
MOST_RATE = 0.5  # of independent participants, for what is proved by Theorem C; it is rare that all of them come
FEWEST = 64.0  # of them, on average
LARGEST_BUDGET = 300.0  # beyond it e^eps0 has no room; n is far too small for it anyway


def may_win(eps0: float, n: int) -> bool:
    """Whether `any_ldp_profile` at full participation can be below its trivial value by much.

    The chance (1 - e^-eps0)^n that nobody covers the target must be small. Cheap, and no promise.
    """
    return n * math.exp(-eps0) > 4.0


def any_ldp_profile(eps0: float, n: int, expm1_eps: Any, *, cohort: Cohort = ALL_USERS) -> Array:
    """Upper bound on sup H_s over all eps0-LDP randomizers and all datasets, s = 1 + growth.

    eps0 : local budget; > 0. n : users, the target included. expm1_eps : e^eps - 1 >= 0, finite, of any shape, that of
    the bound. cohort : how the n users are chosen. With rate < 1 they are a hidden cohort of n / rate users. "Absent"
    is one more report that everybody makes alike, so both theorems hold as they are.

    O(points) calls of a compiled loop of some 10^4 operations. Theorems S and C of docs/swap.md.

    >>> bound = any_ldp_profile(1.0, 10_000, [0.0, 0.03, 2.0])
    >>> print(f"{bound[0]:.5f} {bound[1]:.3e} {bound[2]:.0f}")
    0.00446 1.452e-05 0
    """
    points = np.asarray(expm1_eps, np.float64)
    flat = points.ravel()
    if eps0 > LARGEST_BUDGET:
        return np.ones(points.shape)
    over = math.expm1(eps0) * (1.0 + 2.0**-51)  # p - 1, rounded up
    share, present = cohort.rate_above, 1.0 if cohort.certain else cohort.presence
    # H_s(R_0||R_1) itself, of binary randomized response; amplified where the target is absent like anybody else.
    part, whole = (share, 1.0) if cohort.certain else (1.0, share)
    alone = part * present * (whole * over * (1.0 + 2.0**-51) - flat) / (over + 2.0) * (1.0 + ROUNDED)
    alone = np.clip(alone, 0.0, 1.0)
    still = tuple(part[:3] for part in _extreme_types(eps0, ALL_USERS))  # of five types, enough for a hidden cohort
    few = few_come(n, cohort, int(np.count_nonzero(still[0])))
    if cohort.rate == 1.0 and not may_win(eps0, n):
        out = alone
    elif independent_users(n, cohort):
        out = by_coins(n, cohort, still, 2.0 * ROUNDED, flat)
    else:
        max_u = 0.98 * cohort.presence / (present * (1.0 + over)) if cohort.rate == 1.0 else 0.0
        out = _contour(n, _extreme_types(eps0, cohort), 3, max_u, share, 4.0 * ROUNDED, flat)
    out = by_dataset(n, cohort, still, 2.0 * ROUNDED, flat, out) if few else out
    return np.minimum(out, alone).reshape(points.shape)


@lru_cache(maxsize=16)
def _extreme_types(eps0: float, cohort: Cohort) -> Types:
    return _type_arrays([cohort.with_absence(law) for law in extreme_laws(eps0)], 0.0, 2.0 * ROUNDED)


def _contour(
    n: int, types: Sequence[Array], early: int, max_u: float, rate: float, relative: float, expm1_eps: Array,
    *, coins: bool = False, uncovered_user: Array = NOBODY, jumps: Array = NO_JUMP,
) -> Array:  # fmt: skip
    """The contour bound of `swap_kernels.profile`."""
    from . import swap_kernels

    out = np.empty(expm1_eps.size)
    arrays = [np.ascontiguousarray(part) for part in (*types, uncovered_user, jumps)]
    swap_kernels.profile(float(n), *arrays, early, max_u, rate, coins, relative, np.ascontiguousarray(expm1_eps), out)
    return out


def independent_users(n: int, cohort: Cohort) -> bool:
    """Whether users take part independently, not too few of them, and seldom all: what `by_coins` takes."""
    few = n * cohort.presence < FEWEST
    return cohort.rate == 1.0 and cohort.presence <= MOST_RATE and not (few or cohort.certain)


def by_coins(users: int, cohort: Cohort, types: Sequence[Array], relative: float, expm1_eps: Array) -> Array:
    """Upper bounds for users who take part independently, Theorem C for every number of them; types are not moved.

    Source: docs/swap.md, "Users who take part independently".
    """
    out = _contour(users, types, len(types[0]), 0.0, cohort.presence, relative, expm1_eps, coins=True)
    return np.asarray(out + _all_come(users, cohort))


def _all_come(users: int, cohort: Cohort) -> float:
    """The probability of what Theorem C with coins leaves out, rounded up."""
    return float((cohort.presence * (1.0 + 1e-15)) ** users)


def typed_profile(
    types: Sequence[Any], n: int, expm1_eps: Any, *, cohort: Cohort = ALL_USERS, mass_error: float = 0.0,
    uncovered_user: Any = None, known: Array | None = None,
) -> Array:  # fmt: skip
    """Upper bound on H_s for targets and other users that are covered by `types`, s = 1 + growth.

    types : arrays of shape (4, groups), each with groups of its own: masses of the target's two laws, of V, and of
    another user's law W (rows a, b, v, w). A type covers a target with laws R_0, R_1 next to a user with law W if, for
    the u in question and every real t, sum (a - s b - t (w - u v))_+ >= int (R_0 - s R_1 - t (W - u V))_+ ; what w is
    short of 1 has L = 0. For every target all other users must be covered, and for rate = 1 a user with law V, too. For
    rate < 1 rows v are ignored (u = 0). n, expm1_eps, cohort : as in `any_ldp_profile`.
    mass_error : bound on the relative error of every mass given; where w sums to 1 up to that, it does.
    uncovered_user : the type, w = v, of the user with law V, if no other one covers it; Theorem S asks it alone. One
    user of n, it may be much worse than the others. Ratios may be large then, of any type; what is far out is summed by
    `jumps`.
    known : bounds that are known; what is hardly below them is not looked for.

    The groups of a randomizer's reports will do, one type for every law that another user may have, if all ratios are
    constant on every group: then merging its reports loses nothing.

    Reports with w = 0 are given away: sum (a - s b)_+ over them. If v > 0 there, no more than the target's own
    H_s is returned. Theorems S and C of docs/swap.md. O(points types groups) in a compiled loop, some 10^3 times
    that, less where groups are many. Raises ValueError where w sums to more than 1.

    >>> one, zero = [0.75, 0.25], [0.25, 0.75]
    >>> types = [np.array([one, zero, one, other]) for other in (one, zero)]
    >>> print(f"{float(typed_profile(types, 1000, 0.1)):.3e}")
    7.232e-05
    """
    points, share, error = np.asarray(expm1_eps, np.float64), cohort.rate_above, mass_error
    laws = [np.asarray(law) for law in types]
    flat = points.ravel()
    coins, present = independent_users(n, cohort), laws
    if uncovered_user is None and coins and all(np.all(law[3] > 0.0) for law in laws):
        arrays = _type_arrays(laws, 1.0, error)
        return np.minimum(by_coins(n, cohort, arrays, 2.0 * (error + ROUNDED), flat), 1.0).reshape(points.shape)
    coins = coins and uncovered_user is not None
    alone = [] if uncovered_user is None or share < 1.0 or coins else [uncovered_user]
    if cohort.absence > 0.0:
        laws, alone = ([cohort.with_absence(law) for law in part] for part in (laws, alone))
        error += 4.0 * ROUNDOFF
    relative = error + ROUNDED
    bare, plain = _given_away([*laws, *alone], flat, relative)
    covered = share < 1.0 or coins or all(np.all(law[2][law[3] == 0.0] == 0.0) for law in laws)
    arrays = _type_arrays(present, 1.0, error) if coins else _type_arrays(laws, (1.0 - share) / share, error)
    bound = np.minimum(plain, 1.0)
    if covered:
        max_u = 0.98 / (1.0 + float(np.max(arrays[1]))) if share == 1.0 else 0.0
        if uncovered_user is None:
            out = _contour(n, arrays, len(laws), max_u, share, 2.0 * relative, flat)
        else:
            hosts, guest, known = n, NOBODY, bound if known is None else known.ravel()
            if alone:
                [(first, second, _, other)] = [law[:, law[3] > 0.0] for law in alone]
                hosts, guest = n - 1, np.array([other, (first - second) / other, second / other])

            come, max_u = (cohort.presence, 0.0) if coins else (share, max_u)

            def contour(left: Types, visitor: Array, jumps: Array, g: float) -> float:
                return float(_contour(
                    hosts, left, len(laws), max_u, come, 2.0 * relative, np.array([g]), coins=coins,
                    uncovered_user=visitor, jumps=jumps,
                )[0])  # fmt: skip

            some = hosts * come if coins else hosts
            out = by_jumps(some, arrays, guest, max_u, come, coins, 2.0 * relative, bound, known, flat, contour)
            out += _all_come(n, cohort) if coins else 0.0
        bound = np.minimum(bound, out + bare * (1.0 + 4.0 * ROUNDED))
    few = uncovered_user is None and few_come(n, cohort, sum(int(np.count_nonzero(law[3])) for law in types))
    # Where nothing is given away, and without a rest, whose mass is rough.
    if few and all(np.all(law[3] > 0.0) and math.fsum(law[3]) > 1.0 - 0.5 * (mass_error + ROUNDED) for law in types):
        unmoved = _type_arrays(types, 1.0, mass_error)
        bound = by_dataset(n, cohort, unmoved, 2.0 * (mass_error + ROUNDED), flat, bound)
    return bound.reshape(points.shape)


def by_moment(laws: Sequence[Any], n: int, expm1_eps: Array, *, cohort: Cohort, mass_error: float) -> Array:
    """Upper bounds as those of `typed_profile`, by moments instead of a contour; some ten times as cheap.

    Far out X_+ <= e^(xX)/(e x), and near 0 E X_+ is at most half of E X + (E X^2)^(1/2). At 1e-6 some 6 % of epsilon
    are lost. Both moments are convex in v = u/(1-u) and lie below a chord. What u > 50/n adds is the target's own
    divergence, and so is everything where a report is some user's that another one never makes.
    """
    first, second, shared, other = _even([cohort.with_absence(np.asarray(law)) for law in laws])
    share, g = cohort.rate_above, expm1_eps[:, None, None]
    shift = 0.0 if share == 1.0 else (1.0 - share) / share
    relative = 8.0 * (mass_error + ROUNDED) + ROUNDOFF * other.shape[1]
    gain = (first - second) - g * second
    plain = np.max(np.sum(np.maximum(gain, 0.0), axis=2), axis=1) + relative * (2.0 + expm1_eps)
    if np.any((first + second + shared)[other == 0.0] > 0.0):
        return np.asarray(np.minimum(plain, 1.0))
    own = np.where(other > 0.0, other, 1.0)
    value, excess = gain / own - g * shift, (shared - other) / own
    u = min(0.98 / (1.0 + float(excess.max())), 50.0 / n) if share == 1.0 else 0.0
    v = u / (1.0 - u)
    moved = 1.0 - v * excess
    still = float(n) * np.einsum("kj,ikj->ik", other, value * value)
    spread = np.maximum(still, n * np.einsum("kj,ikj->ik", other / moved, value * value)).max(axis=1)
    spread = np.maximum(spread, 1e-300)
    mean = -n * expm1_eps * (1.0 + shift)
    root = np.sqrt(mean * mean + spread * (1.0 + relative))
    near = spread / (2.0 * (root - mean)) / n + relative * (2.0 + expm1_eps * (1.0 + shift))
    # About the best x for the type of the largest variance.
    worst = still.argmax(axis=1)
    weight, one = other[worst], np.take_along_axis(value, worst[:, None, None], axis=1)[:, 0]
    saddle = (np.sqrt(mean * mean + 4.0 * spread) - mean) / (2.0 * spread)
    tried = np.array([share_of * saddle for share_of in (0.6, 0.8, 1.0)])
    with np.errstate(over="ignore", invalid="ignore"):  # then that bound says nothing
        size = n * np.log1p(np.sum(weight * np.expm1(tried[:, :, None] * one), axis=2)) - np.log(tried)
        x = np.take_along_axis(tried, np.nanargmin(np.nan_to_num(size, nan=np.inf), axis=0)[None], axis=0)[0]

        def moment(weight: Array, value: Array) -> Array:
            """E exp(x L) - 1 of the worst type, rounded up."""
            exponent = x[:, None, None] * value
            longest = np.maximum(exponent.max(axis=(1, 2)), -exponent.min(axis=(1, 2)))
            found = np.einsum("kj,ikj->ik", weight, np.expm1(exponent, out=exponent)).max(axis=1)
            return np.asarray(found + relative * (2.0 + found) * (1.0 + longest))

        start = moment(other, value)
        rise = np.maximum(moment(other * moved, value / moved) - start, 0.0) / (v * (1.0 + start)) if v > 0.0 else 0.0
        room = (n + 1.0) * (1.0 - 0.5 * v) - n * rise if v > 0.0 else float(n)
        far = np.exp(n * np.log1p(start) - 1.0) / (x * np.maximum(room, 1e-300))
    survive = math.exp(n * math.log1p(-u)) if v > 0.0 else 0.0
    least = np.fmin(near, far)
    return np.asarray(np.minimum((share * least + survive * plain) * (1.0 + 1e-9), plain))


def _even(laws: Sequence[Array]) -> Array:
    """The same rows of all laws, shape (4, laws, groups), with as many groups: further ones are empty."""
    found = np.zeros((4, len(laws), max(law.shape[1] for law in laws)))
    for k, law in enumerate(laws):
        found[:, k, : law.shape[1]] = law
    return found


def _given_away(laws: Sequence[Array], expm1_eps: Array, relative: float) -> tuple[Array, Array]:
    """Upper bounds on sum (a - s b)_+ over the reports that no other user makes, and over all of them."""
    first, second, _, other = _even(list({law[:2].tobytes() + (law[3] > 0.0).tobytes(): law for law in laws}.values()))
    error, growth, found = 4.0 * (relative + ROUNDED * (other.shape[1] + 1)), expm1_eps[:, None, None], []
    for a, b in ([np.where(other > 0.0, 0.0, part) for part in (first, second)], (first, second)):
        shown = np.any(a > 0.0, axis=1)
        lost = np.maximum(0.0, (a - b) - growth * b).sum(axis=2)
        lost += error * np.multiply.outer(1.0 + expm1_eps, (a + b).sum(axis=1))
        found.append((lost * shown).max(axis=1))
    return found[0], found[1]


def _type_arrays(laws: Sequence[Array], shift: float, error: float) -> Types:
    """The arrays of types, with a group each for what w is short of 1, if there is one.

    shift : for a hidden cohort -shift growth is added to every value of L, or growth to centre it; 0 where types are
    moved by u.
    """
    first, second, shared, weight = _even(laws)
    held, rests = weight > 0.0, np.array([1.0 - math.fsum(row) for row in weight.tolist()])
    first, second, own = np.where(held, first, 0.0), np.where(held, second, 0.0), np.where(held, weight, 1.0)
    base, slope = (first - second) / own, second / own
    line_error = 2.0 * (error + ROUNDED) * np.stack([(first + second) / own, slope], axis=2)
    excess = np.where(held & (shift == 0.0), shared - weight, 0.0) / own
    # The rest of W says nothing. Its mass is not needed to more than the error of the sum.
    rest_error = 1.01 * error + ROUNDED * np.sqrt(np.count_nonzero(held, axis=1))
    if not np.all(rests >= -rest_error):
        raise ValueError(f"w must sum to at most 1 in every type, sums to {1.0 - rests.min()!r}")
    spare = rests > rest_error
    if not np.any(spare):
        return weight, excess, base, slope, line_error
    weight, excess, base, slope = (np.pad(part, ((0, 0), (0, 1))) for part in (weight, excess, base, slope))
    line_error = np.pad(line_error, ((0, 0), (0, 1), (0, 0)))
    weight[:, -1] = np.where(spare, rests - (rest_error if shift == 0.0 else 0.0), 0.0)
    if shift == 0.0:
        rising = np.array([1.0 - math.fsum(row) for row in shared.tolist()])[spare] / rests[spare] - 1.0
        excess[spare, -1] = np.minimum(rising, excess[spare].max(axis=1))  # its last one is 0
    else:
        line_error[spare, -1, 1] = 3.0 * rest_error[spare] / rests[spare] * shift
    return weight, excess, base, slope, line_error


@lru_cache(maxsize=16)
def extreme_laws(eps0: float) -> list[Array]:
    """The types of `EXTREME` as `typed_profile` takes them."""
    found = []
    for powers in EXTREME:
        first, second, other = np.exp(eps0 * np.array(powers).T)
        other /= other.sum()
        found.append(np.array([first * other, second * other, first * other, other]))
    return found


_Sum = tuple[Array, Array, Array]  # masses, bases, slopes

MOST_CASES = 20_000  # of sums, all datasets together: width against speed
RARE, LITTLE = 1e-40, 3e-4  # chance of numbers that are not looked at; share of a bound that a rare one may make


def few_come(n: int, cohort: Cohort, values: int) -> bool:
    """Whether `by_dataset` says more than a contour: few users of a hidden cohort, or few who come."""
    return not (cohort.certain or cohort.everybody) and _cases(1 + int(n * cohort.presence), values) <= MOST_CASES


def by_dataset(
    n: int, cohort: Cohort, types: Sequence[Array], relative: float, expm1_eps: Array, known: Array
) -> Array:
    """Upper bounds, at most `known`: those of Theorem C for every number of users who come, where `few_come`.

    types : (weight, excess, base, slope, line_error) as in `swap`, not moved and without absence. relative : error of
    masses. For larger numbers by the contour.
    """
    weight, _, base, slope, line_error = types
    numbers = counts([Trials(n, cohort.presence, cohort.absence)], RARE)
    chances = numbers.masses * (1.0 + numbers.largest_error)
    come = np.arange(numbers.low, numbers.low + chances.size)
    shares = cohort.rate_above * come / n * (1.0 + ROUNDED)
    growth = expm1_eps[:, None, None]
    with np.errstate(over="ignore"):  # then nothing is told
        own = base + line_error[:, :, 0] - (slope - line_error[:, :, 1]) * growth
    alone = (np.maximum(own, 0.0) * weight).sum(axis=2).max(axis=1) * (1.0 + relative + 64.0 * ROUNDOFF)
    told = np.outer(chances * shares, alone)  # for each number of users, where no more is said
    matter = told > LITTLE * known
    asked = [j for j in np.flatnonzero(matter.any(axis=1)).tolist() if 0.0 < shares[j] < 1.0]
    values = int(np.count_nonzero(weight))
    listed = [j for j in asked if _cases(int(come[j]), values) <= MOST_CASES]
    most = int(come[listed[-1]]) if listed else 0
    sums = [_sums(most, w[w > 0.0], b[w > 0.0], c[w > 0.0]) for w, b, c in zip(weight, base, slope, strict=True)]
    for j in asked:
        number, share, points = int(come[j]), float(shares[j]), expm1_eps[matter[j]]
        if j in listed:
            bound = _largest(number, sums, types, share, relative, points)
        else:
            bound = _contour(number, types, len(weight), 0.0, share, relative, points)
        told[j, matter[j]] = np.minimum(told[j, matter[j]], chances[j] * bound)
    found = (told.sum(axis=0) + numbers.below + numbers.above) * (1.0 + ROUNDED * chances.size)
    return np.asarray(np.minimum(known, found))


def _cases(n: int, values: int) -> int:
    """How many sums all datasets of n users have, of types with so many values in all."""
    return math.comb(n + values - 1, n)


def _largest(
    n: int, sums: Sequence[list[_Sum]], types: Sequence[Array], rate: float, relative: float, expm1_eps: Array
) -> Array:
    """rate/n times the largest E (sum L - n (1 - rate) g/rate)_+ of all datasets of n users."""
    _, _, base, slope, line_error = types
    away = n * (1.0 - rate) / rate
    error = n * (line_error[:, :, 0].max() + expm1_eps * line_error[:, :, 1].max())
    size = n * np.abs(base).max() + expm1_eps * (n * np.abs(slope).max() + away)
    error += ROUNDOFF * (n + 16.0) * size
    found = np.zeros(expm1_eps.size)
    for split in _splits(n, len(sums)):
        mass, rise, fall = reduce(_joint, (law[m] for law, m in zip(sums, split, strict=True)))
        value = rise[:, None] - np.multiply.outer(fall + away, expm1_eps) + error
        np.maximum(found, np.maximum(mass, 1e-300) @ np.maximum(value, 0.0), out=found)
    return np.asarray(rate / n * found * (1.0 + n * (relative + 64.0 * ROUNDOFF)))


def _splits(n: int, parts: int) -> Iterator[tuple[int, ...]]:
    """All ways to write n as an ordered sum of so many parts."""
    for bars in itertools.combinations(range(n + parts - 1), parts - 1):
        ends = (-1, *bars, n + parts - 1)
        yield tuple(after - before - 1 for before, after in itertools.pairwise(ends))


def _sums(most: int, weight: Array, base: Array, slope: Array) -> list[_Sum]:
    """The sum of 0, 1, ... `most` independent values."""
    found = []
    for m in range(most + 1):
        numbers = np.array(list(_splits(m, weight.size)), np.float64)
        ways = [math.factorial(m) / math.prod(math.factorial(int(j)) for j in row) for row in numbers]
        found.append((np.array(ways) * np.prod(weight**numbers, axis=1), numbers @ base, numbers @ slope))
    return found


def _joint(one: _Sum, other: _Sum) -> _Sum:
    """Of two independent sums."""
    (p, a, b), (q, c, d) = one, other
    return np.outer(p, q).ravel(), np.add.outer(a, c).ravel(), np.add.outer(b, d).ravel()
