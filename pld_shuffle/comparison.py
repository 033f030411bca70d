"""What tight accounting buys: every bound that is valid at one setting, side by side.

A bound is listed if it covers the randomizer *and* the adversary (`bounds.Adversary`) that were asked about. One
against an adversary who sees more is valid for one who sees less, never the other way round: not even pure local DP
covers the strong adversary. With subsampling everything is for somebody who sees the shuffled reports only.

Single-round guarantees (epsilon_1, delta_1) become guarantees for the asked rounds in two steps: a hidden random cohort
at rate q gives (log(1 + q (e^epsilon_1 - 1)), q delta_1) (Balle, Barthe, Gaboardi 2018), and k rounds compose optimally
(Kairouz, Oh, Viswanath 2015, Theorem 3.3), with the best of a few ways to share out delta.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from . import bounds
from .accountant import Accountant
from .bounds import Adversary
from .composition.composition import Composition
from .mechanisms import Mechanism, ShuffledLDP, ShuffledRandomizer, ShuffledRR, Subsampled, SummedNoise
from .mechanisms.shuffled import Shuffled
from .numerics.sides import Bounds, upper_text
from .numerics.validation import open_unit, positive_int
from .randomizers import KRandomizedResponse, Laplace
from .renyi import RenyiAccountant
from .shares import Binomial, DiscreteGaussian, Share, Skellam

_SHARES = (0.5, 0.1, 0.9, 0.01)  # of delta, given to the single rounds; the rest is for their composition
#: Analyses of one round that their papers evaluate numerically; here that is done by the accountant.
NUMERICAL = {"stronger clones": "Feldman et al. 2023", "clones": "Feldman et al. 2021, Thm 3.2"}


@dataclass(frozen=True)
class Method:
    """A valid upper bound on epsilon.

    factor : epsilon over the upper end of the tight bracket. kind : "pld", "rdp", "composed" or
    "local". note : what was optimised, or how it was composed; may be empty.
    """

    name: str
    source: str
    kind: str
    epsilon: float
    factor: float
    note: str


@dataclass(frozen=True)
class Excluded:
    """A bound that does not apply at the setting, and why."""

    name: str
    source: str
    reason: str


@dataclass(frozen=True, repr=False)
class Comparison:
    """All bounds at one setting; its repr is a table.

    tight : certified enclosure of epsilon for the mechanism asked about. methods : valid upper
    bounds, the smallest first. excluded : the others.
    """

    mechanism: Mechanism
    rounds: int
    delta: float
    tight: Bounds
    methods: tuple[Method, ...]
    excluded: tuple[Excluded, ...]

    def __getitem__(self, name: str) -> Method:
        """The method of that name; KeyError if it is not among the valid ones."""
        return {method.name: method for method in self.methods}[name]

    def __repr__(self) -> str:
        lines = [f"epsilon of {self.rounds} x {self.mechanism!r} at delta = {self.delta:g}: valid upper bounds"]
        lines += [f"{upper_text(m.epsilon):>12} {m.factor:9.3f}   {m.name} [{m.source}]" for m in self.methods]
        return "\n".join([*lines, f"{len(self.excluded)} more are not valid here: excluded says why"])


def compare(mechanism: Mechanism, *, delta: float, rounds: int = 1, rtol: float = 1e-3) -> Comparison:
    """Every published bound on epsilon that is valid for `rounds` of `mechanism` at `delta`.

    Parameters: mechanism, a Shuffled, ShuffledLDP, ShuffledRandomizer or ShuffledRR, subsampled or not, or the
    SummedNoise of one coordinate; delta in (0, 1); rounds; rtol of the tight accountant. Raises TypeError or ValueError
    naming the argument. Cost: seconds.

    >>> found = compare(ShuffledLDP(eps0=4.0, n=10_000), delta=1e-6, rounds=10)
    >>> [method.name for method in found.methods[:2]]
    ['PLD, tightest analysis', 'PLD, stronger clones']
    """
    rounds = positive_int("rounds", rounds)
    failure = open_unit("delta", delta)
    setting = _setting(mechanism, rounds, failure)
    tight = Accountant(rtol=rtol).compose(mechanism, rounds).epsilon_bounds(failure)
    methods: list[Method] = []
    excluded: list[Excluded] = []
    for name, source, kind, covers, answer in _candidates(mechanism, setting, tight, rtol):
        try:
            if covers < setting.sees:
                raise bounds.OutOfRange(
                    f"it covers an adversary who sees {covers.sees}; the one asked about sees {setting.sees.sees}"
                )
            epsilon, note = answer()
            if epsilon == math.inf and tight.upper < math.inf:
                raise bounds.OutOfRange(note or "it gives no finite epsilon")
        except bounds.OutOfRange as error:
            excluded.append(Excluded(name, source, str(error)))
            continue
        factor = epsilon / tight.upper if 0.0 < tight.upper < math.inf else math.nan
        methods.append(Method(name, source, kind, epsilon, factor, note))
    methods.sort(key=lambda method: method.epsilon)
    return Comparison(mechanism, rounds, failure, tight, tuple(methods), tuple(excluded))


class _Setting(NamedTuple):
    """What the bounds of the literature take, from the mechanism asked about.

    k : the number of values of k-RR. only : what the randomizer is, in the words of `Bound.only`.
    """

    eps0: float
    n: int
    rate: float
    population: int
    sees: Adversary
    rounds: int
    delta: float
    k: int | None
    only: frozenset[str]


def _setting(mechanism: Mechanism, rounds: int, delta: float) -> _Setting:
    if isinstance(mechanism, SummedNoise):
        if mechanism.coordinates > 1:
            raise ValueError(f"mechanism must have one coordinate to be compared, got {mechanism!r}")
        clients = mechanism.clients
        return _Setting(math.inf, clients, 1.0, clients, Adversary.REPORTS, rounds, delta, None, frozenset())
    whole = _whole(mechanism)
    rate, population, sees = 1.0, None, Adversary.REPORTS  # who sees more knows who took part
    if isinstance(mechanism, Subsampled):
        if mechanism.dropout or mechanism.dropout_limit or mechanism.colluding:
            raise ValueError(
                "mechanism must have no dropout and no colluding users, since no bound of the literature"
                f" covers them, got {mechanism!r}"
            )
        rate, population = mechanism.rate, mechanism.population
    elif isinstance(whole, ShuffledRR):
        sees = Adversary.WEAK if whole.adversary == "weak" else Adversary.STRONG
    if population is None:
        # Fewer users make the rate larger, the safe side.
        population = math.floor(whole.n / rate * (1.0 + 1e-9))
    local = whole.randomizer if isinstance(whole, Shuffled) else whole
    k = local.k if isinstance(local, (ShuffledRR, KRandomizedResponse)) else None
    names = {
        "k-ary randomized response": k is not None,
        "binary randomized response": k == 2,
        "the Laplace mechanism": isinstance(local, Laplace),
    }
    only = frozenset(name for name, known in names.items() if known)
    return _Setting(local.eps0, whole.n, rate, population, sees, rounds, delta, k, only)


def _whole(asked: Any) -> Shuffled | ShuffledLDP | ShuffledRandomizer | ShuffledRR:
    """What every user of a round ran, without the drawing of users; TypeError if the literature is not about it."""
    whole = asked.mechanism if isinstance(asked, Subsampled) else asked
    if not isinstance(whole, (Shuffled, ShuffledLDP, ShuffledRandomizer, ShuffledRR)):
        raise TypeError(
            "mechanism must be a Shuffled, ShuffledLDP, ShuffledRandomizer or ShuffledRR, subsampled or"
            f" not, or a SummedNoise, got {asked!r}"
        )
    if isinstance(whole, Shuffled) and not whole.randomizer.pure:
        raise TypeError(f"mechanism must have a pure randomizer with a finite eps0, got {asked!r}")
    if isinstance(whole, ShuffledRandomizer) and whole.p is not None:
        raise TypeError(
            "mechanism must be given by its eps0, since the bounds of the literature are about eps0-LDP"
            f" randomizers, got {asked!r}"
        )
    return whole


#: A bound's name, source and kind, whom it covers, and what computes (epsilon, note) or raises OutOfRange.
_Candidate = tuple[str, str, str, Adversary, Callable[[], tuple[float, str]]]


def _candidates(asked: Mechanism, s: _Setting, tight: Bounds, rtol: float) -> Iterator[_Candidate]:
    """Every bound known here."""

    def by_pld(mechanism: Mechanism) -> tuple[float, str]:
        found = tight
        if mechanism != asked:
            found = Accountant(rtol=rtol).compose(mechanism, s.rounds).epsilon_bounds(s.delta)
        return float(found.upper), f"lower end {found.lower:.6g}"

    def by_rdp(mechanism: Mechanism) -> tuple[float, str]:
        found = RenyiAccountant().compose(mechanism, s.rounds).epsilon_at_order(s.delta)
        if found.epsilon == math.inf:
            return math.inf, "mass at infinite loss, or left out, makes every Renyi divergence infinite"
        return found.epsilon, f"order {found.order:.4g}"

    def by_one_round(mechanism: Mechanism, delta: float) -> float:
        found = Composition([(mechanism.pair, 1)], rtol).epsilons(np.array(min(delta / s.rate, 1.0)))
        return float(found.upper)

    def published(bound: bounds.Bound, delta: float) -> float:
        if bound.only and bound.only not in s.only:
            raise bounds.OutOfRange(f"it is for {bound.only} only")
        return bound.epsilon(eps0=s.eps0, delta=min(delta / s.rate, 0.999), n=s.n)

    def girgis() -> tuple[float, str]:
        found = bounds.girgis_epsilon(eps0=s.eps0, cohort=s.n, population=s.population, rounds=s.rounds, delta=s.delta)
        return found.epsilon, f"order {found.order:g}"

    ours = "this package"
    for label, covers, one in _analyses(asked):
        yield f"PLD, {label}", ours, "pld", covers, partial(by_pld, one)
        yield f"exact Renyi, {label}", f"{ours}, Canonne et al. 2020", "rdp", covers, partial(by_rdp, one)
    if isinstance(asked, SummedNoise):
        for name, source, kind, answer in _of_sums(asked, s):
            yield name, source, kind, Adversary.REPORTS, answer
        return
    yield "Renyi bound of Girgis et al.", "Girgis et al. 2021", "rdp", Adversary.REPORTS, girgis
    local = partial(_composed, s, lambda _: s.eps0, (0.0,))
    yield "local DP, no shuffling", "Kairouz et al. 2015", "local", Adversary.WEAK, local
    for label, source in NUMERICAL.items():
        one_round = partial(by_one_round, ShuffledLDP(s.eps0, s.n, analysis=label.replace(" ", "-")))
        yield f"{label}, numerical", source, "composed", Adversary.REPORTS, partial(_composed, s, one_round)
    for bound in bounds.published(s.k or 2):
        yield bound.name, bound.source, "composed", bound.covers, partial(_composed, s, partial(published, bound))


def _analyses(asked: Mechanism) -> Iterator[tuple[str, Adversary, Mechanism]]:
    """What was run by each of the package's analyses: label, whom it covers, mechanism."""
    if isinstance(asked, SummedNoise):
        yield "exact law", Adversary.REPORTS, asked
        return
    whole: Any = _whole(asked)
    eps0, found = whole.randomizer.eps0 if isinstance(whole, Shuffled) else whole.eps0, {}
    if getattr(whole, "analysis", "") == "tightest":
        found["tightest analysis"] = whole
    if isinstance(whole, Shuffled):
        found["blanket"] = Shuffled(whole.randomizer, whole.n, "blanket").core
        found["(p, beta, q) reduction"] = Shuffled(whole.randomizer, whole.n, "reduction").core
    elif isinstance(whole, ShuffledRandomizer):
        found["(p, beta, q) reduction"] = whole
    for label in NUMERICAL:
        found[label] = ShuffledLDP(eps0, whole.n, analysis=label.replace(" ", "-"))
    seen = {"weak": Adversary.WEAK, "strong": Adversary.STRONG, "strong-conditional": Adversary.STRONG}
    for adversary in seen if isinstance(whole, ShuffledRR) else ():
        found[f"{adversary} adversary"] = ShuffledRR(**whole.arguments() | {"adversary": adversary})
    for label, one in found.items():
        covers = seen.get(label.removesuffix(" adversary"), Adversary.REPORTS)
        if not isinstance(asked, Subsampled):
            yield label, covers, one
            continue
        yield label, covers, asked if one == whole else Subsampled(one, rate=asked.rate, analysis=asked.analysis)
        if label in NUMERICAL and asked.rate < 1.0 and asked.analysis != "general":
            yield f"{label}, general amplification", covers, Subsampled(one, rate=asked.rate, analysis="general")


