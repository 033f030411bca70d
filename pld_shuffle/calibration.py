"""Planning: the parameter that just meets a privacy target, on the safe side.

Epsilon at the wanted delta is monotone in each parameter; `numerics.search.safe_end` finds the end, and guesses affect
speed only: the value returned has been asked for by itself, and its upper bound meets the target. Fewer rounds, more
noise or gamma, and a smaller eps0 are post-processings; n at a fixed rate: simulate one more user; rates: the sampled
curve r delta(log(1 + (e^eps - 1)/r)) grows with r. But n out of a fixed population runs the other way: delete a random
report, and a cohort of n + 1 is one of n. So a *largest* n is sought there.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from .accountant import Accountant
from .composition.composition import AccuracyWarning
from .fields import FIELDS, MECHANISM_FIELDS, FieldError, Range, Value, mechanism_from_values, values_of
from .ledger import composed, listed
from .mechanisms import Mechanism
from .mechanisms.base import SMALLEST_RATE
from .numerics import validation
from .numerics.search import EXPONENTIAL, LOG, LOOSE_RTOL, VALUE_RTOL, InfeasibleError, Number, SafeEnd, safe_end
from .numerics.sides import Bounds
from .numerics.validation import UnlikelyWarning, positive_float, positive_int, real

__all__ = ["InfeasibleError", "SafeEnd", "Solution", "safe_end", "solve"]

Plan = Callable[[Any], Iterable[tuple[Mechanism, int]]]


@dataclass(frozen=True)
class Solution:
    """A plan that meets its target, and how near the target it is.

    parameter, value : what was solved for. end : "largest" or "smallest", which safe value it is.
    epsilon, delta : the target.
    run : an accountant that has composed the plan at `value`, for further questions.
    achieved : bounds on epsilon at `delta`; ``achieved.upper <= epsilon``.
    unmet : the nearest value not proven to meet the target (value + 1 or value - 1 for integers, within the
        tolerance for floats); None if `value` is the end of the range.
    unmet_epsilon : bounds on epsilon at `delta` there, None if `unmet` is.
    """

    parameter: str
    value: Number
    end: str
    epsilon: float
    delta: float
    run: Accountant
    achieved: Bounds
    unmet: Number | None
    unmet_epsilon: Bounds | None

    @property
    def tight(self) -> bool:
        """Whether `unmet` provably violates the target: no accountant could prove a better value."""
        return self.unmet_epsilon is not None and bool(self.unmet_epsilon.lower > self.epsilon)


def solve(
    parameter: str, plan: Mapping[str, Any] | Plan, *, epsilon: float, delta: float, rtol: float = 1e-3,
    value_rtol: float = VALUE_RTOL, bounds: tuple[Number, Number] | Range | None = None,
) -> Solution:  # fmt: skip
    """The parameter that just meets (epsilon, delta), on the safe side.

    parameter : what is sought, one of `PARAMETERS`, or any name with a callable plan.
    plan : what is run, without `parameter`: either a mapping from the names of `fields` (those of a log's
        columns, and rounds, default 1) to numbers or texts, None and "" counting as not given; or a
        callable that takes a value and returns the ledger, an iterable of (mechanism, count).
    epsilon, delta : the target, epsilon in [0, inf), delta in [0, 1].
    rtol : relative width asked of brackets on delta, as for `Accountant`.
    value_rtol : relative distance at most between `value` and `unmet` of a parameter that is no integer.
    bounds : (low, high), the values allowed, 0 < low <= high; of a parameter that is none of `PARAMETERS` a
        `fields.Range`, which also says whether epsilon grows with it and whether it is an integer.

    Raises InfeasibleError where no value allowed is proven to meet the target, with what the most private value
    spends, and TypeError, ValueError or fields.FieldError for a bad argument. An `AccuracyWarning` is given where a
    bracket of the answer is wider than rtol. Complexity: about ten questions of an accountant.

    >>> found = solve("eps0", {"n": 5000, "population": 10**6, "rounds": 2000}, epsilon=2, delta=1e-6)
    >>> round(found.value, 2), found.end, found.achieved.upper <= 2.0, found.tight
    (9.22, 'largest', True, True)
    """
    asked = float(validation.nonnegatives("epsilon", real("epsilon", epsilon)))
    if not asked < math.inf:
        raise ValueError(f"epsilon must be finite, got {epsilon!r}")
    allowed = float(validation.probabilities("delta", real("delta", delta)))
    if callable(plan):
        sought, build = bounds if isinstance(bounds, Range) else PARAMETERS.get(parameter), plan
        if sought is None:
            raise ValueError(f"parameter {parameter!r} is none of {', '.join(PARAMETERS)}: give a Range as bounds")
    else:
        values = _values(parameter, plan)
        sought, build = _among(parameter, values), _builder(parameter, values)
    sought = _within(sought, bounds)
    questions = _Questions(build, allowed, validation.tolerance("rtol", rtol))
    try:
        scale = EXPONENTIAL if parameter == "eps0" else LOG
        loose = partial(questions.bounds, rtol=LOOSE_RTOL)  # costs less
        end = safe_end(questions.bounds, asked, loose=loose, rtol=value_rtol, **vars(sought), scale=scale)
    except InfeasibleError:
        low, high = map(float, questions.bounds(sought.best))
        raise InfeasibleError(
            f"no {parameter} in [{sought.low!r}, {sought.high!r}] is proven to meet epsilon={asked!r} at"
            f" delta={allowed!r}: even {parameter}={sought.best!r} spends epsilon in [{low!r}, {high!r}]"
        ) from None
    # What was said about the answer, and what was not accurate about the nearest value that is none.
    unmet = [one for one in questions.remarks.get(end.unmet, ()) if one.category is AccuracyWarning]
    for remark in (*questions.remarks[end.value], *unmet):
        warnings.warn(remark.message, stacklevel=2)
    run = questions.run(end.value)
    return Solution(
        parameter, end.value, sought.end, asked, allowed, run, end.achieved, end.unmet, unmet_epsilon=end.unmet_bounds
    )


class _Questions:
    """Epsilon at one delta for the plan at any value."""

    def __init__(self, plan: Plan, delta: float, rtol: float) -> None:
        self._plan, self._delta, self._rtol = plan, delta, rtol
        self.remarks: dict[Number | None, list[warnings.WarningMessage]] = {}

    def run(self, value: Number, rtol: float | None = None) -> Accountant:
        """An accountant that has composed the plan at `value`."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnlikelyWarning)  # a rate of 1, say, is ours
            rounds = listed("what plan returns", self._plan(value))
        return composed(Accountant(self._rtol if rtol is None else rtol), rounds)

    def bounds(self, value: Number, rtol: float | None = None) -> Bounds:
        """Bounds as accurate as asked for, or to `rtol`; what is said about the former is kept for later."""
        with warnings.catch_warnings(record=True) as said:
            for category in (AccuracyWarning, UnlikelyWarning):
                warnings.simplefilter("always", category)
            found = self.run(value, rtol).epsilon_bounds(self._delta)
        if rtol is None:
            self.remarks[value] = said
        return found


