"""Central mechanisms: noise added once to a query's answer by a trusted curator.

They compose with shuffle mechanisms, so that a local-plus-central pipeline needs one accountant. Profiles,
with t = sensitivity / scale and mu = sensitivity / sigma:

    Laplace   delta(eps) = 1 - exp((eps - t)/2), 0 from eps = t on
    Gaussian  delta(eps) = Phi(-u) - e^eps Phi(-v),  u = eps/mu - mu/2,  v = eps/mu + mu/2

(Balle, Wang 2018, Thm 8, for the Gaussian, which is in `pairs.gaussian`.)

Sensitivity is meant for the neighbouring relation of the whole ledger: substitution, as for shuffle
mechanisms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..numerics.rounding import ROUNDOFF, above, below
from ..numerics.sides import Bounds
from ..numerics.validation import positive_float
from ..pairs.gaussian import RENYI_ROUNDING, gaussian_pair
from ..pairs.profile import ProfilePair
from .base import ProfileMechanism

Array = NDArray[np.float64]

LEAST_RATIO, LARGEST_RATIO = 1e-9, 700.0


class _Additive(ProfileMechanism):
    """Noise whose pair is symmetric and whose loss depends on sensitivity / noise only."""

    sensitivity: float

    def _check(self, name: str) -> None:
        noise = positive_float(name, getattr(self, name))
        sensitivity = positive_float("sensitivity", self.sensitivity)
        object.__setattr__(self, name, noise)
        object.__setattr__(self, "sensitivity", sensitivity)
        ratio = sensitivity / noise
        if not LEAST_RATIO <= ratio <= LARGEST_RATIO:
            raise ValueError(
                f"{name} must be between sensitivity/{LARGEST_RATIO:g} and"
                f" sensitivity/{LEAST_RATIO:g}, got {noise!r} with sensitivity={sensitivity!r}"
            )

    def assumptions(self) -> dict[str, str]:
        return {
            "neighbours": "the exact answers of neighbouring datasets are at most"
            f" {self.sensitivity:g} apart (substitution, where shuffle mechanisms are composed too)",
            "adversary": "sees the noisy answer; the curator is trusted",
            "analysis": f"exact pair of the {type(self).__name__} mechanism",
            "sampling": "the query is asked of the whole dataset",
        }


def _quotient(dividend: float, divisor: float) -> Bounds:
    """The largest float below and the smallest above the exact quotient (equal if it is a float)."""
    near = dividend / divisor
    exact = Fraction(dividend) / Fraction(divisor)
    return Bounds(
        near if near <= exact else math.nextafter(near, -math.inf),
        near if near >= exact else math.nextafter(near, math.inf),
    )


@dataclass(frozen=True)
class Laplace(_Additive):
    """Laplace noise of scale `scale` on an answer of sensitivity `sensitivity` (both positive).

    Raises ValueError or TypeError naming the argument.

    >>> from pld_shuffle import Accountant
    >>> round(Accountant().compose(Laplace(scale=10.0), 100).get_epsilon(1e-6), 2)
    4.69
    """

    scale: float
    sensitivity: float = 1.0

    def __post_init__(self) -> None:
        self._check("scale")

    @property
    def max_loss(self) -> float:
        """t, rounded up where it is not exact."""
        return float(_quotient(self.sensitivity, self.scale).upper)

    @property
    def max_loss_below(self) -> float:
        return float(_quotient(self.sensitivity, self.scale).lower)

    @property
    def top_mass(self) -> float:
        """Half of the noise pushes away from the other dataset's answer. (None if t had to be rounded.)"""
        return 0.5 if self.max_loss == self.max_loss_below else 0.0

    @property
    def loss_scale(self) -> float:
        t = self.max_loss
        return t if t > 1.0 else t * math.sqrt(1.0 - t / 3.0)

    def profile(self, growth: Array) -> Bounds:
        eps = np.log1p(growth)
        ends = []
        for t, sign in ((self.max_loss_below, -1.0), (self.max_loss, 1.0)):
            rest = np.maximum(t - eps * (1.0 - sign * 3.0 * ROUNDOFF), 0.0)
            ends.append(-np.expm1(-0.5 * rest) * (1.0 + sign * 8.0 * ROUNDOFF))
        return Bounds(*ends)

    @cached_property
    def pair(self) -> ProfilePair:  # type: ignore[override]
        return replace(super().pair, laplace=Bounds(self.max_loss_below, self.max_loss))

    def renyi_exact(self, order: float) -> Bounds:
        """Mironov 2017, Prop. 6."""
        t = self.sensitivity / self.scale
        share = order / (2.0 * order - 1.0)
        logs = np.logaddexp(math.log(share) + (order - 1.0) * t, math.log1p(-share) - order * t)
        # Small t cancel: the logarithm is known absolutely.
        error = RENYI_ROUNDING * (1.0 + 2.0 * order * t)
        low, high = (float(logs) + sign * error for sign in (-1.0, 1.0))
        return Bounds(max(0.0, low) / (order - 1.0), min(high / (order - 1.0), self.max_loss))


@dataclass(frozen=True)
class Gaussian(_Additive):
    """Gaussian noise of standard deviation `sigma` on an answer of sensitivity `sensitivity`.

    Raises ValueError or TypeError naming the argument.

    >>> from pld_shuffle import Accountant
    >>> round(Accountant().compose(Gaussian(sigma=10.0), 100).get_epsilon(1e-6), 4)
    4.8866
    """

    sigma: float
    sensitivity: float = 1.0

    def __post_init__(self) -> None:
        self._check("sigma")

    @property
    def max_loss(self) -> float:
        return math.inf

    @property
    def loss_scale(self) -> float:
        return self.sensitivity / self.sigma

    def profile(self, growth: Array) -> Bounds:
        return gaussian_pair(self._square).profile(growth, 0.0, 0.0)

    def renyi_exact(self, order: float) -> Bounds | None:
        return gaussian_pair(self._square).renyi(order)

    @cached_property
    def pair(self) -> ProfilePair:  # type: ignore[override]
        return gaussian_pair(self._square)

    @property
    def _square(self) -> Bounds:
        mu = self.sensitivity / self.sigma
        return Bounds(below(mu * mu, 4.0), above(mu * mu, 4.0))
