"""Sums, thresholds and dummies: how wide certified brackets are, and how long they take, cell by cell.

Every family at n in {10, 100, 10^4, 10^6} clients, {1, 10, 1000} rounds and delta in {1e-5, 1e-9, 1e-50}: epsilon's
certified bracket at rtol = 1e-4, its relative width, processor seconds. Shares are sized so that the total has a
standard deviation of about 30, or more where a share cannot be as small. A cell that takes more than LIMIT processor
seconds is given up and says so.

The second table asks dp_accounting the same where it can: discrete Laplace and discrete Gaussian noise of one party.
Its answers are upper ends at a grid step; what is compared is how far they lie above our lower end, and our width. Its
grid has all losses of discrete Laplace noise of scale 25 on it, and none of scale 24.3.

    python benchmarks/sums.py [--quick] [--family NAME]
"""

from __future__ import annotations

import math
import signal
import warnings
from collections.abc import Callable
from types import FrameType

import harness

from pld_shuffle import Accountant, Mechanism, Summed, SummedNoise, Threshold
from pld_shuffle.mechanisms import DummyReports
from pld_shuffle.randomizers import KRandomizedResponse, Laplace, UnaryEncoding
from pld_shuffle.shares import Binomial, DiscreteGaussian, DiscreteLaplace, NegativeBinomial, Poisson, Share, Skellam

RTOL, LIMIT = 1e-4, 10
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
    "Threshold with dummies": lambda n: Threshold(rate=0.5, least=20, dummies=Poisson(1_000.0 / n), senders=n),
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


def main() -> None:
    parser = harness.parser(__doc__ or "")
    parser.add_argument("--family", help="only families whose name has this in it")
    arguments = parser.parse_args()
    signal.signal(signal.SIGPROF, alarm)
    clients, rounds, deltas = (CLIENTS, ROUNDS, DELTAS) if not arguments.quick else ((100,), (1, 10), (1e-5,))
    everything, shown = {}, []
    for name, make in FAMILIES.items():
        if arguments.family and arguments.family not in name:
            continue
        cells = [cell(make, n, count, delta) for n in clients for count in rounds for delta in deltas]
        everything[name] = cells
        shown += (rows := summary(name, cells))
        print("\n".join(harness.table(rows, list(rows[0])).splitlines()[2 if len(shown) > 3 else 0 :]), flush=True)
    raced = against_peer()
    if raced:
        print("\n" + harness.table(raced, list(raced[0])))
    harness.save(
        arguments, "sums", {"rtol": RTOL, "limit": LIMIT, "cells": everything, "summary": shown, "peer": raced}
    )


if __name__ == "__main__":
    main()
