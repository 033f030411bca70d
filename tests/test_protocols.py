"""Protocols: bias and variance on simulated data, exact errors against enumeration, the border.

Statistical tolerance: over R repetitions the mean error must be within 5 standard errors of 0, and the
sample variance within 5 sqrt(2/(R-1)) (relative) of the exact one, which is its standard error for
nearly normal estimates. Seeds are fixed.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from pld_shuffle.protocols import (
    BinarySum,
    BitHistogram,
    PrivateHistogram,
    RealSum,
    ZeroSum,
)
from pld_shuffle.randomizers import RAPPOR, BinaryRandomizedResponse, UnaryEncoding

REPETITIONS = 2000


def errors(protocol, values, truth, read=lambda estimate: estimate):
    rng = np.random.default_rng(11)
    runs = []
    for _ in range(REPETITIONS):
        messages = protocol.shuffle(protocol.randomize(values, rng), rng)
        runs.append(read(protocol.analyze(messages)) - truth)
    return np.array(runs)


def unbiased_with_variance(runs, variance):
    assert abs(runs.mean()) < 5 * math.sqrt(variance / len(runs))
    assert abs(runs.var(ddof=1) / variance - 1) < 5 * math.sqrt(2 / (len(runs) - 1))


RAPPOR_ = RAPPOR(k=4, noise=0.3, one_if_zero=0.2, one_if_one=0.9)


@pytest.mark.parametrize(
    "histogram",
    [
        PrivateHistogram(k=4, gamma=0.3, n=500),
        BitHistogram(randomizer=UnaryEncoding(k=4, eps0=2.0), n=500),
        BitHistogram(randomizer=UnaryEncoding(k=4, eps0=2.0, variant="optimised"), n=500),
        BitHistogram(randomizer=RAPPOR_, n=500),
    ],
    ids=repr,
)
def test_histograms(histogram):
    counts = np.array([300, 0, 50, 150])
    values = np.repeat(np.arange(4), counts)
    runs = errors(histogram, values, counts, lambda estimate: estimate.counts)
    exact = histogram.bin_errors(counts)
    for j in range(4):
        unbiased_with_variance(runs[:, j], exact[j] ** 2)
    assert histogram.expected_error(counts).root == pytest.approx(exact.max())
    worst = histogram.expected_error().exact
    for one in ([500, 0, 0, 0], [125, 125, 125, 125], counts):
        assert np.all(histogram.bin_errors(one) ** 2 <= worst * (1 + 1e-12))
    rng = np.random.default_rng(2)
    estimate = histogram.analyze(histogram.randomize(values, rng))
    np.testing.assert_allclose(estimate.standard_errors, exact, rtol=0.25)


def test_histogram_estimates_sum_to_n_and_bounds_hold():
    histogram = PrivateHistogram(k=3, gamma=0.4, n=200)
    values = np.repeat([0, 2], [150, 50])
    runs = errors(histogram, values, np.array([150, 0, 50]), lambda estimate: estimate.counts)
    np.testing.assert_allclose(runs.sum(axis=1), 0, atol=1e-9)
    missed = np.mean(np.abs(runs).max(axis=1) > histogram.error_bound(failure=0.05))
    assert missed <= 0.05


@pytest.mark.parametrize("ones", [0, 120, 400])
def test_binary_sum(ones):
    protocol = BinarySum(gamma=0.2, n=400)
    values = (np.arange(400) < ones).astype(int)
    runs = errors(protocol, values, ones)
    unbiased_with_variance(runs, protocol.expected_error().exact)
    assert np.mean(np.abs(runs) > protocol.error_bound(failure=0.05)) <= 0.05


def test_binary_sum_equals_the_histogram_of_two_bins():
    binary, histogram = BinarySum(gamma=0.3, n=90), PrivateHistogram(k=2, gamma=0.3, n=90)
    assert binary.expected_error().exact == pytest.approx(histogram.expected_error().exact)
    messages = np.repeat([0, 1], [40, 50])
    assert binary.analyze(messages) == pytest.approx(histogram.analyze(messages).counts[1])
    assert binary.randomizer.gamma == pytest.approx(0.3)


def test_zero_sum_reports_zero_for_zero_with_certainty():
    protocol = ZeroSum(rate=0.7, n=50)
    assert np.all(errors(protocol, np.zeros(50, dtype=int), 0) == 0)
    assert protocol.expected_error(0).exact == 0


@pytest.mark.parametrize("ones", [5, 15, 40])
def test_zero_sum_error_is_exact(ones):
    protocol = ZeroSum(rate=0.8, n=50)
    values = (np.arange(50) < ones).astype(int)
    squares = errors(protocol, values, ones) ** 2
    exact = protocol.expected_error(ones).exact
    assert abs(squares.mean() - exact) < 5 * squares.std() / math.sqrt(REPETITIONS)
    assert exact <= protocol.expected_error().exact


def test_zero_sum_error_by_enumeration():
    protocol = ZeroSum(rate=0.6, n=4)
    for ones in range(5):
        total = 0.0
        for noise in itertools.product((0, 1), repeat=4):
            mass = math.prod(0.6 if bit else 0.4 for bit in noise)
            bits = [1] * ones + [0] * (4 - ones) + list(noise)
            total += mass * (protocol.analyze(bits) - ones) ** 2
        assert protocol.expected_error(ones).exact == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("k", [1, 3, 10])
def test_real_sum(k):
    protocol = RealSum(k=k, gamma=0.15, n=300)
    values = np.random.default_rng(1).random(300) ** 2
    runs = errors(protocol, values, values.sum())
    unbiased_with_variance(runs, protocol.expected_error(values).exact)
    assert np.mean(np.abs(runs) > protocol.error_bound(failure=0.05)) <= 0.05


@pytest.mark.parametrize("k", [1, 2, 3, 7, 50])
@pytest.mark.parametrize("gamma", [1e-4, 0.01, 0.3, 0.9])
def test_real_sum_worst_case_is_the_maximum_and_below_the_published_bound(k, gamma):
    protocol = RealSum(k=k, gamma=gamma, n=1)
    grid = [protocol.expected_error([x]).exact for x in np.linspace(0, 1, 20_001)]
    worst = protocol.expected_error()
    assert max(grid) <= worst.exact * (1 + 1e-12)
    assert max(grid) >= worst.exact * (1 - 1e-6)
    assert worst.exact <= worst.published * (1 + 1e-12)


@pytest.mark.parametrize("k, gamma, x", [(1, 0.3, 0.2), (3, 0.1, 0.5), (4, 0.7, 0.97), (5, 0.2, 1)])
def test_real_sum_error_by_enumeration(k, gamma, x):
    """One user: all roundings and all answers."""
    protocol = RealSum(k=k, gamma=gamma, n=1)
    low = min(math.floor(x * k), k - 1)
    mean = square = 0.0
    for rounded, chance in ((low, 1 - (x * k - low)), (low + 1, x * k - low)):
        for message in range(k + 1):
            mass = chance * (gamma / (k + 1) + (1 - gamma) * (message == rounded))
            error = protocol.analyze([message]) - x
            mean += mass * error
            square += mass * error**2
    assert mean == pytest.approx(0, abs=1e-12)
    assert protocol.expected_error([x]).exact == pytest.approx(square, rel=1e-12)


def test_real_sum_with_one_cell_is_the_one_bit_mean():
    """Lecture notes, equation 9.2: P[1] = 1/(e+1) + x (e-1)/(e+1) with e = e^eps0."""
    eps0, n = 1.2, 200_000
    odds = math.exp(eps0)
    protocol = RealSum(k=1, gamma=BinaryRandomizedResponse(eps0).gamma, n=n)
    assert protocol.randomizer.eps0 == pytest.approx(eps0)
    messages = protocol.randomize(np.full(n, 0.3), np.random.default_rng(5))
    chance = 1 / (odds + 1) + 0.3 * (odds - 1) / (odds + 1)
    assert abs(messages.mean() - chance) < 5 * math.sqrt(0.25 / n)
    notes = np.sum((messages * (odds + 1) - 1) / (odds - 1))
    assert protocol.analyze(messages) == pytest.approx(notes)


def test_the_papers_choice_of_cells():
    protocol = RealSum.from_blankets(c=10.0, n=10_000)
    assert (protocol.k, protocol.gamma) == (10, pytest.approx(10 * 11 / 10_000))
    with pytest.raises(ValueError, match="needs more than"):
        RealSum.from_blankets(c=10.0, n=15)


@pytest.mark.parametrize(
    "protocol, values",
    [
        (PrivateHistogram(k=3, gamma=0.5, n=6), [0, 1, 2, 0, 1, 2]),
        (BinarySum(gamma=0.5, n=6), [0, 1, 1, 0, 1, 0]),
        (ZeroSum(rate=0.5, n=6), [0, 1, 1, 0, 1, 0]),
        (RealSum(k=3, gamma=0.5, n=6), [0.0, 0.1, 1.0, 0.5, 0.2, 0.9]),
        (BitHistogram(randomizer=RAPPOR_, n=6), [0, 1, 2, 3, 0, 1]),
    ],
    ids=repr,
)
def test_border_and_shuffling(protocol, values):
    rng = np.random.default_rng(3)
    messages = protocol.randomize(values, rng)
    mixed = protocol.shuffle(messages, rng)
    one, two = protocol.analyze(messages), protocol.analyze(mixed)
    np.testing.assert_array_equal(one, two)
    for wrong in (values[:-1], [values]):
        with pytest.raises(ValueError, match="values must have shape"):
            protocol.randomize(wrong, rng)
    with pytest.raises(ValueError, match="messages must"):
        protocol.analyze(messages[:-1])
    with pytest.raises(ValueError, match="messages must"):
        protocol.analyze(np.asarray(messages) + 7)
    with pytest.raises(TypeError, match="rng"):
        protocol.randomize(values, 3)
    with pytest.raises(TypeError, match="rng"):
        protocol.shuffle(messages, None)
    assert hash(protocol) == hash(type(protocol)(**vars(protocol)))


@pytest.mark.parametrize(
    "build, name",
    [
        (lambda v: PrivateHistogram(k=3, gamma=v, n=5), "gamma"),
        (lambda v: BinarySum(gamma=v, n=5), "gamma"),
        (lambda v: RealSum(k=2, gamma=v, n=5), "gamma"),
        (lambda v: ZeroSum(rate=v, n=5), "rate"),
        (lambda v: BinarySum(gamma=0.5, n=5).error_bound(failure=v), "failure"),
        (lambda v: RealSum(k=2, gamma=0.5, n=5).error_bound(failure=v), "failure"),
        (lambda v: PrivateHistogram(k=2, gamma=0.5, n=5).error_bound(failure=v), "failure"),
    ],
)
def test_bad_probabilities_are_named(build, name):
    for bad in (0.0, 1.0, -0.5, math.nan):
        with pytest.raises(ValueError, match=f"{name} .*{bad}"):
            build(bad)
    with pytest.raises(TypeError, match=name):
        build("0.5")


def test_bad_sizes_are_named():
    for build in (
        lambda v: PrivateHistogram(k=2, gamma=0.5, n=v),
        lambda v: BinarySum(gamma=0.5, n=v),
        lambda v: ZeroSum(rate=0.5, n=v),
        lambda v: RealSum(k=2, gamma=0.5, n=v),
        lambda v: BitHistogram(randomizer=RAPPOR_, n=v),
    ):
        with pytest.raises(ValueError, match="n must"):
            build(0)
        with pytest.raises(TypeError, match="n must"):
            build(1.5)
    with pytest.raises(ValueError, match="one-hot"):
        bloom = RAPPOR(k=4, noise=0.3, one_if_zero=0.2, one_if_one=0.9, bits=8, hashes=2)
        BitHistogram(randomizer=bloom, n=3)
    with pytest.raises(TypeError, match="randomizer"):
        BitHistogram(randomizer=BinaryRandomizedResponse(1.0), n=3)
    for counts in ([1, 1], [3, 3, -1], [2, 2, 2]):
        with pytest.raises(ValueError, match="counts"):
            PrivateHistogram(k=3, gamma=0.5, n=5).bin_errors(counts)
    with pytest.raises(ValueError, match="true_sum"):
        ZeroSum(rate=0.5, n=5).expected_error(6)
