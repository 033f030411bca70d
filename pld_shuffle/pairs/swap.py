"""Upper bounds for shuffled reports and nothing but them, whatever the other users hold. Arrays only.

n users run randomizers; the target's report has law R_0 or R_1. With s = 1 + growth, both theorems read

    H_s <= E[((q/n) sum_i L_i + (1-q)(1-s))_+],    L_i = ((R_0 - s R_1)/W_i)(z_i),  z_i ~ W_i independent,

either with q = 1 and the others' laws moved away from a law V, by the minimum u of n uniform numbers (swap
with the first clone), or with a hidden cohort of n users out of n/q and W_i the others' own laws. The sum may
mix *types* of laws; Hoelder's inequality on one contour shared by all types leaves only the pure ones:

    E (sum L_i)_+ / n <= max_k (1/(2 pi n)) int |E exp(z L_k)|^n |dz|/|z|^2.

The integral is a trapezoidal sum over about twenty nodes with a proven error. Proofs: docs/swap.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..numerics.rounding import ROUNDOFF
from .cohort import ALL_USERS, Cohort
from .every_dataset import by_dataset, few_come

Array = NDArray[np.float64]

ROUNDED = 2.0**-50  # relative error of a mass that took a few operations
#: (weight, excess, base, slope, wobble) of types of laws, shape (types, points).
_Types = tuple[Array, Array, Array, Array, Array]
NOBODY = np.zeros((3, 0))  # no guest
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
    over = math.expm1(min(eps0, LARGEST_BUDGET)) * (1.0 + 2.0**-51)  # p - 1, rounded up
    present = 1.0 if cohort.certain else cohort.presence
    if eps0 > LARGEST_BUDGET:
        return np.ones(points.shape)
    weight, *_ = hidden = tuple(part[:3] for part in hexagon(over, 0.0))  # of five types, enough for a hidden cohort
    few = few_come(n, cohort, int(np.count_nonzero(weight)))
    if cohort.rate == 1.0 and not may_win(eps0, n):
        # H_s(R_0||R_1) itself, of binary randomized response.
        out = np.clip(present * (over - flat) / (over + 2.0) * (1.0 + 2.0**-50), 0.0, 1.0)
    elif independent_users(n, cohort):
        out = np.minimum(by_coins(n, cohort, hidden, ROUNDED, flat), 1.0)
        out[flat >= over * (1.0 + 1e-15)] = (cohort.presence * (1.0 + 1e-15)) ** n
    else:
        arrays = hexagon(over, cohort.absence, cohort.certain)
        max_u = 0.98 * cohort.presence / (present * (1.0 + over)) if cohort.rate == 1.0 else 0.0
        out = _contour(n, arrays, 3, max_u, cohort.rate_above, ROUNDED, flat)
    out = _of_few(n, cohort, hidden, ROUNDED, flat, out) if few else out
    return out.reshape(points.shape)


def _contour(
    n: int, types: Sequence[Array], early: int, max_u: float, rate: float, relative: float, expm1_eps: Array,
    *, coins: bool = False, uncovered_user: Array = NOBODY,
) -> Array:  # fmt: skip
    """The contour bound of `swap_kernels.profile`."""
    from . import swap_kernels

    out = np.empty(expm1_eps.size)
    arrays = [np.ascontiguousarray(part) for part in (*types, uncovered_user)]
    swap_kernels.profile(float(n), *arrays, early, max_u, rate, coins, relative, np.ascontiguousarray(expm1_eps), out)
    return out


def _of_few(n: int, cohort: Cohort, types: Sequence[Array], relative: float, expm1_eps: Array, known: Array) -> Array:
    """At most `known`: Theorem C for every number of users who come, where `few_come`; types are not moved."""

    def contour(come: int, share: float, asked: Array) -> Array:
        return _contour(come, types, len(types[0]), 0.0, share, relative, asked)

    return by_dataset(n, cohort, types, relative, expm1_eps, known, contour)


def independent_users(n: int, cohort: Cohort) -> bool:
    """Whether users take part independently, not too few of them, and seldom all: what `by_coins` takes."""
    few = n * cohort.presence < FEWEST
    return cohort.rate == 1.0 and cohort.presence <= MOST_RATE and not (few or cohort.certain)


def by_coins(users: int, cohort: Cohort, types: Sequence[Array], relative: float, expm1_eps: Array) -> Array:
    """Upper bounds for users who take part independently, Theorem C for every number of them; types are not moved.

    Source: docs/swap.md, "Users who take part independently".
    """
    rate = cohort.presence
    out = _contour(users, types, len(types[0]), 0.0, rate, relative, expm1_eps, coins=True)
    return np.asarray(out + (rate * (1.0 + 1e-15)) ** users)  # that all of them come


def typed_profile(
    types: Sequence[Any],
    n: int,
    expm1_eps: Any,
    *,
    cohort: Cohort = ALL_USERS,
    mass_error: float = 0.0,
    uncovered_user: Any = None,
) -> Array:
    """Upper bound on H_s for targets and other users that are covered by `types`, s = 1 + growth.

    types : arrays of shape (4, groups), each with groups of its own: masses of the target's two laws, of V, and of
    another user's law W (rows a, b, v, w). A type covers a target with laws R_0, R_1 next to a user with law W if, for
    the u in question and every real t, sum (a - s b - t (w - u v))_+ >= int (R_0 - s R_1 - t (W - u V))_+ ; what w is
    short of 1 has L = 0. For every target all other users must be covered, and for rate = 1 a user with law V, too. For
    rate < 1 rows v are ignored (u = 0). n, expm1_eps, cohort : as in `any_ldp_profile`.
    mass_error : bound on the relative error of every mass given; where w sums to 1 up to that, it does.
    uncovered_user : the type, w = v, of the user with law V, if no other one covers it: rate = 1 only. One user of n,
    it may be much worse than the others.

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
    laws, error = list(types), mass_error
    points = np.asarray(expm1_eps, np.float64)
    flat = points.ravel()
    if uncovered_user is None and independent_users(n, cohort) and all(np.all(law[3] > 0.0) for law in laws):
        arrays = _type_arrays(laws, 1.0, error)
        return np.minimum(by_coins(n, cohort, arrays, 2.0 * (error + ROUNDED), flat), 1.0).reshape(points.shape)
    share = cohort.rate_above
    alone = [] if uncovered_user is None or share < 1.0 else [uncovered_user]
    if cohort.absence > 0.0:
        laws, alone = ([cohort.with_absence(law) for law in part] for part in (laws, alone))
        error += 4.0 * ROUNDOFF
    relative = error + ROUNDED
    bare, plain = _given_away([*laws, *alone], flat, relative)
    covered = share < 1.0 or all(np.all(law[2][law[3] == 0.0] == 0.0) for law in laws)
    arrays = _type_arrays(laws, (1.0 - share) / share, error)
    bound = np.minimum(plain, 1.0)
    if covered:
        max_u = 0.98 / (1.0 + float(np.max(arrays[1]))) if share == 1.0 else 0.0
        hosts, visitor = n, NOBODY
        if alone:
            # One user fewer among the types; the minimum u of fewer numbers weighs every u more.
            [(first, second, _, other)] = [law[:, law[3] > 0.0] for law in alone]
            hosts -= 1
            visitor = np.array([other, (first - second) / other, second / other])
        out = _contour(hosts, arrays, len(laws), max_u, share, 2.0 * relative, flat, uncovered_user=visitor) * (
            ((1.0 + ROUNDED) * n / max(hosts, 1)) if alone else 1.0
        )
        bound = np.minimum(bound, out + bare * (1.0 + 4.0 * ROUNDED))
    few = uncovered_user is None and few_come(n, cohort, sum(int(np.count_nonzero(law[3])) for law in types))
    # Where nothing is given away, and without a rest, whose mass is rough.
    if few and all(np.all(law[3] > 0.0) and math.fsum(law[3]) > 1.0 - 0.5 * (mass_error + ROUNDED) for law in types):
        unmoved = _type_arrays(types, 1.0, mass_error)
        bound = _of_few(n, cohort, unmoved, 2.0 * (mass_error + ROUNDED), flat, bound)
    return bound.reshape(points.shape)


