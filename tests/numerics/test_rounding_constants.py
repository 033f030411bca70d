"""Constants of rounding arguments against ball arithmetic (docs/certificates.md says which row each belongs to).

Every formula is evaluated in balls of 200 bits and more, so that its error is known exactly; the library's doubles
must lie within what is booked. Parameters are drawn log-uniformly over their whole range, and at its ends.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import erfc, erfcx, ndtr

from pld_shuffle import ShuffledLDP, ShuffledRandomizer, ShuffledRR, Subsampled
from pld_shuffle.composition.moments import LaplaceRounds, Moments, Rounds, TiltedLaws
from pld_shuffle.mechanisms import Gaussian, Laplace, PoissonGaussian
from pld_shuffle.numerics.integer_laws import binomial_window, chernoff_window
from pld_shuffle.numerics.sides import ROUNDOFF, Side, total
from pld_shuffle.pairs.coin_kernels import central_coin_mass
from pld_shuffle.pairs.coins import CoinMixture, Components
from pld_shuffle.pairs.contour_kernels import turns
from pld_shuffle.pairs.gaussian import LaplacePair
from pld_shuffle.pairs.pair import Cohort, Resolution
from pld_shuffle.pairs.profile import ProfilePair, amplified_loss
from pld_shuffle.randomizers.noise_laws import gaussian_groups

flint = pytest.importorskip("flint")
acb, arb, ctx, fmpz = flint.acb, flint.arb, flint.ctx, flint.fmpz


@pytest.fixture(autouse=True)
def _digits() -> Iterator[None]:
    before = ctx.prec
    ctx.prec = 400
    yield
    ctx.prec = before


def relative(value: float, exact: arb) -> float:
    """|value/exact - 1| as a double, in units of u; the ball is far thinner than that."""
    error = (arb(value) / exact - 1) / arb(ROUNDOFF)
    return float(abs(error).upper())


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(math.exp(rng.uniform(math.log(low), math.log(high))))


def central(m: int) -> arb:
    """C(m, m/2) / 2^m by the gamma function."""
    half = arb(m) / 2
    return ((arb(m + 1)).lgamma() - 2 * (half + 1).lgamma() - m * arb(2).log()).exp()


@pytest.mark.parametrize("size", [1, 3, 200, 201, 777, 100_000])
def test_totals_are_correctly_rounded(size: int) -> None:
    rng = np.random.default_rng(size)
    values = np.exp(rng.uniform(-40.0, 0.0, size))
    exact = sum((Fraction(value) for value in values.tolist()), Fraction(0))
    assert abs(Fraction(total(values)) - exact) <= exact * Fraction(1.0000001 * ROUNDOFF)


def test_central_mass_of_fair_coins() -> None:
    """Row 5: relative error below 1e-15, that is 9 u, for every even number of coins up to 10^13."""
    rng = np.random.default_rng(1)
    sizes = [*range(0, 1200, 2), *(2 * int(log_uniform(rng, 500, 5e12)) for _ in range(400)), 10**13]
    worst = max(relative(central_coin_mass(m), central(m)) for m in sizes)
    assert worst * ROUNDOFF < 1e-15


def binomial_masses(n: int, p: float) -> list[arb]:
    return [arb(fmpz(math.comb(n, x))) * arb(p) ** x * (1 - arb(p)) ** (n - x) for x in range(n + 1)]


def test_binomial_masses() -> None:
    """Row 5: 5 u (|x - mode| + 2) and the sum's own, with the odds of the rate that was given."""
    rng = np.random.default_rng(2)
    for _ in range(60):
        n, p = int(log_uniform(rng, 1, 2000)), log_uniform(rng, 1e-12, 0.5)
        low, high = chernoff_window(n, p, 1e-30)
        out = binomial_window(n, p, low, high)
        exact = binomial_masses(n, p)[low : high + 1]
        total = sum(exact, start=arb(0))
        mode = min(max(int((n + 1) * p), low), high)
        entry = [5.0 * (abs(x - mode) + 2) for x in range(low, high + 1)]
        mean = float(np.dot(out, entry)) + out.size
        for value, truth, allowed in zip(out, exact, entry, strict=True):
            assert relative(float(value), truth / total) <= allowed + mean


