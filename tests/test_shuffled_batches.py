"""Shuffled batches against the real protocol, enumerated or integrated: permutations, adaptive others, both orders."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest

from pld_shuffle import Gaussian, ShuffledBatches
from pld_shuffle.numerics.sides import ROUNDOFF, Bounds
from pld_shuffle.pairs import batches as bounds
from pld_shuffle.pairs.allocation import GaussianSteps
from pld_shuffle.pairs.batches import MANY, BatchesBound, _guest_calls
from pld_shuffle.pairs.game import CELLS, FINE, THINNED, lattice, normal, play, preceded, rate, step_laws

# --- the package's bound, with Gaussian noise, by quadrature ----------------------------------------------


def grid(noise: float) -> tuple[np.ndarray, np.ndarray]:
    node, weight = np.polynomial.legendre.leggauss(12)
    ends = np.linspace(-1.0 - 8.0 * noise, 1.0 + 8.0 * noise, 41)
    half = 0.5 * np.diff(ends)[:, None]
    return (ends[:-1, None] + half * (1.0 + node)).ravel(), (half * weight).ravel()


def exact_two_batches(
    noise: float, size: int, start: np.ndarray, later: np.ndarray, z: np.ndarray, present: bool
) -> np.ndarray:
    """The density of both sums; start (records,) and later (records, z) are contributions, the target's first."""
    records = start.size
    on = np.ones(records)
    on[0] = float(present)
    found, ways = np.zeros((z.size, z.size)), 0
    for one in itertools.combinations(range(records), size):
        rest = [i for i in range(records) if i not in one]
        for two in itertools.combinations(rest, size):
            first = sum(start[i] * on[i] for i in one)
            second = sum(later[i] * on[i] for i in two)
            a = np.exp(-0.5 * ((z - first) / noise) ** 2)
            b = np.exp(-0.5 * ((z[None, :] - np.asarray(second)[:, None]) / noise) ** 2)
            found += a[:, None] * b
            ways += 1
    return found / (ways * 2.0 * math.pi * noise * noise)


@pytest.mark.parametrize("size, left_out", [(1, 0), (2, 0), (1, 1), (1, 2), (2, 1)])
def test_two_batches_lie_below_the_bound_and_the_attack_is_attained(size: int, left_out: int) -> None:
    rng = np.random.default_rng(10 * size + left_out)
    records = 2 * size + left_out
    for trial in range(3):
        noise = float(rng.choice([0.7, 1.0, 1.5, 2.5]))
        eps = float(rng.choice([0.05, 0.3, 0.8]))
        z, weight = grid(noise * 1.3 * size)
        start = rng.choice([-1.0, 1.0, rng.uniform(-1, 1)], records)
        cuts = np.sort(rng.normal(0.0, 1.5, 3))
        later = rng.choice([-1.0, 1.0, rng.uniform(-1, 1)], (records, 4))[:, np.searchsorted(cuts, z)]
        if trial == 0:
            start[1:], later[1:] = -1.0, -1.0
        start[0], later[0] = 1.0, 1.0
        both = [exact_two_batches(noise, size, start, later, z, on) for on in (True, False)]
        kind = ShuffledBatches(noise, 2, size, records)
        s, expm1_eps = math.exp(eps), np.array([math.expm1(eps)])
        for pair, (p, q) in zip(kind.pair.pairs, (both, both[::-1]), strict=True):
            exact = float(weight @ np.maximum(p - s * q, 0.0) @ weight)
            assert exact <= float(pair.profile(expm1_eps, 1e-5, 1e-12).upper[0]) * (1 + 2e-3)
        if trial == 0:
            exact = float(weight @ np.maximum(both[0] - s * both[1], 0.0) @ weight)
            attack = kind.attack_pair.profile(expm1_eps, 1e-5, 1e-12)
            assert attack.lower[0] * (1 - 2e-3) <= exact <= attack.upper[0] * (1 + 2e-3)


def plane(noise: float, end: float, points: int) -> Callable[[np.ndarray], np.ndarray]:
    """Masses of the cells of a grid of the plane under normal noise around a point."""
    z = np.linspace(-end, end, points)
    grid = np.stack(np.meshgrid(z, z, indexing="ij"), axis=-1)
    scale = (z[1] - z[0]) ** 2 / (2 * math.pi * noise**2)
    return lambda centre: scale * np.exp(-np.sum((grid - centre) ** 2, axis=-1) / (2 * noise**2))


