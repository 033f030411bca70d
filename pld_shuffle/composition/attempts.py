"""Answers about a composition: attempts with less and less error, until the bracket is tight.

A ledger is a list of (pair, count); a question asks for delta at an epsilon or the reverse.

1. Sketch every pair and solve the saddle point (`sketch`): the tilt, and the order of delta.
2. Choose lattice, windows and buckets (`plan`).
3. Compose each side, by a contour integral (`contour`) where that is cheaper, or else by tilted FFT (`one_side`).
4. Read both sides off (`reading`) and *measure* the bracket. If it is wider than rtol, spend less and repeat.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from ..numerics.sides import Bounds, Side
from ..numerics.validation import nonnegatives, probabilities
from ..pairs.gaussian import noise_of, with_one_noise
from ..pairs.pair import Pair, Resolution
from ..pairs.profile import ProfilePair
from .contour import MANY_ROUNDS, Contour, preferred
from .largest import AtLargest, stands_apart
from .one_round import OneRound
from .one_side import OneSide
from .plan import FEW_LAWS, Plan, sharing, uneven
from .pld import formed
from .reading import (
    Array,
    Composed,
    DeltaQuestion,
    EpsilonQuestion,
    GaussianReading,
    Reading,
    read_deltas,
    read_epsilons,
)
from .sketch import POINTS_PER_SCALE, Sketch

SMALLEST_DELTA = 1e-280  # windows cannot follow a delta below this in double precision
MAX_ATTEMPTS = 16
#: With fewer distinct pairs lattices are finer than asked, down to FEW_PAIRS / CHEAP of their share.
CHEAP, FEW_PAIRS = 256, 16
FEW_ROUNDS = 10_000  # up to so many, sums of few losses may stand out one by one
UNPROMISED_ATTEMPTS = 3  # below that delta, only so many attempts are made, and no warning is given


class AccuracyWarning(UserWarning):
    """A bracket is valid but wider than the requested rtol."""


class Composition:
    """Answers questions about one ledger; see the module for how."""

    def __init__(self, ledger: Sequence[tuple[Pair, int]], rtol: float) -> None:
        # A pair without any loss changes nothing.
        self._given = [(pair, count) for pair, count in ledger if pair.scale > 0.0]
        self._ledger = with_one_noise(
            [part for pair, count in self._given for part in pair.repeated(count)]
        )
        self._encloses = all(pair.encloses for pair, _ in ledger)
        self._rtol = rtol
        self._rounds = sum(count for _, count in self._ledger)
        self._pure = all(pair.max_loss.upper < math.inf for pair, _ in self._given)
        losses = [(float(pair.max_loss.upper), count) for pair, count in self._given]
        self._limit = _exact_sum(losses) if self._pure else None
        self.max_loss = _float_above(self._limit) if self._limit is not None else math.inf
        self._recent: list[Reading] = []
        self._one: OneRound | None = None
        if self._rounds == 1:
            pair = self._ledger[0][0]
            if (square := noise_of(pair)) is not None:
                self._recent = [GaussianReading(square)]
            elif isinstance(pair, ProfilePair):
                self._one = OneRound(pair, rtol)

    @property
    def latest(self) -> Reading | None:
        """The law of the latest answer that was accurate enough, if there was one."""
        return self._recent[-1] if self._recent else None

    @property
    def lawless(self) -> bool:
        """Whether answers need no law."""
        return self._one is not None

    def deltas(self, epsilon: Any) -> Bounds:
        """Bounds on delta at epsilon in [0, inf], scalar or array; TypeError or ValueError."""
        limit = math.inf if self._limit is None else self.max_loss
        values = nonnegatives("epsilon", epsilon)
        return self._answers(self.delta, values, values < limit, read_deltas)

    def epsilons(self, delta: Any) -> Bounds:
        """Bounds on the smallest epsilon with that delta, in [0, 1], scalar or array; TypeError or ValueError."""
        values = probabilities("delta", delta)
        usual = (values >= SMALLEST_DELTA) & (values < 1.0)
        return self._answers(self.epsilon, values, usual, read_epsilons)

    def _answers(
        self,
        answer: Callable[[float], Bounds],
        values: np.ndarray,
        usual: np.ndarray,
        read: Callable[[Reading, Array, float], tuple[Array, Array, Array]],
    ) -> Bounds:
        """The answers in the shape of the questions; `usual` ones are read off one law where it is tight enough."""
        if values.ndim == 0:
            return answer(float(values))
        flat = values.ravel()
        ends = np.empty((2, flat.size))
        waiting = np.ones(flat.size, bool)
        tried: list[Reading] = []
        shared = usual.ravel() & (self._one is None and bool(self._ledger))
        while waiting.any():
            asked = np.flatnonzero(waiting & shared)
            fresh = [law for law in self._recent if not any(law is old for old in tried)]
            if asked.size and fresh:
                tried.append(fresh[-1])
                lower, upper, width = read(fresh[-1], flat[asked], self.max_loss)
                tight = width <= self._rtol
                ends[:, asked[tight]] = lower[tight], upper[tight]
                waiting[asked[tight]] = False
            else:
                first = int(np.argmax(waiting))
                found = answer(float(flat[first]))
                ends[:, first] = found.lower, found.upper
                waiting[first] = False
        return Bounds(*(end.reshape(values.shape) for end in ends))

    def delta(self, eps: float) -> Bounds:
        """Bounds on delta at eps in [0, inf]."""
        if self._limit is not None and eps >= self._limit:
            return Bounds(0.0, 0.0)
        question = DeltaQuestion(eps)
        direct = None if self._one is None else self._one.delta(eps)
        if direct is not None:
            return self._judged(question, *direct)
        recent = self._from_recent(question)
        if recent is not None:
            return recent
        missed = 1e-30
        for _ in range(4):
            sketch = Sketch(self._ledger, missed)
            tilt = sketch.saddle(eps) if eps < math.inf else 0.0
            log_delta = sketch.log_delta(tilt, eps)
            if log_delta > math.log(missed) + math.log(1e4 * self._rounds) or missed <= 1e-300:
                break
            missed = max(missed**3 if missed > 1e-100 else 1e-300, 1e-300)
        return self._refined(question, sketch, tilt, log_delta)

    def epsilon(self, delta: float) -> Bounds:
        """Bounds on the smallest eps >= 0 with delta(eps) <= delta, delta in [0, 1]."""
        if not self._ledger or delta >= 1.0:
            return Bounds(0.0, 0.0)
        if delta == 0.0:
            return Bounds(self._below_limit(), self.max_loss)
        if delta < SMALLEST_DELTA:
            # Honest, not tight: epsilon decreases in delta, and pure DP bounds it from above.
            return Bounds(self.epsilon(SMALLEST_DELTA).lower, self.max_loss)
        question = EpsilonQuestion(delta)
        direct = None if self._one is None else self._one.epsilon(delta)
        if direct is not None:
            return self._judged(question, *direct)
        recent = self._from_recent(question)
        if recent is not None:
            return recent
        sketch = Sketch.at_delta(self._ledger, delta, self._rounds)
        if sketch.infinity > delta and self._infinite_mass(delta) > delta:
            return Bounds(math.inf, math.inf)
        tilt = sketch.saddle_of_delta(math.log(delta))
        return self._refined(question, sketch, tilt, math.log(delta))

    def _infinite_mass(self, delta: float) -> float:
        """Lower bound on the mass at infinity, from laws too coarse for anything else."""
        missed = max(1e-7 * delta / self._rounds, 1e-300)
        log_finite = 0.0
        for pair, count in self._ledger:
            if noise_of(pair) is not None:
                continue  # none, however large its finite losses are
            resolution = Resolution(pair.scale / POINTS_PER_SCALE, missed=missed, size_width=1e-6)
            law = formed(pair, [Side.LOWER], resolution)[0]
            log_finite += count * math.log1p(-min(law.infinity, 1.0 - 1e-16))
        return -math.expm1(log_finite) * (1.0 - 2e-15)

    def _below_limit(self) -> float:
        """The sum of the largest losses, rounded downwards."""
        if not self._pure:
            return math.inf
        below = _exact_sum([(float(pair.max_loss.lower), count) for pair, count in self._given])
        near = float(below)
        return near if near <= below else math.nextafter(near, 0.0)

    def _from_recent(self, question: DeltaQuestion | EpsilonQuestion) -> Bounds | None:
        """An earlier composition's answer, if it is tight enough."""
        for composed in reversed(self._recent):
            found = question.answer(composed, self.max_loss)
            if question.width(composed, found) <= self._rtol:
                return found
        return None

    def _refined(
        self,
        question: DeltaQuestion | EpsilonQuestion,
        sketch: Sketch,
        tilt: float,
        log_delta: float,
    ) -> Bounds:
        """Compose, measure, and compose again with less error, until the bracket is tight."""
        plan = Plan.steered(sketch, tilt, log_delta=log_delta, rounds=self._rounds, rtol=self._rtol)
        hopeless = log_delta < math.log(SMALLEST_DELTA)
        if hopeless:  # honest, not tight: the upper bound is what windows miss
            plan = replace(plan, share=1e4)
        else:  # where lattices are cheap, brackets may as well be tighter than asked
            plan = replace(plan, lattice_share=min(1.0, max(FEW_PAIRS, len(self._ledger)) / CHEAP))
        if 1 < len(self._ledger) <= FEW_LAWS:
            plan = replace(plan, own_lattices=sketch.lumpy or uneven(self._ledger))
        plan = replace(plan, many=sharing([pair for pair, _ in self._ledger]))
        best: Bounds | None = None
        width, reason = math.inf, ""
        integral = self._rounds > 1 and preferred(self._ledger, sketch)
        spent = math.inf
        widths: list[float] = []
        near = AtLargest.of(self._ledger, plan) if sketch.log_top > log_delta - 1.0 else None
        if near is None and not hopeless:
            near = self._beside_largest(question, plan)
        if near is not None:
            found = question.answer(near, self.max_loss)
            if question.width(near, found) <= self._rtol:
                self._recent = [*self._recent[-15:], near]
                return found
        for attempt in range(MAX_ATTEMPTS):
            try:
                composed = self._compose(plan.levelled(len(self._ledger)), question, integral)
            except MemoryError as error:
                if best is None and plan.lattice_share < 1.0:
                    plan = replace(plan, lattice_share=min(1.0, 4.0 * plan.lattice_share))
                    continue
                if best is None and plan.share < 1e6:  # a wide bracket is better than none
                    plan = replace(plan, share=4.0 * plan.share)
                    continue
                if best is None:
                    raise
                reason = f": {error}"
                break
            found = question.answer(composed, self.max_loss)
            if best is not None and self._encloses:
                found = Bounds(max(found.lower, best.lower), min(found.upper, best.upper))
            elif best is not None:
                upper = min(found.upper, best.upper)
                found = Bounds(min(found.lower, upper), upper)
            best = found
            before, width = width, question.width(composed, found)
            # An atom at the very epsilon is smoothed to first order only: rather a lattice then.
            slow = self._rounds <= FEW_ROUNDS and width > 1.5 * before * plan.share / spent
            integral = self._rounds > 1 and not (slow and isinstance(composed, Contour))
            spent = plan.share
            better = min(plan.log_delta, question.log_delta(found))
            if better < plan.log_delta - 2.0 and found.upper > (1.0 + self._rtol) * found.lower:
                # delta is far smaller than sketched: what the windows missed may be all of the bracket.
                plan = replace(plan, log_delta=better)
                if composed.missed(question.place(found)) > 0.1 * self._rtol:
                    continue
            if hopeless:
                return found
            if width <= self._rtol:
                self._recent = [*self._recent[-15:], composed]
                return found
            if attempt >= UNPROMISED_ATTEMPTS and not question.promised(found):
                return found
            if (
                self._rounds > 1
                and not plan.direct
                and (widths or isinstance(composed, Contour) or self._rounds < MANY_ROUNDS)
                and composed.noise(question.place(found)) > 0.2 * self._rtol
            ):
                plan = replace(plan, direct=True, lattice_share=1.0)
                continue
            if isinstance(composed, Contour):
                widths.append(width)
                if width > 0.9 * min(widths[:-2], default=math.inf):
                    break  # what is left is rounding
            shrink = 0.7 * self._rtol / width
            plan = replace(
                plan,
                share=plan.share * min(0.5, max(1.0 / 64.0, shrink)),
            )
        assert best is not None
        return self._judged(question, best, width, reason)

    def _beside_largest(
        self, question: DeltaQuestion | EpsilonQuestion, plan: Plan
    ) -> AtLargest | None:
        """Large losses at their largest, next to the composition of far smaller ones; None if that is not the case."""
        parts = stands_apart(self._ledger) if len(self._ledger) <= FEW_LAWS else None
        near = None if parts is None else AtLargest.of(parts[0], plan)
        if parts is None or near is None or not near.clear_of(parts):
            return None
        rest = Composition(parts[1], 0.5 * self._rtol)
        with warnings.catch_warnings():
            # The width of the whole answer is measured.
            warnings.simplefilter("ignore", AccuracyWarning)
            if isinstance(question, EpsilonQuestion):
                rest.epsilon(question.delta * math.exp(-float(near.log_mass.upper)))
            elif question.eps >= near.limit.upper:
                rest.delta(question.eps - float(near.limit.upper))
            else:
                return None
            if rest.latest is None and not rest.lawless:
                return None
            # Far below delta: its order is enough.
            beyond = Composition(parts[1], 1.0).delta(0.5 * near.gap)
            return near.beside(_Latest(rest), beyond)

    def _judged(
        self,
        question: DeltaQuestion | EpsilonQuestion,
        best: Bounds,
        width: float,
        reason: str = "",
    ) -> Bounds:
        """The answer, with a warning if delta is known there to less than was promised."""
        if width > self._rtol and question.promised(best):
            warnings.warn(
                f"{question}: the answer {best} is certified, but delta is known there to {width:.1e} only,"
                f" not to rtol={self._rtol:.1e}{reason}",
                AccuracyWarning,
                stacklevel=5,
            )
        return best

    def _compose(
        self, plan: Plan, question: DeltaQuestion | EpsilonQuestion, integral: bool
    ) -> Reading:
        if integral and (found := Contour.of(self._ledger, plan, question)) is not None:
            return found
        lower, upper = OneSide.pair(plan)
        return Composed.of(lower, lower.run(self._ledger), upper, upper.run(self._ledger))


class _Latest(Reading):
    """A composition as it was asked last, or its profile if it needs no law."""

    def __init__(self, composition: Composition) -> None:
        self._composition, self._law = composition, composition.latest

    def _at(self, eps: float) -> Bounds:
        if self._law is None:
            return self._composition.delta(eps)
        return Bounds(self._law.lower(eps), self._law.upper(eps))

    def lower(self, eps: float) -> float:
        return float(self._at(eps).lower)

    def upper(self, eps: float) -> float:
        return float(self._at(eps).upper)


def _exact_sum(losses: Sequence[tuple[float, int]]) -> Fraction:
    """The sum of loss * count, exactly: delta is 0 at the sum of the largest losses, and not below."""
    return sum((count * Fraction(loss) for loss, count in losses), Fraction(0))


def _float_above(value: Fraction) -> float:
    """The smallest float not below `value`."""
    near = float(value)
    return near if near >= value else math.nextafter(near, math.inf)
