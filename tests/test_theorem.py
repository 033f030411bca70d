"""The theorem behind "stronger clones" and the (p, beta, q) reduction, on random randomizers.

Let R0 <= p R1, R1 <= p R0, TV(R0, R1) <= beta, max(R0, R1) <= q R_i for every other user i. Then
the shuffled reports are dominated, for every alpha > 0, by the label counts (a, b, c) of
oracles.reduction. Here the reports are enumerated, all K^n message vectors, for random and for
extreme laws, with other users who differ from each other, and q != p. H is compared at every ratio
of the dominating pair and in both limits, which decides domination at every alpha (see oracles.py).
No library code runs here.
"""

from __future__ import annotations

import itertools

import numpy as np
import oracles as o
import pytest

TOLERANCE = 1e-9
Laws = np.ndarray  # shape (n, K), one output law a row


def worst_gap(large: o.FloatPair, small: o.FloatPair) -> float:
    """The largest H_alpha(small) - H_alpha(large) over alpha > 0, per 1 + alpha."""
    seen = large[1] > 0
    alphas = np.unique(large[0][seen] / large[1][seen])

    def profile(pair: o.FloatPair) -> np.ndarray:
        return np.maximum(pair[0] - alphas[:, None] * pair[1], 0.0).sum(axis=1)

    gaps = (profile(small) - profile(large)) / (1.0 + alphas)
    hidden = small[0][small[1] == 0].sum() - large[0][large[1] == 0].sum()
    mirror = small[1][small[0] == 0].sum() - large[1][large[0] == 0].sum()
    return float(max(gaps.max(), hidden, mirror))


def label_pair(n: int, p: float, beta: float, q: float) -> o.FloatPair:
    """The dominating pair, by the same enumeration of message vectors."""
    target_p, target_q, other = np.array(o.reduction_laws(p, beta, q))
    others = [other] * (n - 1)
    return (
        o.shuffled_float(np.array([target_p, *others])),
        o.shuffled_float(np.array([target_q, *others])),
    )


def report_pair(first: Laws, second: Laws, others: Laws) -> o.FloatPair:
    return (
        o.shuffled_float(np.vstack([first, others])),
        o.shuffled_float(np.vstack([second, others])),
    )


def extreme_law(floor: np.ndarray, ratio: float, rng: np.random.Generator) -> np.ndarray:
    """A vertex of {x: floor <= x <= ratio floor, sum x = 1}."""
    law, spare = floor.copy(), 1.0 - floor.sum()
    for message in rng.permutation(len(floor)):
        raised = min((ratio - 1.0) * floor[message], spare)
        law[message] += raised
        spare -= raised
    return law


def ldp_laws(
    rows: int, width: int, ratio: float, rng: np.random.Generator, *, mixed: bool
) -> np.ndarray:
    """`rows` output laws of one eps0-LDP randomizer, ratio = e^eps0: vertices, or mixtures."""
    floor = rng.dirichlet(np.full(width, rng.choice([0.3, 1.0, 5.0])))
    floor *= rng.uniform(1.0 / ratio, 1.0)
    laws = np.array([extreme_law(floor, ratio, rng) for _ in range(rows)])
    if mixed:
        partners = np.array([extreme_law(floor, ratio, rng) for _ in range(rows)])
        share = rng.uniform(size=(rows, 1))
        laws = share * laws + (1.0 - share) * partners
    return laws


def total_variation(first: np.ndarray, second: np.ndarray) -> float:
    return float(np.maximum(first - second, 0.0).sum())


SIZES = [(2, 5), (3, 4), (4, 3), (5, 3), (5, 2), (1, 5), (4, 4)]


@pytest.mark.parametrize(("n", "width"), SIZES)
@pytest.mark.parametrize("eps0", [0.2, 1.0, 2.5, 5.0])
def test_any_ldp_randomizer(n: int, width: int, eps0: float) -> None:
    """A common eps0-LDP randomizer, others hold any values: stronger clones, and beta = TV."""
    rng = np.random.default_rng([n, width, int(10 * eps0)])
    ratio = np.exp(eps0)
    worst = (ratio - 1.0) / (ratio + 1.0)
    stronger = label_pair(n, ratio, worst, ratio)
    for trial in range(120):
        laws = ldp_laws(n + 1, width, ratio, rng, mixed=trial % 2 == 1)
        beta = total_variation(laws[0], laws[1])
        assert beta <= worst + 1e-12
        view = report_pair(laws[0], laws[1], laws[2:])
        assert worst_gap(stronger, view) < TOLERANCE
        assert worst_gap(label_pair(n, ratio, min(beta, worst), ratio), view) < TOLERANCE


@pytest.mark.parametrize(("n", "width"), SIZES)
def test_other_users_with_their_own_randomizers(n: int, width: int) -> None:
    """q != p, below and above it; the others' laws are unrelated beyond max(R0, R1) <= q R_i, their
    remaining mass put on any outcomes, some of which the target never sends."""
    rng = np.random.default_rng([n, width])
    for trial in range(300):
        p = float(np.exp(rng.uniform(0.05, 4.0)))
        first, second = ldp_laws(2, width, p, rng, mixed=trial % 3 == 0)
        beta = total_variation(first, second)
        if beta < 1e-6:
            continue
        unseen = np.zeros(1)
        first, second = np.append(first, unseen), np.append(second, unseen)
        q = (1.0 + beta) * float(np.exp(rng.choice([0.0, rng.uniform(0.0, 4.0)])))
        covered = np.maximum(first, second) / q
        rest = rng.dirichlet(np.full(width + 1, rng.choice([0.05, 1.0])), size=n - 1)
        others = covered + (1.0 - covered.sum()) * rest
        view = report_pair(first, second, others.reshape(n - 1, width + 1))
        assert worst_gap(label_pair(n, p, beta, q), view) < TOLERANCE
        looser = min(beta * rng.uniform(1.0, 1.5), (p - 1.0) / (p + 1.0), q - 1.0)
        assert worst_gap(label_pair(n, p, looser, q), view) < TOLERANCE


