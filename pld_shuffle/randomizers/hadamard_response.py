"""Hadamard response: report a column of a Hadamard matrix on which the value's row is +1.

Structure (Acharya, Sun, Zhang, Hadamard response, AISTATS 2019). B blocks of b columns, K = B b reports; b is the
smallest power of 2 with b >= k/B + 1. Value x belongs to block x div (b-1) and has row r = 1 + x mod (b-1) of the b x b
Sylvester matrix, whose entry at (r, c) is +1 iff r & c has even parity. C_x is the set of the s = b/2 columns of the
block on which that row is +1. Reports in C_x have weight e^eps0, all others weight 1, norm Z = s e^eps0 + K - s.

Two values of one block share s/2 reports, two values of different blocks none: so tv doubles where several blocks are
in use (the table of Wang et al. 2024 has s/2 throughout). With one block in use its column 0 belongs to every C_x, and
no other does, since the rows 1, 2, 4, ..., b/2 are in use; so gamma = (K - 1 + e^eps0) / Z there, and K / Z otherwise.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from ..numerics.validation import integer_in
from .base import FloatArray, IntArray
from .joint import ValuesRandomizer


@dataclass(frozen=True, kw_only=True)
class HadamardResponse(ValuesRandomizer):
    """Hadamard response for the values 0 ... k-1; a report is an integer in 0 ... K-1.

    k: number of values, 2 ... 2^48. eps0: local epsilon, in (0, 700]. blocks: B, a power of two up
    to 2^49; 1 is the choice for small eps0. Raises TypeError or ValueError for anything else.
    """

    blocks: int = 1

    _most_values = 2**48

    CHECKS: ClassVar = {"blocks": partial(integer_in, lowest=1, highest=2**49)}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.blocks & (self.blocks - 1):
            raise ValueError(f"blocks must be a power of two, got {self.blocks!r}")
        if not self.outputs < 2**62:
            raise ValueError(f"k={self.k!r}, blocks={self.blocks!r} need 2^62 reports or more")

    @property
    def width(self) -> int:
        """b, the number of columns of one block."""
        needed = -(-self.k // self.blocks) + 1
        return 1 << (needed - 1).bit_length()

    @property
    def favoured(self) -> int:
        """s = b/2, the number of reports with the larger weight."""
        return self.width // 2

    @property
    def blocks_used(self) -> int:
        """Number of blocks that hold at least one value."""
        return -(-self.k // (self.width - 1))

    @property
    def truth(self) -> float:
        """Probability of a report in C_x, s e^eps0 / Z."""
        return self.favoured * self._heavy

    @property
    def tv(self) -> float:
        """(e^eps0 - 1) s / Z if several blocks are in use, half of it otherwise."""
        private = self.favoured / 2 if self.blocks_used == 1 else self.favoured
        return -math.expm1(-self.eps0) * private * self._heavy

    @property
    def outputs(self) -> int:
        """Number of reports, K = B b."""
        return self.blocks * self.width

    def _masses(self, values: IntArray, blanket: bool) -> FloatArray:
        """Groups: which of the sets C_x have the report, and column 0 where the blanket needs it.

        The parities of a block's columns with some of its rows are uniform over a linear space.
        """
        home, row = self._place(values)
        counts: Counter[tuple[bool, ...]] = Counter()  # heavy under each input and the blanket
        for block in np.unique(home):
            here = home == block
            space = {0}  # words of parities: bit i belongs to input i
            for bit in range(self.width.bit_length() - 1):
                odd = (row >> bit & 1).astype(bool) & here
                word = sum(1 << i for i in np.flatnonzero(odd).tolist())
                space |= {other ^ word for other in space}
            for word in space:
                inside = [bool(here[i]) and not word >> i & 1 for i in range(values.size)]
                key = (*inside, False)
                counts[key] += self.width // len(space)
        if blanket and self.blocks_used == 1:
            counts[(True,) * values.size + (False,)] -= 1
            counts[(True,) * values.size + (True,)] += 1
        nowhere = self.blocks - np.unique(home).size
        counts[(False,) * (values.size + 1)] += nowhere * self.width
        heavy = np.array(list(counts)).T
        return np.array(list(counts.values())) * np.where(heavy, self._heavy, self._light)

    def kinds(self, given: Sequence[int] = ()) -> Sequence[int]:
        """One input of each kind, next to the given ones.

        In the blocks of the given ones: every sum of their rows modulo 2, and a row that is no such sum. And one input
        in a block of its own.

        They range over the completed code, all rows of all blocks in use. It is the code itself
        if the last block is full; otherwise some of these inputs may be k or larger, and bounds
        over all kinds hold for more values than there are.
        """
        home, row = self._place(np.array(sorted(set(given)), dtype=np.int64))
        found = set()
        for block in np.unique(home).tolist():
            sums = {0}
            for word in row[home == block].tolist():
                sums |= {other ^ word for other in sums}
            fresh = {r for r in (1 << j for j in range(self.width.bit_length() - 1)) if r not in sums}
            for r in (sums - {0}) | set(sorted(fresh)[:1]):
                found.add(block * (self.width - 1) + r - 1)
        empty = next(block for block in range(len(home) + 1) if block not in home)
        if empty < self.blocks_used:
            found.add(empty * (self.width - 1))
        return sorted(found)

    @property
    def _codewords(self) -> int:
        """Number of inputs of the completed code: all rows of all blocks in use; at least k."""
        return self.blocks_used * (self.width - 1)

    def _drawn(self, values: IntArray, rng: np.random.Generator) -> IntArray:
        """Reports in 0 ... K-1."""
        home, row = self._place(values)
        honest = rng.random(values.shape) < self.truth
        # The reports outside C_x: s of them inside the block, the others in the other blocks.
        outside = rng.integers(0, self.outputs - self.favoured, values.shape)
        at_home = honest | (outside < self.favoured)
        elsewhere = outside - self.favoured
        elsewhere = elsewhere + self.width * (elsewhere >= home * self.width)
        # A uniform column, with the lowest bit of the row flipped where its parity is wrong.
        column = rng.integers(0, self.width, values.shape)
        wrong = (_parity(row & column) == 0) != honest
        column = np.where(wrong, column ^ (row & -row), column)
        return np.where(at_home, home * self.width + column, elsewhere)

    @property
    def _heavy(self) -> float:
        """Mass of a report in C_x, e^eps0 / Z."""
        return 1 / (self.favoured + (self.outputs - self.favoured) * math.exp(-self.eps0))

    @property
    def _light(self) -> float:
        """Mass of a report outside C_x, 1 / Z."""
        return self._heavy * math.exp(-self.eps0)

    def _place(self, values: IntArray) -> tuple[IntArray, IntArray]:
        """Block and row of each value."""
        home, index = np.divmod(values, self.width - 1)
        return home, index + 1


def _parity(words: IntArray) -> IntArray:
    """Parity of the number of ones of each non-negative int64."""
    for shift in (32, 16, 8, 4, 2, 1):
        words = words ^ (words >> shift)
    return words & 1
