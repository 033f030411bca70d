"""`blanket`: the exact profile of the blanket adversary, against enumeration and direct sums."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import oracles
import pytest
import reference as r
from scipy.stats import multinomial

from pld_shuffle import Side
from pld_shuffle.pairs import contour_kernels, slots
from pld_shuffle.pairs.slots import SlotLaw
from pld_shuffle.randomizers.noise_laws import gaussian_groups, laplace_groups

ROUNDING = 1e-14  # of the conversion of a reference to double


def profile(first, second, blanket, n, expm1_eps, *, rtol=1e-6, mass_error=0.0):
    """Of a slot law, by the list of its views where they are few, else by the contour."""
    masses, points = np.array([first, second, blanket], float), np.atleast_1d(expm1_eps).astype(float)
    return SlotLaw.of(n, masses, mass_error, whole=False).profile(points, rtol)


def rr(k: int, eps0: float) -> list[np.ndarray]:
    """The groups of k-ary randomised response: the two values and all others."""
    low = 1.0 / (math.exp(eps0) + k - 1)
    high = math.exp(eps0) * low
    rest = [(k - 2) * low] * (k > 2)
    return [np.array(row) for row in ([high, low, *rest], [low, high, *rest], [low, low, *rest])]


def rational(rng, groups: int) -> list[Fraction]:
    """A random law with small denominators, so that it is exact in both arithmetics."""
    cuts = sorted(int(c) for c in rng.choice(63, groups - 1, replace=False) + 1)
    return [Fraction(b - a, 64) for a, b in itertools.pairwise([0, *cuts, 64])]


def instances(rng, count: int):
    """Random (first, second, blanket, n), some with reports outside of the blanket, some with gamma = 1."""
    for i in range(count):
        groups = int(rng.integers(2, 5))
        first, second = rational(rng, groups), rational(rng, groups)
        scale = [Fraction(1, 2), Fraction(1), Fraction(1, 8)][i % 3]
        cover = [scale * min(a, b) for a, b in zip(first, second, strict=True)]
        if i % 4 == 3:
            cover = rational(rng, groups)
            if i % 8 == 7:
                cover[1] += cover[0]
                cover[0] = Fraction(0)
        elif i % 5 == 4:
            cover[0] = Fraction(0)
        yield first, second, cover, int(rng.integers(1, 7))


def encloses(bounds, truth, index=()) -> bool:
    low, high = float(bounds.lower[index]), float(bounds.upper[index])
    value = float(truth)
    return low <= value * (1 + ROUNDING) and value * (1 - ROUNDING) <= high


def test_profile_is_the_divergence_of_the_enumerated_view():
    """Every view of small protocols, in rationals, b = 0 groups and gamma = 1 included; exact to 1e-11."""
    rng = np.random.default_rng(5)
    expm1_eps = [Fraction(0), Fraction(1, 8), Fraction(1), Fraction(3)]
    for first, second, cover, n in instances(rng, 40):
        masses = [np.array([float(v) for v in row]) for row in (first, second, cover)]
        bounds = profile(*masses, n, [float(g) for g in expm1_eps])
        atoms = oracles.blanket(first, second, cover, n)
        for i, g in enumerate(expm1_eps):
            truth = oracles.hockey_stick(atoms, 1 + g)
            assert encloses(bounds, truth, i), (first, second, cover, n, g)
            assert bounds.upper[i] - bounds.lower[i] <= 1e-11 * float(truth) + 1e-15


@pytest.mark.parametrize("chance", [1e-6, 1e-9, 1e-13])
def test_contour_encloses_rare_high_atoms(chance):
    """An atom far above the rest, which the exponential cannot see together with it, and its cut.

    400 users, too many to enumerate; the reference sums the counts of all atoms, at most 3 of the rare one.
    """
    n, value, mass = 400, np.array([-0.5, 0.25, 1e4]), np.array([0.5, 0.25, chance])
    counts = np.stack(np.meshgrid(np.arange(n + 1), np.arange(n + 1), np.arange(4)), axis=-1).reshape(-1, 3)
    counts = counts[counts.sum(axis=1) <= n]
    mean = np.maximum(counts @ value, 0.0) / n
    everybody = np.column_stack([counts, n - counts.sum(axis=1)])
    truth = float(mean @ multinomial.pmf(everybody, n, [*mass, 0.25 - chance]))
    rest = -math.fsum([-1.0, *mass])
    low, high, _ = contour_kernels.positive_part(float(n), value, 2.0**-52 * np.abs(value), mass, rest, 0.0, 0.0, 1e-6)
    assert low <= truth * (1 + 1e-10) and truth * (1 - 1e-10) <= high
    assert high - low < 2e-5 * truth


@pytest.mark.parametrize(
    ("k", "eps0", "n"), [(2, 1.0, 400), (4, 2.0, 400), (10, 4.0, 400), (4, 7.0, 300), (4, 10.0, 2000)]
)
def test_medium_sums_against_direct_summation(k, eps0, n):
    """k-RR against the atoms of the weak adversary's pair; the bracket is as narrow as asked, or nearly exact.

    At a large eps0 few messages are of the blanket: almost all X are 0, and counts are enumerated.
    """
    masses, listed = rr(k, eps0), eps0 > 5.0
    scale = eps0 if listed else math.sqrt(math.expm1(law(masses, n).scale ** 2))
    eps = scale * np.array([0.01, 0.2, 0.6, 0.9] if listed else [0.37, 1.1, 2.3, 3.9])
    pair = r.atoms(r.weak(n, k, float(masses[2].sum())))
    truths = [r.hockey_stick(pair, e) for e in eps]
    for rtol in (1e-8,) if listed else (1e-4, 1e-6, 1e-8):
        bounds = profile(*masses, n, np.expm1(eps), rtol=rtol)
        for low, high, truth in zip(bounds.lower, bounds.upper, truths, strict=True):
            noise = 1e-10 * truth + 1e-15 * (not listed)
            assert low <= truth + noise and truth - noise <= high
            assert high - low <= 3.0 * (1e-9 if listed else rtol) * truth


@pytest.mark.parametrize(("groups", "gamma", "error"), [
    (lambda side: laplace_groups(2.0, side=side), math.exp(-1.0), 1e-14),
    (lambda side: gaussian_groups(1.0, side=side), math.erfc(0.5 / math.sqrt(2.0)), 1e-12),
])  # fmt: skip
def test_sides_of_continuous_laws_keep_the_masses_and_are_close(groups, gamma, error):
    """Both sides sum to 1, 1 and gamma; at n = 1000 they enclose a narrow bracket in the right order."""
    for side in Side:
        first, second, cover = groups(side)
        assert first.sum() == pytest.approx(1.0, rel=1e-12)
        assert second.sum() == pytest.approx(1.0, rel=1e-12)
        assert cover.sum() == pytest.approx(gamma, rel=1e-12)
    eps = np.array([0.5, 1.5, 3.0]) * law(groups(Side.LOWER), 1000).scale
    low, high = (profile(*groups(side), 1000, np.expm1(eps), mass_error=error) for side in Side)
    assert np.all(low.lower < high.upper)
    assert np.all(high.upper < low.lower * (1 + 5e-4))


def test_mass_error_covers_perturbed_masses():
    """Moving every mass within mass_error stays inside the bracket, which is no wider than it must be."""
    rng = np.random.default_rng(3)
    masses = rr(4, 2.0)
    expm1_eps = np.expm1(np.array([0.5, 2.0]) * law(masses, 3000).scale)
    wide = profile(*masses, 3000, expm1_eps, mass_error=1e-6)
    plain = profile(*masses, 3000, expm1_eps)
    assert np.all(wide.lower < plain.lower) and np.all(plain.upper < wide.upper)
    assert np.all(wide.upper < plain.upper * 1.05)
    for _ in range(10):
        moved = [row * (1 - 1e-6 * rng.choice([0, 1], row.size)) for row in masses]
        bounds = profile(*moved, 3000, expm1_eps)
        assert np.all(wide.lower <= bounds.upper) and np.all(bounds.lower <= wide.upper)


def test_nothing_to_see():
    """Equal laws, losses beyond the largest, and reports nobody else can show."""
    same = profile([0.5, 0.5], [0.5, 0.5], [0.25, 0.25], 1000, [0.0, 1.0])
    assert np.all(same.lower == 0.0) and np.all(same.upper == 0.0)
    masses = rr(4, 2.0)
    beyond = profile(*masses, 1000, [math.exp(2.0) * 1.001, 100.0])
    assert np.all(beyond.upper == 0.0)
    at_most = profile(*masses, 10**6, [math.expm1(2.0)])
    assert at_most.upper[0] < 1e-12
    bare = profile([0.75, 0.25], [0.25, 0.75], [0.0, 0.0], 1000, [0.0, 1.0, 2.0])
    assert bare.lower == pytest.approx([0.5, 0.25, 0.0], abs=1e-15)
    assert np.all(bare.lower <= [0.5, 0.25, 0.0]) and np.all(bare.upper >= [0.5, 0.25, 0.0])
    assert profile(*masses, 1, 0.0).upper[0] == pytest.approx(masses[0][0] - masses[1][0])


def law(masses, n: int) -> SlotLaw:
    return SlotLaw.of(n, np.array(masses), 0.0, whole=False)


def test_scales_of_the_loss():
    """The largest loss is log max f/s, infinite where s = 0 < f; the scale follows 1/sqrt(n)."""
    masses = rr(4, 2.0)
    assert law(masses, 7).max_loss.upper == pytest.approx(2.0, rel=1e-14)
    assert law([[0.5, 0.5], [0.0, 1.0], [0.0, 0.5]], 7).max_loss.upper == math.inf
    chi_square = [math.expm1(law(masses, n).scale ** 2) for n in (10**4, 10**6)]
    assert chi_square[1] == pytest.approx(chi_square[0] / 100.0)
    assert law([[1.0], [1.0], [0.5]], 7).scale == 0.0


@pytest.mark.parametrize("eps0", [20.0, 25.0, 40.0])
@pytest.mark.parametrize("nearness", [1e-3, 1e-6, 1e-9])
def test_next_to_the_largest_loss(eps0: float, nearness: float) -> None:
    """Binary randomised response, ten users, just below its eps0: the exact rational sum is enclosed."""
    heavy, light = 1.0 / (1.0 + math.exp(-eps0)), math.exp(-eps0) / (1.0 + math.exp(-eps0))
    expm1_eps = math.expm1(eps0) * (1.0 - nearness)
    n, e = 10, Fraction(expm1_eps) + 1
    p, q = Fraction(heavy), Fraction(light)
    truth = oracles.mean_part([(p - e * q) / q, (q - e * p) / q], [q, q], n)
    bounds = profile([heavy, light], [light, heavy], [light, light], n, expm1_eps)
    assert Fraction(float(bounds.lower[0])) <= truth <= Fraction(float(bounds.upper[0]))
    assert bounds.upper[0] <= 1.02 * bounds.lower[0]


@pytest.mark.parametrize("n", [3, 19, 20, 400, 20_000])
def test_masses_of_views_are_those_of_rationals(n):
    """n! prod W_j^c_j/c_j!, near the mean, at its ends and five deviations away."""
    others = np.array([0.0078125, 0.25, 0.7421875])  # doubles, which sum to 1
    far = round(2.5 * math.sqrt(n))
    near = [n // 128, n // 4, n - n // 128 - n // 4]
    counts = np.array([near, [0, near[1] + min(far, near[2]), near[2] + near[0] - min(far, near[2])], [0, 0, n]]).T
    for view in counts.T:
        [mass], error = slots._multinomial(n, others, view[:, None])
        ways = Fraction(math.factorial(n), math.prod(map(math.factorial, view.tolist())))
        exact = ways * math.prod(Fraction(w) ** c for w, c in zip(others.tolist(), view.tolist(), strict=True))
        if exact > Fraction(1, 10**300):
            assert abs(Fraction(float(mass)) / exact - 1) <= error <= 1e-11
