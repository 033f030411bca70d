"""Feldman, McMillan, Talwar, Stronger privacy amplification by shuffling, SODA 2023.

"Stronger clones": clone probability 2/(e^eps0 + 1) instead of e^-eps0. The closed form of section 3, for
eps0 <= log(n/(8 log(2/delta)) - 1), is

    epsilon = log(1 + (e^eps0-1) (4 sqrt(2 log(4/delta)/((e^eps0+1) n)) + 4/n)).

The paper carries an erratum: its proof fails for a third outcome that only the target shows. *Nothing
here rests on it*: docs/theory.md, section 4, proves the pair for every eps0-LDP randomizer, and
docs/bounds.md the closed form from the pair. Upper bounds, one round, substitution, all n users
honest, one randomizer for all users.
"""

from __future__ import annotations

import math

from .bound import EpsilonBound
from .clones import ClonesPair
from .domain import count, failure, local_budget, raised, target


def _formula(eps0: float, delta: float, n: int) -> float:
    both, log_delta = math.exp(eps0) + 1, math.log(delta)
    if not 8 * both * (math.log(2) - log_delta) <= n:
        return math.inf
    root = math.sqrt(2 * (math.log(4) - log_delta) / (both * n))
    return raised(math.log1p(4 * math.expm1(eps0) * (root + 1 / n)))


_BOUND = EpsilonBound(
    "Feldman et al. 2023 (closed form)", "eps0 <= log(n/(8 log(2/delta)) - 1)", _formula
)


def feldman2023_epsilon(*, eps0: float, delta: float, n: int) -> float:
    """Upper bound on epsilon, Feldman et al. 2023, closed form (section 3).

    Raises OutOfRange unless eps0 <= log(n/(8 log(2/delta)) - 1). O(1).
    """
    return _BOUND.epsilon(eps0=eps0, delta=delta, n=n)


def feldman2023_eps0(*, epsilon: float, delta: float, n: int) -> float:
    """The largest eps0 in the range of the closed form with `feldman2023_epsilon` <= epsilon.

    Raises OutOfRange if there is none.
    """
    return _BOUND.eps0(epsilon=epsilon, delta=delta, n=n)


def feldman2023_delta(*, epsilon: float, eps0: float, n: int) -> float:
    """The smallest delta in the range of the closed form with `feldman2023_epsilon` <= epsilon.

    The range is 2 exp(-n/(8 (e^eps0 + 1))) <= delta < 1. Raises OutOfRange if there is none.
    """
    return _BOUND.delta(epsilon=epsilon, eps0=eps0, n=n)


def _pair(eps0: float, n: int) -> ClonesPair:
    budget = local_budget(eps0)
    return ClonesPair(eps0=budget, n=count("n", n), clone=2 / (math.exp(budget) + 1))


def feldman2023_numerical_delta(*, epsilon: float, eps0: float, n: int) -> float:
    """Upper bound on delta from the stronger-clones pair, clone probability 2/(e^eps0 + 1).

    No range restriction (eps0 <= 200, n <= 10^9 measured). Less than 1e-3 relative above the pair's exact
    delta for delta >= 1e-12 (see `clones`), and 0 for epsilon >= eps0.
    """
    return _pair(eps0, n).delta(target("epsilon", epsilon))


def feldman2023_numerical_epsilon(*, eps0: float, delta: float, n: int) -> float:
    """The smallest epsilon with `feldman2023_numerical_delta` <= delta, at most eps0.

    About 15 evaluations of delta.
    """
    return _pair(eps0, n).epsilon(failure("delta", delta))
