"""Flower: its accountant protocol, what a wrapped strategy sees and may do, runs that stop at the budget."""

from __future__ import annotations

import csv
import importlib
import inspect
import json
import random
import re
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pld_shuffle import Accountant, BudgetExceeded, DiscretePair, Gaussian, ShuffledBatches, ShuffledLDP, Subsampled

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("flwr", reason="needs Flower: pip install 'pld-shuffle[flower]'")
    from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, MetricRecord, RecordDict
    from flwr.serverapp import (
        GaussianPrivacyEvent,
        NeighboringRelation,
        PrivacyAccountant,
        PrivacyConfig,
        SamplingMethod,
    )
    from flwr.serverapp.exception import PrivacyBudgetExhausted
    from flwr.serverapp.strategy import FedAvg
    from flwr.supercore.task_identity import TaskIdentity

    from pld_shuffle.interop.flower import ShuffledStrategy, ShufflePrivacyAccountant

ROOT = Path(__file__).parent.parent
EXAMPLE = ROOT / "benchmarks" / "flower_digits.py"
DELTA, COHORT, POPULATION = 1e-5, 12, 60
ROUND = Subsampled(ShuffledLDP(eps0=1.0, n=COHORT), population=POPULATION)


def spent(rounds: int) -> float:
    """What an accountant alone says."""
    return float(Accountant().compose(ROUND, rounds).get_epsilon(DELTA))


def config(limit: float | None = None, population: int = POPULATION) -> Any:
    """Replacement of one of the population's clients."""
    return PrivacyConfig(
        target_delta=DELTA,
        population_size=population,
        neighboring_relation=NeighboringRelation.REPLACE_ONE,
        sampling_method=SamplingMethod.WITHOUT_REPLACEMENT,
        max_epsilon=limit,
    )


# --- the accountant -----------------------------------------------------------------------------


def test_the_protocol_is_flowers() -> None:
    """Every member of Flower's protocol, with its parameters."""
    for name, member in vars(PrivacyAccountant).items():
        if name.startswith("_"):
            continue
        ours = inspect.getattr_static(ShufflePrivacyAccountant, name)
        assert type(ours) is type(member)
        if not isinstance(member, property):
            theirs = inspect.signature(member).parameters
            assert [*inspect.signature(ours).parameters] == [*theirs]
            for parameter in inspect.signature(ours).parameters.values():
                assert parameter.default == theirs[parameter.name].default


def test_numbers_are_those_of_the_accountant() -> None:
    """Rounds of shuffled reports and of central noise in one ledger."""
    found = ShufflePrivacyAccountant(config())
    found.compose(ROUND, 4)
    found.compose(GaussianPrivacyEvent(3.0, 15, POPULATION), 2)
    plain = Accountant().compose(ROUND, 4).compose(Subsampled(Gaussian(sigma=3.0, sensitivity=2.0), rate=0.25), 2)
    assert found.num_releases == 6
    assert found.get_epsilon(1e-6) == plain.get_epsilon(1e-6)
    assert found.get_delta(0.5) == plain.get_delta(0.5)
    assert found.epsilon_bounds(1e-6) == plain.epsilon_bounds(1e-6)
    said = found.get_privacy_spent()
    assert (said.epsilon, said.delta, said.num_releases) == (plain.get_epsilon(DELTA), DELTA, 6)
    assert found.get_privacy_spent(1e-3).epsilon == plain.get_epsilon(1e-3)


def test_would_exceed_is_about_the_next_rounds() -> None:
    """The configuration's limit or one of its own; the ledger stays as it is."""
    found = ShufflePrivacyAccountant(config(limit=(spent(9) + spent(10)) / 2))
    found.compose(ROUND, 5)
    assert not found.would_exceed(ROUND, count=4) and found.would_exceed(ROUND, count=5)
    assert found.would_exceed(ROUND, spent(5)) and not found.would_exceed(ROUND, spent(6) * 1.001)
    assert found.num_releases == 5
    with pytest.raises(ValueError, match="max_epsilon must be given"):
        ShufflePrivacyAccountant(config()).would_exceed(ROUND)


