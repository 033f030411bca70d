"""Crossings: on the right side, near, and found in few steps, also for steps, plateaus and infinities."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pld_shuffle.numerics.search import NEXT, crossing, first_satisfying

FUNCTIONS = {
    "straight": lambda x: 0.3 - x,
    "curved": lambda x: math.exp(-50.0 * x) - 1e-9,
    "step": lambda x: 1.0 if x < 0.123 else -1e-300,
    "infinite": lambda x: math.inf if x < 0.2 else 0.7 - x,
    "plateau": lambda x: 1e-300 if x < 0.9 else 0.9 - x,
    "tiny": lambda x: 1e-11 - x,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_crossing_is_on_the_right_side_and_next_to_the_wrong_one(name: str) -> None:
    excess = FUNCTIONS[name]
    asked: list[float] = []

    def counted(x: float) -> float:
        asked.append(x)
        return excess(x)

    found = crossing(counted, (0.0, excess(0.0)), (1.0, excess(1.0)))
    assert excess(found) <= 0.0 < excess(found * (1.0 - 2.0 * NEXT))
    assert len(asked) < 270
    backwards = crossing(lambda x: -excess(x) or -1e-300, (1.0, 1.0), (0.0, -1.0))
    assert excess(backwards) >= 0.0


def test_a_crossing_may_stop_when_it_is_close() -> None:
    steps = 0

    def excess(x: float) -> float:
        nonlocal steps
        steps += 1
        return math.exp(-3.0 * x) - 0.5

    found = crossing(excess, (0.0, 0.5), (1.0, -0.4), close=1e-9)
    assert -1e-9 < math.exp(-3.0 * found) - 0.5 <= 0.0 and steps < 10


def test_many_crossings_are_those_of_each() -> None:
    rates = np.linspace(1.0, 60.0, 40)

    def excess(x: np.ndarray) -> np.ndarray:
        return np.exp(-rates * x) - 1e-3

    zero, one = np.zeros(40), np.full(40, 10.0)
    found = crossing(excess, (zero, excess(zero)), (one, excess(one)), close=1e-12)
    assert np.all(excess(found) <= 0.0)
    np.testing.assert_allclose(found, math.log(1e3) / rates, rtol=1e-8)


# --- The one-sided search, against functions whose answers are known ---

FALLING = {  # x -> excess, falling through 0 at x = root
    "line": lambda x, root: root - x,
    "log": lambda x, root: math.log(root / x),
    "steep": lambda x, root: math.exp(min(700.0, 50 * (root - x) / root)) - 1,
    "flat": lambda x, root: 1e-9 * math.atan(root / x - 1) ** 3,
    "jump": lambda x, root: -1.0 if x >= root else math.inf,
    "infinite before": lambda x, root: math.inf if x < root / 2 else root - x,
}


@pytest.mark.parametrize("name", FALLING)
@pytest.mark.parametrize("steps", [1, 240])
@settings(max_examples=30, deadline=None, derandomize=True)
@given(log_root=st.floats(-20, 5))
def test_the_end_is_found_and_satisfies(name, steps, log_root):
    root = math.exp(log_root)
    wanted = 1e-4 if name == "flat" else 1e-13  # a cubic root is flat: only its sign counts

    def falling(x):
        return FALLING[name](x, root)

    found = first_satisfying(falling, 1e-12, 1e3, steps=steps)
    assert falling(found) <= 0
    assert found <= root * (1 + wanted)

    def rising(x):
        return FALLING[name](1 / x, 1 / root)

    found = first_satisfying(rising, 1e12, 1e-12, steps=steps)
    assert rising(found) <= 0
    assert found >= root * (1 - wanted)


def test_a_stretch_in_the_middle():
    def excess(x):
        return (x - 3) * (x - 5)

    assert first_satisfying(excess, 1.0, 100.0) == pytest.approx(3, rel=1e-13)
    assert first_satisfying(excess, 100.0, 1.0) == pytest.approx(5, rel=1e-13)
    assert excess(first_satisfying(excess, 1.0, 100.0)) <= 0


def test_coarse_tolerance_stays_safe():
    evaluated = []

    def excess(x):
        evaluated.append(x)
        return 1 / x - 1 / math.pi

    found = first_satisfying(excess, 1e-9, 10.0, steps=1, rtol=1e-6)
    assert excess(found) <= 0
    assert found == pytest.approx(math.pi, rel=1e-5)
    assert len(evaluated) < 60
