"""Hidden in several steps at once: an attack that sees groups of steps in cells.

A contribution enters t of k steps, and nobody learns which. With l = dP/dW of a step, W its law without anybody, the
outputs z_1, ..., z_k have the density e_t(l(z_1), ..., l(z_k)) / C(k, t) to W^k, e_t the elementary symmetric
polynomial; on the other dataset likewise. Who sees of every step only in which cell it lies, of two groups of steps
only in which cell both together lie, and so on, has an attack, whatever the cells are. Let a cell have the W-mass w and
the means e_0, ..., e_t. For two independent groups

    w e_j = sum over i <= j of w' e_i w'' e_{j-i},

so a law of k steps is doubled as sums are (`ratio_sums`). Cells are intervals of the loss that steps with an
independent chance t/k each would have: only the width depends on them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..numerics.sides import ROUNDOFF, Array, Side
from .allocation import StepsLaw
from .discrete import OrderedPair
from .ratio_sums import additions
from .shifted import losses

MOST_CELLS, WORK, FINE = 400, 2400, 16  # of a group; times selected steps; and in how many places each they are sought
POWER = 0.03  # of masses, for the density of cells: small, so that far tails have some
TAIL = 1e-60  # of one step's law, in one cell
SMALLEST = 1e-270  # masses below tell nothing: what underflows is far less
LEAST_SEEN, WORST = 0.5, 0.03  # of P; error of losses over their scale, with which an attack is worth nothing


@dataclass(frozen=True, eq=False)
class _Group:
    """Cells: their places, and w e_j of both datasets, shape (2, selected + 1, cells), to a relative error."""

    place: Array
    mass: Array
    error: float

    def beside(self, other: _Group) -> _Group:
        """Of two independent groups together."""
        place, size = np.add.outer(self.place, other.place).ravel(), self.mass.shape[1]
        mass = np.zeros((2, size, place.size))
        for j in range(size):
            for i in range(j + 1):
                mass[:, j] += (self.mass[:, i, :, None] * other.mass[:, j - i, None, :]).reshape(2, -1)
        error = (self.error + other.error) * (1.0 + 1e-9) + ROUNDOFF * (size + 4.0)
        return _Group(place, mass, error).merged()

    def merged(self) -> _Group:
        """In at most MOST_CELLS cells."""
        mass, cells = self.mass.copy(), min(MOST_CELLS, WORK // self.mass.shape[1])
        mass[:, 1:, mass[0, 0] < SMALLEST] = 0.0
        every = mass.reshape(-1, self.place.size)
        octaves = np.arcsinh(self.place / max(float(every[0] @ np.abs(self.place)), SMALLEST))
        octaves -= octaves.min()
        fine = np.minimum((cells * FINE / max(octaves.max(), SMALLEST) * octaves).astype(int), cells * FINE - 1)
        sums = np.array([np.bincount(fine, row, cells * FINE) for row in every if row.any()])
        weight = np.cumsum(((sums / sums.sum(axis=1, keepdims=True)) ** POWER).sum(axis=0))
        cell = np.minimum((cells / weight[-1] * weight).astype(int), cells - 1)[fine]
        found = np.array([np.bincount(cell, row, cells) for row in (*every, every[0] * self.place)])
        found = found[:, found[0] > 0.0]
        error = self.error + ROUNDOFF * float(np.bincount(cell).max())
        return _Group(found[-1] / found[0], found[:-1].reshape(2, self.mass.shape[1], -1), error)


@lru_cache(maxsize=16)
def selected_steps(law: StepsLaw, selected: int) -> OrderedPair | None:
    """One order of the attack's pair, from below; None if masses underflow, or steps are too many for their rounding.

    O(log steps), of at most WORK^2 products each.
    """
    rows, error = law.steps.masses(Side.LOWER, TAIL, 1.0 / FINE)
    lone = float(rows[0, rows[2] == 0.0].sum())
    first, second, others = rows[:, rows[2] > 0.0]
    mass, share = np.zeros((2, selected + 1, others.size)), selected / (law.count + 1.0)
    mass[:, 0], mass[:, 1] = others, (first, second)
    ahead, behind = ((1.0 - share) * others + share * one for one in (first, second))
    known = [_Group(np.log(ahead / behind), mass, error).merged()]
    for left, right in additions(law.count):
        known.append(known[left].beside(known[right]))
    p, q = known[-1].mass[:, selected] / math.comb(law.count, selected)
    kept, error = p >= SMALLEST, known[-1].error + 4.0 * ROUNDOFF
    seen = -math.expm1(selected * math.log1p(-lone)) if lone < 1.0 else 1.0
    if float(p.sum()) + seen < LEAST_SEEN:
        return None
    # More of Q is a lower bound.
    pair = OrderedPair(losses(p[kept], np.maximum(q[kept], SMALLEST), 2.0 * error, seen), mass_error=error)
    return pair if pair.losses.error <= WORST * pair.scale else None
