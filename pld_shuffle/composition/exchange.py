"""Rounds bought with Gaussian noise: prices that stay right when rounds are chosen by what was seen.

Let V_b(y) be the hockey-stick divergence, at e^y for any real y, of Gaussian noise of budget b = mu^2; budgets add up.
A round of loss L may be *bought* for c, with a cushion a of noise that is kept, if

    E V_a(y - L) <= V_(a+c)(y) + k c     for all real y.               (*)

Then a run that starts with budget B is (epsilon, V_B(epsilon) + k B)-DP, whatever is chosen and whenever it stops; and
*reserved rounds* may be taken at any time for nothing (docs/howto/adaptive.md, Theorems 1 and 2). The more is left, the
more a round looks like its variance: so prices are asked for at a ladder of cushions.

*Certificate.* The law of the round is an upper one, on a lattice. For a symmetric pair y >= 0 is enough. Both sides of
(*) are convex in s = e^y: between two nodes the left one is below its chord, the right one above its tangents, so that
nodes and midpoints decide. Beyond the last node the left side is below k c.
"""

from __future__ import annotations

import copy
import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from ..numerics.search import first_satisfying
from ..numerics.sides import ROUNDOFF, Array, Bounds, Side, above, below
from ..numerics.tuning import CUSHIONS, EXCHANGE, SMALL_CUSHIONS
from ..pairs.gaussian import GaussianPair, gaussian_delta, noise_of, root
from ..pairs.pair import Pair, Resolution
from ..pairs.profile import Several
from .composition import AccuracyWarning, Composition
from .pld import PLD, formed
from .renyi import renyi_bounds

SHARE, STEP, PRECISION, WORTHWHILE, RENYI_RTOL, MOST_NODES = EXCHANGE
LARGEST_BUDGET, SMALLEST_BUDGET = 1e6, 1e-30
COMPOSED_RTOL = 1e-3  # of delta, where rounds are reserved
ROUNDING = 1e-11  # relative, of masses (1e-14, `Atoms.mass_error`) and of sums of up to 2^16 terms


class Budget(ABC):
    """What may be spent on adaptively chosen rounds, in a currency that adds up.

    total : all of it, rounded down; below 0 if nothing can be proven.
    """

    total: float

    def __init__(self) -> None:
        self._taken: dict[Pair, tuple[float, float, float]] = {}  # what was left, and the best offer then

    @abstractmethod
    def offers(self, pair: Pair, left: float) -> Iterator[tuple[float, float]]:
        """(kept, price) of one round, the best first: the price holds if at least `kept` is left after it.

        Offers that are better when more than `left` is left need not be made.
        """

    def after(self, pair: Pair, left: float, count: int = 1) -> float:
        """What is left, rounded down, after `count` rounds bought one by one; -inf if `left` is not enough."""
        while count > 0:
            asked, kept, price = self._taken.get(pair, (-1.0, 0.0, math.inf))
            if not (left <= asked and kept + price <= left):  # what was the best with more left still is
                fitting = (offer for offer in self.offers(pair, left) if sum(offer) <= left)
                kept, price = next(fitting, (0.0, math.inf))
                if price == math.inf:
                    return -math.inf
                self._taken[pair] = left, kept, price
            if price == 0.0:
                return left
            at_once = min(count, max(1, int((left - kept) / price * (1.0 - 1e-9))))
            left = max(0.0, below(left - above(at_once * price)))
            count -= at_once
        return left

    def after_each(self, pair: Pair, left: Array) -> Array:
        """The same of one round for every entry of `left`, each at most `total`; to 4 roundings of that."""
        found: Array | None = None
        most, least = float(left.max(initial=0.0)), float(left.min(initial=math.inf))
        for kept, price in self.offers(pair, most):
            paid = above(price + 4.0 * ROUNDOFF * self.total)
            if found is None and kept + paid <= least:
                return left - paid
            found = np.full(left.shape, -math.inf) if found is None else found
            np.copyto(found, left - paid, where=(found == -math.inf) & (kept + paid <= left))
        return np.full(left.shape, -math.inf) if found is None else found

    def share_after(self, rounds: Iterable[tuple[Pair, int]]) -> float:
        """The share of `total` that these rounds, one after the other, would leave; -inf if they do not fit."""
        left = self.total
        for pair, count in rounds:
            left = self.after(pair, left, count)
        return left / self.total if left >= 0.0 < self.total else -math.inf


