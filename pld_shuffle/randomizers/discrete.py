"""Any randomizer with a finite output law, its parameters computed from the matrix.

Notation: R_i is row i of the law, low(y) = min_i R_i(y), high(y) = max_i R_i(y).

    eps0 = log max_y high(y) / low(y),   tv = max_{i<j} TV(R_i, R_j),   gamma = sum_y low(y).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..numerics.validation import real_array
from .base import FloatArray, IntArray, LocalRandomizer, read_only, settle
from .joint import FiniteRandomizer, Types, merged, several

ROW_SUM_TOLERANCE = 1e-9
"""How far the sum of a given row may be from 1; rows are then divided by their sums."""

SAME_SUM = 2.0**-51
"""Rounding of the sum of a normalised row: 2^-53 per entry, on average over a row, and of the sum."""


#: Local randomizers that have the name of a mechanism, and what they take.
NOISES = {"Laplace": "eps0", "Gaussian": "sigma"}

TYPES_INPUTS, MOST_INPUTS = 16, 64
"""Most inputs for which the swap theorem is asked with several shared laws, and at all (`DiscreteRandomizer.types`)."""


@dataclass(frozen=True, init=False)
class DiscreteRandomizer(FiniteRandomizer):
    """The randomizer whose output law is `matrix`: rows are inputs, columns are reports.

    matrix: array-like of shape (inputs >= 2, outputs >= 1), entries >= 0, rows that sum to 1 within
    1e-9 (they are then normalised). Stored as a tuple of tuples, so that the object is hashable.
    eps0, p and q are inf if some report is possible under one input only. Identical rows give
    eps0 = 0, tv = 0, gamma = 1. Raises TypeError or ValueError for anything else.
    """

    mass_error = 1e-15

    matrix: tuple[tuple[float, ...], ...]

    def __init__(self, matrix: ArrayLike) -> None:
        rows = real_array("matrix", matrix)
        if not (rows.ndim == 2 and rows.shape[0] >= 2 and rows.shape[1] >= 1):
            raise ValueError(f"matrix must have shape (inputs >= 2, outputs >= 1), got {rows.shape}")
        if not bool(np.all((rows >= 0) & (rows <= 1 + ROW_SUM_TOLERANCE))):
            raise ValueError(f"matrix must hold probabilities, got {rows.min()} ... {rows.max()}")
        sums = np.array([math.fsum(row) for row in rows])
        if not bool(np.all(np.abs(sums - 1) <= ROW_SUM_TOLERANCE)):
            worst = int(np.argmax(np.abs(sums - 1)))
            raise ValueError(f"matrix: row {worst} must sum to 1, got {float(sums[worst])!r}")
        # Rows that sum to 1 within rounding stay: a matrix that was normalised comes back the same.
        sums[np.abs(sums - 1) <= SAME_SUM] = 1.0
        rows = rows / sums[:, np.newaxis]
        settle(self, matrix=tuple(tuple(map(float, row)) for row in rows))

    def __getstate__(self) -> dict[str, object]:
        """The matrix alone: a pickled array would come back writable."""
        return {"matrix": self.matrix}

    @property
    def eps0(self) -> float:
        """Log of the largest ratio in a column; 0 for identical rows, inf where the ratio is unbounded."""
        high, low = self.law().max(axis=0), self.law().min(axis=0)
        possible = high > 0
        with np.errstate(divide="ignore", over="ignore"):
            return math.log(max(1.0, float(np.max(high[possible] / low[possible]))))

    @cached_property
    def tv(self) -> float:  # type: ignore[override]
        """Largest total variation of two rows. O(inputs^2 outputs) time on the first call."""
        law = self.law()
        farthest = [law[np.argmax(np.abs(row - law).sum(axis=1))] for row in law]
        return min(1.0, max(0.5 * math.fsum(np.abs(row - far)) for row, far in zip(law, farthest, strict=True)))

    @property
    def inputs(self) -> int:
        return len(self.matrix)

    def law(self) -> FloatArray:
        """The matrix as an array of shape (inputs, reports), read-only."""
        return self._law

    def joint_law(self, inputs: Sequence[int], *, blanket: bool = False) -> FloatArray:
        """The rows of the matrix; reports with exactly equal ratios are merged."""
        values, index = several(inputs, self.inputs)
        masses = self._masses(values, blanket)
        return merged(masses[np.append(index, -1) if blanket else index])

    def _masses(self, values: IntArray, blanket: bool) -> FloatArray:
        return np.vstack([self.law()[values], self.law().min(axis=0)])

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

    def attacks(self, most: int) -> Iterable[tuple[int, int, int]]:
        """Where they are too many, those that tell most: of the largest E L^2, L = (R_first - R_second)/R_others.

        And of the largest E max(L, 0)^2 farther out, at s = e^(eps0/2).
        """
        count = self.inputs
        if (count * (count - 1)) * count <= most or not math.isfinite(self.eps0):
            return super().attacks(most)
        found: dict[tuple[int, int, int], None] = {}
        law = self.law()[:, self.law().max(axis=0) > 0.0]
        for s, least in ((1.0, -math.inf), (math.exp(0.5 * self.eps0), 0.0)):
            told = np.array([np.maximum(row - s * law, least) ** 2 @ (1.0 / law).T for row in law])
            best = np.argsort(-told, axis=None)[: most // 2]
            triples = np.transpose(np.unravel_index(best, told.shape)).tolist()
            found |= {(first, second, others): None for first, second, others in triples if first != second}
        return list(found)

    def types(self, users: int = 1) -> Iterator[Types]:
        """None where the swap theorem does not apply: if a report is impossible under one input only.

        Beyond 16 inputs V is the law of the target's first one, and laws are rows of the matrix as they are; beyond
        64 inputs there are none, since the number of laws is of the order of inputs^3.
        """
        if not math.isfinite(self.eps0) or self.inputs > MOST_INPUTS:
            return
        if self.inputs <= TYPES_INPUTS:
            yield from super().types()
            return
        law = merged(self.law())
        for pair, (first, second) in enumerate(self.ordered_pairs()):
            yield Types(pair, "first", tuple((law[first], law[second], law[first], other) for other in law))

    def _drawn(self, values: IntArray, rng: np.random.Generator) -> IntArray:
        reports = np.empty(values.shape, dtype=np.int64)
        for value in np.unique(values):
            here = values == value
            reports[here] = rng.choice(self.law().shape[1], int(here.sum()), p=self.law()[value])
        return reports

    @cached_property
    def _law(self) -> FloatArray:
        return read_only(np.array(self.matrix))


def as_randomizer(value: Any) -> LocalRandomizer:
    """A randomizer as it is, the matrix of a law wrapped; TypeError, which says what else may be given, otherwise."""
    if isinstance(value, (np.ndarray, list, tuple)):
        return DiscreteRandomizer(value)
    if not isinstance(value, LocalRandomizer):
        name = type(value).__name__
        if name in NOISES:
            raise TypeError(
                f"randomizer must be the noise of one user, randomizers.{name}({NOISES[name]}=...), got the noise of a"
                f" curator, {value!r}"
            )
        raise TypeError(
            "randomizer must be one of pld_shuffle.randomizers or the matrix of its law (a row of probabilities for"
            f" each input), got {value!r}; of another one give what is known: ShuffledLDP(eps0, n), or with its total"
            " variation ShuffledRandomizer(n, eps0=..., tv=...)"
        )
    return value


def known_randomizer(name: str, value: Any) -> LocalRandomizer:
    """`value`, if its shuffled reports can be analysed."""
    known = as_randomizer(value)
    if known.unhidden is not None:
        raise ValueError(f"{name}: {known.unhidden}")
    return known
