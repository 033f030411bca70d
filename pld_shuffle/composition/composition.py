"""Answers about a composition: attempts with less and less error, until the bracket is tight.

A ledger is a list of (pair, count); a question asks for delta at an epsilon or the reverse.

1. Where a mechanism has several proven pairs, choose (`_choices`).
2. Sketch every pair and solve the saddle point (`sketch`): the tilt, and the order of delta.
3. Share out rtol (`plan`).
4. Compose each side, by an evaluator: a contour integral over atoms wherever they lie (`contour`), or on a lattice
   (`product`). The one that is likely to be cheaper comes first; the next one if that is too expensive or too wide,
   at last direct convolution (`direct`).
5. Read both sides off (`reading`) and *measure* the bracket. If it is wider than rtol, spend less and repeat.

Gaussian noise alone, and one round of a pair whose profile is known, need no evaluator.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from ..numerics.sides import Bounds, Side
from ..numerics.tuning import FAR, FUTILE_ATTEMPTS, KEPT, MOST_ATTEMPTS, SKETCHED_POINTS
from ..numerics.validation import nonnegatives, probabilities
from ..pairs.gaussian import noise_of, with_one_noise
from ..pairs.pair import Pair, Resolution
from ..pairs.profile import BothOrders, ProfilePair, Several
from .aliases import TooExpensive
from .contour import Contour, preferred
from .direct import DirectReading
from .one_round import OneRound
from .plan import Plan
from .pld import formed, log_finite
from .product import LatticeReading
from .reading import Array, Ends, GaussianReading, Question, Reading, read_deltas, read_epsilons
from .sketch import FINER, Sketch, sketch_key

Ledger = Sequence[tuple[Pair, int]]
Evaluator = type[Contour] | type[LatticeReading] | type[DirectReading]

SMALLEST_DELTA = 1e-280  # windows cannot follow a delta below this in double precision
NEAR = 1e4  # ratio of deltas up to which one choice among several pairs serves all
LOWER_TILTS = (0.8, 0.5)  # times the sketched one, where that was no good


class AccuracyWarning(UserWarning):
    """A bracket is valid but wider than the requested rtol."""


class Composition:
    """Answers questions about one ledger; see the module for how."""

    def __init__(self, ledger: Ledger, rtol: float) -> None:
        # A pair without any loss changes nothing.
        self._given = [(pair, count) for pair, count in ledger if pair.scale > 0.0]
        self._rtol = rtol
        self._encloses = all(pair.encloses for pair, _ in ledger)
        self._parts: dict[tuple[Pair, ...], Composition] = {}
        self._several = any(isinstance(pair, (Several, BothOrders)) for pair, _ in self._given)
        self._ledger = with_one_noise([part for pair, count in self._given for part in pair.repeated(count)])
        self.rounds = sum(count for _, count in self._ledger)
        self._recent: list[Reading] = []
        self._one: OneRound | None = None
        if self.rounds == 1 and not self._several:
            pair = self._ledger[0][0]
            if (square := noise_of(pair)) is not None:
                self._recent = [GaussianReading(square)]
            elif isinstance(pair, ProfilePair):
                self._one = OneRound(pair, rtol)

    @cached_property
    def _limit(self) -> Bounds | None:
        """The sum of the largest losses, if they are finite."""
        if any(pair.max_loss.upper == math.inf for pair, _ in self._given):
            return None
        low, high = (
            sum((count * Fraction(float(pair.max_loss[end])) for pair, count in self._given), Fraction(0))
            for end in (0, 1)
        )  # fmt: skip
        below, above = float(low), float(high)
        return Bounds(
            below if below <= low else math.nextafter(below, 0.0),
            above if above >= high else math.nextafter(above, math.inf),
        )

    @property
    def max_loss(self) -> float:
        """The sum of the largest losses, rounded upwards; delta is 0 from there on."""
        return math.inf if self._limit is None else float(self._limit.upper)

    @property
    def latest(self) -> Reading | None:
        """The latest reading that was accurate enough, if there was one."""
        return self._recent[-1] if self._recent else None

    @property
    def lawless(self) -> bool:
        """Whether answers need no law."""
        return self._one is not None or self._several

    def deltas(self, epsilon: Any) -> Bounds:
        """Bounds on delta at epsilon in [0, inf], scalar or array; TypeError or ValueError."""
        return self._answers(nonnegatives("epsilon", epsilon), self._delta, read_deltas)

    def epsilons(self, delta: Any) -> Bounds:
        """Bounds on the smallest epsilon with that delta, in [0, 1], scalar or array; TypeError or ValueError."""
        return self._answers(probabilities("delta", delta), self._epsilon, read_epsilons)

    # -- many questions ----------------------------------------------------------------------------

    def _answers(
        self, values: Array, answer: Callable[[float], Bounds], read: Callable[[Reading, Array, float], Ends]
    ) -> Bounds:
        """The answers in the shape of the questions; from few readings, where these are tight enough."""
        asked = values.ravel()
        if self._several and asked.size and self._given:
            orders = any(isinstance(pair, BothOrders) for pair, _ in self._given)
            found = (self._largest if orders else self._least)(asked, read is read_epsilons)
        else:
            found = self._from_readings(asked, answer, read)
        lower, upper = (end.reshape(values.shape) for end in found)
        return Bounds(lower, upper) if values.ndim else Bounds(float(lower), float(upper))

    def _from_readings(
        self, asked: Array, answer: Callable[[float], Bounds], read: Callable[[Reading, Array, float], Ends]
    ) -> Array:
        """The ends, shape (2, questions)."""
        usual = asked < self.max_loss
        if read is read_epsilons:
            usual = (asked >= SMALLEST_DELTA) & (asked < 1.0)
        ends = np.empty((2, asked.size))
        waiting = np.ones(asked.size, bool)
        fresh = list(self._recent)
        while waiting.any():
            shared = np.flatnonzero(waiting & usual)
            if shared.size and fresh and self._ledger:
                lower, upper, width = read(fresh.pop(), asked[shared], self.max_loss)
                tight = width <= self._rtol
                ends[:, shared[tight]] = lower[tight], upper[tight]
                waiting[shared[tight]] = False
                continue
            first = int(np.argmax(waiting))
            ends[:, first] = answer(float(asked[first]))
            waiting[first] = False
            if self._recent:
                fresh = [self._recent[-1]]
        return ends

    def _largest(self, asked: Array, epsilons: bool) -> Array:
        """The larger answers of both orders of the neighbouring datasets, the same order in all rounds."""
        parts = [
            self._part([(p.pairs[i] if isinstance(p, BothOrders) else p, n) for p, n in self._given]) for i in range(2)
        ]
        found = []
        for part in parts:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                bounds = part.epsilons(asked) if epsilons else part.deltas(asked)
            found.append((bounds, caught))
        most = np.array([np.max([bounds[end] for bounds, _ in found], axis=0) for end in (0, 1)])
        for bounds, caught in found:
            if np.any(bounds.upper >= most[0]):  # the other order need not be known well
                for one in caught:
                    warnings.warn(one.message, one.category, stacklevel=4)
        return most

    def _part(self, ledger: Ledger) -> Composition:
        """The composition of a ledger with one pair chosen for every round, kept."""
        key = tuple(pair for pair, _ in ledger)
        if key not in self._parts:
            self._parts[key] = Composition(ledger, self._rtol)
        return self._parts[key]

    def _least(self, asked: Array, epsilons: bool) -> Array:
        """The least answers of the compositions that `_choices` names for the first and the last question."""
        parts = []
        ends = float(asked.min()), float(asked.max())
        near = epsilons and ends[1] <= NEAR * ends[0]
        for value in ends[:1] if near else dict.fromkeys(ends):
            for choice in self._choices(value, epsilons):
                if (part := self._part(choice)) not in parts:
                    parts.append(part)
        found = [part.epsilons(asked) if epsilons else part.deltas(asked) for part in parts]
        return np.array([np.min([bounds[end] for bounds in found], axis=0) for end in (0, 1)], np.float64)

    def _choices(self, value: float, epsilons: bool) -> list[Ledger]:
        """Ledgers with one of several pairs for every round: all, if only one kind of round has several."""
        several = [pair for pair, _ in self._given if isinstance(pair, Several)]
        if len(several) == 1:
            chosen: list[dict[Pair, Pair]] = [{several[0]: part} for part in several[0].pairs]
        else:
            chosen = [selected(self._given, value, epsilons=epsilons)]
        return [[(one.get(pair, pair), count) for pair, count in self._given] for one in chosen]

    # -- one question ------------------------------------------------------------------------------

    def _delta(self, eps: float) -> Bounds:
        if not self._ledger or eps >= self.max_loss < math.inf:
            return Bounds(0.0, 0.0)
        question = Question(eps=eps)
        direct = None if self._one is None else self._one.delta(eps)
        if direct is not None:
            return self._judged(question, *direct)
        return self._refined(question, *_sketched(self._ledger, eps, False))

    def _epsilon(self, delta: float) -> Bounds:
        if not self._ledger or delta >= 1.0:
            return Bounds(0.0, 0.0)
        if delta == 0.0:
            return Bounds(math.inf if self._limit is None else self._limit.lower, self.max_loss)
        if delta < SMALLEST_DELTA:
            # Honest, not tight: epsilon decreases in delta, and pure DP bounds it from above.
            return Bounds(self._epsilon(SMALLEST_DELTA).lower, self.max_loss)
        question = Question(delta=delta)
        direct = None if self._one is None else self._one.epsilon(delta)
        if direct is not None:
            return self._judged(question, *direct)
        sketch, tilt, log_delta = _sketched(self._ledger, delta, True)
        if sketch.infinity > delta and self._infinity_mass(delta) > delta:
            return Bounds(math.inf, math.inf)
        return self._refined(question, sketch, tilt, log_delta)

    def _infinity_mass(self, delta: float) -> float:
        """Lower bound on the mass at infinity, from laws too coarse for anything else."""
        truncated_mass = max(1e-7 * delta / self.rounds, 1e-300)
        total = 0.0
        for pair, count in self._ledger:
            if noise_of(pair) is not None:
                continue  # none, however large its finite losses are
            resolution = Resolution(pair.scale / SKETCHED_POINTS, truncated_mass=truncated_mass, size_width=1e-6)
            total += log_finite(formed(pair, [Side.LOWER], resolution)[0].infinity, count)
        return -math.expm1(total) * (1.0 - 2e-15)

    def _refined(self, question: Question, sketch: Sketch, tilt: float, log_delta: float) -> Bounds:
        """Attempts under the sketched tilt; by finer sketches where that was no good, or next to the largest losses."""
        plan = Plan.steered(sketch, tilt, self._ledger, log_delta=log_delta, rtol=self._rtol)
        if log_delta < math.log(SMALLEST_DELTA):
            # Honest, not tight: the upper bound is what windows miss.
            return self._attempts(question, replace(plan, share=1e4), sketch)[0]
        saturated = sketch.saturated(tilt)
        best, width, reason = self._attempts(question, replace(plan, beyond=False), sketch)
        for lower in LOWER_TILTS if math.isinf(width) and not saturated else ():
            # A law of two humps: the answer lies between them, and the tilt is the farther one's.
            found, width, reason = self._attempts(question, replace(plan, tilt=lower * tilt), sketch)
            if width <= self._rtol:
                return found
            best = self._intersected(best, found)
        if width > self._rtol and saturated:
            value = question.eps if question.delta is None else question.delta
            assert value is not None
            for finer in FINER:
                sketch, tilt, log_delta = _sketched(self._ledger, value, question.delta is not None, finer)
                plan = Plan.steered(sketch, tilt, self._ledger, log_delta=log_delta, rtol=self._rtol)
                if plan.beyond and finer < FINER[-1]:
                    continue
                found, again, reason = self._attempts(question, plan, sketch)
                if again <= self._rtol:
                    return found
                best, width = self._intersected(best, found), min(width, again)
        return self._judged(question, best, width, reason)

    def _attempts(self, question: Question, plan: Plan, sketch: Sketch) -> tuple[Bounds, float, str]:
        """Compose, measure, and compose again with less error, until the bracket is tight.

        Returns the bracket, its width, and what stopped the search if it is too wide.
        """
        evaluators: list[Evaluator] = [LatticeReading, Contour, DirectReading]
        if preferred(self._ledger, sketch):
            evaluators = [Contour, LatticeReading, DirectReading]
        if self.rounds == 1:
            evaluators = [DirectReading]
        refused: dict[Evaluator, float] = {}
        best = Bounds(0.0, 1.0 if question.delta is None else self.max_loss)
        reason, widths, shrink = "", [math.inf], 1.0
        for attempt in range(MOST_ATTEMPTS):
            reading, reason = self._composed(evaluators, plan, question, refused)
            if reading is None:
                # A wide bracket is better than none, and a little less wide one better than giving up.
                if plan.share >= 1e6 or (len(widths) > 1 and shrink > 0.4):
                    break
                shrink = math.sqrt(shrink)
                grown = 4.0 if len(widths) == 1 else 1.0 / shrink
                plan = replace(
                    plan,
                    share=grown * plan.share,
                    lattice_share=min(1.0, 4.0 * plan.lattice_share) if len(widths) == 1 else plan.lattice_share,
                )
                continue
            found, width = question.answer(reading, self.max_loss)
            if width <= self._rtol:
                self._recent = [*self._recent[1 - KEPT // 4 :], reading]
                return found, width, ""
            best = self._intersected(best, found)
            better = min(plan.log_delta, question.log_delta(found))
            if better < plan.log_delta - 2.0 and attempt < MOST_ATTEMPTS // 2:
                # delta is far smaller than sketched: what the windows missed may be all of the bracket.
                plan = replace(plan, log_delta=better)
                continue
            far = math.inf > width > FAR * self._rtol
            if far and evaluators[0] is LatticeReading and not attempt:
                evaluators = [Contour, LatticeReading, DirectReading]  # atoms are far narrower
                continue
            if attempt >= FUTILE_ATTEMPTS and (math.isinf(width) or not question.promised(found)):
                break
            if math.isinf(width):
                evaluators.append(evaluators.pop(0))  # the same, another way
                continue
            if width > 0.9 * widths[-1]:
                evaluators.append(evaluators.pop(0))
                if len(widths) > 3 and width > 0.9 * min(widths[:-2]):
                    break  # what is left is rounding
            # Widths fall like the share, or like its root where laws have few losses.
            power = 1.0
            if len(widths) > 1 and width < widths[-1]:
                power = math.log(shrink) / math.log(width / widths[-1])
            shrink = (0.7 * self._rtol / width) ** min(max(power, 1.0), 2.0)
            shrink = min(0.5, max(1.0 / 64.0, shrink))
            widths.append(width)
            plan = replace(plan, share=plan.share * shrink)
        return best, min(widths), reason

    def _composed(
        self, evaluators: Iterable[Evaluator], plan: Plan, question: Question, refused: dict[Evaluator, float]
    ) -> tuple[Reading | None, str]:
        """A reading of the first evaluator that is not too expensive, or why there is none.

        refused : the share of the error at which an evaluator was too expensive; with less it would be, too.
        """
        reason = ""
        for evaluator in evaluators:
            if plan.share <= refused.get(evaluator, 0.0):
                continue
            try:
                return evaluator.of(self._ledger, plan, question), ""
            except (TooExpensive, MemoryError) as error:
                refused[evaluator] = plan.share
                reason = f": {error}" if str(error) else reason
        return None, reason

    def _intersected(self, best: Bounds, found: Bounds) -> Bounds:
        """Both are valid; where another resolution is another pair, the lower end is only the numerical one."""
        upper = min(best.upper, found.upper)
        if self._encloses:
            return Bounds(min(max(best.lower, found.lower), upper), upper)
        return Bounds(min(found.lower, upper), upper)

    def _judged(self, question: Question, best: Bounds, width: float, reason: str = "") -> Bounds:
        """The answer, with a warning if delta is known there to less than was promised."""
        if width > self._rtol and question.promised(best):
            asked = f"epsilon={question.eps!r}" if question.delta is None else f"delta={question.delta!r}"
            warnings.warn(
                f"at {asked} the answer {best} is certified, but delta is known there to {width:.1e} only,"
                f" not to rtol={self._rtol:.1e}{reason}",
                AccuracyWarning,
                stacklevel=5,
            )
        return best


def selected(ledger: Ledger, value: float, *, epsilons: bool = True) -> dict[Pair, Pair]:
    """For every pair of a ledger that stands for several, the one that is likely to be the best for a question.

    value : the delta whose epsilon is asked for, or the other way round. The best has the smallest log moment at the
    tilt, by the coarse laws of one pair for all that are alike. Whatever is chosen is proved.
    """
    several = [pair for pair, _ in ledger if isinstance(pair, Several)]
    if not several:
        return {}
    plain = [(pair.pairs[0] if isinstance(pair, Several) else pair, count) for pair, count in ledger]
    sketch, tilt, _ = _sketched(plain, value, epsilons)
    best: dict[Hashable, int] = {}
    for pair in several:
        key = sketch_key(pair)
        if key not in best:
            rates = [Sketch([(part, 1)], sketch.truncated_mass).moments(tilt)[0] for part in pair.pairs]
            best[key] = int(np.argmin(rates))
    return {pair: pair.pairs[best[sketch_key(pair)]] for pair in several}


def _sketched(ledger: Ledger, value: float, epsilons: bool, finer: float = 1.0) -> tuple[Sketch, float, float]:
    """A sketch that is good near the answer, the tilt there, and about log delta."""
    rounds = sum(count for _, count in ledger)
    points = finer * SKETCHED_POINTS
    if epsilons:
        log_delta = math.log(max(min(value, 0.5), SMALLEST_DELTA))
        sketch = Sketch.at_delta(ledger, math.exp(log_delta), rounds, points=points)
        return sketch, sketch.saddle_of_delta(log_delta), log_delta
    truncated_mass = 1e-30
    while True:
        sketch = Sketch(ledger, truncated_mass, points)
        tilt = sketch.saddle(value) if value < math.inf else 0.0
        log_delta = sketch.log_delta(tilt, value)
        if log_delta > math.log(truncated_mass) + math.log(1e4 * rounds) or truncated_mass <= 1e-300:
            return sketch, tilt, log_delta
        truncated_mass = max(truncated_mass**3 if truncated_mass > 1e-100 else 1e-300, 1e-300)
