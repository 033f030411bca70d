"""Planning: the safe end against brute force and against tighter accountants; what is infeasible."""

from __future__ import annotations

import math
import re
import warnings
from functools import partial

import pytest
from test_honesty import composed_of

from pld_shuffle import Accountant, Bounds, ShuffledLDP, ShuffledRR, Subsampled
from pld_shuffle.calibration import PARAMETERS, InfeasibleError, safe_end, solve
from pld_shuffle.composition.composition import AccuracyWarning
from pld_shuffle.fields import FieldError, Range

QUESTION = {"n": 5000, "population": 10**6, "rounds": 2000}
CLONES = {"analysis": "stronger-clones"}  # an analysis whose brackets enclose its own pair
SMALL = {"n": 1000, "rounds": 10, "rate": 0.5}


def spent(ledger, delta, rtol=2e-5):
    """Bounds on epsilon by an accountant fifty times tighter than the solver's."""
    accountant = composed_of(ledger, rtol)
    return accountant.epsilon_bounds(delta)


def exact(function):
    """Bounds of no width around a function."""
    return lambda value: Bounds(function(value), function(value))


# --- the search -----------------------------------------------------------------------------


@pytest.mark.parametrize("power", [0.1, 0.5, 1.0, 3.0, -0.5, -2.0])
@pytest.mark.parametrize("root", [1.0, 1.2345, 977.0, 999_999.0])
@pytest.mark.parametrize("whole", [True, False])
def test_the_search_finds_known_roots(power, root, whole):
    """value^power <= root^power, whose safe end is root itself, or the integer next to it."""
    end = safe_end(
        exact(lambda value: value**power), root**power, low=1, high=10**6,
        increasing=power > 0, whole=whole, rtol=1e-6,
    )  # fmt: skip
    if whole:
        assert end.value == (math.floor(root) if power > 0 else math.ceil(root))
        assert end.unmet in (None, end.value + (1 if power > 0 else -1))
    else:
        assert end.value == pytest.approx(root, rel=1e-6)
    assert end.value**power <= root**power
    assert end.unmet is None or end.unmet**power > root**power


