"""Composing equal rounds, 1 ... 10^6 of them, against repeated doubling on a fixed grid.

Workload: n = 10^6 users, eps0 = 1, one epsilon at delta = 1e-6. Every row runs in a process of
its own, so that its peak memory (interpreter and libraries included: the row "imports only") is
its own. Warm-up: one unmeasured answer in that process.

The opponent forms an upper lattice law (`form_cpu_s`, not part of `cpu_s`), squares it by plain FFTs,
cuts 1e-15 of mass off each end at every doubling (to infinity), and keeps its step. It is told for free
the coarsest step scale/`parts`, `parts` = 25, 50 ... 400, with which it is as accurate as ours was asked to
be (1e-3). At 10^6 rounds none is: the mass it cuts, multiplied by the rounds, remains, and less cannot be
cut, for the noise of the transform is as large. It answers one delta, on one side; `relative_error` is
that of its delta, at our upper epsilon, against our bracket. Ours forms, and answers both sides of an epsilon.

    python benchmarks/scaling_rounds.py [--quick]
"""

from __future__ import annotations

import math

import harness
import numpy as np
from scipy import fft

from pld_shuffle import PLD, Accountant, ShuffledLDP, Side

DELTA = 1e-6
MECHANISM = ShuffledLDP(eps0=1.0, n=10**6, analysis="stronger-clones")
CUT = 1e-15
RTOL, FINEST = 1e-3, 400  # of delta; parts of the scale: finer ones gain nothing, see `CUT`


def ours(rounds: int, repeats: int) -> harness.Row:
    """One certified epsilon from nothing, and the width of the bracket there."""
    timing = harness.measure(lambda: Accountant().compose(MECHANISM, rounds).epsilon_bounds(DELTA), repeats=repeats)
    epsilon = timing.value.upper
    bounds = Accountant().compose(MECHANISM, rounds).delta_bounds(epsilon)
    return {
        "method": "pld_shuffle", "rounds": rounds, "cpu_s": timing.cpu, "wall_s": timing.wall,
        "epsilon": epsilon, "epsilon_lower": timing.value.lower,
        "relative_error": bounds.upper / bounds.lower - 1.0,
    }  # fmt: skip


def doubling(rounds: int, repeats: int, epsilon: float, lower: float, upper: float) -> harness.Row:
    """delta(epsilon) by repeated doubling on a fixed grid; its error against [lower, upper]."""

    def formed(parts: int) -> PLD:
        return MECHANISM.pld(step=MECHANISM.pair.scale / parts, side=Side.UPPER)

    def error(delta: float) -> float:
        return max(delta / upper, lower / delta) - 1.0

    parts = 25
    while parts < FINEST and error(doubled(formed(parts), rounds, epsilon)[0]) > RTOL:
        parts *= 2
    forming = harness.measure(lambda: formed(parts), repeats=repeats)
    start = forming.value
    timing = harness.measure(lambda: doubled(start, rounds, epsilon), repeats=repeats)
    delta, points = timing.value
    return {
        "method": "doubling, fixed grid", "rounds": rounds, "cpu_s": timing.cpu,
        "wall_s": timing.wall, "epsilon": epsilon, "relative_error": max(error(delta), 0.0),
        "parts": parts, "points": points, "form_cpu_s": forming.cpu,
    }  # fmt: skip


def doubled(start: PLD, rounds: int, epsilon: float) -> tuple[float, int]:
    """(delta, largest number of lattice points)."""
    law, low, infinity = start.masses, start.low, start.infinity
    total: tuple[np.ndarray, int, float] | None = None
    largest = law.size
    while True:
        if rounds & 1:
            total = (law, low, infinity) if total is None else times(total, (law, low, infinity))
        rounds >>= 1
        if not rounds:
            break
        law, low, infinity = times((law, low, infinity), (law, low, infinity))
        largest = max(largest, law.size)
    assert total is not None
    masses, first, lost = total
    losses = (first + np.arange(masses.size)) * start.step
    above = losses > epsilon
    return float(-np.expm1(epsilon - losses[above]) @ masses[above]) + lost, largest


def times(left: tuple[np.ndarray, int, float], right: tuple[np.ndarray, int, float]) -> tuple[np.ndarray, int, float]:
    size = left[0].size + right[0].size - 1
    points = fft.next_fast_len(size, real=True)
    masses = fft.irfft(fft.rfft(left[0], points) * fft.rfft(right[0], points), points)[:size]
    masses = np.maximum(masses, 0.0)
    first = int(np.searchsorted(np.cumsum(masses), CUT))
    last = masses.size - int(np.searchsorted(np.cumsum(masses[::-1]), CUT))
    lost = left[2] + right[2] - left[2] * right[2] + float(masses[last:].sum())
    return masses[first:last], left[1] + right[1] + first, lost


def nothing() -> harness.Row:
    """The memory of a process that has imported all this."""
    return {"method": "imports only"}


def main() -> None:
    arguments = harness.options(__doc__.splitlines()[0])
    exponents = (0, 2, 4, 6) if arguments.quick else range(7)
    repeats = 3 if arguments.quick else 5
    rows = [harness.isolated(nothing)]
    for exponent in exponents:
        rounds = 10**exponent
        rows.append(harness.isolated(ours, rounds, repeats))
        print(rows[-1], flush=True)
        epsilon = rows[-1]["epsilon"]
        bounds = Accountant(rtol=1e-4).compose(MECHANISM, rounds).delta_bounds(epsilon)
        rows.append(harness.isolated(doubling, rounds, repeats, epsilon, *bounds))
        rows[-1]["times_slower"] = (rows[-1]["cpu_s"] + rows[-1]["form_cpu_s"]) / rows[-2]["cpu_s"]
        print(rows[-1], flush=True)
    stem = harness.save(arguments, "scaling_rounds", {"rows": rows})
    columns = ["method", "rounds", "cpu_s", "wall_s", "memory_mb", "epsilon", "relative_error"]
    print(harness.table(rows, [*columns, "parts", "points", "form_cpu_s", "times_slower"]))
    series = []
    for method, style in (("pld_shuffle", "o-"), ("doubling, fixed grid", "x--")):
        chosen = [row for row in rows if row["method"] == method]
        x = [row["rounds"] for row in chosen]
        series.append((f"{method}: seconds", x, [row["cpu_s"] for row in chosen], style))
        error = [row["relative_error"] or math.nan for row in chosen]  # 0: inside our bracket
        series.append((f"{method}: relative error of delta", x, error, style[0] + ":"))
    series.append(("rtol", [1, 10 ** exponents[-1]], [1e-3, 1e-3], "k--"))
    harness.log_plot(
        stem, series, x_label="rounds", y_label="seconds (cpu), relative error of delta",
        title="Equal rounds, n = 10^6, eps0 = 1, delta = 1e-6",
    )  # fmt: skip


if __name__ == "__main__":
    main()
