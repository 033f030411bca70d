"""What a person waits for whose log has a cohort of its own size in every round.

Workload: cohorts of 2,467 to 5,600 out of 10^6 users at random, eps0 = 1, 2 or 4 (some logs: 6), delta = 1e-6,
rtol = 1e-3. Every cell runs in a process of its own, after one epsilon of 30 other rounds: compiled code is loaded,
nothing of the workload is cached. Processor time, construction of the mechanisms included. Give the folder of an older
version's checkout to run the same there; only its time and its epsilon are compared.

    python benchmarks/varied_log.py [--quick] [--older FOLDER] [--case NAME]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import harness

DELTA, POPULATION = 1e-6, 10**6


def log(rounds: int, kind: str) -> Iterator[Any]:
    """`rounds` mechanisms: "cohort", "poisson" (the same numbers on average), "both" in turn, "everybody", ..."""
    import numpy as np

    import pld_shuffle
    from pld_shuffle import ShuffledLDP, Subsampled

    rng = np.random.default_rng(20240601)
    sizes, budgets = rng.integers(2_467, 5_601, rounds), rng.choice([1.0, 2.0, 4.0], rounds)
    if kind == "one":
        sizes[:], budgets[:] = 5_000, 2.0
    if kind == "equal":
        sizes[:], budgets[:] = 10_000, 4.0
    if kind in ("ordinary", "dropouts"):
        sizes, budgets = rng.integers(4_200, 5_601, rounds), np.full(rounds, 6.0)
    if kind == "distinct":
        sizes, budgets = rng.permutation(np.arange(4_500, 4_500 + rounds)), np.full(rounds, 2.0)
    for i, (n, eps0) in enumerate(zip(sizes.tolist(), budgets.tolist(), strict=True)):
        if kind == "poisson" or (kind == "both" and i % 2):
            yield pld_shuffle.PoissonSampled(ShuffledLDP(eps0=eps0, n=POPULATION), rate=n / POPULATION)
        elif kind in ("everybody", "equal"):
            yield ShuffledLDP(eps0=eps0, n=n)
        else:
            dropout = 0.1 if kind == "dropouts" else 0.0
            yield Subsampled(ShuffledLDP(eps0=eps0, n=n), population=POPULATION, dropout=dropout)


def epsilon(rounds: int, kind: str) -> float:
    """One epsilon after all rounds."""
    from pld_shuffle import Accountant

    accountant = Accountant()
    for mechanism in log(rounds, kind):
        accountant.compose(mechanism)
    return float(accountant.get_epsilon(DELTA))


def trajectory(rounds: int, kind: str) -> float:
    """Epsilon after every round; the last one."""
    from pld_shuffle.trajectory import epsilon_trajectory

    return float(epsilon_trajectory([(m, 1) for m in log(rounds, kind)], DELTA).upper[-1])


def loop(rounds: int, kind: str) -> float:
    """`would_exceed` before each round, of a budget that is never spent; the rounds."""
    from pld_shuffle import Accountant

    accountant = Accountant()
    for mechanism in log(rounds, kind):
        assert not accountant.would_exceed(mechanism, epsilon=10.0, delta=DELTA)
        accountant.compose(mechanism)
    return float(accountant.rounds)


def many_deltas(rounds: int, kind: str) -> float:
    """1,000 deltas and 1,000 epsilons; only they are timed."""
    import numpy as np

    from pld_shuffle import Accountant

    accountant = Accountant()
    for mechanism in log(rounds, kind):
        accountant.compose(mechanism)
    top = float(accountant.get_epsilon(DELTA))
    begin = time.process_time()
    accountant.get_delta(np.linspace(0.8, 1.2, 1000) * top)
    accountant.get_epsilon(np.geomspace(0.1, 10.0, 1000) * DELTA)
    return -(time.process_time() - begin)


CASES: dict[str, tuple[Callable[[int, str], float], int, str]] = {
    "epsilon, 2,000 rounds": (epsilon, 2_000, "cohort"),
    "epsilon, 2,000 Poisson rounds": (epsilon, 2_000, "poisson"),
    "epsilon, 2,000 rounds of both": (epsilon, 2_000, "both"),
    "trajectory, 2,000 rounds": (trajectory, 2_000, "cohort"),
    "epsilon, 2,000 rounds at eps0 = 6": (epsilon, 2_000, "ordinary"),
    "epsilon, the same with dropouts": (epsilon, 2_000, "dropouts"),
    "trajectory, 2,000 rounds at eps0 = 6": (trajectory, 2_000, "ordinary"),
    "trajectory, the same with dropouts": (trajectory, 2_000, "dropouts"),
    "trajectory, 2,000 Poisson rounds": (trajectory, 2_000, "poisson"),
    "epsilon, 60 rounds": (epsilon, 60, "cohort"),
    "epsilon, 60 Poisson rounds": (epsilon, 60, "poisson"),
    "trajectory, 2,000 rounds of one cohort": (trajectory, 2_000, "one"),
    "trajectory, 1,000 distinct": (trajectory, 1_000, "distinct"),
    "would_exceed before each of 80": (loop, 80, "distinct"),
    "trajectory of these 80": (trajectory, 80, "distinct"),
    "would_exceed before each of 200": (loop, 200, "distinct"),
    "trajectory of these 200": (trajectory, 200, "distinct"),
    "epsilon, 8 distinct": (epsilon, 8, "distinct"),
    "epsilon, 24 distinct": (epsilon, 24, "distinct"),
    "epsilon, 25 distinct": (epsilon, 25, "distinct"),
    "epsilon, 100 distinct": (epsilon, 100, "distinct"),
    "epsilon, 1,000 distinct": (epsilon, 1_000, "distinct"),
    "epsilon, 10,000 distinct": (epsilon, 10_000, "distinct"),
    "epsilon, 100 of everybody": (epsilon, 100, "everybody"),
    "1,000 deltas and 1,000 epsilons": (many_deltas, 20, "one"),
    "the same after 2,000 rounds": (many_deltas, 2_000, "one"),
    "the same, everybody in 1,000 rounds": (many_deltas, 1_000, "equal"),
}
LONG = ("epsilon, 10,000 distinct", "epsilon, 100 of everybody")


def run(case: str) -> None:
    """One cell, printed as JSON."""
    from pld_shuffle import Accountant, ShuffledLDP, Subsampled

    warm = Accountant()
    for n in range(1_000, 1_300, 10):
        warm.compose(Subsampled(ShuffledLDP(eps0=1.5, n=n), population=10_000))
    warm.get_epsilon(DELTA)
    question, rounds, kind = CASES[case]
    begin = time.process_time()
    value = question(rounds, kind)
    spent = -value if value < 0.0 else time.process_time() - begin
    print(json.dumps([spent, max(value, 0.0)]))


def cell(case: str, folder: Path) -> tuple[float, float]:
    """The same in a fresh process that imports the package from `folder`."""
    program = harness.COMPILED + f"import varied_log; varied_log.run({case!r})"
    here = str(Path(__file__).resolve().parent)
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=folder,
        env=harness.environment(folder, PYTHONPATH=os.pathsep.join((str(folder), here))),
    )  # fmt: skip
    if answer.returncode:  # an older version may not know the mechanism
        return math.nan, math.nan
    spent, value = json.loads(answer.stdout)
    return spent, value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="without the longest cases")
    parser.add_argument("--older", type=Path, help="checkout of an older version to compare with")
    parser.add_argument("--case", choices=CASES, help="only this case")
    given = parser.parse_args()
    print("| case | cpu s | older | times faster | epsilon | older |\n|---|---|---|---|---|---|")
    for case in [given.case] if given.case else CASES:
        if given.quick and case in LONG:
            continue
        spent, value = cell(case, harness.CHECKOUT)
        row = [case, f"{spent:.3g}", "", "", f"{value:.6g}", ""]
        if given.older:
            before, was = cell(case, given.older.resolve())
            row[2:4] = f"{before:.3g}", f"{before / spent:.2g}"
            row[5] = f"{was:.6g}"
        print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