@pytest.mark.parametrize("steps", [7, 29, 499])
def test_the_search_survives_steps_and_infinities(steps):
    """A staircase that is 0 at first and infinite at last: the search ends at the last good integer."""

    def staircase(value):
        if value > 900:
            return math.inf
        return float(value // steps) if value > 10 else 0.0

    for target in (0.0, 1.0, 2.5, 1e9):
        end = safe_end(exact(staircase), target, low=1, high=1000, increasing=True, whole=True)
        scan = max(value for value in range(1, 1001) if staircase(value) <= target)
        assert (end.value, end.unmet) == (scan, scan + 1 if scan < 1000 else None)


def test_brackets_that_are_loose_or_wide_end_on_the_safe_side():
    """Loose bounds whose upper end is 1 % too small: tight ones are asked there; the upper side alone decides."""
    search = partial(safe_end, target=100.0, low=1, high=10**6, increasing=True, whole=True)
    end = search(exact(float), loose=lambda value: Bounds(0.9 * value, 0.99 * value))
    assert (end.value, end.achieved, end.unmet) == (100, Bounds(100.0, 100.0), 101)
    end = search(lambda value: Bounds(0.95 * value, 1.05 * value))
    assert (end.value, end.unmet) == (95, 96) and end.unmet_bounds.lower < 100.0


@pytest.mark.parametrize(
    ("arguments", "error", "complaint"),
    [
        ({"low": 0.0}, ValueError, "low must be positive"),
        ({"low": 2.0, "high": 1.0}, ValueError, "low must not exceed high"),
        ({"rtol": 0.0}, ValueError, "rtol"),
        ({"start": -1.0}, ValueError, "start"),
        ({"target": -1.0}, ValueError, "target"),
        ({"target": math.nan}, ValueError, "target"),
        ({"low": 3.0, "high": 9.0}, InfeasibleError, r"even 3\.0 is not proven"),
        ({"spent": lambda value: (value, value)}, TypeError, "spent must return Bounds, got"),
        ({"loose": lambda value: (value, value), "target": 1.5}, TypeError, "loose must return Bounds, got"),
    ],
)  # fmt: skip
def test_bad_arguments_of_the_search(arguments, error, complaint):
    given = {"spent": exact(float), "target": 1.0, "low": 1.0, "high": 2.0, "increasing": True}
    with pytest.raises(error, match=complaint):
        safe_end(**(given | arguments))


# --- answers --------------------------------------------------------------------------------


#: What is solved for, in which plan, for which epsilon; and the accuracy, of answers that take seconds.
CASES = [
    ("eps0", QUESTION | CLONES, 2.0),
    ("eps0", {"mechanism": "rr", "k": 5, "adversary": "weak", "n": 2000, "rounds": 7}, 1.0),
    ("n", {"eps0": "1.5", "rounds": "40"} | CLONES, 1.0),
    ("n", {"eps0": 3.0, "population": 10**5, "rounds": 1000} | CLONES, 1.0),
    ("rounds", {"n": 5000, "eps0": 1.0} | CLONES, 2.0),
    ("rate", {"n": 1000, "eps0": 2.0, "rounds": 500} | CLONES, 1.0),
    ("population", {"n": 1000, "eps0": 2.0, "rounds": 500} | CLONES, 1.0),
    ("gamma", {"mechanism": "rr", "k": 4, "n": 10_000, "rounds": 10}, 1.0),
    ("sigma", {"mechanism": "gaussian", "sensitivity": 3.0, "rounds": 10}, 1.0),
    ("rate", {"mechanism": "poisson-gaussian", "sigma": 0.5, "norm": 0.5, "rounds": 5}, 1.0, 1e-3),
    ("scale", {"mechanism": "laplace", "rounds": 100}, 2.0, 0.02),
]


@pytest.mark.parametrize(("parameter", "plan", "epsilon", "rtol"), [(*case, None)[:4] for case in CASES])
def test_both_sides_of_the_answer(parameter, plan, epsilon, rtol, delta=1e-6):
    """The value meets the target and its neighbour fails, by an accountant fifty times tighter, or as accurate."""
    value_rtol = 1e-4 if rtol is None else 1e-2
    given = {} if rtol is None else {"rtol": rtol, "value_rtol": value_rtol}
    found = solve(parameter, plan, epsilon=epsilon, delta=delta, **given)
    assert found.achieved.upper <= epsilon
    assert found.achieved == found.run.epsilon_bounds(delta)
    met = spent(found.run.ledger, delta, rtol or 2e-5)
    assert met.upper <= epsilon
    assert found.achieved.lower <= met.upper and met.lower <= found.achieved.upper
    # The neighbour, built by itself from the fields.
    beside = solve(parameter, plan, epsilon=epsilon, delta=1.0, bounds=(found.unmet, found.unmet), **given)
    failed = spent(beside.run.ledger, delta, rtol or 2e-5)
    assert failed.lower > epsilon
    # Numbers that are no integers may lie nearer to each other than their brackets of epsilon.
    assert found.tight is bool(found.unmet_epsilon.lower > epsilon)
    assert found.unmet_epsilon.lower <= failed.upper and failed.lower <= found.unmet_epsilon.upper
    kind = PARAMETERS[parameter]
    if kind.whole:
        assert abs(found.unmet - found.value) == 1 and found.tight
    else:
        assert abs(found.unmet - found.value) <= value_rtol * found.value
    assert (found.unmet > found.value) is (found.end == "largest")


@pytest.mark.parametrize(("parameter", "plan"), [
    ("n", {"eps0": 1.5, "rounds": 40}), ("n", {"randomizer": "unary-encoding", "k": 16, "eps0": 2.0}),
    ("eps0", {"randomizer": "subset-selection", "k": 8, "size": 2, "n": 2000}),
    ("rounds", {"n": 1000, "eps0": 2.0, "rate": 0.1}), ("rate", {"n": 1000, "eps0": 2.0, "rounds": 500}),
])  # fmt: skip
def test_the_default_analysis_proves_no_better_value(parameter, plan):
    """Lower ends are an attack's and may lie below the target; the neighbour is not proven to meet it all the same."""
    found = solve(parameter, plan, epsilon=1.0, delta=1e-6)
    assert found.achieved == found.run.epsilon_bounds(1e-6)
    assert found.achieved.upper <= 1.0 < found.unmet_epsilon.upper
    assert found.tight is bool(found.unmet_epsilon.lower > 1.0)
    # Not for want of digits: an accountant five times tighter gives the same to that accuracy.
    beside = solve(parameter, plan, epsilon=1.0, delta=1.0, bounds=(found.unmet, found.unmet))
    assert spent(beside.run.ledger, 1e-6).upper == pytest.approx(found.unmet_epsilon.upper, rel=3e-4)


def test_pure_privacy_in_closed_form():
    """At delta = 0 losses add up: eps0 = epsilon / rounds."""
    found = solve("eps0", {"n": 50, "rounds": 500}, epsilon=1.0, delta=0.0)
    assert found.unmet is not None and found.value <= 0.002 < found.unmet <= found.value * (1 + 2e-4)


def test_texts_numbers_and_blanks():
    """As in a sweep: None and blanks count as not given, also for the parameter that is solved for."""
    found = solve("eps0", SMALL, epsilon=1.0, delta=1e-7)
    texts = {name: str(value) for name, value in SMALL.items()} | {"eps0": None, "population": " "}
    floats = {name: float(value) for name, value in SMALL.items()}
    for plan in (SMALL, texts, floats):
        assert solve("eps0", plan, epsilon=1.0, delta=1e-7) == found


def test_a_range_that_meets_the_target_to_its_end():
    found = solve("rounds", {"n": 10**6, "eps0": 0.1}, epsilon=5, delta=1e-6, bounds=(1, 300))
    assert (found.value, found.unmet, found.unmet_epsilon, found.tight) == (300, None, None, False)
    silent = {"mechanism": "rr", "k": 3, "gamma": 1.0, "n": 10}
    assert solve("rounds", silent, epsilon=0, delta=0).value == PARAMETERS["rounds"].high


# --- plans as functions ---------------------------------------------------------------------


def test_a_function_of_another_parameter():
    """Rounds with a weak randomizer, a parameter the solver has never heard of, next to twelve cohorts."""
    cohorts = [(Subsampled(ShuffledLDP(2.0, 800 + 50 * i, **CLONES), rate=0.2), 5) for i in range(12)]

    def ledger(weak):
        return [*cohorts, (ShuffledLDP(0.5, 2000, **CLONES), weak)]

    found = solve("weak", ledger, epsilon=3.0, delta=1e-6, bounds=Range(1, 10**6, 1, True, whole=True))
    assert found.run.ledger == tuple(ledger(found.value))
    assert spent(ledger(found.value), 1e-6).upper <= 3.0 < spent(ledger(found.unmet), 1e-6).lower
    assert found.unmet == found.value + 1


PLAN = {"n": 100, "eps0": 1.0}
BAD = [
    ({"parameter": "eps0"}, FieldError, "eps0: is solved for"),
    ({"plan": PLAN | {"k": 3}}, FieldError, "k: has no meaning"),
    ({"plan": PLAN | {"eps0": True}}, TypeError, "eps0"),
    ({"parameter": "rate", "plan": PLAN | {"rounds": 0}}, FieldError, "rounds: must be in [1, 1000000000]"),
    ({"parameter": "rate", "plan": PLAN | {"population": 10**4}}, FieldError, "at most one of"),
    ({"parameter": "spread", "plan": lambda value: []}, ValueError, "give a Range as bounds"),
    ({"parameter": "eps0", "plan": lambda value: [(value, 1)]}, TypeError, "mechanism"),
    ({"bounds": (5, 2)}, ValueError, "bounds must be (low, high)"),
    ({"bounds": (0.5, 2)}, TypeError, "low of bounds"),
    *(({"bounds": bounds}, TypeError, "bounds must be (low, high)") for bounds in (2, (1, 2, 3), "ab", {1, 2})),
    *(
        ({"parameter": "eps0", "plan": lambda value, ledger=ledger: ledger}, TypeError,
         "what plan returns must be (mechanism, count) pairs")
        for ledger in (None, 3, [1], "ab", [(1, 2, 3)], ShuffledLDP(1.0, 10))
    ),
]  # fmt: skip


@pytest.mark.parametrize(("change", "error", "complaint"), BAD, ids=lambda value: str(value).split(" at 0x")[0])
def test_bad_arguments(change, error, complaint):
    given = {"parameter": "rounds", "plan": PLAN, "epsilon": 1.0, "delta": 1e-6}
    with pytest.raises(error, match=re.escape(complaint)):
        solve(**(given | change))


# --- what cannot be met ---------------------------------------------------------------------


@pytest.mark.parametrize(("parameter", "plan", "epsilon", "best"), [
    ("rounds", {"n": 50, "eps0": 5.0, "analysis": "clones"}, 0.1, "rounds=1 "),
    ("eps0", {"n": 50, "rounds": 9}, 0.0, "eps0=1e-09 "),
    ("rate", {"n": 9, "eps0": 500.0, "rounds": 10**6}, 1, "rate=1e-12 "),
    ("population", {"n": 1000, "eps0": 3} | CLONES, 0, "population=2000 "),
    ("eps0", lambda eps0: [(ShuffledLDP(eps0=eps0, n=10, **CLONES), 1)], 0.0, "eps0=1e-09 "),
])  # fmt: skip
def test_infeasible_targets_say_what_the_most_private_value_spends(parameter, plan, epsilon, best):
    bounds = (1500, 2000) if parameter == "population" else None
    with pytest.raises(InfeasibleError) as raised:
        solve(parameter, plan, epsilon=epsilon, delta=0.0, bounds=bounds)
    for words in (f"no {parameter} in", f"epsilon={float(epsilon)!r}", f"even {best}spends epsilon"):
        assert words in str(raised.value)


def test_unmet_accuracy_is_said_of_the_answer_only(monkeypatch):
    """A warning about a bracket of the answer is repeated; about others on the way it is not."""
    honest = Accountant.epsilon_bounds

    def warning(self, delta):
        ((_, count),) = self.ledger
        warnings.warn(f"{count} rounds were difficult", AccuracyWarning, stacklevel=2)
        return honest(self, delta)

    monkeypatch.setattr(Accountant, "epsilon_bounds", warning)
    with pytest.warns(AccuracyWarning) as caught:
        found = solve("rounds", {"n": 1000, "eps0": 1.0}, epsilon=1.0, delta=1e-6)
    said = [str(item.message) for item in caught]
    assert said == [f"{count} rounds were difficult" for count in (found.value, found.unmet)]


# --- would_exceed ---------------------------------------------------------------------------


def test_would_exceed_counts():
    """All counts against the most rounds there can be, asked in an unhelpful order."""
    mechanism = ShuffledLDP(eps0=1.0, n=1000)
    most = solve("rounds", {"eps0": 1.0, "n": 1000}, epsilon=2.0, delta=1e-6).value
    accountant = Accountant().compose(mechanism, 10)
    for count in (10**6, most - 9, most - 10, 1, most - 11, most, most - 10, most - 9):
        asked = accountant.would_exceed(mechanism, epsilon=2.0, delta=1e-6, count=count)
        assert asked is (count + 10 > most)
    assert not accountant.would_exceed(mechanism, epsilon=3.0, delta=1e-6, count=most)
    assert accountant.would_exceed(mechanism, epsilon=2.0, delta=1e-9, count=most - 10)
    assert accountant.ledger == ((mechanism, 10),)


def test_would_exceed_at_the_ends():
    mechanism, pure = ShuffledRR(k=3, n=100, gamma=0.5), ShuffledLDP(eps0=0.25, n=100)
    accountant = Accountant()
    for run, epsilon, delta, count, exceeds in (
        (mechanism, 10.0, 0.0, 1, True),  # losses are infinite
        (mechanism, math.inf, 0.0, 1, False),
        (mechanism, 0.0, 1.0, 1, False),
        (pure, 1.0, 0.0, 4, False),
        (pure, 1.0, 0.0, 5, True),
    ):
        asked = accountant.would_exceed(run, epsilon=epsilon, delta=delta, count=count)
        assert asked is exceeds
    assert accountant.ledger == ()
