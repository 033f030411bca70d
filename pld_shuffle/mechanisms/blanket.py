"""The blanket adversary for a named local randomizer (Balle, Bell, Gascon, Nissim 2019, section 5).

Beyond the shuffled reports the adversary sees who of the other n-1 users drew their report from the blanket (the part
of the law that does not depend on the value), and those users' other reports. Its divergence is exact: the slot law
with W the blanket (`pairs.slots`; proof in docs/theory.md, section 8).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from ..numerics.sides import Bounds, Side
from ..numerics.validation import user_count
from ..pairs.few_users import MOST_TAILED, MOST_USERS
from ..pairs.noise import gaussian_groups, laplace_groups, least_missed
from ..pairs.noise_types import LARGEST_EPS0
from ..pairs.profile import ProfilePair, worst
from ..pairs.slots import SlotLaw, SlotLaws, few_users_pair, slot_pair
from ..randomizers import (
    RAPPOR,
    DiscreteRandomizer,
    FiniteRandomizer,
    Gaussian,
    Laplace,
    LocalRandomizer,
    joint,
)
from .base import Mechanism
from .shared import EVERYBODY, SUBSTITUTION

Array = NDArray[np.float64]
#: (first, second, others): masses of groups of reports.
Groups = tuple[Array, Array, Array]

# Relative errors of the masses that randomizers give, and of Gaussian noise's and a matrix's.
MASS_ERROR, GAUSSIAN_ERROR, MATRIX_ERROR = 2e-14, 1e-12, 1e-15
LAPLACE_ERROR = 1e-13  # of `pairs.noise_types`
LEAST_SIGMA = 0.1  # of users' Gaussian noise
FEW_SIGMA = 0.8  # among few users by sums of ratios; below, these are too large
LAPLACE_CELLS, GAUSSIAN_CELLS = 256, 512  # of a continuous law, in each half
FINER, COARSE = 8, 16  # times as many for few users; times fewer where a glance is enough
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
    `blanket.profile` for every kind of pair of inputs.

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
    def pair(self) -> ProfilePair:  # type: ignore[override]
        """The worst of all pairs of inputs."""
        # eps0 itself is the largest loss where that is what the randomizer was given: it attains it.
        given = any(f.name == "eps0" for f in fields(self.randomizer))  # type: ignore[arg-type]
        largest = None
        if given and is_pure(self.randomizer):
            largest = Bounds(self.randomizer.eps0, self.randomizer.eps0)
        pair = worst(
            [slot_pair(laws, largest=largest) for laws in _laws_of_inputs(self.randomizer, self.n)]
        )
        if isinstance(self.randomizer, Laplace) and self.n <= MOST_USERS:
            cells = FINER * LAPLACE_CELLS
            return few_users_pair(
                pair, *_laplace_laws(self.randomizer, self.n, cells=cells, graded=True)
            )
        if few_tailed(self.randomizer, self.n):
            cells = FINER * GAUSSIAN_CELLS
            laws = _gaussian_laws(self.randomizer, self.n, FEW_TAIL, cells=cells)
            return few_users_pair(pair, *laws, tailed=True, tail=FEW_TAIL)
        return pair

    @cached_property
    def glance(self) -> ProfilePair:
        """The pair known less well, for a fraction of the time: the same where the randomizer is finite."""
        if not isinstance(self.randomizer, (Laplace, Gaussian)):
            return self.pair
        return slot_pair(_noise_laws(self.randomizer, self.n, coarse=COARSE))

    def assumptions(self) -> dict[str, str]:
        return {
            "neighbours": SUBSTITUTION,
            "adversary": "sees the shuffled reports, knows every other user's value, and sees which of the"
            " other users' reports came from the privacy blanket",
            "analysis": f"exact pair of the blanket adversary for {self.randomizer!r}"
            f"{_inputs(self.randomizer)}",
            "sampling": EVERYBODY,
        }


def few_tailed(randomizer: LocalRandomizer, n: int) -> TypeGuard[Gaussian]:
    """Whether it is Gaussian noise among few users that is known by sums of ratios."""
    return isinstance(randomizer, Gaussian) and n <= MOST_TAILED and randomizer.sigma >= FEW_SIGMA


def is_pure(randomizer: LocalRandomizer) -> bool:
    """Whether it is eps0-LDP, 0 < eps0 < inf. Gaussian noise never is, however small its delta0."""
    return not isinstance(randomizer, Gaussian) and 0.0 < randomizer.eps0 < math.inf


def _laws_of_inputs(randomizer: LocalRandomizer, n: int) -> list[SlotLaws]:
    """The slot laws of all ordered pairs of inputs that may be the worst one."""
    error = mass_error(randomizer)
    if isinstance(randomizer, (Laplace, Gaussian)):
        return [_noise_laws(randomizer, n)]
    assert isinstance(randomizer, FiniteRandomizer)
    found: list[SlotLaws] = []
    for kind in randomizer.pair_laws():
        forward = SlotLaw(n, *grouped(kind.first, kind.second, kind.blanket), False, error)
        reverse = SlotLaw(n, *grouped(kind.second, kind.first, kind.blanket), False, error)
        found.append(_always(forward))
        same = (
            np.array_equal(forward.first, reverse.first)
            and np.array_equal(forward.second, reverse.second)
            and np.array_equal(forward.others, reverse.others)
        )
        if not same:
            found.append(_always(reverse))
    return found


def _always(law: SlotLaw) -> SlotLaws:
    return lambda tail: (law, law)


def _noise_laws(randomizer: Laplace | Gaussian, n: int, coarse: int = 1) -> SlotLaws:
    """The pair of inputs (0, 1), the worst one; its mirror image is the reversed pair. coarse : times fewer cells."""
    known: dict[float, tuple[SlotLaw, SlotLaw]] = {}
    least = least_missed(randomizer.sigma) if isinstance(randomizer, Gaussian) else 0.0

    def laws(tail: float) -> tuple[SlotLaw, SlotLaw]:
        key = max(tail, least) if isinstance(randomizer, Gaussian) else 0.0
        if key not in known:
            if isinstance(randomizer, Laplace):
                known[key] = _laplace_laws(randomizer, n, cells=LAPLACE_CELLS // coarse)
            else:
                known[key] = _gaussian_laws(randomizer, n, key, cells=GAUSSIAN_CELLS // coarse)
        return known[key]

    return laws


def _laplace_laws(
    randomizer: Laplace, n: int, *, cells: int = LAPLACE_CELLS, graded: bool = False
) -> tuple[SlotLaw, SlotLaw]:
    """The pair of inputs (0, 1) on either side."""
    lower, upper = (
        laplace_groups(randomizer.eps0, side=side, cells=cells, graded=graded) for side in Side
    )
    error = mass_error(randomizer)
    return SlotLaw(n, *lower, False, error), SlotLaw(n, *upper, False, error)


def _gaussian_laws(
    randomizer: Gaussian, n: int, tail: float, *, cells: int = GAUSSIAN_CELLS
) -> tuple[SlotLaw, SlotLaw]:
    """The same of Gaussian noise, where the first law's tail is left out."""
    missed = max(tail, least_missed(randomizer.sigma))
    lower, upper = (
        gaussian_groups(randomizer.sigma, side=side, missed=missed, cells=cells) for side in Side
    )
    return SlotLaw(n, *lower, False, GAUSSIAN_ERROR), SlotLaw(n, *upper, False, GAUSSIAN_ERROR)


