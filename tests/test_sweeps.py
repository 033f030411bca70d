"""Sweeps: the same numbers as single questions, whatever runs them, killed or not; tables that grow."""

from __future__ import annotations

import contextlib
import io
import itertools
import math
import multiprocessing
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pld_shuffle import Accountant, PoissonGaussian, Shuffled, ShuffledLDP, ShuffledRR, Subsampled, solve, sweeps
from pld_shuffle.fields import FieldError
from pld_shuffle.randomizers import DiscreteRandomizer, Laplace
from pld_shuffle.sweeps import COLUMNS, grid, sweep

NUMBERS = ("epsilon_lower", "epsilon_upper", "delta_lower", "delta_upper")

#: A plan, and what it means: mechanism, rounds, rtol.
MEANT: list[tuple[dict[str, Any], tuple[Any, int, float]]] = [
    ({"n": 1000, "eps0": 1.0, "rounds": 3}, (ShuffledLDP(1.0, 1000), 3, 1e-3)),
    ({"mechanism": "rr", "k": "4", "n": 500, "gamma": 0.25, "adversary": "weak", "epsilon": 0.5},
     (ShuffledRR(k=4, n=500, gamma=0.25, adversary="weak"), 1, 1e-3)),
    ({"n": 200, "eps0": "2", "population": 10**6, "rounds": 10, "delta": 1e-9, "rtol": 0.01},
     (Subsampled(ShuffledLDP(2.0, 200), population=10**6), 10, 0.01)),
    ({"mechanism": "rr", "k": 3, "n": 50, "eps0": 1.5, "delta": 0}, (ShuffledRR(k=3, n=50, eps0=1.5), 1, 1e-3)),
    ({"n": 100, "eps0": 4, "analysis": "clones", "rate": 0.1, "gamma": None, "adversary": ""},
     (Subsampled(ShuffledLDP(4.0, 100, analysis="clones"), rate=0.1), 1, 1e-3)),
    ({"randomizer": "laplace", "eps0": 1, "n": 50.0, "rate": 0.5},
     (Subsampled(Shuffled(Laplace(eps0=1.0), n=50), rate=0.5), 1, 1e-3)),
    ({"mechanism": "poisson-gaussian", "sigma": 1.0, "rate": 0.01, "rounds": "1e1"},
     (PoissonGaussian(sigma=1.0, rate=0.01), 10, 1e-3)),
]  # fmt: skip
PLANS = [plan for plan, _ in MEANT[:5]]


def agree(rows: list[dict[str, Any]], others: list[dict[str, Any]]) -> bool:
    """In all but the seconds; bounds to the last digits, as a process's first answers are interpreted and later ones
    compiled."""
    assert len(rows) == len(others)
    for (row, other), name in itertools.product(zip(rows, others, strict=True), COLUMNS):
        exact = row[name] == other[name] or name == "seconds"
        assert exact or (name in NUMBERS and row[name] == pytest.approx(other[name], rel=1e-12))
    return True


# -- answers


@pytest.mark.filterwarnings("ignore::pld_shuffle.composition.composition.AccuracyWarning")
def test_rows_are_the_answers_of_single_accountants() -> None:
    """Each bound is that of a new accountant composed by hand."""
    rows = sweep([plan for plan, _ in MEANT], delta=1e-6, workers=1)
    assert [tuple(row) for row in rows] == [COLUMNS] * len(rows)
    for row, (_, (mechanism, count, rtol)) in zip(rows, MEANT, strict=True):
        accountant = Accountant(rtol).compose(mechanism, count)
        asked, other = ("epsilon", "delta") if row["epsilon"] is None else ("delta", "epsilon")
        ask = accountant.epsilon_bounds if asked == "epsilon" else accountant.delta_bounds
        assert [row[f"{asked}_lower"], row[f"{asked}_upper"]] == pytest.approx(list(ask(row[other])), rel=1e-12)
        assert row[f"{other}_lower"] is None and row[f"{other}_upper"] is None
        assert row["error"] is None and row["seconds"] > 0.0
    assert rows[3]["epsilon_upper"] == math.inf
    assert (rows[0]["mechanism"], rows[0]["rounds"], rows[0]["delta"]) == ("ldp", 3, 1e-6)
    assert (rows[2]["delta"], rows[2]["rtol"], rows[2]["eps0"]) == (1e-9, 0.01, 2)
    assert rows[5]["mechanism"] == "shuffled" and type(rows[1]["k"]) is type(rows[5]["n"]) is int


