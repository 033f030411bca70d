"""Compiled loop of `population`: the contour bound of hidden cohorts of several sizes, on one contour.

Notation as in `swap_kernels`. A hidden cohort needs no u; its sum of n terms L_i + (1-q)(1-s)/q, q = n/N, is that of
n centred terms and N (1-s), so the size enters as a power of |M| only.
"""

# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, check-untyped-defs=False

from __future__ import annotations

import math

import numpy as np

from ..numerics.compiled import unchecked
from ..numerics.rounding import ROUNDOFF
from .swap_kernels import (
    POINTS,
    POWER,
    STEPS,
    contour,
    doubt,
    far_part,
    move,
    rise,
    saddle,
)

FINE = 5e-5  # of the sum over nodes: what the rest need not be known better than


@unchecked
def shared(sizes, middle, users, weight, base, slope, wobble, relative, growth, out):
    """Fill out[e, i] with bounds for cohorts of sizes[e] out of `users` at 1 + growth[i], on one contour for all e.

    sizes: even, ascending. middle: the size that the contour is chosen for. weight, base, slope, wobble: as in
    `swap_kernels.profile`. Either all of out[:, i] are contour integrals, or all are the bound by one term alone.
    """
    types, atoms = weight.shape
    ends = sizes.size
    excess = np.zeros((types, atoms))
    value = np.empty((types, atoms))
    wrong = np.empty((types, atoms))
    mass = np.zeros((types, atoms))
    moved = np.zeros((types, atoms))
    nodes = np.empty((3, STEPS))
    points = np.empty(POINTS)
    real = np.empty(POINTS)
    sums = np.empty(ends)
    level = np.empty(ends)
    answer = np.empty(ends)
    side = np.empty(ends)
    for i in range(growth.size):
        g = growth[i]
        ahead = -(users / middle - 1.0) * g  # (1-q)(1-s)/q of the middle size
        best = -1
        spread = -1.0
        start = 0.0
        widest = 0.0
        for e in range(ends):
            out[e, i] = 0.0
        for k in range(types):
            first = 0.0
            square = 0.0
            hub = 0
            for j in range(atoms):
                big = abs(base[k, j]) + g * slope[k, j]
                value[k, j] = base[k, j] - g * slope[k, j]
                wrong[k, j] = wobble[k, j, 0] + g * wobble[k, j, 1] + 4.0 * ROUNDOFF * big
                total = value[k, j] + ahead
                first += weight[k, j] * total
                square += weight[k, j] * total * total
                if weight[k, j] > weight[k, hub]:
                    hub = j
            for j in range(atoms):
                if weight[k, j] > 0.0:
                    widest = max(widest, abs(value[k, j] - value[k, hub]))
            square -= first * first
            if square > spread:
                spread = square
                best = k
                start = (math.sqrt(first * first + 8.0 * square / middle) - first) / (2.0 * square)
            for e in range(
                ends
            ):  # E (L + (1-q)(1-s)/q)_+ q: the mean of n terms is below one of them
                rate = sizes[e] / users
                hinge = 0.0
                for j in range(atoms):
                    back = (1.0 - rate) * g
                    big = rate * (abs(base[k, j]) + g * slope[k, j]) + back
                    part = rate * (value[k, j] + wrong[k, j]) - back + 8.0 * ROUNDOFF * big
                    hinge += weight[k, j] * max(0.0, part)
                hinge *= 1.0 + relative + ROUNDOFF * (atoms + 8.0)
                out[e, i] = min(1.0, max(out[e, i], hinge))
        if not (out[ends - 1, i] > 0.0 and 0.0 < start < math.inf):
            continue
        # The saddle point of the type that is the worst there.
        place = start
        for k in range(types):
            move(0.0, k, weight, excess, value, ahead, k, mass, moved)
        for _ in range(3):
            highest = -math.inf
            for j in range(atoms):
                if weight[best, j] > 0.0:
                    highest = max(highest, moved[best, j])
            if not highest > 0.0:
                break
            place = saddle(middle, best, mass, moved, place)
            now = best
            for k in range(types):
                if rise(place, k, mass, moved) > rise(place, now, mass, moved):
                    now = k
            if now == best:
                break
            best = now
        path = contour(middle, place, best, 2.0 * math.pi / widest, mass, moved, nodes, points)
        if not path.line < math.inf:
            continue
        low = min(min(points[2], points[4]), min(points[0], nodes[0, 0]))
        high = max(max(points[3], points[5]), max(points[0], nodes[0, 0]))
        peak = max(abs(points[0]), abs(points[1])) * path.sigma
        loss = math.exp((path.end / path.window) ** POWER)
        # From here on L is centred, and the rest of the exponent is -g N z.
        pull = g * users
        for k in range(types):
            move(0.0, k, weight, excess, value, g, k, mass, moved)
        grown = math.log1p(rise(nodes[0, 0], best, mass, moved))
        largest = 0.0
        for e in range(ends):
            level[e] = sizes[e] * grown - pull * nodes[0, 0]
            largest = max(largest, sizes[e] * abs(grown) + pull * abs(nodes[0, 0]))
            answer[e] = 0.0
        if not largest < 700.0:
            continue
        for k in range(types):
            slack = doubt(0.0, k, weight, excess, value, wrong, g, relative, low, high)
            for e in range(ends):
                sums[e] = 0.0
            for a in range(path.nodes):
                x = nodes[0, a]
                y = nodes[1, a]
                re = 0.0
                im = 0.0
                for j in range(atoms):
                    if mass[k, j] > 0.0:
                        grown = math.expm1(x * moved[k, j])
                        angle = 0.5 * y * moved[k, j]
                        sine = math.sin(angle)
                        part = 2.0 * mass[k, j] * (1.0 + grown) * sine
                        re += mass[k, j] * grown - part * sine
                        im += part * math.cos(angle)
                over = re * (2.0 + re) + im * im
                extra = slack * math.sqrt(x * x + y * y)
                if over > -0.75:
                    log = 0.5 * math.log1p(over) + extra / math.sqrt(1.0 + over)
                else:
                    log = math.log(math.sqrt(max(1.0 + over, 0.0) + 64.0 * ROUNDOFF) + extra)
                for e in range(ends):
                    sums[e] += nodes[2, a] * math.exp(sizes[e] * log - pull * x - level[e])
            for q in range(POINTS):
                over = rise(points[q], k, mass, moved) + slack * abs(points[q])
                real[q] = math.log1p(over) if over > -1.0 else -math.inf
                if over > -1.0:
                    real[q] += 4.0 * ROUNDOFF * abs(real[q])
            outer = -math.inf
            for e in range(ends):
                both = max(
                    sizes[e] * real[0] - pull * points[0], sizes[e] * real[1] - pull * points[1]
                )
                side[e] = both - level[e] + 0.5 * (path.blur * peak) ** 2
                outer = max(outer, side[e])
            # |M|^n relative to M(x)^n is smaller for the larger sizes.
            far = far_part(
                sizes[0], path, k, k, mass, moved, min(points[0], points[1]),
                max(points[0], points[1]), max(real[0], real[1]),
                FINE * sums[0] * math.exp(-min(outer, 600.0)),
            )  # fmt: skip
            far *= 1.0 + 0.2111 * (path.bend / path.width) ** 2
            for e in range(ends):
                n = sizes[e]
                strip = -math.inf
                for q in range(2, POINTS, 2):
                    both = n * (real[q] + real[q + 1]) - pull * (points[q] + points[q + 1])
                    strip = max(strip, 0.5 * both - level[e])
                total = math.inf
                if outer < 600.0 and strip < 600.0:
                    total = sums[e] + math.exp(side[e]) * far + math.exp(strip) * path.line
                if not loss * total <= answer[e]:
                    answer[e] = loss * total
        better = True
        for e in range(ends):
            answer[e] *= path.sigma / (math.pi * users) * math.exp(level[e])
            answer[e] *= 1.0 + ROUNDOFF * (16.0 * largest + 4000.0)
            answer[e] += 1e-300
            better = better and answer[e] < out[e, i]
        if better:
            for e in range(ends):
                out[e, i] = answer[e]
