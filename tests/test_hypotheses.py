"""Hypotheses of the theorems: what happens where one is given up, and the safe form (docs/people.md).

Dropouts of their own, and caps on rounds, are enumerated in the table of truths.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from pld_shuffle import (
    Accountant,
    CountedBits,
    Epoch,
    PoissonSampled,
    Shuffled,
    ShuffledLDP,
    ShuffledRandomizer,
    StickyCohort,
    Subsampled,
)
from pld_shuffle.mechanisms import Mechanism
from pld_shuffle.randomizers import BinaryRandomizedResponse, SubsetSelection


@pytest.mark.parametrize(("n", "limit"), [(10, 0.3), (40, 0.5), (200, 0.1)])
def test_lower_ends_with_a_dropout_limit_are_attained(n: int, limit: float) -> None:
    """Binary, all others alike, none hidden: the number of ones, given how many came; the target always does."""
    found = Accountant().compose(Subsampled(Shuffled(BinaryRandomizedResponse(1.0), n), rate=1.0, dropout_limit=limit))
    one, zero = math.e / (1.0 + math.e), 1.0 / (1.0 + math.e)
    for eps in (0.05, 0.2):
        exact = []
        for order in ((one, zero), (zero, one)):
            total = 0.0
            for came in range(n):
                ones = np.arange(came + 2)
                views = [
                    share * binom.pmf(ones - 1, came, zero) + (1.0 - share) * binom.pmf(ones, came, zero)
                    for share in order
                ]
                gain = np.maximum(views[0] - math.exp(eps) * views[1], 0.0).sum()
                total += float(binom.pmf(came, n - 1, 1.0 - limit) * gain)
            exact.append(total)
        bounds = found.delta_bounds(eps)
        assert bounds.lower * (1.0 - 1e-9) <= max(exact) <= bounds.upper * (1.0 + 1e-9)
        assert bounds.lower >= 0.99 * max(exact)


@pytest.mark.parametrize("analysis", ["tightest", "stronger-clones"])
def test_who_may_not_drop_out_hides_as_fewer_users(analysis: str) -> None:
    """The mean over who comes of a mechanism among these: never below that of the mean number of users."""
    bound = Accountant().compose(Subsampled(ShuffledLDP(1.0, 1_000, analysis=analysis), rate=1.0, dropout_limit=0.3))
    equal = Accountant().compose(ShuffledLDP(1.0, 701, analysis=analysis))
    found, known = (which.epsilon_bounds(1e-6) for which in (bound, equal))
    assert known.lower <= found.upper <= 1.004 * known.upper
    assert found.lower >= 0.995 * known.lower


@pytest.mark.parametrize(
    "mechanism",
    [
        Shuffled(SubsetSelection(k=4, size=2, eps0=1.0), 500),
        ShuffledRandomizer(500, tv=0.3, p=4.0, q=5.0),
        CountedBits(500, eps0=1.0),
    ],
    ids=repr,
)
def test_a_dropout_limit_is_between_no_dropout_and_few_users(mechanism: Mechanism) -> None:
    limited = Subsampled(mechanism, population=5_000, dropout_limit=0.4)
    sure = Subsampled(mechanism, population=5_000)
    found, least = (Accountant().compose(which).epsilon_bounds(1e-6) for which in (limited, sure))
    assert least.lower < found.upper and found.lower <= found.upper
    assert found.upper < Accountant().compose(mechanism).epsilon_bounds(1e-6).upper


@pytest.mark.parametrize("hidden", [{"population": 10_000}, {"rate": 1.0}])
@pytest.mark.parametrize("shares", [(0.5, 0.1), (0.6, 0.4)])
def test_bits_with_a_dropout_limit_are_two_reports(shares: tuple[float, float], hidden: dict[str, float]) -> None:
    """The swap theorem's types of two reports; the coin labels alone are up to 1.35 times the attack."""
    bits = CountedBits(1_000, one_if_one=shares[0], one_if_zero=shares[1])
    found = Accountant().compose(Subsampled(bits, dropout_limit=0.2, **hidden), 4).epsilon_bounds(1e-6)
    assert found.lower <= found.upper <= 1.001 * found.lower


def test_a_dropout_limit_is_said_and_comes_back() -> None:
    mechanism = Subsampled(ShuffledLDP(1.0, 40), population=400, dropout_limit=0.5)
    assert "at most 0.5" in mechanism.assumptions()["sampling"]
    assert "the target's is any" in mechanism.assumptions()["sampling"]
    assert Subsampled(**mechanism.arguments()) == mechanism
    with pytest.raises(ValueError, match=r"give one of dropout and dropout_limit"):
        Subsampled(ShuffledLDP(1.0, 40), rate=0.1, dropout=0.1, dropout_limit=0.1)
    with pytest.raises(ValueError, match=r"dropout_limit must be in \[0, 1\)"):
        Subsampled(ShuffledLDP(1.0, 40), rate=0.1, dropout_limit=1.0)
    with pytest.raises(TypeError, match=r"one bit each"):
        Subsampled(CountedBits(40, eps0=1.0, bits=2), rate=0.1, dropout_limit=0.1)


# --- one round of a sticky cohort ----------------------------------------------------------------


def test_one_round_of_what_cannot_be_drawn_anew_is_amplified() -> None:
    for inner in (Epoch(2.0, 50), PoissonSampled(ShuffledLDP(2.0, 100), rate=0.3)):
        once = Accountant().compose(StickyCohort(inner, 1, rate=0.1)).epsilon_bounds(1e-6)
        known = Accountant().compose(inner).epsilon_bounds(1e-6)
        assert 0.0 < once.upper < known.upper
