"""Planning: the parameter that just meets a privacy target, on the safe side.

`solve` answers "which local budget, how small a cohort, how many rounds, how large a sampling rate?".
`safe_end` is the search under it, for any quantity that has certified bounds and one direction.

The idea. Epsilon at the wanted delta is monotone in each parameter (see below), so the values split
into those whose *upper* bound meets the target and those whose upper bound does not. The search keeps one of
each, guesses where the target is crossed by secants on scales on which epsilon is nearly straight, and
stops when the two are neighbours: consecutive integers, or floats within a relative tolerance. Far from the
target a loose bracket decides; near it, and at both ends of the answer, one of the wanted rtol. So guesses
affect speed, never correctness: the value returned has been asked for by itself, and its upper bound
meets the target.

Why monotone (two certified moves of `crowd`: a view with one more fair coin, or with a smaller theta, is
dominated):

* rounds: forget the last round.
* eps0: a smaller one gives more coins and a smaller theta. gamma: users randomise their responses again.
* n, at a fixed sampling rate or without sampling: simulate one more user, whose value is known.
* rate, and population at fixed n: with (P, Q) the pair and r the rate, the sampled curve is
  r delta(log(1 + (e^eps - 1) / r)), r times a decreasing function of something that falls with r.
* n out of a fixed population runs the other way: delete a random report, and a cohort of n + 1 is one of n.
  So a *largest* n is sought there, and every smaller cohort is as private. (The sampled pair is a bound that
  need not be monotone in n: the n returned is proven by itself, a larger one may be too.)
"""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from .accountant import Accountant
from .bracket import Bounds
from .composition import AccuracyWarning
from .ledger import Ledger
from .mechanisms import LARGEST_EPS0, SMALLEST_EPS0, SMALLEST_RATE, Mechanism
from .trainlog import FieldError, integer_from_text, mechanism_from_fields, number_from_text
from .validation import (
    LARGEST_CROWD,
    choice,
    nonnegatives,
    positive_float,
    positive_int,
    probabilities,
    real,
    tolerance,
)

__all__ = ["InfeasibleError", "SafeEnd", "Solution", "safe_end", "solve"]

Rounds = tuple[tuple[Mechanism, int], ...]
Build = Callable[[Any], Iterable[tuple[Mechanism, int]]]
Number = float  # the type checker's float includes int: whole parameters are ints throughout


class Scale(NamedTuple):
    """Increasing coordinates in which the logarithm of what is spent is nearly straight."""

    there: Callable[[float], float]
    back: Callable[[float], float]


LOG = Scale(math.log, math.exp)
# Epsilon grows like a power of e^eps0 - 1.
EXPONENTIAL = Scale(
    lambda value: value + math.log(-math.expm1(-value)),
    lambda place: max(place, 0.0) + math.log1p(math.exp(-abs(place))),
)

LOOSE_RTOL = 0.1
FEW = 8  # up to so many distinct mechanisms a loose bracket is much cheaper than a tight one
FIRST_FACTOR = 4.0  # the first stride of a search
GUESSED_FACTOR = 1.001  # the first stride from a good guess
VALUE_RTOL = 1e-4  # default relative tolerance of a float parameter


class InfeasibleError(ValueError):
    """No value of the parameter is proven to meet the target; the text says what is in the way."""


@dataclass(frozen=True)
class SafeEnd:
    """Where a search ended.

    value : meets the target: ``achieved.upper <= target``.
    achieved : bounds at `value`.
    unmet : the nearest value that was not proven to meet it (the next integer, or a float within the
        tolerance); None if `value` is the end of the range.
    unmet_bounds : bounds there: if their lower bound exceeds the target, `unmet` violates it; otherwise the
        bracket is too wide to tell.
    """

    value: Number
    achieved: Bounds
    unmet: Number | None = None
    unmet_bounds: Bounds | None = None


