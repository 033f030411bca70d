"""What all protocols share: who takes part, who can be trusted, what the rounds cost, and where the noise comes from.

Privacy is accounted for the `honest` users only. Messages of the others are whatever they like, but do not depend on
the honest users' data, so the whole view is a post-processing of the honest users' shuffled messages. Errors are those
of runs in which everybody follows the protocol.

Rounds: the same users take part in every round and draw fresh noise; their values may change from round to round, also
in answer to earlier outputs. The exception is `RAPPORHistogram`, and its `ledger` knows.

Upper ends of an accountant's brackets hold for the protocol. Lower ends are those of an attack, or enclose the *stated*
pair: they are the protocol's own where its docstring calls the pair exact.

A protocol has one positive parameter of noise, in which its privacy is monotone; `from_budget` finds the least noise
that the accountant can prove. That it is monotone only steers the search: what is returned was accounted for by itself.
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..accountant import Accountant
from ..composition.composition import AccuracyWarning, Composition
from ..fields import Range
from ..ledger import composed
from ..mechanisms import CountedBits, Mechanism, ShuffledRR, Subsampled
from ..numerics.search import LOOSE_RTOL, InfeasibleError, safe_end
from ..numerics.sides import Bounds
from ..numerics.validation import Checked, OpenUnit, PositiveFloat, PositiveInt, integer_in, positive_int, unit_interval
from ..randomizers import BinaryRandomizedResponse, KRandomizedResponse
from ..randomizers.base import IntArray, generator, integer_array

P = TypeVar("P", bound="Protocol")
Ledger = tuple[tuple[Mechanism, int], ...]

RTOL = 1e-3  # of the accountant's brackets on delta, `Protocol.accountant`'s default
LEAST_GAMMA = 1e-12
LARGEST_GAMMA = 1.0 - 1e-9  # beyond, eps0 and what is left of the truth are below 1e-8
WIDTH = 1e-5  # relative width to which the parameter is found; far below what it does to the error


@dataclass(frozen=True)
class Budget(Checked):
    """What all rounds may spend together. Raises TypeError or ValueError naming the argument."""

    epsilon: PositiveFloat
    delta: OpenUnit
    rounds: PositiveInt


class ExpectedError(NamedTuple):
    """Mean squared error of one estimate, over the randomness of the protocol.

    exact : for the data given, or for the worst data if none was.
    """

    exact: float

    @property
    def root(self) -> float:
        """Square root of the exact mean squared error, in the units of the estimate."""
        return math.sqrt(self.exact)


@dataclass(frozen=True, kw_only=True)
class Protocol(Checked, ABC):
    """A protocol of n users.

    n: number of users. honest_fraction: share of them whose noise is relied upon for privacy, in (0, 1]. All
    arguments are by keyword; TypeError or ValueError for any other than a class describes.
    """

    n: PositiveInt
    honest_fraction: Annotated[float, unit_interval] = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        honest_users(self.n, self.honest_fraction)

    @property
    def honest(self) -> int:
        """Number of users whose noise is counted on, floor(honest_fraction n)."""
        return honest_users(self.n, self.honest_fraction)

    @abstractmethod
    def ledger(self, rounds: int = 1) -> Ledger:
        """The mechanisms that account for `rounds` rounds, with their counts."""

    def accountant(self, rounds: int = 1, *, rtol: float = 1e-3) -> Accountant:
        """An accountant with `rounds` rounds of this protocol composed.

        Its upper bounds hold for the protocol, its lower ones for the stated pairs; see the module.
        """
        return composed(Accountant(rtol), self.ledger(rounds))

    @classmethod
    def from_budget(
        cls: type[P], epsilon: float, delta: float, n: int, *,
        rounds: int = 1, honest_fraction: float = 1.0, **design: Any,
    ) -> P:  # fmt: skip
        """The least noise whose `rounds` rounds the accountant proves (epsilon, delta)-private.

        design : the protocol's other parameters, as for its constructor; the class says which have a default
        here. Raises TypeError or ValueError naming a bad argument, and `calibration.InfeasibleError`, a
        ValueError, if the most noise is not enough, naming budget and users. About ten compositions.
        """
        return cls._within(Budget(epsilon, delta, rounds), n=n, honest_fraction=honest_fraction, **design)

    @classmethod
    def _within(cls: type[P], budget: Budget, **design: Any) -> P:
        """The protocol with the least error for the budget; to be overridden where the design is looked for, too."""

        def at(parameter: float) -> P:
            return cls._at(parameter, **design)

        def spent(parameter: float, rtol: float = RTOL) -> Bounds[float]:
            """What is proved, from both sides; no attack is needed to look for it."""
            pairs = [(mechanism.pair, count) for mechanism, count in at(parameter).ledger(budget.rounds)]
            # So that an accountant asked for delta, whose bracket is a little different, says at most delta, too.
            return Composition(pairs, rtol).epsilons(budget.delta * (1.0 - RTOL))

        search = at(0.5)._search(budget)
        try:
            with warnings.catch_warnings():
                # A bracket wider than wanted is certified all the same, and its upper end decides.
                warnings.simplefilter("ignore", AccuracyWarning)
                end = safe_end(
                    spent, budget.epsilon, **vars(search), rtol=WIDTH,
                    loose=lambda parameter: spent(parameter, LOOSE_RTOL),
                )  # fmt: skip
            return at(end.value)
        except InfeasibleError as error:
            least = error.best
            assert least is not None
            noisiest = at(search.best)
            raise InfeasibleError(
                f"epsilon={budget.epsilon!r} at delta={budget.delta!r} cannot be proved for n={noisiest.n}"
                f" users ({noisiest.honest} honest) and rounds={budget.rounds}: with the most noise,"
                f" {noisiest!r} spends {least.lower:.4g} to {least.upper:.4g}; more honest users, fewer"
                " rounds, or a larger epsilon or delta would help"
            ) from error

    #: The field that is the parameter of noise, where it is one.
    _parameter: ClassVar[str]

    @classmethod
    def _at(cls: type[P], parameter: float, *_: Any, **design: Any) -> P:
        """The protocol of this design (by keyword: n, honest_fraction and its own) with this noise; 1/2 is some."""
        return cls(**design | {cls._parameter: parameter})

    @abstractmethod
    def _search(self, budget: Budget) -> Range:
        """Where to look for the parameter of `_at`."""

    def shuffle(self, messages: ArrayLike, rng: np.random.Generator) -> NDArray[Any]:
        """All messages, of all users together, as one array in uniformly random order."""
        return generator(rng).permutation(np.asarray(messages).reshape(-1))

    def _one_each(self, values: NDArray[Any]) -> NDArray[Any]:
        """`values` unchanged; ValueError unless there is one for every user."""
        if values.shape != (self.n,):
            raise ValueError(f"values must have shape ({self.n},), got {values.shape}")
        return values

    def _numbers(self, values: ArrayLike, alphabet: int) -> IntArray:
        """One integer in [0, alphabet) for every user."""
        return self._one_each(integer_array("values", values, alphabet))

    def _received(self, messages: ArrayLike, each: int, alphabet: int) -> IntArray:
        """The messages as a flat array; ValueError unless they are `each` from every user, in [0, alphabet)."""
        array = integer_array("messages", messages, alphabet).reshape(-1)
        if array.size != each * self.n:
            raise ValueError(f"messages must be {each * self.n} in number, got {array.size}")
        return array


class OneMechanism(Protocol):
    """A protocol one round of which is one mechanism."""

    @property
    @abstractmethod
    def mechanism(self) -> Mechanism:
        """What one round costs: compose it in an `Accountant`."""

    def ledger(self, rounds: int = 1) -> Ledger:
        return ((self.mechanism, positive_int("rounds", rounds)),)

    def on_cohort(self, population: int) -> Subsampled:
        """One round run by n users drawn from `population` users uniformly, hidden from the adversary.

        Every user of the cohort knows of being in it. So the h honest members are a uniform choice among at least
        H = floor(honest_fraction population) users, and an honest user is among them with probability h/H <= n/H,
        *not* n/population: that is the rate here. At least `honest` must be honest in *every* cohort. Draw anew for
        every round. population: at least n. Raises TypeError or ValueError.
        """
        people = positive_int("population", population)
        if not people >= self.n:
            raise ValueError(f"population must be at least n={self.n}, got {population!r}")
        if self.honest == self.n:
            return Subsampled(self.mechanism, population=people)
        relied_upon = honest_users(people, self.honest_fraction)
        return Subsampled(self.mechanism, rate=min(1.0, self.n / relied_upon))


@dataclass(frozen=True, kw_only=True)
class GammaNoise(Protocol):
    """A protocol built on randomized response over `_values` values, `_messages` from every user a round.

    gamma: probability of a random answer (a uniform one of the values), in (0, 1).

    Messages 0 ... m of all users, r from each, have the total (1 - gamma) r m S + gamma r m n/2 on average where S is
    the sum of what they stand for in [0, 1]: that is inverted by `_sum`.
    """

    gamma: OpenUnit

    _parameter, _values, _messages = "gamma", 2, 1

    @property
    def randomizer(self) -> KRandomizedResponse:
        """The local randomizer of one message. ValueError where its eps0 would exceed 700."""
        response = KRandomizedResponse.from_gamma(k=self._values, gamma=self.gamma)
        return BinaryRandomizedResponse(response.eps0) if self._values == 2 else response

    @property
    def message_mechanism(self) -> CountedBits | ShuffledRR:
        """One message of every honest user, for somebody who sees the shuffled messages.

        Exact for two values; with more, the weak adversary's pair is nearly attained, by others who hold a third value.
        """
        if self._values == 2:
            return CountedBits(self.honest, gamma=self.gamma)
        return ShuffledRR(self._values, self.honest, gamma=self.gamma, adversary="weak")

    def _sum(self, messages: ArrayLike) -> float:
        """Unbiased estimate of the sum of all users' numbers, from all messages in any order."""
        total = int(self._received(messages, self._messages, self._values).sum())
        parts = self._messages * (self._values - 1)
        return (total / parts - self.n * self.gamma / 2) / (1 - self.gamma)

    def _search(self, budget: Budget) -> Range:
        """The least gamma.

        A larger gamma is a post-processing (answer at random once more), so privacy grows with it. If every message
        has an equal share of epsilon as local budget, no other users are needed: that is the safe end, unless it is
        beyond LARGEST_GAMMA. gamma is at least LEAST_GAMMA.
        """
        shares = budget.rounds * self._messages
        local = budget.epsilon / shares * (1.0 - 1e-12)
        safe = self._values / (math.expm1(min(local, 600.0)) + self._values)
        safe = max(min(safe * (1.0 + 1e-9), LARGEST_GAMMA), LEAST_GAMMA)
        guess = 2.0 * self._values * shares * -math.log(budget.delta)
        return Range(LEAST_GAMMA, safe, guess / (self.honest * budget.epsilon**2), False)


class OneMessage(GammaNoise, OneMechanism):
    """One message from every user."""

    @property
    def mechanism(self) -> CountedBits | ShuffledRR:
        return self.message_mechanism

    def randomize(self, values: ArrayLike, rng: np.random.Generator) -> IntArray:
        """One message per user; `values` has shape (n,), integers in 0 ... k-1 (of bits: 0 or 1)."""
        return self.randomizer.sample(self._numbers(values, self._values), rng)


def honest_users(n: object, honest_fraction: object) -> int:
    """floor(honest_fraction n); ValueError or TypeError for bad ones, or if nobody is left.

    The fraction is read as the decimal number it prints as: 0.29 of 100 users are 29, although the
    double next to 0.29 is a little below it.
    """
    users = integer_in("n", n, 1)
    fraction = unit_interval("honest_fraction", honest_fraction)
    honest = math.floor(Fraction(repr(fraction)) * users)
    if not honest >= 1:
        raise ValueError(f"honest_fraction={fraction!r} leaves no honest user of n={users!r}")
    return honest