def by_moment(laws: Sequence[Any], n: int, expm1_eps: Array, *, cohort: Cohort, mass_error: float) -> Array:
    """Upper bounds as those of `typed_profile`, by moments instead of a contour; some ten times as cheap.

    Far out X_+ <= e^(xX)/(e x), and near 0 E X_+ is at most half of E X + (E X^2)^(1/2). At 1e-6 some 6 % of epsilon
    are lost. Both moments are convex in v = u/(1-u) and lie below a chord. What u > 50/n adds is the target's own
    divergence, and so is everything where a report is some user's that another one never makes.
    """
    several = [cohort.with_absence(np.asarray(law)) for law in laws]
    most = max(law.shape[1] for law in several)
    parts = [most + 1 - law.shape[1] for law in several]  # of the last group, so that all have as many
    even = [
        np.hstack((law[:, :-1], np.repeat(law[:, -1:] / k, k, axis=1))) for law, k in zip(several, parts, strict=True)
    ]
    first, second, shared, other = np.moveaxis(np.array(even), 1, 0)
    share, g = cohort.rate_above, expm1_eps[:, None, None]
    shift = 0.0 if share == 1.0 else (1.0 - share) / share
    relative = 8.0 * (mass_error + ROUNDED) + ROUNDOFF * other.shape[1]
    gain = (first - second) - g * second
    plain = np.max(np.sum(np.maximum(gain, 0.0), axis=2), axis=1) + relative * (2.0 + expm1_eps)
    if not np.all(other > 0.0):
        return np.asarray(np.minimum(plain, 1.0))
    value, excess = gain / other - g * shift, (shared - other) / other
    u = min(0.98 / (1.0 + float(excess.max())), 50.0 / n) if share == 1.0 else 0.0
    v = u / (1.0 - u)
    moved = 1.0 - v * excess
    own = float(n) * np.einsum("kj,ikj->ik", other, value * value)
    spread = np.maximum(own, n * np.einsum("kj,ikj->ik", other / moved, value * value)).max(axis=1)
    spread = np.maximum(spread, 1e-300)
    mean = -n * expm1_eps * (1.0 + shift)
    root = np.sqrt(mean * mean + spread * (1.0 + relative))
    near = spread / (2.0 * (root - mean)) / n + relative * (2.0 + expm1_eps * (1.0 + shift))
    # About the best x for the type of the largest variance.
    worst = own.argmax(axis=1)
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


