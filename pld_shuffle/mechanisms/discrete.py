"""A mechanism whose pair is given by its probability mass functions: H_s = sum over outcomes of (P - s Q)_+.

Both orders are covered by the larger of the two profiles, which is the profile of some pair: docs/theory.md,
section 9. How atoms are made of masses is in `pairs.discrete`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..pairs.discrete import EitherOrder, Losses, OrderedPair, checked_pmfs
from ..pairs.pair import Pair
from .base import Mechanism


@dataclass(frozen=True)
class DiscretePair(Mechanism):
    """A mechanism whose dominating pair is given by finite mass functions.

    Parameters
    ----------
    log_p, log_q : natural logarithms of the masses of P and Q, one entry per outcome (-inf for 0);
        each sums to 1 within 1e-9.
    symmetric : True (default) covers both orders, (P, Q) and (Q, P); False is the ordered pair alone, for a
        neighbouring relation whose datasets are in that order, or if both orders are composed.

    That the pair dominates what was run is the caller's claim. Raises ValueError or TypeError.

    >>> import math
    >>> pair = DiscretePair([math.log(0.75), math.log(0.25)], [math.log(0.25), math.log(0.75)])
    >>> round(pair.pair.max_loss.upper, 6)  # binary randomised response with eps0 = log 3
    1.098612
    """

    log_p: tuple[float, ...]
    log_q: tuple[float, ...]
    symmetric: bool = True

    def __post_init__(self) -> None:
        log_p, log_q = checked_pmfs(self.log_p, self.log_q)
        object.__setattr__(self, "log_p", tuple(log_p.tolist()))
        object.__setattr__(self, "log_q", tuple(log_q.tolist()))
        if not isinstance(self.symmetric, bool):
            raise TypeError(f"symmetric must be True or False, got {self.symmetric!r}")

    @cached_property
    def pair(self) -> Pair:
        log_p, log_q = np.array(self.log_p), np.array(self.log_q)
        one = Losses.of(log_p, log_q)
        return EitherOrder((one, Losses.of(log_q, log_p))) if self.symmetric else OrderedPair(one)

    def __repr__(self) -> str:
        return f"DiscretePair({len(self.log_p)} outcomes, symmetric={self.symmetric})"

    def assumptions(self) -> dict[str, str]:
        orders = "in either order" if self.symmetric else "in the given order"
        return {
            "neighbours": f"two neighbouring datasets, {orders}",
            "adversary": "sees one of the outcomes of the pair",
            "analysis": f"the given pair of {len(self.log_p)} outcomes dominates what was run",
            "sampling": "none besides what the pair accounts for",
        }
