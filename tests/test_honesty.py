"""Honesty: every bracket of the accountant contains the truth; and, apart from that, it is tight.

The truth comes from oracles.py: 60-digit arithmetic on atoms, no lattice, for few users, hidden, absent or neither
(stored in data/exact_deltas.json, which `python tests/test_honesty.py` writes). Many users: test_widths.py and
test_coins.py. A bracket that is merely wide fails the tests of tightness only; test_mutations.py shows that one that is
off by 1e-3 is caught.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import oracles as o
import pytest
from mpmath import mpf

from pld_shuffle import Accountant, Bounds, PoissonSampled, ShuffledLDP, ShuffledRandomizer, ShuffledRR, Subsampled
from pld_shuffle.composition.composition import AccuracyWarning

RTOL = 1e-3
TIGHT_ABOVE = 1e-100  # rtol is promised where the upper bound is at least this
INPUT_ROUNDING = mpf(10) ** -13  # gamma, rates and e^eps0 are rounded on the way in

Mechanism = ShuffledLDP | ShuffledRandomizer | ShuffledRR | Subsampled | PoissonSampled


class Case(NamedTuple):
    """Rounds, the epsilons to ask about (shares of the largest loss, or values if it is inf), and how accurately."""

    rounds: list[tuple[Mechanism, int]]
    shares: tuple[float, ...] = (0.0, 0.02, 0.1, 0.3, 0.6, 0.9, 0.999)
    rtol: float = RTOL


def exact_atoms(mechanism: Mechanism) -> o.Atoms:
    """The oracle's pair for a mechanism, from the parameters a person would type."""
    if isinstance(mechanism, Subsampled) and mechanism.analysis == "general":
        return o.subsampled(exact_atoms(mechanism.mechanism), mpf(mechanism.rate))
    if isinstance(mechanism, Subsampled | PoissonSampled):
        rate, away = (
            (mechanism.rate, mechanism.dropout) if isinstance(mechanism, Subsampled) else (1, 1 - mechanism.rate)
        )
        laws = [[*((1 - mpf(away)) * mass for mass in law), away] for law in label_laws(mechanism.mechanism)]
        return o.hidden_cohort(*laws, mechanism.mechanism.n, mpf(rate))
    if isinstance(mechanism, ShuffledRR) and mechanism.adversary != "weak":
        conditional = mechanism.adversary == "strong-conditional"
        return o.strong(mechanism.n, mechanism.k, mpf(mechanism.gamma), conditional=conditional)
    first, second, others = label_laws(mechanism)
    return o.shuffled_pair(first, second, [others] * (mechanism.n - 1))


def label_laws(mechanism: Mechanism) -> tuple[list[Any], list[Any], list[Any]]:
    """Of the target's two values and of every other user, with "nothing" as the last label."""
    if isinstance(mechanism, ShuffledLDP):
        low = 1 / (o.exp_of(mechanism.eps0) + 1)
        half = 1 / o.exp_of(mechanism.eps0) / 2 if mechanism.analysis == "clones" else low
        return [1 - low, low, 0], [low, 1 - low, 0], [half, half, 1 - 2 * half]
    if isinstance(mechanism, ShuffledRandomizer):
        p = o.exp_of(mechanism.eps0) if mechanism.p is None else mpf(mechanism.p)
        q = p if mechanism.q is None else mpf(mechanism.q)
        return o.reduction_laws(p, min(mpf(mechanism.tv), (p - 1) / (p + 1), q - 1), q)
    low, rest = mpf(mechanism.gamma) / mechanism.k, mpf(mechanism.gamma) * (mechanism.k - 2) / mechanism.k
    high = 1 - mpf(mechanism.gamma) + low
    return [high, low, rest, 0], [low, high, rest, 0], [low, low, rest, 1 - mpf(mechanism.gamma)]


def ldp(n: int, eps0: float, analysis: str = "stronger-clones") -> ShuffledLDP:
    return ShuffledLDP(eps0=eps0, n=n, analysis=analysis)


def rr(n: int, k: int, gamma: float, adversary: str) -> ShuffledRR:
    return ShuffledRR(k=k, n=n, gamma=gamma, adversary=adversary)


def hidden(mechanism: Mechanism, **given: float) -> Subsampled:
    return Subsampled(mechanism, **given, analysis="general")


def half_hidden(mechanism: Mechanism, presence: float) -> Subsampled:
    return Subsampled(mechanism, rate=0.5, dropout=1.0 - presence)


