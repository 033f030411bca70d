"""pfl-research (`pfl` 0.6): a callback that accounts for shuffled iterations and stops the training.

pfl asks its callbacks after every central iteration whether to go on, so the question answered here is
whether *one more* iteration still fits into the budget. Whether one fits at all is asked before the first.
"""

from __future__ import annotations

from typing import Any

try:
    from pfl.aggregate.base import get_num_devices_weight_name
    from pfl.callback.base import TrainingProcessCallback
    from pfl.common_types import Population
    from pfl.metrics import Metrics, StringMetricName, get_overall_value
except ImportError as error:
    raise ImportError("pld_shuffle.interop.pfl needs pfl 0.6 or later: pip install 'pld-shuffle[pfl]'") from error

from ..accountant import Accountant
from ..filter import BudgetExceeded, PrivacyFilter
from ..mechanisms import Mechanism, as_mechanism
from ..numerics.validation import open_unit, positive_float

EPSILON, DELTA = "shuffle privacy | epsilon", "shuffle privacy | delta"


class ShufflePrivacyCallback(TrainingProcessCallback):  # type: ignore[misc]
    """Composes one round of `mechanism` per central iteration; stops before the budget is exceeded.

    mechanism : one iteration's training cohort, e.g. ``Subsampled(ShuffledLDP(eps0, n), population=N)``.
        The local randomizer is a postprocessor or the model's business; n is the training cohort's size.
    delta : in (0, 1).
    max_epsilon : the budget, at `delta`; None never stops.
    accountant : to go on from an earlier ledger (default: a new one). The callback composes into it. With a
        `PrivacyFilter`, at its delta, `mechanism` may be set anew between iterations because of what was seen; its
        budget is `max_epsilon`, and the epsilon shown.

    After each iteration the metrics get "shuffle privacy | epsilon", a certified upper bound, and its delta.
    A budget that allows no iteration is a ValueError before the first, which no callback can stop. So is an
    iteration that trained on other than n devices: it is not the one that is accounted for. What clients
    measure (pfl's metrics, validation cohorts) is not accounted for; release none of it.
    """

    def __init__(
        self, mechanism: Mechanism, *, delta: float, max_epsilon: float | None = None,
        accountant: Accountant | PrivacyFilter | None = None,
    ) -> None:  # fmt: skip
        self._delta = open_unit("delta", delta)
        self._limit = None if max_epsilon is None else positive_float("max_epsilon", max_epsilon)
        self.accountant = Accountant() if accountant is None else accountant
        if not isinstance(self.accountant, (Accountant, PrivacyFilter)):
            raise TypeError(f"accountant must be an Accountant or a PrivacyFilter, got {accountant!r}")
        if isinstance(self.accountant, PrivacyFilter):
            self._limit = self.accountant.epsilon if self._limit is None else self._limit
            if (self._limit, self._delta) != (self.accountant.epsilon, self.accountant.delta):
                raise ValueError(
                    f"max_epsilon and delta must be the budget of the filter {accountant!r}, got"
                    f" {max_epsilon!r} and {delta!r}"
                )
        self._mechanism = as_mechanism(mechanism)

    @property
    def mechanism(self) -> Mechanism:
        """One iteration. To set another one that does not fit into a filter's budget is a BudgetExceeded."""
        return self._mechanism

    @mechanism.setter
    def mechanism(self, mechanism: Mechanism) -> None:
        known = as_mechanism(mechanism)
        if not isinstance(self.accountant, PrivacyFilter):
            raise TypeError("accountant must be a PrivacyFilter where mechanisms are chosen as one goes")
        if not self.accountant.admits(known):
            raise BudgetExceeded(f"mechanism must fit into what is left, got {mechanism!r}")
        self._mechanism = known

    def on_train_begin(self, *, model: Any) -> Metrics:
        """No metrics; ValueError if the first iteration could exceed the budget."""
        if self._exceeded():
            raise ValueError(
                f"max_epsilon must allow one iteration of {self.mechanism!r}, got {self._limit!r}"
                f" with {self.accountant.rounds} rounds composed"
            )
        return Metrics()

    def after_central_iteration(
        self, aggregate_metrics: Metrics, model: Any, *, central_iteration: int
    ) -> tuple[bool, Metrics]:
        """(whether another iteration could exceed the budget, what has been spent)."""
        # Simulations and pfl's platforms say how many devices were aggregated.
        n, name = self.mechanism.users, get_num_devices_weight_name(Population.TRAIN)
        if n is not None and name in aggregate_metrics:
            devices = get_overall_value(aggregate_metrics[name])
            if devices != n:
                raise ValueError(
                    f"the training cohort must have the mechanism's n={n} devices, got {devices!r} in iteration"
                    f" {central_iteration}"
                )
        self.accountant.compose(self.mechanism)
        spent = {EPSILON: self.accountant.get_epsilon(self._delta), DELTA: self._delta}
        return self._exceeded(), Metrics([(StringMetricName(name), value) for name, value in spent.items()])

    def _exceeded(self) -> bool:
        return self._limit is not None and self.accountant.would_exceed(
            self.mechanism, epsilon=self._limit, delta=self._delta
        )


__all__ = ["ShufflePrivacyCallback"]
