"""Sweeps: the same question at many settings, on all cores, resumable.

A plan is a mapping of fields (see `fields`): those of a training log's row, `rounds` equal rounds (default
1), and `delta` or `epsilon`. Every plan gets an accountant of its own, so an answer depends on nothing but
its plan: not on the order, the number of workers, or whether the sweep was interrupted.

A sweep begins in this process. What is left after a moment goes to worker processes, if there are cores for
them: starting one costs about a second. A free worker takes the next plan, and rows are written in the order of the
plans as they come back: what a killed sweep loses is at most what was finished behind a slower plan.
"""

from __future__ import annotations

import contextlib
import itertools
import numbers
import os
import signal
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import Executor
from typing import Any

from .accountant import Accountant
from .fields import (
    FIELDS,
    PLAN_FIELDS,
    QUESTION_FIELDS,
    FieldError,
    Value,
    mechanism_from_values,
    near_miss,
    values_of,
)
from .numerics.tuning import PATIENCE
from .numerics.validation import nonnegatives, positive_int, probabilities, real, tolerance
from .storage import GrowingTable, Row, text_of

ANSWERS = ("epsilon_lower", "epsilon_upper", "delta_lower", "delta_upper", "seconds", "error")
COLUMNS = PLAN_FIELDS + ANSWERS

#: A plan in its one canonical form: (field, value) for every field that is given, in the order of the fields.
#: A value that is none of its field's kind stays a text; it is the row's error.
Key = tuple[tuple[str, Value], ...]


def grid(**fields: Any) -> list[Row]:
    """All combinations of the given values as plans; the last field changes fastest. None: not given.

    >>> grid(n=[1000, 2000], eps0=1.0)
    [{'n': 1000, 'eps0': 1.0}, {'n': 2000, 'eps0': 1.0}]
    """
    single = (str, numbers.Real, type(None))
    values = [[value] if isinstance(value, single) else list(value) for value in fields.values()]
    return [dict(zip(fields, chosen, strict=True)) for chosen in itertools.product(*values)]


def sweep(
    plans: Iterable[Mapping[str, Any]],
    *,
    delta: float | None = None,
    epsilon: float | None = None,
    rtol: float = 1e-3,
    output: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    progress: bool | None = None,
) -> list[Row]:
    """Certified epsilon (or delta) of every plan, as a table: one dict per plan, in the order of `plans`.

    Parameters
    ----------
    plans : mappings of fields (see the module) to numbers or texts; None and "" count as not given.
    delta | epsilon : the question for plans that have neither of the two.
    rtol : as for `Accountant`, for plans without one.
    output : a file that grows by a row per plan, .csv. If it is there, its rows are taken over
        and only the other plans are computed: call again with the same arguments to resume. Rows with an
        error are tried again, and written again only if the answer is another. One sweep at a time may
        write to it.
    workers : processes to start. By default, as many as there are cores, as soon as the sweep
        turns out to take more than a moment; 1 computes in this process.
    progress : show a bar on standard error; by default if that is a terminal.

    Every row has the keys `COLUMNS`: the fields (None: not given), ``epsilon_lower`` and ``epsilon_upper``
    (or ``delta_...``), ``seconds``, and ``error``: None, or why this plan has no answer. Equal plans are computed
    once. An `AccuracyWarning` goes to the standard error of the process that computes; the bracket is certified.

    Raises TypeError or ValueError, before anything is computed, for an argument or a plan of another form
    (an unknown field, no question); a bad *value* in a plan is that row's error. After KeyboardInterrupt, or
    if a worker dies, the rows in `output` are complete. A script needs no ``if __name__ == "__main__"`` around:

        rows = sweep(grid(n=[10**4, 10**5], eps0=[1, 2, 4]), delta=1e-6, output="sweep.csv")

    >>> [row] = sweep([{"n": 10_000, "eps0": 4, "rounds": 10}], delta=1e-6, workers=1)
    >>> round(row["epsilon_upper"], 3)
    1.385
    """
    defaults = {"rounds": 1, "rtol": tolerance("rtol", rtol)}
    question = _question(delta, epsilon)
    keys = [_key(plan, f"plans[{i}]", defaults, question) for i, plan in enumerate(plans)]
    count = None if workers is None else positive_int("workers", workers)

    rows: dict[Key, Row] = {}
    failed: dict[Key, str] = {}
    with contextlib.ExitStack() as stack:
        table = None if output is None else stack.enter_context(GrowingTable(output, COLUMNS))
        for row in table.rows if table is not None else []:
            key = _canonical({name: row[name] for name in PLAN_FIELDS if row[name] is not None})
            if row["error"] is None:
                rows[key] = row | dict(key)
            else:
                failed[key] = row["error"]
        todo = [key for key in dict.fromkeys(keys) if key not in rows]
        bar = stack.enter_context(_bar(progress, len(set(keys)) - len(todo), len(todo)))
        with contextlib.closing(_answers(todo, count)) as answers:
            for key, found in zip(todo, answers, strict=True):
                row = rows[key] = dict.fromkeys(COLUMNS) | dict(key) | found
                if table is not None and (row["error"] is None or row["error"] != failed.get(key)):
                    table.append(row)
                bar()
    return [dict(rows[key]) for key in keys]