DENSE = tuple(number / 20.0 for number in range(20)) + (0.98, 0.999)
INFINITE = (0.0, 0.3, 1.0, 2.5, 5.0, 9.0)  # epsilons where the largest loss is infinite
FEW = (0.0, 0.05, 0.3, 0.8, 0.99)

CASES: dict[str, Case] = {
    "ldp n=1": Case([(ldp(1, 1.25), 1)]),
    "ldp n=1, 10 rounds": Case([(ldp(1, 1.25), 10)]),
    "ldp n=1, 300 rounds, dense": Case([(ldp(1, 0.125), 300)], DENSE),
    "clones n=1, 7 rounds": Case([(ldp(1, 2.0, "clones"), 7)]),
    "ldp n=2": Case([(ldp(2, 3.0), 1)]),
    "ldp n=2, 300 rounds": Case([(ldp(2, 0.5), 300)]),
    "clones n=2, 100 rounds": Case([(ldp(2, 0.25, "clones"), 100)]),
    "ldp n=3, 40 rounds": Case([(ldp(3, 1.0), 40)]),
    "clones n=3, 40 rounds": Case([(ldp(3, 1.0, "clones"), 40)]),
    "ldp n=5": Case([(ldp(5, 2.0), 1)]),
    "ldp n=5, 8 rounds": Case([(ldp(5, 2.0), 8)]),
    "clones n=5, 8 rounds": Case([(ldp(5, 0.125, "clones"), 8)]),
    "ldp n=20": Case([(ldp(20, 4.0), 1)]),
    "clones n=20": Case([(ldp(20, 1.0, "clones"), 1)]),
    "ldp n=20, 3 rounds": Case([(ldp(20, 6.0), 3)], FEW),
    "clones n=20, 3 rounds": Case([(ldp(20, 1.5, "clones"), 3)], FEW),
    "ldp n=130": Case([(ldp(130, 0.125), 1)]),
    "reduction n=1, 6 rounds": Case([(ShuffledRandomizer(1, eps0=1.0, tv=0.25), 6)]),
    "reduction n=3, 4 rounds": Case([(ShuffledRandomizer(3, eps0=2.0, tv=0.5), 4)]),
    "reduction n=12": Case([(ShuffledRandomizer(12, eps0=1.5, tv=0.125), 1)]),
    "reduction n=5, 2 rounds, p and q": Case([(ShuffledRandomizer(5, p=3.0, q=1.75, tv=0.25), 2)]),
    "reduction n=4, q = 1 + tv": Case([(ShuffledRandomizer(4, p=4.0, q=1.25, tv=0.5), 3)]),
    "reduction n=5, q = 1 + tv, nobody neutral": Case(
        [(ShuffledRandomizer(5, p=54.598150033144236, q=1.9640275800758171, tv=1.0), 2)], FEW
    ),
    "subsampled reduction n=3, 3 rounds": Case(
        [(hidden(ShuffledRandomizer(3, eps0=2.0, tv=0.5), rate=0.25), 3)], FEW
    ),
    "weak n=1, 6 rounds": Case([(rr(1, 4, 0.25, "weak"), 6)]),
    "weak n=2, 5 rounds": Case([(rr(2, 3, 0.5, "weak"), 5)]),
    "weak n=3, 4 rounds": Case([(rr(3, 4, 0.25, "weak"), 4)]),
    "weak n=3, binary, 30 rounds": Case([(rr(3, 2, 0.75, "weak"), 30)]),
    "weak n=5, 2 rounds": Case([(rr(5, 3, 0.25, "weak"), 2)]),
    "weak n=20": Case([(rr(20, 4, 0.5, "weak"), 1)]),
    "weak n=20, wide alphabet": Case([(rr(20, 50, 0.75, "weak"), 1)]),
    "strong n=1, 3 rounds": Case([(rr(1, 4, 0.25, "strong"), 3)], INFINITE),
    "strong n=2, 4 rounds": Case([(rr(2, 3, 0.5, "strong"), 4)], INFINITE),
    "strong n=3, 20 rounds": Case([(rr(3, 2, 0.999, "strong"), 20)], INFINITE),
    "strong n=5, 4 rounds": Case([(rr(5, 4, 0.75, "strong"), 4)], INFINITE),
    "strong n=20": Case([(rr(20, 2, 0.875, "strong"), 1)], INFINITE),
    "strong n=20, 2 rounds": Case([(rr(20, 3, 0.75, "strong"), 2)], INFINITE),
    "strong, nobody truthful": Case([(rr(5, 3, 1.0, "strong"), 2)], INFINITE),
    "conditional n=1": Case([(rr(1, 4, 0.25, "strong-conditional"), 1)], INFINITE),
    "conditional n=5, 3 rounds": Case([(rr(5, 2, 0.5, "strong-conditional"), 3)], INFINITE),
    "conditional n=20": Case([(rr(20, 2, 0.9375, "strong-conditional"), 1)], INFINITE),
    "subsampled ldp n=1, 100 rounds": Case([(hidden(ldp(1, 1.0), rate=0.125), 100)]),
    "subsampled ldp n=2, 30 rounds": Case([(hidden(ldp(2, 2.0), population=16), 30)]),
    "subsampled clones n=5, 6 rounds": Case([(hidden(ldp(5, 1.0, "clones"), population=40), 6)], FEW),
    "subsampled ldp n=20, 2 rounds": Case([(hidden(ldp(20, 3.0), population=2000), 2)], FEW),
    "subsampled weak n=3, 4 rounds": Case([(hidden(rr(3, 3, 0.5, "weak"), rate=0.25), 4)]),
    "subsampled strong n=5, 3 rounds": Case(
        [(hidden(rr(5, 3, 0.5, "strong"), population=80), 3)], INFINITE
    ),
    "subsampled conditional n=3, 4 rounds": Case(
        [(hidden(rr(3, 3, 0.75, "strong-conditional"), rate=0.5), 4)], INFINITE
    ),
    "hidden ldp n=3, 4 rounds": Case([(Subsampled(ldp(3, 1.0), rate=0.25), 4)]),
    **{
        f"absent {1 - presence}, {sampled.__name__} {type(mechanism).__name__}": Case(
            [(sampled(mechanism, presence), 1)], (0.0, 0.1, 0.3, 0.6, 0.9)
        )
        for sampled in (half_hidden, PoissonSampled) for presence in (0.25, 0.75)
        for mechanism in (ldp(5, 1.0), rr(5, 4, 0.25, "weak"), ShuffledRandomizer(5, tv=0.25, p=3.0, q=4.0))
    },
    # Small numbers keep their digits: shares of silent others, biases, coins where nobody is silent, losses in cells.
    **{
        f"nearly silent, n={n}, p={p}": Case(
            [(ShuffledRandomizer(n, tv=1e-15, p=p, q=1.0 + 40 * 2.0**-52), 1)], (0.15, 0.87, 0.995)
        )
        for n, p in ((6, 2.0), (2, 2.0), (2, 100.0), (3, 2.0))
    },
    **{
        f"hidden {name}, rate={rate}": Case([(Subsampled(mechanism, rate=rate), 1)], (0.0, 0.3, 0.9), 1e-5)
        for rate in (1e-12, 3e-11, 1e-7)
        for name, mechanism in (
            ("ldp n=1", ldp(1, 2.0)), ("ldp n=5", ldp(5, 2.0)), ("weak n=3", rr(3, 4, 0.25, "weak")),
            ("reduction n=3", ShuffledRandomizer(3, tv=1e-6, eps0=1.0)),
        )
    },
    "hidden reduction n=5, nobody silent": Case(
        [(Subsampled(ShuffledRandomizer(5, tv=0.75, p=1.0131593555290765, q=1.0 + 2.0**-51), rate=3.5e-8), 1)],
        (0.3, 0.48, 0.7, 0.99), 3e-5,
    ),
    **{
        f"losses next to nothing, eps0={eps0}, rate={rate}": Case(
            [(Subsampled(ldp(6, eps0), rate=rate) if rate < 1.0 else ldp(6, eps0), 1)], (0.01, 0.3, 0.6, 0.9)
        )
        for eps0, rate in ((1e-9, 1e-9), (1e-6, 1e-10), (1e-3, 1e-12), (1e-9, 1e-12), (1e-9, 1.0))
    },
    "everybody sampled": Case([(hidden(ldp(3, 1.0), population=3), 10)]),
    "mix of cohorts": Case([(ldp(2, 1.0), 3), (ldp(3, 0.5), 4), (ldp(5, 1.5), 2)]),
    "mix of analyses": Case([(ldp(3, 1.0), 5), (ldp(3, 1.0, "clones"), 5)]),
    "mix of mechanisms": Case(
        [(rr(2, 3, 0.5, "weak"), 2), (ldp(2, 3.0), 3), (hidden(ldp(2, 2.0), population=16), 3)], FEW
    ),
    "mix with infinite losses": Case(
        [(rr(3, 2, 0.9375, "strong"), 3), (ldp(3, 1.0), 3), (rr(2, 4, 0.25, "weak"), 1)], INFINITE
    ),
    "loud round among quiet ones": Case([(ldp(1, 8.0), 1), (ldp(3, 0.125), 20)], FEW),
}  # fmt: skip


