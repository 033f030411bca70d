"""Random ledgers against exact answers: is every bracket on its side of the truth?

    python benchmarks/fuzz_certificates.py --seconds 3600 --log fuzz.jsonl
    python benchmarks/fuzz_certificates.py --log fuzz.jsonl --summary

A case is a ledger of 1 to 3 rounds and a question. Parameters are drawn log-uniformly to the ends of their ranges,
users are few enough to enumerate. The truth comes from tests/oracles.py: rationals or long decimals, no lattice, no
transform, nothing of this package. Parameters are the doubles as given, so nothing is forgiven: a bracket is right
if upper >= truth >= lower to 40 digits.

Two truths are held against a bracket. `above`: pairs of concrete protocols (or the stated pair of the analysis,
where that is exact); the upper end must be above every one. `below`: pairs that the lower end must not exceed; the
largest of them counts.

Any number of processes may write to one log: a block of seeds is claimed under a lock, its results are one line,
appended in one write. A run that was stopped loses its last block and nothing else. A seed says everything about a
case: `--replay SEED` shows it.
"""

from __future__ import annotations

import argparse
import fcntl
import itertools
import json
import math
import os
import signal
import sys
import time
import traceback
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
from mpmath import mp, mpf

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import oracles as o

from pld_shuffle import Accountant, ShuffledLDP, ShuffledRandomizer, ShuffledRR, Subsampled
from pld_shuffle.mechanisms import DiscretePair, Gaussian, Laplace, PoissonGaussian, Shuffled
from pld_shuffle.mechanisms.attack import Attack
from pld_shuffle.mechanisms.binomial_shift import BinomialExchange, BinomialShift
from pld_shuffle.mechanisms.blanket import Blanket
from pld_shuffle.randomizers import (
    RAPPOR,
    BinaryRandomizedResponse,
    DiscreteRandomizer,
    HadamardResponse,
    KRandomizedResponse,
    LocalHashing,
    SubsetSelection,
    UnaryEncoding,
)
from pld_shuffle.randomizers import Laplace as LocalLaplace

BLOCK = 10  # seeds claimed at a time
PATIENCE = 30  # seconds for one ledger; then it counts as skipped
FORGIVEN = (
    mpf(10) ** -40
)  # of the truth: what the oracle itself may be off, and 10^(20-digits) of 1
DIGITS = 140
QUESTIONS = 6  # epsilons a ledger
MOST_ATOMS = 4_000  # of a composition's halves
Law = list[Any]
Rng = np.random.Generator


@dataclass
class Drawn:
    """A mechanism and its truths: see the top of the file. profile: the exact delta of one round, if known."""

    name: str
    mechanism: Any
    above: list[o.Atoms]
    below: list[o.Atoms] | None = None  # None: the same as above
    profile: Callable[[mpf], mpf] | None = None
    count: int = 1

    @property
    def ceilings(self) -> list[o.Atoms]:
        return self.above if self.below is None else self.below


# --- drawing --------------------------------------------------------------------------------------


def log_uniform(rng: Rng, low: float, high: float) -> float:
    return float(math.exp(rng.uniform(math.log(low), math.log(high))))


def local_budget(rng: Rng, most: float = 700.0) -> float:
    if rng.random() < 0.6:
        return float(rng.uniform(0.05, min(6.0, most)))
    return min(most, log_uniform(rng, 1e-9, most))


def probability(rng: Rng) -> float:
    """In (0, 1), near 0, near 1 or in between."""
    kind = rng.random()
    if kind < 0.5:
        return float(rng.uniform(0.001, 0.999))
    tiny = log_uniform(rng, 1e-12, 0.1)
    return tiny if kind < 0.75 else 1.0 - tiny


def dyadic_law(rng: Rng, width: int, *, zeros: bool = False) -> list[Fraction]:
    """Random masses k/2^40 that sum to 1 exactly, some of them tiny."""
    weights = [2.0 ** -rng.integers(0, 25) for _ in range(width)]
    units = [
        max(0 if zeros and rng.random() < 0.2 else 1, round(w / sum(weights) * 2**40))
        for w in weights
    ]
    units[int(np.argmax(units))] += 2**40 - sum(units)
    return [Fraction(unit, 2**40) for unit in units]


def precise(*losses: float) -> None:
    """Enough digits for e^-loss next to 1."""
    mp.dps = max(mp.dps, DIGITS + int(sum(losses)))


# --- exact pairs ------------------------------------------------------------------------------------


