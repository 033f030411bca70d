"""The law of one round on one side, repeated: its moment function, and its characteristic function under a tilt.

With M(z) = E[exp(z L); L < inf] of one round, k rounds have M(z)^k. So an error of log M counts k times. All errors are
kept small, and known.

* On the real line: `log_moment` and `slopes`.
* Under the tilt c: phi(y) = M(c + iy)/M(c), around the tilted mean, of all laws of a ledger together, by `TiltedLaws`.

Both come from atoms (`Rounds`), or in closed form for Laplace noise (`LaplaceRounds`).

Proofs: docs/theory.md, section 7.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..numerics.lattice import SNAP, require_memory, split
from ..numerics.rounding import ROUNDOFF, dot, total
from ..numerics.sides import Bounds, Side
from ..pairs.gaussian import LaplacePair
from ..pairs.pair import Atoms, Pair, Resolution

Array = NDArray[np.float64]
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

    def capped(self, top: float, c: float, log_delta: float) -> Rounds:
        """What is at infinity on the upper side, at the largest loss of the pair; where that is better for delta.

        Let w be that mass, l the last loss and s = e^l. A profile vanishes at e^top, is at most w from s on and convex:
        so an atom of w / (1 - e^(l - top)) at top, whose profile is w at s and a line up to e^top, stands for w.
        """
        room = top - float(self.loss.max()) - self.loss_error
        if not (self.infinity_mass > 0.0 and room > 0.0):
            return self
        extra = self.infinity_mass / -math.expm1(-room) * (1.0 + 8.0 * ROUNDOFF)
        if c * top + math.log(extra / self.infinity_mass) > -log_delta:
            return self
        total = None if self.total is None else math.nextafter(self.total + extra, math.inf)
        mass_error = None if self.mass_error is None else np.append(self.mass_error, 0.0)
        return replace(
            self, mass=np.append(self.mass, extra), loss=np.append(self.loss, top), infinity_mass=0.0,
            total=total, mass_error=mass_error,
        )  # fmt: skip

    @property
    def size(self) -> int:
        return self.mass.size

    @property
    def reach(self) -> float:
        """From the least to the largest loss."""
        return float(np.ptp(self.loss))

    @cached_property
    def logs(self) -> Array:
        """Logarithms of the masses."""
        return np.log(self.mass)

    @cached_property
    def _largest(self) -> float:
        return float(np.abs(self.loss).max())

    @cached_property
    def _mass_errors(self) -> Array | None:
        """Of the masses, relative to them."""
        return None if self.mass_error is None else self.mass_error / self.mass

    def log_moment(self, rate: float) -> tuple[float, float]:
        """log E exp(rate L), and a bound on its rounding."""
        exponent = rate * self.loss
        exponent += self.logs
        peak = float(exponent.max())
        size = max(peak, -float(exponent.min())) + rate * self._largest
        error = ROUNDOFF * (80.0 + 4.0 * size + 2.0 * abs(peak))
        exponent -= peak
        grown = np.exp(exponent, out=exponent)
        total = float(grown.sum())
        if self._mass_errors is not None:
            error += dot(grown, self._mass_errors) / total
        return peak + math.log(total), error

    def log_known(self, rate: float) -> tuple[float, float] | None:
        """The same to a relative error, where the total is known: log1p of a sum of mass * expm1(rate loss)."""
        angle = rate * self.loss
        if self.total is None or self.mass_error is None or float(angle.max()) > LARGEST_EXPONENT:
            return None
        rise = np.expm1(angle)
        parts = self.mass * rise
        above = total(np.maximum(parts, 0.0)) - total(np.maximum(-parts, 0.0)) + (self.total - 1.0)
        if not above > -0.5:
            return None
        size = np.abs(rise)
        value_error = dot(self.mass * size, 10.0 + 2.0 * np.abs(angle))
        value_error += 4.0 * (abs(self.total - 1.0) + abs(above))
        error = (dot(size, self.mass_error) + ROUNDOFF * value_error) / (1.0 + above)
        log = math.log1p(above)
        return log, error + 2.0 * ROUNDOFF * abs(log)

    def slopes(self, rate: float) -> tuple[float, float]:
        """The mean and the variance of the tilted loss, estimated."""
        exponent = self.logs + rate * self.loss
        weight = np.exp(exponent - exponent.max())
        weight /= weight.sum()
        mean = dot(weight, self.loss)
        return mean, dot(weight, (self.loss - mean) ** 2)

    def tilted(self, c: float) -> TiltedLaw:
        return TiltedLaw.of(self, c)


@dataclass(frozen=True)
class TiltedLaw:
    """What an integral needs to know of one law under the tilt c; X is the loss less its tilted mean.

    log_moment : of X. moment_error : of it. spread : at least E|X|. x, p : atoms and their tilted masses, none in
    closed form. flat, far, slope : the error of phi(y) from masses: flat + min(slope y, far + a few u y spread).
    """

    mean: float
    log_moment: float
    moment_error: float
    spread: float
    variance: float
    x: Array
    p: Array
    errors: tuple[float, float, float] = (0.0, 0.0, 0.0)

    @classmethod
    def of(cls, rounds: Rounds, c: float) -> TiltedLaw:
        logs = rounds.logs
        weight = logs + c * rounds.loss
        weight = np.exp(weight - weight.max())
        mean = dot(weight, rounds.loss) / float(weight.sum())
        x = rounds.loss - mean
        exponent = logs + c * x
        peak = float(exponent.max())
        p = np.exp(exponent - peak)
        total = float(p.sum())
        log_moment = peak + math.log(total)
        p /= total
        # Relative error of a weight, common factors aside, in u.
        value_error = 8.0 + 3.0 * (np.abs(logs) + np.abs(c * x) + abs(peak))
        if rounds.mass_error is not None:
            value_error = value_error + rounds.mass_error / (ROUNDOFF * rounds.mass)
        held = p > FAINT
        size = np.abs(x)
        spread = dot(p, size) * (1.0 + 1e-9)
        moment_error = ROUNDOFF * (dot(p, value_error) + 80.0 + 4.0 * abs(log_moment))
        if (known := rounds.log_known(c)) is not None:
            log_moment = known[0] - c * mean
            moment_error = known[1] + 4.0 * ROUNDOFF * (abs(known[0]) + c * abs(mean))
        flat = 2.0 * float(p[~held].sum()) + ROUNDOFF * 8.0
        far = ROUNDOFF * 2.0 * dot(p, value_error)
        slope = ROUNDOFF * (dot(p, value_error * (size + spread)) + 64.0 * spread)
        return cls(
            mean, log_moment, moment_error, spread, dot(p, x * x), x[held], p[held],
            (flat, far, slope),
        )  # fmt: skip

    @property
    def bulk(self) -> slice:
        """The atoms without the outer ones."""
        up = np.cumsum(self.p)
        first, last = np.searchsorted(up, (0.5 * OUTER, up[-1] - 0.5 * OUTER))
        return slice(int(first), int(last) + 1)


@dataclass(frozen=True)
class _Joined:
    """Two numbers of each atom of several laws, one law after the other; each law's end and size."""

    x: Array
    p: Array
    ends: NDArray[np.int64]
    sizes: Array

    @classmethod
    def of(cls, laws: Sequence[tuple[Array, Array]]) -> _Joined:
        sizes = np.array([x.size for x, _ in laws], np.int64)
        x, p = (np.concatenate([*(law[k] for law in laws), np.zeros(0)]) for k in range(2))
        return cls(x, p, np.cumsum(sizes), sizes.astype(np.float64))

    @property
    def starts(self) -> NDArray[np.int64]:
        return np.append(0, self.ends[:-1])

    def spread(self, values: Array) -> Array:
        """One number of each law, for all of its atoms."""
        return np.repeat(values, np.diff(self.ends, prepend=0))

    def sums(self, y: Array) -> tuple[Array, Array]:
        """E(1 - cos yX) and E sin yX, shape (laws, nodes)."""
        from ..pairs.contour_kernels import characteristics

        versine, sine = np.empty((2, self.ends.size * y.size))
        characteristics(y, self.x, self.p, self.ends, versine, sine)
        shape = self.ends.size, y.size
        return versine.reshape(shape), sine.reshape(shape)


