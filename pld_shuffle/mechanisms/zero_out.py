"""The zero-out relation: one user's contribution is there, or replaced by nothing (docs/people.md, section 9).

A ledger has one relation. Shuffled rounds are for the *substitution* of one user's value, and so is central noise next
to them, at twice the norm of a contribution. Accountants of DP-SGD count zero-out (or removal), at the norm itself.
Both can stand in one ledger if every mechanism of it is read that way: shuffled reports, where the null report is one
that the randomizer can make; additive central noise; Gaussian noise on a Poisson sample, whose two orders are composed
apart, since a user that is there in one round is there in all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ..pairs.pair import Pair
from ..pairs.profile import BothOrders
from .base import ZERO_OUT, Mechanism, OfMechanism, as_mechanism


@dataclass(frozen=True, repr=False)
class ZeroOut(OfMechanism):
    """A mechanism read for the zero-out relation: a user's contribution, or nothing in its place.

    Parameters
    ----------
    mechanism : shuffled reports (`ShuffledLDP`, `ShuffledRR`, `ShuffledRandomizer`, `Shuffled`, `Epoch`; also on a
        hidden cohort: `Subsampled`, `PoissonSampled`, `StickyCohort`), whose null report must be one the randomizer
        can make: its law is that of a value, or a mixture of values' laws. Or `Gaussian` or `Laplace`,
        `sensitivity` being the bound on the norm of one contribution. Or `PoissonGaussian`.

    In a hidden cohort the user is drawn like everybody else; only its report is null. A ledger holds one relation: all
    of its mechanisms are `ZeroOut`, or none. Lower ends are those of the mechanism's attack, for a null report of the
    attack's choice. Raises TypeError for any other mechanism, such as central noise on a cohort of fixed size, where
    somebody else's contribution stands in for the absent user's.

    >>> from pld_shuffle import Accountant, Gaussian, ShuffledLDP
    >>> acc = Accountant().compose(ZeroOut(ShuffledLDP(eps0=2.0, n=2_000)), 10)
    >>> round(acc.compose(ZeroOut(Gaussian(sigma=20.0)), 10).get_epsilon(1e-6), 2)
    1.12
    """

    unsampled = "take the sample inside of ZeroOut"

    mechanism: Mechanism

    def __post_init__(self) -> None:
        _ = as_mechanism(self.mechanism).zero_out  # one that has none is refused here

    @cached_property
    def pair(self) -> Pair:
        return self.mechanism.zero_out

    @property
    def attack_pair(self) -> Pair:
        if isinstance(self.pair, BothOrders):
            return self.pair.pairs[0]
        known = self.mechanism.attack_pair
        return self.pair if known is self.mechanism.pair else known

    @property
    def relation(self) -> str:
        return ZERO_OUT

    @property
    def hidden(self) -> bool:
        return self.mechanism.hidden

    def assumptions(self) -> dict[str, str]:
        base = self.mechanism.assumptions()
        if self.users is not None:
            return base | {
                "neighbours": "one user's report is replaced by a null report, whose law is a mixture of the"
                " randomizer's own (zero-out)"
            }
        found = base | {
            "neighbours": "one user's contribution, of norm at most the sensitivity, is replaced by nothing (zero-out)"
        }
        if self.pair is not self.mechanism.pair:
            found["analysis"] = "exact pair of the noise on a Poisson sample, each order by itself"
        return found
