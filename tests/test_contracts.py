"""What every pair, every mechanism and every evaluator owes; a new kind need only be added to a list.

* A pair: its profile is convex, falling and 1 - s at most below s = 1; its sides enclose it; what hides is below, what
  reveals is above; a hidden cohort is below the whole; nothing lies beyond the largest loss.
* A mechanism: frozen, equal to what its arguments, pickle and JSON give; says what it assumes; attack below proof.
* An evaluator: the same question to all of them, and every bracket meets every other one.
"""

from __future__ import annotations

import itertools
import json
import math
import pickle
import warnings
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from functools import cache
from typing import Any

import numpy as np
import pytest
from test_checkpoint import MECHANISMS

import pld_shuffle
from pld_shuffle import (
    PLD,
    Accountant,
    AccuracyWarning,
    Bounds,
    CountedBits,
    DiscretePair,
    Epoch,
    Gaussian,
    Laplace,
    Mechanism,
    MixedRandomizers,
    MixedRR,
    PoissonGaussian,
    RenyiAccountant,
    Shuffled,
    ShuffledLDP,
    ShuffledRandomizer,
    ShuffledRR,
    Side,
    StickyCohort,
    Subsampled,
    SummedNoise,
    Threshold,
    randomizers,
)  # fmt: skip
from pld_shuffle.checkpoint import mechanism_from_state, mechanism_state
from pld_shuffle.composition import attempts as module
from pld_shuffle.composition.composition import Composition
from pld_shuffle.composition.contour import Contour
from pld_shuffle.mechanisms.imported import ImportedPair
from pld_shuffle.mechanisms.shuffled import Blanket
from pld_shuffle.pairs.pair import Cohort, Pair, Resolution
from pld_shuffle.pairs.profile import ProfilePair
from pld_shuffle.randomizers import BinaryRandomizedResponse, KRandomizedResponse, UnaryEncoding
from pld_shuffle.randomizers import Laplace as LocalLaplace
from pld_shuffle.trajectory import epsilon_trajectory

SKEW = DiscretePair(np.log([0.5, 0.3, 0.15, 0.05]), np.log([0.2, 0.3, 0.1, 0.4]))
LABELS = ShuffledRR(k=4, n=60, gamma=0.25, adversary="weak")
CLONES = ShuffledLDP(2.0, 50, analysis="stronger-clones")

KINDS: dict[str, Mechanism] = {
    "coins": CLONES,
    "coins, published": ShuffledLDP(2.0, 50, analysis="clones"),
    "neutral labels": LABELS,
    "infinite loss": ShuffledRR(k=4, n=12, gamma=0.25, adversary="strong"),
    "general amplification": Subsampled(CLONES, rate=0.1, analysis="general"),
    "hidden coins": Subsampled(CLONES, rate=0.1),
    "labels": ShuffledRandomizer(40, eps0=2.0, tv=0.3),
    "mixed coins": MixedRR(4, 1.0, ((1.0, 10), (3.0, 20))),
    "any randomizer": ShuffledLDP(2.0, 500),
    "hidden cohort of any randomizer": Subsampled(ShuffledLDP(2.0, 100), rate=0.1),
    "types": Shuffled(KRandomizedResponse(k=4, eps0=2.0), 200),
    "noise": Shuffled(LocalLaplace(eps0=1.0), 500),
    "noise, blanket": Shuffled(LocalLaplace(eps0=1.0), 200_000, analysis="blanket"),
    "bits": CountedBits(30, gamma=0.3, bits=2),
    "either order": SKEW,
    "one order": DiscretePair(SKEW.log_p, SKEW.log_q, symmetric=False),
    "Gaussian": Gaussian(sigma=2.0),
    "Laplace": Laplace(scale=2.0),
    "Poisson Gaussian": PoissonGaussian(sigma=2.0, rate=0.1),
}  # fmt: skip
EACH_KIND = pytest.mark.parametrize("name", KINDS)
#: Pairs that are known from both sides. Of the others another resolution is another polygon.
EACH_ENCLOSED = pytest.mark.parametrize("name", [name for name in KINDS if KINDS[name].pair.encloses])
EACH_PROFILE = pytest.mark.parametrize("name", [name for name in KINDS if isinstance(KINDS[name].pair, ProfilePair)])
SIDES = (Side.LOWER, Side.UPPER)


