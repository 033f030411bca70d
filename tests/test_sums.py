"""Sums of integers with shares of noise, and thresholds: closed laws, numbers of others, and a peer.

The laws of shares are written down here once more, in 50 digits, and are convolved term by term. Protocols of few
clients are enumerated in test_truths.py.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache
from itertools import accumulate, product
from typing import Any

import mpmath
import numpy as np
import oracles as o
import pytest
from scipy.stats import binom
from scipy.stats import poisson as poisson_numbers

from pld_shuffle import Accountant, Gaussian, Shuffled, Summed, SummedNoise, Threshold, randomizers, shares, solve
from pld_shuffle.numerics import integer_laws
from pld_shuffle.pairs import strategy
from pld_shuffle.pairs.thresholds import Bin
from pld_shuffle.randomizers import KRandomizedResponse
from pld_shuffle.shares import Binomial, DiscreteGaussian, DiscreteLaplace, NegativeBinomial, Poisson, Share, Skellam

Law = Mapping[int, Any]
LOSSES = [math.log1p(k / 16) for k in (0, 1, 3, 8, 17, 45)]


def normalised(weight: Callable[[int], Any], reach: int, low: int | None = None) -> Law:
    start = -reach if low is None else low
    weights = {k: weight(k) for k in range(start, reach + 1)}
    total = sum(weights.values())
    return {k: value / total for k, value in weights.items()}


# --- laws of sums ---------------------------------------------------------------------------------


def gaussian(sigma: float) -> Law:
    reach = math.ceil(13 * sigma) + 3
    return normalised(lambda k: mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * mpmath.mpf(sigma) ** 2)), reach)


def laplace(scale: float) -> Law:
    return normalised(lambda k: mpmath.exp(-abs(k) / mpmath.mpf(scale)), math.ceil(70 * scale))


def negative_binomial(shape: float, p: float) -> Law:
    r, q = mpmath.mpf(shape), 1 - mpmath.mpf(p)
    weight = lambda k: mpmath.rf(r, k) / mpmath.factorial(k) * q**k  # noqa: E731
    return normalised(weight, math.ceil(75 / p), 0)


def skellam(variance: float) -> Law:
    v = mpmath.mpf(variance)
    return normalised(lambda k: mpmath.besseli(abs(k), v), math.ceil(12 * math.sqrt(variance)) + 40)


def poisson(mean: float) -> Law:
    weight = lambda k: mpmath.mpf(mean) ** k / mpmath.factorial(k)  # noqa: E731
    return normalised(weight, math.ceil(mean + 12 * math.sqrt(mean)) + 40, 0)


SUMS: dict[str, tuple[Share, int, Callable[[], Law]]] = {
    "discrete Gaussian, one": (DiscreteGaussian(2.0), 1, lambda: gaussian(2.0)),
    "tiny discrete Gaussians": (DiscreteGaussian(0.3), 7, lambda: o.sum_law(*[gaussian(0.3)] * 7)),
    "small discrete Gaussians": (DiscreteGaussian(0.6), 12, lambda: o.sum_law(*[gaussian(0.6)] * 12)),
    "discrete Gaussians": (DiscreteGaussian(1.0), 5, lambda: o.sum_law(*[gaussian(1.0)] * 5)),
    "large discrete Gaussians": (DiscreteGaussian(3.0), 3, lambda: o.sum_law(*[gaussian(3.0)] * 3)),
    "discrete Laplace": (DiscreteLaplace(1.5), 1, lambda: laplace(1.5)),
    "two discrete Laplace": (DiscreteLaplace(1.0), 2, lambda: o.sum_law(*[laplace(1.0)] * 2)),
    "Skellam": (Skellam(0.75), 4, lambda: skellam(3.0)),
    "Poisson": (Poisson(0.5), 6, lambda: poisson(3.0)),
    "geometric": (NegativeBinomial(0.25, 0.5), 4, lambda: negative_binomial(1.0, 0.5)),
    "below shape 1": (NegativeBinomial(0.25, 0.5), 3, lambda: negative_binomial(0.75, 0.5)),
    "Polya": (NegativeBinomial(0.25, 0.5, two_sided=True), 3,
              lambda: o.sum_law(law := negative_binomial(0.75, 0.5), {-k: a for k, a in law.items()})),
}  # fmt: skip


@pytest.mark.parametrize("name", SUMS)
def test_the_law_of_the_sum_is_known_to_what_it_says(name: str) -> None:
    share, count, law = SUMS[name]
    found, truth = share.total(count), law()
    values = np.arange(found.low, found.low + found.masses.size)
    for k, mass in zip(values, found.masses, strict=True):
        if int(k) in truth and truth[int(k)] > mpmath.mpf("1e-22"):  # the truth here is cut off, too
            assert abs(mpmath.mpf(mass) / truth[int(k)] - 1) <= found.error + 1e-25
    assert found.error < 1e-10 and found.below + found.above < 1e-280
    for k in range(found.low + 1, found.low + found.masses.size):
        if k in truth and k - 1 in truth and min(truth[k], truth[k - 1]) > mpmath.mpf("1e-22"):
            ratio = truth[k - 1] / truth[k]
            got = mpmath.mpf(found.masses[k - 1 - found.low]) / found.masses[k - found.low]
            assert abs(got / ratio - 1) <= min(found.step, 2 * found.error) + 1e-25
            assert abs(mpmath.log(ratio)) <= found.steepest


@pytest.mark.parametrize("variance", [3e5, 1e8])
def test_much_skellam_noise(variance: float) -> None:
    """Ratios once came from too near an end where nothing is known: 100 rounds were [0, .55], now [.0592, .0592]."""
    from scipy.special import ive

    found = Skellam(variance).total(1)
    assert found.error < 1e-6 and found.step < 1e-10
    for k in (0, 1, round(variance**0.5), round(20 * variance**0.5)):
        assert found.masses[k - found.low] == pytest.approx(ive(k, variance), rel=found.error + 1e-11)


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("sensitivity", [1, 2])
def test_the_profile_of_the_sum(name: str, sensitivity: int) -> None:
    share, count, law = SUMS[name]
    truth = law()
    if name in ("below shape 1", "Polya") and sensitivity > 1:
        with pytest.raises(ValueError, match="sensitivity must be 1 where the total noise is not"):
            SummedNoise(share, count, sensitivity)
        return
    mechanism = SummedNoise(share, count + 3, sensitivity, dropouts=2, colluding=1)  # the law is that of the others
    pairs, accountant = o.moved_sums(truth, sensitivity), Accountant(1e-5).compose(mechanism)
    for eps in LOSSES:
        exact = float(max(o.hockey_stick(pair, mpmath.exp(eps)) for pair in pairs))
        if exact > 1e-9:  # the truth here is cut off
            bounds = accountant.delta_bounds(eps)
            assert bounds.lower * (1 - 1e-9) <= exact <= bounds.upper * (1 + 1e-9)
            assert bounds.upper <= exact * (1 + 1e-4)
            assert bounds.lower >= exact * (1 - 1e-4)


@pytest.mark.parametrize("share", [Binomial(1), Skellam(1.0), DiscreteGaussian(1.0), DiscreteLaplace(1.0),
                                   Poisson(1.0), NegativeBinomial(1.0, 0.3)])  # fmt: skip
def test_laws_of_many_shares_meet_each_other(share: Share) -> None:
    """Twice as many shares are the convolution of the sum with itself, in every mass."""
    half, whole = share.total(200), share.total(400)
    both = np.convolve(half.masses, half.masses)
    kept = both > 1e-200
    place = 2 * half.low + np.flatnonzero(kept) - whole.low
    inside = (place >= 0) & (place < whole.masses.size)
    error = 2 * half.error + whole.error + 1e-12
    assert np.all(np.abs(whole.masses[place[inside]] / both[kept][inside] - 1.0) <= error)
    assert abs(math.fsum(whole.masses) - 1.0) <= whole.error


def test_sums_of_discrete_gaussians_are_no_discrete_gaussian() -> None:
    """Both ways of summing agree where both can be asked, and small ones differ from one of their variance."""
    direct, _ = integer_laws._gaussian_period(2.2, 40, 20)
    period = integer_laws.gaussian_law(2.2, 40)
    here = period.masses[-period.low : -period.low + 21]
    assert np.all(np.abs(direct / here - 1.0) <= 1e-11)
    small = DiscreteGaussian(0.4).total(9).masses
    one = integer_laws.gaussian_law(1.2, 1).masses
    assert abs(small.max() / one.max() - 1.0) > 0.05


# --- a peer ----------------------------------------------------------------------------


def test_a_peer_agrees_about_one_noise() -> None:
    """dp_accounting's discrete Laplace and Gaussian noise, within its grid."""
    peer = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    cases = [
        (DiscreteLaplace(8.0), peer.from_discrete_laplace_mechanism(
            1 / 8.0, sensitivity=2, value_discretization_interval=1e-3)),
        (DiscreteGaussian(12.0), peer.from_discrete_gaussian_mechanism(
            12.0, sensitivity=2, value_discretization_interval=1e-3)),
    ]  # fmt: skip
    for share, law in cases:
        accountant = Accountant().compose(SummedNoise(share, 1, sensitivity=2), 5)
        for delta in (1e-3, 1e-6):
            assert accountant.get_epsilon(delta) == pytest.approx(
                law.self_compose(5).get_epsilon_for_delta(delta), abs=6e-3
            )


