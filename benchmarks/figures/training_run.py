"""A training run: cohorts of 5,000 out of a million, eps0 = 6.3, delta = 1e-6; epsilon against rounds.

Six lines: the best published bound that `pld_shuffle.comparison` knows (Renyi bound of Girgis et al. 2021, or a single
round's bound composed optimally); the clones pair of Feldman et al. 2021 composed numerically with the general
amplification by sampling; the same with stronger clones, which is what release 0.2.0 of this package gave; the present
default; and the attack below which no analysis can go.

Run:  python benchmarks/figures/training_run.py [--quick] [--output DIR]   (about 20 s; writes training_run.png
and training_run.csv)
"""

from __future__ import annotations

import argparse
import csv
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from pld_shuffle import Accountant, Mechanism, ShuffledLDP, Subsampled
from pld_shuffle.comparison import compare

N, POPULATION, EPS0, DELTA = 5_000, 1_000_000, 6.3, 1e-6
LINES = {
    "best published bound": ("#9a9a9a", ":"),
    "clones, composed numerically": ("#c77d2e", "--"),
    "release 0.2.0 of this package": ("#7a6bb0", "-."),
    "this package": ("#1f6fb2", "-"),
    "attack: no analysis can go below": ("#b03a48", ":"),
}


def cohort(analysis: str, sampling: str) -> Mechanism:
    return Subsampled(ShuffledLDP(EPS0, N, analysis), population=POPULATION, analysis=sampling)


def spent(mechanism: Mechanism, rounds: int) -> tuple[float, float]:
    lower, upper = Accountant().compose(mechanism, rounds).epsilon_bounds(DELTA)
    return float(lower), float(upper)


def row(rounds: int) -> dict[str, float]:
    """Epsilon after so many rounds, by line."""
    tight = cohort("tightest", "tightest")
    found = compare(tight, delta=DELTA, rounds=rounds)
    published = min(m.epsilon for m in found.methods if m.source != "this package" and "Renyi, " not in m.name)
    lower, upper = spent(tight, rounds)
    values = (
        published,
        spent(cohort("clones", "general"), rounds)[1],
        spent(cohort("stronger-clones", "general"), rounds)[1],
        upper,
        lower,
    )
    return dict(zip(LINES, values, strict=True))


def told(name: str, value: float) -> str:
    """Four digits, rounded to the safe side, as the README has them."""
    rounding = ROUND_FLOOR if "attack" in name else ROUND_CEILING
    return f"{Context(prec=4, rounding=rounding).create_decimal_from_float(value):,f}"


def draw(counts: list[int], rows: list[dict[str, float]], path: Path) -> None:
    figure, axis = plt.subplots(figsize=(8, 4.6), constrained_layout=True)
    for name, (colour, style) in LINES.items():
        values = [one[name] for one in rows]
        axis.plot(counts, values, style, color=colour, linewidth=2 if name == "this package" else 1.6)
        axis.annotate(
            f"{name}: {told(name, values[-1])}", (counts[-1], values[-1]), xytext=(6, -8 if "attack" in name else 0),
            textcoords="offset points", color=colour, fontsize=9, va="center",
        )  # fmt: skip
    axis.set(
        xscale="log", yscale="log", xlabel="rounds", ylabel=f"ε at δ = {DELTA:g}", xlim=(counts[0], counts[-1] * 30)
    )
    axis.set_xticks([x for x in (1, 10, 100, 1_000) if counts[0] <= x <= counts[-1]])
    axis.set_title(f"cohorts of {N:,} out of {POPULATION:,}, ε₀ = {EPS0}", fontsize=11, loc="left")
    axis.grid(alpha=0.25)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description="a training run, as PNG and CSV")
    parser.add_argument("--quick", action="store_true", help="2 points per curve instead of 11")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent, help="directory to write to")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    counts = [1, 100] if options.quick else [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000]
    rows = [row(rounds) for rounds in counts]
    with (options.output / "training_run.csv").open("w", newline="") as handle:
        table = csv.writer(handle, lineterminator="\n")
        table.writerow(["rounds", *LINES])
        for rounds, one in zip(counts, rows, strict=True):
            table.writerow([rounds, *(f"{value:.6g}" for value in one.values())])
    draw(counts, rows, options.output / "training_run.png")
    for name, value in rows[-1].items():
        print(f"{counts[-1]} rounds, {name}: {value:.6g}")


if __name__ == "__main__":
    main()