def _given_away(laws: Sequence[Array], expm1_eps: Array, relative: float) -> tuple[Array, Array]:
    """Upper bounds on sum (a - s b)_+ over the reports that no other user makes, and over all of them."""
    bare, plain = np.zeros(expm1_eps.size), np.zeros(expm1_eps.size)
    groups = max(law.shape[1] for law in laws) + 1
    targets = {law[:2].tobytes(): law for law in laws}.values()
    given = [law[:, law[3] == 0.0] for law in laws if np.any(law[3] == 0.0)]
    for total, asked in ((bare, given), (plain, targets)):
        for first, second, *_ in asked:
            if not np.any(first > 0.0):
                continue
            lost = np.maximum(0.0, (first - second) - np.outer(expm1_eps, second))
            rounding = 4.0 * (relative + ROUNDED * groups) * (1.0 + expm1_eps) * float(np.sum(first + second))
            np.maximum(total, lost.sum(axis=1) + rounding, out=total)
    return bare, plain


def _type_arrays(laws: Sequence[Array], shift: float, error: float) -> _Types:
    """The arrays of types, a group each for what w is short of 1.

    shift : for a hidden cohort -shift growth is added to every value of L, or growth to centre it; 0 where types are
    moved by u.
    """
    relative = error + ROUNDED
    shape = (len(laws), max(law.shape[1] for law in laws) + 1)
    weight, excess, base, slope = (np.zeros(shape) for _ in range(4))
    line_error = np.zeros((*shape, 2))
    for k, (first, second, shared, other) in enumerate(laws):
        where = np.flatnonzero(other > 0.0)
        used = np.arange(where.size)
        own = other[where]
        weight[k, used] = own
        base[k, used] = (first - second)[where] / own
        slope[k, used] = second[where] / own
        line_error[k, used, 0] = 2.0 * relative * (first + second)[where] / own
        line_error[k, used, 1] = 2.0 * relative * slope[k, used]
        if shift == 0.0:
            excess[k, used] = (shared[where] - own) / own
        # The rest of W says nothing. Its mass is not needed to more than the error of the sum.
        rest, rest_error = 1.0 - math.fsum(other), 1.01 * error + ROUNDED * math.sqrt(other.size)
        if not rest >= -rest_error:
            raise ValueError(f"w must sum to at most 1 in every type, sums to {1.0 - rest!r}")
        if rest > rest_error:
            weight[k, where.size] = rest - rest_error if shift == 0.0 else rest
            if shift == 0.0:
                rising = (1.0 - math.fsum(shared)) / rest - 1.0
                excess[k, where.size] = min(rising, float(np.max(excess[k, used], initial=0.0)))
            else:
                line_error[k, where.size, 1] = 3.0 * rest_error / rest * shift
    return weight, excess, base, slope, line_error


