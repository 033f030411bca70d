"""Epsilon against the number of rounds, every method valid for any eps0-LDP randomizer on one plot:
n = 10^4, eps0 = 2, delta = 1e-6.

The bounds are those of `pld_shuffle.comparison`, in six groups: certified tight accounting, the same with clones, Renyi
bounds (exact ones of the same pairs, and Girgis et al. 2021), single-round bounds, composed
optimally, and local DP without a shuffler; the table has each of them. No values are published for this
setting; single rounds are compared with the numerical method of Feldman et al.

Run:  python benchmarks/figures/epsilon_over_rounds.py [--quick] [--output DIR]   (about 30 s; writes
epsilon_over_rounds.png and epsilon_over_rounds.csv)
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from pld_shuffle import ShuffledLDP
from pld_shuffle.comparison import Comparison, compare
from pld_shuffle.plots import COLOURS

MECHANISM = ShuffledLDP(eps0=2.0, n=10_000)
DELTA = 1e-6
#: Six lines; every group is drawn by its least bound, with a pale band up to its largest.
GROUPS = {
    "local DP, no shuffling": lambda method: method.kind == "local",
    "closed forms of one round, composed": lambda method: method.kind == "composed" and "numerical" not in method.name,
    "one round numerically, composed": lambda method: method.kind == "composed" and "numerical" in method.name,
    "Renyi bounds": lambda method: method.kind == "rdp",
    "clones, all rounds numerically": lambda method: method.kind == "pld" and "tightest" not in method.name,
    "this package": lambda method: "PLD, tightest" in method.name,
}


def draw(found: list[Comparison], path: Path) -> None:
    figure, axis = plt.subplots(figsize=(8, 5.4), constrained_layout=True)
    for (name, belongs), colour in zip(GROUPS.items(), COLOURS[5::-1], strict=True):
        members = [[m.epsilon for m in one.methods if belongs(m)] for one in found]
        shown = [(one.rounds, min(e), max(e)) for one, e in zip(found, members, strict=True) if e]
        rounds, least, largest = zip(*shown, strict=True)
        most = max(map(len, members))
        label = f"{name} (the least of {most})" if most > 1 else name
        axis.plot(rounds, least, marker=".", color=colour, label=label)
        axis.fill_between(rounds, least, largest, color=colour, alpha=0.12, linewidth=0)
    axis.plot(
        [one.rounds for one in found], [one.tight.lower for one in found], ":", color="black",
        linewidth=2, label="an attack: no analysis can go below",
    )  # fmt: skip
    axis.set(
        xscale="log", yscale="log", xlabel="rounds", ylabel=f"ε at δ = {DELTA:g}",
        title=f"any ε₀-LDP randomizer, ε₀ = {MECHANISM.eps0:g}, n = {MECHANISM.n:,}",
    )  # fmt: skip
    axis.grid(alpha=0.25)
    axis.legend(fontsize=9, loc="upper left")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def report(found: list[Comparison]) -> None:
    for one in (found[0], found[-1]):
        print(f"{one.rounds} round(s): tight [{one.tight.lower:.6g}, {one.tight.upper:.6g}]")
        for method in one.methods:
            print(f"  {method.epsilon:10.5g}  x{method.factor:<8.3f} {method.name}")


def main() -> None:
    parser = argparse.ArgumentParser(description="epsilon over rounds, as PNG and CSV")
    parser.add_argument("--quick", action="store_true", help="2 points per curve instead of 13")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent, help="directory to write to")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    counts = [1, 100] if options.quick else [round(10 ** (i / 4)) for i in range(13)]
    found = [compare(MECHANISM, delta=DELTA, rounds=rounds) for rounds in counts]
    with (options.output / "epsilon_over_rounds.csv").open("w", newline="") as handle:
        table = csv.writer(handle, lineterminator="\n")
        table.writerow(["rounds", "method", "source", "epsilon", "factor"])
        for one in found:
            for m in one.methods:
                table.writerow([one.rounds, m.name, m.source, f"{m.epsilon:.9g}", f"{m.factor:.6g}"])
    draw(found, options.output / "epsilon_over_rounds.png")
    report(found)


if __name__ == "__main__":
    main()
