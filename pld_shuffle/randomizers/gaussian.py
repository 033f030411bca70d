"""The Gaussian mechanism on [0, 1]: x + N(0, sigma^2), which is only (eps0, delta0)-LDP.

The pair (0, 1) is the worst one for every epsilon, with (Balle and Wang 2018, Theorem 8)

    delta0 = Phi(1/(2 sigma) - eps0 sigma) - e^eps0 Phi(-1/(2 sigma) - eps0 sigma).

With u = eps0 sigma - 1/(2 sigma), v = eps0 sigma + 1/(2 sigma) one has v^2 - u^2 = 2 eps0, hence
delta0 = exp(-u^2/2) (erfcx(u/sqrt 2) - erfcx(v/sqrt 2)) / 2. This form is used for u > 0: the
rounding of exp(-u^2/2) then scales the difference, instead of entering one of its terms only.

The likelihood ratio is unbounded: p = q = inf, and reductions that need a finite p do not apply.
The blanket does: gamma = 2 Phi(-1/(2 sigma)) (Balle et al. 2019, Lemma 6.3), and gamma = 1 - tv.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..numerics.validation import open_unit, positive_float, real_array
from .base import FloatArray
from .border import EPS0_MAX, generator, local_epsilon, unit_array


@dataclass(frozen=True, kw_only=True)
class Gaussian:
    """Gaussian noise of standard deviation sigma on values in [0, 1]; the report is a real number.

    sigma: standard deviation, positive. eps0: the local epsilon, in (0, 700], at which the
    guarantee is stated; the randomizer is (eps0, delta0)-LDP for each of them.
    Raises TypeError or ValueError for anything else.
    """

    sigma: float
    eps0: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", positive_float("sigma", self.sigma))
        object.__setattr__(self, "eps0", local_epsilon(self.eps0))

    @classmethod
    def from_delta0(cls, *, sigma: float, delta0: float) -> Gaussian:
        """The smallest eps0 (from above, to 1e-12) with which noise sigma is (eps0, delta0)-LDP.

        delta0: in (0, 1). Raises ValueError if already tv <= delta0 (no positive eps0 is needed)
        or if eps0 would exceed 700.
        """
        width = positive_float("sigma", sigma)
        target = open_unit("delta0", delta0)
        if not _delta0(width, 0.0) > target:
            raise ValueError(
                f"delta0={delta0!r} is at least the total variation {_delta0(width, 0.0)!r} for "
                f"sigma={sigma!r}: the randomizer is (0, delta0)-LDP"
            )
        if not _delta0(width, EPS0_MAX) <= target:
            raise ValueError(f"sigma={sigma!r}, delta0={delta0!r} need eps0 > {EPS0_MAX:g}")
        root = _root(lambda eps: _delta0(width, eps) - target, 0.0, EPS0_MAX, 1e-14)
        return cls(sigma=width, eps0=_step_until(root, lambda eps: _delta0(width, eps) <= target))

    @classmethod
    def from_budget(cls, *, eps0: float, delta0: float) -> Gaussian:
        """The smallest sigma (from above, relative 1e-12) that is (eps0, delta0)-LDP.

        delta0: in (0, 1).
        """
        epsilon = local_epsilon(eps0)
        target = open_unit("delta0", delta0)
        low = high = 1.0
        while not _delta0(high, epsilon) <= target:
            high *= 2
        while not _delta0(low, epsilon) > target:
            low /= 2
        root = _root(lambda width: _delta0(width, epsilon) - target, low, high, 1e-15)
        return cls(
            sigma=_step_until(root, lambda width: _delta0(width, epsilon) <= target), eps0=epsilon
        )

    @property
    def delta0(self) -> float:
        """The exact delta of the pair (0, 1) at eps0, which no other pair exceeds."""
        return _delta0(self.sigma, self.eps0)

    @property
    def tv(self) -> float:
        """2 Phi(1 / (2 sigma)) - 1, attained by the inputs 0 and 1."""
        return math.erf(1 / (2 * math.sqrt(2) * self.sigma))

    @property
    def p(self) -> float:
        """inf: the likelihood ratio is unbounded."""
        return math.inf

    @property
    def q(self) -> float:
        """inf: the likelihood ratio is unbounded."""
        return math.inf

    @property
    def gamma(self) -> float:
        """2 Phi(-1 / (2 sigma))."""
        return math.erfc(1 / (2 * math.sqrt(2) * self.sigma))

    def density(self, x: ArrayLike, y: ArrayLike) -> FloatArray:
        """Normal density around x, broadcast over x in [0, 1] and real y."""
        return self._bell(real_array("y", y) - unit_array("x", x))

    def cdf(self, x: ArrayLike, y: ArrayLike) -> FloatArray:
        """Probability of a report of at most y, broadcast over x in [0, 1] and real y."""
        from scipy.special import ndtr  # slow to load

        return np.asarray(ndtr((real_array("y", y) - unit_array("x", x)) / self.sigma))

    def blanket_density(self, y: ArrayLike) -> FloatArray:
        """The density around the input farther from y, divided by gamma."""
        return self._bell(np.abs(real_array("y", y) - 0.5) + 0.5) / self.gamma

    def sample(self, x: ArrayLike, rng: np.random.Generator) -> FloatArray:
        """Reports x + N(0, sigma^2), the shape of `x` (values in [0, 1])."""
        return np.asarray(generator(rng).normal(unit_array("x", x), self.sigma))

    def _bell(self, distance: FloatArray) -> FloatArray:
        return np.asarray(
            np.exp(-0.5 * (distance / self.sigma) ** 2) / (self.sigma * math.sqrt(2 * math.pi))
        )


def _delta0(sigma: float, eps0: float) -> float:
    """Hockey-stick divergence of N(1, sigma^2) and N(0, sigma^2) at e^eps0, eps0 >= 0."""
    from scipy.special import erfcx  # slow to load

    u = eps0 * sigma - 1 / (2 * sigma)
    v = eps0 * sigma + 1 / (2 * sigma)
    if eps0 == 0:
        return math.erf(v / math.sqrt(2))
    if u > 0:
        gap = float(erfcx(u / math.sqrt(2)) - erfcx(v / math.sqrt(2)))
        return 0.5 * math.exp(-u * u / 2) * gap
    tail = 0.5 * math.exp(-u * u / 2) * float(erfcx(v / math.sqrt(2)))
    return 0.5 * math.erfc(u / math.sqrt(2)) - tail


def _step_until(start: float, holds: Callable[[float], bool]) -> float:
    """The first of start, start (1 + 1e-15), start (1 + 2e-15), ... (doubling) that holds."""
    relative = 1e-15
    value = start
    while not holds(value):
        value = start * (1 + relative)
        relative *= 2
    return value


def _root(function: Callable[[float], float], low: float, high: float, xtol: float) -> float:
    from scipy.optimize import brentq  # slow to load

    return float(brentq(function, low, high, xtol=xtol))