@lru_cache(maxsize=16)
def hexagon(over: float, absent: float, certain: bool = False) -> _Types:
    """(weight, excess, base, slope, line_error) of S1, S2, T1, S3, T2 with V = R_0; over = e^eps0 - 1.

    absent : the mass of the report "absent" under every law, which is the point (1, 1); if the target is `certain` to
    be present, (0, 0), and all other points are larger by 1/(1 - absent).
    A point (a, b) = (R_0/W, R_1/W) has base a - b, slope b and excess a - 1.
    """
    p = 1.0 + over
    down = over / p
    laws = (
        {"A": 1.0, "C": p},
        {"B": 1.0, "D": p},
        {"A": 1.0, "B": 1.0, "F": p},
        {"E": 1.0, "F": p},
        {"E": 1.0, "C": p, "D": p},
    )
    points = {
        "A": (over, over, 1.0),
        "B": (0.0, -over, p),
        "C": (-down, -down, 1.0),
        "D": (0.0, down, 1.0 / p),
        "E": (over, 0.0, p),
        "F": (-down, 0.0, 1.0 / p),
        "absent": (0.0, 0.0, 1.0),
    }
    if certain and absent > 0.0:
        more = 1.0 / (1.0 - absent)
        points = {k: ((1.0 + v) * more - 1.0, b * more, c * more) for k, (v, b, c) in points.items()}
        points["absent"] = (-1.0, 0.0, 0.0)
    shape = (len(laws), 4 if absent else 3)
    weight, excess, base, slope = (np.zeros(shape) for _ in range(4))
    for k, law in enumerate(laws):
        total = sum(law.values())
        masses = {name: (1.0 - absent) * mass / total for name, mass in law.items()}
        if absent > 0.0:
            masses["absent"] = absent
        for j, (name, mass) in enumerate(masses.items()):
            weight[k, j] = mass
            excess[k, j], base[k, j], slope[k, j] = points[name]
    line_error = ROUNDED * np.abs(np.stack([base, slope], axis=2))
    return weight, excess, base, slope, line_error
