"""Randomizers: closed forms against output laws, samples against output laws, and the border.

Oracles
    * `Fraction` laws written down here from the definitions, for rational e^eps0: the closed forms
      must agree with brute force over those (1e-12 relative).
    * The law matrix of each object, brute force over all its pairs (1e-12).
    * Quadrature of the densities for the continuous randomizers.

Sampling tests compare frequencies with the law by Pearson's chi-square (outcomes with an expected
count below 10 pooled) at false-alarm probability 1e-6; the seeds are fixed, so a test either always
passes or always fails. `test_the_chi_square_notices_a_small_error` states what it would notice.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import pickle
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import chi2, kstest, norm

from pld_shuffle.randomizers import (
    RAPPOR,
    BinaryRandomizedResponse,
    ContinuousRandomizer,
    DiscreteRandomizer,
    FiniteRandomizer,
    Gaussian,
    HadamardResponse,
    KRandomizedResponse,
    Laplace,
    LocalHashing,
    LocalRandomizer,
    SubsetSelection,
    UnaryEncoding,
)

FALSE_ALARM = 1e-6
SAMPLES = 100_000


def rappor(**changes):
    settings = {"k": 4, "noise": 0.5, "one_if_zero": 0.25, "one_if_one": 0.75}
    return RAPPOR(**{**settings, **changes})


MATRIX = [[0.5, 0.25, 0.25, 0.0], [0.125, 0.5, 0.375, 0.0], [0.2, 0.2, 0.6, 0.0]]

NAMED = [
    KRandomizedResponse(k=2, eps0=1.0),
    KRandomizedResponse(k=5, eps0=2.5),
    KRandomizedResponse(k=3, eps0=30.0),
    BinaryRandomizedResponse(0.7),
    BinaryRandomizedResponse(eps0=12.0),
    UnaryEncoding(k=2, eps0=1.0),
    UnaryEncoding(k=5, eps0=2.0),
    UnaryEncoding(k=4, eps0=0.1, variant="optimised"),
    UnaryEncoding(k=6, eps0=8.0, variant="optimised"),
    rappor(),
    rappor(k=2),
    rappor(noise=0.25).memoised,
    rappor(noise=0.0),
    rappor(k=6, one_if_zero=0.0, one_if_one=0.9),
    SubsetSelection(k=2, size=1, eps0=1.0),
    SubsetSelection(k=6, size=1, eps0=2.0),
    SubsetSelection(k=6, size=3, eps0=2.0),
    SubsetSelection(k=5, size=4, eps0=0.5),
    LocalHashing(k=2, buckets=2, eps0=1.0),
    LocalHashing(k=2, buckets=4, eps0=1.5),
    LocalHashing(k=4, buckets=2, eps0=1.0),
    LocalHashing(k=3, buckets=3, eps0=1.0),
    LocalHashing(k=6, buckets=3, eps0=3.0),
    LocalHashing(k=3, buckets=6, eps0=2.0),
    HadamardResponse(k=2, eps0=1.0),
    HadamardResponse(k=5, eps0=1.5),
    HadamardResponse(k=8, eps0=0.5),
    HadamardResponse(k=3, eps0=1.0, blocks=2),
    HadamardResponse(k=5, eps0=2.0, blocks=2),
    HadamardResponse(k=9, eps0=2.0, blocks=4),
    HadamardResponse(k=4, eps0=3.0, blocks=8),
    DiscreteRandomizer(MATRIX),
]
BLOOM = [
    rappor(k=20, bits=6, hashes=2),
    rappor(k=50, bits=5, hashes=2, noise=0.2),
    rappor(k=100, bits=7, hashes=3, noise=0.8, salt=1),
]
CONTINUOUS = [
    Laplace(0.5),
    Laplace(eps0=4.0),
    Gaussian(sigma=0.5, eps0=1.0),
    Gaussian(sigma=2.0, eps0=3.0),
]
ALL = NAMED + BLOOM + CONTINUOUS

each_named = pytest.mark.parametrize("randomizer", NAMED, ids=repr)
each_finite = pytest.mark.parametrize("randomizer", NAMED + BLOOM, ids=repr)
each_continuous = pytest.mark.parametrize("randomizer", CONTINUOUS, ids=repr)
each = pytest.mark.parametrize("randomizer", ALL, ids=repr)


def brute_force(law):
    """(largest ratio, largest TV, blanket mass) of a law: loops over all pairs and all columns."""
    rows = [list(row) for row in law]
    ratio, distance = 0, 0
    for one, two in itertools.permutations(rows, 2):
        ratio = max(ratio, max(a / b for a, b in zip(one, two, strict=True) if a > 0))
        distance = max(distance, sum(max(a - b, 0) for a, b in zip(one, two, strict=True)))
    return ratio, distance, sum(min(column) for column in zip(*rows, strict=True))


def agrees(closed_form, computed):
    return closed_form == pytest.approx(float(computed), rel=1e-12, abs=0)


# ---------------------------------------------------------------- parameters against laws


@each_named
def test_parameters_equal_those_of_the_law(randomizer):
    ratio, distance, blanket = brute_force(randomizer.law())
    assert agrees(randomizer.p, ratio)
    assert agrees(randomizer.q, ratio)
    assert agrees(randomizer.eps0, math.log(ratio))
    assert agrees(randomizer.tv, distance)
    assert agrees(randomizer.gamma, blanket)
    assert randomizer.delta0 == 0


@each_named
def test_q_covers_every_other_user_and_is_attained(randomizer):
    law = randomizer.law()[:6]
    largest = 0.0
    for i, j in itertools.combinations(range(len(law)), 2):
        above = np.maximum(law[i], law[j])
        for other in law:
            here = above > 0
            largest = max(largest, float(np.max(above[here] / other[here])))
    assert largest <= randomizer.q * (1 + 1e-12)
    assert agrees(randomizer.q, largest)


@each_finite
def test_rows_are_probabilities(randomizer):
    law = randomizer.law()
    assert law.shape == (randomizer.inputs, randomizer.outputs)
    assert np.all(law >= 0)
    assert not law.flags.writeable
    np.testing.assert_allclose(law.sum(axis=1), 1, rtol=0, atol=1e-12)


@each_finite
def test_general_inequalities(randomizer):
    ratio = math.exp(randomizer.eps0)
    assert randomizer.tv <= (ratio - 1) / (ratio + 1) * (1 + 1e-12)
    assert randomizer.gamma >= (1 - 1e-12) / ratio
    assert randomizer.gamma <= 1 - randomizer.tv + 1e-12


@each_finite
def test_the_matrix_class_finds_the_same_parameters(randomizer):
    matrix = DiscreteRandomizer(randomizer.law())
    ratio, distance, blanket = brute_force(randomizer.law())
    assert agrees(matrix.p, ratio)
    assert agrees(matrix.q, ratio)
    assert agrees(matrix.tv, distance)
    assert agrees(matrix.gamma, blanket)
    assert agrees(matrix.worst_pair.p, ratio)
    assert agrees(matrix.farthest_pair.tv, distance)


@pytest.mark.parametrize("randomizer", BLOOM, ids=repr)
def test_bloom_parameters_bound_those_of_the_values(randomizer):
    ratio, distance, blanket = brute_force(randomizer.law())
    assert math.log(ratio) <= randomizer.eps0 * (1 + 1e-12)
    assert distance <= randomizer.tv * (1 + 1e-12)
    assert blanket >= randomizer.gamma * (1 - 1e-12)
    filters = randomizer.encode(np.arange(randomizer.k)).astype(int)
    if (filters @ filters.T).min() == 0:
        assert agrees(randomizer.p, ratio)
        assert agrees(randomizer.tv, distance)
    if len(np.unique(filters, axis=0)) == math.comb(randomizer.length, randomizer.hashes):
        assert agrees(randomizer.gamma, blanket)


def test_some_bloom_settings_attain_all_closed_forms():
    full = [
        randomizer
        for randomizer in BLOOM
        if len(np.unique(randomizer.encode(np.arange(randomizer.k)), axis=0))
        == math.comb(randomizer.length, randomizer.hashes)
    ]
    assert full, "otherwise the equalities of the previous test would never be checked"


@each_finite
def test_pair_laws_lose_nothing(randomizer):
    """Merged groups and the law's columns give the same curves; every pair has a kind."""
    law = randomizer.law()
    bloom = isinstance(randomizer, RAPPOR) and randomizer.hashes > 1
    low = all_filters_infimum(randomizer) if bloom else law.min(axis=0)
    kinds = np.array([curve(*kind) for kind in randomizer.pair_laws()])
    found = np.zeros(len(kinds), dtype=bool)
    for i, j in itertools.combinations(range(min(randomizer.inputs, 8)), 2):
        if np.array_equal(law[i], law[j]):
            continue
        same = np.zeros(len(kinds), dtype=bool)
        for one, two in ((law[i], law[j]), (law[j], law[i])):
            same |= np.all(np.abs(kinds - curve(one, two, low)) < 1e-11, axis=1)
        assert np.any(same)
        found |= same
    if randomizer.inputs <= 8:
        assert np.all(found)
    for kind in randomizer.pair_laws():
        assert kind.first.sum() == pytest.approx(1, abs=1e-12)
        assert kind.second.sum() == pytest.approx(1, abs=1e-12)
        assert kind.blanket.sum() == pytest.approx(randomizer.gamma, rel=1e-12)
        assert np.all(kind.blanket <= np.minimum(kind.first, kind.second) * (1 + 1e-12))


