"""Histograms with dummies: privacy against all messages of few users, enumerated in rationals; errors against runs."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from pld_shuffle import Accountant, AccuracyWarning
from pld_shuffle.mechanisms import DummyReports
from pld_shuffle.protocols import BallsIntoBins, FakeUsers, MixDUMP

GROWTHS = [Fraction(k, 8) for k in (0, 1, 4, 9, 18)]
Law = dict[tuple[Any, ...], Fraction]


def shuffled(parts: Iterable[Law]) -> Law:
    """The multiset of one message (or several) drawn from each."""
    found: Law = {(): Fraction(1)}
    for part in parts:
        more: Law = {}
        for (seen, a), (messages, b) in itertools.product(found.items(), part.items()):
            key = tuple(sorted(seen + messages))
            more[key] = more.get(key, Fraction(0)) + a * b
        found = more
    return found


def divergence(p: Law, q: Law, expm1_eps: Fraction) -> Fraction:
    return sum((max(a - (1 + expm1_eps) * q.get(k, 0), Fraction(0)) for k, a in p.items()), Fraction(0))


def worst(users: Iterator[list[Law]] | Iterable[list[Law]], expm1_eps: Fraction) -> Fraction:
    """Over pairs of datasets that differ in the first user: lists of laws of all messages, by value of the first."""
    return max(
        divergence(p, q, expm1_eps)
        for views in users
        for p, q in itertools.permutations(views, 2)
    )  # fmt: skip


def views_with_dummies(k: int, n: int, dummies: Fraction, gamma: Fraction) -> list[list[Law]]:
    uniform: Law = {(v,): Fraction(1, k) for v in range(k)}
    whole, rest = divmod(dummies, 1)
    extra: Law = {(): 1 - rest} | {(v,): rest / k for v in range(k)}

    def report(value: int) -> Law:
        return {(v,): gamma / k + (1 - gamma if v == value else 0) for v in range(k)}

    noise = [uniform] * (n * int(whole)) + [extra] * n
    return [
        [shuffled([report(v), *map(report, others), *noise]) for v in range(k)]
        for others in itertools.combinations_with_replacement(range(k), n - 1)
    ]


def found(mechanism: Any, expm1_eps: Fraction) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccuracyWarning)
        return Accountant(1e-4).compose(mechanism).delta_bounds(math.log1p(float(expm1_eps)))


@pytest.mark.parametrize(("k", "n", "dummies"), [
    (2, 2, Fraction(1)), (3, 2, Fraction(2)), (3, 3, Fraction(1)), (2, 3, Fraction(1, 2)), (3, 2, Fraction(5, 4)),
])  # fmt: skip
@pytest.mark.parametrize("gamma", [Fraction(0), Fraction(1, 4)])
def test_dummies_enumerated(k: int, n: int, dummies: Fraction, gamma: Fraction) -> None:
    """Every message of everybody. Without random answers the pair is exact, from both sides."""
    users = views_with_dummies(k, n, dummies, gamma)
    mechanism = DummyReports(k, n, float(dummies), float(gamma))
    for expm1_eps in GROWTHS:
        truth = float(worst(users, expm1_eps))
        bounds = found(mechanism, expm1_eps)
        assert bounds.upper >= truth * (1 - 1e-9), expm1_eps
        if gamma == 0:
            assert bounds.lower <= truth * (1 + 1e-9) and bounds.upper <= truth * (1 + 1e-3) + 1e-9


def test_fake_users_enumerated() -> None:
    """Two users, three bins, a fake each: all vectors of bits, in any order."""
    k, flip = 3, Fraction(1, 4)

    def vector(value: int | None) -> Law:
        law: Law = {}
        for bits in itertools.product((0, 1), repeat=k):
            mass = Fraction(1)
            for place, bit in enumerate(bits):
                mass *= flip if bit != (place == value) else 1 - flip
            law[(bits,)] = mass
        return law

    users = [[shuffled([vector(v), vector(other), vector(None), vector(None)]) for v in range(k)] for other in range(k)]
    mechanism = FakeUsers(k=k, n=2, fakes=1, flip=0.25).mechanism
    for expm1_eps in GROWTHS:
        assert found(mechanism, expm1_eps).upper >= float(worst(users, expm1_eps)) * (1 - 1e-9)


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
