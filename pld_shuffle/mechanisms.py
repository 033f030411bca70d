"""Mechanisms: what was run, in the field's parameters, and the proven pair that stands for it.

A mechanism is a frozen, hashable value. `Mechanism` is all that the rest of the package asks of it: a lattice
law on either side (`pld`), the largest finite loss (`max_loss`), a rough scale (`loss_scale`), and what was
assumed (`assumptions`). A shuffle mechanism only has to name its `CrowdPair`.

Assumptions of every pair here: the shuffler is trusted and its output is all the adversary sees beyond what
is stated; one message per user and round; all users of a round run the same randomizer; n counts the users
who really add their noise; neighbouring datasets differ in one user's value (substitution).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from .bracket import Side
from .cells import crowd_pld, crowd_plds, largest_loss
from .crowd import CrowdPair, Resolution
from .pld import PLD
from .validation import choice, positive_float, positive_int, unit_interval


class Mechanism(ABC):
    """One round of something with a proven dominating pair."""

    @property
    @abstractmethod
    def max_loss(self) -> float:
        """The largest finite privacy loss; inf if finite losses are unbounded."""

    @property
    def max_loss_below(self) -> float:
        """`max_loss` rounded the other way; the same if it is exact."""
        return self.max_loss * (1.0 - 4e-15)

    @property
    @abstractmethod
    def loss_scale(self) -> float:
        """Rough standard deviation of the loss, only to choose lattice steps; 0 for no loss."""

    @abstractmethod
    def form(
        self, *, step: float, side: Side, resolution: Resolution, reach: float = math.inf
    ) -> PLD:
        """The law of the privacy loss on the lattice of `step`, certified on `side`."""

    def both(
        self, *, step: float, resolution: Resolution, reach: float = math.inf
    ) -> tuple[PLD, PLD]:
        """The (lower, upper) laws of `form`."""
        lower, upper = (
            self.form(step=step, side=side, resolution=resolution, reach=reach) for side in Side
        )
        return lower, upper

    @abstractmethod
    def assumptions(self) -> dict[str, str]:
        """What a guarantee for this mechanism rests on: neighbours, adversary, analysis, sampling."""

    def renyi_divergence(self, alpha: Any) -> Any:
        """Upper bound on the Renyi divergence of the pair at real orders alpha > 1; see `renyi`."""
        from .renyi import renyi_divergence

        return renyi_divergence(self, alpha)

    def pld(
        self, *, step: float | None = None, side: Side = Side.UPPER, missed: float = 1e-15
    ) -> PLD:
        """The privacy loss distribution of one round on one side.

        Parameters: step, the lattice spacing in units of loss (default: 1/200 of the loss's scale);
        side; missed, the P-mass that windows may leave out (an upper PLD has it at infinity).
        Raises ValueError/TypeError on bad arguments, MemoryError if the lattice would be too large.
        Crowd sizes within 1e-5 of each other share a bucket. Complexity O(sqrt n) per bucket.
        """
        if not isinstance(side, Side):
            raise TypeError(f"side must be a Side, got {side!r}")
        if step is None:
            step = self.loss_scale / 200.0 or 1.0
        step = positive_float("step", step)
        missed = positive_float("missed", missed)
        if not missed < 0.1:
            raise ValueError(f"missed must be below 0.1, got {missed!r}")
        return self.form(
            step=step, side=side, resolution=Resolution(missed=missed, crowd_width=1e-5)
        )


class CrowdMechanism(Mechanism):
    """A mechanism whose pair is a `CrowdPair`, possibly on a random cohort."""

    @property
    @abstractmethod
    def pair(self) -> CrowdPair:
        """The canonical pair."""

    @property
    def rate(self) -> float:
        """Probability of being in the cohort; 1 without subsampling."""
        return 1.0

    @property
    def max_loss(self) -> float:
        return largest_loss(self.pair, self.rate)

    @property
    def max_loss_below(self) -> float:
        exact = self.rate == 1.0 and self.pair.exact_loss
        return self.max_loss if exact else super().max_loss_below

    @property
    def loss_scale(self) -> float:
        pair = self.pair
        if pair.trivial:
            return 0.0
        x = min(pair.spread, 0.999)
        return min(math.log1p(2.0 * self.rate * x / (1.0 - x)), self.max_loss)

    def form(
        self, *, step: float, side: Side, resolution: Resolution, reach: float = math.inf
    ) -> PLD:
        return crowd_pld(
            self.pair, rate=self.rate, step=step, side=side, resolution=resolution, reach=reach
        )

    def both(
        self, *, step: float, resolution: Resolution, reach: float = math.inf
    ) -> tuple[PLD, PLD]:
        return crowd_plds(self.pair, rate=self.rate, step=step, resolution=resolution, reach=reach)


SMALLEST_EPS0, LARGEST_EPS0 = 1e-9, 700.0
SMALLEST_RATE = 1e-12
ANALYSES = ("stronger-clones", "clones")
ADVERSARIES = ("strong", "weak", "strong-conditional")
_SUBSTITUTION = "neighbouring datasets differ in the value of one user (substitution)"
_FULL = "all n users take part; n counts the users whose reports are shuffled together"


@dataclass(frozen=True)
class ShuffledLDP(CrowdMechanism):
    """n users shuffle the reports of any eps0-LDP randomizer, the same for all of them.

    Parameters
    ----------
    eps0 : local epsilon, in [1e-9, 700].
    n : users whose reports are shuffled together, the target included; n >= 1.
    analysis : "stronger-clones" (default; clone probability 1/(e^eps0 + 1) per side, proved for every
        eps0-LDP randomizer in docs/theory.md) or "clones" (Feldman, McMillan, Talwar 2021, Thm 3.2).

    Raises ValueError or TypeError naming the argument.

    >>> ShuffledLDP(eps0=4.0, n=10_000)
    ShuffledLDP(eps0=4.0, n=10000, analysis='stronger-clones')
    """

    eps0: float
    n: int
    analysis: str = "stronger-clones"

    def __post_init__(self) -> None:
        object.__setattr__(self, "eps0", _local_epsilon(self.eps0))
        object.__setattr__(self, "n", _crowd_size(self.n))
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
            "neighbours": _SUBSTITUTION,
            "adversary": "sees the shuffled reports and knows every other user's value",
            "analysis": named[self.analysis],
            "sampling": _FULL,
        }


@dataclass(frozen=True, init=False)
class ShuffledRR(CrowdMechanism):
    """n users shuffle k-ary randomised responses (with probability gamma uniform over all k values).

    Parameters
    ----------
    k : alphabet size, k >= 2.
    n : users whose reports are shuffled together, the target included.
    gamma | eps0 : exactly one; gamma in (0, 1], eps0 = log(1 + k (1 - gamma) / gamma).
    adversary : "strong" also sees who answered at random, the target included (losses can be infinite);
        "weak" sees it of the other n - 1 users; "strong-conditional" is the strong adversary given that
        the target told the truth, the published pair of Koskela, Heikkila and Honkela.

    The pairs are exact for these adversaries (THEORY section 2). Raises ValueError or TypeError.

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
            eps0 = math.log1p(k * truth / gamma) if gamma > 1e-300 else math.inf
            if not eps0 <= LARGEST_EPS0:
                raise ValueError(f"gamma must leave eps0 at most {LARGEST_EPS0:g}, got {gamma!r}")
        object.__setattr__(self, "k", k)
        object.__setattr__(self, "n", _crowd_size(n))
        object.__setattr__(self, "gamma", gamma)
        object.__setattr__(self, "eps0", eps0)
        object.__setattr__(self, "truth", truth)
        object.__setattr__(self, "adversary", choice("adversary", adversary, ADVERSARIES))

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
            "neighbours": _SUBSTITUTION,
            "adversary": named[self.adversary],
            "analysis": f"exact pair of {self.k}-ary randomised response for this adversary",
            "sampling": _FULL,
        }