#: What `solve` can look for in a plan of fields, and where.
PARAMETERS = {name: known.range for name, known in FIELDS.items() if known.range is not None}


def _within(sought: Range, bounds: Any) -> Range:
    """The same on the range the caller allows."""
    low, high = sought.low, sought.high
    if not (bounds is None or isinstance(bounds, Range)):
        if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
            raise TypeError(f"bounds must be (low, high), got {bounds!r}")
        low, high = bounds
    check = positive_int if sought.whole else positive_float
    low, high = check("low of bounds", low), check("high of bounds", high)
    if not low <= high:
        raise ValueError(f"bounds must be (low, high) with low <= high, got {bounds!r}")
    return replace(sought, low=low, high=high, start=min(max(sought.start, low), high))


def _values(parameter: str, plan: Mapping[str, Any]) -> dict[str, Value]:
    """The values of a plan of fields, checked but for their ranges."""
    validation.choice("parameter", parameter, tuple(PARAMETERS))
    if not isinstance(plan, Mapping):
        raise TypeError(f"plan must be a mapping of fields or a callable, got {plan!r}")
    values = values_of(plan, (*MECHANISM_FIELDS, "rounds"))
    if parameter in values:
        raise FieldError(parameter, f"is solved for, so it must not be given, got {plan[parameter]!r}")
    return values


def _among(parameter: str, values: Mapping[str, Any]) -> Range:
    """A parameter next to the other values: a population bounds n, and turns its direction round."""
    sought = PARAMETERS[parameter]
    if parameter == "n" and "population" in values:
        high = min(sought.high, positive_int("population", values["population"]))
        return replace(sought, high=high, start=max(1, high // 100), increasing=True)
    if parameter == "n" and "eps0" in values:
        # Below e^eps0 users nobody hides; far over the target, questions are slow.
        return replace(sought, start=round(100.0 * math.exp(min(max(values["eps0"], 0.0), 25.0))))
    if parameter == "population" and "n" in values:
        n = positive_int("n", values["n"])
        return replace(sought, low=n, high=min(sought.high, n * int(0.999 / SMALLEST_RATE)), start=100 * n)
    if parameter == "dropouts" and "n" in values:
        return replace(sought, high=max(1, values["n"] - values.get("colluding", 0) - 1))
    if parameter in ("sigma", "scale") and "share" in values:
        return replace(sought, low=0.1, high=1e6)
    if parameter in ("sigma", "scale"):
        name = "norm" if "norm" in values else "sensitivity"
        unit = positive_float(name, values.get(name, 1.0))
        return replace(sought, low=unit * sought.low, high=unit * sought.high, start=unit * sought.start)
    return sought


def _builder(parameter: str, values: Mapping[str, Value]) -> Plan:
    """From a value of the parameter to the rounds described by the other values with it."""
    count = int(values.get("rounds", 1))
    run = {name: value for name, value in values.items() if name != "rounds"}
    if parameter == "rounds":
        mechanism = mechanism_from_values(run)
        return lambda value: [(mechanism, value)]
    return lambda value: [(mechanism_from_values(run | {parameter: value}), count)]
