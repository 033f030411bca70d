"""Hidden cohorts, Poisson participation, dropouts: the real schemes, enumerated in exact numbers.

The schemes are played user by user: who is drawn, who takes part, what everybody reports. Upper ends must not be
below what any dataset gives away, lower ends not above what the worst one does; where all others hold one value
labels are exact. What is the same object computed twice (coins, slot laws) must agree.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from oracles import (
    histogram_law,
    hockey_stick,
    pair_of_views,
    to_mpf,
)

from pld_shuffle import (
    Accountant,
    PoissonSampled,
    Shuffled,
    ShuffledLDP,
    ShuffledRandomizer,
    ShuffledRR,
    Subsampled,
)
from pld_shuffle.calibration import solve
from pld_shuffle.composition.composition import Composition
from pld_shuffle.fields import FieldError, mechanism_from_values
from pld_shuffle.numerics.sides import Side
from pld_shuffle.pairs.cohort import Cohort
from pld_shuffle.pairs.coins import CoinMixture
from pld_shuffle.pairs.pair import Resolution
from pld_shuffle.randomizers import (
    BinaryRandomizedResponse,
    UnaryEncoding,
)
from pld_shuffle.randomizers import Laplace as LaplaceReports

P = Fraction(3)  # e^eps0
EPS0 = math.log(3.0)
GROWTHS = [Fraction(0), Fraction(1, 50), Fraction(1, 5), Fraction(3, 4), Fraction(3, 2)]
#: Binary and 3-ary randomised response, and a vertex of the polytope with four reports.
RANDOMIZERS = {
    "binary": [[P / 4, 1 / (P + 1)], [1 / (P + 1), P / 4]],
    "3-rr": [[(P if x == y else 1) / (P + 2) for y in range(3)] for x in range(3)],
    "vertex": [[Fraction(a, 8) for a in row] for row in ([3, 3, 1, 1], [3, 1, 3, 1], [1, 1, 3, 3])],
}


def poisson_view(laws, rate):
    """View -> probability, every subset of the users by itself; the histogram tells how many came."""
    view = {}
    for present in itertools.product((False, True), repeat=len(laws)):
        chance = math.prod(rate if here else 1 - rate for here in present)
        here = [law for law, comes in zip(laws, present, strict=True) if comes]
        counted = histogram_law(here) if here else {(0,) * len(laws[0]): Fraction(1)}
        for key, mass in counted.items():
            view[key] = view.get(key, 0) + chance * mass
    return view


@pytest.mark.parametrize(("n", "rate"), [(2, 0.5), (5, 0.375), (6, 0.875)])
def test_equal_others_give_the_labels_away(n, rate):
    """The attack of `ShuffledLDP` is 3-ary randomised response with all others at the third value, exactly."""
    rows = RANDOMIZERS["3-rr"]
    views = [poisson_view([rows[x], *[rows[2]] * (n - 1)], Fraction(rate)) for x in (0, 1)]
    atoms = pair_of_views(*views)
    attack = PoissonSampled(ShuffledLDP(EPS0, n), rate).attack_pair
    growth = np.array([float(g) for g in GROWTHS])
    bounds = attack.profile(growth, 2e-9, 0.0)
    exact = np.array([float(hockey_stick(atoms, 1 + g)) for g in GROWTHS])
    assert np.all(bounds.lower <= exact * (1.0 + 1e-14))
    assert np.all(exact <= bounds.upper * (1.0 + 1e-14))
    assert np.all(bounds.upper - bounds.lower <= 1e-8 * exact + 1e-15)


@pytest.mark.parametrize("presence", [0.25, 0.75])
@pytest.mark.parametrize("rate", [1.0, 0.125])
@pytest.mark.parametrize(
    "mechanism",
    [
        ShuffledLDP(EPS0, 5, analysis="stronger-clones"),
        ShuffledRR(k=4, n=5, gamma=0.25, adversary="weak"),
        ShuffledRandomizer(5, tv=0.25, p=3.0, q=4.0),
    ],
)
def test_labels_by_enumeration(mechanism, presence, rate):
    """Coins with an absent label, or slots with one, are the labels of five users, enumerated."""
    coins = mechanism.pair
    silent = 1.0 - coins.coin_rate - coins.neutral_rate
    high = coins.target_coin * (1.0 + coins.theta) / 2.0
    low = coins.target_coin * (1.0 - coins.theta) / 2.0
    other = [coins.coin_rate / 2.0, coins.coin_rate / 2.0, coins.neutral_rate, silent, 0.0]
    target = [high, low, coins.target_neutral, 0.0, 0.0]
    absent = [0.0, 0.0, 0.0, 0.0, 1.0]

    def comes(law):
        return [
            to_mpf(presence) * to_mpf(a) + (1 - to_mpf(presence)) * to_mpf(b)
            for a, b in zip(law, absent, strict=True)
        ]

    def hidden(law):
        return [
            to_mpf(rate) * a + (1 - to_mpf(rate)) * b
            for a, b in zip(comes(law), comes(other), strict=True)
        ]

    swapped = [target[1], target[0], *target[2:]]
    crowd = [comes(other)] * (coins.n - 1)
    atoms = pair_of_views(*(histogram_law([hidden(law), *crowd]) for law in (target, swapped)))
    exact = np.array([float(hockey_stick(atoms, to_mpf(1 + float(g)))) for g in GROWTHS])
    assert deltas(mechanism.sampled(Cohort(rate, presence))) == pytest.approx(
        exact, rel=1e-7, abs=1e-15
    )


def deltas(pair):
    """H at the growths: of the atoms of a mixture of coins, in cells too small for two of them; or by its profile."""
    growth = np.array([float(g) for g in GROWTHS])
    if not isinstance(pair, CoinMixture):
        return pair.profile(growth, 1e-8, 0.0).upper
    [atoms] = pair.atoms([Side.UPPER], Resolution(1e-6, missed=1e-17))
    falls = np.maximum(0.0, 1.0 - (1.0 + growth[:, None]) * np.exp(-atoms.loss))
    return falls @ atoms.mass + atoms.infinite


@pytest.mark.parametrize("n", [40, 3000])
@pytest.mark.parametrize("rate", [1.0, 0.01])
def test_coins_and_slots_are_one_law(n, rate):
    """The same labels by two codes that share nothing: a mixture of coins, and a contour."""
    for mechanism in (
        ShuffledLDP(EPS0, n, analysis="stronger-clones"),
        ShuffledRR(k=4, n=n, eps0=2.0, adversary="weak"),
    ):
        coins = mechanism.sampled(Cohort(rate, 0.125))
        slots = mechanism.pair.slot_law().sampled(Cohort(rate, 0.125))
        composed = Composition([(coins, 1)], 1e-4)
        for eps in np.array([0.0, 1.0, 3.0]) * coins.scale:
            bounds = composed.deltas(float(eps))
            other = slots.profile(np.array([math.expm1(eps)]), 1e-8)
            assert bounds.lower <= other.upper[0] * (1.0 + 1e-13)
            assert other.lower[0] <= bounds.upper * (1.0 + 1e-13)
            assert bounds.upper <= bounds.lower * (1.0 + 2e-4)


@pytest.mark.parametrize(
    ("base", "width"),
    [
        (Shuffled(BinaryRandomizedResponse(4.0), 1000), 1.03),  # 2.6 by the attack on everybody
        (Shuffled(LaplaceReports(eps0=2.0), 1000), 1.25),  # 1.6
        (ShuffledLDP(0.5, 1000), 1.001),
    ],
)
def test_attacks_are_chosen_on_the_cohort(base, width):
    """Who stands in for an absent target should look like the second dataset, not the first."""
    sampled = PoissonSampled(base, 0.1)
    upper = Composition([(sampled.pair, 1)], 1e-3).epsilons(1e-6).upper
    lower = Composition([(sampled.attack_pair, 1)], 1e-3).epsilons(1e-6).lower
    assert lower <= upper <= width * lower


def test_bits_by_coins_are_near_the_attack():
    """One per cent of 10^5 users, eps0 = 4: one round, and 64."""
    sampled = PoissonSampled(Shuffled(BinaryRandomizedResponse(4.0), 100_000), 0.01)
    for rounds, width in ((1, 1.005), (64, 1.025)):
        upper = Composition([(sampled.pair, rounds)], 1e-3).epsilons(1e-6).upper
        lower = Composition([(sampled.attack_pair, rounds)], 1e-3).epsilons(1e-6).lower
        assert lower <= upper <= width * lower


TABLE = [  # docs/swap.md, stronger clones' labels; cohort, population, eps0, rounds, delta, epsilon
    (1000, 10**5, 3.0, 10, 1e-5, "0.015020"),
    (1000, 10**5, 3.0, 1000, 1e-5, "0.190925"),
    (1000, 10**5, 3.0, 10**4, 1e-5, "0.669680"),
    (100, 10**4, 4.0, 1000, 1e-5, "1.219678"),
    (50, 1000, 4.0, 100, 1e-6, "3.331100"),
    (5000, 10**6, 6.33981, 2000, 1e-6, "0.423078"),
    (500, 10**6, 6.0, 2000, 1e-6, "0.102938"),
    (1000, 10**4, 5.0, 500, 1e-6, "6.035443"),
    (500, 50_000, 1.0, 1000, 1e-6, "0.062701"),
    (500, 50_000, 2.0, 1000, 1e-6, "0.16552"),
    (500, 50_000, 4.0, 1000, 1e-6, "0.58512"),
    (500, 50_000, 6.0, 1000, 1e-6, "1.7634"),
]


@pytest.mark.parametrize(("n", "population", "eps0", "rounds", "delta", "printed"), TABLE)
def test_table_of_hidden_cohorts(n, population, eps0, rounds, delta, printed):
    mechanism = Subsampled(ShuffledLDP(eps0, n, analysis="stronger-clones"), population=population)
    bounds = Composition([(mechanism.pair, rounds)], 1e-3).epsilons(delta)
    unit = 1.01 * 10.0 ** -len(printed.partition(".")[2])
    assert bounds.lower - unit <= float(printed) <= bounds.upper + unit
    assert bounds.upper - bounds.lower <= 3e-4 * bounds.upper


@pytest.mark.parametrize(
    ("eps0", "attack", "labels"), [(1.0, 0.055173, 0.062701), (4.0, 0.57956, 0.58512)]
)
def test_default_is_between_attack_and_labels(eps0, attack, labels):
    """500 of 5e4, 1,000 rounds, delta = 1e-6."""
    bounds = (
        Accountant()
        .compose(Subsampled(ShuffledLDP(eps0, 500), population=50_000), 1000)
        .epsilon_bounds(1e-6)
    )
    assert bounds.lower <= attack * (1.0 + 1e-4)
    assert bounds.lower >= attack * (1.0 - 1e-3)
    assert attack <= bounds.upper <= labels * (1.0 + 1e-4)


def test_a_fixed_cohort_of_the_mean_size_understates():
    """Poisson participation is the mixture over sizes: more far out, at small delta."""
    labels = ShuffledLDP(4.0, 20_000, analysis="stronger-clones")
    poisson = Composition([(PoissonSampled(labels, 0.05).pair, 100)], 1e-4)
    cohort = ShuffledLDP(4.0, 1000, analysis="stronger-clones")
    fixed = Composition([(Subsampled(cohort, population=20_000).pair, 100)], 1e-4)
    assert poisson.epsilons(1e-6).lower > fixed.epsilons(1e-6).upper
    # and no more than a cohort that is hardly ever exceeded
    large = ShuffledLDP(4.0, 1300, analysis="stronger-clones")
    above = Composition([(Subsampled(large, population=20_000).pair, 100)], 1e-4)
    assert poisson.epsilons(1e-6).upper < above.epsilons(1e-6).lower


def test_plan_of_a_training_run():
    """5,000 of 1e6, 2,000 rounds, epsilon 2 at delta 1e-6, from both sides; it was 6.34 by amplification."""
    plan = {"n": 5000, "population": 10**6, "rounds": 2000, "analysis": "stronger-clones"}
    found = solve("eps0", plan, epsilon=2.0, delta=1e-6)
    assert found.value > 8.0
    for eps0, safe in ((found.value, True), (found.value * 1.01, False)):
        cohort = ShuffledLDP(eps0, 5000, analysis="stronger-clones")
        spent = Composition([(Subsampled(cohort, population=10**6).pair, 2000)], 1e-3).epsilons(
            1e-6
        )
        assert spent.upper <= 2.0 if safe else spent.lower > 2.0


# --- the public face -------------------------------------------------------------------------


def test_everybody_present_is_the_mechanism():
    base = ShuffledLDP(2.0, 100)
    assert PoissonSampled(base, 1.0).pair is base.pair
    assert Subsampled(base, rate=1.0, dropout=0.0).pair is base.pair
    assert PoissonSampled(base, 0.5).pair.max_loss.upper == 2.0


@pytest.mark.parametrize("cohort", [Cohort(0.1), Cohort(1.0, 0.5), Cohort(0.1, 0.5)])
@pytest.mark.parametrize("randomizer", [UnaryEncoding(k=3, eps0=1.0), LaplaceReports(eps0=1.0)])
def test_what_takes_any_cohort_has_a_pair_for_it(randomizer, cohort):
    """`any_cohort` is believed when a sampled mechanism is built; the pair is formed later."""
    analyses = ("tightest", "blanket", "reduction", "stronger-clones")
    built = [Shuffled(randomizer, 40, analysis=analysis) for analysis in analyses]
    for mechanism in (*built, ShuffledLDP(1.0, 40), ShuffledLDP(1.0, 40, analysis="clones")):
        assert mechanism.any_cohort
        assert mechanism.sampled(cohort) and mechanism.sampled_attack(cohort)


def test_fields():
    plain = {"n": 1000, "eps0": 2.0}
    assert mechanism_from_values({**plain, "rate": 0.1, "sampling": "poisson"}) == PoissonSampled(
        ShuffledLDP(2.0, 1000), 0.1
    )
    assert mechanism_from_values(
        {**plain, "population": 9000, "dropout": 0.1, "sampling": "fixed"}
    ) == Subsampled(ShuffledLDP(2.0, 1000), population=9000, dropout=0.1)
    assert mechanism_from_values({**plain, "dropout": 0.1}) == Subsampled(
        ShuffledLDP(2.0, 1000), rate=1.0, dropout=0.1
    )
    for given, field in (
        ({"sampling": "poisson"}, "rate"),
        ({"sampling": "poisson", "rate": 0.1, "dropout": 0.1}, "dropout"),
        ({"sampling": "poisson", "population": 10_000}, "population"),
        ({"sampling": "bernoulli", "rate": 0.1}, "sampling"),
        ({"rate": 0.1, "dropout": 1.0}, "dropout"),
    ):
        with pytest.raises(FieldError) as error:
            mechanism_from_values({**plain, **given})
        assert error.value.field == field
