"""Finite laws on either side of local noise on [0, 1], for the pair of inputs (0, 1).

That pair is the worst one for the blanket adversary (docs/theory.md, section 8).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..numerics.sides import Side
from ..numerics.validation import positive_float, positive_int

Array = NDArray[np.float64]

LEGENDRE = 12  # nodes of a Gauss-Legendre sum
LARGEST_EXPONENT = 650.0
GRADED = 0.7 ** np.arange(1.0, 71.0)  # places of cells next to constant ratios, in cells


def laplace_groups(
    eps0: float, *, side: Side, cells: int = 256, graded: bool = False
) -> tuple[Array, Array, Array]:
    """(first, second, blanket): a finite law on `side` of Laplace noise of scale 1/eps0, inputs 0 and 1.

    Reports left of 0 and right of 1 have constant ratios. For y in [0, 1/2] the second law is the
    blanket itself, and u = first/blanket = e^(eps0 (1-2y)); right of 1/2 the mirror image. In q = sqrt(u),
    from 1 to e^(eps0/2), a cell [q, q'] has blanket mass c (1/q - 1/q') and first mass c (q' - q), where
    c = e^(-eps0/2)/2. Upper: the cell's mass goes to its ends, all three masses kept (a mean-preserving
    spread of the point (first, second)/blanket along a segment; a share q/(q+q') goes up). Lower: each
    cell is merged. Cells of equal width in q add least variance; relative to that of u it is below 1/cells^2.

    Relative rounding error of every mass below 1e-14 (pass it as mass_error). cells: in each half. graded:
    with more of them next to the constant ratios, as close as 1e-11 of the first cell.
    """
    budget = positive_float("eps0", eps0)
    count = positive_int("cells", cells)
    top = math.expm1(0.5 * budget)
    short = top / count * np.arange(count, -1, -1.0)
    if graded:
        short = np.concatenate((short[:-1], short[-2] * GRADED, [0.0]))
    step, q = -np.diff(short), 1.0 + (top - short)
    c = 0.5 * math.exp(-0.5 * budget)
    inside = c * step / (q[:-1] * q[1:])
    end = 0.5 * math.exp(-budget)
    if _side(side) is Side.LOWER:
        blanket = np.append(inside, end)
        first = np.append(c * step, 0.5)
    else:
        blanket = np.zeros(q.size)
        blanket[-1] = end
        blanket[1:] += inside * (q[:-1] / (q[:-1] + q[1:]))
        blanket[:-1] += inside * (q[1:] / (q[:-1] + q[1:]))
        first = blanket * q * q
    return _mirrored(first, blanket)


def gaussian_groups(
    sigma: float, *, side: Side, missed: float = 1e-15, cells: int = 512
) -> tuple[Array, Array, Array]:
    """(first, second, blanket): a finite law on `side` of Gaussian noise N(0, sigma^2), inputs 0 and 1.

    On y < 1/2 the second law is the blanket and u = first/blanket = exp((1-2y)/(2 sigma^2)), unbounded;
    the mirror image right of 1/2. Cells as in `laplace_groups`; their masses are Gauss-Legendre sums with
    positive terms, of truncation error below 1e-17 relative because no exponent varies by more than 1 in a
    cell (Bernstein ellipse of parameter 8; docs/theory.md, section 8). Beyond the point that the first law
    passes with probability `missed` (in (0, 0.1)) the upper law has no blanket and an infinite loss, the
    lower one a single merged group. Choose missed well under the smallest delta of interest, but not
    1e-100: the farthest ratios are what costs time.

    Cell ends: quantiles of N(-1, 3 sigma^2), which add least variance, together with equal steps. Relative
    rounding error of every mass below 1e-12 (pass it as mass_error). Raises ValueError where masses
    underflow (a small sigma with a small `missed`).
    """
    from scipy.special import ndtr, ndtri

    width = positive_float("sigma", sigma)
    left_out = positive_float("missed", missed)
    if not left_out < 0.1:
        raise ValueError(f"missed must be below 0.1, got {missed!r}")
    count = positive_int("cells", cells)
    lower = _side(side) is Side.LOWER
    start = width * float(ndtri(left_out))
    reach = 1.0 - start
    if not 0.5 * (reach / width) ** 2 <= LARGEST_EXPONENT:
        raise ValueError(
            f"sigma={sigma!r} with missed={missed!r} needs densities of exp(-{LARGEST_EXPONENT:g}) or"
            " less; use a larger missed"
        )
    longest = min(0.25 * width, width * width / reach)
    steps = math.ceil((0.5 - start) / longest) + 1
    spread = math.sqrt(3.0) * width
    low, high = ndtr((start + 1.0) / spread), ndtr(1.5 / spread)
    graded = spread * ndtri(np.linspace(low, high, count + 1)[1:-1]) - 1.0
    even = np.linspace(start, 0.5, steps + 1)
    ends = np.union1d(even, graded[(graded > start) & (graded < 0.5)])
    kept = np.append(np.diff(ends) > 1e-6 * longest, True)
    kept[0] = True  # nothing between `start` and the first cell may be lost
    ends = ends[kept]
    nodes, weights = np.polynomial.legendre.leggauss(LEGENDRE)
    half = 0.5 * np.diff(ends)[:, None]
    y = ends[:-1, None] + half * (1.0 + nodes)
    share = half * weights / (width * math.sqrt(2.0 * math.pi))
    density = share * np.exp(-0.5 * ((y - 1.0) / width) ** 2)
    far, near = float(ndtr((start - 1.0) / width)), float(ndtr(start / width))
    if lower:
        first = np.append(np.sum(share * np.exp(-0.5 * (y / width) ** 2), axis=1), near)
        return _mirrored(first, np.append(np.sum(density, axis=1), far))
    rise = (ends[1:, None] - y) / width**2
    total = 2.0 * half / width**2
    blanket = np.zeros(ends.size)
    blanket[:-1] += np.sum(density * (np.expm1(rise) / np.expm1(total)), axis=1)
    blanket[1:] += np.sum(
        density * (np.exp(rise) * np.expm1(total - rise) / np.expm1(total)), axis=1
    )
    inside = _mirrored(blanket * np.exp((0.5 - ends) / width**2), blanket)
    # The far ends, outside of the upper law's blanket: (near, 0), (0, far) left, and (far, near) right, where
    # the second law is the larger one everywhere.
    bare = (np.array([near, 0.0, far]), np.array([0.0, far, near]), np.zeros(3))
    first, second, covered = (np.concatenate(pair) for pair in zip(inside, bare, strict=True))
    return first, second, covered


def least_missed(sigma: float) -> float:
    """About the least `missed` that `gaussian_groups` can take: below it masses underflow."""
    from scipy.special import ndtr

    return 1.001 * float(ndtr(1.0 / sigma - math.sqrt(2.0 * LARGEST_EXPONENT)))


def _mirrored(first: Array, blanket: Array) -> tuple[Array, Array, Array]:
    """Both halves of a symmetric pair: on the left one the second law is the blanket."""
    return (
        np.concatenate((first, blanket)),
        np.concatenate((blanket, first)),
        np.concatenate((blanket, blanket)),
    )


def _side(side: Side) -> Side:
    if not isinstance(side, Side):
        raise TypeError(f"side must be a Side, got {side!r}")
    return side
