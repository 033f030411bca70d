"""Renyi divergence of the package's own pairs at any real order.

    R(alpha) = log(E_Q[(P/Q)^alpha]) / (alpha - 1),

alpha the order. Where the pair has no closed form, the *excess* E_Q[(P/Q)^alpha] - 1 is enclosed: of coin mixtures by
sums over their coins (`renyi_coins`), of pairs known by a profile by an integral over it (`renyi_profile`), of all
others by a law on a lattice. Everything is summed in logs. Mass at infinite loss makes the divergence infinite.

Guarantee: `renyi_bounds` encloses the divergence. The enclosure's width is `rtol` where the budget of buckets and
intervals allows it. Otherwise it is wider, and still valid: measured 2e-3 for the weak adversary at order 40, 1e-2 at
10^4. Rounding is covered by the measured allowance ROUNDING on the logarithm of the excess.

Sources: Mironov 2017 (Renyi DP, additive over adaptive rounds); Canonne, Kamath, Steinke 2020, Prop. 12 (conversion,
`bounds.composing`); Zhu, Dong, Wang 2022, Prop. 30 (both halves of subsampling).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..numerics.sides import Bounds, Side
from ..numerics.validation import real_array, tolerance
from ..pairs.coins import CoinMixture
from ..pairs.pair import Pair, Resolution
from ..pairs.profile import ProfilePair
from .pld import PLD, formed
from .renyi_coins import ROUNDING, ROUNDING_PER_EXPONENT, log_mixture_excess
from .renyi_profile import log_excess

Array = NDArray[np.float64]
Sides = tuple[Side, ...]

RTOL = 1e-4  # relative width asked of an enclosure
#: Relative width of the buckets of numbers of coins in a lattice law, and laws that are remembered.
SIZE_WIDTH = 1e-5
LAWS_KEPT = 32
#: From so many users on, and for enclosures that need not be tighter, coins are asked by their profile.
PROFILE_USERS, PROFILE_RTOL = 3_000, 1e-3


def renyi_bounds(pair: Pair, alpha: Any, *, rtol: float = RTOL) -> Bounds:
    """Bounds(lower, upper) on the Renyi divergence of one round's pair.

    Parameters: pair; alpha, orders > 1 (inf gives the largest loss), scalar or array; rtol, the
    relative width asked for, in (1e-9, 1]. Both directions, R(P||Q) and R(Q||P), are covered, since
    neighbouring is symmetric. inf where the pair has mass at infinite loss.
    Raises TypeError or ValueError naming the argument. Cost, for a coin mixture: up to MAX_BUCKETS
    sums of O(sqrt(n)) terms (times the intervals of neutral labels), per order: milliseconds for
    n <= 10^5, seconds for 10^9, minutes beyond. For a profile: some hundred points, once for all orders.
    """
    return _bounds(pair, alpha, rtol, tuple(Side))


def renyi_divergence(pair: Pair, alpha: Any, *, rtol: float = RTOL) -> Any:
    """Renyi divergence of one round's pair at orders `alpha` > 1, from above.

    The upper end of `renyi_bounds` (which see); float, or array for an array. Multiply by the
    number of rounds to compose.
    """
    return _bounds(pair, alpha, rtol, (Side.UPPER,)).upper


def renyi_lower(pair: Pair, alpha: Any, *, rtol: float = RTOL) -> Any:
    """As `renyi_divergence`, from below."""
    return _bounds(pair, alpha, rtol, (Side.LOWER,)).lower


def _bounds(pair: Pair, alpha: Any, rtol: float, sides: Sides) -> Bounds:
    """The ends on `sides`; what is not asked may be trivial."""
    orders = real_array("alpha", alpha)
    if not np.all(orders > 1.0):
        raise ValueError(f"alpha must be greater than 1, got {alpha!r}")
    width = tolerance("rtol", rtol)
    found = [_divergence(pair, float(order), width, sides) for order in orders.ravel()]
    if orders.ndim == 0:
        return found[0]
    lower = np.array([bounds.lower for bounds in found], np.float64).reshape(orders.shape)
    upper = np.array([bounds.upper for bounds in found], np.float64).reshape(orders.shape)
    return Bounds(lower, upper)


def _divergence(pair: Pair, order: float, rtol: float, sides: Sides) -> Bounds:
    largest = pair.max_loss
    if pair.scale == 0.0 and largest.upper == 0.0:
        return Bounds(0.0, 0.0)
    if order == math.inf:
        return largest
    exact = pair.renyi(order)
    if exact is not None:
        return exact
    if isinstance(pair, ProfilePair):
        return _profile_divergence(pair, order, rtol, sides)
    if not (isinstance(pair, CoinMixture) and pair.participation == 1.0):
        return _lattice_divergence(pair, order)
    if pair.trivial:
        return Bounds(0.0, 0.0)
    if pair.gap <= 0.0:  # theta = 1: the toss that shows only heads has infinite loss
        return Bounds(math.inf, math.inf)
    known = _profiled(pair) if pair.n >= PROFILE_USERS and rtol >= PROFILE_RTOL else None
    if known is not None:
        return _profile_divergence(known, order, rtol, sides)
    logs = log_mixture_excess(pair, pair.amplification, order, rtol)
    lower = float(np.logaddexp(0.0, logs.lower)) / (order - 1.0)
    upper = float(np.logaddexp(0.0, logs.upper)) / (order - 1.0)
    # No divergence exceeds the largest loss.
    upper = min(upper * (1.0 + 1e-15), float(largest.upper))
    return Bounds(min(lower, upper) * (1.0 - 1e-15), upper)


@lru_cache(maxsize=LAWS_KEPT)
def _profiled(pair: CoinMixture) -> ProfilePair | None:
    return pair.as_profile


def _profile_divergence(pair: ProfilePair, order: float, rtol: float, sides: Sides) -> Bounds:
    """From points of the pair's profile."""
    ends = [0.0, float(pair.max_loss.upper)]
    for side in sides:
        logs = log_excess(pair, order, side, rtol)
        sign = 1.0 if side is Side.UPPER else -1.0
        # The largest loss is in `ends`: exponents go no further.
        logs += sign * (ROUNDING + ROUNDING_PER_EXPONENT * order * min(ends[1], 1e3))
        value = float(np.logaddexp(0.0, logs)) / (order - 1.0) * (1.0 + sign * 1e-15)
        if side is Side.UPPER:
            ends[1] = min(ends[1], value)
        else:
            ends[0] = value
    return Bounds(min(ends), ends[1])


