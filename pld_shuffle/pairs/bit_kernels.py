"""Compiled loops of `bits`: Fourier sums of the counts' profile, and the search over the others' ones.

Notation as in `bits` and docs/swap.md. The others send M = ones + zeros bits; the sum runs over the points
zeta = zeta0 + i theta, theta = 2 pi l/N, l = 1 ... L, N odd. Kernels take scalars and 1-D arrays and check
nothing. U = 2^-53. A computed exponent is off by at most SLACK U times the sum of the sizes of its terms,
which every loop keeps beside the value; shares may be off by 4 U relatively, which SLACK covers too.
"""

# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, check-untyped-defs=False

from __future__ import annotations

import math

import numpy as np

from ..numerics.compiled import inner, kernel

U = 2.0**-53
SLACK = 64.0
TAIL = 46.0  # natural logarithm of how small neglected tails and nodes are, beside the main term
SPREAD = 4.0  # the variances in one piece of the range of ones differ at most by this factor, ...
SMALL = 8.0  # ... where they are above this
TOO_NEAR = 2.0**-40  # the rest of a share, relatively, that rounding blurs
TINY = 1e-300  # for what underflows

# Columns of the tables of nodes.
ANGLE, FORWARD_RE, FORWARD_IM, ONE_RE, ONE_IM, ZERO_RE, ZERO_IM = range(7)
FACTOR_RE, FACTOR_IM, ENVELOPE, ONE_SIZE, ZERO_SIZE, CLOSE = range(7, 13)
COLUMNS = 13
# Entries of the state of one growth and one piece.
(
    GROWTH, EACH, DENOMINATOR, TILT, RISE, TOP, BITS, PERIOD, RESIDUE, ONE_MEAN, ZERO_MEAN, ONE_LOG, ZERO_LOG,
    ONE_VARIANCE, ZERO_VARIANCE, LEAST, TARGET_LOG, TARGET_ALL, TARGET_SIZE, ONE_START, ZERO_START,
) = range(21)  # fmt: skip
STATES = 21


@inner
def tilt_of(expm1_eps, bits, zero, gap):
    """(s^(1/bits) - 1, gap - that * zero, e^zeta0 - 1); the second is <= 0 where no divergence is left."""
    each = math.expm1(math.log1p(expm1_eps) / bits) if bits > 1 else expm1_eps
    denominator = gap - each * zero
    if not denominator > 0.0:
        return each, denominator, 0.0
    return each, denominator, each / denominator


@inner
def tilted(share, rest, rise):
    """One bit under the tilt: (mean, log of its transform, variance), the mean from 1 down if share > 1/2."""
    top = 1.0 + rise
    scale = 1.0 + share * rise
    variance = share * rest * top / (scale * scale)
    if share <= 0.5:
        return share * top / scale, math.log1p(share * rise), variance
    return -rest / scale, math.log1p(-rest * rise / top), variance


@inner
def log_transform(share, rest, rise, versine, cosine, sine):
    """log of E e^(zeta B), or of E e^(zeta (B-1)) if share > 1/2: (real, imaginary part, size)."""
    top = 1.0 + rise
    if share <= 0.5:
        real = share * (rise * cosine - versine)
        imaginary = share * top * sine
    else:
        real = -rest * (rise + versine) / top
        imaginary = -rest * sine / top
    square = 2.0 * real + (real * real + imaginary * imaginary)
    if square > -0.5:
        log = 0.5 * math.log1p(square)
        modulus = math.sqrt(1.0 + square)
    else:
        modulus = max(math.hypot(1.0 + real, imaginary), 1e-150)
        log = math.log(modulus)
    return log, math.atan2(imaginary, 1.0 + real), (abs(real) + abs(imaginary)) / modulus


