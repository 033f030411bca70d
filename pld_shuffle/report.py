"""What the command line prints: a report as JSON, or as lines for people.

A report is plain data, one JSON object (its keys are in docs/command_line.md), and what people read of it: whatever is
added is put into both. For people every bound is rounded to the safe side, upper ones up and lower ones down; JSON has
the doubles themselves, and infinity as the string "inf".

*An entry for a registry* of deployments (`registry_entry`; Dwork, Kohli, Mulligan 2019; Nanayakkara, Ghazi, Vadhan,
arXiv 2509.13509) has the keys and words of that paper's public registry, opendp/deployments-registry-data as of July
2026. What only the curator can know is None, as in ``data/registry_entry.json``.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pld_shuffle

from . import __version__
from .numerics.sides import lower_text, upper_text

if TYPE_CHECKING:
    from .calibration import Solution
    from .comparison import Comparison
    from .trajectory import Trajectory

SCHEMA = "pld_shuffle/report/1"  # the form of the JSON, which ``data/report.schema.json`` describes
TABLE_ROWS = 20  # of a log without --every, at most
LINE_WIDTH = 96  # of wrapped text, in characters

#: Numbers in a text that are no part of a name such as eps0.
_NUMBER = re.compile(r"(?<![\w.])[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?")

#: What the two ends of a bracket mean, for people, by where lower ends come from.
_MEANING = {
    "attack": "proved: at most upper; an attack spends lower, and no analysis can go below it",
    "pair": "of the pairs for these rounds: the exact value lies between lower and upper",
}
#: The two parts of a bracket whose lower end is an attack's, relative to its lower end.
_GAP_MEANING = "  gap: what a better analysis or attack could still gain; numerical: what a smaller rtol could"

Points = list[tuple[float, float]]


@dataclasses.dataclass
class Report:
    """What a command found out about `rounds`. values : ready for JSON but for infinities. answers : lines for people.

    exceeded : whether more was spent or measured than is allowed or proved.
    """

    command: str
    rounds: Sequence[tuple[pld_shuffle.Mechanism, int]]
    rtol: float
    values: dict[str, Any] = dataclasses.field(default_factory=dict)
    notes: list[str] = dataclasses.field(default_factory=list)
    answers: list[str] = dataclasses.field(default_factory=list)
    exceeded: bool = False

    def __post_init__(self) -> None:
        from .checkpoint import written
        from .mechanisms.base import attacked

        self.values = {
            "schema": SCHEMA,
            "written": written(),
            "command": self.command,
            "total_rounds": sum(count for _, count in self.rounds),
            "assumptions": assumptions_of(self.rounds),
            "lower_ends": "attack" if attacked(m for m, _ in self.rounds) else "pair",
            "rtol": self.rtol,
            "notes": self.notes,
        } | self.values

    def _add_bounds(
        self, key: str, heading: str, title: str, given: Iterable[Any], lower: Any, upper: Any, analysis: Any = None
    ) -> list[dict[str, Any]]:
        """A bracket for each value `given` of `title`, and the lower ends of the analyses, if they are apart."""
        rows: list[dict[str, Any]] = [
            {title: at, "lower": float(low), "upper": float(high)}
            for at, low, high in zip(given, lower, upper, strict=True)
        ]
        apart = analysis is not None and self.values["lower_ends"] == "attack"
        cells = [[title, "lower", "upper", *(["gap", "numerical"] if apart else [])]]
        for i, row in enumerate(rows):
            at, low, high = row.values()
            cells.append([f"{at:,}" if isinstance(at, int) else f"{at:.12g}", lower_text(low), upper_text(high)])
            if analysis is not None:
                row["analysis_lower"] = middle = max(low, min(high, float(analysis[i])))
                cells[-1] += [_percent(middle - low, low), _percent(high - middle, low)] if apart else []
        self.values[key] = rows
        self.answers += ["", heading, *_aligned(cells, len(cells[0])), *([_GAP_MEANING] if apart else [])]
        return rows

    def add_epsilons(self, accountant: pld_shuffle.Accountant, deltas: Sequence[float]) -> Points:
        """Bounds on epsilon at each delta, and what these analyses cannot go below.

        Returns the points (epsilon, delta) of the upper ends.
        """
        heading = f"Epsilon ({_MEANING[self.values['lower_ends']]})"
        attack, analysis, proved = accountant.gap_bounds(list(deltas))
        rows = self._add_bounds("epsilon_bounds", heading, "delta", deltas, attack, proved, analysis)
        return [(row["upper"], row["delta"]) for row in rows]

    def add_deltas(self, accountant: pld_shuffle.Accountant, epsilons: Sequence[float]) -> Points:
        """Bounds on delta at each epsilon. Returns the points (epsilon, delta) of the upper ends."""
        heading = f"Delta ({_MEANING[self.values['lower_ends']]})"
        found = accountant.delta_bounds(list(epsilons))
        rows = self._add_bounds("delta_bounds", heading, "epsilon", epsilons, *found)
        return [(row["epsilon"], row["upper"]) for row in rows]

    def add_risk(self, risk: pld_shuffle.AttackRisk, rates: Sequence[float]) -> None:
        """What attacks reach: true positives at each rate of false ones, and how far the two are apart at most."""
        heading = "True positives of the best attack, at a rate of false ones"
        self._add_bounds("true_positives", heading, "fpr", rates, *risk.true_positive_rate(list(rates)))
        low, high = risk.advantage()
        self.values["advantage"] = {"lower": low, "upper": high}
        self.answers.append(f"  advantage, the largest of their differences: {lower_text(low)} to {upper_text(high)}")

    def add_trajectory(self, trajectory: Trajectory, delta: float) -> None:
        """Epsilon spent after each of the rounds asked about."""
        heading, rounds = f"Epsilon spent, at delta = {delta:g}", trajectory.rounds.tolist()
        self._add_bounds("spent", heading, "round", rounds, trajectory.lower, trajectory.upper)

    def add_claim(self, accountant: pld_shuffle.Accountant, deltas: Sequence[float]) -> None:
        """What Poisson samples would have spent at each delta, which were not drawn."""
        heading = "Epsilon that Poisson sampling would have had (it was not run)"
        self._add_bounds("poisson_claim", heading, "delta", deltas, *accountant.epsilon_bounds(list(deltas)))

    def add_plan(self, found: Solution) -> None:
        """The answer of `solve`, and why it is the largest or smallest."""
        unmet = found.unmet_epsilon
        names = ("parameter", "value", "end", "epsilon", "delta", "unmet", "tight")
        self.values["plan"] = {name: getattr(found, name) for name in names} | {
            "unmet_epsilon": unmet and {"lower": float(unmet.lower), "upper": float(unmet.upper)}
        }
        name, largest = found.parameter, found.end == "largest"
        if name == "n" and largest:
            self.notes.append(
                "with a fixed population users take part more often in a larger cohort, so the largest n is"
                " sought; every smaller cohort is as private"
            )

        def shown(value: float, upwards: bool) -> str:
            if isinstance(value, int):
                return f"{value:,}"
            return upper_text(value) if upwards else lower_text(value)

        target = f"epsilon = {found.epsilon:g} at delta = {found.delta:g}"
        self.answers += ["", f"The {found.end} {name} for {target}: {shown(found.value, not largest)}"]
        if unmet is None or found.unmet is None:
            self.answers.append("  (the end of its range)")
        else:
            fails = "fails" if found.tight else "is not proven to meet it"
            bracket = f"[{lower_text(unmet.lower)}, {upper_text(unmet.upper)}]"
            self.answers.append(f"  {name} = {shown(found.unmet, largest)} {fails}: epsilon in {bracket}")
        self.add_epsilons(found.run, [found.delta])

    def add_comparison(self, accountant: pld_shuffle.Accountant, found: Comparison) -> None:
        """All bounds at one setting; the accountant has run it."""
        self.add_epsilons(accountant, [found.delta])
        self.values["methods"] = [dataclasses.asdict(method) for method in found.methods]
        self.values["not_applicable"] = [dataclasses.asdict(bound) for bound in found.excluded]
        rows = [("epsilon", "factor", "bound", "source")]
        for method in found.methods:
            factor = "" if math.isnan(method.factor) else f"{method.factor:.3f}"
            bound = method.name + (f" ({method.note})" if method.note else "")
            rows.append((upper_text(method.epsilon), factor, bound, method.source))
        title = "Upper bounds on epsilon that are valid here (factor: over the tight upper bound)"
        self.answers += ["", title, *_aligned(rows, 2)]
        reasons: dict[str, list[str]] = {}
        for excluded in found.excluded:
            reasons.setdefault(excluded.reason, []).append(f"{excluded.name} [{excluded.source}]")
        if reasons:
            self.answers += ["", "Not valid here, and why"]
        for reason, names in reasons.items():
            for text, indent in (("; ".join(names) + ":", "  "), (reason, "      ")):
                self.answers += textwrap.wrap(text, LINE_WIDTH, initial_indent=indent, subsequent_indent=indent)

    def add_adaptive(self, run: pld_shuffle.PrivacyFilter | pld_shuffle.PrivacyOdometer, refused: int | None) -> None:
        """What a filter admitted, or an odometer shows. refused : the first row that did not fit, counted from 1."""
        for topic, sentence in run.assumptions().items():
            self.values["assumptions"].setdefault(topic, []).append(sentence)
        if isinstance(run, pld_shuffle.PrivacyOdometer):
            spent = run.get_epsilon()
            self.values["odometer"] = {"epsilon": spent, "delta": run.delta, "rounds": run.rounds}
            text = f"epsilon at most {upper_text(spent)} at delta = {run.delta:g}"
            self.answers += ["", f"Whenever one stops, whatever was seen: {text}"]
            return
        self.values["adaptive"] = {
            "epsilon": run.epsilon, "delta": run.delta, "admitted_rounds": run.rounds,
            "refused_row": refused, "remaining": run.remaining,
        }  # fmt: skip
        budget = f"epsilon = {run.epsilon:g} at delta = {run.delta:g}"
        fits = f"The log fits: chosen as one went, it is within {budget}"
        if refused is not None:
            fits = f"The log does NOT fit into {budget}: its row {refused:,} is too much"
        left = f"{lower_text(100.0 * run.remaining)} % of the budget left"
        self.answers += ["", fits, f"  {run.rounds:,} rounds admitted; {left}"]

    def add_audit(self, found: pld_shuffle.Audit) -> None:
        """What was measured, next to what is proved."""
        self.values["audit"] = dataclasses.asdict(found) | {
            "hits": list(found.hits), "runs": list(found.runs), "violated": found.violated,
        }  # fmt: skip
        (hits, others), (runs, other_runs) = found.hits, found.runs
        confidence = f"with confidence {found.confidence:.12g}"
        self.answers += ["", f"Epsilon at delta = {found.delta:g}"]
        self.answers.append(f"  measured: at least {lower_text(found.epsilon)}, {confidence}")
        if found.proved is not None:
            self.answers.append(f"  proved or claimed: at most {upper_text(found.proved)}")
        likelier, other = ("second", "first") if found.turned else ("first", "second")
        event = f"an event in {hits:,} of {runs:,} tested runs of the {likelier} dataset"
        self.answers.append(
            f"  best statistic: {found.statistic}; {event}, and in {others:,} of {other_runs:,} of the {other} one"
        )
        if found.violated:
            wrong = "this is not what was proved, or no neighbouring datasets"
            self.answers.append(f"  MORE WAS MEASURED THAN IS PROVED: {wrong}")

    def json(self) -> Any:
        """The report for JSON."""
        from .checkpoint import rounds_state

        pooled = ((mechanism, sum(n for _, n in held)) for mechanism, held in groupby(self.rounds, lambda row: row[0]))
        return _json_ready(self.values | {"mechanisms": rounds_state(pooled)})

    def lines(self) -> Iterator[str]:
        """The report for people."""
        values = self.values
        total = values["total_rounds"]
        source = f" from {values['log']}" if "log" in values else ""
        yield f"{total:,} {'round' if total == 1 else 'rounds'}{source}" if total else "A claim"
        for count, text in with_ranges((repr(mechanism), n) for mechanism, n in self.rounds):
            yield f"  {count:,} x {text}"
        yield from ("", "Assumed") if total else ()
        width = max(map(len, values["assumptions"]), default=0)
        for topic, sentences in values["assumptions"].items():
            for position, sentence in enumerate(sentences):
                yield f"  {topic if position == 0 else '':{width}}  {sentence}"
        yield from self.answers
        by = values["written"]
        yield from ("", f"Took {values['seconds']:.1f} s. {by['package']} {by['version']}, {by['date']}")
        if values.get("log_sha256"):
            yield f"SHA-256 of the log: {values['log_sha256']}"


def assumptions_of(rounds: Sequence[tuple[pld_shuffle.Mechanism, int]]) -> dict[str, list[str]]:
    """What is assumed, by topic; sentences that differ in their numbers only are one."""
    from .mechanisms.base import assumed

    found = assumed(mechanism for mechanism, _ in rounds).items()
    return {topic: [text for _, text in with_ranges((text, 1) for text in texts)] for topic, texts in found}


def with_ranges(texts: Iterable[tuple[str, int]]) -> list[tuple[int, str]]:
    """Texts that differ in their numbers only as one, with ranges such as 4774..5200.

    Takes (text, count) pairs and returns (sum of the counts, text) pairs, in order of appearance.
    """
    alike: dict[str, list[tuple[str, int]]] = {}
    for text, count in texts:
        alike.setdefault(_NUMBER.sub("{}", text.replace("{", "{{").replace("}", "}}")), []).append((text, count))
    merged = []
    for form, group in alike.items():
        ranges = []
        for column in zip(*(_NUMBER.findall(text) for text, _ in group), strict=True):
            least, most = min(column, key=float), max(column, key=float)
            ranges.append(least if least == most else f"{least}..{most}")
        merged.append((sum(count for _, count in group), form.format(*ranges)))
    return merged


def row_step(rows: int) -> int:
    """The smallest of 1, 2, 5, 10, 20, ... that leaves a table of at most TABLE_ROWS rows."""
    power = 1
    while 10 * power * TABLE_ROWS < rows:
        power *= 10
    return next(step * power for step in (1, 2, 5, 10) if step * power * TABLE_ROWS >= rows)


def deltas_around(delta: float) -> list[float]:
    """The delta asked for, and an order of magnitude to either side: one reading answers all three."""
    others = [float(f"{delta * factor:.12g}") for factor in (1e1, 1e-1)]
    return [delta, *(other for other in others if 1e-280 < other < 1.0 and delta < 1.0)]


def _json_ready(value: Any) -> Any:
    """The same with infinities as strings and nan as null, since JSON has none."""
    if isinstance(value, dict):
        return {key: _json_ready(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_json_ready(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def _aligned(rows: Sequence[Sequence[str]], right: int) -> Iterator[str]:
    """The rows with their first `right` columns flush right, the others flush left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = zip(row, widths, strict=True)
        shown = (c.rjust(w) if i < right else c.ljust(w) for i, (c, w) in enumerate(cells))
        yield ("  " + "   ".join(shown)).rstrip()


