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
from ..numerics.validation import positive_float
from .base import ProfileMechanism
from .central import LARGEST_RATIO, LEAST_RATIO
from .shared import SUBSTITUTION, sampling_rate

Array = NDArray[np.float64]

_LARGE = 30.0  # from log(r g) on, logarithms are accurate enough


@dataclass(frozen=True)
class PoissonGaussian(ProfileMechanism):
    """Gaussian noise on a sum over a Poisson sample, substitution of one user; see the module.

    Parameters
    ----------
    sigma : standard deviation of the noise.
    rate : probability of being in the sample, in [1e-12, 1].
    norm : bound on the norm of one user's contribution (replacing it moves the sum by up to twice that).

    Raises ValueError or TypeError naming the argument. The adversary sees the noisy sum, not who was sampled.

    >>> from pld_shuffle import Accountant
    >>> round(Accountant().compose(PoissonGaussian(sigma=1.0, rate=0.01), 1000).get_epsilon(1e-6), 3)
    3.214
    """

    sigma: float
    rate: float
    norm: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", positive_float("sigma", self.sigma))
        object.__setattr__(self, "norm", positive_float("norm", self.norm))
        object.__setattr__(self, "rate", sampling_rate(self.rate))
        if not LEAST_RATIO <= self.norm / self.sigma <= LARGEST_RATIO:
            raise ValueError(
                f"sigma must be between norm/{LARGEST_RATIO:g} and norm/{LEAST_RATIO:g},"
                f" got {self.sigma!r} with norm={self.norm!r}"
            )

    @property
    def hidden(self) -> bool:
        return self.rate < 1.0

    @property
    def max_loss(self) -> float:
        return math.inf

    @cached_property
    def loss_scale(self) -> float:  # type: ignore[override]
        a, q = self.norm / self.sigma, self.rate
        z = np.linspace(-9.0, 9.0, 721)
        weight = np.exp(-0.5 * z * z)
        weight /= weight.sum()
        square = 0.0
        for share, mean in ((1.0 - q, 0.0), (q, a)):
            x = a * (z + mean)
            up, down = (_log_mixture(q, sign * x - 0.5 * a * a) for sign in (1.0, -1.0))
            square += share * float(weight @ (up - down) ** 2)
        return math.sqrt(square)

    def profile(self, growth: Array) -> Bounds:
        from scipy.special import erfc

        a, q = self.norm / self.sigma, self.rate
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
        a, q = self.norm / self.sigma, self.rate
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

    def assumptions(self) -> dict[str, str]:
        return {
            "neighbours": SUBSTITUTION,
            "adversary": "sees the noisy sum; the curator is trusted",
            "analysis": "exact pair of the Gaussian mechanism on a Poisson sample",
            "sampling": f"every user independently (rate {self.rate:g}), not revealed to the adversary",
        }


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
