"""Mean of numbers in [0, 1] by one bit per user (lecture notes, equation 9.2).

The bit is 1 with probability 1/(e^eps0 + 1) + x (e^eps0 - 1)/(e^eps0 + 1): x is rounded at random to 0 or 1,
and the bit goes through binary randomized response with gamma = 2/(e^eps0 + 1). It is `RealSum` with k = 1,
divided by n. Its error falls like 1/sqrt(n): the rounding alone is up to 1/(2 sqrt(n)), whatever the privacy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..mechanisms import CountedBits, ShuffledRR
from ..randomizers.base import IntArray
from .binary_sum import BinarySum
from .expected_error import ExpectedError
from .protocol import OneMechanism
from .randomized_response import GammaNoise
from .real_sum import RealSum


@dataclass(frozen=True, kw_only=True)
class OneBitMean(GammaNoise, OneMechanism):
    """Mean of n values in [0, 1], one bit each.

    gamma: probability of a random bit, in (0, 1). n: number of users. honest_fraction: share of them
    whose noise is relied upon, in (0, 1]. Raises TypeError or ValueError for anything else.
    """

    gamma: float
    n: int
    honest_fraction: float = 1.0

    def __post_init__(self) -> None:
        checked = self.total
        for name in ("gamma", "n", "honest_fraction"):
            object.__setattr__(self, name, getattr(checked, name))

    @classmethod
    def from_theorem(
        cls, epsilon: float, delta: float, n: int, *, honest_fraction: float = 1.0
    ) -> OneBitMean:
        """gamma of `BinarySum.from_theorem`, one round."""
        found = BinarySum.from_theorem(epsilon, delta, n, honest_fraction=honest_fraction)
        return cls(gamma=found.gamma, n=n, honest_fraction=honest_fraction)

    @property
    def total(self) -> RealSum:
        """The protocol for the sum."""
        return RealSum(k=1, gamma=self.gamma, n=self.n, honest_fraction=self.honest_fraction)

    @property
    def mechanism(self) -> CountedBits | ShuffledRR:
        """One round: the number of ones among the honest users' bits; exact."""
        return self.total.mechanism

    def randomize(self, values: ArrayLike, rng: np.random.Generator) -> IntArray:
        """One bit per user; `values` has shape (n,), numbers in [0, 1]."""
        return self.total.randomize(values, rng)

    def shuffle(self, messages: ArrayLike, rng: np.random.Generator) -> NDArray[Any]:
        """The messages in uniformly random order."""
        return self.total.shuffle(messages, rng)

    def analyze(self, messages: ArrayLike) -> float:
        """Unbiased estimate of the mean, from the n messages in any order."""
        return self.total.analyze(messages) / self.n

    def expected_error(self, values: ArrayLike | None = None) -> ExpectedError:
        """Mean squared error of the mean, for the `values` or for the worst values; see `RealSum`."""
        exact, published = self.total.expected_error(values)
        scale = self.n**2
        return ExpectedError(exact / scale, None if published is None else published / scale)
