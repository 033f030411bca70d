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
from functools import cached_property, partial
from itertools import islice
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..numerics.sides import Array, Side
from ..numerics.validation import integer_in, real_array
from .base import IntArray, LocalEpsilon, LocalRandomizer, generator, integer_array, read_only, settle


class Types(NamedTuple):
    """The laws of everybody else, as the swap theorem sees them, for one target and one shared law.

    pair : number of the kind of ordered pair of target inputs, from 0. A bound on the mechanism is the largest over all
        pairs of the smallest over all entries of that pair.
    shared : what the shared law V is: "first", "second", "third" (another value) or "blanket" (inf_x mu_x / gamma).
    laws : a read-only array of shape (4, groups) for every kind of value that another user may hold. Rows: masses
        under the target's two inputs, under V, and under that value. They sum to 1; the last one may sum to less, then
        the rest of its mass tells nothing. Large ones may be four arrays of a row each.
    uncovered_user : the law of the one user who reports from V, if no other law covers it.
    """

    pair: int
    shared: str
    laws: tuple[Any, ...]
    uncovered_user: Array | None = None


class FiniteRandomizer(LocalRandomizer):
    """Inputs 0 ... inputs-1 and finitely many reports, known by the masses of groups of them.

    To be written: the parameters eps0 and tv, `_masses`, `_drawn`, and `kinds` unless all inputs are alike.
    """

    k: int
    _exact: ClassVar[bool] = False  # whether masses are given, so that equal ratios are exactly equal

    @property
    def inputs(self) -> int:
        """Number of inputs, by default `k`."""
        return self.k

    @abstractmethod
    def _masses(self, values: IntArray, blanket: bool) -> Array:
        """Masses of groups of reports under distinct sorted `values`, one row each, and one for inf_x mu_x.

        Within a group the ratios of these rows are constant; those to the last one only if `blanket`.
        """

    @abstractmethod
    def _drawn(self, values: IntArray, rng: np.random.Generator) -> NDArray[Any]:
        """One report for each of the values, which lie in [0, inputs)."""

    def sample(self, x: ArrayLike, rng: np.random.Generator) -> NDArray[Any]:
        """One independent report for every entry of `x`, integers in 0 ... inputs-1."""
        return self._drawn(integer_array("x", x, self.inputs), generator(rng))

    def joint_law(self, inputs: Sequence[int], *, blanket: bool = False) -> Array:
        """Masses of groups of reports, shape (len(inputs), groups), read-only.

        Inputs may repeat, and be any that `kinds` names. With `blanket`, one more row: the mass of inf_x mu_x,
        which sums to gamma (groups are then finer). Every row is accurate to about 1e-14 relative in each entry.
        """
        distinct, index = several(inputs, self._codewords)
        masses = self._masses(distinct, blanket)[np.append(index, -1) if blanket else index]
        if self._exact:
            return merged(masses)
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

    def pair_laws(self) -> Iterator[Array]:
        """Masses under two inputs and inf_x mu_x, shape (3, groups), for every kind of unordered pair of inputs.

        The last row sums to gamma; groups that neither input can reach are left out.
        """
        # Least inputs: of the two orders of a pair, at least one is listed with first < second.
        for pair in self.ordered_pairs():
            if pair[0] < pair[1]:
                law = self.joint_law(pair, blanket=True)
                yield read_only(law[:, law[:2].any(axis=0)])

    def slot_laws(self, side: Side = Side.UPPER, truncated_mass: float = 0.0, *, refined: float = 1.0) -> list[Array]:
        """The target's two laws next to the blanket, for every kind of pair in either order; exact on any side."""
        found = []
        for first, second, blanket in self.pair_laws():
            forward, reverse = (grouped([*order, blanket]) for order in ((first, second), (second, first)))
            found += [forward] if np.array_equal(forward, reverse) else [forward, reverse]
        return found

    def attack_law(
        self, first: float, second: float, others: float, *, truncated_mass: float = 1e-15, refined: float = 1.0
    ) -> Array:
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
            laws = (np.array([one, two, blanket / math.fsum(blanket), other]) for one, two, other, blanket in joint)
            yield Types(pair, "blanket", tuple(map(read_only, laws)))


@dataclass(frozen=True, kw_only=True)
class ValuesRandomizer(FiniteRandomizer):
    """The values 0 ... k-1 with a local epsilon that is given: what most randomizers begin with.

    k: number of values, at least 2. eps0: local epsilon, in (0, 700].
    """

    k: Annotated[int, partial(integer_in, lowest=2)]
    eps0: LocalEpsilon


