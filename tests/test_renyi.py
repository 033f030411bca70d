"""Renyi divergences against sums in high precision, and the Renyi accountant against the tight one."""

from __future__ import annotations

import math

import numpy as np
import oracles as o
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from scipy.special import logsumexp
from scipy.stats import binom

from pld_shuffle import Accountant, Mechanism, ShuffledLDP, ShuffledRR, Subsampled
from pld_shuffle.bounds import girgis_rdp
from pld_shuffle.renyi import RenyiAccountant, renyi_bounds, renyi_divergence

ORDERS = (1.001, 1.5, 2.0, 7.3, 64.0, 3000.0)


def exact_divergence(atoms: o.Atoms, order: float) -> mpf:
    """log(sum p^alpha q^(1-alpha)) / (alpha - 1), from the raw atoms."""
    alpha = mpf(order)
    total = mpf(0)
    for p, q in atoms:
        p, q = o.to_mpf(p), o.to_mpf(q)
        if p > 0:
            if q == 0:
                return mp.inf
            total += mp.exp(alpha * mp.log(p) + (1 - alpha) * mp.log(q))
    return mp.log(total) / (alpha - 1)


CLONES = [(n, eps0, rate) for n in (1, 2, 7, 40) for eps0 in (0.1, 1.0, 5.0) for rate in (1.0, 0.2)]


@pytest.mark.parametrize("analysis", ["clones", "stronger-clones"])
@pytest.mark.parametrize(("n", "eps0", "rate"), CLONES)
def test_clones_against_mpmath(n: int, eps0: float, rate: float, analysis: str) -> None:
    e0 = o.exp_of(eps0)
    atoms = o.clones(n, e0) if analysis == "clones" else o.stronger_clones(n, e0)
    mechanism: Mechanism = ShuffledLDP(eps0=eps0, n=n, analysis=analysis)
    if rate < 1.0:
        atoms = o.subsampled(atoms, mpf(rate))
        mechanism = Subsampled(mechanism, rate=rate, analysis="general")
    for order in ORDERS:
        exact = exact_divergence(atoms, order)
        found = renyi_bounds(mechanism, order)
        assert found.lower <= exact <= found.upper
        assert found.upper <= float(exact) * (1 + 1.1e-4)


@pytest.mark.parametrize("k", [2, 3, 4, 10])
@pytest.mark.parametrize("n", [1, 2, 15])
@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_weak_adversary_against_mpmath(k: int, n: int, rate: float) -> None:
    gamma = 0.25
    mechanism: Mechanism = ShuffledRR(k=k, n=n, gamma=gamma, adversary="weak")
    atoms = o.weak(n, k, mpf(gamma))
    if rate < 1.0:
        mechanism, atoms = (
            Subsampled(mechanism, rate=rate, analysis="general"),
            o.subsampled(atoms, mpf(rate)),
        )
    for order in ORDERS:
        exact = exact_divergence(atoms, order)
        found = renyi_bounds(mechanism, order)
        assert found.lower <= exact <= found.upper
        assert found.upper <= float(exact) * (1 + 2e-4)


def float_divergence(pair: o.FloatPair, order: float) -> float:
    p, q = pair
    held = (p > 0) & (q > 0)
    logs = order * np.log(p[held]) + (1 - order) * np.log(q[held])
    return float(np.logaddexp.reduce(logs)) / (order - 1)


@pytest.mark.parametrize("order", [1.5, 4.0, 40.0])
def test_hundreds_of_users_against_all_atoms(order: float) -> None:
    for whole, pair in (
        (
            ShuffledLDP(eps0=3.0, n=700, analysis="stronger-clones"),
            o.stronger_clones_float(700, 3.0),
        ),
        (ShuffledRR(k=4, n=200, gamma=0.25, adversary="weak"), o.weak_float(200, 4, 0.25)),
    ):
        for rate in (1.0, 0.05):
            atoms = pair if rate == 1.0 else o.subsampled_float(pair, rate)
            expected = float_divergence(atoms, order)
            found = renyi_bounds(Subsampled(whole, rate=rate, analysis="general"), order)
            # The float oracle is good to about 1e-11, and leaves out atoms below 1e-30.
            assert found.lower <= expected * (1 + 1e-8) and expected <= found.upper * (1 + 1e-8)
            assert found.upper <= found.lower * (1 + 2e-3)


@pytest.mark.parametrize("adversary", ["strong", "strong-conditional"])
def test_mass_at_infinite_loss(adversary: str) -> None:
    mechanism = ShuffledRR(k=4, n=1_000, gamma=0.25, adversary=adversary)
    assert renyi_divergence(mechanism, 2.0) == math.inf
    assert renyi_divergence(Subsampled(mechanism, rate=0.01, analysis="general"), 2.0) == math.inf
    accountant = RenyiAccountant().compose(mechanism, 3)
    assert accountant.get_epsilon(1e-6) == math.inf
    assert accountant.get_delta(1.0) == 1.0


