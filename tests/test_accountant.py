"""The ledger: pooling, permutations, and what a query may return. Bad input: test_border.py."""

from __future__ import annotations

import copy
import math
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pytest

from pld_shuffle import (
    PLD,
    Accountant,
    Bounds,
    DiscretePair,
    RenyiAccountant,
    ShuffledLDP,
    ShuffledRR,
    Side,
    Subsampled,
)
from pld_shuffle.composition.pld import EXCESS

ldp = partial(ShuffledLDP, analysis="stronger-clones")


# -- the ledger


def test_count_is_repetition_and_order_does_not_matter() -> None:
    first, second = ldp(2.0, 500), ShuffledRR(3, 400, gamma=0.5)
    at_once = Accountant().compose(first, 3).compose(second, 2)
    one_by_one = Accountant()
    for mechanism in (second, first, first, second, first):
        assert one_by_one.compose(mechanism) is one_by_one
    assert dict(at_once.ledger) == dict(one_by_one.ledger) == {first: 3, second: 2}
    for delta in (1e-3, 1e-9, 1e-60):
        one, other = at_once.epsilon_bounds(delta), one_by_one.epsilon_bounds(delta)
        assert one.upper == pytest.approx(other.upper, rel=1e-9)
        assert one.lower == pytest.approx(other.lower, rel=1e-9)


def test_an_answer_does_not_depend_on_earlier_questions() -> None:
    """A composition tilted towards tiny deltas must not answer for large ones beyond its reach."""
    acc = Accountant().compose(ldp(1.0, 1000))
    acc.delta_bounds(0.999999)
    for eps in (0.0, 0.01, 0.3):
        fresh = Accountant(rtol=1e-5).compose(ldp(1.0, 1000)).delta_bounds(eps)
        later = acc.delta_bounds(eps)
        assert later.lower <= fresh.upper and fresh.lower <= later.upper
        assert later.upper <= later.lower * 1.001
    fresh = Accountant(rtol=1e-5).compose(ldp(1.0, 1000)).epsilon_bounds(0.01)
    later = acc.epsilon_bounds(0.01)
    assert 0.0 < later.lower <= fresh.upper and fresh.lower <= later.upper


def test_pure_dp_is_exact() -> None:
    acc = Accountant().compose(ldp(1.0, 1), 50).compose(ldp(0.5, 40), 4)
    assert acc.epsilon_bounds(0.0) == Bounds(52.0, 52.0)
    assert acc.delta_bounds(52.0) == Bounds(0.0, 0.0)
    below = acc.delta_bounds(51.9)
    assert 0.0 < below.lower <= below.upper <= below.lower * 1.001
    strong = Accountant().compose(ShuffledRR(3, 20, gamma=0.5))
    assert strong.get_epsilon(0.0) == math.inf
    never = (1 - 0.5 / 3) ** 19 * 0.5  # the target tells the truth and nobody shows the other value
    least = strong.delta_bounds(math.inf)
    assert least.lower <= never <= least.upper <= least.lower * 1.001


# -- pieces for advanced users


def test_plds_know_their_side() -> None:
    upper, lower = (ldp(2.0, 100).pld(step=1e-3, side=side) for side in (Side.UPPER, Side.LOWER))
    assert upper.delta(0.5) >= lower.delta(0.5) >= upper.delta(0.5) * 0.999
    assert upper.self_compose(4).delta(0.5) == pytest.approx(
        upper.compose(upper).compose(upper).compose(upper).delta(0.5), rel=1e-9
    )
    with pytest.raises(ValueError, match="sides differ"):
        upper.compose(lower)
    with pytest.raises(ValueError, match="steps differ"):
        upper.compose(ldp(2.0, 100).pld(step=2e-3))
    with pytest.raises(ValueError, match="read-only"):
        upper.masses[0] = 1.0
    assert isinstance(upper, PLD)


LDP = ldp(2.0, 10)


def test_plds_with_too_much_mass_are_refused() -> None:
    """Up to the shared allowance an upper law stands; beyond it, the message says what to change."""
    numbers: dict[str, Any] = {"step": 0.1, "side": Side.UPPER, "max_loss": 1.0, "loss_error": 0.0}
    law = PLD.build(np.array([1.0 + 0.9 * EXCESS]), 1, infinity=1.0 + 0.9 * EXCESS, **numbers)
    assert law.infinity == 1.0
    for mass, infinity in ((1.0 + 1.1 * EXCESS, 0.0), (0.5, 1.0 + 1.1 * EXCESS), (-0.1, 0.0)):
        with pytest.raises(ArithmeticError, match=r"upper PLD with mass .*gamma, eps0"):
            PLD.build(np.array([mass]), 1, infinity=infinity, **numbers)


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_of_plds_are_read_only(again: Callable[[PLD], PLD]) -> None:
    law = ldp(eps0=1.0, n=50).pld(step=0.01)
    found = again(law)
    assert np.array_equal(found.masses, law.masses) and not found.masses.flags.writeable
    assert found.delta(0.1) == law.delta(0.1)


