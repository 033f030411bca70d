"""What the protocols built on randomized response share: the mechanism of one round, and its calibration."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, TypeVar

from ..mechanisms import CountedBits, ShuffledRR
from .budget import Budget, Calibrated, Search

P = TypeVar("P", bound="GammaNoise")

LEAST_GAMMA = 1e-12
LARGEST_GAMMA = 1.0 - 1e-9  # beyond, eps0 and what is left of the truth are below 1e-8


def shuffled_response(values: int, gamma: float, n: int) -> CountedBits | ShuffledRR:
    """n users' randomized response over `values` values, for somebody who sees the shuffled reports.

    Exact for two values; with more, the weak adversary's pair is nearly attained, by others who hold a third value.
    """
    if values == 2:
        return CountedBits(n, gamma=gamma)
    return ShuffledRR(values, n, gamma=gamma, adversary="weak")


class GammaNoise(Calibrated):
    """A protocol built on randomized response over `_values` values, `_messages` from every user a round."""

    gamma: float

    @property
    def _values(self) -> int:
        return 2

    @property
    def _messages(self) -> int:
        return 1

    @classmethod
    def _begun(cls: type[P], *_: Any, **design: Any) -> P:
        maker: Any = cls
        begun: P = maker(gamma=0.5, **design)
        return begun

    def _with_noise(self: P, parameter: float) -> P:
        changed: P = replace(self, gamma=parameter)  # type: ignore[type-var]
        return changed

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