def worst_pair(pairs: Sequence[o.Atoms]) -> o.Atoms:
    """The pair whose profile is the largest of the given ones, at every s > 0."""
    pairs = [o.canonical(pair) for pair in pairs]
    if len(pairs) == 1:
        return pairs[0]

    def table(pair: o.Atoms) -> tuple[list[Any], list[Any], list[Any]]:
        finite = [(p, q) for p, q in pair if q != 0]
        rest = sum((p for p, q in pair if q == 0), start=mpf(0))
        tail_p, tail_q = [rest], [mpf(0)]
        for p, q in reversed(finite):
            tail_p.append(tail_p[-1] + p)
            tail_q.append(tail_q[-1] + q)
        return [p / q for p, q in finite], tail_p[::-1], tail_q[::-1]

    tables = [table(pair) for pair in pairs]

    def line(index: int, s: Any) -> tuple[Any, Any]:
        """Value at 0 and slope of the profile just above s."""
        ratios, tail_p, tail_q = tables[index]
        from bisect import bisect_right

        start = bisect_right(ratios, s)
        return tail_p[start], -tail_q[start]

    knots = sorted({ratio for ratios, _, _ in tables for ratio in ratios if ratio > 0})
    points = [mpf(0)]
    for knot in knots:  # equal ones differ by the rounding of the oracle
        if knot > points[-1] * (1 + mpf(10) ** -50):
            points.append(knot)
    vertices: list[tuple[Any, Any]] = []
    for left, right in zip(points, [*points[1:], None], strict=True):
        lines = [line(index, left * (1 + mpf(10) ** -50)) for index in range(len(tables))]
        inner = {left}
        for (a, b), (c, d) in itertools.combinations(lines, 2):
            if b != d:
                cross = (a - c) / (d - b)
                if cross > left and (right is None or cross < right):
                    inner.add(cross)
        for s in sorted(inner):
            vertices.append((s, max(a + b * s for a, b in lines)))
    last = max(tail_p[-1] for _, tail_p, _ in tables)
    atoms: o.Atoms = [(last, mpf(0))] if last > 0 else []
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in itertools.pairwise(vertices)] + [mpf(0)]
    atoms.append((mpf(0), 1 + slopes[0]))
    for (s, _), before, after in zip(vertices[1:], slopes[:-1], slopes[1:], strict=True):
        if after > before:
            atoms.append((s * (after - before), after - before))
    for side in (0, 1):
        assert abs(sum(atom[side] for atom in atoms) - 1) < mpf(10) ** -30, "not a pair"
    return atoms


def mirrored(atoms: o.Atoms) -> o.Atoms:
    return [(q, p) for p, q in atoms]


def mixed(rate: Any, law: Law, others: Law) -> Law:
    return [rate * one + (1 - rate) * other for one, other in zip(law, others, strict=True)]


def slots(first: Law, second: Law, others: Law, n: int, rate: Any = 1) -> o.Atoms:
    """The target among n-1 equal others, or in a hidden cohort of n of such users."""
    return o.shuffled_pair(
        mixed(rate, first, others), mixed(rate, second, others), [others] * (n - 1)
    )


def clone_laws(e0: mpf, chance: mpf) -> tuple[Law, Law, Law]:
    truthful, lie = e0 / (e0 + 1), 1 / (e0 + 1)
    return [truthful, lie, 0], [lie, truthful, 0], [chance / 2, chance / 2, 1 - chance]


def weak_laws(k: int, gamma: mpf) -> tuple[Law, Law, Law]:
    """Labels of k-RR: the target's two values, the others, and nothing."""
    own, other = 1 - gamma + gamma / k, gamma / k
    rest = gamma * (k - 2) / k
    return [own, other, rest, 0], [other, own, rest, 0], [other, other, rest, 1 - gamma]


def datasets(laws: Sequence[Law], n: int) -> Iterator[o.Atoms]:
    """Shuffled reports for every pair of values of the target and all values of the others."""
    values = range(len(laws))
    for first, second in itertools.permutations(values, 2):
        for others in itertools.combinations_with_replacement(values, n - 1):
            yield o.shuffled_pair(laws[first], laws[second], [laws[i] for i in others])


def cohorts(laws: Sequence[Law], n: int, population: int) -> Iterator[o.Atoms]:
    """The same for a hidden cohort of n of the population."""
    values = range(len(laws))
    for first, second in itertools.permutations(values, 2):
        for others in itertools.combinations_with_replacement(values, population - 1):
            yield o.cohort_pair(laws[first], laws[second], [laws[i] for i in others], n)


def blanket_pair(laws: Sequence[Law], n: int, rate: Any = 1) -> o.Atoms:
    """The blanket adversary's pair, the worst over all values of the target."""
    low = [min(column) for column in zip(*laws, strict=True)]
    others = [*low, 1 - sum(low)]
    return worst_pair(
        [slots([*a, 0], [*b, 0], others, n, rate) for a, b in itertools.permutations(laws, 2)]
    )


# --- mechanisms -------------------------------------------------------------------------------------


def ldp(rng: Rng) -> Drawn:
    n, eps0 = int(rng.integers(1, 13)), local_budget(rng)
    analysis = str(rng.choice(["clones", "stronger-clones"]))
    precise(eps0)
    e0 = o.exp_of(eps0)
    chance = 1 / e0 if analysis == "clones" else 2 / (e0 + 1)
    mechanism = ShuffledLDP(eps0=eps0, n=n, analysis=analysis)
    return sampled(rng, f"ShuffledLDP {analysis}", mechanism, clone_laws(e0, chance), n)


