"""What others can add at most who see everything: a game over the steps, by backward induction on a lattice.

With s = e^eps, phi_0(S) = S_+ and phi_j+1(S) = max over w of E phi_j(S + L_w), L_w = (dP - s dQ)/dN(w) under N(w),
k steps have E (S + sum of L)_+ <= phi_k(S): Theorem G of docs/shuffled_batches.md, section 3, with what is computed.
Only the cosine c of the angle between the target's contribution and w counts, in cells; phi is convex, so chords are
above it. Of many steps only the last ones are played, and few s: others lie between (`batches`). The earlier ones have
one worst law, with all others at minus the target's contribution (Theorem H). What that needs is certified: the value
is made larger until its curvature falls slowly (`softened`), and an inequality between four integrals holds for every
cell of directions (`rate`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..numerics.compiled import kernel, reordering, unchecked
from ..numerics.sides import ROUNDOFF, Array, Bounds
from .allocation import _edges, _merged
from .gaussian import gaussian_delta
from .profile import at_distances, distances_by_mass
from .slots import rest_of

CELLS = (-1.0, -0.985, -0.94, -0.84, -0.66, -0.4, 0.05, 0.55, 1.0)  # ends of cells of c
APART_FAR, MOST_ATOMS = 0.09, 128  # largest distance of atoms, relative: far ones count alone; on one side of 0
LOOK = 160  # points of a first look at a law
PIECES = 20  # of the law of what is orthogonal to the target's contribution
DEVIATIONS = 8.5  # of a standard normal number, beyond which there is 1e-17
FINE = 6  # points of the lattice in a deviation of one step
WIDTH = 1.5  # of cells of the law, in points, that would spread it as much as its atoms do
REACH = 10.0  # of the lattice, in deviations of the sum
LEAST = 4e-14  # more than is missed where no root is found
STRIDE, APART = 4, 1e-7  # of points where all cells are known; relative, that a step may miss


def normal(x: Array) -> tuple[Array, Array]:
    """The normal distribution function, and how far it may be off, for arguments known to 2 ulp."""
    from scipy.special import ndtr

    found = ndtr(x)
    return found, 6.0 * ROUNDOFF * (4.0 + x * x) * found + 1e-300


def basket(a: float, p: float, b: NDArray[np.floating], q: float) -> Array:
    """Upper bounds on E (1 - a e^(pg - p^2/2) - b e^(qg - q^2/2))_+ for normal g, p > 0, q not 0.

    The bracket is positive between roots of a convex function. Newton's steps come from outside, and what the function
    is where they end is added.
    """
    log_a, log_b = math.log(a) - 0.5 * p * p, np.log(b) - 0.5 * q * q

    def ended(place: Array, held: Array) -> tuple[Array, Array]:
        place = np.where(held, place, 0.0)
        for _ in range(60):
            one, two = np.exp(log_a + p * place), np.exp(np.where(held, log_b, 0.0) + q * place)
            step = np.where(held, (one + two - 1.0) / (p * one + q * two), 0.0)
            place = place - step
            if np.all(np.abs(step) < 1e-12):
                break
        left_over = np.exp(log_a + p * place) + np.exp(np.where(held, log_b, 0.0) + q * place) - 1.0
        return place, np.where(held, np.maximum(left_over, 0.0), 0.0)

    right, held = np.full(b.shape, -log_a / p), np.ones(b.shape, bool)
    if q > 0.0:
        right = np.minimum(right, -log_b / q)
    else:  # positive somewhere if at the minimum of the convex function
        lowest = (math.log(-q / p) + log_b - log_a) / (p - q)
        held = np.exp(log_a + p * lowest) + np.exp(log_b + q * lowest) < 1.0

    def below(place: Array) -> Array:
        """The integral up to there, and its error."""
        parts = np.array([normal(place), normal(place - p), normal(place - q)])
        return np.array(
            [parts[0, 0] - a * parts[1, 0] - b * parts[2, 0], parts[0, 1] + a * parts[1, 1] + b * parts[2, 1]]
        )

    right, error = ended(right, held)
    found, doubt = below(right)
    error = error + 2.0 * doubt
    if q < 0.0:  # what is left out on the left is smaller, and so is its error
        left, more = ended(-log_b / q, held)
        found, error = found - below(left)[0], error + more
    return np.where(held, np.maximum(found, 0.0) + error, LEAST)


def _between(ends: Array) -> Array:
    """Masses of a normal law between neighbouring ends, from the side where they are small."""
    right = ends[1:] + ends[:-1] > 0.0
    low, high = np.where(right, -ends[1:], ends[:-1]), np.where(right, -ends[:-1], ends[1:])
    return normal(high)[0] - normal(low)[0]


def calls(mu: float, c: float, far: bool, a: float, b: NDArray[np.floating]) -> Array:
    """Upper bounds on E (1 - a l_1 - b l_2)_+ for lognormal l_i of mean 1.

    log l_1 has deviation mu. far : l_2 is around c on the circle, seen from 1; otherwise seen from 0.
    With log l_1 given, l_2 has a factor of its own, of mean 1. The value is convex in it, and falls: so its law is
    spread to the ends of a few pieces.
    """
    slope = (1.0 - c if far else c) * mu
    alone = mu * math.sqrt(max(0.0, 1.0 - c * c))
    if alone == 0.0:
        return basket(a, mu, b, slope)
    ends = np.linspace(-DEVIATIONS, DEVIATIONS + alone, PIECES + 1)
    factor = np.exp(alone * ends - 0.5 * alone * alone)
    mass, moment = _between(ends), _between(ends - alone)
    right = np.clip((moment - mass * factor[:-1]) / np.diff(factor), 0.0, mass)
    weights = np.append(mass - right, 0.0) + np.append(0.0, right)
    found = weights @ basket(a, mu, factor[:, None] * b, slope)
    return np.asarray(found * (1.0 + 1e-13) + 1e-16)  # the tails, where the factor is 0 at worst


@dataclass(frozen=True, eq=False)
class StepLaws:
    """Laws on a lattice that are above all L of a cell, one for each cell.

    places : of their atoms, in points from 0, a multiple of four of them. masses : shape (cells, atoms). beyond : what
    is above the last atom, in the mean, for each cell.
    """

    places: NDArray[np.int64]
    masses: Array
    beyond: Array

    def thinned(self, share: float) -> StepLaws:
        """The laws of a step that says nothing with probability 1 - share."""
        masses = share * self.masses
        masses[:, 0] += 1.0 - share
        return StepLaws(self.places, masses * (1.0 + 4.0 * ROUNDOFF), share * self.beyond)


def _atoms(values: Callable[[Array], Array], longest: int) -> NDArray[np.int64]:
    """Points for the atoms of a law with these calls, up to the one asked for: as far apart as is worth its masses."""
    grid = np.unique(np.round(np.geomspace(1.0, longest, LOOK)))
    mass = np.maximum(np.diff(np.diff(values(grid)) / np.diff(grid), prepend=-math.inf, append=0.0), 1e-300)
    mass[0] = mass[1]
    distance = np.minimum(WIDTH * distances_by_mass(grid, mass, grid), np.maximum(1.0, APART_FAR * grid))
    found = np.round(grid[0] + at_distances(grid - grid[0], distance, MOST_ATOMS)).astype(np.int64)
    return np.unique(found)


@lru_cache(maxsize=4)
def step_laws(sigma: float, forward: bool, expm1_eps: float, longest: int) -> StepLaws:
    """Of steps with noise sigma, with a contribution against without (forward), or the other way round."""
    mu, s, h = 1.0 / sigma, 1.0 + expm1_eps, 1.0 / (sigma * FINE)
    ahead = _atoms(lambda b: calls(mu, -1.0 if forward else 1.0, forward, s, h * b), longest)
    fewest = min(longest, math.ceil(s * math.exp(DEVIATIONS * mu) / h))
    behind = _atoms(lambda b: calls(mu, 1.0 if forward else -1.0, not forward, 1.0 / s, h * b / s), fewest)
    ahead_calls = [calls(mu, c, forward, s, h * ahead) for c in (CELLS[:-1] if forward else CELLS[1:])]
    puts = [s * calls(mu, c, not forward, 1.0 / s, h * behind / s) for c in (CELLS[1:] if forward else CELLS[:-1])]
    middle = float(gaussian_delta(Bounds(mu, mu * (1.0 + 4.0 * ROUNDOFF)), np.array([math.log1p(expm1_eps)])).upper[0])

    def kinks(values: list[Array], at: NDArray[np.int64], start: float) -> tuple[Array, Array]:
        known = np.column_stack((np.full(len(values), start), np.array(values)))
        slopes = np.diff(known) / (h * np.diff(at, prepend=0))
        slopes = np.append(slopes, np.zeros((len(values), 1)), axis=1)
        rise = np.diff(slopes) + 4.0 * ROUNDOFF * (np.abs(slopes[:, 1:]) + np.abs(slopes[:, :-1]))
        return np.maximum(rise, 0.0), slopes[:, :1]

    gains, one = kinks(ahead_calls, ahead, middle)
    falls, two = kinks(puts, behind, middle + expm1_eps)
    still = np.maximum(0.0, 1.0 + one + two) + 8.0 * ROUNDOFF
    idle = -(1 + ahead.size + behind.size) % 4
    places = np.concatenate(([0], ahead, -behind, np.zeros(idle, np.int64)))
    masses = np.concatenate((still, gains, falls, np.zeros((len(puts), idle))), axis=1)
    return StepLaws(places, masses, np.array([last[-1] for last in ahead_calls]))


@reordering
def _add_means(full, offsets, masses, cell, mean, first, last):
    """Adds the mean of `full` under the law of a cell, whose atoms read it at these offsets, for i in [first, last)."""
    for k in range(0, offsets.shape[0], 4):
        f0 = full[offsets[k] :]
        f1 = full[offsets[k + 1] :]
        f2 = full[offsets[k + 2] :]
        f3 = full[offsets[k + 3] :]
        w0 = masses[cell, k]
        w1 = masses[cell, k + 1]
        w2 = masses[cell, k + 2]
        w3 = masses[cell, k + 3]
        for i in range(first, last):
            mean[i] += w0 * f0[i] + w1 * f1[i] + w2 * f2[i] + w3 * f3[i]


@unchecked
def _largest_means(full, offsets, masses, beyond, coarse, best, mean, pieces):
    """The largest mean of all cells at points 0 to STRIDE * pieces, but for APART of it.

    coarse : at every STRIDE-th point all cells' means. They are convex, so a cell whose chord is below what another one
    has need not be known between.
    """
    cells = masses.shape[0]
    top = np.zeros(pieces + 1, np.int64)
    for i in range(pieces):
        for cell in range(1, cells):
            if coarse[cell, i] + coarse[cell, i + 1] > coarse[top[i], i] + coarse[top[i], i + 1]:
                top[i] = cell
    for i in range(STRIDE * pieces + 1):
        best[i] = 0.0
    for step in range(cells + 1):  # the best ones, then all the others where their chords are above
        i = 0
        while i < pieces:
            cell = top[i] if step == 0 else step - 1
            j = i
            asked = True
            while asked and j < pieces:
                if step == 0:
                    asked = top[j] == cell
                else:
                    asked = False
                    if top[j] != cell:
                        value = coarse[cell, j]
                        slope = (coarse[cell, j + 1] - value) / STRIDE
                        for k in range(STRIDE + 1):
                            asked = asked or value + slope * k > (1.0 + APART) * best[j * STRIDE + k]
                if asked:
                    j += 1
            if j > i:
                first = i * STRIDE
                last = j * STRIDE + 1
                for m in range(first, last):
                    mean[m] = beyond[cell]
                _add_means(full, offsets, masses, cell, mean, first, last)
                for m in range(first, last):
                    best[m] = max(best[m], mean[m])
            i = max(j, i + 1)


@kernel(
    "i k1 2 1 f f o1 ok1",
    lambda steps, places, masses, *rest: 2e-8 * steps * masses.size * rest[-2].size,
    error_model="numpy",
)
def _play(steps, places, masses, beyond, h, floor, phi, window):
    """The value after so many steps, in place: phi is convex and rises with a slope of at most 1.

    Outside of the window it is continued from above, constant and with slope 1. The window starts where phi is constant
    but for `floor`, and ends where its slope is 1 but for 1e-4.
    """
    size = phi.shape[0]
    cells = masses.shape[0]
    low = 0
    high = 0
    for k in range(places.shape[0]):
        low = max(low, -places[k])
        high = max(high, places[k])
    length = (low + size + high) // STRIDE + 1  # of the points with one remainder
    full = np.empty(length * STRIDE)
    part = np.empty(length * STRIDE)
    offsets = np.empty(places.shape[0], np.int64)
    coarse_offsets = np.empty(places.shape[0], np.int64)
    for k in range(places.shape[0]):
        offsets[k] = low + places[k]
        coarse_offsets[k] = offsets[k] % STRIDE * length + offsets[k] // STRIDE
    coarse = np.empty((cells, size // STRIDE + 1))
    row = np.empty(size // STRIDE + 1)
    mean = np.empty(size)
    best = np.empty(size)
    for t in range(steps):
        grow = 64 if t > 0 else size
        start = max(0, window[0] - grow)
        pieces = (min(size, window[1] + grow) - 1 - start) // STRIDE
        n = STRIDE * pieces + 1
        left = low + window[0] - start
        middle = left + window[1] - window[0]
        for i in range(left):
            full[i] = phi[window[0]]
        for i in range(left, middle):
            full[i] = phi[window[0] + i - left]
        for i in range(middle, low + n + high):
            full[i] = phi[window[1] - 1] + h * (i - middle + 1)
        for i in range(low + n + high):
            part[i % STRIDE * length + i // STRIDE] = full[i]
        for cell in range(cells):
            for i in range(pieces + 1):
                row[i] = beyond[cell]
            _add_means(part, coarse_offsets, masses, cell, row, 0, pieces + 1)
            for i in range(pieces + 1):
                coarse[cell, i] = row[i]
        _largest_means(full, offsets, masses, beyond, coarse, best, mean, pieces)
        first = 0
        while first < n - 3 and best[first + 1] < best[0] + floor:
            first += 1
        last = n - 1
        while last > first + 2 and best[last - 1] - best[last - 2] > (1.0 - 1e-4) * h:
            last -= 1
        window[0] = start + first
        window[1] = start + last + 1
        for i in range(first, last + 1):
            phi[start + i] = (1.0 + APART) * best[i]


@dataclass(frozen=True, eq=False)
class Played:
    """Upper values of E (x + sum of L over some steps)_+ at places x of a lattice."""

    place: Array
    value: Array

    def at(self, x: Array) -> Array:
        """By chords, constant on the left and with slope 1 on the right."""
        beyond = np.maximum(0.0, x - self.place[-1])
        return np.asarray(np.interp(x, self.place, self.value) * (1.0 + 1e-14) + beyond)


def lattice(sigma: float, expm1_eps: float, steps: int, depth: float = 0.0) -> tuple[int, int]:
    """Points of the lattice on the left of 0, for sums that start at -depth or above, and on the right."""
    deviation, fall = FINE * (math.sqrt(steps * (1.0 + 4.5 / sigma**2)) + 2.0), FINE * sigma * steps * expm1_eps
    return int(REACH * deviation + FINE * sigma * depth + fall), int(REACH * deviation + fall)


@lru_cache(maxsize=16)
def play(
    sigma: float, forward: bool, expm1_eps: float, steps: int, share: float, floor: float, depth: float = 0.0
) -> Played:
    """So many steps, of which each says nothing with probability 1 - share; `floor` may be added in a step."""
    h = 1.0 / (sigma * FINE)
    left, right = lattice(sigma, expm1_eps, steps, depth)
    laws = step_laws(sigma, forward, expm1_eps, left + right).thinned(share)
    found = played(laws, steps, h, left, right, floor)
    return Played(found.place / share, found.value / share)


def played(laws: StepLaws, steps: int, h: float, left: int, right: int, floor: float) -> Played:
    """So many steps, on a lattice of distance h with so many points on either side of 0."""
    place = h * np.arange(-left, right + 1.0)
    value, window = np.maximum(place, 0.0), np.array([left - 2, left + 3])
    _play(steps, laws.places, laws.masses, laws.beyond, h, floor, value, window)
    low, high = window
    value *= 1.0 + 2.0 * steps * (laws.places.size + 8.0) * ROUNDOFF
    return Played(place[low:high], value[low:high])


THINNED = 0.003  # probability that a term on the side of the calls in question is 0, the others being longer
RATES = tuple(0.85**k for k in range(20))  # lam, tried from the largest one down
FIRST_CELL, GROWTH = 0.006, 0.12  # width of the first cell of cosines, and how much of its place more others have
# Strikes for every integral, at distances of a sinh, which is even up to so many deviations of a step.
STRIKES, DENSE = 128, 2.0
FAR = 400.0  # deviations of a step, where the last strike is at most
CELL, TAIL = 0.03, 1e-20  # of the law that all others are compared with
FORGOTTEN = 1e-9  # slope of a value at its ends that is not looked at closely
HIGH, TILTS, LEFT_OUT = 6.0, 64, 1e-9  # deviations up to which values are not cut; tilts tried; of all frequencies


def _weights(at: Array, rate: float) -> Array:
    """Weights of a piecewise linear function's values in its integral with e^(rate y) from the first place on."""
    gap = np.diff(at)
    u = rate * gap
    scale = np.exp(rate * at[:-1]) * gap / (u * u)
    ends = scale * (np.expm1(u) - u), scale * (1.0 + np.exp(u) * (u - 1.0))
    return np.asarray(np.append(ends[0], 0.0) + np.append(0.0, ends[1]))


