"""An epoch: users in a hidden random order, cut into disjoint cohorts, everybody exactly once.

Use and proof: docs/people.md, section 4. The later cohorts' randomizers may depend on the earlier outputs. Stronger
clones hold, n being the users of the whole epoch, whatever the sizes of the cohorts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from ..numerics.validation import users
from ..pairs.pair import Pair
from .base import CONCURRENT, OUTPUTS_ONLY, OfReports, local_epsilon, said
from .ldp import ShuffledLDP


@dataclass(frozen=True, repr=False)
class Epoch(OfReports):
    """One pass over n users in a hidden random order, in disjoint cohorts of any size.

    Parameters
    ----------
    eps0 : local epsilon of every report, for every past, in [1e-9, 700].
    n : users of the epoch, the target included; every one reports exactly once.

    The order is uniform and nobody but the shuffler learns it. Reports of a cohort are shuffled; later cohorts may be
    asked by randomizers that depend on the output of earlier ones, each of them eps0-LDP. The target must be in the
    epoch for certain: with dropouts, or users who come twice, this is another thing. Another epoch with a fresh order
    is one more round of the ledger.

    The lower end is the attack of `ShuffledLDP(eps0, n)`: who sees cohorts can put them together again. Raises
    ValueError or TypeError naming the argument.

    >>> from pld_shuffle import Accountant
    >>> epoch = Accountant().compose(Epoch(eps0=4.0, n=10**6))  # in cohorts of 10**4, say
    >>> cohort = Accountant().compose(ShuffledLDP(eps0=4.0, n=10**4))  # a user's own, if it is known
    >>> round(epoch.get_epsilon(1e-6), 3), round(cohort.get_epsilon(1e-6), 3)
    (0.034, 0.407)
    """

    unsampled = "everybody must take part in an epoch"

    eps0: float
    n: int

    CHECKS: ClassVar = {"eps0": local_epsilon, "n": users}

    @cached_property
    def pair(self) -> Pair:  # type: ignore[override]
        return ShuffledLDP(self.eps0, self.n, analysis="stronger-clones").pair

    @cached_property
    def attack_pair(self) -> Pair:  # type: ignore[override]
        return ShuffledLDP(self.eps0, self.n).attack_pair

    def assumptions(self) -> dict[str, str]:
        return said(
            "stronger clones among all users of the epoch, for randomizers that are eps0-LDP whatever was"
            " seen before; reports of a cohort are independent",
            adversary="sees the shuffled reports of every cohort and knows every other user's value",
            sampling="hidden uniform order of n users, cut into disjoint cohorts; everybody reports exactly once;"
            f" {OUTPUTS_ONLY}; {CONCURRENT}",
        )
