"""Atoms of a privacy loss, on one side of the truth: masses and losses, and what was left out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Atoms:
    """P-masses and their losses (ascending, arrays of one shape).

    infinite : P-mass at infinite loss. missed : P-mass left out; an upper law has it at infinite loss, a
    lower one does without it. slack : how far a loss may be off. visited : atoms summed, for benchmarks.
    blur : the same for atoms that are sums of atoms of different losses, one number an atom, 0 for all others. A
    shift by slack repairs the loss of one atom, but not the ratio of a sum (`numerics.lattice.place`).
    separate : no upper atom stands for several of one cell, so that none has to be put on a lattice.
    """

    mass: Array
    loss: Array
    infinite: float = 0.0
    missed: float = 0.0
    slack: float = 0.0
    visited: int = 0
    blur: Array | None = None
    separate: bool = False

    @classmethod
    def none(cls) -> Atoms:
        """No loss at all."""
        return cls(np.ones(1), np.zeros(1))
