"""The command ``pld-shuffle``: account, ask, compare with the bounds of the literature, or plan.

Here is what a person may give: the flags, which are the fields of `fields` read by their own types, and one
line for anything that is wrong. What they get is in `report`. Exit statuses are in `STATUSES`, the keys of
the JSON in docs/command_line.md.

Nothing heavy (numpy, numba, matplotlib) is imported before the arguments are known to be sound: `pld_shuffle.X` is
imported when it is first used.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import io
import json
import os
import re
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import pld_shuffle

from . import __version__, fields
from .fields import MECHANISM_FIELDS, SAMPLERS, Field, FieldError, mechanism_from_values
from .report import Report, deltas_around, registry_entry, row_step
from .storage import writable, write_text

if TYPE_CHECKING:
    from .trainlog import TrainingLog

MINUTE = 60.0  # between two lines of a command that no terminal shows
GAVE_UP, BAD_INPUT, EXCEEDED, INTERRUPTED, READER_LEFT = 1, 2, 3, 130, 141
STATUSES = f"""exit status:
  0    an answer
  {GAVE_UP}    the computation itself gave up; one line on standard error says why
  {BAD_INPUT}    bad input, or a plan that cannot meet its target; one line on standard error, nothing else
  {EXCEEDED}    `audit` measured more than is proved; `account --adaptive` found a log that does not fit its budget
  {INTERRUPTED}  interrupted; what was known by then is printed
  {READER_LEFT}  the reader of the output went away"""

#: Fields that say who took part; the other ones of a mechanism say what was sent.
WHO = ("n", "population", "rate", "sampling", "dropout", "dropout_limit", "rounds")

Found = Iterator[Report]


class _BadInput(Exception):
    """Something the person gave is wrong; the text is the line they see."""


class _Parser(argparse.ArgumentParser):
    """A parser that raises, and takes its flags from fields, in groups."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        raise _BadInput(message)

    def titled(self, title: str) -> Any:
        """The group of flags with that title."""
        known = (group for group in self._action_groups if group.title == title)
        return next(known, None) or self.add_argument_group(title)

    def add_fields(self, title: str, *names: str | Field, **options: Any) -> None:
        """Flags for fields, with underscores as dashes, under a title."""
        for name in names:
            known = fields.FIELDS[name] if isinstance(name, str) else name
            given = {"metavar": known.metavar, "help": known.help, "type": partial(_read, known)}
            self.titled(title).add_argument(_flag(known.name), **given | options)

    def add_mechanism(self, rounds: int | None = 1) -> None:
        """What was run, and by whom."""
        self.add_fields("what was sent", *(name for name in MECHANISM_FIELDS if name not in WHO))
        self.add_fields("who took part", *WHO)
        self.set_defaults(rounds=rounds)


