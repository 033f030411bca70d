"""Named local randomizers in a shuffler: the blanket adversary, concrete attacks, and the tightest analysis.

`Blanket` is the view of Balle, Bell, Gascon and Nissim (2019), section 5: beyond the shuffled reports the
adversary sees who of the other n-1 users drew their report from the blanket (the part of the law that does
not depend on the value), and those users' other reports. Its divergence is exact, see `blanket`.

Three analyses are proven for every pure randomizer, and each is a post-processing of the next
(docs/theory.md, section 8):

    "blanket"  <=  "reduction" (p, beta, q)  <=  "stronger-clones" (eps0 only)

so "tightest" is the first. For k-ary randomised response the blanket adversary is the weak adversary.

An attack goes the other way: n-1 users with one chosen value, and two chosen values of the target, are
concrete neighbouring datasets. Their divergence is what *no* analysis can go below.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import cached_property, partial
from itertools import permutations, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import blanket
from .bracket import Bounds, Side
from .mechanism import Mechanism, ProfileMechanism, Wrapper
from .mechanisms import EVERYBODY, SUBSTITUTION, ShuffledLDP, ShuffledRandomizer, ShuffledRR
from .profile import Dots, dot_rtol, dots
from .randomizers import (
    RAPPOR,
    BinaryRandomizedResponse,
    DiscreteRandomizer,
    FiniteRandomizer,
    Gaussian,
    KRandomizedResponse,
    Laplace,
    LocalRandomizer,
)
from .validation import choice, crowd_size, positive_int

Array = NDArray[np.float64]
#: (first, second, blanket): masses of groups of reports, see `blanket.profile`.
Groups = tuple[Array, Array, Array]
Answer = Callable[[Array], Bounds]

ANALYSES = ("tightest", "blanket", "reduction", "stronger-clones")
PROFILE_RTOL = 1e-6  # of every dot; the dots' distance errs by more
# Relative errors of the masses that randomizers give, and of Gaussian noise's and a matrix's.
MASS_ERROR, GAUSSIAN_ERROR, MATRIX_ERROR = 2e-14, 1e-12, 1e-15
LAPLACE_CELLS, GAUSSIAN_CELLS = 256, 512  # of a continuous law, in each half
TAIL = 1e-18  # of Gaussian noise, beyond which a report counts as revealed, where no other is asked for
MAX_DOTS = 6_000  # of a law; each costs a contour
MAX_CHOICES = 256  # attacks tried
LARGEST_EPS0 = 150.0  # of a blanket; beyond, masses underflow


@dataclass(frozen=True, eq=False)
class _Pair:
    """An ordered pair of inputs: finite laws on either side (the same where the randomizer is finite).

    law : the blanket is a law of its own, an attack's. error : of the masses, relative.
    """

    lower: Groups
    upper: Groups
    law: bool
    error: float

    def profile(self, n: int, rtol: float, growth: Array) -> Bounds:
        """Bounds on the divergence at e^eps = 1 + growth."""
        found = self._of(self.upper, n, rtol, growth)
        if self.lower is self.upper:
            return found
        return Bounds(self._of(self.lower, n, rtol, growth).lower, found.upper)

    def _of(self, groups: Groups, n: int, rtol: float, growth: Array) -> Bounds:
        return blanket.profile(*groups, n, growth, rtol=rtol, mass_error=self.error, law=self.law)

    def infinite_mass(self, n: int) -> float:
        """A lower bound on the mass at infinite loss: no report of the view is possible with `second`."""
        first, second, hidden = self.lower
        never = second == 0.0
        bare = float(np.sum(first[never & (hidden == 0.0)]))
        covered = float(np.sum(first[never & (hidden > 0.0)]))
        others = float(np.sum(hidden[never]))
        if not self.law:
            others += max(0.0, 1.0 - float(np.sum(hidden)))
        share = min(1.0, others * (1.0 - 2.0 * self.error - 1e-15)) ** (n - 1)
        return (bare + covered * share) * (1.0 - 2.0 * self.error - 1e-15 * second.size)


class _Grouped(ProfileMechanism):
    """A profile that is the maximum over pairs of inputs."""

    n: int

    @property
    def _pairs(self) -> tuple[_Pair, ...]:
        raise NotImplementedError

    @property
    def users(self) -> int | None:
        return self.n

    @property
    def max_loss(self) -> float:
        """The largest loss of the law on the upper side; inf where that has reports given away."""
        largest = self._largest_loss
        return largest * (1.0 + 1e-15) + self._loss_error if largest > 0.0 else 0.0

    @property
    def max_loss_below(self) -> float:
        """Of the same law, rounded downwards."""
        return max(0.0, self._largest_loss * (1.0 - 1e-15) - self._loss_error)

    @property
    def _largest_loss(self) -> float:
        return max(blanket.largest_loss(*pair.upper) for pair in self._pairs)

    @property
    def _loss_error(self) -> float:
        """Absolute: of the logarithm of a ratio of two masses."""
        return max(2.1 * pair.error for pair in self._pairs)

    @cached_property
    def loss_scale(self) -> float:  # type: ignore[override]
        return max(blanket.loss_scale(*pair.upper, self.n) for pair in self._pairs)

    @cached_property
    def infinite_mass(self) -> float:  # type: ignore[override]
        return max(pair.infinite_mass(self.n) for pair in self._pairs)

    @property
    def most_dots(self) -> int:
        return MAX_DOTS

    def profile(self, growth: Array) -> Bounds:
        return self.profile_within(PROFILE_RTOL, TAIL)(growth)

    def profile_within(self, rtol: float, missed: float) -> Answer:
        return partial(_largest_profile, self._pairs, self.n, rtol)


def _largest_profile(pairs: Iterable[_Pair], n: int, rtol: float, growth: Array) -> Bounds:
    """The maximum of the pairs' profiles, from both sides."""
    found = [pair.profile(n, rtol, growth) for pair in pairs]
    return Bounds(
        np.max([bounds.lower for bounds in found], axis=0),
        np.max([bounds.upper for bounds in found], axis=0),
    )


