"""Feldman, McMillan, Talwar, Hiding among the clones, FOCS 2021.

Every report of another user is, with probability e^-eps0, a "clone": a draw of the even mixture of the
target's two possible laws. Theorem 3.1 is the closed form, for eps0 <= log(n/(16 log(2/delta))),

    epsilon = log(1 + (e^eps0-1)/(e^eps0+1) (8 sqrt(e^eps0 log(4/delta)/n) + 8 e^eps0/n)),

Theorem 3.2 the pair itself, evaluated numerically (`clones`). *Both are proved again in
docs/bounds.md*, as consequences of the stronger clones of 2023; only for randomizers chosen
adaptively, one user after the other, they rest on the paper's proof. Upper bounds for every
eps0-LDP randomizer, one round, substitution, all n users honest.
"""

from __future__ import annotations

import math

from .bound import EpsilonBound
from .clones import ClonesPair
from .domain import count, failure, local_budget, raised, target


def _formula(eps0: float, delta: float, n: int) -> float:
    per_user, log_delta = math.exp(eps0) / n, math.log(delta)
    if not 16 * per_user * (math.log(2) - log_delta) <= 1:
        return math.inf
    bracket = math.sqrt(per_user * (math.log(4) - log_delta)) + per_user
    return raised(math.log1p(8 * math.tanh(eps0 / 2) * bracket))


_BOUND = EpsilonBound(
    "Feldman et al. 2021, Theorem 3.1,", "eps0 <= log(n/(16 log(2/delta)))", _formula
)


def feldman2021_epsilon(*, eps0: float, delta: float, n: int) -> float:
    """Upper bound on epsilon, Feldman et al. 2021, Theorem 3.1.

    Raises OutOfRange unless eps0 <= log(n/(16 log(2/delta))). O(1).
    """
    return _BOUND.epsilon(eps0=eps0, delta=delta, n=n)


def feldman2021_eps0(*, epsilon: float, delta: float, n: int) -> float:
    """The largest eps0 in the range of Theorem 3.1 with `feldman2021_epsilon` <= epsilon.

    Raises OutOfRange if there is none.
    """
    return _BOUND.eps0(epsilon=epsilon, delta=delta, n=n)


def feldman2021_delta(*, epsilon: float, eps0: float, n: int) -> float:
    """The smallest delta in the range of Theorem 3.1 with `feldman2021_epsilon` <= epsilon.

    The range is 2 exp(-n/(16 e^eps0)) <= delta < 1. Raises OutOfRange if there is none.
    """
    return _BOUND.delta(epsilon=epsilon, eps0=eps0, n=n)


def _pair(eps0: float, n: int) -> ClonesPair:
    budget = local_budget(eps0)
    return ClonesPair(eps0=budget, n=count("n", n), clone=math.exp(-budget))


def feldman2021_numerical_delta(*, epsilon: float, eps0: float, n: int) -> float:
    """Upper bound on delta from the clones pair of Feldman et al. 2021, Theorem 3.2.

    Clone probability e^-eps0. No range restriction (eps0 <= 200, n <= 10^9 measured). Less than
    1e-3 relative above the pair's exact delta for delta >= 1e-12 (see `clones`), and 0 for epsilon
    >= eps0.
    """
    return _pair(eps0, n).delta(target("epsilon", epsilon))


def feldman2021_numerical_epsilon(*, eps0: float, delta: float, n: int) -> float:
    """The smallest epsilon with `feldman2021_numerical_delta` <= delta, at most eps0.

    About 15 evaluations of delta.
    """
    return _pair(eps0, n).epsilon(failure("delta", delta))
