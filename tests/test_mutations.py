"""Would the honesty checks notice? A dozen wrong constants, dropped terms and flipped sides, one at a time.

`complaints` holds a few small laws, formed coarsely, and a few ledgers against the oracles. It finds nothing in the
library as it is, and something in every mutant.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import oracles as o
import pytest
from mpmath import mpf

from pld_shuffle import Accountant, Laplace, ShuffledLDP, ShuffledRandomizer, ShuffledRR, Side
from pld_shuffle.composition import pld
from pld_shuffle.numerics import binomial
from pld_shuffle.numerics.sides import Bounds
from pld_shuffle.pairs import profile
from pld_shuffle.pairs.cohort import Cohort
from pld_shuffle.pairs.coins import CoinMixture
from pld_shuffle.pairs.pair import Atoms, Resolution

SIDES = (Side.LOWER, Side.UPPER)
SHARES = (0.0, 0.2, 0.5, 0.8, 0.95)
RATE = 0.25
USERS = 12


@cache
def laws() -> dict[str, tuple[Any, o.Composition]]:
    """Pairs of coins, and their truths: one bias, many biases, neutral labels."""
    e0 = o.exp_of(2.0)
    lie = 1 / (1 + e0)
    first, second, others = [1 - lie, lie, 0], [lie, 1 - lie, 0], [lie, lie, 1 - 2 * lie]
    rate = mpf(RATE)
    hidden = [[rate * a + (1 - rate) * b for a, b in zip(law, others, strict=True)] for law in (first, second)]
    clones = ShuffledLDP(2.0, USERS, "stronger-clones").pair
    return {
        "clones": (clones, o.Composition([(o.stronger_clones(USERS, e0), 1)])),
        "hidden": (
            clones.sampled(Cohort(RATE)),
            o.Composition([(o.shuffled_pair(*hidden, [others] * (USERS - 1)), 1)]),
        ),
        "reduction": (
            ShuffledRandomizer(6, eps0=1.5, tv=0.25).pair,
            o.Composition([(o.reduction(6, o.exp_of(1.5), mpf(0.25), o.exp_of(1.5)), 1)]),
        ),
        "weak": (ShuffledRR(4, 6, gamma=0.25, adversary="weak").pair, o.Composition([(o.weak(6, 4, mpf(0.25)), 1)])),
    }


def divergence(atoms: Atoms, epsilon: float, side: Side) -> float:
    losses = np.asarray(atoms.loss)
    over = losses > epsilon
    found = float(-np.expm1(epsilon - losses[over]) @ atoms.mass[over]) + atoms.infinity_mass
    return found + atoms.truncated_mass if side is Side.UPPER else found


def complaints() -> Iterator[str]:
    """What is wrong, as it is found."""
    for name, (pair, exact) in laws().items():
        most = float(exact.largest_loss())
        for resolution in (
            Resolution(most / 500, truncated_mass=1e-12),
            Resolution(most / 500, truncated_mass=1e-2),
            Resolution(most / 500, truncated_mass=1e-12, size_width=0.4, bias_width=0.3),
        ):
            both = pair.atoms(SIDES, resolution)
            for share in SHARES:
                truth = exact.delta(share * most)
                lower, upper = (
                    divergence(atoms, share * most + sign * (atoms.loss_error + most / 500), side)
                    for atoms, side, sign in zip(both, SIDES, (1.0, -1.0), strict=True)
                )
                if not lower <= truth <= upper:
                    yield f"{name} {resolution} {share}"
        for side in SIDES:  # the same on a lattice that has none of its losses
            [law] = pld.formed(pair, [side], Resolution(most / 36.7, truncated_mass=1e-12))
            for share in SHARES:
                truth, value = exact.delta(share * most), law.delta(share * most)
                if not (value <= truth if side is Side.LOWER else value >= truth):
                    yield f"{name} on a lattice {share}"
    for name, ledger, exact in ledgers():
        accountant = Accountant(rtol=1e-4)
        for mechanism in ledger:
            accountant.compose(mechanism)
        most = float(exact.largest_loss())
        for share in SHARES:
            bounds = accountant.delta_bounds(share * most)
            truth = exact.delta(share * most)
            if not mpf(bounds.lower) <= truth <= mpf(bounds.upper):
                yield f"{name} {share}"
    both = Laplace(scale=2.0).pair.atoms(SIDES, Resolution(0.01, truncated_mass=1e-12))
    for epsilon in (0.0, 0.125, 0.375):
        truth = -math.expm1(0.5 * (epsilon - 0.5))
        lower, upper = (
            divergence(atoms, epsilon + sign * atoms.loss_error, side)
            for atoms, side, sign in zip(both, SIDES, (1.0, -1.0), strict=True)
        )
        if not lower * (1 - 1e-14) <= truth <= upper * (1 + 1e-14):
            yield f"Laplace {epsilon}"


@cache
def ledgers() -> list[tuple[str, list[Any], o.Composition]]:
    clones = ShuffledLDP(1.0, 3, "stronger-clones")
    few = ShuffledRR(3, 3, gamma=0.5, adversary="weak")
    exact = o.stronger_clones(3, o.exp_of(1.0))
    return [
        ("two clones", [clones, clones], o.Composition([(exact, 2)])),
        ("mixed", [clones, few], o.Composition([(exact, 1), (o.weak(3, 3, mpf(0.5)), 1)])),
    ]


@pytest.mark.filterwarnings("ignore::pld_shuffle.composition.composition.AccuracyWarning")
def test_nothing_to_complain_about() -> None:
    assert not list(complaints())


Patch = Callable[[pytest.MonkeyPatch], None]
UNTOUCHED = {
    "place": pld.place,
    "components": CoinMixture.components,
    "bucketed": CoinMixture._bucketed,
    "window": binomial.chernoff_window,
    "kinks": profile._kinks,
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
    patch.setattr(
        binomial, "chernoff_window", lambda n, p, truncated_mass: UNTOUCHED["window"](n, p, math.sqrt(truncated_mass))
    )


def half_absent(patch: pytest.MonkeyPatch) -> None:
    absent = CoinMixture.absent.fget
    assert absent is not None
    patch.setattr(CoinMixture, "absent", property(lambda self: 0.5 * absent(self)))


def half_kappa(patch: pytest.MonkeyPatch) -> None:
    kappa = CoinMixture.kappa.fget
    assert kappa is not None
    patch.setattr(CoinMixture, "kappa", property(lambda self: 0.5 * kappa(self)))


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


def swapped_ends(patch: pytest.MonkeyPatch) -> None:
    """Upper polygons through the lower values, and the reverse."""

    def vertices(known: Any, values: Any) -> Any:
        return known.expm1_eps, values * (1.0 - 1e-3)

    patch.setattr(profile, "_vertices_above", vertices)


def steeper_tilt(patch: pytest.MonkeyPatch) -> None:
    placing(Side.UPPER, lambda given: given | {"tilt": given.get("tilt", 0.0) - 0.01})(patch)


MUTANTS: dict[str, Patch] = {
    "upper placed as lower": placing(Side.UPPER, lambda given: given | {"side": Side.LOWER}),
    "lower placed as upper": placing(Side.LOWER, lambda given: given | {"side": Side.UPPER}),
    "upper tilted on the way": steeper_tilt,
    "a thousandth of the upper mass dropped": losing(Side.UPPER, -1e-3),
    "a thousandth of lower mass too much": losing(Side.LOWER, 1e-3),
    "weights of coins lighter": parts(lighter),
    "sides of coins flipped": parts(lambda part, side: part, flip=True),
    "nothing missed": parts(nothing_truncated),
    "half the bias": parts(half_bias),
    "window of half the exponent": narrow_window,
    "half the weight of absence": half_absent,
    "half the weight of neutral labels": half_kappa,
    "half the largest loss": half_the_largest_loss,
    "the mean bias on the upper side": mean_for_upper,
    "half of every kink": kinks(0.5),
    "twice every kink": kinks(2.0),
    "vertices a thousandth lower": swapped_ends,
}


@pytest.mark.filterwarnings("ignore::pld_shuffle.composition.composition.AccuracyWarning")
@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[name](monkeypatch)
    try:
        found = next(complaints(), None)
    except (ArithmeticError, AssertionError):  # the program's own checks noticed
        return
    assert found
