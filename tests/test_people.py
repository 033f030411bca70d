"""How people took part: sticky cohorts, epochs, mixed budgets, groups; by enumeration of every outcome in rationals."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations, permutations, product

import numpy as np
import pytest

from pld_shuffle import (
    Accountant,
    CountedBits,
    DrawnApart,
    Epoch,
    Gaussian,
    Mechanism,
    MixedRandomizers,
    MixedRR,
    PoissonGaussian,
    PoissonSampled,
    Shuffled,
    ShuffledLDP,
    ShuffledRandomizer,
    ShuffledRR,
    StickyCohort,
    Subsampled,
    ZeroOut,
)
from pld_shuffle.composition.composition import Composition
from pld_shuffle.pairs.profile import ProfilePair
from pld_shuffle.randomizers import BinaryRandomizedResponse, KRandomizedResponse, Laplace

Row = tuple[Fraction, ...]
View = tuple[tuple[int, ...], ...]
Law = dict[View, Fraction]

ORDERS = [Fraction(n, 16) for n in (1, 5, 11, 16, 17, 21, 28, 40, 74, 130)]


def rr(k: int, p: Fraction) -> list[Row]:
    """The output laws of k-ary randomised response with e^eps0 = p, one row for each value."""
    low = 1 / (p + k - 1)
    return [tuple(p * low if y == x else low for y in range(k)) for x in range(k)]


def shuffled(rows: list[Row]) -> dict[tuple[int, ...], Fraction]:
    """The law of the multiset of independent reports."""
    found: defaultdict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    for reports in product(*(range(len(row)) for row in rows)):
        mass = math.prod((row[y] for row, y in zip(rows, reports, strict=True)), start=Fraction(1))
        found[tuple(sorted(reports))] += mass
    return dict(found)


def hockey(first: Law, second: Law, s: Fraction) -> Fraction:
    """H_s(first || second)."""
    nothing = Fraction(0)
    return sum(
        (max(p - s * second.get(view, nothing), nothing) for view, p in first.items()), nothing
    )


def mixed(parts: list[tuple[Fraction, Law]]) -> Law:
    found: defaultdict[View, Fraction] = defaultdict(Fraction)
    for weight, law in parts:
        for view, mass in law.items():
            found[view] += weight * mass
    return dict(found)


def proved(mechanism: Mechanism) -> Composition:
    """One round, without the attack of lower ends."""
    return Composition([(mechanism.pair, 1)], 1e-3)


def below(spent: Composition, first: Law, second: Law) -> None:
    """The upper ends lie above the divergence of the two laws, at every order."""
    for s in ORDERS:
        truth = hockey(first, second, s)
        if s >= 1:
            assert truth <= spent.deltas(math.log(s)).upper * (1.0 + 1e-12), (s, float(truth))
        else:  # H_s = 1 - s + s H_{1/s} of the reversed pair
            assert truth <= 1 - s + s * Fraction(spent.deltas(-math.log(s)).upper) * Fraction(
                1 + 1e-12
            )


# --- sticky cohorts ---------------------------------------------------------------------------


def known(values: tuple[int, ...], laws: list[list[Row]]) -> Law:
    """The view of a known cohort that reports once by each of the randomizers."""
    found: Law = {(): Fraction(1)}
    for rows in laws:
        one = shuffled([rows[value] for value in values])
        found = {(*view, y): p * q for view, p in found.items() for y, q in one.items()}
    return found


def sticky(values: tuple[int, ...], n: int, laws: list[list[Row]]) -> Law:
    """The view of a hidden uniform cohort of n that is the same in all rounds."""
    cohorts = list(combinations(values, n))
    return mixed([(Fraction(1, len(cohorts)), known(cohort, laws)) for cohort in cohorts])


# Honesty, not width: with so few users delta is known to a tenth only near the largest loss.
@pytest.mark.filterwarnings("ignore::pld_shuffle.AccuracyWarning")
@pytest.mark.parametrize(
    ("k", "n", "population"), [(2, 1, 3), (2, 2, 4), (2, 3, 4), (3, 2, 3), (3, 2, 4)]
)
def test_sticky_cohorts_lie_below_the_bound(k: int, n: int, population: int) -> None:
    """Two rounds, the real cohorts, every dataset of the others."""
    p = Fraction(3)
    mechanism = ShuffledLDP(math.log(3.0), n)
    spent = proved(StickyCohort(mechanism, 2, population=population))
    for others in product(range(k), repeat=population - 1):
        if list(others) == sorted(others):
            first, second = (sticky((x, *others), n, [rr(k, p)] * 2) for x in (0, 1))
            below(spent, first, second)


@pytest.mark.parametrize("k", [2, 3])
def test_a_sticky_cohort_of_equal_others_attains_the_bound(k: int) -> None:
    """With all others at the second value it is r h((s-1+r)/r), h of the known cohort: the lower ends."""
    p, n, population = Fraction(3), 2, 4
    rate = Fraction(n, population)
    laws = [rr(k, p)] * 2
    first, second = (sticky((x, *[1] * (population - 1)), n, laws) for x in (0, 1))
    ahead, back = known((0, 1), laws), known((1, 1), laws)
    randomizer = KRandomizedResponse(k=k, eps0=math.log(3.0))
    held = StickyCohort(Shuffled(randomizer, n), 2, population=population)
    pair = held.attack_pair
    assert isinstance(pair, ProfilePair) and pair.reverse is not None
    for s in ORDERS[3:]:
        left = 1 - s * (1 - rate)
        truths = hockey(first, second, s), hockey(second, first, s)
        assert truths[0] == rate * hockey(ahead, back, (s - 1 + rate) / rate)
        assert truths[1] == (left * hockey(back, ahead, rate * s / left) if left > 0 else 0)
        for truth, read in zip(truths, (pair, pair.reverse), strict=True):
            found = read.profile(np.array([float(s) - 1.0]), 1e-6, 1e-12)
            assert found.lower[0] <= float(truth) * (1.0 + 1e-14)
            assert found.upper[0] >= float(truth) * (1.0 - 1e-14)
            assert found.lower[0] >= 0.99 * float(truth)


@pytest.mark.parametrize(("bits", "rounds"), [(1, 1), (2, 2)])
def test_sticky_counts_of_uneven_bits(bits: int, rounds: int) -> None:
    """Bits that are no randomised response: the attack's two orders belong to the same two datasets."""
    zero, one = Fraction(1, 8), Fraction(5, 8)
    rows = [(1 - x, x) for x in (zero, one)]
    known_bits = CountedBits(2, one_if_one=0.625, one_if_zero=0.125, bits=bits)
    pair = StickyCohort(known_bits, rounds, rate=0.5).attack_pair
    assert isinstance(pair, ProfilePair) and pair.reverse is not None
    orders = ORDERS[4:8]
    growth = np.array([float(s) - 1.0 for s in orders])
    found = [read.profile(growth, 1e-6, 1e-12) for read in (pair, pair.reverse)]

    def view(values: tuple[int, ...]) -> Law:
        return known(tuple(x for x in values for _ in range(bits)), [rows] * rounds)

    def truths(target: int, stays: int) -> list[list[float]]:
        """Both orders of: the target has that value, or the one of all others; or somebody stands in."""
        absent = view((stays, stays))
        here = mixed([(Fraction(1, 2), view((target, stays))), (Fraction(1, 2), absent)])
        pairs = (here, absent), (absent, here)
        return [[float(hockey(*both, s)) for s in orders] for both in pairs]

    fits = []
    for target, stays in ((0, 1), (1, 0)):
        exact = truths(target, stays)
        fits.append(
            all(
                np.all(read.lower <= np.array(truth) * (1 + 1e-12) + 1e-15)
                and np.all(read.lower >= np.array(truth) * 0.99 - 1e-12)
                for read, truth in zip(found, exact, strict=True)
            )
        )
    assert any(fits)


