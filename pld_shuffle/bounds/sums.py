"""Published bounds on noise in one sum of integers: binomial (cpSGD), Skellam, and sums of discrete Gaussians.

All are for one coordinate that moves by an integer `sensitivity`, the sum of `shares` independent shares, and rest on
their authors' proofs; `SummedNoise` has the exact laws. Renyi bounds compose by adding up, `rdp_to_epsilon` converts.
"""

from __future__ import annotations

import math

from ..numerics.validation import open_unit, positive_float
from .bound import OutOfRange, count, failure, raised, target


def cpsgd_epsilon(*, shares: int, trials: int, p: float, sensitivity: int, delta: float) -> float:
    """epsilon of shares * trials coins of probability p in one round (Agarwal et al. 2018, cpSGD, Theorem 1, d = 1).

    Raises OutOfRange unless the coins' variance is at least max(23 log(10/delta), 2 sensitivity).
    """
    moved, fail = count("sensitivity", sensitivity), failure("delta", delta)
    rare = min(open_unit("p", p), 1.0 - p)
    variance = count("shares", shares) * count("trials", trials) * rare * (1.0 - rare)
    least = max(23.0 * math.log(10.0 / fail), 2.0 * moved)
    if not variance >= least:
        raise OutOfRange(f"the variance of the coins must be at least {least:.4g}, got {variance:.4g}")
    square = rare**2 + (1.0 - rare) ** 2
    b = 2.0 / 3.0 * square + 1.0 - 2.0 * rare
    c = math.sqrt(2.0) * (3.0 * rare**3 + 3.0 * (1.0 - rare) ** 3 + 2.0 * square)
    d = 4.0 / 3.0 * square
    log = math.log(1.25 / fail)
    middle = (c * math.sqrt(math.log(10.0 / fail)) + b) / (1.0 - fail / 10.0)
    last = 2.0 / 3.0 * log + d * math.log(20.0 / fail) * math.log(10.0 / fail)
    return raised(moved * (math.sqrt(2.0 * log / variance) + (middle + last) / variance))


def skellam_rdp(*, order: int, variance: float, sensitivity: int) -> float:
    """Renyi divergence of integer order >= 2 of Skellam noise of that variance (Agarwal et al. 2021, Corollary 4.1)."""
    alpha, moved, mu = count("order", order), count("sensitivity", sensitivity), positive_float("variance", variance)
    more = min(((2.0 * alpha - 1.0) * moved**2 + 6.0 * moved) / (4.0 * mu**2), 1.5 * moved / mu)
    return raised(0.5 * alpha * moved**2 / mu + more)


def discrete_gaussian_rdp(*, order: float, shares: int, sigma: float, sensitivity: int) -> float:
    """The same of a sum of discrete Gaussians, sigma >= 1/2, for any order (Kairouz, Liu, Steinke 2021, Theorem 1)."""
    alpha, number, moved = target("order", order), count("shares", shares), count("sensitivity", sensitivity)
    scale = positive_float("sigma", sigma)
    if not scale >= 0.5:
        raise OutOfRange(f"sigma must be at least 1/2, got {sigma!r}")
    # Exponents k/(k+1) rise to 1: the first terms, and what bounds all others.
    decay, first = 2.0 * math.pi**2 * scale**2, min(number, 10**4)
    tau = 10.0 * math.fsum(math.exp(-decay * k / (k + 1.0)) for k in range(1, first))
    tau += 10.0 * (number - first) * math.exp(-decay * (1.0 - 1e-4))
    normal = moved**2 / (number * scale**2)
    return raised(0.5 * alpha * min(normal + 0.5 * tau, (math.sqrt(normal) + tau) ** 2))
