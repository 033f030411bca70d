"""An epoch: users in a hidden random order, cut into disjoint cohorts, everybody exactly once.

Use and proofs: docs/people.md, section 4. Later cohorts' randomizers may depend on earlier outputs. Theorem Q and
stronger clones hold, n being the users of the whole epoch, whatever the sizes of the cohorts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar

from ..numerics.validation import choice, users
from ..pairs.ordered import OrderedPair
from ..pairs.pair import Pair
from ..pairs.profile import Several
from ..pairs.swap import may_win
from .base import CONCURRENT, OUTPUTS_ONLY, OfReports, local_epsilon, said
from .ldp import ShuffledLDP

ANALYSES = ("tightest", "stronger-clones")


@dataclass(frozen=True, repr=False)
class Epoch(OfReports):
    """One pass over n users in a hidden random order, in disjoint cohorts of any size.

    Parameters
    ----------
    eps0 : local epsilon of every report, for every past, in [1e-9, 700].
    n : users of the epoch, the target included; every one reports exactly once.
    analysis : "tightest" (default): at every epsilon the least of Theorem Q and of stronger clones. "stronger-clones":
        also for an adversary who is told who cloned; the one that has certificates.

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
    analysis: str = ANALYSES[0]

    CHECKS: ClassVar = {"eps0": local_epsilon, "n": users, "analysis": partial(choice, options=ANALYSES)}

    @cached_property
    def pair(self) -> Pair:  # type: ignore[override]
        clones = ShuffledLDP(self.eps0, self.n, analysis="stronger-clones").pair
        if self.analysis != "tightest" or not may_win(self.eps0, self.n):
            return clones
        return Several((OrderedPair(self.eps0, self.n), clones))

    @cached_property
    def attack_pair(self) -> Pair:  # type: ignore[override]
        return ShuffledLDP(self.eps0, self.n).attack_pair

    def assumptions(self) -> dict[str, str]:
        named = "the least of Theorem Q and stronger clones" if self.analysis == "tightest" else "stronger clones"
        return said(
            f"{named} among all users of the epoch, for randomizers that are eps0-LDP whatever was seen before; who"
            " reports may look at what came before",
            adversary="sees the shuffled reports of every cohort and knows every other user's value",
            sampling="hidden uniform order of n users, cut into disjoint cohorts; everybody reports exactly once;"
            f" {OUTPUTS_ONLY}; {CONCURRENT}",
        )
