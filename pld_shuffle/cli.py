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
from typing import TYPE_CHECKING, Any, NoReturn

from . import __version__
from .fields import (
    FIELDS,
    MECHANISM_FIELDS,
    MECHANISMS,
    QUESTION_FIELDS,
    RANDOMIZERS,
    Field,
    FieldError,
    kind_lines,
    mechanism_from_values,
)
from .report import Report, deltas_around, draw_comparison, draw_curve, draw_trajectory, row_step

if TYPE_CHECKING:
    from .accountant import Accountant
    from .trainlog import TrainingLog


GAVE_UP, BAD_INPUT, INTERRUPTED, READER_LEFT = 1, 2, 130, 141
STATUSES = f"""exit status:
  0    an answer
  {GAVE_UP}    the computation itself gave up; one line on standard error says why
  {BAD_INPUT}    bad input, or a plan that cannot meet its target; one line on standard error, nothing else
  {INTERRUPTED}  interrupted; what `account` knew by then is printed
  {READER_LEFT}  the reader of the output went away"""

#: What `plan` can look for.
SOLVABLE = tuple(name for name, known in FIELDS.items() if known.range is not None)
#: Fields that say who took part; the other ones of a mechanism say what was sent.
WHO = ("n", "population", "rate", "sampling", "dropout", "rounds")
_WORDS = {"mechanism": tuple(MECHANISMS), "randomizer": tuple(RANDOMIZERS)}


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
            raise _BadInput(
                "shell completion needs shtab: python -m pip install 'pld-shuffle[completion]'"
            ) from error
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
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def command(run: Callable[..., Report], summary: str, picture: str, example: str) -> _Parser:
        """A command with the flags that all of them have; `picture` : what its --plot draws."""
        name = run.__name__.strip("_")
        text = f"{summary[0].upper()}{summary[1:]}.\n\nexample: pld-shuffle {name} {example}"
        epilog = "\n".join((*kind_lines(), "", STATUSES))
        added: _Parser = commands.add_parser(name, help=summary, description=text, epilog=epilog)
        added.set_defaults(run=run)
        added.add_argument("--json", action="store_true", help="print one JSON object")
        added.add_argument("--plot", metavar="FILE", help=f"draw {picture} (.png, .pdf, .svg)")
        added.add_fields("rtol", title="how accurately", default=1e-3)
        return added

    asked, curve = "what is asked", "delta against epsilon"

    account = command(
        _account, "account a training log: epsilon in all, and spent after each round",
        "epsilon after each round", "LOG.csv --delta 1e-6 --plot spent.png",
    )  # fmt: skip
    account.add_argument(
        "log",
        metavar="LOG.csv",
        nargs="?",
        help="one row per round, with the fields below as columns; also count, how many equal rounds a"
        " row stands for, and round, a label; - reads standard input",
    )
    account.add_argument(
        "--sample", action="store_true", help="account the made-up log that ships with the package"
    )
    account.add_argument(
        "--every",
        metavar="K",
        type=_read(Field("every", int, "K", "", least=1)),
        help="epsilon after every K-th row (default: so that there are at most 20)",
    )
    account.add_fields("delta", title=asked, required=True)
    account.add_fields("epsilon", title="what is asked besides", nargs="+", help="also delta here")

    epsilon = command(
        _epsilon, "epsilon of equal rounds at a delta", curve,
        "--eps0 4 --n 10000 --rounds 10 --delta 1e-6",
    )  # fmt: skip
    epsilon.add_mechanism()
    epsilon.add_fields("delta", title=asked, nargs="+", required=True)

    delta = command(
        _delta, "delta of equal rounds at an epsilon", curve,
        "--randomizer unary-encoding --k 16 --eps0 2 --n 10000 --epsilon 1",
    )  # fmt: skip
    delta.add_mechanism()
    delta.add_fields("epsilon", title=asked, nargs="+", required=True)

    compare = command(
        _compare, "all published bounds on epsilon that are valid for equal rounds",
        "the bounds side by side", "--eps0 4 --n 10000 --rounds 100 --delta 1e-6",
    )  # fmt: skip
    compare.add_mechanism()
    compare.add_fields("delta", title=asked, required=True)

    plan = command(
        _plan, "the parameter that just meets an epsilon at a delta, safe side", curve,
        "--solve eps0 --n 5000 --population 1000000 --rounds 2000 --epsilon 2 --delta 1e-6",
    )  # fmt: skip
    plan.add_argument(
        "--solve",
        metavar="WHAT",
        required=True,
        type=_one_of(SOLVABLE),
        choices=SOLVABLE,
        help="largest eps0, rounds or rate; smallest n, gamma, sigma, scale or population; with"
        " --population, largest n",
    )
    plan.add_mechanism(rounds=None)
    plan.add_fields("epsilon", "delta", title="the target", required=True)

    commands.add_parser(
        "warm-up", help="compile all loops now, once on this machine, not when they are needed"
    )
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
def _blaming(flag: str | None = None) -> Iterator[None]:
    """Turn a complaint about a value into the one line that names its flag."""
    try:
        yield
    except FieldError as error:
        raise _BadInput(f"argument {_flag(error.field)}: {error.reason}") from error
    except (TypeError, ValueError) as error:
        where = "" if flag is None else f"argument {_flag(flag)}: "
        raise _BadInput(f"{where}{error}") from error


