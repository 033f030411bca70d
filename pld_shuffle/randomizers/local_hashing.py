"""Local hashing: report a random hash function and the randomized response of the hashed value.

The hash family is ((a x + b) mod P) mod l, a in 1 ... P-1, b in 0 ... P-1, with P the smallest prime that is at least
max(k, l) (Carter and Wegman 1979). For two values x != x' the pair of residues mod P is uniform over all ordered pairs
of *different* residues. With P = u l + v, 0 <= v < l, the collision probability is therefore exactly
c = (v (u+1) u + (l-v) u (u-1)) / (P (P-1)) <= 1/l, the same for every pair.

The function is public, so the laws are averages over it: tv has a factor 1 - c (the table of Wang et al. 2024 has it
without, an upper bound), and the blanket of one function is that of randomized response, unless all k values collide,
when its mass is 1. For k >= 3 that never happens: no class mod l holds k different residues, since P = k or P <= 2k - 2
where l <= k (Bertrand), and P < 2l where l > k. For k = 2 it happens with probability c.

Source: Wang, Blocki, Li, Jha, Locally differentially private protocols for frequency estimation, USENIX Security 2017.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar

import numpy as np

from ..numerics.validation import integer_in
from .base import FloatArray, IntArray
from .joint import Types, ValuesRandomizer, merged, with_shared_blanket
from .randomized_response import KRandomizedResponse

_LARGEST = 2**31 - 1  # a x + b must fit an int64
_SCANNED = 2**23  # most steps to count the collisions of three values, or to find their extremes


@dataclass(frozen=True, kw_only=True)
class LocalHashing(ValuesRandomizer):
    """Local hashing of the values 0 ... k-1 into `buckets`; a report is (a, b, bucket).

    k: number of values, 2 ... 2^31 - 1. eps0: local epsilon, in (0, 700]. buckets: l, 2 ... 2^31 - 1.
    Raises TypeError or ValueError for anything else.
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
        return self._pair_collisions / (self.prime * (self.prime - 1))

    @property
    def response(self) -> KRandomizedResponse:
        """Randomized response of a bucket."""
        return KRandomizedResponse(k=self.buckets, eps0=self.eps0)

    @property
    def tv(self) -> float:
        """(1 - c) (e^eps0 - 1) / (e^eps0 + l - 1), the same for all pairs."""
        return (1 - self.collision) * self.response.tv

    def _masses(self, values: IntArray, blanket: bool) -> FloatArray:
        """Groups: which of the m <= 3 values have the reported bucket; at most 2^m. O(P / l) time for three."""
        if self.k == 2:  # the blanket tells whether the two collide
            return np.asarray(self._laws(2)[np.append(values, 2)])
        if values.size <= 2:
            return self._laws(values.size)
        if not (values.size == 3 and self.prime // self.buckets < _SCANNED):
            raise ValueError(
                f"joint_law of more than two values needs three, and k/buckets up to {_SCANNED},"
                f" got {values.size} values, k={self.k!r}, buckets={self.buckets!r}"
            )
        zero, one, other = map(int, values)
        ratio = (other - zero) * pow(one - zero, -1, self.prime) % self.prime
        return self._laws(3, self._all_same(ratio))

    def kinds(self, given: Sequence[int] = ()) -> Sequence[int]:
        """Pairs are all alike; next to two different values every input is a kind of its own."""
        return super().kinds(given) if len(set(given)) < 2 else range(self.k)

    def types(self, users: int = 1) -> Iterator[Types]:
        """The single kind of pair, with V among its two laws and the blanket.

        Pairs of values are all alike, triples are not: the hash functions are affine. For a third value w only the
        probability t that both target values and w collide depends on which, and the law of a report is linear in t. So
        the two extreme t bound all third values (a law in between is their mixture, which tells no more). The extremes
        are those over all residues w if they are quickly found, otherwise those that c allows.
        """
        two = self._laws(2)
        extremes = sorted(set(self._triple_collisions)) if self.k > 2 else []
        three = [self._laws(3, all_same) for all_same in extremes]
        for shared, name in enumerate(("first", "second")):
            laws = [two[[0, 1, shared, other]] for other in (0, 1)]
            laws += [law[[0, 1, shared, 2]] for law in three]
            yield Types(0, name, tuple(map(merged, laws)))
        laws = [two[[0, 1, other, 2]] for other in (0, 1)] + three
        yield Types(0, "blanket", tuple(with_shared_blanket(merged(law)) for law in laws))

    def _drawn(self, values: IntArray, rng: np.random.Generator) -> IntArray:
        """Reports (a, b, bucket) of shape values.shape + (3,)."""
        a = rng.integers(1, self.prime, values.shape)
        b = rng.integers(0, self.prime, values.shape)
        bucket = self.response._drawn((a * values + b) % self.prime % self.buckets, rng)
        return np.stack([a, b, bucket], axis=-1)

    @cached_property
    def _pair_collisions(self) -> int:
        """Number of hash functions under which two different values collide."""
        whole, extra = divmod(self.prime, self.buckets)
        return extra * (whole + 1) * whole + (self.buckets - extra) * whole * (whole - 1)

    def _all_same(self, ratio: int) -> int:
        """Number of hash functions under which the values 0, 1 and `ratio` collide.

        Residues y of one bucket are y = j + l z with 0 <= z < U_j. Three of them collide if their z differ by m and
        m' = r m modulo P, which leaves U_j - range(0, m, m') places.
        """
        whole, extra = divmod(self.prime, self.buckets)
        step = np.arange(1, whole + 1)
        other = step * ratio % self.prime
        total = 0
        for reach in (np.maximum(step, other), step + self.prime - other):
            total += extra * int(np.maximum(whole + 1 - reach, 0).sum())
            total += (self.buckets - extra) * int(np.maximum(whole - reach, 0).sum())
        return 2 * total

    @cached_property
    def _triple_collisions(self) -> tuple[int, int]:
        """Bounds (least, largest) on the number of functions under which three values collide.

        Up to affine maps the values are 0, 1, r: the extremes over all r, if they are quickly found.
        """
        pairs, prime = self._pair_collisions, self.prime
        if prime * (prime // self.buckets + 1) <= _SCANNED:
            counts = [self._all_same(ratio) for ratio in range(2, prime)]
            return min(counts), max(counts)
        # Two buckets or more for three values: no collision at all has probability 1 - 3c + 2t.
        none = prime * (prime - 1) - 3 * pairs
        return max(0, -(none // 2)), pairs

    def _laws(self, m: int, all_same: int = 0) -> FloatArray:
        """Rows of m <= 3 values and the blanket; `all_same` functions have three values in one bucket."""
        total, same = self.prime * (self.prime - 1), self._pair_collisions
        # Functions for which one value alone, two, or three are all that a bucket has.
        alone = {1: total, 2: total - same, 3: total - 2 * same + all_same}[m]
        functions = np.array([0, alone, same - all_same, all_same], dtype=object)
        inside = np.array([[word >> i & 1 for word in range(1, 2**m)] for i in range(m)])
        ones = inside.sum(axis=0)
        truth, lie = self.response.truth, self.response.lie
        right = np.where(inside == 1, truth, lie)
        blanket = np.where((ones == 2) & (self.k == 2), truth, lie)
        share = (functions[ones] / total).astype(np.float64)
        masses = share * np.vstack([right, blanket])
        rest = (self.buckets * total - sum(functions[ones])) / total * lie
        return np.hstack([masses, np.full((m + 1, 1), rest)])
