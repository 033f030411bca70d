"""Compiled loops over mixtures of tilted coins. They take scalars and 1-D arrays, and check nothing.

Every loop states how rounding grows in it, in the unit roundoff u = 2^-53.
"""

from __future__ import annotations

import math

import numpy as np

from ..numerics.compiled import inner, kernel


@inner
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


@inner
def cell_of(x, y, edges):
    """The cell i with edges[i] <= x/y < edges[i + 1], at most the last one; edges rise."""
    low = 0
    high = edges.shape[0] - 1
    while high - low > 1:
        middle = (low + high) // 2
        if edges[middle] * y <= x:
            low = middle
        else:
            high = middle
    return low


#: Rows of the cells: sums of x-mass and y-mass, and what their additions lost.
SUM_X, SUM_Y, LOST_X, LOST_Y = range(4)


@inner
def book(i, x, y, cells):
    """Add to the sums of a cell by compensated addition (Knuth)."""
    for k in range(2):
        old = cells[k, i]
        more = y if k else x
        new = old + more
        part = new - old
        cells[k + 2, i] += (old - (new - part)) + (more - part)
        cells[k, i] = new


@kernel("k1 1 1 1 f 1 f f o2", lambda coins, bias, gap, weight, window, *rest: 3e-6 * np.sum(window * np.sqrt(coins)))
def coin_cells(coins, bias, gap, weight, window, edges, top_bias, top_gap, cells):
    """Sum the heads-side atoms of a mixture of tilted coins into cells of the privacy loss.

    Component j: coins[j] >= 1 fair coins, bias theta = bias[j], gap[j] = 1 - theta (given apart so
    that it keeps its precision), weight[j]. The atom with A heads, t = (2A-m)/m > 0, has fair mass b,
    x = theta t and y = 1 - x; its masses are b (1 + x) and b y, and its loss log((1 + x)/y) rises with x/y, of
    which small and large values keep their precision. Only the sums of weight*b*x and weight*b*y are kept, per
    cell: cells[:, i] is for the atoms with edges[i] <= x/y < edges[i+1], edges from below 0 to above all of them.

    1. Start at the centre of one component, with its central mass.
    2. Walk outwards to t = reach / sqrt(m). The mass follows from a recurrence.
    3. When an atom leaves its cell, book the component's sums there, and look for the next cell where the last stride
       led, or else by bisection.
    4. The atom at t = 1 is added apart where it has the largest loss of all, with bias top_bias and gap top_gap.

    Returns (mass at t = 0, x-mass of the atoms at t = 1 with the largest loss, their y-mass, fair mass at
    infinite loss). The relative error of b is at most 3 u (steps + 4). The sum of a cell loses u for every atom of
    one component, and 2 u by the booking.
    """
    centre, top_x, top_y, infinity_mass = 0.0, 0.0, 0.0, 0.0
    last = edges.shape[0] - 2
    for j in range(coins.shape[0]):
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
        final = min(m, int(0.5 * (m + window * math.sqrt(m))) + 1)
        scale = 2.0 * theta / m
        fall = final if final < m else m - 1
        i = 0
        stride = 1
        sum_x = 0.0
        sum_y = 0.0
        while heads <= fall:
            tails = m - heads
            x = scale * (heads - 0.5 * m)
            y = rest + scale * tails
            if x >= edges[i + 1] * y:
                book(i, sum_x, sum_y, cells)
                sum_x = 0.0
                sum_y = 0.0
                before = i
                i = min(last, i + stride)
                if i + 8 <= last and x >= edges[i + 8] * y:
                    i = cell_of(x, y, edges)
                while x < edges[i] * y:
                    i -= 1
                while i < last and x >= edges[i + 1] * y:
                    i += 1
                stride = i - before
            sum_x += b * x
            sum_y += b * y
            heads += 1
            b *= tails / float(heads)
        book(i, sum_x, sum_y, cells)
        if final == m:
            if rest == 0.0:
                infinity_mass += b
            elif rest == top_gap and theta == top_bias:
                top_x += b * theta
                top_y += b * rest
            else:
                book(cell_of(theta, rest, edges), b * theta, b * rest, cells)
    return centre, top_x, top_y, infinity_mass


