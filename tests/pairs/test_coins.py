"""Coin mixtures and their lattice laws against reference.py: every m kept, or bucketed on either side; and reference.py
by itself, against enumerated protocols."""

from __future__ import annotations

import ast
import math
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import oracles as o
import pytest
import reference as r
from test_truths import cohort

from pld_shuffle import ShuffledLDP, ShuffledRandomizer, ShuffledRR, Side, Subsampled
from pld_shuffle.pairs import coins
from pld_shuffle.pairs.coins import CoinMixture, Components
from pld_shuffle.pairs.pair import Atoms, Resolution

Mechanism = ShuffledLDP | ShuffledRandomizer | ShuffledRR | Subsampled

#: What the library was asked, and the reference's pair for it.
MECHANISMS: dict[str, tuple[Mechanism, list[r.Coins]]] = {
    "one user": (ShuffledLDP(eps0=1.0, n=1, analysis="stronger-clones"), r.stronger_clones(1, 1.0)),
    "clones": (ShuffledLDP(eps0=1.5, n=300, analysis="clones"), r.clones(300, 1.5)),
    "stronger clones": (
        ShuffledLDP(eps0=2.0, n=400, analysis="stronger-clones"),
        r.stronger_clones(400, 2.0),
    ),
    "reduction": (ShuffledRandomizer(60, eps0=1.0, tv=0.25), r.reduction(60, math.e, 0.25, math.e)),
    "reduction, q": (ShuffledRandomizer(40, p=5.0, q=3.0, tv=0.5), r.reduction(40, 5.0, 0.5, 3.0)),
    "strong": (ShuffledRR(k=4, n=120, gamma=0.25), r.strong(120, 4, 0.25)),
    "weak": (ShuffledRR(k=4, n=80, gamma=0.25, adversary="weak"), r.weak(80, 4, 0.25)),
    "weak, binary": (ShuffledRR(k=2, n=80, gamma=0.5, adversary="weak"), r.weak(80, 2, 0.5)),
    "hidden": (
        Subsampled(ShuffledLDP(2.0, 400, analysis="stronger-clones"), rate=0.3), r.stronger_clones(400, 2.0, 0.3)
    ),
}  # fmt: skip
EPSILONS = np.linspace(-2.0, 3.0, 26)


@cache
def exact(name: str) -> r.Atoms:
    return r.atoms(MECHANISMS[name][1])


def as_pair(mixture: Components, side: Side) -> r.Atoms:
    """The reference's atoms of the library's components; what an upper mixture misses is at infinity."""
    coins = [r.Coins(0, 0.0, mixture.null)]
    for m, bias, weight in zip(mixture.coins, mixture.bias, mixture.weight, strict=True):
        coins.append(r.Coins(int(m), float(bias), float(weight)))
    p, q = r.atoms(coins)
    truncated_mass = mixture.truncated_mass if side is Side.UPPER else 0.0
    return np.append(p, truncated_mass), np.append(q, 0.0)


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("side", Side)
def test_without_buckets_it_is_the_reference(name: str, side: Side) -> None:
    """To rounding: the allowances on either side are of the size of rounding too."""
    resolution = Resolution(1.0, truncated_mass=1e-30, size_width=0.0, bias_width=1e-9)
    mixture = MECHANISMS[name][0].pair.components(side, resolution)
    pair = as_pair(mixture, side)
    for eps in EPSILONS:
        truth = r.hockey_stick(exact(name), eps)
        found = r.hockey_stick(pair, eps)
        assert found == pytest.approx(truth, rel=2e-10, abs=1e-15)


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("width", [1e-3, 0.1, 1.0])
@pytest.mark.parametrize("truncated_mass", [1e-20, 1e-4])
def test_buckets_keep_their_side(name: str, width: float, truncated_mass: float) -> None:
    """At every epsilon; the reference's own rounding is below 1e-12."""
    resolution = Resolution(1.0, truncated_mass=truncated_mass, size_width=width, bias_width=width, pull=1.0)
    pair = MECHANISMS[name][0].pair
    above = as_pair(pair.components(Side.UPPER, resolution), Side.UPPER)
    below = as_pair(pair.components(Side.LOWER, resolution), Side.LOWER)
    for eps in EPSILONS:
        truth = r.hockey_stick(exact(name), eps)
        assert r.hockey_stick(above, eps) >= truth * (1.0 - 1e-12) - 1e-15
        assert r.hockey_stick(below, eps) <= truth * (1.0 + 1e-12) + 1e-15