def test_fresh_cohorts_of_a_sticky_pool() -> None:
    """Two rounds of one of a pool of two, which is drawn once out of three; every dataset, and the attack."""
    p = Fraction(3)
    rows = rr(2, p)
    pool = StickyCohort(Subsampled(ShuffledLDP(math.log(3.0), 1), rate=0.5), 2, rate=2 / 3)

    def view(values: tuple[int, ...]) -> Law:
        parts = []
        for members in combinations(values, 2):
            drawn = mixed(
                [
                    (Fraction(1, 2), {(y,): mass for y, mass in shuffled([rows[x]]).items()})
                    for x in members
                ]
            )
            twice = {(*u, *v): a * b for u, a in drawn.items() for v, b in drawn.items()}
            parts.append((Fraction(1, 3), twice))
        return mixed(parts)

    spent = proved(pool)
    for others in ((0, 0), (0, 1), (1, 1)):
        below(spent, view((0, *others)), view((1, *others)))
    lower = Accountant().compose(pool)
    for s in ORDERS[4:]:
        truth = hockey(view((0, 1, 1)), view((1, 1, 1)), s)
        found = lower.delta_bounds(math.log(s))
        assert found.lower <= float(truth) * (1.0 + 1e-12) + 1e-15
        assert found.lower >= 0.98 * float(truth) - 1e-12


def test_two_sticky_cohorts_compose() -> None:
    """The attack's pair in both orders: two independent cohorts by enumeration."""
    p, n, population = Fraction(3), 2, 4
    laws = [rr(2, p)] * 2
    one = [sticky((x, *[1] * (population - 1)), n, laws) for x in (0, 1)]
    first, second = (
        {(*u, *v): a * b for u, a in law.items() for v, b in law.items()} for law in one
    )
    cohort = StickyCohort(Shuffled(BinaryRandomizedResponse(math.log(3.0)), n), 2, population=4)
    spent = Accountant(rtol=1e-2).compose(cohort, 2)
    for s in ORDERS[4:]:
        truth = float(hockey(first, second, s))
        found = spent.delta_bounds(math.log(s))
        assert found.lower <= truth * (1.0 + 1e-12) and truth <= found.upper * (1.0 + 1e-12)
        assert found.lower >= 0.98 * truth - 1e-15


