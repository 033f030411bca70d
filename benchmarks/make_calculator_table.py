"""Writes the table that the calculator of the documentation looks up.

    python benchmarks/make_calculator_table.py              docs/_static/calculator_table.js
    python benchmarks/make_calculator_table.py --analysis clones --output other.js

For every local budget, number of users and participation rate of a grid, one accountant answers all
rounds and deltas. Stored are both ends, rounded outwards to four digits, and beside them what an
accountant with exact Renyi divergences of the same pairs says. Twenty minutes on two busy cores.
"""

from __future__ import annotations

import argparse
import decimal
import itertools
import json
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import pld_shuffle
from pld_shuffle import Accountant, AccuracyWarning, RenyiAccountant, ShuffledLDP, Subsampled
from pld_shuffle.bounds import rdp_to_epsilon

TARGET = Path(__file__).resolve().parent.parent / "docs" / "_static" / "calculator_table.js"

# Round numbers, because people ask for them: they are looked up without loss.
EPS0 = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0]
USERS = [m * 10**k for k in range(2, 6) for m in (1, 2, 5)] + [10**6]
RATES = [0.001, 0.005, 0.01, 0.05, 0.1, 1.0]
ROUNDS = [m * 10**k for k in range(4) for m in (1, 2, 5)] + [10**4]
DELTAS = [1e-8, 1e-6, 1e-5]
ORDERS = 1.0 + np.logspace(-1.3, 3.3, 24)
RTOL = 1e-2
DIGITS = 4


def outwards(value: float, up: bool) -> float:
    """The next number of DIGITS digits, above or below."""
    if value == 0.0:
        return 0.0
    context = decimal.Context(DIGITS, decimal.ROUND_CEILING if up else decimal.ROUND_FLOOR)
    rounded = float(context.create_decimal_from_float(value))
    # The double next to a decimal may be on its other side.
    return max(rounded, value) if up else min(rounded, value)


def answers(case: tuple[float, int, float, str | None]) -> dict[str, list[float]]:
    """Epsilon by method, with delta changing fastest and the rounds outside."""
    eps0, n, rate, analysis = case
    whole = ShuffledLDP(eps0, n) if analysis is None else ShuffledLDP(eps0, n, analysis=analysis)
    mechanism = whole if rate == 1.0 else Subsampled(whole, rate=rate)
    divergences = np.asarray(RenyiAccountant().compose(mechanism).get_rdp(ORDERS))
    found: dict[str, list[float]] = {"upper": [], "lower": [], "renyi": []}
    for rounds in ROUNDS:
        most = rounds * eps0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AccuracyWarning)  # wide brackets are brackets
            bounds = Accountant(RTOL).compose(mechanism, rounds).epsilon_bounds(DELTAS)
        found["upper"] += [outwards(min(float(x), most), up=True) for x in bounds.upper]
        found["lower"] += [outwards(float(x), up=False) for x in bounds.lower]
        for delta in DELTAS:
            renyi = rdp_to_epsilon(orders=ORDERS, rdp=rounds * divergences, delta=delta).epsilon
            found["renyi"].append(outwards(min(renyi, most), up=True))
    return found


def table(analysis: str | None, workers: int) -> dict[str, Any]:
    """The table: axes, and values with the last axis (delta) changing fastest."""
    cases = [(*case, analysis) for case in itertools.product(EPS0, USERS, RATES)]
    begin = time.time()
    with ProcessPoolExecutor(workers) as pool:
        found = list(pool.map(answers, cases, chunksize=4))
    print(f"{len(cases)} mechanisms in {time.time() - begin:.0f} s")
    return {
        "version": pld_shuffle.__version__,
        "analysis": analysis or ShuffledLDP(1.0, 100).analysis,
        "axes": {"eps0": EPS0, "n": USERS, "rate": RATES, "rounds": ROUNDS, "delta": DELTAS},
        "epsilon": {
            name: [value for values in found for value in values[name]] for name in found[0]
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--analysis", help="of ShuffledLDP; its default if not given")
    parser.add_argument("--output", type=Path, default=TARGET)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    arguments.output.touch()  # fails now rather than in ten minutes
    found = json.dumps(table(arguments.analysis, arguments.workers), separators=(",", ":"))
    # A script and not a JSON file: a page opened from disk may load one, but not the other.
    arguments.output.write_text(f"const CALCULATOR_TABLE = {found};\n", encoding="utf-8")
    print(f"{arguments.output}: {arguments.output.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
