"""Koskela, Heikkila, Honkela, Tight accounting in the shuffle model, figure 4: the shuffled Gaussian
mechanism for a handful of users, by Monte Carlo.

Every user adds N(0, sigma^2) to 0; in the neighbouring dataset one user's value is 1. Shuffling makes
the second law a mixture, so that the likelihood ratio of the n reports is the permutation-invariant

    r(y) = (1/n) sum_i exp((2 y_i - 1) / (2 sigma^2)),

and no lower-dimensional sufficient pair is known. With y from the second law (one value moved),

    delta(epsilon) = max(E[(1 - e^epsilon / r)_+], E_0[(1 - e^epsilon r)_+]),

the two orders of the neighbours, E_0 with y from the first law; both are plain averages of bounded
variables. Points have error bars of two standard errors. *These are estimates, not certified bounds.*
r is a function of the reports' multiset, so sorting them would change nothing: sampling without an
order is integration over the ordered region.

The paper's text at our disposal has lost the figure's parameters and gives no numbers; sigma and n
are ours. What can be checked exactly is: n = 1 is the Gaussian mechanism (Balle, Wang 2018).

Run:  python benchmarks/figures/koskela_figure4.py [--quick] [--output DIR]   (about 20 s; writes
koskela_figure4.png and koskela_figure4.csv)
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
from scipy.stats import norm

from pld_shuffle.plots import COLOURS

SIGMA = 1.0
USERS = (1, 2, 3, 5, 7, 10)
BATCH = 250_000

Row = tuple[int, float, float, float]


def estimate(users: int, epsilons: np.ndarray, samples: int, generator: np.random.Generator) -> list[Row]:
    """(users, epsilon, delta, standard error), the larger of the two orders of the neighbours."""
    sums = np.zeros((2, epsilons.size))
    squares = np.zeros((2, epsilons.size))
    done = 0
    while done < samples:
        size = min(BATCH, samples - done)
        reports = SIGMA * generator.standard_normal((size, users))
        for order in range(2):
            if order == 1:  # the second law: which of the reports was moved does not matter
                reports[:, 0] += 1.0
            logs = (2 * reports - 1) / (2 * SIGMA**2)
            ratio = np.mean(np.exp(logs), axis=1)
            loss = -np.log(ratio) if order == 0 else np.log(ratio)
            for place, epsilon in enumerate(epsilons):
                values = -np.expm1(np.minimum(epsilon - loss, 0.0))
                sums[order, place] += values.sum()
                squares[order, place] += np.dot(values, values)
        done += size
    mean = sums / samples
    error = np.sqrt(np.maximum(squares / samples - mean**2, 0.0) / samples)
    worse = np.argmax(mean, axis=0)
    places = np.arange(epsilons.size)
    return [
        (users, float(epsilon), float(delta), float(mass_error))
        for epsilon, delta, mass_error in zip(epsilons, mean[worse, places], error[worse, places], strict=True)
    ]


def gaussian_delta(epsilon: float) -> float:
    """n = 1 exactly: Balle and Wang 2018, Theorem 8, sensitivity 1."""
    half, slope = 1 / (2 * SIGMA), epsilon * SIGMA
    return float(norm.cdf(half - slope) - math.exp(epsilon) * norm.cdf(-half - slope))


def draw(rows: list[Row], path: Path) -> None:
    figure, axis = plt.subplots(figsize=(7.2, 5), constrained_layout=True)
    for users, colour in zip(USERS, COLOURS, strict=False):
        mine = [row for row in rows if row[0] == users and row[2] > 3 * row[3] > 0]
        axis.errorbar(
            [row[1] for row in mine], [row[2] for row in mine], yerr=[2 * row[3] for row in mine],
            fmt="o-", ms=3, lw=1, capsize=2, color=colour, label=f"n = {users}",
        )  # fmt: skip
    grid = np.linspace(0, max(row[1] for row in rows), 200)
    axis.plot(grid, [gaussian_delta(float(e)) for e in grid], "k--", lw=1, label="n = 1, exact")
    axis.set(
        xlabel="ε", ylabel="δ(ε), estimate ± 2 standard errors", yscale="log",
        title=f"shuffled Gaussian mechanism, σ = {SIGMA:g}, values 0, one of them 0 or 1",
    )  # fmt: skip
    axis.grid(alpha=0.25)
    axis.legend(fontsize=8)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def report(rows: list[Row]) -> None:
    print("The paper prints no numbers for this figure; n = 1 is known exactly:")
    print("epsilon   exact          estimate        difference in standard errors")
    for users, epsilon, delta, error in rows:
        if users == 1 and error > 0:
            exact = gaussian_delta(epsilon)
            print(f"{epsilon:7.3f}   {exact:.6e}   {delta:.6e}   {(delta - exact) / error:+.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Koskela et al., figure 4, as PNG and CSV")
    parser.add_argument("--quick", action="store_true", help="5 points, 2 10^4 samples")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent, help="directory to write to")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(20230)
    epsilons = np.linspace(0.0, 2.0, 5 if options.quick else 17)
    samples = 20_000 if options.quick else 1_000_000
    rows = [row for users in USERS for row in estimate(users, epsilons, samples, generator)]
    with (options.output / "koskela_figure4.csv").open("w", newline="") as handle:
        table = csv.writer(handle, lineterminator="\n")
        table.writerow(["users", "epsilon", "delta", "standard_error"])
        for users, epsilon, delta, error in rows:
            table.writerow([users, f"{epsilon:.6g}", f"{delta:.6g}", f"{error:.3g}"])
    draw(rows, options.output / "koskela_figure4.png")
    report(rows)


if __name__ == "__main__":
    main()
