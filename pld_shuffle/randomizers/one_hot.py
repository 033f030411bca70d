"""A value as a one-hot vector, independent noise on every bit: unary encoding and (one-hot) RAPPOR.

Notation
    Each of k bits is reported through the same 2 x 2 channel, a = P[1 | 1] > b = P[1 | 0]. Two one-hot vectors differ
    in two bits, so that

        eps0 = log(a (1-b) / (b (1-a))),      tv = a - b.

Blanket
    The value least likely to have produced a report has a bit that is reported 0, if there is one: inf_x mu_x is the
    law of independent b-coins times (1-a)/(1-b), and times a/b at the report of ones alone. So
    gamma = (1-a)/(1-b) (1 - b^k) + a b^(k-1).

Unary encoding
    symmetric   P[1 | 1] = e^{eps0/2} / (e^{eps0/2} + 1) = P[0 | 0]      (basic one-time RAPPOR)
    optimised   P[1 | 1] = 1/2,  P[1 | 0] = 1 / (e^eps0 + 1)

RAPPOR (Erlingsson, Pihur, Korolova 2014, section 2; symbols of the paper: f, p, q)
    permanent      a bit is replaced by a fair coin with probability f = `noise`; the result is memoised and used for
                   every report on the same value
    instantaneous  a memoised 1 is reported as 1 w.p. q = `one_if_one`, a 0 w.p. p = `one_if_zero`

    Let c = f/(2-f), t = (p/q)^N, u = ((1-q)/(1-p))^N. The reports' likelihood ratio for one bit depends on the number
    of ones among the N reports only, and monotonically; its extremes are all ones and all zeros. So N reports from one
    memoised vector together are exactly

        eps(N) = log((1 + c t)/(c + t)) + log((1 + c u)/(c + u)),

    which for N = 1 is log(q*(1-p*) / (p*(1-q*))) (the paper's eps_1), and for N -> inf the lifetime
    2 log((1 - f/2)/(f/2)) (its eps_infinity): what the memoised vector itself reveals.

    With memoisation the rounds share the permanent noise: they are *not* independent given the value, so composing the
    one-report guarantee of several shuffled rounds is valid only if the permanent step is drawn afresh in every round.
    Otherwise use `eps0_of_reports` or `lifetime_eps0` for all reports together.

Source: Erlingsson, Pihur, Korolova, RAPPOR, CCS 2014; Wang, Blocki, Li, Jha, Locally differentially private protocols
for frequency estimation, USENIX Security 2017 (optimised).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..numerics.tuning import DRAWN_TOGETHER
from ..numerics.validation import choice, integer_in, real
from .base import FloatArray, IntArray, settle
from .border import EPS0_MAX, bit_array, generator, integer_array
from .joint import FiniteRandomizer, ValuesRandomizer

BitArray = NDArray[np.uint8]

MOST_BITS = 2**24
"""Longest vector accepted."""

JOINT_INPUTS = 16
"""Most inputs of a joint law: it has 2^inputs groups."""


class BitChannel(NamedTuple):
    """P[reported bit | true bit], all four of them, so that none is computed by a subtraction."""

    one_if_one: float
    zero_if_one: float
    one_if_zero: float
    zero_if_zero: float


class OneHot(FiniteRandomizer):
    """A randomizer that adds noise to every bit of a one-hot vector."""

    @property
    @abstractmethod
    def channel(self) -> BitChannel:
        """The noise on one bit."""

    def encode(self, x: ArrayLike) -> BitArray:
        """The one-hot vectors of the values `x`, shape x.shape + (k,)."""
        values = integer_array("x", x, self.inputs)
        vectors = np.zeros((*values.shape, self.inputs), dtype=np.uint8)
        np.put_along_axis(vectors, values[..., np.newaxis], 1, axis=-1)
        return vectors

    def _masses(self, values: IntArray, blanket: bool) -> FloatArray:
        """Groups: the bits reported for the values; if all are ones, also whether all other bits are."""
        a, not_a, b, not_b = self.channel
        count = values.size
        if not count <= JOINT_INPUTS:
            raise ValueError(f"inputs must be at most {JOINT_INPUTS} different ones, got {count}")
        bits = np.indices((2,) * count).reshape(count, -1)[:, ::-1]  # all ones come first
        own, coin = np.where(bits == 1, a, not_a), np.where(bits == 1, b, not_b)
        coins = coin.prod(axis=0)
        masses = np.array([np.delete(coin, i, axis=0).prod(axis=0) for i in range(count)]) * own
        rest = self.inputs - count  # other bits
        all_ones = b**rest
        some_zero = -math.expm1(rest * math.log1p(-not_b)) if not_b < 1 else float(rest > 0)
        masses = np.vstack([masses, coins])
        ones = masses[:, :1]
        masses = np.hstack([ones * all_ones, ones * some_zero, masses[:, 1:]])
        masses[-1] *= not_a / not_b
        masses[-1, 0] = coins[0] * all_ones * (a / b)
        return masses


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
class UnaryEncoding(OneHot, ValuesRandomizer):
    """Unary encoding of the values 0 ... k-1; a report is a vector of k bits.

    k: number of values, 2 ... 2^24. eps0: local epsilon, in (0, 700]. variant: "symmetric" (each
    bit flipped with the same probability) or "optimised" (the variant with the smaller variance).
    Raises TypeError or ValueError for anything else.
    """

    variant: Literal["symmetric", "optimised"] = "symmetric"

    _most_values = MOST_BITS

    def __post_init__(self) -> None:
        super().__post_init__()
        choice("variant", self.variant, ("symmetric", "optimised"))

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
class RAPPOR(OneHot):
    """RAPPOR for the values 0 ... k-1; a report is a vector of k bits.

    k: number of values, 2 ... 2^24. noise: f in [0, 1), the permanent step. one_if_zero <
    one_if_one: p and q in [0, 1], the instantaneous step (0 and 1: report the memoised vector
    itself). Raises TypeError or ValueError for anything else, and ValueError unless one report has
    an eps0 in (0, 700] (inf: no noise on a bit in either step).
    """

    k: int
    noise: float
    one_if_zero: float
    one_if_one: float

    def __post_init__(self) -> None:
        settle(self, k=integer_in("k", self.k, 2, MOST_BITS))
        for name in ("noise", "one_if_zero", "one_if_one"):
            settle(self, **{name: real(name, getattr(self, name))})
        if not 0 <= self.noise < 1:
            raise ValueError(f"noise must be in [0, 1), got {self.noise!r}")
        if not 0 <= self.one_if_zero < self.one_if_one <= 1:
            raise ValueError(
                "0 <= one_if_zero < one_if_one <= 1 must hold, got "
                f"one_if_zero={self.one_if_zero!r}, one_if_one={self.one_if_one!r}"
            )
        if not 0 < self.eps0 <= EPS0_MAX:
            raise ValueError(
                f"noise={self.noise!r}, one_if_zero={self.one_if_zero!r}, "
                f"one_if_one={self.one_if_one!r} give eps0={self.eps0!r}, "
                f"which is not in (0, {EPS0_MAX:g}]"
            )

    @property
    def eps0(self) -> float:
        """Local epsilon of one report."""
        return self.eps0_of_reports(1)

    @property
    def lifetime_eps0(self) -> float:
        """Local epsilon of any number of reports from one memoised vector; inf if noise is 0."""
        return math.inf if self.noise == 0 else 2 * math.log((2 - self.noise) / self.noise)

    def eps0_of_reports(self, count: int) -> float:
        """Local epsilon of `count` reports from one memoised vector together (exact).

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

    @property
    def inputs(self) -> int:
        """Number of inputs, k."""
        return self.k

    def permanent(self, x: ArrayLike, rng: np.random.Generator) -> BitArray:
        """The memoised vectors of the values `x`, shape x.shape + (k,)."""
        half = self.noise / 2
        return add_noise(self.encode(x), BitChannel(1 - half, half, half, 1 - half), generator(rng))

    def instantaneous(self, memoised: ArrayLike, rng: np.random.Generator) -> BitArray:
        """One report from each memoised vector; `memoised` has shape (..., k)."""
        fresh = BitChannel(
            self.one_if_one, 1 - self.one_if_one, self.one_if_zero, 1 - self.one_if_zero
        )
        return add_noise(bit_array("memoised", memoised, self.k), fresh, generator(rng))

    def _drawn(self, values: IntArray, rng: np.random.Generator) -> BitArray:
        """Reports of shape values.shape + (k,), both steps drawn afresh."""
        return self.instantaneous(self.permanent(values, rng), rng)
