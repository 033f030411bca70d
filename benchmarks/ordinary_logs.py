"""The main job on ordinary logs: `pld-shuffle account` with table, trajectory and picture, in a fresh process.

Logs: cohorts of n uniform in 4,200 to 5,600 out of 10^6 users, one eps0 from 6 to 9, 100 to 10,000 rows, with and
without dropouts; delta from 1e-5 to 1e-100. Printed are processor seconds and memory of the whole process, the bracket
of epsilon at the delta asked for, and what is wrong with the table, if anything: an end that says nothing, an end above
another one at a smaller epsilon, a row far below the delta asked for.

    python benchmarks/ordinary_logs.py [--quick]
    python benchmarks/ordinary_logs.py --random 500  (or --random 100 200)

The second command draws logs of 1 to 300 rows, each with eps0 up to 9 and a cohort of its own, and counts the answers
that say nothing: epsilon at a delta from 1e-5 to 1e-100, and delta at that epsilon.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import multiprocessing
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

from pld_shuffle import Accountant, ShuffledLDP, Subsampled
from pld_shuffle.numerics.compiled import warm_up

CASES = [  # rows, eps0, dropouts, delta
    (2_000, 6.0, False, 1e-6),
    (2_000, 6.0, True, 1e-6),
    (100, 6.0, False, 1e-6),
    (100, 6.0, False, 1e-26),
    (100, 9.0, False, 1e-100),
    (2_000, 6.0, False, 1e-100),
    (2_000, 8.0, False, 1e-5),
    (2_000, 9.0, True, 1e-6),
    (10_000, 7.0, False, 1e-6),
]
SLOW, LIMIT = 30.0, 120  # seconds of a random log: those that are printed, and where it is given up
FAR = 1e-6  # of the delta asked for: no row may be below


def write_log(path: Path, rows: int, eps0: float, dropouts: bool) -> None:
    """A log of `rows` cohorts."""
    rng = random.Random(1)
    with path.open("w", encoding="utf-8") as file:
        file.write("eps0,n,population" + (",dropout" if dropouts else "") + "\n")
        for _ in range(rows):
            line = f"{eps0},{rng.randint(4_200, 5_600)},1000000"
            file.write(line + (f",{rng.choice([0.05, 0.1, 0.2])}" if dropouts else "") + "\n")


def account(log: Path, delta: float, picture: Path | None) -> tuple[str, float, float, float]:
    """What the command printed; processor seconds, wall seconds, megabytes."""
    command = [sys.executable, "-W", "always", "-m", "pld_shuffle", "account", str(log)]
    command += ["--delta", repr(delta)]
    command += ["--plot", str(picture)] if picture else ["--json"]
    begin = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        printed = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command} ended with {process.returncode}")
    seconds = usage.ru_utime + usage.ru_stime
    return printed, seconds, time.perf_counter() - begin, usage.ru_maxrss / 1024.0


def complaints(found: dict[str, list[dict[str, float]]], delta: float) -> list[str]:
    """What is wrong with the table of epsilons."""
    rows = sorted(found["epsilon_bounds"], key=lambda row: row["delta"])
    wrong = [f"nothing said at {row['delta']:g}" for row in rows if not _says(row)]
    uppers = [row["upper"] for row in rows]
    if any(above < below for above, below in itertools.pairwise(uppers)):
        wrong.append("an upper end above another one at a smaller delta")
    if any(row["delta"] < FAR * delta for row in rows):
        wrong.append("a row far below the delta asked for")
    return wrong


def random_log(seed: int) -> tuple[Accountant, float, float]:
    """A log of 1 to 300 rows, the sum of its eps0, and a delta."""
    rng = random.Random(seed)
    users = int(10 ** rng.uniform(2.0, 4.5))
    population, low = users * rng.randint(1, 300), rng.uniform(0.3, 9.0)
    high, dropout = min(9.0, low * rng.uniform(1.0, 1.5)), rng.choice([0.0, 0.0, 0.1])
    log, trivial = Accountant(), 0.0
    for _ in range(int(10 ** rng.uniform(0.0, 2.5))):
        n = max(2, int(users * rng.uniform(0.7, 1.0)))
        shuffled = ShuffledLDP(eps0=rng.uniform(low, high), n=n)
        trivial += shuffled.eps0
        log.compose(Subsampled(shuffled, population=population, dropout=dropout))
    return log, trivial, 10 ** -rng.uniform(5.0, 100.0)


def ask(seed: int) -> None:
    """Epsilon and delta of one random log; exit status 1 if a bracket says nothing. Warnings are printed."""
    log, trivial, delta = random_log(seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        eps = log.epsilon_bounds(delta)
        back = log.delta_bounds(eps.upper)
    for warning in caught:
        print(f"seed {seed}: {warning.message}", flush=True)
    if not (min(eps.lower, back.lower) > 0.0 and eps.upper < 0.999 * trivial and back.upper < 1.0):
        print(f"seed {seed}: delta {delta:.2g}, epsilon {eps}, then delta {back}", flush=True)
        raise SystemExit(1)


def random_logs(seeds: range) -> None:
    """Every log in a process of its own, with LIMIT; prints those that say nothing, warn, or take more than SLOW."""
    warm_up()
    silent, total = 0, 0.0
    for seed in seeds:
        child = multiprocessing.get_context("fork").Process(target=_limited, args=(seed,))
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        child.start()
        child.join()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        total += seconds
        silent += child.exitcode == 1
        if seconds > SLOW or child.exitcode not in (0, 1):
            print(f"seed {seed}: {seconds:.0f} s, exit status {child.exitcode}", flush=True)
        if seed % 10 == 9:
            print(f"up to {seed}: {silent} say nothing; {total:.0f} s", file=sys.stderr, flush=True)
    print(f"{silent} of {len(seeds)} say nothing; {total:.0f} s")


def _limited(seed: int) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT))
    ask(seed)


def _says(row: dict[str, float]) -> bool:
    return row["lower"] > 0.0 and math.isfinite(row["upper"]) and row["upper"] < 1.2 * row["lower"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="logs of up to 100 rows only")
    parser.add_argument(
        "--random", type=int, nargs="+", metavar="SEED", help="random logs of seeds up to this, or from, to"
    )
    asked = parser.parse_args()
    if asked.random:
        random_logs(range(*asked.random))
        return
    quick = asked.quick
    print("| rows | eps0 | dropouts | delta | epsilon | cpu s | wall s | MB | wrong |")
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        log, picture = Path(folder, "log.csv"), Path(folder, "spent.png")
        for rows, eps0, dropouts, delta in CASES:
            if quick and rows > 100:
                continue
            write_log(log, rows, eps0, dropouts)
            _, seconds, wall, memory = account(log, delta, picture)
            found = json.loads(account(log, delta, None)[0])
            [asked] = [row for row in found["epsilon_bounds"] if row["delta"] == delta]
            print(
                f"| {rows:,} | {eps0:g} | {'yes' if dropouts else 'no'} | {delta:g} | {asked['lower']:.6g} to"
                f" {asked['upper']:.6g} | {seconds:.1f} | {wall:.1f} | {memory:.0f} |"
                f" {'; '.join(complaints(found, delta)) or '-'} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
