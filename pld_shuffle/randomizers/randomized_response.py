"""Randomized response, of values and of sets: the truth with probability e^eps0 / (e^eps0 + k - 1), else another value.

Equivalently: with probability gamma = k / (e^eps0 + k - 1) a uniform answer over all k values, otherwise the truth.
That gamma is also the blanket probability, and the blanket is uniform (Balle et al. 2019, Lemma 6.1). For two values
the total variation tanh(eps0 / 2) is the largest that pure eps0-LDP allows (Kairouz, Oh, Viswanath 2015).

Subset selection reports a set of s values instead, which contains the true one more often than not: every set with it
has weight e^eps0, every other set of size s weight 1. C(k-2, s-1) sets contain one value but not another, and every set
misses some value (Ye and Barg 2018; Wang et al. 2016).

All formulas are written in e^{-eps0}, so that they keep their relative accuracy for large eps0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from ..numerics.tuning import DRAWN_TOGETHER
from ..numerics.validation import integer_in, open_unit
from .base import FloatArray, IntArray, settle
from .joint import ValuesRandomizer
from .one_hot import BitArray


@dataclass(frozen=True, kw_only=True)
class KRandomizedResponse(ValuesRandomizer):
    """k-ary randomized response over the values 0 ... k-1.

    k: number of values, at least 2. eps0: local epsilon, in (0, 700]. Raises TypeError or ValueError for anything else.
    """

    @classmethod
    def from_gamma(cls, *, k: int, gamma: float) -> KRandomizedResponse:
        """The randomizer that answers uniformly with probability `gamma`, in (0, 1).

        eps0 = log(1 + k (1 - gamma) / gamma).
        """
        count = integer_in("k", k, 2)
        share = open_unit("gamma", gamma)
        return cls(k=count, eps0=math.log1p(count * (1 - share) / share))

    @property
    def k_ary(self) -> int:  # type: ignore[override]
        """k."""
        return self.k

    @property
    def truth(self) -> float:
        """Probability of the true value, e^eps0 / (e^eps0 + k - 1)."""
        return 1 / (1 + (self.k - 1) * math.exp(-self.eps0))

    @property
    def lie(self) -> float:
        """Probability of each single other value, 1 / (e^eps0 + k - 1)."""
        return math.exp(-self.eps0) * self.truth

    @property
    def tv(self) -> float:
        """(e^eps0 - 1) / (e^eps0 + k - 1), the same for all pairs."""
        return -math.expm1(-self.eps0) * self.truth

    @property
    def gamma(self) -> float:
        """k / (e^eps0 + k - 1)."""
        return self.k * self.lie

    def _masses(self, values: IntArray, blanket: bool) -> FloatArray:
        """Groups: each of the inputs itself, and all other reports."""
        masses = np.full((values.size + 1, values.size + 1), self.lie)
        np.fill_diagonal(masses[:-1, :-1], self.truth)
        masses[:, -1] *= self.k - values.size
        return masses

    def _drawn(self, values: IntArray, rng: np.random.Generator) -> IntArray:
        honest = rng.random(values.shape) >= self.gamma
        return np.where(honest, values, rng.integers(0, self.k, values.shape))


@dataclass(frozen=True)
class BinaryRandomizedResponse(KRandomizedResponse):
    """Randomized response on the bits 0 and 1: `KRandomizedResponse` with k = 2.

    eps0: local epsilon, in (0, 700]. Raises TypeError or ValueError for anything else.
    """

    eps0: float
    k: int = field(default=2, init=False, repr=False)


@dataclass(frozen=True, kw_only=True)
class SubsetSelection(ValuesRandomizer):
    """Subset selection over the values 0 ... k-1; a report is a 0/1 vector with s ones.

    k: number of values, at least 2. eps0: local epsilon, in (0, 700]. size: s, from 1 (k-ary
    randomized response) to k-1. Raises TypeError or ValueError for anything else.
    """

    size: int

    def __post_init__(self) -> None:
        super().__post_init__()
        settle(self, size=integer_in("size", self.size, 1, self.k - 1))

    @property
    def truth(self) -> float:
        """Probability that the reported set contains the true value."""
        return self.size / (self.size + (self.k - self.size) * math.exp(-self.eps0))

    @property
    def tv(self) -> float:
        """(e^eps0 - 1) C(k-2, s-1) / (e^eps0 C(k-1, s-1) + C(k-1, s)), the same for all pairs."""
        return -math.expm1(-self.eps0) * self.truth * (self.k - self.size) / (self.k - 1)

    def _masses(self, values: IntArray, blanket: bool) -> FloatArray:
        """Groups: which of the m values the set has; 2^m of them."""
        k, s, m = self.k, self.size, values.size
        heavy = self.truth * k / s
        light = heavy * math.exp(-self.eps0)
        inside = np.indices((2,) * m).reshape(m, -1)
        # The share of sets with t given values in and m - t given values out, C(k-m, s-t) / C(k, s).
        shares = [math.perm(s, t) * math.perm(k - s, m - t) / math.perm(k, m) for t in range(m + 1)]
        share = np.array(shares)[inside.sum(axis=0)]
        return np.vstack([share * np.where(inside == 1, heavy, light), share * light])

    def _drawn(self, values: IntArray, rng: np.random.Generator) -> BitArray:
        """Reports of shape values.shape + (k,), each with s ones."""
        flat = values.reshape(-1, 1)
        masks = np.zeros((flat.size, self.k), dtype=np.uint8)
        step = max(1, DRAWN_TOGETHER // self.k)
        for start in range(0, flat.size, step):
            part = flat[start : start + step]
            # The s smallest random keys form a uniform set; the true value's key is moved to
            # either end, so that it is surely inside or surely outside.
            keys = rng.random((part.size, self.k))
            inside = rng.random(part.shape) < self.truth
            np.put_along_axis(keys, part, np.where(inside, -1.0, 2.0), axis=1)
            chosen = np.argpartition(keys, self.size - 1, axis=1)[:, : self.size]
            np.put_along_axis(masks[start : start + step], chosen, 1, axis=1)
        return masks.reshape(*values.shape, self.k)
