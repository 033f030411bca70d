"""From a crowd pair and a sampling rate to atoms sorted by privacy loss.

Subsampling, fixed-size random cohorts and substitution (Zhu-Dong-Wang 2022, Prop. 30, both halves in one
pair; docs/theory.md, section 5): with x = theta t > 0 the atom has masses (1 + (2q-1) x, 1 - x) times the
coin's weight, its mirror image has them swapped, and all remaining mass is at loss 0. q = 1 is the plain
pair, so there is one kernel. The largest finite loss is log1p(2 q theta / (1 - theta)).

The atoms of one cell of the lattice are summed first (they lie between the same two lattice points, so
splitting the sum is the sum of the splits, and merging them is a merge).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from .atoms import Atoms, placed, require_room
from .bracket import Side
from .crowd import ROUNDOFF, CrowdPair, Resolution
from .pld import PLD

SMALLEST_CELL = 1e-290
# Losses are log1p of a ratio known to a few ulp, and lattice points are rounded: relative error below
# LOSS_ULPS u, booked as slack on every formed law.
LOSS_ULPS = 48.0


def largest_loss(pair: CrowdPair, rate: float) -> float:
    """The largest finite loss of the pair; inf if theta = 1 makes losses unbounded."""
    if pair.trivial:
        return 0.0
    if rate == 1.0 or pair.max_loss == math.inf:
        return pair.max_loss
    return math.log1p(2.0 * rate * pair.theta / pair.gap) * (1.0 + 8.0 * ROUNDOFF)


def crowd_atoms(
    pair: CrowdPair, *, rate: float, step: float, side: Side, resolution: Resolution
) -> Atoms:
    """The atoms of `pair` under sampling rate `rate`, summed per cell of the lattice of `step`.

    Cost O(sqrt n) atoms per component (`CrowdPair.mixture`) plus the number of cells. Raises
    MemoryError before allocating if the lattice would exceed MAX_CELLS points.
    """
    upper = side is Side.UPPER
    mixture = pair.mixture(side, resolution)
    if mixture.coins.size == 0:
        return Atoms(np.array([mixture.null]), np.zeros(1), 0.0, mixture.missed, 0.0, 0, None)
    # Two tails of a fair coin, both masses of each atom: at most 2 * 2 exp(-reach^2/2) / 2 of P-mass.
    coin_missed = resolution.missed / 4.0
    window = math.sqrt(2.0 * math.log(4.0 / coin_missed))
    steps = 0.5 * window * np.sqrt(mixture.coins)
    clipped = np.any(window < np.sqrt(mixture.coins))
    sign = 1.0 if upper else -1.0
    rounding = ROUNDOFF * (96.0 + 4.0 * steps + mixture.coins.size)
    weight = mixture.weight * (1.0 + sign * rounding)

    # The largest loss inside the windows sizes the table of cell edges.
    share = np.minimum(1.0, (window + 2.0 / np.sqrt(mixture.coins)) / np.sqrt(mixture.coins))
    x = np.max(mixture.bias * share)
    if x >= mixture.bias.max():
        y = float(mixture.gap.min())
        if y <= 0.0:  # theta = 1: the last finite atom has t = 1 - 2/m
            y = 2.0 / float(mixture.coins.max())
    else:
        y = 1.0 - x
    span = math.log1p(2.0 * rate * float(x) / y)
    count = math.ceil(span / step) + 2
    require_room(count)
    from . import kernels

    edges = 2.0 * rate / (2.0 * rate + np.expm1(step * np.arange(count + 1)))
    edges[0] = 2.0
    cell_x, cell_y = np.zeros(count + 1), np.zeros(count + 1)
    top_gap = float(mixture.gap.min())
    centre, top_x, top_y, infinite, visited = kernels.coin_cells(
        mixture.coins, mixture.bias, mixture.gap, weight, window, rate, step,
        edges, top_gap, cell_x, cell_y,
    )  # fmt: skip
    sum_x = float(cell_x.sum()) + top_x + infinite
    null = mixture.null + centre + 2.0 * (1.0 - rate) * sum_x
    # Subnormal sums have lost their ratios: they count as missed.
    kept = np.flatnonzero(cell_y > SMALLEST_CELL)
    lost = (cell_y <= SMALLEST_CELL) & (cell_x + cell_y > 0.0)
    tiny = 2.0 * float(np.sum(cell_x[lost] + cell_y[lost])) + 1e-300 if lost.any() else 0.0
    p = cell_y[kept] + 2.0 * rate * cell_x[kept]
    q = cell_y[kept]
    loss = np.log1p(2.0 * rate * cell_x[kept] / q)
    if top_y > 0.0:
        kept = np.append(kept, count)
        p = np.append(p, top_y + 2.0 * rate * top_x)
        q = np.append(q, top_y)
        loss = np.append(loss, math.log1p(2.0 * rate * float(mixture.bias.max()) / top_gap))
    mass = np.concatenate((q[::-1], [null], p))
    loss = np.concatenate((-loss[::-1], [0.0], loss))
    missed = mixture.missed + (coin_missed if clipped else 0.0) + tiny
    # Sums over atoms and components round the ratio of a cell; merging leaves 1e-14 of a step.
    summed = ROUNDOFF * (LOSS_ULPS + 2.0 * (mixture.coins.size + float(steps.max())))
    slack = summed * float(loss[-1]) + 2e-14 * step
    lower_share = mixture.lower_share
    if lower_share is not None:
        lower_share *= (1.0 - 3.0 * float(rounding.max())) * (
            1.0 - (coin_missed if clipped else 0.0)
        )
    return Atoms(mass, loss, 2.0 * rate * infinite, missed, slack, visited, lower_share)


def crowd_pld(
    pair: CrowdPair, *, rate: float, step: float, side: Side, resolution: Resolution, reach: float
) -> PLD:
    """The law of `pair` under sampling rate `rate` on the lattice of `step`, certified on `side`."""
    atoms = crowd_atoms(pair, rate=rate, step=step, side=side, resolution=resolution)
    return placed(atoms, step=step, side=side, reach=reach, max_loss=largest_loss(pair, rate))


def crowd_plds(
    pair: CrowdPair, *, rate: float, step: float, resolution: Resolution, reach: float
) -> tuple[PLD, PLD]:
    """The (lower, upper) laws, from one run of the kernel where nothing had to be bucketed."""
    limit = largest_loss(pair, rate)
    atoms = crowd_atoms(pair, rate=rate, step=step, side=Side.UPPER, resolution=resolution)
    upper = placed(atoms, step=step, side=Side.UPPER, reach=reach, max_loss=limit)
    share = atoms.lower_share
    if share is None:
        below = crowd_atoms(pair, rate=rate, step=step, side=Side.LOWER, resolution=resolution)
    else:
        below = replace(atoms, mass=share * atoms.mass, infinite=share * atoms.infinite)
    return placed(below, step=step, side=Side.LOWER, reach=reach, max_loss=limit), upper
