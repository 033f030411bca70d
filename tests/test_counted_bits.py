"""Counted bits: the mechanism and its accountant against enumeration in rationals, and telemetry's numbers."""

from __future__ import annotations

import itertools
import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from test_bits import divergence, enumerated, hidden, law_of

from pld_shuffle import (
    Accountant,
    AccuracyWarning,
    CountedBits,
    CountedHistogram,
    PoissonSampled,
    Shuffled,
    ShuffledLDP,
    Subsampled,
)
from pld_shuffle.pairs import bit_kernels
from pld_shuffle.pairs.bits import BitShares, bit_profile
from pld_shuffle.randomizers import BinaryRandomizedResponse
from pld_shuffle.report import Report

ONE, ZERO = Fraction(3, 4), Fraction(1, 8)
GROWTHS = [Fraction(k, 8) for k in (0, 1, 4, 9, 18, 60)]  # none at a largest loss


def enclosed(mechanism, truths, *, rounds=1):
    """lower <= truth <= upper at every growth, however wide."""
    accountant = Accountant(rtol=0.01).compose(mechanism, rounds)
    for growth, truth in truths.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AccuracyWarning)
            bounds = accountant.delta_bounds(math.log1p(float(growth)))
        assert bounds.lower <= float(truth) * (1 + 1e-9) + 1e-15, (growth, bounds, truth)
        assert bounds.upper >= float(truth) * (1 - 1e-9) - 1e-15, (growth, bounds, truth)


def bits(n, **more):
    return CountedBits(n, one_if_one=float(ONE), one_if_zero=float(ZERO), **more)


@pytest.mark.parametrize("n, each", [(1, 1), (2, 1), (4, 1), (3, 2)])
def test_one_round_enumerated(n, each):
    values = [Fraction(0), Fraction(1)]
    truths = {g: enumerated(n, ONE, ZERO, each, values, g) for g in GROWTHS}
    enclosed(bits(n, bits=each), truths)


def test_two_rounds_enumerated_whatever_the_others_hold_in_each():
    """Others, and the order of the target's values, may differ from round to round."""
    n = 3
    laws = []
    for ones in range(n):
        noise = [ONE] * ones + [ZERO] * (n - 1 - ones)
        pair = law_of([*noise, ONE]), law_of([*noise, ZERO])
        laws += [pair, pair[::-1]]

    def both(one, two):
        return [a * b for a in one for b in two]

    truths = {
        g: max(
            divergence(both(p1, p2), both(q1, q2), g)
            for (p1, q1), (p2, q2) in itertools.combinations_with_replacement(laws, 2)
        )
        for g in GROWTHS
    }
    enclosed(bits(n), truths, rounds=2)


def adaptive(laws, rounds, growth, p=Fraction(1), q=Fraction(1)):
    """The largest divergence where every round's pair is chosen knowing the counts so far."""
    if rounds == 0:
        return max(p - (1 + growth) * q, Fraction(0))
    return max(
        sum(adaptive(laws, rounds - 1, growth, p * a, q * b) for a, b in zip(*law, strict=True))
        for law in laws
    )


@pytest.mark.parametrize("n, each, rounds", [(2, 1, 2), (3, 1, 2), (2, 2, 2), (2, 1, 3)])
@pytest.mark.parametrize("one, zero", [(ONE, ZERO), (Fraction(7, 8), Fraction(1, 8))])
def test_adaptive_rounds_enumerated(n, each, rounds, one, zero):
    """The others' values and the order of the target's may depend on the counts published before."""
    laws = []
    for ones in range(n):
        noise = [one] * (each * ones) + [zero] * (each * (n - 1 - ones))
        pair = law_of([*noise, *[one] * each]), law_of([*noise, *[zero] * each])
        laws += [pair, pair[::-1]]
    truths = {g: adaptive(laws, rounds, g) for g in GROWTHS}
    mechanism = CountedBits(n, one_if_one=float(one), one_if_zero=float(zero), bits=each)
    enclosed(mechanism, truths, rounds=rounds)


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


@pytest.mark.parametrize("n, population, each", [(2, 4, 1), (2, 3, 2)])
def test_hidden_cohorts_enumerated(n, population, each):
    truths = {g: hidden(n, population, ONE, ZERO, each, g) for g in GROWTHS}
    enclosed(Subsampled(bits(n, bits=each), population=population), truths)


@pytest.mark.parametrize("cohort, population, rate", [(4, 4, 0.25), (2, 3, 0.5)])
def test_users_who_take_part_independently_enumerated(cohort, population, rate):
    """All subsets of a cohort; the number of reports is published with the number of ones."""
    chance = Fraction(rate)
    truths = dict.fromkeys(GROWTHS, Fraction(0))
    drawn = list(itertools.combinations(range(population), cohort))
    for held in itertools.combinations_with_replacement((ZERO, ONE), population - 1):
        views = []
        for target in (ZERO, ONE):
            data, view = [target, *held], []
            for come in range(cohort + 1):
                weight = chance**come * (1 - chance) ** (cohort - come) / len(drawn)
                total = [Fraction(0)] * (come + 1)
                for members in drawn:
                    for there in itertools.combinations(members, come):
                        law = law_of([data[i] for i in there])
                        total = [a + weight * b for a, b in zip(total, law, strict=True)]
                view += total
            views.append(view)
        for pair in itertools.permutations(views, 2):
            truths = {g: max(worst, divergence(*pair, g)) for g, worst in truths.items()}
    if cohort == population:
        enclosed(PoissonSampled(bits(cohort), rate), truths)
    else:
        enclosed(Subsampled(bits(cohort), population=population, dropout=1 - rate), truths)


