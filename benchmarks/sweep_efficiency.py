"""A sweep of 1,000 settings on all cores: how busy the workers are, and what a kill costs.

Workload: 500 settings of eps0-LDP randomizers (with and without subsampling) and 500 of weak k-ary
randomised response; n from 10^3 to 10^6, 1 to 1,000 rounds, two deltas; one certified epsilon each. No
warm-up: starting the processes and loading compiled code is part of it.

* `cpu_share`: processor time of the worker processes (start included) over workers times wall time: what
  "uses both cores" means. On a machine with other jobs it cannot reach 1.
* `at_work`: the share of the workers' time, from the call to its return, with a plan in hand, whether or
  not the machine let them run. `running` is the processor's share of that. `start_s`: from the call
  to the last worker's first plan; `tail_s`: from the first worker's last answer to the last one's.
* killed: `kill -9` once half of the rows are written, then resumed. `rows_again` are left for the second
  sweep; `identical`: every bound is the same double as in the sweep without a kill.

    python benchmarks/sweep_efficiency.py [--quick]
"""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import harness

from pld_shuffle import sweeps
from pld_shuffle.sweeps import grid, sweep

WORKERS = 2


def plans(quick: bool) -> list[harness.Row]:
    """1,000 settings, or 40."""
    sizes = [10**3, 10**4] if quick else [10**3, 5 * 10**3, 3 * 10**4, 2 * 10**5, 10**6]
    rounds = [1, 10] if quick else [1, 5, 30, 150, 1000]
    deltas = [1e-6] if quick else [1e-6, 1e-9]
    eps0, gamma = [0.5, 1.0, 2.0, 3.0, 4.0], [0.05, 0.1, 0.2, 0.3, 0.5]
    ldp = grid(n=sizes, eps0=eps0, rounds=rounds, delta=deltas, rate=[None, 0.05][: len(deltas)])
    weak = {"mechanism": "rr", "adversary": "weak"}
    rr = grid(k=[2, 4][: len(deltas)], n=sizes, gamma=gamma, rounds=rounds, delta=deltas)
    return ldp + [weak | plan for plan in rr]


class Recorder(Executor):
    """Processes that note when each plan was in hand: (pid, begin, end, cpu)."""

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self._pool = pool
        self.notes: list[tuple[int, float, float, float]] = []

    def map(self, function: Callable[..., Any], *iterables: Any, **options: Any) -> Iterator[Any]:
        for note, found in self._pool.map(partial(noted, function), *iterables, **options):
            self.notes.append(note)
            yield found


def noted(function: Callable[..., Any], plan: Any) -> Any:
    begin, cpu = time.time(), time.process_time()
    found = function(plan)
    return (os.getpid(), begin, time.time(), time.process_time() - cpu), found


def children_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measured(settings: list[harness.Row]) -> tuple[harness.Row, list[harness.Row]]:
    """A row on one whole sweep on WORKERS processes, and its table."""
    begin, before = time.time(), children_cpu()
    with ProcessPoolExecutor(WORKERS, get_context("spawn")) as pool:
        recorder = Recorder(pool)
        sweeps._processes = lambda workers: contextlib.nullcontext(recorder)
        rows = sweep(settings, workers=WORKERS)
    wall, cpu = time.time() - begin, children_cpu() - before
    first: dict[int, float] = {}
    last: dict[int, float] = {}
    for pid, start, end, _ in recorder.notes:
        first[pid] = min(start, first.get(pid, start))
        last[pid] = max(end, last.get(pid, end))
    in_hand = sum(end - start for _, start, end, _ in recorder.notes)
    return {
        "what": f"{len(settings)} plans, {len(last)} processes", "wall_s": wall, "cpu_s": cpu,
        "cpu_share": cpu / (WORKERS * wall), "at_work": in_hand / (WORKERS * wall),
        "running": sum(note[3] for note in recorder.notes) / in_hand,
        "start_s": max(first.values()) - begin, "tail_s": max(last.values()) - min(last.values()),
        "dearest_s": max(row["seconds"] for row in rows),
    }, rows  # fmt: skip


def alone(settings: list[harness.Row]) -> harness.Row:
    """The same in one process, without a pool."""
    begin, cpu = time.time(), time.process_time()
    rows = sweep(settings, workers=1)
    return {
        "what": f"{len(settings)} plans, this process", "wall_s": time.time() - begin,
        "cpu_s": time.process_time() - cpu, "dearest_s": max(row["seconds"] for row in rows),
    }  # fmt: skip


def killed(settings: list[harness.Row], expected: list[harness.Row]) -> list[harness.Row]:
    """Rows on a sweep that is killed half way, and on the one that resumes it."""
    quick = ["--quick"] if "--quick" in sys.argv else []
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "sweep.csv"
        begin = time.time()
        command = [sys.executable, __file__, "--child", str(output), *quick]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        while process.poll() is None and written(output) < len(settings) // 2:
            time.sleep(0.005)
        process.kill()
        process.wait()
        first, kept = time.time() - begin, written(output)
        begin = time.time()
        rows = sweep(settings, output=output, workers=WORKERS)
        second = time.time() - begin
        bounds = ("epsilon_lower", "epsilon_upper", "error")
        same = [[row[name] for name in bounds] for row in rows] == [[row[name] for name in bounds] for row in expected]
    return [
        {"what": "killed half way", "wall_s": first, "rows_kept": kept},
        {"what": "resumed", "wall_s": second, "rows_again": len(settings) - kept, "identical": same},
    ]


def written(output: Path) -> int:
    """Whole rows in a table."""
    return output.read_bytes().count(b"\n") - 1 if output.exists() else 0


def main() -> None:
    arguments = harness.options(__doc__.splitlines()[0])
    settings = plans(arguments.quick)
    row, table = measured(settings)
    rows = [row]
    print(row, flush=True)
    if any(found["error"] for found in table):
        raise RuntimeError("a plan failed")
    rows.append(harness.isolated(alone, settings))
    row["times_faster"] = rows[-1]["wall_s"] / row["wall_s"]
    print(rows[-1], flush=True)
    rows += killed(settings, table)
    harness.save(arguments, "sweep_efficiency", {"workers": WORKERS, "rows": rows})
    columns = ["what", "wall_s", "cpu_s", "cpu_share", "at_work", "running", "start_s", "tail_s"]
    print(harness.table(rows[:2], [*columns, "dearest_s", "times_faster"]))
    print(harness.table(rows[2:], ["what", "wall_s", "rows_kept", "rows_again", "identical"]))


if __name__ == "__main__":
    if "--child" in sys.argv:
        sweep(plans("--quick" in sys.argv), output=sys.argv[2], workers=WORKERS)
    else:
        main()
