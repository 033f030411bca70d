"""Histogram from bit vectors with fresh noise in every round: unary encoding, and RAPPOR without its memory.

Every user sends k noisy bits, one per value; the estimate and its error are in `bit_counts`. A `RAPPOR` here
draws *both* its steps afresh in every round, so rounds compose like any others. With the permanent noise
drawn once and kept, as RAPPOR is meant for values that do not change, use `rappor_histogram`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ..mechanisms.shared import SMALLEST_EPS0
from ..mechanisms.shuffled import Shuffled
from ..randomizers import RAPPOR, UnaryEncoding
from ..randomizers.bits import BitArray
from ..randomizers.border import EPS0_MAX, integer_array
from .bit_counts import BitCounts, one_hot_rappor
from .budget import Budget, Calibrated, Search
from .messages import one_per_user
from .protocol import OneMechanism, honest_users

Variant = Literal["symmetric", "optimised"]
VARIANTS: tuple[Variant, ...] = ("symmetric", "optimised")


@dataclass(frozen=True, kw_only=True)
class BitHistogram(BitCounts, Calibrated, OneMechanism):
    """Histogram of n values in 0 ... k-1 from unary encodings or one-hot RAPPOR reports.

    randomizer: a `UnaryEncoding`, or a `RAPPOR` without Bloom filter (bits=None), both steps of which
    are drawn afresh in every round. n: number of users. honest_fraction: share of them whose noise
    is relied upon, in (0, 1]. Raises TypeError or ValueError for anything else.

    The pair is an upper bound, for one round and for many.

    `from_budget` takes k and, if wanted, the `variant` of `UnaryEncoding` (else the one with the smaller worst error),
    and finds the largest eps0, at most 700 and at most 2 epsilon/rounds + 2 log(honest + 1) + 10, where hardly any
    bit is wrong.
    """

    randomizer: UnaryEncoding | RAPPOR
    n: int
    honest_fraction: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.randomizer, UnaryEncoding | RAPPOR):
            raise TypeError(
                f"randomizer must be a UnaryEncoding or a RAPPOR, got {self.randomizer!r}"
            )
        if isinstance(self.randomizer, RAPPOR):
            one_hot_rappor(self.randomizer)
        self._check_users()

    @classmethod
    def _within(
        cls, budget: Budget, *, variant: Variant | None = None, **design: Any
    ) -> BitHistogram:
        """For variant=None, the one with the smaller worst error."""
        variants = VARIANTS if variant is None else (variant,)
        found = [cls._begun(variant=one, **design)._calibrated(budget) for one in variants]
        return min(found, key=lambda protocol: protocol.expected_error().exact)

    @classmethod
    def _begun(cls, *, k: int, variant: Variant = "optimised", **design: Any) -> BitHistogram:
        return cls(randomizer=UnaryEncoding(k=k, eps0=1.0, variant=variant), **design)

    def _with_noise(self, parameter: float) -> BitHistogram:
        assert isinstance(self.randomizer, UnaryEncoding)
        return replace(self, randomizer=replace(self.randomizer, eps0=parameter))

    def _search(self, budget: Budget) -> Search:
        # An equal share of the budget as local epsilon needs no other users.
        share = budget.epsilon / budget.rounds * (1 - 1e-12)
        safe = min(max(share, SMALLEST_EPS0), EPS0_MAX)
        most = min(EPS0_MAX, 2 * safe + 2 * math.log(self.honest + 1) + 10)
        # One round's loss has a variance of about e^eps0/n.
        square = budget.epsilon**2 / (2 * budget.rounds * -math.log(budget.delta))
        guess = max(safe, math.log1p(self.honest * square))
        return Search(safe, most, guess, increasing=True, stride=1.1)

    @classmethod
    def from_theorem(
        cls,
        epsilon: float,
        delta: float,
        n: int,
        *,
        k: int,
        variant: Variant = "optimised",
        honest_fraction: float = 1.0,
    ) -> BitHistogram:
        """Unary encoding with eps0 from the closed form of Feldman et al. 2023, for one round.

        Raises `bounds.OutOfRange` where that allows no amplification.
        """
        from ..bounds import StrongerClonesClosedForm

        honest = honest_users(n, honest_fraction)
        eps0 = StrongerClonesClosedForm().eps0(epsilon=epsilon, delta=delta, n=honest)
        randomizer = UnaryEncoding(k=k, eps0=eps0, variant=variant)
        return cls(randomizer=randomizer, n=n, honest_fraction=honest_fraction)

    @property
    def mechanism(self) -> Shuffled:
        """One round: the randomizer, shuffled."""
        return Shuffled(self.randomizer, self.honest)

    def randomize(self, values: ArrayLike, rng: np.random.Generator) -> BitArray:
        """One message of k bits per user, shape (n, k), for `values` of shape (n,); all noise is fresh."""
        one_per_user(integer_array("values", values, self.k), self.n)
        return self.randomizer.sample(values, rng)
