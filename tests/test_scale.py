"""Large sizes: a billion users, a million rounds, hundreds of cohorts; and refusing politely.

The truth comes from sums that share neither code nor method with the library (no buckets, no tilt,
no recurrence over atoms):

* one round of n users: given m coin labels, with b(A) = P(Bin(m, 1/2) = A) and the cut c,
      sum_{A >= c} b(A) ((1 + theta t) - alpha (1 - theta t))
          = (1 - alpha) P(A >= c) + (1 + alpha) theta c b(c) / m,
  since (2A - m) b(A) = A b(A) - (A+1) b(A+1) telescopes; every m within 7 standard deviations is
  summed. The incomplete beta function and the probabilities used are compared with 50-digit sums.
* rounds with one user: the loss is +-eps0, a lattice law that can be summed exactly;
* 300 cohorts: every atom, losses shared out linearly on two fine lattices, a plain FFT.

No test here looks at a clock.
"""

from __future__ import annotations

import math
import tracemalloc
from functools import cache

import numpy as np
import oracles as o
import pytest
from mpmath import mp, mpf
from scipy import special
from scipy.stats import binom

from pld_shuffle import Accountant, Bounds, Mechanism, ShuffledLDP, ShuffledRR, Side, Subsampled
from pld_shuffle.trajectory import epsilon_trajectory

RTOL = 1e-3
BILLION = 10**9
DOUBT = 1e-7  # relative; test_the_ingredients shows 1e-12, and the sum cancels to 1e-5 of its terms


# -- independent sums -------------------------------------------------------------------------------


def coin_delta(m: np.ndarray, theta: float, epsilon: float) -> np.ndarray:
    """Hockey-stick divergence of m tilted coins."""
    alpha = math.exp(epsilon)
    cut = np.floor(0.5 * m * (1.0 + math.tanh(0.5 * epsilon) / theta)) + 1.0
    tail = special.betainc(cut, m - cut + 1.0, 0.5)
    here = binom.pmf(cut, m, 0.5)
    return -math.expm1(epsilon) * tail + (1.0 + alpha) * theta * cut * here / m


@cache
def crowd(n: int, chance: float) -> tuple[np.ndarray, np.ndarray]:
    """(m, weight) for m - 1 ~ Bin(n-1, chance), all m within 7 standard deviations (all but 3e-12)."""
    middle, reach = round(n * chance), math.ceil(7.0 * math.sqrt(n * chance * (1.0 - chance)))
    others = np.arange(middle - reach, middle + reach + 1, dtype=float)
    return others + 1.0, binom.pmf(others, n - 1, chance)


def round_delta(mechanism: Mechanism, epsilon: float) -> float:
    """delta(epsilon > 0) of one round."""
    if isinstance(mechanism, Subsampled):
        q = mechanism.rate
        return q * round_delta(mechanism.mechanism, math.log1p(math.expm1(epsilon) / q))
    if isinstance(mechanism, ShuffledRR):
        assert mechanism.adversary == "strong"
        rate, theta, share = 2.0 * mechanism.gamma / mechanism.k, 1.0, 1.0 - mechanism.gamma
    else:
        assert isinstance(mechanism, ShuffledLDP)
        odds = math.exp(mechanism.eps0)
        rate = 1.0 / odds if mechanism.analysis == "clones" else 2.0 / (odds + 1.0)
        theta, share = math.tanh(0.5 * mechanism.eps0), 1.0
    m, weight = crowd(mechanism.n, rate)
    return share * math.fsum(weight * coin_delta(m, theta, epsilon))


def check(bounds: Bounds, truth: float, doubt: float, rtol: float = RTOL) -> None:
    assert bounds.lower <= truth * (1.0 + doubt), (bounds, truth)
    assert bounds.upper >= truth * (1.0 - doubt), (bounds, truth)
    assert bounds.upper <= (1.0 + rtol) * bounds.lower, (bounds, truth)


def test_the_ingredients() -> None:
    """Tails and probabilities against 50-digit sums, at the sizes used below."""
    with mp.workdps(50):
        m = 35_972_000
        for sigmas in (1.0, 2.5, 9.0):
            cut = m // 2 + round(sigmas * 0.5 * math.sqrt(m))
            here = mp.exp(
                mp.loggamma(m + 1) - mp.loggamma(cut + 1) - mp.loggamma(m - cut + 1) - m * mp.log(2)
            )
            assert binom.pmf(cut, m, 0.5) == pytest.approx(float(here), rel=1e-12)
            tail, term, heads = mpf(0), here, cut
            while term > here * mpf(10) ** -18:
                tail += term
                term *= mpf(m - heads) / (heads + 1)
                heads += 1
            found = special.betainc(float(cut), m - cut + 1.0, 0.5)
            assert found == pytest.approx(float(tail), rel=1e-12)
        rate = mpf(2) / (mp.exp(4) + 1)
        others = round(BILLION * float(rate)) + 20_000
        exact = mp.exp(
            mp.loggamma(BILLION) - mp.loggamma(others + 1) - mp.loggamma(BILLION - others)
            + others * mp.log(rate) + (BILLION - 1 - others) * mp.log(1 - rate)
        )  # fmt: skip
        near = binom.pmf(others, BILLION - 1, float(rate))
        assert near == pytest.approx(float(exact), rel=1e-11)
    _, weight = crowd(BILLION, 2.0 / (math.exp(4.0) + 1.0))
    assert math.fsum(weight) == pytest.approx(1.0, abs=2e-11)


