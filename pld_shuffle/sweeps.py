"""Sweeps: the same question at many settings, on all cores, resumable.

A plan is a mapping of fields: those of a training log's row (`trainlog`: mechanism, n, eps0, k, gamma,
adversary, analysis, population, rate, ...), `rounds` equal rounds (default 1), and `delta` or `epsilon`.
Every plan gets an accountant of its own, so an answer depends on nothing but its plan: not on the order,
the number of workers, or whether the sweep was interrupted.

Only `map` of an executor is used: settings out one by one, answers back in order. A free worker takes the
next plan, so the workers' idle time at the end is at most the dearest plan's. Rows are written as they come
back; what a killed sweep loses is at most what was finished behind a slower plan.
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
from .tables import GrowingTable, Row, text_of, to_csv, to_json, value_of
from .trainlog import COLUMNS as LOG_COLUMNS
from .trainlog import integer_from_text, mechanism_from_fields, number_from_text
from .validation import nonnegatives, positive_int, probabilities, real, tolerance

MECHANISM_FIELDS = tuple(name for name in LOG_COLUMNS if name not in ("round", "count"))
QUESTION_FIELDS = ("rounds", "delta", "epsilon", "rtol")
ANSWERS = ("epsilon_lower", "epsilon_upper", "delta_lower", "delta_upper", "seconds", "error")
FIELDS = MECHANISM_FIELDS + QUESTION_FIELDS
COLUMNS = FIELDS + ANSWERS

#: A plan in its one canonical form: (field, text) for every field that is given, in the order of FIELDS.
Key = tuple[tuple[str, str], ...]


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
    executor: Executor | None = None,
    workers: int | None = None,
    progress: bool | None = None,
) -> list[Row]:
    """Certified epsilon (or delta) of every plan, as a table: one dict per plan, in the order of `plans`.

    Parameters
    ----------
    plans : mappings of fields (see the module) to numbers or texts; None and "" count as not given.
    delta | epsilon : the question for plans that have neither of the two.
    rtol : as for `Accountant`, for plans without one.
    output : a file that grows by a row per plan, .csv or .jsonl. If it is there, its rows are taken over
        and only the other plans are computed: call again with the same arguments to resume. Rows with an
        error are tried again, and written again only if the answer is another. One sweep at a time may
        write to it.
    executor : any `concurrent.futures.Executor` (dask: ``client.get_executor()``); stays open.
    workers : processes to start otherwise; as many as there are cores by default, 1 computes in this
        process.
    progress : show a bar on standard error; by default if that is a terminal.

    Every row has the keys `COLUMNS`: the fields (None: not given), ``epsilon_lower`` and ``epsilon_upper``
    (or ``delta_...``), ``seconds``, and ``error``: None, or why this plan has no answer. The first plan of a
    process includes the loading of numerical libraries in its seconds. Equal plans are computed once. An
    `AccuracyWarning` goes to the standard error of the process that computes; the bracket is certified.

    Raises TypeError or ValueError, before anything is computed, for an argument or a plan of another form
    (an unknown field, no question); a bad *value* in a plan is that row's error. After KeyboardInterrupt, or
    if a worker dies, the rows in `output` are complete.

    Processes are started afresh ("spawn"), so a script needs the usual guard:

        if __name__ == "__main__":
            rows = sweep(grid(n=[10**4, 10**5], eps0=[1, 2, 4]), delta=1e-6, output="sweep.csv")

    >>> [row] = sweep([{"n": 10_000, "eps0": 4, "rounds": 10}], delta=1e-6, workers=1)
    >>> round(row["epsilon_upper"], 3)
    1.397
    """
    defaults = {"mechanism": "ldp", "rounds": "1", "rtol": text_of(tolerance("rtol", rtol))}
    question = _question(delta, epsilon)
    keys = [_key(plan, f"plans[{i}]", defaults, question) for i, plan in enumerate(plans)]
    count = _cores() if workers is None else positive_int("workers", workers)
    if executor is not None and not isinstance(executor, Executor):
        raise TypeError(f"executor must be a concurrent.futures.Executor, got {executor!r}")
    if executor is not None and workers is not None:
        raise ValueError(f"give at most one of executor and workers, got {workers!r} workers")

    rows: dict[Key, Row] = {}
    with contextlib.ExitStack() as stack:
        table = None if output is None else stack.enter_context(GrowingTable(output, COLUMNS))
        failed: dict[Key, str] = {}
        for row in table.rows if table is not None else []:
            if row["error"] is None:
                rows[_key_of_row(row)] = row
            else:
                failed[_key_of_row(row)] = row["error"]
        todo = [key for key in dict.fromkeys(keys) if key not in rows]
        done = len(set(keys)) - len(todo)
        bar = stack.enter_context(_bar(progress, done, len(todo)))
        run = stack.enter_context(_mapping(executor, min(count, len(todo))))
        with contextlib.closing(_answers(run, todo)) as answers:
            for key, found in zip(todo, answers, strict=True):
                row = dict.fromkeys(COLUMNS) | {name: value_of(text) for name, text in key} | found
                rows[key] = row
                if table is not None and (row["error"] is None or row["error"] != failed.get(key)):
                    table.append(row)
                bar()
    return [dict(rows[key]) for key in keys]


def answer(plan: Mapping[str, str]) -> Row:
    """The answers to one plan of texts; never raises an Exception, it is the row's error."""
    begin = time.perf_counter()
    found: Row = dict.fromkeys(ANSWERS)
    try:
        accountant = Accountant(number_from_text("rtol", plan["rtol"]))
        mechanism = mechanism_from_fields({f: plan[f] for f in MECHANISM_FIELDS if f in plan})
        accountant.compose(mechanism, integer_from_text("rounds", plan["rounds"]))
        if "delta" in plan:
            bounds = accountant.epsilon_bounds(number_from_text("delta", plan["delta"]))
            answered = "epsilon"
        else:
            bounds = accountant.delta_bounds(number_from_text("epsilon", plan["epsilon"]))
            answered = "delta"
        found[f"{answered}_lower"] = float(bounds.lower)
        found[f"{answered}_upper"] = float(bounds.upper)
    except Exception as error:  # whatever it is, the other plans go on
        found["error"] = " ".join(f"{type(error).__name__}: {error}".split())
    found["seconds"] = time.perf_counter() - begin
    return found


