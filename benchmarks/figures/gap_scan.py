"""How wide is the bracket, over all mechanisms? The proved epsilon over that of the best attack, cell by cell.

`gap_to_truth.py` shows the usual rounds; this scan goes to the corners: 2 to 10^6 users, eps0 from .1 to 10, 1 to 1,000
rounds, hidden cohorts that are .001 to .5 of the population, all named randomizers, counted bits, sticky cohorts and
epochs. First come the cells of a fixed table, then a random order (of one seed) of the grid, so that whatever was
computed is a fair sample. delta = 1e-6. A cell that takes more processor seconds than the limit is listed without
numbers. A gap of 1.005 leaves half a per cent to be gained; inf means that no attack is known.

Run:  python benchmarks/figures/gap_scan.py [--cells 2000] [--seconds 10] [--minutes 60] [--output DIR]
(writes gap_scan.png and gap_scan.csv, and prints the worst cells of every mechanism)
"""

from __future__ import annotations

import argparse
import csv
import itertools
import math
import random
import signal
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from pld_shuffle import (
    Accountant,
    CountedBits,
    Epoch,
    Mechanism,
    PoissonSampled,
    Shuffled,
    ShuffledLDP,
    StickyCohort,
    Subsampled,
    Summed,
)
from pld_shuffle.plots import COLOURS
from pld_shuffle.randomizers import RAPPOR, Gaussian, SubsetSelection, UnaryEncoding

sys.path.insert(0, str(Path(__file__).parent))
from gap_to_truth import RANDOMIZERS

DELTA, SEED = 1e-6, 21
USERS = (2, 10, 30, 100, 1_000, 10_000, 1_000_000)
BUDGETS = (0.1, 0.5, 1.0, 2.0, 4.0, 10.0)
ROUNDS = (1, 16, 1_000)
RATES = (1.0, 0.001, 0.1, 0.5)
GOOD = 1.005
COMPUTED = "computed"

#: The table of wide brackets: (what, mechanism, rounds).
TABLE: list[tuple[str, Mechanism, int]] = [
    ("sticky, 100 users, eps0 4, rate .01", StickyCohort(ShuffledLDP(4.0, 100), 1, rate=0.01), 1),
    ("sticky, 1000, eps0 2, rate .01, 100 rounds", StickyCohort(ShuffledLDP(2.0, 1000), 100, rate=0.01), 1),
    ("bits .5/.01, n 10", CountedBits(10, one_if_one=0.5, one_if_zero=0.01), 1000),
    ("histogram .5/.01, n 10", Summed(RAPPOR(k=3, noise=0.0, one_if_zero=0.01, one_if_one=0.5), 10), 64),
    ("Poisson bits, n 1000, eps0 4, rate .1", PoissonSampled(CountedBits(1000, eps0=4.0), 0.1), 64),
    ("LDP n 30, eps0 1", ShuffledLDP(1.0, 30), 1),
    ("LDP n 30, eps0 1", ShuffledLDP(1.0, 30), 16),
    ("LDP n 200, eps0 2", ShuffledLDP(2.0, 200), 1),
    ("LDP n 60, eps0 1, rate .1", Subsampled(ShuffledLDP(1.0, 60), rate=0.1), 1),
    ("Poisson LDP, N 1000, eps0 2, rate .001", PoissonSampled(ShuffledLDP(2.0, 1000), 0.001), 1),
    ("epoch, n 10000, eps0 1", Epoch(1.0, 10_000), 1),
    ("subset 2 of 5, eps0 4, n 100", Shuffled(SubsetSelection(k=5, size=2, eps0=4.0), 100), 16),
    ("Gaussian sigma 1, n 1000", Shuffled(Gaussian(sigma=1.0), 1000), 1),
    ("histogram, n 1000, eps0 1, rate .01", Subsampled(Summed(UnaryEncoding(k=3, eps0=2.0), 1000), rate=0.01), 1),
]
KINDS: dict[str, Callable[[float, int], Mechanism]] = {
    "any randomizer": lambda eps0, n: ShuffledLDP(eps0, n),
    "bits": lambda eps0, n: CountedBits(n, eps0=eps0),
    **{name: lambda eps0, n, make=make: Shuffled(make(eps0), n) for name, make in RANDOMIZERS.items()},  # type: ignore[misc]
    "sticky": lambda eps0, n: ShuffledLDP(eps0, n),
    "epoch": lambda eps0, n: Epoch(eps0, n),
}


class Row(NamedTuple):
    """One cell. state : whether it was computed, else why not."""

    name: str
    eps0: float
    n: int
    rounds: int
    rate: float
    upper: float = math.nan
    attack: float = math.nan
    seconds: float = math.nan
    state: str = COMPUTED

    @property
    def gap(self) -> float:
        if self.upper == self.attack:
            return 1.0
        return self.upper / self.attack if self.attack > 0.0 else math.inf

    def spent(self) -> Accountant:
        base = KINDS[self.name](self.eps0, self.n)
        if self.name == "sticky":
            return Accountant().compose(StickyCohort(base, self.rounds, rate=self.rate))
        return Accountant().compose(base if self.rate == 1.0 else Subsampled(base, rate=self.rate), self.rounds)


