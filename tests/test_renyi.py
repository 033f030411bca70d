"""Renyi divergences against sums in high precision, closed forms, quadrature and moments; the Renyi accountant."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import oracles as o
import pytest
from mpmath import mp, mpf, workdps
from test_honesty import exact_atoms
from test_truths import TRUTHS, asked, composed

from pld_shuffle import Accountant, DiscretePair, Laplace, Mechanism, Shuffled, ShuffledLDP, ShuffledRR, Subsampled
from pld_shuffle.composition import renyi
from pld_shuffle.numerics.sides import Bounds
from pld_shuffle.pairs.pair import Pair
from pld_shuffle.randomizers import Laplace as LaplaceNoise
from pld_shuffle.renyi import RenyiAccountant

ORDERS = (1.001, 1.5, 2.0, 7.3, 64.0, 3000.0)


def renyi_bounds(mechanism: Mechanism, order: Any, **options: Any) -> Bounds:
    """The upper end of the pair, the lower end of the attack."""
    attack, proved = (renyi.renyi_bounds(pair, order, **options) for pair in (mechanism.attack_pair, mechanism.pair))
    return Bounds(attack.lower, proved.upper)


def stronger(eps0: float, n: int) -> ShuffledLDP:
    return ShuffledLDP(eps0=eps0, n=n, analysis="stronger-clones")


def general(mechanism: Mechanism, rate: float) -> Mechanism:
    return Subsampled(mechanism, rate=rate, analysis="general") if rate < 1.0 else mechanism


def exact_divergence(atoms: o.Atoms, order: float) -> mpf:
    """log(sum p^alpha q^(1-alpha)) / (alpha - 1), from the raw atoms."""
    alpha, total = mpf(order), mpf(0)
    for p, q in atoms:
        p, q = o.to_mpf(p), o.to_mpf(q)
        if p > 0:
            if q == 0:
                return mp.inf
            total += mp.exp(alpha * mp.log(p) + (1 - alpha) * mp.log(q))
    return mp.log(total) / (alpha - 1)


def float_divergence(p: np.ndarray, q: np.ndarray, order: float) -> float:
    held = (p > 0) & (q > 0)
    logs = order * np.log(p[held]) + (1 - order) * np.log(q[held])
    return float(np.logaddexp.reduce(logs)) / (order - 1)


LABELS = [
    *(ShuffledLDP(eps0, n, a) for a in ("clones", "stronger-clones") for n in (1, 20) for eps0 in (0.1, 1.0, 5.0)),
    *(ShuffledRR(k=k, n=n, gamma=0.25, adversary="weak") for k in (2, 3, 10) for n in (1, 15)),
]


@pytest.mark.parametrize("rate", [1.0, 0.25])
@pytest.mark.parametrize("labels", LABELS, ids=repr)
def test_labels_against_mpmath(labels: Mechanism, rate: float) -> None:
    mechanism = general(labels, rate)
    atoms = exact_atoms(mechanism)
    for order in ORDERS:
        exact, found = exact_divergence(atoms, order), renyi_bounds(mechanism, order)
        assert found.lower <= exact <= found.upper
        assert found.upper <= float(exact) * (1 + (1.1e-4 if isinstance(labels, ShuffledLDP) else 2e-4))


@pytest.mark.parametrize("scale", [1e6, 64.0, 4.0, 1.0, 0.25, 1 / 32, 1 / 512])
def test_laplace_noise_against_the_closed_form(scale: float) -> None:
    """Mironov 2017, Prop. 6; also from points of the profile."""

    class WithoutFormula(type(Laplace(scale=scale).pair)):  # type: ignore[misc]
        def renyi(self, order: float) -> None:
            return None

    known = Laplace(scale=scale).pair
    pair: Pair = WithoutFormula(known.largest)
    with workdps(50):
        t = 1 / mpf(scale)
        for order in (1.0 + 1e-9, *ORDERS, 1e6, 1e9):
            a = mpf(order)
            up = a / (2 * a - 1) * mp.exp((a - 1) * t)
            exact = mp.log(up + (a - 1) / (2 * a - 1) * mp.exp(-a * t)) / (a - 1)
            for found in (renyi.renyi_bounds(known, order), renyi.renyi_bounds(pair, order)):
                assert found.lower <= exact <= found.upper
                if scale >= 1 / 32 and order >= 1.001 and scale < 1e6:
                    assert float(exact) * (1 - 1e-3) <= found.lower
                    assert found.upper <= float(exact) * (1 + 1e-3)


@pytest.mark.parametrize("seed", range(12))
def test_finite_pairs_in_either_order_against_sums(seed: int) -> None:
    """The pair is the worse of two orders at every epsilon; the lower end is the larger of both orders' divergences."""
    draw = np.random.default_rng(seed)
    p, q = (draw.dirichlet(np.full(3 + seed % 6, 0.7)) + 1e-9 for _ in range(2))
    p, q = p / p.sum(), q / q.sum()
    for order in (1.01, 2.0, 12.0, 300.0):
        both = [float_divergence(a, b, order) for a, b in ((p, q), (q, p))]
        found = renyi_bounds(DiscretePair(np.log(p), np.log(q)), order)
        one = renyi_bounds(DiscretePair(np.log(p), np.log(q), symmetric=False), order)
        assert max(both) * (1 - 1e-4) <= found.lower <= max(both) * (1 + 1e-10) <= found.upper * (1 + 2e-10)
        assert one.lower <= both[0] * (1 + 1e-10) and both[0] <= one.upper * (1 + 1e-10)
        assert one.upper <= one.lower * (1 + 1e-3)


