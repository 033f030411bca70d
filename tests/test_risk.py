"""Attack risk against the Neyman-Pearson lemma: outcomes sorted by likelihood ratio, exactly.

The oracle knows nothing of epsilon or delta: it takes outcomes in the order of their ratio q/p until the false-positive
rate is used up, splitting the last one.
"""

from __future__ import annotations

import math
from functools import partial

import mpmath
import numpy as np
import oracles
import pytest
from mpmath import mpf
from test_honesty import exact_atoms, ldp

from pld_shuffle import Accountant, Bounds, ShuffledLDP, ShuffledRR, Subsampled
from pld_shuffle.risk import AttackRisk

RATES = (1e-12, 1e-6, 1e-3, 0.02, 0.1, 0.3, 0.45, 0.5, 0.6, 0.8, 0.97, 0.999, 1.0 - 1e-6)

CASES = {
    "ldp, one user": (ldp(1, 1.0), 1),
    "ldp": (ldp(4, 1.0), 3),
    "weak rr": (ShuffledRR(k=3, n=3, gamma=0.25, adversary="weak"), 2),
    "strong rr": (ShuffledRR(k=2, n=4, gamma=0.5), 2),
    "subsampled": (Subsampled(ldp(3, 1.0), rate=0.25, analysis="general"), 3),
}
E1 = oracles.exp_of(1.0)


class Truth:
    """A composed pair and its exact ROC curve."""

    def __init__(self, atoms: oracles.Atoms) -> None:
        ratios = oracles.canonical(atoms)  # ascending in p/q, so the first atoms speak for Q
        self.atoms = [tuple(map(oracles.to_mpf, atom)) for atom in ratios]
        exact = oracles.Composition([(atoms, 1)])
        self.delta, self.largest_loss = exact.delta, float(exact.largest_loss() * (1 + mpf("1e-15")))

    def power(self, rate: float) -> mpf:
        """The largest Q(A) over randomised tests with P(A) = rate."""
        left, found = mpf(rate), mpf(0)
        for mass_p, mass_q in self.atoms:
            if mass_p >= left:
                return found + (mass_q * left / mass_p if mass_p else mass_q)
            left -= mass_p
            found += mass_q
        return found


class Known:
    """Answers of an accountant from exact deltas, as wide as they are told to be."""

    def __init__(self, delta, largest_loss: float, width: float = 4e-16, seed: int = 0) -> None:
        self.delta, self.largest_loss, self.width = delta, largest_loss, width
        self.seed, self.noise = seed, np.random.default_rng(seed)
        self.asked = 0

    def delta_bounds(self, epsilon) -> Bounds:
        if np.ndim(epsilon):
            found = [self.delta_bounds(eps) for eps in np.asarray(epsilon)]
            return Bounds(*(np.array(side) for side in zip(*found, strict=True)))
        self.asked += 1
        if epsilon == math.inf:
            exact = 0.0 if self.largest_loss < math.inf else self.delta(2000.0)
        else:
            exact = self.delta(epsilon)
        below, above = 4e-16, 4e-16
        if self.width > below:  # the truth is at one of the two ends: all lower, all upper, or as it comes
            below, above = {0: (below, self.width), 1: (self.width, above)}.get(
                self.seed, self.noise.permutation([4e-16, self.width])
            )
        return Bounds(float(exact * (1 - mpf(below))), float(exact * (1 + mpf(above))))

    def epsilon_bounds(self, delta) -> Bounds:
        assert delta == 0.0
        return Bounds(self.largest_loss, self.largest_loss)


@pytest.fixture(scope="module", params=CASES, ids=str)
def case(request) -> tuple[Accountant, Truth]:
    mechanism, count = CASES[request.param]
    truth = Truth(oracles.power(exact_atoms(mechanism), count))
    return Accountant().compose(mechanism, count), truth


def width(bounds: Bounds) -> float:
    return float(bounds.upper / bounds.lower - 1.0) if bounds.lower > 0.0 else math.inf


# -- honesty ---------------------------------------------------------------------------------------------