def reduction(rng: Rng) -> Drawn:
    n = int(rng.integers(1, 7))
    tv = log_uniform(rng, 1e-25, 1.0)
    if rng.random() < 0.5:
        eps0 = local_budget(rng)
        precise(eps0)
        p = q = o.exp_of(eps0)
        mechanism = ShuffledRandomizer(n, tv=tv, eps0=eps0)
        name = "ShuffledRandomizer eps0"
    else:
        a = 1.0 + log_uniform(rng, 1e-8, 1e4)
        b = 1.0 + log_uniform(rng, 2.0**-52, 1e3)
        if rng.random() < 0.3:  # next to the border where nobody is silent
            theta = (a - 1.0) / (a + 1.0)
            tv = float(rng.choice([tv, theta, theta * (1.0 - log_uniform(rng, 1e-15, 0.1))]))
            b = 1.0 + float(min(tv, theta)) * (1.0 + float(rng.choice([0.0, 1e-15, 1e-12, 1e-3])))
        p, q = mpf(a), mpf(b)
        if q == 1:
            q = mpf(math.nextafter(1.0, 2.0))
        precise(float(mp.log(p)), 30)
        mechanism = ShuffledRandomizer(n, tv=tv, p=float(p), q=float(q))
        name = "ShuffledRandomizer p, q"
    beta = min(mpf(tv), (p - 1) / (p + 1), q - 1)
    return sampled(rng, name, mechanism, o.reduction_laws(p, beta, q), n)


def rr(rng: Rng) -> Drawn:
    n = int(rng.integers(1, 8))
    k = int(rng.choice([2, 3, 4, 10, 1000, 10**6]))
    adversary = str(rng.choice(["strong", "weak", "strong-conditional"]))
    if rng.random() < 0.5:
        gamma_given = probability(rng)
        gamma = mpf(gamma_given)
        mechanism = ShuffledRR(k=k, n=n, gamma=gamma_given, adversary=adversary)
    else:
        eps0 = local_budget(rng, 60.0)
        precise(eps0)
        gamma = k / (o.exp_of(eps0) + k - 1)
        mechanism = ShuffledRR(k=k, n=n, eps0=eps0, adversary=adversary)
    name = f"ShuffledRR {adversary}"
    if adversary == "weak":
        return sampled(rng, name, mechanism, weak_laws(k, gamma), n)
    if rng.random() < 0.4:
        rate = probability(rng)
        if adversary == "strong" and rng.random() < 0.5:
            general = Subsampled(mechanism, rate=rate, analysis="general")
            pair = o.subsampled(o.strong(n, k, gamma), mpf(rate))
            return Drawn(f"{name} sampled general", general, [pair])
        hidden = Subsampled(mechanism, rate=rate)
        return Drawn(f"{name} sampled", hidden, [slots(*weak_laws(k, gamma), n, mpf(rate))])
    pair = o.strong(n, k, gamma, conditional=adversary == "strong-conditional")
    return Drawn(name, mechanism, [pair])


def sampled(rng: Rng, name: str, mechanism: Any, laws: tuple[Law, Law, Law], n: int) -> Drawn:
    """A mechanism of labels, or a hidden cohort of it, by either analysis."""
    if rng.random() < 0.5:
        return Drawn(name, mechanism, [slots(*laws, n)])
    analysis = str(rng.choice(["tightest", "general"]))
    given: dict[str, Any]
    if rng.random() < 0.3:
        population = n + round(log_uniform(rng, 1, 1e9))
        rate, given = mpf(n) / population, {"population": population}
    else:
        number = probability(rng)
        rate, given = mpf(number), {"rate": number}
    hidden = Subsampled(mechanism, analysis=analysis, **given)
    pair = slots(*laws, n, rate) if analysis == "tightest" else o.subsampled(slots(*laws, n), rate)
    return Drawn(f"{name} sampled {analysis}", hidden, [pair])


def binary(e0: mpf) -> list[Law]:
    return [[e0 / (e0 + 1), 1 / (e0 + 1)], [1 / (e0 + 1), e0 / (e0 + 1)]]


def three_rr(e0: mpf) -> list[Law]:
    return [[(e0 if x == y else 1) / (e0 + 2) for y in range(3)] for x in range(3)]


def ldp_tightest(rng: Rng) -> Drawn:
    """Any eps0-LDP randomizer: every protocol is below the upper end, the named attack above the lower end."""
    n, eps0 = int(rng.integers(1, 6)), local_budget(rng, 30.0)
    precise(eps0)
    e0 = o.exp_of(eps0)
    extreme = [
        [(e0 if (x >> y) & 1 else mpf(1)) for y in range(4)] for x in rng.choice(14, 3, False) + 1
    ]
    scale = rng.dirichlet(np.ones(4))
    some = [[mpf(float(w)) * v for w, v in zip(scale, row, strict=True)] for row in extreme]
    some = [[entry / sum(row) for entry in row] for row in some]
    ratio = max(max(c) / min(c) for c in zip(*some, strict=True))
    families = [binary(e0), three_rr(e0)] + ([some] if ratio <= e0 else [])
    mechanism = ShuffledLDP(eps0=eps0, n=n)
    if rng.random() < 0.5:
        above = [pair for laws in families for pair in datasets(laws, n)]
        below = [pair for base in (binary(e0), three_rr(e0)) for pair in datasets(base, n)]
        return Drawn("ShuffledLDP tightest", mechanism, above, below)
    if n <= 3 and rng.random() < 0.5:
        population = n + int(rng.integers(1, 3))
        rate, given = mpf(n) / population, {"population": population}
        above = [pair for laws in families for pair in cohorts(laws, n, population)]
    else:
        number = probability(rng)
        rate, given = mpf(number), {"rate": number}
        above = [
            slots(a, b, w, n, rate)
            for laws in families
            for a, b, w in itertools.product(laws, repeat=3)
            if a != b
        ]
    below = [
        slots(a, b, w, n, rate)
        for base in (binary(e0), three_rr(e0))
        for a, b, w in itertools.product(base, repeat=3)
        if a != b
    ]
    hidden = Subsampled(mechanism, **given)
    return Drawn("ShuffledLDP tightest sampled", hidden, above, below)


