"""The command ``pld-shuffle``: account, ask, compare with the bounds of the literature, or plan.

Here is what a person may give: the flags, which are the fields of `fields` read by their own types, and one
line for anything that is wrong. What they get is in `report`. Exit statuses are in `STATUSES`, the keys of
the JSON in docs/command_line.md.

Nothing heavy (numpy, numba, matplotlib) is imported before the arguments are known to be sound.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from . import __version__
from .fields import (
    FIELDS,
    LAW,
    MECHANISM_FIELDS,
    MECHANISMS,
    QUESTION_FIELDS,
    RANDOMIZERS,
    SHARES,
    Field,
    FieldError,
    kind_lines,
    mechanism_from_values,
)
from .report import Report, deltas_around, row_step

if TYPE_CHECKING:
    from .accountant import Accountant
    from .ledger import Rounds
    from .trainlog import TrainingLog


GAVE_UP, BAD_INPUT, EXCEEDED, INTERRUPTED, READER_LEFT = 1, 2, 3, 130, 141
STATUSES = f"""exit status:
  0    an answer
  {GAVE_UP}    the computation itself gave up; one line on standard error says why
  {BAD_INPUT}    bad input, or a plan that cannot meet its target; one line on standard error, nothing else
  {EXCEEDED}    `audit` measured more than is proved; `account --adaptive` found a log that does not fit its budget
  {INTERRUPTED}  interrupted; what `account` knew by then is printed
  {READER_LEFT}  the reader of the output went away"""

#: What `plan` can look for.
SOLVABLE = tuple(name for name, known in FIELDS.items() if known.range is not None)
#: Fields that say who took part; the other ones of a mechanism say what was sent.
WHO = ("n", "population", "rate", "sampling", "dropout", "dropout_limit", "rounds")


class _Names(tuple[str, ...]):
    """Names of randomizers; the path of a CSV file with a law is one, too."""

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or str(name).endswith(LAW)


_WORDS = {
    "mechanism": tuple(MECHANISMS),
    "randomizer": _Names(RANDOMIZERS),
    "share": tuple(SHARES),
    "dummies": tuple(SHARES),
}


class _BadInput(Exception):
    """Something the person gave is wrong; the text is the line they see."""


# --- the flags -------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """A parser that raises, and takes its flags from fields, in groups."""

    def __init__(self, **options: Any) -> None:
        form = argparse.RawDescriptionHelpFormatter
        super().__init__(formatter_class=form, allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        raise _BadInput(message)

    def add_fields(self, *names: str, title: str, **options: Any) -> None:
        """Flags for fields, with underscores as dashes, under a title."""
        group = self.add_argument_group(title)
        for name in names:
            known, words = FIELDS[name], _WORDS.get(name)
            read = _read(known) if words is None else _one_of(words)
            given = {"metavar": known.metavar, "help": known.help, "type": read, "choices": words}
            group.add_argument(_flag(name), **given | options)

    def add_mechanism(self, rounds: int | None = 1) -> None:
        """What was run, and by whom."""
        self.add_fields(*(n for n in MECHANISM_FIELDS if n not in WHO), title="what was sent")
        self.add_fields(*WHO, title="who took part")
        self.set_defaults(rounds=rounds)


class _Completion(argparse.Action):
    """Print a script for the shell that completes this command line."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        try:
            import shtab
        except ImportError as error:
            raise _BadInput("shell completion needs shtab: python -m pip install 'pld-shuffle[completion]'") from error
        print(shtab.complete(parser, values))
        parser.exit()