def test_a_plan_that_fails_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bad values, and a computation that gives up, are named; the others go on."""
    changes: list[tuple[dict[str, Any], str]] = [
        ({"n": 0}, "n must"), ({"k": 3}, "'ldp'"), ({"rtol": 7}, "rtol"), ({"mechanism": "laplace noise"}, "mechanism"),
        ({}, ""),
    ]  # fmt: skip
    rows = sweep([{"n": 10, "eps0": 1} | change for change, _ in changes], delta=1e-3, workers=1)
    for row, (_, word) in zip(rows[:-1], changes, strict=False):
        assert word in row["error"] and all(row[name] is None for name in NUMBERS)
    assert rows[-1]["error"] is None and rows[-1]["epsilon_lower"] > 0.0

    def gives_up(self: Accountant, delta: float) -> Any:
        raise MemoryError("too many\nlattice points; raise rtol")

    monkeypatch.setattr(Accountant, "epsilon_bounds", gives_up)
    [row] = sweep([{"n": 10, "eps0": 1}], delta=1e-3)
    assert row["error"] == "MemoryError: too many lattice points; raise rtol"


def test_equal_plans_are_computed_once_however_they_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    real = sweeps.answer

    def counted(plan: Any) -> Any:
        asked.append(plan)
        return real(plan)

    monkeypatch.setattr(sweeps, "answer", counted)
    plans: list[dict[str, Any]] = [
        {"n": 100, "eps0": 1},
        {"n": np.int64(100), "eps0": np.float64(1.0), "rounds": 1},
        {"n": "1e2", "eps0": " 1.0", "mechanism": "ldp", "delta": "0.001", "rtol": None},
        {"n": 100, "eps0": 1, "delta": 1e-4},
    ]
    rows = sweep(plans, delta=1e-3, workers=1)
    assert len(asked) == 2 and rows[0] == rows[1] == rows[2] != rows[3]
    assert rows[0] is not rows[1]


@pytest.mark.parametrize(("plans", "options", "error", "message"), [
    ([{"n": 1, "xyz": 1}], {"delta": 0.1}, FieldError, r"plans\[0\]: xyz: is no field"),
    ([{"n": 1, "Eps0": 1}], {"delta": 0.1}, FieldError, r"Eps0: .*; did you mean 'eps0'\?"),
    ([{"n": 10, "eps0": math.nan}], {"delta": 0.1}, FieldError, r"plans\[0\]: eps0: must be"),
    ([{"n": 10, "eps0": "1,5"}], {"delta": 0.1}, FieldError, r"plans\[0\]: eps0: expected a number"),
    ([{"n": 1, "eps0": 1, "delta": 2}], {}, FieldError, r"plans\[0\]: delta: must be in"),
    ([{"n": 1, "eps0": 1, "rounds": 0}], {"delta": 0.1}, FieldError, "rounds: must be"),
    ([{"n": 1, "eps0": 1, "rounds": 1.5}], {"delta": 0.1}, FieldError, "rounds: expected an integer"),
    ([{"n": 10, "eps0": 1}], {}, ValueError, r"plans\[0\]: give one of .*neither"),
    ([{"n": 1, "delta": 0, "epsilon": 0}], {}, ValueError, r"plans\[0\]: give one of .*both"),
    ([{"n": True, "eps0": 1}], {"delta": 0.1}, TypeError, r"plans\[0\]: n must be a number"),
    ([{"n": [1], "eps0": 1}], {"delta": 0.1}, TypeError, r"plans\[0\]: n must be a number"),
    (["n"], {"delta": 0.1}, TypeError, r"plans\[0\] must be a mapping"),
    ([], {"delta": 0.1, "epsilon": 1.0}, ValueError, "at most one of delta and epsilon"),
    ([], {"delta": 1.5}, ValueError, "delta: must be in"),
    ([], {"epsilon": -1}, ValueError, "epsilon: must be at least 0"),
    ([], {"output": "table.txt"}, ValueError, "output must end in .csv"),
])  # fmt: skip
def test_bad_arguments_stop_before_anything_is_done(
    plans: Any, options: Any, error: type[Exception], message: str, tmp_path: Path
) -> None:
    output = tmp_path / "out.csv"
    with pytest.raises(error, match=message):
        sweep(plans, **{"output": output, **options})
    assert not output.exists()


def test_randomizers_as_objects_matrices_and_files(tmp_path: Path) -> None:
    """Any of them is the same mechanism; a table has their text, and is resumed."""
    law = [[0.75, 0.25], [0.25, 0.75]]
    (tmp_path / "law.csv").write_text("0.75,0.25\n\n 2.5e-1,0.75\n")
    given = [DiscreteRandomizer(law), law, np.array(law), str(tmp_path / "law.csv")]
    plans = [{"randomizer": one, "n": 100, "rounds": 2} for one in given]
    output = tmp_path / "out.csv"
    rows = sweep(plans, delta=1e-3, output=output, workers=1)
    truth = Accountant().compose(Shuffled(given[0], 100), 2).epsilon_bounds(1e-3)
    assert all(row["epsilon_upper"] == pytest.approx(truth.upper, rel=1e-12) for row in rows)
    assert all(row["mechanism"] == "shuffled" for row in rows)
    assert [row["randomizer"] for row in rows] == [repr(given[0])] * 3 + [given[3]]
    size = output.stat().st_size
    assert sweep(plans, delta=1e-3, output=output, workers=1) == rows
    assert output.stat().st_size == size
    found = solve("n", {"randomizer": law, "rounds": 2}, epsilon=0.5, delta=1e-3)
    assert found.run.ledger[0][0] == Shuffled(law, found.value) and found.achieved.upper <= 0.5
    for bad, wrong in (
        ([[0.5, 0.6], [0.5, 0.5]], "row 0 must sum to 1"),
        (str(tmp_path / "none.csv"), "cannot read"),
        (str(output), "is no matrix of probabilities"),
    ):
        with pytest.raises(FieldError, match=f"randomizer: .*{wrong}"):
            solve("n", {"randomizer": bad}, epsilon=0.5, delta=1e-3)


# -- workers


def test_workers_give_the_same_numbers(tmp_path: Path) -> None:
    expected = sweep(PLANS[:3], delta=1e-6, workers=1)
    assert agree(sweep(PLANS[:3], delta=1e-6, workers=2, output=tmp_path / "a.csv"), expected)


class OnlyMap(Executor):
    """An executor that can do nothing but map, one after the other."""

    def map(self, function: Any, *iterables: Any, **options: Any) -> Iterator[Any]:
        assert not options
        return map(function, *iterables)

    def submit(self, *arguments: Any, **options: Any) -> Any:
        raise NotImplementedError


# -- files


def test_a_file_is_taken_over_and_extended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows read from the file equal the rows computed, types and seconds included."""
    output = tmp_path / "table.csv"
    first = sweep(PLANS[:3], delta=1e-6, output=output, workers=1)
    more = sweep(PLANS, delta=1e-6, output=output, workers=1)
    assert more[:3] == first
    for one, other in zip(more, first, strict=False):
        assert [*map(type, one.values())] == [*map(type, other.values())]
    size = output.stat().st_size
    monkeypatch.setattr(sweeps, "answer", None)  # nothing is left to compute
    assert sweep(reversed(PLANS), delta=1e-6, output=output) == more[::-1]
    assert output.stat().st_size == size


