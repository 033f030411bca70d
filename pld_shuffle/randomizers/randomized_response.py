"""Randomizers of one value out of k: randomized response, of values and of sets, local hashing, Hadamard response.

*Randomized response*: a uniform answer over all k values with probability gamma = k / (e^eps0 + k - 1), otherwise the
truth. That gamma is also the blanket probability, and the blanket is uniform (Balle et al. 2019, Lemma 6.1).

*Subset selection* (Ye and Barg 2018; Wang et al. 2016): a set of s values; every set with the true one has weight
e^eps0, every other one weight 1.

*Local hashing* (Wang, Blocki, Li, Jha, USENIX Security 2017): a random hash function, and the randomized response of
the hashed value. The hash family is (polynomials of degree 3 in x mod P) mod l, with P the smallest prime that is at
least max(k, l) (Carter and Wegman 1979). Two values collide with a probability c of at least 1/l.

*Hadamard response* (Acharya, Sun, Zhang, AISTATS 2019, with one block): a column of the K x K Sylvester matrix, K the
smallest power of 2 with K >= k + 1, on which the value's row x + 1 is +1. C_x is the set of these s = K/2 columns, of
weight e^eps0; all others have weight 1, and the norm is Z = s (e^eps0 + 1). Laws of both: docs/theory.md, section 8.

All formulas are written in e^{-eps0}, so that they keep their relative accuracy for large eps0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Annotated

import numpy as np

from ..numerics.sides import Array
from ..numerics.tuning import NUMBERS
from ..numerics.validation import integer_in, open_unit
from .base import IntArray, LocalEpsilon, settle
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

    def _masses(self, values: IntArray, blanket: bool) -> Array:
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

    eps0: LocalEpsilon
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

    def _masses(self, values: IntArray, blanket: bool) -> Array:
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
        step = max(1, NUMBERS // self.k)
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


_LARGEST = 2**31 - 1  # a product of residues must fit an int64
_INDEPENDENT = 4


@dataclass(frozen=True, kw_only=True)
class LocalHashing(ValuesRandomizer):
    """Local hashing of the values 0 ... k-1 into `buckets`; a report is four coefficients and a bucket.

    k: number of values, 2 ... 2^31 - 1. eps0: local epsilon, in (0, 700]. buckets: l, 2 ... 2^31 - 1. gamma is a lower
    bound for k > 4. Raises TypeError or ValueError for anything else.
    """

    k: Annotated[int, partial(integer_in, lowest=2, highest=_LARGEST)]
    buckets: Annotated[int, partial(integer_in, lowest=2, highest=_LARGEST)]

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

    def _masses(self, values: IntArray, blanket: bool) -> Array:
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
        masses: Array = share * np.where(np.vstack([inside, every]), truth, lie)
        return masses[np.append(values, m)] if few else masses

    def _drawn(self, values: IntArray, rng: np.random.Generator) -> IntArray:
        """Reports of shape values.shape + (5,), the coefficient of x^3 first."""
        function = rng.integers(0, self.prime, (*values.shape, _INDEPENDENT))
        hashed = np.zeros_like(values)
        for coefficient in np.moveaxis(function, -1, 0):
            hashed = (hashed * values + coefficient) % self.prime
        bucket = self.response._drawn(hashed % self.buckets, rng)
        return np.concatenate([function, bucket[..., np.newaxis]], axis=-1)


@dataclass(frozen=True, kw_only=True)
class HadamardResponse(ValuesRandomizer):
    """Hadamard response for the values 0 ... k-1; a report is an integer in 0 ... K-1.

    k: number of values, 2 ... 2^48. eps0: local epsilon, in (0, 700]. Raises TypeError or ValueError for anything else.
    """

    k: Annotated[int, partial(integer_in, lowest=2, highest=2**48)]

    @property
    def outputs(self) -> int:
        """Number of reports, K."""
        return 1 << self._bits

    @property
    def truth(self) -> float:
        """Probability of a report in C_x, s e^eps0 / Z."""
        return 1 / (1 + math.exp(-self.eps0))

    @property
    def tv(self) -> float:
        """(e^eps0 - 1) s / (2 Z) = tanh(eps0/2) / 2, the same for all pairs."""
        return math.tanh(self.eps0 / 2) / 2

    @property
    def _bits(self) -> int:
        return self.k.bit_length()

    def _masses(self, values: IntArray, blanket: bool) -> Array:
        """Groups: which of the sets C_x have the report, and column 0 where the blanket needs it.

        The parities of the columns with some rows are uniform over a linear space.
        """
        space = {0}  # words of parities: bit i belongs to input i
        for bit in range(self._bits):
            odd = (values + 1) >> bit & 1
            word = sum(1 << i for i in np.flatnonzero(odd).tolist())
            space |= {other ^ word for other in space}
        words = np.array(sorted(space))
        inside = words >> np.arange(values.size)[:, np.newaxis] & 1 == 0
        heavy = np.vstack([inside, np.zeros(words.size, dtype=bool)])
        number = np.full(words.size, float(self.outputs // words.size))
        if blanket:
            number[0] -= 1
            heavy, number = np.insert(heavy, 0, True, axis=1), np.insert(number, 0, 1)
        mass = 2 * self.truth / self.outputs
        return np.asarray(number * np.where(heavy, mass, mass * math.exp(-self.eps0)))

    def kinds(self, given: Sequence[int] = ()) -> Sequence[int]:
        """The given inputs, every sum of their rows modulo 2, and one input whose row is no such sum.

        They range over the completed code, all rows but the first: some may be k or larger, and bounds over all kinds
        hold for more values than there are.
        """
        sums = {0}
        for x in given:
            sums |= {other ^ (x + 1) for other in sums}
        fresh = [r for r in (1 << j for j in range(self._bits)) if r not in sums][:1]
        return sorted(r - 1 for r in (*sums, *fresh) if r > 0)

    @property
    def _codewords(self) -> int:
        """Number of inputs of the completed code, at least k."""
        return self.outputs - 1

    def _drawn(self, values: IntArray, rng: np.random.Generator) -> IntArray:
        honest = rng.random(values.shape) < self.truth
        row = values + 1
        # A uniform column, with the lowest bit of the row flipped where its parity is wrong.
        column = rng.integers(0, self.outputs, values.shape)
        parity = row & column
        for shift in (32, 16, 8, 4, 2, 1):
            parity = parity ^ (parity >> shift)
        wrong = (parity & 1 == 0) != honest
        return np.where(wrong, column ^ (row & -row), column)