def test_sticky_is_not_fresh() -> None:
    """The numbers that the documentation quotes."""
    batch = ShuffledLDP(3.0, 1000, analysis="stronger-clones")
    stuck = Accountant().compose(StickyCohort(batch, 50, rate=0.01)).epsilon_bounds(1e-6)
    assert 1.1067 < stuck.lower <= stuck.upper < 1.1070
    fresh = Accountant().compose(Subsampled(batch, rate=0.01, analysis="general"), 50)
    assert round(fresh.get_epsilon(1e-6), 4) == 0.0500
    assert stuck.lower > 20 * fresh.get_epsilon(1e-6)


def test_one_round_of_a_sticky_cohort_is_the_general_amplification() -> None:
    batch = ShuffledLDP(3.0, 1000, analysis="stronger-clones")
    stuck = Accountant().compose(StickyCohort(batch, 1, rate=0.1)).epsilon_bounds(1e-6)
    general = Accountant().compose(Subsampled(batch, rate=0.1, analysis="general"))
    assert stuck.lower <= general.get_epsilon(1e-6) <= stuck.upper * (1 + 1e-4)
    whole = Accountant().compose(StickyCohort(batch, 10, rate=1.0)).epsilon_bounds(1e-6)
    known_cohort = Accountant().compose(batch, 10).epsilon_bounds(1e-6)
    assert whole.lower <= known_cohort.upper and known_cohort.lower <= whole.upper


def test_sticky_cohorts_of_other_mechanisms() -> None:
    """Central noise, and fresh cohorts drawn from a sticky pool."""
    central = Accountant().compose(StickyCohort(Gaussian(sigma=10.0), 20, rate=0.1))
    known_cohort = Accountant().compose(Gaussian(sigma=10.0), 20)
    for eps in (0.1, 0.5, 1.0):
        inner = known_cohort.delta_bounds(math.log1p(math.expm1(eps) / 0.1))
        found = central.delta_bounds(eps)
        assert found.lower <= 0.1 * inner.upper and 0.1 * inner.lower <= found.upper
        assert found.upper <= 0.1 * inner.upper * 1.002
    pool = StickyCohort(Subsampled(ShuffledLDP(2.0, 100), population=1000), 10, rate=0.1)
    bounds = Accountant().compose(pool).epsilon_bounds(1e-6)
    assert 0.5 * bounds.upper < bounds.lower < bounds.upper
    noise = StickyCohort(Shuffled(Laplace(eps0=1.0), 100), 1, rate=0.5)
    assert isinstance(noise.attack_pair, ProfilePair) and isinstance(noise.pair, ProfilePair)
    growth = np.array([0.1])
    found = noise.attack_pair.profile(growth, 1e-3, 1e-9).lower[0]
    assert 0.3 * noise.pair.profile(growth, 1e-3, 1e-9).upper[0] < found


def test_sticky_cohorts_are_checked() -> None:
    batch = ShuffledLDP(1.0, 10)
    with pytest.raises(ValueError, match="exactly one of population and rate"):
        StickyCohort(batch, 2)
    with pytest.raises(ValueError, match="population must be at least n=10, got 9"):
        StickyCohort(batch, 2, population=9)
    with pytest.raises(ValueError, match="rounds"):
        StickyCohort(batch, 0, rate=0.5)
    with pytest.raises(ValueError, match="give rate"):
        StickyCohort(Subsampled(batch, rate=0.5), 2, population=100)
    with pytest.raises(TypeError, match="one round"):
        StickyCohort(StickyCohort(batch, 2, rate=0.5), 2, rate=0.5)
    with pytest.raises(TypeError, match="drawn once"):
        Subsampled(StickyCohort(batch, 2, rate=0.5), rate=0.5)
    assert "drawn once" in StickyCohort(batch, 2, rate=0.5).assumptions()["sampling"]


# --- epochs -----------------------------------------------------------------------------------

Choice = Callable[[tuple[int, ...]], list[Row]]


def epoch(values: tuple[int, ...], size: int, start: list[Row], then: Choice) -> Law:
    """Uniform order; the first `size` users report by `start`, the others as `then` says of their output."""
    orders = list(permutations(values))
    found: defaultdict[View, Fraction] = defaultdict(Fraction)
    for order in orders:
        for seen, mass in shuffled([start[x] for x in order[:size]]).items():
            rows = then(seen)
            for more, share in shuffled([rows[x] for x in order[size:]]).items():
                found[seen, more] += mass * share / len(orders)
    return dict(found)


def choices(k: int, p: Fraction) -> Iterator[Choice]:
    """Randomizers of the second cohort, from the first one's output: all are log(p)-LDP."""
    full = rr(k, p)
    binary: list[Row] = [rr(2, p)[0 if x == 0 else 1] for x in range(k)]
    flipped: list[Row] = [tuple(reversed(row)) for row in binary]
    silent: list[Row] = [(Fraction(1), Fraction(0))] * k
    yield lambda seen: full
    yield lambda seen: binary if 0 in seen else silent
    yield lambda seen: flipped if seen[0] == 0 else binary
    yield lambda seen: full if seen[0] == 1 else binary


