"""Answers about a composition: brackets on delta at an epsilon, or the reverse.

A ledger is a list of (pair, count).

1. Where a mechanism has several proven pairs, choose (`_choices`).
2. Read the answer off what was composed for an earlier question, if that is tight there.
3. Otherwise sketch every pair and solve the saddle point (`plan`): the tilt, and the order of delta.
4. Compose both sides, *measure* the bracket, and try again with less error until it is tight (`attempts`).

Gaussian noise alone, and one round of a pair whose profile is known, need no composition.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from ..numerics.sides import Array, Bounds, Side
from ..numerics.tuning import KEPT, SKETCHED_POINTS
from ..numerics.validation import nonnegatives, probabilities, real
from ..pairs.gaussian import noise_of, with_one_noise
from ..pairs.pair import Attacks, Pair, Resolution
from ..pairs.profile import BothOrders, Several
from ..pairs.strategy import FEW_ROUNDS, ends_soon
from .attempts import Attempts, Found, Ledger, Task, sketched
from .contour import Contour
from .moments import MomentFunction
from .one_round import OneRound
from .plan import Sketch, sketch_key
from .pld import formed, log_finite
from .reading import SMALLEST_DELTA, Ends, GaussianReading, Question, Reading, read_deltas, read_epsilons

MOST_TILTS = 4  # at which attacks are compared
ROUGH = 0.1  # rtol that shows which order of the neighbouring datasets, or which proven pair, is out of the question
FAR_ABOVE = 0.1  # estimates, relative for epsilon, from which on a proven pair is not composed beside the least
NEAR = 1e4  # ratio of deltas up to which one choice among several pairs serves all


class AccuracyWarning(UserWarning):
    """A bracket is valid but wider than the requested rtol."""


class Composition:
    """Answers questions about one ledger; see the module for how."""

    def __init__(self, ledger: Ledger, rtol: float, above: Composition | None = None) -> None:
        """above : of the analyses whose attacks these are, asked before: what lies far below them may be rougher."""
        self._above = above
        self._ends: dict[float, float] = {}  # upper ends of the latest questions
        # A pair without any loss changes nothing.
        self._given = [(pair, count) for pair, count in ledger if pair.scale > 0.0]
        self._rtol = rtol
        self._encloses = all(pair.encloses for pair, _ in ledger)
        self._parts: dict[tuple[Any, ...], Composition] = {}
        self._several = any(isinstance(pair, (Several, BothOrders, Attacks)) for pair, _ in self._given)
        self._ledger = with_one_noise([part for pair, count in self._given for part in pair.repeated(count)])
        self.rounds = sum(count for _, count in self._ledger)
        self._recent: list[Reading] = []
        self._answered: dict[tuple[bool, float], Bounds] = {}
        self._one: OneRound | None = None
        if self.rounds == 1 and not self._several:
            pair = self._ledger[0][0]
            if (square := noise_of(pair)) is not None:
                self._recent = [GaussianReading(square)]
            else:
                self._one = OneRound.of(pair, rtol)

    @cached_property
    def _limit(self) -> Bounds | None:
        """The sum of the largest losses, if they are finite."""
        if any(pair.max_loss.upper == math.inf for pair, _ in self._given):
            return None
        exact = [sum(count * Fraction(float(p.max_loss[end])) for p, count in self._given) for end in (0, 1)]
        return Bounds(*(real("max_loss", loss, side) for loss, side in zip(exact, Side, strict=True)))

    @property
    def max_loss(self) -> float:
        """The sum of the largest losses, rounded upwards; delta is 0 from there on."""
        return math.inf if self._limit is None else float(self._limit.upper)

    @property
    def latest(self) -> Reading | None:
        """The latest reading that was accurate enough, if there was one."""
        return self._recent[-1] if self._recent else None

    def laws(self, side: Side) -> dict[Pair, MomentFunction]:
        """Laws of single rounds on a side, as fine as the latest contour wanted them."""
        found: dict[Pair, MomentFunction] = {}
        for part in self._parts.values():
            found |= part.laws(side)
        return found | (self.latest.laws(side) if isinstance(self.latest, Contour) else {})

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
            found = (self._largest if orders else self._chosen)(asked, read is read_epsilons)
        else:
            found = self._from_readings(asked, answer, read)
        # Delta falls with epsilon, and epsilon with delta: every end is one for all questions beyond it.
        order = np.argsort(asked, kind="stable")
        lower, upper = np.empty_like(found)
        upper[order] = np.minimum.accumulate(found[1][order])
        lower[order[::-1]] = np.maximum.accumulate(found[0][order[::-1]])
        self._ends = dict(zip(asked.tolist(), upper.tolist(), strict=True))
        lower, upper = lower.reshape(values.shape), upper.reshape(values.shape)
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
        for i, value in enumerate(asked.tolist() if self._answered else ()):  # the same question, the same answer
            if (known := self._answered.get((read is read_epsilons, value))) is not None:
                ends[:, i], waiting[i] = known, False
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
            ends[:, first] = self._answered[read is read_epsilons, float(asked[first])] = answer(float(asked[first]))
            waiting[first] = False
            if self._recent:
                fresh = [self._recent[-1]]
        return ends

    def _largest(self, asked: Array, epsilons: bool) -> Array:
        """The larger answers of both orders of the neighbouring datasets, the same order in all rounds.

        The second one is known roughly only, where that shows that it is the smaller one.
        """
        first, second = (
            [(p.pairs[i] if isinstance(p, BothOrders) else p, n) for p, n in self._given] for i in range(2)
        )
        found = [heard(self._part(first), asked, epsilons)]
        if epsilons and np.all(found[0][0].lower == math.inf):
            return best_answers(found, least=False)
        one = self._part(second)._one
        if epsilons and one is not None:  # of single rounds, a value tells
            highest = zip(found[0][0].upper.tolist(), asked.tolist(), strict=True)
            if all(one.at_most(eps, delta) for eps, delta in highest):
                return best_answers(found, least=False)
        found.append(heard(self._part(second, ROUGH), asked, epsilons))
        if np.any(found[1][0].upper > found[0][0].lower):
            found[1] = heard(self._part(second), asked, epsilons)
        return best_answers(found, least=False)

    def _part(self, ledger: Ledger, rtol: float = 0.0) -> Composition:
        """The composition of a ledger with one pair chosen for every round, kept; to rtol, if that is larger."""
        rtol = max(rtol, self._rtol)
        key = (rtol, *(pair for pair, _ in ledger))
        if key not in self._parts:
            self._parts[key] = Composition(ledger, rtol, self._above)
        return self._parts[key]

    def _chosen(self, asked: Array, epsilons: bool) -> Array:
        """The best answers of the compositions that `_choices` names for the first and the last question.

        The least of proven pairs, the largest of attacks. Proven pairs are known roughly first, which shows which of
        them cannot be the least.
        """
        proved = any(isinstance(pair, Several) for pair, _ in self._given)
        choices: list[Ledger] = []
        ends = float(asked.min()), float(asked.max())
        near = epsilons and ends[1] <= NEAR * ends[0]
        for value in ends[:1] if near else dict.fromkeys(ends):
            choices += [c for c in self._choices(Several if proved else Attacks, value, epsilons) if c not in choices]
        found: list[tuple[Bounds, list[warnings.WarningMessage]]] = []
        if proved and len(choices) > 1 and self.rounds > 1:
            rough = [heard(self._part(choice, ROUGH), asked, epsilons)[0] for choice in choices]
            first = int(np.argmin([np.sum(bounds.upper) for bounds in rough]))
            found.append(heard(self._part(choices[first]), asked, epsilons))
            least = found[0][0].upper
            choices = [choices[k] for k, b in enumerate(rough) if k != first and np.any(b.lower <= least)]
        found += [heard(self._part(choice), asked, epsilons) for choice in choices]
        if not proved:  # of attacks the lower ends count; how far their upper ends are promises nothing
            found = [
                (bounds, [one for one in caught if one.category is not AccuracyWarning]) for bounds, caught in found
            ]
        return best_answers(found, least=proved)

    def _choices(self, kind: type[Several] | type[Attacks], value: float, epsilons: bool) -> list[Ledger]:
        """Ledgers with one of several pairs for every round: all, if only one kind of round has several proven ones."""
        several = [pair for pair, _ in self._given if isinstance(pair, kind)]
        if len(several) == 1:
            parts: tuple[Pair, ...] = several[0].pairs
            strategies: tuple[Pair, ...] = ()
            if isinstance(several[0], Attacks) and (alone := several[0].alone) is not None:
                # A strategy attains it that sees all other rounds first: if it is one block of rounds.
                one = alone.pairs[0] if isinstance(alone, BothOrders) else alone
                blocks = [part for pair, count in self._given if pair is several[0] for part in one.repeated(count)]
                infinite = epsilons and one.infinity_mass > value  # what one round reveals needs no strategy
                strategies = (alone,) if infinite or (len(blocks) == 1 and blocks[0][1] == 1) else ()
                # Next to the largest loss, and over many rounds, lattices are coarse.
                if strategies and (infinite or (self.rounds <= FEW_ROUNDS and not ends_soon(alone))):
                    parts = ()
            if self.rounds > 1 and len(parts) > 1:  # estimates are good over many rounds
                ledgers = [[(part if p is several[0] else p, n) for p, n in self._given] for part in parts]
                answers = np.array([estimated(ledger, value, epsilons) for ledger in ledgers])
                if kind is Attacks:
                    kept = np.argsort(answers)[-max(1, len(parts) // self.rounds) :]
                else:
                    least = float(answers.min())
                    near = answers <= least + FAR_ABOVE * (least if epsilons else 1.0)
                    kept = np.flatnonzero(near | (answers == math.inf))  # a coarse law may reveal too much
                parts = tuple(parts[k] for k in kept)
            chosen: list[dict[Pair, Pair]] = [{several[0]: part} for part in (*strategies, *parts)]
        else:
            chosen = [selected(self._given, value, kind, epsilons=epsilons)]
        return [[(one.get(pair, pair), count) for pair, count in self._given] for one in chosen]

    # -- one question ------------------------------------------------------------------------------

    def _delta(self, eps: float) -> Bounds:
        if not self._ledger or eps >= self.max_loss < math.inf:
            return Bounds(0.0, 0.0)
        question = Question(eps=eps)
        direct = None if self._one is None else self._one.delta(eps)
        if direct is not None:
            return self._judged(question, Found(*direct))
        return self._refined(question, sketched(self._ledger, question))

    def _epsilon(self, delta: float) -> Bounds:
        if not self._ledger or delta >= 1.0:
            return Bounds(0.0, 0.0)
        if delta == 0.0:
            return Bounds(math.inf if self._limit is None else self._limit.lower, self.max_loss)
        if delta < SMALLEST_DELTA:
            # Honest, not tight: epsilon decreases in delta, and pure DP bounds it from above.
            return Bounds(self._epsilon(SMALLEST_DELTA).lower, self.max_loss)
        if self._limit is None and any(pair.infinity_mass > delta for pair, _ in self._given):
            return Bounds(math.inf, math.inf)
        question = Question(delta=delta)
        direct = None if self._one is None else self._one.epsilon(delta)
        if direct is not None:
            return self._judged(question, Found(*direct))
        start = sketched(self._ledger, question)
        if start[0].infinity > delta and self._infinity_mass(delta) > delta:
            return Bounds(math.inf, math.inf)
        return self._refined(question, start)

    def _refined(self, question: Question, start: tuple[Sketch, float, float]) -> Bounds:
        """The answer of attempts; what was read off is kept, if it is tight."""
        above = -math.inf if self._above is None else self._above._ends.get(question.value, -math.inf)
        found = Attempts(Task(self._ledger, question, self.max_loss, self._encloses, above), self._rtol, start).run()
        if found.reading is not None:
            self._recent = [*self._recent[1 - KEPT // 4 :], found.reading]
        return self._judged(question, found)

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

    def _judged(self, question: Question, found: Found) -> Bounds:
        """The answer, with a warning if delta is known there to less than was promised."""
        if found.reading is None and found.width > self._rtol and question.promised(found.bounds):
            asked = f"epsilon={question.eps!r}" if question.delta is None else f"delta={question.delta!r}"
            warnings.warn(
                f"at {asked} the answer {found.bounds} is certified, but delta is known there to {found.width:.1e}"
                f" only, not to rtol={self._rtol:.1e}{found.reason}",
                AccuracyWarning,
                stacklevel=5,
            )
        return found.bounds


def estimated(ledger: Ledger, value: float, epsilons: bool) -> float:
    """About epsilon at a delta, or the log of delta at an epsilon: it steers only."""
    known = [(pair, count) for pair, count in ledger if pair.scale > 0.0]
    if not known:
        return -math.inf
    sketch, tilt, log_delta = sketched(known, Question(delta=value) if epsilons else Question(eps=value))
    if not epsilons:
        return log_delta
    return math.inf if sketch.infinity > value else sketch.moments(tilt)[1]


def heard(part: Composition, asked: Array, epsilons: bool) -> tuple[Bounds, list[warnings.WarningMessage]]:
    """The answers of a composition, and the warnings that go with them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        return part.epsilons(asked) if epsilons else part.deltas(asked), caught


