"""What every local randomizer of this package knows about itself.

Idea
    A local randomizer is a family of output laws mu_x, one per input x. The analyses of the
    shuffle model need few numbers of it, and every randomizer here gives them in closed form:

    eps0    sup over inputs x, x' and reports y of log(mu_x(y) / mu_x'(y))
    delta0  0 for pure LDP; otherwise the randomizer is (eps0, delta0)-LDP
    tv      beta, the total variation of the worst pair of inputs
    p       R0 <= p R1 and R1 <= p R0 for every pair of output laws R0, R1
    q       max(R0, R1) <= q R_i for every pair R0, R1 and every other user's law R_i
    gamma   the total mass of inf_x mu_x, the probability of the privacy blanket

    When all users share one randomizer and any input may occur, p and q are both exp(eps0).

Guarantee
    eps0, tv, p, q are never below and gamma never above the true value, up to the rounding of a
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

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

LAW_LIMIT = 2**22
"""Largest number of entries that `law()` builds (32 MiB of doubles)."""


@runtime_checkable
class LocalRandomizer(Protocol):
    """A family of output laws that knows its privacy parameters (see the top of the file)."""

    @property
    def eps0(self) -> float:
        """Local epsilon of one report, natural logarithm; inf if no pure guarantee exists."""

    @property
    def delta0(self) -> float:
        """0 for pure LDP, otherwise the delta that belongs to `eps0`."""

    @property
    def tv(self) -> float:
        """Total variation of the worst pair of inputs (beta), in [0, 1]."""

    @property
    def p(self) -> float:
        """Largest likelihood ratio within a pair of inputs; inf if unbounded."""

    @property
    def q(self) -> float:
        """Largest ratio of a pair's larger law to any other user's law; inf if unbounded."""

    @property
    def gamma(self) -> float:
        """Total mass of inf_x mu_x (blanket probability), in [0, 1]."""

    def sample(self, x: ArrayLike, rng: np.random.Generator) -> NDArray[Any]:
        """One independent report for every entry of `x`."""


@runtime_checkable
class FiniteRandomizer(LocalRandomizer, Protocol):
    """A randomizer with inputs 0 ... inputs-1 and finitely many reports."""

    @property
    def inputs(self) -> int:
        """Number of inputs, the rows of the law."""

    @property
    def outputs(self) -> int:
        """Number of reports, the columns of the law."""

    def law(self) -> FloatArray:
        """Output law, shape (inputs, outputs), read-only. ValueError beyond `LAW_LIMIT` entries."""

    def columns(self, reports: ArrayLike) -> IntArray:
        """Column of the law for each report that `sample` returned."""

    def joint_law(self, inputs: Sequence[int], *, blanket: bool = False) -> FloatArray:
        """Masses of groups of reports under each of the inputs, and the blanket (see joint.py)."""

    def kinds(self, given: Sequence[int] = ()) -> Sequence[int]:
        """One input of each kind, where symmetries that fix the given inputs are divided out."""

    def ordered_pairs(self) -> Iterator[tuple[int, int]]:
        """One ordered pair of different inputs of each kind."""

    def shared_values(self, first: int, second: int) -> Sequence[int]:
        """Values whose law may be a good shared law for this target."""

    def pair_laws(self) -> tuple[PairLaw, ...]:
        """One `PairLaw` for every kind of pair of inputs (see `PairLaw`)."""

    def types(self) -> Iterator[Any]:
        """What the swap theorem needs, for every kind of target (see `joint.Types`)."""


@runtime_checkable
class ContinuousRandomizer(LocalRandomizer, Protocol):
    """A randomizer of values in [0, 1] whose reports have a density on the real line."""

    def density(self, x: ArrayLike, y: ArrayLike) -> FloatArray:
        """Density of the report y for the input x; `x` and `y` are broadcast."""

    def cdf(self, x: ArrayLike, y: ArrayLike) -> FloatArray:
        """Probability of a report of at most y for the input x; `x` and `y` are broadcast."""

    def blanket_density(self, y: ArrayLike) -> FloatArray:
        """Density of the blanket, inf_x density(x, y) / gamma."""


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


class _KnowsEps0(Protocol):
    @property
    def eps0(self) -> float: ...


class PureLDP:
    """Mixin: p = q = exp(eps0) and delta0 = 0, for one randomizer shared by all users."""

    @property
    def delta0(self) -> float:
        """Zero: the guarantee is pure."""
        return 0.0

    @property
    def p(self: _KnowsEps0) -> float:
        """exp(eps0), the largest likelihood ratio within a pair of inputs."""
        return math.exp(self.eps0)

    @property
    def q(self: _KnowsEps0) -> float:
        """exp(eps0): the other users may hold the input that makes max(R0, R1) / R_i largest."""
        return math.exp(self.eps0)


def read_only(array: FloatArray) -> FloatArray:
    """The same array with its write flag cleared."""
    array.setflags(write=False)
    return array


def require_small_law(inputs: int, outputs: int) -> None:
    """Raise ValueError if a law of this shape is larger than `LAW_LIMIT` entries."""
    if not inputs * outputs <= LAW_LIMIT:
        raise ValueError(
            f"law() of {inputs} inputs and {count_text(outputs)} outputs has more than {LAW_LIMIT} "
            "entries; use joint_law() or pair_laws() instead"
        )


def count_text(count: int) -> str:
    """A count for a message; Python refuses to print integers of thousands of digits."""
    return str(count) if count < 2**64 else f"at least 2^{count.bit_length() - 1}"
