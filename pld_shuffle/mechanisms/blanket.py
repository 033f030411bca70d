"""The blanket adversary for a named local randomizer (Balle, Bell, Gascon, Nissim 2019, section 5).

Beyond the shuffled reports the adversary sees who of the other n-1 users drew their report from the blanket (the part
of the law that does not depend on the value), and those users' other reports. Its divergence is exact: the slot law
with W the blanket (`pairs.slots`; proof in docs/theory.md, section 8).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from ..numerics.sides import Bounds, Side
from ..numerics.validation import users
from ..pairs.few_users import among_few
from ..pairs.profile import ProfilePair, worst
from ..pairs.slots import NoiseLaw, SlotLaw, SlotPair
from ..randomizers.base import LocalRandomizer
from ..randomizers.discrete import known_randomizer
from ..randomizers.noise_laws import LARGEST_EPS0
from .base import OfReports, said

FINER, COARSE = 8, 16  # times as many cells for few users; times fewer where a glance is enough
FEW_TAIL = 1e-15  # what is left out of unbounded noise among few users


@dataclass(frozen=True, repr=False)
class Blanket(OfReports):
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

    CHECKS: ClassVar = {"randomizer": known_randomizer, "n": users}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.randomizer.pure and not self.randomizer.eps0 <= LARGEST_EPS0:
            raise ValueError(f"randomizer must have an eps0 of at most {LARGEST_EPS0:g}, got {self.randomizer!r}")

    @cached_property
    def pair(self) -> ProfilePair:
        """The worst of all pairs of inputs."""
        randomizer, n = self.randomizer, self.n
        # The randomizer attains eps0: the largest loss, where it is known exactly.
        exact = randomizer.pure and randomizer.eps0_error == 0.0
        largest = Bounds(randomizer.eps0, randomizer.eps0) if exact else None
        if not randomizer.continuous:
            laws = [SlotLaw.of(n, masses, randomizer.mass_error, whole=False) for masses in randomizer.slot_laws()]
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
        return among_few(pair, below, above, tailed=randomizer.tailed, tail=tail)

    @cached_property
    def glance(self) -> ProfilePair:
        """The pair known less well, for a fraction of the time: the same where the randomizer is finite."""
        if not self.randomizer.continuous:
            return self.pair
        return SlotPair(NoiseLaw(self.n, self.randomizer, coarse=COARSE))

    def assumptions(self) -> dict[str, str]:
        return said(
            f"exact pair of the blanket adversary for {self.randomizer!r}{self.randomizer.pairs_meant}",
            adversary="sees the shuffled reports, knows every other user's value, and sees which of the"
            " other users' reports came from the privacy blanket",
        )
