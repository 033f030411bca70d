"""Sample and threshold: histograms in which users take part at random, and small counts are suppressed.

The pair of one bin is in `pairs.thresholds`: exact for one round, whatever the counts are. A user who changes its value
leaves one bin and enters another one, with coins of its own: the pair next to its reverse (docs/sums.md, section 4).

Source: Bharadwaj and Cormode 2021 (sample and threshold), whose bound Brave's Nebula uses.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar

from ..numerics.validation import choice, positive_int, unit_interval
from ..pairs.discrete import Together
from ..pairs.pair import Pair
from ..pairs.strategy import BothWays
from ..pairs.thresholds import Bin
from ..shares import Share
from .base import NEIGHBOURS, Mechanism, said

RELEASES = ("counts", "bins")


@dataclass(frozen=True, repr=False)
class Threshold(Mechanism):
    """A histogram of users who take part with probability `rate` each; counts below `least` are suppressed.

    Parameters
    ----------
    rate : probability of taking part, in (0, 1], for each user by itself, whatever the data; 1 needs dummies.
    least : K >= 1, the smallest count that is published.
    dummies : noise that is added to every bin's count before it is compared with K, a `pld_shuffle.shares.Share` that
        counts (Binomial, Poisson, NegativeBinomial), from each of `senders` parties; None for none. With rate=1 and
        least=1 this is a shuffler or its clients adding dummy reports to every bin.
    released : "counts" (default), or "bins": only which bins have K or more.
    neighbours : "replace-one" (default): a user moves from one bin to another; "add-or-remove-one", "zero-out": its one
        report is there or not, and one bin changes.

    Users have one value each; how many there are, in all or in a bin, does not matter, and everybody else's is known.
    The number of reports or of non-participants is not published. Upper ends are exact for one round of one bin, and
    for any number of rounds if rate=1 and counts are published. Elsewhere both ends are strategies' that choose the
    bins' other users anew in every round: of one bin with the order of the two datasets the same in all rounds, of two
    bins from below for both at once, and from above for one of them as what is seen of the other one suggests.
    Without dummies whoever sees which bins are published may as well see the counts. Raises ValueError or TypeError
    naming the argument; MemoryError for a threshold too large.

    >>> from pld_shuffle import Accountant
    >>> nebula = Threshold(rate=0.105, least=20, neighbours="add-or-remove-one")
    >>> round(Accountant().compose(nebula).get_epsilon(1e-8), 3)
    0.318
    """

    rate: float
    least: int
    dummies: Share | None = None
    senders: int = 1
    released: str = "counts"
    neighbours: str = "replace-one"

    rarely = ("senders", "released")
    unsampled = "who takes part is the mechanism's own matter"

    CHECKS: ClassVar = {
        "rate": unit_interval, "least": positive_int, "senders": positive_int,
        "released": partial(choice, options=RELEASES), "neighbours": partial(choice, options=tuple(NEIGHBOURS)),
    }  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dummies is None:
            if not self.rate < 1.0:
                raise ValueError(f"rate must be below 1 without dummies, got {self.rate!r}")
        elif not (isinstance(self.dummies, Share) and self.dummies.counts):
            raise TypeError(f"dummies must be a Share of numbers that are never negative, got {self.dummies!r}")
        elif not self.dummies.total(self.senders).log_concave:
            raise ValueError(
                f"dummies must have shapes that add up to at least 1, got {self.dummies!r} from {self.senders}"
            )

    @cached_property
    def _bin(self) -> Bin:
        dummies = None if self.dummies is None else self.dummies.total(self.senders)
        return Bin(self.rate, self.least, dummies, self.released == "bins")

    @cached_property
    def pair(self) -> Pair:  # type: ignore[override]
        if self.neighbours != "replace-one":
            return self._bin.pair
        if self._bin.alone:
            return Together(tuple((order, 1) for order in self._bin.worst.ordered))
        return BothWays(self._bin, attacked=True)

    @cached_property
    def attack_pair(self) -> Pair:  # type: ignore[override]
        """Strategies that choose counts of one bin; for two bins, and next to other rounds, single counts."""
        if self._bin.alone:
            return self.pair
        return self._bin.attacks_on_two if self.neighbours == "replace-one" else self._bin.attacks

    def assumptions(self) -> dict[str, str]:
        shown = "which bins have" if self.released == "bins" else "the counts of bins that have"
        added = ""
        if self.dummies is not None:
            added = f"; every bin has {self.senders} shares {self.dummies!r} of dummies"
        return said(
            "worst counts of the bins that change, exact for one round of one bin",
            neighbours=NEIGHBOURS[self.neighbours],
            adversary=f"sees {shown} at least {self.least} reports, and knows every other user's value",
            sampling=f"every user takes part with probability {self.rate:g} by itself, hidden, whatever the"
            f" data{added}",
        )
