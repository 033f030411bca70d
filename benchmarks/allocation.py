"""Random allocation: width and time over steps, noise, delta and epochs; and beside other libraries.

One line per cell: epsilon of `RandomAllocation` with Gaussian steps from both sides, their relative distance, processor
seconds with compiled loops, and whether the bracket on delta is wider than rtol = 1e-3 (a warning).

With `--peer PYTHON`, an interpreter that has PLD_accounting (2.0), its answers to some of the same questions in one
run: `gaussian_allocation_epsilon_range` as its documentation shows it, lower and upper end, and
processor seconds of the question alone, after one other question that compiles its loops.

Run:  python benchmarks/allocation.py [--quick] [--peer PYTHON]     (a few minutes)
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
import warnings

from pld_shuffle import Accountant, Gaussian, RandomAllocation, warm_up

SIGMAS = (0.5, 1.0, 4.0, 100.0)
STEPS = (10, 100, 1_000, 100_000, 10_000_000)
QUESTIONS = ((1, 1e-5), (1, 1e-12), (10, 1e-6), (100, 1e-9))  # epochs, delta
PEERS = ((1.0, 10, 1), (1.0, 100, 1), (2.0, 100, 1), (4.0, 100, 1), (1.0, 1_000, 1), (2.0, 1_000, 10), (4.0, 1_000, 10))
PEER_DELTA = 1e-6

PEER = """
import json, sys, time
from PLD_accounting import gaussian_allocation_epsilon_range as ask
ask(delta=1e-5, sigma=4.0, num_steps=10)
for sigma, steps, epochs, delta in json.loads(sys.argv[1]):
    begun = time.process_time()
    upper, lower = ask(delta=delta, sigma=sigma, num_steps=steps, num_epochs=epochs)
    print(json.dumps([lower, upper, time.process_time() - begun]), flush=True)
"""


def answer(sigma: float, steps: int, epochs: int, delta: float) -> tuple[float, float, float, int]:
    """Lower and upper epsilon, processor seconds, and warnings."""
    begun = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = Accountant().compose(RandomAllocation(Gaussian(sigma=sigma), steps), epochs).epsilon_bounds(delta)
    return float(found.lower), float(found.upper), time.process_time() - begun, len(caught)


def cells(quick: bool) -> None:
    print("| sigma | steps | epochs | delta | lower | upper | width | s | wider than rtol |")
    print("|--|--|--|--|--|--|--|--|--|")
    for sigma in SIGMAS[1:2] if quick else SIGMAS:
        for steps in STEPS[:2] if quick else STEPS:
            for epochs, delta in QUESTIONS:
                lower, upper, seconds, warned = answer(sigma, steps, epochs, delta)
                width = upper / max(lower, 1e-300) - 1.0 if upper else 0.0
                print(
                    f"| {sigma:g} | {steps:,} | {epochs} | {delta:g} | {lower:.6g} | {upper:.6g} |"
                    f" {width:.1e} | {seconds:.3f} | {'yes' if warned else ''} |",
                    flush=True,
                )


def peers(python: str) -> None:
    print("\n| sigma | steps | epochs | this | s | PLD_accounting | s | width, times | time, times |")
    print("|--|--|--|--|--|--|--|--|--|")
    asked = json.dumps([(*cell, PEER_DELTA) for cell in PEERS])
    with subprocess.Popen([python, "-c", PEER, asked], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for cell, line in zip(PEERS, process.stdout, strict=True):
            low, high, theirs = json.loads(line)
            lower, upper, seconds, _ = answer(*cell, PEER_DELTA)
            print(
                f"| {cell[0]:g} | {cell[1]:,} | {cell[2]} | {lower:.6g} to {upper:.6g} | {seconds:.3f} |"
                f" {low:.5g} to {high:.5g} | {theirs:.2f} | {(high - low) / (upper - lower):.0f} |"
                f" {theirs / seconds:.0f} |",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--peer")
    arguments = parser.parse_args()
    warm_up()
    answer(4.0, 10, 1, 1e-5)
    cells(arguments.quick)
    if arguments.peer:
        peers(arguments.peer)


if __name__ == "__main__":
    main()
