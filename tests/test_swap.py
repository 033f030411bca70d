"""The swap theorem's and the hidden cohort's bounds (`pld_shuffle.pairs.swap`), docs/swap.md.

Honesty: never below protocols that are enumerated, the theorem's right side, exact attacks, and the integrals
that the quadrature replaces. Tightness: near the attacks, and the values of the theory's tables.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import oracles as o
import pytest
from scipy.optimize import brentq
from scipy.stats import binom, multinomial
from test_truths import composed, one_order, rr

from pld_shuffle import ShuffledLDP
from pld_shuffle.mechanisms.shuffled import attack_law
from pld_shuffle.numerics.sides import Bounds
from pld_shuffle.pairs import jumps, slots, swap
from pld_shuffle.pairs import swap_kernels as kernels
from pld_shuffle.pairs.pair import ALL_USERS, Cohort
from pld_shuffle.pairs.profile import largest
from pld_shuffle.randomizers import Laplace
from pld_shuffle.randomizers.noise_laws import laplace_types


def known_profile(first, second, shared, others, n, expm1_eps, **options):
    """`typed_profile` of a target's laws next to users of known ones; shared : which of these is V."""
    return swap.typed_profile([np.array([first, second, shared, other]) for other in others], n, expm1_eps, **options)


CORNERS = {
    "A": lambda p: (p, 1), "B": lambda p: (1, p), "C": lambda p: (1 / p, 1), "D": lambda p: (1, 1 / p),
    "E": lambda p: (p, p), "F": lambda p: (1 / p, 1 / p),
}  # fmt: skip
#: The hexagon's types: corners (R_0, R_1)/W, and those of weight p instead of 1 under W.
TYPES = {"S1": "AC", "S2": "BD", "T1": "ABF", "T2": "EF", "T3": "ECD"}
HEAVY = "CDF"


@cache
def sums_of(kind, count, eps0, presence=1.0, u=0.0):
    """All sums of (R_0, R_1)/W^u over so many users of a type, and their masses; who is absent has ratios of 1."""
    p = math.exp(eps0)
    mass = np.array([p if name in HEAVY else 1.0 for name in TYPES[kind]])
    ratios = np.array([CORNERS[name](p) for name in TYPES[kind]])
    if presence < 1.0:
        mass = np.append(presence * mass, (1.0 - presence) * mass.sum())
        ratios = np.append(ratios, [[1.0, 1.0]], axis=0)
    moved = (1.0 - u * ratios[:, 0]) / (1.0 - u)
    counts = np.indices((count + 1,) * (len(mass) - 1)).reshape(len(mass) - 1, -1).T
    counts = counts[counts.sum(axis=1) <= count]
    counts = np.column_stack([counts, count - counts.sum(axis=1)])
    return counts @ (ratios / moved[:, np.newaxis]), multinomial.pmf(counts, count, mass * moved / mass.sum())


def exact(eps0, counts, users, expm1_eps, *, presence=1.0, u=0.0):
    """E((1/N) sum L_i + (1-q)(1-s))_+ for so many users of each type, a cohort of these N."""
    total, mass = np.zeros((1, 2)), np.ones(1)
    for kind, count in counts.items():
        sums, chances = sums_of(kind, count, eps0, presence, u)
        total, mass = (total[:, np.newaxis] + sums).reshape(-1, 2), np.outer(mass, chances).ravel()
    mean = (total[:, 0] - (1.0 + expm1_eps) * total[:, 1]) / users
    return float(mass @ np.maximum(0.0, mean - (1.0 - sum(counts.values()) / users) * expm1_eps))


def right_side(p, n, s, counts, points=10):
    """Theorem S's right side for a multiset of the hexagon's five types, by sums and Gauss-Legendre in u."""
    held = {kind: count for kind, count in zip(TYPES, counts, strict=True) if count}
    answer = (1 - 1 / p) ** n * (p - s) / (p + 1)
    for x, w in zip(*np.polynomial.legendre.leggauss(points), strict=True):
        u = (1 + x) / (2 * p)
        answer += w / (2 * p) * n * (1 - u) ** (n - 1) * exact(math.log(p), held, n, s - 1, u=u)
    return answer


@pytest.mark.parametrize(
    ("p", "n", "step", "tolerance"), [(1.25, 9, 1, (1.25, 1.5, 1.8)), (1.2, 48, 16, (1.03, 1.05, 1.12))]
)
def test_right_side_of_theorem_s_over_count_vectors(p, n, step, tolerance):
    vectors = [c for c in itertools.product(range(0, n + 1, step), repeat=3) if sum(c) == n]
    mixed = [(0, 0, 0, n, 0), (0, 0, 0, 0, n), (0, 3, 0, n - 3, 0), (1, 1, n - 4, 1, 1)]
    for z, room in zip((0.0, 1.0, 2.0), tolerance, strict=True):
        g = z * (p - 1.0) / math.sqrt(p * n)
        bound = float(swap.any_ldp_profile(math.log(p), n, g))
        truth = max(right_side(p, n, 1 + g, (*c, 0, 0)) for c in vectors)
        other = max(right_side(p, n, 1 + g, c) for c in mixed[: 4 if n < 20 else 1])
        assert max(truth, other) * (1 - 1e-12) <= bound <= room * truth


