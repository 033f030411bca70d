"""Compiled loops of the contour bound in `swap`. They take arrays and scalars and check nothing.

Notation, as in docs/swap.md: a *type* k is a law of L with masses weight[k, j] and values value[k, j]; at
v = u/(1-u) the masses are multiplied and the values divided by 1 - v excess[k, j], excess = V/W - 1.
M(z) = E exp(z L). The contour is z = (X(t) + i t)/sigma, X(t) = far + bend/(1 + t^2/width^2). ROUNDOFF = 2^-53.

Where arguments are rounded, M moves by at most |z| times a *slack*, which is added to |M|. For odd n the
analytic majorant (m |M|^(n-1) + |M|^(n+1)/m)/2, log m = home, takes the place of |M|^n throughout.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..numerics.compiled import kernel, unchecked
from ..numerics.sides import ROUNDOFF
from ..numerics.tuning import CONTOUR_WORK, CURVE

# Steering: what each is, says `numerics.tuning`.
FINE, STEPS, REACH, MANY, SMALL, PAIRS, LOBES, HEAVY = CONTOUR_WORK
WIDE, BOW, BOWED, FLAT, LOW, LOWEST, OF_CENTRE, OF_WINDOW = CURVE[:8]
BLUR_TWO, BLUR_MORE, BLUR_LIGHT, MOST_LIGHT, RULE, RULED = CURVE[8:]

LAST = 4.0  # nodes through all lobes end where the smoothing has fallen to exp(-LAST^2/2)
FAR_STEPS = 512  # nodes through all lobes, and bins of u, at most
NARROW = 0.2  # first bin of u, times n, where lobes matter: they move
LATER, CLOSE = 3.0, 0.7  # u, times n, from which on another contour is tried, and how near two of them are
NEGLIGIBLE = 1e-2  # of a sum, what its nodes may leave out before they go on through all lobes
PASSED = 0.02  # the weight, in such a sum, of what smaller u have added
NEAR, FAR = -2.0, -30.0  # logs of the sum's moment: it may be the better bound itself; lobes are not worth their time
PUSH, PUSHES = 1.04, 10  # ratio of places to the right of a saddle point that are looked at, and how many: width
SHELL, SHIFT = 1.25, 0.6  # of t, for laws without a heavy value: their ratio, and length in deviations, at most
POWER = 16  # the window is exp(-(t/window)^POWER); Re t^POWER < 0 on |Im t| = b needs |t| < TURN b
TURN = 10.21  # 1/sin(pi/32), rounded up
# Real arguments where log M is needed: 0, 1 the ends of the far line; 2, 3 and 4, 5 those of the strip.
POINTS = 6


class Contour(NamedTuple):
    """The contour, the trapezoidal rule on it, and what is known of it beforehand."""

    sigma: float
    bend: float
    width: float
    end: float  # the last node; they are equally far apart
    window: float
    smoothing: float  # standard deviation of the Gaussian smoothing, times 1/sigma
    line: float  # error of the rule, relative to the greatest |M M*|^(n/2) on the strip
    nodes: Any  # rows x, y, weight
    points: Any  # real arguments, see `POINTS`


class Power(NamedTuple):
    """How M enters: |M|^n e^(-pull x - level), or with `coins` its mean over who comes, each with `rate`."""

    n: float  # terms, or users who may come
    parity: bool  # whether the analytic majorant is needed
    coins: bool
    rate: float
    pull: float
    level: float
    light: bool  # whether no value of those who come has a mass of HEAVY at z = 0


class Laws(NamedTuple):
    """The types at one growth, and rows of room for laws: masses mass[r, j] of values moved[r, j].

    value_error : errors of values. relative : that of masses and of excess + 1. real : bounds on log M of a row at
    `POINTS`.
    """

    weight: Any
    excess: Any
    value: Any
    value_error: Any
    relative: float
    mass: Any
    moved: Any
    real: Any


@unchecked
def set_values(g, base, slope, line_error, laws):
    """The types' values at growth g, and their errors."""
    for k in range(base.shape[0]):
        for j in range(base.shape[1]):
            big = abs(base[k, j]) + g * slope[k, j]
            laws.value[k, j] = base[k, j] - g * slope[k, j]
            laws.value_error[k, j] = line_error[k, j, 0] + g * line_error[k, j, 1] + 4.0 * ROUNDOFF * big


@unchecked
def move(v, k, shift, row, laws):
    """Row `row` of the laws: type k at v, values shifted."""
    for j in range(laws.weight.shape[1]):
        beta = 1.0 - v * laws.excess[k, j]
        laws.mass[row, j] = laws.weight[k, j] * beta
        laws.moved[row, j] = laws.value[k, j] / beta + shift


@unchecked
def rise(x, row, mass, moved):
    """E exp(x L) - 1, in a sum that keeps its relative precision near x = 0."""
    total = 0.0
    for j in range(mass.shape[1]):
        total += mass[row, j] * math.expm1(x * moved[row, j])
    return total


@unchecked
def cumulants(x, row, mass, moved):
    """Mean, variance and third central moment of L under the law tilted by exp(x L)."""
    total = 0.0
    first = 0.0
    for j in range(mass.shape[1]):
        grown = mass[row, j] * math.exp(x * moved[row, j])
        total += grown
        first += grown * moved[row, j]
    first /= total
    second = 0.0
    third = 0.0
    for j in range(mass.shape[1]):
        grown = mass[row, j] * math.exp(x * moved[row, j]) / total
        off = moved[row, j] - first
        second += grown * off * off
        third += grown * off * off * off
    return first, second, third


@unchecked
def saddle(n, row, mass, moved, start):
    """About the minimiser x > 0 of n log M(x) - 2 log x, for a law with some positive value."""
    low = 0.0
    high = math.inf
    x = start
    for _ in range(200):
        first, second, _third = cumulants(x, row, mass, moved)
        gap = n * first - 2.0 / x
        step = gap / (n * second + 2.0 / (x * x))
        if gap > 0.0 or not abs(gap) < math.inf:
            high = x
        else:
            low = x
        if abs(step) < 1e-3 * x:
            break
        x -= step
        if not low < x < high:
            if high == math.inf:
                x = 4.0 * low
            elif low == 0.0:
                x = 0.25 * high
            else:
                x = math.sqrt(low * high)
    return x


@unchecked
def rounding_of_values(v, k, shift, low, high, laws):
    """value_error: every rounding error of M(z), low <= Re z <= high, is below |z| slack.

    The masses sum to 1 exactly, hence |dM| <= sum |dm| |e^(zl) - 1| + m |z| |dl| e^(xl).
    """
    total = 0.0
    atoms = laws.weight.shape[1]
    for j in range(atoms):
        beta = 1.0 - v * laws.excess[k, j]
        place = laws.value[k, j] / beta
        share = laws.relative * (1.0 + (1.0 + laws.excess[k, j]) * v / beta)
        share += ROUNDOFF * (atoms + 16.0)
        size = 3.0 * share * (abs(place) + abs(shift)) + laws.value_error[k, j] / beta
        grown = 1.0 + math.exp(low * (place + shift)) + math.exp(high * (place + shift))
        total += laws.weight[k, j] * beta * size * grown
    return 1.01 * total


