"""Local reports of which a secure sum is published: counts in place of a multiset, a number in place of numbers.

* A report that is one of finitely many symbols, written as a one-hot vector: the sums are how often each symbol came,
  which is the shuffled multiset (k-ary and binary randomised response, Hadamard response, any `DiscreteRandomizer`).
* A report of bits (unary encoding, one-hot RAPPOR): the sums are counts per bin, not which bits came together. A
  change of value touches two of them, each a sum of independent bits: `pairs.two_counts`.
* Gaussian noise on a number in [0, 1]: the sum is central Gaussian noise of variance n sigma^2, exactly.
* Laplace noise on a number in [0, 1]. An exponential number is a multiple of h, geometric, and a rest in [0, h),
  independent of it (it has no memory). So the noise of n users is h D + R, D a sum of n discrete Laplace numbers and R
  independent of D. If 1 is a multiple of h, adding R afterwards is post-processing, and D against itself moved by 1/h
  is a pair that dominates; its variance is too small by a share of about h^2 eps0^2 / 12 (docs/sums.md, section 2).
  Who sees only in which cell of a lattice the sum lies has an attack.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import ClassVar

import numpy as np

from ..numerics.integer_laws import IntegerLaw, negative_binomial_law, poisson_law, two_sided_law
from ..numerics.rounding import ROUNDOFF, above, below
from ..numerics.sides import Bounds
from ..numerics.validation import users
from ..pairs.bits import BitShares
from ..pairs.cohort import Cohort
from ..pairs.gaussian import GaussianPair
from ..pairs.pair import Pair
from ..pairs.shifted import shifted
from ..pairs.two_counts import TwoCountAttack, two_count_attacks, two_counts
from ..randomizers import DiscreteRandomizer, Gaussian, HadamardResponse, KRandomizedResponse, Laplace, LocalRandomizer
from ..randomizers.one_hot import NoisyVector
from .base import Mechanism, said
from .shuffled import Shuffled

SYMBOLS = (KRandomizedResponse, HadamardResponse, DiscreteRandomizer)
CELLS = 32  # of the lattice in a scale of Laplace noise: a share of 1e-4 of its variance
# Of an attack: cells in a deviation, the last one's mass, and half of them at most: width against speed.
SEEN_CELLS, SMALLEST_MASS, MOST_CELLS = 96, 1e-75, 16_000
LEFT_OUT = 1e-17  # of a sum of falling terms


@dataclass(frozen=True, repr=False)
class Summed(Mechanism):
    """n users' local reports, of which only the sum is published (secure aggregation).

    Parameters
    ----------
    randomizer : what every user runs: `BinaryRandomizedResponse`, `KRandomizedResponse`, `HadamardResponse` or
        `DiscreteRandomizer` (sums of one-hot symbols), `UnaryEncoding` or a `RAPPOR` (sums of bits),
        `Gaussian` or `Laplace` (the sum of numbers).
    n : users whose reports are in the sum and who follow the protocol: less those who may drop out or collude.

    Symbols say as much summed as shuffled, bits less, noise much less. Lower ends are attacks: all others hold one
    value; for Gaussian noise they are exact, for Laplace noise the sum is seen to a fraction of its deviation.

    Raises TypeError for any other randomizer, and ValueError or TypeError naming the argument.

    >>> from pld_shuffle import Accountant
    >>> from pld_shuffle.randomizers import UnaryEncoding
    >>> one_hot = UnaryEncoding(k=16, eps0=4.0)
    >>> spent = [Accountant(0.01).compose(kind(one_hot, 10_000)).get_epsilon(1e-6) for kind in (Summed, Shuffled)]
    >>> [round(epsilon, 3) for epsilon in spent]
    [0.125, 0.337]
    """

    randomizer: LocalRandomizer
    n: int

    CHECKS: ClassVar = {"n": users}

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.randomizer, (*SYMBOLS, NoisyVector, Gaussian, Laplace)):
            raise TypeError(
                f"randomizer must be one whose reports have a sum that is accounted for, got {self.randomizer!r}"
            )

    @cached_property
    def _bits(self) -> tuple[int, BitShares, int]:
        """Of sums of bits: users, what happens to a bit, and values."""
        assert isinstance(self.randomizer, NoisyVector)
        one, not_one, zero, not_zero = self.randomizer.channel
        return self.n, BitShares(one, zero, not_one, not_zero, self.randomizer.tv), self.randomizer.inputs

    @cached_property
    def _counts(self) -> tuple[Pair, Pair]:
        """Of sums of bits, and attacks."""
        return two_counts(*self._bits)

    @cached_property
    def pair(self) -> Pair:  # type: ignore[override]
        randomizer, n = self.randomizer, self.n
        if isinstance(randomizer, SYMBOLS):
            return Shuffled(randomizer, n).pair
        if isinstance(randomizer, Gaussian):
            square = 1.0 / (n * randomizer.sigma**2)
            return GaussianPair(Bounds(below(square, 4.0), above(square, 4.0)))
        if isinstance(randomizer, Laplace):
            parts = max(1, math.ceil(CELLS * randomizer.eps0))
            return shifted(two_sided_law(float(n), randomizer.eps0 / parts), parts)
        return self._counts[0]

    @cached_property
    def attack_pair(self) -> Pair:  # type: ignore[override]
        if isinstance(self.randomizer, SYMBOLS):
            return Shuffled(self.randomizer, self.n).attack_pair
        if isinstance(self.randomizer, Gaussian):
            return self.pair
        if isinstance(self.randomizer, Laplace):
            deviation = math.sqrt(2.0 * self.n) / self.randomizer.eps0
            parts = max(1, math.ceil(SEEN_CELLS / deviation))
            return shifted(_cells(self.n, self.randomizer.eps0 / parts), parts)
        return self._counts[1]

    @property
    def unsampled(self) -> str | None:  # type: ignore[override]
        """Sums of bits alone have a proven pair, by general amplification."""
        bits = isinstance(self.randomizer, NoisyVector)
        return None if bits else "no pair is known for the sum of a hidden cohort"

    def sampled_attack(self, cohort: Cohort) -> Pair:
        """What two sums tell, all others holding one value."""
        return two_count_attacks(*self._bits, cohort)

    def stand_in_attack(self, cohort: Cohort) -> tuple[Pair, Pair] | None:
        if not isinstance(self.randomizer, NoisyVector):
            return None
        ahead = TwoCountAttack(*self._bits[:2])
        return ahead, ahead.reverse

    def assumptions(self) -> dict[str, str]:
        return said(
            f"the exact law of the sum of reports of {self.randomizer!r}, whatever the others hold",
            adversary="sees the sum of the reports and knows every other user's value",
            sampling="n counts the users whose reports are in the sum and who do not collude",
        )


def _cells(n: int, width: float) -> IntegerLaw:
    """In which cell of that width the difference A - B of two Gamma(n) numbers lies, cell 0 around 0.

    P[A - B >= t] = P[Poisson(t) + N < n], N the failures before success n of fair trials. So A - B is in [t, t + size)
    if Poisson(t) + N = n - 1 - j, j >= 0, and Poisson(size) is above j: a sum of products, nothing is subtracted. The
    first factor does not rise in j, since n - 1 is a mode of N.
    """
    fails = negative_binomial_law(float(n), 0.5)
    half: list[float] = []
    error = 0.0
    for start, size in chain([(0.0, 0.5 * width)], (((i + 0.5) * width, width) for i in range(MOST_CELLS))):
        more = poisson_law(size)
        above = np.append(np.ones(more.low), np.cumsum(more.masses[:0:-1])[::-1])  # P[Poisson(size) > j]
        kept = above[above > LEFT_OUT * above[0]]
        arrivals = poisson_law(start) if start > 0.0 else IntegerLaw(0, np.ones(1), 0.0, 0.0)
        first = n - fails.low - arrivals.low - kept.size - arrivals.masses.size + 1
        place = np.arange(first, n - fails.low - arrivals.low)
        known = np.where((place >= 0) & (place < fails.masses.size), fails.masses.take(place, mode="clip"), 0.0)
        half.append(float(np.convolve(known, arrivals.masses, mode="valid")[::-1] @ kept))
        rounding = ROUNDOFF * (arrivals.masses.size + above.size + 8.0) + LEFT_OUT * above.size
        error = max(error, fails.error + arrivals.error + more.error + rounding)
        if half[-1] <= SMALLEST_MASS:
            break
    masses = np.concatenate((half[:0:-1], [2.0 * half[0]], half[1:]))
    # Cells of a log-concave law are log-concave: beyond, they fall faster than the last two.
    fall = half[-1] / half[-2] * (1.0 + 4.0 * error)
    beyond = half[-1] * fall / (1.0 - fall) * (1.0 + 4.0 * error)
    return IntegerLaw(1 - len(half), masses, error, 2.0 * error, beyond, beyond, symmetric=True)
