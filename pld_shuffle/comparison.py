"""What tight accounting buys: every bound that is valid at one setting, side by side.

A bound is listed if it covers the randomizer *and* the adversary that were asked about. Adversaries
see more and more: the shuffled reports; who of the other users answered at random as well ("weak");
and whether the target did ("strong"). A bound against one who sees more is valid for one who sees
less, never the other way round: not even pure local DP covers the strong adversary, who knows the
target's coin. With subsampling everything is for somebody who sees the shuffled reports only.

Single-round guarantees (epsilon_1, delta_1) become guarantees for the asked rounds in two steps: a
hidden random cohort at rate q gives (log(1 + q (e^epsilon_1 - 1)), q delta_1) (Balle, Barthe,
Gaboardi 2018: sampling without replacement, substitution), and k rounds compose optimally (Kairouz,
Oh, Viswanath 2015, Theorem 3.3), with the best of a few ways to share out delta.

Guarantee: every epsilon listed is an upper bound, valid for the adversary asked about.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

from . import bounds
from .accountant import Accountant
from .mechanisms import Mechanism, ShuffledLDP, ShuffledRandomizer, ShuffledRR, Subsampled
from .mechanisms.shuffled import Shuffled, is_pure
from .numerics.sides import Bounds
from .numerics.validation import positive_int, real
from .randomizers import BinaryRandomizedResponse, KRandomizedResponse, Laplace
from .renyi import RenyiAccountant
from .storage import data_frame

__all__ = ["Comparison", "Excluded", "Method", "as_report", "compare"]

REPORTS, WEAK, STRONG = 0, 1, 2
_SEES = {
    REPORTS: "only the shuffled reports",
    WEAK: "who of the other users answered at random",
    STRONG: "who answered at random, the target included",
}
#: Shares of delta given to the single rounds; the rest is for their composition.
_SHARES = (0.5, 0.1, 0.9, 0.01)


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


@dataclass(frozen=True)
class Comparison:
    """All bounds at one setting.

    tight : certified enclosure of epsilon for the mechanism asked about. methods : valid upper
    bounds, the smallest first. excluded : the others. notes : remarks, one sentence each.
    """

    mechanism: Mechanism
    rounds: int
    delta: float
    tight: Bounds
    methods: tuple[Method, ...]
    excluded: tuple[Excluded, ...]
    notes: tuple[str, ...]

    def __getitem__(self, name: str) -> Method:
        """The method of that name; KeyError if it is not among the valid ones."""
        for method in self.methods:
            if method.name == name:
                return method
        raise KeyError(name)

    def to_frame(self) -> Any:
        """The methods as a pandas DataFrame, a row each; ImportError without pandas."""
        names = [field.name for field in fields(Method)]
        return data_frame({n: [getattr(method, n) for method in self.methods] for n in names})


@dataclass(frozen=True)
class _Setting:
    """What the bounds of the literature take, from the mechanism asked about."""

    eps0: float
    n: int
    rate: float
    population: int
    k: int | None
    sees: int
    rounds: int
    delta: float
    laplace: bool = False

    @classmethod
    def of(cls, mechanism: Mechanism, rounds: int, delta: float) -> _Setting:
        whole = _whole(mechanism)
        rate, population = 1.0, None
        k, sees, laplace = None, REPORTS, False
        if isinstance(whole, Shuffled):
            randomizer = whole.randomizer
            if not is_pure(randomizer):
                raise TypeError(
                    f"mechanism must have a pure randomizer with a finite eps0, got {mechanism!r}"
                )
            k = randomizer.k if isinstance(randomizer, KRandomizedResponse) else None
            k = 2 if isinstance(randomizer, BinaryRandomizedResponse) else k
            laplace = isinstance(randomizer, Laplace)
        elif isinstance(whole, ShuffledRR):
            k, sees = whole.k, WEAK if whole.adversary == "weak" else STRONG
        elif isinstance(whole, ShuffledRandomizer) and whole.p is not None:
            raise TypeError(
                "mechanism must be given by its eps0, since the bounds of the literature are about eps0-LDP"
                f" randomizers, got {mechanism!r}"
            )
        elif not isinstance(whole, (ShuffledLDP, ShuffledRandomizer)):
            raise TypeError(
                "mechanism must be a Shuffled, ShuffledLDP, ShuffledRandomizer or ShuffledRR, subsampled or"
                f" not, got {mechanism!r}"
            )
        if isinstance(mechanism, Subsampled):
            rate, population = mechanism.rate, mechanism.population
            sees = REPORTS  # whoever sees more knows who took part
        if population is None:
            # Fewer users make the rate larger, the safe side.
            size = whole.n / rate
            nearest = round(size)
            population = nearest if abs(size - nearest) <= 1e-9 * size else math.floor(size)
        eps0 = whole.randomizer.eps0 if isinstance(whole, Shuffled) else whole.eps0
        return cls(eps0, whole.n, rate, population, k, sees, rounds, delta, laplace)


@dataclass(frozen=True)
class _OneRound:
    """A published single-round bound: epsilon at delta without subsampling."""

    name: str
    source: str
    covers: int
    epsilon: Callable[[_Setting, float], float]
    only: str = ""  # "rr", "2-rr" or "laplace": the randomizers it is for; "" is all of them


def _alphabet(s: _Setting) -> int:
    return 2 if s.k is None else s.k


def _asked(
    bound: Callable[..., float], **also: Callable[[_Setting], Any]
) -> Callable[[_Setting, float], float]:
    """A bound as a function of setting and delta; `also` : arguments that it takes besides eps0, delta and n."""

    def epsilon(s: _Setting, delta: float) -> float:
        given = {name: value(s) for name, value in also.items()}
        return bound(eps0=s.eps0, delta=delta, n=s.n, **given)

    return epsilon


def _rr_blanket(s: _Setting) -> bounds.RRBlanket:
    return bounds.RRBlanket(_alphabet(s))


def _laplace_blanket(s: _Setting) -> bounds.LaplaceBlanket:
    return bounds.LaplaceBlanket()


_ONE_ROUND = (
    _OneRound("stronger clones, numerical", "Feldman et al. 2023", REPORTS,
              _asked(bounds.feldman2023_numerical_epsilon)),
    _OneRound("clones, numerical", "Feldman et al. 2021, Thm 3.2", REPORTS,
              _asked(bounds.feldman2021_numerical_epsilon)),
    _OneRound("stronger clones, closed form", "Feldman et al. 2023", REPORTS,
              _asked(bounds.feldman2023_epsilon)),
    _OneRound("clones, closed form", "Feldman et al. 2021, Thm 3.1", REPORTS,
              _asked(bounds.feldman2021_epsilon)),
    _OneRound("shuffling, closed form", "Erlingsson et al. 2019", REPORTS,
              _asked(bounds.erlingsson_epsilon)),
    _OneRound("blanket, generic, Theorem 6", "Balle et al. 2019, Thm 6", WEAK,
              _asked(bounds.balle_generic_epsilon)),
    _OneRound("blanket, generic, Hoeffding", "Balle et al. 2019, Lemmas 8-10", WEAK,
              _asked(bounds.balle_hoeffding_epsilon)),
    _OneRound("blanket, generic, Bennett", "Balle et al. 2019, Lemmas 8, 9, 11", WEAK,
              _asked(bounds.balle_bennett_epsilon)),
    _OneRound("blanket, k-RR, Theorem 1", "Balle et al. 2019, Thm 1", WEAK,
              _asked(bounds.balle_rr_epsilon, k=_alphabet), "rr"),
    _OneRound("blanket, k-RR, Hoeffding", "Balle et al. 2019, Lemmas 8, 10, 12", WEAK,
              _asked(bounds.balle_hoeffding_epsilon, randomizer=_rr_blanket), "rr"),
    _OneRound("blanket, k-RR, Bennett", "Balle et al. 2019, Lemmas 8, 11, 12", WEAK,
              _asked(bounds.balle_bennett_epsilon, randomizer=_rr_blanket), "rr"),
    _OneRound("binary randomized response", "Cheu et al. 2019", REPORTS,
              _asked(bounds.cheu_epsilon), "2-rr"),
    _OneRound("blanket, Laplace, Bennett", "Balle et al. 2019, Lemmas 8, 11, 13", WEAK,
              _asked(bounds.balle_bennett_epsilon, randomizer=_laplace_blanket), "laplace"),
)  # fmt: skip

#: (epsilon, note), or OutOfRange.
_Answer = tuple[float, str]


def compare(
    mechanism: Mechanism, *, delta: float, rounds: int = 1, rtol: float = 1e-3
) -> Comparison:
    """Every published bound on epsilon that is valid for `rounds` of `mechanism` at `delta`.

    Parameters: mechanism, a Shuffled, ShuffledLDP, ShuffledRandomizer or ShuffledRR, subsampled or not;
    delta in (0, 1); rounds; rtol of the tight accountant. Raises TypeError or ValueError naming the
    argument. Cost: seconds.

    >>> found = compare(ShuffledLDP(eps0=4.0, n=10_000), delta=1e-6, rounds=10)
    >>> [method.name for method in found.methods[:2]]
    ['PLD, tightest analysis', 'PLD, stronger clones']
    """
    rounds = positive_int("rounds", rounds)
    failure = real("delta", delta)
    if not 0.0 < failure < 1.0:
        raise ValueError(f"delta must lie strictly between 0 and 1, got {delta!r}")
    setting = _Setting.of(mechanism, rounds, failure)
    tight = Accountant(rtol=rtol).compose(mechanism, rounds).epsilon_bounds(failure)
    methods: list[Method] = []
    excluded: list[Excluded] = []
    notes: list[str] = []
    for name, source, kind, covers, answer in _candidates(mechanism, setting, tight, rtol):
        reason = ""
        try:
            if covers < setting.sees:
                raise bounds.OutOfRange(
                    f"it covers an adversary who sees {_SEES[covers]}; the one asked about "
                    f"sees {_SEES[setting.sees]}"
                )
            epsilon, note = answer()
            if epsilon == math.inf and tight.upper < math.inf:
                reason = note or "it gives no finite epsilon"
        except bounds.OutOfRange as error:
            reason = str(error)
        if reason:
            excluded.append(Excluded(name, source, reason))
            continue
        factor = epsilon / tight.upper if 0.0 < tight.upper < math.inf else math.nan
        methods.append(Method(name, source, kind, epsilon, factor, note))
    methods.sort(key=lambda method: method.epsilon)
    if setting.sees == REPORTS:
        notes.extend(_girgis_note(setting))
    return Comparison(
        mechanism, rounds, failure, tight, tuple(methods), tuple(excluded), tuple(notes)
    )


_Candidate = tuple[str, str, str, int, Callable[[], _Answer]]


def _candidates(
    asked: Mechanism, setting: _Setting, tight: Bounds, rtol: float
) -> Iterator[_Candidate]:
    """(name, source, kind, whom it covers, how to compute it) of every bound known here."""
    for label, covers, mechanism in _analyses(asked):

        def by_pld(mechanism: Mechanism = mechanism) -> _Answer:
            found = tight
            if mechanism != asked:
                accountant = Accountant(rtol=rtol).compose(mechanism, setting.rounds)
                found = accountant.epsilon_bounds(setting.delta)
            return float(found.upper), f"lower end {found.lower:.6g}"

        def by_rdp(mechanism: Mechanism = mechanism) -> _Answer:
            accountant = RenyiAccountant().compose(mechanism, setting.rounds)
            found = accountant.epsilon_at_order(setting.delta)
            if found.epsilon == math.inf:
                return math.inf, "mass at infinite loss makes every Renyi divergence infinite"
            return found.epsilon, f"order {found.order:.4g}"

        yield f"PLD, {label}", "this package", "pld", covers, by_pld
        yield f"exact Renyi, {label}", "this package, Canonne et al. 2020", "rdp", covers, by_rdp
    yield (
        "Renyi bound of Girgis et al.",
        "Girgis et al. 2021",
        "rdp",
        REPORTS,
        lambda: _girgis(setting),
    )
    yield "local DP, no shuffling", "Kairouz et al. 2015", "local", WEAK, lambda: _local(setting)
    for bound in _ONE_ROUND:
        answer = partial(_composed, bound, setting)
        yield bound.name, bound.source, "composed", bound.covers, answer
    if setting.rounds > 1:
        for way in ("advanced", "basic"):
            bound, answer = _ONE_ROUND[0], partial(_plainly_composed, way, setting)
            name = f"{bound.name}, {way} composition"
            yield name, bound.source, "composed", bound.covers, answer


def _whole(mechanism: Mechanism) -> Mechanism:
    return mechanism.mechanism if isinstance(mechanism, Subsampled) else mechanism


def _analyses(asked: Mechanism) -> Iterator[tuple[str, int, Mechanism]]:
    """What was run by each of the package's analyses: label, whom it covers, mechanism."""
    for label, covers, whole in _pairs(asked):
        if not isinstance(asked, Subsampled):
            yield label, covers, whole
            continue
        sampled = Subsampled(whole, rate=asked.rate, analysis=asked.analysis)
        yield label, covers, asked if whole == asked.mechanism else sampled
        if label == "stronger clones" and asked.rate < 1.0 and asked.analysis != "general":
            general = Subsampled(whole, rate=asked.rate, analysis="general")
            yield f"{label}, general amplification", covers, general