class RenyiBudget(Budget):
    """A sum of Renyi divergences of one order, fixed before anything is run (Feldman, Zrnic 2021).

    With t = order - 1, exp(t (L - spent)) is a supermartingale, and (1 - e^(epsilon - l))_+ is at most delta
    exp(t (l - total)) for total = epsilon + log(order / t) + log(order delta) / t (Canonne, Kamath, Steinke 2020, Prop.
    12). Order inf adds up largest losses, and needs no delta.
    """

    def __init__(self, epsilon: float, delta: float, order: float) -> None:
        super().__init__()
        self._order = order
        self._prices: dict[Pair, float] = {}
        self.total = epsilon
        if order < math.inf:
            t = order - 1.0
            gain = math.log1p(1.0 / t), (math.log(order) + math.log(delta)) / t
            size = epsilon + gain[0] + (math.log(order) - math.log(delta)) / t
            self.total = epsilon + sum(gain) - 16.0 * ROUNDOFF * size

    def offers(self, pair: Pair, left: float) -> Iterator[tuple[float, float]]:
        if pair not in self._prices:
            self._prices[pair] = float(renyi_bounds(pair, self._order, rtol=RENYI_RTOL).upper)
        yield 0.0, self._prices[pair]


class GaussianBudget(Budget):
    """The budget mu^2 of Gaussian noise that is worth (epsilon, delta), and prices of rounds in it.

    `offers` raises ValueError for a pair that does not cover both orders of two neighbours.
    """

    def __init__(
        self, epsilon: float, delta: float, reserved: Sequence[tuple[Pair, int]] = (), total: float | None = None
    ) -> None:
        """epsilon, delta : doubles, epsilon >= 0 finite, 0 < delta < 1. reserved : symmetric pairs; see the module.

        total : as it was found before. ValueError if the reserved rounds are not proven to be within (epsilon, delta).
        """
        super().__init__()
        self._delta = delta
        self.total = _budget(epsilon, (1.0 - SHARE) * delta) if total is None else total
        if reserved:
            self.total = _beside(reserved, epsilon, delta, self.total)
        self._allowance = below(SHARE * delta / max(self.total, 1e-300), 8.0)
        self._prices: dict[tuple[Pair, float], float] = {}

    def at(self, epsilon: float) -> GaussianBudget:
        """The budget at a smaller epsilon, with the same prices: there they may allow for less than they could."""
        found = copy.copy(self)
        found._taken = {}
        found.total = _budget(epsilon, (1.0 - SHARE) * self._delta)
        return found

    def offers(self, pair: Pair, left: float) -> Iterator[tuple[float, float]]:
        noise = noise_of(pair)
        if pair.scale == 0.0 or noise is not None:
            yield 0.0, 0.0 if noise is None else float(noise.upper)
            return
        square = pair.scale**2
        best: list[tuple[float, float]] = []
        for cushion in CUSHIONS:
            kept = cushion * square
            if kept < left and kept + (price := self._known(pair, kept)) <= left:
                if best and price > best[-1][1] * (1.0 - WORTHWHILE):
                    break
                best.append((kept, price))
        yield from reversed(best)
        for cushion in SMALL_CUSHIONS:
            kept = cushion * square
            if kept < left:
                yield kept, self._known(pair, kept)

    def _known(self, pair: Pair, cushion: float) -> float:
        if (pair, cushion) not in self._prices:
            # Each of several pairs is proven; their hull is dearer to form, and hardly better.
            parts = pair.pairs if isinstance(pair, Several) else (pair,)
            self._prices[pair, cushion] = min(exchange_price(part, cushion, self._allowance) for part in parts)
        return self._prices[pair, cushion]


def _budget(epsilon: float, delta: float) -> float:
    """The largest mu^2, nearly, of noise proven to have at most `delta` at `epsilon`; 0 if none is."""

    def excess(square: float) -> float:
        found = gaussian_delta(root(Bounds(square, square)), np.array([epsilon])).upper
        return math.log(max(float(found[0]), 1e-300) / delta)

    return first_satisfying(excess, LARGEST_BUDGET, SMALLEST_BUDGET, rtol=1e-13) or 0.0


def _beside(reserved: Sequence[tuple[Pair, int]], epsilon: float, delta: float, most: float) -> float:
    """The largest mu^2, nearly, of noise that has at most `delta` together with the reserved rounds; 0 if none has."""
    rounds: list[tuple[Pair, int]] = []
    for pair, count in reserved:
        # What is proven for many rounds of a pair at once says nothing of others in between.
        alike = pair.repeated(count) == [(pair, count)]
        rounds += [(pair, count)] if alike else [(pair, 1)] * count

    def excess(square: float) -> float:
        noise = [(GaussianPair(Bounds(square, square)), 1)] if square > 0.0 else []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AccuracyWarning)  # wider is still proven
            spent = Composition([*rounds, *noise], COMPOSED_RTOL).deltas(epsilon).upper
        share = 1.0 - SHARE if noise else 1.0
        return math.log(max(float(spent), 1e-300) / (share * delta))

    if excess(0.0) > 0.0:
        raise ValueError(f"reserved rounds must fit into epsilon={epsilon!r} at delta={delta!r}, got {reserved!r}")
    return first_satisfying(excess, most, 1e-4 * most, steps=14, rtol=1e-3) or 0.0