def named(rng: Rng, most: float = 20.0) -> tuple[Any, list[Law]]:
    """A named randomizer of few values, and its laws from the definition."""
    kind = int(rng.integers(0, 8))
    eps0 = local_budget(rng, most)
    precise(eps0)
    e0 = o.exp_of(eps0)
    if kind == 0:
        return BinaryRandomizedResponse(eps0), binary(e0)
    if kind == 1:
        k = int(rng.integers(2, 5))
        laws = [[(e0 if x == y else 1) / (e0 + k - 1) for y in range(k)] for x in range(k)]
        return KRandomizedResponse(k=k, eps0=eps0), laws
    if kind in (2, 3):
        k = int(rng.integers(2, 4))
        if kind == 2 or rng.random() < 0.5:
            variant = str(rng.choice(["symmetric", "optimised"]))
            root = mp.sqrt(e0)
            keep, false = (
                (root / (root + 1), 1 / (root + 1))
                if variant == "symmetric"
                else (mpf(1) / 2, 1 / (e0 + 1))
            )
            randomizer: Any = UnaryEncoding(k=k, eps0=eps0, variant=variant)
        else:
            f, low, high = rng.uniform(0.1, 0.9), rng.uniform(0.05, 0.4), rng.uniform(0.5, 0.95)
            randomizer = RAPPOR(k=k, noise=f, one_if_zero=low, one_if_one=high)
            keep = (1 - mpf(f) / 2) * mpf(high) + mpf(f) / 2 * mpf(low)
            false = mpf(f) / 2 * mpf(high) + (1 - mpf(f) / 2) * mpf(low)
        laws = []
        for x in range(k):
            row = []
            for report in itertools.product((0, 1), repeat=k):
                chance = mpf(1)
                for place, bit in enumerate(report):
                    one = keep if place == x else false
                    chance *= one if bit else 1 - one
                row.append(chance)
            laws.append(row)
        return randomizer, laws
    if kind == 4:
        k = int(rng.integers(3, 5))
        size = int(rng.integers(1, k))
        sets = list(itertools.combinations(range(k), size))
        total = sum(e0 if 0 in one else mpf(1) for one in sets)
        laws = [[(e0 if x in one else mpf(1)) / total for one in sets] for x in range(k)]
        return SubsetSelection(k=k, size=size, eps0=eps0), laws
    if kind == 5:
        k, blocks, width = [(2, 1, 4), (3, 1, 4), (3, 2, 4), (4, 4, 2)][int(rng.integers(0, 4))]
        sylvester = np.array([[1]])
        while len(sylvester) < width:
            sylvester = np.kron([[1, 1], [1, -1]], sylvester)
        laws = []
        for x in range(k):
            weights = [mpf(1)] * (blocks * width)
            home, line = divmod(x, width - 1)
            for column in range(width):
                if sylvester[line + 1][column] == 1:
                    weights[home * width + column] = e0
            laws.append([weight / sum(weights) for weight in weights])
        return HadamardResponse(k=k, eps0=eps0, blocks=blocks), laws
    if kind == 6:
        k, buckets, prime = [(2, 2, 2), (2, 3, 3), (3, 3, 3)][int(rng.integers(0, 3))]
        functions = list(itertools.product(range(1, prime), range(prime)))
        norm = (e0 + buckets - 1) * len(functions)
        laws = [
            [
                (e0 if (a * x + b) % prime % buckets == y else 1) / norm
                for a, b in functions
                for y in range(buckets)
            ]
            for x in range(k)
        ]
        return LocalHashing(k=k, buckets=buckets, eps0=eps0), laws
    inputs, width = int(rng.integers(2, 4)), int(rng.integers(2, 5))
    exact = [dyadic_law(rng, width, zeros=rng.random() < 0.2) for _ in range(inputs)]
    matrix = [[float(mass) for mass in row] for row in exact]
    return DiscreteRandomizer(matrix), [[o.to_mpf(mass) for mass in row] for row in exact]


def shuffled_tightest(rng: Rng) -> Drawn:
    randomizer, laws = named(rng)
    n = int(rng.integers(1, 4 if len(laws[0]) > 4 else 5))
    laws = merged(laws)
    mechanism = Shuffled(randomizer, n)
    name = f"Shuffled tightest {type(randomizer).__name__}"
    if n > 2 or rng.random() < 0.6:
        return Drawn(name, mechanism, list(datasets(laws, n)))
    population = n + int(rng.integers(1, 3))
    hidden = Subsampled(mechanism, population=population)
    above = list(cohorts(laws, n, population))
    return Drawn(f"{name} sampled", hidden, above)


def merged(laws: Sequence[Law]) -> list[Law]:
    """Reports with equal ratios of all laws are one report."""
    columns: dict[Any, list[Any]] = {}
    for column in zip(*laws, strict=True):
        total = sum(column)
        if total == 0:
            continue
        with mp.workdps(30):
            key = tuple(+(entry / total) for entry in column)
        columns[key] = [
            a + b for a, b in zip(columns.get(key, [mpf(0)] * len(laws)), column, strict=True)
        ]
    return [list(row) for row in zip(*columns.values(), strict=True)]