class TooLong(Exception):
    """A cell's time is up."""


def stop(_signal: int, _frame: Any) -> None:
    raise TooLong


def measured(row: Row, make: Callable[[], Accountant], limit: int) -> Row:
    begin = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, limit)
    try:
        bounds = make().epsilon_bounds(DELTA)
    except (TooLong, MemoryError) as error:
        return row._replace(state=type(error).__name__)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
    return row._replace(upper=bounds.upper, attack=bounds.lower, seconds=time.process_time() - begin)


def grid() -> list[Row]:
    cells = [
        Row(*cell)
        for cell in itertools.product(KINDS, BUDGETS, USERS, ROUNDS, RATES)
        if (cell[4] < 1.0 or cell[0] != "sticky") and (cell[4] == 1.0 or cell[0] != "epoch")
    ]
    random.Random(SEED).shuffle(cells)
    return cells


def save(rows: list[Row], path: Path) -> None:
    with path.open("w", newline="") as handle:
        out = csv.writer(handle, lineterminator="\n")
        out.writerow([*Row._fields, "gap"])
        for row in rows:
            numbers = [f"{value:.6g}" for value in (row.upper, row.attack, row.seconds)]
            out.writerow([*row[:5], *numbers, row.state, f"{row.gap:.6g}"])


def draw(rows: list[Row], path: Path) -> None:
    figure, axis = plt.subplots(figsize=(9, 5.5), layout="constrained")
    for index, name in enumerate(KINDS):
        gaps = sorted(min(max(row.gap - 1.0, 1e-6), 30.0) for row in rows if row.name == name and row.state == COMPUTED)
        if gaps:
            places = [(k + 0.5) / len(gaps) for k in range(len(gaps))]
            style = ("-", "--")[index // len(COLOURS)]
            axis.plot(places, gaps, style, color=COLOURS[index % len(COLOURS)], label=f"{name} ({len(gaps)})")
    axis.axhline(GOOD - 1.0, color="black", lw=0.8)
    axis.set(yscale="log", xlabel="share of the cells", ylabel="ε proved / ε of the attack, less 1")
    axis.set_title(f"Width of brackets at δ = {DELTA:g} in random corners (line: {GOOD:g})", fontsize="medium")
    axis.grid(alpha=0.25)
    axis.legend(fontsize=8, frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def report(rows: list[Row]) -> None:
    known = [row for row in rows if row.state == COMPUTED]
    good = sum(row.gap <= GOOD for row in known)
    print(f"{len(known)} of {len(rows)} cells computed, {good} of them within {GOOD:g}")
    for name in KINDS:
        mine = sorted((row for row in known if row.name == name), key=lambda row: -row.gap)
        if mine:
            near = sum(row.gap <= GOOD for row in mine)
            print(f"{name:27} {near:4d} of {len(mine):4d} within; median {mine[len(mine) // 2].gap:.4f}; widest:")
            for row in mine[:3]:
                print(f"{'':8}{row.gap:8.4f}  eps0={row.eps0:g} n={row.n} rounds={row.rounds} rate={row.rate:g}"
                      f"  {row.attack:.5g} - {row.upper:.5g}")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="proved epsilon over attack in random corners, as PNG and CSV")
    parser.add_argument("--quick", action="store_true", help="six cells of the grid, a second each at most")
    parser.add_argument("--cells", type=int, default=2000, help="of the grid at most")
    parser.add_argument("--seconds", type=int, default=10, help="of a processor, for one cell")
    parser.add_argument("--minutes", type=float, default=60.0, help="for all")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent, help="directory to write to")
    options = parser.parse_args()
    if options.quick:
        options.cells, options.seconds = 6, 1
    options.output.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")  # upper ends are certified all the same
    signal.signal(signal.SIGPROF, stop)
    end, rows = time.monotonic() + 60.0 * options.minutes, []
    table = [] if options.quick else TABLE
    for what, mechanism, rounds in table:
        row = Row(what, math.nan, mechanism.users or 0, rounds, math.nan)
        row = measured(row, lambda m=mechanism, t=rounds: Accountant().compose(m, t), 60)  # type: ignore[misc]
        print(
            f"{what:44} {rounds:5d} rounds  {row.attack:.5g} - {row.upper:.5g}  {row.gap:.4f} {row.state}", flush=True
        )
        rows.append(row)
    for row in grid()[: options.cells]:
        if time.monotonic() > end:
            break
        rows.append(measured(row, row.spent, options.seconds))
        if len(rows) % 25 == 0:
            save(rows, options.output / "gap_scan.csv")
    save(rows, options.output / "gap_scan.csv")
    draw(rows, options.output / "gap_scan.png")
    report(rows[len(table) :])


if __name__ == "__main__":
    main()
