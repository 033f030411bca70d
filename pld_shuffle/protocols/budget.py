"""Calibration of a protocol to a privacy budget: the least noise that the accountant can prove.

A protocol is built from one positive parameter, in which its privacy is monotone; `calibration.safe_end`
searches. That it is monotone only steers the search: what is returned was accounted for by itself, and its
certified *upper* epsilon at delta is at most the one asked for.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TypeVar

from ..composition.attempts import AccuracyWarning
from ..numerics.search import LOOSE_RTOL, InfeasibleError, safe_end
from ..numerics.sides import Bounds
from ..numerics.validation import positive_int
from ..randomizers.border import open_unit, positive_finite
from .protocol import Protocol

P = TypeVar("P", bound=Protocol)

RTOL = 1e-3  # of the accountant's brackets on delta, `Protocol.accountant`'s default
WIDTH = 1e-5  # relative width to which the parameter is found; far below what it does to the error


def calibrated(
    build: Callable[[float], P],
    *,
    epsilon: float,
    delta: float,
    rounds: int,
    low: float,
    high: float,
    guess: float,
    increasing: bool,
) -> P:
    """The protocol with the least noise that is proved (epsilon, delta)-private over `rounds` rounds.

    build : parameter in [low, high] -> protocol; `increasing` says whether epsilon grows with it. `guess`:
    where to begin. Raises `calibration.InfeasibleError` (a ValueError) if the most private end is not enough,
    naming the budget and the users; TypeError or ValueError for a bad budget. About ten compositions.
    """
    target = positive_finite("epsilon", epsilon)
    # So that an accountant asked for delta, whose bracket is a little different, says at most delta, too.
    failure = open_unit("delta", delta) * (1.0 - RTOL)
    count = positive_int("rounds", rounds)

    def spent(parameter: float) -> Bounds:
        return build(parameter).accountant(count, rtol=RTOL).epsilon_bounds(failure)

    def loosely(parameter: float) -> Bounds:
        return build(parameter).accountant(count, rtol=LOOSE_RTOL).epsilon_bounds(failure)

    with warnings.catch_warnings():
        # A bracket wider than wanted is certified all the same, and its upper end decides.
        warnings.simplefilter("ignore", AccuracyWarning)
        try:
            end = safe_end(
                spent, target, low=low, high=high, increasing=increasing, rtol=WIDTH, start=guess,
                loose=loosely,
            )  # fmt: skip
        except InfeasibleError as error:
            noisiest = build(low if increasing else high)
            least = noisiest.accountant(count, rtol=LOOSE_RTOL).epsilon_bounds(failure)
            raise InfeasibleError(
                f"epsilon={target!r} at delta={delta!r} cannot be proved for n={noisiest.n} users"
                f" ({noisiest.honest} honest) and rounds={count}: with the most noise, {noisiest!r} spends"
                f" {least.lower:.4g} to {least.upper:.4g}; more honest users, fewer rounds, or a larger"
                " epsilon or delta would help"
            ) from error
    return build(end.value)
