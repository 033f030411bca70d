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
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..numerics.validation import integer_in
from .base import FloatArray, IntArray, PureLDP, read_only, require_small_law
from .border import generator, integer_array, local_epsilon
from .joint import FromJointLaw, Types, merged, rows, several, with_shared_blanket

_LARGEST = 2**31 - 1  # a x + b must fit an int64
_COUNTED_PRIME = 2**24  # largest P for which three and more values are counted
_SCANNED = 2**23  # most steps to find the extremes over all third values
_CHUNK = 2**16  # hash functions counted at a time


@dataclass(frozen=True, kw_only=True)
class LocalHashing(PureLDP, FromJointLaw):
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
        return self._pair_collisions / (self.prime * (self.prime - 1))

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

    def joint_law(self, inputs: Sequence[int], *, blanket: bool = False) -> FloatArray:
        """Groups: which of the m distinct inputs have the reported bucket; at most 2^m.

        Exact for any number of inputs. Three and more distinct inputs are counted, in O(m^2 P)
        time; ValueError if then P > 2^24.
        """
        values, index = several(inputs, self.k)
        if self.k == 2:  # the blanket tells whether the two collide
            values, index = np.arange(2), values[index]
        return rows(self._laws(self._bucket_counts(values), values.size), index, blanket=blanket)

    def kinds(self, given: Sequence[int] = ()) -> Sequence[int]:
        """Pairs are all alike; next to two different values every input is a kind of its own."""
        return super().kinds(given) if len(set(given)) < 2 else range(self.k)

    def types(self) -> Iterator[Types]:
        """The single kind of pair, with V among its two laws and the blanket.

        Pairs of values are all alike, triples are not: the hash functions are affine. For a third
        value w only the probability t that both target values and w collide depends on which, and
        the law of a report is linear in t. So the two extreme t bound all third values (a law in
        between is their mixture, which tells no more). The extremes are those over all residues w if they
        are quickly found, otherwise those that c allows.
        """
        total = self.prime * (self.prime - 1)
        same = self._pair_collisions
        third = []
        if self.k > 2:
            for all_same in sorted(set(self._triple_collisions)):
                pair, alone = same - all_same, total - 2 * same + all_same
                third.append({1: alone, 2: alone, 4: alone, 3: pair, 5: pair, 6: pair, 7: all_same})
        two = self._laws({1: total - same, 2: total - same, 3: same}, 2)
        three = [self._laws(counts, 3) for counts in third]
        for shared, name in enumerate(("first", "second")):
            laws = [two[[0, 1, shared, other]] for other in (0, 1)]
            laws += [law[[0, 1, shared, 2]] for law in three]
            yield Types(0, name, tuple(map(merged, laws)))
        laws = [two[[0, 1, other, 2]] for other in (0, 1)] + three
        yield Types(0, "blanket", tuple(with_shared_blanket(merged(law)) for law in laws))

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

    @cached_property
    def _pair_collisions(self) -> int:
        """Number of hash functions under which two different values collide."""
        whole, extra = divmod(self.prime, self.buckets)
        return extra * (whole + 1) * whole + (self.buckets - extra) * whole * (whole - 1)

    @cached_property
    def _triple_collisions(self) -> tuple[int, int]:
        """Bounds (least, largest) on the number of functions under which three values collide.

        Up to affine maps the values are 0, 1, r. Residues y of one bucket are y = j + l z with
        0 <= z < U_j. Three of them collide if their z differ by m and m' = r m modulo P, which
        leaves U_j - range(0, m, m') places.
        """
        pairs, prime = self._pair_collisions, self.prime
        whole, extra = divmod(prime, self.buckets)
        if not prime * (whole + 1) <= _SCANNED:
            # Two buckets or more for three values: no collision at all has probability 1 - 3c + 2t.
            none = prime * (prime - 1) - 3 * pairs
            return max(0, -(none // 2)), pairs
        counts = []
        step = np.arange(1, whole + 1)
        for ratio in range(2, prime):
            other = step * ratio % prime
            total = 0
            for reach in (np.maximum(step, other), step + prime - other):
                total += extra * int(np.maximum(whole + 1 - reach, 0).sum())
                total += (self.buckets - extra) * int(np.maximum(whole - reach, 0).sum())
            counts.append(2 * total)
        return min(counts), max(counts)

    def _bucket_counts(self, values: IntArray) -> Mapping[int, int]:
        """For each set of `values` (as a word of bits) the functions for which it is all of a bucket."""
        prime, m = self.prime, values.size
        total, same = prime * (prime - 1), self._pair_collisions
        if m == 1:
            return {1: total}
        if m == 2:
            return {1: total - same, 2: total - same, 3: same}
        if not prime <= _COUNTED_PRIME:
            raise ValueError(
                f"joint_law of more than two values needs k and buckets up to {_COUNTED_PRIME}, "
                f"got k={self.k!r}, buckets={self.buckets!r}"
            )
        counts: Counter[int] = Counter()
        for start in range(1, prime, _CHUNK):
            a = np.arange(start, min(start + _CHUNK, prime))
            shift = values[:, np.newaxis] * a % prime
            # As b grows the largest shifts pass P first; between two such places nothing changes.
            order = np.argsort(-shift, axis=0)
            wrapped = np.zeros_like(shift)
            low = np.zeros_like(a)
            for step in range(m + 1):
                high = np.full_like(a, prime)
                if step < m:
                    high -= shift[order[step], np.arange(a.size)]
                bucket = (shift - wrapped) % self.buckets
                for i in range(m):
                    alike = bucket == bucket[i]
                    least = ~np.any(alike[:i], axis=0)
                    words = np.sum(alike << np.arange(m)[:, np.newaxis], axis=0)
                    found = np.bincount(words[least], (high - low)[least], 2**m)
                    counts.update({word: int(found[word]) for word in range(2**m)})
                if step < m:
                    wrapped[order[step], np.arange(a.size)] = prime
                    low = high
        return counts

    def _laws(self, counts: Mapping[int, int], m: int) -> FloatArray:
        """Rows of m values and the blanket, from `_bucket_counts`."""
        functions = self.prime * (self.prime - 1)
        words = [word for word in range(1, 2**m) if counts.get(word, 0)]
        inside = np.array([[word >> i & 1 for word in words] for i in range(m)])
        share = np.array([counts[word] / functions for word in words])
        right = np.where(inside == 1, self.truth, self.lie)
        blanket = np.where((inside.sum(axis=0) == 2) & (self.k == 2), self.truth, self.lie)
        masses = share * np.vstack([right, blanket])
        other = (self.buckets * functions - sum(counts.values())) / functions * self.lie
        return np.hstack([masses, np.full((m + 1, 1), other)])

    def _bucket(self, a: IntArray, b: IntArray, x: IntArray) -> IntArray:
        return np.asarray((a * x + b) % self.prime % self.buckets)

    def _checked(self, reports: ArrayLike) -> IntArray:
        array: NDArray[np.int64] = integer_array("reports", reports, max(self.prime, 2))
        if array.ndim == 0 or array.shape[-1] != 3:
            raise ValueError(f"reports must have shape (..., 3), got {array.shape}")
        if not bool(np.all((array[..., 0] >= 1) & (array[..., 2] < self.buckets))):
            raise ValueError("reports must hold a >= 1 and a bucket below `buckets`")
        return array