@inner
def set_up(expm1_eps, bits, one, rest_one, zero, rest_zero, gap, others, low, high, state):
    """Fill `state` and return the table of nodes for low <= ones <= high; growth >= 0, denominator > 0."""
    each, denominator, rise = tilt_of(expm1_eps, bits, zero, gap)
    top = 1.0 + rise
    tilt = math.log1p(rise)
    one_mean, one_log, one_variance = tilted(one, rest_one, rise)
    zero_mean, zero_log, zero_variance = tilted(zero, rest_zero, rise)
    one_start = -rest_one if one > 0.5 else one
    zero_start = -rest_zero if zero > 0.5 else zero
    variance = 0.0
    least = math.inf
    shift = 0.0
    for ones in (low, high):
        zeros = others - ones
        spread = ones * one_variance + zeros * zero_variance
        least = min(least, spread)
        quiet = ones * one * rest_one + zeros * zero * rest_zero
        variance = max(variance, max(spread, quiet))
        shift = max(shift, ones * (one_mean - one_start) + zeros * (zero_mean - zero_start))
    window = TAIL / 3.0 + math.sqrt(TAIL * TAIL / 9.0 + 2.0 * TAIL * variance)
    if tilt > 0.0:  # enough for a residue that underflows
        shift = min(shift, 800.0 / tilt)
    period = math.ceil(min(window + shift + 2.0 * bits + 4.0, others + bits + 1.0))
    if period % 2.0 == 0.0:
        period += 1.0
    half = (period - 1.0) / 2.0
    least *= 0.5  # room for leaving out some of the others
    needed = period * math.sqrt(TAIL / (8.0 * least)) + 1.0 if least > 0.0 else half
    nodes = int(min(half, needed))
    state[GROWTH] = expm1_eps
    state[EACH] = each
    state[DENOMINATOR] = denominator
    state[TILT] = tilt
    state[RISE] = rise
    state[TOP] = top
    state[BITS] = bits
    state[PERIOD] = period
    state[RESIDUE] = (
        expm1_eps * math.exp(-tilt * period) / -math.expm1(-tilt * period) if expm1_eps > 0.0 else bits * gap / period
    )
    state[ONE_MEAN] = one_mean
    state[ZERO_MEAN] = zero_mean
    state[ONE_LOG] = one_log
    state[ZERO_LOG] = zero_log
    state[ONE_VARIANCE] = one_variance
    state[ZERO_VARIANCE] = zero_variance
    state[LEAST] = least if nodes < half else 0.0
    # The sum over i < bits of A^i (s'B)^(bits-1-i), in units of e^(zeta shift) A(zeta0)^(bits-1).
    target = one_log + (tilt if one > 0.5 else 0.0)
    state[TARGET_LOG] = (bits - 1.0) * target
    state[TARGET_ALL] = bits * target
    state[TARGET_SIZE] = (bits - 1.0) * (abs(one_log) + tilt)
    state[ONE_START] = one_start
    state[ZERO_START] = zero_start

    table = np.empty((nodes, COLUMNS))
    for index in range(nodes):
        theta = 2.0 * math.pi * (index + 1) / period
        half_sine = math.sin(0.5 * theta)
        versine = 2.0 * half_sine * half_sine
        cosine = math.cos(theta)
        sine = math.sin(theta)
        row = table[index]
        row[ANGLE] = theta
        row[FORWARD_RE] = cosine / top  # e^-zeta
        row[FORWARD_IM] = -sine / top
        one_re, one_im, one_size = log_transform(one, rest_one, rise, versine, cosine, sine)
        zero_re, zero_im, zero_size = log_transform(zero, rest_zero, rise, versine, cosine, sine)
        row[ONE_RE] = one_re
        row[ONE_IM] = one_im
        row[ZERO_RE] = zero_re
        row[ZERO_IM] = zero_im
        row[ONE_SIZE] = one_size
        row[ZERO_SIZE] = zero_size
        # kernel = (1 - e^(-i theta)) / (1 - e^-zeta)
        down_re = (rise + versine) / top
        down_im = sine / top
        kernel = complex(versine, sine) / complex(down_re, down_im)
        factor = kernel
        if bits > 1.0:
            # Bits of the target as further others: transforms relative to the tilt's, shifts included.
            near = math.exp(one_re - one_log)
            turn = one_im + (theta if one > 0.5 else 0.0)
            alpha = complex(near * math.cos(turn), near * math.sin(turn))
            near = math.exp(zero_re - zero_log)
            turn = zero_im + (theta if zero > 0.5 else 0.0)
            beta = complex(near * math.cos(turn), near * math.sin(turn))
            total = complex(1.0, 0.0)
            power = complex(1.0, 0.0)
            for _ in range(1, int(bits)):
                power *= alpha
                total = total * beta + power
            factor = kernel * total
        row[FACTOR_RE] = factor.real
        row[FACTOR_IM] = factor.imag
        # The largest real part over all thresholds: see docs/swap.md, Theorem B3.
        ratio = tilt / theta
        excess = math.atan2(kernel.imag, kernel.real) - math.atan2(tilt, theta)
        size = abs(kernel)
        mean_low = one_im - theta * one_mean
        mean_high = zero_im - theta * zero_mean
        ahead = max(
            abs(low * mean_low + (others + bits - 1.0 - low) * mean_high),
            abs((high + bits - 1.0) * mean_low + (others - high) * mean_high),
        )
        if ahead + abs(excess) + theta < 3.14:
            row[ENVELOPE] = size * theta / math.hypot(tilt, theta) * math.exp(-ratio * excess)
            row[CLOSE] = ratio
        else:
            row[ENVELOPE] = size * top
            row[CLOSE] = -1.0
    return table


