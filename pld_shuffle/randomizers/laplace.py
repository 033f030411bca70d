"""The Laplace mechanism on [0, 1]: x + Lap(1 / eps0).

inf_x of the densities at y is (eps0/2) exp(-eps0 max(|y|, |1-y|)), and
max(|y|, |1-y|) = 1/2 + |y - 1/2|; so gamma = e^{-eps0/2} and the blanket is the Laplace law
around 1/2 (Balle et al. 2019, Lemma 6.2). The worst pair is (0, 1): its total variation is
P[Lap(1/eps0) <= 1/2] - P[Lap(1/eps0) <= -1/2] = 1 - e^{-eps0/2}.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..numerics.validation import real_array
from .base import FloatArray, PureLDP
from .border import generator, local_epsilon, unit_array


@dataclass(frozen=True)
class Laplace(PureLDP):
    """Laplace noise of scale 1/eps0 on values in [0, 1]; the report is a real number.

    eps0: local epsilon, in (0, 700]. Raises TypeError or ValueError for anything else.
    """

    eps0: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "eps0", local_epsilon(self.eps0))

    @property
    def scale(self) -> float:
        """Scale of the noise, 1 / eps0; its variance is 2 scale^2."""
        return 1 / self.eps0

    @property
    def tv(self) -> float:
        """1 - e^{-eps0/2}, attained by the inputs 0 and 1."""
        return -math.expm1(-self.eps0 / 2)

    @property
    def gamma(self) -> float:
        """e^{-eps0/2}."""
        return math.exp(-self.eps0 / 2)

    def density(self, x: ArrayLike, y: ArrayLike) -> FloatArray:
        """(eps0 / 2) exp(-eps0 |y - x|), broadcast over x in [0, 1] and real y."""
        return self._bell(real_array("y", y) - unit_array("x", x))

    def cdf(self, x: ArrayLike, y: ArrayLike) -> FloatArray:
        """Probability of a report of at most y, broadcast over x in [0, 1] and real y."""
        distance = np.asarray(real_array("y", y) - unit_array("x", x))
        tail = 0.5 * np.exp(-self.eps0 * np.abs(distance))
        return np.where(distance < 0, tail, 1 - tail)

    def blanket_density(self, y: ArrayLike) -> FloatArray:
        """Laplace density of the same scale around 1/2."""
        return self._bell(real_array("y", y) - 0.5)

    def sample(self, x: ArrayLike, rng: np.random.Generator) -> FloatArray:
        """Reports x + Lap(1/eps0), the shape of `x` (values in [0, 1])."""
        return np.asarray(generator(rng).laplace(unit_array("x", x), self.scale))

    def _bell(self, distance: FloatArray) -> FloatArray:
        return np.asarray(0.5 * self.eps0 * np.exp(-self.eps0 * np.abs(distance)))
