"""The one abstraction of the library: a dominating pair that can be asked for its atoms on a side.

A pair (P, Q) stands for a mechanism and all its neighbouring datasets. Its privacy loss is L = log(P/Q) under P.
Nobody ever needs P and Q themselves, only atoms (mass, loss) that are certified on one side: upper atoms have at
least the hockey-stick divergence of the pair at every epsilon, lower atoms at most, and so have their compositions.
Two ways to make them recur everywhere (docs/theory.md, section 1):

* *reveal* (split an atom, both masses kept): a step up;  *hide* (merge atoms, adding masses): a step down.

Three examples. A fair coin that lands on the side of the dataset with probability 3/4 has two atoms, at losses
+-log 3. A target among n users is a mixture of such coins, `coins.CoinMixture`. Gaussian noise has no atoms, but
a profile h(s) = H_s(P||Q) that can be computed; the kinks of a polygon through points of it are atoms again,
`profile.ProfilePair`.

*Sampling.* Which of the users send a report in a round, hidden from the adversary, is a `Cohort`; every pair of the
shuffle model knows what to do with one (`Pair.sampled`). Two numbers and a yes or no are enough for the schemes we know
(docs/swap.md, Theorem C):

* `rate`: the target belongs to the cohort of n with this probability. A target outside of it is like any other user.
* `presence`: a member of the cohort sends its report with this probability, independently of all others. "Absent" is
  one more report, which everybody makes alike; how many are absent is visible.
* `certain`: the target is never absent. Then it covers any dropout of the target's own, and others who are each present
  with a probability of their own, at least `presence` (docs/swap.md, "Unequal dropouts").
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..numerics.sides import ROUNDOFF, Array, Bounds, Index, Side, total
from ..numerics.tuning import SIZE_ZONE
from ..numerics.validation import unit_interval

MIRRORED = 16.0 * ROUNDOFF  # masses of opposite losses are mirror images to so much


@dataclass(frozen=True)
class Atoms:
    """P-masses and their losses, on one side of the truth.

    mass, loss : arrays of one shape (atoms,); losses ascend.
    infinite : P-mass at infinite loss.
    missed : P-mass left out. An upper law has it at infinite loss, a lower one does without it.
    loss_error : how far a loss may be off, absolutely: rounding.
    ratio_error : how far the loss of an atom may be off that is a sum of atoms of different losses; an array, 0 for
        all other atoms. A shift by `loss_error` repairs the loss of one atom, but not the ratio of a sum
        (`numerics.lattice.place`).
    separate : whether no upper atom stands for several of one cell, so that none has to be put on a lattice.
    total : the finite P-mass of the law that is meant, if known. Its masses at losses other than 0 are then `mass`, up
        to a relative error `mass_error`. Many rounds need it: what rounding adds to a law counts once in every round.
    """

    mass: Array
    loss: Array
    infinity_mass: float = 0.0
    truncated_mass: float = 0.0
    loss_error: float = 0.0
    ratio_error: Array | None = None
    separate: bool = False
    total: float | None = None
    mass_error: float = MIRRORED

    @classmethod
    def none(cls) -> Atoms:
        """No loss at all."""
        return cls(np.ones(1), np.zeros(1))


def completed(atoms: Atoms, side: Side) -> Atoms:
    """`atoms` of a symmetric pair on `side`, loss 0 having whatever is missing to 1.

    Masses at losses above 0, and `infinity_mass`, decide the profile of a symmetric pair on s >= 1, and that decides
    the pair; so what was rounded at other losses is taken from or given to loss 0 (docs/theory.md, section 7). Where
    that has too little, or is no atom, nothing changes.
    """
    upper = side is Side.UPPER
    here = int(np.searchsorted(atoms.loss, 0.0))
    if np.count_nonzero(atoms.loss[here : here + 2] == 0.0) != 1:
        return atoms
    whole = 1.0 - atoms.infinity_mass - (atoms.truncated_mass if upper else 0.0)
    mass = atoms.mass.copy()
    mass[here] = 0.0
    rest = math.fsum((whole, -total(mass)))
    if not rest > 0.0:
        return atoms
    mass[here] = max(0.0, rest + (2.0 if upper else -2.0) * ROUNDOFF)
    return replace(atoms, mass=mass, total=whole)


@dataclass(frozen=True)
class Resolution:
    """How finely atoms are wanted; smaller is tighter and slower, every value is certified.

    step : atoms that lie in one cell of this width of the loss may be summed.
    missed : P-mass that windows may leave out; it goes to the safe side.
    size_width : relative width of a bucket of numbers of coins; 0 keeps every number.
    bias_width : relative width of an interval of the coins' bias where most of the mass is.
    pull : z^2 of one round under the tilt; it says where the mass moves to.
    point_width : distance of the points of a privacy profile, in units of loss; 0 means one step.
    tilt : under which the composition is asked; it says where mass of heavy tails moves to.
    knots : multiples of `step` from 0 on: atoms between two of them may be summed. None: all multiples.
    """

    step: float
    truncated_mass: float = 1e-15
    size_width: float = 0.0
    bias_width: float = 1e-3
    pull: float = 0.0
    point_width: float = 0.0
    tilt: float = 0.0
    knots: Index | None = None

    def cells(self, count: int) -> Index:
        """Multiples of `step` from 0 to `count` or beyond: losses of atoms that are summed lie between two of them."""
        if self.knots is None:
            return np.arange(count + 1)
        last, gap = int(self.knots[-1]), int(self.knots[-1] - self.knots[-2])
        return np.append(self.knots, np.arange(last + gap, count + gap, gap))

    @property
    def points(self) -> tuple[float, float | None]:
        """Distance of a profile's points, and the centre they are closest at, in scales; None: anywhere."""
        if self.point_width > 0.0:
            return max(self.step, self.point_width), math.sqrt(self.pull)
        return self.step, None


