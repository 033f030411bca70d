"""One round of a pair known by its profile: answers are read off it, and are bounds."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import oracles as o
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from pld_shuffle import Accountant, ShuffledLDP, Subsampled
from pld_shuffle.composition import one_round
from pld_shuffle.composition.composition import AccuracyWarning, Composition
from pld_shuffle.composition.one_round import OneRound
from pld_shuffle.numerics.sides import Bounds
from pld_shuffle.pairs.profile import ProfilePair, Several
from pld_shuffle.pairs.slots import SlotLaw


def gaussian(expm1_eps, sigma):
    """The profile of Gaussian noise of sensitivity 1."""
    eps = np.log1p(expm1_eps)
    return norm.sf(eps * sigma - 0.5 / sigma) - np.exp(eps + norm.logsf(eps * sigma + 0.5 / sigma))


@dataclass(frozen=True, eq=False)
class Given(ProfilePair):
    """The pair of a profile that is known to a relative `width`."""

    function: Callable[[np.ndarray], np.ndarray]
    width: float = 0.0
    largest: float = math.inf
    spread: float = 1.0

    def profile(self, expm1_eps, rtol, truncated_mass):
        value = self.function(expm1_eps)
        return Bounds(value * (1.0 - self.width), value * (1.0 + self.width))

    @property
    def max_loss(self):
        return Bounds(self.largest, self.largest)

    @property
    def scale(self):
        return self.spread


@pytest.mark.parametrize("sigma", [0.3, 1.0, 20.0])
@pytest.mark.parametrize("width", [0.0, 1e-6, 1e-4])
def test_gaussian_noise(sigma, width):
    known = Given(lambda expm1_eps: gaussian(expm1_eps, sigma), width=width, spread=1.0 / sigma)
    one = OneRound(known, 1e-3)
    for delta in (0.3, 1e-2, 1e-6, 1e-12):
        found, reached = one.epsilon(delta)
        assert reached <= 1e-3
        if gaussian(0.0, sigma) <= delta * (1.0 - width):
            assert found.upper == 0.0
            continue
        truth = brentq(lambda e, delta=delta: gaussian(math.expm1(e), sigma) - delta, 0.0, 300.0, xtol=1e-15)
        assert found.lower <= truth * (1 + 1e-12)
        assert truth <= found.upper * (1 + 1e-12)
        ratio = gaussian(math.expm1(found.lower), sigma) / gaussian(math.expm1(found.upper), sigma)
        assert ratio <= 1.0 + 2e-4 + 5.0 * width
        back, _ = one.delta(float(found.upper))
        assert back.lower <= delta * (1 + 1e-12) and back.upper <= delta * (1 + 1e-4 + 4.0 * width)


@pytest.mark.filterwarnings("ignore::pld_shuffle.AccuracyWarning")
def test_bounds_that_jump_are_enclosed():
    """Where values say too little by turns, both ends are still values that were asked for."""

    def jumping(expm1_eps):
        noisy = (expm1_eps > 1e3) & (expm1_eps < 1e9) & (np.sin(1e6 * np.log1p(expm1_eps)) > 0.0)
        return np.where(noisy, 1e-4, np.where(expm1_eps > 1e3, 1e-12, 2e-4))

    found, _ = OneRound(Given(jumping), 1e-3).epsilon(1e-6)
    assert math.log(1e3) <= found.lower <= found.upper <= math.log(1e9) * (1.0 + 1e-9)
    assert jumping(np.expm1(found.lower)) > 1e-6 >= jumping(np.expm1(found.upper * (1.0 + 1e-15)))


def test_few_questions_are_asked():
    asked = []

    def function(expm1_eps):
        asked.extend(expm1_eps)
        return gaussian(expm1_eps, 20.0)

    assert OneRound(Given(function, spread=0.05), 1e-3).epsilon(1e-6) is not None
    assert len(asked) <= 8


def test_profiles_that_are_not_enough():
    """Too wide a bracket, a profile that jumps at the largest loss or before, and one that never falls."""
    wide = OneRound(Given(lambda expm1_eps: gaussian(expm1_eps, 1.0), width=0.1), 1e-3)
    for found, width in (wide.epsilon(1e-6), wide.delta(0.5)):
        assert 0.2 < width < 0.6 and found.lower < found.upper
    with pytest.warns(AccuracyWarning, match="only"):
        Composition([(wide._pair, 1)], 1e-3).epsilons(1e-6)
    p = math.e
    steep = OneRound(Given(lambda expm1_eps: np.maximum((p - 1 - expm1_eps) / (p + 1), 0.0), largest=1.0), 1e-3)
    found, _ = steep.epsilon(1e-9)
    assert found.lower <= math.log(p - 1e-9 * (p + 1)) <= found.upper <= 1.0 + 1e-15
    assert steep.delta(one_round.LARGEST_LOSS + 1.0) is None
    jump = Given(lambda expm1_eps: np.where(expm1_eps < 1.0, 0.4 - 0.2 * expm1_eps, 0.0))
    found, width = OneRound(jump, 1e-3).epsilon(0.1)
    assert found.lower <= math.log(2.0) <= found.upper <= found.lower * (1 + 1e-9) and width == 0.0
    never = Given(lambda expm1_eps: np.full(expm1_eps.shape, 0.2))
    assert OneRound(never, 1e-3).epsilon(0.1) is None


def test_the_least_of_several():
    sharp, blunt = (
        Given(lambda expm1_eps, k=k, s=s: k * gaussian(expm1_eps, s), spread=1.0 / s)
        for k, s in ((1.0, 1.0), (0.1, 0.8))
    )
    both = Several((sharp, blunt))
    for delta in (0.2, 1e-3, 1e-9):
        each = [OneRound(pair, 1e-3).epsilon(delta)[0].upper for pair in (sharp, blunt)]
        assert Composition([(both, 1)], 1e-3).epsilons(delta).upper == pytest.approx(min(each), rel=1e-6)
    for eps in (0.1, 1.0, 4.0):
        each = [OneRound(pair, 1e-3).delta(eps)[0].upper for pair in (sharp, blunt)]
        assert Composition([(both, 1)], 1e-3).deltas(eps).upper == pytest.approx(min(each), rel=1e-6)


def test_next_to_the_largest_loss():
    """What rounding leaves there is no reason to form a law of thousands of points."""
    sampled = Subsampled(ShuffledLDP(0.7477887791966863, 66), population=1292, dropout=0.9)
    found = Accountant().compose(sampled).epsilon_bounds([1e-60, 1e-150])
    largest = math.log1p(66 / 1292 * math.expm1(0.7477887791966863))
    assert np.all(found.lower <= found.upper) and np.all(found.upper <= largest * (1 + 1e-12))
    assert found.lower[0] >= 0.99 * found.upper[0] and found.lower[1] >= largest * (1 - 1e-12)


def test_views_that_are_left_out_may_say_more_than_those_that_are_listed():
    """Where 1e-40 may be left out, delta is not 0 beyond what is listed. All views, in rationals."""
    first, second = ([Fraction(k, 1000) for k in masses] for masses in ((34, 66, 900), (32, 68, 900)))
    n, epsilons = 66, (0.03, 0.04, 0.05, 0.0602)
    law = SlotLaw.of(n, np.array([first, second, second], float), 1e-15, whole=True)
    values = [a / b - 1 for a, b in zip(first, second, strict=True)]
    growths = [Fraction(math.expm1(eps)) for eps in epsilons]
    # The third value is 0.
    truth = [o.mean_part([value - g for value in values[:2]], second[:2], n, -g) for g in growths]
    asked = np.array([float(g) for g in growths])
    some = law.views(1e-40, 30_000)
    for bounds in (law.profile(asked, 1e-8), some.profile(asked, 1e-8, 0.0)):
        for low, value, high in zip(bounds.lower, map(float, truth), bounds.upper, strict=True):
            assert low <= value * (1 + 1e-12) and value * (1 - 1e-12) <= high
    assert 0.0 < float(truth[-1]) < 1e-80 and some.truncated_mass < 1.1e-40
    bounds = law.profile(asked, 1e-8)
    assert np.all(bounds.upper <= 1.001 * bounds.lower)


def test_a_rest_of_the_size_of_rounding_is_not_left_out():
    """Losses that only a view with a blank report has; all views of two users, in rationals."""
    tiny, rest = Fraction(1, 2**60), Fraction(1, 2**52) - Fraction(1, 2**60)
    first, second, others = [2 * tiny, 1], [tiny, 1], [tiny, 1 - tiny - rest, rest]
    views = Counter()
    for target, other in itertools.product(range(2), range(3)):
        views[tuple(sorted((target, other)))] += np.array([first[target], second[target]], object) * others[other]
    truth = float(sum(max(p - Fraction(7, 4) * q, 0) for p, q in views.values()))
    for error in (0.0, 1e-15):
        law = SlotLaw.of(2, np.array([first, second, others[:2]], float), error, whole=False)
        bounds = law.profile(np.array([0.75]), 1e-6)
        assert bounds.lower[0] <= truth * (1 + 1e-14) and truth * (1 - 1e-14) <= bounds.upper[0]
    assert truth > 4e-35  # without it about 2e-37
