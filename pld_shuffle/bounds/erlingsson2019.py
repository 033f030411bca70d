"""Erlingsson, Feldman, Mironov, Raghunathan, Talwar, Thakurta, Amplification by shuffling, SODA 2019.

If every user runs the same eps0-LDP randomizer with eps0 < 1/2, n >= 1000 and delta < 1/100, the shuffled
reports are (epsilon, delta)-DP with

    epsilon = 12 eps0 sqrt(log(1/delta)/n).

Stated as in Balle, Bell, Gascon, Nissim 2019, Theorem 4; *the constants rest on the authors'
proof*. Upper bounds, all three unknowns in closed form, O(1). The formula is returned as it stands
even where it exceeds eps0, which every eps0-LDP randomizer attains without shuffling.
"""

from __future__ import annotations

import math

from .domain import OutOfRange, count, delta_above, failure, local_budget, lowered, raised, target


def _check(*, eps0: float, delta: float, n: int) -> None:
    if not (eps0 < 0.5 and delta < 0.01 and n >= 1000):
        raise OutOfRange(
            "Erlingsson et al. 2019 needs eps0 < 1/2, delta < 1/100 and n >= 1000; "
            f"this is eps0 = {eps0:.4g}, delta = {delta:.4g}, n = {n}"
        )


def erlingsson_epsilon(*, eps0: float, delta: float, n: int) -> float:
    """Upper bound on epsilon; OutOfRange unless eps0 < 1/2, n >= 1000 and delta < 1/100."""
    budget, fail, users = local_budget(eps0), failure("delta", delta), count("n", n)
    _check(eps0=budget, delta=fail, n=users)
    return raised(12 * budget * math.sqrt(-math.log(fail) / users))


def erlingsson_delta(*, epsilon: float, eps0: float, n: int) -> float:
    """Upper bound on delta; OutOfRange unless eps0 < 1/2, n >= 1000 and the formula gives delta < 1/100."""
    wanted, budget, users = target("epsilon", epsilon), local_budget(eps0), count("n", n)
    delta = delta_above(-users * (wanted / (12 * budget)) ** 2)
    _check(eps0=budget, delta=delta, n=users)
    return delta


def erlingsson_eps0(*, epsilon: float, delta: float, n: int) -> float:
    """The largest eps0 that is amplified to (epsilon, delta).

    Raises OutOfRange unless n >= 1000, delta < 1/100 and the formula gives eps0 < 1/2: the range is open
    there and has no largest eps0.
    """
    wanted, fail, users = target("epsilon", epsilon), failure("delta", delta), count("n", n)
    eps0 = lowered(wanted / 12 / math.sqrt(-math.log(fail) / users))
    _check(eps0=eps0, delta=fail, n=users)
    return eps0
