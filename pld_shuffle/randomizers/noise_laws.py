"""Laplace and Gaussian noise on [0, 1] as finite laws: for the blanket, the swap theorem and attacks. Arrays only.

Reports are cut into cells. Merging those of a cell is post-processing: a lower side. Moving them to the cell's ends
with all masses kept is a mean-preserving spread of their likelihood ratios: an upper side.

R_x is the law of x + noise, x in [0, 1]; (a, b; w) is a target that holds a on one dataset and b on its neighbour next
to another user who holds w. For the blanket (0, 1) is the worst pair of inputs, its halves mirror images.

A *type* is an array of four rows, the masses of groups of reports under R_a, R_b, the shared law V, and R_w; an upper
side. It may stand for many (a, b; w): all whose (R_a - s R_b)/R_w is smaller in convex order. Proofs are in
docs/theory.md, section 8, "Noise in the swap theorem"; functions name its steps: 1, contraction; 2, others in a cell;
3, target in a cell, for Laplace noise (3a with a bump) and Gaussian (3b); 4, near targets.

Relative rounding errors of masses: below 1e-13 for Laplace noise, 1e-12 for Gaussian.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ..numerics.sides import Array, Side
from ..numerics.tuning import NOISE_CELLS

LARGEST_EPS0 = 150.0  # beyond, masses underflow
LARGEST_EXPONENT = 650.0  # of densities
LEGENDRE = 12  # nodes of a Gauss-Legendre sum
GRADED = 0.7 ** np.arange(1.0, 71.0)  # places of cells next to constant ratios, in cells
STEPS = tuple(0.5 * 0.75**i for i in range(23))  # of target values, relative to what is left
FALLBACK = 0.05
LEAST_TYPES_SIGMA = 0.5  # of Gaussian noise in the swap theorem; below, types are many and users per type few
TAIL_STEP = 0.2  # of these types, in the logarithm of a ratio
TYPES_MISSED = 1e-14  # of its types
FEW_SIGMA = 0.8  # among few users by sums of ratios; below, these are too large


def laplace_groups(eps0: float, *, side: Side, cells: int = NOISE_CELLS, graded: bool = False) -> Array:
    """Rows (first, second, blanket): a finite law on `side` of Laplace noise of scale 1/eps0, inputs 0 and 1.

    cells : in each half, of equal width in q = sqrt(u): they add least variance, relative to that of u below 1/cells^2.
    graded: with more of them next to the constant ratios, as close as 1e-11 of the first cell.
    """
    top = math.expm1(0.5 * eps0)
    short = top / cells * np.arange(cells + 1.0)  # of q, to its largest value at y = 0
    if graded:
        short = np.concatenate(([0.0], short[1] * GRADED[::-1], short[1:]))
    y = -np.log1p(-short / (1.0 + top)) / eps0
    y[-1] = 0.5
    return _mirrored(*_laplace_masses(eps0, y, (0.0, 1.0), side, right=False))


def gaussian_groups(sigma: float, *, side: Side, truncated_mass: float = 1e-15, cells: int = 2 * NOISE_CELLS) -> Array:
    """As `laplace_groups`, of Gaussian noise N(0, sigma^2).

    u is unbounded. Beyond the point that the first law passes with probability `truncated_mass` (in (0, 0.1)) the
    upper law has no blanket and an infinite loss, the lower one a single merged group. Choose it well under the
    smallest delta of interest, but not 1e-100: the farthest ratios are what costs time. Raises ValueError where masses
    underflow (a small sigma with a small `truncated_mass`).
    """
    from scipy.special import ndtr

    start, _ = _ends(sigma, [0.0], truncated_mass, right=1.0)
    longest = min(0.25 * sigma, sigma * sigma / (1.0 - start))
    longest = (0.5 - start) / (math.ceil((0.5 - start) / longest) + 1)
    ends = _quantiles(sigma, start, 0.5, cells, -1.0, longest)
    near, far = float(ndtr(start / sigma)), float(ndtr((start - 1.0) / sigma))
    if side is Side.LOWER:
        rows = _gaussian_masses(sigma, ends, (0.0, 1.0))
        return _mirrored(np.append(rows[0], near), np.append(rows[1], far))
    y, weight = _panels(sigma, ends, 1.0 - start)
    density = weight * np.exp(-0.5 * ((y - 1.0) / sigma) ** 2)
    down, up = (np.sum(density * share, axis=1) for share in _share(ends, y, -1.0 / sigma**2))
    blanket = np.append(down, 0.0) + np.append(0.0, up)
    inside = _mirrored(blanket * np.exp((0.5 - ends) / sigma**2), blanket)
    # The far ends, outside of the upper law's blanket: (near, 0), (0, far) left, and (far, near) right, where
    # the second law is the larger one everywhere.
    bare = [[near, 0.0, far], [0.0, far, near], [0.0] * 3]
    return np.concatenate((inside, bare), axis=1)


def least_truncated_mass(sigma: float) -> float:
    """About the least `truncated_mass` that `gaussian_groups` can take: below it masses underflow."""
    from scipy.special import ndtr

    return 1.001 * float(ndtr(1.0 / sigma - math.sqrt(2.0 * LARGEST_EXPONENT)))


def _mirrored(first: Array, blanket: Array) -> Array:
    """Both halves of a symmetric pair: on the left one the second law is the blanket."""
    halves = [[first, blanket], [blanket, first], [blanket, blanket]]
    return np.array([np.concatenate(half) for half in halves])


def laplace_attack(
    eps0: float, *, first: float, second: float, others: float, cells: int = NOISE_CELLS, graded: bool = False
) -> Array:
    """Masses of cells under the target's two laws and the others', shape (3, groups): a lower side.

    Laplace noise of scale 1/eps0; `first`, `second`, `others` in [0, 1]. graded : with more cells next to 0 and 1.

    >>> laplace_attack(1.0, first=0.0, second=1.0, others=0.0).sum(axis=1).round(12)
    array([1., 1., 1.])
    """
    inputs = (first, second, others)
    ends = np.union1d(np.linspace(0.0, 1.0, cells + 1), inputs)
    if graded:
        near = GRADED / cells
        ends = np.union1d(ends, np.concatenate((near, 1.0 - near)))
    return _laplace_masses(eps0, ends, inputs, Side.LOWER)


def _laplace_masses(budget: float, ends: Array, inputs: Iterable[float], side: Side, *, right: bool = True) -> Array:
    """Laws of inputs that are among the ends of the cells, the tail on the left included, and that on the right.

    Upper: reports are moved to the ends. In a cell all densities are combinations of e^(eps0 y) and e^(-eps0 y), so
    that is exact for every input: the trapezoidal rule with tanh(eps0 h/2)/eps0 for h/2.
    """
    rows = []
    for x in inputs:
        bell = 0.5 * np.exp(-budget * np.abs(ends - x))
        if side is Side.UPPER:
            share = np.tanh(0.5 * budget * np.diff(ends))
            rows.append(bell * (np.append(share, float(right)) + np.append(1.0, share)))
        else:
            inside = np.maximum(bell[:-1], bell[1:]) * -np.expm1(-budget * np.diff(ends))
            rows.append(np.concatenate((bell[:1], inside, bell[-1:] if right else [])))
    return np.array(rows)


def laplace_types(eps0: float, n: int, *, cells: int = 96, allowance: float = 0.002) -> tuple[Array, ...]:
    """Types of Laplace noise of scale 1/eps0 that cover all targets and other users in [0, 1]; upper side.

    n : users for whom the cover is made; it chooses the cells and is right for any n. cells : of reports in [0, 1], at
    least. allowance : by how much a type may be worse than (0, 1; 0), see `_Yardstick`; in (0, 1].

    Returns arrays of shape (4, groups), rows R_a, R_b, v, w, with V = R_a, such that W - u V >= w - u v for every law W
    that the type stands for and 0 <= u <= min w/v. What w - u v is short of 1 - u tells nothing (L = 0). The
    first type is (0, 1; 0). Some 50 to 200 types.
    """
    # Cells from 0 to 1, symmetric, that grow from either end.
    half = np.cumsum(min(0.02, 0.06 / eps0) * 1.5 ** np.arange(60))
    half = half[half < 0.4]
    values = np.concatenate(([0.0], half, 1.0 - half[::-1], [1.0]))
    reach = np.maximum(np.diff(values, prepend=0.0), np.diff(values, append=1.0))
    types = [_laplace_type(eps0, 0.0, 1.0, w, r, cells) for w, r in zip(values, reach, strict=True)]
    worst = _laplace_rows(eps0, (0.0, 1.0, 0.0), cells)
    standard = _Yardstick([worst, worst[[1, 0, 2]]], n, allowance, _exponents)

    gap = 0.9
    while not standard.admits([near := _near_pairs(eps0, gap)]) and gap > 1e-6:
        gap *= 0.8
    types.append(near)

    def cover(low: float, high: float) -> Iterator[list[Array]]:
        lower = _below(low, high)
        targets = ((low, 1.0), (1.0, low))
        yield [_laplace_type(eps0, *pair, w, lower, cells) for pair in targets for w in (0.0, -lower)]
        yield _bumps(eps0, low, high, cells)

    types.extend(_targets(1.0 - gap, cover, standard))
    return tuple(types)


def _below(low: float, high: float) -> float:
    """e of step 3: contracting (low, 1; -e) by r = (1 - high)/(1 - low) towards 1 gives (high, 1; 0)."""
    return (high - low) / (1.0 - high)


def _mean_ratio(gap: float) -> float:
    """g of step 4, for two normal laws `gap` standard deviations apart, rounded up."""
    return math.exp(0.125 * gap * gap) * (1.0 + 1e-14)


def _targets(
    end: float, cover: Callable[[float, float], Iterable[list[Array]]], standard: _Yardstick
) -> Iterator[Array]:
    """Types of cells that cover 0 <= x <= end: always the largest cell that the standard admits."""
    x, first = 0.0, 0
    while x < end:
        for k in range(max(0, first - 2), len(STEPS)):
            high = x + STEPS[k] * (1.0 - x)
            types = next(filter(standard.admits, cover(x, high)), None)
            if types is not None:
                break
        else:  # no cell is good enough; few bad ones will have to do
            high = x + FALLBACK * (1.0 - x)
            types = next(iter(cover(x, high)))
        yield from types
        x, first = high, k


def _bumps(budget: float, low: float, high: float, cells: int) -> list[Array]:
    """Types for (x, 1; 0) and (1, x; 0), low <= x <= high: step 3a."""
    width = high - low
    mass = _bump_mass(budget * width)
    point = 0.5 * math.exp(-budget * high) * math.tanh(0.5 * budget * width)  # R_0 below a bump
    types = []
    for x in (low, high):
        main = _laplace_rows(budget, (x, 1.0, 0.0), cells)
        for end in (low, high):
            # Reports when R_x is the bump, moved to `end`: the cell [low, high] is kept whole.
            nodes = np.unique(np.append(np.linspace(0.0, 1.0, 9), [low, high]))
            nodes = nodes[(nodes <= low) | (nodes >= high)]
            one, other = _laplace_masses(budget, nodes, (1.0, 0.0), Side.UPPER)
            here = int(np.searchsorted(nodes, end))
            ratio = one[here] / other[here]
            other[here] = max(0.0, other[here] - point)
            one[here] = other[here] * ratio
            bump = np.array(
                [np.append(np.zeros(nodes.size), 1.0), np.append(one, point * ratio), np.append(other, point)]
            )
            rows = np.concatenate(((1.0 - mass) * main, mass * bump), axis=1)
            # Of V = R_x = ... + bump the bump itself is at most mass/point R_0.
            moving = rows[0] + (mass / point) * rows[2]
            moving[main.shape[1] :] = (mass / point) * rows[2, main.shape[1] :]
            types += [np.array([rows[0], rows[1], moving, rows[2]]), rows[[1, 0, 1, 2]]]
    return types


def _bump_mass(height: float) -> float:
    """1 - 1/cosh(height/2): what the mixture of two values lacks at most, eps0 times their distance."""
    return 2.0 * math.sinh(0.25 * height) ** 2 / math.cosh(0.5 * height)


def _near_pairs(budget: float, gap: float) -> Array:
    """Step 4: binary randomised response of budget eps0 gap, and e^-eps0 times the mean of its laws."""
    tilt = 1.0 / (1.0 + math.exp(-budget * gap))
    near = 0.5 * math.exp(-budget)
    return np.array([[tilt, 1.0 - tilt], [1.0 - tilt, tilt], [tilt, 1.0 - tilt], [near, near]])


def gaussian_attack(
    sigma: float, *, first: float, second: float, others: float,
    truncated_mass: float = 1e-15, cells: int = 2 * NOISE_CELLS,
) -> Array:  # fmt: skip
    """As `laplace_attack`, for noise N(0, sigma^2).

    Beyond the points that R_first and R_second pass with probability `truncated_mass`, in (0, 0.1), reports are
    merged. Raises ValueError where densities underflow.
    """
    from scipy.special import ndtr

    inputs = [first, second, others]
    low, high = _ends(sigma, inputs, truncated_mass)
    ends = _quantiles(sigma, low, high, cells)
    tails = [[ndtr((low - x) / sigma), ndtr((x - high) / sigma)] for x in inputs]
    left, right = np.hsplit(np.array(tails), 2)
    return np.concatenate((left, _gaussian_masses(sigma, ends, inputs), right), axis=1)


def _gaussian_masses(width: float, ends: Array, inputs: Iterable[float]) -> Array:
    """Masses of cells under the inputs' laws, shape (inputs, cells)."""
    rows = []
    for x in inputs:
        y, weight = _panels(width, ends, max(abs(ends[0] - x), abs(ends[-1] - x)))
        rows.append(np.sum(weight * np.exp(-0.5 * ((y - x) / width) ** 2), axis=1))
    return np.array(rows)


