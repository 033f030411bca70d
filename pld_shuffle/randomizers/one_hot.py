"""A value as a one-hot vector, independent noise on every bit: unary encoding and RAPPOR.

Each bit goes through the same 2 x 2 channel, a = P[1 | 1] > b = P[1 | 0]. Two values differ in two bits, so that eps0 =
log(a (1-b) / (b (1-a))) and tv = a - b. The value least likely to have produced a report is one with a reported 0, if
there is one: inf_x mu_x is the law of independent b-coins times (1-a)/(1-b), or times a/b for all ones.

*RAPPOR* (Erlingsson, Pihur, Korolova 2014, section 2; one hash function and a bit for every value). The permanent step
replaces a bit by a fair coin with probability f = `noise`; the result is memoised and used for every report on the same
value. In the instantaneous one a memoised 1 is reported as 1 w.p. q = `one_if_one`, a 0 w.p. p = `one_if_zero`. With
c = f/(2-f), t = p/q, u = (1-q)/(1-p) one report has eps0 = log((1 + c t)/(c + t)) + log((1 + c u)/(c + u)).

*The catch.* Rounds share the memoised noise, so they are *not* independent given the value: several reports are one
round of `memoised`, unless the permanent step is drawn afresh for each.

Optimised unary encoding: Wang, Blocki, Li, Jha, USENIX Security 2017.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..numerics.sides import Array
from ..numerics.tuning import NUMBERS
from ..numerics.validation import between, choice, integer_in
from .base import EPS0_MAX, IntArray, bit_array, generator, integer_array
from .joint import FiniteRandomizer, ValuesRandomizer

BitArray = NDArray[np.uint8]

Variant = Literal["symmetric", "optimised"]
VARIANTS: tuple[Variant, ...] = ("symmetric", "optimised")
MOST_BITS = 2**24  # of a vector


class BitChannel(NamedTuple):
    """P[reported bit | true bit], all four of them, so that none is computed by a subtraction."""

    one_if_one: float
    zero_if_one: float
    one_if_zero: float
    zero_if_zero: float


class NoisyVector(FiniteRandomizer):
    """A randomizer that adds noise to every bit of the one-hot vector of a value."""

    @property
    @abstractmethod
    def channel(self) -> BitChannel:
        """The noise on one bit."""

    def encode(self, x: ArrayLike) -> BitArray:
        """The one-hot vectors of the values `x`, shape x.shape + (inputs,)."""
        values = integer_array("x", x, self.inputs)
        vectors = np.zeros((*values.shape, self.inputs), dtype=np.uint8)
        np.put_along_axis(vectors, values[..., np.newaxis], 1, axis=-1)
        return vectors

    def _masses(self, values: IntArray, blanket: bool) -> Array:
        """Groups: the bits of the values, and whether all other bits are 1 where the blanket needs it."""
        a, not_a, b, not_b = self.channel
        m = values.size
        ones = np.indices((2,) * m).reshape(m, -1)
        masses = np.array([np.where(ones == 1, b, not_b)] * (m + 1))
        place = np.arange(m)
        masses[place, place] = np.where(ones == 1, a, not_a)
        law: Array = masses.prod(axis=1)
        if not blanket:
            return law
        others = (self.inputs - m) * (math.log(b) if b < 0.5 else math.log1p(-not_b))
        law = np.hstack([law * -math.expm1(others), law * math.exp(others)])
        full = np.tile(ones.all(axis=0), 2) & np.repeat([False, True], ones.shape[1])
        law[-1] *= np.where(full, a / b, not_a / not_b)
        return law


def add_noise(vectors: BitArray, channel: BitChannel, rng: np.random.Generator) -> BitArray:
    """Send every bit of `vectors`, any shape, through the channel independently."""
    flat = vectors.reshape(-1)
    reports = np.empty(flat.shape, dtype=np.uint8)
    for start in range(0, flat.size, NUMBERS):
        part = flat[start : start + NUMBERS]
        chance = np.where(part == 1, channel.one_if_one, channel.one_if_zero)
        reports[start : start + NUMBERS] = rng.random(part.size) < chance
    return reports.reshape(vectors.shape)


@dataclass(frozen=True, kw_only=True)
class UnaryEncoding(NoisyVector, ValuesRandomizer):
    """Unary encoding of the values 0 ... k-1; a report is a vector of k bits.

    k: number of values, 2 ... 2^24. eps0: local epsilon, in (0, 700]. variant: "symmetric" (each
    bit flipped with the same probability) or "optimised" (the variant with the smaller variance).
    Raises TypeError or ValueError for anything else.
    """

    k: Annotated[int, partial(integer_in, lowest=2, highest=MOST_BITS)]
    variant: Annotated[Variant, partial(choice, options=VARIANTS)] = "symmetric"

    @property
    def channel(self) -> BitChannel:
        share = self.eps0 / 2 if self.variant == "symmetric" else self.eps0
        error, right = math.exp(-share) / (1 + math.exp(-share)), 1 / (1 + math.exp(-share))
        if self.variant == "symmetric":
            return BitChannel(right, error, error, right)
        return BitChannel(0.5, 0.5, error, right)

    @property
    def tv(self) -> float:
        """tanh(eps0/4) (symmetric) or tanh(eps0/2) / 2 (optimised), the same for all pairs."""
        return math.tanh(self.eps0 / 4) if self.variant == "symmetric" else math.tanh(self.eps0 / 2) / 2

    def _drawn(self, values: IntArray, rng: np.random.Generator) -> BitArray:
        return add_noise(self.encode(values), self.channel, rng)


@dataclass(frozen=True, kw_only=True)
class RAPPOR(NoisyVector):
    """RAPPOR for the values 0 ... k-1; a report is a vector of k bits.

    k: number of values, 2 ... 2^24. noise: f in [0, 1), the permanent step. one_if_zero < one_if_one: p and q in [0,
    1], the instantaneous step (0 and 1: report the memoised vector itself). Raises TypeError or ValueError for
    anything else, and ValueError unless one report has an eps0 in (0, 700] (inf: no noise on a bit in either step).
    """

    k: Annotated[int, partial(integer_in, lowest=2, highest=MOST_BITS)]
    noise: Annotated[float, between(0.0, 1.0, "[)")]
    one_if_zero: Annotated[float, between(0.0, 1.0)]
    one_if_one: Annotated[float, between(0.0, 1.0)]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.one_if_zero < self.one_if_one:
            raise ValueError(f"one_if_zero={self.one_if_zero!r} must be below one_if_one={self.one_if_one!r}")
        if not 0 < self.eps0 <= EPS0_MAX:
            raise ValueError(
                f"noise={self.noise!r}, one_if_zero={self.one_if_zero!r}, one_if_one={self.one_if_one!r} give"
                f" eps0={self.eps0!r}, which is not in (0, {EPS0_MAX:g}]"
            )

    @property
    def eps0(self) -> float:  # type: ignore[override]
        """Local epsilon of one report; inf without any noise on a bit."""
        coin, total = self.noise / (2 - self.noise), 0.0
        for share in (self.one_if_zero / self.one_if_one, (1 - self.one_if_one) / (1 - self.one_if_zero)):
            if coin + share == 0:
                return math.inf
            total += math.log1p((1 - coin) * (1 - share) / (coin + share))
        return total

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
        """q* - p* = (1 - f) (q - p), the same for all pairs."""
        return (1 - self.noise) * (self.one_if_one - self.one_if_zero)

    def permanent(self, x: ArrayLike, rng: np.random.Generator) -> BitArray:
        """The memoised vectors of the values `x`, shape x.shape + (k,)."""
        half = self.noise / 2
        return add_noise(self.encode(x), BitChannel(1 - half, half, half, 1 - half), generator(rng))

    def instantaneous(self, memoised: ArrayLike, rng: np.random.Generator) -> BitArray:
        """One report from each memoised vector; `memoised` has shape (..., k)."""
        fresh = BitChannel(self.one_if_one, 1 - self.one_if_one, self.one_if_zero, 1 - self.one_if_zero)
        return add_noise(bit_array("memoised", memoised, self.k), fresh, generator(rng))

    def _drawn(self, values: IntArray, rng: np.random.Generator) -> BitArray:
        return self.instantaneous(self.permanent(values, rng), rng)
