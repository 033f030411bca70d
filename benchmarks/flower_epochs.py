"""Central noise in Flower, clients that take part once per epoch: a digit classifier, accounted as shuffled batches.

The clients are those of flower_digits.py, one image each. At the start of an epoch the server puts all clients into a
fresh hidden random order and cuts it into cohorts; those who fill no whole cohort are left out. In every round one
cohort gets the model (softmax regression), the server clips the gradients that come back to norm 1, adds Gaussian
noise to their sum, and steps along it. So an epoch is `ShuffledBatches(sigma, batches, batch_size, records)`, for
whoever sees all models and not who took part when; the server is trusted. A client that does not answer gives nothing
and is counted all the same: fine, if whether it answers has nothing to do with its data.

The neighbours are zero-out: a client's update, or nothing in its place. As many epochs are run as the budget allows.

Run:  python benchmarks/flower_epochs.py [--runtime in-process] [--sigma 2] [--max-epsilon 2] [--seed -1]
with ``pip install 'pld-shuffle[flower]' 'flwr[simulation]' scikit-learn``, in an environment of its own.
`--runtime none` accounts only, and needs this package alone.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
from flower_digits import CLASSES, DELTA, PIXELS, POPULATION, RUNTIMES, accuracy, gradient, images

from pld_shuffle import Accountant, ShuffledBatches, from_training


def allowed_epochs(epoch: ShuffledBatches, limit: float) -> list[float]:
    """Epsilon after one epoch, two and so on, as long as it is within the limit."""
    spent = (Accountant().compose(epoch, count).get_epsilon(DELTA) for count in itertools.count(1))
    return list(itertools.takewhile(lambda epsilon: epsilon <= limit, spent))


def make_client() -> Any:
    """The ClientApp: partition i holds image i and answers with its gradient."""
    from flwr.app import ArrayRecord, Context, Message, RecordDict
    from flwr.clientapp import ClientApp

    app = ClientApp()

    @app.train()
    def report(message: Message, context: Context) -> Message:
        features, labels, *_ = images()
        client = int(context.node_config["partition-id"])
        (weights,) = message.content["arrays"].to_numpy_ndarrays()
        slope = gradient(weights, features[client], labels[client])
        return Message(RecordDict({"arrays": ArrayRecord([slope])}), reply_to=message)

    return app


def make_server(options: argparse.Namespace, epoch: ShuffledBatches, spent: list[float]) -> Any:
    """The ServerApp, for as many epochs as `spent` has entries."""
    from flwr.app import ArrayRecord, ConfigRecord, Message, MessageType, MetricRecord, RecordDict
    from flwr.serverapp import ServerApp
    from flwr.serverapp.strategy import FedAvg

    order: Any = random.SystemRandom() if options.seed < 0 else random.Random(options.seed)
    noise = np.random.default_rng(None if options.seed < 0 else options.seed)

    class OncePerEpoch(FedAvg):
        """Cohorts of one hidden order after the other, and a noisy sum of clipped gradients."""

        def configure_train(self, server_round: int, arrays: Any, config: Any, grid: Any) -> Iterator[Any]:
            self.weights = arrays.to_numpy_ndarrays()[0]
            place = (server_round - 1) % epoch.batches
            if place == 0:
                nodes = sorted(grid.get_node_ids())
                if len(nodes) != epoch.records:
                    raise ValueError(f"there must be {epoch.records} clients, got {len(nodes)}")
                self.order = order.sample(nodes, len(nodes))
            self.cohort = self.order[place * epoch.batch_size : (place + 1) * epoch.batch_size]
            content = RecordDict({self.arrayrecord_key: arrays, self.configrecord_key: config})
            return (Message(content, message_type=MessageType.TRAIN, dst_node_id=node) for node in self.cohort)

        def aggregate_train(self, server_round: int, replies: Any) -> Any:
            found = {
                reply.metadata.src_node_id: reply.content["arrays"].to_numpy_ndarrays()[0]
                for reply in replies if not reply.has_error() and reply.metadata.src_node_id in self.cohort
            }  # fmt: skip
            total = noise.normal(0.0, epoch.sigma, self.weights.size)
            for slope in found.values():
                total += slope / max(1.0, float(np.linalg.norm(slope)) * (1.0 + 1e-12))
            step = options.rate / epoch.batch_size * total  # the size that was planned, whoever answered
            return ArrayRecord([self.weights - step.reshape(self.weights.shape)]), None

    app = ServerApp()

    @app.main()
    def train(grid: Any, context: Any) -> None:
        def evaluate(server_round: int, arrays: Any) -> Any:
            share = accuracy(arrays.to_numpy_ndarrays()[0])
            if server_round and server_round % epoch.batches == 0:
                done = server_round // epoch.batches
                print(f"| {done} | {share:.3f} | {spent[done - 1]:.4f} |", flush=True)
            return MetricRecord({"accuracy": share})

        OncePerEpoch(fraction_evaluate=0.0, min_available_nodes=epoch.records).start(
            grid,
            ArrayRecord([np.zeros((PIXELS + 1, CLASSES))]),
            num_rounds=epoch.batches * len(spent),
            train_config=ConfigRecord(),
            evaluate_fn=evaluate,
        )

    return app


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runtime", choices=[*RUNTIMES, "none"], default="simulation")
    parser.add_argument("--sigma", type=float, default=2.0, help="noise of a sum over the clipping norm")
    parser.add_argument("--batches", type=int, default=28, help="rounds of an epoch")
    parser.add_argument("--max-epsilon", type=float, default=2.0, help=f"the budget at delta = {DELTA:g}")
    parser.add_argument("--rate", type=float, default=4.0, help="step length")
    parser.add_argument("--seed", type=int, default=-1, help="below 0: real randomness")
    options = parser.parse_args(arguments)
    size = (POPULATION - 1) // options.batches  # at least one client is left out
    epoch = ShuffledBatches(options.sigma, options.batches, size, POPULATION)
    spent = allowed_epochs(epoch, options.max_epsilon)
    if not spent:
        parser.error(f"no epoch fits into epsilon = {options.max_epsilon:g}")
    least = Accountant().compose(epoch, len(spent)).epsilon_bounds(DELTA).lower
    poisson = from_training(POPULATION, size, len(spent), options.sigma, sampler="poisson").get_epsilon(DELTA)
    print(
        f"{epoch!r}: {len(spent)} epochs within epsilon {options.max_epsilon:g}: at most {spent[-1]:.4f}, an attack"
        f" spends {least:.4f}; Poisson sampling, which this is not, would have {poisson:.4f}"
    )
    if options.runtime == "none":
        return
    os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")
    print("| epochs | accuracy | epsilon |\n|--|--|--|")
    RUNTIMES[options.runtime](make_server(options, epoch, spent), make_client())


if __name__ == "__main__":
    import flower_epochs  # the simulation's workers import it by this name

    flower_epochs.main()
