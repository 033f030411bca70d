"""Findings of hostile reviews, each as a test that failed on the release it was found in."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import oracles as o
import pytest
from mpmath import mp, mpf
from test_truths import datasets, rr

from pld_shuffle import (
    Accountant,
    AccuracyWarning,
    DiscretePair,
    PoissonSampled,
    Shuffled,
    ShuffledLDP,
    ShuffledRandomizer,
    ShuffledRR,
    Subsampled,
)
from pld_shuffle.mechanisms import Laplace, MixedRR, Summed
from pld_shuffle.mechanisms.imported import ImportedPair
from pld_shuffle.mechanisms.shuffled import Blanket
from pld_shuffle.numerics.sides import Side
from pld_shuffle.pairs.coins import CoinMixture, Components
from pld_shuffle.pairs.pair import Resolution
from pld_shuffle.pairs.slots import SlotLaw
from pld_shuffle.randomizers import RAPPOR, BinaryRandomizedResponse, Gaussian, UnaryEncoding


def _spends() -> Accountant:
    return Accountant().compose(ShuffledLDP(eps0=1.0, n=2, analysis="stronger-clones"))


THIRD = Fraction(1, 3)  # float(THIRD) is below it
FIFTH = Fraction(1, 5)  # float(FIFTH) is above it
LONG = np.longdouble(1) / np.longdouble(3)


@pytest.mark.parametrize("number", [THIRD, FIFTH, LONG, 1 + Fraction(1, 2**60)])
def test_a_number_that_is_no_double_is_answered_for_itself(number: Any) -> None:
    """The upper end is that of the double below, the lower end that of the double above; 0.2.0 took the nearest."""
    near = float(number)
    if near == number:
        pytest.skip("a longdouble is a double here")
    low, high = (near, math.nextafter(near, 2.0)) if near < number else (math.nextafter(near, 0.0), near)
    accountant = _spends()
    found = accountant.delta_bounds(number)
    assert found.upper == accountant.delta_bounds(low).upper
    assert found.lower == accountant.delta_bounds(high).lower
    assert float(accountant.delta_bounds(np.array([number, 0.5])).upper[0]) == found.upper
    if number < 1:
        spent = accountant.epsilon_bounds(number)
        assert spent.upper == accountant.epsilon_bounds(low).upper
        assert spent.lower == accountant.epsilon_bounds(high).lower
        assert accountant.gap_bounds(number).analysis == spent.lower


@pytest.mark.filterwarnings("ignore::pld_shuffle.AccuracyWarning")  # one atom is left
def test_just_below_the_largest_loss() -> None:
    """delta is not 0 at a fraction below eps0 = 1 whose nearest double is 1 itself."""
    accountant = _spends()
    assert accountant.delta_bounds(1.0).upper == 0.0
    assert accountant.delta_bounds(1 - Fraction(1, 2**60)).upper > 0.0


@pytest.mark.filterwarnings("ignore::pld_shuffle.AccuracyWarning")  # one atom is left, 700 +- 1e-3 away
def test_a_coin_rate_below_the_normal_doubles() -> None:
    """coin_rate was divided by target_coin after it had lost its digits: the largest loss was off by a percent."""
    hidden = Subsampled(ShuffledRandomizer(2, tv=1e-20, eps0=700.0), rate=0.5)
    with mp.workdps(700):
        p = o.exp_of(700.0)
        atoms = o.hidden_cohort(*o.reduction_laws(p, mpf(1e-20), p), 2, mpf(0.5))
        most = o.Composition([(atoms, 1)]).largest_loss()
        assert hidden.pair.max_loss.lower <= most <= hidden.pair.max_loss.upper
        bounds = Accountant().compose(hidden).delta_bounds(float(most) - 1e-3)
        assert mpf(bounds.lower) <= o.hockey_stick(atoms, mp.exp(mpf(float(most) - 1e-3))) <= mpf(bounds.upper)


@pytest.mark.parametrize("epsilon", [1.5709096840132995e-15, 4.7127290567479214e-15])
def test_a_rare_atom_beside_a_frequent_one(epsilon: float) -> None:
    """The rounding of the ratio of their sum hid the rare one, and its share of the next lattice point with it."""
    p, q, tv = 1.0000008529787434, 1.0000000000003932, 2.1268954452181135e-16
    rate = 7.366706549679491e-09
    hidden = Subsampled(ShuffledRandomizer(4, tv=tv, p=p, q=q), rate=rate)
    with mp.workdps(120):
        beta = min(mpf(tv), (mpf(p) - 1) / (mpf(p) + 1), mpf(q) - 1)
        atoms = o.hidden_cohort(*o.reduction_laws(mpf(p), beta, mpf(q)), 4, mpf(rate))
        truth = o.hockey_stick(atoms, mp.exp(mpf(epsilon)))
        step = float(hidden.pair.max_loss.upper) / 80
        for side in Side:
            found = hidden.pld(step=step, side=side, truncated_mass=1e-240).delta(epsilon)
            assert (mpf(found) >= truth) if side is Side.UPPER else (mpf(found) <= truth)


def test_a_lower_law_of_tiny_masses_stays_below() -> None:
    """A transform invented 1e-16 of mass, more than there was: laws are multiplied directly."""
    one = ShuffledRandomizer(1, tv=5.540145387018587e-21, eps0=0.18286238510057123)
    hidden = Subsampled(one, population=33591, analysis="general")
    lower, upper = (
        hidden.pld(step=6.3749024807756074e-09, side=side, truncated_mass=1e-118).self_compose(2)
        for side in (Side.LOWER, Side.UPPER)
    )
    at = 5.973283624492708e-06
    assert 4.5e-45 < lower.delta(at) <= upper.delta(at) < 4.6e-45  # the truth is 4.55e-45


@pytest.mark.parametrize(
    ("eps0", "other", "epsilon"),
    [(2.913256993874994e-09, 2.010653247643172, 1.4e-9), (0.00182, 1.5624865490876758e-08, 9.1e-4)],
)
def test_budgets_of_one_class_are_exact(eps0: float, other: float, epsilon: float) -> None:
    """Lower ends of one other user were those of a crowd smaller by 1e-12: a larger delta."""
    with mp.workdps(80):
        k = 10
        own, theirs = (k / (o.exp_of(eps) + k - 1) for eps in (eps0, other))
        first = [1 - own + own / k, own / k, own * (k - 2) / k, 0]
        others = [theirs / k, theirs / k, theirs * (k - 2) / k, 1 - theirs]
        pair = o.shuffled_pair(first, [first[1], first[0], *first[2:]], [others])
        truth = o.hockey_stick(pair, mp.exp(mpf(epsilon)))
        mechanism = MixedRR(k, eps0, ((other, 1),))
        bounds = Accountant(rtol=1e-4).compose(mechanism).delta_bounds(epsilon)
        assert mpf(bounds.lower) <= truth <= mpf(bounds.upper)
        largest = float(mechanism.pair.max_loss.upper)
        for parts in (3, 100):
            found = mechanism.pld(step=largest / parts, side=Side.LOWER, truncated_mass=1e-60).delta(epsilon)
            assert mpf(found) <= truth


@pytest.mark.filterwarnings("ignore::pld_shuffle.AccuracyWarning")
def test_the_largest_loss_of_an_imported_pair() -> None:
    """1 + 2^-53 is 1 in doubles: the largest loss was rounded down, and delta just below the true one was 0."""
    step, low = 2.0516371343216737e-06, 13
    pair = ImportedPair(step, low, (0.01, 0.02, 0.005, 0.1, 0.03), 0.0, "replace-one")
    largest = Fraction(step) * 17
    below = math.nextafter(float(largest), 0.0) if float(largest) >= largest else float(largest)
    assert Fraction(below) < largest <= Fraction(float(pair.pair.max_loss.upper))
    truth = Fraction(0.02999) * (largest - Fraction(below))  # 1 - e^-x, x below 1e-21
    assert Fraction(Accountant().compose(pair).get_delta(below)) >= truth > 0


@pytest.mark.parametrize("rtol", [0.15819737338321677, 1e-2, 1e-3])
def test_windows_of_an_attack_are_no_gift(rtol: float) -> None:
    """Masses of a window summed to 1 on the lower side, too: the lower end was above the upper one."""
    eps0, epsilon = 2.3572686085516463, 2.137246376270469
    rows = rr(2, o.exp_of(eps0))
    truth = max(
        o.hockey_stick(order, mp.exp(mpf(epsilon)))
        for atoms in datasets(rows, 6)() for order in (atoms, [(q, p) for p, q in atoms])
    )  # fmt: skip
    bounds = Accountant(rtol).compose(Shuffled(BinaryRandomizedResponse(eps0), 7)).delta_bounds(epsilon)
    assert mpf(bounds.lower) <= truth <= mpf(bounds.upper)


@pytest.mark.filterwarnings("ignore::pld_shuffle.AccuracyWarning")
@pytest.mark.parametrize("scale", [1.0, 0.3, 7.0, 1e5])
def test_the_last_doubles_below_the_largest_loss(scale: float) -> None:
    """Profiles were 0 from 4 u below the largest loss on. (Answers were right by other means.)"""
    laplace = Laplace(scale=scale)
    for ulps in (1, 2, 4, 10):
        epsilon = float(laplace.pair.max_loss.upper)
        for _ in range(ulps):
            epsilon = math.nextafter(epsilon, 0.0)
        with mp.workdps(60):
            truth = -mp.expm1((mpf(epsilon) - 1 / mpf(scale)) / 2)
            bounds = Accountant().compose(laplace).delta_bounds(epsilon)
            assert mpf(bounds.lower) <= max(truth, mpf(0)) <= mpf(bounds.upper)


@pytest.mark.parametrize("analysis", ["reduction", "stronger-clones"])
def test_a_derived_local_budget_is_rounded_up(analysis: str) -> None:
    """RAPPOR's eps0 is a logarithm: rounded to nearest, delta was 0 where the truth was 1.7e-19."""
    rappor = RAPPOR(k=2, noise=0.7758462548097284, one_if_zero=0.31949723296682103, one_if_one=0.517816651113036)
    mechanism = Shuffled(rappor, 2, analysis)
    with mp.workdps(60):
        f, low, high = mpf(rappor.noise), mpf(rappor.one_if_zero), mpf(rappor.one_if_one)
        keep, false = (1 - f / 2) * high + f / 2 * low, f / 2 * high + (1 - f / 2) * low
        exact = mp.log(keep * (1 - false) / (false * (1 - keep)))
        assert exact <= mpf(mechanism.pair.max_loss.upper) <= exact * (1 + mpf(10) ** -13)


