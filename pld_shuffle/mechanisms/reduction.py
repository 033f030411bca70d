"""Any randomizer with parameters (p, beta, q) in a shuffler: labels from a total variation and two ratios.

The target's two laws have total variation beta and ratios up to p, and are at most q times the law of any other user.
Then the view is a post-processing of labels, alpha = beta/(p - 1): the target shows a coin label with probability
alpha (p + 1), and else a neutral one; the others show the same labels, each 1/q times as often as the larger of the
target's two laws. That is a mixture of tilted coins, `pairs.coins.CoinMixture` (docs/theory.md, section 4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..numerics.validation import positive_float, real, user_count
from ..pairs.cohort import Cohort
from ..pairs.coins import CoinMixture
from ..pairs.pair import Pair
from ..randomizers.border import EPS0_MAX
from .base import Mechanism
from .shared import (
    EVERYBODY,
    SMALLEST_EPS0,
    SUBSTITUTION,
    exactly,
    local_epsilon,
    nearly,
)


@dataclass(frozen=True, init=False)
class ShuffledRandomizer(Mechanism):
    """n users shuffle the reports of any randomizer with parameters (p, beta, q).

    Parameters
    ----------
    n : users whose reports are shuffled together, the target included.
    tv : beta, at least the total variation of the target's two output laws, in [0, 1].
    eps0 : local epsilon in [1e-9, 700]; it stands for p = q = e^eps0, right if all users share a randomizer.
    p, q : instead of eps0. The target's two output laws are within a factor p of each other, and at most
        q times every other user's law; 1 < p <= e^700, q >= 1.

    The (p, beta, q) reduction with the third outcome that others can show too (docs/theory.md, section 4,
    for every eps and every order). tv counts as min(tv, (p-1)/(p+1), q-1) (the last if there are others), which
    no total variation exceeds; with tv = 1 this is "stronger clones". Raises ValueError or TypeError.

    >>> ShuffledRandomizer(n=1000, eps0=2.0, tv=0.5)
    ShuffledRandomizer(n=1000, tv=0.5, eps0=2.0)
    """

    n: int
    tv: float
    eps0: float
    p: float | None
    q: float | None

    def __init__(
        self,
        n: int,
        *,
        tv: float,
        eps0: float | None = None,
        p: float | None = None,
        q: float | None = None,
    ) -> None:
        if (eps0 is None) == (p is None) or (p is None) != (q is None):
            raise ValueError(f"give either eps0, or p and q, got eps0={eps0!r}, p={p!r}, q={q!r}")
        distance = real("tv", tv)
        if not 0.0 <= distance <= 1.0:
            raise ValueError(f"tv must be in [0, 1], got {tv!r}")
        if p is None:
            eps0 = local_epsilon(eps0)
        else:
            p, q = positive_float("p", p), positive_float("q", q)
            largest = math.exp(EPS0_MAX)
            if not 1.0 < p <= largest:
                raise ValueError(f"p must be in (1, e^{EPS0_MAX:g}], got {p!r}")
            if not 1.0 <= q <= largest:
                raise ValueError(f"q must be in [1, e^{EPS0_MAX:g}], got {q!r}")
            eps0 = math.log(p)
            if not eps0 >= SMALLEST_EPS0:
                raise ValueError(f"p must be at least e^{SMALLEST_EPS0:g}, got {p!r}")
        object.__setattr__(self, "n", user_count(n))
        object.__setattr__(self, "tv", distance)
        object.__setattr__(self, "eps0", eps0)
        object.__setattr__(self, "p", p)
        object.__setattr__(self, "q", q)

    @cached_property
    def pair(self) -> CoinMixture:
        return self._coins(self.q if self.n > 1 else None)

    def sampled(self, cohort: Cohort) -> Pair:
        """The pair of Theorem C. In a cohort of one that others may be drawn for, q bounds beta again."""
        alone = self.n == 1 and cohort.rate == 1.0
        return self._coins(None if alone else self.q).sampled(cohort)

    def _coins(self, q: float | None) -> CoinMixture:
        """The labels; q is None if it is p, or if there is nobody else, whose law would bound beta by q - 1."""
        shrink = math.exp(-self.eps0) if self.p is None else 1.0 / self.p
        spread = -math.expm1(-self.eps0) if self.p is None else (self.p - 1.0) / self.p
        theta = spread / (1.0 + shrink)
        share = shrink if q is None else 1.0 / q  # 1/q
        most = math.inf if q is None else q - 1.0
        beta = min(self.tv, theta, most)
        coin = min(1.0, beta / theta)
        neutral = (theta - beta) / theta if beta < theta else 0.0
        # 1 - 1/q - beta/q, the probability of nothing, without cancellation: nobody is silent if beta = q - 1.
        silent = spread - beta * share if q is None else (most - beta) * share
        return CoinMixture(
            n=self.n,
            coin_rate=1.0 - neutral * share
            if silent <= 0.0 and coin > 0.5
            else 2.0 * beta / spread * share,
            neutral_rate=neutral * share,
            target_coin=coin,
            target_neutral=neutral,
            null=0.0,
            theta=theta,
            gap=2.0 * shrink / (1.0 + shrink),
            local_loss=exactly(self.eps0) if self.p is None else nearly(self.eps0),
            silent_rate=silent,
            label_ratio=2.0 / (1.0 + shrink) * share if coin < 0.5 else None,
        )

    def arguments(self) -> dict[str, Any]:
        given = {"eps0": self.eps0} if self.p is None else {"p": self.p, "q": self.q}
        return {"n": self.n, "tv": self.tv, **given}

    def __repr__(self) -> str:
        return f"ShuffledRandomizer({', '.join(f'{k}={v!r}' for k, v in self.arguments().items())})"

    def assumptions(self) -> dict[str, str]:
        limits = f"eps0={self.eps0:g}" if self.p is None else f"p={self.p:g}, q={self.q:g}"
        return {
            "neighbours": SUBSTITUTION,
            "adversary": "sees the shuffled reports and knows every other user's value",
            "analysis": f"(p, beta, q) reduction, for every randomizer with {limits} and total"
            f" variation at most {self.tv:g}",
            "sampling": EVERYBODY,
        }
