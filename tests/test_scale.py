"""Large sizes: a billion users and rounds, hundreds of cohorts; and refusing politely.

One round of n users: given m coin labels, with b(A) = P(Bin(m, 1/2) = A) and the cut c,
    sum_{A >= c} b(A) ((1 + theta t) - alpha (1 - theta t)) = (1 - alpha) P(A >= c) + (1 + alpha) theta c b(c) / m,
since (2A - m) b(A) = A b(A) - (A+1) b(A+1) telescopes; every m within 7 standard deviations is summed. (The incomplete
beta function and the probabilities agree with 50-digit sums to 1e-12.) 300 cohorts: every atom, on two fine lattices.
"""

from __future__ import annotations

import math
import tracemalloc
from functools import cache

import mpmath
import numpy as np
import oracles
import pytest
from mpmath import mpf
from scipy import special
from scipy.stats import binom

from pld_shuffle import Accountant, Bounds, Gaussian, Laplace, Mechanism, ShuffledLDP, ShuffledRR, Side, Subsampled
from pld_shuffle.pairs.pair import Atoms, Resolution, completed

RTOL = 1e-3
BILLION = 10**9
DOUBT = 1e-7  # relative: 1e-12 of the terms, and the sum cancels to 1e-5 of them


# -- independent sums -------------------------------------------------------------------------------


def coin_delta(m: np.ndarray, theta: float, epsilon: float) -> np.ndarray:
    """Hockey-stick divergence of m tilted coins."""
    alpha = math.exp(epsilon)
    cut = np.floor(0.5 * m * (1.0 + math.tanh(0.5 * epsilon) / theta)) + 1.0
    tail = special.betainc(cut, m - cut + 1.0, 0.5)
    here = binom.pmf(cut, m, 0.5)
    return -math.expm1(epsilon) * tail + (1.0 + alpha) * theta * cut * here / m


@cache
def crowd(n: int, chance: float) -> tuple[np.ndarray, np.ndarray]:
    """(m, weight) for m - 1 ~ Bin(n-1, chance), all m within 7 standard deviations (all but 3e-12)."""
    middle, reach = round(n * chance), math.ceil(7.0 * math.sqrt(n * chance * (1.0 - chance)))
    others = np.arange(middle - reach, middle + reach + 1, dtype=float)
    return others + 1.0, binom.pmf(others, n - 1, chance)


def round_delta(mechanism: Mechanism, epsilon: float) -> float:
    """delta(epsilon > 0) of one round."""
    if isinstance(mechanism, Subsampled):
        q = mechanism.rate
        return q * round_delta(mechanism.mechanism, math.log1p(math.expm1(epsilon) / q))
    if isinstance(mechanism, ShuffledRR):
        assert mechanism.adversary == "strong"
        rate, theta, share = 2.0 * mechanism.gamma / mechanism.k, 1.0, 1.0 - mechanism.gamma
    else:
        assert isinstance(mechanism, ShuffledLDP)
        odds = math.exp(mechanism.eps0)
        rate = 1.0 / odds if mechanism.analysis == "clones" else 2.0 / (odds + 1.0)
        theta, share = math.tanh(0.5 * mechanism.eps0), 1.0
    m, weight = crowd(mechanism.n, rate)
    return share * math.fsum(weight * coin_delta(m, theta, epsilon))


def check(bounds: Bounds, truth: float, mass_error: float, rtol: float = RTOL) -> None:
    assert bounds.lower <= truth * (1.0 + mass_error), (bounds, truth)
    assert bounds.upper >= truth * (1.0 - mass_error), (bounds, truth)
    assert bounds.upper <= (1.0 + rtol) * bounds.lower, (bounds, truth)


# -- a billion users ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", [
    ShuffledLDP(eps0=4.0, n=BILLION, analysis="stronger-clones"),
    ShuffledLDP(eps0=3.0, n=BILLION, analysis="clones"),
    ShuffledRR(k=4, n=BILLION, gamma=0.25),
    Subsampled(
        ShuffledLDP(eps0=4.0, n=BILLION, analysis="stronger-clones"),
        population=100 * BILLION,
        analysis="general",
    ),
    ShuffledLDP(eps0=4.0, n=10**7, analysis="stronger-clones"),
], ids=["stronger clones", "clones", "strong", "subsampled", "ten million"])  # fmt: skip
def test_a_billion_users(mechanism: Mechanism) -> None:
    accountant = Accountant().compose(mechanism)
    for delta in (1e-6, 1e-16):
        bounds = accountant.epsilon_bounds(delta)
        truth = round_delta(mechanism, bounds.upper)
        check(accountant.delta_bounds(bounds.upper), truth, DOUBT)
        assert truth <= delta * (1.0 + DOUBT)
    assert round_delta(mechanism, bounds.lower) >= delta * (1.0 - DOUBT)


