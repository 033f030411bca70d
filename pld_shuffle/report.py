"""What the command line prints: a report as JSON, or as lines for people.

A report is plain data, one JSON object (its keys are in docs/command_line.md), and the rounds it is about.
For people every bound is rounded to the safe side, upper ones up and lower ones down; JSON has the doubles
themselves, and infinity as the string "inf".
"""

from __future__ import annotations

import dataclasses
import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .accountant import Accountant
    from .audits import Audit
    from .calibration import Solution
    from .comparison import Comparison
    from .filter import PrivacyFilter
    from .mechanisms import Mechanism
    from .numerics.sides import Bounds
    from .trajectory import Trajectory

#: The form of the JSON, which ``data/report.schema.json`` describes.
SCHEMA = "pld_shuffle/report/1"
#: Rows of the table of a log without --every, at most.
TABLE_ROWS = 20
#: Characters in a line of wrapped text, at most.
LINE_WIDTH = 96
#: Significant digits of a bound for people.
DIGITS = 6

#: Numbers in a text that are no part of a name such as eps0.
_NUMBER = re.compile(r"(?<![\w.])[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?")

#: What the two ends of a bracket mean, for people, by where lower ends come from.
_MEANING = {
    "attack": "proved: at most upper; an attack spends lower, and no analysis can go below it",
    "pair": "of the pairs for these rounds: the exact value lies between lower and upper",
}
#: The two parts of a bracket whose lower end is an attack's, relative to its lower end.
_GAP_MEANING = "gap: what a better analysis or attack could still gain; numerical: what a smaller rtol could"