def _parser() -> _Parser:
    parser = _Parser(
        prog="pld-shuffle",
        description="Exact privacy accounting in the shuffle model, certified from both sides.",
        epilog=f"Each command explains itself: pld-shuffle account --help\n\n{STATUSES}",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    parser.add_argument(
        "--print-completion",
        action=_Completion,
        choices=("bash", "zsh", "tcsh"),
        metavar="SHELL",
        help="print a script that completes this command in bash, zsh or tcsh",
    )
    parsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in COMMANDS:
        text = f"{command.summary[0].upper()}{command.summary[1:]}.\n\nexample: {command.example}"
        epilog = "\n".join((*kind_lines(), "", STATUSES)) if command.picture else ""
        one: _Parser = parsers.add_parser(command.name, help=command.summary, description=text, epilog=epilog)
        one.set_defaults(run=command.run)
        command.flags(one)
        if command.picture:
            how = one.add_argument_group("how it is answered")
            how.add_argument("--json", action="store_true", help="print one JSON object")
            draws = f"draw {command.picture} (.png, .pdf, .svg)"
            how.add_argument("--plot", metavar="FILE", help=draws)
            one.add_fields("rtol", title="how accurately", default=1e-3)
    return parser


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _read(known: Field) -> Callable[[str], Any]:
    """From the text of a flag to the field's value."""

    def read(text: str) -> Any:
        try:
            return known.value(text)
        except FieldError as error:
            raise argparse.ArgumentTypeError(error.reason) from error

    return read


def _one_of(words: Sequence[str]) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in words:
            raise argparse.ArgumentTypeError(f"must be one of {', '.join(words)}, got {text!r}")
        return text

    return read


def _parsed(argv: Sequence[str] | None) -> argparse.Namespace:
    arguments, unknown = _parser().parse_known_args(argv)
    if unknown:
        known = ("--plot", "--json", *map(_flag, (*MECHANISM_FIELDS, *QUESTION_FIELDS)))
        near = difflib.get_close_matches(unknown[0], known, 1)
        meant = f"; did you mean {near[0]}?" if near else ""
        raise _BadInput(f"unrecognized arguments: {' '.join(unknown)}{meant}")
    return arguments


# --- what the person gave --------------------------------------------------------------------


@contextlib.contextmanager
def _blaming(flag: str | None = None, *, file: str = "") -> Iterator[None]:
    """Turn a complaint into the one line that names its flag, or what could not be done with a file."""
    try:
        yield
    except FieldError as error:
        raise _BadInput(f"argument {_flag(error.field)}: {error.reason}") from error
    except (TypeError, ValueError) as error:
        where = "" if flag is None else f"argument {_flag(flag)}: "
        raise _BadInput(f"{where}{error}") from error
    except OSError as error:
        raise _BadInput(f"cannot {file}: {error.strerror or error}") from error


def _given(arguments: argparse.Namespace, *also: str) -> dict[str, Any]:
    """The values of the fields that were given."""
    values = {name: getattr(arguments, name) for name in (*MECHANISM_FIELDS, *also)}
    return {name: value for name, value in values.items() if value is not None}


def _prepared(arguments: argparse.Namespace) -> Accountant:
    """An accountant, when what can be wrong has been looked at before the computation, not after it."""
    from .accountant import Accountant

    with _blaming("rtol"):
        accountant = Accountant(rtol=arguments.rtol)
    if arguments.plot is not None:
        from .plots import check_picture_path

        with _blaming("plot"):
            check_picture_path(arguments.plot)
    return accountant


def _equal_rounds(arguments: argparse.Namespace) -> Accountant:
    with _blaming():
        mechanism = mechanism_from_values(_given(arguments))
    return _prepared(arguments).compose(mechanism, arguments.rounds)


def _read_log(arguments: argparse.Namespace) -> TrainingLog:
    from .trainlog import SAMPLE, training_log

    if arguments.sample == (arguments.log is not None):
        raise _BadInput("give a log, or - for standard input, or --sample")
    with _blaming(file=f"read {arguments.log!r}"):
        return training_log(SAMPLE if arguments.sample else arguments.log)


def _draw(path: str | None, title: str, name: str, *what: Any, **options: Any) -> None:
    """Draw the picture of that name of `plots`, if one is wanted."""
    if path is not None:
        from . import plots

        with _phase("drawing"), _blaming(file=f"write {path!r}"):
            plots.draw(path, title, getattr(plots, name), *what, **options)


def _title(rounds: Rounds) -> str:
    ((mechanism, count),) = rounds
    return f"{count:,} x {mechanism!r}"


# --- the commands ----------------------------------------------------------------------------


class Command(NamedTuple):
    """A subcommand; to offer another, add an entry to `COMMANDS`.

    run : from the arguments to a report, or None if there is nothing to say. flags : adds those that only this command
    has. picture : what --plot draws; "" for a command without --json, --plot and --rtol.
    """

    name: str
    summary: str
    example: str
    flags: Callable[[_Parser], None]
    run: Callable[[argparse.Namespace], Report | None]
    picture: str = ""


def _account_flags(parser: _Parser) -> None:
    parser.add_argument(
        "log",
        metavar="LOG.csv",
        nargs="?",
        help="one row per round, with the fields below as columns; also count, how many equal rounds a"
        " row stands for, and round, a label; - reads standard input",
    )
    parser.add_argument("--sample", action="store_true", help="account the made-up log that ships with the package")
    parser.add_argument(
        "--every",
        metavar="K",
        type=_read(Field("every", int, "K", "", least=1)),
        help="epsilon after every K-th row (default: so that there are at most 20)",
    )
    parser.add_fields("delta", title=ASKED, required=True)
    parser.add_fields("epsilon", title="what is asked besides", nargs="+", help="also delta here")
    parser.add_argument(
        "--adaptive",
        action="store_true",
        help="rounds were chosen by what was seen: whether the log fits the budget of --epsilon at"
        " --delta, which was fixed before the first round",
    )
    written = parser.add_argument_group("what is written besides")
    text = "the answer with its proof, which pld-shuffle-check checks (JSON)"
    written.add_argument("--certificate", metavar="FILE", help=text)
    text = "what is known of an entry for a registry of deployments (JSON)"
    written.add_argument("--registry", metavar="FILE", help=text)


def _account(arguments: argparse.Namespace) -> Report:
    if arguments.adaptive:
        return _adaptive(arguments)
    with _phase(f"reading {arguments.log or 'the sample'}"):
        accountant = _prepared(arguments)
        log = _read_log(arguments)

        from .trajectory import epsilon_trajectory

        for mechanism, count in log.rounds:
            accountant.compose(mechanism, count)
    rows, delta = len(log.rounds), arguments.delta
    about = {"log": log.name, "log_sha256": log.sha256}
    report = Report("account", log.rounds, arguments.rtol, about, [*log.notes])
    try:
        with _phase("asking for epsilon"):
            report.add_epsilons(accountant, deltas_around(delta))
        if arguments.epsilon:
            with _phase("asking for delta"):
                report.add_deltas(accountant, arguments.epsilon)
        with _phase("epsilon after each round", rows) as progress:
            trajectory = epsilon_trajectory(
                log.rounds, delta, every=arguments.every or row_step(rows), rtol=arguments.rtol,
                progress=progress,
            )  # fmt: skip
        report.add_trajectory(trajectory)
        _write_besides(arguments, accountant)
    except KeyboardInterrupt:
        report.interrupted = True
        return report
    title = f"{log.name}, δ = {delta:g}"
    _draw(arguments.plot, title, "epsilon_over_rounds", trajectory)
    return report


def _adaptive(arguments: argparse.Namespace) -> Report:
    """Rows of a log are admitted, one after the other, by a filter."""
    if arguments.plot or arguments.certificate or arguments.registry or arguments.every:
        raise _BadInput("argument --adaptive: goes without --plot, --certificate, --registry, --every")
    if len(arguments.epsilon or ()) != 1:
        raise _BadInput("argument --adaptive: needs one --epsilon, the budget")
    log = _read_log(arguments)

    from .filter import PrivacyFilter

    with _blaming("epsilon"):
        run = PrivacyFilter(arguments.epsilon[0], arguments.delta)
    refused = None
    with _phase("buying rounds", len(log.rounds)) as progress, _blaming():
        for row, (mechanism, count) in enumerate(log.rounds, 1):
            if not run.admits(mechanism, count):
                refused = row
                break
            run.compose(mechanism, count)
            if progress is not None:
                progress(row, len(log.rounds))
    report = Report(
        "account", log.rounds, arguments.rtol, {"log": log.name, "log_sha256": log.sha256}, [*log.notes],
        exceeded=refused is not None,
    )  # fmt: skip
    report.add_adaptive(run, refused)
    return report


def _write_besides(arguments: argparse.Namespace, accountant: Accountant) -> None:
    """The certificate and the entry for a registry, if they are wanted."""
    from .registry import registry_entry
    from .storage import write_text

    delta = arguments.delta
    if arguments.certificate is not None:
        with _phase("writing the certificate"), _blaming("certificate"):
            text = accountant.certificate(delta)
        with _blaming(file=f"write {arguments.certificate!r}"):
            write_text(arguments.certificate, text + "\n")
    if arguments.registry is not None:
        text = json.dumps(registry_entry(accountant, delta), indent=1, allow_nan=False)
        with _blaming(file=f"write {arguments.registry!r}"):
            write_text(arguments.registry, text + "\n")


def _question_flags(name: str) -> Callable[[_Parser], None]:
    def flags(parser: _Parser) -> None:
        parser.add_mechanism()
        parser.add_fields(name, title=ASKED, nargs="+", required=True)

    return flags


def _epsilon(arguments: argparse.Namespace) -> Report:
    return _answered(arguments, Report.add_epsilons, arguments.delta)


def _delta(arguments: argparse.Namespace) -> Report:
    return _answered(arguments, Report.add_deltas, arguments.epsilon)


def _answered(arguments: argparse.Namespace, add: Callable[..., Any], asked: Any) -> Report:
    """Answers for equal rounds, marked in the privacy curve."""
    accountant = _equal_rounds(arguments)

    report = Report(arguments.command, accountant.ledger, arguments.rtol)
    with _phase(f"asking for {arguments.command}"):
        marks = add(report, accountant, asked)
    title = _title(accountant.ledger)
    _draw(arguments.plot, title, "privacy_curve", accountant, marks=marks)
    return report


def _compare_flags(parser: _Parser) -> None:
    parser.add_mechanism()
    parser.add_fields("delta", title=ASKED, required=True)


def _compare(arguments: argparse.Namespace) -> Report:
    accountant = _equal_rounds(arguments)

    from .comparison import compare

    ((mechanism, count),) = accountant.ledger
    with _phase("asking every bound"), _blaming():
        found = compare(mechanism, delta=arguments.delta, rounds=count, rtol=accountant.rtol)
    report = Report("compare", accountant.ledger, arguments.rtol)
    report.add_comparison(accountant, found)
    _draw(arguments.plot, _title(accountant.ledger), "methods_compared", found)
    return report


def _plan_flags(parser: _Parser) -> None:
    parser.add_argument(
        "--solve",
        metavar="WHAT",
        required=True,
        type=_one_of(SOLVABLE),
        choices=SOLVABLE,
        help="largest eps0, rounds or rate; smallest n, gamma, sigma, scale or population; with"
        " --population, largest n",
    )
    parser.add_mechanism(rounds=None)
    parser.add_fields("epsilon", "delta", title="the target", required=True)


def _plan(arguments: argparse.Namespace) -> Report:
    rtol = _prepared(arguments).rtol

    from .calibration import solve

    with _phase(f"looking for {arguments.solve}"), _blaming():
        found = solve(
            arguments.solve, _given(arguments, "rounds"), epsilon=arguments.epsilon,
            delta=arguments.delta, rtol=rtol,
        )  # fmt: skip
    report = Report("plan", found.ledger, rtol)
    report.add_plan(found)
    _draw(
        arguments.plot, _title(found.ledger), "privacy_curve", found.accountant(),
        marks=[(found.achieved.upper, found.delta)], target=(found.epsilon, found.delta),
    )  # fmt: skip
    return report


def _train_flags(parser: _Parser) -> None:
    run = parser.add_argument_group("what was run")
    whole: dict[str, Any] = {"type": _read(Field("count", int, "COUNT", "", least=1)), "required": True}
    run.add_argument("--n", metavar="RECORDS", help="records in all", **whole)
    run.add_argument("--batch", metavar="RECORDS", help="records in a batch", **whole)
    run.add_argument("--epochs", metavar="COUNT", help="passes over the data", **whole)
    parser.add_fields("sigma", title="its noise", required=True, help="the noise multiplier")
    run.add_argument(
        "--sampler", required=True, type=_one_of(SAMPLERS), choices=SAMPLERS,
        help="how batches are drawn; most loaders shuffle",
    )  # fmt: skip
    run.add_argument(
        "--keep-last", action="store_true",
        help="records that fill no whole batch are a smaller last batch (default: left out)",
    )  # fmt: skip
    parser.add_fields("delta", title=ASKED, nargs="+", required=True)


def _train(arguments: argparse.Namespace) -> Report:
    accountant = _prepared(arguments)

    from .accountant import Accountant
    from .training import Training

    with _blaming():
        run = Training(
            arguments.n, arguments.batch, arguments.epochs, arguments.sigma, arguments.sampler,
            not arguments.keep_last,
        )  # fmt: skip
        accountant.compose(*run.rounds)
    report = Report("train", accountant.ledger, arguments.rtol)
    with _phase("asking for epsilon"):
        marks = report.add_epsilons(accountant, arguments.delta)
    if run.sampler != "poisson":
        with _phase("asking what Poisson sampling would claim"):
            report.add_claim(Accountant(rtol=arguments.rtol).compose(*run.claimed.rounds))
    _draw(arguments.plot, _title(accountant.ledger), "privacy_curve", accountant, marks=marks)
    return report


def _audit_flags(parser: _Parser) -> None:
    for name, text in (("first", "one dataset"), ("second", "a neighbouring one")):
        parser.add_argument(name, metavar=name.upper(), help=f"outputs on {text}: a run in each row (.csv or .npy)")
    parser.add_fields("delta", title=ASKED, default=0.0)
    parser.add_argument(
        "--confidence",
        metavar="PROB",
        type=_read(Field("confidence", float, "PROB", "", least=0, most=1)),
        default=0.999,
        help="with which the measured epsilon is right (default 0.999)",
    )
    help_text = "the epsilon that is claimed; or describe what was run, below"
    parser.add_fields("epsilon", title="what is claimed", help=help_text)
    parser.add_mechanism()
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_fields("rtol", title="how accurately", default=1e-3)
    parser.set_defaults(plot=None)


def _audit(arguments: argparse.Namespace) -> Report:
    described = _given(arguments)
    if described and arguments.epsilon is not None:
        raise _BadInput("argument --epsilon: give a claim or a mechanism, got both")
    accountant = _equal_rounds(arguments) if described else None

    from .audits import audit

    with _phase("measuring"), _blaming(file=f"read {arguments.first!r} or {arguments.second!r}"):
        found = audit(
            arguments.first, arguments.second, delta=arguments.delta,
            confidence=arguments.confidence, proved=accountant or arguments.epsilon,
        )  # fmt: skip
    rounds = () if accountant is None else accountant.ledger
    report = Report("audit", rounds, arguments.rtol, exceeded=found.violated)
    report.add_audit(found)
    return report


def _warm_up(arguments: argparse.Namespace) -> None:
    from .numerics.compiled import warm_up

    warm_up()


#: As in `training`, which is imported when it is needed.
SAMPLERS = ("shuffle", "poisson", "balls-and-bins", "fixed-size", "cyclic")
ASKED, CURVE = "what is asked", "delta against epsilon"

COMMANDS = (
    Command("account", "account a training log: epsilon in all, and spent after each round",
            "pld-shuffle account LOG.csv --delta 1e-6 --plot spent.png", _account_flags, _account,
            "epsilon after each round"),
    Command("epsilon", "epsilon of equal rounds at a delta",
            "pld-shuffle epsilon --eps0 4 --n 10000 --rounds 10 --delta 1e-6",
            _question_flags("delta"), _epsilon, CURVE),
    Command("delta", "delta of equal rounds at an epsilon",
            "pld-shuffle delta --randomizer unary-encoding --k 16 --eps0 2 --n 10000 --epsilon 1",
            _question_flags("epsilon"), _delta, CURVE),
    Command("compare", "all published bounds on epsilon that are valid for equal rounds",
            "pld-shuffle compare --eps0 4 --n 10000 --rounds 100 --delta 1e-6",
            _compare_flags, _compare, "the bounds side by side"),
    Command("plan", "the parameter that just meets an epsilon at a delta, safe side",
            "pld-shuffle plan --solve eps0 --n 5000 --population 1000000 --rounds 2000 --epsilon 2"
            " --delta 1e-6", _plan_flags, _plan, CURVE),
    Command("train", "epsilon of DP-SGD as it was run: shuffled batches, say, and not Poisson samples",
            "pld-shuffle train --n 50000 --batch 499 --epochs 1 --sigma 1 --sampler shuffle --delta 1e-6",
            _train_flags, _train, CURVE),
    Command("audit", "a lower bound on epsilon from an implementation's outputs, next to what is proved",
            "pld-shuffle audit FIRST.csv SECOND.csv --delta 1e-3 --randomizer binary-rr --eps0 3 --n 30",
            _audit_flags, _audit),
    Command("warm-up", "compile all loops now, once on this machine, not when they are needed",
            "pld-shuffle warm-up", lambda parser: None, _warm_up),
)  # fmt: skip


@contextlib.contextmanager
def _phase(text: str, rows: int = 0) -> Iterator[Callable[[int, int], None] | None]:
    """A line on a terminal that says what is being done, with a bar where `rows` are counted; gone afterwards."""
    if not sys.stderr.isatty():
        yield None
        return
    from tqdm import tqdm

    form = None if rows else "{desc} ..."
    options = {"unit": "round", "leave": False, "file": sys.stderr, "bar_format": form}
    with tqdm(desc=text, total=rows or None, **options) as bar:
        yield lambda done, total: bar.update(done - bar.n)


# --- running ---------------------------------------------------------------------------------


def _one_line(error: BaseException | str) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _run(arguments: argparse.Namespace, started: float) -> int:
    from .composition.composition import AccuracyWarning
    from .numerics.validation import UnlikelyWarning

    with warnings.catch_warnings(record=True) as caught:
        for category in (AccuracyWarning, UnlikelyWarning):
            warnings.simplefilter("always", category)
        report: Report | None = arguments.run(arguments)
    if report is None:
        return 0
    remarks = []
    for warning in caught:
        if issubclass(warning.category, (AccuracyWarning, UnlikelyWarning)):
            remarks.append(_one_line(str(warning.message)))
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    report.values["warnings"] = list(dict.fromkeys(remarks))
    report.values["seconds"] = round(time.perf_counter() - started, 3)
    if report.interrupted:
        report.notes.append("interrupted: this is what was known by then")
    for kind, texts in (("note", report.notes), ("warning", report.values["warnings"])):
        for text in texts:
            print(f"pld-shuffle: {kind}: {text}", file=sys.stderr)
    if arguments.json:
        print(json.dumps(report.json(), indent=2, allow_nan=False))
    else:
        print("\n".join(report.lines()))
    sys.stdout.flush()
    if report.interrupted:
        return INTERRUPTED
    return EXCEEDED if report.exceeded else 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status. argv : the arguments, by default those of the process."""
    started = time.perf_counter()
    try:
        return _run(_parsed(argv), started)
    except _BadInput as error:
        print(f"pld-shuffle: error: {_one_line(error)}", file=sys.stderr)
        return BAD_INPUT
    except (MemoryError, ArithmeticError) as error:
        print(f"pld-shuffle: gave up: {_one_line(error)}", file=sys.stderr)
        return GAVE_UP
    except BrokenPipeError:
        # The rest of the output goes nowhere, the flush at exit included.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return READER_LEFT
    except KeyboardInterrupt:
        return INTERRUPTED
    except SystemExit as leaving:  # --help, --version
        return leaving.code if isinstance(leaving.code, int) else 0