@contextlib.contextmanager
def _file(path: str, verb: str) -> Iterator[None]:
    """The same for a file that cannot be read or written."""
    try:
        yield
    except OSError as error:
        raise _BadInput(f"cannot {verb} {path!r}: {error.strerror or error}") from error


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
    with _file(arguments.log, "read"), _blaming():
        return training_log(SAMPLE if arguments.sample else arguments.log)


def _draw(path: str | None, draw: Callable[..., None], *what: Any) -> None:
    """Draw the picture, if one is wanted."""
    if path is not None:
        with _phase("drawing"), _file(path, "write"):
            draw(path, *what)


# --- the commands ----------------------------------------------------------------------------


def _account(arguments: argparse.Namespace) -> Report:
    with _phase(f"reading {arguments.log or 'the sample'}"):
        accountant = _prepared(arguments)
        log = _read_log(arguments)

        from .trajectory import epsilon_trajectory

        for mechanism, count in log.rounds:
            accountant.compose(mechanism, count)
    rows, delta = len(log.rounds), arguments.delta
    report = Report("account", log.rounds, arguments.rtol, {"log": log.name}, [*log.notes])
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
    except KeyboardInterrupt:
        report.interrupted = True
        return report
    _draw(arguments.plot, draw_trajectory, trajectory, f"{log.name}, δ = {delta:g}")
    return report


def _epsilon(arguments: argparse.Namespace) -> Report:
    accountant = _equal_rounds(arguments)

    report = Report("epsilon", accountant.ledger, arguments.rtol)
    report.add_epsilons(accountant, arguments.delta)
    marks = [(row["upper"], row["delta"]) for row in report.values["epsilon_bounds"]]
    _draw(arguments.plot, draw_curve, accountant, marks)
    return report


def _delta(arguments: argparse.Namespace) -> Report:
    accountant = _equal_rounds(arguments)

    report = Report("delta", accountant.ledger, arguments.rtol)
    report.add_deltas(accountant, arguments.epsilon)
    marks = [(row["epsilon"], row["upper"]) for row in report.values["delta_bounds"]]
    _draw(arguments.plot, draw_curve, accountant, marks)
    return report


def _compare(arguments: argparse.Namespace) -> Report:
    accountant = _equal_rounds(arguments)

    from .comparison import compare

    ((mechanism, count),) = accountant.ledger
    with _blaming():
        found = compare(mechanism, delta=arguments.delta, rounds=count, rtol=accountant.rtol)
    report = Report("compare", accountant.ledger, arguments.rtol)
    report.add_comparison(accountant, found)
    _draw(arguments.plot, draw_comparison, found)
    return report


def _plan(arguments: argparse.Namespace) -> Report:
    rtol = _prepared(arguments).rtol

    from .calibration import solve

    with _blaming():
        found = solve(
            arguments.solve, _given(arguments, "rounds"), epsilon=arguments.epsilon,
            delta=arguments.delta, rtol=rtol,
        )  # fmt: skip
    report = Report("plan", found.ledger, rtol)
    report.add_plan(found)
    _draw(
        arguments.plot, draw_curve, found.accountant(), [(found.achieved.upper, found.delta)],
        (found.epsilon, found.delta),
    )  # fmt: skip
    return report


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

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", AccuracyWarning)
        report: Report = arguments.run(arguments)
    remarks = []
    for warning in caught:
        if issubclass(warning.category, AccuracyWarning):
            remarks.append(_one_line(str(warning.message)))
        else:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
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
    return INTERRUPTED if report.interrupted else 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status. argv : the arguments, by default those of the process."""
    started = time.perf_counter()
    try:
        arguments = _parsed(argv)
        if arguments.command == "warm-up":
            from .numerics.compiled import warm_up

            warm_up()
            return 0
        return _run(arguments, started)
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
