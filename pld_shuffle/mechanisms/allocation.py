"""Epochs of training whose steps hide the user: random allocation, and shuffled batches (docs/shuffled_batches.md).

*Random allocation*, also known as balls-and-bins sampling: every user's contribution enters one of k steps, uniformly,
and nobody learns which. *Shuffled batches*: an epoch as it is really run, a fresh permutation cut into batches. The
others' contributions are the adversary's choice here: a batch that holds the target holds one of the others less. That
is why it costs more than random allocation, and far more than the Poisson sampling that is usually reported (Chua et
al. 2024).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Annotated

from ..composition.curve import ComposedPair, Curve
from ..numerics.sides import Bounds, Side, above, below
from ..numerics.validation import PositiveFloat, PositiveInt, choice, integer_in
from ..pairs.allocation import GaussianSteps, HiddenStepPair, PairSteps, StepsLaw
from ..pairs.batches import BatchesAttack, BatchesBound
from ..pairs.discrete import NOTHING, OrderedPair
from ..pairs.gaussian import GaussianPair
from ..pairs.pair import Attacks, Pair
from ..pairs.profile import BothOrders, ProfilePair, Several
from ..pairs.selected_steps import selected_steps
from ..randomizers.base import settle
from .base import ZERO_OUT, Mechanism, ZeroOut, as_mechanism
from .central import Gaussian, Laplace
from .imported import DiscretePair

RELATIONS = (ZERO_OUT, "replace-one")
MOST_STEPS = 10**10
BLOCKS_RTOL = 2e-3  # of the delta of several blocks
MOST_FOLLOWED = 32  # selected steps of which attacks see more than a sum
LEAST_SIGMA = 0.1  # of the noise over the sensitivity: with less, masses underflow
PLAIN_SIGMA = 0.25  # below it sums of small likelihood ratios are rounded, and known steps may be the tighter bound
NEIGHBOURS = {
    ZERO_OUT: "one user's contribution, of norm at most the sensitivity, is replaced by nothing (zero-out)",
    "replace-one": "one user's contribution is replaced by another one, both of norm at most the sensitivity",
}


@dataclass(frozen=True, repr=False)
class RandomAllocation(Mechanism):
    """Every user's contribution enters exactly `selected` of `steps` steps, drawn uniformly and hidden.

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
    steps: Annotated[int, partial(integer_in, lowest=1, highest=MOST_STEPS)]
    selected: PositiveInt = 1
    relation: Annotated[str, partial(choice, options=RELATIONS)] = ZERO_OUT  # type: ignore[assignment]

    def __post_init__(self) -> None:
        super().__post_init__()
        kind = as_mechanism(self.mechanism)
        if self.selected > self.steps:
            raise ValueError(f"selected must be at most steps = {self.steps}, got {self.selected!r}")
        if isinstance(kind, ZeroOut) and isinstance(kind.mechanism, Gaussian):
            kind = kind.mechanism
            settle(self, mechanism=kind)
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
        kind = self.mechanism
        if isinstance(kind, Gaussian):
            known = self._noise(kind, self.selected)
            if not self.hidden:
                return known
            if kind.sigma / kind.sensitivity < PLAIN_SIGMA:
                return Several((self._hidden_pair, known))
        return self._hidden_pair

    @cached_property
    def _hidden_pair(self) -> Pair:
        """That of hidden steps, or of blocks of them."""
        if self.mechanism.pair.scale == 0.0:  # steps that tell nothing
            return self.mechanism.pair
        one: ProfilePair = self._block
        if self.selected > 1:
            one = ComposedPair(Curve(one, self.selected, BLOCKS_RTOL))
        return one if one.reverse is None else BothOrders((one, one.reverse))

    def _noise(self, kind: Gaussian, steps: int) -> GaussianPair:
        """Of the sum of `steps` outputs, `selected` of them with the contribution."""
        distance = 1 if self.relation == ZERO_OUT else 2
        mu = distance * self.selected * kind.sensitivity / kind.sigma
        square = mu * mu / steps
        return GaussianPair(Bounds(below(square, 12.0), above(square, 12.0)))

    @cached_property
    def attack_pair(self) -> Pair:  # type: ignore[override]
        if self.selected == 1 or isinstance(self.pair, GaussianPair):
            return self.pair if isinstance(self.pair, GaussianPair) else self._hidden_pair
        found: list[Pair] = []
        if self.selected <= MOST_FOLLOWED:
            orders = [order for order in (self._block, self._block.reverse) if order is not None]
            followed = [selected_steps(replace(one.law, count=self.steps), self.selected) for one in orders]
            found += [one for one in followed if one is not None]
        if isinstance(self.mechanism, Gaussian):
            found.append(self._noise(self.mechanism, self.steps))
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


