"""Shuffled local DP in Flower: a digit classifier from one randomised bit per client and round.

The clients are the 1,437 training images of scikit-learn's digits, one image each. In every round a hidden
random cohort of n of them gets the model (softmax regression, 65 x 10 weights). A client draws a
coordinate of its rotated gradient and answers with the coordinate and its *sign*, flipped with
probability 1/(e^eps0 + 1): that is eps0-LDP, and everything that leaves it. `ShuffledStrategy` mixes the
reports, accounts for them and ends the run before its budget is exceeded; the server adds up the signs.

Three steps, so that the same training can be read with any analysis:

    python benchmarks/flower_digits.py train --max-epsilon 1  # accuracy and epsilon of every round
    python benchmarks/flower_digits.py account --analysis tightest --label "this package"
    python benchmarks/flower_digits.py plot                   # accuracy against epsilon

`train` needs ``pip install 'pld-shuffle[flower]' 'flwr[simulation]' scikit-learn``, in an environment of its
own; the others need only this package. ``--runtime simulation`` is Flower's own, one process per core;
``--runtime in-process`` runs the same ServerApp and ClientApp without it and ten times as fast, for several
seeds and many rounds. Tables and picture go to results/; benchmarks/README.md says how they were made.
"""

from __future__ import annotations

import argparse
import csv
import functools
import math
import os
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

RESULTS = Path(__file__).resolve().parent / "results"
POPULATION, PIXELS, CLASSES = 1437, 64, 10
SIZE = (PIXELS + 1) * CLASSES
DELTA, BUDGET = 1e-5, 1.0
Array = NDArray[Any]


# --- data and model: what clients and server both know ---------------------------------------


@functools.cache
def images() -> tuple[Array, Array, Array, Array]:
    """Training features and labels, test features and labels; every image has norm 1, and a constant."""
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    centred = pixels / 16.0 - 0.3
    centred /= np.linalg.norm(centred, axis=1, keepdims=True)
    features = np.hstack([centred, np.full((len(centred), 1), 0.3)])
    order = np.random.default_rng(0).permutation(len(labels))
    train, test = order[:POPULATION], order[POPULATION:]
    return features[train], labels[train], features[test], labels[test]


@functools.cache
def rotation() -> Array:
    """A fixed orthogonal matrix: after it, single coordinates point in no special direction."""
    return np.linalg.qr(np.random.default_rng(1).normal(size=(SIZE, SIZE)))[0]


def gradient(weights: Array, features: Array, label: int) -> Array:
    """Of the cross entropy at one image, flattened."""
    scores = features @ weights
    chances = np.exp(scores - scores.max())
    chances /= chances.sum()
    chances[label] -= 1.0
    return np.outer(features, chances).ravel()


def one_bit(weights: Array, client: int, eps0: float, rng: np.random.Generator) -> tuple[int, int]:
    """A client's report: a random coordinate, and its randomised sign. eps0-LDP."""
    features, labels, _, _ = images()
    coordinate = int(rng.integers(SIZE))
    slope = rotation()[coordinate] @ gradient(weights, features[client], labels[client])
    sign = 1 if slope >= 0.0 else -1
    flipped = rng.random() < 1.0 / (math.exp(eps0) + 1.0)
    return coordinate, -sign if flipped else sign


def descent(weights: Array, reports: Array, eps0: float, rate: float) -> Array:
    """One step along the mean of the reports, without the bias of the flips."""
    signs = np.bincount(reports[:, 0], reports[:, 1].astype(float), SIZE)
    mean = signs @ rotation() / (len(reports) * math.tanh(0.5 * eps0))
    return weights - rate * math.sqrt(SIZE) * mean.reshape(weights.shape)


def accuracy(weights: Array) -> float:
    """Share of test images that are recognised."""
    _, _, features, labels = images()
    return float(np.mean(np.argmax(features @ weights, axis=1) == labels))


# --- Flower --------------------------------------------------------------------------------------


