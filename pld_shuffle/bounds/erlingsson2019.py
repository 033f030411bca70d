"""Erlingsson, Feldman, Mironov, Raghunathan, Talwar, Thakurta, Amplification by shuffling, SODA
2019.

In the form of Balle, Bell, Gascon, Nissim 2019, Theorem 4: if every user runs the same eps0-LDP
randomizer with eps0 < 1/2, n >= 1000 and delta < 1/100, the shuffled messages are (epsilon,
delta)-DP with

    epsilon = 12 eps0 sqrt(log(1/delta) / n).

Upper bounds, moved to the safe side; O(1). The three functions solve the same equation for each
unknown. The formula is returned as it stands even where it exceeds eps0, which every eps0-LDP
randomizer attains without shuffling.
"""

from __future__ import annotations

import math

from .domain import OutOfRange, above, below, count, delta_above, fraction, positive

__all__ = ["erlingsson_delta", "erlingsson_eps0", "erlingsson_epsilon"]

_EPS0 = 0.5
_N = 1000
_DELTA = 0.01


def _check_n(n: int) -> int:
    users = count("n", n)
    if not users >= _N:
        raise OutOfRange(f"n = {n!r}: Erlingsson et al. 2019 needs n >= {_N}")
    return users


def _check_eps0(eps0: float) -> float:
    budget = positive("eps0", eps0)
    if not budget < _EPS0:
        raise OutOfRange(f"eps0 = {eps0!r}: Erlingsson et al. 2019 needs eps0 < 1/2")
    return budget


def _check_delta(delta: float) -> float:
    failure = fraction("delta", delta)
    if not failure < _DELTA:
        raise OutOfRange(f"delta = {delta!r}: Erlingsson et al. 2019 needs delta < 1/100")
    return failure


def erlingsson_epsilon(*, eps0: float, delta: float, n: int) -> float:
    """Upper bound on epsilon (Balle et al. 2019, Theorem 4); OutOfRange unless eps0 < 1/2, n >=
    1000, delta < 1/100.
    """
    users, budget, failure = _check_n(n), _check_eps0(eps0), _check_delta(delta)
    return above(12 * budget * math.sqrt(-math.log(failure) / users))


def erlingsson_delta(*, epsilon: float, eps0: float, n: int) -> float:
    """Upper bound on delta (Balle et al. 2019, Theorem 4).

    Raises OutOfRange unless eps0 < 1/2 and n >= 1000, and when the epsilon is so small that the
    formula gives delta >= 1/100.
    """
    users, budget = _check_n(n), _check_eps0(eps0)
    target = positive("epsilon", epsilon)
    delta = delta_above(-users * (target / (12 * budget)) ** 2)
    if not delta < _DELTA:
        raise OutOfRange(
            f"epsilon = {epsilon!r}: Erlingsson et al. 2019 gives delta = {delta:.3g} there, "
            "and needs delta < 1/100"
        )
    return delta


def erlingsson_eps0(*, epsilon: float, delta: float, n: int) -> float:
    """The largest eps0 that is amplified to (epsilon, delta) (Balle et al. 2019, Theorem 4).

    Raises OutOfRange unless n >= 1000 and delta < 1/100, and when the formula gives eps0 >= 1/2.
    """
    users, failure = _check_n(n), _check_delta(delta)
    budget = below(positive("epsilon", epsilon) / 12 / math.sqrt(-math.log(failure) / users))
    if not budget < _EPS0:
        raise OutOfRange(
            f"epsilon = {epsilon!r}: Erlingsson et al. 2019 allows eps0 = {budget:.3g} there, "
            "and needs eps0 < 1/2"
        )
    return budget
