"""Randomized response: the truth with probability e^eps0 / (e^eps0 + k - 1), else any other value.

Equivalently: with probability gamma = k / (e^eps0 + k - 1) a uniform answer over all k values, otherwise the truth.
That gamma is also the blanket probability, and the blanket is uniform (Balle et al. 2019, Lemma 6.1). For two values
the total variation tanh(eps0 / 2) is the largest that pure eps0-LDP allows (Kairouz, Oh, Viswanath 2015).

All formulas are written in e^{-eps0}, so that they keep their relative accuracy for large eps0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from ..numerics.validation import integer_in, open_unit
from .base import FloatArray, IntArray
from .joint import ValuesRandomizer


@dataclass(frozen=True, kw_only=True)
class KRandomizedResponse(ValuesRandomizer):
    """k-ary randomized response over the values 0 ... k-1.

    k: number of values, at least 2. eps0: local epsilon, in (0, 700]. Raises TypeError or ValueError for anything else.
    """

    @classmethod
    def from_gamma(cls, *, k: int, gamma: float) -> KRandomizedResponse:
        """The randomizer that answers uniformly with probability `gamma`, in (0, 1).

        eps0 = log(1 + k (1 - gamma) / gamma).
        """
        count = integer_in("k", k, 2)
        share = open_unit("gamma", gamma)
        return cls(k=count, eps0=math.log1p(count * (1 - share) / share))

    @property
    def k_ary(self) -> int:  # type: ignore[override]
        """k."""
        return self.k

    @property
    def truth(self) -> float:
        """Probability of the true value, e^eps0 / (e^eps0 + k - 1)."""
        return 1 / (1 + (self.k - 1) * math.exp(-self.eps0))

    @property
    def lie(self) -> float:
        """Probability of each single other value, 1 / (e^eps0 + k - 1)."""
        return math.exp(-self.eps0) * self.truth

    @property
    def tv(self) -> float:
        """(e^eps0 - 1) / (e^eps0 + k - 1), the same for all pairs."""
        return -math.expm1(-self.eps0) * self.truth

    @property
    def gamma(self) -> float:
        """k / (e^eps0 + k - 1)."""
        return self.k * self.lie

    def _masses(self, values: IntArray, blanket: bool) -> FloatArray:
        """Groups: each of the inputs itself, and all other reports."""
        masses = np.full((values.size + 1, values.size + 1), self.lie)
        np.fill_diagonal(masses[:-1, :-1], self.truth)
        masses[:, -1] *= self.k - values.size
        return masses

    def _drawn(self, values: IntArray, rng: np.random.Generator) -> IntArray:
        """Reports in 0 ... k-1."""
        honest = rng.random(values.shape) >= self.gamma
        return np.where(honest, values, rng.integers(0, self.k, values.shape))


@dataclass(frozen=True)
class BinaryRandomizedResponse(KRandomizedResponse):
    """Randomized response on the bits 0 and 1: `KRandomizedResponse` with k = 2.

    eps0: local epsilon, in (0, 700]. Raises TypeError or ValueError for anything else.
    """

    eps0: float
    k: int = field(default=2, init=False, repr=False)