def moved_laws():
    """(n, masses, values) of laws as the kernels meet them: lattices, nearly so, and scattered values."""
    for n, eps0, expm1_eps in [(60, 0.3, 0.02), (1000, 0.5, 0.05), (1001, 1.0, 0.1), (10_000, 2.0, 0.1),
                            (10_001, 0.7, 0.0), (10**6, 1.0, 1e-3), (3000, 3.0, 0.4)]:  # fmt: skip
        weight, _, base, slope, _ = swap._extreme_types(eps0, ALL_USERS)
        for k in range(3):
            yield n, weight[k : k + 1], base[k : k + 1] - expm1_eps * slope[k : k + 1]
    rng = np.random.default_rng(7)
    for n in (500, 20_000):
        weight = rng.dirichlet(np.ones(6))
        value = rng.normal(size=6)
        yield n, weight[None, :], (value - np.dot(weight, value) - 0.5 / math.sqrt(n))[None, :]
    for n, size in ((1000, 20), (20_001, 60)):  # many atoms: by a series
        weight = rng.dirichlet(np.ones(size))
        value = rng.normal(size=size) ** 3
        yield n, weight[None, :], (value - np.dot(weight, value) - 1.0 / math.sqrt(n))[None, :]
    for n, size in ((1000, 150), (20_001, 400)):  # no heavy one, heavy tails: Gaussian noise of sigma = 1
        normal = np.linspace(-5.0, 5.0, size)
        weight = np.exp(-0.5 * normal**2)
        weight /= weight.sum()
        value = 1.0 - np.exp(normal - 0.5)
        yield n, weight[None, :], (value - np.dot(weight, value) - 2.0 / math.sqrt(n))[None, :]


def certified_integral(n, mass, value, lobes_too):
    """(the bound of the half-line integral, the contour, the nodes' level, its far end) for one law."""
    place = kernels.saddle(float(n), 0, mass, value, 1.0 / math.sqrt(n * np.sum(mass * value**2)))
    period = 2 * math.pi / np.max(np.abs(value[mass > 0] - value[0, np.argmax(mass)]))
    light = bool(np.max(mass) < kernels.HEAVY)
    path = kernels.contour(float(n), place, 0, period, light, lobes_too, mass, value)
    start, points = path.nodes[0, 0], path.points
    home = math.log1p(kernels.rise(start, 0, mass, value))
    power = kernels.Power(float(n), n % 2 == 1, False, 1.0, 0.0, n * home, light)
    terms = np.empty((2, kernels.MANY + 1))
    order, longest = 0, 0.0
    if mass.size > kernels.MANY:
        bend = abs(points[0] - start)
        radius = bend + path.end / path.sigma
        order, longest = kernels.series(float(n), start, bend, radius, 0, mass, value, *terms)
    total = kernels.modulus_sum(power, path, order, longest, 0, mass, value, 0.0, 0.0, home, *terms)
    real = np.array([[math.log1p(kernels.rise(x, 0, mass, value)) for x in points]])
    laws = kernels.Laws(mass, None, None, None, 0.0, mass, value, real)
    rest = kernels.remainder(power, path, 0, 0, home, 1e-6 * total, laws)
    return (total + rest) * math.exp((path.end / path.window) ** kernels.POWER), path, n * home, points[0] * path.sigma


def modulus(t, n, mass, value, path, level, far):
    """The integrand at real t, as defined, in plain numpy."""
    x = far + path.bend / (1 + (t / path.width) ** 2)
    lean = -2 * path.bend * t / path.width**2 / (1 + (t / path.width) ** 2) ** 2
    z = (x + 1j * t) / path.sigma
    moment = np.exp(z[:, None] * value[0]) @ mass[0]
    with np.errstate(divide="ignore"):
        log = n * np.log(np.abs(moment)) - level + (x * x - t * t) * path.smoothing**2 / 2
    return np.exp(log) * np.sqrt(1 + lean**2) / (x * x + t * t)


@pytest.mark.parametrize("law", list(moved_laws()))
def test_quadrature_is_certified(law):
    n, mass, value = law
    bound, truth, _ = both_integrals(n, mass, value, False)
    # Of many scattered atoms only eight pairs keep the far part down.
    assert bound <= truth * (1.0001 + 8.0 / n + (0.08 if mass.size > 12 else 0.0))


@pytest.mark.parametrize("n", [10, 31, 60, 301])
@pytest.mark.parametrize("eps0", [0.5, 1.0, 2.5])
def test_quadrature_through_all_lobes(n, eps0):
    weight, _, base, slope, _ = swap._extreme_types(eps0, ALL_USERS)
    for deviations in (1.0, 4.0):
        expm1_eps = min(deviations * math.expm1(eps0) * math.exp(-eps0 / 2) / math.sqrt(n), 0.7 * math.expm1(eps0))
        for k in range(3):
            value = base[k : k + 1] - expm1_eps * slope[k : k + 1]
            bound, truth, path = both_integrals(n, weight[k : k + 1], value, True)
            if path.nodes.shape[1] < kernels.FAR_STEPS and path.smoothing < 0.5:
                assert bound <= truth * (1.0006 if n % 2 == 0 else 1.0006 + 8.0 / n)


