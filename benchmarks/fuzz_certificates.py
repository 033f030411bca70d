"""Random ledgers against exact answers: is every bracket on its side of the truth?

    python benchmarks/fuzz_certificates.py --seconds 3600 --log fuzz.jsonl
    python benchmarks/fuzz_certificates.py --log fuzz.jsonl --summary

A *ledger* is 1 to 3 entries of random mechanisms, some of them for many rounds. Parameters are drawn log-uniformly to
the ends of their ranges, users are few enough to enumerate. A *law* is one pair of PLDs of it, a lower and an upper
one, on a random lattice; or the accountant's own, chosen for its rtol. A *bracket*, the unit that is counted, is one
epsilon (or delta) asked of one law: its two ends against the truth at that epsilon. Brackets of one law share its
errors, so ledgers and laws are counted beside them.

The truth comes from tests/oracles.py: rationals or long decimals, no lattice, no transform, nothing of this package.
Parameters are the doubles as given, so nothing is forgiven: a bracket is right if upper >= truth >= lower to 40 digits.

Two truths are held against a bracket. `above`: pairs of concrete protocols (or the stated pair of the analysis,
where that is exact); the upper end must be above every one. `below`: pairs that the lower end must not exceed; the
largest of them counts.

Any number of processes may write to one log: a block of seeds is claimed under a lock, its results are one line,
appended in one write. A run that was stopped loses its last block and nothing else. A seed says everything about a
case: `--replay SEED` shows it. Long decimals are several times faster where gmpy2 is installed.
"""

from __future__ import annotations

import argparse
import fcntl
import itertools
import json
import math
import os
import signal
import subprocess
import sys
import time
import traceback
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
from mpmath import mp, mpf

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import oracles as o

from pld_shuffle import Accountant, shares
from pld_shuffle.mechanisms import (
    CountedBits,
    DiscretePair,
    DummyReports,
    Epoch,
    Gaussian,
    Laplace,
    Mechanism,
    MixedRandomizers,
    MixedRR,
    PoissonGaussian,
    PoissonSampled,
    RandomAllocation,
    Shuffled,
    ShuffledBatches,
    ShuffledLDP,
    ShuffledRandomizer,
    ShuffledRR,
    StickyCohort,
    Subsampled,
    Summed,
    SummedNoise,
    Threshold,
    ZeroOut,
)
from pld_shuffle.mechanisms.imported import ImportedPair
from pld_shuffle.mechanisms.shuffled import Blanket, attack_law
from pld_shuffle.numerics.sides import Side
from pld_shuffle.pairs.pair import Pair
from pld_shuffle.protocols import (
    BallsIntoBins,
    BinarySum,
    BitHistogram,
    FakeUsers,
    MixDUMP,
    PrivateHistogram,
    RAPPORHistogram,
    RealSum,
    UnarySum,
    ZeroSum,
    ZeroSumHistogram,
)
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
from pld_shuffle.randomizers import Gaussian as LocalGaussian
from pld_shuffle.randomizers import Laplace as LocalLaplace

BLOCK = 20  # seeds claimed at a time
PATIENCE = 5.0  # CPU seconds for one ledger; what is not done by then is skipped
DEEP = 20.0  # the same for one ledger in fifty, asked for narrow brackets
FORGIVEN = mpf(10) ** -40  # of the truth: what the oracle itself may be off, and 10^(20-digits) of 1
DIGITS = 140
READINGS = 200  # epsilons at which the PLDs of a ledger are read
LATTICES = 3  # on which they are formed
QUESTIONS = 3  # epsilons asked of an accountant
POINTS = 5  # epsilons at which slow profiles are read
MOST_ATOMS = 4_000  # of a composition's halves
NOTHING = mpf(10) ** -120  # an exact answer below this is rounding of the oracle
Law = list[Any]
Rng = np.random.Generator


@dataclass
class Drawn:
    """A mechanism and its truths: see the top of the file. profile: the exact delta of one round, if known.

    count: the truths are those of so many rounds of the mechanism together. by_points: PLDs take minutes, and the
    profiles of the pair and of its attack are read instead.
    """

    name: str
    mechanism: Any
    above: list[o.Atoms]
    below: list[o.Atoms] | None = None  # None: the same as above; none of them: the lower end is not checked
    profile: Callable[[mpf], mpf] | None = None
    count: int = 1
    by_points: bool = False

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
    units = [max(0 if zeros and rng.random() < 0.2 else 1, round(w / sum(weights) * 2**40)) for w in weights]
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
                # At a knot itself the rounding of the oracle would make two of one.
                near = mpf(10) ** -50
                if cross > left * (1 + near) and (right is None or cross < right * (1 - near)):
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
    return o.shuffled_pair(mixed(rate, first, others), mixed(rate, second, others), [others] * (n - 1))


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
            members = [[laws[target], *(laws[i] for i in others)] for target in (first, second)]
            yield o.pair_of_views(*(o.drawn(some, n, o.histogram_law) for some in members))


def blanket_pair(laws: Sequence[Law], n: int, rate: Any = 1) -> o.Atoms:
    """The blanket adversary's pair, the worst over all values of the target."""
    low = [min(column) for column in zip(*laws, strict=True)]
    others = [*low, 1 - sum(low)]
    return worst_pair([slots([*a, 0], [*b, 0], others, n, rate) for a, b in itertools.permutations(laws, 2)])


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
        n = max(n, 2)  # where nobody else is, q bounds no law
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
    extreme = [[(e0 if (x >> y) & 1 else mpf(1)) for y in range(4)] for x in rng.choice(14, 3, False) + 1]
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
            slots(a, b, w, n, rate) for laws in families for a, b, w in itertools.product(laws, repeat=3) if a != b
        ]
    below = [
        slots(a, b, w, n, rate)
        for base in (binary(e0), three_rr(e0))
        for a, b, w in itertools.product(base, repeat=3)
        if a != b
    ]
    hidden = Subsampled(mechanism, **given)
    return Drawn("ShuffledLDP tightest sampled", hidden, above, below)


def bit_vectors(rng: Rng, eps0: float, *, rappor: bool, least: float = 0.1) -> tuple[Any, mpf, mpf]:
    """Noisy one-hot vectors of 2 or 3 bits: the randomizer, and the chances that an own and another bit are 1."""
    k = int(rng.integers(2, 4))
    if rappor:
        f, low, high = rng.uniform(least, 0.9), rng.uniform(0.05, 0.4), rng.uniform(0.5, 0.95)
        keep = (1 - mpf(f) / 2) * mpf(high) + mpf(f) / 2 * mpf(low)
        false = mpf(f) / 2 * mpf(high) + (1 - mpf(f) / 2) * mpf(low)
        return RAPPOR(k=k, noise=f, one_if_zero=low, one_if_one=high), keep, false
    variant = str(rng.choice(["symmetric", "optimised"]))
    e0 = o.exp_of(eps0)
    root = mp.sqrt(e0)
    symmetric = variant == "symmetric"
    keep, false = (root / (root + 1), 1 / (root + 1)) if symmetric else (mpf(1) / 2, 1 / (e0 + 1))
    return UnaryEncoding(k=k, eps0=eps0, variant=variant), keep, false


def bits_law(chances: Sequence[mpf]) -> Law:
    """The law of a vector of independent bits, from the chances that they are 1."""
    return [
        mp.fprod(one if bit else 1 - one for bit, one in zip(report, chances, strict=True))
        for report in itertools.product((0, 1), repeat=len(chances))
    ]


