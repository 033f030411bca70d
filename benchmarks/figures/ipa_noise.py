"""How many coins hide a user in a sum? What private-attribution's IPA takes, by cpSGD's theorem, and what is enough.

IPA's helpers add N fair coins to every count. Its code (private-attribution/ipa, ipa-core/src/protocol/dp/mod.rs:
`epsilon_constraint`, `delta_constraint`) takes the smallest N for which Theorem 1 of cpSGD (Agarwal, Suresh, Yu, Kumar,
McMahan 2018) proves (epsilon, delta), with its condition N p (1-p) >= 23 log(10 d / delta): 1,483 coins for one count
of sensitivity 1, epsilon = 1, delta = 1e-6. That rule is written down here once more. Next to it the smallest N whose
exact law is certified, and what IPA's N really spends.

Run:  python benchmarks/figures/ipa_noise.py [--quick] [--output DIR]   (about 5 s; writes ipa_noise.png and
ipa_noise.csv)
"""

from __future__ import annotations

import argparse
import csv
import math
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from pld_shuffle import Accountant, SummedNoise, solve
from pld_shuffle.plots import COLOURS
from pld_shuffle.shares import Binomial

DELTA = 1e-6
P = 0.5

Row = tuple[float, int, int, float]  # epsilon, coins by theorem, coins that are enough, epsilon of the former


def theorem_epsilon(coins: int, delta: float, sensitivity: float = 1.0) -> float:
    """Equation 7 of cpSGD for one dimension, quantization scale 1, and equal sensitivities in all norms."""
    square = P * P + (1 - P) ** 2
    b = 2 / 3 * square + 1 - 2 * P
    c = math.sqrt(2) * (3 * P**3 + 3 * (1 - P) ** 3 + 2 * square)
    d = 4 / 3 * square
    variance = coins * P * (1 - P)
    gaussian = sensitivity * math.sqrt(2 * math.log(1.25 / delta) / variance)
    middle = sensitivity * (c * math.sqrt(math.log(10 / delta)) + b) / (variance * (1 - delta / 10))
    last = 2 / 3 * math.log(1.25 / delta) + d * math.log(20 / delta) * math.log(10 / delta)
    return gaussian + middle + sensitivity * last / variance


def theorem_coins(epsilon: float, delta: float) -> int:
    """The smallest number that the theorem accepts."""
    least = math.ceil(23 * math.log(10 / delta) / (P * (1 - P)))
    low, high = 0, 10**8
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if theorem_epsilon(middle, delta) <= epsilon else (middle, high)
    return max(high, least)


def rows_for(epsilons: list[float]) -> list[Row]:
    found = []
    for epsilon in epsilons:
        plan = {"mechanism": "summed-noise", "n": 1, "share": "binomial"}
        enough = int(solve("trials", plan, epsilon=epsilon, delta=DELTA).value)
        taken = theorem_coins(epsilon, DELTA)
        spent = Accountant().compose(SummedNoise(Binomial(taken), 1)).get_epsilon(DELTA)
        found.append((epsilon, taken, enough, spent))
    return found


def draw(rows: list[Row], path: Path) -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.6), constrained_layout=True)
    epsilon, taken, enough, spent = (np.array(column) for column in zip(*rows, strict=True))
    left.loglog(epsilon, taken, "s--", color=COLOURS[1], ms=4, label="IPA (cpSGD, Theorem 1)")
    left.loglog(epsilon, enough, "o-", color=COLOURS[0], ms=4, label="certified, exact law")
    left.set(xlabel="ε wanted", ylabel="fair coins", title=f"Coins for one count, δ = {DELTA:g}")
    right.loglog(epsilon, spent, "s--", color=COLOURS[1], ms=4, label="what IPA's coins spend")
    right.loglog(epsilon, epsilon, "-", color="black", lw=1, label="what is claimed")
    right.set(xlabel="ε claimed", ylabel="ε, certified", title="The same coins, accounted exactly")
    for axis in (left, right):
        axis.grid(alpha=0.25, which="both")
        axis.legend()
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description="coins by theorem and by the exact law")
    parser.add_argument("--quick", action="store_true", help="3 values of epsilon instead of 13")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent, help="where to write")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    epsilons = [0.5, 1.0, 2.0] if options.quick else [0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10]
    rows = rows_for(epsilons)
    with (options.output / "ipa_noise.csv").open("w", newline="") as handle:
        table = csv.writer(handle, lineterminator="\n")
        table.writerow(["epsilon", "coins_by_theorem", "coins_certified", "epsilon_of_the_theorems_coins"])
        table.writerows([epsilon, taken, enough, f"{spent:.6g}"] for epsilon, taken, enough, spent in rows)
    draw(rows, options.output / "ipa_noise.png")
    for epsilon, taken, enough, spent in rows:
        print(
            f"epsilon {epsilon:g}, delta {DELTA:g}: {taken} coins by theorem, {enough} are enough"
            f" (error {math.sqrt(taken / enough):.2f} times smaller); the former spend {spent:.4g}"
        )


if __name__ == "__main__":
    main()
