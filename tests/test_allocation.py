"""Random allocation against integrals, in both orders, adaptive steps included; finite steps: test_truths.py."""

from __future__ import annotations

import functools
import itertools
import math
import random
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

from pld_shuffle import (
    Accountant,
    AccuracyWarning,
    DiscretePair,
    Gaussian,
    Laplace,
    Mechanism,
    RandomAllocation,
    ShuffledBatches,
    ShuffledLDP,
    ShuffledRR,
    ZeroOut,
)
from pld_shuffle.numerics.sides import Bounds, Side
from pld_shuffle.pairs.allocation import GaussianSteps, HiddenStepPair, PairSteps, StepsLaw
from pld_shuffle.pairs.profile import ProfilePair
from pld_shuffle.pairs.ratio_sums import RatioLaw, Wanted, additions, ratio_sum
from pld_shuffle.pairs.replaced import Laws, best_tests, mean_above, summed
from pld_shuffle.pairs.selected_steps import selected_steps


def quadrature(ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gauss and Legendre between all neighbouring ends: places, and masses of a standard normal number."""
    node, weight = np.polynomial.legendre.leggauss(40)
    half = 0.5 * np.diff(ends)[:, None]
    g = (ends[:-1, None] + half * (1.0 + node)).ravel()
    return g, (half * weight).ravel() * np.exp(-0.5 * g * g) / math.sqrt(2.0 * math.pi)


def hidden_steps(noise: float, steps: int, s: float, add: bool) -> float:
    """H_s of two or three steps: integrals over all but the last one, which is in closed form."""
    mu = 1.0 / noise
    kink = (math.log(steps / s if add else steps * s) + 0.5 * mu * mu) / mu  # where the strike is 0
    g, p = quadrature(np.union1d(np.linspace(-9.5, 9.5 + mu, 40), kink - np.geomspace(1e-4, 1.0, 10)))
    x = np.exp(mu * g - 0.5 * mu * mu)
    if steps == 3:
        x, p = np.add.outer(x, x).ravel(), np.outer(p, p).ravel()
    strike = (steps / s if add else steps * s) - x
    safe = np.maximum(strike, 1e-300)
    d = -np.log(safe) / mu + 0.5 * mu
    high = np.where(strike > 0.0, ndtr(d) - safe * ndtr(d - mu), 1.0 - strike)
    low = np.where(strike > 0.0, safe * ndtr(mu - d) - ndtr(-d), 0.0)
    return float(p @ (s * low if add else high)) / steps


def gaussian(noise: float, steps: int, add: bool) -> HiddenStepPair:
    return HiddenStepPair(StepsLaw(GaussianSteps(noise, *((0, 1) if add else (1, 0)), 0), steps))


def value(pair: ProfilePair, eps: float, rtol: float = 2e-6) -> Bounds:
    """As a question finds it: asked again, now that the order of the values that matter is known."""
    growth = np.array([math.expm1(eps)])
    about = float(pair.profile(growth, rtol, 1e-11).upper[0])
    found = pair.profile(growth, rtol, 1e-5 * about)
    return Bounds(float(found.lower[0]), float(found.upper[0]))


@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize("noise, eps", [(0.6, 2.0), (1.0, 0.7), (1.0, 3.5), (3.0, 0.2)])
def test_two_and_three_gaussian_steps_are_enclosed(noise: float, eps: float, add: bool) -> None:
    for steps in (2, 3):
        exact = hidden_steps(noise, steps, math.exp(eps), add)
        found = value(gaussian(noise, steps, add), eps)
        assert found.lower * (1 - 1e-9) <= exact <= found.upper * (1 + 1e-9)
        assert found.upper <= found.lower * 1.002 + 1e-13


@pytest.mark.parametrize("noise, eps", [(0.4, 9.0), (0.5, 6.0), (1.0, 0.7), (1.0, 5.5), (3.0, 0.2)])
def test_two_replaced_steps_are_enclosed(noise: float, eps: float) -> None:
    """By one integral over the first step: the second one has L > -y beyond a root of a quadratic."""
    mu, s = 1.0 / noise, math.exp(eps)
    g, p = quadrature(np.linspace(-14.0, 14.0 + 2.0 * mu, 120))
    y = np.exp(mu * g - mu * mu / 2) - s * np.exp(-mu * g - mu * mu / 2)
    half = y * math.exp(mu * mu / 2) / 2
    root = np.sqrt(half * half + s)
    t = np.log(np.where(half < 0, root - half, s / (root + np.maximum(half, 0.0)))) / mu
    exact = float(p @ (ndtr(mu - t) - s * ndtr(-mu - t) + y * ndtr(-t))) / 2
    found = value(RandomAllocation(Gaussian(sigma=noise), 2, relation="replace-one").pair, eps)
    assert found.lower * (1 - 1e-9) <= exact <= found.upper * (1 + 1e-9)
    assert found.upper <= found.lower * 1.004


P = [Fraction(5, 12), Fraction(1, 3), Fraction(1, 4)]
Q = [Fraction(1, 6), Fraction(1, 3), Fraction(1, 2)]


def test_the_largest_loss_of_each_order_is_its_own() -> None:
    """Backwards more can be lost than forwards."""
    given = DiscretePair([math.log(x) for x in Q], [math.log(x) for x in P], symmetric=False)
    for pair, most in zip(RandomAllocation(given, 2).pair.pairs, (2.0, 2.5), strict=True):
        assert pair.max_loss.upper == pytest.approx(math.log(most))


def test_laplace_steps_against_an_integral() -> None:
    """The same by a quadrature of the loss, two steps."""
    t, s = 1.0, math.exp(0.4)
    x, w = np.polynomial.legendre.leggauss(400)
    y, p = 0.5 * x + 0.5, 0.5 * w  # between the two answers
    inside = 0.5 * np.exp(-t * y) * t * p  # of Q = Lap(0), P = Lap(1)
    ratio = np.concatenate(([math.exp(-t)], np.exp(t * (2.0 * y - 1.0)), [math.exp(t)]))
    mass = np.concatenate(([0.5], inside, [0.5 * math.exp(-t)]))
    total = ratio[:, None] + ratio[None, :]
    for add in (False, True):
        gain = np.maximum(1.0 - 0.5 * s * total, 0.0) if add else np.maximum(0.5 * total - s, 0.0)
        exact = float(mass @ gain @ mass)
        pair = HiddenStepPair(StepsLaw(PairSteps(Laplace(scale=1.0).pair, add), 2))
        found = value(pair, math.log(s))
        assert found.lower * (1 - 1e-4) <= exact <= found.upper * (1 + 1e-4)
        assert found.upper <= found.lower * 1.005


def test_special_cases_of_steps() -> None:
    one = RandomAllocation(Gaussian(sigma=1.5), 1)
    assert one.pair.square == pytest.approx(Gaussian(sigma=1.5).pair.square, rel=1e-14)
    all_of_them = RandomAllocation(Gaussian(sigma=3.0), 4, selected=4)
    whole = Accountant().compose(Gaussian(sigma=3.0 / 2.0)).get_epsilon(1e-5)
    assert Accountant().compose(all_of_them).get_epsilon(1e-5) == pytest.approx(whole, rel=1e-9)
    two = RandomAllocation(Gaussian(sigma=2.0), 20_000, selected=2)
    for epochs in (1, 3):
        found = Accountant().compose(two, epochs).epsilon_bounds(1e-5)
        blocks = Accountant().compose(RandomAllocation(Gaussian(sigma=2.0), 10_000), 2 * epochs).get_epsilon(1e-5)
        assert 0.0 < found.lower < found.upper == blocks
    for sigma, steps, epochs, hidden in ((0.1, 100, 3, False), (0.2, 10, 3, True)):
        known = Accountant().compose(Gaussian(sigma=sigma), epochs).get_epsilon(1e-6)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AccuracyWarning)
            found = Accountant().compose(RandomAllocation(Gaussian(sigma=sigma), steps), epochs).epsilon_bounds(1e-6)
        assert found.upper <= (0.95 if hidden else 1.0 + 1e-12) * known


@pytest.mark.parametrize("epochs", [1, 2])
@pytest.mark.parametrize("steps", [2, 3])
def test_steps_of_one_ratio(steps: int, epochs: int) -> None:
    """What only the contribution can make is seen in every epoch or not; the loss of all else is one number."""
    same = DiscretePair([math.log(0.25), math.log(0.75)], [math.log(0.25), math.log(0.75)])
    assert Accountant().compose(RandomAllocation(same, steps), epochs).delta_bounds(0.0).upper < 1e-12
    nothing = DiscretePair([math.log(1 / 3), math.log(2 / 3)], [math.log(1 / 3), math.log(2 / 3)], symmetric=False)
    assert Accountant().compose(RandomAllocation(nothing, steps), epochs).delta_bounds(1.5) == (0.0, 0.0)
    seldom = DiscretePair([math.log(2 / 9), math.log(7 / 9)], [-math.inf, 0.0])
    for eps in (0.0, 0.3, 1.5):
        found = Accountant().compose(RandomAllocation(seldom, steps), epochs).delta_bounds(eps)
        missed = (7 / 9) ** epochs
        truth = max(1.0 - missed, 1.0 - math.exp(eps) * missed)
        assert found.lower <= truth * (1 + 1e-14) and truth * (1 - 1e-14) <= found.upper <= truth * (1 + 1e-9)


def test_attacks_that_are_worth_nothing_are_not_made() -> None:
    """Masses of 30 steps with little noise underflow; rounding of 10^10 steps is more than they give away."""
    for sigma, count, selected in ((0.1, 1000, 30), (1000.0, 10**10, 2)):
        assert selected_steps(StepsLaw(GaussianSteps(sigma, 1, 0, 0), count), selected) is None
    found = Accountant().compose(RandomAllocation(Gaussian(sigma=30.0), 10**7, selected=2), 100).epsilon_bounds(1e-6)
    assert 0.0 < found.lower <= found.upper <= 1.001 * found.lower


def test_a_law_that_is_all_tail_is_revealed() -> None:
    law = RatioLaw(1, np.array([0.0]), np.array([1e-3]), 0.999, 0.0, 0.0)
    atoms = law.atoms(Side.UPPER, False, 0.01)
    assert atoms.mass.size == 1 and atoms.mass.sum() + atoms.infinity_mass >= 1.0


def test_blocks_know_their_mass_at_infinite_loss() -> None:
    """What only the contribution can make is seen in one of four steps. (This took hours: points up to loss 690.)"""
    ordered = DiscretePair([-math.inf, 0.0], [math.log(3 / 11), math.log(8 / 11)], symmetric=False)
    found = Accountant().compose(RandomAllocation(ordered, 3, selected=2), 2).delta_bounds(0.7)
    truth = 1.0 - (8 / 11) ** 4
    assert found.lower <= truth <= found.upper <= truth * (1 + 1e-6)


@pytest.mark.parametrize(
    "one, other",
    [
        (RandomAllocation(Gaussian(sigma=1.0), 100), ShuffledLDP(1.0, 1000)),
        (RandomAllocation(Gaussian(sigma=1.0), 100), RandomAllocation(Gaussian(sigma=1.0), 9, relation="replace-one")),
        (ShuffledBatches(4.0, 100, 10, 1001), Gaussian(sigma=1.0)),
        (ShuffledBatches(4.0, 100, 10, 1001, "replace-one"), RandomAllocation(Gaussian(sigma=1.0), 100)),
        (ZeroOut(ShuffledLDP(1.0, 1000)), ShuffledBatches(4.0, 100, 10, 1001, "replace-one")),
    ],
    ids=str,
)
def test_relations_of_a_ledger_must_agree(one: Mechanism, other: Mechanism) -> None:
    """Zero-out and replacement are refused in either order, and then nothing was composed."""
    for first, second in ((one, other), (other, one)):
        ledger = Accountant().compose(first)
        for ask in (ledger.compose, lambda kind, held=ledger: held.would_exceed(kind, epsilon=1.0, delta=1e-6)):
            with pytest.raises(ValueError, match=rf"relation '{first.relation}', got '{second.relation}'"):
                ask(second)
        assert ledger.ledger == ((first, 1),)


def test_a_ledger_of_hidden_steps_shuffled_reports_and_noise() -> None:
    """All of one relation: against the product, by quadrature over two steps and enumeration of two shuffles."""
    noise, users, gamma = 2.0, 3, 0.5
    reports = ZeroOut(ShuffledRR(2, users, gamma=gamma, adversary="weak"))
    ledger = Accountant(1e-4).compose(RandomAllocation(Gaussian(sigma=1.0), 2)).compose(reports, 2)
    ledger.compose(ZeroOut(Gaussian(sigma=noise)))
    x, width = np.linspace(-9.0, 11.0, 201, retstep=True)
    weight, ratio = np.exp(-0.5 * x * x) * width / math.sqrt(2.0 * math.pi), np.exp(x - 0.5)
    step = (np.outer(weight, weight) * (ratio[:, None] + ratio) / 2.0).ravel(), np.outer(weight, weight).ravel()
    random_ones, ones = np.arange(users)[:, None], np.arange(users + 1)  # what the weak adversary sees
    shared = binom.pmf(random_ones, users - 1, gamma)
    moved, still = shared * binom.pmf(ones - 1, random_ones, 0.5), shared * binom.pmf(ones, random_ones, 0.5)
    stay = 1.0 - gamma / 2.0
    shuffle = [(a * moved + (1.0 - a) * still).ravel() for a in (stay, 1.0 - stay)]
    hidden = [
        np.outer(np.outer(one, one)[np.outer(one, one) > 0.0], two) for one, two in zip(shuffle, step, strict=True)
    ]
    for eps in (0.0, 0.5, 1.5, 3.0):
        truth = []
        for p, q in (hidden, hidden[::-1]):
            left = eps - np.log(p / q)  # for the Gaussian noise
            truth.append(
                float(np.sum(p * (ndtr(0.5 / noise - left * noise) - np.exp(left) * ndtr(-0.5 / noise - left * noise))))
            )
        found = ledger.delta_bounds(eps)
        assert found.lower <= max(truth) * (1.0 + 1e-9) and max(truth) <= found.upper * (1.0 + 1e-9)
        assert found.upper <= 1.0001 * found.lower


# --- sums of likelihood ratios ------------------------------------------------------------------------


def some_law(rng: random.Random, values: int) -> list[tuple[Fraction, Fraction]]:
    """(likelihood ratio, Q-mass) of a step, ascending; the mean is 1."""
    one, two = ([Fraction(rng.randrange(1, 30)) for _ in range(values)] for _ in range(2))
    pairs = [(x / sum(one), y / sum(two)) for x, y in zip(one, two, strict=True)]
    return sorted((p / q, q) for p, q in pairs)


def exact_mean(law: list[tuple[Fraction, Fraction]], count: int) -> dict[Fraction, Fraction]:
    """The law of the mean of so many ratios."""
    found = {Fraction(0): Fraction(1)}
    for _ in range(count):
        longer: dict[Fraction, Fraction] = {}
        for total, mass in found.items():
            for value, share in law:
                longer[total + value] = longer.get(total + value, Fraction(0)) + mass * share
        found = longer
    return {total / count: mass for total, mass in found.items()}


def exact_product(one: dict[Fraction, Fraction], other: dict[Fraction, Fraction]) -> dict[Fraction, Fraction]:
    """The law of the product of independent ratios."""
    found: dict[Fraction, Fraction] = {}
    for (x, p), (y, q) in itertools.product(one.items(), other.items()):
        found[x * y] = found.get(x * y, Fraction(0)) + p * q
    return found


def sums_of(
    law: list[tuple[Fraction, Fraction]], count: int, knots: int, log_value: float | None = None, epochs: int = 1,
    tail: float = 0.0,
) -> list[RatioLaw]:  # fmt: skip
    others = np.array([float(q) for _, q in law])
    rows = np.array([[float(x * q) for x, q in law], others, others])
    one = RatioLaw.of(rows, 0, 1e-15)
    wanted = Wanted(10.0, tail, log_value and (log_value, 0.0))
    return [ratio_sum(one, one, side, count, knots, wanted, epochs) for side in Side]


@pytest.mark.parametrize("knots, tail", [(3, 0.02), (12, 0.0), (4000, 0.0), (4000, 0.05)])
def test_sums_of_ratios_enclose_rationals_whatever_the_knots(
    knots: int, tail: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    if knots < 100:  # laws of few values would stay exact
        monkeypatch.setattr("pld_shuffle.pairs.ratio_sums._distinct", lambda *arguments: None)
    rng = random.Random(knots)
    widest = 0.0
    for _ in range(25):
        epochs = rng.choice([1, 2] if knots > 100 else [1, 2, 3, 3])
        law, count = some_law(rng, rng.randrange(2, 5 if epochs < 3 else 4)), rng.randrange(1, 8 if epochs == 1 else 4)
        share = rng.choice([Fraction(1), Fraction(3, 4)])  # the known total need not be 1
        law = [(x, share * q) for x, q in law]
        mean = functools.reduce(exact_product, [exact_mean(law, count)] * epochs)
        sums = dict(zip(Side, sums_of(law, count, knots, rng.choice([None, -3.0]), epochs, tail), strict=True))
        for s in (Fraction(1), Fraction(21, 20), Fraction(13, 10), Fraction(2)):
            growth = float(s - 1)
            for backward in (False, True):
                exact = float(sum(q * max(Fraction(0), 1 - s * y if backward else y - s) for y, q in mean.items()))
                low, high = (one.profile(side, growth, backward) for side, one in sums.items())
                assert low - 1e-15 <= exact <= high + 1e-15
                assert low <= exact * (1 + 1e-13) and high >= exact * (1 - 1e-13)
                widest = max(widest, high - low)
    assert widest < 1e-11 if knots > 100 and tail == 0.0 else widest > 1e-3


@pytest.mark.parametrize("backward", [False, True])
def test_atoms_of_sums_keep_their_side_over_two_epochs(backward: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pld_shuffle.pairs.ratio_sums._distinct", lambda *arguments: None)
    rng, widest = random.Random(5), 0.0
    for _ in range(15):
        law, count = some_law(rng, 3), rng.randrange(2, 6)
        mean = exact_mean(law, count)
        both = [one.atoms(side, backward, 1e-4) for side, one in zip(Side, sums_of(law, count, 9), strict=True)]
        for s in (1.0, 1.2, 1.7, 3.0):
            pairs = [(q, y * q) if backward else (y * q, q) for y, q in mean.items()]
            exact = sum(max(0.0, float(p * a) - s * float(q * b)) for p, q in pairs for a, b in pairs)
            ends = []
            for atoms in both:
                mass = np.multiply.outer(atoms.mass, atoms.mass)
                loss = np.add.outer(atoms.loss, atoms.loss)
                gained = np.sum(np.maximum(0.0, mass * -np.expm1(math.log(s) - loss)))
                ends.append(gained + atoms.infinity_mass * (2.0 - atoms.infinity_mass))
            assert ends[0] - 1e-12 <= exact <= ends[1] + 1e-12
            assert ends[0] <= exact * (1 + 1e-12) and ends[1] >= exact * (1 - 1e-12)
            widest = max(widest, ends[1] - ends[0])
    assert widest > 1e-3


def test_an_error_of_masses_with_a_known_total_is_a_move_of_values() -> None:
    rng, least = random.Random(3), 1.0
    for _ in range(300):
        error = Fraction(rng.randrange(1, 40), 100)
        law = some_law(rng, rng.randrange(2, 6))
        other = [(x, q * (1 + error * Fraction(rng.randrange(101), 100))) for x, q in law]
        total = sum(q for _, q in other)
        other = [(x, q / total) for x, q in other]
        for (one, m), (two, _) in itertools.permutations([(p, sum(x * q for x, q in p)) for p in (law, other)]):
            mean = sum(x * q for x, q in two)
            moved = [(x + error * (x - mean) + m - mean, q) for x, q in two]
            for s in [x for x, _ in moved] + [x for x, _ in law]:
                spare = sum(q * max(x - s, 0) for x, q in moved) - sum(q * max(x - s, 0) for x, q in one)
                assert spare >= 0
                least = min(least, float(spare / error)) if spare else least
    assert least < 0.01  # hardly more than needed
    for error, sign, backward in itertools.product((1e-12, 1e-3), (-1.0, 1.0), (False, True)):  # X is 0 or 2
        law = RatioLaw(1, np.array([-1.0, 1.0]), np.array([0.5, 0.5 * (1.0 + sign * error)]), 0.0, error, 0.0)
        known = law.settled(1.0, error)
        low, high = (known.profile(side, 0.0, backward) for side in Side)
        assert low <= 0.5 <= high and known.error < 1e-14
        # And so has a sum of forty, whose errors are booked once if each of them has a total that is known.
        several = replace(known, whole=True)
        for side, s in itertools.product(Side, (1.0, 1.1)):
            found = ratio_sum(several, several, side, 40, 2_000, Wanted(40.0))
            away = [max((s - x / 20) if backward else (x / 20 - s), 0.0) for x in range(41)]
            exact = float(binom.pmf(np.arange(41), 40, 0.5) @ away)
            end = found.profile(side, (1.0 / s if backward else s) - 1.0, backward) * (s if backward else 1.0)
            assert (end >= exact) if side is Side.UPPER else (end <= exact)
            assert found.error < 1e-12 and abs(end - exact) < 30.0 * error


def test_a_known_total_books_what_errors_of_masses_can_do() -> None:
    """All signs of errors in rationals, puts and calls at all strikes.

    A rare value far away needs all of what is booked, where the hundredth that is booked for squares of errors is just
    used up: a thousandth less is not enough.
    """
    rng, doubt = random.Random(2), Fraction(99, 10000)
    laws = [([Fraction(1), Fraction(10**9)], [Fraction(50), 1 - Fraction(49, 10**9)])]
    for _ in range(40):
        laws += [
            ([Fraction(rng.randrange(1, 99)) for _ in range(3)], [Fraction(rng.choice([1, 30, 999])) for _ in range(3)])
        ]
    for number, (masses, values) in enumerate(laws):
        q = [m / sum(masses) for m in masses]
        x = [y / sum(a * b for a, b in zip(q, values, strict=True)) for y in values]
        for signs in itertools.product((-1, 1), repeat=len(q)):
            given = [m * (1 + sign * doubt) for m, sign in zip(q, signs, strict=True)]
            p = [m / sum(given) for m in given]
            order = sorted(range(len(x)), key=x.__getitem__)
            law = RatioLaw(3, *(np.array([float(v[k]) for k in order]) for v in ([3 * (y - 1) for y in x], given)),
                           0.0, 3 * float(doubt), 0.01).settled(0.9, float(doubt))  # fmt: skip
            assert math.fsum(law.mass) == pytest.approx(0.9, rel=1e-15)
            assert law.error == pytest.approx(2 * float(doubt), rel=1e-14)
            drift = Fraction(law.drift - 0.01)
            if number == 0 and signs == (-1, 1):
                needed = (1 + doubt) / (1 - doubt) - 1  # of what is above the other value
                assert drift * (x[0] + 1) <= 1.0005 * needed * (x[0] - x[1])
            for sign in (1, -1):
                moved = [y + sign * drift * (y + 1) for y in x]
                for s in (*x, *moved):
                    exact = sum(m * max(sign * (y - s), 0) for m, y in zip(q, x, strict=True))
                    assert exact <= sum(m * max(sign * (y - s), 0) for m, y in zip(p, moved, strict=True))


@pytest.mark.parametrize("error", [1e-3, 1e-12])
@pytest.mark.parametrize("knots", [0, 3, 1000])
def test_replaced_steps_book_what_errors_of_masses_can_do(error: float, knots: int) -> None:
    """Laws of all shapes in two columns, masses wrong by all that is allowed, in a few cells and in many."""
    rng, spare = random.Random(5), [math.inf, math.inf]
    for _ in range(40):
        size, count = rng.randrange(2, 5), rng.randrange(1, 6)
        s = [Fraction(rng.choice([1, 1.5, 3, 2**30])) for _ in range(2)]
        powers = [[rng.choice([(0, 1), range(14), (0, 0, 1, 40)]) for _ in range(3)] for _ in range(2)]
        columns = [[[Fraction(10) ** -rng.choice(some) for _ in range(size)] for some in three] for three in powers]
        columns = [[[x / sum(row) for x in row] for row in rows] for rows in columns]
        places = np.sort([rng.uniform(-1.0, 1.0) * 10.0 ** rng.randrange(-8, 3) for _ in range(size)])
        place = [Fraction(x) for x in places.tolist()]
        operations = additions(count)
        cells = [np.linspace(places[0] * count, places[-1] * count, knots)] * max(0, len(operations) - 1)
        if knots > 10 and operations:
            cells = [np.unique([math.fsum(some) for some in itertools.combinations_with_replacement(places, steps)])
                     for steps in numbers_of_steps(operations)[1:-1]]  # fmt: skip
        for push in (-1, 1):
            signs = [[push] * size, [push] * size, [-push] * size]
            given = np.array([[[float(x * (1 + Fraction(error) * sign)) for x, sign in zip(*row, strict=True)]
                               for row in zip(rows, signs, strict=True)] for rows in columns])  # fmt: skip
            given = np.ascontiguousarray(given.transpose(1, 2, 0))
            low = Laws.merged(given.copy(), 1.001 * error, (math.log(s[1]), 0.0))
            p, q, off = best_tests(*summed(low, operations, cells), np.log([float(one) for one in s]))
            mean = mean_above(*summed(Laws(places, given[:1].copy(), 1.001 * error), operations, cells))
            for k, rows in enumerate(columns):
                exact = sum(m * max(v, 0) for v, m in exact_mean([*zip(place, rows[0], strict=True)], count).items())
                assert mean[k] >= exact * count
                spare[0] = min(spare[0], float(Fraction(mean[k]) / exact / count - 1) / error if exact else math.inf)
                for one in {*s, Fraction(2)}:
                    law = [((a - one * b) / w, w) for w, a, b in zip(*rows, strict=True)]
                    exact = sum(m * max(x, 0) for x, m in exact_mean(law, count).items())
                    gain, cost = Fraction(p[k]), one * Fraction(q[k])
                    line = gain * Fraction(1 - off) - cost * Fraction(1 + off)
                    assert line <= exact * count
                    spare[1] = min(spare[1], float((exact * count - line) / (gain + cost)) / error if gain else 9.0)
    assert max(spare) < 5  # hardly more than needed


def numbers_of_steps(operations: list[tuple[int, int]]) -> list[int]:
    steps = [1]
    for left, right in operations:
        steps.append(steps[left] + steps[right])
    return steps


@pytest.mark.parametrize("count", [1, 2, 3, 12, 1000, 1023])
def test_additions_end_at_the_count(count: int) -> None:
    assert numbers_of_steps(additions(count))[-1] == count


@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize("noise, steps, eps", [(1.0, 100, 0.6), (2.0, 30, 0.3), (0.7, 200, 0.5)])
def test_sums_and_contours_agree(noise: float, steps: int, eps: float, add: bool) -> None:
    """Two evaluators that share a step's law only."""
    pair, growth = gaussian(noise, steps, add), np.array([math.expm1(eps)])
    sums = value(pair, eps)
    contour = [pair.law.at(side, 1e-12).profile(growth, 1e-5) for side in Side]
    assert sums.lower <= contour[1].upper[0] and contour[0].lower[0] <= sums.upper
    assert sums.upper <= sums.lower * (1 + 2e-3)


@pytest.mark.parametrize("tail", [1e-16, 1e-3])
def test_sides_of_a_law_are_a_law(tail: float) -> None:
    for side in Side:
        rows, _ = GaussianSteps(0.7, 1, 0, -1).masses(side, tail, 0.02)
        assert rows[[0, 2]].sum(axis=1) == pytest.approx(np.ones(2), abs=1e-12)
        # What is far out an upper law gives away.
        assert 1.0 - (side is Side.UPPER) * rows[0, -1] - 1e-12 <= rows[1].sum() <= 1.0 + 1e-12
