"""Write the sample training log that ships with the package.

A made-up federated job: every round invites a random 5,500 out of 100,000 phones, and a phone
drops out with a probability that follows the time of day (fewer are on a charger at noon), so the
cohorts vary around 5,000.  The seed is fixed and only ``random.Random.random`` is used, whose
stream the standard library keeps stable, so the file is the same on every machine.

    python benchmarks/make_sample_log.py pld_shuffle/data/sample_log.csv
"""

from __future__ import annotations

import argparse
import math
import random
from pathlib import Path

SEED = 20_240_601
ROUNDS = 200
ROUNDS_PER_DAY = 24
INVITED = 5_500
POPULATION = 100_000
EPS0 = 5.5


def dropout_probability(round_number: int) -> float:
    """Between 6% and 12%, over a day of rounds."""
    return 0.09 + 0.03 * math.sin(2 * math.pi * round_number / ROUNDS_PER_DAY)


def sample_log() -> str:
    """The log's text: a header and one line per round."""
    rng = random.Random(SEED)
    lines = ["round,mechanism,n,eps0,population"]
    for round_number in range(1, ROUNDS + 1):
        dropout = dropout_probability(round_number)
        cohort = sum(rng.random() >= dropout for _ in range(INVITED))
        lines.append(f"{round_number},ldp,{cohort},{EPS0},{POPULATION}")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=Path, help="where the CSV goes")
    parser.parse_args().output.write_text(sample_log(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
