"""Epsilon over epochs of DP-SGD at delta = 1e-6, per noise multiplier: 1,000 batches of 1,000 records.

One record is left out of every epoch (Theorem D of docs/shuffled_batches.md): attack and bound; beside them random
allocation, Poisson sampling (both upper ends, by this package), and the noise of batches that are known.

Run:  python benchmarks/figures/training_epochs.py [--quick] [--output DIR]   (about 3 min; writes
training_epochs.png and training_epochs.csv)
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from pld_shuffle import Accountant
from pld_shuffle.composition.composition import AccuracyWarning
from pld_shuffle.plots import COLOURS
from pld_shuffle.training import Training

DELTA, BATCH, BATCHES = 1e-6, 1000, 1000
SIGMAS, EPOCHS = (0.7, 1.0, 2.0, 4.0), (1, 10, 100)
LINES = {
    "none": ("batch known", ":", 3), "bound": ("shuffled, proved", "-", 0), "attack": ("shuffled, attack", "--", 1),
    "allocation": ("random allocation", "-", 2), "poisson": ("Poisson, reported", "-.", 4),
}  # fmt: skip
COLUMNS = ("sigma", "epochs", "attack", "bound", "allocation", "poisson", "none", "seconds_shuffled")


def spent(sigma: float, epochs: int, sampler: str) -> tuple[float, float]:
    run = Training(BATCHES * BATCH + 1, BATCH, epochs, sigma, sampler)
    lower, upper = Accountant().compose(*run.rounds).epsilon_bounds(DELTA)
    return float(lower), float(upper)


def row(sigma: float, epochs: int) -> dict[str, float]:
    start = time.process_time()
    shuffled = spent(sigma, epochs, "shuffle")
    seconds = time.process_time() - start
    others = (spent(sigma, epochs, sampler)[1] for sampler in ("balls-and-bins", "poisson", "cyclic"))
    return dict(zip(COLUMNS, (sigma, epochs, *shuffled, *others, seconds), strict=True))


def draw(rows: list[dict[str, float]], path: Path) -> None:
    sigmas = list(dict.fromkeys(row["sigma"] for row in rows))
    figure, panels = plt.subplots(1, len(sigmas), figsize=(2.6 * len(sigmas), 3.4), squeeze=False)
    for panel, sigma in zip(panels[0], sigmas, strict=True):
        mine = [row for row in rows if row["sigma"] == sigma]
        for name, (label, style, colour) in LINES.items():
            x, y = [row["epochs"] for row in mine], [row[name] for row in mine]
            panel.plot(x, y, style, label=label, color=COLOURS[colour])
        panel.set(xscale="log", yscale="log", xlabel="epochs", title=f"sigma = {sigma:g}")
    figure.axes[0].set_ylabel(f"epsilon at delta = {DELTA:g}, {BATCHES} batches")
    figure.axes[-1].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", AccuracyWarning)
    sigmas, epochs = ((0.7, 1.0), (1,)) if arguments.quick else (SIGMAS, EPOCHS)
    rows = []
    for sigma in sigmas:
        for count in epochs:
            rows.append(row(sigma, count))
            print("| " + " | ".join(f"{value:.5g}" for value in rows[-1].values()) + " |", flush=True)
    with (arguments.output / "training_epochs.csv").open("w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(handle, COLUMNS)
        writer.writeheader()
        writer.writerows({name: f"{value:.6g}" for name, value in row.items()} for row in rows)
    draw(rows, arguments.output / "training_epochs.png")


if __name__ == "__main__":
    main()
