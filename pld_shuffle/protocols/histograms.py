"""Histograms: by k-ary randomized response, from noisy one-hot vectors, from memoised ones (RAPPOR), and with dummies.

How often a bin is named has a mean and a variance linear in its true count (docs/protocols.md). Privacy counts the
dummies of `honest` users only; errors are of a run in which everybody sends theirs (docs/sums.md, section 6).

*The catch.* In a `BitHistogram` all noise is fresh in every round, both steps of a `RAPPOR` too. With the permanent
noise drawn once and kept, for values that do not change, use `RAPPORHistogram`: all its collections together are a
post-processing of *one* shuffled collection of the memoised filters, `lifetime_mechanism`, accounted once. That needs
the same users in every collection; where values change, filters are to be memoised anew, and the lifetimes composed.

Sources: Balle, Bell, Gascon, Nissim 2019, Algorithm 1; Erlingsson, Pihur, Korolova 2014, section 4; Luo, Wang, Yi 2022
(`BallsIntoBins`); Li et al. 2023 (`MixDUMP`); Cheu and Zhilyaev 2022 (`FakeUsers`).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..fields import Range
from ..mechanisms import DummyReports, MixedRandomizers
from ..mechanisms.base import SMALLEST_EPS0
from ..mechanisms.shuffled import Shuffled
from ..numerics.sides import Array
from ..numerics.validation import OpenUnit, PositiveFloat, PositiveInt, between, instance, integer_in, positive_int
from ..randomizers import RAPPOR, UnaryEncoding
from ..randomizers.base import EPS0_MAX, IntArray, bit_array, generator, integer_array
from ..randomizers.one_hot import VARIANTS, BitArray, BitChannel, Variant
from .protocol import Budget, ExpectedError, Ledger, OneMechanism, OneMessage, Protocol

LEAST_NOISE = 1e-9


class HistogramEstimate(NamedTuple):
    """Estimates of the counts and their standard errors, both of shape (k,).

    The standard errors put the estimated counts, moved into [0, n], into the exact mean squared error.
    """

    counts: Array
    standard_errors: Array


class Histogram(Protocol):
    """A protocol that estimates k counts of n values."""

    k: int

    @abstractmethod
    def _variances(self, counts: NDArray[Any]) -> Array:
        """Mean squared error of the estimate of each of the true counts; largest at 0 or at n."""

    def bin_errors(self, counts: ArrayLike) -> Array:
        """Exact root mean squared error of every estimated count, for the true `counts`, shape (k,).

        ValueError unless `counts` are k non-negative integers that sum to n.
        """
        values = integer_array("counts", counts, self.n + 1)
        if not (values.shape == (self.k,) and int(values.sum()) == self.n):
            raise ValueError(f"counts must be {self.k} numbers that sum to n={self.n}")
        return np.asarray(np.sqrt(self._variances(values)))

    def expected_error(self, counts: ArrayLike | None = None) -> ExpectedError:
        """Mean squared error of one bin: of the worst bin for the true `counts`, or of any data.

        `counts`: shape (k,), non-negative integers that sum to n; None asks for the worst data.
        """
        if counts is None:
            return ExpectedError(float(np.max(self._variances(np.array([0, self.n])))))
        return ExpectedError(float(np.max(self.bin_errors(counts))) ** 2)

    def _with_errors(self, counts: NDArray[Any]) -> HistogramEstimate:
        variances = self._variances(np.clip(counts, 0, self.n))
        return HistogramEstimate(counts=counts, standard_errors=np.sqrt(variances))


class LinearHistogram(Histogram):
    """Counts from how often bins are named: by one user its own bin with probability a, any other one with b < a."""

    _added: float = 0.0  # variance of what is added to how often a bin is named, whatever the data

    @property
    @abstractmethod
    def _channel(self) -> BitChannel:
        """a, 1 - a, b and 1 - b."""

    def _variances(self, counts: NDArray[Any]) -> Array:
        a, not_a, b, not_b = self._channel
        own, others = counts * a * not_a, (self.n - counts) * b * not_b
        return np.asarray((own + others + self._added) / (a - b) ** 2)

    def _estimate(self, named: NDArray[Any], added: float = 0.0) -> HistogramEstimate:
        """From how often every bin is named; `added` of that is expected whatever the data."""
        a, _, b, _ = self._channel
        return self._with_errors((named - self.n * b - added) / (a - b))


@dataclass(frozen=True, kw_only=True)
class Bins(Histogram):
    """A histogram of values in 0 ... k-1. k: number of bins, at least 2."""

    k: Annotated[int, partial(integer_in, lowest=2)]


def answers(k: int, gamma: float) -> BitChannel:
    """Of k-ary randomized response that answers uniformly with probability gamma."""
    lie = gamma / k
    return BitChannel(1.0 - gamma + lie, gamma - lie, lie, 1.0 - lie)


@dataclass(frozen=True, kw_only=True)
class PrivateHistogram(Bins, LinearHistogram, OneMessage):
    """Histogram of n values in 0 ... k-1 by k-ary randomized response.

    k: number of bins, at least 2. gamma: probability of a random answer, in (0, 1).

    >>> histogram = PrivateHistogram.from_budget(1.0, 1e-6, 10_000, k=4)
    >>> histogram.accountant().get_epsilon(1e-6) <= 1.0
    True
    """

    @property
    def _values(self) -> int:  # type: ignore[override]
        return self.k

    @property
    def _channel(self) -> BitChannel:
        return answers(self.k, self.gamma)

    def analyze(self, messages: ArrayLike) -> HistogramEstimate:
        """Counts and standard errors from the n messages, in any order."""
        return self._estimate(np.bincount(self._received(messages, 1, self.k), minlength=self.k))


@dataclass(frozen=True, kw_only=True)
class BitCounts(LinearHistogram):
    """A protocol of n users who send one vector of k noisy bits each; `randomizer` has the noise."""

    randomizer: Annotated[UnaryEncoding | RAPPOR, instance((UnaryEncoding, RAPPOR), "a UnaryEncoding or a RAPPOR")]

    @property
    def k(self) -> int:  # type: ignore[override]
        """Number of bins."""
        return self.randomizer.k

    def shuffle(self, messages: ArrayLike, rng: np.random.Generator) -> NDArray[Any]:
        """The messages (rows) in uniformly random order; the bits of one message stay together."""
        return generator(rng).permutation(self._vectors(messages), axis=0)

    def analyze(self, messages: ArrayLike) -> HistogramEstimate:
        """Counts and standard errors from messages of shape (n, k), rows in any order."""
        return self._estimate(self._vectors(messages).sum(axis=0, dtype=np.int64))

    @property
    def _channel(self) -> BitChannel:
        return self.randomizer.channel

    def _vectors(self, messages: ArrayLike) -> BitArray:
        bits = bit_array("messages", messages, self.k)
        if bits.shape != (self.n, self.k):
            raise ValueError(f"messages must have shape ({self.n}, {self.k}), got {bits.shape}")
        return bits


@dataclass(frozen=True, kw_only=True)
class BitHistogram(BitCounts, OneMechanism):
    """Histogram of n values in 0 ... k-1 from unary encodings or RAPPOR reports.

    randomizer: a `UnaryEncoding`, or a `RAPPOR`, both steps of which are drawn afresh in every round.

    The pair is an upper bound. `from_budget` takes k and, if wanted, the `variant` of `UnaryEncoding` (else the one
    with the smaller worst error), and finds the largest eps0, up to where hardly any bit is wrong.
    """

    @classmethod
    def _within(cls, budget: Budget, *, variant: Variant | None = None, **design: Any) -> BitHistogram:
        """For variant=None, the one with the smaller worst error."""
        variants = VARIANTS if variant is None else (variant,)
        found = [super(BitHistogram, cls)._within(budget, variant=one, **design) for one in variants]
        return min(found, key=lambda protocol: protocol.expected_error().exact)

    @classmethod
    def _at(cls, parameter: float, *, k: int, variant: Variant = "optimised", **design: Any) -> BitHistogram:
        return cls(randomizer=UnaryEncoding(k=k, eps0=parameter, variant=variant), **design)

    def _search(self, budget: Budget) -> Range:
        # An equal share of the budget as local epsilon needs no other users.
        share = budget.epsilon / budget.rounds * (1 - 1e-12)
        safe = min(max(share, SMALLEST_EPS0), EPS0_MAX)
        most = min(EPS0_MAX, 2 * safe + 2 * math.log(self.honest + 1) + 10)
        # One round's loss has a variance of about e^eps0/n.
        square = budget.epsilon**2 / (2 * budget.rounds * -math.log(budget.delta))
        guess = max(safe, math.log1p(self.honest * square))
        return Range(safe, most, guess, increasing=True, stride=1.1)

    @property
    def mechanism(self) -> Shuffled:
        return Shuffled(self.randomizer, self.honest)

    def randomize(self, values: ArrayLike, rng: np.random.Generator) -> BitArray:
        """One message of k bits per user, shape (n, k), for `values` of shape (n,); all noise is fresh."""
        return self.randomizer.sample(self._numbers(values, self.k), rng)


@dataclass(frozen=True, kw_only=True)
class RAPPORHistogram(BitCounts):
    """Histogram of n unchanging values in 0 ... k-1 from reports on memoised one-hot filters.

    randomizer: a `RAPPOR` with noise > 0. The pairs are upper bounds.
    `from_budget` takes k and the instantaneous step (one_if_zero, one_if_one: p and q of the paper) and finds the
    least permanent noise f (at least 1e-9), for one collection or, if rounds > 1, for any number: then the memoised
    filters themselves are proved (epsilon, delta)-private.

    >>> steps = RAPPOR(k=3, noise=0.5, one_if_zero=0.25, one_if_one=0.75)
    >>> histogram, rng = RAPPORHistogram(randomizer=steps, n=4), np.random.default_rng(0)
    >>> filters = histogram.memoise([0, 2, 2, 1], rng)  # once
    >>> daily = [histogram.shuffle(histogram.randomize(filters, rng), rng) for _ in range(30)]
    >>> histogram.ledger(30) == ((histogram.lifetime_mechanism, 1),)
    True
    """

    randomizer: Annotated[RAPPOR, instance(RAPPOR, "a RAPPOR")]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.randomizer.noise > 0:
            raise ValueError(f"randomizer must have noise > 0 to memoise, got {self.randomizer!r}")

    @classmethod
    def _at(cls, parameter: float, *, k: int, one_if_zero: float, one_if_one: float, **design: Any) -> RAPPORHistogram:
        steps = RAPPOR(k=k, noise=parameter, one_if_zero=one_if_zero, one_if_one=one_if_one)
        return cls(randomizer=steps, **design)

    def _search(self, budget: Budget) -> Range:
        # The permanent step alone has eps0 = 2 log((2 - f)/f).
        safe = 2 / (1 + math.exp(min(budget.epsilon, 1000.0) / 2)) * (1 + 1e-12)
        return Range(LEAST_NOISE, min(max(safe, LEAST_NOISE), 1 - 1e-9), 0.1, False)

    @property
    def collection_mechanism(self) -> Shuffled:
        """One collection: both steps, shuffled. Not to be composed with another one."""
        return Shuffled(self.randomizer, self.honest)

    @property
    def lifetime_mechanism(self) -> Shuffled:
        """All collections from the same filters together: compose it once."""
        return Shuffled(self.randomizer.memoised, self.honest)

    def ledger(self, rounds: int = 1) -> Ledger:
        """One collection by itself; of two or more the lifetime, once, whatever their number."""
        once = positive_int("rounds", rounds) == 1
        return ((self.collection_mechanism if once else self.lifetime_mechanism, 1),)

    def memoise(self, values: ArrayLike, rng: np.random.Generator) -> BitArray:
        """The users' filters with the permanent noise, shape (n, k), for `values` of shape (n,).

        To be called once, and the filters to be kept: every further call would cost a further lifetime.
        """
        return self.randomizer.permanent(self._numbers(values, self.k), rng)

    def randomize(self, filters: ArrayLike, rng: np.random.Generator) -> BitArray:
        """One collection: a message of k bits per user, shape (n, k), from the `filters` of `memoise`."""
        shape = np.shape(filters)
        if shape != (self.n, self.k):
            raise ValueError(
                f"filters must be what `memoise` returned once, shape ({self.n}, {self.k}), got shape"
                f" {shape}; values are not taken: their noise would be drawn afresh, and not be accounted for"
            )
        return self.randomizer.instantaneous(bit_array("filters", filters, self.k), rng)


LEAST_DUMMIES, MOST_DUMMIES = 1e-6, 1e4
LEAST_FLIP = 1e-9


@dataclass(frozen=True, kw_only=True)
class BallsIntoBins(Bins, LinearHistogram, OneMechanism):
    """Histogram of n values in 0 ... k-1; every user sends its value and `dummies` uniformly random ones.

    k: number of bins, at least 2. dummies: positive; the integer part for certain, one more with probability the rest.
    `from_budget` finds the smallest. A user's own messages hide nothing: all privacy comes from the dummies together.

    >>> histogram = BallsIntoBins.from_budget(1.0, 1e-6, 10_000, k=16)
    >>> round(histogram.dummies, 3), histogram.accountant().get_epsilon(1e-6) <= 1.0
    (0.068, True)
    """

    dummies: PositiveFloat

    _parameter = "dummies"
    _random = 0.0  # gamma

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.mechanism

    def _search(self, budget: Budget) -> Range:
        guess = 2.0 * self.k * budget.rounds * -math.log(budget.delta) / budget.epsilon**2
        guess = min(max(guess / self.honest, 2.0 * LEAST_DUMMIES), 0.5 * MOST_DUMMIES)
        return Range(LEAST_DUMMIES, MOST_DUMMIES, guess, False)

    @property
    def mechanism(self) -> DummyReports:
        """One round: labels of the dummies, and of random answers."""
        return DummyReports(self.k, self.honest, self.dummies, self._random)

    def randomize(self, values: ArrayLike, rng: np.random.Generator) -> IntArray:
        """All messages, n values and the dummies, shape (messages,); `values` has shape (n,), integers in 0 ... k-1."""
        draw, own = generator(rng), self._numbers(values, self.k)
        own = np.where(draw.random(self.n) < self._random, draw.integers(self.k, size=self.n), own)
        whole = int(self.dummies)
        more = self.n * whole + int((draw.random(self.n) < self.dummies - whole).sum())
        return np.concatenate((own, draw.integers(self.k, size=more)))

    def analyze(self, messages: ArrayLike) -> HistogramEstimate:
        """Counts and standard errors from all messages, in any order."""
        labels = integer_array("messages", messages, self.k).reshape(-1)
        if not labels.size >= self.n:
            raise ValueError(f"messages must be at least {self.n} in number, got {labels.size}")
        return self._estimate(np.bincount(labels, minlength=self.k), (labels.size - self.n) / self.k)

    @property
    def _channel(self) -> BitChannel:
        return answers(self.k, self._random)

    @property
    def _added(self) -> float:  # type: ignore[override]
        return self.n * self.dummies / self.k * (1.0 - 1.0 / self.k)


@dataclass(frozen=True, kw_only=True)
class MixDUMP(BallsIntoBins):
    """`BallsIntoBins` whose users send their own value by k-ary randomised response.

    gamma: probability of a random answer, in (0, 1); k and dummies as there. `from_budget` takes k and gamma.
    """

    gamma: OpenUnit

    @property
    def _random(self) -> float:  # type: ignore[override]
        return self.gamma


@dataclass(frozen=True, kw_only=True)
class FakeUsers(Bins, LinearHistogram, OneMechanism):
    """Histogram of n values in 0 ... k-1 from flipped one-hot bits, and from `fakes` flipped zero vectors a user.

    k: number of bins, at least 2. fakes: an integer, at least 1. flip: f, in (0, 1/2); `from_budget` takes k and fakes
    and finds the smallest. The pair is an upper bound.
    """

    fakes: PositiveInt
    flip: Annotated[float, between(0.0, 0.5, "()")]

    @classmethod
    def _at(cls, parameter: float, **design: Any) -> FakeUsers:
        return cls(flip=min(parameter, 0.4999), **design)

    def _search(self, budget: Budget) -> Range:
        guess = 2.0 * budget.rounds * -math.log(budget.delta) / budget.epsilon**2
        return Range(LEAST_FLIP, 0.4999, min(guess / (self.honest * (1 + self.fakes)), 0.25), False)

    @property
    def mechanism(self) -> MixedRandomizers:
        """One round: the target among honest users and their fakes."""
        odds = (1.0 - self.flip) / self.flip
        fakes = (odds * (1.0 + 1e-15), self.honest * self.fakes)
        others = ((odds * odds * (1.0 + 1e-15), self.honest - 1), fakes) if self.honest > 1 else (fakes,)  # fmt: skip
        return MixedRandomizers(2.0 * math.log(odds) * (1.0 + 1e-15), others, 1.0 - 2.0 * self.flip)

    def randomize(self, values: ArrayLike, rng: np.random.Generator) -> IntArray:
        """1 + fakes vectors per user, shape (n, 1 + fakes, k); `values` has shape (n,), integers in 0 ... k-1."""
        bits = np.zeros((self.n, 1 + self.fakes, self.k), np.int64)
        bits[np.arange(self.n), 0, self._numbers(values, self.k)] = 1
        return bits ^ (generator(rng).random(bits.shape) < self.flip)

    def shuffle(self, messages: ArrayLike, rng: np.random.Generator) -> NDArray[Any]:
        """All vectors in uniformly random order, shape (n (1 + fakes), k); a vector's bits stay together."""
        return generator(rng).permutation(np.asarray(messages).reshape(-1, self.k), axis=0)

    def analyze(self, messages: ArrayLike) -> HistogramEstimate:
        """Counts and standard errors from all vectors, in any order."""
        vectors = bit_array("messages", messages, self.k).reshape(-1, self.k)
        number = self.n * (1 + self.fakes)
        if vectors.shape[0] != number:
            raise ValueError(f"messages must be {number} vectors, got {vectors.shape[0]}")
        return self._estimate(vectors.sum(axis=0, dtype=np.int64), self.n * self.fakes * self.flip)

    @property
    def _channel(self) -> BitChannel:
        return BitChannel(1.0 - self.flip, self.flip, self.flip, 1.0 - self.flip)

    @property
    def _added(self) -> float:  # type: ignore[override]
        return self.n * self.fakes * self.flip * (1.0 - self.flip)
