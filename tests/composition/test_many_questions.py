"""Many questions at once against the same questions one by one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pld_shuffle import Accountant, Gaussian, Mechanism, ShuffledLDP, ShuffledRR
from pld_shuffle.composition.composition import Composition
from pld_shuffle.composition.contour import Contour
from pld_shuffle.composition.product import LatticeReading
from pld_shuffle.composition.reading import (
    GaussianReading,
    Question,
    Reading,
    read_deltas,
    read_epsilons,
)

CLONES = ShuffledLDP(eps0=1.0, n=1_000, analysis="stronger-clones")
CASES: dict[str, tuple[Mechanism, int, type[Reading], float]] = {
    "lattice": (CLONES, 12, LatticeReading, 1e-6),
    "contour": (CLONES, 400, Contour, 1e-6),
    "noise": (Gaussian(sigma=4.0), 3, GaussianReading, 1e-5),
    "mass at infinity": (ShuffledRR(k=3, n=40, gamma=0.5), 8, LatticeReading, 1e-2),
    "near the largest loss": (ShuffledLDP(2.0, 3, analysis="stronger-clones"), 5, Reading, 1e-4),
}


@pytest.fixture(scope="module", params=list(CASES))
def asked(request: pytest.FixtureRequest) -> tuple[Reading, float, float, float]:
    """A reading, the largest loss, and an epsilon with its delta."""
    mechanism, rounds, kind, delta = CASES[request.param]
    composition = Composition([(mechanism.pair, rounds)], 1e-3)
    eps = composition.epsilons(delta).upper
    reading = composition.latest
    assert isinstance(reading, kind)
    return reading, composition.max_loss, eps, delta


def test_bounds_are_those_of_one_epsilon(asked: tuple[Reading, float, float, float]) -> None:
    reading, largest, eps, _ = asked
    values = np.concatenate((eps * np.linspace(0.7, 1.3, 41), [0.0, 100.0 * eps]))
    values = values[values < largest]
    lower, upper = reading.lowers(values), reading.uppers(values)
    for k in range(values.size):
        one = values[k : k + 1]
        assert lower[k] == pytest.approx(reading.lowers(one)[0], rel=1e-12, abs=1e-290)
        assert upper[k] == pytest.approx(reading.uppers(one)[0], rel=1e-12, abs=1e-290)
    below, above, width = read_deltas(reading, values, largest)
    assert np.array_equal(below, lower) and np.array_equal(above, upper)
    assert np.all(width >= 0.0)


def test_epsilons_are_ends_that_were_asked_for(asked: tuple[Reading, float, float, float]) -> None:
    reading, largest, _, delta = asked
    deltas = delta * np.geomspace(0.2, 5.0, 25)
    lower, upper, width = read_epsilons(reading, deltas, largest)
    for k, one in enumerate(deltas.tolist()):
        if not (math.isfinite(width[k]) and math.isfinite(upper[k])):
            continue
        assert reading.uppers(upper[k : k + 1])[0] <= one or upper[k] == largest
        assert reading.lowers(lower[k : k + 1])[0] > one or lower[k] == 0.0
        found, _ = Question(delta=one).answer(reading, largest)
        assert upper[k] == pytest.approx(found.upper, rel=1e-8)
        assert lower[k] == pytest.approx(found.lower, rel=1e-8)


def test_an_array_is_answered_like_its_numbers() -> None:
    deltas = np.array([[0.0, 1e-290, 1e-12], [1e-6, 0.5, 1.0]])
    one = Accountant().compose(CLONES, 12)
    found = one.epsilon_bounds(deltas)
    assert found.lower.shape == found.upper.shape == deltas.shape
    for place, delta in np.ndenumerate(deltas):
        alone = Accountant().compose(CLONES, 12).epsilon_bounds(float(delta))
        assert found.lower[place] <= alone.upper and alone.lower <= found.upper[place]
        assert found.upper[place] == pytest.approx(alone.upper, rel=1e-3)
    epsilons = np.array([0.0, 0.3, 1.0, 11.9, 12.0, 50.0, math.inf])
    spent = one.delta_bounds(epsilons)
    for k, eps in enumerate(epsilons.tolist()):
        single = Accountant().compose(CLONES, 12).delta_bounds(eps)
        assert spent.lower[k] <= single.upper and single.lower <= spent.upper[k]
    assert one.get_epsilon(np.empty(0)).shape == (0,)
    assert np.all(Accountant().get_epsilon(deltas) == 0.0)


def test_an_end_of_the_range_behind_a_contour() -> None:
    """After the first answer nothing is left for its law: the other epsilon is beyond the largest loss."""
    composition = Composition([(CLONES.pair, 400)], 1e-3)
    found = composition.deltas(np.array([0.5, math.inf]))
    assert isinstance(composition.latest, Contour)
    assert 0.0 < found.lower[0] <= found.upper[0] and found.upper[1] == 0.0