@unchecked
def bowing(gap, before, after, k, weight, excess, value, low, high):
    """A bound on |M - its interpolation over a gap in v| / |z|^2, low <= Re z <= high, before <= v <= after.

    d^2 M/dv^2 = sum of weight (excess value z)^2 e^(z value/beta) / beta^3, beta = 1 - v excess.
    """
    total = 0.0
    for j in range(weight.shape[1]):
        one = 1.0 - before * excess[k, j]
        two = 1.0 - after * excess[k, j]
        a = value[k, j] / one
        b = value[k, j] / two
        exponent = max(max(low * a, low * b), max(high * a, high * b))
        size = (excess[k, j] * value[k, j]) ** 2 * math.exp(exponent)
        total += weight[k, j] * size / min(one, two) ** 3
    return 0.126 * gap * gap * total


@unchecked
def series(n, expansion_point, bend, radius, row, mass, moved, term, size):
    """Fill term[p] with E L^p e^(heart L)/p!, p > 0, and size[p] with the sum of moduli; term[0] is M(heart) - 1.

    Returns (order, longest): so many terms are enough at |z - heart| <= radius, |Re z - heart| <= bend, or there are
    no more; longest is the largest |L|.
    """
    atoms = mass.shape[1]
    part = np.zeros(atoms)
    term[0] = 0.0
    longest = 0.0
    for j in range(atoms):
        if mass[row, j] > 0.0:
            grown = math.expm1(expansion_point * moved[row, j])
            term[0] += mass[row, j] * grown
            part[j] = mass[row, j] * (1.0 + grown)
            longest = max(longest, abs(moved[row, j]))
    rest = n * math.exp(longest * bend)
    order = 0
    while order < MANY and not (order > 1 and rest * size[order] < SMALL):
        order += 1
        rest *= radius
        total = 0.0
        moduli = 0.0
        for j in range(atoms):
            part[j] *= moved[row, j] / order
            total += part[j]
            moduli += abs(part[j])
        term[order] = total
        size[order] = moduli
    return order, longest


@unchecked
def expanded(n, ahead, y, order, longest, atoms, term, size):
    """(re, im, doubt): M(heart + ahead + i y) - 1 by Taylor's series, and its error, inf where that is large."""
    far = math.sqrt(ahead * ahead + y * y)
    rounding_of_values = size[order] * far
    rounded = 0.0
    re = term[order - 1]
    im = 0.0
    for p in range(order - 2, -1, -1):
        old = re
        re = ahead * old - y * im + term[p]
        im = ahead * im + y * old
        rounding_of_values *= far
        rounded = (rounded + size[p + 1]) * far
    rounding_of_values *= math.exp(longest * abs(ahead))
    rounding_of_values += ROUNDOFF * (atoms + 8.0 * MANY) * rounded
    return re, im, rounding_of_values if n * rounding_of_values < 10.0 * SMALL else math.inf


@unchecked
def moment(x, y, row, mass, moved):
    """M(x + i y) - 1, in a sum that keeps its relative precision near 0."""
    re = 0.0
    im = 0.0
    for j in range(mass.shape[1]):
        if mass[row, j] > 0.0:
            grown = math.expm1(x * moved[row, j])
            angle = 0.5 * y * moved[row, j]
            sine = math.sin(angle)
            part = 2.0 * mass[row, j] * (1.0 + grown) * sine
            re += mass[row, j] * grown - part * sine
            im += part * math.cos(angle)
    return re, im


@unchecked
def log_modulus(re, im, extra):
    """log(|M| + extra) for M = 1 + re + i im, rounded up."""
    over = re * (2.0 + re) + im * im
    if over > -0.75:
        return 0.5 * math.log1p(over) + extra / math.sqrt(1.0 + over)
    return math.log(math.sqrt(max(1.0 + over, 0.0) + 64.0 * ROUNDOFF) + extra)


@unchecked
def real_logs(n, row, value_error, points, centre, order, longest, term, size, laws):
    """Row `row` of laws.real; with order > 0 by Taylor's series at `centre` where that is good."""
    atoms = laws.mass.shape[1]
    for q in range(POINTS):
        grown = math.inf
        if order > 0:
            grown, _, mass_error = expanded(n, points[q] - centre, 0.0, order, longest, atoms, term, size)
            grown += mass_error
        if not grown < math.inf:
            grown = rise(points[q], row, laws.mass, laws.moved)
        grown += value_error * abs(points[q])
        laws.real[row, q] = -math.inf
        if grown > -1.0:
            log = math.log1p(grown)
            laws.real[row, q] = log + 4.0 * ROUNDOFF * abs(log)


@unchecked
def coin_power(power, re, im, extra):
    """(log, factor) of a majorant of |M|^n averaged over who comes by coins.

    M = 1 + re + i im, extra its error. With h = |1 - r + r M| and theta = arg M it is, of N users,
    (N h^(N-1)/(N-1) + N h^(N+1)/(N+1))/(2 cos theta); docs/swap.md, "Users who take part independently".
    """
    users, rate = power.n, power.rate
    lift = rate * re
    over = max(lift * (2.0 + lift) + (rate * im) ** 2, -0.75)  # the majorant increases with h
    h = math.sqrt(1.0 + over)
    log = 0.5 * math.log1p(over) + rate * extra / h
    size = math.sqrt((1.0 + re) ** 2 + im * im) + extra
    ahead = 1.0 + re - extra
    if ahead > 0.5 * size:
        odd = users * (0.5 / (users - 1.0) / h + 0.5 / (users + 1.0) * h)
        return users * log, odd * size / ahead
    log = max(log, math.log(max(rate * size, 0.5)))
    return users * log, 2.5 * users


@unchecked
def real_power(power, one, two, log_modulus_at_saddle):
    """log of the majorant, from log M at two real points: at their mean, that is, or with coins for the mean of M."""
    if power.coins:
        log, factor = coin_power(power, 0.5 * (math.expm1(one) + math.expm1(two)), 0.0, 0.0)
        return log + math.log(factor)
    log = 0.5 * (one + two)
    return power.n * log + (math.log(math.cosh(log - log_modulus_at_saddle)) if power.parity else 0.0)


