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
from pld_shuffle.pairs.pair import Resolution

CHECKS: list[Callable[[], None]] = [
    *(
        partial(honesty.test_bounds_contain_the_truth, name)
        for name in (
            "ldp n=1",
            "ldp n=1, 10 rounds",
            "reduction n=3, 4 rounds",
            "clones n=5, 8 rounds",
            "ldp n=20",
            "reduction n=12",
        )
    ),
    partial(coins.test_buckets_keep_their_side, "hidden", 0.1, 1e-4),
    partial(contracts.test_the_largest_loss_is_the_end, "hidden coins"),
    partial(contracts.test_sides_are_ordered_convex_falling_and_normalised, "any randomizer"),
    partial(contracts.test_a_profile_is_enclosed_by_atoms, "any randomizer"),
    *(partial(contracts.test_all_evaluators_meet, name, 12) for name in ("either order", "one order")),
]


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


Patch = Callable[[pytest.MonkeyPatch], None]
UNTOUCHED = {
    "place": pld.place,
    "components": CoinMixture.components,
    "bucketed": CoinMixture._bucketed,
    "window": integer_laws.chernoff_window,
    "kinks": profile._kinks,
    "joined": profile._joined,
}


def other(side: Side) -> Side:
    return Side.LOWER if side is Side.UPPER else Side.UPPER


def placing(side: Side, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Patch:
    """`place` with other arguments on one side."""

    def place(mass: Any, cell: Any, offset: Any, **given: Any) -> Any:
        if given["side"] is side:
            given = change(given)
        return UNTOUCHED["place"](mass, cell, offset, **given)

    return lambda patch: patch.setattr(pld, "place", place)


def losing(side: Side, share: float) -> Patch:
    """Masses on a side moved by a share of themselves."""

    def place(mass: Any, cell: Any, offset: Any, **given: Any) -> Any:
        factor = 1.0 + share if given["side"] is side else 1.0
        return UNTOUCHED["place"](mass * factor, cell, offset, **given)

    return lambda patch: patch.setattr(pld, "place", place)


def parts(change: Callable[[Any, Side], Any], *, flip: bool = False) -> Patch:
    """Components of coins, changed; or those of the other side."""

    def components(self: CoinMixture, side: Side, resolution: Resolution) -> Any:
        asked = other(side) if flip else side
        return change(UNTOUCHED["components"](self, asked, resolution), side)

    return lambda patch: patch.setattr(CoinMixture, "components", components)


def lighter(part: Any, side: Side) -> Any:
    return replace(part, weight=part.weight * (1.0 - 1e-3 if side is Side.UPPER else 1.0 + 1e-3))


def nothing_truncated(part: Any, side: Side) -> Any:
    return replace(part, truncated_mass=0.0)


def half_bias(part: Any, side: Side) -> Any:
    return replace(part, bias=0.5 * part.bias, gap=1.0 - 0.5 * part.bias)


def narrow_window(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(integer_laws, "chernoff_window", lambda n, p, missed: UNTOUCHED["window"](n, p, math.sqrt(missed)))


def halved(name: str) -> Patch:
    """A property of coins, halved."""
    getter = getattr(CoinMixture, name).fget
    return lambda patch: patch.setattr(CoinMixture, name, property(lambda self: 0.5 * getter(self)))


def half_the_largest_loss(patch: pytest.MonkeyPatch) -> None:
    largest = CoinMixture.max_loss.func
    patch.setattr(CoinMixture, "max_loss", property(lambda self: Bounds(*(0.5 * end for end in largest(self)))))


def mean_for_upper(patch: pytest.MonkeyPatch) -> None:
    """The mean bias of a bucket where the two extremes are due."""

    def bucketed(self: CoinMixture, *given: Any) -> Any:
        return UNTOUCHED["bucketed"](self, *given[:-1], False)

    patch.setattr(CoinMixture, "_bucketed", bucketed)


def kinks(factor: float) -> Patch:
    def changed(expm1_eps: Any, value: Any, upper: bool) -> Any:
        where, mass = UNTOUCHED["kinks"](expm1_eps, value, upper)
        return where, mass * factor

    return lambda patch: patch.setattr(profile, "_kinks", changed)


def lower_vertices(patch: pytest.MonkeyPatch) -> None:
    """Upper polygons a thousandth too low."""

    def joined(right: Any, left: Any, upper: bool) -> Any:
        share = 1.0 - 1e-3 if upper else 1.0
        return UNTOUCHED["joined"](*((at, value * share) for at, value in (right, left)), upper)

    patch.setattr(profile, "_joined", joined)


def lower_losses(patch: pytest.MonkeyPatch) -> None:
    """Atoms of the upper side a thousandth of a cell too low."""

    def place(mass: Any, cell: Any, offset: Any, **given: Any) -> Any:
        share = 1.0 - 1e-3 if given["side"] is Side.UPPER else 1.0
        return UNTOUCHED["place"](mass, cell, offset * share, **given)

    patch.setattr(pld, "place", place)


MUTANTS: dict[str, Patch] = {
    "upper placed as lower": placing(Side.UPPER, lambda given: given | {"side": Side.LOWER}),
    "lower placed as upper": placing(Side.LOWER, lambda given: given | {"side": Side.UPPER}),
    "upper losses a thousandth of a cell lower": lower_losses,
    "a thousandth of the upper mass dropped": losing(Side.UPPER, -1e-3),
    "a thousandth of lower mass too much": losing(Side.LOWER, 1e-3),
    "weights of coins lighter": parts(lighter),
    "sides of coins flipped": parts(lambda part, side: part, flip=True),
    "nothing missed": parts(nothing_truncated),
    "half the bias": parts(half_bias),
    "window of half the exponent": narrow_window,
    "half the weight of absence": halved("absent"),
    "half the weight of neutral labels": halved("kappa"),
    "half the largest loss": half_the_largest_loss,
    "the mean bias on the upper side": mean_for_upper,
    "half of every kink": kinks(0.5),
    "twice every kink": kinks(2.0),
    "vertices a thousandth lower": lower_vertices,
}


@pytest.mark.filterwarnings("ignore::pld_shuffle.composition.composition.AccuracyWarning")
@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[name](monkeypatch)
    with pytest.raises((ArithmeticError, AssertionError)):  # the former is the program's own check
        for check in CHECKS:
            check()
