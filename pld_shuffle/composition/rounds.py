"""The law of one round on one side, repeated: its moment function, and its characteristic function under a tilt.

With M(z) = E[exp(z L); L < inf] of one round, k rounds have M(z)^k. So an error of log M counts k times. All errors are
kept small, and known.

* On the real line: `log_moment` and `slopes`.
* Under the tilt c: phi(y) = M(c + iy)/M(c), around the tilted mean, from `tilted(c)`.

Both come from atoms (`Rounds`), or in closed form for Laplace noise (`LaplaceRounds`).

Proofs: docs/theory.md, section 7.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..numerics.convolution import dot
from ..numerics.rounding import ROUNDOFF
from ..numerics.sides import Bounds, Side
from ..pairs.gaussian import LaplacePair
from ..pairs.pair import Atoms, Pair, Resolution
from .pld import placed

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

    total : the finite mass of the law that is meant, if known. doubt : how far every mass may then be from that law's;
    at loss 0 the mass is what the others leave.
    """

    mass: Array
    loss: Array
    infinite: float
    slack: float
    count: int
    total: float | None = None
    doubt: Array | None = None

    @classmethod
    def of(
        cls, pair: Pair, count: int, resolutions: dict[Pair, Resolution]
    ) -> tuple[AnyRounds, AnyRounds]:
        """The lower and the upper side of a pair.

        Lower atoms are merged, which hides, wherever they lie. Upper atoms of one cell stand for their splits
        onto the cell's ends, and must be placed, unless every atom is kept by itself.
        """
        if (limits := laplace_of(pair)) is not None:
            return LaplaceRounds(limits.lower, count), LaplaceRounds(limits.upper, count)
        resolution = resolutions[pair]
        below, above = pair.atoms([Side.LOWER, Side.UPPER], resolution)
        if above.separate:
            return cls._raw(below, 0.0, count), cls._raw(above, above.missed, count)
        law = placed(
            above, step=resolution.step, side=Side.UPPER, reach=math.inf,
            max_loss=float(pair.max_loss.upper),
        )  # fmt: skip
        # An atom's mass is split between neighbours; the lower share, 1 minus the other, is rounded like the whole.
        doubt = (above.doubt + PLACED) * (law.masses + np.append(law.masses[1:], 0.0))
        upper = cls._held(
            law.masses, law.losses, law.infinity, law.slack, count, above.total, doubt
        )
        return cls._raw(below, 0.0, count), upper

    @classmethod
    def _raw(cls, atoms: Atoms, missed: float, count: int) -> Rounds:
        return cls._held(
            atoms.mass, atoms.loss, atoms.infinite + missed, atoms.slack, count, atoms.total,
            atoms.doubt * atoms.mass,
        )  # fmt: skip

    @classmethod
    def _held(
        cls, mass: Array, loss: Array, infinite: float, slack: float, count: int,
        total: float | None, doubt: Array,
    ) -> Rounds:  # fmt: skip
        held = mass > 0.0
        # A lattice loss is an index times a step: one more rounding.
        slack += 2.0 * ROUNDOFF * float(np.abs(loss).max())
        if not held.any():
            return cls(np.ones(1), np.full(1, -1e5), infinite, slack, count)
        if total is None:
            return cls(mass[held], loss[held], infinite, slack, count)
        doubt[loss == 0.0] = float(doubt.sum()) + 8.0 * ROUNDOFF
        return cls(mass[held], loss[held], infinite, slack, count, total, doubt[held])

    def capped(self, top: float, c: float, log_delta: float) -> Rounds:
        """What is at infinity on the upper side, at the largest loss of the pair; where that is better for delta.

        Let w be that mass, l the last loss and s = e^l. A profile vanishes at e^top, is at most w from s on and convex:
        so an atom of w / (1 - e^(l - top)) at top, whose profile is w at s and a line up to e^top, stands for w.
        """
        room = top - float(self.loss.max()) - self.slack
        if not (self.infinite > 0.0 and room > 0.0):
            return self
        extra = self.infinite / -math.expm1(-room) * (1.0 + 8.0 * ROUNDOFF)
        if c * top + math.log(extra / self.infinite) > -log_delta:
            return self
        total = None if self.total is None else math.nextafter(self.total + extra, math.inf)
        doubt = None if self.doubt is None else np.append(self.doubt, 0.0)
        return replace(
            self, mass=np.append(self.mass, extra), loss=np.append(self.loss, top), infinite=0.0,
            total=total, doubt=doubt,
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
    def _doubts(self) -> Array | None:
        """Of the masses, relative to them."""
        return None if self.doubt is None else self.doubt / self.mass

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
        if self._doubts is not None:
            error += dot(grown, self._doubts) / total
        return peak + math.log(total), error

    def log_known(self, rate: float) -> tuple[float, float] | None:
        """The same to a relative error, where the total is known: log1p of a sum of mass * expm1(rate loss)."""
        angle = rate * self.loss
        if self.total is None or self.doubt is None or float(angle.max()) > LARGEST_EXPONENT:
            return None
        rise = np.expm1(angle)
        above = math.fsum(self.mass * rise) + (self.total - 1.0)
        if not above > -0.5:
            return None
        size = np.abs(rise)
        wrong = dot(self.mass * size, 8.0 + 2.0 * np.abs(angle))
        wrong += 4.0 * (abs(self.total - 1.0) + abs(above))
        error = (dot(size, self.doubt) + ROUNDOFF * wrong) / (1.0 + above)
        log = math.log1p(above)
        return log, error + 2.0 * ROUNDOFF * abs(log)

    def slopes(self, rate: float) -> tuple[float, float]:
        """The mean and the variance of the tilted loss, estimated."""
        exponent = self.logs + rate * self.loss
        weight = np.exp(exponent - exponent.max())
        weight /= weight.sum()
        mean = dot(weight, self.loss)
        return mean, dot(weight, (self.loss - mean) ** 2)

    def tilted(self, c: float) -> Tilted:
        return Tilted(self, c)


class Tilted:
    """The law of one round under the tilt c, centred: values of its characteristic function."""

    def __init__(self, rounds: Rounds, c: float) -> None:
        logs = rounds.logs
        weight = logs + c * rounds.loss
        weight = np.exp(weight - weight.max())
        self.count = rounds.count
        self.mean = dot(weight, rounds.loss) / float(weight.sum())
        x = rounds.loss - self.mean
        exponent = logs + c * x
        peak = float(exponent.max())
        p = np.exp(exponent - peak)
        total = float(p.sum())
        self.log_moment = peak + math.log(total)  # of L - mean
        p /= total
        # Relative error of a weight, common factors aside, in u.
        wrong = 8.0 + 3.0 * (np.abs(logs) + np.abs(c * x) + abs(peak))
        if rounds.doubt is not None:
            wrong = wrong + rounds.doubt / (ROUNDOFF * rounds.mass)
        held = p > FAINT
        dropped = float(p[~held].sum())
        self._x, self._p = np.ascontiguousarray(x[held]), np.ascontiguousarray(p[held])
        self.size = self._x.size
        self.spread = dot(p, np.abs(x)) * (1.0 + 1e-9)  # E|X|
        self.variance = dot(p, x * x)
        self.moment_error = ROUNDOFF * (dot(p, wrong) + 80.0 + 4.0 * abs(self.log_moment))
        if (known := rounds.log_known(c)) is not None:
            self.log_moment = known[0] - c * self.mean
            self.moment_error = known[1] + 4.0 * ROUNDOFF * (abs(known[0]) + c * abs(self.mean))
        self.reach = float(np.abs(self._x).max())
        self._flat = 2.0 * dropped + ROUNDOFF * 8.0
        self._far = ROUNDOFF * 2.0 * dot(p, wrong)
        self._slope = ROUNDOFF * (dot(p, wrong * (np.abs(x) + self.spread)) + 64.0 * self.spread)

    def values(self, y: Array) -> tuple[Complex, Array]:
        """log phi at y >= 0, and bounds on the absolute errors of phi."""
        from ..pairs.contour_kernels import characteristic

        versine, sine = np.empty(y.size), np.empty(y.size)
        characteristic(y, self._x, self._p, versine, sine)
        angle = y * self.spread
        error = (
            self._flat
            + np.minimum(y * self._slope, self._far + ROUNDOFF * (16.0 * angle + 64.0))
            + ROUNDOFF * (self.size + 8.0) * np.minimum(angle, 4.0)
        )
        return log_phi(versine, sine), error

    @cached_property
    def _bulk(self) -> tuple[Array, Array, float]:
        """Losses and weights without the outer ones, and the weight of these."""
        up = np.cumsum(self._p)
        inner = slice(*np.searchsorted(up, (0.5 * OUTER, up[-1] - 0.5 * OUTER)) + np.array([0, 1]))
        p = self._p[inner]
        return self._x[inner], p, 1.0 - float(p.sum())

    def most(self, y: Array) -> Array:
        """At least |phi| at y, by the bulk of the law."""
        from ..pairs.contour_kernels import characteristic

        x, p, outer = self._bulk
        versine, sine = np.empty(y.size), np.empty(y.size)
        characteristic(y, x, p, versine, sine)
        error = (
            ROUNDOFF * ((self.size + 16.0) * 4.0 + 16.0 * y * self.spread) + self._far + self._flat
        )
        found: Array = np.hypot(1.0 - outer - versine, sine) + abs(outer) + error
        return found


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
    infinite: float = 0.0
    slack: float = 0.0
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

    def tilted(self, c: float) -> TiltedLaplace:
        return TiltedLaplace(self, c)


class TiltedLaplace:
    """As `Tilted`, in closed form."""

    size = 1
    reach = 0.0  # no angles are reduced

    def __init__(self, rounds: LaplaceRounds, c: float) -> None:
        self.count = rounds.count
        self._rounds, self._c = rounds, c
        self.mean, self.variance = rounds.slopes(c)
        # E|X| is at most the deviation, and around 0 at most t. Closed forms of the variance are differences of terms
        # like t^2, t/w^2 and 1/w^3, w = c + 1/2.
        t, w = rounds.t, c + 0.5
        lost = 64.0 * ROUNDOFF * (t * t + t / (w * w) + 1.0 / w**3)
        self.spread = min(t, math.sqrt(self.variance + lost)) * (1.0 + 1e-4)
        log, self.moment_error = rounds.log_moment(c)
        self.log_moment = log - c * self.mean
        self._factor = rounds._factor(np.array([c + 0j]))[0].real
        self.moment_error += ROUNDOFF * 4.0 * (abs(log) + c * abs(self.mean))

    def values(self, y: Array) -> tuple[Complex, Array]:
        t = self._rounds.t
        z = np.asarray(self._c + 1j * y, np.complex128)
        found = np.log(self._rounds._factor(z) / self._factor)
        return found + 1j * y * (t - self.mean), ROUNDOFF * (64.0 + 16.0 * y * t)

    def most(self, y: Array) -> Array:
        """At least |phi| at y."""
        found, wrong = self.values(y)
        return np.asarray(np.exp(found.real) + wrong)


AnyRounds = Rounds | LaplaceRounds
AnyTilted = Tilted | TiltedLaplace