def _of_sums(asked: SummedNoise, s: _Setting) -> Iterator[tuple[str, str, str, Callable[[], tuple[float, str]]]]:
    """The bounds for noise of clients that is in the sum; wrapping around is post-processing, and changes none."""
    share: Any = asked.share
    moved, number = asked.sensitivity, asked.clients - asked.dropouts - asked.colluding

    def require(kind: type[Share], noise: str) -> None:
        if not isinstance(share, kind):
            raise bounds.OutOfRange(f"it is for {noise} noise only")

    def coins(delta: float) -> float:
        require(Binomial, "binomial")
        return bounds.cpsgd_epsilon(shares=number, trials=share.trials, p=share.p, sensitivity=moved, delta=delta)

    def skellam(order: int) -> float:
        require(Skellam, "Skellam")
        return bounds.skellam_rdp(order=order, variance=number * share.variance, sensitivity=moved)

    def gaussian(order: int) -> float:
        require(DiscreteGaussian, "discrete Gaussian")
        return bounds.discrete_gaussian_rdp(order=order, shares=number, sigma=share.sigma, sensitivity=moved)

    def by_order(divergence: Callable[[int], float]) -> tuple[float, str]:
        orders = [*range(2, 128), *(2**i for i in range(7, 24))]
        spent = [s.rounds * divergence(order) for order in orders]
        found = bounds.rdp_to_epsilon(orders=orders, rdp=spent, delta=s.delta)
        return found.epsilon, f"order {found.order:.4g}"

    yield "cpSGD, Theorem 1", "Agarwal et al. 2018", "composed", partial(_composed, s, coins)
    yield "Renyi bound of Skellam noise", "Agarwal et al. 2021", "rdp", partial(by_order, skellam)
    yield "Renyi bound of discrete Gaussians", "Kairouz et al. 2021", "rdp", partial(by_order, gaussian)


def _composed(s: _Setting, whole: Callable[[float], float], shares: tuple[float, ...] = _SHARES) -> tuple[float, str]:
    """A guarantee of one round of everybody, amplified by subsampling and composed optimally.

    whole : its epsilon at a delta. shares : of delta, given to the single rounds together.
    """

    def one_round(delta: float) -> float:
        return math.log1p(s.rate * math.expm1(whole(delta))) * (1.0 + 1e-14)

    if s.rounds == 1:
        return one_round(s.delta), ""
    found: list[float] = []
    refusals: list[bounds.OutOfRange] = []
    for share in shares:
        part = -math.expm1(math.log1p(-share * s.delta) / s.rounds) * (1.0 - 1e-14)
        try:
            one = one_round(part)
        except bounds.OutOfRange as error:
            refusals.append(error)
            continue
        found.append(bounds.optimal_composition_epsilon(epsilon=one, delta=part, rounds=s.rounds, total_delta=s.delta))
    if not found:
        raise refusals[0]
    return min(found), "optimal composition"
