"""Hypotheses of the theorems: what happens where one is given up, and the safe form (docs/people.md).

The protocols are enumerated with exact rationals: cohorts user by user, every user with a dropout of its own, "absent"
being one more report.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import oracles
import pytest
from scipy.stats import binom

from pld_shuffle import (
    Accountant,
    CountedBits,
    Epoch,
    PoissonSampled,
    Shuffled,
    ShuffledLDP,
    ShuffledRandomizer,
    ShuffledRR,
    StickyCohort,
    Subsampled,
)
from pld_shuffle.mechanisms import Mechanism
from pld_shuffle.randomizers import BinaryRandomizedResponse, KRandomizedResponse, SubsetSelection

P = 3  # e^eps0
EPS0 = math.log(P)
GROWTHS = np.array([0.0, 0.05, 0.3, 1.0, 1.8])


def response(k: int, value: int) -> list[Fraction]:
    """k-ary randomised response."""
    return [Fraction(P if y == value else 1, P + k - 1) for y in range(k)]


def present(law: Sequence[Fraction], chance: Fraction) -> list[Fraction]:
    """The same, with the report "absent"."""
    return [*(chance * mass for mass in law), 1 - chance]


def divergences(k: int, n: int, values: Sequence[int], chances: Sequence[Fraction], own: Fraction) -> np.ndarray:
    """H_s at GROWTHS, the larger of both orders: the target holds 0 or 1 and is present with probability `own`."""
    others = [present(response(k, x), r) for x, r in zip(values, chances, strict=True)]
    views = [
        oracles.cohort_view([present(response(k, x), own), *others], n)
        if n <= len(values)
        else oracles.histogram_law([present(response(k, x), own), *others])
        for x in (0, 1)
    ]
    found = []
    for order in (views, views[::-1]):
        atoms = oracles.pair_of_views(*order)
        found.append([float(oracles.hockey_stick(atoms, 1 + Fraction(g))) for g in GROWTHS])
    return np.max(found, axis=0)


def upper_ends(mechanism: Mechanism) -> np.ndarray:
    accountant = Accountant().compose(mechanism)
    return np.array([accountant.delta_bounds(math.log1p(g)).upper for g in GROWTHS])


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(("users", "n"), [(2, 1), (2, 2), (3, 2), (3, 3), (4, 2)])
def test_a_dropout_limit_covers_dropouts_of_their_own(k: int, users: int, n: int) -> None:
    """Every dataset of the others, presences at and above the limit, and any presence of the target."""
    least = Fraction(1, 2)
    kinds = {"population": users, "dropout_limit": 0.5}
    randomizer = KRandomizedResponse(k=k, eps0=EPS0)
    ends = np.min(
        [
            upper_ends(Subsampled(ShuffledLDP(EPS0, n), **kinds)),
            upper_ends(Subsampled(ShuffledLDP(EPS0, n, analysis="stronger-clones"), **kinds)),
            upper_ends(Subsampled(Shuffled(randomizer, n), **kinds)),
            upper_ends(Subsampled(ShuffledRR(k, n, eps0=EPS0), **kinds)),
        ],
        axis=0,
    )
    worst = np.zeros(GROWTHS.size)
    for values in itertools.combinations_with_replacement(range(k), users - 1):
        for mixed in ([least] * (users - 1), [least, Fraction(1), Fraction(3, 4)][: users - 1]):
            for own in (Fraction(1), Fraction(1, 2), Fraction(1, 10)):
                worst = np.maximum(worst, divergences(k, n, values, mixed, own))
    assert np.all(worst <= ends * (1.0 + 1e-12))
    # Equal others who all drop out as often as they may attain it (of one user, the rounding of the lattice is all).
    if n == 1:
        assert ends[0] <= worst[0] * (1.0 + 1e-2)


@pytest.mark.parametrize(("n", "limit"), [(10, 0.3), (40, 0.5), (200, 0.1)])
def test_lower_ends_with_a_dropout_limit_are_attained(n: int, limit: float) -> None:
    """Binary, all others alike, none hidden: the number of ones, given how many came; the target always does."""
    found = Accountant().compose(Subsampled(Shuffled(BinaryRandomizedResponse(1.0), n), rate=1.0, dropout_limit=limit))
    one, zero = math.e / (1.0 + math.e), 1.0 / (1.0 + math.e)
    for eps in (0.05, 0.2):
        exact = []
        for order in ((one, zero), (zero, one)):
            total = 0.0
            for came in range(n):
                ones = np.arange(came + 2)
                views = [
                    share * binom.pmf(ones - 1, came, zero) + (1.0 - share) * binom.pmf(ones, came, zero)
                    for share in order
                ]
                gain = np.maximum(views[0] - math.exp(eps) * views[1], 0.0).sum()
                total += float(binom.pmf(came, n - 1, 1.0 - limit) * gain)
            exact.append(total)
        bounds = found.delta_bounds(eps)
        assert bounds.lower * (1.0 - 1e-9) <= max(exact) <= bounds.upper * (1.0 + 1e-9)
        assert bounds.lower >= 0.99 * max(exact)


@pytest.mark.parametrize("analysis", ["tightest", "stronger-clones"])
def test_who_may_not_drop_out_hides_as_fewer_users(analysis: str) -> None:
    """The mean over who comes of a mechanism among these: never below that of the mean number of users."""
    bound = Accountant().compose(Subsampled(ShuffledLDP(1.0, 1_000, analysis=analysis), rate=1.0, dropout_limit=0.3))
    equal = Accountant().compose(ShuffledLDP(1.0, 701, analysis=analysis))
    found, known = (which.epsilon_bounds(1e-6) for which in (bound, equal))
    assert known.lower <= found.upper <= 1.004 * known.upper
    assert found.lower >= 0.995 * known.lower


@pytest.mark.parametrize(
    "mechanism",
    [
        Shuffled(SubsetSelection(k=4, size=2, eps0=1.0), 500),
        ShuffledRandomizer(500, tv=0.3, p=4.0, q=5.0),
        CountedBits(500, eps0=1.0),
    ],
    ids=repr,
)
def test_a_dropout_limit_is_between_no_dropout_and_few_users(mechanism: Mechanism) -> None:
    limited = Subsampled(mechanism, population=5_000, dropout_limit=0.4)
    sure = Subsampled(mechanism, population=5_000)
    found, least = (Accountant().compose(which).epsilon_bounds(1e-6) for which in (limited, sure))
    assert least.lower < found.upper and found.lower <= found.upper
    assert found.upper < Accountant().compose(mechanism).epsilon_bounds(1e-6).upper


def test_a_dropout_limit_is_said_and_comes_back() -> None:
    mechanism = Subsampled(ShuffledLDP(1.0, 40), population=400, dropout_limit=0.5)
    assert "at most 0.5" in mechanism.assumptions()["sampling"]
    assert "the target's is any" in mechanism.assumptions()["sampling"]
    assert Subsampled(**mechanism.arguments()) == mechanism
    with pytest.raises(ValueError, match=r"give one of dropout and dropout_limit"):
        Subsampled(ShuffledLDP(1.0, 40), rate=0.1, dropout=0.1, dropout_limit=0.1)
    with pytest.raises(ValueError, match=r"dropout_limit must be in \[0, 1\)"):
        Subsampled(ShuffledLDP(1.0, 40), rate=0.1, dropout_limit=1.0)
    with pytest.raises(TypeError, match=r"one bit each"):
        Subsampled(CountedBits(40, eps0=1.0, bits=2), rate=0.1, dropout_limit=0.1)


# --- one round of a sticky cohort ----------------------------------------------------------------


def test_one_round_of_what_cannot_be_drawn_anew_is_amplified() -> None:
    for inner in (Epoch(2.0, 50), PoissonSampled(ShuffledLDP(2.0, 100), rate=0.3)):
        once = Accountant().compose(StickyCohort(inner, 1, rate=0.1)).epsilon_bounds(1e-6)
        known = Accountant().compose(inner).epsilon_bounds(1e-6)
        assert 0.0 < once.upper < known.upper


# --- participation of at most c rounds -------------------------------------------------------------


def test_capped_participation_is_no_worse_than_its_cap() -> None:
    """Three rounds of one binary response, at most one of them with the target, chosen by what was seen: exactly.

    The adversary's best plan is found backwards over all outputs. It is as good as one round, and no better.
    """
    one = [(Fraction(P, P + 1), Fraction(1, P + 1)), (Fraction(1, P + 1), Fraction(P, P + 1))]
    idle = [(Fraction(2, 5), Fraction(2, 5)), (Fraction(3, 5), Fraction(3, 5))]

    def value(rounds: int, budget: int, p: Fraction, q: Fraction, s: Fraction) -> Fraction:
        if rounds == 0:
            return max(Fraction(0), p - s * q)
        plans = [idle, one] if budget else [idle]
        return max(
            sum((value(rounds - 1, budget - (plan is one), p * a, q * b, s) for a, b in plan), Fraction(0))
            for plan in plans
        )

    for s in (Fraction(1, 2), Fraction(1), Fraction(3, 2), Fraction(5, 2)):
        for budget in (1, 2):
            spent = oracles.hockey_stick(oracles.power(one, budget), s)
            assert value(3, budget, Fraction(1), Fraction(1), s) == spent