def answer(plan: Mapping[str, Value]) -> Row:
    """The answers to one plan; never raises an Exception, it is the row's error."""
    begin = time.perf_counter()
    found: Row = {}
    try:
        given = values_of(plan, PLAN_FIELDS)
        asked: dict[str, Any] = {n: given.pop(n) for n in QUESTION_FIELDS if n in given}
        accountant = Accountant(asked["rtol"])
        accountant.compose(mechanism_from_values(given), asked["rounds"])
        if "delta" in asked:
            name, bounds = "epsilon", accountant.epsilon_bounds(asked["delta"])
        else:
            name, bounds = "delta", accountant.delta_bounds(asked["epsilon"])
        found = {f"{name}_lower": float(bounds.lower), f"{name}_upper": float(bounds.upper)}
    except Exception as error:  # whatever it is, the other plans go on
        found["error"] = " ".join(f"{type(error).__name__}: {error}".split())
    return found | {"seconds": time.perf_counter() - begin}


# --- plans -----------------------------------------------------------------------------------


def _question(delta: float | None, epsilon: float | None) -> dict[str, float]:
    if delta is not None and epsilon is not None:
        raise ValueError(f"give at most one of delta and epsilon, got {delta!r} and {epsilon!r}")
    if delta is not None:
        return {"delta": float(probabilities("delta", real("delta", delta)))}
    return (
        {}
        if epsilon is None
        else {"epsilon": float(nonnegatives("epsilon", real("epsilon", epsilon)))}
    )


def _key(
    plan: Mapping[str, Any],
    place: str,
    defaults: Mapping[str, float],
    question: Mapping[str, float],
) -> Key:
    """The canonical form of a plan."""
    if not isinstance(plan, Mapping):
        raise TypeError(f"{place} must be a mapping of fields, got {plan!r}")
    for name in plan:
        if name not in PLAN_FIELDS:
            near = near_miss(str(name), PLAN_FIELDS)
            known = f"known are {', '.join(PLAN_FIELDS)}"
            meant = known if near is None else f"did you mean {near!r}?"
            raise ValueError(f"{place}: unknown field {name!r}; {meant}")
    given = {
        name: value
        for name, value in plan.items()
        if not (value is None or (isinstance(value, str) and not value.strip()))
    }
    asked = {"delta", "epsilon"} & given.keys() or question.keys()
    if len(asked) != 1:
        got = "both" if asked else "neither"
        raise ValueError(f"{place}: give one of delta and epsilon, got {got}")
    if not asked & given.keys():
        given |= question
    mechanism = "shuffled" if "randomizer" in given else "ldp"
    try:
        return _canonical({"mechanism": mechanism, **defaults, **given})
    except TypeError as error:
        raise TypeError(f"{place}: {error}") from error


def _canonical(given: Mapping[str, Any]) -> Key:
    """Values by their fields' kinds, so that equal plans are equal; a bad value as a text."""
    found: list[tuple[str, Value]] = []
    for name in PLAN_FIELDS:
        if name in given:
            try:
                value = FIELDS[name].value(given[name])
            except FieldError:
                value = text_of(given[name])
            found.append((name, value if value == value else text_of(value)))  # nan is no number
    return tuple(found)


# --- workers ---------------------------------------------------------------------------------


def _answers(todo: list[Key], workers: int | None) -> Generator[Row, None, None]:
    """The answers in order; plans not yet begun are cancelled when this is closed."""
    plans = [dict(key) for key in todo]
    count = _cores() if workers is None else workers
    begin = time.monotonic()
    done = 0
    while done < len(plans) and (
        min(count, len(plans) - done) < 2
        or (workers is None and time.monotonic() - begin < PATIENCE)
    ):
        yield answer(plans[done])
        done += 1
    if done < len(plans):
        with _processes(min(count, len(plans) - done)) as pool:
            yield from pool.map(answer, plans[done:])


def _cores() -> int:
    """The cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextlib.contextmanager
def _processes(workers: int) -> Iterator[Executor]:
    """New processes, which do not run the calling script: it needs no main guard."""
    from loky.process_executor import ProcessPoolExecutor

    with ProcessPoolExecutor(workers, initializer=_start_worker, initargs=(os.getpid(),)) as pool:
        yield pool


def _start_worker(parent: int) -> None:
    """Leave interrupts to the parent process, and end when it ends, however that happens."""
    import threading

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


@contextlib.contextmanager
def _bar(progress: bool | None, done: int, todo: int) -> Iterator[Callable[[], object]]:
    if not (sys.stderr.isatty() if progress is None else progress):
        yield lambda: None
        return
    from tqdm import tqdm

    with tqdm(total=done + todo, initial=done, unit="plan", file=sys.stderr) as bar:
        yield bar.update


__all__ = ["COLUMNS", "grid", "sweep"]
