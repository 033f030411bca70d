"""Audits: what somebody's implementation gives away, measured from its outputs, next to what is proved or claimed.

For a set S of outputs that was chosen without looking at the runs it is tested on, (epsilon, delta)-DP says
P(S) <= e^epsilon Q(S) + delta, so epsilon >= log((p - delta) / q) with p <= P(S) and q >= Q(S): the ends of Clopper and
Pearson (1934), each failing with half of 1 - confidence. A quarter of the runs fits statistics of outputs (estimates of
the likelihood ratio), a quarter chooses one of them, a threshold and which dataset comes first, and half is tested: a
bad choice only makes the bound small. docs/howto/audit.md: what it does not say, and how many runs it needs.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .accountant import Accountant
from .mechanisms import Mechanism
from .numerics.sides import Array, Index
from .numerics.validation import between, nonnegatives, open_unit, real

Score = Callable[[Array], Array]

LEAST_RUNS = 16  # of each dataset
MOST_VALUES = 64  # of a column that is taken as it is; others are cut at quantiles
MOST_FEATURES = 512  # of a linear discriminant: columns, or different values that are counted
THRESHOLDS = 200  # tried of each statistic, in either direction
CAUTION = 1e-4  # chance with which events are ranked: among so many, a bold rank would be won by luck
MARGIN = 1e-9  # relative, for the rounding of quantiles of the beta law

_below_one = between(0.0, 1.0, "[)")


class AuditError(ValueError):
    """More was measured than is proved or claimed."""


@dataclass(frozen=True)
class Audit:
    """What an audit found.

    epsilon : certified lower bound at `delta`, with `confidence`; 0 if nothing was found. proved : the upper bound that
    it is compared with; None if there is none. statistic : what told the datasets apart best. turned : whether the
    event is likelier for the second dataset. hits, runs : how often the event occurred in how many tested runs of the
    likelier dataset and of the other one. inputs : of a local randomizer, the likelier one first.
    """

    epsilon: float
    delta: float
    confidence: float
    proved: float | None
    statistic: str
    turned: bool
    hits: tuple[int, int]
    runs: tuple[int, int]
    inputs: tuple[Any, Any] | None = None

    @property
    def violated(self) -> bool:
        """Whether more was measured than is proved."""
        return self.proved is not None and self.epsilon > self.proved

    def require(self) -> Audit:
        """This, or an AuditError if more was measured than is proved."""
        if self.violated:
            raise AuditError(
                f"measured epsilon is at least {self.epsilon:.4g} at delta={self.delta:g} with confidence"
                f" {self.confidence:g}, more than the {self.proved:.4g} that is proved: the implementation is another"
                f" one, or the datasets are not neighbours ({self.statistic}: {self.hits[0]} of {self.runs[0]} runs"
                f" against {self.hits[1]} of {self.runs[1]})"
            )
        return self


def audit(
    first: Any, second: Any, *, delta: float = 0.0, confidence: float = 0.999,
    proved: Mechanism | Accountant | float | None = None,
) -> Audit:  # fmt: skip
    """A certified lower bound on epsilon from outputs on two neighbouring datasets.

    first, second : the outputs, one row for each independent run, at least 16: arrays of shape (runs,) or (runs,
        numbers), or files of them (`.npy`, or text with commas). A shuffled round is its reports in the order in which
        they came out, or how often each report occurred; of a statistic of your own, its values.
    delta : in [0, 1). confidence : in (0, 1); the bound is wrong with probability at most 1 - confidence.
    proved : to compare with: a mechanism (one round), an accountant, or an epsilon that is claimed.

    Raises TypeError or ValueError naming the argument, OSError for a file. Time and memory: linear in the outputs.

    >>> import numpy as np
    >>> from pld_shuffle.randomizers import BinaryRandomizedResponse
    >>> rng, response = np.random.default_rng(0), BinaryRandomizedResponse(1.0)
    >>> values = np.zeros((2, 4_000, 10), int)  # ten users, 4,000 runs, two datasets
    >>> values[1, :, 0] = 1
    >>> reports = response.sample(values, rng)  # not shuffled: the target's report always comes first
    >>> found = audit(*reports, delta=1e-3, proved=0.5)
    >>> found.violated, 0.6 < found.epsilon <= 1.0
    (True, True)
    """
    delta, confidence = _below_one("delta", delta), open_unit("confidence", confidence)
    rows = [_outputs(name, given) for name, given in (("first", first), ("second", second))]
    width, other = (part.shape[1] for part in rows)
    if width != other:
        raise ValueError(f"second must have as many numbers in a row as first, {width}, got {other}")
    return _tested(_chosen(rows, delta), delta, confidence, _proved(proved, delta))


def audit_randomizer(
    reports: Mapping[Any, Any], eps0: float | None = None, *, delta: float = 0.0, confidence: float = 0.999
) -> Audit:
    """The same for a local randomizer alone, over all pairs of inputs.

    reports : from 2 to 32 inputs to arrays of independent reports, one row each. eps0 : what is claimed, at `delta`.
    Which pair is tested is chosen by the first half, as the statistic is. Raises as `audit`.

    >>> found = audit_randomizer({"yes": [1] * 900 + [0] * 100, "no": [1] * 100 + [0] * 900}, eps0=3.0)
    >>> found.violated, found.inputs, 0.5 < found.epsilon < 2.2
    (False, ('yes', 'no'), True)
    """
    delta, confidence = _below_one("delta", delta), open_unit("confidence", confidence)
    if not isinstance(reports, Mapping):
        raise TypeError(f"reports must be a mapping from inputs to arrays, got {reports!r}")
    drawn = {x: _outputs(f"reports of {x!r}", given) for x, given in reports.items()}
    if not 2 <= len(drawn) <= 32:
        raise ValueError(f"reports must be of 2 to 32 inputs, got {len(drawn)}")
    if len({rows.shape[1] for rows in drawn.values()}) > 1:
        raise ValueError("reports must be of one length")
    proved = _proved(eps0, delta)
    pairs = [(_chosen([drawn[x] for x in pair], delta), pair) for pair in combinations(drawn, 2)]
    best, pair = max(pairs, key=lambda found: found[0].strength)
    return _tested(best, delta, confidence, proved, pair[::-1] if best.turned else pair)


def _proved(given: Mechanism | Accountant | float | None, delta: float) -> float | None:
    if given is None:
        return None
    if isinstance(given, Mechanism):
        given = Accountant().compose(given)
    if isinstance(given, Accountant):
        return given.get_epsilon(delta)
    return float(nonnegatives("proved", real("proved", given)))


def _outputs(name: str, given: Any) -> Array:
    """Rows of finite numbers, shape (runs, numbers)."""
    if isinstance(given, (str, os.PathLike)):
        path = Path(given)
        name = path.name
        try:
            given = np.load(path) if path.suffix == ".npy" else np.loadtxt(path, delimiter=",", ndmin=2)
        except (ValueError, EOFError) as error:
            raise ValueError(f"{name} must hold numbers, a text with commas between: {error}") from error
    try:
        rows = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be rows of numbers, all of one length: {error}") from error
    if rows.ndim == 0 or rows.shape[0] < LEAST_RUNS or rows.size == 0:
        raise ValueError(f"{name} must have at least {LEAST_RUNS} runs, got shape {rows.shape}")
    if not np.isfinite(rows).all():
        raise ValueError(f"{name} must be finite numbers")
    return rows.reshape(rows.shape[0], -1) + 0.0  # no -0.0


class _Choice(NamedTuple):
    """An event, and the runs it is tested on: a score is at least `threshold`; likelier for the second if `turned`."""

    statistic: str
    score: Score
    threshold: float
    turned: bool
    strength: float
    tested: list[Array]


def _chosen(rows: list[Array], delta: float) -> _Choice:
    """The event that shows most in the second quarter, of statistics that were fitted to the first one."""
    # Runs may have come in some order, such as warm-ups first: every fourth row goes to the same part.
    fitted, chosen = ([part[i::4] for part in rows] for i in (0, 1))
    tested = [np.concatenate([part[2::4], part[3::4]]) for part in rows]
    best = _Choice("nothing", lambda rows: np.zeros(rows.shape[0]), 0.0, False, -math.inf, tested)
    for name, plain in _statistics(fitted):
        for sign in (1.0, -1.0):
            statistic = partial(lambda plain, sign, rows: sign * plain(rows), plain, sign)
            values = [np.sort(statistic(part)) for part in chosen]
            cuts = np.unique(np.concatenate(values))
            if cuts.size > THRESHOLDS:
                cuts = np.unique(np.quantile(cuts, np.linspace(0.0, 1.0, THRESHOLDS)))
            found = [(part.size - np.searchsorted(part, cuts, side="left"), part.size) for part in values]
            for turned in (False, True):
                one, other = found[::-1] if turned else found
                shown = _lower(*one, *other, delta, CAUTION)  # what events would prove for themselves
                at = int(np.argmax(shown))
                if shown[at] > best.strength:
                    best = _Choice(name, statistic, float(cuts[at]), turned, float(shown[at]), tested)
    return best


def _statistics(fitted: list[Array]) -> Iterator[tuple[str, Score]]:
    """Names and statistics, each fitted to some runs of both datasets."""
    runs, width = fitted[0].shape[0] + fitted[1].shape[0], fitted[0].shape[1]
    if width <= MOST_VALUES:
        kinds = np.unique(np.concatenate(fitted), axis=0)
        if 8 * kinds.shape[0] <= runs:
            index = {row.tobytes(): i for i, row in enumerate(kinds)}
            others = len(index)
            yield "outputs", _ratio(fitted, lambda rows: np.array([index.get(row.tobytes(), others) for row in rows]))
    columns = [_column(fitted, j) for j in range(width)]
    yield "columns", lambda rows: sum((column(rows) for column in columns), np.zeros(rows.shape[0]))
    if width > 1:
        if width <= MOST_FEATURES:
            yield "linear", _linear(fitted, lambda rows: rows)
        values = np.unique(np.concatenate(fitted))[1:]
        if values.size < MOST_FEATURES:
            yield "counts", _linear(fitted, lambda rows: np.stack([(rows == v).sum(axis=1) for v in values], axis=1))


def _column(fitted: list[Array], j: int) -> Score:
    """Of a column alone: by its values, or by cells between some quantiles of them."""
    both = np.concatenate([part[:, j] for part in fitted])
    edges = np.unique(both)
    if edges.size > MOST_VALUES:
        edges = np.unique(np.quantile(both, np.linspace(0.0, 1.0, MOST_VALUES + 1))[1:-1])
    return _ratio(fitted, lambda rows: np.searchsorted(edges, rows[:, j], side="right"))


def _ratio(fitted: list[Array], places: Callable[[Array], Index]) -> Score:
    """Log ratio of how often rows fall into each of some places."""
    held = [places(part) for part in fitted]
    size = 2 + max(int(place.max()) for place in held)
    counts = [np.bincount(place, minlength=size) for place in held]
    logs = np.log((counts[0] + 0.5) / (counts[1] + 0.5) * (held[1].size / held[0].size))
    return lambda rows: logs[np.minimum(places(rows), size - 1)]


def _linear(fitted: list[Array], features: Callable[[Array], Array]) -> Score:
    """Fisher's discriminant, with a little of the identity added to the covariance of standardized features."""
    parts = [np.asarray(features(part), np.float64) for part in fitted]
    scale = np.concatenate(parts).std(axis=0)
    scale[scale == 0.0] = 1.0
    parts = [part / scale for part in parts]
    apart = parts[0].mean(axis=0) - parts[1].mean(axis=0)
    centred = np.concatenate([part - part.mean(axis=0) for part in parts])
    covariance = centred.T @ centred / centred.shape[0] + 1e-3 * np.eye(apart.size)
    weights = np.linalg.solve(covariance, apart) / scale
    return lambda rows: np.asarray(features(rows), np.float64) @ weights


