"""Sweeps: the same question at many settings, on all cores, resumable.

A plan is a mapping of fields (see `fields`): those of a training log's row, `rounds` equal rounds (default 1), and
`delta` or `epsilon`. An answer depends on nothing but its plan. A sweep begins in this process; what is left after a
moment goes to worker processes, if there are cores for them. Rows are written in the order of the plans as they come
back: what a killed sweep loses is at most what was finished behind a slower plan.
"""

from __future__ import annotations

import contextlib
import itertools
import numbers
import os
import signal
import sys
import threading
import time
from collections.abc import Generator, Iterable, Mapping
from typing import Any

from .accountant import Accountant
from .fields import PLAN_FIELDS, QUESTION_FIELDS, FieldError, Value, mechanism_from_values, values_of
from .numerics.tuning import PATIENCE
from .numerics.validation import positive_int, tolerance
from .storage import growing_table

ANSWERS = ("epsilon_lower", "epsilon_upper", "delta_lower", "delta_upper", "seconds", "error")
COLUMNS = PLAN_FIELDS + ANSWERS

Row = dict[str, Any]
#: The values of a plan, and what identifies them in a table, both in the order of the fields.
Plan = dict[str, Value]
Key = tuple[tuple[str, Any], ...]


def grid(**fields: Any) -> list[Row]:
    """All combinations of the given values as plans; the last field changes fastest. None: not given.

    >>> grid(n=[1000, 2000], eps0=1.0)
    [{'n': 1000, 'eps0': 1.0}, {'n': 2000, 'eps0': 1.0}]
    """
    single = (str, numbers.Real, type(None))
    values = [[value] if isinstance(value, single) else list(value) for value in fields.values()]
    return [dict(zip(fields, chosen, strict=True)) for chosen in itertools.product(*values)]


def sweep(
    plans: Iterable[Mapping[str, Any]], *, delta: float | None = None, epsilon: float | None = None, rtol: float = 1e-3,
    output: str | os.PathLike[str] | None = None, workers: int | None = None, progress: bool | None = None,
) -> list[Row]:  # fmt: skip
    """Certified epsilon (or delta) of every plan, as a table: one dict per plan, in the order of `plans`.

    plans : mappings of fields (see the module) to numbers or texts; None and "" count as not given.
    delta | epsilon : the question for plans that have neither of the two.
    rtol : as for `Accountant`, for plans without one.
    output : a file that grows by a row per plan, .csv. If it is there, its rows are taken over and only the other plans
        are computed: call again with the same arguments to resume. Rows with an error are tried again, and written
        again only if the answer is another. One sweep at a time may write to it.
    workers : processes to start. By default, as many as there are cores, as soon as the sweep
        turns out to take more than a moment; 1 computes in this process.
    progress : show a bar on standard error; by default if that is a terminal.

    Every row has the keys `COLUMNS`: the fields (None: not given), ``epsilon_lower`` and ``epsilon_upper``
    (or ``delta_...``), ``seconds``, and ``error``: None, or why this plan has no answer. Equal plans are computed
    once. Raises TypeError or ValueError, before anything is computed, for an argument or a plan of another form (an
    unknown field, no question, a text that is no number); a value that its mechanism refuses is that row's error. After
    KeyboardInterrupt, or if a worker dies, the rows in `output` are complete. A script needs no main guard.

    >>> [row] = sweep([{"n": 10_000, "eps0": 4, "rounds": 10}], delta=1e-6, workers=1)
    >>> round(row["epsilon_upper"], 3)
    1.385
    """
    defaults = {"rounds": 1, "rtol": tolerance("rtol", rtol)}
    question = values_of({"delta": delta, "epsilon": epsilon}, QUESTION_FIELDS)
    if len(question) > 1:
        raise ValueError(f"give at most one of delta and epsilon, got {delta!r} and {epsilon!r}")
    meant = [_values(plan, f"plans[{i}]", defaults, question) for i, plan in enumerate(plans)]
    keys = [tuple(_row(plan).items()) for plan in meant]
    wanted = dict(zip(keys, meant, strict=True))
    count = None if workers is None else positive_int("workers", workers)

    from tqdm import tqdm

    rows: dict[Key, Row] = {}
    failed: dict[Key, str] = {}
    with contextlib.ExitStack() as stack:
        held, append = ([], None) if output is None else stack.enter_context(growing_table(output, COLUMNS))
        for row in held:
            plan = values_of({name: row[name] for name in PLAN_FIELDS}, PLAN_FIELDS)
            key = tuple(plan.items())
            if row["error"] is not None:
                failed[key] = row["error"]
                continue
            numbers = {name: float(text) for name in ANSWERS[:-1] if (text := row[name])}
            rows[key] = dict.fromkeys(COLUMNS) | plan | numbers
        todo = [key for key in wanted if key not in rows]
        answers = stack.enter_context(contextlib.closing(_answers([wanted[key] for key in todo], count)))
        done, off = len(wanted) - len(todo), None if progress is None else not progress  # None: off a terminal
        bar = tqdm(answers, total=len(wanted), initial=done, unit="plan", file=sys.stderr, disable=off)
        for key, found in zip(todo, stack.enter_context(contextlib.closing(bar)), strict=True):
            row = rows[key] = dict.fromkeys(COLUMNS) | dict(key) | found
            if append is not None and (row["error"] is None or row["error"] != failed.get(key)):
                append(row)
    return [dict(rows[key]) for key in keys]


