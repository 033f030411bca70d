"""Randomizers whose reports carry labels: any one with parameters (p, beta, q), and k-ary randomised response.

A report carries a coin label, one of the target's two, or a neutral label, or none. The adversary is shown the labels.
The pair is a mixture of tilted coins, `pairs.coins.CoinMixture` (docs/theory.md, section 2 and section 4).

*Users with budgets of their own, and dummy reports*, shuffled together (docs/people.md, section 10). Who hides the
target are the others who show a label, each with a probability of its own, and the labels shown have one law for all of
them: so their number is Poisson-binomial (`pairs.coins.MixedCoins`). A dummy is a user whose answer is always random.
How many dummies a user sends does not depend on its value. For whoever sees which of the other users' messages are
random the pair is exact; with gamma = 0 that is everybody who knows their values, as those can be taken off.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property, partial
from typing import Annotated, Any

from ..numerics.sides import Bounds
from ..numerics.validation import UserCount, between, choice, integer_in, positive_float, positive_int, unit_interval
from ..pairs.coins import CoinMixture, LabelClass, MixedCoins, Shown
from ..pairs.pair import Cohort, Pair
from ..randomizers.base import EPS0_MAX, settle
from .base import SMALLEST_EPS0, SUBSTITUTION, LocalEpsilon, Mechanism, OfReports, largest_loss, local_epsilon, said

NEAREST_GAMMA = 1.0 - 1e-12  # the largest gamma below 1
ADVERSARIES = ("strong", "weak", "strong-conditional")


@dataclass(frozen=True, repr=False)
class ShuffledRandomizer(OfReports):
    """n users shuffle the reports of any randomizer with parameters (p, beta, q).

    n : users whose reports are shuffled together, the target included.
    tv : beta, at least the total variation of the target's two output laws, in [0, 1].
    eps0 : local epsilon in [1e-9, 700]; it stands for p = q = e^eps0, right if all users share a randomizer.
    p, q : instead of eps0. The target's two output laws are within a factor p of each other, and at most
        q times every other user's law; 1 < p <= e^700, q >= 1.

    The (p, beta, q) reduction with the third outcome that others can show too (docs/theory.md, section 4,
    for every eps and every order). tv counts as min(tv, (p-1)/(p+1), q-1) (the last if there are others), which
    no total variation exceeds; with tv = 1 this is "stronger clones". Raises ValueError or TypeError.

    >>> ShuffledRandomizer(n=1000, eps0=2.0, tv=0.5)
    ShuffledRandomizer(n=1000, tv=0.5, eps0=2.0)
    """

    n: UserCount
    _: KW_ONLY
    tv: Annotated[float, between(0.0, 1.0)]
    eps0: float = None  # type: ignore[assignment]
    p: float | None = None
    q: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        eps0, p, q = self.eps0, self.p, self.q
        if (eps0 is None) == (p is None) or (p is None) != (q is None):
            raise ValueError(f"give either eps0, or p and q, got eps0={eps0!r}, p={p!r}, q={q!r}")
        if p is None:
            eps0 = local_epsilon("eps0", eps0)
        else:
            p, q = positive_float("p", p), positive_float("q", q)
            largest = math.exp(EPS0_MAX)
            if not 1.0 < p <= largest:
                raise ValueError(f"p must be in (1, e^{EPS0_MAX:g}], got {p!r}")
            if not 1.0 <= q <= largest:
                raise ValueError(f"q must be in [1, e^{EPS0_MAX:g}], got {q!r}")
            eps0 = math.log(p)
            if not eps0 >= SMALLEST_EPS0:
                raise ValueError(f"p must be at least e^{SMALLEST_EPS0:g}, got {p!r}")
        settle(self, eps0=eps0, p=p, q=q)

    @cached_property
    def pair(self) -> CoinMixture:
        return self._coins(self.q if self.n > 1 else None)

    def sampled(self, cohort: Cohort) -> Pair:
        """The pair of Theorem C. In a cohort of one that others may be drawn for, q bounds beta again."""
        alone = self.n == 1 and cohort.rate == 1.0
        return self._coins(None if alone else self.q).sampled(cohort)

    def _coins(self, q: float | None) -> CoinMixture:
        """The labels; q is None if it is p, or if there is nobody else, whose law would bound beta by q - 1."""
        shrink = math.exp(-self.eps0) if self.p is None else 1.0 / self.p
        spread = -math.expm1(-self.eps0) if self.p is None else (self.p - 1.0) / self.p
        theta = spread / (1.0 + shrink)
        share = shrink if q is None else 1.0 / q  # 1/q
        most = math.inf if q is None else q - 1.0
        beta = min(self.tv, theta, most)
        coin = min(1.0, beta / theta)
        neutral = (theta - beta) / theta if beta < theta else 0.0
        # 1 - 1/q - beta/q, the probability of nothing, without cancellation: nobody is silent if beta = q - 1.
        silent = spread - beta * share if q is None else (most - beta) * share
        shown = 1.0 - neutral * share if silent <= 0.0 and coin > 0.5 else 2.0 * beta / spread * share
        others, target = Shown(shown, neutral * share, silent), Shown(coin, neutral, 0.0)
        gap, loss = 2.0 * shrink / (1.0 + shrink), largest_loss(self.eps0, rounded=self.p is not None)
        ratio = 2.0 / (1.0 + shrink) * share if coin < 0.5 else None
        return CoinMixture(self.n, others, target, theta=theta, gap=gap, local_loss=loss, label_ratio=ratio)

    @property
    def derived(self) -> str:  # type: ignore[override]
        return "" if self.p is None else "eps0"

    def assumptions(self) -> dict[str, str]:
        limits = f"eps0={self.eps0:g}" if self.p is None else f"p={self.p:g}, q={self.q:g}"
        return said(
            f"(p, beta, q) reduction, for every randomizer with {limits} and total variation at most {self.tv:g}"
        )


@dataclass(frozen=True, repr=False)
class ShuffledRR(OfReports):
    """n users shuffle k-ary randomised responses (with probability gamma uniform over all k values).

    k : alphabet size, k >= 2.
    n : users whose reports are shuffled together, the target included.
    gamma | eps0 : exactly one; gamma 1 or in (0, 1 - 1e-12], eps0 = log(1 + k (1 - gamma) / gamma).
    adversary : "strong" also sees who answered at random, the target included (losses can be infinite);
        "weak" sees it of the other n - 1 users; "strong-conditional" is the strong adversary given that
        the target told the truth, the published pair of Koskela, Heikkila and Honkela.

    The pairs are exact for these adversaries (docs/theory.md, section 2). Raises ValueError or TypeError.

    >>> ShuffledRR(k=4, n=1000, gamma=0.25)
    ShuffledRR(k=4, n=1000, gamma=0.25)
    """

    k: Annotated[int, partial(integer_in, lowest=2)]
    n: UserCount
    _: KW_ONLY
    gamma: float = None  # type: ignore[assignment]
    eps0: float = None  # type: ignore[assignment]
    adversary: Annotated[str, partial(choice, options=ADVERSARIES)] = "strong"
    truth: float = field(init=False)  # 1 - gamma, kept apart because it may be tiny
    derived: str = field(init=False)  # "gamma" or "eps0": that one is rounded, the other exact

    def __post_init__(self) -> None:
        super().__post_init__()
        k, gamma, eps0 = self.k, self.gamma, self.eps0
        if (gamma is None) == (eps0 is None):
            raise ValueError(f"give exactly one of gamma and eps0, got gamma={gamma!r}, eps0={eps0!r}")
        derived = "gamma" if gamma is None else "eps0"
        if gamma is None:
            eps0 = local_epsilon("eps0", eps0)
            gamma, truth = _rates(k, eps0)
        else:
            gamma = unit_interval("gamma", gamma)
            truth = 1.0 - gamma
            if truth > 0.0 and gamma > NEAREST_GAMMA:  # rounding of rates would outweigh the truth
                raise ValueError(f"gamma must be 1 (no information at all) or at most 1 - 1e-12, got {gamma!r}")
            eps0 = math.log1p(k * truth / gamma) if gamma > 1e-300 else math.inf
            if not eps0 <= EPS0_MAX:
                raise ValueError(f"gamma must leave eps0 at most {EPS0_MAX:g}, got {gamma!r}")
        settle(self, gamma=gamma, eps0=eps0, truth=truth, derived=derived)

    @cached_property
    def pair(self) -> CoinMixture:
        gamma, k, truth = self.gamma, self.k, self.truth
        coin = 2.0 * gamma / k
        neutral = gamma * (k - 2) / k
        if self.adversary == "weak":
            shown = truth + coin
            others, target = Shown(coin, neutral, truth), Shown(shown, neutral, 0.0)
            loss = largest_loss(self.eps0, rounded=self.derived == "eps0")
            return CoinMixture(self.n, others, target, theta=truth / shown, gap=coin / shown, local_loss=loss)
        others = Shown(coin, 0.0, truth + neutral)
        target = Shown(1.0, 0.0, 0.0) if self.adversary == "strong-conditional" else Shown(truth, 0.0, gamma)
        return CoinMixture(self.n, others, target, theta=1.0, gap=0.0, local_loss=largest_loss(math.inf))

    def sampled(self, cohort: Cohort) -> Pair:
        """By the labels of the weak adversary, for whoever sees the shuffled reports only.

        Who answered at random must not be seen: it would tell who took part.
        """
        return ShuffledRR(**self.arguments() | {"adversary": "weak"}).pair.sampled(cohort)

    def assumptions(self) -> dict[str, str]:
        named = {
            "strong": "sees the shuffled reports, and who of the n users answered at random",
            "weak": "sees the shuffled reports, and who of the other n-1 users answered at random",
            "strong-conditional": "strong, given that the target told the truth (published variant)",
        }
        return said(
            f"exact pair of {self.k}-ary randomised response for this adversary", adversary=named[self.adversary]
        )

    def hidden_assumptions(self) -> dict[str, str]:
        """Amplification needs a view that hides the cohort: seeing who answered at random would not."""
        return self.assumptions() | {
            "adversary": "sees the shuffled reports only (the pair is a valid bound, not exact)"
        }


def _rates(k: int, eps0: float) -> tuple[float, float]:
    """gamma and 1 - gamma of k-ary randomised response."""
    shrink = math.exp(-eps0)
    whole = 1.0 + (k - 1) * shrink
    return k * shrink / whole, -math.expm1(-eps0) / whole


Classes = tuple[tuple[float, int], ...]


def _classes(name: str, given: Any, first: str, check: Callable[[str, Any], Any]) -> Classes:
    """Pairs (`first`, count), both checked."""
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise TypeError(f"{name} must be pairs ({first}, count), got {given!r}")
    pairs = [tuple(pair) for pair in given]
    if not all(len(pair) == 2 for pair in pairs):
        raise ValueError(f"{name} must be pairs ({first}, count), got {given!r}")
    return tuple((check(first, value), positive_int("count", count)) for value, count in pairs)


class _Mixed(Mechanism):
    """A target among classes of other users."""

    eps0: float
    others: Classes

    unsampled = "no pair is known for a hidden cohort of mixed budgets or mixed randomizers"

    @property
    def users(self) -> int | None:
        return 1 + sum(count for _, count in self.others)

    @property
    def _neighbours(self) -> str:
        return f"{SUBSTITUTION}, one of local budget {self.eps0:g}"


@dataclass(frozen=True, repr=False)
class MixedRR(_Mixed):
    """The target of budget `eps0` among users of other budgets, all of them by k-ary randomised response.

    k : alphabet size, k >= 2.
    eps0 : the target's local epsilon, in [1e-9, 700].
    others : (eps0, count) for each class of the other users.

    The guarantee is the target's: every class of users has a mechanism of its own (`of_classes`). The adversary sees
    the shuffled reports, and who of the *other* users answered at random; for that view the pair is exact. There is no
    pair for a hidden cohort. Complexity: that of `ShuffledRR`, and O(n) for two or more classes. Users differ in
    nothing but how often they answer at random: another randomizer of a smaller epsilon may hide the target worse, see
    `MixedRandomizers`. Budgets must not depend on the data. Raises ValueError or TypeError.

    >>> from pld_shuffle import Accountant
    >>> for eps0, mechanism in MixedRR.of_classes(4, {1.0: 5000, 3.0: 5000}).items():
    ...     print(eps0, round(Accountant().compose(mechanism).get_epsilon(1e-6), 3))
    1.0 0.044
    3.0 0.131
    """

    k: Annotated[int, partial(integer_in, lowest=2)]
    eps0: LocalEpsilon
    others: Annotated[Classes, partial(_classes, first="eps0", check=local_epsilon)]

    @classmethod
    def of_classes(cls, k: int, users: Mapping[float, int]) -> dict[float, MixedRR]:
        """For each class of users, {eps0: count}, the mechanism whose target is one of them."""
        found = {}
        for eps0, count in users.items():
            rest = {**users, eps0: positive_int("count", count) - 1}
            others = tuple((eps, number) for eps, number in rest.items() if number != 0)
            found[eps0] = cls(k, eps0, others)
        return found

    @cached_property
    def pair(self) -> MixedCoins:  # type: ignore[override]
        classes = tuple(LabelClass(count, *_rates(self.k, eps)) for eps, count in self.others)
        return answers(self.k, *_rates(self.k, self.eps0), classes, largest_loss(self.eps0))

    def assumptions(self) -> dict[str, str]:
        return said(
            f"exact pair of {self.k}-ary randomised response by everybody, each class at a budget of its own, for this"
            " adversary",
            neighbours=self._neighbours,
            adversary="sees the shuffled reports, and who of the other users answered at random",
            sampling="all users take part; budgets do not depend on the data",
        )


@dataclass(frozen=True, repr=False)
class MixedRandomizers(_Mixed):
    """The target among users who run other randomizers, whose ratios to the target's are known.

    eps0 : the target's local epsilon, in [1e-9, 700].
    others : (ratio, count) for each class of the other users, 1 <= ratio < inf: no law of the target's randomizer,
        whatever its value, is anywhere more than `ratio` times the law of a user of the class, whatever its value.
    tv : at least the total variation of any two laws of the target's randomizer, in [0, 1].

    The ratio of users with the target's own randomizer is e^eps0. **It does not follow from a budget**: if everybody
    adds Laplace noise to a value in [0, 1], the target at eps0 and another user at eps <= eps0, it is e^eps eps0/eps;
    at a larger eps there is none, and such a user does not count, nor does one who may do anything. Lower ends are of
    the same pair. There is no pair for a hidden cohort. Complexity: as `MixedRR`. Raises ValueError or TypeError.

    >>> from pld_shuffle import Accountant
    >>> noisier = (math.exp(1.0) * 2.0 / 1.0, 5000)  # Laplace noise at eps0 = 1 next to a target at eps0 = 2
    >>> mixed = MixedRandomizers(eps0=2.0, others=((math.exp(2.0), 4999), noisier))
    >>> round(Accountant().compose(mixed).get_epsilon(1e-6), 3)
    0.105
    """

    eps0: LocalEpsilon
    others: Annotated[Classes, partial(_classes, first="ratio", check=between(1.0, 1e304))]
    tv: Annotated[float, between(0.0, 1.0)] = 1.0

    @cached_property
    def pair(self) -> MixedCoins:  # type: ignore[override]
        shrink, spread = math.exp(-self.eps0), -math.expm1(-self.eps0)
        theta = spread / (1.0 + shrink)
        # No total variation exceeds any of these.
        beta = min(self.tv, theta, *(ratio - 1.0 for ratio, _ in self.others))
        bare = (theta - beta) / theta  # w
        others = tuple(
            LabelClass(count, min(1.0, (1.0 + beta) / ratio), (ratio - 1.0 - beta) / ratio)
            for ratio, count in self.others
        )
        coin, neutral = min(1.0, 2.0 * beta / (spread * (1.0 + beta))), bare / (1.0 + beta)
        target, gap, loss = Shown(beta / theta, bare, 0.0), 2.0 * shrink / (1.0 + shrink), largest_loss(self.eps0)
        return MixedCoins.of(others, coin=coin, neutral=neutral, target=target, theta=theta, gap=gap, local_loss=loss)

    def assumptions(self) -> dict[str, str]:
        return said(
            "(p, beta, q) reduction with a q for each class of users, for every randomizer of the target's"
            f" with eps0={self.eps0:g} and total variation at most {self.tv:g}",
            neighbours=self._neighbours,
            sampling="all users take part; who runs which randomizer does not depend on the data",
        )


def answers(k: int, uniform: float, truth: float, others: tuple[LabelClass, ...], local_loss: Bounds) -> MixedCoins:
    """The labels of a target who answers uniformly over k values with one probability, and else the truth."""
    coin, neutral = 2.0 / k, (k - 2) / k
    shown = truth + uniform * coin
    target, theta, gap = Shown(shown, uniform * neutral, 0.0), truth / shown, uniform * coin / shown
    return MixedCoins.of(others, coin=coin, neutral=neutral, target=target, theta=theta, gap=gap, local_loss=local_loss)


@dataclass(frozen=True, repr=False)
class DummyReports(Mechanism):
    """n users shuffle k-ary randomised responses, and `dummies` uniformly random values each.

    k : values a user can have, at least 2. n : users, the target included, who follow the protocol.
    dummies : d > 0 from every user: the integer part for certain, and one more with probability the rest.
    gamma : probability that a user's own report is a uniformly random value, in [0, 1); 0 is the value itself.

    Raises ValueError or TypeError. Complexity: that of `MixedRR`.

    >>> from pld_shuffle import Accountant
    >>> round(Accountant().compose(DummyReports(k=16, n=10_000, dummies=1.0)).get_epsilon(1e-6), 3)
    0.217
    """

    k: Annotated[int, partial(integer_in, lowest=2)]
    n: UserCount
    dummies: Annotated[float, between(1e-12, 1e6)]
    gamma: Annotated[float, between(0.0, 1.0, "[)")] = 0.0

    unsampled = "no pair is known for a hidden cohort with dummies"

    @cached_property
    def pair(self) -> MixedCoins:  # type: ignore[override]
        k, gamma, whole = self.k, self.gamma, int(self.dummies)
        rest = self.dummies - whole
        classes = [
            LabelClass(self.n - 1, gamma, 1.0 - gamma),
            LabelClass(self.n * whole, 1.0, 0.0),
            LabelClass(self.n, rest, 1.0 - rest),
        ]
        loss = math.log1p(k * (1.0 - gamma) / gamma) if gamma > 0.0 else math.inf
        held = tuple(part for part in classes if part.number > 0 and part.rate > 0.0)
        return answers(k, gamma, 1.0 - gamma, held, Bounds(loss * (1.0 - 4e-15), loss * (1.0 + 4e-15)))

    def assumptions(self) -> dict[str, str]:
        return said(
            f"exact labels of {self.k}-ary randomised response and of {self.dummies:g} dummies a user",
            sampling="all n users take part and send their dummies; values are dropped at random by nobody",
        )
