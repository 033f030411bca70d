"""Products of laws by exponentially tilted FFT, each with a bound on everything it neglects.

Arrays only; nothing here knows of privacy. A `Law` represents the masses

    p_j = mass_j exp(log_scale - tilt x_j),   x_j = (low + j) step,

where mass is (nearly) a probability vector. Under the tilt (Esscher transform) the region of interest is the
bulk, so that absolute errors of the FFT become small *relative* errors of p there (Wilson and Keich 2017).

The certificate: `Law.error` bounds the total variation sum_j |mass_j - exact_j| between the
stored and the exact tilted masses; `Law.relative`, the relative error of entries on top (rounding when
tilting and placing). The total variation collects (`product`):

* window and aliasing: mass outside the window, by the Chernoff bound with the laws' own moment
  generating functions; counted twice, since the circular convolution folds it back inside;
* rounding of the transforms: ||fl(F x) - F x||_2 <= eta ||F x||_2, eta = FFT_CONSTANT u log2 N, stage by stage
  (after Higham 2002, Thm 24.2; docs/certificates.md, 10, for radices 2, 3, 4 and 5 of real transforms), carried
  through powers and products: an error e in a factor of modulus at most 1 with count k becomes at most
  k e; complex products add sqrt(5) u each.

In the 1-norm the 2-norm bounds cost sqrt(N) (Cauchy-Schwarz). Negative noise is set to zero, which only
moves the stored masses closer to the exact ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from . import kernels
from .lattice import MAX_POINTS
from .rounding import ROUNDOFF

Array = NDArray[np.float64]

FFT_CONSTANT = 12.0  # of the rounding of transforms, see above
TRIM = 1e-17  # tilted mass that a law may lose at each end before it is transformed
MAX_DIRECT = 4e9  # multiplications of a convolution without transforms
NOTHING = -1e5  # log of the scale of a law without mass
UNDERFLOW = 1e-300  # more than what underflows


def dot(left: Array, right: Array) -> float:
    """Inner product without BLAS, whose threads cost more than they gain at these lengths."""
    return float(np.einsum("i,i->", left, right))


@dataclass(frozen=True)
class Law:
    """A tilted lattice law with its certificate; see the module."""

    mass: Array
    low: int
    step: float
    tilt: float
    log_scale: float
    error: float
    relative: float
    shrunk: float = 0.0  # how much tilted mass (in logs) lower placements have lost on the way


def tilted(masses: Array, low: int, step: float, tilt: float) -> Law:
    """The Law of plain masses (P-masses) under `tilt`."""
    if not masses.any():  # nothing finite: a point of negligible scale stands for no mass
        return Law(np.ones(1), low, step, tilt, NOTHING, 0.0, 0.0)
    x = (low + np.arange(masses.size)) * step
    if tilt == 0.0:
        total = float(masses.sum())
        return Law(masses / total, low, step, tilt, math.log(total), 0.0, 4.0 * ROUNDOFF)
    with np.errstate(divide="ignore"):
        exponent = np.log(masses) + tilt * x
    peak = float(exponent.max())
    mass = np.exp(exponent - peak)
    total = float(mass.sum())
    # log, product, difference and exp: relative error of an entry below u (6 + |tilt x| + |exponents|).
    largest = float(np.max(np.where(mass > 0.0, np.abs(tilt * x) + np.abs(exponent), 0.0)))
    relative = ROUNDOFF * (8.0 + 4.0 * largest)
    # What underflows is below the smallest double each.
    return Law(
        mass / total, low, step, tilt, peak + math.log(total), masses.size * UNDERFLOW, relative
    )


def _trimmed(law: Law) -> Law:
    """`law` without its outermost points: at most TRIM of tilted mass at each end, booked as error."""
    up = np.cumsum(law.mass)
    first = int(np.searchsorted(up, TRIM))
    last = law.mass.size - int(np.searchsorted(np.cumsum(law.mass[::-1]), TRIM))
    if first == 0 and last == law.mass.size:
        return law
    return replace(
        law, mass=law.mass[first:last], low=law.low + first, error=law.error + 2.0 * TRIM
    )


def relabelled(law: Law, mass: Array, low: int, step: float) -> Law:
    """`law` moved to another lattice: new masses in the same scale, normalised again."""
    total = float(mass.sum())
    return Law(
        mass / total,
        low,
        step,
        law.tilt,
        law.log_scale + math.log(total),
        law.error * math.exp(law.tilt * step + step) / min(1.0, total),
        law.relative + (64.0 + 2.0 * step / law.step) * ROUNDOFF,
        law.shrunk + max(0.0, -math.log(total)),
    )


class Tails:
    """Chernoff bounds on where a growing product has its tilted mass.

    log E exp(+-r X) adds over factors; at each of a few rates r the bound
    P(+-X >= a) <= exp(log moment - r a) gives an edge, and the best one counts.
    """

    def __init__(self, deviation: float, tail: float) -> None:
        self.tail = tail
        base = math.sqrt(2.0 * math.log(2.0 / tail)) / max(deviation, 1e-6)
        self._rates = base * np.array([0.06, 0.15, 0.35, 0.7, 1.0])
        self._moments = np.zeros((2, self._rates.size))
        self._low = self._high = 0

    def add(self, law: Law, count: int) -> None:
        """Multiply by law^count."""
        self._low += count * law.low
        self._high += count * (law.low + law.mass.size - 1)
        sums = np.empty((2, self._rates.size))
        kernels.exponential_sums(law.mass, self._rates, sums)
        middle = law.low + law.mass.size // 2
        shift = np.outer((-1.0, 1.0), self._rates * middle)
        # An infinite sum is no bound at this rate. The last term is the sums' rounding.
        self._moments += count * (np.log(sums) + shift + 4.0 * ROUNDOFF * (law.mass.size + 1.0))

    def window(self) -> tuple[int, int]:
        """[first, last] outside of which the product has tilted mass at most `tail`."""
        need = math.log(2.0 / self.tail)
        left, right = np.min((self._moments + need) / self._rates, axis=1)
        slack = 2.0 + 1e-9 * max(abs(self._low), abs(self._high))
        first = self._low if math.isinf(left) else max(self._low, math.floor(-left - slack))
        last = self._high if math.isinf(right) else min(self._high, math.ceil(right + slack))
        return first, last

    def points(self) -> int:
        """Width of the window."""
        first, last = self.window()
        return last - first + 1


class RunningProduct:
    """A product of laws of one step and tilt, multiplied one after the other by FFT of one size.

    `value` may be asked after every factor. `points` sizes the transforms; `tails` must know every factor
    multiplied so far when a value is asked. Raises MemoryError if a window does not fit.
    """

    def __init__(self, points: int, tails: Tails) -> None:
        from scipy import fft

        if points > MAX_POINTS:
            raise MemoryError(
                f"a convolution over {points} lattice points is over the limit of {MAX_POINTS};"
                " use a larger rtol, or fewer rounds in one question"
            )
        self._size = int(fft.next_fast_len(max(points, 16), real=True))
        self._tails = tails
        self._eta = FFT_CONSTANT * ROUNDOFF * math.log2(self._size)
        self._spectrum: NDArray[np.complex128] | None = None
        self._rounding = self._inherited = self._relative = self._shrunk = 0.0
        self._log_scale = self._scale_size = 0.0
        self._low = 0
        self._laws = 0
        self._step = self._tilt = math.nan

    def multiply(self, law: Law, count: int = 1) -> None:
        """Multiply by law^count. One transform."""
        from scipy import fft

        law = _trimmed(law)
        factor = _power(fft.rfft(folded(law.mass, self._size), self._size), count)
        self._spectrum = factor if self._spectrum is None else self._spectrum * factor
        self._rounding += count * self._eta * math.sqrt(dot(law.mass, law.mass))
        self._inherited += count * math.log1p(law.error)
        folds = -(-law.mass.size // self._size)
        self._relative += count * math.log1p(law.relative + folds * ROUNDOFF)
        self._shrunk += count * law.shrunk
        self._log_scale += count * law.log_scale
        self._scale_size += count * abs(law.log_scale)
        self._low += count * law.low
        self._laws += count
        self._step, self._tilt = law.step, law.tilt

    def value(self) -> Law:
        """The product so far, with its certificate. One inverse transform."""
        from scipy import fft

        assert self._spectrum is not None
        first, last = self._tails.window()
        width = last - first + 1
        if width > self._size:
            raise MemoryError(
                f"a window of {width} points does not fit a transform of {self._size}"
            )
        size = self._size
        mass = fft.irfft(self._spectrum, size)
        norm = math.sqrt(dot(mass, mass))
        start = (first - self._low) % size
        mass = np.concatenate((mass[start:], mass[:start]))[:width]
        np.maximum(mass, 0.0, out=mass)
        widened = math.exp(
            self._laws * (size + 64.0) * ROUNDOFF * 4.0 + self._inherited + self._relative
        )
        multiplying = math.sqrt(5.0) * 1.01 * ROUNDOFF * self._laws
        error = widened * (
            # A lower placement is not linear in the noise it met: the noise of one factor is set against
            # the other factors before their placements shrank them.
            math.expm1(self._inherited) * math.exp(self._shrunk)
            + 2.0 * self._tails.tail
            + math.sqrt(size) * (self._rounding + (multiplying + 2.0 * self._eta) * norm)
        )
        relative = math.expm1(self._relative) + 4.0 * ROUNDOFF * self._scale_size
        return Law(
            mass, first, self._step, self._tilt, self._log_scale, error, relative, self._shrunk
        )


def product(factors: list[tuple[Law, int]], tail: float) -> Law:
    """The convolution of law^count over `factors` (same step and tilt).

    `tail` is the tilted mass the window may leave out. Cost: one transform per factor of the window's
    length. Raises MemoryError before allocating a window over MAX_POINTS.
    """
    if len(factors) == 1 and factors[0][1] == 1:
        return factors[0][0]
    deviation = math.sqrt(sum(count * variance(law) for law, count in factors))
    tails = Tails(deviation, tail)
    for law, count in factors:
        tails.add(law, count)
    running = RunningProduct(tails.points(), tails)
    for law, count in factors:
        running.multiply(law, count)
    return running.value()


def direct_product(factors: list[tuple[Law, int]]) -> Law:
    """The same convolution by sums of nonnegative products: relative accuracy everywhere, quadratic cost.

    For the rare composition whose tilted law has a deep valley at the losses of interest (one round in the
    bulk, or one near its largest loss, but little between), where no tilt lifts them over the noise of
    a transform. Raises MemoryError before more than MAX_DIRECT multiplications.
    """
    sizes = [law.mass.size for law, count in factors for _ in range(count)]
    cost = total = 0
    for size in sizes:
        cost += total * size
        total += size
        if cost > MAX_DIRECT:
            raise MemoryError(
                f"a direct convolution of {len(sizes)} laws is over the limit of {MAX_DIRECT:.0e}"
                " multiplications; use a larger rtol or a larger delta"
            )
    result: Law | None = None
    for law, count in factors:
        for _ in range(count):
            if result is None:
                result = law
                continue
            terms = min(result.mass.size, law.mass.size)
            result = Law(
                np.convolve(result.mass, law.mass),
                result.low + law.low,
                law.step,
                law.tilt,
                result.log_scale + law.log_scale,
                # Products below the smallest double are lost: far less than 1e-290 in all.
                (result.error + law.error * (1.0 + result.error))
                * math.exp(result.shrunk + law.shrunk)
                + 1e-290,
                (1.0 + result.relative) * (1.0 + law.relative) * (1.0 + 2.0 * terms * ROUNDOFF)
                - 1.0
                + 4.0 * ROUNDOFF * abs(result.log_scale + law.log_scale),
                result.shrunk + law.shrunk,
            )
    assert result is not None
    return result


def variance(law: Law) -> float:
    """Tilted variance in squared lattice points."""
    index = np.arange(law.mass.size, dtype=np.float64)
    mean = dot(law.mass, index)
    return max(0.0, dot(law.mass, (index - mean) ** 2))


def folded(mass: Array, size: int) -> Array:
    """`mass` modulo `size`: exactly the aliasing that the window's tail bound covers."""
    if mass.size <= size:
        return mass
    rows = -(-mass.size // size)
    padded = np.zeros(rows * size)
    padded[: mass.size] = mass
    folded: Array = padded.reshape(rows, size).sum(axis=0)
    return folded


def _power(values: NDArray[np.complex128], count: int) -> NDArray[np.complex128]:
    """values ** count by squaring: relative error at most (count - 1) sqrt(5) u (1 + tiny)."""
    result: NDArray[np.complex128] | None = None
    base = values
    while True:
        if count & 1:
            result = base if result is None else result * base
        count >>= 1
        if not count:
            assert result is not None
            return result
        base = base * base


class Reader:
    """Reads sum_j p_j (1 - exp(eps - x_j))_+ off a Law, with the certificate applied.

    O(points) once, O(1) per value. The weight exp(-tilt (x-eps)) (1 - exp(eps-x)) is at most
    tilt^tilt / (1+tilt)^(1+tilt), which turns `Law.error` into an absolute error.
    """

    def __init__(self, law: Law) -> None:
        self.law = law
        size = law.mass.size
        self._plain = np.zeros(size + 1)
        self._hockey = np.zeros(size + 1)
        kernels.hockey_sums(
            law.mass, math.exp(-law.tilt * law.step), -math.expm1(-law.step), self._plain[:-1],
            self._hockey[:-1],
        )  # fmt: skip
        t = law.tilt
        self._peak = math.exp((t * math.log(t) if t > 0.0 else 0.0) - (1.0 + t) * math.log1p(t))
        self._relative = 1.01 * law.relative + 8.0 * ROUNDOFF * (size + 16.0)

    def _value(self, eps: float) -> float:
        """The sum under the tilt, relative to its scale at eps."""
        law = self.law
        j = max(0, math.floor(eps / law.step) + 1 - law.low)
        if j >= law.mass.size:
            return 0.0
        gap = (law.low + j) * law.step - eps
        return math.exp(-law.tilt * gap) * (
            -math.expm1(-gap) * float(self._plain[j]) + math.exp(-gap) * float(self._hockey[j])
        )

    def noise(self, eps: float) -> float:
        """The part of the value at eps that total variation (windows, transforms) may have got wrong."""
        if eps == math.inf:  # nothing finite is left there
            return 0.0
        value = self._value(eps)
        return self._peak * self.law.error / value if value > 0.0 else math.inf

    def bracket(self, eps: float) -> tuple[float, float]:
        """(lower, upper) for the exact law; upper >= 0, not clipped at 1."""
        lower, upper = self.brackets(np.array([eps]))
        return float(lower[0]), float(upper[0])

    def brackets(self, eps: Array) -> tuple[Array, Array]:
        """`bracket` at many eps, shape (questions,) each."""
        law = self.law
        j = np.clip(np.floor(eps / law.step) + 1 - law.low, 0, law.mass.size).astype(np.int64)
        gap = np.where(j < law.mass.size, (law.low + j) * law.step - eps, 0.0)
        value = np.exp(-law.tilt * gap) * (
            -np.expm1(-gap) * self._plain[j] + np.exp(-gap) * self._hockey[j]
        )
        exponent = law.log_scale - law.tilt * eps
        relative = self._relative + 8.0 * ROUNDOFF * (
            1.0 + abs(law.log_scale) + 2.0 * np.abs(law.tilt * eps) + np.abs(exponent)
        )
        wrong = self._peak * law.error
        far = exponent > 600.0  # too far below the tilted mean to say anything
        scale = np.exp(np.minimum(exponent, 600.0))
        lower = np.maximum(0.0, value * (1.0 - relative) - wrong) * scale * (1.0 - relative)
        upper = (value * (1.0 + relative) + wrong) * scale * (1.0 + relative)
        upper += UNDERFLOW * (1.0 + wrong)  # where the scale underflows, and errors are large
        return np.where(far, 0.0, lower), np.where(far, math.inf, upper)