def several(inputs: Sequence[int], count: int) -> tuple[IntArray, IntArray]:
    """(distinct values, index of each input among them), checked to lie in [0, count)."""
    values = integer_array("inputs", inputs, count)
    if not (values.ndim == 1 and values.size > 0):
        raise ValueError(f"inputs must be a sequence of at least one input, got {inputs!r}")
    distinct, index = np.unique(values, return_inverse=True)
    return distinct, index.reshape(-1)


def grouped(masses: ArrayLike) -> Array:
    """Rows (first, second, others): groups with exactly equal ratios to the others' law merged, in a fixed order."""
    whole = np.asarray(masses, dtype=np.float64)
    return merged(whole, lambda seen: seen / np.where(seen[2] > 0.0, seen[2], seen[0] + seen[1]))


def merged(masses: Array, key: Callable[[Array], Array] = lambda seen: seen / seen.max(axis=0)) -> Array:
    """Columns with equal keys, their ratios by default, are added up; columns without mass are left out."""
    seen = masses[:, np.any(masses > 0, axis=0)]
    keys = key(seen)
    order = np.lexsort(keys[::-1])
    keys = keys[:, order]
    starts = np.flatnonzero(np.append(True, np.any(keys[:, 1:] != keys[:, :-1], axis=0)))
    return read_only(np.add.reduceat(seen[:, order], starts, axis=1))


ROW_SUM_TOLERANCE = 1e-9  # how far the sum of a given row may be from 1; rows are then divided by their sums
SAME_SUM = 2.0**-51  # rounding of the sum of a normalised row: 2^-53 per entry, on average over a row, and of the sum
NOISES = {"Laplace": "eps0", "Gaussian": "sigma"}  # local randomizers named as a mechanism is, and what they take
TYPES_INPUTS, MOST_INPUTS = 16, 64  # for which the swap theorem is asked with several shared laws, and at all