# -- a billion users ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mechanism",
    [
        ShuffledLDP(eps0=4.0, n=BILLION, analysis="stronger-clones"),
        ShuffledLDP(eps0=3.0, n=BILLION, analysis="clones"),
        ShuffledRR(k=4, n=BILLION, gamma=0.25),
        Subsampled(
            ShuffledLDP(eps0=4.0, n=BILLION, analysis="stronger-clones"),
            population=100 * BILLION,
            analysis="general",
        ),
        ShuffledLDP(eps0=4.0, n=10**7, analysis="stronger-clones"),
    ],
    ids=["stronger clones", "clones", "strong", "subsampled", "ten million"],
)
def test_a_billion_users(mechanism: Mechanism) -> None:
    accountant = Accountant().compose(mechanism)
    for delta in (1e-6, 1e-16):
        bounds = accountant.epsilon_bounds(delta)
        truth = round_delta(mechanism, bounds.upper)
        check(accountant.delta_bounds(bounds.upper), truth, DOUBT)
        assert truth <= delta * (1.0 + DOUBT)
    assert round_delta(mechanism, bounds.lower) >= delta * (1.0 - DOUBT)


def test_the_checks_would_notice() -> None:
    """A bound that is off by 1e-3, or an n that is off by 1 %, is outside."""
    mechanism = ShuffledLDP(eps0=4.0, n=BILLION, analysis="stronger-clones")
    accountant = Accountant().compose(mechanism)
    epsilon = accountant.get_epsilon(1e-8)
    truth = round_delta(mechanism, epsilon)
    bounds = accountant.delta_bounds(epsilon)
    for factor in (1.0 - 1e-3, 1.0 + 1e-3):
        with pytest.raises(AssertionError):
            check(Bounds(bounds.lower * factor, bounds.upper * factor), truth, DOUBT)
    other = ShuffledLDP(eps0=4.0, n=BILLION + BILLION // 100, analysis="stronger-clones")
    with pytest.raises(AssertionError):
        check(bounds, round_delta(other, epsilon), DOUBT)


def test_more_users_never_hurt() -> None:
    """Neighbouring sizes from 10^2 to 10^12: brackets overlap or decrease."""
    previous = math.inf
    for exponent in range(2, 13):
        bounds = Accountant().compose(ShuffledLDP(eps0=3.0, n=10**exponent)).epsilon_bounds(1e-7)
        assert 0.0 < bounds.lower <= bounds.upper < previous
        previous = bounds.lower


# -- a million rounds ---------------------------------------------------------------------------------


def one_user_delta(eps0: float, rounds: int, epsilon: float) -> float:
    """`rounds` rounds of one user's randomised response: the losses +-eps0 add to (2j - rounds) eps0."""
    chance = 1.0 / (1.0 + math.exp(-eps0))
    j = np.arange(math.floor(0.5 * (epsilon / eps0 + rounds)) + 1, rounds - 999, dtype=float)
    j = j[: round(40.0 * math.sqrt(rounds))]
    mass = binom.pmf(j, rounds, chance)
    return math.fsum(mass * -np.expm1(np.minimum(epsilon - (2.0 * j - rounds) * eps0, 0.0)))


@pytest.mark.parametrize(("eps0", "rounds"), [(1e-3, 10**6), (4e-3, 10**6), (0.02, 10**5)])
def test_a_million_rounds_of_one_user(eps0: float, rounds: int) -> None:
    accountant = Accountant().compose(
        ShuffledLDP(eps0=eps0, n=1, analysis="stronger-clones"), rounds
    )
    for delta in (1e-3, 1e-9, 1e-20):
        epsilon = accountant.get_epsilon(delta)
        # Between lattice points of the truth delta is a sum of the same terms: any epsilon will do.
        truth = one_user_delta(eps0, rounds, epsilon)
        check(accountant.delta_bounds(epsilon), truth, 1e-8)


@pytest.mark.parametrize(
    "mechanism",
    [
        ShuffledLDP(eps0=1.0, n=10**6),
        ShuffledLDP(eps0=4.0, n=BILLION, analysis="stronger-clones"),
        Subsampled(ShuffledLDP(eps0=3.0, n=1_000, analysis="stronger-clones"), population=10**6),
    ],
)
def test_a_million_rounds_approach_the_normal_limit(mechanism: Mechanism) -> None:
    """The central limit theorem, with the third cumulant, knows epsilon to about 1e-3 here."""
    rounds = 10**6
    law = mechanism.pld(step=mechanism.pair.scale / 100.0, side=Side.LOWER)
    mean = float(law.losses @ law.masses)
    deviation = math.sqrt(float((law.losses - mean) ** 2 @ law.masses))
    total, spread = rounds * mean, math.sqrt(rounds) * deviation
    bounds = Accountant().compose(mechanism, rounds).epsilon_bounds(1e-6)
    assert bounds.upper <= bounds.lower * (1.0 + 1e-3)

    def normal_delta(epsilon: float) -> float:
        below = special.ndtr((total - epsilon) / spread)
        scale = math.exp(epsilon - total + 0.5 * spread**2)
        return float(below - scale * special.ndtr((total - epsilon) / spread - spread))

    low, high = 0.0, total + 20.0 * spread
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if normal_delta(middle) > 1e-6 else (low, middle)
    assert bounds.upper == pytest.approx(high, rel=5e-3)


# -- hundreds of different cohorts -----------------------------------------------------------------------


def test_300_distinct_mechanisms_of_one_user() -> None:
    """eps0 = i/512, i = 50 ... 349: exact, the composed law being on the lattice of 1/512."""
    unit, sizes = 1.0 / 512.0, range(50, 350)
    law = np.ones(1)
    for i in sizes:
        chance = 1.0 / (1.0 + math.exp(-i * unit))
        law = np.pad(law * (1.0 - chance), (0, 2 * i)) + np.pad(law * chance, (2 * i, 0))
    losses = (np.arange(law.size) - sum(sizes)) * unit
    accountant = Accountant(rtol=1e-2)
    for i in sizes:
        accountant.compose(ShuffledLDP(eps0=i * unit, n=1, analysis="stronger-clones"))
    for epsilon in (20.0, 40.0):
        above = losses > epsilon
        truth = math.fsum(law[above] * -np.expm1(epsilon - losses[above]))
        check(accountant.delta_bounds(epsilon), truth, 1e-9, rtol=1e-2)


def transformed_delta(pairs: list[o.FloatPair], epsilon: float, cells: int) -> float:
    """delta of one round of every pair: losses shared out linearly on a lattice of epsilon/cells,
    one plain FFT. Absolute noise near 1e-15; the error of the lattice is of second order."""
    step = epsilon / cells
    places = [np.log(p / q) / step for p, q in pairs]
    half = sum(math.ceil(np.abs(place).max()) + 1 for place in places)
    size = 1 << (2 * half + 1).bit_length()
    transform = np.ones(size // 2 + 1, dtype=complex)
    for (p, _), place in zip(pairs, places, strict=True):
        index = np.floor(place).astype(np.int64)
        share = p * (place - index)
        law = np.bincount((index + 1) % size, share, size) + np.bincount(
            index % size, p - share, size
        )
        transform *= np.fft.rfft(law)
    composed = np.fft.irfft(transform, size)[: size // 2]
    losses = step * np.arange(size // 2)
    above = losses > epsilon
    return float(composed[above] @ -np.expm1(epsilon - losses[above]))


@pytest.mark.slow
def test_300_distinct_cohorts() -> None:
    """Cohorts of 60 ... 359 users against a plain FFT on two fine lattices, extrapolated."""
    sizes = range(60, 360)
    accountant = Accountant()
    for n in sizes:
        accountant.compose(ShuffledLDP(eps0=1.0, n=n, analysis="stronger-clones"))
    epsilon = accountant.get_epsilon(1e-6)
    pairs = [o.stronger_clones_float(n, 1.0) for n in sizes]
    pairs = [(p[p > 1e-19], q[p > 1e-19]) for p, q in pairs]
    coarse, fine = (transformed_delta(pairs, epsilon, cells) for cells in (1_000, 2_000))
    truth = (4.0 * fine - coarse) / 3.0
    assert abs(truth / fine - 1.0) <= 1e-2  # the h^2 term; what is left after it is far less
    check(accountant.delta_bounds(epsilon), truth, 1e-4)
    rows = [(ShuffledLDP(eps0=1.0, n=n, analysis="stronger-clones"), 1) for n in sizes]
    found = epsilon_trajectory(rows, 1e-6, every=100)
    bounds = accountant.epsilon_bounds(1e-6)
    assert found.lower[-1] <= bounds.upper and bounds.lower <= found.upper[-1]


# -- refusing politely ----------------------------------------------------------------------------------


def test_too_many_cells_are_refused_before_they_are_allocated() -> None:
    tracemalloc.start()
    try:
        with pytest.raises(MemoryError, match=r"a lattice of \d+ cells .* larger rtol or step"):
            ShuffledLDP(eps0=4.0, n=1_000, analysis="stronger-clones").pld(step=1e-9)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2**26
