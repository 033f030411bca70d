"""pfl-research: its own training loop counts one round an iteration, and stops before the budget."""

from __future__ import annotations

import math
import warnings
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from pld_shuffle import Accountant, BudgetExceeded, PrivacyFilter, ShuffledLDP, Subsampled

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("pfl", reason="needs pfl-research: pip install 'pld-shuffle[pfl]'")
    from pfl.aggregate.simulate import SimulatedBackend
    from pfl.algorithm.base import FederatedAlgorithm, NNAlgorithmParams
    from pfl.callback.base import TrainingProcessCallback
    from pfl.common_types import Population
    from pfl.context import CentralContext
    from pfl.data.dataset import Dataset
    from pfl.data.federated_dataset import FederatedDataset
    from pfl.metrics import Metrics
    from pfl.stats import MappedVectorStatistics

    from pld_shuffle.interop.pfl import DELTA, EPSILON, ShufflePrivacyCallback

COHORT, POPULATION = 20, 200
ROUND = Subsampled(ShuffledLDP(eps0=1.0, n=COHORT), population=POPULATION)


class Bits(FederatedAlgorithm):  # type: ignore[misc]
    """Every user sends a randomised bit, the model is the list of their sums."""

    rng = np.random.default_rng(1)

    def get_next_central_contexts(
        self, model: Any, iteration: int, algorithm_params: Any, model_train_params: Any, model_eval_params: Any = None
    ) -> Any:
        if iteration == algorithm_params.central_num_iterations:
            return None, model, Metrics()
        context = CentralContext(
            current_central_iteration=iteration,
            do_evaluation=False,
            cohort_size=algorithm_params.train_cohort_size,
            population=Population.TRAIN,
            algorithm_params=algorithm_params,
            model_train_params=model_train_params,
            model_eval_params=model_eval_params,
            seed=iteration,
        )
        return (context,), model, Metrics()

    def simulate_one_user(self, model: Any, user_dataset: Any, central_context: Any) -> Any:
        bit = user_dataset.raw_data[0][0] ^ (self.rng.random() < 1 / (1 + math.e))
        return MappedVectorStatistics({"ones": np.array([bit], float)}), Metrics()

    def process_aggregated_statistics(
        self, central_context: Any, aggregate_metrics: Any, model: Any, statistics: Any
    ) -> Any:
        return [*model, float(statistics["ones"][0])], Metrics()


class Recorder(TrainingProcessCallback):  # type: ignore[misc]
    """Keeps every iteration's metrics."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def after_central_iteration(self, aggregate_metrics: Any, model: Any, *, central_iteration: int) -> Any:
        self.seen.append(aggregate_metrics)
        return False, Metrics()


def trained(callback: ShufflePrivacyCallback, *, most: int, cohort: int = COHORT) -> Recorder:
    """pfl's own loop over its simulated backend; what was seen."""
    rng = np.random.default_rng(0)
    users = {i: Dataset([rng.integers(2, size=1)], user_id=str(i)) for i in range(POPULATION)}
    data = FederatedDataset(lambda i: users[i], lambda: int(rng.integers(POPULATION)))
    recorder = Recorder()
    parameters = NNAlgorithmParams(
        central_num_iterations=most, evaluation_frequency=1, train_cohort_size=cohort, val_cohort_size=None
    )
    model = Bits().run(
        parameters,
        SimulatedBackend(data, data),
        [],
        Mock(),
        callbacks=[callback, recorder],
        send_metrics_to_platform=False,
    )
    assert len(model) == len(recorder.seen)
    return recorder


def spent(rounds: int) -> float:
    """What an accountant alone says."""
    return float(Accountant().compose(ROUND, rounds).get_epsilon(1e-5))