@inner
def neglected(variance, ones, zeros, place, table, state):
    """Bound on the nodes that are left out, as a multiple of the denominator."""
    if state[LEAST] == 0.0:
        return 0.0
    period = state[PERIOD]
    nodes = float(table.shape[0])
    fall = 8.0 * variance * nodes / (period * period)
    log = ones * state[ONE_LOG] + zeros * state[ZERO_LOG] + state[TARGET_LOG] - state[TILT] * place
    return 2.0 * state[BITS] * math.exp(log - fall * nodes) / (period * fall) * 4.0


@inner
def exact(ones, zeros, table, state):
    """The sum at the best threshold, for a given number of ones and zeros: (upper, lower, threshold).

    `upper` is at least H. `lower` is at most the Fourier sum at that threshold, aliases not yet taken off.
    The threshold is relative to the shifts. Which thresholds can be best: Darroch 1964, the mode of
    independent bits.
    """
    bits = int(state[BITS])
    tilt = state[TILT]
    centre = ones * state[ONE_MEAN] + zeros * state[ZERO_MEAN]
    rounding = SLACK * U * (ones * abs(state[ONE_MEAN]) + zeros * abs(state[ZERO_MEAN])) + 1e-12
    start = centre
    stop = centre
    if bits > 1:
        one = state[ONE_MEAN] + (1.0 if state[ONE_START] < 0.0 else 0.0)
        zero = state[ZERO_MEAN] + (1.0 if state[ZERO_START] < 0.0 else 0.0)
        start = centre + (bits - 1) * min(one, zero)
        stop = centre + (bits - 1) * max(one, zero)
    shift = (ones if state[ONE_START] < 0.0 else 0.0) + (zeros if state[ZERO_START] < 0.0 else 0.0)
    first = math.floor(start - rounding)
    if start - rounding > first + 1.0 - 1.0 / (ones + zeros + bits - (first + shift)):
        first += 1.0
    last = math.floor(stop + rounding)
    if not stop + rounding < last + 1.0 / (last + shift + 2.0):
        last += 1.0
    count = int(last - first) + 1
    sums = np.zeros(count)
    sizes = 0.0
    errors = 0.0
    base = state[TARGET_LOG]
    base_size = SLACK * (4.0 * bits + state[TARGET_SIZE])
    place_size = abs(first) + count
    for index in range(table.shape[0]):
        row = table[index]
        theta = row[ANGLE]
        modulus = math.exp(ones * row[ONE_RE] + zeros * row[ZERO_RE] + base - tilt * first)
        turn = ones * row[ONE_IM] + zeros * row[ZERO_IM] - theta * first
        cosine = modulus * math.cos(turn)
        sine = modulus * math.sin(turn)
        real = row[FACTOR_RE] * cosine - row[FACTOR_IM] * sine
        imaginary = row[FACTOR_RE] * sine + row[FACTOR_IM] * cosine
        size = abs(real) + abs(imaginary)
        sizes += size
        errors += size * (
            base_size + SLACK * (ones * row[ONE_SIZE] + zeros * row[ZERO_SIZE]) + 4.0 * place_size * (tilt + theta)
        )
        sums[0] += real
        for j in range(1, count):
            real, imaginary = (
                real * row[FORWARD_RE] - imaginary * row[FORWARD_IM],
                real * row[FORWARD_IM] + imaginary * row[FORWARD_RE],
            )
            sums[j] += real
    scale = 2.0 / state[PERIOD] * state[DENOMINATOR]
    variance = ones * state[ONE_VARIANCE] + zeros * state[ZERO_VARIANCE]
    error = scale * U * (errors + sizes * (table.shape[0] + 4.0 * count))
    error += state[DENOMINATOR] * neglected(variance, ones, zeros, first, table, state)
    # The growth itself is known to a few U: H changes by Q(threshold passed) for every unit of it.
    log = ones * state[ONE_LOG] + zeros * state[ZERO_LOG] + state[TARGET_ALL]
    log -= math.log1p(state[GROWTH]) + tilt * (first + 1.0)
    error += SLACK * U * state[GROWTH] * math.exp(min(0.0, log))
    upper = 0.0
    best = 0
    fall = 1.0
    for j in range(count):
        upper = max(upper, scale * sums[j] + fall * error)
        if sums[j] > sums[best]:
            best = j
        fall /= state[TOP]
    lower = scale * sums[best] - error * state[TOP] ** -best
    residue = state[RESIDUE]
    upper = (upper + residue) * (1.0 + SLACK * U) + TINY
    return upper, lower + residue * (1.0 - SLACK * U), first + best


