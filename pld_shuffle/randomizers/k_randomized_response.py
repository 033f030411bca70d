"""k-ary randomized response: the truth with probability e^eps0 / (e^eps0 + k - 1).

Equivalently: with probability gamma a uniform answer over all k values (the true one included),
otherwise the truth, where gamma = k / (e^eps0 + k - 1). That gamma is also the blanket
probability, and the blanket is uniform (Balle et al. 2019, Lemma 6.1).

All formulas are written in e^{-eps0}, so that they keep their relative accuracy for large eps0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..numerics.validation import integer_in, open_unit
from .base import FloatArray, IntArray, PureLDP, read_only, require_small_law
from .border import generator, integer_array, local_epsilon
from .joint import FromJointLaw, rows, several


@dataclass(frozen=True, kw_only=True)
class KRandomizedResponse(PureLDP, FromJointLaw):
    """k-ary randomized response over the values 0 ... k-1.

    k: number of values, at least 2. eps0: local epsilon, in (0, 700].
    Raises TypeError or ValueError for anything else.
    """

    k: int
    eps0: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", integer_in("k", self.k, 2))
        object.__setattr__(self, "eps0", local_epsilon(self.eps0))

    @classmethod
    def from_gamma(cls, *, k: int, gamma: float) -> KRandomizedResponse:
        """The randomizer that answers uniformly with probability `gamma`, in (0, 1).

        eps0 = log(1 + k (1 - gamma) / gamma).
        """
        count = integer_in("k", k, 2)
        share = open_unit("gamma", gamma)
        return cls(k=count, eps0=math.log1p(count * (1 - share) / share))

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

    @property
    def inputs(self) -> int:
        """Number of inputs, k."""
        return self.k

    @property
    def outputs(self) -> int:
        """Number of reports, k."""
        return self.k

    def law(self) -> FloatArray:
        """Shape (k, k): `truth` on the diagonal, `lie` elsewhere."""
        require_small_law(self.inputs, self.outputs)
        matrix = np.full((self.k, self.k), self.lie)
        np.fill_diagonal(matrix, self.truth)
        return read_only(matrix)

    def columns(self, reports: ArrayLike) -> IntArray:
        """A report is its own column."""
        return integer_array("reports", reports, self.k)

    def joint_law(self, inputs: Sequence[int], *, blanket: bool = False) -> FloatArray:
        """Groups: each of the inputs itself, and all other reports."""
        values, index = several(inputs, self.k)
        masses = np.full((values.size + 1, values.size + 1), self.lie)
        np.fill_diagonal(masses[:-1, :-1], self.truth)
        masses[:, -1] *= self.k - values.size
        return rows(masses, index, blanket=blanket)

    def sample(self, x: ArrayLike, rng: np.random.Generator) -> IntArray:
        """Reports in 0 ... k-1, the shape of `x` (integers in 0 ... k-1)."""
        values = integer_array("x", x, self.k)
        source = generator(rng)
        honest = source.random(values.shape) >= self.gamma
        return np.where(honest, values, source.integers(0, self.k, values.shape))
