"""Error of private real summation against the number of users: the n^(1/6) of Balle, Bell, Gascon, Nissim
2019.

Left: root mean squared error for the worst data, exact (lines) and measured in runs of the protocol on those
data (crosses, with two standard errors). One message per user: Algorithms 2 and 3 with k and gamma of
Theorems 1 and 2, and with both chosen by the accountant; k = 1, the one-bit sum. sqrt(n) one-bit messages per
user: Cheu et al. 2019, section 5, whose error does not grow with n. Local: Algorithms 2 and 3 with eps0 =
epsilon and the best k. Central: Laplace or Gaussian noise, whichever errs less. Right: the k that is taken,
which grows like n^(1/3).

epsilon = 1, delta = 1e-6, one round, substitution. The slopes of the lines in log-log scale, fitted over the
upper half of the range, are printed; the paper's are 1/6 for the error and 1/3 for k.

Run:  python benchmarks/figures/protocol_real_sum.py [--quick] [--output DIR]   (about 60 s; writes
protocol_real_sum.png and protocol_real_sum.csv)
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from pld_shuffle import Accountant
from pld_shuffle.bounds import BalleTheorem1, OutOfRange
from pld_shuffle.calibration import safe_end
from pld_shuffle.mechanisms.central import Gaussian
from pld_shuffle.plots import COLOURS
from pld_shuffle.protocols import RealSum, UnarySum
from pld_shuffle.randomizers import KRandomizedResponse

sys.path.insert(0, str(Path(__file__).parent))

from balle_figure3 import largest_eps0

EPSILON, DELTA = 1.0, 1e-6
THEOREM, BUDGET = "Algorithms 2-3, by theorem", "Algorithms 2-3, by accountant"
ONE_BIT = "one bit per user, by accountant"
UNARY = "√n bits per user, by accountant"
LOCAL, CENTRAL = "local model", "central model"

Curve = dict[int, float]


def central() -> float:
    laplace = 1 / EPSILON  # a delta so small does not help it
    gaussian = safe_end(
        lambda sigma: Accountant().compose(Gaussian(sigma=sigma)).epsilon_bounds(DELTA),
        EPSILON, low=1e-2, high=1e4, increasing=False, start=4 / EPSILON,
    ).value  # fmt: skip
    return min(math.sqrt(2) * laplace, gaussian)


def local(n: int) -> RealSum:
    odds = math.exp(EPSILON)
    every = (RealSum(k=k, gamma=(k + 1) / (odds + k), n=n) for k in range(1, 20))
    return min(every, key=lambda protocol: protocol.expected_error().exact)


def by_theorem(n: int) -> RealSum:
    """Theorem 2: k = (n/c)^(1/3), with c = gamma n/(k+1) of Theorem 1."""

    def gamma(values: int) -> float:
        eps0 = largest_eps0(BalleTheorem1(values), epsilon=EPSILON, delta=DELTA, n=n)
        return KRandomizedResponse(k=values, eps0=eps0).gamma

    k = max(1, round((gamma(2) / 2) ** (-1 / 3)))
    return RealSum(k=k, gamma=gamma(k + 1), n=n)


BUILD: dict[str, Callable[[int], RealSum | UnarySum]] = {
    LOCAL: local,
    ONE_BIT: lambda n: RealSum.from_budget(EPSILON, DELTA, n, k=1),
    THEOREM: by_theorem,
    BUDGET: lambda n: RealSum.from_budget(EPSILON, DELTA, n),
    UNARY: lambda n: UnarySum.from_budget(EPSILON, DELTA, n),
}
MEASURED = (THEOREM, BUDGET)


def measured(protocol: RealSum, runs: int) -> tuple[float, float]:
    """Root mean squared error in `runs` runs on the worst data, and its standard error."""
    rng = np.random.default_rng([protocol.n, protocol.k])
    values = np.full(protocol.n, protocol.worst_value)
    wrong = np.array(
        [
            protocol.analyze(protocol.shuffle(protocol.randomize(values, rng), rng)) - float(values[0]) * protocol.n
            for _ in range(runs)
        ]
    )
    return math.sqrt(np.mean(wrong**2)), math.sqrt(np.mean(wrong**2) / (2 * runs))


def slope(curve: Curve) -> float:
    """Of the logarithm against that of n, over the upper half of the points."""
    points = sorted(curve.items())[len(curve) // 2 :] if len(curve) > 3 else sorted(curve.items())
    x, y = np.log(np.array(points)).T
    return float(np.polyfit(x, y, 1)[0])


def draw(
    errors: dict[str, Curve], cells: dict[str, Curve], runs: dict[str, dict[int, tuple[float, float]]], path: Path
) -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 6.6), constrained_layout=True, width_ratios=(1.7, 1))
    looks = {
        LOCAL: ("black", ":"), CENTRAL: ("black", "-."), ONE_BIT: (COLOURS[2], "-"),
        THEOREM: (COLOURS[1], "--"), BUDGET: (COLOURS[0], "-"),
        UNARY: (COLOURS[3], "-"),
    }  # fmt: skip
    for name, curve in errors.items():
        colour, line = looks[name]
        grows = f" (slope {slope(curve):.3f})" if len(curve) > 1 and name != CENTRAL else ""
        left.plot(list(curve), list(curve.values()), line, color=colour, lw=1.8, label=name + grows)
    for name, points in runs.items():
        left.errorbar(
            list(points), [rmse for rmse, _ in points.values()],
            [2 * error for _, error in points.values()], fmt="x", color=looks[name][0], capsize=2,
            label=f"measured, {name}",
        )  # fmt: skip
    left.set(
        xscale="log", yscale="log", xlabel="users n", ylabel="root mean squared error, worst data",
        title="Sum of n numbers in [0, 1]",
    )  # fmt: skip
    for name, curve in cells.items():
        colour, line = looks[name]
        right.plot(
            list(curve), list(curve.values()), line, color=colour, marker=".",
            label=f"{name} (slope {slope(curve):.3f})",
        )  # fmt: skip
    right.set(xscale="log", yscale="log", xlabel="users n", ylabel="k", title="Number of rounding cells")
    for axis in (left, right):
        axis.grid(alpha=0.25)
        columns = 2 if axis is left else 1
        axis.legend(fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.11), ncol=columns)
    figure.suptitle(f"(ε, δ) = ({EPSILON:g}, {DELTA:g}) for every curve, one round")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description="the n^(1/6) error of real sums, as PNG and CSV")
    parser.add_argument("--quick", action="store_true", help="2 points per curve instead of 13")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent, help="directory to write to")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    grid = np.array([1e3, 2e3]) if options.quick else np.geomspace(1e3, 1e9, 13)
    users = [round(n) for n in grid]
    simulated = users[:1] if options.quick else [n for n in users if 10**4 <= n < 10**6]
    draws = 10**5 if options.quick else 2 * 10**7

    errors: dict[str, Curve] = {CENTRAL: dict.fromkeys(users, central())}
    cells: dict[str, Curve] = {}
    runs: dict[str, dict[int, tuple[float, float]]] = {name: {} for name in MEASURED}
    rows: list[list[object]] = [[CENTRAL, "exact", n, "-", errors[CENTRAL][n]] for n in users]
    for name, build in BUILD.items():
        errors[name] = {}
        for n in users:
            try:
                protocol = build(n)
            except OutOfRange:
                continue  # the theorem asks for more noise than so many users have
            size = protocol.k if isinstance(protocol, RealSum) else protocol.bits
            errors[name][n] = protocol.expected_error().root
            rows.append([name, "exact", n, size, errors[name][n]])
            if name in MEASURED and isinstance(protocol, RealSum):
                cells.setdefault(name, {})[n] = size
                if n in simulated:
                    runs[name][n] = measured(protocol, draws // n)
                    rows.append([name, "measured", n, size, runs[name][n][0]])
    errors = {name: curve for name, curve in errors.items() if curve}
    with (options.output / "protocol_real_sum.csv").open("w", newline="") as handle:
        table = csv.writer(handle, lineterminator="\n")
        table.writerow(["protocol", "error", "n", "k_or_bits", "rmse"])
        table.writerows([*row[:4], f"{row[4]:.9g}"] for row in rows)
    draw(errors, cells, runs, options.output / "protocol_real_sum.png")

    top = users[-1]
    for name, curve in errors.items():
        grows = f"slope {slope(curve):+.4f}" if len(curve) > 1 else "one point"
        print(f"{name:34} error {curve[top]:10.5g} at n = {top:.3g}, {grows}")
    print(f"Algorithms 2-3: fitted slope {slope(errors[BUDGET]):.4f}, the paper's is 1/6 = 0.1667.")
    gain = errors[THEOREM][top] / errors[BUDGET][top]
    print(f"Calibrated by the accountant their error is lower by a factor of {gain:.4f}.")
    worst = max(
        abs(rmse - errors[name][n]) / error for name, points in runs.items() for n, (rmse, error) in points.items()
    )
    print(f"Measured errors are within {worst:.2f} standard errors of the exact ones.")


if __name__ == "__main__":
    main()
