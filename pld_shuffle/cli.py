"""The command ``pld-shuffle``: account a training log, ask for one epsilon or delta, compare
with the bounds of the literature, or plan: find the parameter that just meets a target.

Guarantee: every number is printed rounded to the safe side (upper bounds up, lower bounds down);
``--json`` prints the doubles themselves.

Exit status: 0 for an answer; 2 for bad input, and for a plan that cannot meet its target, with one
line on standard error and nothing on standard output; 1 where the computation itself gave up (also one
line); 130 and 141 if the person or the reader of the output went away.

JSON (one object): finite numbers as they are, infinity as the string ``"inf"``; there is no nan.
Common keys are ``command``, ``assumptions`` (lists of sentences), ``mechanisms`` (what was
accounted, in order, equal neighbours pooled: ``mechanism``, ``count``), ``total_rounds``, ``rtol``,
``epsilon_bounds`` (each ``delta``, ``lower``, ``upper``), ``delta_bounds`` (each ``epsilon``,
``lower``, ``upper``), ``notes``, ``warnings`` and ``seconds``; ``account`` adds ``log`` and
``spent`` (each ``round``, ``lower``, ``upper``: epsilon after that round); ``compare`` adds
``methods`` (each ``name``, ``source``, ``kind``, ``epsilon``, ``factor`` over the upper bound of
``epsilon_bounds`` or null, ``note``), the smallest first, and ``not_applicable`` (each ``name``,
``source``, ``reason``); ``plan`` adds ``plan``: ``parameter``, ``value``, ``end`` (``largest`` or
``smallest``), the target ``epsilon`` and ``delta``, ``unmet`` (the nearest value not proven to meet it, or
null), ``unmet_epsilon`` (``lower``, ``upper``, or null) and ``tight`` (whether ``unmet`` provably fails).

Nothing heavy (numpy, numba, matplotlib) is imported before the arguments are known to be sound.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import re
import sys
import textwrap
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from pld_shuffle.accountant import Accountant
    from pld_shuffle.mechanisms import Mechanism
    from pld_shuffle.trainlog import TrainingLog

__all__ = ["main"]

_BAD_INPUT = 2
_GAVE_UP = 1
_INTERRUPTED = 130
_READER_LEFT = 141

#: Logs of this many rows and more get a progress bar, if standard error is a terminal.
_LONG_LOG = 100
#: Rows of the table of a log without --every, at most.
_TABLE_ROWS = 20
#: Points of a privacy curve in a picture.
_CURVE_POINTS = 60
#: Characters in a line of a picture's title, at most.
_TITLE_WIDTH = 80
#: Characters in a line of wrapped text.
_LINE_WIDTH = 96
#: Significant digits of a bound in the human-readable output.
_DIGITS = 6

#: Numbers in a text that are no part of a name such as eps0.
_NUMBER = re.compile(r"(?<![\w.])[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?")

_MECHANISM_FLAGS = {
    "mechanism": (
        "ldp|randomizer|rr",
        "any eps0-LDP randomizer (default), one of known total variation, or k-ary randomized response",
    ),
    "n": ("USERS", "users whose reports are shuffled together in a round (required)"),
    "eps0": ("EPS", "local budget"),
    "k": ("SIZE", "rr: alphabet size"),
    "gamma": ("PROB", "rr, instead of --eps0: probability of a uniformly random answer"),
    "tv": ("BETA", "randomizer: largest total variation of two output laws"),
    "p": ("RATIO", "randomizer, with --q instead of --eps0: largest ratio within a pair of laws"),
    "q": ("RATIO", "randomizer: largest ratio of a pair's larger law to any other user's law"),
    "adversary": ("WHO", "rr: strong (default), weak or strong-conditional"),
    "analysis": ("WHICH", "ldp: stronger-clones (default) or clones"),
    "population": ("USERS", "the cohort is a uniformly random subset of this many users"),
    "rate": ("SHARE", "instead of --population: the cohort's share of all users"),
}


class _BadInput(Exception):
    """Something the person gave is wrong; the text is the line they see."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _BadInput(message)


