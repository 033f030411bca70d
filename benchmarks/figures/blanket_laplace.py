"""What knowing the randomizer is worth: Laplace noise on [0, 1] in a shuffler, by three proven analyses.

blanket          the exact divergence of the blanket adversary (Balle, Bell, Gascon, Nissim 2019, Lemma 8)
(p, beta, q)     the reduction from eps0 and the total variation beta = 1 - exp(-eps0/2) of the pair (0, 1)
stronger clones  eps0 only (Feldman, McMillan, Talwar 2023)

Epsilon at delta = 1e-8, substitution. Left: one round against the number of users; also Gaussian noise with
sigma = 1, which is not purely locally private, so that only the blanket applies. Middle: the factors by
which the other two are larger for Laplace noise. Right: against the rounds, n = 10^5 and eps0 = 2. Lines are
upper bounds, brackets are in the table; factors are upper over upper.

Run:  python benchmarks/figures/blanket_laplace.py [--quick] [--output DIR]   (about 30 s; writes
blanket_laplace.png and blanket_laplace.csv)
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

from pld_shuffle import Accountant, Mechanism, ShuffledLDP, ShuffledRandomizer
from pld_shuffle.mechanisms.shuffled import Blanket
from pld_shuffle.plots import COLOURS
from pld_shuffle.randomizers import Gaussian, Laplace

DELTA = 1e-8
BUDGETS = (1.0, 2.0, 4.0)
USERS, BUDGET = 10**5, 2.0  # against the rounds
SIGMA, GAUSSIAN_USERS = 1.0, 10**5  # least number of users: fewer take minutes each
BLANKET, REDUCTION, CLONES = "blanket", "(p, β, q) reduction", "stronger clones"
ANALYSES: dict[str, Callable[[Laplace, int], Mechanism]] = {
    BLANKET: lambda noise, n: Blanket(noise, n),
    REDUCTION: lambda noise, n: ShuffledRandomizer(n, eps0=noise.eps0, tv=noise.tv),
    CLONES: lambda noise, n: ShuffledLDP(noise.eps0, n, "stronger-clones"),
}
STYLES = {BLANKET: "-", REDUCTION: "--", CLONES: ":"}


class Point(NamedTuple):
    sweep: str
    eps0: float
    n: int
    rounds: int
    analysis: str
    lower: float
    upper: float


def point(sweep: str, eps0: float, n: int, rounds: int, analysis: str) -> Point:
    mechanism = ANALYSES[analysis](Laplace(eps0=eps0), n)
    bounds = Accountant().compose(mechanism, rounds).epsilon_bounds(DELTA)
    return Point(sweep, eps0, n, rounds, analysis, float(bounds.lower), float(bounds.upper))


def table_of(users: list[int], rounds: list[int]) -> list[Point]:
    points = [point("users", e, n, 1, name) for e in BUDGETS for n in users for name in ANALYSES]
    return points + [point("rounds", BUDGET, USERS, r, name) for r in rounds for name in ANALYSES]


def gaussian_curve(users: list[int]) -> list[tuple[int, float, float]]:
    """(n, lower, upper) for one round of Gaussian noise."""
    noise = Gaussian(sigma=SIGMA)
    found = []
    for n in users:
        if n >= GAUSSIAN_USERS:
            bounds = Accountant().compose(Blanket(noise, n)).epsilon_bounds(DELTA)
            found.append((n, float(bounds.lower), float(bounds.upper)))
    return found


def factors(points: list[Point], name: str) -> list[float]:
    """Epsilon by the analysis `name` over epsilon by the blanket, in the order of the blanket's points."""
    found = {p[:4]: p.upper for p in points if p.analysis == name}
    return [found[p[:4]] / p.upper for p in points if p.analysis == BLANKET]


