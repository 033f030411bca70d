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
from enumerated import enumerated, infimum, law_of
from test_randomizers import MATRIX, NAMED, rappor

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
FINITE = [*NAMED, HadamardResponse(k=7, eps0=1.0), HadamardResponse(k=12, eps0=1.0)]
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
    assert list(HadamardResponse(k=100, eps0=3.0).ordered_pairs()) == [(0, 1)]


def test_hadamard_kinds_are_sums_of_rows_and_one_fresh_row():
    # Rows 1, 2 and 4 with all their sums, and row 8.
    assert HadamardResponse(k=60, eps0=3.0).kinds((0, 1, 3)) == [0, 1, 2, 3, 4, 5, 6, 7]


def test_unbounded_or_large_matrices_have_no_types():
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


def test_bad_inputs_are_named():
    randomizer = KRandomizedResponse(k=5, eps0=1.0)
    for inputs in ([], [5], [-1], [[0, 1]]):
        with pytest.raises(ValueError, match="inputs"):
            randomizer.joint_law(inputs)
    with pytest.raises(TypeError, match="inputs"):
        randomizer.joint_law([0.5])
    with pytest.raises(ValueError, match="at most 4 different ones"):
        LocalHashing(k=2**25, buckets=3, eps0=1.0).joint_law([0, 1, 2, 3, 4])
