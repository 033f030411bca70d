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

import numpy as np
from numpy.typing import NDArray

from ..numerics.integer_laws import MISSED, IntegerLaw, binomial_law, negative_binomial_law
from ..numerics.rounding import ROUNDOFF
from .discrete import EitherOrder, Losses, OrderedPair
from .pair import Attacks
from .shifted import losses, shifted

Array = NDArray[np.float64]

MOST_DATASETS = 32  # that are tried as attacks
FAINT = 1e-4  # scale of an attack over its largest loss; the others give too little away
MOST_WORK = 2**31  # users times counts below the threshold
#: Masses below the first are left out; ratios to masses below the second are not trusted. Next to either, what a window
#: of the dummies' law leaves out is nothing.
SMALLEST, SMALLEST_RATIO = 1e-265, 1e-275


def threshold(rate: float, least: int, dummies: IntegerLaw | None, *, only_bins: bool) -> EitherOrder:
    """The pair of a dataset with the user and one without, in either order; `only_bins`: counts are not published.

    MemoryError where tables would be too large. O(least^2 / rate), without dummies O(least / rate).
    """
    if dummies is None:
        return shifted(negative_binomial_law(float(least), rate), 1)
    p, q, top = _row(rate, least, dummies)
    if only_bins and top > 1:
        p, q = (np.append(x[:top].sum(), x[top:]) for x in (p, q))
    outside = dummies.below + dummies.above
    error = dummies.error + ROUNDOFF * (8.0 + 4.0 * p.size)
    orders, truncated_mass = [], 0.0
    for ahead, behind in ((p, q), (q, p)):
        kept = (ahead >= SMALLEST) & (behind >= SMALLEST_RATIO)
        lone = float(ahead[(ahead >= SMALLEST) & ~kept].sum())
        certain = outside == 0.0 and not np.any((behind > 0.0) & ~kept & (ahead >= SMALLEST))
        orders.append(losses(ahead[kept], behind[kept], 2.0 * error, lone if certain else 0.0))
        left = MISSED + p.size * SMALLEST + outside + (0.0 if certain else lone)
        truncated_mass = max(truncated_mass, left * (1.0 + 1e-9))
    return EitherOrder(tuple(orders), truncated_mass, mass_error=error)


def datasets(rate: float, least: int, dummies: IntegerLaw | None, worst: EitherOrder, *, only_bins: bool) -> Attacks:
    """Attacks on one bin: the pairs of single datasets, with the user and without, in either order.

    worst : of `threshold`, the worst count at every epsilon. In one round there is no more to it. Over rounds no
    dataset has all of its losses, so it is an upper end only.
    """
    found = [order for both in _datasets(rate, least, dummies, only_bins) for order in both]
    return Attacks(tuple(found or [OrderedPair(losses(np.ones(1), np.ones(1), ROUNDOFF, 0.0))]), worst)


def of_two_bins(rate: float, least: int, dummies: IntegerLaw | None, worst: EitherOrder, *, only_bins: bool) -> Attacks:
    """Attacks on two bins: any count where one user more is, and one near the strongest where one less is.

    In one round whoever looks at one bin only, and knows its worst count.
    """
    found = _datasets(rate, least, dummies, only_bins)
    strongest = max(range(len(found)), key=lambda k: found[k][1].scale, default=0)
    falling = [fewer for _, fewer in found[max(0, strongest - 1) : strongest + 2]]
    products = [_product(more, fewer) for more, _ in found for fewer in falling]
    return Attacks(tuple(products or [OrderedPair(losses(np.ones(1), np.ones(1), ROUNDOFF, 0.0))]), worst)


def _datasets(
    rate: float, least: int, dummies: IntegerLaw | None, only_bins: bool
) -> list[tuple[OrderedPair, OrderedPair]]:
    """With one user more and one less, of some numbers of users that give away enough."""
    most = math.ceil(2.0 * least / rate)
    first = max(1, least - 1) if dummies is None else 1  # of fewer nothing is published
    users = (
        range(most + 1) if most <= MOST_DATASETS else np.unique(np.geomspace(first, most, MOST_DATASETS).astype(int))
    )
    found = []
    for count in users:
        p, q, error, whole = _published(int(count), rate, least, dummies, only_bins)
        both = []
        for ahead, behind in ((p, q), (q, p)):
            kept = (ahead >= SMALLEST) & (behind >= SMALLEST_RATIO)
            lone = float(ahead[(ahead >= SMALLEST) & (behind == 0.0)].sum()) if whole else 0.0
            both.append(OrderedPair(losses(ahead[kept], behind[kept], 2.0 * error, lone), 0.0, error))
        if max(pair.scale - FAINT * float(np.abs(pair.losses.loss).max(initial=0.0)) for pair in both) > 0.0:
            found.append((both[0], both[1]))
    return found


def _product(one: OrderedPair, other: OrderedPair) -> OrderedPair:
    """From below: both outcomes, independent of each other."""
    first, second = one.losses, other.losses
    loss = np.add.outer(first.loss, second.loss).ravel()
    order = np.argsort(loss, kind="stable")
    mass = np.multiply.outer(first.mass, second.mass).ravel()[order]
    infinite = first.infinity_mass + second.infinity_mass * (1.0 - first.infinity_mass)
    error = first.error + second.error + 4.0 * ROUNDOFF * (1.0 + float(np.abs(loss).max(initial=0.0)))
    return OrderedPair(Losses(mass, loss[order], infinite, error), 0.0, one.mass_error + other.mass_error)


def _published(
    users: int, rate: float, least: int, dummies: IntegerLaw | None, only_bins: bool
) -> tuple[Array, Array, float, bool]:
    """Masses of what is seen with users + 1 and with `users`, their relative error, and whether no mass is left out."""
    laws = [binomial_law(n, rate) if n > 0 and rate < 1.0 else None for n in (users + 1, users)]
    low, masses, error, whole = [], [], 8.0 * ROUNDOFF, True
    for n, law in zip((users + 1, users), laws, strict=True):
        low.append(n if rate == 1.0 else 0 if law is None else law.low)
        masses.append(np.ones(1) if law is None else law.masses)
        error += 0.0 if law is None else law.error
        whole = whole and (law is None or law.below + law.above == 0.0)
        if dummies is not None:
            low[-1] += dummies.low
            masses[-1] = np.convolve(masses[-1], dummies.masses)
            error += dummies.error + ROUNDOFF * (dummies.masses.size + 2.0)
            whole = whole and dummies.below + dummies.above == 0.0
    start, size = min(low), max(first + mass.size for first, mass in zip(low, masses, strict=True)) - min(low)
    hidden = start + np.arange(size) < least
    shown = []
    for first, mass in zip(low, masses, strict=True):
        counts = np.zeros(size)
        counts[first - start : first - start + mass.size] = mass
        seen = counts[~hidden]
        shown.append(np.append(counts[hidden].sum(), seen.sum() if only_bins else seen))
    return shown[0], shown[1], error + ROUNDOFF * size, whole


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