def _percent(part: float, whole: float) -> str:
    """`part` of `whole`; nothing where that means nothing."""
    if not (0 < whole < math.inf and part < math.inf):
        return ""
    percent = 100 * part / whole
    if 0 < percent < 0.001:
        return "< 0.001 %"
    return f"{percent:.2g} %" if percent < 100 else f"{percent:.0f} %"


BLANK = Path(__file__).parent / "data" / "registry_entry.json"
RELATIONS = {
    "replace-one": "neighbouring datasets differ in the data of one user, which are replaced",
    "zero-out": "one user's contributions are replaced by nothing",
}
TRUST = {
    "Shuffle": "users randomize their reports themselves; the shuffler is trusted not to tell who sent which",
    "Central": "the curator sees the raw data, and is trusted to add the noise",
}


def registry_entry(accountant: pld_shuffle.Accountant, delta: float) -> dict[str, Any]:
    """The entry for everything in the accountant's ledger, at `delta`; plain data, ready for JSON or YAML.

    Raises ValueError for an empty ledger and where no epsilon is finite, else as `Accountant.get_epsilon`.

    >>> from pld_shuffle import Accountant, ShuffledLDP
    >>> acc = Accountant().compose(ShuffledLDP(eps0=4.0, n=10_000), 10)
    >>> entry = registry_entry(acc, 1e-6)["deployment"]
    >>> entry["dp_variant"]["variant_name"], entry["deployment_model"]["model_name"]
    ('Approximate DP', 'Shuffle')
    """
    rounds, epsilon = accountant.ledger, accountant.get_epsilon(delta)
    if not (rounds and epsilon < math.inf):
        raise ValueError(f"an entry needs a ledger with rounds and a finite epsilon, got {epsilon!r} of {accountant!r}")
    models = [name for name in TRUST if any((name == "Central") == (held.users is None) for held, _ in rounds)]
    assumed, total, relation = assumptions_of(rounds), accountant.rounds, rounds[0][0].relation
    known = {
        "dp_variant": {"variant_name": "Approximate DP" if delta > 0.0 else "Pure DP"},
        "privacy_loss": {
            "privacy_unit_details": f"One user, over all rounds: {RELATIONS.get(relation, relation)}.",
            "privacy_parameters": {"epsilon": epsilon, "delta": float(delta)},
            "privacy_parameters_details": "epsilon is a certified upper bound at delta; what it rests on: "
            + _sentences(assumed),
        },
        "deployment_model": {
            "model_name": models[0] if len(models) == 1 else "Varies",
            "model_name_details": "; ".join(f"{name}: {TRUST[name]}" for name in models) + ".",
            "actors": _sentences({"adversary": assumed["adversary"]}),
            "release_type": "One release" if total == 1 else "Many releases",
            "release_type_details": f"{total} rounds, accounted together",
        },
        "accounting": {
            "composition": f"Adaptive composition of {total} rounds whose parameters are fixed independently of the"
            f" data: products of dominating pairs, certified upper bound (pld_shuffle {__version__}).",
        },
        "implementation": {"mechanisms": "\n".join(f"- {count:,} x {mechanism!r}" for mechanism, count in rounds)},
    }
    entry: dict[str, Any] = json.loads(BLANK.read_text(encoding="utf-8"))
    for section, values in known.items():
        entry["deployment"][section] |= values
    return entry


def _sentences(assumed: dict[str, list[str]]) -> str:
    return "; ".join(f"{topic}: {text}" for topic, texts in assumed.items() for text in texts) + "."
