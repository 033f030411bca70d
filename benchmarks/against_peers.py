"""The same work side by side: pld_shuffle, dp_accounting, and the published methods.

Workload: n = 10^4 users, eps0 = 4, stronger clones, delta = 1e-6, one round and 100 rounds. Every
row runs in a process of its own (peak memory includes the interpreter: row "imports only").
Warm-up: none for methods that take seconds, one unmeasured run for the others, as the column
says.

* pld_shuffle: one certified bracket from the parameters, forming included.
* dp_accounting (dictionaries): `from_two_probability_mass_functions` on the two pmfs of all atoms in
  Hoeffding windows (which round losses up to its grid), `self_compose`, `get_epsilon_for_delta`.
  Making the pmfs is not counted; reading them is, and `compose_cpu_s` leaves that out too.
* dp_accounting (dots): the library at its best: its connect-the-dots constructor on the exact deltas at
  its grid points, which are computed from the same pmfs and counted; `compose_cpu_s` is composition and
  query alone, as if the deltas were given for free.
* fixed grid: the published style, see `peers.GridAccountant`.
* binomial tails: see `peers.crowd_delta`; one round only.

`epsilon_error` is epsilon minus our bracket (0 inside it), `delta_error` the relative error of
the delta a method reports at our upper epsilon. `smallest_delta`: the least of 10^-1, 10^-2 ...
10^-20, 10^-30, 10^-40, 10^-50 down to which every delta is right within 10 %
(probed at our epsilons for these deltas).

    python benchmarks/against_peers.py [--quick]
"""

from __future__ import annotations

import math
from collections.abc import Callable

import harness
import numpy as np
import peers

from pld_shuffle import Accountant, ShuffledLDP

N, EPS0, DELTA = 10_000, 4.0, 1e-6
MISSED = 1e-14
MECHANISM = ShuffledLDP(eps0=EPS0, n=N, analysis="stronger-clones")  # the peers' pair
PROBES = (*(10.0**-i for i in range(1, 21)), 1e-30, 1e-40, 1e-50)


def resolvable(delta_of: Callable[[float], float], probes: list[tuple[float, float]]) -> float | None:
    """The smallest delta down to which `delta_of` is right within 10 % at every probe."""
    least = None
    for epsilon, delta in probes:
        if not abs(delta_of(epsilon) / delta - 1.0) <= 0.1:
            break
        least = delta
    return least


def row_of(
    method: str, rounds: int, timing: harness.Timing, epsilon: float,
    delta_of: Callable[[float], float], truth: dict[str, float], probes: list[tuple[float, float]],
    warmup: int,
) -> harness.Row:  # fmt: skip
    error = max(epsilon - truth["upper"], min(epsilon - truth["lower"], 0.0))
    return {
        "method": method, "rounds": rounds, "cpu_s": timing.cpu, "wall_s": timing.wall,
        "epsilon": epsilon, "epsilon_error": error,
        "delta_error": delta_of(truth["upper"]) / truth["delta"] - 1.0,
        "smallest_delta": resolvable(delta_of, probes), "warm_up": warmup, "runs": timing.runs,
    }  # fmt: skip


def ours(rounds: int, truth: dict[str, float], probes: list[tuple[float, float]]) -> harness.Row:
    timing = harness.measure(lambda: Accountant().compose(MECHANISM, rounds).epsilon_bounds(DELTA), repeats=9)
    bounds = timing.value
    row = row_of(
        "pld_shuffle", rounds, timing, bounds.upper,
        Accountant().compose(MECHANISM, rounds).get_delta, truth, probes, 1,
    )  # fmt: skip
    accountant = Accountant().compose(MECHANISM, rounds)
    return row | {
        "bracket": accountant.delta_bounds(bounds.upper).upper
        / accountant.delta_bounds(bounds.upper).lower - 1.0,
    }  # fmt: skip


def dp_accounting_from_pmfs(
    rounds: int, truth: dict[str, float], probes: list[tuple[float, float]], step: float
) -> harness.Row:
    from dp_accounting.pld import privacy_loss_distribution as pld

    p, q = peers.atom_pair(N, EPS0, MISSED)
    upper = dict(enumerate(np.log(p).tolist()))
    lower = dict(enumerate(np.log(q).tolist()))

    def form() -> pld.PrivacyLossDistribution:
        return pld.from_two_probability_mass_functions(lower, upper, value_discretization_interval=step)

    formed = form()
    composing = harness.measure(lambda: formed.self_compose(rounds).get_epsilon_for_delta(DELTA), repeats=3)
    whole = harness.measure(lambda: form().self_compose(rounds).get_epsilon_for_delta(DELTA), warmup=0, repeats=3)
    composed = formed.self_compose(rounds)
    return row_of(
        f"dp_accounting (dictionaries), step {step:g}", rounds, whole, whole.value,
        lambda eps: float(composed.get_delta_for_epsilon(eps)), truth, probes, 1,
    ) | {"compose_cpu_s": composing.cpu}  # fmt: skip