def test_lemma_3_by_a_grid_of_configurations_in_the_plane() -> None:
    """Calls and puts of (N(x) - s N(0))/N(w) are below those of the envelope: |x|, |w| <= 1, both kinds of strikes."""
    rng, noise = np.random.default_rng(3), 1.3
    masses = plane(noise, 9.0, 361)
    zero = np.zeros(2)
    for _ in range(25):
        x, w = (v / max(1.0, np.linalg.norm(v)) for v in rng.normal(size=(2, 2)))
        s = math.exp(rng.choice([0.1, 0.5, 1.5]))
        for add in (False, True):
            far, near = (zero, x) if add else (x, zero)
            values = masses(far) - s * masses(near)
            pair = BatchesBound(GaussianSteps(noise, *((0, 1) if add else (1, 0)), 0), 5, Bounds(1.0, 1.0), True)
            (one, two, hidden), _ = pair._envelope(s - 1.0, 1e-16, 0.02)
            with np.errstate(divide="ignore", invalid="ignore"):
                level = np.where(hidden > 0.0, (one - s * two) / hidden, 0.0)
            others = masses(w)
            for y in (0.0, 0.1, 0.5, 2.0):
                calls = np.sum(np.maximum(values - y * others, 0.0))
                assert calls <= float(hidden @ np.maximum(level - y, 0.0)) + 2e-4
                puts = np.sum(np.maximum(-values - y * others, 0.0))
                assert puts <= float(hidden @ np.maximum(-level - y, 0.0)) + 2e-4


def test_the_normal_distribution_function_errs_by_no_more_than_is_booked() -> None:
    """Against 40 digits, where it does not underflow; 2 ulp of its argument are booked, too."""
    x = np.random.default_rng(0).uniform(-37.0, 9.0, 3000)
    found, doubt = normal(x)
    with mpmath.workdps(40):
        exact = [mpmath.ncdf(mpmath.mpf(at)) for at in x.tolist()]
        wrong = np.array([float(abs(mpmath.mpf(one) - two)) for one, two in zip(found.tolist(), exact, strict=True)])
        moved = np.array([float(mpmath.npdf(mpmath.mpf(at))) for at in x.tolist()]) * 4.0 * ROUNDOFF * np.abs(x)
    assert np.all(wrong + moved <= doubt) and np.max((wrong + moved) / doubt) > 0.5


@pytest.mark.parametrize("forward", [True, False])
def test_every_configuration_in_the_plane_is_below_a_law_of_the_game(forward: bool) -> None:
    """|x|, |w| <= 1: by a contraction and noise it is below a pair on the circle, whose cosine is in a cell."""
    rng, noise = np.random.default_rng(7), 1.3
    masses = plane(noise, 10.0, 401)
    for _ in range(12):
        x, w = (v / max(1.0, np.linalg.norm(v)) for v in rng.normal(size=(2, 2)))
        s = math.exp(rng.choice([0.1, 0.5, 1.5]))
        laws, h = step_laws(noise, forward, s - 1.0, 400), 1.0 / (noise * FINE)
        p, q, others = map(masses, (x, np.zeros(2), w))
        values = p - s * q if forward else q - s * p
        cell = int(np.clip(np.searchsorted(CELLS, x @ w, side="right") - 1, 0, len(CELLS) - 2))
        for y in h * rng.integers(-12, 60, 12):
            above = float(laws.masses[cell] @ np.maximum(h * laws.places - y, 0.0)) + laws.beyond[cell]
            assert np.sum(np.maximum(values - y * others, 0.0)) <= above * (1 + 1e-9) + 1e-6


@pytest.mark.parametrize("forward, share", [(True, 1.0), (False, 1.0), (True, 0.8)])
@pytest.mark.parametrize("noise, s", [(1.4, 1.3), (0.8, 3.0), (4.0, 1.05)])
def test_no_cell_is_passed_over_that_would_count(noise: float, s: float, forward: bool, share: float) -> None:
    """Every cell at every point of the lattice, without the screening by chords."""
    steps, h = 4, 1.0 / (noise * FINE)
    left, right = lattice(noise, s - 1.0, steps)
    laws = step_laws(noise, forward, s - 1.0, left + right).thinned(share)
    point = np.arange(-left, right + 1)
    sources = np.clip(point[:, None] + laws.places, -left, None)  # constant on the left, slope 1 on the right
    beyond = h * np.maximum(0, sources - right)
    value = np.maximum(0.0, h * point)
    for _ in range(steps):
        reached = value[np.minimum(sources, right) + left] + beyond
        value = np.max(reached @ laws.masses.T + laws.beyond, axis=1)
    played = play(noise, forward, s - 1.0, steps, share, 1e-12)
    near = slice(left - 40, left + 41)
    found = played.at(h * point[near] / share) * share
    assert np.all(value[near] <= found * (1 + 1e-12))
    assert np.all(found <= value[near] * 1.001 + 1e-6)


