"""Randomizers: closed forms and samples against laws enumerated from the definitions, and the border.

Oracles: `enumerated` (1e-12 relative); quadrature of scipy's densities for noise.

Sampling tests compare frequencies with the law by Pearson's chi-square (outcomes with an expected
count below 10 pooled) at false-alarm probability 1e-6; the seeds are fixed, so a test either always
passes or always fails. `test_the_chi_square_notices_a_small_error` states what it would notice.
"""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import math
import pickle

import numpy as np
import pytest
from enumerated import counted, enumerated, infimum, law_of
from scipy.integrate import quad
from scipy.stats import chi2, kstest, laplace, norm

from pld_shuffle.randomizers import (
    RAPPOR,
    BinaryRandomizedResponse,
    DiscreteRandomizer,
    Gaussian,
    HadamardResponse,
    KRandomizedResponse,
    Laplace,
    LocalHashing,
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
    *(KRandomizedResponse(k=k, eps0=eps0) for k, eps0 in ((2, 1.0), (5, 2.5), (3, 30.0))),
    BinaryRandomizedResponse(0.7), BinaryRandomizedResponse(eps0=12.0),
    UnaryEncoding(k=2, eps0=1.0), UnaryEncoding(k=5, eps0=2.0),
    UnaryEncoding(k=4, eps0=0.1, variant="optimised"), UnaryEncoding(k=6, eps0=8.0, variant="optimised"),
    rappor(), rappor(k=2), rappor(noise=0.25).memoised, rappor(noise=0.0),
    rappor(k=6, one_if_zero=0.0, one_if_one=0.9),
    *(SubsetSelection(k=k, size=size, eps0=eps0)
      for k, size, eps0 in ((2, 1, 1.0), (6, 1, 2.0), (6, 3, 2.0), (5, 4, 0.5))),
    *(LocalHashing(k=k, buckets=buckets, eps0=eps0) for k, buckets, eps0 in (
        (2, 2, 1.0), (2, 4, 1.5), (4, 2, 1.0), (3, 3, 1.0), (4, 5, 3.0), (3, 6, 2.0))),
    *(HadamardResponse(k=k, eps0=eps0) for k, eps0 in ((2, 1.0), (5, 1.5), (8, 0.5), (3, 3.0))),
    DiscreteRandomizer(MATRIX),
]  # fmt: skip
CONTINUOUS = [Laplace(eps0=0.5), Laplace(eps0=4.0), Gaussian(sigma=0.5), Gaussian(sigma=2.0)]
ALL = NAMED + CONTINUOUS

each_finite = pytest.mark.parametrize("randomizer", NAMED, ids=repr)
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


def parameters_are(randomizer, law):
    """eps0, tv and gamma are those of the law."""
    ratio, distance, blanket = brute_force(law)
    return (
        agrees(randomizer.eps0, math.log(ratio))
        and agrees(randomizer.tv, distance)
        and agrees(randomizer.gamma, blanket)
    )


# ---------------------------------------------------------------- parameters against laws


@each_finite
def test_parameters_are_those_of_the_law(randomizer):
    law = law_of(randomizer)
    assert parameters_are(randomizer, law)
    matrix = DiscreteRandomizer(law / law.sum(axis=1, keepdims=True))
    assert parameters_are(matrix, law)
    # what every pure randomizer satisfies
    odds = math.exp(randomizer.eps0)
    assert randomizer.tv <= (odds - 1) / (odds + 1) * (1 + 1e-12)
    assert (1 - 1e-12) / odds <= randomizer.gamma <= 1 - randomizer.tv + 1e-12


@each_finite
def test_pair_laws_lose_nothing(randomizer):
    """Merged groups and the law's columns give the same curves; every pair has a kind."""
    law, low = law_of(randomizer), infimum(randomizer)
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
    for first, second, blanket in randomizer.pair_laws():
        assert first.sum() == pytest.approx(1, abs=1e-12)
        assert second.sum() == pytest.approx(1, abs=1e-12)
        assert blanket.sum() == pytest.approx(randomizer.gamma, rel=1e-12)
        assert np.all(blanket <= np.minimum(first, second) * (1 + 1e-12))