def shuffled_others(rng: Rng) -> Drawn:
    """The other analyses of named randomizers; each has an exact pair of its own."""
    randomizer, laws = named(rng)
    laws = merged(laws)
    n = int(rng.integers(1, 5))
    kind = type(randomizer).__name__
    analysis = str(rng.choice(["blanket", "reduction", "stronger-clones"]))
    eps0 = randomizer.eps0
    if analysis != "blanket" and not 0.0 < eps0 < math.inf:
        analysis = "blanket"
    if (
        analysis == "blanket"
        and kind not in ("KRandomizedResponse", "BinaryRandomizedResponse")
        and rng.random() < 0.5
    ):
        mechanism: Any = Blanket(randomizer, n)
        name = f"Blanket {kind}"
    else:
        mechanism = Shuffled(randomizer, n, analysis)
        name = f"Shuffled {analysis} {kind}"
    rate = probability(rng) if rng.random() < 0.4 else 1.0
    if rate < 1.0:
        mechanism, name = Subsampled(mechanism, rate=rate), f"{name} sampled"
    if analysis == "blanket":
        return Drawn(name, mechanism, [blanket_pair(laws, n, mpf(rate))])
    # eps0 and tv of the randomizer, from its laws: an upper bound for every dataset with equal others
    above = [
        slots(a, b, w, n, mpf(rate)) for a, b, w in itertools.product(laws, repeat=3) if a is not b
    ]
    exact = max(max(column) / min(column) for column in zip(*laws, strict=True))
    chance = 2 / (exact * (1 - mpf(10) ** -12) + 1)
    slack = exact * (1 + mpf(10) ** -12)
    return Drawn(name, mechanism, above, [slots(*clone_laws(slack, chance), n, min(1, mpf(rate)))])


def attack(rng: Rng) -> Drawn:
    randomizer, laws = named(rng)
    n = int(rng.integers(1, 5))
    first, second = (int(i) for i in rng.choice(len(laws), 2, False))
    others = int(rng.integers(0, randomizer.inputs))
    mechanism: Any = Attack(randomizer, n, first, second, others)
    laws = merged(laws)
    return Drawn(
        f"Attack {type(randomizer).__name__}", mechanism,
        [slots(laws[first], laws[second], laws[others], n)],
    )  # fmt: skip


def bits(rng: Rng) -> Drawn:
    eps0 = local_budget(rng, 200.0)
    precise(eps0)
    n = int(rng.integers(1, 9))
    laws = binary(o.exp_of(eps0))
    randomizer: Any = (
        BinaryRandomizedResponse(eps0)
        if rng.random() < 0.5
        else KRandomizedResponse(k=2, eps0=eps0)
    )
    mechanism = Shuffled(randomizer, n)
    above = list(datasets(laws, n))
    if rng.random() < 0.6:
        return Drawn("bits", mechanism, above)
    rate = probability(rng)
    pairs = [
        slots(a, b, w, n, mpf(rate)) for a, b, w in itertools.product(laws, repeat=3) if a is not b
    ]
    return Drawn("bits sampled", Subsampled(mechanism, rate=rate), pairs)


def discrete(rng: Rng) -> Drawn:
    width = int(rng.integers(2, 6))
    zeros = bool(rng.random() < 0.2)
    logs = []
    for _ in range(2):
        masses = [float(mass) for mass in dyadic_law(rng, width, zeros=zeros)]
        logs.append([math.log(mass) if mass > 0 else -math.inf for mass in masses])
    p, q = ([mp.exp(mpf(log)) if log > -math.inf else mpf(0) for log in row] for row in logs)
    # The logarithms are rounded: the laws meant by them sum to 1.
    pair = list(zip([x / sum(p) for x in p], [x / sum(q) for x in q], strict=True))
    if rng.random() < 0.5:
        return Drawn("DiscretePair ordered", DiscretePair(*logs, symmetric=False), [pair])
    both = worst_pair([pair, mirrored(pair)])
    if rng.random() < 0.3:
        rate = probability(rng)
        hidden = Subsampled(DiscretePair(*logs), rate=rate)
        return Drawn("DiscretePair sampled", hidden, [o.subsampled(both, mpf(rate))])
    return Drawn("DiscretePair", DiscretePair(*logs), [both])


def cells(law: Callable[[mpf], mpf], other: Callable[[mpf], mpf], cuts: Sequence[mpf]) -> o.Atoms:
    """Two continuous laws, known by their distribution functions, seen through cells: below the pair itself."""
    values = [(mpf(0), mpf(0)), *((law(x), other(x)) for x in cuts), (mpf(1), mpf(1))]
    return [(b[0] - a[0], b[1] - a[1]) for a, b in itertools.pairwise(values)]


