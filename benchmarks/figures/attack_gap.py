"""How far could any analysis still go? Epsilon of the chosen analysis over epsilon of the strongest concrete
attack that was tried, for randomizers in a shuffler.

`Shuffled(randomizer, n)` proves an upper bound on epsilon; `attack_bounds` gives
the exact divergence of two concrete neighbouring datasets, below which no analysis can be. The truth lies in
between, so a factor of 1 means that nothing is left to gain, and a factor of 1.2 that a better analysis
could lower epsilon by at most a factor of 1.2 (or a better attack raise the floor).

delta = 1e-6, one round, four values. Left: n = 10^4 against eps0. Right: eps0 = 2 against n. Bands are the
brackets of the ratio (lower over upper to upper over lower): thinner than the lines. Dotted: stronger
clones, which know eps0 only, over the same attack.

Run:  python benchmarks/figures/attack_gap.py [--quick] [--output DIR]   (about 30 s; writes
attack_gap.png and attack_gap.csv)
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from pld_shuffle import Accountant, Shuffled
from pld_shuffle.mechanisms.shuffled import MAX_CHOICES, strongest_triples
from pld_shuffle.numerics.sides import Bounds
from pld_shuffle.plots import COLOURS
from pld_shuffle.randomizers import FiniteRandomizer, KRandomizedResponse, SubsetSelection, UnaryEncoding

DELTA, VALUES = 1e-6, 4
USERS, BUDGET = 10**4, 2.0
RANDOMIZERS: dict[str, Callable[[float], FiniteRandomizer]] = {
    "k-RR": lambda eps0: KRandomizedResponse(k=VALUES, eps0=eps0),
    "subset selection, size 2": lambda eps0: SubsetSelection(k=VALUES, size=2, eps0=eps0),
    "unary encoding, symmetric": lambda eps0: UnaryEncoding(k=VALUES, eps0=eps0),
    "unary encoding, optimised": lambda eps0: UnaryEncoding(k=VALUES, eps0=eps0, variant="optimised"),
}


class Point(NamedTuple):
    randomizer: str
    eps0: float
    n: int
    analysis: Bounds
    clones: Bounds
    attack: Bounds
    choice: str

    @property
    def gap(self) -> Bounds:
        """Bounds on the ratio of the two certified quantities."""
        return Bounds(self.analysis.lower / self.attack.upper, self.analysis.upper / self.attack.lower)


def point(name: str, eps0: float, n: int) -> Point:
    randomizer = RANDOMIZERS[name](eps0)
    chosen, clones = (
        Accountant().compose(Shuffled(randomizer, n, analysis)).epsilon_bounds(DELTA)
        for analysis in ("tightest", "stronger-clones")
    )
    found = Shuffled(randomizer, n).attack_bounds(delta=DELTA)
    if not found.lower <= chosen.upper:
        raise RuntimeError(f"the attack {found} is above the analysis {chosen}")
    first, second, others = strongest_triples(randomizer, n, randomizer.attacks(MAX_CHOICES))[0]
    return Point(name, eps0, n, chosen, clones, found, f"{first} or {second} among {others}")


def curves(axis: plt.Axes, points: list[Point], positions: Callable[[Point], float]) -> None:
    for name, colour in zip(RANDOMIZERS, COLOURS, strict=False):
        mine = [p for p in points if p.randomizer == name]
        x = [positions(p) for p in mine]
        lower, upper = (np.array([getattr(p.gap, side) for p in mine]) for side in Bounds._fields)
        axis.fill_between(x, lower, upper, color=colour, alpha=0.3, lw=0)
        axis.plot(x, upper, "-", color=colour, lw=1.8, marker=".", label=name)
        axis.plot(
            x, [p.clones.upper / p.attack.lower for p in mine], ":", color=colour, lw=1.5,
            label=f"{name}, stronger clones",
        )  # fmt: skip
    axis.axhline(1.0, color="black", lw=1)
    axis.set_ylim(bottom=0.97)
    axis.set_ylabel("ε proved / ε of the attack")
    axis.grid(alpha=0.25)


def draw(budgets: list[Point], users: list[Point], path: Path) -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 5.8), constrained_layout=True)
    curves(left, budgets, lambda p: p.eps0)
    curves(right, users, lambda p: p.n)
    left.set(xlabel="local budget ε₀", title=f"n = {USERS:,}")
    right.set(xscale="log", xlabel="users n", title=f"ε₀ = {BUDGET:g}")
    figure.legend(
        *left.get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=9,
        frameon=False,
    )  # fmt: skip
    figure.suptitle(f"What any analysis could still gain: k = {VALUES}, δ = {DELTA:g}, one round")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def report(budgets: list[Point], users: list[Point]) -> None:
    for name in RANDOMIZERS:
        for what, points in ((f"n = {USERS:g}", budgets), (f"eps0 = {BUDGET:g}", users)):
            mine = [p for p in points if p.randomizer == name]
            widest = max(mine, key=lambda p: p.gap.upper)
            least = min(mine, key=lambda p: p.gap.upper)
            print(
                f"{name}, {what}: analysis over attack from {least.gap.upper:.5f} to"
                f" [{widest.gap.lower:.5f}, {widest.gap.upper:.5f}] (the latter at"
                f" eps0 = {widest.eps0:g}, n = {widest.n:g}: {widest.choice})"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description="analysis over attack, as PNG and CSV")
    parser.add_argument("--quick", action="store_true", help="one point per curve instead of 13 and 9")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent, help="directory to write to")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    spans = [1.0] if options.quick else [0.25, *(0.5 * i for i in range(1, 13))]
    sizes = [10**5] if options.quick else [round(n) for n in np.geomspace(1e2, 1e6, 9)]
    budgets = [point(name, eps0, USERS) for name in RANDOMIZERS for eps0 in spans]
    users = [point(name, BUDGET, n) for name in RANDOMIZERS for n in sizes]
    with (options.output / "attack_gap.csv").open("w", newline="") as handle:
        rows = csv.writer(handle, lineterminator="\n")
        names = ("analysis", "stronger_clones", "attack", "gap")
        bounds = [f"{name}_{side}" for name in names for side in Bounds._fields]
        rows.writerow(["randomizer", "eps0", "n", *bounds, "attack_choice"])
        for p in budgets + users:
            numbers = [*p.analysis, *p.clones, *p.attack, *p.gap]
            rows.writerow([p.randomizer, p.eps0, p.n, *(f"{float(v):.9g}" for v in numbers), p.choice])
    draw(budgets, users, options.output / "attack_gap.png")
    report(budgets, users)


if __name__ == "__main__":
    main()
