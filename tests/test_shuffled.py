"""Named randomizers in a shuffler: every analysis above, and every attack below, the enumerated protocol."""

from __future__ import annotations

import itertools
import math

import numpy as np
import oracles as o
import pytest
from enumerated import law_of
from scipy.special import ndtr
from test_truths import LOSSES, composed, one_order, random_randomizer

from pld_shuffle import Accountant, Shuffled, ShuffledLDP, ShuffledRandomizer
from pld_shuffle.composition.composition import Composition
from pld_shuffle.mechanisms.blanket import attack_law
from pld_shuffle.mechanisms.shuffled import Blanket
from pld_shuffle.pairs import slots
from pld_shuffle.pairs.cohort import Cohort
from pld_shuffle.pairs.swap import typed_profile
from pld_shuffle.randomizers import (
    DiscreteRandomizer,
    Gaussian,
    HadamardResponse,
    KRandomizedResponse,
    Laplace,
    LocalHashing,
    SubsetSelection,
    UnaryEncoding,
)
from pld_shuffle.randomizers.noise_laws import laplace_attack, laplace_types

ANALYSES = ("blanket", "reduction", "stronger-clones")


ZEROS = DiscreteRandomizer([[0.7, 0.3, 0.0], [0.0, 0.9, 0.1]])
ATTACKS = [(random_randomizer(seed)[0], n, 0, 1, -1) for seed, n in ((0, 2), (3, 3), (4, 3))]
ATTACKS += [
    (ZEROS, n, *values)
    for n in (1, 2, 4) for values in ((0, 1, 0), (1, 0, 0), (1, 0, 1), (0, 1, 1))
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(ATTACKS)))
def test_an_attack_is_its_own_two_datasets(case: int) -> None:
    """Exact on both sides: one order of two concrete datasets, over rounds; infinite losses where masses are 0."""
    randomizer, n, first, second, others = ATTACKS[case]
    law = randomizer.law()
    attack = attack_law(randomizer, n, (first, second, others % len(law))).ordered_pair()
    atoms = o.shuffled_pair(law[first], law[second], [law[others]] * (n - 1))
    for rounds in (1, 3) if randomizer is not ZEROS else (1,):
        truth = one_order(composed(atoms, rounds))
        lower, upper = Composition([(attack, rounds)], 1e-3).deltas(LOSSES)
        assert np.all(lower <= truth * (1 + 1e-11) + 1e-14)
        assert np.all(truth <= upper * (1 + 1e-11) + 1e-14)
        assert np.all(upper <= 1.001 * lower + 1e-9)


def test_laplace_over_a_hundred_rounds() -> None:
    """eps0 = 2, n = 10^5, delta = 1e-8: within rtol, and below the reduction and stronger clones."""
    laplace = Laplace(eps0=2.0)
    accountant = Accountant().compose(Shuffled(laplace, 10**5, analysis="blanket"), 100)
    lower, upper = accountant.epsilon_bounds(1e-8)
    ends = [accountant.delta_bounds(eps) for eps in (lower, upper)]
    assert max(end.upper / end.lower for end in ends) <= 1 + 1e-3
    reduction = ShuffledRandomizer(10**5, eps0=2.0, tv=laplace.tv)
    others = [reduction, ShuffledLDP(2.0, 10**5, analysis="stronger-clones")]
    found = [Accountant().compose(other, 100).epsilon_bounds(1e-8).lower for other in others]
    assert upper < 0.95 * found[0] and found[0] < 0.95 * found[1]


def test_one_user_is_not_hidden() -> None:
    """n = 1: the blanket adversary has the local randomizer's own divergence, exactly."""
    for randomizer in (SubsetSelection(k=5, size=2, eps0=2.0), UnaryEncoding(k=3, eps0=1.0)):
        law = law_of(randomizer)
        accountant = Accountant().compose(Blanket(randomizer, 1))
        for eps in (0.0, 0.2, 0.7):
            truth = float(np.maximum(law[0] - math.exp(eps) * law[1], 0.0).sum())
            lower, upper = accountant.delta_bounds(eps)
            assert lower <= truth * (1 + 1e-12) and truth <= upper * (1 + 1e-12)
            assert upper <= 1.001 * lower + 1e-12


def test_gaussian_noise_is_never_pure() -> None:
    """However large the noise, its losses are unbounded."""
    noise = Gaussian(sigma=10.0)
    assert Shuffled(noise, 1000, analysis="blanket").pair.max_loss.upper == math.inf