def test_training_stops_at_the_last_iteration_that_fits() -> None:
    """Not one fewer, not one more; the metrics say what was spent after each."""
    budget = (spent(7) + spent(8)) / 2
    callback = ShufflePrivacyCallback(ROUND, delta=1e-5, max_epsilon=budget)
    seen = trained(callback, most=50).seen
    assert len(seen) == 7 == callback.accountant.rounds
    assert [metrics[EPSILON] for metrics in seen] == [spent(i + 1) for i in range(7)]
    assert {metrics[DELTA] for metrics in seen} == {1e-5}


def test_without_a_budget_it_only_counts() -> None:
    """All iterations run."""
    callback = ShufflePrivacyCallback(ROUND, delta=1e-5)
    assert len(trained(callback, most=5).seen) == 5
    assert callback.accountant.get_epsilon(1e-5) == spent(5)


def test_going_on_from_an_earlier_ledger() -> None:
    """What the accountant holds already counts."""
    accountant = Accountant().compose(ROUND, 5)
    budget = (spent(7) + spent(8)) / 2
    callback = ShufflePrivacyCallback(ROUND, delta=1e-5, max_epsilon=budget, accountant=accountant)
    assert len(trained(callback, most=50).seen) == 2 and accountant.rounds == 7


def test_a_budget_for_no_iteration_is_refused_before_the_first() -> None:
    """A callback could not stop it."""
    callback = ShufflePrivacyCallback(ROUND, delta=1e-5, max_epsilon=spent(1) * 0.99)
    with pytest.raises(ValueError, match="max_epsilon must allow one iteration"):
        trained(callback, most=50)
    assert callback.accountant.rounds == 0


@pytest.mark.parametrize("cohort", [COHORT - 1, COHORT + 1])
def test_another_cohort_is_refused(cohort: int) -> None:
    """A round with other than n devices is not the round that is accounted for."""
    with pytest.raises(ValueError, match=f"n={COHORT} devices, got {cohort}"):
        trained(ShufflePrivacyCallback(ROUND, delta=1e-5), most=3, cohort=cohort)


def test_arguments_are_named() -> None:
    """TypeError or ValueError with the name."""
    for name, error, given in (
        ("delta", ValueError, {"delta": 0.0}), ("delta", ValueError, {"delta": 1.0}),
        ("max_epsilon", ValueError, {"max_epsilon": -1.0}), ("max_epsilon", ValueError, {"max_epsilon": math.nan}),
        ("mechanism", TypeError, {"mechanism": 3}), ("accountant", TypeError, {"accountant": 3}),
    ):  # fmt: skip
        with pytest.raises(error, match=name):
            ShufflePrivacyCallback(**{"mechanism": ROUND, "delta": 1e-5, **given})


def test_iterations_are_chosen_as_one_goes() -> None:
    """With a filter the mechanism may be set anew; its budget is the limit, and what does not fit is refused."""
    run = PrivacyFilter(0.2, 1e-6)
    callback = ShufflePrivacyCallback(ROUND, delta=1e-6, accountant=run)
    callback.on_train_begin(model=None)
    stop, metrics = callback.after_central_iteration(Metrics(), None, central_iteration=0)
    assert not stop and metrics[EPSILON] == 0.2
    stronger = Subsampled(ShuffledLDP(eps0=1.2, n=COHORT), population=POPULATION)
    callback.mechanism = stronger
    callback.after_central_iteration(Metrics(), None, central_iteration=1)
    assert [mechanism for mechanism, _ in run.ledger] == [ROUND, stronger]
    with pytest.raises(BudgetExceeded, match="mechanism must fit"):
        callback.mechanism = ShuffledLDP(eps0=3.0, n=COHORT)
    with pytest.raises(ValueError, match="max_epsilon and delta must be the budget"):
        ShufflePrivacyCallback(ROUND, delta=1e-6, max_epsilon=0.5, accountant=run)
    with pytest.raises(TypeError, match="accountant must be a PrivacyFilter"):
        ShufflePrivacyCallback(ROUND, delta=1e-6).mechanism = stronger
