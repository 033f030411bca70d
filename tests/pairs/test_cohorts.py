"""Hidden cohorts, and users who come by coins: against exact sums over datasets, and logs of many cohorts."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray

from pld_shuffle import Accountant, PoissonSampled, ShuffledLDP, Subsampled
from pld_shuffle.composition.composition import Composition
from pld_shuffle.pairs.cohort import ALL_USERS, Cohort
from pld_shuffle.pairs.pair import Pair
from pld_shuffle.pairs.profile import Several
from pld_shuffle.pairs.swap import _extreme_types, _type_arrays, any_ldp_profile, by_coins, typed_profile
from pld_shuffle.pairs.swap_pairs import AnyLDPPair

Array = NDArray[np.float64]

#: (R_0, R_1)/W and the weight under W: binary randomized response at either value, three-valued at the third.
TYPES = {
    "S1": lambda p: [(p, 1, 1 / (p + 1)), (1 / p, 1, p / (p + 1))],
    "S2": lambda p: [(1, p, 1 / (p + 1)), (1, 1 / p, p / (p + 1))],
    "T1": lambda p: [(p, 1, 1 / (p + 2)), (1, p, 1 / (p + 2)), (1 / p, 1 / p, p / (p + 2))],
}


def exact(eps0: float, counts: dict[str, int], users: int, expm1_eps: float, presence: float) -> float:
    """E((1/N) sum L_i + (1-q)(1-s))_+ for so many users of each type."""
    n, s = sum(counts.values()), 1.0 + expm1_eps
    totals, masses = np.zeros(1), np.ones(1)
    for name, count in counts.items():
        points = [(a, b, presence * w) for a, b, w in TYPES[name](math.exp(eps0))]
        if presence < 1.0:
            points.append((1.0, 1.0, 1.0 - presence))
        some, chances = [], []
        for parts in itertools.product(range(count + 1), repeat=len(points) - 1):
            if sum(parts) <= count:
                full = (*parts, count - sum(parts))
                ways = math.factorial(count) / math.prod(map(math.factorial, full))
                some.append(sum(k * (a - s * b) for k, (a, b, _) in zip(full, points, strict=True)))
                chances.append(ways * math.prod(w**k for k, (*_, w) in zip(full, points, strict=True)))
        totals = np.add.outer(totals, some).ravel()
        masses = np.multiply.outer(masses, chances).ravel()
    rest = (1.0 - n / users) * (1.0 - s)
    return float(masses @ np.maximum(totals / users + rest, 0.0))


def of_swap(pair: Pair) -> Pair:
    """The pair of the swap theorem, alone or among several."""
    found = pair.pairs[0] if isinstance(pair, Several) else pair
    assert isinstance(found, AnyLDPPair)
    return found


@pytest.mark.parametrize("presence", [1.0, 0.8])
@pytest.mark.parametrize("eps0", [0.4, 1.2])
def test_hidden_cohorts_are_above_every_dataset(eps0: float, presence: float) -> None:
    users = 90
    expm1_eps = np.expm1(0.02 * eps0 * np.arange(4.0))
    for n in (28, 29, 32):
        own = any_ldp_profile(eps0, n, expm1_eps, cohort=Cohort(n / users, presence))
        for mix in [(n, 0, 0), (0, n, 0), (0, 0, n), (n // 2, n - n // 2, 0)] + [(4, 0, n - 4)] * (presence == 1.0):
            if presence < 1.0 and mix[2]:
                continue  # too many counts to enumerate
            counts = {name: count for name, count in zip(TYPES, mix, strict=True) if count}
            for bound, g in zip(own, expm1_eps, strict=True):
                truth = exact(eps0, counts, users, g, presence)
                assert truth <= bound * (1.0 + 1e-12)


def mean_over_coins(eps0: float, counts: dict[str, int], users: int, expm1_eps: float, rate: float) -> float:
    """H_s of the mixture over who comes, all of them left out: Theorem C for every number, averaged over the subset."""
    others = sum(counts.values())
    assert others == users - 1
    found = 0.0
    for parts in itertools.product(*(range(count + 1) for count in counts.values())):
        n = sum(parts)
        ways = math.prod(math.comb(count, part) for count, part in zip(counts.values(), parts, strict=True))
        chance = math.comb(users, n) * rate**n * (1.0 - rate) ** (users - n)
        chance *= ways / math.comb(others, n)
        if n:
            here = dict(zip(counts, parts, strict=True))
            found += chance * exact(eps0, here, users, expm1_eps, 1.0)
    return found


def all_by_coins(eps0: float, users: int, mean: float, expm1_eps: Array) -> Array:
    """The bound by `swap.by_coins` for every eps0-LDP randomizer."""
    types = [part[:3] for part in _extreme_types(eps0, ALL_USERS)]
    return by_coins(users, Cohort(presence=mean / users), types, 2.0**-50, expm1_eps)


@pytest.mark.parametrize("eps0", [0.4, 1.2])
def test_coins_are_above_every_dataset(eps0: float) -> None:
    users, n = 41, 11.0
    expm1_eps = np.expm1(0.04 * eps0 * np.arange(4.0))
    bounds = all_by_coins(eps0, users, n, expm1_eps)
    for counts in ({"S1": 40}, {"S2": 40}, {"T1": 40}, {"S1": 20, "S2": 20}, {"S1": 36, "S2": 4}):
        for bound, g in zip(bounds, expm1_eps, strict=True):
            assert mean_over_coins(eps0, counts, users, g, n / users) <= bound * (1.0 + 1e-12)


def test_rates_are_tight_with_equal_others() -> None:
    """150 users, half of whom come, binary randomised response: the contour bound against what is exact."""
    eps0, users, n = 0.4, 150, 70.0
    expm1_eps = np.expm1(0.02 * eps0 * np.arange(4.0))
    bound = all_by_coins(eps0, users, n, expm1_eps)
    for value, g in zip(bound, expm1_eps, strict=True):
        truth = max(mean_over_coins(eps0, {kind: users - 1}, users, g, n / users) for kind in ("S1", "S2"))
        assert truth * (1.0 - 1e-12) <= value <= 1.02 * truth


def test_known_laws_by_coins() -> None:
    """The bound for the two laws of randomised response, others at either value; with many it is Theorem C's alone."""
    eps0, users, n = 1.2, 150, 70.0
    p, expm1_eps = math.exp(eps0), np.expm1(0.02 * eps0 * np.arange(4.0))
    laws = [np.array([p, 1.0]) / (1.0 + p), np.array([1.0, p]) / (1.0 + p)]
    types = [np.array([*laws, laws[0], law]) for law in laws]
    cohort = Cohort(presence=n / users)
    bound = by_coins(users, cohort, _type_arrays(types, 1.0, 0.0), 2.0**-49, expm1_eps)
    known = typed_profile(types, users, expm1_eps, cohort=cohort)
    for at, g in enumerate(expm1_eps):
        truth = [
            mean_over_coins(eps0, counts, users, g, n / users)
            for counts in ({"S1": 149}, {"S2": 149}, {"S1": 146, "S2": 3})
        ]
        for value in (float(bound[at]), float(known[at])):
            assert max(truth) * (1.0 - 1e-12) <= value <= 1.06 * max(truth)


