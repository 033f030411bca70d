"""Girgis, Data, Diggavi, Renyi DP of the subsampled shuffle model, NeurIPS 2021, Theorem 1.

A random cohort of k out of N users, rate g = k/N, kbar = floor((k-1)/(2 e^eps0)) + 1; for integer orders alpha >=
2 and every eps0-LDP randomizer,

    (alpha-1) R(alpha) = log(1 + 4 C(alpha,2) g^2 (e^eps0-1)^2/(kbar e^eps0)
                             + sum_{j=3}^alpha C(alpha,j) g^j j Gamma(j/2) (2 y^2/kbar)^{j/2} + Y),
    Y = [(1 + g y)^alpha - 1 - alpha g y] e^{-(k-1)/(8 e^eps0)},   y = (e^{2 eps0}-1)/e^eps0.

*docs/bounds.md proves it, every constant included.* The authors' code has y/2 in place of y in Y
(`residue="published-code"`, for reproducing their figures). The proof does not cover that: without
clones |P - Q|/R may reach e^eps0 - 1, which is more than y/2 = sinh(eps0).

Everything is computed in logs: orders to 10^4, eps0 = 14 and n = 10^9 do not overflow.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from scipy.special import gammaln, logsumexp

from ..numerics.validation import choice
from .bound import count, failure, local_budget, log_expm1, lowered, raised
from .composing import EpsilonAtOrder, rdp_to_epsilon

Residue = Literal["theorem", "published-code"]

# 2 ... 64 and then about 5 % apart up to 10^4
_ORDERS = sorted({*range(2, 65), *(round(64 * 10 ** (i / 47)) for i in range(1, 104)), 10_000})


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
    log_largest = log_y if residue == "theorem" else log_y - math.log(2)
    j = np.arange(2, alpha + 1, dtype=np.float64)
    log_factorial = float(gammaln(alpha + 1))
    drawn = log_factorial - gammaln(j + 1) - gammaln(alpha - j + 1) + j * log_rate
    logs = drawn + np.log(j) + gammaln(j / 2) + (j / 2) * (math.log(2) + 2 * log_y - log_kbar)
    logs[0] = drawn[0] + math.log(4) + 2 * log_expm1(budget) - budget - log_kbar
    missed = drawn + j * log_largest - clones / 8  # Y by the binomial series
    # each gammaln is rounded to a few 1e-16 of log(alpha!)
    total = float(logsumexp(np.concatenate([logs, missed]))) + 1e-10 + 4e-15 * log_factorial
    return raised(float(np.logaddexp(0.0, total)) / (alpha - 1))


def girgis_epsilon(
    *,
    eps0: float,
    cohort: int,
    population: int,
    rounds: int,
    delta: float,
    residue: Residue = "theorem",
) -> EpsilonAtOrder:
    """Upper bound on epsilon of `rounds` subsampled shuffled rounds, converted from Renyi divergences.

    Girgis et al. 2021, Theorem 1, and `rdp_to_epsilon`. The best integer order up to 10^4 is reported with it.
    About 0.05 s.
    """
    repetitions, fail = count("rounds", rounds), failure("delta", delta)
    divergences = [
        repetitions
        * girgis_rdp(order=order, eps0=eps0, cohort=cohort, population=population, residue=residue)
        for order in _ORDERS
    ]
    return rdp_to_epsilon(orders=_ORDERS, rdp=divergences, delta=fail)