def test_a_file_torn_anywhere_is_resumed(tmp_path: Path) -> None:
    """Cut at every 61st byte: the whole rows are kept, the torn one is computed again."""
    plans = grid(n=[10, 20, 30], eps0=1.0)
    whole = tmp_path / "whole.csv"
    expected = sweep(plans, delta=0.01, output=whole, workers=1)
    data = whole.read_bytes()
    for cut in range(0, len(data), 61):
        torn = tmp_path / "torn.csv"
        torn.write_bytes(data[:cut])
        rows = sweep(plans, delta=0.01, output=torn, workers=1)
        assert agree(rows, expected)
        kept = data[:cut].count(b"\n") - 1
        assert rows[: max(kept, 0)] == expected[: max(kept, 0)]
        assert sweep(plans, delta=0.01, output=torn) == rows


@pytest.mark.parametrize(("name", "content"), [
    ("a.csv", "my,own,data\n1,2,3\n"),
    ("b.csv", "my notes"),
    ("e.csv", ",".join(COLUMNS) + "\n1,2\n"),
    ("f.csv", ",".join(COLUMNS) + '\n"1' + "," * (len(COLUMNS) - 1) + "\n"),
    ("g.csv", ",".join(COLUMNS) + "\n\xff" + "," * (len(COLUMNS) - 1) + "\n"),
])  # fmt: skip
def test_files_of_others_are_not_touched(name: str, content: str, tmp_path: Path) -> None:
    output = tmp_path / name
    output.write_bytes(content.encode("latin-1"))
    with pytest.raises(ValueError, match=r"is there and no table to go on with: line \d"):
        sweep(PLANS, delta=1e-6, output=output)
    assert output.read_bytes() == content.encode("latin-1")