class Pair(ABC):
    """A dominating pair; see the module."""

    @property
    @abstractmethod
    def max_loss(self) -> Bounds:
        """The largest finite loss, from both sides; inf if finite losses are unbounded."""

    @property
    @abstractmethod
    def scale(self) -> float:
        """Rough standard deviation of the loss, only to choose steps; 0 for no loss."""

    @property
    def infinity_mass(self) -> float:
        """A lower bound on the mass at infinite loss, the limit of the profile."""
        return 0.0

    @property
    def symmetric(self) -> bool:
        """Whether (P, Q) and (Q, P) have the same profile."""
        return True

    @property
    def encloses(self) -> bool:
        """Whether lower atoms are below the same pair that upper atoms are above, at every resolution."""
        return True

    @property
    def as_profile(self) -> Any:
        """This pair as a `profile.ProfilePair`; None if its profile is not known."""
        return None

    @abstractmethod
    def atoms(self, sides: Sequence[Side], resolution: Resolution) -> list[Atoms]:
        """The atoms on each of `sides`. MemoryError, before allocating, if they would be too many."""

    def amplified(self, rate: float) -> Pair:
        """A pair for a hidden random cohort of that share of the population, if nothing else is known.

        Zhu, Dong, Wang 2022, Prop. 30, both halves in one symmetric pair (docs/theory.md, section 5). TypeError if not
        symmetric.
        """
        raise TypeError(f"the pair must be symmetric to be amplified, got {self!r}")

    def sampled(self, cohort: Cohort) -> Pair:
        """A pair for a hidden cohort of the shuffler: as `amplified`, where no more is known.

        TypeError where no pair is proven.
        """
        cohort.require_all_present(self)
        return self.amplified(cohort.rate)

    def repeated(self, count: int) -> list[tuple[Pair, int]]:
        """(pair, count) whose product dominates `count` adaptive rounds; this pair itself where no more is known."""
        return [(self, count)]

    def renyi(self, order: float) -> Bounds | None:
        """The Renyi divergence in closed form, where there is one."""
        return None


class Alike(Pair):
    """A pair with the largest loss and the scale of another one, `like`."""

    like: Any

    @property
    def max_loss(self) -> Bounds:
        return self.like.max_loss  # type: ignore[no-any-return]

    @property
    def scale(self) -> float:
        return float(self.like.scale)