@inner
def beyond(last, before, error):
    """A log-concave law's sum beyond its term `last`, whose neighbour inside is `before`: at most this.

    error : relative, of either.
    """
    ratio = last / before * (1.0 + 3.0 * error)
    return last * ratio / (1.0 - ratio) if ratio < 1.0 else math.inf


@kernel(
    "1 i b b f i f f f f k1 k1 1 1 b f b ok1 o1 o1 o1",
    lambda odds, *rest: 1e-6 * (40.0 + min(rest[4], odds.size)) * rest[9].size,
)
def split_neutral(
    odds, start, cut_below, cut_above, error, half, kappa, absent, bias, gap, first, final, weight, cuts, every,
    log_truncated_mass, upper, coins, biases, gaps, weights,
):  # fmt: skip
    """Split each bucket of numbers of coins by the number c of neutral labels.

    Bucket j: sizes first[j] .. final[j], weight[j]. A number b of labels of both kinds has a law known from `start` on;
    odds[b - start] is law(b+1)/law(b) times the probability that a label is neutral, to a relative `error`. cut_below,
    cut_above : whether it goes on beyond. Given m, c has a law proportional to law(m+c) (m+c)!/(m! c!) neutral^c
    (m + absent + kappa c), and theta(m, c) = bias m / (m + absent + kappa c). It is log-concave, so a walk outwards
    from the largest term, of at most `half` steps, ends where the rest is below exp(-log_missed), or where the law
    does, with a bound on the rest.

    For an upper bound the law and theta of final[j] are used with first[j] coins, and inside each interval of
    c the two extreme thetas with the mean theta kept; for a lower bound the law and theta of first[j] with
    final[j] coins, and the mean. Intervals end at the standardised `cuts`, or hold one c each (`every`).

    Returns the number of components written, and what the rests weigh at most; for a lower bound they are taken off.
    """
    used = 0
    truncated_mass = 0.0
    floor = math.exp(-log_truncated_mass)
    law = np.empty(2 * half + 1)
    for j in range(first.shape[0]):
        m = final[j] if upper else first[j]
        count = first[j] if upper else final[j]
        low = max(0, start - m)
        high = start + odds.shape[0] - m
        if high < low:
            truncated_mass += weight[j]
            continue
        # 1. The largest term: law(c+1)/law(c) falls through 1.
        mode = low
        right = high
        while mode < right:
            c = (mode + right) // 2
            if odds[m + c - start] * (m + c + 1.0) > c + 1.0:
                mode = c + 1
            else:
                right = c
        # 2. Outwards from it. law[c - mode + half] is unnormalised.
        law[half] = 1.0
        value = 1.0
        last = mode
        while last < min(high, mode + half) and (last == mode or value > 0.01 * floor):
            value *= odds[m + last - start] * ((m + last + 1.0) / (last + 1.0))
            last += 1
            law[last - mode + half] = value
        value = 1.0
        least = mode
        while least > max(low, mode - half) and (least == mode or value > 0.01 * floor):
            value *= least / (odds[m + least - 1 - start] * (m + least))
            least -= 1
            law[least - mode + half] = value
        walked = law[least - mode + half : last - mode + half + 1]
        total, moment, square, heavy = 0.0, 0.0, 0.0, 0.0
        for i in range(walked.shape[0]):
            total += walked[i]
            moment += i * walked[i]
            square += float(i) * i * walked[i]
            heavy += walked[i] * (m + absent + kappa * (least + i))
        # 3. What is not walked, relative to what is.
        rest = 0.0
        size = walked.shape[0]
        slop = 1e-15 * (size + 8) + 2.0 * error
        before = least > low or (cut_below and low > 0)
        after = last < high or cut_above
        if size == 1 and (before or after):
            rest = math.inf
        else:
            if before:
                near = m + absent + kappa * least
                rest += beyond(walked[0] * near, walked[1] * (near + kappa), slop)
            if after:
                near = m + absent + kappa * last
                rest += beyond(walked[size - 1] * near, walked[size - 2] * (near - kappa), slop)
        rest = min(1.0, rest / heavy * (1.0 + 4.0 * slop))
        truncated_mass += weight[j] * rest
        share = weight[j] if upper else weight[j] * (1.0 - rest)
        mean = moment / total
        deviation = math.sqrt(max(0.0, square / total - mean * mean))
        used = write_intervals(
            least, walked, m, count, share, kappa, absent, bias, gap, least + mean, deviation, cuts, every,
            slop, upper, coins, biases, gaps, weights, used,
        )  # fmt: skip
    return used, truncated_mass