def _parser() -> _Parser:
    parser = _Parser(
        prog="pld-shuffle",
        description="Exact privacy accounting in the shuffle model, certified from both sides.",
        epilog="Each command explains itself: pld-shuffle account --help",
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    account = _add_command(
        commands,
        "account",
        "account a training log: epsilon in all, and spent after each round",
        _account,
    )
    account.add_argument(
        "log",
        metavar="LOG.csv",
        nargs="?",
        help="one row per round; columns mechanism, n, eps0, k, gamma, tv, p, q, adversary, analysis, "
        "population or rate, count; - reads standard input",
    )
    account.add_argument(
        "--sample", action="store_true", help="account the made-up log that ships with the package"
    )
    account.add_argument("--delta", metavar="DELTA", required=True, help="e.g. 1e-6")
    account.add_argument(
        "--epsilon", metavar="EPS", nargs="+", help="also give delta here (default: a few)"
    )
    account.add_argument(
        "--every",
        metavar="K",
        help=f"epsilon after every K-th row (default: so that there are at most {_TABLE_ROWS})",
    )
    _add_output_flags(account, "epsilon after each round")

    epsilon = _add_command(commands, "epsilon", "epsilon of equal rounds at a delta", _epsilon)
    _add_mechanism_flags(epsilon)
    epsilon.add_argument("--delta", metavar="DELTA", nargs="+", required=True, help="e.g. 1e-6")
    _add_output_flags(epsilon, "delta against epsilon")

    delta = _add_command(commands, "delta", "delta of equal rounds at an epsilon", _delta)
    _add_mechanism_flags(delta)
    delta.add_argument("--epsilon", metavar="EPS", nargs="+", required=True, help="e.g. 1")
    _add_output_flags(delta, "delta against epsilon")

    compare = _add_command(
        commands,
        "compare",
        "all published bounds on epsilon that are valid for equal rounds",
        _compare,
    )
    _add_mechanism_flags(compare)
    compare.add_argument("--delta", metavar="DELTA", required=True, help="e.g. 1e-6")
    _add_output_flags(compare, "the bounds as bars")

    plan = _add_command(
        commands, "plan", "the parameter that just meets an epsilon at a delta, safe side", _plan
    )
    plan.add_argument(
        "--solve",
        metavar="WHAT",
        required=True,
        help="largest eps0, rounds or rate; smallest n, gamma or population; "
        "with --population, largest n",
    )
    _add_mechanism_flags(plan)
    plan.set_defaults(rounds=None)
    plan.add_argument("--epsilon", metavar="EPS", required=True, help="the target, e.g. 2")
    plan.add_argument("--delta", metavar="DELTA", required=True, help="e.g. 1e-6")
    _add_output_flags(plan, "delta against epsilon")
    return parser


def _add_command(
    commands: Any, name: str, summary: str, run: Callable[[argparse.Namespace], _Report]
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=summary, description=summary[0].upper() + summary[1:] + ".", allow_abbrev=False
    )
    parser.set_defaults(run=run)
    return parser


def _add_mechanism_flags(parser: argparse.ArgumentParser) -> None:
    for flag, (metavar, text) in _MECHANISM_FLAGS.items():
        parser.add_argument(f"--{flag}", metavar=metavar, help=text)
    parser.add_argument("--rounds", metavar="COUNT", default="1", help="equal rounds (default 1)")


def _add_output_flags(parser: argparse.ArgumentParser, picture: str) -> None:
    parser.add_argument(
        "--rtol",
        metavar="RTOL",
        default="1e-3",
        help="relative width asked of the bracket (default 1e-3)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--plot", metavar="FILE", help=f"draw {picture} (.png, .pdf, .svg)")


# --- what the person gave -------------------------------------------------------------------


@contextlib.contextmanager
def _blaming(flag: str | None) -> Iterator[None]:
    """Turn a complaint about a value into the one line that names its flag."""
    from pld_shuffle.trainlog import FieldError

    try:
        yield
    except FieldError as error:
        raise _BadInput(f"argument --{error.field}: {error.reason}") from error
    except (TypeError, ValueError) as error:
        raise _BadInput(str(error) if flag is None else f"argument --{flag}: {error}") from error


def _numbers(flag: str, texts: Sequence[str], allowed: Callable[[float], bool], what: str) -> Any:
    from pld_shuffle.trainlog import number_from_text

    values = []
    for text in texts:
        with _blaming(flag):
            value = number_from_text(flag, text)
        if not allowed(value):
            raise _BadInput(f"argument --{flag}: must be {what}, got {value!r}")
        values.append(value)
    return values


def _deltas(texts: Sequence[str]) -> list[float]:
    values: list[float] = _numbers("delta", texts, lambda x: 0 <= x <= 1, "in [0, 1]")
    return values


def _epsilons(texts: Sequence[str]) -> list[float]:
    values: list[float] = _numbers("epsilon", texts, lambda x: x >= 0, "at least 0")
    return values


def _positive_integer(flag: str, text: str) -> int:
    from pld_shuffle.trainlog import integer_from_text

    with _blaming(flag):
        value = integer_from_text(flag, text)
    if not value >= 1:
        raise _BadInput(f"argument --{flag}: must be at least 1, got {value}")
    return value


def _new_accountant(arguments: argparse.Namespace) -> Accountant:
    from pld_shuffle.accountant import Accountant
    from pld_shuffle.trainlog import number_from_text

    with _blaming("rtol"):
        return Accountant(rtol=number_from_text("rtol", arguments.rtol))


def _check_plot_path(path: str | None) -> None:
    """Find out before the computation, not after it, that a picture cannot be written."""
    if path is None:
        return
    from pld_shuffle.plots import check_picture_path

    with _blaming("plot"):
        check_picture_path(path)


def _read_log(arguments: argparse.Namespace) -> TrainingLog:
    from pld_shuffle.trainlog import LogError, read_training_log, sample_training_log

    if arguments.sample == (arguments.log is not None):
        raise _BadInput("give a log, or - for standard input, or --sample")
    try:
        return sample_training_log() if arguments.sample else read_training_log(arguments.log)
    except LogError as error:
        raise _BadInput(str(error)) from error
    except OSError as error:
        raise _BadInput(f"cannot read {arguments.log!r}: {error.strerror or error}") from error


# --- the commands ---------------------------------------------------------------------------

#: What a command found out, ready for JSON but for infinities.
_Report = dict[str, Any]


def _account(arguments: argparse.Namespace) -> _Report:
    (delta,) = _deltas([arguments.delta])
    epsilons = None if arguments.epsilon is None else _epsilons(arguments.epsilon)
    every = None if arguments.every is None else _positive_integer("every", arguments.every)
    accountant = _new_accountant(arguments)
    _check_plot_path(arguments.plot)
    log = _read_log(arguments)
    every = _row_step(len(log.rounds)) if every is None else every

    from pld_shuffle.trajectory import epsilon_trajectory

    for mechanism, count in log.rounds:
        accountant.compose(mechanism, count)
    with _progress_bar(len(log.rounds)) as progress:
        trajectory = epsilon_trajectory(
            log.rounds, delta, every=every, rtol=float(arguments.rtol), progress=progress
        )
    report = _common_report("account", log.rounds, arguments)
    report["log"] = log.name
    report["notes"] = list(log.notes)
    report["epsilon_bounds"] = _epsilon_rows(accountant, [delta])
    if epsilons is None:
        epsilons = _telling_epsilons(report["epsilon_bounds"][0]["upper"])
    report["delta_bounds"] = _delta_rows(accountant, epsilons)
    report["spent"] = [
        {"round": int(round_number), "lower": float(lower), "upper": float(upper)}
        for round_number, lower, upper in zip(
            trajectory.rounds, trajectory.lower, trajectory.upper, strict=True
        )
    ]
    if arguments.plot is not None:
        from pld_shuffle.plots import epsilon_over_rounds

        with _picture(arguments.plot) as ax:
            epsilon_over_rounds(trajectory, ax)
            ax.set_title(f"{log.name}, δ = {delta:g}")
    return report


def _epsilon(arguments: argparse.Namespace) -> _Report:
    deltas = _deltas(arguments.delta)
    rounds, accountant = _equal_rounds(arguments)
    report = _common_report("epsilon", rounds, arguments)
    report["epsilon_bounds"] = _epsilon_rows(accountant, deltas)
    if arguments.plot is not None:
        finite = [r["upper"] for r in report["epsilon_bounds"] if math.isfinite(r["upper"])]
        _draw_privacy_curve(arguments, accountant, 1.5 * max(finite, default=0.0))
    return report


def _delta(arguments: argparse.Namespace) -> _Report:
    epsilons = _epsilons(arguments.epsilon)
    rounds, accountant = _equal_rounds(arguments)
    report = _common_report("delta", rounds, arguments)
    report["delta_bounds"] = _delta_rows(accountant, epsilons)
    if arguments.plot is not None:
        _draw_privacy_curve(arguments, accountant, 1.5 * max(epsilons))
    return report


def _compare(arguments: argparse.Namespace) -> _Report:
    (delta,) = _numbers("delta", [arguments.delta], lambda x: 0 < x < 1, "in (0, 1)")
    rounds, accountant = _equal_rounds(arguments)

    from pld_shuffle.comparison import as_report, compare

    ((mechanism, count),) = rounds
    with _blaming(None):
        comparison = compare(mechanism, delta=delta, rounds=count, rtol=accountant.rtol)
    report = _common_report("compare", rounds, arguments)
    tight = comparison.tight
    report["epsilon_bounds"] = [
        {"delta": delta, "lower": float(tight.lower), "upper": float(tight.upper)}
    ]
    report.update(as_report(comparison))
    if arguments.plot is not None:
        from pld_shuffle.plots import methods_compared

        height = 1.4 + 0.3 * len(comparison.methods)
        with _picture(arguments.plot, (8.0, height)) as ax:
            methods_compared(comparison, ax)
            title = textwrap.fill(f"{count:,} x {mechanism!r}", _TITLE_WIDTH)
            ax.set_title(title, fontsize="small")
    return report


def _plan(arguments: argparse.Namespace) -> _Report:
    (delta,) = _deltas([arguments.delta])
    (epsilon,) = _epsilons([arguments.epsilon])
    rtol = _new_accountant(arguments).rtol
    _check_plot_path(arguments.plot)

    from pld_shuffle.calibration import KINDS, solve

    if arguments.solve not in KINDS:
        raise _BadInput(
            f"argument --solve: must be one of {', '.join(KINDS)}, got {arguments.solve!r}"
        )
    given = {flag: getattr(arguments, flag) for flag in (*_MECHANISM_FLAGS, "rounds")}
    fields = {flag: text for flag, text in given.items() if text is not None}
    with _blaming(None):
        found = solve(arguments.solve, fields, epsilon=epsilon, delta=delta, rtol=rtol)
    report = _common_report("plan", found.ledger, arguments)
    unmet = found.unmet_epsilon
    report["plan"] = {
        "parameter": found.parameter,
        "value": found.value,
        "end": found.end,
        "epsilon": epsilon,
        "delta": delta,
        "unmet": found.unmet,
        "unmet_epsilon": None
        if unmet is None
        else {"lower": float(unmet.lower), "upper": float(unmet.upper)},
        "tight": found.tight,
    }
    if found.parameter == "n" and found.end == "largest":
        report["notes"].append(
            "with a fixed population users take part more often in a larger cohort, so the largest n is"
            " sought; every smaller cohort is as private"
        )
    report["epsilon_bounds"] = [
        {"delta": delta, "lower": float(found.achieved.lower), "upper": float(found.achieved.upper)}
    ]
    if arguments.plot is not None:
        _draw_privacy_curve(arguments, found.accountant(), 1.5 * epsilon)
    return report


def _equal_rounds(
    arguments: argparse.Namespace,
) -> tuple[list[tuple[Mechanism, int]], Accountant]:
    from pld_shuffle.trainlog import mechanism_from_fields

    count = _positive_integer("rounds", arguments.rounds)
    accountant = _new_accountant(arguments)
    given = {flag: getattr(arguments, flag) for flag in _MECHANISM_FLAGS}
    fields = {flag: text for flag, text in given.items() if text is not None}
    with _blaming(None):
        mechanism = mechanism_from_fields(fields)
    _check_plot_path(arguments.plot)
    accountant.compose(mechanism, count)
    return [(mechanism, count)], accountant


def _common_report(
    command: str, rounds: Sequence[tuple[Mechanism, int]], arguments: argparse.Namespace
) -> _Report:
    assumptions: dict[str, list[str]] = {}
    pooled: list[dict[str, Any]] = []
    described = set()
    for mechanism, count in rounds:
        shown = repr(mechanism)
        if pooled and pooled[-1]["mechanism"] == shown:
            pooled[-1]["count"] += count
        else:
            pooled.append({"mechanism": shown, "count": count})
        if mechanism in described:
            continue
        described.add(mechanism)
        for topic, sentence in mechanism.assumptions().items():
            sentences = assumptions.setdefault(topic, [])
            if sentence not in sentences:
                sentences.append(sentence)
    return {
        "command": command,
        "total_rounds": sum(count for _, count in rounds),
        "mechanisms": pooled,
        "assumptions": assumptions,
        "rtol": float(arguments.rtol),
        "notes": [],
    }


def _epsilon_rows(accountant: Accountant, deltas: Sequence[float]) -> list[dict[str, float]]:
    rows = []
    for delta in deltas:
        bounds = accountant.epsilon_bounds(delta)
        rows.append({"delta": delta, "lower": float(bounds.lower), "upper": float(bounds.upper)})
    return rows


def _delta_rows(accountant: Accountant, epsilons: Sequence[float]) -> list[dict[str, float]]:
    bounds = accountant.delta_bounds(list(epsilons))
    return [
        {"epsilon": epsilon, "lower": float(lower), "upper": float(upper)}
        for epsilon, lower, upper in zip(epsilons, bounds.lower, bounds.upper, strict=True)
    ]


def _row_step(rows: int) -> int:
    """The smallest of 1, 2, 5, 10, 20, ... that leaves a table of at most _TABLE_ROWS rows."""
    scale = 1
    while True:
        for factor in (1, 2, 5):
            if factor * scale * _TABLE_ROWS >= rows:
                return factor * scale
        scale *= 10


def _telling_epsilons(epsilon: float) -> list[float]:
    """Five round numbers around an epsilon; around 1 where it is infinite or 0."""
    if not 0 < epsilon < math.inf:
        epsilon = 1.0
    exponent = math.floor(math.log10(epsilon))
    steps = [float(f"{f}e{e}") for e in range(exponent - 2, exponent + 3) for f in (1, 2, 5)]
    last_below = max((i for i, step in enumerate(steps) if step <= epsilon), default=2)
    return steps[last_below - 2 : last_below + 3]


@contextlib.contextmanager
def _progress_bar(rows: int) -> Iterator[Callable[[int, int], None] | None]:
    if rows < _LONG_LOG or not sys.stderr.isatty():
        yield None
        return
    from tqdm import tqdm

    with tqdm(total=rows, unit="round", leave=False, file=sys.stderr) as bar:

        def advance(done: int, total: int) -> None:
            bar.total = total
            bar.update(max(done - bar.n, 0))

        yield advance


@contextlib.contextmanager
def _picture(path: str, size: tuple[float, float] = (6.4, 4.2)) -> Iterator[Any]:
    """Axes of a figure that is written to `path`; no window system and no pyplot state."""
    from matplotlib.figure import Figure

    from pld_shuffle.plots import save_figure

    figure = Figure(figsize=size, layout="constrained")
    yield figure.add_subplot()
    try:
        save_figure(figure, path)
    except OSError as error:
        raise _BadInput(f"cannot write {path!r}: {error.strerror or error}") from error


def _draw_privacy_curve(
    arguments: argparse.Namespace, accountant: Accountant, largest: float
) -> None:
    from pld_shuffle.plots import privacy_curve

    largest = largest if largest > 0 else 1.0
    epsilons = [largest * i / (_CURVE_POINTS - 1) for i in range(_CURVE_POINTS)]
    ((mechanism, count),) = accountant.ledger
    title = f"{count:,} x {mechanism!r}"
    with _picture(arguments.plot) as ax:
        privacy_curve(accountant, epsilons, ax)
        ax.set_title(textwrap.fill(title, _TITLE_WIDTH), fontsize="small")


# --- what the person sees -------------------------------------------------------------------


def _rounded(value: float, rounding: str) -> str:
    if not math.isfinite(value):
        return str(value)
    context = Context(prec=_DIGITS, rounding=rounding)
    return format(float(context.create_decimal_from_float(value)), f".{_DIGITS}g")


def _upper_text(value: float) -> str:
    return _rounded(value, ROUND_CEILING)


def _lower_text(value: float) -> str:
    return _rounded(value, ROUND_FLOOR)


def _table(title: str, rows: Sequence[dict[str, Any]]) -> list[str]:
    """Lines of a table with a first column `title` and the bracket."""
    cells = [(title, "lower", "upper")]
    for row in rows:
        position = row[title]
        shown = f"{position:,}" if isinstance(position, int) else f"{position:.12g}"
        cells.append((shown, _lower_text(row["lower"]), _upper_text(row["upper"])))
    widths = [max(len(row[i]) for row in cells) for i in range(3)]
    return [
        "  " + "   ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in cells
    ]


def _human_lines(report: _Report) -> Iterator[str]:
    total = report["total_rounds"]
    yield f"{total:,} {'round' if total == 1 else 'rounds'}" + (
        f" from {report['log']}" if "log" in report else ""
    )
    for count, mechanism in _with_ranges(
        (entry["mechanism"], entry["count"]) for entry in report["mechanisms"]
    ):
        yield f"  {count:,} x {mechanism}"
    if "plan" in report:
        yield ""
        yield from _plan_lines(report["plan"])
    yield ""
    yield "Assumed"
    width = max((len(topic) for topic in report["assumptions"]), default=0)
    for topic, sentences in report["assumptions"].items():
        merged = _with_ranges((sentence, 1) for sentence in sentences)
        for position, (_, sentence) in enumerate(merged):
            yield f"  {topic if position == 0 else '':{width}}  {sentence}"
    if "epsilon_bounds" in report:
        yield ""
        yield "Epsilon (of the pairs for these rounds: the exact value lies between lower and upper)"
        yield from _table("delta", report["epsilon_bounds"])
    if "delta_bounds" in report:
        yield ""
        yield "Delta (of the pairs for these rounds: the exact value lies between lower and upper)"
        yield from _table("epsilon", report["delta_bounds"])
    if "spent" in report:
        yield ""
        yield f"Epsilon spent, at delta = {report['epsilon_bounds'][0]['delta']:g}"
        yield from _table("round", report["spent"])
    if "methods" in report:
        yield from _comparison_lines(report)
    yield ""
    yield f"Took {report['seconds']:.1f} s."


def _plan_lines(plan: dict[str, Any]) -> Iterator[str]:
    name, largest = plan["parameter"], plan["end"] == "largest"

    def shown(value: float, upwards: bool) -> str:
        if isinstance(value, int):
            return f"{value:,}"
        return _upper_text(value) if upwards else _lower_text(value)

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
        f"epsilon in [{_lower_text(spent['lower'])}, {_upper_text(spent['upper'])}]"
    )


