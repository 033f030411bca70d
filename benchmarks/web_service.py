"""What a small web service waits for: 25 mixed requests in one process, once `warm_up()` has returned.

Each request is a new accountant and one question, as a handler would ask it; none is asked twice. Nothing is remembered
from an earlier request but what the package itself keeps. The service is started with a full cache of compiled code;
`warm_up_s` is what importing and loading took. Processor time, and the time that passed.

    python benchmarks/web_service.py
"""

from __future__ import annotations

import json
import subprocess
import sys
import time

import harness

#: A name, and the expression that answers it.
REQUESTS = (
    ("one round", "Accountant().compose(ShuffledLDP(4.0, 10_000)).get_epsilon(1e-6)"),
    ("bracket of 10 rounds", "Accountant().compose(ShuffledLDP(3.0, 20_000), 10).epsilon_bounds(1e-8)"),
    ("delta of 64 rounds", "Accountant().compose(ShuffledLDP(1.0, 5_000), 64).delta_bounds(0.5)"),
    (
        "a training run",
        "Accountant().compose(Subsampled(ShuffledLDP(6.3, 5_000), population=10**6), 2_000).epsilon_bounds(1e-6)",
    ),
    (
        "Poisson cohorts",
        "Accountant().compose(PoissonSampled(ShuffledLDP(3.0, 10**5), rate=0.01), 100).get_epsilon(1e-6)",
    ),
    (
        "dropouts",
        "Accountant().compose(Subsampled(ShuffledLDP(4.0, 1_000), population=10**5, dropout=0.1), 9).get_epsilon(1e-6)",
    ),
    ("a log of 100 sizes", "sizes(100).epsilon_bounds(1e-6)"),
    (
        "a sticky cohort, 10 rounds",
        "Accountant().compose(StickyCohort(ShuffledLDP(2.0, 1_000), 10, rate=0.01)).epsilon_bounds(1e-6)",
    ),
    ("unary encoding", "Accountant().compose(Shuffled(UnaryEncoding(k=16, eps0=2.0), 20_000)).epsilon_bounds(1e-6)"),
    (
        "Laplace reports, 50 rounds",
        "Accountant().compose(Shuffled(LaplaceReport(eps0=2.0), 10_000), 50).epsilon_bounds(1e-6)",
    ),
    ("Gaussian reports", "Accountant().compose(Shuffled(GaussianReport(sigma=1.0), 10_000)).get_epsilon(1e-6)"),
    (
        "subset selection, 4 rounds",
        "Accountant().compose(Shuffled(SubsetSelection(k=5, size=2, eps0=2.0), 2_000), 4).get_epsilon(1e-6)",
    ),
    (
        "a weak adversary, 16 rounds",
        "Accountant().compose(ShuffledRR(4, 1_000, gamma=0.25, adversary='weak'), 16).get_epsilon(1e-6)",
    ),
    ("counted bits, 64 rounds", "Accountant().compose(CountedBits(1_000, eps0=2.0), 64).get_epsilon(1e-6)"),
    ("a tiny delta", "Accountant().compose(ShuffledLDP(4.0, 10**6), 200).epsilon_bounds(1e-60)"),
    (
        "mixed with central noise",
        "Accountant().compose(ShuffledLDP(2.0, 10_000), 20).compose(Gaussian(sigma=20.0), 10).get_epsilon(1e-6)",
    ),
    ("Renyi divergences", "RenyiAccountant().compose(ShuffledLDP(2.0, 10_000), 100).get_epsilon(1e-6)"),
    ("attack risk", "AttackRisk(Accountant().compose(ShuffledLDP(4.0, 1_000), 10)).true_positive_rate(1e-3)"),
    ("plan eps0", "solve('eps0', {'n': 2_000, 'population': 10**5, 'rounds': 500}, epsilon=1.0, delta=1e-6)"),
    (
        "would exceed",
        "Accountant().compose(ShuffledLDP(2.0, 10_000)).would_exceed(ShuffledLDP(2.5, 9_000), epsilon=1, delta=1e-6)",
    ),
    ("random allocation", "Accountant().compose(RandomAllocation(Gaussian(sigma=1.0), 1_000), 10).get_epsilon(1e-6)"),
    ("a training epoch", "from_training(50_000, 499, 1, 1.0, sampler='shuffle').get_epsilon(1e-6)"),
    ("ten training epochs", "from_training(60_000, 599, 10, 1.2, sampler='shuffle').get_epsilon(1e-5)"),
    ("summed noise", "Accountant().compose(SummedNoise(Binomial(trials=80), clients=20), 3).get_epsilon(1e-6)"),
    ("a threshold", "Accountant().compose(Threshold(rate=0.105, least=20)).get_epsilon(1e-8)"),
)

SERVICE = """
import json, sys, time
begin = time.process_time()
import pld_shuffle
from pld_shuffle import *
from pld_shuffle.randomizers import Gaussian as GaussianReport, Laplace as LaplaceReport, SubsetSelection, UnaryEncoding
from pld_shuffle.shares import Binomial
def sizes(rounds):
    accountant = Accountant()
    for i in range(rounds):
        accountant.compose(Subsampled(ShuffledLDP(6.0, 4_200 + 37 * i % 1_400), population=10**6))
    return accountant
warm_up()
print(time.process_time() - begin, flush=True)
for line in sys.stdin:
    begin, wall = time.process_time(), time.perf_counter()
    eval(line)
    print(json.dumps([time.process_time() - begin, time.perf_counter() - wall]), flush=True)
"""


def main() -> None:
    arguments = harness.options(__doc__.splitlines()[0])
    environment = harness.environment(harness.CHECKOUT)
    subprocess.run([sys.executable, "-c", "import pld_shuffle; pld_shuffle.warm_up()"], check=True, env=environment)
    service = subprocess.Popen(
        [sys.executable, "-c", SERVICE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )
    assert service.stdin is not None and service.stdout is not None
    warm_up = float(service.stdout.readline())
    rows = []
    for name, expression in REQUESTS:
        service.stdin.write(f"{expression}\n")
        service.stdin.flush()
        cpu, wall = json.loads(service.stdout.readline())
        rows.append({"request": name, "cpu_s": cpu, "wall_s": wall})
    service.stdin.close()
    service.wait()
    print(f"warm-up: {warm_up:.2f} s")
    print(harness.table(rows, ["request", "cpu_s", "wall_s"]))
    print(f"longest: {max(row['cpu_s'] for row in rows):.2f} s of the processor; {time.ctime()}")
    harness.save(arguments, "web_service", {"warm_up_s": warm_up, "requests": rows})


if __name__ == "__main__":
    main()
