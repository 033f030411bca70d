"""The ledger: order facts, pooling, permutations, bad input, and what a query may return."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pld_shuffle import (
    PLD,
    Accountant,
    Bounds,
    Mechanism,
    ShuffledLDP,
    ShuffledRR,
    Side,
    Subsampled,
)
from pld_shuffle.composition.pld import EXCESS
from pld_shuffle.mechanisms.imported import ImportedPair
from pld_shuffle.renyi import RenyiAccountant
from pld_shuffle.trajectory import epsilon_trajectory

NAN = float("nan")
INF = float("inf")


def epsilon(mechanism: Mechanism, rounds: int = 1, delta: float = 1e-6) -> Bounds:
    return Accountant().compose(mechanism, rounds).epsilon_bounds(delta)


# -- order facts, each by post-processing: the lower end of the better may not exceed the upper of the worse


@settings(max_examples=15, deadline=None)
@given(n=st.integers(2, 3000), eps0=st.floats(0.2, 6.0), rounds=st.integers(1, 30))
def test_more_users_less_eps0_fewer_rounds_never_cost_more(
    n: int, eps0: float, rounds: int
) -> None:
    base = epsilon(ShuffledLDP(eps0, n, analysis="stronger-clones"), rounds)
    assert epsilon(ShuffledLDP(eps0, 2 * n, analysis="stronger-clones"), rounds).lower <= base.upper
    assert (
        epsilon(ShuffledLDP(0.8 * eps0, n, analysis="stronger-clones"), rounds).lower <= base.upper
    )
    assert base.lower <= epsilon(ShuffledLDP(eps0, n, analysis="stronger-clones"), rounds + 1).upper
    assert base.lower <= epsilon(ShuffledLDP(eps0, n, "clones"), rounds).upper
    assert base.upper <= rounds * eps0


@settings(max_examples=10, deadline=None)
@given(k=st.integers(2, 9), n=st.integers(2, 2000), gamma=st.floats(0.05, 0.9))
def test_weaker_adversaries_and_smaller_cohorts_never_cost_more(
    k: int, n: int, gamma: float
) -> None:
    weak = epsilon(ShuffledRR(k, n, gamma=gamma, adversary="weak"), 3)
    strong = epsilon(ShuffledRR(k, n, gamma=gamma, adversary="strong"), 3)
    conditional = epsilon(ShuffledRR(k, n, gamma=gamma, adversary="strong-conditional"), 3)
    assert weak.lower <= strong.upper and strong.lower <= conditional.upper
    sampled = Subsampled(
        ShuffledRR(k, n, gamma=gamma, adversary="weak"), rate=0.3, analysis="general"
    )
    assert epsilon(sampled, 3).lower <= weak.upper


def test_weak_binary_rr_is_stronger_clones() -> None:
    """docs/theory.md, section 2: for k = 2 the weak adversary is the clones pair with the stronger rate."""
    eps0 = 1.7
    rr = Accountant(rtol=1e-6).compose(ShuffledRR(2, 400, eps0=eps0, adversary="weak"), 5)
    ldp = Accountant(rtol=1e-6).compose(ShuffledLDP(eps0, 400, analysis="stronger-clones"), 5)
    one, other = rr.delta_bounds(1.0), ldp.delta_bounds(1.0)
    assert one.lower <= other.upper and other.lower <= one.upper
    assert one.upper <= one.lower * (1 + 1e-6)


# -- the ledger


def test_count_is_repetition_and_order_does_not_matter() -> None:
    first, second = ShuffledLDP(2.0, 500, analysis="stronger-clones"), ShuffledRR(3, 400, gamma=0.5)
    at_once = Accountant().compose(first, 3).compose(second, 2)
    one_by_one = Accountant()
    for mechanism in (second, first, first, second, first):
        assert one_by_one.compose(mechanism) is one_by_one
    assert dict(at_once.ledger) == dict(one_by_one.ledger) == {first: 3, second: 2}
    for delta in (1e-3, 1e-9, 1e-60):
        one, other = at_once.epsilon_bounds(delta), one_by_one.epsilon_bounds(delta)
        assert one.upper == pytest.approx(other.upper, rel=1e-9)
        assert one.lower == pytest.approx(other.lower, rel=1e-9)


def test_a_full_cohort_is_no_subsampling() -> None:
    plain = ShuffledLDP(2.0, 300, analysis="stronger-clones")
    assert epsilon(Subsampled(plain, population=300, analysis="general"), 4) == epsilon(plain, 4)


def test_queries_change_nothing() -> None:
    acc = Accountant().compose(ShuffledLDP(2.0, 500, analysis="stronger-clones"), 7)
    before = acc.epsilon_bounds(1e-6)
    acc.delta_bounds(np.linspace(0.0, 3.0, 7))
    acc.epsilon_bounds([1e-3, 1e-30])
    again = Accountant().compose(ShuffledLDP(2.0, 500, analysis="stronger-clones"), 7)
    assert acc.epsilon_bounds(1e-6).lower <= before.upper
    assert again.epsilon_bounds(1e-6) == before and acc.ledger == again.ledger


def test_an_answer_does_not_depend_on_earlier_questions() -> None:
    """A composition tilted towards tiny deltas must not answer for large ones beyond its reach."""
    acc = Accountant().compose(ShuffledLDP(1.0, 1000, analysis="stronger-clones"))
    acc.delta_bounds(0.999999)
    for eps in (0.0, 0.01, 0.3):
        fresh = (
            Accountant(rtol=1e-5)
            .compose(ShuffledLDP(1.0, 1000, analysis="stronger-clones"))
            .delta_bounds(eps)
        )
        later = acc.delta_bounds(eps)
        assert later.lower <= fresh.upper and fresh.lower <= later.upper
        assert later.upper <= later.lower * 1.001
    fresh = (
        Accountant(rtol=1e-5)
        .compose(ShuffledLDP(1.0, 1000, analysis="stronger-clones"))
        .epsilon_bounds(0.01)
    )
    later = acc.epsilon_bounds(0.01)
    assert 0.0 < later.lower <= fresh.upper and fresh.lower <= later.upper


def test_heavy_tails_stay_tight() -> None:
    """A small rate and a large eps0: rare large losses, whose window needs small Chernoff rates."""
    acc = Accountant().compose(
        Subsampled(ShuffledLDP(5.0, 5000, analysis="stronger-clones"), population=10**6), 2000
    )
    bounds = acc.epsilon_bounds(1e-6)  # an AccuracyWarning would be an error here
    deltas = acc.delta_bounds(bounds.upper)
    assert bounds.lower < bounds.upper and deltas.upper <= deltas.lower * 1.001


def test_scalars_and_arrays() -> None:
    acc = Accountant().compose(ShuffledLDP(2.0, 500, analysis="stronger-clones"), 7)
    assert isinstance(acc.get_delta(0.5), float) and isinstance(acc.get_epsilon(1e-6), float)
    deltas = acc.delta_bounds(np.array([[0.0, 0.5], [1.0, INF]]))
    assert deltas.lower.shape == deltas.upper.shape == (2, 2)
    assert np.all(deltas.lower <= deltas.upper) and np.all(deltas.upper[0] > deltas.upper[1])
    assert deltas.upper[1, 1] == 0.0
    assert acc.get_epsilon(np.array([1e-6]))[0] == pytest.approx(acc.get_epsilon(1e-6), rel=1e-3)


def test_an_empty_ledger_and_a_report_without_information_cost_nothing() -> None:
    for acc in (
        Accountant(),
        Accountant().compose(ShuffledRR(3, 10, gamma=1.0, adversary="weak"), 9),
    ):
        assert acc.delta_bounds(0.0) == Bounds(0.0, 0.0)
        assert acc.epsilon_bounds(0.0) == Bounds(0.0, 0.0)


def test_pure_dp_is_exact() -> None:
    acc = (
        Accountant()
        .compose(ShuffledLDP(1.0, 1, analysis="stronger-clones"), 50)
        .compose(ShuffledLDP(0.5, 40, analysis="stronger-clones"), 4)
    )
    assert acc.epsilon_bounds(0.0) == Bounds(52.0, 52.0)
    assert acc.delta_bounds(52.0) == Bounds(0.0, 0.0)
    below = acc.delta_bounds(51.9)
    assert 0.0 < below.lower <= below.upper <= below.lower * 1.001
    strong = Accountant().compose(ShuffledRR(3, 20, gamma=0.5))
    assert strong.get_epsilon(0.0) == INF
    never = (1 - 0.5 / 3) ** 19 * 0.5  # the target tells the truth and nobody shows the other value
    least = strong.delta_bounds(INF)
    assert least.lower <= never <= least.upper <= least.lower * 1.001


def test_trajectory_is_the_accountant_after_each_prefix() -> None:
    rows: list[tuple[Mechanism, int]] = [
        (
            Subsampled(ShuffledLDP(2.0, 400 + 7 * i, analysis="stronger-clones"), population=10**5),
            1 + i % 2,
        )
        for i in range(30)
    ]
    found = epsilon_trajectory(rows, 1e-7, every=13)
    for i, row in enumerate([13, 26, 30]):
        acc = Accountant(rtol=1e-5)
        for mechanism, count in rows[:row]:
            acc.compose(mechanism, count)
        truth = acc.epsilon_bounds(1e-7)
        assert found.rounds[i] == acc.rounds
        assert found.lower[i] <= truth.upper and truth.lower <= found.upper[i]
        assert found.upper[i] <= found.lower[i] * 1.001


# -- pieces for advanced users


def test_plds_know_their_side() -> None:
    upper, lower = (
        ShuffledLDP(2.0, 100, analysis="stronger-clones").pld(step=1e-3, side=side)
        for side in (Side.UPPER, Side.LOWER)
    )
    assert upper.delta(0.5) >= lower.delta(0.5) >= upper.delta(0.5) * 0.999
    assert upper.self_compose(4).delta(0.5) == pytest.approx(
        upper.compose(upper).compose(upper).compose(upper).delta(0.5), rel=1e-9
    )
    with pytest.raises(ValueError, match="sides differ"):
        upper.compose(lower)
    with pytest.raises(ValueError, match="steps differ"):
        upper.compose(ShuffledLDP(2.0, 100, analysis="stronger-clones").pld(step=2e-3))
    with pytest.raises(ValueError, match="read-only"):
        upper.masses[0] = 1.0
    assert isinstance(upper, PLD)


def test_mechanisms_are_values() -> None:
    assert ShuffledLDP(2, np.int64(10), analysis="stronger-clones") == ShuffledLDP(
        2.0, 10, analysis="stronger-clones"
    )
    assert (
        len(
            {
                ShuffledLDP(2.0, 10, analysis="stronger-clones"),
                ShuffledLDP(2.0, 10, analysis="stronger-clones"),
                ShuffledLDP(2.0, 11, analysis="stronger-clones"),
            }
        )
        == 2
    )
    for mechanism in (
        ShuffledLDP(2.0, 10, "clones"),
        ShuffledRR(4, 10, gamma=0.25),
        ShuffledRR(4, 10, eps0=2.0, adversary="weak"),
        Subsampled(
            ShuffledLDP(2.0, 10, analysis="stronger-clones"), population=100, analysis="general"
        ),
        Subsampled(
            ShuffledLDP(2.0, 10, analysis="stronger-clones"), rate=0.125, analysis="general"
        ),
    ):
        assert eval(repr(mechanism)) == mechanism
        assert set(mechanism.assumptions()) == {"neighbours", "adversary", "analysis", "sampling"}


# -- bad input: a clear error that names the argument and shows the value

LDP = ShuffledLDP(2.0, 10, analysis="stronger-clones")
BAD: list[tuple[Callable[[], Any], type[Exception], str]] = [
    *[
        (lambda v=v: ShuffledLDP(v, 10, analysis="stronger-clones"), ValueError, f"eps0 .*{v!r}")
        for v in (NAN, INF, -INF, -1.0, 0.0, 0, 701)
    ],
    *[
        (lambda v=v: ShuffledLDP(v, 10, analysis="stronger-clones"), TypeError, "eps0 .*")
        for v in ("2", None, True, LDP, [1.0], 1j)
    ],
    *[
        (lambda v=v: ShuffledLDP(1.0, v, analysis="stronger-clones"), ValueError, f"n .*{v!r}")
        for v in (0, -5, 10**14)
    ],
    *[
        (lambda v=v: ShuffledLDP(1.0, v, analysis="stronger-clones"), TypeError, "n .*")
        for v in (2.5, NAN, INF, "10", None, True, LDP)
    ],
    (
        lambda: ShuffledLDP(1.0, 10, "best"),
        ValueError,
        "analysis .*'best'",
    ),
    *[(lambda v=v: ShuffledRR(v, 10, gamma=0.5), ValueError, f"k .*{v!r}") for v in (1, 0, -3)],
    *[(lambda v=v: ShuffledRR(v, 10, gamma=0.5), TypeError, "k .*") for v in (2.5, "3", None)],
    *[
        (lambda v=v: ShuffledRR(3, 10, gamma=v), ValueError, f"gamma .*{v!r}")
        for v in (0.0, -0.1, 1.1, NAN, INF)
    ],
    (lambda: ShuffledRR(3, 10, gamma="x"), TypeError, "gamma .*'x'"),  # type: ignore[arg-type]
    (lambda: ShuffledRR(3, 10, eps0=0.0), ValueError, "eps0 .*0.0"),
    (lambda: ShuffledRR(3, 10, gamma=0.5, adversary="lazy"), ValueError, "adversary .*'lazy'"),
    (lambda: ShuffledRR(3, 10), ValueError, "exactly one of gamma and eps0"),
    (lambda: ShuffledRR(3, 10, gamma=0.5, eps0=1.0), ValueError, "exactly one of gamma and eps0"),
    *[
        (lambda v=v: Subsampled(LDP, rate=v, analysis="general"), ValueError, f"rate .*{v!r}")
        for v in (0.0, -0.1, 1.5, NAN)
    ],
    (lambda: Subsampled(LDP, population=9, analysis="general"), ValueError, "population .*9"),
    (lambda: Subsampled(LDP, population=20.5, analysis="general"), TypeError, "population .*20.5"),  # type: ignore[arg-type]
    (lambda: Subsampled(LDP, analysis="general"), ValueError, "exactly one of population and rate"),
    (
        lambda: Subsampled(LDP, rate=0.5, population=20, analysis="general"),
        ValueError,
        "exactly one of",
    ),
    (lambda: Subsampled(3.0, rate=0.5, analysis="general"), TypeError, "mechanism .*3.0"),  # type: ignore[arg-type]
    (
        lambda: Subsampled(
            Subsampled(LDP, rate=0.5, analysis="general"), rate=0.5, analysis="general"
        ),
        TypeError,
        "mechanism ",
    ),
    (lambda: Accountant(rtol=0.0), ValueError, "rtol .*0.0"),
    (lambda: Accountant(rtol=NAN), ValueError, "rtol .*nan"),
    (lambda: Accountant(rtol="fine"), TypeError, "rtol .*'fine'"),  # type: ignore[arg-type]
    (lambda: Accountant().compose(0.5), TypeError, "mechanism .*0.5"),  # type: ignore[arg-type]
    *[
        (lambda v=v: Accountant().compose(LDP, v), error, "count .*")
        for v, error in ((0, ValueError), (-1, ValueError), (1.5, TypeError), (NAN, TypeError))
    ],
    *[
        (lambda v=v: Accountant().compose(LDP).get_epsilon(v), ValueError, "delta .*")
        for v in (-1e-9, 1.1, NAN, INF, [0.5, 2.0])
    ],
    *[
        (lambda v=v: Accountant().compose(LDP).get_epsilon(v), TypeError, "delta .*")
        for v in ("1e-6", None, LDP, True)
    ],
    *[
        (lambda v=v: Accountant().compose(LDP).get_delta(v), ValueError, "epsilon .*")
        for v in (-0.1, NAN, [1.0, NAN])
    ],
    (lambda: Accountant().compose(LDP).get_delta("1"), TypeError, "epsilon .*'1'"),
    (lambda: LDP.pld(step=0.0), ValueError, "step .*0.0"),
    (lambda: LDP.pld(side="upper"), TypeError, "side .*'upper'"),  # type: ignore[arg-type]
    (lambda: LDP.pld(missed=0.5), ValueError, "missed .*0.5"),
    (lambda: LDP.pld(step=1e-9), MemoryError, "step"),
    (lambda: LDP.pld().self_compose(0), ValueError, "count .*0"),
    (lambda: LDP.pld().compose(1.0), TypeError, "other .*1.0"),  # type: ignore[arg-type]
    (lambda: LDP.pld().delta(NAN), ValueError, "epsilon .*nan"),
    (lambda: epsilon_trajectory([], 1e-6), ValueError, "rounds"),
    (lambda: epsilon_trajectory([(LDP, 1)], 2.0), ValueError, "delta .*2.0"),
    (lambda: epsilon_trajectory([(LDP, 0)], 1e-6), ValueError, "count .*0"),
    (lambda: epsilon_trajectory([(LDP, 1)], 1e-6, every=0), ValueError, "every .*0"),
]


@pytest.mark.parametrize("call,error,message", BAD, ids=[str(i) for i in range(len(BAD))])
def test_bad_input_is_refused(
    call: Callable[[], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()


def test_a_refused_round_is_not_half_added() -> None:
    acc = Accountant().compose(LDP)
    with pytest.raises(ValueError):
        acc.compose(LDP, 0)
    assert acc.ledger == ((LDP, 1),) and math.isfinite(acc.get_epsilon(1e-6))


def test_rates_next_to_one_are_accounted_or_refused() -> None:
    """The largest gamma below 1 gets an answer from every adversary, one nearer to 1 a clear refusal."""
    nearest = 1.0 - 1e-12
    for adversary in ("strong", "weak", "strong-conditional"):
        for n in (1, 1000):
            mechanism = ShuffledRR(k=2, n=n, gamma=nearest, adversary=adversary)
            bounds = Accountant(rtol=0.05).compose(mechanism).epsilon_bounds(1e-6)
            assert 0.0 <= bounds.lower <= bounds.upper
        with pytest.raises(ValueError, match=r"gamma must be 1 .* got 0\.99999999999999"):
            ShuffledRR(k=2, n=1000, gamma=1.0 - 1e-14, adversary=adversary)
        assert ShuffledRR(k=2, n=1000, gamma=1.0, adversary=adversary).truth == 0.0


def test_plds_with_too_much_mass_are_refused() -> None:
    """Up to the shared allowance an upper law stands; beyond it, the message says what to change."""
    numbers: dict[str, Any] = {"step": 0.1, "side": Side.UPPER, "max_loss": 1.0, "slack": 0.0}
    law = PLD.build(np.array([1.0 + 0.9 * EXCESS]), 1, infinity=1.0 + 0.9 * EXCESS, **numbers)
    assert law.infinity == 1.0
    for mass, infinity in ((1.0 + 1.1 * EXCESS, 0.0), (0.5, 1.0 + 1.1 * EXCESS), (-0.1, 0.0)):
        with pytest.raises(ArithmeticError, match=r"upper PLD with mass .*gamma, eps0"):
            PLD.build(np.array([mass]), 1, infinity=infinity, **numbers)


def test_plds_are_compared_by_value() -> None:
    """Each number counts but for the benchmark's; equal ones have one hash."""
    law = ShuffledLDP(eps0=1.0, n=50, analysis="stronger-clones").pld(step=0.01)
    again = ShuffledLDP(eps0=1.0, n=50, analysis="stronger-clones").pld(step=0.01)
    assert law is not again and law == again and len({law, again}) == 1
    assert replace(law, atoms=law.atoms + 1) == law
    masses = law.masses.copy()
    masses[3] = np.nextafter(masses[3], 1.0)
    for change in (
        {"masses": masses}, {"masses": law.masses[:-1]}, {"low": law.low + 1}, {"step": 0.02},
        {"side": Side.LOWER}, {"infinity": 0.1}, {"max_loss": 2.0}, {"slack": 1e-9},
    ):  # fmt: skip
        other: PLD = replace(law, **change)  # type: ignore[arg-type]
        assert law != other
    assert law != 1.0


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies_of_plds_are_read_only(again: Callable[[PLD], PLD]) -> None:
    law = ShuffledLDP(eps0=1.0, n=50, analysis="stronger-clones").pld(step=0.01)
    found = again(law)
    assert found == law and hash(found) == hash(law) and not found.masses.flags.writeable
    assert found.delta(0.1) == law.delta(0.1)


