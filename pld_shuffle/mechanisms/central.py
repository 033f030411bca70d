"""Central mechanisms: noise added once to a query's answer by a trusted curator.

They compose with shuffle mechanisms, so that a local-plus-central pipeline needs one accountant. Their
profiles are in `pairs.gaussian`.

Sensitivity is meant for the neighbouring relation of the whole ledger: substitution, as for shuffle mechanisms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Annotated, ClassVar

from ..numerics.sides import Bounds, above, below
from ..numerics.validation import PositiveFloat, keywords_only
from ..pairs.gaussian import GaussianPair, LaplacePair, PoissonGaussianPair
from ..pairs.pair import Cohort, Pair
from ..pairs.profile import BothOrders, HiddenOrder
from .base import Mechanism, said, sampling_rate

LEAST_RATIO, LARGEST_RATIO = 1e-9, 700.0


class _Additive(Mechanism):
    """Noise whose pair is symmetric and whose loss depends on sensitivity / noise only, a field of that name."""

    sensitivity: PositiveFloat
    noise: ClassVar[str]

    def __post_init__(self) -> None:
        super().__post_init__()
        _compared(self, self.noise, "sensitivity")

    def assumptions(self) -> dict[str, str]:
        return said(
            f"exact pair of the {type(self).__name__} mechanism",
            neighbours=f"the exact answers of neighbouring datasets are at most {self.sensitivity:g} apart"
            " (substitution, where shuffle mechanisms are composed too)",
            adversary="sees the noisy answer; the curator is trusted",
            sampling="the query is asked of the whole dataset",
        )

    def sampled_attack(self, cohort: Cohort) -> Pair:
        """All others hold one value, and so does the target, or not: the order that was the larger one in every case.

        No two datasets attain `sampled` over several rounds, the worse order of each (docs/theory.md, section 5).
        """
        cohort.require_all_present(self.pair)
        return HiddenOrder(self.pair.as_profile, cohort.rate)

    @property
    def zero_out(self) -> Pair:
        """Itself: the sensitivity is the bound on the norm of one contribution."""
        return self.pair


def _compared(mechanism: Mechanism, noise: str, size: str) -> None:
    """ValueError unless the noise is neither too small nor too large for doubles."""
    spread, moved = getattr(mechanism, noise), getattr(mechanism, size)
    if not LEAST_RATIO <= moved / spread <= LARGEST_RATIO:
        raise ValueError(
            f"{noise} must be between {size}/{LARGEST_RATIO:g} and {size}/{LEAST_RATIO:g}, got {spread!r} with"
            f" {size}={moved!r}"
        )


def quotient(dividend: float, divisor: float) -> Bounds:
    """The largest float below and the smallest above the exact quotient (equal if it is a float)."""
    near = dividend / divisor
    exact = Fraction(dividend) / Fraction(divisor)
    return Bounds(
        near if near <= exact else math.nextafter(near, -math.inf),
        near if near >= exact else math.nextafter(near, math.inf),
    )


@keywords_only("Laplace(scale=...) is central noise; randomizers.Laplace(eps0=...) is a local randomizer")
@dataclass(frozen=True, repr=False, kw_only=True)
class Laplace(_Additive):
    """Laplace noise of scale `scale` on an answer of sensitivity `sensitivity` (both positive).

    Raises ValueError or TypeError naming the argument.

    >>> from pld_shuffle import Accountant
    >>> round(Accountant().compose(Laplace(scale=10.0), 100).get_epsilon(1e-6), 2)
    4.69
    """

    scale: PositiveFloat
    sensitivity: PositiveFloat = 1.0

    noise = "scale"

    @cached_property
    def pair(self) -> LaplacePair:
        return LaplacePair(quotient(self.sensitivity, self.scale))


@keywords_only("Gaussian(sigma=...) is central noise; randomizers.Gaussian(sigma=...) is a local randomizer")
@dataclass(frozen=True, repr=False, kw_only=True)
class Gaussian(_Additive):
    """Gaussian noise of standard deviation `sigma` on an answer of sensitivity `sensitivity`.

    Raises ValueError or TypeError naming the argument.

    >>> from pld_shuffle import Accountant
    >>> round(Accountant().compose(Gaussian(sigma=10.0), 100).get_epsilon(1e-6), 4)
    4.8866
    """

    sigma: PositiveFloat
    sensitivity: PositiveFloat = 1.0

    noise = "sigma"

    @cached_property
    def pair(self) -> GaussianPair:
        mu = self.sensitivity / self.sigma
        return GaussianPair(Bounds(below(mu * mu, 4.0), above(mu * mu, 4.0)))


@dataclass(frozen=True, repr=False)
class PoissonGaussian(Mechanism):
    """Gaussian noise on a sum over a Poisson sample, substitution of one user: a `PoissonGaussianPair`.

    sigma : standard deviation of the noise.
    rate : probability of being in the sample, in [1e-12, 1].
    norm : bound on the norm of one user's contribution (replacing it moves the sum by up to twice that).

    Raises ValueError or TypeError naming the argument. The adversary sees the noisy sum, not who was sampled.

    >>> from pld_shuffle import Accountant
    >>> round(Accountant().compose(PoissonGaussian(sigma=1.0, rate=0.01), 1000).get_epsilon(1e-6), 3)
    3.214
    """

    sigma: PositiveFloat
    rate: Annotated[float, sampling_rate]
    norm: PositiveFloat = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _compared(self, "sigma", "norm")

    @property
    def hidden(self) -> bool:
        return self.rate < 1.0

    @cached_property
    def pair(self) -> PoissonGaussianPair:  # type: ignore[override]
        return PoissonGaussianPair(self.norm / self.sigma, self.rate)

    def assumptions(self) -> dict[str, str]:
        return said(
            "exact pair of the Gaussian mechanism on a Poisson sample",
            adversary="sees the noisy sum; the curator is trusted",
            sampling=f"every user independently (rate {self.rate:g}), not revealed to the adversary",
        )

    @property
    def zero_out(self) -> Pair:
        """One contribution's noise on a Poisson sample, each order by itself: exact."""
        one = Gaussian(sigma=self.sigma, sensitivity=self.norm).pair
        return BothOrders(tuple(HiddenOrder(one, self.rate, backwards=back) for back in (False, True)))