def curve(first, second, blanket):
    """Functionals of (first, second, blanket) that merging groups of equal ratios preserves."""
    weights = np.random.default_rng(5).normal(size=(6, 3))
    return np.abs(weights @ np.array([first, second, blanket])).sum(axis=1)


def all_filters_infimum(randomizer):
    """Column infimum over every filter with the right number of ones, from the definition."""
    channel = randomizer.channel
    bits = np.arange(randomizer.length)
    reports = (np.arange(randomizer.outputs)[:, np.newaxis] >> bits) & 1
    lowest = np.full(randomizer.outputs, np.inf)
    for ones in itertools.combinations(range(randomizer.length), randomizer.hashes):
        chance = np.full(randomizer.length, channel.one_if_zero)
        chance[list(ones)] = channel.one_if_one
        lowest = np.minimum(lowest, np.prod(np.where(reports, chance, 1 - chance), axis=1))
    return lowest


@pytest.mark.parametrize("randomizer", BLOOM, ids=repr)
def test_bloom_gamma_is_the_infimum_over_all_filters(randomizer):
    assert agrees(randomizer.gamma, all_filters_infimum(randomizer).sum())


# ------------------------------------------------- exact laws written down from the definitions


def exact_k_rr(k, odds):
    return [[Fraction(odds if x == y else 1, odds + k - 1) for y in range(k)] for x in range(k)]


def exact_unary(k, keep, false):
    def chance(x, report):
        result = Fraction(1)
        for place, bit in enumerate(report):
            one = keep if place == x else false
            result *= one if bit else 1 - one
        return result

    return [[chance(x, y) for y in itertools.product((0, 1), repeat=k)] for x in range(k)]


def exact_subset(k, size, odds):
    sets = list(itertools.combinations(range(k), size))
    total = sum(odds if 0 in one else 1 for one in sets)
    return [[Fraction(odds if x in one else 1) / total for one in sets] for x in range(k)]


def exact_hashing(k, buckets, odds, prime):
    functions = list(itertools.product(range(1, prime), range(prime)))
    norm_ = (odds + buckets - 1) * len(functions)
    return [
        [
            Fraction(odds if (a * x + b) % prime % buckets == y else 1) / norm_
            for a, b in functions
            for y in range(buckets)
        ]
        for x in range(k)
    ]


def exact_hadamard(k, blocks, width, odds):
    sylvester = np.array([[1]])
    while len(sylvester) < width:
        sylvester = np.kron([[1, 1], [1, -1]], sylvester)
    laws = []
    for x in range(k):
        weights = [1] * (blocks * width)
        home, row = divmod(x, width - 1)
        for column in range(width):
            if sylvester[row + 1][column] == 1:
                weights[home * width + column] = odds
        laws.append([Fraction(weight) / sum(weights) for weight in weights])
    return laws


ODDS = Fraction(9, 1)  # e^eps0; its root is rational, as symmetric unary encoding wants
EPS0 = math.log(9)


@pytest.mark.parametrize(
    "randomizer, law",
    [
        (BinaryRandomizedResponse(EPS0), exact_k_rr(2, ODDS)),
        *((KRandomizedResponse(k=k, eps0=EPS0), exact_k_rr(k, ODDS)) for k in (2, 3, 7)),
        *(
            (UnaryEncoding(k=k, eps0=EPS0), exact_unary(k, Fraction(3, 4), Fraction(1, 4)))
            for k in (2, 3, 5)
        ),
        *(
            (
                UnaryEncoding(k=k, eps0=EPS0, variant="optimised"),
                exact_unary(k, Fraction(1, 2), Fraction(1, 10)),
            )
            for k in (2, 4)
        ),
        # f = 1/2, p = 1/4, q = 3/4: q* = 5/8, p* = 3/8
        (rappor(k=4), exact_unary(4, Fraction(5, 8), Fraction(3, 8))),
        *(
            (SubsetSelection(k=k, size=size, eps0=EPS0), exact_subset(k, size, ODDS))
            for k, size in ((2, 1), (5, 2), (5, 4), (7, 3))
        ),
        *(
            (
                LocalHashing(k=k, buckets=buckets, eps0=EPS0),
                exact_hashing(k, buckets, ODDS, prime),
            )
            for k, buckets, prime in ((2, 4, 5), (4, 2, 5), (3, 3, 3), (6, 4, 7), (3, 8, 11))
        ),
        *(
            (
                HadamardResponse(k=k, eps0=EPS0, blocks=blocks),
                exact_hadamard(k, blocks, width, ODDS),
            )
            for k, blocks, width in ((2, 1, 4), (7, 1, 8), (3, 2, 4), (4, 2, 4), (4, 4, 2))
        ),
    ],
    ids=lambda value: repr(value) if not isinstance(value, list) else "exact",
)
def test_closed_forms_equal_exact_laws(randomizer, law):
    ratio, distance, blanket = brute_force(law)
    assert agrees(randomizer.p, ratio)
    assert agrees(randomizer.tv, distance)
    assert agrees(randomizer.gamma, blanket)
    exact = np.array([[float(mass) for mass in row] for row in law])
    np.testing.assert_allclose(
        in_standard_order(randomizer.law()), in_standard_order(exact), rtol=1e-12
    )


