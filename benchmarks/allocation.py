"""Random allocation: width and time over steps, noise, delta and epochs. Other libraries: training_peers.py.

Upper ends of epsilon of `RandomAllocation` with Gaussian steps at three delta; for each how far the lower end is away,
relative, and processor seconds with compiled loops; and how often the bracket on delta is wider than rtol = 1e-3.

Run:  python benchmarks/allocation.py [--quick] [--sigmas ...] [--epochs ...]     (half an hour)
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from collections.abc import Sequence

from pld_shuffle import Accountant, Gaussian, RandomAllocation, warm_up

SIGMAS = (0.5, 0.7, 1.0, 2.0, 5.0, 10.0, 100.0)
STEPS = (10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)
DELTAS = (1e-5, 1e-8, 1e-12)
EPOCHS = (1, 10, 100)


def answer(sigma: float, steps: int, epochs: int, delta: float) -> tuple[float, float, float, int]:
    """Lower and upper epsilon, processor seconds, and warnings."""
    begun = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = Accountant().compose(RandomAllocation(Gaussian(sigma=sigma), steps), epochs).epsilon_bounds(delta)
    return float(found.lower), float(found.upper), time.process_time() - begun, len(caught)


def cells(sigmas: Sequence[float], epochs: Sequence[int], quick: bool) -> None:
    """One line for a noise, a number of steps and of epochs: epsilons, widths and times at every delta."""
    print(
        "| sigma | steps | epochs |" + "".join(f" upper at {delta:g} |" for delta in DELTAS) + " widths | s | warned |"
    )
    print("|--|--|--|" + "--|" * (len(DELTAS) + 3))
    for sigma, steps, count in itertools.product(sigmas, STEPS[:2] if quick else STEPS, epochs):
        found = [answer(sigma, steps, count, delta) for delta in DELTAS]
        widths = [upper / max(lower, 1e-300) - 1.0 if upper else 0.0 for lower, upper, *_ in found]
        print(
            f"| {sigma:g} | {steps:,} | {count} |" + "".join(f" {upper:.6g} |" for _, upper, *_ in found)
            + " " + " ".join(f"{width:.0e}" for width in widths) + " | " + " ".join(f"{one[2]:.2f}" for one in found)
            + f" | {sum(one[3] > 0 for one in found) or ''} |",
            flush=True,
        )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--sigmas", type=float, nargs="*", default=SIGMAS)
    parser.add_argument("--epochs", type=int, nargs="*", default=EPOCHS)
    arguments = parser.parse_args()
    warm_up()
    answer(4.0, 10, 1, 1e-5)
    cells(arguments.sigmas, arguments.epochs, arguments.quick)


if __name__ == "__main__":
    main()
