"""Pairs given by mass functions, and the way from a profile to a lattice law (both sides)."""

from __future__ import annotations

import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

from pld_shuffle import PLD, Accountant, Bounds, DiscretePair, Side, Subsampled
from pld_shuffle.mechanisms import Mechanism
from pld_shuffle.pairs.profile import ProfilePair

Pmf = list[Fraction]


def fractions(*parts: int) -> Pmf:
    return [Fraction(part, sum(parts)) for part in parts]


PAIRS = {
    "asymmetric": (fractions(5, 3, 1, 7), fractions(2, 6, 4, 4)),
    "rare": (fractions(10**3, 1, 10), fractions(10**3, 10, 1)),
    "infinite one way": (fractions(5, 3, 0, 8), fractions(4, 6, 5, 1)),
    "infinite both ways": (fractions(5, 0, 3, 8), fractions(4, 1, 0, 11)),
    "randomised response": (fractions(3, 1), fractions(1, 3)),
}


def logs(pmf: Pmf) -> list[float]:
    return [math.log(mass) if mass else -math.inf for mass in pmf]


def product(pmf: Pmf, rounds: int) -> Pmf:
    return [
        math.prod(masses, start=Fraction(1)) for masses in itertools.product(pmf, repeat=rounds)
    ]


def hockey_stick(p: Pmf, q: Pmf, eps: float) -> float:
    s = Fraction(math.exp(eps))
    return float(sum((max(a - s * b, Fraction(0)) for a, b in zip(p, q, strict=True)), Fraction(0)))


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("rounds", [1, 3])
def test_an_ordered_pair_is_enclosed(name: str, rounds: int) -> None:
    """delta of the ordered pair, composed, against exact enumeration; also how tight it is."""
    p, q = PAIRS[name]
    accountant = Accountant().compose(DiscretePair(logs(p), logs(q), symmetric=False), rounds)
    both = product(p, rounds), product(q, rounds)
    for eps in (0.0, 0.1, 0.7, 1.3, 2.2):
        truth = hockey_stick(*both, eps)
        bounds = accountant.delta_bounds(eps)
        assert bounds.lower <= truth * (1 + 1e-14) and truth <= bounds.upper * (1 + 1e-14)
        assert bounds.upper <= bounds.lower * (1 + 1e-3) + 1e-100


@pytest.mark.parametrize("name", PAIRS)
def test_a_symmetric_pair_has_the_larger_of_both_profiles(name: str) -> None:
    """One round: the maximum over both orders, exactly."""
    p, q = PAIRS[name]
    accountant = Accountant().compose(DiscretePair(logs(p), logs(q)))
    for eps in (0.0, 0.05, 0.4, 0.9, 1.6):
        truth = max(hockey_stick(p, q, eps), hockey_stick(q, p, eps))
        bounds = accountant.delta_bounds(eps)
        assert bounds.lower <= truth * (1 + 1e-14) and truth <= bounds.upper * (1 + 1e-14)
        assert bounds.upper <= bounds.lower * (1 + 1e-3) + 1e-100


@pytest.mark.parametrize("name", PAIRS)
def test_a_symmetric_pair_covers_every_mixture_of_orders(name: str) -> None:
    """Three rounds, in some of which the target's values are exchanged: the upper side covers all."""
    p, q = PAIRS[name]
    accountant = Accountant().compose(DiscretePair(logs(p), logs(q)), 3)
    for swaps in range(4):
        ones, others = [Fraction(1)], [Fraction(1)]
        for i in range(3):
            a, b = (q, p) if i < swaps else (p, q)
            ones = [x * y for x in ones for y in a]
            others = [x * y for x in others for y in b]
        for eps in (0.0, 0.3, 1.0, 2.5):
            truth = hockey_stick(ones, others, eps)
            assert truth <= accountant.get_delta(eps) * (1 + 1e-14)


def test_the_law_of_an_ordered_pair() -> None:
    """`PLD.from_pmfs` on both sides of the exact divergence, also at negative epsilon."""
    p, q = PAIRS["infinite one way"]
    lower, upper = (PLD.from_pmfs(logs(p), logs(q), step=1e-3, side=side) for side in Side)
    for eps in (-1.0, -0.2, 0.0, 0.33, 1.9):
        truth = hockey_stick(p, q, eps)
        assert lower.delta(eps) <= truth * (1 + 1e-14) and truth <= upper.delta(eps) * (1 + 1e-14)
        assert upper.delta(eps) - lower.delta(eps) < 3e-3
    assert upper.infinity == pytest.approx(0.0, abs=1e-15) and lower.max_loss <= upper.max_loss


def test_one_loss_only_is_a_loss() -> None:
    """Under P every loss is log 2: no deviation, and yet delta is 1 - e^eps / 2."""
    pair = DiscretePair([0.0, -math.inf], [math.log(0.5), math.log(0.5)], symmetric=False)
    for rounds in (1, 3):
        accountant = Accountant().compose(pair, rounds)
        for eps in (0.0, 0.3, 0.6):
            truth = -math.expm1(eps - rounds * math.log(2.0))
            lower, upper = accountant.delta_bounds(eps)
            assert lower <= truth * (1 + 1e-13) and truth <= upper * (1 + 1e-13)
            assert upper <= 1.001 * lower


@pytest.mark.parametrize("rate", [1e-6, 1e-3, 0.5])
def test_a_rare_cohort_keeps_the_infinite_loss(rate: float) -> None:
    """Subsampled, one round: rate H at 1 + (e^eps - 1)/rate, also where only the infinite loss is left."""
    p, q = fractions(5, 4, 1), fractions(4, 6, 0)
    sampled = Subsampled(DiscretePair(logs(p), logs(q)), rate=rate, analysis="general")
    for eps in (0.0, 0.2, 0.5):
        inner = math.log1p(math.expm1(eps) / rate)
        truth = rate * max(hockey_stick(p, q, inner), hockey_stick(q, p, inner))
        lower, upper = Accountant().compose(sampled).delta_bounds(eps)
        assert lower <= truth * (1 + 1e-12) and truth <= upper * (1 + 1e-12)
        assert upper <= 1.001 * lower


class KnownPair(ProfilePair):
    """A symmetric pair by its exact profile: binary randomised response, so that dots meet one kink."""

    max_loss = Bounds(math.log(3.0), math.log(3.0))
    scale = 0.9
    top_mass = 0.75

    def profile(self, growth: np.ndarray, rtol: float, missed: float) -> Bounds:
        value = np.maximum(0.75 - (1.0 + growth) * 0.25, 0.0)
        return Bounds(value * (1 - 1e-15), value * (1 + 1e-15))


class Known(Mechanism):
    pair = KnownPair()

    def assumptions(self) -> dict[str, str]:
        return {}


def test_dots_find_an_isolated_kink() -> None:
    """On a lattice that has the largest loss: both sides are the pair itself."""
    lower, upper = (Known().pld(step=math.log(3.0) / 1000, side=side) for side in Side)
    for eps in (0.0, 0.5, 1.0):
        truth = 0.75 - math.exp(eps) * 0.25
        assert lower.delta(eps) <= truth <= upper.delta(eps)
        assert upper.delta(eps) - lower.delta(eps) < 1e-9 * truth


def test_values() -> None:
    """Equal pairs are equal and survive pickling."""
    p, q = (logs(pmf) for pmf in PAIRS["asymmetric"])
    pair = DiscretePair(p, q)
    assert pair == DiscretePair(tuple(p), np.array(q)) and hash(pair) == hash(DiscretePair(p, q))
    assert pickle.loads(pickle.dumps(pair)) == pair == DiscretePair(**pair.arguments())