@unchecked
def modulus_sum(power, path, order, longest, row, mass, moved, value_error, bow, log_modulus_at_saddle, term, size):
    """Sum of node |M|^n e^(-level), |M| enlarged by slack |z| + bow |z|^2.

    With order > 0 by Taylor's series at the first node, with its remainder, wherever that is small.
    """
    total, nodes = 0.0, path.nodes
    for i in range(nodes.shape[1]):
        x = nodes[0, i]
        y = nodes[1, i]
        square = x * x + y * y
        mass_error = math.inf
        if order > 0:
            re, im, mass_error = expanded(power.n, x - nodes[0, 0], y, order, longest, mass.shape[1], term, size)
        if not mass_error < math.inf:
            mass_error = 0.0
            re, im = moment(x, y, row, mass, moved)
        extra = value_error * math.sqrt(square) + bow * square + mass_error
        factor = 1.0
        if power.coins:
            log, factor = coin_power(power, re, im, extra)
        else:
            log = log_modulus(re, im, extra)
            if power.parity:
                factor = math.cosh(log - log_modulus_at_saddle)
            log *= power.n
        log -= power.pull * x + power.level
        if log > 700.0:
            return math.inf
        total += nodes[2, i] * factor * math.exp(log)
    return total


@unchecked
def lobes(nu, eta, lowest, end, smoothing, damp, more, drift, quick):
    """Bound on the integral of D(t) exp(-2 nu sin^2(t eta) - (blur t)^2/2)/t^2 over all lobes m > 0.

    They are |t - m pi/eta| <= end; any eta from `lowest` up to the one given. With d_r between drift[r, 0]
    and drift[r, 1], -log D(t) = damp max_(r=0,1) sin^2(t d_r) + more sin^2(t d_2). Proof: docs/swap.md.
    quick: D = 1, and the first lobe's size for all.
    """
    bell = math.sqrt(0.5 * math.pi / nu)
    rest = 1.37 * math.exp(-1.2 * nu)
    plain = min(math.pi, bell * (1.0 + 0.25 / nu) + rest)
    square = min(0.5 * math.pi, bell * (0.25 + 0.1875 / nu) / nu + rest)
    total = 0.0
    size = 0.0
    for m in range(1, LOBES + 2):
        ratio = (end * eta / (m * math.pi)) ** 2
        size = ((1.0 + ratio) / (1.0 - ratio) ** 2 - 1.0) / ratio * square / (4.0 * m * m)
        size = (plain + size) * math.exp(-0.5 * (smoothing * (m * math.pi / eta - end)) ** 2)
        if quick:
            return size * eta / 6.0
        if m > LOBES:
            break
        fall = 0.0
        for r in range(3):
            rate = more if r == 2 else damp
            if rate > 0.0:
                start = drift[r, 0] * (m * math.pi / eta - end)
                stop = drift[r, 1] * (m * math.pi / lowest + end)
                if math.floor(start / math.pi) == math.floor(stop / math.pi):
                    sine = min(abs(math.sin(start)), abs(math.sin(stop)))
                    part = rate * sine * sine
                    fall = fall + part if r == 2 else max(fall, part)
        total += size * math.exp(-fall) / (m * m)
    return (total + size / (LOBES + 0.5)) * eta / (math.pi * math.pi)


@unchecked
def span(below, above, half, row, rate):
    """Row `row` of rate: bounds on half |gap|, for gaps between `below` and `above`."""
    rate[row, 0] = 0.0
    if below > 0.0 or above < 0.0:
        rate[row, 0] = half * min(abs(below), abs(above)) * (1.0 - 1e-9)
    rate[row, 1] = half * max(abs(below), abs(above)) * (1.0 + 1e-9)


@unchecked
def far_part(n, path, row, other, mass, moved, low, high, top, enough):
    """Half of all |t| > end, relative to M^n: nodes not evaluated, and the integral outside of the window.

    For every law between the rows `row` and `other` and low <= Re z <= high; top: bound on log M there.
    |M|^n <= M(x)^n prod_j exp(-2 n p_hub p_j sin^2(y gap_j/2)), p the tilted masses; the hub is the likeliest
    value with all close to it, j runs over values far enough from it. A quarter of the exponent may go
    into D, small where two pairs are out of step. That takes time; a bound below `enough` is found without.
    """
    atoms = mass.shape[1]
    least = np.empty(atoms)
    inner = np.empty(atoms)
    outer = np.empty(atoms)
    drift = np.zeros((3, 2))
    heaviest_atom = 0
    for j in range(atoms):
        inner[j] = min(moved[row, j], moved[other, j])
        outer[j] = max(moved[row, j], moved[other, j])
        exponent = min(min(low * inner[j], low * outer[j]), min(high * inner[j], high * outer[j]))
        least[j] = min(mass[row, j], mass[other, j]) * math.exp(exponent - top) * (1.0 - 1e-9)
        if least[j] > least[heaviest_atom]:
            heaviest_atom = j
    total = 0.0
    square = 0.0
    centre = moved[row, heaviest_atom]
    for j in range(atoms):
        total += least[j]
        square += least[j] * (moved[row, j] - centre) ** 2
    near = 0.02 * math.sqrt(square / total)
    apart = 0.5 * math.sqrt(square / total)
    bottom = inner[heaviest_atom]
    peak = outer[heaviest_atom]
    likely = 0.0
    total = 0.0
    one = -1
    two = -1
    small = -1  # the likeliest value left out
    strength = np.zeros(atoms)
    for j in range(atoms):
        gap = abs(moved[row, j] - centre)
        if gap <= near:
            likely += least[j]
            bottom = min(bottom, inner[j])
            peak = max(peak, outer[j])
        elif gap >= apart:
            strength[j] = least[j] * gap * gap
        elif least[j] > 0.0 and (small < 0 or least[j] > least[small]):
            small = j
    # The pairs that matter most, each with the range of its rate eta; the others are left out.
    half = 0.5 / path.sigma
    share = np.empty(PAIRS)
    rate = np.zeros((PAIRS, 2))
    count = 0
    while count < PAIRS:
        j = 0
        for i in range(1, atoms):
            if strength[i] > strength[j]:
                j = i
        if not strength[j] > 0.0:
            break
        strength[j] = 0.0
        share[count] = least[j]
        span(inner[j] - peak, outer[j] - bottom, half, count, rate)
        count += 1
        total += least[j]
        if one < 0 or least[j] > least[one]:
            two = one
            one = j
        elif two < 0 or least[j] > least[two]:
            two = j
    nu = n * likely * total
    plainly = 2.0 / path.end * math.exp(-0.5 * (path.smoothing * path.end) ** 2)
    if not nu > 0.25:
        return plainly
    damp = 0.0
    if two >= 0:
        damp = 0.5 * n * likely * least[one] * least[two] / (least[one] + least[two])
        below = inner[one] + inner[two] - 2.0 * peak
        span(below, outer[one] + outer[two] - 2.0 * bottom, half, 0, drift)
        span(inner[one] - outer[two], outer[one] - inner[two], half, 1, drift)
    more = 0.0
    if small >= 0:
        more = 2.0 * n * likely * least[small]
        span(inner[small] - peak, outer[small] - bottom, half, 2, drift)
    for quick in (True, False):
        plain = 0.0
        damped = 0.0
        for pair in range(count):
            lowest = rate[pair, 0]
            eta = rate[pair, 1]
            first = plainly
            second = first
            if path.end * eta < 0.5 * math.pi and lowest > 0.0:
                sine = math.sin(path.end * lowest)
                edge = math.pi / eta - path.end  # from here on nodes may be near a lobe again
                cut = 0.0
                if edge < 3.0 * path.window:
                    cut = math.exp(-((edge / path.window) ** POWER))
                    cut *= (1.0 + path.end / (path.nodes.shape[1] - 1) / edge) / edge
                bound = 2.0 * math.exp(-2.0 * nu * sine * sine) / path.end + cut
                bound += lobes(nu, eta, lowest, path.end, path.smoothing, 0.0, more, drift, quick)
                first = min(first, bound)
                if damp > 0.0 and not quick:
                    bound = 2.0 * math.exp(-1.5 * nu * sine * sine) / path.end + cut
                    bound += lobes(0.75 * nu, eta, lowest, path.end, path.smoothing, damp, more, drift, quick)
                    second = min(second, bound)
            plain += share[pair] / total * math.log(first)
            damped += share[pair] / total * math.log(second)
        if damp > 0.0 and not quick and damped < plain:
            plain = damped
        if math.exp(plain) < enough or not quick:
            break
    return math.exp(plain) * (1.0 + 1e-9)


