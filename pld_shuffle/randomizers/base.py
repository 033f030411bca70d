"""What every local randomizer of this package knows about itself.

Idea
    A local randomizer is a family of output laws mu_x, one per input x. The analyses of the
    shuffle model need few numbers of it, and every randomizer here gives them:

    eps0    sup over inputs x, x' and reports y of log(mu_x(y) / mu_x'(y)); inf without pure LDP
    tv      beta, the total variation of the worst pair of inputs
    gamma   the total mass of inf_x mu_x, the probability of the privacy blanket

    When all users share one randomizer and any input may occur, every likelihood ratio is at most
    exp(eps0): within a pair of inputs (p) as to any other user's law (q).

Guarantee
    eps0 and tv are never below and gamma never above the true value, up to the rounding of a
    few floating-point operations (relative 1e-14 or so). They equal it unless a docstring says
    otherwise.

Reports are drawn with ordinary floating-point arithmetic. This is meant for simulation; no
defence is attempted against attacks on the low-order bits of floating-point noise.

Source
    Balle, Bell, Gascon, Nissim, The privacy blanket of the shuffle model, CRYPTO 2019, sections
    5.1-5.2 (blanket, gamma); Wang et al., Privacy amplification via shuffling: unified,
    simplified, and tightened, VLDB 2024 (total variations).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..numerics.sides import Side

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class LocalRandomizer(ABC):
    """A family of output laws that knows its privacy parameters (see the top of the file)."""

    if TYPE_CHECKING:  # a dataclass would take a property for the default of its field

        @property
        def eps0(self) -> float:
            """Local epsilon of one report, natural logarithm; inf if no pure guarantee exists."""

    @property
    @abstractmethod
    def tv(self) -> float:
        """Total variation of the worst pair of inputs (beta), in [0, 1]."""

    @property
    @abstractmethod
    def gamma(self) -> float:
        """Total mass of inf_x mu_x (blanket probability), in [0, 1]."""

    @abstractmethod
    def sample(self, x: ArrayLike, rng: np.random.Generator) -> NDArray[Any]:
        """One independent report for every entry of `x`: shape x.shape, then that of a report."""

    # What analyses of shuffled reports ask for, in finite laws:

    #: Bound on the relative error of masses.
    mass_error: ClassVar[float] = 2e-14
    #: Whether a report is the value itself, or any other value alike: k-ary randomised response.
    k_ary: ClassVar[bool] = False

    @property
    def pairs_meant(self) -> str:
        """What the pairs range over, where that is more than the inputs: words for `assumptions`."""
        return ""

    @abstractmethod
    def slot_laws(
        self, side: Side = Side.UPPER, missed: float = 0.0, *, refined: float = 1.0
    ) -> Sequence[FloatArray]:
        """The target's two laws next to the blanket, shape (3, groups), for every ordered pair that may be the worst.

        Of noise: finite laws on a side, up to so much mass of the target's, which is given away; with so many times as
        many cells as usual.
        """

    @abstractmethod
    def types(self, users: int = 1) -> Iterator[Any]:
        """What the swap theorem needs, for every kind of target (see `joint.Types`); none where it is not asked.

        users : for how many the types of noise are made. They are right for any number.
        """

    @abstractmethod
    def attack_law(
        self, first: float, second: float, others: float, *, refined: float = 1.0
    ) -> FloatArray:
        """Masses of reports under three inputs, shape (3, groups); reports of noise are merged."""


class PairLaw(NamedTuple):
    """The output laws of two inputs next to the blanket, with equivalent reports merged.

    Three read-only arrays of equal length, one entry per group of reports. Within a group the
    ratios first : second : blanket are constant, so that nothing is lost by the merging, and
    exponentially many reports (unary encoding) shrink to a handful of groups.

    first, second
        Masses under the two inputs; each sums to 1.
    blanket
        Mass of inf_x mu_x, not normalised: it sums to gamma.

    `pair_laws()` lists one entry for every kind of unordered pair. Where exchanging the inputs
    matters, the caller looks at both orders.
    """

    first: FloatArray
    second: FloatArray
    blanket: FloatArray

    @classmethod
    def of(cls, first: ArrayLike, second: ArrayLike, blanket: ArrayLike) -> PairLaw:
        """Copy three arrays of masses, without the groups that neither input can reach."""
        masses = np.array([first, second, blanket], dtype=np.float64)
        masses = masses[:, (masses[0] > 0) | (masses[1] > 0)]
        return cls(*(read_only(row.copy()) for row in masses))


def read_only(array: FloatArray) -> FloatArray:
    """The same array with its write flag cleared."""
    array.setflags(write=False)
    return array


def settle(instance: object, **values: object) -> None:
    """Put checked values into the fields of a frozen dataclass, from its __post_init__."""
    for name, value in values.items():
        object.__setattr__(instance, name, value)