def test_identical_rows_spend_nothing() -> None:
    """eps0 = 0: a null mechanism, not an error, unless an analysis needs eps0."""
    same = DiscreteRandomizer([[0.3, 0.7], [0.3, 0.7]])
    assert Accountant().compose(Shuffled(same, 10, analysis="blanket"), 5).get_epsilon(0.0) == 0.0
    with pytest.raises(ValueError, match="finite positive eps0"):
        Shuffled(same, 10, "reduction")


def test_local_budgets_beyond_all_hiding() -> None:
    """eps0 = 400: the blanket refuses, the default takes the reduction, and says so."""
    strong = Shuffled(UnaryEncoding(k=4, eps0=400.0), 10)
    assert isinstance(strong.core, ShuffledRandomizer)
    assert "reduction" in strong.assumptions()["analysis"]


def test_tiny_local_budgets() -> None:
    """eps0 = 1e-6: as precise as any other."""
    accountant = Accountant().compose(Shuffled(UnaryEncoding(k=4, eps0=1e-6), 1000, analysis="blanket"))
    lower, upper = accountant.epsilon_bounds(1e-9)
    assert 0.0 < lower <= upper <= 1.001 * lower < 1e-6


def test_alternatives_name_what_others_give() -> None:
    """All analyses that apply, consistent with accounting each on its own."""
    mechanism = Shuffled(SubsetSelection(k=5, size=2, eps0=2.0), 2000, analysis="blanket")
    found = mechanism.alternatives(delta=1e-6, rounds=4)
    assert set(found) == {"swap", *ANALYSES}
    assert found["swap"].upper < 0.98 * min(found[name].upper for name in ANALYSES)
    expected = Accountant().compose(ShuffledLDP(2.0, 2000, analysis="stronger-clones"), 4).epsilon_bounds(1e-6)
    assert found["stronger-clones"] == expected
    assert "blanket" in mechanism.assumptions()["analysis"]
    assert set(Shuffled(Gaussian(sigma=1.0), 10_000).alternatives(delta=1e-3)) == {"blanket", "swap"}
    assert "bits" in Shuffled(KRandomizedResponse(k=2, eps0=2.0), 100).alternatives(delta=1e-3)


# --- Named randomizers in a shuffler by the swap theorem with types: Laplace noise on [0, 1], and finite  ---

# (eps0, n): attack, and what the theory's table has for the blanket; delta = 1e-6, one round.
TABLE = {
    (1.0, 1000): (0.11047, 0.13019),
    (1.0, 10_000): (0.03130, 0.03784),
    (2.0, 10_000): (0.07185, 0.09459),
    (4.0, 10_000): (0.2445, 0.3280),
}


@pytest.mark.parametrize("case", list(TABLE))
def test_types_are_above_all_attacks_and_near_the_best(case):
    eps0, n = case
    expm1_eps = np.expm1(TABLE[case][0] * np.array([0.0, 0.5, 1.0, 1.3]))
    types = laplace_types(eps0, n, cells=32, allowance=0.003)
    bound = typed_profile(types, n, expm1_eps, mass_error=1e-13)
    best = np.zeros(expm1_eps.size)
    for first, second, others in [(0, 1, 0), (1, 0, 0), (0, 1, 0.5), (0.4, 1, 0), (1, 0.7, 0), (0.2, 0.8, 0.3)]:
        masses = laplace_attack(eps0, first=first, second=second, others=others)
        attack = slots.slot_profile(*masses, n, expm1_eps, law=True, mass_error=1e-13)
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
    expm1_eps = np.array([0.0, 2e-4])
    types = laplace_types(1.0, 10_000, cells=32, allowance=0.003)
    masses = laplace_attack(1.0, first=0.0, second=1.0, others=0.0)
    rate = 0.01
    bound = typed_profile(types, 10_000, expm1_eps, cohort=Cohort(rate), mass_error=1e-13)
    law = [rate * row + (1.0 - rate) * masses[2] for row in masses[:2]]
    attack = slots.slot_profile(*law, masses[2], 10_000, expm1_eps, law=True, mass_error=1e-12)
    assert np.all(attack.lower <= bound)
    assert np.all(bound <= np.array([1.01, 1.1]) * attack.lower)