def safe_end(
    spent: Callable[[Any], Bounds],
    target: float,
    *,
    low: Number,
    high: Number,
    increasing: bool,
    whole: bool = False,
    rtol: float = VALUE_RTOL,
    start: Number | None = None,
    loose: Callable[[Any], Bounds] | None = None,
    stride: float = FIRST_FACTOR,
    scale: Scale = LOG,
) -> SafeEnd:
    """The most wasteful value in [low, high] with ``spent(value).upper <= target``.

    Parameters
    ----------
    spent : certified bounds on the quantity at a value (epsilon at a delta, delta at an epsilon,
        an error); must be monotone in the value, up to the width of its brackets.
    target : what must not be exceeded.
    low, high : the range, 0 < low <= high; integers if `whole`.
    increasing : whether `spent` grows with the value: then the largest safe value is returned, else the
        smallest.
    whole : whether values are integers; then `unmet` is the very next one.
    rtol : otherwise, the relative distance of `value` and `unmet` at most.
    start, stride : a guess, and the factor by which it may be wrong; they affect speed only.
    loose : cheaper bounds on the same quantity, to decide where they can.
    scale : coordinates in which the logarithm of `spent` is nearly straight; for speed.

    Returns a `SafeEnd`. Raises InfeasibleError if not even the better end of the range meets the target, and
    TypeError or ValueError naming a bad argument. Complexity: about ten questions, most of them to `loose`.

    The least gamma for 100 rounds at (1, 1e-6), within 1 %:

    >>> from pld_shuffle import Accountant, ShuffledRR
    >>> def epsilon(gamma):
    ...     return Accountant().compose(ShuffledRR(k=4, n=10**5, gamma=gamma), 100).epsilon_bounds(1e-6)
    >>> end = safe_end(epsilon, 1.0, low=1e-3, high=1.0, increasing=False, rtol=1e-2)
    >>> end.achieved.upper <= 1.0 < end.unmet_bounds.lower and end.unmet < end.value
    True
    """
    target = float(nonnegatives("target", real("target", target)))
    check = positive_int if whole else positive_float
    low, high = check("low", low), check("high", high)
    if not low <= high:
        raise ValueError(f"low must not exceed high, got {low!r} > {high!r}")
    start = low if start is None else min(max(check("start", start), low), high)
    search = _Search(
        spent, loose, target, (low, high), increasing, whole, tolerance("rtol", rtol), scale
    )
    return search.run(start, stride)


def _bounds(name: str, found: Any) -> Bounds:
    """What the caller's function of that name returned, if it is a bracket."""
    if not isinstance(found, Bounds):
        raise TypeError(f"{name} must return Bounds, got {found!r}")
    return found


