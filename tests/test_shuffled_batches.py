"""Shuffled batches against the real protocol, enumerated or integrated: permutations, adaptive others, both orders."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest

from pld_shuffle import Accountant, Gaussian, RandomAllocation, ShuffledBatches, ShuffledLDP
from pld_shuffle.numerics.sides import Bounds
from pld_shuffle.pairs.allocation import GaussianSteps, ShuffledSteps

Law = list[Fraction]


def positive(first: Law, second: Law, s: Fraction) -> Fraction:
    return sum((max(p - s * q, Fraction(0)) for p, q in zip(first, second, strict=True)), Fraction(0))


# --- Theorem D with finite laws in place of Gaussian ones, in rationals -------------------------------


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


# --- the package's bound, with Gaussian noise, by quadrature ----------------------------------------------


def grid(noise: float) -> tuple[np.ndarray, np.ndarray]:
    node, weight = np.polynomial.legendre.leggauss(12)
    ends = np.linspace(-1.0 - 8.0 * noise, 1.0 + 8.0 * noise, 41)
    half = 0.5 * np.diff(ends)[:, None]
    return (ends[:-1, None] + half * (1.0 + node)).ravel(), (half * weight).ravel()


def exact_two_batches(
    noise: float, size: int, start: np.ndarray, later: np.ndarray, z: np.ndarray, present: bool
) -> np.ndarray:
    """The density of both sums; start (records,) and later (records, z) are contributions, the target's first."""
    records = start.size
    on = np.ones(records)
    on[0] = float(present)
    found, ways = np.zeros((z.size, z.size)), 0
    for one in itertools.combinations(range(records), size):
        rest = [i for i in range(records) if i not in one]
        for two in itertools.combinations(rest, size):
            first = sum(start[i] * on[i] for i in one)
            second = sum(later[i] * on[i] for i in two)
            a = np.exp(-0.5 * ((z - first) / noise) ** 2)
            b = np.exp(-0.5 * ((z[None, :] - np.asarray(second)[:, None]) / noise) ** 2)
            found += a[:, None] * b
            ways += 1
    return found / (ways * 2.0 * math.pi * noise * noise)


@pytest.mark.parametrize("size, left_out", [(1, 1), (1, 2), (2, 1)])
def test_two_batches_lie_below_the_bound_and_the_attack_is_attained(size: int, left_out: int) -> None:
    rng = np.random.default_rng(10 * size + left_out)
    records = 2 * size + left_out
    for trial in range(6):
        noise = float(rng.choice([0.7, 1.0, 1.5, 2.5]))
        eps = float(rng.choice([0.05, 0.3, 0.8]))
        z, weight = grid(noise * 1.3 * size)
        start = rng.choice([-1.0, 1.0, rng.uniform(-1, 1)], records)
        cuts = np.sort(rng.normal(0.0, 1.5, 3))
        later = rng.choice([-1.0, 1.0, rng.uniform(-1, 1)], (records, 4))[:, np.searchsorted(cuts, z)]
        if trial == 0:
            start[1:], later[1:] = -1.0, -1.0
        start[0], later[0] = 1.0, 1.0
        both = [exact_two_batches(noise, size, start, later, z, on) for on in (True, False)]
        kind = ShuffledBatches(noise, 2, size, records)
        s, expm1_eps = math.exp(eps), np.array([math.expm1(eps)])
        for pair, (p, q) in zip(kind.pair.pairs, (both, both[::-1]), strict=True):
            exact = float(weight @ np.maximum(p - s * q, 0.0) @ weight)
            assert exact <= float(pair.profile(expm1_eps, 1e-5, 1e-12).upper[0]) * (1 + 2e-3)
        if trial == 0:
            exact = float(weight @ np.maximum(both[0] - s * both[1], 0.0) @ weight)
            attack = kind.attack_pair.profile(expm1_eps, 1e-5, 1e-12)
            assert attack.lower[0] * (1 - 2e-3) <= exact <= attack.upper[0] * (1 + 2e-3)


