"""Central Gaussian and Laplace noise in closed form, also on a Poisson sample; many rounds of Gaussian noise as one.

With mu = sensitivity/sigma the loss is normal, of mean mu^2/2 and variance mu^2, so rounds add their mu^2, and

    delta(eps) = Phi(-u) - e^eps Phi(-v),   u = eps/mu - mu/2,   v = eps/mu + mu/2

(Balle, Wang 2018, Thm 8). With v^2 - u^2 = 2 eps the latter is exp(-u^2/2) (erfcx(u/sqrt 2) - erfcx(v/sqrt 2)) / 2,
which is used for u > 0: rounding then scales the difference. delta increases in mu.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..numerics.sides import ROUNDOFF, Array, Bounds, above, below
from .pair import Pair
from .profile import ProfilePair

LARGE = 30.0  # from log(r g) on, logarithms are accurate enough
RENYI_ROUNDING = 1e-14  # relative, of a closed form of the Renyi divergence


def gaussian_delta(mu: Bounds, eps: Array) -> Bounds:
    """Bounds (arrays) on delta at eps >= 0, for mu > 0 known from both sides."""
    return Bounds(np.maximum(_delta(mu.lower, eps, -1.0), 0.0), np.minimum(_delta(mu.upper, eps, 1.0), 1.0))


def _delta(mu: float, eps: Array, sign: float) -> Array:
    """The closed form, moved by its rounding in the direction of `sign`."""
    from scipy.special import erfc, erfcx

    root = math.sqrt(0.5)
    far = eps / mu
    u, v = far - 0.5 * mu, far + 0.5 * mu
    front = 0.5 * np.exp(-0.5 * u * u)
    other = erfcx(root * v)
    positive = u > 0.0
    near = erfcx(root * np.maximum(u, 0.0))
    delta = np.where(positive, front * (near - other), 0.5 * erfc(root * np.minimum(u, 0.0)) - front * other)
    # u and v are known to 3 ulp of v; exp(-u^2/2) and the error functions move by (1 + |u|) times that.
    size = np.where(positive, front * (near + other), 1.0)
    error = 48.0 * ROUNDOFF * (1.0 + (1.0 + np.abs(u)) * v) * size + 1e-300
    return np.asarray(delta + sign * error)


@dataclass(frozen=True)
class GaussianPair(ProfilePair):
    """Gaussian noise whose mu^2 is known from both sides."""

    square: Bounds

    def profile(self, expm1_eps: Array, rtol: float, truncated_mass: float) -> Bounds:
        return gaussian_delta(root(self.square), np.log1p(expm1_eps))

    max_loss = Bounds(math.inf, math.inf)

    @property
    def scale(self) -> float:
        return float(root(self.square).upper)

    def renyi(self, order: float) -> Bounds:
        """Mironov 2017, Prop. 7."""
        low, high = (0.5 * order * end for end in self.square)
        return Bounds(low * (1.0 - RENYI_ROUNDING), high * (1.0 + RENYI_ROUNDING))


@dataclass(frozen=True)
class LaplacePair(ProfilePair):
    """Laplace noise whose largest loss t = sensitivity / scale is known from both sides.

    delta(eps) = 1 - exp((eps - t)/2), 0 from eps = t on.
    """

    largest: Bounds

    def profile(self, expm1_eps: Array, rtol: float, truncated_mass: float) -> Bounds:
        eps = np.log1p(expm1_eps)
        ends = []
        for t, sign in zip(self.largest, (-1.0, 1.0), strict=True):
            rest = np.maximum(t - eps * (1.0 - sign * 3.0 * ROUNDOFF), 0.0)
            ends.append(-np.expm1(-0.5 * rest) * (1.0 + sign * 8.0 * ROUNDOFF))
        return Bounds(*ends)

    @property
    def max_loss(self) -> Bounds:
        return self.largest

    @property
    def scale(self) -> float:
        t = float(self.largest.upper)
        return t if t > 1.0 else t * math.sqrt(1.0 - t / 3.0)

    @property
    def top_mass(self) -> float:
        """Half of the noise pushes away from the other dataset's answer. (None if t had to be rounded.)"""
        return 0.5 if self.largest.lower == self.largest.upper else 0.0

    def renyi(self, order: float) -> Bounds:
        """Mironov 2017, Prop. 6."""
        share = order / (2.0 * order - 1.0)
        ends = []
        for t, sign in zip(self.largest, (-1.0, 1.0), strict=True):
            log = np.logaddexp(math.log(share) + (order - 1.0) * t, math.log1p(-share) - order * t)
            # Small t cancel: the logarithm is known absolutely.
            ends.append(float(log) + sign * RENYI_ROUNDING * (1.0 + 2.0 * order * t))
        low, high = (end / (order - 1.0) for end in ends)
        return Bounds(max(0.0, low), min(high, self.largest.upper))


