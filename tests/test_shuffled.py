"""Named randomizers in a shuffler: every analysis above, and every attack below, the enumerated protocol."""

from __future__ import annotations

import itertools
import math
import pickle
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from enumerated import law_of

from pld_shuffle import (
    Accountant,
    Mechanism,
    Shuffled,
    ShuffledLDP,
    ShuffledRandomizer,
    ShuffledRR,
    Side,
    Subsampled,
)
from pld_shuffle.mechanisms.shuffled import Attack, Blanket
from pld_shuffle.randomizers import (
    RAPPOR,
    BinaryRandomizedResponse,
    DiscreteRandomizer,
    Gaussian,
    HadamardResponse,
    KRandomizedResponse,
    Laplace,
    LocalHashing,
    SubsetSelection,
    UnaryEncoding,
)

EPSILONS = (0.0, 0.05, 0.3, 0.8, 1.4)
ANALYSES = ("blanket", "reduction", "stronger-clones")

View = dict[tuple[int, ...], float]


def shuffled_law(rows: list[np.ndarray]) -> View:
    """Law of the histogram of one report from each row, by enumeration."""
    law: View = {(0,) * rows[0].size: 1.0}
    for row in rows:
        following: Counter[tuple[int, ...]] = Counter()
        for counts, mass in law.items():
            for report, chance in enumerate(row):
                more = (*counts[:report], counts[report] + 1, *counts[report + 1 :])
                following[more] += mass * chance
        law = dict(following)
    return law


def datasets(inputs: int, n: int) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """All (target's value, its replacement, values of the others)."""
    for first, second in itertools.permutations(range(inputs), 2):
        for others in itertools.combinations_with_replacement(range(inputs), n - 1):
            yield first, second, others


def truths(law: np.ndarray, n: int, rounds: int = 1) -> np.ndarray:
    """The largest divergence over all neighbouring datasets, at EPSILONS, same datasets every round."""
    worst = np.zeros(len(EPSILONS))
    for first, second, others in datasets(law.shape[0], n):
        rest = [law[value] for value in others]
        one, two = shuffled_law([law[first], *rest]), shuffled_law([law[second], *rest])
        p, q = np.array(list(one.values())), np.array([two[view] for view in one])
        for _ in range(rounds - 1):
            p, q = (
                np.outer(p, list(one.values())).ravel(),
                np.outer(q, [two[v] for v in one]).ravel(),
            )
        found = [float(np.maximum(p - math.exp(eps) * q, 0.0).sum()) for eps in EPSILONS]
        worst = np.maximum(worst, found)
    return worst


def random_randomizer(seed: int) -> tuple[DiscreteRandomizer, int]:
    """Two or three inputs, two to four reports, from mild to strong; and a number of users up to 5."""
    rng = np.random.default_rng(seed)
    inputs, outputs = int(rng.integers(2, 4)), int(rng.integers(2, 5))
    rows = rng.dirichlet(np.full(outputs, rng.choice([0.7, 2.0, 8.0])), size=inputs) + 0.01
    n = int(rng.integers(1, 6))
    return DiscreteRandomizer(rows / rows.sum(axis=1, keepdims=True)), n


@pytest.mark.parametrize("seed", range(14))
def test_the_enumerated_protocol_lies_between_attack_and_analysis(seed: int) -> None:
    """Random finite randomizers, n <= 5: all analyses are above the truth, the best attack below."""
    randomizer, n = random_randomizer(seed)
    truth = truths(randomizer.law(), n)
    for analysis in ("tightest", *ANALYSES):
        upper = Accountant().compose(Shuffled(randomizer, n, analysis)).get_delta(EPSILONS)
        assert np.all(truth <= upper * (1 + 1e-12) + 1e-15)
    for eps, worst in zip(EPSILONS, truth, strict=True):
        attack = Shuffled(randomizer, n, analysis="blanket").attack_bounds(epsilon=eps)
        assert attack.bounds.lower <= worst * (1 + 1e-12)