class Truth(NamedTuple):
    """The largest loss of a case, the epsilons asked for and the exact deltas."""

    largest_loss: mpf
    epsilons: tuple[float, ...]
    deltas: tuple[mpf, ...]


def exact_composition(rounds: list[tuple[Mechanism, int]]) -> o.Composition:
    return o.Composition([(exact_atoms(m), count) for m, count in rounds])


def epsilons_of(name: str, largest_loss: mpf) -> tuple[float, ...]:
    scale = 1.0 if largest_loss == o.mp.inf else float(largest_loss)
    return tuple(share * scale for share in CASES[name].shares)


def computed_truth(name: str) -> Truth:
    """From the oracle: seconds for many rounds."""
    composition = exact_composition(CASES[name].rounds)
    most = composition.largest_loss()
    epsilons = epsilons_of(name, most)
    return Truth(most, epsilons, tuple(composition.delta(epsilon) for epsilon in epsilons))


DATA = Path(__file__).resolve().parent / "data" / "exact_deltas.json"
STORED: dict[str, dict[str, object]] = json.loads(DATA.read_text("utf-8")) if DATA.exists() else {}
STORED_DIGITS = 40


@cache
def truth_of(name: str) -> Truth:
    """The stored truth of a case."""
    largest, deltas = STORED[name]["largest_loss"], STORED[name]["deltas"]
    assert isinstance(deltas, list)
    return Truth(mpf(largest), epsilons_of(name, mpf(largest)), tuple(map(mpf, deltas)))