@dataclass(frozen=True)
class Blanket(_Grouped):
    """n users shuffle reports of a named randomizer; the blanket adversary, exactly.

    Parameters
    ----------
    randomizer : one of `pld_shuffle.randomizers`, the same for all users. Finite ones by the kinds of pairs
    of
        inputs they list (both orders of each); Laplace and Gaussian by the pair (0, 1), the worst one.
    n : users whose reports are shuffled together, the target included; at most 10^13.

    Raises ValueError or TypeError naming the argument. Cost of a law: a few hundred evaluations of
    `blanket.profile` for every kind of pair of inputs.

    >>> from pld_shuffle.randomizers import UnaryEncoding
    >>> Blanket(UnaryEncoding(k=4, eps0=2.0), n=1000).users
    1000
    """

    randomizer: LocalRandomizer
    n: int

    def __post_init__(self) -> None:
        randomizer = _randomizer(self.randomizer)
        if is_pure(randomizer) and not randomizer.eps0 <= LARGEST_EPS0:
            raise ValueError(
                f"randomizer must have an eps0 of at most {LARGEST_EPS0:g} or none, got {randomizer!r}"
            )
        object.__setattr__(self, "randomizer", randomizer)
        object.__setattr__(self, "n", crowd_size(self.n))

    @property
    def max_loss(self) -> float:
        """eps0 itself where that is what the randomizer was given."""
        return self._given_eps0 or super().max_loss

    @property
    def max_loss_below(self) -> float:
        return self._given_eps0 or super().max_loss_below

    @property
    def _given_eps0(self) -> float:
        """eps0 if it is a parameter of a pure randomizer, which then attains it; 0 otherwise."""
        given = any(f.name == "eps0" for f in fields(self.randomizer))  # type: ignore[arg-type]
        return self.randomizer.eps0 if given and is_pure(self.randomizer) else 0.0

    @cached_property
    def _pairs(self) -> tuple[_Pair, ...]:  # type: ignore[override]
        return _pairs_of_inputs(self.randomizer, TAIL)

    def profile_within(self, rtol: float, missed: float) -> Answer:
        pairs = self._pairs
        if isinstance(self.randomizer, Gaussian):
            pairs = _pairs_of_inputs(self.randomizer, min(0.05, 0.25 * missed))
        return partial(_largest_profile, pairs, self.n, rtol)

    def assumptions(self) -> dict[str, str]:
        return {
            "neighbours": SUBSTITUTION,
            "adversary": "sees the shuffled reports, knows every other user's value, and sees which of the"
            " other users' reports came from the privacy blanket",
            "analysis": f"exact pair of the blanket adversary for {self.randomizer!r}"
            f"{_inputs(self.randomizer)}",
            "sampling": EVERYBODY,
        }