# --- Theorem H: one type ------------------------------------------------------------------------------------


def bent(t: np.ndarray, lam: float) -> np.ndarray:
    """h(t): curvature e^(-lam t) on the right of 0, none on the left."""
    return np.where(t > 0.0, np.expm1(-lam * np.maximum(t, 0.0)) + lam * np.maximum(t, 0.0), 0.0)


@pytest.mark.parametrize("noise, eps, forward", [(1.5, 0.0174, True), (4.0, 0.0087, True), (4.0, 0.03, False),
                                                 (1.5, 0.09, False), (10.0, 0.003, True)])  # fmt: skip
def test_the_worst_direction_by_quadrature_in_the_plane(noise: float, eps: float, forward: bool) -> None:
    """The inequality that `rate` certifies, by sums over a grid of the plane; with twice the rate it is false."""
    s, excess = math.exp(eps), 1e-7
    lam = rate(noise, forward, s - 1.0, excess)
    assert lam is not None
    g = np.linspace(-8.0, 10.0, 361)
    weight = np.exp(-0.5 * g * g) / math.sqrt(2.0 * math.pi) * (g[1] - g[0])
    along = 1.0 + noise * g[:, None]

    def values(c: float) -> np.ndarray:
        """L under N(w), in the direction in question, on the grid."""
        shown = np.exp((c * along + math.sqrt(1.0 - c * c) * noise * g - 0.5) / noise**2)
        others = np.exp((along - 0.5) / noise**2)
        return ((shown - s) if forward else (s * shown - 1.0)) / others

    cosines = np.linspace(-1.0, 1.0, 11)
    laws, mass = [values(c) for c in cosines.tolist()], weight[:, None] * weight
    end = next(y for y in np.geomspace(0.1, 1e3, 400) if np.sum(mass * np.maximum(0.0, -y - laws[-1])) <= excess)

    def sizes(lam: float) -> list[float]:
        return [float(np.sum(mass * bent(value + end, lam))) for value in laws]

    first = laws[0]
    longer = np.where(first > 0.0, first / (1.0 - THINNED), first)
    thinned = np.where(first > 0.0, 1.0 - THINNED, 1.0)
    rest = float(np.sum(mass * (1.0 - thinned)))
    most = float(np.sum(mass * thinned * bent(longer + end, lam))) + rest * float(bent(np.array(end), lam))
    found = sizes(lam)
    assert max(found) <= most * (1 + 1e-6)
    assert max(found) == pytest.approx(found[0], rel=0.02)
    twice = sizes(2.5 * lam)
    assert max(twice) > twice[0]


