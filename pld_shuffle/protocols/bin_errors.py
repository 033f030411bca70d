"""Estimated counts of a histogram's bins, and how far they are off: what all histograms share.

The estimate of a bin has a mean squared error that is known for every true count (`_variances`, one number a count).
Standard errors put the estimated counts into it, moved into [0, n].
"""

from __future__ import annotations

import typing
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..randomizers.base import FloatArray, IntArray
from ..randomizers.border import integer_array
from .expected_error import ExpectedError


class HistogramEstimate(NamedTuple):
    """Estimates of the counts and their standard errors, both of shape (k,).

    The standard errors put the estimated counts, moved into [0, n], into the exact mean squared error.
    """

    counts: FloatArray
    standard_errors: FloatArray


class _Histogram(typing.Protocol):
    @property
    def k(self) -> int: ...
    @property
    def n(self) -> int: ...
    def _variances(self, counts: NDArray[Any]) -> FloatArray: ...


class BinErrors:
    """Mixin: the errors of k estimated counts of n values, from `_variances`, which is largest at 0 or at n."""

    def bin_errors(self: _Histogram, counts: ArrayLike) -> FloatArray:
        """Exact root mean squared error of every estimated count, for the true `counts`, shape (k,).

        ValueError unless `counts` are k non-negative integers that sum to n.
        """
        return np.asarray(np.sqrt(self._variances(true_counts(counts, self.k, self.n))))

    def expected_error(self: _Histogram, counts: ArrayLike | None = None) -> ExpectedError:
        """Mean squared error of one bin: of the worst bin for the true `counts`, or of any data.

        `counts`: shape (k,), non-negative integers that sum to n; None asks for the worst data.
        """
        worst = np.array([0, self.n])
        values = worst if counts is None else true_counts(counts, self.k, self.n)
        return ExpectedError(exact=float(np.max(self._variances(values))))

    def _estimate(self: _Histogram, counts: NDArray[Any]) -> HistogramEstimate:
        """The estimated counts with their standard errors."""
        variances = self._variances(np.clip(counts, 0, self.n))
        return HistogramEstimate(counts=counts, standard_errors=np.sqrt(variances))


def true_counts(counts: ArrayLike, k: int, n: int) -> IntArray:
    """`counts` as integers; ValueError unless they are k non-negative ones that sum to n."""
    values = integer_array("counts", counts, n + 1)
    if not (values.shape == (k,) and int(values.sum()) == n):
        raise ValueError(f"counts must be {k} numbers that sum to n={n}")
    return values
