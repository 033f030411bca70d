"""A privacy loss distribution on a lattice: a frozen value that knows its side.

Notation: losses x_i = i * step, P-masses p_i (`masses`), mass at infinite loss (`infinity`). The hockey-stick
divergence of an upper PLD is at least, that of a lower PLD at most, that of the pair it stands for, at every
epsilon, and the same holds for compositions. `loss_error` books rounding of losses: an upper PLD is read at
epsilon - slack, a lower one at epsilon + slack.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..numerics.lattice import SNAP, cells_of, place, require_memory
from ..numerics.sides import ROUNDOFF, Array, Side
from ..numerics.validation import positive_int, real_array
from ..pairs.discrete import Losses
from ..pairs.pair import Pair, Resolution

#: A law may have so much mass too much. An upper one counts what its windows missed twice, in place and at
#: infinity, and at rates within 1e-12 of 1 its allowances for rounding come to a percent.
EXCESS = 1e-2
NOTHING = -1e5  # log of the scale of a law without mass


@dataclass(frozen=True, eq=False)
class PLD:
    """Lattice law of a privacy loss under P, certified on `side`.

    masses : P-mass at loss ``(low + i) * step``, shape (points,), read-only.
    infinity : P-mass at infinite loss.
    max_loss : a loss above which the true pair has no finite mass (delta is exact there).
    """

    masses: Array
    low: int
    step: float
    side: Side
    infinity: float
    max_loss: float
    loss_error: float = 0.0

    @classmethod
    def build(
        cls, masses: Array, low: int, *, step: float, side: Side, infinity: float,
        max_loss: float, loss_error: float,
    ) -> PLD:  # fmt: skip
        """Trim, check and freeze. Raises ArithmeticError, printing the parts, if mass is over 1 + EXCESS."""
        held = masses != 0.0
        first, last = int(np.argmax(held)), masses.size - int(np.argmax(held[::-1]))
        if not held[first]:
            first, last = 0, 1
        masses = np.array(masses[first:last], np.float64)
        masses.setflags(write=False)
        most = 1.0 + EXCESS
        if not (masses.sum() <= most and masses.min() >= 0.0 and 0.0 <= infinity <= most):
            raise ArithmeticError(
                f"{side.value} PLD with mass {float(masses.sum())!r} + {infinity!r} at infinity,"
                f" least entry {float(masses.min())!r}: rounding outweighs the loss; move rates and ratios"
                " (gamma, eps0, p) away from where nothing is revealed"
            )
        infinity = min(infinity, 1.0)  # a probability: 1 bounds it from above
        return cls(masses, low + first, step, side, infinity, max_loss, loss_error)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Unpickled or copied: numpy does not keep arrays read-only."""
        self.__dict__.update(state)
        self.masses.setflags(write=False)

    @property
    def losses(self) -> Array:
        """The lattice losses, shape (points,)."""
        return (self.low + np.arange(self.masses.size, dtype=np.float64)) * self.step

    def delta(self, epsilon: Any) -> Any:
        """Hockey-stick divergence at `epsilon` (scalar or array), on this PLD's side.

        Any real epsilon, also negative. O(points) once per call plus O(log points) per epsilon.
        Raises ValueError for nan.
        """
        values = real_array("epsilon", epsilon)
        if not np.all(values == values):
            raise ValueError(f"epsilon must not be nan, got {epsilon!r}")
        upper = self.side is Side.UPPER
        sign = -1.0 if upper else 1.0
        # Losses may be off by `loss_error`; rounding of sums is relative.
        asked = values + sign * (self.loss_error * (1.0 + 1e-9) + 1e-15 * np.abs(values))
        finite = Losses(self.masses, self.losses, 0.0, 0.0).divergence(asked)
        finite = np.where(values < (self.max_loss if upper else math.inf), finite, 0.0)
        found = self.infinity + finite * (1.0 - sign * ROUNDOFF * (8.0 * self.masses.size + 128.0))
        found = np.minimum(found, 1.0)
        return found if values.ndim else float(found)

    def compose(self, other: PLD) -> PLD:
        """The PLD of running both, on the common side and step, by direct convolution: O(points^2).

        Nothing is subtracted, so masses keep their relative accuracy. Raises TypeError or ValueError.
        """
        if not isinstance(other, PLD):
            raise TypeError(f"other must be a PLD, got {other!r}")
        if other.side is not self.side:
            raise ValueError(f"sides differ: {self.side.value} and {other.side.value}")
        if other.step != self.step:
            raise ValueError(f"steps differ: {self.step!r} and {other.step!r}")
        sign = 1.0 if self.side is Side.UPPER else -1.0
        terms = min(self.masses.size, other.masses.size)
        masses = np.convolve(self.masses, other.masses) * (1.0 + 2.0 * sign * ROUNDOFF * (terms + 2))
        lost = -math.expm1(log_finite(self.infinity) + log_finite(other.infinity)) * (1.0 + sign * 2e-15)
        lost += 1e-300 if sign > 0.0 else 0.0  # more than what underflows
        masses.setflags(write=False)
        return replace(
            self, masses=masses, low=self.low + other.low, infinity=min(lost, 1.0),
            max_loss=(self.max_loss + other.max_loss) * (1.0 + 1e-15), loss_error=self.loss_error + other.loss_error,
        )  # fmt: skip

    def self_compose(self, count: int) -> PLD:
        """The PLD of `count` independent runs; see `compose`. For many rounds use `Accountant`."""
        found, power, left = None, self, positive_int("count", count)
        while left:
            if left % 2:
                found = power if found is None else found.compose(power)
            left //= 2
            power = power.compose(power) if left else power
        assert found is not None
        return found

    def tilted(self, tilt: float) -> tuple[Array, float, float]:
        """The finite masses times exp(tilt * loss - log_scale), which sum to 1; log_scale; their relative error.

        What underflows is below the smallest double each. No finite mass is a point of negligible scale.
        """
        masses, x = self.masses, self.losses
        if not masses.any():
            return np.ones(1), NOTHING, 0.0
        with np.errstate(divide="ignore"):
            exponent = np.log(masses) + tilt * x
        peak = float(exponent.max())
        mass = np.exp(exponent - peak)
        total = float(mass.sum())
        # log, product, difference and exp: relative error of an entry below u (6 + |tilt x| + |exponents|).
        largest = float(np.max(np.where(mass > 0.0, np.abs(tilt * x) + np.abs(exponent), 0.0)))
        return mass / total, peak + math.log(total), ROUNDOFF * (8.0 + 4.0 * largest)