def gaussian_types(
    sigma: float, n: int, *, truncated_mass: float = 1e-15, cells: int = 96, allowance: float = 0.004
) -> tuple[Array, ...]:
    """As `laplace_types`, for noise N(0, sigma^2) and V the blanket, inf_x R_x / gamma.

    truncated_mass : beyond the points that R_a and R_b pass with this probability, in (0, 0.1), the target's report
        counts as given away: groups without mass under R_w.

    Others who report from V are not covered: see `gaussian_uncovered_user`. Some 50 types, more for small sigma and
    large n. Raises ValueError where densities underflow.
    """
    gamma = math.erfc(1.0 / (2.0 * math.sqrt(2.0) * sigma))
    known: dict[tuple[float, float, float], _Cells] = {}

    def law(a: float, b: float, w: float) -> _Cells:
        if (a, b, w) not in known:
            worst = {a, b} == {0.0, 1.0} and w == 0.0
            known[a, b, w] = _Cells.of(sigma, a, b, w, truncated_mass, cells if worst else cells // 3)
        return known[a, b, w]

    def others(v: float, cuts: list[tuple[float, float]]) -> list[Array]:
        """(0, 1; v) and (1, 0; v), v at an end of `cuts`: step 2."""
        return [law(*pair, v).scaled(2, cuts) for pair in ((0.0, 1.0), (1.0, 0.0))]

    def targets(x: float, cuts: list[tuple[float, float]]) -> list[Array]:
        """(x, 1; 0) and (1, x; 0), x at an end of `cuts`: step 3."""
        more = max(_mean_ratio((high - low) / sigma) for low, high in cuts)
        ahead = law(x, 1.0, 0.0).rows * np.array([[more], [1.0], [1.0]])
        return [ahead, law(1.0, x, 0.0).scaled(1, cuts)]

    standard = _Yardstick([law(0.0, 1.0, 0.0).rows, law(1.0, 0.0, 0.0).rows], n, allowance, _sizes)
    found = []
    for make, end in ((others, 0.5), (targets, 1.0)):
        cuts = standard.cut(end, make)
        for i, x in enumerate(cuts):
            found += make(x, list(pairwise(cuts[max(0, i - 1) : i + 2])))
    return tuple(rows[[0, 1, 2, 2]] / [[1.0], [1.0], [gamma], [1.0]] for rows in found)


def gaussian_uncovered_user(sigma: float, *, truncated_mass: float = 1e-15, cells: int = 256) -> Array:
    """Rows R_0, R_1, V, V: of all targets next to a user who reports from V, the blanket, the worst; an upper side."""
    first, second, blanket = gaussian_groups(sigma, side=Side.UPPER, truncated_mass=truncated_mass, cells=cells)
    law = blanket / math.erfc(1.0 / (2.0 * math.sqrt(2.0) * sigma))
    return np.array([first, second, law, law])


def _share_of_two(height: Array) -> Array:
    """min over c of e^(c h)/(1 - c + c e^h), h = height >= 0: geometric over arithmetic mean of 1 and e^h, or less."""
    small = np.minimum(height, 700.0)
    with np.errstate(invalid="ignore"):
        ratio = np.where(small > 1e-3, small / np.expm1(small), 1.0)
    exact = ratio * np.exp(1.0 - ratio) * (1.0 - 1e-12)
    found: Array = np.where(small > 1e-3, exact, 1.0 - 0.125 * small * small - 1e-12)
    return found


class _Cells(NamedTuple):
    """A law (a, b; w) on corners of cells of reports: rows R_a, R_b, R_w, and the cell each group comes from."""

    rows: Array
    low: Array
    high: Array
    width: float

    @classmethod
    def of(cls, width: float, a: float, b: float, w: float, truncated_mass: float, count: int) -> _Cells:
        """Beyond the points that R_a and R_b pass with probability `truncated_mass`, R_w is dropped."""
        from scipy.special import ndtr

        low, high = _ends(width, [a, b], truncated_mass)
        far = max((a, b), key=lambda x: abs(x - w))
        ends = _quantiles(width, low, high, count, 2.0 * far - w, variance=4.0)
        # Rare reports of large ratios are summed one by one (`pairs.jumps`): there cells are small.
        ends = np.union1d(ends, np.arange(2.0 * far - w, high, TAIL_STEP * width**2))
        tails = np.zeros((3, 2))
        for k, x in enumerate((a, b)):
            tails[k, k] = ndtr((low - x) / width) + ndtr((x - high) / width)
        rows, start, stop = [tails], [[-math.inf] * 2], [[math.inf] * 2]
        y, weight = _panels(width, ends, max(abs(end - x) for end in (low, high) for x in (a, b, w)))
        density = weight * np.exp(-0.5 * ((y - w) / width) ** 2)
        rise = [_share(ends, y, (x - w) / width**2) for x in (a, b)]
        ratio = [np.exp((x - w) * (2.0 * ends - x - w) / (2.0 * width**2)) for x in (a, b)]
        for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)):
            mass = np.sum(density * rise[0][i] * rise[1][j], axis=1)
            sides = (slice(0, -1), slice(1, None))
            rows.append(np.array([mass * ratio[0][sides[i]], mass * ratio[1][sides[j]], mass]))
            start.append(ends[:-1].tolist())
            stop.append(ends[1:].tolist())
        found = np.concatenate(rows, axis=1)
        kept = np.any(found > 0.0, axis=0)
        return cls(found[:, kept], np.concatenate(start)[kept], np.concatenate(stop)[kept], width)

    def scaled(self, row: int, cuts: list[tuple[float, float]]) -> Array:
        """One row times what its law keeps where it stands for the values of `cuts`: step 2."""
        share = np.ones(self.low.size)
        for low, high in cuts:
            middle = 0.5 * (low + high)
            reach = np.maximum(np.abs(self.low - middle), np.abs(self.high - middle))
            share = np.minimum(share, _share_of_two((high - low) / self.width**2 * reach))
        rows: Array = self.rows.copy()
        rows[row] *= share
        return rows


