"""Compiled loops of `renyi_coins`: the excess of one tilted coin, and its average over neutral labels.

Notation and proofs as there. Everything is summed in logs. Rounding is measured, and covered by ROUNDING there.
`central_coin_mass` is of another file: delete the caches when it changes.
"""

# mypy: allow-untyped-decorators
from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..numerics.compiled import inner, kernel
from ..pairs.coin_kernels import central_coin_mass

Array = NDArray[np.float64]
Sizes = NDArray[np.int64]

#: Intervals of the number of neutral labels, at most, for each bucket of sizes.
MAX_PARTS = 250
#: ... and the relative change of theta over one of them, unless that would be more than MAX_PARTS.
WIDTH_OF_PART = 0.005


@inner
def log_summand(order: float, x: float, y: float, rate: float) -> float:
    """log of y e^(a l) (1 - e^(-(a-1) l)) (1 - e^(-a l)), l = log1p(2 rate x / y); x > 0."""
    loss = math.log1p(2.0 * rate * x / y)
    return (
        math.log(y)
        + order * loss
        + math.log(-math.expm1(-(order - 1.0) * loss))
        + math.log(-math.expm1(-order * loss))
    )


@inner
def log_excess(order: float, m: int, theta: float, gap: float, rate: float) -> float:
    """log E(m, theta), m >= 1 coins, 0 < theta < 1, gap = 1 - theta, sampling rate `rate`.

    Walks the heads from the centre outwards, with b from a recurrence. It stops once Chernoff's
    bound on the tosses beyond, in pieces and with the summand at each piece's end, is below e^-38
    of the sum.
    """
    if m % 2 == 0:
        heads = m // 2 + 1
        b = central_coin_mass(m) * (m - heads + 1.0) / heads
    else:
        heads = (m + 1) // 2
        b = central_coin_mass(m + 1)
    scale = 2.0 * theta / m
    offset = 0.0
    total = 0.0
    peak = -math.inf
    wait = 16 + int(2.0 * math.sqrt(m))
    check = heads + wait
    while heads <= m:
        x = scale * (heads - 0.5 * m)
        y = gap + scale * (m - heads)
        loss = math.log1p(2.0 * rate * x / y)
        exponent = offset + order * loss + math.log(y)
        factor = b * math.expm1(-(order - 1.0) * loss) * math.expm1(-order * loss)
        if exponent > peak:
            total = total * math.exp(peak - exponent) + factor
            peak = exponent
        else:
            total += factor * math.exp(exponent - peak)
        b *= (m - heads) / (heads + 1.0)
        heads += 1
        if b < 1e-200:
            if b == 0.0:
                break
            b *= 1e200
            offset -= 200.0 * math.log(10.0)
        if heads == check and heads < m:
            limit = peak + math.log(total) - 44.0
            width = 0.5 * math.sqrt(m)
            start = heads
            small = True
            while small and start <= m:
                end = min(m, start + int(width))
                share = start / m
                tail = math.log(2.0) + share * math.log(share)
                if share < 1.0:
                    tail += (1.0 - share) * math.log1p(-share)
                y = gap + scale * (m - end)
                bound = log_summand(order, scale * (end - 0.5 * m), y, rate) - m * tail
                small = bound < limit
                start = end + 1
                width *= 1.25
                limit -= 0.1
            if small:
                break
            wait += wait // 4
            check = heads + wait
    return peak + math.log(total)


@kernel("f k1 f f f o1", lambda order, coins, *rest: 1e-4 * coins.size)
def log_excesses(
    order: float, coins: Sizes, theta: float, gap: float, rate: float, out: Array
) -> None:
    """Fill out[i] with log E(coins[i], theta)."""
    for i in range(coins.shape[0]):
        out[i] = log_excess(order, coins[i], theta, gap, rate)


