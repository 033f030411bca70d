"""Compiled loops of the contour integral in `slots`. They take arrays and scalars and check nothing.

The law: X = x_j with probability b_j, and X = 0 with probability `rest`; S is a sum of n copies. The
docstring of `slots` has the formulas, docs/theory.md, section 8, the proofs. u = 2^-53.
"""

from __future__ import annotations

import math

import numpy as np

from ..numerics.compiled import kernel, reordering, unchecked
from ..numerics.sides import ROUNDOFF
from ..numerics.tuning import SLOT_WORK

MAX_NODES, MIN_NODES, MAX_WORK = SLOT_WORK

# 2 pi in three parts, the first two of 33 bits, so that multiples up to 2^20 are exact (Cody and Waite).
TURN_HIGH = 6.2831853069365025
TURN_MIDDLE = 2.4308402025215864e-10
TURN_LOW = 8.089064995183803e-21
ROUNDER = 1.5 * 2.0**52
# Ratios of neighbouring terms of Taylor's series, the last one first.
SINE = tuple(1.0 / (k * (k + 1.0)) for k in range(20, 0, -2))
COSINE = tuple(1.0 / (k * (k + 1.0)) for k in range(21, 0, -2))

# Rates of the Chernoff bounds on aliases: beyond the saddle point in inverse deviations, before it relative.
BEYOND = (1.0, 2.5, 4.5, 6.5, 9.0, 16.0, 40.0)
COARSE = 1e-2  # rtol of a first look at a cut sum
FAINT = 1e-250  # tilted mass that counts for nothing
HOPELESS = 400.0  # times too many nodes, where not even half of those between lobes are skipped
BEFORE = (0.98, 0.8, 0.6, 0.4, 0.25, 0.12, 0.04)


@unchecked
def turns(y, values, versine, sine):
    """versine[j] = 1 - cos(y values[j]) and sine[j] = sin(y values[j]), in a loop that vectorises.

    Taylor series of sin and cos at half the angle, reduced to [-pi/2, pi/2]; both truncated below u/8.
    Absolute error at most 8 u |y values[j]|; that of the versine is relative to itself near 0.
    """
    for j in range(values.shape[0]):
        angle = y * values[j]
        k = (angle * (0.5 / math.pi) + ROUNDER) - ROUNDER
        h = 0.5 * (((angle - k * TURN_HIGH) - k * TURN_MIDDLE) - k * TURN_LOW)
        q = h * h
        s = 1.0
        for share in SINE:
            s = 1.0 - q * share * s
        s *= h
        c = 1.0
        for share in COSINE:
            c = 1.0 - q * share * c
        versine[j] = 2.0 * s * s
        sine[j] = 2.0 * s * c


