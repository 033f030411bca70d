"""The published bounds: formulas in 60 digits, again from the papers; none below the truth; solutions and ranges."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import mpf as M  # of oracles.DIGITS
from scipy.stats import binom

from pld_shuffle import bounds
from pld_shuffle.bounds import (
    BalleTheorem1,
    BalleTheorem6,
    Bennett,
    Cheu,
    ClonesClosedForm,
    Erlingsson,
    GenericBlanket,
    Hoeffding,
    LaplaceBlanket,
    OutOfRange,
    RRBlanket,
    StrongerClonesClosedForm,
)
from pld_shuffle.bounds.bound import DeltaBound

CLOSE = 1e-10
FAMILIES = [GenericBlanket(), RRBlanket(2), RRBlanket(10), LaplaceBlanket()]
CASES = [
    (0.1, 0.4, 2000), (0.25, 1.0, 10_000), (0.5, 4.0, 10**5), (0.01, 2.0, 10**9),
    (2.0, 14.0, 10**9),
]  # fmt: skip


def close(ours: float, reference: mp.mpf, rtol: float = CLOSE) -> bool:
    """Agreement, on the safe (upper) side."""
    return bool(0 <= M(ours) / reference - 1 <= rtol)


def close_delta(ours: float, reference: mp.mpf, rtol: float = 2e-12) -> bool:
    """Agreement of log delta, on the safe (upper) side, relative to its size; 1 where the formula exceeds 1."""
    if reference >= 1:
        return ours == 1.0
    size = 1 - mp.log(reference)
    return bool(0 <= mp.log(M(ours)) - mp.log(reference) <= rtol * size) or (reference < 1e-300 and 0 < ours < 1e-300)


# --- 1. formulas, written again in mpmath --------------------------------------------------------


def mp_moments(family, eps, eps0):
    """(gamma, b_plus, b, c) of Lemmas 6, 7, 9, 12, 13."""
    e, e0 = mp.e ** M(eps), mp.e ** M(eps0)
    if isinstance(family, RRBlanket):
        k = family.k
        gamma = k / (e0 + k - 1)
        high, low = gamma * (1 - e) + (1 - gamma) * k, gamma * (1 - e) - (1 - gamma) * k * e
        second = gamma * (2 - gamma) * (1 - e) ** 2 + (1 - gamma) ** 2 * k * (1 + e**2)
    elif isinstance(family, LaplaceBlanket):
        half = mp.sqrt(e0)
        gamma, high, low = 1 / half, half * (1 - e / e0), (1 - e * e0) / half
        second = (e**2 + 1) / 3 * (2 * half + 1 / e0) - 2 * e * (2 / half - 1 / e0)
    else:
        gamma, high, low = 1 / e0, e0 * (1 - e / e0**2), (1 - e * e0**2) / e0
        grid = [1 / e0 + (1 - 1 / e0) * M(i) / 4000 for i in range(4001)]
        second = max(g * e0 * (e**2 + 1) - 2 * g**2 * e / e0**2 for g in grid)
    return gamma, high, high - low, second


def mp_implicit(name, family, eps, eps0, n):
    gamma, high, length, second = mp_moments(family, eps, eps0)
    a = mp.e ** M(eps) - 1
    if name == "Hoeffding":
        factor, decay = length**2 / (4 * a), 2 * a**2 / length**2
    else:
        u = a * high / second
        factor = high / mp.log(1 + u)
        decay = second / high**2 * ((1 + u) * mp.log(1 + u) - u)
    with mp.workdps(80):
        if n > 2000:
            return factor * ((1 - gamma * (1 - mp.e**-decay)) ** n - (1 - gamma) ** n) / (gamma * n)
        each = gamma / mp.e**decay
        terms = (mp.binomial(n, m) * each**m * (1 - gamma) ** (n - m) for m in range(1, n + 1))
        return factor * mp.fsum(terms) / (gamma * n)


@pytest.mark.parametrize("bound", [Hoeffding, Bennett])
@pytest.mark.parametrize("family", FAMILIES, ids=str)
@pytest.mark.parametrize(("eps", "eps0", "n"), CASES)
def test_implicit_blanket_bounds(bound, family, eps, eps0, n):
    ours = bound(family).delta(epsilon=eps, eps0=eps0, n=n)
    reference = mp_implicit(bound.inequality, family, eps, eps0, n)
    # the generic reference maximises c on a grid
    assert close_delta(ours, reference, 1e-6 if isinstance(family, GenericBlanket) else 2e-12)


@pytest.mark.parametrize(("eps", "eps0", "n"), CASES)
def test_theorem_6(eps, eps0, n):
    e, e0 = mp.e ** M(eps), mp.e ** M(eps0)
    length = (e + 1) * (e0 - 1 / e0)
    rate = min(1 / e0, (e - 1) ** 2 / length**2)
    reference = length**2 / (4 * n * (e - 1)) * mp.e ** (-(1 - mp.e**-2) * n * rate)
    assert close_delta(BalleTheorem6().delta(epsilon=eps, eps0=eps0, n=n), reference)


def test_theorem_1_of_balle():
    bound = BalleTheorem1(4)
    gamma = max(14 * 4 * mp.log(2 / M(1e-6)) / (9999 * M(0.25)), M(27) * 4 / (9999 * M(0.5)))
    eps0 = float(mp.log(1 + 4 * (1 - gamma) / gamma))
    assert bound.epsilon(eps0=eps0, delta=1e-6, n=10_000) == pytest.approx(0.5, rel=1e-10)


def mp_closed_forms(eps0, delta, n):
    """What each of them says."""
    e0, log4 = mp.e ** M(eps0), mp.log(4 / M(delta))
    coins = 2 * n / (e0 + 1)
    r = coins - mp.sqrt(2 * coins * mp.log(2 / M(delta)))
    return {
        Cheu(): (1 - r / n) * mp.sqrt(32 * log4 / r),
        ClonesClosedForm(): mp.log(1 + (e0 - 1) / (e0 + 1) * (8 * mp.sqrt(e0 * log4 / n) + 8 * e0 / n)),
        StrongerClonesClosedForm(): mp.log(1 + (e0 - 1) * (4 * mp.sqrt(2 * log4) / mp.sqrt((e0 + 1) * n) + M(4) / n)),
        Erlingsson(): 12 * M(eps0) * mp.sqrt(mp.log(1 / M(delta)) / n),
    }


@pytest.mark.parametrize(("eps0", "delta", "n"), [(0.4, 1e-6, 2000), (3.0, 1e-8, 10**5), (14.0, 1e-6, 10**9)])
def test_closed_forms(eps0, delta, n):
    for bound, formula in mp_closed_forms(eps0, delta, n).items():
        if eps0 < 0.5 or not isinstance(bound, Erlingsson):
            assert close(bound.epsilon(eps0=eps0, delta=delta, n=n), formula), bound.name


def mp_girgis(order, eps0, cohort, population, half):
    e0, g = mp.e ** M(eps0), M(cohort) / population
    kbar = mp.floor((cohort - 1) / (2 * e0)) + 1
    y = (e0**2 - 1) / e0 / (2 if half else 1)
    residue = ((1 + g * y) ** order - 1 - order * g * y) * mp.e ** (-(cohort - 1) / (8 * e0))
    total = 1 + 4 * mp.binomial(order, 2) * g**2 * (e0 - 1) ** 2 / (kbar * e0) + residue
    base = mp.sqrt(2 * (e0**2 - 1) ** 2 / (kbar * e0**2)) * g
    total += mp.fsum(mp.binomial(order, j) * j * mp.gamma(M(j) / 2) * base**j for j in range(3, order + 1))
    return mp.log(total) / (order - 1)


@pytest.mark.parametrize("residue", ["theorem", "published-code"])
@pytest.mark.parametrize(("order", "eps0", "cohort", "population"), [
    (2, 0.1, 100, 100), (3, 3.0, 1000, 10**5), (40, 2.0, 10**4, 10**6), (700, 14.0, 10**9, 10**9),
    (5, 14.0, 7, 10**9),
])  # fmt: skip
def test_girgis(order, eps0, cohort, population, residue):
    ours = bounds.girgis_rdp(order=order, eps0=eps0, cohort=cohort, population=population, residue=residue)
    assert close(ours, mp_girgis(order, eps0, cohort, population, residue != "theorem"), 1e-9)


def test_rdp_conversion():
    orders, rdp = np.array([1.5, 2.0, 8.0, 64.0]), np.array([0.01, 0.02, 0.1, 3.0])
    epsilons = [
        M(r) + (mp.log(1 / M(1e-5)) + (M(a) - 1) * mp.log(1 - 1 / M(a)) - mp.log(M(a))) / (M(a) - 1)
        for a, r in zip(orders, rdp, strict=True)
    ]
    best = bounds.rdp_to_epsilon(orders=orders, rdp=rdp, delta=1e-5)
    assert best.order == orders[int(np.argmin([float(x) for x in epsilons]))] == 8.0
    assert close(best.epsilon, min(epsilons))
    assert bounds.rdp_to_epsilon(orders=[2, 3], rdp=[0, math.inf], delta=0.9).epsilon == 0


def mp_optimal(eps, delta, k, i):
    """Kairouz et al. 2015, Theorem 3.3: the pair number i."""
    e = mp.e ** M(eps)
    total = mp.fsum(mp.binomial(k, j) * (e ** (k - j) - e ** (k - 2 * i + j)) for j in range(i))
    return (k - 2 * i) * M(eps), 1 - (1 - M(delta)) ** k * (1 - total / (1 + e) ** k)


@pytest.mark.parametrize(("eps", "delta", "k", "i"), [(0.1, 1e-6, 30, 5), (1.0, 0.0, 7, 2), (3.0, 1e-3, 100, 1)])
def test_optimal_composition(eps, delta, k, i):
    total, reference = mp_optimal(eps, delta, k, i)
    ours = bounds.optimal_composition_epsilon(epsilon=eps, delta=delta, rounds=k, total_delta=float(reference))
    assert 0 <= M(ours) / total - 1 < 1e-8


# --- 2. nothing below the truth ------------------------------------------------------------------


@cache
def views(eps0, n):
    """Numbers of ones of shuffled binary randomized response, all others holding 0 (or, by symmetry, 1)."""
    flip = 1 / (math.exp(eps0) + 1)
    others = binom.pmf(np.arange(n), n - 1, flip)
    return [np.convolve(others, own) for own in ([1 - flip, flip], [flip, 1 - flip])]


def attack_delta(*, epsilon, eps0, n):
    """The exact delta of this dataset."""
    p, q = views(eps0, n)
    return max(float(np.maximum(a - math.exp(epsilon) * b, 0).sum()) for a, b in ((p, q), (q, p)))


ON_BINARY_RR = [bound for bound in bounds.published(k=2) if "Laplace" not in bound.only]


def kept_by_the_attack(eps0, n, delta):
    """The bounds that apply, each checked against the attack."""
    for bound in ON_BINARY_RR:
        try:
            epsilon = bound.epsilon(eps0=eps0, delta=delta, n=n)
        except OutOfRange:
            continue
        assert attack_delta(epsilon=epsilon, eps0=eps0, n=n) <= delta * (1 + 1e-9), bound.name
        yield bound


@settings(max_examples=50, deadline=None, derandomize=True)
@given(eps0=st.floats(0.05, 6.0), n=st.integers(1, 4000), log_delta=st.floats(-25.0, -0.5))
def test_no_upper_bound_below_the_attack_on_binary_rr(eps0, n, log_delta):
    list(kept_by_the_attack(eps0, n, math.exp(log_delta)))


def test_every_bound_applies_somewhere():
    """Guards the property above against passing because everything is out of range."""
    for eps0, n, delta in [(0.3, 3000, 1e-6), (3.0, 3000, 1e-4), (1.0, 4000, 1e-8)]:
        assert list(kept_by_the_attack(eps0, n, delta))
    assert list(kept_by_the_attack(0.4, 1500, 1e-3)) == ON_BINARY_RR


@pytest.mark.parametrize("order", [2, 5, 20])
@pytest.mark.parametrize(("eps0", "cohort", "population"), [(1.0, 200, 200), (2.0, 50, 500), (4.0, 30, 30)])
def test_girgis_above_exact_subsampled_binary_rr(order, eps0, cohort, population):
    flip, rate = 1 / (math.exp(eps0) + 1), cohort / population
    k = np.arange(cohort + 1)
    ratio = (k * (1 - flip) / flip + (cohort - k) * flip / (1 - flip)) / cohort
    exact = math.log(np.dot(binom.pmf(k, cohort, flip), (1 + rate * (ratio - 1)) ** order)) / (order - 1)
    for residue in ("theorem", "published-code"):
        upper = bounds.girgis_rdp(order=order, eps0=eps0, cohort=cohort, population=population, residue=residue)
        assert upper >= exact


# --- 3. unknowns, ranges, extremes ---------------------------------------------------------------


SOLVED = [bound(family) for family in FAMILIES for bound in (Hoeffding, Bennett)]
SOLVED += [BalleTheorem6(), Cheu(), ClonesClosedForm(), StrongerClonesClosedForm()]


@pytest.mark.parametrize("bound", SOLVED, ids=lambda bound: bound.name)
@pytest.mark.parametrize(("eps0", "n", "target"), [(0.5, 10**5, 1e-6), (2.0, 10**6, 1e-10), (6.0, 10**9, 1e-4)])
def test_solutions_satisfy_their_bound_and_are_sharp(bound, eps0, n, target):
    epsilon = bound.epsilon
    found = epsilon(eps0=eps0, delta=target, n=n)
    if isinstance(bound, DeltaBound):  # fed back into it, a solution does not miss by an ulp
        assert bound.delta(epsilon=found, eps0=eps0, n=n) <= target
        assert bound.delta(epsilon=found * (1 - 1e-8), eps0=eps0, n=n) >= target * (1 - 1e-9)
    # monotone: a smaller target costs more, and so does a larger budget
    assert epsilon(eps0=eps0, delta=target / 2, n=n) > found
    assert epsilon(eps0=eps0, delta=target, n=2 * n) < found < epsilon(eps0=1.01 * eps0, delta=target, n=n)


def test_solver_survives_bounds_that_rise_again():
    # Theorem 6 rises for large epsilon: with few users only a middle stretch is satisfied, if any
    epsilon = BalleTheorem6().epsilon(eps0=2.0, delta=0.1, n=1000)
    assert BalleTheorem6().delta(epsilon=epsilon, eps0=2.0, n=1000) <= 0.1


OUTSIDE = [
    (Erlingsson().epsilon, {"eps0": 0.5, "delta": 1e-6, "n": 10**6}, "eps0 < 1/2"),
    (Erlingsson().epsilon, {"eps0": 0.4, "delta": 1e-6, "n": 999}, "n >= 1000"),
    (Erlingsson().epsilon, {"eps0": 0.4, "delta": 0.01, "n": 10**6}, "delta < 1/100"),
    (BalleTheorem1(2).epsilon, {"eps0": 9.0, "delta": 1e-6, "n": 1000}, "epsilon <= 1"),
    (Hoeffding().delta, {"epsilon": 1.0, "eps0": 1.0, "n": 1000}, "epsilon < eps0"),
    (BalleTheorem6().delta, {"epsilon": 1.0, "eps0": 201.0, "n": 1000}, "eps0 <= 200"),
    (BalleTheorem6().epsilon, {"eps0": 5.0, "delta": 1e-9, "n": 100},
     "gives no epsilon at eps0 = 5.0, delta = 1e-09, n = 100: it needs"),
    (Cheu().epsilon, {"eps0": 8.0, "delta": 1e-6, "n": 1000}, "14 log"),
    (ClonesClosedForm().epsilon, {"eps0": 5.0, "delta": 1e-6, "n": 1000}, "Thm 3.1"),
    (StrongerClonesClosedForm().epsilon, {"eps0": 5.0, "delta": 1e-6, "n": 1000}, "8 log"),
    (bounds.rdp_to_epsilon, {"orders": [2], "rdp": [math.inf], "delta": 0.1}, "infinite"),
    (
        bounds.optimal_composition_epsilon,
        {"epsilon": 1.0, "delta": 1e-3, "rounds": 100, "total_delta": 1e-3}, "already fail",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("ask", "given", "words"), OUTSIDE)
def test_out_of_range_names_the_reason(ask, given, words):
    with pytest.raises(OutOfRange) as caught:
        ask(**given)
    assert words in str(caught.value)


THIRD = Fraction(1, 3)  # float(THIRD) is below it
ABOVE = math.nextafter(1 / 3, 1)


def test_rationals_are_rounded_to_the_safe_side():
    n, tenth = 10**6, Fraction(1, 10)  # float(tenth) is above it
    under = math.nextafter(0.1, 0)
    asked = [ClonesClosedForm(), StrongerClonesClosedForm(), Cheu(), BalleTheorem6(), Bennett()]
    for bound in [*asked, Erlingsson()]:
        epsilon = bound.epsilon
        small, under_small = Fraction(1, 1000), Fraction(math.nextafter(0.001, 0))
        assert under_small < small < Fraction(0.001)  # float(small) is above it
        assert epsilon(eps0=THIRD, delta=small, n=n) == epsilon(eps0=ABOVE, delta=float(under_small), n=n)
        if isinstance(bound, DeltaBound):
            assert bound.delta(epsilon=tenth, eps0=THIRD, n=n) == bound.delta(epsilon=under, eps0=ABOVE, n=n)
    single = {"delta": 0.0, "rounds": 3}
    assert bounds.optimal_composition_epsilon(
        epsilon=THIRD, **single, total_delta=tenth
    ) == bounds.optimal_composition_epsilon(epsilon=ABOVE, **single, total_delta=under)
    upper = bounds.rdp_to_epsilon(orders=[2], rdp=[THIRD], delta=0.1).epsilon
    assert upper == bounds.rdp_to_epsilon(orders=[2], rdp=[ABOVE], delta=0.1).epsilon
