"""Finite laws of Laplace and Gaussian noise for attacks and for the swap theorem, against the real laws.

The types are compared with the truth through potentials F(t) = E(L - t)_+, L = D/W^u under W^u, for many s, t
and u. The truth is a law of thousands of merged cells: a lower bound of F, so that "upper >= truth" is sharp.
"""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy.stats import laplace, norm

from pld_shuffle.randomizers import noise_laws as noise

LAPLACE = (0.3, 1.0, 3.0, 6.0)
GAUSSIAN = (0.7, 1.5)
GROWTHS = (0.7, 1.0, 1.1)
SLIVERS = 2000


def potential(rows, expm1_eps, level, moved):
    """E(L - level)_+ with W^u = (W - u V)/(1 - u), what is missing to 1 being L = 0."""
    first, second, shared, other = rows
    law = (other - moved * shared) / (1 - moved)
    assert np.all(law >= -1e-13 * other)
    rest = max(0.0, 1 - law.sum())
    return np.maximum(first - expm1_eps * second - level * law, 0).sum() + max(0.0, -level) * rest


def truth(noise_law, first, second, other, shared):
    """Merged cells of the four real laws."""
    kind, scale = noise_law
    law = norm(scale=scale) if kind == "gaussian" else laplace(scale=1 / scale)
    reach = 9 * scale if kind == "gaussian" else 0
    ends = np.concatenate(([-np.inf], np.union1d(np.linspace(-reach, 1 + reach, SLIVERS), [0.5]), [np.inf]))

    # Accurate in both tails: differences of the smaller of the two sides.
    def masses(x):
        return np.where(ends[1:] <= x, np.diff(law.cdf(ends - x)), -np.diff(law.cdf(x - ends)))

    least = np.where(ends[1:] <= 0.5, masses(1.0), masses(0.0))
    laws = {"first": masses(first), "second": masses(second), "blanket": least / least.sum()}
    return np.array([masses(first), masses(second), laws[shared], masses(other)])


def assert_below(real, bound, *, moves, note):
    """The real law's potential is at most `bound` of the same arguments, everywhere."""
    levels = np.concatenate([np.linspace(-6, 6, 13), [-40, -15, 0.25, 15, 40]])
    for expm1_eps, level, moved in itertools.product(GROWTHS, levels, moves):
        least = potential(real, expm1_eps, level, moved)
        most = bound(expm1_eps, level, moved)
        assert least <= most * (1 + 1e-9) + 1e-12, (note, expm1_eps, level, moved, least / most)


def largest(types):
    return lambda *at: max(potential(rows, *at) for rows in types)


def mixture(weights, bounds):
    return lambda *at: sum(weight * bound(*at) for weight, bound in zip(weights, bounds, strict=True))


# ---------------------------------------------------------------- attacks


@pytest.mark.parametrize("eps0", LAPLACE)
def test_laplace_attack_masses_are_integrals(eps0):
    inputs = {"first": 0.1, "second": 0.9, "others": 0.35}
    rows = noise.laplace_attack(eps0, **inputs, cells=8)
    ends = np.union1d(np.linspace(0, 1, 9), list(inputs.values()))
    for row, x in zip(rows, inputs.values(), strict=True):
        tail = mpmath.exp(-eps0 * mpmath.mpf(x)) / 2
        assert row[0] == pytest.approx(float(tail), rel=1e-13)
        for i, (low, high) in enumerate(itertools.pairwise(ends)):
            exact = mpmath.quad(lambda y, x=x: eps0 / 2 * mpmath.exp(-eps0 * abs(y - x)), [low, high])
            assert row[i + 1] == pytest.approx(float(exact), rel=1e-13)
        assert row.sum() == pytest.approx(1, rel=1e-13)


@pytest.mark.parametrize("sigma", GAUSSIAN)
@pytest.mark.parametrize("missed", [1e-10, 1e-100])
def test_gaussian_attack_masses_are_integrals(sigma, missed):
    inputs = (0.0, 1.0, 0.4)
    rows = noise.gaussian_attack(
        sigma, first=inputs[0], second=inputs[1], others=inputs[2], truncated_mass=missed, cells=16
    )
    low, high = noise._ends(sigma, list(inputs[:2]), missed)
    ends = noise._quantiles(sigma, low, high, 16)
    for row, x in zip(rows, inputs, strict=True):
        assert row.sum() == pytest.approx(1, rel=1e-13)
        for i, (start, end) in enumerate(itertools.pairwise(ends)):
            exact = mpmath.quad(lambda y, x=x: mpmath.npdf(y, x, sigma), [start, end])
            assert row[i + 1] == pytest.approx(float(exact), rel=1e-12)
        assert row[-1] == pytest.approx(float(mpmath.ncdf((x - high) / sigma)), rel=1e-12)


# ---------------------------------------------------------------- the steps of the cover, in wide cells


