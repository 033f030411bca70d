"""What a constant of `pld_shuffle.numerics.tuning` trades: time and width, for values around the one it has.

Each value is set in a process of its own, before anything that reads it is imported, with an empty cache of compiled
loops (numba does not see that a constant of another file has changed). The process answers a fixed list of questions of
all kinds twice; printed are the processor seconds of the second time, how much the upper ends of epsilon are larger
than with the value that stands (the largest and the mean, relative), and the widest bracket. Every answer is certified
whatever the value; should a lower end lie above another value's upper end, the script says so and fails.

    python benchmarks/fit_tuning.py SLOT_WORK[3]               # times 1/2, 1, 2
    python benchmarks/fit_tuning.py CURVE[7] --factors .8 .9 1 1.1 1.2
    python benchmarks/fit_tuning.py --list
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile

import harness

QUESTIONS = (
    ("ShuffledLDP(1.0, 10_000)", 1), ("ShuffledLDP(4.0, 100_000)", 1), ("ShuffledLDP(0.5, 101)", 10),
    ("Subsampled(ShuffledLDP(2.0, 1_000), population=100_000)", 100),
    ("PoissonSampled(ShuffledLDP(1.0, 10_000), rate=0.1)", 10),
    ("Shuffled(KRandomizedResponse(k=5, eps0=2.0), 1_000)", 1),
    ("Shuffled(BinaryRandomizedResponse(1.0), 1_000)", 64),
    ("Shuffled(Laplace(eps0=1.0), 1_000)", 1), ("Shuffled(Laplace(eps0=4.0), 10_000)", 10),
)  # fmt: skip
#: Answers {name: [seconds, [[lower, upper], ...]]} on standard output.
ASKED = """
import json, sys, time
from pld_shuffle.numerics import tuning
name, index, factor = json.loads(sys.argv[1])
value = getattr(tuning, name)
if index is None:
    value = type(value)(value * factor)
else:
    value = (*value[:index], type(value[index])(value[index] * factor), *value[index + 1:])
setattr(tuning, name, value)
from pld_shuffle import Accountant, PoissonSampled, Shuffled, ShuffledLDP, Subsampled, warm_up
from pld_shuffle.randomizers import BinaryRandomizedResponse, KRandomizedResponse, Laplace
warm_up()
for _ in range(2):
    begun, found = time.process_time(), []
    for text, count in json.loads(sys.argv[2]):
        for delta in (1e-4, 1e-8, 1e-12):
            found.append([*Accountant().compose(eval(text), count).epsilon_bounds(delta)])
print(json.dumps([time.process_time() - begun, found]))
"""


def answers(name: str, index: int | None, factor: float) -> tuple[float, list[list[float]]]:
    """(seconds, brackets) of a new process with that constant times `factor`."""
    with tempfile.TemporaryDirectory() as cache:
        found = subprocess.run(
            [sys.executable, "-c", ASKED, json.dumps([name, index, factor]), json.dumps(QUESTIONS)],
            env=harness.environment(harness.CHECKOUT, NUMBA_CACHE_DIR=cache),
            check=True, capture_output=True, text=True,
        )  # fmt: skip
    seconds, brackets = json.loads(found.stdout)
    return seconds, brackets


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("constant", nargs="?", help="its name, with [i] one number of several")
    parser.add_argument("--factors", nargs="+", type=float, default=[0.5, 1.0, 2.0])
    parser.add_argument("--list", action="store_true", help="print all constants")
    arguments = parser.parse_args()
    from pld_shuffle.numerics import tuning

    known = {name: value for name, value in vars(tuning).items() if name.isupper()}
    if arguments.list or arguments.constant is None:
        for name, value in known.items():
            print(f"{name} = {value}")
        return
    name, index = re.fullmatch(r"(\w+?)(?:\[(\d+)\])?", arguments.constant).groups()  # type: ignore[union-attr]
    place = None if index is None else int(index)
    standing = known[name] if place is None else known[name][place]
    _, usual = answers(name, place, 1.0)
    print(f"{arguments.constant} = {standing}\nvalue      seconds  upper: largest  mean       widest")
    for factor in arguments.factors:
        seconds, brackets = answers(name, place, factor)
        for (low, high), (usual_low, usual_high) in zip(brackets, usual, strict=True):
            if low > usual_high or usual_low > high:
                sys.exit(f"two certified answers exclude each other: {low, high, usual_low, usual_high}")
        more = [new[1] / old[1] - 1.0 for new, old in zip(brackets, usual, strict=True)]
        width = max(high / low - 1.0 for low, high in brackets)
        mean = sum(more) / len(more)
        value = type(standing)(standing * factor)
        print(f"{value:<10.5g} {seconds:7.2f}  {max(more):14.1e}  {mean:9.1e}  {width:8.1e}", flush=True)


if __name__ == "__main__":
    main()
