"""Reading answers off a composition: both sides, with everything neglected put on the safe side."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from ..numerics.convolution import Law, Reader
from ..numerics.sides import Bounds
from ..pairs.gaussian import gaussian_delta, root
from .one_side import OneSide

EPSILON_WIDTH = 1e-9  # an epsilon known to so much needs no relative accuracy in delta
RELATIVE_DOWN_TO = 1e-100  # rtol is promised for deltas above this


class Reading(ABC):
    """Certified bounds on delta at any epsilon, good near some."""

    @abstractmethod
    def lower(self, eps: float) -> float:
        """Certified lower bound on delta(eps)."""

    @abstractmethod
    def upper(self, eps: float) -> float:
        """Certified upper bound on delta(eps)."""

    def noise(self, eps: float) -> float:
        """Relative size at eps of what transforms may have got wrong."""
        return 0.0

    def missed(self, eps: float) -> float:
        """Relative size at eps of mass that windows missed."""
        return 0.0

    def width(self, eps: float) -> float:
        """upper / lower - 1 at eps."""
        lower = self.lower(eps)
        return self.upper(eps) / lower - 1.0 if lower > 0.0 else math.inf


class GaussianReading(Reading):
    """Gaussian noise alone: the closed form."""

    def __init__(self, square: Bounds) -> None:
        self._mu = root(square)

    def lower(self, eps: float) -> float:
        return float(self._at(eps).lower)

    def upper(self, eps: float) -> float:
        return float(self._at(eps).upper)

    def _at(self, eps: float) -> Bounds:
        if eps == math.inf:
            return Bounds(0.0, 0.0)
        lower, upper = gaussian_delta(self._mu, np.array([eps]))
        return Bounds(lower[0], upper[0])


class Composed(Reading):
    """Both sides of a composition under one tilt: reads delta near the tilted mean."""

    def __init__(self, lower: Reader, upper: Reader, infinity: Bounds, slack: float) -> None:
        self._lower = lower
        self._upper = upper
        self._infinity = infinity
        self._slack = slack

    @classmethod
    def of(cls, lower: OneSide, lower_law: Law, upper: OneSide, upper_law: Law) -> Composed:
        """Put the two sides of one attempt together."""
        slack = max(lower.slack, upper.slack) * (1.0 + 1e-9)
        # Each is 1 - prod (1 - w): a few ulp, and the masses w carry their own allowance.
        infinity = Bounds(
            lower.infinity * (1.0 - 2e-15) + 0.0, min(1.0, upper.infinity * (1.0 + 2e-15))
        )
        return cls(Reader(lower_law), Reader(upper_law), infinity, slack)

    def lower(self, eps: float) -> float:
        """Certified lower bound on delta(eps)."""
        if eps == math.inf:
            return float(self._infinity.lower)
        shift = self._slack + 1e-15 * eps
        finite = self._lower.bracket(eps + shift)[0]
        return float(min(1.0, (finite + self._infinity.lower) * (1.0 - 1e-15)))

    def upper(self, eps: float) -> float:
        """Certified upper bound on delta(eps)."""
        if eps == math.inf:
            return float(self._infinity.upper)
        shift = self._slack + 1e-15 * eps
        finite = self._upper.bracket(eps - shift)[1]
        return float(min(1.0, (finite + self._infinity.upper) * (1.0 + 1e-15)))

    def noise(self, eps: float) -> float:
        """Relative size at eps of what windows and transforms may have got wrong."""
        return max(self._lower.noise(eps), self._upper.noise(eps))

    def missed(self, eps: float) -> float:
        """Relative size at eps of the upper side's mass at infinity, most of it missed by windows."""
        lower = self.lower(eps)
        return (
            float(self._infinity.upper - self._infinity.lower) / lower if lower > 0.0 else math.inf
        )


@dataclass(frozen=True)
class DeltaQuestion:
    """What is delta at this epsilon?"""

    eps: float

    def answer(self, composed: Reading, max_loss: float) -> Bounds:
        return Bounds(composed.lower(self.eps), composed.upper(self.eps))

    def place(self, found: Bounds) -> float:
        """Where the answer is read off."""
        return self.eps

    def promised(self, found: Bounds) -> bool:
        """Whether rtol is promised there."""
        return bool(found.upper >= RELATIVE_DOWN_TO)

    def log_delta(self, found: Bounds) -> float:
        return math.log(max(found.lower or found.upper, 1e-300))

    def width(self, composed: Reading, found: Bounds) -> float:
        if found.upper == found.lower:
            return 0.0
        if found.upper < found.lower:
            raise ArithmeticError(f"inverted bracket {found} at {self}")
        return float(found.upper / found.lower - 1.0) if found.lower > 0.0 else math.inf


@dataclass(frozen=True)
class EpsilonQuestion:
    """What is the smallest epsilon >= 0 with delta(epsilon) <= delta?"""

    delta: float

    def answer(self, composed: Reading, max_loss: float) -> Bounds:
        upper = self._least_proven(composed, max_loss)
        return Bounds(self._largest_excluded(composed, upper), upper)

    def _least_proven(self, composed: Reading, max_loss: float) -> float:
        """The least eps with upper(eps) <= delta; upper decreases everywhere."""
        if composed.upper(0.0) <= self.delta:
            return 0.0
        low, high = 0.0, 1.0
        while high < max_loss and composed.upper(high) > self.delta:
            low, high = high, 2.0 * high
            if high > 1e15:
                return max_loss
        high = min(high, max_loss)
        while high - low > 1e-15 * high:
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
            if composed.upper(middle) <= self.delta:
                high = middle
            else:
                low = middle
        return high

    def _largest_excluded(self, composed: Reading, upper: float) -> float:
        """The largest eps near `upper` with lower(eps) > delta, 0 if none is found.

        Far from the tilted mean the certificate eats the lower bound, so the search starts at `upper`.
        """
        stride = 1e-9 * upper if upper < math.inf else 0.0
        high = low = upper
        while composed.lower(low) <= self.delta:
            if low <= 0.0 or stride == 0.0:
                return 0.0
            high, low = low, max(0.0, low - stride)
            stride *= 2.0
        while high - low > 1e-15 * high:
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
            if composed.lower(middle) > self.delta:
                low = middle
            else:
                high = middle
        return low

    def place(self, found: Bounds) -> float:
        """Where the answer is read off."""
        return float(found.upper)

    def promised(self, found: Bounds) -> bool:
        """Whether rtol is promised there."""
        return self.delta >= RELATIVE_DOWN_TO

    def log_delta(self, found: Bounds) -> float:
        return math.log(self.delta)

    def width(self, composed: Reading, found: Bounds) -> float:
        if found.upper < found.lower:
            raise ArithmeticError(f"inverted bracket {found} at {self}")
        # Near the pure-DP limit delta falls to 0 within rounding: there epsilon itself must be known.
        if found.upper <= found.lower * (1.0 + EPSILON_WIDTH):
            return 0.0
        if found.upper == math.inf:
            return math.inf
        # delta at the two ends bounds the bracket of delta anywhere between them.
        return max(composed.width(found.upper), composed.width(found.lower))
