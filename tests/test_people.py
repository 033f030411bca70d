"""How people took part: sticky cohorts, epochs, groups, budgets of their own. Enumerated: test_truths.py."""

from __future__ import annotations

import math
from fractions import Fraction as F

import numpy as np
import oracles as o
import pytest

from pld_shuffle import (
    Accountant,
    DrawnApart,
    Epoch,
    Gaussian,
    MixedRR,
    PoissonGaussian,
    PoissonSampled,
    Shuffled,
    ShuffledLDP,
    ShuffledRR,
    StickyCohort,
    Subsampled,
    ZeroOut,
)
from pld_shuffle.composition.composition import Composition
from pld_shuffle.pairs.coins import CoinMixture
from pld_shuffle.randomizers import BinaryRandomizedResponse

# --- groups -----------------------------------------------------------------------------------


def test_epsilons_of_groups() -> None:
    """They invert the deltas; a Gaussian's are a third bound: noise of g times the sensitivity."""
    spent = Accountant().compose(Gaussian(sigma=20.0), 4)
    triple = Accountant().compose(Gaussian(sigma=20.0, sensitivity=3.0), 4)
    found = spent.epsilon_bounds(np.array([1e-3, 1e-6]), group=3)
    one = spent.epsilon_bounds(np.array([1e-3, 1e-6]))
    assert np.all(found.lower <= one.upper) and np.all(one.lower <= found.upper)
    for delta, eps in zip((1e-3, 1e-6), found.upper, strict=True):
        assert spent.get_delta(eps * (1 + 1e-12), group=3) <= delta * 1.002
        assert spent.get_delta(eps * 0.99, group=3) > delta
        assert triple.epsilon_bounds(delta).lower <= eps
    pure = Accountant().compose(ShuffledLDP(0.5, 10), 2)
    assert pure.get_epsilon(0.0, group=2) == pytest.approx(2.0, rel=1e-12)
    assert pure.get_epsilon(1.0, group=2) == 0.0 and pure.get_delta(math.inf, group=2) == 0.0
    assert 0.0 < pure.get_epsilon(1e-12, group=2) <= 2.0 * (1.0 + 1e-12)
    assert pure.get_delta(0.0, group=2) == pytest.approx(2 * pure.get_delta(0.0), rel=1e-12)
    revealing = Accountant().compose(ShuffledRR(k=4, n=10, gamma=0.25))  # infinite losses
    assert revealing.get_epsilon(1e-9, group=2) == math.inf == revealing.get_epsilon(0.0, group=2)


# --- what hidden cohorts must not be taken for ---------------------------------------------------


@pytest.mark.parametrize("hidden", [
    Subsampled(ShuffledLDP(2.0, 2), population=100),
    Subsampled(ShuffledLDP(2.0, 20), rate=1.0, dropout=0.5),
    PoissonSampled(ShuffledLDP(2.0, 20), rate=0.5),
    StickyCohort(ShuffledLDP(2.0, 20), 2, rate=0.5),
    PoissonGaussian(sigma=1.0, rate=0.5),
    ZeroOut(PoissonSampled(ShuffledLDP(2.0, 20), rate=0.5)),
])  # fmt: skip
def test_reports_drawn_together_are_no_group(hidden) -> None:
    spent = Accountant().compose(ShuffledLDP(2.0, 20) if not isinstance(hidden, ZeroOut) else hidden)
    spent.compose(hidden)
    for ask in (spent.get_delta, spent.delta_bounds, spent.get_epsilon, spent.epsilon_bounds):
        with pytest.raises(ValueError, match=r"group must be DrawnApart\(2\)"):
            ask(0.01, group=2)
    assert spent.get_delta(0.3, group=1) <= spent.get_delta(0.3, group=DrawnApart(2))


def test_two_reports_of_one_user_drawn_together() -> None:
    """One of 100 users with two reports each at eps0 = 2: the answer for reports drawn apart is below the truth."""
    keep = math.exp(2.0) / (1.0 + math.exp(2.0))
    first = [keep**2, 2.0 * keep * (1.0 - keep), (1.0 - keep) ** 2]
    rate = 0.01
    truth = sum(
        max(0.0, rate * p + (1.0 - rate) * q - math.exp(0.3) * q) for p, q in zip(first, first[::-1], strict=True)
    )
    spent = Accountant().compose(Subsampled(ShuffledLDP(2.0, 2), population=200))
    assert spent.get_delta(0.3, group=DrawnApart(2)) < truth == pytest.approx(2.6e-3, rel=0.05)