def _comparison_lines(report: _Report) -> Iterator[str]:
    yield ""
    yield "Upper bounds on epsilon that are valid here (factor: over the tight upper bound)"
    rows = [("epsilon", "factor", "bound", "source")]
    for method in report["methods"]:
        factor = "" if method["factor"] is None else f"{method['factor']:.3f}"
        bound = method["name"] + (f" ({method['note']})" if method["note"] else "")
        rows.append((_upper_text(method["epsilon"]), factor, bound, method["source"]))
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    for epsilon, factor, bound, source in rows:
        yield (
            f"  {epsilon.rjust(widths[0])}   {factor.rjust(widths[1])}   "
            f"{bound.ljust(widths[2])}   {source}"
        ).rstrip()
    reasons: dict[str, list[str]] = {}
    for excluded in report["not_applicable"]:
        label = f"{excluded['name']} [{excluded['source']}]"
        reasons.setdefault(excluded["reason"], []).append(label)
    if reasons:
        yield ""
        yield "Not valid here, and why"
    for reason, names in reasons.items():
        yield from textwrap.wrap(
            "; ".join(names) + ":", _LINE_WIDTH, initial_indent="  ", subsequent_indent="  "
        )
        yield from textwrap.wrap(
            reason, _LINE_WIDTH, initial_indent="      ", subsequent_indent="      "
        )