@pytest.mark.parametrize("seed", [1, 2, 5])
def test_two_rounds_lie_between_attack_and_analysis(seed: int) -> None:
    """The same over two rounds with the same values."""
    randomizer, n = random_randomizer(seed)
    n = min(n, 3)
    truth = truths(randomizer.law(), n, rounds=2)
    mechanism = Shuffled(randomizer, n, analysis="blanket")
    upper = Accountant().compose(mechanism, 2).get_delta(EPSILONS)
    assert np.all(truth <= upper * (1 + 1e-12) + 1e-15)
    for eps, worst in zip(EPSILONS, truth, strict=True):
        assert mechanism.attack_bounds(epsilon=eps, rounds=2).bounds.lower <= worst * (1 + 1e-12)


@pytest.mark.parametrize("seed", [0, 3, 4])
def test_an_attack_is_its_own_two_datasets(seed: int) -> None:
    """Exact on both sides: one order of two concrete datasets, one round and three."""
    randomizer, n = random_randomizer(seed)
    n = max(2, min(n, 3))
    law = randomizer.law()
    attack = Attack(randomizer, n, 0, 1, law.shape[0] - 1)
    rest = [law[-1]] * (n - 1)
    one, two = shuffled_law([law[0], *rest]), shuffled_law([law[1], *rest])
    p1, q1 = np.array(list(one.values())), np.array([two[view] for view in one])
    for rounds in (1, 3):
        p, q = p1, q1
        for _ in range(rounds - 1):
            p, q = np.outer(p, p1).ravel(), np.outer(q, q1).ravel()
        accountant = Accountant().compose(attack, rounds)
        for eps in EPSILONS:
            truth = float(np.maximum(p - math.exp(eps) * q, 0.0).sum())
            lower, upper = accountant.delta_bounds(eps)
            assert lower <= truth * (1 + 1e-11) + 1e-15 and truth <= upper * (1 + 1e-11) + 1e-15


NAMED = [
    KRandomizedResponse(k=4, eps0=2.0),
    BinaryRandomizedResponse(eps0=1.5),
    UnaryEncoding(k=4, eps0=2.0),
    UnaryEncoding(k=4, eps0=2.0, variant="optimised"),
    SubsetSelection(k=5, size=2, eps0=2.0),
    LocalHashing(k=3, buckets=2, eps0=1.5),
    HadamardResponse(k=4, eps0=1.5),
    RAPPOR(k=4, noise=0.25, one_if_zero=0.25, one_if_one=0.75),
    Laplace(eps0=2.0),
]


@pytest.mark.parametrize("randomizer", NAMED, ids=lambda r: type(r).__name__)
def test_sharper_analyses_are_never_worse(randomizer: object) -> None:
    """blanket <= reduction <= stronger clones, at several epsilons, up to the width of brackets."""
    uppers, lowers = [], []
    for analysis in ANALYSES:
        bounds = (
            Accountant()
            .compose(Shuffled(randomizer, 400, analysis), 3)  # type: ignore[arg-type]
            .delta_bounds([0.1, 0.4, 0.8])
        )
        lowers.append(bounds.lower)
        uppers.append(bounds.upper)
    assert np.all(lowers[0] <= uppers[1]) and np.all(lowers[1] <= uppers[2])


@pytest.mark.parametrize("randomizer", NAMED[:-1], ids=lambda r: type(r).__name__)
def test_attacks_stay_below_the_analysis(randomizer: object) -> None:
    """At 1000 users, ten rounds: the attack's epsilon is positive and below the chosen analysis'."""
    mechanism = Shuffled(randomizer, 1000, analysis="blanket")  # type: ignore[arg-type]
    upper = Accountant().compose(mechanism, 10).get_epsilon(1e-6)
    found = mechanism.attack_bounds(
        delta=1e-6, rounds=10, choices=[(0, 1, 2 % mechanism.randomizer.inputs)]
    )
    assert 0.3 * upper < found.bounds.lower <= upper


