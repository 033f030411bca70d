"""Sum of bits by randomized response (Cheu, Smith, Ullman, Zeber, Zhilyaev 2019).

One bit per user: the true one with probability 1 - gamma, a fair coin with probability gamma (their lambda
is gamma n). Every message has variance (gamma/2)(1 - gamma/2), whatever the data, so the estimate
(sum of the bits - gamma n / 2) / (1 - gamma) is unbiased with the same error for all data.

Privacy: `CountedBits`, the number of ones and nothing else, for any data; exact. The paper's section 4.2 is
`from_theorem`, which raises `bounds.OutOfRange` where it asks for more noise than there are users.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..randomizers.base import IntArray
from .budget import Budget
from .protocol import ExpectedError
from .randomized_response import OneResponse, one_bit_gamma


@dataclass(frozen=True, kw_only=True)
class BinarySum(OneResponse):
    """Sum of n bits by binary randomized response.

    gamma: probability of a random bit, in (0, 1).
    """

    @classmethod
    def _theorem(cls, budget: Budget, honest: int) -> dict[str, Any]:
        return {"gamma": one_bit_gamma(budget, honest)}

    def randomize(self, values: ArrayLike, rng: np.random.Generator) -> IntArray:
        """One bit per user; `values` has shape (n,), integers 0 or 1."""
        return self.randomizer.sample(self._numbers(values, 2), rng)

    def analyze(self, messages: ArrayLike) -> float:
        """Unbiased estimate of the number of ones, from the n messages in any order."""
        return self._sum(messages)

    def expected_error(self) -> ExpectedError:
        """n (gamma/2)(1 - gamma/2) / (1 - gamma)^2, the same for all data."""
        return ExpectedError(exact=self._worst_variance / (1 - self.gamma) ** 2)

    @property
    def _largest(self) -> float:
        return 1 - self.gamma / 2

    @property
    def _worst_variance(self) -> float:
        return self.n * (self.gamma / 2) * (1 - self.gamma / 2)
