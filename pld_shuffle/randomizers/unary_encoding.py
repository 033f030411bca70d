"""Unary encoding: the value as a one-hot vector, every bit reported with independent noise.

symmetric   P[1 | 1] = e^{eps0/2} / (e^{eps0/2} + 1) = P[0 | 0]      (basic one-time RAPPOR)
optimised   P[1 | 1] = 1/2,  P[1 | 0] = 1 / (e^eps0 + 1)

Two one-hot vectors differ in two bits, which gives eps0 = log(a (1-b) / (b (1-a))) and tv = a - b
(see bits.py).

Source: Erlingsson, Pihur, Korolova, RAPPOR, CCS 2014 (symmetric); Wang, Blocki, Li, Jha, Locally
differentially private protocols for frequency estimation, USENIX Security 2017 (optimised).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..numerics.validation import choice
from .base import IntArray
from .bits import FILTER_BITS, BitArray, BitChannel, NoisyFilter, add_noise
from .joint import ValuesRandomizer


@dataclass(frozen=True, kw_only=True)
class UnaryEncoding(NoisyFilter, ValuesRandomizer):
    """Unary encoding of the values 0 ... k-1; a report is a vector of k bits.

    k: number of values, 2 ... 2^24. eps0: local epsilon, in (0, 700]. variant: "symmetric" (each
    bit flipped with the same probability) or "optimised" (the variant with the smaller variance).
    Raises TypeError or ValueError for anything else.
    """

    variant: Literal["symmetric", "optimised"] = "symmetric"

    _most_values = FILTER_BITS

    def __post_init__(self) -> None:
        super().__post_init__()
        choice("variant", self.variant, ("symmetric", "optimised"))

    @property
    def length(self) -> int:
        """Number of bits of a report, k."""
        return self.k

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

    def _places(self, values: IntArray) -> IntArray:
        return values[..., np.newaxis]

    def _drawn(self, values: IntArray, rng: np.random.Generator) -> BitArray:
        """Reports of shape values.shape + (k,), zeros and ones."""
        return add_noise(self.encode(values), self.channel, rng)
