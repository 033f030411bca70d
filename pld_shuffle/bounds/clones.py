"""delta(epsilon) of one round of a clones pair, from above, by binomial tails for each number of clones.

The pair (Feldman, McMillan, Talwar 2021, Theorem 3.2): C ~ Bin(n-1, p) clones, m = C + 1, heads A
~ Bin(m, 1/2), t = (2A - m)/m, densities 1 + theta t and 1 - theta t relative to Bin(m, 1/2), theta
= tanh(eps0/2). With tau = tanh(epsilon/2), k0 = m (1 + tau/theta)/2,

    delta_m = E[((1 + theta t) - e^eps (1 - theta t))_+] = (2 theta (1 + e^eps)/m) E[(A - k0)_+],
    E[(A - k0)_+] = (a/2) P[A = a] - (k0 - m/2) P[A >= a],   a = ceil(k0).

delta_m falls with m (one more fair coin is post-processing), so a whole bucket of clone counts is
replaced by its smallest: *the sum is an upper bound* by construction. Up to 4000 counts around the
mean get their own term; otherwise 3000 buckets, measured to overstate delta by at most 1.6e-4
relative at delta = 1e-12, 1e-3 at 1e-60 and 4e-3 at 1e-200 (least users), less for larger n.

Rounding: P[A >= a] is SciPy's `binom.sf` (Boost), measured relative error up to 4e-15 sqrt(m)
(against 50 digits, m <= 10^9); the difference above amplifies it by about 2 log(1/P). Seven times
the measured error, amplified, is added to every term. This last step is measured, not proved.
delta below 1e-300 is reported as 1e-300.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from ..numerics.log_binomial import log_binomial_pmf
from ..numerics.solving import smallest_satisfying
from .domain import log_ratio

Floats = NDArray[np.float64]

_FLOOR = 1e-300
_SINGLE = 4000
_BUCKETS = 3000
_TAIL_ERROR = 3e-14  # times sqrt(m): seven times the largest measured relative error of the tail


class ClonesPair:
    """The pair with clone probability `clone`, both sides together; delta may be asked many times."""

    def __init__(self, *, eps0: float, n: int, clone: float) -> None:
        self._eps0 = eps0
        self._theta = math.tanh(eps0 / 2)
        others = n - 1
        clone *= 1 - 1e-14  # fewer clones: the safe side
        starts = _bucket_starts(others, clone)
        self._clones = starts
        # P[C < start of the next bucket]; the last bucket ends at n
        self._below_next = np.append(binom.cdf(starts[1:] - 1, others, clone), 1.0)

    def delta(self, epsilon: float) -> float:
        """Upper bound on delta(epsilon), epsilon >= 0; exactly 0 for epsilon >= eps0. O(number of buckets)."""
        if epsilon >= self._eps0:
            return 0.0
        values = coin_pair_delta(self._clones + 1.0, theta=self._theta, epsilon=epsilon)
        # sum_j value_j (F_j - F_{j-1}) rearranged into non-negative terms
        steps = np.append(np.maximum(values[:-1] - values[1:], 0.0), values[-1])
        total = float(np.dot(steps, self._below_next)) * (1 + 1e-9)
        return min(max(total, _FLOOR), 1.0)

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon with delta(epsilon) <= delta, to a relative 1e-9 and on the safe side."""
        solution = smallest_satisfying(
            lambda epsilon: log_ratio(self.delta(epsilon), delta),
            low=1e-12 * self._eps0,
            high=self._eps0,
            steps=1,
            rtol=1e-10,
        )
        assert solution is not None  # delta(eps0) = 0
        return solution


def coin_pair_delta(coins: Floats, *, theta: float, epsilon: float) -> Floats:
    """Upper bound on delta(epsilon) of the tilted-coin pair with `coins` fair coins, elementwise.

    0 < theta < 1, 0 <= epsilon; equal to the exact value up to the rounding allowance of the
    module. O(len(coins)).
    """
    lean = math.tanh(epsilon / 2) / theta  # t must exceed this
    a = np.ceil(coins * (1 + lean) / 2)
    reachable = a <= coins
    safe = np.where(reachable, a, coins)
    point = np.exp(log_binomial_pmf(safe, trials=coins, chance=0.5))
    tail = binom.sf(safe - 1, coins, 0.5)
    left, right = 0.5 * safe * point, 0.5 * coins * lean * tail
    excess = np.maximum(left - right, 0.0) + _TAIL_ERROR * np.sqrt(coins) * (left + right)
    # where no outcome exceeds the threshold, rounding of k0 alone could hide (m - k0)_+ < m 1e-15
    unreachable = np.exp2(-coins) * coins * 1e-15
    scale = 2 * theta * (1 + math.exp(epsilon)) / coins
    values = scale * np.where(reachable, excess, unreachable)
    return np.asarray(np.minimum(values, 1.0), dtype=np.float64)


def _bucket_starts(others: int, clone: float) -> Floats:
    """The smallest clone count of each bucket, ascending from 0."""
    mean = others * clone
    sigma = math.sqrt(mean * (1 - clone)) + 1
    low = max(0, math.floor(mean - 40 * sigma))
    fine = max(0, math.floor(mean - 12 * sigma))
    high = min(others, math.ceil(mean + 10 * sigma))
    if high - low <= _SINGLE:
        starts = np.arange(low, high + 1, dtype=np.float64)
    else:
        coarse = np.linspace(low, fine, _BUCKETS // 6)
        starts = np.concatenate([coarse, np.linspace(fine, high, _BUCKETS)])
    return np.unique(np.concatenate([[0.0], np.floor(starts)]))
