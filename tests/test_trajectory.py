"""Epsilon after every prefix: against the accountant, which composes each prefix by itself and much more finely."""

from __future__ import annotations

import numpy as np
import pytest

from pld_shuffle import Accountant, Mechanism, ShuffledLDP, ShuffledRR, Subsampled
from pld_shuffle.mechanisms.central import Gaussian
from pld_shuffle.trajectory import epsilon_trajectory


def cohort(n: int, eps0: float = 2.0) -> Mechanism:
    return Subsampled(ShuffledLDP(eps0=eps0, n=n), population=10**6)


LOGS: dict[str, list[tuple[Mechanism, int]]] = {
    "one cohort": [(cohort(5_000), 1)] * 70,
    "many cohorts": [
        (cohort(2_467 + 37 * (17 * i % 30), 1.0 + i % 2), 1 + i % 3) for i in range(30)
    ],
    "labels": [
        (ShuffledLDP(eps0=1.0 + 0.1 * (i % 3), n=3_000, analysis="stronger-clones"), 1)
        for i in range(40)
    ],
    "sparse": [(ShuffledRR(k=3, n=200, eps0=3.0), 1)] * 20,
    "no loss now and then": [(cohort(4_000), 1), (ShuffledRR(k=2, n=10, gamma=1.0), 1)] * 10,
    "noise": [(Gaussian(sigma=20.0 + i % 5), 1 + i % 2) for i in range(20)],
}


@pytest.mark.parametrize("name", LOGS)
def test_every_prefix_is_what_the_accountant_says(name: str) -> None:
    rows, delta = LOGS[name], 1e-6
    found = epsilon_trajectory(rows, delta, every=3)
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


def test_says_whether_lower_ends_are_attacks() -> None:
    for name, rows in LOGS.items():
        found = epsilon_trajectory(rows, 1e-6, every=len(rows))
        assert found.attacked is (name in ("one cohort", "many cohorts", "no loss now and then"))


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
