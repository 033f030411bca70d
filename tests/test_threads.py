"""One accountant in several threads: no round is lost, and questions see whole ledgers. Copies are independent."""

from __future__ import annotations

import copy
import pickle
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from pld_shuffle import Accountant, RenyiAccountant, ShuffledLDP, ShuffledRR, Subsampled

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
    start, errors = threading.Barrier(len(works)), []

    def run(work: Callable[[], None]) -> None:
        start.wait()
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


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
    """Answers are those of some ledger in between, also of a budget; the last one is that of all rounds."""
    accountant, added = Accountant(0.01), 40
    counts: list[int] = []
    spent: list[float] = []

    def work() -> None:
        for _ in range(added):
            accountant.compose(CLONES)

    def ask() -> None:
        for _ in range(4):
            counts.append(accountant.rounds)
            spent.append(accountant.get_epsilon(1e-6))
            accountant.would_exceed(CLONES, epsilon=5.0, delta=1e-6)
            assert Accountant.from_json(accountant.to_json()).rounds <= 6 * added
            assert pickle.loads(pickle.dumps(accountant)).rounds <= 6 * added

    at_once(*[work] * 6, ask, ask)
    assert accountant.rounds == 6 * added and max(counts) <= 6 * added
    most = Accountant(0.01).compose(CLONES, 6 * added).epsilon_bounds(1e-6)
    assert all(0.0 <= epsilon <= most.upper * 1.01 for epsilon in spent)
    assert most.lower <= accountant.get_epsilon(1e-6) <= most.upper * 1.01


def test_copies_while_rounds_are_added() -> None:
    """Of a ledger that grows by ever new mechanisms: every copy is some ledger in between."""
    accountant = Accountant()

    def work() -> None:
        for n in range(1, 501):
            accountant.compose(ShuffledLDP(eps0=1.0, n=n))

    def keep() -> None:
        for _ in range(50):
            for twin in (pickle.loads(pickle.dumps(accountant)), copy.copy(accountant)):
                assert [m.n for m, _ in twin.ledger] == list(range(1, len(twin.ledger) + 1))  # type: ignore[attr-defined]

    at_once(work, keep, keep)
    assert accountant.rounds == 500


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
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
