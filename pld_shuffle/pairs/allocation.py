"""Hidden among k steps: one contribution in a step that nobody learns, noise in every step.

A central step among k is what a report among n users is. With P the law of a step's output with the contribution, Q
without it, and l = dP/dQ, the outputs of all steps have the likelihood ratio (1/k) sum of l(z_t), so that

    H_s = E (1/k) (sum over steps of L_t)_+,   L_t = (dP - s dQ)/dW (z_t),  z_t ~ W independent,  W = Q :

the formula of `slots`, with steps for slots. Adaptive steps, of any dimension, lie below it (docs/shuffled_batches.md).
It is evaluated for a finite law of one step on a side (section 4 there): the atoms of any pair (`PairSteps`), or cells
of Gaussian noise around points of a line, whose masses are spread to three vertices each, or merged (`GaussianSteps`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import NamedTuple

import numpy as np

from ..numerics.sides import ROUNDOFF, Array, Bounds, Index, Side
from ..numerics.tuning import RATIO_KNOTS, STEP_CELLS, STEP_POINTS, STEP_RTOL, SUM_RTOL, SUMMED_STEPS
from .discrete import OrderedPair
from .pair import Atoms, Cohort, Pair, Resolution, power_below
from .profile import ProfilePair, ProfilePoints
from .ratio_sums import EVERYWHERE, RatioLaw, Wanted, ratio_sum
from .replaced import FARTHEST, LEGENDRE, WIDEST, each_summed
from .slots import SlotLaw, SlotPair

ROUNDED = 1e-13  # mass that is told from rounding
# Deviations around the points with narrow cells, as a rule and of many steps of replacement; widest over narrowest.
CENTRAL, MIDDLE, LONGEST = ((4.0, 7.5), (2.5, 4.0), 6.0)
# rtol of values that make do with few cells, or with a sum for both orders; and of many values that want more.
LOOSE, FINEST = 1e-4, 1.5e-5
# Width of a step's cells for one value, and log(1/delta) beyond which it falls; deviations in as many cells as knots,
# for a law.
CELL, DEEP, CELLS = 0.004, 14.0, 16.0
LEAST_STEPS, HIGHEST_SCALE = 10, 3.4  # where the ratio of an epoch is not near 0
MISSED_SHARE = 2e-5  # of a profile's values that questions allow to be missed
# One value: places that are looked at, points between them, deviations, and points of a lattice; cells of a deviation
# at most; and of what rtol allows, shares for cells, and for the integral.
PLACES, FINE, REACH, LATTICE, CLOSEST, SHARES = 801, 8, 8.0, 4096, 1e3, (20.0, 5.0)
LEAST_TAIL, USUAL_TAIL = 1e-290, 1e-17
LEAST_WIDTH = 0.01  # scales between points of replacement


class Near(NamedTuple):
    """What cells are wanted for: one value of so many steps at a growth, which they may change by `allowed`, relative.

    rate : the probability that the target is in any step.
    """

    steps: int
    rate: float
    growth: float
    allowed: float


@dataclass(frozen=True)
class GaussianSteps:
    """Gaussian noise around points -1, 0, 1: the target's on both datasets, and everybody else's in the slot.

    sigma : the noise in units of the distance from 0 to 1.
    """

    sigma: float
    first: int
    second: int
    others: int

    def masses(self, side: Side, tail: float, cell: float, near: Near | None = None) -> tuple[Array, float]:
        """Rows (first, second, others) of a law on a side, and the relative error of the masses.

        tail : mass of the target's law that may be given away. cell : width of cells, in deviations, if not `near`.
        """
        centres = [self.first, self.second, self.others]
        noise, places = self.sigma, [1 - centre for centre in centres]
        if len(set(centres)) == 2:  # the two points are the outer ones
            noise = 2.0 * self.sigma / (max(centres) - min(centres))
            places = [0 if centre == max(centres) else 2 for centre in centres]
        wanted = None if near is None else partial(_near_density, noise, tuple(1.0 - p for p in places), near)
        middle = self.first == -self.second and cell >= STEP_CELLS[-1]
        edges = _edges(noise, tail, cell, wanted=wanted, central=MIDDLE if middle else CENTRAL)
        rows = _spread(noise, edges) if side is Side.UPPER else _merged(noise, edges)
        masses = rows[places]
        if side is Side.UPPER:
            masses[1, -1] = 0.0
            masses = np.append(masses, [[masses[0, -1]], [0.0], [0.0]], axis=1)
            masses[0, -2] = 0.0
        return masses, _mass_error(noise, edges)

    def reversed(self) -> GaussianSteps:
        """The datasets exchanged."""
        return replace(self, first=self.second, second=self.first)

    max_loss = Bounds(math.inf, math.inf)

    @property
    def ratio(self) -> tuple[GaussianSteps, bool] | None:
        """Steps whose first law over the others' decides everything, and whether the datasets are exchanged."""
        if self.others not in (self.first, self.second):
            return None
        away = self.first + self.second - self.others
        return GaussianSteps(self.sigma / abs(away - self.others), 1, 0, 0), self.others == self.first

    @property
    def scale(self) -> float:
        """Of the loss of one step."""
        return abs(self.first - self.second) / self.sigma