class _Yardstick:
    """How bad (0, 1; 0) and (1, 0; 0) are among n users; it only serves to choose cells.

    Types, of rows R_a, R_b and at last R_w, are admitted if no cost is above 1 + allowance times the worse of those.
    """

    def __init__(self, both: list[Array], n: int, allowance: float, costs: _Costs) -> None:
        self._least = min(0.03, 0.1 / n**0.25)  # what a cell raises the mean by is a part of the sum's deviation then
        self._limits = [
            (cost, (1.0 + allowance) * max(map(cost, both)))
            for cost in costs(n, math.sqrt(max(map(_variance, both)) / n))
        ]

    def admits(self, types: Iterable[Array]) -> bool:
        return all(cost(rows) <= limit for rows in types for cost, limit in self._limits)

    def cut(self, end: float, make: Callable[[float, list[tuple[float, float]]], list[Array]]) -> list[float]:
        """Points from 0 to `end`, as far apart as this allows."""
        cuts = [0.0]
        while cuts[-1] < end:
            low, high = cuts[-1], end
            while high - low > self._least and not all(self.admits(make(x, [(low, high)])) for x in (low, high)):
                high = low + 0.75 * (high - low)
            cuts.append(high)
        return cuts


_Costs = Callable[[int, float], list[Callable[[Array], float]]]


