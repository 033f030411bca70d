"""k-ary randomised response of users with budgets of their own, in one crowd.

A user of budget eps_i answers uniformly at random with probability gamma_i = k/(e^eps_i + k - 1), and that answer looks
the same whatever the budget. So the crowd that hides the target are the B uniform answers of the others, B a sum of
independent coins of rates gamma_i. Given B the pair is that of a crowd of B + 1 (docs/theory.md, section 2), and one
more uniform answer is post-processing: a stochastically smaller B dominates. Of binomial laws (Boland, Singh, Cukic
2002), with geometric means over the others,

    Bin(n-1, gm(gamma))  <=  B  <=  Bin(n-1, 1 - gm(1 - gamma)):

the first is the analysis, the second what the lower ends are of. With equal budgets both are B's own law.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from ..numerics.validation import positive_int
from ..pairs.coins import CoinMixture
from ..pairs.pair import Pair
from .base import Mechanism
from .shared import SUBSTITUTION, exactly, local_epsilon

_ROUNDING = 1e-12  # of a geometric mean: 700 units of a logarithm, known to a few ulp, and room


@dataclass(frozen=True)
class MixedRR(Mechanism):
    """The target of budget `eps0` among users of other budgets, all of them by k-ary randomised response.

    Parameters
    ----------
    k : alphabet size, k >= 2.
    eps0 : the target's local epsilon, in [1e-9, 700].
    others : (eps0, count) for each class of the other users.

    The guarantee is the target's: every class of users has a mechanism of its own (`of_classes`). The adversary sees
    the shuffled reports, and who of the *other* users answered at random. The two ends meet where all budgets are
    equal, and lie apart as the budgets do. There is no pair for a hidden cohort.

    A budget alone does not compare two users' randomizers: this is for users who differ in nothing but gamma. Another
    randomizer of a smaller epsilon may hide the target worse, or not at all. Raises ValueError or TypeError.

    >>> from pld_shuffle import Accountant
    >>> for eps0, mechanism in MixedRR.of_classes(4, {1.0: 5000, 3.0: 5000}).items():
    ...     print(eps0, round(Accountant().compose(mechanism).get_epsilon(1e-6), 3))
    1.0 0.05
    3.0 0.148
    """

    unsampled = "no pair is known for a hidden cohort of mixed budgets"

    k: int
    eps0: float
    others: tuple[tuple[float, int], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", positive_int("k", self.k, least=2))
        object.__setattr__(self, "eps0", local_epsilon(self.eps0))
        if isinstance(self.others, (str, bytes, Mapping)) or not isinstance(self.others, Iterable):
            raise TypeError(f"others must be pairs (eps0, count), got {self.others!r}")
        pairs = [tuple(pair) for pair in self.others]
        if not all(len(pair) == 2 for pair in pairs):
            raise ValueError(f"others must be pairs (eps0, count), got {self.others!r}")
        checked = tuple((local_epsilon(eps), positive_int("count", count)) for eps, count in pairs)
        object.__setattr__(self, "others", checked)

    @classmethod
    def of_classes(cls, k: int, users: Mapping[float, int]) -> dict[float, MixedRR]:
        """For each class of users, {eps0: count}, the mechanism whose target is one of them."""
        found = {}
        for eps0, count in users.items():
            rest = {**users, eps0: positive_int("count", count) - 1}
            others = tuple((eps, number) for eps, number in rest.items() if number != 0)
            found[eps0] = cls(k, eps0, others)
        return found

    @property
    def users(self) -> int | None:
        return 1 + sum(count for _, count in self.others)

    @cached_property
    def pair(self) -> Pair:  # type: ignore[override]
        if len(self._classes) == 1:
            return self._crowd(*self._rates(self._classes[0][0]))
        rate = math.exp(self._mean(lambda gamma, truth: math.log(gamma))) * (1.0 - _ROUNDING)
        return self._crowd(rate, 1.0 - rate)

    @cached_property
    def attack_pair(self) -> Pair:  # type: ignore[override]
        if len(self._classes) == 1:
            return self.pair
        mean = self._mean(lambda gamma, truth: math.log(truth))
        rate = min(1.0, -math.expm1(mean) * (1.0 + _ROUNDING))
        return self._crowd(rate, 1.0 - rate)

    def assumptions(self) -> dict[str, str]:
        return {
            "neighbours": f"{SUBSTITUTION}, one of local budget {self.eps0:g}",
            "adversary": "sees the shuffled reports, and who of the other users answered at random",
            "analysis": f"{self.k}-ary randomised response by everybody; the number of random answers is at least a"
            " binomial one of the geometric mean of their rates",
            "sampling": "all users take part; budgets do not depend on the data",
        }

    @cached_property
    def _classes(self) -> list[tuple[float, int]]:
        """The others by budget; somebody like the target, if there are none."""
        counts: dict[float, int] = {}
        for eps, count in self.others or ((self.eps0, 1),):
            counts[eps] = counts.get(eps, 0) + count
        return list(counts.items())

    def _mean(self, logarithm: Callable[[float, float], float]) -> float:
        """The mean over the others of a logarithm of gamma or 1 - gamma."""
        total = math.fsum(count * logarithm(*self._rates(eps)) for eps, count in self._classes)
        return total / sum(count for _, count in self._classes)

    def _rates(self, eps: float) -> tuple[float, float]:
        """gamma and 1 - gamma."""
        shrink = math.exp(-eps)
        whole = 1.0 + (self.k - 1) * shrink
        return self.k * shrink / whole, -math.expm1(-eps) / whole

    def _crowd(self, rate: float, rest: float) -> CoinMixture:
        """The weak adversary's pair, if the others answer at random with probability `rate`, 1 - `rest`."""
        gamma, truth = self._rates(self.eps0)
        coin = truth + 2.0 * gamma / self.k
        assert self.users is not None
        return CoinMixture(
            n=self.users,
            coin_rate=2.0 * rate / self.k,
            neutral_rate=rate * (self.k - 2) / self.k,
            target_coin=coin,
            target_neutral=gamma * (self.k - 2) / self.k,
            null=0.0,
            theta=truth / coin,
            gap=2.0 * gamma / self.k / coin,
            local_loss=exactly(self.eps0),
            silent_rate=rest,
        )
