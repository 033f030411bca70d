"""reference.py by itself: published values, values computed elsewhere, enumerated protocols.

A printed value is met if the interval of its rounding meets the bracket, and the bracket is narrow.
"""

from __future__ import annotations

import ast
import math
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import oracles as o
import pytest

from pld_shuffle import reference as r


def meets(lower: float, upper: float, printed: str, width: float) -> None:
    half = 0.5 * 10.0 ** int(Decimal(printed).as_tuple().exponent)
    assert lower <= upper <= lower * (1.0 + width)
    assert lower <= float(printed) + half and upper >= float(printed) - half, (lower, upper)


def epsilons(mixture: list[r.Coins], rounds: int, delta: float, step: float) -> tuple[float, float]:
    lower, upper = r.composed(mixture, rounds, step)
    return r.epsilon(lower, delta), r.epsilon(upper, delta)


def test_it_imports_numpy_only() -> None:
    tree = ast.parse(Path(r.__file__).read_text(encoding="utf-8"))
    names = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    names |= {node.module or "." for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert names == {"__future__", "math", "functools", "typing", "numpy"}


# --- published values, and values computed elsewhere -------------------------------------------


@pytest.mark.parametrize(
    ("n", "eps0", "delta", "clones", "stronger"),
    [
        (1_000, 1.0, 1e-6, "0.1824123", "0.1486706"),
        (10_000, 1.0, 1e-6, "0.0530053", "0.0432062"),
        (100_000, 4.0, 1e-6, "0.1697697", "0.1181531"),
    ],
)
def test_one_round(n: int, eps0: float, delta: float, clones: str, stronger: str) -> None:
    """On a lattice, from both sides; and by the definition, without any."""
    for pair, printed in ((r.clones, clones), (r.stronger_clones, stronger)):
        mixture = pair(n, eps0)
        meets(*epsilons(mixture, 1, delta, 1e-4), printed, 1e-4)
        half = 0.6e-7
        assert r.hockey_stick(r.atoms(mixture), float(printed) - half) > delta
        assert r.hockey_stick(r.atoms(mixture), float(printed) + half) < delta


MIDDLE = 0.1 + 0.9 * 20 / 59


@pytest.mark.parametrize(
    ("rounds", "values"),
    [
        (1, {0.1: "9.209162e-3", MIDDLE: "1.262021e-6", 1.0: "1.923059e-21"}),
        (4, {0.1: "4.278778e-2", MIDDLE: "2.175990e-3", 1.0: "3.313547e-8"}),
    ],
)
def test_figure_one_of_koskela(rounds: int, values: dict[float, str]) -> None:
    """n = 10^4, eps0 = 4, delta at three epsilons, down to 2e-21."""
    lower, upper = r.composed(r.stronger_clones(10_000, 4.0), rounds, 5e-4)
    for eps, printed in values.items():
        meets(r.delta(lower, eps), r.delta(upper, eps), printed, 1e-3)


@cache
def krr(adversary: str) -> list[r.Coins]:
    if adversary == "strong, the target truthful":
        return [
            r.Coins(m, theta, weight / 0.75) for m, theta, weight in r.strong(1000, 4, 0.25) if m
        ]
    return {"strong": r.strong, "weak": r.weak}[adversary](1000, 4, 0.25)


@pytest.mark.parametrize("most", [4, pytest.param(16, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("adversary", "values", "wide"),
    [
        ("strong", (".530762", "1.074038", "2.255169"), "2.838"),
        ("strong, the target truthful", (".54733", "1.17464", "2.58666"), "3.200"),
        ("weak", (".389063", ".842216", "1.847519"), "2.309"),
    ],
)
def test_randomised_response(adversary: str, values: tuple[str, ...], wide: str, most: int) -> None:
    """n = 1000, k = 4, gamma = 1/4, delta = 1e-4, for 1, 4 and 16 rounds; and delta = 10^-5.5."""
    pair = r.atoms(krr(adversary))
    lower, upper = r.merge_up(pair, 2e-3), r.connect_dots(pair, 2e-3)
    for rounds, printed in zip((1, 4, 16), values, strict=True):
        if rounds > most:
            return
        if rounds > 1:  # the fourth power of the one before
            lower, upper = (
                r.compose(r.compose(law, law), r.compose(law, law)) for law in (lower, upper)
            )
        meets(r.epsilon(lower, 1e-4), r.epsilon(upper, 1e-4), printed, 5e-4)
    meets(r.epsilon(lower, 10.0**-5.5), r.epsilon(upper, 10.0**-5.5), wide, 5e-4)


@pytest.mark.parametrize(
    ("n", "population", "eps0", "rounds", "delta", "printed"),
    [(1_000, 100_000, 3.0, 10, 1e-5, ".015020"), (50, 1_000, 4.0, 100, 1e-6, "3.331100")],
)
def test_hidden_cohorts(
    n: int, population: int, eps0: float, rounds: int, delta: float, printed: str
) -> None:
    rate = n / population
    step = math.log1p(rate * math.expm1(eps0)) / 800  # the largest loss is on the lattice
    meets(*epsilons(r.stronger_clones(n, eps0, rate), rounds, delta, step), printed, 5e-3)


# --- against enumeration, exactly -----------------------------------------------------------------


def agree(pair: r.Atoms, exact: o.Atoms, rel: float = 1e-12) -> None:
    """The same hockey-stick divergence at every epsilon asked for, in both orders."""
    flipped = (pair[1], pair[0])
    for eps in np.linspace(-2.5, 2.5, 21):
        alpha = Fraction(math.exp(eps))
        for mine, theirs in ((pair, exact), (flipped, [(q, p) for p, q in exact])):
            truth = float(sum(max(p - alpha * q, 0) for p, q in theirs))
            assert r.hockey_stick(mine, eps) == pytest.approx(truth, rel=rel, abs=1e-15)


E0 = Fraction(7)
EPS0 = math.log(7.0)


@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_pairs_are_the_enumerated_ones(n: int) -> None:
    gamma = Fraction(1, 4)
    agree(r.atoms(r.clones(n, EPS0)), o.clones(n, E0))
    agree(r.atoms(r.stronger_clones(n, EPS0)), o.stronger_clones(n, E0))
    agree(r.atoms(r.reduction(n, 7.0, 0.5, 9.0)), o.reduction(n, E0, Fraction(1, 2), Fraction(9)))
    agree(r.atoms(r.reduction(n, 7.0, 0.75, 7.0)), o.stronger_clones(n, E0))
    agree(r.atoms(r.strong(n, 4, 0.25)), o.strong(n, 4, gamma))
    for k in (2, 4):
        agree(r.atoms(r.weak(n, k, 0.25)), o.weak(n, k, gamma))


@pytest.mark.parametrize(("n", "population"), [(1, 3), (3, 5), (5, 6)])
def test_a_hidden_cohort_is_the_enumerated_one(n: int, population: int) -> None:
    """Attained by a randomizer of the labels: all others show coins and nothing, the target coins."""
    gamma = 2 / (E0 + 1)
    target = [E0 / (E0 + 1), 1 / (E0 + 1), Fraction(0)]
    other = [gamma / 2, gamma / 2, 1 - gamma]
    swapped = [target[1], target[0], target[2]]
    exact = o.cohort_pair(target, swapped, [other] * (population - 1), n)
    rate = n / population
    agree(r.atoms(r.stronger_clones(n, EPS0, rate)), exact)
    agree(r.atoms(r.reduction(n, 7.0, 0.75, 7.0, rate)), exact)


# --- the two lattices --------------------------------------------------------------------------------

PAIRS = {
    "stronger clones": r.stronger_clones(40, 2.0),
    "one user": r.stronger_clones(1, 1.0),
    "strong": r.strong(40, 4, 0.25),
    "reduction": r.reduction(9, math.e, 0.3, math.e),
    "hidden": r.clones(50, 3.0, rate=0.2),
}


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("step", [0.003, 0.05, 0.4])
def test_lattices_contain_the_truth(name: str, step: float) -> None:
    """At every eps, negative ones included (composition needs them); mass kept; one round and two."""
    pair = r.atoms(PAIRS[name])
    lower, upper = r.merge_up(pair, step), r.connect_dots(pair, step)
    twice = np.outer(pair[0], pair[0]).ravel(), np.outer(pair[1], pair[1]).ravel()
    two_lower, two_upper = r.compose(lower, lower), r.compose(upper, upper)
    total = pair[0].sum()
    assert total == pytest.approx(1.0, abs=1e-13)
    for law in (lower, upper):
        assert (law.mass >= 0.0).all()
        assert law.mass.sum() + law.infinity == pytest.approx(total, rel=1e-14)
    for eps in np.linspace(-3.0, 4.0, 36):
        slack = 1e-14
        for below, atoms, above in ((lower, pair, upper), (two_lower, twice, two_upper)):
            truth = r.hockey_stick(atoms, eps)
            assert r.delta(below, eps) <= truth + slack
            assert r.delta(above, eps) >= truth - slack


def test_joined_dots_touch_the_curve() -> None:
    pair = r.atoms(PAIRS["stronger clones"])
    upper = r.connect_dots(pair, 0.1)
    for point in range(-19, 20):
        eps = 0.1 * point
        assert r.delta(upper, eps) == pytest.approx(r.hockey_stick(pair, eps), rel=1e-9, abs=1e-15)


def test_brackets_shrink_with_the_square_of_the_step() -> None:
    widths = []
    for step in (4e-3, 1e-3):
        lower, upper = r.composed(r.stronger_clones(2_000, 1.0), 4, step)
        widths.append(r.delta(upper, 0.1) - r.delta(lower, 0.1))
    assert 12.0 <= widths[0] / widths[1] <= 20.0


def test_pure_dp_survives_on_an_aligned_lattice() -> None:
    eps0 = 1.0
    lower, upper = r.composed(r.stronger_clones(1, eps0), 3, eps0 / 64)
    for law in (lower, upper):
        assert r.delta(law, 3.0 * eps0) == pytest.approx(0.0, abs=1e-12)
        truth = 0.5 * math.tanh(eps0 / 2.0) + 0.5  # P-mass of the largest loss
        loss = law.step * (law.low + np.arange(law.mass.size))
        assert law.mass[loss > 3.0 * eps0 - 1e-9].sum() == pytest.approx(truth**3, rel=1e-9)


def test_epsilon_at_the_ends() -> None:
    lower, upper = r.composed(r.strong(30, 4, 0.25), 2, 0.01)
    for law in (lower, upper):
        assert r.epsilon(law, law.infinity / 2.0) == math.inf
        assert r.epsilon(law, 1.0) == 0.0
