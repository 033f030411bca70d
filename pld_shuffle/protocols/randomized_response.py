"""What the protocols built on randomized response share: the mechanism of one round, and its calibration."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

from ..mechanisms import CountedBits, ShuffledRR
from ..numerics.validation import positive_int
from ..randomizers.border import open_unit, positive_finite
from .budget import calibrated
from .protocol import Protocol

P = TypeVar("P", bound=Protocol)

LEAST_GAMMA = 1e-12
LARGEST_GAMMA = 1.0 - 1e-9  # beyond, eps0 and what is left of the truth are below 1e-8


def shuffled_response(values: int, gamma: float, n: int) -> CountedBits | ShuffledRR:
    """n users' randomized response over `values` values, for somebody who sees the shuffled reports.

    Exact for two values; with more, the weak adversary's pair is nearly attained, by others who hold a third value.
    """
    if values == 2:
        return CountedBits(n, gamma=gamma)
    return ShuffledRR(values, n, gamma=gamma, adversary="weak")


def calibrated_gamma(
    build: Callable[[float], P],
    *,
    values: int,
    epsilon: float,
    delta: float,
    rounds: int,
    honest: int,
    messages: int = 1,
) -> P:
    """The protocol with the least gamma, for randomized response over `values` values.

    A larger gamma is a post-processing (answer at random once more), so privacy grows with it. Where
    epsilon is shared equally by all messages as pure local privacy, no crowd is needed: the safe end (unless
    it is beyond LARGEST_GAMMA). gamma is at least LEAST_GAMMA.
    """
    target = positive_finite("epsilon", epsilon)
    shares = positive_int("rounds", rounds) * messages
    local = target / shares * (1.0 - 1e-12)
    safe = values / (math.expm1(min(local, 600.0)) + values)
    safe = max(min(safe * (1.0 + 1e-9), LARGEST_GAMMA), LEAST_GAMMA)
    failure = open_unit("delta", delta)
    guess = 2.0 * values * shares * -math.log(failure) / (honest * target**2)
    return calibrated(
        build,
        epsilon=target,
        delta=failure,
        rounds=rounds,
        low=LEAST_GAMMA,
        high=safe,
        guess=guess,
        increasing=False,
    )