def test_chernoff_windows_hold_the_mass() -> None:
    """Row 1: no more than `truncated_mass` outside, on either side."""
    rng = np.random.default_rng(3)
    for _ in range(60):
        n, truncated_mass = int(log_uniform(rng, 1, 2000)), log_uniform(rng, 1e-250, 0.09)
        p = log_uniform(rng, 1e-12, 0.5)
        p = p if rng.random() < 0.5 else 1.0 - p
        low, high = chernoff_window(n, p, truncated_mass)
        exact = binomial_masses(n, p)
        assert sum(exact[:low], start=arb(0)) <= arb(truncated_mass)
        assert sum(exact[high + 1 :], start=arb(0)) <= arb(truncated_mass)


def test_turns() -> None:
    """Row 15: sine and versine within 8 u of the angle; 20 u are booked."""
    rng = np.random.default_rng(4)
    values = np.array([log_uniform(rng, 1e-9, 1e6) * rng.choice([-1.0, 1.0]) for _ in range(4000)])
    values = np.concatenate((values, 0.5 * math.pi * np.arange(-50, 51)))
    versine, sine = np.empty(values.size), np.empty(values.size)
    for y in (1.0, 0.37, 1e-3):
        turns(y, values, versine, sine)
        for value, v, s in zip(values, versine, sine, strict=True):
            angle = arb(y) * arb(float(value))
            allowed = arb(8.0 * ROUNDOFF) * abs(angle)
            assert abs(arb(float(s)) - angle.sin()) <= allowed
            exact = 2 * (angle / 2).sin() ** 2
            assert abs(arb(float(v)) - exact) <= allowed


def test_amplified_losses_are_rounded_upwards() -> None:
    """Row 13: log(1 + rate (e^loss - 1)) from above, by at most 1e-14."""
    rng = np.random.default_rng(5)
    for _ in range(2000):
        loss, rate = log_uniform(rng, 1e-12, 690.0), log_uniform(rng, 1e-12, 1.0)
        exact = (1 + arb(rate) * arb(loss).expm1()).log()
        found = arb(amplified_loss(loss, rate))
        assert exact <= found <= exact * (1 + arb(1e-14))


def budgets(rng: np.random.Generator, count: int) -> Iterator[float]:
    """Of all sizes, with as many digits as their exponentials need."""
    for eps0 in (1e-9, 700.0, *(log_uniform(rng, 1e-9, 700.0) for _ in range(count))):
        ctx.prec = 400 + int(4 * eps0)
        yield eps0


def largest_of(pair: CoinMixture, exact: arb) -> None:
    low, high = pair.max_loss
    assert arb(float(low)) <= exact <= arb(float(high))


def test_rates_of_clones() -> None:
    """Rows 5 and 6: coin rates, biases and gaps of any local budget are good to a few u."""
    rng = np.random.default_rng(6)
    for eps0 in budgets(rng, 500):
        e = arb(eps0)
        shrink = (-e).exp()
        for analysis, rate in (("clones", shrink), ("stronger-clones", 2 * shrink / (1 + shrink))):
            pair = ShuffledLDP(eps0, 10, analysis).pair
            assert isinstance(pair, CoinMixture)
            assert relative(pair.others.coin, rate) <= 6
            assert relative(pair.theta, (e / 2).tanh()) <= 6
            assert relative(pair.gap, 2 * shrink / (1 + shrink)) <= 6
            q = log_uniform(rng, 1e-12, 1.0)
            odds = (e / 2).tanh() / (2 * shrink / (1 + shrink) + (1 / arb(q) - 1) * rate)
            largest_of(pair.sampled(Cohort(q)), (1 + 2 * odds).log())
            largest_of(pair.amplified(q), (1 + arb(q) * e.expm1()).log())


def test_rates_of_the_reduction() -> None:
    """Rows 5 and 6: also the share of silent users, however small, and next to where nobody is silent."""
    rng = np.random.default_rng(7)
    for eps0 in budgets(rng, 400):
        tv = log_uniform(rng, 1e-300, 1.0)
        p = arb(eps0).exp()
        theta = (p - 1) / (p + 1)
        beta = min(arb(tv), theta, key=lambda ball: float(ball.mid()))
        pair = ShuffledRandomizer(5, tv=tv, eps0=eps0).pair
        if pair.others.coin > 1e-300:
            assert relative(pair.others.coin, 2 * beta / (p - 1)) <= 12
        assert relative(pair.others.neither, 1 - (1 + beta) / p) <= 12
        if float(beta.mid()) > 1e-300:
            assert relative(pair._ratio, 2 / (p + 1)) <= 16
            q = log_uniform(rng, 1e-12, 1.0)
            largest_of(pair.sampled(Cohort(q)), (1 + arb(q) * (p - 1)).log())
        if float(beta.mid()) < 0.9 * float(theta.mid()):
            star = 1 - beta * (p + 1) / (p - 1)
            assert relative(pair.target.neutral, star) <= 64
            assert relative(pair.others.neutral, star / p) <= 64