def in_standard_order(law):
    """The columns of a law in lexicographic order (of their values to 9 digits)."""
    return law[:, np.lexsort(np.round(law, 9))]


@pytest.mark.parametrize("k, buckets", [(2, 3), (4, 2), (5, 3), (6, 4), (3, 7), (10, 3)])
def test_every_pair_of_values_collides_equally_often(k, buckets):
    hashing = LocalHashing(k=k, buckets=buckets, eps0=1.0)
    functions = np.array(list(itertools.product(range(1, hashing.prime), range(hashing.prime))))
    reports = np.concatenate([functions, np.zeros((len(functions), 1), dtype=int)], axis=1)
    hashed = np.stack([hashing.hash(reports, x) for x in range(k)])
    for i, j in itertools.combinations(range(k), 2):
        assert agrees(hashing.collision, np.mean(hashed[i] == hashed[j]))
    assert hashing.collision <= 1 / buckets
    constant = np.all(hashed == hashed[0], axis=0)
    assert np.any(constant) == (k == 2 and hashing.collision > 0)


# ---------------------------------------------- the published table (Wang et al. 2024), checked


@pytest.mark.parametrize("eps0", [0.3, 1.0, 4.0])
def test_total_variations_of_the_published_table(eps0):
    odds = math.exp(eps0)
    half = math.exp(eps0 / 2)
    assert agrees(KRandomizedResponse(k=6, eps0=eps0).tv, (odds - 1) / (odds + 5))
    assert agrees(Laplace(eps0).tv, 1 - math.exp(-eps0 / 2))
    assert agrees(UnaryEncoding(k=6, eps0=eps0).tv, (half - 1) / (half + 1))
    optimised = UnaryEncoding(k=6, eps0=eps0, variant="optimised")
    assert agrees(optimised.tv, (odds - 1) / (2 * (odds + 1)))
    for d, k in ((7, 3), (6, 1), (5, 4)):
        inside, outside, both = math.comb(d - 1, k - 1), math.comb(d - 1, k), d - 2
        table = (odds - 1) * (inside - math.comb(both, k - 2) if k > 1 else 1)
        if k == 1:
            table = odds - 1
        assert agrees(SubsetSelection(k=d, size=k, eps0=eps0).tv, table / (odds * inside + outside))
    hashing = LocalHashing(k=20, buckets=5, eps0=eps0)
    table = (odds - 1) / (odds + 4)
    assert hashing.tv < table  # the table leaves the collisions out
    assert agrees(hashing.tv, (1 - hashing.collision) * table)
    single = HadamardResponse(k=12, eps0=eps0)
    s, count = single.favoured, single.outputs
    assert (s, count) == (8, 16)
    assert agrees(single.tv, (s * (odds - 1) / 2) / (s * odds + count - s))


def test_hadamard_response_with_several_blocks_exceeds_the_published_table():
    """Values of different blocks share no report: twice the table's total variation."""
    response = HadamardResponse(k=12, eps0=2.0, blocks=4)
    s, count, odds = response.favoured, response.outputs, math.exp(2.0)
    table = (s * (odds - 1) / 2) / (s * odds + count - s)
    assert agrees(response.tv, 2 * table)
    assert agrees(brute_force(response.law())[1], 2 * table)


# ------------------------------------------------------------------ the likelihood ratio


@each_named
def test_eps0_is_attained_and_not_exceeded(randomizer):
    law = randomizer.law()
    low, high = law.min(axis=0), law.max(axis=0)
    ratios = high[high > 0] / low[high > 0]
    assert np.all(ratios <= math.exp(randomizer.eps0) * (1 + 1e-12))
    assert np.any(ratios >= math.exp(randomizer.eps0) * (1 - 1e-12))


@pytest.mark.parametrize("eps0", [1e-9, 0.01, 1.0, 20.0, 300.0, 700.0])
def test_extreme_local_epsilons_stay_finite_and_consistent(eps0):
    for randomizer in (
        KRandomizedResponse(k=1000, eps0=eps0),
        BinaryRandomizedResponse(eps0),
        UnaryEncoding(k=1000, eps0=eps0),
        UnaryEncoding(k=1000, eps0=eps0, variant="optimised"),
        SubsetSelection.optimal(k=1000, eps0=eps0),
        LocalHashing(k=1000, buckets=4, eps0=eps0),
        HadamardResponse.optimal(k=1000, eps0=eps0),
        Laplace(eps0),
    ):
        assert 0 < randomizer.tv <= 1
        assert math.exp(-eps0) * (1 - 1e-12) <= randomizer.gamma <= 1
        assert math.isfinite(randomizer.p)
        assert randomizer.tv == pytest.approx(0, abs=math.tanh(eps0 / 2) * (1 + 1e-12))


def test_small_epsilons_keep_their_relative_accuracy():
    """tv is eps0 times a constant in the limit; cancellation would leave nothing of it."""
    eps0 = 1e-12
    assert KRandomizedResponse(k=4, eps0=eps0).tv == pytest.approx(eps0 / 4, rel=1e-9)
    assert UnaryEncoding(k=4, eps0=eps0).tv == pytest.approx(eps0 / 4, rel=1e-9)
    assert SubsetSelection(k=4, size=2, eps0=eps0).tv == pytest.approx(eps0 / 6 * 2, rel=1e-9)


# ---------------------------------------------------------------------------- RAPPOR


def reports_law(randomizer, count):
    """Law of `count` reports on one memoised bit, from the definition: shape (2, 2^count)."""
    keep, p, q = 1 - randomizer.noise / 2, randomizer.one_if_zero, randomizer.one_if_one
    law = np.zeros((2, 2**count))
    for true, memoised in itertools.product((0, 1), repeat=2):
        chance = keep if true == memoised else 1 - keep
        one = q if memoised else p
        for column, bits in enumerate(itertools.product((0, 1), repeat=count)):
            law[true, column] += chance * math.prod(one if bit else 1 - one for bit in bits)
    return law


@pytest.mark.parametrize("count", [1, 2, 3, 7])
@pytest.mark.parametrize(
    "randomizer",
    [
        rappor(),
        rappor(noise=0.1, one_if_zero=0.0, one_if_one=0.5),
        rappor(noise=0.0),
        rappor(bits=12, hashes=3),
    ],
    ids=repr,
)
def test_epsilon_of_several_reports_from_one_memoised_filter(randomizer, count):
    zero, one = reports_law(randomizer, count)
    per_one_apart = math.log(np.max(one / zero)) + math.log(np.max(zero / one))
    assert agrees(randomizer.eps0_of_reports(count), randomizer.hashes * per_one_apart)


