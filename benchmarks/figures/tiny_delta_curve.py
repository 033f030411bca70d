"""delta down to 1e-200: epsilon of ten rounds of n = 10^4, eps0 = 4, both analyses, certified.

A plain FFT convolution has an absolute noise floor near 1e-16, below which its delta means nothing;
it is drawn beside the bracket (from the package's own lattice law, no tilt), together with the
Renyi accountant, which has no floor but is loose. The lower panel is the relative width of the
bracket on epsilon. Every delta is asked of an accountant of its own.

Run:  python benchmarks/figures/tiny_delta_curve.py [--quick] [--output DIR]   (about 30 s; writes
tiny_delta_curve.png and tiny_delta_curve.csv)
"""

from __future__ import annotations

import argparse
import csv
import math
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from pld_shuffle import Accountant, ShuffledLDP, UnlikelyWarning
from pld_shuffle.plots import COLOURS
from pld_shuffle.renyi import RenyiAccountant

ROUNDS = 10
ANALYSES = ("stronger-clones", "clones")
# ten rounds of clones: reference values
REFERENCE = {1.0: "[3.4446e-3, 3.4484e-3]", 6.0: "3.330e-38"}

Row = tuple[str, float, float, float]


def mechanism(analysis: str) -> ShuffledLDP:
    return ShuffledLDP(eps0=4.0, n=10_000, analysis=analysis)


def plain_fft(analysis: str, epsilons: np.ndarray) -> np.ndarray:
    """delta by an untilted FFT of one round's lattice law; nonsense below about 1e-16."""
    law = mechanism(analysis).pld(step=2e-3)
    size = 1 << (law.masses.size * ROUNDS - 1).bit_length()
    power = np.fft.irfft(np.fft.rfft(law.masses, size) ** ROUNDS, size)
    loss = (law.low * ROUNDS + np.arange(law.masses.size * ROUNDS)) * law.step
    power = power[: loss.size]
    found = []
    for epsilon in epsilons:
        above = loss > epsilon
        found.append(float(np.dot(power[above], -np.expm1(epsilon - loss[above]))))
    return np.array(found)


def curves(points: int) -> list[Row]:
    """(curve, delta, lower, upper): bounds on epsilon; for plain FFT its delta at our epsilon, twice."""
    rows: list[Row] = []
    deltas = 10.0 ** -np.linspace(1.0, 200.0, points)
    for analysis in ANALYSES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnlikelyWarning)  # the curve begins at delta = 0.1
            found = [Accountant().compose(mechanism(analysis), ROUNDS).epsilon_bounds(delta) for delta in deltas]
            renyi = RenyiAccountant().compose(mechanism(analysis), ROUNDS).get_epsilon(deltas)
        noisy = plain_fft(analysis, np.array([bounds.upper for bounds in found]))
        for delta, bounds, loose, wrong in zip(deltas, found, renyi, noisy, strict=True):
            rows.append((f"certified, {analysis}", float(delta), bounds.lower, bounds.upper))
            rows.append((f"exact Renyi, {analysis}", float(delta), math.nan, float(loose)))
            rows.append((f"plain FFT, {analysis}", abs(float(wrong)), math.nan, bounds.upper))
    return rows


def draw(rows: list[Row], path: Path) -> None:
    figure, axes = plt.subplots(2, 1, figsize=(8, 7), sharex=True, height_ratios=[3, 1], constrained_layout=True)
    for analysis, colour in zip(ANALYSES, COLOURS, strict=False):
        for name, style in (("certified", "-"), ("exact Renyi", "--"), ("plain FFT", ":")):
            mine = [row for row in rows if row[0] == f"{name}, {analysis}"]
            axes[0].plot(
                [row[3] for row in mine], [row[1] for row in mine], style, color=colour,
                label=f"{name}, {analysis}",
            )  # fmt: skip
        mine = [row for row in rows if row[0] == f"certified, {analysis}" and row[2] > 0]
        axes[1].plot([row[3] for row in mine], [row[3] / row[2] - 1 for row in mine], color=colour)
    axes[0].set(yscale="log", ylim=(1e-210, 10), ylabel="δ(ε)")
    axes[0].set_title("10 rounds, n = 10⁴, ε₀ = 4 (plain FFT: absolute value)")
    axes[0].legend(fontsize=8)
    axes[1].set(yscale="log", xlabel="ε", ylabel="ε: upper/lower - 1")
    for axis in axes:
        axis.grid(alpha=0.25)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def report(rows: list[Row]) -> None:
    print("ten rounds of clones: epsilon, reference delta, ours (certified bracket)")
    for epsilon, value in REFERENCE.items():
        found = Accountant().compose(mechanism("clones"), ROUNDS).delta_bounds(epsilon)
        print(f"  {epsilon:g}   {value}   [{found.lower:.5g}, {found.upper:.5g}]")
    held = [row for row in rows if row[0].startswith("certified")]
    print("epsilon at the smallest delta shown:")
    for name, delta, lower, upper in held:
        if delta < 1e-199:
            print(f"  {name}: delta = {delta:.1g}, epsilon in [{lower:.6f}, {upper:.6f}]")
    print(f"widest bracket on epsilon: {max(row[3] / row[2] - 1 for row in held):.2g} relative")
    print("Plain FFT stops near 1e-16, the rounding of its largest entries; tilting removes that.")


def main() -> None:
    parser = argparse.ArgumentParser(description="delta down to 1e-200, as PNG and CSV")
    parser.add_argument("--quick", action="store_true", help="3 points per curve instead of 61")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent, help="directory to write to")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    rows = curves(3 if options.quick else 61)
    with (options.output / "tiny_delta_curve.csv").open("w", newline="") as handle:
        table = csv.writer(handle, lineterminator="\n")
        table.writerow(["curve", "delta", "epsilon_lower", "epsilon_upper"])
        for name, delta, lower, upper in rows:
            table.writerow([name, f"{delta:.9g}", f"{lower:.9g}", f"{upper:.9g}"])
    draw(rows, options.output / "tiny_delta_curve.png")
    report(rows)


if __name__ == "__main__":
    main()