def _parser() -> _Parser:
    parser = _Parser(
        prog="pld-shuffle",
        description="Exact privacy accounting in the shuffle model, certified from both sides.",
        epilog=f"Each command explains itself: pld-shuffle account --help\n\n{STATUSES}",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    parsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in COMMANDS:
        example = f"pld-shuffle {command.name} {command.example}".strip()
        text = f"{command.summary[0].upper()}{command.summary[1:]}.\n\nexample: {example}"
        epilog = "\n".join((*fields.kind_lines(), "", STATUSES)) if command.flags else ""
        one: _Parser = parsers.add_parser(command.name, help=command.summary, description=text, epilog=epilog)
        one.set_defaults(run=command.run, plot=None)
        if command.flags is not None:
            command.flags(one)
            how = one.titled("how it is answered")
            how.add_argument("--json", action="store_true", help="print one JSON object")
            if command.picture:
                how.add_argument("--plot", metavar="FILE", help=f"draw {command.picture} (.png, .pdf, .svg)")
            one.add_fields("how accurately", "rtol", default=1e-3)
        one.set_defaults(flags=[*one._option_string_actions])
    return parser


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _read(known: Field, text: str) -> Any:
    """The field's value in the text of a flag."""
    try:
        return known.value(text)
    except FieldError as error:
        raise argparse.ArgumentTypeError(error.reason) from error


def _parsed(argv: Sequence[str] | None) -> argparse.Namespace:
    given = sys.argv[1:] if argv is None else argv
    arguments, unknown = _parser().parse_known_args(given or ["--help"])  # the name alone: what there is
    if unknown:
        near = difflib.get_close_matches(unknown[0], arguments.flags, 1)
        meant = f"; did you mean {near[0]}?" if near else ""
        raise _BadInput(f"unrecognized arguments: {' '.join(unknown)}{meant}")
    return arguments


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


def _prepared(arguments: argparse.Namespace) -> pld_shuffle.Accountant:
    """An accountant, when what can be wrong has been looked at before the computation, not after it."""
    with _blaming("rtol"):
        accountant = pld_shuffle.Accountant(rtol=arguments.rtol)
    for flag in ("plot", "certificate", "registry"):
        path = getattr(arguments, flag, None)
        if path is not None:
            from .plots import check_picture_path

            with _blaming(flag):
                (check_picture_path if flag == "plot" else writable)(path)
    return accountant


def _equal_rounds(arguments: argparse.Namespace) -> pld_shuffle.Accountant:
    with _blaming():
        mechanism = mechanism_from_values(_given(arguments))
    return _prepared(arguments).compose(mechanism, arguments.rounds)


def _read_log(path: str | None, sample: bool = False) -> TrainingLog:
    from .trainlog import SAMPLE, training_log

    if sample == (path is not None):
        raise _BadInput("give a log, or - for standard input, or --sample")
    with _blaming(file=f"read {path!r}"):
        return training_log(SAMPLE if sample else path)


def _draw(path: str | None, title: str, name: str, *what: Any, **options: Any) -> None:
    """Draw the picture of that name of `plots`, if one is wanted."""
    if path is not None:
        from . import plots

        with _phase("drawing"), _blaming(file=f"write {path!r}"):
            plots.draw(path, title, getattr(plots, name), *what, **options)


def _title(accountant: pld_shuffle.Accountant) -> str:
    ((mechanism, count),) = accountant.ledger
    return f"{count:,} x {mechanism!r}"


class Command(NamedTuple):
    """A subcommand; to offer another, add an entry to `COMMANDS`.

    run : from the arguments to a report, given out as soon as it says something, and then added to; to none if there is
    nothing to say. flags : adds those that only this command has; None where it has none at all. picture : what --plot
    draws; "" for a command without it.
    """

    name: str
    summary: str
    flags: Callable[[_Parser], None] | None
    run: Callable[[argparse.Namespace], Found]
    example: str = ""
    picture: str = ""


def _account_flags(parser: _Parser) -> None:
    parser.add_argument(
        "log", metavar="LOG.csv", nargs="?",
        help="one row per round, with the fields below as columns; also count, how many equal rounds a"
        " row stands for, and round, a label; - reads standard input",
    )  # fmt: skip
    parser.add_argument("--sample", action="store_true", help="account the made-up log that ships with the package")
    text = "rounds were chosen by what was seen: whether the log fits the budget --epsilon, --delta, fixed before it"
    parser.add_argument("--adaptive", action="store_true", help=text)
    text = "with --adaptive, a log of the run that was planned: epsilon that holds whenever one stops, without a budget"
    parser.add_argument("--planned", metavar="LOG.csv", help=text)
    parser.add_fields(ASKED, "delta", required=True)
    every = Field("every", int, "K", "epsilon after every K-th row (default: so that there are at most 20)", least=1)
    parser.add_fields("what is asked besides", every)
    parser.add_fields("what is asked besides", "epsilon", nargs="+", help="also delta here")
    written = parser.titled("what is written besides")
    text = "the answer with its proof, which pld-shuffle-check checks (JSON)"
    written.add_argument("--certificate", metavar="FILE", help=text)
    text = "what is known of an entry for a registry of deployments (JSON)"
    written.add_argument("--registry", metavar="FILE", help=text)


def _account(arguments: argparse.Namespace) -> Found:
    if arguments.adaptive:
        yield from _adaptive(arguments)
        return
    if arguments.planned:
        raise _BadInput("argument --planned: goes with --adaptive")
    with _phase(f"reading {arguments.log or 'the sample'}"):
        accountant = _prepared(arguments)
        log = _read_log(arguments.log, arguments.sample)

        from .ledger import composed
        from .trajectory import epsilon_trajectory

        composed(accountant, log.rounds)
    if arguments.certificate:
        from .certificate import covered

        with _blaming("certificate"):  # before the computation
            for mechanism, _ in log.rounds:
                covered(mechanism)
    rows, delta = len(log.rounds), arguments.delta
    report = _log_report(arguments, log)
    with _phase("asking for epsilon"):
        report.add_epsilons(accountant, deltas_around(delta))
    yield report
    if arguments.epsilon:
        with _phase("asking for delta"):
            report.add_deltas(accountant, arguments.epsilon)
    every = arguments.every or row_step(rows)
    asked = report.values["epsilon_bounds"][0]
    with _phase("epsilon after each round", rows) as progress:
        trajectory = epsilon_trajectory(
            log.rounds, delta, every=every, rtol=arguments.rtol, laws=accountant.laws, progress=progress,
            total=pld_shuffle.Bounds(asked["lower"], asked["upper"]),
        )  # fmt: skip
    report.add_trajectory(trajectory, delta)
    _write_besides(arguments, accountant)
    _draw(arguments.plot, f"{log.name}, δ = {delta:g}", "epsilon_over_rounds", trajectory)


def _log_report(arguments: argparse.Namespace, log: TrainingLog) -> Report:
    about = {"log": log.name, "log_sha256": log.sha256}
    return Report(arguments.command, log.rounds, arguments.rtol, about, [*log.notes])


def _adaptive(arguments: argparse.Namespace) -> Found:
    """Rounds that were chosen by what was seen: a log by a filter, or by the odometer of the run that was planned."""
    if arguments.plot or arguments.certificate or arguments.registry or arguments.every:
        raise _BadInput("argument --adaptive: goes without --plot, --certificate, --registry, --every")
    if len(arguments.epsilon or ()) != (0 if arguments.planned else 1):
        raise _BadInput("argument --adaptive: needs one --epsilon, the budget, or --planned, a log")
    log = _read_log(arguments.log, arguments.sample)
    report = _log_report(arguments, log)
    planned = _read_log(arguments.planned).rounds if arguments.planned else None
    run: pld_shuffle.PrivacyFilter | pld_shuffle.PrivacyOdometer
    with _phase("adding up rounds", len(log.rounds)) as progress, _blaming():
        if planned is None:
            run = pld_shuffle.PrivacyFilter(arguments.epsilon[0], arguments.delta)
        else:
            run = pld_shuffle.PrivacyOdometer.planned(planned, arguments.delta)
        for row, entry in enumerate(log.rounds, 1):
            if isinstance(run, pld_shuffle.PrivacyFilter) and not run.admits(*entry):
                report.exceeded = True
                break
            run.compose(*entry)
            progress(row, len(log.rounds))
        report.add_adaptive(run, row if report.exceeded else None)
    yield report


def _write_besides(arguments: argparse.Namespace, accountant: pld_shuffle.Accountant) -> None:
    """The certificate and the entry for a registry, if they are wanted."""
    delta, texts = arguments.delta, {}
    if arguments.certificate is not None:
        with _phase("writing the certificate", len(accountant.ledger)) as progress, _blaming("certificate"):
            texts[arguments.certificate] = accountant.certificate(delta, progress=progress)
    if arguments.registry is not None:
        texts[arguments.registry] = json.dumps(registry_entry(accountant, delta), indent=1, allow_nan=False)
    for path, text in texts.items():
        with _blaming(file=f"write {path!r}"):
            write_text(path, text + "\n")


def _question_flags(parser: _Parser, asked: str | Field, **options: Any) -> None:
    parser.add_mechanism()
    parser.add_fields(ASKED, asked, **{"nargs": "+", "required": True} | options)


def _answered(arguments: argparse.Namespace) -> Found:
    """Answers for equal rounds, marked in the privacy curve."""
    accountant = _equal_rounds(arguments)
    report = Report(arguments.command, accountant.ledger, arguments.rtol)
    with _phase(f"asking for {arguments.command}"):
        if arguments.command == "epsilon":
            marks = report.add_epsilons(accountant, arguments.delta)
        else:
            marks = report.add_deltas(accountant, arguments.epsilon)
    yield report
    _draw(arguments.plot, _title(accountant), "privacy_curve", accountant, marks=marks)


def _compare(arguments: argparse.Namespace) -> Found:
    accountant = _equal_rounds(arguments)

    from .comparison import compare

    ((mechanism, count),) = accountant.ledger
    with _phase("asking every bound"), _blaming():
        found = compare(mechanism, delta=arguments.delta, rounds=count, rtol=accountant.rtol)
    report = Report(arguments.command, accountant.ledger, arguments.rtol)
    report.add_comparison(accountant, found)
    yield report
    _draw(arguments.plot, _title(accountant), "methods_compared", found)


def _risk(arguments: argparse.Namespace) -> Found:
    accountant = _equal_rounds(arguments)
    report = Report(arguments.command, accountant.ledger, arguments.rtol)
    with _phase("asking for the best attack"), _blaming():
        report.add_risk(pld_shuffle.AttackRisk(accountant, arguments.rtol), arguments.fpr)
    yield report


def _plan_flags(parser: _Parser) -> None:
    text = "largest eps0, rounds or rate; smallest n, gamma, sigma, scale or population; with --population, largest n"
    parser.add_fields("what is sought", Field("solve", str, "WHAT", text), required=True)
    parser.add_mechanism(rounds=None)
    parser.add_fields("the target", "epsilon", "delta", required=True)


def _plan(arguments: argparse.Namespace) -> Found:
    rtol = _prepared(arguments).rtol
    target = {"epsilon": arguments.epsilon, "delta": arguments.delta}
    with _phase(f"looking for {arguments.solve}"), _blaming():
        found = pld_shuffle.solve(arguments.solve, _given(arguments, "rounds"), **target, rtol=rtol)
    report = Report(arguments.command, found.run.ledger, rtol)
    report.add_plan(found)
    yield report
    marks, meant = [(found.achieved.upper, found.delta)], (found.epsilon, found.delta)
    _draw(arguments.plot, _title(found.run), "privacy_curve", found.run, marks=marks, target=meant)


def _train_flags(parser: _Parser) -> None:
    run = "what was run"
    parser.add_fields(
        run,
        Field("n", int, "RECORDS", "records in all", least=1),
        Field("batch", int, "RECORDS", "records in a batch", least=1),
        Field("epochs", int, "COUNT", "passes over the data", least=1),
        Field("sigma", float, "DEVIATION", "the noise multiplier"),
        Field("sampler", str, "HOW", f"how batches are drawn, most loaders shuffle: {', '.join(SAMPLERS)}"),
        required=True,
    )
    text = "records that fill no whole batch are a smaller last batch (default: left out)"
    parser.titled(run).add_argument("--keep-last", action="store_true", help=text)
    parser.add_fields(ASKED, "delta", nargs="+", required=True)


def _train(arguments: argparse.Namespace) -> Found:
    accountant = _prepared(arguments)

    from .training import Training

    what = (arguments.n, arguments.batch, arguments.epochs, arguments.sigma, arguments.sampler)
    try:
        run = Training(*what, drop_last=not arguments.keep_last)
        accountant.compose(*run.rounds)
    except (TypeError, ValueError) as error:
        flags = {"data_size": "--n", "batch_size": "--batch", "noise_multiplier": "--sigma"}
        raise _BadInput(re.sub(r"\w+", lambda word: flags.get(word[0], word[0]), str(error))) from error
    report = Report(arguments.command, accountant.ledger, arguments.rtol)
    with _phase("asking for epsilon"):
        marks = report.add_epsilons(accountant, arguments.delta)
    yield report
    if run.sampler != "poisson":
        with _phase("asking what Poisson sampling would claim"):
            report.add_claim(pld_shuffle.Accountant(arguments.rtol).compose(*run.claimed.rounds), arguments.delta)
    _draw(arguments.plot, _title(accountant), "privacy_curve", accountant, marks=marks)


def _audit_flags(parser: _Parser) -> None:
    for name, text in (("first", "one dataset"), ("second", "a neighbouring one")):
        parser.add_argument(name, metavar=name.upper(), help=f"outputs on {text}: a run in each row (.csv or .npy)")
    parser.add_fields(ASKED, "delta", default=0.0)
    text = "with which the measured epsilon is right (default 0.999)"
    parser.add_fields("how surely", Field("confidence", float, "PROB", text, least=0, most=1), default=0.999)
    text = "the epsilon that is claimed; or describe what was run, below"
    parser.add_fields("what is claimed", "epsilon", help=text)
    parser.add_mechanism()


def _audit(arguments: argparse.Namespace) -> Found:
    described = _given(arguments)
    if described and arguments.epsilon is not None:
        raise _BadInput("argument --epsilon: give a claim or a mechanism, got both")
    accountant = _equal_rounds(arguments) if described else None
    files, proved = (arguments.first, arguments.second), accountant or arguments.epsilon
    with _phase("measuring"), _blaming(file="read {!r} or {!r}".format(*files)):
        found = pld_shuffle.audit(*files, delta=arguments.delta, confidence=arguments.confidence, proved=proved)
    rounds = () if accountant is None else accountant.ledger
    report = Report(arguments.command, rounds, arguments.rtol, exceeded=found.violated)
    report.add_audit(found)
    yield report


def _warm_up(arguments: argparse.Namespace) -> Found:
    pld_shuffle.warm_up()
    yield from ()


ASKED, CURVE = "what is asked", "delta against epsilon"
RATES = Field("fpr", float, "PROB", "rates of false positives (default 1e-6 1e-3 1e-2)", least=0, most=1)

COMMANDS = (
    Command("account", "account a training log: epsilon in all, and spent after each round", _account_flags, _account,
            "LOG.csv --delta 1e-6 --plot spent.png", "epsilon after each round"),
    Command("epsilon", "epsilon of equal rounds at a delta", partial(_question_flags, asked="delta"), _answered,
            "--eps0 4 --n 10000 --rounds 10 --delta 1e-6", CURVE),
    Command("delta", "delta of equal rounds at an epsilon", partial(_question_flags, asked="epsilon"), _answered,
            "--randomizer unary-encoding --k 16 --eps0 2 --n 10000 --epsilon 1", CURVE),
    Command("compare", "all published bounds on epsilon that are valid for equal rounds",
            partial(_question_flags, asked="delta", nargs=None), _compare,
            "--eps0 4 --n 10000 --rounds 100 --delta 1e-6", "the bounds side by side"),
    Command("risk", "what attacks can reach: true positives at a rate of false ones",
            partial(_question_flags, asked=RATES, required=False, default=[1e-6, 1e-3, 1e-2]), _risk,
            "--eps0 4 --n 10000 --rounds 100 --fpr 1e-3"),
    Command("plan", "the parameter that just meets an epsilon at a delta, safe side", _plan_flags, _plan,
            "--solve eps0 --n 5000 --population 1000000 --rounds 2000 --epsilon 2 --delta 1e-6", CURVE),
    Command("train", "epsilon of DP-SGD as it was run: shuffled batches, say, and not Poisson samples",
            _train_flags, _train, "--n 50000 --batch 499 --epochs 1 --sigma 1 --sampler shuffle --delta 1e-6", CURVE),
    Command("audit", "a lower bound on epsilon from an implementation's outputs, next to what is proved",
            _audit_flags, _audit, "FIRST.csv SECOND.csv --delta 1e-3 --randomizer binary-rr --eps0 3 --n 30"),
    Command("warm-up", "compile all loops now, once on this machine, not when they are needed", None, _warm_up),
)  # fmt: skip


@contextlib.contextmanager
def _phase(text: str, rows: int = 0) -> Iterator[Callable[[int, int], None]]:
    """A line on a terminal that says what is being done, with a bar where `rows` are counted; gone afterwards.

    Elsewhere, in a pipe or a job's log, a line every MINUTE.
    """
    from tqdm import tqdm

    watched, over = sys.stderr.isatty(), threading.Event()
    file = sys.stderr if watched else io.StringIO()

    def tell(minutes: int = 0) -> None:
        while not over.wait(MINUTE):
            minutes += 1
            counted = f", {bar.n:,} of {rows:,} rounds" if rows else ""
            print(f"pld-shuffle: {text}: {minutes} min{counted}", file=sys.stderr, flush=True)

    form = None if rows else "{desc} ..."
    with tqdm(desc=text, total=rows or None, unit="round", leave=False, file=file, bar_format=form) as bar:
        if not watched:
            threading.Thread(target=tell, daemon=True).start()
        try:
            yield lambda done, total: bar.update(done - bar.n)
        finally:
            over.set()


def _one_line(error: BaseException | str) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _run(arguments: argparse.Namespace, started: float, known: Callable[[], object]) -> int:
    remarkable = (pld_shuffle.AccuracyWarning, pld_shuffle.UnlikelyWarning)
    report: Report | None = None
    stopped = ""  # what kept the command from its end
    status = 0
    with warnings.catch_warnings(record=True) as caught:
        for category in remarkable:
            warnings.simplefilter("always", category)
        try:
            for report in arguments.run(arguments):  # noqa: B007
                known()
        except KeyboardInterrupt:
            stopped, status = "interrupted" if report else "interrupted: nothing was known by then", INTERRUPTED
        except (MemoryError, ArithmeticError) as error:
            stopped, status = f"gave up: {_one_line(error)}", GAVE_UP
    if report is None:
        if stopped:
            print(f"pld-shuffle: {stopped}", file=sys.stderr)
        return status
    if stopped:
        report.notes.append(f"{stopped}: this is what was known by then")
    remarks = [_one_line(str(one.message)) for one in caught if issubclass(one.category, remarkable)]
    for warning in caught:
        if not issubclass(warning.category, remarkable):
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    report.values["warnings"] = list(dict.fromkeys(remarks))
    report.values["seconds"] = round(time.perf_counter() - started, 3)
    for kind, texts in (("note", report.notes), ("warning", report.values["warnings"])):
        for text in texts:
            print(f"pld-shuffle: {kind}: {text}", file=sys.stderr)
    text = json.dumps(report.json(), indent=2, allow_nan=False) if arguments.json else "\n".join(report.lines())
    print(text, flush=True)
    return status or (EXCEEDED if report.exceeded else 0)


def main(argv: Sequence[str] | None = None, known: Callable[[], object] = lambda: None) -> int:
    """Run the command line and return its exit status.

    argv : the arguments, by default those of the process. known : called as soon as an interrupt leaves an answer.
    """
    started = time.perf_counter()
    try:
        return _run(_parsed(argv), started, known)
    except _BadInput as error:
        print(f"pld-shuffle: error: {_one_line(error)}", file=sys.stderr)
        return BAD_INPUT
    except OSError as error:  # of standard output
        # The rest of the output goes nowhere, the flush at exit included.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return READER_LEFT
        print(f"pld-shuffle: gave up: cannot write the answer: {error.strerror or error}", file=sys.stderr)
        return GAVE_UP
    except KeyboardInterrupt:
        return INTERRUPTED
    except SystemExit as leaving:  # --help, --version
        return leaving.code if isinstance(leaving.code, int) else 0