@dataclass(frozen=True, eq=False)
class PairSteps:
    """Steps with any pair (P, Q), or backwards (Q, P); the others' law is Q.

    What masses of Q lack of 1, by rounding or windows, has the largest possible value in an upper law, the smallest in
    a lower one.
    """

    pair: Pair
    backwards: bool = False

    def masses(self, side: Side, tail: float, cell: float, near: Near | None = None) -> tuple[Array, float]:
        """As `GaussianSteps.masses`."""
        upper, pair = side is Side.UPPER, self.pair
        one_order = isinstance(pair, OrderedPair)
        mirrored = self.backwards and not one_order  # then its atoms are those of (Q, P)
        if mirrored and isinstance(pair, ProfilePair) and pair.reverse is not None:
            pair = pair.reverse
        resolution = Resolution(cell * pair.scale, truncated_mass=tail, size_width=1e-6)
        [atoms] = pair.atoms([side], resolution)
        lost = atoms.infinity_mass + (atoms.truncated_mass if upper else 0.0)
        ahead = np.append(atoms.mass, lost)
        behind = np.append(atoms.mass * np.exp(-atoms.loss), 0.0)
        first, second = (behind, ahead) if self.backwards and one_order else (ahead, behind)
        others = first if self.backwards else second
        rows = np.array([first, second, others])
        spare = max(0.0, -math.fsum([-1.0, *others.tolist()]))
        if one_order and spare > ROUNDED:  # outcomes that P never has
            known, spare = spare - ROUNDED, ROUNDED
            alone = [known, 0.0, known] if self.backwards else [0.0, known, known]
            rows = np.append(rows, np.array(alone)[:, None], axis=1)
        if self.backwards:
            held = others > 0.0
            worst = 0.0 if upper else float(np.max(second[held] / others[held]))
            rest = [spare, spare * worst, spare]
        else:
            rest = [0.0, 0.0 if upper else spare, spare]
        error = atoms.loss_error + ROUNDOFF * (8.0 + 4.0 * float(np.abs(atoms.loss).max(initial=0.0)))
        return np.append(rows, np.array(rest)[:, None], axis=1), error

    def reversed(self) -> PairSteps:
        """The datasets exchanged."""
        return replace(self, backwards=not self.backwards)

    @property
    def ratio(self) -> tuple[PairSteps, bool]:
        """As `GaussianSteps.ratio`."""
        return self, self.backwards

    @property
    def scale(self) -> float:
        """Of the loss of one step."""
        return self.pair.scale

    @property
    def max_loss(self) -> Bounds:
        """The largest loss of one step: all steps may have it."""
        pair = self.pair
        if not self.backwards:
            return pair.max_loss
        if isinstance(pair, OrderedPair):
            known = pair.losses
            spare = -math.fsum([-1.0, *(known.mass * np.exp(-known.loss)).tolist()])
            if spare > 2.0 * known.error:  # outcomes that P never has
                return Bounds(math.inf, math.inf)
            top = -float(known.loss[0])
            return Bounds(max(0.0, top - known.error), max(0.0, top + known.error))
        reverse = pair.reverse if isinstance(pair, ProfilePair) else None
        return pair.max_loss if reverse is None else reverse.max_loss


Steps = GaussianSteps | PairSteps
SURE = Bounds(1.0, 1.0)