@pytest.mark.parametrize("n", [1, 2, 3, 5, 7])
def test_larger_beta_is_always_worse(n: int) -> None:
    """Also where q < 2p/(p+1), so that the pair of the largest beta is out of reach."""
    rng = np.random.default_rng(n)
    for trial in range(60):
        p = float(np.exp(rng.uniform(0.05, 4.0)))
        greatest = (p - 1.0) / (p + 1.0)
        q = p if trial % 2 else 1.0 + greatest * float(np.exp(rng.uniform(-2.0, 1.0)))
        betas = np.sort(rng.uniform(0.0, min(greatest, q - 1.0), size=3))
        pairs = [label_pair(n, p, beta, q) for beta in betas]
        assert worst_gap(pairs[1], pairs[0]) < TOLERANCE
        assert worst_gap(pairs[2], pairs[1]) < TOLERANCE


def test_the_bound_is_attained() -> None:
    """The labels themselves are a randomizer: nothing smaller than the pair would do."""
    n, p, beta, q = 4, 4.0, 0.3, 3.0
    target_p, target_q, other = np.array(o.reduction_laws(p, beta, q))
    view = report_pair(target_p, target_q, np.array([other] * (n - 1)))
    pair = label_pair(n, p, beta, q)
    assert worst_gap(pair, view) == pytest.approx(0.0, abs=1e-12)
    assert worst_gap(label_pair(n, p, 0.999 * beta, q), view) > 1e-6
    assert worst_gap(label_pair(n, p, beta, 0.999 * q), view) > 1e-6
    assert worst_gap(label_pair(n + 1, p, beta, q), view) > 1e-4


def test_labels_reproduce_the_laws() -> None:
    """Step (1) of the proof: R0, R1 are the stated mixtures of Q0, Q1, Q*; so is part of R_i."""
    rng = np.random.default_rng(5)
    for _ in range(50):
        p = float(np.exp(rng.uniform(0.1, 3.0)))
        first, second = ldp_laws(2, 4, p, rng, mixed=True)
        beta = total_variation(first, second)
        alpha = beta / (p - 1.0)
        part_0 = np.maximum(first - second, 0.0) / beta
        part_1 = np.maximum(second - first, 0.0) / beta
        star = (p * np.minimum(first, second) - np.maximum(first, second)) / (p - 1.0)
        assert (star >= -1e-12).all() and star.sum() == pytest.approx(1.0 - alpha * (p + 1.0))
        np.testing.assert_allclose(alpha * p * part_0 + alpha * part_1 + star, first, atol=1e-12)
        np.testing.assert_allclose(alpha * part_0 + alpha * p * part_1 + star, second, atol=1e-12)
        labelled = alpha * p * (part_0 + part_1) + star
        np.testing.assert_allclose(labelled, np.maximum(first, second), atol=1e-12)


def test_two_adaptive_rounds() -> None:
    """The second round's randomizer depends on the first round's reports: still covered."""
    rng = np.random.default_rng(11)
    n, width, ratio = 3, 3, float(np.exp(1.5))
    worst = (ratio - 1.0) / (ratio + 1.0)
    pair = label_pair(n, ratio, worst, ratio)
    square = (np.outer(pair[0], pair[0]).ravel(), np.outer(pair[1], pair[1]).ravel())
    for trial in range(25):
        laws = ldp_laws(n + 1, width, ratio, rng, mixed=trial % 2 == 1)
        first = report_pair(laws[0], laws[1], laws[2:])
        masses_p, masses_q = [], []
        for mass_p, mass_q in zip(*first, strict=True):
            laws = ldp_laws(n + 1, width, ratio, rng, mixed=False)
            second = report_pair(laws[0], laws[1], laws[2:])
            masses_p.append(mass_p * second[0])
            masses_q.append(mass_q * second[1])
        view = np.concatenate(masses_p), np.concatenate(masses_q)
        assert worst_gap(square, view) < TOLERANCE


def test_sequentially_adaptive_users() -> None:
    """Feldman-McMillan-Talwar 2021: the data are permuted, then step i runs an eps0-LDP randomizer
    that may depend on the reports before it; all reports are seen in their order."""
    rng = np.random.default_rng(13)
    n, width, ratio = 4, 2, float(np.exp(1.0))
    pair = label_pair(n, ratio, (ratio - 1.0) / (ratio + 1.0), ratio)
    orders = list(itertools.permutations(range(n)))
    for trial in range(60):
        view = [np.zeros(width**n), np.zeros(width**n)]
        tables = [
            [ldp_laws(n + 1, width, ratio, rng, mixed=trial % 2 == 1) for _ in range(width**step)]
            for step in range(n)
        ]  # tables[step][past]: a row for each datum, the last row for the target's other value
        for side, order in itertools.product((0, 1), orders):
            joint = np.ones(1)
            for step, user in enumerate(order):
                row = n if side == 1 and user == 0 else user
                laws = [table[row] for table in tables[step]]
                joint = (joint[:, None] * np.array(laws)).reshape(-1)
            view[side] += joint / len(orders)
        assert worst_gap(pair, (view[0], view[1])) < TOLERANCE
