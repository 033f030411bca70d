"""The Gaussian mechanism on a Poisson sample, as in DP-SGD, for neighbours that differ in one user's value.

Everyone is in the sample with probability q, independently. Contributions of norm at most C are summed, and noise
N(0, sigma^2) is added to every coordinate. In units of sigma, with a = C/sigma, the pair is

    P = (1-q) N(0) + q N(a),   Q = (1-q) N(0) + q N(-a).

It dominates, at every s = e^eps >= 1 and by symmetry in both orders. Given the rest of the sample, which
has one law for both datasets, the outputs are (1-q) N(0) + q N(x) and (1-q) N(0) + q N(x'), |x|, |x'| <= a,
up to a shift. Advanced joint convexity (Balle, Barthe, Gaboardi 2018, Thm 2) makes their divergence q times
that of order s' = 1 + (s-1)/q of N(x) from (1-b) N(0) + b N(x'), b = s/s': with z standard normal, v = -x
and v' = x' - x it is

    E (1 - s' R)_+,   R = (1-b) exp(v.z - |v|^2/2) + b exp(v'.z - |v'|^2/2),

a convex function of a sum of two functions of the Gaussians v.z and v'.z. Of all joint laws with these
marginals the comonotone one, collinear v and v' of one direction, is the largest in convex order (Kaas et
al. 2002); and a longer v is a martingale spread of R. So |v| = a and |v'| = 2a, that is x = -x', is the
worst. Collinear contributions C and -C attain it, so the pair is exact if the adversary knows the rest of
the sample.

Profile: with r = e^(a^2/2) (1-q)/q, g = s - 1, the loss exceeds eps where w = e^(a x) solves w^2 - r g w -
s > 0, and

    delta = q (Phi(a-x) - Phi(-a-x)) - g ((1-q) Phi(-x) + q Phi(-a-x))

at the positive root; x moves delta to second order only, so its rounding counts for nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..numerics.rounding import ROUNDOFF
from ..numerics.sides import Bounds
from .profile import ProfilePair

Array = NDArray[np.float64]

_LARGE = 30.0  # from log(r g) on, logarithms are accurate enough


@dataclass(frozen=True)
class PoissonGaussianPair(ProfilePair):
    """The pair of the module: `far` is a = C/sigma, `rate` is q."""

    far: float
    rate: float

    @property
    def max_loss(self) -> Bounds:
        return Bounds(math.inf, math.inf)

    @cached_property
    def scale(self) -> float:  # type: ignore[override]
        a, q = self.far, self.rate
        z = np.linspace(-9.0, 9.0, 721)
        weight = np.exp(-0.5 * z * z)
        weight /= weight.sum()
        square = 0.0
        for share, mean in ((1.0 - q, 0.0), (q, a)):
            x = a * (z + mean)
            up, down = (_log_mixture(q, sign * x - 0.5 * a * a) for sign in (1.0, -1.0))
            square += share * float(weight @ (up - down) ** 2)
        return math.sqrt(square)

    def profile(self, growth: Array, rtol: float, missed: float) -> Bounds:
        from scipy.special import erfc

        a, q = self.far, self.rate
        x = self._threshold(growth)

        def tail(y: Array) -> Array:
            found: Array = 0.5 * erfc(math.sqrt(0.5) * y)
            return found

        near, far = tail(x - a), tail(x + a)
        drop = growth * ((1.0 - q) * tail(x) + q * far)
        delta = q * (near - far) - drop
        # Arguments are known to a few ulp of x + a, and tails move by (1 + y^2) times that.
        error = 64.0 * ROUNDOFF * (1.0 + (x + a) ** 2) * (q * (near + far) + drop) + 1e-300
        return Bounds(np.maximum(delta - error, 0.0), np.clip(delta + error, 0.0, 1.0))

    def _threshold(self, growth: Array) -> Array:
        """Where the loss is log(1 + growth), in units of sigma."""
        a, q = self.far, self.rate
        with np.errstate(divide="ignore"):
            log_t = 0.5 * a * a + np.log1p(-q) - math.log(q) + np.log(growth)
        t = np.exp(np.minimum(log_t, _LARGE))
        # w - 1 without cancellation; w = (t + sqrt(t^2 + 4s)) / 2.
        square = t * t + 4.0 * growth
        log_w = np.log1p(0.5 * (t + square / (np.sqrt(square + 4.0) + 2.0)))
        root = 0.5 * np.logaddexp(2.0 * log_t, math.log(4.0) + np.log1p(growth))
        far = np.logaddexp(log_t, root) - math.log(2.0)
        found: Array = np.where(log_t > _LARGE, far, log_w) / a
        return found


def _log_mixture(rate: float, exponent: Array) -> Array:
    """log(1 - rate + rate e^exponent)."""
    if rate == 1.0:
        return exponent
    found: Array = np.where(
        exponent < 1.0,
        np.log1p(rate * np.expm1(np.minimum(exponent, 1.0))),
        np.logaddexp(math.log1p(-rate), math.log(rate) + exponent),
    )
    return found
