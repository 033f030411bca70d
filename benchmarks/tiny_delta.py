"""delta from 1e-3 to 1e-200: relative error of plain FFT, of dp_accounting, and of the tilted FFT.

Workload: the upper lattice law of ShuffledLDP(eps0=4, n=10^4) on step = scale/10, its finite
part, 8 rounds. The truth for that lattice is 900-bit fixed-point integer arithmetic (relative
error below 1e-50 where delta > 1e-200): three squarings, delta summed with 60 digits. All methods
get the very same lattice law, so the error shown is that of the convolution alone:

* plain FFT: one real transform, a power, one inverse transform;
* dp_accounting: its dense PLD on the same lattice, `self_compose(8, tail_mass_truncation=0)`;
* tilted FFT: this library's convolution with the tilt of the saddle point; `certificate` is the
  relative error that it proves about itself (half the width of what it returns).

Two more columns ask the accountant from the parameters: `bracket` is upper/lower - 1 on delta at
the same epsilon (rtol = 1e-3), and `seconds` its processor time, warm (one unmeasured answer,
median of 3). A hyphen in an error column: the method returned 0 or less, or is
off by more than 100 %. rtol is promised for deltas above 1e-100.

    python benchmarks/tiny_delta.py [--quick]
"""

from __future__ import annotations

import math
from fractions import Fraction

import harness
import mpmath
import numpy as np
from mpmath import mpf
from scipy import fft

from pld_shuffle import PLD, Accountant, ShuffledLDP, Side, convolution

MECHANISM = ShuffledLDP(eps0=4.0, n=10_000, analysis="stronger-clones")
ROUNDS = 8
BITS = 900
mpmath.mp.dps = 60


class Exact:
    """The composed lattice law in integers, multiples of 2^-BITS."""

    def __init__(self, law: PLD) -> None:
        masses = np.array([int(Fraction(float(mass)) * 2**BITS) for mass in law.masses], dtype=object)
        for _ in range(ROUNDS.bit_length() - 1):
            masses = np.convolve(masses, masses) >> BITS
        self.masses = masses
        self.low = ROUNDS * law.low
        self.step = law.step
        self._unit = mpf(2) ** -BITS

    def delta(self, epsilon: float) -> mpf:
        """delta to about 60 digits (lattice losses are exact products in binary)."""
        first = max(0, math.floor(epsilon / self.step) + 1 - self.low)
        total = mpf(0)
        for i in range(first, len(self.masses)):
            gap = mpf(self.step) * (self.low + i) - mpf(epsilon)
            if gap > 0:
                total -= mpf(int(self.masses[i])) * mpmath.expm1(-gap)
        return total * self._unit

    def epsilon(self, delta: float) -> float:
        """Some epsilon near which delta(epsilon) = delta, to 1e-6."""
        low, high = 0.0, (self.low + len(self.masses)) * self.step
        while high - low > 1e-6 * high:
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.delta(middle) > delta else (low, middle)
        return high


def lattice_delta(masses: np.ndarray, low: int, step: float, epsilon: float) -> float:
    losses = (low + np.arange(masses.size)) * step
    above = losses > epsilon
    return float(-np.expm1(epsilon - losses[above]) @ masses[above])


def plain_fft(law: PLD) -> np.ndarray:
    size = ROUNDS * (law.masses.size - 1) + 1
    points = fft.next_fast_len(size, real=True)
    composed: np.ndarray = fft.irfft(fft.rfft(law.masses, points) ** ROUNDS, points)[:size]
    return composed


def mean(law: convolution.Law) -> float:
    """Of the tilted loss."""
    return float(law.mass @ (law.low + np.arange(law.mass.size))) * law.step


def tilted_fft(law: PLD, epsilon: float) -> tuple[float, float]:
    """(lower, upper) for the lattice law, under the tilt whose composed mean is epsilon."""
    low, high = 0.0, 1.0
    while ROUNDS * mean(law.tilted(high)) < epsilon and high < 1e4:
        high *= 2.0
    for _ in range(50):
        middle = 0.5 * (low + high)
        if ROUNDS * mean(law.tilted(middle)) < epsilon:
            low = middle
        else:
            high = middle
    composed = convolution.product([(law.tilted(high), ROUNDS)], 1e-14)
    return convolution.Reader(composed).bracket(epsilon)


def error(value: float, truth: mpf) -> float | None:
    """Relative error, None if the value carries no information."""
    relative = abs(mpf(value) / truth - 1)
    return None if value <= 0.0 or relative > 1.0 else float(relative)


def main() -> None:
    arguments = harness.options(__doc__.splitlines()[0])
    deltas = [1e-3, 1e-6, 1e-9, 1e-12, 1e-15, 1e-20, 1e-30, 1e-50, 1e-100, 1e-150, 1e-200]
    if arguments.quick:
        deltas = [1e-3, 1e-12, 1e-20, 1e-100]
    coarse = 4.0 if arguments.quick else 10.0
    law = MECHANISM.pld(step=MECHANISM.pair.scale / coarse, side=Side.UPPER, truncated_mass=1e-250)
    exact = Exact(law)
    plain = plain_fft(law)
    try:
        from dp_accounting.pld import pld_pmf

        dense = pld_pmf.DensePLDPmf(law.step, law.low, law.masses, 0.0, True)
        google = dense.self_compose(ROUNDS, tail_mass_truncation=0.0)
    except ImportError:
        google = None
    accountant = Accountant().compose(MECHANISM, ROUNDS)
    rows = []
    for delta in deltas:
        epsilon = exact.epsilon(delta)
        truth = exact.delta(epsilon)
        lower, upper = tilted_fft(law, epsilon)
        assert lower <= truth <= upper, (lower, truth, upper)
        timing = harness.measure(
            lambda eps=epsilon: Accountant().compose(MECHANISM, ROUNDS).delta_bounds(eps), repeats=3
        )
        bounds = accountant.delta_bounds(epsilon)
        rows.append(
            {
                "delta": float(truth),
                "epsilon": epsilon,
                "plain_fft": error(lattice_delta(plain, exact.low, law.step, epsilon), truth),
                "dp_accounting": google and error(float(google.get_delta_for_epsilon(epsilon)), truth),
                "tilted_fft": float(abs(mpf(0.5 * (lower + upper)) / truth - 1)),
                "certificate": 0.5 * (upper - lower) / lower,
                "bracket": bounds.upper / bounds.lower - 1.0,
                "seconds": timing.cpu,
            }
        )
        print(rows[-1], flush=True)
    stem = harness.save(arguments, "tiny_delta", {"rows": rows, "lattice_points": law.masses.size})
    print(harness.table(rows, list(rows[0])))
    series = []
    for name, style in (
        ("plain_fft", "x-"), ("dp_accounting", "s-"), ("tilted_fft", "o-"), ("certificate", "o:"),
        ("bracket", "^--"),
    ):  # fmt: skip
        chosen = [row for row in rows if row[name] is not None]
        y = [max(row[name], 1e-17) for row in chosen]
        series.append((name, [row["delta"] for row in chosen], y, style))
    harness.log_plot(
        stem, series, x_label="delta", y_label="relative error of delta", mirrored=True,
        title=f"{ROUNDS} rounds, n = 10^4, eps0 = 4, the same lattice law for all",
    )  # fmt: skip


if __name__ == "__main__":
    main()
