"""Atoms on a lattice, from both sides (docs/theory.md, section 6).

Atoms come in as (mass, cell, offset): loss = cell * step + offset with 0 <= offset <= step, sorted by loss; the Q-mass
is implied, ``q = p exp(-loss)``.

* Upper, "connect the dots" (Doroshenko et al. 2022): split each atom onto its two neighbours, both masses kept.
* Lower: merge neighbouring mass so that the merged ratio is a lattice point's (`kernels.merge_upwards`).

Rounding of a loss is at most a few ulp; the caller books it (`PLD.loss_error`). An atom may be the sum of several of
its cell. Its loss is then a mean, and a shift of the loss does not repair the rounding of a mean: a rare atom next to a
frequent one would vanish in it. `ratio_error` is the error of such a loss; the share that goes up is raised by as much.
"""

from __future__ import annotations

import numpy as np

from . import kernels
from .sides import Array, Index, Side

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
    mass: Array, cell: Index, offset: Array, *, step: float, side: Side, max_gap: float = np.inf,
    ratio_error: Array | None = None,
) -> tuple[Array, int]:  # fmt: skip
    """Lattice masses and the index of the first one, for atoms sorted by loss.

    `side` upper: the result dominates the atoms; lower: it is dominated by them. `max_gap` is the
    largest gap over which the lower side merges (beyond it, rounding down loses less).
    Cost O(atoms + lattice points).
    """
    cell, offset = snap(cell, offset, step)
    low = int(cell[0]) - 1
    size = int(cell.max()) - low + 2
    if side is Side.UPPER:
        return _shared(mass, cell - low, size, _share_above(cell, offset, step, step, ratio_error)), low
    out = np.zeros(size)
    kernels.merge_upwards(mass, cell - low, offset, step, max_gap, out)
    return out, low


def split(mass: Array, loss: Array, *, step: float, knots: Index, ratio_error: Array | None = None) -> Array:
    """Upper masses at the multiples `knots` of step, which ascend; every loss is between two of them.

    Of an atom that is a sum, all parts must be between the same two. O(atoms log knots).
    """
    cell, offset = cells_of(loss, step)
    cell, offset = snap(cell, offset, step)
    index = np.searchsorted(knots, cell, side="right") - 1
    offset = offset + (cell - knots[index]) * step
    up = _share_above(cell, offset, (knots[index + 1] - knots[index]).astype(np.float64) * step, step, ratio_error)
    return _shared(mass, index, knots.size, up)


def _shared(mass: Array, index: Index, size: int, up: Array) -> Array:
    """Masses at so many points, of which every atom goes to point `index` and, the share `up`, to the next one."""
    found: Array = np.bincount(index, mass * (1.0 - up), size).astype(np.float64)
    found[1:] += np.bincount(index, mass * up, size)[:-1]
    return found


def cells_of(loss: Array, step: float) -> tuple[Index, Array]:
    """The lattice point below every loss, and how far above it the loss is, in [0, step]."""
    cell = np.floor(loss / step).astype(np.int64)
    # Clipping moves a loss by an ulp at most, and so does snapping beyond the first step: in the atoms' slack.
    return cell, np.clip(loss - cell * step, 0.0, step)


def _share_above(cell: Index, offset: Array, width: Array | float, step: float, ratio_error: Array | None) -> Array:
    """How much of an atom goes to the end of a cell of that width."""
    up: Array = np.expm1(-offset) / np.expm1(-width)
    if ratio_error is None:
        return up
    # Snapping, and the rounding of the offset. The sum of a cell may even have been snapped onto its start.
    error = np.where(ratio_error > 0.0, ratio_error + 2.0 * SNAP * (np.abs(cell) + 1.0) * step, 0.0)
    return np.asarray(np.minimum(1.0, up - error / np.expm1(-width)))


def fast_length(least: int) -> int:
    """The smallest 2^a 3^b 5^c from `least` on; docs/certificates.md, 10, is about transforms of such lengths."""
    odd = (3**b * 5**c for b in range(16) for c in range(11))
    return int(min(k << (-(-least // k) - 1).bit_length() for k in odd))
