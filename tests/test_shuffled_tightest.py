"""Named randomizers in a shuffler by the swap theorem with types: Laplace noise on [0, 1], and finite ones."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import ndtr

from pld_shuffle import Accountant
from pld_shuffle.composition.composition import Composition
from pld_shuffle.mechanisms.shuffled import Shuffled
from pld_shuffle.pairs import slots
from pld_shuffle.pairs.cohort import Cohort
from pld_shuffle.pairs.swap import typed_profile
from pld_shuffle.randomizers import (
    Gaussian,
    HadamardResponse,
    KRandomizedResponse,
    Laplace,
    LocalHashing,
    SubsetSelection,
    UnaryEncoding,
)
from pld_shuffle.randomizers.noise_laws import gaussian_attack, laplace_attack, laplace_types

# (eps0, n): attack, and what the theory's table has for the blanket; delta = 1e-6, one round.
TABLE = {
    (1.0, 1000): (0.11047, 0.13019),
    (1.0, 10_000): (0.03130, 0.03784),
    (2.0, 10_000): (0.07185, 0.09459),
    (4.0, 10_000): (0.2445, 0.3280),
}


@pytest.mark.parametrize("case", [(1.0, 1000), (1.0, 10_000)])
def test_bracket_around_the_truth(case):
    eps0, n = case
    attack, told = TABLE[case]
    accountant = Accountant().compose(Shuffled(Laplace(eps0=eps0), n))
    bounds = accountant.epsilon_bounds(1e-6)
    assert bounds.lower == pytest.approx(attack, rel=1e-3)
    assert bounds.lower <= bounds.upper <= 1.005 * bounds.lower
    assert bounds.upper < 0.87 * told


@pytest.mark.parametrize("case", list(TABLE))
def test_types_are_above_all_attacks_and_near_the_best(case):
    eps0, n = case
    growth = np.expm1(TABLE[case][0] * np.array([0.0, 0.5, 1.0, 1.3]))
    types = laplace_types(eps0, n, cells=32, allowance=0.003)
    bound = typed_profile(types, n, growth, mass_error=1e-13)
    best = np.zeros(growth.size)
    for first, second, others in [
        (0, 1, 0),
        (1, 0, 0),
        (0, 1, 0.5),
        (0.4, 1, 0),
        (1, 0.7, 0),
        (0.2, 0.8, 0.3),
    ]:
        masses = laplace_attack(eps0, first=first, second=second, others=others)
        attack = slots.slot_profile(*masses, n, growth, law=True, mass_error=1e-13)
        assert np.all(attack.lower <= bound)
        best = np.maximum(best, attack.lower)
    assert np.all(bound <= best * np.array([1.01, 1.03, 1.12, 1.2]))
    # In epsilon at 1e-6.
    slope = math.log(bound[2] / bound[3]) / (0.3 * TABLE[case][0])
    assert math.log(bound[2] / best[2]) / slope <= 0.005 * TABLE[case][0]


def test_sampled_and_composed():
    mechanism = Shuffled(Laplace(eps0=1.0), 10_000)
    one = Accountant().compose(mechanism).epsilon_bounds(1e-6)
    many = Accountant().compose(mechanism, 64).epsilon_bounds(1e-6)
    assert 1.0 <= many.upper / many.lower <= 1.006
    assert 8.0 < many.upper / one.upper < 10.0
    growth = np.array([0.0, 2e-4])
    types = laplace_types(1.0, 10_000, cells=32, allowance=0.003)
    masses = laplace_attack(1.0, first=0.0, second=1.0, others=0.0)
    rate = 0.01
    bound = typed_profile(types, 10_000, growth, cohort=Cohort(rate), mass_error=1e-13)
    law = [rate * row + (1.0 - rate) * masses[2] for row in masses[:2]]
    attack = slots.slot_profile(*law, masses[2], 10_000, growth, law=True, mass_error=1e-12)
    assert np.all(attack.lower <= bound)
    assert np.all(bound <= np.array([1.01, 1.1]) * attack.lower)


@pytest.mark.parametrize("eps0", [1.0, 4.0])
@pytest.mark.parametrize(
    "kind",
    [
        lambda eps0: KRandomizedResponse(k=4, eps0=eps0),
        lambda eps0: UnaryEncoding(k=4, eps0=eps0),
        lambda eps0: UnaryEncoding(k=4, eps0=eps0, variant="optimised"),
        lambda eps0: SubsetSelection(k=6, size=2, eps0=eps0),
        lambda eps0: HadamardResponse(k=8, eps0=eps0),
        lambda eps0: LocalHashing(k=8, buckets=4, eps0=eps0),
    ],
)
def test_finite_randomizers_are_near_the_attack(kind, eps0):
    bounds = Accountant().compose(Shuffled(kind(eps0), 10_000)).epsilon_bounds(1e-6)
    assert bounds.lower <= bounds.upper <= 1.003 * bounds.lower


def test_gaussian_noise_has_the_attack_below_and_the_blanket_above():
    mechanism = Shuffled(Gaussian(sigma=1.0), 10_000)
    masses = gaussian_attack(1.0, first=0.0, second=1.0, others=0.0, cells=96)
    growth = np.expm1([0.0, 0.03, 0.0458])
    orders = [masses, masses[[1, 0, 2]]]
    best = [slots.slot_profile(*law, 10_000, growth, law=True, mass_error=1e-12) for law in orders]
    found = mechanism.attack_pair.profile(growth, 1e-6, 0.0)
    assert np.all(max(float(one.upper[2]) for one in best) <= 1.001 * found.upper[2])
    assert found.lower[2] == pytest.approx(1e-6, rel=0.02)
    told = mechanism.pair.profile(growth, 1e-4, 1e-9)
    assert np.all(found.lower <= told.upper) and told.upper[2] < 1e-3


@pytest.mark.parametrize(
    ("randomizer", "gap"),
    [
        (HadamardResponse(k=2, eps0=1.0), 1.21),  # bounds also hold for a third value
        (LocalHashing(k=1000, buckets=4, eps0=1.0), 1.02),
    ],
)
def test_attacks_use_values_that_there_are(randomizer, gap):
    bounds = Accountant().compose(Shuffled(randomizer, 1000)).epsilon_bounds(1e-6)
    assert bounds.lower <= bounds.upper <= gap * bounds.lower


GAUSSIAN_ATTACKS = {  # (sigma, n): epsilon of the attack at delta = 1e-6, and how near the analysis is
    (8.0, 10_000): (0.0034971, 1.004),
    (2.0, 10_000): (0.0170627, 1.004),
    (1.0, 10_000): (0.0458086, 1.02),
    (2.0, 1_000_000): (0.00134384, 1.003),
}


@pytest.mark.parametrize("case", list(GAUSSIAN_ATTACKS))
def test_gaussian_noise_is_near_the_attack(case):
    sigma, n = case
    attack, near = GAUSSIAN_ATTACKS[case]
    mechanism = Shuffled(Gaussian(sigma=sigma), n)
    bounds = Accountant().compose(mechanism).epsilon_bounds(1e-6)
    assert bounds.lower == pytest.approx(attack, rel=1e-3)
    assert bounds.lower <= bounds.upper <= near * bounds.lower


def three_groups(sigma, inputs):
    """Masses of reports below -1/2, in between, and above 1: post-processing of the real reports."""
    cuts = (np.array([-0.5, 1.0])[:, None] - np.array(inputs)) / sigma
    below = ndtr(cuts)
    return np.array([below[0], below[1] - below[0], 1.0 - below[1]]).T


def crowd_law(laws):
    """Of the numbers of reports in all groups but the last, for independent reports."""
    total = np.ones((1,) * (len(laws[0]) - 1))
    for law in laws:
        total = with_one_more(total, law)
    return total


@pytest.mark.parametrize("presence, n", [(1.0, 60), (0.5, 24)])
def test_gaussian_noise_is_above_mixed_crowds(presence, n):
    """Others of three values in any proportion, the protocol's counts of three groups (and absences) exactly."""
    pair = Shuffled(Gaussian(sigma=1.0), n).sampled(Cohort(presence=presence))
    growth = np.expm1([0.0, 0.1, 0.2, 0.3, 0.5])
    upper = pair.profile(growth, 1e-6, 1e-12).upper
    values = three_groups(1.0, [0.0, 0.5, 1.0])
    if presence < 1.0:
        values = np.column_stack([presence * values, np.full(3, 1.0 - presence)])
    best = np.zeros(growth.size)
    for zeros, halves in ((n - 1, 0), (n // 2, 0), (n // 2, n // 4), (0, 0)):
        others = [values[0]] * zeros + [values[1]] * halves
        rest = crowd_law([*others, *[values[2]] * (n - 1 - zeros - halves)])
        for first, second in itertools.permutations(range(3), 2):
            ahead, behind = (with_one_more(rest, values[target]) for target in (first, second))
            truth = [np.maximum(ahead - (1.0 + g) * behind, 0.0).sum() for g in growth]
            assert np.all(np.array(truth) <= upper * (1 + 1e-12))
            best = np.maximum(best, truth)
    assert best[1] > 0.4 * upper[1]  # three groups tell much of it


def with_one_more(total, law):
    grown = np.zeros(tuple(size + 1 for size in total.shape))
    for group, mass in enumerate(law):
        where = tuple(
            slice(int(k == group), size + int(k == group)) for k, size in enumerate(total.shape)
        )
        grown[where] += mass * total
    return grown


def test_a_guest_is_one_user_only():
    """The user who reports from V, the blanket, as a type, and as a guest."""
    n, growth = 200, np.array([0.0, 0.1, 0.2])
    rows = np.array([[0.6, 0.25, 0.15], [0.25, 0.6, 0.15], [0.25, 0.25, 0.5]])
    least = rows.min(axis=0)
    shared = least / least.sum()
    types = [np.array([rows[0], rows[1], shared, other]) for other in rows]
    host = np.array([rows[0], rows[1], shared, shared])
    as_type = typed_profile([*types, host], n, growth, mass_error=1e-14)
    as_guest = typed_profile(types, n, growth, mass_error=1e-14, guest=host)
    assert np.all(as_guest <= 1.04 * as_type)
    for zeros, ones in ((n - 1, 0), (0, 0), (n // 2, n // 2), (60, 60)):
        others = [rows[0]] * zeros + [rows[1]] * ones + [rows[2]] * (n - 1 - zeros - ones)
        rest = crowd_law(others)
        ahead, behind = (with_one_more(rest, row) for row in rows[:2])
        truth = np.array([np.maximum(ahead - (1.0 + g) * behind, 0.0).sum() for g in growth])
        assert np.all(truth <= as_guest)
        if zeros == ones == 0:
            assert np.all(as_guest <= 1.1 * truth)
    with pytest.raises(ValueError, match="guest"):
        typed_profile(types, n, growth, guest=rows[0])


@pytest.mark.parametrize(
    ("k", "eps0", "n", "rounds"),
    [(16, 2.0, 10_000, 8), (16, 2.0, 10_000, 64), (3, 1.0, 10_000, 1000), (4, 4.0, 10_000, 4)],
)
def test_many_rounds_of_k_rr_are_no_more_than_those_of_its_coins(k, eps0, n, rounds):
    """No less than the exact attack, and by no more above the blanket's coins than rtol pays for."""
    mechanism = Shuffled(KRandomizedResponse(k=k, eps0=eps0), n)
    found = Composition([(mechanism.pair, rounds)], 1e-3).epsilons(1e-6).upper
    coins = Composition([(mechanism.core.pair, rounds)], 1e-3).epsilons(1e-6).upper
    attack = Composition([(mechanism.attack_pair, rounds)], 1e-3).epsilons(1e-6).lower
    assert attack <= found <= min(1.002 * attack, 1.0001 * coins)