@unchecked
def spread_part(n, path, row, other, mass, moved, low, high, top, enough):
    """As `far_part`, for laws of many values and no heavy one; the smoothing bounds what is farthest out.

    For any weights w_i below the tilted masses, |M|^2 <= M(x)^2 (1 - fall), fall = sum_ij w_i w_j (1 - cos(y d_ij)),
    whose second derivative is at most twice the weights' variance. Values in an interval move the root of the sum of
    cosines by at most y times their mean radius.
    """
    atoms = mass.shape[1]
    weight, off = np.empty(atoms), np.empty(atoms)
    total, mean, blunt = 0.0, 0.0, 0.0
    for j in range(atoms):
        inner = min(moved[row, j], moved[other, j])
        outer = max(moved[row, j], moved[other, j])
        exponent = min(min(low * inner, low * outer), min(high * inner, high * outer))
        weight[j] = min(mass[row, j], mass[other, j]) * math.exp(exponent - top) * (1.0 - 1e-9)
        off[j] = 0.5 * (inner + outer)
        total += weight[j]
        mean += weight[j] * off[j]
        blunt += weight[j] * 0.5 * (outer - inner) * (1.0 + 1e-9)
    if not total > 0.0:
        return 2.0 / path.end
    mean /= total
    spread = 0.0
    for j in range(atoms):
        off[j] -= mean
        spread += weight[j] * off[j] * off[j]
    spread *= total
    bound = 0.0
    start = path.end
    while True:  # shells of t
        smooth = 0.5 * (path.smoothing * start) ** 2
        rest = 2.0 / start * math.exp(-smooth)
        if smooth > 60.0 or rest < 0.1 * enough:
            return bound + rest
        stop = min(SHELL * start, start + SHIFT * path.sigma * total / math.sqrt(spread))
        half = 0.5 * (stop - start) / path.sigma
        y = start / path.sigma + half
        versine, sine, turn, lean = 0.0, 0.0, 0.0, 0.0
        for j in range(atoms):
            one = math.sin(0.5 * y * off[j])
            two = math.sin(y * off[j])
            versine += 2.0 * weight[j] * one * one
            sine += weight[j] * two
            turn += weight[j] * off[j] * two
            lean += weight[j] * off[j] * (1.0 - 2.0 * one * one)
        fall = versine * (2.0 * total - versine) - sine * sine  # total^2 less the square of the sum of e^(iyd)
        slope = 2.0 * abs((total - versine) * turn - sine * lean)
        fall -= half * (slope + half * spread) + 1e-11 * (versine + abs(sine))
        root = math.sqrt(max(total * total - fall, 0.0)) + blunt * (y + half)
        fall = max(min(fall, (total - root) * (total + root) - 1e-15), 0.0) if blunt > 0.0 else max(fall, 0.0)
        # Nodes and integral: the nodes of a shell are no more than the integral over it and one step.
        share = 1.0 / start - 1.0 / stop
        share = 2.0 * share + path.end / (path.nodes.shape[1] - 1) / (start * start)
        bound += share * math.exp(-0.5 * n * fall - smooth)
        start = stop


@unchecked
def contour(n, place, row, period, light, lobes_too, mass, moved):
    """The contour for the law in `row`, saddle point `place`.

    light : as in `Power`. lobes_too : nodes go on through all return lobes that the smoothing
    leaves, on the same contour.

    Any choice is valid; line = inf: none was found, no nodes. The numbers make the loss 1e-4 or less for a
    Gaussian sum up to five deviations (measured); skewness bends the contour a little more or less.
    """
    _first, second, third = cumulants(place, row, mass, moved)
    sigma = max(math.sqrt(n * second), 1.3 / place)
    expansion_point = place * sigma
    square = expansion_point * expansion_point
    stiff = 1.0 + 2.0 / square
    skew = min(max(n * third / sigma**3 / (6.0 * stiff), -0.015), 0.015)
    width = WIDE * (1.0 + expansion_point)
    bend = 2.0 / expansion_point * (BOW + BOWED / expansion_point) - skew * width * width
    centre = expansion_point * (1.0 - 1.0 / (FLAT * square * square + LOW * square + LOWEST))
    centre += 2.0 * skew / stiff
    far = centre - bend
    period *= sigma
    shown = 0
    for j in range(mass.shape[1]):
        shown += mass[row, j] > 0.0
    smoothing = (BLUR_TWO if shown == 2 else BLUR_MORE) / period  # two values are a lattice, with lobes for ever
    if light:  # nothing but the smoothing ends the far part
        smoothing = max(smoothing, min(BLUR_LIGHT / math.sqrt(n), MOST_LIGHT))
    reach, window = REACH, max(1.5 * REACH, min(2.0 * REACH, (period - REACH) / 1.22))
    if lobes_too:
        reach = max(REACH, LAST / smoothing)
        window = 1.7 * reach
    # The strip |Im t| <= strip, see docs/swap.md, "The trapezoidal rule".
    strip = min(OF_CENTRE * min(centre, width), OF_WINDOW * window)
    waist = 0.5 * centre
    bump = 1.0
    closest = -1.0
    for _ in range(20):
        bump = 1.0 / (1.0 - (strip / width) ** 2)
        if bend > 0.0:
            closest = far + bend / (1.0 + (waist**2 + 3.0 * strip**2) / width**2) - strip
        else:
            closest = far + bend * bump - strip
        if closest > 0.1 * centre:
            break
        strip *= 0.9
    slide = 1.0 - 2.0 * abs(bend) * strip * (bump / width) ** 2
    step = 2.0 * math.pi * strip / (RULE + RULED * strip * strip)
    count = min(FAR_STEPS if lobes_too else STEPS, math.ceil(reach / step) + 1)
    end = (count - 1) * step
    line = math.inf
    tilt = 2.83 * abs(bend) * bump * bump / width
    hard = abs(far) + abs(bend) * bump
    raised = (TURN * strip / window) ** POWER + 0.5 * smoothing**2 * (hard**2 + strip**2)
    if closest > 0.05 * centre and slide > 0.1 and sigma < math.inf and raised < 700.0:
        line = 2.0 * waist / (closest * (closest + 2.0 * strip)) + 2.0 / (slide**2 * waist)
        line *= 1.0 + 0.5 * tilt * tilt
        line *= math.exp(raised)
        line *= 1.01 / math.expm1(min(2.0 * math.pi * strip / step, 700.0))
    count = count if line < math.inf else 0
    nodes, points = np.empty((3, count)), np.empty(POINTS)
    for j in range(count):
        t = j * step
        fall = 1.0 / (1.0 + (t / width) ** 2)
        real = far + bend * fall
        lean = 2.0 * bend * t * fall * fall / (width * width)
        node = step * (1.0 + 0.5 * lean * lean) / (real * real + t * t)
        node *= math.exp(0.5 * smoothing**2 * (real * real - t * t) - (t / window) ** POWER)
        nodes[0, j] = real / sigma
        nodes[1, j] = t / sigma
        nodes[2, j] = node if j > 0 else 0.5 * node
    points[0] = far / sigma
    points[1] = (far + bend / (1.0 + (end / width) ** 2)) / sigma
    points[2] = (far - strip) / sigma
    points[3] = (far + strip) / sigma
    points[4] = (far + bend * bump - strip) / sigma
    points[5] = (far + bend * bump + strip) / sigma
    return Contour(sigma, bend, width, end, window, smoothing, line, nodes, points)


