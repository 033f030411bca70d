"""Sums that only a secure aggregator sees: of integers with shares of noise, of local reports, and counts cut below.

*Shares.* What hides a user are the shares of those clients whose noise is really in the sum and unknown to the
adversary: all but the dropouts and the colluding ones. The law of their total is known exactly (`shares`); the pair is
that law against itself moved by the sensitivity (docs/sums.md).

*Local reports* (`Summed`; docs/sums.md, section 2). One-hot symbols: the sums are the shuffled multiset. Bits: counts
per bin, of which a change of value touches two (`pairs.two_counts`). Gaussian noise: central noise of variance n
sigma^2, exactly. Laplace noise: n users' noise is a sum of n discrete Laplace numbers on a lattice that 1 lies on, and
an independent rest; without the rest it is too narrow by a share of about 1e-4 of the variance. Who sees only in which
cell of a lattice the sum lies has an attack.

*Sample and threshold* (`Threshold`; docs/sums.md, section 4). The pair of one bin (`pairs.thresholds`) is exact for one
round, whatever the counts are; who moves between two bins shows that pair next to its reverse. Source: Bharadwaj and
Cormode 2021, whose bound Brave's Nebula uses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import Annotated

import numpy as np

from ..numerics.integer_laws import IntegerLaw, negative_binomial_law, poisson_law, two_sided_law
from ..numerics.sides import ROUNDOFF, Bounds, above, below
from ..numerics.validation import PositiveInt, UserCount, choice, instance, integer_in, unit_interval
from ..pairs.bits import BitShares
from ..pairs.discrete import Together
from ..pairs.gaussian import GaussianPair
from ..pairs.pair import Cohort, Pair
from ..pairs.shifted import at_most, shifted, shifted_around, with_attack
from ..pairs.strategy import BothWays
from ..pairs.thresholds import Bin
from ..pairs.two_counts import TwoCountAttack, two_count_attacks, two_counts
from ..randomizers import DiscreteRandomizer, Gaussian, HadamardResponse, KRandomizedResponse, Laplace, LocalRandomizer
from ..randomizers.base import settle
from ..randomizers.one_hot import NoisyVector
from ..shares import Share
from .base import NEIGHBOURS, Mechanism, said
from .shuffled import Shuffled

MOST_STEPS = 64  # sensitivity up to which every step is a pair of its own, modulo M


@dataclass(frozen=True, repr=False)
class SummedNoise(Mechanism):
    """The sum of integers, each client having added a share of noise; only the total is seen, possibly modulo M.

    share : the noise of one client, a `pld_shuffle.shares.Share`.
    clients : how many add a share (in a system where servers add the noise: how many servers).
    sensitivity : Delta, an integer; how far neighbouring datasets can move a coordinate of the exact sum.
    dropouts, colluding : of the clients' shares so many at most are missing, and so many known to the adversary.
    modulus : M, if the total is taken modulo M. It must exceed clients * sensitivity, or exact sums would wrap around.
    coordinates : of a vector of sums with noise of their own, how many a user can move.
    sensitivity_norm : what `sensitivity` is of such a move. "linf" (default): of the largest coordinate, and all of
        them move by Delta at worst. "l1": of the sum of all, and one of them moves by Delta at worst, which is proved
        for noise that is symmetric and log-concave (docs/sums.md, Theorem 3). An L2 norm is refused: no split of it is
        proved to be the worst.
    neighbours : "replace-one" (default), "add-or-remove-one" or "zero-out": the relation that `sensitivity` is for.
        Who adds shares is the same in both datasets: a user who comes or goes brings no share that is counted.

    The pair is exact for one round of one coordinate, in either order (and for any number of rounds where the noise is
    symmetric); modulo M the upper end is the larger of all steps up to Delta, or without M where M is larger than the
    noise. Raises ValueError or TypeError naming the argument. The law costs O(its width), up to 2^22 integers.

    >>> from pld_shuffle import Accountant
    >>> from pld_shuffle.shares import Binomial
    >>> coins = SummedNoise(Binomial(trials=1), clients=80)
    >>> round(Accountant().compose(coins).get_epsilon(1e-6), 3)
    0.999
    """

    share: Annotated[Share, instance(Share, "a pld_shuffle.shares.Share")]
    clients: PositiveInt
    sensitivity: PositiveInt = 1
    dropouts: Annotated[int, partial(integer_in, lowest=0)] = 0
    colluding: Annotated[int, partial(integer_in, lowest=0)] = 0
    modulus: int | None = None
    coordinates: PositiveInt = 1
    neighbours: Annotated[str, partial(choice, options=tuple(NEIGHBOURS))] = "replace-one"
    sensitivity_norm: Annotated[str, partial(choice, options=("linf", "l1", "l2"))] = "linf"

    rarely = ("dropouts", "colluding", "coordinates", "sensitivity_norm")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.dropouts + self.colluding < self.clients:
            raise ValueError(
                f"dropouts and colluding must leave some of clients={self.clients!r}, got"
                f" dropouts={self.dropouts!r} and colluding={self.colluding!r}"
            )
        if self.modulus is not None:
            modulus = integer_in("modulus", self.modulus, 2)
            if not modulus > self.clients * self.sensitivity:
                raise ValueError(
                    f"modulus must exceed clients * sensitivity = {self.clients * self.sensitivity}, the range of"
                    f" the exact sum, got {self.modulus!r}"
                )
            settle(self, modulus=modulus)
        if self.sensitivity_norm == "l2" and self.coordinates > 1:
            raise ValueError(
                "sensitivity_norm must be 'linf' or 'l1' for several coordinates: moves such as (2, 0, 0, 0) and"
                " (1, 1, 1, 1) have one L2 norm, neither is always the worse, and no pair is proved for both, got 'l2'"
            )
        if not self.law.symmetric and self.sensitivity_norm == "l1" and self.coordinates > 1:
            raise ValueError(
                f"sensitivity_norm must be 'linf' for noise that is not symmetric, {self.share!r}: one coordinate may"
                " rise as another falls, and no worst split is proved for that, got 'l1'"
            )

    @cached_property
    def law(self) -> IntegerLaw:
        """The law of the noise that counts. ValueError where nothing is proven for it."""
        law = self.share.total(self.clients - self.dropouts - self.colluding)
        if self.sensitivity > 1 and not law.log_concave:
            raise ValueError(
                "sensitivity must be 1 where the total noise is not log-concave (negative binomial shapes that add up"
                f" to less than 1), got {self.sensitivity!r}"
            )
        if not self.sensitivity < law.masses.size:
            raise ValueError(
                f"sensitivity must be below the {law.masses.size} values of the noise, got {self.sensitivity!r}"
            )
        return law

    @cached_property
    def _pairs(self) -> tuple[Pair, Pair]:
        """The pair and the attack, of one coordinate; the pair is modulo M where the noise is wide enough for it."""
        law, moved, modulus = self.law, self.sensitivity, self.modulus
        if modulus is None:
            return with_attack(shifted(law, moved))
        known = law.below + law.above == 0.0 or 2 * modulus <= law.masses.size
        if known and moved <= MOST_STEPS and law.masses.size + moved > modulus:
            return at_most(law, moved, modulus)
        return with_attack(shifted(law, moved))[0], with_attack(shifted_around(law, moved, modulus))[1]

    @cached_property
    def pair(self) -> Pair:  # type: ignore[override]
        return self._all(self._pairs[0])

    @cached_property
    def attack_pair(self) -> Pair:  # type: ignore[override]
        pair, attack = self._pairs
        return self.pair if attack is pair else self._all(attack)

    def _all(self, pair: Pair) -> Pair:
        return pair if self.coordinates == 1 or self.sensitivity_norm == "l1" else Together(((pair, self.coordinates),))

    @property
    def users(self) -> int | None:
        return self.clients

    def require_sampling(self) -> None:
        super().require_sampling()
        if self.coordinates > 1:
            raise TypeError(f"mechanism must have one coordinate to be sampled, got {self!r}")

    def assumptions(self) -> dict[str, str]:
        around = "" if self.modulus is None else f" modulo {self.modulus}"
        each = ""
        if self.coordinates > 1:
            linf = self.sensitivity_norm == "linf"
            each = f" in each of {self.coordinates} coordinates" if linf else " in all coordinates together"
        return {
            "neighbours": f"{NEIGHBOURS[self.neighbours]}; the exact sum moves by at most {self.sensitivity}{each},"
            " and who adds noise is the same",
            "adversary": f"sees the total of {self.clients} clients' sums{around}, and the shares of {self.colluding}"
            " colluding clients",
            "analysis": f"exact law of at least {self.clients - self.dropouts - self.colluding} shares {self.share!r},"
            " moved by the sensitivity, in either order",
            "sampling": f"at most {self.dropouts} clients drop out, whatever the data; the shares are independent",
        }


SYMBOLS = (KRandomizedResponse, HadamardResponse, DiscreteRandomizer)
SUMMED = (*SYMBOLS, NoisyVector, Gaussian, Laplace)
CELLS = 32  # of the lattice in a scale of Laplace noise: a share of 1e-4 of its variance
# Of an attack: cells in a deviation, the last one's mass, and half of them at most: width against speed.
SEEN_CELLS, SMALLEST_MASS, MOST_CELLS = 96, 1e-75, 16_000
LEFT_OUT = 1e-17  # of a sum of falling terms


@dataclass(frozen=True, repr=False)
class Summed(Mechanism):
    """n users' local reports, of which only the sum is published (secure aggregation).

    randomizer : what every user runs: `BinaryRandomizedResponse`, `KRandomizedResponse`, `HadamardResponse` or
        `DiscreteRandomizer` (sums of one-hot symbols), `UnaryEncoding` or a `RAPPOR` (sums of bits),
        `Gaussian` or `Laplace` (the sum of numbers).
    n : users whose reports are in the sum and who follow the protocol: less those who may drop out or collude.

    Symbols say as much summed as shuffled, bits less, noise much less. Lower ends are attacks: all others hold one
    value; for Gaussian noise they are exact, for Laplace noise the sum is seen to a fraction of its deviation.

    Raises TypeError for any other randomizer, and ValueError or TypeError naming the argument.

    >>> from pld_shuffle import Accountant
    >>> from pld_shuffle.randomizers import UnaryEncoding
    >>> one_hot = UnaryEncoding(k=16, eps0=4.0)
    >>> spent = [Accountant(0.01).compose(kind(one_hot, 10_000)).get_epsilon(1e-6) for kind in (Summed, Shuffled)]
    >>> [round(epsilon, 3) for epsilon in spent]
    [0.125, 0.337]
    """

    randomizer: Annotated[LocalRandomizer, instance(SUMMED, "one whose reports have a sum that is accounted for")]
    n: UserCount

    @cached_property
    def _bits(self) -> tuple[int, BitShares, int]:
        """Of sums of bits: users, what happens to a bit, and values."""
        assert isinstance(self.randomizer, NoisyVector)
        one, not_one, zero, not_zero = self.randomizer.channel
        return self.n, BitShares(one, zero, not_one, not_zero, self.randomizer.tv), self.randomizer.inputs

    @cached_property
    def _counts(self) -> tuple[Pair, Pair]:
        """Of sums of bits, and attacks."""
        return two_counts(*self._bits)

    @cached_property
    def pair(self) -> Pair:  # type: ignore[override]
        randomizer, n = self.randomizer, self.n
        if isinstance(randomizer, SYMBOLS):
            return Shuffled(randomizer, n).pair
        if isinstance(randomizer, Gaussian):
            square = 1.0 / (n * randomizer.sigma**2)
            return GaussianPair(Bounds(below(square, 4.0), above(square, 4.0)))
        if isinstance(randomizer, Laplace):
            parts = max(1, math.ceil(CELLS * randomizer.eps0))
            return shifted(two_sided_law(float(n), randomizer.eps0 / parts), parts)
        return self._counts[0]

    @cached_property
    def attack_pair(self) -> Pair:  # type: ignore[override]
        if isinstance(self.randomizer, SYMBOLS):
            return Shuffled(self.randomizer, self.n).attack_pair
        if isinstance(self.randomizer, Gaussian):
            return self.pair
        if isinstance(self.randomizer, Laplace):
            deviation = math.sqrt(2.0 * self.n) / self.randomizer.eps0
            parts = max(1, math.ceil(SEEN_CELLS / deviation))
            return shifted(_cells(self.n, self.randomizer.eps0 / parts), parts)
        return self._counts[1]

    @property
    def unsampled(self) -> str | None:  # type: ignore[override]
        """Sums of bits alone have a proven pair, by general amplification."""
        bits = isinstance(self.randomizer, NoisyVector)
        return None if bits else "no pair is known for the sum of a hidden cohort"

    def sampled_attack(self, cohort: Cohort) -> Pair:
        """What two sums tell, all others holding one value."""
        return two_count_attacks(*self._bits, cohort)

    def stand_in_attack(self, cohort: Cohort) -> tuple[Pair, Pair] | None:
        if not isinstance(self.randomizer, NoisyVector):
            return None
        ahead = TwoCountAttack(*self._bits[:2])
        return ahead, ahead.reverse

    def assumptions(self) -> dict[str, str]:
        return said(
            f"the exact law of the sum of reports of {self.randomizer!r}, whatever the others hold",
            adversary="sees the sum of the reports and knows every other user's value",
            sampling="n counts the users whose reports are in the sum and who do not collude",
        )


def _cells(n: int, width: float) -> IntegerLaw:
    """In which cell of that width the difference A - B of two Gamma(n) numbers lies, cell 0 around 0.

    P[A - B >= t] = P[Poisson(t) + N < n], N the failures before success n of fair trials. So A - B is in [t, t + size)
    if Poisson(t) + N = n - 1 - j, j >= 0, and Poisson(size) is above j: a sum of products, nothing is subtracted. The
    first factor does not rise in j, since n - 1 is a mode of N.
    """
    fails = negative_binomial_law(float(n), 0.5)
    half: list[float] = []
    error = 0.0
    for start, size in chain([(0.0, 0.5 * width)], (((i + 0.5) * width, width) for i in range(MOST_CELLS))):
        more = poisson_law(size)
        above = np.append(np.ones(more.low), np.cumsum(more.masses[:0:-1])[::-1])  # P[Poisson(size) > j]
        kept = above[above > LEFT_OUT * above[0]]
        arrivals = poisson_law(start) if start > 0.0 else IntegerLaw(0, np.ones(1), 0.0, 0.0)
        first = n - fails.low - arrivals.low - kept.size - arrivals.masses.size + 1
        place = np.arange(first, n - fails.low - arrivals.low)
        known = np.where((place >= 0) & (place < fails.masses.size), fails.masses.take(place, mode="clip"), 0.0)
        half.append(float(np.convolve(known, arrivals.masses, mode="valid")[::-1] @ kept))
        rounding = ROUNDOFF * (arrivals.masses.size + above.size + 8.0) + LEFT_OUT * above.size
        error = max(error, fails.error + arrivals.error + more.error + rounding)
        if half[-1] <= SMALLEST_MASS:
            break
    masses = np.concatenate((half[:0:-1], [2.0 * half[0]], half[1:]))
    # Cells of a log-concave law are log-concave: beyond, they fall faster than the last two.
    fall = half[-1] / half[-2] * (1.0 + 4.0 * error)
    beyond = half[-1] * fall / (1.0 - fall) * (1.0 + 4.0 * error)
    return IntegerLaw(1 - len(half), masses, error, 2.0 * error, beyond, beyond, symmetric=True)


RELEASES = ("counts", "bins")


@dataclass(frozen=True, repr=False)
class Threshold(Mechanism):
    """A histogram of users who take part with probability `rate` each; counts below `least` are suppressed.

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

    rate: Annotated[float, unit_interval]
    least: PositiveInt
    dummies: Share | None = None
    senders: PositiveInt = 1
    released: Annotated[str, partial(choice, options=RELEASES)] = "counts"
    neighbours: Annotated[str, partial(choice, options=tuple(NEIGHBOURS))] = "replace-one"

    rarely = ("senders", "released")
    unsampled = "who takes part is the mechanism's own matter"

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
