"""Any eps0-LDP randomizer in a shuffler: all that is known is eps0 and n.

Two dominating pairs are proved for it, and the least of both is used (`pairs.profile.Several`): stronger clones
(docs/theory.md, section 4), and the swap theorem (docs/swap.md, Theorem S; a hidden cohort: Theorem C). The lower end
is an attack: three-valued or binary randomised response, all other users holding one value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Annotated

import numpy as np

from ..numerics.tuning import LEAST_GAIN
from ..numerics.validation import UserCount, choice
from ..pairs.bits import LARGEST_BIT_EPS0, BitAttackPair, BitShares, bit_attacks
from ..pairs.coins import CoinMixture, Shown
from ..pairs.pair import Attacks, Cohort, Pair
from ..pairs.profile import Several
from ..pairs.sequence import SequencePair
from ..pairs.swap import may_win
from ..pairs.swap_pairs import AnyLDPPair, labels, stronger_clones
from .base import CONCURRENT, OUTPUTS_ONLY, LocalEpsilon, OfReports, OnCohorts, largest_loss, said

ANALYSES = ("tightest", "stronger-clones", "clones")
EPOCH_ANALYSES = ANALYSES[:2]
MOST_BIT_USERS = 10**9
MANY_USERS = 1_000  # who come, on average, from which on an absent report may be taken for a neutral one
HIDDEN = 30.0  # the same number, times this and the squared rate, if that is less
MANY_COUNTED = 100.0  # reports from which on three-valued randomised response is the worse attack
HOPELESS = 1.02  # times the delta of clones, at one deviation: then the swap theorem of MANY_USERS wins nowhere
ASKED = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 20.0])  # deviations


@dataclass(frozen=True, repr=False)
class ShuffledLDP(OnCohorts, OfReports):
    """n users shuffle the reports of any eps0-LDP randomizer, the same for all of them.

    eps0 : local epsilon, in [1e-9, 700].
    n : users whose reports are shuffled together, the target included; n >= 1.
    analysis : "tightest" (default): at every epsilon the least of the swap theorem (docs/swap.md) and of stronger
        clones, for whoever sees the shuffled reports and knows every other user's value. "stronger-clones" alone:
        clone probability 1/(e^eps0 + 1) per side, also for an adversary who is told who cloned (docs/theory.md,
        section 4). "clones": Feldman, McMillan, Talwar 2021, Thm 3.2. Users who see earlier reports of the round are
        covered in a hidden random order only: that is an `Epoch`.

    With the default, lower ends come from an attack: three-valued or binary randomised response, all other users
    holding one value. No analysis can go below it. Raises ValueError or TypeError naming the argument.

    >>> ShuffledLDP(eps0=4.0, n=10_000)
    ShuffledLDP(eps0=4.0, n=10000)
    """

    eps0: LocalEpsilon
    n: UserCount
    analysis: Annotated[str, partial(choice, options=ANALYSES)] = "tightest"

    def amplified(self, rate: float) -> Pair:
        return self._clones.amplified(rate) if self.analysis == "tightest" else self.pair.amplified(rate)

    def sampled(self, cohort: Cohort) -> Pair:
        clones = self._clones.sampled(cohort)
        if self.analysis != "tightest":
            return clones
        if not (cohort.rate < 1.0 or may_win(self.eps0, self.n)):
            return clones
        swap = AnyLDPPair(self.eps0, self.n, cohort)
        # Cohorts of almost one size are all like one of them.
        wins, everywhere = _contest(swap.typical)
        if not wins:
            return clones  # exact
        return swap if everywhere else Several((swap, clones))

    @property
    def _clones(self) -> CoinMixture:
        if self.analysis == "clones":
            return labels(self.eps0, self.n, math.exp(-self.eps0), -math.expm1(-self.eps0))
        return stronger_clones(self.eps0, self.n)

    def sampled_attack(self, cohort: Cohort) -> Pair:
        """Three-valued and binary randomised response (docs/swap.md).

        With equal others the hidden cohort says nothing, so the sampled pair of the attack is one.
        """
        if self.analysis != "tightest":
            return self.pair if cohort.everybody else self.pair.sampled(cohort)
        if self.n == 1 and cohort.rate == 1.0:
            # Binary randomised response of one user, for whom nobody stands in.
            return self._clones.sampled(cohort)
        bits: list[Pair] = []
        weak = self.eps0 < math.log(2.0)
        counted = self.n * cohort.presence * math.exp(-self.eps0)
        if self.n <= MOST_BIT_USERS and self.eps0 <= LARGEST_BIT_EPS0 and (weak or counted < MANY_COUNTED):
            bits = bit_attacks(self.n, BitShares.randomized_response(self.eps0), cohort, eps0=self.eps0)
            if weak:
                return Attacks.of(bits)
        # All others hold the third value, so every report is a coin label or neutral.
        shrink = math.exp(-self.eps0)
        whole = 1.0 + 2.0 * shrink
        neutral, present, away = (1.0 / whole, shrink / whole), 1.0, 0.0
        many = MANY_USERS * min(1.0, HIDDEN * cohort.rate**2)
        if cohort.absence > 0.0 and self.n * cohort.presence >= many and not cohort.certain:
            # Who takes neutral reports for absent ones loses rate^2/n of delta or so, and the pair stays one of coins.
            present, away, cohort = cohort.presence, cohort.absence, Cohort(cohort.rate)
        others = Shown(present * 2.0 * shrink / whole, present * neutral[0] + away, 0.0)
        target = Shown(present * (1.0 + shrink) / whole, present * neutral[1] + away, 0.0)
        theta, gap, loss = math.tanh(0.5 * self.eps0), 2.0 * shrink / (1.0 + shrink), largest_loss(self.eps0)
        third = CoinMixture(self.n, others, target, theta=theta, gap=gap, local_loss=loss)
        return Attacks.of([third.sampled(cohort), *bits])

    def assumptions(self) -> dict[str, str]:
        named = {
            "tightest": "the least of the swap theorem and stronger clones, valid for every eps0-LDP randomizer",
            "stronger-clones": "stronger clones, valid for every eps0-LDP randomizer",
            "clones": "clones (Feldman-McMillan-Talwar 2021), valid for every eps0-LDP randomizer",
        }
        independent = "" if self.analysis == "clones" else "; reports of a round are independent"
        return said(named[self.analysis] + independent)

    def stand_in_attack(self, cohort: Cohort) -> tuple[Pair, Pair] | None:
        if not (self.eps0 <= LARGEST_BIT_EPS0 and self.n <= MOST_BIT_USERS):
            return None
        return bit_orders(BitAttackPair(self.n, BitShares.randomized_response(self.eps0)))


@dataclass(frozen=True, repr=False)
class Epoch(OfReports):
    """One pass over n users in a hidden random order, in disjoint cohorts of any size.

    eps0 : local epsilon of every report, for every past, in [1e-9, 700].
    n : users of the epoch, the target included; every one reports exactly once.
    analysis : "tightest" (default): at every epsilon the least of Theorem Q and of stronger clones. "stronger-clones":
        also for an adversary who is told who cloned; the one that has certificates.

    The order is uniform and nobody but the shuffler learns it. Reports of a cohort are shuffled; later cohorts may be
    asked by randomizers that depend on the output of earlier ones, each of them eps0-LDP. The target must be in the
    epoch for certain. Another epoch with a fresh order is one more round of the ledger. The lower end is the attack of
    `ShuffledLDP(eps0, n)`: who sees cohorts can put them together again. Raises ValueError or TypeError.

    >>> from pld_shuffle import Accountant
    >>> epoch = Accountant().compose(Epoch(eps0=4.0, n=10**6))  # in cohorts of 10**4, say
    >>> cohort = Accountant().compose(ShuffledLDP(eps0=4.0, n=10**4))  # a user's own, if it is known
    >>> round(epoch.get_epsilon(1e-6), 3), round(cohort.get_epsilon(1e-6), 3)
    (0.034, 0.407)
    """

    unsampled = "everybody must take part in an epoch"

    eps0: LocalEpsilon
    n: UserCount
    analysis: Annotated[str, partial(choice, options=EPOCH_ANALYSES)] = EPOCH_ANALYSES[0]

    @cached_property
    def pair(self) -> Pair:  # type: ignore[override]
        clones = ShuffledLDP(self.eps0, self.n, analysis="stronger-clones").pair
        if self.analysis != "tightest" or not may_win(self.eps0, self.n):
            return clones
        return Several((SequencePair(self.eps0, self.n), clones))

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


def bit_orders(attack: BitAttackPair) -> tuple[Pair, Pair]:
    """The attack on one bit in which all others hold the target's second value, and it reversed."""
    ahead = replace(attack, all_hold_one=False)
    return ahead, replace(ahead, shares=ahead.shares.mirrored, all_hold_one=True)


@lru_cache(maxsize=4096)
def _contest(pair: AnyLDPPair) -> tuple[bool, bool]:
    """Whether the swap theorem beats stronger clones anywhere, and whether everywhere.

    A guess, from a few epsilons: every bound is valid.
    """
    asked = np.expm1(np.minimum(pair.scale * ASKED, 0.9 * float(pair.max_loss.upper)))
    known = pair.like.as_profile
    if known is None:
        return False, False
    one = asked[1:2]
    if pair.n >= MANY_USERS and pair.upper(one, 0.0) > HOPELESS * known.profile(one, 1e-3, 0.0).lower:
        return False, False
    swap = pair.upper(asked, 0.0) / (1.0 - LEAST_GAIN)
    for rtol in (1e-3, 0.1 * LEAST_GAIN):
        labels = known.profile(asked, rtol, 0.0)
        if np.all((swap < labels.lower) | (swap >= labels.upper)):
            break
    wins = swap < labels.lower
    return bool(wins.any()), bool(np.all(wins | (labels.lower == 0.0)))
