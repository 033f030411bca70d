"""Theorems, enumerated: none of the package's code takes part, so no change of it can break what is checked here.

    python -m pytest docs/theorems.py      (half a minute; the oracles are those of tests/)

What the package makes of the theorems is tested in tests/. That a published pair with a third outcome is no bound is
shown in notebooks/theory.ipynb.
"""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np
import oracles as o
import pytest

# --- the reduction to labels (docs/theory.md), on random randomizers ------------------------------

TOLERANCE = 1e-9


@cache
def histogram_index(width: int, users: int) -> tuple[np.ndarray, int]:
    """For every message vector, in C order, the number of its histogram; and how many there are."""
    messages = np.indices((width,) * users).reshape(users, -1)
    code = np.zeros(messages.shape[1], dtype=np.int64)
    for message in range(width):
        code = code * (users + 1) + (messages == message).sum(axis=0)
    values, index = np.unique(code, return_inverse=True)
    return index.reshape(-1), len(values)


def shuffled_float(laws: np.ndarray) -> np.ndarray:
    """Histogram probabilities in float64, over all K^n message vectors; laws has shape (n, K)."""
    index, size = histogram_index(laws.shape[1], laws.shape[0])
    joint = laws[0]
    for law in laws[1:]:
        joint = np.multiply.outer(joint, law).reshape(-1)
    return np.bincount(index, weights=joint, minlength=size)


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
    return (shuffled_float(np.array([target_p, *others])), shuffled_float(np.array([target_q, *others])))


def extreme_law(floor: np.ndarray, ratio: float, rng: np.random.Generator) -> np.ndarray:
    """A vertex of {x: floor <= x <= ratio floor, sum x = 1}."""
    law, spare = floor.copy(), 1.0 - floor.sum()
    for message in rng.permutation(len(floor)):
        raised = min((ratio - 1.0) * floor[message], spare)
        law[message] += raised
        spare -= raised
    return law


def ldp_laws(rows: int, width: int, ratio: float, rng: np.random.Generator, *, mixed: bool) -> np.ndarray:
    """`rows` output laws of one eps0-LDP randomizer, ratio = e^eps0: vertices, or mixtures."""
    floor = rng.dirichlet(np.full(width, rng.choice([0.3, 1.0, 5.0])))
    floor *= rng.uniform(1.0 / ratio, 1.0)
    laws = np.array([extreme_law(floor, ratio, rng) for _ in range(rows)])
    if mixed:
        partners = np.array([extreme_law(floor, ratio, rng) for _ in range(rows)])
        share = rng.uniform(size=(rows, 1))
        laws = share * laws + (1.0 - share) * partners
    return laws


@pytest.mark.parametrize(("n", "width"), [(2, 5), (3, 4), (4, 3), (5, 3), (5, 2), (1, 5), (4, 4)])
def test_other_users_with_their_own_randomizers(n: int, width: int) -> None:
    """q != p, below and above it; the others' laws are unrelated beyond max(R0, R1) <= q R_i, their
    remaining mass put on any outcomes, some of which the target never sends."""
    rng = np.random.default_rng([n, width])
    for trial in range(300):
        p = float(np.exp(rng.uniform(0.05, 4.0)))
        first, second = ldp_laws(2, width, p, rng, mixed=trial % 3 == 0)
        beta = float(np.maximum(first - second, 0.0).sum())
        if beta < 1e-6:
            continue
        unseen = np.zeros(1)
        first, second = np.append(first, unseen), np.append(second, unseen)
        q = (1.0 + beta) * float(np.exp(rng.choice([0.0, rng.uniform(0.0, 4.0)])))
        covered = np.maximum(first, second) / q
        rest = rng.dirichlet(np.full(width + 1, rng.choice([0.05, 1.0])), size=n - 1)
        others = covered + (1.0 - covered.sum()) * rest
        view = tuple(shuffled_float(np.vstack([law, others.reshape(n - 1, width + 1)])) for law in (first, second))
        assert worst_gap(label_pair(n, p, beta, q), view) < TOLERANCE
        looser = min(beta * rng.uniform(1.0, 1.5), (p - 1.0) / (p + 1.0), q - 1.0)
        assert worst_gap(label_pair(n, p, looser, q), view) < TOLERANCE


