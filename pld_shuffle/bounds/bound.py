"""A published bound is one object: ``bound.epsilon(eps0=, delta=, n=)``, and of a `DeltaBound` also its delta.

*Two refusals.* An argument that no bound could use (delta = 2, n = 0, a bool) is a ValueError or TypeError. One that
has a meaning but lies outside what a theorem covers is `OutOfRange`. No bound returns nan.

*Rounding.* A Fraction or a longdouble becomes the neighbouring double for which the bound is larger. A bound is
evaluated as it is written, then moved to its safe side by `MARGIN`, relative in epsilon, absolute in log delta.

*Closed forms* are returned as they stand even where they exceed eps0. What the papers of clones evaluate numerically is
the pair of ``ShuffledLDP(eps0, n, analysis="clones")``, or "stronger-clones".

*Noise in one sum of integers* (cpSGD, Skellam, discrete Gaussians): one coordinate moves by an integer `sensitivity`,
and the noise is the sum of `shares` independent shares. `SummedNoise` has the exact laws.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import IntEnum
from functools import partial
from typing import Any

from ..numerics import validation
from ..numerics.search import first_satisfying
from ..numerics.sides import Side

MARGIN = 1e-12  # the formulas agree with 50-digit evaluations to about 1e-14 (tests): a wide margin
# Moments of the blanket grow like exp(3 eps0) and would leave the doubles beyond about 236; no bound amplifies there
# unless n > e^200.
EPS0_LIMIT = 200.0
SHARE = 1 - 1e-9  # of eps0, up to which epsilon is looked for
COUNT_LIMIT = 10**18  # of users, rounds or values: beyond every population, and exact to 1e-16 as a double


class OutOfRange(ValueError):
    """The arguments are meaningful, but outside the range in which the cited theorem holds."""


class Adversary(IntEnum):
    """Whom a bound covers; each sees all that the one before sees."""

    REPORTS = 0
    WEAK = 1
    STRONG = 2

    @property
    def sees(self) -> str:
        """In words."""
        return (
            "only the shuffled reports",
            "who of the other users answered at random",
            "who answered at random, the target included",
        )[self]


class Bound(ABC):
    """An upper bound for one round of n honest users, substitution of one user's value.

    name, source : for tables, and to find the proof. covers : the adversary it holds for. only : the randomizers it is
    for, "k-ary randomized response" say; "" is every eps0-LDP randomizer. needs : of what it covers, for messages.
    """

    name: str
    source: str
    covers: Adversary = Adversary.REPORTS
    only: str = ""
    needs: str = "enough users to amplify, below eps0"

    @abstractmethod
    def formula(self, eps0: float, delta: float, n: int) -> float:
        """epsilon by the theorem, rounded up; +inf outside its range."""

    def epsilon(self, *, eps0: float, delta: float, n: int) -> float:
        """The bound: eps0 in (0, 200], delta in (0, 1), n users."""
        value = self.formula(local_budget(eps0), failure("delta", delta), count("n", n))
        if not value < math.inf:
            at = f"eps0 = {eps0!r}, delta = {delta:g}, n = {n!r}"
            raise OutOfRange(f"{self.source} gives no epsilon at {at}: it needs {self.needs}")
        return value


class DeltaBound(Bound):
    """delta as a function of epsilon; vacuous (1) or refused from eps0 on, where pure local privacy takes over.

    Several such bounds rise again for large epsilon although the delta of a mechanism cannot. Epsilon is therefore
    looked for on a grid up to eps0 times `SHARE`, in about 260 evaluations. *The answer is safe*: fed back into the
    bound, it does not miss the target.
    """

    @abstractmethod
    def curve(self, eps0: float, n: int) -> Callable[[float], float]:
        """An upper bound on delta, at most 1, as a function of epsilon; OutOfRange if it is not covered."""

    def delta(self, *, epsilon: float, eps0: float, n: int) -> float:
        """What the theorem states, at most 1. One evaluation."""
        return self.curve(local_budget(eps0), count("n", n))(target("epsilon", epsilon))

    def formula(self, eps0: float, delta: float, n: int) -> float:
        """The smallest epsilon below eps0 with at most this delta."""
        curve, top = self.curve(eps0, n), eps0 * SHARE
        solution = first_satisfying(lambda x: log_ratio(curve(x), delta), 1e-12 * top, top)
        return math.inf if solution is None else solution


# What a bound accepts, and how it rounds: an epsilon or a delta to be reached is rounded down.
target = partial(validation.positive_float, rounding=Side.LOWER)
failure = partial(validation.open_unit, rounding=Side.LOWER)
count = partial(validation.integer_in, lowest=1, highest=COUNT_LIMIT)


def local_budget(value: Any) -> float:
    """eps0 as a float in (0, EPS0_LIMIT], rounded up; OutOfRange above."""
    eps0 = validation.positive_float("eps0", value, Side.UPPER)
    if not eps0 <= EPS0_LIMIT:
        raise OutOfRange(f"eps0 = {eps0!r}: evaluated only for eps0 <= {EPS0_LIMIT:g}")
    return eps0


def raised(value: float) -> float:
    """A positive number moved up by the relative MARGIN."""
    return value * (1 + MARGIN)


def delta_above(log_delta: float) -> float:
    """exp(log_delta) moved up by MARGIN, at most 1 (a vacuous bound) and never 0 by underflow."""
    if log_delta >= 0:
        return 1.0
    return min(1.0, max(math.exp(log_delta + MARGIN * (1 - log_delta)), sys.float_info.min))


def log_ratio(value: float, limit: float) -> float:
    """log(value/limit) for value >= 0 and limit > 0: positive exactly if value > limit."""
    ratio = value / limit
    return math.log(ratio) if ratio > 0 else -math.inf


def log_expm1(x: float) -> float:
    """log(e^x - 1) for x > 0, without overflow."""
    return x + math.log1p(-math.exp(-x)) if x > 30 else math.log(math.expm1(x))


class Erlingsson(Bound):
    """12 eps0 sqrt(log(1/delta)/n), SODA 2019, as in Balle et al. 2019, Theorem 4; rests on the authors' proof."""

    name, source = "shuffling, closed form", "Erlingsson et al. 2019"
    needs = "eps0 < 1/2, delta < 1/100 and n >= 1000"

    def formula(self, eps0: float, delta: float, n: int) -> float:
        if not (eps0 < 0.5 and delta < 0.01 and n >= 1000):
            return math.inf
        return raised(12 * eps0 * math.sqrt(-math.log(delta) / n))


