"""Subset selection: report a set of s values, which contains the true one more often than not.

Every set that contains the true value has weight e^eps0, every other set of size s weight 1. With
Z = e^eps0 C(k-1, s-1) + C(k-1, s):

    tv = (e^eps0 - 1) C(k-2, s-1) / Z,      gamma = C(k, s) / Z = k / (e^eps0 s + k - s),

since C(k-2, s-1) sets contain the one value but not the other, and every set misses some value
(s < k). Divided by C(k, s) the binomials are s(k-s)/(k(k-1)) and (e^eps0 s + k - s)/k.
Source: Ye and Barg, Optimal schemes for discrete distribution estimation under locally differential
privacy, 2018; Wang et al., Mutual information optimally local private discrete distribution
estimation, 2016.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from ..numerics.validation import integer_in
from .base import (
    FloatArray,
    IntArray,
    PureLDP,
    count_text,
    read_only,
    require_small_law,
)
from .bits import BitArray
from .border import bit_array, generator, integer_array, local_epsilon
from .joint import FromJointLaw, rows, several

_CHUNK = 2**20  # random keys held at a time


@dataclass(frozen=True, kw_only=True)
class SubsetSelection(PureLDP, FromJointLaw):
    """Subset selection over the values 0 ... k-1; a report is a 0/1 vector with s ones.

    k: number of values, at least 2. size: s, from 1 (k-ary randomized response) to k-1.
    eps0: local epsilon, in (0, 700]. Raises TypeError or ValueError for anything else.
    """

    k: int
    size: int
    eps0: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", integer_in("k", self.k, 2))
        object.__setattr__(self, "size", integer_in("size", self.size, 1, self.k - 1))
        object.__setattr__(self, "eps0", local_epsilon(self.eps0))

    @classmethod
    def optimal(cls, *, k: int, eps0: float) -> SubsetSelection:
        """The customary size k / (e^eps0 + 1), rounded, at least 1 (Ye and Barg 2018)."""
        count = integer_in("k", k, 2)
        share = math.exp(-local_epsilon(eps0))
        return cls(k=count, size=max(1, round(count * share / (1 + share))), eps0=eps0)

    @property
    def truth(self) -> float:
        """Probability that the reported set contains the true value."""
        return self.size / (self.size + (self.k - self.size) * math.exp(-self.eps0))

    @property
    def tv(self) -> float:
        """(e^eps0 - 1) C(k-2, s-1) / (e^eps0 C(k-1, s-1) + C(k-1, s)), the same for all pairs."""
        return -math.expm1(-self.eps0) * self.truth * (self.k - self.size) / (self.k - 1)

    @property
    def gamma(self) -> float:
        """k / (e^eps0 s + k - s)."""
        return self.k * math.exp(-self.eps0) * self.truth / self.size

    @property
    def inputs(self) -> int:
        """Number of inputs, k."""
        return self.k

    @property
    def outputs(self) -> int:
        """Number of reports, C(k, s)."""
        return math.comb(self.k, self.size)

    def law(self) -> FloatArray:
        """Shape (k, C(k, s)); the columns are the sets in lexicographic order."""
        require_small_law(self.inputs, self.outputs)
        weights = np.full((self.outputs, self.k), math.exp(-self.eps0))
        members = np.array(list(combinations(range(self.k), self.size)))
        np.put_along_axis(weights, members, 1.0, axis=1)
        heavy = self.truth * self.k / (self.size * self.outputs)
        return read_only(np.ascontiguousarray(weights.T) * heavy)

    def columns(self, reports: ArrayLike) -> IntArray:
        """Lexicographic rank of each reported set; ValueError if a report has not exactly s ones.

        `reports` has shape (..., k). ValueError if C(k, s) does not fit an int64.
        """
        masks = bit_array("reports", reports, self.k)
        if not self.outputs < 2**63:
            raise ValueError(f"columns() needs C(k, s) < 2^63, got {count_text(self.outputs)}")
        if not bool(np.all(masks.sum(axis=-1, dtype=np.int64) == self.size)):
            raise ValueError(f"reports must have exactly {self.size} ones each")
        members = np.nonzero(masks.reshape(-1, self.k))[1].reshape(*masks.shape[:-1], self.size)
        # Sets that come later: those that agree up to member i and have a larger one there.
        later = np.zeros(masks.shape[:-1], dtype=np.int64)
        for i in range(self.size):
            left = self.size - i
            table = [math.comb(self.k - 1 - value, left) for value in range(self.k)]
            later += np.array([min(ways, 2**63 - 1) for ways in table])[members[..., i]]
        return self.outputs - 1 - later

    def joint_law(self, inputs: Sequence[int], *, blanket: bool = False) -> FloatArray:
        """Groups: which of the m distinct inputs the set has; 2^m of them."""
        values, index = several(inputs, self.k)
        k, s, m = self.k, self.size, values.size
        heavy = self.truth * k / s
        light = heavy * math.exp(-self.eps0)
        inside = np.indices((2,) * m).reshape(m, -1)
        # The share of sets with t given values in and m - t given values out, C(k-m, s-t) / C(k, s).
        shares = [
            Fraction(math.perm(s, t) * math.perm(k - s, m - t), math.perm(k, m))
            for t in range(m + 1)
        ]
        share = np.array([float(part) for part in shares])[inside.sum(axis=0)]
        masses = [*(share * np.where(inside == 1, heavy, light)), share * light]
        return rows(masses, index, blanket=blanket)

    def sample(self, x: ArrayLike, rng: np.random.Generator) -> BitArray:
        """Reports of shape x.shape + (k,), each with s ones, for integers x in 0 ... k-1."""
        values = integer_array("x", x, self.k)
        source = generator(rng)
        flat = values.reshape(-1)
        masks = np.zeros((flat.size, self.k), dtype=np.uint8)
        rows = max(1, _CHUNK // self.k)
        for start in range(0, flat.size, rows):
            part = flat[start : start + rows, np.newaxis]
            # The s smallest random keys form a uniform set; the true value's key is moved to
            # either end, so that it is surely inside or surely outside.
            keys = source.random((part.shape[0], self.k))
            inside = source.random(part.shape) < self.truth
            np.put_along_axis(keys, part, np.where(inside, -1.0, 2.0), axis=1)
            chosen = np.argpartition(keys, self.size - 1, axis=1)[:, : self.size]
            np.put_along_axis(masks[start : start + rows], chosen, 1, axis=1)
        return masks.reshape(*values.shape, self.k)
