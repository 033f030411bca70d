"""Epsilon against the number of rounds, every method valid for any eps0-LDP randomizer on one plot:
n = 10^4, eps0 = 2, delta = 1e-6.

The lines are those of `pld_shuffle.comparison`: certified tight accounting with both analyses, exact
Renyi accounting of the same pairs, the Renyi bound of Girgis et al. 2021, single-round bounds with
optimal, advanced and basic composition, and local DP without a shuffler. No values are published
for this setting; single rounds are compared with the numerical method of Feldman et al.

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

MECHANISM = ShuffledLDP(eps0=2.0, n=10_000)
DELTA = 1e-6
STYLES = {"pld": "-", "rdp": "--", "composed": "-.", "local": ":"}


def draw(found: list[Comparison], path: Path) -> None:
    figure, axis = plt.subplots(figsize=(10, 6), constrained_layout=True)
    colours = plt.get_cmap("tab20").colors
    kinds = {method.name: method.kind for one in found for method in one.methods}
    last = {method.name: method.epsilon for one in found for method in one.methods}
    for place, name in enumerate(sorted(kinds, key=lambda name: -last[name])):
        points = [(one.rounds, m.epsilon) for one in found for m in one.methods if m.name == name]
        axis.plot(
            [x for x, _ in points], [y for _, y in points], STYLES[kinds[name]],
            marker=".", color=colours[place % 20], label=name,
        )  # fmt: skip
    axis.set(
        xscale="log", yscale="log", xlabel="rounds", ylabel=f"ε at δ = {DELTA:g}",
        title=f"{MECHANISM!r}",
    )  # fmt: skip
    axis.grid(alpha=0.25)
    axis.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5))
    figure.savefig(path, dpi=130)
    plt.close(figure)


def report(found: list[Comparison]) -> None:
    for one in (found[0], found[-1]):
        print(f"{one.rounds} round(s): tight [{one.tight.lower:.6g}, {one.tight.upper:.6g}]")
        for method in one.methods:
            print(f"  {method.epsilon:10.5g}  x{method.factor:<8.3f} {method.name}")
    numerical = found[0]["stronger clones, numerical"]
    print(
        f"Feldman et al.'s numerical method for one round gives {numerical.epsilon:.6g}: the same "
        f"pair, {numerical.factor - 1:+.1e} from our upper bound (both are within their accuracy)."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="epsilon over rounds, as PNG and CSV")
    parser.add_argument("--quick", action="store_true", help="2 points per curve instead of 13")
    parser.add_argument(
        "--output", type=Path, default=Path(__file__).parent, help="directory to write to"
    )
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    counts = [1, 100] if options.quick else [round(10 ** (i / 4)) for i in range(13)]
    found = [compare(MECHANISM, delta=DELTA, rounds=rounds) for rounds in counts]
    with (options.output / "epsilon_over_rounds.csv").open("w", newline="") as handle:
        table = csv.writer(handle, lineterminator="\n")
        table.writerow(["rounds", "method", "source", "epsilon", "factor"])
        for one in found:
            for m in one.methods:
                table.writerow(
                    [one.rounds, m.name, m.source, f"{m.epsilon:.9g}", f"{m.factor:.6g}"]
                )
    draw(found, options.output / "epsilon_over_rounds.png")
    report(found)


if __name__ == "__main__":
    main()