def exchange_price(pair: Pair, cushion: float, allowance: float) -> float:
    """A budget c that buys one round of a symmetric pair if `cushion` is left afterwards, (*) with k = `allowance`.

    inf if none is found. Raises ValueError for a pair that does not cover both orders. O(nodes * points).
    """
    if not pair.symmetric:
        raise ValueError(f"pair must be symmetric, got {pair!r}")
    square = pair.scale**2
    law = _law(pair, cushion, least=1e-3 * allowance * square)
    depth = math.sqrt(-2.0 * math.log(min(0.1 * allowance * square, 0.1)))
    last = 0.5 * cushion + depth * math.sqrt(cushion) + max(float(law.losses[-1]), 0.0)
    nodes = math.ceil(last / law.step) + 2
    if nodes > MOST_NODES:
        return math.inf
    y: Array = np.arange(nodes, dtype=np.float64) * law.step
    spent = _with_noise(law, cushion, nodes)

    def excess(cost: float) -> float:
        return -1.0 if _dominated(spent, y, law.step, cushion + cost, below(allowance * cost, 4.0)) else 1.0

    return first_satisfying(excess, 0.5 * square, 2.0**13 * square, steps=14, rtol=PRECISION) or math.inf


def _law(pair: Pair, cushion: float, least: float) -> PLD:
    """An upper law of one round, on a lattice; up to `least` of its mass is left out, at infinity."""
    scale = pair.scale
    # The cushion is exceeded by few deviations: that is the tilt under which the round is looked at.
    tilt = 4.0 / math.sqrt(cushion + scale**2)
    law = formed(pair, [Side.UPPER], Resolution(
        STEP * scale, truncated_mass=max(least, 1e-290), size_width=STEP**2 / 4.0, bias_width=STEP / 2.0,
        pull=(tilt * scale) ** 2, point_width=STEP * scale, tilt=tilt,
    ))[0]  # fmt: skip
    tail = np.cumsum(law.masses[::-1])[::-1]
    kept = int(np.searchsorted(-tail, -least))
    if kept == law.masses.size:
        return law
    infinity = law.infinity + float(tail[kept]) * (1.0 + 2.0 * ROUNDOFF * tail.size)
    return replace(law, masses=law.masses[: max(kept, 1)], infinity=min(infinity, 1.0))


def _with_noise(law: PLD, cushion: float, nodes: int) -> Array:
    """E V_cushion(y - L) from above, at y = 0, step, 2 step, ..., over an upper law."""
    size = law.masses.size
    # Entry j of the convolution has y - L at (j - low - size + 1) steps.
    places = np.arange(nodes + size - 1, dtype=np.float64) - (law.low + size - 1)
    y = places * law.step
    loss_error = law.loss_error + 4.0 * ROUNDOFF * float(np.abs(y).max())
    found = np.convolve(_hockey(cushion, y - loss_error), law.masses, mode="valid")
    return np.asarray(found * (1.0 + ROUNDING) + law.infinity)


def _hockey(square: float, y: Array) -> Array:
    """V at any real y, from above: 1 - e^y + e^y V(-y) where y < 0."""
    if square == 0.0:
        return np.asarray(-np.expm1(np.minimum(y, 0.0)) * (1.0 + 4.0 * ROUNDOFF))
    far = gaussian_delta(root(Bounds(square, square)), np.abs(y)).upper
    fall = np.minimum(y, 0.0)
    return np.asarray((np.exp(fall) * far - np.expm1(fall)) * (1.0 + 8.0 * ROUNDOFF))


def _dominated(spent: Array, y: Array, step: float, square: float, allowance: float) -> bool:
    """Whether the convex function through `spent` is proven to be at most V_square + allowance for all y >= 0."""
    from scipy.special import erfcx

    mu = root(Bounds(below(square), above(square)))
    least = gaussian_delta(mu, y).lower + allowance * (1.0 - 1e-12)
    if not (spent[-1] <= allowance and np.all(spent <= least)):
        return False
    # The slope in s = e^y is -Q(L > y) = -Phi(-v); here times s. Half of the cell is (e^step - 1) s / 2 wide.
    u, v = y / mu.lower - 0.5 * mu.lower, y / mu.lower + 0.5 * mu.lower
    slope = 0.5 * np.exp(-0.5 * u * u) * erfcx(math.sqrt(0.5) * v)
    value_error = 64.0 * ROUNDOFF * (1.0 + (1.0 + np.abs(u)) * v)
    left = least[:-1] - 0.5 * math.expm1(step) * (slope * (1.0 + value_error))[:-1]
    right = least[1:] - 0.5 * math.expm1(-step) * (slope * (1.0 - value_error))[1:]
    return bool(np.all(0.5 * (spent[:-1] + spent[1:]) <= np.minimum(left, right)))
