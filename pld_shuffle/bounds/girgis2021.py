"""Girgis, Data, Diggavi (Kairouz, Suresh): Renyi DP of the (subsampled) shuffle model, 2021.

*Upper bound* (Renyi DP of the subsampled shuffle model, NeurIPS 2021, Theorem 1). A random cohort
of k out of N users, rate g = k/N, kbar = floor((k-1)/(2 e^eps0)) + 1; for integer orders alpha >=
2 and every eps0-LDP randomizer,

    (alpha-1) R(alpha) = log(1 + 4 C(alpha,2) g^2 (e^eps0-1)^2/(kbar e^eps0)
                             + sum_{j=3}^alpha C(alpha,j) g^j j Gamma(j/2) (2 y^2/kbar)^{j/2} + Y),
    Y = [(1 + g y)^alpha - 1 - alpha g y] e^{-(k-1)/(8 e^eps0)},   y = (e^{2 eps0}-1)/e^eps0.

*docs/bounds.md proves it, every constant included.* The authors' code has y/2 in place of y in Y
(`residue="published-code"`, for reproducing their figures). The proof does not cover that: without
clones |P - Q|/R may reach e^eps0 - 1, which is more than y/2 = sinh(eps0).

*Lower bound* (On the Renyi DP of the shuffle model, CCS 2021, lower bound by 2-RR). All others
hold 0 and the target 1 or 0: with K ~ Bin(n, q), q = 1/(e^eps0+1), the likelihood ratio is 1 + c
(K - nq), c = (e^{2 eps0}-1)/(n e^eps0), so (alpha-1) R(alpha) >= log E[(1 + c (K-nq))^alpha],
whose expansion begins 1 + C(alpha,2)(e^eps0-1)^2/(n e^eps0) + ... (derived anew: the binomial
series of the paper is this expectation). It is *the exact divergence of that one pair*, for every
real order > 1, and is summed as E[(1+x)^alpha - 1 - alpha x], all of whose terms are non-negative:
leaving some out keeps it a lower bound.

Everything is computed in logs: orders to 10^4, eps0 = 14 and n = 10^9 do not overflow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from ..numerics.log_binomial import log_binomial_pmf
from ..numerics.sides import Side
from ..numerics.validation import choice, positive_float
from .domain import count, failure, local_budget, log_expm1, lowered, raised
from .rdp import EpsilonAtOrder, rdp_to_epsilon

Floats = NDArray[np.float64]
Residue = Literal["theorem", "published-code"]

# 2 ... 64 and then about 5 % apart up to 10^4
GIRGIS_ORDERS: tuple[int, ...] = tuple(
    sorted({*range(2, 65), *(round(64 * 10 ** (i / 47)) for i in range(1, 104)), 10_000})
)


def _log_power_excess(x: Floats, alpha: float) -> Floats:
    """log((1+x)^alpha - 1 - alpha x) for x >= -1 and alpha > 1, elementwise; -inf at x = 0.

    With b = alpha - 1 this is log((1+x) expm1(b log1p(x)) - b x), whose two terms do not cancel for
    b near 0: only for x near 0, where the binomial series is summed. Large powers stay in logs.
    """
    b = alpha - 1
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        power = b * np.log1p(x)
        series, term = np.zeros_like(x), np.ones_like(x)
        for order in range(2, 14):  # sum_{j>=2} C(alpha, j) x^j / (C(alpha, 2) x^2)
            series += term
            term = term * x * (alpha - order) / (order + 1)
        near = np.log(series * alpha * b / 2) + 2 * np.log(np.abs(x))
        direct = np.log((1 + x) * np.expm1(power) - b * x)
        first = np.log1p(x) + power + np.log1p(-np.exp(-power))
        far = first + np.log1p(-np.exp(np.log(b * x) - first))
    return np.select([alpha * np.abs(x) < 0.05, power < 50], [near, direct], far)


def girgis_rdp(
    *, order: int, eps0: float, cohort: int, population: int, residue: Residue = "theorem"
) -> float:
    """Upper bound on the Renyi divergence of one subsampled shuffled round at integer `order` >= 2.

    Girgis et al. 2021 (NeurIPS), Theorem 1 (see the module for Y). `cohort` <= `population` users
    take part, chosen at random; equal numbers mean no subsampling. Multiply by the rounds to
    compose. `residue` chooses Y: "published-code" halves y. O(order).
    """
    choice("residue", residue, ("theorem", "published-code"))
    alpha = count("order", order, least=2)
    budget, users = local_budget(eps0), count("population", population)
    shuffled = count("cohort", cohort)
    if not shuffled <= users:
        raise ValueError(f"cohort must be at most population = {population!r}, got {cohort!r}")
    clones = (shuffled - 1) / math.exp(budget)  # expected, at least
    log_rate, log_kbar = math.log(shuffled / users), math.log(math.floor(lowered(clones / 2)) + 1)
    log_y = log_expm1(2 * budget) - budget
    largest = math.exp(log_rate + log_y) / (1 if residue == "theorem" else 2)
    j = np.arange(2, alpha + 1, dtype=np.float64)
    log_factorial = float(gammaln(alpha + 1))
    logs = log_factorial - gammaln(j + 1) - gammaln(alpha - j + 1) + j * log_rate
    logs[1:] += (np.log(j) + gammaln(j / 2) + (j / 2) * (math.log(2) + 2 * log_y - log_kbar))[1:]
    logs[0] += math.log(4) + 2 * log_expm1(budget) - budget - log_kbar
    missed = _log_power_excess(np.array([largest]), alpha) - clones / 8
    # each gammaln is rounded to a few 1e-16 of log(alpha!)
    total = float(logsumexp(np.append(logs, missed))) + 1e-10 + 4e-15 * log_factorial
    return raised(float(np.logaddexp(0.0, total)) / (alpha - 1))


def girgis_rdp_lower(*, order: float, eps0: float, n: int) -> float:
    """Exact Renyi divergence of one neighbouring pair of shuffled 2-RR: a lower bound (Girgis et al. 2021, CCS).

    No analysis that holds for every eps0-LDP randomizer can give less (without subsampling). Any
    real `order` > 1. O(sqrt(n)).
    """
    alpha = positive_float("order", order, Side.LOWER)
    if not alpha > 1:
        raise ValueError(f"order must be > 1, got {order!r}")
    budget, users = local_budget(eps0, Side.LOWER), count("n", n)
    chance = 1 / (math.exp(budget) + 1)
    slope = 2 * math.sinh(budget) / users
    mean, sigma = users * chance, math.sqrt(users * chance * (1 - chance)) + 1

    def log_term(k: float) -> float:
        log_ratio = math.log1p(max(slope * (k - mean), -1 + 1e-300))
        return (
            float(log_binomial_pmf(np.array([k]), trials=users, chance=chance)[0])
            + alpha * log_ratio
        )

    # the terms are log-concave in k, with their peak at or above the mean
    low, high = math.floor(mean), users
    while high - low > 2:
        middle = (low + high) // 2
        if log_term(middle) < log_term(middle + 1):
            low = middle
        else:
            high = middle + 1
    peak = 0.5 * (low + high)
    width = 15 * (math.sqrt(peak * (1 - peak / users)) + 10)
    pieces = [
        _whole_numbers(mean - 12 * sigma, mean + 12 * sigma, users),
        _whole_numbers(peak - width, peak + width, users),
    ]
    k = np.unique(np.concatenate(pieces))
    logs = log_binomial_pmf(k, trials=users, chance=chance)
    logs += _log_power_excess(np.maximum(slope * (k - mean), -1.0), alpha)
    total = float(logsumexp(logs)) - 1e-10
    return lowered(float(np.logaddexp(0.0, total)) / (alpha - 1))


def _whole_numbers(low: float, high: float, n: int) -> Floats:
    return np.arange(max(0, math.floor(low)), min(n, math.ceil(high)) + 1, dtype=np.float64)


def girgis_epsilon(
    *,
    eps0: float,
    cohort: int,
    population: int,
    rounds: int,
    delta: float,
    orders: Sequence[int] = GIRGIS_ORDERS,
    residue: Residue = "theorem",
) -> EpsilonAtOrder:
    """Upper bound on epsilon of `rounds` subsampled shuffled rounds, converted from Renyi divergences.

    Girgis et al. 2021 (NeurIPS), Theorem 1, and `rdp_to_epsilon`. The best of the integer `orders` is reported with
    it. O(sum of orders): about 0.05 s with the default orders.
    """
    repetitions, fail = count("rounds", rounds), failure("delta", delta)
    divergences = [
        repetitions
        * girgis_rdp(order=order, eps0=eps0, cohort=cohort, population=population, residue=residue)
        for order in orders
    ]
    return rdp_to_epsilon(orders=list(orders), rdp=divergences, delta=fail)
