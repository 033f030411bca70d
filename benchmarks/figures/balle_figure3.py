"""Balle, Bell, Gascon, Nissim, The privacy blanket of the shuffle model (CRYPTO 2019), figure 3:
all four panels.

(i)   epsilon(n) for a generic randomizer, eps0 = 0.5, delta = 1e-6: Erlingsson et al. 2019,
      Hoeffding, Bennett.
(ii)  eps0(n) at epsilon = 0.1, delta = 1e-6 by Hoeffding: generic, 2-RR, 100-RR, Laplace (and
      Erlingsson et al. 2019).
(iii) eps0(n) at epsilon = 0.1, delta = 1e-6 by Hoeffding and Bennett: 2-RR, 100-RR, Laplace.
(iv)  eps0(n) at epsilon = 0.1, delta = n^-2 by Hoeffding and Bennett: k-RR, k = floor(n^(1/3)).

The paper prints no numbers; the parameters are those of the authors' published notebook. What the
paper *says* about the panels is checked and printed.

Two of them (Bennett against Hoeffding, panels i and iii) do not hold for the bounds as proved. The
paper's Lemma 11 carries a factor 1/(a m) too many; with it (dotted, "as printed") Bennett's curves
behave as the text describes, but it is not a bound: at n = 10^6, eps0 = 0.5 it allows 2-RR epsilon
= 5.2e-4 at delta = 1e-6, where the attack reaches delta = 3.9e-5. `pld_shuffle.bounds` uses the
corrected lemma, like the authors' published code.

Run:  python benchmarks/figures/balle_figure3.py [--quick] [--output DIR]   (about 5 s; writes
balle_figure3.png and balle_figure3.csv)
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Callable
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom

from pld_shuffle.bounds import (
    Bennett,
    Bound,
    Erlingsson,
    GenericBlanket,
    Hoeffding,
    LaplaceBlanket,
    OutOfRange,
    RRBlanket,
)
from pld_shuffle.bounds.balle2019 import BlanketFamily
from pld_shuffle.bounds.bound import DeltaBound

EPS0, EPSILON, DELTA = 0.5, 0.1, 1e-6
GENERIC, RR2, RR100, LAPLACE = GenericBlanket(), RRBlanket(2), RRBlanket(100), LaplaceBlanket()
COLOURS = {
    "generic": "tab:grey",
    "2-RR": "tab:blue",
    "100-RR": "tab:orange",
    "Laplace": "tab:green",
    "k-RR": "tab:purple",
}

Curve = dict[int, float]


def tabulate(users: list[int], value: Callable[[int], float], *, below: float = math.inf) -> Curve:
    """value(n) for every n where the bound applies and the result is below `below`."""
    curve: Curve = {}
    for n in users:
        try:
            result = value(n)
        except OutOfRange:
            continue
        if result < below:
            curve[n] = result
    return curve


def largest_eps0(bound: Bound, *, epsilon: float, delta: float, n: int) -> float:
    """The largest eps0 with at most this epsilon by a published bound; OutOfRange if there is none."""

    def fits(eps0: float) -> bool:
        try:
            if isinstance(bound, DeltaBound):
                return bound.delta(epsilon=epsilon, eps0=eps0, n=n) <= delta
            return bound.epsilon(eps0=eps0, delta=delta, n=n) <= epsilon
        except OutOfRange:
            return False

    start = epsilon if isinstance(bound, DeltaBound) else 1e-12
    low, high = start, 100.0
    while high - low > 1e-12 * low:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    if low == start:
        raise OutOfRange(f"{bound.source} has no eps0 at epsilon = {epsilon!r}, n = {n!r}")
    return low


def log_delta_as_printed(*, epsilon: float, eps0: float, n: int, randomizer: BlanketFamily) -> float:
    """log delta from Lemma 8 with Lemma 11 as the paper prints it. NOT a bound (see above)."""
    data = randomizer.blanket(epsilon=epsilon, eps0=eps0)
    a = math.expm1(epsilon)
    u = a * data.largest / data.second_moment
    phi = (1 + u) * math.log1p(u) - u if u > 1e-3 else u * u / 2 - u**3 / 6 + u**4 / 12
    decay = data.second_moment / data.largest**2 * phi
    # Bin(n, gamma)(m) e^{-m decay} is a multiple of Bin(n, tilted)(m)
    log_total = n * math.log1p(data.gamma * math.expm1(-decay))
    tilted = data.gamma * math.exp(-decay) / (1 + data.gamma * math.expm1(-decay))
    spread = 12 * math.sqrt(n * tilted * (1 - tilted)) + 20
    m = np.arange(max(1, math.floor(n * tilted - spread)), min(n, math.ceil(n * tilted + spread)) + 1)
    mean_inverse = float(np.dot(binom.pmf(m, n, tilted), 1 / m))
    return log_total + math.log(mean_inverse * data.largest / (a * math.log1p(u) * data.gamma * n))


def as_printed(
    n: int, *, epsilon: float | None = None, eps0: float | None = None, delta: float, randomizer: BlanketFamily
) -> float:
    """The unknown (the one left None) from Lemma 11 as printed."""
    limit = math.log(delta)
    if epsilon is None:
        assert eps0 is not None
        excess, low, high = (
            (lambda x: log_delta_as_printed(epsilon=x, eps0=eps0, n=n, randomizer=randomizer) - limit),
            1e-5,
            eps0 * 0.9999,
        )
    else:
        excess, low, high = (
            (lambda x: log_delta_as_printed(epsilon=epsilon, eps0=x, n=n, randomizer=randomizer) - limit),
            epsilon * 1.0001,
            12.0,
        )
    if excess(low) * excess(high) > 0:
        raise OutOfRange("no crossing")
    return float(brentq(excess, low, high, rtol=1e-12))


def panels(points: int) -> dict[str, dict[str, Curve]]:
    """{panel: {curve: {n: value}}}."""
    wide = [int(n) for n in np.geomspace(10**3, 10**6, points)]
    low = [int(n) for n in np.geomspace(10**2, 10**5, points)]
    family = {"generic": GENERIC, "2-RR": RR2, "100-RR": RR100, "Laplace": LAPLACE}
    result: dict[str, dict[str, Curve]] = {"i": {}, "ii": {}, "iii": {}, "iv": {}}

    given = {"eps0": EPS0, "delta": DELTA}
    # the theorem needs eps0 < 1/2: evaluated just below
    result["i"]["EFMRTT'19"] = tabulate(
        wide, lambda n: Erlingsson().epsilon(eps0=EPS0 * (1 - 1e-9), delta=DELTA, n=n), below=EPS0
    )
    result["i"]["Hoeffding, generic"] = tabulate(wide, lambda n: Hoeffding().epsilon(**given, n=n))
    result["i"]["Bennett, generic"] = tabulate(wide, lambda n: Bennett().epsilon(**given, n=n))
    result["i"]["Bennett as printed, generic"] = tabulate(wide, lambda n: as_printed(n, **given, randomizer=GENERIC))

    given = {"epsilon": EPSILON, "delta": DELTA}
    result["ii"]["EFMRTT'19"] = tabulate(low, lambda n: largest_eps0(Erlingsson(), **given, n=n))
    for name, randomizer in family.items():
        curve = tabulate(low, lambda n, r=randomizer: largest_eps0(Hoeffding(r), **given, n=n))
        result["ii"][f"Hoeffding, {name}"] = curve
        if name == "generic":
            continue
        result["iii"][f"Hoeffding, {name}"] = curve
        result["iii"][f"Bennett, {name}"] = tabulate(
            low, lambda n, r=randomizer: largest_eps0(Bennett(r), **given, n=n)
        )
        result["iii"][f"Bennett as printed, {name}"] = tabulate(
            low, lambda n, r=randomizer: as_printed(n, **given, randomizer=r)
        )

    def growing(n: int) -> RRBlanket:
        return RRBlanket(math.floor(n ** (1 / 3) + 1e-9))

    for name, bound in (("Hoeffding", Hoeffding), ("Bennett", Bennett)):
        result["iv"][f"{name}, k-RR"] = tabulate(
            low, lambda n, b=bound: largest_eps0(b(growing(n)), epsilon=EPSILON, delta=n**-2.0, n=n)
        )
    result["iv"]["Bennett as printed, k-RR"] = tabulate(
        low, lambda n: as_printed(n, epsilon=EPSILON, delta=n**-2.0, randomizer=growing(n))
    )
    return result


TITLES = {
    "i": r"(i) generic, $\varepsilon_0=0.5$, $\delta=10^{-6}$",
    "ii": r"(ii) $\varepsilon=0.1$, $\delta=10^{-6}$",
    "iii": r"(iii) $\varepsilon=0.1$, $\delta=10^{-6}$",
    "iv": r"(iv) k-RR, $\varepsilon=0.1$, $\delta=n^{-2}$, $k=\lfloor n^{1/3}\rfloor$",
}


def draw(result: dict[str, dict[str, Curve]], path: Path) -> None:
    """The four panels as in the paper: Hoeffding dashed, Bennett solid, the printed Lemma 11
    dotted.
    """
    figure, axes = plt.subplots(2, 2, figsize=(11, 8.5), constrained_layout=True)
    for axis, (panel, curves) in zip(axes.flat, result.items(), strict=True):
        for label, curve in curves.items():
            printed = "as printed" in label
            colour = COLOURS.get(label.split(", ")[-1], "tab:red")
            if panel == "i" and label.startswith("Bennett"):
                colour = "tab:blue"
            style = ":" if printed else "-." if label.startswith("EFM") else "--" if label.startswith("H") else "-"
            axis.plot(
                list(curve), list(curve.values()), style, color=colour, lw=1.2 if printed else 1.8,
                alpha=0.8 if printed else 1, label=label + (" (not a bound)" if printed else ""),
            )  # fmt: skip
        axis.set_xscale("log")
        axis.set_xlabel("users n")
        axis.set_ylabel(r"$\varepsilon$" if panel == "i" else r"$\varepsilon_0$")
        axis.set_title(TITLES[panel])
        axis.grid(alpha=0.25)
        axis.legend(fontsize=8)
    figure.suptitle("Balle, Bell, Gascon, Nissim 2019, figure 3 (Lemma 11 corrected)")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def write(result: dict[str, dict[str, Curve]], path: Path) -> None:
    """One row per point: panel, curve, n, unknown, value."""
    with path.open("w", newline="") as handle:
        rows = csv.writer(handle, lineterminator="\n")
        rows.writerow(["panel", "curve", "n", "unknown", "value"])
        for panel, curves in result.items():
            for label, curve in curves.items():
                for n, value in curve.items():
                    rows.writerow([panel, label, n, "epsilon" if panel == "i" else "eps0", f"{value:.12g}"])


def better(first: Curve, second: Curve, *, larger: bool) -> tuple[int, int]:
    """On how many of the common n the first curve is better, and how many there are."""
    common = first.keys() & second.keys()
    return sum((first[n] > second[n]) == larger for n in common), len(common)


def report(result: dict[str, dict[str, Curve]]) -> None:
    """What the paper says about the panels, and what the bounds say."""

    def line(claim: str, first: str, second: str, panel: str) -> None:
        wins, total = better(result[panel][first], result[panel][second], larger=panel != "i")
        verdict = "everywhere" if wins == total else "nowhere" if wins == 0 else f"on {wins} of {total} points"
        print(f"({panel}) {claim}: {first} better than {second} {verdict}")

    said = "paper says always"
    line(said, "Hoeffding, generic", "EFMRTT'19", "i")
    line(said, "Bennett, generic", "EFMRTT'19", "i")
    line("paper says for large n", "Bennett, generic", "Hoeffding, generic", "i")
    line("  the same as printed", "Bennett as printed, generic", "Hoeffding, generic", "i")
    line(said, "Hoeffding, 2-RR", "Hoeffding, Laplace", "ii")
    line(said, "Hoeffding, Laplace", "Hoeffding, 100-RR", "ii")
    for name in ("2-RR", "100-RR", "Laplace"):
        line(said, f"Bennett, {name}", f"Hoeffding, {name}", "iii")
        line("  the same as printed", f"Bennett as printed, {name}", f"Hoeffding, {name}", "iii")
    line(said, "Bennett, k-RR", "Hoeffding, k-RR", "iv")


def main() -> None:
    parser = argparse.ArgumentParser(description="Balle et al. 2019, figure 3, as PNG and CSV")
    parser.add_argument("--quick", action="store_true", help="12 points per curve instead of 100")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent, help="directory to write to")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    result = panels(12 if options.quick else 100)
    write(result, options.output / "balle_figure3.csv")
    draw(result, options.output / "balle_figure3.png")
    report(result)


if __name__ == "__main__":
    main()
