"""From Renyi differential privacy to (epsilon, delta), with the best order.

An (alpha, R)-RDP mechanism is (epsilon, delta)-DP for every alpha > 1 with

    epsilon = R + log(1 - 1/alpha) + (log(1/delta) - log(alpha))/(alpha - 1),
    log delta = (alpha - 1) (R - epsilon + log(1 - 1/alpha)) - log(alpha)

(Canonne, Kamath, Steinke 2020, Proposition 12; Balle, Barthe, Gaboardi, Hsu, Sato 2020, Theorem
21). Upper bounds. R adds up over adaptive rounds: pass the sum. A divergence of +inf at some orders
is allowed and never chosen unless all are infinite. Proof: two lines of docs/bounds.md.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..numerics.sides import Side
from ..numerics.validation import real_array
from .bound import OutOfRange, delta_above, failure, target


class EpsilonAtOrder(NamedTuple):
    """An upper bound on epsilon and the Renyi order that attains it."""

    epsilon: float
    order: float


class DeltaAtOrder(NamedTuple):
    """An upper bound on delta and the Renyi order that attains it."""

    delta: float
    order: float


def _curve(orders: ArrayLike, rdp: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    # a Renyi divergence rises with its order, so a smaller order and a larger divergence are safe
    alphas = np.atleast_1d(real_array("orders", orders, Side.LOWER))
    values = np.atleast_1d(real_array("rdp", rdp, Side.UPPER))
    if alphas.ndim != 1 or alphas.shape != values.shape or alphas.size == 0:
        raise ValueError(
            f"orders and rdp must be non-empty and of equal length, got shapes {alphas.shape} "
            f"and {values.shape}"
        )
    if not np.all((alphas > 1) & (alphas < np.inf)):
        raise ValueError(f"orders must be finite and > 1, got {orders!r}")
    if not np.all(values >= 0):
        raise ValueError(f"rdp must be >= 0, got {rdp!r}")
    if not np.any(values < np.inf):
        raise OutOfRange("rdp is infinite at every order: no (epsilon, delta) follows")
    return alphas, values


def rdp_to_epsilon(*, orders: ArrayLike, rdp: ArrayLike, delta: float) -> EpsilonAtOrder:
    """Smallest epsilon >= 0 over the given orders, and its order (Canonne et al. 2020, Proposition 12).

    `orders` > 1 and `rdp` >= 0 are 1-D of equal length; 0 < delta < 1. A negative epsilon is
    reported as 0, which it implies. Raises OutOfRange if rdp is infinite everywhere. O(number of
    orders).
    """
    fail = failure("delta", delta)
    alphas, values = _curve(orders, rdp)
    epsilons = values + np.log1p(-1 / alphas) - (math.log(fail) + np.log(alphas)) / (alphas - 1)
    best = int(np.argmin(epsilons))
    # the slack is relative to the terms, not to their possibly small sum
    size = float(values[best]) + abs(math.log(fail)) / float(alphas[best] - 1)
    return EpsilonAtOrder(max(0.0, float(epsilons[best]) + 1e-14 * (size + 1)), float(alphas[best]))


def rdp_to_delta(*, orders: ArrayLike, rdp: ArrayLike, epsilon: float) -> DeltaAtOrder:
    """Smallest delta <= 1 over the given orders, and its order (Canonne et al. 2020, Proposition 12).

    `orders` > 1 and `rdp` >= 0 are 1-D of equal length; epsilon > 0. Raises OutOfRange if rdp is
    infinite everywhere. O(number of orders).
    """
    wanted = target("epsilon", epsilon)
    alphas, values = _curve(orders, rdp)
    logs = (alphas - 1) * (values - wanted + np.log1p(-1 / alphas)) - np.log(alphas)
    best = int(np.argmin(logs))
    return DeltaAtOrder(delta_above(float(logs[best])), float(alphas[best]))
