"""The way from a profile to atoms, on both sides; and central noise. Pairs given by masses: test_truths.py."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import oracles as o
import pytest

from pld_shuffle import Accountant, DiscretePair, Gaussian, Laplace, Side
from pld_shuffle.composition.moments import Rounds
from pld_shuffle.mechanisms.shuffled import Blanket
from pld_shuffle.pairs.pair import Resolution
from pld_shuffle.pairs.profile import ProfilePoints, profile_atoms
from pld_shuffle.pairs.slots import SlotLaw
from pld_shuffle.randomizers import HadamardResponse, UnaryEncoding

# --- Polygons from dots: a lower one is nowhere above the profile, an upper one nowhere below ---


@pytest.mark.parametrize("seed", range(150))
def test_polygons_and_kinks_anywhere(seed: int) -> None:
    """Kinks of any size at, close to, and between dots; noisy dots; mass at infinity or none."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 5))
    loss = np.sort(rng.uniform(0.02, 0.6, count))
    mass = 0.4 * rng.dirichlet(np.ones(count + 1))
    infinity_mass = float(mass[0] * rng.choice([0.0, 1e-6, 0.1]))
    mass = mass[1:] * rng.choice([1.0, 1e-4, 1e-9], size=count)

    def profile(expm1_eps: np.ndarray) -> np.ndarray:
        parts = -np.expm1(np.log1p(expm1_eps)[:, None] - loss)
        return infinity_mass + np.sum(mass * np.maximum(0.0, parts), axis=1)

    near = loss - 0.02 * rng.choice([0.0, 1e-3, 1e-5, 1e-6, -1e-6, -1e-5, -1e-3], size=count)
    places = np.concatenate(([0.0], near, rng.uniform(1e-3, 1.1 * loss[-1], 20)))
    places = np.unique(places)
    places = places[np.append(True, np.diff(places) > 1e-9)]
    expm1_eps = np.expm1(places)
    values = profile(expm1_eps)
    noise = float(rng.choice([0.0, 1e-12, 1e-6, 1e-3]))
    low, high = (values * (1.0 + sign * noise * rng.random(values.size)) for sign in (-1, 1))
    known = ProfilePoints(expm1_eps, low, high, infinity=infinity_mass * (1.0 - 1e-15))
    asked = np.sort(np.concatenate((expm1_eps, np.expm1(loss), rng.uniform(0.0, expm1_eps[-1], 100))))
    truth = profile(asked)
    for side, sign in ((Side.LOWER, 1.0), (Side.UPPER, -1.0)):
        found = profile_atoms(known, known, side)
        gains = -np.expm1(np.log1p(asked)[:, None] - found.loss)
        read = found.infinity_mass + np.sum(found.mass * np.maximum(0.0, gains), axis=1)
        assert np.max(sign * (read - truth)) < 1e-14


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_last_line_that_hardly_falls() -> None:
    """It met the value at infinite loss beyond the largest number: the lower law had a mass that was no number."""
    values = np.array([0.6, 0.56, 0.55 + 2e-16, 0.55])
    known = ProfilePoints(np.array([0.0, 1.0, 1e200, 1e300]), values, values, infinity=0.5)
    found = profile_atoms(known, known, Side.LOWER)
    assert np.all(found.mass >= 0.0) and np.all(np.isfinite(found.loss)) and found.infinity_mass <= 0.5
    assert found.mass.sum() + found.infinity_mass <= 1.0


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


# --- Central mechanisms: against closed forms in high precision, and one exactly composed case ---


@pytest.mark.parametrize(("sigma", "rounds"), [(0.3, 1), (1.0, 4), (10.0, 100), (50.0, 10_000)])
def test_gaussian_rounds_are_one_gaussian(sigma: float, rounds: int) -> None:
    """k rounds of noise sigma are one of sigma / sqrt(k): enclosed and tight down to 1e-90."""
    mu = math.sqrt(rounds) / sigma
    accountant = Accountant().compose(Gaussian(sigma=sigma), rounds)
    for z in (0.0, 1.0, 4.0, 9.0, 19.0):
        eps = 0.5 * mu * mu + z * mu
        truth = o.gaussian(mu, eps)
        lower, upper = accountant.delta_bounds(eps)
        assert lower <= truth <= upper
        assert upper <= 1.001 * lower


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


@pytest.mark.parametrize("groups, n", [(2, 300), (2, 2900), (3, 1), (3, 90), (3, 400), (4, 25)])
@pytest.mark.parametrize("rate", [1.0, 1e-3])
def test_listed_views_enclose_the_profile_of_the_contour(groups: int, n: int, rate: float) -> None:
    rng = np.random.default_rng(groups * n)
    first, second, others = rng.dirichlet(np.full(groups, 2.0), 3)
    law = SlotLaw(n, rate * first + (1 - rate) * others, rate * second + (1 - rate) * others, others, True, 1e-15)
    pair = law.ordered_pair()
    assert law.views(1e-25, 2e6) is not None
    for knots in (None, np.array([0, 1, 2, 5, 11, 30])):
        resolution = Resolution(0.01 * pair.scale, truncated_mass=1e-25, knots=knots)
        ends = []
        eps = np.linspace(0.0, 5.0 * pair.scale, 11)
        for rounds, sign in zip(Rounds.of(pair, 1, {pair: resolution}), (-1.0, 1.0), strict=True):
            gone = eps[:, None] - rounds.loss - sign * rounds.loss_error
            ends.append(-np.expm1(np.minimum(gone, 0.0)) @ rounds.mass + rounds.infinity_mass)
        known = law.profile(np.expm1(eps), 1e-7)
        assert np.all(ends[0] <= known.upper * (1 + 1e-13)) and np.all(known.lower <= ends[1] * (1 + 1e-13))
        assert n == 1 or ends[1][5] <= 1.1 * ends[0][5]