def test_epsilons_of_the_published_setting():
    """f = 1/2, p = 1/2, q = 3/4, h = 2: eps_infinity = 4 ln 3, eps_1 from q*, p* (Theorem 1, 2)."""
    randomizer = rappor(k=1000, bits=128, hashes=2, one_if_zero=0.5, one_if_one=0.75)
    assert agrees(randomizer.lifetime_eps0, 4 * math.log(3))
    q_star, p_star = 0.5 * 0.5 * (0.5 + 0.75) + 0.5 * 0.75, 0.25 * 1.25 + 0.5 * 0.5
    assert agrees(randomizer.eps0, 2 * math.log(q_star * (1 - p_star) / (p_star * (1 - q_star))))
    assert randomizer.eps0 == pytest.approx(1.0743, abs=5e-5)


def test_the_lifetime_is_the_limit_and_the_memoised_filters_own_epsilon():
    randomizer = rappor(noise=0.3)
    epsilons = [randomizer.eps0_of_reports(count) for count in (1, 2, 5, 20, 100)]
    assert epsilons == sorted(epsilons)
    assert epsilons[0] == randomizer.eps0
    assert epsilons[1] < 2 * epsilons[0]
    assert agrees(epsilons[-1], randomizer.lifetime_eps0)
    assert agrees(randomizer.memoised.eps0, randomizer.lifetime_eps0)
    assert agrees(math.log(brute_force(randomizer.memoised.law())[0]), randomizer.lifetime_eps0)


def test_without_permanent_noise_reports_compose_and_nothing_bounds_them():
    randomizer = rappor(noise=0.0)
    assert randomizer.lifetime_eps0 == math.inf
    assert agrees(randomizer.eps0_of_reports(10_000), 10_000 * randomizer.eps0)


def test_the_permanent_step_alone_is_symmetric_unary_encoding():
    noise = 0.4
    randomizer = rappor(noise=noise).memoised
    encoding = UnaryEncoding(k=4, eps0=randomizer.eps0)
    np.testing.assert_allclose(randomizer.law(), encoding.law(), rtol=1e-12)
    assert agrees(randomizer.tv, encoding.tv)
    assert agrees(randomizer.gamma, encoding.gamma)


def test_filters_are_public_deterministic_and_have_the_right_number_of_ones():
    randomizer = rappor(k=2**40, bits=64, hashes=4)
    values = np.random.default_rng(1).integers(0, 2**40, 5000)
    filters = randomizer.encode(values)
    assert np.all(filters.sum(axis=1) == 4)
    np.testing.assert_array_equal(filters, randomizer.encode(values))
    assert not np.array_equal(filters, dataclasses.replace(randomizer, salt=7).encode(values))
    expected = np.full(64, 5000 * 4 / 64)
    statistic = float(np.sum((filters.sum(axis=0) - expected) ** 2 / expected))
    assert statistic < chi2.isf(FALSE_ALARM, 63)


# ------------------------------------------------------------------------- sampling


def chi_square(counts, law):
    """Tail probability of Pearson's statistic, outcomes of expected count < 10 pooled."""
    total = counts.sum()
    assert counts[law == 0].sum() == 0, "an impossible report was drawn"
    order = np.argsort(law)
    expected, seen = (law * total)[order], counts[order]
    rare = int(np.searchsorted(expected, 10))
    expected = np.concatenate([[expected[:rare].sum()], expected[rare:]])
    seen = np.concatenate([[seen[:rare].sum()], seen[rare:]])
    if expected[0] < 10 and len(expected) > 1:  # too rare even together: join the next outcome
        expected = np.concatenate([[expected[0] + expected[1]], expected[2:]])
        seen = np.concatenate([[seen[0] + seen[1]], seen[2:]])
    statistic = float(np.sum((seen - expected) ** 2 / expected))
    return float(chi2.sf(statistic, max(1, len(expected) - 1)))


@each_finite
def test_frequencies_follow_the_law(randomizer):
    rng = np.random.default_rng(20240)
    for x in {0, 1, randomizer.inputs - 1}:
        reports = randomizer.sample(np.full(SAMPLES, x), rng)
        counts = np.bincount(randomizer.columns(reports), minlength=randomizer.outputs)
        assert chi_square(counts, randomizer.law()[x]) > FALSE_ALARM


def test_the_chi_square_notices_a_small_error():
    """k-RR, k = 4, eps0 = 1: samples of eps0 = 1.05 are rejected."""
    rng = np.random.default_rng(3)
    reports = KRandomizedResponse(k=4, eps0=1.05).sample(np.zeros(SAMPLES, dtype=int), rng)
    law = KRandomizedResponse(k=4, eps0=1.0).law()[0]
    assert chi_square(np.bincount(reports, minlength=4), law) < FALSE_ALARM


@each_finite
def test_reports_of_different_users_are_independent(randomizer):
    """Correlation of neighbours' reports (a fixed 0/1 feature), within 5 standard deviations."""
    rng = np.random.default_rng(8)
    columns = randomizer.columns(randomizer.sample(np.full(SAMPLES, 1), rng))
    feature = columns > np.median(columns)
    if 0.01 < feature.mean() < 0.99:
        correlation = np.corrcoef(feature[:-1], feature[1:])[0, 1]
        assert abs(correlation) < 5 / math.sqrt(SAMPLES)


@each
def test_samples_keep_the_shape_and_depend_on_the_seed_only(randomizer):
    values = np.array([[0, 1, 0], [1, 1, 0]])
    one = randomizer.sample(values, np.random.default_rng(4))
    two = randomizer.sample(values, np.random.default_rng(4))
    np.testing.assert_array_equal(one, two)
    assert one.shape[:2] == values.shape
    np.testing.assert_array_equal(values, [[0, 1, 0], [1, 1, 0]])
    single = randomizer.sample(1, np.random.default_rng(4))
    assert np.shape(single) == one.shape[2:]
    nothing = randomizer.sample(np.array([], dtype=int), np.random.default_rng(4))
    assert nothing.shape[0] == 0


@each_finite
def test_samples_in_one_call_follow_each_input(randomizer):
    """A call with mixed inputs has the frequencies of the average law."""
    values = np.resize(np.arange(min(4, randomizer.inputs)), SAMPLES)
    reports = randomizer.sample(values, np.random.default_rng(6))
    columns = randomizer.columns(reports)
    for x in range(min(4, randomizer.inputs)):
        counts = np.bincount(columns[values == x], minlength=randomizer.outputs)
        assert chi_square(counts, randomizer.law()[x]) > FALSE_ALARM