@pytest.mark.parametrize(("n", "eps0"), [(1, 0.2), (1, 1.0), (1, 4.0), (2, 1.0), (3, 4.0)])
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
        both = [math.log(np.sum(joint * mean**power)) / (order - 1.0) for power in (order, 1.0 - order)]
        found = renyi_bounds(Shuffled(LaplaceNoise(eps0=eps0), n), order, rtol=1e-3 if n == 1 else 1e-2)
        # The attack's order is chosen by its delta, so its divergence may be the smaller one.
        assert found.lower <= max(both) * (1.0 + 1e-9) and max(both) <= found.upper * (1.0 + 1e-9)
        assert found.lower >= min(both) * 0.95
        assert n > 1 or found.upper <= max(both) * 1.002


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
    ("eps0", "n", "tolerance"),
    [(0.1, 10_000, 0.01), (1.0, 10_000, 0.02), (1.0, 10**6, 0.01), (2.0, 10_000, 0.03)],
)  # fmt: skip
def test_shuffled_laplace_of_many_users(eps0: float, n: int, tolerance: float) -> None:
    mechanism = Shuffled(LaplaceNoise(eps0=eps0), n)
    for order in (2, 30):
        truth = exact_attack(eps0, n, order)
        upper = renyi.renyi_bounds(mechanism.pair, order).upper
        assert upper >= truth
        assert order > 0.3 / mechanism.pair.scale or upper <= truth * (1.0 + tolerance)


ENUMERATED = [
    name for name, truth in TRUTHS.items()
    if truth.rounds == truth.group == 1 and truth.least is not None and not truth.ordered
    and all(isinstance(one, Mechanism) for one in asked(truth)) and "six" not in name
]  # fmt: skip


#: The last of each kind.
SOME = {(type(asked(TRUTHS[name])[0]), name.split()[0]): name for name in ENUMERATED}


@pytest.mark.parametrize("name", SOME.values())
def test_around_the_worst_enumerated_pair(name: str) -> None:
    """The worst dataset at every epsilon may be another one; the pair is above all of them."""
    laws = [composed(atoms, 1) for atoms in TRUTHS[name].pairs()]
    both = [order for law in laws for order in (law, law[::-1])]
    for order in (1.5, 9.0):
        worst = max(math.inf if np.any((p > 0) & (q == 0)) else float_divergence(p, q, order) for p, q in both)
        for mechanism in asked(TRUTHS[name]):
            found = renyi_bounds(mechanism, order, rtol=1e-2)
            assert found.lower <= worst * (1.0 + 1e-9) and worst <= found.upper * (1.0 + 1e-9)


def test_orders_do_not_depend_on_each_other() -> None:
    mechanism = Shuffled(LaplaceNoise(eps0=0.5), 1_000)
    late = renyi_bounds(mechanism, [2.0, 50.0, 400.0], rtol=1e-2).upper
    renyi._Laws.of.cache_clear()
    early = renyi_bounds(mechanism, [400.0, 2.0, 50.0], rtol=1e-2).upper
    assert late.tolist() == [early[1], early[2], early[0]]


@pytest.mark.parametrize("mechanism", [
    Shuffled(LaplaceNoise(eps0=1.0), 10_000), ShuffledLDP(1.0, 10**6), stronger(4.0, 3_000),
])  # fmt: skip
def test_shape_over_orders(mechanism: Mechanism) -> None:
    """Rising, (order - 1) R convex in the order, never above the largest loss, all within the width asked for."""
    orders = 1.0 + np.geomspace(1e-3, 1e4, 7)
    lower, upper = renyi_bounds(mechanism, orders, rtol=1e-2)
    assert np.all(upper <= mechanism.pair.max_loss.upper) and np.all(upper > 0.0)
    assert np.all(lower[:-1] <= upper[1:]) and np.all(lower <= upper)
    for i, j in itertools.combinations(range(0, 7, 2), 2):
        middle = 0.5 * (orders[i] + orders[j])
        low = renyi_bounds(mechanism, middle, rtol=1e-2).lower * (middle - 1.0)
        assert low <= 0.5 * (upper[i] * (orders[i] - 1.0) + upper[j] * (orders[j] - 1.0))


