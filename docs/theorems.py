"""Theorems, enumerated: none of the package's code takes part, so no change of it can break what is checked here.

    python -m pytest docs/theorems.py      (half a minute; the oracles are those of tests/)

What the package makes of the theorems is tested in tests/. That a published pair with a third outcome is no bound is
shown in notebooks/theory.ipynb.
"""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction
from functools import cache

import numpy as np
import oracles as o
import pytest
from test_shuffled_batches import bent

# --- the reduction to labels (docs/theory.md), on random randomizers ------------------------------

TOLERANCE = 1e-9
FloatPair = tuple[np.ndarray, np.ndarray]


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


def worst_gap(large: FloatPair, small: FloatPair) -> float:
    """The largest H_alpha(small) - H_alpha(large) over alpha > 0, per 1 + alpha."""
    seen = large[1] > 0
    alphas = np.unique(large[0][seen] / large[1][seen])

    def profile(pair: FloatPair) -> np.ndarray:
        return np.maximum(pair[0] - alphas[:, None] * pair[1], 0.0).sum(axis=1)

    gaps = (profile(small) - profile(large)) / (1.0 + alphas)
    hidden = small[0][small[1] == 0].sum() - large[0][large[1] == 0].sum()
    mirror = small[1][small[0] == 0].sum() - large[1][large[0] == 0].sum()
    return float(max(gaps.max(), hidden, mirror))


def label_pair(n: int, p: float, beta: float, q: float) -> FloatPair:
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


# --- Theorem D: shuffled batches (docs/shuffled_batches.md), finite laws in place of Gaussian ones ---


Law = list[Fraction]


def positive(first: Law, second: Law, s: Fraction) -> Fraction:
    return sum((max(p - s * q, Fraction(0)) for p, q in zip(first, second, strict=True)), Fraction(0))


def protocol(laws: list[Law], records: int, plan: tuple, present: bool) -> Law:
    """The law of both outputs: two batches of one record out of `records` in random order, record 0 the target.

    plan : for every record its contribution (an index into laws) to the first batch, and to the second one given the
    first output. The target contributes index 0, or nothing, index 1.
    """
    start, later = plan
    places = list(itertools.permutations(range(records), 2))
    found = []
    for a, b in itertools.product(range(len(laws[0])), repeat=2):
        total = Fraction(0)
        for i, j in places:
            own = 0 if present else 1
            first = own if i == 0 else start[i]
            second = own if j == 0 else later[j][a]
            total += laws[first][a] * laws[second][b]
        found.append(total / len(places))
    return found


def game(laws: list[Law], q: Fraction, s: Fraction, order: tuple[int, int]) -> Fraction:
    """Theorem D before any envelope: the largest E(q/2 (L_1 + L_2) + (1-q)(1-s))_+, types chosen adaptively."""

    def values(w: int) -> list[tuple[Fraction, Fraction]]:
        one, two = (laws[i] for i in order)
        return [(p, (x - s * y) / p) for p, x, y in zip(laws[w], one, two, strict=True)]

    types = [values(w) for w in range(len(laws))]

    def last(gained: Fraction) -> Fraction:
        rest = (1 - q) * (1 - s)
        return max(sum(p * max(q / 2 * (gained + x) + rest, Fraction(0)) for p, x in kind) for kind in types)

    return max(sum(p * last(x) for p, x in kind) for kind in types)


@pytest.mark.parametrize("left_out", [1, 2])
def test_the_protocol_lies_below_theorem_d_in_rationals(left_out: int) -> None:
    rng = random.Random(left_out)
    records, nearest = 2 + left_out, Fraction(0)
    for _ in range(150):
        raw = [[rng.randrange(1, 9) for _ in range(3)] for _ in range(3)]
        laws = [[Fraction(x, sum(row)) for x in row] for row in raw]
        same = rng.random() < 0.3
        start = [rng.randrange(3) for _ in range(records)]
        later = [[rng.randrange(3) for _ in range(3)] for _ in range(records)]
        if same:  # all others alike, whatever was seen: the attack
            start, later = [2] * records, [[2] * 3] * records
        s, q = Fraction(rng.choice([3, 4, 5, 8]), 3), Fraction(2, records)
        laws_of = [protocol(laws, records, (start, later), present) for present in (True, False)]
        for order in ((0, 1), (1, 0)):
            exact = positive(laws_of[order[0]], laws_of[order[1]], s)
            bound = game(laws, q, s, order)
            assert exact <= bound
            nearest = max(nearest, exact / bound if bound else nearest)
    assert nearest == 1  # attained


