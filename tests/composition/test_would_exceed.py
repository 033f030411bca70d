"""The budget that remembers against accountants that do not."""

from __future__ import annotations

import numpy as np
import pytest

from pld_shuffle import Accountant, Mechanism, ShuffledLDP, Subsampled
from pld_shuffle.composition.would_exceed import Budget

DELTA = 1e-6


def cohorts(count: int) -> list[Mechanism]:
    rng = np.random.default_rng(3)
    sizes = rng.choice(np.arange(2_467, 5_600), count, replace=False)
    return [Subsampled(ShuffledLDP(eps0=2.0, n=int(n)), population=10**6) for n in sizes]


ROUNDS: dict[str, list[tuple[Mechanism, int]]] = {
    "a cohort of its own each": [(mechanism, 1) for mechanism in cohorts(18)],
    "few users": [(ShuffledLDP(eps0=1.0, n=200 + i), 1) for i in range(12)],
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
