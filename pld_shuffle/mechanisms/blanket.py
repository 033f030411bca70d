"""The blanket adversary for a named local randomizer (Balle, Bell, Gascon, Nissim 2019, section 5).

Beyond the shuffled reports the adversary sees who of the other n-1 users drew their report from the blanket (the part
of the law that does not depend on the value), and those users' other reports. Its divergence is exact: the slot law
with W the blanket (`pairs.slots`; proof in docs/theory.md, section 8).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from ..numerics.sides import Bounds, Side
from ..numerics.validation import user_count
from ..pairs.few_users import FewUsersPair
from ..pairs.profile import ProfilePair, worst
from ..pairs.slots import NoiseLaw, SlotLaw, SlotPair
from ..randomizers import Gaussian, as_randomizer
from ..randomizers.base import LocalRandomizer
from ..randomizers.noise import Noise
from ..randomizers.noise_laws import LARGEST_EPS0
from .base import Mechanism
from .shared import EVERYBODY, SUBSTITUTION

LEAST_SIGMA = 0.1  # of users' Gaussian noise
FINER, COARSE = 8, 16  # times as many cells for few users; times fewer where a glance is enough
FEW_TAIL = 1e-15  # what is left out of unbounded noise among few users


@dataclass(frozen=True)
class Blanket(Mechanism):
    """n users shuffle reports of a named randomizer; the blanket adversary, exactly.

    Parameters
    ----------
    randomizer : one of `pld_shuffle.randomizers`, the same for all users. Finite ones by the kinds of pairs of
        inputs they list (both orders of each); Laplace and Gaussian by the pair (0, 1), the worst one.
    n : users whose reports are shuffled together, the target included; at most 10^13.

    Raises ValueError or TypeError naming the argument. Cost of a law: a few hundred evaluations of
    `pairs.slots.slot_profile` for every kind of pair of inputs.

    >>> from pld_shuffle.randomizers import UnaryEncoding
    >>> Blanket(UnaryEncoding(k=4, eps0=2.0), n=1000).users
    1000
    """

    randomizer: LocalRandomizer
    n: int

    def __post_init__(self) -> None:
        randomizer = known_randomizer(self.randomizer)
        if is_pure(randomizer) and not randomizer.eps0 <= LARGEST_EPS0:
            raise ValueError(
                f"randomizer must have an eps0 of at most {LARGEST_EPS0:g} or none, got {randomizer!r}"
            )
        object.__setattr__(self, "randomizer", randomizer)
        object.__setattr__(self, "n", user_count(self.n))

    @cached_property
    def pair(self) -> ProfilePair:
        """The worst of all pairs of inputs."""
        randomizer, n = self.randomizer, self.n
        # eps0 itself is the largest loss where that is what the randomizer was given: it attains it.
        largest = None
        if states_eps0(randomizer) and is_pure(randomizer):
            largest = Bounds(randomizer.eps0, randomizer.eps0)
        if not isinstance(randomizer, Noise):
            laws = [
                SlotLaw.of(n, masses, randomizer.mass_error, whole=False)
                for masses in randomizer.slot_laws()
            ]
            return worst([SlotPair(law, largest) for law in laws])
        pair = SlotPair(NoiseLaw(n, randomizer), largest)
        if n > randomizer.few_users:
            return pair
        tail = FEW_TAIL if randomizer.tailed else 0.0
        below, above = (
            SlotLaw.of(n, masses, randomizer.mass_error, whole=False)
            for side in Side
            for masses in randomizer.slot_laws(side, tail, refined=FINER)
        )
        return FewUsersPair.of(pair, below, above, tailed=randomizer.tailed, tail=tail)

    @cached_property
    def glance(self) -> ProfilePair:
        """The pair known less well, for a fraction of the time: the same where the randomizer is finite."""
        if not isinstance(self.randomizer, Noise):
            return self.pair
        return SlotPair(NoiseLaw(self.n, self.randomizer, coarse=COARSE))

    def assumptions(self) -> dict[str, str]:
        return {
            "neighbours": SUBSTITUTION,
            "adversary": "sees the shuffled reports, knows every other user's value, and sees which of the"
            " other users' reports came from the privacy blanket",
            "analysis": f"exact pair of the blanket adversary for {self.randomizer!r}"
            f"{self.randomizer.pairs_meant}",
            "sampling": EVERYBODY,
        }


def is_pure(randomizer: LocalRandomizer) -> bool:
    """Whether it is eps0-LDP, 0 < eps0 < inf."""
    return 0.0 < randomizer.eps0 < math.inf


def states_eps0(randomizer: LocalRandomizer) -> bool:
    """Whether eps0 is what was given, and no logarithm of ratios of masses."""
    return any(field.name == "eps0" for field in fields(randomizer))  # type: ignore[arg-type]


def known_randomizer(value: Any) -> LocalRandomizer:
    """`value`, if its shuffled reports can be analysed."""
    known = as_randomizer(value)
    if isinstance(known, Gaussian) and not known.sigma >= LEAST_SIGMA:
        raise ValueError(
            f"randomizer: sigma must be at least {LEAST_SIGMA} to be shuffled, got {known.sigma!r}: with so little"
            " noise on values in [0, 1] a report tells its value, shuffled or not; account for it as"
            " Gaussian(sigma=...) of sensitivity 1"
        )
    return known