@dataclass(frozen=True, init=False)
class DiscreteRandomizer(FiniteRandomizer):
    """The randomizer whose output law is `matrix`: rows are inputs, columns are reports.

    matrix: array-like of shape (inputs >= 2, outputs >= 1), entries >= 0, rows that sum to 1 within
    1e-9 (they are then normalised). Stored as a tuple of tuples, so that the object is hashable.
    eps0, p and q are inf if some report is possible under one input only. Identical rows give
    eps0 = 0, tv = 0, gamma = 1. Raises TypeError or ValueError for anything else.
    """

    mass_error, _exact = 1e-15, True

    matrix: tuple[tuple[float, ...], ...]

    def __init__(self, matrix: ArrayLike) -> None:
        rows = real_array("matrix", matrix)
        if not (rows.ndim == 2 and rows.shape[0] >= 2 and rows.shape[1] >= 1):
            raise ValueError(f"matrix must have shape (inputs >= 2, outputs >= 1), got {rows.shape}")
        if not bool(np.all((rows >= 0) & (rows <= 1 + ROW_SUM_TOLERANCE))):
            raise ValueError(f"matrix must hold probabilities, got {rows.min()} ... {rows.max()}")
        sums = np.array([math.fsum(row) for row in rows])
        if not bool(np.all(np.abs(sums - 1) <= ROW_SUM_TOLERANCE)):
            worst = int(np.argmax(np.abs(sums - 1)))
            raise ValueError(f"matrix: row {worst} must sum to 1, got {float(sums[worst])!r}")
        # Rows that sum to 1 within rounding stay: a matrix that was normalised comes back the same.
        sums[np.abs(sums - 1) <= SAME_SUM] = 1.0
        rows = rows / sums[:, np.newaxis]
        settle(self, matrix=tuple(tuple(map(float, row)) for row in rows))

    def __getstate__(self) -> dict[str, object]:
        """The matrix alone: a pickled array would come back writable."""
        return {"matrix": self.matrix}

    @property
    def eps0(self) -> float:  # type: ignore[override]
        """Log of the largest ratio in a column; 0 for identical rows, inf where the ratio is unbounded."""
        high, low = self.law().max(axis=0), self.law().min(axis=0)
        possible = high > 0
        with np.errstate(divide="ignore", over="ignore"):
            return math.log(max(1.0, float(np.max(high[possible] / low[possible]))))

    @cached_property
    def tv(self) -> float:  # type: ignore[override]
        """Largest total variation of two rows. O(inputs^2 outputs) time on the first call."""
        law = self.law()
        farthest = [law[np.argmax(np.abs(row - law).sum(axis=1))] for row in law]
        return min(1.0, max(0.5 * math.fsum(np.abs(row - far)) for row, far in zip(law, farthest, strict=True)))

    @property
    def inputs(self) -> int:
        return len(self.matrix)

    def law(self) -> Array:
        """The matrix as an array of shape (inputs, reports), read-only."""
        return self._law

    def _masses(self, values: IntArray, blanket: bool) -> Array:
        return np.vstack([self.law()[values], self.law().min(axis=0)])

    def kinds(self, given: Sequence[int] = ()) -> Sequence[int]:
        """All inputs: nothing is known about symmetries."""
        return range(self.inputs)

    def shared_values(self, first: int, second: int) -> Sequence[int]:
        """The target's inputs and the one that tells most about it if all others hold it.

        That is the input w of the largest sum of (R_first - R_second)^2 / R_w.
        """
        square = (self.law()[first] - self.law()[second]) ** 2
        seen = square > 0
        told = np.sum(square[seen] / self.law()[:, seen], axis=1)
        return sorted({first, second, int(np.argmax(told))})

    def attacks(self, most: int) -> Iterable[tuple[int, int, int]]:
        """Where they are too many, those that tell most: of the largest E L^2, L = (R_first - R_second)/R_others.

        And of the largest E max(L, 0)^2 farther out, at s = e^(eps0/2).
        """
        count = self.inputs
        if (count * (count - 1)) * count <= most or not math.isfinite(self.eps0):
            return super().attacks(most)
        found: dict[tuple[int, int, int], None] = {}
        law = self.law()[:, self.law().max(axis=0) > 0.0]
        for s, least in ((1.0, -math.inf), (math.exp(0.5 * self.eps0), 0.0)):
            told = np.array([np.maximum(row - s * law, least) ** 2 @ (1.0 / law).T for row in law])
            best = np.argsort(-told, axis=None)[: most // 2]
            triples = np.transpose(np.unravel_index(best, told.shape)).tolist()
            found |= {(first, second, others): None for first, second, others in triples if first != second}
        return list(found)

    def types(self, users: int = 1) -> Iterator[Types]:
        """None where the swap theorem does not apply: if a report is impossible under one input only.

        Beyond 16 inputs V is the law of the target's first one, and laws are rows of the matrix as they are; beyond
        64 inputs there are none, since the number of laws is of the order of inputs^3.
        """
        if not math.isfinite(self.eps0) or self.inputs > MOST_INPUTS:
            return
        if self.inputs <= TYPES_INPUTS:
            yield from super().types()
            return
        law = merged(self.law())
        for pair, (first, second) in enumerate(self.ordered_pairs()):
            yield Types(pair, "first", tuple((law[first], law[second], law[first], other) for other in law))

    def _drawn(self, values: IntArray, rng: np.random.Generator) -> IntArray:
        reports = np.empty(values.shape, dtype=np.int64)
        for value in np.unique(values):
            here = values == value
            reports[here] = rng.choice(self.law().shape[1], int(here.sum()), p=self.law()[value])
        return reports

    @cached_property
    def _law(self) -> Array:
        return read_only(np.array(self.matrix))


def as_randomizer(value: Any) -> LocalRandomizer:
    """A randomizer as it is, the matrix of a law wrapped; TypeError, which says what else may be given, otherwise."""
    if isinstance(value, (np.ndarray, list, tuple)):
        return DiscreteRandomizer(value)
    if not isinstance(value, LocalRandomizer):
        name = type(value).__name__
        if name in NOISES:
            raise TypeError(
                f"randomizer must be the noise of one user, randomizers.{name}({NOISES[name]}=...), got the noise of a"
                f" curator, {value!r}"
            )
        raise TypeError(
            "randomizer must be one of pld_shuffle.randomizers or the matrix of its law (a row of probabilities for"
            f" each input), got {value!r}; of another one give what is known: ShuffledLDP(eps0, n), or with its total"
            " variation ShuffledRandomizer(n, eps0=..., tv=...)"
        )
    return value


def known_randomizer(name: str, value: Any) -> LocalRandomizer:
    """`value`, if its shuffled reports can be analysed."""
    known = as_randomizer(value)
    if known.unhidden is not None:
        raise ValueError(f"{name}: {known.unhidden}")
    return known
