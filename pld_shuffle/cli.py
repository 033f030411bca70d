"""The command ``pld-shuffle``: account, ask, compare with the bounds of the literature, or plan.

Here is what a person may give: the flags, which are the fields of `fields` read by their own types, and one
line for anything that is wrong. What they get is in `report`. Exit statuses are in `STATUSES`, the keys of
the JSON in docs/command_line.md.

Nothing heavy (numpy, numba, matplotlib) is imported before the arguments are known to be sound.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from . import __version__
from .fields import (
    FIELDS,
    MECHANISM_FIELDS,
    MECHANISMS,
    RANDOMIZERS,
    Field,
    FieldError,
    kind_lines,
    mechanism_from_values,
)

if TYPE_CHECKING:
    from .accountant import Accountant
    from .report import Report
    from .trainlog import TrainingLog


GAVE_UP, BAD_INPUT, INTERRUPTED, READER_LEFT = 1, 2, 130, 141
STATUSES = f"""exit status:
  0    an answer
  {GAVE_UP}    the computation itself gave up; one line on standard error says why
  {BAD_INPUT}    bad input, or a plan that cannot meet its target; one line on standard error, nothing else
  {INTERRUPTED}  interrupted
  {READER_LEFT}  the reader of the output went away"""

#: Logs of this many rows and more get a progress bar, if standard error is a terminal.
LONG_LOG = 100

#: What `plan` can look for.
SOLVABLE = tuple(name for name, known in FIELDS.items() if known.range is not None)
_WORDS = {"mechanism": tuple(MECHANISMS), "randomizer": tuple(RANDOMIZERS)}


class _BadInput(Exception):
    """Something the person gave is wrong; the text is the line they see."""


# --- the flags -------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _BadInput(message)


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
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
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

    command = partial(_add_command, commands)
    curve = "delta against epsilon"

    account = command(
        "account", "account a training log: epsilon in all, and spent after each round", _account,
        "epsilon after each round",
    )  # fmt: skip
    _add_log(account)

    epsilon = command("epsilon", "epsilon of equal rounds at a delta", _epsilon, curve)
    _add_mechanism(epsilon)
    _add_field(epsilon, FIELDS["delta"], _PROBABILITY, nargs="+", required=True)

    delta = command("delta", "delta of equal rounds at an epsilon", _delta, curve)
    _add_mechanism(delta)
    _add_field(delta, FIELDS["epsilon"], _NONNEGATIVE, nargs="+", required=True)

    compare = command(
        "compare", "all published bounds on epsilon that are valid for equal rounds", _compare,
        "the bounds side by side",
    )  # fmt: skip
    _add_mechanism(compare)
    _add_field(compare, FIELDS["delta"], _ranged(lambda x: 0 < x < 1, "in (0, 1)"), required=True)

    plan = command(
        "plan", "the parameter that just meets an epsilon at a delta, safe side", _plan, curve
    )
    plan.add_argument(
        "--solve",
        metavar="WHAT",
        required=True,
        type=_one_of(SOLVABLE),
        choices=SOLVABLE,
        help="largest eps0, rounds or rate; smallest n, gamma, sigma, scale or population; with"
        " --population, largest n",
    )
    _add_mechanism(plan, rounds=None)
    _add_field(plan, FIELDS["epsilon"], _NONNEGATIVE, required=True, help="the target, e.g. 2")
    _add_field(plan, FIELDS["delta"], _PROBABILITY, required=True)
    return parser


def _add_command(
    commands: Any,
    name: str,
    summary: str,
    run: Callable[[argparse.Namespace], Report],
    picture: str,
) -> Any:
    """A command with the flags that all of them have; `picture` : what its --plot draws."""
    added = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog="\n".join((*kind_lines(), "", STATUSES)),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    added.set_defaults(run=run)
    added.add_argument("--json", action="store_true", help="print one JSON object")
    added.add_argument("--plot", metavar="FILE", help=f"draw {picture} (.png, .pdf, .svg)")
    _add_field(added, FIELDS["rtol"], default=1e-3)
    return added


def _add_log(account: argparse.ArgumentParser) -> None:
    """The log, and what is asked about it."""
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
    _add_field(account, FIELDS["delta"], _PROBABILITY, required=True)
    _add_field(
        account,
        FIELDS["epsilon"],
        _NONNEGATIVE,
        nargs="+",
        help="also give delta here (default: a few)",
    )
    account.add_argument(
        "--every",
        metavar="K",
        type=_read(Field("every", int, "K", ""), _at_least(1)),
        help="epsilon after every K-th row (default: so that there are at most 20)",
    )


def _add_mechanism(parser: argparse.ArgumentParser, rounds: int | None = 1) -> None:
    for known in MECHANISM_FIELDS.values():
        _add_field(parser, known)
    _add_field(parser, FIELDS["rounds"], _at_least(1), default=rounds)


_Check = Callable[[Any], None]


def _add_field(
    parser: argparse.ArgumentParser, known: Field, check: _Check | None = None, **options: Any
) -> None:
    """A flag for a field, with underscores as dashes."""
    words = _WORDS.get(known.name)
    read = _read(known, check) if words is None else _one_of(words)
    given = {"metavar": known.metavar, "help": known.help, "type": read, "choices": words}
    parser.add_argument(_flag(known.name), **{**given, **options})


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _read(known: Field, check: _Check | None) -> Callable[[str], Any]:
    """From the text of a flag to the field's value."""

    def read(text: str) -> Any:
        try:
            value = known.parse(text)
        except FieldError as error:
            raise argparse.ArgumentTypeError(error.reason) from error
        if check is not None:
            check(value)
        return value

    return read