# -- stopped


SCRIPT = """
import sys
from pld_shuffle.sweeps import grid, sweep

plans = grid(n=[100, 200], eps0=[0.5 + 0.1 * i for i in range(40)], analysis="stronger-clones", rounds=[1, 4])

if __name__ == "__main__":
    sweep(plans, delta=1e-6, output=sys.argv[1], workers=2, progress=True)
"""


def script_process(tmp_path: Path, text: str, *arguments: Path) -> subprocess.Popen[bytes]:
    script = tmp_path / "script.py"
    script.write_text(text)
    environment = dict(os.environ, PYTHONPATH=str(Path(sweeps.__file__).parents[1]))
    command = [sys.executable, str(script), *map(str, arguments)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def started(tmp_path: Path, output: Path) -> tuple[subprocess.Popen[bytes], bytes]:
    """The process, and its bar as far as six rows."""
    process, shown = script_process(tmp_path, SCRIPT, output), b""
    assert isinstance(process.stderr, io.BufferedReader)
    while not re.search(rb"\b([6-9]|\d\d+)/160", shown):
        more = process.stderr.read1(1000)
        assert more, shown
        shown += more
    return process, shown


def script_plans() -> list[dict[str, Any]]:
    space: dict[str, Any] = {"__name__": "plans"}
    exec(SCRIPT, space)
    plans: list[dict[str, Any]] = space["plans"]
    return plans


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="looks for processes of Linux")
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT])
def test_stopped_and_resumed(sent: signal.Signals, tmp_path: Path) -> None:
    """No worker goes on computing for nobody; whole rows are kept; resumed, every number is the same."""
    output = tmp_path / "out.csv"
    process, shown = started(tmp_path, output)
    threads = Path(f"/proc/{process.pid}/task").glob("*/children")  # any of them may have started one
    workers = [os.pidfd_open(int(pid)) for thread in threads for pid in thread.read_text().split()]
    assert len(workers) >= 2
    process.send_signal(sent)
    errors = shown + process.communicate(timeout=60)[1]
    assert process.returncode != 0 and b"plan/s" in errors  # the bar
    for worker in workers:
        assert select.select([worker], [], [], 60)[0]  # it has ended
        os.close(worker)
    data = output.read_bytes()
    if sent == signal.SIGINT:  # then the last row is whole, too
        assert b"KeyboardInterrupt" in errors and data.endswith(b"\n")
        assert errors.count(b"Traceback") <= 1  # none from the workers
    rows = sweep(script_plans(), delta=1e-6, output=output, workers=1)
    assert 5 <= data.count(b"\n") <= len(rows) == 160 and all(row["error"] is None for row in rows)
    assert output.read_bytes().startswith(data[: data.rindex(b"\n") + 1])
    assert sent == signal.SIGINT or agree(rows[::4], sweep(script_plans()[::4], delta=1e-6, workers=1))


NO_GUARD = """
import sys
from pld_shuffle.sweeps import grid, sweep

with open(sys.argv[1], "a") as file:
    file.write("started\\n")
rows = sweep(grid(n=[100, 200], eps0=[1, 2]), delta=1e-6, workers=2, output=sys.argv[2])
print(sum(row["error"] is None for row in rows))
"""


