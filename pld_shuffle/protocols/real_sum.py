"""Sum of real numbers in [0, 1] (Balle, Bell, Gascon, Nissim 2019, Algorithms 2 and 3).

A value x is rounded at random to a multiple of 1/k without bias, x k = floor + f, up with
probability f; the result, one of k+1 values, goes through randomized response with probability
gamma of a random answer. Per user, for the message y / k,

    mean      (1 - gamma) x + gamma / 2
    variance  (1 - gamma) f (1-f) / k^2 + gamma (k+2) / (12 k) + gamma (1 - gamma) (x - 1/2)^2,

so that (sum y / k - gamma n / 2) / (1 - gamma) is unbiased. The paper bounds the variance by
(1 - gamma) / (4 k^2) + gamma / 2 (proof of Theorem 2). The exact worst case lies in the outermost
rounding cell: with x = 1 - g/k, at g = max(0, (1 - gamma k) / (2 (1 - gamma))).
In the paper gamma = c (k+1) / n, and k = (n/c)^(1/3) balances the two terms.

k = 1 is the one-bit mean of the lecture notes (their equation 9.2): the message is 1 with
probability 1/(e^eps0+1) + x (e^eps0-1)/(e^eps0+1), gamma = 2/(e^eps0+1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..randomizers import KRandomizedResponse
from ..randomizers.base import FloatArray, IntArray
from ..randomizers.border import generator, integer_in, open_unit, positive_finite, unit_array
from .expected_error import ExpectedError, bernstein_radius
from .messages import one_per_user, received, shuffled


@dataclass(frozen=True, kw_only=True)
class RealSum:
    """Sum of n values in [0, 1] by randomized rounding and randomized response.

    k: number of rounding cells, at least 1 (messages are integers 0 ... k). gamma: probability of
    a random answer, in (0, 1). n: number of users. Raises TypeError or ValueError for anything
    else.
    """

    k: int
    gamma: float
    n: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", integer_in("k", self.k, 1))
        object.__setattr__(self, "gamma", open_unit("gamma", self.gamma))
        object.__setattr__(self, "n", integer_in("n", self.n, 1))

    @classmethod
    def from_blankets(cls, *, c: float, n: int) -> RealSum:
        """The paper's choice for c random answers per value: k = (n/c)^(1/3), gamma = c (k+1)/n.

        k is rounded, and at least 1. ValueError unless gamma < 1.
        """
        share = positive_finite("c", c)
        users = integer_in("n", n, 1)
        cells = max(1, round((users / share) ** (1 / 3)))
        gamma = share * (cells + 1) / users
        if not gamma < 1:
            raise ValueError(f"c={c!r} needs more than n={n!r} users (gamma={gamma!r})")
        return cls(k=cells, gamma=gamma, n=users)

    @property
    def randomizer(self) -> KRandomizedResponse:
        """Randomized response over the k+1 rounded values. ValueError where eps0 exceeds 700."""
        return KRandomizedResponse.from_gamma(k=self.k + 1, gamma=self.gamma)

    def randomize(self, values: ArrayLike, rng: np.random.Generator) -> IntArray:
        """One message in 0 ... k per user; `values` has shape (n,), numbers in [0, 1]."""
        scaled = one_per_user(unit_array("values", values), self.n) * self.k
        cells = np.floor(scaled)
        up = generator(rng).random(self.n) < scaled - cells
        return self.randomizer.sample(cells.astype(np.int64) + up, rng)

    def shuffle(self, messages: ArrayLike, rng: np.random.Generator) -> NDArray[Any]:
        """The messages in uniformly random order."""
        return shuffled(messages, rng)

    def analyze(self, messages: ArrayLike) -> float:
        """Unbiased estimate of the sum, from the n messages in any order."""
        total = int(received(messages, self.n, self.k + 1).sum())
        return (total / self.k - self.n * self.gamma / 2) / (1 - self.gamma)

    def expected_error(self, values: ArrayLike | None = None) -> ExpectedError:
        """Mean squared error for the `values`, shape (n,), or for the worst values.

        `published` is the bound in the proof of Theorem 2, in both cases for the worst values.
        """
        if values is None:
            gap = max(0.0, (1 - self.gamma * self.k) / (2 * (1 - self.gamma)))
            worst = np.array([1 - gap / self.k])
            exact = self.n * float(self._variances(worst, np.array([gap]))[0])
        else:
            numbers = one_per_user(unit_array("values", values), self.n)
            exact = float(np.sum(self._variances(numbers, numbers * self.k % 1)))
        bound = (1 - self.gamma) / (4 * self.k**2) + self.gamma / 2
        return ExpectedError(
            exact=exact / (1 - self.gamma) ** 2,
            published=self.n * bound / (1 - self.gamma) ** 2,
        )

    def error_bound(self, *, failure: float) -> float:
        """With probability 1 - failure the estimate is within this of the truth, for any data.

        Bernstein's inequality with the exact worst variance.
        """
        variance = self.expected_error().exact * (1 - self.gamma) ** 2
        radius = bernstein_radius(
            variance=variance, largest=1.0, failure=open_unit("failure", failure)
        )
        return radius / (1 - self.gamma)

    def _variances(self, values: FloatArray, fractions: FloatArray) -> FloatArray:
        """Variance of y / k for each value; `fractions` is the fractional part of value * k."""
        rounding = (1 - self.gamma) * fractions * (1 - fractions) / self.k**2
        uniform = self.gamma * (self.k + 2) / (12 * self.k)
        apart = self.gamma * (1 - self.gamma) * (values - 0.5) ** 2
        return np.asarray(rounding + uniform + apart)