def test_a_largest_loss_next_to_nothing_is_not_a_logarithm_of_a_ratio() -> None:
    """log(one/zero) lost what log1p(gap/zero) keeps: counts ended early, and upper ends were 4e-10 too low."""
    n, one, zero = 3, 0.9999999999821387, 0.9999999061405461
    pair = Summed(RAPPOR(k=3, noise=0.0, one_if_zero=zero, one_if_one=one), n).pair
    with mp.workdps(60):
        laws = [[1 - mpf(p), mpf(p)] for p in (one, zero)]
        for expm1_eps in (0.35, 1.138, 1.248, 6.4):
            truth = mpf(0)
            for first, second in ((a, b) for a in range(n) for b in range(n - a)):
                others = [[laws[0]] * k + [laws[1]] * (n - 1 - k) for k in (first, second)]
                here = o.shuffled_pair(laws[0], laws[1], others[0])
                there = o.shuffled_pair(laws[1], laws[0], others[1])
                both = [(a * c, b * d) for a, b in here for c, d in there]
                truth = max(truth, o.hockey_stick(both, 1 + mpf(expm1_eps)))
            upper = pair.profile(np.array([expm1_eps]), 1e-9, 1e-30).upper
            assert truth <= mpf(float(upper[0])) <= truth * (1 + mpf(10) ** -7)