def make_client() -> Any:
    """The ClientApp: partition i holds image i."""
    from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
    from flwr.clientapp import ClientApp

    app = ClientApp()

    @app.train()
    def report(message: Message, context: Context) -> Message:
        settings = message.content["config"]
        client = int(context.node_config["partition-id"])
        seed = int(settings["seed"])  # for experiments; below 0 means real randomness
        entropy = None if seed < 0 else [seed, int(settings["server-round"]), client]
        (weights,) = message.content["arrays"].to_numpy_ndarrays()
        bit = one_bit(weights, client, settings["eps0"], np.random.default_rng(entropy))
        content = RecordDict(
            {"arrays": ArrayRecord([np.array(bit, np.int64)]), "metrics": MetricRecord({"num-examples": 1})}
        )
        return Message(content, reply_to=message)

    return app


def make_server(options: argparse.Namespace, seed: int, found: list[tuple[int, float, float]]) -> Any:
    """The ServerApp; appends (round, accuracy, epsilon) to `found`."""
    from flwr.app import ArrayRecord, ConfigRecord, MetricRecord
    from flwr.serverapp import NeighboringRelation, PrivacyConfig, SamplingMethod, ServerApp
    from flwr.serverapp.strategy import FedAvg

    from pld_shuffle import ShuffledLDP, Subsampled
    from pld_shuffle.interop.flower import ShuffledStrategy, ShufflePrivacyAccountant

    class SignDescent(FedAvg):
        """Offers every client the model, and steps along the signs that come back."""

        def configure_train(self, server_round: int, arrays: Any, *rest: Any) -> Any:
            self.weights = arrays.to_numpy_ndarrays()[0]
            return super().configure_train(server_round, arrays, *rest)

        def aggregate_train(self, server_round: int, replies: Any) -> Any:
            reports = np.array([r.content["arrays"].to_numpy_ndarrays()[0] for r in replies])
            new = descent(self.weights, reports, options.eps0, options.rate)
            return ArrayRecord([new]), None

    app = ServerApp()

    @app.main()
    def train(grid: Any, context: Any) -> None:
        accountant = ShufflePrivacyAccountant(
            PrivacyConfig(
                target_delta=DELTA,
                population_size=POPULATION,
                neighboring_relation=NeighboringRelation.REPLACE_ONE,
                sampling_method=SamplingMethod.WITHOUT_REPLACEMENT,
                max_epsilon=options.max_epsilon,
            )
        )
        strategy = ShuffledStrategy(
            SignDescent(fraction_evaluate=0.0, min_available_nodes=POPULATION),
            Subsampled(ShuffledLDP(eps0=options.eps0, n=options.cohort), population=POPULATION),
            accountant,
            rng=None if seed < 0 else random.Random(seed),
        )

        def evaluate(server_round: int, arrays: ArrayRecord) -> MetricRecord:
            share = accuracy(arrays.to_numpy_ndarrays()[0])
            # Asking every round is only needed for the log; runs without a budget are accounted for later.
            spent = math.nan if options.max_epsilon is None else accountant.get_epsilon(DELTA)
            found.append((server_round, share, spent))
            return MetricRecord({"accuracy": share, "epsilon": spent})

        strategy.start(
            grid,
            ArrayRecord([np.zeros((PIXELS + 1, CLASSES))]),
            num_rounds=options.rounds,
            train_config=ConfigRecord({"eps0": options.eps0, "seed": seed}),
            evaluate_fn=evaluate,
        )

    return app


def run_in_process(server: Any, client: Any) -> None:
    """Both apps in this process: every message is answered at once."""
    from flwr.app import Context, Message, RecordDict
    from flwr.supercore.task_identity import TaskIdentity

    # A message says from where it comes; Flower's runtimes set this.
    TaskIdentity.run_id = TaskIdentity.task_id = TaskIdentity.node_id = 1

    def context(node: int, settings: dict[str, Any]) -> Context:
        return Context(run_id=1, node_id=node, node_config=settings, state=RecordDict(), run_config={})

    first = 100
    contexts = {first + i: context(first + i, {"partition-id": i}) for i in range(POPULATION)}

    class InProcessGrid:
        """What strategies ask of Flower's Grid; the rest of it is about networks."""

        def get_node_ids(self) -> Iterable[int]:
            return list(contexts)

        def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
            return [client(message, contexts[message.metadata.dst_node_id]) for message in messages]

    server(InProcessGrid(), context(1, {}))


def run_simulation(server: Any, client: Any) -> None:
    """Flower's simulation on this machine's cores."""
    from flwr.simulation import run_simulation as run

    resources = {"num_cpus": 1, "num_gpus": 0.0}
    run(server, client, num_supernodes=POPULATION, backend_config={"client_resources": resources})


