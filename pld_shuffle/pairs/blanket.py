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
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..numerics.sides import Bounds
from ..numerics.validation import (
    nonnegatives,
    real,
    tolerance,
    user_count,
)

Array = NDArray[np.float64]

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
    n = user_count(n)
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
    rest = rest_of(hidden)
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
            n, first, second, smaller, rest_of(smaller), flat, rtol, error, spare, upper, nodes
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
    """Rough standard deviation of the privacy loss among n users, only to choose steps; 0 for no loss.

    By the chi-square divergence, as if the loss were normal: for N(mu^2/2, mu^2) it is e^(mu^2) - 1.
    """
    f, s, b = _masses(first, second, blanket)
    covered = b > 0.0
    square = float(np.sum((f - s)[covered] ** 2 / b[covered]))
    bare = float(np.sum(np.maximum(f - s, 0.0)[~covered]))
    return min(math.sqrt(math.log1p(square / n)) + bare, largest_loss(f, s, b))


def rest_of(blanket: Array) -> float:
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
