"""What the benchmarks share: timing, memory, other versions, the machine, and results as JSON, table and plot.

Every script states its warm-up; a time is the median over `repeats` runs after `warmup`
unmeasured ones. Two clocks are kept: `wall`, and `cpu`, the processor time of this process. All
numerical libraries are held to one thread (set here, before numpy is imported), so on a busy
machine cpu is the better estimate of what one core needs; what counts is the ratio of two rows of
one run.
"""

# ruff: noqa: E402
from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import importlib.metadata
import json
import multiprocessing
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# The checkout's package, also if it is not installed.
CHECKOUT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(CHECKOUT))

#: For processes that run any version: nothing is interpreted, compiled code is what is measured.
COMPILED = """
try:
    from pld_shuffle.numerics import compiled
    compiled.LOADING = compiled.PATIENCE = -1.0
except ImportError:  # an older version always compiles
    pass
"""
exec(COMPILED)  # first answers are measured in other processes

#: Reads lines "expression|runs", and prints the least milliseconds of that many runs, after one more, and the value.
ANSWERS = """
import sys, time
for line in sys.stdin:
    expression, runs = line.rsplit("|", 1)
    best = float("inf")
    for _ in range(int(runs) + 1):
        begin = time.process_time()
        value = float(eval(expression))
        best = min(best, time.process_time() - begin)
    print(1e3 * best, value, flush=True)
"""

RESULTS = Path(__file__).resolve().parent / "results"
MISSING = "-"

Row = dict[str, Any]


@dataclass(frozen=True)
class Timing:
    """Medians in seconds, and the value of the last run."""

    wall: float
    cpu: float
    runs: int
    value: Any = field(compare=False)


def measure(function: Callable[[], Any], *, warmup: int = 1, repeats: int = 5, budget: float = 20.0) -> Timing:
    """Time `function`; stops early, after at least one measured run, when `budget` seconds are spent."""
    for _ in range(warmup):
        function()
    wall, cpu = [], []
    value = None
    while not wall or (len(wall) < repeats and sum(wall) < budget):
        begin, begin_cpu = time.perf_counter(), time.process_time()
        value = function()
        cpu.append(time.process_time() - begin_cpu)
        wall.append(time.perf_counter() - begin)
    return Timing(statistics.median(wall), statistics.median(cpu), len(wall), value)


def peak_megabytes() -> float:
    """Peak resident memory of this process so far.

    VmHWM where there is one: ru_maxrss of a new process starts at its parent's value on Linux.
    """
    try:
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return float(line.split()[1]) / 1024.0
    except OSError:
        pass
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def isolated(function: Callable[..., Row], *arguments: Any) -> Row:
    """`function(*arguments)` in a fresh process, with its peak memory in MB as "memory_mb" added.

    The function must be at the top level of a module. Its row comes back; an exception is raised here.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(sender, function, arguments))
    process.start()
    sender.close()
    try:
        kind, value = receiver.recv()
    except EOFError:
        kind, value = "error", "the process died"
    process.join()
    if kind == "error":
        raise RuntimeError(f"{function.__name__}{arguments!r}: {value}")
    row: Row = value
    return row


def _child(sender: Any, function: Callable[..., Row], arguments: tuple[Any, ...]) -> None:
    try:
        row = function(*arguments)
        sender.send(("row", row | {"memory_mb": peak_megabytes()}))
    except BaseException as error:  # the parent must hear of everything
        sender.send(("error", repr(error)))


def environment(folder: Path, **variables: str) -> dict[str, str]:
    """That of a process that runs the version checked out in `folder`."""
    return os.environ | {"PYTHONPATH": str(folder)} | variables


#: Freed memory is kept: how often an allocator gives it back and asks for it again is chance, and takes a third of the
#: time where it happens.
KEPT_MEMORY = {"MALLOC_TRIM_THRESHOLD_": str(2**32), "MALLOC_MMAP_THRESHOLD_": str(2**32)}


def serve(folder: Path, setup: str) -> subprocess.Popen[str]:
    """A process of that version: it runs `setup`, and then answers what `ask` asks."""
    return subprocess.Popen(
        [sys.executable, "-c", COMPILED + setup + ANSWERS], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True, env=environment(folder, **KEPT_MEMORY), cwd=folder,
    )  # fmt: skip


def ask(process: subprocess.Popen[str], expression: str, runs: int) -> tuple[float, float]:
    """Milliseconds of an expression, and its value."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(f"{expression}|{runs}\n")
    process.stdin.flush()
    milliseconds, value = process.stdout.readline().split()
    return float(milliseconds), float(value)


def machine() -> dict[str, Any]:
    """What the numbers were measured on."""
    processor = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                processor = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass
    versions = {}
    for name in ("numpy", "scipy", "numba", "mpmath", "dp-accounting"):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "not installed"
    return {
        "processor": processor,
        "cores": os.cpu_count(),
        "threads_used": 1,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "load_average": [round(value, 2) for value in os.getloadavg()],
        "versions": versions,
    }


def parser(description: str) -> argparse.ArgumentParser:
    """The command line all benchmarks have, for a script to add to."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="small sizes, seconds instead of minutes")
    parser.add_argument("--output", type=Path, default=RESULTS, help="directory for the JSON and the plot")
    return parser


def options(description: str) -> argparse.Namespace:
    """The arguments of a script that adds nothing."""
    return parser(description).parse_args()


def number(value: Any) -> str:
    """A table cell."""
    if value is None:
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if value == 0.0:
            return "0"
        if 1e-2 <= abs(value) < 1e5:
            return f"{value:.4g}"
        return f"{value:.2e}"
    if isinstance(value, int) and value >= 10**4 and value == 10 ** (len(str(value)) - 1):
        return f"1e{len(str(value)) - 1}"
    return str(value)


def table(rows: Sequence[Row], columns: Sequence[str]) -> str:
    """A Markdown table of some columns."""
    cells = [list(columns)] + [[number(row.get(name)) for name in columns] for row in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in cells
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def save(arguments: argparse.Namespace, name: str, content: dict[str, Any]) -> Path:
    """Write results/<name>.json (with "-quick" in the name for a quick run); returns the stem's path."""
    arguments.output.mkdir(parents=True, exist_ok=True)
    stem = arguments.output / (f"{name}-quick" if arguments.quick else name)
    command = f"python benchmarks/{name}.py" + (" --quick" if arguments.quick else "")
    record = {"benchmark": name, "command": command, "machine": machine(), **content}
    path = stem.with_suffix(".json")
    path.write_text(json.dumps(record, indent=1, default=float) + "\n", encoding="utf-8")
    return stem


def log_plot(
    stem: Path,
    series: Sequence[tuple[str, Sequence[float], Sequence[float], str]],
    *,
    x_label: str,
    y_label: str,
    title: str,
    mirrored: bool = False,
) -> None:
    """A log-log plot next to the JSON; series are (label, x, y, line style). `mirrored`: x falls."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    for label, x, y, style in series:
        axes.loglog(x, y, style, label=label, markersize=4)
    axes.set(xlabel=x_label, ylabel=y_label, title=title)
    axes.grid(True, which="major", alpha=0.3)
    axes.legend(fontsize=7)
    if mirrored:
        axes.invert_xaxis()
    figure.savefig(stem.with_suffix(".png"), dpi=90)
    plt.close(figure)