@dataclasses.dataclass
class Report:
    """What a command found out. values : ready for JSON but for infinities. rounds : what was accounted.

    exceeded : whether more was spent or measured than is allowed or proved.
    """

    command: str
    rounds: Sequence[tuple[Mechanism, int]]
    rtol: float
    values: dict[str, Any] = dataclasses.field(default_factory=dict)
    notes: list[str] = dataclasses.field(default_factory=list)
    interrupted: bool = False
    exceeded: bool = False

    def __post_init__(self) -> None:
        from .checkpoint import written
        from .mechanisms.base import attacked

        self.values = {
            "schema": SCHEMA,
            "written": written(),
            "command": self.command,
            "total_rounds": sum(count for _, count in self.rounds),
            "mechanisms": _pooled(self.rounds),
            "assumptions": assumptions_of(self.rounds),
            "lower_ends": "attack" if attacked(m for m, _ in self.rounds) else "pair",
            "rtol": self.rtol,
            "notes": self.notes,
        } | self.values

    def add_epsilons(
        self, accountant: Accountant, deltas: Sequence[float], known: Bounds[float] | None = None
    ) -> list[tuple[float, float]]:
        """Bounds on epsilon at each delta, and what these analyses cannot go below.

        known : bounds of another accountant of the same rounds, right within the same rtol, to be told instead.
        Returns the points (epsilon, delta) of the upper ends.
        """
        rows = []
        for delta, *ends in zip(deltas, *accountant.gap_bounds(list(deltas)), strict=True):
            lower, analysis, upper = map(float, ends)
            if known is not None:
                lower, upper = float(known.lower), float(known.upper)
            between = max(lower, min(upper, analysis))
            rows.append({"delta": delta, "lower": lower, "upper": upper, "analysis_lower": between})
        self.values["epsilon_bounds"] = rows
        return [(row["upper"], row["delta"]) for row in rows]

    def add_deltas(self, accountant: Accountant, epsilons: Sequence[float]) -> list[tuple[float, float]]:
        """Bounds on delta at each epsilon. Returns the points (epsilon, delta) of the upper ends."""
        found = accountant.delta_bounds(list(epsilons))
        self.values["delta_bounds"] = _rows("epsilon", epsilons, found.lower, found.upper)
        return list(zip(epsilons, found.upper.tolist(), strict=True))

    def add_trajectory(self, trajectory: Trajectory) -> None:
        """Epsilon spent after each of the rounds asked about."""
        rounds = trajectory.rounds.tolist()
        self.values["spent"] = _rows("round", rounds, trajectory.lower, trajectory.upper)

    def add_claim(self, accountant: Accountant) -> None:
        """What Poisson samples would have spent at each delta, which were not drawn."""
        deltas = [row["delta"] for row in self.values["epsilon_bounds"]]
        found = accountant.epsilon_bounds(deltas)
        self.values["poisson_claim"] = _rows("delta", deltas, found.lower, found.upper)

    def add_plan(self, found: Solution) -> None:
        """The answer of `solve`, and why it is the largest or smallest."""
        unmet = found.unmet_epsilon
        names = ("parameter", "value", "end", "epsilon", "delta", "unmet", "tight")
        self.values["plan"] = {name: getattr(found, name) for name in names} | {
            "unmet_epsilon": unmet and {"lower": float(unmet.lower), "upper": float(unmet.upper)}
        }
        if found.parameter == "n" and found.end == "largest":
            self.notes.append(
                "with a fixed population users take part more often in a larger cohort, so the largest n is"
                " sought; every smaller cohort is as private"
            )
        self.add_epsilons(found.accountant(), [found.delta], found.achieved)

    def add_comparison(self, accountant: Accountant, found: Comparison) -> None:
        """All bounds at one setting; the accountant has run it."""
        self.add_epsilons(accountant, [found.delta], found.tight)
        self.notes.extend(found.notes)
        self.values["methods"] = [dataclasses.asdict(method) for method in found.methods]
        self.values["not_applicable"] = [dataclasses.asdict(bound) for bound in found.excluded]

    def add_adaptive(self, run: PrivacyFilter, refused: int | None) -> None:
        """What a filter admitted. refused : the first row that did not fit, counted from 1."""
        for topic, sentence in run.assumptions().items():
            self.values["assumptions"][topic] = [*self.values["assumptions"].get(topic, ()), sentence]
        self.values["adaptive"] = {
            "epsilon": run.epsilon, "delta": run.delta, "admitted_rounds": run.rounds,
            "refused_row": refused, "remaining": run.remaining,
        }  # fmt: skip

    def add_audit(self, found: Audit) -> None:
        """What was measured, next to what is proved."""
        self.values["audit"] = dataclasses.asdict(found) | {
            "hits": list(found.hits), "runs": list(found.runs), "violated": found.violated,
        }  # fmt: skip

    def json(self) -> Any:
        """The report for JSON."""
        return _json_ready(self.values)

    def lines(self) -> Iterator[str]:
        """The report for people."""
        values = self.values
        total = values["total_rounds"]
        source = f" from {values['log']}" if "log" in values else ""
        yield f"{total:,} {'round' if total == 1 else 'rounds'}{source}"
        for count, text in with_ranges((repr(mechanism), n) for mechanism, n in self.rounds):
            yield f"  {count:,} x {text}"
        if "plan" in values:
            yield ""
            yield from _plan_lines(values["plan"])
        yield from ("", "Assumed")
        width = max((len(topic) for topic in values["assumptions"]), default=0)
        for topic, sentences in values["assumptions"].items():
            for position, sentence in enumerate(sentences):
                yield f"  {topic if position == 0 else '':{width}}  {sentence}"
        meaning = _MEANING[values["lower_ends"]]
        if "epsilon_bounds" in values:
            apart = values["lower_ends"] == "attack"
            yield from ("", f"Epsilon ({meaning})")
            yield from _table("delta", values["epsilon_bounds"], apart)
            if apart:
                yield f"  {_GAP_MEANING}"
        if "poisson_claim" in values:
            yield from ("", "Epsilon that Poisson sampling would have had (it was not run)")
            yield from _table("delta", values["poisson_claim"])
        if "delta_bounds" in values:
            yield from ("", f"Delta ({meaning})", *_table("epsilon", values["delta_bounds"]))
        if "spent" in values:
            yield from ("", f"Epsilon spent, at delta = {values['epsilon_bounds'][0]['delta']:g}")
            yield from _table("round", values["spent"])
        if "methods" in values:
            yield from _comparison_lines(values)
        if "adaptive" in values:
            yield from _adaptive_lines(values["adaptive"])
        if "audit" in values:
            yield from _audit_lines(values["audit"])
        by = values["written"]
        yield from ("", f"Took {values['seconds']:.1f} s. {by['package']} {by['version']}, {by['date']}")
        if values.get("log_sha256"):
            yield f"SHA-256 of the log: {values['log_sha256']}"


