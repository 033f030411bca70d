"""Central mechanisms: against closed forms in high precision, and one exactly composed case."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from pld_shuffle import Accountant, Gaussian, Laplace, ShuffledLDP, Subsampled
from pld_shuffle.renyi import renyi_bounds


def gaussian_delta(mu: float, eps: float) -> mpmath.mpf:
    with mpmath.workdps(60):
        mu, eps = mpmath.mpf(mu), mpmath.mpf(eps)
        return mpmath.ncdf(mu / 2 - eps / mu) - mpmath.exp(eps) * mpmath.ncdf(-mu / 2 - eps / mu)


@pytest.mark.parametrize("sigma", [0.1, 0.7, 3.0, 40.0, 1e5])
def test_the_gaussian_profile_is_enclosed(sigma: float) -> None:
    """The profile's own bounds, from epsilon 0 to far out: enclosed, and to 1e-5 of itself."""
    mechanism = Gaussian(sigma=sigma)
    eps = np.append(0.0, np.geomspace(0.01, 15.0, 40) / sigma + 0.5 / sigma**2)
    found = mechanism.pair.profile(np.expm1(eps), 0.0, 0.0)
    for lower, upper, at in zip(found.lower, found.upper, eps, strict=True):
        truth = gaussian_delta(1.0 / sigma, at)
        assert lower <= truth <= upper
        assert upper - lower <= truth * 1e-5 + mpmath.mpf("1e-250")


@pytest.mark.parametrize(("sigma", "rounds"), [(0.3, 1), (1.0, 4), (10.0, 100), (50.0, 10_000)])
def test_gaussian_rounds_are_one_gaussian(sigma: float, rounds: int) -> None:
    """k rounds of noise sigma are one of sigma / sqrt(k): enclosed and tight down to 1e-90."""
    mu = math.sqrt(rounds) / sigma
    accountant = Accountant().compose(Gaussian(sigma=sigma), rounds)
    for z in (0.0, 1.0, 4.0, 9.0, 19.0):
        eps = 0.5 * mu * mu + z * mu
        truth = gaussian_delta(mu, eps)
        lower, upper = accountant.delta_bounds(eps)
        assert lower <= truth <= upper
        assert upper <= 1.001 * lower


def test_laplace_profile_and_limit() -> None:
    """One round has a closed form; at epsilon = t nothing is left, just below it something is."""
    accountant = Accountant().compose(Laplace(scale=2.0))
    for eps in (0.0, 0.1, 0.3, 0.49, 0.4999999):
        truth = -math.expm1((eps - 0.5) / 2)
        lower, upper = accountant.delta_bounds(eps)
        assert lower <= truth * (1 + 1e-14) and truth <= upper * (1 + 1e-14)
        assert upper <= 1.001 * lower
    assert accountant.delta_bounds(0.5) == (0.0, 0.0)
    assert accountant.epsilon_bounds(0.0) == (0.5, 0.5)


@pytest.mark.parametrize("rounds", [2, 5])
def test_laplace_rounds_by_quadrature(rounds: int) -> None:
    """The composed divergence by numerical convolution of the exact law of the loss."""
    t, step = Fraction(1, 2), 2**-13
    points = int(t / Fraction(step))
    # Under P the loss is t with probability 1/2, -t with e^-t / 2, else has density e^((l - t)/2) / 4.
    edges = (np.arange(-points, points + 1) - 0.5) * step
    cdf = 0.5 * np.exp((np.clip(edges, -0.5, 0.5) - 0.5) / 2)
    mass = np.append(np.diff(cdf), 0.5 - cdf[-1])
    mass[0] += cdf[0]
    mass[-1] += 0.5
    law = mass
    for _ in range(rounds - 1):
        law = np.convolve(law, mass)
    losses = (np.arange(law.size) - rounds * points) * step
    accountant = Accountant().compose(Laplace(scale=2.0), rounds)
    for eps in (0.1, 0.6, 0.9):
        truth = float(np.sum(law * np.maximum(-np.expm1(eps - losses), 0.0)))
        lower, upper = accountant.delta_bounds(eps)
        assert lower <= truth * (1 + 1e-6) and truth <= upper * (1 + 1e-6)
        assert upper <= 1.001 * lower


def test_a_local_and_central_pipeline() -> None:
    """Rounds of both kinds in one ledger cost more than either, and no more than their basic sum."""
    local, central = (
        ShuffledLDP(eps0=2.0, n=10_000, analysis="stronger-clones"),
        Gaussian(sigma=20.0),
    )
    both = Accountant().compose(local, 20).compose(central, 50).get_epsilon(1e-6)
    one = Accountant().compose(local, 20).get_epsilon(5e-7)
    other = Accountant().compose(central, 50).get_epsilon(5e-7)
    assert max(one, other) < both < one + other


@pytest.mark.parametrize("rate", [0.01, 0.5, 1.0])
def test_subsampled_gaussian_single_round(rate: float) -> None:
    """One round on a cohort: q H at 1 + (e^eps - 1)/q, exactly."""
    accountant = Accountant().compose(
        Subsampled(Gaussian(sigma=0.8), rate=rate, analysis="general")
    )
    for eps in (0.0, 0.2, 1.0):
        inner = math.log1p(math.expm1(eps) / rate)
        truth = rate * float(gaussian_delta(1.25, inner))
        lower, upper = accountant.delta_bounds(eps)
        assert lower <= truth * (1 + 1e-12) and truth <= upper * (1 + 1e-12)
        assert upper <= 1.001 * lower


def test_renyi_divergences_are_the_closed_forms() -> None:
    """Against the same formulas in 50 digits, and against epsilon from the Renyi accountant."""
    for order in (1.5, 2.0, 17.0):
        found = renyi_bounds(Gaussian(sigma=3.0, sensitivity=2.0), order).upper
        assert found == pytest.approx(order * 2 / 9, rel=1e-12)
        with mpmath.workdps(50):
            t, a = mpmath.mpf(1) / 4, mpmath.mpf(order)
            terms = a * mpmath.exp((a - 1) * t) + (a - 1) * mpmath.exp(-a * t)
            exact = mpmath.log(terms / (2 * a - 1)) / (a - 1)
        found = renyi_bounds(Laplace(scale=4.0), order).upper
        assert exact <= found <= exact * (1 + 1e-10)
