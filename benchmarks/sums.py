"""Sums, thresholds and dummies: how wide certified brackets are, and how long they take, cell by cell.

Every family at n in {10, 100, 10^4, 10^6} clients, {1, 10, 1000} rounds and delta in {1e-5, 1e-9, 1e-50}: epsilon's
certified bracket at rtol = 1e-4, its relative width, processor seconds. Shares are sized so that the total has a
standard deviation of about 30, or more where a share cannot be as small. A cell that takes more than LIMIT processor
seconds is given up and says so.

The second table asks dp_accounting the same where it can: discrete Laplace and discrete Gaussian noise of one party.
Its answers are upper ends at a grid step; what is compared is how far they lie above our lower end, and our width. Its
grid has all losses of discrete Laplace noise of scale 25 on it, and none of scale 24.3.

The third table asks how many dummies a histogram of 16 values among 10^5 users needs at delta = 1e-6, by the papers'
own rules and by the accountant, with the exact root mean squared error of a bin for each:

* balls into bins (Luo, Wang, Yi 2022), dummies a bin: the least mu, X, Y ~ Bin(n, mu/n), with P[X >= e^eps Y - 1] <=
  delta, which their published program searches for;
* pureDUMP and mixDUMP (Li et al. 2023): as many uniformly random messages as Balle et al. 2019, Theorem 1, asks for,
  max(14 k log(2/delta)/eps^2, 27 k/eps), proved for eps <= 1 only, so there is none for eps = 2; in mixDUMP users
  answer at random with probability .002 themselves;
* fake users (Cheu, Zhilyaev 2022, Claim 3.2), F of them a user, their bits flipped with probability f: f (1 - f) =
  33/(5 n F) ((e^eps+1)/(e^eps-1))^2 log(4/delta).

    python benchmarks/sums.py [--quick] [--family NAME]

A family's cells take the place of those that are stored. Where n does not matter it is asked once.
"""

from __future__ import annotations

import json
import math
import signal
import warnings
from collections.abc import Callable
from types import FrameType

import harness
import numpy as np

from pld_shuffle import Accountant, Mechanism, Summed, SummedNoise, Threshold
from pld_shuffle.mechanisms import DummyReports
from pld_shuffle.numerics.compiled import warm_up
from pld_shuffle.protocols import BallsIntoBins, FakeUsers, MixDUMP
from pld_shuffle.randomizers import KRandomizedResponse, Laplace, UnaryEncoding
from pld_shuffle.shares import Binomial, DiscreteGaussian, DiscreteLaplace, NegativeBinomial, Poisson, Share, Skellam

RTOL, LIMIT = 1e-4, 60
CLIENTS, ROUNDS, DELTAS = (10, 100, 10**4, 10**6), (1, 10, 1000), (1e-5, 1e-9, 1e-50)


def noisy(share: Callable[[int], Share]) -> Callable[[int], Mechanism]:
    return lambda n: SummedNoise(share(n), n)


