"""Binomial windows: where the mass of Bin(n, p) is, with a certified bound on what lies outside.

Guarantee: both functions return integers (low, high) with P(X < low) <= missed and
P(X > high) <= missed for X ~ Bin(n, p).

* `hoeffding_window`: Hoeffding 1963, as used in Koskela, Heikkila and Honkela, Lemma 6. The half width
  sqrt(n log(1/missed) / 2) does not know p.
* `chernoff_window`: the Chernoff bound exp(-n KL(x/n || p)); about sqrt(4 p (1-p)) times narrower.
  The package uses this one.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def hoeffding_window(n: int, p: float, missed: float) -> tuple[int, int]:
    """Integers (low, high): each tail of Bin(n, p) outside holds at most `missed`. O(1)."""
    half_width = math.sqrt(0.5 * n * math.log(1.0 / missed))
    return max(0, math.floor(n * p - half_width)), min(n, math.ceil(n * p + half_width))


def chernoff_window(n: int, p: float, missed: float) -> tuple[int, int]:
    """Integers (low, high): each tail of Bin(n, p) outside holds at most `missed`. O(log n).

    The exponent is rounded to about 1e-16 n p relative to its leading terms; a slack of 1e-6 in the
    exponent covers that for every n up to 1e12 at these scales (terms cancel from |x - np|, not n).
    """
    if p <= 0.0 or n == 0:
        return 0, 0
    if p >= 1.0:
        return n, n
    need = math.log(1.0 / missed) + 1e-6
    mean, rest_mean = n * p, n * (1.0 - p)  # 1 - p is exact where it matters, for p >= 1/2

    def exponent(x: int) -> float:
        shift = x - mean if p < 0.5 else (x - n) + rest_mean
        first = x * math.log1p(shift / mean) if x > 0 else 0.0
        rest = (n - x) * math.log1p(-shift / rest_mean) if x < n else 0.0
        return first + rest

    # P(X <= x) <= exp(-exponent(x)) below the mean: the largest such x that satisfies the need.
    inside, outside = math.floor(mean), -1
    while inside - outside > 1:
        middle = (inside + outside) // 2
        if exponent(middle) >= need:
            outside = middle
        else:
            inside = middle
    low = outside + 1
    inside, outside = math.ceil(mean), n + 1
    while outside - inside > 1:
        middle = (inside + outside) // 2
        if exponent(middle) >= need:
            outside = middle
        else:
            inside = middle
    return low, min(outside - 1, n)


def binomial_window(n: int, p: float, low: int, high: int) -> NDArray[np.float64]:
    """Bin(n, p) on low .. high, normalised to 1 there; rounding as in `kernels.binomial_pmf`."""
    from . import kernels

    out = np.ones(high - low + 1)
    if 0.0 < p < 1.0 and n > 0:
        kernels.binomial_pmf(n, p, low, high, out)
    return out