@pytest.mark.parametrize("forward", [True, False])
def test_a_short_game_before_one_type_is_above_a_long_one(forward: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above every strategy that a longer game's lower half would play: here the attack; and near the longer game."""
    noise, count, s = 2.0, 1200, 1.05
    bound = ShuffledBatches(noise, count, 1, count + 1).pair.pairs[0 if forward else 1]
    [attack] = bound._attack.profile(np.array([s - 1.0]), 1e-6, 1e-12).lower
    found = []
    for steps in (60, 250):
        monkeypatch.setattr(bounds, "MOST_PLAYED", (steps, 0.0, steps))
        bounds._played.cache_clear()
        start = np.array([bound._start(s - 1.0)])
        found += (bound._games(s - 1.0, start, 1e-20, MANY) * bound.rate.upper / count).tolist()
    bounds._played.cache_clear()
    assert attack < found[0] < 1.12 * attack
    assert attack < found[1] < 1.06 * attack


@pytest.mark.parametrize("count", [3, 400])
def test_terms_before_a_value_are_added_from_above(count: int) -> None:
    """sum of w E (x + S - y)_+ for terms of three values, their number of each enumerated."""
    value, mass = np.array([-0.31, 0.17, 0.9]), np.array([0.25, 0.5, 0.05])
    smoothing = 0.05
    place = smoothing * np.arange(-200, 120)
    weights = np.exp(-0.5 * (place / 1.5) ** 2)
    weights /= weights.sum()
    sums, law = np.zeros(1), np.ones(1)  # of S, on a grid of hundredths
    step = np.zeros(122)
    step[np.round(100 * np.append(value, 0.0)).astype(int) + 31] = np.append(mass, 1.0 - mass.sum())
    for _ in range(count):
        law = np.convolve(law, step)
    sums = 0.01 * np.arange(law.size) - 0.31 * count
    mean, deviation = float(law @ sums), math.sqrt(float(law @ sums**2) - float(law @ sums) ** 2)
    ends = tuple(-mean + move * deviation for move in (-3.0, -1.5, 0.5))
    found = preceded(place, weights, (value, mass), count, ends)
    for x, upper in zip(found.place[::50].tolist(), found.value[::50].tolist(), strict=True):
        exact = float(law @ np.maximum(0.0, x + sums[:, None] - place) @ weights)
        assert exact <= upper <= exact * (1 + 1e-6) + 0.5 * smoothing**2 * weights.max() / smoothing


@pytest.mark.parametrize("noise, count, order", [(4.0, 1000, 0), (4.0, 1000, 1), (1.6, 101, 0), (1.6, 101, 1)])
def test_games_at_a_few_strikes_serve_those_between(noise: float, count: int, order: int) -> None:
    """Above the attack everywhere, and little above what a game at the strike itself says."""
    bound = ShuffledBatches(noise, count, 1, count + 1).pair.pairs[order]
    growth = np.linspace(0.1, 3.0, 9) * bound.scale
    upper = bound.upper(growth, 1e-14, MANY)
    attack = bound._attack.profile(growth, 1e-5, 1e-16).lower
    assert np.all(attack < upper) and np.all(upper[:4] < 1.05 * attack[:4])
    strike = bounds._nth(bound, 1).growth
    here, near = bound.upper(strike * np.array([1.0 - 1e-9, 1.0 + 1e-9]), 1e-14, MANY)
    assert near == pytest.approx(here, rel=1e-6)


# --- Theorem S: every record is used ------------------------------------------------------------------------


@pytest.mark.parametrize("order", [(1, 0), (0, 1), (1, -1)])
def test_the_guests_calls_are_above_those_of_any_others(order: tuple[int, int]) -> None:
    rng = np.random.default_rng(8)
    z = np.linspace(-14.0, 14.0, 2801)
    for _ in range(30):
        noise = float(rng.choice([0.8, 1.5, 3.0]))
        eps, rho, x = float(rng.choice([0.05, 0.5, 2.0])), float(rng.choice([3.0, 30.0])), rng.uniform(0.2, 1.0)
        others = int(rng.choice([1, 5, 200]))
        centres = rng.uniform(-1.0, 1.0, others)

        def density(centre: np.ndarray, noise: float = noise) -> np.ndarray:
            return np.exp(-0.5 * ((z - centre) / noise) ** 2) / (noise * math.sqrt(2.0 * math.pi))

        target = [density(np.array(x * i)) for i in order]
        lowest = np.minimum(density(np.array(0.0)), rho * density(centres[:, None]).min(axis=0))
        ahead = np.maximum(0.0, target[0] - math.exp(eps) * target[1])
        strikes = np.array([0.0, 0.5, 3.0, 20.0])
        calls = [np.maximum(0.0, ahead - y * lowest).sum() * (z[1] - z[0]) for y in strikes]
        bounds = _guest_calls(GaussianSteps(noise, *order, 0), math.expm1(eps), rho, others, strikes)
        assert np.all(np.array(calls) <= bounds * (1 + 1e-3) + 1e-9)


def test_a_smaller_last_batch_is_a_coin_between_equal_ones() -> None:
    growth = np.array([0.12])
    kinds = [ShuffledBatches(4.0, k, 500, n) for k, n in ((99, 49_500), (100, 49_900), (100, 50_000))]
    upper = [float(kind.pair.pairs[0].profile(growth, 1e-2, 1e-9).upper[0]) for kind in kinds]
    assert upper[2] * (1 - 1e-9) <= upper[1] <= max(upper[0], upper[2]) * (1 + 1e-9)
    assert upper[1] < 0.02 * Gaussian(sigma=4.0).pair.profile(growth, 1e-6, 0.0).upper[0]


def test_every_record_used_is_amplified_where_batches_are_many_enough() -> None:
    few = ShuffledBatches(0.5, 100, 500, 50_000)
    assert few.pair == Gaussian(sigma=0.5).pair
    assert "no amplification" in few.assumptions()["analysis"]
    replaced = ShuffledBatches(4.0, 1000, 50, 50_000, relation="replace-one")
    spare = ShuffledBatches(4.0, 1000, 50, 50_001, relation="replace-one")
    growth = np.array([0.06])
    ends = [float(kind.pair.profile(growth, 1e-2, 1e-9).upper[0]) for kind in (spare, replaced)]
    lower = float(replaced.attack_pair.profile(growth, 1e-2, 1e-9).lower[0])
    assert 0.0 < lower < ends[0] < ends[1] < 1.4 * ends[0]
