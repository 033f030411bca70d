"""Local hashing: report a random hash function and the randomized response of the hashed value.

The hash family is (polynomials of degree 3 in x mod P) mod l, with P the smallest prime that is at least max(k, l)
(Carter and Wegman 1979): the residues mod P of any four values are independent and uniform. With P = u l + v,
0 <= v < l, a bucket has u or u + 1 residues, and two values collide with probability
c = (v (u+1)^2 + (l-v) u^2) / P^2, at least 1/l.

The function is public, so the laws are averages over it: tv has a factor 1 - c (the table of Wang et al. 2024 has it
without, an upper bound), and the blanket of one function is that of randomized response, unless all k values collide,
when its mass is 1. For k > 4 that is not counted: it has a probability of at most that of four, about l^-3.

Source: Wang, Blocki, Li, Jha, Locally differentially private protocols for frequency estimation, USENIX Security 2017.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar

import numpy as np

from ..numerics.validation import integer_in
from .base import FloatArray, IntArray
from .joint import ValuesRandomizer
from .randomized_response import KRandomizedResponse

_LARGEST = 2**31 - 1  # a product of residues must fit an int64
_INDEPENDENT = 4


@dataclass(frozen=True, kw_only=True)
class LocalHashing(ValuesRandomizer):
    """Local hashing of the values 0 ... k-1 into `buckets`; a report is four coefficients and a bucket.

    k: number of values, 2 ... 2^31 - 1. eps0: local epsilon, in (0, 700]. buckets: l, 2 ... 2^31 - 1. gamma is a lower
    bound for k > 4. Raises TypeError or ValueError for anything else.
    """

    buckets: int

    _most_values = _LARGEST

    CHECKS: ClassVar = {"buckets": partial(integer_in, lowest=2, highest=_LARGEST)}

    @cached_property
    def prime(self) -> int:
        """P, the smallest prime that is at least max(k, buckets)."""
        candidate = max(self.k, self.buckets)
        while any(candidate % divisor == 0 for divisor in range(2, math.isqrt(candidate) + 1)):
            candidate += 1
        return candidate

    @property
    def collision(self) -> float:
        """c, the exact probability that two different values hash to the same bucket."""
        return float(sum(number * size**2 for number, size in self._sizes) / self.prime**2)

    @property
    def response(self) -> KRandomizedResponse:
        """Randomized response of a bucket."""
        return KRandomizedResponse(k=self.buckets, eps0=self.eps0)

    @property
    def tv(self) -> float:
        """(1 - c) (e^eps0 - 1) / (e^eps0 + l - 1), the same for all pairs."""
        return (1 - self.collision) * self.response.tv

    @property
    def _sizes(self) -> tuple[tuple[int, int], ...]:
        """(how many buckets, of how many residues)."""
        whole, extra = divmod(self.prime, self.buckets)
        return (self.buckets - extra, whole), (extra, whole + 1)

    def _masses(self, values: IntArray, blanket: bool) -> FloatArray:
        """Groups: which of the values have the reported bucket; of all values, if they are so few."""
        few = self.k <= _INDEPENDENT
        if values.size > _INDEPENDENT:
            raise ValueError(f"inputs must be at most {_INDEPENDENT} different ones, got {values.size}")
        m = self.k if few else values.size
        inside = np.indices((2,) * m).reshape(m, -1)
        ones, prime = inside.sum(axis=0), self.prime
        share = sum(
            number * (size / prime) ** ones * ((prime - size) / prime) ** (m - ones) for number, size in self._sizes
        )
        truth, lie = self.response.truth, self.response.lie
        every = few & (ones == m)
        masses: FloatArray = share * np.where(np.vstack([inside, every]), truth, lie)
        return masses[np.append(values, m)] if few else masses

    def _drawn(self, values: IntArray, rng: np.random.Generator) -> IntArray:
        """Reports of shape values.shape + (5,), the coefficient of x^3 first."""
        function = rng.integers(0, self.prime, (*values.shape, _INDEPENDENT))
        hashed = np.zeros_like(values)
        for coefficient in np.moveaxis(function, -1, 0):
            hashed = (hashed * values + coefficient) % self.prime
        bucket = self.response._drawn(hashed % self.buckets, rng)
        return np.concatenate([function, bucket[..., np.newaxis]], axis=-1)
