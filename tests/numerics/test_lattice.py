"""Placement on a lattice against reference.py, atom by atom and cell by cell."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from pld_shuffle import Side
from pld_shuffle.numerics.lattice import SNAP, place, snap, split

Array = np.ndarray
STEP = 0.03125


def random_atoms(seed: int, size: int) -> tuple[Array, Array]:
    """Masses over many decades and ascending losses; some on lattice points, some crowded, some alone."""
    rng = np.random.default_rng(seed)
    loss = np.concatenate(
        (
            rng.normal(0.1, 0.6, size),
            STEP * rng.integers(-30, 60, 5),
            rng.uniform(0.2, 0.2 + STEP, size // 2),
            rng.uniform(4.0, 6.0, 2),
        )
    )
    loss.sort()
    mass = np.exp(rng.uniform(-20.0, 0.0, loss.size))
    return mass / mass.sum(), loss


def placed(mass: Array, loss: Array, side: Side, max_gap: float = np.inf) -> tuple[Array, Array]:
    """Losses and P-masses on the lattice."""
    cell = np.floor(loss / STEP).astype(np.int64)
    offset = np.clip(loss - cell * STEP, 0.0, STEP)
    out, low = place(mass, cell, offset, step=STEP, side=side, max_gap=max_gap)
    return STEP * (low + np.arange(out.size)), out


def hockey_stick(mass: Array, loss: Array, eps: float) -> float:
    return math.fsum(mass * -np.expm1(np.minimum(eps - loss, 0.0)))


LAWS = [random_atoms(seed, size) for seed, size in enumerate((1, 4, 30, 400, 400))]


@pytest.mark.parametrize("law", LAWS, ids=range(len(LAWS)))
@pytest.mark.parametrize("max_gap", [np.inf, 0.4, 0.01])
def test_each_side_is_kept_at_every_epsilon(law: tuple[Array, Array], max_gap: float) -> None:
    """As functions of e^eps both curves are convex and piecewise linear, so the kinks of the larger one,
    and any point beyond them, decide: lattice points for the upper side, the atoms for the lower."""
    mass, loss = law
    above, below = (placed(mass, loss, side, max_gap) for side in (Side.UPPER, Side.LOWER))
    for eps in (*above[0], -20.0, 20.0):
        truth = hockey_stick(mass, loss, eps)
        assert hockey_stick(above[1], above[0], eps) == pytest.approx(truth, rel=1e-10, abs=1e-18)
    for eps in (*loss, -20.0, 20.0):
        truth = hockey_stick(mass, loss, eps)
        assert hockey_stick(below[1], below[0], eps) <= truth * (1.0 + 1e-12) + 1e-17


def test_a_short_max_gap_rounds_down() -> None:
    """Atoms half a step above -1 and far below 1: with it, merged; without, at the point below."""
    mass, loss = np.array([0.3, 0.7]), np.array([-1.0 + STEP / 2, 1.0])
    points, merged = placed(mass, loss, Side.LOWER)
    assert merged[np.isclose(points, -1.0)] == 0.0 and merged[np.isclose(points, 1.0)] < 0.7
    points, rounded = placed(mass, loss, Side.LOWER, max_gap=0.5)
    assert rounded[np.isclose(points, -1.0)] == pytest.approx(0.3, rel=1e-14)
    assert rounded[np.isclose(points, 1.0)] == pytest.approx(0.7, rel=1e-14)


@pytest.mark.parametrize("eps0", [0.1, 1.0, 3.7, 8.0])
@pytest.mark.parametrize("pieces", [1, 7, 100, 12_345])
def test_an_aligned_largest_loss_stays_where_it_is(eps0: float, pieces: int) -> None:
    """Randomized response on a lattice that divides eps0: both sides are exact."""
    step = eps0 / pieces
    likely = 1.0 / (1.0 + math.exp(-eps0))
    mass, loss = np.array([1.0 - likely, likely]), np.array([-eps0, eps0])
    cell = np.floor(loss / step).astype(np.int64)
    offset = np.clip(loss - cell * step, 0.0, step)
    for side in Side:
        out, low = place(mass, cell, offset, step=step, side=side)
        held = np.flatnonzero(out)
        assert list(low + held) == [-pieces, pieces]
        np.testing.assert_allclose(out[held], mass, rtol=1e-14)


def test_snapping_moves_by_rounding_only() -> None:
    cell = np.array([0, 0, 1000, 1000, 5])
    offset = np.array([1e-17, STEP - 1e-18, 1e-14, 1e-9, STEP / 2])
    after, left = snap(cell, offset, STEP)
    assert list(after) == [0, 1, 1000, 1000, 5]
    assert list(left) == [0.0, 0.0, 0.0, 1e-9, STEP / 2]


@pytest.mark.parametrize("seed", range(5))
def test_wide_cells_are_cells_split_once_more(seed: int) -> None:
    """Splitting onto all multiples, and what is there onto some of them, is splitting onto these at once."""
    mass, loss = random_atoms(seed, 50)
    points, fine = placed(mass, loss, Side.UPPER)
    ends = [math.floor(loss[0] / STEP) - 40, math.ceil(loss[-1] / STEP) + 40]
    knots = np.unique([*ends, *np.random.default_rng(seed).integers(*ends, 60)])
    found = split(mass, loss, step=STEP, knots=knots)
    assert found.sum() == pytest.approx(1.0, rel=1e-14)
    np.testing.assert_allclose(found, split(fine, points, step=STEP, knots=knots), rtol=1e-12, atol=1e-20)


@pytest.mark.parametrize("cell", [-40, 3, 1000])
def test_a_rare_atom_in_a_sum_next_to_a_lattice_point_still_reaches_the_next_one(cell: int) -> None:
    """The loss of the sum is snapped onto the point of the frequent atom: its share above must not be lost.

    In rationals (the powers of e apart); as far from the point as a loss may be that is snapped. As much again is
    booked for the rounding of the offset, and no more.
    """
    away, reach = Fraction(9, 10) * Fraction(STEP), Fraction(SNAP) * (abs(cell) + 1) * Fraction(STEP)
    often, offset = Fraction(1, 2), reach * Fraction(9999, 10000)
    rare = offset * often / (1 - Fraction(math.exp(-away)))  # 1 - e^-offset is the offset, to 1e-12
    at, mass, error = np.array([cell]), np.array([float(often + rare)]), np.array([1e-30])
    assert snap(at, np.array([float(offset)]), STEP)[1] == 0.0
    out, low = place(mass, at, np.array([float(offset)]), step=STEP, side=Side.UPPER, ratio_error=error)
    knots = np.array([cell - 9, cell, cell + 1, cell + 9])
    wide = split(mass, cell * STEP + np.array([float(offset)]), step=STEP, knots=knots, ratio_error=error)
    needed = float(rare * (1 - Fraction(math.exp(-away))) / (1 - Fraction(math.exp(-STEP))))
    assert needed * (1.0 - 1e-12) <= 0.5 * out[cell + 1 - low] <= needed * 1.0005
    assert wide[2] >= 0.99 * out[cell + 1 - low]  # whose offset is rounded