def both_integrals(n, mass, value, lobes_too):
    """(bound, truth, contour) of the half-line integral of the modulus; the bound may not be below."""
    bound, path, level, far = certified_integral(n, mass, value, lobes_too)
    step = 0.004
    inner = np.arange(0.0, 30.0, step)
    parts = [(inner, step)] + [(np.arange(30.0 + 200 * k, 230.0 + 200 * k, 0.02), 0.02) for k in range(5)]
    truth = 0.0
    for t, h in parts:
        f = modulus(t + 0.5 * h, n, mass, value, path, level, far)
        truth += h * float(np.sum(f))
    assert truth <= bound * (1 + 1e-6)  # the sum for the truth is itself accurate to 1e-7 here
    return bound, truth, path


def test_interpolation_in_u():
    rng = np.random.default_rng(3)
    for _ in range(300):
        weight, excess = rng.dirichlet(np.ones(4)), rng.normal(size=4)
        excess -= np.dot(weight, excess)
        value = rng.normal(size=4)
        top = 0.8 / np.max(excess)
        before, after = np.sort(rng.uniform(0.0, top, 2))
        z = complex(rng.normal(), 3 * rng.normal())
        arrays = (weight[None, :], excess[None, :], value[None, :])
        bow = kernels.bowing(after - before, before, after, 0, *arrays, z.real, z.real)

        def moment(v, z=z, law=arrays):
            beta = 1 - v * law[1][0]
            return np.sum(law[0][0] * beta * np.exp(z * law[2][0] / beta))

        for share in (0.1, 0.5, 0.8):
            chord = (1 - share) * moment(before) + share * moment(after)
            gap = abs(moment((1 - share) * before + share * after) - chord)
            assert gap <= bow * abs(z) ** 2 * (1 + 1e-12) + 1e-15


def test_return_lobes():
    def total(nu, eta, end, count, *falls):
        """Of integrals around each return; falls : how much less they are, and how fast."""
        found = 0.0
        for m in range(1, count):
            t = m * math.pi / eta + np.linspace(-end, end, 4001)
            f = np.exp(-2 * nu * np.sin(t * eta) ** 2 - sum(fall(t) for fall in falls)) / t**2
            found += float(np.sum(0.5 * (f[1:] + f[:-1]))) * (t[1] - t[0])
        return found

    still = np.zeros((3, 2))
    for nu, eta, end in [(20.0, 0.05, 7.5), (200.0, 0.02, 8.0), (3.0, 0.1, 6.0)]:
        exact = total(nu, eta, end, 4000)
        bound = kernels.lobes(nu, eta, eta, end, 0.0, 0.0, 0.0, still, False)
        assert exact <= bound <= exact * (1.01 + 0.8 / nu)
        assert bound <= kernels.lobes(nu, eta, eta, end, 0.0, 0.0, 0.0, still, True) * (1 + 1e-12)
    drift = np.array([[0.0, 0.0], [0.003, 0.0031], [0.011, 0.0111]])
    drifts = [lambda t: 5 * np.sin(0.00305 * t) ** 2 + 3 * np.sin(0.01105 * t) ** 2, lambda t: 0.5 * (0.002 * t) ** 2]
    bound = kernels.lobes(50.0, 0.04, 0.04 * 0.999, 7.5, 0.002, 5.0, 3.0, drift, False)
    assert total(50.0, 0.04, 7.5, 300, *drifts) <= bound


def epsilon(profile, guess, delta=1e-6):
    def gap(eps):
        return math.log(float(profile(math.expm1(eps))) / delta)

    return brentq(gap, 0.8 * guess, 1.05 * guess, rtol=1e-9)


@pytest.mark.parametrize(("n", "eps0", "attack", "printed"), [
    (1000, 0.5, 0.056854, 0.056863),
    (1000, 1.0, 0.130566, 0.130628),
    (1000, 2.0, 0.371973, 0.372537),
    (10_000, 0.5, 0.016181, 0.016181),
    (10_000, 1.0, 0.037998, 0.038000),
    (10_000, 2.0, 0.107663, 0.107684),
    (10_000, 4.0, 0.406630, 0.407173),
    (10_000, 6.0, 1.468167, 1.480864),
    (100_000, 1.0, 0.010917, 0.010917),
    (10**6, math.log(2), 0.001848, 0.001848),
])  # fmt: skip
def test_table_of_one_round(n, eps0, attack, printed):
    found = epsilon(lambda g: swap.any_ldp_profile(eps0, n, g), printed)
    assert attack - 6e-7 <= found <= printed + 6e-7