def test_panels_that_share_out_the_users_are_not_independent() -> None:
    """Two users, one in each of two panels, 60 rounds each. A bound: what a panel tells who knows it."""
    keep, rounds = math.e / (1.0 + math.e), 60
    one = [math.comb(rounds, k) * keep**k * (1.0 - keep) ** (rounds - k) for k in range(rounds + 1)]
    both = np.outer(one, one), np.outer(one[::-1], one), np.outer(one, one[::-1])
    # The other holds 0: the target's panel is the one that says 1, whichever it is, or there is none.
    truth = float(np.sum(np.maximum(0.0, 0.5 * (both[1] + both[2]) - math.e * both[0])))
    batch = ShuffledLDP(1.0, 1)
    wrong = Accountant().compose(StickyCohort(batch, rounds, rate=0.5), 2).get_delta(1.0)
    known = Accountant().compose(batch, rounds).get_delta(1.0)
    assert wrong < truth == pytest.approx(0.9997, abs=2e-4) and truth <= known
    said = StickyCohort(batch, rounds, rate=0.5).assumptions()["sampling"]
    assert "independent of the cohorts of other entries" in said and "concurrent" in said


def test_a_target_that_never_drops_out_gives_away_more() -> None:
    """40 of 400, eps0 = 1, all others holding one value and dropping out with 1/2."""
    n, rate, low = 40, 0.1, 1.0 / (1.0 + math.e)
    others, own = [0.5 * (1.0 - low), 0.5 * low, 0.5], ([low, 1.0 - low, 0.0], [1.0 - low, low, 0.0])
    away = o.counts_law([others] * n)
    p, q = (rate * o.counts_law([law, *[others] * (n - 1)]) + (1.0 - rate) * away for law in own)
    delta = float(np.sum(np.maximum(0.0, p - math.exp(0.06) * q)))
    round_ = Subsampled(ShuffledLDP(1.0, n), population=400, dropout=0.5)
    assert Accountant().compose(round_).get_delta(0.06) < delta == pytest.approx(5.8e-5, rel=0.05)
    limited = Accountant().compose(Subsampled(ShuffledLDP(1.0, n), population=400, dropout_limit=0.5))
    found = limited.delta_bounds(0.06)
    assert delta * (1.0 - 1e-9) <= found.upper < 2e-4 and found.lower > 0.99 * delta
    assert "the target included" in round_.assumptions()["sampling"]
    assert "not on who took part" in round_.assumptions()["sampling"]
    everybody = PoissonSampled(ShuffledLDP(1.0, n), rate=0.5).assumptions()["sampling"]
    assert "the target included" in everybody and "not on who took part" in everybody


# --- zero-out ---------------------------------------------------------------------------------


def test_zero_out_ledgers() -> None:
    """One relation a ledger; each mechanism has the pair that is proved, or is refused by name."""
    sampled = ZeroOut(PoissonGaussian(sigma=2.0, rate=0.1))
    assert sampled.attack_pair is sampled.pair.pairs[0]
    acc = Accountant().compose(ZeroOut(Gaussian(sigma=2.0)))
    assert acc.get_epsilon(1e-6) == Accountant().compose(Gaussian(sigma=2.0)).get_epsilon(1e-6)
    acc.compose(ZeroOut(Subsampled(ShuffledLDP(1.0, 100), population=1000)), 3)
    acc.compose(ZeroOut(StickyCohort(ShuffledLDP(1.0, 100, "clones"), 2, rate=0.5)))
    assert "null report" in ZeroOut(ShuffledLDP(1.0, 100)).assumptions()["neighbours"]


# --- users with randomizers of their own ------------------------------------------------------


def test_classes_of_budgets() -> None:
    """How others are counted; what rounds of several classes spend is in test_truths.py and test_widths.py."""
    both = MixedRR.of_classes(4, {1.0: 500, 3.0: 500})
    assert MixedRR(3, 1.0, ()).users == 1 and both[1.0].others == ((1.0, 499), (3.0, 500))
    assert both[3.0].others == ((1.0, 500), (3.0, 499)) and both[3.0].eps0 == 3.0


# --- dropouts of hidden cohorts; of their labels: test_honesty.py -----------------------------------