class _Search:
    """One search; see the module. A good value meets the target, a bad one is not proven to."""

    def __init__(
        self,
        spent: Callable[[Any], Bounds],
        loose: Callable[[Any], Bounds] | None,
        target: float,
        span: tuple[Number, Number],
        increasing: bool,
        whole: bool,
        rtol: float,
        scale: Scale,
    ) -> None:
        self._spent = spent
        self._loose = loose
        self._target = target
        self._best, self._worst = span if increasing else span[::-1]
        self._whole = whole
        self._rtol = rtol
        self._scale = scale
        self._tight: dict[Number, Bounds] = {}
        self._rough: dict[Number, Bounds] = {}

    def run(self, start: Number, stride: float) -> SafeEnd:
        good, bad = self._bracketed(start, stride)
        while True:
            if bad is not None:
                good, bad = self._narrowed(good, bad)
            achieved = self._asked(good)
            if achieved.upper <= self._target:
                break
            # A loose bracket happened to reach less far up than the tight one.
            good, bad = self._bracketed(good, 1.0 + self._rtol)
        if bad is None:
            return SafeEnd(good, achieved)
        return SafeEnd(good, achieved, bad, self._asked(bad))

    # -- questions ---------------------------------------------------------------------------------

    def _asked(self, value: Number) -> Bounds:
        """Tight bounds at `value`."""
        if value not in self._tight:
            self._tight[value] = _bounds("spent", self._spent(value))
        return self._tight[value]

    def _met(self, value: Number) -> bool:
        """Whether `value` is proven to meet the target, by loose bounds where they can tell."""
        if self._loose is not None and value not in self._tight:
            if value not in self._rough:
                self._rough[value] = _bounds("loose", self._loose(value))
            rough = self._rough[value]
            if rough.upper <= self._target:
                return True
            if rough.lower > self._target:
                return False
        return bool(self._asked(value).upper <= self._target)

    def _excess(self, value: Number) -> float:
        """log(spent / target) as far as it is known; nan where it says nothing."""
        if value in self._tight:
            spent = float(self._tight[value].upper)
        else:
            rough = self._rough[value]
            spent = math.sqrt(rough.lower * rough.upper) or float(rough.upper)
        if not (0.0 < spent < math.inf and self._target > 0.0):
            return math.nan
        return math.log(spent) - math.log(self._target)

    def _crossing(self) -> float:
        """Where the target seems to be crossed, on the scale: the secant of the two points nearest to it."""
        known = [(self._excess(value), value) for value in self._rough.keys() | self._tight.keys()]
        ranked = sorted((abs(excess), excess, value) for excess, value in known if excess == excess)
        if len(ranked) < 2:
            return math.nan
        (_, first, near), (_, second, next_near) = ranked[:2]
        if first == second:
            return math.nan
        start, end = self._scale.there(near), self._scale.there(next_near)
        return start + (end - start) * first / (first - second)

    # -- the search --------------------------------------------------------------------------------

    def _bracketed(self, start: Number, stride: float) -> tuple[Number, Number | None]:
        """A good and a bad value, by strides that double on the scale, not far over the crossing."""
        value = start
        met = self._met(value)
        end = self._worst if met else self._best
        length = math.log(stride)
        while value != end:
            before = value
            here, ahead = self._scale.there(before), self._crossing()
            reach = 1.25 * abs(ahead - here) + 0.1 * length
            stepped = reach if (ahead > here) is (end > before) and reach < length else length
            value = self._between(here + math.copysign(stepped, end - before), before, end)
            length *= 2.0
            if self._met(value) is not met:
                return (before, value) if met else (value, before)
        if met:
            return value, None
        raise InfeasibleError(
            f"even {value!r} is not proven to meet {self._target!r}: there, {self._asked(value)}"
        )

    def _narrowed(self, good: Number, bad: Number) -> tuple[Number, Number]:
        """The bracket, narrowed to neighbours: by secants, and by halves where they do not help."""
        there = self._scale.there
        bisect = False
        while not self._neighbours(good, bad):
            width = abs(there(bad) - there(good))
            value = self._guess(good, bad, bisect)
            if self._met(value):
                good = value
            else:
                bad = value
            bisect = not bisect and abs(there(bad) - there(good)) > 0.5 * width
        return good, bad

    def _neighbours(self, good: Number, bad: Number) -> bool:
        if self._whole:
            return abs(bad - good) <= 1
        return abs(bad - good) <= self._rtol * min(good, bad)

    def _guess(self, good: Number, bad: Number, bisect: bool) -> Number:
        """A value strictly between, where the target seems to be crossed, or in the middle.

        A little beyond the crossing, towards the farther end: so that both ends come close.
        """
        there = self._scale.there
        low, high = sorted((good, bad))
        if self._whole and bisect and high - low < 0.5 * low:
            return (low + high) // 2  # exact where the scale rounds
        middle, crossing = 0.5 * (there(low) + there(high)), self._crossing()
        if not bisect and there(low) <= crossing <= there(high):
            tolerated = (there(high) - there(low)) * min(
                0.5, 0.4 * (1.0 if self._whole else self._rtol * low) / (high - low)
            )
            middle = crossing + (tolerated if crossing < middle else -tolerated)
        return self._between(middle, low, high, open_end=True)

    def _between(
        self, scaled: float, before: Number, end: Number, *, open_end: bool = False
    ) -> Number:
        """The value at a place of the scale: after `before`, at most (if open, before) `end`."""
        value: Number = self._scale.back(scaled)
        low, high = sorted((before, end))
        if not self._whole:
            return min(max(value, low), high)
        least = low + 1 if open_end or before == low else low
        most = high - 1 if open_end or before == high else high
        return min(max(round(value), least), most)


