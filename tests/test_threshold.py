"""Sample and threshold against its protocol, enumerated in rationals: every count, both orders, one bin and two."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import pytest
from test_sums import GROWTHS, coins, divergence, negative_binomial, plus

from pld_shuffle import Accountant, Threshold
from pld_shuffle.shares import Binomial, DiscreteLaplace, NegativeBinomial, Poisson, Share

Law = Mapping[int, Fraction]
RATES = [Fraction(1, 8), Fraction(1, 2), Fraction(7, 8)]


def published(count: int, rate: Fraction, least: int, dummies: Law, only_bins: bool) -> Law:
    """What is seen of a bin of so many users: its count, 1 for "it is there", or -1."""
    found: dict[int, Fraction] = {}
    for number, mass in plus(coins(count, rate), dummies).items():
        seen = -1 if number < least else 1 if only_bins else number
        found[seen] = found.get(seen, Fraction(0)) + mass
    return found


def one_bin(rate: Fraction, least: int, dummies: Law, expm1_eps: Fraction, most: int, only_bins: bool) -> Fraction:
    """The largest divergence over all counts up to `most`, in either order."""
    found = Fraction(0)
    for count in range(most):
        with_user = published(count + 1, rate, least, dummies, only_bins)
        without = published(count, rate, least, dummies, only_bins)
        found = max(found, divergence(with_user, without, expm1_eps), divergence(without, with_user, expm1_eps))
    return found


def enclosed(mechanism: Threshold, truths: Mapping[Fraction, Fraction], exact: bool = True) -> None:
    accountant = Accountant(1e-4).compose(mechanism)
    for expm1_eps, truth in truths.items():
        bounds = accountant.delta_bounds(math.log1p(float(expm1_eps)))
        assert bounds.lower <= float(truth) * (1 + 1e-9) + 1e-200, (mechanism, expm1_eps)
        assert bounds.upper >= float(truth) * (1 - 1e-9), (mechanism, expm1_eps)
        assert not exact or bounds.upper <= float(truth) * (1 + 1e-4) + 1e-12, (mechanism, expm1_eps)


def most_users(rate: Fraction, least: int) -> int:
    """More of them than the worst count at these growths."""
    return math.ceil(3 * least / rate) + 4


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("least", [1, 2, 5])
@pytest.mark.parametrize("released", ["counts", "bins"])
def test_one_bin_enumerated(rate: Fraction, least: int, released: str) -> None:
    nothing = {0: Fraction(1)}
    truths = {
        g: one_bin(rate, least, nothing, g, most_users(rate, least), released == "bins") for g in GROWTHS
    }  # fmt: skip
    mechanism = Threshold(float(rate), least, released=released, neighbours="add-or-remove-one")
    enclosed(mechanism, truths)


@pytest.mark.parametrize("rate", [*RATES[1:], Fraction(1)])
@pytest.mark.parametrize("least", [1, 3, 6])
@pytest.mark.parametrize("released", ["counts", "bins"])
@pytest.mark.parametrize("p", [Fraction(1, 2), Fraction(3, 4)])
def test_one_bin_with_dummies_enumerated(rate: Fraction, least: int, released: str, p: Fraction) -> None:  # fmt: skip
    """Three senders of one coin each: fewer dummies than the threshold, as many, and more."""
    dummies = coins(3, p)
    truths = {
        g: one_bin(rate, least, dummies, g, most_users(rate, least), released == "bins") for g in GROWTHS
    }  # fmt: skip
    mechanism = Threshold(float(rate), least, Binomial(1, float(p)), 3, released=released, neighbours="zero-out")
    enclosed(mechanism, truths)


def test_dummies_without_end() -> None:
    """Geometric dummies, whose law is cut off here far out."""
    law = {k: Fraction(float(a)) for k, a in negative_binomial(1.0, 0.5).items() if k < 60}
    rate = Fraction(1, 2)
    truths = {g: one_bin(rate, 4, law, g, 30, False) for g in GROWTHS}
    mechanism = Threshold(0.5, 4, NegativeBinomial(1.0, 0.5), neighbours="add-or-remove-one")
    accountant = Accountant(1e-4).compose(mechanism)
    for expm1_eps, truth in truths.items():
        bounds = accountant.delta_bounds(math.log1p(float(expm1_eps)))
        assert bounds.lower - 1e-12 <= float(truth) <= bounds.upper + 1e-12
        assert bounds.upper <= float(truth) * (1 + 1e-4) + 1e-12


@pytest.mark.parametrize("dummies", [None, (Binomial(2), coins(2, Fraction(1, 2)))])
@pytest.mark.parametrize("least", [1, 3])
def test_a_user_changes_bins(dummies: tuple[Share, Law] | None, least: int) -> None:
    """Two bins, all pairs of counts; each of a user's two coins is its own, as its value is in one bin only."""
    rate = Fraction(1, 2)
    share, law = (None, {0: Fraction(1)}) if dummies is None else dummies
    views = [published(c, rate, least, law, False) for c in range(14)]
    truths = {}
    for expm1_eps in GROWTHS[:5]:
        truth = Fraction(0)
        for a, b in itertools.product(range(13), repeat=2):
            p = {(i, j): x * y for i, x in views[a + 1].items() for j, y in views[b].items()}
            q = {(i, j): x * y for i, x in views[a].items() for j, y in views[b + 1].items()}
            truth = max(truth, divergence(p, q, expm1_eps))
        truths[expm1_eps] = truth
    enclosed(Threshold(0.5, least, share), truths, exact=False)


