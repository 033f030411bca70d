"""Atoms of a privacy loss, on one side of the truth: masses and losses, and what was left out."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..numerics.rounding import ROUNDOFF, total
from ..numerics.sides import Side

Array = NDArray[np.float64]
MIRRORED = 16.0 * ROUNDOFF  # masses of opposite losses are mirror images to so much


@dataclass(frozen=True)
class Atoms:
    """P-masses and their losses, on one side of the truth.

    mass, loss : arrays of one shape (atoms,); losses ascend.
    infinite : P-mass at infinite loss.
    missed : P-mass left out. An upper law has it at infinite loss, a lower one does without it.
    slack : how far a loss may be off, absolutely: rounding.
    visited : atoms that were summed, for benchmarks.
    blur : how far the loss of an atom may be off that is a sum of atoms of different losses; an array, 0 for all other
        atoms. A shift by `slack` repairs the loss of one atom, but not the ratio of a sum (`numerics.lattice.place`).
    separate : whether no upper atom stands for several of one cell, so that none has to be put on a lattice.
    total : the finite P-mass of the law that is meant, if known. Its masses at losses other than 0 are then `mass`, up
        to a relative error `doubt`. Many rounds need it: what rounding adds to a law counts once in every round.
    """

    mass: Array
    loss: Array
    infinite: float = 0.0
    missed: float = 0.0
    slack: float = 0.0
    visited: int = 0
    blur: Array | None = None
    separate: bool = False
    total: float | None = None
    doubt: float = MIRRORED

    @classmethod
    def none(cls) -> Atoms:
        """No loss at all."""
        return cls(np.ones(1), np.zeros(1))


def completed(atoms: Atoms, side: Side) -> Atoms:
    """`atoms` of a symmetric pair on `side`, loss 0 having whatever is missing to 1.

    Masses at losses above 0, and `infinite`, decide the profile of a symmetric pair on s >= 1, and that decides the
    pair; so what was rounded up or down at other losses is taken from or given to loss 0 (docs/theory.md, section 7).
    Where that has too little, or is no atom, nothing changes.
    """
    upper = side is Side.UPPER
    here = int(np.searchsorted(atoms.loss, 0.0))
    if np.count_nonzero(atoms.loss[here : here + 2] == 0.0) != 1:
        return atoms
    whole = 1.0 - atoms.infinite - (atoms.missed if upper else 0.0)
    mass = atoms.mass.copy()
    mass[here] = 0.0
    rest = math.fsum((whole, -total(mass)))
    if not rest > 0.0:
        return atoms
    mass[here] = max(0.0, rest + (2.0 if upper else -2.0) * ROUNDOFF)
    return replace(atoms, mass=mass, total=whole)