@dataclass(frozen=True, repr=False)
class ShuffledBatches(Mechanism):
    """One epoch of noisy sums over the batches of a fresh, hidden, uniform permutation of the records.

    sigma : standard deviation of the noise in units of the largest norm of one contribution (the noise multiplier).
    batches : how many there are, 1 to 10^10.
    batch_size : records in each of them.
    records : how many there are in all. Those that no batch has are left out of this epoch, and nobody learns which
        ("drop last"). Their number counts: see below. With fewer than batches * batch_size the last batch is smaller.
    relation : "zero-out" (default): one record contributes, or nothing in its place. "replace-one": another record.

    Every contribution may depend on all earlier outputs. With one record or more left out, Theorems D, G and H of
    docs/shuffled_batches.md bound all datasets in any dimension; if every record is used, Theorem S does. The attack,
    all others at minus the target's contribution, is within one per cent of them from 1,000 batches on with a record
    left out; with every record used (zero-out) within five from 100 on at sigma = 2, and farther off with fewer, up to
    the noise of a known batch where sigma is small. The lower end is the attack's in all cases. (A smaller last batch
    makes the target's batch easier to guess: the attack on equal ones is a lower end, too, by Jensen's inequality.) One
    epoch is one entry of a ledger.

    Raises ValueError or TypeError naming the argument. The profile costs some ten games of a tenth of a second and
    integrals of milliseconds, whatever is asked; if every record is used, ten times as much.

    >>> from pld_shuffle import Accountant
    >>> epoch = ShuffledBatches(sigma=1.5, batches=1000, batch_size=49, records=50_000)
    >>> found = Accountant().compose(epoch).epsilon_bounds(1e-6)
    >>> [round(end, 3) for end in found]
    [0.592, 0.595]
    """

    unsampled = "everybody must take part in an epoch"

    sigma: PositiveFloat
    batches: Annotated[int, partial(integer_in, lowest=1, highest=MOST_STEPS)]
    batch_size: PositiveInt
    records: PositiveInt
    relation: Annotated[str, partial(choice, options=RELATIONS)] = ZERO_OUT  # type: ignore[assignment]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.sigma >= LEAST_SIGMA:
            raise ValueError(f"sigma must be at least {LEAST_SIGMA:g}, got {self.sigma!r}")
        least = (self.batches - 1) * self.batch_size + 1
        if self.records < least:
            raise ValueError(f"records must be at least {least}, or a batch has none, got {self.records!r}")

    @property
    def left_out(self) -> int:
        """Records that no batch of an epoch has."""
        return max(0, self.records - self.batches * self.batch_size)

    @property
    def hidden(self) -> bool:
        return self.batches > 1

    @property
    def _rate(self) -> Bounds:
        """The probability of being in a batch."""
        exact = Fraction(self.records - self.left_out, self.records)
        near = float(exact)
        if near == exact:
            return Bounds(near, near)
        return Bounds(*sorted((near, math.nextafter(near, 0.0 if near > exact else 1.0))))

    @cached_property
    def pair(self) -> Pair:  # type: ignore[override]
        distance = 1 if self.relation == ZERO_OUT else 2
        steps, spare = GaussianSteps(self.sigma, 1, 1 - distance, 0), self.left_out > 0
        uneven = self.records < self.batches * self.batch_size
        one = BatchesBound(steps, self.batches, self._rate, spare, uneven)
        if self.batches == 1 or not (spare or one.covered):
            return Gaussian(sigma=self.sigma, sensitivity=float(distance)).pair
        back: ProfilePair | None = one.reverse
        return one if back is None else BothOrders((one, back))

    @cached_property
    def attack_pair(self) -> Pair:  # type: ignore[override]
        steps = GaussianSteps(self.sigma, 1, 0 if self.relation == ZERO_OUT else -1, -1)
        return BatchesAttack(StepsLaw(steps, self.batches, self._rate), half=Side.LOWER)

    def assumptions(self) -> dict[str, str]:
        how = "Theorem D" if self.left_out else "Theorem S"
        how += " of docs/shuffled_batches.md, for all other records and in any dimension"
        if isinstance(self.pair, GaussianPair):
            how = (
                "noise of a known batch: no amplification is proved here for so few batches and so little noise;"
                " leave one record out of every epoch, as a batch size one smaller does, and it is"
            )
        return {
            "neighbours": NEIGHBOURS[self.relation],
            "adversary": "sees the noisy sums of all batches and knows all other records, not the order",
            "analysis": how,
            "sampling": f"a fresh uniform permutation of {self.records} records, cut into {self.batches} batches of"
            f" {self.batch_size}; {self.left_out} are left out, and nobody learns which; the number of records is"
            " the same for both datasets",
        }
