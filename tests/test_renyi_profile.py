"""Renyi divergences from profiles against closed forms, sums of atoms, quadrature, exact moments of crowds."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from mpmath import mp, mpf, workdps

from pld_shuffle import Accountant, DiscretePair, Laplace, Shuffled, ShuffledLDP, ShuffledRR
from pld_shuffle.composition.renyi_divergence import renyi_bounds as pair_bounds
from pld_shuffle.composition.renyi_divergence import renyi_divergence as pair_upper
from pld_shuffle.composition.renyi_profile import LEAST, points
from pld_shuffle.numerics.sides import Bounds
from pld_shuffle.pairs.profile import LooseProfile, ProfilePair
from pld_shuffle.randomizers import BinaryRandomizedResponse, KRandomizedResponse
from pld_shuffle.randomizers import Laplace as LaplaceNoise
from pld_shuffle.renyi import RenyiAccountant, renyi_bounds, renyi_divergence

ORDERS = (1.0 + 1e-9, 1.001, 1.5, 2.0, 7.3, 64.0, 3000.0, 1e6, 1e9)


def without_formula(mechanism) -> ProfilePair:
    pair = mechanism.pair
    top = pair.top_mass
    return LooseProfile(pair.profile, pair.max_loss, pair.scale, top_mass=top)


def laplace_divergence(t: mpf, order: float) -> mpf:
    """Mironov 2017, Prop. 6."""
    a = mpf(order)
    up = a / (2 * a - 1) * mp.exp((a - 1) * t)
    return mp.log(up + (a - 1) / (2 * a - 1) * mp.exp(-a * t)) / (a - 1)


@pytest.mark.parametrize("scale", [1e6, 64.0, 4.0, 1.0, 0.25, 1 / 32, 1 / 512])
def test_laplace_noise_against_the_closed_form(scale: float) -> None:
    pair = without_formula(Laplace(scale=scale))
    with workdps(50):
        for order in ORDERS:
            exact = laplace_divergence(1 / mpf(scale), order)
            found = pair_bounds(pair, order, rtol=1e-3)
            assert found.lower <= exact <= found.upper
            if scale >= 1 / 32:
                assert found.upper <= float(exact) * 1.002 and found.lower >= float(exact) * 0.995


def test_halves_whose_orders_are_two_laws() -> None:
    """A lower half may know the reversed order less well; lines across loss 0 start from the truth all the same."""
    near = 0.05
    back = math.expm1(-near) / (
        math.expm1(-near) - math.expm1(1.0)
    )  # P-mass at loss -1; the rest is at `near`

    def ordered(reverse_known: float) -> ProfilePair:
        def forward(growth: np.ndarray, rtol: float, missed: float) -> Bounds:
            exact = np.maximum(0.0, 1.0 - (1.0 + growth) * math.exp(-near)) * (1.0 - back)
            return Bounds(exact, exact)

        def backward(growth: np.ndarray, rtol: float, missed: float) -> Bounds:
            exact = np.maximum(0.0, math.e - (1.0 + growth)) * back
            return Bounds(reverse_known * exact, reverse_known * exact)

        reverse = LooseProfile(backward, Bounds(1.0, 1.0), 0.5)
        return LooseProfile(forward, Bounds(1.0, 1.0), 0.5, reverse=reverse)

    whole = ordered(1.0)
    pair = replace(whole, halves=(ordered(0.9), whole))
    for order in (30.0, 100.0, 300.0):
        moments = (1.0 - back) * math.exp((order - 1.0) * near) + back * math.exp(1.0 - order)
        assert pair_bounds(pair, order, rtol=1.0).lower <= math.log(moments) / (order - 1.0)


def test_a_narrower_bracket_where_it_is_asked_for() -> None:
    pair = without_formula(Laplace(scale=1.0))
    for order in (1.5, 7.3):
        exact = float(laplace_divergence(mpf(1), order))
        for rtol in (1e-2, 1e-4):
            found = pair_bounds(pair, order, rtol=rtol)
            assert exact * (1.0 - 2.0 * rtol) <= found.lower <= found.upper <= exact * (1.0 + rtol)


@pytest.mark.parametrize("seed", range(6))
def test_finite_pairs_against_sums(seed: int) -> None:
    """Profiles with kinks, in the worse of two orders."""
    draw = np.random.default_rng(seed)
    p, q = (draw.dirichlet(np.full(3 + seed, 0.7)) + 1e-9 for _ in range(2))
    p, q = p / p.sum(), q / q.sum()
    pair = DiscretePair(np.log(p), np.log(q)).pair
    assert isinstance(pair, ProfilePair)
    for order in (1.01, 2.0, 12.0, 300.0):
        exact = max(
            float(mp.log(sum(mpf(a) ** order * mpf(b) ** (1 - order) for a, b in zip(*both, strict=True))))
            / (order - 1.0)
            for both in ((p, q), (q, p))
        )  # fmt: skip
        # The pair is the worse of both orders at every epsilon, so its divergence is at least that of either.
        assert pair_bounds(pair, order).upper >= exact * (1.0 - 1e-12)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("eps0", [0.2, 1.0, 4.0])
def test_shuffled_laplace_against_quadrature(n: int, eps0: float) -> None:
    """All others at 0, the target at 0 or at 1: both orders, by Gauss's rule in the ratios' n dimensions."""
    node, weight = np.polynomial.legendre.leggauss(40)
    y = 0.5 * (1.0 + node)
    ratio = np.exp(np.concatenate(([-eps0, eps0], eps0 * (2.0 * y - 1.0))))
    inside = 0.5 * eps0 * np.exp(-eps0 * y) * 0.5 * weight
    mass = np.concatenate(([0.5, 0.5 * math.exp(-eps0)], inside))
    mean = sum(np.meshgrid(*[ratio] * n, indexing="ij")) / n
    joint = math.prod(np.meshgrid(*[mass] * n, indexing="ij"))
    assert joint.sum() == pytest.approx(1.0, abs=1e-13)
    for order in (1.1, 2.0, 5.5, 30.0):
        one = math.log(np.sum(joint * mean**order)) / (order - 1.0)
        two = math.log(np.sum(joint * mean ** (1.0 - order))) / (order - 1.0)
        truth = max(one, two)
        found = renyi_bounds(
            Shuffled(LaplaceNoise(eps0=eps0), n), order, rtol=1e-3 if n == 1 else 1e-2
        )
        # The attack's order is chosen by its delta, so its divergence may be the smaller one.
        assert found.lower <= truth * (1.0 + 1e-9) and truth <= found.upper * (1.0 + 1e-9)
        assert found.lower >= min(one, two) * 0.95
        if n == 1:
            assert found.upper <= truth * 1.002


def exact_attack(eps0: float, n: int, order: int) -> float:
    """log E[(mean of n ratios)^order]/(order - 1), from the n-th power of the ratios' moment series."""

    def moment(k: int) -> mpf:
        e = mpf(eps0)
        middle = mp.exp(-k * e) * mp.expm1((2 * k - 1) * e) / (2 * (2 * k - 1))
        return mp.exp(-k * e) / 2 + middle + mp.exp((k - 1) * e) / 2

    with workdps(60 + 2 * order):
        part = [moment(k) / mp.factorial(k) for k in range(order + 1)]
        power = [mpf(1)]
        for k in range(1, order + 1):
            terms = ((n * j - k + j) * part[j] * power[k - j] for j in range(1, k + 1))
            power.append(mp.fsum(terms) / k)
        whole = power[order] * mp.factorial(order) / mpf(n) ** order
        return float(mp.log(whole) / (order - 1))