def best_answers(found: Sequence[tuple[Bounds, list[warnings.WarningMessage]]], *, least: bool) -> Array:
    """The least or the largest of several answers; those that cannot be it need not be known well."""
    best = np.array([(np.min if least else np.max)([bounds[end] for bounds, _ in found], axis=0) for end in (0, 1)])
    for bounds, caught in found:
        if np.any(bounds.lower <= best[1] if least else bounds.upper >= best[0]):
            for one in caught:
                warnings.warn(one.message, one.category, stacklevel=5)
    return best


def selected(
    ledger: Ledger, value: float, kind: type[Several] | type[Attacks], *, epsilons: bool = True
) -> dict[Pair, Pair]:
    """For every pair of a ledger that stands for several, the one that is likely to be the best for a question.

    value : the delta whose epsilon is asked for, or the other way round. The best has the smallest log moment at the
    tilt (of attacks the largest, and the tilt is theirs), by the coarse laws of one pair for all that are alike.
    Whatever is chosen is proved, or an attack.
    """
    several = [pair for pair, _ in ledger if isinstance(pair, kind)]
    if not several:
        return {}
    question = Question(delta=value) if epsilons else Question(eps=value)
    best: dict[Hashable, int] = {sketch_key(pair): 0 for pair in several}
    for _ in range(1 if kind is Several else MOST_TILTS):
        plain = [
            (p.pairs[best[sketch_key(p)]] if isinstance(p, kind) else p, count) for p, count in ledger if p.scale > 0.0
        ]
        sketch, tilt, _ = sketched(plain, question)
        chosen = {}
        for pair in several:
            key = sketch_key(pair)
            if key not in chosen:
                rates = [Sketch([(part, 1)], sketch.truncated_mass).moments(tilt)[0] for part in pair.pairs]
                chosen[key] = int(np.argmin(rates) if kind is Several else np.argmax(rates))
        best, before = chosen, best
        if best == before:
            break
    return {pair: pair.pairs[best[sketch_key(pair)]] for pair in several}
