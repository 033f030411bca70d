"""Sum of real numbers in [0, 1] by one-bit messages (Cheu, Smith, Ullman, Zeber, Zhilyaev 2019, section 5).

A user writes x in unary with r bits, floor(x r) or one more of them ones, rounded at random without bias, and
sends every bit through binary randomized response with probability gamma of a fair coin; all r n messages are
shuffled together. With f the fractional part of x r, the total of one user's messages has

    mean      (1 - gamma) x r + r gamma / 2
    variance  r (gamma/2)(1 - gamma/2) + (1 - gamma)^2 f (1-f),

so that (ones / r - n gamma / 2) / (1 - gamma) is unbiased with mean squared error at most
n [(gamma/2)(1 - gamma/2) / (r (1-gamma)^2) + 1/(4 r^2)]. gamma grows like r, so the first term hardly depends
on r, and r = sqrt(n) makes the second 1/4: error independent of n, as the paper says.

Privacy, as in the paper by composition over the *positions*: let the j-th messages of all users be shuffled
among themselves. That is r runs of binary randomized response with n users each, in which the target's two
inputs differ in some bits (equal bits cost nothing; random rounding is a mixture of inputs, and hockey-stick
divergence is jointly convex). Their r-fold composition therefore dominates, and shuffling all r n messages is
a post-processing of it. This is not the group privacy of a sum of r n bits, which would be far worse.

What the joint shuffle shows is the number of ones, `CountedBits` with r bits a user, and one round of up to JOINT_BITS
bits is accounted so. Longer messages and more rounds are composed by positions, at a cost that does not grow with r.
That overstates epsilon by 0.05 % at n = 10^4, r = 10, gamma = 0.2, by 0.5 % at n = 10^4, r = 100, gamma = 0.02, and
by 1.3 % at n = 1,000, r = 32, gamma = 0.1 (delta = 1e-6).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..mechanisms import CountedBits, ShuffledRR
from ..numerics.tuning import JOINT_BITS
from ..numerics.validation import integer_in, positive_int
from ..randomizers.base import IntArray, settle
from ..randomizers.border import unit_array
from .budget import Budget, Ledger
from .protocol import ExpectedError
from .randomized_response import GammaNoise, one_bit_gamma
from .real_sum import rounded


@dataclass(frozen=True, kw_only=True)
class UnarySum(GammaNoise):
    """Sum of n values in [0, 1], `bits` one-bit messages per user.

    bits: r, at least 1 (for `from_budget` and `from_theorem` by default the paper's sqrt(n), rounded up). gamma:
    probability of a random bit, in (0, 1).

    One round of up to 128 bits is accounted jointly. Otherwise the ledger is an upper bound: it is for messages
    shuffled position by position (bits all different), of which the joint shuffle is a post-processing, and lower ends
    of its brackets are not the joint shuffle's.

    `from_theorem` is the paper's argument: every position at (epsilon_1, delta/(2r)) by Cheu et al. 2019, section 4.2,
    and advanced composition of the r positions with slack delta/2. It raises `bounds.OutOfRange` where section 4.2
    asks for more noise than there are users.
    """

    bits: int

    def __post_init__(self) -> None:
        super().__post_init__()
        settle(self, bits=integer_in("bits", self.bits, 1))

    @property
    def _messages(self) -> int:
        return self.bits

    @classmethod
    def _at(cls, parameter: float, *, bits: int | None = None, **design: Any) -> UnarySum:
        return cls(gamma=parameter, bits=_length(design["n"], bits), **design)

    @classmethod
    def from_theorem(
        cls, epsilon: float, delta: float, n: int, *, bits: int | None = None, **more: Any
    ) -> UnarySum:
        """See the class."""
        return super().from_theorem(epsilon, delta, n, bits=_length(n, bits), **more)

    @classmethod
    def _theorem(cls, budget: Budget, honest: int, *, bits: int) -> dict[str, Any]:
        from ..bounds import OutOfRange, advanced_composition
        from ..numerics.crossing import largest_satisfying

        length, target = integer_in("bits", bits, 1), budget.epsilon
        share = budget.delta / 2 * (1 - 1e-9)

        def excess(one: float) -> float:
            together = advanced_composition(
                epsilon=one, delta=share / length, rounds=length, slack=share
            )
            return together.epsilon - target

        one = largest_satisfying(excess, low=1e-9 * target / length, high=target)
        if one is None:
            raise OutOfRange(
                f"epsilon = {target!r}: advanced composition leaves nothing per message"
            )
        position = replace(budget, epsilon=one, delta=share / length)
        return {"gamma": one_bit_gamma(position, honest), "bits": length}

    @property
    def message_mechanism(self) -> CountedBits | ShuffledRR:
        """One position: the number of ones among the honest users' bits. A round is `bits` of them."""
        return self._response

    def ledger(self, rounds: int = 1) -> Ledger:
        """All bits together for one round of a few; else the mechanism of one position, `bits` times a round."""
        count = positive_int("rounds", rounds)
        if count == 1 and 1 < self.bits <= JOINT_BITS:
            return ((CountedBits(self.honest, gamma=self.gamma, bits=self.bits), 1),)
        return ((self.message_mechanism, self.bits * count),)

    def randomize(self, values: ArrayLike, rng: np.random.Generator) -> IntArray:
        """`bits` messages per user, shape (n, bits); `values` has shape (n,), numbers in [0, 1]."""
        ones = rounded(self, values, self.bits, rng)
        unary = (np.arange(self.bits) < ones[:, np.newaxis]).astype(np.int64)
        return self.randomizer.sample(unary, rng)

    def analyze(self, messages: ArrayLike) -> float:
        """Unbiased estimate of the sum, from all messages in any order."""
        return self._sum(messages)

    def expected_error(self, values: ArrayLike | None = None) -> ExpectedError:
        """Mean squared error for the `values`, shape (n,), or for the worst (half-way between cells)."""
        if values is None:
            rounding = self.n / 4
        else:
            parts = self._one_each(unit_array("values", values)) * self.bits % 1
            rounding = float(np.sum(parts * (1 - parts)))
        noise = self.n * (self.gamma / 2) * (1 - self.gamma / 2) / (1 - self.gamma) ** 2
        return ExpectedError(exact=noise / self.bits + rounding / self.bits**2)


def _length(n: int, bits: int | None) -> int:
    """`bits`, or the paper's sqrt(n), rounded up."""
    return math.isqrt(integer_in("n", n, 1) - 1) + 1 if bits is None else bits