@dataclass(frozen=True)
class StepsLaw:
    """The slot law of a contribution hidden in one of `count` steps; with probability 1 - rate it is in none."""

    steps: Steps
    count: int
    rate: Bounds = SURE

    def at(
        self, side: Side, tail: float, cell: float = STEP_CELLS[1], near: tuple[float, float] | None = None
    ) -> SlotLaw:
        """The law on a side, where the target's tail of that mass may be given away; cell : in deviations.

        near : for one value at that growth, which may err by so much.
        """
        return _slot_law(self, side, _power(tail), cell, near)

    def reversed(self) -> StepsLaw:
        """The datasets exchanged."""
        return replace(self, steps=self.steps.reversed())


@dataclass(frozen=True)
class HiddenStepPair(SlotPair):
    """One order of a `StepsLaw`; epochs : so many such rounds, one after the other (`repeated`); place : of `near`.

    Where the likelihood ratio of a step decides everything the law of their sum is made (`ratio_sums`). One value for
    many steps is the integral of all slot laws.
    """

    law: StepsLaw
    epochs: int = 1
    place: float | None = None

    most_points = STEP_POINTS

    @property
    def loosened(self) -> bool:  # type: ignore[override]
        return not self._each

    @property
    def _each(self) -> bool:
        """Whether sums are made for every value: then tests, and not one law, are what lies below all of them."""
        return self._replaced and self._summed(np.ones(1), 0.0)

    @property
    def _ratio(self) -> tuple[Steps, bool] | None:
        return self.law.steps.ratio if self.law.rate == SURE else None

    def _sum(
        self, side: Side, truncated_mass: float, number: float, rtol: float | None = None
    ) -> tuple[RatioLaw, bool]:
        """The law of the product of all rounds' ratios, and whether the datasets are exchanged.

        number : of knots, about; at most, where one value is asked for, and that to `rtol`.
        """
        assert self._ratio is not None
        steps, backward = self._ratio
        log_delta = math.log(max(truncated_mass, LEAST_TAIL) / MISSED_SHARE)
        top = int(backward and isinstance(steps, PairSteps))
        depth, tail = max(6.0, -2.0 * round(0.5 * log_delta)), _power(0.25 * truncated_mass / self.epochs)
        wanted = Wanted(depth, tail / self.epochs)
        if rtol is not None:  # a rough one serves both orders
            above = None if rtol >= LOOSE else not backward
            wanted = replace(wanted, one=(log_delta, SUM_RTOL[0] * rtol), above=above)
        return _ratio_sum(steps, top, side, self.law.count, tail, round(number), wanted, self.epochs), backward

    def _summed(self, expm1_eps: Array, rtol: float) -> bool:
        """Whether laws are summed: contours are cheaper of many steps, and dear of few or where single ones count."""
        if self._ratio is None and not self._replaced:
            return False
        always, *each, replaced = SUMMED_STEPS
        count, most = self.law.count, float(expm1_eps.max())
        if self._replaced:
            return count <= replaced * max(1.0, 0.25 * self.law.steps.scale**2)
        return self.epochs > 1 or count <= always or most > each[rtol < LOOSE] * math.sqrt(count) * self.scale

    @property
    def _replaced(self) -> bool:
        """Whether this is the pair of replacement."""
        return self.law.rate == SURE and isinstance(self.law.steps, GaussianSteps) and self.reverse is None

    def profile(self, expm1_eps: Array, rtol: float, truncated_mass: float) -> Bounds:
        alone, steps = expm1_eps.size == 1, self.law.steps
        if self._each:
            assert isinstance(steps, GaussianSteps)
            tail = _power(0.25 * truncated_mass)
            if self.half is not None:
                return each_summed(steps.sigma, self.law.count, self.half, tail, expm1_eps, rtol)
            both = [each_summed(steps.sigma, self.law.count, side, tail, expm1_eps, rtol) for side in Side]
            return Bounds(both[0].lower, both[1].upper)
        if self._summed(expm1_eps, rtol):
            usual, largest, *_ = RATIO_KNOTS
            number = usual * math.sqrt(math.log2(2 * self.law.count * self.epochs))
            wanted = (largest, rtol) if alone else (number, None)
            ends = []
            for side in Side:
                law, backward = self._sum(self.half or side, truncated_mass, *wanted)
                ends.append(np.array([law.profile(side, x, backward) for x in expm1_eps.tolist()]))
            return Bounds(ends[0], np.minimum(1.0, ends[1]))
        near, cell = None, STEP_CELLS[int(rtol < LOOSE) + int(rtol < FINEST and not alone)]
        if rtol < LOOSE:
            near = None if self.place is None else (self.place, SHARES[0] * rtol)
            rtol = max(SHARES[1] * rtol, STEP_RTOL)
        below, above = (self.law.at(self.half or side, min(0.05, 0.25 * truncated_mass), cell, near) for side in Side)
        found = above.profile(expm1_eps, rtol)
        return found if below is above else Bounds(below.profile(expm1_eps, rtol).lower, found.upper)

    def near(self, expm1_eps: float) -> HiddenStepPair:
        return replace(self, place=expm1_eps)

    def _points(self, resolution: Resolution) -> ProfilePoints:
        """Sums of their own for every point are dear: finer points than these are not made, and none of them twice."""
        if not self._each:
            return super()._points(resolution)
        width, centre = resolution.points
        width = max(width, LEAST_WIDTH * self.scale)
        tail = power_below(max(LEAST_TAIL, resolution.truncated_mass), 1e-6)
        return _known_points(self, width, tail, centre, resolution.tilt)

    def atoms(self, sides: Sequence[Side], resolution: Resolution) -> list[Atoms]:
        if self._ratio is None:
            return super().atoms(sides, resolution)
        _, most, least, each = RATIO_KNOTS
        number = min(max(each * self.scale / resolution.points[0], least), most)
        number = 2.0 ** (0.25 * math.ceil(4.0 * math.log2(number)))
        sums = [self._sum(self.half or side, resolution.truncated_mass, number) for side in sides]
        tail = 0.1 * resolution.truncated_mass
        return [law.atoms(side, backward, tail) for side, (law, backward) in zip(sides, sums, strict=True)]

    def repeated(self, count: int) -> list[tuple[Pair, int]]:
        """All rounds as one: the product of their likelihood ratios, where small ones are rare."""
        steps = self.law.steps
        if self._ratio is None or not isinstance(steps, GaussianSteps) or count == 1:
            return [(self, count)]
        if self.law.count < LEAST_STEPS or steps.scale > HIGHEST_SCALE:
            return [(self, count)]
        return [(replace(self, epochs=self.epochs * count), 1)]

    @property
    def max_loss(self) -> Bounds:
        return self.law.steps.max_loss

    @cached_property
    def scale(self) -> float:  # type: ignore[override]
        return math.sqrt(self.epochs) * self._usual(Side.UPPER).scale

    @property
    def reverse(self) -> HiddenStepPair | None:  # type: ignore[override]
        steps = self.law.steps
        if isinstance(steps, GaussianSteps) and steps.first == -steps.second and steps.others == 0:
            return None  # the mirror image
        return replace(self, law=self.law.reversed())

    def log_tail(self, expm1_eps: Array) -> Array:
        return super().log_tail(expm1_eps) if self.epochs == 1 else np.zeros(expm1_eps.size)