RUNTIMES = {"simulation": run_simulation, "in-process": run_in_process}


def train(options: argparse.Namespace) -> None:
    """One run per seed, and a table of accuracies."""
    os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")
    table = options.output / f"flower_digits_accuracy_{options.runtime}.csv"
    rows: list[dict[str, Any]] = []
    for seed in options.seeds:
        found: list[tuple[int, float, float]] = []
        RUNTIMES[options.runtime](make_server(options, seed, found), make_client())
        setting = {"eps0": options.eps0, "cohort": options.cohort, "population": POPULATION}
        rows += [
            {**setting, "seed": seed, "round": i, "accuracy": round(share, 4), "epsilon": spent}
            for i, share, spent in found
        ]
        last = found[-1]
        print(f"seed {seed}: {last[0]} rounds, accuracy {last[1]:.4f}, epsilon {last[2]:.4f}")
    write(table, rows)


# --- accounting and picture ----------------------------------------------------------------------


def published(eps0: float, n: int, rounds: int) -> float:
    """The smallest bound of the literature: closed forms, their composition, Renyi bounds."""
    from pld_shuffle.comparison import compare

    found = compare(_mechanism(eps0, n), delta=DELTA, rounds=rounds, rtol=0.1)
    return min(m.epsilon for m in found.methods if not m.source.startswith("this package"))


def renyi(eps0: float, n: int, rounds: int) -> float:
    """An ideal Renyi accountant for the pair of stronger clones."""
    from pld_shuffle import RenyiAccountant

    return float(RenyiAccountant().compose(_mechanism(eps0, n), rounds).get_epsilon(DELTA))


def certified(eps0: float, n: int, rounds: int, analysis: str = "stronger-clones") -> float:
    """The accountant's upper end for any eps0-LDP randomizer, in the release that is installed."""
    from pld_shuffle import Accountant

    mechanism = _mechanism(eps0, n, analysis)
    return float(Accountant().compose(mechanism, rounds).get_epsilon(DELTA))


def attacked(eps0: float, n: int, rounds: int) -> float:
    """The accountant's lower end: what an attack on some eps0-LDP randomizer reaches."""
    from pld_shuffle import Accountant

    mechanism = _mechanism(eps0, n, "tightest")
    return float(Accountant().compose(mechanism, rounds).epsilon_bounds(DELTA).lower)


def _mechanism(eps0: float, n: int, analysis: str = "stronger-clones") -> Any:
    from pld_shuffle import ShuffledLDP, Subsampled

    return Subsampled(ShuffledLDP(eps0=eps0, n=n, analysis=analysis), population=POPULATION)


#: (eps0, n, rounds) -> an upper bound on epsilon at DELTA. "clones" is the pair that Koskela et al. compose.
ANALYSES: dict[str, Callable[[float, int, int], float]] = {
    "published": published,
    "clones": functools.partial(certified, analysis="clones"),
    "renyi": renyi,
    "stronger-clones": certified,
    "tightest": functools.partial(certified, analysis="tightest"),
    "attack": attacked,
}


def account(options: argparse.Namespace) -> None:
    """Adds one curve to the table of epsilons, for the setting of the table of accuracies."""
    accuracies = list(read(options.output / f"flower_digits_accuracy_{options.runtime}.csv"))
    table = options.output / "flower_digits_epsilon.csv"
    label = options.label or options.analysis
    rows = [row for row in read(table) if row["label"] != label] if table.exists() else []
    eps0, n = float(accuracies[0]["eps0"]), int(accuracies[0]["cohort"])
    last = max(int(row["round"]) for row in accuracies)
    # Twenty counts a decade: epsilon grows slowly, and the picture may use any count between.
    counts = sorted({min(round(10 ** (i / 20)), last) for i in range(math.ceil(20 * math.log10(last)) + 1)})
    found = {rounds: ANALYSES[options.analysis](eps0, n, rounds) for rounds in counts}
    # And the last round within the budget.
    within = max((rounds for rounds, epsilon in found.items() if epsilon <= BUDGET), default=0)
    beyond = min((rounds for rounds, epsilon in found.items() if epsilon > BUDGET), default=within)
    while beyond - within > 1:
        middle = (within + beyond) // 2
        found[middle] = ANALYSES[options.analysis](eps0, n, middle)
        within, beyond = (middle, beyond) if found[middle] <= BUDGET else (within, middle)
    for rounds, epsilon in sorted(found.items()):
        rows.append({"label": label, "eps0": eps0, "cohort": n, "rounds": rounds, "epsilon": epsilon})
        print(f"{label}: {rounds} rounds, epsilon {epsilon:.5g}")
    write(table, rows)


