"""What a training run is, as its configuration says it, and what its sampler is accounted as (docs/howto/training.md).

The noise multiplier is the noise's standard deviation over the clipping norm, of the *sum* of a batch's clipped
contributions. Neighbours: zero-out of one record; its contribution is there, or nothing is in its place. Batches of
fixed size are accounted for replacement, which covers zero-out: somebody else comes in for the absent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

from .accountant import Accountant
from .fields import SAMPLERS
from .mechanisms import Gaussian, Mechanism, PoissonGaussian, RandomAllocation, ShuffledBatches, Subsampled, ZeroOut
from .numerics.validation import Checked, PositiveFloat, PositiveInt, choice, flag


@dataclass(frozen=True)
class Training(Checked):
    """A run of DP-SGD. Raises ValueError or TypeError naming the argument.

    data_size, batch_size : records, in all and in a batch (in the mean, with Poisson sampling).
    epochs : passes over the data, each of data_size // batch_size steps, or one more for a smaller last batch.
    noise_multiplier : standard deviation of the noise on a batch's sum over the clipping norm.
    sampler : one of `SAMPLERS`; docs/howto/training.md says what each is, and what is proved of it.
    drop_last : whether records that fill no whole batch are left out of an epoch.
    """

    data_size: PositiveInt
    batch_size: PositiveInt
    epochs: PositiveInt
    noise_multiplier: PositiveFloat
    sampler: Annotated[str, partial(choice, options=SAMPLERS)]
    drop_last: Annotated[bool, flag] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch_size > self.data_size:
            raise ValueError(f"batch_size must be at most data_size = {self.data_size}, got {self.batch_size!r}")

    @property
    def steps(self) -> int:
        """Steps of an epoch."""
        whole, rest = divmod(self.data_size, self.batch_size)
        return whole if self.drop_last or rest == 0 else whole + 1

    @property
    def rounds(self) -> tuple[Mechanism, int]:
        """The mechanism, and how often it is run."""
        noise = self.noise_multiplier
        share = min(1.0, math.nextafter(self.batch_size / self.data_size, 1.0))
        every_step = self.epochs * self.steps
        if self.sampler == "shuffle":
            return ShuffledBatches(noise, self.steps, self.batch_size, self.data_size), self.epochs
        if self.sampler == "balls-and-bins":
            return RandomAllocation(Gaussian(sigma=noise), self.steps), self.epochs
        if self.sampler == "cyclic":
            return ZeroOut(Gaussian(sigma=noise)), self.epochs
        if self.sampler == "poisson" or share == 1.0:
            return ZeroOut(PoissonGaussian(noise, share)), every_step
        return Subsampled(Gaussian(sigma=noise, sensitivity=2.0), rate=share), every_step

    @property
    def claimed(self) -> Training:
        """The same with Poisson sampling: what is usually reported, whatever was run."""
        return replace(self, sampler="poisson")


def from_training(
    data_size: int, batch_size: int, epochs: int, noise_multiplier: float, *,
    sampler: str, drop_last: bool = True, rtol: float = 1e-3,
) -> Accountant:  # fmt: skip
    """An accountant that has composed a training run; parameters as for `Training`, rtol as for `Accountant`.

    >>> acc = from_training(50_000, 499, 1, 1.5, sampler="shuffle")
    >>> as_if = from_training(50_000, 499, 1, 1.5, sampler="poisson")
    >>> round(acc.get_epsilon(1e-6), 2), round(as_if.get_epsilon(1e-6), 2)
    (1.97, 0.35)
    """
    run = Training(data_size, batch_size, epochs, noise_multiplier, sampler, drop_last)
    return Accountant(rtol=rtol).compose(*run.rounds)


__all__ = ["SAMPLERS", "Training", "from_training"]
