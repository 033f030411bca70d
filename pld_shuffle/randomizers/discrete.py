"""Any randomizer with a finite output law, its parameters computed from the matrix.

Notation: R_i is row i of the law, low(y) = min_i R_i(y), high(y) = max_i R_i(y).

    p = q = max_y high(y) / low(y),     eps0 = log p,
    tv = max_{i<j} TV(R_i, R_j),        gamma = sum_y low(y).

Over all pairs and all values of the others, max(R_i, R_j) / R_l at y is largest for the largest
over the smallest entry of the column: p and q agree. For a *single* pair they differ, see `pair`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..numerics.validation import integer_in, real_array
from .base import FloatArray, IntArray, read_only
from .border import generator, integer_array
from .joint import FromJointLaw, Types, merged, several

ROW_SUM_TOLERANCE = 1e-9
"""How far the sum of a given row may be from 1; rows are then divided by their sums."""

SAME_SUM = 2.0**-51
"""Rounding of the sum of a normalised row: 2^-53 per entry, on average over a row, and of the sum."""


TYPES_INPUTS = 16
"""Most inputs whose pairs and other values are all listed (`DiscreteRandomizer.types`)."""


class PairParameters(NamedTuple):
    """The parameters (p, tv, q) of one pair of inputs, when the others may hold any input."""

    first: int
    second: int
    p: float
    tv: float
    q: float


@dataclass(frozen=True, init=False)
class DiscreteRandomizer(FromJointLaw):
    """The randomizer whose output law is `matrix`: rows are inputs, columns are reports.

    matrix: array-like of shape (inputs >= 2, outputs >= 1), entries >= 0, rows that sum to 1 within
    1e-9 (they are then normalised). Stored as a tuple of tuples, so that the object is hashable.
    eps0, p and q are inf if some report is possible under one input only. Identical rows give
    eps0 = 0, tv = 0, gamma = 1. Raises TypeError or ValueError for anything else.
    """

    matrix: tuple[tuple[float, ...], ...]

    def __init__(self, matrix: ArrayLike) -> None:
        rows = real_array("matrix", matrix)
        if not (rows.ndim == 2 and rows.shape[0] >= 2 and rows.shape[1] >= 1):
            raise ValueError(
                f"matrix must have shape (inputs >= 2, outputs >= 1), got {rows.shape}"
            )
        if not bool(np.all((rows >= 0) & (rows <= 1 + ROW_SUM_TOLERANCE))):
            raise ValueError(f"matrix must hold probabilities, got {rows.min()} ... {rows.max()}")
        sums = np.array([math.fsum(row) for row in rows])
        if not bool(np.all(np.abs(sums - 1) <= ROW_SUM_TOLERANCE)):
            worst = int(np.argmax(np.abs(sums - 1)))
            raise ValueError(f"matrix: row {worst} must sum to 1, got {sums[worst]!r}")
        # Rows that sum to 1 within rounding stay: a matrix that was normalised comes back the same.
        sums[np.abs(sums - 1) <= SAME_SUM] = 1.0
        rows = rows / sums[:, np.newaxis]
        object.__setattr__(self, "matrix", tuple(tuple(map(float, row)) for row in rows))

    def __getstate__(self) -> dict[str, object]:
        """The matrix alone: a pickled array would come back writable."""
        return {"matrix": self.matrix}

    @property
    def delta0(self) -> float:
        """Zero: the guarantee, if there is one, is pure."""
        return 0.0

    @property
    def eps0(self) -> float:
        """log p; 0 for identical rows, inf where the likelihood ratio is unbounded."""
        return math.log(self.p)

    @cached_property
    def p(self) -> float:
        """Largest ratio of two entries of one column (columns of zeros do not count)."""
        return _largest_ratio(self.law().max(axis=0), self.law().min(axis=0))

    @property
    def q(self) -> float:
        """Equal to p."""
        return self.p

    @property
    def tv(self) -> float:
        """Largest total variation of two rows. O(inputs^2 outputs) time on the first call."""
        return self.farthest_pair.tv

    @cached_property
    def gamma(self) -> float:
        """Sum of the column minima."""
        return min(1.0, math.fsum(self.law().min(axis=0)))

    @property
    def inputs(self) -> int:
        """Number of inputs."""
        return len(self.matrix)

    @property
    def outputs(self) -> int:
        """Number of reports."""
        return len(self.matrix[0])

    def law(self) -> FloatArray:
        """Shape (inputs, outputs), read-only."""
        return self._law

    def pair(self, first: int, second: int) -> PairParameters:
        """Parameters of one pair of different inputs; the others may hold any input."""
        i = integer_in("first", first, 0, self.inputs - 1)
        j = integer_in("second", second, 0, self.inputs - 1)
        if i == j:
            raise ValueError(f"first and second must differ, got {first!r} twice")
        one, two = self.law()[i], self.law()[j]
        larger = np.maximum(one, two)
        return PairParameters(
            first=i,
            second=j,
            p=_largest_ratio(larger, np.minimum(one, two)),
            tv=min(1.0, 0.5 * math.fsum(np.abs(one - two))),
            q=_largest_ratio(larger, self.law().min(axis=0)),
        )

    @cached_property
    def pairs(self) -> tuple[PairParameters, ...]:
        """All pairs first < second. O(inputs^2 outputs) time."""
        return tuple(self.pair(i, j) for i, j in combinations(range(self.inputs), 2))

    @property
    def worst_pair(self) -> PairParameters:
        """A pair that attains eps0; among those (to 1e-12 relative) one of largest tv."""
        level = max(pair.p for pair in self.pairs)
        candidates = [pair for pair in self.pairs if pair.p >= level * (1 - 1e-12)]
        return max(candidates, key=lambda pair: pair.tv)

    @property
    def farthest_pair(self) -> PairParameters:
        """A pair that attains tv, the first one in case of ties."""
        return max(self.pairs, key=lambda pair: pair.tv)

    def columns(self, reports: ArrayLike) -> IntArray:
        """A report is its own column."""
        return integer_array("reports", reports, self.outputs)

    def joint_law(self, inputs: Sequence[int], *, blanket: bool = False) -> FloatArray:
        """The rows of the matrix; reports with exactly equal ratios are merged."""
        values, index = several(inputs, self.inputs)
        law = self.law()
        return merged(np.vstack([law[values][index], law.min(axis=0)][: 1 + blanket]))

    def kinds(self, given: Sequence[int] = ()) -> Sequence[int]:
        """All inputs: nothing is known about symmetries."""
        return range(self.inputs)

    def shared_values(self, first: int, second: int) -> Sequence[int]:
        """The target's inputs and the one that tells most about it if all others hold it.

        That is the input w of the largest sum of (R_first - R_second)^2 / R_w.
        """
        square = (self.law()[first] - self.law()[second]) ** 2
        seen = square > 0
        told = np.sum(square[seen] / self.law()[:, seen], axis=1)
        return sorted({first, second, int(np.argmax(told))})

    def types(self) -> Iterator[Types]:
        """None where the swap theorem does not apply, or would take too long.

        It does not apply if a report is impossible under one input only. It is not asked for more than 16 inputs,
        since the number of laws is of the order of inputs^3.
        """
        if math.isfinite(self.p) and self.inputs <= TYPES_INPUTS:
            yield from super().types()

    def sample(self, x: ArrayLike, rng: np.random.Generator) -> IntArray:
        """Reports in 0 ... outputs-1, the shape of `x` (integers in 0 ... inputs-1)."""
        values = integer_array("x", x, self.inputs)
        draws = generator(rng).random(values.shape)
        reports = np.empty(values.shape, dtype=np.int64)
        for value in np.unique(values):
            here = values == value
            reports[here] = np.searchsorted(self._cumulative[value], draws[here], side="right")
        return reports

    @cached_property
    def _law(self) -> FloatArray:
        return read_only(np.array(self.matrix))

    @cached_property
    def _cumulative(self) -> FloatArray:
        """Cumulative rows, 1 from the last possible report on: rounding must not select another."""
        sums = np.minimum(np.cumsum(self.law(), axis=1), 1.0)
        for row, sum_row in zip(self.law(), sums, strict=True):
            sum_row[np.flatnonzero(row)[-1] :] = 1.0
        return read_only(sums)


def _largest_ratio(high: FloatArray, low: FloatArray) -> float:
    """max of high / low over the columns with high > 0; inf where low is 0."""
    possible = high > 0
    with np.errstate(divide="ignore", over="ignore"):
        return max(1.0, float(np.max(high[possible] / low[possible])))