def _inputs(randomizer: LocalRandomizer) -> str:
    """What the pairs range over, where that is more than the randomizer's inputs."""
    bloom = isinstance(randomizer, RAPPOR) and randomizer.bits is not None
    return ", the worst over all filters, whether or not a value has them" if bloom else ""


def mass_error(randomizer: LocalRandomizer) -> float:
    """Bound on the relative error of the masses of the randomizer's laws."""
    if isinstance(randomizer, DiscreteRandomizer):
        return MATRIX_ERROR
    return GAUSSIAN_ERROR if isinstance(randomizer, Gaussian) else MASS_ERROR


def grouped(first: Array, second: Array, hidden: Array) -> Groups:
    """Groups in a fixed order, those with equal ratios merged (exactly equal: nothing is lost)."""
    one, two, three = joint.merged(np.stack((first, second, hidden)), _to_the_blanket)
    return one, two, three


def _to_the_blanket(masses: Array) -> Array:
    """Ratios to the blanket's mass, or to what there is without it."""
    first, second, hidden = masses
    ratios: Array = masses / np.where(hidden > 0.0, hidden, first + second)
    return ratios


def known_randomizer(value: Any) -> LocalRandomizer:
    if not isinstance(value, LocalRandomizer):
        raise TypeError(f"randomizer must be one of pld_shuffle.randomizers, got {value!r}")
    if not isinstance(value, (Laplace, Gaussian, FiniteRandomizer)):
        raise TypeError(f"randomizer must be finite, Laplace or Gaussian, got {value!r}")
    if isinstance(value, Gaussian) and not value.sigma >= LEAST_SIGMA:
        raise ValueError(
            f"randomizer: sigma must be at least {LEAST_SIGMA} to be shuffled, got {value.sigma!r}: with so little"
            " noise on values in [0, 1] a report tells its value, shuffled or not; account for it as"
            " Gaussian(sigma=...) of sensitivity 1"
        )
    return value