@lru_cache(maxsize=8)
def _known_points(pair: HiddenStepPair, width: float, tail: float, centre: float | None, tilt: float) -> ProfilePoints:
    spaced = 0.0 if centre is None else width
    resolution = Resolution(width, tail, pull=(centre or 0.0) ** 2, point_width=spaced, tilt=tilt)
    return super(HiddenStepPair, pair)._points(resolution)


# --- laws of one step ---------------------------------------------------------------------------------


@lru_cache(maxsize=32)
def _ratio_sum(
    steps: Steps, top: int, side: Side, count: int, tail: float, number: int, wanted: Wanted, epochs: int
) -> RatioLaw:
    cell = CELLS / number if wanted.one is None else CELL * min(1.0, DEEP / wanted.depth)
    law, guide = (_one_step(steps, top, one, tail, cell) for one in (side, Side.LOWER))
    return ratio_sum(law, guide, side, count, number, wanted, epochs)


@lru_cache(maxsize=8)
def _one_step(steps: Steps, top: int, side: Side, tail: float, cell: float) -> RatioLaw:
    """The likelihood ratio of one step."""
    masses, error = steps.masses(side, tail, cell)
    law = RatioLaw.of(masses, top, error)
    if isinstance(steps, GaussianSteps):
        law = replace(law.lifted() if side is Side.UPPER else law, whole=True).settled(1.0, law.error)
    return law


