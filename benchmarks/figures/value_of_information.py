"""The value of information: by how much epsilon grows when the adversary also learns whether the
target of k-ary randomized response answered at random (strong against weak), against k and gamma.

n = 1000, delta = 1e-4, one round (left) and sixteen (right). Koskela, Heikkila, Honkela coin the term
and show one setting, k = 4, gamma = 0.25; its values are printed beside ours. Their strong adversary
is conditional on a truthful target and costs more than the exact one.

Run:  python benchmarks/figures/value_of_information.py [--quick] [--output DIR]   (about 30 s; writes
value_of_information.png and value_of_information.csv)
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from pld_shuffle import Accountant, ShuffledRR
from pld_shuffle.plots import COLOURS

N, DELTA = 1_000, 1e-4
ROUNDS = (1, 16)
ALPHABETS = (2, 4, 8, 16)
# k = 4, gamma = 0.25, delta = 1e-4: strong, strong given a truthful target (published pair), weak
REFERENCE = {1: (0.530762, 0.54733, 0.389063), 16: (2.255169, 2.58666, 1.847519)}

Row = tuple[int, int, float, float, float]


def spent(k: int, gamma: float, adversary: str, rounds: int) -> float:
    mechanism = ShuffledRR(k=k, n=N, gamma=gamma, adversary=adversary)
    return float(Accountant().compose(mechanism, rounds).get_epsilon(DELTA))


def table_of(gammas: np.ndarray) -> list[Row]:
    """(rounds, k, gamma, strong, weak)."""
    return [
        (
            rounds, k, float(gamma),
            spent(k, float(gamma), "strong", rounds), spent(k, float(gamma), "weak", rounds),
        )
        for rounds in ROUNDS
        for k in ALPHABETS
        for gamma in gammas
    ]  # fmt: skip


def draw(rows: list[Row], path: Path) -> None:
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), constrained_layout=True)
    for axis, rounds in zip(axes, ROUNDS, strict=True):
        for k, colour in zip(ALPHABETS, COLOURS, strict=False):
            mine = [row for row in rows if row[0] == rounds and row[1] == k and np.isfinite(row[3])]
            axis.plot(
                [row[2] for row in mine], [row[3] / row[4] for row in mine], color=colour,
                marker=".", label=f"k = {k}",
            )  # fmt: skip
        axis.set(
            xlabel="γ, probability of a random answer", ylabel="ε strong / ε weak",
            title=f"{rounds} round{'s' * (rounds > 1)}, n = {N}, δ = {DELTA:g}",
        )  # fmt: skip
        axis.grid(alpha=0.25)
        axis.legend(fontsize=8)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def report() -> None:
    print("k = 4, gamma = 0.25, delta = 1e-4      reference, ours")
    for rounds, values in REFERENCE.items():
        for adversary, value in zip(("strong", "strong-conditional", "weak"), values, strict=True):
            mine = spent(4, 0.25, adversary, rounds)
            print(f"  {rounds:2} round(s), {adversary:20} {value:9.6f}  {mine:9.6f}")
    print(
        "The published strong pair is the conditional one: it leaves out the loss-0 event that the "
        "target answers at random."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="strong against weak, as PNG and CSV")
    parser.add_argument("--quick", action="store_true", help="2 points per curve instead of 16")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent, help="directory to write to")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    gammas = np.array([0.3, 0.8]) if options.quick else np.linspace(0.15, 0.9, 16)
    rows = table_of(gammas)
    with (options.output / "value_of_information.csv").open("w", newline="") as handle:
        table = csv.writer(handle, lineterminator="\n")
        table.writerow(["rounds", "k", "gamma", "epsilon_strong", "epsilon_weak"])
        for rounds, k, gamma, strong, weak in rows:
            table.writerow([rounds, k, f"{gamma:.6g}", f"{strong:.9g}", f"{weak:.9g}"])
    draw(rows, options.output / "value_of_information.png")
    report()


if __name__ == "__main__":
    main()
