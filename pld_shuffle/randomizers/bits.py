"""Independent noise on the bits of a filter: what unary encoding and RAPPOR share.

Notation
    A filter is a 0/1 vector of `bits` entries with exactly h <= bits/2 ones; the inputs are all
    such filters (h = 1: one-hot vectors, the values 0 ... bits-1). Each bit is reported through the
    same 2 x 2 channel, a = P[1 | 1] > b = P[1 | 0]. Two filters that differ in d ones each differ
    in 2d bits.

    The likelihood ratio of the two is odds^(X - Y), odds = a (1-b) / (b (1-a)), where X and Y count
    the ones reported inside the d positions of the first and of the second filter only. Hence

        eps0 = d log(odds),      tv = sum_{z>0} P[X - Y = z] (1 - odds^{-z}),

    X ~ Bin(d, a), Y ~ Bin(d, b) under the first; d = 1 gives tv = a - b. Both grow with d.

Blanket
    The filter least likely to have produced a report with j ones avoids them as far as it can:
    it covers m = max(0, h - (bits - j)) of them, so that inf_x mu_x equals the law of independent
    b-coins times (a/b)^m ((1-a)/(1-b))^(h-m). For h = 1:
    gamma = (1-a)/(1-b) (1 - b^bits) + a b^(bits-1).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..numerics.tuning import DRAWN_TOGETHER
from .base import FloatArray, IntArray
from .border import integer_array
from .joint import FiniteRandomizer

BitArray = NDArray[np.uint8]

FILTER_BITS = 2**24
"""Longest filter accepted."""

MASSES = 2**22
"""Most masses of a joint law of filters (32 MiB of doubles)."""


class BitChannel(NamedTuple):
    """P[reported bit | true bit], all four of them, so that none is computed by a subtraction."""

    one_if_one: float
    zero_if_one: float
    one_if_zero: float
    zero_if_zero: float

    @property
    def log_odds(self) -> float:
        """log of a (1-b) / (b (1-a)); inf if one of the errors never happens."""
        errors = self.zero_if_one * self.one_if_zero
        if errors == 0:
            return math.inf
        return math.log(self.one_if_one / self.one_if_zero) + math.log(
            self.zero_if_zero / self.zero_if_one
        )


class NoisyFilter(FiniteRandomizer):
    """A randomizer that sets the same number of bits of a filter for every value, and adds noise to all bits."""

    @property
    @abstractmethod
    def length(self) -> int:
        """Number of bits of a filter and of a report."""

    @property
    @abstractmethod
    def channel(self) -> BitChannel:
        """The noise on one bit."""

    @abstractmethod
    def _places(self, values: IntArray) -> IntArray:
        """Distinct positions of the ones of each value, shape values.shape + (ones,)."""

    def encode(self, x: ArrayLike) -> BitArray:
        """The filters of the values `x`, shape x.shape + (length,)."""
        values = integer_array("x", x, self.inputs)
        filters = np.zeros((*values.shape, self.length), dtype=np.uint8)
        np.put_along_axis(filters, self._places(values), 1, axis=-1)
        return filters

    def _masses(self, values: IntArray, blanket: bool) -> FloatArray:
        return self._filter_masses(self._places(values), blanket)

    def _filter_masses(self, places: IntArray, blanket: bool) -> FloatArray:
        """Groups: the numbers of ones in each of the filters, which may repeat (see `filter_joint_law`).

        The blanket's row is the infimum over all filters, whether or not a value has them.
        """
        distinct, order = np.unique(np.sort(places), axis=0, return_inverse=True)
        masses = filter_joint_law(distinct, self.length, self.channel, blanket=blanket)
        return np.asarray(masses[np.append(order.reshape(-1), -1)])


def add_noise(filters: BitArray, channel: BitChannel, rng: np.random.Generator) -> BitArray:
    """Send every bit of `filters`, any shape, through the channel independently."""
    flat = filters.reshape(-1)
    reports = np.empty(flat.shape, dtype=np.uint8)
    for start in range(0, flat.size, DRAWN_TOGETHER):
        part = flat[start : start + DRAWN_TOGETHER]
        chance = np.where(part == 1, channel.one_if_one, channel.one_if_zero)
        reports[start : start + DRAWN_TOGETHER] = rng.random(part.size) < chance
    return reports.reshape(filters.shape)


def total_variation(ones_apart: int, channel: BitChannel) -> float:
    """Total variation of two filters with `ones_apart` = d ones each of their own. O(d^2) time."""
    first = _binomial(ones_apart, channel.one_if_one, channel.zero_if_one)
    second = _binomial(ones_apart, channel.one_if_zero, channel.zero_if_zero)
    more = np.subtract.outer(np.arange(ones_apart + 1), np.arange(ones_apart + 1))
    with np.errstate(invalid="ignore"):  # 0 times infinite odds, where not more ones are seen
        lost = np.where(more > 0, -np.expm1(-np.maximum(more, 0) * channel.log_odds), 0.0)
    return float(first @ lost @ second)


def filter_joint_law(
    places: IntArray, bits: int, channel: BitChannel, *, blanket: bool
) -> FloatArray:
    """Joint law of the filters with ones at `places`, shape (filters, ones), all different.

    A report counts the ones inside each filter: the likelihood ratio to all-zeros depends on that
    number only. Groups: these numbers; with the blanket, its row comes last, and groups also tell
    the number of zeros inside and outside of all filters, where numbers from `ones` upwards are
    one. Raises ValueError beyond `MASSES` masses. O(filters^2 ones groups) time.
    """
    filters, ones = places.shape
    zeros = ones if blanket else 0  # counted up to here
    shape = (filters + 1,) + (ones + 1,) * filters + (zeros + 1,)
    if not math.prod(shape) <= MASSES:
        raise ValueError(
            f"the joint law of {filters} filters of {ones} ones has more than {MASSES} masses"
        )
    union, index = np.unique(places, return_inverse=True)
    member = np.zeros((union.size, filters), dtype=bool)
    member[index.reshape(-1), np.repeat(np.arange(filters), ones)] = True
    masses = np.zeros(shape)
    masses[(slice(None),) + (0,) * (filters + 1)] = 1.0
    flat = (-1,) + (1,) * (filters + 1)
    for inside in member:
        hit = np.append(inside, False)  # the blanket's row starts from zeros everywhere
        one = np.where(hit, channel.one_if_one, channel.one_if_zero).reshape(flat)
        zero = np.where(hit, channel.zero_if_one, channel.zero_if_zero).reshape(flat)
        # The last number along an axis cannot grow: no filter has more ones, and zeros saturate.
        reported = np.zeros(shape)
        source = (slice(None), *(slice(0, -1) if i else slice(None) for i in inside))
        target = (slice(None), *(slice(1, None) if i else slice(None) for i in inside))
        reported[target] = (masses * one)[source]
        masses = reported + _counted(masses * zero, zeros)
    if blanket:
        masses = _with_rest(masses, bits - union.size, ones, channel)
    return masses.reshape(filters + 1, -1)


def _counted(masses: FloatArray, most: int) -> FloatArray:
    """One more along the last axis, up to `most`."""
    if most == 0:
        return masses
    moved = np.zeros_like(masses)
    moved[..., 1:] = masses[..., :-1]
    moved[..., -1] += masses[..., -1]
    return moved


def _at_least(trials: int, successes: int, chance: float) -> float:
    """P[Bin(trials, chance) >= successes], 1 <= successes <= trials."""
    from scipy.special import betainc  # slow to load

    return float(betainc(successes, trials - successes + 1, chance))


def _with_rest(masses: FloatArray, rest: int, ones: int, channel: BitChannel) -> FloatArray:
    """Add the zeros among `rest` other bits, and turn the last row into the blanket."""
    few = range(min(ones, rest + 1))
    share = [_binomial_term(rest, z, channel.zero_if_zero, channel.one_if_zero) for z in few]
    if rest >= ones:
        share.append(_at_least(rest, ones, channel.zero_if_zero))
    total = np.zeros_like(masses)
    for chance in share:
        total += chance * masses
        masses = _counted(masses, ones)
    covered = ones - np.arange(ones + 1)
    total[-1] *= (channel.one_if_one / channel.one_if_zero) ** covered * (
        channel.zero_if_one / channel.zero_if_zero
    ) ** (ones - covered)
    return total


def _binomial(count: int, success: float, failure: float) -> FloatArray:
    """Masses of Bin(count, success) at 0 ... count."""
    return np.array([_binomial_term(count, i, success, failure) for i in range(count + 1)])


def _binomial_term(count: int, hits: int, success: float, failure: float) -> float:
    """P[Bin(count, success) = hits]; 0 where it underflows. `hits` is small in all uses."""
    return math.comb(count, hits) * success**hits * failure ** (count - hits)