class JoinedMoments:
    """Moment functions of several rounds, asked together; counts are those of the laws."""

    def __init__(self, laws: Sequence[MomentFunction]) -> None:
        self._counts = np.array([law.count for law in laws], np.float64)
        self._closed = [(i, law) for i, law in enumerate(laws) if isinstance(law, LaplaceRounds)]
        held = [(i, law) for i, law in enumerate(laws) if isinstance(law, Rounds)]
        self._index, atoms = np.array([i for i, _ in held], np.int64), [law for _, law in held]
        self._atoms = _Joined.of([(law.loss, law.logs) for law in atoms])
        none = [np.zeros(law.size) if law.mass_error is None else law.mass_error / law.mass for law in atoms]
        self._mass_errors = np.concatenate([*none, np.zeros(0)])
        self._largest = np.array([float(np.abs(law.loss).max()) for law in atoms])
        self._faintest = np.array([-float(law.logs.min()) for law in atoms])

    def log_moments(self, rate: float) -> Array:
        """At least log E exp(rate L) of every law, shape (laws,)."""
        found = np.empty(self._counts.size)
        for i, law in self._closed:
            found[i] = math.fsum(law.log_moment(rate))
        if self._largest.size:
            peak, grown, whole = self._grown(rate)
            size = np.maximum(peak, self._faintest + rate * self._largest) + rate * self._largest
            error = ROUNDOFF * (80.0 + 4.0 * size + 2.0 * np.abs(peak))
            grown *= self._mass_errors
            error += np.add.reduceat(grown, self._atoms.starts) / whole
            found[self._index] = peak + np.log(whole) + error
        return found

    def slopes(self, rate: float) -> tuple[float, float, float]:
        """The sums over the rounds of log moments, means and variances of the tilted losses, estimated."""
        found = np.empty((3, self._counts.size))
        for i, law in self._closed:
            found[:, i] = law.log_moment(rate)[0], *law.slopes(rate)
        if self._largest.size:
            starts = self._atoms.starts
            peak, grown, whole = self._grown(rate)
            mean = np.add.reduceat(grown * self._atoms.x, starts) / whole
            apart = (self._atoms.x - self._atoms.spread(mean)) ** 2
            apart *= grown
            found[:, self._index] = peak + np.log(whole), mean, np.add.reduceat(apart, starts) / whole
        log, mean, variance = found @ self._counts
        return float(log), float(mean), float(variance)

    def _grown(self, rate: float) -> tuple[Array, Array, Array]:
        """Peaks of rate * loss + log mass, exponentials of these exponents relative to the peaks, and their sums."""
        exponent = rate * self._atoms.x
        exponent += self._atoms.p
        peak = np.maximum.reduceat(exponent, self._atoms.starts)
        exponent -= self._atoms.spread(peak)
        grown = np.exp(exponent, out=exponent)
        return peak, grown, np.add.reduceat(grown, self._atoms.starts)


