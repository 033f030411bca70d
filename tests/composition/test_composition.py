"""Whole compositions against reference.py: the two brackets overlap, and the library's is narrow; and the
plan's arithmetic (steps, windows), which affects speed only."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import reduce

import pytest

from pld_shuffle import Accountant, ShuffledLDP, ShuffledRandomizer, ShuffledRR
from pld_shuffle import reference as r
from pld_shuffle.composition.plan import Plan
from pld_shuffle.composition.sketch import Sketch

LEDGERS = {
    "clones": [(ShuffledLDP(eps0=1.0, n=1_000, analysis="clones"), r.clones(1_000, 1.0), 12)],
    "strong": [(ShuffledRR(k=4, n=300, gamma=0.25), r.strong(300, 4, 0.25), 5)],
    "mixed": [
        (ShuffledLDP(eps0=1.0, n=2_000, analysis="stronger-clones"), r.stronger_clones(2_000, 1.0), 6),
        (ShuffledRR(k=4, n=100, gamma=0.5, adversary="weak"), r.weak(100, 4, 0.5), 2),
        (ShuffledRandomizer(50, eps0=0.5, tv=0.1), r.reduction(50, math.exp(0.5), 0.1, math.exp(0.5)), 4),
    ],
}  # fmt: skip


def bracket(name: str, step: float) -> tuple[r.Lattice, r.Lattice]:
    """The reference's two laws of a ledger."""
    ends = []
    for place in (r.merge_up, r.connect_dots):
        laws = []
        for _, mixture, count in LEDGERS[name]:
            laws += [place(r.atoms(mixture), step)] * count
        ends.append(reduce(r.compose, laws))
    return ends[0], ends[1]


@pytest.mark.parametrize("name", LEDGERS)
def test_delta_and_epsilon(name: str) -> None:
    """Both brackets hold the truth, so they overlap; the library's is within rtol."""
    lower, upper = bracket(name, 2e-3)
    accountant = Accountant(rtol=1e-3)
    for mechanism, _, count in LEDGERS[name]:
        accountant.compose(mechanism, count)
    for eps in (0.0, 0.2, 0.7, 1.5, 2.5):
        found = accountant.delta_bounds(eps)
        below, above = r.delta(lower, eps), r.delta(upper, eps)
        assert found.lower <= above * (1.0 + 1e-12) and found.upper >= below * (1.0 - 1e-12)
        assert found.upper <= (1.0 + 1e-3) * found.lower
        assert above <= 1.2 * below  # so that the two lines above say something
    for delta in (0.1, 1e-3, 1e-9):
        found = accountant.epsilon_bounds(delta)
        assert found.lower <= r.epsilon(upper, delta) * (1.0 + 1e-12)
        assert found.upper >= r.epsilon(lower, delta) * (1.0 - 1e-12)


@pytest.fixture(scope="module")
def plan() -> Plan:
    ledger = [(mechanism.pair, count) for mechanism, _, count in LEDGERS["mixed"]]
    sketch = Sketch(ledger, 1e-30)
    tilt = sketch.saddle(1.0)
    log_delta = sketch.log_delta(tilt, 1.0)
    return Plan.steered(sketch, tilt, ledger, log_delta=log_delta, rtol=1e-3)


def test_steps_spend_the_budget_of_the_lattice(plan: Plan) -> None:
    """laws (t^2 + t) h^2 / 8 = rtol / 2 times the lattice's share, whatever the number of laws."""
    for laws in (1, 10, 1_000):
        one = replace(plan, rounds=laws)
        spent = laws * one.sensitivity * one.step**2 / 8.0
        assert spent == pytest.approx(0.5 * plan.rtol * plan.lattice_share, rel=1e-12)


def test_windows_follow_delta_and_share(plan: Plan) -> None:
    resolution = plan.resolution(1.0)
    assert resolution.missed * plan.rounds <= 0.021 * plan.rtol * math.exp(plan.log_delta)
    smaller = replace(plan, log_delta=plan.log_delta - 100.0).resolution(1.0)
    assert smaller.missed == pytest.approx(resolution.missed * math.exp(-100.0), rel=1e-9)
    finer = replace(plan, share=0.25).resolution(1.0)
    assert finer.size_width < resolution.size_width and finer.missed < resolution.missed