@lru_cache(maxsize=64)
def _slot_law(law: StepsLaw, side: Side, tail: float, cell: float, near: tuple[float, float] | None) -> SlotLaw:
    wanted = None if near is None else Near(law.count, float(law.rate.upper), *near)
    masses, error = law.steps.masses(side, tail, cell, wanted)
    share = float(law.rate.upper if side is Side.UPPER else law.rate.lower)
    return SlotLaw.of(law.count, masses, error, whole=True).sampled(Cohort(share))


def _power(tail: float) -> float:
    """A power of 100 below, so that laws are found again."""
    return max(LEAST_TAIL, power_below(tail if tail > 0.0 else USUAL_TAIL, 0.01))


@lru_cache(maxsize=16)
@np.errstate(all="ignore")
def _near_density(noise: float, centres: tuple[float, ...], near: Near, end: float) -> Array:
    """How many cells in a deviation one value wants, at PLACES from -end to end; centres (first, second, others).

    A cell of width w and Q-mass q changes E(S)_+, S = X_1 + ... + X_k, by k q w^2 f(-X)/12, with the density f of S. So
    cells are best like (q f(-X))^(-1/3). It steers, and certifies nothing.
    """
    count, rate, growth, allowed = near
    z = np.linspace(-end, end, FINE * (PLACES - 1) + 1)
    mu, others = 1.0 / noise, centres[2]
    one, two = (np.exp((c - others) * mu * (z - 0.5 * (c + others) * mu)) for c in centres[:2])
    x = rate * (one - (1.0 + growth) * two) - (1.0 - rate) * growth
    slope = rate * mu * ((centres[0] - others) * one - (1.0 + growth) * (centres[1] - others) * two)
    mass = np.exp(-0.5 * (z - others * mu) ** 2)
    mass /= mass.sum()
    # What is some deviations beyond the strike bends nothing, and would be all there is under the tilt.
    far = count * growth
    far += REACH * math.sqrt(count * float(mass @ np.minimum(np.abs(x + growth), far + math.sqrt(count) * mu) ** 2))
    kept = np.abs(x) < far
    x = np.clip(x, -far, far)
    tilts = np.geomspace(0.01 / far, 600.0 / max(1e-300, float(x.max())), 61)
    moments = np.exp(np.outer(tilts, x[::FINE])) @ mass[::FINE] * FINE
    tilt = float(tilts[np.argmin(count * np.log(moments) - 2.0 * np.log(tilts))])
    tilted = mass * np.exp(tilt * x)
    tilted /= tilted.sum()
    wide = REACH * math.sqrt(count * float(tilted @ x**2))
    step = (max(far, wide) + wide) / LATTICE
    place = np.floor(x / step).astype(np.int64)
    density = _density_of_sum(count, place, x / step - place, tilted)
    above = np.arange(int(wide / step))
    value = float(density[: above.size] * np.exp(-tilt * step * above) @ above) * step * step
    bend = np.cbrt(count * tilted * kept * density[-place % LATTICE] * slope**2 / (value * (z[1] - z[0])))
    bend += EVERYWHERE[0] * bend.mean()
    return np.asarray((bend * math.sqrt(2.0 * end * float(bend.mean()) / (12.0 * allowed)))[::FINE])


def _density_of_sum(count: int, place: Index, share: Array, mass: Array) -> Array:
    """Masses of a sum on a periodic lattice, roughly; values have `share` at the place above their own."""
    parts = [np.bincount((place + k) % LATTICE, mass * part, LATTICE) for k, part in enumerate((1.0 - share, share))]
    log_phi = np.log(np.fft.rfft(parts[0] + parts[1]))
    # The variance that the lattice adds is taken off again.
    log_phi += float(mass @ (share * (1.0 - share))) * (1.0 - np.cos(2.0 * math.pi / LATTICE * np.arange(log_phi.size)))
    return np.asarray(np.maximum(0.0, np.fft.irfft(np.exp(count * log_phi), LATTICE)))


