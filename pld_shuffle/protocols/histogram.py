"""Private histogram (Balle, Bell, Gascon, Nissim 2019, Algorithm 1).

Every user sends the value with probability 1 - gamma and a uniform one of the k values with
probability gamma. With c_j users at value j, n in all and N_j messages j,

    E N_j = (1 - gamma) c_j + gamma n / k,
    Var N_j = c_j t (1-t) + (n - c_j) f (1-f),    f = gamma/k,  t = 1 - gamma + f,

since the messages are independent. So (N_j - gamma n / k) / (1 - gamma) estimates c_j without bias,
with variance Var N_j / (1 - gamma)^2; it is linear in c_j, so the worst data put a bin at 0 or at
n. The estimates sum to n (up to rounding); they may be negative.

Privacy: for k >= 3 `ShuffledRR` with the weak adversary, who sees who of the *other* users answered at random
(Balle et al., Lemma 8, is the same number). That pair is exact for this adversary, and valid for the shuffled
reports. These say nearly as much if all others hold a third value (to 1e-4 of epsilon at n = 10^4, eps0 = 3). For
k = 2 there is no third value, and the reports say less: `CountedBits`.
The paper's closed form (Theorem 1) is `from_theorem`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..mechanisms import CountedBits, ShuffledRR
from ..numerics.validation import integer_in, open_unit
from ..randomizers import KRandomizedResponse
from ..randomizers.base import FloatArray, IntArray
from ..randomizers.border import integer_array
from .bin_errors import BinErrors, HistogramEstimate
from .expected_error import bernstein_radius
from .messages import one_per_user, received
from .protocol import OneMechanism, honest_users
from .randomized_response import GammaNoise, shuffled_response


@dataclass(frozen=True, kw_only=True)
class PrivateHistogram(BinErrors, GammaNoise, OneMechanism):
    """Histogram of n values in 0 ... k-1 by k-ary randomized response.

    k: number of bins, at least 2. gamma: probability of a random answer, in (0, 1). n: number of
    users. honest_fraction: share of them whose noise is relied upon, in (0, 1]. Raises TypeError or
    ValueError for anything else.

    >>> histogram = PrivateHistogram.from_budget(1.0, 1e-6, 10_000, k=4)
    >>> histogram.accountant().get_epsilon(1e-6) <= 1.0
    True
    """

    k: int
    gamma: float
    n: int
    honest_fraction: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", integer_in("k", self.k, 2))
        object.__setattr__(self, "gamma", open_unit("gamma", self.gamma))
        self._check_users()

    @property
    def _values(self) -> int:
        return self.k

    @classmethod
    def from_theorem(
        cls, epsilon: float, delta: float, n: int, *, k: int, honest_fraction: float = 1.0
    ) -> PrivateHistogram:
        """gamma of Balle et al. 2019, Theorem 1, for one round; see `bounds.BalleTheorem1.gamma`.

        Raises `bounds.OutOfRange` unless epsilon <= 1 and gamma < 1.
        """
        from ..bounds import BalleTheorem1

        honest = honest_users(n, honest_fraction)
        gamma = BalleTheorem1(k).gamma(epsilon=epsilon, delta=delta, n=honest)
        return cls(k=k, gamma=gamma, n=n, honest_fraction=honest_fraction)

    @property
    def mechanism(self) -> ShuffledRR | CountedBits:
        """One round: k-ary randomized response of the honest users."""
        return shuffled_response(self.k, self.gamma, self.honest)

    @property
    def randomizer(self) -> KRandomizedResponse:
        """The local randomizer. ValueError where its eps0 would exceed 700."""
        return KRandomizedResponse.from_gamma(k=self.k, gamma=self.gamma)

    @property
    def lie(self) -> float:
        """Probability of each single other value, gamma / k."""
        return self.gamma / self.k

    @property
    def truth(self) -> float:
        """Probability of the true value, 1 - gamma + gamma / k."""
        return 1 - self.gamma + self.lie

    def randomize(self, values: ArrayLike, rng: np.random.Generator) -> IntArray:
        """One message per user; `values` has shape (n,), integers in 0 ... k-1."""
        one_per_user(integer_array("values", values, self.k), self.n)
        return self.randomizer.sample(values, rng)

    def analyze(self, messages: ArrayLike) -> HistogramEstimate:
        """Counts and standard errors from the n messages, in any order."""
        found = np.bincount(received(messages, self.n, self.k), minlength=self.k)
        counts: FloatArray = np.asarray((found - self.n * self.lie) / (1 - self.gamma))
        return self._estimate(counts)

    def error_bound(self, *, failure: float) -> float:
        """With probability 1 - failure all k estimates are within this of the truth, for any data.

        Bernstein's inequality for the worst bin and a union bound over the bins.
        """
        share = open_unit("failure", failure) / self.k
        variance = self.n * max(self.truth * (1 - self.truth), self.lie * (1 - self.lie))
        radius = bernstein_radius(variance=variance, largest=1.0, failure=share)
        return radius / (1 - self.gamma)

    def _variances(self, counts: NDArray[Any]) -> FloatArray:
        hits = counts * self.truth * (self.gamma - self.lie)
        misses = (self.n - counts) * self.lie * (1 - self.lie)
        return np.asarray((hits + misses) / (1 - self.gamma) ** 2)