# --- Theorem G: games at some strikes --------------------------------------------------------------


def test_the_value_is_convex_in_strike_and_start_jointly() -> None:
    """A game of three types, one step after the other in rationals: chords between two strikes, whatever the starts."""
    rng = random.Random(4)
    for _ in range(150):
        laws = [[Fraction(rng.randrange(1, 9)) for _ in range(3)] for _ in range(3)]
        laws = [[x / sum(row) for x in row] for row in laws]

        def value(s: Fraction, start: Fraction, laws: list[Law] = laws, left: int = 2) -> Fraction:
            if left == 0:
                return max(start, Fraction(0))
            target, nobody = laws[0], laws[1]
            moves = [[(p, (x - s * y) / p) for p, x, y in zip(w, target, nobody, strict=True)] for w in laws]
            return max(sum(p * value(s, start + move, laws, left - 1) for p, move in kind) for kind in moves)

        one, two = (Fraction(rng.randrange(10, 40), 10) for _ in range(2))
        first, second = (Fraction(rng.randrange(-30, 30), 10) for _ in range(2))
        part = Fraction(rng.randrange(1, 8), 8)
        between = value(one + part * (two - one), first + part * (second - first))
        assert between <= (1 - part) * value(one, first) + part * value(two, second)


# --- Theorem H: one type ---------------------------------------------------------------------------


@pytest.mark.parametrize("forward", [True, False])
def test_a_type_that_is_the_worst_for_slow_curvature_is_the_worst_in_a_sum(forward: bool) -> None:
    """Lists of few values, the type chosen anew after every term, against the one that the condition names."""
    rng, sign, checked = np.random.default_rng(3), 1.0 if forward else -1.0, 0
    for _ in range(60):
        lam, places = float(rng.uniform(0.2, 1.0)), np.linspace(-12.0, 12.0, 481)
        values, masses = np.sort(rng.uniform(-2.0, 2.0, (3, 3))), rng.dirichlet(np.ones(3), 3)
        values += -0.1 - np.sum(values * masses, axis=1, keepdims=True)  # all means are -0.1
        values[0] = (values[0] + 0.1) * 1.6 - 0.1

        def slow(value: np.ndarray, mass: np.ndarray, lam: float = lam, places: np.ndarray = places) -> np.ndarray:
            if forward:  # every strike
                return bent(value[:, None] - places, lam).T @ mass
            away = value[:, None] - places
            return (np.where(away < 0.0, np.exp(lam * np.minimum(away, 0.0)), 1.0 + lam * away)).T @ mass

        most = [slow(*law) for law in zip(values, masses, strict=True)]
        if not all(np.all(one <= most[0] + 1e-15) for one in most[1:]):
            continue
        checked += 1

        def best(x: float, left: int, values: np.ndarray = values, masses: np.ndarray = masses) -> float:
            if left == 0:
                return max(x, 0.0)
            later = [[best(x + v, left - 1) for v in row] for row in values]
            return float(max(np.sum(masses * np.array(later), axis=1)))

        ends = np.array(list(itertools.product(values[0], repeat=3))).sum(axis=1)
        weight = np.array(list(itertools.product(masses[0], repeat=3))).prod(axis=1)
        for x in (-1.5, 0.0, 0.7):
            away = x + ends
            if forward:  # E (away + 1/lam - Y)_+
                smooth = bent(away + 1.0 / lam, lam) / lam
            else:  # E (away + Y - 1/lam)_+
                y = away - 1.0 / lam
                smooth = np.where(y > 0.0, y + 1.0 / lam, np.exp(np.minimum(lam * y, 0.0)) / lam)
            assert best(x, 3) <= float(weight @ smooth) + 1e-12
    assert checked > 5
    assert sign


# --- Theorem S: every record is used ---------------------------------------------------------------


