"""Local hashing: report a random hash function and the randomized response of the hashed value.

The hash family is ((a x + b) mod P) mod l, a in 1 ... P-1, b in 0 ... P-1, with P the smallest
prime that is at least max(k, l) (Carter and Wegman 1979). For two values x != x' the pair of
residues (a x + b, a x' + b) mod P is uniform over all ordered pairs of *different* residues,
whatever the values. With P = u l + v, 0 <= v < l, the collision probability is therefore exactly

    c = (v (u+1) u + (l-v) u (u-1)) / (P (P-1)) <= 1/l,

the same for every pair. The function is public, so the laws are averages over it:

    tv = (1 - c) (e^eps0 - 1) / (e^eps0 + l - 1)

(the table of Wang et al. 2024 has it without the factor 1 - c, an upper bound), and the blanket of
one function is that of randomized response, l / (e^eps0 + l - 1), unless all k values collide, when
the value does not matter and its mass is 1. For k >= 3 that never happens: no class mod l holds k
different residues, since P = k or P <= 2k - 2 where l <= k (Bertrand), and P < 2l where l > k. For
k = 2 it happens with probability c.

Source: Wang, Blocki, Li, Jha, Locally differentially private protocols for frequency estimation,
USENIX Security 2017 (optimised local hashing: l = e^eps0 + 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .base import FloatArray, IntArray, PairLaw, PureLDP, read_only, require_small_law
from .border import generator, integer_array, integer_in, local_epsilon

_LARGEST = 2**31 - 1  # a x + b must fit an int64


@dataclass(frozen=True, kw_only=True)
class LocalHashing(PureLDP):
    """Local hashing of the values 0 ... k-1 into `buckets`; a report is (a, b, bucket).

    k: number of values, 2 ... 2^31 - 1. buckets: l, 2 ... 2^31 - 1. eps0: local epsilon, in
    (0, 700]. Raises TypeError or ValueError for anything else.
    """

    k: int
    buckets: int
    eps0: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", integer_in("k", self.k, 2, _LARGEST))
        object.__setattr__(self, "buckets", integer_in("buckets", self.buckets, 2, _LARGEST))
        object.__setattr__(self, "eps0", local_epsilon(self.eps0))

    @classmethod
    def optimal(cls, *, k: int, eps0: float) -> LocalHashing:
        """Optimised local hashing: e^eps0 + 1 buckets, rounded. ValueError beyond 2^31 - 1."""
        return cls(k=k, buckets=round(math.exp(local_epsilon(eps0))) + 1, eps0=eps0)

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
        whole, extra = divmod(self.prime, self.buckets)
        pairs = extra * (whole + 1) * whole + (self.buckets - extra) * whole * (whole - 1)
        return pairs / (self.prime * (self.prime - 1))

    @property
    def truth(self) -> float:
        """Probability of reporting the right bucket, e^eps0 / (e^eps0 + l - 1)."""
        return 1 / (1 + (self.buckets - 1) * math.exp(-self.eps0))

    @property
    def lie(self) -> float:
        """Probability of each single wrong bucket, 1 / (e^eps0 + l - 1)."""
        return math.exp(-self.eps0) * self.truth

    @property
    def tv(self) -> float:
        """(1 - c) (e^eps0 - 1) / (e^eps0 + l - 1), the same for all pairs."""
        return (1 - self.collision) * -math.expm1(-self.eps0) * self.truth

    @property
    def gamma(self) -> float:
        """l / (e^eps0 + l - 1) for k >= 3; c + (1 - c) times that for k = 2."""
        blanket = self.buckets * self.lie
        if self.k == 2:
            return self.collision + (1 - self.collision) * blanket
        return blanket

    @property
    def inputs(self) -> int:
        """Number of inputs, k."""
        return self.k

    @property
    def outputs(self) -> int:
        """Number of reports, P (P - 1) l."""
        return self.prime * (self.prime - 1) * self.buckets

    def hash(self, reports: ArrayLike, x: ArrayLike) -> IntArray:
        """Bucket of the values `x` under the functions of `reports`, shape (..., 3); broadcast."""
        functions = self._checked(reports)
        return self._bucket(functions[..., 0], functions[..., 1], integer_array("x", x, self.k))

    def law(self) -> FloatArray:
        """Shape (k, P (P - 1) l); the column of (a, b, bucket) is ((a - 1) P + b) l + bucket."""
        require_small_law(self.inputs, self.outputs)
        functions = self.prime * (self.prime - 1)
        a, b = np.divmod(np.arange(functions), self.prime)
        matrix = np.full((self.k, functions, self.buckets), self.lie / functions)
        right = self._bucket(a + 1, b, np.arange(self.k)[:, np.newaxis])
        np.put_along_axis(matrix, right[..., np.newaxis], self.truth / functions, axis=2)
        return read_only(matrix.reshape(self.k, self.outputs))

    def columns(self, reports: ArrayLike) -> IntArray:
        """Columns of reports of shape (..., 3); ValueError if P (P - 1) l exceeds an int64."""
        if not self.outputs < 2**63:
            raise ValueError(f"columns() needs fewer than 2^63 outputs, got {self.outputs}")
        a, b, bucket = np.moveaxis(self._checked(reports), -1, 0)
        return np.asarray(((a - 1) * self.prime + b) * self.buckets + bucket)

    def pair_laws(self) -> tuple[PairLaw, ...]:
        """The single kind of pair; groups: collision (right bucket, another), else (the first
        value's bucket, the second's, another)."""
        c, far, others = self.collision, 1 - self.collision, self.buckets - 1
        t, f = self.truth, self.lie
        return (
            PairLaw.of(
                first=(c * t, c * others * f, far * t, far * f, far * (others - 1) * f),
                second=(c * t, c * others * f, far * f, far * t, far * (others - 1) * f),
                blanket=(
                    c * (t if self.k == 2 else f),
                    c * others * f,
                    far * f,
                    far * f,
                    far * (others - 1) * f,
                ),
            ),
        )

    def sample(self, x: ArrayLike, rng: np.random.Generator) -> IntArray:
        """Reports (a, b, bucket) of shape x.shape + (3,) for integers x in 0 ... k-1."""
        values = integer_array("x", x, self.k)
        source = generator(rng)
        a = source.integers(1, self.prime, values.shape)
        b = source.integers(0, self.prime, values.shape)
        right = self._bucket(a, b, values)
        step = source.integers(1, self.buckets, values.shape)
        honest = source.random(values.shape) < self.truth
        bucket = np.where(honest, right, (right + step) % self.buckets)
        return np.stack([a, b, bucket], axis=-1)

    def _bucket(self, a: IntArray, b: IntArray, x: IntArray) -> IntArray:
        return np.asarray((a * x + b) % self.prime % self.buckets)

    def _checked(self, reports: ArrayLike) -> IntArray:
        array: NDArray[np.int64] = integer_array("reports", reports, max(self.prime, 2))
        if array.ndim == 0 or array.shape[-1] != 3:
            raise ValueError(f"reports must have shape (..., 3), got {array.shape}")
        if not bool(np.all((array[..., 0] >= 1) & (array[..., 2] < self.buckets))):
            raise ValueError("reports must hold a >= 1 and a bucket below `buckets`")
        return array