FAMILIES: dict[str, Callable[[int], Mechanism]] = {
    "Binomial, p = 1/2": noisy(lambda n: Binomial(max(1, 4_000 // n))),
    "Binomial, p = 1/4": noisy(lambda n: Binomial(max(1, 4_000 // n), 0.25)),
    "Skellam": noisy(lambda n: Skellam(1_000.0 / n)),
    "DiscreteGaussian": noisy(lambda n: DiscreteGaussian(max(0.4, 30.0 / math.sqrt(n)))),
    "DiscreteLaplace": noisy(lambda n: DiscreteLaplace(max(0.5, 25.0 / math.sqrt(n)))),
    "Poisson": noisy(lambda n: Poisson(1_000.0 / n)),
    "NegativeBinomial, two-sided": noisy(lambda n: NegativeBinomial(1.0 / n, 0.04, two_sided=True)),
    "NegativeBinomial": noisy(lambda n: NegativeBinomial(100.0 / n, 0.1)),
    "Summed k-RR, k = 16, eps0 = 4": lambda n: Summed(KRandomizedResponse(k=16, eps0=4.0), n),
    "Summed bits, k = 16, eps0 = 4": lambda n: Summed(UnaryEncoding(k=16, eps0=4.0), n),
    "Summed Laplace, eps0 = 2": lambda n: Summed(Laplace(eps0=2.0), n),
    "Threshold, rate .105, 20": lambda n: Threshold(rate=0.105, least=20),
    "Threshold, one bin": lambda n: Threshold(rate=0.105, least=20, neighbours="add-or-remove-one"),
    "Threshold with dummies": lambda n: Threshold(rate=0.5, least=100, dummies=Poisson(100.0)),
    "DummyReports, k = 16, 1 a user": lambda n: DummyReports(k=16, n=n, dummies=1.0),
}


class TooSlow(Exception):
    """A cell has taken longer than LIMIT."""


def alarm(number: int, frame: FrameType | None) -> None:
    raise TooSlow


def cell(make: Callable[[int], Mechanism], n: int, rounds: int, delta: float) -> harness.Row:
    """One bracket; a width of 0 where both ends are infinite, None where it took too long."""

    def asked() -> harness.Any:
        return Accountant(RTOL).compose(make(n), rounds).epsilon_bounds(delta)

    row: harness.Row = {"n": n, "rounds": rounds, "delta": delta}
    signal.setitimer(signal.ITIMER_PROF, LIMIT)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the width says it
            timing = harness.measure(asked, warmup=0, repeats=1)
    except TooSlow:
        return row | {"cpu_s": math.inf}
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
    low, high = (float(end) for end in timing.value)
    width = 0.0 if low == high else (high / low - 1.0 if low > 0.0 else math.inf)
    return row | {"lower": low, "upper": high, "width": width, "cpu_s": timing.cpu}


def summary(name: str, cells: list[harness.Row]) -> list[harness.Row]:
    """A row for every number of rounds: how many cells are within RTOL, the widest and the slowest."""
    rows = []
    for rounds in dict.fromkeys(one["rounds"] for one in cells):
        here = [one for one in cells if one["rounds"] == rounds]
        known = [one for one in here if "width" in one]
        rows.append({
            "family": name, "rounds": rounds, "cells": len(here),
            "within 1e-4": sum(one["width"] <= RTOL for one in known),
            "widest": max((one["width"] for one in known), default=math.inf),
            "median s": sorted(one["cpu_s"] for one in here)[len(here) // 2],
            "slowest s": max(one["cpu_s"] for one in here),
        })  # fmt: skip
    return rows


def race(name: str, ours: Share, theirs: Callable[[float], harness.Any], rounds: int) -> list[harness.Row]:
    """A row for every grid of dp_accounting: its epsilon at 1e-6 over the certified upper end, seconds, and ours."""

    def proved() -> harness.Any:
        return Accountant(1e-3).compose(SummedNoise(ours, 1), rounds).epsilon_bounds(1e-6)

    timing = harness.measure(proved, warmup=1, repeats=5)
    low, high = timing.value
    rows = []
    for step in (1e-3, 1e-4, 1e-5):
        peer = harness.measure(
            lambda step=step: theirs(step).self_compose(rounds).get_epsilon_for_delta(1e-6), warmup=0, repeats=1
        )
        rows.append({
            "noise": name, "rounds": rounds, "upper": high, "width": high / low - 1.0, "ms": 1e3 * timing.cpu,
            "grid": step, "peer": peer.value, "above": peer.value / low - 1.0, "peer_ms": 1e3 * peer.cpu,
        })  # fmt: skip
    return rows


def against_peer() -> list[harness.Row]:
    """Empty, and says so, where dp_accounting is not installed."""
    try:
        from dp_accounting.pld import privacy_loss_distribution as peer
    except ImportError:
        print("dp_accounting is not installed")
        return []

    def laplace(scale: float) -> Callable[[float], harness.Any]:
        return lambda step: peer.from_discrete_laplace_mechanism(1 / scale, value_discretization_interval=step)

    def gaussian(step: float) -> harness.Any:
        return peer.from_discrete_gaussian_mechanism(30.0, value_discretization_interval=step)

    rows = []
    for rounds in (1, 10, 1000):
        for scale in (25.0, 24.3):
            rows += race(f"DiscreteLaplace({scale:g})", DiscreteLaplace(scale), laplace(scale), rounds)
        rows += race("DiscreteGaussian(30)", DiscreteGaussian(30.0), gaussian, rounds)
    return rows


def rule_of_bins(n: int, epsilon: float, delta: float) -> float:
    """mu of Luo, Wang, Yi, to a tenth as in their program."""
    from scipy.stats import binom

    def fails(mu: float) -> bool:
        y = np.arange(int(mu + 12.0 * math.sqrt(mu) + 60.0))
        x = np.maximum(np.ceil(math.exp(epsilon) * y - 1.0), 0.0)
        return float(binom.pmf(y, n, mu / n) @ binom.sf(x - 1.0, n, mu / n)) > delta

    low, high = 0.0, 1.0
    while fails(high):
        low, high = high, 2.0 * high
    while high - low > 0.1:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if fails(middle) else (low, middle)
    return high


def dummies(n: int = 10**5, k: int = 16, delta: float = 1e-6) -> list[harness.Row]:
    """By paper and by accountant: the parameter, and the error of one bin."""
    rows = []
    for epsilon in (0.25, 0.5, 1.0, 2.0):
        random = max(14.0 * k * math.log(2.0 / delta) / epsilon**2, 27.0 * k / epsilon)
        squared = ((math.exp(epsilon) + 1.0) / math.expm1(epsilon)) ** 2
        flips = 33.0 / (5.0 * n) * squared * math.log(4.0 / delta)
        design = {"n": n, "k": k}
        for name, kind, more, parameter, scale, paper in (
            ("balls into bins", BallsIntoBins, {}, "dummies", n / k, k / n * rule_of_bins(n, epsilon, delta)),
            ("pureDUMP", BallsIntoBins, {}, "dummies", n / k, random / n),
            ("mixDUMP, gamma .002", MixDUMP, {"gamma": 0.002}, "dummies", n / k, max(random / n - 0.002, 1e-6)),
            ("fake users, 1 a user", FakeUsers, {"fakes": 1}, "flip", 1.0, 0.5 - math.sqrt(0.25 - flips)),
        ):
            if "DUMP" in name and epsilon > 1.0:
                continue
            theirs = kind(**design, **more, **{parameter: paper})
            ours = kind.from_budget(epsilon, delta, **design, **more)
            error = [math.sqrt(one.expected_error().exact) for one in (theirs, ours)]
            spent = theirs.accountant().get_epsilon(delta)
            rows.append({
                "protocol": name, "epsilon": epsilon, "parameter": "dummies a bin" if scale > 1.0 else "f",
                "paper": scale * paper, "accountant": scale * getattr(ours, parameter), "paper's error": error[0],
                "error": error[1], "paper's epsilon": spent,
            })  # fmt: skip
    return rows


def main() -> None:
    parser = harness.parser(__doc__ or "")
    parser.add_argument("--family", help="only families whose name has this in it; 'race' or 'dummies': that table")
    arguments = parser.parse_args()
    warm_up()
    signal.signal(signal.SIGPROF, alarm)
    clients, rounds, deltas = (CLIENTS, ROUNDS, DELTAS) if not arguments.quick else ((100,), (1, 10), (1e-5,))
    wanted, stored = arguments.family or "", arguments.output / f"sums{'-quick' * arguments.quick}.json"
    content = json.loads(stored.read_text(encoding="utf-8")) if wanted and stored.exists() else {"cells": {}}
    for name, make in FAMILIES.items():
        if wanted not in name:
            continue
        distinct = [n for n in clients if n == clients[0] or make(n) != make(clients[0])]
        cells = [cell(make, n, count, delta) for n in distinct for count in rounds for delta in deltas]
        content["cells"][name] = cells
        rows = summary(name, cells)
        print(harness.table(rows, list(rows[0])), flush=True)
    for name, table in (("race", against_peer), ("dummies", dummies)):
        if wanted in ("", name) and (found := table()):
            content[name] = found
            print("\n" + harness.table(found, list(found[0])))
    content |= {"rtol": RTOL, "limit": LIMIT, "machine": harness.machine()}
    harness.save(arguments, "sums", content)


if __name__ == "__main__":
    main()