def curve(first, second, blanket):
    """Functionals of (first, second, blanket) that merging groups of equal ratios preserves."""
    weights = np.random.default_rng(5).normal(size=(6, 3))
    return np.abs(weights @ np.array([first, second, blanket])).sum(axis=1)


@pytest.mark.parametrize("eps0", [1e-9, 0.01, 1.0, 20.0, 300.0, 700.0])
def test_extreme_local_epsilons_stay_finite_and_consistent(eps0):
    for randomizer in (
        KRandomizedResponse(k=1000, eps0=eps0),
        BinaryRandomizedResponse(eps0),
        UnaryEncoding(k=1000, eps0=eps0),
        UnaryEncoding(k=1000, eps0=eps0, variant="optimised"),
        SubsetSelection(k=1000, size=300, eps0=eps0),
        LocalHashing(k=1000, buckets=4, eps0=eps0),
        HadamardResponse(k=1000, eps0=eps0),
        Laplace(eps0=eps0),
    ):
        assert 0 < randomizer.tv <= 1
        assert math.exp(-eps0) * (1 - 1e-12) <= randomizer.gamma <= 1
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


@pytest.mark.parametrize("randomizer", [
    rappor(), rappor(noise=0.1, one_if_zero=0.0, one_if_one=0.5), rappor(noise=0.0),
], ids=repr)  # fmt: skip
def test_epsilon_of_several_reports_from_one_memoised_filter(randomizer):
    """That of the enumerated reports on one bit; it grows to the lifetime's, which is that of the memoised filter."""
    epsilons = []
    for count in (1, 2, 3, 7, 12):
        zero, one = reports_law(randomizer, count)
        epsilons.append(math.log(np.max(one / zero) * np.max(zero / one)))
    assert agrees(randomizer.eps0, epsilons[0])
    assert epsilons == sorted(epsilons)
    if randomizer.noise == 0:  # nothing bounds them
        return
    lifetime = 2 * math.log((2 - randomizer.noise) / randomizer.noise)
    assert agrees(randomizer.memoised.eps0, lifetime) and epsilons[-1] < lifetime < 1.0102 * epsilons[-1]


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
    """A call with several inputs mixed; reports of neighbouring users are uncorrelated (a 0/1 feature, 5 sigma)."""
    inputs = sorted({0, 1, 2 % randomizer.inputs, randomizer.inputs - 1})
    values = np.resize(inputs, SAMPLES)
    reports = randomizer.sample(values, np.random.default_rng(20240))
    for x in inputs:
        assert chi_square(counted(randomizer, reports[values == x]), law_of(randomizer)[x]) > (FALSE_ALARM)
    alike = randomizer.sample(np.full(SAMPLES, 1), np.random.default_rng(8))
    number = alike.reshape(SAMPLES, -1) @ 3 ** np.arange(alike[0].size)
    feature = number > np.median(number)
    if 0.01 < feature.mean() < 0.99:
        correlation = np.corrcoef(feature[:-1], feature[1:])[0, 1]
        assert abs(correlation) < 5 / math.sqrt(SAMPLES)


def test_the_chi_square_notices_a_small_error():
    """k-RR, k = 4, eps0 = 1: samples of eps0 = 1.05 are rejected."""
    rng = np.random.default_rng(3)
    reports = KRandomizedResponse(k=4, eps0=1.05).sample(np.zeros(SAMPLES, dtype=int), rng)
    law = law_of(KRandomizedResponse(k=4, eps0=1.0))[0]
    assert chi_square(np.bincount(reports, minlength=4), law) < FALSE_ALARM


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


def test_permanent_and_instantaneous_steps_follow_their_laws():
    """Each by itself; and two reports from one memoised filter follow the two-report law, bit by bit."""
    randomizer = rappor(k=3, noise=0.3, one_if_zero=0.2, one_if_one=0.9)
    rng = np.random.default_rng(12)
    memoised = randomizer.permanent(np.full(SAMPLES, 2), rng)
    counts = counted(randomizer, memoised)
    assert chi_square(counts, law_of(randomizer.memoised)[2]) > FALSE_ALARM
    fixed = np.tile(np.array([1, 0, 1], dtype=np.uint8), (SAMPLES, 1))
    chance = np.where(enumerated(randomizer)[0] == 1, [0.9, 0.2, 0.9], [0.1, 0.8, 0.1])
    counts = counted(randomizer, randomizer.instantaneous(fixed, rng))
    assert chi_square(counts, np.prod(chance, axis=1)) > FALSE_ALARM
    first, second = (randomizer.instantaneous(memoised, rng).astype(int) for _ in range(2))
    for bit, true in ((0, 0), (2, 1)):
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