@pytest.mark.parametrize(
    ("k", "n", "size"), [(2, 3, 1), (2, 4, 2), (2, 4, 1), (3, 3, 2), (3, 4, 2)]
)
def test_epochs_lie_below_the_bound(k: int, n: int, size: int) -> None:
    """Two cohorts, the second asked by randomizers that depend on the first one's output."""
    for p in (Fraction(2), Fraction(9)):
        spent = proved(Epoch(math.log(p), n))
        for others in {(k - 1,) * (n - 1), (0,) * (n - 1), (1, *[0] * (n - 2))}:
            for then in choices(k, p):
                first, second = (epoch((x, *others), size, rr(k, p), then) for x in (0, 1))
                below(spent, first, second)


def test_the_lower_end_of_an_epoch_is_attained() -> None:
    """Who sees the cohorts sees at least all reports together."""
    p, n = Fraction(4), 4
    spent = Accountant().compose(Epoch(math.log(4.0), n))
    first, second = (epoch((x, 2, 2, 2), 2, rr(3, p), lambda seen: rr(3, p)) for x in (0, 1))
    for s in ORDERS[4:]:
        truth = float(hockey(first, second, s))
        assert spent.delta_bounds(math.log(s)).lower <= truth * (1.0 + 1e-12)


def test_epochs_do_not_know_the_size_of_cohorts() -> None:
    """The numbers that the documentation quotes."""
    found = Accountant().compose(Epoch(4.0, 10**6)).epsilon_bounds(1e-6)
    clones = Accountant().compose(ShuffledLDP(4.0, 10**6, analysis="clones")).get_epsilon(1e-6)
    cohort = Accountant().compose(ShuffledLDP(4.0, 10**4, analysis="stronger-clones"))
    assert round(found.upper, 3) == 0.034 and found.lower > 0.0335
    assert round(clones, 3) == 0.049 and round(cohort.get_epsilon(1e-6), 3) == 0.411
    with pytest.raises(TypeError, match="everybody must take part"):
        Subsampled(Epoch(4.0, 100), rate=0.5)
    assert "exactly once" in Epoch(4.0, 100).assumptions()["sampling"]


# --- groups -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("k", "n", "group"), [(2, 3, 2), (2, 4, 2), (2, 4, 3), (3, 3, 2), (3, 4, 3)]
)
def test_groups_lie_below_the_bound(k: int, n: int, group: int) -> None:
    """All datasets that differ in `group` users, one round; and the formula on one user's deltas."""
    p = Fraction(3)
    spent = Accountant().compose(ShuffledLDP(math.log(3.0), n, analysis="stronger-clones"))
    rows = rr(k, p)
    for kept in {(0,) * (n - group), (k - 1,) * (n - group)}:
        laws: list[Law] = [
            {(view,): mass for view, mass in shuffled([rows[x] for x in (*mine, *kept)]).items()}
            for mine in ((0,) * group, (1,) * group, tuple(x % k for x in range(group)))
        ]
        for first, second in permutations(laws, 2):
            for s in ORDERS[3:]:
                eps = math.log(s)
                truth = float(hockey(first, second, s))
                found = spent.delta_bounds(eps, group=group)
                assert truth <= found.upper * (1.0 + 1e-12)
                one = spent.delta_bounds(eps / group)
                steps = sum(math.exp(j * eps / group) for j in range(group))
                assert found.upper <= min(1.0, one.upper * steps) * (1.0 + 1e-9)
                assert found.upper >= min(1.0, one.lower * steps) * (1.0 - 1e-9)
                assert found.lower <= spent.delta_bounds(eps).upper


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
    with pytest.raises(ValueError, match="group"):
        pure.get_epsilon(1e-6, group=0)
    for ask in (pure.get_epsilon, pure.epsilon_bounds, pure.delta_bounds):
        with pytest.raises(ValueError, match=r"group must be at most 10\*\*13, got 1000"):
            ask(1e-6, group=10**400)
        with pytest.raises(TypeError, match="group"):
            ask(1e-6, group=True)


# --- what hidden cohorts must not be taken for ---------------------------------------------------