@pytest.mark.parametrize("eps", [0.1, 0.35, 0.6])
def test_two_rounds_of_thousands_of_losses(eps: float) -> None:
    """Poisson noise, whose loss is log(k/mean): all first counts, and the better order for the second one, next to both
    ends; whoever keeps to one order does worse."""
    mean, k = 1_000.0, np.arange(1.0, 2_600.0)
    mechanism = SummedNoise(Poisson(mean), 1)
    assert mechanism.law.masses.size > 2_000
    log = k * math.log(mean) - mean - np.array([math.lgamma(one + 1.0) for one in k])
    loss = np.log(k / mean)
    orders = [(np.exp(log + loss), loss), (np.exp(log), -loss)]
    second = [
        [np.maximum(0.0, -np.expm1(np.subtract.outer(eps - first, then))) @ p for p, then in orders]
        for _, first in orders
    ]
    kept = max(float(p @ found[i]) for i, ((p, _), found) in enumerate(zip(orders, second, strict=True)))
    truth = max(float(p @ np.maximum(*found)) for (p, _), found in zip(orders, second, strict=True))
    bounds = Accountant(5e-3).compose(mechanism, 2).delta_bounds(eps)
    assert truth * (1 - 5e-3) <= bounds.lower <= truth * (1 + 1e-8)
    assert truth * (1 - 1e-8) <= bounds.upper <= truth * (1 + 5e-3) and kept <= truth


