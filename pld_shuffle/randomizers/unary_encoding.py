"""Unary encoding: the value as a one-hot vector, every bit reported with independent noise.

symmetric   P[1 | 1] = e^{eps0/2} / (e^{eps0/2} + 1) = P[0 | 0]      (basic one-time RAPPOR)
optimised   P[1 | 1] = 1/2,  P[1 | 0] = 1 / (e^eps0 + 1)

Two one-hot vectors differ in two bits, which gives eps0 = log(a (1-b) / (b (1-a))) and tv = a - b;
gamma as in bits.py.

Source: Erlingsson, Pihur, Korolova, RAPPOR, CCS 2014 (symmetric); Wang, Blocki, Li, Jha, Locally
differentially private protocols for frequency estimation, USENIX Security 2017 (optimised).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ..numerics.validation import integer_in
from .base import FloatArray, IntArray, PureLDP, require_small_law
from .bits import (
    FILTER_BITS,
    BitArray,
    BitChannel,
    add_noise,
    blanket_probability,
    filter_joint_law,
    filter_law,
    report_columns,
)
from .border import generator, integer_array, local_epsilon
from .joint import FromJointLaw, rows, several


@dataclass(frozen=True, kw_only=True)
class UnaryEncoding(PureLDP, FromJointLaw):
    """Unary encoding of the values 0 ... k-1; a report is a vector of k bits.

    k: number of values, 2 ... 2^24. eps0: local epsilon, in (0, 700]. variant: "symmetric" (each
    bit flipped with the same probability) or "optimised" (the variant with the smaller variance).
    Raises TypeError or ValueError for anything else.
    """

    k: int
    eps0: float
    variant: Literal["symmetric", "optimised"] = "symmetric"

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", integer_in("k", self.k, 2, FILTER_BITS))
        object.__setattr__(self, "eps0", local_epsilon(self.eps0))
        if self.variant not in ("symmetric", "optimised"):
            raise ValueError(f"variant must be 'symmetric' or 'optimised', got {self.variant!r}")

    @property
    def channel(self) -> BitChannel:
        """The noise on one bit."""
        if self.variant == "symmetric":
            error = math.exp(-self.eps0 / 2) / (1 + math.exp(-self.eps0 / 2))
            right = 1 / (1 + math.exp(-self.eps0 / 2))
            return BitChannel(right, error, error, right)
        error = math.exp(-self.eps0) / (1 + math.exp(-self.eps0))
        return BitChannel(0.5, 0.5, error, 1 / (1 + math.exp(-self.eps0)))

    @property
    def tv(self) -> float:
        """tanh(eps0/4) (symmetric) or tanh(eps0/2) / 2 (optimised), the same for all pairs."""
        if self.variant == "symmetric":
            return math.tanh(self.eps0 / 4)
        return math.tanh(self.eps0 / 2) / 2

    @property
    def gamma(self) -> float:
        """(1-a)/(1-b) (1 - b^k) + a b^(k-1), a = P[1 | 1], b = P[1 | 0]."""
        return blanket_probability(self.k, 1, self.channel)

    @property
    def inputs(self) -> int:
        """Number of inputs, k."""
        return self.k

    @property
    def outputs(self) -> int:
        """Number of reports, 2^k."""
        return 1 << self.k

    def law(self) -> FloatArray:
        """Shape (k, 2^k); bit j of a column number is bit j of the report."""
        require_small_law(self.inputs, self.outputs)
        return filter_law(np.eye(self.k, dtype=np.uint8), self.channel)

    def columns(self, reports: ArrayLike) -> IntArray:
        """Columns of reports of shape (..., k), k <= 62."""
        return report_columns(reports, self.k)

    def joint_law(self, inputs: Sequence[int], *, blanket: bool = False) -> FloatArray:
        """Groups: the bits of the m distinct inputs, at most 2^m.

        With the blanket also the number of zeros elsewhere, none or some.
        """
        values, index = several(inputs, self.k)
        masses = filter_joint_law(values[:, np.newaxis], self.k, self.channel, blanket=blanket)
        return rows(masses, index, blanket=blanket)

    def sample(self, x: ArrayLike, rng: np.random.Generator) -> BitArray:
        """Reports of shape x.shape + (k,), zeros and ones, for integers x in 0 ... k-1."""
        values = integer_array("x", x, self.k)
        source = generator(rng)
        filters = np.zeros((*values.shape, self.k), dtype=np.uint8)
        np.put_along_axis(filters, values[..., np.newaxis], 1, axis=-1)
        return add_noise(filters, self.channel, source)
