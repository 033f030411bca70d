"""The oracles against each other, and the facts about pairs that the library builds on.

Exact rational arithmetic: `==` between two canonical pairs means equal H_alpha for every alpha, and
`dominates` is decided, not sampled. No library code runs here.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction as F

import oracles as o
import pytest
from mpmath import mp, mpf

E0 = F(5, 2)  # e^eps0
GAMMAS = (F(1, 4), F(2, 3))


# --- enumeration ------------------------------------------------------------------------------


def test_histogram_laws_agree() -> None:
    laws = [[F(1, 2), F(1, 3), F(1, 6)], [F(0), F(1, 4), F(3, 4)], [F(2, 7), F(4, 7), F(1, 7)]]
    laws = [*laws, laws[0]]
    found: Counter[tuple[int, ...]] = Counter()
    for seen in itertools.product(range(3), repeat=len(laws)):
        found[tuple(map(seen.count, range(3)))] += math.prod(law[y] for law, y in zip(laws, seen, strict=True))
    assert {counts: mass for counts, mass in found.items() if mass} == o.histogram_law(laws)


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
