"""Renyi divergences are values of the moment function: with t = alpha - 1, R(alpha) = log E[exp(t L)] / t.

For x > 0, x^alpha = alpha (alpha - 1) int_0^inf s^(alpha - 2) (x - s)_+ ds: the moment is a mixture of hockey-stick
divergences, so both ends come from the atoms of one round (`moments`), formed finely enough for the tilt t.

*The catch* is the mass w that an upper law has at infinity, because its points or windows end at some loss l. Behind l
the profile h is at most w, less where its logarithm is known, and 0 from the largest loss on. By the same formula w
adds at most alpha (w e^(t l) + sum of h(l_i) (e^(t l_(i+1)) - e^(t l_i))). True mass at infinity is in the lower law,
too, and the divergence is infinite.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from ..numerics.sides import ROUNDOFF, Array, Bounds
from ..numerics.tuning import LAWS_PER_OCTAVE, LEAST_SHARE, PROFILE_USERS, TAIL_PIECES
from ..numerics.validation import real_array, tolerance
from ..pairs.coins import CoinMixture
from ..pairs.discrete import EitherOrder, OrderedPair
from ..pairs.pair import Attacks, Pair, Resolution
from ..pairs.profile import BothOrders, ProfilePair
from .moments import MomentFunction, Moments, Rounds

RTOL = 1e-4  # relative width asked of an enclosure
FAINTEST = 1e-60  # scale of a loss, or largest loss; below it an enclosure is trivial
LARGEST_GROWTH = 690.0  # its logarithm


def renyi_bounds(pair: Pair, alpha: Any, *, rtol: float = RTOL) -> Bounds:
    """Bounds(lower, upper) on the Renyi divergence of one round's pair at orders `alpha` > 1, scalar or array.

    rtol : the relative width asked for. It may be wider, and is still certified. At inf: the largest loss. Where the
    pair is the worse of two orders, the lower end is the larger of both orders' own divergences.
    Raises TypeError or ValueError naming the argument.
    """
    orders = real_array("alpha", alpha)
    if not np.all(orders > 1.0):
        raise ValueError(f"alpha must be greater than 1, got {alpha!r}")
    width = tolerance("rtol", rtol)
    found = [_at_order(pair, float(order), width) for order in orders.ravel()]
    if orders.ndim == 0:
        return found[0]
    return Bounds(*(np.array(ends).reshape(orders.shape) for ends in zip(*found, strict=True)))


def _at_order(pair: Pair, order: float, rtol: float) -> Bounds:
    if order == math.inf:
        return pair.max_loss
    if isinstance(pair, Attacks):
        return Bounds(*np.max([_at_order(part, order, rtol) for part in pair.pairs], axis=0).tolist())
    if min(pair.scale, pair.max_loss.upper) < FAINTEST:
        return Bounds(0.0, max(0.0, pair.max_loss.upper))
    if (exact := pair.renyi(order)) is not None:
        return exact
    t = order - 1.0
    # A law is formed for a grid of tilts. Those below a scale share one, unless losses have a heavy tail.
    each = LAWS_PER_OCTAVE
    octave = round(each * math.log2(t * pair.scale)) / each
    found = _Laws.of(pair, 2.0 ** max(0.0, octave) / pair.scale, rtol).ends(t)
    if octave < 0.0 and found.upper - found.lower > rtol * found.upper:
        found = _Laws.of(pair, 2.0**octave / pair.scale, rtol).ends(t)
    # The divergence of the worse of two orders at each epsilon is that of neither.
    if isinstance(pair, (EitherOrder, BothOrders)):
        orders = pair.pairs if isinstance(pair, BothOrders) else map(OrderedPair, pair.orders)
        return Bounds(max(_at_order(one, order, rtol).lower for one in orders), found.upper)
    return found


class _Laws:
    """One round of a pair on both sides, for the tilt t and somewhat smaller ones."""

    def __init__(self, pair: Pair, resolution: Resolution) -> None:
        self._pair, self._top = pair, float(pair.max_loss.upper)
        self._below, self._above = Rounds.of(pair, 1, {pair: resolution})
        self._tails: dict[float, tuple[Array, Array | None]] = {}

    @staticmethod
    @lru_cache(maxsize=64)
    def of(pair: Pair, t: float, rtol: float) -> _Laws:
        """Formed so finely that the width is about rtol; a coarse look first says what the tilt makes of the loss.

        Splitting mass inside cells of width d changes log M(t) by about (t^2 + t) d^2 / 12, see `plan`.
        """
        scale, top = pair.scale, float(pair.max_loss.upper)
        if isinstance(pair, CoinMixture) and pair.n > PROFILE_USERS:
            pair = pair.as_profile or pair
        tailed = isinstance(pair, ProfilePair) and pair.log_tail(np.zeros(1)) is not None
        log, mean = min(0.5 * (t * t + t) * scale**2, t * top), min((t + 0.5) * scale**2, top)
        rtol *= min(max(1.0, t * scale / 8.0), 8.0)  # far out: many points, little to gain
        share = max(0.01 / rtol, 1.0)
        while True:
            spent, square = share * rtol * log, 2.0 * log
            # What may be left out: e^(t top) of it is little, or what a normal law has there if a tail is known,
            # with 8 for its last factor.
            needed = 8.0 - math.log(share * rtol * min(1.0, log)) + math.log1p(t)
            normal = 0.5 * (math.sqrt(square) + math.sqrt(square + 2.0 * needed)) ** 2
            far = min(needed + t * top, max(normal, 40.0) if tailed else 600.0)
            step = math.sqrt(8.0 * spent / (t * t + t))
            laws = _Laws(pair, Resolution(
                step, truncated_mass=math.exp(-min(600.0, far)), size_width=2.0 * spent / square,
                bias_width=math.sqrt(8.0 * spent / (square * (1.0 + square))),
                pull=(mean / scale) ** 2, point_width=step, tilt=t,
            ))  # fmt: skip
            log, wrong, mean = laws._estimates(t)
            if laws._below.infinity_mass > 0.0 or not wrong > rtol * log or share < LEAST_SHARE:
                return laws
            share *= max(min(0.7 * rtol * log / wrong, 0.5), 1e-3)

    def _estimates(self, t: float) -> tuple[float, float, float]:
        """The logarithm of the moment, its width, and the tilted mean."""
        (low, high), means, _ = Moments([self._below, self._above]).slopes(t)
        if isinstance(self._above, Rounds) and self._above.size > 1 and not self._pair.encloses:  # chords of a profile
            weight = np.exp(np.log(self._above.mass) + t * self._above.loss - high)
            square = (t * t + t) * np.gradient(self._above.loss) ** 2
            low = high - float(weight @ np.minimum(square / 12.0, 1.0))
        return float(max(high, 1e-300)), float(high - low), float(means[1])

    def ends(self, t: float) -> Bounds:
        """Bounds on the divergence."""
        if self._below.infinity_mass > 0.0:
            return Bounds(math.inf, math.inf)
        low = _log_moment(self._below, t, -1.0) / t
        high = min(float(np.logaddexp(_log_moment(law, t, 1.0), self._log_beyond(law, t))) for law in self._cut(t))
        upper = min(high / t * (1.0 + 4.0 * ROUNDOFF), self._top)
        if self._pair.encloses and not low <= upper * (1.0 + 1e-9) + 1e-15 / t:
            raise ArithmeticError(f"inverted bracket [{low}, {upper}] of {self._pair!r} at {t=}")
        return Bounds(min(max(low * (1.0 - 4.0 * ROUNDOFF), 0.0), upper), upper)

    def _cut(self, t: float) -> list[MomentFunction]:
        """The upper law, and one that ends where the logarithm of the profile is known better: among tiny masses."""
        law = self._above
        if not isinstance(law, Rounds) or t * float(law.loss[-1]) < 100.0:
            return [law]
        first = int(np.searchsorted(law.loss, 100.0 / t))
        rest = np.cumsum(law.mass[::-1])[::-1][first:] + law.infinity_mass
        tail = self._tail(law.loss[first:])
        if tail is None or not (worse := np.log(rest) > tail + 2.0).any():
            return [law]
        k = int(np.argmax(worse))
        end = max(first + k, 1)
        return [law, replace(
            law, mass=law.mass[:end], loss=law.loss[:end], infinity_mass=float(rest[k]) * (1.0 + 1e-9), total=None,
            mass_error=None if law.mass_error is None else law.mass_error[:end],
        )]  # fmt: skip

    def _tail(self, losses: Array) -> Array | None:
        """Upper bounds on the logarithm of the profile, where there are any."""
        if not isinstance(self._pair, ProfilePair):
            return None
        return self._pair.log_tail(np.expm1(np.minimum(losses, LARGEST_GROWTH)))

    def _log_beyond(self, law: MomentFunction, t: float) -> float:
        """log of what the mass at infinity of an upper law may add to the moment.

        The losses at which the tail is known serve all tilts.
        """
        if law.infinity_mass == 0.0:
            return -math.inf
        if not isinstance(law, Rounds) or self._top == math.inf:
            return math.inf
        last, lost = min(float(law.loss[-1]) + law.loss_error, self._top), math.log(law.infinity_mass)
        if last not in self._tails:
            losses = np.linspace(last, self._top, TAIL_PIECES + 1)[:-1]
            self._tails[last] = losses, self._tail(losses)
        losses, tail = self._tails[last]
        while True:
            gap = np.diff(losses, append=self._top)
            heights = np.full(gap.size, lost) if tail is None else np.minimum(lost, tail)
            with np.errstate(divide="ignore"):
                parts = heights + t * (losses + gap) + np.log(-np.expm1(-t * gap))
            heavy = np.flatnonzero((parts > parts.max() - 10.0) & (t * gap > 1.0))
            if tail is None or heavy.size == 0 or losses.size > 16 * TAIL_PIECES:
                break
            inner = (losses[heavy] + np.outer((0.25, 0.5, 0.75), gap[heavy])).ravel()
            order = np.argsort(np.append(losses, inner))
            losses, tail = (np.append(*both)[order] for both in ((losses, inner), (tail, self._tail(inner))))
            self._tails[last] = losses, tail
        total = np.logaddexp.reduce(np.append(parts, lost + t * last))
        return float(total) + math.log1p(t) + 1e-13 * (1.0 + t * self._top)


def _log_moment(law: MomentFunction, t: float, sign: float) -> float:
    moments = Moments([law])
    found = moments.log_known(t), moments.log_moments(t)
    value, error = next((one, other) for [one], [other] in found if not math.isnan(one))
    return float(value + sign * (error + t * law.loss_error))