@pytest.mark.parametrize("rounds, delta", [(7, 1e-6), (40, 1e-6), (40, 1e-50)])
def test_strategies_by_transforms_are_those_by_sums_of_positive_terms(rounds, delta, monkeypatch) -> None:
    """Both ends, of noise whose losses have a heavy tail; transforms only add what their rounding may be."""
    found = []
    for most in (0.0, math.inf):
        monkeypatch.setattr(strategy, "DIRECT_WORK", most)
        monkeypatch.setattr(strategy, "WORK", (1.0, 1.0))  # both on the coarsest lattice
        strategy._values.cache_clear(), strategy._attained.cache_clear()
        mechanism = SummedNoise(NegativeBinomial(20.0, 0.1), 1)
        found.append(Accountant(0.3).compose(mechanism, rounds).epsilon_bounds(delta))
    (low, high), (least, most) = found
    assert low == pytest.approx(least, rel=1e-6) and high == pytest.approx(most, rel=1e-6) and low <= high <= 1.02 * low


def test_three_rounds_of_a_heavy_tail_in_rationals() -> None:
    """Negative binomial noise: all counts up to 120, and the better order for every round."""
    shape, counts = 20, 120
    still = [Fraction(1, 2**shape)]
    for k in range(1, counts):
        still.append(still[-1] * (shape + k - 1) / (2 * k))
    moved = [Fraction(0), *still[:-1]]
    ratio = [p / q for p, q in zip(moved, still, strict=True)]  # rises
    above, below = (list(accumulate(masses, initial=Fraction(0))) for masses in (moved, still))

    def last(s: Fraction) -> Fraction:
        up, down = bisect(ratio, s), bisect(ratio, 1 / s)
        return max(above[-1] - above[up] - s * (below[-1] - below[up]), below[down] - s * above[down])

    def value(rounds: int, s: Fraction) -> Fraction:
        if rounds == 0:
            return last(s)
        first = sum(p * value(rounds - 1, s / r) for p, r in zip(moved[1:], ratio[1:], strict=True))
        second = still[0] + sum(q * value(rounds - 1, s * r) for q, r in zip(still[1:], ratio[1:], strict=True))
        return max(first, second)

    accountant = Accountant(1e-3).compose(SummedNoise(NegativeBinomial(float(shape), 0.5), 1), 3)
    for eps in (1.0, 2.0):
        truth, found = float(value(2, Fraction(math.exp(eps)))), accountant.delta_bounds(eps)
        assert truth * (1 - 1e-3) <= found.lower <= truth * (1 + 1e-12)
        assert truth * (1 - 1e-12) <= found.upper <= truth * (1 + 1e-3)