def test_poisson_participation_is_near_the_attack():
    for mechanism in (CountedBits(10_000, eps0=2.0), bits(10_000)):
        found = Accountant().compose(PoissonSampled(mechanism, 0.1)).epsilon_bounds(1e-6)
        assert found.lower <= found.upper <= 1.02 * found.lower
    with pytest.raises(TypeError, match="bits=2"):
        PoissonSampled(bits(100, bits=2), 0.1)


@pytest.mark.parametrize("n", [1, 3])
def test_histograms_enumerated(n):
    """Three values, all data of the others; the third value's sum says nothing about the target."""
    truths = {}
    for g in GROWTHS:
        truths[g] = Fraction(0)
        for old, new in itertools.product(range(n), repeat=2):
            if old + new <= n - 1:
                sums = []
                for mine in ((ONE, ZERO), (ZERO, ONE)):
                    a = law_of([ONE] * old + [ZERO] * (n - 1 - old) + [mine[0]])
                    b = law_of([ONE] * new + [ZERO] * (n - 1 - new) + [mine[1]])
                    sums.append([p * q for p in a for q in b])
                truths[g] = max(truths[g], divergence(*sums, g))
    mechanism = CountedHistogram(n, one_if_one=float(ONE), one_if_zero=float(ZERO))
    enclosed(mechanism, truths)


def test_a_hidden_cohort_of_histograms_enumerated():
    """One of two users: the general amplification is above, the attack on one sum below."""
    truths = {}
    for g in GROWTHS:
        truths[g] = Fraction(0)
        for other in range(3):
            laws = []
            for target in range(2):
                total = [Fraction(0)] * 8
                for value in (target, other):
                    shares = [ONE if j == value else ZERO for j in range(3)]
                    cells = [
                        math.prod(p if bit else 1 - p for p, bit in zip(shares, seen, strict=True))
                        for seen in itertools.product((0, 1), repeat=3)
                    ]
                    total = [a + c / 2 for a, c in zip(total, cells, strict=True)]
                laws.append(total)
            truths[g] = max(truths[g], divergence(*laws, g), divergence(*laws[::-1], g))
    mechanism = CountedHistogram(1, one_if_one=float(ONE), one_if_zero=float(ZERO))
    enclosed(Subsampled(mechanism, population=2), truths)


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


def test_the_shuffled_bit_is_the_counted_bit():
    """The same question to the named randomizer."""
    named = Shuffled(BinaryRandomizedResponse(2.0), 500)
    counted = CountedBits(500, eps0=2.0)
    one, two = (Accountant().compose(m, 3).epsilon_bounds(1e-7) for m in (named, counted))
    assert tuple(one) == pytest.approx(tuple(two), rel=1e-12)
    by_gamma = CountedBits(500, gamma=2 / (1 + math.exp(2.0)))
    same = Accountant().compose(by_gamma, 3).epsilon_bounds(1e-7)
    assert tuple(same) == pytest.approx(tuple(two), rel=1e-5)


def test_bad_arguments_are_named():
    for kind in (CountedBits, CountedHistogram):
        for given in ({}, {"eps0": 1.0, "gamma": 0.5}, {"one_if_one": 0.5}):
            with pytest.raises(ValueError, match="give eps0, or gamma, or one_if_one and"):
                kind(10, **given)
        for wrong in (0.0, -1.0, math.nan, 281.0):
            with pytest.raises(ValueError, match="eps0 must"):
                kind(10, eps0=wrong)
        for wrong in (0.0, 1.0, math.nan, 1e-140):
            with pytest.raises(ValueError, match="gamma must"):
                kind(10, gamma=wrong)
        for one, zero in ((0.5, 0.5), (1.0, 0.5), (0.5, 0.0), (math.nan, 0.5)):
            with pytest.raises(ValueError, match="one_if_one must"):
                kind(10, one_if_one=one, one_if_zero=zero)
        with pytest.raises(TypeError, match="gamma must"):
            kind(10, gamma="0.5")
        with pytest.raises(ValueError, match="n must"):
            kind(0, gamma=0.5)
    with pytest.raises(ValueError, match="bits must"):
        CountedBits(10, gamma=0.5, bits=0)


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
    for wrong in ({}, {"delta": 1e-6, "epsilon": 1.0}):
        with pytest.raises(ValueError, match="give exactly one of delta and epsilon"):
            CountedBits(10, eps0=1.0).attack_bounds(**wrong)
    with pytest.raises(ValueError, match="rounds"):
        CountedBits(10, eps0=1.0).attack_bounds(delta=0.1, rounds=0)
