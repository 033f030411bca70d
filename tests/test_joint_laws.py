"""Joint laws of several inputs: against enumerated laws, exact rationals, and the blanket.

`curve` maps a joint law to sums that merging reports of equal ratios preserves and that nearly any
other change alters. The enumerated laws have one column per report.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from enumerated import enumerated, infimum, law_of, law_of_filters
from test_randomizers import BLOOM, MATRIX, NAMED, rappor

from pld_shuffle.randomizers import (
    RAPPOR,
    BinaryRandomizedResponse,
    DiscreteRandomizer,
    HadamardResponse,
    KRandomizedResponse,
    LocalHashing,
    SubsetSelection,
    UnaryEncoding,
)

WEIGHTS = np.random.default_rng(11).normal(size=(6, 5))
FINITE = [*NAMED, *BLOOM, HadamardResponse(k=7, eps0=1.0), HadamardResponse(k=12, eps0=1.0)]
each_finite = pytest.mark.parametrize("randomizer", FINITE, ids=repr)


def curve(rows):
    return np.abs(WEIGHTS[:, : len(rows)] @ np.asarray(rows)).sum(axis=1)


def ratios(rows):
    """Number of different ratio vectors, up to rounding."""
    seen = rows[:, rows.max(axis=0) > 0]
    return len(np.unique(np.round(seen / seen.max(axis=0), 9), axis=1).T)


# ---------------------------------------------------------------- against enumeration


@each_finite
def test_joint_laws_of_all_quadruples_equal_the_enumerated_ones(randomizer):
    law, low = law_of(randomizer), infimum(randomizer)
    inputs = range(min(randomizer.inputs, 5))
    for several in itertools.product(inputs, repeat=4):
        if several[0] > 1 or several[1] > 2:
            continue  # all patterns of equal inputs occur in the rest
        if isinstance(randomizer, LocalHashing) and len(set(several)) > 3:
            continue
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
    several = (0, 1, 3, 4, 5)[: 3 if isinstance(randomizer, LocalHashing) else 5]
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
    bloom = isinstance(randomizer, RAPPOR) and randomizer.hashes > 1
    law = law_of_filters(randomizer)[:12] if bloom else law_of(randomizer)[:8]
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
            covered = [covers(found[pair, name], others, randomizer) for pair in range(pairs)]
            assert any(covered), (first, second, name)


def covers(kinds, others, randomizer):
    """Whether each row of `others` is one of `kinds`; for local hashing, between the last two."""
    near = np.all(np.abs(others[:, np.newaxis] - kinds) < 1e-11, axis=2).any(axis=1)
    if isinstance(randomizer, LocalHashing) and len(kinds) == 4:
        low, step = kinds[2], kinds[3] - kinds[2]
        share = (others - low) @ step / (step @ step)
        between = np.abs(low + share[:, np.newaxis] * step - others).max(axis=1) < 1e-11
        near |= between & (share >= -1e-9) & (share <= 1 + 1e-9)
    return bool(np.all(near))


@each_finite
def test_the_rows_of_types_are_laws_and_some_other_value_holds_the_shared_one(randomizer):
    for entry in randomizer.types():
        for rows in entry.laws:
            np.testing.assert_allclose(rows.sum(axis=1), 1, rtol=1e-13)
            assert np.all(rows[3] > 0)
        if entry.shared != "blanket":
            assert any(np.array_equal(rows[2], rows[3]) for rows in entry.laws)
        ratio = max(float(np.max(rows[2] / rows[3])) for rows in entry.laws)
        assert ratio <= (1 / randomizer.gamma if entry.shared == "blanket" else math.exp(randomizer.eps0)) * (1 + 1e-12)


def test_symmetric_randomizers_have_few_kinds():
    randomizer = KRandomizedResponse(k=1000, eps0=1.0)
    assert [(entry.shared, len(entry.laws)) for entry in randomizer.types()] == [
        ("first", 3), ("second", 3), ("third", 4), ("blanket", 3),
    ]  # fmt: skip
    assert list(BinaryRandomizedResponse(1.0).ordered_pairs()) == [(0, 1)]
    assert list(HadamardResponse(k=100, eps0=3.0, blocks=4).ordered_pairs()) == [(0, 1), (0, 31)]


def test_hadamard_kinds_are_sums_of_rows_one_fresh_row_and_a_fresh_block():
    randomizer = HadamardResponse(k=60, eps0=3.0, blocks=4)  # 15 rows in each block
    # Rows 1 and 2 of block 0, row 3 of block 1: their sum, fresh rows 4 and 1, block 2.
    assert randomizer.kinds((0, 1, 17)) == [0, 1, 2, 3, 15, 17, 30]


def test_unbounded_or_large_matrices_have_no_types():
    unbounded = DiscreteRandomizer([[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]])
    assert list(unbounded.types()) == []
    assert list(DiscreteRandomizer(np.full((17, 17), 1 / 17)).types()) == []
    assert len(list(DiscreteRandomizer(MATRIX).types())) == 4 * 4 + 2 * 3
    assert list(rappor(k=100, bits=64, hashes=5).types()) == []


# ---------------------------------------------------------------- local hashing


@pytest.mark.parametrize("k, buckets", [(13, 3), (11, 2), (7, 7), (23, 4), (5, 9)])
def test_triple_collisions_are_the_extremes_of_all_third_values(k, buckets):
    randomizer = LocalHashing(k=k, buckets=buckets, eps0=1.0)
    prime = randomizer.prime
    counts = []
    for third in range(2, prime):
        residues = np.array([0, 1, third])[:, np.newaxis, np.newaxis]
        a, b = np.arange(1, prime)[:, np.newaxis], np.arange(prime)
        bucket = (a * residues + b) % prime % buckets
        counts.append(int(np.sum((bucket[0] == bucket[1]) & (bucket[1] == bucket[2]))))
    assert randomizer._triple_collisions == (min(counts), max(counts))


def test_where_the_extremes_are_not_searched_they_are_what_pairs_allow():
    randomizer = LocalHashing(k=20_011, buckets=4, eps0=1.0)
    pairs, functions = randomizer._pair_collisions, 20_011 * 20_010
    assert randomizer._triple_collisions == (0, pairs)
    two = LocalHashing(k=20_011, buckets=2, eps0=1.0)  # among three values two collide
    assert two._triple_collisions[0] == (3 * two._pair_collisions - functions) // 2
    for third in (2, 3, 1000, 10_005, 20_010):
        for hashing in (randomizer, two):
            seen = hashing._all_same(third)
            low, high = hashing._triple_collisions
            assert low <= seen <= high
            assert seen == low or hashing is randomizer


# ---------------------------------------------------------------- scale and border


@pytest.mark.parametrize("randomizer, groups", [
    (KRandomizedResponse(k=10**9, eps0=1.0), 6),
    (UnaryEncoding(k=10**6, eps0=1.0), 32),
    (rappor(k=10**6), 32),
    (SubsetSelection(k=10**6, size=1000, eps0=1.0), 32),
    (HadamardResponse(k=10**9, eps0=1.0), 32),
    (HadamardResponse(k=10**9, eps0=1.0, blocks=2**12), 32),
    (rappor(k=10**6, bits=128, hashes=2), 3**5),
    (LocalHashing(k=10**5, buckets=3, eps0=1.0), 8),
], ids=repr)  # fmt: skip
def test_large_alphabets_are_feasible(randomizer, groups):
    several = [0, 70_000, 5, 3, 99_999]
    joint = randomizer.joint_law(several[: 3 if isinstance(randomizer, LocalHashing) else 5])
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


def test_bad_inputs_are_named():
    randomizer = KRandomizedResponse(k=5, eps0=1.0)
    for inputs in ([], [5], [-1], [[0, 1]]):
        with pytest.raises(ValueError, match="inputs"):
            randomizer.joint_law(inputs)
    with pytest.raises(TypeError, match="inputs"):
        randomizer.joint_law([0.5])
    with pytest.raises(ValueError, match="more than two values"):
        LocalHashing(k=2**25, buckets=3, eps0=1.0).joint_law([0, 1, 2])