def _exponents(n: int, scale: float) -> list[Callable[[Array], float]]:
    """E(e^x - 1 - x), x = tilt (L - E L): the variance, and an exponent five deviations out; for laws of one mean."""

    def cost(rows: Array, expm1_eps: float, tilt: float) -> float:
        one, two, other = rows[[0, 1, -1]][:, rows[-1] > 0.0]
        mean = float(np.sum(rows[0] - expm1_eps * rows[1]))
        x = tilt * np.append((one - expm1_eps * two) / other - mean, -mean)
        mass = np.append(other, max(0.0, 1.0 - float(np.sum(other))))
        x = np.minimum(x, LARGEST_EXPONENT)
        return float(mass @ np.where(np.abs(x) < 1e-4, 0.5 * x * x, np.expm1(x) - x))

    measures = ((1.0, 1e-3 / n), (1.0 + 5.0 * scale, 5.0 / (n * scale)))
    return [partial(cost, expm1_eps=expm1_eps, tilt=tilt) for expm1_eps, tilt in measures]


def _sizes(n: int, scale: float) -> list[Callable[[Array], float]]:
    """About the integral of the modulus at s = 1 + z deviations, on a line at the standard's saddle point.

    Beyond 1 its root is taken: what counts is epsilon. For laws of several means.
    """
    from scipy.special import erfcx

    def size(rows: Array, z: float) -> float:
        expm1_eps = z * scale
        one, two, other = rows[[0, 1, -1]][:, rows[-1] > 0.0]
        law = (one - expm1_eps * two - two) / other
        # A mean that is moved counts twice: the contour in use is not made for laws of little variance.
        mean = (2.0 * float(np.sum(rows[0] - (1.0 + expm1_eps) * rows[1])) + expm1_eps) / scale
        second = float(other @ law**2) / (n * scale**2)
        third = float(other @ law**3) / (n**2 * scale**3)
        c = 0.5 * (z + math.sqrt(z * z + 8.0))
        exponent = c * mean + c * c * second + c**3 * third / 6.0
        root = c * math.sqrt(0.5 * second)
        log = exponent + math.log(erfcx(root) / (2.0 * c)) - root * root
        return math.exp(min(log / max(1.0, z), 700.0))

    return [partial(size, z=z) for z in (0.0, 1.0, 4.0)]


