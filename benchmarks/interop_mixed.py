"""100 shuffled rounds and 1,000 steps of a Poisson-subsampled Gaussian, in either accountant.

Rounds: eps0 = 4, n = 10^4, stronger clones. Steps: noise multiplier 1, sampling probability 0.01.
Neighbours: one user's value is replaced. delta = 1e-6.

* accountant: `ShufflePrivacyAccountant`, from the events to a certified bracket (its upper end is
  the row's epsilon).
* dp_accounting + export: its own `from_gaussian_mechanism`, our `to_dp_accounting`, and its
  composition.
* accountant + import: its single step by `from_dp_accounting`, composed here.

`epsilon_error` is epsilon minus the bracket at rtol = 3e-4 (0 inside it), `delta_error` the
relative error of delta at the bracket's upper end. Times are from parameters to epsilon, median of
up to 3 after one unmeasured run, every row in a process of its own.

The second table is what dp_accounting's *composition* adds: its delta, minus a certified bracket
for the composition of the very same masses (0 inside it), so without what the grid costs.

    python benchmarks/interop_mixed.py [--quick]
"""

from __future__ import annotations

import warnings
from typing import Any

import harness

from pld_shuffle import Accountant, ShuffledLDP
from pld_shuffle.mechanisms.central import PoissonGaussian

SHUFFLED, ROUNDS = ShuffledLDP(eps0=4.0, n=10_000, analysis="stronger-clones"), 100
NOISE, RATE, STEPS = 1.0, 0.01, 1000
DELTA = 1e-6
PROBES = (1e-3, 1e-6, 1e-9, 1e-10, 1e-11, 1e-12, 1e-13, 1e-14)

Truth = dict[str, float]


def peer_laws(grid: float) -> tuple[Any, Any]:
    """One step and one round, on dp_accounting's grid."""
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import privacy_loss_distribution as pld

    from pld_shuffle.interop.dp_accounting import to_dp_accounting

    step = pld.from_gaussian_mechanism(
        NOISE, sampling_prob=RATE, value_discretization_interval=grid,
        neighboring_relation=NeighboringRelation.REPLACE_ONE,
    )  # fmt: skip
    return step, to_dp_accounting(SHUFFLED, discretization=grid)


def peer_composition(grid: float) -> Any:
    step, one_round = peer_laws(grid)
    return step.self_compose(STEPS).compose(one_round.self_compose(ROUNDS))


def imported(grid: float, rtol: float) -> Accountant:
    """Both single laws imported."""
    from dp_accounting import NeighboringRelation

    from pld_shuffle.interop.dp_accounting import from_dp_accounting

    accountant = Accountant(rtol)
    for law, count in zip(peer_laws(grid), (STEPS, ROUNDS), strict=True):
        accountant.compose(from_dp_accounting(law, NeighboringRelation.REPLACE_ONE), count)
    return accountant


def row_of(method: str, timing: harness.Timing, delta: float, truth: Truth) -> harness.Row:
    epsilon = timing.value
    return {
        "method": method, "cpu_s": timing.cpu, "wall_s": timing.wall, "epsilon": epsilon,
        "epsilon_error": max(epsilon - truth["upper"], min(epsilon - truth["lower"], 0.0)),
        "delta_error": delta / truth["delta"] - 1.0,
    }  # fmt: skip


def ours(truth: Truth) -> harness.Row:
    from dp_accounting import dp_event

    from pld_shuffle.interop.dp_accounting import MechanismEvent, ShufflePrivacyAccountant

    step = dp_event.PoissonSampledDpEvent(RATE, dp_event.GaussianDpEvent(NOISE))

    def run() -> ShufflePrivacyAccountant:
        accountant = ShufflePrivacyAccountant().compose(step, STEPS)
        return accountant.compose(MechanismEvent(SHUFFLED), ROUNDS)

    timing = harness.measure(lambda: run().get_epsilon(DELTA), repeats=3)
    return row_of("accountant", timing, run().get_delta(truth["upper"]), truth)


