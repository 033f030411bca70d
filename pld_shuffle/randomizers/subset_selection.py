"""Subset selection: report a set of s values, which contains the true one more often than not.

Every set that contains the true value has weight e^eps0, every other set of size s weight 1: the sum of weights is
e^eps0 C(k-1, s-1) + C(k-1, s). C(k-2, s-1) sets contain one value but not another, and every set misses some value.

Source: Ye and Barg, Optimal schemes for discrete distribution estimation under locally differential privacy, 2018; Wang
et al., Mutual information optimally local private discrete distribution estimation, 2016.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..numerics.tuning import DRAWN_TOGETHER
from ..numerics.validation import integer_in
from .base import FloatArray, IntArray, settle
from .joint import ValuesRandomizer
from .one_hot import BitArray


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