# --- the data --------------------------------------------------------------------------------


def _rows(title: str, given: Iterable[Any], lower: Any, upper: Any) -> list[dict[str, Any]]:
    return [
        {title: at, "lower": float(low), "upper": float(high)}
        for at, low, high in zip(given, lower, upper, strict=True)
    ]


def _pooled(rounds: Sequence[tuple[Mechanism, int]]) -> list[dict[str, Any]]:
    """What was run, in order, equal neighbours pooled; mechanisms as in a checkpoint."""
    from .checkpoint import mechanism_state

    pooled: list[dict[str, Any]] = []
    last = None
    for mechanism, count in rounds:
        if mechanism == last:
            pooled[-1]["count"] += count
        else:
            pooled.append({"mechanism": mechanism_state(mechanism), "count": count})
        last = mechanism
    return pooled


def assumptions_of(rounds: Sequence[tuple[Mechanism, int]]) -> dict[str, list[str]]:
    """What is assumed, by topic; sentences that differ in their numbers only are one."""
    found: dict[str, list[tuple[str, int]]] = {}
    for mechanism in dict.fromkeys(mechanism for mechanism, _ in rounds):
        for topic, sentence in mechanism.assumptions().items():
            found.setdefault(topic, []).append((sentence, 1))
    return {topic: [text for _, text in with_ranges(texts)] for topic, texts in found.items()}


def with_ranges(texts: Iterable[tuple[str, int]]) -> list[tuple[int, str]]:
    """Texts that differ in their numbers only as one, with ranges such as 4774..5200.

    Takes (text, count) pairs and returns (sum of the counts, text) pairs, in order of appearance.
    """
    alike: dict[str, list[tuple[str, int]]] = {}
    for text, count in texts:
        alike.setdefault(_NUMBER.sub("#", text), []).append((text, count))
    merged = []
    for group in alike.values():
        numbers = [_NUMBER.findall(text) for text, _ in group]
        ranges = []
        for column in zip(*numbers, strict=True):
            least, most = min(column, key=float), max(column, key=float)
            ranges.append(least if least == most else f"{least}..{most}")
        fill = iter(ranges)
        text = _NUMBER.sub(lambda _, fill=fill: next(fill), group[0][0])  # type: ignore[misc]
        merged.append((sum(count for _, count in group), text))
    return merged


def row_step(rows: int) -> int:
    """The smallest of 1, 2, 5, 10, 20, ... that leaves a table of at most TABLE_ROWS rows."""
    power = 1
    while True:
        for step in (power, 2 * power, 5 * power):
            if step * TABLE_ROWS >= rows:
                return step
        power *= 10


def deltas_around(delta: float) -> list[float]:
    """The delta asked for, and an order of magnitude to either side: one reading answers all three."""
    others = [float(f"{delta * factor:.12g}") for factor in (1e1, 1e-1)]
    return [delta, *(other for other in others if 1e-280 < other < 1.0)]


