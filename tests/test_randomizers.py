"""Randomizers: closed forms and samples against laws enumerated from the definitions, and the border.

Sampling tests compare frequencies with the law by Pearson's chi-square at false-alarm probability 1e-6, with fixed
seeds; `test_the_chi_square_notices_a_small_error` states what it would notice.
"""

from __future__ import annotations

import itertools
import math
import pickle
from fractions import Fraction

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
    *(HadamardResponse(k=k, eps0=eps0) for k, eps0 in ((2, 1.0), (5, 1.5), (8, 0.5), (3, 3.0), (7, 1.0), (12, 1.0))),
    DiscreteRandomizer(MATRIX),
    # The worst pair for the ratio is not that for the distance.
    DiscreteRandomizer([[0.9, 0.099, 0.001], [0.1, 0.895, 0.005], [0.9, 0.09, 0.01]]),
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
    kinds = np.array([curve(kind) for kind in randomizer.pair_laws()])
    found = np.zeros(len(kinds), dtype=bool)
    for i, j in itertools.combinations(range(min(randomizer.inputs, 8)), 2):
        if np.array_equal(law[i], law[j]):
            continue
        same = np.zeros(len(kinds), dtype=bool)
        for one, two in ((law[i], law[j]), (law[j], law[i])):
            same |= np.all(np.abs(kinds - curve([one, two, low])) < 1e-11, axis=1)
        assert np.any(same)
        found |= same
    if randomizer.inputs <= 8:
        assert np.all(found)
    for first, second, blanket in randomizer.pair_laws():
        assert first.sum() == pytest.approx(1, abs=1e-12)
        assert second.sum() == pytest.approx(1, abs=1e-12)
        assert blanket.sum() == pytest.approx(randomizer.gamma, rel=1e-12)
        assert np.all(blanket <= np.minimum(first, second) * (1 + 1e-12))


WEIGHTS = np.random.default_rng(11).normal(size=(6, 5))


def curve(rows):
    """Sums that merging reports of equal ratios preserves and that nearly any other change of a joint law alters."""
    return np.abs(WEIGHTS[:, : len(rows)] @ np.asarray(rows)).sum(axis=1)


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


# ----------------------------------------------------------------- any finite law


def test_matrices():
    """Degenerate ones; rows are normalised within the tolerance; a pickle comes back without its caches."""
    same = DiscreteRandomizer([[0.25, 0.75], [0.25, 0.75]])
    assert (same.eps0, same.tv, same.gamma) == (0.0, 0.0, 1.0)
    open_ = DiscreteRandomizer([[1.0, 0.0], [0.5, 0.5]])
    assert (open_.eps0, open_.tv, open_.gamma) == (math.inf, 0.5, 0.5)
    rounded = DiscreteRandomizer([[0.5 + 4e-10, 0.5], [0.25, 0.75]])
    assert math.fsum(rounded.law()[0]) == pytest.approx(1, abs=1e-15)
    randomizer = DiscreteRandomizer(MATRIX)
    assert randomizer.law() is randomizer.law()
    copy = pickle.loads(pickle.dumps(randomizer))
    assert not copy.law().flags.writeable
    assert copy.tv == randomizer.tv


@pytest.mark.parametrize("gamma", [1e-6, 0.25, 0.999])
def test_k_rr_from_gamma(gamma):
    randomizer = KRandomizedResponse.from_gamma(k=4, gamma=gamma)
    assert randomizer.gamma == pytest.approx(gamma, rel=1e-9)
    assert agrees(randomizer.eps0, math.log(1 + 4 * (1 - gamma) / gamma))


# -------------------------------------------------------------------------- border


@each
def test_bad_values_are_refused(randomizer):
    rng = np.random.default_rng(0)
    if randomizer in CONTINUOUS:
        outside, wrong = (-0.1, 1.1, math.nan, [0.5, math.inf]), (True, "0", [None], 0.5j)
        words = "x must be in", "x must be a real number or an array of them"
    else:
        outside, wrong = (-1, randomizer.inputs, [0, randomizer.inputs]), (0.0, [0.5], True, [True], "0", [None])
        words = "x must lie in", "x must hold integers"
    for values, error, said in ((outside, ValueError, words[0]), (wrong, TypeError, words[1])):
        for bad in values:
            with pytest.raises(error, match=said):
                randomizer.sample(bad, rng)
    for no_rng in (None, 0, np.random.RandomState(0), np.random):
        with pytest.raises(TypeError, match="rng"):
            randomizer.sample(0, no_rng)


