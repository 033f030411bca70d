"""Sums of bits.

BinarySum
    One bit per user (Cheu, Smith, Ullman, Zeber, Zhilyaev 2019): the true bit with probability
    1 - gamma, a fair coin with probability gamma (their lambda is gamma n). Every message has
    variance (gamma/2)(1 - gamma/2), whatever the data, so the estimate
    (sum of the bits - gamma n / 2) / (1 - gamma) is unbiased with the same error for all data.
ZeroSum
    Two bits per user, "ZSUM" (Balcer and Cheu 2020; Cheu 2022, section 3.2): the true bit, and
    noise Ber(r), r near 1. The analyzer reports 0 unless more than n ones arrive, so that a true
    sum of 0 is always reported as 0. The truncation makes it biased; the error is exact below.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom

from ..randomizers import BinaryRandomizedResponse, KRandomizedResponse
from ..randomizers.base import FloatArray, IntArray
from ..randomizers.border import generator, integer_array, integer_in, open_unit
from .expected_error import ExpectedError, bernstein_radius
from .messages import one_per_user, received, shuffled


@dataclass(frozen=True, kw_only=True)
class BinarySum:
    """Sum of n bits by binary randomized response.

    gamma: probability of a random bit, in (0, 1). n: number of users.
    Raises TypeError or ValueError for anything else.
    """

    gamma: float
    n: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", open_unit("gamma", self.gamma))
        object.__setattr__(self, "n", integer_in("n", self.n, 1))

    @property
    def randomizer(self) -> BinaryRandomizedResponse:
        """The local randomizer, eps0 = log(2/gamma - 1). ValueError where it would exceed 700."""
        return BinaryRandomizedResponse(KRandomizedResponse.from_gamma(k=2, gamma=self.gamma).eps0)

    def randomize(self, values: ArrayLike, rng: np.random.Generator) -> IntArray:
        """One bit per user; `values` has shape (n,), integers 0 or 1."""
        one_per_user(integer_array("values", values, 2), self.n)
        return self.randomizer.sample(values, rng)

    def shuffle(self, messages: ArrayLike, rng: np.random.Generator) -> NDArray[Any]:
        """The messages in uniformly random order."""
        return shuffled(messages, rng)

    def analyze(self, messages: ArrayLike) -> float:
        """Unbiased estimate of the number of ones, from the n messages in any order."""
        ones = int(received(messages, self.n, 2).sum())
        return (ones - self.n * self.gamma / 2) / (1 - self.gamma)

    def expected_error(self) -> ExpectedError:
        """n (gamma/2)(1 - gamma/2) / (1 - gamma)^2, the same for all data."""
        return ExpectedError(exact=self._variance / (1 - self.gamma) ** 2)

    def error_bound(self, *, failure: float) -> float:
        """With probability 1 - failure the estimate is within this of the truth (Bernstein)."""
        radius = bernstein_radius(
            variance=self._variance,
            largest=1 - self.gamma / 2,
            failure=open_unit("failure", failure),
        )
        return radius / (1 - self.gamma)

    @property
    def _variance(self) -> float:
        return self.n * (self.gamma / 2) * (1 - self.gamma / 2)


@dataclass(frozen=True, kw_only=True)
class ZeroSum:
    """Sum of n bits with two messages each; a true sum of 0 is reported as 0 with certainty.

    rate: r, probability that the noise bit is 1, in (0, 1). n: number of users.
    Raises TypeError or ValueError for anything else.

    One user's two messages alone are not private (the first is the value): all privacy comes from
    the sum of the other users' noise bits, and there is no local randomizer to amplify.
    """

    rate: float
    n: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", open_unit("rate", self.rate))
        object.__setattr__(self, "n", integer_in("n", self.n, 1))

    def randomize(self, values: ArrayLike, rng: np.random.Generator) -> IntArray:
        """Two bits per user, shape (n, 2); `values` has shape (n,), integers 0 or 1."""
        bits = one_per_user(integer_array("values", values, 2), self.n)
        noise = generator(rng).random(self.n) < self.rate
        return np.stack([bits, noise.astype(np.int64)], axis=1)

    def shuffle(self, messages: ArrayLike, rng: np.random.Generator) -> NDArray[Any]:
        """All 2 n messages, of all users together, in uniformly random order."""
        return shuffled(messages, rng)

    def analyze(self, messages: ArrayLike) -> float:
        """Number of ones minus n r, or 0 if at most n ones arrived; from all 2 n messages."""
        ones = int(received(messages, 2 * self.n, 2).sum())
        return ones - self.n * self.rate if ones > self.n else 0.0

    def expected_error(self, true_sum: int | None = None) -> ExpectedError:
        """Exact mean squared error for a true sum of `true_sum`, or for the worst one. O(n) time.

        With eta ~ Bin(n, r) it is s^2 P[eta <= n - s] + E[(eta - n r)^2; eta > n - s].
        """
        errors = self._errors()
        if true_sum is None:
            return ExpectedError(exact=float(errors.max()))
        return ExpectedError(exact=float(errors[integer_in("true_sum", true_sum, 0, self.n)]))

    def _errors(self) -> FloatArray:
        """Mean squared errors for the true sums 0 ... n."""
        noise = np.arange(self.n + 1)
        masses = binom.pmf(noise, self.n, self.rate)
        squares = masses * (noise - self.n * self.rate) ** 2
        # kept[s]: E[(eta - n r)^2; eta > n - s], summed from the top
        kept = np.concatenate([[0.0], np.cumsum(squares[::-1])[:-1]])
        lost = binom.cdf(self.n - noise, self.n, self.rate)
        return np.asarray(noise.astype(np.float64) ** 2 * lost + kept)