@pytest.mark.parametrize("name", ["clones", "stronger clones", "weak", "strong"])
def test_buckets_err_in_second_order_between_the_sides(name: str) -> None:
    """A bucket ten times as narrow has a bracket at least about ten times as narrow."""
    widths = []
    for width in (0.3, 0.03):
        resolution = Resolution(1.0, truncated_mass=1e-20, size_width=width, bias_width=width)
        pair = MECHANISMS[name][0].pair
        above, below = (
            r.hockey_stick(as_pair(pair.components(side, resolution), side), 0.2) for side in (Side.UPPER, Side.LOWER)
        )
        widths.append(above - below)
    assert widths[1] <= 0.15 * widths[0] and widths[0] <= 0.5 * r.hockey_stick(exact(name), 0.2)


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("step", [0.004, 0.05])
def test_one_round_on_the_lattice(name: str, step: float) -> None:
    """`pld` on either side: contains the truth, and is as near to it as the reference's lattice is."""
    mechanism = MECHANISMS[name][0]
    limits = r.merge_up(exact(name), step), r.connect_dots(exact(name), step)
    lower = mechanism.pld(step=step, side=Side.LOWER)
    upper = mechanism.pld(step=step, side=Side.UPPER)
    for eps in EPSILONS:
        truth = r.hockey_stick(exact(name), eps)
        assert lower.delta(eps) <= truth * (1.0 + 1e-12) + 1e-15
        assert upper.delta(eps) >= truth * (1.0 - 1e-12) - 1e-15
        assert upper.delta(eps) == pytest.approx(r.delta(limits[1], eps), rel=3e-4, abs=1e-12)
        if step < 0.01:  # on a coarse lattice the two merge different neighbours
            loss_error = truth - r.delta(limits[0], eps)
            assert lower.delta(eps) >= truth - 2.0 * loss_error - 3e-4 * truth - 1e-12


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_profile_by_contour_integrals_encloses_the_reference(name: str) -> None:
    """What huge crowds are asked for, here at crowds that can be summed."""
    pair = MECHANISMS[name][0].pair
    assert isinstance(pair, CoinMixture)
    eps = EPSILONS[EPSILONS >= 0.0]
    known = pair.as_profile
    assert known is not None
    found = known.profile(np.expm1(eps), 1e-7, 0.0)
    for at, low, high in zip(eps, found.lower, found.upper, strict=True):
        truth = r.hockey_stick(exact(name), at)
        assert low <= truth * (1.0 + 1e-12) + 1e-15 and truth <= high * (1.0 + 1e-12) + 1e-15
    assert found.upper[1] <= found.lower[1] * (1.0 + 1e-6)


@pytest.mark.parametrize("name", [name for name in MECHANISMS if name not in ("one user", "hidden")])
@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_atoms_of_the_profile_bracket_the_reference(name: str, rate: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """With and without general amplification, on either side, at s below 1 too."""
    pair = MECHANISMS[name][0].pair.amplified(rate)
    monkeypatch.setattr(coins, "MOST_WALKED", 0.0)
    found = pair.atoms([Side.LOWER, Side.UPPER], Resolution(pair.scale / 50.0, truncated_mass=1e-14))

    def divergence(atoms: Atoms, eps: float, side: Side) -> float:
        rest = -np.expm1(np.minimum(eps - atoms.loss, 0.0))
        truncated_mass = atoms.truncated_mass if side is Side.UPPER else 0.0
        return float(atoms.mass @ rest) + atoms.infinity_mass + truncated_mass

    def amplified(eps: float) -> float:
        if eps < 0.0:  # a symmetric pair
            return -math.expm1(eps) + math.exp(eps) * amplified(-eps)
        return rate * r.hockey_stick(exact(name), math.log1p(math.expm1(eps) / rate))

    for eps in EPSILONS:
        low, high = (divergence(atoms, eps, side) for atoms, side in zip(found, (Side.LOWER, Side.UPPER), strict=True))
        truth = amplified(eps)
        assert low <= truth * (1.0 + 1e-12) + 1e-13 and truth <= high * (1.0 + 1e-12) + 1e-13
        assert high <= 1.02 * low + 1e-6


# --- reference.py by itself --------------------------------------------------------------------------


def test_it_imports_numpy_only() -> None:
    nodes = list(ast.walk(ast.parse(Path(r.__file__).read_text(encoding="utf-8"))))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "." for node in nodes if isinstance(node, ast.ImportFrom)}
    assert names == {"__future__", "math", "functools", "typing", "numpy"}


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