@pytest.mark.parametrize(
    "hidden",
    [
        Subsampled(ShuffledLDP(2.0, 2), population=100),
        Subsampled(ShuffledLDP(2.0, 20), rate=1.0, dropout=0.5),
        PoissonSampled(ShuffledLDP(2.0, 20), rate=0.5),
        StickyCohort(ShuffledLDP(2.0, 20), 2, rate=0.5),
        PoissonGaussian(sigma=1.0, rate=0.5),
        ZeroOut(PoissonSampled(ShuffledLDP(2.0, 20), rate=0.5)),
    ],
)
def test_reports_drawn_together_are_no_group(hidden) -> None:
    spent = Accountant().compose(
        ShuffledLDP(2.0, 20) if not isinstance(hidden, ZeroOut) else hidden
    )
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
        max(0.0, rate * p + (1.0 - rate) * q - math.exp(0.3) * q)
        for p, q in zip(first, first[::-1], strict=True)
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
    # The others' reports: (ones, zeros), each present with 1/2; the target's place is filled by an absent one if ...
    size = np.arange(n)
    present = np.array([math.comb(n - 1, m) * 0.5 ** (n - 1) for m in size])
    delta = 0.0
    for m in size:
        ones = np.array([math.comb(m, k) * low**k * (1.0 - low) ** (m - k) for k in range(m + 1)])
        same = np.convolve(ones, [1.0 - low, low])  # m others and one that holds 0, present
        other = np.convolve(ones, [low, 1.0 - low])
        weight = present[m]
        # Seen: m + 1 reports, of the target and m others; or those of m + 1 others, the target not being drawn.
        away = math.comb(n, m + 1) * 0.5**n
        p = rate * weight * other + (1.0 - rate) * away * same
        q = rate * weight * same + (1.0 - rate) * away * same
        delta += float(np.sum(np.maximum(0.0, p - math.exp(0.06) * q)))
    round_ = Subsampled(ShuffledLDP(1.0, n), population=400, dropout=0.5)
    assert Accountant().compose(round_).get_delta(0.06) < delta == pytest.approx(5.8e-5, rel=0.05)
    assert "the target included" in round_.assumptions()["sampling"]
    assert "not on who took part" in round_.assumptions()["sampling"]
    everybody = PoissonSampled(ShuffledLDP(1.0, n), rate=0.5).assumptions()["sampling"]
    assert "the target included" in everybody and "not on who took part" in everybody


# --- zero-out ---------------------------------------------------------------------------------


@pytest.mark.parametrize("null", [(0, 1, 0), (1, 1, 1), (0, 1, 3)])
def test_null_reports_lie_below_the_bound(null: tuple[int, ...]) -> None:
    """The target's report against one of a mixture of the values' laws, both orders, n = 3."""
    rows = rr(3, Fraction(3))
    rho = tuple(
        sum((w * row[y] for w, row in zip(null, rows, strict=True)), Fraction(0)) / sum(null)
        for y in range(3)
    )
    spent = proved(ZeroOut(ShuffledLDP(math.log(3.0), 3)))
    for others in ((0, 0), (2, 2), (0, 2)):
        kept = [rows[x] for x in others]
        laws: list[Law] = [
            {(view,): mass for view, mass in shuffled([row, *kept]).items()}
            for row in (rows[0], rho)
        ]
        below(spent, laws[0], laws[1])
        below(spent, laws[1], laws[0])


@pytest.mark.parametrize("null", [(0, 1, 0), (1, 1, 1)])
def test_null_reports_of_poisson_samples_and_dropouts(null: tuple[int, ...]) -> None:
    """Everybody by a coin of their own, the number of reports seen: "absent" is one more report. Two rounds, too."""
    q, rows = Fraction(3, 8), rr(3, Fraction(3))
    rho = tuple(
        sum((w * row[y] for w, row in zip(null, rows, strict=True)), Fraction(0)) / sum(null)
        for y in range(3)
    )

    def comes(row: Row) -> Row:
        return (*(q * mass for mass in row), 1 - q)

    once = proved(ZeroOut(PoissonSampled(ShuffledLDP(math.log(3.0), 3), 0.375)))
    pair = ZeroOut(PoissonSampled(ShuffledLDP(math.log(3.0), 3), 0.375)).pair
    twice = Composition([(pair, 2)], 1e-3)
    for others in ((0, 0), (2, 2), (0, 2)):
        kept = [comes(rows[x]) for x in others]
        one = [
            {(view,): mass for view, mass in shuffled([comes(row), *kept]).items()}
            for row in (rows[0], rho)
        ]
        two: list[Law] = [
            {(*u, *v): a * b for u, a in law.items() for v, b in law.items()} for law in one
        ]
        for spent, laws in ((once, one), (twice, two)):
            below(spent, laws[0], laws[1])
            below(spent, laws[1], laws[0])


def test_zero_out_ledgers() -> None:
    """One relation a ledger; each mechanism has the pair that is proved, or is refused by name."""
    sampled = ZeroOut(PoissonGaussian(sigma=2.0, rate=0.1))
    assert sampled.attack_pair is sampled.pair
    acc = Accountant().compose(ZeroOut(Gaussian(sigma=2.0)))
    assert acc.get_epsilon(1e-6) == Accountant().compose(Gaussian(sigma=2.0)).get_epsilon(1e-6)
    with pytest.raises(ValueError, match="neighbouring relation 'zero-out'"):
        acc.compose(ShuffledLDP(1.0, 100))
    acc.compose(ZeroOut(Subsampled(ShuffledLDP(1.0, 100), population=1000)), 3)
    acc.compose(ZeroOut(StickyCohort(ShuffledLDP(1.0, 100, "clones"), 2, rate=0.5)))
    for refused in (
        Subsampled(Gaussian(sigma=2.0), rate=0.1),
        StickyCohort(Gaussian(sigma=2.0), 2, rate=0.1),
    ):
        with pytest.raises(TypeError, match=r"proved for the zero-out relation, got .*Gaussian"):
            ZeroOut(refused)
    with pytest.raises(TypeError, match="inside of ZeroOut"):
        Subsampled(ZeroOut(ShuffledLDP(1.0, 100)), rate=0.5)
    assert "null report" in ZeroOut(ShuffledLDP(1.0, 100)).assumptions()["neighbours"]


