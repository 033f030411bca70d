"""What the protocols built on randomized response share: mechanism, estimate of a sum, error bounds, calibration.

With probability gamma a message is a uniform one of `_values` values, otherwise the true one. Messages 0 ... m of
all users, r from each, have the total (1 - gamma) r m S + gamma r m n/2 on average where S is the sum of what they
stand for in [0, 1]: that is inverted by `_sum`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, TypeVar

from numpy.typing import ArrayLike

from ..mechanisms import CountedBits, ShuffledRR
from ..numerics.validation import open_unit
from ..randomizers import BinaryRandomizedResponse, KRandomizedResponse
from ..randomizers.base import settle
from .budget import Budget, Search
from .protocol import OneMechanism, Protocol

P = TypeVar("P", bound="GammaNoise")

LEAST_GAMMA = 1e-12
LARGEST_GAMMA = 1.0 - 1e-9  # beyond, eps0 and what is left of the truth are below 1e-8


@dataclass(frozen=True, kw_only=True)
class GammaNoise(Protocol):
    """A protocol built on randomized response over `_values` values, `_messages` from every user a round.

    gamma: probability of a random answer, in (0, 1).
    """

    gamma: float

    def __post_init__(self) -> None:
        super().__post_init__()
        settle(self, gamma=open_unit("gamma", self.gamma))

    @property
    def _values(self) -> int:
        return 2

    @property
    def _messages(self) -> int:
        return 1

    @property
    def randomizer(self) -> KRandomizedResponse | BinaryRandomizedResponse:
        """The local randomizer of one message. ValueError where its eps0 would exceed 700."""
        response = KRandomizedResponse.from_gamma(k=self._values, gamma=self.gamma)
        return BinaryRandomizedResponse(response.eps0) if self._values == 2 else response

    @property
    def _response(self) -> CountedBits | ShuffledRR:
        """One message of every honest user, for somebody who sees the shuffled messages.

        Exact for two values; with more, the weak adversary's pair is nearly attained, by others who hold a third value.
        """
        if self._values == 2:
            return CountedBits(self.honest, gamma=self.gamma)
        return ShuffledRR(self._values, self.honest, gamma=self.gamma, adversary="weak")

    def _sum(self, messages: ArrayLike) -> float:
        """Unbiased estimate of the sum of all users' numbers, from all messages in any order."""
        total = int(self._received(messages, self._messages, self._values).sum())
        parts = self._messages * (self._values - 1)
        return (total / parts - self.n * self.gamma / 2) / (1 - self.gamma)

    @classmethod
    def _at(cls: type[P], parameter: float, **design: Any) -> P:
        return cls(gamma=parameter, **design)

    def _search(self, budget: Budget) -> Search:
        """The least gamma.

        A larger gamma is a post-processing (answer at random once more), so privacy grows with it. If every message
        has an equal share of epsilon as local budget, no other users are needed: that is the safe end, unless it is
        beyond LARGEST_GAMMA. gamma is at least LEAST_GAMMA.
        """
        shares = budget.rounds * self._messages
        local = budget.epsilon / shares * (1.0 - 1e-12)
        safe = self._values / (math.expm1(min(local, 600.0)) + self._values)
        safe = max(min(safe * (1.0 + 1e-9), LARGEST_GAMMA), LEAST_GAMMA)
        guess = 2.0 * self._values * shares * -math.log(budget.delta)
        return Search(LEAST_GAMMA, safe, guess / (self.honest * budget.epsilon**2))


class OneResponse(GammaNoise, OneMechanism):
    """One message from every user; the estimate divides what it sums by 1 - gamma and by `_scale`."""

    @property
    def _scale(self) -> int:
        return 1

    @property
    def _estimates(self) -> int:
        return 1

    @property
    def _largest(self) -> float:
        """No message is farther from its mean."""
        return 1.0

    @property
    def mechanism(self) -> CountedBits | ShuffledRR:
        """One round: randomized response of the honest users."""
        return self._response

    @property
    @abstractmethod
    def _worst_variance(self) -> float:
        """Variance of the sum of the messages, for the worst data."""

    def error_bound(self, *, failure: float) -> float:
        """With probability 1 - failure all estimates are within this of the truth, for any data.

        Bernstein's inequality with the worst variance, and a union bound over the estimates.
        """
        radius = bernstein_radius(
            variance=self._worst_variance,
            largest=self._largest,
            failure=open_unit("failure", failure) / self._estimates,
        )
        return radius / (1 - self.gamma) / self._scale


def bernstein_radius(*, variance: float, largest: float, failure: float) -> float:
    """t with P[|S - E S| >= t] <= failure, for S a sum of independent variables.

    variance: of S. largest: every summand is within `largest` of its mean. failure: in (0, 1).
    t solves t^2 = 2 L (variance + largest t / 3), L = log(2 / failure): Bernstein's inequality
    (Boucheron, Lugosi, Massart, Concentration inequalities, 2013, equation 2.10), both tails.
    """
    log_odds = math.log(2 / failure)
    half = largest * log_odds / 3
    return half + math.sqrt(half * half + 2 * variance * log_odds)


def one_bit_gamma(budget: Budget, honest: int) -> float:
    """gamma = lambda/n of Cheu et al. 2019, section 4.2, for one shuffled bit of every user; see `bounds.Cheu`."""
    from ..bounds import Cheu

    eps0 = Cheu().eps0(epsilon=budget.epsilon, delta=budget.delta, n=honest)
    return BinaryRandomizedResponse(eps0).gamma
