"""Compiled loops of `bits`: Fourier sums of the counts' profile, and the search over the others' ones.

Notation as in `bits` and docs/swap.md. The others send M = ones + zeros bits; the sum runs over the points
zeta = zeta0 + i theta, theta = 2 pi l/N, l = 1 ... L, N odd. Kernels take scalars and 1-D arrays and check
nothing. U = 2^-53. A computed exponent is off by at most SLACK U times the sum of the sizes of its terms,
which every loop keeps beside the value; shares may be off by 4 U relatively, which SLACK covers too.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..numerics.compiled import inner, kernel

U = 2.0**-53
SLACK = 64.0
TAIL = 46.0  # natural logarithm of how small neglected tails and nodes are, beside the main term
SPREAD = 4.0  # the variances in one piece of the range of ones differ at most by this factor, ...
SMALL = 8.0  # ... where they are above this
TOO_NEAR = 2.0**-40  # the rest of a share, relatively, that rounding blurs
TINY = 1e-300  # for what underflows

# Columns of the tables of nodes: of numbers, and of complex numbers (logs of the transforms of a bit drawn with `one`
# and with `zero`).
ANGLE, ENVELOPE, CLOSE, ONE_SIZE, ZERO_SIZE = range(5)
ONE, ZERO, FACTOR, FORWARD = range(4)


class Sent(NamedTuple):
    """What all users send; others : the bits of all but the target."""

    bits: float
    one: float
    rest_one: float
    zero: float
    rest_zero: float
    gap: float
    others: float


class Bit(NamedTuple):
    """One bit under the tilt, from 1 down if its share is above 1/2; start : its mean without the tilt."""

    mean: float
    log: float  # of its transform
    variance: float
    start: float


class Tilt(NamedTuple):
    """Of s = 1 + growth: s^(1/bits) - 1, gap - that * zero (<= 0 where no divergence is left), e^zeta0 - 1, zeta0."""

    growth: float
    each: float
    denominator: float
    rise: float
    log: float


class State(NamedTuple):
    """What sums are made of, for one growth and one piece of the range of ones; see `set_up`.

    least : half the variance of the others at least, 0 if all nodes are there. table, waves : a row for each node.
    """

    tilt: Tilt
    bits: float
    one: Bit
    zero: Bit
    period: float
    residue: float
    least: float
    table: Any
    waves: Any


@inner
def tilt_of(expm1_eps, sent):
    """The tilt for that growth."""
    each = math.expm1(math.log1p(expm1_eps) / sent.bits) if sent.bits > 1 else expm1_eps
    denominator = sent.gap - each * sent.zero
    rise = each / denominator if denominator > 0.0 else 0.0
    return Tilt(expm1_eps, each, denominator, rise, math.log1p(rise))


@inner
def tilted(share, rest, rise):
    """A bit of that share under the tilt 1 + rise."""
    top = 1.0 + rise
    scale = 1.0 + share * rise
    variance = share * rest * top / (scale * scale)
    if share <= 0.5:
        return Bit(share * top / scale, math.log1p(share * rise), variance, share)
    return Bit(-rest / scale, math.log1p(-rest * rise / top), variance, -rest)


@inner
def log_transform(share, rest, rise, versine, cosine, sine):
    """log of E e^(zeta B), or of E e^(zeta (B-1)) if share > 1/2, and its size."""
    top = 1.0 + rise
    if share <= 0.5:
        part = complex(share * (rise * cosine - versine), share * top * sine)
    else:
        part = complex(-rest * (rise + versine) / top, -rest * sine / top)
    square = 2.0 * part.real + (part.real * part.real + part.imag * part.imag)
    if square > -0.5:
        log = 0.5 * math.log1p(square)
        modulus = math.sqrt(1.0 + square)
    else:
        modulus = max(math.hypot(1.0 + part.real, part.imag), 1e-150)
        log = math.log(modulus)
    return complex(log, math.atan2(part.imag, 1.0 + part.real)), (abs(part.real) + abs(part.imag)) / modulus


@inner
def wave(log, turn):
    """e^(log + i turn)."""
    size = math.exp(log)
    return complex(size * math.cos(turn), size * math.sin(turn))


@inner
def set_up(expm1_eps, sent, low, high):
    """The state for low <= ones <= high; growth >= 0, denominator > 0."""
    bits, one, rest_one, zero, rest_zero, gap, others = sent
    tilts = tilt_of(expm1_eps, sent)
    rise, tilt = tilts.rise, tilts.log
    top = 1.0 + rise
    first, second = tilted(one, rest_one, rise), tilted(zero, rest_zero, rise)
    variance = 0.0
    least = math.inf
    shift = 0.0
    for ones in (low, high):
        zeros = others - ones
        spread = ones * first.variance + zeros * second.variance
        least = min(least, spread)
        quiet = ones * one * rest_one + zeros * zero * rest_zero
        variance = max(variance, max(spread, quiet))
        shift = max(shift, ones * (first.mean - first.start) + zeros * (second.mean - second.start))
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
    residue = bits * gap / period
    if expm1_eps > 0.0:
        residue = expm1_eps * math.exp(-tilt * period) / -math.expm1(-tilt * period)
    table = np.empty((nodes, 5))
    waves = np.empty((nodes, 4), np.complex128)
    for index in range(nodes):
        theta = 2.0 * math.pi * (index + 1) / period
        half_sine = math.sin(0.5 * theta)
        versine = 2.0 * half_sine * half_sine
        cosine = math.cos(theta)
        sine = math.sin(theta)
        row, places = table[index], waves[index]
        row[ANGLE] = theta
        places[FORWARD] = complex(cosine / top, -sine / top)  # e^-zeta
        places[ONE], row[ONE_SIZE] = log_transform(one, rest_one, rise, versine, cosine, sine)
        places[ZERO], row[ZERO_SIZE] = log_transform(zero, rest_zero, rise, versine, cosine, sine)
        # kernel = (1 - e^(-i theta)) / (1 - e^-zeta)
        kernel = complex(versine, sine) / complex((rise + versine) / top, sine / top)
        places[FACTOR] = kernel
        if bits > 1.0:
            # Bits of the target as further others: transforms relative to the tilt's, shifts included.
            alpha = wave(places[ONE].real - first.log, places[ONE].imag + (theta if one > 0.5 else 0.0))
            beta = wave(places[ZERO].real - second.log, places[ZERO].imag + (theta if zero > 0.5 else 0.0))
            total = complex(1.0, 0.0)
            power = complex(1.0, 0.0)
            for _ in range(1, int(bits)):
                power *= alpha
                total = total * beta + power
            places[FACTOR] = kernel * total
        # The largest real part over all thresholds: see docs/swap.md, Theorem B3.
        ratio = tilt / theta
        excess = math.atan2(kernel.imag, kernel.real) - math.atan2(tilt, theta)
        size = abs(kernel)
        mean_low = places[ONE].imag - theta * first.mean
        mean_high = places[ZERO].imag - theta * second.mean
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
    least = least if nodes < half else 0.0
    return State(tilts, bits, first, second, period, residue, least, table, waves)


@inner
def target(state):
    """log A(zeta0), of a bit of the target.

    The sum over i < bits of A^i (s'B)^(bits-1-i) is in units of e^(zeta shift) A(zeta0)^(bits-1).
    """
    return state.one.log + (state.tilt.log if state.one.start < 0.0 else 0.0)


@inner
def neglected(variance, ones, zeros, place, state):
    """Bound on the nodes that are left out, as a multiple of the denominator."""
    if state.least == 0.0:
        return 0.0
    period = state.period
    nodes = float(state.table.shape[0])
    fall = 8.0 * variance * nodes / (period * period)
    log = ones * state.one.log + zeros * state.zero.log + (state.bits - 1.0) * target(state) - state.tilt.log * place
    return 2.0 * state.bits * math.exp(log - fall * nodes) / (period * fall) * 4.0


@inner
def exact(ones, zeros, state):
    """The sum at the best threshold, for a given number of ones and zeros: (upper, lower, threshold).

    `upper` is at least H. `lower` is at most the Fourier sum at that threshold, aliases not yet taken off.
    The threshold is relative to the shifts. Which thresholds can be best: Darroch 1964, the mode of
    independent bits.
    """
    bits, tilt, table, waves = int(state.bits), state.tilt.log, state.table, state.waves
    one, zero = state.one, state.zero
    centre = ones * one.mean + zeros * zero.mean
    rounding = SLACK * U * (ones * abs(one.mean) + zeros * abs(zero.mean)) + 1e-12
    one_shift = 1.0 if one.start < 0.0 else 0.0
    zero_shift = 1.0 if zero.start < 0.0 else 0.0
    start = centre + (bits - 1) * min(one.mean + one_shift, zero.mean + zero_shift)
    stop = centre + (bits - 1) * max(one.mean + one_shift, zero.mean + zero_shift)
    shift = ones * one_shift + zeros * zero_shift
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
    base = (bits - 1.0) * target(state)
    base_size = SLACK * (4.0 * bits + (bits - 1.0) * (abs(one.log) + tilt))
    place_size = abs(first) + count
    nodes = table.shape[0]
    for index in range(nodes):
        theta = table[index, ANGLE]
        log = ones * waves[index, ONE].real + zeros * waves[index, ZERO].real + base - tilt * first
        turn = ones * waves[index, ONE].imag + zeros * waves[index, ZERO].imag - theta * first
        part = waves[index, FACTOR] * wave(log, turn)
        size = abs(part.real) + abs(part.imag)
        sizes += size
        errors += size * (
            base_size
            + SLACK * (ones * table[index, ONE_SIZE] + zeros * table[index, ZERO_SIZE])
            + 4.0 * place_size * (tilt + theta)
        )
        sums[0] += part.real
        for j in range(1, count):
            part *= waves[index, FORWARD]
            sums[j] += part.real
    scale = 2.0 / state.period * state.tilt.denominator
    variance = ones * one.variance + zeros * zero.variance
    error = scale * U * (errors + sizes * (nodes + 4.0 * count))
    error += state.tilt.denominator * neglected(variance, ones, zeros, first, state)
    # The growth itself is known to a few U: H changes by Q(threshold passed) for every unit of it.
    log = ones * one.log + zeros * zero.log + bits * target(state)
    log -= math.log1p(state.tilt.growth) + tilt * (first + 1.0)
    error += SLACK * U * state.tilt.growth * math.exp(min(0.0, log))
    upper = 0.0
    best = 0
    fall = 1.0
    top = 1.0 + state.tilt.rise
    for j in range(count):
        upper = max(upper, scale * sums[j] + fall * error)
        if sums[j] > sums[best]:
            best = j
        fall /= top
    lower = scale * sums[best] - error * top**-best
    upper = (upper + state.residue) * (1.0 + SLACK * U) + TINY
    return upper, lower + state.residue * (1.0 - SLACK * U), first + best


@inner
def aliases(ones, zeros, threshold, state):
    """What the period adds to the sum at most: counts one period or more beyond the threshold."""
    period, bits, tilt = state.period, state.bits, state.tilt.log
    one, zero = state.one, state.zero
    if period >= ones + zeros + bits + 1.0:
        return 0.0
    variance = ones * one.variance + zeros * zero.variance + bits
    mean = ones * one.mean + zeros * zero.mean
    far = period + threshold - mean - bits
    if not far > 0.0:
        return math.inf
    log = ones * one.log + zeros * zero.log - tilt * (threshold + 1.0)
    log += bits * target(state)
    fall = far * far / (2.0 * (variance + far / 3.0))
    above = math.exp(log - fall)
    mean = ones * one.start + zeros * zero.start
    if not fall > 4.0:
        return math.inf
    far = max(0.0, period - (threshold + 1.0 - mean))
    variance = ones * abs(one.start) * (1.0 - abs(one.start)) + zeros * abs(zero.start) * (1.0 - abs(zero.start)) + bits
    rate = tilt * period
    weight = rate * math.exp(-rate) / -math.expm1(-rate) if rate > 0.0 else 1.0
    fall = far * far / (2.0 * (variance + far / 3.0))
    below = (1.0 + state.tilt.growth) * weight * math.exp(-fall)
    if not fall > 4.0:
        below *= (ones + zeros + bits) / period
    # Weights |t|/N of counts t beyond N: Bernstein's tails fall by more than half from N to 2 N.
    return 8.0 * (above + below)


@inner
def envelope(ones, zeros, state):
    """At least the one-bit divergence for these others; a convex function of ones along ones + zeros fixed."""
    tilt, period, table, waves = state.tilt.log, state.period, state.table, state.waves
    nodes = table.shape[0]
    total = 0.0
    errors = 0.0
    mean = ones * state.one.mean + zeros * state.zero.mean
    for index in range(nodes):
        ratio = table[index, CLOSE]
        if ratio >= 0.0:
            one = waves[index, ONE].real - ratio * waves[index, ONE].imag
            zero = waves[index, ZERO].real - ratio * waves[index, ZERO].imag
            log = ones * one + zeros * zero
            more = 1.0 + ratio
        else:
            log = ones * waves[index, ONE].real + zeros * waves[index, ZERO].real - tilt * mean
            more = 1.0 + tilt
        size = table[index, ENVELOPE] * math.exp(log)
        total += size
        errors += size * more * (4.0 + ones * table[index, ONE_SIZE] + zeros * table[index, ZERO_SIZE])
    value = 2.0 / period * (total * (1.0 + 4.0 * U * nodes) + SLACK * U * errors)
    # Thresholds are at most 1 before the mean, hence a factor e^tilt; the bits of the target are others here.
    if state.least > 0.0:
        fall = 8.0 * state.least * nodes / (period * period)
        log = ones * state.one.log + zeros * state.zero.log - tilt * (mean - 1.0)
        value += 8.0 * math.exp(log - fall * nodes) / (period * fall)
    each = state.tilt.each
    value *= state.tilt.denominator * (state.tilt.growth / each if each > 0.0 else state.bits)
    return (value + state.residue) * (1.0 + SLACK * U) + TINY


@inner
def attained(users_ones, others, state):
    """A lower bound on the divergence for one dataset: that many ones among the others' values."""
    ones = users_ones * state.bits
    _, lower, threshold = exact(ones, others - ones, state)
    return max(0.0, lower - aliases(ones, others - ones, threshold, state))


@inner
def split(first, second, others, low, high):
    """The range of ones, cut where the variance has changed by SPREAD.

    first, second : variances of one bit drawn with `one`, and with `zero`.
    """
    pieces = np.empty(256)
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
    return pieces[: count + 2]


@inner
def alone(expm1_eps, sent, low, high):
    """(growth, H of a target among nobody, rounded up, the range of ones cut); H is -1 where nothing is left.

    Next to the largest loss, up to rounding, the growth is a little smaller: H does not rise.
    """
    bits, one, rest_one, zero, rest_zero, gap, others = sent
    _, each, denominator, rise, _ = tilt_of(expm1_eps, sent)
    if denominator < -SLACK * U * gap:
        return expm1_eps, -1.0, np.empty(0)
    if denominator < TOO_NEAR * gap:
        expm1_eps = math.expm1(bits * math.log1p((1.0 - 2.0 * TOO_NEAR) * gap / zero))
        _, each, denominator, rise, _ = tilt_of(expm1_eps, sent)
    local = denominator * (expm1_eps / each if each > 0.0 else bits)
    local = min(1.0, local + SLACK * U * gap * bits * (1.0 + expm1_eps))
    spread = tilted(one, rest_one, rise).variance, tilted(zero, rest_zero, rise).variance
    return expm1_eps, local, split(spread[0], spread[1], others, low, high)


@inner
def one_epsilon(expm1_eps, sent, low, high, rtol, most):
    """(lower, upper): certified bounds on the supremum over low <= ones <= high, by `most` sums or little more."""
    bits, others, asked = sent.bits, sent.others, expm1_eps
    expm1_eps, local, pieces = alone(asked, sent, low, high)
    if local < 0.0:
        return 0.0, 0.0
    count = pieces.shape[0] - 1
    state = set_up(expm1_eps, sent, pieces[0], pieces[1])
    best = 0.0
    for piece in range(count):
        left, right = pieces[piece], pieces[piece + 1]
        if piece > 0:
            state = set_up(expm1_eps, sent, left, right)
        best = max(best, attained(math.ceil(left / bits), others, state))
        best = max(best, attained(math.floor(right / bits), others, state))
    upper = 0.0
    work = 2 * count
    stack = np.empty((128, 4))
    more = bits - 1.0
    for piece in range(count):
        depth = 1
        left, right = pieces[piece], pieces[piece + 1]
        if count > 1:
            state = set_up(expm1_eps, sent, left, right)
        stack[0, 0], stack[0, 1] = left, right
        stack[0, 2] = envelope(left, others - left + more, state)
        stack[0, 3] = envelope(right + more, others - right, state)
        work += 2
        while depth > 0:
            depth -= 1
            near, far, ahead, behind = stack[depth]
            zeros = others - far
            # All of these others kept: the envelope is convex, so its ends bound it.
            value = min(local, max(ahead, behind))
            variance = near * state.one.variance + zeros * state.zero.variance
            # Of how many deviations the threshold is away the square is delta's relative error over epsilon's.
            enough = max(best * (1.0 + rtol * (1.0 + state.tilt.log**2 * variance)), 1e-290)
            if value > enough and (state.least == 0.0 or variance >= state.least):
                # Those between left out.
                value = min(value, exact(near, zeros, state)[0])
                work += 1
            if not (value > enough and near < far and work < most):
                upper = max(upper, value)
                continue
            middle = math.floor(0.5 * (near + far))
            # Both halves have the middle, but for the last two numbers, which part.
            start = far if far - near == 1.0 else middle
            inner = envelope(middle + more, others - middle, state)
            outer = inner if start == middle else behind
            if bits > 1.0:
                outer = envelope(start, others - start + more, state)
            work += 1
            users = math.floor(middle / bits)
            if users * bits >= low and inner > best:
                best = max(best, attained(users, others, state))
                work += 1
            stack[depth, 0], stack[depth, 1] = start, far
            stack[depth, 2], stack[depth, 3] = outer, behind
            stack[depth + 1, 0], stack[depth + 1, 1] = near, middle
            stack[depth + 1, 2], stack[depth + 1, 3] = ahead, inner
            depth += 2
    return (min(best, local) if expm1_eps == asked else 0.0), min(upper, local)


@kernel("1p f f f f f f f f f f i o1p o1p", lambda *arguments: 2e-3, rows=True)
def all_expm1_epsilons(
    expm1_eps, bits, one, rest_one, zero, rest_zero, gap, others, low, high, rtol, most, lower, upper
):
    """Fill lower and upper."""
    sent = Sent(bits, one, rest_one, zero, rest_zero, gap, others)
    for i in range(expm1_eps.size):
        lower[i], upper[i] = one_epsilon(expm1_eps[i], sent, low, high, rtol, most)


@inner
def chord(expm1_eps, sent):
    """(left, right): H_s(ones) <= left + (right - left) ones/others for 0 <= ones <= others; growth >= 0.

    The envelope is convex in ones on every piece, so a line above it at all cuts is above it in between.
    """
    others, more = sent.others, sent.bits - 1.0
    expm1_eps, local, pieces = alone(expm1_eps, sent, 0.0, others)
    if local < 0.0 or others == 0.0:
        return max(local, 0.0), max(local, 0.0)
    count = pieces.shape[0] - 1
    height = np.zeros(count + 1)
    for piece in range(count):
        near, far = pieces[piece], pieces[piece + 1]
        state = set_up(expm1_eps, sent, near, far)
        ahead = envelope(near, others - near + more, state)
        behind = envelope(far + more, others - far, state)
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
    sent = Sent(bits, one, rest_one, zero, rest_zero, gap, others)
    for i in range(expm1_eps.size):
        left[i], right[i] = chord(expm1_eps[i], sent)