@pytest.mark.parametrize("maker", [Accountant, RenyiAccountant])
def test_ledgers_are_compared_by_value_and_shown_in_short(maker: Any) -> None:
    """Settings and rounds count, the order does not; a log of 2,000 cohorts has a line."""
    one, other = maker().compose(LDP, 2).compose(ldp(1.0, 9)), maker().compose(ldp(1.0, 9))
    assert one != other and one == other.compose(LDP).compose(LDP)
    assert Accountant(0.01) != Accountant() != RenyiAccountant()
    for n in range(10, 2010):
        one.compose(ldp(1.0, n))
    assert repr(other).endswith(f"ledger=[({ldp(1.0, 9)!r}, 1), ({LDP!r}, 2)])")
    assert repr(one).endswith(", ... and 1,999 more])") and len(repr(one)) < 400
    many = (-math.log(500.0),) * 500
    assert len(repr(maker().compose(DiscretePair(many, many), 3))) < 420
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)


# --- One accountant in several threads: no round is lost, and questions see whole ledgers. Copies are ind ---

THREADS, TIMES = 8, 2_000
CLONES = ShuffledLDP(eps0=1.0, n=1000, analysis="stronger-clones")
WEAK = ShuffledRR(k=3, n=500, eps0=1.0, adversary="weak")


@pytest.fixture(autouse=True)
def _threads_take_turns_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def at_once(*works: Callable[[], None]) -> None:
    """Each of `works` in a thread of its own, all started together; the first error of any is raised."""
    start = threading.Barrier(len(works))
    with ThreadPoolExecutor(len(works)) as pool:
        for done in [pool.submit(lambda work=work: (start.wait(), work())) for work in works]:
            done.result()


@pytest.mark.parametrize("kind", [Accountant, RenyiAccountant])
def test_no_round_is_lost(kind: type[Accountant] | type[RenyiAccountant]) -> None:
    """Release 0.2.0 counted 145,185 of 160,000."""
    accountant = kind()

    def work() -> None:
        for _ in range(TIMES):
            accountant.compose(CLONES).compose(WEAK, 2)

    at_once(*[work] * THREADS)
    assert dict(accountant.ledger) == {CLONES: THREADS * TIMES, WEAK: 2 * THREADS * TIMES}
    assert accountant.rounds == 3 * THREADS * TIMES


def test_questions_while_rounds_are_added() -> None:
    """Answers are those of some ledger in between, also of a budget; the last one is that of all rounds.

    Copies of a ledger that grows by ever new mechanisms are some ledger in between, too.
    """
    accountant, added, growing = Accountant(0.01), 40, Accountant()
    spent: list[float] = []

    def work() -> None:
        for _ in range(added):
            accountant.compose(CLONES)

    def grow() -> None:
        for n in range(1, 501):
            growing.compose(ShuffledLDP(eps0=1.0, n=n))

    def ask() -> None:
        for _ in range(4):
            spent.append(accountant.get_epsilon(1e-6))
            accountant.would_exceed(CLONES, epsilon=5.0, delta=1e-6)
            assert Accountant.from_json(accountant.to_json()).rounds <= 6 * added

    def keep() -> None:
        for _ in range(50):
            for twin in (pickle.loads(pickle.dumps(growing)), copy.copy(growing)):
                assert [m.n for m, _ in twin.ledger] == list(range(1, len(twin.ledger) + 1))  # type: ignore[attr-defined]

    at_once(*[work] * 6, ask, ask, grow, keep, keep)
    assert accountant.rounds == 6 * added and growing.rounds == 500
    most = Accountant(0.01).compose(CLONES, 6 * added).epsilon_bounds(1e-6)
    assert all(0.0 <= epsilon <= most.upper * 1.01 for epsilon in spent)
    assert most.lower <= accountant.get_epsilon(1e-6) <= most.upper * 1.01


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
@pytest.mark.parametrize("kind", [Accountant, RenyiAccountant])
def test_a_copy_has_a_lock_and_rounds_of_its_own(
    kind: type[Accountant] | type[RenyiAccountant],
    again: Callable[[Accountant | RenyiAccountant], Accountant | RenyiAccountant],
) -> None:
    """Also while a thread holds the original's lock, and whatever has been asked before."""
    accountant = kind().compose(CLONES, 3).compose(Subsampled(CLONES, rate=0.1))
    before = accountant.get_epsilon(1e-6)
    twin = again(accountant)
    assert type(twin) is kind and twin.ledger == accountant.ledger
    assert twin.get_epsilon(1e-6) == before
    with accountant._lock:
        at_once(lambda: (twin.compose(WEAK), None)[1])
    assert twin.rounds == 5 and accountant.rounds == 4
    assert accountant.get_epsilon(1e-6) == before
