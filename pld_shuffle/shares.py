"""Shares of integer noise that clients, servers or a shuffler add: what one is, and the law of a sum of many.

A share is a frozen value of named numbers; `total` is the exact law of so many of them (`numerics.integer_laws`, with
bounds on all that is neglected). All are log-concave but the negative binomial of shape below 1, whose sums are once
their shapes add up to 1. A sum of discrete Gaussians is none, though close to one for sigma above 1.

Distributed discrete Laplace noise (Goryczka and Xiong 2017) is NegativeBinomial(1/n, 1 - exp(-1/scale),
two_sided=True) from each of n clients. Sums of discrete Gaussians: Kairouz, Liu, Steinke 2021; Skellam noise:
Agarwal, Kairouz, Liu 2021; binomial noise: Agarwal et al. 2018 (cpSGD).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, ClassVar

from .numerics import integer_laws
from .numerics.integer_laws import IntegerLaw
from .numerics.validation import Checked, OpenUnit, PositiveInt, between, flag

SMALLEST, LARGEST = 1e-12, 1e14  # of means, variances and shapes

_moderate = between(SMALLEST, LARGEST)


class Share(Checked, ABC):
    """Noise of one party: a law on the integers. Shares raise TypeError or ValueError naming the argument."""

    counts: ClassVar[bool] = False  #: whether it is never negative, as numbers of dummies are

    @abstractmethod
    def total(self, count: int) -> IntegerLaw:
        """The law of the sum of `count` independent shares. MemoryError beyond 2^22 integers."""


@dataclass(frozen=True)
class Binomial(Share):
    """Number of ones among `trials` coins of probability p in (0, 1)."""

    trials: PositiveInt
    p: OpenUnit = 0.5
    counts: ClassVar[bool] = True

    def total(self, count: int) -> IntegerLaw:
        return integer_laws.binomial_law(count * self.trials, self.p)


@dataclass(frozen=True)
class Poisson(Share):
    """A Poisson number of that mean."""

    mean: Annotated[float, _moderate]
    counts: ClassVar[bool] = True

    def total(self, count: int) -> IntegerLaw:
        return integer_laws.poisson_law(count * self.mean)


@dataclass(frozen=True)
class NegativeBinomial(Share):
    """Failures before success number `shape`, any positive number, of trials that succeed with p in (0, 1).

    two_sided : the difference of two such numbers.
    """

    shape: Annotated[float, _moderate]
    p: OpenUnit
    two_sided: Annotated[bool, flag] = False

    @property
    def counts(self) -> bool:  # type: ignore[override]
        return not self.two_sided

    def total(self, count: int) -> IntegerLaw:
        shape = count * self.shape
        if abs(shape - 1.0) <= 4e-16 * count:  # 1/n from each of n
            shape = 1.0
        if self.two_sided:
            return integer_laws.two_sided_law(shape, -math.log1p(-self.p))
        return integer_laws.negative_binomial_law(shape, self.p)


@dataclass(frozen=True)
class Skellam(Share):
    """The difference of two Poisson numbers of mean variance / 2."""

    variance: Annotated[float, _moderate]

    def total(self, count: int) -> IntegerLaw:
        return integer_laws.skellam_law(count * self.variance)


@dataclass(frozen=True)
class DiscreteLaplace(Share):
    """k with probability proportional to exp(-|k| / scale)."""

    scale: Annotated[float, between(0.01, 1e6)]

    def total(self, count: int) -> IntegerLaw:
        return integer_laws.two_sided_law(float(count), 1.0 / self.scale)


@dataclass(frozen=True)
class DiscreteGaussian(Share):
    """k with probability proportional to exp(-k^2 / (2 sigma^2)), sigma >= 0.1."""

    sigma: Annotated[float, between(integer_laws.SMALLEST_SIGMA, 1e6)]

    def total(self, count: int) -> IntegerLaw:
        return integer_laws.gaussian_law(self.sigma, count)