def shares(eps0, low, high, x):
    """Coefficients of R_low and R_high in R_x, outside of the cell."""
    return [math.sinh(eps0 * reach) / math.sinh(eps0 * (high - low)) for reach in (high - x, x - low)]


@pytest.mark.parametrize("eps0", LAPLACE)
def test_two_values_cover_the_others_between_them(eps0):
    """The law for w is below the mixture of the two types, the weights being those of R_w."""
    low, high = 0.2, 0.6
    types = [noise._laplace_type(eps0, 0.0, 1.0, w, high - low, 400) for w in (low, high)]
    for w in (0.25, 0.4, 0.55):
        weights = np.array(shares(eps0, low, high, w))
        bound = mixture(weights / weights.sum(), [largest([rows]) for rows in types])
        real = truth(("laplace", eps0), 0.0, 1.0, w, "first")
        assert_below(real, bound, moves=(0.0, 0.3 * math.exp(-eps0)), note=w)


@pytest.mark.parametrize("eps0", LAPLACE)
def test_bumps_cover_the_targets_of_a_cell(eps0):
    """The law for x is below the mixture that its decomposition into two values and a bump says."""
    low, high = 0.3, 0.5
    bumps = noise._bumps(eps0, low, high, 400)
    most = 1 - 1 / math.cosh(eps0 * (high - low) / 2)
    for x in (0.33, 0.4, 0.48):
        weights = np.array(shares(eps0, low, high, x))
        part = (1 - weights.sum()) / most
        weights /= weights.sum()
        for k in (0, 1):
            target = (x, 1.0) if k == 0 else (1.0, x)
            plain, bumped = [], []
            for i, end in enumerate((low, high)):
                pair = (end, 1.0) if k == 0 else (1.0, end)
                rows = noise._laplace_rows(eps0, (*pair, 0.0), 400)
                plain.append(largest([rows[[0, 1, 0, 2]]]))
                bumped.append(largest([bumps[4 * i + k], bumps[4 * i + 2 + k]]))
            bound = mixture(np.concatenate([part * weights, (1 - part) * weights]), bumped + plain)
            real = truth(("laplace", eps0), *target, 0.0, "first")
            assert_below(real, bound, moves=(0.0, 0.3 * math.exp(-eps0)), note=target)


@pytest.mark.parametrize("eps0", LAPLACE)
def test_a_bump_has_at_most_the_stated_mass_and_density(eps0):
    low, high = 0.3, 0.5
    width = high - low
    mass = noise._bump_mass(eps0 * width)
    y = np.linspace(low, high, 2001)
    highest = 0.0
    for x in np.linspace(low, high, 401)[1:-1:57]:
        left, right = shares(eps0, low, high, x)
        assert 1 - left - right <= mass * (1 + 1e-12)
        bell = [0.5 * eps0 * np.exp(-eps0 * np.abs(y - z)) for z in (x, low, high)]
        bump = (bell[0] - left * bell[1] - right * bell[2]) / (1 - left - right)
        assert bump.min() > -1e-9
        highest = max(highest, float(bump.max()))
        assert bump.max() <= eps0 / math.tanh(eps0 * width / 2) * (1 + 1e-9)
    # What the types say: the least density of R_0 in the cell over the largest one of the bump.
    for rows in noise._bumps(eps0, low, high, 8)[::2]:
        stated = rows[3, -1] / rows[0, -1]
        assert 0.99 < stated / (0.5 * eps0 * math.exp(-eps0 * high) / highest) <= 1 + 1e-9
        assert np.all(rows[2, -1] >= mass / stated * rows[3, -1] * (1 - 1e-12))
        assert (rows[2, 0] - rows[0, 0]) / rows[3, 0] >= mass / stated * (1 - 1e-12)
    assert 1 - 1 / math.cosh(eps0 * width / 2) == pytest.approx(mass, rel=1e-12)


def test_contraction_covers_target_values_of_a_cell():
    low, high, eps0 = 0.3, 0.5, 2.0
    lower = noise._below(low, high)
    ratio = (1 - high) / (1 - low)  # of the contraction towards 1 that takes low to high
    assert 1 - ratio * (1 - low) == pytest.approx(high)
    assert 1 - ratio * (1 + lower) == pytest.approx(0, abs=1e-15)
    types = [noise._laplace_type(eps0, low, 1.0, w, lower, 400) for w in (0.0, -lower)]
    for x in (0.3, 0.4, 0.5):
        real = truth(("laplace", eps0), x, 1.0, 0.0, "first")
        assert_below(real, largest(types), moves=(0.0, 0.05), note=x)