@dataclass(frozen=True)
class Attack(_Grouped):
    """Two concrete neighbouring datasets: the target holds `first` or `second`, all n-1 others hold `others`.

    The pair is ordered (D has `first`), and exact: what it spends, `randomizer` in a shuffler spends at
    least, over any number of rounds. Inputs are 0 ... inputs-1 of a finite randomizer.

    Raises ValueError or TypeError naming the argument.
    """

    randomizer: FiniteRandomizer
    n: int
    first: int
    second: int
    others: int

    def __post_init__(self) -> None:
        randomizer = _randomizer(self.randomizer)
        if not isinstance(randomizer, FiniteRandomizer):
            raise TypeError(f"randomizer must be finite to be attacked, got {randomizer!r}")
        object.__setattr__(self, "n", crowd_size(self.n))
        for name in ("first", "second", "others"):
            value = positive_int(name, getattr(self, name), least=0)
            if not value < randomizer.inputs:
                raise ValueError(f"{name} must be below inputs={randomizer.inputs}, got {value!r}")
            object.__setattr__(self, name, value)
        if self.first == self.second:
            raise ValueError(f"second must differ from first, got {self.second!r}")

    @cached_property
    def _pairs(self) -> tuple[_Pair, ...]:  # type: ignore[override]
        """Both orders."""
        law = self.randomizer.law()
        found = []
        for one, two in ((self.first, self.second), (self.second, self.first)):
            groups = _merged(law[one], law[two], law[self.others])
            found.append(_Pair(groups, groups, True, _error(self.randomizer)))
        return tuple(found)

    def profile_within(self, rtol: float, missed: float) -> Answer:
        """Of the ordered pair."""
        return partial(self._pairs[0].profile, self.n, rtol)

    @cached_property
    def infinite_mass(self) -> float:  # type: ignore[override]
        return self._pairs[0].infinite_mass(self.n)

    def dots(self, width: float, missed: float, centre: float | None) -> tuple[Dots, Dots]:
        rtol = dot_rtol(width, self.loss_scale)
        forward, backward = (
            dots(
                partial(pair.profile, self.n, rtol), width=width, missed=missed,
                scale=self.loss_scale, max_loss=self.max_loss,
                infinity=pair.infinite_mass(self.n), centre=centre, most=MAX_DOTS,
            )
            for pair in self._pairs
        )  # fmt: skip
        return forward, backward

    @property
    def symmetric(self) -> bool:
        return False

    def on_cohort(self, rate: float) -> Mechanism:
        return Mechanism.on_cohort(self, rate)

    def assumptions(self) -> dict[str, str]:
        return {
            "neighbours": f"the target holds {self.first} or {self.second}, all others hold {self.others}",
            "adversary": "sees the shuffled reports",
            "analysis": "exact divergence of these two datasets: a lower bound for any analysis",
            "sampling": EVERYBODY,
        }


class AttackBounds(NamedTuple):
    """The strongest attack that was tried, and certified bounds on what it spends.

    `bounds.lower` is a lower bound on the mechanism's true epsilon (or delta), whatever the analysis.
    """

    bounds: Bounds
    attack: Attack


