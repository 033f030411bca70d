"""Theorem Q, smoothed: against games whose every strategy is tried, exact sums, and epochs enumerated view by view."""

from __future__ import annotations

import math
from fractions import Fraction as F
from functools import cache

import numpy as np
import oracles as o
import pytest
from scipy.stats import multinomial
from test_truths import epochs

from pld_shuffle.pairs import sequence
from pld_shuffle.pairs.sequence import Law, SequencePair, dominating, smoothed_call


def game(p: float, s: float, v: float, n: int) -> float:
    """The largest E(L_1 + ... + L_n)_+ over all who choose a moved extreme law, or V's, knowing the sum so far."""
    corners = {"A": (p, 1.0), "B": (1.0, p), "C": (1 / p, 1.0), "D": (1.0, 1 / p), "E": (p, p), "F": (1 / p, 1 / p)}
    shrink = {name: 1.0 - v * (a - 1.0) for name, (a, _) in corners.items()}
    value = {name: (a - s * b) / shrink[name] for name, (a, b) in corners.items()}
    laws = [{"A": 1, "C": p}, {"B": 1, "D": p}, {"E": 1, "F": p}, {"A": 1, "B": 1, "F": p}, {"E": 1, "C": p, "D": p}]

    @cache
    def best(left: int, seen: tuple[str, ...]) -> float:
        if left == 0:
            return max(sum(value[name] for name in seen), 0.0)
        after = {name: best(left - 1, tuple(sorted((*seen, name)))) for name in corners}
        found = []
        for law in laws:
            total = math.fsum(law.values())
            found.append(math.fsum(mass / total * shrink[name] * after[name] for name, mass in law.items()))
        return max(found)

    return best(n, ())


def test_one_law_is_above_every_strategy() -> None:
    """For v anywhere in the interval that the law is for; n to 6."""
    rng = np.random.default_rng(18)
    seen, closest = 0, math.inf
    for _ in range(150):
        over, n = math.expm1(rng.uniform(0.05, 3.0)), int(rng.integers(1, 7))
        growth = over * rng.uniform(0.0, 0.9) * rng.uniform(0.0, 1.0)
        p, s = 1.0 + over, 1.0 + growth
        before, after = np.sort(rng.uniform(0.0, 0.9, 2)) / (p * s - 1.0 + 1e-9)
        lam = 10.0 ** rng.uniform(-2.0, 1.0) / math.sqrt(p + 1.0 / p - 2.0)
        law, known = dominating(over, *np.array([[growth], [before], [after]]), lam)
        if known[0]:
            bound = float(smoothed_call(law, n, np.array([growth]), lam)[0])
            for share in (0.0, 0.4, 1.0):
                truth = game(p, s, float(before + share * (after - before)), n)
                assert truth <= bound
                closest, seen = min(closest, bound / max(truth, 1e-300)), seen + 1
    assert seen > 300 and closest < 1.12


def test_the_game_is_just_above_every_strategy(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a fine lattice; u anywhere below 1/p, where three laws are enough and where they are not."""
    monkeypatch.setattr(sequence, "FINE", 25)
    rng, above = np.random.default_rng(19), []
    for _ in range(60):
        p, n = math.exp(rng.uniform(0.05, 1.0)), int(rng.integers(1, 7))
        s, u = p ** rng.uniform(0.0, 0.9), 0.95 * rng.uniform(0.0, 1.0) / p
        above.append(sequence._game(math.log(p), s - 1.0, u, n, 1e-16) * n / game(p, s, u / (1.0 - u), n) - 1.0)
    assert min(above) > -1e-12 and max(above) < 6e-3 and np.median(above) < 1e-5


@pytest.mark.parametrize(("n", "lam"), [(30, 0.3), (100, 0.2), (200, 0.1)])
def test_the_call_lies_just_above_the_sum(n: int, lam: float) -> None:
    """Over all counts of three values, with E(x + Z)_+ = x_+ + exp(-lam |x|)/(2 lam)."""
    weight, growth = np.array([0.3, 0.25, 0.45]), 0.2
    value = np.array([1.5, -1.3, -(0.3 * 1.5 - 0.25 * 1.3) / 0.45])
    bound = smoothed_call(Law(weight[:, None], value[:, None]), n, np.array([growth]), lam)[0]
    high, low = np.indices((n + 1, n + 1)).reshape(2, -1)
    counts = np.column_stack([high, low, n - high - low])[high + low <= n]
    x = counts @ value - n * growth
    call = np.maximum(x, 0.0) + np.exp(-lam * np.abs(x)) / (2.0 * lam)
    truth = float(multinomial.pmf(counts, n, weight) @ call)
    assert truth <= bound <= truth * 1.003


@pytest.mark.parametrize(("k", "n", "size"), [(2, 3, 1), (2, 4, 2), (3, 3, 2)])
@pytest.mark.parametrize("p", [2, 9])
def test_theorem_q_holds_for_epochs(k: int, n: int, size: int, p: int) -> None:
    """By itself, without stronger clones, at several scales of smoothing."""
    ordered, eps = SequencePair(math.log(p), n), np.linspace(0.0, 0.99 * math.log(p), 12)
    bounds = [ordered.bound(np.expm1(eps), lam) for lam in (ordered.smoothing, 0.1, 10.0)]
    bounds.append(ordered.upper(np.expm1(eps), 1e-12))
    for pair in epochs(k, n, size, F(p)):
        truth = np.array([float(o.hockey_stick(pair, F(math.exp(e)))) for e in eps])
        assert all(np.all(truth <= bound * (1 + 1e-12)) for bound in bounds)