@inner
def aliases(ones, zeros, threshold, state):
    """What the period adds to the sum at most: counts one period or more beyond the threshold."""
    period = state[PERIOD]
    bits = state[BITS]
    if period >= ones + zeros + bits + 1.0:
        return 0.0
    tilt = state[TILT]
    variance = ones * state[ONE_VARIANCE] + zeros * state[ZERO_VARIANCE] + bits
    mean = ones * state[ONE_MEAN] + zeros * state[ZERO_MEAN]
    far = period + threshold - mean - bits
    if not far > 0.0:
        return math.inf
    log = ones * state[ONE_LOG] + zeros * state[ZERO_LOG] - tilt * (threshold + 1.0)
    log += state[TARGET_ALL]
    fall = far * far / (2.0 * (variance + far / 3.0))
    above = math.exp(log - fall)
    mean = ones * state[ONE_START] + zeros * state[ZERO_START]
    if not fall > 4.0:
        return math.inf
    far = max(0.0, period - (threshold + 1.0 - mean))
    one, zero = state[ONE_START], state[ZERO_START]
    variance = ones * abs(one) * (1.0 - abs(one)) + zeros * abs(zero) * (1.0 - abs(zero)) + bits
    rate = tilt * period
    weight = rate * math.exp(-rate) / -math.expm1(-rate) if rate > 0.0 else 1.0
    fall = far * far / (2.0 * (variance + far / 3.0))
    below = (1.0 + state[GROWTH]) * weight * math.exp(-fall)
    if not fall > 4.0:
        below *= (ones + zeros + bits) / period
    # Weights |t|/N of counts t beyond N: Bernstein's tails fall by more than half from N to 2 N.
    return 8.0 * (above + below)


@inner
def envelope(ones, zeros, table, state):
    """At least the one-bit divergence for these others; a convex function of ones along ones + zeros
    fixed."""
    tilt = state[TILT]
    total = 0.0
    errors = 0.0
    mean = ones * state[ONE_MEAN] + zeros * state[ZERO_MEAN]
    for index in range(table.shape[0]):
        row = table[index]
        ratio = row[CLOSE]
        if ratio >= 0.0:
            one = row[ONE_RE] - ratio * row[ONE_IM]
            zero = row[ZERO_RE] - ratio * row[ZERO_IM]
            log = ones * one + zeros * zero
            more = 1.0 + ratio
        else:
            log = ones * row[ONE_RE] + zeros * row[ZERO_RE] - tilt * mean
            more = 1.0 + tilt
        size = row[ENVELOPE] * math.exp(log)
        total += size
        errors += size * more * (4.0 + ones * row[ONE_SIZE] + zeros * row[ZERO_SIZE])
    period = state[PERIOD]
    each = state[EACH]
    value = 2.0 / period * (total * (1.0 + 4.0 * U * table.shape[0]) + SLACK * U * errors)
    # Thresholds are at most 1 before the mean, hence a factor e^tilt; the bits of the target are others here.
    if state[LEAST] > 0.0:
        fall = 8.0 * state[LEAST] * table.shape[0] / (period * period)
        log = ones * state[ONE_LOG] + zeros * state[ZERO_LOG] - tilt * (mean - 1.0)
        value += 8.0 * math.exp(log - fall * table.shape[0]) / (period * fall)
    value *= state[DENOMINATOR]
    if each > 0.0:
        value = value * (state[GROWTH] / each)
    else:
        value *= state[BITS]
    return (value + state[RESIDUE]) * (1.0 + SLACK * U) + TINY