@dataclass(frozen=True)
class Shuffled(Wrapper):
    """n users shuffle reports of a named randomizer, with the tightest proven analysis.

    Parameters
    ----------
    randomizer : one of `pld_shuffle.randomizers`, the same for all users.
    n : users whose reports are shuffled together, the target included.
    analysis : "tightest" (default: the blanket; the reduction where eps0 is over 150), "blanket",
        "reduction" (total variation and eps0) or "stronger-clones" (eps0 only). The last two need a
        finite eps0 and pure LDP.

    `core` is the mechanism that was taken, `alternatives` what the other analyses give, `attack_bounds` how
    far any analysis could still go. Rounds must be independent: RAPPOR's permanent noise is drawn afresh in
    each round (its reports from one memoised filter are one round of ``rappor.memoised``). Raises
    ValueError or TypeError naming the argument.

    >>> from pld_shuffle.randomizers import KRandomizedResponse
    >>> Shuffled(KRandomizedResponse(k=4, eps0=2.0), n=1000).core
    ShuffledRR(k=4, n=1000, eps0=2.0, adversary='weak')
    """

    randomizer: LocalRandomizer
    n: int
    analysis: str = "tightest"

    def __post_init__(self) -> None:
        object.__setattr__(self, "randomizer", _randomizer(self.randomizer))
        object.__setattr__(self, "n", crowd_size(self.n))
        choice("analysis", self.analysis, ANALYSES)
        _ = self.core  # an analysis that does not apply is refused here

    @cached_property
    def core(self) -> Mechanism:  # type: ignore[override]
        if self.analysis != "tightest":
            return self._analysed(self.analysis)
        # Beyond that eps0 nobody hides anybody, and the reduction is all there is to say.
        strong = is_pure(self.randomizer) and self.randomizer.eps0 > LARGEST_EPS0
        return self._analysed("reduction" if strong else "blanket")

    def _analysed(self, analysis: str) -> Mechanism:
        randomizer, n = self.randomizer, self.n
        if analysis == "blanket":
            if isinstance(randomizer, KRandomizedResponse):
                return ShuffledRR(randomizer.k, n, eps0=randomizer.eps0, adversary="weak")
            if isinstance(randomizer, BinaryRandomizedResponse):
                return ShuffledRR(2, n, eps0=randomizer.eps0, adversary="weak")
            return Blanket(randomizer, n)
        if not is_pure(randomizer):
            raise ValueError(
                f"analysis {analysis!r} needs pure LDP with a finite positive eps0, got {randomizer!r}"
            )
        if analysis == "reduction":
            return ShuffledRandomizer(n, eps0=randomizer.eps0, tv=min(1.0, randomizer.tv))
        return ShuffledLDP(eps0=randomizer.eps0, n=n)

    def alternatives(
        self, *, delta: float, rounds: int = 1, rtol: float = 1e-3
    ) -> dict[str, Bounds]:
        """Bounds on epsilon at `delta` after `rounds` rounds, by every analysis that applies."""
        from .accountant import Accountant

        found = {}
        for analysis in ANALYSES[1:]:
            try:
                mechanism = self._analysed(analysis)
            except ValueError:  # does not apply to this randomizer
                continue
            found[analysis] = Accountant(rtol).compose(mechanism, rounds).epsilon_bounds(delta)
        return found

    def attack_bounds(
        self,
        *,
        delta: float | None = None,
        epsilon: float | None = None,
        rounds: int = 1,
        choices: Iterable[tuple[int, int, int]] | None = None,
        rtol: float = 1e-3,
    ) -> AttackBounds:
        """What the strongest of a few concrete attacks spends over `rounds` rounds: see `Attack`.

        Give `delta` for bounds on epsilon, or `epsilon` for bounds on delta. `choices`: (first, second,
        others) to try; by default all triples of inputs, or, where they are more than 256, those of the
        farthest pair and of the first inputs. The best one is found by one round's divergence, then
        composed. Finite randomizers only. Raises TypeError or ValueError naming the argument.
        """
        from .accountant import Accountant

        if (delta is None) == (epsilon is None):
            raise ValueError(f"give exactly one of delta and epsilon, got {delta!r}, {epsilon!r}")
        attack = self._strongest(choices)
        accountant = Accountant(rtol).compose(attack, rounds)
        if delta is not None:
            return AttackBounds(accountant.epsilon_bounds(delta), attack)
        return AttackBounds(accountant.delta_bounds(epsilon), attack)

    def _strongest(self, choices: Iterable[tuple[int, int, int]] | None) -> Attack:
        if not isinstance(self.randomizer, FiniteRandomizer):
            raise TypeError(f"randomizer must be finite to be attacked, got {self.randomizer!r}")
        tried = list(_triples(self.randomizer) if choices is None else choices)
        attacks = [Attack(self.randomizer, self.n, *triple) for triple in tried]
        if not attacks:
            raise ValueError("choices must not be empty")
        growth = np.expm1([2.0 * min(max(a.loss_scale for a in attacks), 100.0)])
        strengths = [float(attack.profile(growth).lower[0]) for attack in attacks]
        return attacks[int(np.argmax(strengths))]