# --- doors ----------------------------------------------------------------------------------------


def test_eighty_coins_are_enough() -> None:
    """private-attribution sizes its noise by a bound that asks for 1,483 coins at epsilon = 1, delta = 1e-6."""
    plan = {"mechanism": "summed-noise", "n": 1, "share": "binomial"}
    found = solve("trials", plan, epsilon=1.0, delta=1e-6)
    assert found.value == 80 and found.tight
    one_each = plan | {"n": 100, "trials": 1}
    lost = solve("dropouts", one_each, epsilon=1.0, delta=1e-6)
    assert lost.value == 20 and lost.tight
    noise = plan | {"share": "discrete-gaussian", "n": 10}
    assert 0.1 <= solve("sigma", noise, epsilon=1.0, delta=1e-6).value < 2.0


def test_a_modulus_far_beyond_the_noise_changes_nothing() -> None:
    plain, far = (
        Accountant().compose(SummedNoise(Skellam(1.0), 50, 2, modulus=m)).epsilon_bounds(1e-6) for m in (None, 2**62)
    )
    assert far.upper == plain.upper and plain.lower * (1 - 1e-9) <= far.lower <= plain.upper


@pytest.mark.filterwarnings("ignore::pld_shuffle.AccuracyWarning")
@pytest.mark.parametrize("rounds", [1, 3])
def test_noise_that_hides_the_total_but_for_rounding_still_gives_something_away(rounds: int) -> None:
    """The parity of m coins of probability p has the bias (1 - 2p)^m: delta(0) of one round, about 1e-13 and 1e-45."""
    for trials, p in ((59, 0.2), (200, 0.2)):
        found = Accountant().compose(SummedNoise(Binomial(trials, p), clients=1, modulus=2), rounds).delta_bounds(0.0)
        assert found.lower <= rounds * (1.0 - 2.0 * p) ** trials
        assert 0.99 * (1.0 - 2.0 * p) ** trials <= found.upper <= 1e-10


