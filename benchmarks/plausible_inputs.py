"""A random sample of everything plausible: which questions are slow, large, or answered less tightly than asked?

Every case draws one mechanism or two, their rounds and a delta from a fixed seed, each in a fresh process (forked from
one with compiled code loaded, warmed up by a few answers): 2 to 10^12 users, eps0 from 0.01 to 20, noise of 0.3 to
1,000 sensitivities, 1 to 10^6 rounds each, delta from 10^-3 to 10^-100. The question is `epsilon_bounds(delta)`.
Listed are the cases that took over 5 s of processor time or 1 GB, or whose numerical width is over rtol
(`AccuracyWarning`).

    python benchmarks/plausible_inputs.py [--cases 300] [--seed 0] [--slow 5] [--every-family] [--quick]
"""

from __future__ import annotations

import math
import multiprocessing
import random
import resource
import time
import warnings
from collections.abc import Callable
from typing import Any

import harness

from pld_shuffle import (
    Accountant,
    AccuracyWarning,
    CountedBits,
    Epoch,
    Gaussian,
    Laplace,
    Mechanism,
    MixedRR,
    PoissonGaussian,
    PoissonSampled,
    RandomAllocation,
    Shuffled,
    ShuffledBatches,
    ShuffledLDP,
    ShuffledRR,
    StickyCohort,
    Subsampled,
    Summed,
    SummedNoise,
    Threshold,
    randomizers,
    shares,
)

MEMORY_MB = 1000.0
LOGS = 0.1  # share of cases that are logs of many rows
LIMIT_S = 120  # a case that takes longer is stopped


def logarithmic(draw: random.Random, low: float, high: float) -> float:
    """A number whose logarithm is uniform, to three digits."""
    return float(f"{math.exp(draw.uniform(math.log(low), math.log(high))):.3g}")


def crowd(draw: random.Random) -> int:
    return round(logarithmic(draw, 2, 1e12))


def eps0(draw: random.Random) -> float:
    return logarithmic(draw, 0.01, 20.0)


def noise(draw: random.Random) -> float:
    return logarithmic(draw, 0.3, 1e3)


def randomized_response(draw: random.Random) -> Mechanism:
    adversary = draw.choice(("strong", "weak"))
    return ShuffledRR(draw.choice((2, 4, 100)), crowd(draw), eps0=eps0(draw), adversary=adversary)


def cohort(draw: random.Random) -> Mechanism:
    mechanism = ShuffledLDP(eps0(draw), crowd(draw), analysis="stronger-clones")
    return Subsampled(mechanism, rate=logarithmic(draw, 1e-4, 1.0))


def summable(draw: random.Random) -> randomizers.LocalRandomizer:
    budget, k = logarithmic(draw, 0.1, 10.0), draw.choice((3, 4, 16, 100))
    return draw.choice(
        (
            lambda: randomizers.KRandomizedResponse(k=k, eps0=budget),
            lambda: randomizers.UnaryEncoding(k=k, eps0=budget, variant=draw.choice(("symmetric", "optimised"))),
            lambda: randomizers.HadamardResponse(k=k, eps0=budget),
            lambda: randomizers.Laplace(eps0=budget),
            lambda: randomizers.Gaussian(sigma=logarithmic(draw, 0.5, 5.0)),
        )
    )()


def named(draw: random.Random) -> randomizers.LocalRandomizer:
    budget, k = logarithmic(draw, 0.1, 10.0), draw.choice((3, 4, 16, 100))
    return draw.choice(
        (
            lambda: summable(draw),
            lambda: summable(draw),
            lambda: randomizers.SubsetSelection(k=k, eps0=budget, size=max(1, round(k / (1.0 + math.exp(budget))))),
            lambda: randomizers.LocalHashing(k=k, eps0=budget, buckets=min(k, 4)),
        )
    )()


def hidden(draw: random.Random) -> Mechanism:
    """Anything that a hidden cohort may send."""
    n = round(logarithmic(draw, 2, 1e7))
    inner = draw.choice((Shuffled(named(draw), n), CountedBits(n, eps0=logarithmic(draw, 0.1, 8.0))))
    if draw.random() < 0.5:
        return PoissonSampled(inner, rate=logarithmic(draw, 1e-4, 0.5))
    return Subsampled(inner, population=round(n * logarithmic(draw, 2.0, 1e4)))


