"""Products of laws on one lattice, from the few frequencies that matter: for many products at once.

Under a tilt that lifts the losses of interest, the characteristic function of a product of many rounds is next to
nothing but near frequency 0. So a product is a short row of numbers, one more round multiplies them, and delta is a sum
over them. Here all that is multiplied is kept as logarithms, so that the prefixes of a log are cumulative sums.
docs/theory.md, section 7, "Few frequencies", has the proofs.

* *Exact on the lattice.* With N points to a period, the discrete Fourier transform gives the circular sums exactly; the
  sum over the losses behind eps is a geometric series. Nothing is smoothed.
* *Aliases* are never negative: nothing has to be done above; below they are bounded by Chernoff.
* *Frequencies left out* are booked. |phi| is bounded there by moments (cos u <= 1 - u^2/2 + u^4/24), and by a
  transform of some of the laws.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..numerics import kernels
from ..numerics.convolution import FFT_CONSTANT, Law, dot, folded, variance
from ..numerics.rounding import ROUNDOFF
from ..numerics.sides import Side
from .aliases import BOOKED_SHARE, RATES, TooDear, log_geometric, log_peak
from .plan import Plan
from .pld import PLD, log_finite
from .rounds import log_phi

Array = NDArray[np.float64]

LEAST_DELTA = 1e-250  # below, few frequencies are not asked
MOST_NODES = 1024
MOST_POINTS = 2**20  # of a period
ENOUGH = 48  # rounds whose transforms bound what is left out
MARGIN = 1.15  # of the period: products are read a little off their tilted means
CLOSE = 1e-10  # relative distance from delta at which a search of epsilon ends
MOST_READINGS = 30


class Spectrum:
    """Laws of one lattice and one side, their characteristic functions at shared frequencies.

    laws, counts : rounds that are in all products, counts of shape (laws,). times : how many times as many rounds the
    largest product has. plan : gives tilt and tolerance. Raises TooDear where too many frequencies matter.
    """

    def __init__(self, laws: Sequence[PLD], counts: Array, times: float, plan: Plan) -> None:
        self._step = laws[0].step
        self._side = laws[0].side
        self._c = max(plan.tilt, 1.0 / math.sqrt(plan.variance))
        self._tolerance = BOOKED_SHARE * plan.rtol * min(1.0, plan.share)
        held = [_Tilted.of(law, self._c) for law in laws]
        square = sum(k * variance(one.law) for k, one in zip(counts, held, strict=True))
        self._deviation = self._step * math.sqrt(times * square)
        self._period(held, times * counts)
        self._nodes(held, counts)
        self._table_low, self._table = 0, np.empty((0, 0))
        self._rows: list[Array] = []
        for one in held:
            self._add(one)

    @property
    def nodes(self) -> int:
        """How many frequencies matter."""
        return int(self._k.size)

    def add(self, law: PLD) -> Array:
        """One more law; its row."""
        self._add(_Tilted.of(law, self._c))
        return self._rows[-1]

    def rows(self) -> Array:
        """What one round of each law adds to the totals of a product, shape (laws, columns): see `Totals`."""
        return np.stack(self._rows)

    # -- what is summed ----------------------------------------------------------------------------

    def _period(self, held: list[_Tilted], most: Array) -> None:
        """Chernoff's rates, and a period for which aliases are small in the largest product."""
        from scipy import fft

        c = self._c
        distances = np.append(RATES / self._deviation, c)
        self._rates = distances
        self._left = distances <= c  # not beyond rate 0
        both = np.stack((c + distances, np.maximum(c - distances, 0.0)))
        self._log_peaks = log_peak(both)
        moments = sum(k * one.moments(distances) for k, one in zip(most, held, strict=True))
        need = (
            moments
            + self._log_peaks
            + math.log1p(c * (1.0 + c) * math.sqrt(2.0 * math.pi) * self._deviation)
        )
        wide = (need - math.log(0.1 * self._tolerance)) / distances
        least = max(float(wide[0].min()), float(wide[1][self._left].min()))
        points = MARGIN * max(least, 4.0 * self._deviation) / self._step
        if not points <= MOST_POINTS:
            raise TooDear
        self._points = int(fft.next_fast_len(math.ceil(points), real=True))

    def _nodes(self, held: list[_Tilted], sure: Array) -> None:
        """The frequencies to keep, and a bound on what all others add."""
        count = self._points // 2
        k = np.arange(1, count + 1)
        y = np.asarray(k * (2.0 * math.pi / (self._points * self._step)), np.float64)
        share = _share(self._c, y, self._step)
        if self._points % 2 == 0:
            share[-1] *= 0.5  # all others come in pairs
        log_bound = np.minimum(_by_moments(held, sure, y), self._by_transforms(held, sure))
        size = np.exp(np.minimum(log_bound, 0.0)) * np.abs(share)
        kept = size > self._tolerance / count
        self._k, self._y, self._share = k[kept], y[kept], share[kept]
        if self._k.size > MOST_NODES:
            raise TooDear
        self._booked = 2.0 * float(size[~kept].sum()) * (1.0 + 1e-9)

    def _by_transforms(self, held: list[_Tilted], counts: Array) -> Array:
        """log of a bound on the product's |phi| at all frequencies, from as many rounds as it takes."""
        from scipy import fft

        noise = FFT_CONSTANT * ROUNDOFF * math.log2(self._points) * math.sqrt(self._points)
        total = np.zeros(self._points // 2)
        rounds = 0.0
        for count, one in zip(counts, held, strict=True):
            mass = folded(one.law.mass, self._points)
            norm = math.sqrt(dot(mass, mass))
            size = np.abs(fft.rfft(mass, self._points))[1:] + noise * norm
            total += count * np.log(np.minimum(size, 1.0))
            rounds += count
            if rounds >= ENOUGH:
                break
        return total

    def _add(self, one: _Tilted) -> None:
        size = one.law.mass.size
        if one.first < self._table_low or one.first + size > self._table_low + len(self._table):
            margin = size // 8
            low = min(one.first - margin, self._table_low)
            high = max(one.first + size + margin, self._table_low + len(self._table))
            angle = np.outer(np.arange(low, high), self._y * self._step)
            half = np.sin(0.5 * angle)
            self._table = np.concatenate((2.0 * half * half, np.sin(angle)), axis=1)
            self._table_low = low
        start = one.first - self._table_low
        sums = np.einsum("i,ij->j", one.law.mass, self._table[start : start + size])
        log, most, wrong = self._values(one, *np.split(sums, 2))
        turn = np.abs(log.imag) + np.abs(log.real)
        columns = [log.real, log.imag, np.log(most), wrong / most, turn]
        self._rows.append(np.concatenate((*columns, one.moments(self._rates).ravel(), one.numbers)))

    def _values(self, one: _Tilted, versine: Array, sine: Array) -> tuple[np.ndarray, Array, Array]:
        """log phi at the nodes, a bound on |phi|, and one on the error of phi."""
        angle = self._y * one.spread
        wrong = ROUNDOFF * (
            8.0 + 32.0 * angle + (one.law.mass.size + 16.0) * np.minimum(angle, 4.0)
        )
        wrong += one.law.error
        log = log_phi(versine, sine)
        return log, np.exp(log.real) + wrong, wrong


@dataclass(frozen=True)
class _Tilted:
    """A tilted law around one of its points, `offset`."""

    law: Law
    offset: int
    spread: float  # E|X|, X the loss less that of `offset`
    powers: Array  # E X^j, j = 1 to 4
    numbers: Array  # offset, log_scale, |log_scale|, relative error, log of finite mass, slack

    @classmethod
    def of(cls, pld: PLD, c: float) -> _Tilted:
        law = pld.tilted(c)
        index = np.arange(law.mass.size, dtype=np.float64)
        middle = round(dot(law.mass, index))
        x = (index - middle) * law.step
        sizes = [np.abs(x), x, x * x, x * x * x, x * x * x * x]
        spread, *powers = (dot(law.mass, size) for size in sizes)
        # The masses sum to 1 only up to their rounding.
        relative = math.log1p(law.relative) + 2.0 * ROUNDOFF * (law.mass.size + 4.0)
        finite = log_finite(pld.infinity)
        offset = law.low + middle
        numbers = [offset, law.log_scale, abs(law.log_scale), relative, finite, pld.slack]
        return cls(law, offset, spread, np.array(powers), np.array(numbers, np.float64))

    @property
    def first(self) -> int:
        """Index of the first mass, from `offset`."""
        return self.law.low - self.offset

    def moments(self, rates: Array) -> Array:
        """Bounds on log E exp(+-rate X), shape (2, rates); inf where they might overflow."""
        sums = np.empty((2, rates.size))
        lattice = rates * self.law.step
        kernels.exponential_sums(self.law.mass, lattice, sums)
        shift = (self.law.mass.size // 2 + self.first) * lattice
        with np.errstate(invalid="ignore"):
            logs = np.log(sums[::-1]) + np.stack((shift, -shift))
        return np.asarray(logs + 1e-13 * (1.0 + np.abs(shift)) + 4e-16 * self.law.mass.size)


class Totals:
    """Products of a spectrum's laws.

    totals : count-weighted sums of the spectrum's rows, shape (products, columns), each of at most `terms` summands.
    """

    def __init__(self, spectrum: Spectrum, totals: Array, terms: int) -> None:
        self._spectrum = spectrum
        nodes, rates = spectrum._k.size, spectrum._rates.size
        ends = np.cumsum([nodes] * 5 + [2 * rates])
        real, turn, log_most, wrong, turned, moments, numbers = np.split(totals, ends, axis=1)
        self._offset, self._log_scale, size, relative, finite, slack = numbers.T
        rounding = ROUNDOFF * (terms + 4.0)
        self._wave = np.exp(real + 1j * turn) * spectrum._share
        share = np.abs(spectrum._share)
        error = np.exp(np.minimum(log_most, 1.0)) * (wrong + (rounding + 4.0 * ROUNDOFF) * turned)
        sums = np.abs(self._wave).sum(axis=1) * ROUNDOFF * (128.0 + nodes)
        self._error = 2.0 * ((error @ share) + sums) * (1.0 + 1e-6) + spectrum._booked
        self._error += 16.0 * ROUNDOFF
        self._relative = 1.01 * relative * (1.0 + terms * ROUNDOFF) + rounding * size
        self._moments = moments.reshape(-1, 2, rates)
        upper = spectrum._side is Side.UPPER
        sign = 1.0 if upper else -1.0
        self.infinity = np.minimum(-np.expm1(finite) * (1.0 + sign * (2e-15 + rounding)) + 0.0, 1.0)
        self._slack = -sign * slack * (1.0 + 1e-9 + rounding)
        self._sign = sign

    @property
    def means(self) -> Array:
        """The tilted means."""
        return np.asarray(self._offset * self._spectrum._step)

    def epsilons(self, delta: float, near: Array) -> tuple[Array, Array]:
        """The least eps proven to have delta (upper laws) or the largest excluded (lower laws), and log widths there.

        near : guesses, shape (products,). delta in (0, 1). nan where the search did not end. About eight readings.
        """
        upper = self._sign > 0.0
        aim, wanted = math.log(delta), -self._sign * CLOSE
        eps = np.maximum(near, 0.0)
        found, width = np.full(eps.size, math.nan), np.full(eps.size, math.inf)
        before, slope = eps, np.full(eps.size, -self._spectrum._c)
        excess = np.zeros(eps.size)
        for _ in range(MOST_READINGS):
            below, above = self.bounds(eps)
            with np.errstate(divide="ignore"):
                now = np.log(above if upper else below) - aim
                apart = np.log(above) - np.log(below)
            proven = now <= 0.0 if upper else below > delta
            # At 0 there is no end to be found: nothing smaller can be asked, or nothing is excluded.
            done = np.where(eps == 0.0, proven == upper, proven & (np.abs(now) <= 2.0 * CLOSE))
            done &= np.isnan(found)
            found[done], width[done] = eps[done], apart[done]
            if not np.isnan(found).any():
                break
            with np.errstate(divide="ignore", invalid="ignore"):
                secant = (now - excess) / (eps - before)
                useful = (secant < -0.05 * self._spectrum._c) & (
                    secant > -100.0 * self._spectrum._c
                )
                slope = np.where(useful, secant, slope)
                step = (wanted - now) / slope
            before, excess = eps, now
            eps = np.maximum(np.where(np.isfinite(step), eps + step, eps), 0.0)
        return found, width

    def bounds(self, eps: Array) -> tuple[Array, Array]:
        """Bounds on delta at eps of what the laws stand for, shape (products,).

        Only the end on the laws' own side bounds delta; the other one tells how much is lost by summing.
        """
        found = self._spectrum
        c, step, points = found._c, found._step, found._points
        eps = eps + self._slack - self._sign * 1e-15 * np.abs(eps)
        index = np.floor(eps / step) + 1.0
        gap = np.clip(index * step - eps, 0.0, step)
        behind = index - self._offset
        # Phases are exact fractions of a turn.
        turns = np.fmod(np.outer(behind, found._k), points) / points
        wave = self._wave * np.exp(-2j * math.pi * turns)
        ahead = np.exp(-1j * found._y * step)
        first = 1.0 + 2.0 * wave.real.sum(axis=1)
        second = 1.0 + 2.0 * (wave * ahead).real.sum(axis=1)
        left, right = -np.expm1(-gap), -np.exp(-gap) * np.expm1(gap - step) * math.exp(-c * step)
        value = left * first + right * second
        wrong = (left + right) * self._error
        exponent = self._log_scale - c * (eps + gap)
        relative = self._relative + ROUNDOFF * (
            64.0 + 8.0 * np.abs(self._log_scale) + 16.0 * c * np.abs(eps) + np.abs(exponent)
        )
        # -log of the weight of frequency 0, and of the number of frequencies.
        log_weight = math.log(math.expm1(-c * step) * math.expm1(-(c + 1.0) * step) * points)
        with np.errstate(over="ignore", invalid="ignore"):
            scale = np.exp(exponent - log_weight)
            widened = np.exp(np.minimum(relative, 1.0))
            upper = (np.maximum(value, 0.0) + wrong) * scale * widened + 1e-300
            lower = np.maximum((value - wrong) * scale / widened - self._aliases(eps), 0.0)
        lost = ~((exponent < 600.0) & (relative < 0.5))
        upper[lost], lower[lost] = math.inf, 0.0
        upper = np.minimum((upper + self.infinity) * (1.0 + 1e-15), 1.0)
        return (lower + self.infinity) * (1.0 - 1e-15), upper

    def _aliases(self, eps: Array) -> Array:
        """Bounds on what other periods add at eps."""
        found = self._spectrum
        rates, period = found._rates, found._points * found._step
        distance = self._offset * found._step - eps
        signs = np.array([[1.0], [-1.0]])
        log = self._moments + found._log_peaks + (signs * rates) * distance[:, None, None]
        log += 1e-13 * (np.abs(self._moments) + np.abs(rates * distance[:, None, None]))
        log += (self._log_scale - found._c * eps)[:, None, None]
        log += log_geometric(rates * period)
        log[:, 1, ~found._left] = math.inf
        both = np.exp(np.minimum(log.min(axis=2), 700.0))
        return np.asarray(both.sum(axis=1))


def _share(c: float, y: Array, step: float) -> np.ndarray:
    """The weight of frequency y relative to that of 0: D(0)/D(y), D = (1 - e^-zs)(1 - e^-(z+1)s)."""
    z = c + 1j * y
    real = math.expm1(-c * step) * math.expm1(-(c + 1.0) * step)
    return np.asarray(real / (np.expm1(-z * step) * np.expm1(-(z + 1.0) * step)))


def _by_moments(held: list[_Tilted], sure: Array, y: Array) -> Array:
    """log of a bound on the product's |phi| at y: |phi|^2 <= 1 - y^2 Var + y^4 E(X - X')^4/24."""
    first, second, third, fourth = np.stack([one.powers for one in held]).T
    spread = np.maximum(second - first * first, 0.0) * (1.0 - 1e-9)
    apart = (2.0 * fourth - 8.0 * third * first + 6.0 * second * second) * (1.0 + 1e-9)
    square = y * y
    return np.asarray(
        0.5 * square * (square * float(sure @ apart) / 24.0 - float(sure @ spread)) + 1e-12
    )
