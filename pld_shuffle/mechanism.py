"""What the rest of the package asks of a mechanism, and the two ways of answering.

A mechanism is a frozen, hashable value with a proven dominating pair. `CrowdMechanism` names a `CrowdPair`
(tilted coins, see `crowd`); `ProfileMechanism` knows its privacy profile (see `profile`). Both have
symmetric pairs, so both can be subsampled (`on_cohort`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .atoms import placed
from .bracket import Bounds, Side
from .cells import crowd_pld, crowd_plds, largest_loss
from .crowd import CrowdPair, Resolution
from .pld import PLD
from .profile import MAX_DOTS, Dots, atoms, dot_rtol, dots
from .validation import positive_float

LARGEST_GROWTH = 1e300  # that a profile is asked for

Array = NDArray[np.float64]


class Mechanism(ABC):
    """One round of something with a proven dominating pair."""

    @property
    @abstractmethod
    def max_loss(self) -> float:
        """The largest finite privacy loss; inf if finite losses are unbounded."""

    @property
    def max_loss_below(self) -> float:
        """`max_loss` rounded the other way; the same if it is exact."""
        return self.max_loss * (1.0 - 4e-15)

    @property
    @abstractmethod
    def loss_scale(self) -> float:
        """Rough standard deviation of the loss, only to choose lattice steps; 0 for no loss."""

    @property
    def users(self) -> int | None:
        """Number of users whose reports are shuffled together; None for a central mechanism."""
        return None

    @property
    def relation(self) -> str:
        """The neighbouring relation the pair is for; one ledger holds one relation."""
        return "replace-one"

    @property
    def symmetric(self) -> bool:
        """Whether (P, Q) and (Q, P) have the same profile."""
        return True

    @property
    def core(self) -> Mechanism:
        """The mechanism that forms the laws: this one, unless it wraps another."""
        return self

    @abstractmethod
    def form(
        self, *, step: float, side: Side, resolution: Resolution, reach: float = math.inf
    ) -> PLD:
        """The law of the privacy loss on the lattice of `step`, certified on `side`."""

    def both(
        self, *, step: float, resolution: Resolution, reach: float = math.inf
    ) -> tuple[PLD, PLD]:
        """The (lower, upper) laws of `form`."""
        lower, upper = (
            self.form(step=step, side=side, resolution=resolution, reach=reach) for side in Side
        )
        return lower, upper

    @abstractmethod
    def assumptions(self) -> dict[str, str]:
        """What a guarantee for this mechanism rests on: neighbours, adversary, analysis, sampling."""

    def arguments(self) -> dict[str, Any]:
        """Keyword arguments that rebuild this mechanism: ``type(m)(**m.arguments()) == m``.

        By default a dataclass's fields.
        """
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init}  # type: ignore[arg-type]

    def on_cohort(self, rate: float) -> Mechanism:
        """The same on a hidden random cohort; TypeError if that is not proven for this mechanism."""
        raise TypeError(f"mechanism must have a symmetric pair to be subsampled, got {self!r}")

    def renyi_divergence(self, alpha: Any) -> Any:
        """Upper bound on the Renyi divergence of the pair at real orders alpha > 1; see `renyi`."""
        from .renyi import renyi_divergence

        return renyi_divergence(self, alpha)

    def renyi_exact(self, order: float) -> Bounds | None:
        """Bounds from a closed form, where there is one; None otherwise."""
        return None

    def pld(
        self, *, step: float | None = None, side: Side = Side.UPPER, missed: float = 1e-15
    ) -> PLD:
        """The privacy loss distribution of one round on one side.

        Parameters: step, the lattice spacing in units of loss (default: 1/200 of the loss's scale);
        side; missed, the P-mass that windows may leave out (an upper PLD has it at infinity).
        Raises ValueError/TypeError on bad arguments, MemoryError if the lattice would be too large.
        Crowd sizes within 1e-5 of each other share a bucket. Complexity O(sqrt n) per bucket.
        """
        if not isinstance(side, Side):
            raise TypeError(f"side must be a Side, got {side!r}")
        if step is None:
            step = self.loss_scale / 200.0 or 1.0
        step = positive_float("step", step)
        missed = positive_float("missed", missed)
        if not missed < 0.1:
            raise ValueError(f"missed must be below 0.1, got {missed!r}")
        return self.form(
            step=step, side=side, resolution=Resolution(missed=missed, crowd_width=1e-5)
        )


class Wrapper(Mechanism):
    """A mechanism that leaves the forming of laws to another one, its `core`."""

    @property
    @abstractmethod
    def core(self) -> Mechanism: ...

    @property
    def max_loss(self) -> float:
        return self.core.max_loss

    @property
    def max_loss_below(self) -> float:
        return self.core.max_loss_below

    @property
    def loss_scale(self) -> float:
        return self.core.loss_scale

    @property
    def users(self) -> int | None:
        return self.core.users

    @property
    def relation(self) -> str:
        return self.core.relation

    @property
    def symmetric(self) -> bool:
        return self.core.symmetric

    def form(
        self, *, step: float, side: Side, resolution: Resolution, reach: float = math.inf
    ) -> PLD:
        return self.core.form(step=step, side=side, resolution=resolution, reach=reach)

    def both(
        self, *, step: float, resolution: Resolution, reach: float = math.inf
    ) -> tuple[PLD, PLD]:
        return self.core.both(step=step, resolution=resolution, reach=reach)

    def assumptions(self) -> dict[str, str]:
        return self.core.assumptions()


class CrowdMechanism(Mechanism):
    """A mechanism whose pair is a `CrowdPair`, possibly on a random cohort."""

    @property
    @abstractmethod
    def pair(self) -> CrowdPair:
        """The canonical pair."""

    @property
    def rate(self) -> float:
        """Probability of being in the cohort; 1 without subsampling."""
        return 1.0

    @property
    def users(self) -> int | None:
        return self.pair.n

    @property
    def max_loss(self) -> float:
        return largest_loss(self.pair, self.rate)

    @property
    def max_loss_below(self) -> float:
        exact = self.rate == 1.0 and self.pair.exact_loss
        return self.max_loss if exact else super().max_loss_below

    @property
    def loss_scale(self) -> float:
        pair = self.pair
        if pair.trivial:
            return 0.0
        x = min(pair.spread, 0.999)
        return min(math.log1p(2.0 * self.rate * x / (1.0 - x)), self.max_loss)

    def form(
        self, *, step: float, side: Side, resolution: Resolution, reach: float = math.inf
    ) -> PLD:
        return crowd_pld(
            self.pair, rate=self.rate, step=step, side=side, resolution=resolution, reach=reach
        )

    def both(
        self, *, step: float, resolution: Resolution, reach: float = math.inf
    ) -> tuple[PLD, PLD]:
        return crowd_plds(self.pair, rate=self.rate, step=step, resolution=resolution, reach=reach)

    def on_cohort(self, rate: float) -> Mechanism:
        return _CrowdOnCohort(self, rate)


class ProfileMechanism(Mechanism):
    """A mechanism known by its privacy profile, that of both orders unless `dots` says otherwise."""

    @abstractmethod
    def profile(self, growth: Array) -> Bounds:
        """Bounds (arrays) on H_s(P||Q) at s = 1 + growth, growth = expm1(epsilon) >= 0, rounding included."""

    def profile_within(self, rtol: float, missed: float) -> Callable[[Array], Bounds]:
        """`profile` for callers content with brackets of relative width `rtol`, or of width `missed`."""
        return self.profile

    @property
    def infinite_mass(self) -> float:
        """A lower bound on the mass at infinite loss, the limit of the profile."""
        return 0.0

    @property
    def top_mass(self) -> float:
        """A lower bound on the P-mass at exactly `max_loss`."""
        return 0.0

    @property
    def most_dots(self) -> int:
        """At how many growths the profile may be asked for one law."""
        return MAX_DOTS

    def dots(self, width: float, missed: float, centre: float | None) -> tuple[Dots, Dots]:
        """The profile at dots of that width, and the reversed pair's; see `profile.dots`."""
        found = dots(
            self.profile_within(dot_rtol(width, self.loss_scale), missed), width=width,
            missed=missed, scale=self.loss_scale, max_loss=self.max_loss, infinity=self.infinite_mass,
            top_mass=self.top_mass, centre=centre, most=self.most_dots,
        )  # fmt: skip
        return found, found

    def form(
        self, *, step: float, side: Side, resolution: Resolution, reach: float = math.inf
    ) -> PLD:
        return self._formed((side,), step, resolution, reach)[0]

    def both(
        self, *, step: float, resolution: Resolution, reach: float = math.inf
    ) -> tuple[PLD, PLD]:
        lower, upper = self._formed((Side.LOWER, Side.UPPER), step, resolution, reach)
        return lower, upper

    def _formed(
        self, sides: tuple[Side, ...], step: float, resolution: Resolution, reach: float
    ) -> list[PLD]:
        if self.loss_scale == 0.0:
            return [_no_loss(step, side) for side in sides]
        width, centre = step, None
        if resolution.profile_width > 0.0:
            width, centre = max(step, resolution.profile_width), math.sqrt(resolution.pull)
        forward, backward = self.dots(width, resolution.missed, centre)
        # An atom at the largest loss is used as a slope there; where that loss is rounded, it lies lower.
        wrong = self.max_loss - self.max_loss_below if self.top_mass > 0.0 else 0.0
        found = [atoms(forward, backward, side) for side in sides]
        return [
            placed(
                replace(one, slack=one.slack + wrong), step=step, side=side, reach=reach,
                max_loss=self.max_loss,
            )
            for side, one in zip(sides, found, strict=True)
        ]  # fmt: skip

    def on_cohort(self, rate: float) -> Mechanism:
        return _ProfileOnCohort(self, rate)


@dataclass(frozen=True)
class _CrowdOnCohort(CrowdMechanism):
    """A crowd mechanism under sampling rate q; the amplification is in the kernel (`cells`)."""

    whole: CrowdMechanism
    sampling_rate: float

    @property
    def pair(self) -> CrowdPair:
        return self.whole.pair

    @property
    def rate(self) -> float:
        return self.sampling_rate

    def assumptions(self) -> dict[str, str]:
        return self.whole.assumptions()


@dataclass(frozen=True)
class _ProfileOnCohort(ProfileMechanism):
    """A symmetric pair under sampling rate q: both halves in one symmetric pair (docs/theory.md, section 5).

    For s >= 1, H_s(qP + (1-q)Q || Q) = q H_{1 + (s-1)/q}(P || Q).
    """

    whole: ProfileMechanism
    sampling_rate: float

    def profile(self, growth: Array) -> Bounds:
        return self._amplified(self.whole.profile, growth)

    def profile_within(self, rtol: float, missed: float) -> Callable[[Array], Bounds]:
        return partial(
            self._amplified, self.whole.profile_within(rtol, missed / self.sampling_rate)
        )

    def _amplified(self, profile: Callable[[Array], Bounds], growth: Array) -> Bounds:
        q = self.sampling_rate
        # The growth is rounded: asked a little lower for the upper side, a little higher for the lower.
        asked = np.minimum(growth, LARGEST_GROWTH * q) / q
        bounds = profile(np.concatenate((asked * (1.0 - 4e-16), asked * (1.0 + 4e-16))))
        lower, upper = bounds.lower[growth.size :], bounds.upper[: growth.size]
        # Beyond the largest growth asked for: what is at infinity, and what was there.
        lower = np.where(growth > LARGEST_GROWTH * q, self.whole.infinite_mass, lower)
        return Bounds(q * lower * (1.0 - 4e-16), q * upper * (1.0 + 4e-16))

    @property
    def infinite_mass(self) -> float:
        return self.sampling_rate * self.whole.infinite_mass * (1.0 - 4e-16)

    @property
    def most_dots(self) -> int:
        return self.whole.most_dots

    @property
    def top_mass(self) -> float:
        """The atom's Q-mass stays; its P-mass is q p + (1 - q) p e^-loss."""
        q, loss = self.sampling_rate, self.whole.max_loss
        return self.whole.top_mass * (q + (1.0 - q) * math.exp(-loss)) * (1.0 - 2e-15)

    @property
    def max_loss(self) -> float:
        return _amplified(self.sampling_rate, self.whole.max_loss)

    @property
    def max_loss_below(self) -> float:
        return _amplified(self.sampling_rate, self.whole.max_loss_below) * (1.0 - 4e-15)

    @property
    def loss_scale(self) -> float:
        scale = min(self.whole.loss_scale, 700.0)
        return min(_amplified(self.sampling_rate, scale), self.max_loss)

    @property
    def users(self) -> int | None:
        return self.whole.users

    def assumptions(self) -> dict[str, str]:
        return self.whole.assumptions()


def _amplified(rate: float, loss: float) -> float:
    """log(1 + rate (e^loss - 1)), rounded upwards."""
    if loss == math.inf or rate == 1.0:
        return loss
    if loss > 700.0:  # log(rate e^loss + 1 - rate) = loss + log(rate + (1 - rate) e^-loss)
        return (loss + math.log(rate)) * (1.0 + 4e-16) if rate > 1e-300 else loss
    return math.log1p(rate * math.expm1(loss)) * (1.0 + 2e-15)


def _no_loss(step: float, side: Side) -> PLD:
    return PLD.build(np.ones(1), 0, step=step, side=side, infinity=0.0, max_loss=0.0, slack=0.0)


def as_mechanism(value: Any) -> Mechanism:
    """`value` if it is a mechanism; TypeError otherwise."""
    if not isinstance(value, Mechanism):
        raise TypeError(f"mechanism must be a mechanism, got {value!r}")
    return value
