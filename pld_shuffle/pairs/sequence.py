"""Reports made one after the other in a hidden order, each by a randomizer that may depend on those before it.

Theorem Q (docs/people.md, section 4) is the swap theorem with positions in place of users: an adversary chooses the law
of every L_t with what came before in view. Smoothed by Laplace noise Z of scale 1/lam, the adversary gains nothing from
choosing: for a law L of three values that is above all five extreme laws for every function whose second derivative
changes by a factor e^(lam |x|) at most,

    E(L_1 + ... + L_n)_+ <= E(L + ... + L + Z)_+.

That is one integral of a cube of exponentials, and its trapezoidal sum lies above it: what it adds is positive. Among
few users Z would cost too much, and the supremum itself is computed (`game`), from above and for few s: H is convex.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..numerics.search import crossing
from ..numerics.sides import ROUNDOFF, Array
from .coins import CoinMixture
from .game import StepLaws, played
from .pair import Alike
from .profile import UpperPair
from .swap import extreme_laws
from .swap_pairs import stronger_clones

EDGES = np.append([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0], 10.0 * 2.0 ** np.arange(7.0))  # of n u
SMOOTHINGS = 0.03 * 1.6 ** np.arange(10.0)  # lam times the deviation of binary randomised response
TO_LARGEST = 0.9  # of the largest u for which three laws are enough
NODES, SPACING = 32, 0.4  # of the integral; in deviations of the sum
MOST_PLAYED, FINE = 300, 8  # users whose game is computed, and points of its lattice in a deviation of one report
REACH = 8.0  # of the lattice, in deviations of the sum
APART = 0.1  # scales of the loss between two epsilons at which it is computed: a share of this squared / 8 of epsilon
#: Ends of intervals of n u there, each with the game at its upper end; u is at most that share of 1/p.
PLAYED_EDGES, PLAYED_TO = np.array([0.0, 0.75, 1.5, 2.5, 4.0, 6.0, 9.0, 14.0, 25.0, 60.0]), 0.95


@dataclass(frozen=True)
class Law:
    """Laws of three values above their common mean, one for each point: weights and values of shape (3, ...)."""

    weight: Array
    value: Array

    def moment(self, z: Any) -> Any:
        """E exp(z value) - 1."""
        return np.sum(self.weight * np.expm1(z * self.value), axis=0)

    def size(self, z: Any) -> Array:
        """What rounding of the moment is relative to: of its terms, and of values that cancel."""
        terms = np.sum(self.weight * np.abs(np.expm1(z * self.value)), axis=0)
        return np.asarray(terms + np.abs(z) * np.ptp(self.value, axis=0))


def dominating(over: float, growth: Array, before: Array, after: Array, lam: float) -> tuple[Law, NDArray[np.bool_]]:
    """A law that the lemma accepts for v = u/(1-u) from `before` to `after`, and where there is one.

    over : e^eps0 - 1. It has the largest and the least value of all extreme laws, with weights between those of
    three-valued randomised response (enough for lam -> 0) and of binary (enough for any lam: stronger clones).
    """
    p, s = 1.0 + over, 1.0 + growth
    top, bottom = (over - growth) / (1.0 - after * over) + growth, -s * over
    inner = growth - (over / p + growth) / (1.0 + before * over / p)
    share = -inner / (top - inner)
    first = Law(np.array([share, 1.0 - share, 0.0 * share]), np.array([top, inner, inner]))
    ones = np.ones_like(top)
    second = Law(np.array([ones, p * ones, 0.0 * ones]) / (1.0 + p), np.array([bottom, -bottom / p, bottom]))
    moved = []  # three-valued randomised response
    for v in (before, after):
        up, down = 1.0 - v * over, 1.0 + v * over / p
        values = np.array([(over - growth) / up + growth, bottom, growth - growth / (p * down)])
        moved.append((np.array([up, ones, p * down]) / (p + 2.0), values))

    def law(binary: Array) -> Law:
        high, low = ((1.0 - binary) / (p + 2.0) + binary * share, (1.0 - binary) / (p + 2.0) + binary / (1.0 + p))
        rest = 1.0 - high - low
        return Law(np.array([high, low, rest]), np.array([top, bottom, -(high * top + low * bottom) / rest]))

    def excess(binary: Array) -> Array:
        """-1 where there is enough of it, else 1."""
        tried = law(binary)
        [high, _, rest], [_, _, middle] = tried.weight, tried.value
        held = (rest > 0.0) & (middle > bottom) & (middle < top)
        for sign, other in ((lam, first), (-lam, second)):
            margin = 64.0 * ROUNDOFF * (tried.size(sign) + other.size(sign))
            held &= tried.moment(sign) >= other.moment(sign) + margin
        call = high * (top - middle) - 64.0 * ROUNDOFF * (top - bottom)
        for weight, values in moved:
            held &= np.sum(weight * np.maximum(values - middle, 0.0), axis=0) <= call
        return np.where(held, -1.0, 1.0)

    binary = crossing(excess, (1e-12 * ones, ones), (ones, -ones), rtol=1e-9)
    return law(binary), excess(binary) < 0.0


def smoothed_call(law: Law, n: int, growth: Array, lam: float) -> Array:
    """Upper bounds on E(sum of n of `law` - n growth + Z)_+, Z of density lam exp(-lam |z|) / 2; O(NODES) each.

    A trapezoidal sum of E exp(z sum) / ((1 - z^2/lam^2) z^2) on Re z = x adds positive terms to what is asked, by
    Poisson's formula. Of the nodes beyond the last, those near a multiple of 2 pi/gap, gap the difference of
    the largest value and one of the others, are bounded by the modulus on the real line, and all others by what these
    two values leave of it.
    """

    def falling(x: Array) -> Array:
        """Minus x times the slope of the logarithm of what is summed, at y = 0."""
        tilted = law.weight * np.exp(x * law.value)
        slope = np.sum(tilted * law.value, axis=0) / np.sum(tilted, axis=0) - growth
        return np.asarray(2.0 - x * (n * slope + 2.0 * x / (lam * lam - x * x)))

    ones = np.ones_like(law.value[0])
    x = crossing(falling, (1e-12 * lam * ones, 2.0 * ones), (0.999 * lam * ones, -np.inf * ones), close=1e-3)
    tilted = law.weight * np.exp(x * law.value)
    tilted /= np.sum(tilted, axis=0)
    mean = np.sum(tilted * law.value, axis=0)
    step = SPACING / np.sqrt(n * np.sum(tilted * (law.value - mean) ** 2, axis=0) + 2.0 / lam**2)
    log_size = n * np.log1p(law.moment(x)) - n * growth * x
    total, sizes = np.zeros_like(x), np.zeros_like(x)
    for j in range(NODES):
        z = x + 1j * (j * step)
        exponent = n * np.log1p(law.moment(z)) - n * growth * z - log_size
        term = np.exp(exponent) / ((1.0 - (z / lam) ** 2) * z * z) * (1.0 if j else 0.5)
        total, sizes = total + term.real, sizes + np.abs(term)
    last, beyond = (NODES - 1.0) * step, np.inf
    for other in (1, 2):
        gap = law.value[0] - law.value[other]
        lobe = 2.0 * math.pi / gap
        apart = last < 0.5 * lobe
        faint = np.exp(-2.0 * n * tilted[0] * tilted[other] * np.sin(0.5 * gap * np.where(apart, last, 0.0)) ** 2)
        near = 1.09 * (2.0 * NODES + 1.0) * step / np.where(apart, lobe - last, np.inf) ** 4
        beyond = np.minimum(beyond, 1.01 * lam**2 * (faint / (3.0 * last**3) + near))
    reach = x + last
    rounding = 64.0 * ROUNDOFF * (n * law.size(reach) + n * growth * reach + np.abs(log_size) + 64.0)
    found = step * (total + np.expm1(np.minimum(rounding, 1.0)) * sizes) + beyond
    return np.asarray(np.where(rounding < 1.0, np.exp(log_size) * found / math.pi * (1.0 + 1e-12), np.inf))


def _alone(over: float, growth: Array) -> Array:
    """H_s(R_0||R_1) of one report."""
    return np.asarray(np.maximum(over - growth, 0.0) / (over + 2.0) * (1.0 + 8.0 * ROUNDOFF))


def _shares(n: int, ends: Array) -> tuple[Array, Array]:
    """Chances that the least of n uniform numbers lies between these ends, the first of them 0; and beyond the last."""
    log_left = n * np.log1p(-ends)
    return np.exp(log_left[..., :-1]) * -np.expm1(np.diff(log_left)), np.exp(log_left[..., -1])


def _game(eps0: float, growth: float, u: float, n: int, floor: float) -> float:
    """G(u), from above: every value on the two points of a lattice around it, which lie above any convex function."""
    s = 1.0 + growth
    laws = extreme_laws(eps0)[: 3 if u * math.exp(eps0) * s < 1.0 else 5]  # the other ones lie below the second then
    law = np.repeat(np.arange(len(laws)), [weight.size for *_, weight in laws])
    first, second, shared, weight = np.hstack(laws)
    mass = (weight - u * shared) / (1.0 - u)
    value = (first - s * second) / mass
    h = math.sqrt(float(np.bincount(law, mass * value**2).max())) / FINE
    at = value / h + 1e-12 * (1.0 + (first + s * second) / (mass * h))  # to the right, where more is
    place = np.floor(at)
    places, index = np.unique(np.concatenate((place, place + 1.0)).astype(np.int64), return_inverse=True)
    idle = -places.size % 4
    both = np.zeros((len(laws), places.size + idle))
    np.add.at(both, (np.tile(law, 2), index), np.concatenate((mass * (place + 1.0 - at), mass * (at - place))))
    steps = StepLaws(np.append(places, np.zeros(idle, np.int64)), both * (1.0 + 1e-13), np.zeros(len(laws)))
    size = math.ceil(REACH * FINE * math.sqrt(n)) + FINE
    return float(played(steps, n, h, size, size, floor).at(np.zeros(1))[0]) / n


@lru_cache(maxsize=4096)
def _by_game(eps0: float, n: int, growth: float, missed: float) -> float:
    """Theorem Q with the game itself, at one s. G(u) does not fall (docs/people.md, section 4)."""
    over = math.expm1(eps0) * (1.0 + 2.0**-51)
    if growth >= over:
        return 0.0
    alone = float(_alone(over, np.array(growth)))
    ends = np.minimum(np.append(PLAYED_EDGES / n, 1.0), PLAYED_TO / (1.0 + over))
    shares, left = _shares(n, ends)
    total = float(left) * alone
    for share, u in zip(shares.tolist(), ends[1:].tolist(), strict=True):
        if share > 0.0:
            total += share * (min(alone, _game(eps0, growth, u, n, missed)) if share * alone > missed else alone)
    return min(1.0, total * (1.0 + 1e-12))


@dataclass(frozen=True)
class SequencePair(Alike, UpperPair):
    """n users in a hidden order send reports of any eps0-LDP randomizers, each chosen with those before it in view."""

    eps0: float
    n: int

    @cached_property
    def like(self) -> CoinMixture:  # type: ignore[override]
        """The labels of stronger clones: a bound, too, with the same largest loss."""
        return stronger_clones(self.eps0, self.n)

    @cached_property
    def smoothing(self) -> float:
        """The best four deviations out; any is right."""
        known = self.like.as_profile
        assert known is not None
        far = known.losses_at(4.0)
        unit = math.exp(0.5 * self.eps0) - math.exp(-0.5 * self.eps0)
        return float(min(SMOOTHINGS / unit, key=lambda lam: float(self.bound(far, lam)[0])))

    def upper(self, expm1_eps: Array, truncated_mass: float) -> Array:
        if self.n > MOST_PLAYED:
            return self.bound(expm1_eps, self.smoothing)
        missed = 1e-4 ** math.ceil(0.25 - 0.25 * math.log10(max(truncated_mass, 1e-296)))  # a few powers
        apart = APART * self.scale
        place = np.log1p(expm1_eps) / apart
        nodes = np.unique(np.concatenate((np.floor(place), np.ceil(place)))) * apart
        found = np.array([_by_game(self.eps0, self.n, growth, missed) for growth in np.expm1(nodes).tolist()])
        return np.asarray(np.interp(expm1_eps, np.expm1(nodes), found) * (1.0 + 1e-12))

    def bound(self, expm1_eps: Array, lam: float) -> Array:
        """Theorem Q, smoothed at scale 1/lam; O(points) integrals."""
        over = math.expm1(self.eps0) * (1.0 + 2.0**-51)
        growth = expm1_eps[:, np.newaxis]
        alone = _alone(over, growth)
        largest_u = TO_LARGEST / ((1.0 + over) * (1.0 + growth))
        ends = np.minimum(EDGES / self.n, largest_u)
        share, left = _shares(self.n, ends)
        asked = (growth < over) & (share > 0.0)
        part = np.broadcast_to(alone, share.shape).copy()
        here, (before, after) = np.broadcast_to(growth, share.shape)[asked], (ends[:, :-1], ends[:, 1:])
        v = [(u / (1.0 - u))[asked] for u in (before, after)]
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # then nothing is known
            law, known = dominating(over, here, v[0], v[1] * (1.0 + 4.0 * ROUNDOFF), lam)
            bound = np.where(known, smoothed_call(law, self.n, here, lam) / self.n, np.inf)
        part[asked] = np.fmin(part[asked], bound)
        total = np.sum(share * part, axis=1) + left * alone[:, 0]
        return np.asarray(np.minimum(total * (1.0 + 1e-12), 1.0))