# --- plans -----------------------------------------------------------------------------------


def _question(delta: float | None, epsilon: float | None) -> dict[str, str]:
    if delta is not None and epsilon is not None:
        raise ValueError(f"give at most one of delta and epsilon, got {delta!r} and {epsilon!r}")
    if delta is not None:
        return {"delta": text_of(float(probabilities("delta", real("delta", delta))))}
    if epsilon is not None:
        return {"epsilon": text_of(float(nonnegatives("epsilon", real("epsilon", epsilon))))}
    return {}


def _key(
    plan: Mapping[str, Any], place: str, defaults: Mapping[str, str], question: Mapping[str, str]
) -> Key:
    """The canonical form of a plan."""
    if not isinstance(plan, Mapping):
        raise TypeError(f"{place} must be a mapping of fields, got {plan!r}")
    texts = {}
    for name, value in plan.items():
        if name not in FIELDS:
            raise ValueError(f"{place}: unknown field {name!r}; known are {', '.join(FIELDS)}")
        if value is None or (isinstance(value, str) and not value.strip()):
            continue
        try:
            texts[name] = text_of(value)
        except TypeError as error:
            raise TypeError(f"{place}: {name} {error}") from error
    if not {"delta", "epsilon"} & texts.keys():
        texts |= question
    asked = {"delta", "epsilon"} & texts.keys()
    if len(asked) != 1:
        got = "both" if asked else "neither"
        raise ValueError(f"{place}: give one of delta and epsilon, got {got}")
    texts = {**defaults, **texts}
    return tuple((name, texts[name]) for name in FIELDS if name in texts)


def _key_of_row(row: Row) -> Key:
    return tuple((name, text_of(row[name])) for name in FIELDS if row[name] is not None)


# --- workers ---------------------------------------------------------------------------------

Map = Callable[[Callable[[Mapping[str, str]], Row], list[dict[str, str]]], Iterable[Row]]


def _cores() -> int:
    """The cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextlib.contextmanager
def _mapping(executor: Executor | None, workers: int) -> Iterator[Map]:
    """`map` of the executor handed in, of this process, or of new processes."""
    if executor is not None:
        yield executor.map
    elif workers <= 1:
        yield map
    else:
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor

        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(workers, context, _start_worker) as pool:
            yield pool.map


def _answers(run: Map, todo: list[Key]) -> Generator[Row, None, None]:
    """The answers in order; plans not yet begun are cancelled when this is closed."""
    yield from run(answer, [dict(key) for key in todo])


def _start_worker() -> None:
    """Leave interrupts to the parent process, and end when it ends, however that happens."""
    import multiprocessing
    import threading

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    from multiprocessing.connection import wait

    wait([sentinel])
    os._exit(1)


@contextlib.contextmanager
def _bar(progress: bool | None, done: int, todo: int) -> Iterator[Callable[[], object]]:
    if not (sys.stderr.isatty() if progress is None else progress):
        yield lambda: None
        return
    from tqdm import tqdm

    with tqdm(total=done + todo, initial=done, unit="plan", file=sys.stderr) as bar:
        yield bar.update


__all__ = ["COLUMNS", "grid", "sweep", "to_csv", "to_json"]
