"""Central mechanisms: noise added once to a query's answer by a trusted curator.

They compose with shuffle mechanisms, so that a local-plus-central pipeline needs one accountant. Their
profiles are in `pairs.gaussian`.

Sensitivity is meant for the neighbouring relation of the whole ledger: substitution, as for shuffle
mechanisms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from ..numerics.rounding import above, below
from ..numerics.sides import Bounds
from ..numerics.validation import positive_float
from ..pairs.gaussian import GaussianPair, LaplacePair
from .base import Mechanism

LEAST_RATIO, LARGEST_RATIO = 1e-9, 700.0


class _Additive(Mechanism):
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

    @cached_property
    def pair(self) -> LaplacePair:
        return LaplacePair(_quotient(self.sensitivity, self.scale))


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

    @cached_property
    def pair(self) -> GaussianPair:
        mu = self.sensitivity / self.sigma
        return GaussianPair(Bounds(below(mu * mu, 4.0), above(mu * mu, 4.0)))