def _tested(
    choice: _Choice, delta: float, confidence: float, proved: float | None, inputs: tuple[Any, Any] | None = None
) -> Audit:
    first, second = choice.tested[::-1] if choice.turned else choice.tested
    hits, others = (int(np.sum(choice.score(part) >= choice.threshold)) for part in (first, second))
    runs = (first.shape[0], second.shape[0])
    found = max(0.0, float(_lower(hits, runs[0], others, runs[1], delta, 1.0 - confidence)))
    return Audit(found, delta, confidence, proved, choice.statistic, choice.turned, (hits, others), runs, inputs)


def _lower(hits: ArrayLike, runs: int, other_hits: ArrayLike, other_runs: int, delta: float, fail: float) -> Array:
    """log((p - delta) / q), p from below and q from above, both right but for `fail`; -inf where p <= delta."""
    from scipy.special import betaincinv

    k, m = np.asarray(hits, np.float64), np.asarray(other_hits, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.where(k > 0, betaincinv(np.maximum(k, 0.5), runs - k + 1.0, 0.5 * fail), 0.0)
        high = np.where(m < other_runs, betaincinv(m + 1.0, np.maximum(other_runs - m, 0.5), 1.0 - 0.5 * fail), 1.0)
        over = low * (1.0 - MARGIN) - delta
        return np.asarray(np.where(over > 0.0, np.log(over / np.minimum(high * (1.0 + MARGIN), 1.0)), -np.inf))
