"""Feldman, McMillan, Talwar, Hiding among the clones, FOCS 2021.

Every eps0-LDP report of another user is, with probability e^-eps0, a copy of what the target would
send on a given one of its two inputs' laws mixed evenly ("clone"). Theorem 3.1 bounds the
resulting pair in closed form, Theorem 3.2 is the pair itself, evaluated numerically.

Upper bounds for every eps0-LDP randomizer (adaptively chosen, too), one round, substitution, all n
users honest.
"""

from __future__ import annotations

import math

from .clones import ClonesPair
from .closed_form import ClosedForm
from .domain import count, fraction, local_budget, positive

__all__ = [
    "feldman2021_delta",
    "feldman2021_eps0",
    "feldman2021_epsilon",
    "feldman2021_numerical_delta",
    "feldman2021_numerical_epsilon",
]


def _largest_eps0(log_delta: float, n: int) -> float:
    """The end of the theorem's range."""
    return math.log(n / (16 * (math.log(2) - log_delta)))


def _bracket(eps0: float, log_delta: float, n: int) -> float:
    per_user = math.exp(eps0) / n
    return math.tanh(eps0 / 2) * (
        8 * math.sqrt(per_user * (math.log(4) - log_delta)) + 8 * per_user
    )


_FORM = ClosedForm(
    "Feldman et al. 2021, Theorem 3.1,", "log(n/(16 log(2/delta)))", _largest_eps0, _bracket
)


def feldman2021_epsilon(*, eps0: float, delta: float, n: int) -> float:
    """Upper bound on epsilon, Feldman et al. 2021, Theorem 3.1.

    log(1 + (e^eps0-1)/(e^eps0+1) (8 sqrt(e^eps0 log(4/delta)/n) + 8 e^eps0/n)). Raises OutOfRange
    unless eps0 <= log(n/(16 log(2/delta))). O(1).
    """
    return _FORM.epsilon(eps0=eps0, delta=delta, n=n)


def feldman2021_eps0(*, epsilon: float, delta: float, n: int) -> float:
    """The largest eps0 in the range of Theorem 3.1 with `feldman2021_epsilon` <= epsilon;
    OutOfRange if there is none.
    """
    return _FORM.eps0(epsilon=epsilon, delta=delta, n=n)


def feldman2021_delta(*, epsilon: float, eps0: float, n: int) -> float:
    """The smallest delta in the range of Theorem 3.1 with `feldman2021_epsilon` <= epsilon.

    The range is delta >= 2 exp(-n/(16 e^eps0)). Raises OutOfRange if no delta < 1 satisfies both.
    O(1).
    """
    target, budget, users = positive("epsilon", epsilon), local_budget(eps0), count("n", n)
    per_user = math.exp(budget) / users
    root = math.expm1(target) / math.tanh(budget / 2) / 8 - per_user
    least, solved = math.log(2) - 1 / (16 * per_user), math.log(4) - root**2 / per_user
    return _FORM.delta(root, least, solved, epsilon=epsilon, eps0=eps0, n=n)


def feldman2021_numerical_delta(*, epsilon: float, eps0: float, n: int) -> float:
    """Upper bound on delta from the clones pair of Feldman et al. 2021, Theorem 3.2 (single round).

    Clone probability e^-eps0. No range restriction (eps0 <= 200, n <= 10^9 measured). Less than
    1e-3 relative above the pair's exact delta for delta >= 1e-12 (see `clones`), and 0 for epsilon
    >= eps0.
    """
    target, budget, users = positive("epsilon", epsilon), local_budget(eps0), count("n", n)
    return ClonesPair(eps0=budget, n=users, clone=math.exp(-budget)).delta(target)


def feldman2021_numerical_epsilon(*, eps0: float, delta: float, n: int) -> float:
    """The smallest epsilon with `feldman2021_numerical_delta` <= delta, at most eps0. About 15
    evaluations of delta.
    """
    budget, failure, users = local_budget(eps0), fraction("delta", delta), count("n", n)
    return ClonesPair(eps0=budget, n=users, clone=math.exp(-budget)).epsilon(failure)
