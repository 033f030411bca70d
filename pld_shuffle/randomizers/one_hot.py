"""A value as a one-hot vector or a Bloom filter, independent noise on every bit: unary encoding and RAPPOR.

A filter is a 0/1 vector with exactly h ones, at most half of its bits; h = 1: one-hot vectors. Each bit is reported
through the same 2 x 2 channel, a = P[1 | 1] > b = P[1 | 0]. The likelihood ratio of two filters with d ones each of
their own is odds^(X - Y), odds = a (1-b) / (b (1-a)), where X and Y count the ones reported among these, so that

    eps0 = d log(odds),      tv = sum_{z>0} P[X - Y = z] (1 - odds^{-z}),

X ~ Bin(d, a), Y ~ Bin(d, b) under the first. Both grow with d.

*The blanket.* The filter least likely to have produced a report with z zeros has ones at as many of them as it can: it
covers m = max(0, h - z) reported ones, so that inf_x mu_x is the law of independent b-coins times
(a/b)^m ((1-a)/(1-b))^(h-m).

*RAPPOR* (Erlingsson, Pihur, Korolova 2014, section 2; k, h, f, p, q there). The permanent step replaces a bit of the
filter by a fair coin with probability f = `noise`; the result is memoised and used for every report on the same value.
In the instantaneous one a memoised 1 is reported as 1 w.p. q = `one_if_one`, a 0 w.p. p = `one_if_zero`. With
c = f/(2-f), t = p/q, u = (1-q)/(1-p) one report has

    eps0 = h log((1 + c t)/(c + t)) + h log((1 + c u)/(c + u)).

The inputs covered are all filters with h ones: eps0 and tv are attained if two of the k values have filters with
nothing in common (all one-hot ones do); gamma is a lower bound unless all filters occur.

*The catch.* Rounds share the memoised noise, so they are *not* independent given the value: several reports are one
round of `memoised`, unless the permanent step is drawn afresh for each.

Optimised unary encoding: Wang, Blocki, Li, Jha, USENIX Security 2017.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, product
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..numerics.tuning import DRAWN_TOGETHER
from ..numerics.validation import between, choice, integer_in
from .base import EPS0_MAX, FloatArray, IntArray, bit_array, generator, integer_array, settle
from .joint import FiniteRandomizer, Types, ValuesRandomizer, reached, rows, with_shared_blanket

BitArray = NDArray[np.uint8]

MOST_BITS = 2**24
"""Longest vector accepted."""

HASHES_MAX = 32
"""Most ones of a Bloom filter; C(bits, hashes) is then a finite double."""

TYPES_HASHES = 4
"""Most ones of a Bloom filter for which all ways to share ones are listed (`RAPPOR.types`)."""

MASSES = 2**22
"""Most masses of a joint law of filters (32 MiB of doubles)."""


class BitChannel(NamedTuple):
    """P[reported bit | true bit], all four of them, so that none is computed by a subtraction."""

    one_if_one: float
    zero_if_one: float
    one_if_zero: float
    zero_if_zero: float


class NoisyFilter(FiniteRandomizer):
    """A randomizer that adds noise to every bit of a filter: a vector with as many ones for every value."""

    @property
    @abstractmethod
    def channel(self) -> BitChannel:
        """The noise on one bit."""

    @property
    def length(self) -> int:
        """Number of bits of a filter and of a report."""
        return self.inputs

    def _places(self, values: IntArray) -> IntArray:
        """Distinct positions of the ones of each value, shape values.shape + (ones,)."""
        return values[..., np.newaxis]

    def encode(self, x: ArrayLike) -> BitArray:
        """The filters of the values `x`, shape x.shape + (length,)."""
        values = integer_array("x", x, self.inputs)
        vectors = np.zeros((*values.shape, self.length), dtype=np.uint8)
        np.put_along_axis(vectors, self._places(values), 1, axis=-1)
        return vectors

    def _masses(self, values: IntArray, blanket: bool) -> FloatArray:
        places = np.sort(self._places(values))
        distinct, order = np.unique(places, axis=0, return_inverse=True)  # may be fewer than values
        return np.asarray(self._filter_masses(distinct, blanket)[np.append(order.reshape(-1), -1)])

    def _filter_masses(self, places: IntArray, blanket: bool) -> FloatArray:
        """Groups: numbers of ones reported in each of the filters with ones at `places`.

        With the blanket's row, which is over all filters, also the number of zeros; h or more are one group.
        """
        a, not_a, b, not_b = self.channel
        filters, ones = places.shape
        union, index = np.unique(places, return_inverse=True)
        member = np.zeros((filters + 1, union.size), dtype=bool)  # the blanket starts from b-coins
        member[np.repeat(np.arange(filters), ones), index.reshape(-1)] = True
        kinds, sizes = np.unique(member, axis=1, return_counts=True)
        rest = _zeros_law(self.length - union.size, ones, b, not_b) if blanket else np.ones(1)
        shape = (*(sizes + 1).tolist(), rest.size)
        if not (filters + 1) * math.prod(shape) <= MASSES:
            raise ValueError(
                f"inputs must be fewer: the joint law of {filters} filters of {ones} ones has more than {MASSES} masses"
            )
        *counts, others = np.indices(shape).reshape(len(shape), -1)
        masses = np.tile(rest[others], (filters + 1, 1))
        zeros = union.size + others
        for inside, size, count in zip(kinds.T, sizes.tolist(), counts, strict=True):
            own, coin = _binomial(size, a, not_a)[count], _binomial(size, b, not_b)[count]
            masses *= np.where(inside[:, np.newaxis], own, coin)
            zeros = zeros - count
        covered = np.maximum(ones - zeros, 0)
        masses[-1] *= (a / b) ** covered * (not_a / not_b) ** (ones - covered)
        # Nothing but the ones in each filter, and the zeros up to h for the blanket, matters for the ratios.
        held = kinds[:-1].astype(np.int64) @ np.array(counts)
        key = np.ravel_multi_index((*held, ones - covered * blanket), (ones + 1,) * (filters + 1))
        _, group = np.unique(key, return_inverse=True)
        return np.array([np.bincount(group, row) for row in masses])


def _binomial(count: int, success: float, failure: float) -> FloatArray:
    """Masses of Bin(count, success) at 0 ... count."""
    hits = range(count + 1)
    return np.array([math.comb(count, i) * success**i * failure ** (count - i) for i in hits])


def _zeros_law(bits: int, most: int, one: float, zero: float) -> FloatArray:
    """Masses of 0, 1, ... zeros among independent bits; the last one is of `most` or more."""
    few = range(min(most, bits + 1))
    law = [math.comb(bits, i) * zero**i * one ** (bits - i) for i in few]
    if bits >= most > 1:
        from scipy.special import betainc  # slow to load

        law.append(float(betainc(most, bits - most + 1, zero)))
    elif bits >= most:
        law.append(-math.expm1(bits * math.log1p(-zero)) if zero < 1 else 1.0)
    return np.array(law)


def add_noise(vectors: BitArray, channel: BitChannel, rng: np.random.Generator) -> BitArray:
    """Send every bit of `vectors`, any shape, through the channel independently."""
    flat = vectors.reshape(-1)
    reports = np.empty(flat.shape, dtype=np.uint8)
    for start in range(0, flat.size, DRAWN_TOGETHER):
        part = flat[start : start + DRAWN_TOGETHER]
        chance = np.where(part == 1, channel.one_if_one, channel.one_if_zero)
        reports[start : start + DRAWN_TOGETHER] = rng.random(part.size) < chance
    return reports.reshape(vectors.shape)


@dataclass(frozen=True, kw_only=True)
class UnaryEncoding(NoisyFilter, ValuesRandomizer):
    """Unary encoding of the values 0 ... k-1; a report is a vector of k bits.

    k: number of values, 2 ... 2^24. eps0: local epsilon, in (0, 700]. variant: "symmetric" (each
    bit flipped with the same probability) or "optimised" (the variant with the smaller variance).
    Raises TypeError or ValueError for anything else.
    """

    variant: Literal["symmetric", "optimised"] = "symmetric"

    _most_values = MOST_BITS

    CHECKS: ClassVar = {"variant": partial(choice, options=("symmetric", "optimised"))}

    @property
    def channel(self) -> BitChannel:
        """The noise on one bit."""
        share = self.eps0 / 2 if self.variant == "symmetric" else self.eps0
        error, right = math.exp(-share) / (1 + math.exp(-share)), 1 / (1 + math.exp(-share))
        if self.variant == "symmetric":
            return BitChannel(right, error, error, right)
        return BitChannel(0.5, 0.5, error, right)

    @property
    def tv(self) -> float:
        """tanh(eps0/4) (symmetric) or tanh(eps0/2) / 2 (optimised), the same for all pairs."""
        if self.variant == "symmetric":
            return math.tanh(self.eps0 / 4)
        return math.tanh(self.eps0 / 2) / 2

    def _drawn(self, values: IntArray, rng: np.random.Generator) -> BitArray:
        """Reports of shape values.shape + (k,), zeros and ones."""
        return add_noise(self.encode(values), self.channel, rng)


@dataclass(frozen=True, kw_only=True)
class RAPPOR(NoisyFilter):
    """RAPPOR for the values 0 ... k-1; a report is a vector of bits.

    k: number of values, at least 2. noise: f in [0, 1), the permanent step. one_if_zero < one_if_one: p and q in [0,
    1], the instantaneous step (0 and 1: report the memoised vector itself). bits: length of the filter, at most 2^24;
    None (default) means one bit per value, the one-hot vector, and hashes must then be 1. hashes: h, ones per filter,
    at most bits/2 and 32. salt: selects the public hash functions. Raises TypeError or ValueError for anything else,
    and ValueError unless one report has an eps0 in (0, 700] (inf: no noise on a bit in either step).
    """

    k: int
    noise: float
    one_if_zero: float
    one_if_one: float
    bits: int | None = None
    hashes: int = 1
    salt: int = 0

    CHECKS: ClassVar = {
        "noise": between(0.0, 1.0, "[)"), "one_if_zero": between(0.0, 1.0), "one_if_one": between(0.0, 1.0),
        "salt": partial(integer_in, lowest=0, highest=2**62),
    }  # fmt: skip

    def __post_init__(self) -> None:
        settle(self, k=integer_in("k", self.k, 2, MOST_BITS if self.bits is None else 2**62))
        if self.bits is not None:
            settle(self, bits=integer_in("bits", self.bits, 2, MOST_BITS))
        most = 1 if self.bits is None else min(self.length // 2, HASHES_MAX)
        settle(self, hashes=integer_in("hashes", self.hashes, 1, most))
        super().__post_init__()
        if not self.one_if_zero < self.one_if_one:
            raise ValueError(f"one_if_zero={self.one_if_zero!r} must be below one_if_one={self.one_if_one!r}")
        if not 0 < self.eps0 <= EPS0_MAX:
            raise ValueError(
                f"noise={self.noise!r}, one_if_zero={self.one_if_zero!r}, "
                f"one_if_one={self.one_if_one!r}, hashes={self.hashes!r} give eps0={self.eps0!r}, "
                f"which is not in (0, {EPS0_MAX:g}]"
            )

    @property
    def eps0(self) -> float:
        """Local epsilon of one report; inf without any noise on a bit."""
        coin, total = self.noise / (2 - self.noise), 0.0
        for share in (self.one_if_zero / self.one_if_one, (1 - self.one_if_one) / (1 - self.one_if_zero)):
            if coin + share == 0:
                return math.inf
            total += math.log1p((1 - coin) * (1 - share) / (coin + share))
        return self.hashes * total

    @property
    def eps0_error(self) -> float:
        """As for one bit, `hashes` times."""
        return super().eps0_error * self.hashes

    @property
    def memoised(self) -> RAPPOR:
        """The permanent step alone, as a randomizer: its eps0 is the lifetime's."""
        return replace(self, one_if_zero=0.0, one_if_one=1.0)

    @property
    def channel(self) -> BitChannel:
        """The noise of both steps on one bit: q* and p* of the paper, and their complements."""
        half = self.noise / 2
        swap = self.one_if_one - self.one_if_zero
        return BitChannel(
            one_if_one=self.one_if_one - half * swap,
            zero_if_one=(1 - self.one_if_one) + half * swap,
            one_if_zero=self.one_if_zero + half * swap,
            zero_if_zero=(1 - self.one_if_zero) - half * swap,
        )

    @property
    def tv(self) -> float:
        """That of two filters with nothing in common; q* - p* = (1 - f) (q - p) if one-hot."""
        if self.hashes == 1:
            return (1 - self.noise) * (self.one_if_one - self.one_if_zero)
        a, not_a, b, not_b = self.channel
        first, second = _binomial(self.hashes, a, not_a), _binomial(self.hashes, b, not_b)
        more = np.maximum(np.subtract.outer(np.arange(first.size), np.arange(first.size)), 0)
        return float(first @ -np.expm1(-more * (self.eps0 / self.hashes)) @ second)

    @property
    def inputs(self) -> int:
        """Number of inputs, k."""
        return self.k

    @property
    def length(self) -> int:
        """Number of bits of a filter and of a report."""
        return self.k if self.bits is None else self.bits

    @property
    def pairs_meant(self) -> str:  # type: ignore[override]
        """Bloom filters are analysed over all filters."""
        every = ", the worst over all filters, whether or not a value has them"
        return "" if self.bits is None else every

    def kinds(self, given: Sequence[int] = ()) -> Sequence[int]:
        """One-hot filters: see `FiniteRandomizer.kinds`. Bloom filters: all inputs, as none are alike."""
        return super().kinds(given) if self.bits is None else range(self.k)

    def pair_laws(self) -> Iterator[FloatArray]:
        """One entry per number of ones apart, d = 1 ... hashes, whether or not a value has them."""
        for pair in self._filter_pairs():
            yield reached(self._filter_rows(pair, [0, 1], blanket=True))

    def types(self, users: int = 1) -> Iterator[Types]:
        """What the swap theorem needs; for one-hot filters as `FiniteRandomizer.types`.

        Bloom filters: over all filters, whether or not a value has them, with V among the target's two laws and the
        blanket; none for more than 4 hashes.
        """
        if self.bits is None:
            yield from super().types()
        elif self.hashes <= TYPES_HASHES:
            for pair, target in enumerate(self._filter_pairs()):
                others = [np.vstack([target, other]) for other in self._other_filters(target)]
                for shared, name in enumerate(("first", "second")):
                    laws = (self._filter_rows(places, [0, 1, shared, 2]) for places in others)
                    yield Types(pair, name, tuple(laws))
                laws = (self._filter_rows(places, [0, 1, 2], blanket=True) for places in others)
                yield Types(pair, "blanket", tuple(map(with_shared_blanket, laws)))

    def _filter_rows(self, places: IntArray, index: list[int], *, blanket: bool = False) -> FloatArray:
        """Joint law of the filters `places`, in the order of `index`."""
        return rows(self._filter_masses(places, blanket), np.array(index), blanket=blanket)

    def _filter_pairs(self) -> Iterator[IntArray]:
        """Two filters with d = 1 ... hashes ones apart, shape (2, hashes)."""
        for apart in range(1, self.hashes + 1):
            yield np.arange(self.hashes) + np.array([[0], [apart]])

    def _other_filters(self, target: IntArray) -> Iterator[IntArray]:
        """One more filter for every way to share ones with the two of `target`."""
        apart, ones = int(target[1, 0]), self.hashes
        parts = (range(apart), range(apart, ones), range(ones, ones + apart))  # first, both, second
        for shares in product(*(range(len(part) + 1) for part in parts)):
            new = ones - sum(shares)
            if 0 <= new <= self.length - ones - apart:
                own = [part[:share] for part, share in zip(parts, shares, strict=True)]
                yield np.array([*chain(*own), *range(ones + apart, ones + apart + new)])

    def _places(self, values: IntArray) -> IntArray:
        """By a public hash of the value: the i-th one below length - i, counted among the places still free."""
        if self.bits is None:
            return super()._places(values)
        places = np.empty((*values.shape, self.hashes), dtype=np.int64)
        seed = _mix(values.astype(np.uint64) + _mix(np.array(self.salt, dtype=np.uint64)))
        for i in range(self.hashes):
            place = (_mix(seed + np.uint64(i)) % np.uint64(self.length - i)).astype(np.int64)
            for earlier in np.moveaxis(np.sort(places[..., :i], axis=-1), -1, 0):
                place = place + (place >= earlier)
            places[..., i] = place
        return places

    def permanent(self, x: ArrayLike, rng: np.random.Generator) -> BitArray:
        """The memoised vectors of the values `x`, shape x.shape + (length,)."""
        half = self.noise / 2
        return add_noise(self.encode(x), BitChannel(1 - half, half, half, 1 - half), generator(rng))

    def instantaneous(self, memoised: ArrayLike, rng: np.random.Generator) -> BitArray:
        """One report from each memoised vector; `memoised` has shape (..., length)."""
        fresh = BitChannel(self.one_if_one, 1 - self.one_if_one, self.one_if_zero, 1 - self.one_if_zero)
        return add_noise(bit_array("memoised", memoised, self.length), fresh, generator(rng))

    def _drawn(self, values: IntArray, rng: np.random.Generator) -> BitArray:
        """Reports of shape values.shape + (length,), both steps drawn afresh."""
        return self.instantaneous(self.permanent(values, rng), rng)


def _mix(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The splitmix64 finaliser (Steele, Lea, Flood 2014): a fixed bijection of 64-bit words."""
    with np.errstate(over="ignore"):
        words = words + np.uint64(0x9E3779B97F4A7C15)
        words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(words ^ (words >> np.uint64(31)))
