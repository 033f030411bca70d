"""Error of private counting against the number of users, in the central, the local and the shuffle model, for
the same (epsilon, delta): a histogram of 16 bins (left) and a sum of bits (middle). Shuffle protocols are
calibrated twice, by the closed-form theorem of their paper and by the accountant (`bounds`,
`from_budget`); the factor between the two errors is on the right, and is printed.

epsilon = 0.5, delta = 1e-6, one round, substitution of one user's value. The error is the exact root mean
squared error of one count for the worst data.

central  Gaussian noise of the least scale that the accountant proves, or Laplace noise, whichever errs less
         (in a histogram two counts change by 1)
local    the same randomized response with eps0 = epsilon, no shuffler
shuffle  Balle et al. 2019, Algorithm 1 and Theorem 1; Cheu et al. 2019, section 4; Balcer and Cheu 2020
         (ZSUM, with the histogram built on it; biased, empty bins are reported as empty; by the accountant
         only); unary encoding with
         the closed form of Feldman et al. 2023

Run:  python benchmarks/figures/protocol_error.py [--quick] [--output DIR]   (about 40 s; writes
protocol_error.png and protocol_error.csv)
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from pld_shuffle import Accountant
from pld_shuffle.bounds import BalleTheorem1, Cheu, OutOfRange, StrongerClonesClosedForm
from pld_shuffle.calibration import InfeasibleError, safe_end
from pld_shuffle.mechanisms.central import Gaussian
from pld_shuffle.plots import COLOURS
from pld_shuffle.protocols import BinarySum, BitHistogram, PrivateHistogram, ZeroSum, ZeroSumHistogram
from pld_shuffle.randomizers import BinaryRandomizedResponse, KRandomizedResponse, UnaryEncoding

sys.path.insert(0, str(Path(__file__).parent))

from balle_figure3 import largest_eps0

EPSILON, DELTA, BINS = 0.5, 1e-6, 16

Table = dict[tuple[str, str, str], dict[int, float]]  # task, protocol, calibration -> n -> error


def central(changes: int) -> float:
    """Root mean squared error of one count, `changes` of which change by 1."""
    laplace = changes / EPSILON  # a delta so small does not help it
    gaussian = safe_end(
        lambda sigma: Accountant().compose(Gaussian(sigma=sigma, sensitivity=math.sqrt(changes))).epsilon_bounds(DELTA),
        EPSILON, low=1e-2, high=1e4, increasing=False, start=4 / EPSILON,
    ).value  # fmt: skip
    return min(math.sqrt(2) * laplace, gaussian)


def local_gamma(values: int) -> float:
    return values / (math.exp(EPSILON) + values - 1)


def histogram(n: int) -> PrivateHistogram:
    eps0 = largest_eps0(BalleTheorem1(BINS), epsilon=EPSILON, delta=DELTA, n=n)
    return PrivateHistogram(k=BINS, gamma=KRandomizedResponse(k=BINS, eps0=eps0).gamma, n=n)


def bit_histogram(n: int) -> BitHistogram:
    eps0 = largest_eps0(StrongerClonesClosedForm(), epsilon=EPSILON, delta=DELTA, n=n)
    return BitHistogram(randomizer=UnaryEncoding(k=BINS, eps0=eps0), n=n)


def binary_sum(n: int) -> BinarySum:
    eps0 = largest_eps0(Cheu(), epsilon=EPSILON, delta=DELTA, n=n)
    return BinarySum(gamma=BinaryRandomizedResponse(eps0).gamma, n=n)


#: By theorem where there is one with constants, and by the accountant.
SHUFFLED = {
    ("histogram", "k-RR (Algorithm 1)"): (histogram, lambda n: PrivateHistogram.from_budget(EPSILON, DELTA, n, k=BINS)),
    ("histogram", "unary encoding"): (
        bit_histogram,
        lambda n: BitHistogram.from_budget(EPSILON, DELTA, n, k=BINS, variant="symmetric"),
    ),
    ("histogram", "ZSUM"): (None, lambda n: ZeroSumHistogram.from_budget(EPSILON, DELTA, n, k=BINS)),
    ("sum of bits", "binary RR"): (binary_sum, lambda n: BinarySum.from_budget(EPSILON, DELTA, n)),
    ("sum of bits", "ZSUM"): (None, lambda n: ZeroSum.from_budget(EPSILON, DELTA, n)),
}


def errors(users: list[int]) -> Table:
    table: Table = {}
    for task, changes in (("histogram", 2), ("sum of bits", 1)):
        table[task, "central", "accountant"] = dict.fromkeys(users, central(changes))
    for n in users:
        local = {
            "histogram": PrivateHistogram(k=BINS, gamma=local_gamma(BINS), n=n),
            "sum of bits": BinarySum(gamma=local_gamma(2), n=n),
        }
        for task, protocol in local.items():
            table.setdefault((task, "local", "exact"), {})[n] = protocol.expected_error().root
        for (task, name), builds in SHUFFLED.items():
            for way, build in zip(("theorem", "accountant"), builds, strict=True):
                if build is None:
                    continue
                try:
                    error = build(n).expected_error().root
                except (OutOfRange, InfeasibleError):
                    continue  # so few users cannot have this budget in this way
                table.setdefault((task, name, way), {})[n] = error
    return table


def factors(table: Table, task: str, name: str) -> dict[int, float]:
    """Error by theorem over error by accountant, where both exist."""
    slow, fast = table.get((task, name, "theorem"), {}), table[task, name, "accountant"]
    return {n: slow[n] / fast[n] for n in slow if n in fast}


def draw(table: Table, path: Path) -> None:
    figure, axes = plt.subplots(1, 3, figsize=(16, 6.4), constrained_layout=True)
    colours = dict(zip(SHUFFLED, COLOURS, strict=False))
    titles = {"histogram": f"Histogram, {BINS} bins: one bin's count", "sum of bits": "Sum of bits"}
    for axis, (task, title) in zip(axes, titles.items(), strict=False):
        rows = sorted(table, key=lambda row: (row[1] not in ("central", "local"), row[1], row[2]))
        for kind, name, way in rows:
            if kind != task:
                continue
            curve = table[kind, name, way]
            x, y = list(curve), list(curve.values())
            if name == "local":
                axis.plot(x, y, ":", color="black", lw=2, label="local, randomized response")
            elif name == "central":
                axis.plot(x, y, "-.", color="black", lw=2, label="central")
            else:
                axis.plot(
                    x, y, "--" if way == "theorem" else "-", color=colours[task, name],
                    marker="o" if way == "accountant" else "s", markersize=3.5,
                    markerfacecolor=colours[task, name] if way == "accountant" else "white",
                    label=f"shuffle, {name}, by {way}",
                )  # fmt: skip
        axis.set(
            xscale="log", yscale="log", xlabel="users n", title=title,
            ylabel="root mean squared error, worst data",
        )  # fmt: skip
    for (task, name), colour in colours.items():
        curve = factors(table, task, name)
        axes[2].plot(
            list(curve), list(curve.values()), "-" if task == "histogram" else "--", color=colour,
            marker="o", markersize=3.5, label=f"{task}, {name}",
        )  # fmt: skip
    axes[2].set(
        xscale="log", yscale="log", xlabel="users n", title="What the accountant gains",
        ylabel="error by theorem / error by accountant",
    )  # fmt: skip
    ticks = [1, 1.5, 2, 3, 5, 10, 20, 50, 100]
    axes[2].set_yticks(ticks, [str(tick) for tick in ticks])
    axes[2].minorticks_off()
    for axis in axes:
        axis.grid(alpha=0.25)
        axis.legend(fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncol=2)
    figure.suptitle(f"(ε, δ) = ({EPSILON:g}, {DELTA:g}) for every curve, one round")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def report(table: Table) -> None:
    for task, name in SHUFFLED:
        curve = factors(table, task, name)
        if not curve:
            continue
        n = max(curve)
        slow, fast = (table[task, name, way][n] for way in ("theorem", "accountant"))
        print(
            f"{task}, {name}: at n = {n:.3g} error {slow:.5g} by theorem, {fast:.5g} by accountant,"
            f" {table[task, 'central', 'accountant'][n]:.5g} central,"
            f" {table[task, 'local', 'exact'][n]:.5g} local; lower by a factor of"
            f" {min(curve.values()):.4g} to {max(curve.values()):.4g} (n = {min(curve):.3g} ... {n:.3g})"
        )
    curve = factors(table, "histogram", "k-RR (Algorithm 1)")
    n = max(curve)
    print(
        "Calibrating the histogram protocol (Algorithm 1) with the accountant instead of Theorem 1 lowers its"
        f" error by a factor of {curve[n]:.4f} at n = {n:.3g}, for the same proven (epsilon, delta) ="
        f" ({EPSILON:g}, {DELTA:g})."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="error against users, as PNG and CSV")
    parser.add_argument("--quick", action="store_true", help="2 points per curve instead of 17")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent, help="directory to write to")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    users = np.array([1e5, 2e5]) if options.quick else np.geomspace(1e3, 1e7, 17)
    table = errors([round(n) for n in users])
    with (options.output / "protocol_error.csv").open("w", newline="") as handle:
        rows = csv.writer(handle, lineterminator="\n")
        rows.writerow(["task", "protocol", "calibration", "n", "rmse"])
        for key, curve in table.items():
            rows.writerows([*key, n, f"{error:.9g}"] for n, error in curve.items())
    draw(table, options.output / "protocol_error.png")
    report(table)


if __name__ == "__main__":
    main()