@unchecked
def fewest(power, row, low, high, laws):
    """How many users count for the far part of a law and real parts from `low` to `high`; docs/swap.md of coins."""
    if not power.coins:
        return power.n - 1.0 if power.parity else power.n
    mean = 0.0
    for j in range(laws.weight.shape[1]):
        mean += laws.mass[row, j] * laws.moved[row, j]
    # M(x) >= e^(x E L), 1 where L is centred; less by that where it is not quite.
    return (power.n - 2.0) * power.rate * min(1.0, math.exp(min(low * mean, high * mean)))


@unchecked
def remainder(power, path, row, other, log_modulus_at_saddle, enough, laws):
    """What the evaluated nodes leave out, relative to e^level, for every law between two rows.

    laws.real: bounds on log M at the path's points. M is convex in v for real arguments, so its ends bound it. No
    better bound than `enough` is looked for.
    """
    real, points = laws.real, path.points
    top = -math.inf
    outer = -math.inf
    for q in range(2):
        log = max(real[row, q], real[other, q])
        top = max(top, log)
        outer = max(outer, real_power(power, log, log, log_modulus_at_saddle) - power.pull * points[q])
    peak = max(abs(points[0]), abs(points[1])) * path.sigma
    outer += 0.5 * (path.smoothing * peak) ** 2 - power.level
    strip = -math.inf
    for q in range(2, POINTS, 2):
        one = max(real[row, q], real[other, q])
        two = max(real[row, q + 1], real[other, q + 1])
        log = real_power(power, one, two, log_modulus_at_saddle)
        strip = max(strip, log - 0.5 * power.pull * (points[q] + points[q + 1]) - power.level)
    if not (outer < 600.0 and strip < 600.0):
        return math.inf
    low = min(points[0], points[1])
    high = max(points[0], points[1])
    enough *= math.exp(min(-outer, 700.0))
    rest = fewest(power, row, low, high, laws)
    mass, moved = laws.mass, laws.moved
    if power.light:
        part = spread_part(rest, path, row, other, mass, moved, low, high, top, enough)
    else:
        part = far_part(rest, path, row, other, mass, moved, low, high, top, enough)
    part *= 1.0 + 0.2111 * (path.bend / path.width) ** 2
    return math.exp(outer) * part + math.exp(strip) * path.line


@unchecked
def bins_of_u(n, wide, last, full, late, edges):
    """Fill edges[0..bins], from 0 to `last` < full, `late` among them; wider where few u are."""
    bins = 0
    edges[0] = 0.0
    while edges[bins] < last and bins < FAR_STEPS:
        u = edges[bins]
        stride = min(wide * math.exp(min(0.4 * n * u, 700.0)) / n, 0.1 * (full - u))
        u = last if u + stride > last - 0.4 * stride else u + stride
        if edges[bins] < late < u:
            u = late
        bins += 1
        edges[bins] = u
    return bins


@unchecked
def hosted(x, y, g, uncovered_user):
    """|E exp(zL)| of the guest at z = x + i y, rounded up; 1 without one."""
    re, im, size = 1.0, 0.0, 0.0
    for j in range(uncovered_user.shape[1]):
        value = uncovered_user[1, j] - g * uncovered_user[2, j]
        grown = math.exp(x * value)
        re += uncovered_user[0, j] * (grown * math.cos(y * value) - 1.0)
        im += uncovered_user[0, j] * grown * math.sin(y * value)
        size += uncovered_user[0, j] * (grown + 1.0)
    return math.sqrt(re * re + im * im) + 1e-9 * size


@unchecked
def jumped(x, middle, jumps):
    """E exp(x (T - middle)) of the jumps' total T; convex in x."""
    total = 0.0
    for j in range(jumps.shape[1]):
        total += jumps[0, j] * math.exp(x * (jumps[1, j] - middle))
    return total


@unchecked
def weigh(path, place, g, uncovered_user, middle, jumps):
    """The guest and the jumps in the nodes' weights; their largest factor anywhere near the contour, which is left.

    With m = |M| of the guest at the first node, (m + |M|^2/m)/2 is above |M| and analytic.
    """
    nodes = path.nodes
    low, high, first = place, place, place
    if nodes.shape[1] > 0:
        low, high, _, _ = extent(path)
        low, high, first = min(low, place), max(high, place), nodes[0, 0]
    home = hosted(first, 0.0, g, uncovered_user)
    guest = max(hosted(low, 0.0, g, uncovered_user), hosted(high, 0.0, g, uncovered_user))
    most = 0.5 * (home + guest * guest / home) * max(jumped(low, middle, jumps), jumped(high, middle, jumps))
    for i in range(nodes.shape[1]):
        guest = hosted(nodes[0, i], nodes[1, i], g, uncovered_user)
        nodes[2, i] *= 0.5 * (home + guest * guest / home) * jumped(nodes[0, i], middle, jumps) / most
    return most * (1.0 + 1e-12)


@unchecked
def highest(row, mass, moved):
    """The largest value of a law."""
    found = -math.inf
    for j in range(mass.shape[1]):
        if mass[row, j] > 0.0:
            found = max(found, moved[row, j])
    return found


