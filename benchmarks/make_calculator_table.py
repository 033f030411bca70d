"""Writes the table that the calculator of the documentation looks up.

    python benchmarks/make_calculator_table.py              docs/_static/calculator_table.js
    python benchmarks/make_calculator_table.py --analysis clones --output other.js
    python benchmarks/make_calculator_table.py --keep       compute only the eps0 that the file has not

For every local budget, number of users and participation rate of a grid, one accountant answers all
rounds and deltas. Stored are upper ends, rounded up to four digits, and in thousandths of them (of LEAST, if
they are smaller), rounded outwards, the lower ends and what an accountant with exact Renyi divergences of the
same pairs says.
Twenty minutes on two busy cores.
"""

from __future__ import annotations

import argparse
import decimal
import itertools
import json
import math
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from pld_shuffle import Accountant, AccuracyWarning, RenyiAccountant, ShuffledLDP, Subsampled
from pld_shuffle.bounds import rdp_to_epsilon

TARGET = Path(__file__).resolve().parent.parent / "docs" / "_static" / "calculator_table.js"

# Round numbers, because people ask for them: they are looked up without loss.
EPS0 = [0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0]
USERS = [m * 10**k for k in range(2, 6) for m in (1, 2, 5)] + [10**6]
RATES = [0.001, 0.005, 0.01, 0.05, 0.1, 1.0]
ROUNDS = [m * 10**k for k in range(4) for m in (1, 2, 5)] + [10**4]
DELTAS = [1e-8, 1e-6, 1e-5]
ORDERS = 1.0 + np.logspace(-1.3, 3.3, 24)
RTOL = 1e-2
DIGITS = 4
LEAST = 1e-6


def rounded_up(value: float) -> float:
    """The next number of DIGITS digits above."""
    if value == 0.0:
        return 0.0
    context = decimal.Context(DIGITS, decimal.ROUND_CEILING)
    # The double next to a decimal may be on its other side.
    return max(float(context.create_decimal_from_float(value)), value)


def thousandths(value: float, upper: float, up: bool) -> int:
    """`value` in thousandths of `upper`, rounded up or down, the rounding of their product included."""
    share = 1000.0 * value / max(upper, LEAST)
    return math.ceil(share * (1 + 1e-12)) if up else math.floor(share * (1 - 1e-12))


def answers(case: tuple[float, int, float, str]) -> dict[str, list[float]]:
    """Epsilon by method, with delta changing fastest and the rounds outside."""
    eps0, n, rate, analysis = case
    whole = ShuffledLDP(eps0, n, analysis=analysis)
    mechanism = whole if rate == 1.0 else Subsampled(whole, rate=rate)
    divergences = np.asarray(RenyiAccountant().compose(mechanism).get_rdp(ORDERS))
    found: dict[str, list[float]] = {"upper": [], "lower": [], "renyi": []}
    for rounds in ROUNDS:
        most = rounds * eps0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AccuracyWarning)  # wide brackets are brackets
            bounds = Accountant(RTOL).compose(mechanism, rounds).epsilon_bounds(DELTAS)
        for delta, low, high in zip(DELTAS, bounds.lower, bounds.upper, strict=True):
            renyi = rdp_to_epsilon(orders=ORDERS, rdp=rounds * divergences, delta=delta).epsilon
            upper = rounded_up(min(float(high), most))
            found["upper"].append(upper)
            found["lower"].append(thousandths(float(low), upper, up=False))
            found["renyi"].append(thousandths(min(renyi, most), upper, up=True))
    return found


def table(analysis: str, workers: int, old: dict[str, Any] | None) -> dict[str, Any]:
    """The table: axes, and values with the last axis (delta) changing fastest; `old` has what is kept."""
    axes = {"eps0": EPS0, "n": USERS, "rate": RATES, "rounds": ROUNDS, "delta": DELTAS}
    kept: dict[float, dict[str, list[float]]] = {}
    if old is not None:
        if old["analysis"] != analysis or old["axes"] | {"eps0": EPS0} != axes:
            raise ValueError(f"the table must be of analysis {analysis} and on this grid to be kept")
        size = math.prod(len(axis) for axis in axes.values()) // len(EPS0)
        for i, eps0 in enumerate(old["axes"]["eps0"]):
            part = slice(i * size, (i + 1) * size)
            kept[eps0] = {name: values[part] for name, values in old["epsilon"].items()}
    begin = time.time()
    with ProcessPoolExecutor(workers) as pool:
        for eps0 in EPS0:
            if eps0 not in kept:
                cases = [(eps0, *case, analysis) for case in itertools.product(USERS, RATES)]
                found = list(pool.map(answers, cases, chunksize=4))
                kept[eps0] = {name: [x for row in found for x in row[name]] for name in found[0]}
                print(f"eps0 = {eps0:g} after {time.time() - begin:.0f} s", flush=True)
    return {
        "analysis": analysis,
        "axes": axes,
        "epsilon": {name: [x for e in EPS0 for x in kept[e][name]] for name in kept[EPS0[0]]},
    }


def read(path: Path) -> dict[str, Any]:
    text = path.read_text(encoding="utf-8")
    return json.loads(text[text.index("{") : text.rindex("}") + 1])  # type: ignore[no-any-return]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--analysis", default=ShuffledLDP(1.0, 100).analysis, help="of ShuffledLDP")
    parser.add_argument("--output", type=Path, default=TARGET)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--keep", action="store_true", help="keep what the output file has")
    arguments = parser.parse_args()
    old = read(arguments.output) if arguments.keep else None
    arguments.output.touch()  # fails now rather than in ten minutes
    found = json.dumps(table(arguments.analysis, arguments.workers, old), separators=(",", ":"))
    # A script and not a JSON file: a page opened from disk may load one, but not the other.
    arguments.output.write_text(f"const CALCULATOR_TABLE = {found};\n", encoding="utf-8")
    print(f"{arguments.output}: {arguments.output.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
