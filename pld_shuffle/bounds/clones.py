"""Clones and stronger clones: Feldman, McMillan, Talwar, FOCS 2021 and SODA 2023; any eps0-LDP randomizer.

Every report of another user is, with probability p, a "clone": a draw of the even mixture of the target's two possible
laws. p = e^-eps0 (Hiding among the clones, Theorem 3.2), or 2/(e^eps0 + 1) (Stronger privacy amplification by
shuffling). The pair: C ~ Bin(n-1, p) clones, m = C + 1, heads A ~ Bin(m, 1/2), t = (2A - m)/m, densities 1 + theta t
and 1 - theta t relative to Bin(m, 1/2), theta = tanh(eps0/2). `Clones` and `StrongerClones` evaluate it numerically.
The closed forms, for eps0 <= log(n/(16 log(2/delta))) and eps0 <= log(n/(8 log(2/delta)) - 1), are

    epsilon = log(1 + (e^eps0-1)/(e^eps0+1) (8 sqrt(e^eps0 log(4/delta)/n) + 8 e^eps0/n))        (2021, Theorem 3.1)
    epsilon = log(1 + (e^eps0-1) (4 sqrt(2 log(4/delta)/((e^eps0+1) n)) + 4/n))                  (2023, section 3).

Nothing here rests on the proof of 2023, which has an erratum: docs/theory.md, section 4, proves the stronger pair for
every eps0-LDP randomizer, docs/bounds.md the closed forms. Only for randomizers chosen adaptively, one user after the
other, those of 2021 rest on the paper's proof; those of 2023 need one randomizer for all users.

*Evaluation.* With tau = tanh(epsilon/2), k0 = m (1 + tau/theta)/2,

    delta_m = E[((1 + theta t) - e^eps (1 - theta t))_+] = (2 theta (1 + e^eps)/m) E[(A - k0)_+],
    E[(A - k0)_+] = (a/2) P[A = a] - (k0 - m/2) P[A >= a],   a = ceil(k0).

delta_m falls with m (one more fair coin is post-processing), so a whole bucket of clone counts is replaced by its
smallest: *the sum is an upper bound* by construction. Up to 3000 counts around the mean get their own term; otherwise
there are buckets, measured to overstate delta by at most 1.6e-4 relative at delta = 1e-12, 1e-3 at 1e-60 and
4e-3 at 1e-200 (least users), less for larger n.

Rounding: P[A = a] and P[A >= a] are SciPy's (Boost), measured relative error up to 4e-15 sqrt(m) (against 50 digits,
m <= 10^9); the difference above amplifies it by about 2 log(1/P). Seven times the measured error, amplified, is added
to every term. This last step is measured, not proved. delta below 1e-300 is reported as 1e-300.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from ..numerics.tuning import CLONE_COUNTS
from .bound import DeltaBound, EpsilonBound, raised

Floats = NDArray[np.float64]

_FLOOR = 1e-300
_TAIL_ERROR = 3e-14  # times sqrt(m): seven times the largest measured relative error of the tail


class Clones(DeltaBound):
    """Feldman et al. 2021, Theorem 3.2: the clones pair, clone probability e^-eps0. eps0 <= 200, n <= 10^9 measured."""

    name = "clones, numerical"
    source = "Feldman et al. 2021, Thm 3.2"
    steps = 1  # delta falls with epsilon and rises with eps0
    share = 1.0  # delta is 0 from eps0 on

    def chance(self, eps0: float) -> float:
        """The probability that another user is a clone."""
        return math.exp(-eps0)

    def curve(self, eps0: float, n: int) -> Callable[[float], float]:
        """Upper bound on delta at epsilon >= 0; exactly 0 from eps0 on. O(number of buckets)."""
        theta, others = math.tanh(eps0 / 2), n - 1
        clone = self.chance(eps0) * (1 - 1e-14)  # fewer clones: the safe side
        starts = _bucket_starts(others, clone)
        # P[C < start of the next bucket]; the last bucket ends at n
        below_next = np.append(binom.cdf(starts[1:] - 1, others, clone), 1.0)

        def delta(epsilon: float) -> float:
            if epsilon >= eps0:
                return 0.0
            values = coin_pair_delta(starts + 1.0, theta=theta, epsilon=epsilon)
            # sum_j value_j (F_j - F_{j-1}) rearranged into non-negative terms
            steps = np.append(np.maximum(values[:-1] - values[1:], 0.0), values[-1])
            return min(max(float(np.dot(steps, below_next)) * (1 + 1e-9), _FLOOR), 1.0)

        return delta


class StrongerClones(Clones):
    """Feldman et al. 2023: the stronger-clones pair, clone probability 2/(e^eps0 + 1)."""

    name = "stronger clones, numerical"
    source = "Feldman et al. 2023"

    def chance(self, eps0: float) -> float:
        """The probability that another user is a clone."""
        return 2 / (math.exp(eps0) + 1)


class ClonesClosedForm(EpsilonBound):
    """Feldman et al. 2021, Theorem 3.1."""

    name = "clones, closed form"
    source = "Feldman et al. 2021, Thm 3.1"
    needs = "eps0 <= log(n/(16 log(2/delta)))"

    def formula(self, eps0: float, delta: float, n: int) -> float:
        """See the module."""
        per_user, log_delta = math.exp(eps0) / n, math.log(delta)
        if not 16 * per_user * (math.log(2) - log_delta) <= 1:
            return math.inf
        bracket = math.sqrt(per_user * (math.log(4) - log_delta)) + per_user
        return raised(math.log1p(8 * math.tanh(eps0 / 2) * bracket))


class StrongerClonesClosedForm(EpsilonBound):
    """Feldman et al. 2023, section 3."""

    name = "stronger clones, closed form"
    source = "Feldman et al. 2023"
    needs = "eps0 <= log(n/(8 log(2/delta)) - 1)"

    def formula(self, eps0: float, delta: float, n: int) -> float:
        """See the module."""
        both, log_delta = math.exp(eps0) + 1, math.log(delta)
        if not 8 * both * (math.log(2) - log_delta) <= n:
            return math.inf
        root = math.sqrt(2 * (math.log(4) - log_delta) / (both * n))
        return raised(math.log1p(4 * math.expm1(eps0) * (root + 1 / n)))


def coin_pair_delta(coins: Floats, *, theta: float, epsilon: float) -> Floats:
    """Upper bound on delta(epsilon) of the tilted-coin pair with `coins` fair coins, elementwise.

    0 < theta < 1, 0 <= epsilon; equal to the exact value up to the rounding allowance of the
    module. O(len(coins)).
    """
    lean = math.tanh(epsilon / 2) / theta  # t must exceed this
    a = np.ceil(coins * (1 + lean) / 2)
    reachable = a <= coins
    safe = np.where(reachable, a, coins)
    point = binom.pmf(safe, coins, 0.5)
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
    if high - low <= CLONE_COUNTS:
        starts = np.arange(low, high + 1, dtype=np.float64)
    else:
        coarse = np.linspace(low, fine, CLONE_COUNTS // 6)
        starts = np.concatenate([coarse, np.linspace(fine, high, CLONE_COUNTS)])
    return np.unique(np.concatenate([[0.0], np.floor(starts)]))
