"""The accountant: a ledger of rounds, and questions about it.

delta(epsilon) is H_s of the product of the rounds' dominating pairs, s = e^epsilon; epsilon(delta) is its inverse.
Products of dominating pairs dominate adaptive compositions (docs/theory.md, section 1). Upper ends of answers come from
the mechanisms' pairs, lower ends from their attack pairs. `composition.composition` composes either; whatever it
neglects is put on the safe side (docs/certificates.md).

*Groups*: g users at once, or one user who sends g of the reports. Between two datasets that differ in g users lie g
steps of one user each, so on the composed profile of one user delta_g(eps) <= delta_1(eps/g) (e^eps - 1)/(e^(eps/g) -
1), an upper end. The lower end of one user is one of the group too. Each step must be a change of *one user* whom the
mechanism draws like every other. Where who takes part is hidden and the reports of one user are drawn together, a group
is refused unless it is `DrawnApart` (docs/people.md, section 8).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, overload

import numpy as np

from .composition.composition import Composition
from .composition.moments import MomentFunction
from .composition.would_exceed import Budget
from .ledger import Ledger
from .mechanisms import Mechanism
from .numerics.search import crossing
from .numerics.sides import Array, Bounds, Side
from .numerics.validation import Numbers, Scalar, nonnegatives, probabilities, real, tolerance, users
from .pairs.pair import Pair
from .trainlog import Rounds


class DrawnApart(int):
    """A group's size, where each of its users (or of one user's reports) is drawn by itself, like everybody's.

    >>> from pld_shuffle import Accountant, ShuffledLDP, Subsampled
    >>> acc = Accountant().compose(Subsampled(ShuffledLDP(eps0=1.0, n=1_000), population=10_000))
    >>> round(acc.get_epsilon(1e-6, group=DrawnApart(2)), 3)
    0.023
    """


_DOWN = 1.0 - 4e-16
LARGEST = 700.0  # of the group's epsilon: beyond it, delta is 1 or the losses end
STRIDE = 1.25


def group_delta(composition: Composition, epsilon: float, group: int) -> float:
    """An upper bound on delta at epsilon in [0, inf], for `group` users."""
    return _delta(composition, epsilon / group, group)


def _delta(composition: Composition, share: float, group: int) -> float:
    """The bound at epsilon = group * share."""
    one = float(composition.deltas(share * _DOWN).upper)
    if one == 0.0:
        return 0.0
    if group * share > LARGEST:
        return 1.0
    steps = math.expm1(group * share) / math.expm1(share) if share > 1e-300 else float(group)
    return min(1.0, one * steps * (1.0 + 4e-16 * (8.0 + 2.0 * group * share)))


def group_epsilon(composition: Composition, allowed: float, group: int) -> float:
    """An upper bound on the epsilon of the delta `allowed`, in [0, 1], for `group` users; inf where none is found."""

    def excess(share: Any) -> float:
        return _delta(composition, float(share), group) - allowed

    end = composition.max_loss
    if allowed == 0.0:
        return group * end * (1.0 + 4e-16)
    if excess(0.0) <= 0.0:
        return 0.0
    low, high = 0.0, float(composition.epsilons(allowed).upper)
    if high == math.inf:
        return math.inf
    while excess(high) > 0.0:
        low, high = high, min(max(STRIDE * high, 1e-9), end * (1.0 + 1e-15))
        if group * high > LARGEST and high < end:
            return group * end * (1.0 + 4e-16)
    found = crossing(excess, (low, excess(low)), (high, excess(high)), rtol=1e-9)
    return group * float(found) * (1.0 + 4e-16)


class Gap(NamedTuple):
    """Epsilon at a delta: no analysis goes below `attack`, these analyses not below `analysis`; `proved` is certified.

    Floats, or arrays of one shape. The first and the last are the bracket of `epsilon_bounds`.
    """

    attack: Any
    analysis: Any
    proved: Any


class Question(NamedTuple):
    """What can be asked: the name and check of what is given, and who answers."""

    given: str
    check: Callable[..., Array]
    of_one: Callable[[Composition, Array], Bounds]
    of_group: Callable[[Composition, float, int], float]

    def of_groups(self, composition: Composition, given: Array, group: int) -> Any:
        """The upper bounds for `group` users at values of any shape."""
        found = [self.of_group(composition, float(value), group) for value in given.ravel()]
        return np.reshape(found, given.shape) if given.ndim else found[0]


DELTA = Question("epsilon", nonnegatives, Composition.deltas, group_delta)
EPSILON = Question("delta", probabilities, Composition.epsilons, group_epsilon)


class Accountant(Ledger):
    """Certified (epsilon, delta) of the adaptive composition of all rounds composed so far.

    rtol : wanted relative width of every bracket on delta, ``upper <= (1 + rtol) * lower``, wherever
        upper >= 1e-100; in (1e-9, 1]. Lattice, windows and tilt follow from it. An attack that lies far below the
        analyses may be known to five times that.

    Adaptive means: a round may depend on earlier outputs, while the *parameters* of every round are fixed independently
    of the data. Rounds of the list may be skipped, reordered or stopped early because of what was seen, if the *whole*
    list is quoted. Rounds that were chosen by what was seen can spend more than an accountant of them says: use a
    `PrivacyFilter` or a `PrivacyOdometer` (docs/howto/adaptive.md). If rtol cannot be met an `AccuracyWarning` says
    what was reached; the answer stays certified. Questions raise TypeError or ValueError naming the argument, and
    MemoryError naming the parameter to change.

    Complexity: the first question composes the ledger. Each distinct mechanism's pair is formed once a side, in time
    O(sqrt(n)) or O(1) in the number of users. The composition costs a few transforms, or sums over a contour, whose
    size depends on rtol and hardly on the number of rounds. Further questions are mostly read off the same composition.

    >>> from pld_shuffle import ShuffledLDP
    >>> acc = Accountant().compose(ShuffledLDP(eps0=4.0, n=10_000), 10)
    >>> round(acc.get_epsilon(1e-6), 3)
    1.385
    """

    SETTINGS = ("rtol",)

    def __init__(self, rtol: float = 1e-3) -> None:
        super().__init__()
        self._rtol = tolerance("rtol", rtol)
        self._budgets: dict[tuple[float, float], Budget] = {}
        self._asked: Rounds | None = None
        self._kept: dict[Side, Composition] = {}

    @property
    def rtol(self) -> float:
        """The wanted relative width of brackets on delta."""
        return self._rtol

    @overload
    def delta_bounds(self, epsilon: Scalar, *, group: int = ...) -> Bounds[float]: ...
    @overload
    def delta_bounds(self, epsilon: Numbers, *, group: int = ...) -> Bounds[Array]: ...
    def delta_bounds(self, epsilon: Any, *, group: int = 1) -> Any:
        """Bounds(lower, upper) enclosing delta(epsilon), epsilon in [0, inf], scalar or array.

        The upper end is proved by the mechanisms' pairs; the lower end is an attack's where the analysis is not
        exact. delta is exactly 0 at or above the sum of the rounds' largest losses (pure DP). An epsilon that is no
        double (a Fraction, a longdouble) is answered for itself: each end is that of its neighbour on the safe side.

        group : how many users change together, or how many of the reports one user sends. The upper end grows
        (`group_delta`); the lower end stays that of one user. Where participants are hidden, only
        `DrawnApart(g)` is taken: users, or reports, that are drawn each by itself. Reports that are drawn together
        are another thing, for which nothing is proved.
        """
        return self._answer(DELTA, epsilon, group)

    @overload
    def epsilon_bounds(self, delta: Scalar, *, group: int = ...) -> Bounds[float]: ...
    @overload
    def epsilon_bounds(self, delta: Numbers, *, group: int = ...) -> Bounds[Array]: ...
    def epsilon_bounds(self, delta: Any, *, group: int = 1) -> Any:
        """Bounds(lower, upper) enclosing the smallest epsilon >= 0 with delta(epsilon) <= delta.

        `delta` in [0, 1], scalar or array; Fractions as for `delta_bounds`. At delta = 0: the sum of the rounds'
        largest losses, or inf. `group`: see `delta_bounds`.

        >>> from pld_shuffle import ShuffledLDP
        >>> acc = Accountant().compose(ShuffledLDP(eps0=1.0, n=10_000), 10)
        >>> [round(acc.get_epsilon(1e-6, group=g), 3) for g in (1, 2, 3)]
        [0.131, 0.274, 0.423]
        """
        return self._answer(EPSILON, delta, group)

    def gap_bounds(self, delta: Any) -> Gap:
        """The two parts of the bracket of `epsilon_bounds` at `delta`: what is missing, and what is numerical.

        From `attack` to `analysis` is what a better analysis could still gain, to some times rtol; from there to
        `proved` is numerical, and rtol governs it. Where the attacks are the pairs themselves there is no gap.

        >>> from pld_shuffle import ShuffledLDP
        >>> acc = Accountant().compose(ShuffledLDP(eps0=4.0, n=10_000))
        >>> [round(epsilon, 4) for epsilon in acc.gap_bounds(1e-6)]
        [0.4066, 0.4071, 0.4071]
        """
        low, high = (probabilities("delta", delta, side) for side in (Side.LOWER, Side.UPPER))
        self._look_at(low)
        with self._lock:
            analysis, attacks = self._composed(Side.UPPER), self._composed(Side.LOWER)
            proved = analysis.epsilons(low)
            nearer = proved if np.array_equal(low, high) else analysis.epsilons(high)
            attack = nearer if attacks is analysis else attacks.epsilons(high)
            least = np.minimum(attack.lower, nearer.lower)
            return Gap(least if np.ndim(least) else float(least), nearer.lower, proved.upper)

    @overload
    def get_delta(self, epsilon: Scalar, *, group: int = ...) -> float: ...
    @overload
    def get_delta(self, epsilon: Numbers, *, group: int = ...) -> Array: ...
    def get_delta(self, epsilon: Any, *, group: int = 1) -> Any:
        """Certified upper bound: the upper end of `delta_bounds`, without what only its lower end needs."""
        return self._answer(DELTA, epsilon, group, both=False)

    @overload
    def get_epsilon(self, delta: Scalar, *, group: int = ...) -> float: ...
    @overload
    def get_epsilon(self, delta: Numbers, *, group: int = ...) -> Array: ...
    def get_epsilon(self, delta: Any, *, group: int = 1) -> Any:
        """Certified upper bound: the upper end of `epsilon_bounds`, without what only its lower end needs."""
        return self._answer(EPSILON, delta, group, both=False)

    def would_exceed(self, mechanism: Mechanism, *, epsilon: float, delta: float, count: int = 1) -> bool:
        """Whether `count` more rounds of `mechanism` could spend more than `epsilon` at `delta`.

        True unless an upper bound proves that they do not. The ledger stays as it is. Raises TypeError or
        ValueError, also where `compose` would. In a training loop nearly every answer comes from memory
        (see `composition.would_exceed`).

        >>> from pld_shuffle import ShuffledLDP
        >>> acc, batch = Accountant(), ShuffledLDP(eps0=1.0, n=10_000)
        >>> while not acc.would_exceed(batch, epsilon=1.0, delta=1e-6):
        ...     acc = acc.compose(batch)
        >>> acc.get_epsilon(1e-6) <= 1.0 < Accountant().compose(batch, acc.rounds + 1).get_epsilon(1e-6)
        True
        """
        limit = float(nonnegatives("epsilon", real("epsilon", epsilon, Side.LOWER)))
        allowed = float(probabilities("delta", real("delta", delta, Side.LOWER)))
        with self._lock:
            mechanism, count = self._checked(mechanism, count)
            counts = dict(self.ledger)
            counts[mechanism] = counts.get(mechanism, 0) + count
            spent = {self._pair(held): rounds for held, rounds in counts.items()}
            if (limit, allowed) not in self._budgets:
                self._budgets[limit, allowed] = Budget(limit, allowed, self._rtol)
            return not self._budgets[limit, allowed].holds(spent)

    def certificate(self, delta: float, *, progress: Callable[[int, int], None] = lambda done, total: None) -> str:
        """What the ledger spends at `delta`, in (0, 1), as JSON text that `pld-shuffle-check` proves anew.

        The epsilon that is claimed lies up to 1 % above `get_epsilon`, usually 0.1 to 0.5 %. The format and what is
        covered: docs/certificate_format.md. Raises ValueError naming a mechanism that is not covered, or saying that
        no claim as near as that was found. Some seconds where a swap theorem is the tightest, else far less.
        progress : called with (mechanisms done, in all), and anew for a finer lattice.

        >>> import json
        >>> from pld_shuffle import ShuffledRR
        >>> acc = Accountant().compose(ShuffledRR(k=4, n=1000, gamma=0.25), 16)
        >>> claim = json.loads(acc.certificate(1e-4))["claim"]
        >>> round(acc.get_epsilon(1e-4), 4), round(claim["epsilon"], 4)
        (2.2552, 2.2586)
        """
        from .certificate import certificate

        asked = float(probabilities("delta", real("delta", delta, Side.LOWER)))
        with self._lock:
            return certificate(self.ledger, asked, self.get_epsilon(asked), progress)

    def _answer(self, question: Question, value: Any, group: int, both: bool = True) -> Any:
        """Upper ends, by the analyses next below the value; if `both`, lower ends by the attacks next above it."""
        size = users("group", group)
        hidden = next((held for held, _ in self.ledger if held.hidden), None)
        if size > 1 and hidden is not None and not isinstance(group, DrawnApart):
            # A round may draw the reports of one user together.
            raise ValueError(
                f"group must be DrawnApart({size}), each of them drawn by itself, where participants are"
                f" hidden, got {group!r} with {hidden!r}"
            )
        low, high = (question.check(question.given, value, side) for side in (Side.LOWER, Side.UPPER))
        self._look_at(**{question.given: low})
        with self._lock:
            analysis = self._composed(Side.UPPER)
            if not both and size > 1:
                return question.of_groups(analysis, low, size)
            proved = question.of_one(analysis, low)
            if not both:
                return proved.upper
            attacks = self._composed(Side.LOWER)
            alike = attacks is analysis and np.array_equal(low, high)
            lower = (proved if alike else question.of_one(attacks, high)).lower
            return Bounds(lower, proved.upper if size == 1 else question.of_groups(analysis, low, size))

    def _composed(self, side: Side) -> Composition:
        """The pairs of the present ledger, for lower ends the attacks; kept, so that one tilt serves many questions."""
        if self._asked != self.ledger:
            self._asked, self._kept = self.ledger, {}
        if side not in self._kept:
            pairs = [(self._pair(held), count) for held, count in self.ledger]
            if side is Side.UPPER:
                self._kept[side] = Composition(pairs, self._rtol)
            else:
                proved = self._composed(Side.UPPER)
                attacks = [(self._pair(held, "attack_pair"), count) for held, count in self.ledger]
                alike = all(pair is attack for (pair, _), (attack, _) in zip(pairs, attacks, strict=True))
                self._kept[side] = proved if alike else Composition(attacks, self._rtol, proved)
        return self._kept[side]

    def laws(self, side: Side) -> dict[Pair, MomentFunction]:
        """Laws of single rounds that the latest answers were composed of: the analyses' upper, the attacks' lower."""
        return self._composed(side).laws(side)
