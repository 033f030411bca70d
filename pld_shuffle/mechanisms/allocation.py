"""Random allocation: every user's contribution enters one of k steps, uniformly, and nobody learns which.

Also known as balls-and-bins sampling. The pair is exact for Gaussian steps and one selected step
(docs/shuffled_batches.md, section 2): the mean of the steps' likelihood ratios.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import ClassVar

from ..composition.curve import ComposedPair, Curve
from ..numerics.rounding import above, below
from ..numerics.sides import Bounds
from ..numerics.validation import choice, integer_in, positive_int
from ..pairs.allocation import GaussianSteps, HiddenStepPair, PairSteps, StepsLaw
from ..pairs.discrete import NOTHING, OrderedPair
from ..pairs.gaussian import GaussianPair
from ..pairs.pair import Attacks, Pair
from ..pairs.profile import BothOrders, ProfilePair
from ..pairs.selected_steps import selected_steps
from .base import ZERO_OUT, Mechanism, as_mechanism
from .central import Gaussian, Laplace
from .imported import DiscretePair
from .zero_out import ZeroOut

RELATIONS = (ZERO_OUT, "replace-one")
MOST_STEPS = 10**10
BLOCKS_RTOL = 2e-3  # of the delta of several blocks
MOST_FOLLOWED = 32  # selected steps of which attacks see more than a sum
LEAST_SIGMA = 0.1  # of the noise over the sensitivity: with less, masses underflow
NEIGHBOURS = {
    ZERO_OUT: "one user's contribution, of norm at most the sensitivity, is replaced by nothing (zero-out)",
    "replace-one": "one user's contribution is replaced by another one, both of norm at most the sensitivity",
}


@dataclass(frozen=True, repr=False)
class RandomAllocation(Mechanism):
    """Every user's contribution enters exactly `selected` of `steps` steps, drawn uniformly and hidden.

    Parameters
    ----------
    mechanism : one step. `Gaussian`, whose sensitivity is the bound on the norm of one contribution. With the zero-out
        relation also `Laplace`, `DiscretePair`, or any mechanism for that relation: its pair must dominate a step with
        the contribution against one without it.
    steps : how many there are, 1 to 10^10. They may be chosen adaptively.
    selected : in how many of them a user takes part.
    relation : "zero-out" (default): a user's contribution is there or not. "replace-one", for `Gaussian` only: it is
        replaced by another one (exact in any dimension).

    One epoch is one entry of a ledger; another one draws its steps anew. With `selected` = t > 1 the steps are at
    worst t blocks of at least floor(steps/t) in a random composition that is revealed, one hidden step in each: an
    upper end. The lower end is then the sum of all outputs (of Gaussian steps; of others, 0). If the same step is used
    in every epoch (JAX Privacy's `BallsInBinsSampling` over several cycles), it is one entry with
    `Gaussian(sigma=sigma / sqrt(epochs))`.

    Raises ValueError or TypeError naming the argument; ValueError for noise below a tenth of the sensitivity. One
    epsilon costs less than ten integrals of a few milliseconds, whatever `steps` is; more where single steps can spend
    it all (few steps, or sigma below 1/2).

    >>> from pld_shuffle import Accountant, Gaussian
    >>> hidden = RandomAllocation(Gaussian(sigma=1.0), steps=1000)
    >>> round(Accountant().compose(hidden).get_epsilon(1e-6), 4)
    0.1717
    """

    unsampled = "everybody must take part in random allocation"

    mechanism: Mechanism
    steps: int
    selected: int = 1
    relation: str = ZERO_OUT  # type: ignore[assignment]

    CHECKS: ClassVar = {
        "steps": partial(integer_in, lowest=1, highest=MOST_STEPS), "selected": positive_int,
        "relation": partial(choice, options=RELATIONS),
    }  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        kind = as_mechanism(self.mechanism)
        if self.selected > self.steps:
            raise ValueError(f"selected must be at most steps = {self.steps}, got {self.selected!r}")
        if isinstance(kind, ZeroOut) and isinstance(kind.mechanism, Gaussian):
            kind = kind.mechanism
            object.__setattr__(self, "mechanism", kind)
        if isinstance(kind, Gaussian):
            if not kind.sigma / kind.sensitivity >= LEAST_SIGMA:
                raise ValueError(f"mechanism must have sigma >= {LEAST_SIGMA:g} sensitivity, got {kind!r}")
        elif self.relation != ZERO_OUT:
            raise ValueError(
                f"relation must be {ZERO_OUT!r} for steps other than Gaussian, got {self.relation!r} with {kind!r}"
            )
        elif not (isinstance(kind, (Laplace, DiscretePair)) or kind.relation == ZERO_OUT):
            raise TypeError(
                f"mechanism must be Gaussian, Laplace, DiscretePair, or one for the zero-out relation, got {kind!r}"
            )
        elif not (kind.pair.symmetric or isinstance(kind.pair, (OrderedPair, ProfilePair))):
            raise TypeError(f"mechanism must have a pair for both orders, got {kind!r}")

    @property
    def hidden(self) -> bool:
        return self.steps > self.selected

    @cached_property
    def _block(self) -> HiddenStepPair:
        """One order of a block of steps with one selected."""
        kind, count = self.mechanism, self.steps // self.selected
        if not isinstance(kind, Gaussian):
            return HiddenStepPair(StepsLaw(PairSteps(kind.pair), count))
        noise = kind.sigma / kind.sensitivity
        steps = GaussianSteps(noise, 1, 0 if self.relation == ZERO_OUT else -1, 0)
        return HiddenStepPair(StepsLaw(steps, count))

    @cached_property
    def pair(self) -> Pair:  # type: ignore[override]
        if self.steps == self.selected and isinstance(self.mechanism, Gaussian):
            return _noise(self.mechanism, self._distance, self.selected, self.selected)
        if self.mechanism.pair.scale == 0.0:  # steps that tell nothing
            return self.mechanism.pair
        one: ProfilePair = self._block
        if self.selected > 1:
            one = ComposedPair(Curve(one, self.selected, BLOCKS_RTOL))
        return one if one.reverse is None else BothOrders((one, one.reverse))

    @property
    def _distance(self) -> int:
        return 1 if self.relation == ZERO_OUT else 2

    @cached_property
    def attack_pair(self) -> Pair:  # type: ignore[override]
        if self.selected == 1 or isinstance(self.pair, GaussianPair):
            return self.pair
        found: list[Pair] = []
        if self.selected <= MOST_FOLLOWED:
            orders = [order for order in (self._block, self._block.reverse) if order is not None]
            followed = [selected_steps(replace(one.law, count=self.steps), self.selected) for one in orders]
            found += [one for one in followed if one is not None]
        if isinstance(self.mechanism, Gaussian):
            found.append(_noise(self.mechanism, self._distance, self.steps, self.selected))
        return Attacks.of(found) if found else NOTHING

    def assumptions(self) -> dict[str, str]:
        blocks = "" if self.selected == 1 else f", by {self.selected} blocks whose composition is revealed"
        return {
            "neighbours": NEIGHBOURS[self.relation],
            "adversary": "sees the outputs of all steps, not who took part in which; the curator is trusted",
            "analysis": f"exact pair of random allocation: the mean of the steps' likelihood ratios{blocks}",
            "sampling": f"every user in {self.selected} of {self.steps} steps, uniformly, independently of all others"
            " and of the data; later steps may depend on earlier outputs",
        }


def _noise(kind: Gaussian, distance: int, steps: int, selected: int) -> GaussianPair:
    """Of the sum of `steps` outputs, `selected` of them with the contribution."""
    mu = distance * selected * kind.sensitivity / kind.sigma
    square = mu * mu / steps
    return GaussianPair(Bounds(below(square, 12.0), above(square, 12.0)))


__all__ = ["RandomAllocation"]