@lru_cache(maxsize=256)
def rate(sigma: float, forward: bool, expm1_eps: float, excess: float) -> float | None:
    """The largest lam of RATES for which one direction is the worst, up to `excess` in the mean; None if there is none.

    With C the calls of L (puts, in the other order) and P its puts (calls), both at distances y >= 0 from 0: for all
    cosines c the integral of e^(-lam y) C over y >= 0 and that of e^(lam y) P up to the end, where P is at most
    `excess`, are together at most those of the thinned law at c = -1. In a cell of c, C is at most that of its left
    end, and P that of its right one (Theorem G).
    """
    mu, s = 1.0 / sigma, 1.0 + expm1_eps

    def delta_at(eps: float) -> float:
        return float(gaussian_delta(Bounds(mu, mu * (1.0 + 1e-15)), np.array([eps * (1.0 - 1e-15)])).upper[0])

    middle = delta_at(math.log1p(expm1_eps))
    # (1 - a l_1 - b l_2)_+ times `factor`: of the law in front, with s and y over it.
    (one, a), (two, b) = ((1.0, s), (s, 1.0 / s)) if forward else ((s, 1.0 / s), (1.0, s))
    starts = (middle, middle + expm1_eps) if forward else (middle + expm1_eps, middle)

    def places(end: float) -> Array:
        dense = DENSE * mu
        return np.asarray(dense * np.sinh(np.linspace(0.0, math.asinh(end / dense), STRIKES)))

    def beyond(end: float) -> float:
        """P at c = 1."""
        return two * delta_at(math.log((1.0 + end) / s if forward else s + end))

    end = expm1_eps + 4.0 * mu
    while beyond(end) > excess:
        end *= 1.2
        if end > FAR * mu:
            return None
    near, far = places(2.0 * end), places(end)
    number = math.ceil(math.log1p(2.0 * GROWTH / FIRST_CELL) / math.log1p(GROWTH))
    cosines = np.minimum(1.0, FIRST_CELL / GROWTH * np.expm1(math.log1p(GROWTH) * np.arange(number + 1)) - 1.0)
    inner = np.array([np.append(starts[0], one * calls(mu, c, True, a, near[1:] / one)) for c in cosines[:-1].tolist()])
    outer = np.array([np.append(starts[1], two * calls(mu, c, False, b, far[1:] / two)) for c in cosines[1:].tolist()])
    rows = _merged(sigma, _edges(sigma, TAIL, CELL))
    first, second = (rows[0], rows[1]) if forward else (rows[1], rows[0])
    held = rows[2] > 0.0
    value = (first - s * second)[held] / rows[2][held] * (1.0 if forward else -1.0)
    mass = rows[2][held]
    ahead, behind, kept = np.maximum(value, 0.0) / (1.0 - THINNED), np.maximum(-value, 0.0), 1.0 - THINNED
    for lam in RATES:
        u, m = lam * ahead, np.minimum(behind, end)
        gained = kept * float(mass @ (np.expm1(-u) + u))
        lost = float(mass @ (lam * behind * np.expm1(lam * m) - lam * m * np.exp(lam * m) + np.expm1(lam * m)))
        found = inner @ _weights(near, -lam) + inner[:, -1] * math.exp(-lam * near[-1]) / lam
        if np.all(found + outer @ _weights(far, lam) <= (gained + lost) / lam**2 * (1.0 - 1e-9)):
            return lam
    return None