def _pairs(asked: Mechanism) -> Iterator[tuple[str, int, Mechanism]]:
    """The package's own pairs for the randomizer asked about: label, whom they cover, pair."""
    whole = _whole(asked)
    assert isinstance(whole, (Shuffled, ShuffledLDP, ShuffledRandomizer, ShuffledRR))
    if isinstance(whole, (Shuffled, ShuffledLDP)) and whole.analysis == "tightest":
        yield "tightest analysis", REPORTS, whole
    if isinstance(whole, ShuffledRandomizer):
        yield "(p, beta, q) reduction", REPORTS, whole
    if isinstance(whole, Shuffled):
        for label, analysis in (("blanket", "blanket"), ("(p, beta, q) reduction", "reduction")):
            yield label, REPORTS, Shuffled(whole.randomizer, whole.n, analysis).core
        whole = ShuffledLDP(eps0=whole.randomizer.eps0, n=whole.n)
    for label in ("stronger clones", "clones"):
        analysis = label.replace(" ", "-")
        yield label, REPORTS, ShuffledLDP(eps0=whole.eps0, n=whole.n, analysis=analysis)
    if isinstance(whole, ShuffledRR):
        given = {whole.given: getattr(whole, whole.given)}
        adversaries = (("weak", WEAK), ("strong", STRONG), ("strong-conditional", STRONG))
        for adversary, covers in adversaries:
            pair = ShuffledRR(whole.k, whole.n, adversary=adversary, **given)
            yield f"{adversary} adversary", covers, pair