@dataclass(frozen=True)
class _Kind:
    """Range, guess and direction of a parameter; epsilon grows with it if `increasing`."""

    low: Number
    high: Number
    start: Number
    increasing: bool
    whole: bool
    scale: Scale = LOG

    @property
    def best(self) -> Number:
        """The end of the range where epsilon is smallest."""
        return self.low if self.increasing else self.high

    def within(self, bounds: tuple[Number, Number] | None) -> _Kind:
        """The same on the range the caller allows."""
        check = positive_int if self.whole else positive_float
        low, high = (self.low, self.high) if bounds is None else _two(bounds)
        low, high = check("low of bounds", low), check("high of bounds", high)
        if not low <= high:
            raise ValueError(f"bounds must be (low, high) with low <= high, got {bounds!r}")
        return replace(self, low=low, high=high, start=min(max(self.start, low), high))


def _two(bounds: Any) -> tuple[Number, Number]:
    if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
        raise TypeError(f"bounds must be (low, high), got {bounds!r}")
    return bounds[0], bounds[1]


KINDS = {
    "eps0": _Kind(SMALLEST_EPS0, LARGEST_EPS0, 1.0, True, False, EXPONENTIAL),
    "gamma": _Kind(1e-12, 1.0, 0.1, False, False),
    "n": _Kind(1, LARGEST_CROWD, 1000, False, True),
    "population": _Kind(1, 10**18 - 1, 10**6, False, True),
    "rate": _Kind(SMALLEST_RATE, 1.0, 1e-2, True, False),
    "rounds": _Kind(1, 10**9, 100, True, True),
}


@dataclass(frozen=True)
class Solution:
    """A plan that meets its target, and how near the target it is.

    parameter, value : what was solved for. end : "largest" or "smallest", which safe value it is.
    epsilon, delta : the target.
    ledger : the plan at `value`: (mechanism, count) pairs.
    achieved : bounds on epsilon at `delta`; ``achieved.upper <= epsilon``.
    unmet : the nearest value not proven to meet the target (value + 1 or value - 1 for integers, within the
        tolerance for floats); None if `value` is the end of the range.
    unmet_epsilon : bounds on epsilon at `delta` there, None if `unmet` is.
    rtol : relative width asked of brackets on delta.
    """

    parameter: str
    value: Number
    end: str
    epsilon: float
    delta: float
    ledger: Rounds
    achieved: Bounds
    unmet: Number | None
    unmet_epsilon: Bounds | None
    rtol: float

    @property
    def tight(self) -> bool:
        """Whether `unmet` provably violates the target: no accountant could prove a better value."""
        return self.unmet_epsilon is not None and bool(self.unmet_epsilon.lower > self.epsilon)

    def accountant(self) -> Accountant:
        """An accountant that has run the plan, for further questions such as delta at `epsilon`."""
        accountant = Accountant(self.rtol)
        for mechanism, count in self.ledger:
            accountant.compose(mechanism, count)
        return accountant