def is_pure(randomizer: LocalRandomizer) -> bool:
    """Whether it is eps0-LDP, 0 < eps0 < inf. Gaussian noise never is, however small its delta0."""
    return not isinstance(randomizer, Gaussian) and 0.0 < randomizer.eps0 < math.inf


def _pairs_of_inputs(randomizer: LocalRandomizer, tail: float) -> tuple[_Pair, ...]:
    """All ordered pairs of inputs that may be the worst one."""
    error = _error(randomizer)
    if isinstance(randomizer, (Laplace, Gaussian)):
        # The pair (0, 1); its mirror image is the reversed pair.
        lower, upper = (
            blanket.laplace_groups(randomizer.eps0, side=side, cells=LAPLACE_CELLS)
            if isinstance(randomizer, Laplace)
            else blanket.gaussian_groups(
                randomizer.sigma, side=side, missed=tail, cells=GAUSSIAN_CELLS
            )
            for side in Side
        )
        return (_Pair(lower, upper, False, error),)
    assert isinstance(randomizer, FiniteRandomizer)
    pairs: list[_Pair] = []
    for kind in randomizer.pair_laws():
        forward = _merged(kind.first, kind.second, kind.blanket)
        reverse = _merged(kind.second, kind.first, kind.blanket)
        pairs.append(_Pair(forward, forward, False, error))
        if not all(np.array_equal(a, b) for a, b in zip(forward, reverse, strict=True)):
            pairs.append(_Pair(reverse, reverse, False, error))
    return tuple(pairs)


def _inputs(randomizer: LocalRandomizer) -> str:
    """What the pairs range over, where that is more than the randomizer's inputs."""
    bloom = isinstance(randomizer, RAPPOR) and randomizer.bits is not None
    return ", the worst over all filters, whether or not a value has them" if bloom else ""


def _error(randomizer: LocalRandomizer) -> float:
    """Bound on the relative error of the masses of the randomizer's laws."""
    if isinstance(randomizer, DiscreteRandomizer):
        return MATRIX_ERROR
    return GAUSSIAN_ERROR if isinstance(randomizer, Gaussian) else MASS_ERROR


def _merged(first: Array, second: Array, hidden: Array) -> Groups:
    """Groups in a fixed order, those with equal ratios merged (exactly equal: nothing is lost)."""
    scale = np.where(hidden > 0.0, hidden, first + second)
    seen = scale > 0.0
    masses = np.stack((first, second, hidden))[:, seen]
    ratios = masses / scale[seen]
    _, index = np.unique(ratios, axis=1, return_inverse=True)
    index = index.ravel()
    count = int(index.max()) + 1
    one, two, three = (np.bincount(index, row, count).astype(np.float64) for row in masses)
    return one, two, three


def _triples(randomizer: FiniteRandomizer) -> Iterable[tuple[int, int, int]]:
    """(first, second, others) for the default search."""
    inputs = randomizer.inputs
    if inputs * (inputs - 1) * inputs <= MAX_CHOICES:
        pairs = list(permutations(range(inputs), 2))
        return [(i, j, z) for (i, j), z in product(pairs, range(inputs))]
    found = [(i, j, z) for i, j in permutations(range(3), 2) for z in range(4)]
    if isinstance(randomizer, DiscreteRandomizer):
        for pair in (randomizer.farthest_pair, randomizer.worst_pair):
            others = range(min(inputs, MAX_CHOICES // 4))
            found += [(pair.first, pair.second, z) for z in others]
            found += [(pair.second, pair.first, z) for z in others]
    return found


def _randomizer(value: Any) -> LocalRandomizer:
    if not isinstance(value, LocalRandomizer):
        raise TypeError(f"randomizer must be one of pld_shuffle.randomizers, got {value!r}")
    if not isinstance(value, (Laplace, Gaussian, FiniteRandomizer)):
        raise TypeError(f"randomizer must be finite, Laplace or Gaussian, got {value!r}")
    return value