@cache
def laws(pair: Pair, coarse: float = 1.0) -> tuple[PLD, PLD]:
    """Both sides of one round on a lattice."""
    from pld_shuffle.composition.pld import formed

    step = coarse * pair.scale / 50.0
    return tuple(formed(pair, SIDES, Resolution(step, truncated_mass=1e-14, size_width=1e-4 * coarse)))


def losses_of(pair: Pair) -> np.ndarray:
    top = min(float(pair.max_loss.lower), 6.0 * pair.scale)
    return np.linspace(-0.9 * top, 0.9 * top, 19)


# --- pairs ----------------------------------------------------------------------------------------


@EACH_KIND
def test_sides_are_ordered_convex_falling_and_normalised(name: str) -> None:
    pair = KINDS[name].pair
    lower, upper = laws(pair)
    eps = losses_of(pair)
    low, high = lower.delta(eps), upper.delta(eps)
    assert np.all(low <= high * (1 + 1e-12)) and np.all(np.diff(high) <= 1e-13)
    assert np.all(high >= -np.expm1(eps) - 1e-12) and np.all(high <= 1.0)  # h(s) >= 1 - s
    s = np.exp(eps)
    slopes = np.diff(high) / np.diff(s)
    assert np.all(np.diff(slopes) >= -1e-9 * np.abs(slopes[:-1]) - 1e-12)
    assert np.all(high[9:] <= low[9:] * 1.2 + 1e-9) or not pair.encloses


@EACH_ENCLOSED
def test_a_coarser_resolution_is_farther_from_the_truth(name: str) -> None:
    """Merged masses are below and split masses above what they came from, up to the fine bracket's own width."""
    pair = KINDS[name].pair
    fine, coarse = laws(pair), laws(pair, 16.0)
    eps = losses_of(pair)
    assert np.all(coarse[0].delta(eps) <= fine[1].delta(eps) * (1 + 1e-12))
    assert np.all(coarse[1].delta(eps) >= fine[0].delta(eps) * (1 - 1e-12))


@EACH_PROFILE
def test_a_profile_is_enclosed_by_atoms(name: str) -> None:
    pair = KINDS[name].pair
    lower, upper = laws(pair)
    eps = losses_of(pair)[9:]
    known = pair.profile(np.expm1(eps), 1e-6, 1e-14)
    assert np.all(known.lower <= known.upper)
    assert np.all(upper.delta(eps) >= known.lower * (1 - 1e-9))
    assert not pair.encloses or np.all(lower.delta(eps) <= known.upper * (1 + 1e-9) + 1e-14)


@EACH_KIND
def test_the_largest_loss_is_the_end(name: str) -> None:
    pair = KINDS[name].pair
    low, top = (float(end) for end in pair.max_loss)
    assert 0.0 < low <= top
    for law in laws(pair):
        assert law.losses[-1] <= top + law.step + law.loss_error
        assert top < math.inf or law.delta(1e3) == law.infinity
    if top < math.inf and laws(pair)[0].infinity == 0.0:
        assert Accountant().compose(KINDS[name]).delta_bounds(top * (1 + 1e-12)) == Bounds(0.0, 0.0)


@EACH_KIND
@pytest.mark.parametrize("cohort", [Cohort(0.3), Cohort(0.3, presence=0.8, absence=0.2)], ids=["hidden", "absent"])
def test_a_hidden_cohort_is_below_the_whole(name: str, cohort: Cohort) -> None:
    pair = KINDS[name].pair
    try:
        hidden = pair.sampled(cohort)
    except TypeError:
        return  # no pair is proven
    eps = losses_of(pair)[9:]
    if cohort.absence == 0.0:  # fewer others may be there else
        assert np.all(laws(hidden)[0].delta(eps) <= laws(pair)[1].delta(eps) * (1 + 1e-9))
    assert hidden.max_loss.lower <= pair.max_loss.upper * (1 + 1e-12)


