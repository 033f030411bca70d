"""The law of one round on one side, repeated: its moment function, and its characteristic function under a tilt.

With M(z) = E[exp(z L); L < inf] of one round, k rounds have M(z)^k. So an error of log M counts k times. All errors are
kept small, and known.

* On the real line: `log_moment` and `slopes`.
* Under the tilt c: phi(y) = M(c + iy)/M(c), around the tilted mean, of all laws of a ledger together, by `TiltedLaws`.

Both come from atoms (`Rounds`), or in closed form for Laplace noise (`LaplaceRounds`). What a trapezoidal sum adds to
delta, its *aliases*, is never negative; `RATES` bound it for the lower end. Proofs: docs/theory.md, section 7.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..numerics.lattice import SNAP, require_memory, split
from ..numerics.sides import ROUNDOFF, Array, Bounds, Side
from ..pairs.gaussian import LaplacePair
from ..pairs.pair import Atoms, Pair, Resolution

Complex = NDArray[np.complex128]

LARGEST_EXPONENT = 600.0  # of one atom
PLACED = 32.0 * ROUNDOFF  # rounding of masses on a lattice, relative to those of two neighbours
FAINT = 1e-24  # tilted mass of an atom that counts for nothing
OUTER = 1e-3  # weight of a law's tails that need not be known far out on the contour


def laplace_of(pair: Pair) -> Bounds | None:
    """The largest loss of a pair that is Laplace noise."""
    return pair.largest if isinstance(pair, LaplacePair) else None


@dataclass(frozen=True)
class Rounds:
    """Atoms of one round on one side, `count` times.

    total : the finite mass of the law that is meant, if known. mass_error : how far every mass may then be from that
    law's; at loss 0 the mass is what the others leave.
    """

    mass: Array
    loss: Array
    infinity_mass: float
    loss_error: float
    count: int
    total: float | None = None
    mass_error: Array | None = None

    @classmethod
    def of(
        cls, pair: Pair, count: int, resolutions: dict[Pair, Resolution], sides: Sequence[Side] = tuple(Side)
    ) -> list[MomentFunction]:
        """The law of a pair on each of `sides`.

        Lower atoms are merged, which hides, wherever they lie. Upper atoms of one cell stand for their splits
        onto the cell's ends, and must be placed, unless every atom is kept by itself.
        """
        if (limits := laplace_of(pair)) is not None:
            return [LaplaceRounds(limits.upper if side is Side.UPPER else limits.lower, count) for side in sides]
        resolution = resolutions[pair]
        return [
            cls._upper(atoms, resolution, count) if side is Side.UPPER else cls._raw(atoms, 0.0, count)
            for side, atoms in zip(sides, pair.atoms(sides, resolution), strict=True)
        ]

    @classmethod
    def _upper(cls, above: Atoms, resolution: Resolution, count: int) -> Rounds:
        if above.separate:
            return cls._raw(above, above.truncated_mass, count)
        step = resolution.step
        ends = math.ceil(float(np.abs(above.loss).max()) / step) + 2
        require_memory(ends)
        cells = resolution.cells(ends)
        knots = np.concatenate((-cells[:0:-1], cells))
        mass = split(above.mass, above.loss, step=step, knots=knots, ratio_error=above.ratio_error)
        # An atom's mass is split between neighbours; the lower share, 1 minus the other, is rounded like the whole.
        mass_error = (above.mass_error + PLACED) * (mass + np.append(mass[1:], 0.0))
        infinity_mass, loss_error = above.infinity_mass + above.truncated_mass, above.loss_error + 2.0 * SNAP * step
        loss = knots.astype(np.float64) * step
        return cls._held(mass, loss, infinity_mass, loss_error, count, above.total, mass_error)

    @classmethod
    def _raw(cls, atoms: Atoms, truncated_mass: float, count: int) -> Rounds:
        return cls._held(
            atoms.mass, atoms.loss, atoms.infinity_mass + truncated_mass, atoms.loss_error, count, atoms.total,
            atoms.mass_error * atoms.mass,
        )  # fmt: skip

    @classmethod
    def _held(
        cls, mass: Array, loss: Array, infinity_mass: float, loss_error: float, count: int,
        total: float | None, mass_error: Array,
    ) -> Rounds:  # fmt: skip
        held = mass > 0.0
        # A lattice loss is an index times a step: one more rounding.
        loss_error += 2.0 * ROUNDOFF * float(np.abs(loss).max())
        if not held.any():
            return cls(np.ones(1), np.full(1, -1e5), infinity_mass, loss_error, count)
        if total is None:
            return cls(mass[held], loss[held], infinity_mass, loss_error, count)
        mass_error[loss == 0.0] = float(mass_error.sum()) + 8.0 * ROUNDOFF
        return cls(mass[held], loss[held], infinity_mass, loss_error, count, total, mass_error[held])

    @property
    def size(self) -> int:
        return self.mass.size


class Moments:
    """Moment functions of several rounds, asked together: one array of atoms, one law after the other.

    counts : those of the laws. reach : the farthest that a law's least and largest loss are apart.
    """

    def __init__(self, laws: Sequence[MomentFunction]) -> None:
        self.counts = np.array([law.count for law in laws], np.float64)
        self.closed = [(i, law) for i, law in enumerate(laws) if isinstance(law, LaplaceRounds)]
        held = [(i, law) for i, law in enumerate(laws) if isinstance(law, Rounds)]
        self.index = np.array([i for i, _ in held], np.int64)
        self.sizes = np.array([law.mass.size for _, law in held], np.int64)
        self.starts = np.cumsum(self.sizes) - self.sizes
        self.loss = np.concatenate([*(law.loss for _, law in held), np.zeros(0)])
        mass = self._mass = np.concatenate([*(law.mass for _, law in held), np.zeros(0)])
        self.logs = np.log(mass)
        none = [np.zeros(law.mass.size) if law.mass_error is None else law.mass_error for _, law in held]
        self.mass_errors = np.concatenate([*none, np.zeros(0)]) / mass  # relative
        self._totals = np.array([math.nan if law.total is None else law.total for _, law in held])
        top, bottom = (self.over(self.loss, by) for by in (np.maximum, np.minimum))
        self._largest = np.maximum(np.abs(top), np.abs(bottom))
        self.reach = float(max([0.0, *(2.0 * law.t for _, law in self.closed), *(top - bottom).tolist()]))

    def over(self, values: Array, by: np.ufunc = np.add) -> Array:
        """Sums, or the like, of the values of each law's atoms, shape (laws with atoms,)."""
        return np.asarray(by.reduceat(values, self.starts)) if self.sizes.size else np.zeros(0)

    def spread(self, values: Array) -> Array:
        """One number of each law, for all of its atoms."""
        return np.repeat(values, self.sizes)

    def log_moments(self, rate: float) -> tuple[Array, Array]:
        """log E exp(rate L) of every law, shape (laws,), and bounds on their rounding."""
        found, error = np.empty((2, self.counts.size))
        for i, law in self.closed:
            found[i], error[i] = law.log_moment(rate)
        peak, grown, whole = self.grown(rate * self.loss)
        size = np.maximum(peak, rate * self._largest - self.over(self.logs, np.minimum)) + rate * self._largest
        found[self.index] = peak + np.log(whole)
        grown *= self.mass_errors
        error[self.index] = ROUNDOFF * (80.0 + 4.0 * size + 2.0 * np.abs(peak)) + self.over(grown) / whole
        return found, error

    def log_known(self, rate: float) -> tuple[Array, Array]:
        """The same to a relative error, where the total is known, else nan: log1p of a sum of mass expm1(rate L)."""
        found, error = np.full((2, self.counts.size), math.nan)
        angle = rate * self.loss
        wide = self.over(angle, np.maximum) > LARGEST_EXPONENT
        rise = np.expm1(np.minimum(angle, LARGEST_EXPONENT))
        parts = self._mass * rise
        above = self._sums(np.maximum(parts, 0.0)) - self._sums(np.maximum(-parts, 0.0)) + (self._totals - 1.0)
        above[wide | ~(above > -0.5)] = math.nan
        size = np.abs(parts)
        value_error = self.over(size * (10.0 + 2.0 * np.abs(angle))) + 4.0 * (abs(self._totals - 1.0) + np.abs(above))
        log = found[self.index] = np.log1p(above)
        error[self.index] = (self.over(size * self.mass_errors) + ROUNDOFF * value_error) / (1.0 + above)
        error[self.index] += 2.0 * ROUNDOFF * np.abs(log)
        return found, error

    def slopes(self, rate: float) -> Array:
        """log E exp(rate L), and means and variances of the tilted losses, estimated; shape (3, laws)."""
        found = np.empty((3, self.counts.size))
        for i, law in self.closed:
            found[:, i] = law.log_moment(rate)[0], *law.slopes(rate)
        peak, grown, whole = self.grown(rate * self.loss)
        mean = self.over(grown * self.loss) / whole
        grown *= (self.loss - self.spread(mean)) ** 2
        found[:, self.index] = peak + np.log(whole), mean, self.over(grown) / whole
        return found

    def grown(self, angle: Array) -> tuple[Array, Array, Array]:
        """Peaks of angle + log mass, exponentials of these exponents relative to the peaks, and their sums."""
        exponent = angle + self.logs
        peak = self.over(exponent, np.maximum)
        exponent -= self.spread(peak)
        grown = np.exp(exponent, out=exponent)
        return peak, grown, self.over(grown)

    def _sums(self, values: Array) -> Array:
        """`sides.total` of each law's values."""
        _, exponent = np.frexp(self.over(values))
        size = self.spread(np.ldexp(1.0, np.maximum(exponent + 2, -900)))
        multiple = (values + size) - size
        return self.over(multiple) + self.over(values - multiple)