def plot(options: argparse.Namespace) -> None:
    """The picture, and what a budget of 1 is good for by each analysis."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    shares: dict[int, list[float]] = {}
    rows = list(read(options.output / f"flower_digits_accuracy_{options.runtime}.csv"))
    for row in rows:
        shares.setdefault(int(row["round"]), []).append(float(row["accuracy"]))
    curves: dict[str, list[tuple[float, int]]] = {}
    for row in read(options.output / "flower_digits_epsilon.csv"):
        curves.setdefault(row["label"], []).append((float(row["epsilon"]), int(row["rounds"])))
    figure, axis = plt.subplots(figsize=(7, 4.6), constrained_layout=True)
    for label, points in curves.items():
        spent = [epsilon for epsilon, _ in points]
        middle = [_around(shares, rounds) for _, rounds in points]
        # The attack is an analysis of nothing: a dashed line on top, without dots.
        attack = label.startswith("an attack")
        axis.plot(spent, middle, ":k" if attack else ".-", label=label)
    axis.set(
        xscale="log", xlabel=f"ε at δ = 10$^{{{math.log10(DELTA):.0f}}}$", ylabel="test accuracy",
        title=f"One bit a round from {rows[0]['cohort']} of {rows[0]['population']} hidden clients,"
        f" ε₀ = {float(rows[0]['eps0']):g} (scikit-learn digits)",
    )  # fmt: skip
    axis.axvline(BUDGET, color="black", linewidth=0.8, alpha=0.5)
    axis.xaxis.set_major_formatter("{x:g}")
    axis.grid(alpha=0.25)
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, frameon=False)
    for label, points in curves.items():
        rounds = max((rounds for epsilon, rounds in points if epsilon <= BUDGET), default=0)
        print(
            f"{label}: {rounds} rounds within epsilon {BUDGET:g}, accuracy {_around(shares, rounds):.3f};"
            f" epsilon {points[-1][0]:.4g} after {points[-1][1]}"
        )
    figure.savefig(options.output / "flower_digits.png", dpi=130)
    plt.close(figure)


def _around(shares: dict[int, list[float]], rounds: int) -> float:
    """Mean accuracy over seeds and the rounds within 5 %: single rounds jump."""
    near = range(math.ceil(rounds * 0.95), math.floor(rounds * 1.05) + 1)
    return float(np.mean([share for i in near for share in shares.get(i, [])]))


def read(path: Path) -> Iterator[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as handle:
        yield from csv.DictReader(handle)


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as handle:
        table = csv.DictWriter(handle, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="accuracy against epsilon in Flower")
    parser.add_argument("--output", type=Path, default=RESULTS, help="directory of tables and picture")
    parser.add_argument("--runtime", choices=RUNTIMES, default="simulation")
    steps = parser.add_subparsers(required=True)
    step = steps.add_parser("train", help="run Flower, write the accuracy after every round")
    step.add_argument("--eps0", type=float, default=2.0, help="local budget of one report")
    step.add_argument("--cohort", type=int, default=359, help="reports per round")
    step.add_argument("--rounds", type=int, default=1000, help="at most so many")
    step.add_argument("--max-epsilon", type=float, help="the budget at delta = 1e-5 (default: none)")
    step.add_argument("--rate", type=float, default=1.0, help="step length")
    step.add_argument("--seeds", type=int, nargs="+", default=[0], help="-1: real randomness")
    step.set_defaults(run=train)
    step = steps.add_parser("account", help="epsilon after these rounds, by one analysis")
    step.add_argument("--analysis", choices=ANALYSES, default="tightest")
    step.add_argument("--label", help="name of the curve; rows of that name are replaced")
    step.set_defaults(run=account)
    steps.add_parser("plot", help="draw all curves").set_defaults(run=plot)
    options = parser.parse_args(arguments)
    options.run(options)


if __name__ == "__main__":
    import flower_digits  # the simulation's workers import it by this name

    flower_digits.main()