@pytest.mark.parametrize(
    ("name", "rounds"),
    [  # of the others a single round is seen through another polygon above the truth
        *itertools.product(("coins", "labels", "either order", "bits", "Gaussian", "Laplace"), (1, 2)),
        ("types", 2), ("any randomizer", 2),
    ],
)  # fmt: skip
def test_a_cohort_of_the_general_amplification_is_the_whole_elsewhere(name: str, rounds: int) -> None:
    """H_(1+g) = rate H_(1 + g/rate) of all rounds together, drawn once."""
    mechanism, rate = KINDS[name], 0.25
    hidden = (
        Subsampled(mechanism, rate=rate, analysis="general") if rounds == 1 else StickyCohort(mechanism, 2, rate=rate)
    )
    growth = np.expm1(np.array([0.2, 0.5]) * mechanism.pair.scale)
    whole = Composition([(mechanism.pair, rounds)], 1e-3).deltas(np.log1p(growth / rate))
    found = Composition([(hidden.pair, 1)], 1e-3).deltas(np.log1p(growth))
    assert found.upper == pytest.approx(rate * whole.upper, rel=2e-3)


# --- mechanisms -----------------------------------------------------------------------------------


CENTRAL = {name: getattr(pld_shuffle, name) for name in pld_shuffle.__all__} | {"inf": math.inf}
LOCAL = {name: getattr(randomizers, name) for name in randomizers.__all__}


def names(mechanism: Any) -> dict[str, Any]:
    """What its repr may name; a randomizer's noise is not the central one."""
    inner = getattr(mechanism, "mechanism", mechanism)
    own = {type(one).__name__: type(one) for one in (mechanism, inner)}
    return CENTRAL | (LOCAL if hasattr(inner, "randomizer") else {}) | own


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda one: type(one).__name__)
def test_a_mechanism_is_a_frozen_value_that_says_what_it_assumes(mechanism: Mechanism) -> None:
    state = json.loads(json.dumps(mechanism_state(mechanism), allow_nan=False))
    for back in (
        type(mechanism)(**mechanism.arguments()),
        pickle.loads(pickle.dumps(mechanism)),
        mechanism_from_state(state),
    ):
        assert back == mechanism and hash(back) == hash(mechanism)
        assert repr(back) == repr(mechanism) and repr(back.arguments()) == repr(mechanism.arguments())
    if not isinstance(mechanism, (DiscretePair, ImportedPair, Threshold, SummedNoise)):  # shortened
        assert eval(repr(mechanism), names(mechanism)) == mechanism
    assert len(repr(mechanism)) < 250
    with pytest.raises((FrozenInstanceError, AttributeError)):
        mechanism.n = 3  # type: ignore[attr-defined]
    said = mechanism.assumptions()
    assert set(said) >= {"neighbours", "adversary", "analysis", "sampling"}
    assert all(isinstance(text, str) and text.strip() for text in said.values())
    assert mechanism.users is None or mechanism.users >= 1


@EACH_KIND
def test_the_attack_is_below_the_proof(name: str) -> None:
    accountant = Accountant(1e-2).compose(KINDS[name], 2)
    scale = KINDS[name].pair.scale
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccuracyWarning)
        found = accountant.delta_bounds([0.3 * scale, 2.0 * scale])
    assert np.all(found.lower <= found.upper) and np.all(found.upper > 0.0)


# --- evaluators -----------------------------------------------------------------------------------

Asked = Callable[[Mechanism, int, float], Bounds | None]


def composed(mechanism: Mechanism, rounds: int, eps: float, integral: bool) -> Bounds | None:
    """By the contour, or by the lattice, whatever would have been preferred."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "preferred", lambda ledger, sketch: integral)
        composition = Composition([(mechanism.pair, rounds)], 1e-3)
        composition._one = None
        found = composition.deltas(eps)
    return None if integral and not isinstance(composition.latest, Contour) else found


@cache
def powers(pair: Pair, rounds: int) -> tuple[PLD, ...]:
    return tuple(law.self_compose(rounds) for law in laws(pair))


def by_powers_of_a_law(mechanism: Mechanism, rounds: int, eps: float) -> Bounds:
    lower, upper = powers(mechanism.pair, rounds)
    return Bounds(lower.delta(eps) - 1e-13, upper.delta(eps) + 1e-13)


def by_trajectory(mechanism: Mechanism, rounds: int, eps: float) -> Bounds | None:
    """delta, bracketed by the deltas at which the trajectory's epsilons lie on both sides of eps."""
    deviations = eps / (mechanism.pair.scale * math.sqrt(rounds))
    if mechanism.attack_pair is not mechanism.pair or not 1.0 < deviations < 5.0:
        return None  # near 0 and far out the others are enough, and much faster
    known = Accountant().compose(mechanism, rounds).delta_bounds(eps)
    ends = [known.lower * 0.99, known.upper * 1.01]
    if not 1e-300 < ends[0] < ends[1] < 1.0:
        return None
    low, high = (epsilon_trajectory([(mechanism, rounds)], delta, every=rounds) for delta in ends)
    assert low.upper[-1] >= eps >= high.lower[-1]
    return Bounds(*ends)


