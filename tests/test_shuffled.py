"""Named randomizers in a shuffler: every analysis above, and every attack below, the enumerated protocol."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from oracles import counts_law
from scipy.special import ndtr

from pld_shuffle import Accountant, Shuffled, ShuffledLDP, ShuffledRandomizer
from pld_shuffle.pairs.pair import Cohort
from pld_shuffle.pairs.swap import typed_profile
from pld_shuffle.randomizers import DiscreteRandomizer, Gaussian, KRandomizedResponse, SubsetSelection, UnaryEncoding

ANALYSES = ("blanket", "reduction", "stronger-clones")


def test_gaussian_noise_is_never_pure() -> None:
    """However large the noise, its losses are unbounded."""
    noise = Gaussian(sigma=10.0)
    assert Shuffled(noise, 1000, analysis="blanket").pair.max_loss.upper == math.inf


def test_identical_rows_spend_nothing() -> None:
    """eps0 = 0: a null mechanism, not an error, unless an analysis needs eps0."""
    same = DiscreteRandomizer([[0.3, 0.7], [0.3, 0.7]])
    assert Accountant().compose(Shuffled(same, 10, analysis="blanket"), 5).get_epsilon(0.0) == 0.0
    with pytest.raises(ValueError, match="finite positive eps0"):
        Shuffled(same, 10, "reduction")


def test_local_budgets_beyond_all_hiding() -> None:
    """eps0 = 400: the blanket refuses, the default takes the reduction, and says so."""
    strong = Shuffled(UnaryEncoding(k=4, eps0=400.0), 10)
    assert isinstance(strong.core, ShuffledRandomizer)
    assert "reduction" in strong.assumptions()["analysis"]


def test_alternatives_name_what_others_give() -> None:
    """All analyses that apply, consistent with accounting each on its own."""
    mechanism = Shuffled(SubsetSelection(k=5, size=2, eps0=2.0), 2000, analysis="blanket")
    found = mechanism.alternatives(delta=1e-6, rounds=4)
    assert set(found) == {"swap", *ANALYSES}
    assert found["swap"].upper < 0.98 * min(found[name].upper for name in ANALYSES)
    expected = Accountant().compose(ShuffledLDP(2.0, 2000, analysis="stronger-clones"), 4).epsilon_bounds(1e-6)
    assert found["stronger-clones"] == expected
    assert "blanket" in mechanism.assumptions()["analysis"]
    assert set(Shuffled(Gaussian(sigma=1.0), 10_000).alternatives(delta=1e-3)) == {"blanket", "swap"}
    assert "bits" in Shuffled(KRandomizedResponse(k=2, eps0=2.0), 100).alternatives(delta=1e-3)


# --- Named randomizers in a shuffler by the swap theorem with types: Laplace noise on [0, 1], and finite  ---


def three_groups(sigma, inputs):
    """Masses of reports below -1/2, in between, and above 1: post-processing of the real reports."""
    cuts = (np.array([-0.5, 1.0])[:, None] - np.array(inputs)) / sigma
    below = ndtr(cuts)
    return np.array([below[0], below[1] - below[0], 1.0 - below[1]]).T


@pytest.mark.parametrize("presence, n", [(1.0, 60), (0.5, 24)])
def test_gaussian_noise_is_above_mixed_crowds(presence, n):
    """Others of three values in any proportion, the protocol's counts of three groups (and absences) exactly."""
    pair = Shuffled(Gaussian(sigma=1.0), n).sampled(Cohort(presence=presence))
    expm1_eps = np.expm1([0.0, 0.1, 0.2, 0.3, 0.5])
    upper = pair.profile(expm1_eps, 1e-6, 1e-12).upper
    values = three_groups(1.0, [0.0, 0.5, 1.0])
    if presence < 1.0:
        values = np.column_stack([presence * values, np.full(3, 1.0 - presence)])
    best = np.zeros(expm1_eps.size)
    for zeros, halves in ((n - 1, 0), (n // 2, 0), (n // 2, n // 4), (0, 0)):
        others = [values[0]] * zeros + [values[1]] * halves
        others += [values[2]] * (n - 1 - zeros - halves)
        views = [counts_law([*others, law]) for law in values]
        for ahead, behind in itertools.permutations(views, 2):
            truth = [np.maximum(ahead - (1.0 + g) * behind, 0.0).sum() for g in expm1_eps]
            assert np.all(np.array(truth) <= upper * (1 + 1e-12))
            best = np.maximum(best, truth)
    assert best[1] > 0.4 * upper[1]  # three groups tell much of it


@pytest.mark.parametrize(
    "n, rows, worse",
    [
        (200, [[0.6, 0.25, 0.15], [0.25, 0.6, 0.15], [0.25, 0.25, 0.5]], 1.02),
        # A report that makes a ratio of 400, or of 1,000, is a jump.
        (60, [[0.5, 0.28, 0.2, 0.02], [0.25, 0.65, 0.09995, 0.00005], [0.3, 0.3, 0.3, 0.1]], 1.6),
        (60, [[0.5, 0.3, 0.2], [0.3, 0.6998, 0.0002], [0.3, 0.3, 0.4]], 1.5),
    ],
)
def test_a_guest_is_one_user_only(n, rows, worse):
    """The user who reports from V, the blanket, as a type, and as a guest; and reports that are jumps."""
    rows, expm1_eps = np.array(rows), np.array([0.0, 0.1, 0.2, 0.5, 1.0])
    least = rows.min(axis=0)
    shared = least / least.sum()
    types = [np.array([rows[0], rows[1], shared, other]) for other in rows]
    host = np.array([rows[0], rows[1], shared, shared])
    as_type = typed_profile([*types, host], n, expm1_eps, mass_error=1e-14)
    as_uncovered_user = typed_profile(types, n, expm1_eps, mass_error=1e-14, uncovered_user=host)
    assert np.all(as_uncovered_user <= 1.04 * as_type)
    best = np.zeros(expm1_eps.size)
    for zeros, ones in ((n - 1, 0), (0, 0), (0, n - 1), (0, n - 6), (n // 2, n // 2 - 1), (n // 3, n // 3)):
        others = [rows[0]] * zeros + [rows[1]] * ones + [rows[2]] * (n - 1 - zeros - ones)
        ahead, behind = (counts_law([*others, row]) for row in rows[:2])
        truth = np.array([np.maximum(ahead - (1.0 + g) * behind, 0.0).sum() for g in expm1_eps])
        assert np.all(truth <= as_uncovered_user)
        best = np.maximum(best, truth)
    assert np.all(as_uncovered_user[:3] <= worse * best[:3])