def solve(
    parameter: str,
    plan: Mapping[str, Any] | Callable[[Any], Iterable[tuple[Mechanism, int]]],
    *,
    epsilon: float,
    delta: float,
    rtol: float = 1e-3,
    value_rtol: float = VALUE_RTOL,
    bounds: tuple[Number, Number] | None = None,
    increasing: bool | None = None,
    whole: bool | None = None,
) -> Solution:
    """The parameter that just meets (epsilon, delta), on the safe side.

    Parameters
    ----------
    parameter : the largest "eps0", "rounds" or "rate", the smallest "n", "gamma" or "population" that
        meets the target; with a fixed population the largest "n" (see the module). With a callable
        plan it may be any name.
    plan : what is run, without `parameter`: either a mapping with the names of the columns of a log
        (mechanism, n, eps0, k, gamma, adversary, analysis, population or rate) and rounds (default 1),
        values as numbers or as texts, None and "" counting as not given; or a callable that takes a
        value and returns the ledger, an iterable of (mechanism, count).
    epsilon, delta : the target, epsilon in [0, inf), delta in [0, 1].
    rtol : relative width asked of brackets on delta, as for `Accountant`.
    value_rtol : relative distance at most between `value` and `unmet` of a parameter that is no integer.
    bounds : (low, high), the values allowed; 0 < low <= high.
    increasing, whole : of a parameter that is none of the above: whether epsilon grows with it,
        whether it is an integer (default no). With a callable plan they also overrule the above.

    Returns a `Solution`. Raises InfeasibleError where no value allowed is proven to meet the target, saying
    what is in the way, and TypeError, ValueError or trainlog.FieldError for a bad argument. An
    `AccuracyWarning` is given where a bracket of the answer is wider than rtol.
    Complexity: about ten questions of an accountant; a fraction of a second for equal rounds.

    >>> found = solve("eps0", {"n": 5000, "population": 10**6, "rounds": 2000}, epsilon=2, delta=1e-6)
    >>> round(found.value, 2), found.end, found.achieved.upper <= 2.0, found.tight
    (6.34, 'largest', True, True)
    """
    asked = float(nonnegatives("epsilon", real("epsilon", epsilon)))
    if not asked < math.inf:
        raise ValueError(f"epsilon must be finite, got {epsilon!r}")
    allowed = float(probabilities("delta", real("delta", delta)))
    rtol = tolerance("rtol", rtol)
    if callable(plan):
        kind, build = _kind_of_name(parameter, increasing, whole, bounds), plan
    else:
        if increasing is not None or whole is not None:
            raise ValueError("increasing and whole are for a callable plan, got a mapping")
        fields = _texts(parameter, plan)
        kind, build = _kind_in_fields(parameter, fields), _builder(parameter, fields)
    kind = kind.within(bounds)
    questions = _Questions(build, allowed, rtol)
    start, stride = questions.guess(kind, asked)
    try:
        end = safe_end(
            questions.tight, asked, low=kind.low, high=kind.high, increasing=kind.increasing,
            whole=kind.whole, rtol=value_rtol, start=start, stride=stride, scale=kind.scale,
            loose=questions.loose if questions.few(start) else None,
        )  # fmt: skip
    except InfeasibleError:
        others = None if callable(plan) else _relaxed(parameter, fields, kind.best)
        raise InfeasibleError(questions.obstacle(parameter, kind, asked, others)) from None
    questions.repeat_warnings(end)
    return Solution(
        parameter=parameter,
        value=end.value,
        end="largest" if kind.increasing else "smallest",
        epsilon=asked,
        delta=allowed,
        ledger=questions.ledger(end.value),
        achieved=end.achieved,
        unmet=end.unmet,
        unmet_epsilon=end.unmet_bounds,
        rtol=rtol,
    )


