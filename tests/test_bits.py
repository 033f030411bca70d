"""Counts of randomised bits: bounds against enumeration in rationals, ball arithmetic and published values."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import oracles as o
import pytest
from test_truths import bit, chosen, cohort, crowd, datasets

from pld_shuffle import Accountant, CountedBits, Shuffled, ShuffledLDP, Subsampled
from pld_shuffle.pairs import bit_kernels, strategy
from pld_shuffle.pairs import bits as bits_module
from pld_shuffle.pairs.bits import BitShares, bit_attack, bit_profile
from pld_shuffle.randomizers import Laplace
from pld_shuffle.report import Report

ROUNDING = 1e-13

# (one, zero) exact in binary; growths s - 1.
SHARES = [
    (Fraction(3, 4), Fraction(1, 4)),
    (Fraction(7, 8), Fraction(1, 8)),
    (Fraction(1, 2), Fraction(1, 16)),
    (Fraction(31, 32), Fraction(3, 8)),
    (Fraction(9, 16), Fraction(1, 2)),
]
GROWTHS = [k / 16 for k in (0, 1, 4, 12, 17, 32, 80, 200)]


def datasets_of(n: int, population: int, one: Fraction, zero: Fraction, bits: int):
    """All pairs of neighbouring datasets of those users, of whom n are drawn."""
    return datasets([bit(zero), bit(one)], population - 1, cohort(n, each=bits))


def of_ones(trials: int, share: float) -> np.ndarray:
    return np.array([math.comb(trials, k) * share**k * (1.0 - share) ** (trials - k) for k in range(trials + 1)])


def test_every_dataset_by_convolutions():
    """Asymmetric shares and several bits of few users: a range of two numbers of ones is cut into both of them."""
    settings = [(2, 3, 0.7073908613870717, 0.5767898224721332, [math.expm1(0.005)])]
    sizes = ((1, 1), (2, 1), (3, 1), (5, 1), (7, 1), (1, 2), (3, 2), (5, 2), (1, 3), (4, 3))
    settings += [(*size, float(one), float(zero), GROWTHS) for size in sizes for one, zero in SHARES]
    rng = np.random.default_rng(20261123)
    for _ in range(400):
        zero, one = np.sort(rng.uniform(0.02, 0.98, 2))
        expm1_epsilons = np.expm1(rng.uniform(0.0, math.log(one / zero), 12)).tolist()
        settings.append((int(rng.integers(1, 8)), int(rng.integers(1, 5)), one, zero, expm1_epsilons))
    for n, bits, one, zero, expm1_epsilons in settings:
        bounds = bit_profile(n, BitShares.of(one, zero), expm1_epsilons, bits=bits, rtol=1e-12)
        truth = np.zeros(len(expm1_epsilons))
        for ones in range(n):
            others = np.convolve(of_ones(bits * ones, one), of_ones(bits * (n - 1 - ones), zero))
            laws = [np.convolve(others, of_ones(bits, share)) for share in (one, zero)]
            for first, second in (laws, laws[::-1]):
                gains = first - (1.0 + np.array(expm1_epsilons)[:, np.newaxis]) * second
                truth = np.maximum(truth, np.maximum(0.0, gains).sum(axis=1))
        setting = (n, bits, one, zero)
        assert np.all(bounds.upper >= truth * (1.0 - 1e-12) - 1e-15), setting
        assert np.all(bounds.lower <= truth * (1.0 + 1e-12) + 1e-15), setting
        # The lower end is the best dataset, or next to it. Of several bits the upper end lets those of a user differ.
        near = 0.0 if bits == 1 or expm1_epsilons is GROWTHS else 0.01
        assert np.all(bounds.lower >= truth * (1.0 - near) - 1e-11), setting
        assert bits > 1 or np.all(bounds.upper <= truth + 1e-11), setting


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("n, eps0, eps", [(10**7, 1.0, 1.2e-3), (10**9, 8.0, 6e-3)])
def test_large_crowds_in_fifty_digits(n, eps0, eps, held):
    """Equal others."""
    shares = BitShares.randomized_response(eps0)
    expm1_eps = math.expm1(eps)
    with mpmath.workdps(50):
        zero, s = mpmath.mpf(shares.zero), 1 + mpmath.mpf(expm1_eps)
        one = 1 - zero
        truth = o.binomial_excess(n - 1, one if held else zero, one - s * zero, s * one - zero)
    place = n - 1 if held else 0
    bounds = bit_profile(n, shares, [expm1_eps], ones=(place, place), rtol=1e-12)
    assert bounds.lower[0] <= truth <= bounds.upper[0] <= bounds.lower[0] * (1 + 1e-6)


@pytest.mark.parametrize("one, zero", SHARES)
@pytest.mark.parametrize(
    "n, all_hold_one, bits", [(2, True, 1), (6, False, 1), (6, True, 1), (5, False, 3), (1, False, 2)]
)
def test_attack_atoms_in_rationals(n, all_hold_one, bits, one, zero):
    attack = bit_attack(n, BitShares.of(float(one), float(zero)), all_hold_one, bits=bits)
    others = [one if all_hold_one else zero] * (n - 1)
    first, second = (crowd([bit(held) for held in (share, *others)], bits) for share in (one, zero))
    for (_, k), p in first.items():
        q = second[n * bits - k, k]
        assert abs(attack.losses.mass[k] - float(p)) <= attack.mass_error * float(p)
        assert abs(attack.losses.loss[k] - math.log(p / q)) <= attack.losses.error
    assert attack.mass_error < 1e-12 and attack.losses.error < 1e-12


@pytest.mark.parametrize("n, eps0, bits", [(11, 7.96, 16), (30, 8.0, 16), (11, 10.0, 8)])
def test_a_target_may_have_more_bits_than_others_are_likely_to_report(n, eps0, bits):
    """The others' window ended before the target's own ones: the attack knew nothing, and masses were negative."""
    found = Accountant().compose(CountedBits(n, eps0=eps0, bits=bits)).epsilon_bounds(1e-6)
    with mpmath.workdps(60):
        zero = 1 / (1 + mpmath.exp(mpmath.mpf(eps0)))
        others, own, other = (
            [mpmath.binomial(m, k) * p**k * (1 - p) ** (m - k) for k in range(m + 1)]
            for m, p in ((bits * (n - 1), zero), (bits, zero), (bits, 1 - zero))
        )
        # Zeros of a target whose bits are 1, or are 0, beside others whose bits are 1.
        pairs = zip(np.convolve(others, own), np.convolve(others, other), strict=True)
        assert sum(max(p - mpmath.exp(found.lower) * q, 0) for p, q in pairs) > 1e-6
    assert found.upper - found.lower < 1e-5


def test_extremes():
    strong = BitShares.randomized_response(40.0)
    bounds = bit_profile(1000, strong, [0.0, 1e6, math.expm1(39.9), math.expm1(40.0), math.expm1(41.0)])
    assert bounds.lower[0] == pytest.approx(1.0, abs=1e-9) and bounds.upper[4] == 0.0
    assert np.all(bounds.lower <= bounds.upper)
    weak = bit_profile(10**12, BitShares.randomized_response(1e-3), [0.0, 1e-8])
    assert np.all(weak.upper <= weak.lower * (1 + 1e-4)) and weak.lower[0] > 0
    alone = bit_profile(1, BitShares.of(0.75, 0.25), [0.5, 2.0])
    assert alone.upper == pytest.approx([0.375, 0.0], abs=1e-12)
    assert bit_profile(10, strong, np.zeros((2, 3))).lower.shape == (2, 3)


# --- Counted bits: the mechanism and its accountant against enumeration in rationals, and telemetry's num ---


@pytest.mark.parametrize("n, bits, one, zero", [(40, 1, 0.75, 0.25), (17, 3, 0.75, 0.125), (200, 1, 0.984375, 2.0**-8)])
@pytest.mark.parametrize("listed", [1024, 8, 16])
def test_every_dataset_lies_below_its_range(n, bits, one, zero, listed, monkeypatch):
    """Lemma B6, in both orders; a dataset that is listed alone is next to its bound."""
    monkeypatch.setattr(bits_module, "LISTED", listed)
    shares, others = BitShares.of(one, zero), bits * (n - 1)
    expm1_eps = np.expm1(np.linspace(0.0, 0.9 * bits * math.log(one / zero), 20))
    known = bits_module.dataset_profiles(n, shares, expm1_eps, bits=bits)
    alone = listed > others
    assert len(known[0]) == others + 1 if alone else 4 <= len(known[0]) <= listed + 1
    for j in range(0, others + 1, bits):
        above = [np.max([one for one, (low, high) in zip(rows, spans(others, listed, shares), strict=True)
            if low <= j <= high], axis=0) for rows in known]  # fmt: skip
        for found, order, held in ((above[0], shares, j), (above[1], shares.mirrored, others - j)):
            place = held // bits
            exact = bit_profile(n, order, expm1_eps, bits=bits, ones=(place, place), rtol=1e-12).lower
            assert np.all(exact * (1.0 - 1e-12) <= found)
            if alone:
                assert np.all(found <= exact * (1.0 + 1e-9) + 1e-14)


@pytest.mark.parametrize(
    "n, one, zero, rate", [(40, 0.75, 0.25, 0.5), (60, 0.5, 2.0**-7, 0.1), (25, 0.9375, 0.25, 0.9)]
)
def test_every_hidden_cohort_lies_below_its_range(n, one, zero, rate, monkeypatch):
    """Lemma B6; rows of a single number of ones are the datasets that are enumerated above."""
    shares = BitShares.of(one, zero)
    expm1_eps = np.expm1(np.linspace(0.0, 0.9 * math.log1p(rate * (one / zero - 1.0)), 20))
    alone = bits_module.dataset_profiles(n, shares, expm1_eps, rate=rate)
    assert len(alone[0]) == n + 1
    monkeypatch.setattr(bits_module, "LISTED", 8)
    for rows, exact in zip(bits_module.dataset_profiles(n, shares, expm1_eps, rate=rate), alone, strict=True):
        for row, (low, high) in zip(rows, spans(n, 8, shares), strict=True):
            assert np.all(exact[low : high + 1] <= row * (1.0 + 1e-9))


def test_ranges_next_to_the_ends_tell_no_more_than_the_ends():
    """A target who takes the place of one of a few zeros: 17 times the attack by ranges of equal lengths."""
    n, shares, rate = 20_000, BitShares.randomized_response(8.0), 0.05
    attack = bit_attack(n, shares, False, rate=rate, truncated_mass=1e-250)
    expm1_eps = np.expm1(np.linspace(0.0, 0.8, 9))
    ahead, behind = bits_module.dataset_profiles(n, shares, expm1_eps, rate=rate)
    assert np.max([ahead, behind], axis=(0, 1)) == pytest.approx(attack.profile(expm1_eps).lower, rel=0.05)


def spans(last, listed, shares):
    """What a row holds for."""
    rows = bits_module._ranges(last, listed, shares.one * shares.not_one / (shares.zero * shares.not_zero))
    assert rows[0][0] == 0 and rows[-1][1] == last and all(low <= high for low, high in rows)
    assert all(high + 1 == low for (_, high), (low, _) in itertools.pairwise(rows))
    return rows


@pytest.mark.parametrize("bits, one, zero", [(1, 0.75, 0.25), (1, 0.9375, 0.25), (3, 0.75, 0.125), (1, 0.5, 2.0**-9)])
def test_every_dataset_lies_below_its_mixture_of_two_ends(bits, one, zero):
    """Theorem B5: one mixture for all s, on both sides of 1."""
    n, shares = 40, BitShares.of(one, zero)
    top = bits * math.log(one / zero)
    expm1_eps = np.expm1(np.linspace(0.0, 0.99 * top, 25))
    ends = []
    for order in (shares, shares.mirrored):
        left, right = np.empty(expm1_eps.size), np.empty(expm1_eps.size)
        bit_kernels.all_chords(
            expm1_eps, float(bits), order.one, order.not_one, order.zero, order.not_zero, order.gap,
            float(bits * (n - 1)), left, right,
        )  # fmt: skip
        ends.append((left, right))
    (left, right), (far_left, far_right) = ends
    for j in range(n):
        share = j / (n - 1)
        exact = bit_profile(n, shares, expm1_eps, bits=bits, ones=(j, j), rtol=1e-12).lower
        assert np.all(exact <= (1.0 - share) * left + share * right)
        # The target's other order counts zeros: the same mixture of the other chord's ends.
        place = n - 1 - j
        exact = bit_profile(n, shares.mirrored, expm1_eps, bits=bits, ones=(place, place), rtol=1e-12)
        assert np.all(exact.lower <= (1.0 - share) * far_right + share * far_left)


@pytest.mark.parametrize("n, population, bits, one, zero, rounds", [
    (1, 1, 1, Fraction(3, 4), Fraction(1, 4), 3),
    (3, 3, 1, Fraction(3, 4), Fraction(1, 4), 3),
    (3, 3, 1, Fraction(1, 2), Fraction(1, 16), 3),
    (2, 2, 2, Fraction(3, 4), Fraction(1, 8), 2),
    (1, 3, 1, Fraction(3, 4), Fraction(1, 8), 3),
    (2, 4, 1, Fraction(7, 8), Fraction(1, 8), 2),
    (2, 4, 1, Fraction(1, 2), Fraction(1, 16), 3),
])  # fmt: skip
@pytest.mark.parametrize("exact", [True, False])
def test_strategies_enumerated(n, population, bits, one, zero, rounds, exact, monkeypatch):
    """Others who change from round to round, as the outputs suggest; with all datasets as types, or ends of chords."""
    if not exact:
        monkeypatch.setattr(bits_module, "LISTED", 0)
        monkeypatch.setattr(bits_module, "LEAST_NOISE", 0.0)
    monkeypatch.setattr(strategy, "DIRECT_WORK", 1e8 if rounds == 2 else 0.0)  # by transforms, too
    mechanism = CountedBits(n, one_if_one=float(one), one_if_zero=float(zero), bits=bits)
    if population > n:
        mechanism = Subsampled(mechanism, population=population)
    strategy._values.cache_clear()
    accountant = Accountant(rtol=2e-3).compose(mechanism, rounds)
    losses = rounds * mechanism.pair.max_loss.upper * np.array([0.0, 0.05, 0.2, 0.5, 0.8])
    truths = chosen([datasets_of(n, population, one, zero, bits)] * rounds, losses=losses)
    for eps, truth in zip(losses, truths, strict=True):
        bounds = accountant.delta_bounds(eps)
        assert bounds.lower * (1 - ROUNDING) <= truth <= bounds.upper * (1 + ROUNDING)
        # A hidden cohort's members are taken to be known, bit by bit.
        assert not exact or bounds.upper <= truth * (1.01 if population == n and bits == 1 else 1.3)


def test_every_mechanism_tells_what_its_attack_spends():
    """The accountant's lower end, over rounds and for hidden cohorts; a stated adversary's own pair otherwise."""
    for mechanism in (
        ShuffledLDP(1.0, 1000),
        ShuffledLDP(1.0, 1000, "stronger-clones"),
        Subsampled(ShuffledLDP(1.0, 1000), population=10_000),
        CountedBits(1000, eps0=1.0),
        Shuffled(Laplace(eps0=1.0), 1000),
    ):
        accountant = Accountant().compose(mechanism, 5)
        bounds = accountant.epsilon_bounds(1e-6)
        attack = mechanism.attack_bounds(delta=1e-6, rounds=5)
        assert attack.lower == bounds.lower
        assert attack.upper <= bounds.upper * 1.001
        gap = accountant.gap_bounds(1e-6)
        assert bounds.lower <= gap.attack * (1 + 1e-12)
        assert gap.attack <= gap.analysis <= gap.proved == bounds.upper
        assert not hasattr(gap, "upper")  # the middle of a bracket is no bracket
        report = Report("epsilon", accountant.ledger, 1e-3)
        report.add_epsilons(accountant, [1e-6])
        report.values["seconds"] = 0.0
        text = "\n".join(report.lines())
        apart = mechanism.attack_pair is not mechanism.pair
        assert ("no analysis can go below" in text) == apart
    by_delta = CountedBits(1000, eps0=1.0).attack_bounds(epsilon=0.12661)
    assert by_delta.lower == pytest.approx(1e-6, rel=1e-2)


@pytest.mark.parametrize("boxes", [[(0, 1), (1, 0)], []])
def test_products_of_laws_lose_nothing(boxes) -> None:
    """Below the lattice to its lower end, beyond it to infinity; all mass is there, and the profile that of the sum."""
    rng = np.random.default_rng(3)
    one, other = (strategy.Laws(rows[:, :-1], rows[:, -1]) for rows in rng.dirichlet(np.ones(6), (2, 2)))
    found = one.times(other, boxes)
    for k, (i, j) in enumerate(boxes or [(0, 0), (0, 1), (1, 0), (1, 1)]):
        every = np.convolve(one.masses[i], other.masses[j])
        kept = np.concatenate(([every[:3].sum()], every[3:-2], [1.0 - every[:-2].sum()]))
        np.testing.assert_allclose([*found.masses[k], found.infinite[k]], kept, rtol=1e-13)
        assert np.all([*found.masses[k], found.infinite[k]] >= kept)
