"""Histograms with dummies: several messages a user, of which one has the value.

* `BallsIntoBins` (Luo, Wang, Yi 2022): the value itself, and uniformly random values next to it.
* `MixDUMP` (Li et al. 2023): the same, the value sent by k-ary randomised response.
* `FakeUsers` (Cheu and Zhilyaev 2022): one-hot bits, each flipped with probability f, and as many vectors of flipped
  zeros as wanted. The target's report is at most (1-f)/f times as likely as a fake one, and at most the square of that
  times as another user's: the (p, beta, q) reduction with a q for each, beta = 1 - 2 f.

Privacy counts the dummies of `honest` users only; errors are of a run in which everybody sends theirs (derived in
docs/protocols.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..fields import Range
from ..mechanisms import DummyReports, MixedRandomizers
from ..numerics.validation import between, open_unit, positive_float, positive_int
from ..randomizers.base import IntArray, bit_array, generator, integer_array
from ..randomizers.one_hot import BitChannel
from .histograms import Bins, HistogramEstimate, LinearHistogram, answers
from .protocol import Budget, OneMechanism

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

    dummies: float

    _parameter = "dummies"
    CHECKS: ClassVar = {"dummies": positive_float}

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.mechanism

    @property
    def _random(self) -> float:
        """gamma."""
        return 0.0

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

    gamma: float

    CHECKS: ClassVar = {"gamma": open_unit}

    @property
    def _random(self) -> float:
        return self.gamma


@dataclass(frozen=True, kw_only=True)
class FakeUsers(Bins, LinearHistogram, OneMechanism):
    """Histogram of n values in 0 ... k-1 from flipped one-hot bits, and from `fakes` flipped zero vectors a user.

    k: number of bins, at least 2. fakes: an integer, at least 1. flip: f, in (0, 1/2); `from_budget` takes k and fakes
    and finds the smallest. The pair is an upper bound.
    """

    fakes: int
    flip: float

    CHECKS: ClassVar = {"fakes": positive_int, "flip": between(0.0, 0.5, "()")}

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