def draw(points: list[Point], gaussian: list[tuple[int, float, float]], path: Path) -> None:
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(16, 5.4), constrained_layout=True)
    for eps0, colour in zip(BUDGETS, COLOURS, strict=False):
        mine = [p for p in points if p.sweep == "users" and p.eps0 == eps0]
        users = [p.n for p in mine if p.analysis == BLANKET]
        for name, style in STYLES.items():
            left.plot(
                users, [p.upper for p in mine if p.analysis == name], style, color=colour, lw=1.8,
                label=f"ε₀ = {eps0:g}, {name}",
            )  # fmt: skip
            if name != BLANKET:
                middle.plot(
                    users, factors(mine, name), style, color=colour, lw=1.8, marker=".",
                    label=f"ε₀ = {eps0:g}, {name}",
                )  # fmt: skip
    left.plot(
        [n for n, _, _ in gaussian], [upper for _, _, upper in gaussian], "-", color=COLOURS[6], lw=1.2,
        marker=".", label=f"Gaussian, σ = {SIGMA:g}, {BLANKET}",
    )  # fmt: skip
    mine = [p for p in points if p.sweep == "rounds"]
    rounds = [p.rounds for p in mine if p.analysis == BLANKET]
    for name, style in STYLES.items():
        right.plot(
            rounds, [p.upper for p in mine if p.analysis == name], style, color=COLOURS[1], lw=1.8,
            marker=".", label=name,
        )  # fmt: skip
    left.set(
        xscale="log", yscale="log", xlabel="users n", ylabel=f"ε at δ = {DELTA:g}",
        title="One round, noise on values in [0, 1]",
    )  # fmt: skip
    middle.set(xscale="log", xlabel="users n", ylabel="ε / ε of the blanket", title="The factor")
    middle.set_ylim(bottom=1.0)
    right.set(
        xscale="log", yscale="log", xlabel="rounds", ylabel=f"ε at δ = {DELTA:g}",
        title=f"n = {USERS:,}, ε₀ = {BUDGET:g}",
    )  # fmt: skip
    for axis in (left, middle, right):
        axis.grid(alpha=0.25)
        axis.legend(fontsize=9, frameon=False)
    figure.suptitle("Laplace noise of scale 1/ε₀ on [0, 1], shuffled")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def report(points: list[Point]) -> None:
    for eps0 in BUDGETS:
        for sweep in ("users", "rounds"):
            mine = [p for p in points if p.sweep == sweep and p.eps0 == eps0]
            for name in (REDUCTION, CLONES) if mine else ():
                found = factors(mine, name)
                what = "n" if sweep == "users" else "rounds"
                span = [p.n if sweep == "users" else p.rounds for p in mine]
                print(
                    f"eps0 = {eps0:g}, {what} = {min(span):g} ... {max(span):g}: {name} is"
                    f" {min(found):.4f} to {max(found):.4f} times the blanket"
                    f" ({found[0]:.4f} at the first, {found[-1]:.4f} at the last)"
                )
    print(f"Every bracket is at most {max(p.upper / p.lower - 1.0 for p in points):.2e} wide.")


def main() -> None:
    parser = argparse.ArgumentParser(description="Laplace by three analyses, as PNG and CSV")
    parser.add_argument("--quick", action="store_true", help="2 points per curve instead of 9, 10")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent, help="directory to write to")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    users = np.array([1e6, 1e7]) if options.quick else np.geomspace(1e3, 1e7, 9)
    rounds = [10, 100] if options.quick else [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]
    points = table_of([round(n) for n in users], rounds)
    gaussian = gaussian_curve([round(n) for n in users])
    with (options.output / "blanket_laplace.csv").open("w", newline="") as handle:
        rows = csv.writer(handle, lineterminator="\n")
        rows.writerow(["noise", "scale", "n", "rounds", "analysis", "epsilon_lower", "epsilon_upper"])
        rows.writerows(
            ["Laplace", 1 / p.eps0, p.n, p.rounds, p.analysis, f"{p.lower:.9g}", f"{p.upper:.9g}"] for p in points
        )
        rows.writerows(
            ["Gaussian", SIGMA, n, 1, BLANKET, f"{lower:.9g}", f"{upper:.9g}"] for n, lower, upper in gaussian
        )
    draw(points, gaussian, options.output / "blanket_laplace.png")
    report(points)


if __name__ == "__main__":
    main()
