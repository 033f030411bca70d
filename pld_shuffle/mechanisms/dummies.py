"""Dummy reports next to true ones: every user also sends uniformly random values, which nobody can tell from others.

A dummy is a user whose answer is always random. So the labels of k-ary randomised response are all there is
(docs/theory.md, section 2): another user's report is a label with probability gamma, a dummy for certain. How many
dummies a user sends does not depend on its value. For whoever sees which of the other users' messages are random the
pair is exact; with gamma = 0 that is everybody who knows their values, as those can be taken off.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar

from ..numerics.sides import Bounds
from ..numerics.validation import between, integer_in, users
from ..pairs.mixed_coins import LabelClass, MixedCoins
from .base import Mechanism, said
from .mixed_budgets import answers


@dataclass(frozen=True, repr=False)
class DummyReports(Mechanism):
    """n users shuffle k-ary randomised responses, and `dummies` uniformly random values each.

    Parameters
    ----------
    k : values a user can have, at least 2. n : users, the target included, who follow the protocol.
    dummies : d > 0 from every user: the integer part for certain, and one more with probability the rest.
    gamma : probability that a user's own report is a uniformly random value, in [0, 1); 0 is the value itself.

    Raises ValueError or TypeError. Complexity: that of `MixedRR`.

    >>> from pld_shuffle import Accountant
    >>> round(Accountant().compose(DummyReports(k=16, n=10_000, dummies=1.0)).get_epsilon(1e-6), 3)
    0.217
    """

    k: int
    n: int
    dummies: float
    gamma: float = 0.0

    unsampled = "no pair is known for a hidden cohort with dummies"

    CHECKS: ClassVar = {
        "k": partial(integer_in, lowest=2), "n": users,
        "dummies": between(1e-12, 1e6), "gamma": between(0.0, 1.0, "[)"),
    }  # fmt: skip

    @cached_property
    def pair(self) -> MixedCoins:  # type: ignore[override]
        k, gamma, whole = self.k, self.gamma, int(self.dummies)
        rest = self.dummies - whole
        classes = [
            LabelClass(self.n - 1, gamma, 1.0 - gamma),
            LabelClass(self.n * whole, 1.0, 0.0),
            LabelClass(self.n, rest, 1.0 - rest),
        ]
        loss = math.log1p(k * (1.0 - gamma) / gamma) if gamma > 0.0 else math.inf
        held = tuple(part for part in classes if part.number > 0 and part.rate > 0.0)
        return answers(k, gamma, 1.0 - gamma, held, Bounds(loss * (1.0 - 4e-15), loss * (1.0 + 4e-15)))

    def assumptions(self) -> dict[str, str]:
        return said(
            f"exact labels of {self.k}-ary randomised response and of {self.dummies:g} dummies a user",
            sampling="all n users take part and send their dummies; values are dropped at random by nobody",
        )
