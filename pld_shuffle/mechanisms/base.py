"""What a mechanism is: something that was run, with a proven dominating pair.

A mechanism is a frozen, hashable value. It names its `pair` (see `pairs.pair`): upper ends of all answers are
proved by it. `attack_pair` is what two concrete neighbouring datasets give away: no analysis can go below it, so
lower ends come from there. By default it is the same pair. Mechanisms of your own: subclass `Mechanism` and give a
pair, a `pairs.profile.ProfilePair` if you know a profile.

*Neighbours* (docs/people.md, section 9). A ledger has one relation. Shuffled rounds are for the *substitution* of one
user's value, and so is central noise next to them, at twice the norm of a contribution. Accountants of DP-SGD count
zero-out (one user's contribution is there, or replaced by nothing) or removal, at the norm itself. Both can stand in
one ledger if every mechanism of it is read for zero-out: `ZeroOut`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Annotated, Any, ClassVar

from ..composition.composition import Composition
from ..composition.pld import PLD, formed
from ..numerics.sides import Bounds, Side
from ..numerics.validation import Checked, between, positive_float, positive_int, tolerance
from ..pairs.pair import ALL_USERS, Cohort, Pair, Resolution
from ..pairs.profile import BothOrders
from ..randomizers.base import EPS0_MAX
from ..randomizers.joint import NOISES

SMALLEST_EPS0 = 1e-9
SMALLEST_RATE = 1e-12  # of a hidden cohort, or of a Poisson sample
SUBSTITUTION = "neighbouring datasets differ in the value of one user (substitution)"
ZERO_OUT = "zero-out"
#: Neighbouring relations, in words.
NEIGHBOURS = {
    "replace-one": SUBSTITUTION,
    "add-or-remove-one": "one dataset has one user more than the other (addition or removal)",
    ZERO_OUT: "one user's contribution is there, or replaced by nothing (zero-out)",
}
REPORTS = "sees the shuffled reports and knows every other user's value"
OUTPUTS_ONLY = "what users send may depend on what was published before, but not on who took part"
CONCURRENT = "rounds of other entries may come in between (concurrent composition, Vadhan and Zhang 2023)"
EVERYBODY = "all n users take part; n counts the users whose reports are shuffled together"


class Mechanism(Checked, ABC):
    """One round of something with a proven dominating pair."""

    @property
    @abstractmethod
    def pair(self) -> Pair:
        """The dominating pair; upper ends are proved by it."""

    def __getstate__(self) -> dict[str, Any]:
        """The parameters alone: what was derived from them is derived again."""
        derived = (name for name, value in vars(type(self)).items() if isinstance(value, cached_property))
        inherited = {"pair", "attack_pair", *derived}
        return {name: value for name, value in vars(self).items() if name not in inherited}

    @property
    def attack_pair(self) -> Pair:
        """A pair that the mechanism is at least as bad as; lower ends come from it."""
        return self.pair

    def attack_bounds(
        self, *, delta: float | None = None, epsilon: float | None = None, rounds: int = 1, rtol: float = 1e-3
    ) -> Bounds:
        """What the known attack spends over `rounds` rounds: no analysis can go below.

        Give `delta` for bounds on epsilon, or `epsilon` for bounds on delta. The attack is `attack_pair`: for a
        stated adversary, and for a central mechanism, that adversary's pair. Raises TypeError or ValueError
        naming the argument.

        >>> from pld_shuffle import ShuffledLDP
        >>> round(ShuffledLDP(eps0=1.0, n=10_000).attack_bounds(delta=1e-6).lower, 4)
        0.038
        """
        if (delta is None) == (epsilon is None):
            raise ValueError(f"give exactly one of delta and epsilon, got {delta!r}, {epsilon!r}")
        count, width = positive_int("rounds", rounds), tolerance("rtol", rtol)
        composition = Composition([(self.attack_pair, count)], width)
        return composition.epsilons(delta) if delta is not None else composition.deltas(epsilon)

    @property
    def users(self) -> int | None:
        """Number of users whose reports are shuffled together, by default `n`; None for a central mechanism."""
        return getattr(self, "n", None)

    @property
    def relation(self) -> str:
        """The neighbouring relation the pair is for, by default `neighbours`; one ledger holds one relation."""
        return getattr(self, "neighbours", "replace-one")

    @property
    def hidden(self) -> bool:
        """Whether who takes part is drawn and hidden, so that two reports of one user may be drawn together."""
        return False

    unsampled: ClassVar[str | None] = None  #: why there is no pair of a hidden cohort, if there is none
    #: Whether every hidden cohort has a proven pair; otherwise the pair is formed at once to find out.
    any_cohort: ClassVar[bool] = False

    def sampled(self, cohort: Cohort) -> Pair:
        """The pair of a hidden cohort; TypeError if none is proven for this mechanism."""
        self.require_sampling()
        return self.pair.sampled(cohort)

    def sampled_attack(self, cohort: Cohort) -> Pair:
        """The attack pair of a hidden cohort."""
        return self.sampled(cohort)

    def amplified(self, rate: float) -> Pair:
        """The pair of a hidden random cohort by the general amplification, which knows only `pair`."""
        self.require_sampling()
        return self.pair.amplified(rate)

    def require_sampling(self) -> None:
        """Raise TypeError if the mechanism cannot run on a hidden cohort, or its orders differ."""
        if self.unsampled is not None:
            raise TypeError(f"{self.unsampled}, got {self!r}")
        if self.relation != "replace-one":  # amplification is proven for substitution
            raise TypeError(f"mechanism must be for neighbours 'replace-one', got {self!r}")
        if not self.pair.symmetric:
            raise TypeError(f"mechanism must have a symmetric pair to be subsampled, got {self!r}")

    @property
    def zero_out(self) -> Pair:
        """The pair for the zero-out relation (`ZeroOut`); TypeError where none is proved."""
        raise TypeError(f"mechanism must be one that is proved for the zero-out relation, got {self!r}")

    def stand_in_attack(self, cohort: Cohort) -> tuple[Pair, Pair] | None:
        """Views of a known cohort in which all others hold the target's second value: that pair, and it reversed.

        None where no attack is known. A sticky cohort's lower ends come from it (`mechanisms.sampling`).
        """
        return None

    @abstractmethod
    def assumptions(self) -> dict[str, str]:
        """What a guarantee for this mechanism rests on: neighbours, adversary, analysis, sampling (see `said`)."""

    def hidden_assumptions(self) -> dict[str, str]:
        """The same where nobody may see who took part; "sampling" is the scheme's to say."""
        return self.assumptions()

    derived: str = ""  #: the one of two alternative parameters that was not given, but follows from the other one
    #: Arguments that are told only where they are not the usual ones: what is stored of a mechanism keeps its form.
    rarely: ClassVar[tuple[str, ...]] = ()

    def arguments(self) -> dict[str, Any]:
        """Keyword arguments that rebuild this mechanism: ``type(m)(**m.arguments()) == m``."""
        usual = {f.name: f.default for f in fields(self) if f.init}  # type: ignore[arg-type]
        given = {name: getattr(self, name) for name in usual if name != self.derived}
        left_out = {name: usual[name] for name in self.rarely}
        return {name: v for name, v in given.items() if v is not None and v != left_out.get(name)}

    def __repr__(self) -> str:
        """The arguments that are not the usual ones."""
        usual = {f.name: f.default for f in fields(self)}  # type: ignore[arg-type]
        told = (f"{name}={value!r}" for name, value in self.arguments().items() if value != usual[name])
        return f"{type(self).__name__}({', '.join(told)})"

    def pld(self, *, step: float | None = None, side: Side = Side.UPPER, truncated_mass: float = 1e-15) -> PLD:
        """The privacy loss distribution of one round on one side.

        Parameters: step, the lattice spacing in units of loss (default: 1/200 of the loss's scale);
        side; truncated_mass, the P-mass that windows may leave out (an upper PLD has it at infinity).
        Raises ValueError/TypeError on bad arguments, MemoryError if the lattice would be too large.
        Numbers of coins within 1e-5 of each other share a bucket. Complexity O(sqrt n) per bucket.
        """
        if not isinstance(side, Side):
            raise TypeError(f"side must be a Side, got {side!r}")
        pair = self.pair if side is Side.UPPER else self.attack_pair
        if step is None:
            step = pair.scale / 200.0 or 1.0
        step = positive_float("step", step)
        truncated_mass = positive_float("truncated_mass", truncated_mass)
        if not truncated_mass < 0.1:
            raise ValueError(f"truncated_mass must be below 0.1, got {truncated_mass!r}")
        return formed(pair, [side], Resolution(step, truncated_mass=truncated_mass, size_width=1e-5))[0]