@dataclass(frozen=True, init=False)
class Subsampled(CrowdMechanism):
    """A mechanism run on a uniformly random cohort of fixed size, hidden from the adversary.

    Parameters
    ----------
    mechanism : a shuffle mechanism whose n is the cohort size.
    population | rate : exactly one; the number N >= n of users the cohort is drawn from, or n/N in (0, 1].

    Neighbours: substitution. Both halves of the amplified curve are in one dominating pair
    (Zhu-Dong-Wang 2022, Prop. 30; see `cells`). A view that names the participants has no amplification, so
    a subsampled strong or weak pair is a valid bound for somebody who sees the shuffled reports only.

    >>> Subsampled(ShuffledLDP(eps0=3.0, n=1000), population=100_000).rate
    0.01
    """

    mechanism: CrowdMechanism
    sampling_rate: float
    population: int | None = None

    def __init__(
        self, mechanism: CrowdMechanism, *, population: int | None = None, rate: float | None = None
    ) -> None:
        if not isinstance(mechanism, CrowdMechanism) or isinstance(mechanism, Subsampled):
            raise TypeError(
                f"mechanism must be a shuffle mechanism, not subsampled, got {mechanism!r}"
            )
        if (population is None) == (rate is None):
            raise ValueError(
                f"give exactly one of population and rate, got population={population!r}, rate={rate!r}"
            )
        if population is not None:
            population = positive_int("population", population)
            n = mechanism.pair.n
            if not population >= n:
                raise ValueError(f"population must be at least n={n}, got {population!r}")
            rate = n / population
        object.__setattr__(self, "mechanism", mechanism)
        rate = unit_interval("rate", rate)
        if not rate >= SMALLEST_RATE:
            raise ValueError(f"rate must be at least {SMALLEST_RATE:g}, got {rate!r}")
        object.__setattr__(self, "sampling_rate", rate)
        object.__setattr__(self, "population", population)

    def __repr__(self) -> str:
        given = (
            f"rate={self.sampling_rate!r}"
            if self.population is None
            else f"population={self.population!r}"
        )
        return f"Subsampled({self.mechanism!r}, {given})"

    @property
    def pair(self) -> CrowdPair:
        return self.mechanism.pair

    @property
    def rate(self) -> float:
        return self.sampling_rate

    def assumptions(self) -> dict[str, str]:
        cohort = (
            f"rate {self.rate:g}"
            if self.population is None
            else f"{self.pair.n} of {self.population} users (rate {self.rate:g})"
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


def _crowd_size(value: Any) -> int:
    n = positive_int("n", value)
    if not n <= 10**13:
        raise ValueError(f"n must be at most 10**13, got {value!r}")
    return n


def as_mechanism(value: Any) -> Mechanism:
    """`value` if it is a mechanism; TypeError otherwise."""
    if not isinstance(value, Mechanism):
        raise TypeError(f"mechanism must be a mechanism, got {value!r}")
    return value


__all__ = ["CrowdMechanism", "Mechanism", "ShuffledLDP", "ShuffledRR", "Subsampled", "as_mechanism"]