@pytest.mark.parametrize("scales", [1.0, 3.0, 6.0])
def test_who_takes_absent_reports_for_neutral_ones_loses_hardly_anything(scales):
    """All others make a third report, mostly; a hidden cohort of 14 of 700, so that absence tells next to nothing."""
    n, users, absence, odds = 14, 700, F(1, 10), F(20)
    sampled = Subsampled(ShuffledLDP(math.log(odds), n), population=users, dropout=float(absence))
    merged = sampled.attack_pair.pairs[0]
    assert isinstance(merged, CoinMixture)
    eps = scales * merged.scale
    found = Composition([(merged, 1)], 1e-6).deltas(eps)
    first, second, kept = ([mass / (odds + 2) for mass in law] for law in ((odds, 1, 1), (1, odds, 1), (1, 1, odds)))
    laws = [[(1 - absence) * mass for mass in law] + [absence] for law in (first, second, kept)]
    rate = F(n, users)
    slots = [[rate * a + (1 - rate) * w for a, w in zip(law, laws[2], strict=True)] for law in laws]
    values = [(a - F(math.exp(eps)) * b) / w for a, b, w in zip(*slots, strict=True)]
    truth = float(o.mean_part(values[:3], slots[2][:3], n, values[3]))
    assert (1.0 - 1e-4) * truth <= found.lower <= truth * (1.0 + 1e-12)


# --- the public face -------------------------------------------------------------------------


def test_everybody_present_is_the_mechanism_and_a_dropout_limit_is_said():
    base = ShuffledLDP(2.0, 100)
    assert PoissonSampled(base, 1.0).pair is base.pair
    assert Subsampled(base, rate=1.0, dropout=0.0).pair is base.pair
    assert PoissonSampled(base, 0.5).pair.max_loss.upper == 2.0
    mechanism = Subsampled(ShuffledLDP(1.0, 40), population=400, dropout_limit=0.5)
    assert "at most 0.5" in mechanism.assumptions()["sampling"]
    assert "the target's is any" in mechanism.assumptions()["sampling"]
    assert "exactly once" in Epoch(4.0, 100).assumptions()["sampling"]
    assert Subsampled(**mechanism.arguments()) == mechanism


# --- Hypotheses of the theorems: what happens where one is given up, and the safe form (docs/people.md)


@pytest.mark.parametrize(("n", "limit"), [(10, 0.3), (40, 0.5), (200, 0.1)])
def test_lower_ends_with_a_dropout_limit_are_attained(n: int, limit: float) -> None:
    """Binary, all others alike, none hidden: the number of ones, given how many came; the target always does."""
    found = Accountant().compose(Subsampled(Shuffled(BinaryRandomizedResponse(1.0), n), rate=1.0, dropout_limit=limit))
    zero = 1.0 / (1.0 + math.e)
    others = [(1.0 - limit) * zero, (1.0 - limit) * (1.0 - zero), limit]
    views = [o.counts_law([[one, 1.0 - one, 0.0], *[others] * (n - 1)]) for one in (1.0 - zero, zero)]
    for eps in (0.05, 0.2):
        exact = max(np.maximum(p - math.exp(eps) * q, 0.0).sum() for p, q in (views, views[::-1]))
        bounds = found.delta_bounds(eps)
        assert bounds.lower * (1.0 - 1e-9) <= exact <= bounds.upper * (1.0 + 1e-9)
        assert bounds.lower >= 0.99 * exact


@pytest.mark.parametrize("analysis", ["tightest", "stronger-clones"])
def test_who_may_not_drop_out_hides_as_fewer_users(analysis: str) -> None:
    """The mean over who comes of a mechanism among these: never below that of the mean number of users."""
    bound = Accountant().compose(Subsampled(ShuffledLDP(1.0, 1_000, analysis=analysis), rate=1.0, dropout_limit=0.3))
    equal = Accountant().compose(ShuffledLDP(1.0, 701, analysis=analysis))
    found, known = (which.epsilon_bounds(1e-6) for which in (bound, equal))
    assert known.lower <= found.upper <= 1.004 * known.upper
    assert found.lower >= 0.995 * known.lower


# --- one round of a sticky cohort ----------------------------------------------------------------


def test_one_round_of_what_cannot_be_drawn_anew_is_amplified() -> None:
    for inner in (Epoch(2.0, 50), PoissonSampled(ShuffledLDP(2.0, 100), rate=0.3)):
        once = Accountant().compose(StickyCohort(inner, 1, rate=0.1)).epsilon_bounds(1e-6)
        known = Accountant().compose(inner).epsilon_bounds(1e-6)
        assert 0.0 < once.upper < known.upper
