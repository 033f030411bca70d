"""Sample and threshold: what Brave's Nebula claims, and the exact epsilon of one bin, of two, and with dummies.

Nebula's clients send a true report with probability .105, and values with fewer than K = 20 reports are never seen. The
rule is a theorem's (Bharadwaj and Cormode 2021), and is that of the code (brave/brave-core, components/p3a,
constellation_helper.cc and .h): alpha = 1/6, rate = alpha (1 - exp(-epsilon)), K = ceil(log(1/delta)/C), C =
log(1/alpha) - 1/(1 + alpha), for epsilon = 1 and delta = 1e-8. (Of those who do not take part one in twenty sends
random bytes, which come alone.) Its claim is for addition or removal of a user, and one value. The exact pair is that
of a negative binomial number moved by one (docs/sums.md, section 4).

Left: epsilon at delta = 1e-8 against the threshold. Right: delta against epsilon at K = 20.

Run:  python benchmarks/figures/nebula_threshold.py [--quick] [--output DIR]   (about 10 s; writes
nebula_threshold.png and nebula_threshold.csv)
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

from pld_shuffle import Accountant, Threshold
from pld_shuffle.plots import COLOURS
from pld_shuffle.shares import Poisson

RATE, LEAST, DELTA = 0.105, 20, 1e-8

KINDS = {
    "one bin (add or remove)": {"neighbours": "add-or-remove-one"},
    "two bins (replace)": {"neighbours": "replace-one"},
    "one bin, 10 dummies on average": {"neighbours": "add-or-remove-one", "dummies": Poisson(10.0)},
}

Row = tuple[str, int, float, float, float]  # kind, threshold, delta, lower, upper


def theorem_epsilon(rate: float, least: int, delta: float) -> float:
    """The smallest epsilon that the theorem proves; inf if there is none."""
    low, high = rate * (1 + 1e-9), 1.0  # alpha
    if math.exp(-(math.log(1 / low) - 1 / (1 + low)) * least) > delta:
        return math.inf
    for _ in range(100):
        alpha = 0.5 * (low + high)
        proved = math.exp(-(math.log(1 / alpha) - 1 / (1 + alpha)) * least) <= delta
        low, high = (alpha, high) if proved else (low, alpha)
    return -math.log1p(-rate / low) if low > rate else math.inf


def curves(kinds: list[str], thresholds: list[int], deltas: list[float]) -> list[Row]:
    rows: list[Row] = []
    for kind, more in ((kind, KINDS[kind]) for kind in kinds):
        for least, delta in dict.fromkeys([(k, DELTA) for k in thresholds] + [(LEAST, d) for d in deltas]):
            mechanism = Threshold(RATE, least, **more)
            rows.append((kind, least, delta, *Accountant().compose(mechanism).epsilon_bounds(delta)))
    return rows


def draw(rows: list[Row], path: Path) -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.6), constrained_layout=True)
    thresholds = sorted({least for _, least, delta, *_ in rows if delta == DELTA})
    deltas = sorted({delta for _, least, delta, *_ in rows if least == LEAST})
    for kind, colour in zip(dict.fromkeys(kind for kind, *_ in rows), COLOURS, strict=False):
        at = {(least, delta): upper for name, least, delta, _, upper in rows if name == kind}
        left.plot(thresholds, [at[k, DELTA] for k in thresholds], "o-", ms=3, color=colour, label=kind)
        right.semilogy([at[LEAST, d] for d in deltas], deltas, "-", color=colour, label=kind)
    claimed = [theorem_epsilon(RATE, k, DELTA) for k in thresholds]
    left.plot(thresholds, claimed, "--", color="black", label="theorem of sample and threshold")
    left.plot([LEAST], [1.0], "*", color="black", ms=12, label="Nebula's claim")
    right.plot([1.0], [DELTA], "*", color="black", ms=12, label="Nebula's claim")
    left.set(xlabel="threshold K", ylabel=f"ε at δ = {DELTA:g}", ylim=(0, 2), title=f"rate {RATE:g}")
    right.set(xlabel="ε", ylabel="δ", title=f"rate {RATE:g}, K = {LEAST}")
    for axis in (left, right):
        axis.grid(alpha=0.25)
        axis.legend(fontsize=8)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description="epsilon of sample and threshold")
    parser.add_argument("--quick", action="store_true", help="one point of two curves instead of 24 of three")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent, help="where to write")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    thresholds = [20] if options.quick else [*range(12, 31, 2), 35, 40, 50, 60]
    deltas = [DELTA] if options.quick else list(10.0 ** -np.arange(2.0, 13.0))
    rows = curves(list(KINDS)[:: 2 if options.quick else 1], thresholds, deltas)
    with (options.output / "nebula_threshold.csv").open("w", newline="") as handle:
        table = csv.writer(handle, lineterminator="\n")
        table.writerow(["kind", "threshold", "delta", "lower", "upper"])
        table.writerows([*row[:2], f"{row[2]:.3g}", *(f"{end:.6g}" for end in row[3:])] for row in rows)
    draw(rows, options.output / "nebula_threshold.png")
    for kind, least, delta, lower, upper in rows:
        if (least, delta) == (LEAST, DELTA):
            print(f"{kind}: epsilon in [{lower:.4f}, {upper:.4f}] at delta {DELTA:g}; claimed: 1")
            break
    print(f"by the theorem: {theorem_epsilon(RATE, LEAST, DELTA):.4f}")


if __name__ == "__main__":
    main()
