"""Joint laws: how likely each report is under several inputs at once, and all that follows from it.

A *joint law* is an array with one row per input and one column per group of reports. Reports with equal ratios between
the rows share a column, so that exponentially many reports become a handful, and nothing is lost: every analysis of the
shuffle model sees the laws through these ratios only. A finite randomizer tells two things, its masses and `kinds` (its
symmetry); `FiniteRandomizer` derives the blanket's laws (docs/theory.md, section 8), the types of the swap theorem
(docs/swap.md), and the concrete attack "all others hold w", ``joint_law((first, second, w))``.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..numerics.sides import Side
from ..numerics.validation import integer_in
from .base import FloatArray, IntArray, LocalRandomizer, generator, integer_array, local_epsilon, read_only, settle


class Types(NamedTuple):
    """The laws of everybody else, as the swap theorem sees them, for one target and one shared law.

    pair : number of the kind of ordered pair of target inputs, from 0. A bound on the mechanism is the largest over all
        pairs of the smallest over all entries of that pair.
    shared : what the shared law V is: "first", "second", "third" (another value) or "blanket" (inf_x mu_x / gamma).
    laws : a read-only array of shape (4, groups) for every kind of value that another user may hold. Rows: masses
        under the target's two inputs, under V, and under that value. They sum to 1; the last one may sum to less, then
        the rest of its mass tells nothing. Large ones may be four arrays of a row each.
    """

    pair: int
    shared: str
    laws: tuple[Any, ...]
    uncovered_user: FloatArray | None = None
    """The law of the one user who reports from V, if no other law covers it."""


class FiniteRandomizer(LocalRandomizer):
    """Inputs 0 ... inputs-1 and finitely many reports, known by the masses of groups of them.

    To be written: the parameters eps0 and tv, `_masses`, `_drawn`, and `kinds` unless all inputs are alike.
    """

    @property
    @abstractmethod
    def inputs(self) -> int:
        """Number of inputs."""

    @abstractmethod
    def _masses(self, values: IntArray, blanket: bool) -> FloatArray:
        """Masses of groups of reports under distinct sorted `values`, one row each, and one for inf_x mu_x.

        Within a group the ratios of these rows are constant; those to the last one only if `blanket`.
        """

    @abstractmethod
    def _drawn(self, values: IntArray, rng: np.random.Generator) -> NDArray[Any]:
        """One report for each of the values, which lie in [0, inputs)."""

    def sample(self, x: ArrayLike, rng: np.random.Generator) -> NDArray[Any]:
        """One independent report for every entry of `x`, integers in 0 ... inputs-1."""
        return self._drawn(integer_array("x", x, self.inputs), generator(rng))

    def joint_law(self, inputs: Sequence[int], *, blanket: bool = False) -> FloatArray:
        """Masses of groups of reports, shape (len(inputs), groups), read-only.

        Inputs may repeat, and be any that `kinds` names. With `blanket`, one more row: the mass of inf_x mu_x,
        which sums to gamma (groups are then finer). Every row is accurate to about 1e-14 relative in each entry.
        """
        distinct, index = several(inputs, self._codewords)
        masses = self._masses(distinct, blanket)[np.append(index, -1) if blanket else index]
        # Ratios within 2^-46 count as equal: that is within the relative error of the masses.
        with np.errstate(divide="ignore"):
            return merged(masses, lambda seen: np.round(np.log(seen / seen.max(axis=0)) * 2.0**46))

    @property
    def _codewords(self) -> int:
        """Number of inputs that have a law: more than `inputs` where the symmetry needs them."""
        return self.inputs

    @property
    def gamma(self) -> float:
        return min(1.0, math.fsum(self.joint_law((0,), blanket=True)[-1]))

    def kinds(self, given: Sequence[int] = ()) -> Sequence[int]:
        """The least input of each kind, where the symmetries that fix all of `given` are divided out.

        Here: the given inputs, and one that is different from all of them.
        """
        known = set(given)
        fresh = next(x for x in range(len(known) + 1) if x not in known)
        return sorted(known | {fresh} if fresh < self.inputs else known)

    def ordered_pairs(self) -> Iterator[tuple[int, int]]:
        """One ordered pair of different inputs of each kind."""
        for first in self.kinds():
            for second in self.kinds((first,)):
                if second != first:
                    yield first, second

    def pair_laws(self) -> Iterator[FloatArray]:
        """Masses under two inputs and inf_x mu_x, shape (3, groups), for every kind of unordered pair of inputs.

        The last row sums to gamma; groups that neither input can reach are left out.
        """
        # Least inputs: of the two orders of a pair, at least one is listed with first < second.
        for pair in self.ordered_pairs():
            if pair[0] < pair[1]:
                law = self.joint_law(pair, blanket=True)
                yield read_only(law[:, law[:2].any(axis=0)])

    def slot_laws(
        self, side: Side = Side.UPPER, truncated_mass: float = 0.0, *, refined: float = 1.0
    ) -> Sequence[FloatArray]:
        """The target's two laws next to the blanket, for every kind of pair in either order; exact on any side."""
        found = []
        for first, second, blanket in self.pair_laws():
            forward, reverse = (grouped([*order, blanket]) for order in ((first, second), (second, first)))
            found += [forward] if np.array_equal(forward, reverse) else [forward, reverse]
        return found

    def attack_law(self, first: float, second: float, others: float, *, refined: float = 1.0) -> FloatArray:
        return grouped(self.joint_law((first, second, others)))  # type: ignore[arg-type]

    def attacks(self, most: int) -> Iterable[tuple[int, int, int]]:
        """(first, second, others) of up to so many attacks. Kinds may stand for values that do not exist."""
        pairs = islice(self.ordered_pairs(), most)
        found = ((*pair, others) for pair in pairs for others in self.kinds(pair))
        return islice((triple for triple in found if max(triple) < self.inputs), most)

    def shared_values(self, first: int, second: int) -> Sequence[int]:
        """Values whose law may be a good shared law for this target."""
        return self.kinds((first, second))

    def types(self, users: int = 1) -> Iterator[Types]:
        """All `Types`: over all kinds of ordered pairs and of shared laws (see `Types`).

        The laws of one entry range over every kind of value of the other users.
        """
        for pair, (first, second) in enumerate(self.ordered_pairs()):
            for value in self.shared_values(first, second):
                target = (first, second, value)
                name = {first: "first", second: "second"}.get(value, "third")
                laws = (self.joint_law((*target, other)) for other in self.kinds(target))
                yield Types(pair, name, tuple(laws))
            others = self.kinds((first, second))
            joint = (self.joint_law((first, second, other), blanket=True) for other in others)
            yield Types(pair, "blanket", tuple(map(with_shared_blanket, joint)))


