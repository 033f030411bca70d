"""Shuffle mechanisms: what was run, in the field's parameters, and the proven pair that stands for it.

A shuffle mechanism here only has to name its `CrowdPair`; `mechanism` says what it gets for that.

Assumptions of every pair here: the shuffler is trusted and its output is all the adversary sees beyond what
is stated; one message per user and round; all users of a round run the same randomizer; n counts the users
who really add their noise; neighbouring datasets differ in one user's value (substitution).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .crowd import CrowdPair
from .mechanism import CrowdMechanism, Mechanism, ProfileMechanism, Wrapper, as_mechanism
from .validation import choice, crowd_size, positive_float, positive_int, real, unit_interval

SMALLEST_EPS0, LARGEST_EPS0 = 1e-9, 700.0
SMALLEST_RATE = 1e-12
SNAP = 1e-14
NEAREST_GAMMA = 1.0 - 1e-12  # the largest gamma below 1
ANALYSES = ("stronger-clones", "clones")
ADVERSARIES = ("strong", "weak", "strong-conditional")
SUBSTITUTION = "neighbouring datasets differ in the value of one user (substitution)"
EVERYBODY = "all n users take part; n counts the users whose reports are shuffled together"


@dataclass(frozen=True)
class ShuffledLDP(CrowdMechanism):
    """n users shuffle the reports of any eps0-LDP randomizer, the same for all of them.

    Parameters
    ----------
    eps0 : local epsilon, in [1e-9, 700].
    n : users whose reports are shuffled together, the target included; n >= 1.
    analysis : "stronger-clones" (default; clone probability 1/(e^eps0 + 1) per side, proved for every
        eps0-LDP randomizer in docs/theory.md, section 4) or "clones" (Feldman, McMillan, Talwar 2021,
        Thm 3.2).

    Raises ValueError or TypeError naming the argument.

    >>> ShuffledLDP(eps0=4.0, n=10_000)
    ShuffledLDP(eps0=4.0, n=10000, analysis='stronger-clones')
    """

    eps0: float
    n: int
    analysis: str = "stronger-clones"

    def __post_init__(self) -> None:
        object.__setattr__(self, "eps0", _local_epsilon(self.eps0))
        object.__setattr__(self, "n", crowd_size(self.n))
        choice("analysis", self.analysis, ANALYSES)

    @property
    def pair(self) -> CrowdPair:
        shrink = math.exp(-self.eps0)
        rate = shrink if self.analysis == "clones" else 2.0 * shrink / (1.0 + shrink)
        return CrowdPair(
            n=self.n,
            coin_rate=rate,
            neutral_rate=0.0,
            target_coin=1.0,
            target_neutral=0.0,
            null=0.0,
            theta=math.tanh(0.5 * self.eps0),
            gap=2.0 * shrink / (1.0 + shrink),
            max_loss=self.eps0,
        )

    def assumptions(self) -> dict[str, str]:
        named = {
            "stronger-clones": "stronger clones, valid for every eps0-LDP randomizer",
            "clones": "clones (Feldman-McMillan-Talwar 2021), valid for every eps0-LDP randomizer",
        }
        return {
            "neighbours": SUBSTITUTION,
            "adversary": "sees the shuffled reports and knows every other user's value",
            "analysis": named[self.analysis],
            "sampling": EVERYBODY,
        }


@dataclass(frozen=True, init=False)
class ShuffledRR(CrowdMechanism):
    """n users shuffle k-ary randomised responses (with probability gamma uniform over all k values).

    Parameters
    ----------
    k : alphabet size, k >= 2.
    n : users whose reports are shuffled together, the target included.
    gamma | eps0 : exactly one; gamma 1 or in (0, 1 - 1e-12], eps0 = log(1 + k (1 - gamma) / gamma).
    adversary : "strong" also sees who answered at random, the target included (losses can be infinite);
        "weak" sees it of the other n - 1 users; "strong-conditional" is the strong adversary given that
        the target told the truth, the published pair of Koskela, Heikkila and Honkela.

    The pairs are exact for these adversaries (docs/theory.md, section 2). Raises ValueError or TypeError.

    >>> ShuffledRR(k=4, n=1000, gamma=0.25)
    ShuffledRR(k=4, n=1000, gamma=0.25, adversary='strong')
    """

    k: int
    n: int
    gamma: float
    eps0: float
    truth: float  # 1 - gamma, kept apart because it may be tiny
    adversary: str
    given: str  # "gamma" or "eps0": that one is exact, the other rounded

    def __init__(
        self,
        k: int,
        n: int,
        *,
        gamma: float | None = None,
        eps0: float | None = None,
        adversary: str = "strong",
    ) -> None:
        k = positive_int("k", k, least=2)
        if (gamma is None) == (eps0 is None):
            raise ValueError(
                f"give exactly one of gamma and eps0, got gamma={gamma!r}, eps0={eps0!r}"
            )
        object.__setattr__(self, "given", "eps0" if gamma is None else "gamma")
        if gamma is None:
            eps0 = _local_epsilon(eps0)
            shrink = math.exp(-eps0)
            gamma = k * shrink / (1.0 + (k - 1) * shrink)
            truth = -math.expm1(-eps0) / (1.0 + (k - 1) * shrink)
        else:
            gamma = unit_interval("gamma", gamma)
            truth = 1.0 - gamma
            if truth > 0.0 and gamma > NEAREST_GAMMA:  # rounding of rates would outweigh the truth
                raise ValueError(
                    f"gamma must be 1 (no information at all) or at most 1 - 1e-12, got {gamma!r}"
                )
            eps0 = math.log1p(k * truth / gamma) if gamma > 1e-300 else math.inf
            if not eps0 <= LARGEST_EPS0:
                raise ValueError(f"gamma must leave eps0 at most {LARGEST_EPS0:g}, got {gamma!r}")
        object.__setattr__(self, "k", k)
        object.__setattr__(self, "n", crowd_size(n))
        object.__setattr__(self, "gamma", gamma)
        object.__setattr__(self, "eps0", eps0)
        object.__setattr__(self, "truth", truth)
        object.__setattr__(self, "adversary", choice("adversary", adversary, ADVERSARIES))

    def arguments(self) -> dict[str, Any]:
        given = {self.given: getattr(self, self.given)}
        return {"k": self.k, "n": self.n, **given, "adversary": self.adversary}

    def __repr__(self) -> str:
        given = f"eps0={self.eps0!r}" if self.given == "eps0" else f"gamma={self.gamma!r}"
        return f"ShuffledRR(k={self.k}, n={self.n}, {given}, adversary={self.adversary!r})"

    @property
    def pair(self) -> CrowdPair:
        gamma, k, truth = self.gamma, self.k, self.truth
        coin = 2.0 * gamma / k
        neutral = gamma * (k - 2) / k
        if self.adversary == "weak":
            target_coin = truth + coin
            return CrowdPair(
                n=self.n,
                coin_rate=coin,
                neutral_rate=neutral,
                target_coin=target_coin,
                target_neutral=neutral,
                null=0.0,
                theta=truth / target_coin,
                gap=coin / target_coin,
                max_loss=self.eps0 if self.given == "eps0" else self.eps0 * (1.0 + 1e-15),
                exact_loss=self.given == "eps0",
                silent_rate=truth,
            )
        conditional = self.adversary == "strong-conditional"
        return CrowdPair(
            n=self.n,
            coin_rate=coin,
            neutral_rate=0.0,
            target_coin=1.0 if conditional else truth,
            target_neutral=0.0,
            null=0.0 if conditional else gamma,
            theta=1.0,
            gap=0.0,
            max_loss=math.inf,
        )

    def assumptions(self) -> dict[str, str]:
        named = {
            "strong": "sees the shuffled reports, and who of the n users answered at random",
            "weak": "sees the shuffled reports, and who of the other n-1 users answered at random",
            "strong-conditional": "strong, given that the target told the truth (published variant)",
        }
        return {
            "neighbours": SUBSTITUTION,
            "adversary": named[self.adversary],
            "analysis": f"exact pair of {self.k}-ary randomised response for this adversary",
            "sampling": EVERYBODY,
        }


@dataclass(frozen=True, init=False)
class ShuffledRandomizer(CrowdMechanism):
    """n users shuffle the reports of any randomizer with parameters (p, beta, q).

    Parameters
    ----------
    n : users whose reports are shuffled together, the target included.
    tv : beta, at least the total variation of the target's two output laws, in [0, 1].
    eps0 : local epsilon in [1e-9, 700]; it stands for p = q = e^eps0, right if all users share a randomizer.
    p, q : instead of eps0. The target's two output laws are within a factor p of each other, and at most
        q times every other user's law; 1 < p <= e^700, q >= 1.

    The (p, beta, q) reduction with the third outcome that others can show too (docs/theory.md, section 4,
    for every eps and every order). tv counts as min(tv, (p-1)/(p+1), q-1), which no total variation
    exceeds; with tv = 1 this is "stronger clones". Raises ValueError or TypeError.

    >>> ShuffledRandomizer(n=1000, eps0=2.0, tv=0.5)
    ShuffledRandomizer(n=1000, tv=0.5, eps0=2.0)
    """

    n: int
    tv: float
    eps0: float
    p: float | None
    q: float | None

    def __init__(
        self,
        n: int,
        *,
        tv: float,
        eps0: float | None = None,
        p: float | None = None,
        q: float | None = None,
    ) -> None:
        if (eps0 is None) == (p is None) or (p is None) != (q is None):
            raise ValueError(f"give either eps0, or p and q, got eps0={eps0!r}, p={p!r}, q={q!r}")
        distance = real("tv", tv)
        if not 0.0 <= distance <= 1.0:
            raise ValueError(f"tv must be in [0, 1], got {tv!r}")
        if p is None:
            eps0 = _local_epsilon(eps0)
        else:
            p, q = positive_float("p", p), positive_float("q", q)
            largest = math.exp(LARGEST_EPS0)
            if not 1.0 < p <= largest:
                raise ValueError(f"p must be in (1, e^{LARGEST_EPS0:g}], got {p!r}")
            if not 1.0 <= q <= largest:
                raise ValueError(f"q must be in [1, e^{LARGEST_EPS0:g}], got {q!r}")
            eps0 = math.log(p)
            if not eps0 >= SMALLEST_EPS0:
                raise ValueError(f"p must be at least e^{SMALLEST_EPS0:g}, got {p!r}")
        object.__setattr__(self, "n", crowd_size(n))
        object.__setattr__(self, "tv", distance)
        object.__setattr__(self, "eps0", eps0)
        object.__setattr__(self, "p", p)
        object.__setattr__(self, "q", q)

    @property
    def pair(self) -> CrowdPair:
        shrink = math.exp(-self.eps0) if self.p is None else 1.0 / self.p
        spread = -math.expm1(-self.eps0) if self.p is None else (self.p - 1.0) / self.p
        theta = spread / (1.0 + shrink)
        share = shrink if self.q is None else 1.0 / self.q  # 1/q
        room = math.inf if self.q is None else self.q - 1.0
        beta = min(self.tv, theta, room)
        # Within rounding of the ends it is the end: nobody is neutral, nobody is silent.
        coin = beta / theta if beta < theta * (1.0 - SNAP) else 1.0
        neutral = (1.0 - coin) * share
        silent = max(0.0, (1.0 - share) - beta * share)
        silent = silent if silent > SNAP else 0.0
        return CrowdPair(
            n=self.n,
            coin_rate=2.0 * beta / spread * share if silent > 0.0 else 1.0 - neutral,
            neutral_rate=neutral,
            target_coin=coin,
            target_neutral=1.0 - coin,
            null=0.0,
            theta=theta,
            gap=2.0 * shrink / (1.0 + shrink),
            max_loss=self.eps0 if self.p is None else self.eps0 * (1.0 + 1e-15),
            exact_loss=self.p is None,
            silent_rate=silent,
        )

    def arguments(self) -> dict[str, Any]:
        given = {"eps0": self.eps0} if self.p is None else {"p": self.p, "q": self.q}
        return {"n": self.n, "tv": self.tv, **given}

    def __repr__(self) -> str:
        return f"ShuffledRandomizer({', '.join(f'{k}={v!r}' for k, v in self.arguments().items())})"

    def assumptions(self) -> dict[str, str]:
        limits = f"eps0={self.eps0:g}" if self.p is None else f"p={self.p:g}, q={self.q:g}"
        return {
            "neighbours": SUBSTITUTION,
            "adversary": "sees the shuffled reports and knows every other user's value",
            "analysis": f"(p, beta, q) reduction, for every randomizer with {limits} and total"
            f" variation at most {self.tv:g}",
            "sampling": EVERYBODY,
        }


@dataclass(frozen=True, init=False)
class Subsampled(Wrapper):
    """A mechanism run on a uniformly random cohort of fixed size, hidden from the adversary.

    Parameters
    ----------
    mechanism : a mechanism with a symmetric pair, not subsampled itself; its n is the cohort size.
    population | rate : exactly one; the number N >= n of users the cohort is drawn from, or n/N in
        [1e-12, 1].

    Neighbours: substitution. Both halves of the amplified curve are in one dominating pair
    (Zhu-Dong-Wang 2022, Prop. 30; see `cells`). A view that names the participants has no amplification, so
    a subsampled strong or weak pair is a valid bound for somebody who sees the shuffled reports only.

    >>> Subsampled(ShuffledLDP(eps0=3.0, n=1000), population=100_000).rate
    0.01
    """

    mechanism: Mechanism
    rate: float
    population: int | None

    def __init__(
        self, mechanism: Mechanism, *, population: int | None = None, rate: float | None = None
    ) -> None:
        if not isinstance(mechanism, Mechanism) or isinstance(mechanism, Subsampled):
            raise TypeError(f"mechanism must be a mechanism, not subsampled, got {mechanism!r}")
        if (population is None) == (rate is None):
            raise ValueError(
                f"give exactly one of population and rate, got population={population!r}, rate={rate!r}"
            )
        if population is not None:
            population = positive_int("population", population)
            n = mechanism.users
            if n is None:
                raise ValueError(
                    f"population needs a mechanism with users; give rate, got {mechanism!r}"
                )
            if not population >= n:
                raise ValueError(f"population must be at least n={n}, got {population!r}")
            rate = n / population
        rate = unit_interval("rate", rate)
        if not rate >= SMALLEST_RATE:
            raise ValueError(f"rate must be at least {SMALLEST_RATE:g}, got {rate!r}")
        object.__setattr__(self, "mechanism", mechanism)
        object.__setattr__(self, "rate", rate)
        object.__setattr__(self, "population", population)
        _ = self.core  # TypeError here and not at the first question

    @cached_property
    def core(self) -> Mechanism:  # type: ignore[override]
        return self.mechanism.core.on_cohort(self.rate)

    def arguments(self) -> dict[str, Any]:
        if self.population is None:
            return {"mechanism": self.mechanism, "rate": self.rate}
        return {"mechanism": self.mechanism, "population": self.population}

    def __repr__(self) -> str:
        name = "rate" if self.population is None else "population"
        return f"Subsampled({self.mechanism!r}, {name}={getattr(self, name)!r})"

    def assumptions(self) -> dict[str, str]:
        cohort = (
            f"rate {self.rate:g}"
            if self.population is None
            else f"{self.users} of {self.population} users (rate {self.rate:g})"
        )
        base = self.mechanism.assumptions()
        if isinstance(self.mechanism, ShuffledRR):
            # Amplification needs a view that hides the cohort: seeing who answered at random would not.
            base["adversary"] = (
                "sees the shuffled reports only (the pair is a valid bound, not exact)"
            )
        return base | {
            "sampling": f"uniformly random cohort of fixed size, {cohort}, not revealed to the adversary"
        }


def _local_epsilon(value: Any) -> float:
    eps0 = positive_float("eps0", value)
    if not SMALLEST_EPS0 <= eps0 <= LARGEST_EPS0:
        raise ValueError(f"eps0 must be in [{SMALLEST_EPS0:g}, {LARGEST_EPS0:g}], got {value!r}")
    return eps0


__all__ = [
    "CrowdMechanism",
    "Mechanism",
    "ProfileMechanism",
    "ShuffledLDP",
    "ShuffledRR",
    "ShuffledRandomizer",
    "Subsampled",
    "as_mechanism",
]
