"""An integer and the same one moved by a step: the pairs of noisy sums, binomial counts, thresholds, and dummies.

X has a law f on the integers. P is the law of X + d, Q that of X. If f is log-concave, f(i-d)/f(i) rises in i: the
best sets are tails, H_s(P||Q) = max over t of P[X >= t-d] - s P[X >= t] grows with d, and so does the reversed one. So
a query that moves by at most d is covered by the two orders at d itself (docs/sums.md, section 1). Modulo M nothing is
log-concave, and every step up to d is a pair of its own.

`EitherOrder`, the larger of two orders, is exact for one round against whoever knows all other values; over rounds
signs of moves, or the others, are chosen (`strategy`).

Binomial noise: Balcer and Cheu 2020; profiles of products: Zhu, Dong, Wang 2022.
"""

from __future__ import annotations

import math

import numpy as np

from ..numerics.integer_laws import IntegerLaw
from ..numerics.sides import ROUNDOFF, Array
from .discrete import EitherOrder, Losses, OrderedPair
from .pair import Attacks, Pair
from .profile import ProfilePair
from .strategy import AnyOf

MOST_KEPT = 0.5  # of the atoms, if putting equal ones together is worth their rounding


def with_attack(*each: EitherOrder) -> tuple[ProfilePair, Pair]:
    """A pair for any of them in either order, and attacks: single ones, or alone the best choice in every round."""
    if len(each) == len(each[0].orders) == 1:
        return each[0], each[0]
    either = AnyOf(each)
    return either, Attacks(tuple(order for [order] in either.choices), either)


def shifted(law: IntegerLaw, step: int) -> EitherOrder:
    """The pair of X + step and X, in either order. ValueError if the two hardly meet."""
    f, size = law.masses, law.masses.size
    if not step < size:
        raise ValueError(f"step must be below the {size} values of the noise, got {step!r}")
    moved, still = f[: size - step], f[step:]
    # What has no partner is certain to tell them apart where the law ends; else it is a tail that nobody needs.
    high, low = float(f[size - step :].sum()), float(f[:step].sum())
    error = min(2.0 * law.error, step * law.step) + 4.0 * ROUNDOFF
    ends = ((high, law.above), (low, law.below))
    orders, truncated_mass = [], 0.0
    for (p, q), (lone, outside) in zip(((moved, still), (still, moved)), ends, strict=True):
        orders.append(losses(p, q, error, 0.0 if outside > 0.0 else lone))
        truncated_mass = max(truncated_mass, law.below + law.above + (lone * (1.0 + law.error) if outside > 0.0 else
        0.0))  # fmt: skip
    kept = orders[:1] if law.symmetric else orders
    return EitherOrder(tuple(kept), truncated_mass * (1.0 + 1e-9), step * law.steepest, law.error)


def shifted_around(law: IntegerLaw, step: int, modulus: int) -> EitherOrder:
    """The pair of X + step and X modulo `modulus`, in either order; from below only, where the window is too short.

    Where nothing is known of Q but that little of it is there, it is taken for that little: a lower bound.
    """
    outside = law.below + law.above
    around = law.wrapped(min(modulus, law.masses.size + step))  # farther round, nothing meets
    f, error = around.masses, around.error
    moved = np.roll(f, step)
    orders = []
    for p, q in ((moved, f), (f, moved)):
        seen, lone = p > 0.0, 0.0
        if outside > 0.0:
            q = np.maximum(q, outside)
        else:
            lone, seen = float(p[q == 0.0].sum()), seen & (q > 0.0)
        orders.append(losses(p[seen], q[seen], 2.0 * error, lone))
    return EitherOrder(tuple(orders[:1] if law.symmetric else orders), outside, mass_error=error)


def at_most(law: IntegerLaw, step: int, modulus: int) -> tuple[ProfilePair, Pair]:
    """The worst of all steps from 1 to `step`, modulo `modulus`, and attacks.

    The modulus is at most half of the window, or the window is all of the law.
    """
    return with_attack(*(shifted_around(law, one, modulus) for one in range(1, step + 1)))


def side_by_side(one: OrderedPair, other: OrderedPair) -> OrderedPair:
    """Both outcomes, independent of each other, but for what is truncated."""
    return OrderedPair(one.losses.with_independent(other.losses), 0.0, one.mass_error + other.mass_error)


def losses(p: Array, q: Array, error: float, infinity_mass: float) -> Losses:
    """Atoms of masses p, q > 0 whose ratios are known to `error`, sorted by loss; those hardly apart are one."""
    loss = np.log(p / q)
    order = np.argsort(loss, kind="stable")
    p, loss = p[order], loss[order]
    error += 4.0 * ROUNDOFF * (1.0 + float(np.abs(loss).max(initial=0.0)))
    cell = 8.0 * error
    places = np.rint(loss / cell)
    first = np.flatnonzero(np.diff(places, prepend=-math.inf))
    if first.size > MOST_KEPT * loss.size:
        return Losses(p, loss, infinity_mass, error)
    return Losses(np.add.reduceat(p, first), places[first] * cell, infinity_mass, error + cell)
