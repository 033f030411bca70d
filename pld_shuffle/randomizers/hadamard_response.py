"""Hadamard response: report a column of a Hadamard matrix on which the value's row is +1.

Structure (Acharya, Sun, Zhang, Hadamard response, AISTATS 2019, with one block). K is the smallest power of 2 with
K >= k + 1. Value x has row r = x + 1 of the K x K Sylvester matrix, whose entry at (r, c) is +1 iff r & c has even
parity. C_x is the set of the s = K/2 columns on which that row is +1. Reports in C_x have weight e^eps0, all others
weight 1, norm Z = s (e^eps0 + 1).

Two values share s/2 reports, so tv = (e^eps0 - 1) s / (2 Z). Column 0 belongs to every C_x, and no other does, since
the rows 1, 2, 4, ..., K/2 are in use; so gamma = (K - 1 + e^eps0) / Z.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .base import FloatArray, IntArray
from .joint import ValuesRandomizer


@dataclass(frozen=True, kw_only=True)
class HadamardResponse(ValuesRandomizer):
    """Hadamard response for the values 0 ... k-1; a report is an integer in 0 ... K-1.

    k: number of values, 2 ... 2^48. eps0: local epsilon, in (0, 700]. Raises TypeError or ValueError for anything else.
    """

    _most_values = 2**48

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

    def _masses(self, values: IntArray, blanket: bool) -> FloatArray:
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
        wrong = (_parity(row & column) == 0) != honest
        return np.where(wrong, column ^ (row & -row), column)


def _parity(words: IntArray) -> IntArray:
    """Parity of the number of ones of each non-negative int64."""
    for shift in (32, 16, 8, 4, 2, 1):
        words = words ^ (words >> shift)
    return words & 1