def _girgis(s: _Setting) -> _Answer:
    found = bounds.girgis_epsilon(
        eps0=s.eps0, cohort=s.n, population=s.population, rounds=s.rounds, delta=s.delta
    )
    return found.epsilon, f"order {found.order:g}"


def _girgis_note(s: _Setting) -> list[str]:
    """The value with the published code's smaller residue, which the theorem does not support."""
    try:
        proved = _girgis(s)[0]
        published = bounds.girgis_epsilon(
            eps0=s.eps0, cohort=s.n, population=s.population, rounds=s.rounds, delta=s.delta,
            residue="published-code",
        ).epsilon  # fmt: skip
    except bounds.OutOfRange:
        return []
    if published > 0.999 * proved:
        return []
    return [
        f"Renyi bound of Girgis et al. 2021: the theorem gives {proved:.4g}; their published code "
        f"has half the constant in its residual term and gives {published:.4g}"
    ]


def _local(s: _Setting) -> _Answer:
    """Pure local DP of the target's report, subsampled, and composed optimally."""
    one = math.log1p(s.rate * math.expm1(s.eps0)) * (1.0 + 1e-14)
    if s.rounds == 1:
        return one, ""
    total = bounds.optimal_composition_epsilon(
        epsilon=one, delta=0.0, rounds=s.rounds, total_delta=s.delta
    )
    return total, "optimal composition"