def formed(pair: Pair, sides: Sequence[Side], resolution: Resolution, max_gap: float = math.inf) -> list[PLD]:
    """The laws of `pair` on the lattice of `resolution.step`, one for each of `sides`.

    `max_gap` is the largest gap over which a lower law merges atoms; see `lattice.place`. Raises MemoryError if the
    lattice would be too large.
    """
    step, found = resolution.step, []
    for side, atoms in zip(sides, pair.atoms(sides, resolution), strict=True):
        require_memory(0.5 * (float(atoms.loss[-1]) - float(atoms.loss[0])) / step)
        cell, offset = cells_of(atoms.loss, step)
        masses, low = place(
            atoms.mass, cell, offset, step=step, side=side, max_gap=max_gap, ratio_error=atoms.ratio_error
        )
        infinity = atoms.infinity_mass + (atoms.truncated_mass if side is Side.UPPER else 0.0)
        found.append(PLD.build(
            masses, low, step=step, side=side, infinity=infinity, max_loss=float(pair.max_loss.upper),
            loss_error=atoms.loss_error + 2.0 * SNAP * step,
        ))  # fmt: skip
    return found


def log_finite(infinity: float, count: int = 1) -> float:
    """log of the probability that `count` rounds all have a finite loss; `infinity` : that one has not."""
    return count * math.log1p(-min(infinity, 1.0 - 1e-16))