def test_every_share_is_public() -> None:
    assert {type(share).__name__ for share, _, _ in SUMS.values()} < set(vars(shares))


# --- thresholds -----------------------------------------------------------------------------------


OTHERS, MOST = 24, 20  # counts of others, and of reports that are published: the cases hardly have more


def two_bins(rate: float, least: int, dummies: float, only_bins: bool) -> list[tuple[Any, Any]]:
    """Masses of what is seen of two bins, one with a user more and one with a user less, for all counts of others."""
    single, reports = [], np.arange(MOST)
    for count in range(OTHERS):
        laws = []
        for users in (count + 1, count):
            published = np.convolve(binom.pmf(reports, users, rate), poisson_numbers.pmf(reports, dummies))[:MOST]
            published[-1] += 1.0 - published.sum()
            seen = [published[least:].sum()] if only_bins else published[least:]
            laws.append(np.append(published[:least].sum(), seen))
        single.append(laws)
    return [
        (np.multiply.outer(one[0], other[1]).ravel(), np.multiply.outer(one[1], other[0]).ravel())
        for one, other in product(single, repeat=2)
    ]


@pytest.mark.filterwarnings("ignore::pld_shuffle.AccuracyWarning")
@pytest.mark.parametrize(("case", "eps", "rounds", "width"), [
    ((0.4, 3, 2.0, True), 0.2, 1, 1e-6),
    ((0.4, 3, 2.0, True), 0.2, 2, 2e-4),
    ((0.4, 3, 2.0, False), 0.7, 1, 2e-3),
    ((0.4, 3, 2.0, False), 0.7, 2, 2e-2),
    ((0.5, 2, 0.0, False), 0.2, 1, 4e-3),
    ((0.5, 2, 0.0, True), 0.7, 2, 1e-6),
])  # fmt: skip
def test_two_bins_are_chosen_together(case: Any, eps: float, rounds: int, width: float) -> None:
    """Against all counts of both bins, chosen anew in the second round as the first one suggests."""
    pairs = two_bins(*case)

    def worst(s: Any) -> Any:
        return np.max([np.maximum(p[:, None] - s * q[:, None], 0.0).sum(axis=0) for p, q in pairs], axis=0)

    truth = float(worst(np.array([math.exp(eps)]))[0])
    if rounds == 2:
        places = np.append(0.0, np.exp(np.linspace(-7.0, 7.0, 1_001)))  # between them no more than the chord
        after, known = worst(places), [(p[p > 0.0], math.exp(eps) * q[p > 0.0] / p[p > 0.0]) for p, q in pairs]
        truth = max(float(np.interp(ratio, places, after) @ p) for p, ratio in known)
    rate, least, dummies, only_bins = case
    released = "bins" if only_bins else "counts"
    mechanism = Threshold(rate, least, Poisson(dummies) if dummies else None, released=released)
    found = Accountant(1e-4).compose(mechanism, rounds).delta_bounds(eps)
    assert found.lower * (1.0 - 1e-9) <= truth <= found.upper * (1.0 + (1e-4 if rounds == 2 else 1e-9))
    assert (1.0 - width) * truth <= found.lower and found.upper <= (1.0 + width) * truth


@pytest.mark.parametrize("only_bins", [False, True])
@pytest.mark.parametrize("dummies", [None, Poisson(1.5)])
def test_a_range_of_counts_dominates_each_of_them(dummies: Share | None, only_bins: bool) -> None:
    growth = np.expm1([0.0, 0.01, 0.05, 0.1, 0.3, 0.7, 1.0])
    for rate, least, first, last in ((0.25, 3, 4, 9), (0.5, 4, 0, 11), (0.8, 3, 2, None)):
        known = Bin(rate, least, None if dummies is None else dummies.total(1), only_bins)
        single = [known._range(c, c) for c in range(first, 30 if last is None else last + 1)]
        for order, dominating in enumerate(known._range(first, last)):
            largest = np.max([one[order].profile(growth).upper for one in single], axis=0)
            assert np.all(largest * (1 - 1e-8) <= dominating.profile(growth).upper + 1e-14)


