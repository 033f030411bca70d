"""Randomised bits of which nothing but their number is published: by secure sums, or by a shuffler of equal bits.

n users send bits that are 1 with one probability if the user holds 1, and with a smaller one if the user holds 0.
`CountedBits` publishes the number of ones. It is certified for every dataset, and exact for one round but for the
lattice (docs/swap.md): nobody is told who answered at random.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import ClassVar

from ..numerics.validation import positive_int, real, users
from ..pairs.bits import LARGEST_BIT_EPS0, BitAttackPair, BitPair, BitShares, bit_attacks
from ..pairs.pair import Attacks, Cohort, Pair
from ..pairs.profile import Several
from ..randomizers.base import settle
from ..randomizers.discrete import DiscreteRandomizer
from .base import SMALLEST_EPS0, OnCohorts, local_epsilon, said
from .labels import ShuffledRandomizer
from .ldp import bit_orders
from .shuffled import Shuffled

WAYS = ("eps0", "gamma", "one_if_one", "one_if_zero")


@dataclass(frozen=True, repr=False)
class CountedBits(OnCohorts):
    """n users send randomised bits, and only the number of ones is published.

    Parameters
    ----------
    n : users whose bits are counted together, the target included.
    eps0 | gamma | one_if_one, one_if_zero : one of the three. eps0 in [1e-9, 280]: randomised response; gamma in
        (2e-130, 1): a fair coin with probability gamma, the truth otherwise; or the probabilities of a 1 for the
        values 1 and 0, 0 < one_if_zero < one_if_one < 1.
    bits : bits a user sends in one round, independent given the value; all count together.

    A user may also hold a number in [0, 1] and round it at random, every bit by itself or not: one-bit means, unary
    sums. Upper ends hold for every dataset; lower ends come from an attack, all other users holding one value. Raises
    ValueError or TypeError naming the argument.

    >>> CountedBits(100_000, eps0=8.0)
    CountedBits(n=100000, eps0=8.0)
    """

    n: int
    _: KW_ONLY
    eps0: float | None = None
    gamma: float | None = None
    one_if_one: float | None = None
    one_if_zero: float | None = None
    bits: int = 1
    rarely: ClassVar[tuple[str, ...]] = ("bits",)
    any_cohort = False  # several bits have no pair where users may be absent

    CHECKS: ClassVar = {"n": users, "bits": positive_int}

    def __post_init__(self) -> None:
        for name in WAYS:
            if getattr(self, name) is not None:
                settle(self, **{name: real(name, getattr(self, name))})
        super().__post_init__()
        _ = self.shares

    @cached_property
    def shares(self) -> BitShares:
        """The probabilities of a 1; ValueError unless they are given in exactly one way."""
        given = {name: value for name in WAYS if (value := getattr(self, name)) is not None}
        if set(given) == {"eps0"}:
            budget = local_epsilon("eps0", given["eps0"])
            if not budget <= LARGEST_BIT_EPS0:
                raise ValueError(f"eps0 must be at most {LARGEST_BIT_EPS0:g}, got {budget!r}")
            return BitShares.randomized_response(budget)
        if set(given) == {"gamma"}:
            return BitShares.random_answers(given["gamma"])
        if set(given) == {"one_if_one", "one_if_zero"}:
            one, zero = given["one_if_one"], given["one_if_zero"]
            if not 1e-130 < zero < one < 1.0:
                raise ValueError(f"one_if_one must be in (one_if_zero, 1), one_if_zero > 1e-130, got {one!r}, {zero!r}")
            return BitShares.of(one, zero)
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in WAYS)
        raise ValueError(f"give eps0, or gamma, or one_if_one and one_if_zero, got {values}")

    def assumptions(self) -> dict[str, str]:
        return said(
            "exact for one round, an upper bound over rounds; the bits of a round are independent, and all users run"
            " the same randomizer",
            adversary="sees the number of ones and knows every other user's value",
        )

    @cached_property
    def pair(self) -> BitPair:  # type: ignore[override]
        return BitPair(self.n, self.shares, self.bits)

    def sampled(self, cohort: Cohort) -> Pair:
        """The pair of a hidden cohort: with one bit a user the less of docs/swap.md, Theorem B4, and the coin labels.

        If users take part independently the number of reports is published, too. For one bit each these two numbers
        are all that a shuffler shows, and the swap theorem is for that. TypeError for several bits.
        """
        if cohort.absence > 0.0:
            if self.bits > 1:
                raise TypeError(f"users who take part independently send one bit each, got {self!r}")
            return Shuffled(DiscreteRandomizer(self.shares.chances), self.n).sampled(cohort)
        known = BitPair(self.n, self.shares, self.bits, cohort.rate)
        if self.bits > 1:
            return known
        local = max(float(self.pair.max_loss.upper), SMALLEST_EPS0)
        tv = min(1.0, self.shares.gap * (1.0 + 1e-14))
        labels = ShuffledRandomizer(self.n, tv=tv, eps0=local).pair.sampled(cohort)
        return Several((known, labels))

    def stand_in_attack(self, cohort: Cohort) -> tuple[Pair, Pair] | None:
        return bit_orders(BitAttackPair(self.n, self.shares, self.bits))

    def sampled_attack(self, cohort: Cohort) -> Pair:
        return Attacks.of(bit_attacks(self.n, self.shares, cohort, bits=self.bits))