def sticky(draw: random.Random) -> Mechanism:
    n = round(logarithmic(draw, 10, 1e6))
    return StickyCohort(ShuffledLDP(logarithmic(draw, 0.1, 6.0), n), draw.choice((1, 10, 100)), population=n * 100)


def batches(draw: random.Random) -> Mechanism:
    count, size = round(logarithmic(draw, 10, 1e4)), round(logarithmic(draw, 2, 1e3))
    return ShuffledBatches(logarithmic(draw, 0.5, 5.0), count, size, records=count * size + draw.choice((0, 1, 7)))


def noise_share(draw: random.Random) -> shares.Share:
    scale = logarithmic(draw, 0.5, 100.0)
    return draw.choice(
        (
            shares.Binomial(trials=round(4.0 * scale**2)),
            shares.Skellam(variance=scale**2),
            shares.DiscreteGaussian(sigma=scale),
            shares.DiscreteLaplace(scale=scale),
            shares.NegativeBinomial(shape=scale, p=0.1),
            shares.Poisson(mean=scale**2),
        )
    )


def many(draw: random.Random, most: float = 1e6) -> int:
    return round(logarithmic(draw, 2, most))


def ordinary_log(draw: random.Random) -> list[tuple[Mechanism, int]]:
    """A log as training systems write it: a hidden cohort of its own size in every round, maybe with dropouts."""
    budget, users, dropout = logarithmic(draw, 1.0, 9.0), crowd(draw), draw.choice((0.0, 0.1))
    population = round(users * logarithmic(draw, 1.0, 1e3))
    sizes = (max(2, round(users * draw.uniform(0.7, 1.0))) for _ in range(draw.choice((10, 100, 1_000))))
    return [(Subsampled(ShuffledLDP(budget, n), population=population, dropout=dropout), 1) for n in sizes]


KINDS: dict[str, Callable[[random.Random], Mechanism]] = {
    "tightest": lambda draw: ShuffledLDP(eps0(draw), crowd(draw)),
    "clones": lambda draw: ShuffledLDP(eps0(draw), crowd(draw), analysis="stronger-clones"),
    "randomized response": randomized_response,
    "cohort": cohort,
    "Gaussian": lambda draw: Gaussian(sigma=noise(draw)),
    "Laplace": lambda draw: Laplace(scale=noise(draw)),
    "Poisson": lambda draw: PoissonGaussian(noise(draw), logarithmic(draw, 1e-4, 1.0)),
}
#: With `--every-family`. Beyond a thousand rounds of these are no ordinary question.
MORE_KINDS: dict[str, Callable[[random.Random], Mechanism]] = {
    "named": lambda draw: Shuffled(named(draw), many(draw)),
    "bits": lambda draw: CountedBits(many(draw), eps0=logarithmic(draw, 0.1, 10.0), bits=draw.choice((1, 1, 2, 16))),
    "uneven bits": lambda draw: CountedBits(
        many(draw), one_if_one=draw.uniform(0.3, 0.9), one_if_zero=logarithmic(draw, 1e-3, 0.2)
    ),
    "hidden": hidden,
    "sticky": sticky,
    "epoch": lambda draw: Epoch(logarithmic(draw, 0.1, 6.0), many(draw)),
    "mixed budgets": lambda draw: MixedRR(
        draw.choice((2, 4)), draw.uniform(0.5, 6.0), ((draw.uniform(0.5, 4.0), many(draw, 1e5)), (2.0, many(draw, 1e5)))
    ),
    "allocation": lambda draw: RandomAllocation(Gaussian(sigma=logarithmic(draw, 0.5, 10.0)), many(draw, 1e5)),
    "batches": batches,
    "summed noise": lambda draw: SummedNoise(noise_share(draw), clients=many(draw, 1e4)),
    "summed reports": lambda draw: Summed(summable(draw), many(draw, 1e5)),
    "threshold": lambda draw: Threshold(rate=logarithmic(draw, 0.01, 0.5), least=round(logarithmic(draw, 5, 100))),
}


#: Answered first, so that no case pays for the loading of compiled code.
WARMING: list[list[tuple[Mechanism, int]]] = [
    [(ShuffledLDP(4.0, 1000), 10), (Gaussian(sigma=10.0), 1)],
    [(ShuffledLDP(4.0, 1000, analysis="stronger-clones"), 3)],
    [(ShuffledLDP(1.0, 10**10, analysis="stronger-clones"), 500)],
    [(Subsampled(ShuffledLDP(2.0, 1000, analysis="stronger-clones"), rate=0.1), 500)],
    [(ShuffledRR(4, 1000, eps0=1.0, adversary="weak"), 500)],
    [(ShuffledRR(100, 10**8, eps0=0.1, adversary="weak"), 1000)],
    [(Laplace(scale=3.0), 10), (PoissonGaussian(1.0, 0.01), 100)],
]


