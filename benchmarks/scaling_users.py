"""Forming one round's law against the number of users, n = 10^2 ... 10^12.

For every n: all laws that one certified epsilon (delta = 1e-6, one round, rtol = 1e-3) needs are
watched while they are formed: their seconds, the atoms of these laws, and the relative width of the
bracket on delta. Warm-up: one unmeasured answer per n (compiled code comes from the cache).
Against three slow ways to form the same pair once: the per-atom Python loop over all O(n^2)
atoms, the same loop in Hoeffding windows, and the vectorised O(n) Hoeffding reference.

    python benchmarks/scaling_users.py [--quick]
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import harness
import peers

from pld_shuffle import Accountant, Bounds, Mechanism, ShuffledLDP, ShuffledRR, Side
from pld_shuffle.composition.composition import Composition
from pld_shuffle.pairs.pair import Atoms, Pair, Resolution

EPS0 = 4.0
DELTA = 1e-6
MECHANISMS = {
    "stronger clones": lambda n: ShuffledLDP(eps0=EPS0, n=n, analysis="stronger-clones"),
    "strong k-RR": lambda n: ShuffledRR(k=4, n=n, eps0=EPS0, adversary="strong"),
    "weak k-RR": lambda n: ShuffledRR(k=4, n=n, eps0=EPS0, adversary="weak"),
}


class Watched(Pair):
    """A pair that counts what forming its atoms costs."""

    def __init__(self, inner: Pair) -> None:
        self.inner = inner
        self.seconds: list[float] = []
        self.sizes: list[int] = []

    @property
    def max_loss(self) -> Bounds:
        return self.inner.max_loss

    @property
    def scale(self) -> float:
        return self.inner.scale

    def atoms(self, sides: Sequence[Side], resolution: Resolution) -> list[Atoms]:
        begin = time.process_time()
        found = self.inner.atoms(sides, resolution)
        self.seconds.append(time.process_time() - begin)
        self.sizes.append(max(atoms.mass.size for atoms in found))
        return found

    def amplified(self, rate: float) -> Pair:
        return self.inner.amplified(rate)


def answer(mechanism: Mechanism) -> harness.Row:
    """One certified epsilon, from nothing."""
    watched = Watched(mechanism.pair)
    composition = Composition([(watched, 1)], 1e-3)
    bounds = composition.epsilons(DELTA)
    composed = composition.deltas(bounds.upper)
    return {
        "form_ms": 1e3 * sum(watched.seconds),
        "largest_form_ms": 1e3 * max(watched.seconds),
        "laws": len(watched.seconds),
        "atoms": sum(watched.sizes),
        "epsilon": bounds.upper,
        "delta_width": composed.upper / composed.lower - 1.0,
    }


def ours(name: str, n: int, repeats: int) -> harness.Row:
    mechanism = MECHANISMS[name](n)
    answer(mechanism)
    rows = [answer(mechanism) for _ in range(repeats)]
    rows.sort(key=lambda row: row["form_ms"])
    timing = harness.measure(lambda: Accountant().compose(mechanism).epsilon_bounds(DELTA), warmup=0, repeats=repeats)
    return {
        "mechanism": name, "n": n, **rows[len(rows) // 2],
        "answer_cpu_ms": 1e3 * timing.cpu, "answer_wall_ms": 1e3 * timing.wall,
    }  # fmt: skip


def slow(n: int, kind: str) -> harness.Row:
    """One of the slow ways, on the step of our own default, with windows that miss 1e-12."""
    step = MECHANISMS["stronger clones"](n).pair.scale / 200.0
    if kind == "per-atom loop, all atoms":
        run = lambda: peers.loop_law(n, EPS0, step, None)[1]  # noqa: E731
    elif kind == "per-atom loop, Hoeffding":
        run = lambda: peers.loop_law(n, EPS0, step, 1e-12)[1]  # noqa: E731
    else:
        run = lambda: peers.hoeffding_law(n, EPS0, step, 1e-12)[1]  # noqa: E731
    timing = harness.measure(run, warmup=0, repeats=3, budget=2.0)
    return {
        "method": kind, "n": n, "form_ms": 1e3 * timing.cpu, "wall_ms": 1e3 * timing.wall,
        "atoms": timing.value, "runs": timing.runs,
    }  # fmt: skip


def main() -> None:
    arguments = harness.options(__doc__.splitlines()[0])
    exponents = (2, 4, 6, 9, 12) if arguments.quick else range(2, 13)
    repeats = 3 if arguments.quick else 5
    rows = []
    for name in MECHANISMS:
        for exponent in exponents:
            rows.append(ours(name, 10**exponent, repeats))
            print(rows[-1], flush=True)
    sizes = {
        "per-atom loop, all atoms": (2, 3) if arguments.quick else (2, 3, 4),
        "per-atom loop, Hoeffding": (2, 3, 4) if arguments.quick else (2, 3, 4, 5),
        "Hoeffding reference, O(n)": (2, 4, 5) if arguments.quick else (2, 3, 4, 5, 6, 7),
    }
    references = [slow(10**e, kind) for kind, exponents in sizes.items() for e in exponents]
    mine = {row["n"]: row["form_ms"] for row in rows if row["mechanism"] == "stronger clones"}
    for row in references:
        row["times_slower"] = row["form_ms"] / mine[row["n"]] if row["n"] in mine else None
    stem = harness.save(arguments, "scaling_users", {"rows": rows, "references": references})
    print(harness.table(rows, list(rows[0])))
    print()
    print(harness.table(references, list(references[0])))
    series = []
    for name, style in zip(MECHANISMS, ("o-", "s-", "^-"), strict=True):
        mine_rows = [row for row in rows if row["mechanism"] == name]
        series.append((name, [r["n"] for r in mine_rows], [r["form_ms"] / 1e3 for r in mine_rows], style))
    for kind in sizes:
        kind_rows = [row for row in references if row["method"] == kind]
        series.append((kind, [r["n"] for r in kind_rows], [r["form_ms"] / 1e3 for r in kind_rows], "x:"))
    start = {2.0: (1e2, 1e4, 1e-2), 1.0: (1e2, 1e8, 1e-3), 0.5: (1e4, 1e12, 3e-4)}
    for slope, (first, last, value) in start.items():
        label, style = {
            2.0: ("slope n^2", "k:"), 1.0: ("slope n", "k-."), 0.5: ("slope sqrt(n)", "k--")
        }[slope]  # fmt: skip
        series.append((label, [first, last], [value, value * (last / first) ** slope], style))
    harness.log_plot(
        stem, series, x_label="users n", y_label="seconds to form (cpu)",
        title=f"Forming all laws of one answer, eps0 = {EPS0:g}, delta = {DELTA:g}",
    )  # fmt: skip


if __name__ == "__main__":
    main()
