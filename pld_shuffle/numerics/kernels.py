"""Compiled loops. Kernels take scalars and 1-D arrays, know nothing of privacy, check nothing.

Every loop states how rounding grows in it, in the unit roundoff u = 2^-53; the callers add that to the side
of the bound they are on.
"""

from __future__ import annotations

import math

from .compiled import kernel


@kernel("1 k1 1 f f o1", lambda mass, *rest: 3e-6 * mass.size)
def merge_upwards(mass, cell, offset, step, max_gap, out):
    """Lower placement: merge mass so that every merged ratio is exactly a lattice point's.

    Atoms, sorted by loss: atom j has loss (cell[j] step + offset[j]), 0 <= offset <= step, and mass mass[j]. out[i]
    receives the mass at loss i step. The lowest unconsumed mass is merged with as much of the next higher mass as
    brings the ratio of the merged atom to the next lattice point (total P- and Q-mass kept: hiding, a lower bound).
    Where the next mass is farther than `max_gap`, or there is none, the merged atom is rounded down instead.
    """
    count = mass.shape[0]
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
            local = remaining * mass[j]
            merged += local
            deficit += local * math.expm1(step - offset[j])
            j += 1
            remaining = 1.0
        while deficit > 0.0 and j < count:
            if mass[j] == 0.0:
                j += 1
                continue
            above = (cell[j] - target) * step + offset[j]
            if above > max_gap:
                break
            if above <= 0.0:  # on the lattice point already: of no help, and not to be rounded down
                out[target] += remaining * mass[j]
                j += 1
                remaining = 1.0
                continue
            local = remaining * mass[j]
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
            out[target - 1] += merged
        else:
            out[target] += merged


@kernel("1 1 o1", lambda mass, *rest: 1e-6 * mass.size)
def hockey_at_atoms(mass, gap, out):
    """out[j] = sum over i > j of mass[i] (1 - exp(-(gap[j] + ... + gap[i-1]))), gaps nonnegative.

    All terms nonnegative: relative rounding error at most 8 u (mass.size - j).
    """
    above = 0.0
    value = 0.0
    for j in range(mass.shape[0] - 1, -1, -1):
        value = math.exp(-gap[j]) * value - math.expm1(-gap[j]) * above
        above += mass[j]
        out[j] = value


@kernel("1 1 ok1", lambda x, *rest: 2e-6 * x.size)
def lower_hull(x, y, kept):
    """Indices of the lower convex hull of the points (x ascending, y), stopped where it would rise.

    Monotone chain (Andrew 1979). Returns how many of `kept` were written.
    """
    count = 0
    for i in range(x.shape[0]):
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


@kernel("f f f f f i o1 o1", lambda a, b, c, start_low, start_high, first, low, high: 1e-6 * low.size)
def falling_ratios(a, b, c, start_low, start_high, first, low, high):
    """Enclosures of r(k) = f(k-1) / f(k), k = first .. first + low.size - 1, from one of r(first + low.size):

        r(k) = (a k + (b - c (k+1)) / r(k+1)) / (b + c (k-1)),    a, b > 0, c >= 0.

    Backwards: f is the minimal solution of its recurrence, so that errors fade. Seven operations, of which at most one
    cancels, are covered by 12 u of the two terms' sizes.
    """
    u = 2.0**-53
    below = start_low
    above = start_high
    for i in range(low.shape[0] - 1, -1, -1):
        k = float(first + i)
        over = b - c * (k + 1.0)
        whole = b + c * (k - 1.0)
        at_low = over / (above if over > 0.0 else below)
        at_high = over / (below if over > 0.0 else above)
        error = 12.0 * u * (a * k + (b + c * (k + 1.0)) / below)
        below = (a * k + at_low - error) / whole * (1.0 - 4.0 * u)
        above = (a * k + at_high + error) / whole * (1.0 + 4.0 * u)
        low[i] = below
        high[i] = above
