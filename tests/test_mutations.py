"""Would the suites notice? A dozen wrong constants, dropped terms and flipped sides, one at a time.

Some of the honesty and contract tests run on the library as each mutant has it, and one of them at least must fail.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import test_contracts as contracts
import test_honesty as honesty
from pairs import test_coins as coins

from pld_shuffle import Side
from pld_shuffle.composition import plan, pld
from pld_shuffle.numerics import integer_laws
from pld_shuffle.numerics.sides import Bounds
from pld_shuffle.pairs import profile
from pld_shuffle.pairs.coins import CoinMixture

CHECKS: list[Callable[[], None]] = [
    *(
        partial(honesty.test_bounds_contain_the_truth, name)
        for name in ("ldp n=1", "ldp n=1, 10 rounds", "reduction n=3, 4 rounds", "clones n=5, 8 rounds", "ldp n=20",
                     "reduction n=12")
    ),
    partial(coins.test_buckets_keep_their_side, "hidden", 0.1, 1e-4),
    partial(contracts.test_the_largest_loss_is_the_end, "hidden coins"),
    partial(contracts.test_sides_are_ordered_convex_falling_and_normalised, "any randomizer"),
    partial(contracts.test_a_profile_is_enclosed_by_atoms, "any randomizer"),
    *(partial(contracts.test_all_evaluators_meet, name, 12) for name in ("either order", "one order")),
]  # fmt: skip


@pytest.fixture(autouse=True)
def _afresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing that was computed before, and nothing that a mutant computed afterwards."""
    for suite, table in ((honesty, "CASES"), (contracts, "KINDS"), (coins, "MECHANISMS")):
        monkeypatch.setattr(suite, table, pickle.loads(pickle.dumps(getattr(suite, table))))
    known = honesty.answer_of, contracts.laws, contracts.powers, plan._coarse_law
    for cached in known:
        cached.cache_clear()
    yield
    for cached in known:
        cached.cache_clear()


def around(owner: Any, name: str, change: Callable[..., Any]) -> Callable[[pytest.MonkeyPatch], None]:
    """A function of the library, which `change` is given first, with what it was called with."""
    real = getattr(owner, name)
    return lambda patch: patch.setattr(owner, name, lambda *given, **named: change(real, *given, **named))


def components(change: Callable[[Any, bool], Any]) -> Callable[[pytest.MonkeyPatch], None]:
    """Components of coins, changed; whether they are those of the upper side."""
    return around(CoinMixture, "components", lambda real, pair, side, how: change(real(pair, side, how), up(side)))


def halved(name: str) -> Callable[[pytest.MonkeyPatch], None]:
    """A property of coins, halved."""
    getter = getattr(CoinMixture, name).fget
    return lambda patch: patch.setattr(CoinMixture, name, property(lambda self: 0.5 * getter(self)))


def up(side: Side) -> bool:
    return side is Side.UPPER


def half_the_largest_loss(patch: pytest.MonkeyPatch) -> None:
    largest = CoinMixture.max_loss.func
    patch.setattr(CoinMixture, "max_loss", property(lambda self: Bounds(*(0.5 * end for end in largest(self)))))


def kinks(factor: float) -> Callable[[pytest.MonkeyPatch], None]:
    return around(profile, "_kinks", lambda real, *given: (real(*given)[0], factor * real(*given)[1]))


UPPER = {"side": Side.UPPER}
MUTANTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "upper placed as lower": around(pld, "place", lambda real, *law, **more: real(*law, **more | {"side": Side.LOWER})),
    "lower placed as upper": around(pld, "place", lambda real, *law, **more: real(*law, **more | UPPER)),
    "upper losses a thousandth of a cell lower": around(
        pld, "place", lambda real, mass, cell, offset, side, **more:
        real(mass, cell, offset * (1.0 - 1e-3 * up(side)), side=side, **more),
    ),
    "a thousandth of the upper mass dropped": around(
        pld, "place", lambda real, mass, *law, side, **more:
        real(mass * (1.0 - 1e-3 * up(side)), *law, side=side, **more),
    ),
    "a thousandth of lower mass too much": around(
        pld, "place", lambda real, mass, *law, side, **more:
        real(mass * (1.0 + 1e-3 * (not up(side))), *law, side=side, **more),
    ),
    "weights of coins lighter": components(
        lambda part, upper: replace(part, weight=part.weight * (1.0 - 1e-3 if upper else 1.0 + 1e-3))
    ),
    "sides of coins flipped": around(
        CoinMixture, "components", lambda real, pair, side, how: real(pair, Side.LOWER if up(side) else Side.UPPER, how)
    ),
    "nothing missed": components(lambda part, upper: replace(part, truncated_mass=0.0)),
    "half the bias": components(lambda part, upper: replace(part, bias=0.5 * part.bias, gap=1.0 - 0.5 * part.bias)),
    "window of half the exponent": around(
        integer_laws, "chernoff_window", lambda real, n, p, missed: real(n, p, math.sqrt(missed))
    ),
    "half the weight of absence": halved("absent"),
    "half the weight of neutral labels": halved("kappa"),
    "half the largest loss": half_the_largest_loss,
    "the mean bias on the upper side, where the two extremes are due": around(
        CoinMixture, "_bucketed", lambda real, *given: real(*given[:-1], False)
    ),
    "half of every kink": kinks(0.5),
    "twice every kink": kinks(2.0),
    "vertices of upper polygons a thousandth lower": around(
        profile, "_joined", lambda real, right, left, upper:
        real(*((at, value * (1.0 - 1e-3 * upper)) for at, value in (right, left)), upper),
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::pld_shuffle.composition.composition.AccuracyWarning")
@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[name](monkeypatch)
    with pytest.raises((ArithmeticError, AssertionError)):  # the former is the program's own check
        for check in CHECKS:
            check()