# --- sums of local reports ------------------------------------------------------------------------


def test_symbols_say_as_much_summed_as_shuffled() -> None:
    """Bits say less: the example of `Summed`."""
    k_rr = KRandomizedResponse(k=4, eps0=2.0)
    both = [Accountant().compose(kind(k_rr, 100)).epsilon_bounds(1e-6) for kind in (Summed, Shuffled)]  # fmt: skip
    assert both[0] == both[1]


def test_local_noise_summed() -> None:
    """Gaussian noise is central noise; Laplace noise of one user is, and of two has a law in closed form."""
    central = Accountant().compose(Gaussian(sigma=20.0), 3).get_epsilon(1e-6)
    local = Accountant().compose(Summed(randomizers.Gaussian(sigma=2.0), 100), 3).get_epsilon(1e-6)
    assert local == pytest.approx(central, rel=1e-9)
    eps0 = 1.0
    one = Accountant(1e-4).compose(Summed(randomizers.Laplace(eps0=eps0), 1)).delta_bounds(0.4)
    truth = -math.expm1((0.4 - eps0) / 2.0)
    assert 0.998 * truth <= one.lower <= truth <= one.upper <= 1.002 * truth

    def tail(x: float) -> float:
        """P[S >= x] of the sum of two Laplace numbers of scale 1."""
        return (0.5 + 0.25 * x) * math.exp(-x) if x >= 0 else 1.0 - tail(-x)

    truth = [max(tail(x - 1.0) - math.exp(e) * tail(x) for x in np.linspace(-3, 12, 30_001)) for e in (0.0, 0.2, 0.5)]
    found = Accountant(1e-4).compose(Summed(randomizers.Laplace(eps0=1.0), 2)).delta_bounds([0.0, 0.2, 0.5])
    for low, high, exact in zip(*found, truth, strict=True):
        assert 0.998 * exact <= low <= exact * (1 + 1e-9) and exact <= high <= 1.002 * exact


def test_laplace_noise_of_many_users_far_out() -> None:
    """Above 0 the noise of n users is a mixture of Gamma numbers of n, n-1, ..., 1 parts: delta about 1e-34."""
    n = 1_000

    @cache
    def tail(x: float) -> mpmath.mpf:
        """P[S >= x], x > 0."""
        fewer = list(accumulate(mpmath.exp(-x) * mpmath.mpf(x) ** i / mpmath.factorial(i) for i in range(n)))
        return mpmath.fsum(mpmath.binomial(n - 1 + k, k) * mpmath.mpf(2) ** -(n + k) * fewer[-1 - k] for k in range(n))

    with mpmath.workdps(30):
        truth = float(max(tail(t - 1.0) - mpmath.exp(0.25) * tail(t) for t in np.arange(531.0, 536.0, 0.5)))
    found = Accountant(1e-4).compose(Summed(randomizers.Laplace(eps0=1.0), n)).delta_bounds(0.25)
    assert found.lower <= truth <= found.upper <= 1.02 * found.lower


@pytest.mark.parametrize("neighbours", ["add-or-remove-one", "replace-one"])
def test_a_bin_that_one_user_brings_about(neighbours: str) -> None:
    """Among K - 1 others it is seen with probability p^K. For a smaller delta no epsilon is enough, in any rounds."""
    mechanism, seen = Threshold(rate=0.25, least=4, neighbours=neighbours), 0.25**4
    for rounds in (1, 2, 1000):
        assert Accountant().compose(mechanism, rounds).epsilon_bounds(seen * (1 - 1e-3)) == (math.inf, math.inf)
    assert Accountant().compose(mechanism).get_epsilon(seen * 1.01) < 1.2