def test_permanent_and_instantaneous_steps_follow_their_laws():
    randomizer = rappor(k=3, noise=0.3, one_if_zero=0.2, one_if_one=0.9)
    rng = np.random.default_rng(12)
    memoised = randomizer.permanent(np.full(SAMPLES, 2), rng)
    columns = randomizer.memoised.columns(memoised)
    assert chi_square(np.bincount(columns, minlength=8), randomizer.memoised.law()[2]) > FALSE_ALARM
    fixed = np.tile(np.array([1, 0, 1], dtype=np.uint8), (SAMPLES, 1))
    columns = randomizer.columns(randomizer.instantaneous(fixed, rng))
    chance = [0.9, 0.2, 0.9]
    law = np.array(
        [
            math.prod(c if column >> j & 1 else 1 - c for j, c in enumerate(chance))
            for column in range(8)
        ]
    )
    assert chi_square(np.bincount(columns, minlength=8), law) > FALSE_ALARM


def test_reports_from_one_memoised_filter_are_correlated_as_the_lifetime_says():
    """Two reports from one memoised filter follow the two-report law, bit by bit."""
    randomizer = rappor(k=2, noise=0.4)
    rng = np.random.default_rng(13)
    memoised = randomizer.permanent(np.zeros(SAMPLES, dtype=int), rng)
    first, second = (randomizer.instantaneous(memoised, rng).astype(int) for _ in range(2))
    for bit, true in ((0, 1), (1, 0)):
        counts = np.bincount(2 * first[:, bit] + second[:, bit], minlength=4)
        assert chi_square(counts, reports_law(randomizer, 2)[true]) > FALSE_ALARM


def test_large_inputs_use_bounded_working_memory_and_still_follow_the_law():
    """More rows than one chunk: every chunk is filled, and filled correctly."""
    subsets = SubsetSelection(k=500, size=30, eps0=1.0)
    values = np.full(5000, 7)
    masks = subsets.sample(values, np.random.default_rng(2))
    assert np.all(masks.sum(axis=1) == 30)
    assert abs(masks[:, 7].mean() - subsets.truth) < 5 * math.sqrt(0.25 / 5000)
    encoding = UnaryEncoding(k=500, eps0=2.0)
    reports = encoding.sample(values, np.random.default_rng(2))
    assert abs(reports[-2000:, 7].mean() - encoding.channel.one_if_one) < 5 * math.sqrt(0.25 / 2000)
    others = np.delete(reports, 7, axis=1).mean()
    assert abs(others - encoding.channel.one_if_zero) < 5 * math.sqrt(0.25 / (5000 * 499))


@pytest.mark.parametrize("k, size", [(5, 2), (6, 1), (6, 5), (7, 3)])
def test_subset_columns_are_lexicographic_ranks(k, size):
    subsets = SubsetSelection(k=k, size=size, eps0=1.0)
    for rank, members in enumerate(itertools.combinations(range(k), size)):
        mask = np.zeros(k, dtype=int)
        mask[list(members)] = 1
        assert subsets.columns(mask) == rank
        np.testing.assert_array_equal(
            subsets.law()[:, rank] == subsets.law().max(), mask.astype(bool)
        )


def test_impossible_reports_are_never_drawn():
    randomizer = DiscreteRandomizer([[0.0, 0.3, 0.0, 0.7, 0.0], [0.5, 0.0, 0.5, 0.0, 0.0]])
    rng = np.random.default_rng(9)
    assert set(randomizer.sample(np.zeros(SAMPLES, dtype=int), rng)) == {1, 3}
    assert set(randomizer.sample(np.ones(SAMPLES, dtype=int), rng)) == {0, 2}


# -------------------------------------------------------------------- Laplace, Gaussian


@each_continuous
def test_parameters_equal_those_of_the_densities(randomizer):
    def integral(function):
        """Adaptive quadrature, split at the kinks; 1e-10 absolute."""
        edges = [-60.0, -3.0, 0.0, 0.5, 1.0, 4.0, 61.0]
        return sum(
            quad(function, a, b, epsabs=1e-13, epsrel=1e-12, limit=200)[0]
            for a, b in itertools.pairwise(edges)
        )

    grid = np.linspace(0, 1, 41)
    assert integral(lambda y: max(0, randomizer.density(1, y) - randomizer.density(0, y))) == (
        pytest.approx(randomizer.tv, abs=1e-9)
    )
    assert integral(lambda y: randomizer.density(grid, y).min()) == (
        pytest.approx(randomizer.gamma, abs=1e-9)
    )
    assert integral(randomizer.blanket_density) == pytest.approx(1, abs=1e-9)
    y = np.linspace(-5, 6, 301)
    infimum = randomizer.density(grid[:, np.newaxis], y).min(axis=0)
    np.testing.assert_allclose(
        randomizer.gamma * randomizer.blanket_density(y), infimum, rtol=1e-11
    )
    # no other pair is farther apart
    for x in grid[1:-1]:
        inner = integral(lambda y, x=x: max(0, randomizer.density(x, y) - randomizer.density(0, y)))
        assert inner <= randomizer.tv


@each_continuous
def test_continuous_samples_follow_their_distribution(randomizer):
    for x in (0.0, 0.3, 1.0):
        reports = randomizer.sample(np.full(SAMPLES, x), np.random.default_rng(17))
        assert kstest(reports, lambda y, x=x: randomizer.cdf(x, y)).pvalue > FALSE_ALARM


@each_continuous
def test_distribution_functions_belong_to_the_densities(randomizer):
    for x, y in ((0.0, -1.0), (0.25, 0.9), (1.0, 1.5)):
        mass = quad(lambda z, x=x: float(randomizer.density(x, z)), x, y, epsabs=1e-13)[0]
        assert randomizer.cdf(x, y) - randomizer.cdf(x, x) == pytest.approx(mass, abs=1e-10)


def test_the_laplace_ratio_is_attained_outside_the_unit_interval():
    laplace = Laplace(1.5)
    y = np.linspace(-3, 4, 701)
    x = np.linspace(0, 1, 11)
    densities = laplace.density(x[:, np.newaxis], y)
    ratio = densities.max(axis=0) / densities.min(axis=0)
    assert np.all(ratio <= math.exp(1.5) * (1 + 1e-12))
    assert agrees(ratio[0], math.exp(1.5))
    assert agrees(ratio[-1], math.exp(1.5))


@pytest.mark.parametrize("sigma", [0.2, 0.7, 1.0, 3.0, 20.0])
@pytest.mark.parametrize("eps0", [0.01, 0.5, 2.0, 8.0])
def test_gaussian_delta_is_the_hockey_stick_divergence(sigma, eps0):
    gaussian = Gaussian(sigma=sigma, eps0=eps0)
    # {density(1) > e^eps0 density(0)} = {y > 1/2 + eps0 sigma^2}
    cut = 0.5 + eps0 * sigma**2
    upper = cut + 12 * sigma
    delta = quad(
        lambda y: norm.pdf(y, 1, sigma) - math.exp(eps0) * norm.pdf(y, 0, sigma),
        cut,
        max(upper, 1 + 12 * sigma),
        epsabs=0,
        epsrel=1e-11,
        limit=400,
        points=[min(cut + sigma, upper)],
    )[0]
    assert gaussian.delta0 == pytest.approx(delta, rel=1e-7, abs=0)
    assert gaussian.p == math.inf
    assert gaussian.q == math.inf
    assert gaussian.gamma == pytest.approx(1 - gaussian.tv, abs=1e-15)