def softened(played: Played, lam: float, forward: bool) -> tuple[Array, float]:
    """Weights w of (x - y)_+ at the places y of the value, and a constant: above it, and its curvature is slow.

    Beyond the places it is continued from above, constant on the left.
    """
    place, h = played.place, float(played.place[1] - played.place[0])
    slopes = np.concatenate(([0.0], np.diff(played.value) / h, [1.0]))
    slopes = np.maximum.accumulate(slopes)
    kinks = np.diff(slopes) + 4e-16 * slopes[1:]
    if forward:
        last = int(np.argmax(slopes[1:] >= 1.0 - FORGOTTEN))
        kinks[last] += max(0.0, float(slopes[-1] - slopes[last + 1]))
        kinks[last + 1 :] = 0.0
    rising = lam * (place - place[0]) if forward else lam * (place[-1] - place)
    log_kinks = np.log(np.maximum(kinks, 1e-300)) + rising
    log_kinks = np.maximum.accumulate(log_kinks) if forward else np.maximum.accumulate(log_kinks[::-1])[::-1]
    kinks = np.exp(log_kinks - rising)
    # A kink is spread over a cell of its own, whose mean is not on its right; beyond the lattice there are more cells.
    rest = kinks[-1 if forward else 0] / (-math.expm1(-lam * h)) * math.exp(-lam * h)
    slope = np.cumsum(kinks) + (0.0 if forward else rest)
    value = np.concatenate(([0.0], np.cumsum(slope[:-1]) * h))
    if not forward:
        value += rest * h / (-math.expm1(-lam * h))
    value += float(played.value[0]) + 0.1 * lam * h * h * slope + 0.25 * h * kinks
    total = float(slope[-1] + (rest if forward else 0.0)) * (1.0 + 1e-12)
    chords = np.concatenate(([0.0], np.diff(value) / h, [total]))
    return np.maximum(0.0, np.diff(chords)) + 4e-16, float(value[0])