EVALUATORS: dict[str, Asked] = {
    "accountant": lambda m, rounds, eps: Composition([(m.pair, rounds)], 1e-3).deltas(eps),
    "contour": lambda m, rounds, eps: composed(m, rounds, eps, True),
    "lattice": lambda m, rounds, eps: composed(m, rounds, eps, False),
    "powers": by_powers_of_a_law,
    "trajectory": by_trajectory,
}


@pytest.mark.filterwarnings("ignore::pld_shuffle.AccuracyWarning")
@pytest.mark.parametrize("rounds", [1, 12])
@EACH_ENCLOSED
def test_all_evaluators_meet(name: str, rounds: int) -> None:
    """The same question, and every two brackets intersect."""
    mechanism = KINDS[name]
    scale = mechanism.pair.scale * math.sqrt(rounds)
    for multiple in (0.3, 2.5, 9.0):
        eps = multiple * scale
        found = {who: one for who, ask in EVALUATORS.items() if (one := ask(mechanism, rounds, eps)) is not None}
        assert len(found) >= 3
        for (first, a), (second, b) in itertools.combinations(found.items(), 2):
            assert a.lower <= b.upper * (1 + 1e-9) and b.lower <= a.upper * (1 + 1e-9), (first, second, found)
        if multiple == 2.5 and found["accountant"].lower > 0.0:
            renyi = RenyiAccountant().compose(mechanism, rounds).get_epsilon(found["accountant"].lower)
            assert eps <= renyi * (1 + 1e-9)


# --- twins ----------------------------------------------------------------------------------------


def weak(k: int, n: int, eps0: float) -> ShuffledRR:
    return ShuffledRR(k, n, eps0=eps0, adversary="weak")


BINARY = [-math.log1p(math.exp(-1.5)), -math.log1p(math.exp(1.5))]
#: Two descriptions of one thing, by codes that have little in common; rounds of each.
TWINS: dict[str, tuple[Mechanism, int, Mechanism, int]] = {
    **{
        f"blanket of {k}-RR x {rounds}": (
            Blanket(KRandomizedResponse(k=k, eps0=eps0), n), rounds, weak(k, n, eps0), rounds
        )
        for k, n, eps0, rounds in ((2, 800, 1.0, 1), (4, 1000, 2.0, 20), (10, 20_000, 3.0, 20))
    },
    **{
        f"{n} users of {len(shares)} equal budgets": (
            MixedRR(k, eps0, tuple((eps0, share) for share in shares)), 10, weak(k, n, eps0), 10
        )
        for k, n, eps0, shares in ((4, 10_000, 2.0, (9_999,)), (16, 300, 1.0, (100, 199)), (3, 10**6, 3.0, (999_999,)))
    },
    "one class": (MixedRR.of_classes(4, {2.0: 1000})[2.0], 1, weak(4, 1000, 2.0), 1),
    **{
        f"one ratio, tv={tv}": (
            MixedRandomizers(2.0, ((5.0, 999),), tv=tv), 1, ShuffledRandomizer(1000, tv=tv, p=math.exp(2.0), q=5.0), 1
        )
        for tv in (1.0, 0.4)
    },
    "two masses": (DiscretePair(BINARY, BINARY[::-1]), 7, weak(2, 1, 1.5), 7),
    "two masses, sampled": (
        Subsampled(DiscretePair(BINARY, BINARY[::-1]), rate=0.2, analysis="general"), 7,
        Subsampled(weak(2, 1, 1.5), rate=0.2, analysis="general"), 7,
    ),
    "a counted bit": (CountedBits(500, eps0=2.0), 3, Shuffled(BinaryRandomizedResponse(2.0), 500), 3),
    "a counted bit by gamma": (
        CountedBits(500, eps0=2.0), 3, CountedBits(500, gamma=2 / (1 + math.exp(2.0))), 3
    ),
    "two values": (weak(2, 1000, 2.0), 4, ShuffledLDP(2.0, 1000, analysis="stronger-clones"), 4),
    "a cohort of everybody": (Subsampled(CLONES, population=50, analysis="general"), 4, CLONES, 4),
    **{
        f"{m!r}, sticky for a round": (StickyCohort(m, 1, rate=0.01), 1, Subsampled(m, rate=0.01), 1)
        for m in (CLONES, CountedBits(100, eps0=2.0), ShuffledRR(4, 100, eps0=2.0))
    },
    "sticky and everybody": (StickyCohort(CLONES, 10, rate=1.0), 1, CLONES, 10),
    "noise in four rounds": (Gaussian(sigma=2.0), 4, Gaussian(sigma=1.0), 1),
}  # fmt: skip