def test_no_information() -> None:
    mechanism = ShuffledRR(k=4, n=100, gamma=1.0, adversary="weak")
    assert renyi_divergence(mechanism, 2.0) == 0.0
    assert RenyiAccountant().compose(mechanism, 3).get_epsilon(1e-6) == 0.0
    assert RenyiAccountant().get_epsilon(1e-6) == 0.0
    assert RenyiAccountant().get_delta(0.0) == 0.0


def test_nothing_overflows() -> None:
    """eps0 = 14, order 10^4, a billion users; eps0 = 700."""
    for n in (10, 10**5, 10**9):
        for order in (1.0 + 1e-6, 2.0, 1e4, 1e6):
            value = renyi_divergence(ShuffledLDP(eps0=14.0, n=n, analysis="stronger-clones"), order)
            assert 0.0 < value <= 14.0
    for order in (1.5, 100.0):
        assert (
            0.0
            < renyi_divergence(ShuffledLDP(eps0=700.0, n=50, analysis="stronger-clones"), order)
            <= 700.0
        )
    assert (
        renyi_divergence(ShuffledLDP(eps0=4.0, n=100, analysis="stronger-clones"), math.inf) == 4.0
    )


@settings(max_examples=40, deadline=None)
@given(
    eps0=st.floats(0.05, 8.0),
    n=st.integers(1, 20_000),
    rate=st.floats(0.001, 1.0),
    order=st.floats(1.01, 200.0),
)
def test_shape(eps0: float, n: int, rate: float, order: float) -> None:
    """Rising in the order and the rate, at most the largest loss, above the attack by 2-RR."""
    mechanism = Subsampled(
        ShuffledLDP(eps0=eps0, n=n, analysis="stronger-clones"), rate=rate, analysis="general"
    )
    found = renyi_bounds(mechanism, order)
    assert 0.0 <= found.lower <= found.upper <= float(mechanism.pair.max_loss.upper) * (1 + 1e-14)
    assert found.lower <= renyi_bounds(mechanism, 1.5 * order).upper
    whole = renyi_bounds(ShuffledLDP(eps0=eps0, n=n, analysis="stronger-clones"), order)
    assert found.lower <= whole.upper
    flip, ones = 1 / (math.exp(eps0) + 1), np.arange(n + 1)
    ratio = 1 + 2 * math.sinh(eps0) / n * (
        ones - n * flip
    )  # of two neighbours, all others holding 0
    attack = logsumexp(binom.logpmf(ones, n, flip) + order * np.log(ratio)) / (order - 1)
    assert attack <= whole.upper * (1 + 1e-9) + 1e-9 / (order - 1)


@pytest.mark.parametrize("order", [2, 8, 33])
@pytest.mark.parametrize("eps0", [0.5, 3.0])
def test_published_bound_is_above(order: int, eps0: float) -> None:
    mechanism = Subsampled(
        ShuffledLDP(eps0=eps0, n=1_000, analysis="stronger-clones"),
        population=100_000,
        analysis="general",
    )
    published = girgis_rdp(order=order, eps0=eps0, cohort=1_000, population=100_000)
    assert renyi_divergence(mechanism, order) <= published


def test_additive_over_rounds() -> None:
    first, second = (
        ShuffledLDP(eps0=2.0, n=500, analysis="stronger-clones"),
        ShuffledRR(k=3, n=200, eps0=1.0, adversary="weak"),
    )
    accountant = RenyiAccountant().compose(first, 3).compose(second).compose(first, 2)
    assert accountant.ledger == ((first, 5), (second, 1)) and accountant.rounds == 6
    orders = np.array([1.5, 8.0])
    expected = 5 * renyi_divergence(first, orders) + renyi_divergence(second, orders)
    assert accountant.get_rdp(orders) == pytest.approx(expected, rel=1.5e-3)


def test_additive_over_rounds_exactly() -> None:
    """The product pair's divergence, formed atom by atom, is the sum."""
    atoms = o.stronger_clones(4, o.exp_of(1.0))
    two = exact_divergence(o.product(atoms, atoms), 3.5)
    assert 2 * renyi_divergence(
        ShuffledLDP(eps0=1.0, n=4, analysis="stronger-clones"), 3.5
    ) == pytest.approx(float(two), 1e-4)