def mixes(n):
    """Others who all hold one and the same value, and of few some that do not."""
    few = [{"S1": n // 2, "S2": n - n // 2}, {"S1": 4, "T1": n - 4}] if n < 100 else []
    return [{"S1": n}, {"S2": n}, {"T1": n}, *few]


def mean_over_coins(eps0, counts, users, expm1_eps, rate):
    """H_s of the mixture over who comes, all of them left out: Theorem C for every number, averaged over the subset."""
    others = sum(counts.values())
    assert others == users - 1
    found = 0.0
    for parts in itertools.product(*(range(count + 1) for count in counts.values())):
        n = sum(parts)
        ways = math.prod(math.comb(count, part) for count, part in zip(counts.values(), parts, strict=True))
        chance = math.comb(users, n) * rate**n * (1.0 - rate) ** (users - n)
        chance *= ways / math.comb(others, n)
        if n and chance > 1e-16:
            found += chance * exact(eps0, dict(zip(counts, parts, strict=True)), users, expm1_eps)
    return found


@pytest.mark.parametrize(("n", "eps0", "rate", "presence", "tolerance"), [
    (1000, 0.5, 0.1, 1.0, 4e-3), (1500, 1.5, 0.01, 1.0, 4e-3), (400, 0.2, 0.9, 1.0, 4e-2),
    (60, 1.0, 0.1, 1.0, 7e-2), (12, 0.5, 0.01, 1.0, 0.1),
    *((n, eps0, n / 90, presence, math.inf) for n in (28, 29, 32) for eps0 in (0.4, 1.2) for presence in (1.0, 0.8)),
])  # fmt: skip
def test_hidden_cohorts_are_above_every_dataset_and_near_equal_others(n, eps0, rate, presence, tolerance):
    scale = rate * math.expm1(eps0) / math.sqrt(n * math.exp(eps0))
    expm1_eps = np.array([0.0, 1.0, 2.5, 4.5]) * scale
    bound = swap.any_ldp_profile(eps0, n, expm1_eps, cohort=Cohort(rate, presence))
    for i, g in enumerate(expm1_eps):
        truth = max(exact(eps0, counts, n / rate, g, presence=presence) for counts in mixes(n))
        assert truth * (1 - 1e-12) <= bound[i] <= truth * (1 + tolerance)


@pytest.mark.parametrize(("users", "eps0", "rate", "tolerance"), [
    (400, 1.0, 0.2, 0.05), (300, 3.0, 0.4, 0.5), (150, 0.4, 7 / 15, 0.02), (41, 0.4, 11 / 41, 0.1),
    (41, 1.2, 11 / 41, 0.12),
])  # fmt: skip
def test_coins_are_above_every_dataset_and_near_equal_others(users, eps0, rate, tolerance):
    """The mean over how many come of hidden cohorts, exactly."""
    expm1_eps = np.array([0.0, 1.0, 4.5]) * rate * math.expm1(eps0) / math.sqrt(users * rate * math.exp(eps0))
    types = [part[:3] for part in swap._extreme_types(eps0, ALL_USERS)]
    alone = swap.by_coins(users, Cohort(presence=rate), types, 2.0**-50, expm1_eps)
    known = swap.any_ldp_profile(eps0, users, expm1_eps, cohort=Cohort(presence=rate))
    for *bounds, g in zip(alone, known, expm1_eps, strict=True):
        truth = max(mean_over_coins(eps0, counts, users, g, rate) for counts in mixes(users - 1))
        assert truth * (1 - 1e-12) <= min(bounds) <= max(bounds) <= truth * (1 + tolerance)


def test_extremes_stay_bounds():
    for eps0 in (1e-3, 0.1, 1.0, 5.0, 20.0, 250.0, 1000.0):
        top = math.expm1(min(eps0, 300.0))
        expm1_eps = np.array([0.0, 1e-12, 1e-6, 1e-3, 0.1, 1.0, 10.0, 0.5 * top, top * (1 - 1e-9), 1e300])
        for n in (1, 2, 3, 17, 1000, 10**6, 10**9, 10**12, 10**13):
            for rate in (1.0, 0.5, 1e-6):
                bound = swap.any_ldp_profile(eps0, n, expm1_eps, cohort=Cohort(rate))
                assert np.all((bound >= 0.0) & (bound <= 1.0))
                trivial = np.maximum(0.0, (rate * top - expm1_eps) / (top + 2.0))
                if eps0 <= 250.0:
                    assert np.all(bound <= trivial * (1 + 1e-12) + 1e-14)
                    beyond = expm1_eps >= rate * top * (1 + 1e-12)
                    assert np.all(bound[beyond] == 0.0)
    assert swap.may_win(1.0, 1000) and not swap.may_win(8.0, 1000)


def test_large_crowds_meet_the_normal_law():
    """sup H = (sigma / sqrt n)(phi(z) - z (1 - Phi(z)) + o(1)), from both sides."""
    for eps0, n in ((0.4, 10**9), (3.0, 10**10), (2.0, 10**13)):
        p = math.exp(eps0)
        sigma = (p - 1) * math.sqrt(max(1 / p, 2 / (p + 2)) / n)
        for z in (0.0, 1.0, 3.0):
            limit = sigma * (math.exp(-z * z / 2) / math.sqrt(2 * math.pi) - z * 0.5 * math.erfc(z / math.sqrt(2)))
            bound = float(swap.any_ldp_profile(eps0, n, z * sigma))
            assert limit * (1 - 2e-3) <= bound <= limit * (1 + 2e-3)


def test_what_the_others_cannot_cover():
    first, second = [0.5, 0.5, 0.0], [0.4, 0.5, 0.1]
    rows, expm1_eps = [first, [0.4, 0.5, 0.1]], [0.0, 0.2]
    # A report that only the second law can make gives nothing away at s >= 1 ...
    bound = known_profile(first, second, first, rows, 1000, expm1_eps)
    attack = slots.slot_profile(first, second, first, 1000, expm1_eps, law=True)
    assert np.all(attack.lower <= bound) and np.all(bound < [0.1001, 1e-100])
    # ... one that only the first can make is given away.
    bound = known_profile(second, first, first, rows, 1000, expm1_eps)
    attack = slots.slot_profile(second, first, first, 1000, expm1_eps, law=True)
    assert np.all(attack.lower <= bound) and np.all(bound <= [0.1001, 0.1001])


def test_types_have_grids_of_their_own():
    rows = np.array(rr(4, 2.0))
    expm1_eps = [0.0, 0.02, 0.04, 0.06]
    known = known_profile(rows[0], rows[1], rows[0], rows, 3000, expm1_eps)
    types = []
    for row in rows:
        split = np.array([rows[0], rows[1], rows[0], row])[:, [0, 0, 1, 2, 3, 3, 3, 3]]
        parts = np.array([0.3, 0.7, 1.0, 1.0, 0.25, 0.25, 0.25, 0.25])
        types.append(split * parts if row[3] > row[2] else np.array([rows[0], rows[1], rows[0], row]))
    found = swap.typed_profile(types, 3000, expm1_eps)
    np.testing.assert_allclose(found, known, rtol=0.02)


@pytest.mark.parametrize("bare", [0.0, 0.01])
def test_types_whose_others_say_less(bare):
    """Others have a report more than the target: the masses on the target's reports sum to less than 1."""
    n, expm1_eps = 8, np.array([0.0, 0.05, 0.1, 0.2])
    rows = np.array(rr(3, 1.3))
    target = [[*(row * (1.0 - bare)), 0.0, b] for row, b in zip(rows[:2], (bare, 0.0), strict=True)]
    laws = [[*row, 0.0, 0.0] for row in rows]
    laws += [[*(0.9 * rows[2]), 0.1, 0.0], [*(0.96 * rows[0]), 0.04, 0.0]]
    shared = np.array(laws[0])
    types = [np.array([*target, shared, law])[:, [0, 1, 2, 4]] for law in laws]
    general = swap.typed_profile(types, n, expm1_eps)
    hidden = swap.typed_profile(types, n, expm1_eps, cohort=Cohort(1.0 / 1.01))
    held = itertools.combinations_with_replacement(range(len(laws)), n - 1)
    worst = np.zeros(expm1_eps.size)
    for rest in ([laws[x] for x in others] for others in held if 3 in others or 4 in others):
        pair = composed(o.shuffled_pair(*target, rest), 1)
        worst = np.maximum(worst, one_order(pair, np.log1p(expm1_eps)))
    assert np.all(worst <= general * (1 + 1e-12) + 1e-14)
    assert np.all(worst > 0.5 * general)
    assert np.all(hidden < general)
    assert general[0] < 0.95 * one_order(np.array(target), np.zeros(1))[0]


@pytest.mark.parametrize(("eps0", "n"), [(0.5, 300), (1.0, 100), (1.0, 10_000), (2.0, 10_000), (4.0, 10_000)])
def test_far_out_above_attacks(eps0, n):
    """Up to the largest loss, where the contour's remainder would be all there is to see."""
    expm1_eps = math.expm1(eps0) * np.geomspace(1e-3, 0.999, 25)
    types = laplace_types(eps0, n, cells=24)
    found = swap.typed_profile(types, n, expm1_eps, mass_error=1e-13)
    attack = attack_law(Laplace(eps0=eps0), n, (0.0, 1.0, 0.0)).profile(expm1_eps, 1e-3)
    assert np.all(found >= attack.lower)
    known = swap.any_ldp_profile(eps0, n, expm1_eps)
    for one in getattr(ShuffledLDP(eps0, n).attack_pair, "pairs", ()):
        if one.as_profile is not None:
            assert np.all(known >= one.as_profile.profile(expm1_eps, 1e-3, 0.0).lower)
    if n == 10_000 and eps0 <= 2.0:
        middle = expm1_eps[(attack.lower > 1e-200) & (attack.lower < 1e-30)]
        bound = swap.typed_profile(types, n, middle, mass_error=1e-13)
        truth = attack_law(Laplace(eps0=eps0), n, (0.0, 1.0, 0.0)).profile(middle, 1e-3).upper
        assert middle.size > 1 and np.all(np.log(bound) <= 0.75 * np.log(truth))


# ---------------------------------------------------------------- many kinds of targets


@pytest.mark.parametrize(
    "cohort", [Cohort(), Cohort(rate=0.25), Cohort(presence=0.6), Cohort(presence=0.7, certain=True)], ids=str
)
@pytest.mark.parametrize("n", [40, 3_000])
def test_bounds_by_moments_lie_above_those_of_the_contour_by_little(cohort, n):
    law = np.random.default_rng(n).dirichlet(np.full(5, 9.0), size=4) + 0.02
    law /= law.sum(axis=1, keepdims=True)
    laws = [law[[0, 1, 0, other]] for other in range(4)]
    scale = cohort.rate * math.sqrt(((law[0] - law[1]) ** 2 / law).sum(axis=1).max() / n)
    g = np.expm1(scale * np.array([0.0, 1.0, 2.0, 3.0, 4.0]))
    contour = swap.typed_profile(laws, n, g, cohort=cohort, mass_error=1e-15)
    moments = swap.by_moment(laws, n, g, cohort=cohort, mass_error=1e-15)
    assert np.all(contour <= moments * (1 + 1e-9))
    if n > 100:
        assert np.all(moments <= np.array([1.4, 3.0, 4.0, 5.0, 6.5]) * contour)


@pytest.mark.parametrize("seed", range(8))
def test_known_laws_of_few_users_are_above_all_datasets_and_near_the_worst(seed):
    """Three reports, ratios up to e^eps0, 10 to 60 users, whose lobes all count: every number of two other values."""
    rng = np.random.default_rng(seed)
    n, eps0 = int(rng.integers(10, 60)), rng.uniform(0.5, 3.0)
    rows = np.exp(rng.uniform(0.0, eps0, (2, 3)))
    rows /= rows.sum(axis=1, keepdims=True)
    s = np.exp(np.log((rows[0] / rows[1]).max()) * np.array([0.01, 0.15, 0.3, 0.5, 0.7]))
    bound = swap.typed_profile([rows[[0, 1, 0, other]] for other in range(2)], n, s - 1.0, mass_error=1e-15)
    worst = np.zeros(s.size)
    for ones in range(0, n, 3 if n > 30 else 1):
        others = [rows[1]] * ones + [rows[0]] * (n - 1 - ones)
        p, q = (o.counts_law([*others, row]) for row in rows[:2])
        worst = np.maximum(worst, [np.maximum(p - at * q, 0.0).sum() for at in s])
    assert np.all(worst * (1.0 - 1e-12) <= bound)
    assert np.all(bound[:2] <= 1.09 * worst[:2])  # far out one law that all others cover is too little


@pytest.mark.parametrize(("n", "g", "near"), [(500, 0.03, 1.004), (500, 0.005, 1 + 1e-6), (5_000, 0.005, 1.0002)])
def test_moments_are_those_of_the_theorem(n, g, near):
    """At the smallest of two bounds in 40 digits, X_+ <= e^(xX)/(e x) with the best x and E X_+ <= half of
    E X + (E X^2)^(1/2), and hardly above it; no u in a hidden cohort."""
    mpmath.mp.dps = 40
    law, rate = np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]), 0.5
    [found] = swap.by_moment([law[[0, 1, 0, 1]]], n, np.array([g]), cohort=Cohort(rate=rate), mass_error=0.0)
    value = [(a - (1 + g) * b) / b - g * (1 - rate) / rate for a, b in law.T.tolist()]

    def mean(function):
        return mpmath.fsum(b * function(v) for b, v in zip(law[1].tolist(), value, strict=True))

    best = rate * (mean(lambda v: v) + mpmath.sqrt(mean(lambda v: v) ** 2 + mean(lambda v: v * v) / n)) / 2
    for x in np.geomspace(1e-3, 1.0, 700).tolist():
        best = min(best, rate * mean(lambda v, x=x: mpmath.exp(x * v)) ** n / (mpmath.e * x * n))
    assert best * (1 - 1e-6) <= found <= near * best


