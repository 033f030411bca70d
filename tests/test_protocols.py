"""Protocols: bias and variance on simulated data, exact errors and privacy against enumeration, calibration.

Over R repetitions the mean error must be within 5 standard errors of 0, and the sample variance within 5 sqrt(2/(R-1))
(relative) of the exact one, which is its standard error for nearly normal estimates. Seeds are fixed.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import oracles
import pytest
from enumerated import enumerated
from scipy.stats import binom, norm
from test_truths import HIGH, LOW, joint_reports, rounded

from pld_shuffle import Accountant, CountedBits, Subsampled
from pld_shuffle.calibration import InfeasibleError
from pld_shuffle.composition.renyi import renyi_bounds
from pld_shuffle.protocols import (
    BallsIntoBins,
    BinarySum,
    BitHistogram,
    FakeUsers,
    MixDUMP,
    PrivateHistogram,
    RAPPORHistogram,
    RealSum,
    UnarySum,
    ZeroSum,
    ZeroSumHistogram,
)
from pld_shuffle.protocols.sums import zero_sum_errors
from pld_shuffle.randomizers import RAPPOR, UnaryEncoding

REPETITIONS = 2000
RAPPOR_ = RAPPOR(k=4, noise=0.3, one_if_zero=0.2, one_if_one=0.9)
UNARY, OPTIMISED = (UnaryEncoding(k=4, eps0=2.0, variant=v) for v in ("symmetric", "optimised"))


# --- bias, variance, bounds on the error ----------------------------------------------------------------------


def runs_of(protocol, values, truth):
    """Errors of the estimates of many runs."""
    rng = np.random.default_rng(11)
    found = []
    for _ in range(REPETITIONS):
        kept = protocol.memoise(values, rng) if isinstance(protocol, RAPPORHistogram) else values
        estimate = protocol.analyze(protocol.shuffle(protocol.randomize(kept, rng), rng))
        found.append(getattr(estimate, "counts", estimate) - truth)
    return np.array(found)


def unbiased_with_variance(runs, variance):
    assert abs(runs.mean()) < 5 * math.sqrt(variance / len(runs))
    assert abs(runs.var(ddof=1) / variance - 1) < 5 * math.sqrt(2 / (len(runs) - 1))


@pytest.mark.parametrize("histogram", [
    PrivateHistogram(k=4, gamma=0.3, n=500),
    *(BitHistogram(randomizer=one, n=500) for one in (UNARY, OPTIMISED, RAPPOR_)),
    RAPPORHistogram(randomizer=RAPPOR_, n=500),
    *(BallsIntoBins(k=4, n=500, dummies=number) for number in (0.5, 2.25)),
    MixDUMP(k=4, n=500, dummies=1.0, gamma=0.25),
    FakeUsers(k=4, n=500, fakes=2, flip=0.125),
], ids=repr)  # fmt: skip
def test_histograms(histogram):
    """Unbiased with the exact variance in every bin; no data are worse than the worst."""
    counts = np.array([300, 0, 50, 150])
    values = np.repeat(np.arange(4), counts)
    runs = runs_of(histogram, values, counts)
    exact = histogram.bin_errors(counts)
    for j in range(4):
        unbiased_with_variance(runs[:, j], exact[j] ** 2)
    assert histogram.expected_error(counts).root == pytest.approx(exact.max())
    worst = histogram.expected_error().exact
    for one in ([500, 0, 0, 0], [125, 125, 125, 125], counts):
        assert np.all(histogram.bin_errors(one) ** 2 <= worst * (1 + 1e-12))
    rng = np.random.default_rng(2)
    given = histogram.memoise(values, rng) if hasattr(histogram, "memoise") else values
    estimate = histogram.analyze(histogram.randomize(given, rng))
    np.testing.assert_allclose(estimate.standard_errors, exact, rtol=0.25)
    if isinstance(histogram, PrivateHistogram):
        np.testing.assert_allclose(runs.sum(axis=1), 0, atol=1e-9)


@pytest.mark.parametrize("histogram", [
    PrivateHistogram(k=4, gamma=0.3, n=9), BitHistogram(randomizer=UNARY, n=9), BallsIntoBins(k=4, n=9, dummies=2.25),
    RAPPORHistogram(randomizer=RAPPOR_, n=9), MixDUMP(k=4, n=9, dummies=1.0, gamma=0.25),
    FakeUsers(k=4, n=9, fakes=2, flip=0.125),
], ids=repr)  # fmt: skip
def test_variances_are_those_of_independent_messages(histogram):
    """A one in a bin or none, each message by itself. How many dummies came is seen."""
    k, counts, added = histogram.k, np.array([5, 0, 1, 3]), 0.0
    if isinstance(histogram, FakeUsers):
        own = np.where(np.eye(k) == 1, 1 - histogram.flip, histogram.flip)
        added = histogram.n * histogram.fakes * histogram.flip * (1 - histogram.flip)
    elif isinstance(histogram, BitHistogram | RAPPORHistogram):
        reports, masses = enumerated(histogram.randomizer)
        own = masses @ reports
    else:
        own = np.array([oracles.rr_law(k, getattr(histogram, "gamma", 0.0), x) for x in range(k)], float)
    if isinstance(histogram, BallsIntoBins | MixDUMP):
        added = histogram.n * histogram.dummies * (k - 1) / k**2
    variance = (counts @ (own * (1 - own)) + added) / (own[0, 0] - own[1, 0]) ** 2
    assert histogram.bin_errors(counts) ** 2 == pytest.approx(variance, rel=1e-12)


SQUARES = np.random.default_rng(1).random(300) ** 2


@pytest.mark.parametrize("protocol, values", [
    *((BinarySum(gamma=0.2, n=400), (np.arange(400) < ones) * 1) for ones in (0, 120, 400)),
    *((RealSum(k=k, gamma=0.15, n=300), SQUARES) for k in (1, 3, 10)),
    *((UnarySum(bits=bits, gamma=0.15, n=300), SQUARES) for bits in (1, 4, 20)),
], ids=lambda value: repr(value) if not isinstance(value, np.ndarray) else "")  # fmt: skip
def test_sums(protocol, values):
    """Unbiased with the exact variance, for values on and off the grid."""
    runs = runs_of(protocol, values, values.sum())
    worst = protocol.expected_error().exact
    data = () if isinstance(protocol, BinarySum) else (values,)
    exact = protocol.expected_error(*data).exact
    unbiased_with_variance(runs, exact)
    assert exact <= worst * (1 + 1e-12)


@pytest.mark.parametrize("k", [1, 2, 3, 7, 50])
@pytest.mark.parametrize("gamma", [1e-4, 0.01, 0.3, 0.9])
def test_real_sum_worst_case_is_the_maximum_and_below_that_of_theorem_2(k, gamma):
    protocol = RealSum(k=k, gamma=gamma, n=1)
    worst = protocol.expected_error()
    near = np.clip(protocol.worst_value + np.linspace(-1e-3, 1e-3, 201), 0, 1)
    values = np.concatenate((np.linspace(0, 1, 1001), near))
    grid = [protocol.expected_error([x]).exact for x in values]
    assert max(grid) <= worst.exact * (1 + 1e-12)
    assert max(grid) >= worst.exact * (1 - 1e-6)
    published = ((1 - gamma) / (4 * k**2) + gamma / 2) / (1 - gamma) ** 2
    assert worst.exact <= published * (1 + 1e-12)


@pytest.mark.parametrize("cells, gamma, x", [
    (1, 0.3, 0.2), (3, 0.1, 0.5), (4, 0.7, 0.97), (4, 0.7, 1.0), (5, 0.2, 1), (2, 0.4, 0),
])  # fmt: skip
def test_errors_of_sums_by_enumeration(cells, gamma, x):
    """One user: all roundings and all answers, in one message or in as many bits."""
    lie = gamma / 2
    for protocol in (RealSum(k=cells, gamma=gamma, n=1), UnarySum(bits=cells, gamma=gamma, n=1)):
        mean = square = 0.0
        for cell, chance in rounded(x, cells):
            if isinstance(protocol, RealSum):
                answers = range(cells + 1)
                views = [([m], gamma / (cells + 1) + (1 - gamma) * (m == cell)) for m in answers]
            else:
                truth = [1] * cell + [0] * (cells - cell)
                views = []
                for bits in itertools.product((0, 1), repeat=cells):
                    wrong = int(np.sum(np.not_equal(bits, truth)))
                    views.append((bits, lie**wrong * (1 - lie) ** (cells - wrong)))
            for messages, mass in views:
                error = protocol.analyze(messages) - x
                mean += chance * mass * error
                square += chance * mass * error**2
        assert mean == pytest.approx(0, abs=1e-12)
        assert protocol.expected_error([x]).exact == pytest.approx(square, rel=1e-12)


@pytest.mark.parametrize("counts", [[60, 0], [45, 15], [20, 40]])
def test_zero_sums_report_zero_for_zero_and_their_error_is_exact(counts):
    """The sum, and every bin of the histogram, which is a ZSUM of its own."""
    values = np.repeat([0, 1], counts)
    one, both = ZeroSum(rate=0.85, n=60), ZeroSumHistogram(k=2, rate=0.85, n=60)
    runs = np.column_stack([runs_of(one, values, counts[1]), runs_of(both, values, counts)])
    exact = np.append(one.expected_error(counts[1]).exact, both.bin_errors(counts) ** 2)
    squares = runs**2
    wrong = np.abs(squares.mean(axis=0) - exact)
    assert np.all(wrong <= 5 * squares.std(axis=0) / math.sqrt(REPETITIONS))
    assert exact[2] == pytest.approx(exact[0])
    assert exact.max() == pytest.approx(both.expected_error(counts).exact)
    assert exact.max() <= both.expected_error().exact == one.expected_error().exact
    if counts[1] == 0:
        assert np.all(runs[:, [0, 2]] == 0) and exact[0] == exact[2] == 0


@pytest.mark.parametrize("rate", [0.5, 0.03, 0.8, 0.999, 1e-9, 1 - 1e-9])
@pytest.mark.parametrize("n", [1, 2, 9, 400])
def test_zero_sum_errors_are_the_sums_they_stand_for(n, rate):
    """The closed form against the defining sum for every true sum; bisection finds the largest of them."""
    eta = np.arange(n + 1)
    masses = binom.pmf(eta, n, rate)
    truth = np.array(
        [np.sum(masses * np.where(eta > n - s, eta - n * rate, -s) ** 2, dtype=float) for s in range(n + 1)]
    )
    np.testing.assert_allclose(zero_sum_errors(eta, n, rate), truth, rtol=1e-9, atol=1e-300)
    protocol = ZeroSum(rate=rate, n=n)
    assert protocol.expected_error().exact == pytest.approx(truth.max(), rel=1e-9)
    histogram = ZeroSumHistogram(k=2, rate=rate, n=n)
    assert histogram.expected_error().exact == protocol.expected_error().exact


def test_zero_sum_errors_of_many_users_are_gaussian():
    """n = 1e12, without arrays of that size: s = n q + y has (s^2 Phi(-y/sigma) + kept) / sigma^2."""
    n, rate = 10**12, 0.75
    sigma = math.sqrt(n * rate * (1 - rate))
    protocol = ZeroSum(rate=rate, n=n)
    for sigmas in (-2.0, 0.0, 3.0):
        s = round(n * (1 - rate) + sigmas * sigma)
        kept = sigma**2 * (norm.cdf(sigmas) - sigmas * norm.pdf(sigmas))
        truth = s**2 * norm.cdf(-sigmas) + kept
        assert protocol.expected_error(s).exact == pytest.approx(truth, rel=1e-4)
        assert protocol.expected_error(s).exact <= protocol.expected_error().exact


# --- the border ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol, values", [
    (PrivateHistogram(k=3, gamma=0.5, n=6), [0, 1, 2, 0, 1, 2]),
    (BinarySum(gamma=0.5, n=6), [0, 1, 1, 0, 1, 0]),
    (ZeroSum(rate=0.5, n=6), [0, 1, 1, 0, 1, 0]),
    (ZeroSumHistogram(k=3, rate=0.5, n=6), [0, 1, 2, 0, 1, 2]),
    (RealSum(k=3, gamma=0.5, n=6), [0.0, 0.1, 1.0, 0.5, 0.2, 0.9]),
    (UnarySum(bits=3, gamma=0.5, n=6), [0.0, 0.1, 1.0, 0.5, 0.2, 0.9]),
    (BitHistogram(randomizer=RAPPOR_, n=6), [0, 1, 2, 3, 0, 1]),
    (FakeUsers(k=3, n=6, fakes=2, flip=0.125), [0, 1, 2, 0, 1, 2]),
], ids=repr)  # fmt: skip
def test_border_and_shuffling(protocol, values):
    rng = np.random.default_rng(3)
    messages = protocol.randomize(values, rng)
    mixed = protocol.shuffle(messages, rng)
    one, two = protocol.analyze(messages), protocol.analyze(mixed)
    np.testing.assert_array_equal(one, two)
    for error, words, call, *given in (
        (ValueError, "values must have shape", protocol.randomize, values[:-1], rng),
        (ValueError, "values must have shape", protocol.randomize, [values], rng),
        (ValueError, "messages must", protocol.analyze, messages[:-1]),
        (ValueError, "messages must", protocol.analyze, np.asarray(messages) + 7),
        (TypeError, "rng", protocol.randomize, values, 3), (TypeError, "rng", protocol.shuffle, messages, None),
    ):  # fmt: skip
        with pytest.raises(error, match=words):
            call(*given)
    assert hash(protocol) == hash(type(protocol)(**vars(protocol)))


#: Each protocol with some noise, and its design: what `from_budget` takes. What they refuse: test_border.py.
STEPS = {"one_if_zero": 0.02, "one_if_one": 0.98}
PROTOCOLS = {
    "histogram": (PrivateHistogram, {"gamma": 0.5}, {"k": 4}),
    "binary": (BinarySum, {"gamma": 0.5}, {}),
    "real": (RealSum, {"gamma": 0.5}, {"k": 5}),
    "unary": (UnarySum, {"gamma": 0.5}, {"bits": 8}),
    "one bit": (RealSum, {"gamma": 0.5}, {"k": 1}),
    "zero": (ZeroSum, {"rate": 0.5}, {}),
    "zero histogram": (ZeroSumHistogram, {"rate": 0.5}, {"k": 3}),
    "bits": (BitHistogram, {"randomizer": RAPPOR_}, {"k": 3}),
    "rappor": (RAPPORHistogram, {"randomizer": RAPPOR_}, {"k": 3, **STEPS}),
    "dummies": (BallsIntoBins, {"dummies": 1.0}, {"k": 3}),
    "mixed": (MixDUMP, {"dummies": 1.0}, {"k": 3, "gamma": 0.01}),
    "fakes": (FakeUsers, {"flip": 0.25}, {"k": 3, "fakes": 1}),
}


# --- privacy: exhaustive enumeration against what is accounted for --------------------------------------


def test_unary_sum_is_accounted_jointly_where_that_is_cheap():
    """n = 200, r = 3: the count of all bits together is below the composition of the positions, by 1 % at most."""
    protocol, long = (UnarySum(bits=bits, gamma=0.5, n=200) for bits in (3, 200))
    together = protocol.accountant().epsilon_bounds(1e-4)
    position = BinarySum(gamma=0.5, n=200).mechanism
    apart = Accountant().compose(position, 3).get_epsilon(1e-4)
    assert together.upper <= apart * (1 + 1e-4) and apart <= 1.01 * together.lower
    assert protocol.ledger() == ((CountedBits(200, gamma=0.5, bits=3), 1),)
    assert protocol.ledger(2) == ((position, 6),) and long.ledger() == ((position, 200),)


@pytest.mark.parametrize("memoised", [False, True])
def test_real_calls_have_the_enumerated_joint_law(memoised):
    """Two calls of `randomize` by 100,000 users of value 1: the joint law of their reports, cell by cell."""
    n, noise = 100_000, Fraction(1, 2)
    steps = RAPPOR(k=2, noise=float(noise), one_if_zero=float(LOW), one_if_one=float(HIGH))
    values, rng = np.ones(n, dtype=int), np.random.default_rng(8)
    if memoised:
        protocol = RAPPORHistogram(randomizer=steps, n=n)
        kept = protocol.memoise(values, rng)
        calls = [protocol.randomize(kept, rng) for _ in range(2)]
    else:
        fresh = BitHistogram(randomizer=steps, n=n)
        calls = [fresh.randomize(values, rng) for _ in range(2)]
    columns = [call @ np.array([1, 2]) for call in calls]
    law = joint_reports(2, noise, 2, memoised)
    other = joint_reports(2, noise, 2, not memoised)
    far = 0.0
    for cell, mass in law.items():
        found = np.mean((columns[0] == cell[0]) & (columns[1] == cell[1]))
        width = math.sqrt(float(mass * (1 - mass)) / n)
        assert abs(found - float(mass)) <= 5 * width
        far = max(far, abs(found - float(other[cell])) / width)
    assert far > 10  # and they do not have the other protocol's


def test_rappor_ledgers():
    """Fresh noise: so many rounds. Memoised noise: one collection, or the lifetime once."""
    fresh = BitHistogram(randomizer=RAPPOR_, n=1000)
    assert fresh.ledger(3) == ((fresh.mechanism, 3),)
    kept = RAPPORHistogram(randomizer=RAPPOR_, n=1000)
    assert kept.ledger() == ((kept.collection_mechanism, 1),) == ((fresh.mechanism, 1),)
    assert kept.ledger(2) == kept.ledger(1000) == ((kept.lifetime_mechanism, 1),)
    lifetime = kept.lifetime_mechanism.randomizer.eps0
    assert lifetime == pytest.approx(RAPPOR_.memoised.eps0, rel=1e-12)
    assert kept.lifetime_mechanism.randomizer.tv == pytest.approx(0.7, rel=1e-12)
    half = replace(kept, honest_fraction=0.5)
    assert half.ledger(2)[0][0].n == half.ledger(1)[0][0].n == 500


def test_rappor_takes_filters_only_and_does_not_change_them():
    """Estimate and error are those of BitHistogram."""
    counts = np.array([300, 0, 50, 150])
    values = np.repeat(np.arange(4), counts)
    kept = RAPPORHistogram(randomizer=RAPPOR_, n=500)
    assert kept.expected_error(counts) == BitHistogram(randomizer=RAPPOR_, n=500).expected_error(counts)
    rng = np.random.default_rng(12)
    filters = kept.memoise(values, rng)
    once = filters.copy()
    kept.randomize(filters, rng)
    np.testing.assert_array_equal(filters, once)
    exact_steps = RAPPOR(k=4, noise=0.3, one_if_zero=0.0, one_if_one=1.0)
    silent = replace(kept, randomizer=exact_steps)
    np.testing.assert_array_equal(silent.randomize(filters, rng), filters)
    for error, words, call, *given in (
        *((ValueError, "filters must be what `memoise` returned once", kept.randomize, wrong, rng)
          for wrong in (values, filters[:-1], filters[:, :3])),
        (ValueError, "filters must lie in", kept.randomize, filters + 1, rng),
        (ValueError, "values must have shape", kept.memoise, values[:-1], rng),
        (ValueError, "messages must", kept.analyze, filters[:-1]),
        (TypeError, "rng", kept.memoise, values, 3), (TypeError, "rng", kept.randomize, filters, None),
    ):  # fmt: skip
        with pytest.raises(error, match=words):
            call(*given)


def test_cohorts_of_honest_users():
    """Everybody honest: the rate is n/population. Some have none: their ledger says what rounds cost."""
    for one in (UnarySum, RAPPORHistogram):
        assert not hasattr(one, "mechanism") and not hasattr(one, "on_cohort")
    protocol = BinarySum(gamma=0.5, n=20)
    assert protocol.on_cohort(50) == Subsampled(protocol.mechanism, population=50)
    some = ZeroSum(rate=0.75, n=20, honest_fraction=0.5)
    assert some.on_cohort(50) == Subsampled(some.mechanism, rate=20 / 25)
    assert some.on_cohort(30).rate == 1.0  # all of the 15 honest users may be in a cohort
    for wrong in (19, 0):
        with pytest.raises(ValueError, match="population must be at least"):
            some.on_cohort(wrong)
    assert some.on_cohort(50.0) == some.on_cohort(50)
    with pytest.raises(TypeError, match="population"):
        some.on_cohort(50.5)


@pytest.mark.parametrize("n, fraction, honest", [
    (100, 0.29, 29), (10, 0.7, 7), (5, 0.5, 2), (10**9, 1.0, 10**9), (3, 1 / 3 + 1e-9, 1),
])  # fmt: skip
def test_honest_users_are_counted_exactly(n, fraction, honest):
    """0.29 of 100 is 29, although the double next to 0.29 is below it; never more than asked for."""
    assert BinarySum(gamma=0.5, n=n, honest_fraction=fraction).honest == honest


@pytest.mark.parametrize("n, rate", [(10**4, 0.03), (10**6, 1 - 1e-3), (10**8, 1 - 1e-6)])
def test_binomial_profiles_enclose_high_precision_sums(n, rate):
    """Sums of all terms to 40 digits, deltas down to 1e-80; and the enclosure is narrower than 1e-8."""
    mechanism = ZeroSum(rate=rate, n=n).mechanism
    p = oracles.mpf(min(rate, 1 - rate))
    for sigmas in (0.3, 6, 25):
        expm1_eps = np.array([math.expm1(sigmas * mechanism.pair.scale)])
        s = 1 + oracles.mpf(float(expm1_eps[0]))
        truth = max(oracles.binomial_excess(n, share, 1, s) for share in (p, 1 - p))
        bounds = mechanism.pair.profile(expm1_eps, 0.0, 0.0)
        lower, upper = oracles.mpf(float(bounds.lower[0])), oracles.mpf(float(bounds.upper[0]))
        assert lower <= truth <= upper
        assert upper - lower <= 1e-8 * truth


def test_binomial_pairs_have_counts_that_the_other_has_not():
    for mechanism in (ZeroSum(rate=0.8, n=30).mechanism, ZeroSumHistogram(rate=0.8, n=30, k=3).mechanism):
        assert renyi_bounds(mechanism.pair, 2.0).upper == math.inf
        assert mechanism.pair.max_loss.upper == math.inf
    with pytest.raises(MemoryError, match="over the limit"):
        _ = ZeroSum(rate=0.5, n=10**12).mechanism


# --- calibration -----------------------------------------------------------------------------------------


def riskier(protocol, factor=1e-3):
    """The same protocol with a thousandth less noise."""
    for name in ("dummies", "flip", "gamma"):
        if hasattr(protocol, name):
            return replace(protocol, **{name: getattr(protocol, name) * (1 - factor)})
    if hasattr(protocol, "rate"):
        return replace(protocol, rate=1 - (1 - protocol.rate) * (1 - factor))
    one = protocol.randomizer
    less = {"noise": one.noise * (1 - factor)} if isinstance(one, RAPPOR) else {"eps0": one.eps0 * (1 + factor)}
    return replace(protocol, randomizer=replace(one, **less))


def budgeted(name, *budget, **more):
    maker, _, design = PROTOCOLS[name]
    return maker.from_budget(*budget, **design, **more)


def each_protocol(*slow, but=()):
    """All of the table; some are slow."""
    names = [pytest.param(n, marks=[pytest.mark.slow] * (n in slow)) for n in PROTOCOLS if n not in but]
    return pytest.mark.parametrize("name", names)


# One of each search for the noise is quick.
SLOW = PROTOCOLS.keys() - {"histogram", "zero", "rappor", "dummies", "fakes"}


#: Epsilon, delta, users, and more; several rounds are of one protocol of each kind, as all of them share the search.
HALF_HONEST = (1.5, 1e-5, 4_000, {"honest_fraction": 0.5})
SEVERAL = (0.8, 1e-8, 20_000, {"rounds": 3})
BUDGETS = [(name, HALF_HONEST) for name in PROTOCOLS if name != "one bit"]
BUDGETS += [(name, SEVERAL) for name in ("histogram", "binary", "zero", "rappor", "dummies", "fakes")]


@pytest.mark.parametrize("name, budget", [
    pytest.param(name, budget, id=f"{name}, {budget[3]}", marks=[pytest.mark.slow] * (name in SLOW))
    for name, budget in BUDGETS
])  # fmt: skip
def test_from_budget_is_safe_and_nearly_tight(name, budget):
    """Proved private as returned; with a thousandth less noise, the same analysis cannot prove it."""
    epsilon, delta, n, more = budget
    protocol, rounds = budgeted(name, epsilon, delta, n, **more), more.get("rounds", 1)
    assert protocol.n == n and protocol.honest == n * more.get("honest_fraction", 1.0)
    assert protocol.accountant(rounds).get_epsilon(delta) <= epsilon
    # The line above is the proof. Asked for delta, bits are seen through another polygon above the truth.
    assert protocol.accountant(rounds).get_delta(epsilon) <= delta * 1.02
    assert riskier(protocol).accountant(rounds).gap_bounds(delta).analysis > epsilon


@pytest.mark.parametrize("epsilon, n, near", [
    (20.0, 100, 0.04), (8.0, 30, 0.04), pytest.param(0.9, 10_000, 3e-3, marks=pytest.mark.slow),
])  # fmt: skip
def test_real_sum_from_budget_finds_the_best_number_of_cells(epsilon, n, near):
    """No other k has an exact worst-case error at the same budget that is smaller by more than `near`."""
    best = RealSum.from_budget(epsilon, 1e-6, n)
    assert best.accountant().get_epsilon(1e-6) <= epsilon and best.k > 5
    beside = max(1, best.k // 20)
    for k in (max(1, best.k // 2), best.k - beside, best.k + beside, 2 * best.k):
        other = RealSum.from_budget(epsilon, 1e-6, n, k=k)
        assert other.expected_error().exact >= (1 - near) * best.expected_error().exact


def test_bit_histogram_from_budget_takes_the_better_variant():
    found = BitHistogram.from_budget(1.0, 1e-6, 3_000, k=5)
    both = [BitHistogram.from_budget(1.0, 1e-6, 3_000, k=5, variant=variant) for variant in ("symmetric", "optimised")]
    assert found.expected_error().exact == min(one.expected_error().exact for one in both)


def test_a_lonely_user_gets_local_privacy():
    """Without a crowd the budget is spent as pure local privacy; ZSUM has nothing to fall back on."""
    alone = PrivateHistogram.from_budget(1.0, 1e-9, 1, k=3)
    assert alone.randomizer.eps0 == pytest.approx(1.0, rel=1e-4)
    shared = BinarySum.from_budget(1.0, 1e-12, 1, rounds=4)
    assert shared.randomizer.eps0 == pytest.approx(0.25, rel=1e-4)
    with pytest.raises(InfeasibleError):
        ZeroSum.from_budget(0.5, 1e-6, 20)
    with pytest.raises(InfeasibleError):
        ZeroSumHistogram.from_budget(0.5, 1e-6, 20, k=2)


@each_protocol(*SLOW, "rappor")
def test_impossible_budgets_name_the_budget_and_the_users(name):
    """No rate so close to 1 that arithmetic fails."""
    with pytest.raises(InfeasibleError, match=r"epsilon=1e-13 at delta=1e-20 .* n=10 users"):
        budgeted(name, 1e-13, 1e-20, 10)
    if name == "zero":
        text = r"epsilon=0.001 at delta=1e-06 .* n=1000 users \(500 honest\) and rounds=3: .*more honest"
        with pytest.raises(InfeasibleError, match=text):
            ZeroSum.from_budget(0.001, 1e-6, 1000, rounds=3, honest_fraction=0.5)


@pytest.mark.filterwarnings("ignore::pld_shuffle.AccuracyWarning")  # one lie in 10^12
@each_protocol(but=("zero", "unary"))
def test_budgets_that_ask_for_nothing(name):
    """epsilon = 1000: the least noise in the range, and it is accounted for."""
    protocol = budgeted(name, 1000.0, 1e-6, 100)
    assert protocol.accountant(rtol=0.1).get_epsilon(1e-6) <= 1000.0