@kernel("f i f f f f f i i b", lambda *rest: 0.1)
def log_neutral_excess(
    order: float,
    n: int,
    chance: float,
    kappa: float,
    theta: float,
    gap: float,
    rate: float,
    law_coins: int,
    coins: int,
    upper: bool,
) -> float:
    """log of the average excess of `coins` coins over the neutral labels that come with law_coins.

    The number c of neutral labels has law proportional to Bin(n - m, chance)(c) (m + kappa c), m =
    law_coins, and theta(c) = theta m / (m + kappa c). Intervals of c are replaced by the extreme
    thetas with the mean kept (upper; convexity in theta) or by their mean (lower). The window leaves
    out at most 3 e^-D of the law, with D so large that even the largest theta there adds less than
    e^-38 of the rest.
    """
    m = law_coins
    trials = n - m
    typical = m / (m + kappa * trials * chance)
    centre = log_excess(order, coins, theta * typical, gap * typical + (1.0 - typical), rate)
    depth = 42.0 + log_excess(order, coins, theta, gap, rate) - centre
    spread = math.sqrt(2.0 * trials * chance * (1.0 - chance) * depth) + depth
    mean = trials * chance
    low = max(0, int(mean - spread) - 1)
    high = min(trials, int(mean + spread) + 2)
    if chance >= 1.0:
        low = trials
    # Intervals edges[i] .. edges[i+1]-1 over which m + kappa c grows by one factor each.
    growth = math.log((m + kappa * high) / (m + kappa * low))
    wanted = min(MAX_PARTS, max(16, int(growth / WIDTH_OF_PART) + 1))
    edges = np.empty(wanted + 1, np.int64)
    edges[0] = low
    parts = 0
    while parts < wanted and edges[parts] <= high:
        goal = int(((m + kappa * low) * math.exp(growth * (parts + 1) / wanted) - m) / kappa)
        goal = max(goal, edges[parts] + 1)
        parts += 1
        edges[parts] = goal if parts < wanted and goal <= high else high + 1
    mode = min(max(int((trials + 1) * chance), low), high)
    odds = chance / (1.0 - chance) if chance < 1.0 else 1.0
    # Per interval: sums of (m + kappa c) and of the same times theta's ratio, m, over e^reference.
    reference = np.full(parts, -math.inf)
    mass = np.zeros(parts)
    slope = np.zeros(parts)
    home = 0
    while edges[home + 1] <= mode:
        home += 1
    logs = 0.0
    part = home
    for c in range(mode, high + 1):
        if c >= edges[part + 1]:
            part += 1
        if mass[part] == 0.0:
            reference[part] = logs
        value = math.exp(logs - reference[part])
        mass[part] += value * (m + kappa * c)
        slope[part] += value * m
        if c < high:
            logs += math.log(odds * ((trials - c) / (c + 1.0)))
    logs = 0.0
    part = home
    for c in range(mode - 1, low - 1, -1):
        logs += math.log((c + 1.0) / ((trials - c) * odds))
        if c < edges[part]:
            part -= 1
        if mass[part] == 0.0:
            reference[part] = logs
        value = math.exp(logs - reference[part])
        mass[part] += value * (m + kappa * c)
        slope[part] += value * m
    top = -math.inf
    for part in range(parts):
        if mass[part] > 0.0:
            top = max(top, reference[part] + math.log(mass[part]))
    held = 0.0
    for part in range(parts):
        if mass[part] > 0.0:
            held += mass[part] * math.exp(reference[part] - top)
    total = 0.0
    peak = -math.inf
    near, at_near = 1.0, 0.0
    far, at_far = 1.0, 0.0
    for part in range(parts):
        share = reference[part] + math.log(mass[part] / held) - top
        ratio = slope[part] / mass[part]
        if upper:
            # The last end belongs to the next interval as well: one more evaluation, not two.
            if part == 0:
                far = m / (m + kappa * low)
                at_far = log_excess(order, coins, theta * far, gap * far + (1.0 - far), rate)
            near, at_near = far, at_far
            far = m / (m + kappa * edges[part + 1])
            at_far = log_excess(order, coins, theta * far, gap * far + (1.0 - far), rate)
            portion = max(0.0, (ratio - far) / (near - far)) + 1e-13 * near / (near - far)
            portion = min(1.0, portion)
            term = (
                share + at_near + math.log(portion + (1.0 - portion) * math.exp(at_far - at_near))
            )
        else:
            ratio = min(1.0, ratio)
            term = share + log_excess(
                order, coins, theta * ratio, gap * ratio + (1.0 - ratio), rate
            )
        if term > peak:
            total = total * math.exp(peak - term) + 1.0
            peak = term
        else:
            total += math.exp(term - peak)
    return peak + math.log(total)
