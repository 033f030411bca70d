"""Up to 10^9 rounds: rounding of one law is counted a thousand million times."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import oracles
import pytest
from mpmath import mpf

from pld_shuffle import (
    Accountant,
    Gaussian,
    Laplace,
    PoissonGaussian,
    ShuffledLDP,
    ShuffledRR,
    Side,
    Subsampled,
)
from pld_shuffle.composition.plan import Plan
from pld_shuffle.composition.sketch import Sketch
from pld_shuffle.mechanisms import Mechanism
from pld_shuffle.pairs.pair import Atoms, Resolution, completed

MANY = 10**9


def truth(atoms: oracles.Atoms, rounds: int, eps: float) -> mpf:
    """delta by Fourier inversion in high precision: of many rounds, whose losses are small and the integrand short."""
    with mpmath.workdps(30):
        finite = [(p, mpmath.log(p / q)) for p, q in atoms]
        variance = rounds * sum(p * loss**2 for p, loss in finite)
        c = (mpf(eps) / variance) + mpf(1) / 2 + 1 / mpmath.sqrt(variance)

        def integrand(y: mpf) -> mpf:
            z = mpmath.mpc(c, y)
            log = rounds * mpmath.log(sum(p * mpmath.exp(z * loss) for p, loss in finite))
            return (mpmath.exp(log - z * mpf(eps)) / (z * (z + 1))).real / mpmath.pi

        unit = 1 / mpmath.sqrt(variance)
        return mpmath.quad(integrand, [k * unit for k in range(0, 13, 4)])


@pytest.mark.parametrize(("n", "delta"), [(2, 1e-3), (5, 1e-3)])
def test_few_users_of_tiny_budgets_enclose_the_truth(n: int, delta: float) -> None:
    """Labels in high precision, of a budget so small that 10^9 rounds spend about 1."""
    eps0 = 2.0**-14
    pair = oracles.canonical(oracles.stronger_clones(n, oracles.exp_of(eps0)))
    accountant = Accountant().compose(ShuffledLDP(eps0, n, analysis="stronger-clones"), MANY)
    found = accountant.epsilon_bounds(delta)
    for eps in found:
        at = accountant.delta_bounds(eps)
        exact = truth(pair, MANY, eps)
        assert at.lower <= exact * (1 + 1e-8) and exact <= at.upper * (1 + 1e-8)
        assert at.upper <= 1.001 * at.lower


@pytest.mark.parametrize(
    "mechanism",
    [
        ShuffledLDP(1.0, 10**4, analysis="stronger-clones"),
        ShuffledLDP(1.0, 10**9),
        ShuffledRR(2, 10**9, eps0=1.0),
        ShuffledRR(10, 10**9, eps0=0.1, adversary="weak"),
        Laplace(scale=1e4),
        PoissonGaussian(1.0, 1e-4),
    ],
    ids=repr,
)
def test_many_rounds_are_within_rtol(mechanism: Mechanism) -> None:
    """No warning (an error here)."""
    found = Accountant().compose(mechanism, MANY).epsilon_bounds(1e-6)
    assert 0.0 < found.lower <= found.upper <= found.lower * 1.001


@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize(
    "mechanism",
    [
        ShuffledLDP(1.0, 30, analysis="stronger-clones"),
        ShuffledLDP(1.0, 10**7, analysis="stronger-clones"),
        ShuffledRR(4, 40, eps0=1.0),
        ShuffledRR(4, 40, eps0=1.0, adversary="weak"),
        Laplace(scale=1.0),
    ],
    ids=repr,
)
def test_atoms_of_symmetric_pairs_sum_to_one(mechanism: Mechanism, side: Side) -> None:
    pair = mechanism.pair
    [atoms] = pair.atoms([side], Resolution(pair.scale / 20.0, missed=1e-12))
    there = atoms.infinite + (atoms.missed if side is Side.UPPER else 0.0)
    assert atoms.total == 1.0 - there
    assert abs(math.fsum(atoms.mass) - atoms.total) < 4e-16
    assert (math.fsum(atoms.mass) >= atoms.total) == (side is Side.UPPER)


def test_completion_keeps_the_side_of_a_law() -> None:
    """Inflated and deflated atoms of the labels of three users, at every s, against exact fractions."""
    exact = oracles.canonical(oracles.stronger_clones(3, oracles.exp_of(1.0)))
    loss = np.array(sorted(float(mpmath.log(p / q)) for p, q in exact))
    for side, factor in ((Side.UPPER, 1.0 + 1e-3), (Side.LOWER, 1.0 - 1e-3)):
        mass = np.array([float(p) for p, q in sorted(exact, key=lambda pq: pq[0] / pq[1])])
        loss[np.abs(loss) < 1e-12] = 0.0
        found = completed(Atoms(mass * factor, loss), side)
        pair = [
            (mpf(m), mpf(m) * mpmath.exp(-mpf(x)))
            for m, x in zip(found.mass.tolist(), loss.tolist(), strict=True)
        ]
        large, small = (pair, exact) if side is Side.UPPER else (exact, pair)
        assert oracles.violation(large, small) < 1e-14
        assert oracles.violation(small, large) > 1e-4


def test_no_completion_where_loss_zero_has_too_little() -> None:
    """One user: two losses and none at 0. And a law whose rounding is more than it has there."""
    two = Atoms(np.array([0.25, 0.75]), np.array([-1.1, 1.1]))
    assert completed(two, Side.UPPER) is two
    small = Atoms(np.array([0.3, 1e-9, 0.7 + 2e-9]), np.array([-0.8, 0.0, 0.8]))
    assert completed(small, Side.UPPER) is small


HARD: list[tuple[list[tuple[Mechanism, int]], float]] = [
    ([(PoissonGaussian(0.375, 1.24e-4), 576_000)], 4.77e-97),
    (
        [
            (PoissonGaussian(0.963, 0.0206), 536_000),
            (Subsampled(ShuffledLDP(1.9, 20_800, analysis="stronger-clones"), rate=0.0542), 28),
        ],
        4.59e-90,
    ),
    ([(ShuffledRR(100, 129_000_000, eps0=0.0718, adversary="weak"), 1640)], 2.98e-90),
    (
        [
            (ShuffledRR(100, 553_000_000_000, eps0=7.85), 1020),
            (ShuffledLDP(18.0, 6, analysis="stronger-clones"), 108),
        ],
        9.76e-92,
    ),
    (
        [
            (ShuffledRR(4, 3_160_000_000, eps0=0.0321), 1),
            (ShuffledLDP(2.12, 27, analysis="stronger-clones"), 8),
        ],
        2.16e-55,
    ),
    (
        [
            (ShuffledRR(100, 8_720_000_000, eps0=0.506, adversary="weak"), 32),
            (ShuffledRR(2, 32, eps0=1.81, adversary="weak"), 14),
        ],
        6.76e-89,
    ),
    ([(Gaussian(sigma=0.375), 16_000), (PoissonGaussian(0.358, 0.266), 1960)], 9.91e-27),
]


@pytest.mark.parametrize(("ledger", "delta"), HARD, ids=repr)
def test_uneven_ledgers_are_within_rtol(ledger: list[tuple[Mechanism, int]], delta: float) -> None:
    """Heavy tails, huge crowds, and losses of very different sizes. No warning (an error here)."""
    accountant = Accountant()
    for mechanism, count in ledger:
        accountant.compose(mechanism, count)
    found = accountant.epsilon_bounds(delta)
    assert 0.0 < found.lower <= found.upper <= 1.001 * found.lower


def test_every_pair_has_its_share_of_the_budget() -> None:
    """Cells widen delta's bracket by the sum of count step^2, buckets by z^2 width: as one step and width do."""
    ledger = [
        (ShuffledLDP(eps0, n, analysis="stronger-clones").pair, count)
        for eps0, n, count in ((1.0, 10**4, 7), (0.1, 10**6, 1000), (4.0, 300, 1))
    ]
    plan = Plan.steered(Sketch(ledger, 1e-20), 3.0, ledger, log_delta=-20.0, rtol=1e-3)
    found = plan.resolutions(ledger)
    spent = sum(count * found[pair].step ** 2 for pair, count in ledger)
    assert 0.8 * 1008 * plan.step**2 < spent <= 1008 * plan.step**2 * (1.0 + 1e-12)
    shares = [count * pair.scale**2 for pair, count in ledger]
    widths = [found[pair].size_width for pair, _ in ledger]
    whole = plan.resolution(plan.step).size_width
    assert np.dot(shares, widths) == pytest.approx(sum(shares) * whole)