def dotted(profile: Callable[[mpf], mpf], losses: Sequence[mpf]) -> o.Atoms:
    """The pair that joins the dots of a symmetric profile: above the pair itself."""
    points = [(mp.exp(loss), profile(loss)) for loss in losses]  # losses rise from 0
    left = [(1 / s, 1 - 1 / s + h / s) for s, h in points[1:]]
    vertices = [(mpf(0), mpf(1)), *left[::-1], *points]
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in itertools.pairwise(vertices)] + [mpf(0)]
    atoms: o.Atoms = [(vertices[-1][1], mpf(0)), (mpf(0), 1 + slopes[0])]
    for (s, _), before, after in zip(vertices[1:], slopes[:-1], slopes[1:], strict=True):
        atoms.append((s * (after - before), after - before))
    return atoms


def central(rng: Rng) -> Drawn:
    kind = str(rng.choice(["Laplace", "Gaussian", "PoissonGaussian"]))
    precise(80.0)
    ratio = log_uniform(rng, 1e-4, 8.0)
    noise = 1.0 / ratio
    t = 1 / mpf(noise)
    mechanism: Any
    if kind == "Laplace":
        mechanism = Laplace(scale=noise)

        def profile(eps: mpf) -> mpf:
            return -mp.expm1((eps - t) / 2) if eps < t else mpf(0)

        def cdf(x: mpf) -> mpf:
            return mp.exp(x) / 2 if x < 0 else 1 - mp.exp(-x) / 2

        pair = cells(lambda x: cdf(x - t), cdf, [t * mpf(x) for x in np.linspace(0.0, 1.0, 9)])
        reach = t
    elif kind == "Gaussian":
        mechanism = Gaussian(sigma=noise)

        def profile(eps: mpf) -> mpf:
            return mp.ncdf(t / 2 - eps / t) - mp.exp(eps) * mp.ncdf(-t / 2 - eps / t)

        pair = cells(
            lambda x: mp.ncdf(x - t), mp.ncdf, [t / 2 + mpf(z) for z in np.linspace(-5, 5, 11)]
        )
        reach = t * t / 2 + 6 * t
    else:
        rate = probability(rng)
        q = mpf(rate)
        mechanism = PoissonGaussian(sigma=noise, rate=rate)

        def mixture(x: mpf, sign: int) -> mpf:
            return (1 - q) * mp.ncdf(x) + q * mp.ncdf(x - sign * t)

        def profile(eps: mpf) -> mpf:
            # the densities' ratio rises in x; w = e^(t x) solves a quadratic equation
            s = mp.exp(eps)
            r = mp.exp(t * t / 2) * (1 - q) / q
            b = r * (s - 1)
            x = mp.log((b + mp.sqrt(b * b + 4 * s)) / 2) / t
            upper = q * (mp.ncdf(t - x) - mp.ncdf(-t - x))
            return upper - (s - 1) * ((1 - q) * mp.ncdf(-x) + q * mp.ncdf(-t - x))

        pair = cells(
            lambda x: mixture(x, 1),
            lambda x: mixture(x, -1),
            [mpf(z) for z in np.linspace(-5, 5, 11)],
        )
        reach = mp.log(1 + q * mp.expm1(t * t / 2 + 5 * t)) + q * t
    above = dotted(profile, [reach * j / 24 for j in range(25)])
    return Drawn(kind, mechanism, [pair, mirrored(pair)], [above], profile)


def binomial_counts(rng: Rng) -> Drawn:
    n, rate = int(rng.integers(1, 9)), probability(rng)
    p = mpf(rate)
    masses = [o.binomial(n, i, p) for i in range(n + 1)]
    pair = list(zip([mpf(0), *masses], [*masses, mpf(0)], strict=True))
    if rng.random() < 0.6:
        return Drawn("BinomialShift", BinomialShift(n, rate), [worst_pair([pair, mirrored(pair)])])
    both = [(a * d, b * c) for a, b in pair for c, d in pair]
    return Drawn("BinomialExchange", BinomialExchange(n, rate), [both])


def noise_blanket(rng: Rng) -> Drawn:
    """Laplace noise of every user: reports seen through cells are below the truth."""
    eps0 = local_budget(rng, 12.0)
    precise(eps0)
    n = int(rng.integers(1, 4))
    analysis = str(rng.choice(["tightest", "blanket", "reduction", "stronger-clones"]))
    e = mpf(eps0)

    def cdf(x: mpf) -> mpf:
        return mp.exp(e * x) / 2 if x < 0 else 1 - mp.exp(-e * x) / 2

    cuts = [mpf(j) / 4 for j in range(5)]
    rows = [
        [b - a for a, b in itertools.pairwise([mpf(0), *(cdf(x - v) for x in cuts), mpf(1)])]
        for v in (mpf(0), mpf(1) / 2, mpf(1))
    ]
    above = [slots(rows[0], rows[2], w, n) for w in rows]
    # One user alone hides nobody: that pair is above everything.
    alone = dotted(
        lambda eps: -mp.expm1((eps - e) / 2) if eps < e else mpf(0), [e * j / 40 for j in range(41)]
    )
    below = (
        [alone]
        if analysis in ("tightest", "blanket")
        else [slots(*clone_laws(mp.exp(e), 2 / (mp.exp(e) + 1)), n)]
    )
    return Drawn(
        f"Shuffled {analysis} Laplace", Shuffled(LocalLaplace(eps0), n, analysis), above, below
    )