def _variance(rows: Array) -> float:
    """Of (R_a - R_b)/R_w under R_w."""
    one, two, other = rows[:, rows[2] > 0.0]
    return float(np.sum((one - two) ** 2 / other))


def _laplace_type(budget: float, a: float, b: float, w: float, reach: float, cells: int) -> Array:
    """For others in cells of width up to `reach` next to w: what step 2 leaves of R_w."""
    rows = _laplace_rows(budget, (a, b, w), cells)
    rows[2] /= math.cosh(0.5 * budget * reach)
    return rows[[0, 1, 0, 2]]


def _laplace_rows(budget: float, inputs: tuple[float, ...], cells: int) -> Array:
    """The inputs' laws on nodes, reports moved to the ends of their cells; exact for each input."""
    low = min(inputs)
    steps = math.ceil(cells * (1.0 - low))
    ends = np.union1d(np.linspace(low, 1.0, steps + 1), inputs)
    return _laplace_masses(budget, ends, inputs, Side.UPPER)


def _ends(width: float, inputs: list[float], truncated_mass: float, right: float | None = None) -> tuple[float, float]:
    """Where the least and the largest input leave out `truncated_mass`; or `right`."""
    from scipy.special import ndtri

    reach = -width * float(ndtri(truncated_mass))
    low, high = min(inputs) - reach, max(inputs) + reach if right is None else right
    farthest = max(high - min(inputs), max(inputs if right is None else [right]) - low)
    if not 0.5 * (farthest / width) ** 2 <= LARGEST_EXPONENT:
        raise ValueError(
            f"sigma={width!r} with truncated_mass={truncated_mass!r} needs densities of exp(-{LARGEST_EXPONENT:g}) or"
            " less; use a larger truncated_mass"
        )
    return low, high


