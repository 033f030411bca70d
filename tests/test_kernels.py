"""Kernels against plain Python, compiled and not, and the windows against exact tails."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import binomial, exp, mpf

from pld_shuffle import Accountant, PoissonSampled, ShuffledRandomizer, Subsampled
from pld_shuffle.numerics import kernels
from pld_shuffle.numerics.binomial import chernoff_window
from pld_shuffle.pairs import coin_kernels
from pld_shuffle.pairs.cohort import Cohort
from pld_shuffle.pairs.coins import Components, _most_in_a_cell
from pld_shuffle.pairs.slots import slot_profile
from pld_shuffle.pairs.swap import any_ldp_profile


def plain(kernel):  # type: ignore[no-untyped-def]
    """The Python function behind a kernel."""
    return kernel.plain


@pytest.mark.parametrize("m", [2, 4, 30, 62, 64, 66, 100, 1000, 4096])
def test_central_coin_mass(m: int) -> None:
    exact = Fraction(math.comb(m, m // 2), 2**m)
    for kernel in (coin_kernels.central_coin_mass, plain(coin_kernels.central_coin_mass)):
        assert abs(Fraction(kernel(m)) / exact - 1) < 2e-15


@pytest.mark.parametrize("n,p", [(1, 0.3), (50, 0.02), (1000, 0.5), (300, 0.97)])
def test_binomial_pmf(n: int, p: float) -> None:
    low, high = max(0, int(n * p) - 40), min(n, int(n * p) + 40)
    weights = [
        math.comb(n, x) * Fraction(p) ** x * (1 - Fraction(p)) ** (n - x)
        for x in range(low, high + 1)
    ]
    total = sum(weights)
    for kernel in (kernels.binomial_pmf, plain(kernels.binomial_pmf)):
        out = np.empty(high - low + 1)
        kernel(n, p, low, high, out)
        for found, exact in zip(out, weights, strict=True):
            assert abs(Fraction(float(found)) / (exact / total) - 1) < 1e-13


def hoeffding_window(n: int, p: float, missed: float) -> tuple[int, int]:
    half_width = math.sqrt(0.5 * n * math.log(1.0 / missed))
    return max(0, math.floor(n * p - half_width)), min(n, math.ceil(n * p + half_width))


@pytest.mark.parametrize(
    "n,p", [(1, 0.5), (10, 0.1), (200, 0.03), (500, 0.6), (400, 1.0), (30, 0.0)]
)
@pytest.mark.parametrize("missed", [1e-3, 1e-12, 1e-60])
def test_windows_hold_the_mass(n: int, p: float, missed: float) -> None:
    """And they are narrower than Hoeffding's."""
    low, high = chernoff_window(n, p, missed)
    exact = Fraction(p)
    mass = [math.comb(n, x) * exact**x * (1 - exact) ** (n - x) for x in range(n + 1)]
    assert sum(mass[:low]) <= Fraction(missed) and sum(mass[high + 1 :]) <= Fraction(missed)
    loose = hoeffding_window(n, p, missed)
    assert high - low <= loose[1] - loose[0] + 1


@pytest.mark.parametrize("rate", [1.0, 0.05])
def test_cells_compiled_and_plain_agree_with_enumeration(rate: float) -> None:
    coins = np.array([1, 2, 3, 7, 40], np.int64)
    bias = np.array([0.7, 0.7, 0.6, 0.7, 0.5])
    weight = np.array([0.1, 0.2, 0.3, 0.25, 0.15])
    step = 0.01
    edges = np.expm1(step * np.arange(400)) / (2 * rate)
    edges[0] = -1.0
    for kernel in (coin_kernels.coin_cells, plain(coin_kernels.coin_cells)):
        cells = np.zeros((4, 399))
        centre, top_x, top_y, infinite, *_ = kernel(
            coins, bias, 1 - bias, weight, 1e9, edges, 0.7, 1 - 0.7, cells
        )
        x, y = cells[0] + cells[2], cells[1] + cells[3]
        expected_x, expected_y, expected_centre = np.zeros(399), np.zeros(399), 0.0
        expected_top = 0.0
        for m, theta, w in zip(coins, bias, weight, strict=True):
            for heads in range(int(m) + 1):
                t = (2 * heads - m) / m
                mass = w * math.comb(int(m), heads) / 2.0 ** int(m)
                if t == 0:
                    expected_centre += mass
                elif t == 1 and theta == 0.7:
                    expected_top += mass
                elif t > 0:
                    loss = math.log1p(2 * rate * theta * t / (1 - theta * t))
                    expected_x[int(loss / step)] += mass * theta * t
                    expected_y[int(loss / step)] += mass * (1 - theta * t)
        assert infinite == 0.0 and centre == pytest.approx(expected_centre, rel=1e-14)
        assert top_x == pytest.approx(expected_top * 0.7, rel=1e-14)
        assert top_y == pytest.approx(expected_top * 0.3, rel=1e-14)
        np.testing.assert_allclose(x, expected_x, rtol=1e-13)
        np.testing.assert_allclose(y, expected_y, rtol=1e-13)


