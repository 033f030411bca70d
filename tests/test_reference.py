"""reference.py by itself, against enumerated protocols. Its lattices meet those of the library in test_coins.py."""

from __future__ import annotations

import ast
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import oracles as o
import pytest
import reference as r
from test_truths import cohort


def test_it_imports_numpy_only() -> None:
    nodes = list(ast.walk(ast.parse(Path(r.__file__).read_text(encoding="utf-8"))))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "." for node in nodes if isinstance(node, ast.ImportFrom)}
    assert names == {"__future__", "math", "functools", "typing", "numpy"}


# --- against enumeration, exactly -----------------------------------------------------------------


def agree(pair: r.Atoms, exact: o.Atoms, rel: float = 1e-12) -> None:
    """The same hockey-stick divergence at every epsilon asked for, in both orders."""
    flipped = (pair[1], pair[0])
    for eps in np.linspace(-2.5, 2.5, 21):
        alpha = Fraction(math.exp(eps))
        for mine, theirs in ((pair, exact), (flipped, [(q, p) for p, q in exact])):
            truth = float(o.hockey_stick(theirs, alpha))
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
    exact = o.pair_of_views(*(cohort(n)([law, *[other] * (population - 1)]) for law in (target, swapped)))
    rate = n / population
    agree(r.atoms(r.stronger_clones(n, EPS0, rate)), exact)
    agree(r.atoms(r.reduction(n, 7.0, 0.75, 7.0, rate)), exact)


# --- the two lattices --------------------------------------------------------------------------------


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
