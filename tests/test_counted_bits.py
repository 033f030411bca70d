"""Counted bits: the mechanism and its accountant against enumeration in rationals, and telemetry's numbers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from pld_shuffle import (
    Accountant,
    CountedBits,
    CountedHistogram,
    PoissonSampled,
    ShuffledLDP,
    Subsampled,
)
from pld_shuffle.pairs import bit_kernels
from pld_shuffle.pairs.bits import BitShares, bit_profile
from pld_shuffle.report import Report

ONE, ZERO = Fraction(3, 4), Fraction(1, 8)


def bits(n, **more):
    return CountedBits(n, one_if_one=float(ONE), one_if_zero=float(ZERO), **more)


def adaptive(laws, rounds, growth, p=Fraction(1), q=Fraction(1)):
    """The largest divergence where every round's pair is chosen knowing the counts so far."""
    if rounds == 0:
        return max(p - (1 + growth) * q, Fraction(0))
    return max(
        sum(adaptive(laws, rounds - 1, growth, p * a, q * b) for a, b in zip(*law, strict=True))
        for law in laws
    )


@pytest.mark.parametrize(
    "bits, one, zero", [(1, 0.75, 0.25), (1, 0.9375, 0.25), (3, 0.75, 0.125), (1, 0.5, 2.0**-9)]
)
def test_every_dataset_lies_below_its_mixture_of_two_ends(bits, one, zero):
    """Theorem 5: one mixture for all s, on both sides of 1."""
    n, shares = 40, BitShares.of(one, zero)
    top = bits * math.log(one / zero)
    growth = np.expm1(np.linspace(0.0, 0.99 * top, 25))
    ends = []
    for order in (shares, shares.mirrored):
        left, right = np.empty(growth.size), np.empty(growth.size)
        bit_kernels.all_chords(
            growth, float(bits), order.one, order.not_one, order.zero, order.not_zero, order.gap,
            float(bits * (n - 1)), left, right,
        )  # fmt: skip
        ends.append((left, right))
    (left, right), (far_left, far_right) = ends
    for j in range(n):
        share = j / (n - 1)
        exact = bit_profile(n, shares, growth, bits=bits, ones=(j, j), rtol=1e-12).lower
        assert np.all(exact <= (1.0 - share) * left + share * right)
        # The target's other order counts zeros: the same mixture of the other chord's ends.
        place = n - 1 - j
        exact = bit_profile(n, shares.mirrored, growth, bits=bits, ones=(place, place), rtol=1e-12)
        assert np.all(exact.lower <= (1.0 - share) * far_right + share * far_left)


def test_poisson_participation_is_near_the_attack():
    for mechanism in (CountedBits(10_000, eps0=2.0), bits(10_000)):
        found = Accountant().compose(PoissonSampled(mechanism, 0.1)).epsilon_bounds(1e-6)
        assert found.lower <= found.upper <= 1.02 * found.lower


@pytest.mark.parametrize(
    "n, eps0, rounds", [(1000, 1.0, 64), (10_000, 4.0, 64), (10_000, 4.0, 1000)]
)
def test_rounds_are_near_the_attack(n, eps0, rounds):
    """Others who hold the same value in every round spend nearly what any adaptive choice could."""
    found = Accountant().compose(CountedBits(n, eps0=eps0), rounds).epsilon_bounds(1e-6)
    assert found.lower <= found.upper <= 1.0035 * found.lower


def test_profiles_of_several_rounds_rise_with_the_rounds():
    pair = CountedBits(1000, eps0=1.0).pair
    loss = pair.scale * np.linspace(0.0, 12.0, 25)
    one, many = pair.repeated(1), pair.repeated(130)
    assert one == [(pair, 1)] and [count for _, count in many] == [2, 1]
    profiles = [
        pair.repeated(t)[0][0].profile(np.expm1(loss), 0.0, 1e-12).upper for t in (2, 3, 5, 8)
    ]
    assert np.all(np.diff(profiles, axis=0) >= 0.0)  # more rounds spend more
    assert np.all(np.diff(profiles, axis=1) <= 0.0)


def test_telemetry():
    """One bit of 100,000 users at eps0 = 8: the truth that deployments' papers give, from both sides."""
    accountant = Accountant().compose(CountedBits(100_000, eps0=8.0))
    for delta, lower, upper in ((1e-5, 0.8295, 0.8304), (1e-6, 1.0098, 1.0105)):
        bounds = accountant.epsilon_bounds(delta)
        assert lower <= bounds.lower <= bounds.upper <= upper


@pytest.mark.parametrize(
    "mechanism",
    [
        CountedBits(1000, eps0=1.0),
        CountedBits(10_000, one_if_one=0.5, one_if_zero=0.01),
        CountedBits(10_000, gamma=0.2, bits=10),
        Subsampled(CountedBits(1000, eps0=2.0), population=10_000),
        CountedHistogram(10_000, one_if_one=0.5, one_if_zero=0.01),
    ],
    ids=repr,
)
def test_brackets_are_narrow(mechanism):
    bounds = Accountant().compose(mechanism).epsilon_bounds(1e-6)
    assert 0 < bounds.lower <= bounds.upper <= 1.0006 * bounds.lower


def test_every_mechanism_tells_what_its_attack_spends():
    """The accountant's lower end, over rounds and for hidden cohorts; a stated adversary's own pair otherwise."""
    for mechanism in (
        ShuffledLDP(1.0, 1000),
        ShuffledLDP(1.0, 1000, "stronger-clones"),
        Subsampled(ShuffledLDP(1.0, 1000), population=10_000),
        CountedBits(1000, eps0=1.0),
    ):
        accountant = Accountant().compose(mechanism, 5)
        bounds = accountant.epsilon_bounds(1e-6)
        attack = mechanism.attack_bounds(delta=1e-6, rounds=5)
        assert attack.bounds.lower == bounds.lower and attack.attack is None
        assert attack.bounds.upper <= bounds.upper * 1.001
        gap = accountant.gap_bounds(1e-6)
        assert bounds.lower <= gap.attack * (1 + 1e-12)
        assert gap.attack <= gap.analysis <= gap.proved == bounds.upper
        report = Report("epsilon", accountant.ledger, 1e-3)
        report.add_epsilons(accountant, [1e-6])
        report.values["seconds"] = 0.0
        text = "\n".join(report.lines())
        apart = mechanism.attack_pair is not mechanism.pair
        assert ("no analysis can go below" in text) == apart
    by_delta = CountedBits(1000, eps0=1.0).attack_bounds(epsilon=0.12661)
    assert by_delta.bounds.lower == pytest.approx(1e-6, rel=1e-2)