def vector_laws(k: int, keep: mpf, false: mpf) -> list[Law]:
    return [bits_law([keep if place == x else false for place in range(k)]) for x in range(k)]


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
        randomizer, keep, false = bit_vectors(rng, eps0, rappor=kind == 3 and rng.random() < 0.5)
        return randomizer, vector_laws(randomizer.k, keep, false)
    if kind == 4:
        k = int(rng.integers(3, 5))
        size = int(rng.integers(1, k))
        sets = list(itertools.combinations(range(k), size))
        total = sum(e0 if 0 in one else mpf(1) for one in sets)
        laws = [[(e0 if x in one else mpf(1)) / total for one in sets] for x in range(k)]
        return SubsetSelection(k=k, size=size, eps0=eps0), laws
    if kind == 5:
        k, width = int(rng.integers(2, 4)), 4
        sylvester = np.array([[1]])
        while len(sylvester) < width:
            sylvester = np.kron([[1, 1], [1, -1]], sylvester)
        laws = []
        for x in range(k):
            weights = [e0 if entry == 1 else mpf(1) for entry in sylvester[x + 1]]
            laws.append([weight / sum(weights) for weight in weights])
        return HadamardResponse(k=k, eps0=eps0), laws
    if kind == 6:
        k, buckets, prime = [(2, 2, 2), (2, 3, 3), (3, 3, 3)][int(rng.integers(0, 3))]
        functions = list(itertools.product(range(prime), repeat=4))
        norm = (e0 + buckets - 1) * len(functions)
        laws = [
            [
                (e0 if (((a * x + b) * x + c) * x + d) % prime % buckets == y else 1) / norm
                for a, b, c, d in functions
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
    if len(laws[0]) > 8:
        n = min(n, 2)
    mechanism = Shuffled(randomizer, n)
    name = f"Shuffled tightest {type(randomizer).__name__}"
    if n > 2 or rng.random() < 0.6:
        return Drawn(name, mechanism, list(datasets(laws, n)))
    population, colluding = n + int(rng.integers(1, 3)), int(rng.integers(0, 3))
    hidden = Subsampled(mechanism, population=population + colluding, colluding=colluding)
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
        columns[key] = [a + b for a, b in zip(columns.get(key, [mpf(0)] * len(laws)), column, strict=True)]
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
    if analysis == "blanket" and kind not in ("KRandomizedResponse", "BinaryRandomizedResponse") and rng.random() < 0.5:
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
    above = [slots(a, b, w, n, mpf(rate)) for a, b, w in itertools.product(laws, repeat=3) if a is not b]
    exact = max(max(column) / min(column) for column in zip(*laws, strict=True))
    # A larger eps0 moves the coins more and shows fewer of them: both give more away.
    larger = exact * (1 + mpf(10) ** -12)
    below = [slots(*clone_laws(larger, 2 / (larger + 1)), n, mpf(rate))]
    return Drawn(name, mechanism, above, below)


@dataclass(frozen=True)
class Attack(Mechanism):
    """Two concrete datasets: the target holds the first or the second value, all others the third."""

    randomizer: Any
    n: int
    triple: tuple[int, int, int]

    @property
    def pair(self) -> Pair:
        return attack_law(self.randomizer, self.n, self.triple).ordered_pair()

    def assumptions(self) -> dict[str, str]:
        return {}


def attack(rng: Rng) -> Drawn:
    randomizer, laws = named(rng)
    n = int(rng.integers(1, 5))
    first, second = (int(i) for i in rng.choice(len(laws), 2, False))
    others = int(rng.integers(0, randomizer.inputs))
    mechanism: Any = Attack(randomizer, n, (first, second, others))
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
    randomizer: Any = BinaryRandomizedResponse(eps0) if rng.random() < 0.5 else KRandomizedResponse(k=2, eps0=eps0)
    mechanism = Shuffled(randomizer, n)
    above = list(datasets(laws, n))
    if rng.random() < 0.6:
        return Drawn("bits", mechanism, above)
    rate = probability(rng)
    pairs = [slots(a, b, w, n, mpf(rate)) for a, b, w in itertools.product(laws, repeat=3) if a is not b]
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
    return central_noise(rng, str(rng.choice(["Laplace", "Gaussian", "PoissonGaussian"])))


def gaussian_profile(t: mpf, eps: mpf) -> mpf:
    """The hockey-stick divergence of unit Gaussians at a distance t."""
    return mp.ncdf(t / 2 - eps / t) - mp.exp(eps) * mp.ncdf(-t / 2 - eps / t)


def central_noise(rng: Rng, kind: str) -> Drawn:
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
            return gaussian_profile(t, eps)

        pair = cells(lambda x: mp.ncdf(x - t), mp.ncdf, [t / 2 + mpf(z) for z in np.linspace(-5, 5, 11)])
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

        pair = cells(lambda x: mixture(x, 1), lambda x: mixture(x, -1), [mpf(z) for z in np.linspace(-5, 5, 11)])
        reach = mp.log(1 + q * mp.expm1(t * t / 2 + 5 * t)) + q * t
    above = dotted(profile, [reach * j / 24 for j in range(25)])
    return Drawn(kind, mechanism, [pair, mirrored(pair)], [above], profile)


@dataclass
class Noise:
    """Noise of every user on the values 0, 1/2 and 1, seen through cells.

    rows: the laws of a report's cell for the three values; a post-processing, so what they show is below the truth.
    rays: laws for 0 and 1 with a likelihood ratio of finitely many values, from which a report for 0 or 1, and one of
    the blanket, is a post-processing: what they show is above the truth.
    """

    name: str
    randomizer: Any
    rows: list[Law]
    rays: tuple[Law, Law]
    alone: Callable[[mpf], mpf]  # the profile of one report

    @classmethod
    def drawn(cls, rng: Rng) -> Noise:
        places = sorted(rng.uniform(0.0, 1.0, 2))
        if rng.random() < 0.5:
            eps0 = local_budget(rng, 12.0)
            precise(3 * eps0)
            e = mpf(eps0)
            edges = [mpf(0), *(mpf(x) / 2 for x in places)]

            def cdf(x: mpf) -> mpf:
                return mp.exp(e * x) / 2 if x < 0 else 1 - mp.exp(-e * x) / 2

            def log_ratio(x: mpf) -> mpf:
                return e * (2 * x - 1)

            def alone(eps: mpf) -> mpf:
                return -mp.expm1((eps - e) / 2) if eps < e else mpf(0)

            name, randomizer = "Laplace", LocalLaplace(eps0=eps0)
        else:
            sigma = log_uniform(rng, 0.12, 100.0)
            s = mpf(sigma)
            reach = min(1.0, 2.5 * sigma) / 2 + 2.0 * sigma
            edges = [mpf(1) / 2 - mpf(reach * x) for x in places]
            precise(6 * reach / sigma**2)

            def cdf(x: mpf) -> mpf:
                return mp.ncdf(x / s)

            def log_ratio(x: mpf) -> mpf:
                return (2 * x - 1) / (2 * s * s)

            def alone(eps: mpf) -> mpf:
                return gaussian_profile(1 / s, eps)

            name, randomizer = "Gaussian", LocalGaussian(sigma=sigma)
        # Mirrored at 1/2, where the blanket passes from one law to the other.
        cuts = sorted({*edges, mpf(1) / 2, *(1 - x for x in edges)})
        rows = []
        for value in (mpf(0), mpf(1) / 2, mpf(1)):
            ends = [mpf(0), *(cdf(x - value) for x in cuts), mpf(1)]
            rows.append([b - a for a, b in itertools.pairwise(ends)])
        rays = extreme_rays(rows[0], rows[2], [mp.exp(log_ratio(x)) for x in cuts])
        return cls(name, randomizer, rows, rays, alone)

    def told(self, first: Law, second: Law, n: int, rate: Any) -> o.Atoms:
        """Who drew from the blanket is told: the smaller of the two laws, in cells that do not cross 1/2."""
        low = [min(a, b) for a, b in zip(first, second, strict=True)]
        return slots([*first, 0], [*second, 0], [*low, 1 - sum(low)], n, rate)


def extreme_rays(first: Law, second: Law, ratios: Sequence[mpf]) -> tuple[Law, Law]:
    """The masses of each cell, second/first between its two ratios (0 and infinity beyond), moved to its ends.

    Every report of a cell is a mixture of its two ends: the laws moved are at least as informative.
    """
    width = len(ratios) + 2
    one, two = [mpf(0)] * width, [mpf(0)] * width
    for i, (p, q) in enumerate(zip(first, second, strict=True)):
        low = ratios[i - 1] if i else mpf(0)
        if i < len(ratios):
            up = (q - low * p) / (ratios[i] - low)
            parts = (p - up, low * (p - up)), (up, ratios[i] * up)
        else:
            parts = (p, low * p), (mpf(0), q - low * p)
        for place, (a, b) in zip((i, i + 1), parts, strict=True):
            one[place] += a
            two[place] += b
    nothing = mpf(10) ** (20 - mp.dps)  # of a Laplace law's ends, but for the oracle's rounding
    kept = [i for i in range(width) if max(one[i], two[i]) > nothing]
    return [one[i] for i in kept], [two[i] for i in kept]


def users_noise(rng: Rng) -> Drawn:
    """Laplace or Gaussian noise of every user."""
    noise, n = Noise.drawn(rng), int(rng.choice([1, 2, 2, 3]))
    analyses = ["tightest", "blanket"]
    if noise.name == "Laplace":
        analyses += ["reduction", "stronger-clones"]
    analysis = str(rng.choice(analyses))
    mechanism: Any = Shuffled(noise.randomizer, n, analysis)
    name = f"Shuffled {analysis} {noise.name}"
    rows, rays, rate = noise.rows, list(noise.rays), mpf(1)
    scheme = rng.random()
    if scheme < 0.2 and analysis == "tightest":
        there = probability(rng)
        mechanism, name = PoissonSampled(mechanism, there), f"PoissonSampled {name}"
        rows, rays = ([[mpf(there) * mass for mass in law] + [1 - mpf(there)] for law in laws] for laws in (rows, rays))
    elif scheme < 0.4:
        number = probability(rng)
        mechanism, name, rate = Subsampled(mechanism, rate=number), f"{name} sampled", mpf(number)
    above = [slots(rows[0], rows[2], w, n, rate) for w in rows]
    if analysis == "tightest":
        profile = noise.alone if n == 1 and scheme >= 0.4 else None
        below = [slots(*rays, w, n, rate) for w in rays]
        return Drawn(name, mechanism, above, below, profile)
    if analysis == "blanket":
        above.append(noise.told(rows[0], rows[2], n, rate))
        return Drawn(name, mechanism, above, [noise.told(*rays, n, rate)])
    e0 = o.exp_of(noise.randomizer.eps0)
    return Drawn(name, mechanism, above, [slots(*clone_laws(e0, 2 / (e0 + 1)), n, rate)])


def mixed_budgets(rng: Rng) -> Drawn:
    """k-RR by users of different budgets: who of the others answered at random is seen."""
    k = int(rng.choice([2, 3, 10, 1000]))
    budgets = [local_budget(rng, 60.0) for _ in range(int(rng.integers(1, 7)))]
    precise(*budgets)
    gammas = [k / (o.exp_of(eps) + k - 1) for eps in budgets]
    first, second, _ = weak_laws(k, gammas[0])
    others = [weak_laws(k, gamma)[2] for gamma in gammas[1:]]
    mechanism = MixedRR(k, budgets[0], tuple((eps, 1) for eps in budgets[1:]))
    return Drawn("MixedRR", mechanism, [o.shuffled_pair(first, second, others)])


def mixed_randomizers(rng: Rng) -> Drawn:
    """The target among users of other randomizers; of some of them a part says nothing about the value."""
    eps0 = local_budget(rng, 30.0)
    budgets = [local_budget(rng, 30.0) for _ in range(int(rng.integers(1, 4)))]
    precise(eps0, *budgets)
    e0, part = o.exp_of(eps0), mpf(1) if rng.random() < 0.5 else mpf(probability(rng))

    def laws(e: mpf) -> list[Law]:
        return [[part * mass for mass in law] + [1 - part] for law in binary(e)]

    def above(number: mpf) -> float:
        return math.nextafter(float(number), math.inf)

    crowd = [laws(o.exp_of(eps)) for eps in budgets]
    target = laws(e0)
    ratios = [above(max(a / b for a, b in zip(target[0], other[1], strict=True) if b > 0)) for other in crowd]
    tv = min(1.0, above(part * (e0 - 1) / (e0 + 1)))
    mechanism = MixedRandomizers(eps0=eps0, others=tuple((ratio, 1) for ratio in ratios), tv=tv)
    stated = labels_of(mechanism)
    concrete = [o.shuffled_pair(*target, values) for values in itertools.product(*crowd)]
    return Drawn("MixedRandomizers", mechanism, [stated, *concrete], [stated])


def labels_of(mechanism: MixedRandomizers) -> o.Atoms:
    """The pair that it names."""
    e0, ratios = o.exp_of(mechanism.eps0), [mpf(ratio) for ratio, count in mechanism.others for _ in range(count)]
    beta = min(mpf(mechanism.tv), (e0 - 1) / (e0 + 1), *(ratio - 1 for ratio in ratios))
    first, second, _ = o.reduction_laws(e0, beta, mpf(1))
    return o.shuffled_pair(first, second, [o.reduction_laws(e0, beta, ratio)[2] for ratio in ratios])


def epoch(rng: Rng) -> Drawn:
    n, eps0 = int(rng.integers(1, 6)), local_budget(rng, 30.0)
    precise(eps0)
    e0 = o.exp_of(eps0)
    concrete = [pair for laws in (binary(e0), three_rr(e0)) for pair in datasets(laws, n)]
    return Drawn("Epoch", Epoch(eps0, n), concrete)


def zero_out(rng: Rng) -> Drawn:
    """Where the null report is a value's, the truths are those of the substitution; of central noise, of one norm."""
    kind = int(rng.integers(0, 6))
    if kind == 5:
        return zero_out_poisson(rng)
    inner = (
        central_noise(rng, str(rng.choice(["Laplace", "Gaussian"])))
        if kind == 4
        else [ldp, rr, reduction, shuffled_tightest][kind](rng)
    )
    return Drawn(f"ZeroOut {inner.name}", ZeroOut(inner.mechanism), inner.above, inner.below, inner.profile)


def zero_out_poisson(rng: Rng) -> Drawn:
    """With the user (1-q) N(0) + q N(t), without it N(0); both orders, by the general amplification of N(t), N(0)."""
    noise, rate = 1.0 / log_uniform(rng, 1e-4, 8.0), probability(rng)
    precise(80.0)
    t, q = 1 / mpf(noise), mpf(rate)

    def profile(eps: mpf) -> mpf:
        return q * gaussian_profile(t, mp.log1p(mp.expm1(eps) / q))

    cuts = [mpf(z) for z in np.linspace(-5, 5, 11)]
    pair = cells(lambda x: (1 - q) * mp.ncdf(x) + q * mp.ncdf(x - t), mp.ncdf, cuts)
    reach = mp.log1p(q * mp.expm1(t * t / 2 + 6 * t))
    above = dotted(profile, [reach * j / 24 for j in range(25)])
    mechanism = ZeroOut(PoissonGaussian(sigma=noise, rate=rate))
    return Drawn("ZeroOut PoissonGaussian", mechanism, [pair, mirrored(pair)], [above], profile)


def bit_shares(rng: Rng) -> tuple[dict[str, float], mpf, mpf]:
    """How a bit is randomised: the arguments, and the chances of a 1 for the values 1 and 0."""
    kind = int(rng.integers(0, 3))
    if kind == 0:
        eps0 = local_budget(rng, 60.0)
        precise(eps0)
        e0 = o.exp_of(eps0)
        return {"eps0": eps0}, e0 / (e0 + 1), 1 / (e0 + 1)
    if kind == 1:
        gamma = probability(rng)
        return {"gamma": gamma}, 1 - mpf(gamma) / 2, mpf(gamma) / 2
    zero, one = sorted((probability(rng), probability(rng)))
    if zero == one:
        return bit_shares(rng)
    return {"one_if_one": one, "one_if_zero": zero}, mpf(one), mpf(zero)


def sums(users: Sequence[Law]) -> Law:
    """The law of a sum of independent integers, from theirs."""
    total: Law = [mpf(1)]
    for law in users:
        grown = [mpf(0)] * (len(total) + len(law) - 1)
        for i, a in enumerate(total):
            for j, b in enumerate(law):
                grown[i + j] += a * b
        total = grown
    return total


def counted_bits(rng: Rng) -> Drawn:
    given, one, zero = bit_shares(rng)
    n, bits = int(rng.integers(1, 7)), int(rng.choice([1, 1, 2, 3]))
    laws = [[o.binomial(bits, i, p) for i in range(bits + 1)] for p in (one, zero)]
    if bits == 1 and rng.random() < 0.3:
        rate = probability(rng)
        hidden = Subsampled(CountedBits(n, **given), rate=rate)
        worst = [slots(a, b, w, n, mpf(rate)) for a, b, w in itertools.product(laws, repeat=3) if a != b]
        return Drawn("CountedBits sampled", hidden, worst)
    pairs = []
    for others in range(n):
        rest = [laws[0]] * others + [laws[1]] * (n - 1 - others)
        pair = list(zip(sums([laws[0], *rest]), sums([laws[1], *rest]), strict=True))
        pairs += [pair, mirrored(pair)]
    return Drawn("CountedBits", CountedBits(n, bits=bits, **given), pairs)


def bit_counts(n: int, one: mpf, zero: mpf) -> list[o.Atoms]:
    """The number of ones in the bin that the target leaves, and in the one it enters, for all data of the others."""
    laws = [[1 - one, one], [1 - zero, zero]]

    def count(own: int, others: int) -> Law:
        return sums([laws[own]] + [laws[0]] * others + [laws[1]] * (n - 1 - others))

    pairs = []
    for first in range(n):
        for second in range(n - first):
            here = zip(count(0, first), count(1, first), strict=True)
            there = list(zip(count(1, second), count(0, second), strict=True))
            pairs.append([(a * c, b * d) for a, b in here for c, d in there])
    return pairs


def coming_and_going(rng: Rng) -> Drawn:
    """Users who take part by coins of their own: "absent" is one more report."""
    eps0, n = local_budget(rng, 30.0), int(rng.integers(1, 5))
    precise(eps0)
    e0 = o.exp_of(eps0)
    there = probability(rng)
    if rng.random() < 0.5:
        randomizer, laws = named(rng, 30.0)
        laws = merged(laws)
        n = min(n, 3)
        core: Any = Shuffled(randomizer, n)
        families, name = [laws], "Shuffled tightest"
    else:
        core, families, name = (ShuffledLDP(eps0, n), [binary(e0), three_rr(e0)], "ShuffledLDP tightest")
    drop = rng.random() < 0.4
    stays = 1 - mpf(there) if drop else mpf(there)
    families = [[[stays * mass for mass in law] + [1 - stays] for law in laws] for laws in families]
    if not drop:
        above = [pair for laws in families for pair in datasets(laws, n)]
        return Drawn(f"PoissonSampled {name}", PoissonSampled(core, there), above)
    population = n + int(rng.integers(0, 2))
    hidden = Subsampled(core, population=population, dropout=there)
    above = [pair for laws in families for pair in cohorts(laws, n, population)]
    below = above
    if population > n:  # the lower end is of independent slots with the same rate: a hidden cohort's own law
        rate = mpf(n) / population
        below = above + [
            slots(a, b, w, n, rate) for laws in families for a, b, w in itertools.product(laws, repeat=3) if a != b
        ]
    return Drawn(f"{name} with dropouts", hidden, above, below)


def sticky(rng: Rng) -> Drawn:
    if rng.random() < 0.6:
        return sticky_reports(rng)
    return sticky_exact(rng)


def sticky_exact(rng: Rng) -> Drawn:
    """The general amplification of the composed pair, exact where the pair is; a single round is a fresh cohort's."""
    n, k, gamma, rate = (int(rng.integers(1, 5)), int(rng.choice([2, 3, 100])), probability(rng), probability(rng))
    rounds, conditional = int(rng.integers(1, 4)), bool(rng.random() < 0.5)
    core = ShuffledRR(k, n, gamma=gamma, adversary="strong-conditional" if conditional else "strong")
    if rounds == 1 and rate < 1.0:
        pair = slots(*weak_laws(k, mpf(gamma)), n, mpf(rate))
    else:
        pair = o.subsampled(o.power(o.strong(n, k, mpf(gamma), conditional=conditional), rounds), mpf(rate))
    return Drawn("StickyCohort", StickyCohort(core, rounds, rate=rate), [pair])


def drawn_once(first: Law, second: Law, others: Law, n: int, rate: Any, rounds: int) -> o.Atoms:
    """The target, or another user, in one hidden cohort of n for all the rounds; all others are equal."""
    views = [o.histogram_law([law, *[others] * (n - 1)]) for law in (first, second, others)]
    keys = {key for view in views for key in view}
    one = [tuple(view.get(key, mpf(0)) for view in views) for key in keys]
    joint = one
    for _ in range(rounds - 1):
        joint = [(a * x, b * y, c * z) for a, b, c in joint for x, y, z in one]
    return [(rate * a + (1 - rate) * c, rate * b + (1 - rate) * c) for a, b, c in joint]


def sticky_reports(rng: Rng) -> Drawn:
    """Shuffled reports of one hidden cohort, in some cases of fresh cohorts drawn from it."""
    n, rounds, number = int(rng.integers(1, 4)), int(rng.integers(1, 4)), probability(rng)
    kind = int(rng.integers(0, 4))
    if kind == 0:
        eps0 = local_budget(rng, 30.0)
        precise(eps0)
        core: Any = ShuffledLDP(eps0, n)
        families = [binary(o.exp_of(eps0)), three_rr(o.exp_of(eps0))]
        name = "ShuffledLDP"
    elif kind == 1:
        given, one, zero = bit_shares(rng)
        core, families, name = (CountedBits(n, **given), [[[1 - one, one], [1 - zero, zero]]], "CountedBits")
    else:
        randomizer, laws = named(rng, 12.0)
        laws = merged(laws)
        n = min(n, 2) if len(laws[0]) > 3 else n
        rounds = min(rounds, 2) if len(laws[0]) > 2 else rounds
        core, families, name = Shuffled(randomizer, n), [laws], type(randomizer).__name__
    triples = [
        triple for laws in families for triple in itertools.product(laws, repeat=3)
        if triple[0] is not triple[1]
    ]  # fmt: skip
    if rng.random() < 0.25:
        again = probability(rng)
        core, name = Subsampled(core, rate=again), f"{name} sampled"
        # Where the target is not drawn, one of the equal others stands in.
        triples = [(mixed(mpf(again), a, w), mixed(mpf(again), b, w), w) for a, b, w in triples]
    pairs = [drawn_once(*triple, n, mpf(number), rounds) for triple in triples]
    return Drawn(f"StickyCohort {name}", StickyCohort(core, rounds, rate=number), pairs)


def memoised(rng: Rng) -> Drawn:
    """Several collections from the same memoised filters: one round of these, whatever their number."""
    rappor, _, _ = bit_vectors(rng, 1.0, rappor=True)
    rappor = RAPPOR(k=2, noise=rappor.noise, one_if_zero=rappor.one_if_zero, one_if_one=rappor.one_if_one)
    n = int(rng.choice([1, 2, 2, 2, 3]))
    above = collections(rappor, n)
    kept = vector_laws(2, 1 - mpf(rappor.noise) / 2, mpf(rappor.noise) / 2)
    below = list(datasets(merged(kept), n))
    if rng.random() < 0.5:
        mechanism: Any = Shuffled(rappor.memoised, n)
        return Drawn("Shuffled tightest RAPPOR memoised", mechanism, above, below)
    ((mechanism, count),) = RAPPORHistogram(randomizer=rappor, n=n).ledger(int(rng.integers(2, 9)))
    return Drawn("RAPPORHistogram lifetime", mechanism, above, below, count=count)


def collections(rappor: Any, n: int) -> list[o.Atoms]:
    """Two shuffled collections from the same memoised filters of 2 bits, for every dataset."""
    half = mpf(rappor.noise) / 2
    reports = {
        kept: bits_law([mpf(rappor.one_if_one if bit else rappor.one_if_zero) for bit in kept])
        for kept in itertools.product((0, 1), repeat=2)
    }
    once = {
        kept: o.histogram_law([reports[one] for one in kept])
        for kept in itertools.combinations_with_replacement(reports, n)
    }
    permanent = [dict(zip(reports, bits_law(chances), strict=True)) for chances in ([1 - half, half], [half, 1 - half])]

    def view(values: Sequence[int]) -> dict[Any, mpf]:
        found: dict[Any, mpf] = defaultdict(lambda: mpf(0))
        for kept in itertools.product(reports, repeat=n):
            chance = mp.fprod(permanent[x][one] for x, one in zip(values, kept, strict=True))
            law = once[tuple(sorted(kept))]
            for (a, p), (b, q) in itertools.product(law.items(), repeat=2):
                found[a, b] += chance * p * q
        return found

    return [
        o.pair_of_views(view([first, *others]), view([1 - first, *others]))
        for first in (0, 1)
        for others in itertools.combinations_with_replacement((0, 1), n - 1)
    ]


def trusted(rng: Rng, most: int) -> tuple[dict[str, Any], int, float]:
    """The users of a protocol and the share of honest ones, as arguments; the honest ones, and the share."""
    n, share = int(rng.integers(1, most + 1)), 1.0
    if rng.random() < 0.4:
        share = round(float(rng.uniform(1.0 / n, 1.0)), 3)
    honest = math.floor(Fraction(str(share)) * n)
    if honest < 1:
        share, honest = 1.0, n
    return {"n": n, "honest_fraction": share}, honest, share


def response_protocol(rng: Rng) -> Drawn:
    """Randomised response over k values; two of them are a bit, and the others have the weak adversary's pair."""
    gamma_given = probability(rng)
    gamma, k = mpf(gamma_given), int(rng.integers(2, 5))
    users, honest, share = trusted(rng, 4 if k > 2 else 6)
    maker = [BinarySum, PrivateHistogram, RealSum][int(rng.integers(0, 3))]
    if maker is BinarySum:
        k, design = 2, {}
    else:
        design = {"k": k if maker is PrivateHistogram else k - 1}
    protocol: Any = maker(gamma=gamma_given, **design, **users)
    laws: list[Law] = [o.rr_law(k, gamma, value) for value in range(k)]
    values = laws
    if maker is RealSum and honest <= 3:  # a value between two of the grid
        values = [*laws, mixed(mpf(float(rng.uniform())), laws[0], laws[1])]
    exact = weak_laws(k, gamma) if k > 2 else None
    return in_cohort(rng, protocol, values, exact, honest, share)


def in_cohort(
    rng: Rng, protocol: Any, laws: list[Law], exact: tuple[Law, Law, Law] | None, honest: int, share: float
) -> Drawn:
    """One round of everybody, or of a cohort. exact: the slots of the pair that the protocol names; else its own."""
    name = type(protocol).__name__
    if rng.random() < 0.6:
        above = list(datasets(laws, honest))
        below = None if exact is None else [slots(*exact, honest)]
        return Drawn(name, protocol.mechanism, above, below)
    population = protocol.n + int(rng.integers(1, 3)) if honest <= 2 else protocol.n + round(log_uniform(rng, 1, 1e6))
    relied = math.floor(Fraction(str(share)) * population)
    mechanism = protocol.on_cohort(population)
    rate = mpf(honest) / relied
    triples = [triple for triple in itertools.product(laws, repeat=3) if triple[0] is not triple[1]]
    above = [slots(*triple, honest, rate) for triple in triples]
    if relied <= 4:
        above += list(cohorts(laws, honest, relied))
    # The mechanism lets more of the honest users be drawn than need be.
    most = mpf(mechanism.rate)
    below = (
        above + [slots(*triple, honest, most) for triple in triples]
        if exact is None
        else [slots(*exact, honest, max(rate, most))]
    )
    return Drawn(f"{name} on_cohort", mechanism, above, below)


def vector_protocol(rng: Rng) -> Drawn:
    """Bit vectors, with fresh noise or one collection from memoised filters."""
    users, honest, share = trusted(rng, 3)
    eps0 = local_budget(rng, 20.0)
    precise(eps0)
    kept = rng.random() < 0.4
    randomizer, keep, false = bit_vectors(rng, eps0, rappor=kept or rng.random() < 0.3)
    laws = merged(vector_laws(randomizer.k, keep, false))
    if kept:
        protocol: Any = RAPPORHistogram(randomizer=randomizer, **users)
        ((mechanism, count),) = protocol.ledger()
        above = list(datasets(laws, honest))
        return Drawn("RAPPORHistogram", mechanism, above, above, count=count)
    protocol = BitHistogram(randomizer=randomizer, **users)
    return in_cohort(rng, protocol, laws, None, honest, share)


def zero_protocol(rng: Rng) -> Drawn:
    """The number of ones, of all users' bits and the honest ones' noise; in two bins, if a user moves."""
    users, honest, _ = trusted(rng, 8)
    rate_given = probability(rng)
    masses = sums([[1 - mpf(rate_given), mpf(rate_given)]] * honest)
    pair = list(zip([mpf(0), *masses], [*masses, mpf(0)], strict=True))
    if rng.random() < 0.6:
        protocol: Any = ZeroSum(rate=rate_given, **users)
        orders = [pair, mirrored(pair)]
        return Drawn("ZeroSum", protocol.mechanism, orders, [worst_pair(orders)])
    protocol = ZeroSumHistogram(k=int(rng.integers(2, 5)), rate=rate_given, **users)
    both = [(a * d, b * c) for a, b in pair for c, d in pair]
    return Drawn("ZeroSumHistogram", protocol.mechanism, [both])


def unary_sum(rng: Rng) -> Drawn:
    """Several bits of every user, all counted together; or over rounds, position by position."""
    users, honest, _ = trusted(rng, 3)
    gamma_given, bits, rounds = probability(rng), int(rng.integers(1, 4)), int(rng.integers(1, 3))
    one, zero = 1 - mpf(gamma_given) / 2, mpf(gamma_given) / 2
    ((mechanism, count),) = UnarySum(bits=bits, gamma=gamma_given, **users).ledger(rounds)
    levels = [sums([[1 - one, one]] * level + [[1 - zero, zero]] * (bits - level)) for level in range(bits + 1)]
    above = []
    for first, second in itertools.permutations(levels, 2):
        for others in itertools.combinations_with_replacement(levels, honest - 1):
            rest = sums(others)
            seen = zip(sums([first, rest]), sums([second, rest]), strict=True)
            above.append(o.power(list(seen), rounds))
    if count == 1:
        return Drawn("UnarySum", mechanism, above)
    places = [[1 - one, one], [1 - zero, zero]]
    below = [o.power(pair, count) for pair in datasets(places, honest)]
    return Drawn("UnarySum by positions", mechanism, above, below, count=count)


def imported(rng: Rng) -> Drawn:
    width, low, step = (int(rng.integers(1, 9)), int(rng.integers(1, 20)), log_uniform(rng, 1e-6, 1.0))
    law = dyadic_law(rng, width + 2)  # the last two: infinite loss, and what is left
    masses = [float(mass) / 4 for mass in law[:width]]
    infinity = float(law[width]) / 4 if rng.random() < 0.5 else 0.0
    mechanism = ImportedPair(step, low, tuple(masses), infinity, "replace-one")
    pair: o.Atoms = []
    for i, mass in enumerate(masses):
        q = mpf(mass) * mp.exp(-(low + i) * mpf(step))
        pair += [(mpf(mass), q), (q, mpf(mass))]
    pair += [(mpf(infinity), mpf(0)), (mpf(0), mpf(infinity))]
    rest = 1 - sum(p for p, _ in pair)
    return Drawn("ImportedPair", mechanism, [[*pair, (rest, rest)]])


# --- sums, thresholds, dummies and steps --------------------------------------------------------------


def tabulated(weight: Callable[[int], mpf], *, one_sided: bool = False) -> dict[int, mpf]:
    """A law from its weights, up to where they are nothing."""
    found: dict[int, mpf] = {}
    for sign in (1,) if one_sided else (1, -1):
        for k in itertools.count():
            found[sign * k] = weight(sign * k)
            if k and found[sign * k] < min(NOTHING**1.1, found[sign * (k - 1)]):
                break
    total = sum(found.values())
    return {k: mass / total for k, mass in found.items()}


def failures(shape: mpf, p: mpf) -> dict[int, mpf]:
    """Negative binomial, by its recursion."""
    masses = [mpf(1)]
    return tabulated(
        lambda k: masses[k] if not k else (masses.append(masses[-1] * (1 - p) * (shape + k - 1) / k), masses[k])[1],
        one_sided=True,
    )


def negated(law: dict[int, mpf]) -> dict[int, mpf]:
    return {-k: mass for k, mass in law.items()}


def noise_share(rng: Rng, count: int, *, dummies: bool = False) -> tuple[Any, dict[int, mpf]]:
    """The noise of one party, and the law of the sum of so many."""
    kind = int(rng.integers(0, 3 if dummies else 7))
    if kind == 0:
        trials, p = int(rng.integers(1, 5)), probability(rng)
        return shares.Binomial(trials, p), o.bernoulli(count * trials, mpf(p))
    if kind == 1:
        mean = log_uniform(rng, 1e-3, 10.0)
        return shares.Poisson(mean), poisson(count * mpf(mean))
    if kind in (2, 3):
        p, two_sided = float(rng.uniform(0.2, 0.95)), kind == 3
        shape = log_uniform(rng, 1.0 if dummies or rng.random() < 0.7 else 0.05, 5.0) / count
        law = failures(count * mpf(shape), mpf(p))
        share = shares.NegativeBinomial(shape, p, two_sided=two_sided)
        return share, o.sum_law(law, negated(law)) if two_sided else law
    if kind == 4:
        variance = log_uniform(rng, 1e-2, 10.0)
        half = poisson(count * mpf(variance) / 2)
        return shares.Skellam(variance), o.sum_law(half, negated(half))
    if kind == 5:
        scale = log_uniform(rng, 0.1, 1.5)
        one = tabulated(lambda k: mp.exp(-abs(k) / mpf(scale)))
        return shares.DiscreteLaplace(scale), o.sum_law(*[one] * count)
    sigma = log_uniform(rng, 0.1, 3.0)
    one = tabulated(lambda k: mp.exp(-(mpf(k) ** 2) / (2 * mpf(sigma) ** 2)))
    return shares.DiscreteGaussian(sigma), o.sum_law(*[one] * count)


def poisson(mean: mpf) -> dict[int, mpf]:
    return tabulated(lambda k: mean**k / math.factorial(k), one_sided=True)


def summed_noise(rng: Rng) -> Drawn:
    """An integer sum whose clients add noise; some of them drop out, some collude."""
    hidden, lost, known = int(rng.integers(1, 4)), int(rng.integers(0, 2)), int(rng.integers(0, 2))
    share, law = noise_share(rng, hidden)
    given: dict[str, Any] = {"sensitivity": int(rng.choice([1, 1, 2, 3])), "dropouts": lost, "colluding": known}
    clients = hidden + lost + known
    if rng.random() < 0.3:
        given["modulus"] = clients * given["sensitivity"] + int(rng.choice([1, 2, 10, 100]))
    if rng.random() < 0.2:
        given["coordinates"] = 2
    try:
        mechanism = SummedNoise(share, clients, **given)
    except ValueError:  # not log-concave, or as wide as the sensitivity
        given = {"sensitivity": 1, "dropouts": lost, "colluding": known}
        mechanism = SummedNoise(share, clients, **given)
    pairs = o.moved_sums(law, given["sensitivity"], given.get("modulus"))
    if given.get("coordinates") == 2 and len(law) < 40:
        pairs = [o.product(a, b) for a, b in itertools.combinations_with_replacement(pairs, 2)]
    return Drawn(f"SummedNoise {type(share).__name__}", mechanism, pairs, [] if "coordinates" in given else None)


def summed_reports(rng: Rng) -> Drawn:
    """The sum of local reports: symbols, bits or noise."""
    kind = int(rng.integers(0, 4))
    if kind == 0:
        n, eps0, k = int(rng.integers(1, 5)), local_budget(rng, 20.0), int(rng.integers(2, 4))
        precise(eps0)
        e0 = o.exp_of(eps0)
        laws = [[(e0 if x == y else 1) / (e0 + k - 1) for y in range(k)] for x in range(k)]
        return Drawn("Summed k-RR", Summed(KRandomizedResponse(k=k, eps0=eps0), n), list(datasets(laws, n)))
    if kind == 1:
        n, eps0 = int(rng.integers(1, 5)), local_budget(rng, 20.0)
        precise(eps0)
        randomizer, keep, false = bit_vectors(rng, eps0, rappor=bool(rng.random() < 0.5))
        return Drawn("Summed bits", Summed(randomizer, n), bit_counts(n, keep, false))
    if kind == 2:
        n, sigma = int(rng.integers(1, 100)), log_uniform(rng, 0.2, 20.0)
        precise(100.0)
        t = 1 / (mpf(sigma) * mp.sqrt(n))
        profile = partial(gaussian_profile, t)
        pair = cells(lambda x: mp.ncdf(x - t), mp.ncdf, [t / 2 + mpf(z) for z in np.linspace(-5, 5, 11)])
        reach = t * t / 2 + 6 * t
        above = dotted(profile, [reach * j / 24 for j in range(25)])
        return Drawn("Summed Gaussian", Summed(LocalGaussian(sigma=sigma), n), [pair], [above], profile)
    n, eps0 = int(rng.integers(1, 3)), max(1e-4, local_budget(rng, 12.0))  # with less the law is too long
    precise(eps0)

    def tail(x: mpf) -> mpf:
        """Of one or two Laplace numbers of scale 1."""
        if x < 0:
            return 1 - tail(-x)
        return mp.exp(-x) * (mpf(1) / 2 if n == 1 else mpf(1) / 2 + x / 4)

    t = mpf(eps0)
    pair = cells(lambda x: 1 - tail(x - t), lambda x: 1 - tail(x), [t * mpf(x) for x in np.linspace(-2.0, 3.0, 21)])
    return Drawn("Summed Laplace", Summed(LocalLaplace(eps0=eps0), n), [pair], [])


def threshold(rng: Rng) -> Drawn:
    """Sample and threshold: all counts of a bin in which a user comes or goes, or of the two that it changes."""
    rate, least, released = probability(rng), int(rng.integers(1, 4)), str(rng.choice(["counts", "bins"]))
    rate = float(rng.uniform(0.15, 1.0)) if rng.random() < 0.7 else max(rate, 1e-3)
    dummies, law = (None, {0: mpf(1)}) if rng.random() < 0.5 else noise_share(rng, 2, dummies=True)
    most = min(math.ceil(3 * least / rate) + 4, 20)
    neighbours = str(rng.choice(["add-or-remove-one", "zero-out", "replace-one"]))
    mechanism = Threshold(rate, least, dummies, 1 if dummies is None else 2, released=released, neighbours=neighbours)
    views = [o.published(count, mpf(rate), least, law, released == "bins") for count in range(most + 1)]
    pairs = [o.pair_of_views(b, a) for a, b in itertools.pairwise(views)]
    both = [*pairs, *map(mirrored, pairs)]
    name = f"Threshold {released}"
    if neighbours != "replace-one":
        # Beyond these counts it may get worse only where rates are small.
        return Drawn(name, mechanism, both, both if most < 20 else [])
    moves = [int(i) for i in rng.integers(0, most, 8)]
    above = [o.product(pairs[i], mirrored(pairs[j])) for i, j in zip(moves[::2], moves[1::2], strict=True)]
    return Drawn(f"{name}, two bins", mechanism, above, [])


def dummies(rng: Rng) -> Drawn:
    """Reports, true or random, among uniform ones: the labels, as the adversary knows who answered at random."""
    k, users = int(rng.choice([2, 3, 4, 100])), trusted(rng, 4)
    number = float(rng.choice([1.0, 2.0, 0.5, 1.25])) if rng.random() < 0.6 else log_uniform(rng, 1e-6, 2.0)
    gamma_given = probability(rng) if rng.random() < 0.5 else 0.0
    given, honest, _ = users
    if gamma_given:
        protocol: Any = MixDUMP(k=k, dummies=number, gamma=gamma_given, **given)
    else:
        protocol = BallsIntoBins(k=k, dummies=number, **given)
    name = type(protocol).__name__
    first, second, others = weak_laws(k, mpf(gamma_given))
    uniform = [mpf(1) / k, mpf(1) / k, mpf(k - 2) / k]
    pair = o.shuffled_pair(first, second, [*[others] * (honest - 1), *o.dummy_laws(uniform, honest, mpf(number))])
    mechanism = protocol.mechanism if rng.random() < 0.5 else DummyReports(k, honest, number, gamma_given)
    return Drawn(name, mechanism, [pair])


def fakes(rng: Rng) -> Drawn:
    """One-hot bits that are flipped, among flipped zeros: all data, below the labels that are accounted for."""
    given, honest, _ = trusted(rng, 2)
    k, number, flip = int(rng.integers(2, 4)), int(rng.integers(1, 3)), min(probability(rng) / 2, 0.499)
    protocol = FakeUsers(k=k, fakes=number, flip=flip, **given)
    laws, nobody = vector_laws(k, 1 - mpf(flip), mpf(flip)), bits_law([mpf(flip)] * k)
    merged_laws = merged([*laws, nobody])
    above = [
        o.shuffled_pair(
            merged_laws[0],
            merged_laws[1],
            [*map(merged_laws.__getitem__, rest), *[merged_laws[-1]] * (honest * number)],
        )
        for rest in itertools.combinations_with_replacement(range(k), honest - 1)
    ]
    precise(protocol.mechanism.eps0)
    stated = labels_of(protocol.mechanism)
    return Drawn("FakeUsers", protocol.mechanism, [stated, *above], [stated])


def allocation(rng: Rng) -> Drawn:
    """A hidden one (or two) of a few steps: noise seen through cells, or finitely many outputs."""
    steps, selected = [(1, 1), (2, 1), (2, 1), (3, 1), (4, 2)][int(rng.integers(0, 5))]
    kind = str(rng.choice(["Gaussian", "Laplace", "DiscretePair"]))
    if kind == "DiscretePair":
        drawn = discrete(rng)
        while isinstance(drawn.mechanism, Subsampled):
            drawn = discrete(rng)
        laws = [list(law) for law in zip(*drawn.above[0], strict=True)]
        pair = hidden_step(*laws, steps, selected)
        mechanism = RandomAllocation(drawn.mechanism, steps, selected)
        return Drawn(
            f"RandomAllocation {drawn.name}",
            mechanism,
            [pair, mirrored(pair)],
            None if selected == 1 else [],
            by_points=True,
        )
    precise(80.0)
    ratio = log_uniform(rng, 1e-2, 4.0)
    noise, t = 1.0 / ratio, 1 / mpf(1.0 / ratio)
    if kind == "Gaussian":
        step: Any = Gaussian(sigma=noise)
        cdf, edges = mp.ncdf, [t / 2 + mpf(z) for z in np.linspace(-4, 4, 9)]
        ratios = [mp.exp(x * t - t * t / 2) for x in edges]
    else:
        step = Laplace(scale=noise)

        def cdf(x: mpf) -> mpf:
            return mp.exp(x) / 2 if x < 0 else 1 - mp.exp(-x) / 2

        edges = [t * mpf(x) for x in np.linspace(0.0, 1.0, 9)]
        ratios = [mp.exp(2 * x - t) for x in edges]
    if kind == "Gaussian" and rng.random() < 0.3:
        seen = [
            [b - a for a, b in itertools.pairwise([mpf(0), *(cdf(x - m) for x in edges), mpf(1)])] for m in (t, -t, 0)
        ]
        views = [o.allocation_view(law, seen[2], steps, selected) for law in seen[:2]]
        mechanism = RandomAllocation(step, steps, selected, "replace-one")
        return Drawn("RandomAllocation Gaussian replaced", mechanism, [o.pair_of_views(*views)], [], by_points=True)
    without, with_it = zip(*cells(cdf, lambda x: cdf(x - t), edges), strict=True)
    below = hidden_step(*extreme_rays(list(without), list(with_it), ratios)[::-1], steps, selected)
    pair = hidden_step(list(with_it), list(without), steps, selected)
    mechanism = RandomAllocation(step, steps, selected)
    both = [below, mirrored(below)]
    return Drawn(f"RandomAllocation {kind}", mechanism, [pair, mirrored(pair)], both, by_points=True)


def hidden_step(first: Law, second: Law, steps: int, selected: int) -> o.Atoms:
    return o.pair_of_views(
        o.allocation_view(first, second, steps, selected), o.allocation_view(second, second, steps, selected)
    )


def shuffled_batches(rng: Rng) -> Drawn:
    """Two noisy sums of the batches of a permutation, through cells; what the others hold may depend on the first."""
    size, left = int(rng.integers(1, 3)), int(rng.integers(0, 3))
    records, noise = 2 * size + left, log_uniform(rng, 0.2, 20.0)
    precise(80.0)
    relation = str(rng.choice(["zero-out", "replace-one"]))
    edges = [mpf(z) for z in np.linspace(-size - 3 * noise, size + 3 * noise, 8)]

    def law(mean: int) -> Law:
        ends = [mpf(0), *(mp.ncdf((x - mean) / mpf(noise)) for x in edges), mpf(1)]
        return [b - a for a, b in itertools.pairwise(ends)]

    laws = {mean: law(mean) for mean in range(-size, size + 1)}
    start = rng.integers(-1, 2, records) if rng.random() < 0.5 else -np.ones(records, int)
    later = (
        rng.integers(-1, 2, (records, len(edges) + 1))
        if rng.random() < 0.5
        else -np.ones((records, len(edges) + 1), int)
    )

    def view(own: int) -> dict[Any, mpf]:
        start[0], later[0] = own, own
        found: dict[Any, mpf] = defaultdict(lambda: mpf(0))
        ways = list(itertools.permutations(range(records), 2 * size))
        for order in ways:
            first, second = list(order[:size]), list(order[size:])
            if first != sorted(first) or second != sorted(second):
                continue
            for a, mass in enumerate(laws[int(start[first].sum())]):
                for b, more in enumerate(laws[int(later[second, a].sum())]):
                    found[a, b] += mass * more
        total = sum(found.values())
        return {key: mass / total for key, mass in found.items()}

    pair = o.pair_of_views(view(1), view(0 if relation == "zero-out" else -1))
    t = (1 if relation == "zero-out" else 2) / mpf(noise)
    reach = t * t / 2 + 6 * t
    known = dotted(partial(gaussian_profile, t), [reach * j / 24 for j in range(25)])  # of a batch that is known
    mechanism = ShuffledBatches(noise, 2, size, records, relation=relation)
    return Drawn(f"ShuffledBatches {relation}", mechanism, [pair, mirrored(pair)], [known], by_points=True)


#: Who draws, how often, and what: together, all that is public (tests/test_fuzzer.py).
RANDOMIZERS = (
    BinaryRandomizedResponse, DiscreteRandomizer, HadamardResponse, KRandomizedResponse, LocalHashing, RAPPOR,
    SubsetSelection, UnaryEncoding,
)  # fmt: skip
KINDS: list[tuple[Callable[[Rng], Drawn], float, tuple[type, ...]]] = [
    (ldp, 3.0, (ShuffledLDP, Subsampled)),
    (reduction, 4.0, (ShuffledRandomizer, Subsampled)),
    (rr, 4.0, (ShuffledRR, Subsampled)),
    (ldp_tightest, 0.4, (ShuffledLDP, Subsampled)),
    (shuffled_tightest, 0.4, (Shuffled, Subsampled, *RANDOMIZERS)),
    (shuffled_others, 2.0, (Shuffled, Blanket, Subsampled, *RANDOMIZERS)),
    (attack, 2.0, (Attack, *RANDOMIZERS)),
    (bits, 1.5, (Shuffled, BinaryRandomizedResponse, KRandomizedResponse, Subsampled)),
    (discrete, 2.0, (DiscretePair, Subsampled)),
    (central, 2.0, (Laplace, Gaussian, PoissonGaussian)),
    (users_noise, 0.5, (Shuffled, LocalLaplace, LocalGaussian, Subsampled, PoissonSampled)),
    (mixed_budgets, 1.0, (MixedRR,)),
    (mixed_randomizers, 0.7, (MixedRandomizers,)),
    (epoch, 0.5, (Epoch,)),
    (
        zero_out,
        0.7,
        (ZeroOut, ShuffledLDP, ShuffledRR, ShuffledRandomizer, Shuffled, Laplace, Gaussian, PoissonGaussian),
    ),
    (counted_bits, 1.0, (CountedBits, Subsampled)),
    (coming_and_going, 0.6, (PoissonSampled, Subsampled, Shuffled, ShuffledLDP)),
    (sticky, 0.8, (StickyCohort, ShuffledRR, ShuffledLDP, Shuffled, CountedBits, Subsampled)),
    (memoised, 0.4, (RAPPOR, RAPPORHistogram)),
    (response_protocol, 0.6, (BinarySum, PrivateHistogram, RealSum)),
    (vector_protocol, 0.4, (BitHistogram, RAPPORHistogram)),
    (zero_protocol, 0.4, (ZeroSum, ZeroSumHistogram)),
    (unary_sum, 0.4, (UnarySum,)),
    (imported, 1.0, (ImportedPair,)),
    (summed_noise, 1.0, (SummedNoise,)),
    (summed_reports, 1.4, (Summed, KRandomizedResponse, UnaryEncoding, RAPPOR, LocalGaussian, LocalLaplace)),
    (threshold, 0.6, (Threshold,)),
    (dummies, 0.7, (DummyReports, BallsIntoBins, MixDUMP)),
    (fakes, 0.4, (FakeUsers,)),
    (allocation, 0.7, (RandomAllocation, DiscretePair, Gaussian, Laplace)),
    (shuffled_batches, 0.4, (ShuffledBatches,)),
]


# --- a case -----------------------------------------------------------------------------------------


@dataclass
class Found:
    """What a block of seeds showed. margins: relative distance of an end from the truth, the smallest."""

    ledgers: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    brackets: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    answers: int = 0  # how many of the brackets are an accountant's
    laws: int = 0
    upper: dict[str, float] = field(default_factory=dict)
    lower: dict[str, float] = field(default_factory=dict)
    violations: list[dict[str, Any]] = field(default_factory=list)
    failures: list[dict[str, Any]] = field(default_factory=list)
    refused: int = 0  # by an error that names a larger rtol, step or missed
    skipped: int = 0

    def margin(self, side: str, name: str, value: float) -> None:
        table = getattr(self, side)
        table[name] = min(table.get(name, math.inf), value)


def ledger(rng: Rng) -> tuple[list[Drawn], list[int]]:
    """Mechanisms and for how many rounds each."""
    mp.dps = DIGITS
    weights = np.array([weight for _, weight, _ in KINDS])
    entries = int(rng.choice([1, 1, 1, 1, 1, 2, 2, 3]))
    drawn = [KINDS[int(rng.choice(len(KINDS), p=weights / weights.sum()))][0](rng) for _ in range(entries)]
    drawn = [
        one for one in drawn if one.mechanism.relation == drawn[0].mechanism.relation and not one.by_points
    ] or drawn[:1]
    counts = [1] * len(drawn)
    widest = max(len(o.canonical(pair)) for pair in drawn[0].above[:1])
    if len(drawn) == 1 and len(drawn[0].above) <= 4 and not drawn[0].by_points and rng.random() < 0.3:
        most = max((c for c in (1, 2, 3, 5, 8, 16, 30) if widest ** ((c + 1) // 2) <= MOST_ATOMS), default=1)
        counts = [int(rng.integers(1, most + 1))]
    return drawn, counts


class Truths:
    """The least the upper end may be, and the most the lower end may be, of a ledger."""

    def __init__(self, rng: Rng, drawn: Sequence[Drawn], counts: Sequence[int]) -> None:
        self._profile = drawn[0].profile if len(drawn) == 1 and counts == [1] else None
        if len(drawn) == 1:
            self.uppers = [o.Composition([(pair, counts[0])]) for pair in drawn[0].above]
            below = drawn[0].below
            self._lowers = self.uppers if below is None else [o.Composition([(pair, counts[0])]) for pair in below]
            return
        self.uppers = [
            o.Composition([(one.above[int(rng.integers(0, len(one.above)))], 1) for one in drawn]) for _ in range(3)
        ]
        choices = [one.ceilings for one in drawn]
        self._lowers = []
        if math.prod(len(choice) for choice in choices) <= 60:
            self._lowers = [o.Composition([(pair, 1) for pair in combo]) for combo in itertools.product(*choices)]

    def at(self, eps: float) -> tuple[mpf, mpf | None]:
        if self._profile is not None:
            value = self._profile(mpf(eps))
            return value, value
        alpha = mp.exp(mpf(eps))
        least = max(o.to_mpf(composed.hockey_stick(alpha)) for composed in self.uppers)
        if self._lowers is self.uppers:
            return least, least
        found = [o.to_mpf(composed.hockey_stick(alpha)) for composed in self._lowers]
        return least, max(found, default=None)

    def epsilons(self, rng: Rng, number: int) -> list[float]:
        """Near 0, near the largest loss, next to an atom, or anywhere."""
        composed = self.uppers[int(rng.integers(0, len(self.uppers)))]
        largest = composed.largest_loss()
        top = float(min(largest, mpf(650))) if largest < mp.inf else float(rng.choice([0.1, 1.0, 5.0, 30.0]))
        ratios = [ratio for ratio in composed._ratios if ratio > 1]
        found = []
        for kind in rng.integers(0, 6, number):
            eps = float(rng.uniform(0.0, 1.0)) * top
            if kind == 0:
                eps = 0.0 if rng.random() < 0.1 else top * log_uniform(rng, 1e-12, 0.1)
            elif kind == 1:
                eps = top * (1.0 - log_uniform(rng, 2.0**-53, 0.1))
            elif kind == 2 and ratios:
                loss = float(mp.log(ratios[int(rng.integers(0, len(ratios)))]))
                eps = max(0.0, loss * (1.0 + float(rng.choice([0.0, 1e-15, -1e-15, 1e-12, 1e-9, -1e-9]))))
            found.append(eps)
        return [*found[:-1], top]


class Case:
    """One ledger: its truths, and what is found when they are compared."""

    def __init__(self, seed: int, found: Found, show: bool) -> None:
        self.found, self.show, self.seed = found, show, seed
        self.rng = np.random.default_rng([seed, 21])
        self.drawn, self.counts = ledger(self.rng)
        self.rounds = [one.count * count for one, count in zip(self.drawn, self.counts, strict=True)]
        self.names = sorted({one.name for one in self.drawn})
        self.context = {"seed": seed, "ledger": [repr(one.mechanism) for one in self.drawn], "counts": self.rounds}
        self.deep = seed % 50 == 0

    def run(self) -> None:
        size = math.prod(len(o.canonical(one.above[0])) for one in self.drawn[:2])
        if size > MOST_ATOMS:
            self.found.skipped += 1
            return
        self.truths = Truths(self.rng, self.drawn, self.counts)
        for name in self.names:
            self.found.ledgers[name if len(self.names) == 1 else f"(mixed) {name}"] += 1
        self.found.ledgers["all"] += 1
        if not self.deep:
            asked = self.truths.epsilons(self.rng, POINTS if self.drawn[0].by_points else READINGS)
            exact = [self.truths.at(eps) for eps in asked]
            for _ in range(LATTICES):
                (self.read_points if self.drawn[0].by_points else self.read)(asked, exact)
        if self.deep or self.rng.random() < 0.2:
            self.ask()

    def read_points(self, asked: list[float], exact: list[tuple[mpf, mpf | None]]) -> None:
        """The profiles of a pair and of its attacks, at a few epsilons."""
        mechanism = self.drawn[0].mechanism
        attacks = getattr(mechanism.attack_pair, "pairs", (mechanism.attack_pair,))
        rtol, missed = log_uniform(self.rng, 1e-4, 1e-2), log_uniform(self.rng, 1e-20, 1e-6)
        for eps, truth in zip(asked, exact, strict=True):
            at = np.array([math.expm1(eps)])
            lower = max(float(attack.profile(at, rtol, missed).lower[0]) for attack in attacks)
            upper = float(mechanism.pair.profile(at, rtol, missed).upper[0])
            self.compare(eps, lower, upper, *truth, rtol=rtol, missed=missed)
        self.found.laws += 1

    def read(self, asked: list[float], exact: list[tuple[mpf, mpf | None]]) -> None:
        """PLDs of both sides on one lattice, at many epsilons."""
        pairs = [one.mechanism.pair for one in self.drawn]
        losses = [float(pair.max_loss.upper) for pair in pairs]
        scale = max(pair.scale for pair in pairs)
        largest = max((loss for loss in losses if loss < math.inf), default=20.0 * scale)
        if not scale > 0.0:
            return
        step = max(scale * log_uniform(self.rng, 1e-3, 3.0), largest / 1e5)
        if self.rng.random() < 0.5:
            step = largest / math.ceil(largest / step)
        if self.rng.random() < 0.03:  # far beyond every loss
            step *= log_uniform(self.rng, 1.0, 1e25)
        truncated_mass = log_uniform(self.rng, 1e-280, 1e-3)
        try:
            ends = []
            for side in (Side.LOWER, Side.UPPER):
                laws = [one.mechanism.pld(step=step, side=side, truncated_mass=truncated_mass) for one in self.drawn]
                laws = [law.self_compose(c) if c > 1 else law for law, c in zip(laws, self.rounds, strict=True)]
                law = laws[0]
                for other in laws[1:]:
                    law = law.compose(other)
                ends.append(law.delta(np.array(asked)))
        except (MemoryError, ValueError) as error:
            if isinstance(error, ValueError) and "use a larger missed" not in str(error):
                raise
            self.found.refused += 1
            return
        self.found.laws += 1
        for eps, (least, most), lower, upper in zip(asked, exact, *ends, strict=True):
            self.compare(eps, float(lower), float(upper), least, most, step=step, truncated_mass=truncated_mass)

    def ask(self) -> None:
        """An accountant's answers."""
        low, high = (1e-6, 1e-3) if self.deep else (3e-3, 0.3)
        rtol = log_uniform(self.rng, low, high)
        accountant = Accountant(rtol=rtol)
        try:
            for one, count in zip(self.drawn, self.rounds, strict=True):
                accountant.compose(one.mechanism, count)
            for eps in self.truths.epsilons(self.rng, QUESTIONS):
                bounds = accountant.delta_bounds(eps)
                least, most = self.truths.at(eps)
                self.compare(eps, float(bounds.lower), float(bounds.upper), least, most, rtol=rtol)
                self.found.answers += 1
            self.ask_epsilon(accountant, rtol)
        except MemoryError:
            self.found.refused += 1
        self.found.laws += 1

    def ask_epsilon(self, accountant: Accountant, rtol: float) -> None:
        least, _ = self.truths.at(self.truths.epsilons(self.rng, 2)[0])
        delta = float(least) * float(self.rng.choice([1.0, 1.0, 0.5, 1e-3]))
        if not 1e-250 < delta < 1.0:
            return
        bounds = accountant.epsilon_bounds(delta)
        if bounds.upper < math.inf:
            least, _ = self.truths.at(float(bounds.upper))
            self.check(
                "upper",
                least <= mpf(delta) * (1 + FORGIVEN) + NOTHING,
                float(1 - least / mpf(delta)),
                delta=delta,
                bounds=tuple(map(float, bounds)),
                rtol=rtol,
            )
        if 0.0 < bounds.lower < math.inf:
            _, most = self.truths.at(float(bounds.lower))
            if most is not None:
                self.check(
                    "lower",
                    most >= mpf(delta) * (1 - FORGIVEN),
                    float(most / mpf(delta) - 1),
                    delta=delta,
                    bounds=tuple(map(float, bounds)),
                    rtol=rtol,
                )
        self.count()
        self.found.answers += 1

    def compare(self, eps: float, lower: float, upper: float, least: mpf, most: mpf | None, **how: float) -> None:
        """A bracket of delta at eps against the truth."""
        if self.show:
            print(how, eps, (lower, upper), mpmath.nstr(least, 20), most and mpmath.nstr(most, 20))
        if least > NOTHING:
            self.check(
                "upper",
                mpf(upper) >= least * (1 - FORGIVEN),
                float(mpf(upper) / least - 1),
                eps=eps,
                bounds=(lower, upper),
                truth=mpmath.nstr(least, 25),
                **how,
            )
        if most is not None and lower > 0.0:
            self.check(
                "lower",
                mpf(lower) <= most * (1 + FORGIVEN) + NOTHING,
                float(1 - mpf(lower) / most) if most > NOTHING else 0.0,
                eps=eps,
                bounds=(lower, upper),
                truth=mpmath.nstr(most, 25),
                **how,
            )
        self.count()

    def count(self) -> None:
        for name in self.names:
            self.found.brackets[name if len(self.names) == 1 else f"(mixed) {name}"] += 1
        self.found.brackets["all"] += 1

    def check(self, side: str, holds: bool, margin: float, **details: Any) -> None:
        for name in self.names:
            self.found.margin(side, name, margin)
        if not holds and len(self.found.violations) < 20:
            self.found.violations.append({**self.context, "side": side, "margin": margin, **details})


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


def commit() -> str:
    """Which code this is."""
    here = Path(__file__).resolve().parent
    asked = subprocess.run(
        ["git", "-C", str(here), "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    )
    return asked.stdout.strip() or "unknown"


def too_slow(signum: int, frame: Any) -> None:
    from numba.core.compiler_lock import global_compiler_lock

    if global_compiler_lock.is_locked():  # an interrupted compiler is of no use to later seeds
        signal.setitimer(signal.ITIMER_PROF, 1.0)
        return
    raise TimeoutError


def run(log: Path, seconds: float) -> None:
    signal.signal(signal.SIGPROF, too_slow)
    end = time.monotonic() + seconds
    code = commit()
    while time.monotonic() < end:
        first = claim(log)
        found = Found()
        started = time.process_time()
        for seed in range(first, first + BLOCK):
            signal.setitimer(signal.ITIMER_PROF, DEEP if seed % 50 == 0 else PATIENCE)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    Case(seed, found, show=False).run()
            except TimeoutError:
                found.skipped += 1
            except Exception as error:  # a crash is a finding, and the run goes on
                found.failures.append(
                    {"seed": seed, "error": repr(error)[:300], "where": traceback.format_exc()[-700:]}
                )
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0.0)
        spent = round(time.process_time() - started, 2)
        append(log, {"commit": code, "first": first, "seeds": BLOCK, "seconds": spent, **vars(found)})


def summary(log: Path) -> str:
    """One table for each commit."""
    lines = [json.loads(text) for text in log.read_text(encoding="utf-8").splitlines()]
    codes = dict.fromkeys(line["commit"] for line in lines)
    return "\n\n".join(table(code, [line for line in lines if line["commit"] == code]) for code in codes)


def table(code: str, lines: Sequence[dict[str, Any]]) -> str:
    total = Found()
    for line in lines:
        for name in ("answers", "laws", "refused", "skipped"):
            setattr(total, name, getattr(total, name) + line[name])
        for name in ("ledgers", "brackets"):
            for key, count in line[name].items():
                getattr(total, name)[key] += count
        for side in ("upper", "lower"):
            for name, value in line[side].items():
                total.margin(side, name, value)
        total.violations += line["violations"]
        total.failures += line["failures"]
    seeds = [line["first"] for line in lines]
    rows = [
        f"Commit {code}, seeds {min(seeds)} to {max(seeds) + BLOCK - 1} in"
        f" {sum(line['seconds'] for line in lines):,.0f} CPU s: {total.brackets['all']:,} brackets"
        f" ({total.answers:,} of them an accountant's) of {total.laws:,} laws of {total.ledgers['all']:,} ledgers;"
        f" {len(total.violations)} violations, {len(total.failures)} crashes, {total.refused} refused for memory,"
        f" {total.skipped} skipped (too many atoms, or too slow).",
        "",
        "| mechanism | ledgers, alone | mixed | brackets, alone | mixed | least (upper - truth)/truth"
        " | least (truth - lower)/truth |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in sorted({*total.upper, *total.lower}):
        mixed = f"(mixed) {name}"
        rows.append(
            f"| {name} | {total.ledgers[name]:,} | {total.ledgers[mixed]:,} | {total.brackets[name]:,}"
            f" | {total.brackets[mixed]:,} | {total.upper.get(name, math.nan):.1e}"
            f" | {total.lower.get(name, math.nan):.1e} |"
        )
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to run")
    parser.add_argument("--log", type=Path, default=Path("fuzz.jsonl"), help="JSON lines, appended to")
    parser.add_argument("--summary", action="store_true", help="print what the log holds, and stop")
    parser.add_argument("--replay", type=int, metavar="SEED", help="show one case, and stop")
    given = parser.parse_args()
    if given.summary:
        print(summary(given.log))
    elif given.replay is not None:
        found = Found()
        case = Case(given.replay, found, show=True)
        print(case.context)
        case.run()
        print(found.violations)
    else:
        run(given.log, given.seconds)


if __name__ == "__main__":
    main()