class _Questions:
    """Epsilon at one delta for the plan at any value."""

    def __init__(self, build: Build, delta: float, rtol: float) -> None:
        self._build = build
        self._delta = delta
        self._rtol = rtol
        self._answers: dict[Number, tuple[Bounds, list[str]]] = {}

    def ledger(self, value: Number) -> Rounds:
        """The plan at `value`, equal mechanisms pooled."""
        pool = Ledger()
        rounds = self._build(value)
        if not isinstance(rounds, Iterable):
            raise TypeError(f"plan must return (mechanism, count) pairs, got {rounds!r}")
        for pair in rounds:
            if not (isinstance(pair, (tuple, list)) and len(pair) == 2):
                raise TypeError(f"plan must return (mechanism, count) pairs, got {pair!r} in it")
            pool.compose(*pair)
        return pool.ledger

    def few(self, value: Number) -> bool:
        """Whether loose brackets are worth asking for."""
        return len(self.ledger(value)) <= FEW

    def tight(self, value: Number) -> Bounds:
        if value not in self._answers:
            self._answers[value] = _epsilon(self.ledger(value), self._delta, self._rtol)
        return self._answers[value][0]

    def loose(self, value: Number) -> Bounds:
        return _epsilon(self.ledger(value), self._delta, LOOSE_RTOL)[0]

    def guess(self, kind: _Kind, epsilon: float) -> tuple[Number, float]:
        """Where to start and the first stride; with many distinct mechanisms from a few of them."""
        if self.few(kind.start):
            return kind.start, FIRST_FACTOR

        def thinned(value: Number) -> Bounds:
            return _epsilon(_thinned(self.ledger(value)), self._delta, LOOSE_RTOL)[0]

        try:
            end = safe_end(
                thinned, epsilon, low=kind.low, high=kind.high, increasing=kind.increasing,
                whole=kind.whole, rtol=VALUE_RTOL, start=kind.start, scale=kind.scale,
            )  # fmt: skip
        except InfeasibleError:
            return kind.best, FIRST_FACTOR
        return end.value, GUESSED_FACTOR

    def repeat_warnings(self, end: SafeEnd) -> None:
        """Say what was not accurate about the two ends of the answer."""
        for value in (end.value, end.unmet):
            for remark in self._answers[value][1] if value is not None else ():
                warnings.warn(remark, AccuracyWarning, stacklevel=3)

    def obstacle(
        self,
        parameter: str,
        kind: _Kind,
        epsilon: float,
        others: Iterable[tuple[str, Rounds]] | None,
    ) -> str:
        """Why nothing meets the target, and, where they are known, which other parameters matter."""
        spent = self.tight(kind.best)
        text = (
            f"no {parameter} in [{kind.low!r}, {kind.high!r}] is proven to meet epsilon={epsilon!r} at"
            f" delta={self._delta!r}: even {parameter}={kind.best!r} spends epsilon in"
            f" [{float(spent.lower)!r}, {float(spent.upper)!r}]"
        )
        if others is None:
            return text
        helpful = [change for change, ledger in others if self._helps(ledger, epsilon)]
        if helpful:
            return f"{text}; in the way: {', '.join(helpful)}"
        return f"{text}; no other parameter at its most private changes that alone: the target is too small"

    def _helps(self, ledger: Rounds, epsilon: float) -> bool:
        try:
            return bool(_epsilon(ledger, self._delta, LOOSE_RTOL)[0].upper <= epsilon)
        except (ArithmeticError, MemoryError):
            return (
                False  # advice about extreme values: none is given where they cannot be accounted
            )


def _epsilon(ledger: Rounds, delta: float, rtol: float) -> tuple[Bounds, list[str]]:
    """Bounds on epsilon, and what was to be said about their accuracy."""
    accountant = Accountant(rtol)
    for mechanism, count in ledger:
        accountant.compose(mechanism, count)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", AccuracyWarning)
        found = accountant.epsilon_bounds(delta)
    return found, [str(warning.message) for warning in caught]