KINDS: list[tuple[Callable[[Rng], Drawn], float]] = [
    (ldp, 3.0),
    (reduction, 4.0),
    (rr, 4.0),
    (ldp_tightest, 0.4),
    (shuffled_tightest, 0.4),
    (shuffled_others, 2.0),
    (attack, 2.0),
    (bits, 1.5),
    (discrete, 2.0),
    (central, 2.0),
    (binomial_counts, 1.0),
    (noise_blanket, 0.4),
]


# --- a case -----------------------------------------------------------------------------------------


@dataclass
class Found:
    """What a block of seeds showed. margins: relative distance of an end from the truth, the smallest."""

    cases: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    upper: dict[str, float] = field(default_factory=dict)
    lower: dict[str, float] = field(default_factory=dict)
    violations: list[dict[str, Any]] = field(default_factory=list)
    failures: list[dict[str, Any]] = field(default_factory=list)
    skipped: int = 0

    def margin(self, side: str, name: str, value: float) -> None:
        table = getattr(self, side)
        table[name] = min(table.get(name, math.inf), value)


def ledger(rng: Rng) -> list[Drawn]:
    mp.dps = DIGITS
    weights = np.array([weight for _, weight in KINDS])
    rounds = int(rng.choice([1, 1, 1, 1, 1, 2, 2, 3]))
    return [
        KINDS[int(rng.choice(len(KINDS), p=weights / weights.sum()))][0](rng) for _ in range(rounds)
    ]


def combinations(
    rng: Rng, choices: Sequence[list[o.Atoms]], most: int
) -> list[tuple[o.Atoms, ...]] | None:
    """All choices of one pair a round; None if there are more than `most`."""
    if math.prod(len(choice) for choice in choices) > most:
        return None
    return list(itertools.product(*choices))


def question(rng: Rng, composed: o.Composition) -> float:
    """An epsilon: near 0, near the largest loss, next to an atom, or anywhere."""
    largest = composed.largest_loss()
    top = (
        float(min(largest, mpf(650)))
        if largest < mp.inf
        else float(rng.choice([0.1, 1.0, 5.0, 30.0]))
    )
    kind = int(rng.integers(0, 6))
    if kind == 0:
        return 0.0 if rng.random() < 0.5 else top * log_uniform(rng, 1e-12, 0.1)
    if kind == 1:
        return top * (1.0 - log_uniform(rng, 2.0**-53, 0.1))
    if kind == 2:
        return top
    if kind == 3:
        ratios = [ratio for ratio in composed._ratios if ratio > 1]
        if ratios:
            loss = float(mp.log(ratios[int(rng.integers(0, len(ratios)))]))
            return max(0.0, loss * (1.0 + float(rng.choice([0.0, 1e-15, -1e-15, 1e-9, -1e-9]))))
    return float(rng.uniform(0.0, 1.0)) * top


def run_case(seed: int, found: Found, show: bool = False) -> None:
    rng = np.random.default_rng([seed, 20])
    drawn = ledger(rng)
    label = " + ".join(sorted({one.name for one in drawn}))
    above = combinations(rng, [one.above for one in drawn], 10**9) if len(drawn) == 1 else None
    if above is None:
        above = [
            tuple(one.above[int(rng.integers(0, len(one.above)))] for one in drawn)
            for _ in range(3)
        ]
    size = max(math.prod(len(o.canonical(pair)) for pair in combo[:2]) for combo in above[:3])
    if size > MOST_ATOMS:
        found.skipped += 1
        return
    lower_choices = combinations(
        rng, [one.ceilings for one in drawn], 60 if len(drawn) > 1 else 10**9
    )
    uppers = [o.Composition([(pair, 1) for pair in combo]) for combo in above]
    lowers = uppers if all(one.below is None for one in drawn) and len(drawn) == 1 else None
    if lowers is None and lower_choices is not None:
        lowers = [o.Composition([(pair, 1) for pair in combo]) for combo in lower_choices]
    rtol = log_uniform(rng, 1e-6 if len(drawn) == 1 else 3e-3, 0.3)
    accountant = Accountant(rtol=rtol)
    for one in drawn:
        accountant.compose(one.mechanism)
    context = {"seed": seed, "ledger": [repr(one.mechanism) for one in drawn], "rtol": rtol}
    profile = drawn[0].profile if len(drawn) == 1 else None

    def truths(eps: float) -> tuple[mpf, mpf | None]:
        if profile is not None:
            value = profile(mpf(eps))
            return value, value
        least = max(composed.delta(eps) for composed in uppers)
        return least, None if lowers is None else max(composed.delta(eps) for composed in lowers)

    def check(side: str, holds: bool, margin: float, **details: Any) -> None:
        for one in drawn:
            found.margin(side, one.name, margin)
        if not holds:
            found.violations.append({**context, "side": side, "margin": margin, **details})

    for _ in range(QUESTIONS):
        eps = question(rng, uppers[0])
        least, most = truths(eps)
        if least < mpf(10) ** (20 - DIGITS):
            least = mpf(0)  # the rounding of the oracle
        bounds = accountant.delta_bounds(eps)
        if show:
            print(
                label, context, eps, bounds, mpmath.nstr(least, 20), most and mpmath.nstr(most, 20)
            )
        upper, lower = mpf(float(bounds.upper)), mpf(float(bounds.lower))
        if least > 0:
            check(
                "upper",
                upper >= least * (1 - FORGIVEN),
                float(upper / least - 1),
                eps=eps,
                bounds=list(map(float, bounds)),
                truth=mpmath.nstr(least, 25),
            )
        if most is not None and lower > 0:
            margin = float(1 - lower / most) if most > 0 else -math.inf
            check(
                "lower",
                lower <= most * (1 + FORGIVEN),
                margin,
                eps=eps,
                bounds=list(map(float, bounds)),
                truth=mpmath.nstr(most, 25),
            )
        found.cases[label if len(drawn) == 1 else "mixed"] += 1
        for one in drawn if len(drawn) > 1 else []:
            found.cases[f"(mixed) {one.name}"] += 1
    if rng.random() < 0.3:
        least, _ = truths(question(rng, uppers[0]))
        delta = float(least) * float(rng.choice([1.0, 1.0, 0.5, 1e-3]))
        if not 1e-250 < delta < 1.0:
            return
        bounds = accountant.epsilon_bounds(delta)
        if show:
            print(label, "delta", delta, bounds)
        if bounds.upper < math.inf:
            least, _ = truths(float(bounds.upper))
            check(
                "upper",
                least <= mpf(delta) * (1 + FORGIVEN),
                float(1 - least / mpf(delta)),
                delta=delta,
                bounds=list(map(float, bounds)),
                truth=mpmath.nstr(least, 25),
            )
        if 0.0 < bounds.lower < math.inf:
            _, most = truths(float(bounds.lower))
            if most is not None:
                check(
                    "lower",
                    most >= mpf(delta) * (1 - FORGIVEN),
                    float(most / mpf(delta) - 1),
                    delta=delta,
                    bounds=list(map(float, bounds)),
                    truth=mpmath.nstr(most, 25),
                )
        found.cases[label if len(drawn) == 1 else "mixed"] += 1