def answer(plan: Plan) -> Row:
    """The answers to one plan; never raises an Exception, it is the row's error."""
    begin = time.perf_counter()
    found: Row = {}
    try:
        given = dict(plan)
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


def _values(plan: Mapping[str, Any], place: str, defaults: Mapping[str, Value], question: Mapping[str, Value]) -> Plan:
    """What a plan says, by the kinds of its fields, in their order, with what it leaves to the call."""
    if not isinstance(plan, Mapping):
        raise TypeError(f"{place} must be a mapping of fields, got {plan!r}")
    try:
        given = values_of(plan, PLAN_FIELDS)
    except FieldError as error:
        raise FieldError(f"{place}: {error.field}", error.reason) from error
    except (TypeError, ValueError) as error:
        raise type(error)(f"{place}: {error}") from error
    asked = {"delta", "epsilon"} & given.keys()
    if len(asked or question) != 1:
        got = "both" if asked else "neither"
        raise ValueError(f"{place}: give one of delta and epsilon, got {got}")
    mechanism = "shuffled" if "randomizer" in given else "ldp"
    found = {"mechanism": mechanism, **defaults, **({} if asked else question), **given}
    return {name: found[name] for name in PLAN_FIELDS if name in found}


def _row(plan: Plan) -> Row:
    """The fields of a plan as a table holds them."""
    return {name: v if isinstance(v, (int, float, str)) else " ".join(repr(v).split()) for name, v in plan.items()}


def _answers(plans: list[Plan], workers: int | None) -> Generator[Row, None, None]:
    """The answers in order; plans not yet begun are cancelled when this is closed."""
    from loky import cpu_count  # that this process may use

    count = cpu_count() if workers is None else workers
    begin = time.monotonic()
    done = 0
    while done < len(plans) and (
        min(count, len(plans) - done) < 2 or (workers is None and time.monotonic() - begin < PATIENCE)
    ):
        yield answer(plans[done])
        done += 1
    if done < len(plans):
        with _processes(min(count, len(plans) - done)) as pool:
            yield from pool.map(answer, plans[done:])


def _processes(workers: int) -> Any:
    """New processes, which do not run the calling script: it needs no main guard."""
    from loky.process_executor import ProcessPoolExecutor

    return ProcessPoolExecutor(workers, initializer=_start_worker, initargs=(os.getpid(),))


def _start_worker(parent: int) -> None:
    """Leave interrupts to the parent process, and end when it ends, however that happens."""

    def end_with_it() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=end_with_it, daemon=True).start()


__all__ = ["COLUMNS", "grid", "sweep"]