# --- Joint laws of several inputs: against enumerated laws, exact rationals, and the blanket -------


def ratios(rows):
    """Number of different ratio vectors, up to rounding."""
    seen = rows[:, rows.max(axis=0) > 0]
    return len(np.unique(np.round(seen / seen.max(axis=0), 9), axis=1).T)


@each_finite
def test_joint_laws_of_all_quadruples_equal_the_enumerated_ones(randomizer):
    law, low = law_of(randomizer), infimum(randomizer)
    inputs = range(min(randomizer.inputs, 5))
    for several in itertools.product(inputs, repeat=4):
        if several[0] > 1 or several[1] > 2:
            continue  # all patterns of equal inputs occur in the rest
        joint = randomizer.joint_law(several)
        assert joint.shape[0] == 4
        np.testing.assert_allclose(joint.sum(axis=1), 1, rtol=1e-13)
        np.testing.assert_allclose(curve(joint), curve(law[list(several)]), rtol=1e-12)
        with_blanket = randomizer.joint_law(several, blanket=True)
        expected = np.vstack([law[list(several)], low])
        np.testing.assert_allclose(curve(with_blanket), curve(expected), rtol=1e-12)


@each_finite
def test_reports_of_equal_ratios_share_a_group_and_equal_inputs_rows(randomizer):
    several = [x for x in (0, 1, 2) if x < randomizer.inputs]
    joint = randomizer.joint_law(several)
    assert not joint.flags.writeable
    assert joint.shape[1] == ratios(joint) == ratios(law_of(randomizer)[several])
    repeated = randomizer.joint_law([1, 0, 1, 0], blanket=True)
    assert np.array_equal(repeated[:2], repeated[2:4])


# ---------------------------------------------------------------- against exact rationals


ROOT = Fraction(3, 2)  # of e^eps0
LOG_ODDS = {"eps0": math.log(2.25)}


@pytest.mark.parametrize("randomizer", [
    KRandomizedResponse(k=7, **LOG_ODDS), SubsetSelection(k=7, size=3, **LOG_ODDS),
    UnaryEncoding(k=6, variant="optimised", **LOG_ODDS), LocalHashing(k=7, buckets=3, **LOG_ODDS),
], ids=repr)  # fmt: skip
def test_masses_are_accurate_to_1e_14(randomizer):
    laws = enumerated(randomizer, ROOT)[1]
    several = (0, 1, 3, 4, 5)[: 4 if isinstance(randomizer, LocalHashing) else 5]
    groups = {}
    for masses in zip(*(laws[x] for x in several), strict=True):
        key = tuple(mass / max(masses) for mass in masses)
        groups[key] = [a + b for a, b in zip(groups.get(key, [0] * 5), masses, strict=False)]
    exact = sorted(tuple(group) for group in groups.values())
    joint = randomizer.joint_law(several)
    found = sorted(tuple(column) for column in joint.T)
    assert len(found) == len(exact)
    # Rounding may exchange equal entries: match each exact group with its nearest.
    for group in exact:
        error = min(max(abs(Fraction(f) / g - 1) for f, g in zip(c, group, strict=True)) for c in found)
        assert error < 1e-14


# ---------------------------------------------------------------- what follows from them


@each_finite
def test_types_cover_every_target_and_every_other_value(randomizer):
    """For each ordered pair some kind of pair has all other values' laws, for both V and the blanket."""
    law = law_of(randomizer)[:8]
    low = infimum(randomizer)
    entries = list(randomizer.types())
    pairs = 1 + max(entry.pair for entry in entries)
    found = {(entry.pair, entry.shared): np.array([curve(rows) for rows in entry.laws]) for entry in entries}
    for first, second in itertools.permutations(range(len(law)), 2):
        if np.array_equal(law[first], law[second]):
            continue
        target = [law[first], law[second]]
        for name, shared in zip(("first", "second", "blanket"), (*target, low / math.fsum(low)), strict=True):
            others = np.array([curve([*target, shared, other]) for other in law])
            covered = [covers(found[pair, name], others) for pair in range(pairs)]
            assert any(covered), (first, second, name)


