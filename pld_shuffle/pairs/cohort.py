"""Which of the users send a report in a round, hidden from the adversary: what all sampling schemes come down to.

A scheme (`mechanisms.sampling`) is a `Cohort`; every pair of the shuffle model knows what to do with one
(`Pair.sampled`). Two numbers and a yes or no are enough for the schemes we know (docs/swap.md, Theorem C):

* `rate`: the target belongs to the cohort of n with this probability. A target outside of it is like any other user.
* `presence`: a member of the cohort sends its report with this probability, independently of all others. "Absent" is
  one more report, which everybody makes alike; how many are absent is visible.
* `certain`: the target is never absent. Then it covers any dropout of the target's own, and others who are each present
  with a probability of their own, at least `presence` (docs/swap.md, "Unequal dropouts").
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..numerics.tuning import SIZE_ZONE
from ..numerics.validation import unit_interval

Array = NDArray[np.float64]


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


def zoned(size: float) -> float:
    """A number that all sizes within SIZE_ZONE share."""
    return math.exp(math.floor(math.log(size) / SIZE_ZONE) * SIZE_ZONE)