# --- Theorem U: reports made one after the other (docs/swap.md) -----------------------------------


def sequences(order, law):
    """Masses of the sequences of three reports of three kinds; law(user, past) is asked in `order`."""
    masses = np.ones((3, 3, 3))
    for z in np.ndindex(3, 3, 3):
        masses[z] = math.prod(law(user, z[:place])[z[place]] for place, user in enumerate(order))
    return masses


def right_side_of_u(order, law, target, s):
    """G(u) of Theorem U for laws that depend on the past; target(past) : the two laws of the target."""
    regular, singular = np.zeros((3, 3, 3)), 0.0
    for z in np.ndindex(3, 3, 3):
        for place, user in enumerate(order):
            past, mass = z[:place], law(user, z[:place])[z[place]]
            gap = target(past)[0][z[place]] - s * target(past)[1][z[place]]
            if mass > 0:
                regular[z] += gap / mass / 3
            elif not any(z[place + 1 :]):
                before = math.prod(law(order[i], z[:i])[z[i]] for i in range(place))
                singular += before * max(gap, 0.0) / 3
    return np.sum(sequences(order, law) * np.maximum(regular, 0.0)) + singular


@pytest.mark.parametrize("seed", range(4))
def test_theorem_u_for_reports_made_one_after_the_other(seed):
    """The exchange has the protocol's law, and the theorem's G is what it reveals; laws depend on the past."""
    cuts, laws, orders = (0.0, 0.3, 0.55), {}, list(itertools.permutations(range(3)))

    def made(past):
        """The two laws of the path, the target's two, and the other users', after some reports."""
        if past not in laws:
            rows = np.random.default_rng([seed, len(past), *past]).dirichlet(np.full(3, 0.5), size=6)
            rows[rows < 0.05] = 0.0
            rows /= rows.sum(axis=1, keepdims=True)
            laws[past] = rows[:2], rows[2:4], 0.3 * rows[0] + 0.25 * rows[1] + 0.45 * rows[3:]
        return laws[past]

    def reports(u, target, side=None):
        """The law of whoever is asked if all numbers are above u; `target` has the target's, user 0 else V_u."""

        def law(user, past):
            path, own, others = made(past)
            if user == target:
                return own[side]
            if user == 0:
                return path[int(u > cuts[1])]
            return (others[user] - np.dot([min(u, 0.3), min(max(u - 0.3, 0.0), 0.25)], path)) / (1 - u)

        return law

    def mean(u, targets, side):
        return sum(sequences(order, reports(u, j, side)) for order in orders for j in targets) / 6 / len(targets)

    exchanged = np.array([(1 - cuts[2]) ** 3 * mean(cuts[2], [0], side) for side in range(2)])
    for a, b in itertools.pairwise(cuts):
        for x, w in zip(*np.polynomial.legendre.leggauss(3), strict=True):
            u = (a + b) / 2 + x * (b - a) / 2
            for side in range(2):
                exchanged[side] += w * (b - a) / 2 * 3 * (1 - u) ** 2 * mean(u, range(3), side)
            order = orders[seed]
            pair = np.array([sum(sequences(order, reports(u, j, i)) for j in range(3)) / 3 for i in range(2)])
            for s in (0.7, 1.0, 1.6):
                revealed = np.maximum(pair[0] - s * pair[1], 0.0).sum()
                right = right_side_of_u(order, reports(u, None), lambda past: made(past)[1], s)
                assert right == pytest.approx(revealed, rel=1e-12)
    for side in range(2):
        assert exchanged[side] == pytest.approx(mean(0.0, [0], side), abs=1e-14)