@pytest.mark.parametrize(
    ("k", "n", "eps0", "rounds"),
    [(2, 800, 1.0, 1), (4, 1000, 2.0, 20), (10, 20_000, 3.0, 1), (10, 20_000, 3.0, 20)],
)
def test_the_blanket_of_randomised_response_is_the_weak_adversary(
    k: int, n: int, eps0: float, rounds: int
) -> None:
    """Two independent computations of one pair: by contour integrals and by tilted coins."""
    blanket = Accountant().compose(Blanket(KRandomizedResponse(k=k, eps0=eps0), n), rounds)
    weak = Accountant().compose(ShuffledRR(k, n, eps0=eps0, adversary="weak"), rounds)
    for delta in (1e-3, 1e-8, 1e-30):
        ours, known = blanket.epsilon_bounds(delta), weak.epsilon_bounds(delta)
        assert max(ours.lower, known.lower) <= min(ours.upper, known.upper)
        assert ours.upper <= ours.lower * (1 + 1e-3)


def test_laplace_over_a_hundred_rounds() -> None:
    """eps0 = 2, n = 10^5, delta = 1e-8: within rtol, and below the reduction and stronger clones."""
    laplace = Laplace(eps0=2.0)
    accountant = Accountant().compose(Shuffled(laplace, 10**5, analysis="blanket"), 100)
    lower, upper = accountant.epsilon_bounds(1e-8)
    ends = [accountant.delta_bounds(eps) for eps in (lower, upper)]
    assert max(end.upper / end.lower for end in ends) <= 1 + 1e-3
    reduction = ShuffledRandomizer(10**5, eps0=2.0, tv=laplace.tv)
    others = [reduction, ShuffledLDP(2.0, 10**5, analysis="stronger-clones")]
    found = [Accountant().compose(other, 100).epsilon_bounds(1e-8).lower for other in others]
    assert upper < 0.95 * found[0] and found[0] < 0.95 * found[1]


def test_one_user_is_not_hidden() -> None:
    """n = 1: the blanket adversary has the local randomizer's own divergence, exactly."""
    for randomizer in (
        SubsetSelection(k=5, size=2, eps0=2.0),
        UnaryEncoding(k=3, eps0=1.0),
    ):
        law = law_of(randomizer)
        accountant = Accountant().compose(Blanket(randomizer, 1))
        for eps in (0.0, 0.2, 0.7):
            truth = float(np.maximum(law[0] - math.exp(eps) * law[1], 0.0).sum())
            lower, upper = accountant.delta_bounds(eps)
            assert lower <= truth * (1 + 1e-12) and truth <= upper * (1 + 1e-12)
            assert upper <= 1.001 * lower + 1e-12


def test_gaussian_noise_has_the_blanket_only() -> None:
    """(eps0, delta0)-LDP: other analyses are refused; more users hide better; it composes."""
    noise = Gaussian(sigma=1.0)
    with pytest.raises(ValueError, match="needs pure LDP"):
        Shuffled(noise, 100, "stronger-clones")
    spent = [
        Accountant(1e-2).compose(Shuffled(noise, n, analysis="blanket"), 5).epsilon_bounds(1e-6)
        for n in (10_000, 100_000)
    ]
    assert spent[1].upper < 0.5 * spent[0].lower
    assert all(bounds.upper <= 1.01 * bounds.lower for bounds in spent)


def test_gaussian_noise_is_never_pure() -> None:
    """However large the noise, its losses are unbounded."""
    noise = Gaussian(sigma=10.0)
    assert Shuffled(noise, 1000, analysis="blanket").pair.max_loss.upper == math.inf
    with pytest.raises(ValueError, match="needs pure LDP"):
        Shuffled(noise, 1000, "reduction")