@pytest.mark.parametrize(
    "sigma, eps0", [(0.3, 1.0), (1.0, 12.0), (20.0, 1.5), (50.0, 0.6), (1000.0, 0.03)]
)
def test_small_gaussian_deltas_keep_their_relative_accuracy(sigma, eps0):
    with mpmath.workdps(60):
        width, epsilon = mpmath.mpf(sigma), mpmath.mpf(eps0)
        shift, reach = epsilon * width, 1 / (2 * width)
        exact = mpmath.ncdf(reach - shift) - mpmath.exp(epsilon) * mpmath.ncdf(-reach - shift)
        assert Gaussian(sigma=sigma, eps0=eps0).delta0 == pytest.approx(
            float(exact), rel=1e-11, abs=0
        )


@pytest.mark.parametrize("delta0", [1e-100, 1e-12, 1e-6, 0.1])
def test_gaussian_calibration_is_safe_and_tight(delta0):
    by_noise = Gaussian.from_delta0(sigma=1.5, delta0=delta0)
    assert by_noise.delta0 <= delta0
    assert dataclasses.replace(by_noise, eps0=by_noise.eps0 * (1 - 1e-11)).delta0 > delta0
    by_budget = Gaussian.from_budget(eps0=1.0, delta0=delta0)
    assert by_budget.delta0 <= delta0
    assert dataclasses.replace(by_budget, sigma=by_budget.sigma * (1 - 1e-11)).delta0 > delta0


def test_gaussian_calibration_without_a_solution():
    with pytest.raises(ValueError, match="total variation"):
        Gaussian.from_delta0(sigma=10.0, delta0=0.5)
    with pytest.raises(ValueError, match="eps0 > 700"):
        Gaussian.from_delta0(sigma=0.01, delta0=1e-10)


# ----------------------------------------------------------------- any finite law


def random_law(rng, inputs, outputs, eps0):
    """A random eps0-LDP matrix: entries within a factor e^eps0 of each other, then normalised."""
    matrix = np.exp(rng.uniform(0, eps0 / 2, (inputs, outputs)))
    return matrix / matrix.sum(axis=1, keepdims=True)


def test_random_matrices_against_brute_force():
    rng = np.random.default_rng(21)
    for _ in range(100):
        law = random_law(rng, int(rng.integers(2, 6)), int(rng.integers(1, 6)), 2.0)
        randomizer = DiscreteRandomizer(law)
        ratio, distance, blanket = brute_force(law)
        assert agrees(randomizer.p, ratio)
        assert agrees(randomizer.tv, distance)
        assert agrees(randomizer.gamma, blanket)
        assert randomizer.eps0 <= 2.0


def test_pair_parameters_satisfy_their_definitions():
    """p, tv and q of a pair: R0 <= p R1, R1 <= p R0, max(R0, R1) <= q R_i, each attained."""
    law = DiscreteRandomizer(MATRIX).law()
    for pair in DiscreteRandomizer(MATRIX).pairs:
        one, two = law[pair.first][:3], law[pair.second][:3]
        assert agrees(pair.p, max(np.max(one / two), np.max(two / one)))
        assert agrees(pair.q, max(np.max(np.maximum(one, two) / other[:3]) for other in law))
        assert agrees(pair.tv, np.sum(np.maximum(one - two, 0)))
        assert pair.q >= pair.p
        assert pair.q >= 1 + pair.tv


def test_the_worst_pair_for_the_ratio_and_for_the_distance_may_differ():
    randomizer = DiscreteRandomizer([[0.9, 0.099, 0.001], [0.1, 0.895, 0.005], [0.9, 0.09, 0.01]])
    assert (randomizer.worst_pair.first, randomizer.worst_pair.second) == (0, 2)
    assert (randomizer.farthest_pair.first, randomizer.farthest_pair.second) == (1, 2)
    assert agrees(randomizer.eps0, math.log(10))


def test_degenerate_laws():
    same = DiscreteRandomizer([[0.25, 0.75], [0.25, 0.75]])
    assert (same.eps0, same.tv, same.p, same.gamma) == (0.0, 0.0, 1.0, 1.0)
    open_ = DiscreteRandomizer([[1.0, 0.0], [0.5, 0.5]])
    assert (open_.eps0, open_.p, open_.q) == (math.inf, math.inf, math.inf)
    assert (open_.tv, open_.gamma) == (0.5, 0.5)


def test_a_pickled_matrix_comes_back_without_its_caches():
    randomizer = DiscreteRandomizer(MATRIX)
    assert randomizer.law() is randomizer.law()
    copy = pickle.loads(pickle.dumps(randomizer))
    assert not copy.law().flags.writeable
    assert copy.tv == randomizer.tv


def test_rows_are_normalised_within_the_tolerance():
    randomizer = DiscreteRandomizer([[0.5 + 4e-10, 0.5], [0.25, 0.75]])
    assert math.fsum(randomizer.law()[0]) == pytest.approx(1, abs=1e-15)


# ------------------------------------- what the parameters are for: exact shuffles lie below

SHUFFLED = [
    KRandomizedResponse(k=4, eps0=1.5),
    BinaryRandomizedResponse(2.0),
    UnaryEncoding(k=3, eps0=2.0),
    UnaryEncoding(k=3, eps0=1.0, variant="optimised"),
    rappor(k=3),
    SubsetSelection(k=4, size=2, eps0=1.5),
    HadamardResponse(k=3, eps0=1.5),
    HadamardResponse(k=3, eps0=2.0, blocks=2),
    LocalHashing(k=3, buckets=3, eps0=2.0),
    LocalHashing(k=2, buckets=2, eps0=1.0),
    *(
        DiscreteRandomizer(np.random.default_rng(seed).dirichlet(np.ones(4), size=3) * 0.8 + 0.05)
        for seed in range(6)
    ),
]
EPSILONS = (0.0, 0.1, 0.3, 0.7, 1.2)


def shuffled_law(laws):
    """Law of the multiset of independent reports: {sorted columns: mass}, by enumeration."""
    result = {(): 1.0}
    for law in laws:
        following = {}
        for reports, mass in result.items():
            for column in np.flatnonzero(law):
                key = tuple(sorted((*reports, int(column))))
                following[key] = following.get(key, 0.0) + mass * law[column]
        result = following
    return result


def hockey_stick(first, second, eps):
    return sum(max(first[key] - math.exp(eps) * second[key], 0) for key in first)


def positive_part_mean(masses, values, users):
    """E (X_1 + ... + X_users)_+ / users for iid X, by enumeration."""
    total = 0.0
    for places in itertools.product(range(len(masses)), repeat=users):
        total += math.prod(masses[i] for i in places) * max(sum(values[i] for i in places), 0)
    return total / users


def blanket_delta(kind, users, eps):
    """Balle et al. 2019, Lemma 8, for one pair and both of its orders."""
    results = []
    for one, two in ((kind.first, kind.second), (kind.second, kind.first)):
        values = (one - math.exp(eps) * two) / kind.blanket
        masses = [*kind.blanket, 1 - kind.blanket.sum()]
        results.append(positive_part_mean(masses, [*values, 0.0], users))
    return max(results)