@dataclass(frozen=True)
class _Atoms:
    """Losses and tilted masses of several laws, one law after the other, and each law's end."""

    x: Array
    p: Array
    ends: NDArray[np.int64]

    def sums(self, y: Array) -> tuple[Array, Array]:
        """E(1 - cos yX) and E sin yX, shape (laws, nodes)."""
        from ..pairs.contour_kernels import characteristics

        versine, sine = np.empty((2, self.ends.size * y.size))
        characteristics(y, self.x, self.p, self.ends, versine, sine)
        shape = self.ends.size, y.size
        return versine.reshape(shape), sine.reshape(shape)

    def kept(self, held: NDArray[np.bool_]) -> _Atoms:
        """Some of the atoms."""
        return _Atoms(self.x[held], self.p[held], np.append(0, np.cumsum(held))[self.ends])


class TiltedLaws:
    """The laws of several rounds under the tilt c: arrays of one number a law, and their characteristic functions.

    X is a law's loss less its tilted mean. means : of the losses. log_moments, moment_errors : of X, and their errors.
    spreads : at least E|X|. All of shape (laws,). size : of all atoms together; laws in closed form have none.
    """

    def __init__(self, moments: Moments, c: float) -> None:
        self._closed, self._c = moments.closed, c
        over, spread, index = moments.over, moments.spread, moments.index
        numbers = np.zeros((8, moments.counts.size))
        self.means, self.log_moments, self.moment_errors, self.spreads, self.variances, *errors = numbers
        # The error of phi(y) from masses: flat + min(slope y, far + a few u y spread).
        self._flat, self._far, self._slope = (part[:, None] for part in errors)
        for i, law in self._closed:
            numbers[:5, i] = law.tilted(c)
        _, grown, whole = moments.grown(c * moments.loss)
        mean = over(grown * moments.loss) / whole
        x = moments.loss - spread(mean)
        peak, p, whole = moments.grown(c * x)
        p /= spread(whole)
        log = peak + np.log(whole)
        # Relative error of a weight, common factors aside, in u.
        value_error = 8.0 + 3.0 * (np.abs(moments.logs) + np.abs(c * x) + spread(np.abs(peak)))
        value_error += moments.mass_errors / ROUNDOFF
        value_error *= p
        size, all_errors = np.abs(x), over(value_error)
        wide = over(p * size) * (1.0 + 1e-9)
        log_error = ROUNDOFF * (all_errors + 80.0 + 4.0 * np.abs(log))
        numbers[:5, index] = mean, log, log_error, wide, over(p * x * x)
        known, known_error = moments.log_known(c)
        better = ~np.isnan(known)
        shift = c * self.means
        self.log_moments[better] = (known - shift)[better]
        size_of = np.abs(known) + np.abs(shift)
        self.moment_errors[better] = (known_error + 4.0 * ROUNDOFF * size_of)[better]
        held = p > FAINT
        numbers[5, index] = 2.0 * over(np.where(held, 0.0, p)) + ROUNDOFF * 8.0
        numbers[6, index] = ROUNDOFF * 2.0 * all_errors
        numbers[7, index] = ROUNDOFF * (over(value_error * (size + spread(wide))) + 64.0 * wide)
        sizes = np.zeros(moments.counts.size, np.int64)
        sizes[index] = moments.sizes
        self._atoms = _Atoms(x, p, np.cumsum(sizes)).kept(held)
        # All but the outer atoms.
        up, ends = np.append(0.0, np.cumsum(self._atoms.p)), self._atoms.ends
        starts = np.append(0, ends[:-1])
        first, last = (np.repeat(up[ends_of], ends - starts) for ends_of in (starts, ends))
        self._bulk = self._atoms.kept((up[1:] - first >= 0.5 * OUTER) & (up[:-1] < last - 0.5 * OUTER))
        self._outer = np.ones((self.means.size, 1))
        if index.size:
            self._outer[index, 0] -= np.add.reduceat(self._bulk.p, np.append(0, self._bulk.ends)[index])
        self.size = self._atoms.x.size
        self.farthest = float(np.abs(self._atoms.x).max(initial=0.0))

    def values(self, y: Array) -> tuple[Complex, Array]:
        """log phi at y >= 0, shape (laws, nodes), and bounds on the absolute errors of phi."""
        versine, sine = self._atoms.sums(y)
        angle = np.outer(self.spreads, y)
        sizes = np.diff(self._atoms.ends, prepend=0)[:, None]
        error = (
            self._flat
            + np.minimum(self._slope * y, self._far + ROUNDOFF * (16.0 * angle + 64.0))
            + ROUNDOFF * (sizes + 8.0) * np.minimum(angle, 4.0)
        )
        found = log_phi(versine, sine)
        for i, law in self._closed:
            found[i], error[i] = law.values(self._c, y)
        return found, error

    def most(self, y: Array, laws: int) -> Array:
        """At least |phi| at y of the first `laws`, by their bulk; shape (laws, nodes)."""
        bulk, outer = replace(self._bulk, ends=self._bulk.ends[:laws]), self._outer[:laws]
        versine, sine = bulk.sums(y)
        sizes = np.diff(bulk.ends, prepend=0)[:, None]
        error = ROUNDOFF * ((sizes + 16.0) * 4.0 + 16.0 * np.outer(self.spreads[:laws], y))
        found = np.hypot(1.0 - outer - versine, sine) + np.abs(outer)
        found += error + self._far[:laws] + self._flat[:laws]
        for i, law in self._closed:
            if i < laws:
                log, value_error = law.values(self._c, y)
                found[i] = np.exp(log.real) + value_error
        return np.asarray(found)