@pytest.mark.parametrize("cells_per_unit", [5, 100])
def test_sums_of_many_components_keep_their_bits(cells_per_unit: int) -> None:
    """Against exact sums of the atoms that the recurrence gives, component by component."""
    generator = np.random.default_rng(1)
    coins = generator.integers(300, 400, 700)
    bias = generator.uniform(0.3, 0.5, 700)
    weight = generator.exponential(1e-3, 700)
    edges = np.expm1(np.arange(1.1 * cells_per_unit) / cells_per_unit) / 2
    edges[0] = -1.0

    def run(chosen: slice) -> tuple[np.ndarray, int]:
        cells = np.zeros((4, edges.size - 1))
        parts = coins[chosen], bias[chosen], 1 - bias[chosen], weight[chosen]
        *_, block = coin_kernels.coin_cells(*parts, 8.0, edges, 1.0, 0.0, cells)
        return cells, block

    cells, block = run(slice(None))
    alone = [run(slice(j, j + 1))[0] for j in range(700)]
    runs = np.count_nonzero([one[0] for one in alone], axis=0).max()
    assert block < runs
    most = _most_in_a_cell(Components(coins, bias, 1 - bias, weight, 0.0, 0.0), edges, 4.0)
    for k in range(2):
        for i in range(edges.size - 1):
            exact = math.fsum(one[k, i] for one in alone)
            error = abs(cells[k, i] + cells[k + 2, i] - exact)
            assert error <= 2.0**-53 * (block + 4.0) * exact
    for m, theta in zip(coins.tolist(), bias.tolist(), strict=True):
        heads = np.arange(m // 2 + 1, m + 1)
        t = (2 * heads - m) / m
        held = np.histogram(theta * t / (1 - theta * t), np.append(0.0, edges[1:]))[0]
        assert np.all(held <= most)


# -- where exponentials underflow ------------------------------------------------------------------


def hidden_response(eps0: float, n: int, users: int, dropout: float, growth: float) -> mpf:
    """H_s of binary randomized response, a hidden cohort of n whose other members all hold the target's first value."""
    odds, rate, present = exp(mpf(eps0)), mpf(n) / users, 1 - mpf(dropout)
    first, second = odds / (1 + odds), 1 / (1 + odds)  # masses of W = R_1
    ahead = [1 / odds - 1 - growth, odds - 1 - growth]
    total = mpf(0)
    for come in range(n + 1) if dropout else (n,):
        chance = binomial(n, come) * present**come * (1 - present) ** (n - come)
        for rare in range(come + 1):
            mean = (come - rare) * ahead[0] + rare * ahead[1] - (n - come) * mpf(growth)
            part = rate * mean / n - (1 - rate) * mpf(growth)
            if part > 0:
                total += (
                    chance * binomial(come, rare) * first ** (come - rare) * second**rare * part
                )
    return total


@pytest.mark.parametrize(
    "eps0,n,users,dropout",
    [(0.7477887791966863, 66, 1292, 0.9), (0.6792386509241835, 552, 299911, 0.0), (3.0, 2, 10**9, 0.99)],
)  # fmt: skip
def test_profiles_where_exponentials_underflow(
    eps0: float, n: int, users: int, dropout: float
) -> None:
    """An exponential below all doubles times a large sum: both ends hold there, up to the largest loss."""
    cohort = Cohort(n / users, 1.0 - dropout, dropout)
    growth = (
        cohort.rate * np.expm1(eps0) * np.array([0.5, 0.93, 0.9449, 0.96, 0.99, 0.999, 0.99999])
    )
    truth = [hidden_response(eps0, n, users, dropout, g) for g in growth]
    assert 0.0 < truth[-1] < 1e-19
    upper = any_ldp_profile(eps0, n, growth, cohort=cohort)
    high = 1.0 / (1.0 + math.exp(-eps0))
    others = np.array([high, 1.0 - high])
    laws = cohort.with_absence(np.array([others[::-1], others, others]))
    for k in range(2):
        laws[k] = cohort.rate * laws[k] + (1.0 - cohort.rate) * laws[2]
    attack = slot_profile(*laws, n, growth, mass_error=1e-14, law=True)
    for j, exact in enumerate(truth):
        assert upper[j] >= exact * (1 - mpf(2) ** -40)
        assert attack.lower[j] <= exact <= attack.upper[j]


@pytest.mark.parametrize(
    "sampled",
    [
        lambda batch: Subsampled(batch, population=10**6, dropout=0.5),
        lambda batch: PoissonSampled(batch, rate=0.01),
    ],
)
def test_masses_next_to_nothing(sampled) -> None:  # type: ignore[no-untyped-def]
    """Ratios whose squares overflow: a division by zero once."""
    batch = ShuffledRandomizer(20785, tv=0.8, eps0=300)
    bounds = Accountant().compose(sampled(batch)).delta_bounds(1.0)
    assert 0.9 * bounds.upper < bounds.lower <= bounds.upper < 0.01