def _lattice_divergence(pair: Pair, order: float) -> Bounds:
    """From lattice laws of a pair: their divergences, which enclose its own."""
    ends = []
    top = float(pair.max_loss.upper)
    for law in _laws(pair, math.ceil(math.log2(order - 1.0))):
        with np.errstate(divide="ignore"):
            logs = np.log(law.masses) + (order - 1.0) * law.losses
        total = float(np.logaddexp.reduce(logs))
        if law.infinity > 0.0:
            total = float(np.logaddexp(total, math.log(law.infinity) + (order - 1.0) * top))
        slack = law.slack + ROUNDING / (order - 1.0) + ROUNDING_PER_EXPONENT * law.losses[-1]
        sign = 1.0 if law.side is Side.UPPER else -1.0
        value = total / (order - 1.0) + sign * float(slack)
        ends.append(min(max(0.0, value), top))
    return Bounds(min(ends), max(ends))


@lru_cache(maxsize=LAWS_KEPT)
def _laws(pair: Pair, octave: int) -> list[PLD]:
    """Both laws of a pair, for orders up to 1 + 2^octave and not much smaller ones."""
    scale, top = pair.scale, float(pair.max_loss.upper)
    most = 2.0**octave
    # What windows miss counts with the largest loss: e^((order - 1) top) times, if that is finite.
    missed = math.exp(-20.0 - min(640.0, most * top)) if top < math.inf else 1e-290
    resolution = Resolution(
        scale / 400.0, missed=missed, size_width=SIZE_WIDTH, point_width=scale / 30.0,
        pull=(most * scale) ** 2,
    )  # fmt: skip
    return formed(pair, list(Side), resolution)