@pytest.mark.parametrize("name", TWINS)
def test_twins_agree(name: str) -> None:
    one, count, other, rounds = TWINS[name]
    for delta in (1e-3, 1e-9, *[1e-30] * name.startswith("blanket")):
        found, known = (
            Composition([(m.pair, times)], 1e-3).epsilons(delta) for m, times in ((one, count), (other, rounds))
        )
        assert max(found.lower, known.lower) <= min(found.upper, known.upper) * (1 + 1e-9)
        assert found.upper <= found.lower * (1 + 1e-3) and known.upper <= known.lower * (1 + 1e-3)


# --- alternatives ---------------------------------------------------------------------------------

ALTERNATIVES = [
    (ShuffledLDP(1.0, 30), 1), (ShuffledLDP(2.0, 1_000), 10), (ShuffledLDP(4.0, 10_000), 1),
    (Shuffled(KRandomizedResponse(k=4, eps0=2.0), 100), 5), (Shuffled(BinaryRandomizedResponse(1.0), 10), 10),
    (Subsampled(ShuffledLDP(2.0, 100), rate=0.1), 10),
    (Shuffled(UnaryEncoding(k=4, eps0=1.0), 500), 3),
    (Shuffled(LocalLaplace(eps0=1.0), 12), 10), (Epoch(1.0, 10_000), 1), (Epoch(2.0, 10_000), 1000),
    (Subsampled(Shuffled(BinaryRandomizedResponse(8.1), 10_879), population=108_790, dropout_limit=0.2), 4),
]  # fmt: skip


def alternatives(mechanism: Mechanism) -> list[Mechanism]:
    """The same under its other analyses."""
    kind, given = type(mechanism), mechanism.arguments()
    found = []
    for analysis in ("clones", "stronger-clones", "reduction", "blanket", "general", "swap"):
        try:
            found.append(kind(**given | {"analysis": analysis}))
        except (TypeError, ValueError):
            continue
    if isinstance(mechanism, Subsampled):
        found += [kind(**given | {"mechanism": inner}) for inner in alternatives(mechanism.mechanism)]
    assert len(found) >= 1
    return found


@pytest.mark.filterwarnings("ignore::pld_shuffle.AccuracyWarning")
@pytest.mark.parametrize(("mechanism", "rounds"), ALTERNATIVES, ids=str)
def test_tightest_is_no_larger_than_any_alternative(mechanism: Mechanism, rounds: int) -> None:
    rtol = 1e-4
    tightest = Accountant(rtol).compose(mechanism, rounds).get_epsilon(1e-6)
    for other in alternatives(mechanism):
        least = Accountant(rtol).compose(other, rounds).epsilon_bounds(1e-6).lower
        if other.attack_pair is not other.pair:  # then the bracket's other end is an attack's
            least = Accountant(rtol).compose(other, rounds).get_epsilon(1e-6)
        assert tightest <= least * (1 + 2e-5), other