@pytest.mark.parametrize(
    ("eps0", "n", "slack"),
    [(0.1, 10_000, 0.01), (1.0, 200, 0.1), (1.0, 10_000, 0.02), (1.0, 10**6, 0.01), (2.0, 10_000, 0.03)],
)  # fmt: skip
def test_shuffled_laplace_of_many_users(eps0: float, n: int, slack: float) -> None:
    mechanism = Shuffled(LaplaceNoise(eps0=eps0), n)
    for order in (2, 8, 30, 100):
        truth = exact_attack(eps0, n, order)
        upper = renyi_divergence(mechanism, order)
        assert upper >= truth
        if order <= 0.3 / mechanism.pair.scale:
            assert upper <= truth * (1.0 + slack)


@pytest.mark.parametrize("mechanism", [
    Shuffled(BinaryRandomizedResponse(1.0), 5), Shuffled(KRandomizedResponse(k=2, eps0=3.0), 4)
])  # fmt: skip
def test_shuffled_bits_against_enumeration(mechanism) -> None:
    n, p = mechanism.n, math.exp(mechanism.randomizer.eps0)
    keep = p / (1.0 + p)
    for order in (1.5, 2.0, 9.0, 80.0):
        worst = 0.0
        for others in range(n):
            laws = []
            for target in (0, 1):
                law = np.ones(1)
                for bit in [target] + [1] * others + [0] * (n - 1 - others):
                    one = keep if bit else 1.0 - keep
                    law = np.convolve(law, [1.0 - one, one])
                laws.append(law)
            for first, second in itertools.permutations(laws):
                logs = order * np.log(first) + (1.0 - order) * np.log(second)
                worst = max(worst, float(np.logaddexp.reduce(logs)) / (order - 1.0))
        found = renyi_bounds(mechanism, order, rtol=1e-3)
        assert found.lower <= worst * (1.0 + 1e-9) and worst <= found.upper * (1.0 + 1e-9)
        # The worst dataset at every epsilon may be another one; the pair is above all of them.
        assert found.lower >= worst * 0.97


def test_orders_do_not_depend_on_each_other() -> None:
    mechanism = Shuffled(LaplaceNoise(eps0=0.5), 1_000)
    late = pair_upper(mechanism.pair, [2.0, 50.0, 400.0], rtol=1e-2)
    points.cache_clear()
    early = pair_upper(mechanism.pair, [400.0, 2.0, 50.0], rtol=1e-2)
    assert late.tolist() == [early[1], early[2], early[0]]