def store() -> None:
    """Write the truths of all cases."""
    stored = {}
    for name in CASES:
        truth = computed_truth(name)
        digits = [o.mpmath.nstr(delta, STORED_DIGITS) for delta in truth.deltas]
        stored[name] = {"largest_loss": o.mpmath.nstr(truth.largest_loss, STORED_DIGITS), "deltas": digits}
    DATA.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


@pytest.mark.parametrize("name", ["ldp n=5", "clones n=1, 7 rounds", "strong n=2, 4 rounds", "weak n=3, 4 rounds"])
def test_stored_truths_are_computed_again(name: str) -> None:
    """Some: a truth that were wrong would lie outside of the library's bracket, which shares no code with it."""
    stored, computed = truth_of(name), computed_truth(name)
    assert stored.epsilons == computed.epsilons
    for ours, theirs in zip(
        (stored.largest_loss, *stored.deltas), (computed.largest_loss, *computed.deltas), strict=True
    ):
        assert ours == theirs or abs(ours - theirs) <= mpf(10) ** -37 * abs(theirs)


def composed_of(rounds: Iterable[tuple[Any, int]], rtol: float = RTOL) -> Accountant:
    accountant = Accountant(rtol=rtol)
    for mechanism, count in rounds:
        accountant.compose(mechanism, count)
    return accountant


