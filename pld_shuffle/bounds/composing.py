"""What one does without a privacy loss distribution: composing guarantees of single rounds. Upper bounds.

Optimal composition: Kairouz, Oh, Viswanath 2015, Theorem 3.3. Renyi: Canonne, Kamath, Steinke 2020, Proposition 12;
Balle, Barthe, Gaboardi, Hsu, Sato 2020, Theorem 21. Subsampled shuffling: Girgis, Data, Diggavi, NeurIPS 2021, Theorem
1, whose authors' code has y/2 in place of y in the residue Y, which no proof covers (`residue`).

Everything is computed in logs: orders to 10^4, eps0 = 14 and n = 10^9 do not overflow. Proofs: docs/bounds.md.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..numerics.search import first_satisfying
from ..numerics.sides import Side
from ..numerics.validation import choice, positive_float, real, real_array
from .bound import MARGIN, OutOfRange, count, failure, local_budget, log_expm1, log_ratio, raised


def _rr_failure(*, epsilon: float, rounds: int, total_epsilon: float) -> float:
    """delta_RR at total_epsilon >= 0, from above."""
    from scipy.stats import binom  # takes longer to load than the rest of the package

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
    weights = binom.pmf(negatives, rounds, q)
    inside = float(np.dot(weights, -np.expm1(-gain)))
    outside = float(binom.cdf(low - 1, rounds, q)) if low > 0 else 0.0
    if high < last:
        outside += float(binom.sf(high, rounds, q))
    # The masses are SciPy's (Boost), measured relative error up to 6e-15 sqrt(rounds).
    margin = 1e-10 + 3e-14 * math.sqrt(rounds)
    return min(1.0, (inside + outside) * (1 + margin) + 1e-300)


def optimal_composition_epsilon(*, epsilon: float, delta: float, rounds: int, total_delta: float) -> float:
    """The smallest epsilon of `rounds` rounds of (epsilon, delta) at `total_delta`, to a relative 1e-9 of delta.

    Kairouz et al. 2015, Theorem 3.3; at most rounds * epsilon. 0 <= delta < 1, rounds to 10^9. Raises OutOfRange unless
    total_delta >= 1 - (1-delta)^rounds. About 20 sums of O(sqrt(rounds)) terms.
    """
    one, repetitions = positive_float("epsilon", epsilon, Side.UPPER), count("rounds", rounds)
    fail, limit, top = real("delta", delta, Side.UPPER), failure("total_delta", total_delta), repetitions * one
    if not 0 <= fail < 1:
        raise ValueError(f"delta must satisfy 0 <= delta < 1, got {delta!r}")

    def excess(total: float) -> float:
        inner = _rr_failure(epsilon=one, rounds=repetitions, total_epsilon=total)
        return log_ratio(failing(inner) if inner < 1 else 1.0, limit)

    def failing(other: float) -> float:
        """1 - (1-delta)^rounds (1-other), from above; other < 1."""
        return min(1.0, raised(-math.expm1(repetitions * math.log1p(-fail) + math.log1p(-other))))

    solution = first_satisfying(excess, 1e-12 * top, top, steps=1, rtol=1e-12)
    if solution is None:
        raise OutOfRange(
            f"total_delta = {total_delta!r}: {rounds!r} rounds of delta = {delta!r} already "
            f"fail with probability {failing(0.0):.4g}"
        )
    return solution


class EpsilonAtOrder(NamedTuple):
    """An upper bound on epsilon and the Renyi order that attains it."""

    epsilon: float
    order: float


def rdp_to_epsilon(*, orders: ArrayLike, rdp: ArrayLike, delta: float) -> EpsilonAtOrder:
    """Smallest epsilon >= 0 over the given orders, and its order (Canonne et al. 2020, Proposition 12).

    `orders` > 1 and `rdp` >= 0 are 1-D of equal length; 0 < delta < 1. A negative epsilon is reported as 0, which it
    implies. Raises OutOfRange if rdp is infinite everywhere. O(number of orders).
    """
    fail = failure("delta", delta)
    # a Renyi divergence rises with its order, so a smaller order and a larger divergence are safe
    alphas = np.atleast_1d(real_array("orders", orders, Side.LOWER))
    values = np.atleast_1d(real_array("rdp", rdp, Side.UPPER))
    if alphas.ndim != 1 or alphas.shape != values.shape or alphas.size == 0:
        raise ValueError(
            f"orders and rdp must be non-empty and of equal length, got shapes {alphas.shape} and {values.shape}"
        )
    if not np.all((alphas > 1) & (alphas < np.inf)):
        raise ValueError(f"orders must be finite and > 1, got {orders!r}")
    if not np.all(values >= 0):
        raise ValueError(f"rdp must be >= 0, got {rdp!r}")
    if not np.any(values < np.inf):
        raise OutOfRange("rdp is infinite at every order: no (epsilon, delta) follows")
    epsilons = values + np.log1p(-1 / alphas) - (math.log(fail) + np.log(alphas)) / (alphas - 1)
    best = int(np.argmin(epsilons))
    # the slack is relative to the terms, not to their possibly small sum
    size = float(values[best]) + abs(math.log(fail)) / float(alphas[best] - 1)
    return EpsilonAtOrder(max(0.0, float(epsilons[best]) + 1e-14 * (size + 1)), float(alphas[best]))


Residue = Literal["theorem", "published-code"]

# 2 ... 64 and then about 5 % apart up to 10^4
_ORDERS = sorted({*range(2, 65), *(round(64 * 10 ** (i / 47)) for i in range(1, 104)), 10_000})


def girgis_rdp(*, order: int, eps0: float, cohort: int, population: int, residue: Residue = "theorem") -> float:
    """Upper bound on the Renyi divergence of one subsampled shuffled round at integer `order` >= 2.

    Girgis et al. 2021 (NeurIPS), Theorem 1 (docs/bounds.md). `cohort` <= `population` users
    take part, chosen at random; equal numbers mean no subsampling. Multiply by the rounds to
    compose. `residue` chooses Y: "published-code" halves y. O(order).
    """
    from scipy.special import gammaln, logsumexp

    choice("residue", residue, ("theorem", "published-code"))
    alpha = count("order", order, lowest=2)
    budget, users = local_budget(eps0), count("population", population)
    shuffled = count("cohort", cohort)
    if not shuffled <= users:
        raise ValueError(f"cohort must be at most population = {population!r}, got {cohort!r}")
    clones = (shuffled - 1) / math.exp(budget)  # expected, at least
    log_rate, log_kbar = math.log(shuffled / users), math.log(math.floor(clones / 2 * (1 - MARGIN)) + 1)
    log_y = log_expm1(2 * budget) - budget
    log_largest = log_y if residue == "theorem" else log_y - math.log(2)
    j = np.arange(2, alpha + 1, dtype=np.float64)
    log_factorial = float(gammaln(alpha + 1))
    drawn = log_factorial - gammaln(j + 1) - gammaln(alpha - j + 1) + j * log_rate
    logs = drawn + np.log(j) + gammaln(j / 2) + (j / 2) * (math.log(2) + 2 * log_y - log_kbar)
    logs[0] = drawn[0] + math.log(4) + 2 * log_expm1(budget) - budget - log_kbar
    truncated_mass = drawn + j * log_largest - clones / 8  # Y by the binomial series
    # each gammaln is rounded to a few 1e-16 of log(alpha!)
    total = float(logsumexp(np.concatenate([logs, truncated_mass]))) + 1e-10 + 4e-15 * log_factorial
    return raised(float(np.logaddexp(0.0, total)) / (alpha - 1))


def girgis_epsilon(
    *, eps0: float, cohort: int, population: int, rounds: int, delta: float, residue: Residue = "theorem"
) -> EpsilonAtOrder:
    """Upper bound on epsilon of `rounds` subsampled shuffled rounds, converted from Renyi divergences.

    Girgis et al. 2021, Theorem 1, and `rdp_to_epsilon`. The best integer order up to 10^4 is reported with it.
    About 0.05 s.
    """
    repetitions, fail = count("rounds", rounds), failure("delta", delta)
    divergences = [
        repetitions * girgis_rdp(order=order, eps0=eps0, cohort=cohort, population=population, residue=residue)
        for order in _ORDERS
    ]
    return rdp_to_epsilon(orders=_ORDERS, rdp=divergences, delta=fail)