def noise_of(pair: Pair) -> Bounds | None:
    """mu^2 of a pair that is Gaussian noise."""
    return pair.square if isinstance(pair, GaussianPair) else None


def with_one_noise(ledger: Sequence[tuple[Pair, int]]) -> list[tuple[Pair, int]]:
    """The same ledger with all Gaussian noise in one round, the last."""
    noise = [(noise_of(pair), count) for pair, count in ledger]
    squares = [(square, count) for square, count in noise if square is not None]
    if not squares:
        return list(ledger)
    rest = [item for item, (square, _) in zip(ledger, noise, strict=True) if square is None]
    low, high = (math.fsum(count * square[end] for square, count in squares) for end in (0, 1))
    return [*rest, (GaussianPair(Bounds(below(low, 2.0), above(high, 2.0))), 1)]


def root(square: Bounds) -> Bounds:
    """mu from mu^2."""
    return Bounds(below(math.sqrt(square.lower)), above(math.sqrt(square.upper)))


@dataclass(frozen=True)
class PoissonGaussianPair(ProfilePair):
    """The Gaussian mechanism on a Poisson sample, as in DP-SGD, for neighbours that differ in one user's value.

    Everyone is in the sample with probability q, independently. In units of sigma, contributions of norm at most a,

        P = (1-q) N(0) + q N(a),   Q = (1-q) N(0) + q N(-a).

    It dominates in both orders, exactly if the adversary knows the rest of the sample (docs/theory.md, section 10).

    Profile: with r = e^(a^2/2) (1-q)/q, g = s - 1, the loss exceeds eps where w = e^(a x) solves w^2 - r g w -
    s > 0, and

        delta = q (Phi(a-x) - Phi(-a-x)) - g ((1-q) Phi(-x) + q Phi(-a-x))

    at the positive root; x moves delta to second order only, so its rounding counts for nothing.

    far : a = C/sigma. rate : q.
    """

    far: float
    rate: float

    max_loss = Bounds(math.inf, math.inf)

    @cached_property
    def scale(self) -> float:  # type: ignore[override]
        a, q = self.far, self.rate
        z = np.linspace(-9.0, 9.0, 721)
        weight = np.exp(-0.5 * z * z)
        weight /= weight.sum()
        square = 0.0
        for share, mean in ((1.0 - q, 0.0), (q, a)):
            x = a * (z + mean)
            up, down = (_log_mixture(q, sign * x - 0.5 * a * a) for sign in (1.0, -1.0))
            square += share * float(weight @ (up - down) ** 2)
        return math.sqrt(square)

    def profile(self, expm1_eps: Array, rtol: float, truncated_mass: float) -> Bounds:
        from scipy.special import erfc

        a, q = self.far, self.rate
        x = self._threshold(expm1_eps)

        def tail(y: Array) -> Array:
            return np.asarray(0.5 * erfc(math.sqrt(0.5) * y))

        near, far = tail(x - a), tail(x + a)
        drop = expm1_eps * ((1.0 - q) * tail(x) + q * far)
        delta = q * (near - far) - drop
        # Arguments are known to a few ulp of x + a, and tails move by (1 + y^2) times that.
        error = 64.0 * ROUNDOFF * (1.0 + (x + a) ** 2) * (q * (near + far) + drop) + 1e-300
        return Bounds(np.maximum(delta - error, 0.0), np.clip(delta + error, 0.0, 1.0))

    def _threshold(self, expm1_eps: Array) -> Array:
        """Where the loss is log(1 + growth), in units of sigma."""
        a, q = self.far, self.rate
        with np.errstate(divide="ignore"):
            log_t = 0.5 * a * a + np.log1p(-q) - math.log(q) + np.log(expm1_eps)
        t = np.exp(np.minimum(log_t, LARGE))
        # w - 1 without cancellation; w = (t + sqrt(t^2 + 4s)) / 2.
        square = t * t + 4.0 * expm1_eps
        log_w = np.log1p(0.5 * (t + square / (np.sqrt(square + 4.0) + 2.0)))
        root = 0.5 * np.logaddexp(2.0 * log_t, math.log(4.0) + np.log1p(expm1_eps))
        far = np.logaddexp(log_t, root) - math.log(2.0)
        return np.asarray(np.where(log_t > LARGE, far, log_w) / a)


def _log_mixture(rate: float, exponent: Array) -> Array:
    """log(1 - rate + rate e^exponent)."""
    if rate == 1.0:
        return exponent
    return np.asarray(
        np.where(
            exponent < 1.0,
            np.log1p(rate * np.expm1(np.minimum(exponent, 1.0))),
            np.logaddexp(math.log1p(-rate), math.log(rate) + exponent),
        )
    )
