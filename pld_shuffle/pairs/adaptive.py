"""Rounds of a mechanism whose neighbours lie below several types of pairs: the worst strategy's value, as a profile.

A type is a dataset of all others, or an order of the two neighbours. Whoever asks may choose it anew in every round, as
outputs suggest. Let there be functions G_k, one for every type k, with

    H_s(every dataset) <= sum_k w_k G_k(s)   for all s > 0, the weights w of the dataset the same for every s.

With s = e^y let V_0(s) = (1 - s)_+, and let V_t be the best strategy's H_s of t rounds. V_(t-1) is convex, so it is a
mean of functions (x - s)_+ and a constant, and one round more, first, makes of each of them x H_(s/x). So

    V_t(s) <= max over k of  V_(t-1)(inf) + sum_x x V_(t-1)''(x) G_k(s/x),

because a mean of types is at most the largest (docs/bits.md, section 7). Exact pairs of all types make it an equality.
Where several families of types are proved, each of them bounds V_t, and so does the least, point by point.

On a lattice of y a polygon through values of V_(t-1) lies above it, and only needs G_k at points of the lattice: the
sum is a convolution with the masses of the polygon through these. The class is closed under exchange of the
neighbours, so V_t(-y) = 1 - e^-y + e^-y V_t(y), and V_T is the profile of a symmetric pair. It composes with everything
else, even if other rounds lie in between and choose as well: with V^a, V^b of two such lists let W(y) = E V^a(y - L_b);
buying a round of either list never raises W, since the other list's law is fixed.

The pair of the largest type at every s, composed T times, is larger: in every round it has the tails of all types.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..numerics.rounding import ROUNDOFF
from ..numerics.sides import Bounds, Side
from ..numerics.tuning import TRANSFORM_WORK
from .pair import Atoms, Pair, Resolution, completed
from .profile import SAME

Array = NDArray[np.float64]
#: Upper bounds on the profiles of types, and on those of the reversed pairs: shape (types, losses).
Types = tuple[Array, Array]

POINTS, COARSEST = (24.0, 34.0, 48.0, 68.0), 4.0  # of the lattice, a scale of one round
MISSED = (1e-15, 1e-25, 1e-50, 1e-100, 1e-300)  # what the lattice may leave out
LONGEST = 650.0  # losses of one round; beyond, the last value holds
HULL = 300.0  # losses between the ends of hulls
TABLE = 256  # up to so many rounds a power of two of them is kept, with all rounds on the way
FFT_CONSTANT = 12.0  # of the rounding of transforms, as in `composition.product`
ONE_TILT, MOST_TRANSFORMED = 36.0, 60.0  # logarithms of what is missed: for one tilt, and for transforms at all
TYPE_WORK = 1e9  # operations of one table: width against speed
DIRECT_WORK = 1e8  # multiplications up to which transforms are not worth their errors
CHUNK = 2**20  # numbers in one transform


@dataclass(frozen=True)
class AdaptiveRounds(Pair):
    """`rounds` rounds of a pair whose types are chosen as they go: an upper bound.

    Its lower atoms are the same, less rounding: an attack tells how far the truth is below, not this pair.

    one : a `ProfilePair` with a method `types`: at growths, families of `Types`, each of them proved, and closed under
        exchange of the neighbours.
    """

    one: Any
    rounds: int

    @property
    def max_loss(self) -> Bounds:
        low, high = self.one.max_loss
        return Bounds(self.rounds * low * (1.0 - 4e-16), self.rounds * high * (1.0 + 4e-16))

    @property
    def scale(self) -> float:
        return float(min(math.sqrt(self.rounds) * self.one.scale, float(self.max_loss.upper)))

    @property
    def encloses(self) -> bool:
        return False

    def atoms(self, sides: Sequence[Side], resolution: Resolution) -> list[Atoms]:
        """O(rounds types points log points)."""
        one, rounds = self.one, self.rounds
        missed = next((m for m in MISSED if m <= 0.1 * resolution.truncated_mass), MISSED[-1])
        wanted = one.scale * math.sqrt(rounds) / resolution.points[0]
        points = next((p for p in POINTS if p >= wanted), POINTS[-1])
        known = rounds if rounds > TABLE else 1 << (rounds - 1).bit_length()  # a few tables serve all numbers of rounds
        step, values = _values(one, known, points, missed)
        value = values[min(rounds, len(values)) - 1]
        size = value.size - 1
        value = hull(step * np.arange(size + 1.0), value)[None]
        masses, infinite = lattice_laws(value, value, step)
        loss = step * np.arange(-size, size + 1.0)
        kept = (masses[0] > 0.0) | (loss == 0.0)
        found = Atoms(masses[0][kept], loss[kept], float(infinite[0]), loss_error=4.0 * ROUNDOFF * float(loss[-1]))
        found = completed(found, Side.UPPER)
        less = replace(found, mass=found.mass * SAME, infinity_mass=found.infinity_mass * SAME, total=None)
        return [found if side is Side.UPPER else completed(less, Side.LOWER) for side in sides]


def in_blocks(one: Any, count: int, most: int) -> list[tuple[Pair, int]]:
    """`count` rounds as blocks of at most `most`; between blocks there are the tails of all types at once."""
    blocks, rest = divmod(count, most)
    found: list[tuple[Pair, int]] = [(AdaptiveRounds(one, most), blocks)] if blocks else []
    if rest:
        found.append((one if rest == 1 else AdaptiveRounds(one, rest), 1))
    return found


@lru_cache(maxsize=8)
def _values(one: Any, rounds: int, points: float, missed: float) -> tuple[float, list[Array]]:
    """The lattice's step; upper bounds on V_1, V_2, ... at its losses 0, step, ..., or of many rounds the last only."""
    span, top = -math.log(missed), min(float(one.max_loss.upper), LONGEST)
    reach = _reach(one, missed / rounds, top)
    for last in (False, True):
        step = one.scale / points
        steps = math.ceil(reach / step) + 1
        loss = step * np.arange(steps + 1.0)
        # A little earlier than the lattice's points, because profiles fall.
        families = one.types(np.expm1(loss) * (1.0 - 16.0 * ROUNDOFF * (1.0 + loss)))
        ended = loss >= float(one.max_loss.upper) * (1.0 + 1e-12)
        laws = [lattice_laws(np.where(ended, 0.0, ahead), np.where(ended, 0.0, back), step) for ahead, back in families]
        drift = max(float((masses @ (step * np.arange(-steps, steps + 1.0))).max()) for masses, _ in laws)
        places = max(steps, math.ceil((1.1 * math.sqrt(rounds) * reach + rounds * drift) / step))
        most = max(steps, math.ceil(rounds * top / step) + 1)
        sums = rounds * sum(infinite.size for _, infinite in laws) * (min(places, most) + 2.0 * steps)
        direct = span > MOST_TRANSFORMED or sums * steps <= DIRECT_WORK
        # Multiplications of direct sums take less time than those of transforms.
        work = sums * (0.25 * steps if direct else 3.0 * TRANSFORM_WORK * math.ceil(span / ONE_TILT))
        if work <= TYPE_WORK or last:
            break
        points = max(COARSEST, points * (TYPE_WORK / work) ** (0.5 if direct else 1.0))
    endless = max(float(infinite.max()) for _, infinite in laws)
    while True:
        places = min(places, most)
        game = _Game(laws, step, places, 0 if direct else math.ceil(span / ONE_TILT), span)
        found: list[Array] = []
        value = np.zeros(places + 1)
        for done in range(1, rounds + 1):
            value = game.before(value)
            value[step * np.arange(places + 1.0) >= done * float(one.max_loss.upper) * (1.0 + 1e-12)] = 0.0
            if places < most and value[-1] > 100.0 * missed + 2.0 * done * endless:
                break
            found = [*found, value] if rounds <= TABLE else [value]
        else:
            return step, found
        places = math.ceil(1.3 * places)