# -- hundreds of different cohorts -----------------------------------------------------------------------


def test_300_distinct_mechanisms_of_one_user() -> None:
    """eps0 = i/512, i = 50 ... 349: exact, the composed law being on the lattice of 1/512."""
    unit, sizes = 1.0 / 512.0, range(50, 350)
    law = np.ones(1)
    for i in sizes:
        chance = 1.0 / (1.0 + math.exp(-i * unit))
        law = np.pad(law * (1.0 - chance), (0, 2 * i)) + np.pad(law * chance, (2 * i, 0))
    losses = (np.arange(law.size) - sum(sizes)) * unit
    accountant = Accountant(rtol=1e-2)
    for i in sizes:
        accountant.compose(ShuffledLDP(eps0=i * unit, n=1, analysis="stronger-clones"))
    for epsilon in (20.0, 40.0):
        above = losses > epsilon
        truth = math.fsum(law[above] * -np.expm1(epsilon - losses[above]))
        check(accountant.delta_bounds(epsilon), truth, 1e-9, rtol=1e-2)


# -- refusing politely ----------------------------------------------------------------------------------


def test_too_many_cells_are_refused_before_they_are_allocated() -> None:
    tracemalloc.start()
    try:
        with pytest.raises(MemoryError, match=r"a lattice of \d+ cells .* larger rtol or step"):
            ShuffledLDP(eps0=4.0, n=1_000, analysis="stronger-clones").pld(step=1e-9)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2**26


# --- Up to 10^9 rounds: rounding of one law is counted a thousand million times ---

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


@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize("mechanism", [
    ShuffledLDP(1.0, 30, analysis="stronger-clones"),
    ShuffledLDP(1.0, 10**7, analysis="stronger-clones"),
    ShuffledRR(4, 40, eps0=1.0),
    ShuffledRR(4, 40, eps0=1.0, adversary="weak"),
    Laplace(scale=1.0),
], ids=repr)  # fmt: skip
def test_atoms_of_symmetric_pairs_sum_to_one(mechanism: Mechanism, side: Side) -> None:
    pair = mechanism.pair
    [atoms] = pair.atoms([side], Resolution(pair.scale / 20.0, truncated_mass=1e-12))
    there = atoms.infinity_mass + (atoms.truncated_mass if side is Side.UPPER else 0.0)
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
        pair = [(mpf(m), mpf(m) * mpmath.exp(-mpf(x))) for m, x in zip(found.mass.tolist(), loss.tolist(), strict=True)]
        large, small = (pair, exact) if side is Side.UPPER else (exact, pair)
        assert oracles.violation(large, small) < 1e-14
        assert oracles.violation(small, large) > 1e-4


def test_no_completion_where_loss_zero_has_too_little() -> None:
    """One user: two losses and none at 0. And a law whose rounding is more than it has there."""
    two = Atoms(np.array([0.25, 0.75]), np.array([-1.1, 1.1]))
    assert completed(two, Side.UPPER) is two
    small = Atoms(np.array([0.3, 1e-9, 0.7 + 2e-9]), np.array([-0.8, 0.0, 0.8]))
    assert completed(small, Side.UPPER) is small


def test_largest_losses_beside_far_smaller_ones_enclose_the_truth() -> None:
    """Three users, twice, and Gaussian noise of mu = 10^-4: sums of normal tails in high precision."""
    pair = oracles.canonical(oracles.stronger_clones(3, oracles.exp_of(3.0)))
    law = oracles.canonical(oracles.product(pair, pair))
    mechanism = ShuffledLDP(3.0, 3, analysis="stronger-clones")
    accountant = Accountant().compose(mechanism, 2).compose(Gaussian(sigma=1e4))
    mu = mpf(1) / 10**4
    for deviations in (0.0, 1.0, 8.0, 20.0):
        eps = 6.0 + deviations * 1e-4
        truth = mpmath.fsum(p * oracles.gaussian(mu, mpf(eps) - mpmath.log(p / q)) for p, q in law)
        found = accountant.delta_bounds(eps)
        assert found.lower <= truth <= found.upper <= 1.001 * found.lower
        at = accountant.epsilon_bounds(float(truth))
        assert at.lower <= eps * (1 + 1e-12) and eps <= at.upper * (1 + 1e-12)
        assert at.upper - at.lower < 1e-7