def reduction_delta(p, tv, q, users, eps):
    """The (p, beta, q) reduction: iid xi with four values (the theorem's formula)."""
    alpha, odds = tv / (p - 1), math.exp(eps)
    masses = [alpha * p / q, alpha * p / q, (1 - alpha * (p + 1)) / q, 1 - (1 + tv) / q]
    return positive_part_mean(
        masses, [q * (1 - odds / p), q * (1 / p - odds), q * (1 - odds), 0.0], users
    )


@pytest.mark.parametrize("randomizer", SHUFFLED, ids=repr)
def test_exact_shuffles_lie_below_the_bounds_from_these_parameters(randomizer):
    """n = 3, all neighbouring data sets: blanket from pair_laws, and reduction from p, tv, q."""
    law, users = randomizer.law(), 3
    if randomizer.outputs > 8:  # merge reports that no input tells apart
        law = np.array([np.bincount(inverse_columns(law), row) for row in law])
    largest = dict.fromkeys(EPSILONS, 0.0)
    by_pair = {}
    for others in itertools.combinations_with_replacement(range(randomizer.inputs), users - 1):
        rest = [law[x] for x in others]
        for i, j in itertools.permutations(range(randomizer.inputs), 2):
            first, second = shuffled_law([law[i], *rest]), shuffled_law([law[j], *rest])
            for eps in EPSILONS:
                delta = hockey_stick(first, second, eps)
                largest[eps] = max(largest[eps], delta)
                key = (min(i, j), max(i, j), eps)
                by_pair[key] = max(by_pair.get(key, 0.0), delta)
    for eps, delta in largest.items():
        blanket = max(blanket_delta(kind, users, eps) for kind in randomizer.pair_laws())
        assert delta <= blanket + 1e-12
        p, tv, q = randomizer.p, randomizer.tv, randomizer.q
        assert delta <= reduction_delta(p, tv, q, users, eps) + 1e-12
    if isinstance(randomizer, DiscreteRandomizer):
        for (i, j, eps), delta in by_pair.items():
            pair = randomizer.pair(i, j)
            assert delta <= reduction_delta(pair.p, pair.tv, pair.q, users, eps) + 1e-12


def inverse_columns(law):
    """The class of each column; columns that are multiples of each other share one."""
    return np.unique(np.round(law / law.sum(axis=0), 9), axis=1, return_inverse=True)[1].ravel()


# ------------------------------------------------------------------------ relations


def test_special_cases_agree():
    two = KRandomizedResponse(k=2, eps0=1.3)
    binary = BinaryRandomizedResponse(1.3)
    np.testing.assert_allclose(two.law(), binary.law(), rtol=1e-14)
    one = SubsetSelection(k=5, size=1, eps0=1.3)
    np.testing.assert_allclose(one.law(), KRandomizedResponse(k=5, eps0=1.3).law(), rtol=1e-14)
    # the Hadamard response with blocks of two columns hides one report per value
    assert HadamardResponse(k=4, eps0=3.0, blocks=8).favoured == 1


@pytest.mark.parametrize("gamma", [1e-6, 0.25, 0.999])
def test_k_rr_from_gamma(gamma):
    randomizer = KRandomizedResponse.from_gamma(k=4, gamma=gamma)
    assert randomizer.gamma == pytest.approx(gamma, rel=1e-9)
    assert agrees(randomizer.eps0, math.log(1 + 4 * (1 - gamma) / gamma))


def test_customary_choices_of_the_sizes():
    assert SubsetSelection.optimal(k=100, eps0=1.0).size == 27
    assert SubsetSelection.optimal(k=100, eps0=10.0).size == 1
    assert LocalHashing.optimal(k=100, eps0=1.0).buckets == 4
    assert HadamardResponse.optimal(k=100, eps0=1.0).blocks == 2
    assert HadamardResponse.optimal(k=100, eps0=0.5).blocks == 1
    assert HadamardResponse.optimal(k=100, eps0=50.0).blocks == 128


# -------------------------------------------------------------------------- border


@each
def test_values_are_frozen_hashable_and_picklable(randomizer):
    copy = pickle.loads(pickle.dumps(randomizer))
    assert copy == randomizer
    assert hash(copy) == hash(randomizer)
    with pytest.raises(dataclasses.FrozenInstanceError):
        randomizer.eps0 = 1.0


@each
def test_protocols_are_met(randomizer):
    assert isinstance(randomizer, LocalRandomizer)
    finite = randomizer not in CONTINUOUS
    assert isinstance(randomizer, FiniteRandomizer) == finite
    assert isinstance(randomizer, ContinuousRandomizer) != finite


@pytest.mark.parametrize(
    "build",
    [
        lambda eps0: KRandomizedResponse(k=3, eps0=eps0),
        lambda eps0: BinaryRandomizedResponse(eps0=eps0),
        lambda eps0: Laplace(eps0=eps0),
        lambda eps0: Gaussian(sigma=1.0, eps0=eps0),
        lambda eps0: Gaussian.from_budget(eps0=eps0, delta0=0.1),
        lambda eps0: UnaryEncoding(k=3, eps0=eps0),
        lambda eps0: SubsetSelection(k=3, size=1, eps0=eps0),
        lambda eps0: SubsetSelection.optimal(k=3, eps0=eps0),
        lambda eps0: LocalHashing(k=3, buckets=2, eps0=eps0),
        lambda eps0: LocalHashing.optimal(k=3, eps0=eps0),
        lambda eps0: HadamardResponse(k=3, eps0=eps0),
        lambda eps0: HadamardResponse.optimal(k=3, eps0=eps0),
    ],
)
def test_bad_local_epsilons_are_named(build):
    for bad in (0, -1.0, math.nan, math.inf, 701, -0.0):
        with pytest.raises(ValueError, match=f"eps0 .*{bad!r}"):
            build(bad)
    for bad in (True, None, "1", [1.0], 1j, np.array([1.0])):
        with pytest.raises(TypeError, match="eps0"):
            build(bad)