def test_rates_of_randomised_response() -> None:
    """Rows 5 and 6: from eps0 and from gamma, for every alphabet."""
    rng = np.random.default_rng(8)
    for eps0 in budgets(rng, 300):
        k = int(log_uniform(rng, 2, 10**9))
        pair = ShuffledRR(k, 5, eps0=eps0, adversary="weak").pair
        p = arb(eps0).exp()
        assert relative(pair.others.coin, 2 / (p + k - 1)) <= 12
        assert relative(pair.theta, (p - 1) / (p + 1)) <= 16
        assert relative(pair.gap, 2 / (p + 1)) <= 16
        assert relative(pair.others.neither, (p - 1) / (p + k - 1)) <= 12


@pytest.mark.parametrize("population", [None, 41, 120, 10**6 + 3, 3 * 10**13 + 1])
@pytest.mark.parametrize("rate", [1e-12, 1e-6, 0.3])
def test_biases_of_hidden_cohorts(rate: float, population: int | None) -> None:
    """Rows 2, 5, 6: bias and gap of every number of coins, at every rate; n/N, rounded to nearest, costs one u more."""
    n, booked, q = 40, 16, arb(rate)
    mechanism = ShuffledLDP(2.0, n, "stronger-clones")
    assert isinstance(mechanism.pair, CoinMixture)
    hidden = mechanism.pair.sampled(Cohort(rate))
    if population is not None:
        booked, q = 18, arb(n) / population
        hidden = Subsampled(mechanism, population=population).pair
        general = Subsampled(mechanism, population=population, analysis="general").pair
        largest_of(general, (1 + q * arb(2.0).expm1()).log())
    keep, fall = hidden._kept(np.arange(1, n + 1))
    gamma = 2 / (arb(2.0).exp() + 1)
    for m in range(1, n + 1):
        weight = q * m + (1 - q) * n * gamma
        assert relative(float(keep[m - 1]), q * m / weight) <= booked
        assert relative(float(fall[m - 1]), (1 - q) * n * gamma / weight) <= booked
    bias = (1 - gamma) * q / (q + (1 - q) * gamma)
    largest_of(hidden, ((1 + bias) / (1 - bias)).log())


@pytest.mark.parametrize("dropout", [1e-300, 1e-17, 1.3e-15, 1e-9, 0.3])
def test_masses_of_absence(dropout: float) -> None:
    """Rows 2 and 5: "absent" is a report of relative precision, however rarely anybody is."""
    cohort = Subsampled(ShuffledLDP(2.0, 40), population=40, dropout=dropout).cohort
    assert not cohort.everybody
    absent = cohort.with_absence(np.array([[0.25, 0.75]]))[0, 2]
    assert relative(float(absent), arb(dropout)) <= 2
    labels = ShuffledLDP(2.0, 40, "stronger-clones").pair.sampled(cohort)
    assert isinstance(labels, CoinMixture)
    assert relative(labels.others.neutral, arb(dropout)) <= 2
    clones = 2 / (arb(2.0).exp() + 1)
    assert relative(labels.others.neither, (1 - arb(dropout)) * (1 - clones)) <= 12
    assert relative(labels.others.coin, (1 - arb(dropout)) * clones) <= 12