class TiltedLaws:
    """The laws of several rounds under one tilt: arrays of one number a law, and their characteristic functions.

    means, log_moments, moment_errors, spreads, variances : shape (laws,). size : of all atoms together.
    """

    def __init__(self, laws: Sequence[MomentFunction], c: float) -> None:
        self._closed = [(i, law, c) for i, law in enumerate(laws) if isinstance(law, LaplaceRounds)]
        held = [law.tilted(c) for law in laws]
        self.means, self.log_moments, self.moment_errors, self.spreads, self.variances = np.array(
            [(t.mean, t.log_moment, t.moment_error, t.spread, t.variance) for t in held]
        ).T
        self._flat, self._far, self._slope = np.array([t.errors for t in held]).T[:, :, None]
        self._atoms = _Joined.of([(t.x, t.p) for t in held])
        bulk = [(t.x[t.bulk], t.p[t.bulk]) if t.p.size else (t.x, t.p) for t in held]
        self._bulk = _Joined.of(bulk)
        self._outer = np.array([1.0 - float(p.sum()) for _, p in bulk])[:, None]
        self.size = self._atoms.x.size
        self.farthest = float(np.abs(self._atoms.x).max(initial=0.0))

    def values(self, y: Array) -> tuple[Complex, Array]:
        """log phi at y >= 0, shape (laws, nodes), and bounds on the absolute errors of phi."""
        versine, sine = self._atoms.sums(y)
        angle = np.outer(self.spreads, y)
        error = (
            self._flat
            + np.minimum(self._slope * y, self._far + ROUNDOFF * (16.0 * angle + 64.0))
            + ROUNDOFF * (self._atoms.sizes[:, None] + 8.0) * np.minimum(angle, 4.0)
        )
        found = log_phi(versine, sine)
        for i, law, c in self._closed:
            found[i], error[i] = law.values(c, y)
        return found, error

    def most(self, y: Array) -> Array:
        """At least |phi| at y, by the bulk of the laws; shape (laws, nodes)."""
        versine, sine = self._bulk.sums(y)
        error = ROUNDOFF * ((self._bulk.sizes[:, None] + 16.0) * 4.0 + 16.0 * np.outer(self.spreads, y))
        found = np.hypot(1.0 - self._outer - versine, sine) + np.abs(self._outer)
        found += error + self._far + self._flat
        for i, law, c in self._closed:
            log, value_error = law.values(c, y)
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

    @property
    def reach(self) -> float:
        """From the least to the largest loss."""
        return 2.0 * self.t

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

    def tilted(self, c: float) -> TiltedLaw:
        mean, variance = self.slopes(c)
        # E|X| is at most the deviation, and around 0 at most t. Closed forms of the variance are differences of terms
        # like t^2, t/w^2 and 1/w^3, w = c + 1/2.
        t, w = self.t, c + 0.5
        lost = 64.0 * ROUNDOFF * (t * t + t / (w * w) + 1.0 / w**3)
        spread = min(t, math.sqrt(variance + lost)) * (1.0 + 1e-4)
        log, error = self.log_moment(c)
        error += ROUNDOFF * 4.0 * (abs(log) + c * abs(mean))
        return TiltedLaw(mean, log - c * mean, error, spread, variance, np.empty(0), np.empty(0))


MomentFunction = Rounds | LaplaceRounds
