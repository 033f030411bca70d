"""Flower (`flwr` 1.41 or later): shuffled rounds in its server, stopped before the budget is exceeded.

The server is the trusted shuffler: who is protected from whom, and what cannot be checked, is in docs/interop.md.

Neighbours are populations that differ in the data of one client (REPLACE_ONE). Flower's noise multiplier is noise over
the clipping norm of *one* update, and a replaced update moves the sum by up to twice that norm: so
`GaussianPrivacyEvent(z, n, N)` is `Gaussian(sigma=z, sensitivity=2)` on a cohort of rate n/N.
"""

from __future__ import annotations

import copy
import logging
import math
import random
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import Any

try:
    from flwr.app import ArrayRecord, ConfigRecord, Message, MessageType, MetricRecord
    from flwr.serverapp import GaussianPrivacyEvent, Grid, NeighboringRelation, PrivacyConfig, PrivacySpent
    from flwr.serverapp.exception import PrivacyBudgetExhausted
    from flwr.serverapp.strategy import FedAvg, Result, Strategy
except ImportError as error:
    raise ImportError(
        "pld_shuffle.interop.flower needs Flower 1.41 or later: pip install 'pld-shuffle[flower]'"
    ) from error

from ..accountant import Accountant
from ..filter import PrivacyFilter
from ..mechanisms import Gaussian, Mechanism, Subsampled
from ..numerics.sides import Bounds
from . import symmetric

_STATE = {"schema_version": 1, "backend": "pld_shuffle"}
_log = logging.getLogger("flwr")