def _with_ranges(texts: Iterable[tuple[str, int]]) -> list[tuple[int, str]]:
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


def _json_ready(value: Any) -> Any:
    """The same with infinities as strings, since JSON has none."""
    if isinstance(value, dict):
        return {key: _json_ready(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_json_ready(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _run(arguments: argparse.Namespace, started: float) -> None:
    from pld_shuffle.composition import AccuracyWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", AccuracyWarning)
        report = arguments.run(arguments)
    remarks = []
    for warning in caught:
        if issubclass(warning.category, AccuracyWarning):
            remarks.append(" ".join(str(warning.message).split()))
        else:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
    report["warnings"] = list(dict.fromkeys(remarks))
    report["seconds"] = round(time.perf_counter() - started, 3)
    for note in report["notes"]:
        print(f"pld-shuffle: note: {note}", file=sys.stderr)
    for remark in report["warnings"]:
        print(f"pld-shuffle: warning: {remark}", file=sys.stderr)
    if arguments.json:
        print(json.dumps(_json_ready(report), indent=2, allow_nan=False))
    else:
        print("\n".join(_human_lines(report)))
    sys.stdout.flush()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments without the program's name; those of the process by default.
    """
    started = time.perf_counter()
    try:
        _run(_parser().parse_args(argv), started)
    except _BadInput as error:
        print(f"pld-shuffle: error: {_one_line(error)}", file=sys.stderr)
        return _BAD_INPUT
    except (MemoryError, ArithmeticError) as error:
        print(f"pld-shuffle: gave up: {_one_line(error)}", file=sys.stderr)
        return _GAVE_UP
    except BrokenPipeError:
        # The rest of the output goes nowhere, the flush at exit included.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _READER_LEFT
    except KeyboardInterrupt:
        return _INTERRUPTED
    except SystemExit as leaving:  # --help
        return leaving.code if isinstance(leaving.code, int) else 0
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