@pytest.mark.parametrize("adversary", ["strong", "strong-conditional"])
def test_mass_at_infinite_loss(adversary: str) -> None:
    mechanism = ShuffledRR(k=4, n=1_000, gamma=0.25, adversary=adversary)
    for rate in (1.0, 0.01):
        assert renyi_bounds(general(mechanism, rate), 2.0) == (math.inf, math.inf)
    accountant = RenyiAccountant().compose(mechanism, 3)
    assert accountant.get_epsilon(1e-6) == math.inf


@pytest.mark.parametrize("mechanism", [stronger(14.0, n) for n in (10, 10**5, 10**9)] + [stronger(700.0, 50)])
def test_nothing_overflows(mechanism: ShuffledLDP) -> None:
    upper = renyi_bounds(mechanism, [1.0 + 1e-6, 2.0, 1e4, 1e6, math.inf]).upper
    assert np.all(upper > 0.0) and np.all(upper <= mechanism.eps0) and upper[-1] == mechanism.eps0


def test_additive_over_rounds() -> None:
    first, second = stronger(2.0, 500), ShuffledRR(k=3, n=200, eps0=1.0, adversary="weak")
    accountant = RenyiAccountant().compose(first, 3).compose(second).compose(first, 2)
    assert accountant.ledger == ((first, 5), (second, 1)) and accountant.rounds == 6
    orders = np.array([1.5, 8.0])
    expected = 5 * renyi_bounds(first, orders).upper + renyi_bounds(second, orders).upper
    assert accountant.get_rdp(orders) == pytest.approx(expected, rel=1.5e-3)
    # The product pair's divergence, formed atom by atom, is the sum.
    atoms = o.stronger_clones(4, o.exp_of(1.0))
    two = float(exact_divergence(o.product(atoms, atoms), 3.5))
    assert 2 * renyi_bounds(stronger(1.0, 4), 3.5).upper == pytest.approx(two, 1e-4)


SETTINGS = [
    (stronger(4.0, 10_000), 10, 1e-6, 2.5),
    (stronger(1.0, 1_000), 1, 1e-4, 2.5),
    (general(stronger(3.0, 1_000), 0.01), 1_000, 1e-5, 2.5),
    (ShuffledRR(k=4, n=1_000, gamma=0.25, adversary="weak"), 16, 1e-5, 2.5),
    (stronger(4.0, 5), 2, 1e-9, 2.5),
    (Shuffled(LaplaceNoise(eps0=1.0), 10**6), 1, 1e-6, 1.25),  # orders in the thousands
    (ShuffledLDP(1.0, 10**6), 1, 1e-6, 1.25),
]


@pytest.mark.parametrize(("mechanism", "rounds", "delta", "most"), SETTINGS)
def test_above_the_tight_accountant(mechanism: Mechanism, rounds: int, delta: float, most: float) -> None:
    tight = Accountant().compose(mechanism, rounds)
    accountant = RenyiAccountant().compose(mechanism, rounds)
    epsilon = accountant.get_epsilon(delta)
    lower = tight.epsilon_bounds(delta).lower
    assert lower <= epsilon <= most * lower
    # The best of all real orders.
    orders = 1.0 + np.geomspace(0.05, 5000.0, 6)
    values = accountant.get_rdp(orders) + np.log1p(-1 / orders)
    assert epsilon <= np.min(values - (math.log(delta) + np.log(orders)) / (orders - 1)) * (1 + 1e-3)


def test_ends() -> None:
    """Of the range of delta; and no information."""
    silent = ShuffledRR(k=4, n=100, gamma=1.0, adversary="weak")
    assert renyi_bounds(silent, 2.0) == (0.0, 0.0)
    assert RenyiAccountant().compose(silent, 3).get_epsilon(1e-6) == 0.0 == RenyiAccountant().get_epsilon(1e-6)
    accountant = RenyiAccountant().compose(stronger(2.0, 300), 4)
    assert accountant.get_epsilon(0.0) == 8.0 and accountant.get_epsilon(1.0) == 0.0
    assert accountant.get_epsilon([1e-5, 1e-7]).shape == (2,)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("factor", [1.0 - 1e-3, 1.0 + 1e-3])
def test_mutants(sign: float, factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousandth too much or too little of either side's moment leaves the truth outside, or is wider than asked."""
    true = renyi._log_moment
    exact = float(exact_divergence(o.stronger_clones(7, o.exp_of(1.0)), 7.3))
    monkeypatch.setattr(
        renyi, "_log_moment", lambda law, t, side: true(law, t, side) * (factor if side == sign else 1.0)
    )
    try:
        found = renyi_bounds(stronger(1.0, 7), 7.3)
    except ArithmeticError:  # the program's own check noticed
        return
    assert not (found.lower <= exact <= found.upper <= found.lower * (1 + 2e-4))