class AddedUp(Pair):
    """A pair whose loss is at most the sum of those of `parts`, each so many times."""

    parts: tuple[tuple[Pair, int], ...]

    @property
    def max_loss(self) -> Bounds:
        low, high = (sum(pair.max_loss[end] * count for pair, count in self.parts) for end in (0, 1))
        return Bounds(low * (1.0 - 4e-15), high * (1.0 + 4e-15))

    @property
    def scale(self) -> float:
        return math.sqrt(sum(count * pair.scale**2 for pair, count in self.parts))


@dataclass(frozen=True)
class Attacks(Alike):
    """Several attacks on one mechanism: no analysis goes below any of them, so an answer may be the largest of theirs.

    Which one that is depends on delta and on the rounds (`composition.composition`). Wherever one pair is wanted it is
    the first.

    alone : the largest of all at every epsilon, where it is known; an attack if there is no other round.
    """

    pairs: tuple[Pair, ...]
    alone: Pair | None = None

    @classmethod
    def of(cls, pairs: Sequence[Pair]) -> Pair:
        """All of them, or the only one."""
        return pairs[0] if len(pairs) == 1 else cls(tuple(pairs))

    @property
    def like(self) -> Pair:  # type: ignore[override]
        return self.pairs[0]

    @property
    def symmetric(self) -> bool:
        return self.pairs[0].symmetric

    @property
    def encloses(self) -> bool:
        return self.pairs[0].encloses

    @property
    def as_profile(self) -> Any:
        return self.pairs[0].as_profile

    def atoms(self, sides: Sequence[Side], resolution: Resolution) -> list[Atoms]:
        return self.pairs[0].atoms(sides, resolution)

    def sampled(self, cohort: Cohort) -> Pair:
        return Attacks(tuple(pair.sampled(cohort) for pair in self.pairs))


@dataclass(frozen=True)
class Cohort:
    """A hidden random cohort. Raises ValueError or TypeError naming the argument.

    rate, presence : probabilities in (0, 1]; see the module.
    absence : 1 - presence. Give it where presence is rounded: next to an absence of 1e-17 presence is 1.
    certain : whether a target that belongs to the cohort is present.
    """

    rate: float = 1.0
    presence: float = 1.0
    absence: float = -1.0  # stands for 1 - presence, and becomes it
    certain: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", unit_interval("rate", self.rate))
        object.__setattr__(self, "presence", unit_interval("presence", self.presence))
        if self.absence == -1.0:
            object.__setattr__(self, "absence", 1.0 - self.presence)
        if not 0.0 <= self.absence < 1.0:
            raise ValueError(f"absence must be in [0, 1), got {self.absence!r}")

    @property
    def everybody(self) -> bool:
        """Whether all users take part, so that nothing is hidden."""
        return self.rate == 1.0 and self.absence == 0.0

    @property
    def rate_above(self) -> float:
        """A rate not below n/N of a population, from which `rate` was rounded; a larger one dominates. 1 only for 1."""
        above = math.nextafter(self.rate, 1.0)
        return above if above < 1.0 else self.rate

    def with_absence(self, laws: Array) -> Array:
        """Masses of reports, shape (laws, groups), with one group more where users may be absent.

        The last row is the others' law; those before it are the target's, and one that may stand in for anybody's.
        Relative error below 2 units of roundoff a mass.
        """
        if self.absence == 0.0:
            return laws
        absent = np.full((len(laws), 1), self.absence)
        found = np.concatenate([self.presence * laws, absent], axis=1)
        if self.certain:
            found[:-1, :-1], found[:-1, -1] = laws[:-1], 0.0
        return found

    def require_all_present(self, pair: Any) -> None:
        """Raise TypeError if users may be absent, for a pair that does not know about it."""
        if self.absence > 0.0:
            raise TypeError(f"users who take part independently need labels or laws, got {pair!r}")


ALL_USERS = Cohort()


def power_below(mass: float, base: float) -> float:
    """The power of `base` that is at most `mass`: whatever is made for it is found again for others like it."""
    return base ** math.ceil(math.log10(mass) / math.log10(base))


def zoned(size: float) -> float:
    """A number that all sizes within SIZE_ZONE share."""
    return math.exp(math.floor(math.log(size) / SIZE_ZONE) * SIZE_ZONE)