@unchecked
def worst_saddle(n, types, best, place, mass, moved):
    """(place, type): the saddle point of the first `types` that is the worst at its own; from `place` of `best`.

    Only a law with some positive value has one.
    """
    for _ in range(3):
        if not highest(best, mass, moved) > 0.0:
            break
        place = saddle(n, best, mass, moved, place)
        now = best
        for k in range(types):
            if rise(place, k, mass, moved) > rise(place, now, mass, moved) and highest(k, mass, moved) > 0.0:
                now = k
        if now == best:
            break
        best = now
    return place, best


@unchecked
def balanced(n, types, place, crossing, mass, moved):
    """The place, `place` or right of it, from which on the largest integral of all types is about the least.

    crossing : where the contour crosses the real line, over the place. Each type is taken for normal: M(x)^n e^(y^2)
    erfc(y)/(2x), y^2 = n x^2 variance/2. So a type with far less variance has nearly M(x)^n/(2x), much at small x.
    """
    least = math.inf
    for _ in range(PUSHES):
        x, largest = crossing * place, -math.inf
        for k in range(types):
            y = x * math.sqrt(0.5 * n * cumulants(x, k, mass, moved)[1])
            width = math.exp(y * y) * math.erfc(y) if y < 5.0 else 0.56 / y
            largest = max(largest, n * math.log1p(rise(x, k, mass, moved)) + math.log(width / x))
        if largest >= least:
            return place / PUSH
        place, least = place * PUSH, largest
    return place / PUSH


@unchecked
def shortest_period(types, weight, value):
    """The shortest period of |M| that matters: over the largest distance from a type's heaviest value."""
    widest = 0.0
    for k in range(types):
        heaviest_atom = 0
        for j in range(weight.shape[1]):
            if weight[k, j] > weight[k, heaviest_atom]:
                heaviest_atom = j
        for j in range(weight.shape[1]):
            if weight[k, j] > 0.0:
                widest = max(widest, abs(value[k, j] - value[k, heaviest_atom]))
    return 2.0 * math.pi / widest


@unchecked
def scaled(answer, exponent, size):
    """A number not below answer e^exponent; size: magnitude of what the exponent was made of.

    The product is formed in logarithms: one factor alone may underflow, and the other be large. What is below all
    doubles is the smallest normal one.
    """
    if answer == 0.0:
        return 2.3e-308
    exponent += math.log(answer)
    if not exponent < 700.0:
        return math.inf
    error = ROUNDOFF * (16.0 * (abs(exponent) + size) + 4000.0)
    return max(math.exp(exponent) * (1.0 + error), 2.3e-308)


@unchecked
def guess(n, types, share, shift, elsewhere, laws):
    """(type, x): that of the largest variance of those with a positive value, and about its saddle point.

    1 - share of the mass is `elsewhere`.
    """
    best = 0
    start = 0.0
    spread = -1.0
    for k in range(types):
        first = (1.0 - share) * elsewhere
        square = (1.0 - share) * elsewhere * elsewhere
        for j in range(laws.weight.shape[1]):
            total = laws.value[k, j] + shift
            first += share * laws.weight[k, j] * total
            square += share * laws.weight[k, j] * total * total
        square -= first * first
        if square > spread and highest(k, laws.weight, laws.value) + shift > 0.0:
            spread = square
            best = k
            start = (math.sqrt(first * first + 8.0 * square / n) - first) / (2.0 * square)
    return best, start


@unchecked
def extent(path):
    """(low, high, bend, radius): all Re z, how far they are from the first node, and how far nodes and points are."""
    nodes, points = path.nodes, path.points
    low = min(min(points[2], points[4]), min(points[0], nodes[0, 0]))
    high = max(max(points[3], points[5]), max(points[0], nodes[0, 0]))
    bend = abs(points[0] - nodes[0, 0])
    radius = max(max(high - nodes[0, 0], nodes[0, 0] - low), bend + path.end / path.sigma)
    return low, high, bend, radius


@unchecked
def bin_width(power, early, best, place, fine, path, log_modulus_at_saddle, laws):
    """Width of the first bins of u, times n, by the curvature of M in v and its growth."""
    bow = 1e-300
    square = (place * path.sigma) ** 2
    for k in range(early):
        pull = 0.0
        curve = 0.0
        for j in range(laws.weight.shape[1]):
            max_u = place * laws.value[k, j]
            grown = laws.weight[k, j] * math.exp(max_u)
            pull += grown * laws.excess[k, j] * (max_u - 1.0)
            curve += grown * (laws.excess[k, j] * laws.value[k, j]) ** 2
        curve *= (square + 1.0) / (8.0 * power.n * path.sigma**2)
        weak = power.n * (log_modulus_at_saddle[k] - log_modulus_at_saddle[best])
        if pull > 0.0 or weak > -0.1:  # what falls with u and is below the best stays below
            curve += pull * pull / 12.0
        bow = max(bow, curve * math.exp(min(weak, 0.0)))
    return min(max(math.sqrt(fine / bow), 2.0 if power.light else 0.2), 3.0)


@unchecked
def lost(path):
    """The factor of a sum over nodes, for the window and the contour's scale."""
    return path.sigma * math.exp((path.end / path.window) ** POWER)


@unchecked
def type_sum(power, k, row, v, shift, bow, home, path, laws):
    """The sum over nodes of type k at v, whose law and real logarithms go into a row, as `integral` has it.

    bow : error of M over |z|^2, of its interpolation in v.
    """
    low, high, bend, radius = extent(path)
    start = path.nodes[0, 0]
    move(v, k, shift, row, laws)
    value_error = rounding_of_values(v, k, shift, low, high, laws)
    term, size = np.empty(MANY + 1), np.empty(MANY + 1)
    order, longest = 0, 0.0
    if laws.mass.shape[1] > MANY:
        order, longest = series(power.n, start, bend, radius, row, laws.mass, laws.moved, term, size)
    real_logs(power.n, row, value_error, path.points, start, order, longest, term, size, laws)
    return lost(path) * modulus_sum(
        power, path, order, longest, row, laws.mass, laws.moved, value_error, bow, home, term, size
    )


@unchecked
def joined(before, after, share, later):
    """What is convex over a bin, from its ends: the bin weighs `share`, and its later end at most `later` of it."""
    largest = max(before, after)
    return before * max(share - later, 0.0) + largest * later if largest < math.inf else math.inf


