"""Cheu, Smith, Ullman, Zeber, Zhilyaev, Distributed differential privacy via shuffling, EUROCRYPT 2019.

Binary randomized response: with probability lambda/n a user answers a fair coin, otherwise the
truth, so that lambda = 2n/(e^eps0 + 1). The fair coins hide the target in a binomial. Section 4.2,
for lambda >= 14 log(4/delta):

    epsilon = (1 - s/n) sqrt(32 log(4/delta)/s),   s = lambda - sqrt(2 lambda log(2/delta)).

The text at our disposal has lost its formulas. *The constants rest on the proof in docs/bounds.md*,
which follows the paper's three steps. Upper bounds (the paper's linear form), one round,
substitution, all n users honest.
"""

from __future__ import annotations

import math

from .bound import EpsilonBound
from .domain import raised


def _formula(eps0: float, delta: float, n: int) -> float:
    coins = 2 * n / (math.exp(eps0) + 1)
    log4, log2 = math.log(4) - math.log(delta), math.log(2) - math.log(delta)
    if not coins >= 14 * log4:
        return math.inf
    sure = coins - math.sqrt(2 * coins * log2)
    return raised((1 - sure / n) * math.sqrt(32 * log4 / sure))


_BOUND = EpsilonBound("Cheu et al. 2019", "2n/(e^eps0 + 1) >= 14 log(4/delta)", _formula)


def cheu_epsilon(*, eps0: float, delta: float, n: int) -> float:
    """Upper bound on epsilon of shuffled binary randomized response, Cheu et al. 2019, section 4.2.

    Raises OutOfRange unless 2n/(e^eps0 + 1) >= 14 log(4/delta). O(1).
    """
    return _BOUND.epsilon(eps0=eps0, delta=delta, n=n)


def cheu_eps0(*, epsilon: float, delta: float, n: int) -> float:
    """The largest eps0 with `cheu_epsilon` <= epsilon; raises OutOfRange if there is none."""
    return _BOUND.eps0(epsilon=epsilon, delta=delta, n=n)


def cheu_delta(*, epsilon: float, eps0: float, n: int) -> float:
    """The smallest delta with `cheu_epsilon` <= epsilon; raises OutOfRange if there is none."""
    return _BOUND.delta(epsilon=epsilon, eps0=eps0, n=n)