def test_of_many_profiles_those_with_low_chords_are_not_asked():
    places, s = np.linspace(0.0, 1.0, 6), np.linspace(0.0, 0.79, 12)
    sizes = (0.5, 1.0, 0.9)
    ends = [size * (1.0 - places[:-1]) ** 2 for size in sizes]
    asked = []

    def ask(k, growths):
        asked.append(k)
        value = sizes[k] * (1.0 - growths) ** 2
        return Bounds(value, value)

    found = largest(s, 3, ask, places, ends)
    assert asked == [1, 2]
    np.testing.assert_allclose(found.upper, (1.0 - s) ** 2, rtol=1e-12)


@pytest.mark.parametrize("n,rate", [(1, 0.25), (3, 0.5), (4, 0.125)])
def test_few_users_of_a_hidden_cohort_by_fractions(n: int, rate: float) -> None:
    """Theorem C for three-point and two-point types, every dataset, every outcome of every user by itself."""
    p = Fraction(3)
    corners = {name: of(p) for name, of in CORNERS.items()}
    types = [{name: p if name in HEAVY else 1 for name in TYPES[kind]} for kind in ("S1", "S2", "T1")]
    share = Fraction(rate)
    for s in (Fraction(1), Fraction(9, 8), Fraction(5, 4), Fraction(3, 2)):
        worst = Fraction(0)
        for dataset in itertools.combinations_with_replacement(types, n):
            total = Fraction(0)
            for seen in itertools.product(*dataset):
                mass = math.prod((Fraction(law[z]) / sum(law.values()) for law, z in zip(dataset, seen, strict=True)))
                ratios = [corners[z][0] - s * corners[z][1] for z in seen]
                total += mass * max(Fraction(0), share / n * sum(ratios) + (1 - share) * (1 - s))
            worst = max(worst, total)
        bound = float(swap.any_ldp_profile(math.log(3.0), n, float(s - 1), cohort=Cohort(rate)))
        assert bound == pytest.approx(float(worst), rel=1e-12, abs=1e-14) and bound >= float(worst) * (1.0 - 1e-15)


