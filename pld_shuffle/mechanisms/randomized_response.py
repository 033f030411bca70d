"""k-ary randomised response in a shuffler, for adversaries who see more or less of who answered at random.

With probability gamma a user answers uniformly over k values, otherwise the truth; eps0 = log(1 + k (1-gamma)/gamma).
The other users' random answers are labels: the target's two values are coin labels, of rate 2 gamma/k together, the
other values are neutral. So the pair is a mixture of tilted coins, `pairs.coins.CoinMixture`, exact for these
adversaries (docs/theory.md, section 2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..numerics.validation import choice, positive_int, unit_interval, user_count
from ..pairs.cohort import Cohort
from ..pairs.coins import CoinMixture
from ..pairs.pair import Pair
from ..randomizers.border import EPS0_MAX
from .base import Mechanism
from .shared import EVERYBODY, SUBSTITUTION, exactly, local_epsilon, nearly

NEAREST_GAMMA = 1.0 - 1e-12  # the largest gamma below 1
ADVERSARIES = ("strong", "weak", "strong-conditional")


@dataclass(frozen=True, init=False)
class ShuffledRR(Mechanism):
    """n users shuffle k-ary randomised responses (with probability gamma uniform over all k values).

    Parameters
    ----------
    k : alphabet size, k >= 2.
    n : users whose reports are shuffled together, the target included.
    gamma | eps0 : exactly one; gamma 1 or in (0, 1 - 1e-12], eps0 = log(1 + k (1 - gamma) / gamma).
    adversary : "strong" also sees who answered at random, the target included (losses can be infinite);
        "weak" sees it of the other n - 1 users; "strong-conditional" is the strong adversary given that
        the target told the truth, the published pair of Koskela, Heikkila and Honkela.

    The pairs are exact for these adversaries (docs/theory.md, section 2). Raises ValueError or TypeError.

    >>> ShuffledRR(k=4, n=1000, gamma=0.25)
    ShuffledRR(k=4, n=1000, gamma=0.25, adversary='strong')
    """

    k: int
    n: int
    gamma: float
    eps0: float
    truth: float  # 1 - gamma, kept apart because it may be tiny
    adversary: str
    given: str  # "gamma" or "eps0": that one is exact, the other rounded

    def __init__(
        self,
        k: int,
        n: int,
        *,
        gamma: float | None = None,
        eps0: float | None = None,
        adversary: str = "strong",
    ) -> None:
        k = positive_int("k", k, least=2)
        if (gamma is None) == (eps0 is None):
            raise ValueError(
                f"give exactly one of gamma and eps0, got gamma={gamma!r}, eps0={eps0!r}"
            )
        object.__setattr__(self, "given", "eps0" if gamma is None else "gamma")
        if gamma is None:
            eps0 = local_epsilon(eps0)
            shrink = math.exp(-eps0)
            gamma = k * shrink / (1.0 + (k - 1) * shrink)
            truth = -math.expm1(-eps0) / (1.0 + (k - 1) * shrink)
        else:
            gamma = unit_interval("gamma", gamma)
            truth = 1.0 - gamma
            if truth > 0.0 and gamma > NEAREST_GAMMA:  # rounding of rates would outweigh the truth
                raise ValueError(
                    f"gamma must be 1 (no information at all) or at most 1 - 1e-12, got {gamma!r}"
                )
            eps0 = math.log1p(k * truth / gamma) if gamma > 1e-300 else math.inf
            if not eps0 <= EPS0_MAX:
                raise ValueError(f"gamma must leave eps0 at most {EPS0_MAX:g}, got {gamma!r}")
        object.__setattr__(self, "k", k)
        object.__setattr__(self, "n", user_count(n))
        object.__setattr__(self, "gamma", gamma)
        object.__setattr__(self, "eps0", eps0)
        object.__setattr__(self, "truth", truth)
        object.__setattr__(self, "adversary", choice("adversary", adversary, ADVERSARIES))

    def arguments(self) -> dict[str, Any]:
        given = {self.given: getattr(self, self.given)}
        return {"k": self.k, "n": self.n, **given, "adversary": self.adversary}

    def __repr__(self) -> str:
        given = f"eps0={self.eps0!r}" if self.given == "eps0" else f"gamma={self.gamma!r}"
        return f"ShuffledRR(k={self.k}, n={self.n}, {given}, adversary={self.adversary!r})"

    @cached_property
    def pair(self) -> CoinMixture:
        gamma, k, truth = self.gamma, self.k, self.truth
        coin = 2.0 * gamma / k
        neutral = gamma * (k - 2) / k
        if self.adversary == "weak":
            target_coin = truth + coin
            return CoinMixture(
                n=self.n,
                coin_rate=coin,
                neutral_rate=neutral,
                target_coin=target_coin,
                target_neutral=neutral,
                null=0.0,
                theta=truth / target_coin,
                gap=coin / target_coin,
                local_loss=exactly(self.eps0) if self.given == "eps0" else nearly(self.eps0),
                silent_rate=truth,
            )
        conditional = self.adversary == "strong-conditional"
        return CoinMixture(
            n=self.n,
            coin_rate=coin,
            neutral_rate=0.0,
            target_coin=1.0 if conditional else truth,
            target_neutral=0.0,
            null=0.0 if conditional else gamma,
            theta=1.0,
            gap=0.0,
            local_loss=exactly(math.inf),
        )

    def sampled(self, cohort: Cohort) -> Pair:
        """By the labels of the weak adversary, for whoever sees the shuffled reports only.

        Who answered at random must not be seen: it would tell who took part.
        """
        given = {self.given: getattr(self, self.given)}
        weak = (
            self
            if self.adversary == "weak"
            else ShuffledRR(self.k, self.n, **given, adversary="weak")
        )
        return weak.pair.sampled(cohort)

    def assumptions(self) -> dict[str, str]:
        named = {
            "strong": "sees the shuffled reports, and who of the n users answered at random",
            "weak": "sees the shuffled reports, and who of the other n-1 users answered at random",
            "strong-conditional": "strong, given that the target told the truth (published variant)",
        }
        return {
            "neighbours": SUBSTITUTION,
            "adversary": named[self.adversary],
            "analysis": f"exact pair of {self.k}-ary randomised response for this adversary",
            "sampling": EVERYBODY,
        }