def test_poisson_noise_of_a_zero_out_ledger() -> None:
    """By quadrature: one round, both orders, and the sensitivity is the norm and not twice that."""
    q, sigma = 0.2, 1.5
    mechanism = ZeroOut(PoissonGaussian(sigma=sigma, rate=q))
    spent = Accountant().compose(mechanism)
    x = np.linspace(-16.0, 18.0, 400_001)
    zero, one = (np.exp(-0.5 * ((x - m) / sigma) ** 2) for m in (0.0, 1.0))
    width = (x[1] - x[0]) / (sigma * math.sqrt(2.0 * math.pi))
    with_target = (1.0 - q) * zero + q * one
    for eps in (0.0, 0.1, 0.4, 1.0):
        remove = float(np.maximum(with_target - math.exp(eps) * zero, 0.0).sum() * width)
        add = float(np.maximum(zero - math.exp(eps) * with_target, 0.0).sum() * width)
        found = spent.delta_bounds(eps)
        assert add <= found.upper * (1.0 + 1e-6) + 1e-12
        assert found.lower <= remove * (1.0 + 1e-6) and remove <= found.upper * (1.0 + 1e-6)
    twice = Accountant().compose(PoissonGaussian(sigma=sigma, rate=q))
    assert spent.get_epsilon(1e-6) < twice.epsilon_bounds(1e-6).lower


# --- users with budgets of their own ----------------------------------------------------------


def weak_view(k: int, target: Row, others: list[tuple[int, Fraction]]) -> Law:
    """(value, e^eps) of each other: the uniform answers and the target's, shuffled; true answers are known."""
    found: defaultdict[View, Fraction] = defaultdict(Fraction)
    uniform = tuple(Fraction(1, k) for _ in range(k))
    for honest in product((False, True), repeat=len(others)):
        weight = Fraction(1)
        for told, (_, p) in zip(honest, others, strict=True):
            gamma = k / (p + k - 1)
            weight *= 1 - gamma if told else gamma
        known_ones = tuple(int(told) for told in honest)
        for view, mass in shuffled([target, *[uniform] * honest.count(False)]).items():
            found[view, known_ones] += weight * mass
    return dict(found)


@pytest.mark.parametrize(
    ("k", "budgets"),
    [
        (2, (2, 9)),
        (3, (2, 2, 9)),
        (3, (4, 4, 4)),
        (4, (2, 30)),
        (2, (2, 3, 9, 30)),
        (3, (30, 2, 5, 5)),
    ],
)
def test_mixed_budgets_are_exact(k: int, budgets: tuple[int, ...]) -> None:
    """The weak adversary's view, enumerated, is the pair; the shuffled reports alone lie below."""
    for p in (Fraction(3), Fraction(12)):
        classes = tuple((math.log(b), budgets.count(b)) for b in sorted(set(budgets)))
        mechanism = MixedRR(k, math.log(p), classes)
        rows = rr(k, p)
        others = [(0, Fraction(b)) for b in budgets]
        first, second = (weak_view(k, row, others) for row in rows[:2])
        spent = proved(mechanism)
        below(spent, first, second)
        for s in ORDERS[3:]:
            truth, found = float(hockey(first, second, s)), spent.deltas(math.log(s))
            assert found.lower <= truth * (1.0 + 1e-12) + 1e-15
            assert found.upper <= truth * (1.0 + 1e-3) + 1e-12
            assert found.lower >= truth * (1.0 - 1e-3) - 1e-12
        for value in range(k):
            kept = [rr(k, Fraction(b))[value] for b in budgets]
            plain: list[Law] = [
                {(view,): mass for view, mass in shuffled([row, *kept]).items()} for row in rows[:2]
            ]
            below(spent, plain[0], plain[1])


def test_two_rounds_of_mixed_budgets() -> None:
    """Four users of three budgets, twice: the view of the weak adversary, enumerated, is the composed pair."""
    others = [(0, Fraction(b)) for b in (2, 5, 5)]
    one = [weak_view(3, row, others) for row in rr(3, Fraction(3))[:2]]
    first, second = (
        {(*u, *v): a * b for u, a in law.items() for v, b in law.items()} for law in one
    )
    mechanism = MixedRR(3, math.log(3.0), ((math.log(2.0), 1), (math.log(5.0), 2)))
    spent = Accountant().compose(mechanism, 2)
    for s in ORDERS[3:]:
        truth, found = float(hockey(first, second, s)), spent.delta_bounds(math.log(s))
        assert found.lower <= truth * (1.0 + 1e-12) + 1e-15
        assert truth <= found.upper * (1.0 + 1e-12)
        assert found.upper - found.lower <= 2e-3 * truth + 1e-12


