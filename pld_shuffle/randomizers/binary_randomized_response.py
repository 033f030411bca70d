"""Binary randomized response: one bit, flipped with probability 1 / (e^eps0 + 1).

The extreme case of every eps0-LDP randomizer: its total variation tanh(eps0 / 2) is the largest
that pure eps0-LDP allows (Kairouz, Oh, Viswanath 2015), and gamma = 1 - tv.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .base import FloatArray, IntArray, PureLDP, read_only
from .border import generator, integer_array, local_epsilon
from .joint import FromJointLaw, rows, several


@dataclass(frozen=True)
class BinaryRandomizedResponse(PureLDP, FromJointLaw):
    """Randomized response on the bits 0 and 1.

    eps0: local epsilon, in (0, 700]. Raises TypeError or ValueError for anything else.
    """

    eps0: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "eps0", local_epsilon(self.eps0))

    @property
    def flip(self) -> float:
        """Probability of the wrong bit, 1 / (e^eps0 + 1)."""
        return math.exp(-self.eps0) / (1 + math.exp(-self.eps0))

    @property
    def tv(self) -> float:
        """tanh(eps0 / 2)."""
        return math.tanh(self.eps0 / 2)

    @property
    def gamma(self) -> float:
        """2 / (e^eps0 + 1)."""
        return 2 * self.flip

    @property
    def inputs(self) -> int:
        """Number of inputs, 2."""
        return 2

    @property
    def outputs(self) -> int:
        """Number of reports, 2."""
        return 2

    def law(self) -> FloatArray:
        """Shape (2, 2)."""
        keep = 1 / (1 + math.exp(-self.eps0))
        return read_only(np.array([[keep, self.flip], [self.flip, keep]]))

    def columns(self, reports: ArrayLike) -> IntArray:
        """A report is its own column."""
        return integer_array("reports", reports, 2)

    def joint_law(self, inputs: Sequence[int], *, blanket: bool = False) -> FloatArray:
        """Groups: report 0, report 1."""
        values, index = several(inputs, 2)
        masses = [*self.law()[values], np.full(2, self.flip)]
        return rows(masses, index, blanket=blanket)

    def sample(self, x: ArrayLike, rng: np.random.Generator) -> IntArray:
        """Reports 0 or 1, the shape of `x` (integers 0 or 1)."""
        bits = integer_array("x", x, 2)
        return bits ^ (generator(rng).random(bits.shape) < self.flip)