@pytest.mark.parametrize("mechanism", [
    Shuffled(LaplaceNoise(eps0=1.0), 10_000), ShuffledLDP(1.0, 10**6),
    pytest.param(Shuffled(LaplaceNoise(eps0=0.3), 100), marks=pytest.mark.slow),
    pytest.param(Shuffled(LaplaceNoise(eps0=3.0), 500), marks=pytest.mark.slow),
])  # fmt: skip
def test_shape_over_orders(mechanism) -> None:
    """Rising, (order - 1) R convex in the order, never above the largest loss, all within the width asked for."""
    orders = 1.0 + np.geomspace(1e-3, 1e5, 25)
    upper = renyi_bounds(mechanism, orders, rtol=1e-2).upper
    assert np.all(upper <= float(mechanism.pair.max_loss.upper)) and np.all(upper > 0.0)
    lower = renyi_bounds(mechanism, orders, rtol=1e-2).lower
    assert np.all(lower[:-1] <= upper[1:]) and np.all(lower <= upper)
    for i, j in itertools.combinations(range(0, 25, 4), 2):
        middle = 0.5 * (orders[i] + orders[j])
        low = renyi_bounds(mechanism, middle, rtol=1e-2).lower * (middle - 1.0)
        assert low <= 0.5 * (upper[i] * (orders[i] - 1.0) + upper[j] * (orders[j] - 1.0))


def test_few_points_for_all_orders() -> None:
    pair = Shuffled(LaplaceNoise(eps0=1.0), 10_000).pair
    assert isinstance(pair, ProfilePair)
    first = points(pair, LEAST, 1e-3).forward.growth
    last = points(pair, 4, 1e-3).forward.growth
    assert first.size < last.size < 400 and np.isin(first, last).all()


def test_the_accountant_is_above_the_tight_one() -> None:
    for eps0, n, rounds in ((1.0, 10_000, 1), (1.0, 10_000, 100)):
        mechanism = Shuffled(LaplaceNoise(eps0=eps0), n)
        tight = Accountant().compose(mechanism, rounds).epsilon_bounds(1e-6).lower
        assert (
            tight <= RenyiAccountant().compose(mechanism, rounds).get_epsilon(1e-6) <= 1.5 * tight
        )


@pytest.mark.parametrize("pair", [
    ShuffledLDP(1.0, 10**6, analysis="stronger-clones").pair,
    ShuffledLDP(4.0, 3_000, analysis="stronger-clones").pair,
    ShuffledRR(k=4, n=20_000, eps0=1.0, adversary="weak").pair,
])  # fmt: skip
def test_coins_by_their_profile_and_by_their_sums(pair) -> None:
    """Two ways to the same divergence, far out as well."""
    for t in (0.01, 0.3, 2.0, 6.0, 15.0, 30.0):
        order = 1.0 + t / pair.scale
        sums = pair_bounds(pair, order, rtol=9e-4)
        found = pair_bounds(pair, order, rtol=1e-3)
        assert found.upper >= sums.lower and found.lower <= sums.upper
        assert found.upper <= sums.upper * (1.006 if t <= 6.0 else 1.03 if t <= 15.0 else 1.1)
        assert found.lower >= sums.lower * 0.99 or t > 6.0


@pytest.mark.parametrize("pair", [
    ShuffledLDP(1.0, 10**6, analysis="stronger-clones").pair.as_profile,
    ShuffledRR(k=4, n=1_000, eps0=3.0, adversary="weak").pair.as_profile,
    Shuffled(LaplaceNoise(eps0=1.0), 10_000, analysis="blanket").pair,
    Shuffled(LaplaceNoise(eps0=2.0), 50, analysis="blanket").pair,
])  # fmt: skip
def test_tails_in_logarithms(pair: ProfilePair) -> None:
    """Above the profile everywhere, by little on the scale of logarithms, and falling where profiles underflow."""
    growth = np.expm1(
        np.minimum(pair.scale * np.geomspace(0.5, 20.0, 12), 0.9 * pair.max_loss.lower)
    )
    growth = np.unique(growth)
    known, tail = pair.profile(growth, 1e-3, 1e-300), pair.log_tail(growth)
    seen = known.lower > 1e-200
    assert seen.sum() > 3 and np.all(tail[seen] >= np.log(known.lower[seen]))
    assert np.all(tail[seen] <= np.log(known.upper[seen]) * (1.0 - 1e-9) + 6.0)
    far = np.expm1(np.linspace(0.3, 0.99, 8) * pair.max_loss.lower)
    assert np.all(np.diff(pair.log_tail(far)) < 0.0)


@pytest.mark.parametrize(
    "mechanism", [Shuffled(LaplaceNoise(eps0=1.0), 10**6), ShuffledLDP(1.0, 10**6)]
)
def test_one_round_of_a_million_users(mechanism) -> None:
    """Orders in the thousands, where the profile underflows long before the largest loss."""
    tight = Accountant().compose(mechanism).epsilon_bounds(1e-6)
    assert (
        tight.lower <= RenyiAccountant().compose(mechanism).get_epsilon(1e-6) <= 1.2 * tight.upper
    )