@pytest.mark.parametrize("sigma, low, high", [(1.0, 0.2, 0.6), (0.7, 0.0, 0.1), (2.0, 0.5, 1.0)])
def test_two_normal_laws_cover_those_between_them(sigma, low, high):
    """Others, and either value of the target, between two: the mixture of the two types, weights linear in x."""
    gamma = math.erfc(1 / (2 * math.sqrt(2) * sigma))
    cells, cuts = noise._Cells, [(low, high)]

    def types(make):
        shared = np.array([[1], [1], [gamma], [1]])
        return [largest([make(end)[[0, 1, 2, 2]] / shared]) for end in (low, high)]

    more = np.array([[noise._mean_ratio((high - low) / sigma)], [1], [1]])
    for part in (0.0, 0.1, 0.5, 0.8):
        x = low + part * (high - low)
        cases = [
            ((0.0, 1.0, x), lambda v: cells.of(sigma, 0.0, 1.0, v, 1e-12, 200).scaled(2, cuts)),
            ((1.0, 0.0, x), lambda v: cells.of(sigma, 1.0, 0.0, v, 1e-12, 200).scaled(2, cuts)),
            ((x, 1.0, 0.0), lambda v: cells.of(sigma, v, 1.0, 0.0, 1e-12, 200).rows * more),
            ((1.0, x, 0.0), lambda v: cells.of(sigma, 1.0, v, 0.0, 1e-12, 200).scaled(1, cuts)),
        ]
        for inputs, make in cases:
            real = truth(("gaussian", sigma), *inputs, "blanket")
            bound = mixture((1 - part, part), types(make))
            assert_below(real, bound, moves=(0.0, 0.1), note=inputs)


def test_what_a_normal_law_keeps_of_a_mixture():
    height = np.linspace(0.0, 5.0, 301)
    share = np.linspace(0.0, 1.0, 2001)[:, None]
    least = np.min(np.exp(share * height) / (1 - share + share * np.exp(height)), axis=0)
    found = noise._share_of_two(height)
    assert np.all(found <= least) and np.all(found >= least * (1 - 1e-5))
    assert noise._share_of_two(np.array([math.inf]))[0] < 1e-200


def test_the_blanket_hosts_every_target():
    """Next to a user who reports from V, (0, 1) is the worst target, in either order by symmetry."""
    sigma = 1.0
    uncovered_user = noise.gaussian_uncovered_user(sigma, truncated_mass=1e-12)
    np.testing.assert_allclose(uncovered_user[3].sum(), 1, rtol=1e-9)
    for first, second in ((0.0, 1.0), (1.0, 0.0), (0.3, 0.9), (0.5, 0.0), (0.2, 0.25)):
        real = truth(("gaussian", sigma), first, second, 0.0, "blanket")
        real[3] = real[2]
        assert_below(real, largest([uncovered_user]), moves=(0.0,), note=(first, second))


def test_binary_response_covers_near_targets():
    """Laplace laws at distance `gap`, and any other user's, from the proof's two inequalities."""
    eps0, gap = 2.0, 0.3
    first, second, _, other = noise._near_pairs(eps0, gap)
    odds = math.exp(eps0 * gap)
    np.testing.assert_allclose(other, math.exp(-eps0) / 2, rtol=1e-14)
    y = np.linspace(-1, 2, 3001)
    bells = [np.exp(-eps0 * np.abs(y - x)) for x in (0.0, 0.3)]
    parts = [(odds * bells[i] - bells[1 - i]) / (odds - 1) for i in (0, 1)]
    assert min(part.min() for part in parts) >= -1e-15
    for row, bell in zip((first, second), bells, strict=True):
        np.testing.assert_allclose(row @ parts, bell, rtol=1e-12)
    for w in (0.0, 0.3, 1.0):
        assert np.all(other @ parts <= np.exp(-eps0 * np.abs(y - w)) * (1 + 1e-12))
    assert np.any(other @ parts > 0.75 * np.exp(-eps0 * np.abs(y - 1.0)))


# ---------------------------------------------------------------- the types


def test_gaussian_types_give_away_the_missed_reports_only():
    for rows in noise.gaussian_types(1.0, 10**4, truncated_mass=1e-8):
        bare = rows[:, rows[3] == 0]
        assert bare[0].sum() <= 2e-8 * (1 + 1e-2)
        assert 1 - 1e-11 <= rows[0].sum() <= 1.02 and 0.98 <= rows[1].sum() <= 1 + 1e-11
        assert rows[3].sum() <= 1
        np.testing.assert_allclose(rows[2] * math.erfc(1 / math.sqrt(8)), rows[3], rtol=1e-13)
    # Targets at 0, between, and at 1, in two cells: each gets e^(gap^2/8) more, of the wider one next to it.
    more = [rows[0].sum() for rows in noise.gaussian_types(1.0, 10**4, allowance=1e9)[4::2]]
    gaps = np.sqrt(8 * np.log(more))
    np.testing.assert_allclose([gaps[0] + gaps[2], gaps[1]], [1, max(gaps)], rtol=1e-9)


@pytest.mark.parametrize("allowance", [0.004, 0.1])
def test_gaussian_types_are_few(allowance):
    for sigma, n in ((8.0, 10**4), (2.0, 10**6), (1.0, 10**4)):
        assert len(noise.gaussian_types(sigma, n, allowance=allowance)) <= 100