def _ranged(allowed: Callable[[Any], bool], what: str) -> _Check:
    def check(value: Any) -> None:
        if not allowed(value):
            raise argparse.ArgumentTypeError(f"must be {what}, got {value!r}")

    return check


def _at_least(least: int) -> _Check:
    return _ranged(lambda value: value >= least, f"at least {least}")


_PROBABILITY, _NONNEGATIVE = _ranged(lambda x: 0 <= x <= 1, "in [0, 1]"), _at_least(0)


def _one_of(words: Sequence[str]) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in words:
            raise argparse.ArgumentTypeError(f"must be one of {', '.join(words)}, got {text!r}")
        return text

    return read


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


def _given(arguments: argparse.Namespace, *also: str) -> dict[str, Any]:
    """The values of the fields that were given."""
    values = {name: getattr(arguments, name) for name in (*MECHANISM_FIELDS, *also)}
    return {name: value for name, value in values.items() if value is not None}


def _new_accountant(arguments: argparse.Namespace) -> Accountant:
    from .accountant import Accountant

    with _blaming("rtol"):
        return Accountant(rtol=arguments.rtol)


def _check_plot_path(path: str | None) -> None:
    """Find out before the computation, not after it, that a picture cannot be written."""
    if path is None:
        return
    from .plots import check_picture_path

    with _blaming("plot"):
        check_picture_path(path)


def _equal_rounds(arguments: argparse.Namespace) -> Accountant:
    accountant = _new_accountant(arguments)
    with _blaming():
        mechanism = mechanism_from_values(_given(arguments))
    _check_plot_path(arguments.plot)
    return accountant.compose(mechanism, arguments.rounds)


def _read_log(arguments: argparse.Namespace) -> TrainingLog:
    from .trainlog import SAMPLE, LogError, training_log

    if arguments.sample == (arguments.log is not None):
        raise _BadInput("give a log, or - for standard input, or --sample")
    try:
        return training_log(SAMPLE if arguments.sample else arguments.log)
    except LogError as error:
        raise _BadInput(str(error)) from error
    except OSError as error:
        raise _BadInput(f"cannot read {arguments.log!r}: {error.strerror or error}") from error


def _draw(path: str | None, draw: Callable[..., None], *what: Any) -> None:
    """Draw the picture, if one is wanted."""
    if path is None:
        return
    try:
        draw(path, *what)
    except OSError as error:
        raise _BadInput(f"cannot write {path!r}: {error.strerror or error}") from error


# --- the commands ----------------------------------------------------------------------------


