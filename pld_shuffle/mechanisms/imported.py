"""Pairs that are given: by the mass functions of both laws, or by masses of losses that somebody else computed.

`DiscretePair`: both orders are covered by the larger of the two profiles (docs/theory.md, section 9).

`ImportedPair`: masses at positive losses on a lattice and at infinity, rounded pessimistically. They determine
delta(eps) for eps >= 0, and the pair is the symmetric one with that profile; for neighbouring relations that are
symmetric this is no loss. Both ends of a bracket enclose the *stated* pair, the upper end holds for what is behind it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Annotated

import numpy as np

from ..numerics.validation import PositiveFloat, PositiveInt, between, choice, flag, real_array
from ..pairs.discrete import EitherOrder, Losses, OrderedPair, checked_pmfs
from ..pairs.pair import Pair
from ..pairs.profile import ProfilePair, worst
from ..randomizers.base import settle
from .base import NEIGHBOURS, ZERO_OUT, Mechanism, said

#: Neighbouring relations a pair may have been computed for.
GIVEN = ("replace-one", "add-or-remove-one", "replace-special")


@dataclass(frozen=True, repr=False)
class DiscretePair(Mechanism):
    """A mechanism whose dominating pair is given by finite mass functions.

    log_p, log_q : natural logarithms of the masses of P and Q, one entry per outcome (-inf for 0);
        each sums to 1 within 1e-9.
    symmetric : True (default) covers both orders, (P, Q) and (Q, P); False is the ordered pair alone, for a
        neighbouring relation whose datasets are in that order, or if both orders are composed.

    That the pair dominates what was run is the caller's claim. With both orders it is the larger of the two at every
    epsilon and in every round. The lower end is that pair's, which neither order attains over several rounds.

    Raises ValueError or TypeError.

    >>> import math
    >>> pair = DiscretePair([math.log(0.75), math.log(0.25)], [math.log(0.25), math.log(0.75)])
    >>> round(pair.pair.max_loss.upper, 6)  # binary randomised response with eps0 = log 3
    1.098612
    """

    log_p: tuple[float, ...]
    log_q: tuple[float, ...]
    symmetric: Annotated[bool, flag] = True

    def __post_init__(self) -> None:
        log_p, log_q = checked_pmfs(self.log_p, self.log_q)
        settle(self, log_p=tuple(log_p.tolist()), log_q=tuple(log_q.tolist()))
        super().__post_init__()

    @cached_property
    def pair(self) -> Pair:
        log_p, log_q = np.array(self.log_p), np.array(self.log_q)
        one = Losses.of(log_p, log_q)
        return EitherOrder((one, Losses.of(log_q, log_p))) if self.symmetric else OrderedPair(one)

    def __repr__(self) -> str:
        return f"DiscretePair({len(self.log_p)} outcomes, symmetric={self.symmetric})"

    def assumptions(self) -> dict[str, str]:
        orders = "in either order" if self.symmetric else "in the given order"
        return said(
            f"the given pair of {len(self.log_p)} outcomes dominates what was run",
            neighbours=f"two neighbouring datasets, {orders}",
            adversary="sees one of the outcomes of the pair",
            sampling="none besides what the pair accounts for",
        )


@dataclass(frozen=True, repr=False)
class ImportedPair(Mechanism):
    """A symmetric pair with P-mass masses[i] at loss ``(low + i) * step`` and `infinity` at infinite loss.

    step : lattice spacing, positive.
    low : index of the first mass, at least 1: only positive losses are stated.
    masses : nonnegative, with `infinity` at most 1 (up to 1e-3 of rounding); may be empty.
    infinity : P-mass at infinite loss, in [0, 1].
    neighbours : one of `GIVEN`. Only one relation makes sense in a ledger; shuffle mechanisms have "replace-one".
    reverse : the pair of the other order, where it is another one, as for addition and removal: at every epsilon the
        larger profile counts, which bounds compositions in either order from above.

    Raises ValueError or TypeError naming the argument. A law costs O(log points) for each point of the profile.

    >>> from pld_shuffle import Accountant
    >>> pair = ImportedPair(step=0.5, low=2, masses=(0.731,), infinity=0.0, neighbours="replace-one")
    >>> round(Accountant().compose(pair).get_epsilon(0.1), 4)  # 1-DP, or a little less
    0.8529
    """

    step: PositiveFloat
    low: PositiveInt
    masses: tuple[float, ...]
    infinity: Annotated[float, between(0.0, 1.0)]
    neighbours: Annotated[str, partial(choice, options=GIVEN)]
    reverse: ImportedPair | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        masses = real_array("masses", self.masses)
        if masses.ndim != 1 or not np.all(masses >= 0.0):
            raise ValueError(f"masses must be nonnegative, of shape (points,), got {self.masses!r}")
        if not masses.sum() + self.infinity <= 1.0 + 1e-3:
            raise ValueError(f"masses must sum to at most 1 - infinity, got {masses.sum()!r}")
        held = np.flatnonzero(masses)
        last = int(held[-1]) + 1 if held.size else 0
        settle(self, masses=tuple(masses[:last].tolist()))
        if (other := self.reverse) is not None:
            if not isinstance(other, ImportedPair):
                raise TypeError(f"reverse must be an ImportedPair, got {other!r}")
            if other.neighbours != self.neighbours:
                raise ValueError(f"reverse must be for the same neighbours, got {other!r}")

    def __repr__(self) -> str:
        other = "" if self.reverse is None else f", reverse={self.reverse!r}"
        return (
            f"ImportedPair(step={self.step!r}, low={self.low!r}, masses=<{len(self.masses)}>,"
            f" infinity={self.infinity!r}, neighbours={self.neighbours!r}{other})"
        )

    @property
    def unsampled(self) -> str | None:  # type: ignore[override]
        """Two orders are no symmetric pair."""
        return None if self.reverse is None else "mechanism must have a symmetric pair to be subsampled"

    @property
    def relation(self) -> str:
        return ZERO_OUT if self.neighbours == "replace-special" else self.neighbours

    @cached_property
    def pair(self) -> ProfilePair:  # type: ignore[override]
        loss = self.step * np.arange(self.low, self.low + len(self.masses), dtype=np.float64)
        one = EitherOrder.mirrored(np.array(self.masses), loss, self.infinity)
        return one if self.reverse is None else worst([one, self.reverse.pair])

    def assumptions(self) -> dict[str, str]:
        return said(
            "imported masses, of which the upper end of a bracket carries over; their own rounding is not covered"
            + ("" if self.reverse is None else "; the worse of the two orders everywhere"),
            neighbours=NEIGHBOURS[self.relation],
            adversary="as where the pair was computed",
            sampling="as where the pair was computed",
        )