@pytest.mark.parametrize(("k", "n", "zero"), [(2, 16, 1e-30), (3, 16, 1e-30), (3, 10, 1e-34)])
def test_counts_of_few_users_with_masses_below_all_doubles(k: int, n: int, zero: float) -> None:
    """Ratios of what underflowed were no numbers, and both ends of epsilon 0."""
    counts = Summed(RAPPOR(k=k, noise=0.0, one_if_zero=zero, one_if_one=0.5), n)
    # Others hold the second value. The first one's bin has a 1 half of the time if the target holds it, else hardly.
    least, most = math.log((0.5 - 0.4) / (n * zero)), 2.0 * math.log(0.5 / zero)
    lower, upper = Accountant().compose(counts).epsilon_bounds(0.4)
    assert 0.99 * least <= lower <= upper <= most and least <= upper


def test_one_round_at_the_smallest_tolerance() -> None:
    """A profile refuses to be asked for less than 1e-9; the search asked for a fiftieth of rtol."""
    shuffled = Shuffled(UnaryEncoding(k=3, eps0=1.0), 20, analysis="blanket")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccuracyWarning)
        bounds = Accountant(rtol=1.1e-9).compose(shuffled).epsilon_bounds(1e-3)
    assert 0.0 < bounds.lower <= bounds.upper