def test_error_functions() -> None:
    """Rows 14 to 16: erfcx within 16 u; erfc and ndtr, which square their argument, within 8 u + 2 u x^2."""
    rng = np.random.default_rng(9)
    near = np.concatenate((np.linspace(-6.0, 26.0, 3001), rng.uniform(-1.0, 3.0, 1000)))
    far = np.array([log_uniform(rng, 1e-12, 1e3) for _ in range(2000)])
    root = arb(0.5).sqrt()
    for x, value in zip(near, erfc(near), strict=True):
        exact = arb(float(x)).erfc()
        assert relative(float(value), exact) <= 8.0 + 2.0 * x * x
        assert relative(math.erfc(x), exact) <= 16.0
    for x, value in zip(-1.4 * near, ndtr(-1.4 * near), strict=True):
        assert relative(float(value), (-arb(float(x)) * root).erfc() / 2) <= 8.0 + 2.0 * x * x
    for x, value in zip(far, erfcx(far), strict=True):
        exact = (arb(float(x)) ** 2).exp() * arb(float(x)).erfc()
        assert relative(float(value), exact) <= 16.0


def encloses(pair: ProfilePair, expm1_eps: float, exact: arb) -> bool:
    """Whether the truth, a very thin ball, is not certainly outside of the profile."""
    bounds = pair.profile(np.array([expm1_eps]), 0.0, 0.0)
    lower, upper = (arb(float(end[0])) for end in bounds)
    narrow = isinstance(pair, LaplacePair) or not upper - lower > exact * arb(1e-5) + arb(1e-15)
    return narrow and not lower > exact and not exact > upper


def tail(y: arb) -> arb:
    return (y * arb(0.5).sqrt()).erfc() / 2


def test_gaussian_profiles() -> None:
    """Row 14: the bracket holds the truth for all noise, from where nothing is hidden to where everything is."""
    rng = np.random.default_rng(10)
    for _ in range(60):
        sigma = log_uniform(rng, 2e-3, 0.9e9)
        eps = max(0.0, rng.uniform(-6.0, 30.0) / sigma + 0.5 / sigma**2)
        eps = min(eps if rng.random() < 0.7 else log_uniform(rng, 1e-300, 600.0), 600.0)
        expm1_eps, mu = math.expm1(eps), 1 / arb(sigma)
        loss = (1 + arb(expm1_eps)).log()
        exact = tail(loss / mu - mu / 2) - (1 + arb(expm1_eps)) * tail(loss / mu + mu / 2)
        assert encloses(Gaussian(sigma=sigma).pair, expm1_eps, exact)


def test_profiles_on_poisson_samples() -> None:
    """Row 14: the same for Gaussian noise on a Poisson sample, with its quadratic equation."""
    rng = np.random.default_rng(11)
    for _ in range(60):
        sigma, q = log_uniform(rng, 0.05, 1e6), log_uniform(rng, 1e-10, 1.0)
        near = rng.random() < 0.5
        eps = rng.uniform(0.0, 20.0) * q / sigma if near else log_uniform(rng, 1e-18, 100.0)
        expm1_eps = math.expm1(max(1e-300, eps))
        a, rate, s = 1 / arb(sigma), arb(q), 1 + arb(expm1_eps)
        b = (a * a / 2).exp() * (1 - rate) / rate * arb(expm1_eps)
        x = ((b + (b * b + 4 * s).sqrt()) / 2).log() / a
        above, below = tail(x - a), tail(x + a)
        exact = rate * (above - below) - arb(expm1_eps) * ((1 - rate) * tail(x) + rate * below)
        assert encloses(PoissonGaussian(sigma, q).pair, expm1_eps, exact)


def test_laplace_profiles() -> None:
    """Row 14: scales and sensitivities of all sizes, next to the largest loss, too."""
    rng = np.random.default_rng(12)
    for _ in range(3000):
        sensitivity = log_uniform(rng, 1e-6, 1e6)
        scale = sensitivity * log_uniform(rng, 1.0 / 690.0, 0.9e9)
        inside = rng.random() < 0.5
        share = rng.uniform(0.0, 1.0) if inside else 1.0 - log_uniform(rng, 2.0**-53, 0.1)
        expm1_eps = math.expm1(share * sensitivity / scale)
        rest = arb(sensitivity) / arb(scale) - (1 + arb(expm1_eps)).log()
        exact = -(-rest / 2).expm1() if rest > 0 else arb(0)
        pair = Laplace(scale=scale, sensitivity=sensitivity).pair
        assert encloses(pair, expm1_eps, exact)
        low, high = (Fraction(float(end)) for end in pair.max_loss)
        assert low <= Fraction(sensitivity) / Fraction(scale) <= high
    assert Laplace(scale=2.0).pair.max_loss == (0.5, 0.5)


