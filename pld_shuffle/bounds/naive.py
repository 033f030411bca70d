"""What one does without a privacy loss distribution: composing single-round (epsilon, delta)
guarantees.

* Basic composition (Dwork, McSherry, Nissim, Smith 2006): epsilons and deltas add up.
* Advanced composition (Dwork, Rothblum, Vadhan 2010, with the mean of Kairouz, Oh, Viswanath 2015,
  Theorem 3.4): epsilon' = k epsilon tanh(epsilon/2) + epsilon sqrt(2 k log(1/slack)), delta' = 1 -
  (1-delta)^k (1-slack). The sum of k losses in [-epsilon, epsilon] with mean at most epsilon
  tanh(epsilon/2) (randomized response is the worst) obeys Hoeffding-Azuma.
* Optimal composition (Kairouz, Oh, Viswanath 2015, Theorem 3.3): no better function of (epsilon,
  delta, k) exists, delta' = 1 - (1-delta)^k (1 - delta_RR),  delta_RR = sum_l Bin(k,
  1/(1+e^epsilon))(l) (1 - e^{epsilon' - (k-2l) epsilon})_+.

Upper bounds under adaptive composition of k rounds with the same guarantee.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.stats import binom

from .binomial import log_binomial_pmf
from .domain import OutOfRange, above, count, fraction, positive, small_or_zero
from .solving import smallest_of_falling

__all__ = [
    "Guarantee",
    "advanced_composition",
    "basic_composition",
    "optimal_composition_delta",
    "optimal_composition_epsilon",
]


class Guarantee(NamedTuple):
    """An (epsilon, delta) guarantee, both upper bounds."""

    epsilon: float
    delta: float


def _log_no_failure(*, delta: float, rounds: int) -> float:
    """log (1-delta)^rounds."""
    return rounds * math.log1p(-delta)


def basic_composition(*, epsilon: float, delta: float, rounds: int) -> Guarantee:
    """(k epsilon, k delta), Dwork et al. 2006; delta may be 0. Raises OutOfRange if k delta "
    ">= 1."""
    one, failure = positive("epsilon", epsilon), small_or_zero("delta", delta)
    repetitions = count("rounds", rounds)
    total = repetitions * failure
    if not total < 1:
        raise OutOfRange(
            f"basic composition: {rounds!r} rounds of delta = {delta!r} add up to {total:.3g} >= 1"
        )
    return Guarantee(repetitions * one, total)


def advanced_composition(*, epsilon: float, delta: float, rounds: int, slack: float) -> Guarantee:
    """Advanced composition with the additional failure probability `slack` in (0, 1); delta may be
    0.

    Dwork, Rothblum, Vadhan 2010 with the mean of Kairouz et al. 2015, Theorem 3.4; never worse in
    epsilon than basic composition, whose epsilon is returned where it is smaller. O(1).
    """
    one, failure = positive("epsilon", epsilon), small_or_zero("delta", delta)
    repetitions, extra = count("rounds", rounds), fraction("slack", slack)
    drift = repetitions * one * math.tanh(one / 2)
    spread = one * math.sqrt(-2 * repetitions * math.log(extra))
    total = -math.expm1(_log_no_failure(delta=failure, rounds=repetitions) + math.log1p(-extra))
    return Guarantee(above(min(repetitions * one, drift + spread)), above(total))


def _rr_failure(*, epsilon: float, rounds: int, total_epsilon: float) -> float:
    """delta_RR at total_epsilon >= 0, from above."""
    if total_epsilon >= rounds * epsilon:
        return 0.0
    q = 1 / (1 + math.exp(epsilon)) if epsilon < 700 else math.exp(-epsilon)
    # `last`: the largest number of negative losses that still exceeds total_epsilon
    last = min(rounds // 2, math.floor((rounds - total_epsilon / epsilon) / 2) + 1)
    mean, sigma = rounds * q, math.sqrt(rounds * q * (1 - q)) + 1
    low = max(0, math.floor(min(last, mean) - 40 * sigma))
    high = min(last, math.ceil(max(low, mean + 40 * sigma)))
    negatives = np.arange(low, high + 1, dtype=np.float64)
    gain = np.maximum((rounds - 2 * negatives) * epsilon - total_epsilon, 0.0)
    weights = np.exp(log_binomial_pmf(negatives, trials=rounds, chance=q))
    inside = float(np.dot(weights, -np.expm1(-gain)))
    outside = float(binom.cdf(low - 1, rounds, q)) if low > 0 else 0.0
    if high < last:
        outside += float(binom.sf(high, rounds, q))
    return min(1.0, (inside + outside) * (1 + 1e-10) + 1e-300)


def optimal_composition_delta(
    *, epsilon: float, delta: float, rounds: int, total_epsilon: float
) -> float:
    """Upper bound on delta after k rounds of (epsilon, delta) at `total_epsilon`, Kairouz et al.
    2015, Theorem 3.3.

    The optimum, to a relative 1e-9 of its two parts. O(min(k, sqrt(k))) terms; k to 10^9.
    """
    one, failure = positive("epsilon", epsilon), small_or_zero("delta", delta)
    repetitions, target = count("rounds", rounds), positive("total_epsilon", total_epsilon)
    inner = _rr_failure(epsilon=one, rounds=repetitions, total_epsilon=target)
    if inner >= 1:
        return 1.0
    return min(
        1.0,
        above(-math.expm1(_log_no_failure(delta=failure, rounds=repetitions) + math.log1p(-inner))),
    )


def optimal_composition_epsilon(
    *, epsilon: float, delta: float, rounds: int, total_delta: float
) -> float:
    """The smallest epsilon with `optimal_composition_delta` <= total_delta (Kairouz et al. 2015,
    Theorem 3.3), at most k epsilon.

    Raises OutOfRange unless total_delta >= 1 - (1-delta)^k. About 20 evaluations of delta.
    """
    one, failure = positive("epsilon", epsilon), small_or_zero("delta", delta)
    repetitions, limit = count("rounds", rounds), fraction("total_delta", total_delta)
    least = above(-math.expm1(_log_no_failure(delta=failure, rounds=repetitions)))
    if not least <= limit:
        raise OutOfRange(
            f"total_delta = {total_delta!r}: {rounds!r} rounds of delta = {delta!r} already "
            f"fail with probability {least:.4g}"
        )

    def excess(total: float) -> float:
        reached = optimal_composition_delta(
            epsilon=one, delta=failure, rounds=repetitions, total_epsilon=total
        )
        return (math.log(reached) if reached > 0 else -800.0) - math.log(limit)

    top = repetitions * one
    solution = smallest_of_falling(excess, low=1e-12 * top, high=top, rtol=1e-12)
    return top if solution is None else solution