def test_gaussian_noise_of_two_users() -> None:
    """The steering of cells took the logarithm of an underflow: any answer for few users of little noise crashed."""
    bounds = Accountant(rtol=0.3).compose(Shuffled(Gaussian(sigma=0.6), 2)).delta_bounds(2.0)
    assert 0.0 < bounds.lower <= bounds.upper <= o.gaussian(1 / mpf(0.6), 2.0)  # of one user


def test_a_step_far_beyond_all_losses() -> None:
    """Atoms within rounding of a lattice point were put on it; with a step of 1e20 that was every loss, unbooked."""
    log_p = np.log([0.5, 0.5])
    log_q = np.log([0.5 * math.exp(-3.0), 1.0 - 0.5 * math.exp(-3.0)])
    pld = DiscretePair(log_p, log_q, symmetric=False).pld(step=1e20)
    assert pld.delta(1.0) >= 0.5 * -math.expm1(-2.0)


def test_noise_at_a_delta_below_its_densities() -> None:
    """A tail of 1e-286 was asked for, where densities underflow."""
    pair = Blanket(Gaussian(sigma=1.0), 1000).pair
    found = pair.profile(np.expm1([0.001, 1.0]), 1e-3, 5e-286)
    assert np.all(found.lower <= found.upper) and found.upper[0] > 1e-3


def test_the_scale_of_large_losses() -> None:
    """The chi-square divergence of N(mu^2/2, mu^2) is e^(mu^2) - 1, no square of a deviation."""
    law = Blanket(Gaussian(sigma=0.1), 2).pair
    assert 2.0 < law.scale < 20.0


