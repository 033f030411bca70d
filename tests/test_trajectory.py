"""Epsilon after every prefix: against the accountant, which composes each prefix by itself and much more finely."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from test_honesty import composed_of

from pld_shuffle import Accountant, Gaussian, Mechanism, ShuffledLDP, ShuffledRR, Side, Subsampled
from pld_shuffle.composition.composition import Composition
from pld_shuffle.composition.contour import Contour
from pld_shuffle.composition.product import LatticeReading
from pld_shuffle.composition.reading import GaussianReading, Reading
from pld_shuffle.composition.would_exceed import Budget
from pld_shuffle.trajectory import epsilon_trajectory


def cohort(n: int, eps0: float = 2.0) -> Mechanism:
    return Subsampled(ShuffledLDP(eps0=eps0, n=n), population=10**6)


LOGS: dict[str, list[tuple[Mechanism, int]]] = {
    "one cohort": [(cohort(5_000), 1)] * 70,
    "many cohorts": [(cohort(2_467 + 37 * (17 * i % 30), 1.0 + i % 2), 1 + i % 3) for i in range(30)],
    "labels": [
        (ShuffledLDP(eps0=1.0 + 0.1 * (i % 3), n=3_000, analysis="stronger-clones"), 1)
        for i in range(40)
    ],
    "sparse": [(ShuffledRR(k=3, n=200, eps0=3.0), 1)] * 20,
    "no loss now and then": [(cohort(4_000), 1), (ShuffledRR(k=2, n=10, gamma=1.0), 1)] * 10,
    "noise": [(Gaussian(sigma=20.0 + i % 5), 1 + i % 2) for i in range(20)],
}  # fmt: skip


@pytest.mark.parametrize("name", LOGS)
def test_every_prefix_is_what_the_accountant_says(name: str) -> None:
    rows, delta = LOGS[name], 1e-6
    found = epsilon_trajectory(rows, delta, every=3)
    assert found.attacked is (name in ("one cohort", "many cohorts", "no loss now and then"))
    fine = Accountant(rtol=1e-4)
    done = 0
    for k, rounds in enumerate(found.rounds):
        while fine.rounds < rounds:
            fine.compose(*rows[done])
            done += 1
        if k not in (2, len(found.rounds) // 2, len(found.rounds) - 1):
            continue
        truth = fine.epsilon_bounds(delta)
        assert found.lower[k] <= truth.upper * (1.0 + 1e-12)
        assert found.upper[k] >= truth.lower * (1.0 - 1e-12)
        # rtol in delta is far less in epsilon.
        assert found.upper[k] <= truth.upper * (1.0 + 4e-4)
        assert found.lower[k] >= truth.lower * (1.0 - 4e-4)


def test_progress_is_told_row_by_row() -> None:
    seen: list[tuple[int, int]] = []
    rows = [(cohort(4_000 + i), 1) for i in range(30)]
    epsilon_trajectory(rows, 1e-6, progress=lambda done, most: seen.append((done, most)))
    done = [row for row, _ in seen]
    assert done == sorted(done)
    assert set(done) == set(range(1, 31))
    assert {most for _, most in seen} == {30}


def test_ends_of_the_range_of_delta() -> None:
    rows = [(ShuffledLDP(eps0=1.0, n=500), 1)] * 16
    nothing = epsilon_trajectory(rows, 1.0)
    assert np.all(nothing.upper == 0.0)
    pure = epsilon_trajectory(rows, 0.0)
    assert pure.upper == pytest.approx(pure.rounds * 1.0, rel=1e-12)


# --- The budget that remembers against accountants that do not ---

DELTA = 1e-6


def cohorts(count: int) -> list[Mechanism]:
    rng = np.random.default_rng(3)
    sizes = rng.choice(np.arange(2_467, 5_600), count, replace=False)
    return [Subsampled(ShuffledLDP(eps0=2.0, n=int(n)), population=10**6) for n in sizes]


ROUNDS: dict[str, list[tuple[Mechanism, int]]] = {
    "a cohort of its own each": [(mechanism, 1) for mechanism in cohorts(18)],
    "few users": [(ShuffledLDP(eps0=1.0, n=200 + i), 1) for i in range(5)],
    "many rounds at once": [(mechanism, 500) for mechanism in cohorts(6)],
    "some again": [(mechanism, 1 + i % 3) for i, mechanism in enumerate(2 * cohorts(6))],
}


@pytest.mark.parametrize("name", ROUNDS)
def test_it_stops_where_the_accountant_does(name: str) -> None:
    rounds = ROUNDS[name]
    last = 2 * len(rounds) // 3
    plain = Accountant()
    spent = []
    for mechanism, count in rounds[: last + 1]:
        plain.compose(mechanism, count)
        spent.append(plain.get_epsilon(DELTA))
    limit = 0.5 * (spent[-2] + spent[-1])
    asked = Accountant()
    for k, (mechanism, count) in enumerate(rounds[: last + 1]):
        exceeds = asked.would_exceed(mechanism, epsilon=limit, delta=DELTA, count=count)
        assert exceeds == (k == last)
        asked.compose(mechanism, count)


def test_nothing_is_proven_that_is_not_so() -> None:
    """Limits a little below what the rounds spend; counts that fall, and pairs that go, are asked anew."""
    pairs = [mechanism.pair for mechanism in cohorts(12)]
    accountant = Accountant()
    for mechanism in cohorts(12):
        accountant.compose(mechanism)
    spent = accountant.epsilon_bounds(DELTA)
    truth = spent.upper * (1.0 - 2e-4)  # below what the analysis can prove, whatever rtol
    budget = Budget(truth, DELTA, 1e-3)
    for k in range(1, 13):
        held = budget.holds(dict.fromkeys(pairs[:k], 1))
        assert held == (k < 12)
    assert budget.holds(dict.fromkeys(pairs[3:], 1))
    assert not budget.holds({pair: 2 for pair in pairs})


# --- Many questions at once against the same questions one by one ---

CLONES = ShuffledLDP(eps0=1.0, n=1_000, analysis="stronger-clones")
CASES: dict[str, tuple[Mechanism, int, type[Reading], float]] = {
    "lattice": (CLONES, 12, LatticeReading, 1e-6),
    "contour": (CLONES, 400, Contour, 1e-6),
    "noise": (Gaussian(sigma=4.0), 3, GaussianReading, 1e-5),
    "mass at infinity": (ShuffledRR(k=3, n=40, gamma=0.5), 8, LatticeReading, 1e-2),
    "near the largest loss": (ShuffledLDP(2.0, 3, analysis="stronger-clones"), 5, Reading, 1e-4),
}


@pytest.mark.parametrize("name", CASES)
def test_an_array_is_answered_like_its_numbers(name: str) -> None:
    """By the reading that the case is about; far from the first question and at the ends of both ranges, too."""
    mechanism, rounds, kind, delta = CASES[name]
    composition = Composition([(mechanism.pair, rounds)], 1e-3)
    eps = composition.epsilons(delta).upper
    assert isinstance(composition.latest, kind)
    asked = np.append(delta * np.geomspace(0.2, 5.0, 5), [0.0, 1e-290, 0.5, 1.0]).reshape(3, 3)
    found = Accountant().compose(mechanism, rounds).epsilon_bounds(asked)
    assert found.lower.shape == found.upper.shape == asked.shape
    for place, one in np.ndenumerate(asked):
        alone = Accountant().compose(mechanism, rounds).epsilon_bounds(float(one))
        assert found.lower[place] <= alone.upper and alone.lower <= found.upper[place]
        assert found.upper[place] == pytest.approx(alone.upper, rel=1e-3)
    epsilons = np.append(eps * np.linspace(0.7, 1.3, 5), [0.0, composition.max_loss, 100.0 * eps, math.inf])
    spent = Accountant().compose(mechanism, rounds).delta_bounds(epsilons)
    for k, one in enumerate(epsilons.tolist()):
        single = Accountant().compose(mechanism, rounds).delta_bounds(one)
        assert spent.lower[k] <= single.upper and single.lower <= spent.upper[k]
        assert spent.upper[k] == pytest.approx(single.upper, rel=2e-3, abs=1e-300)


def test_nothing_asked_nothing_composed_and_an_end_of_the_range_behind_a_contour() -> None:
    """After the first answer nothing is left for its law: the other epsilon is beyond the largest loss."""
    assert Accountant().compose(CLONES, 12).get_epsilon(np.empty(0)).shape == (0,)
    assert np.all(Accountant().get_epsilon(np.array([[0.0, 1e-12], [0.5, 1.0]])) == 0.0)
    composition = Composition([(CLONES.pair, 400)], 1e-3)
    found = composition.deltas(np.array([0.5, math.inf]))
    assert isinstance(composition.latest, Contour)
    assert 0.0 < found.lower[0] <= found.upper[0] and found.upper[1] == 0.0


def test_the_last_row_is_the_total_that_is_known() -> None:
    rounds = [(ShuffledLDP(1.0, n), 1) for n in (900, 1000, 1100)]
    accountant = composed_of(rounds)
    total = accountant.epsilon_bounds(1e-6)
    found = epsilon_trajectory(rounds, 1e-6, total=total)
    assert (found.lower[-1], found.upper[-1]) == total
    first = composed_of(rounds[:1]).epsilon_bounds(1e-6)
    assert (found.lower[0], found.upper[0]) == first and first.lower < first.upper
    alone = epsilon_trajectory(rounds, 1e-6)
    assert found.lower[:-1].tolist() == alone.lower[:-1].tolist()
    assert found.upper[:-1].tolist() == alone.upper[:-1].tolist()


#: Logs, how often the total has each round, the delta, and rows; budgets up to 9 have rare losses far out, which are
#: coarse in laws that were formed under the small tilt of a much longer total.
DRAWN = random.Random(77)
LAWS = [([ShuffledLDP(6.0, 4_000 + 40 * (i % 12)) for i in range(400)], 1, 1e-6, 40)]
for often in (20, 100):
    some = [ShuffledLDP(DRAWN.choice([6.0, 6.5, 7.0, 8.0, 9.0]), DRAWN.randint(900, 21_000)) for _ in range(60)]
    LAWS.append((some, often, 1e-7, 30))


@pytest.mark.parametrize(("bases", "times", "delta", "every"), LAWS, ids=["once", "20 times", "100 times"])
def test_laws_of_the_total_serve_the_prefixes(bases: list[ShuffledLDP], times: int, delta: float, every: int) -> None:
    rounds = [(Subsampled(base, population=10**6), 1) for base in bases]
    accountant = composed_of([(mechanism, times) for mechanism, _ in rounds])
    total = accountant.epsilon_bounds(delta) if times == 1 else None
    accountant.epsilon_bounds(delta)
    assert len(accountant.laws(Side.UPPER)) == len(accountant.laws(Side.LOWER)) == len(set(bases))
    found, alone = (
        epsilon_trajectory(rounds, delta, every=every, total=total, laws=laws)
        for laws in (accountant.laws, lambda side: {})
    )
    assert np.all(found.lower <= alone.upper) and np.all(alone.lower <= found.upper)
    np.testing.assert_allclose(found.upper, alone.upper, rtol=1e-3)
    np.testing.assert_allclose(found.lower, alone.lower, rtol=1e-3)
