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
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .base import FloatArray, IntArray, read_only, require_small_law
from .border import bit_array

BitArray = NDArray[np.uint8]

_CHUNK = 2**20  # bits drawn at a time, a measured compromise between memory and speed
FILTER_BITS = 2**24
"""Longest filter accepted (the number of reports, 2^bits, is an ordinary Python integer)."""

_CODE_BITS = 62  # a column number must fit an int64


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


def add_noise(filters: BitArray, channel: BitChannel, rng: np.random.Generator) -> BitArray:
    """Send every bit of `filters`, any shape, through the channel independently."""
    flat = filters.reshape(-1)
    reports = np.empty(flat.shape, dtype=np.uint8)
    for start in range(0, flat.size, _CHUNK):
        part = flat[start : start + _CHUNK]
        chance = np.where(part == 1, channel.one_if_one, channel.one_if_zero)
        reports[start : start + _CHUNK] = rng.random(part.size) < chance
    return reports.reshape(filters.shape)


def filter_law(filters: BitArray, channel: BitChannel) -> FloatArray:
    """Output law of each row of `filters`, shape (rows, 2^bits), read-only.

    Bit j of a column number is bit j of the report. ValueError beyond LAW_LIMIT entries.
    """
    rows, bits = filters.shape
    require_small_law(rows, 2**bits)
    matrix = np.ones((rows, 1))
    for j in range(bits):
        one = filters[:, j : j + 1] == 1
        zeros = matrix * np.where(one, channel.zero_if_one, channel.zero_if_zero)
        ones = matrix * np.where(one, channel.one_if_one, channel.one_if_zero)
        matrix = np.concatenate([zeros, ones], axis=1)
    return read_only(matrix)


def report_columns(reports: ArrayLike, bits: int) -> IntArray:
    """Column numbers sum_j 2^j report_j of reports of shape (..., bits), bits <= 62.

    Raises ValueError for longer reports and for entries other than 0 and 1.
    """
    if not bits <= _CODE_BITS:
        raise ValueError(f"columns() needs at most {_CODE_BITS} bits, got {bits}")
    weights = np.left_shift(np.int64(1), np.arange(bits, dtype=np.int64))
    return np.asarray(bit_array("reports", reports, bits).astype(np.int64) @ weights)


def total_variation(ones_apart: int, channel: BitChannel) -> float:
    """Total variation of two filters with `ones_apart` = d ones each of their own. O(d^2) time."""
    first = _binomial(ones_apart, channel.one_if_one, channel.zero_if_one)
    second = _binomial(ones_apart, channel.one_if_zero, channel.zero_if_zero)
    total = 0.0
    for x in range(1, ones_apart + 1):
        for y in range(x):
            lost = -math.expm1((y - x) * channel.log_odds)
            total += float(first[x] * second[y]) * lost
    return total


def blanket_probability(bits: int, ones: int, channel: BitChannel) -> float:
    """Total mass of the infimum over all filters of `bits` bits with `ones` ones. O(ones) time.

    A report with at least `ones` zeros has a filter that avoids all its ones. With z < ones zeros
    the least likely filter covers all z of them and ones - z of the reported ones, and such a
    report has the mass (1-a)^z a^(ones-z) b^(bits-ones).
    """
    keep_zero = channel.zero_if_one / channel.zero_if_zero
    many_zeros = _at_least(bits, ones, channel.zero_if_zero)
    covered = math.fsum(
        math.comb(bits, zeros)
        * channel.zero_if_one**zeros
        * channel.one_if_one ** (ones - zeros)
        * channel.one_if_zero ** (bits - ones)
        for zeros in range(ones)
    )
    return keep_zero**ones * many_zeros + covered


def filter_joint_law(
    places: IntArray, bits: int, channel: BitChannel, *, blanket: bool
) -> FloatArray:
    """Joint law of the filters with ones at `places`, shape (filters, ones), all different.

    A report counts the ones inside each filter: the likelihood ratio to all-zeros depends on that
    number only. Groups: these numbers; with the blanket, its row comes last, and groups also tell
    the number of zeros inside and outside of all filters, where numbers from `ones` upwards are
    one. Raises ValueError beyond LAW_LIMIT groups. O(filters^2 ones groups) time.
    """
    filters, ones = places.shape
    zeros = ones if blanket else 0  # counted up to here
    shape = (filters + 1,) + (ones + 1,) * filters + (zeros + 1,)
    require_small_law(filters + 1, math.prod(shape[1:]))
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