def test_largest_losses_beside_far_smaller_ones_enclose_the_truth() -> None:
    """Three users, twice, and Gaussian noise of mu = 10^-4: sums of normal tails in high precision."""
    pair = oracles.canonical(oracles.stronger_clones(3, oracles.exp_of(3.0)))
    law = oracles.canonical(oracles.product(pair, pair))
    mechanism = ShuffledLDP(3.0, 3, analysis="stronger-clones")
    accountant = Accountant().compose(mechanism, 2).compose(Gaussian(sigma=1e4))
    mu = mpf(1) / 10**4
    for deviations in (0.0, 1.0, 8.0, 20.0):
        eps = 6.0 + deviations * 1e-4
        truth = mpf(0)
        for p, q in law:
            rest = mpf(eps) - mpmath.log(p / q)
            truth += p * (
                mpmath.ncdf(mu / 2 - rest / mu)
                - mpmath.exp(rest) * mpmath.ncdf(-mu / 2 - rest / mu)
            )
        found = accountant.delta_bounds(eps)
        assert found.lower <= truth <= found.upper <= 1.001 * found.lower
        at = accountant.epsilon_bounds(float(truth))
        assert at.lower <= eps * (1 + 1e-12) and eps <= at.upper * (1 + 1e-12)
        assert at.upper - at.lower < 1e-7