def _one_round(bound: _OneRound, s: _Setting, delta: float) -> float:
    """epsilon of one subsampled round at `delta`, amplified by subsampling."""
    whole = min(delta / s.rate, 0.999)
    return math.log1p(s.rate * math.expm1(bound.epsilon(s, whole))) * (1.0 + 1e-14)


def _per_round(s: _Setting, share: float) -> float:
    """The delta of one round such that all rounds together use `share` of the total."""
    return -math.expm1(math.log1p(-share * s.delta) / s.rounds) * (1.0 - 1e-14)


def _composed(bound: _OneRound, s: _Setting) -> _Answer:
    if bound.only == "laplace" and not s.laplace:
        raise bounds.OutOfRange("it is for the Laplace mechanism only")
    if bound.only == "rr" and s.k is None:
        raise bounds.OutOfRange("it is for k-ary randomized response only")
    if bound.only == "2-rr" and s.k != 2:
        raise bounds.OutOfRange("it is for binary randomized response only")
    if s.rounds == 1:
        return _one_round(bound, s, s.delta), ""
    best = math.inf
    refusal: bounds.OutOfRange | None = None
    for share in _SHARES:
        part = _per_round(s, share)
        try:
            one = _one_round(bound, s, part)
        except bounds.OutOfRange as error:
            refusal = refusal or error
            continue
        total = bounds.optimal_composition_epsilon(
            epsilon=one, delta=part, rounds=s.rounds, total_delta=s.delta
        )
        best = min(best, total)
    if best == math.inf and refusal is not None:
        raise refusal
    return best, "optimal composition"


