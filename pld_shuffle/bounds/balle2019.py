"""Balle, Bell, Gascon, Nissim, The privacy blanket of the shuffle model, CRYPTO 2019.

Idea. Every output law is a mixture mu_x = (1-gamma) nu_x + gamma omega with the *blanket* omega =
inf_x mu_x / gamma. Users who answer from the blanket hide the target. Lemma 8: for every pair x,
x' of the target's inputs

    delta(epsilon) <= 1/(gamma n) E[(L_1 + ... + L_M)_+],   M ~ Bin(n, gamma),
    L = (mu_x(W) - e^epsilon mu_x'(W)) / omega(W),   W ~ omega,   E L = 1 - e^epsilon = -a.

Lemmas 9, 12, 13 say in which interval L lies (largest value `b_plus`, length `b`) and bound E L^2
by `c`, for a generic eps0-LDP randomizer, k-ary randomized response and the Laplace mechanism.
Concentration then gives

    Hoeffding (Lemma 10):  E[(L_1 + ... + L_m)_+] <= b^2/(4a) exp(-2 m a^2/b^2)
    Bennett   (Lemma 11):  E[(L_1 + ... + L_m)_+] <= b_plus / log(1+u) exp(-m (c/b_plus^2) phi(u)),
                           u = a b_plus/c,  phi(u) = (1+u) log(1+u) - u.

Both are geometric in m, so the expectation over M = 1 ... n has a closed form,
C ((1 - gamma (1 - e^-kappa))^n - (1-gamma)^n) / (gamma n): no sum is evaluated, and n may be 10^9.

*A correction.* Lemma 11 is printed with the factor b_plus/(a m log(1+u)). That is not homogeneous
(the left side scales with L, the printed right side does not) and it is false: it would allow
binary randomized response with n = 10^6, eps0 = 0.5 the guarantee epsilon = 5.2e-4 at delta = 1e-6,
where the exact delta is at least 3.9e-5 (tests). The authors' published code has the form used here. For k-RR
and Laplace it agrees to its own tolerance (1e-9). For a generic randomizer its second moment is a little larger
than the worst case of Lemma 9, which is used here.

*A generic randomizer's gamma is unknown*, gamma in [e^-eps0, 1] (Lemma 7). Lemma 8 holds for every
smaller gamma with the same omega (answer from the blanket less often), so gamma = e^-eps0 is used
there; the moments of L are taken at their worst case over the whole interval.

*Proofs.* Lemma 8: docs/theory.md, section 8. Lemmas 7, 9, 10, 11 (corrected), 12 and Theorem 6:
docs/bounds.md. One cross moment of Lemma 13 and Theorem 1 rest on the authors' proofs; tests compare
them with quadrature and exact sums.

All are upper bounds for the worst pair of inputs, one round, substitution of one user's value, all
n users honest. `_delta` evaluates the bound, 1.0 where it is vacuous; `_epsilon` and `_eps0` solve
it (`bound`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from .bound import DeltaBound
from .domain import (
    OutOfRange,
    count,
    delta_above,
    failure,
    local_budget,
    log_expm1,
    lowered,
    raised,
    target,
)

# --- what is known about a randomizer's privacy amplification variable L -------------------------


@dataclass(frozen=True)
class Blanket:
    """What is known of a randomizer and of L, in the module's notation.

    gamma : the similarity, or a lower bound of it. largest, length, second_moment : b_plus, b and c.
    """

    gamma: float
    largest: float
    length: float
    second_moment: float


class BlanketFamily(Protocol):
    """A randomizer for every eps0, as `balle_hoeffding_*` and `balle_bennett_*` need it."""

    def blanket(self, *, epsilon: float, eps0: float) -> Blanket:
        """The data of L at 0 < epsilon < eps0."""


@dataclass(frozen=True)
class GenericBlanket:
    """Any eps0-LDP randomizer (Balle et al. 2019, Lemmas 7 and 9)."""

    def blanket(self, *, epsilon: float, eps0: float) -> Blanket:
        """The data of L at 0 < epsilon < eps0."""
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
class RRBlanket:
    """k-ary randomized response over k >= 2 values (Balle et al. 2019, Lemmas 6.1 and 12)."""

    k: int = 2

    def __post_init__(self) -> None:
        count("k", self.k, least=2)

    def blanket(self, *, epsilon: float, eps0: float) -> Blanket:
        """The data of L at 0 < epsilon < eps0."""
        odds = math.expm1(eps0)  # e^eps0 - 1
        gamma = self.k / (odds + self.k)
        truth = odds / (odds + self.k)  # 1 - gamma
        excess = math.expm1(epsilon)
        return Blanket(
            gamma=gamma,
            largest=gamma * math.exp(epsilon) * math.expm1(eps0 - epsilon),
            length=truth * self.k * (math.exp(epsilon) + 1),
            second_moment=gamma * (2 - gamma) * excess**2
            + truth**2 * self.k * (math.exp(2 * epsilon) + 1),
        )


@dataclass(frozen=True)
class LaplaceBlanket:
    """x + Lap(1/eps0) on [0, 1] (Balle et al. 2019, Lemmas 6.2 and 13)."""

    def blanket(self, *, epsilon: float, eps0: float) -> Blanket:
        """The data of L at 0 < epsilon < eps0."""
        half = math.exp(-eps0 / 2)
        return Blanket(
            gamma=half,
            largest=-math.expm1(epsilon - eps0) / half,
            length=(math.exp(epsilon) + 1) * 2 * math.sinh(eps0 / 2),
            second_moment=(math.exp(2 * epsilon) + 1) / 3 * (2 / half + half * half)
            - 2 * math.exp(epsilon) * (2 * half - half * half),
        )


_GENERIC = GenericBlanket()


# --- the two concentration inequalities ----------------------------------------------------------


def _log_blanket_average(*, gamma: float, decay: float, n: int) -> float:
    """log of sum_{m=1}^n Bin(n, gamma)(m) e^{-m decay}, decay > 0, 0 < gamma < 1, without cancellation."""
    everyone = n * math.log1p(gamma * math.expm1(-decay))
    # the ratio of the m = 0 term to the whole sum is exp(-n log1p(gamma e^-decay / (1-gamma)))
    gap = n * math.log1p(math.exp(-decay) * gamma / (1 - gamma))
    if gap == 0:  # e^-decay underflowed: only m = 1 matters, and n e^-decay gamma bounds its term
        return math.log(n * gamma) - decay
    return everyone + math.log(-math.expm1(-gap))


def _phi(u: float) -> float:
    """(1+u) log(1+u) - u for u > 0, without cancellation for small u."""
    if u < 0.05:
        return math.fsum((-1) ** order * u**order / (order * (order - 1)) for order in range(2, 16))
    return (1 + u) * math.log1p(u) - u


def _log_tail(data: Blanket, *, log_factor: float, decay: float, n: int) -> float:
    """log of Lemma 8's bound if E[(L_1 + ... + L_m)_+] <= factor e^{-m decay}."""
    average = _log_blanket_average(gamma=data.gamma, decay=decay, n=n)
    return log_factor + average - math.log(n * data.gamma)