class OnCohorts(Mechanism):
    """A mechanism whose pairs are proved for all cohorts alike: its own are `sampled` and `sampled_attack` of all."""

    any_cohort = True

    @cached_property
    def pair(self) -> Pair:
        return self.sampled(ALL_USERS)

    @cached_property
    def attack_pair(self) -> Pair:  # type: ignore[override]
        return self.sampled_attack(ALL_USERS)

    @abstractmethod
    def sampled(self, cohort: Cohort) -> Pair: ...

    @abstractmethod
    def sampled_attack(self, cohort: Cohort) -> Pair: ...


class OfMechanism(Mechanism):
    """Rounds of another mechanism: its users, its relation, and its null report where it is one of shuffled reports."""

    mechanism: Mechanism

    @property
    def derived(self) -> str:  # type: ignore[override]
        """The rate of a hidden cohort out of a population."""
        return "" if getattr(self, "population", None) is None else "rate"

    @property
    def users(self) -> int | None:
        return self.mechanism.users

    @property
    def relation(self) -> str:
        return self.mechanism.relation

    @property
    def zero_out(self) -> Pair:
        """As `pair`, for shuffled reports: the user is drawn like everybody else, and its report is null."""
        _ = self.mechanism.zero_out
        return self.pair if self.users is not None else super().zero_out


