"""Products of laws on one lattice: the contour integral of `contour`, at the lattice's own nodes.

Under a tilt that lifts the losses of interest, delta of a product of laws is a sum over the frequencies of a discrete
Fourier transform. For many rounds a few dozen nodes near frequency 0 are enough; for few rounds all nodes count, and
the sums for all epsilons are one inverse transform. The nodes are kept as logarithms, so the prefixes of a log are
cumulative sums. Nothing is smoothed. Proofs, and what is booked: docs/theory.md, section 7, "Few frequencies";
docs/certificates.md, 10 and 11.

*By direct convolution* (`DirectReading`) products have relative accuracy everywhere, at quadratic cost: for the rare
composition whose tilted law has a deep valley at the losses of interest, where no tilt lifts them over the rounding of
an integral. One round's atoms are read where they lie.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
from numpy.typing import NDArray

from ..numerics.lattice import aligned, fast_length
from ..numerics.sides import ROUNDOFF, Array, Bounds, Side
from ..numerics.tuning import BOOKED_SHARE, DIRECT_WORK, MANY_ROUNDS, NUMBERS, TRANSFORM_WORK
from ..pairs.discrete import Losses
from ..pairs.pair import Pair, Resolution
from .moments import RATES, Rounds, TooExpensive, log_geometric, log_peak, log_phi
from .plan import Plan
from .pld import PLD, formed, log_finite
from .reading import Question, Reading

Complex = NDArray[np.complex128]

FFT_CONSTANT = 12.0  # of the rounding of transforms, see above
LEAST_DELTA = 1e-250  # below, logarithms of what is left out underflow
MARGIN = 1.15  # of the period: products are read a little off their tilted means
UNDERFLOW = 1e-300  # more than what underflows
DIRECT_UNDERFLOW = 1e-290  # more than the products that underflow in direct sums, in all


def dot(left: Array, right: Array) -> float:
    """Inner product without BLAS, whose threads cost more than they gain at these lengths."""
    return float(np.einsum("i,i->", left, right))


def shared_lattice(plan: Plan, pairs: Collection[Pair]) -> Resolution:
    """For laws on one lattice; the largest loss of the pair with the fewest losses is a point of it."""
    limits = {float(pair.max_loss.upper) for pair in pairs}
    # What has few losses loses most when they are no points of the lattice.
    least = min(limits)
    if any(not float(limit / least).is_integer() for limit in limits if limit < math.inf):
        least = float(min(pairs, key=lambda pair: float(pair.max_loss.upper) / pair.scale).max_loss.upper)
    return plan.resolution(aligned(plan.step, least))


class LatticeIntegral:
    """Laws of one lattice and one side: their characteristic functions at shared nodes.

    laws, counts : rounds that are in all products, counts of shape (laws,). times : how many times as many rounds the
    largest product has. plan : gives tilt and tolerance. terms : the most summands of a product. Raises TooExpensive
    where too many nodes matter.
    """

    def __init__(self, laws: Sequence[PLD], counts: Array, plan: Plan, *, times: float = 1.0, terms: int = 0) -> None:
        self.step, self.side = laws[0].step, laws[0].side
        self.c = plan.rate
        self._tolerance = BOOKED_SHARE * plan.rtol * min(1.0, plan.share)
        self.rounding = ROUNDOFF * (max(terms, len(laws)) + 8.0)
        held = [_Tilted.of(law, self.c) for law in laws]
        self._latest: tuple[_Tilted, Complex, float] | None = None  # the latest transform
        square = sum(k * one.variance for k, one in zip(counts, held, strict=True))
        self._deviation = max(math.sqrt(times * square), 0.1 * self.step)
        moments = self._choose_period(held, times * counts)
        self._choose_nodes(held, counts)
        if self.k.size * max(terms, len(laws)) > NUMBERS:
            raise TooExpensive
        self.rows = [self._row(one, known) for one, known in zip(held, moments, strict=True)]

    def row(self, law: PLD) -> Array:
        """What one more round of a law adds to the totals of a product, whose columns `LatticeProducts` names."""
        one = _Tilted.of(law, self.c)
        return self._row(one, one.moments(self.rates))

    # -- what is summed ----------------------------------------------------------------------------

    def _choose_period(self, held: list[_Tilted], most: Array) -> list[Array]:
        """Chernoff's rates, and a period for which aliases are small in the largest product; the laws' moments."""
        c = self.c
        self.rates = np.append(RATES / self._deviation, c)
        self.left = self.rates <= c  # not beyond rate 0
        self.log_peaks = log_peak(np.stack((c + self.rates, np.maximum(c - self.rates, 0.0))))
        moments = [one.moments(self.rates) for one in held]
        need = sum(k * known for k, known in zip(most, moments, strict=True)) + self.log_peaks
        need += math.log1p(c * (1.0 + c) * math.sqrt(2.0 * math.pi) * self._deviation)
        wide = (need - math.log(0.1 * self._tolerance)) / self.rates
        least = max(float(wide[0].min()), float(wide[1][self.left].min()))
        points = MARGIN * max(least, 4.0 * self._deviation) / self.step
        if not points <= NUMBERS:
            raise TooExpensive
        self.points = fast_length(max(16, math.ceil(points)))
        self.eta = FFT_CONSTANT * ROUNDOFF * math.log2(self.points)  # error of a transform, relative, in the 2-norm
        return moments

    def _choose_nodes(self, held: list[_Tilted], sure: Array) -> None:
        """The nodes to keep, and a bound on what all others add."""
        count = self.points // 2
        k = np.arange(1, count + 1)
        y = np.asarray(k * (2.0 * math.pi / (self.points * self.step)), np.float64)
        c, step = self.c, self.step
        first, second = -math.expm1(-c * step), -math.expm1(-(c + 1.0) * step)
        self.log_weight = math.log(first * second * self.points)  # -log of that of frequency 0, and how many
        turned = 4.0 * np.sin(0.5 * step * y) ** 2
        # |D(0)/D(y)|, D = (1 - e^-zs)(1 - e^-(z+1)s): the weight of frequency y relative to that of 0.
        weight = (first * first + (1.0 - first) * turned) * (second * second + (1.0 - second) * turned)
        weight = first * second / np.sqrt(weight) * (1.0 + 1e-12)
        if self.points % 2 == 0:
            weight[-1] *= 0.5  # all others come in pairs
        size = np.exp(self._by_transforms(held, sure)) * weight
        kept = size > self._tolerance / count
        self.k = k[kept]
        z = c + 1j * y[kept]
        self.share = first * second / (np.expm1(-z * step) * np.expm1(-(z + 1.0) * step))
        if self.points % 2 == 0 and kept[-1]:
            self.share[-1] *= 0.5
        self.booked = 2.0 * float(size[~kept].sum()) * (1.0 + 1e-9)

    def _transform(self, one: _Tilted) -> tuple[Complex, float]:
        """phi around the law's offset at all frequencies but 0, and its error: that of the 2-norm."""
        if self._latest is not None and self._latest[0] is one:
            return self._latest[1:]
        mass = np.roll(_folded(one.mass, self.points), one.first % self.points)
        norm = math.sqrt(dot(mass, mass))
        found = np.conj(np.fft.rfft(mass, self.points)[1:])
        error = self.eta * math.sqrt(self.points) * norm * (1.0 + 1e-9)
        self._latest = one, found, error
        return found, error

    def _by_transforms(self, held: list[_Tilted], counts: Array) -> Array:
        """log of a bound on the product's |phi| at all frequencies, from as many rounds as it takes."""
        total, rounds = np.zeros(self.points // 2), 0.0
        for count, one in zip(counts, held, strict=True):
            found, error = self._transform(one)
            total += count * np.log(np.minimum(np.abs(found) + error, 1.0))
            rounds += count
            if rounds >= MANY_ROUNDS:
                break
        return total

    def _row(self, one: _Tilted, moments: Array) -> Array:
        found, error = self._transform(one)
        found, value_error = found[self.k - 1], error + one.error
        log = log_phi(1.0 - found.real, found.imag)
        most = np.exp(log.real) + value_error
        relative = value_error / most + self.rounding * (np.abs(log.imag) + np.abs(log.real))
        return np.concatenate((log.real, log.imag, np.log(most), relative, moments.ravel(), one.numbers))


@dataclass(frozen=True)
class _Tilted:
    """A law under the tilt c, around one of its points, `offset`; X is the loss less that of `offset`."""

    mass: Array
    step: float
    first: int  # index of the first mass, from `offset`
    error: float  # of all masses together
    variance: float
    numbers: Array  # offset, log_scale, |log_scale|, relative error, log of finite mass, slack

    @classmethod
    def of(cls, pld: PLD, c: float) -> _Tilted:
        mass, log_scale, relative = pld.tilted(c)
        index = np.arange(mass.size, dtype=np.float64)
        middle = round(dot(mass, index))
        x = (index - middle) * pld.step
        mean, square = dot(mass, x), dot(mass, x * x)
        # The masses sum to 1 only up to their rounding.
        relative = math.log1p(relative) + 2.0 * ROUNDOFF * (mass.size + 4.0)
        offset, finite = pld.low + middle, log_finite(pld.infinity)
        numbers = [offset, log_scale, abs(log_scale), relative, finite, pld.loss_error]
        return cls(
            mass, pld.step, pld.low - offset, mass.size * UNDERFLOW,
            max(0.0, square - mean * mean), np.array(numbers, np.float64),
        )  # fmt: skip

    def moments(self, rates: Array) -> Array:
        """Bounds on log E exp(+-rate X), shape (2, rates)."""
        lattice, size = rates * self.step, self.mass.size
        # Exponentials for blocks of points times those inside of a block: their products are right to 700 u.
        block, shift = math.isqrt(size) + 1, (size // 2 + self.first) * lattice
        before, inside = np.outer(lattice, block * np.arange(block) - size // 2), np.outer(lattice, np.arange(block))
        rows = np.append(self.mass, np.zeros(block * block - size)).reshape(block, block).T
        with np.errstate(all="ignore"):
            sums = [np.sum(np.exp(s * before) * (np.exp(s * inside) @ rows), axis=1) for s in (1.0, -1.0)]
            logs = np.log(sums) + np.stack((shift, -shift))
        logs[:, lattice * (size + 1.0) > 1200.0] = math.inf
        logs += 1e-13 * (1.0 + np.abs(shift)) + 4e-16 * size
        for sign, rate in zip(*np.nonzero(~np.isfinite(logs)), strict=True):  # the sums overflow
            index = (self.first + np.arange(size)) * (1.0 - 2.0 * sign)
            with np.errstate(divide="ignore"):
                exponent = np.log(self.mass) + lattice[rate] * index
            peak = float(exponent.max())
            logs[sign, rate] = peak + math.log(float(np.exp(exponent - peak).sum()))
            logs[sign, rate] += 1e-12 * (1.0 + float(np.abs(lattice[rate] * index).max()))
        return np.asarray(logs)


class LatticeProducts:
    """Products of an integral's laws; totals : count-weighted sums of its rows, shape (products, columns)."""

    def __init__(self, integral: LatticeIntegral, totals: Array) -> None:
        self._integral = integral
        nodes, rates = integral.k.size, integral.rates.size
        ends = np.cumsum([nodes] * 4 + [2 * rates])
        real, turn, log_most, value_error, moments, numbers = np.split(totals, ends, axis=1)
        self._offset, self._log_scale, size, relative, finite, loss_error = numbers.T
        self._wave = np.exp(real + 1j * turn) * integral.share
        share = np.abs(integral.share)
        self._error = 2.0 * (np.exp(np.minimum(log_most, 1.0)) * value_error) @ share * (1.0 + 1e-6)
        self._error += integral.booked + 16.0 * ROUNDOFF
        self._ahead = np.exp(-2j * math.pi * integral.k / integral.points)
        self._asked = 0  # waves that were turned one by one, for each product
        sums = np.abs(self._wave).sum(axis=1) * ROUNDOFF * (128.0 + integral.k.size)
        self._wrong = 2.0 * sums + self._error
        rounding = integral.rounding
        self._relative = 1.01 * relative * (1.0 + rounding) + rounding * size
        self._relative += 8.0 * ROUNDOFF * np.abs(self._log_scale)
        self._moments = moments.reshape(-1, 2, rates)
        self._sign = 1.0 if integral.side is Side.UPPER else -1.0
        # A few ulp: the masses carry their own allowance.
        lost = -np.expm1(finite) * (1.0 + self._sign * (2e-15 + rounding)) + 0.0
        self.infinity = np.minimum(lost, 1.0)
        self.lost = Bounds(self.infinity * (1.0 - 1e-15), self.infinity)
        self._loss_error = -self._sign * loss_error * (1.0 + 1e-9 + rounding)

    @property
    def c(self) -> float:
        """The tilt."""
        return self._integral.c

    @property
    def centre(self) -> Array:
        """The tilted means."""
        return np.asarray(self._offset * self._integral.step)

    @cached_property
    def _table(self) -> tuple[Array, Array]:
        """`_sums` at all points of a period by one transform, and its error."""
        held = self._integral
        spectrum = np.zeros((len(self._wave), held.points // 2 + 1), np.complex128)
        spectrum[:, 0] = 1.0
        spectrum[:, held.k] = np.conj(self._wave)
        if held.points % 2 == 0 and held.k.size and held.k[-1] == held.points // 2:
            spectrum[:, -1] = 2.0 * spectrum[:, -1].real
        norm = np.sqrt(1.0 + 2.0 * (np.abs(self._wave) ** 2).sum(axis=1))
        error = held.eta * math.sqrt(held.points) * norm * (1.0 + 1e-9)
        return np.fft.irfft(spectrum, held.points, axis=1) * held.points, error

    def _sums(self, index: Array) -> tuple[Array, Array, Array]:
        """1 + 2 Re sum of the waves, turned back to lattice points `index` and to the next ones; and their error."""
        held = self._integral
        behind = index - self._offset
        self._asked += held.k.size * behind.size // len(self._wave)
        if TRANSFORM_WORK * self._asked >= held.points:
            table, error = self._table
            place = np.fmod(behind, held.points).astype(np.int64)
            row = np.arange(behind.size) if len(table) > 1 else np.zeros(behind.size, np.int64)
            first, second = (table[row, (place + ahead) % held.points] for ahead in (0, 1))
            return first, second, error + self._wrong
        # Phases are exact fractions of a turn.
        turns = np.fmod(np.outer(behind, held.k), held.points) / held.points
        wave = self._wave * np.exp(-2j * math.pi * turns)
        first = 1.0 + 2.0 * wave.real.sum(axis=1)
        second = 1.0 + 2.0 * (wave * self._ahead).real.sum(axis=1)
        return first, second, self._wrong

    def uppers(self, eps: Array) -> Array:
        """Upper bounds on delta at finite eps, shape (products,); of one product at many eps.

        They bound delta of what the laws stand for if the laws are upper ones, and of the laws themselves if not.
        """
        value, value_error, exponent, relative, lost = self._read(eps)
        # In one exponential: a large error times a scale that underflows is not nothing.
        with np.errstate(over="ignore", invalid="ignore"):
            upper = np.exp(exponent + np.log(np.maximum(value, 0.0) + value_error) + relative)
        upper = np.where(lost, math.inf, upper * (1.0 + 1e-12) + UNDERFLOW)
        return np.asarray(np.minimum((upper + self.infinity) * (1.0 + 1e-15), 1.0))

    def lowers(self, eps: Array) -> Array:
        """Lower bounds on delta, of what the laws stand for if they are lower ones."""
        value, value_error, exponent, relative, lost = self._read(eps)
        with np.errstate(over="ignore", invalid="ignore"):
            lower = (value - value_error) * np.exp(exponent - relative) - self._aliases(eps)
        lower = np.where(lost, 0.0, np.maximum(lower, 0.0))
        return np.asarray(np.minimum((lower + self.infinity) * (1.0 - 1e-15), 1.0))

    def _read(self, eps: Array) -> tuple[Array, Array, Array, Array, NDArray[np.bool_]]:
        """The weighted sum of frequencies, its error, the log of its scale and the error of that; what is lost."""
        held = self._integral
        c, step = held.c, held.step
        eps = eps + self._loss_error - self._sign * 1e-15 * np.abs(eps)
        index = np.floor(eps / step) + 1.0
        gap = np.minimum(np.maximum(index * step - eps, 0.0), step)
        first, second, value_error = self._sums(index)
        left, right = -np.expm1(-gap), -np.exp(-gap) * np.expm1(gap - step) * math.exp(-c * step)
        exponent = self._log_scale - c * (eps + gap)
        size = np.abs(exponent)
        relative = self._relative + ROUNDOFF * (64.0 + 16.0 * c * np.abs(eps) + size)
        lost = ~((exponent < 600.0) & (relative < 0.5))
        return (left * first + right * second, (left + right) * value_error, exponent - held.log_weight, relative, lost)

    def _aliases(self, eps: Array) -> Array:
        """Bounds on what other periods add at eps."""
        held = self._integral
        distance = self._offset * held.step - eps
        turned = np.array([[1.0], [-1.0]]) * held.rates * distance[:, None, None]
        log = self._moments + held.log_peaks + turned
        log += 1e-13 * (np.abs(self._moments) + np.abs(turned))
        log += (self._log_scale - held.c * eps)[:, None, None]
        log += log_geometric(held.rates * held.points * held.step)
        log[:, 1, ~held.left] = math.inf
        return np.asarray(np.exp(np.minimum(log.min(axis=2), 700.0)).sum(axis=1))


def _folded(mass: Array, size: int) -> Array:
    """`mass` modulo `size`, of that length: exactly the aliasing that is bounded."""
    rows = -(-mass.size // size)
    padded = np.zeros(rows * size)
    padded[: mass.size] = mass
    return np.asarray(padded.reshape(rows, size).sum(axis=0))


class LatticeReading(Reading):
    """Both sides of a composition on one lattice: reads delta near the tilted mean."""

    def __init__(self, lower: LatticeProducts, upper: LatticeProducts, rate: float) -> None:
        self._lower, self._upper = lower, upper
        self.centre, self.stride = float(upper.centre[0]), 1.0 / rate
        self.infinity = Bounds(float(lower.infinity[0]), float(upper.infinity[0]))

    @classmethod
    def of(cls, ledger: Sequence[tuple[Pair, int]], plan: Plan, question: Question | None = None) -> LatticeReading:
        """The composition of a ledger. Raises TooExpensive or MemoryError."""
        resolution = shared_lattice(plan, [pair for pair, _ in ledger])
        counts = np.array([count for _, count in ledger], np.float64)
        both = [formed(pair, (Side.LOWER, Side.UPPER), resolution, plan.max_gap) for pair, _ in ledger]
        sides = []
        for laws in zip(*both, strict=True):
            integral = LatticeIntegral(laws, counts, plan)
            sides.append(LatticeProducts(integral, (counts @ np.stack(integral.rows))[None, :]))
        return cls(sides[0], sides[1], integral.c)


class DirectReading(Reading):
    """Both sides of a composition by direct convolution."""

    def __init__(self, lower: _Side, upper: _Side, plan: Plan) -> None:
        self._lower, self._upper, self.stride = lower, upper, 1.0 / plan.rate
        self.infinity = Bounds(lower.infinity * (1.0 - 2e-15), min(1.0, upper.infinity * (1.0 + 2e-15)))

    @classmethod
    def of(cls, ledger: Sequence[tuple[Pair, int]], plan: Plan, question: Question | None = None) -> DirectReading:
        """The composition of a ledger. Raises TooExpensive or MemoryError."""
        if plan.rounds == 1:
            [(pair, _)] = ledger
            laws = [law for law in Rounds.of(pair, 1, plan.resolutions(ledger)) if isinstance(law, Rounds)]
            if laws:
                one, two = (_Side(law.mass, law.loss, law.loss_error, law.infinity_mass) for law in laws)
                return cls(one, two, plan)
        resolution = shared_lattice(plan, [pair for pair, _ in ledger])
        both = [formed(pair, (Side.LOWER, Side.UPPER), resolution, plan.max_gap) for pair, _ in ledger]
        sizes, counts = np.array([(laws[1].masses.size, n) for laws, (_, n) in zip(both, ledger, strict=True)], float).T
        if 0.5 * ((sizes @ counts) ** 2 - sizes**2 @ counts) > DIRECT_WORK:
            raise TooExpensive
        powers = [[law.self_compose(n) for law in laws] for laws, (_, n) in zip(both, ledger, strict=True)]
        products = [reduce(PLD.compose, laws) for laws in zip(*powers, strict=True)]
        one, two = (_Side(law.masses, law.losses, law.loss_error * (1.0 + 1e-9), law.infinity) for law in products)
        return cls(one, two, plan)

    def lowers(self, eps: Array) -> Array:
        return np.asarray(self._lower.read(eps, -1.0) + self.infinity.lower)

    def uppers(self, eps: Array) -> Array:
        return np.asarray(np.minimum(1.0, (self._upper.read(eps, 1.0) + self.infinity.upper) * (1.0 + 1e-15)))


class _Side:
    """Atoms of one side, sorted by loss, and how far they may be off."""

    def __init__(self, mass: Array, loss: Array, loss_error: float, infinity: float) -> None:
        self._atoms, self._loss_error, self.infinity = Losses(mass, loss, 0.0, 0.0), loss_error, infinity

    def read(self, eps: Array, sign: float) -> Array:
        """delta of the finite part, moved by its error in the direction of `sign`."""
        found = self._atoms.divergence(eps - sign * (self._loss_error + 1e-15 * eps))
        relative = ROUNDOFF * (8.0 * self._atoms.mass.size + 128.0)
        return np.maximum(found * (1.0 + sign * relative) + sign * DIRECT_UNDERFLOW, 0.0)