def _log_hoeffding(data: Blanket, *, epsilon: float, n: int) -> float:
    drift = math.expm1(epsilon)
    decay = 2 * (drift / data.length) ** 2
    log_factor = 2 * math.log(data.length) - math.log(4 * drift)
    return _log_tail(data, log_factor=log_factor, decay=decay, n=n)


def _log_bennett(data: Blanket, *, epsilon: float, n: int) -> float:
    u = math.expm1(epsilon) * data.largest / data.second_moment
    decay = data.second_moment / data.largest**2 * _phi(u)
    log_factor = math.log(data.largest / math.log1p(u))
    return _log_tail(data, log_factor=log_factor, decay=decay, n=n)


def _log_generic(epsilon: float, eps0: float, n: int) -> float:
    """log of the left side of Theorem 6, inequality (4)."""
    log_drift = log_expm1(epsilon)
    log_length = math.log1p(math.exp(-epsilon)) + epsilon + log_expm1(2 * eps0) - eps0
    rate = min(math.exp(-eps0), math.exp(2 * (log_drift - log_length)))
    return log_length + (log_length - log_drift) - math.log(4 * n) + math.expm1(-2) * n * rate


# --- Lemma 8 with Hoeffding or Bennett -----------------------------------------------------------


class _LogTail(Protocol):
    """log delta at epsilon from the data of L, by one concentration inequality."""

    def __call__(self, data: Blanket, *, epsilon: float, n: int) -> float: ...


