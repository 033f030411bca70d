"""The sketch steers and certifies nothing: its K, K' and K'' and its saddle points are near the truth."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import reference as r

from pld_shuffle import ShuffledLDP, ShuffledRR
from pld_shuffle.composition.plan import Plan, Sketch

LEDGER = [
    (ShuffledLDP(eps0=1.0, n=2_000, analysis="stronger-clones").pair, 6),
    (ShuffledRR(k=4, n=100, gamma=0.5, adversary="weak").pair, 2),
]
PAIRS = [(r.stronger_clones(2_000, 1.0), 6), (r.weak(100, 4, 0.5), 2)]


def truth(tilt: float) -> tuple[float, float, float]:
    """K, K' and K'' of the ledger by the reference's atoms."""
    total = np.zeros(3)
    for mixture, count in PAIRS:
        p, q = r.atoms(mixture)
        loss = np.log(p / q)
        weight = p * np.exp(tilt * loss)
        mass = weight.sum()
        mean = weight @ loss / mass
        total += count * np.array([math.log(mass), mean, weight @ (loss - mean) ** 2 / mass])
    return tuple(total)


@pytest.mark.parametrize("tilt", [0.0, 0.5, 3.0, 20.0])
def test_moments(tilt: float) -> None:
    found, exact = Sketch(LEDGER, 1e-30).moments(tilt), truth(tilt)
    for ours, theirs in zip(found, exact, strict=True):
        assert ours == pytest.approx(theirs, rel=0.1, abs=1e-3)


@pytest.mark.parametrize("eps", [0.1, 0.5, 1.5, 3.0])
def test_the_saddle_has_the_mean_asked_for(eps: float) -> None:
    """To the 0.1 % it promises on the tilt, by the sketch; to 10 %, by the truth."""
    sketch = Sketch(LEDGER, 1e-30)
    tilt = sketch.saddle(eps)
    assert sketch.moments(tilt)[1] >= eps >= sketch.moments(tilt * (1.0 - 2e-3))[1]
    assert truth(tilt)[1] == pytest.approx(eps, rel=0.1)


def test_the_saddle_is_clamped_at_zero_and_at_the_largest_loss() -> None:
    sketch = Sketch(LEDGER, 1e-30)
    assert sketch.saddle(-1.0) == 0.0
    assert math.isfinite(sketch.saddle(1e9)) and sketch.saddle(1e9) > 0.0
    assert sketch.saddle_of_delta(0.0) == 0.0


# --- the plan: steps and windows ---------------------------------------------------------------


@pytest.fixture(scope="module")
def plan() -> Plan:
    sketch = Sketch(LEDGER, 1e-30)
    tilt = sketch.saddle(1.0)
    log_delta = sketch.log_delta(tilt, 1.0)
    return Plan.steered(sketch, tilt, LEDGER, log_delta=log_delta, rtol=1e-3)


def test_steps_spend_the_budget_of_the_lattice(plan: Plan) -> None:
    """laws (t^2 + t) h^2 / 8 = rtol / 2 times the lattice's share, whatever the number of laws."""
    for laws in (1, 10, 1_000):
        one = replace(plan, rounds=laws)
        spent = laws * one.sensitivity * one.step**2 / 8.0
        assert spent == pytest.approx(0.5 * plan.rtol * plan.lattice_share, rel=1e-12)