def preceded(
    place: Array, weights: Array, law: tuple[Array, Array], count: int, ends: tuple[float, float, float]
) -> Played:
    """Upper values of sum of w E (x + S - y)_+ between the outer ends of x, S a sum of so many terms; y on a lattice.

    law : values and their masses, the rest being at 0. By the trapezoidal rule along Re z = tilt, where the integral is
    that of weights' and law's transforms over z^2. Its aliases are positive. Smoothing by a normal number of deviation
    h bounds what is left out (docs/shuffled_batches.md, section 4). High values are cut: beyond, every term is paid.
    """
    from .contour_kernels import characteristics

    value, mass = law
    h, total = float(place[1] - place[0]), math.fsum(weights.tolist())
    low, middle, high = ends
    top = float(place[np.searchsorted(np.cumsum(weights), 0.999 * total)]) - low
    cap = math.inf
    for _ in range(8):
        cap = top + HIGH * math.sqrt(count * float(mass @ np.minimum(np.abs(value), cap) ** 2))
    jumps = count * float(mass @ np.maximum(0.0, value - cap)) * (1.0 + 1e-12)
    value = np.append(np.minimum(value, cap), 0.0)
    mass = np.append(mass, rest_of(mass))
    shifted = place - place[0]

    tilts = np.geomspace(1e-3 / cap, min(600.0 / cap, 20.0 / h), TILTS)
    log_moment = np.log([mass @ np.exp(z * value) for z in tilts.tolist()])
    size = np.array([weights @ np.exp(-z * shifted) for z in tilts.tolist()])
    level = count * log_moment + np.log(size) - 2.0 * np.log(tilts) + tilts * (middle - place[0])
    i = int(np.clip(np.argmin(level), 1, TILTS - 2))
    tilt, away = float(tilts[i]), np.delete(np.abs(tilts - tilts[i]), i)
    needed = (np.delete(level, i) - level[i] + math.log(1e8)) / away
    period = max(high - middle, middle - low) + max(float(needed[:i].min()), float(needed[i:].min()))
    number = 2 ** math.ceil(math.log2(max(period, high - low + 2.0 * h) / h))

    tilted = weights * np.exp(-tilt * shifted)
    known = np.fft.rfft(np.bincount(np.arange(place.size) % number, tilted, number)) / size[i]
    known = np.concatenate((known, np.conj(known[-2:0:-1]), [1.0]))  # up to one period of it
    y = 2.0 * math.pi / (number * h) * np.arange(number + 1)
    pole = tilt / (tilt + 1j * y)
    weight = np.abs(known) * np.abs(pole) ** 2 * np.exp(-0.5 * (h * y) ** 2)
    left_out = np.cumsum(weight[::-1])[::-1] + number * weight[-1]
    blurred = ROUNDOFF * 10.0 * math.log2(number) * float(np.sum(np.abs(pole) ** 2))  # the first Fourier transform
    last = int(np.argmax(np.append(left_out, 0.0) <= LEFT_OUT))
    y, known, pole, weight = y[:last], known[:last], pole[:last], weight[:last]

    p = mass * np.exp(tilt * value - log_moment[i])
    centre = float(p @ value)
    versine, sine = np.empty(last), np.empty(last)
    characteristics(y, value - centre, p, np.array([p.size]), versine, sine)
    modulus = 0.5 * np.log1p(np.maximum(versine * versine + sine * sine - 2.0 * versine, -1.0 + 1e-300))
    angle = np.arctan2(sine, 1.0 - versine)
    start = count * centre - place[0] + low
    turned = count * angle + y * (start + h * h * tilt)
    terms = known * pole**2 * np.exp(count * modulus - 0.5 * (h * y) ** 2 + 1j * turned)
    terms[0] *= 0.5
    folded = np.zeros(number, complex)
    np.add.at(folded, np.arange(last) % number, terms)
    found = 2.0 * number * np.fft.ifft(folded).real[: math.ceil((high - low) / h) + 1]
    # What is rounded: the transforms, powers and phases, and both Fourier transforms.
    own = ROUNDOFF * (3.0 * p.size + 20.0 + 2.0 * tilt * np.abs(value) + abs(log_moment[i]))
    wrong = np.minimum(1.0, y * float(p @ (np.abs(value - centre) * own)))
    reach = np.exp(np.minimum(0.0, (count - 1.0) * np.log(np.exp(modulus) + wrong)))
    far = abs(count * centre) + abs(place[0]) + abs(low) + number * h
    steps = 4.0 * (count * (np.abs(modulus) + np.abs(angle)) + y * far) + 100.0 + 10.0 * math.log2(number)
    power = count * wrong * reach + np.exp(count * modulus) * ROUNDOFF * steps
    error = 2.0 * (float(weight @ power) + blurred + float(left_out[min(last, number)]))
    at = low + h * np.arange(found.size)
    exponent = level[i] + tilt * (at - middle) + 0.5 * (h * tilt) ** 2
    rounding = count * ROUNDOFF * (p.size + 20.0 + 2.0 * float(p @ np.abs(tilt * value))) + 1e-12
    upper = np.exp(exponent + rounding) * (found + error) / (number * h)
    return Played(at, upper + total * jumps)
