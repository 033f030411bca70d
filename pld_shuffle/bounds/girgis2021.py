"""Girgis, Data, Diggavi (Kairouz, Suresh): Renyi DP of the (subsampled) shuffle model, 2021.

*Upper bound* (Renyi DP of the subsampled shuffle model, NeurIPS 2021, Theorem 1). A random cohort
of k out of N users, rate g = k/N, kbar = floor((k-1)/(2 e^eps0)) + 1; for integer orders alpha >=
2 and every eps0-LDP randomizer,

    (alpha-1) R(alpha) = log(1 + 4 C(alpha,2) g^2 (e^eps0-1)^2/(kbar e^eps0)
                             + sum_{j=3}^alpha C(alpha,j) g^j j Gamma(j/2) (2 y^2/kbar)^{j/2} + Y),
    Y = [(1 + g y)^alpha - 1 - alpha g y] e^{-(k-1)/(8 e^eps0)},   y = (e^{2 eps0}-1)/e^eps0.

The authors' code has y/2 in place of y (`residue="published-code"`, for reproducing their
figures); the default is the theorem's larger form, since y/2 = sinh(eps0) is smaller than e^eps0 -
1, the largest value of P/Q - 1 without clones. The constants are those of this project's theory
notes; the paper's own proof was not re-derived here (the tests compare with the exact divergence
of binary randomized response, subsampled and not).

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

from .binomial import log_binomial_pmf
from .domain import SLACK, above, count, fraction, local_budget, log_expm1, positive
from .rdp import EpsilonAtOrder, rdp_to_epsilon

__all__ = ["GIRGIS_ORDERS", "girgis_epsilon", "girgis_rdp", "girgis_rdp_lower"]

Floats = NDArray[np.float64]
Residue = Literal["theorem", "published-code"]

# 2 ... 64 and then about 5 % apart up to 10^4
GIRGIS_ORDERS: tuple[int, ...] = tuple(
    sorted({*range(2, 65), *(round(64 * 10 ** (i / 47)) for i in range(1, 104)), 10_000})
)


def _log_power_excess(log_y: Floats | float, alpha: float) -> Floats:
    """log((1+y)^alpha - 1 - alpha y) for y = e^log_y > 0 and alpha > 1, without cancellation or
    overflow.
    """
    logs = np.asarray(log_y, dtype=np.float64)
    log_power = alpha * np.logaddexp(0.0, logs)  # log (1+y)^alpha
    large = log_power > 0.05
    y = np.exp(np.where(large, -40.0, logs))
    series, term = np.zeros_like(y), np.ones_like(y)
    for order in range(2, 14):  # sum_{j>=2} C(alpha, j) y^j / (C(alpha, 2) y^2)
        series = series + term
        term = term * y * (alpha - order) / (order + 1)
    small = math.log(alpha) + math.log(alpha - 1) - math.log(2) + 2 * logs + np.log(series)
    safe = np.where(large, log_power, 1.0)
    rest = np.where(large, np.logaddexp(0.0, math.log(alpha) + logs), 0.5)
    direct = safe + np.log(-np.expm1(np.minimum(rest - safe, -1e-300)))
    return np.asarray(np.where(large, direct, small), dtype=np.float64)


def girgis_rdp(
    *, order: int, eps0: float, cohort: int, population: int, residue: Residue = "theorem"
) -> float:
    """Upper bound on the Renyi divergence of one subsampled shuffled round at integer `order` >= 2.

    Girgis et al. 2021 (NeurIPS), Theorem 1 (see the module for Y). `cohort` <= `population` users
    take part, chosen at random; equal numbers mean no subsampling. Multiply by the rounds to
    compose. `residue` chooses Y: "published-code" halves y. O(order).
    """
    if residue not in ("theorem", "published-code"):
        raise ValueError(f'residue must be "theorem" or "published-code", got {residue!r}')
    alpha = count("order", order, minimum=2)
    budget, users = local_budget(eps0), count("population", population)
    shuffled = count("cohort", cohort)
    if not shuffled <= users:
        raise ValueError(f"cohort must be at most population = {population!r}, got {cohort!r}")
    log_rate = math.log(shuffled) - math.log(users)
    kbar = math.floor((shuffled - 1) / (2 * math.exp(budget))) + 1
    log_binomials = gammaln(alpha + 1)
    log_y = log_expm1(2 * budget) - budget
    second = (
        math.log(2 * alpha)
        + math.log(alpha - 1)
        + 2 * log_rate
        + 2 * log_expm1(budget)
        - math.log(kbar)
        - budget
    )
    j = np.arange(3, alpha + 1, dtype=np.float64)
    higher = (
        (log_binomials - gammaln(j + 1) - gammaln(alpha - j + 1))
        + j * log_rate
        + np.log(j)
        + gammaln(j / 2)
        + (j / 2) * (math.log(2) + 2 * log_y - math.log(kbar))
    )
    log_y_residue = log_y if residue == "theorem" else log_y - math.log(2)
    missed = float(_log_power_excess(log_rate + log_y_residue, alpha)) - (shuffled - 1) / (
        8 * math.exp(budget)
    )
    total = float(logsumexp(np.concatenate([[second, missed], higher])))
    total += 1e-10  # gammaln(10^4) ~ 10^5 is rounded to about 1e-11
    return above(float(np.logaddexp(0.0, total)) / (alpha - 1))


def girgis_rdp_lower(*, order: float, eps0: float, n: int) -> float:
    """Lower bound: exact Renyi divergence of one neighbouring pair of shuffled 2-RR (Girgis et al.
    2021, CCS).

    No analysis that holds for every eps0-LDP randomizer can give less (without subsampling). Any
    real `order` > 1. O(sqrt(n)).
    """
    alpha = positive("order", order)
    if not alpha > 1:
        raise ValueError(f"order must be > 1, got {order!r}")
    budget, users = local_budget(eps0), count("n", n)
    chance = 1 / (math.exp(budget) + 1)
    slope = 2 * math.sinh(budget) / users
    mean, sigma = users * chance, math.sqrt(users * chance * (1 - chance)) + 1

    def log_term(k: float) -> float:
        x = max(slope * (k - mean), -1 + 1e-300)
        return float(
            log_binomial_pmf(np.array([k]), trials=users, chance=chance)[0]
        ) + alpha * math.log1p(x)

    low, high = (
        math.floor(mean),
        users,
    )  # the integrand's peak lies at or above the mean; it is log-concave
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
    x = slope * (k - mean)
    log_pmf = log_binomial_pmf(k, trials=users, chance=chance)
    up = x > 0
    logs = [log_pmf[up] + _log_power_excess(np.log(x[up]), alpha)]
    down = -np.minimum(x[~up], 0.0)  # in [0, 1]
    logs.append(log_pmf[~up] + _log_falling_excess(np.minimum(down, 1.0), alpha))
    total = float(logsumexp(np.concatenate(logs))) - 1e-10
    return float(np.logaddexp(0.0, total)) / (alpha - 1) * (1 - SLACK)


def _log_falling_excess(y: Floats, alpha: float) -> Floats:
    """log((1-y)^alpha - 1 + alpha y) for 0 <= y <= 1 and alpha > 1; -inf at y = 0."""
    with np.errstate(divide="ignore"):
        large = alpha * y > 0.05
        direct = np.expm1(alpha * np.log1p(-np.where(large, y, 0.5))) + alpha * np.where(
            large, y, 0.5
        )
        small = np.where(large, 0.0, y)
        series, term = np.zeros_like(y), np.ones_like(y)
        for order in range(2, 14):
            series = series + term
            term = -term * small * (alpha - order) / (order + 1)
        near = alpha * (alpha - 1) / 2 * small**2 * series
        return np.asarray(np.log(np.where(large, direct, near)), dtype=np.float64)


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
    """Upper bound on epsilon of `rounds` subsampled shuffled rounds, by Girgis et al. 2021 and RDP
    conversion.

    The best of the integer `orders` is reported with it. O(sum of orders): about 0.05 s with the
    default orders.
    """
    repetitions, failure = count("rounds", rounds), fraction("delta", delta)
    divergences = [
        repetitions
        * girgis_rdp(order=order, eps0=eps0, cohort=cohort, population=population, residue=residue)
        for order in orders
    ]
    return rdp_to_epsilon(orders=list(orders), rdp=divergences, delta=failure)