def test_few_who_come_by_cohorts_of_every_size() -> None:
    """Poisson sampling: the average of hidden cohorts over how many come; if all do, the target's own divergence."""
    n, presence, growth = 5, 0.25, np.expm1([0.01, 0.05, 0.1])
    known = presence**n * (math.expm1(0.5) - growth) / (math.expm1(0.5) + 2.0)
    for come in range(1, n):
        chance = math.comb(n, come) * presence**come * (1.0 - presence) ** (n - come)
        known += chance * swap.any_ldp_profile(0.5, come, growth, cohort=Cohort(come / n))
    found = swap.any_ldp_profile(0.5, n, growth, cohort=Cohort(presence=presence))
    assert found == pytest.approx(known, rel=1e-12)


def test_a_type_that_no_sum_of_its_own_favours_does_not_choose_the_contour() -> None:
    """Bits of 37 hidden users: next to one kind of others the target loses nothing; twelve times too large once."""
    p = math.exp(2.856)
    one, zero = np.array([p, 1.0]) / (p + 1.0), np.array([1.0, p]) / (p + 1.0)
    cohort, growth = Cohort(0.1, 0.8), np.expm1([0.2, 0.3037, 0.35, 0.4344])
    types = [np.array([one, zero, one, other]) for other in (one, zero)]
    bound = swap.typed_profile(types, 37, growth, cohort=cohort, mass_error=1e-15)
    assert np.all(bound <= swap.any_ldp_profile(2.856, 37, growth, cohort=cohort) * 1.001)
    assert np.all(bound[1:] <= 1e-6 * np.array([0.2, 0.01, 2e-5]))


