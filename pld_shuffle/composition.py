"""Composition: chooses step, windows and tilt for a question, and spends the error budget.

A ledger is a list of (mechanism, count); a question asks for delta at an epsilon or the reverse:

1. Sketch every mechanism and solve the saddle point (`saddle`): the tilt and the order of delta.
2. Choose the lattice. Splitting or merging mass inside cells of width h changes log M(t) by about
   (t^2 + t) h^2 / 12 upwards and half as much downwards, so r laws on step h widen the bracket on delta by
   r (t^2 + t) h^2 / 8; the step that spends a given share of rtol follows. Windows follow delta; buckets of
   crowd sizes follow z^2 = (t^2 + t) variance.
3. Compose by tilted FFT (`convolution.product`); long compositions in levels, on a step that grows like
   the square root of the rounds (Ghazi et al. 2022), so that arrays do not grow with the rounds.
4. Read both sides off with everything neglected put on the safe side, and *measure* the bracket. If it is
   wider than rtol, spend less and repeat. So the choices of 1-3 affect speed, never correctness.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from . import convolution
from .bracket import Bounds, Side
from .convolution import Law, Reader
from .crowd import Resolution
from .lattice import place
from .mechanisms import Mechanism
from .pld import PLD
from .saddle import POINTS_PER_SCALE, Sketch

Ledger = Sequence[tuple[Mechanism, int]]
Item = tuple[Mechanism | Law, int]

SMALLEST_DELTA = 1e-280  # windows cannot follow a delta below this in double precision
EPSILON_WIDTH = 1e-9  # an epsilon known to so much needs no relative accuracy in delta
RELATIVE_DOWN_TO = 1e-100  # rtol is promised for deltas above this
MAX_ATTEMPTS = 16
UNPROMISED_ATTEMPTS = 3  # below that delta, only so much effort is made, and no warning given
BATCH = 24  # distinct laws multiplied before the step grows
FEW = 24  # up to so many distinct mechanisms, each gets a lattice of its own
WAITING_POINTS = 2**23  # of laws formed for both sides, held until the other side needs them
LEVEL_POINTS = 2**18  # a window of one level
LEVEL_WORK = 2**21  # window times distinct laws


class AccuracyWarning(UserWarning):
    """A bracket is valid but wider than the requested rtol."""


@dataclass(frozen=True)
class Plan:
    """What one attempt works with: the tilt, the order of delta, and the shares of the budget."""

    tilt: float
    sensitivity: float  # t^2 + t, with a floor: how strongly log delta feels variance
    variance: float  # of the composed loss, sketched
    tilted_variance: float
    log_delta: float
    rounds: int
    rtol: float
    effort: float = 1.0  # the share of rtol that is spent, lowered from attempt to attempt
    lattice_effort: float = 1.0  # the same for the lattice alone, on top
    levels: int = 1
    direct: bool = False  # multiply without transforms, see convolution.direct_product

    @classmethod
    def steered(
        cls,
        sketch: Sketch,
        tilt: float,
        *,
        log_delta: float,
        rounds: int,
        rtol: float,
        growth: float = 1.0,
    ) -> Plan:
        """The plan for `rounds` rounds, `growth` times as many as were sketched, under `tilt`."""
        variance = max(sketch.moments(0.0)[2], 1e-4 * sketch.scale**2)
        effective = max(tilt, 1.0 / math.sqrt(variance))
        return cls(
            tilt=tilt,
            sensitivity=effective * effective + effective,
            variance=variance * growth,
            tilted_variance=sketch.moments(tilt)[2] * growth,
            log_delta=log_delta,
            rounds=rounds,
            rtol=rtol,
        )

    def step(self, laws: int) -> float:
        """The step on which `laws` laws spend one level's share of the lattice budget."""
        budget = 0.5 * self.rtol * self.effort * self.lattice_effort / self.levels
        return math.sqrt(8.0 * budget / (laws * self.sensitivity))

    @property
    def resolution(self) -> Resolution:
        log_missed = self.log_delta + math.log(0.02 * self.rtol * self.effort / self.rounds)
        z_square = max(1.0, self.sensitivity * self.variance)
        # Where the lattice takes next to nothing, buckets may take more.
        budget = (0.2 if self.lattice_effort == 1.0 else 0.4) * self.rtol * self.effort
        return Resolution(
            missed=math.exp(max(log_missed, -690.0)),
            crowd_width=2.0 * budget / z_square,
            bias_width=math.sqrt(8.0 * budget / (z_square * (1.0 + z_square / self.rounds))),
            pull=z_square / self.rounds,
            profile_width=math.sqrt(8.0 * budget / (self.rounds * self.sensitivity)),
        )

    @property
    def tail(self) -> float:
        """Tilted mass that one convolution may leave out."""
        return 1e-8 * self.rtol * min(1.0, self.effort) / math.sqrt(self.rounds)

    @property
    def reach(self) -> float:
        """Gaps beyond this are better rounded down than merged over."""
        return 2.0 / self.tilt if self.tilt > 0.0 else math.inf

    def fits(self, laws: int, distinct: int) -> bool:
        """Whether `laws` laws are worth multiplying in one level."""
        points = 14.0 * math.sqrt(self.tilted_variance) / self.step(laws)
        return points <= LEVEL_POINTS and points * distinct <= LEVEL_WORK

    def levelled(self, distinct: int) -> Plan:
        """This plan with the number of levels it will need."""
        laws, plan = self.rounds, self
        if 1 < distinct <= FEW:
            plan = replace(plan, levels=2)
        while not plan.fits(laws, distinct) and laws > 4:
            size = _batch_rounds(laws, distinct)
            laws = -(-laws // size) + 1
            distinct = -(-distinct // BATCH) + 1
            plan = replace(plan, levels=plan.levels + 1)
        return plan


def _batch_rounds(laws: int, distinct: int) -> int:
    """Rounds put together before the step grows."""
    return BATCH if distinct > BATCH else max(2, math.isqrt(laws))


class Composed:
    """Both sides of a composition under one tilt: reads delta near the tilted mean."""

    def __init__(self, lower: Reader, upper: Reader, infinity: Bounds, slack: float) -> None:
        self._lower = lower
        self._upper = upper
        self._infinity = infinity
        self._slack = slack

    @classmethod
    def of(cls, lower: SideRun, lower_law: Law, upper: SideRun, upper_law: Law) -> Composed:
        """Put the two sides of one attempt together."""
        slack = max(lower.slack, upper.slack) * (1.0 + 1e-9)
        # Each is 1 - prod (1 - w): a few ulp, and the masses w carry their own allowance.
        infinity = Bounds(
            lower.infinity * (1.0 - 2e-15) + 0.0, min(1.0, upper.infinity * (1.0 + 2e-15))
        )
        return cls(Reader(lower_law), Reader(upper_law), infinity, slack)

    def lower(self, eps: float) -> float:
        """Certified lower bound on delta(eps)."""
        if eps == math.inf:
            return float(self._infinity.lower)
        shift = self._slack + 1e-15 * eps
        finite = self._lower.bracket(eps + shift)[0]
        return float(min(1.0, (finite + self._infinity.lower) * (1.0 - 1e-15)))

    def upper(self, eps: float) -> float:
        """Certified upper bound on delta(eps)."""
        if eps == math.inf:
            return float(self._infinity.upper)
        shift = self._slack + 1e-15 * eps
        finite = self._upper.bracket(eps - shift)[1]
        return float(min(1.0, (finite + self._infinity.upper) * (1.0 + 1e-15)))

    def noise(self, eps: float) -> float:
        """Relative size at eps of what windows and transforms may have got wrong."""
        return max(self._lower.noise(eps), self._upper.noise(eps))

    def missed(self, eps: float) -> float:
        """Relative size at eps of the upper side's mass at infinity, most of it missed by windows."""
        lower = self.lower(eps)
        return (
            float(self._infinity.upper - self._infinity.lower) / lower if lower > 0.0 else math.inf
        )

    def width(self, eps: float) -> float:
        """upper / lower - 1 at eps."""
        lower = self.lower(eps)
        return self.upper(eps) / lower - 1.0 if lower > 0.0 else math.inf


@dataclass(frozen=True)
class DeltaQuestion:
    """What is delta at this epsilon?"""

    eps: float

    def answer(self, composed: Composed, max_loss: float) -> Bounds:
        return Bounds(composed.lower(self.eps), composed.upper(self.eps))

    def place(self, found: Bounds) -> float:
        """Where the answer is read off."""
        return self.eps

    def promised(self, found: Bounds) -> bool:
        """Whether rtol is promised there."""
        return bool(found.upper >= RELATIVE_DOWN_TO)

    def log_delta(self, found: Bounds) -> float:
        return math.log(max(found.lower or found.upper, 1e-300))

    def width(self, composed: Composed, found: Bounds) -> float:
        if found.upper == found.lower:
            return 0.0
        if found.upper < found.lower:
            raise ArithmeticError(f"inverted bracket {found} at {self}")
        return float(found.upper / found.lower - 1.0) if found.lower > 0.0 else math.inf


@dataclass(frozen=True)
class EpsilonQuestion:
    """What is the smallest epsilon >= 0 with delta(epsilon) <= delta?"""

    delta: float

    def answer(self, composed: Composed, max_loss: float) -> Bounds:
        upper = self._least_proven(composed, max_loss)
        return Bounds(self._largest_excluded(composed, upper), upper)

    def _least_proven(self, composed: Composed, max_loss: float) -> float:
        """The least eps with upper(eps) <= delta; upper decreases everywhere."""
        if composed.upper(0.0) <= self.delta:
            return 0.0
        low, high = 0.0, 1.0
        while high < max_loss and composed.upper(high) > self.delta:
            low, high = high, 2.0 * high
            if high > 1e15:
                return max_loss
        high = min(high, max_loss)
        while high - low > 1e-15 * high:
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
            if composed.upper(middle) <= self.delta:
                high = middle
            else:
                low = middle
        return high

    def _largest_excluded(self, composed: Composed, upper: float) -> float:
        """The largest eps near `upper` with lower(eps) > delta, 0 if none is found.

        Far from the tilted mean the certificate eats the lower bound, so the search starts at `upper`.
        """
        stride = 1e-9 * upper if upper < math.inf else 0.0
        high = low = upper
        while composed.lower(low) <= self.delta:
            if low <= 0.0 or stride == 0.0:
                return 0.0
            high, low = low, max(0.0, low - stride)
            stride *= 2.0
        while high - low > 1e-15 * high:
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
            if composed.lower(middle) > self.delta:
                low = middle
            else:
                high = middle
        return low

    def place(self, found: Bounds) -> float:
        """Where the answer is read off."""
        return float(found.upper)

    def promised(self, found: Bounds) -> bool:
        """Whether rtol is promised there."""
        return self.delta >= RELATIVE_DOWN_TO

    def log_delta(self, found: Bounds) -> float:
        return math.log(self.delta)

    def width(self, composed: Composed, found: Bounds) -> float:
        if found.upper < found.lower:
            raise ArithmeticError(f"inverted bracket {found} at {self}")
        # Near the pure-DP limit delta falls to 0 within rounding: there epsilon itself must be known.
        if found.upper <= found.lower * (1.0 + EPSILON_WIDTH):
            return 0.0
        if found.upper == math.inf:
            return math.inf
        # delta at the two ends bounds the bracket of delta anywhere between them.
        return max(composed.width(found.upper), composed.width(found.lower))


class Composition:
    """Answers questions about one ledger; see the module for how."""

    def __init__(self, ledger: Ledger, rtol: float) -> None:
        # A mechanism without any loss changes nothing.
        self._ledger = [
            (mechanism, count) for mechanism, count in ledger if mechanism.loss_scale > 0.0
        ]
        self._rtol = rtol
        self._rounds = sum(count for _, count in self._ledger)
        self._pure = all(mechanism.max_loss < math.inf for mechanism, _ in self._ledger)
        losses = [(mechanism.max_loss, count) for mechanism, count in self._ledger]
        self._limit = _exact_sum(losses) if self._pure else None
        self.max_loss = _float_above(self._limit) if self._limit is not None else math.inf
        self._recent: list[Composed] = []

    def delta(self, eps: float) -> Bounds:
        """Bounds on delta at eps in [0, inf]."""
        if self._limit is not None and eps >= self._limit:
            return Bounds(0.0, 0.0)
        question = DeltaQuestion(eps)
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
        recent = self._from_recent(question)
        if recent is not None:
            return recent
        sketch = Sketch(self._ledger, max(1e-5 * delta / self._rounds, 1e-300))
        if sketch.infinity > delta and self._infinite_mass(delta) > delta:
            return Bounds(math.inf, math.inf)
        tilt = sketch.saddle_of_delta(math.log(delta))
        return self._refined(question, sketch, tilt, math.log(delta))

    def _infinite_mass(self, delta: float) -> float:
        """Lower bound on the mass at infinity, from laws too coarse for anything else."""
        missed = max(1e-7 * delta / self._rounds, 1e-300)
        resolution = Resolution(missed=missed, crowd_width=1e-6)
        log_finite = 0.0
        for mechanism, count in self._ledger:
            step = mechanism.loss_scale / POINTS_PER_SCALE
            law = mechanism.form(step=step, side=Side.LOWER, resolution=resolution)
            log_finite += count * math.log1p(-min(law.infinity, 1.0 - 1e-16))
        return -math.expm1(log_finite) * (1.0 - 2e-15)

    def _below_limit(self) -> float:
        """The sum of the largest losses, rounded downwards."""
        if not self._pure:
            return math.inf
        below = _exact_sum([(m.max_loss_below, count) for m, count in self._ledger])
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
            plan = replace(plan, effort=1e4)
        elif len(self._ledger) <= FEW:
            # Where lattices are cheap, brackets may as well be tighter than asked.
            plan = replace(plan, lattice_effort=1.0 / 64.0)
        best: Bounds | None = None
        width, reason = math.inf, ""
        for attempt in range(MAX_ATTEMPTS):
            try:
                composed = self._compose(plan.levelled(len(self._ledger)))
            except MemoryError as error:
                if best is None and plan.lattice_effort < 1.0:
                    plan = replace(plan, lattice_effort=min(1.0, 4.0 * plan.lattice_effort))
                    continue
                if best is None and plan.effort < 1e6:  # a wide bracket is better than none
                    plan = replace(plan, effort=4.0 * plan.effort)
                    continue
                if best is None:
                    raise
                reason = f": {error}"
                break
            found = question.answer(composed, self.max_loss)
            if best is not None:
                found = Bounds(max(found.lower, best.lower), min(found.upper, best.upper))
            best = found
            width = question.width(composed, found)
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
                and composed.noise(question.place(found)) > 0.2 * self._rtol
            ):
                plan = replace(plan, direct=True, lattice_effort=1.0)
                continue
            shrink = 0.7 * self._rtol / width
            plan = replace(
                plan,
                effort=plan.effort * min(0.5, max(1.0 / 64.0, shrink)),
            )
        assert best is not None
        if not question.promised(best):
            return best
        warnings.warn(
            f"{question}: the answer {best} is certified, but delta is known there to {width:.1e} only,"
            f" not to rtol={self._rtol:.1e}{reason}",
            AccuracyWarning,
            stacklevel=4,
        )
        return best

    # -- composing -------------------------------------------------------------------------------------

    def _compose(self, plan: Plan) -> Composed:
        lower, upper = SideRun.pair(plan)
        return Composed.of(lower, lower.run(self._ledger), upper, upper.run(self._ledger))


class SideRun:
    """One side of one attempt: forms the laws batch by batch, multiplies, and lets the step grow."""

    def __init__(self, plan: Plan, side: Side, formed: dict[tuple[Mechanism, float], PLD]) -> None:
        self._plan = plan
        self._side = side
        self._formed = formed
        self._waiting_points = 0
        self._log_finite = 0.0
        self.slack = 0.0

    @classmethod
    def pair(cls, plan: Plan) -> tuple[SideRun, SideRun]:
        """The lower and the upper side; what one forms for both, the other picks up."""
        formed: dict[tuple[Mechanism, float], PLD] = {}
        return cls(plan, Side.LOWER, formed), cls(plan, Side.UPPER, formed)

    @property
    def infinity(self) -> float:
        """P-mass at infinite loss of everything formed so far, 1 - prod (1 - w)^count."""
        return -math.expm1(self._log_finite) + 0.0

    def run(self, ledger: list[tuple[Mechanism, int]]) -> Law:
        """The product over a whole ledger."""
        plan = self._plan
        step = plan.step(plan.rounds)
        if 1 < len(ledger) <= FEW:
            # Sparse laws need their largest loss on the lattice: a step of its own for each mechanism.
            common = plan.step(len(ledger))
            parts: list[Item] = []
            for mechanism, count in ledger:
                own = _aligned(step, mechanism.max_loss)
                law = self._reduced([(mechanism, count)], own, count)
                parts.append((self._moved(law, max(common, own)), 1))
                reach = max(abs(law.low), abs(law.low + law.mass.size)) * law.step
                self.slack += 1e-14 * reach + 2e-14 * common
            widest = max(law.step for law, _ in parts if isinstance(law, Law))
            parts = [(self._moved(law, widest), 1) for law, _ in parts if isinstance(law, Law)]
            return self._reduced(parts, widest, len(parts))
        limits = {mechanism.max_loss for mechanism, _ in ledger}
        if len(limits) == 1:
            step = _aligned(step, limits.pop())
        return self._reduced(list(ledger), step, plan.rounds)

    def law(self, item: Mechanism | Law, count: int, step: float) -> Law:
        """The tilted law of an item; a mechanism is formed here, and its mass and slack booked."""
        if isinstance(item, Law):
            return item
        pld = self._form(item, step)
        self._log_finite += count * math.log1p(-min(pld.infinity, 1.0 - 1e-16))
        self.slack += count * pld.slack
        return pld.tilted(self._plan.tilt)

    def _form(self, mechanism: Mechanism, step: float) -> PLD:
        """This side's law of `mechanism`; the other side's is left for it, up to some memory."""
        waiting = self._formed.pop((mechanism, step), None)
        if waiting is not None and waiting.side is self._side:
            return waiting
        plan = self._plan
        if self._waiting_points > WAITING_POINTS:
            return mechanism.form(
                step=step, side=self._side, resolution=plan.resolution, reach=plan.reach
            )
        lower, upper = mechanism.both(step=step, resolution=plan.resolution, reach=plan.reach)
        mine, other = (lower, upper) if self._side is Side.LOWER else (upper, lower)
        self._formed[mechanism, step] = other
        self._waiting_points += other.masses.size
        return mine

    def _reduced(self, items: Sequence[Item], step: float, laws: int) -> Law:
        """The product of all items, on a step that has grown where there were many."""
        plan = self._plan
        if laws <= 4 or plan.fits(laws, len(items)):
            formed = [(self.law(item, count, step), count) for item, count in items]
            if plan.direct:
                return convolution.direct_product(formed)
            return convolution.product(formed, plan.tail)
        size = _batch_rounds(laws, len(items))
        batch: list[tuple[Law, int]] = []
        held = 0
        products: list[tuple[Law, int]] = []

        def close() -> None:
            nonlocal batch, held
            if batch:
                products.append((convolution.product(batch, plan.tail), 1))
            batch, held = [], 0

        for item, count in items:
            law = self.law(item, count, step)
            repeats, rest = divmod(count, size)
            if repeats:
                products.append((convolution.product([(law, size)], plan.tail), repeats))
            if rest:
                batch.append((law, rest))
                held += rest
                if held >= size:
                    close()
        close()
        fewer = sum(count for _, count in products)
        ratio = math.floor(plan.step(fewer) / step)
        if ratio >= 2:
            products = [(self.coarser(law, ratio, count), count) for law, count in products]
            step = products[0][0].step
        return self._reduced(products, step, fewer)

    def coarser(self, law: Law, ratio: int, count: int = 1) -> Law:
        """`law`, used `count` times, on a step `ratio` times as long, by integer arithmetic."""
        self.slack += 2e-14 * count * ratio * law.step
        index = law.low + np.arange(law.mass.size, dtype=np.int64)
        cell = index // ratio
        return self._placed(law, cell, (index - cell * ratio) * law.step, law.step * ratio)

    def _moved(self, law: Law, step: float) -> Law:
        """`law` on another, longer step."""
        if step == law.step:
            return law
        loss = (law.low + np.arange(law.mass.size)) * law.step
        cell = np.floor(loss / step).astype(np.int64)
        return self._placed(law, cell, np.clip(loss - cell * step, 0.0, step), step)

    def _placed(self, law: Law, cell: np.ndarray, offset: np.ndarray, step: float) -> Law:
        plan = self._plan
        mass, low = place(
            law.mass, cell, offset, step=step, side=self._side, tilt=plan.tilt, reach=plan.reach
        )
        return convolution.relabelled(law, mass, low, step)


def _exact_sum(losses: Sequence[tuple[float, int]]) -> Fraction:
    """The sum of loss * count, exactly: delta is 0 at the sum of the largest losses, and not below."""
    return sum((count * Fraction(loss) for loss, count in losses), Fraction(0))


def _float_above(value: Fraction) -> float:
    """The smallest float not below `value`."""
    near = float(value)
    return near if near >= value else math.nextafter(near, math.inf)


def _aligned(step: float, max_loss: float) -> float:
    """The longest step up to `step` that has `max_loss` as a multiple."""
    if not 0.0 < max_loss < math.inf or max_loss / step > 2.0**40:
        return step
    return max_loss / math.ceil(max_loss / step)