SETTINGS = [
    (ShuffledLDP(eps0=4.0, n=10_000, analysis="stronger-clones"), 10, 1e-6),
    (ShuffledLDP(eps0=1.0, n=1_000, analysis="stronger-clones"), 1, 1e-4),
    (
        Subsampled(
            ShuffledLDP(eps0=3.0, n=1_000, analysis="stronger-clones"),
            population=100_000,
            analysis="general",
        ),
        1_000,
        1e-5,
    ),
    (ShuffledRR(k=4, n=1_000, gamma=0.25, adversary="weak"), 16, 1e-5),
    (ShuffledLDP(eps0=4.0, n=5, analysis="stronger-clones"), 2, 1e-9),
]


@pytest.mark.parametrize(("mechanism", "rounds", "delta"), SETTINGS)
def test_above_the_tight_accountant(mechanism: Mechanism, rounds: int, delta: float) -> None:
    tight = Accountant().compose(mechanism, rounds)
    renyi = RenyiAccountant().compose(mechanism, rounds)
    epsilon = renyi.get_epsilon(delta)
    lower = tight.epsilon_bounds(delta).lower
    assert lower <= epsilon <= 2.5 * lower
    assert tight.delta_bounds(epsilon).lower <= renyi.get_delta(epsilon) <= delta * (1 + 1e-6)


def test_issue_setting() -> None:
    """Cohorts of 1000 of 10^5, eps0 = 3, 10^4 rounds, delta = 1e-5: between the tight values and Girgis'."""
    found = {}
    for analysis in ("stronger-clones", "clones"):
        cohort = ShuffledLDP(eps0=3.0, n=1_000, analysis=analysis)
        mechanism = Subsampled(cohort, population=100_000, analysis="general")
        found[analysis] = RenyiAccountant().compose(mechanism, 10_000).epsilon_at_order(1e-5)
    assert found["stronger-clones"].epsilon == pytest.approx(0.8024, abs=1e-3)
    assert found["clones"].epsilon == pytest.approx(1.1872, abs=1.5e-3)
    assert 10 < found["clones"].order < 30


def test_orders_are_optimised_over_the_reals() -> None:
    accountant = RenyiAccountant().compose(
        ShuffledLDP(eps0=2.0, n=300, analysis="stronger-clones"), 4
    )
    best = accountant.get_epsilon(1e-5)
    orders = 1.0 + np.geomspace(0.05, 500.0, 60)
    values = accountant.get_rdp(orders)
    grid = values + np.log1p(-1 / orders) - (math.log(1e-5) + np.log(orders)) / (orders - 1)
    assert best <= grid.min() * (1 + 1e-3)


def test_ends() -> None:
    accountant = RenyiAccountant().compose(
        ShuffledLDP(eps0=2.0, n=300, analysis="stronger-clones"), 4
    )
    assert accountant.get_epsilon(0.0) == 8.0
    assert accountant.get_epsilon(1.0) == 0.0
    assert accountant.get_delta(8.0) == 0.0 and accountant.get_delta(math.inf) == 0.0
    assert 0.0 < accountant.get_delta(0.0) <= 1.0
    deltas = accountant.get_delta([0.5, 1.0])
    assert deltas.shape == (2,) and deltas[0] > deltas[1]
    assert accountant.get_epsilon([1e-5, 1e-7]).shape == (2,)


@pytest.mark.parametrize("alpha", [1.0, 0.5, math.nan, -2.0, [2.0, 1.0]])
def test_refuses_orders(alpha: object) -> None:
    with pytest.raises(ValueError, match="alpha must be greater than 1"):
        renyi_divergence(ShuffledLDP(eps0=1.0, n=10, analysis="stronger-clones"), alpha)


def test_refuses_other_things() -> None:
    with pytest.raises(TypeError, match="mechanism"):
        renyi_divergence("ldp", 2.0)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="alpha"):
        renyi_divergence(ShuffledLDP(eps0=1.0, n=10, analysis="stronger-clones"), "2")
    with pytest.raises(ValueError, match="rtol"):
        renyi_bounds(ShuffledLDP(eps0=1.0, n=10, analysis="stronger-clones"), 2.0, rtol=0.0)
    accountant = RenyiAccountant()
    for count in (0, -1):
        with pytest.raises(ValueError, match="count"):
            accountant.compose(ShuffledLDP(eps0=1.0, n=10, analysis="stronger-clones"), count)
    with pytest.raises(TypeError, match="count"):
        accountant.compose(ShuffledLDP(eps0=1.0, n=10, analysis="stronger-clones"), True)
    assert accountant.ledger == ()
    for delta in (-0.1, 1.5, math.nan):
        with pytest.raises(ValueError, match="delta"):
            accountant.get_epsilon(delta)
    with pytest.raises(ValueError, match="epsilon"):
        accountant.get_delta(-1.0)


def test_the_method_of_a_mechanism() -> None:
    mechanism = ShuffledLDP(eps0=2.0, n=300, analysis="stronger-clones")
    assert mechanism.renyi_divergence(3.5) == renyi_divergence(mechanism, 3.5)
