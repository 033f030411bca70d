"""Small measurements that no other benchmark makes: cold start, and many queries at once.

* import: `python -X importtime`-style wall time of `import pld_shuffle` in a fresh interpreter,
  and of a bare interpreter; the first answer in a fresh interpreter with compiled code cached,
  and with an empty cache (NUMBA_CACHE_DIR set to an empty directory). No warm-up; medians of
  fresh processes.
* queries: 100 epsilons in one array against 100 calls on one accountant and against 100
  accountants. Warm-up: one of each.

    python benchmarks/targets.py [--quick]
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import harness
import numpy as np

from pld_shuffle import Accountant, ShuffledLDP

IMPORT = "import pld_shuffle"
#: One mechanism of each family: they load and compile different code.
FAMILIES = {
    "any eps0-LDP randomizer": "p.ShuffledLDP(eps0=4.0, n=10_000)",
    "stronger clones": "p.ShuffledLDP(eps0=4.0, n=10_000, analysis='stronger-clones')",
    "hidden cohort": "p.Subsampled(p.ShuffledLDP(eps0=4.0, n=10_000), population=10**6)",
    "unary encoding": "p.Shuffled(UnaryEncoding(k=16, eps0=4.0), n=10_000)",
    "4-ary response, weak": "p.ShuffledRR(k=4, n=10_000, eps0=4.0, adversary='weak')",
    "counted bits": "p.CountedBits(10_000, eps0=4.0)",
    "Gaussian": "p.Gaussian(sigma=5.0)",
}
FIRST = {
    name: "import pld_shuffle as p; from pld_shuffle.randomizers import UnaryEncoding;"
    f"p.Accountant().compose({mechanism}, 10).get_epsilon(1e-6)"
    for name, mechanism in FAMILIES.items()
}


def fresh(code: str, *, empty_cache: bool, runs: int) -> tuple[float, float]:
    """(wall, cpu) seconds of a new interpreter that runs `code`, medians."""
    wall, cpu = [], []
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as directory:
            environment = dict(os.environ, PYTHONPATH=sys.path[0])
            if empty_cache:
                environment["NUMBA_CACHE_DIR"] = directory
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            begin = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True, env=environment)
            wall.append(time.perf_counter() - begin)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(wall), statistics.median(cpu)


def queries(rounds: int, repeats: int) -> list[harness.Row]:
    mechanism = ShuffledLDP(eps0=4.0, n=10_000, analysis="stronger-clones")
    deltas = np.geomspace(1e-3, 1e-12, 100)

    def accountant() -> Accountant:
        return Accountant().compose(mechanism, rounds)

    def one_by_one() -> np.ndarray:
        one = accountant()
        return np.array([one.get_epsilon(delta) for delta in deltas])

    cases = {
        "100 epsilons in an array": lambda: accountant().get_epsilon(deltas),
        "100 calls, one accountant": one_by_one,
        "100 calls, 100 accountants": lambda: [accountant().get_epsilon(d) for d in deltas],
        "1 call": lambda: accountant().get_epsilon(1e-6),
    }
    rows = []
    for name, function in cases.items():
        timing = harness.measure(function, repeats=repeats)
        rows.append({"what": f"{name}, {rounds} rounds", "wall_s": timing.wall, "cpu_s": timing.cpu})
    return rows


def main() -> None:
    arguments = harness.options(__doc__.splitlines()[0])
    runs = 3 if arguments.quick else 7
    rows: list[harness.Row] = []
    for what, code, empty in (
        ("bare interpreter", "pass", False),
        ("import pld_shuffle", IMPORT, False),
        ("import numpy", "import numpy", False),
        *((f"first answer, {name}, compiled code cached", FIRST[name], False) for name in FIRST),
        *((f"first answer, {name}, empty cache", FIRST[name], True) for name in FIRST),
    ):
        wall, cpu = fresh(code, empty_cache=empty, runs=min(runs, 3) if empty else runs)
        rows.append({"what": what, "wall_s": wall, "cpu_s": cpu})
        print(rows[-1], flush=True)
    for rounds in (1, 100):
        rows += queries(rounds, 3)
    harness.save(arguments, "targets", {"rows": rows})
    print(harness.table(rows, ["what", "wall_s", "cpu_s"]))


if __name__ == "__main__":
    main()