def _by_inequality(name: str, tail: _LogTail) -> Callable[[BlanketFamily], DeltaBound]:
    """The bound of each family of randomizers by one inequality."""
    source = f"Balle et al. 2019 with {name}'s inequality"

    def bound(randomizer: BlanketFamily) -> DeltaBound:
        def formula(epsilon: float, eps0: float, n: int) -> float:
            if not epsilon < eps0:
                raise OutOfRange(
                    f"epsilon = {epsilon!r}: {source} needs epsilon < eps0 = {eps0!r} (from there on, "
                    "pure local privacy gives delta = 0)"
                )
            return tail(randomizer.blanket(epsilon=epsilon, eps0=eps0), epsilon=epsilon, n=n)

        return DeltaBound(source, formula)

    return bound


_hoeffding = _by_inequality("Hoeffding", _log_hoeffding)
_bennett = _by_inequality("Bennett", _log_bennett)


def balle_hoeffding_delta(
    *, epsilon: float, eps0: float, n: int, randomizer: BlanketFamily = _GENERIC
) -> float:
    """Upper bound on delta by Lemmas 8 and 10 of Balle et al. 2019, at most 1.

    `randomizer` is GenericBlanket() (Lemma 9), RRBlanket(k) (Lemma 12) or LaplaceBlanket() (Lemma
    13). Raises OutOfRange unless epsilon < eps0 <= 200. O(1).
    """
    return _hoeffding(randomizer).delta(epsilon=epsilon, eps0=eps0, n=n)


def balle_hoeffding_epsilon(
    *, eps0: float, delta: float, n: int, randomizer: BlanketFamily = _GENERIC
) -> float:
    """Smallest epsilon < eps0 with `balle_hoeffding_delta` <= delta; OutOfRange if there is none."""
    return _hoeffding(randomizer).epsilon(eps0=eps0, delta=delta, n=n)


def balle_hoeffding_eps0(
    *, epsilon: float, delta: float, n: int, randomizer: BlanketFamily = _GENERIC
) -> float:
    """Largest eps0 > epsilon with `balle_hoeffding_delta` <= delta; OutOfRange if there is none."""
    return _hoeffding(randomizer).eps0(epsilon=epsilon, delta=delta, n=n)


def balle_bennett_delta(
    *, epsilon: float, eps0: float, n: int, randomizer: BlanketFamily = _GENERIC
) -> float:
    """Upper bound on delta by Lemmas 8 and 11 (corrected: see the module) of Balle et al. 2019, at most 1.

    `randomizer` is GenericBlanket() (Lemma 9), RRBlanket(k) (Lemma 12) or LaplaceBlanket() (Lemma
    13). Raises OutOfRange unless epsilon < eps0 <= 200. O(1).
    """
    return _bennett(randomizer).delta(epsilon=epsilon, eps0=eps0, n=n)


def balle_bennett_epsilon(
    *, eps0: float, delta: float, n: int, randomizer: BlanketFamily = _GENERIC
) -> float:
    """Smallest epsilon < eps0 with `balle_bennett_delta` <= delta; OutOfRange if there is none."""
    return _bennett(randomizer).epsilon(eps0=eps0, delta=delta, n=n)


def balle_bennett_eps0(
    *, epsilon: float, delta: float, n: int, randomizer: BlanketFamily = _GENERIC
) -> float:
    """Largest eps0 > epsilon with `balle_bennett_delta` <= delta; OutOfRange if there is none."""
    return _bennett(randomizer).eps0(epsilon=epsilon, delta=delta, n=n)


# --- Theorem 6 -----------------------------------------------------------------------------------

_GENERIC_BOUND = DeltaBound("Balle et al. 2019, Theorem 6,", _log_generic)


def balle_generic_delta(*, epsilon: float, eps0: float, n: int) -> float:
    """Upper bound on delta for any eps0-LDP randomizer, Balle et al. 2019, Theorem 6, at most 1.

    Valid for all epsilon > 0, eps0 > 0, n >= 1 (evaluated for eps0 <= 200, OutOfRange above). O(1).
    """
    return _GENERIC_BOUND.delta(epsilon=epsilon, eps0=eps0, n=n)


def balle_generic_epsilon(*, eps0: float, delta: float, n: int) -> float:
    """Smallest epsilon < eps0 with `balle_generic_delta` <= delta; OutOfRange if there is none."""
    return _GENERIC_BOUND.epsilon(eps0=eps0, delta=delta, n=n)


