"""The opponents, written from their papers: slow on purpose where the published method is slow.

All of them form the pair of `ShuffledLDP` (stronger clones): C ~ Bin(n-1, 2/(e^eps0+1)), m = C +
1 fair coins, A heads; P- and Q-masses are the fair mass times 1 +- tanh(eps0/2) (2A-m)/m.

* `per_atom_loop`: one Python iteration, three lgamma and one logarithm per atom, all O(n^2)
  atoms, or only those inside Hoeffding windows.
* `hoeffding_atoms`: the O(n) reference: Hoeffding windows on C and on A given C (Koskela,
  Heikkila and Honkela 2023, Lemma 6), vectorised over A.
* `grid_delta`: plain FFT accountant in the style of the published code: losses rounded up to a
  fixed grid of 10^7 points on [-L, L), one transform, a power, one inverse transform.
* `crowd_delta`: single-round numerical method of Feldman, McMillan and Talwar 2021: per clone
  count, the hockey-stick divergence from two binomial tails.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]


def clone_rate(eps0: float) -> float:
    """Probability that one other user hides the target, in either way."""
    return 2.0 / (math.exp(eps0) + 1.0)


def hoeffding(trials: int, chance: float, truncated_mass: float) -> tuple[int, int]:
    """Window of Bin(trials, chance) with at most `truncated_mass` outside on either side."""
    half = math.sqrt(0.5 * trials * math.log(1.0 / truncated_mass))
    return (max(0, math.floor(trials * chance - half)), min(trials, math.ceil(trials * chance + half)))


def log_binomial(trials: int, successes: int) -> float:
    """log of the binomial coefficient."""
    return math.lgamma(trials + 1.0) - math.lgamma(successes + 1.0) - math.lgamma(trials - successes + 1.0)


def per_atom_loop(n: int, eps0: float, truncated_mass: float | None) -> Iterator[tuple[float, float]]:
    """(P-mass, loss) of every atom, in a Python loop; missed=None visits all n (n+3)/2 of them."""
    rate, theta = clone_rate(eps0), math.tanh(0.5 * eps0)
    low, high = (0, n - 1) if truncated_mass is None else hoeffding(n - 1, rate, truncated_mass)
    for clones in range(low, high + 1):
        log_weight = log_binomial(n - 1, clones) + clones * math.log(rate) + (n - 1 - clones) * math.log1p(-rate)
        m = clones + 1
        first, last = (0, m) if truncated_mass is None else hoeffding(m, 0.5, truncated_mass)
        for heads in range(first, last + 1):
            fair = math.exp(log_weight + log_binomial(m, heads) - m * math.log(2.0))
            lean = theta * (2.0 * heads - m) / m
            yield fair * (1.0 + lean), math.log((1.0 + lean) / (1.0 - lean))


def loop_law(n: int, eps0: float, step: float, truncated_mass: float | None) -> tuple[dict[int, float], int]:
    """The lattice law of `per_atom_loop`, losses rounded up; and the atoms visited."""
    law: dict[int, float] = {}
    visited = 0
    for mass, loss in per_atom_loop(n, eps0, truncated_mass):
        cell = math.ceil(loss / step)
        law[cell] = law.get(cell, 0.0) + mass
        visited += 1
    return law, visited


def hoeffding_atoms(n: int, eps0: float, truncated_mass: float) -> Iterator[tuple[Array, Array]]:
    """(P-masses, Q-masses) of the atoms in Hoeffding windows, one clone count after the other: O(n)."""
    from scipy.special import gammaln

    rate, theta = clone_rate(eps0), math.tanh(0.5 * eps0)
    low, high = hoeffding(n - 1, rate, truncated_mass)
    clones = np.arange(low, high + 1, dtype=np.float64)
    log_weight = gammaln(n) - gammaln(clones + 1.0) - gammaln(n - clones)
    log_weight += clones * math.log(rate) + (n - 1 - clones) * math.log1p(-rate)
    for size, weight in zip(range(low + 1, high + 2), log_weight, strict=True):
        first, last = hoeffding(size, 0.5, truncated_mass)
        heads = np.arange(first, last + 1, dtype=np.float64)
        fair = gammaln(size + 1.0) - gammaln(heads + 1.0) - gammaln(size - heads + 1.0)
        fair = np.exp(fair + (weight - size * math.log(2.0)))
        lean = theta * (2.0 * heads - size) / size
        yield fair * (1.0 + lean), fair * (1.0 - lean)


def hoeffding_law(n: int, eps0: float, step: float, truncated_mass: float) -> tuple[Array, int]:
    """Masses on the lattice -L .. L of losses rounded up, in O(n); and the atoms visited."""
    half = math.ceil(eps0 / step) + 1
    law = np.zeros(2 * half + 1)
    visited = 0
    for p, q in hoeffding_atoms(n, eps0, truncated_mass):
        cell = np.ceil(np.log(p / q) / step).astype(np.int64) + half
        law += np.bincount(cell, p, law.size)
        visited += p.size
    return law, visited


def atom_pair(n: int, eps0: float, truncated_mass: float) -> tuple[Array, Array]:
    """All atoms of `hoeffding_atoms` in two arrays: the two pmfs that peers are given."""
    parts = list(hoeffding_atoms(n, eps0, truncated_mass))
    return np.concatenate([p for p, _ in parts]), np.concatenate([q for _, q in parts])


class GridAccountant:
    """Plain FFT accountant on a fixed grid of `points` losses on [-limit, limit)."""

    def __init__(
        self, n: int, eps0: float, rounds: int, limit: float, points: int, truncated_mass: float = 1e-12
    ) -> None:
        from scipy import fft

        self._step = 2.0 * limit / points
        self._losses = -limit + self._step * np.arange(points)
        grid = np.zeros(points)
        for mass, loss in per_atom_loop(n, eps0, truncated_mass):
            grid[math.ceil((limit + loss) / self._step)] += mass
        half = points // 2
        spectrum = fft.rfft(np.roll(grid, -half))
        self._masses = np.roll(fft.irfft(spectrum**rounds, points), half)
        self._infinity = -math.expm1(rounds * math.log1p(-4.0 * truncated_mass))

    def delta(self, epsilon: float) -> float:
        """delta with the missed mass of the windows on top."""
        above = self._losses > epsilon
        gain = -np.expm1(epsilon - self._losses[above])
        return float(np.sum(gain * self._masses[above])) + self._infinity

    def epsilon(self, delta: float) -> float:
        """The least epsilon found by bisection with delta(epsilon) <= delta."""
        return bisected(self.delta, delta, float(self._losses[-1]))


def crowd_delta(n: int, eps0: float, epsilon: float, truncated_mass: float = 1e-12) -> float:
    """Upper bound on the delta of one round from binomial tails, one pair of tails per clone count.

    Given m coins, P is the mixture of 1 + B and B heads, B ~ Bin(m-1, 1/2), with weights
    (1 +- theta)/2; the ratio increases in the heads, so the optimal event is a tail {heads >= cut}.
    """
    from scipy import stats

    rate, theta = clone_rate(eps0), math.tanh(0.5 * eps0)
    low, high = hoeffding(n - 1, rate, truncated_mass)
    m = np.arange(low, high + 1) + 1
    weight = stats.binom.pmf(m - 1, n - 1, rate)
    alpha = math.exp(epsilon)
    # (1 + theta t) > alpha (1 - theta t)  <=>  t > tanh(epsilon/2) / theta
    cut = np.floor(0.5 * m * (1.0 + math.tanh(0.5 * epsilon) / theta)) + 1.0
    with_coin = stats.binom.sf(cut - 2.0, m - 1, 0.5)  # P(B + 1 >= cut)
    without = stats.binom.sf(cut - 1.0, m - 1, 0.5)
    p = 0.5 * ((1.0 + theta) * with_coin + (1.0 - theta) * without)
    q = 0.5 * ((1.0 - theta) * with_coin + (1.0 + theta) * without)
    return float(np.sum(weight * np.maximum(p - alpha * q, 0.0))) + 2.0 * truncated_mass


def bisected(delta_of: Any, delta: float, top: float) -> float:
    """The least epsilon in [0, top], to 1e-12 relative, with delta_of(epsilon) <= delta."""
    low, high = 0.0, top
    while high - low > 1e-12 * high:
        middle = 0.5 * (low + high)
        if delta_of(middle) <= delta:
            high = middle
        else:
            low = middle
    return high
