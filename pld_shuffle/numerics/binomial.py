"""Binomial windows: where the mass of Bin(n, p) is, with a certified bound on what lies outside.

`chernoff_window` returns integers (low, high) with P(X < low) <= missed and P(X > high) <= missed for
X ~ Bin(n, p), by the Chernoff bound exp(-n KL(x/n || p)). It is about sqrt(4 p (1-p)) times narrower than
Hoeffding's (Koskela, Heikkila and Honkela, Lemma 6), which does not know p.

`counts` is the law of a number of successes in independent trials, in classes of one probability each: a binomial
law, or a Poisson-binomial one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .sides import ROUNDOFF, Array

MAX_ATOMS = 5e7


def chernoff_window(n: int, p: float, truncated_mass: float) -> tuple[int, int]:
    """Integers (low, high): each tail of Bin(n, p) outside holds at most `truncated_mass`. O(log n).

    The exponent is rounded to about 1e-16 n p relative to its leading terms; a slack of 1e-6 in the
    exponent covers that for every n up to 1e12 at these scales (terms cancel from |x - np|, not n).
    """
    if p <= 0.0 or n == 0:
        return 0, 0
    if p >= 1.0:
        return n, n
    need = math.log(1.0 / truncated_mass) + 1e-6
    mean, rest_mean = n * p, n * (1.0 - p)  # 1 - p is exact where it matters, for p >= 1/2

    def exponent(x: int) -> float:
        shift = x - mean if p < 0.5 else (x - n) + rest_mean
        first = x * math.log1p(shift / mean) if x > 0 else 0.0
        rest = (n - x) * math.log1p(-shift / rest_mean) if x < n else 0.0
        return first + rest

    def first_outside(inside: int, outside: int) -> int:
        """The x nearest to the mean whose tail, of mass at most exp(-exponent(x)), satisfies the need."""
        while abs(outside - inside) > 1:
            middle = (inside + outside) // 2
            if exponent(middle) >= need:
                outside = middle
            else:
                inside = middle
        return outside

    return first_outside(math.floor(mean), -1) + 1, first_outside(math.ceil(mean), n + 1) - 1


def binomial_window(n: int, p: float, low: int, high: int) -> Array:
    """Bin(n, p) on low .. high, normalised to 1 there. MemoryError beyond MAX_ATOMS of them.

    By ratios outwards from the mode; the scale is the sum, never lgamma. The relative rounding error of an entry is at
    most 5 u (|x - mode| + 2) plus that of the sum.
    """
    if not high - low < MAX_ATOMS:
        raise MemoryError(f"a window of {high - low} counts is over the limit of {MAX_ATOMS:.0f}")
    if not (0.0 < p < 1.0 and n > 0):
        return np.ones(high - low + 1)
    mode, odds = min(max(int((n + 1) * p), low), high), p / (1.0 - p)
    up, down = np.arange(mode, high), np.arange(mode, low, -1)
    right = np.cumprod(odds * ((n - up) / (up + 1.0)))
    left = np.cumprod(down / ((n - down + 1.0) * odds))
    masses = np.concatenate((left[::-1], [1.0], right))
    return np.asarray(masses / masses.sum())


class Trials(NamedTuple):
    """So many independent trials of one probability; `rest` is 1 - probability, kept apart as either may be tiny."""

    number: int
    probability: float
    rest: float


class Counts(NamedTuple):
    """The law of a number of successes on the window low, low + 1, ..., normalised to 1 there.

    mode : roughly the likeliest number. error, drift : relative error of its mass, and what every step away from it
    adds. spread : the mean distance from it, at most. below, above : probability that a class leaves its window on that
    side, at most.
    """

    low: int
    masses: Array
    mode: int
    error: float
    drift: float
    spread: float
    below: float
    above: float

    @property
    def high(self) -> int:
        """The largest number in the window."""
        return self.low + self.masses.size - 1

    def error_at(self, number: Any) -> Any:
        """Relative error of the mass of a number, or of many."""
        return self.error + self.drift * np.abs(number - self.mode)

    @property
    def largest_error(self) -> float:
        """Relative error of any mass."""
        return float(max(self.error_at(self.low), self.error_at(self.high)))


def counts(classes: Sequence[Trials], truncated_mass: float, spare: int = 0) -> Counts:
    """The law of the successes in all trials; each tail holds at most `truncated_mass`, beyond `spare` numbers more.

    Every class by itself on its window, and their convolution: all terms are positive, so nothing cancels. Cost
    O(width) for one class, and the product of the widths, which are O(sqrt(count)), for each further one.
    """
    found = Counts(0, np.ones(1), 0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for part in classes:
        one = _binomial_counts(part, truncated_mass / len(classes), spare)
        if found.high == found.low == 0:
            found = one._replace(
                error=found.error + one.error, below=found.below + one.below, above=found.above + one.above
            )
            continue
        masses = np.convolve(found.masses, one.masses)
        summing = ROUNDOFF * (4.0 + min(found.masses.size, one.masses.size))
        worst = found.largest_error + one.largest_error + summing
        below, above = found.below + one.below, found.above + one.above
        found = Counts(found.low + one.low, masses, 0, worst, 0.0, 0.0, below, above)
    return found


def _binomial_counts(trials: Trials, truncated_mass: float, spare: int) -> Counts:
    """The law of one class."""
    count, rare = trials.number, min(trials.probability, trials.rest)
    # The rarer of the two outcomes is the one whose probability keeps its precision.
    low, high = chernoff_window(count, rare, truncated_mass)
    low, high = max(low - spare, 0), min(high + spare, count)
    masses = binomial_window(count, rare, low, high)
    if rare < trials.probability:
        low, high, masses = count - high, count - low, masses[::-1]
    # Relative rounding; see `binomial_window`. The rate itself is rounded, too: log pmf moves by (x - np) / (1 - p)
    # per relative move of p.
    drift = 6.0 + 9.0 / (1.0 - rare) if rare > 0.0 else 0.0
    # The sum's error is at most that of its terms, at their mean distance from the mode.
    inside = 1.0 - 2.0 * truncated_mass
    distance = float(masses.size)
    if inside > 0.0:
        deviation = math.sqrt(count * rare * (1.0 - rare))
        distance = min(distance, 1.01 * (deviation + 1.0) / inside)
    error = 16.0 + drift * (1.0 + distance) + masses.size
    below, above = truncated_mass if low > 0 else 0.0, truncated_mass if high < count else 0.0
    mode = int(trials.probability * (count + 1))
    return Counts(low, masses, mode, ROUNDOFF * error, ROUNDOFF * drift, distance, below, above)