def dp_accounting_dots(
    rounds: int, truth: dict[str, float], probes: list[tuple[float, float]], step: float
) -> harness.Row:
    from dp_accounting.pld import pld_pmf
    from dp_accounting.pld import privacy_loss_distribution as pld

    def form() -> pld.PrivacyLossDistribution:
        p, q = peers.atom_pair(N, EPS0, MISSED)
        loss = np.log(p / q)
        order = np.argsort(loss)
        tail_p = np.append(np.cumsum(p[order][::-1])[::-1], 0.0)
        tail_q = np.append(np.cumsum(q[order][::-1])[::-1], 0.0)
        grid = np.arange(math.floor(loss.min() / step), math.ceil(loss.max() / step) + 1)
        start = np.searchsorted(loss[order], grid * step, side="right")
        deltas = np.maximum(tail_p[start] - np.exp(grid * step) * tail_q[start], 0.0)
        deltas = np.minimum.accumulate(deltas)
        pmf = pld_pmf.create_pmf_pessimistic_connect_dots(step, grid, deltas)
        return pld.PrivacyLossDistribution(pmf)

    formed = form()
    composing = harness.measure(lambda: formed.self_compose(rounds).get_epsilon_for_delta(DELTA), repeats=5)
    whole = harness.measure(lambda: form().self_compose(rounds).get_epsilon_for_delta(DELTA), repeats=5)
    composed = formed.self_compose(rounds)
    return row_of(
        f"dp_accounting (dots), step {step:g}", rounds, whole, whole.value,
        lambda eps: float(composed.get_delta_for_epsilon(eps)), truth, probes, 1,
    ) | {"compose_cpu_s": composing.cpu}  # fmt: skip


def fixed_grid(rounds: int, truth: dict[str, float], probes: list[tuple[float, float]], points: int) -> harness.Row:
    limit = 20.0
    made: list[peers.GridAccountant] = []

    def run() -> float:
        made[:] = [peers.GridAccountant(N, EPS0, rounds, limit, points)]
        return made[0].epsilon(DELTA)

    timing = harness.measure(run, warmup=0, repeats=1)
    return row_of(
        f"fixed grid, {points:.0e} points", rounds, timing, timing.value, made[0].delta, truth,
        probes, 0,
    )  # fmt: skip


def binomial_tails(rounds: int, truth: dict[str, float], probes: list[tuple[float, float]]) -> harness.Row:
    timing = harness.measure(
        lambda: peers.bisected(lambda eps: peers.crowd_delta(N, EPS0, eps), DELTA, EPS0), repeats=3
    )
    return row_of(
        "binomial tails, bisected", rounds, timing, timing.value,
        lambda eps: peers.crowd_delta(N, EPS0, eps, 1e-30), truth, probes, 1,
    )  # fmt: skip


def nothing() -> harness.Row:
    return {"method": "imports only"}


def main() -> None:
    arguments = harness.options(__doc__.splitlines()[0])
    points = 10**6 if arguments.quick else 10**7
    steps = (1e-3, 1e-4) if arguments.quick else (1e-3, 1e-4, 1e-5)
    dots = (1e-2, 1e-3) if arguments.quick else (1e-2, 5e-3, 2e-3, 1e-3, 1e-4)
    rows = [harness.isolated(nothing)]
    for rounds in (1, 100):
        accountant = Accountant(rtol=1e-6).compose(MECHANISM, rounds)
        bounds = accountant.epsilon_bounds(DELTA)
        truth = {
            "lower": bounds.lower, "upper": bounds.upper,
            "delta": accountant.delta_bounds(bounds.upper).upper,
        }  # fmt: skip
        exact = Accountant(rtol=1e-4).compose(MECHANISM, rounds)
        probes = [
            (eps, delta)
            for eps, delta in ((eps, exact.get_delta(eps)) for eps in exact.get_epsilon(PROBES))
            if delta > 0.0
        ]
        common = (rounds, truth, probes)
        jobs: list[tuple[Callable[..., harness.Row], tuple[object, ...]]] = [(ours, ())]
        jobs += [(dp_accounting_from_pmfs, (step,)) for step in steps]
        jobs += [(dp_accounting_dots, (step,)) for step in dots]
        jobs += [(fixed_grid, (points,))]
        jobs += [(binomial_tails, ())] if rounds == 1 else []
        mine: harness.Row = {}
        for job, extra in jobs:
            row = harness.isolated(job, *common, *extra)
            mine = mine or row
            row["times_slower"] = row["cpu_s"] / mine["cpu_s"]
            rows.append(row)
            print(row, flush=True)
    stem = harness.save(arguments, "against_peers", {"rows": rows})
    columns = ["method", "rounds", "cpu_s", "compose_cpu_s", "times_slower", "memory_mb", "epsilon"]
    print(harness.table(rows, [*columns, "epsilon_error", "delta_error", "smallest_delta"]))
    series = []
    for name, style in (("pld_shuffle", "o"), ("dp_accounting (dict", "s-"), ("dp_accounting (dots", "^-"),
                        ("fixed", "x")):  # fmt: skip
        chosen = [row for row in rows if row["method"].startswith(name) and row["rounds"] == 100]
        error = [max(abs(row["delta_error"]), row.get("bracket", 1e-9), 1e-9) for row in chosen]
        series.append((name.replace(" (", ", "), [row["cpu_s"] for row in chosen], error, style))
    series.append(("rtol", [min(series[0][1]) / 2, 20.0], [1e-3, 1e-3], "k--"))
    harness.log_plot(
        stem, series, x_label="seconds (cpu)", y_label="relative error of delta",
        title="100 rounds, n = 10^4, eps0 = 4, delta = 1e-6",
    )  # fmt: skip


if __name__ == "__main__":
    main()
