"""Compiled loops. Kernels take scalars and 1-D arrays, know nothing of privacy, check nothing.

Imported only when a law is first formed, so that ``import pld_shuffle`` does not pay for numba.

`unit roundoff` u = 2^-53. Every loop states how rounding grows in it; the callers add that to the
side of the bound they are on.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

jit: Any = numba.njit(cache=True, nogil=True)


@jit
def binomial_pmf(n, p, low, high, out):
    """Fill out[i] with Bin(n, p)(low + i) / Bin(n, p)([low, high]); 0 < p < 1.

    Ratio recurrence outwards from the mode; the scale is the walked sum, never lgamma. The relative
    rounding error of an entry is at most 5 u (|x - mode| + 2) plus that of the sum.
    """
    mode = min(max(int((n + 1) * p), low), high)
    odds = p / (1.0 - p)
    out[mode - low] = 1.0
    total = 1.0
    value = 1.0
    for x in range(mode, high):
        value *= odds * ((n - x) / (x + 1.0))
        out[x + 1 - low] = value
        total += value
    value = 1.0
    for x in range(mode, low, -1):
        value *= x / ((n - x + 1.0) * odds)
        out[x - 1 - low] = value
        total += value
    for i in range(high - low + 1):
        out[i] /= total


@jit
def central_coin_mass(m):
    """P(Bin(m, 1/2) = m/2) for even m >= 0, relative error below 1e-15.

    Product for m < 64; else sqrt(2/(pi m)) exp(-1/(4m) + 1/(24m^3) - 1/(20m^5) + 17/(112m^7)), the
    logarithm of the duplication formula, an enveloping series whose next term is below 1e-15.
    """
    if m < 64:
        value = 1.0
        for i in range(1, m // 2 + 1):
            value *= (2.0 * i - 1.0) / (2.0 * i)
        return value
    inverse = 1.0 / m
    square = inverse * inverse
    series = inverse * (-0.25 + square * (1.0 / 24.0 + square * (-0.05 + square * 17.0 / 112.0)))
    return math.sqrt(2.0 * inverse / math.pi) * math.exp(series)


@jit
def coin_cells(coins, bias, gap, weight, reach, rate, step, edges, top_gap, cell_x, cell_y):
    """Sum the heads-side atoms of a mixture of tilted coins into cells of the privacy loss.

    Component j: coins[j] >= 1 fair coins, bias theta = bias[j], gap[j] = 1 - theta (given apart so
    that it keeps its precision), weight[j]. The atom with A heads, t = (2A-m)/m > 0, has fair mass b,
    x = theta t and y = 1 - x; under sampling rate q its two masses are b (y + 2 q x) and b y, so its
    loss is log(1 + 2 q x / y). Only the sums of weight*b*x and weight*b*y are kept, per cell: cell i
    holds the atoms with edges[i] >= y > edges[i+1] (edges fall from 1).

    Atoms beyond t = reach / sqrt(m) are skipped. Returns (mass at t = 0, x-mass of the atoms at t = 1
    with gap at most top_gap, their y-mass, fair mass at infinite loss, atoms visited). b comes from a
    recurrence started at the centre: relative error at most 3 u (steps + 4).
    """
    centre = 0.0
    top_x = 0.0
    top_y = 0.0
    infinite = 0.0
    visited = 0
    last = edges.size - 2
    for j in range(coins.size):
        m = coins[j]
        theta = bias[j]
        rest = gap[j]
        if m % 2 == 0:
            b = weight[j] * central_coin_mass(m)
            centre += b
            heads = m // 2 + 1
            b *= (m - heads + 1.0) / heads
        else:
            heads = (m + 1) // 2
            b = weight[j] * central_coin_mass(m + 1)
        final = min(m, int(0.5 * (m + reach * math.sqrt(m))) + 1)
        scale = 2.0 * theta / m
        fall = final if final < m else m - 1
        i = 0
        stride = 1
        sum_x = 0.0
        sum_y = 0.0
        visited += final - heads + 1
        while heads <= fall:
            tails = m - heads
            x = scale * (heads - 0.5 * m)
            y = rest + scale * tails
            if y <= edges[i + 1]:
                cell_x[i] += sum_x
                cell_y[i] += sum_y
                sum_x = 0.0
                sum_y = 0.0
                # Equal strides of t are nearly equal strides of loss: start where the last one led.
                before = i
                i = min(last, i + stride)
                if i + 8 <= last and y <= edges[i + 8]:
                    i = min(last, int(math.log1p(2.0 * rate * x / y) / step))
                while y > edges[i]:
                    i -= 1
                while i < last and y <= edges[i + 1]:
                    i += 1
                stride = i - before
            sum_x += b * x
            sum_y += b * y
            heads += 1
            b *= tails / float(heads)
        cell_x[i] += sum_x
        cell_y[i] += sum_y
        if final == m:
            if rest == 0.0:
                infinite += b
            elif rest <= top_gap:
                top_x += b * theta
                top_y += b * rest
            else:
                i = min(last, int(math.log1p(2.0 * rate * theta / rest) / step))
                while i > 0 and rest > edges[i]:
                    i -= 1
                while i < last and rest <= edges[i + 1]:
                    i += 1
                cell_x[i] += b * theta
                cell_y[i] += b * rest
    return centre, top_x, top_y, infinite, visited


@jit
def split_neutral(
    n, rate, rest_rate, kappa, bias, gap, first, final, weight, cuts, every, log_missed, upper,
    coins, biases, gaps, weights,
):  # fmt: skip
    """Split each bucket of crowd sizes by the number c of neutral labels.

    Bucket j: sizes first[j] .. final[j], weight[j]. Given m, c has law proportional to
    Bin(n-m, rate)(c) (m + kappa c), rest_rate = 1 - rate, and theta(m, c) = bias m / (m + kappa c). For
    an upper bound the law and theta of final[j] are used with first[j] coins, and inside each interval of
    c the two extreme thetas with the mean theta kept; for a lower bound the law and theta of first[j] with
    final[j] coins, and the mean. Intervals end at the standardised `cuts`, or hold one c each (`every`). The
    window of c misses at most 3 exp(-log_missed) of the law. Returns the number of components written.
    """
    used = 0
    for j in range(first.size):
        m = final[j] if upper else first[j]
        count = first[j] if upper else final[j]
        trials = n - m
        deviation = math.sqrt(trials * rate * rest_rate)
        spread = math.sqrt(2.0 * log_missed) * deviation + log_missed
        mean = trials * rate
        low = max(0, int(mean - spread) - 1)
        high = min(trials, int(mean + spread) + 2)
        if rest_rate <= 0.0:
            low = trials
        # Every sum below has relative rounding error under `slop`: recurrence plus summation.
        slop = 1e-15 * (high - low + 8)
        mode = min(max(int((trials + 1) * rate), low), high)
        odds = rate / rest_rate if rest_rate > 0.0 else 1.0
        law = np.empty(high - low + 1)
        law[mode - low] = 1.0
        value = 1.0
        for c in range(mode, high):
            value *= odds * ((trials - c) / (c + 1.0))
            law[c + 1 - low] = value
        value = 1.0
        for c in range(mode, low, -1):
            value *= c / ((trials - c + 1.0) * odds)
            law[c - 1 - low] = value
        total = 0.0
        for c in range(low, high + 1):
            total += law[c - low] * (m + kappa * c)
        c = low
        cut = 0
        carried = 0.0
        while c <= high:
            # One interval [least, most]: its mass and, of that, 1 - theta/bias = kappa c / (m + kappa c),
            # which keeps its precision at 0.
            least = c
            most = c
            if not every:
                while cut < cuts.size and mean + cuts[cut] * deviation <= least:
                    cut += 1
                most = high
                if cut < cuts.size:
                    most = min(high, max(least, math.ceil(mean + cuts[cut] * deviation) - 1))
            mass = 0.0
            slope = 0.0
            while c <= most:
                mass += law[c - low] * (m + kappa * c)
                slope += law[c - low] * kappa * c
                c += 1
            share = weight[j] * mass / total
            fall = kappa * least / (m + kappa * least)
            if upper:
                # The two extremes are the interval's start and the next one's, which shares it.
                end = min(high, most + 1)
                far = kappa * end / (m + kappa * end)
                near_share = share
                if least < most and mass > 0.0:
                    portion = max((far - slope / mass) / (far - fall), 0.0)
                    near_share = share * min(1.0, portion + slop * far / (far - fall))
                share, carried = carried + near_share, share - near_share
            elif least < most and mass > 0.0:
                fall = min(1.0, slope / mass * (1.0 + slop))
            if share > 0.0:
                coins[used] = count
                biases[used] = bias * (1.0 - fall)
                gaps[used] = gap * (1.0 - fall) + fall
                weights[used] = share
                used += 1
        if carried > 0.0:
            fall = kappa * high / (m + kappa * high)
            coins[used] = count
            biases[used] = bias * (1.0 - fall)
            gaps[used] = gap * (1.0 - fall) + fall
            weights[used] = carried
            used += 1
    return used


@jit
def merge_upwards(mass, cell, offset, step, tilt, reach, out):
    """Lower placement: merge mass so that every merged ratio is exactly a lattice point's.

    Atoms, sorted by loss: atom j has loss (cell[j] step + offset[j]), 0 <= offset <= step, and tilted
    mass mass[j] = p_j exp(tilt loss). out[i] receives the tilted mass at loss i step. The lowest
    unconsumed mass is merged with as much of the next higher mass as brings the ratio of the merged
    atom to the next lattice point (total P- and Q-mass kept: hiding, a lower bound). Where the next
    mass is farther than `reach`, or there is none, the merged atom is rounded down instead.
    """
    count = mass.size
    j = 0
    remaining = 1.0
    while j < count:
        if mass[j] == 0.0 or remaining <= 0.0:
            j += 1
            remaining = 1.0
            continue
        if offset[j] <= 0.0:
            out[cell[j]] += remaining * mass[j]
            j += 1
            remaining = 1.0
            continue
        target = cell[j] + 1
        merged = 0.0
        deficit = 0.0
        while j < count and cell[j] < target:
            below = step - offset[j]
            local = remaining * mass[j] * math.exp(tilt * below)
            merged += local
            deficit += local * math.expm1(below)
            j += 1
            remaining = 1.0
        while deficit > 0.0 and j < count:
            if mass[j] == 0.0:
                j += 1
                continue
            above = (cell[j] - target) * step + offset[j]
            if above > reach:
                break
            if above <= 0.0:  # on the lattice point already: of no help, and not to be rounded down
                out[target] += remaining * mass[j]
                j += 1
                remaining = 1.0
                continue
            local = remaining * mass[j] * math.exp(-tilt * above)
            drop = -local * math.expm1(-above)
            if drop <= deficit:
                merged += local
                deficit -= drop
                j += 1
                remaining = 1.0
            else:
                fraction = deficit / drop
                merged += fraction * local
                remaining *= 1.0 - fraction
                deficit = 0.0
        if deficit > 1e-14 * step * merged:
            out[target - 1] += merged * math.exp(-tilt * step)
        else:
            out[target] += merged


@jit
def hockey_sums(mass, fall, drop, plain, hockey):
    """Suffix sums for delta: plain[j] = sum_i mass[j+i] fall^i and
    hockey[j] = sum_i mass[j+i] fall^i (1 - (1-drop)^i). All terms nonnegative, so each entry has
    relative rounding error at most 4 u (mass.size - j)."""
    above = 0.0
    above_hockey = 0.0
    for j in range(mass.size - 1, -1, -1):
        above_hockey = fall * (drop * above + (1.0 - drop) * above_hockey)
        above = mass[j] + fall * above
        plain[j] = above
        hockey[j] = above_hockey


@jit
def lower_hull(x, y, kept):
    """Indices of the lower convex hull of the points (x ascending, y), stopped where it would rise.

    Monotone chain (Andrew 1979). Returns how many of `kept` were written.
    """
    count = 0
    for i in range(x.size):
        while count >= 2:
            a = kept[count - 2]
            b = kept[count - 1]
            if (y[b] - y[a]) * (x[i] - x[b]) >= (y[i] - y[b]) * (x[b] - x[a]):
                count -= 1
            else:
                break
        kept[count] = i
        count += 1
    while count >= 2 and y[kept[count - 1]] >= y[kept[count - 2]]:
        count -= 1
    return count