@unchecked
def integral(power, types, early, late, fine, edges, limit, shift, place, known, home, path, few, farther, laws):
    """(sum, left, reached, stuck): a bound relative to e^level/(pi n), the share of it that nodes leave out, the u up
    to which half of it is gathered, or, if stuck, the last one before what is trivial.

    Over u from edge to edge, and what is trivial, `limit`, beyond the last one or from a bin that gives more; with
    one edge at u = 0 alone. With place > 0 there is the bound E(sum L)_+ <= M(place)^n/(e place), too; unless `known`,
    only it. In a bin each is the greatest of all types, and then the smaller of the two counts; not for one type alone.

    1. At every edge of a bin, the sum over nodes for every type, with |M| enlarged for the interpolation in v.
    2. What the nodes leave out, for the whole bin; what lies far below the largest sum need not be known well.
    3. The bin: sums interpolated, with the weights' upper bounds.
    4. If `few` users count, and too much is left out, the greatest type by the farther nodes, until it stays so.
    """
    n, bins = power.n, edges.shape[0] - 1
    sums, far_sums, moments = np.full((2, types), math.inf), np.empty((2, types)), np.full((2, types), math.inf)
    bows, rests, totals = np.zeros((2, types)), np.zeros(types), np.zeros(types)
    gaining, waiting = np.full(types, few), np.full(types, few)
    loss, far_loss = lost(path), lost(farther)
    answer, left_out, reached = 0.0, 0.0, 0.0
    gathered = np.zeros(bins + 1)  # of the answer, up to each edge
    survive = 1.0  # (1-u)^n
    for e in range(bins + 1):
        u = edges[e]
        v = u / (1.0 - u)
        before = edges[max(e - 1, 0)] / (1.0 - edges[max(e - 1, 0)])
        after = edges[min(e + 1, bins)] / (1.0 - edges[min(e + 1, bins)])
        side = e % 2
        back = 1 - side if bins > 0 else side
        top, bottom = 0.0, 0.0
        for k in range(types):
            row = side * types + k
            move(v, k, shift, row, laws)
            far_sums[side, k] = -1.0  # not known yet
            if k >= early and not u >= late:
                continue
            if place > 0.0:
                value_error = rounding_of_values(v, k, shift, place, place, laws)
                grown = rise(place, row, laws.mass, laws.moved) + place * value_error
                exponent = n * math.log1p(grown) - power.pull * place - power.level  # in units of e^level/(pi n)
                size = abs(power.level) + abs(power.pull * place)
                moments[side, k] = scaled(math.pi / (math.e * place), exponent, size)
            if known:
                first, end = path.nodes[0, 0], path.points[0]
                bows[side, k] = bowing(
                    max(v - before, after - v), before, after, k, laws.weight, laws.excess, laws.value,
                    min(first, end), max(first, end),
                )  # fmt: skip
                sums[side, k] = type_sum(power, k, row, v, shift, bows[side, k], home[k], path, laws)
                top = max(top, sums[side, k] if k < early else 0.0)
                bottom = max(bottom, sums[back, k] if k < early else 0.0)
        if e == 0 < bins:
            continue
        share, later, survived = 1.0, 1.0, survive  # weights of the bin, and of its later edge
        if bins > 0:
            run = u - edges[e - 1]
            survived = math.exp(n * math.log1p(-u))
            share = survive - survived + 1e-12 * survive
            later = share
            if n * run > 1e-3:
                later = survive * (1.0 - edges[e - 1]) - survived * (1.0 - u)
                later = later / ((n + 1.0) * run) - survived + 1e-12 * survive
        part_moment, worst = 0.0, 0
        for k in range(types):
            totals[k], waiting[k] = 0.0, gaining[k]
            if k >= early and not edges[max(e - 1, 0)] >= late:
                continue
            if known:
                room = min(top - sums[side, k], bottom - sums[back, k])
                enough = max(fine * max(top, bottom), 0.5 * room) / loss
                row, other = side * types + k, back * types + k
                rests[k] = share * loss * remainder(power, path, row, other, home[k], enough, laws)
                totals[k] = joined(sums[back, k], sums[side, k], share, later) + rests[k]
                worst = k if totals[k] > totals[worst] else worst
            part_moment = max(part_moment, joined(moments[back, k], moments[side, k], share, later))
        while waiting[worst] and rests[worst] > NEGLIGIBLE * (totals[worst] + PASSED * answer):
            waiting[worst] = False
            row, other = (2 + side) * types + worst, (2 + back) * types + worst
            for at, r, x in ((back, other, before), (side, row, v)):
                if far_sums[at, worst] < 0.0:
                    bow = bows[at, worst]
                    far_sums[at, worst] = type_sum(power, worst, r, x, shift, bow, home[worst], farther, laws)
            one, two = far_sums[back, worst], far_sums[side, worst]
            enough = fine * max(one, two) / far_loss
            more = share * far_loss * remainder(power, farther, row, other, home[worst], enough, laws)
            farther_total = joined(one, two, share, later) + more
            gaining[worst] = farther_total < totals[worst]  # once they are no better, they are not where u is larger
            if gaining[worst]:
                rests[worst], totals[worst] = more, farther_total
            for k in range(types):
                worst = k if totals[k] > totals[worst] else worst
        part = totals[worst] if known else math.inf
        left = rests[worst] / part if 0.0 < part < math.inf else 1.0
        part_moment = part_moment if place > 0.0 else math.inf
        best = min(part, part_moment)
        if not best < share * limit:
            break
        answer += best
        left_out += left * best
        survive = survived if bins > 0 else 0.0
        reached, gathered[e] = u, answer
    if survive > 0.0:
        answer += survive * limit
    stuck = True
    for e in range(bins + 1):
        if gathered[e] > 0.5 * answer:
            reached, stuck = edges[e], False
            break
    return answer, left_out / answer if answer > 0.0 else 0.0, reached, stuck


@unchecked
def one_term(rate, shift, g, base, slope, uncovered_user, laws):
    """The greatest rate E (L + shift)_+ of all types and the guest."""
    greatest = 0.0
    for j in range(uncovered_user.shape[1]):
        total = uncovered_user[1, j] - g * uncovered_user[2, j]
        greatest += uncovered_user[0, j] * max(0.0, total) + 1e-12 * abs(total)
    atoms = laws.weight.shape[1]
    for k in range(laws.weight.shape[0]):
        hinge = 0.0
        for j in range(atoms):
            big = abs(base[k, j]) + g * slope[k, j] + abs(shift)
            total = laws.value[k, j] + shift + laws.value_error[k, j] + 4.0 * ROUNDOFF * big
            hinge += laws.weight[k, j] * max(0.0, total)
        greatest = max(greatest, hinge)
    return rate * greatest * (1.0 + laws.relative + ROUNDOFF * (atoms + 8.0))


@unchecked
def set_rows(rows, v, shift, coins, rate, g, laws):
    """The first types at v in as many rows of the laws; with `coins` next to absence, at -g with mass 1 - rate."""
    atoms = laws.weight.shape[1]
    for k in range(rows):
        move(v, k, shift, k, laws)
        if coins:
            for j in range(atoms):
                laws.mass[k, j] *= rate
            laws.mass[k, atoms] = 1.0 - rate
            laws.moved[k, atoms] = -g if rate < 1.0 else 0.0