def test_roc_curve_encloses_the_best_test(case) -> None:
    """TPR at every rate, against outcomes sorted by likelihood ratio."""
    accountant, truth = case
    risk = AttackRisk(accountant)
    hits = risk.true_positive_rate(RATES)
    for i, rate in enumerate(RATES):
        power = truth.power(rate)
        assert hits.lower[i] <= power <= hits.upper[i]


def test_advantage_encloses_the_total_variation(case) -> None:
    accountant, truth = case
    bounds = AttackRisk(accountant).advantage()
    exact = sum(abs(p - q) for p, q in truth.atoms) / 2
    assert bounds.lower <= exact <= bounds.upper
    assert width(bounds) <= 1e-3


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("noise", [1e-3, 0.5])
def test_wide_and_uneven_brackets_are_never_trusted(noise: float, seed: int) -> None:
    """Lines through badly known points would cheat if a lower bound stood where an upper one belongs."""
    truth = Truth(oracles.power(oracles.stronger_clones(3, E1), 2))
    risk = AttackRisk(Known(truth.delta, truth.largest_loss, noise, seed))
    fixed = float(1 - truth.delta(0.0)) / 2  # f(fixed) = fixed: the slope is about -1 there
    near = (fixed * (1 + shift) for shift in (-0.3, -0.03, 0.0, 0.01, 0.1, 0.5))
    for rate in (1e-6, 0.01, 0.2, *near, 0.6, 0.9, 0.999):
        power, hits = truth.power(rate), risk.true_positive_rate(rate)
        assert hits.lower <= power <= hits.upper


# -- tightness -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rtol", [1e-2, 1e-4, 1e-6])
def test_search_meets_its_tolerance_with_few_questions(rtol: float) -> None:
    """With exact deltas the search alone is left: it meets rtol."""
    truth = Truth(oracles.power(oracles.stronger_clones(3, E1), 2))
    for rate in RATES:
        known = Known(truth.delta, truth.largest_loss)
        assert width(AttackRisk(known, rtol=rtol).true_positive_rate(rate)) <= rtol
        assert known.asked <= 60


@pytest.mark.parametrize("deviation", [0.001, 1.0, 6.0])
def test_gaussian_trade_off(deviation: float) -> None:
    """Closed form: f(alpha) = Phi(Phi^-1(1 - alpha) - mu) (Dong, Roth and Su 2022)."""
    mu = mpf(deviation)
    risk = AttackRisk(Known(partial(oracles.gaussian, mu), math.inf), rtol=1e-5)
    for quantile in (-7.0, -4.75, -3.1, -1.0, 0.3, 2.0):
        rate = mpmath.ncdf(mpf(quantile))
        near = float(rate)
        exact = mpmath.ncdf(mpf(quantile) + (mpf(near) - rate) / mpmath.npdf(quantile) + mu)
        bounds = risk.true_positive_rate(near)
        assert bounds.lower <= exact * (1 + mpf(1e-12))
        assert bounds.upper >= exact * (1 - mpf(1e-12))
        assert width(bounds) <= 1e-5


# -- what a trade-off curve is -----------------------------------------------------------------------------


def test_ends_of_the_curve(case) -> None:
    """TPR is delta(inf) at 0, 1 at 1, and no test is worse than guessing without looking."""
    accountant, truth = case
    risk = AttackRisk(accountant)
    revealed = sum(q for p, q in truth.atoms if p == 0)
    hits = risk.true_positive_rate(0.0)
    assert hits.lower <= revealed <= hits.upper
    assert hits.upper - hits.lower <= 1e-9
    assert risk.true_positive_rate(1.0) == (1.0, 1.0)
    assert np.all(risk.true_positive_rate(RATES).lower >= RATES)


def test_rates_too_small_for_the_search() -> None:
    """Below 1e-90 the curve's neighbours bound it: between the chord from 0 and the value at 1e-90."""
    risk = AttackRisk(Accountant().compose(ShuffledLDP(eps0=1.0, n=1, analysis="stronger-clones")))
    bounds = risk.true_positive_rate(1e-120)
    assert bounds.lower <= oracles.exp_of(1.0) * mpf(1e-120) <= bounds.upper
    assert bounds.lower >= 2.7e-120
    assert bounds.upper <= 2.8e-90