def by_answers(k: int, p: float, budgets: dict[float, int], s: float) -> float:
    """H_s of the weak adversary, summed over the uniform answers, the coin labels, and heads: float, O(n^3)."""
    law = np.ones(1)
    for budget, count in budgets.items():
        for _ in range(count):
            gamma = k / (budget + k - 1)
            law = np.convolve(law, [1 - gamma, gamma])
    truth, uniform = (p - 1) / (p + k - 1), 1 / (p + k - 1)
    total = 0.0
    for answers, weight in enumerate(law):
        slots = answers + 1
        for m in range(1, slots + 1):
            coins = math.comb(slots, m) * (2 / k) ** m * (1 - 2 / k) ** (slots - m)
            heads = np.arange(m + 1)
            half = np.array([math.comb(m, h) for h in heads]) / 2.0**m
            first = truth * k * heads / slots + uniform * k
            second = truth * k * (m - heads) / slots + uniform * k
            total += weight * coins * float(half @ np.maximum(first - s * second, 0.0))
        total += weight * (1 - 2 / k) ** slots * uniform * k * max(0.0, 1.0 - s)
    return total


@pytest.mark.parametrize(
    ("k", "budgets"),
    [(2, {2.0: 20, 9.0: 30}), (3, {3.0: 25, 20.0: 25}), (9, {2.0: 10, 5.0: 20, 50.0: 30})],
)
def test_mixed_budgets_of_fifty_users(k: int, budgets: dict[float, int]) -> None:
    """By a plain sum; also far out in the tail, and with the kernel's intervals of many neutral labels."""
    mechanism = MixedRR(k, math.log(4.0), tuple((math.log(b), c) for b, c in budgets.items()))
    for rtol in (1e-2, 1e-4):
        spent = Composition([(mechanism.pair, 1)], rtol)
        for s in (1.0, 1.2, 1.7, 2.6, 3.5):
            truth, found = by_answers(k, 4.0, budgets, s), spent.deltas(math.log(s))
            assert found.lower <= truth * (1.0 + 1e-11) and truth <= found.upper * (1.0 + 1e-11)
            assert found.upper - found.lower <= 2.0 * rtol * truth


