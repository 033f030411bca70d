"""The privacy blanket's profile without a concentration inequality, certified from both sides. Arrays only.

n users; every report law is at least the sub-measure b (the *blanket*, total mass gamma). The target's report
has law f on one dataset and s on its neighbour. For the adversary that sees which of the other n-1 users drew
their report from the blanket (and all other reports), the hockey-stick divergence at E = e^eps is exactly

    delta = (1/n) E[(X_1 + ... + X_n)_+] + sum over b(y)=0 of (f(y) - E s(y))_+,

X iid, X = (f(y) - E s(y))/b(y) with probability b(y), else 0 (Balle, Bell, Gascon, Nissim 2019, Lemma 8,
with equality; proof in docs/theory.md, section 8). With b the law of a third input the same expression is
the exact divergence of the attack on n-1 others who all hold that input.

`profile` evaluates it for any finite law. With S = sum X_i, k(z) = n log E exp(zX), Z ~ N(0, tau^2):

* smoothing: E(S+Z)_+ - tau^2 E phi_tau(S) <= E(S)_+ <= E(S+Z)_+, phi_tau the density of Z;
* E(S+Z)_+ = (1/2 pi i) int exp(k(z) + tau^2 z^2/2)/z^2 dz over Re z = lam > 0, and the density with tau^2
  for 1/z^2; lam is the saddle point, so that both are relatively accurate at every delta;
* the trapezoidal rule of step 2 pi/T is by Poisson summation sum over integers m of
  exp(lam m T) E(S + Z - m T)_+: never below, and above by aliases that Chernoff bounds;
* nodes between the lobes of |E exp((lam+iy)X)|^n are skipped, with a bound.

No lattice and no decay of the transform is needed. The cost is that of the lobes (at most of order
1/sqrt(rtol n) of them) times the number of groups; it does not grow with n. Few users with few groups are
enumerated; high rare atoms are cut (`contour_kernels.positive_part`).

`laplace_groups`, `gaussian_groups` give finite laws on either side of the pair of inputs (0, 1) of local
noise on [0, 1], the worst pair (docs/theory.md, section 8).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .bracket import Bounds, Side
from .validation import crowd_size, nonnegatives, positive_float, positive_int, real, tolerance

Array = NDArray[np.float64]

LEGENDRE = 12  # nodes of a Gauss-Legendre sum
LARGEST_EXPONENT = 650.0
FULL = 2.0**-50  # rounding of a sum of masses, per group


def profile(
    first: Any,
    second: Any,
    blanket: Any,
    n: int,
    growth: Any,
    *,
    rtol: float = 1e-6,
    mass_error: float = 0.0,
    law: bool = False,
) -> Bounds:
    """Bounds on delta(eps) of the blanket adversary; see the module.

    Parameters
    ----------
    first, second, blanket : masses of the groups of reports under the target's two inputs and under the
        blanket, shape (groups,); at least 0. first, second sum to about 1, blanket to gamma <= 1.
    n : users whose reports are shuffled together, the target included; 1 <= n <= 10^13.
    growth : e^eps - 1 >= 0, a scalar or an array of shape (points,); finite.
    rtol : wanted relative width of the bracket, in (1e-9, 1]. Not promised: where the law of the sum has
        atoms near 0, or rounding is larger (u sqrt(n) times a small factor), the bracket is wider.
    mass_error : bound on the relative error of every mass given.
    law : whether `blanket` is a law itself, so that gamma is 1 exactly (an attack).

    Returns Bounds of arrays of the shape of growth. Raises ValueError or TypeError naming the argument.

    >>> bounds = profile([0.75, 0.25], [0.25, 0.75], [0.25, 0.25], 1, 1.0)
    >>> float(bounds.lower) <= 0.25 <= float(bounds.upper)
    True
    """
    from . import contour_kernels

    masses = _masses(first, second, blanket)
    n = crowd_size(n)
    points = nonnegatives("growth", growth)
    if not np.all(np.isfinite(points)):
        raise ValueError(f"growth must be finite, got {growth!r}")
    rtol = tolerance("rtol", rtol)
    error = real("mass_error", mass_error)
    if not 0.0 <= error <= 1e-3:
        raise ValueError(f"mass_error must be in [0, 1e-3], got {mass_error!r}")
    flat = np.ascontiguousarray(points.ravel())
    lower, upper = np.empty(flat.size), np.empty(flat.size)
    nodes = np.empty(flat.size)
    first, second, hidden = masses
    rest = _rest(hidden)
    near = FULL * hidden.size
    if law or rest >= near:
        rest = 0.0 if law else rest
        contour_kernels.profile(
            n, first, second, hidden, rest, flat, rtol, error, lower, upper, nodes
        )
    else:
        # Up to rounding the blanket is everything: a smaller one is an upper bound, a larger one a lower.
        spare = np.empty(flat.size)
        contour_kernels.profile(
            n, first, second, hidden, 0.0, flat, rtol, error + near, lower, spare, nodes
        )
        smaller = hidden * (1.0 - 2.0 * near)
        contour_kernels.profile(
            n, first, second, smaller, _rest(smaller), flat, rtol, error, spare, upper, nodes
        )
    return Bounds(lower.reshape(points.shape), upper.reshape(points.shape))


def largest_loss(first: Any, second: Any, blanket: Any) -> float:
    """log max f/s over the groups, the largest privacy loss; inf if some group has s = 0 < f.

    The blanket does not matter for it: delta is 0 from here on. Not rounded to a side.
    """
    f, s, _ = _masses(first, second, blanket)
    if np.any((s == 0.0) & (f > 0.0)):
        return math.inf
    shown = f > 0.0
    return float(np.log(np.max(f[shown] / s[shown], initial=1.0)))


def loss_scale(first: Any, second: Any, blanket: Any, n: int) -> float:
    """Rough standard deviation of the privacy loss among n users, only to choose steps; 0 for no loss."""
    f, s, b = _masses(first, second, blanket)
    covered = b > 0.0
    square = float(np.sum((f - s)[covered] ** 2 / b[covered]))
    bare = float(np.sum(np.maximum(f - s, 0.0)[~covered]))
    return min(math.sqrt(square / n) + bare, largest_loss(f, s, b))


def laplace_groups(eps0: float, *, side: Side, cells: int = 256) -> tuple[Array, Array, Array]:
    """(first, second, blanket): a finite law on `side` of Laplace noise of scale 1/eps0, inputs 0 and 1.

    Reports left of 0 and right of 1 have constant ratios. For y in [0, 1/2] the second law is the
    blanket itself, and u = first/blanket = e^(eps0 (1-2y)); right of 1/2 the mirror image. In q = sqrt(u),
    from 1 to e^(eps0/2), a cell [q, q'] has blanket mass c (1/q - 1/q') and first mass c (q' - q), where
    c = e^(-eps0/2)/2. Upper: the cell's mass goes to its ends, all three masses kept (a mean-preserving
    spread of the point (first, second)/blanket along a segment; a share q/(q+q') goes up). Lower: each
    cell is merged. Cells of equal width in q add least variance; relative to that of u it is below 1/cells^2.

    Relative rounding error of every mass below 1e-14 (pass it as mass_error). cells: in each half.
    """
    budget = positive_float("eps0", eps0)
    count = positive_int("cells", cells)
    top = math.expm1(0.5 * budget)
    step = top / count
    q = 1.0 + step * np.arange(count + 1)
    c = 0.5 * math.exp(-0.5 * budget)
    inside = c * step / (q[:-1] * q[1:])
    end = 0.5 * math.exp(-budget)
    if _side(side) is Side.LOWER:
        blanket = np.append(inside, end)
        first = np.append(np.full(count, c * step), 0.5)
    else:
        blanket = np.zeros(count + 1)
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


def _rest(blanket: Array) -> float:
    """1 - gamma, correctly rounded."""
    return max(0.0, -math.fsum([-1.0, *blanket.tolist()]))


def _masses(first: Any, second: Any, blanket: Any) -> tuple[Array, Array, Array]:
    arrays = [
        nonnegatives(name, value)
        for name, value in (("first", first), ("second", second), ("blanket", blanket))
    ]
    shape = arrays[0].shape
    for name, array in zip(("first", "second", "blanket"), arrays, strict=True):
        if array.ndim != 1 or array.shape != shape or array.size == 0:
            raise ValueError(
                f"first, second and blanket must be 1-D arrays of one length, {name} has shape"
                f" {array.shape}"
            )
        if not math.fsum(array) <= 1.0 + 1e-9:
            raise ValueError(f"{name} must sum to at most 1, sums to {math.fsum(array)!r}")
    return arrays[0], arrays[1], arrays[2]