@pytest.mark.parametrize("kinds", ["cohorts", "coins", "both"])
def test_a_varied_log_is_as_tight_as_its_rounds_by_themselves(kinds: str) -> None:
    """Against the swap theorem alone, and above what attacks spend."""
    rng = np.random.default_rng(5)
    users = 10**6
    rounds: list[Subsampled | PoissonSampled] = []
    for eps0 in (1.0, 3.0):
        for i, n in enumerate(rng.choice(np.arange(2_467, 5_601), 20, replace=False)):
            if kinds == "coins" or (kinds == "both" and i % 2):
                everybody = ShuffledLDP(eps0=eps0, n=users)
                rounds.append(PoissonSampled(everybody, rate=float(n) / users))
            else:
                rounds.append(Subsampled(ShuffledLDP(eps0=eps0, n=int(n)), population=users))
    accountant = Accountant()
    for mechanism in rounds:
        accountant.compose(mechanism)
    shared = accountant.epsilon_bounds(1e-6)
    alone = []
    for mechanism in rounds:
        pair = of_swap(mechanism.pair)
        alone.append((Several((pair,)), 1))  # next to no others
    direct = Composition(alone, 1e-3)
    assert shared.upper <= direct.epsilons(1e-6).upper * (1.0 + 1e-4)
    assert direct.deltas(shared.upper).lower <= 1e-6 * 1.001
    assert shared.lower <= direct.epsilons(1e-6).upper
    assert shared.upper <= shared.lower * 1.01
