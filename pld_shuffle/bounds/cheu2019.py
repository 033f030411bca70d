"""Cheu, Smith, Ullman, Zeber, Zhilyaev, Distributed differential privacy via shuffling, EUROCRYPT
2019.

Binary randomized response: every user answers a fair coin with probability lambda/n and the truth
otherwise, so e^eps0 = (2 - lambda/n)/(lambda/n), lambda = 2n/(e^eps0 + 1). Section 4.2 of the
paper shows, for lambda >= 14 log(4/delta),

    epsilon = (1 - s/n) sqrt(32 log(4/delta)/s),   s = lambda - sqrt(2 lambda log(2/delta)).

The text at our disposal has lost its formulas. *The constants below do not rest on memory*: this
proof, along the paper's three steps, yields them.

1. s users are known to answer fair coins, the target is not among them: the sum is a shift by 0 or
   1 of N ~ Bin(s, 1/2). The loss of a shift by one exceeds log((s/2+t+1)/(s/2-t)) only if N is
   beyond s/2 by more than t: probability <= exp(-2t^2/s) = delta/2 for t = sqrt(s log(2/delta)/2).
   For s >= 8 log(4/delta), t <= s/4, so the ratio is <= 1 + (8t+4)/s <= 1 + 8 sqrt(s
   log(4/delta)/2)/s = 1 + x with x = sqrt(32 log(4/delta)/s), since sqrt(s/2) (sqrt(log(4/delta))
   - sqrt(log(2/delta))) >= log 2 >= 1/2.
2. The s users are a hidden uniform set: with probability s/n the target is among them, and that
   law R is again a shift by at most one of the other (exchange the target with a random member of
   the set). Advanced joint convexity: e^epsilon = 1 + (1 - s/n) x, delta/2 unchanged; and log(1+y)
   <= y.
3. The number of such users is Bin(n, lambda/n): below lambda - sqrt(2 lambda log(2/delta)) with
   probability <= delta/2 (Chernoff), and never below 8 log(4/delta) otherwise, as 14 - sqrt(28) >
   8. The bound of step 2 falls with s.

An upper bound (linear form, the paper's), one round, substitution, all n users honest; O(1).
"""

from __future__ import annotations

import math

from .domain import OutOfRange, above, count, fraction, local_budget, positive
from .solving import largest_satisfying

__all__ = ["cheu_delta", "cheu_eps0", "cheu_epsilon"]


def _epsilon(*, eps0: float, log_delta: float, n: int) -> float:
    """The bound; inf outside its range."""
    coins = 2 * n / (math.exp(eps0) + 1)
    log4, log2 = math.log(4) - log_delta, math.log(2) - log_delta
    if not coins >= 14 * log4:
        return math.inf
    sure = coins - math.sqrt(2 * coins * log2)
    return above((1 - sure / n) * math.sqrt(32 * log4 / sure))


def cheu_epsilon(*, eps0: float, delta: float, n: int) -> float:
    """Upper bound on epsilon of shuffled binary randomized response, Cheu et al. 2019, section 4.2.

    Raises OutOfRange unless lambda = 2n/(e^eps0 + 1) >= 14 log(4/delta).
    """
    budget, failure, users = local_budget(eps0), fraction("delta", delta), count("n", n)
    epsilon = _epsilon(eps0=budget, log_delta=math.log(failure), n=users)
    if not epsilon < math.inf:
        raise OutOfRange(
            "Cheu et al. 2019 needs 2n/(e^eps0+1) >= 14 log(4/delta) = "
            f"{14 * math.log(4 / failure):.4g}, "
            f"got {2 * users / (math.exp(budget) + 1):.4g}"
        )
    return epsilon


def cheu_eps0(*, epsilon: float, delta: float, n: int) -> float:
    """The largest eps0 with `cheu_epsilon` <= epsilon; raises OutOfRange if there is none."""
    target, failure, users = positive("epsilon", epsilon), fraction("delta", delta), count("n", n)
    limit = math.log(failure)
    solution = largest_satisfying(
        lambda eps0: _epsilon(eps0=eps0, log_delta=limit, n=users) - target,
        low=1e-9,
        high=math.log(2 * users + 2),
    )
    if solution is None:
        raise OutOfRange(
            f"Cheu et al. 2019 allows no eps0 at epsilon = {epsilon!r}, delta = {delta!r}, n = "
            f"{n!r}"
        )
    return solution


def cheu_delta(*, epsilon: float, eps0: float, n: int) -> float:
    """The smallest delta with `cheu_epsilon` <= epsilon, at most 1/2; raises OutOfRange if there
    is none.
    """
    target, budget, users = positive("epsilon", epsilon), local_budget(eps0), count("n", n)
    # in x = log(1/delta), from the largest down: the first satisfied is the smallest delta
    solution = largest_satisfying(
        lambda x: _epsilon(eps0=budget, log_delta=-x, n=users) - target, low=math.log(2), high=700.0
    )
    if solution is None:
        raise OutOfRange(
            f"Cheu et al. 2019 gives no delta <= 1/2 at epsilon = {epsilon!r}, eps0 = "
            f"{eps0!r}, n = {n!r}"
        )
    return above(math.exp(-solution) * (1 + 1e-12))