@dataclass(frozen=True, kw_only=True)
class ValuesRandomizer(FiniteRandomizer):
    """The values 0 ... k-1 with a local epsilon that is given: what most randomizers begin with.

    k: number of values, 2 ... `_most_values`. eps0: local epsilon, in (0, 700].
    """

    k: int
    eps0: float

    _most_values: ClassVar[int | None] = None

    CHECKS: ClassVar = {"eps0": local_epsilon}

    def __post_init__(self) -> None:
        settle(self, k=integer_in("k", self.k, 2, self._most_values))
        super().__post_init__()

    @property
    def inputs(self) -> int:
        return self.k


def with_shared_blanket(law: FloatArray) -> FloatArray:
    """Rows (first, second, other, blanket) as (first, second, shared, other), shared normalised."""
    first, second, other, blanket = law
    return read_only(np.array([first, second, blanket / math.fsum(blanket), other]))


def several(inputs: Sequence[int], count: int) -> tuple[IntArray, IntArray]:
    """(distinct values, index of each input among them), checked to lie in [0, count)."""
    values = integer_array("inputs", inputs, count)
    if not (values.ndim == 1 and values.size > 0):
        raise ValueError(f"inputs must be a sequence of at least one input, got {inputs!r}")
    distinct, index = np.unique(values, return_inverse=True)
    return distinct, index.reshape(-1)


def grouped(masses: ArrayLike) -> FloatArray:
    """Rows (first, second, others): groups with exactly equal ratios to the others' law merged, in a fixed order."""

    def ratios(seen: FloatArray) -> FloatArray:
        first, second, others = seen
        return np.asarray(seen / np.where(others > 0.0, others, first + second))

    return merged(np.asarray(masses, dtype=np.float64), ratios)


def merged(
    masses: FloatArray, key: Callable[[FloatArray], FloatArray] = lambda seen: seen / seen.max(axis=0)
) -> FloatArray:
    """Columns with equal keys, their ratios by default, are added up; columns without mass are left out."""
    seen = masses[:, np.any(masses > 0, axis=0)]
    keys = key(seen)
    order = np.lexsort(keys[::-1])
    keys = keys[:, order]
    starts = np.flatnonzero(np.append(True, np.any(keys[:, 1:] != keys[:, :-1], axis=0)))
    return read_only(np.add.reduceat(seen[:, order], starts, axis=1))