@pytest.mark.parametrize("k", [2, 7, 9])
def test_the_truth_is_the_mass_of_the_likelier_reports(k):
    response = HadamardResponse(k=k, eps0=1.0)
    law = law_of(response)[0]
    assert agrees(response.truth, law[law == law.max()].sum())


# -------------------------------------------------------------------- Laplace, Gaussian


@each_continuous
def test_noise_has_the_parameters_of_its_density_and_its_distribution(randomizer):
    """Adaptive quadrature, split at the kinks; no other pair is farther apart than (0, 1)."""
    if isinstance(randomizer, Laplace):
        noise = laplace(scale=1 / randomizer.eps0)
        far = noise.pdf(-4.0) / noise.pdf(-5.0)  # reports beyond both inputs attain the largest ratio
        assert agrees(randomizer.eps0, math.log(far))
    else:
        noise = norm(scale=randomizer.sigma)
        assert randomizer.eps0 == math.inf

    def integral(function):
        edges = [-60.0, -3.0, 0.0, 0.5, 1.0, 4.0, 61.0]
        return sum(quad(function, a, b, epsabs=1e-13, epsrel=1e-12, limit=200)[0] for a, b in itertools.pairwise(edges))

    def distance(x):
        return integral(lambda y: max(0.0, noise.pdf(y - x) - noise.pdf(y)))

    grid = np.linspace(0, 1, 9)
    assert distance(1.0) == pytest.approx(randomizer.tv, abs=1e-9)
    assert max(map(distance, grid[1:-1])) <= randomizer.tv
    low = integral(lambda y: noise.pdf(y - grid).min())
    assert low == pytest.approx(randomizer.gamma, abs=1e-9)
    for x in (0.0, 0.3, 1.0):
        reports = randomizer.sample(np.full(SAMPLES, x), np.random.default_rng(17))
        assert kstest(reports - x, noise.cdf).pvalue > FALSE_ALARM


def test_local_noise_is_not_mistaken_for_central_noise():
    """A bare number is refused on either side. The other's object: test_traps.py."""
    assert Laplace(eps0=2.0) == dataclasses.replace(Laplace(eps0=1.0), eps0=2.0)
    for local, keyword, central in ((Laplace, "eps0", "scale"), (Gaussian, "sigma", "sigma")):
        text = rf"keywords only, got 2.0, 3: randomizers.*\({keyword}=.*pld_shuffle.*\({central}="
        with pytest.raises(TypeError, match=text):
            local(2.0, 3)
        assert list(inspect.signature(local).parameters) == [keyword]
    for wrong in ({"scale": 2.0}, {}):
        with pytest.raises(TypeError, match=r"scale|eps0"):
            Laplace(**wrong)


# ----------------------------------------------------------------- any finite law


def test_the_worst_pair_for_the_ratio_and_for_the_distance_may_differ():
    randomizer = DiscreteRandomizer([[0.9, 0.099, 0.001], [0.1, 0.895, 0.005], [0.9, 0.09, 0.01]])
    assert agrees(randomizer.eps0, math.log(10)) and agrees(randomizer.tv, 0.805)


def test_degenerate_laws():
    same = DiscreteRandomizer([[0.25, 0.75], [0.25, 0.75]])
    assert (same.eps0, same.tv, same.gamma) == (0.0, 0.0, 1.0)
    open_ = DiscreteRandomizer([[1.0, 0.0], [0.5, 0.5]])
    assert (open_.eps0, open_.tv, open_.gamma) == (math.inf, 0.5, 0.5)


def test_a_pickled_matrix_comes_back_without_its_caches():
    randomizer = DiscreteRandomizer(MATRIX)
    assert randomizer.law() is randomizer.law()
    copy = pickle.loads(pickle.dumps(randomizer))
    assert not copy.law().flags.writeable
    assert copy.tv == randomizer.tv