def balle_generic_eps0(*, epsilon: float, delta: float, n: int) -> float:
    """Largest eps0 > epsilon with `balle_generic_delta` <= delta; OutOfRange if there is none."""
    return _GENERIC_BOUND.eps0(epsilon=epsilon, delta=delta, n=n)


# --- Theorem 1: k-ary randomized response in closed form -----------------------------------------


def _hidden(*, eps0: float, n: int, k: int) -> float:
    """(n-1) gamma/k: how many of the others answer at random, per value; Theorem 1's c."""
    return (n - 1) / (math.expm1(eps0) + k)


def _check(*, epsilon: float, n: int) -> None:
    if not (epsilon <= 1 and n >= 2):
        raise OutOfRange(
            "Balle et al. 2019, Theorem 1, needs epsilon <= 1 and n >= 2; "
            f"this is epsilon = {epsilon:.4g}, n = {n}"
        )


def balle_rr_gamma(*, epsilon: float, delta: float, n: int, k: int) -> float:
    """The share of random answers that makes shuffled k-RR (epsilon, delta)-DP, Balle et al. 2019, Theorem 1.

    gamma = max(14 k log(2/delta)/((n-1) epsilon^2), 27 k/((n-1) epsilon)); with probability gamma a user
    answers uniformly over all k values. Every larger gamma is covered too. Raises OutOfRange unless
    epsilon <= 1, n >= 2 and the result is < 1.
    """
    wanted, fail = target("epsilon", epsilon), failure("delta", delta)
    users, values = count("n", n), count("k", k, least=2)
    _check(epsilon=wanted, n=users)
    noise = 14 * (math.log(2) - math.log(fail))
    gamma = raised(values * max(noise / wanted**2, 27 / wanted) / (users - 1))
    if not gamma < 1:
        raise OutOfRange(
            f"Balle et al. 2019, Theorem 1, needs gamma < 1 and asks for gamma = {gamma:.4g} "
            f"(n = {n!r}, k = {k!r})"
        )
    return gamma


def balle_rr_eps0(*, epsilon: float, delta: float, n: int, k: int) -> float:
    """The largest eps0 of k-RR amplified to (epsilon, delta) by Theorem 1: log(1 + k (1-gamma)/gamma).

    Range and errors as `balle_rr_gamma`.
    """
    gamma = balle_rr_gamma(epsilon=epsilon, delta=delta, n=n, k=k)
    return lowered(math.log1p(k * (1 - gamma) / gamma))


def balle_rr_epsilon(*, eps0: float, delta: float, n: int, k: int) -> float:
    """Upper bound on epsilon of shuffled k-RR, Balle et al. 2019, Theorem 1 solved for epsilon.

    max(sqrt(14 k log(2/delta)/((n-1) gamma)), 27 k/((n-1) gamma)), gamma = k/(e^eps0 + k - 1). Raises
    OutOfRange unless n >= 2 and this is at most 1.
    """
    budget, fail = local_budget(eps0), failure("delta", delta)
    users, values = count("n", n), count("k", k, least=2)
    _check(epsilon=0, n=users)
    hidden = _hidden(eps0=budget, n=users, k=values)
    noise = 14 * (math.log(2) - math.log(fail))
    epsilon = raised(max(math.sqrt(noise / hidden), 27 / hidden))
    _check(epsilon=epsilon, n=users)
    return epsilon


def balle_rr_delta(*, epsilon: float, eps0: float, n: int, k: int) -> float:
    """Upper bound on delta of shuffled k-RR, Balle et al. 2019, Theorem 1 solved for delta, at most 1.

    2 exp(-gamma (n-1) epsilon^2/(14 k)). Raises OutOfRange unless epsilon <= 1, n >= 2 and gamma >= 27
    k/((n-1) epsilon).
    """
    wanted, budget = target("epsilon", epsilon), local_budget(eps0)
    users, values = count("n", n), count("k", k, least=2)
    _check(epsilon=wanted, n=users)
    hidden = _hidden(eps0=budget, n=users, k=values)
    if not lowered(hidden) * wanted >= 27:
        raise OutOfRange(
            f"epsilon = {epsilon!r}: Balle et al. 2019, Theorem 1, needs epsilon >= 27 k/((n-1) gamma) = "
            f"{27 / hidden:.4g}"
        )
    return delta_above(math.log(2) - hidden * wanted**2 / 14)
