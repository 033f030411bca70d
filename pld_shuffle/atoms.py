"""Atoms of a privacy loss, sorted by loss, on one side of the truth; and how they come onto a lattice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .bracket import Side
from .lattice import place
from .pld import PLD

Array = NDArray[np.float64]

MAX_CELLS = 2**23


@dataclass(frozen=True)
class Atoms:
    """P-masses and their losses (ascending, arrays of one shape), with what was left out.

    infinite : P-mass at infinite loss. missed : P-mass left out, at infinity for an upper law. slack : how
    far a loss may be off. visited : atoms summed, for benchmarks. lower_share : for upper atoms, the share of
    their mass that is certainly there, if known: then one run serves both sides.
    """

    mass: Array
    loss: Array
    infinite: float
    missed: float
    slack: float
    visited: int = 0
    lower_share: float | None = None


def require_room(cells: float) -> None:
    """Raise MemoryError if a lattice of `cells` points would be too large."""
    if not cells <= MAX_CELLS:
        raise MemoryError(
            f"a lattice of {cells:.0f} cells is over the limit of {MAX_CELLS}; use a larger rtol or step"
        )


def placed(atoms: Atoms, *, step: float, side: Side, reach: float, max_loss: float) -> PLD:
    """The lattice law of `atoms` on `side`. Raises MemoryError if the lattice would be too large."""
    require_room(0.5 * (float(atoms.loss[-1]) - float(atoms.loss[0])) / step)
    cell = np.floor(atoms.loss / step).astype(np.int64)
    # Clipping moves a loss by an ulp at most: in slack.
    offset = np.clip(atoms.loss - cell * step, 0.0, step)
    masses, low = place(atoms.mass, cell, offset, step=step, side=side, reach=reach)
    infinity = atoms.infinite + (atoms.missed if side is Side.UPPER else 0.0)
    return PLD.build(
        masses, low, step=step, side=side, infinity=infinity, max_loss=max_loss, slack=atoms.slack,
        atoms=atoms.visited,
    )  # fmt: skip
