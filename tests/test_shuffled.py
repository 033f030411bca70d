"""Named randomizers in a shuffler: every analysis above, and every attack below, the enumerated protocol."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from enumerated import law_of

from pld_shuffle import (
    Accountant,
    Shuffled,
    ShuffledLDP,
    ShuffledRandomizer,
)
from pld_shuffle.mechanisms.shuffled import Attack, Blanket
from pld_shuffle.randomizers import (
    DiscreteRandomizer,
    Gaussian,
    Laplace,
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


def random_randomizer(seed: int) -> tuple[DiscreteRandomizer, int]:
    """Two or three inputs, two to four reports, from mild to strong; and a number of users up to 5."""
    rng = np.random.default_rng(seed)
    inputs, outputs = int(rng.integers(2, 4)), int(rng.integers(2, 5))
    rows = rng.dirichlet(np.full(outputs, rng.choice([0.7, 2.0, 8.0])), size=inputs) + 0.01
    n = int(rng.integers(1, 6))
    return DiscreteRandomizer(rows / rows.sum(axis=1, keepdims=True)), n


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


def test_gaussian_noise_is_never_pure() -> None:
    """However large the noise, its losses are unbounded."""
    noise = Gaussian(sigma=10.0)
    assert Shuffled(noise, 1000, analysis="blanket").pair.max_loss.upper == math.inf


def test_identical_rows_spend_nothing() -> None:
    """eps0 = 0: a null mechanism, not an error, unless an analysis needs eps0."""
    same = DiscreteRandomizer([[0.3, 0.7], [0.3, 0.7]])
    assert Accountant().compose(Shuffled(same, 10, analysis="blanket"), 5).get_epsilon(0.0) == 0.0
    with pytest.raises(ValueError, match="finite positive eps0"):
        Shuffled(same, 10, "reduction")


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
