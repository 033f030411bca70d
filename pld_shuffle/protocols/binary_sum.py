"""Sum of bits by randomized response (Cheu, Smith, Ullman, Zeber, Zhilyaev 2019).

One bit per user: the true one with probability 1 - gamma, a fair coin with probability gamma (their lambda
is gamma n). Every message has variance (gamma/2)(1 - gamma/2), whatever the data, so the estimate
(sum of the bits - gamma n / 2) / (1 - gamma) is unbiased with the same error for all data.

Privacy: `CountedBits`, the number of ones and nothing else, for any data. The paper's section 4.2 is
`from_theorem`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..mechanisms import CountedBits
from ..numerics.validation import open_unit
from ..randomizers import BinaryRandomizedResponse, KRandomizedResponse
from ..randomizers.base import IntArray
from ..randomizers.border import integer_array
from .expected_error import ExpectedError, bernstein_radius
from .messages import one_per_user, received
from .protocol import OneMechanism, honest_users
from .randomized_response import GammaNoise


@dataclass(frozen=True, kw_only=True)
class BinarySum(GammaNoise, OneMechanism):
    """Sum of n bits by binary randomized response.

    gamma: probability of a random bit, in (0, 1). n: number of users. honest_fraction: share of them
    whose noise is relied upon, in (0, 1]. Raises TypeError or ValueError for anything else.
    """

    gamma: float
    n: int
    honest_fraction: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", open_unit("gamma", self.gamma))
        self._check_users()

    @classmethod
    def from_theorem(
        cls, epsilon: float, delta: float, n: int, *, honest_fraction: float = 1.0
    ) -> BinarySum:
        """gamma = lambda/n of Cheu et al. 2019, section 4.2, for one round; see `bounds.Cheu`.

        Raises `bounds.OutOfRange` where the theorem asks for more noise than there are users.
        """
        from ..bounds import Cheu

        honest = honest_users(n, honest_fraction)
        eps0 = Cheu().eps0(epsilon=epsilon, delta=delta, n=honest)
        gamma = BinaryRandomizedResponse(eps0).gamma
        return cls(gamma=gamma, n=n, honest_fraction=honest_fraction)

    @property
    def mechanism(self) -> CountedBits:
        """One round: the number of ones among the honest users' bits; exact."""
        return CountedBits(self.honest, gamma=self.gamma)

    @property
    def randomizer(self) -> BinaryRandomizedResponse:
        """The local randomizer, eps0 = log(2/gamma - 1). ValueError where it would exceed 700."""
        return BinaryRandomizedResponse(KRandomizedResponse.from_gamma(k=2, gamma=self.gamma).eps0)

    def randomize(self, values: ArrayLike, rng: np.random.Generator) -> IntArray:
        """One bit per user; `values` has shape (n,), integers 0 or 1."""
        one_per_user(integer_array("values", values, 2), self.n)
        return self.randomizer.sample(values, rng)

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