# ---------------------------------------------------------------- hidden cohorts, and users who come by coins


@pytest.mark.parametrize(
    "eps0,n,users,dropout",
    [(0.7477887791966863, 66, 1292, 0.9), (0.6792386509241835, 552, 299911, 0.0), (3.0, 2, 10**9, 0.99)],
)  # fmt: skip
def test_profiles_where_exponentials_underflow(eps0: float, n: int, users: int, dropout: float) -> None:
    """An exponential below all doubles times a large sum: both ends hold there, up to the largest loss."""
    cohort = Cohort(n / users, 1.0 - dropout, dropout)
    expm1_eps = cohort.rate * np.expm1(eps0) * np.array([0.5, 0.93, 0.9449, 0.96, 0.99, 0.999, 0.99999])
    # Other members all hold the same value.
    truth = np.array([exact(eps0, {"S1": n}, users, g, presence=cohort.presence) for g in expm1_eps])
    assert 0.0 < truth[-1] < 1e-19
    upper = swap.any_ldp_profile(eps0, n, expm1_eps, cohort=cohort)
    high = 1.0 / (1.0 + math.exp(-eps0))
    others = np.array([high, 1.0 - high])
    laws = cohort.with_absence(np.array([others[::-1], others, others]))
    for k in range(2):
        laws[k] = cohort.rate * laws[k] + (1.0 - cohort.rate) * laws[2]
    attack = slots.slot_profile(*laws, n, expm1_eps, mass_error=1e-14, law=True)
    assert np.all(upper >= truth * (1.0 - 1e-9))
    assert np.all(attack.lower <= truth * (1.0 + 1e-9)) and np.all(truth <= attack.upper * (1.0 + 1e-9))


@pytest.mark.parametrize("n", [5, 400])
def test_jumps_and_their_totals(n: int) -> None:
    """Their measure has the number and all calls of the worst types and the guest, hardly more; totals have its law."""
    rng = np.random.default_rng(8)
    weight, nobody = rng.dirichlet(np.ones(6), 3), np.zeros((3, 0))
    weight[:, 4:] *= 1e-3 / n
    base = np.array([-0.3, -0.1, 0.2, 0.5, 30.0, 45.0]) * rng.uniform(0.8, 1.2, (3, 6))
    guest, height, excess = np.array([[0.01 / n, 0.3], [28.0, -0.4], [0.1, 0.1]]), 20.0, rng.uniform(-0.5, 0.5, (3, 6))
    value, own = base - 0.02, guest[1] - 0.02
    means = np.sum(weight * np.where(value > height, 0.0, value), axis=1)
    for share, here, least, moved in ((1.0, guest, 0.0, excess), (0.25, nobody, 0.2, 0.0 * excess)):  # coins
        types = weight, moved, base, 0.1 + 0.0 * base, np.full((3, 6, 2), 1e-3)
        bulk = jumps._split(n, types, here, 0.2, share, share < 1.0, height, 0.1)
        lift = max(least, -means.min(), -here[0] @ np.where(own > height, 0.0, own)[: here.shape[1]])
        size = (value + 1.2e-3) / np.minimum(1.0, 1.0 - moved / 9.0) + lift
        far, alone = n / (0.9 if least else 1.0) * weight * (value > height), here[0] * (own > height)[: here.shape[1]]
        assert bulk.jumps.sum() == pytest.approx(far.sum(axis=1).max() + alone.sum(), rel=2e-9)
        for t in bulk.totals.tolist():
            exact = np.sum(far * np.maximum(size - t, 0.0), axis=1).max()
            exact += alone @ np.maximum(own + lift - t, 0.0)[: alone.size]
            found = bulk.jumps @ np.maximum(bulk.totals - t, 0.0) + bulk.excess
            assert exact * (1.0 - 1e-15) <= found <= exact * (1.0 + 2e-9)
    law, power = np.zeros(40 * bulk.jumps.size), np.ones(1)
    for k in range(40):
        law[: power.size] += power
        power = np.convolve(power, bulk.jumps) / (k + 1)
    size = bulk.totals.size
    assert bulk.masses == pytest.approx(law[:size], rel=1e-14, abs=1e-300)
    later = law[size:] @ (0.3 + 0.2 * bulk.totals[1] * np.arange(1, law.size - size + 1))
    later += 0.2 * bulk.excess * math.exp(bulk.jumps.sum())
    assert later * (1.0 - 1e-12) <= jumps._beyond(bulk, 0.3, 0.2) <= later * (1.0 + 1e-8)


