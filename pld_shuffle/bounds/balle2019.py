"""Balle, Bell, Gascon, Nissim, The privacy blanket of the shuffle model, CRYPTO 2019. Proofs: docs/bounds.md.

Users who answer from the blanket hide the target: delta(epsilon) <= 1/(gamma n) E[(L_1 + ... + L_M)_+], M ~ Bin(n,
gamma) (Lemma 8). Lemmas 9, 12, 13 say in which interval L lies (largest value `b_plus`, length `b`) and bound E L^2 by
`c`; E L = -a. Concentration (Hoeffding, Lemma 10; Bennett, Lemma 11) bounds the terms by C e^(-m kappa), so that the
expectation over M has a closed form: n may be 10^9. All are for the worst pair of inputs, against an adversary who also
sees who of the other users answered from the blanket.

*A correction.* Lemma 11 is printed with the factor b_plus/(a m log(1+u)), which is false; the authors' published code
has the form used here. A generic gamma is unknown, in [e^-eps0, 1] (Lemma 7): e^-eps0 is used, and the worst case of
the moments.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, NamedTuple

from ..numerics.validation import Checked
from .bound import Adversary, Bound, DeltaBound, OutOfRange, count, delta_above, log_expm1, raised


class Blanket(NamedTuple):
    """What is known of a randomizer and of L at 0 < epsilon < eps0, in the module's notation.

    gamma : the similarity, or a lower bound of it. largest, length, second_moment : b_plus, b and c.
    """

    gamma: float
    largest: float
    length: float
    second_moment: float


@dataclass(frozen=True)
class GenericBlanket:
    """Any eps0-LDP randomizer (Balle et al. 2019, Lemmas 7 and 9)."""

    label, only, lemma = "generic", "", 9

    def blanket(self, *, epsilon: float, eps0: float) -> Blanket:
        """At 0 < epsilon < eps0."""
        gamma = math.exp(-eps0)
        # c = g e^eps0 (e^{2 eps}+1) - 2 g^2 e^{eps - 2 eps0} is concave in the unknown g: its
        # maximum on [gamma, 1]
        worst = min(1.0, max(gamma, math.exp(3 * eps0) * math.cosh(epsilon) / 2))
        return Blanket(
            gamma=gamma,
            largest=-math.exp(eps0) * math.expm1(epsilon - 2 * eps0),
            length=(math.exp(epsilon) + 1) * 2 * math.sinh(eps0),
            second_moment=worst * math.exp(eps0) * (math.exp(2 * epsilon) + 1)
            - 2 * worst**2 * math.exp(epsilon - 2 * eps0),
        )


@dataclass(frozen=True)
class RRBlanket(Checked):
    """k-ary randomized response over k >= 2 values (Balle et al. 2019, Lemmas 6.1 and 12)."""

    k: Annotated[int, partial(count, lowest=2)] = 2
    label, only, lemma = "k-RR", "k-ary randomized response", 12

    def blanket(self, *, epsilon: float, eps0: float) -> Blanket:
        """At 0 < epsilon < eps0."""
        odds = math.expm1(eps0)  # e^eps0 - 1
        gamma = self.k / (odds + self.k)
        truth = odds / (odds + self.k)  # 1 - gamma
        excess = math.expm1(epsilon)
        return Blanket(
            gamma=gamma,
            largest=gamma * math.exp(epsilon) * math.expm1(eps0 - epsilon),
            length=truth * self.k * (math.exp(epsilon) + 1),
            second_moment=gamma * (2 - gamma) * excess**2 + truth**2 * self.k * (math.exp(2 * epsilon) + 1),
        )


@dataclass(frozen=True)
class LaplaceBlanket:
    """x + Lap(1/eps0) on [0, 1] (Balle et al. 2019, Lemmas 6.2 and 13)."""

    label, only, lemma = "Laplace", "the Laplace mechanism", 13

    def blanket(self, *, epsilon: float, eps0: float) -> Blanket:
        """At 0 < epsilon < eps0."""
        half = math.exp(-eps0 / 2)
        return Blanket(
            gamma=half,
            largest=-math.expm1(epsilon - eps0) / half,
            length=(math.exp(epsilon) + 1) * 2 * math.sinh(eps0 / 2),
            second_moment=(math.exp(2 * epsilon) + 1) / 3 * (2 / half + half * half)
            - 2 * math.exp(epsilon) * (2 * half - half * half),
        )


BlanketFamily = GenericBlanket | RRBlanket | LaplaceBlanket  # `label` and `only` as in `Bound`


def _phi(u: float) -> float:
    """(1+u) log(1+u) - u for u > 0, without cancellation for small u."""
    if u < 0.05:
        return math.fsum((-1) ** order * u**order / (order * (order - 1)) for order in range(2, 16))
    return (1 + u) * math.log1p(u) - u


class _OfBlanket(DeltaBound):
    """Lemma 8 with a concentration inequality, for GenericBlanket(), RRBlanket(k) or LaplaceBlanket()."""

    covers = Adversary.WEAK
    inequality: str
    lemma: int

    def __init__(self, randomizer: BlanketFamily | None = None) -> None:
        self.randomizer = randomizer = GenericBlanket() if randomizer is None else randomizer
        self.name = f"blanket, {randomizer.label}, {self.inequality}"
        first, last = sorted((self.lemma, randomizer.lemma))
        self.source = f"Balle et al. 2019, Lemmas 8, {first}, {last}"
        self.only = randomizer.only

    def curve(self, eps0: float, n: int) -> Callable[[float], float]:
        def delta(epsilon: float) -> float:
            if not epsilon < eps0:
                raise OutOfRange(
                    f"epsilon = {epsilon!r}: {self.source} needs epsilon < eps0 = {eps0!r} (from there on, "
                    "pure local privacy gives delta = 0)"
                )
            data = self.randomizer.blanket(epsilon=epsilon, eps0=eps0)
            gamma, (log_factor, decay) = data.gamma, self.tail(data, math.expm1(epsilon))
            # The sum over m >= 1: that over all m, less its term at m = 0, whose share of it is e^-gap.
            gap = n * math.log1p(math.exp(-decay) * gamma / (1 - gamma))
            if gap == 0:  # e^-decay underflowed: only m = 1 matters, and n e^-decay gamma bounds its term
                return delta_above(log_factor - decay)
            everyone = n * math.log1p(gamma * math.expm1(-decay))
            return delta_above(log_factor + everyone + math.log(-math.expm1(-gap)) - math.log(n * gamma))

        return delta

    @abstractmethod
    def tail(self, data: Blanket, drift: float) -> tuple[float, float]:
        """log C and kappa of E[(L_1 + ... + L_m)_+] <= C e^(-m kappa), kappa > 0; drift is a = -E L."""


class Hoeffding(_OfBlanket):
    """Balle et al. 2019, Lemmas 8 and 10. eps0 <= 200, O(1)."""

    inequality, lemma = "Hoeffding", 10

    def tail(self, data: Blanket, drift: float) -> tuple[float, float]:
        return 2 * math.log(data.length) - math.log(4 * drift), 2 * (drift / data.length) ** 2


class Bennett(_OfBlanket):
    """Balle et al. 2019, Lemmas 8 and 11 (corrected: see the module). eps0 <= 200, O(1)."""

    inequality, lemma = "Bennett", 11

    def tail(self, data: Blanket, drift: float) -> tuple[float, float]:
        u = drift * data.largest / data.second_moment
        return math.log(data.largest / math.log1p(u)), data.second_moment / data.largest**2 * _phi(u)


class BalleTheorem6(DeltaBound):
    """Balle et al. 2019, Theorem 6, inequality (4): any eps0-LDP randomizer, all epsilon. eps0 <= 200, O(1)."""

    name, source, covers = "blanket, generic, Theorem 6", "Balle et al. 2019, Thm 6", Adversary.WEAK

    def curve(self, eps0: float, n: int) -> Callable[[float], float]:
        def delta(epsilon: float) -> float:
            log_drift = log_expm1(epsilon)
            log_length = math.log1p(math.exp(-epsilon)) + epsilon + log_expm1(2 * eps0) - eps0
            rate = min(math.exp(-eps0), math.exp(2 * (log_drift - log_length)))
            ratio = log_length + (log_length - log_drift) - math.log(4 * n)
            return delta_above(ratio + math.expm1(-2) * n * rate)

        return delta


class BalleTheorem1(Bound):
    """Balle et al. 2019, Theorem 1: k-ary randomized response, n >= 2, wherever it gives epsilon <= 1.

    With probability gamma = k/(e^eps0 + k - 1) a user answers uniformly over all k values, and
    epsilon = max(sqrt(14 k log(2/delta)/((n-1) gamma)), 27 k/((n-1) gamma)).
    """

    name, source, covers = "blanket, k-RR, Theorem 1", "Balle et al. 2019, Thm 1", Adversary.WEAK
    only = "k-ary randomized response"
    needs = "epsilon <= 1, n >= 2 and gamma < 1"

    def __init__(self, k: int = 2) -> None:
        self.k = count("k", k, lowest=2)

    def formula(self, eps0: float, delta: float, n: int) -> float:
        hidden = (n - 1) / (math.expm1(eps0) + self.k)  # who answer at random, per value
        if not hidden > 27:
            return math.inf
        noise = 14 * (math.log(2) - math.log(delta))
        epsilon = raised(max(math.sqrt(noise / hidden), 27 / hidden))
        return epsilon if epsilon <= 1 else math.inf