every_family = False


def case(seed: int, index: int) -> tuple[list[tuple[Mechanism, int]], float]:
    """The ledger and delta of one case: a function of the seed and the index."""
    draw = random.Random(f"{seed} {index}")
    if draw.random() < LOGS:
        return ordinary_log(draw), logarithmic(draw, 1e-100, 1e-3)
    if every_family and draw.random() < 0.7:
        kind = draw.choice(sorted(MORE_KINDS))
        return [(MORE_KINDS[kind](draw), round(logarithmic(draw, 1, 1e3)))], logarithmic(draw, 1e-100, 1e-3)
    kinds = draw.choices(sorted(KINDS), k=draw.choice((1, 2)))
    ledger = [(KINDS[kind](draw), round(logarithmic(draw, 1, 1e6))) for kind in kinds]
    return ledger, logarithmic(draw, 1e-100, 1e-3)


def answer(seed: int, index: int) -> harness.Row:
    """One question, answered in this process."""
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_S, LIMIT_S))
    ledger, delta = case(seed, index)
    accountant = Accountant()
    for mechanism, count in ledger:
        accountant.compose(mechanism, count)
    row: harness.Row = {
        "case": index,
        "rounds": " + ".join(f"{count} x {mechanism!r}" for mechanism, count in ledger),
        "delta": delta,
        "why": "",
    }
    start = time.process_time()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", AccuracyWarning)
        try:
            found = accountant.epsilon_bounds(delta)
            row |= {"lower": found.lower, "upper": found.upper}
        except MemoryError as error:
            row["why"] = f"MemoryError: {error}; "
    row["cpu_s"] = time.process_time() - start
    row["memory_mb"] = harness.peak_megabytes()
    row["why"] += "; ".join(str(warning.message).split(", but ")[-1] for warning in said)
    return row


def _child(sender: Any, seed: int, index: int) -> None:
    sender.send(answer(seed, index))


def isolated(seed: int, index: int) -> harness.Row:
    """`answer` in a fork of this process, which is warm."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(sender, seed, index))
    process.start()
    sender.close()
    try:
        row: harness.Row = receiver.recv()
    except EOFError:
        ledger, delta = case(seed, index)
        text = " + ".join(f"{count} x {mechanism!r}" for mechanism, count in ledger)
        row = {"case": index, "rounds": text, "delta": delta, "why": f"stopped after {LIMIT_S} s"}
        row |= {"cpu_s": float(LIMIT_S), "memory_mb": None}
    process.join()
    return row


def main() -> None:
    parser = harness.parser(__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=300, help="how many to draw")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("--slow", type=float, default=5.0, help="seconds from which to list a case")
    parser.add_argument("--every-family", action="store_true", help="every kind of mechanism (slow; other cases)")
    arguments = parser.parse_args()
    global every_family
    every_family = arguments.every_family  # processes are forked
    cases = min(arguments.cases, 30) if arguments.quick else arguments.cases
    for ledger in WARMING:
        accountant = Accountant()
        for mechanism, count in ledger:
            accountant.compose(mechanism, count)
        accountant.epsilon_bounds(1e-6)
    rows, listed = [], []
    for index in range(cases):
        row = isolated(arguments.seed, index)
        rows.append(row)
        large = row["memory_mb"] is not None and row["memory_mb"] > MEMORY_MB
        if row["why"] or row["cpu_s"] > arguments.slow or large:
            listed.append(row)
            print(row, flush=True)
    times = sorted(row["cpu_s"] for row in rows)
    middle, most, nearly_all = (times[int(share * (cases - 1))] for share in (0.5, 0.9, 0.99))
    print(f"{len(listed)} of {cases} cases listed; processor time: median {middle:.2g} s,", end=" ")
    print(f"90 % within {most:.2g} s, 99 % within {nearly_all:.2g} s, longest {times[-1]:.2g} s")
    if not every_family:
        harness.save(arguments, "plausible_inputs", {"rows": rows, "seed": arguments.seed})
    print(harness.table(listed, ["case", "cpu_s", "memory_mb", "delta", "rounds", "why"]))


if __name__ == "__main__":
    main()
