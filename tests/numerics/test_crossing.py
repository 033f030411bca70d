"""Crossings: on the right side, near, and found in few steps, also for steps, plateaus and infinities."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pld_shuffle.numerics.crossing import NEXT, crossing

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