def test_a_mixture_less_likely_than_what_may_be_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A side without a component: its largest number of coins was asked for."""
    pair = ShuffledLDP(1.0, 4, "stronger-clones").pair
    assert isinstance(pair, CoinMixture)
    nothing = np.zeros(0)
    empty = Components(np.zeros(0, np.int64), nothing, nothing, nothing, null=0.75, truncated_mass=0.25)
    monkeypatch.setattr(CoinMixture, "components", lambda *asked: empty)
    lower, upper = pair.atoms([Side.LOWER, Side.UPPER], Resolution(1.0, truncated_mass=0.5, size_width=0.1))
    assert upper.truncated_mass == 0.25 and np.all(upper.loss == 0.0)
    assert np.all(lower.loss == 0.0) and lower.infinity_mass == 0.0


def test_tails_in_logarithms_pay_for_errors_of_all_masses() -> None:
    """The error of a mass with a value far below 0 was not booked: here one report in all slots is what counts."""
    n, expm1_eps, first, second, others = 50, 3e3, (0.5, 0.5), (1e-6, 1.0 - 1e-6), np.array([0.3, 0.7])
    given = others + np.array([-3e-10, 3e-10])
    law = SlotLaw(n, np.array(first), np.array(second), given, True, 1e-9)
    value = (first[0] - (1.0 + expm1_eps) * second[0]) / others[0]
    assert (n - 1) * value + (first[1] - (1.0 + expm1_eps) * second[1]) / others[1] < 0.0
    truth = n * math.log(others[0]) + math.log(value)
    assert law.log_tail(np.array([expm1_eps]))[0] >= truth


def test_a_lone_user_is_hidden_by_nobody_whatever_q():
    """The cap q - 1 on the total variation is that of another user's law: with one user there is none."""
    for q in (1.0, 1.1, math.e):
        alone = ShuffledRandomizer(1, tv=0.4, p=math.e, q=q)
        bounds = Accountant().compose(alone).delta_bounds(0.0)
        assert bounds.lower <= 0.4 <= bounds.upper <= 0.4 * (1.0 + 1e-4)
        present = Accountant().compose(PoissonSampled(alone, rate=0.5)).delta_bounds(0.0)
        assert present.lower <= 0.2 <= present.upper <= 0.2 * (1.0 + 1e-4)
    # Who may stand in has a law of its own again.
    hidden = Subsampled(ShuffledRandomizer(1, tv=0.4, p=math.e, q=1.0), rate=0.5)
    assert Accountant().compose(hidden).get_delta(0.0) == 0.0


@pytest.mark.parametrize("eps0", [150.0, 300.0, 690.0])
def test_labels_so_rare_that_squares_overflow(eps0):
    """A label that no other shows reveals the target: delta is the chance of it, up to nearly the largest loss."""
    mechanism = ShuffledRandomizer(20785, tv=0.8, eps0=eps0)
    for hidden, share in (
        (Subsampled(mechanism, population=10**6, dropout=0.5), 0.5 * 0.020785),
        (PoissonSampled(mechanism, rate=0.5), 0.5),
    ):
        # At s = 1 + growth up to e^(eps0/2): nobody else's label is likely, no loss is near the threshold.
        found = hidden.pair.profile(np.expm1([1e-3, 1.0, 0.3 * eps0, 0.5 * eps0]), 1e-3, 0.0)
        assert np.all(found.lower <= 0.8 * share * (1.0 + 1e-9))
        assert np.all(found.upper >= 0.8 * share * (1.0 - 1e-9))
        if eps0 == 300.0:
            bounds = Accountant().compose(hidden).delta_bounds(1.0)
            assert 0.9 * bounds.upper < bounds.lower <= bounds.upper < 0.81 * share
        if eps0 < 600.0:  # far from the end of the range of numbers
            assert np.all(found.upper <= 0.8 * share * 1.001) and np.all(found.lower >= 0.75 * share)


def test_no_upper_end_above_that_of_a_smaller_epsilon() -> None:
    """Deltas below all that is told apart: 1.82e-289 at 8 stood beside 1.56e-289 at 4."""
    epsilons = np.array([8.0, 0.5, 1.0, 4.0, 2.0, 0.1])
    found = Accountant().compose(ShuffledRR(50, 196_000, eps0=3.02), 5).delta_bounds(epsilons)
    for end in found:
        assert np.all(np.diff(end[np.argsort(epsilons)]) <= 0.0)
