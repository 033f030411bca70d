"""What one round costs: a new accountant, one mechanism, one `get_epsilon(1e-6)`.

* warm: processor time of compiled code, the least of `RUNS` in one process for each version, one after the other for
  every setting; compiled code is loaded, and every version has answered the setting before. Values that are remembered
  between mechanisms are forgotten before each run.
* start: a new interpreter up to its first answer about several mechanisms, with an empty cache for compiled code and
  with a full one, which `warm_up` fills. A first answer may be interpreted.

Give the folder of an older version's checkout to see the ratio; "tightest" is each version's default analysis.

    python benchmarks/first_answer.py [--quick] [--older FOLDER]
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import harness

SETTINGS = [(eps0, n) for eps0 in (0.5, 1.0, 4.0) for n in (10**3, 10**4, 10**6, 10**9)]
RUNS = 9

#: What every version runs first. Values that are remembered between mechanisms are forgotten before each answer.
SETUP = """
from pld_shuffle import Accountant, ShuffledLDP
try:
    from pld_shuffle.mechanisms.ldp import _contest
    forget = _contest.cache_clear
except ImportError:
    forget = lambda: None
def answer(eps0, n):
    forget()
    return Accountant().compose(ShuffledLDP(eps0, n)).get_epsilon(1e-6)
"""
FIRST = """
from pld_shuffle import Accountant, Shuffled, ShuffledLDP, Subsampled
from pld_shuffle.randomizers import BinaryRandomizedResponse, KRandomizedResponse, Laplace
Accountant().compose({mechanism}, {rounds}).get_epsilon(1e-6)
"""
#: Fills the cache; older versions fill it by their first answer.
WARM_UP = "import pld_shuffle; getattr(pld_shuffle, 'warm_up', lambda: None)()"
STARTS = (
    ("ShuffledLDP(4.0, 10_000)", 1),
    ("ShuffledLDP(4.0, 10_000)", 10),
    ("ShuffledLDP(4.0, 10_000)", 100),
    ("Subsampled(ShuffledLDP(6.3, 5_000), population=1_000_000)", 2_000),
    ("Shuffled(BinaryRandomizedResponse(1.0), 10_000)", 1),
    ("Shuffled(KRandomizedResponse(k=4, eps0=2.0), 20_000)", 10),
    ("Shuffled(Laplace(eps0=1.0), 10_000)", 1),
)


def warm(folders: list[Path], runs: int) -> list[harness.Row]:
    """A row for each setting: milliseconds and epsilon of each version."""
    processes = [harness.serve(folder, SETUP) for folder in folders]
    rows = []
    for eps0, n in SETTINGS:
        row: harness.Row = {"eps0": eps0, "n": n}
        for name, process in zip(("", "older_"), processes, strict=False):
            found = harness.ask(process, f"answer({eps0}, {n})", runs)
            row[f"{name}ms"], row[f"{name}epsilon"] = found
        if len(folders) > 1:
            row["ratio"] = row["ms"] / row["older_ms"]
        rows.append(row)
    return rows


def start(folder: Path, mechanism: str, rounds: int) -> harness.Row:
    """Processor seconds of new interpreters: with an empty cache, then the least of three with a full one."""
    first = FIRST.format(mechanism=mechanism, rounds=rounds)

    def run(code: str, cache: str) -> None:
        environment = harness.environment(folder, NUMBA_CACHE_DIR=cache)
        subprocess.run([sys.executable, "-c", code], check=True, cwd=folder, env=environment)

    def seconds(cache: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run(first, cache)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    with tempfile.TemporaryDirectory() as cache:
        empty = seconds(cache)
        run(WARM_UP, cache)
        return {"empty_cache_s": empty, "full_cache_s": min(seconds(cache) for _ in range(3))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer runs, no start")
    parser.add_argument("--older", type=Path, help="a checkout of an older version")
    parser.add_argument("--output", type=Path, default=harness.RESULTS)
    arguments = parser.parse_args()
    folders = [harness.CHECKOUT] + ([arguments.older.resolve()] if arguments.older else [])
    rows = warm(folders, 3 if arguments.quick else RUNS)
    columns = ["eps0", "n", "ms", "older_ms", "ratio", "epsilon", "older_epsilon"]
    print(harness.table(rows, [name for name in columns if name in rows[0]]))
    starts = []
    if not arguments.quick:
        for mechanism, rounds in STARTS:
            for name, folder in zip(("this", "older"), folders, strict=False):
                found = start(folder, mechanism, rounds)
                starts.append({"mechanism": mechanism, "rounds": rounds, "version": name, **found})
        columns = ["mechanism", "rounds", "version", "empty_cache_s", "full_cache_s"]
        print(harness.table(starts, columns))
    harness.save(arguments, "first_answer", {"warm": rows, "start": starts})


if __name__ == "__main__":
    main()
