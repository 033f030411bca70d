"""Aliases: what a sum over nodes adds to an integral over the contour, bounded by Chernoff.

A trapezoidal sum with period T gives, besides delta at eps, its values at eps + m T for all integers m other than 0,
times e^(c m T). None of them is negative, so above nothing has to be done. Below, with K the log moment function of
the loss L and any rate r,

    E (1 - e^(x - L))_+ <= exp(K(r) - r x) max over y >= 0 of e^(-r y) (1 - e^-y),

at the best of a few rates r > c for m > 0, and r < c for m < 0 (docs/theory.md, section 7).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Distances of the rates from c, in inverse deviations of the tilted loss.
RATES = np.array([1.0, 2.5, 4.5, 7.0, 10.0, 16.0, 40.0])


class TooExpensive(Exception):
    """So many nodes would cost more than a lattice."""


def log_peak(rate: Array) -> Array:
    """log of max over y >= 0 of e^(-rate y) (1 - e^-y), rate >= 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        power = np.where(rate > 0.0, rate * np.log(rate), 0.0)
    return np.asarray(power - (1.0 + rate) * np.log1p(rate))


def log_geometric(distance: Array) -> Array:
    """log of the sum over m >= 1 of e^(-m distance), distance > 0."""
    return np.asarray(-distance - np.log(-np.expm1(-distance)))