@pytest.mark.parametrize("sigma", [0.2, 0.7, 1.0, 3.0, 40.0])
def test_masses_of_gaussian_noise(sigma: float) -> None:
    """Row 16: quadratures of the cells' shares within 1e-12 of their closed form."""
    first, second, blanket = gaussian_groups(sigma, side=Side.UPPER, truncated_mass=1e-12, cells=40)
    left = slice(0, (blanket.size - 3) // 2)  # then the mirror image, and three far ends
    assert np.array_equal(second[left], blanket[left])
    square = arb(sigma) ** 2
    # A group says where it is: first/blanket = exp((1 - 2 y)/(2 sigma^2)).
    ends = [
        arb(0.5) - square * (arb(float(p)) / arb(float(b))).log()
        for p, b in zip(first[left], blanket[left], strict=True)
    ]
    assert all(a < b for a, b in itertools.pairwise(ends))

    def mass(low: arb, high: arb, mean: int) -> arb:
        ends = ((end - mean) / arb(sigma) * arb(0.5).sqrt() for end in (low, high))
        below, above = (end.erf() for end in ends)
        return (above - below) / 2

    exact = [arb(0)] * len(ends)
    for i, (low, high) in enumerate(itertools.pairwise(ends)):
        # The density of N(1, sigma^2) times e^(-y/sigma^2) is that of N(0, sigma^2) times e^(-1/(2 sigma^2)).
        total = ((high - low) / square).expm1()
        lifted = mass(low, high, 0) * (high / square - 1 / (2 * square)).exp()
        down = (lifted - mass(low, high, 1)) / total
        exact[i] += down
        exact[i + 1] += mass(low, high, 1) - down
    for value, truth in zip(blanket[left], exact, strict=True):
        assert relative(float(value), truth) * ROUNDOFF <= 1e-12


def test_tiny_cells_count_as_missed() -> None:
    """Row 4: what has no ratio of its own is at infinity in an upper law and nowhere in a lower one.

    800 fair coins: the atoms of 700 heads and more are below 1e-130, the last ones below 1e-240; weights of 1e-60 put
    them under SMALLEST_CELL.
    """
    coins, theta, weight = 800, 0.25, 2.0**-200
    parts = Components(
        np.array([coins, 1], np.int64), np.array([theta, theta]), np.array([1.0 - theta, 1.0 - theta]),
        np.array([weight, 1.0 - weight]), 0.0, 0.0,
    )  # fmt: skip
    pair = replace(ShuffledLDP(2.0 * math.atanh(theta), coins, "stronger-clones").pair)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CoinMixture, "components", lambda *given: parts)
        upper, lower = (
            pair._summed(side, Resolution(1e-3, truncated_mass=1e-300)) for side in (Side.UPPER, Side.LOWER)
        )
    assert 0.0 < upper.truncated_mass < 1e-280
    places = [(arb(fmpz(math.comb(coins, h))) / arb(2) ** coins, arb(2 * h - coins) / coins) for h in range(coins + 1)]
    atoms = [(arb(weight) * b, arb(theta) * t) for b, t in places]
    atoms += [((1 - arb(weight)) / 2, arb(theta)), ((1 - arb(weight)) / 2, -arb(theta))]
    largest = ((1 + arb(theta)) / (1 - arb(theta))).log()
    for share in (0.0, 0.3, 0.8, 0.95, 0.999):
        eps = arb(share) * largest
        exact = sum((b * ((1 + x) - eps.exp() * (1 - x)) for b, x in atoms if (1 + x) > eps.exp() * (1 - x)), arb(0))
        for law in (lower, upper):
            sign = 1 if law is upper else -1
            at = eps - sign * (arb(law.loss_error) + arb(1e-3))  # cells are summed: a lattice would split them
            value = sum(
                (
                    arb(float(m)) * (1 - (at - arb(float(x))).exp())
                    for m, x in zip(law.mass, law.loss, strict=True)
                    if arb(float(x)) > at
                ),
                arb(0),
            )
            assert (value + arb(law.truncated_mass) >= exact) if law is upper else (value <= exact)


def largest_error(values: np.ndarray, bounds: np.ndarray, exact: list[acb]) -> float:
    """The largest |exp(value) - exact| over its bound."""
    errors = (
        abs(acb(value.real, value.imag).exp() - ball) / arb(float(bound))
        for value, bound, ball in zip(values, bounds, exact, strict=True)
    )
    return max(float(error.upper()) for error in errors)


