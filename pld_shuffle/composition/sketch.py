"""The log moment generating function of a ledger, sketched, and its saddle points.

K(t) = sum_i count_i log E_P[exp(t L_i)] over coarse laws. The saddle point K'(t) = eps is the tilt under
which the composed loss has mean eps, and exp(K(t) - t eps) / (1 + t (1+t) sqrt(2 pi K''(t))) estimates
delta(eps) well enough to choose windows. Everything here is an estimate: it steers, it certifies nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..numerics.crossing import crossing
from ..numerics.lattice import aligned
from ..numerics.sides import Bounds, Side
from ..numerics.tuning import ALIKE, KEPT, SKETCHED_POINTS
from ..pairs.gaussian import GaussianPair, noise_of
from ..pairs.pair import Pair, Resolution
from .moments import Moments, Rounds
from .pld import PLD, formed

Array = NDArray[np.float64]

FINER = (16.0, 256.0)  # times as many, where the answer is next to the largest losses
SPARSE = 0.4
LARGEST_NOISE = 10.0  # deviation of Gaussian losses whose exponential is a double far beyond them


class Sketch:
    """Coarse laws of all pairs of a ledger, in one flat array."""

    def __init__(
        self, ledger: Sequence[tuple[Pair, int]], truncated_mass: float, points: float = SKETCHED_POINTS
    ) -> None:
        self.truncated_mass = truncated_mass
        self.scale = math.sqrt(sum(count * pair.scale**2 for pair, count in ledger))
        pooled = _pooled(ledger)
        laws = [_law(pair, truncated_mass, points) for pair, _ in pooled]
        self._count = np.array([count for _, count in pooled], np.float64)
        self._moments = Moments([_atoms(law) for law in laws])
        held = self._moments.sizes
        #: Whether most of the lattices' points hold nothing.
        self.sparse = bool(held.sum() < SPARSE * sum(law.masses.size for law in laws))
        #: Whether all losses are multiples of one, so that a lattice has them as they are.
        self.regular = bool(held.size == 1 and held[0] <= 3)
        self._top = float(self._count @ np.array([law.losses[-1] for law in laws]))
        self.infinity = float(self._count @ np.array([law.infinity for law in laws]))
        self._largest = 40.0 / min(law.step for law in laws)

    @classmethod
    def at_delta(
        cls, ledger: Sequence[tuple[Pair, int]], delta: float, rounds: int, *, points: float = SKETCHED_POINTS
    ) -> Sketch:
        """Good down to `delta`; rounds : as many as the laws will be used for."""
        return cls(ledger, max(1e-5 * delta / rounds, 1e-300), points)

    def moments(self, tilt: float) -> tuple[float, float, float]:
        """K, K' and K'' at `tilt`."""
        k, mean, variance = (self._moments.slopes(tilt) @ self._count).tolist()
        return k, mean, variance

    def log_delta(self, tilt: float, eps: float | None = None) -> float:
        """Estimate of log delta at `eps`, by default at the saddle point's own epsilon."""
        k, mean, variance = self.moments(tilt)
        eps = mean if eps is None else eps
        if eps == math.inf:
            finite = -math.inf
        else:
            finite = k - tilt * eps - math.log1p(tilt * (1.0 + tilt) * math.sqrt(2 * math.pi * variance))
        floor = math.log(self.infinity) if self.infinity > 0.0 else -math.inf
        return min(0.0, float(np.logaddexp(finite, floor)))

    def saddle(self, eps: float) -> float:
        """The tilt >= 0 with K' = eps, clamped at 0 and at a largest tilt."""
        return self._solve(lambda tilt: eps - self.moments(tilt)[1])

    def saddle_of_delta(self, log_delta: float) -> float:
        """The tilt >= 0 whose saddle point has about that delta."""
        return self._solve(lambda tilt: self.log_delta(tilt) - log_delta)

    def beyond(self, tilt: float, log_delta: float) -> bool:
        """Whether delta is still smaller than anything this tilt, or a larger one, is good for."""
        return self.saturated(tilt) and log_delta < self.log_delta(tilt) - 0.5

    def saturated(self, tilt: float) -> bool:
        """Whether more tilt is useless, the largest losses already holding most of the tilted mass."""
        _, mean, _ = self.moments(tilt)
        return tilt * self.scale > 3.0 and tilt * (self._top - mean) < 2.0

    def _solve(self, excess: Callable[[float], float]) -> float:
        """The tilt at which a decreasing function falls to 0, to 0.1 %; where more is useless if it does not."""
        low = 0.0, excess(0.0)
        if low[1] <= 0.0:
            return 0.0
        if self.saturated(self._largest):
            # As a last resort on the way up: beyond saturation nothing changes.
            asked = excess

            def excess(tilt: float) -> float:
                found = asked(tilt)
                return -1.0 if found > 0.0 and self.saturated(tilt) else found

        first = min(1.0 / math.sqrt(max(self.moments(0.0)[2], 1e-300)), self._largest)
        high = first, excess(first)
        while high[1] > 0.0:
            if high[0] >= self._largest:
                return self._largest
            end = min(4.0 * high[0], self._largest)
            low, high = high, (end, excess(end))
        return float(crossing(excess, low, high, rtol=1e-3))


@lru_cache(maxsize=KEPT)
def _law(pair: Pair, truncated_mass: float, points: float) -> PLD:
    """The coarse upper law of one round."""
    step = aligned(pair.scale / points, float(pair.max_loss.upper))
    size_width = min(0.1, -1.0 / math.log(truncated_mass))
    resolution = Resolution(step, truncated_mass=truncated_mass, size_width=size_width, bias_width=0.2)
    return formed(pair, [Side.UPPER], resolution)[0]


def _atoms(law: PLD) -> Rounds:
    """The finite masses, one at least: a law without mass is harmless."""
    held = law.masses > 0.0
    held[0] |= not held.any()
    return Rounds(np.maximum(law.masses[held], 1e-300), law.losses[held], law.infinity, law.loss_error, 1)


def tilted_sizes(pair: Pair, tilt: float, truncated_mass: float) -> tuple[Array, Array]:
    """Sizes of losses of one round, and the mass under the tilt of losses of this size; two at least."""
    law = _law(pair, truncated_mass, SKETCHED_POINTS)
    tilted, _, _ = law.tilted(tilt)
    index = np.abs(law.low + np.arange(tilted.size))
    mass: Array = np.bincount(index, tilted, 2).astype(np.float64)
    losses: Array = np.arange(mass.size, dtype=np.float64) * law.step
    return losses, mass


def sketch_key(pair: Pair) -> Hashable:
    """Equal for pairs of one kind whose losses are almost alike, so that one of them is sketched for all."""
    largest = min(float(pair.max_loss.upper), 1e9)
    return type(pair), *(round(math.log(max(size, 1e-300)) / ALIKE) for size in (pair.scale, largest))


def _pooled(ledger: Sequence[tuple[Pair, int]]) -> list[tuple[Pair, float]]:
    """One pair for all that are alike, counted by variance; much noise is many rounds of less."""
    kinds: dict[Hashable, tuple[Pair, float]] = {}
    for pair, count in ledger:
        key = sketch_key(pair)
        if noise_of(pair) is not None and pair.scale > LARGEST_NOISE:
            kinds[key] = GaussianPair(Bounds(LARGEST_NOISE**2, LARGEST_NOISE**2)), 0.0
        first, held = kinds.setdefault(key, (pair, 0.0))
        kinds[key] = first, held + count * (pair.scale / first.scale) ** 2
    return list(kinds.values())