@pytest.mark.parametrize("eps0", [1.0, 4.0])
@pytest.mark.parametrize("kind", [
    lambda eps0: KRandomizedResponse(k=4, eps0=eps0),
    lambda eps0: UnaryEncoding(k=4, eps0=eps0),
    lambda eps0: UnaryEncoding(k=4, eps0=eps0, variant="optimised"),
    lambda eps0: SubsetSelection(k=6, size=2, eps0=eps0),
    lambda eps0: HadamardResponse(k=8, eps0=eps0),
    lambda eps0: LocalHashing(k=8, buckets=4, eps0=eps0),
])  # fmt: skip
def test_finite_randomizers_are_near_the_attack(kind, eps0):
    bounds = Accountant().compose(Shuffled(kind(eps0), 10_000)).epsilon_bounds(1e-6)
    assert bounds.lower <= bounds.upper <= 1.003 * bounds.lower


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
    expm1_eps = np.expm1([0.0, 0.1, 0.2, 0.3, 0.5])
    upper = pair.profile(expm1_eps, 1e-6, 1e-12).upper
    values = three_groups(1.0, [0.0, 0.5, 1.0])
    if presence < 1.0:
        values = np.column_stack([presence * values, np.full(3, 1.0 - presence)])
    best = np.zeros(expm1_eps.size)
    for zeros, halves in ((n - 1, 0), (n // 2, 0), (n // 2, n // 4), (0, 0)):
        others = [values[0]] * zeros + [values[1]] * halves
        rest = crowd_law([*others, *[values[2]] * (n - 1 - zeros - halves)])
        for first, second in itertools.permutations(range(3), 2):
            ahead, behind = (with_one_more(rest, values[target]) for target in (first, second))
            truth = [np.maximum(ahead - (1.0 + g) * behind, 0.0).sum() for g in expm1_eps]
            assert np.all(np.array(truth) <= upper * (1 + 1e-12))
            best = np.maximum(best, truth)
    assert best[1] > 0.4 * upper[1]  # three groups tell much of it


def with_one_more(total, law):
    grown = np.zeros(tuple(size + 1 for size in total.shape))
    for group, mass in enumerate(law):
        where = tuple(slice(int(k == group), size + int(k == group)) for k, size in enumerate(total.shape))
        grown[where] += mass * total
    return grown


def test_a_guest_is_one_user_only():
    """The user who reports from V, the blanket, as a type, and as a guest."""
    n, expm1_eps = 200, np.array([0.0, 0.1, 0.2])
    rows = np.array([[0.6, 0.25, 0.15], [0.25, 0.6, 0.15], [0.25, 0.25, 0.5]])
    least = rows.min(axis=0)
    shared = least / least.sum()
    types = [np.array([rows[0], rows[1], shared, other]) for other in rows]
    host = np.array([rows[0], rows[1], shared, shared])
    as_type = typed_profile([*types, host], n, expm1_eps, mass_error=1e-14)
    as_uncovered_user = typed_profile(types, n, expm1_eps, mass_error=1e-14, uncovered_user=host)
    assert np.all(as_uncovered_user <= 1.04 * as_type)
    for zeros, ones in ((n - 1, 0), (0, 0), (n // 2, n // 2), (60, 60)):
        others = [rows[0]] * zeros + [rows[1]] * ones + [rows[2]] * (n - 1 - zeros - ones)
        rest = crowd_law(others)
        ahead, behind = (with_one_more(rest, row) for row in rows[:2])
        truth = np.array([np.maximum(ahead - (1.0 + g) * behind, 0.0).sum() for g in expm1_eps])
        assert np.all(truth <= as_uncovered_user)
        if zeros == ones == 0:
            assert np.all(as_uncovered_user <= 1.1 * truth)


@pytest.mark.parametrize(("k", "eps0", "n", "rounds"), [
    (16, 2.0, 10_000, 8), (16, 2.0, 10_000, 64), (3, 1.0, 10_000, 1000), (4, 4.0, 10_000, 4),
])  # fmt: skip
def test_many_rounds_of_k_rr_are_no_more_than_those_of_its_coins(k, eps0, n, rounds):
    """No less than the exact attack, and by no more above the blanket's coins than rtol pays for."""
    mechanism = Shuffled(KRandomizedResponse(k=k, eps0=eps0), n)
    found = Composition([(mechanism.pair, rounds)], 1e-3).epsilons(1e-6).upper
    coins = Composition([(mechanism.core.pair, rounds)], 1e-3).epsilons(1e-6).upper
    attack = Composition([(mechanism.attack_pair, rounds)], 1e-3).epsilons(1e-6).lower
    assert attack <= found <= min(1.002 * attack, 1.0001 * coins)