def test_rows_are_normalised_within_the_tolerance():
    randomizer = DiscreteRandomizer([[0.5 + 4e-10, 0.5], [0.25, 0.75]])
    assert math.fsum(randomizer.law()[0]) == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize("gamma", [1e-6, 0.25, 0.999])
def test_k_rr_from_gamma(gamma):
    randomizer = KRandomizedResponse.from_gamma(k=4, gamma=gamma)
    assert randomizer.gamma == pytest.approx(gamma, rel=1e-9)
    assert agrees(randomizer.eps0, math.log(1 + 4 * (1 - gamma) / gamma))


# -------------------------------------------------------------------------- border


#: Constructors with good arguments, and bad values of them.
MAKERS = [
    (KRandomizedResponse, {"k": 3, "eps0": 1.0}, {"k": [1, 0]}),
    (KRandomizedResponse.from_gamma, {"k": 4, "gamma": 0.5}, {"k": [1], "gamma": [0, 1.0, math.nan]}),
    (BinaryRandomizedResponse, {"eps0": 1.0}, {}),
    (Laplace, {"eps0": 1.0}, {}),
    (Gaussian, {"sigma": 1.0}, {"sigma": [0.0, -1.0, math.nan, math.inf]}),
    (UnaryEncoding, {"k": 3, "eps0": 1.0}, {"k": [0, 1, 2**24 + 1], "variant": ["optimized!"]}),
    (SubsetSelection, {"k": 4, "size": 1, "eps0": 1.0}, {"k": [1], "size": [0, 4]}),
    (LocalHashing, {"k": 4, "buckets": 2, "eps0": 1.0}, {"k": [1, 2**31], "buckets": [1, 2**31]}),
    (HadamardResponse, {"k": 4, "eps0": 1.0}, {"k": [1, 2**48 + 1]}),
    (rappor, {"k": 4, "noise": 0.5}, {"k": [1], "noise": [1.0, -0.1, math.nan]}),
    (rappor, {"one_if_zero": 0.25}, {"one_if_zero": [0.75, -0.1], "one_if_one": [math.nan, 1.1]}),
]  # fmt: skip


@pytest.mark.parametrize("maker, given, bad", MAKERS)
def test_bad_arguments_are_named(maker, given, bad):
    """ValueError with name and value for a number out of range. Other kinds of numbers: test_border.py."""
    maker(**given)
    if "eps0" in given:
        bad = {"eps0": [0, -1.0, math.nan, math.inf, 701, -0.0], **bad}
    for name, values in bad.items():
        for value in values:
            with pytest.raises(ValueError) as caught:
                maker(**{**given, name: value})
            assert name in str(caught.value) and repr(value) in str(caught.value)


def test_integral_floats_are_integers():
    assert KRandomizedResponse(k=1e4, eps0=1.0) == KRandomizedResponse(k=10_000, eps0=1.0)
    assert repr(LocalHashing(k=8.0, buckets=np.float64(4), eps0=1.0).buckets) == "4"


def test_rappor_without_any_noise_is_refused():
    with pytest.raises(ValueError, match="eps0=inf"):
        rappor(noise=0.0, one_if_zero=0.0, one_if_one=0.5)
    with pytest.raises(ValueError, match="eps0"):
        rappor(noise=0.0).memoised  # noqa: B018


@pytest.mark.parametrize("matrix, error", [
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
])  # fmt: skip
def test_bad_matrices_are_refused(matrix, error):
    with pytest.raises(error, match="matrix"):
        DiscreteRandomizer(matrix)


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
        with pytest.raises(ValueError, match="x must be in"):
            randomizer.sample(bad, rng)
    for worse in (True, "0", [None], 0.5j):
        with pytest.raises(TypeError, match="x must be a real number or an array of them"):
            randomizer.sample(worse, rng)
    with pytest.raises(TypeError, match="rng"):
        randomizer.sample(0.5, 0)


def test_memoised_filters_are_checked():
    with pytest.raises(ValueError, match="memoised"):
        rappor().instantaneous([0, 1, 0, 2], np.random.default_rng(0))
