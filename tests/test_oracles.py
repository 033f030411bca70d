"""The oracles against each other, and the facts about pairs that the library builds on.

Exact rational arithmetic: `==` between two canonical pairs means equal H_alpha for every alpha, and
`dominates` is decided, not sampled. No library code runs here.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction as F

import numpy as np
import oracles as o
import pytest
from mpmath import mp, mpf

E0 = F(5, 2)  # e^eps0
GAMMAS = (F(1, 4), F(2, 3))


# --- enumeration ------------------------------------------------------------------------------


def test_histogram_laws_agree() -> None:
    laws = [[F(1, 2), F(1, 3), F(1, 6)], [F(0), F(1, 4), F(3, 4)], [F(2, 7), F(4, 7), F(1, 7)]]
    laws = [*laws, laws[0]]
    exact = o.histogram_law(laws)
    floats = o.shuffled_float(np.array(laws, dtype=float))
    assert sorted(floats[floats > 0]) == pytest.approx(sorted(map(float, exact.values())))


def test_domination_is_decided_exactly() -> None:
    large, small = o.clones(2, E0), o.clones(3, E0)
    assert o.dominates(large, small) and not o.dominates(small, large)
    assert o.dominates(large, large)
    leaking = [(F(1, 100), F(0)), (F(99, 100), F(1))]
    assert not o.dominates(large, leaking)
    assert not o.dominates(large, [(q, p) for p, q in leaking])


# --- pairs ------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize(("n", "k"), [(1, 2), (1, 3), (2, 2), (3, 3), (4, 3), (3, 4)])
def test_rr_pairs_are_the_protocol(n: int, k: int, gamma: F) -> None:
    """Both adversaries of k-RR, enumerated, whatever the other users hold."""
    strong = o.canonical(o.strong(n, k, gamma))
    weak = o.canonical(o.weak(n, k, gamma))
    for held in itertools.combinations_with_replacement(range(k), n - 1):
        views = [o.strong_view(k, gamma, (target, *held)) for target in (0, 1)]
        assert o.canonical(o.pair_of_views(*views)) == strong
        views = [o.weak_view(k, gamma, (target, *held)) for target in (0, 1)]
        assert o.canonical(o.pair_of_views(*views)) == weak
        laws = [o.rr_law(k, gamma, value) for value in range(k)]
        only_reports = o.shuffled_pair(laws[0], laws[1], [laws[value] for value in held])
        assert o.dominates(weak, only_reports)
    assert o.dominates(strong, weak)
    assert o.dominates(o.strong(n, k, gamma, conditional=True), strong)


# --- the published pair with a third outcome --------------------------------------------------


def test_third_outcome_pair_is_not_a_bound() -> None:
    """k = 4, eps0 = 2, n = 30, everybody else at a third value: eps(1e-6) = 1.745, not 1.672."""
    n, k, e0 = 30, 4, math.exp(2.0)
    gamma = k / (e0 + k - 1)
    seen, flat = 1 - gamma + gamma / k, gamma / k
    # values 2 (held by the others) and 3 are told apart by the histogram; enumerate all of it
    laws = ([seen, flat, flat, flat], [flat, seen, flat, flat], [flat, flat, seen, flat])
    attack = o.shuffled_pair(laws[0], laws[1], [laws[2]] * (n - 1))
    beta = (e0 - 1) / (e0 + k - 1)
    published = o.third_outcome(n, e0, beta, e0)
    proven = o.reduction(n, e0, beta, e0)

    def epsilon(atoms: o.Atoms) -> float:
        masses = np.array(atoms, dtype=float)
        low, high = 0.0, 2.0
        for _ in range(40):
            middle = (low + high) / 2
            spent = o.delta_float((masses[:, 0], masses[:, 1]), middle)
            low, high = (middle, high) if spent > 1e-6 else (low, middle)
        return high

    assert epsilon(attack) == pytest.approx(1.745, abs=5e-4)
    assert epsilon(published) == pytest.approx(1.672, abs=5e-4)
    assert epsilon(proven) >= epsilon(attack)
    assert epsilon(proven) == pytest.approx(2.0, abs=5e-3)
    weak = np.array(o.weak(n, k, gamma), dtype=float)
    assert o.delta_float((weak[:, 0], weak[:, 1]), 1.97) == pytest.approx(1e-6, rel=0.5)


# --- composition ------------------------------------------------------------------------------


def test_composition_never_formed_equals_the_product() -> None:
    first, second = o.strong(3, 3, F(1, 3)), o.clones(3, E0)
    whole = o.product(o.power(first, 3), o.power(second, 2))
    composition = o.Composition([(first, 3), (second, 2)])
    for alpha in (F(1, 3), F(1), F(2), E0, E0**2, F(1000)):
        assert composition.hockey_stick(alpha) == o.hockey_stick(whole, alpha)
    assert composition.largest_loss() == mp.inf
    finite = o.Composition([(second, 3)])
    assert abs(finite.largest_loss() - 3 * mp.log(mpf(5) / 2)) < mpf(10) ** -50


@pytest.mark.parametrize("rounds", [1, 2, 7, 260, 501])
def test_composition_of_local_reports_is_binomial(rounds: int) -> None:
    """n = 1 is randomised response without a shuffle: delta in closed form, here down to 1e-80."""
    e0 = o.exp_of(1.25)
    composition = o.Composition([(o.stronger_clones(1, e0), rounds)])
    truth = e0 / (e0 + 1)
    for epsilon in (0.0, 0.3, 0.8 * 1.25 * rounds, 1.25 * rounds - 0.25):
        closed = mpf(0)
        for heads in range(rounds + 1):
            ratio = e0 ** (2 * heads - rounds)
            mass = math.comb(rounds, heads) * truth**heads * (1 - truth) ** (rounds - heads)
            closed += mass * max(0, 1 - mp.exp(mpf(epsilon)) / ratio)
        assert abs(composition.delta(epsilon) - closed) <= mpf(10) ** -35 * closed
    assert composition.delta(1.25 * rounds) <= mpf(10) ** -50


# --- medium-sized pairs -----------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 20])
def test_float_pairs_are_the_exact_ones(n: int) -> None:
    for k in (4, 2):
        pair, atoms = o.weak_float(n, k, 0.25), o.weak(n, k, F(1, 4))
        assert math.fsum(pair[0]) == pytest.approx(1.0, abs=1e-12) == math.fsum(pair[1])
        for epsilon in (0.0, 0.1, 0.7, 1.3):
            truth = o.Composition([(atoms, 1)]).delta(epsilon)
            assert abs(o.delta_float(pair, epsilon) - truth) <= 1e-8 * truth


# --- The theorem behind "stronger clones" and the (p, beta, q) reduction, on random randomizers ---

TOLERANCE = 1e-9


def worst_gap(large: o.FloatPair, small: o.FloatPair) -> float:
    """The largest H_alpha(small) - H_alpha(large) over alpha > 0, per 1 + alpha."""
    seen = large[1] > 0
    alphas = np.unique(large[0][seen] / large[1][seen])

    def profile(pair: o.FloatPair) -> np.ndarray:
        return np.maximum(pair[0] - alphas[:, None] * pair[1], 0.0).sum(axis=1)

    gaps = (profile(small) - profile(large)) / (1.0 + alphas)
    hidden = small[0][small[1] == 0].sum() - large[0][large[1] == 0].sum()
    mirror = small[1][small[0] == 0].sum() - large[1][large[0] == 0].sum()
    return float(max(gaps.max(), hidden, mirror))


def label_pair(n: int, p: float, beta: float, q: float) -> o.FloatPair:
    """The dominating pair, by the same enumeration of message vectors."""
    target_p, target_q, other = np.array(o.reduction_laws(p, beta, q))
    others = [other] * (n - 1)
    return (o.shuffled_float(np.array([target_p, *others])), o.shuffled_float(np.array([target_q, *others])))


def extreme_law(floor: np.ndarray, ratio: float, rng: np.random.Generator) -> np.ndarray:
    """A vertex of {x: floor <= x <= ratio floor, sum x = 1}."""
    law, spare = floor.copy(), 1.0 - floor.sum()
    for message in rng.permutation(len(floor)):
        raised = min((ratio - 1.0) * floor[message], spare)
        law[message] += raised
        spare -= raised
    return law


def ldp_laws(rows: int, width: int, ratio: float, rng: np.random.Generator, *, mixed: bool) -> np.ndarray:
    """`rows` output laws of one eps0-LDP randomizer, ratio = e^eps0: vertices, or mixtures."""
    floor = rng.dirichlet(np.full(width, rng.choice([0.3, 1.0, 5.0])))
    floor *= rng.uniform(1.0 / ratio, 1.0)
    laws = np.array([extreme_law(floor, ratio, rng) for _ in range(rows)])
    if mixed:
        partners = np.array([extreme_law(floor, ratio, rng) for _ in range(rows)])
        share = rng.uniform(size=(rows, 1))
        laws = share * laws + (1.0 - share) * partners
    return laws


@pytest.mark.parametrize(("n", "width"), [(2, 5), (3, 4), (4, 3), (5, 3), (5, 2), (1, 5), (4, 4)])
def test_other_users_with_their_own_randomizers(n: int, width: int) -> None:
    """q != p, below and above it; the others' laws are unrelated beyond max(R0, R1) <= q R_i, their
    remaining mass put on any outcomes, some of which the target never sends."""
    rng = np.random.default_rng([n, width])
    for trial in range(300):
        p = float(np.exp(rng.uniform(0.05, 4.0)))
        first, second = ldp_laws(2, width, p, rng, mixed=trial % 3 == 0)
        beta = float(np.maximum(first - second, 0.0).sum())
        if beta < 1e-6:
            continue
        unseen = np.zeros(1)
        first, second = np.append(first, unseen), np.append(second, unseen)
        q = (1.0 + beta) * float(np.exp(rng.choice([0.0, rng.uniform(0.0, 4.0)])))
        covered = np.maximum(first, second) / q
        rest = rng.dirichlet(np.full(width + 1, rng.choice([0.05, 1.0])), size=n - 1)
        others = covered + (1.0 - covered.sum()) * rest
        view = tuple(o.shuffled_float(np.vstack([law, others.reshape(n - 1, width + 1)])) for law in (first, second))
        assert worst_gap(label_pair(n, p, beta, q), view) < TOLERANCE
        looser = min(beta * rng.uniform(1.0, 1.5), (p - 1.0) / (p + 1.0), q - 1.0)
        assert worst_gap(label_pair(n, p, looser, q), view) < TOLERANCE