@reordering
def weighted(p, pull, versine, sine):
    """(sum p versine, sum p sine, sum pull versine, sum pull sine), in any order of summation."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for j in range(p.shape[0]):
        a += p[j] * versine[j]
        b += p[j] * sine[j]
        c += pull[j] * versine[j]
        d += pull[j] * sine[j]
    return a, b, c, d


@unchecked
def log_moment(z, x, b, rest):
    """(log E exp(z X), the tilted mean of X); (inf, inf) where exp overflows.

    E exp(z X) - 1 is summed directly, so that n times its logarithm keeps its precision; only where
    it is below -1/2 are the nonnegative terms of E exp(z X) itself summed.
    """
    above = 0.0
    slope = 0.0
    for j in range(x.shape[0]):
        rise = b[j] * math.expm1(z * x[j])
        above += rise
        slope += x[j] * (rise + b[j])
    if not (above < math.inf and abs(slope) < math.inf):
        return math.inf, math.inf
    if above > -0.5:
        return math.log1p(above), slope / (1.0 + above)
    total = rest
    for j in range(x.shape[0]):
        total += b[j] * math.exp(z * x[j])
    return math.log(total), slope / total


@unchecked
def saddle(n, x, b, rest, start):
    """The minimiser of n log E exp(z X) - 2 log z over z > 0, to ten per cent.

    The function is convex and, with some x_j > 0, has a minimum. Any z > 0 is valid; this one is good.
    """
    low = 0.0
    high = math.inf
    z = start
    for _ in range(400):
        slope = n * log_moment(z, x, b, rest)[1] - 2.0 / z
        if slope > 0.0:
            high = z
        else:
            low = z
        if low == 0.0:
            z = 0.25 * high
        elif high == math.inf:
            z = 4.0 * low
        elif high < 1.1 * low:
            break
        else:
            z = math.sqrt(low * high)
    return low if low > 0.0 else z


@unchecked
def needed_cap(n, x, b, sum_error, cap, chance):
    """A height H with P(sum of n copies of min(X, cap) < -H) <= chance.

    P <= n P(X < -h) + P(sum of min(max(X, -h), cap) < -H), the first at most chance/2 by the choice of h,
    the second by Chernoff at a few rates.
    """
    floor = 0.0
    while True:
        far = 0.0
        nearest = math.inf
        for j in range(x.shape[0]):
            if -x[j] > floor:
                far += b[j]
                nearest = min(nearest, -x[j])
        if n * far <= 0.49 * chance:
            break
        floor = max(nearest, 2.0 * floor)
    spread = 0.0
    for j in range(x.shape[0]):
        spread += b[j] * min(max(x[j], -floor), cap) ** 2
    deviation = max(math.sqrt(n * spread), 1e-150)
    rate = 16.0 / deviation
    best = math.inf
    while rate > 0.1 / deviation or rate * floor > 0.5:
        above = 0.0
        term_error = 0.0
        for j in range(x.shape[0]):
            rise = b[j] * math.expm1(-rate * min(max(x[j], -floor), cap))
            above += rise
            term_error += abs(rise) * sum_error
        moment = n * math.log1p(max(above, -0.9) + term_error)
        found = (moment + 1e-9 * abs(moment) + math.log(2.0 / chance)) / rate
        if found < best:
            best = found
        elif best < math.inf:  # it falls and rises
            break
        rate *= 0.6
    return max(best, 0.0)


@unchecked
def cap_height(n, x, b, sum_error, chance):
    """A height H with P(sum of n-1 copies of min(X, H) < -H) <= chance, as low as a bisection finds; or inf.

    sum_error: relative error of every b. Only rare atoms can be so high: without any, inf saves the search.
    """
    top = 0.0
    spread = 0.0
    for j in range(x.shape[0]):
        top = max(top, x[j])
    for j in range(x.shape[0]):  # what is far below -H is rare, too
        spread += b[j] * min(abs(x[j]), top) ** 2
    if top < 3.0 * math.sqrt(n * spread) or needed_cap(n - 1.0, x, b, sum_error, top, chance) > top:
        return math.inf
    low = 0.0
    for _ in range(40):
        middle = 0.5 * (low + top) if low > 0.5 * top else max(low, 1e-3 * top) ** 0.5 * top**0.5
        if needed_cap(n - 1.0, x, b, sum_error, middle, chance) <= middle:
            top = middle
        else:
            low = middle
        if top < 1.1 * low:
            break
    return top


@unchecked
def alias_period(n, x, b, rest, lam, level, tau, deviation, target):
    """A period T so long that all aliases together stay under about `target` on the scale of `positive_part`.

    Chernoff, E(S+Z-a)_+ <= exp(k(m) - m a - 1)/m for every m > 0, k(m) = n log E exp(m X) + (tau m)^2/2.
    Returns T and the booked bound on the aliases for that T.
    """
    best = np.full(2, math.inf)
    rates = np.zeros(2)
    scales = np.zeros(2)
    for side in range(2):
        for i in range(7):
            if side == 0:
                m = lam + BEYOND[i] / deviation
            else:
                m = lam * (1.0 - BEFORE[i])
            k = n * log_moment(m, x, b, rest)[0] + 0.5 * (tau * m) ** 2
            scale = k - level - 1.0 + 2.0 * math.log(lam) - math.log(m)
            need = (scale - math.log(target)) / abs(m - lam)
            if need < best[side]:
                best[side] = need
                rates[side] = abs(m - lam)
                scales[side] = scale
    period = max(max(best[0], best[1]), 2.0 * deviation)
    bound = 0.0
    for side in range(2):
        ratio = math.exp(-rates[side] * period)
        # 1.01 covers the rounding of k, a difference of like terms booked elsewhere at under 1e-3.
        bound += 1.01 * math.exp(scales[side] - rates[side] * period) / (1.0 - ratio)
    return period, bound


@unchecked
def contour_sum(n, p, centred, centre, term_error, twist, lam, tau, period, threshold, cutoff, limit):
    """The trapezoidal sums along lam + i y, y = 2 pi k / period, relative to the integrand at y = 0.

    p, centred: the tilted law (the atom at X = 0 included) and its values minus centre. wrong y bounds the
    rounding of the characteristic function phi at y, wrong + twist y that of its derivative. Returns the sum
    for E(S+Z)_+, that for tau^2 times the density of S+Z at 0, a bound on everything neglected or rounded in
    each of them, and the nodes evaluated, -1 if there were more than `limit`.

    Between lobes, where |phi|^n < threshold, nodes are skipped: r = |phi|^2 has |r''| <= 2 variance.
    """
    delta = 2.0 * math.pi / period
    pull = np.empty(p.shape[0])
    drift = 0.0
    variance = 0.0
    for j in range(p.shape[0]):
        pull[j] = p[j] * centred[j]
        drift += pull[j]
        variance += pull[j] * centred[j]
    versine = np.empty(p.shape[0])
    sine = np.empty(p.shape[0])
    variance = variance * (1.0 + 1e-10) + 4.0 * twist
    moving = math.sqrt(variance)
    low_r = math.exp(2.0 * math.log(threshold) / n)
    gain = (tau * lam) ** 2
    first = 1.0
    second = gain
    absolute = 1.0 + gain
    error = 0.0
    evaluated = 0.0
    k = 1.0
    while True:
        y = k * delta
        if y > cutoff:
            break
        if evaluated >= limit:
            return first, second, error, -1.0
        evaluated += 1.0
        turns(y, centred, versine, sine)
        falls, im, slow, swing = weighted(p, pull, versine, sine)
        re = -falls
        phase_error = term_error * y
        excess = 2.0 * re + re * re + im * im
        r = 1.0 + excess
        bound_r = r + 4.0 * phase_error + 8.0 * ROUNDOFF
        decay = math.exp(-0.5 * (tau * y) ** 2)
        if bound_r < low_r:
            slope = 2.0 * (im * (drift - slow) - (1.0 + re) * swing)
            slope += 4.0 * (moving * phase_error + term_error + twist * y)
            room = low_r - bound_r
            root = math.sqrt(slope * slope + 4.0 * variance * room)
            if slope > 0.0:
                d = 0.999 * (2.0 * room / (slope + root))
            else:
                d = 0.999 * (0.5 * (root - slope) / variance)
            last = min(math.floor((y + d) / delta), math.floor(cutoff / delta))
            if last >= k:
                end = last * delta
                nodes = last - k
                weight = 1.0 / (lam * lam + y * y)
                spread = weight + (end - y) / (delta * y * end)
                error += 2.02 * threshold * decay * (lam * lam * spread + gain * (nodes + 1.0))
                k = last + 1.0
                continue
        modulus = 0.5 * math.log1p(excess) if excess > -1.0 else -math.inf
        if n * modulus > -745.0:
            angle = math.atan2(im, 1.0 + re)
            size = math.exp(n * modulus) * decay
            phase = n * angle + (n * centre + tau * tau * lam) * y
            denominator = 1.0 / (lam * lam + y * y)
            wr = lam * lam * (lam * lam - y * y) * denominator * denominator
            wi = -2.0 * lam * lam * lam * y * denominator * denominator
            cosine = math.cos(phase)
            first += 2.0 * size * (wr * cosine - wi * math.sin(phase))
            second += 2.0 * size * gain * cosine
            weight = lam * lam * denominator + gain
            absolute += 2.0 * size * weight
            exponent = n * (abs(modulus) + abs(angle)) + abs(n * centre * y)
            error += 2.0 * size * weight * ROUNDOFF * (4.0 * exponent + 80.0)
        # |(phi + e)^n - phi^n| <= n e (|phi| + e)^(n-1)
        reach = 0.5 * math.log(bound_r)
        weight = lam * lam / (lam * lam + y * y) + gain
        error += 2.0 * decay * weight * n * phase_error * math.exp(max((n - 1.0) * reach, -745.0))
        k += 1.0
    y = k * delta
    v = tau * y
    tail = math.exp(-0.5 * v * v) * (lam * lam / (y * y) + gain)
    error += 2.0 * tail * (1.0 + 1.0 / (delta * tau * v))
    error += ROUNDOFF * (evaluated + 8.0) * absolute
    scale = delta / (2.0 * math.pi)
    return scale * first, scale * second, scale * error * (1.0 + 1e-9), evaluated


@unchecked
def smooth_part(n, x, value_error, b, rest, mass_error, known, rtol):
    """Bounds on E(S)_+ / n by the contour integral, for a law with E X <= 0 and some x_j > 0.

    Arguments as for `positive_part`. Returns (lower, upper, nodes evaluated).
    """
    m = x.shape[0]
    largest = 0.0  # its square may overflow
    for j in range(m):
        largest = max(largest, abs(x[j]))
    spread = 0.0
    for j in range(m):
        spread += b[j] * (x[j] / largest) ** 2
    if not spread > 0.0:
        return 0.0, math.inf, 0.0
    lam = saddle(n, x, b, rest, 1.0 / (largest * math.sqrt(n * spread)))
    moment, centre = log_moment(lam, x, b, rest)
    total = math.exp(moment)
    p = np.empty(m + 1)
    centred = np.empty(m + 1)
    rounding, term_error, twist, variance, used = 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(m):
        a = lam * x[j]
        grown = math.exp(a)
        p[j] = b[j] * grown / total
        centred[j] = x[j] - centre
        if p[j] < FAINT:  # of no weight, but with angles beyond all reduction
            p[j] = 0.0
            centred[j] = 0.0
            rounding += 2.0 * FAINT * total
        variance += p[j] * centred[j] * centred[j]
        used += b[j]
        rise = abs(math.expm1(a))
        if moment < -0.6:  # summed without taking 1 off
            rise = 1.0 + grown
        rounding += b[j] * (
            (ROUNDOFF * (m + 8.0) + mass_error) * rise + grown * (lam * value_error[j] + 2.0 * ROUNDOFF * abs(a))
        )
        share = ROUNDOFF * (2.0 * abs(a) + abs(moment) + 3.0 * m + 20.0) + mass_error + 1.01 * lam * value_error[j]
        local = p[j] * (abs(centred[j]) * share + 1.01 * value_error[j])
        term_error += local
        twist += local * abs(centred[j])
    p[m] = rest / total
    centred[m] = -centre
    variance += p[m] * centre * centre
    local = (ROUNDOFF * (3.0 * m + 20.0) * p[m] + mass_error * used / total) * abs(centre)
    term_error += local
    twist += local * abs(centre)
    rounding = n * (1.01 * rounding / total + 4.0 * ROUNDOFF * abs(moment))
    deviation = max(math.sqrt(n * variance), 0.1 / lam)
    scale = n * moment - 2.0 * math.log(lam) - math.log(n)
    estimate = 0.4 / deviation
    goal = rtol * (1.0 + known * math.exp(min(-scale, 700.0)) / estimate)
    goal = min(goal, 0.01)
    limit = min(MAX_NODES, max(MIN_NODES, MAX_WORK / m))
    tau = math.sqrt(goal) / lam
    spent = 0.0
    tries = 0
    again = True
    first = second = error = aliases = nodes = 0.0
    while again:
        level = n * moment + 0.5 * (tau * lam) ** 2
        target = 1e-3 * goal * estimate
        period, aliases = alias_period(n, x, b, rest, lam, level, tau, deviation, target)
        if not period < math.inf or (nodes < 0.0 and period / tau > HOPELESS * limit):
            return 0.0, math.inf, spent
        threshold = 1e-3 * goal / (1.0 + (lam * deviation) ** 2) * (estimate * deviation / 0.4)
        v = math.sqrt(2.0 * max(1.0, math.log(8e2 * lam * lam * tau / (goal * estimate))))
        first, second, error, nodes = contour_sum(
            n, p, centred, centre, term_error, twist, lam, tau, period, threshold, v / tau, limit
        )
        if nodes < 0.0:
            spent += limit
            tau *= 2.0
            goal *= 4.0
            tries += 1
            continue
        spent += nodes
        # The estimate of the result was for a nearly Gaussian sum. Once more with a better one?
        again = False
        if tries == 0 and first > 0.0:
            goal = min(0.01, max(goal, rtol * (1.0 + known * math.exp(min(-scale, 700.0)) / first)))
            if second > 3.0 * goal * first or (error + aliases > 0.2 * goal * first and first < estimate):
                estimate = max(min(first, estimate), 1e-12 * estimate)
                tau *= min(1.0, math.sqrt(goal * first / second)) if second > 0.0 else 1.0
                tries = 1
                again = True
    if not first + error < math.inf:
        return 0.0, math.inf, spent
    exponent = scale + 0.5 * (tau * lam) ** 2
    size = n * abs(moment) + 2.0 * abs(math.log(lam)) + math.log(n) + (tau * lam) ** 2
    relative = math.expm1(min(1.01 * rounding + 8.0 * ROUNDOFF * (size + 8.0), 100.0))
    if not exponent < 700.0:
        return 0.0, math.inf, spent
    factor = math.exp(max(exponent, -745.0))
    # Where this underflows, e^exponent is below 1e-307, and the sum may be large.
    upper = (first + error) * (1.0 + relative) * max(factor, 1e-307) + 1e-300
    # Where all X are 0, smoothing added exactly tau / sqrt(2 pi).
    silent = rest * (1.0 - 4.0 * ROUNDOFF) - mass_error * used
    if silent > 0.0:
        excess = tau / math.sqrt(2.0 * math.pi) / n * math.exp(n * math.log(silent))
        upper = max(0.0, upper - excess * (1.0 - 1e-12)) * (1.0 + 4.0 * ROUNDOFF)
    aliases *= math.exp(min(2.0 * rounding, 700.0))
    lower = (first - second - error - aliases) * max(0.0, 1.0 - relative) * factor
    return max(0.0, lower - 1e-300), upper if rounding < 100.0 else math.inf, spent


@kernel("f 1 1 1 f f f f", lambda n, x, *rest: 5e-6 * x.size / math.sqrt(rest[-1]), error_model="numpy")
def positive_part(n, x, value_error, b, rest, mass_error, known, rtol):
    """Bounds on E(S)_+ / n for a law with E X <= 0 and some x_j > 0; see `slots`.

    wobble[j] bounds the error of x[j], mass_error the relative one of b[j]; known is what is added to the
    result later, so that accuracy is not wasted. Returns (lower, upper, nodes evaluated).

    High and rare atoms would leave no room for the exponential. They are cut at a height H: with
    A = sum of min(X_i, H) and B = sum of (X_i - H)_+, A_+ + B 1(A >= 0) <= S_+ <= A_+ + B, and each term of B
    is independent of the other terms of A, whose sum is below -H with a probability that Chernoff bounds.
    """
    m = x.shape[0]
    plain = 0.0  # the sum of the positive parts
    for j in range(m):
        plain += b[j] * max(0.0, x[j] + value_error[j])
    plain *= 1.0 + ROUNDOFF * (m + 8.0)
    lower = 0.0
    upper = plain
    spent = 0.0
    chance = 0.03
    low_x = np.empty(m)
    for j in range(m):
        low_x[j] = x[j] - value_error[j]
    cut = np.empty(m)
    loose = np.empty(m)
    known_rtol = max(rtol, COARSE)  # the first integral only tells how small the chance must be
    height = -1.0
    for _ in range(4):
        if height < 0.0:
            height = cap_height(n, low_x, b, ROUNDOFF * (m + 8.0) + mass_error, chance)
        jumps = 0.0
        sum_error = 0.0
        for j in range(m):
            cut[j] = x[j]
            loose[j] = value_error[j]
            if x[j] + value_error[j] > height:
                sum_error += b[j] * value_error[j]
            if x[j] > height:
                jumps += b[j] * (x[j] - height)
                cut[j] = height
                if low_x[j] > height:
                    loose[j] = 0.0
        sum_error += (ROUNDOFF * (m + 8.0) + 2.0 * mass_error) * jumps
        if jumps == 0.0:
            known_rtol = rtol
        low, high, nodes = smooth_part(n, cut, loose, b, rest, mass_error, known + jumps, known_rtol)
        spent += nodes
        lower = max(lower, low + max(0.0, jumps * (1.0 - chance) - sum_error))
        upper = min(upper, high + jumps + sum_error)
        # A smaller chance is worth its higher cut only where the jumps' doubt shows.
        wanted = 0.3 * rtol * (known + lower) / max(jumps, 1e-300)
        if spent > 3.0 * min(MAX_NODES, max(MIN_NODES, MAX_WORK / m)) or (wanted >= chance and known_rtol == rtol):
            break
        if wanted < chance:
            chance = max(wanted, 1e-3 * chance)
            height = -1.0
        known_rtol = rtol
    if not lower <= upper:  # a number that is none
        return 0.0, plain, spent
    return lower, upper, spent


@kernel(
    "f 1 1 1 f 1p f f o1p o1p",
    lambda n, first, second, blanket, rest, expm1_eps, rtol, *others: (
        5e-6 * first.size * expm1_eps.size / math.sqrt(rtol)
    ),
    error_model="numpy",
)
def profile(n, first, second, blanket, rest, expm1_eps, rtol, mass_error, lower, upper):
    """Fill lower[i] <= delta(growth[i]) <= upper[i]."""
    groups = first.shape[0]
    x = np.empty(groups)
    value_error = np.empty(groups)
    b = np.empty(groups)
    for i in range(expm1_eps.shape[0]):
        e = expm1_eps[i]
        apart = 0.0  # sum over groups outside of the blanket, of positive parts
        mean = 0.0
        sum_error = 0.0  # rounding of these two
        mean_doubt = 0.0
        used = 0
        positive = False
        negative = False
        for j in range(groups):
            gap = first[j] - second[j]
            fall = e * second[j]
            value = gap - fall
            term_error = 4.0 * ROUNDOFF * (abs(gap) + fall) + 2.0 * mass_error * (first[j] + second[j] + fall)
            if n == 1 or blanket[j] == 0.0:
                apart += max(value, 0.0)
                # A value that is certainly negative has positive part 0 whatever the rounding.
                if value + term_error > 0.0:
                    sum_error += term_error
            else:
                mean += value
                mean_doubt += term_error + 2.0 * ROUNDOFF * abs(mean)
                x[used] = value / blanket[j]
                value_error[used] = (term_error + 2.0 * ROUNDOFF * abs(value)) / blanket[j]
                value_error[used] += 2.0 * mass_error * abs(x[used])
                b[used] = blanket[j]
                positive = positive or value + term_error > 0.0
                negative = negative or value < 0.0
                used += 1
        sum_error += 2.0 * ROUNDOFF * groups * apart
        low = 0.0
        high = 0.0
        if mean > 0.0:
            # E(S)_+ = E S + E(-S)_+
            apart += mean
            sum_error += 2.0 * mean_doubt + 2.0 * ROUNDOFF * apart
            for j in range(used):
                x[j] = -x[j]
            positive = negative
        elif positive:
            positive = False
            for j in range(used):
                positive = positive or x[j] > 0.0
            if not positive:  # at most rounding
                for j in range(used):
                    sum_error += b[j] * max(0.0, x[j] + value_error[j])
        if positive:
            low, high, _ = positive_part(n, x[:used], value_error[:used], b[:used], rest, mass_error, apart, rtol)
        lower[i] = max(0.0, (low + apart - sum_error) * (1.0 - 4.0 * ROUNDOFF))
        upper[i] = min(1.0, (high + apart + sum_error) * (1.0 + 4.0 * ROUNDOFF))
        if not lower[i] <= upper[i]:  # a number that is none: what holds for any pair
            lower[i] = 0.0
            upper[i] = 1.0


@kernel("1 1 1 k1 o1 o1", lambda y, x, *rest: 5e-6 * x.size * y.size)
def characteristics(y, x, p, ends, versine, sine):
    """Fill rows of versine and sine with sum_j p_j (1 - cos(y_k x_j)) and sum_j p_j sin(y_k x_j), one row for each law.

    A law has the atoms from the end of the one before up to its own. Rows are one after the other, y.shape[0] long.
    Rounding: at most 8 u |y_k x_j| in every versine and sine, then u times the law's size of the sum of absolute terms.
    """
    start = 0
    for law in range(ends.shape[0]):
        end = ends[law]
        here = x[start:end]
        mass = p[start:end]
        one = np.empty(end - start)
        other = np.empty(end - start)
        for k in range(y.shape[0]):
            turns(y[k], here, one, other)
            place = law * y.shape[0] + k
            versine[place], sine[place], _, _ = weighted(mass, mass, one, other)
        start = end
