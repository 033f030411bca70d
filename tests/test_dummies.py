"""Histograms with dummies: their errors, and parameters from a budget. What they give away: test_truths.py."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from pld_shuffle.mechanisms import DummyReports
from pld_shuffle.protocols import BallsIntoBins, FakeUsers, MixDUMP

PROTOCOLS = [
    BallsIntoBins(k=4, n=60, dummies=0.5),
    BallsIntoBins(k=4, n=60, dummies=2.25),
    MixDUMP(k=4, n=60, dummies=1.0, gamma=0.25),
    FakeUsers(k=4, n=60, fakes=2, flip=0.125),
]


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda p: type(p).__name__)
def test_estimates_are_unbiased_and_their_errors_exact(protocol: Any) -> None:
    rng = np.random.default_rng(1)
    counts = np.array([40, 15, 5, 0])
    values = np.repeat(np.arange(4), counts)
    runs = np.array([
        protocol.analyze(protocol.shuffle(protocol.randomize(values, rng), rng)).counts for _ in range(3_000)
    ])  # fmt: skip
    errors = protocol.bin_errors(counts)
    assert np.all(np.abs(runs.mean(axis=0) - counts) <= 4.5 * errors / math.sqrt(len(runs)))
    assert np.sqrt(((runs - counts) ** 2).mean(axis=0)) == pytest.approx(errors, rel=0.07)
    assert protocol.expected_error(counts).root <= protocol.expected_error().root * (1 + 1e-12)


@pytest.mark.parametrize(("kind", "design"), [
    (BallsIntoBins, {}), (MixDUMP, {"gamma": 0.1}), (FakeUsers, {"fakes": 1}),
])  # fmt: skip
def test_from_a_budget(kind: Any, design: dict[str, Any]) -> None:
    protocol = kind.from_budget(1.0, 1e-5, 2_000, k=8, **design)
    assert 0.9 <= protocol.accountant().get_epsilon(1e-5) <= 1.0
    honest = kind.from_budget(1.0, 1e-5, 2_000, k=8, honest_fraction=0.5, **design)
    assert honest.expected_error().root > protocol.expected_error().root


@pytest.mark.parametrize(("make", "error", "message"), [
    (lambda: DummyReports(1, 10, 1.0), ValueError, "k must be at least 2, got 1"),
    (lambda: DummyReports(3, 10, 0.0), ValueError, r"dummies must be positive and finite, got 0\.0"),
    (lambda: DummyReports(3, 10, 1.0, 1.0), ValueError, r"gamma must be in \[0, 1\), got 1\.0"),
    (lambda: MixDUMP(k=3, n=10, dummies=1.0, gamma=0.0), ValueError, r"gamma must be in \(0, 1\), got 0\.0"),
    (lambda: FakeUsers(k=3, n=10, fakes=0, flip=0.1), ValueError, "fakes must be at least 1, got 0"),
    (lambda: FakeUsers(k=3, n=10, fakes=1, flip=0.5), ValueError, r"flip must be in \(0, 1/2\), got 0\.5"),
    (lambda: BallsIntoBins(k=3, n=10, dummies=1.0).analyze([0, 1]), ValueError, "at least 10 in number, got 2"),
])  # fmt: skip
def test_bad_input_is_named(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()
