"""Atoms on a lattice, from both sides.

A law here is tilted mass on the losses ``i * step``: ``mass = p exp(tilt * loss)`` up to a common scale,
with the Q-mass implied, ``q = p exp(-loss)``; ``tilt = 0`` is the plain P-mass. Atoms come in as (mass, cell,
offset): loss = cell * step + offset with 0 <= offset <= step, sorted by loss.

* Upper, "connect the dots" (Doroshenko et al. 2022): split each atom onto its two neighbours so that
  P- and Q-mass are both kept. This reveals information, so the lattice law dominates.
* Lower: merge neighbouring mass so that the merged ratio is a lattice point's. This hides information, so the
  lattice law is dominated; total mass is kept. See `kernels.merge_upwards`.

Both err by O(step^2) where atoms are dense. Proofs: docs/theory.md, section 6.

Rounding of a loss is at most a few ulp; the caller books it (`PLD.slack`). An atom may be the sum of several of its
cell: splitting the sum is splitting each. Its loss is then a mean, and a shift of the loss does not repair the rounding
of a mean: a rare atom next to a frequent one would vanish in it. `blur` is the error of such a loss; the share that
goes up is raised by as much.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from . import kernels
from .sides import Side

Array = NDArray[np.float64]
Index = NDArray[np.int64]

# Offsets this close to a lattice point, in units of the loss, count as on it (booked in slack).
SNAP = 2e-15
MAX_POINTS = 2**23  # of one lattice


def require_memory(points: float) -> None:
    """Raise MemoryError if a lattice of `points` points would be too large."""
    if not points <= MAX_POINTS:
        raise MemoryError(
            f"a lattice of {points:.0f} cells is over the limit of {MAX_POINTS}; use a larger rtol or step"
        )


def aligned(step: float, loss: float) -> float:
    """The longest step up to `step` that has `loss` as a multiple; `step` where there is none."""
    if not 0.0 < loss < np.inf or loss / step > 2.0**40:
        return step
    return loss / float(np.ceil(loss / step))


def snap(cell: Index, offset: Array, step: float) -> tuple[Index, Array]:
    """Put atoms within rounding of a lattice point exactly on it."""
    tolerance = SNAP * (np.abs(cell) + 1.0) * step
    above = offset >= step - tolerance
    cell = cell + above
    offset = np.where(above | (offset <= tolerance), 0.0, offset)
    return cell, offset


def place(
    mass: Array,
    cell: Index,
    offset: Array,
    *,
    step: float,
    side: Side,
    tilt: float = 0.0,
    reach: float = np.inf,
    blur: Array | None = None,
) -> tuple[Array, int]:
    """Lattice masses and the index of the first one, for atoms sorted by loss.

    `side` upper: the result dominates the atoms; lower: it is dominated by them. `reach` is the
    largest gap over which the lower side merges (beyond it, rounding down loses less).
    Cost O(atoms + lattice points).
    """
    cell, offset = snap(cell, offset, step)
    low = int(cell[0]) - 1
    size = int(cell.max()) - low + 2
    if side is Side.UPPER:
        up = np.expm1(-offset) / np.expm1(-step)
        if blur is not None:
            # Snapping, and the rounding of the offset. The sum of a cell may even have been snapped onto its start.
            error = np.where(blur > 0.0, blur + 2.0 * SNAP * (np.abs(cell) + 1.0) * step, 0.0)
            up = np.minimum(1.0, up - error / np.expm1(-step))
        raised = mass * up * np.exp(tilt * (step - offset))
        lowered = mass * (1.0 - up) * np.exp(-tilt * offset)
        index = cell - low
        split: Array = np.bincount(index, lowered, size).astype(np.float64)
        split[1:] += np.bincount(index, raised, size)[:-1]
        return split, low
    out = np.zeros(size)
    kernels.merge_upwards(mass, cell - low, offset, step, tilt, reach, out)
    return out, low