@pytest.mark.parametrize("maker", [lambda: Accountant(0.01), RenyiAccountant])
@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy])
def test_copies_of_ledgers_are_independent(again: Any, maker: Any) -> None:
    """A round composed into one of the two is not in the other, and the settings are the same."""
    mechanism = ShuffledLDP(eps0=1.0, n=50, analysis="stronger-clones")
    acc = maker().compose(mechanism, 3)
    before = acc.get_epsilon(1e-3)
    found = again(acc)
    assert type(found) is type(acc) and found.state_dict() == acc.state_dict()
    found.compose(mechanism, 5)
    assert (acc.rounds, found.rounds) == (3, 8) and acc.get_epsilon(1e-3) == before
    assert found.get_epsilon(1e-3) == maker().compose(mechanism, 8).get_epsilon(1e-3)


def test_would_exceed_refuses_what_compose_refuses() -> None:
    """Another neighbouring relation: the same error in the same words, and nothing is added."""
    other = ImportedPair(
        step=0.5, low=1, masses=(0.1,), infinity=0.0, neighbours="add-or-remove-one"
    )
    acc = Accountant().compose(ShuffledLDP(eps0=1.0, n=50, analysis="stronger-clones"))
    with pytest.raises(ValueError, match="neighbouring relation") as composed:
        acc.compose(other)
    with pytest.raises(ValueError, match="neighbouring relation") as asked:
        acc.would_exceed(other, epsilon=10.0, delta=0.5)
    assert str(composed.value) == str(asked.value) and acc.rounds == 1
    assert not Accountant().would_exceed(other, epsilon=1.0, delta=0.5)


def test_a_trajectory_as_a_data_frame() -> None:
    pytest.importorskip("pandas")
    found = epsilon_trajectory([(LDP, 2), (LDP, 3)], 1e-4)
    frame = found.to_frame()
    assert list(frame.columns) == ["rounds", "lower", "upper"]
    assert list(frame["rounds"]) == [2, 5] and list(frame["upper"]) == list(found.upper)