def test_a_script_needs_no_main_guard(tmp_path: Path) -> None:
    """Two workers, and the script runs once: they do not begin by running it again."""
    runs, output = tmp_path / "runs.txt", tmp_path / "out.csv"
    process = script_process(tmp_path, NO_GUARD, runs, output)
    assert process.communicate(timeout=120) == (b"4\n", b"") and process.returncode == 0
    assert runs.read_text() == "started\n"
    assert len(output.read_text().splitlines()) == 5


def test_small_sweeps_stay_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process is started for what is done in a moment, nor for one plan; for the rest they are."""
    plans = grid(n=[10, 20, 30], eps0=1)
    sweep(plans[:1], delta=0.01, workers=1)  # compile
    monkeypatch.setattr(sweeps, "_processes", None)
    monkeypatch.setattr("loky.cpu_count", lambda: 4)
    monkeypatch.setattr(sweeps, "PATIENCE", 1e9)
    expected = sweep(plans, delta=0.01)
    sweep(plans[:1], delta=0.01, workers=7)
    pools = []

    @contextlib.contextmanager
    def counted(workers: int) -> Iterator[Executor]:
        pools.append(workers)
        yield OnlyMap()

    monkeypatch.setattr(sweeps, "_processes", counted)
    monkeypatch.setattr(sweeps, "PATIENCE", -1.0)
    assert agree(sweep(plans, delta=0.01), expected) and agree(sweep(plans, delta=0.01, workers=2), expected)
    assert pools == [3, 2]


def test_workers_that_die_leave_the_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dead worker is an error of the sweep, not a silent gap; what was finished is kept."""
    output = tmp_path / "out.csv"
    plans = grid(n=[100, 200, 300], eps0=1.0)
    first = sweep(plans[:1], delta=1e-6, output=output, workers=1)
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawn, os._exit, (3,)) as pool, monkeypatch.context() as patch:
        patch.setattr(sweeps, "_processes", lambda workers: contextlib.nullcontext(pool))
        with pytest.raises(BrokenProcessPool):
            sweep(plans, delta=1e-6, output=output, workers=2)
    assert sweep(plans, delta=1e-6, output=output, workers=1)[:1] == first


def test_no_bar_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    sweep(PLANS[:1], delta=1e-6)
    assert capsys.readouterr().err == ""
    sweep(PLANS[:1], delta=1e-6, progress=True)
    assert "1/1" in capsys.readouterr().err


def test_an_error_is_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Resuming a sweep with a hopeless plan does not grow the file; another error does."""
    output = tmp_path / "table.csv"
    plans = [{"n": 10, "eps0": 1}, {"n": 10, "eps0": -1}]
    first = sweep(plans, delta=0.01, output=output, workers=1)
    data = output.read_bytes()
    for _ in range(3):
        again = sweep(plans, delta=0.01, output=output, workers=1)
        assert again[0] == first[0] and again[1]["error"] == first[1]["error"] is not None
        assert output.read_bytes() == data
    monkeypatch.setattr(Accountant, "compose", None)
    [row] = sweep([{"n": 12, "eps0": 1}], delta=0.01, output=tmp_path / "b.csv", workers=1)
    assert row["error"].startswith("TypeError")
    sweep(plans, delta=0.01, output=output, workers=1)
    assert len(output.read_bytes().splitlines()) == len(data.splitlines())  # eps0 fails before
    sweep([*plans, {"n": 11, "eps0": 1}], delta=0.01, output=output, workers=1)
    assert len(output.read_bytes().splitlines()) == len(data.splitlines()) + 1


def test_grids_of_numpy_numbers_and_of_nothing() -> None:
    plans = grid(n=(np.int64(5), 20), eps0=np.array([1.0, 2.0]), rate=None, rtol=np.float32(0.5))
    assert [(p["n"], p["eps0"]) for p in plans] == [(5, 1), (5, 2), (20, 1), (20, 2)]
    assert all((p["rate"], p["rtol"]) == (None, 0.5) for p in plans)
    rows = sweep(plans, delta=0.01, workers=1)
    assert all(row["error"] is row["rate"] is None for row in rows) and sweep([]) == []