def test_flowers_own_accountant_is_above_ours_at_half_the_noise() -> None:
    """Its REPLACE_ONE multiplier is noise over what a *replacement* moves, so z there is 2z here."""
    pytest.importorskip("dp_accounting", reason="Flower's RdpAccountant needs dp-accounting")
    from flwr.serverapp import RdpAccountant

    theirs, ours = RdpAccountant(config()), ShufflePrivacyAccountant(config())
    theirs.compose(GaussianPrivacyEvent(2.0, POPULATION, POPULATION), 10)
    ours.compose(GaussianPrivacyEvent(4.0, POPULATION, POPULATION), 10)
    assert ours.get_epsilon(DELTA) <= theirs.get_epsilon(DELTA) <= 1.15 * ours.get_epsilon(DELTA)


LOGS = tuple(np.log([0.5, 0.3, 0.2]).tolist()), tuple(np.log([0.2, 0.2, 0.6]).tolist())


@pytest.mark.parametrize(
    ("event", "error", "reason"),
    [
        (Subsampled(ShuffledLDP(1.0, COHORT), population=POPULATION + 1), ValueError, "at most 60 clients"),
        (Subsampled(ShuffledLDP(1.0, COHORT), rate=COHORT / (POPULATION + 1)), ValueError, "at most 60"),
        (ShuffledLDP(1.0, POPULATION + 1), ValueError, "at most 60 clients"),
        (GaussianPrivacyEvent(1.0, 5, POPULATION + 1), ValueError, "population of 60"),
        (DiscretePair(*LOGS, symmetric=False), ValueError, "symmetric pair"),
        ("round", TypeError, "mechanism"),
    ],
)  # fmt: skip
def test_refused_events(event: Any, error: type[Exception], reason: str) -> None:
    """By name, and nothing is composed."""
    found = ShufflePrivacyAccountant(config())
    for ask in (found.compose, lambda event: found.would_exceed(event, 1.0)):
        with pytest.raises(error, match=reason):
            ask(event)
    assert found.num_releases == 0
    found.compose(Subsampled(ShuffledLDP(1.0, COHORT), rate=COHORT / POPULATION))  # exactly all


def test_refused_configurations() -> None:
    poisson = PrivacyConfig(DELTA, POPULATION, NeighboringRelation.ADD_OR_REMOVE_ONE, SamplingMethod.POISSON)
    for wrong, error, reason in ((poisson, ValueError, "REPLACE_ONE"), (None, TypeError, "config")):
        with pytest.raises(error, match=reason):
            ShufflePrivacyAccountant(wrong)


def test_state_survives_json() -> None:
    """The same numbers afterwards; another configuration or a foreign state is refused, unchanged."""
    found = ShufflePrivacyAccountant(config(1.0), rtol=1e-2)
    found.compose(ROUND, 4)
    found.compose(GaussianPrivacyEvent(3.0, 15, POPULATION), 2)
    state = json.loads(json.dumps(found.state_dict()))
    again = ShufflePrivacyAccountant(config(1.0))
    again.load_state_dict(state)
    assert again.epsilon_bounds(DELTA) == found.epsilon_bounds(DELTA)
    assert again.state_dict() == found.state_dict()
    for other in (config(2.0), config(1.0, POPULATION - 1)):
        fresh = ShufflePrivacyAccountant(other)
        with pytest.raises(ValueError, match="config"):
            fresh.load_state_dict(state)
        assert fresh.num_releases == 0
    larger = Accountant().compose(Subsampled(ShuffledLDP(1.0, 5), population=POPULATION + 1))
    wrong = [({**state, "ledger": larger.state_dict()}, "at most 60 clients")]
    wrong += [({k: v for k, v in state.items() if k != name}, name) for name in state]
    for other_state, reason in wrong:
        with pytest.raises(ValueError, match=reason):
            again.load_state_dict(other_state)
    assert again.num_releases == 6