class Cheu(Bound):
    """(1 - s/n) sqrt(32 log(4/delta)/s), s = lambda - sqrt(2 lambda log(2/delta)), lambda = 2n/(e^eps0 + 1).

    Binary randomized response (EUROCRYPT 2019, section 4.2, in its linear form).
    """

    name = only = "binary randomized response"
    source = "Cheu et al. 2019"
    needs = "2n/(e^eps0 + 1) >= 14 log(4/delta)"

    def formula(self, eps0: float, delta: float, n: int) -> float:
        coins = 2 * n / (math.exp(eps0) + 1)
        log4, log2 = math.log(4) - math.log(delta), math.log(2) - math.log(delta)
        if not coins >= 14 * log4:
            return math.inf
        sure = coins - math.sqrt(2 * coins * log2)
        return raised((1 - sure / n) * math.sqrt(32 * log4 / sure))


class ClonesClosedForm(Bound):
    """log(1 + tanh(eps0/2) (8 sqrt(e^eps0 log(4/delta)/n) + 8 e^eps0/n)), Feldman et al. 2021, Theorem 3.1."""

    name, source = "clones, closed form", "Feldman et al. 2021, Thm 3.1"
    needs = "eps0 <= log(n/(16 log(2/delta)))"

    def formula(self, eps0: float, delta: float, n: int) -> float:
        per_user, log_delta = math.exp(eps0) / n, math.log(delta)
        if not 16 * per_user * (math.log(2) - log_delta) <= 1:
            return math.inf
        bracket = math.sqrt(per_user * (math.log(4) - log_delta)) + per_user
        return raised(math.log1p(8 * math.tanh(eps0 / 2) * bracket))


class StrongerClonesClosedForm(Bound):
    """log(1 + (e^eps0 - 1) (4 sqrt(2 log(4/delta)/((e^eps0 + 1) n)) + 4/n)), Feldman et al. 2023, section 3."""

    name, source = "stronger clones, closed form", "Feldman et al. 2023"
    needs = "eps0 <= log(n/(8 log(2/delta)) - 1)"

    def formula(self, eps0: float, delta: float, n: int) -> float:
        both, log_delta = math.exp(eps0) + 1, math.log(delta)
        if not 8 * both * (math.log(2) - log_delta) <= n:
            return math.inf
        root = math.sqrt(2 * (math.log(4) - log_delta) / (both * n))
        return raised(math.log1p(4 * math.expm1(eps0) * (root + 1 / n)))


def cpsgd_epsilon(*, shares: int, trials: int, p: float, sensitivity: int, delta: float) -> float:
    """epsilon of shares * trials coins of probability p in one round (Agarwal et al. 2018, cpSGD, Theorem 1, d = 1).

    Raises OutOfRange unless the coins' variance is at least max(23 log(10/delta), 2 sensitivity).
    """
    moved, fail = count("sensitivity", sensitivity), failure("delta", delta)
    rare = min(validation.open_unit("p", p), 1.0 - p)
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
    alpha, moved = count("order", order), count("sensitivity", sensitivity)
    mu = validation.positive_float("variance", variance)
    more = min(((2.0 * alpha - 1.0) * moved**2 + 6.0 * moved) / (4.0 * mu**2), 1.5 * moved / mu)
    return raised(0.5 * alpha * moved**2 / mu + more)


def discrete_gaussian_rdp(*, order: float, shares: int, sigma: float, sensitivity: int) -> float:
    """The same of a sum of discrete Gaussians, sigma >= 1/2, for any order (Kairouz, Liu, Steinke 2021, Theorem 1)."""
    alpha, number, moved = target("order", order), count("shares", shares), count("sensitivity", sensitivity)
    scale = validation.positive_float("sigma", sigma)
    if not scale >= 0.5:
        raise OutOfRange(f"sigma must be at least 1/2, got {sigma!r}")
    # Exponents k/(k+1) rise to 1: the first terms, and what bounds all others.
    decay, first = 2.0 * math.pi**2 * scale**2, min(number, 10**4)
    tau = 10.0 * math.fsum(math.exp(-decay * k / (k + 1.0)) for k in range(1, first))
    tau += 10.0 * (number - first) * math.exp(-decay * (1.0 - 1e-4))
    normal = moved**2 / (number * scale**2)
    return raised(0.5 * alpha * min(normal + 0.5 * tau, (math.sqrt(normal) + tau) ** 2))