@pytest.mark.parametrize("seed", range(60))
def test_tilted_laws_of_the_contour(seed: int) -> None:
    """Moments, spreads and characteristic functions of atoms under a tilt."""
    rng = np.random.default_rng(seed)
    size, width = int(log_uniform(rng, 2, 60)), log_uniform(rng, 1e-9, 50.0)
    loss = width * (rng.normal(size=size) if seed % 2 else rng.uniform(-1.0, 1.0, size))
    mass = np.exp(-log_uniform(rng, 1e-3, 600.0) * rng.uniform(0.0, 1.0, size))
    mass *= (1.0 - log_uniform(rng, 1e-12, 0.5)) / mass.sum()
    c = log_uniform(rng, 1e-3, 1e3) / max(width, 1e-3)
    rounds = Rounds(mass, loss, 0.0, 0.0, 1)
    moments = Moments([rounds])
    tilted = TiltedLaws(moments, c)
    [mean], [spread_bound] = tilted.means, tilted.spreads

    centred = [arb(float(x)) - arb(mean) for x in loss]
    weight = [arb(float(m)) * (arb(c) * x).exp() for m, x in zip(mass, centred, strict=True)]
    total = sum(weight, arb(0))
    for ([value], [bound]), shift in (
        ((tilted.log_moments, tilted.moment_errors), arb(0)),
        (moments.log_moments(c), arb(c) * arb(mean)),
    ):
        assert abs(arb(value) - total.log() - shift) <= arb(bound)
    spread = sum((w * abs(x) for w, x in zip(weight, centred, strict=True)), arb(0)) / total
    assert spread <= arb(spread_bound) + arb(1e-290)  # what underflows is in the 8 u of `values`

    largest = min(1e4 / max(spread_bound, 1e-9), 5e6 / max(tilted.farthest, 1e-9))
    y = np.array([log_uniform(rng, 1e-10 * largest, largest) for _ in range(8)])
    exact = [
        sum((w * (acb(0, 1) * arb(t) * x).exp() for w, x in zip(weight, centred, strict=True)), acb(0)) / total
        for t in y.tolist()
    ]
    found, wrong = (part[0] for part in tilted.values(y))
    assert largest_error(found, wrong, exact) <= 1.0


@pytest.mark.parametrize("seed", range(60))
def test_tilted_laplace_noise_of_the_contour(seed: int) -> None:
    """The same in closed form; c is at least 1e-6/t, as rounds are at most 1e12."""
    rng = np.random.default_rng(seed)
    t = log_uniform(rng, 1e-12, 30.0)
    c = log_uniform(rng, 1e-6, 1e3) / t
    rounds = LaplaceRounds(t, 1)
    mean, log_moment, moment_error, spread, _ = rounds.tilted(c)

    def derivatives(z: acb) -> tuple[acb, acb, acb]:
        """E exp(z L) and its first two derivatives."""
        w, half = z + arb(1) / 2, (-arb(t) / 2).exp()
        cosh, sinh = (w * t).cosh(), (w * t).sinh()
        first = t * sinh + t * cosh / (2 * w) - sinh / (2 * w**2)
        second = t * (t * cosh) + (t * (t * sinh) - 2 * t * cosh / w + 2 * sinh / w**2) / (2 * w)
        return half * (cosh + sinh / (2 * w)), half * first, half * second

    whole, first, second = derivatives(acb(arb(c)))
    for (value, bound), shift in (((log_moment, moment_error), arb(c) * arb(mean)), (rounds.log_moment(c), arb(0))):
        assert abs(acb(value) - whole.log() + shift).upper() <= arb(bound)
    offset = first / whole - arb(mean)
    square = second / whole - (first / whole) ** 2 + offset**2
    assert square.real.sqrt() <= arb(spread)

    y = np.array([log_uniform(rng, 1e-6, 1e4) / spread for _ in range(8)])
    exact = [derivatives(acb(arb(c), arb(v)))[0] / whole * acb(0, -arb(v) * arb(mean)).exp() for v in y.tolist()]
    found, wrong = (part[0] for part in TiltedLaws(Moments([rounds]), c).values(y))
    assert largest_error(found, wrong, exact) <= 1.0
