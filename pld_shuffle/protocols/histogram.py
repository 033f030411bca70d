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
The paper's closed form (Theorem 1) is `from_theorem`, which raises `bounds.OutOfRange` unless epsilon <= 1 and
gamma < 1.

What all histograms share is `Histogram`: the estimate of a bin has a mean squared error that is known for every true
count. Standard errors put the estimated counts into it, moved into [0, n].
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..numerics.validation import integer_in
from ..randomizers.base import FloatArray, IntArray, settle
from ..randomizers.border import integer_array
from .budget import Budget
from .protocol import ExpectedError, Protocol
from .randomized_response import OneResponse


class HistogramEstimate(NamedTuple):
    """Estimates of the counts and their standard errors, both of shape (k,).

    The standard errors put the estimated counts, moved into [0, n], into the exact mean squared error.
    """

    counts: FloatArray
    standard_errors: FloatArray


class Histogram(Protocol):
    """A protocol that estimates k counts of n values."""

    if TYPE_CHECKING:

        @property
        def k(self) -> int: ...

    @abstractmethod
    def _variances(self, counts: NDArray[Any]) -> FloatArray:
        """Mean squared error of the estimate of each of the true counts; largest at 0 or at n."""

    def bin_errors(self, counts: ArrayLike) -> FloatArray:
        """Exact root mean squared error of every estimated count, for the true `counts`, shape (k,).

        ValueError unless `counts` are k non-negative integers that sum to n.
        """
        values = integer_array("counts", counts, self.n + 1)
        if not (values.shape == (self.k,) and int(values.sum()) == self.n):
            raise ValueError(f"counts must be {self.k} numbers that sum to n={self.n}")
        return np.asarray(np.sqrt(self._variances(values)))

    def expected_error(self, counts: ArrayLike | None = None) -> ExpectedError:
        """Mean squared error of one bin: of the worst bin for the true `counts`, or of any data.

        `counts`: shape (k,), non-negative integers that sum to n; None asks for the worst data.
        """
        if counts is None:
            return ExpectedError(exact=float(np.max(self._variances(np.array([0, self.n])))))
        return ExpectedError(exact=float(np.max(self.bin_errors(counts))) ** 2)

    def _estimate(self, counts: NDArray[Any]) -> HistogramEstimate:
        """The estimated counts with their standard errors."""
        variances = self._variances(np.clip(counts, 0, self.n))
        return HistogramEstimate(counts=counts, standard_errors=np.sqrt(variances))


@dataclass(frozen=True, kw_only=True)
class PrivateHistogram(Histogram, OneResponse):
    """Histogram of n values in 0 ... k-1 by k-ary randomized response.

    k: number of bins, at least 2. gamma: probability of a random answer, in (0, 1).

    >>> histogram = PrivateHistogram.from_budget(1.0, 1e-6, 10_000, k=4)
    >>> histogram.accountant().get_epsilon(1e-6) <= 1.0
    True
    """

    k: int

    def __post_init__(self) -> None:
        super().__post_init__()
        settle(self, k=integer_in("k", self.k, 2))

    @property
    def _values(self) -> int:
        return self.k

    @classmethod
    def _theorem(cls, budget: Budget, honest: int, *, k: int) -> dict[str, Any]:
        from ..bounds import BalleTheorem1

        theorem = BalleTheorem1(k)
        gamma = theorem.gamma(epsilon=budget.epsilon, delta=budget.delta, n=honest)
        return {"k": k, "gamma": gamma}

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
        return self.randomizer.sample(self._numbers(values, self.k), rng)

    def analyze(self, messages: ArrayLike) -> HistogramEstimate:
        """Counts and standard errors from the n messages, in any order."""
        found = np.bincount(self._received(messages, 1, self.k), minlength=self.k)
        return self._estimate((found - self.n * self.lie) / (1 - self.gamma))

    @property
    def _estimates(self) -> int:
        return self.k

    @property
    def _worst_variance(self) -> float:
        return self.n * max(self.truth * (1 - self.truth), self.lie * (1 - self.lie))

    def _variances(self, counts: NDArray[Any]) -> FloatArray:
        hits = counts * self.truth * (self.gamma - self.lie)
        misses = (self.n - counts) * self.lie * (1 - self.lie)
        return np.asarray((hits + misses) / (1 - self.gamma) ** 2)
