"""Noise that every user adds to a value in [0, 1]: Laplace and Gaussian.

The worst pair of inputs is (0, 1) (docs/theory.md, section 8), and the blanket inf_x mu_x is at y the density around
the input farther from y: gamma is twice the mass of one law beyond the middle, and tv = 1 - gamma (Balle et al. 2019,
Lemmas 6.2 and 6.3). Gaussian noise has unbounded likelihood ratios: eps0 = inf, and reductions that need a finite one
do not apply. The names are those of the central mechanisms of a trusted curator, so arguments are by keyword only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..numerics.sides import Array, Side
from ..numerics.tuning import NOISE_CELLS, TYPE_ALLOWANCE, TYPE_CELLS
from ..numerics.validation import PositiveFloat, keywords_only, probabilities
from . import noise_laws
from .base import LocalEpsilon, LocalRandomizer, generator
from .joint import Types

LEAST_SIGMA = 0.1  # of users' Gaussian noise
MEANT = "randomizers.{0}({1}=...) is the noise of one user before shuffling, pld_shuffle.{0}({2}=...) that of a curator"
USUAL = 42.0  # logarithm of 1/(a mass that is left out) for which cells of noise are made


def _finer(truncated_mass: float) -> float:
    """How many times as many cells, where less is left out: the variance that they add counts like log(1/delta)."""
    return max(1.0, math.sqrt(-math.log(truncated_mass) / USUAL)) if truncated_mass > 0.0 else 1.0


class Noise(LocalRandomizer):
    """The value in [0, 1] and independent noise; the report is a real number."""

    continuous = True
    few_users = 32  # with bounded ratios

    def attacks(self, most: int) -> Iterable[tuple[float, float, float]]:
        """Both orders of the target's inputs 0 and 1, all others at 0."""
        return [(0.0, 1.0, 0.0), (1.0, 0.0, 0.0)]


@keywords_only(MEANT.format("Laplace", "eps0", "scale"))
@dataclass(frozen=True, kw_only=True)
class Laplace(Noise):
    """Laplace noise of scale 1/eps0 on values in [0, 1].

    eps0: local epsilon, in (0, 700]. Raises TypeError or ValueError for anything else.
    """

    eps0: LocalEpsilon
    mass_error = 1e-13

    def slot_laws(self, side: Side = Side.UPPER, truncated_mass: float = 0.0, *, refined: float = 1.0) -> list[Array]:
        """The pair of inputs (0, 1), the worst one; its mirror image is the reversed pair."""
        cells = round(NOISE_CELLS * refined * _finer(truncated_mass))
        return [noise_laws.laplace_groups(self.eps0, side=side, cells=cells, graded=refined > 1.0)]

    def types(self, users: int = 1) -> Iterator[Types]:
        """One cover for all values of the target and of others (`noise_laws`); none where masses underflow."""
        if self.eps0 <= noise_laws.LARGEST_EPS0:
            cells = min(2 * TYPE_CELLS, math.ceil(TYPE_CELLS * max(1.0, self.eps0)))
            allowance = TYPE_ALLOWANCE if self.eps0 <= 1.0 else 1.5 * TYPE_ALLOWANCE
            laws = noise_laws.laplace_types(self.eps0, users, cells=cells, allowance=allowance)
            yield Types(0, "first", laws)

    def attack_law(
        self, first: float, second: float, others: float, *, truncated_mass: float = 1e-15, refined: float = 1.0
    ) -> Array:
        return noise_laws.laplace_attack(
            self.eps0, first=first, second=second, others=others, cells=round(NOISE_CELLS * refined),
            graded=refined > 1.0,
        )  # fmt: skip

    @property
    def tv(self) -> float:
        """1 - e^{-eps0/2}, attained by the inputs 0 and 1."""
        return -math.expm1(-self.eps0 / 2)

    @property
    def gamma(self) -> float:
        """e^{-eps0/2}."""
        return math.exp(-self.eps0 / 2)

    def sample(self, x: ArrayLike, rng: np.random.Generator) -> Array:
        return np.asarray(generator(rng).laplace(probabilities("x", x), 1 / self.eps0))


@keywords_only(MEANT.format("Gaussian", "sigma", "sigma"))
@dataclass(frozen=True, kw_only=True)
class Gaussian(Noise):
    """Gaussian noise of standard deviation sigma on values in [0, 1].

    sigma: standard deviation, positive. Raises TypeError or ValueError for anything else.
    """

    sigma: PositiveFloat

    eps0, mass_error, tailed = math.inf, 1e-12, True

    @property
    def unhidden(self) -> str | None:  # type: ignore[override]
        """A sentence for a sigma below `LEAST_SIGMA`."""
        if self.sigma >= LEAST_SIGMA:
            return None
        return (
            f"sigma must be at least {LEAST_SIGMA} to be shuffled, got {self.sigma!r}: with so little noise on values"
            " in [0, 1] a report tells its value, shuffled or not; account for it as Gaussian(sigma=...) of sensitivity"
            " 1"
        )

    @property
    def few_users(self) -> int:  # type: ignore[override]
        """With less noise the ratios are too large."""
        return 12 if self.sigma >= noise_laws.FEW_SIGMA else 0

    def slot_laws(self, side: Side = Side.UPPER, truncated_mass: float = 0.0, *, refined: float = 1.0) -> list[Array]:
        tail = max(truncated_mass, noise_laws.least_truncated_mass(self.sigma))
        cells = round(2 * NOISE_CELLS * refined * _finer(truncated_mass))
        return [noise_laws.gaussian_groups(self.sigma, side=side, truncated_mass=tail, cells=cells)]

    def types(self, users: int = 1) -> Iterator[Types]:
        """One cover for all values of the target and of others (`noise_laws`); none for little noise."""
        if self.sigma >= noise_laws.LEAST_TYPES_SIGMA:
            missed = noise_laws.TYPES_MISSED
            laws = noise_laws.gaussian_types(self.sigma, users, truncated_mass=missed)
            yield Types(0, "blanket", laws, noise_laws.gaussian_uncovered_user(self.sigma, truncated_mass=missed))

    def attack_law(
        self, first: float, second: float, others: float, *, truncated_mass: float = 1e-15, refined: float = 1.0
    ) -> Array:
        return noise_laws.gaussian_attack(
            self.sigma, first=first, second=second, others=others,
            truncated_mass=max(truncated_mass, noise_laws.least_truncated_mass(self.sigma)),
            cells=round(2 * NOISE_CELLS * refined * _finer(truncated_mass)),
        )  # fmt: skip

    @property
    def tv(self) -> float:
        """2 Phi(1 / (2 sigma)) - 1, attained by the inputs 0 and 1."""
        return math.erf(1 / (2 * math.sqrt(2) * self.sigma))

    @property
    def gamma(self) -> float:
        """2 Phi(-1 / (2 sigma))."""
        return math.erfc(1 / (2 * math.sqrt(2) * self.sigma))

    def sample(self, x: ArrayLike, rng: np.random.Generator) -> Array:
        return np.asarray(generator(rng).normal(probabilities("x", x), self.sigma))