class OfReports(Mechanism):
    """Shuffled reports, of which one may be a null report: the pair for zero-out is that for substitution."""

    @property
    def zero_out(self) -> Pair:
        return self.pair


def assumed(mechanisms: Iterable[Mechanism]) -> dict[str, list[str]]:
    """What answers about these rest on, by topic, each sentence once."""
    found: dict[str, dict[str, None]] = {}
    for mechanism in dict.fromkeys(mechanisms):
        for topic, sentence in mechanism.assumptions().items():
            found.setdefault(topic, {})[sentence] = None
    return {topic: [*sentences] for topic, sentences in found.items()}


def attacked(mechanisms: Iterable[Mechanism]) -> bool:
    """Whether lower ends for these are an attack's: some mechanism's attack is not its own pair."""
    return any(kind.attack_pair is not kind.pair for kind in dict.fromkeys(mechanisms))


def as_mechanism(value: Any) -> Mechanism:
    """`value` if it is a mechanism; TypeError otherwise."""
    if not isinstance(value, Mechanism):
        local, name = hasattr(value, "slot_laws"), type(value).__name__
        wrap = "; what n users run is Shuffled(randomizer, n)" if local else ""
        if local and name in NOISES:
            wrap += f", and a curator's noise is pld_shuffle.{name}"
        raise TypeError(f"mechanism must be a mechanism, got {value!r}{wrap}")
    return value


def said(
    analysis: str, *, neighbours: str = SUBSTITUTION, adversary: str = REPORTS, sampling: str = EVERYBODY
) -> dict[str, str]:
    """What `Mechanism.assumptions` returns, by default for reports of all users in a shuffler."""
    return {"neighbours": neighbours, "adversary": adversary, "analysis": analysis, "sampling": sampling}


local_epsilon = between(SMALLEST_EPS0, EPS0_MAX)
LocalEpsilon = Annotated[float, local_epsilon]
sampling_rate = between(SMALLEST_RATE, 1.0)  # the share of users who take part


def largest_loss(loss: float, *, rounded: bool = False) -> Bounds:
    """The bounds of a largest loss, known exactly or rounded a few times."""
    return Bounds(loss * (1.0 - 4e-15), loss * (1.0 + 1e-15)) if rounded else Bounds(loss, loss)


@dataclass(frozen=True, repr=False)
class ZeroOut(OfMechanism):
    """A mechanism read for the zero-out relation: a user's contribution, or nothing in its place.

    mechanism : shuffled reports (`ShuffledLDP`, `ShuffledRR`, `ShuffledRandomizer`, `Shuffled`, `Epoch`; also on a
        hidden cohort: `Subsampled`, `PoissonSampled`, `StickyCohort`), whose null report must be one the randomizer
        can make: its law is that of a value, or a mixture of values' laws. Or `Gaussian` or `Laplace`,
        `sensitivity` being the bound on the norm of one contribution. Or `PoissonGaussian`.

    In a hidden cohort the user is drawn like everybody else; only its report is null. A ledger holds one relation: all
    of its mechanisms are `ZeroOut`, or none. Lower ends are those of the mechanism's attack, for a null report of the
    attack's choice. Raises TypeError for any other mechanism, such as central noise on a cohort of fixed size, where
    somebody else's contribution stands in for the absent user's.

    >>> from pld_shuffle import Accountant, Gaussian, ShuffledLDP
    >>> acc = Accountant().compose(ZeroOut(ShuffledLDP(eps0=2.0, n=2_000)), 10)
    >>> round(acc.compose(ZeroOut(Gaussian(sigma=20.0)), 10).get_epsilon(1e-6), 2)
    1.12
    """

    unsampled = "take the sample inside of ZeroOut"
    relation = ZERO_OUT

    mechanism: Mechanism

    def __post_init__(self) -> None:
        _ = as_mechanism(self.mechanism).zero_out  # one that has none is refused here

    @cached_property
    def pair(self) -> Pair:
        return self.mechanism.zero_out

    @property
    def attack_pair(self) -> Pair:
        if isinstance(self.pair, BothOrders):
            return self.pair.pairs[0]
        known = self.mechanism.attack_pair
        return self.pair if known is self.mechanism.pair else known

    @property
    def hidden(self) -> bool:
        return self.mechanism.hidden

    def assumptions(self) -> dict[str, str]:
        changed = "contribution, of norm at most the sensitivity, is replaced by nothing"
        if self.users is not None:
            changed = "report is replaced by a null report, whose law is a mixture of the randomizer's own"
        found = self.mechanism.assumptions() | {"neighbours": f"one user's {changed} (zero-out)"}
        if self.users is None and self.pair is not self.mechanism.pair:
            found["analysis"] = "exact pair of the noise on a Poisson sample, each order by itself"
        return found