def test_rounds_chosen_as_one_goes() -> None:
    """A filter with the configuration's budget; its state survives, for the same budget only."""
    with pytest.raises(ValueError, match="max_epsilon"):
        ShufflePrivacyAccountant(config(), adaptive=True)
    found = ShufflePrivacyAccountant(config(1.0), adaptive=True)
    found.compose(ROUND, 2)
    found.compose(Subsampled(ShuffledLDP(0.7, COHORT), population=POPULATION))
    assert found.get_epsilon(DELTA) == 1.0 == found.get_privacy_spent().epsilon
    assert tuple(found.epsilon_bounds(DELTA)) == (0.0, 1.0)
    assert found.would_exceed(ROUND, count=10_000) and not found.would_exceed(ROUND)
    with pytest.raises(BudgetExceeded):
        found.compose(ROUND, 10_000)
    again = ShufflePrivacyAccountant(config(1.0), adaptive=True)
    again.load_state_dict(json.loads(json.dumps(found.state_dict())))
    assert again.state_dict() == found.state_dict()
    strategy = ShuffledStrategy(FedAvg(min_available_nodes=POPULATION), ROUND, again)
    left = strategy.rounds_left(1_000)
    strategy.mechanism = Subsampled(ShuffledLDP(3.0, COHORT), population=POPULATION)
    assert 0 <= strategy.rounds_left(1_000) < left


