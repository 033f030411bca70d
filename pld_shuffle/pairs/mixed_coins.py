"""Labelled users of several classes: a Poisson-binomial number of labels, of one law each.

A user of class i shows a label with a probability of its own, rate_i, and every label shown is a coin label with one
probability, the same for all classes (one half of it for each coin label), else a neutral one. The target always shows
a label. Let b of the others show one, b a sum of independent coins of rates rate_i. Given b the view is that of
`coins` with b + 1 users who all show a label. So (m, c), the numbers of coin labels and of neutral ones, have the
law of b = m+c-1 and of m+c labels, times the target's

    answers(b) b!/(m! c!) coin^m neutral^c (m + kappa c) target_coin/coin,      theta(m, c) = theta m/(m + kappa c),

with kappa = (target_neutral/neutral) (coin/target_coin), whatever the rates are.

The buckets of `coins` remain certified. They need that c given m is smaller, in likelihood ratio, for a larger m: the
ratio of two such laws is (b+1) answers(b+1)/answers(b) times a falling function of c, and it falls because the number
of successes in independent trials is ultra-log-concave (Newton's inequalities).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..numerics.binomial import Counts, Trials, counts
from ..numerics.sides import Bounds
from .cohort import Cohort
from .coins import SMALLEST_CELL, CoinMixture, Labels, Shown
from .pair import Pair, Resolution
from .slots import SlotLaw

RAREST = 1e-280  # what windows may leave out of the law of the labels, at least


class LabelClass(NamedTuple):
    """So many users who show a label with probability `rate`; silent = 1 - rate."""

    number: int
    rate: float
    silent: float


@dataclass(frozen=True)
class MixedCoins(CoinMixture):
    """A `CoinMixture` whose other users are of several classes; see the module.

    coin, neutral : probability that a label is a coin label, or a neutral one. `others` are means.
    """

    classes: tuple[LabelClass, ...] = ()
    coin: float = 1.0
    neutral: float = 0.0

    @classmethod
    def of(
        cls, classes: tuple[LabelClass, ...], *, coin: float, neutral: float, target: Shown, theta: float, gap: float,
        local_loss: Bounds,
    ) -> MixedCoins:  # fmt: skip
        """The pair of a target among these users; classes of one rate are put together."""
        numbers: dict[tuple[float, float], int] = {}
        for number, *rates in classes:
            numbers[rates[0], rates[1]] = numbers.get((rates[0], rates[1]), 0) + number
        classes = tuple(LabelClass(number, *rates) for rates, number in numbers.items())
        n = 1 + sum(part.number for part in classes)
        shown = math.fsum(part.number * part.rate for part in classes) / max(1, n - 1)
        others = Shown(shown * coin, shown * neutral, 1.0 - shown)
        return cls(n, others, target, theta, gap, local_loss, classes=classes, coin=coin, neutral=neutral)

    def sampled(self, cohort: Cohort) -> Pair:
        raise TypeError(f"no pair is known for a hidden cohort of users of several classes, got {self!r}")

    @property
    def as_profile(self) -> None:
        return None

    def slot_law(self) -> SlotLaw:
        raise TypeError(f"users of several classes have no one law, got {self!r}")

    def _coins_of_others(self, truncated_mass: float) -> Counts:
        parts = [
            Trials(part.number, part.rate * self.coin, part.silent + part.rate * self.neutral) for part in self.classes
        ]
        return counts(parts, truncated_mass)

    def _labels(self, fewest: int, most: int, resolution: Resolution) -> Labels:
        # Given coin labels as many as their window allows, the labels lie at the end of theirs: so that one is wider.
        law = counts([Trials(*part) for part in self.classes], max(resolution.truncated_mass**2, RAREST))
        kept = np.flatnonzero(law.masses > SMALLEST_CELL)
        answers = law.masses[kept[0] : kept[-1] + 1]
        # With the target's there is one more.
        low = law.low + int(kept[0]) + 1
        shown = low + np.arange(answers.size - 1.0)
        odds = answers[1:] / answers[:-1] * (shown / (shown + 1.0)) * self.neutral
        high = low + answers.size - 1
        neutrals = (self.n - 1) * self.others.neutral
        deviation = math.sqrt(neutrals * (1.0 - self.others.neutral / self.others.no_coin))
        error = 2.0 * law.largest_error
        return Labels(odds, low, low > 1, high < self.n, error, answers.size, neutrals, deviation)
