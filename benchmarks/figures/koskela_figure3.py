"""Koskela, Heikkila, Honkela, Tight accounting in the shuffle model, figure 3: k-ary randomized
response, n = 1000, k = 4, gamma = 0.25, after 1, 4 and 16 rounds.

delta(epsilon) against the strong adversary (exact), the strong adversary given that the target told
the truth (the published pair), the weak adversary, and, for somebody who sees the shuffled reports
only, the two general analyses at the same eps0; for one round also the analytic bound of Balle et
al. 2019, Theorem 1.

Two places differ from the paper: its strong pair leaves out the event that the target answers at
random (loss 0, probability gamma), and its weak pair mixes in gamma B/k where gamma (B+1)/k is exact.

Run:  python benchmarks/figures/koskela_figure3.py [--quick] [--output DIR]   (about 30 s; writes
koskela_figure3.png and koskela_figure3.csv)
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

from pld_shuffle import Accountant, ShuffledLDP, ShuffledRR
from pld_shuffle.bounds import OutOfRange
from pld_shuffle.plots import COLOURS

N, K, GAMMA = 1_000, 4, 0.25
ROUNDS = (1, 4, 16)
LARGEST = {1: 1.5, 4: 2.5, 16: 5.0}
MECHANISMS: dict[str, ShuffledRR | ShuffledLDP] = {
    f"RR, {adversary}": ShuffledRR(k=K, n=N, gamma=GAMMA, adversary=adversary)
    for adversary in ("strong", "strong-conditional", "weak")
}
EPS0 = math.log1p(K * (1 - GAMMA) / GAMMA)
MECHANISMS |= {
    f"any eps0-LDP, {analysis}": ShuffledLDP(eps0=EPS0, n=N, analysis=analysis)
    for analysis in ("stronger-clones", "clones")
}
# epsilon at delta = 1e-4 after 1, 4, 16 rounds
REFERENCE = {
    "RR, strong": (0.530762, 1.074038, 2.255169),
    "RR, strong-conditional": (0.54733, 1.17464, 2.58666),
    "RR, weak": (0.389063, 0.842216, 1.847519),
}
# epsilon at delta = 10^-5.5 after 16 rounds by the authors' published code
PUBLISHED = {"RR, strong": 3.1996, "RR, weak": 2.312}

Row = tuple[str, int, float, float, float]


def theorem_1(epsilon: float) -> float:
    """delta by Balle et al. 2019, Theorem 1 (`BalleTheorem1`) solved for it."""
    hidden = (N - 1) * GAMMA / K  # who answer at random, per value
    if not 27 / hidden <= epsilon <= 1:
        raise OutOfRange(f"epsilon = {epsilon!r}: Theorem 1 needs {27 / hidden:.3g} <= epsilon <= 1")
    return min(1.0, 2 * math.exp(-(epsilon**2) * hidden / 14))


def curves(points: int) -> list[Row]:
    """(curve, rounds, epsilon, lower, upper)."""
    rows: list[Row] = []
    for rounds in ROUNDS:
        epsilons = np.linspace(0.0, LARGEST[rounds], points)
        for name, mechanism in MECHANISMS.items():
            found = Accountant().compose(mechanism, rounds).delta_bounds(epsilons)
            for epsilon, lower, upper in zip(epsilons, found.lower, found.upper, strict=True):
                rows.append((name, rounds, float(epsilon), lower, upper))
        if rounds == 1:
            for epsilon in epsilons:
                try:
                    value = theorem_1(float(epsilon))
                except ValueError:  # epsilon = 0, or out of the theorem's range
                    continue
                rows.append(("Balle et al. 2019, Theorem 1", 1, float(epsilon), math.nan, value))
    return rows


def draw(rows: list[Row], path: Path) -> None:
    figure, axes = plt.subplots(1, len(ROUNDS), figsize=(14, 4.8), constrained_layout=True)
    names = dict.fromkeys(row[0] for row in rows)
    for axis, rounds in zip(axes, ROUNDS, strict=True):
        for name, colour in zip(names, COLOURS, strict=False):
            mine = [row for row in rows if row[0] == name and row[1] == rounds and row[4] > 0]
            style = "-" if name.startswith("RR") else "--" if name.startswith("any") else ":"
            axis.plot([row[2] for row in mine], [row[4] for row in mine], style, color=colour, label=name)
        axis.set(yscale="log", ylim=(1e-10, 2), xlabel="ε", title=f"{rounds} round{'s' * (rounds > 1)}")
        axis.grid(alpha=0.25)
    axes[0].set_ylabel("δ(ε)")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=6)
    figure.suptitle(f"{K}-ary randomized response, n = {N}, γ = {GAMMA} (ε₀ = {EPS0:.3f})")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def report() -> None:
    """Published and reference values beside ours."""
    print("epsilon at delta = 1e-4          rounds   reference   ours (certified bracket)")
    for name, values in REFERENCE.items():
        for rounds, value in zip(ROUNDS, values, strict=True):
            found = Accountant().compose(MECHANISMS[name], rounds).epsilon_bounds(1e-4)
            print(f"  {name:30} {rounds:6}   {value:9.6f}   [{found.lower:.6f}, {found.upper:.6f}]")
    print("epsilon at delta = 10^-5.5, 16 rounds")
    for name, value in PUBLISHED.items():
        found = Accountant().compose(MECHANISMS[name], 16).epsilon_bounds(10**-5.5)
        print(f"  {name:30} published {value:.4f}, ours [{found.lower:.4f}, {found.upper:.4f}]")
    conditional = Accountant().compose(MECHANISMS["RR, strong-conditional"], 16)
    found = conditional.epsilon_bounds(10**-5.5)
    print(
        "  strong: the published pair is conditional on a truthful target, which leaves out the "
        f"loss-0 event of probability gamma;\n  that pair gives [{found.lower:.4f}, "
        f"{found.upper:.4f}] here too.\n  weak: B against B+1, the target's own message is among "
        "those left."
    )
    try:
        value = theorem_1(0.9)
        found = Accountant().compose(MECHANISMS["RR, weak"]).delta_bounds(0.9)
        print(
            f"Balle et al. 2019, Theorem 1, one round, epsilon = 0.9: delta <= {value:.3g}; "
            f"the weak adversary's exact delta is {found.upper:.3g}"
        )
    except OutOfRange as error:
        print(error)


def main() -> None:
    parser = argparse.ArgumentParser(description="Koskela et al., figure 3, as PNG and CSV")
    parser.add_argument("--quick", action="store_true", help="7 points per curve instead of 60")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent, help="directory to write to")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    rows = curves(7 if options.quick else 60)
    with (options.output / "koskela_figure3.csv").open("w", newline="") as handle:
        table = csv.writer(handle, lineterminator="\n")
        table.writerow(["curve", "rounds", "epsilon", "lower", "upper"])
        for curve, rounds, epsilon, lower, upper in rows:
            table.writerow([curve, rounds, f"{epsilon:.12g}", f"{lower:.9g}", f"{upper:.9g}"])
    draw(rows, options.output / "koskela_figure3.png")
    report()


if __name__ == "__main__":
    main()