def test_identical_rows_spend_nothing() -> None:
    """eps0 = 0: a null mechanism, not an error, unless an analysis needs eps0."""
    same = DiscreteRandomizer([[0.3, 0.7], [0.3, 0.7]])
    assert Accountant().compose(Shuffled(same, 10, analysis="blanket"), 5).get_epsilon(0.0) == 0.0
    with pytest.raises(ValueError, match="finite positive eps0"):
        Shuffled(same, 10, "reduction")


def test_a_report_that_gives_the_input_away() -> None:
    """eps0 = inf: the mass at infinite loss is found, exactly; enumeration agrees."""
    law = [[0.4, 0.5, 0.1], [0.5, 0.5, 0.0]]
    randomizer = DiscreteRandomizer(law)
    assert randomizer.eps0 == math.inf
    accountant = Accountant().compose(Shuffled(randomizer, 3, analysis="blanket"))
    lower, upper = accountant.delta_bounds(math.inf)
    assert lower <= 0.1 <= upper and upper < 0.1 + 1e-9
    truth = truths(np.array(law), 3)
    assert np.all(truth <= accountant.get_delta(EPSILONS) * (1 + 1e-12))


@pytest.mark.parametrize(
    ("first", "second", "others"), [(0, 1, 0), (1, 0, 0), (1, 0, 1), (0, 1, 1)]
)
@pytest.mark.parametrize("n", [1, 2, 4])
def test_attacks_with_reports_that_give_the_input_away(
    first: int, second: int, others: int, n: int
) -> None:
    """Zeros in the matrix: infinite losses also where the others share the zero; enumeration agrees."""
    law = np.array([[0.7, 0.3, 0.0], [0.0, 0.9, 0.1]])
    rest = [law[others]] * (n - 1)
    one, two = shuffled_law([law[first], *rest]), shuffled_law([law[second], *rest])
    p, q = np.array(list(one.values())), np.array([two[view] for view in one])
    accountant = Accountant().compose(Attack(DiscreteRandomizer(law), n, first, second, others))
    for eps in EPSILONS:
        truth = float(np.maximum(p - math.exp(eps) * q, 0.0).sum())
        lower, upper = accountant.delta_bounds(eps)
        assert lower <= truth * (1 + 1e-11) + 1e-14 and truth <= upper * (1 + 1e-11) + 1e-14
        assert upper <= 1.001 * lower + 1e-9


def test_local_budgets_beyond_all_hiding() -> None:
    """eps0 = 400: the blanket refuses, the default takes the reduction, and says so."""
    with pytest.raises(ValueError, match="eps0 of at most 150"):
        Blanket(BinaryRandomizedResponse(eps0=400.0), 10)
    strong = Shuffled(UnaryEncoding(k=4, eps0=400.0), 10)
    assert isinstance(strong.core, ShuffledRandomizer)
    assert "reduction" in strong.assumptions()["analysis"]


def test_tiny_local_budgets() -> None:
    """eps0 = 1e-6: as precise as any other."""
    accountant = Accountant().compose(
        Shuffled(UnaryEncoding(k=4, eps0=1e-6), 1000, analysis="blanket")
    )
    lower, upper = accountant.epsilon_bounds(1e-9)
    assert 0.0 < lower <= upper <= 1.001 * lower < 1e-6


def test_alternatives_name_what_others_give() -> None:
    """All analyses that apply, consistent with accounting each on its own."""
    mechanism = Shuffled(SubsetSelection(k=5, size=2, eps0=2.0), 2000, analysis="blanket")
    found = mechanism.alternatives(delta=1e-6, rounds=4)
    assert set(found) == set(ANALYSES)
    expected = (
        Accountant()
        .compose(ShuffledLDP(2.0, 2000, analysis="stronger-clones"), 4)
        .epsilon_bounds(1e-6)
    )
    assert found["stronger-clones"] == expected
    assert "blanket" in mechanism.assumptions()["analysis"]
    assert set(
        Shuffled(Gaussian(sigma=1.0), 10_000, analysis="blanket").alternatives(delta=1e-3)
    ) == {"blanket"}