def _json_ready(value: Any) -> Any:
    """The same with infinities as strings and nan as null, since JSON has none."""
    if isinstance(value, dict):
        return {key: _json_ready(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_json_ready(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


# --- the lines -------------------------------------------------------------------------------


def _rounded(value: float, rounding: str) -> str:
    if not math.isfinite(value):
        return str(value)
    context = Context(prec=DIGITS, rounding=rounding)
    return format(float(context.create_decimal_from_float(value)), f".{DIGITS}g")


def upper_text(value: float) -> str:
    """An upper bound, rounded up."""
    return _rounded(value, ROUND_CEILING)


def lower_text(value: float) -> str:
    """A lower bound, rounded down."""
    return _rounded(value, ROUND_FLOOR)


def _aligned(rows: Sequence[Sequence[str]], right: int) -> Iterator[str]:
    """The rows with their first `right` columns flush right, the others flush left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = zip(row, widths, strict=True)
        shown = (c.rjust(w) if i < right else c.ljust(w) for i, (c, w) in enumerate(cells))
        yield ("  " + "   ".join(shown)).rstrip()


def _table(title: str, rows: Sequence[dict[str, Any]], apart: bool = False) -> Iterator[str]:
    """Lines of a table with a first column `title`, the bracket, and its two parts if `apart`."""
    cells = [[title, "lower", "upper", *(["gap", "numerical"] if apart else [])]]
    for row in rows:
        position, lower, upper = row[title], row["lower"], row["upper"]
        shown = f"{position:,}" if isinstance(position, int) else f"{position:.12g}"
        line = [shown, lower_text(lower), upper_text(upper)]
        if apart:
            middle = row["analysis_lower"]
            line += [_percent(middle - lower, lower), _percent(upper - middle, lower)]
        cells.append(line)
    return _aligned(cells, len(cells[0]))


def _percent(part: float, whole: float) -> str:
    """`part` of `whole`; nothing where that means nothing."""
    if not (0 < whole < math.inf and part < math.inf):
        return ""
    percent = 100 * part / whole
    if 0 < percent < 0.001:
        return "< 0.001 %"
    return f"{percent:.2g} %" if percent < 100 else f"{percent:.0f} %"


def _plan_lines(plan: dict[str, Any]) -> Iterator[str]:
    name, largest = plan["parameter"], plan["end"] == "largest"

    def shown(value: float, upwards: bool) -> str:
        if isinstance(value, int):
            return f"{value:,}"
        return upper_text(value) if upwards else lower_text(value)

    yield (
        f"The {plan['end']} {name} for epsilon = {plan['epsilon']:g} at delta = {plan['delta']:g}: "
        f"{shown(plan['value'], not largest)}"
    )
    if plan["unmet"] is None:
        yield "  (the end of its range)"
        return
    fails = "fails" if plan["tight"] else "is not proven to meet it"
    spent = plan["unmet_epsilon"]
    yield (
        f"  {name} = {shown(plan['unmet'], largest)} {fails}: "
        f"epsilon in [{lower_text(spent['lower'])}, {upper_text(spent['upper'])}]"
    )


def _adaptive_lines(found: dict[str, Any]) -> Iterator[str]:
    budget = f"epsilon = {found['epsilon']:g} at delta = {found['delta']:g}"
    yield ""
    if found["refused_row"] is None:
        yield f"The log fits: chosen as one went, it is within {budget}"
    else:
        yield f"The log does NOT fit into {budget}: its row {found['refused_row']:,} is too much"
    rounds = f"{found['admitted_rounds']:,} rounds"
    yield f"  {rounds} admitted; {lower_text(100.0 * found['remaining'])} % of the budget left"


def _audit_lines(found: dict[str, Any]) -> Iterator[str]:
    (hits, others), (runs, other_runs) = found["hits"], found["runs"]
    yield from ("", f"Epsilon at delta = {found['delta']:g}")
    confidence = f"with confidence {found['confidence']:.12g}"
    yield f"  measured: at least {lower_text(found['epsilon'])}, {confidence}"
    if found["proved"] is not None:
        yield f"  proved or claimed: at most {upper_text(found['proved'])}"
    likelier, other = ("second", "first") if found["turned"] else ("first", "second")
    yield (
        f"  best statistic: {found['statistic']}; an event in {hits:,} of {runs:,} tested runs of the"
        f" {likelier} dataset, and in {others:,} of {other_runs:,} of the {other} one"
    )
    if found["violated"]:
        yield "  MORE WAS MEASURED THAN IS PROVED: this is not what was proved, or no neighbouring datasets"


def _comparison_lines(values: dict[str, Any]) -> Iterator[str]:
    yield ""
    yield "Upper bounds on epsilon that are valid here (factor: over the tight upper bound)"
    rows = [("epsilon", "factor", "bound", "source")]
    for method in values["methods"]:
        factor = "" if math.isnan(method["factor"]) else f"{method['factor']:.3f}"
        bound = method["name"] + (f" ({method['note']})" if method["note"] else "")
        rows.append((upper_text(method["epsilon"]), factor, bound, method["source"]))
    yield from _aligned(rows, 2)
    reasons: dict[str, list[str]] = {}
    for excluded in values["not_applicable"]:
        label = f"{excluded['name']} [{excluded['source']}]"
        reasons.setdefault(excluded["reason"], []).append(label)
    if reasons:
        yield from ("", "Not valid here, and why")
    for reason, names in reasons.items():
        yield from _wrapped("; ".join(names) + ":", "  ")
        yield from _wrapped(reason, "      ")


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, LINE_WIDTH, initial_indent=indent, subsequent_indent=indent)