def log_phi(versine: Array, sine: Array) -> Complex:
    """log phi of 1 - Re phi and Im phi: near phi = 1 relative to the distance from 1, elsewhere absolute."""
    near = 0.5 * np.log1p(np.where(versine < 0.25, versine * (versine - 2.0) + sine * sine, 0.0))
    far = np.log(np.maximum(np.hypot(1.0 - versine, sine), 1e-300))
    return np.where(versine < 0.25, near, far) + 1j * np.arctan2(sine, 1.0 - versine)


@dataclass(frozen=True)
class LaplaceRounds:
    """Laplace noise of largest loss t, `count` times: E exp(z L) = e^(-t/2) (cosh(wt) + sinh(wt)/(2w)), w = z + 1/2."""

    t: float
    count: int
    infinity_mass: float = 0.0
    loss_error: float = 0.0
    size = 1

    def _factor(self, z: Complex) -> Complex:
        """E exp(z L) / e^(z t)."""
        w = z + 0.5
        fall = np.expm1(-2.0 * self.t * w)
        return 0.5 * (2.0 + fall - fall / (2.0 * w))

    def log_moment(self, rate: float) -> tuple[float, float]:
        """log E exp(rate L), and a bound on its rounding."""
        log = math.log(self._factor(np.array([rate + 0j]))[0].real)
        return rate * self.t + log, ROUNDOFF * (24.0 + 2.0 * rate * self.t)

    def slopes(self, rate: float) -> tuple[float, float]:
        """The mean and the variance of the tilted loss, to 1e-6 of the deviation."""
        w, t = rate + 0.5, self.t
        fall = math.exp(-2.0 * t * w)
        cosh, sinh = 0.5 * (1.0 + fall), 0.5 * (1.0 - fall)  # times e^(wt)
        whole = cosh + sinh / (2.0 * w)
        first = t * sinh + t * cosh / (2.0 * w) - sinh / (2.0 * w * w)
        second = t * t * (cosh + sinh / (2.0 * w)) - t * cosh / (w * w) + sinh / w**3
        mean = first / whole
        return mean, max(second / whole - mean * mean, 0.0)

    def values(self, c: float, y: Array) -> tuple[Complex, Array]:
        """log phi at y >= 0 under the tilt c, and bounds on the errors of phi."""
        z = np.asarray(c + 1j * y, np.complex128)
        found = np.log(self._factor(z) / self._factor(np.array([c + 0j]))[0].real)
        turned = 1j * y * (self.t - self.slopes(c)[0])
        return found + turned, ROUNDOFF * (64.0 + 16.0 * y * self.t)

    def tilted(self, c: float) -> tuple[float, float, float, float, float]:
        """The first numbers of `TiltedLaws`."""
        mean, variance = self.slopes(c)
        # E|X| is at most the deviation, and around 0 at most t. Closed forms of the variance are differences of terms
        # like t^2, t/w^2 and 1/w^3, w = c + 1/2.
        t, w = self.t, c + 0.5
        lost = 64.0 * ROUNDOFF * (t * t + t / (w * w) + 1.0 / w**3)
        spread = min(t, math.sqrt(variance + lost)) * (1.0 + 1e-4)
        log, error = self.log_moment(c)
        error += ROUNDOFF * 4.0 * (abs(log) + c * abs(mean))
        return mean, log - c * mean, error, spread, variance


MomentFunction = Rounds | LaplaceRounds


#: Distances of the rates from c, in inverse deviations of the tilted loss.
RATES = np.array([1.0, 2.5, 4.5, 7.0, 10.0, 16.0, 40.0])


class TooExpensive(Exception):
    """So many nodes would cost more than a lattice."""


def log_peak(rate: Array) -> Array:
    """log of max over y >= 0 of e^(-rate y) (1 - e^-y), rate >= 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        power = np.where(rate > 0.0, rate * np.log(rate), 0.0)
    return np.asarray(power - (1.0 + rate) * np.log1p(rate))


def log_geometric(distance: Array) -> Array:
    """log of the sum over m >= 1 of e^(-m distance), distance > 0."""
    return np.asarray(-distance - np.log(-np.expm1(-distance)))
