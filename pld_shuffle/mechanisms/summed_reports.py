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
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from ..numerics.integer_laws import two_sided_law
from ..numerics.rounding import above, below
from ..numerics.sides import Bounds
from ..numerics.validation import users
from ..pairs.bits import BitShares
from ..pairs.discrete import LatticePair
from ..pairs.gaussian import GaussianPair
from ..pairs.pair import Attacks, Pair
from ..pairs.shifted import shifted
from ..pairs.two_counts import TwoCountPair, two_count_attacks
from ..randomizers import (
    RAPPOR,
    DiscreteRandomizer,
    Gaussian,
    HadamardResponse,
    KRandomizedResponse,
    Laplace,
    LocalRandomizer,
    UnaryEncoding,
)
from .base import Mechanism, said
from .shuffled import Shuffled

SYMBOLS = (KRandomizedResponse, HadamardResponse, DiscreteRandomizer)
CELLS = 32  # of the lattice in a scale of Laplace noise: a share of 1e-4 of its variance


@dataclass(frozen=True, repr=False)
class Summed(Mechanism):
    """n users' local reports, of which only the sum is published (secure aggregation).

    Parameters
    ----------
    randomizer : what every user runs: `BinaryRandomizedResponse`, `KRandomizedResponse`, `HadamardResponse` or
        `DiscreteRandomizer` (sums of one-hot symbols), `UnaryEncoding` or a `RAPPOR` of one-hot filters (sums of bits),
        `Gaussian` or `Laplace` (the sum of numbers).
    n : users whose reports are in the sum and who follow the protocol: less those who may drop out or collude.

    Symbols say as much summed as shuffled, bits less, noise much less. Lower ends are attacks: all others hold one
    value; for Gaussian noise they are exact, for Laplace noise no attack is computed (0).

    Raises TypeError for any other randomizer, and ValueError or TypeError naming the argument.

    >>> from pld_shuffle import Accountant
    >>> one_hot = UnaryEncoding(k=16, eps0=4.0)
    >>> spent = [Accountant(0.01).compose(kind(one_hot, 10_000)).get_epsilon(1e-6) for kind in (Summed, Shuffled)]
    >>> [round(epsilon, 3) for epsilon in spent]
    [0.125, 0.337]
    """

    randomizer: LocalRandomizer
    n: int

    unsampled = "no pair is known for the sum of a hidden cohort"

    CHECKS: ClassVar = {"n": users}

    def __post_init__(self) -> None:
        super().__post_init__()
        bits = isinstance(self.randomizer, UnaryEncoding | RAPPOR)
        if isinstance(self.randomizer, RAPPOR) and self.randomizer.bits is not None:
            raise ValueError(f"randomizer must have one-hot filters, got {self.randomizer!r}")
        if not (bits or isinstance(self.randomizer, (*SYMBOLS, Gaussian, Laplace))):
            raise TypeError(
                f"randomizer must be one whose reports have a sum that is accounted for, got {self.randomizer!r}"
            )

    @cached_property
    def _shares(self) -> BitShares:
        """Of one bit of a report."""
        assert isinstance(self.randomizer, UnaryEncoding | RAPPOR)
        channel = self.randomizer.channel
        one, not_one, zero, not_zero = channel
        gap = one - zero if one < 0.9 else not_zero - not_one
        return BitShares(one, zero, not_one, not_zero, gap)

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
        return TwoCountPair(n, self._shares)

    @cached_property
    def attack_pair(self) -> Pair:  # type: ignore[override]
        if isinstance(self.randomizer, SYMBOLS):
            return Shuffled(self.randomizer, self.n).attack_pair
        if isinstance(self.randomizer, Gaussian):
            return self.pair
        if isinstance(self.randomizer, Laplace):
            return LatticePair(step=1.0, low=1, masses=(), infinity=0.0)  # nothing
        return Attacks.of(two_count_attacks(self.n, self._shares))

    def assumptions(self) -> dict[str, str]:
        return said(
            f"the exact law of the sum of reports of {self.randomizer!r}, whatever the others hold",
            adversary="sees the sum of the reports and knows every other user's value",
            sampling="n counts the users whose reports are in the sum and who do not collude",
        )