def test_lemma_3_by_a_grid_of_configurations_in_the_plane() -> None:
    """Calls and puts of (N(x) - s N(0))/N(w) are below those of the envelope: |x|, |w| <= 1, both kinds of strikes."""
    rng = np.random.default_rng(3)
    noise = 1.3
    z = np.linspace(-9.0, 9.0, 361)
    plane = np.stack(np.meshgrid(z, z, indexing="ij"), axis=-1)
    cell = (z[1] - z[0]) ** 2

    def density(centre: np.ndarray) -> np.ndarray:
        return np.exp(-np.sum((plane - centre) ** 2, axis=-1) / (2 * noise**2)) / (2 * math.pi * noise**2)

    zero = np.zeros(2)
    for _ in range(25):
        x, w = (v / max(1.0, np.linalg.norm(v)) for v in rng.normal(size=(2, 2)))
        s = math.exp(rng.choice([0.1, 0.5, 1.5]))
        for add in (False, True):
            far, near = (zero, x) if add else (x, zero)
            values = density(far) - s * density(near)
            pair = ShuffledSteps(GaussianSteps(noise, *((0, 1) if add else (1, 0)), 0), 5, Bounds(1.0, 1.0))
            law = pair._law(s - 1.0, 1e-16, 0.02)
            with np.errstate(divide="ignore", invalid="ignore"):
                level = np.where(law.others > 0.0, (law.first - s * law.second) / law.others, 0.0)
            others = density(w)
            for y in (0.0, 0.1, 0.5, 2.0):
                calls = np.sum(np.maximum(values - y * others, 0.0)) * cell
                assert calls <= float(law.others @ np.maximum(level - y, 0.0)) + 2e-4
                puts = np.sum(np.maximum(-values - y * others, 0.0)) * cell
                assert puts <= float(law.others @ np.maximum(-level - y, 0.0)) + 2e-4


@pytest.mark.parametrize(
    "sigma, batches, attack, bound",
    [(1.0, 1000, 3.7253, 3.7265), (1.0, 10_000, 1.8959, 1.8968), (1.5, 100, 1.9645, 1.9690),
     (1.5, 1000, 0.60369, 0.60590), (2.0, 100, 0.71846, 0.72919)],
)  # fmt: skip
def test_numbers_of_the_table(sigma: float, batches: int, attack: float, bound: float) -> None:
    kind = ShuffledBatches(sigma, batches, 1000, batches * 1000 + 1)
    found = Accountant().compose(kind).epsilon_bounds(1e-6)
    assert found.lower == pytest.approx(attack, rel=3e-4)
    assert found.lower < found.upper <= bound * (1 + 2e-4)


def test_every_record_used_gives_no_amplification_and_says_so() -> None:
    kind = ShuffledBatches(1.0, 100, 500, 50_000)
    assert kind.pair == Gaussian(sigma=1.0).pair
    assert "no amplification" in kind.assumptions()["analysis"]
    found = Accountant().compose(kind).epsilon_bounds(1e-6)
    assert found.lower == pytest.approx(4.6830, rel=1e-3)
    assert found.upper == pytest.approx(4.8866, rel=1e-4)


def test_it_costs_more_than_random_allocation_and_replacement_more_than_nothing() -> None:
    delta, epoch = 1e-5, ShuffledBatches(2.0, 500, 10, 5_001)
    hidden = Accountant().compose(RandomAllocation(Gaussian(sigma=2.0), 500)).get_epsilon(delta)
    found = Accountant().compose(epoch).epsilon_bounds(delta)
    replaced = ShuffledBatches(2.0, 500, 10, 5_001, relation="replace-one")
    other = Accountant().compose(replaced).epsilon_bounds(delta)
    assert hidden < found.lower < found.upper < other.upper and found.lower < other.lower


def test_more_left_out_hides_more() -> None:
    found = [Accountant().compose(ShuffledBatches(2.0, 100, 10, 1000 + r)).get_epsilon(1e-5) for r in (1, 100, 1000)]
    assert found[0] > found[1] > found[2]


@pytest.mark.parametrize(
    "given, named",
    [
        (dict(sigma=1.0, batches=10, batch_size=10, records=90), "records"),
        (dict(sigma=0.01, batches=10, batch_size=10, records=101), "sigma"),
        (dict(sigma=1.0, batches=0, batch_size=10, records=101), "batches"),
        (dict(sigma=1.0, batches=10, batch_size=10, records=101, relation="add"), "relation"),
    ],
)
def test_bad_input_is_named(given: dict, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        ShuffledBatches(**given)


def test_epochs_are_rounds_and_relations_must_agree() -> None:
    accountant = Accountant().compose(ShuffledBatches(4.0, 10_000, 10, 100_001))
    with pytest.raises(ValueError, match="relation"):
        accountant.compose(ShuffledLDP(1.0, 1000))
    assert not accountant.would_exceed(ShuffledBatches(4.0, 10_000, 10, 100_001), epsilon=1.0, delta=1e-6)