@inner
def attained(users_ones, others, table, state):
    """A lower bound on the divergence for one dataset: that many ones among the others' values."""
    ones = users_ones * state[BITS]
    _, lower, threshold = exact(ones, others - ones, table, state)
    return max(0.0, lower - aliases(ones, others - ones, threshold, state))


@inner
def split(first, second, others, low, high, pieces):
    """Cut the range of ones where the variance has changed by SPREAD; returns how many pieces there are.

    first, second : variances of one bit drawn with `one`, and with `zero`.
    """
    count = 0
    pieces[0] = low
    start = low * first + (others - low) * second
    end = high * first + (others - high) * second
    slope = first - second
    bound = max(min(start, end), SMALL)
    final = max(start, end)
    if final > SPREAD * bound:
        steps = math.ceil(math.log(final / bound) / math.log(SPREAD))
        ratio = (final / bound) ** (1.0 / steps)
        for step in range(1, int(steps)):
            level = bound * ratio ** (step if end > start else steps - step)
            at = math.floor((level - others * second) / slope)
            if at > pieces[count] and at < high:
                count += 1
                pieces[count] = at
    pieces[count + 1] = high
    return count + 1


@inner
def alone(expm1_eps, bits, zero, gap):
    """(growth, e^zeta0 - 1, H of a target among nobody, rounded up), -1 where nothing is left.

    Next to the largest loss, up to rounding, the growth is a little smaller: H does not rise.
    """
    each, denominator, rise = tilt_of(expm1_eps, bits, zero, gap)
    if denominator < -SLACK * U * gap:
        return expm1_eps, 0.0, -1.0
    if denominator < TOO_NEAR * gap:
        expm1_eps = math.expm1(bits * math.log1p((1.0 - 2.0 * TOO_NEAR) * gap / zero))
        each, denominator, rise = tilt_of(expm1_eps, bits, zero, gap)
    local = denominator * (expm1_eps / each if each > 0.0 else bits)
    return expm1_eps, rise, min(1.0, local + SLACK * U * gap * bits * (1.0 + expm1_eps))


@inner
def one_epsilon(expm1_eps, bits, one, rest_one, zero, rest_zero, gap, others, low, high, rtol, most, pieces, state):
    """(lower, upper, evaluations): certified bounds on the supremum over low <= ones <= high."""
    asked = expm1_eps
    expm1_eps, rise, local = alone(asked, bits, zero, gap)
    if local < 0.0:
        return 0.0, 0.0, 0
    first = tilted(one, rest_one, rise)[2]
    second = tilted(zero, rest_zero, rise)[2]
    count = split(first, second, others, low, high, pieces)

    best = 0.0
    for piece in range(count):
        left, right = pieces[piece], pieces[piece + 1]
        table = set_up(expm1_eps, bits, one, rest_one, zero, rest_zero, gap, others, left, right, state)
        best = max(best, attained(math.ceil(left / bits), others, table, state))
        best = max(best, attained(math.floor(right / bits), others, table, state))
    upper = 0.0
    work = 2 * count
    stack = np.empty((128, 4))
    more = bits - 1.0
    for piece in range(count):
        depth = 1
        left, right = pieces[piece], pieces[piece + 1]
        if count > 1:
            table = set_up(expm1_eps, bits, one, rest_one, zero, rest_zero, gap, others, left, right, state)
        stack[0, 0], stack[0, 1] = left, right
        stack[0, 2] = envelope(left, others - left + more, table, state)
        stack[0, 3] = envelope(right + more, others - right, table, state)
        work += 2
        while depth > 0:
            depth -= 1
            near, far, ahead, behind = stack[depth]
            zeros = others - far
            # All of these others kept: the envelope is convex, so its ends bound it.
            value = min(local, max(ahead, behind))
            target = max(best * (1.0 + rtol * (1.0 + distance(near, zeros, state))), 1e-290)
            variance = near * state[ONE_VARIANCE] + zeros * state[ZERO_VARIANCE]
            if value > target and (state[LEAST] == 0.0 or variance >= state[LEAST]):
                # Those between left out.
                value = min(value, exact(near, zeros, table, state)[0])
                work += 1
            if not (value > target and near < far and work < most):
                upper = max(upper, value)
                continue
            middle = math.floor(0.5 * (near + far))
            # Both halves have the middle, but for the last two numbers, which part.
            start = far if far - near == 1.0 else middle
            inner = envelope(middle + more, others - middle, table, state)
            outer = inner if start == middle else behind
            if bits > 1.0:
                outer = envelope(start, others - start + more, table, state)
            work += 1
            users = math.floor(middle / bits)
            if users * bits >= low and inner > best:
                best = max(best, attained(users, others, table, state))
                work += 1
            stack[depth, 0], stack[depth, 1] = start, far
            stack[depth, 2], stack[depth, 3] = outer, behind
            stack[depth + 1, 0], stack[depth + 1, 1] = near, middle
            stack[depth + 1, 2], stack[depth + 1, 3] = ahead, inner
            depth += 2
    return (min(best, local) if expm1_eps == asked else 0.0), min(upper, local), work