def _plainly_composed(way: str, s: _Setting) -> _Answer:
    bound = _ONE_ROUND[0]
    if way == "basic":
        part = s.delta / s.rounds * (1.0 - 1e-14)
        found = bounds.basic_composition(
            epsilon=_one_round(bound, s, part), delta=part, rounds=s.rounds
        )
        return found.epsilon, ""
    best = math.inf
    for share in _SHARES:
        part = _per_round(s, share)
        found = bounds.advanced_composition(
            epsilon=_one_round(bound, s, part), delta=part, rounds=s.rounds,
            slack=(1.0 - share) * s.delta * (1.0 - 1e-12),
        )  # fmt: skip
        best = min(best, found.epsilon)
    return best, ""


def as_report(comparison: Comparison) -> dict[str, Any]:
    """Methods, excluded bounds and notes as lists and numbers, for JSON."""
    return {
        "methods": [
            {
                "name": method.name, "source": method.source, "kind": method.kind,
                "epsilon": method.epsilon,
                "factor": None if math.isnan(method.factor) else method.factor,
                "note": method.note,
            }
            for method in comparison.methods
        ],
        "not_applicable": [
            {"name": bound.name, "source": bound.source, "reason": bound.reason}
            for bound in comparison.excluded
        ],
        "notes": list(comparison.notes),
    }  # fmt: skip