def test_values() -> None:
    """Equality, hashing, pickling, sampling of cohorts, and rebuilding from arguments."""
    mechanism: Mechanism = Shuffled(UnaryEncoding(k=4, eps0=2.0), 500, analysis="blanket")
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism
    assert type(mechanism)(**mechanism.arguments()) == mechanism and hash(mechanism)
    sampled = Subsampled(mechanism, population=5000, analysis="general")
    plain = Accountant().compose(mechanism, 10).get_epsilon(1e-6)
    assert Accountant().compose(sampled, 10).get_epsilon(1e-6) < 0.3 * plain
    assert mechanism.pld(side=Side.LOWER).delta(0.1) <= mechanism.pld().delta(0.1)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Shuffled(3.0, 10, analysis="blanket"), TypeError, r"randomizer .*3\.0"),
        (lambda: Shuffled(NAMED[0], 0, analysis="blanket"), ValueError, r"n must be at least 1"),
        (
            lambda: Shuffled(NAMED[0], 10, "best"),
            ValueError,
            r"analysis must be one of",
        ),
        (lambda: Attack(Laplace(eps0=1.0), 10, 0, 1, 1), TypeError, r"must be finite"),
        (lambda: Attack(NAMED[0], 10, 0, 0, 1), ValueError, r"second must differ"),
        (lambda: Attack(NAMED[0], 10, 0, 1, 9), ValueError, r"others must be below inputs=4"),
        (
            lambda: Shuffled(NAMED[0], 10, analysis="blanket").attack_bounds(),
            ValueError,
            r"exactly one of delta",
        ),
        (
            lambda: Shuffled(NAMED[0], 10, analysis="blanket").attack_bounds(delta=0.1, choices=[]),
            ValueError,
            r"choices must not be empty",
        ),
        (lambda: ShuffledRandomizer(10, tv=1.5, eps0=1.0), ValueError, r"tv must be in \[0, 1\]"),
        (lambda: ShuffledRandomizer(10, tv=0.5, p=2.0), ValueError, r"either eps0, or p and q"),
        (lambda: ShuffledRandomizer(10, tv=0.5, p=1.0, q=2.0), ValueError, r"p must be in"),
        (lambda: ShuffledRandomizer(10, tv=0.5, p=2.0, q=0.5), ValueError, r"q must be in"),
    ],
)
def test_bad_input_is_named(make: object, error: type[Exception], message: str) -> None:
    """Every message has the argument and the value."""
    with pytest.raises(error, match=message):
        make()  # type: ignore[operator]


def test_lower_ends_of_many_inputs_are_an_attack() -> None:
    """Truncated geometric noise on 0 ... 5: all datasets of four users enumerated (epsilon at delta = .05: 1.72085)."""
    x = np.arange(6)
    law = np.exp(-0.5 * np.abs(x[:, np.newaxis] - x))
    randomizer = DiscreteRandomizer(law / law.sum(axis=1, keepdims=True))
    mechanism = Shuffled(randomizer, 4)
    lower, upper = Accountant().compose(mechanism).delta_bounds(np.array(EPSILONS))
    truth = truths(randomizer.law(), 4)
    assert np.all(lower <= truth * (1 + 1e-12)) and np.all(truth <= upper * (1 + 1e-12))
    found = Accountant().compose(mechanism).epsilon_bounds(0.05)
    assert found.lower <= 1.72086 <= found.upper
    for many in (6, 12):  # pairs of values beyond the few that are asked one by one
        rows = np.random.default_rng(many).dirichlet(np.full(4, 3.0), size=many) + 0.02
        randomizer = DiscreteRandomizer(rows / rows.sum(axis=1, keepdims=True))
        lower, upper = (
            Accountant().compose(Shuffled(randomizer, 2)).delta_bounds(np.array(EPSILONS))
        )
        truth = truths(randomizer.law(), 2)
        assert np.all(lower <= truth * (1 + 1e-12)) and np.all(truth <= upper * (1 + 1e-12))