# --- the strategy -------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def run_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages say from which run they come; Flower's runtimes set this."""
    for name in ("_run_id", "_task_id", "_node_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)


class Clients:
    """A grid whose node i answers with the number i, except for those who fail."""

    def __init__(self, size: int = POPULATION, failing: Iterable[int] = ()) -> None:
        self.nodes = range(100, 100 + size)
        self.failing = set(failing)
        self.asked: list[list[int]] = []
        self.weight = 1

    def get_node_ids(self) -> Iterable[int]:
        return list(self.nodes)

    def send_and_receive(self, messages: Any, *, timeout: float | None = None) -> list[Any]:
        messages = list(messages)
        if messages:
            self.asked.append([message.metadata.dst_node_id for message in messages])
        return [self.reply(message) for message in messages]

    def reply(self, message: Any) -> Any:
        node = message.metadata.dst_node_id
        if node in self.failing:
            return Message(Error(code=1, reason="dropped out"), reply_to=message)
        content = RecordDict(
            {
                "arrays": ArrayRecord({"node": Array(np.array([float(node)]))}),
                "metrics": MetricRecord({"num-examples": self.weight if node % 2 else 1}),
            }
        )
        return Message(content, reply_to=message)


class Inner(FedAvg):  # type: ignore[misc]
    """Keeps what it is given."""

    def __init__(self, accountant: Any, **options: Any) -> None:
        super().__init__(fraction_evaluate=0.0, **options)
        self.given: list[list[Any]] = []
        self.composed: list[int] = []
        self.accountant = accountant

    def aggregate_train(self, server_round: int, replies: Any) -> Any:
        replies = list(replies)
        self.given.append(replies)
        self.composed.append(self.accountant.num_releases)
        return super().aggregate_train(server_round, replies)

    def numbers(self) -> list[list[int]]:
        return [[int(r.content["arrays"].to_numpy_ndarrays()[0][0]) for r in replies] for replies in self.given]


def wrapped(limit: float | None = None, *, clients: int | None = None, seed: int = 0) -> ShuffledStrategy:
    """A strategy over an `Inner`."""
    accountant = ShufflePrivacyAccountant(config(limit))
    return ShuffledStrategy(Inner(accountant), ROUND, accountant, clients=clients, rng=random.Random(seed))


def start(strategy: ShuffledStrategy, grid: Clients, rounds: int) -> Any:
    """Flower's own loop."""
    return strategy.start(grid, ArrayRecord([np.zeros(1)]), num_rounds=rounds)


def test_cohorts_are_hidden_and_uniform_and_replies_nameless() -> None:
    """Fresh cohorts of n; the strategy gets their numbers without names, in an order of its own."""
    strategy, grid, rounds = wrapped(), Clients(), 300
    start(strategy, grid, rounds)
    for seed in (0, 1):  # a seed decides alone, whatever order the wrapped strategy offers clients in
        other = Clients()
        start(wrapped(seed=seed), other, 5)
        assert (other.asked == grid.asked[:5]) is (seed == 0)
    given = strategy.strategy.given
    orders = 0
    for asked, numbers in zip(grid.asked, strategy.strategy.numbers(), strict=True):
        assert len(asked) == len(set(asked)) == COHORT and sorted(asked) == sorted(numbers)
        orders += asked == numbers
    assert orders <= 1  # 12! orders
    assert len({tuple(sorted(asked)) for asked in grid.asked}) > 290
    # Every client is drawn 60 times on average, with standard deviation 7; and is anywhere in the order.
    drawn = Counter(node for asked in grid.asked for node in asked)
    assert len(drawn) == POPULATION and min(drawn.values()) > 30 and max(drawn.values()) < 90
    place = np.mean([numbers.index(max(numbers)) for numbers in strategy.strategy.numbers()])
    assert abs(place - (COHORT - 1) / 2) < 1.0
    names = {(r.metadata.src_node_id, r.metadata.reply_to_message_id) for g in given for r in g}
    assert names == {(1, "")}


def test_rounds_are_composed_before_they_are_released() -> None:
    """One round each, known to the accountant when the strategy aggregates; without reports nothing is spent."""
    strategy = wrapped()
    result = start(strategy, Clients(), 4)
    assert strategy.strategy.composed == [1, 2, 3, 4]
    assert strategy.accountant.get_privacy_spent().epsilon == spent(4)
    assert result.evaluate_metrics_clientapp == {}
    strategy = wrapped()
    result = start(strategy, Clients(failing=range(100, 160)), 3)
    assert strategy.accountant.num_releases == 0 == len(strategy.strategy.given)
    assert result.train_metrics_clientapp == {}


@pytest.mark.parametrize("fit", [1, 8])
def test_a_run_ends_with_the_last_round_that_fits(fit: int) -> None:
    """Neither one fewer nor one more, and the result is there."""
    strategy, grid = wrapped((spent(fit) + spent(fit + 1)) / 2), Clients()
    assert strategy.rounds_left(100) == fit and strategy.rounds_left(1) == 1
    result = start(strategy, grid, 50)
    assert len(grid.asked) == fit == strategy.accountant.num_releases
    assert set(result.train_metrics_clientapp) == set(range(1, fit + 1))
    assert strategy.rounds_left(10) == 0
    with pytest.raises(PrivacyBudgetExhausted, match="max_epsilon"):
        start(strategy, grid, 1)
    with pytest.raises(PrivacyBudgetExhausted, match="max_epsilon"):
        strategy.configure_train(9, ArrayRecord([np.zeros(1)]), ConfigRecord(), grid)
    assert len(grid.asked) == fit


def test_spare_clients_make_up_for_those_who_drop_out() -> None:
    """Exactly n of the replies are used, a random n, and the others are discarded."""
    strategy, grid = wrapped(clients=20), Clients(failing=range(100, 115))
    start(strategy, grid, 200)
    numbers = strategy.strategy.numbers()
    assert {len(asked) for asked in grid.asked} == {20}
    assert {len(used) for used in numbers} == {COHORT} and len(numbers) > 150
    assert not grid.failing & {node for used in numbers for node in used}
    drawn = Counter(node for used in numbers for node in used)
    assert len(drawn) == 45 and max(drawn.values()) < 2 * min(drawn.values())
    assert strategy.accountant.num_releases == len(numbers)


def test_replies_nobody_asked_for_are_ignored() -> None:
    """From strangers, twice from one client, or for another round."""
    strategy, grid = wrapped(), Clients()
    messages = strategy.configure_train(1, ArrayRecord([np.zeros(1)]), ConfigRecord(), grid)
    replies = grid.send_and_receive(messages)
    stranger = next(iter(set(grid.nodes) - set(grid.asked[0])))
    record = RecordDict({"arrays": ArrayRecord([np.zeros(1)])})
    foreign = grid.reply(Message(record, stranger, "train"))
    assert strategy.aggregate_train(1, [*replies[1:], replies[1], foreign]) == (None, None)
    assert strategy.aggregate_train(1, replies) == (None, None)  # this round is over
    assert strategy.accountant.num_releases == 0
    with pytest.raises(ValueError, match=r"equal weights .*num-examples"):
        grid.weight = 7
        start(strategy, grid, 1)
    assert strategy.accountant.num_releases == 0


def test_a_population_that_is_too_small_is_refused() -> None:
    """Fewer clients are a larger sampling rate than the accounted one."""
    strategy = wrapped()
    with pytest.raises(ValueError, match="at least 60 clients, got 59"):
        start(strategy, Clients(POPULATION - 1), 1)
    sampling = Inner(strategy.accountant, fraction_train=0.5)
    strategy = ShuffledStrategy(sampling, ROUND, strategy.accountant)
    with pytest.raises(ValueError, match="at least 60 clients, got 30"):
        start(strategy, Clients(), 1)
    larger = wrapped()
    start(larger, Clients(2 * POPULATION), 1)
    assert larger.accountant.num_releases == 1


def test_arguments_of_the_strategy() -> None:
    """TypeError or ValueError with the name."""
    accountant = ShufflePrivacyAccountant(config())
    inner = Inner(accountant)
    cases: list[tuple[type[Exception], str, Any, Any, int | None]] = [
        (ValueError, "mechanism must have users", Gaussian(sigma=1.0), accountant, None),
        (TypeError, "mechanism", "round", accountant, None),
        (TypeError, "accountant", ROUND, Accountant(), None),
        (ValueError, "clients must be from n=12", ROUND, accountant, COHORT - 1),
        (ValueError, "clients must be from n=12", ROUND, accountant, POPULATION + 1),
        (ValueError, "at most 60 clients", ShuffledLDP(1.0, 61), accountant, None),
    ]
    for kind, reason, mechanism, given, clients in cases:
        with pytest.raises(kind, match=reason):
            ShuffledStrategy(inner, mechanism, given, clients=clients)


# --- the example --------------------------------------------------------------------------------


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """benchmarks/flower_digits.py as a module."""
    pytest.importorskip("sklearn", reason="the digits come with scikit-learn")
    monkeypatch.syspath_prepend(str(EXAMPLE.parent))
    yield importlib.import_module("flower_digits")


def test_one_bit_is_eps0_ldp(example: Any) -> None:
    """Truth with probability e^eps0/(e^eps0 + 1), for every coordinate and whatever the data."""
    weights, eps0 = np.zeros((65, 10)), 1.0
    features, labels, _, _ = example.images()
    rng = np.random.default_rng(0)
    coordinates, truths = Counter[int](), 0
    for i in range(4000):
        coordinate, sign = example.one_bit(weights, i % 5, eps0, rng)
        coordinates[coordinate] += 1
        slope = example.rotation()[coordinate] @ example.gradient(weights, features[i % 5], labels[i % 5])
        truths += sign == (1 if slope >= 0 else -1)
    assert abs(truths / 4000 - 0.731059) < 0.03
    assert len(coordinates) > 640 and max(coordinates.values()) < 25
    rotation = example.rotation()
    assert np.abs(rotation @ rotation.T - np.eye(650)).max() < 1e-12


def test_the_example_learns_and_stops_at_its_budget(
    example: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one process, the same two apps as in the simulation; then its tables and its picture."""
    monkeypatch.setenv("FLWR_TELEMETRY_ENABLED", "0")
    common = ["--output", str(tmp_path), "--runtime", "in-process"]
    settings = ["--eps0", "4", "--cohort", "700", "--max-epsilon", "2.6", "--seeds", "5"]
    example.main([*common, "train", *settings])
    rows = list(example.read(tmp_path / "flower_digits_accuracy_in-process.csv"))
    mechanism = Subsampled(ShuffledLDP(eps0=4.0, n=700), population=1437)
    last = int(rows[-1]["round"])
    assert [int(row["round"]) for row in rows] == list(range(last + 1))
    upper = Accountant().compose(mechanism, last).get_epsilon(1e-5)
    assert float(rows[-1]["epsilon"]) == upper <= 2.6
    assert Accountant().compose(mechanism, last + 1).get_epsilon(1e-5) > 2.6
    assert float(rows[-1]["accuracy"]) > 0.2  # guessing gives 0.1
    for analysis in example.ANALYSES:
        example.main([*common, "account", "--analysis", analysis, "--label", "any " + analysis])
    example.main([*common, "account", "--label", "any renyi"])  # replaces these rows
    example.main([*common, "plot"])
    with (tmp_path / "flower_digits_epsilon.csv").open() as handle:
        table = list(csv.DictReader(handle))
    of = {
        label: [float(row["epsilon"]) for row in table if row["label"] == label]
        for label in {row["label"] for row in table}
    }
    assert of["any renyi"] == of["any tightest"] and of["any renyi"][-1] == upper
    assert of["any attack"][-1] <= upper <= of["any stronger-clones"][-1]
    pairs = zip(of["any published"], of["any renyi"], strict=True)
    assert all(theirs >= 0.999 * ours for theirs, ours in pairs)  # one round is the same pair
    assert (tmp_path / "flower_digits.png").stat().st_size > 10_000


def test_clients_take_part_once_per_epoch(
    example: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """benchmarks/flower_epochs.py: cohorts of an epoch are apart, epochs have different orders, the budget is kept."""
    monkeypatch.setenv("FLWR_TELEMETRY_ENABLED", "0")
    epochs, asked = importlib.import_module("flower_epochs"), []
    plain = example.RUNTIMES["in-process"]

    def seen(client: Any) -> Any:
        return lambda message, context: asked.append(context.node_id) or client(message, context)

    monkeypatch.setitem(example.RUNTIMES, "in-process", lambda server, client: plain(server, seen(client)))
    epochs.main(["--runtime", "in-process", "--batches", "3", "--sigma", "8", "--max-epsilon", "0.8", "--seed", "3"])
    rows = [line.split("|") for line in capsys.readouterr().out.splitlines() if re.match(r"\| \d", line)]
    epoch, size = ShuffledBatches(8.0, 3, 478, 1437), 3 * 478
    whole = Accountant().compose(epoch, len(rows))
    assert len(rows) > 1 and float(rows[-1][3]) == round(whole.get_epsilon(1e-5), 4) <= 0.8
    assert whole.compose(epoch).get_epsilon(1e-5) > 0.8
    assert float(rows[-1][2]) > 0.2 and len(asked) == size * len(rows)
    parts = [asked[i : i + size] for i in range(0, len(asked), size)]
    assert all(len(set(part)) == size for part in parts) and parts[0] != parts[1]


def test_the_example_runs_in_flowers_simulation(tmp_path: Path) -> None:
    """1,437 nodes, one round of 30 of them, on the cores of this machine."""
    pytest.importorskip("ray", reason="the simulation needs ray: pip install 'flwr[simulation]'")
    pytest.importorskip("sklearn", reason="the digits come with scikit-learn")
    settings = ["--eps0", "3", "--cohort", "30", "--rounds", "2", "--max-epsilon", "3"]
    command = [sys.executable, str(EXAMPLE), "--output", str(tmp_path), "train", *settings]
    subprocess.run(command, check=True, cwd=ROOT, capture_output=True)
    text = (tmp_path / "flower_digits_accuracy_simulation.csv").read_text().splitlines()
    assert len(text) == 4 and float(text[-1].split(",")[-1]) <= 3.0
