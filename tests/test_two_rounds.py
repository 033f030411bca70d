"""Two enumerated rounds of every scheme of people, with others who hold different values: what one round cannot show.

Every subset of participants and every multiset of reports, in rationals; the rounds are multiplied in doubles. All
datasets of the others, all ordered pairs of the target's values.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from pld_shuffle import (
    Accountant,
    CountedBits,
    Mechanism,
    PoissonSampled,
    Shuffled,
    ShuffledLDP,
    Subsampled,
)
from pld_shuffle.composition.composition import Composition
from pld_shuffle.randomizers import BinaryRandomizedResponse, KRandomizedResponse
from tests.oracles import cohort_view, histogram_law

Array = NDArray[np.float64]
Law = list[Fraction]
View = dict[tuple[int, ...], Fraction]

EPS0, P = math.log(3.0), Fraction(3)
LOSSES = np.array([0.0, 0.1, 0.3, 0.6, 1.0, 1.6])


def rr(k: int) -> list[Law]:
    return [[(P if x == y else Fraction(1)) / (P + k - 1) for y in range(k)] for x in range(k)]


def by_coins(laws: Sequence[Law], presence: Fraction) -> View:
    found: dict[tuple[int, ...], Fraction] = {}
    for who in itertools.product((False, True), repeat=len(laws)):
        chance = math.prod((presence if here else 1 - presence for here in who), start=Fraction(1))
        some = [law for law, here in zip(laws, who, strict=True) if here]
        for key, mass in (histogram_law(some) if some else {(0,) * len(laws[0]): 1}).items():
            found[key] = found.get(key, Fraction(0)) + chance * mass
    return found


def dropouts(laws: Sequence[Law], size: int, presence: Fraction) -> View:
    found: dict[tuple[int, ...], Fraction] = {}
    cohorts = list(itertools.combinations(laws, size))
    for cohort in cohorts:
        for key, mass in by_coins(cohort, presence).items():
            found[key] = found.get(key, Fraction(0)) + mass / len(cohorts)
    return found


def with_a_colluder(laws: Sequence[Law]) -> View:
    """Cohorts of 3 out of 5 and one more user, who shows its report and whether it was drawn."""
    drawn, not_drawn = cohort_view(laws, 2), cohort_view(laws, 3)
    halves = [(*key, 1) for key in drawn], [(*key, 0) for key in not_drawn]
    masses = [*drawn.values(), *not_drawn.values()]
    return {key: mass / 2 for key, mass in zip([*halves[0], *halves[1]], masses, strict=True)}


#: others, the view of a list of laws, and the mechanism on a base for so many users.
Scheme = tuple[int, Callable[[Sequence[Law]], View], int, Callable[[Mechanism], Mechanism]]
SCHEMES: dict[str, Scheme] = {
    "coins": (3, lambda laws: by_coins(laws, Fraction(3, 8)), 4, lambda m: PoissonSampled(m, 0.375)),
    "dropouts": (
        4, lambda laws: dropouts(laws, 3, Fraction(3, 4)), 3,
        lambda m: Subsampled(m, population=5, dropout=0.25),
    ),
    "cohort": (4, lambda laws: cohort_view(laws, 3), 3, lambda m: Subsampled(m, population=5)),
    "colluder": (
        4, with_a_colluder, 3, lambda m: Subsampled(m, population=6, colluding=1),
    ),
}  # fmt: skip
BASES: dict[str, tuple[int, Callable[[int], Mechanism]]] = {
    "any, 2": (2, lambda n: ShuffledLDP(EPS0, n)),
    "any, 3": (3, lambda n: ShuffledLDP(EPS0, n)),
    "labels": (3, lambda n: ShuffledLDP(EPS0, n, analysis="stronger-clones")),
    "bits": (2, lambda n: Shuffled(BinaryRandomizedResponse(EPS0), n)),
    "counts": (2, lambda n: CountedBits(n, one_if_one=0.75, one_if_zero=0.25)),
    "k-RR": (3, lambda n: Shuffled(KRandomizedResponse(k=3, eps0=EPS0), n)),
}


def masses(first: View, second: View) -> tuple[Array, Array]:
    keys = sorted(first.keys() | second.keys())
    return tuple(np.array([float(law.get(key, 0)) for key in keys]) for law in (first, second))  # type: ignore[return-value]


def divergence(first: Array, second: Array) -> Array:
    return np.array([np.maximum(0.0, first - math.exp(x) * second).sum() for x in LOSSES])


def twice(first: Array, second: Array) -> Array:
    """H of two rounds on one dataset."""
    return divergence(*(np.multiply.outer(law, law).ravel() for law in (first, second)))


def truths(
    k: int, others: int, view: Callable[[Sequence[Law]], View]
) -> Iterator[tuple[bool, Array]]:
    """(whether all others hold one value, H of two rounds) for every dataset and both orders."""
    rows = rr(k)
    for held in itertools.combinations_with_replacement(range(k), others):
        views = [view([rows[x], *(rows[y] for y in held)]) for x in range(k)]
        for first, second in itertools.permutations(views, 2):
            yield len(set(held)) == 1, twice(*masses(first, second))


def ends(composed: Composition) -> tuple[Array, Array]:
    found = composed.deltas(LOSSES)
    return np.asarray(found.lower), np.asarray(found.upper)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_two_rounds_of_every_scheme(scheme: str, base: str) -> None:
    others, view, n, wrapped = SCHEMES[scheme]
    k, made = BASES[base]
    mechanism = wrapped(made(n))
    found = list(truths(k, others, view))
    worst = np.max([truth for _, truth in found], axis=0)
    assert np.all(worst <= ends(Composition([(mechanism.pair, 2)], 1e-3))[1] * (1.0 + 1e-12))
    if base in ("labels", "any, 2"):  # lower ends are the bound itself, or of three values
        return
    if scheme == "colluder":  # the worst it can do is to stay away
        found += truths(k, others, SCHEMES["cohort"][1])
        worst = np.max([truth for _, truth in found], axis=0)
    lower, upper = ends(Composition([(mechanism.attack_pair, 2)], 1e-3))
    assert np.all(lower <= worst * (1.0 + 1e-12))
    fits = [
        np.all(lower <= truth * (1.0 + 1e-9) + 1e-15)
        and np.all(truth <= upper * (1.0 + 1e-9) + 1e-15)
        for equal, truth in found
        if equal
    ]
    assert any(fits)  # others who all hold one value


@pytest.mark.parametrize("base", ["any, 2", "bits", "counts"])
def test_a_cap_of_two_visible_rounds(base: str) -> None:
    """Who takes part is seen; the others of the user's second round depend on what was published before."""
    rows, n = rr(2), 3
    crowds = list(itertools.combinations_with_replacement(range(2), n - 1))
    rounds = []
    for held in crowds:
        views = [histogram_law([rows[x], *(rows[y] for y in held)]) for x in range(2)]
        rounds.append(masses(*views))
    spent = Accountant().compose(BASES[base][1](n), 2)
    bound = np.asarray(spent.delta_bounds(LOSSES).upper)
    worst = np.zeros(LOSSES.size)
    for first in rounds:
        for later in itertools.product(rounds, repeat=n + 1):  # by the number of ones in the first
            for order in ((0, 1), (1, 0)):
                laws = [
                    np.concatenate(
                        [mass * then[x] for mass, then in zip(first[x], later, strict=True)]
                    )
                    for x in order
                ]
                worst = np.maximum(worst, divergence(*laws))
    assert np.all(worst <= bound * (1.0 + 1e-12))
    once = divergence(*rounds[0])
    assert np.all(once <= worst * (1.0 + 1e-12))


@pytest.mark.parametrize("base", ["any, 2", "any, 3", "bits", "k-RR"])
@pytest.mark.parametrize("group", [2, 3])
def test_two_rounds_of_groups(base: str, group: int) -> None:
    """All datasets of 4 users that differ in `group` of them; reports of one user are users of one value."""
    k, made = BASES[base]
    rows, n = rr(k), 4
    spent = Accountant().compose(made(n), 2)
    bound = np.asarray(spent.delta_bounds(LOSSES, group=group).upper)
    for kept in itertools.combinations_with_replacement(range(k), n - group):
        views = {
            mine: histogram_law([rows[x] for x in (*mine, *kept)])
            for mine in itertools.combinations_with_replacement(range(k), group)
        }
        for first, second in itertools.permutations(views, 2):
            if all(x != y for x, y in zip(first, second, strict=True)):
                truth = twice(*masses(views[first], views[second]))
                assert np.all(truth <= bound * (1.0 + 1e-12))
