"""Shuffled batches: an epoch of training as it is really run, a fresh permutation cut into batches.

The others' contributions are the adversary's choice here: a batch that holds the target holds one of the others less.
That is why it costs more than random allocation, and far more than the Poisson sampling that is usually reported
(Chua et al. 2024). Proofs: docs/shuffled_batches.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import ClassVar

from ..numerics.sides import Bounds, Side
from ..numerics.validation import choice, integer_in, positive_float, positive_int
from ..pairs.allocation import GaussianSteps, StepsLaw
from ..pairs.batches import BatchesAttack, BatchesBound
from ..pairs.gaussian import GaussianPair
from ..pairs.pair import Pair
from ..pairs.profile import BothOrders, ProfilePair
from .allocation import LEAST_SIGMA, MOST_STEPS, NEIGHBOURS, RELATIONS
from .base import ZERO_OUT, Mechanism
from .central import Gaussian


@dataclass(frozen=True, repr=False)
class ShuffledBatches(Mechanism):
    """One epoch of noisy sums over the batches of a fresh, hidden, uniform permutation of the records.

    Parameters
    ----------
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

    sigma: float
    batches: int
    batch_size: int
    records: int
    relation: str = ZERO_OUT  # type: ignore[assignment]

    CHECKS: ClassVar = {
        "sigma": positive_float, "batches": partial(integer_in, lowest=1, highest=MOST_STEPS),
        "batch_size": positive_int, "records": positive_int, "relation": partial(choice, options=RELATIONS),
    }  # fmt: skip

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
    def _uneven(self) -> bool:
        """Whether the last batch is smaller."""
        return self.records < self.batches * self.batch_size

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
        one = BatchesBound(steps, self.batches, self._rate, spare, self._uneven)
        if self.batches == 1 or not (spare or one.covered):
            return Gaussian(sigma=self.sigma, sensitivity=float(distance)).pair
        back: ProfilePair | None = one.reverse
        return one if back is None else BothOrders((one, back))

    @cached_property
    def attack_pair(self) -> Pair:  # type: ignore[override]
        second = 0 if self.relation == ZERO_OUT else -1
        steps = GaussianSteps(self.sigma, 1, second, -1)
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


__all__ = ["ShuffledBatches"]