def _quantiles(
    width: float, low: float, high: float, cells: int, centre: float | None = None, longest: float = math.inf,
    variance: float = 12.0,
) -> Array:  # fmt: skip
    """Cell ends: quantiles of the normal law with `variance` times that of the noise around `centre`, or the middle.

    So wide, because what decides an epsilon are rare reports of large ratios.
    """
    from scipy.special import ndtr, ndtri

    middle = 0.5 * (low + high) if centre is None else centre
    spread = math.sqrt(variance) * width
    mass = np.linspace(ndtr((low - middle) / spread), ndtr((high - middle) / spread), cells + 1)
    graded = middle + spread * ndtri(mass[1:-1])
    graded = graded[(low < graded) & (graded < high)]
    # Far out equal steps: no likelihood ratio grows by more than about exp(1/2) in one.
    longest = min(longest, 0.5 * width**2)
    even = np.linspace(low, high, max(2, math.ceil((high - low) / longest) + 1))
    ends = np.union1d(graded, even)
    kept = np.append(np.diff(ends) > 1e-6 * width, True)
    kept[0] = True
    return np.asarray(ends[kept])


def _panels(width: float, ends: Array, reach: float) -> tuple[Array, Array]:
    """Gauss-Legendre nodes and weights (over sigma sqrt(2 pi)) in each cell, shape (cells, nodes).

    Panels are so short that no exponent varies by more than 1 in one.
    """
    longest = min(0.25 * width, width * width / reach)
    panels = max(1, math.ceil(float(np.max(np.diff(ends))) / longest))
    nodes, weights = np.polynomial.legendre.leggauss(LEGENDRE)
    offset = ((np.arange(panels)[:, None] + 0.5 * (1.0 + nodes)) / panels).ravel()
    step = np.diff(ends)[:, None]
    share = np.tile(weights, panels) / (2.0 * panels * width * math.sqrt(2.0 * math.pi))
    return ends[:-1, None] + step * offset, step * share


def _share(ends: Array, y: Array, slope: float) -> tuple[Array, Array]:
    """Shares of reports y for the lower and the upper end that keep e^(slope y); all down at slope 0."""
    if slope == 0.0:
        return np.ones_like(y), np.zeros_like(y)
    step = np.diff(ends)[:, None]
    left = y - ends[:-1, None]
    total = np.expm1(slope * step)
    up = np.expm1(slope * left) / total
    down = np.exp(slope * left) * np.expm1(slope * (step - left)) / total
    return down, up
