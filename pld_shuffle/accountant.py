"""The accountant: a ledger of rounds, and questions about it."""

from __future__ import annotations

from typing import Any

import numpy as np

from .bracket import Bounds
from .budget import Budget
from .composition import Composition
from .ledger import Ledger
from .mechanisms import Mechanism
from .validation import nonnegatives, probabilities, real, tolerance


class Accountant(Ledger):
    """Certified (epsilon, delta) of the adaptive composition of all rounds composed so far.

    Parameters
    ----------
    rtol : wanted relative width of every bracket on delta, ``upper <= (1 + rtol) * lower``, wherever
        upper >= 1e-100; in (1e-9, 1]. Lattice, windows and tilt follow from it.

    Adaptive means: a round may depend on earlier outputs, while the *parameters* of every round are
    fixed independently of the data. If rtol cannot be met an `AccuracyWarning` says what was reached; the
    answer stays certified. `MemoryError` names the parameter to change.

    >>> from pld_shuffle import ShuffledLDP
    >>> acc = Accountant().compose(ShuffledLDP(eps0=4.0, n=10_000), 10)
    >>> round(acc.get_epsilon(1e-6), 3)
    1.397
    """

    def __init__(self, rtol: float = 1e-3) -> None:
        super().__init__()
        self._rtol = tolerance("rtol", rtol)
        self._budgets: dict[tuple[float, float], Budget] = {}
        self._composition: tuple[tuple[tuple[Mechanism, int], ...], Composition] | None = None

    @property
    def rtol(self) -> float:
        """The wanted relative width of brackets on delta."""
        return self._rtol

    def delta_bounds(self, epsilon: Any) -> Bounds:
        """Bounds(lower, upper) enclosing delta(epsilon), epsilon in [0, inf], scalar or array.

        delta is exactly 0 at or above the sum of the rounds' largest losses (pure DP).
        """
        values = nonnegatives("epsilon", epsilon)
        found = [self._query.delta(float(eps)) for eps in values.ravel()]
        return _shaped(found, values)

    def epsilon_bounds(self, delta: Any) -> Bounds:
        """Bounds(lower, upper) enclosing the smallest epsilon >= 0 with delta(epsilon) <= delta.

        `delta` in [0, 1], scalar or array. At delta = 0: the sum of the rounds' largest losses, or inf.
        """
        values = probabilities("delta", delta)
        found = [self._query.epsilon(float(value)) for value in values.ravel()]
        return _shaped(found, values)

    def get_delta(self, epsilon: Any) -> Any:
        """Certified upper bound on delta at `epsilon`; float, or array for an array."""
        return self.delta_bounds(epsilon).upper

    def get_epsilon(self, delta: Any) -> Any:
        """Certified upper bound on epsilon at `delta`; float, or array for an array."""
        return self.epsilon_bounds(delta).upper

    def would_exceed(
        self, mechanism: Mechanism, *, epsilon: float, delta: float, count: int = 1
    ) -> bool:
        """Whether `count` more rounds of `mechanism` could spend more than `epsilon` at `delta`.

        True unless an upper bound proves that they do not. The ledger stays as it is. Raises TypeError or
        ValueError, also where `compose` would. In a training loop nearly every answer comes from memory
        (see `budget`).

        >>> from pld_shuffle import ShuffledLDP
        >>> acc, batch = Accountant(), ShuffledLDP(eps0=1.0, n=10_000)
        >>> while not acc.would_exceed(batch, epsilon=1.0, delta=1e-6):
        ...     acc = acc.compose(batch)
        >>> acc.get_epsilon(1e-6) <= 1.0 < Accountant().compose(batch, acc.rounds + 1).get_epsilon(1e-6)
        True
        """
        limit = float(nonnegatives("epsilon", real("epsilon", epsilon)))
        allowed = float(probabilities("delta", real("delta", delta)))
        mechanism, count = self._checked(mechanism, count)
        counts = dict(self.ledger)
        counts[mechanism] = counts.get(mechanism, 0) + count
        if (limit, allowed) not in self._budgets:
            self._budgets[limit, allowed] = Budget(limit, allowed, self._rtol)
        return not self._budgets[limit, allowed].holds(counts)

    def get_rdp(self, alpha: Any) -> Any:
        """Upper bound on the Renyi divergence of all rounds at real orders alpha > 1 (they add up).

        What an ideal Renyi accountant would work with; `renyi.RenyiAccountant` is that accountant.
        """
        from .renyi import RenyiAccountant

        accountant = RenyiAccountant()
        for mechanism, count in self.ledger:
            accountant.compose(mechanism, count)
        return accountant.get_rdp(alpha)

    def _settings(self) -> dict[str, Any]:
        return {"rtol": self._rtol}

    @property
    def _query(self) -> Composition:
        """The composition of the present ledger; kept so that one tilt serves many questions."""
        ledger = self.ledger
        if self._composition is None or self._composition[0] != ledger:
            self._composition = ledger, Composition(ledger, self._rtol)
        return self._composition[1]

    def __repr__(self) -> str:
        return f"Accountant(rtol={self._rtol!r}, ledger={list(self.ledger)!r})"


def _shaped(found: list[Bounds], values: np.ndarray) -> Bounds:
    if values.ndim == 0:
        return found[0]
    lower = np.array([bounds.lower for bounds in found], np.float64).reshape(values.shape)
    upper = np.array([bounds.upper for bounds in found], np.float64).reshape(values.shape)
    return Bounds(lower, upper)
