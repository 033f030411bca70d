"""Feldman, McMillan, Talwar, Stronger privacy amplification by shuffling, SODA 2023.

"Stronger clones": clone probability 2/(e^eps0 + 1) instead of e^-eps0. The paper carries an
erratum (its proof fails for a third outcome that only the target shows); the statement for every
eps0-LDP randomizer is restored by the convex-order argument of docs/theory.md, section 4, so the
closed form below is used for all of them.

Upper bounds, one round, substitution, all n users honest, one randomizer for all users.
"""

from __future__ import annotations

import math

from .clones import ClonesPair
from .closed_form import ClosedForm
from .domain import count, fraction, local_budget, positive

__all__ = [
    "feldman2023_delta",
    "feldman2023_eps0",
    "feldman2023_epsilon",
    "feldman2023_numerical_delta",
    "feldman2023_numerical_epsilon",
]


def _largest_eps0(log_delta: float, n: int) -> float:
    """The end of the closed form's range; -inf if it is empty."""
    ratio = n / (8 * (math.log(2) - log_delta)) - 1
    return math.log(ratio) if ratio > 0 else -math.inf


def _bracket(eps0: float, log_delta: float, n: int) -> float:
    root = 4 * math.sqrt(2 * (math.log(4) - log_delta) / ((math.exp(eps0) + 1) * n))
    return math.expm1(eps0) * (root + 4 / n)


_FORM = ClosedForm(
    "Feldman et al. 2023 (closed form)", "log(n/(8 log(2/delta)) - 1)", _largest_eps0, _bracket
)


def feldman2023_epsilon(*, eps0: float, delta: float, n: int) -> float:
    """Upper bound on epsilon, Feldman et al. 2023, closed form (section 3).

    log(1 + (e^eps0-1) (4 sqrt(2 log(4/delta))/sqrt((e^eps0+1) n) + 4/n)). Raises OutOfRange unless
    eps0 <= log(n/(8 log(2/delta)) - 1). O(1).
    """
    return _FORM.epsilon(eps0=eps0, delta=delta, n=n)


def feldman2023_eps0(*, epsilon: float, delta: float, n: int) -> float:
    """The largest eps0 in the range of the closed form with `feldman2023_epsilon` <= epsilon;
    OutOfRange if there is none.
    """
    return _FORM.eps0(epsilon=epsilon, delta=delta, n=n)


def feldman2023_delta(*, epsilon: float, eps0: float, n: int) -> float:
    """The smallest delta in the range of the closed form with `feldman2023_epsilon` <= epsilon.

    The range is delta >= 2 exp(-n/(8 (e^eps0 + 1))). Raises OutOfRange if no delta < 1 satisfies
    both. O(1).
    """
    target, budget, users = positive("epsilon", epsilon), local_budget(eps0), count("n", n)
    both = math.exp(budget) + 1
    root = (math.expm1(target) / math.expm1(budget) - 4 / users) / 4
    least, solved = math.log(2) - users / (8 * both), math.log(4) - root**2 * both * users / 2
    return _FORM.delta(root, least, solved, epsilon=epsilon, eps0=eps0, n=n)


def feldman2023_numerical_delta(*, epsilon: float, eps0: float, n: int) -> float:
    """Upper bound on delta from the stronger-clones pair (single round), clone probability
    2/(e^eps0 + 1).

    No range restriction (eps0 <= 200, n <= 10^9 measured). Less than 1e-3 relative above the
    pair's exact delta for delta >= 1e-12 (see `clones`), and 0 for epsilon >= eps0.
    """
    target, budget, users = positive("epsilon", epsilon), local_budget(eps0), count("n", n)
    return ClonesPair(eps0=budget, n=users, clone=2 / (math.exp(budget) + 1)).delta(target)


def feldman2023_numerical_epsilon(*, eps0: float, delta: float, n: int) -> float:
    """The smallest epsilon with `feldman2023_numerical_delta` <= delta, at most eps0. About 15
    evaluations of delta.
    """
    budget, failure, users = local_budget(eps0), fraction("delta", delta), count("n", n)
    return ClonesPair(eps0=budget, n=users, clone=2 / (math.exp(budget) + 1)).epsilon(failure)
