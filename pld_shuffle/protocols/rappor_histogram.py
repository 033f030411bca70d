"""Histogram by basic RAPPOR with memoised noise: many collections of values that do not change.

`memoise` draws the permanent noise, once; `randomize` makes one report from every kept filter, as often as
wanted. Estimate and error of one collection are those of `bit_histogram`; estimates of several collections
share the permanent noise, so they are not independent, and their mean keeps its error.

Privacy. One collection is a shuffled round of the whole randomizer. Several share the permanent noise and
must not be composed as if independent. Given all memoised filters the collections are independent, and every
one depends on the multiset of filters only; so all of them together are a post-processing of *one* shuffled
collection of the memoised filters themselves, which `lifetime_mechanism` accounts for, once, whatever the
number of collections. That needs the same users in every collection (with some of them missing, a collection
would depend on more than the multiset), so cohorts are not covered, and neither are values that change: then
filters are to be memoised anew, and the lifetimes composed.

Source: Erlingsson, Pihur, Korolova 2014 (RAPPOR).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..mechanisms.shuffled import Shuffled
from ..numerics.validation import positive_int
from ..randomizers import RAPPOR
from ..randomizers.border import bit_array
from ..randomizers.one_hot import BitArray
from .bit_histogram import BitCounts
from .budget import Budget, Ledger, Search

LEAST_NOISE = 1e-9


@dataclass(frozen=True, kw_only=True)
class RAPPORHistogram(BitCounts):
    """Histogram of n unchanging values in 0 ... k-1 from reports on memoised one-hot filters.

    randomizer: a `RAPPOR` with noise > 0.

    The pairs are upper bounds, for one collection and for all.

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

    randomizer: RAPPOR

    def __post_init__(self) -> None:
        if not isinstance(self.randomizer, RAPPOR):
            raise TypeError(f"randomizer must be a RAPPOR, got {self.randomizer!r}")
        super().__post_init__()
        if not self.randomizer.noise > 0:
            raise ValueError(f"randomizer must have noise > 0 to memoise, got {self.randomizer!r}")

    @classmethod
    def _at(
        cls, parameter: float, *, k: int, one_if_zero: float, one_if_one: float, **design: Any
    ) -> RAPPORHistogram:
        steps = RAPPOR(k=k, noise=parameter, one_if_zero=one_if_zero, one_if_one=one_if_one)
        return cls(randomizer=steps, **design)

    def _search(self, budget: Budget) -> Search:
        # The permanent step alone has eps0 = 2 log((2 - f)/f).
        safe = 2 / (1 + math.exp(min(budget.epsilon, 1000.0) / 2)) * (1 + 1e-12)
        return Search(LEAST_NOISE, min(max(safe, LEAST_NOISE), 1 - 1e-9), guess=0.1)

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
        if positive_int("rounds", rounds) == 1:
            return ((self.collection_mechanism, 1),)
        return ((self.lifetime_mechanism, 1),)

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