def _account(arguments: argparse.Namespace) -> Report:
    with _status(f"reading {arguments.log or 'the sample'}"):
        accountant = _new_accountant(arguments)
        _check_plot_path(arguments.plot)
        log = _read_log(arguments)

        from .report import Report, draw_trajectory, row_step, telling_epsilons
        from .trajectory import epsilon_trajectory

        for mechanism, count in log.rounds:
            accountant.compose(mechanism, count)
    with _progress_bar(len(log.rounds)) as progress:
        trajectory = epsilon_trajectory(
            log.rounds, arguments.delta, every=arguments.every or row_step(len(log.rounds)),
            rtol=arguments.rtol, progress=progress,
        )  # fmt: skip
    with _status("asking for epsilon and delta"):
        report = Report("account", log.rounds, arguments.rtol, {"log": log.name}, [*log.notes])
        spent = accountant.epsilon_bounds(arguments.delta)
        report.add_epsilons(accountant, [arguments.delta], [spent])
        epsilons = arguments.epsilon or telling_epsilons(float(spent.upper))
        report.add_deltas(accountant, epsilons)
        report.add_trajectory(trajectory)
    _draw(arguments.plot, draw_trajectory, trajectory, f"{log.name}, δ = {arguments.delta:g}")
    return report


def _epsilon(arguments: argparse.Namespace) -> Report:
    accountant = _equal_rounds(arguments)

    from .report import Report, draw_curve

    report = Report("epsilon", accountant.ledger, arguments.rtol)
    bounds = [accountant.epsilon_bounds(delta) for delta in arguments.delta]
    report.add_epsilons(accountant, arguments.delta, bounds)
    marks = [(found.upper, delta) for delta, found in zip(arguments.delta, bounds, strict=True)]
    _draw(arguments.plot, draw_curve, accountant, marks)
    return report


def _delta(arguments: argparse.Namespace) -> Report:
    accountant = _equal_rounds(arguments)

    from .report import Report, draw_curve

    report = Report("delta", accountant.ledger, arguments.rtol)
    report.add_deltas(accountant, arguments.epsilon)
    marks = [(row["epsilon"], row["upper"]) for row in report.values["delta_bounds"]]
    _draw(arguments.plot, draw_curve, accountant, marks)
    return report


def _compare(arguments: argparse.Namespace) -> Report:
    accountant = _equal_rounds(arguments)

    from .comparison import compare
    from .report import Report, draw_comparison

    ((mechanism, count),) = accountant.ledger
    with _blaming():
        found = compare(mechanism, delta=arguments.delta, rounds=count, rtol=accountant.rtol)
    report = Report("compare", accountant.ledger, arguments.rtol)
    report.add_comparison(accountant, found)
    _draw(arguments.plot, draw_comparison, found)
    return report


def _plan(arguments: argparse.Namespace) -> Report:
    rtol = _new_accountant(arguments).rtol
    _check_plot_path(arguments.plot)

    from .calibration import solve
    from .report import Report, draw_curve

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


# --- a long wait -----------------------------------------------------------------------------


@contextlib.contextmanager
def _status(text: str) -> Iterator[None]:
    """A line on a terminal that says what is being done; it is gone afterwards."""
    shown = sys.stderr.isatty()
    if shown:
        print(f"{text} ...", end="\r", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        if shown:
            print(" " * (len(text) + 4), end="\r", file=sys.stderr, flush=True)


@contextlib.contextmanager
def _progress_bar(rows: int) -> Iterator[Callable[[int, int], None] | None]:
    if rows < LONG_LOG or not sys.stderr.isatty():
        yield None
        return
    from tqdm import tqdm

    with tqdm(total=rows, unit="round", leave=False, file=sys.stderr) as bar:

        def advance(done: int, total: int) -> None:
            bar.total = total
            bar.update(max(done - bar.n, 0))

        yield advance


# --- running ---------------------------------------------------------------------------------


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _run(arguments: argparse.Namespace, started: float) -> None:
    from .composition.attempts import AccuracyWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", AccuracyWarning)
        report: Report = arguments.run(arguments)
    remarks = []
    for warning in caught:
        if issubclass(warning.category, AccuracyWarning):
            remarks.append(" ".join(str(warning.message).split()))
        else:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
    report.values["warnings"] = list(dict.fromkeys(remarks))
    report.values["seconds"] = round(time.perf_counter() - started, 3)
    for note in report.notes:
        print(f"pld-shuffle: note: {note}", file=sys.stderr)
    for remark in report.values["warnings"]:
        print(f"pld-shuffle: warning: {remark}", file=sys.stderr)
    if arguments.json:
        print(json.dumps(report.json(), indent=2, allow_nan=False))
    else:
        print("\n".join(report.lines()))
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
    return 0