@inner
def write_intervals(
    low, law, m, count, weight, kappa, absent, bias, gap, mean, deviation, cuts, every, slop, upper,
    coins, biases, gaps, weights, used,
):  # fmt: skip
    """Components, `count` coins each, for c = low, low + 1, ... of masses law (m + absent + kappa c), in intervals.

    See `split_neutral`. Every sum of `law` has relative rounding error under `slop`. Returns `used`, moved on.
    """
    high = low + law.shape[0] - 1
    total = 0.0
    for c in range(low, high + 1):
        total += law[c - low] * (m + absent + kappa * c)
    c = low
    cut = 0
    carried = 0.0
    while c <= high:
        # One interval [least, most]: its mass and, of that, keep = theta/bias = m / (m + absent + kappa c)
        # and fall = 1 - keep, either of which may be tiny and keeps its precision.
        least = c
        most = c
        if not every:
            while cut < cuts.shape[0] and mean + cuts[cut] * deviation <= least:
                cut += 1
            most = high
            if cut < cuts.shape[0]:
                most = min(high, max(least, math.ceil(mean + cuts[cut] * deviation) - 1))
        mass, slope, kept = 0.0, 0.0, 0.0
        while c <= most:
            mass += law[c - low] * (m + absent + kappa * c)
            slope += law[c - low] * (absent + kappa * c)
            kept += law[c - low] * m
            c += 1
        share = weight * mass / total
        fall = (absent + kappa * least) / (m + absent + kappa * least)
        keep = m / (m + absent + kappa * least)
        if upper:
            # The two extremes are the interval's start and the next one's, which shares it.
            end = min(high, most + 1)
            near_share = share
            if least < most and mass > 0.0:
                far = (absent + kappa * end) / (m + absent + kappa * end)
                rest = m / (m + absent + kappa * end)
                if far < 0.5:
                    portion = (far - slope / mass) / (far - fall)
                    share_error = slop * far / (far - fall)
                else:  # keep - rest, without cancellation
                    portion = (kept / mass - rest) / (keep - rest) if keep > rest else 1.0
                    share_error = slop * keep / (keep - rest) if keep > rest else 1.0
                near_share = share * min(1.0, max(portion, 0.0) + share_error)
            share, carried = carried + near_share, share - near_share
        elif least < most and mass > 0.0:
            if slope < kept:
                fall = slope / mass * (1.0 + slop)
                keep = 1.0 - fall
            else:
                keep = kept / mass * (1.0 - slop)
                fall = 1.0 - keep
        if share > 0.0:
            coins[used] = count
            biases[used] = bias * keep
            gaps[used] = gap * keep + fall
            weights[used] = share
            used += 1
    if carried > 0.0:
        fall = (absent + kappa * high) / (m + absent + kappa * high)
        keep = m / (m + absent + kappa * high)
        coins[used] = count
        biases[used] = bias * keep
        gaps[used] = gap * keep + fall
        weights[used] = carried
        used += 1
    return used