class ShufflePrivacyAccountant:
    """Certified (epsilon, delta) behind Flower's `PrivacyAccountant` protocol.

    config : a `PrivacyConfig` with neighbouring relation REPLACE_ONE (and so, in Flower, with sampling
        WITHOUT_REPLACEMENT; a cohort may be the whole population).
    rtol : relative width of brackets on delta, as for `Accountant`.
    adaptive : rounds are chosen by what was seen: a `PrivacyFilter` with the configuration's budget, which must have
        a `max_epsilon`. It is the epsilon shown, and `compose` raises BudgetExceeded.

    An event is a mechanism with a symmetric pair, or a `GaussianPrivacyEvent`. Raises ValueError for another
    relation, and for events drawn from more than ``config.population_size`` clients.
    """

    def __init__(self, config: PrivacyConfig, rtol: float = 1e-3, *, adaptive: bool = False) -> None:
        if not isinstance(config, PrivacyConfig):
            raise TypeError(f"config must be a PrivacyConfig, got {config!r}")
        if config.neighboring_relation is not NeighboringRelation.REPLACE_ONE:
            raise ValueError(f"config must have neighboring_relation REPLACE_ONE, got {config!r}")
        if adaptive and config.max_epsilon is None:
            raise ValueError(f"config must have a max_epsilon for adaptive rounds, got {config!r}")
        self._config = config
        self._accountant: Accountant | PrivacyFilter = (
            PrivacyFilter(config.max_epsilon, config.target_delta) if adaptive else Accountant(rtol)
        )

    @property
    def config(self) -> PrivacyConfig:
        """The privacy configuration."""
        return self._config

    @property
    def num_releases(self) -> int:
        """Number of rounds composed so far."""
        return self._accountant.rounds

    def compose(self, event: Mechanism | GaussianPrivacyEvent, count: int = 1) -> None:
        """Add `count` rounds of `event`."""
        self._accountant.compose(self.checked(event), count)

    def get_epsilon(self, delta: float) -> float:
        """Certified upper bound on epsilon at `delta`."""
        return self._accountant.get_epsilon(delta)

    def get_delta(self, epsilon: float) -> float:
        """Certified upper bound on delta at `epsilon`."""
        return self._accountant.get_delta(epsilon)

    def epsilon_bounds(self, delta: float) -> Bounds:
        """As `Accountant.epsilon_bounds`; of a filter the upper end alone is known."""
        if isinstance(self._accountant, PrivacyFilter):
            return Bounds(0.0, self._accountant.get_epsilon(delta))
        return self._accountant.epsilon_bounds(delta)

    def get_privacy_spent(self, delta: float | None = None) -> PrivacySpent:
        """The upper bound on epsilon, by default at the target delta, in Flower's form."""
        delta = self._config.target_delta if delta is None else delta
        spent, method = self.get_epsilon(delta), "pld_shuffle"
        return PrivacySpent(epsilon=spent, delta=delta, num_releases=self.num_releases, accounting_method=method)

    def would_exceed(
        self, event: Mechanism | GaussianPrivacyEvent, max_epsilon: float | None = None, count: int = 1
    ) -> bool:
        """Whether `count` more rounds could spend more than `max_epsilon` at the target delta.

        By default the configuration's `max_epsilon`; ValueError if there is none either. True unless an
        upper bound proves that they do not.
        """
        limit = self._config.max_epsilon if max_epsilon is None else max_epsilon
        if limit is None:
            raise ValueError("max_epsilon must be given here or in the PrivacyConfig, got None")
        return self._accountant.would_exceed(
            self.checked(event), epsilon=limit, delta=self._config.target_delta, count=count
        )

    def state_dict(self) -> dict[str, object]:
        """Configuration and ledger as plain data that JSON can hold."""
        return {**_STATE, "config": self._plain_config(), "ledger": self._accountant.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what `state_dict` gave, for the same configuration; ValueError, and then nothing has changed."""
        for name, value in {**_STATE, "config": self._plain_config()}.items():
            if name not in state or state[name] != value:
                raise ValueError(f"state must have {name} {value!r}, got {state.get(name)!r}")
        if "ledger" not in state:
            raise ValueError(f"state must have a ledger, got {sorted(state)!r}")
        restored = copy.copy(self._accountant)
        restored.load_state_dict(state["ledger"])
        if isinstance(restored, PrivacyFilter):
            budget = restored.epsilon, restored.delta
            if budget != (self._config.max_epsilon, self._config.target_delta):
                raise ValueError(f"state must have the configuration's budget, got {budget!r}")
        for mechanism, _ in restored.ledger:
            self.checked(mechanism)
        self._accountant = restored

    def _plain_config(self) -> dict[str, object]:
        names = ("target_delta", "population_size", "neighboring_relation", "sampling_method", "max_epsilon")
        values = (getattr(self._config, name) for name in names)
        return {name: getattr(value, "value", value) for name, value in zip(names, values, strict=True)}

    def checked(self, event: Mechanism | GaussianPrivacyEvent) -> Mechanism:
        """The mechanism of an event that can be composed. Raises TypeError or ValueError for others."""
        size = self._config.population_size
        if isinstance(event, GaussianPrivacyEvent):
            if event.population_size != size:
                raise ValueError(f"event must be for a population of {size}, got {event!r}")
            noise = Gaussian(sigma=event.noise_multiplier, sensitivity=2.0)
            return Subsampled(noise, rate=event.sample_size / size)
        mechanism = symmetric("event", event)
        if not _population(mechanism) <= size:
            raise ValueError(f"event must draw from at most {size} clients, got {event!r}")
        return mechanism


class ShuffledStrategy(Strategy):  # type: ignore[misc]
    """Shuffles, accounts for and stops another strategy whose clients send local reports.

    It draws the hidden cohort, takes the senders' names off the replies, mixes them, composes the round, and lets no
    round begin that could exceed the budget.

    strategy : what is wrapped. It must offer *every* client of the population a training message
        (``FedAvg(fraction_train=1.0, min_available_nodes=population)``): the cohort is drawn here.
    mechanism : one round, `ShuffledLDP(eps0, n)` or any other with users n, or `Subsampled` of one.
    accountant : a `ShufflePrivacyAccountant`; the budget is its configuration's `max_epsilon`, if any.
    clients : how many to ask, at least n (default: n). Ask more if some may not answer: of the valid replies
        n are kept, uniformly at random, and the others are discarded unread. With fewer than n the round is
        discarded and costs nothing, as nothing of it is released.
    rng : source of cohorts and permutations; by default the operating system's. Only for experiments.

    What is not checked: that a reply is an eps0-LDP report *and nothing else* (no loss, no count of examples that
    depends on the data), and that whether a client answers does not depend on its data and is equally likely for all.
    Weights of a FedAvg must be equal. Clients evaluate nothing (`configure_evaluate`): their metrics would be releases
    that nobody accounts for; use `evaluate_fn`. Raises TypeError or ValueError naming the argument.
    """

    def __init__(
        self, strategy: Strategy, mechanism: Mechanism, accountant: ShufflePrivacyAccountant, *,
        clients: int | None = None, rng: random.Random | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if not isinstance(accountant, ShufflePrivacyAccountant):
            raise TypeError(f"accountant must be a ShufflePrivacyAccountant, got {accountant!r}")
        n = accountant.checked(mechanism).users
        if n is None:
            raise ValueError(f"mechanism must have users who send reports, got {mechanism!r}")
        clients = n if clients is None else clients
        if not n <= clients <= accountant.config.population_size:
            raise ValueError(
                f"clients must be from n={n} to the population's {accountant.config.population_size}, got {clients!r}"
            )
        self.strategy = strategy
        self.mechanism = mechanism
        self.accountant = accountant
        self._least_clients = clients
        self._rng = rng or random.SystemRandom()
        self._asked: dict[int, set[int]] = {}

    def __repr__(self) -> str:
        return f"ShuffledStrategy({self.strategy!r}, {self.mechanism!r})"

    @property
    def _users(self) -> int:
        """Of the mechanism, which may be set anew between rounds where a filter accounts."""
        return self.accountant.checked(self.mechanism).users or 0

    @property
    def _clients(self) -> int:
        return max(self._least_clients, self._users)

    def rounds_left(self, most: int) -> int:
        """How many more rounds fit into the budget, at most `most`."""
        return bisect_left(range(1, most + 1), True, key=self._exceeded)

    def start(self, grid: Grid, initial_arrays: ArrayRecord, num_rounds: int = 3, *args: Any, **kwargs: Any) -> Result:
        """The wrapped strategy's, with as many rounds as the budget allows; PrivacyBudgetExhausted if that is none."""
        allowed = self.rounds_left(num_rounds)
        if allowed < num_rounds:
            _log.warning("The budget allows %d of %d rounds.", allowed, num_rounds)
        if allowed == 0 < num_rounds:
            raise self._exhausted()
        return super().start(grid, initial_arrays, allowed, *args, **kwargs)

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """The wrapped strategy's messages to a fresh random cohort.

        Raises PrivacyBudgetExhausted if the round could exceed the budget; ValueError if the wrapped
        strategy offers fewer clients than the accounted population.
        """
        if self._exceeded(1):
            raise self._exhausted()
        messages = list(self.strategy.configure_train(server_round, arrays, config, grid))
        offered = {message.metadata.dst_node_id for message in messages}
        needed = max(_population(self.mechanism), self._clients)
        if len(offered) < len(messages) or len(offered) < needed:
            got = f"{len(messages)} messages to {len(offered)}"
            raise ValueError(f"strategy must offer one message to each of at least {needed} clients, got {got}")
        messages.sort(key=lambda one: one.metadata.dst_node_id)  # so that `rng` decides alone
        cohort = self._rng.sample(messages, self._clients)
        self._asked[server_round] = {message.metadata.dst_node_id for message in cohort}
        return cohort

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """What the wrapped strategy makes of n nameless replies in random order; composes the round.

        (None, None) if fewer than n valid ones came. Raises ValueError for unequal weights.
        """
        asked = self._asked.pop(server_round, set())
        valid = {
            reply.metadata.src_node_id: reply.content
            for reply in replies
            if not reply.has_error() and reply.metadata.src_node_id in asked
        }
        if len(valid) < self._users:
            _log.warning("Round %d is discarded: %d reports of %d.", server_round, len(valid), self._users)
            return None, None
        kept = self._rng.sample(list(valid.values()), self._users)
        if isinstance(self.strategy, FedAvg):
            key = self.strategy.weighted_by_key
            weights = {one.get(key) for report in kept for one in report.metric_records.values()}
            if len(weights) > 1:  # they would tell replies apart
                raise ValueError(f"replies must have equal weights {key!r}, got {weights!r}")
        self.accountant.compose(self.mechanism)  # before anything can be released
        nameless = [Message(content=report, dst_node_id=0, message_type=MessageType.TRAIN) for report in kept]
        return self.strategy.aggregate_train(server_round, nameless)  # type: ignore[no-any-return]

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """No messages: metrics of clients would not be accounted for."""
        return []

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """None."""
        return None

    def summary(self) -> None:
        """Log the settings."""
        _log.info("\t├──> Every round: %r, %d clients asked", self.mechanism, self._clients)
        _log.info("\t├──> Privacy spent: %s", self.accountant.get_privacy_spent())
        self.strategy.summary()

    def _exceeded(self, count: int) -> bool:
        limited = self.accountant.config.max_epsilon is not None
        return limited and self.accountant.would_exceed(self.mechanism, count=count)

    def _exhausted(self) -> PrivacyBudgetExhausted:
        return PrivacyBudgetExhausted(
            f"Another round could exceed max_epsilon={self.accountant.config.max_epsilon!r}; so far:"
            f" {self.accountant.get_privacy_spent()!r}"
        )


def _population(mechanism: Mechanism) -> int:
    """How many clients the mechanism's cohort must at least be drawn from."""
    users = mechanism.users or 0
    if not isinstance(mechanism, Subsampled):
        return users
    if mechanism.population is not None:
        return mechanism.population
    return math.ceil(users / mechanism.rate * (1.0 - 1e-12))


__all__ = ["ShufflePrivacyAccountant", "ShuffledStrategy"]