def covers(kinds, others):
    """Whether each row of `others` is one of `kinds`."""
    return bool(np.all(np.abs(others[:, np.newaxis] - kinds) < 1e-11, axis=2).any(axis=1).all())


def test_kinds_of_symmetric_and_of_large_randomizers():
    """Few of the former; of Hadamard's sums of rows 1, 2 and 4, and row 8; none of unbounded or large matrices."""
    randomizer = KRandomizedResponse(k=1000, eps0=1.0)
    assert [(entry.shared, len(entry.laws)) for entry in randomizer.types()] == [
        ("first", 3), ("second", 3), ("third", 4), ("blanket", 3),
    ]  # fmt: skip
    assert list(BinaryRandomizedResponse(1.0).ordered_pairs()) == [(0, 1)]
    assert list(HadamardResponse(k=100, eps0=3.0).ordered_pairs()) == [(0, 1)]
    assert HadamardResponse(k=60, eps0=3.0).kinds((0, 1, 3)) == [0, 1, 2, 3, 4, 5, 6, 7]
    unbounded = DiscreteRandomizer([[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]])
    assert list(unbounded.types()) == []
    assert list(DiscreteRandomizer(np.full((65, 65), 1 / 65)).types()) == []
    assert len(list(DiscreteRandomizer(np.full((17, 17), 1 / 17)).types())) == 17 * 16
    assert len(list(DiscreteRandomizer(MATRIX).types())) == 4 * 4 + 2 * 3


# ---------------------------------------------------------------- local hashing


@pytest.mark.parametrize("k, buckets", [(6, 3), (7, 2), (5, 4)])
def test_the_blanket_of_many_hashed_values_is_a_lower_bound(k, buckets):
    """All other rows are exact; four values that collide are hardly ever all."""
    randomizer = LocalHashing(k=k, buckets=buckets, eps0=1.0)
    law, exact = law_of(randomizer), infimum(randomizer).sum()
    four = 2.0 * buckets**-3 * randomizer.response.truth * buckets
    assert exact - four <= randomizer.gamma <= exact * (1 + 1e-13)
    for several in itertools.combinations(range(k), 4):
        np.testing.assert_allclose(curve(randomizer.joint_law(several)), curve(law[list(several)]), rtol=1e-12)


# ---------------------------------------------------------------- scale and border


@pytest.mark.parametrize("randomizer, groups", [
    (KRandomizedResponse(k=10**9, eps0=1.0), 6),
    (UnaryEncoding(k=10**6, eps0=1.0), 32),
    (rappor(k=10**6), 32),
    (SubsetSelection(k=10**6, size=1000, eps0=1.0), 32),
    (HadamardResponse(k=10**9, eps0=1.0), 32),
    (LocalHashing(k=10**5, buckets=3, eps0=1.0), 16),
], ids=repr)  # fmt: skip
def test_large_alphabets_are_feasible(randomizer, groups):
    several = [0, 70_000, 5, 3, 99_999]
    joint = randomizer.joint_law(several[: 4 if isinstance(randomizer, LocalHashing) else 5])
    assert joint.shape[1] <= groups
    np.testing.assert_allclose(joint.sum(axis=1), 1, rtol=1e-12)
    for entry in randomizer.types():
        assert len(entry.laws) <= 12
    assert 0 < randomizer.gamma <= (1 - randomizer.tv) * (1 + 1e-12) < 1 + 1e-12
    for first, second, blanket in randomizer.pair_laws():
        assert len(first) <= 16
        assert blanket.sum() == pytest.approx(randomizer.gamma, rel=1e-11)
        assert np.maximum(first - second, 0).sum() <= randomizer.tv * (1 + 1e-11)
        if not isinstance(randomizer, RAPPOR):  # its pairs differ in few bits
            ratio = np.max(first[second > 0] / second[second > 0])
            assert math.log(ratio) == pytest.approx(randomizer.eps0, rel=1e-12)
    assert len(randomizer.sample(np.arange(2), np.random.default_rng(0))) == 2
