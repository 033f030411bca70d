"""Histogram from bit vectors: unary encoding, and basic RAPPOR's aggregation.

Every user sends a vector of k bits in which the own value's bit is 1 with probability a and every
other bit with probability b < a. The number N_j of ones at place j has mean b n + (a - b) c_j, so
(N_j - b n) / (a - b) estimates the count c_j without bias, with variance
(c_j a (1-a) + (n - c_j) b (1-b)) / (a - b)^2; bits are independent. The lecture notes describe the
system; the estimate is that of Erlingsson, Pihur, Korolova 2014, section 4, for one-hot filters.

With RAPPOR a and b are those of both steps together. The estimate of one collection is right with
memoised filters too; estimates of several collections from the same filters are then not
independent.

Privacy: one collection is `ShuffledRandomizer` with the randomizer's eps0 and total variation. (`Blanket` of
the same randomizer is a little sharper, by 1 to 2 % of epsilon for n = 1000 to 10^4, and dearer.) RAPPOR's
permanent step is memoised: collections of the same values share its noise and must not be composed as if
independent. Given all memoised filters the collections are independent, and every one depends on the multiset
of filters only; so all of them together are a post-processing of *one* shuffled collection of the memoised
filters themselves, which `lifetime_mechanism` accounts for, once, whatever the number of collections (for
values that do not change).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..mechanisms import ShuffledRandomizer
from ..randomizers import RAPPOR, UnaryEncoding
from ..randomizers.base import FloatArray, IntArray
from ..randomizers.bits import BitArray
from ..randomizers.border import (
    EPS0_MAX,
    bit_array,
    generator,
    integer_array,
    positive_finite,
)
from ..validation import positive_int
from .budget import calibrated
from .expected_error import ExpectedError
from .histogram import HistogramEstimate
from .messages import one_per_user
from .protocol import OneMechanism, honest_users

VARIANTS: tuple[Literal["symmetric", "optimised"], ...] = ("symmetric", "optimised")

if TYPE_CHECKING:
    from ..mechanism import Mechanism


@dataclass(frozen=True, kw_only=True)
class BitHistogram(OneMechanism):
    """Histogram of n values in 0 ... k-1 from unary encodings or one-hot RAPPOR reports.

    randomizer: a `UnaryEncoding`, or a `RAPPOR` without Bloom filter (bits=None). n: number of
    users. honest_fraction: share of them whose noise is relied upon, in (0, 1]. Raises TypeError or
    ValueError for anything else.
    """

    randomizer: UnaryEncoding | RAPPOR
    n: int
    honest_fraction: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.randomizer, UnaryEncoding | RAPPOR):
            raise TypeError(
                f"randomizer must be a UnaryEncoding or a RAPPOR, got {self.randomizer!r}"
            )
        if isinstance(self.randomizer, RAPPOR) and self.randomizer.bits is not None:
            raise ValueError(f"randomizer must have one-hot filters, got {self.randomizer!r}")
        self._check_users()

    @classmethod
    def from_budget(
        cls,
        epsilon: float,
        delta: float,
        n: int,
        *,
        k: int,
        rounds: int = 1,
        variant: Literal["symmetric", "optimised"] | None = None,
        honest_fraction: float = 1.0,
    ) -> BitHistogram:
        """Unary encoding with the largest eps0 whose `rounds` rounds are proved (epsilon, delta)-private.

        variant: of `UnaryEncoding`; None takes the one with the smaller worst error. About ten
        compositions for each. Raises TypeError or ValueError for bad arguments.
        """
        if variant is None:
            return min(
                (
                    cls.from_budget(
                        epsilon, delta, n, k=k, rounds=rounds, variant=one,
                        honest_fraction=honest_fraction,
                    )
                    for one in VARIANTS
                ),
                key=lambda protocol: protocol.expected_error().exact,
            )  # fmt: skip
        honest = honest_users(n, honest_fraction)
        safe = _local_share(epsilon, rounds)
        return calibrated(
            lambda eps0: cls(
                randomizer=UnaryEncoding(k=k, eps0=eps0, variant=variant),
                n=n,
                honest_fraction=honest_fraction,
            ),
            epsilon=epsilon,
            delta=delta,
            rounds=rounds,
            low=safe,
            high=max(safe, min(EPS0_MAX, 2 * safe + 2 * math.log(honest + 1) + 10)),
            guess=max(safe, math.log1p(honest * safe**2 / 100)),
            increasing=True,
        )

    @classmethod
    def rappor_from_budget(
        cls,
        epsilon: float,
        delta: float,
        n: int,
        *,
        k: int,
        one_if_zero: float,
        one_if_one: float,
        rounds: int = 1,
        honest_fraction: float = 1.0,
    ) -> BitHistogram:
        """Basic RAPPOR with the least permanent noise f, for one collection or, if rounds > 1, for all.

        one_if_zero, one_if_one: the instantaneous step (p and q of the paper), kept as given. With rounds > 1
        the memoised filters themselves are (epsilon, delta)-private, hence any number of collections of
        unchanged values. ValueError if noise f close to 1 is not enough.
        """

        def build(noise: float) -> BitHistogram:
            steps = RAPPOR(k=k, noise=noise, one_if_zero=one_if_zero, one_if_one=one_if_one)
            return cls(randomizer=steps, n=n, honest_fraction=honest_fraction)

        # The permanent step alone has eps0 = 2 log((2 - f)/f).
        local = 2 / (1 + math.exp(min(_local_share(epsilon, 1), 1000.0) / 2)) * (1 + 1e-12)
        safe = min(local, 1 - 1e-12)
        return calibrated(
            build,
            epsilon=epsilon,
            delta=delta,
            rounds=rounds,
            low=min(1e-9, safe),
            high=safe,
            guess=0.1,
            increasing=False,
        )

    @classmethod
    def from_theorem(
        cls,
        epsilon: float,
        delta: float,
        n: int,
        *,
        k: int,
        variant: Literal["symmetric", "optimised"] = "optimised",
        honest_fraction: float = 1.0,
    ) -> BitHistogram:
        """Unary encoding with eps0 from the closed form of Feldman et al. 2023, for one round.

        Raises `bounds.domain.OutOfRange` where that allows no amplification.
        """
        from ..bounds.feldman2023 import feldman2023_eps0

        honest = honest_users(n, honest_fraction)
        eps0 = feldman2023_eps0(epsilon=epsilon, delta=delta, n=honest)
        randomizer = UnaryEncoding(k=k, eps0=eps0, variant=variant)
        return cls(randomizer=randomizer, n=n, honest_fraction=honest_fraction)

    @property
    def mechanism(self) -> ShuffledRandomizer:
        """One collection: the (p, beta, q) reduction with the randomizer's eps0 and total variation.

        To be composed over rounds only if all noise is drawn afresh in every round; `ledger` knows.
        """
        return self._accounted(self.randomizer)

    @property
    def lifetime_mechanism(self) -> ShuffledRandomizer:
        """All collections from memoised filters together: compose it once.

        ValueError without permanent noise.
        """
        if not isinstance(self.randomizer, RAPPOR) or self.randomizer.noise == 0:
            raise ValueError(f"randomizer must have a permanent step, got {self.randomizer!r}")
        return self._accounted(self.randomizer.memoised)

    def ledger(self, rounds: int = 1) -> tuple[tuple[Mechanism, int], ...]:
        """The mechanism, `rounds` times; with permanent noise, from two rounds on, the lifetime, once."""
        count = positive_int("rounds", rounds)
        if count > 1 and isinstance(self.randomizer, RAPPOR) and self.randomizer.noise > 0:
            return ((self.lifetime_mechanism, 1),)
        return ((self.mechanism, count),)

    def _accounted(self, randomizer: UnaryEncoding | RAPPOR) -> ShuffledRandomizer:
        # The closed forms are right up to rounding (relative 1e-14): moved to the safe side.
        eps0 = min(randomizer.eps0 * (1 + 1e-13), EPS0_MAX)
        return ShuffledRandomizer(self.honest, tv=min(1.0, randomizer.tv * (1 + 1e-13)), eps0=eps0)

    @property
    def k(self) -> int:
        """Number of bins."""
        return self.randomizer.k

    def randomize(self, values: ArrayLike, rng: np.random.Generator) -> BitArray:
        """One message of k bits per user, shape (n, k), for `values` of shape (n,)."""
        one_per_user(integer_array("values", values, self.k), self.n)
        return self.randomizer.sample(values, rng)

    def shuffle(self, messages: ArrayLike, rng: np.random.Generator) -> NDArray[Any]:
        """The messages (rows) in uniformly random order; the bits of one message stay together."""
        return generator(rng).permutation(self._received(messages), axis=0)

    def analyze(self, messages: ArrayLike) -> HistogramEstimate:
        """Counts and standard errors from messages of shape (n, k), rows in any order."""
        found = self._received(messages).sum(axis=0, dtype=np.int64)
        channel = self.randomizer.channel
        counts = (found - self.n * channel.one_if_zero) / self._contrast
        variances = self._variances(np.clip(counts, 0, self.n))
        return HistogramEstimate(counts=counts, standard_errors=np.sqrt(variances))

    def bin_errors(self, counts: ArrayLike) -> FloatArray:
        """Exact standard deviation of every estimated count, for the true `counts`, shape (k,).

        ValueError unless `counts` are k non-negative integers that sum to n.
        """
        return np.asarray(np.sqrt(self._variances(self._true_counts(counts))))

    def expected_error(self, counts: ArrayLike | None = None) -> ExpectedError:
        """Mean squared error of one bin: of the worst bin for the true `counts`, or of any data."""
        values = np.array([0, self.n]) if counts is None else self._true_counts(counts)
        return ExpectedError(exact=float(np.max(self._variances(values))))

    @property
    def _contrast(self) -> float:
        """a - b, which is the randomizer's total variation."""
        return self.randomizer.tv

    def _received(self, messages: ArrayLike) -> BitArray:
        bits = bit_array("messages", messages, self.k)
        if bits.shape != (self.n, self.k):
            raise ValueError(f"messages must have shape ({self.n}, {self.k}), got {bits.shape}")
        return bits

    def _true_counts(self, counts: ArrayLike) -> IntArray:
        values = integer_array("counts", counts, self.n + 1)
        if not (values.shape == (self.k,) and int(values.sum()) == self.n):
            raise ValueError(f"counts must be {self.k} numbers that sum to n={self.n}")
        return values

    def _variances(self, counts: NDArray[Any]) -> FloatArray:
        channel = self.randomizer.channel
        own = counts * channel.one_if_one * channel.zero_if_one
        others = (self.n - counts) * channel.one_if_zero * channel.zero_if_zero
        return np.asarray((own + others) / self._contrast**2)


def _local_share(epsilon: float, rounds: int) -> float:
    """The local epsilon that needs no crowd: an equal share of the budget."""
    return positive_finite("epsilon", epsilon) / positive_int("rounds", rounds) * (1 - 1e-12)