@kernel("f 2 2 2 2 3 2 2 i f f b f 1p o1p", lambda n, weight, *rest: 6e-5 * weight.size, error_model="numpy")
def profile(
    n, weight, excess, base, slope, line_error, uncovered_user, jumps, early, max_u, rate, coins, relative, expm1_eps,
    out,
):  # fmt: skip
    """Fill out[i] with the upper bound of H_(1+growth[i]); see `swap`.

    weight, excess, base, slope: shape (types, atoms), values are base - growth slope; wobble[..., 0] and
    wobble[..., 1]: errors of base and slope. Types from `early` on only count for u > 1/(p s), p - 1 the
    greatest excess. max_u: largest u, 0 for a hidden cohort. rate : the cohort's share of the population. coins : all
    n are the population, and each of them comes with probability `rate` (the case that all come is the caller's).
    uncovered_user : (masses, base, slope) of one more user. jumps : (masses, totals) of what comes to the sum besides.

    For each growth: 1. the bound by one term; 2. the saddle point of the worst type; 3. the contour through it, if far
    out it may be better than the moment there; 4. the integral over it, and over u. If most of that comes from larger
    u, steps 2 to 4 again with a saddle point for other u, until half of it comes from smaller ones; the least counts.
    """
    types, atoms = weight.shape
    fine = FINE if atoms <= MANY else 20.0 * FINE  # wanted error of a bin of u, relative
    columns = atoms + 1 if coins else atoms
    laws = Laws(
        weight, excess, np.empty((types, atoms)), np.empty((types, atoms)), relative,
        np.zeros((4 * types, columns)), np.zeros((4 * types, columns)), np.zeros((4 * types, POINTS)),
    )  # fmt: skip
    edges = np.zeros(FAR_STEPS + 1)
    log_modulus_at_saddle = np.empty(types)
    come, share = (rate, 1.0) if coins else (1.0, rate)  # of users, and of the population
    most = 0.0
    for k in range(types):
        for j in range(atoms):
            if weight[k, j] > 0.0:
                most = max(most, excess[k, j])
    full = 1.0 / (1.0 + most)
    expected, jump = 0.0, 0.0  # mass of the totals of jumps, and their mean
    for j in range(jumps.shape[1]):
        expected += jumps[0, j]
        jump += jumps[0, j] * jumps[1, j]
    jump /= expected
    alone = uncovered_user.shape[1] > 0 or jumps.shape[1] > 1 or expected != 1.0 or jump != 0.0
    for i in range(expm1_eps.shape[0]):
        g = expm1_eps[i]
        sampled = -(1.0 - share) * g / share
        set_values(g, base, slope, line_error, laws)
        trivial = one_term(rate, sampled, g, base, slope, uncovered_user, laws)
        trivial = expected * (trivial + share * jump / n) * (1.0 + 16.0 * ROUNDOFF)
        out[i] = trivial
        best, start = guess(n, early, come, sampled + jump / (n * come), -g, laws)
        if not (trivial > 0.0 and 0.0 < start < math.inf and n >= 2.0):
            continue
        late = (1.0 - 1e-12) * full / (1.0 + g) if early < types and max_u > 0.0 else math.inf
        period = shortest_period(early, weight, laws.value)
        place, before, near, after = start, 0.0, 0.0, max_u  # the contour is the best for the u `near`
        while True:
            v = near / (1.0 - near)
            set_rows(early, v, sampled + jump / (n * come), coins, come, g, laws)
            place, best = worst_saddle(n, early, best, place, laws.mass, laws.moved)
            # From here on the moment may be the better bound itself; so it may be where no contour is found.
            grown = math.log1p(rise(place, best, laws.mass, laws.moved))
            at = place if not coins and n * grown < NEAR else 0.0
            heaviest = 0.0
            for j in range(atoms):
                heaviest = max(heaviest, weight[best, j])
            light = heaviest < HEAVY
            path = contour(n, place, best, period, light, False, laws.mass, laws.moved)
            if alone and path.line < math.inf:
                place = balanced(n, early, place, path.nodes[0, 0] / place, laws.mass, laws.moved)
                path = contour(n, place, best, period, light, False, laws.mass, laws.moved)
            known = path.line < math.inf
            first = path.nodes[0, 0] if known else place
            factor = weigh(path, place, g, uncovered_user, jump, jumps)
            pull, shift = -jump, sampled
            if coins:  # from here on L is centred, and the rest of the exponent is -g n z
                pull, shift = g * n - jump, g
            set_rows(types, v, shift, coins, 1.0, g, laws)
            for k in range(types):
                log_modulus_at_saddle[k] = math.log1p(rise(first, k, laws.mass, laws.moved))
            level = n * come * log_modulus_at_saddle[best] - pull * first
            power = Power(n, n % 2.0 == 1.0, coins, come, pull, level, light)
            log_scale = level + math.log(share / (math.pi * n))
            log_limit = math.log(trivial / factor) - log_scale if factor < math.inf else math.inf
            answer, left, reached, stuck = math.inf, 0.0, near, True
            if (known or at > 0.0) and level < 700.0 and log_limit < 700.0:
                limit = math.exp(log_limit)
                bins, horizon, wide = 0, 0.0, 1.0
                if max_u > 0.0:
                    square = (place * path.sigma) ** 2 if known else 1.0
                    horizon = log_limit + 0.5 * math.log(place * place * (square + 2.0))
                    horizon = max(horizon, 0.0) + (11.0 if atoms <= MANY else 8.5)
                    if known:
                        wide = bin_width(power, early, best, place, fine, path, log_modulus_at_saddle, laws)
                    bins = bins_of_u(n, wide, min(horizon / n, max_u), full, late, edges)
                answer, left, reached, stuck = integral(
                    power, types, early, late, fine, edges[: bins + 1], limit, shift, at, known, log_modulus_at_saddle,
                    path, False, path, laws,
                )  # fmt: skip
            if known and left > NEGLIGIBLE and n * grown > FAR and (atoms <= MANY or max_u == 0.0) and not alone:
                # Few users count: the same integral over the same contour, by nodes that go on through all lobes.
                set_rows(early, v, sampled, coins, come, g, laws)
                farther = contour(n, place, best, period, light, True, laws.mass, laws.moved)
                set_rows(types, v, shift, coins, 1.0, g, laws)
                if farther.line < math.inf:
                    if max_u > 0.0:
                        bins = bins_of_u(n, min(wide, NARROW), min(horizon / n, max_u), full, late, edges)
                    answer = min(answer, integral(
                        power, types, early, late, fine, edges[: bins + 1], limit, shift, at, True,
                        log_modulus_at_saddle, path, True, farther, laws,
                    )[0])  # fmt: skip
            answer = scaled(answer * factor, log_scale, abs(level) + 2.0 * abs(pull * first))
            if answer < out[i]:
                out[i] = answer
            # Half of it should come from smaller u, and half from larger ones.
            least = (CLOSE if stuck or near > 0.0 else LATER) / n
            if reached > near or not answer < math.inf:
                halfway = 0.5 * (near + after)
                before, near = near, min(reached, halfway) if answer < math.inf else halfway
            else:
                after, near = near, 0.5 * (before + near)
            # Laws of many values, noise, gain nothing, nor do the types of any randomizer.
            if atoms > MANY or early < types or not before + least < near < after - CLOSE / n:
                break
