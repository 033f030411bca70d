"""One epoch of DP-SGD with shuffled batches, beside random allocation and the Poisson sampling that is reported.

Epsilon at delta = 1e-6 against the number of batches, in the order that costs more (a record is removed), per noise
multiplier. A thousandth of a batch is left out of every epoch, so that Theorem D of docs/shuffled_batches.md holds.

* bound, attack: `ShuffledBatches`, upper and lower end;
* allocation: `RandomAllocation`, both ends (thinner than the line);
* poisson: dp_accounting's PLDAccountant on Poisson samples of the same size, add or remove one;
* none: the noise of a batch that is known.

Run:  python benchmarks/figures/training.py [--quick] [--output DIR]   (about 1 min; writes
training.png and training.csv)
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import dp_accounting
import matplotlib.pyplot as plt
from dp_accounting.pld import PLDAccountant

from pld_shuffle import Accountant, Gaussian, RandomAllocation, ShuffledBatches, ZeroOut
from pld_shuffle.composition.composition import AccuracyWarning
from pld_shuffle.plots import COLOURS

DELTA, BATCH = 1e-6, 1000
SIGMAS = (0.7, 1.0, 1.5, 2.0, 4.0)
BATCHES = (100, 1_000, 10_000, 100_000)
COLUMNS = ("sigma", "batches", "attack", "bound", "allocation_lower", "allocation_upper", "poisson", "none",
           "seconds_shuffled", "seconds_allocation", "seconds_poisson")  # fmt: skip
LINES = {
    "none": ("batch known", ":", 3),
    "bound": ("shuffled, proved", "-", 0),
    "attack": ("shuffled, attack", "--", 1),
    "allocation_upper": ("random allocation", "-", 2),
    "poisson": ("Poisson, reported", "-.", 4),
}


def poisson(sigma: float, batches: int) -> float:
    """Epsilon by dp_accounting, pessimistic."""
    event = dp_accounting.PoissonSampledDpEvent(1.0 / batches, dp_accounting.GaussianDpEvent(sigma))
    accountant = PLDAccountant(dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE)
    return float(accountant.compose(event, batches).get_epsilon(DELTA))


def row(sigma: float, batches: int) -> dict[str, float]:
    start = time.process_time()
    epoch = ShuffledBatches(sigma, batches, BATCH, batches * BATCH + 1)
    shuffled = Accountant().compose(epoch).epsilon_bounds(DELTA)
    middle = time.process_time()
    hidden = RandomAllocation(Gaussian(sigma=sigma), batches)
    allocated = Accountant().compose(hidden).epsilon_bounds(DELTA)
    end = time.process_time()
    sampled = poisson(sigma, batches)
    none = Accountant().compose(ZeroOut(Gaussian(sigma=sigma))).get_epsilon(DELTA)
    times = (middle - start, end - middle, time.process_time() - end)
    return dict(zip(COLUMNS, (sigma, batches, *shuffled, *allocated, sampled, none, *times), strict=True))


def draw(rows: list[dict[str, float]], path: Path) -> None:
    sigmas = list(dict.fromkeys(row["sigma"] for row in rows))
    figure, panels = plt.subplots(1, len(sigmas), figsize=(2.6 * len(sigmas), 3.4), sharey=True)
    for panel, sigma in zip([panels] if len(sigmas) == 1 else panels, sigmas, strict=True):
        mine = [row for row in rows if row["sigma"] == sigma]
        x = [row["batches"] for row in mine]
        for name, (label, style, colour) in LINES.items():
            y = [row[name] for row in mine]
            panel.plot(x, y, style, label=label, color=COLOURS[colour])
        panel.set(xscale="log", yscale="log", xlabel="batches", title=f"sigma = {sigma:g}")
    figure.axes[0].set_ylabel(f"epsilon at delta = {DELTA:g}, one epoch")
    figure.axes[-1].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", AccuracyWarning)
    sigmas, batches = ((2.0,), (10, 100)) if arguments.quick else (SIGMAS, BATCHES)
    rows = [row(sigma, count) for sigma in sigmas for count in batches]
    with (arguments.output / "training.csv").open("w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(handle, COLUMNS)
        writer.writeheader()
        writer.writerows({name: f"{value:.6g}" for name, value in row.items()} for row in rows)
    for one in rows:
        print("| " + " | ".join(f"{value:.5g}" for value in one.values()) + " |", flush=True)
    draw(rows, arguments.output / "training.png")


if __name__ == "__main__":
    main()
