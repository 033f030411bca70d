"""RAPPOR: a Bloom filter, noise that is drawn once and kept, and fresh noise on every report.

Steps (Erlingsson, Pihur, Korolova 2014, section 2; symbols of the paper: k, h, f, p, q)
    encode         the value sets h positions of a filter of `bits` bits
    permanent      a bit is replaced by a fair coin with probability f = `noise`; the result is
                   memoised and used for every report on the same value
    instantaneous  a memoised 1 is reported as 1 w.p. q = `one_if_one`, a 0 w.p. p = `one_if_zero`

Epsilons. Let c = f/(2-f), t = (p/q)^N, u = ((1-q)/(1-p))^N. The reports' likelihood ratio for one
bit depends on the number of ones among the N reports only, and monotonically; its extremes are all
ones and all zeros. So N reports from one memoised filter together are exactly

    eps(N) = d log((1 + c t)/(c + t)) + d log((1 + c u)/(c + u)),   d = number of ones apart,

which for N = 1 is d log(q*(1-p*) / (p*(1-q*))) (the paper's eps_1 with d = h), and for N -> inf
the lifetime 2 d log((1 - f/2)/(f/2)) (its eps_infinity): what the memoised filter itself reveals.

Composition over rounds. With memoisation the rounds share the permanent noise: they are *not*
independent given the value, so composing the one-report guarantee of several shuffled rounds is
valid only if the permanent step is drawn afresh in every round. Otherwise use `eps0_of_reports` or
`lifetime_eps0` for all reports together.

The inputs covered are all filters with h distinct ones, d = h. For the one-hot filter all closed
forms are exact. For Bloom filters eps0 and tv are attained as soon as two of the k values have
filters with nothing in common, and are upper bounds otherwise; gamma is a lower bound unless all
filters occur.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..numerics.validation import integer_in, real
from .base import FloatArray, IntArray, PairLaw, settle
from .bits import FILTER_BITS, BitArray, BitChannel, NoisyFilter, add_noise, total_variation
from .border import EPS0_MAX, bit_array, generator
from .joint import Types, rows, with_shared_blanket

HASHES_MAX = 32
"""Most ones of a Bloom filter; C(bits, hashes) is then a finite double."""

TYPES_HASHES = 4
"""Most ones of a Bloom filter for which all ways to share ones are listed (`RAPPOR.types`)."""


@dataclass(frozen=True, kw_only=True)
class RAPPOR(NoisyFilter):
    """RAPPOR for the values 0 ... k-1; a report is a vector of bits.

    k: number of values, at least 2. noise: f in [0, 1), the permanent step. one_if_zero <
    one_if_one: p and q in [0, 1], the instantaneous step (0 and 1: report the memoised filter
    itself). bits: length of the filter; None (default) means one bit per value, the one-hot filter,
    and hashes must then be 1; at most 2^24. hashes: h, ones per filter, at most bits/2 and 32.
    salt: selects the public hash functions. Raises TypeError or ValueError for anything else, and
    ValueError unless one report has an eps0 in (0, 700] (inf: no noise on a bit in either step).
    """

    k: int
    noise: float
    one_if_zero: float
    one_if_one: float
    bits: int | None = None
    hashes: int = 1
    salt: int = 0

    def __post_init__(self) -> None:
        one_hot = self.bits is None
        settle(self, k=integer_in("k", self.k, 2, FILTER_BITS if one_hot else 2**62))
        settle(self, salt=integer_in("salt", self.salt, 0, 2**62))
        for name in ("noise", "one_if_zero", "one_if_one"):
            settle(self, **{name: real(name, getattr(self, name))})
        if not 0 <= self.noise < 1:
            raise ValueError(f"noise must be in [0, 1), got {self.noise!r}")
        if not 0 <= self.one_if_zero < self.one_if_one <= 1:
            raise ValueError(
                "0 <= one_if_zero < one_if_one <= 1 must hold, got "
                f"one_if_zero={self.one_if_zero!r}, one_if_one={self.one_if_one!r}"
            )
        if not one_hot:
            settle(self, bits=integer_in("bits", self.bits, 2, FILTER_BITS))
        most = 1 if one_hot else min(self.length // 2, HASHES_MAX)
        settle(self, hashes=integer_in("hashes", self.hashes, 1, most))
        if not 0 < self.eps0 <= EPS0_MAX:
            raise ValueError(
                f"noise={self.noise!r}, one_if_zero={self.one_if_zero!r}, "
                f"one_if_one={self.one_if_one!r}, hashes={self.hashes!r} give eps0={self.eps0!r}, "
                f"which is not in (0, {EPS0_MAX:g}]"
            )

    @property
    def length(self) -> int:
        """Number of bits of a filter and of a report."""
        return self.k if self.bits is None else self.bits

    @property
    def eps0(self) -> float:
        """Local epsilon of one report."""
        return self.eps0_of_reports(1)

    @property
    def lifetime_eps0(self) -> float:
        """Local epsilon of any number of reports from one memoised filter; inf if noise is 0."""
        if self.noise == 0:
            return math.inf
        return 2 * self.hashes * math.log((2 - self.noise) / self.noise)

    def eps0_of_reports(self, count: int) -> float:
        """Local epsilon of `count` reports from one memoised filter together (exact).

        Grows with `count`, from `eps0` to `lifetime_eps0`.
        """
        reports = integer_in("count", count, 1)
        if self.noise == 0 and reports > 1:
            return reports * self.eps0
        coin = self.noise / (2 - self.noise)
        all_ones = (self.one_if_zero / self.one_if_one) ** reports
        all_zeros = ((1 - self.one_if_one) / (1 - self.one_if_zero)) ** reports
        total = 0.0
        for share in (all_ones, all_zeros):
            if coin + share == 0:
                return math.inf
            total += math.log1p((1 - coin) * (1 - share) / (coin + share))
        return self.hashes * total

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
        """Total variation of two filters with nothing in common; q* - p* if one-hot."""
        return total_variation(self.hashes, self.channel)

    @property
    def inputs(self) -> int:
        """Number of inputs, k."""
        return self.k

    def kinds(self, given: Sequence[int] = ()) -> Sequence[int]:
        """One-hot filters: see `FiniteRandomizer.kinds`. Bloom filters: all inputs, as none are alike."""
        return super().kinds(given) if self.bits is None else range(self.k)

    @property
    def pairs_meant(self) -> str:
        """Bloom filters are analysed over all filters."""
        return (
            ""
            if self.bits is None
            else ", the worst over all filters, whether or not a value has them"
        )

    def pair_laws(self) -> tuple[PairLaw, ...]:
        """One entry per number of ones apart, d = 1 ... hashes, whether or not a value has them."""
        return tuple(
            PairLaw.of(*self._filter_rows(places, [0, 1], blanket=True))
            for places in self._filter_pairs()
        )

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

    def _filter_rows(
        self, places: IntArray, index: list[int], *, blanket: bool = False
    ) -> FloatArray:
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

    def permanent(self, x: ArrayLike, rng: np.random.Generator) -> BitArray:
        """The memoised filters of the values `x`, shape x.shape + (length,)."""
        return add_noise(self.encode(x), self.memoised_channel, generator(rng))

    def instantaneous(self, memoised: ArrayLike, rng: np.random.Generator) -> BitArray:
        """One report from each memoised filter; `memoised` has shape (..., length)."""
        fresh = BitChannel(
            self.one_if_one, 1 - self.one_if_one, self.one_if_zero, 1 - self.one_if_zero
        )
        return add_noise(bit_array("memoised", memoised, self.length), fresh, generator(rng))

    @property
    def memoised_channel(self) -> BitChannel:
        """The noise of the permanent step on one bit."""
        half = self.noise / 2
        return BitChannel(1 - half, half, half, 1 - half)

    def _drawn(self, values: IntArray, rng: np.random.Generator) -> BitArray:
        """Reports of shape values.shape + (length,), both steps drawn afresh."""
        return self.instantaneous(self.permanent(values, rng), rng)

    def _places(self, values: IntArray) -> IntArray:
        """Distinct positions, shape values.shape + (hashes,), by a public hash of the value.

        The i-th position is a hashed number below length - i, counted among the places still
        free. O(hashes^2) per value.
        """
        if self.bits is None:
            return values[..., np.newaxis]
        places = np.empty((*values.shape, self.hashes), dtype=np.int64)
        for i in range(self.hashes):
            seed = _mix(values.astype(np.uint64) + _mix(np.array(self.salt, dtype=np.uint64)))
            free = _mix(seed + np.uint64(i)) % np.uint64(self.length - i)
            place = free.astype(np.int64)
            for earlier in np.moveaxis(np.sort(places[..., :i], axis=-1), -1, 0):
                place = place + (place >= earlier)
            places[..., i] = place
        return places


def _mix(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The splitmix64 finaliser (Steele, Lea, Flood 2014): a fixed bijection of 64-bit words."""
    with np.errstate(over="ignore"):
        words = words + np.uint64(0x9E3779B97F4A7C15)
        words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(words ^ (words >> np.uint64(31)))