@cache
def answer_of(name: str) -> tuple[Bounds, ...]:
    """The library's brackets at the same epsilons."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccuracyWarning)  # wide is not dishonest
        bounds = composed_of(CASES[name].rounds, CASES[name].rtol).delta_bounds(np.array(truth_of(name).epsilons))
    return tuple(Bounds(*pair) for pair in zip(bounds.lower, bounds.upper, strict=True))


def complaint(bounds: Bounds, truth: mpf, loss_error: mpf = INPUT_ROUNDING) -> str:
    """Empty if lower <= truth <= upper, else what is wrong and by which factor."""
    if not (math.isfinite(bounds.lower) and math.isfinite(bounds.upper)):
        return f"not finite: {bounds}"
    if not 0.0 <= bounds.lower <= bounds.upper <= 1.0:
        return f"out of order: {bounds}"
    if not mpf(float(bounds.upper)) >= truth * (1 - loss_error):
        return f"upper {bounds.upper!r} is below the truth by {float(1 - bounds.upper / truth):.3e}"
    if not mpf(float(bounds.lower)) <= truth * (1 + loss_error):
        excess = bounds.lower / truth - 1 if truth else mpf(bounds.lower)
        return f"lower {bounds.lower!r} is above the truth by {float(excess):.3e}"
    return ""


@pytest.mark.parametrize("name", CASES)
def test_bounds_contain_the_truth(name: str) -> None:
    _, epsilons, truths = truth_of(name)
    for epsilon, truth, bounds in zip(epsilons, truths, answer_of(name), strict=True):
        assert not complaint(bounds, truth), (name, epsilon, complaint(bounds, truth))


@pytest.mark.parametrize("name", CASES)
def test_bounds_are_tight(name: str) -> None:
    for epsilon, bounds in zip(truth_of(name).epsilons, answer_of(name), strict=True):
        if bounds.upper >= TIGHT_ABOVE:
            width = bounds.upper / bounds.lower - 1.0 if bounds.lower > 0.0 else math.inf
            assert width <= RTOL, (name, epsilon, bounds, width)


# --- random ledgers -------------------------------------------------------------------------


def random_mechanism(rng: np.random.Generator) -> Mechanism:
    n = int(rng.choice([1, 2, 3, 4, 5, 8, 20]))
    gamma = float(rng.choice([rng.uniform(0.001, 1.0), 1.0 - 10.0 ** rng.uniform(-9, -1)]))
    mechanism: ShuffledLDP | ShuffledRR
    if rng.random() < 1 / 3:
        analysis = str(rng.choice(["clones", "stronger-clones"]))
        mechanism = ldp(n, math.exp(rng.uniform(-4.0, 2.5)), analysis)
    else:
        adversary = str(rng.choice(["strong", "weak", "strong-conditional"]))
        mechanism = rr(n, int(rng.choice([2, 3, 4, 10, 1000])), gamma, adversary)
    if rng.random() < 0.3:
        return Subsampled(mechanism, rate=float(rng.choice([1.0, 0.5, 0.1, 1e-3, 1e-6])), analysis="general")
    return mechanism


@pytest.mark.parametrize("seed", range(30))
def test_random_ledgers(seed: int) -> None:
    """Honest and tight on mechanisms that nobody picked."""
    rng = np.random.default_rng(seed)
    rounds = []
    for _ in range(int(rng.choice([1, 1, 2, 3]))):
        mechanism = random_mechanism(rng)
        cohort = mechanism.mechanism if isinstance(mechanism, Subsampled) else mechanism
        rounds.append((mechanism, int(rng.integers(1, 5)) if cohort.n <= 3 else 1))
    exact = exact_composition(rounds)
    most = min(float(exact.largest_loss()), 5.0 * len(rounds))
    accountant = composed_of(rounds)
    for share in (0.0, rng.uniform(0.0, 0.3), rng.uniform(0.3, 0.95)):
        truth, bounds = exact.delta(share * most), accountant.delta_bounds(share * most)
        assert not complaint(bounds, truth), (rounds, share, complaint(bounds, truth))
        wide = bounds.upper > max(TIGHT_ABOVE, (1.0 + RTOL) * bounds.lower)
        assert not wide, (rounds, share, bounds)


# --- epsilon --------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "deltas"), [
    ("ldp n=2, 300 rounds", (0.5, 0.05, 1e-6, 1e-20, 1e-60)),
    ("weak n=3, 4 rounds", (0.5, 0.05, 1e-3, 1e-6, 1e-20)),
    ("mix of mechanisms", (0.5, 1e-2, 1e-4)),
    ("strong n=20", (0.1, 0.05, 1e-3, 1e-20)),
])  # fmt: skip
def test_epsilon_bounds_contain_the_truth(name: str, deltas: tuple[float, ...]) -> None:
    rounds = CASES[name].rounds
    exact = exact_composition(rounds)
    accountant = composed_of(rounds)
    for delta in deltas:
        if exact.delta(1e5) > delta:  # the mass at infinity
            assert accountant.get_epsilon(delta) == math.inf
            continue
        bounds = accountant.epsilon_bounds(delta)
        assert bounds.lower <= bounds.upper
        if exact.delta(0.0) > delta:
            assert exact.delta(bounds.upper) <= delta * (1 + 1e-10)
            if bounds.lower > 0.0:
                assert exact.delta(bounds.lower) >= delta * (1 - 1e-10)
            assert exact.delta(bounds.lower) <= 1.01 * delta or bounds.upper - bounds.lower < 1e-3


if __name__ == "__main__":
    store()