# --- the log ----------------------------------------------------------------------------------------


def claim(log: Path) -> int:
    """The first seed of a block that nobody has claimed."""
    counter = log.with_suffix(".next")
    with open(counter, "a+", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        first = int(file.read() or 0)
        file.seek(0)
        file.truncate()
        file.write(str(first + BLOCK))
    return first


def append(log: Path, line: dict[str, Any]) -> None:
    data = (json.dumps(line) + "\n").encode()
    handle = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(handle, data)
    finally:
        os.close(handle)


def too_slow(signum: int, frame: Any) -> None:
    raise TimeoutError


def run(log: Path, seconds: float) -> None:
    signal.signal(signal.SIGALRM, too_slow)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        first = claim(log)
        found = Found()
        started = time.monotonic()
        for seed in range(first, first + BLOCK):
            signal.alarm(PATIENCE)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    run_case(seed, found)
            except TimeoutError:
                found.skipped += 1
            except Exception as error:  # a crash is a finding, and the run goes on
                found.failures.append(
                    {
                        "seed": seed,
                        "error": repr(error)[:300],
                        "where": traceback.format_exc()[-700:],
                    }
                )
        signal.alarm(0)
        append(log, {
            "first": first, "seeds": BLOCK, "seconds": round(time.monotonic() - started, 2), "cases": found.cases,
            "upper": found.upper, "lower": found.lower, "skipped": found.skipped,
            "violations": found.violations, "failures": found.failures,
        })  # fmt: skip


def summary(log: Path) -> str:
    total, seeds, seconds = Found(), 0, 0.0
    for text in log.read_text(encoding="utf-8").splitlines():
        line = json.loads(text)
        seeds += line["seeds"]
        seconds += line["seconds"]
        total.skipped += line["skipped"]
        for name, count in line["cases"].items():
            total.cases[name] += count
        for side in ("upper", "lower"):
            for name, value in line[side].items():
                total.margin(side, name, value)
        total.violations += line["violations"]
        total.failures += line["failures"]
    alone = {name: count for name, count in total.cases.items() if not name.startswith("(mixed)")}
    rows = [
        f"{sum(alone.values()):,} brackets of {seeds:,} seeds in {seconds:,.0f} s;"
        f" {len(total.violations)} violations, {len(total.failures)} crashes,"
        f" {total.skipped} ledgers skipped (too large to enumerate, or over {PATIENCE} s).",
        "",
        "| mechanism | alone | in mixed ledgers | least (upper - truth)/truth | least (truth - lower)/truth |",
        "|---|---|---|---|---|",
    ]
    names = sorted({*total.upper, *total.lower, *(name for name in alone if name != "mixed")})
    for name in names:
        rows.append(
            f"| {name} | {alone.get(name, 0)} | {total.cases.get(f'(mixed) {name}', 0)}"
            f" | {total.upper.get(name, math.nan):.1e} | {total.lower.get(name, math.nan):.1e} |"
        )
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to run")
    parser.add_argument(
        "--log", type=Path, default=Path("fuzz.jsonl"), help="JSON lines, appended to"
    )
    parser.add_argument("--summary", action="store_true", help="print what the log holds, and stop")
    parser.add_argument("--replay", type=int, metavar="SEED", help="show one case, and stop")
    given = parser.parse_args()
    if given.summary:
        print(summary(given.log))
    elif given.replay is not None:
        found = Found()
        run_case(given.replay, found, show=True)
        print(found.violations)
    else:
        run(given.log, given.seconds)


if __name__ == "__main__":
    main()