def test_one_class_is_the_crowd_of_one_budget() -> None:
    """Two kernels that share the intervals only: many users, several deltas, one class and the same one twice."""
    for k, n, eps0 in ((4, 10_000, 2.0), (16, 300, 1.0), (3, 10**6, 3.0)):
        weak = Composition([(ShuffledRR(k, n, eps0=eps0, adversary="weak").pair, 10)], 1e-3)
        for others in (((eps0, n - 1),), ((eps0, n // 3), (eps0, n - 1 - n // 3))):
            mixed_pair = Composition([(MixedRR(k, eps0, others).pair, 10)], 1e-3)
            for delta in (1e-3, 1e-9):
                one, two = weak.epsilons(delta), mixed_pair.epsilons(delta)
                assert one.lower <= two.upper and two.lower <= one.upper
                assert two.upper - two.lower <= 1e-3 * two.upper


# --- users with randomizers of their own ------------------------------------------------------


def ratio(target: list[Row], other: list[Row]) -> Fraction:
    """The largest of the target's laws over the other's."""
    return max(r / w for one in target for row in other for r, w in zip(one, row, strict=True))


def sloped(k: int, p: Fraction) -> list[Row]:
    """A log(p)-LDP randomizer of k reports that is no randomised response."""
    start = [p, (1 + p) / 2, *[Fraction(1)] * (k - 2)]
    rows = [[start[(y - x) % k] for y in range(k)] for x in range(k)]
    return [tuple(mass / sum(row) for mass in row) for row in rows]


@pytest.mark.parametrize("budgets", [(2, 6), (3, 3, 9), (2, 5, 9, 9)])
def test_mixed_randomizers_lie_below_the_bound(budgets: tuple[int, ...]) -> None:
    """Every pair of the target's values, every dataset of the others, who run another randomizer than the target."""
    p = Fraction(4)
    for target in (rr(3, p), sloped(3, p)):
        tv = max(
            sum((max(a - b, Fraction(0)) for a, b in zip(x, y, strict=True)), Fraction(0))
            for x in target
            for y in target
        )
        rest = [sloped(3, Fraction(b)) if b % 2 else rr(3, Fraction(b)) for b in budgets]
        others = tuple((float(ratio(target, rows)) * (1 + 1e-15), 1) for rows in rest)
        spent = [
            proved(MixedRandomizers(math.log(4.0), others)),
            proved(MixedRandomizers(math.log(4.0), others, tv=float(tv) * (1 + 1e-15))),
        ]
        for values in product(range(3), repeat=len(rest)):
            kept = [rows[value] for rows, value in zip(rest, values, strict=True)]
            first, second = (
                {(view,): mass for view, mass in shuffled([target[x], *kept]).items()}
                for x in (0, 1)
            )
            for composition in spent:
                below(composition, first, second)


def labels_view(target: Row, others: list[Row]) -> Law:
    """Counts of the labels 0, 1, *; the last entry of a row is "no label"."""
    found: defaultdict[View, Fraction] = defaultdict(Fraction)
    for reports, mass in shuffled([target, *others]).items():
        found[(tuple(y for y in reports if y != 3),)] += mass
    return dict(found)


@pytest.mark.parametrize("beta", [Fraction(1, 2), Fraction(3, 5), Fraction(1, 8)])
def test_mixed_labels_are_the_pair(beta: Fraction) -> None:
    """The labels of five users of three ratios, enumerated; and a larger total variation is worse."""
    p, ratios = Fraction(4), (Fraction(2), Fraction(4), Fraction(4), Fraction(10))
    alpha = beta / (p - 1)
    bare = 1 - alpha * (p + 1)
    target = [(alpha * p, alpha, bare, Fraction(0)), (alpha, alpha * p, bare, Fraction(0))]
    others = [(alpha * p / q, alpha * p / q, bare / q, 1 - (1 + beta) / q) for q in ratios]
    first, second = (labels_view(row, others) for row in target)
    classes = ((2.0, 1), (4.0, 2), (10.0, 1))
    spent = proved(MixedRandomizers(math.log(4.0), classes, tv=float(beta)))
    worse = proved(MixedRandomizers(math.log(4.0), classes))
    for s in ORDERS[3:]:
        truth, found = float(hockey(first, second, s)), spent.deltas(math.log(s))
        assert found.lower <= truth * (1.0 + 1e-12) + 1e-15
        assert truth <= found.upper * (1.0 + 1e-12)
        assert found.upper - found.lower <= 2e-3 * truth + 1e-12
        assert truth <= worse.deltas(math.log(s)).upper * (1.0 + 1e-12)


def test_mixed_randomizers_of_one_ratio() -> None:
    """One class is the (p, beta, q) reduction; more private others hide better; what is no ratio is refused."""
    for tv in (1.0, 0.4):
        alike = MixedRandomizers(2.0, ((5.0, 999),), tv=tv)
        known_one = ShuffledRandomizer(1000, tv=tv, p=math.exp(2.0), q=5.0)
        one, two = (Accountant().compose(m).epsilon_bounds(1e-6) for m in (alike, known_one))
        assert one.lower <= two.upper and two.lower <= one.upper
        assert one.upper == pytest.approx(two.upper, rel=1e-4)
    assert Accountant().compose(MixedRandomizers(1.0, ((1.0, 9),))).get_epsilon(1e-6) == 0.0
    some = MixedRandomizers(2.0, ((5.0, 500), (math.exp(2.0), 499)))
    spent = Accountant().compose(some).get_epsilon(1e-6)
    for q, better in ((5.0, True), (math.exp(2.0), False)):
        other = Accountant().compose(MixedRandomizers(2.0, ((q, 999),))).get_epsilon(1e-6)
        assert (other < spent) == better
    for bad in (0.9, math.inf, math.nan):
        with pytest.raises(ValueError, match="ratio"):
            MixedRandomizers(1.0, ((bad, 1),))
    with pytest.raises(ValueError, match="tv must be"):
        MixedRandomizers(1.0, ((2.0, 1),), tv=1.5)
    with pytest.raises(TypeError, match=r"pairs \(ratio, count\)"):
        MixedRandomizers(1.0, "2")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="mixed randomizers"):
        Subsampled(MixedRandomizers(1.0, ((2.0, 1),)), rate=0.5)


def test_classes_of_budgets() -> None:
    """With one class it is the weak adversary of randomised response; more private others hide better."""
    alike = MixedRR.of_classes(4, {2.0: 1000})[2.0]
    weak = ShuffledRR(4, 1000, eps0=2.0, adversary="weak")
    found, known_one = (Accountant().compose(m).epsilon_bounds(1e-6) for m in (alike, weak))
    assert found.upper == pytest.approx(known_one.upper, rel=1e-6)
    both = MixedRR.of_classes(4, {1.0: 500, 3.0: 500})
    spent = {eps: Accountant().compose(one).epsilon_bounds(1e-6) for eps, one in both.items()}
    alone = ShuffledRR(4, 1000, eps0=3.0, adversary="weak")
    assert spent[3.0].upper < Accountant().compose(alone).epsilon_bounds(1e-6).lower
    assert spent[1.0].upper < spent[3.0].lower
    assert all(b.upper <= b.lower * (1.0 + 1e-3) for b in spent.values())
    assert MixedRR(3, 1.0, ()).users == 1 and both[1.0].others == ((1.0, 499), (3.0, 500))
    with pytest.raises(TypeError, match="others must be pairs"):
        MixedRR(3, 1.0, {1.0: 2})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="count"):
        MixedRR(3, 1.0, ((1.0, 0),))