def exported(truth: Truth, grid: float) -> harness.Row:
    timing = harness.measure(lambda: peer_composition(grid).get_epsilon_for_delta(DELTA), repeats=3)
    delta = float(peer_composition(grid).get_delta_for_epsilon(truth["upper"]))
    return row_of(f"dp_accounting + export, grid {grid:g}", timing, delta, truth)


def reimported(truth: Truth, grid: float) -> harness.Row:
    from dp_accounting import NeighboringRelation

    from pld_shuffle.interop.dp_accounting import from_dp_accounting

    def run() -> Accountant:
        step = from_dp_accounting(peer_laws(grid)[0], NeighboringRelation.REPLACE_ONE)
        return Accountant().compose(step, STEPS).compose(SHUFFLED, ROUNDS)

    timing = harness.measure(lambda: run().get_epsilon(DELTA), repeats=3)
    return row_of(f"accountant + import, grid {grid:g}", timing, run().get_delta(truth["upper"]), truth)


def added(grid: float, probes: list[tuple[float, float]]) -> list[harness.Row]:
    """What composing the same masses with dp_accounting adds to delta."""
    same, theirs = imported(grid, 3e-4), peer_composition(grid)
    rows = []
    for wanted, epsilon in probes:
        bounds = same.delta_bounds(epsilon)
        value = float(theirs.get_delta_for_epsilon(epsilon))
        outside = max(value - bounds.upper, min(value - bounds.lower, 0.0))
        rows.append(
            {
                "grid": grid, "delta": wanted, "epsilon": epsilon, "composed": value,
                "lower": bounds.lower, "upper": bounds.upper, "added": outside,
                "relative": outside / bounds.upper,
            }
        )  # fmt: skip
        print(rows[-1], flush=True)
    return rows


def nothing() -> harness.Row:
    from pld_shuffle.interop import dp_accounting

    return {"method": "imports only", "of": dp_accounting.__name__}


def main() -> None:
    arguments = harness.options(__doc__.splitlines()[0])
    grids = (1e-3,) if arguments.quick else (1e-3, 1e-4)
    accountant = Accountant(3e-4).compose(PoissonGaussian(NOISE, RATE), STEPS)
    accountant.compose(SHUFFLED, ROUNDS)
    bounds = accountant.epsilon_bounds(DELTA)
    truth = {
        "lower": bounds.lower, "upper": bounds.upper,
        "delta": accountant.delta_bounds(bounds.upper).upper,
    }  # fmt: skip
    rows = [harness.isolated(nothing), harness.isolated(ours, truth)]
    for job in (exported, reimported):
        for grid in grids:
            rows.append(harness.isolated(job, truth, grid))
            print(rows[-1], flush=True)
    probes = [(delta, accountant.get_epsilon(delta)) for delta in PROBES]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # dp_accounting's imports
        extra = [row for grid in grids for row in added(grid, probes)]
    stem = harness.save(arguments, "interop_mixed", {"rows": rows, "truth": truth, "added": extra})
    columns = ["method", "cpu_s", "wall_s", "memory_mb", "epsilon", "epsilon_error", "delta_error"]
    print(harness.table(rows, columns))
    print(harness.table(extra, ["grid", "delta", "composed", "lower", "upper", "added", "relative"]))
    series = []
    for sign, name, style in ((-1.0, "too small", "v"), (1.0, "too large", "^")):
        chosen = [row for row in extra if sign * row["added"] > 0.0]
        if chosen:
            x, y = [row["delta"] for row in chosen], [abs(row["relative"]) for row in chosen]
            series.append((name, x, y, style))
    harness.log_plot(
        stem, series, x_label="delta", y_label="relative error of delta", mirrored=True,
        title="what composing with dp_accounting adds to the same masses",
    )  # fmt: skip


if __name__ == "__main__":
    main()