@inner
def distance(ones, zeros, state):
    """The square of how many deviations the threshold is away: delta's relative error over epsilon's."""
    tilt = state[TILT]
    return tilt * tilt * (ones * state[ONE_VARIANCE] + zeros * state[ZERO_VARIANCE])


@kernel("1p f f f f f f f f f f i o1p o1p", lambda *arguments: 2e-3, rows=True)
def all_expm1_epsilons(
    expm1_eps, bits, one, rest_one, zero, rest_zero, gap, others, low, high, rtol, most, lower, upper
):
    """Fill lower and upper; returns how many sums were evaluated."""
    pieces = np.empty(256)
    state = np.empty(STATES)
    total = 0
    for i in range(expm1_eps.size):
        lower[i], upper[i], work = one_epsilon(
            expm1_eps[i], bits, one, rest_one, zero, rest_zero, gap, others, low, high, rtol, most, pieces,
            state,
        )  # fmt: skip
        total += work
    return total


@inner
def chord(expm1_eps, bits, one, rest_one, zero, rest_zero, gap, others, pieces, state):
    """(left, right): H_s(ones) <= left + (right - left) ones/others for 0 <= ones <= others; growth >= 0.

    The envelope is convex in ones on every piece, so a line above it at all cuts is above it in between.
    """
    expm1_eps, rise, local = alone(expm1_eps, bits, zero, gap)
    if local < 0.0 or others == 0.0:
        return max(local, 0.0), max(local, 0.0)
    first = tilted(one, rest_one, rise)[2]
    second = tilted(zero, rest_zero, rise)[2]
    count = split(first, second, others, 0.0, others, pieces)
    more = bits - 1.0
    height = np.zeros(count + 1)
    for piece in range(count):
        near, far = pieces[piece], pieces[piece + 1]
        table = set_up(expm1_eps, bits, one, rest_one, zero, rest_zero, gap, others, near, far, state)
        ahead = envelope(near, others - near + more, table, state)
        behind = envelope(far + more, others - far, table, state)
        # Several bits: a mean of the envelope at ones ... ones + more, all below the chord from near to far + more.
        share = more / (far + more - near)
        height[piece] = max(height[piece], max(ahead, ahead + share * (behind - ahead)))
        height[piece + 1] = max(behind, behind + share * (ahead - behind))
    left, right = height[0], height[count]
    for cut in range(1, count):  # lift the end that the cut is nearer to
        share = pieces[cut] / others
        lack = height[cut] - (left + share * (right - left))
        if lack > 0.0 and share <= 0.5:
            left += lack / (1.0 - share)
        elif lack > 0.0:
            right += lack / share
    left *= 1.0 + SLACK * U
    right *= 1.0 + SLACK * U
    if min(left, right) >= local:
        return local, local
    return left, right


@kernel("1p f f f f f f f o1p o1p", lambda *arguments: 2e-3, rows=True)
def all_chords(expm1_eps, bits, one, rest_one, zero, rest_zero, gap, others, left, right):
    """Fill left and right."""
    pieces = np.empty(256)
    state = np.empty(STATES)
    for i in range(expm1_eps.size):
        left[i], right[i] = chord(expm1_eps[i], bits, one, rest_one, zero, rest_zero, gap, others, pieces, state)
