"""What it costs to choose as one goes: filters and odometers against the accountant of a fixed list of rounds.

Four tables.

* *strategies*: random adaptive strategies on small models, all histories of each enumerated (the
  strongest ones: tests/test_filter.py): how many spend more than the budget, and the share of it that the worst spends.
* *price*: for runs of the README and its neighbourhood the smallest epsilon of a filter that admits the whole run,
  relative to that of the accountant (1.00 would be free): paid with Gaussian noise (`composition.exchange`), and with
  Renyi divergences of the best order for that run. delta = 1e-6.
* *odometer*: epsilon shown when one stops early, relative to the accountant's there; orders for the whole training run.
* *speed*: processor seconds of 10^5 rounds of one filter, with prices cached, and of 1,000 rounds of 10^6 users.

    python benchmarks/adaptive.py [--quick]
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import harness
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import test_filter

from pld_shuffle import (
    Accountant,
    Gaussian,
    IndividualFilter,
    Laplace,
    Mechanism,
    PoissonGaussian,
    PrivacyFilter,
    PrivacyOdometer,
    RenyiAccountant,
    Shuffled,
    ShuffledLDP,
    Subsampled,
)
from pld_shuffle.randomizers import BinaryRandomizedResponse, UnaryEncoding
from pld_shuffle.trainlog import SAMPLE, training_log

DELTA = 1e-6
Run = list[tuple[Mechanism, int]]

TRAINING = Subsampled(ShuffledLDP(eps0=6.3, n=5_000), population=1_000_000)
RUNS: dict[str, Run] = {
    "training run (README)": [(TRAINING, 2_000)],
    "one bit, eps0 = 8 (README)": [(Shuffled(BinaryRandomizedResponse(8.0), 100_000), 1)],
    "three mechanisms (README)": [
        (ShuffledLDP(eps0=4.0, n=10_000), 10),
        (Shuffled(UnaryEncoding(k=16, eps0=2.0), n=20_000), 1),
        (Subsampled(ShuffledLDP(eps0=3.0, n=1_000), population=100_000), 500),
    ],
    "loop to epsilon = 1 (README)": [(ShuffledLDP(eps0=2.0, n=10_000), 64)],
    "shuffled and central noise": [
        (ShuffledLDP(eps0=4.0, n=10_000), 10), (Gaussian(sigma=20.0, sensitivity=2.0), 5),
    ],
    "ten rounds, eps0 = 6, n = 10,000": [(ShuffledLDP(eps0=6.0, n=10_000), 10)],
    "ten rounds, eps0 = 2, n = 100": [(ShuffledLDP(eps0=2.0, n=100), 10)],
    "100 times Laplace noise of scale 10": [(Laplace(scale=10.0), 100)],
    "3 times Laplace noise of scale 1": [(Laplace(scale=1.0), 3)],
    "1,000 steps of DP-SGD, sigma = 1": [(PoissonGaussian(sigma=1.0, rate=0.01), 1_000)],
}  # fmt: skip


def accounted(run: Run, kind: type[Accountant] | type[RenyiAccountant] = Accountant) -> float:
    found = kind()
    for mechanism, count in run:
        found.compose(mechanism, count)
    return found.get_epsilon(DELTA)


def price(name: str, run: Run) -> harness.Row:
    plain = accounted(run)
    timing = harness.measure(lambda: PrivacyFilter.least_epsilon(run, DELTA), warmup=0, repeats=1)
    few = len(run) <= 20  # for many mechanisms their divergences take minutes
    renyi = accounted(run, RenyiAccountant) / plain if few else math.inf
    noise = timing.value / plain
    return {
        "run": name, "epsilon": plain, "noise": noise,
        "renyi": renyi if math.isfinite(renyi) else None, "filter": min(noise, renyi),
        "search_cpu_s": timing.cpu,
    }  # fmt: skip


def random_strategies(
    run: PrivacyFilter, choices: list[tuple[Mechanism, test_filter.Masses]], depth: int, number: int
) -> np.ndarray:
    """delta at the filter's epsilon of random strategies, shape (number,).

    A strategy says after every history of outcomes which of `choices` is next, or that it stops. A choice that is not
    admitted stops. All histories of all strategies are enumerated.
    """
    rng = np.random.default_rng(7)
    width = max(len(masses) for _, masses in choices)
    stop = len(choices)
    p, loss = np.zeros((stop + 1, width)), np.zeros((stop + 1, width))
    p[stop, 0] = 1.0  # nothing happens
    for i, (_, masses) in enumerate(choices):
        p[i, : len(masses)] = [first for first, _ in masses]
        loss[i, : len(masses)] = [math.log(first / second) for first, second in masses]
    lefts = [run._left]
    following = np.empty((0, stop + 1), np.int64)
    while following.shape[0] < len(lefts) and len(lefts) < 10**6:
        here = following.shape[0]
        row = []
        for mechanism, _ in choices:
            after = run._budget.after(mechanism.pair, lefts[here])
            row.append(len(lefts) if after >= 0.0 else -1)
            if after >= 0.0:
                lefts.append(after)
        following = np.vstack([following, [*row, here]])
        if here > sum(stop**d for d in range(depth + 1)):
            break
    found = []
    for _ in range(0, number, 2_000):
        state = np.zeros((2_000, 1), np.int64)
        mass, total, ended = np.ones((2_000, 1)), np.zeros((2_000, 1)), np.zeros((2_000, 1), bool)
        for _ in range(depth):
            choice = rng.choice(stop + 1, state.shape, p=[0.95 / stop] * stop + [0.05])
            choice[ended] = stop
            after = following[state, choice]
            choice[after < 0] = stop
            ended = choice == stop
            state = following[state, choice]
            mass = (mass[..., None] * p[choice]).reshape(2_000, -1)
            total = (total[..., None] + loss[choice]).reshape(2_000, -1)
            state, ended = (np.repeat(one, width, axis=1) for one in (state, ended))
        found.append(np.sum(mass * np.maximum(0.0, -np.expm1(run.epsilon - total)), axis=1))
    return np.concatenate(found)


ORDERS = [None, 5.0, math.inf]


def small_filter(order: float | None) -> tuple[PrivacyFilter, list[tuple[Mechanism, test_filter.Masses]]]:
    """A filter of about five rounds of coins, and of three outcomes in either order."""
    choices: list[tuple[Mechanism, test_filter.Masses]] = [
        (test_filter.coin(eps), [(p, 1.0 - p), (1.0 - p, p)])
        for eps, p in ((eps, 1.0 / (1.0 + math.exp(-eps))) for eps in (0.15, 0.25))
    ]
    turned = [(second, first) for first, second in test_filter.THREE]
    choices += [
        (test_filter.outcomes(test_filter.THREE), test_filter.THREE),
        (test_filter.outcomes(test_filter.THREE), turned),
    ]
    return PrivacyFilter(0.6 if order else 0.4, 0.1 if order else 0.05, order=order), choices


def strategies(number: int) -> list[harness.Row]:
    rows = []
    for order in ORDERS:
        run, choices = small_filter(order)
        spent = random_strategies(run, choices, depth=5, number=number)
        rows.append({
            "paid with": "Gaussian noise" if order is None else f"order {order:g}", "strategies": spent.size,
            "above budget": int(np.sum(spent > run.delta)), "largest share": float(spent.max() / run.delta),
        })  # fmt: skip
    return rows


def odometers() -> list[harness.Row]:
    ways = {
        f"{count} orders": PrivacyOdometer.planned([(TRAINING, 2_000)], DELTA, orders=count) for count in (1, 2, 3, 5)
    }
    rows = []
    before = 0
    for stop in (8, 32, 125, 500, 1_000, 2_000):
        plain = accounted([(TRAINING, stop)])
        row: harness.Row = {"stopped_after": stop, "epsilon": plain}
        for name, way in ways.items():
            row[name] = way.compose(TRAINING, stop - before).get_epsilon() / plain
        before = stop
        rows.append(row)
    return rows


def many_rounds(rounds: int) -> None:
    step = Subsampled(ShuffledLDP(eps0=2.0, n=1_000), population=10_000_000)
    run = PrivacyFilter(epsilon=1.0, delta=DELTA)
    for _ in range(rounds):
        run.compose(step)


def many_users(rounds: int, cohort: int | None) -> None:
    """A million users; each round asks a random cohort, or everybody."""
    run = IndividualFilter(np.ones(10**6), DELTA)
    rng = np.random.default_rng(1)
    for _ in range(rounds):
        run.compose(TRAINING, None if cohort is None else rng.choice(10**6, cohort, replace=False, shuffle=False))


def main() -> None:
    arguments = harness.options(__doc__ or "")
    names = list(RUNS)[2:4] if arguments.quick else list(RUNS)
    runs = {name: RUNS[name] for name in names}
    if not arguments.quick:
        runs["sample log, 200 cohorts (README)"] = list(training_log(SAMPLE).rounds)
    columns = ["run", "epsilon", "noise", "renyi", "filter", "search_cpu_s"]
    prices = []
    for name, run in runs.items():
        prices.append(price(name, run))
        print(harness.table(prices[-1:], columns).splitlines()[-1], flush=True)
    print("\n" + harness.table(prices, columns))
    played = strategies(2_000 if arguments.quick else 100_000)
    print("\n" + harness.table(played, list(played[0])))
    shown = odometers()
    print("\n" + harness.table(shown, list(shown[0])))
    scale = 10 if arguments.quick else 1
    speed = []
    for what, function in (
        (f"{100_000 // scale:,} rounds of one filter", lambda: many_rounds(100_000 // scale)),
        (f"{1_000 // scale:,} rounds of 1,000,000 users", lambda: many_users(1_000 // scale, None)),
    ):
        timing = harness.measure(function, warmup=0, repeats=1)
        speed.append({"what": what, "cpu_s": timing.cpu, "wall_s": timing.wall})
    print("\n" + harness.table(speed, ["what", "cpu_s", "wall_s"]))
    harness.save(arguments, "adaptive", {"strategies": played, "price": prices, "odometer": shown, "speed": speed})


if __name__ == "__main__":
    main()