def _edges(
    noise: float, tail: float, cell: float, place: float | None = None,
    wanted: Callable[[float], Array] | None = None, central: tuple[float, float] = CENTRAL,
) -> Array:  # fmt: skip
    """Ends of cells, in deviations, between the points where all three laws have at most that tail; one is `place`.

    Cells are `cell` wide where the target's likelihood ratio comes from, and up to LONGEST times that elsewhere; or as
    `wanted` says. None is wider than the quadrature allows.
    """
    from scipy.special import ndtri

    mu = 1.0 / noise
    end = min(mu - float(ndtri(0.5 * tail)), FARTHEST - mu)
    widest = WIDEST / (end + mu)
    width = min(cell, widest)
    longest = min(LONGEST, widest / width)
    grid = np.linspace(-end, end, PLACES)
    away = np.maximum(0.0, np.maximum(-central[0] - mu - grid, grid - mu - central[1]))
    density = np.maximum(np.exp(-0.25 * away * away), 1.0 / longest) / width
    if wanted is not None and np.all(np.isfinite(found := wanted(end))):
        density = np.clip(found, 1.0 / widest, CLOSEST)
    number = np.append(0.0, np.cumsum(0.5 * (density[1:] + density[:-1]) * np.diff(grid)))
    shift = 0.0 if place is None else float(np.interp(place, grid, number)) % 1.0
    at = np.arange(1.0 + shift, number[-1] - 1.0)
    edges = np.concatenate(([-end], np.interp(at, number, grid), [end]))
    if place is not None and -end < place < end:
        edges[int(np.argmin(np.abs(edges[1:-1] - place))) + 1] = place
    return edges


def _mass_error(noise: float, edges: Array) -> float:
    """Relative error of the masses of cells between these ends: docs/shuffled_batches.md, section 4."""
    return (12.0 * (float(edges[-1]) + 1.0 / noise) ** 2 + 128.0) * ROUNDOFF


def _quadrature(edges: Array) -> tuple[Array, Array]:
    """Nodes, from their cells' lower ends, and weights, shape (cells, nodes), for exp(-x^2/2)/sqrt(2 pi)."""
    (node, weight), half = LEGENDRE, 0.5 * np.diff(edges)[:, None]
    return half * (1.0 + node), half * weight / math.sqrt(2.0 * math.pi)


def _tails(noise: float, edges: Array) -> tuple[Array, Array]:
    """Masses beyond both ends of the laws around 1, 0 and -1."""
    from scipy.special import ndtr

    centres = np.array([1.0, 0.0, -1.0]) / noise
    return ndtr(edges[0] - centres), ndtr(centres - edges[-1])


def _merged(noise: float, edges: Array) -> Array:
    """Masses of the cells and of what is beyond them, around 1, 0 and -1; shape (3, groups)."""
    offset, weight = _quadrature(edges)
    x = edges[:-1, None] + offset
    rows = [np.sum(weight * np.exp(-0.5 * (x - c / noise) ** 2), axis=1) for c in (1.0, 0.0, -1.0)]
    low, high = _tails(noise, edges)
    return np.concatenate((low[:, None], np.array(rows), high[:, None]), axis=1)


def _spread(noise: float, edges: Array) -> Array:
    """Masses around 1, 0 and -1 on vertices: the cells' ends, the vertices between them, and last all tails."""
    mu = 1.0 / noise
    offset, weight = _quadrature(edges)
    v = np.expm1(mu * offset) / np.expm1(mu * np.diff(edges))[:, None]
    density = weight * np.exp(-0.5 * (edges[:-1, None] + offset + mu) ** 2)
    left, between, right = (np.sum(density * share, axis=1) for share in ((1.0 - v) ** 2, 2.0 * v * (1.0 - v), v * v))
    third = np.concatenate((np.append(left, 0.0) + np.append(0.0, right), between))
    log_t = mu * edges + 0.5 * mu * mu
    gap = 0.5 * np.diff(log_t)
    log_middle = log_t[:-1] + gap
    second = third * np.exp(np.append(log_t, log_middle + np.log(np.cosh(gap))))
    first = third * np.exp(2.0 * np.append(log_t, log_middle) - mu * mu)
    low, high = _tails(noise, edges)
    return np.append(np.array([first, second, third]), (low + high)[:, None], axis=1)