@pytest.mark.parametrize(
    "build, name, bad",
    [
        (lambda v: KRandomizedResponse(k=v, eps0=1.0), "k", 1),
        (lambda v: UnaryEncoding(k=v, eps0=1.0), "k", 0),
        (lambda v: UnaryEncoding(k=v, eps0=1.0), "k", 2**24 + 1),
        (lambda v: UnaryEncoding(k=3, eps0=1.0, variant=v), "variant", "optimized!"),
        (lambda v: SubsetSelection(k=v, size=1, eps0=1.0), "k", 1),
        (lambda v: SubsetSelection(k=4, size=v, eps0=1.0), "size", 4),
        (lambda v: SubsetSelection(k=4, size=v, eps0=1.0), "size", 0),
        (lambda v: LocalHashing(k=v, buckets=2, eps0=1.0), "k", 2**31),
        (lambda v: LocalHashing(k=4, buckets=v, eps0=1.0), "buckets", 1),
        (lambda v: HadamardResponse(k=v, eps0=1.0), "k", 1),
        (lambda v: HadamardResponse(k=4, eps0=1.0, blocks=v), "blocks", 3),
        (lambda v: HadamardResponse(k=4, eps0=1.0, blocks=v), "blocks", 0),
        (lambda v: KRandomizedResponse.from_gamma(k=4, gamma=v), "gamma", 0),
        (lambda v: KRandomizedResponse.from_gamma(k=4, gamma=v), "gamma", 1.0),
        (lambda v: KRandomizedResponse.from_gamma(k=4, gamma=v), "gamma", math.nan),
        (lambda v: Gaussian(sigma=v, eps0=1.0), "sigma", 0.0),
        (lambda v: Gaussian(sigma=v, eps0=1.0), "sigma", math.nan),
        (lambda v: Gaussian.from_delta0(sigma=1.0, delta0=v), "delta0", 0.0),
        (lambda v: Gaussian.from_budget(eps0=1.0, delta0=v), "delta0", 1.0),
        (lambda v: rappor(noise=v), "noise", 1.0),
        (lambda v: rappor(noise=v), "noise", math.nan),
        (lambda v: rappor(one_if_zero=v), "one_if_zero", 0.75),
        (lambda v: rappor(one_if_zero=v), "one_if_zero", -0.1),
        (lambda v: rappor(one_if_one=v), "one_if_one", math.nan),
        (lambda v: rappor(one_if_one=v), "one_if_one", 1.1),
        (lambda v: rappor(hashes=v), "hashes", 2),
        (lambda v: rappor(bits=6, hashes=v), "hashes", 4),
        (lambda v: rappor(bits=v), "bits", 1),
        (lambda v: rappor(salt=v), "salt", -1),
        (lambda v: rappor().eps0_of_reports(v), "count", 0),
    ],
)
def test_bad_parameters_are_named(build, name, bad):
    with pytest.raises(ValueError) as caught:
        build(bad)
    assert name in str(caught.value)
    assert repr(bad) in str(caught.value)
    if name != "variant":
        for worse in (True, None, "x"):
            with pytest.raises((TypeError, ValueError), match=name):
                if name == "bits" and worse is None:
                    raise ValueError("bits=None is the one-hot filter")
                build(worse)


def test_rappor_without_any_noise_is_refused():
    with pytest.raises(ValueError, match="eps0=inf"):
        rappor(noise=0.0, one_if_zero=0.0, one_if_one=0.5)
    with pytest.raises(ValueError, match="eps0"):
        rappor(noise=0.0).memoised  # noqa: B018


@pytest.mark.parametrize(
    "matrix, error",
    [
        ([[0.5, 0.5]], ValueError),
        ([0.5, 0.5], ValueError),
        ([[], []], ValueError),
        ([[0.5, 0.4], [0.5, 0.5]], ValueError),
        ([[1.5, -0.5], [0.5, 0.5]], ValueError),
        ([[math.nan, 0.5], [0.5, 0.5]], ValueError),
        ([[math.inf, 0.5], [0.5, 0.5]], ValueError),
        ([[True, False], [False, True]], TypeError),
        ([["a", "b"], ["c", "d"]], TypeError),
        ([[0.5 + 0j, 0.5], [0.5, 0.5]], TypeError),
        ("matrix", TypeError),
        (None, TypeError),
    ],
)
def test_bad_matrices_are_refused(matrix, error):
    with pytest.raises(error, match="matrix"):
        DiscreteRandomizer(matrix)


def test_pairs_of_inputs_are_checked():
    randomizer = DiscreteRandomizer(MATRIX)
    for first, second in ((0, 0), (0, 3), (-1, 0)):
        with pytest.raises(ValueError, match=r"first|second"):
            randomizer.pair(first, second)


@each_finite
def test_bad_values_are_refused(randomizer):
    rng = np.random.default_rng(0)
    for bad in (-1, randomizer.inputs, [0, randomizer.inputs]):
        with pytest.raises(ValueError, match="x must lie in"):
            randomizer.sample(bad, rng)
    for worse in (0.0, [0.5], True, [True], "0", [None]):
        with pytest.raises(TypeError, match="x must hold integers"):
            randomizer.sample(worse, rng)
    for no_rng in (None, 0, np.random.RandomState(0), np.random):
        with pytest.raises(TypeError, match="rng"):
            randomizer.sample(0, no_rng)


@each_continuous
def test_bad_real_values_are_refused(randomizer):
    rng = np.random.default_rng(0)
    for bad in (-0.1, 1.1, math.nan, [0.5, math.inf]):
        with pytest.raises(ValueError, match="x must lie in"):
            randomizer.sample(bad, rng)
    for worse in (True, "0", [None], 0.5j):
        with pytest.raises(TypeError, match="x must be a real number or an array of them"):
            randomizer.sample(worse, rng)
    with pytest.raises(TypeError, match="rng"):
        randomizer.sample(0.5, 0)


def test_reports_are_checked():
    with pytest.raises(ValueError, match="reports"):
        KRandomizedResponse(k=3, eps0=1.0).columns(3)
    with pytest.raises(ValueError, match="shape"):
        UnaryEncoding(k=3, eps0=1.0).columns([0, 1])
    with pytest.raises(ValueError, match="reports"):
        UnaryEncoding(k=3, eps0=1.0).columns([0, 1, 2])
    with pytest.raises(ValueError, match="exactly 2 ones"):
        SubsetSelection(k=4, size=2, eps0=1.0).columns([1, 1, 1, 0])
    with pytest.raises(ValueError, match="a >= 1"):
        LocalHashing(k=5, buckets=2, eps0=1.0).columns([0, 1, 1])
    with pytest.raises(ValueError, match="memoised"):
        rappor().instantaneous([0, 1, 0, 2], np.random.default_rng(0))


@pytest.mark.parametrize(
    "randomizer",
    [
        KRandomizedResponse(k=10_000, eps0=1.0),
        UnaryEncoding(k=100_000, eps0=1.0),
        rappor(k=10, bits=100),
        SubsetSelection(k=1000, size=300, eps0=1.0),
        LocalHashing(k=10**6, buckets=10, eps0=1.0),
        HadamardResponse(k=10_000, eps0=1.0),
    ],
    ids=repr,
)
def test_large_laws_are_refused_but_the_parameters_are_there(randomizer):
    with pytest.raises(ValueError, match="pair_laws"):
        randomizer.law()
    assert 0 < randomizer.gamma <= 1 - randomizer.tv < 1
    for kind in randomizer.pair_laws():
        assert len(kind.first) <= 16
        assert kind.blanket.sum() == pytest.approx(randomizer.gamma, rel=1e-11)
        assert np.maximum(kind.first - kind.second, 0).sum() <= randomizer.tv * (1 + 1e-11)
        reached = kind.second > 0
        ratio = np.max(kind.first[reached] / kind.second[reached])
        assert agrees(ratio, randomizer.p)
    reports = randomizer.sample(np.arange(5), np.random.default_rng(0))
    assert len(reports) == 5
