"""Sums of one-hot bits: a change of value takes the target out of one count and puts it into another one.

Every user encodes one value out of k >= 3 in k bits, each sent through `shares`; the view is the k sums of bits. A
change of value touches two of them, independently: `counts.TwoCounts`. Proofs: docs/swap.md, sums of one-hot bits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..numerics.rounding import ROUNDOFF
from ..numerics.sides import Bounds
from .bit_pair import chords, rough_scale
from .bits import LARGEST_GROWTH, BitShares, binomial_pmf, bit_attack, bit_profile, dataset_profiles
from .counts import MOST_FACTORS, Counts
from .discrete import EitherOrder, Losses
from .shifted import losses
from .strategy import Types, convex

Array = NDArray[np.float64]

FEW = 256  # users of whom all numbers of ones are types
PIECES = 4  # of either half of the range of c
RAREST = 1e-200  # what an attack leaves out


@dataclass(frozen=True)
class BitCounts(Counts):
    """One of the sums of n users' one-hot bits: c of the others hold its value.

    A target that leaves it has a 1 under P and a 0 under Q. Types are all c of few users, else ranges of c, or two ends
    of a chord (docs/swap.md, Theorem B5). Two sums have c + c' <= n - 1; of many users all are taken for possible.
    """

    n: int
    shares: BitShares

    @property
    def scale(self) -> float:
        return rough_scale(self.n, self.shares, 1, 1.0)

    def _order(self, back: bool) -> BitShares:
        return self.shares.mirrored if back else self.shares

    def max_loss(self, back: bool) -> Bounds:
        shares = self._order(back)
        loss = math.log1p(shares.gap / shares.zero)
        return Bounds(loss * (1.0 - 16.0 * ROUNDOFF), loss * (1.0 + 16.0 * ROUNDOFF))

    def profile(self, back: bool, expm1_eps: Array) -> Bounds:
        return bit_profile(self.n, self._order(back), expm1_eps, ones=(0, self.n - 1))

    def types(self, expm1_eps: Array) -> list[Types]:
        asked = np.minimum(expm1_eps, LARGEST_GROWTH)
        if self.n <= FEW:
            return [dataset_profiles(self.n, self.shares, asked)]
        (left, right), (other_left, other_right) = (chords(self.n, self._order(back), asked) for back in (False, True))
        last, step = self.n - 1, math.log1p(expm1_eps[1])
        ranges = [
            convex(step, [
                bit_profile(self.n, self.shares, asked, ones=(low, high)).upper,
                bit_profile(self.n, self.shares.mirrored, asked, ones=(last - high, last - low)).upper,
            ])
            for low, high in _ranges(last)
        ]  # fmt: skip
        ahead, behind = (np.array(side) for side in zip(*ranges, strict=True))
        return [(ahead, behind), (np.array([left, right]), np.array([other_right, other_left]))]

    @cached_property
    def strongest(self) -> tuple[EitherOrder, ...]:  # type: ignore[override]
        """No other user holds the value, or all do; of few users every number."""
        if self.n <= MOST_FACTORS:
            laws = [[binomial_pmf(count, pair) for count in range(self.n + 1)] for pair in self.shares.chances]
            found = [np.convolve(laws[0][c], laws[1][self.n - 1 - c]) for c in range(self.n)]
            error = ROUNDOFF * (64.0 * self.n + 256.0)
            pairs = [[np.convolve(law, target[1]) for target in laws] for law in found]
            return tuple(
                EitherOrder((losses(p, q, error, 0.0), losses(q, p, error, 0.0)), mass_error=error) for p, q in pairs
            )
        attacks = (bit_attack(self.n, self.shares, one, truncated_mass=RAREST) for one in (False, True))
        return tuple(
            EitherOrder(
                (
                    Losses(known.p_mass, known.loss, 0.0, known.loss_error),
                    Losses(known.q_mass[::-1], -known.loss[::-1], 0.0, known.loss_error),
                ),
                known.truncated_mass, mass_error=2.0 * known.mass_error + 2.0 * known.truncated_mass,
            )
            for known in attacks
        )  # fmt: skip

    @property
    def number(self) -> int:
        return self.n if self.n <= FEW else 2

    def together(self, first: int, second: int) -> bool:
        return self.n > FEW or first + second < self.n

    def attacked(self, first: int, second: int) -> bool:
        """Not all others in both."""
        return first + second < (self.n if self.n <= MOST_FACTORS else 2)


def _ranges(others: int) -> list[tuple[int, int]]:
    """Ranges of c, cut at powers of 4 from either end. s < 1 and s > 1 have different worst c in a range."""
    cuts = {0, others, others // 2}
    for power in range(1, PIECES):
        cuts |= {others // 4**power, others - others // 4**power}
    return list(pairwise(sorted(cuts)))