def _thinned(ledger: Rounds) -> Rounds:
    """A few mechanisms that stand for many of like scale: an estimate, to start a search from."""
    ranked = sorted(ledger, key=lambda item: item[0].loss_scale)
    size = -(-len(ranked) // FEW)
    groups = [ranked[i : i + size] for i in range(0, len(ranked), size)]
    return tuple((group[len(group) // 2][0], sum(count for _, count in group)) for group in groups)


# --- parameters and plans ---------------------------------------------------------------------------


def _kind_of_name(
    parameter: str,
    increasing: bool | None,
    whole: bool | None,
    bounds: tuple[Number, Number] | None,
) -> _Kind:
    """The kind of a parameter of a callable plan."""
    known = KINDS.get(parameter)
    if known is None:
        if increasing is None or bounds is None:
            raise ValueError(
                f"parameter {parameter!r} is none of {', '.join(KINDS)}: give increasing and bounds"
            )
        low, high = _two(bounds)
        known = _Kind(low, high, low, increasing, False)
    if increasing is not None:
        known = replace(known, increasing=increasing)
    return known if whole is None else replace(known, whole=whole)


def _texts(parameter: str, plan: Mapping[str, Any]) -> dict[str, str]:
    """The fields of a plan as texts, checked but for their values."""
    choice("parameter", parameter, tuple(KINDS))
    if not isinstance(plan, Mapping):
        raise TypeError(f"plan must be a mapping of fields or a callable, got {plan!r}")
    given = {
        name: value
        for name, value in plan.items()
        if not (value is None or (isinstance(value, str) and not value.strip()))
    }
    if parameter in given:
        raise FieldError(
            parameter, f"is solved for, so it must not be given, got {given[parameter]!r}"
        )
    return {name: _text(name, value) for name, value in given.items()}


def _text(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return str(int(value))
    return repr(real(name, value))


def _kind_in_fields(parameter: str, fields: Mapping[str, str]) -> _Kind:
    """The kind of a parameter of a plan of fields: a population bounds n, and turns it round."""
    kind = KINDS[parameter]
    if parameter == "n" and "population" in fields:
        population = positive_int(
            "population", integer_from_text("population", fields["population"])
        )
        high = min(kind.high, population)
        return replace(kind, high=high, start=max(1, high // 100), increasing=True)
    if parameter == "n" and "eps0" in fields:
        # Below e^eps0 users nobody hides; far over the target, questions are slow.
        eps0 = min(max(number_from_text("eps0", fields["eps0"]), 0.0), 25.0)
        return replace(kind, start=round(100.0 * math.exp(eps0)))
    if parameter == "population" and "n" in fields:
        n = positive_int("n", integer_from_text("n", fields["n"]))
        return replace(
            kind, low=n, high=min(kind.high, n * int(0.999 / SMALLEST_RATE)), start=100 * n
        )
    return kind


def _builder(parameter: str, fields: Mapping[str, str]) -> Build:
    """From a value to the rounds described by the fields with it."""
    count = integer_from_text("rounds", fields.get("rounds", "1"))
    if not count >= 1:
        raise FieldError("rounds", f"must be at least 1, got {count}")
    run = {name: text for name, text in fields.items() if name != "rounds"}
    if parameter == "rounds":
        mechanism = mechanism_from_fields(run)
        return lambda value: [(mechanism, value)]
    return lambda value: [
        (mechanism_from_fields(run | {parameter: _text(parameter, value)}), count)
    ]


def _relaxed(
    parameter: str, fields: Mapping[str, str], best: Number
) -> Iterator[tuple[str, Rounds]]:
    """The plan at the best value, with one other field after the other at its most private."""
    for name, text in ({"rounds": "1"} | dict(fields)).items():
        if name not in KINDS or name == parameter:
            continue
        if name == "n" and "population" in (parameter, *fields):
            continue  # drawn from a population, n has no end that is the most private
        changed = {key: value for key, value in fields.items() if key != name}
        kind = _kind_in_fields(name, changed | {parameter: _text(parameter, best)})
        value = kind.best
        rounds = _builder(parameter, changed | {name: _text(name, value)})(best)
        yield f"{name}={text} (with {name}={value!r} it could be met)", tuple(rounds)