def test_two_rounds_are_covered() -> None:
    """Whatever the counts are in either round, which may depend on what was seen before."""
    rate, least, expm1_eps = Fraction(1, 2), 2, Fraction(1, 2)
    views = [published(c, rate, least, {0: Fraction(1)}, False) for c in range(9)]
    pairs = [(views[c + 1], views[c]) for c in range(8)] + [(views[c], views[c + 1]) for c in range(8)]  # fmt: skip

    def after(p: Any, q: Any) -> Fraction:
        """The best that a second round adds to masses p and q."""
        return max(
            sum((max(p * a.get(k, 0) - (1 + expm1_eps) * q * b.get(k, 0), Fraction(0)) for k in {**a, **b}),
            Fraction(0)) for a, b in pairs
        )  # fmt: skip

    truth = max(
        sum((after(a.get(k, Fraction(0)), b.get(k, Fraction(0))) for k in {**a, **b}), Fraction(0)) for a, b in pairs
    )
    mechanism = Threshold(0.5, least, neighbours="add-or-remove-one")
    found = Accountant().compose(mechanism, 2).delta_bounds(math.log1p(float(expm1_eps)))
    assert found.lower <= float(truth) <= found.upper


def test_nebula() -> None:
    """Brave claims epsilon = 1 at delta = 1e-8 for one bin; two bins change if a user's value does."""
    one = Threshold(0.105, 20, neighbours="add-or-remove-one")
    found = Accountant(1e-4).compose(one).epsilon_bounds(1e-8)
    assert 0.3180 < found.lower <= found.upper < 0.3181
    assert 0.318 < Accountant().compose(Threshold(0.105, 20)).get_epsilon(1e-8) < 0.45


def test_dummies_add_privacy_and_a_larger_threshold_does() -> None:
    def spent(**more: Any) -> float:
        return Accountant().compose(Threshold(0.2, **{"least": 10} | more)).get_epsilon(1e-6)

    assert spent(dummies=Poisson(20.0)) < spent() and spent(least=20) < spent()
    assert spent(dummies=Poisson(20.0), released="bins") <= spent(dummies=Poisson(20.0))


@pytest.mark.parametrize(("make", "error", "message"), [
    (lambda: Threshold(1.5, 20), ValueError, r"rate must be in \(0, 1\], got 1\.5"),
    (lambda: Threshold(0.0, 20), ValueError, r"rate must be in \(0, 1\], got 0\.0"),
    (lambda: Threshold(1.0, 20), ValueError, r"rate must be below 1 without dummies, got 1\.0"),
    (lambda: Threshold(0.5, 0), ValueError, "least must be at least 1, got 0"),
    (lambda: Threshold(0.5, 2.5), TypeError, r"least must be an integer, got 2\.5"),
    (lambda: Threshold(0.5, 2, 3), TypeError, "dummies must be a Share.*got 3"),
    (lambda: Threshold(0.5, 2, DiscreteLaplace(2.0)), TypeError, "never negative, got DiscreteLaplace"),
    (lambda: Threshold(0.5, 2, NegativeBinomial(0.1, 0.5), 3), ValueError, "dummies must have shapes that add up"),
    (lambda: Threshold(0.5, 2, released="some"), ValueError, "released must be one of 'counts', 'bins', got 'some'"),
    (lambda: Threshold(0.5, 2, neighbours="some"), ValueError, "neighbours must be one of.*'some'"),
])  # fmt: skip
def test_bad_input_is_named(make: Callable[[], object], error: type[Exception], message: str) -> None:  # fmt: skip
    with pytest.raises(error, match=message):
        make()
