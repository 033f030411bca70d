"""Training runs beside other libraries: random allocation, Poisson sampling, shuffled batches.

Every question is asked here and, with `--peer PYTHON`, in an interpreter that has the others (a question to a missing
one says so):

* PLD_accounting[performance] 2.0: `gaussian_allocation_epsilon_range`, lower and upper end.
* opake-accounting 0.16.1: its compiled functions, loaded from their file, as the package around them needs its training
  stack for DP-SGD and fails to import in some versions of Python. Upper ends.
* dp_accounting 0.6: the Poisson-sampled Gaussian mechanism, optimistic and pessimistic, on its default grid. For
  shuffled batches it has nothing but the upper end of the mechanism without sampling, run once per epoch.
* jax_privacy 2.0: balls-in-bins by Monte Carlo, one bin for all epochs (a `RandomAllocation` of sigma/sqrt(epochs)). It
  publishes no table, so its functions are run, with independent noise. The upper end is its guarantee, from the
  delta that its samples may show. The lower end is four standard errors below its estimate of delta.

Processor seconds are of the question alone, after a small one of the same kind; every process has one thread. A peer
that needs more than `--limit` seconds has no answer.

Run:  python benchmarks/training_peers.py [--peer PYTHON] [--limit 150]     (seven minutes with peers)
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import time
from typing import Any

from pld_shuffle import Accountant, Gaussian, RandomAllocation, from_training, warm_up

SETTINGS = ((1.0, 10, 1), (0.8, 100, 1), (1.0, 1_000, 1), (2.0, 10_000, 10))
DELTA, BATCH = 1e-6, 50
# the question, the peers that have an answer, settings, delta
QUESTIONS: tuple[tuple[str, tuple[str, ...], tuple[Any, ...], float], ...] = (
    ("random allocation", ("PLD_accounting", "opake"), SETTINGS, DELTA),
    ("balls in the same bins", ("jax_privacy",), ((1.0, 10, 1), (2.0, 10, 4)), 1e-2),
    ("Poisson sampling", ("dp_accounting", "opake"), SETTINGS, DELTA),
    ("shuffled batches", ("dp_accounting",), SETTINGS, DELTA),
)

PEER = '''
import json, logging, math, sys, time
logging.disable()
question, name, asked = json.loads(sys.argv[1])

def bisected(within):
    """The least epsilon, to 1e-6, with within(epsilon)."""
    low, high = 0.0, 50.0
    while high - low > 1e-6:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if within(middle) else (middle, high)
    return high

def pld_accounting():
    from PLD_accounting import gaussian_allocation_epsilon_range
    def ask(sigma, steps, epochs, delta):
        upper, lower = gaussian_allocation_epsilon_range(
            delta=delta, sigma=sigma, num_steps=steps, num_epochs=epochs
        )
        return lower, upper
    return ask

def opake():
    from importlib import machinery, metadata, util
    file = "opake/api/accounting/core/opake_accounting.abi3.so"
    path = str(metadata.distribution("opake-accounting").locate_file(file))
    spec = util.spec_from_loader("opake_accounting", machinery.ExtensionFileLoader("opake_accounting", path))
    core = util.module_from_spec(spec)
    spec.loader.exec_module(core)
    def ask(sigma, steps, epochs, delta):
        config = core.DiscretizationConfig()
        if question == "Poisson sampling":
            law, times = core.poisson_pld(core.gaussian_pld(sigma, config), 1 / steps), steps * epochs
        else:
            law, times = core.random_allocation_gaussian_pld(sigma, steps, 1, config), epochs
        return 0.0, law.self_compose(times).epsilon_at(delta)
    return ask

def dp_accounting():
    from dp_accounting.pld import privacy_loss_distribution as pld
    def ask(sigma, steps, epochs, delta):
        poisson = question == "Poisson sampling"
        rate, times = (1 / steps, steps * epochs) if poisson else (1.0, epochs)
        ends = [
            pld.from_gaussian_mechanism(sigma, sampling_prob=rate, pessimistic_estimate=above)
            .self_compose(times).get_epsilon_for_delta(delta) for above in ((False, True) if poisson else (True,))
        ]
        return ends if poisson else (0.0, *ends)
    return ask

def jax_privacy():
    import numpy as np
    from jax_privacy.batch_selection import BallsInBinsSampling
    from jax_privacy.experimental.monte_carlo import delta_calculation, sample_generation
    def ask(sigma, steps, epochs, delta):
        count = delta_calculation.minimum_samples_to_calibrate(0.85 * delta, delta)
        losses = [sample_generation.get_privacy_loss_sample(
            BallsInBinsSampling(iterations=steps * epochs, cycle_length=steps), sigma, np.ones(1), seed=seed,
            positive_sample=bool(seed), num_samples=count,
        )[0] for seed in (0, 1)]
        base = delta_calculation.get_base_delta(count, delta)
        def least(eps):
            parts = [np.maximum(-np.expm1(eps - one), 0.0) for one in losses]
            return max(part.mean() - 4.0 * part.std() / math.sqrt(count) for part in parts)
        upper = bisected(
            lambda eps: max(delta_calculation.delta_from_epsilon_and_samples(eps, one) for one in losses) <= base
        )
        return bisected(lambda eps: least(eps) <= delta), upper
    return ask

try:
    ask = {"PLD_accounting": pld_accounting, "opake": opake, "dp_accounting": dp_accounting,
           "jax_privacy": jax_privacy}[name]()
except ImportError as error:
    sys.exit(print(json.dumps(str(error))))
ask(4.0, 3, 1, 1e-2)
begun = time.process_time()
lower, upper = ask(*asked)
print(json.dumps([float(lower), float(upper), time.process_time() - begun]))
'''


def ours(question: str, sigma: float, steps: int, epochs: int, delta: float) -> tuple[float, float, float]:
    """Lower and upper epsilon, and processor seconds."""
    begun = time.process_time()
    if question == "random allocation":
        found = Accountant().compose(RandomAllocation(Gaussian(sigma=sigma), steps), epochs)
    elif question == "balls in the same bins":
        found = Accountant().compose(RandomAllocation(Gaussian(sigma=sigma / math.sqrt(epochs)), steps))
    elif question == "Poisson sampling":
        found = from_training(BATCH * steps, BATCH, epochs, sigma, sampler="poisson")
    else:  # one record is left out of every epoch
        found = from_training(BATCH * steps + 1, BATCH, epochs, sigma, sampler="shuffle")
    bounds = found.epsilon_bounds(delta)
    return float(bounds.lower), float(bounds.upper), time.process_time() - begun


def theirs(python: str, limit: float, *asked: Any) -> Any:
    """Lower and upper epsilon and processor seconds; or why not."""
    alone = {**os.environ, "OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1", "PYTHONPATH": ""}
    command = [python, "-c", PEER, json.dumps(asked)]
    try:
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=limit, env=alone)
    except subprocess.TimeoutExpired:
        return f"over {limit:g} s"
    return json.loads(done.stdout.splitlines()[-1])


def printed(lower: float, upper: float) -> str:
    return f"{lower:.6g} to {upper:.6g} | {upper / lower - 1:.1e}" if lower > 0.0 else f"at most {upper:.6g} | "


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--peer", metavar="PYTHON")
    parser.add_argument("--limit", type=float, default=150.0)
    arguments = parser.parse_args()
    warm_up()
    print("| question | sigma | steps | epochs | delta | who | epsilon | width | s | ours inside |")
    print("|--|--|--|--|--|--|--|--|--|--|")
    for question, peers, settings, delta in QUESTIONS:
        ours(question, 4.0, 1_000, 1, delta)
        for setting in settings:
            lower, upper, seconds = ours(question, *setting, delta)
            start = f"| {question} | {setting[0]:g} | {setting[1]:,} | {setting[2]} | {delta:g} |"
            print(f"{start} this | {printed(lower, upper)} | {seconds:.3f} | |", flush=True)
            for name in peers if arguments.peer else ():
                found = theirs(arguments.peer, arguments.limit, question, name, (*setting, delta))
                if isinstance(found, str):
                    print(f"{start} {name} | {found} | | | |", flush=True)
                    continue
                low, high, spent = found
                inside = (
                    "yes"
                    if low <= lower and upper <= high
                    else "overlaps"
                    if max(low, lower) <= min(high, upper)
                    else "APART"
                )
                print(f"{start} {name} | {printed(low, high)} | {spent:.2f} | {inside} |", flush=True)


if __name__ == "__main__":
    main()