def adaptive_steps(rng: random.Random, users: int, size: int) -> list:
    """Laws of every user in both slots: the second one given the first output; user 0 is the target."""

    def law() -> Law:
        raw = [rng.randrange(1, 9) for _ in range(size)]
        return [Fraction(x, sum(raw)) for x in raw]

    return [(law(), [law() for _ in range(size)]) for _ in range(users)]


def test_the_exchange_of_theorem_s_is_the_protocol_in_rationals() -> None:
    """Two slots, two users, adaptive: the mixture over J, u and pi' has the protocol's law, u integrated exactly."""
    rng = random.Random(5)
    for _ in range(40):
        size = 3
        (target, target_later), (other, other_later) = adaptive_steps(rng, 2, size)
        guest, guest_later = ([min(p, q) for p, q in zip(target, other, strict=True)],
                              [[min(p, q) for p, q in zip(*rows, strict=True)]
                               for rows in zip(target_later, other_later, strict=True)])  # fmt: skip
        v = [x / sum(guest) for x in guest]
        v_later = [[x / sum(row) for x in row] for row in guest_later]
        c = 1 / min([sum(guest), *(sum(row) for row in guest_later)])
        for a, b in itertools.product(range(size), repeat=2):
            exact = (target[a] * other_later[a][b] + other[a] * target_later[a][b]) / 2
            # u <= 1/c: density 2 (1 - u); J is the target (others have W^u) or the other user (has V).
            half = 1 / c
            found = Fraction(0)
            for place in (0, 1):  # of the target under pi'
                r = (target[a], target_later[a][b])
                w = (other[a], other_later[a][b])
                guests = (v[a], v_later[a][b])
                # J = target: the other one, at the other place, has (W - uV)/(1 - u); times 2 (1 - u), over u.
                alone = r[place] * 2 * (w[1 - place] * half - guests[1 - place] * half**2 / 2)
                # J = the other one: the target goes to its place, it comes to the target's, with V.
                moved = r[1 - place] * guests[place] * (2 * half - half**2)
                found += (alone + moved) / 4
            # u > 1/c: the least number is above 1/c, so whoever is not J has (W - V/c)/(1 - 1/c), and J, too.
            rest = (1 - half) ** 2
            for place in (0, 1):
                r = (target[a], target_later[a][b])
                w = (other[a], other_later[a][b])
                guests = (v[a], v_later[a][b])
                found += rest / 2 * r[place] * (w[1 - place] - guests[1 - place] / c) / (1 - half)
            assert found == exact


# --- random allocation: steps that are chosen ------------------------------------------------------


def test_adaptive_steps_lie_below() -> None:
    """Steps that are post-processings of the given pair, chosen by what was seen: enumerated, both orders."""
    rng = random.Random(22)
    given = [[Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]]
    known = o.pair_of_views(o.allocation_view(*given, 2), o.allocation_view(given[1], given[1], 2))
    worst = Fraction(0)
    for _ in range(400):
        kernels = [[Fraction(rng.randrange(5), 4) for _ in range(2)] for _ in range(3)]

        def step(kernel: list[Fraction]) -> list[list[Fraction]]:
            one = [sum(a * b for a, b in zip(law, kernel, strict=True)) for law in given]
            return [[x, 1 - x] for x in one]

        def law(present: int | None, kernels: list[list[Fraction]] = kernels) -> list[Fraction]:
            """Of both outputs, the contribution in step `present`; the second step depends on the first output."""
            start = step(kernels[0])[0 if present == 0 else 1]
            return [start[a] * step(kernels[1 + a])[0 if present == 1 else 1][b] for a in (0, 1) for b in (0, 1)]

        hidden = [(x + y) / 2 for x, y in zip(law(0), law(1), strict=True)]
        s = Fraction(rng.choice([5, 6, 8, 12]), 5)
        for order in (1, -1):
            bound, exact = (
                o.hockey_stick([atom[::order] for atom in pair], s)
                for pair in (known, zip(hidden, law(None), strict=True))
            )
            assert exact <= bound
            worst = max(worst, exact / bound if bound else Fraction(0))
    assert worst == 1  # the given pair itself is among them
