"""How many runs of an implementation show which error: power of `audit` and `audit_randomizer`.

Each row is a wrong implementation. For every number of runs (of each dataset) the share of trials in which more was
measured than is proved, at confidence 0.999, and the median of the measured epsilon. The right implementations in
between are never rejected. The picture shows the medians.

    python benchmarks/audit_power.py [--quick]
"""

from __future__ import annotations

import math
from collections.abc import Callable

import harness
import numpy as np

from pld_shuffle import Accountant, Audit, Shuffled, audit, audit_randomizer
from pld_shuffle.randomizers import BinaryRandomizedResponse, KRandomizedResponse

CONFIDENCE, DELTA, USERS = 0.999, 1e-3, 30
Trial = Callable[[int, np.random.Generator], Audit]


def bit_vectors(runs: int, rng: np.random.Generator, last: bool) -> Audit:
    """opendp#2707: eight bits, flipped with probability 1/4, or all but the last."""
    drawn = {}
    for x in (0, 7):
        bits = np.zeros((runs, 8), np.int64)
        bits[:, x] = 1
        flipped = rng.random(bits.shape) < 0.25
        flipped[:, 7] &= last
        drawn[x] = bits ^ flipped
    return audit_randomizer(drawn, 2.0 * math.log(3.0), confidence=CONFIDENCE)


def unary(runs: int, rng: np.random.Generator, cleared: bool, eps: float) -> Audit:
    """pure-LDP#11: the true bit of four is set with probability p, after it was cleared, or not."""
    p = 1.0 / (1.0 + math.exp(-0.5 * eps))
    drawn = {}
    for x in (0, 1):
        bits = (rng.random((runs, 4)) < 1.0 - p).astype(np.int64)
        if cleared:
            bits[:, x] = 0
        bits[rng.random(runs) < p, x] = 1
        drawn[x] = bits
    return audit_randomizer(drawn, eps, confidence=CONFIDENCE)


PROVED = {
    eps: Accountant().compose(Shuffled(BinaryRandomizedResponse(eps), USERS)).get_epsilon(DELTA) for eps in (3.0,)
}
ORDER = Accountant().compose(Shuffled(KRandomizedResponse(k=4, eps0=2.0), USERS)).get_epsilon(DELTA)


def shuffled_bits(runs: int, rng: np.random.Generator, eps: float) -> Audit:
    """Ones among 30 users who claim eps0 = 3."""
    values = np.zeros((2, runs, USERS), np.int64)
    values[0, :, 0] = 1
    ones = BinaryRandomizedResponse(eps).sample(values, rng).sum(axis=2)
    return audit(*ones, delta=DELTA, confidence=CONFIDENCE, proved=PROVED[3.0])


def reports(runs: int, rng: np.random.Generator, shuffled: bool) -> Audit:
    """4-ary reports of 30 users in the order in which they came out."""
    values = np.zeros((2, runs, USERS), np.int64)
    values[1, :, 0] = 1
    sent = KRandomizedResponse(k=4, eps0=2.0).sample(values, rng)
    if shuffled:
        sent = rng.permuted(sent, axis=2)
    return audit(*sent, delta=DELTA, confidence=CONFIDENCE, proved=ORDER)


CASES: dict[str, tuple[bool, Trial]] = {
    "last bit not randomised (opendp#2707)": (False, lambda n, rng: bit_vectors(n, rng, False)),
    "the same, right": (True, lambda n, rng: bit_vectors(n, rng, True)),
    "unary encoding, eps0 = 0.5 (pure-LDP#11)": (False, lambda n, rng: unary(n, rng, False, 0.5)),
    "unary encoding, eps0 = 2 (pure-LDP#11)": (False, lambda n, rng: unary(n, rng, False, 2.0)),
    "unary encoding, eps0 = 0.5, right": (True, lambda n, rng: unary(n, rng, True, 0.5)),
    "30 shuffled bits, eps0 4.5 for 3": (False, lambda n, rng: shuffled_bits(n, rng, 4.5)),
    "30 shuffled bits, eps0 3.5 for 3": (False, lambda n, rng: shuffled_bits(n, rng, 3.5)),
    "30 shuffled bits, right": (True, lambda n, rng: shuffled_bits(n, rng, 3.0)),
    "30 reports, not shuffled": (False, lambda n, rng: reports(n, rng, False)),
    "30 reports, shuffled": (True, lambda n, rng: reports(n, rng, True)),
}


def main() -> None:
    arguments = harness.options(__doc__ or "")
    trials = 5 if arguments.quick else 20
    sizes = [100, 1_000] if arguments.quick else [100, 300, 1_000, 3_000, 10_000, 30_000, 100_000]
    rows, series = [], []
    for number, (name, (right, trial)) in enumerate(CASES.items()):
        rng = np.random.default_rng(number)
        row: harness.Row = {"implementation": name}
        medians = []
        for size in sizes:
            found = [trial(size, rng) for _ in range(trials if size < 30_000 else 5)]
            row["proved"] = found[0].proved
            medians.append(float(np.median([one.epsilon for one in found])))
            row[f"{size:,}"] = f"{np.mean([one.violated for one in found]):.0%}"
        row["measured"] = medians[-1]
        rows.append(row)
        over = [value / row["proved"] for value in medians]
        series.append((name, sizes, over, "--" if right else "o-"))
        print(harness.table([row], list(row)).splitlines()[-1], flush=True)
    columns = ["implementation", "proved", "measured", *(f"{size:,}" for size in sizes)]
    print("\n" + harness.table(rows, columns))
    stem = harness.save(arguments, "audit_power", {"trials": trials, "rows": rows})
    draw(stem, series)


def draw(stem: harness.Path, series: list[tuple[str, list[int], list[float], str]]) -> None:
    """Measured over proved epsilon against runs."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7.2, 4.4), layout="constrained")
    for label, x, y, style in series:
        axes.semilogx(x, y, style, label=label, markersize=4)
    axes.axhline(1.0, color="black", linewidth=1.0)
    axes.annotate("above: not what was proved", (x[0], 1.03), fontsize=8)
    axes.set(xlabel="runs of each dataset", ylabel="measured epsilon / proved epsilon", ylim=(0.0, 4.0))
    axes.grid(True, alpha=0.3)
    axes.legend(fontsize=7)
    figure.savefig(stem.with_suffix(".png"), dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main()
