"""Polygons from dots: a lower one is nowhere above the profile, an upper one nowhere below."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from pld_shuffle import Accountant, DiscretePair
from pld_shuffle.mechanisms.shuffled import Blanket
from pld_shuffle.numerics.sides import Bounds, Side
from pld_shuffle.pairs.profile import ProfilePoints, points, profile_atoms
from pld_shuffle.randomizers import HadamardResponse, UnaryEncoding


@pytest.mark.parametrize("seed", range(150))
def test_polygons_and_kinks_anywhere(seed: int) -> None:
    """Kinks of any size at, close to, and between dots; noisy dots; mass at infinity or none."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 5))
    loss = np.sort(rng.uniform(0.02, 0.6, count))
    mass = 0.4 * rng.dirichlet(np.ones(count + 1))
    infinite = float(mass[0] * rng.choice([0.0, 1e-6, 0.1]))
    mass = mass[1:] * rng.choice([1.0, 1e-4, 1e-9], size=count)

    def profile(growth: np.ndarray) -> np.ndarray:
        parts = -np.expm1(np.log1p(growth)[:, None] - loss)
        return infinite + np.sum(mass * np.maximum(0.0, parts), axis=1)

    near = loss - 0.02 * rng.choice([0.0, 1e-3, 1e-5, 1e-6, -1e-6, -1e-5, -1e-3], size=count)
    places = np.concatenate(([0.0], near, rng.uniform(1e-3, 1.1 * loss[-1], 20)))
    places = np.unique(places)
    places = places[np.append(True, np.diff(places) > 1e-9)]
    growth = np.expm1(places)
    values = profile(growth)
    noise = float(rng.choice([0.0, 1e-12, 1e-6, 1e-3]))
    low, high = (values * (1.0 + sign * noise * rng.random(values.size)) for sign in (-1, 1))
    known = ProfilePoints(growth, low, high, infinity=infinite * (1.0 - 1e-15))
    asked = np.sort(np.concatenate((growth, np.expm1(loss), rng.uniform(0.0, growth[-1], 100))))
    truth = profile(asked)
    for side, sign in ((Side.LOWER, 1.0), (Side.UPPER, -1.0)):
        found = profile_atoms(known, known, side)
        gains = -np.expm1(np.log1p(asked)[:, None] - found.loss)
        read = found.infinite + np.sum(found.mass * np.maximum(0.0, gains), axis=1)
        assert np.max(sign * (read - truth)) < 1e-14


@pytest.mark.parametrize("distance", [1e-3, 1e-6, 1e-9, 1e-12])
def test_near_the_largest_loss_of_a_pair_with_tiny_masses(distance: float) -> None:
    """A tiny mass makes losses uncertain; the lower end must not lean on the rounded largest loss."""
    log_p = tuple(map(float, (math.log(0.5), math.log(0.25), -690.0, math.log(0.25))))
    log_q = (log_p[1], log_p[0], -690.0, log_p[3])
    eps = math.log(2.0) - distance
    with mpmath.workdps(40):
        truth = sum(
            max(mpmath.mpf(0), mpmath.exp(p) - mpmath.exp(eps) * mpmath.exp(q))
            for p, q in zip(log_p, log_q, strict=True)
        )
    found = Accountant(rtol=1.0).compose(DiscretePair(log_p, log_q)).delta_bounds(eps)
    assert found.lower <= truth <= found.upper


@pytest.mark.parametrize("eps0", [1e-8, 1e-6, 1e-3, 1.0])
def test_largest_loss_of_a_blanket_is_not_below_eps0(eps0: float) -> None:
    """Ratios of rounded masses: the error of their logarithm is absolute."""
    for randomizer in (UnaryEncoding(k=4, eps0=eps0), HadamardResponse(k=5, eps0=eps0)):
        mechanism = Blanket(randomizer, 10)
        assert mechanism.pair.max_loss.lower <= eps0 <= mechanism.pair.max_loss.upper


@pytest.mark.parametrize("rate", [1e-3, 0.3, 5.0])
@pytest.mark.parametrize("heavy", [False, True])
@pytest.mark.parametrize("largest", [math.inf, 7.0, 0.5])
def test_points_end_where_nothing_is_left(rate: float, heavy: bool, largest: float) -> None:
    """The last point is below what is missed, and not far behind the first one that is; or it is the largest loss."""
    asked = []

    def height(loss: np.ndarray) -> np.ndarray:
        x = loss / rate
        tail = np.exp(-x if heavy else -0.5 * x * x) * 0.4 * min(rate, 1.0) + 1e-6
        return np.where(loss < largest, tail, 1e-6)

    def profile(growth: np.ndarray) -> Bounds:
        asked.append(growth.size)
        return Bounds(height(np.log1p(growth)), height(np.log1p(growth)))

    found = points(
        profile, width=0.1 * rate, missed=1e-13, scale=rate, max_loss=largest, infinity=1e-6
    )
    last = math.log1p(float(found.growth[-1]))
    assert height(np.array([last]))[0] <= 1e-6 * (1.0 + 1e-10) + 1e-13 or last >= 0.999 * largest
    before = height(np.array([0.9 * last]))[0]
    assert before > 1e-6 + 1e-13 or last >= 0.999 * largest
    assert sum(size == 1 for size in asked) <= 14