@pytest.mark.parametrize(("share", "coins", "guests", "far_out", "last"), [
    (1.0, False, 1, 3.0, 0.0), (1.0, False, 1, 0.3, 0.0), (1.0, False, 0, 3.0, 0.03), (1.0, False, 0, 0.03, 0.03),
    (0.25, False, 0, 0.7, 0.0), (0.25, True, 0, 0.3, 0.0),
])  # fmt: skip
def test_what_is_left_without_jumps_by_the_best_moments(
    share: float, coins: bool, guests: int, far_out: float, last: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every total e^(xX)/(e x) or (X + c)^2/(4c), over u by quadrature; with coins also what t far from 1 add."""
    n, few, scale, one = 400, np.array([[-0.5, 0.4, 0.075]]), math.sqrt(0.12525), np.ones(1)
    weight, excess = np.array([[0.3, 0.3, 0.4]]), np.array([[0.3, -0.2, -0.075]]) * (last > 0.0)
    g, everybody, host = far_out * scale / math.sqrt(n), n / share, np.array([[0.3], [0.4], [0.1]])[:, :guests]
    lean, own = g if coins else 0.0, host[1] - g * host[2]  # values that are not centred
    types = weight, excess, few + lean, 1.0 + 0.0 * few, np.zeros((1, 3, 2))
    bulk = jumps._split(n, types, host, g, share, coins, 20.0, last)
    parts, beyond, _ = jumps._parts(n, bulk, g, share, coins, last, 1e-15)
    found, _, _ = jumps._parts(n, bulk._replace(masses=one), g, share, coins, last, 1e-15)
    trials, rate, value = (everybody, share, few + g) if coins else (n, 1.0, few - g)
    away = everybody * g - (0.0 if coins else n * g)
    node, width = np.polynomial.legendre.leggauss(40)
    u = 0.5 * last * (1.0 + node)
    p = 0.5 * (last * n * (1.0 - u) ** (n - 1) if last else 1.0) * width
    beta = 1.0 - (u / (1.0 - u))[:, None] * excess
    x = np.geomspace(0.1, 20.0, 3000)[:, None, None] / (scale * math.sqrt(n))
    log = trials * np.log1p(rate * (np.sum(weight * beta * np.exp(x * value / beta), axis=2) - 1.0))
    x = x[:, 0]
    log = np.log(np.exp(log - x * away) @ p)[:, None] + np.log1p(np.expm1(x * own) @ host[0])[:, None]
    far = np.exp(np.min(log - 1.0 - np.log(x) + x * bulk.totals, axis=0))
    mean = bulk.totals + n * float(np.sum(weight * value)) - away + host[0] @ own
    variance = n * (p @ np.sum(weight * value**2 / beta, axis=1) / p.sum() - rate * np.sum(weight * value) ** 2)
    middle = 0.5 * p.sum() * (np.hypot(mean, np.sqrt(variance + host[0] @ own**2 - (host[0] @ own) ** 2)) + mean)
    assert np.all(found * everybody >= np.minimum(far, middle) * (1.0 - 1e-6))
    for farthest in (40.0, 0.0)[: 2 * (share < 1.0)]:
        monkeypatch.setattr(jumps, "FARTHEST", farthest)
        told = jumps.profile(
            n, types, host, 0.0, share, coins, 1e-15, one, one, np.array([g]), lambda *given: 1e-9 * given[2][0].sum()
        )
        v = share * (farthest - math.log(parts.sum() + beyond)) / n
        left = 1e-9 + coins * (1.0 - v) ** (everybody - 1.0) * (1.0 + share * g)
        assert left <= told[0] * (1.0 + 1e-12) <= left * (1.0 + 2e-9)


def test_jumps_of_users_who_come_by_coins() -> None:
    """Above the mean over every subset of every mixture of two types, on a lattice; near it for one of them."""
    users, rate, size, zero = 130, 0.5, 2_000, 800
    values = np.array([-1, 0, 1, 22])
    masses = [np.array([0.3 + 22.0 * p, 0.4 - 23.0 * p, 0.3, p]) for p in (0.0002, 0.0008)]
    types = [np.array([mass * (1.0 + values), mass, mass, mass]) for mass in masses]
    growths = np.array([0.02, 0.05, 0.1, 0.2])
    cohort = Cohort(presence=rate)
    bounds = swap.typed_profile(types, users, growths, cohort=cohort, uncovered_user=types[0])
    for count in (0, 100, users - 1):
        sums = np.zeros((users, size))  # by how many come, with one chance for every subset
        sums[0, zero] = 1.0
        for mass in [masses[0]] * count + [masses[1]] * (users - 1 - count):
            moved = sum(p * np.roll(sums[:-1], k, axis=1) for p, k in zip(mass, values.tolist(), strict=True))
            sums[1:] += moved
        come = np.arange(users)
        chances = binom.pmf(come, users, rate) / np.array([math.comb(users - 1, k) for k in come.tolist()], float)
        total = chances @ sums
        for bound, g in zip(bounds.tolist(), growths.tolist(), strict=True):
            truth = total @ np.maximum(np.arange(size) - zero - g * users, 0.0) / users
            assert truth * (1.0 - 1e-9) <= bound
            if count == 0:
                assert bound <= 1.5 * truth
