"""How near the truth is what we prove? Epsilon proved over epsilon of the best concrete attack, for every mechanism.

The proved epsilon is an upper bound for whoever sees the shuffled reports and knows every other user's value. The
attack is a pair of concrete datasets (all other users hold one value), composed exactly: no analysis can go below it.
The truth lies between the two, so a ratio of 1.002 leaves 0.2 % to be gained. Beside it the analyses that were the
defaults before: stronger clones for any randomizer and for bits, the blanket for named randomizers, the general
amplification for hidden cohorts.

delta = 1e-6. Left: n = 10^4, one round, against eps0, where 1e-4 stands for 1e-4 or less. Middle: eps0 = 2, one round,
against n. Right: n = 10^4, eps0 = 2, over rounds, everybody taking part (lines) or a hidden cohort of 10^4 out of 10^5
(dashes). Gaussian noise has sigma = 4/eps0. Over many rounds, an attack on bits may take
the two orders of the neighbours in turn: where that spends more it is the one that counts.

Run:  python benchmarks/figures/gap_to_truth.py [--quick] [--output DIR] [--only NAME]   (about 4 min on an idle core;
writes gap_to_truth.png and gap_to_truth.csv; --only renews the rows of one mechanism)
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from pld_shuffle import Accountant, AccuracyWarning, CountedBits, Mechanism, Shuffled, ShuffledLDP, Subsampled
from pld_shuffle.composition.composition import Composition
from pld_shuffle.plots import COLOURS
from pld_shuffle.randomizers import (
    RAPPOR,
    Gaussian,
    HadamardResponse,
    KRandomizedResponse,
    Laplace,
    LocalHashing,
    LocalRandomizer,
    SubsetSelection,
    UnaryEncoding,
)

DELTA, USERS, BUDGET, POPULATIONS = 1e-6, 10**4, 2.0, 10


def rappor(eps0: float) -> RAPPOR:
    """One-hot filters with permanent noise f alone: eps0 = 2 log((2 - f) / f)."""
    return RAPPOR(k=4, noise=2.0 / (1.0 + math.exp(0.5 * eps0)), one_if_zero=0.0, one_if_one=1.0)


def gaussian(eps0: float) -> Gaussian:
    """Noise whose curve is about that of eps0."""
    return Gaussian(sigma=4.0 / eps0)


RANDOMIZERS: dict[str, Callable[[float], LocalRandomizer]] = {
    "k-RR": lambda eps0: KRandomizedResponse(k=4, eps0=eps0),
    "unary encoding, symmetric": lambda eps0: UnaryEncoding(k=4, eps0=eps0),
    "unary encoding, optimised": lambda eps0: UnaryEncoding(k=4, eps0=eps0, variant="optimised"),
    "subset selection": lambda eps0: SubsetSelection(k=5, size=2, eps0=eps0),
    "Hadamard response": lambda eps0: HadamardResponse(k=4, eps0=eps0),
    "local hashing": lambda eps0: LocalHashing(k=4, buckets=3, eps0=eps0),
    "RAPPOR": rappor,
    "Laplace": lambda eps0: Laplace(eps0=eps0),
    "Gaussian": gaussian,
}
NAMES = ["any randomizer", "bits", *RANDOMIZERS]


class Case(NamedTuple):
    name: str
    eps0: float
    n: int
    rounds: int = 1
    sampled: bool = False

    def mechanism(self, analysis: str = "tightest") -> Mechanism:
        if self.name == "any randomizer":
            found: Mechanism = ShuffledLDP(self.eps0, self.n, analysis)
        elif self.name == "bits" and analysis == "tightest":
            found = CountedBits(self.n, eps0=self.eps0)
        elif self.name == "bits":
            found = ShuffledLDP(self.eps0, self.n, analysis)
        else:
            found = Shuffled(RANDOMIZERS[self.name](self.eps0), self.n, analysis)
        return found

    def before(self) -> Mechanism:
        """The default analysis of release 0.2."""
        old = self.mechanism("blanket" if self.name in RANDOMIZERS else "stronger-clones")
        return self.cohort(old, "general")

    def cohort(self, mechanism: Mechanism, analysis: str = "tightest") -> Mechanism:
        if not self.sampled:
            return mechanism
        return Subsampled(mechanism, population=POPULATIONS * self.n, analysis=analysis)


class Row(NamedTuple):
    case: Case
    upper: float
    attack: float  # nan where no attack is known
    before: float

    @property
    def gap(self) -> float:
        return self.upper / self.attack


def measured(case: Case) -> Row:
    mechanism = case.cohort(case.mechanism())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccuracyWarning)  # upper ends are certified all the same
        bounds = Accountant().compose(mechanism, case.rounds).epsilon_bounds(DELTA)
        before = Accountant().compose(case.before(), case.rounds).get_epsilon(DELTA)
        attack = bounds.lower
        core = case.mechanism()
        if isinstance(core, Shuffled) and core.attack_pair is core.core.attack_pair:
            attack = math.nan  # the lower end is the blanket's own
        elif case.name == "bits" and case.rounds > 1:
            attack = max(attack, in_turn(mechanism, case.rounds))
    return Row(case, float(bounds.upper), float(attack), float(before))


def in_turn(mechanism: Mechanism, rounds: int) -> float:
    """Epsilon of the attack on bits that takes the two orders of the neighbours in turn."""
    one = getattr(mechanism.attack_pair, "pairs", (mechanism.attack_pair,))[0]
    other = replace(one, all_hold_one=not one.all_hold_one)
    half = rounds // 2
    return float(Composition([(one, rounds - half), (other, half)], 1e-3).epsilons(DELTA).lower)


def cases(quick: bool) -> Iterator[Case]:
    if quick:
        for name in ("any randomizer", "bits", "k-RR"):
            yield Case(name, BUDGET, USERS)
            yield Case(name, 1.0, USERS)
        yield Case("bits", BUDGET, USERS, 64)
        yield Case("bits", BUDGET, USERS, 64, True)
        yield Case("bits", 8.0, 10**5)
        return
    for name in ("any randomizer", "bits"):
        for n in (10**2, 10**3, 10**4, 10**5, 10**6):
            yield from (Case(name, eps0, n) for eps0 in (0.25, 0.5, 1.0, 2.0, 4.0, 6.0, 8.0))
    for name in RANDOMIZERS:
        yield from (Case(name, eps0, USERS) for eps0 in (0.5, 1.0, 2.0, 4.0))
        yield from (Case(name, BUDGET, n) for n in (10**2, 10**3, 10**5, 10**6))
    for name in NAMES:
        yield from (Case(name, BUDGET, USERS, rounds) for rounds in (64, 1000))
        yield from (Case(name, BUDGET, USERS, rounds, True) for rounds in (1, 64, 1000))
    for name in ("any randomizer", "bits"):
        for n, eps0 in ((1000, 1.0), (10**4, 4.0)):
            yield from (Case(name, eps0, n, rounds) for rounds in (64, 1000))


def allowed(case: Case) -> float:
    """The ratio that we set ourselves, or nan where none was set."""
    eps0, n = case.eps0, case.n
    if case.sampled:
        return math.nan
    if case.name == "any randomizer":
        wanted = 1.005 if n >= 1000 and eps0 <= 2 else 1.01 if n >= 10**4 and eps0 <= 6 else math.nan
    elif case.name == "bits":
        wanted = 1.003 if n >= 1000 else math.nan
    elif case.name in ("Hadamard response", "local hashing", "RAPPOR", "Gaussian"):
        wanted = 1.02 if n >= 10**4 and eps0 <= 4 else math.nan
    else:
        wanted = 1.005 if n >= 10**4 and eps0 <= 4 else math.nan
    return wanted + (0.005 if case.rounds > 1 else 0.0)


def report(rows: list[Row]) -> None:
    """Line by line: what was asked, the worst that was found, and every case that falls short."""
    print("mechanism                   asked   worst   at                                before")
    for name in NAMES:
        mine = [row for row in rows if row.case.name == name and not math.isnan(allowed(row.case))]
        for limit in sorted({allowed(row.case) for row in mine}):
            held = [row for row in mine if allowed(row.case) == limit and not math.isnan(row.attack)]
            if not held:
                print(f"{name:27} {limit:.3f}   no attack known")
                continue
            worst = max(held, key=lambda row: row.gap)
            place = f"eps0={worst.case.eps0:g}, n={worst.case.n:g}, rounds={worst.case.rounds}"
            short = "" if worst.gap <= limit else "   SHORT"
            old = worst.before / worst.attack
            print(f"{name:27} {limit:.3f}   {worst.gap:.4f}  {place:33} {old:.3f}{short}")
            for row in held:
                if row.gap > limit and row is not worst:
                    case = row.case
                    print(f"{'':36}{row.gap:.4f}  eps0={case.eps0:g}, n={case.n:g}, rounds={case.rounds}")
    for row in rows:
        if row.case == Case("bits", 8.0, 10**5):
            print(f"telemetry, eps0=8, n=1e5: attack {row.attack:.4f}, proved {row.upper:.4f}, "
                  f"stronger clones {row.before:.4f} at 1e-6")  # fmt: skip
            found = Accountant().compose(CountedBits(10**5, eps0=8.0)).epsilon_bounds(1e-5)
            print(f"telemetry at 1e-5: {found.lower:.4f} to {found.upper:.4f}")
    for row in rows:
        if row.case.sampled and not math.isnan(row.attack):
            case = row.case
            print(f"sampled, {case.name}, {case.rounds} rounds: {row.gap:.4f} (general amplification "
                  f"{row.before / row.attack:.3f})")  # fmt: skip


def draw(rows: list[Row], path: Path) -> None:
    figure, axes = plt.subplots(1, 3, figsize=(15, 6.2), sharey=True, layout="constrained")
    panels: list[tuple[str, Callable[[Case], float], Callable[[Case], bool]]] = [
        ("local budget ε₀", lambda c: c.eps0,
         lambda c: c.n == USERS and c.rounds == 1 and not c.sampled),
        ("users n", lambda c: float(c.n),
         lambda c: c.eps0 == BUDGET and c.rounds == 1 and not c.sampled),
        ("rounds", lambda c: float(c.rounds),
         lambda c: c.eps0 == BUDGET and c.n == USERS and not c.sampled),
        ("rounds", lambda c: float(c.rounds), lambda c: c.sampled),
    ]  # fmt: skip
    titles = [f"n = {USERS:,}, one round", f"ε₀ = {BUDGET:g}, one round",
              f"n = {USERS:,}, ε₀ = {BUDGET:g}; dashed: of {POPULATIONS * USERS:,}"]  # fmt: skip
    styles = ["-", "-", "-", "--"]
    for which, (label, position, chosen) in enumerate(panels):
        axis = axes[min(which, 2)]
        for index, name in enumerate(NAMES):
            mine = sorted(
                (r for r in rows if r.case.name == name and chosen(r.case) and r.attack > 0.0),
                key=lambda r: position(r.case),
            )
            if not mine:
                continue
            colour = COLOURS[index % len(COLOURS)]
            x = [position(r.case) for r in mine]
            axis.plot(
                x, [max(r.gap - 1.0, 1e-4) for r in mine], styles[which], color=colour,
                marker="os"[index // len(COLOURS)], markersize=4, lw=1.6,
                label=name if which == 0 else None,
            )  # fmt: skip
            if which < 3:
                axis.plot(x, [max(r.before / r.attack - 1.0, 1e-4) for r in mine], ":", color=colour, lw=1.0)
        axis.set(xlabel=label, xscale="log" if which else "linear", yscale="log")
        axis.set_title(titles[min(which, 2)], fontsize="medium")
        axis.grid(alpha=0.25)
    axes[0].set_ylabel("ε proved / ε of the attack, less 1")
    figure.legend(
        *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=9,
        frameon=False,
    )  # fmt: skip
    figure.suptitle(f"What is left to gain at δ = {DELTA:g} (dotted: the analyses of release 0.2)")
    figure.savefig(path, dpi=110)
    plt.close(figure)


COLUMNS = ["mechanism", "eps0", "n", "rounds", "sampled", "upper", "attack", "before", "gap"]


def save(rows: Iterable[Row], path: Path) -> None:
    with path.open("w", newline="") as handle:
        out = csv.writer(handle, lineterminator="\n")
        out.writerow(COLUMNS)
        for row in rows:
            case = row.case
            numbers = [f"{value:.9g}" for value in (row.upper, row.attack, row.before, row.gap)]
            out.writerow([case.name, case.eps0, case.n, case.rounds, int(case.sampled), *numbers])


def load(path: Path) -> dict[Case, Row]:
    found = {}
    with path.open(newline="") as handle:
        for line in csv.DictReader(handle):
            case = Case(
                line["mechanism"], float(line["eps0"]), int(line["n"]), int(line["rounds"]),
                line["sampled"] == "1",
            )  # fmt: skip
            numbers = (float(line[name]) for name in ("upper", "attack", "before"))
            found[case] = Row(case, *numbers)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="proved epsilon over attack, as PNG and CSV")
    parser.add_argument("--quick", action="store_true", help="nine cases instead of some 200")
    parser.add_argument("--only", choices=NAMES, help="renew this mechanism's rows of the CSV")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent, help="directory to write to")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / "gap_to_truth.csv"
    known = load(path) if options.only else {}
    rows, begin = [], time.perf_counter()
    for case in dict.fromkeys(cases(options.quick)):
        kept = options.only is not None and case.name != options.only and case in known
        rows.append(known[case] if kept else measured(case))
        if not options.quick and not kept:
            print(f"{time.perf_counter() - begin:6.0f} s  {case}", file=sys.stderr, flush=True)
    save(rows, path)
    draw(rows, options.output / "gap_to_truth.png")
    report(rows)


if __name__ == "__main__":
    main()