def _reach(one: Any, missed: float, top: float) -> float:
    """About where one round's profile is down to `missed`."""
    asked = np.append(np.minimum(one.scale * np.geomspace(1.0, 100.0, 48), top), top)
    known = one.profile(np.expm1(asked), 1e-2, 0.1 * missed).upper
    return float(asked[np.argmax(known <= known[-1] * (1.0 + 1e-6) + missed)])  # what is at infinity stays


def hull(loss: Array, values: Array) -> Array:
    """The largest convex function below bounds on a profile at equidistant losses: what is noise is cut off."""
    from ..numerics import kernels

    found, kept = values.copy(), np.empty(values.size, np.int64)
    width = max(8, int(HULL / (loss[1] - loss[0])))
    for first in range(0, values.size, width):  # exponentials of all losses have no room
        part = slice(first, first + 2 * width)
        growth = np.expm1(loss[part] - loss[first])
        vertices = kept[: kernels.lower_hull(growth, found[part], kept)]
        found[part] = np.interp(growth, growth[vertices], found[part][vertices])
    return np.asarray(found * (1.0 + 32.0 * ROUNDOFF))


def lattice_laws(ahead: Array, behind: Array, step: float) -> tuple[Array, Array]:
    """The laws whose profiles join known points: masses of P at losses -M step ... M step, and at infinity.

    ahead, behind : of every law upper bounds on the profile, and on the reversed pair's, at losses 0, step, ..., M
    step; shape (laws, M + 1). Where points are not convex a negative mass is raised to 0: more mass is above.
    """
    start = np.maximum(ahead[:, :1], behind[:, :1])
    wide, grown, reach = math.expm1(step), math.exp(step), ahead.shape[1] - 1
    sides, slopes = [], []
    for values in (ahead, behind):
        rises = np.diff(np.concatenate((start, values[:, 1:], values[:, -1:]), axis=1))
        mass = rises[:, 1:] - grown * rises[:, :-1]
        mass += 8.0 * ROUNDOFF * (np.abs(rises[:, 1:]) + grown * np.abs(rises[:, :-1]))
        sides.append(np.maximum(mass, 0.0) / wide)
        slopes.append(rises[:, :1] / wide)
    middle = np.maximum(0.0, 1.0 - start + slopes[0] + slopes[1] + 32.0 * ROUNDOFF)
    # Masses of Q for the reversed pair: P's are e^-loss times these.
    loss = step * np.arange(1.0, reach + 1.0)
    left = sides[1] * np.exp(-loss) * (1.0 + 8.0 * ROUNDOFF * (loss + 1.0))
    return np.concatenate((left[:, ::-1], middle, sides[0] * (1.0 + 4.0 * ROUNDOFF)), axis=1), ahead[:, -1]


