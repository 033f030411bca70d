"""The training log: many rounds, every one with a different cohort.

Workload: round i takes a uniformly random cohort of n_i out of 10^6 users (all n_i different),
eps0 = 2, delta = 1e-6; and the same cohorts without subsampling. One epsilon after all rounds,
and epsilon after every round. Every row runs in a process of its own (peak memory includes
interpreter and libraries). Warm-up: one epsilon of a single round, so that nothing of the
workload itself is cached.

    python benchmarks/trajectory.py [--quick]
"""

from __future__ import annotations

import harness
import numpy as np

from pld_shuffle import Accountant, Mechanism, ShuffledLDP, Subsampled
from pld_shuffle.trajectory import epsilon_trajectory

DELTA = 1e-6
POPULATION = 1_000_000
EPS0 = 2.0


def cohorts(rounds: int) -> list[int]:
    """Different cohort sizes in an irregular order, around 5,000 (up to 15,000 for 10,000 rounds)."""
    rng = np.random.default_rng(20240601)
    return [int(n) for n in rng.permutation(np.arange(4_500, 4_500 + rounds))]


def log(rounds: int, subsampled: bool) -> list[Mechanism]:
    plain = [ShuffledLDP(eps0=EPS0, n=n) for n in cohorts(rounds)]
    if not subsampled:
        return list(plain)
    return [Subsampled(mechanism, population=POPULATION) for mechanism in plain]


def warm() -> None:
    Accountant().compose(ShuffledLDP(eps0=EPS0, n=1_000), 3).get_epsilon(DELTA)
    Accountant().compose(Subsampled(ShuffledLDP(eps0=EPS0, n=1_000), rate=0.1)).get_epsilon(DELTA)


def one_epsilon(rounds: int, subsampled: bool, repeats: int) -> harness.Row:
    warm()
    mechanisms = log(rounds, subsampled)

    def run() -> Accountant:
        accountant = Accountant()
        for mechanism in mechanisms:
            accountant.compose(mechanism)
        accountant.get_epsilon(DELTA)
        return accountant

    timing = harness.measure(run, warmup=0, repeats=repeats)
    bounds = timing.value.epsilon_bounds(DELTA)
    delta = timing.value.delta_bounds(bounds.upper)
    return {
        "question": "one epsilon", "subsampled": subsampled, "rounds": rounds, "cpu_s": timing.cpu,
        "wall_s": timing.wall, "epsilon": bounds.upper, "epsilon_lower": bounds.lower,
        "delta_width": delta.upper / delta.lower - 1.0,
    }  # fmt: skip


def every_epsilon(rounds: int, subsampled: bool, every: int) -> harness.Row:
    warm()
    rows = [(mechanism, 1) for mechanism in log(rounds, subsampled)]
    timing = harness.measure(
        lambda: epsilon_trajectory(rows, DELTA, every=every), warmup=0, repeats=1
    )
    found = timing.value
    return {
        "question": f"epsilon after every {every}", "subsampled": subsampled, "rounds": rounds,
        "cpu_s": timing.cpu, "wall_s": timing.wall, "epsilon": float(found.upper[-1]),
        "epsilon_lower": float(found.lower[-1]),
        "widest_epsilon": float(np.max(found.upper / found.lower - 1.0)),
        "curve": [found.rounds.tolist(), found.lower.tolist(), found.upper.tolist()],
    }  # fmt: skip


def main() -> None:
    arguments = harness.options(__doc__.splitlines()[0])
    sizes = (100, 300) if arguments.quick else (100, 300, 1_000)
    rows = []
    for subsampled in (True, False):
        for rounds in sizes:
            rows.append(harness.isolated(one_epsilon, rounds, subsampled, 3))
            print(rows[-1], flush=True)
        rows.append(harness.isolated(every_epsilon, sizes[-1], subsampled, 1))
        print({key: value for key, value in rows[-1].items() if key != "curve"}, flush=True)
    if not arguments.quick:
        rows.append(harness.isolated(one_epsilon, 10_000, True, 1))
        rows.append(harness.isolated(every_epsilon, 10_000, True, 1_000))
    stem = harness.save(arguments, "trajectory", {"rows": rows})
    columns = ["question", "subsampled", "rounds", "cpu_s", "wall_s", "memory_mb", "epsilon"]
    print(harness.table(rows, [*columns, "delta_width", "widest_epsilon"]))
    series = []
    for row in rows:
        if "curve" in row and row["rounds"] == sizes[-1]:
            x, _, upper = row["curve"]
            label = "subsampled from 10^6" if row["subsampled"] else "all cohorts known"
            series.append((f"epsilon, {label}", x, upper, "-"))
    for subsampled, style in ((True, "o:"), (False, "s:")):
        chosen = [
            row for row in rows
            if row["question"] == "one epsilon" and row["subsampled"] is subsampled
        ]  # fmt: skip
        label = "subsampled" if subsampled else "not subsampled"
        x = [row["rounds"] for row in chosen]
        series.append((f"seconds for one epsilon, {label}", x, [r["cpu_s"] for r in chosen], style))
    harness.log_plot(
        stem, series, x_label="rounds", y_label="epsilon at 1e-6, seconds (cpu)",
        title="Every round its own cohort, eps0 = 2",
    )  # fmt: skip


if __name__ == "__main__":
    main()
