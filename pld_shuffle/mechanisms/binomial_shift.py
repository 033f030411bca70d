"""The mechanisms of ZSUM: sums seen through binomial noise, of the pairs in `pairs.binomial`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from ..numerics.validation import open_unit, user_count
from ..pairs.binomial import BinomialPair, ExchangePair, ShiftPair
from .base import Mechanism
from .shared import SUBSTITUTION


@dataclass(frozen=True)
class _Binomial(Mechanism):
    """What both share: n noise bits that are 1 with probability `rate`."""

    n: int
    rate: float
    _kind: ClassVar[type[BinomialPair]]
    _analysis: ClassVar[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", user_count(self.n))
        object.__setattr__(self, "rate", open_unit("rate", self.rate))

    @cached_property
    def pair(self) -> BinomialPair:  # type: ignore[override]
        return self._kind(
            self.n, min(self.rate, 1.0 - self.rate)
        )  # 1 - rate is exact where it is used

    def assumptions(self) -> dict[str, str]:
        return {
            "neighbours": SUBSTITUTION,
            "adversary": "sees the shuffled messages and knows every other user's value",
            "analysis": self._analysis,
            "sampling": "all n users take part; n counts the users whose noise bits are in the sum",
        }


@dataclass(frozen=True)
class BinomialShift(_Binomial):
    """A sum seen through Bin(n, rate): the pair (1 + Z, Z) and its reverse, whichever is worse.

    n: noise bits, at least 1. rate: probability of a one, in (0, 1). Raises TypeError or ValueError.
    n at most 10**13. The profile costs O(sqrt(n rate (1-rate))) once and O(1) per epsilon; MemoryError beyond
    3e9 fair coins. Exact for one round; an upper bound over rounds.
    """

    _kind: ClassVar[type[BinomialPair]] = ShiftPair
    _analysis: ClassVar[str] = (
        "larger of both orders of a binomial count's pair: exact for one round; an upper bound over rounds"
    )


@dataclass(frozen=True)
class BinomialExchange(_Binomial):
    """Two sums seen through independent Bin(n, rate), one falling by one as the other rises.

    n: noise bits of each sum. rate: probability of a one, in (0, 1). Raises TypeError or ValueError.
    n at most 10**13. The profile costs O(sqrt(n rate (1-rate))) per epsilon; MemoryError beyond 3e9 fair
    coins. Exact for any number of rounds.
    """

    _kind: ClassVar[type[BinomialPair]] = ExchangePair
    _analysis: ClassVar[str] = "exact pair of two binomial counts, for any number of rounds"