class _Game:
    """One round more, on a lattice of losses up to `places` steps.

    Convolutions by transforms under a tilt have errors relative to the largest tilted value; each tilt gives a bound,
    so the least holds. Where values fall too far for that they are sums of nonnegative terms.
    """

    def __init__(
        self, families: Sequence[tuple[Array, Array]], step: float, places: int, tilts: int, span: float
    ) -> None:
        from scipy import fft

        self._families, self._step, self._places = families, step, places
        self._reach = (families[0][0].shape[1] - 1) // 2
        self._decay = np.exp(-step * np.arange(1.0, self._reach + 1.0))
        self._rise = -np.expm1(-step * np.arange(1.0, self._reach + 1.0))
        self._tilts: list[tuple[Array, list[tuple[Array, Array]]]] = []
        index = np.arange(-self._reach, places + self._reach + 1.0)
        self._size = int(fft.next_fast_len(index.size, real=True))
        eta = FFT_CONSTANT * ROUNDOFF * math.log2(self._size)
        for tilt in (2.0 * np.arange(tilts) + 1.0) / max(tilts, 1) * (span / places):
            error = 4.0 * eta + ROUNDOFF * (16.0 + 8.0 * tilt * (places + 2.0 * self._reach))
            transforms = []
            for masses, _ in families:
                tilted = masses * np.exp(tilt * np.arange(-self._reach, self._reach + 1.0))
                transforms.append((fft.rfft(tilted, self._size), error * tilted.sum(axis=1)))
            self._tilts.append((np.exp(tilt * (index - 0.5 * places)), transforms))

    def before(self, value: Array) -> Array:
        """The best strategy's value if one more round comes first, from above."""
        reach, missing = self._reach, max(self._reach - self._places, 0)
        # Beyond the last place its value holds.
        far = np.append(value[1:], np.full(missing, value[-1]))[:reach]
        behind = (self._rise + self._decay * far) * (1.0 + 8.0 * ROUNDOFF)
        whole = np.concatenate((behind[::-1], value, np.full(reach, value[-1])))
        found = np.ones(self._places + 1)
        for k, (masses, infinite) in enumerate(self._families):
            if not self._tilts:
                rounding = 1.0 + ROUNDOFF * (masses.shape[1] + 8.0)
                means = [np.convolve(whole, one, mode="valid") * rounding for one in masses]
                found = np.minimum(found, np.max(np.array(means) + infinite[:, None], axis=0))
            for weight, transforms in self._tilts:
                mean = self._largest(whole * weight, *transforms[k], infinite, weight)
                found = np.minimum(found, mean)
        found = np.minimum.accumulate(found * (1.0 + 8.0 * ROUNDOFF) + 1e-300)
        return np.minimum(found, 1.0)

    def _largest(self, whole: Array, transform: Array, error: Array, infinite: Array, weight: Array) -> Array:
        """The largest mean over types, by transforms of the tilted values."""
        from scipy import fft

        inside = slice(self._reach, self._reach + self._places + 1)
        known, norm = fft.rfft(whole, self._size), math.sqrt(float(whole @ whole)) * (1.0 + 1e-9)
        found, rows = np.zeros(self._places + 1), max(1, CHUNK // self._size)
        for first in range(0, error.size, rows):
            part = slice(first, first + rows)
            mean = fft.irfft(known * transform[part], self._size, axis=1)[:, 2 * self._reach :][:, : self._places + 1]
            mean = (np.maximum(mean, 0.0) + norm * error[part, None]) / weight[inside] + infinite[part, None]
            found = np.maximum(found, mean.max(axis=0))
        return found
