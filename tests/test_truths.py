"""One table of truths: every scheme and protocol, enumerated; what is accounted for contains it, and is near it.

A truth is what was run, and pairs of views of neighbouring datasets: who is drawn, who takes part, what everybody
reports, every outcome in rationals. Upper ends must not be below what any of the pairs gives away, in either order and
over all rounds, and lower ends not above what the worst one does (`contains`); how near they are stands in the table
(`tight`). Where all others hold one value, attacks are one of the datasets, exactly.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction as F
from functools import cache, partial, reduce
from typing import Any, NamedTuple

import numpy as np
import oracles as o
import pytest
from enumerated import law_of
from oracles import drawn, mixture

from pld_shuffle import (
    Accountant,
    CountedBits,
    DiscretePair,
    Epoch,
    Mechanism,
    MixedRandomizers,
    MixedRR,
    PoissonSampled,
    RandomAllocation,
    Shuffled,
    ShuffledLDP,
    ShuffledRR,
    StickyCohort,
    Subsampled,
    Summed,
    SummedNoise,
    Threshold,
    ZeroOut,
)
from pld_shuffle.composition.composition import Composition
from pld_shuffle.mechanisms import DummyReports
from pld_shuffle.mechanisms.shuffled import attack_law
from pld_shuffle.pairs import two_counts
from pld_shuffle.pairs.pair import Attacks, Cohort, Pair
from pld_shuffle.pairs.profile import Several
from pld_shuffle.protocols import (
    BinarySum,
    BitHistogram,
    FakeUsers,
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
from pld_shuffle.shares import Binomial, NegativeBinomial

Law = Sequence[Any]  # of one user's report
View = dict[Any, Any]  # what is seen -> probability
Views = Callable[[Sequence[Law]], View]  # of the users' laws, the target's first
Array = np.ndarray

LOSSES = np.log([1.0, 1.02, 1.125, 1.3, 1.5, 1.75, 2.125, 2.5, 3.25, 4.625, 8.125])
P = F(3)
EPS0 = math.log(3.0)


class Truth(NamedTuple):
    """What was run (a mechanism, a protocol, or several of one truth), and pairs of its views.

    least : the lower end is at least this share of the worst pair's delta; None if the pairs are not all there are.
    most : the upper end is at most so many times the worst pair's delta.
    """

    asked: Any
    pairs: Callable[[], Iterable[o.Atoms]]
    rounds: int = 1
    least: float | None = None
    most: float = math.inf
    group: int = 1
    rtol: float = 1e-3
    ordered: bool = False  # the first order of the pairs alone


# --- laws and views ---------------------------------------------------------------------------


def rr(k: int, p: F = P) -> list[Law]:
    return [[(p if x == y else F(1)) / (p + k - 1) for y in range(k)] for x in range(k)]


def bit(one: F) -> Law:
    return [1 - one, one]


def sloped(k: int, p: F) -> list[Law]:
    """A log(p)-LDP randomizer of k reports that is no randomised response."""
    start = [p, (1 + p) / 2, *[F(1)] * (k - 2)]
    rows = [[start[(y - x) % k] for y in range(k)] for x in range(k)]
    return [[mass / sum(row) for mass in row] for row in rows]


def mixed(law: Sequence[F], rows: Sequence[Law]) -> Law:
    return [sum(w * row[y] for w, row in zip(law, rows, strict=True)) for y in range(len(rows[0]))]


def crowd(laws: Sequence[Law], each: int = 1) -> View:
    """All of them report, so many times."""
    return o.histogram_law([law for law in laws for _ in range(each)])


def together(*views: View) -> View:
    """Independent views."""
    return {
        tuple(key for key, _ in parts): math.prod(mass for _, mass in parts)
        for parts in itertools.product(*(view.items() for view in views))
    }


def by_coins(laws: Sequence[Law], presence: F) -> View:
    """Everybody by a coin of their own; the histogram tells how many came."""
    parts = []
    for present in itertools.product((False, True), repeat=len(laws)):
        some = [law for law, here in zip(laws, present, strict=True) if here]
        chance = math.prod(presence if here else 1 - presence for here in present)
        parts.append((chance, crowd(some) if some else {(0,) * len(laws[0]): 1}))
    return mixture(parts)


def cohort(size: int, presence: F = F(1), each: int = 1) -> Views:
    """Drawn anew; then every member by a coin of its own."""
    if presence == 1:
        return lambda laws: drawn(laws, size, partial(crowd, each=each))
    return lambda laws: drawn(laws, size, partial(by_coins, presence=presence))


def sticky(size: int, rounds: int) -> Views:
    """One cohort for all rounds."""
    return lambda laws: drawn(laws, size, lambda some: together(*[crowd(some)] * rounds))


def pool(laws: Sequence[Law]) -> View:
    """Two rounds of one of a pool of two, which is drawn once."""
    return drawn(laws, 2, lambda some: together(*[drawn(some, 1, crowd)] * 2))


def with_a_colluder(laws: Sequence[Law]) -> View:
    """Cohorts of 3 out of 5 and one more user, who shows its report and whether it was drawn."""
    sizes = ((2, True), (3, False))
    return mixture((F(1, 2), together({seen: 1}, drawn(laws, k, crowd))) for k, seen in sizes)


def datasets(
    rows: Sequence[Law], others: int, view: Views = crowd, held: Iterable[Any] | None = None,
    target: Iterable[int] | None = None,
) -> Callable[[], Iterator[o.Atoms]]:  # fmt: skip
    """The target's two values, of all or of some, and all that the others may hold."""

    def pairs() -> Iterator[o.Atoms]:
        values = range(len(rows))
        for kept in held or itertools.combinations_with_replacement(values, others):
            views = [view([rows[x], *(rows[y] for y in kept)]) for x in target or values]
            for one, two in itertools.combinations(views, 2):
                yield o.pair_of_views(one, two)

    return pairs


def either(*several: Callable[[], Iterable[o.Atoms]]) -> Callable[[], Iterator[o.Atoms]]:
    """The datasets of several randomizers."""
    return lambda: itertools.chain.from_iterable(pairs() for pairs in several)


def groups(rows: Sequence[Law], n: int, group: int) -> Callable[[], Iterator[o.Atoms]]:
    """All datasets of n users that differ in so many."""

    def pairs() -> Iterator[o.Atoms]:
        values = range(len(rows))
        for kept in itertools.combinations_with_replacement(values, n - group):
            views = [
                crowd([rows[x] for x in (*mine, *kept)])
                for mine in itertools.combinations_with_replacement(values, group)
            ]
            for one, two in itertools.combinations(views, 2):
                yield o.pair_of_views(one, two)

    return pairs


# --- schemes of people ------------------------------------------------------------------------

#: Randomizers of ratio 3; the last is a vertex of the polytope.
RANDOMIZERS = {
    "binary": rr(2),
    "3-RR": rr(3),
    "vertex": [[F(a, 8) for a in row] for row in ([3, 3, 1, 1], [3, 1, 3, 1], [1, 1, 3, 3])],
}
#: Others, their view, and the mechanism on a base for so many users.
SCHEMES: dict[str, tuple[int, Views, int, Callable[[Mechanism], Mechanism]]] = {
    "coins": (3, partial(by_coins, presence=F(3, 8)), 4, lambda m: PoissonSampled(m, 0.375)),
    "dropouts": (4, cohort(3, F(3, 4)), 3, lambda m: Subsampled(m, population=5, dropout=0.25)),
    "cohort": (4, cohort(3), 3, lambda m: Subsampled(m, population=5)),
    "colluder": (4, with_a_colluder, 3, lambda m: Subsampled(m, population=6, colluding=1)),
}
BASES: dict[str, tuple[int, Callable[[int], Mechanism]]] = {
    "any, 2": (2, lambda n: ShuffledLDP(EPS0, n)),
    "any, 3": (3, lambda n: ShuffledLDP(EPS0, n)),
    "labels": (3, lambda n: ShuffledLDP(EPS0, n, analysis="stronger-clones")),
    "bits": (2, lambda n: Shuffled(BinaryRandomizedResponse(EPS0), n)),
    "counts": (2, lambda n: CountedBits(n, one_if_one=0.75, one_if_zero=0.25)),
    "k-RR": (3, lambda n: Shuffled(KRandomizedResponse(k=3, eps0=EPS0), n)),
}


def analyses(rows: Sequence[Law], n: int) -> list[Mechanism]:
    """All that is proved of a randomizer, by its ratio alone and by its laws."""
    one = DiscreteRandomizer(np.array(rows, dtype=float).tolist())
    any_ldp = [ShuffledLDP(EPS0, n, analysis=a) for a in ("tightest", "stronger-clones", "clones")]
    return [*any_ldp, *(Shuffled(one, n, analysis=a) for a in ("tightest", "blanket", "reduction"))]


def epoch(laws: Sequence[Law], size: int, then: Callable[[Any, int], Law]) -> View:
    """Uniform order; the first `size` users report, the others as `then` says of the first ones' output and them."""
    parts = []
    orders = list(itertools.permutations(range(len(laws))))
    for order in orders:
        for seen, mass in crowd([laws[i] for i in order[:size]]).items():
            more = crowd([then(seen, laws[i]) for i in order[size:]])
            parts.append((mass / len(orders), together({seen: F(1)}, more)))
    return mixture(parts)


def epochs(k: int, n: int, size: int, p: F) -> Iterator[o.Atoms]:
    """The second cohort asked by randomizers that depend on the first one's output; all are log(p)-LDP."""
    full, binary = rr(k, p), [*rr(2, p), *[rr(2, p)[1]] * (k - 2)]

    def row(table: list[Law], law: Law) -> Law:
        return table[full.index(law)]

    flipped, silent = [law[::-1] for law in binary], [[F(1), F(0)]] * k
    choices: list[Callable[[Any, Law], Law]] = [
        lambda seen, law: law,
        lambda seen, law: row(binary if seen[0] else silent, law),
        lambda seen, law: row(flipped if seen[0] else binary, law),
        lambda seen, law: law if seen[1] and not seen[0] else row(binary, law),
    ]
    for kept in {(k - 1,) * (n - 1), (0,) * (n - 1), (1, *[0] * (n - 2))}:
        for then in choices:
            views = [epoch([full[x], *(full[y] for y in kept)], size, then) for x in (0, 1)]
            yield o.pair_of_views(*views)


def own_dropouts(k: int, users: int, n: int, least: F) -> Iterator[o.Atoms]:
    """Absence is a report; every user has a presence of its own, the others at least that, the target any."""
    for kept in itertools.combinations_with_replacement(rr(k), users - 1):
        for here in ([least] * 3, [least, F(1), F(3, 4)]):
            for own in (F(1), F(1, 2), F(1, 10)):
                views = []
                for mine in rr(k)[:2]:
                    come = zip((own, *here), (mine, *kept), strict=False)
                    views.append(drawn([[*(c * mass for mass in law), 1 - c] for c, law in come], n, crowd))
                yield o.pair_of_views(*views)


def null_reports(null: Sequence[int], presence: F = F(1)) -> Iterator[o.Atoms]:
    """The target's report against one of a mixture of the values' laws; who is absent reports as much."""
    rows = rr(3)
    rho = mixed([F(w, sum(null)) for w in null], rows)
    for kept in itertools.combinations_with_replacement(range(3), 2):
        laws = [
            [[*(presence * mass for mass in law), 1 - presence] for law in three]
            for three in ([row, *(rows[x] for x in kept)] for row in (rows[0], rho))
        ]
        yield o.pair_of_views(*map(crowd, laws))


def mixed_budgets(k: int, budgets: Sequence[int], p: F) -> Iterator[o.Atoms]:
    """Exact, before the weak adversary; and the shuffled reports alone."""
    rows, gammas = rr(k, p), [F(k, b + k - 1) for b in (p, *budgets)]
    yield o.pair_of_views(*(o.adversary_view(k, gammas, [x, *[0] * len(budgets)], 1) for x in (0, 1)))
    for value in range(k):
        kept = [rr(k, F(b))[value] for b in budgets]
        yield o.pair_of_views(*(crowd([row, *kept]) for row in rows[:2]))


def classes(budgets: Sequence[int], of: Callable[[float], float] = math.log) -> Any:
    return tuple((of(b), budgets.count(b)) for b in sorted(set(budgets)))


def mixed_randomizers(target: list[Law], budgets: Sequence[int]) -> Truth:
    """Everybody has a randomizer of its own; with and without the target's total variation."""
    rest = [sloped(3, F(b)) if b % 2 else rr(3, F(b)) for b in budgets]
    tv = max(sum(max(a - b, 0) for a, b in zip(x, y, strict=True)) for x in target for y in target)
    ratios = tuple(
        float(max(r / w for one in target for row in rows for r, w in zip(one, row, strict=True))) for rows in rest
    )
    given = tuple((ratio * (1 + 1e-15), 1) for ratio in ratios)

    def pairs() -> Iterator[o.Atoms]:
        for values in itertools.product(range(3), repeat=len(rest)):
            kept = [rows[value] for rows, value in zip(rest, values, strict=True)]
            yield o.pair_of_views(*(crowd([row, *kept]) for row in target[:2]))

    known = MixedRandomizers(math.log(4.0), given, tv=float(tv) * (1 + 1e-15))
    return Truth((MixedRandomizers(math.log(4.0), given), known), pairs)


def mixed_labels(beta: F) -> Truth:
    """The labels of users of three ratios are the pair; the last entry of a law is "no label"."""
    laws = [o.reduction_laws(F(4), beta, q) for q in (F(2), F(4), F(4), F(10))]
    atoms = o.shuffled_pair(laws[0][0], laws[0][1], [law[2] for law in laws])
    given = ((2.0, 1), (4.0, 2), (10.0, 1))
    mechanism = MixedRandomizers(math.log(4.0), given, tv=float(beta))
    return Truth(mechanism, lambda: [atoms], 1, 0.998, 1.002)


TRUTHS: dict[str, Truth] = {
    **{
        f"{scheme} of {base}, twice": Truth(wrap(make(n)), datasets(rr(k), others, view), 2)
        for scheme, (others, view, n, wrap) in SCHEMES.items()
        for base, (k, make) in BASES.items()
    },
    **{
        f"{scheme} of {name}": Truth(
            tuple(map(wrap, analyses(rows, n))),
            datasets(rows, others, view),
        )
        for scheme, (others, view, n, wrap) in SCHEMES.items()
        for name, rows in RANDOMIZERS.items()
    },
    **{
        f"general amplification of {base}, twice": Truth(
            Subsampled(make(3), population=5, analysis="general"), datasets(rr(k), 4, cohort(3)), 2
        )
        for base, (k, make) in BASES.items()
    },
    **{
        f"sticky {n} of {population}, {k}-RR": Truth(
            StickyCohort(ShuffledLDP(EPS0, n), 2, population=population),
            datasets(rr(k), population - 1, sticky(n, 2)),
        )
        for k, n, population in ((2, 1, 3), (2, 2, 4), (2, 3, 4), (3, 2, 3), (3, 2, 4))
    },
    **{
        f"fresh cohorts of a sticky pool, {held or 'any'} others": Truth(
            StickyCohort(Subsampled(ShuffledLDP(EPS0, 1), rate=0.5), 2, rate=2 / 3),
            datasets(rr(2), 2, pool, held), 1, least,
        )
        for held, least in ((None, None), ([(1, 1)], 0.93))
    },
    "two sticky cohorts": Truth(
        StickyCohort(Shuffled(BinaryRandomizedResponse(EPS0), 2), 2, population=4),
        datasets(rr(2), 3, sticky(2, 2)), 2, 0.98, rtol=1e-2,
    ),
    "a cohort of one of two, twice": Truth(  # the labels' pair is no dataset's; over two rounds it is above all of them
        Subsampled(ShuffledLDP(0.7438627188293342, 1), population=2),
        either(*(datasets(rr(k, F(math.exp(0.7438627188293342))), 1, cohort(1)) for k in (2, 3))), 2, 0.0,
    ),
    **{
        f"dropout limit, {n} of {users}, {k}-RR": Truth(
            tuple(
                Subsampled(one, population=users, dropout_limit=0.5)
                for one in (*analyses(rr(k), n), ShuffledRR(k, n, eps0=EPS0))
            ),
            partial(own_dropouts, k, users, n, F(1, 2)),
        )
        for k in (2, 3) for users, n in ((2, 1), (2, 2), (3, 2), (3, 3), (4, 2))
    },
    **{
        f"epoch of {n}, {size} first, {k}-RR, e^eps0={p}": Truth(
            Epoch(math.log(p), n), partial(epochs, k, n, size, F(p))
        )
        for k, n, size in ((2, 3, 1), (2, 4, 2), (2, 4, 1), (3, 3, 2), (3, 4, 2))
        for p in (2, 9)
    },
    "epoch, its lower end": Truth(
        Epoch(math.log(4.0), 4),
        either(*(datasets(rr(k, F(4)), 3, partial(epoch, size=2, then=lambda seen, law: law)) for k in (2, 3))), 1, 0.0,
    ),
    **{
        f"groups of {group} of {n}, {k}-RR": Truth(
            ShuffledLDP(EPS0, n, analysis="stronger-clones"), groups(rr(k), n, group), group=group, least=0.0
        )
        for k, n, group in ((2, 3, 2), (2, 4, 2), (2, 4, 3), (3, 3, 2), (3, 4, 3))
    },
    **{
        f"groups of {group}, {base}, twice": Truth(
            BASES[base][1](4), groups(rr(BASES[base][0]), 4, group), 2, group=group, least=0.0
        )
        for base in ("any, 2", "any, 3", "bits", "k-RR") for group in (2, 3)
    },
    **{
        f"null report {null}": Truth(ZeroOut(ShuffledLDP(EPS0, 3)), partial(null_reports, null))
        for null in ((0, 1, 0), (1, 1, 1), (0, 1, 3))
    },
    **{
        f"null report {null} by coins, {rounds}": Truth(
            ZeroOut(PoissonSampled(ShuffledLDP(EPS0, 3), 0.375)), partial(null_reports, null, F(3, 8)), rounds
        )
        for null in ((0, 1, 0), (1, 1, 1)) for rounds in (1, 2)
    },
    **{
        f"budgets {budgets}, {k}-RR, own {p}": Truth(
            MixedRR(k, math.log(p), classes(budgets)), partial(mixed_budgets, k, budgets, F(p)), 1, 0.999, 1.001
        )
        for k, budgets in ((2, (2, 9)), (3, (2, 2, 9)), (3, (4, 4, 4)), (4, (2, 30)), (2, (2, 3, 9, 30)),
                           (3, (30, 2, 5, 5)))
        for p in (3, 12)
    },
    "budgets, twice": Truth(
        MixedRR(3, EPS0, classes((2, 5, 5))), partial(mixed_budgets, 3, (2, 5, 5), P), 2, 0.998, 1.002
    ),
    **{
        f"own randomizers {budgets}, {name}": mixed_randomizers(target(3, F(4)), budgets)
        for budgets in ((2, 6), (3, 3, 9), (2, 5, 9, 9)) for name, target in (("k-RR", rr), ("sloped", sloped))
    },
    **{f"labels of own randomizers, {beta}": mixed_labels(beta) for beta in (F(1, 2), F(3, 5), F(1, 8))},
}  # fmt: skip


# --- counts of bits ---------------------------------------------------------------------------

ONE, ZERO = F(3, 4), F(1, 8)
BITS = [bit(ZERO), bit(ONE)]


def bits(n: int, one: F = ONE, zero: F = ZERO, **more: int) -> CountedBits:
    return CountedBits(n, one_if_one=float(one), one_if_zero=float(zero), **more)


def one_hot_sums(n: int, one: F, zero: F, k: int = 3) -> Iterator[o.Atoms]:
    """All data of the others; a third value's sum says nothing about the target."""
    held = bit(one), bit(zero)
    for old, new in itertools.product(range(n), repeat=2):
        if old + new <= n - 1 if k > 2 else old + new == n - 1:
            others = [[*[held[0]] * count, *[held[1]] * (n - 1 - count)] for count in (old, new)]
            sums = [
                together(*(crowd([mine, *rest]) for mine, rest in zip(order, others, strict=True)))
                for order in (held, held[::-1])
            ]
            yield o.pair_of_views(*sums)


def one_hot(k: int) -> list[Law]:
    """Reports of all bits."""
    reports = list(itertools.product((0, 1), repeat=k))
    return [[math.prod(BITS[j == x][seen] for j, seen in enumerate(report)) for report in reports] for x in range(k)]


def bins_of(laws: Sequence[Law], k: int = 3) -> View:
    """The sums of one-hot bits, of the first k of them."""
    width = len(laws[0]).bit_length() - 1
    found: View = {}
    for counts, mass in crowd(laws).items():
        sums = tuple(sum(c for i, c in enumerate(counts) if i >> width - 1 - j & 1) for j in range(min(k, width)))
        found[sums] = found.get(sums, 0) + mass
    return found


def hidden_bins(laws: Sequence[Law], size: int, rounds: int = 1, k: int = 3) -> View:
    """In one cohort."""
    return drawn(laws, size, lambda some: together(*[bins_of(some, k)] * rounds))


def counted(k: int, n: int) -> Summed:
    return Summed(RAPPOR(k=k, noise=0.0, one_if_zero=float(ZERO), one_if_one=float(ONE)), n)


TRUTHS |= {
    **{
        f"{each} bits of {n}": Truth(bits(n, bits=each), datasets(BITS, n - 1, partial(crowd, each=each)), 1, 0.0)
        for n, each in ((1, 1), (2, 1), (4, 1), (3, 2))
    },
    **{
        f"{each} bits of {n} of {population}": Truth(
            Subsampled(bits(n, bits=each), population=population),
            datasets(BITS, population - 1, cohort(n, each=each)), 1, 0.0,
        )
        for n, population, each in ((2, 4, 1), (2, 3, 2), (3, 6, 1))
    },
    "bits by coins": Truth(
        PoissonSampled(bits(4), 0.25), datasets(BITS, 3, partial(by_coins, presence=F(1, 4))), 1, 0.0
    ),
    "bits and dropouts": Truth(
        Subsampled(bits(2), population=3, dropout=0.5), datasets(BITS, 2, cohort(2, F(1, 2))), 1, 0.0
    ),
    **{
        f"histogram of counts of {n}, {one} and {zero}": Truth(
            Summed(RAPPOR(k=3, noise=0.0, one_if_zero=float(zero), one_if_one=float(one)), n),
            partial(one_hot_sums, n, one, zero), 1, 0.0,
        )
        for n in (1, 3)
        for one, zero in ((ONE, ZERO), (ONE, F(1, 4)), (F(7, 8), ZERO), (F(1, 2), F(1, 16)))
    },
    "histogram of 3 in two bins": Truth(counted(2, 3), partial(one_hot_sums, 3, ONE, ZERO, 2), 1, 0.999, 1.001),
    "histogram of 20 in two bins": Truth(  # others who hold neither of two values would tell more
        Summed(RAPPOR(k=2, noise=0.0, one_if_zero=0.01, one_if_one=0.5), 20),
        partial(one_hot_sums, 20, F(1, 2), F(0.01), 2), 1, 0.999,
    ),
    **{
        f"hidden cohort of {n} of {population}, {k} bins, {rounds} rounds": Truth(
            StickyCohort(counted(k, n), rounds, population=population),
            datasets(one_hot(k), population - 1, partial(hidden_bins, size=n, rounds=rounds)), 1, 0.0,
        )
        for k, n, population, rounds in ((3, 1, 2, 1), (3, 2, 4, 1), (2, 2, 4, 1), (2, 2, 3, 2))
    },
}  # fmt: skip


# --- named randomizers ------------------------------------------------------------------------


def random_randomizer(seed: int) -> tuple[DiscreteRandomizer, int]:
    """Two or three inputs, two to four reports, from mild to strong; and a number of users up to 5."""
    rng = np.random.default_rng(seed)
    inputs, outputs = int(rng.integers(2, 4)), int(rng.integers(2, 5))
    rows = rng.dirichlet(np.full(outputs, rng.choice([0.7, 2.0, 8.0])), size=inputs) + 0.01
    n = int(rng.integers(1, 6))
    return DiscreteRandomizer(rows / rows.sum(axis=1, keepdims=True)), n


def merged(law: Array) -> list[Law]:
    """Reports that no input tells apart are one."""
    alike = np.unique(np.round(law / law.sum(axis=0), 9), axis=1, return_inverse=True)[1]
    return [np.bincount(alike.ravel(), row).tolist() for row in law]


def shuffled(randomizer: Any, n: int, *analyses: str, rounds: int = 1, **more: float) -> Truth:
    asked = tuple(Shuffled(randomizer, n, analysis=a) for a in analyses or ("tightest",))
    return Truth(asked, datasets(merged(law_of(randomizer)), n - 1), rounds, **more)


def geometric(inputs: int) -> DiscreteRandomizer:
    """Truncated geometric noise."""
    x = np.arange(inputs)
    law = np.exp(-0.5 * np.abs(x[:, np.newaxis] - x))
    return DiscreteRandomizer(law / law.sum(axis=1, keepdims=True))


def many_inputs(inputs: int) -> DiscreteRandomizer:
    rows = np.random.default_rng(inputs).dirichlet(np.full(4, 3.0), size=inputs) + 0.02
    return DiscreteRandomizer(rows / rows.sum(axis=1, keepdims=True))


RAPPOR_2 = RAPPOR(k=2, noise=0.3, one_if_zero=0.2, one_if_one=0.9)
TRUTHS |= {
    **{
        f"random randomizer {seed}": shuffled(*random_randomizer(seed), least=0.0) for seed in range(14)
    },
    **{
        f"random randomizer {seed}, other analyses": shuffled(
            *random_randomizer(seed), "blanket", "reduction", "stronger-clones"
        )
        for seed in range(14)
    },
    **{
        f"random randomizer {seed}, twice": shuffled(
            random_randomizer(seed)[0], min(3, random_randomizer(seed)[1]), "blanket", rounds=2
        )
        for seed in (1, 2, 5)
    },
    **{
        f"six users of {one!r}": shuffled(one, 6, least=0.0)
        for one in (
            KRandomizedResponse(k=3, eps0=0.3), UnaryEncoding(k=3, eps0=0.4, variant="optimised"),
            SubsetSelection(k=4, size=2, eps0=0.3), HadamardResponse(k=3, eps0=0.25),
            LocalHashing(k=3, buckets=2, eps0=0.4),
            DiscreteRandomizer([[0.4, 0.35, 0.25], [0.3, 0.45, 0.25], [0.35, 0.35, 0.3]]),
        )
    },
    **{
        f"three users of {one!r}": shuffled(one, 3, "blanket", "reduction")
        for one in (
            KRandomizedResponse(k=4, eps0=1.5), BinaryRandomizedResponse(2.0), RAPPOR_2,
            UnaryEncoding(k=3, eps0=2.0), UnaryEncoding(k=3, eps0=1.0, variant="optimised"),
            SubsetSelection(k=4, size=2, eps0=1.5), HadamardResponse(k=3, eps0=1.5),
            LocalHashing(k=3, buckets=3, eps0=2.0),
            LocalHashing(k=2, buckets=2, eps0=1.0),
        )
    },
    "a report that gives the input away": shuffled(
        DiscreteRandomizer([[0.4, 0.5, 0.1], [0.5, 0.5, 0.0]]), 3, "blanket", most=1.002
    ),
    "truncated geometric noise": shuffled(geometric(6), 4, least=0.0),
    **{f"{k} values": shuffled(many_inputs(k), 2, least=0.0) for k in (6, 12)},
}  # fmt: skip


# --- protocols --------------------------------------------------------------------------------

LOW, HIGH = F(1, 8), F(7, 8)  # RAPPOR's instantaneous step


def rounded(x: Any, cells: int) -> list[tuple[int, Any]]:
    """(integer, probability) of x * cells rounded at random without bias."""
    low = min(math.floor(x * cells), cells - 1)
    return [(low, 1 - (x * cells - low)), (low + 1, x * cells - low)]


def rounded_laws(k: int, gamma: F) -> list[Law]:
    """Values on and off the grid: rounding is a mixture of inputs."""
    rows = [o.rr_law(k + 1, gamma, cell) for cell in range(k + 1)]
    values = map(F, (0.0, 0.2, 0.5, 0.9, 1.0))
    return [mixed(*zip(*((w, rows[c]) for c, w in rounded(x, k)), strict=True)) for x in values]


def unary_bits(bits: int, gamma: F, n: int) -> Iterator[o.Atoms]:
    """All r n messages together are their number of ones; every pair of values, every data of the others."""

    def view(value: int, known: int) -> View:
        return mixture(
            (chance, crowd([bit(1 - gamma / 2)] * (ones + known)
                           + [bit(gamma / 2)] * (n * bits - ones - known)))
            for ones, chance in rounded(F(value, 2 * bits), bits)
        )  # fmt: skip

    for known in range((n - 1) * bits + 1):
        for views in itertools.combinations([view(x, known) for x in range(2 * bits + 1)], 2):
            yield o.pair_of_views(*views)


def bit_laws(randomizer: Any) -> list[Law]:
    return [[F(mass) for mass in row] for row in law_of(randomizer).tolist()]


def joint_reports(value: int, noise: F, rounds: int, memoised: bool) -> View:
    """Joint law of one user's reports of several rounds, two bits each; column number: bit j is bit j of the report."""
    kept = crowd_of_bits(noise / 2, 1 - noise / 2, value)
    step = [crowd_of_bits(LOW, HIGH, filter_) for filter_ in range(4)]
    if memoised:
        return mixture((kept[f], together(*[step[f]] * rounds)) for f in range(4))
    return together(*[mixture((kept[f], step[f]) for f in range(4))] * rounds)


def crowd_of_bits(low: F, high: F, ones: int) -> View:
    """Two bits, each one with chance `high` where `ones` has it; value 0 is the filter 01, value 1 is 10."""
    chance = [high if ones >> j & 1 else low for j in range(2)]
    return {seen: math.prod(p if seen >> j & 1 else 1 - p for j, p in enumerate(chance)) for seen in range(4)}


def collections(values: Sequence[int], noise: F, rounds: int, memoised: bool) -> View:
    """All collections together, each a shuffled one, over all users' reports."""
    users = [joint_reports(1 << x, noise, rounds, memoised) for x in values]
    found: View = {}
    for reports, mass in together(*users).items():
        seen = tuple(tuple(sorted(columns)) for columns in zip(*reports, strict=True))
        found[seen] = found.get(seen, 0) + mass
    return found


def rappor(kind: Any, noise: float, n: int) -> Any:
    steps = RAPPOR(k=2, noise=noise, one_if_zero=float(LOW), one_if_one=float(HIGH))
    return kind(randomizer=steps, n=n)


def rappor_pairs(noise: float, n: int, rounds: int, memoised: bool) -> Iterator[o.Atoms]:
    for others in itertools.combinations_with_replacement((0, 1), n - 1):
        views = [collections([x, *others], F(noise), rounds, memoised) for x in (0, 1)]
        yield o.pair_of_views(*views)


def moves(pairs: Callable[[], Iterable[o.Atoms]], rounds: int) -> Iterator[o.Atoms]:
    """The target's values may move either way in each round."""
    both = [atoms for pair in pairs() for atoms in (pair, [(q, p) for p, q in pair])]
    for chosen in itertools.combinations_with_replacement(both, rounds):
        whole: o.Atoms = [(1, 1)]
        for one in chosen:
            whole = o.product(whole, one)
        yield whole


def zero_sums(n: int, rate: float, shift: int = 0) -> Iterator[o.Atoms]:
    """The number of ones for a sum of 0 and of 1, moved by constant bits."""
    noise = crowd([bit(F(rate))] * n)
    zero, one = ({key[1] + x + shift: mass for key, mass in noise.items()} for x in (0, 1))
    yield o.pair_of_views(one, zero)


def zero_histograms(k: int, rate: float, n: int) -> Iterator[o.Atoms]:
    """k counts, for all data of the others and all moves of the target."""
    noise = crowd([bit(F(rate))] * n)

    def view(values: Sequence[int]) -> View:
        counts = [values.count(j) for j in range(k)]
        return together(*({key[1] + c: mass for key, mass in noise.items()} for c in counts))

    for others in itertools.combinations_with_replacement(range(k), n - 1):
        for x, y in itertools.combinations(range(k), 2):
            yield o.pair_of_views(view([x, *others]), view([y, *others]))


def seen_by(told: int, k: int, gamma: float, n: int) -> Iterator[o.Atoms]:
    """All data of the others, before an adversary who knows more than the shuffled reports."""
    for others in itertools.combinations_with_replacement(range(k), n - 1):
        yield o.pair_of_views(*(o.adversary_view(k, [F(gamma)] * n, [x, *others], told) for x in (0, 1)))


def some_dishonest(laws: Sequence[Law]) -> View:
    """Cohorts of 2 of 4, the last of them dishonest: its place in the cohort is seen, its report known."""
    sizes = ((2, F(1, 2)), (1, F(1, 2)))
    return mixture((chance, together({size: 1}, drawn(laws, size, crowd))) for size, chance in sizes)


HONEST = BinarySum(gamma=0.5, n=2, honest_fraction=0.75)
TRUTHS |= {
    **{
        f"histogram {k, gamma, n}": Truth(
            PrivateHistogram(k=k, gamma=gamma, n=n),
            datasets([o.rr_law(k, F(gamma), x) for x in range(k)], n - 1), 1, 0.0 if k == 2 else None,
        )
        for k, gamma, n in ((2, 0.25, 2), (2, 0.5, 4), (2, 0.8, 5), (3, 0.3, 3), (3, 0.75, 4), (4, 0.5, 1))
    },
    **{
        f"binary sum {gamma, n}, twice": Truth(
            BinarySum(gamma=gamma, n=n), datasets([o.rr_law(2, F(gamma), x) for x in range(2)], n - 1), 2
        )
        for gamma, n in ((0.25, 2), (0.5, 4), (0.8, 5))
    },
    **{  # an adversary's view equals the mechanism
        f"{name} view {k, gamma, n}": Truth(
            ShuffledRR(k, n, gamma=gamma, adversary=name), partial(seen_by, told, k, gamma, n), 1, 0.998, 1.002
        )
        for name, told in (("weak", 1), ("strong", 0))
        for k, gamma, n in ((3, 0.3, 3), (2, 0.75, 2), (3, 0.75, 4), (4, 0.5, 1))
    },
    **{
        f"real sum {k, gamma}": Truth(RealSum(k=k, gamma=gamma, n=3), datasets(rounded_laws(k, F(gamma)), 2))
        for k, gamma in ((1, 0.5), (2, 0.3), (3, 0.6))
    },
    **{
        f"unary sum {r, gamma, n}, {rounds}": Truth(
            UnarySum(bits=r, gamma=gamma, n=n), partial(unary_bits, r, F(gamma), n), rounds
        )
        for r, gamma, n in ((1, 0.5, 3), (2, 0.3, 3), (3, 0.75, 2)) for rounds in (1, 2)
    },
    **{
        f"bit histogram {one!r}": Truth(BitHistogram(randomizer=one, n=3), datasets(bit_laws(one), 2))
        for one in (UnaryEncoding(k=2, eps0=1.5), UnaryEncoding(k=3, eps0=2.0, variant="optimised"), RAPPOR_2)
    },
    **{
        f"collections of RAPPOR {noise, n, rounds}, {kind.__name__}": Truth(
            rappor(kind, noise, n), partial(rappor_pairs, noise, n, rounds, kind is RAPPORHistogram), -rounds
        )
        for noise, n, rounds in ((0.5, 1, 3), (0.75, 2, 2), (0.25, 2, 2), (0.75, 1, 2))
        for kind in (BitHistogram, RAPPORHistogram)
    },
    "fresh RAPPOR, values that change": Truth(
        rappor(BitHistogram, 0.75, 1), partial(moves, partial(rappor_pairs, 0.75, 1, 1, False), 3), -3
    ),
    **{
        f"zero sum {rate, n}": Truth(ZeroSum(rate=rate, n=n), partial(zero_sums, n, rate), 1, 0.998, 1.002)
        for rate, n in ((0.5, 1), (0.75, 3), (0.9, 4), (0.125, 5))
    },
    **{
        f"zero sum {rate, n}, twice, up and down": Truth(
            ZeroSum(rate=rate, n=n), partial(moves, partial(zero_sums, n, rate), 2), -2
        )
        for rate, n in ((0.5, 1), (0.75, 3), (0.9, 4), (0.125, 5))
    },
    **{
        f"zero sums of a histogram {k, rate, n}": Truth(
            ZeroSumHistogram(k=k, rate=rate, n=n), partial(zero_histograms, k, rate, n), 1, 0.998, 1.002
        )
        for k, rate, n in ((2, 0.75, 2), (3, 0.9, 3), (3, 0.25, 2))
    },
    "zero sums of a histogram, twice": Truth(
        ZeroSumHistogram(k=2, rate=0.75, n=2), partial(zero_histograms, 2, 0.75, 2), 2, 0.998, 1.002
    ),
    **{  # two of five users send constant bits: a post-processing
        f"dishonest users who send {shift}": Truth(
            ZeroSum(rate=0.75, n=5, honest_fraction=0.6), partial(zero_sums, 3, 0.75, shift), 1, 0.998, 1.002
        )
        for shift in (0, 4)
    },
    "cohorts with dishonest users": Truth(
        HONEST.on_cohort(4), datasets([o.rr_law(2, F(1, 2), x) for x in range(2)], 2, some_dishonest)
    ),
}  # fmt: skip


# --- sums, thresholds, dummies and steps ----------------------------------------------------------


def binomial_sums(p: F, count: int = 12, sensitivity: int = 1, modulus: int | None = None) -> list[o.Atoms]:
    return o.moved_sums(o.bernoulli(count, p), sensitivity, modulus)


def two_coordinates() -> Iterator[o.Atoms]:
    """Each with noise of its own, all signs of the moves."""
    for one, two in itertools.combinations_with_replacement(binomial_sums(F(1, 4), 4, 2), 2):
        yield o.product(one, two)


def one_norm(most: int) -> Iterator[o.Atoms]:
    """Three coordinates whose moves add up to at most so much, without signs; no move is no pair."""
    for moves in itertools.product(range(-most, most + 1), repeat=3):
        if 0 < sum(map(abs, moves)) <= most:
            law = o.bernoulli(4, F(1, 2))
            views = [{k + step: mass for k, mass in law.items()} for step in moves]
            yield reduce(o.product, (o.pair_of_views(view, law) for view in views))


def bins(rate: F, least: int, dummies: dict[int, Any], released: str, most: int | None = None) -> list[o.Atoms]:
    """A bin with one user more or less, for all counts; by default more of them than the worst."""
    most = most or math.ceil(3 * least / rate) + 4
    views = [o.published(count, rate, least, dummies, released == "bins") for count in range(most + 1)]
    return [o.pair_of_views(*pair) for pair in itertools.pairwise(views)]


def two_bins(least: int, dummies: dict[int, Any], counts: Iterable[int] = range(13)) -> Iterator[o.Atoms]:
    """A user leaves one and enters the other, with a coin of its own in each."""
    pairs = [
        o.pair_of_views(*(o.published(count + more, F(1, 2), least, dummies, False) for more in (0, 1)))
        for count in counts
    ]
    for one, two in itertools.product(pairs, repeat=2):
        yield o.product(one, [(q, p) for p, q in two])


def with_dummies(k: int, n: int, dummies: F, gamma: F) -> Callable[[], Iterator[o.Atoms]]:
    """All messages; the last report is none."""
    more = o.dummy_laws([F(1, k)] * k, n, dummies)
    rows = [[*o.rr_law(k, gamma, x), 0] for x in range(k)]
    return datasets(rows, n - 1, lambda laws: crowd([*laws, *more]))


def with_fakes(k: int, n: int, flip: F) -> Callable[[], Iterator[o.Atoms]]:
    """Vectors of flipped bits, one fake user for each."""
    reports = list(itertools.product((0, 1), repeat=k))

    def vector(value: int | None) -> Law:
        return [math.prod(1 - flip if bit == (j == value) else flip for j, bit in enumerate(one)) for one in reports]

    return datasets([vector(x) for x in range(k)], n - 1, lambda laws: crowd([*laws, *[vector(None)] * n]))


def steps(first: Law, second: Law, number: int, selected: int = 1) -> list[o.Atoms]:
    """A contribution in so many steps, drawn uniformly, or in none."""
    views = (o.allocation_view(own, second, number, selected) for own in (first, second))
    return [o.pair_of_views(*views)]


def ordered(first: Law, second: Law, symmetric: bool = False) -> DiscretePair:
    logs = [[math.log(x) if x else -math.inf for x in law] for law in (first, second)]
    return DiscretePair(*logs, symmetric=symmetric)


STEP = [F(5, 12), F(1, 3), F(1, 4)], [F(1, 6), F(1, 3), F(1, 2)]
BEYOND = [F(0), *STEP[0]], [*STEP[1], F(0)]  # outcomes that only one of the laws has
PLAIN = {  # masses of P and Q, not normalised
    "asymmetric": ((5, 3, 1, 7), (2, 6, 4, 4)), "rare": ((1000, 1, 10), (1000, 10, 1)),
    "infinite both ways": ((5, 0, 3, 8), (4, 1, 0, 11)), "infinite one way": ((5, 3, 0, 8), (4, 6, 5, 1)),
    "randomised response": ((3, 1), (1, 3)), "one loss": ((2, 0), (1, 1)),
}  # fmt: skip


def plain(name: str) -> list[o.Atoms]:
    return [[(F(p, sum(PLAIN[name][0])), F(q, sum(PLAIN[name][1]))) for p, q in zip(*PLAIN[name], strict=True)]]


def amplified(name: str, rate: F) -> Iterator[o.Atoms]:
    """Whoever is present with that chance, against another one for certain, in either order of the values."""
    for way in (1, -1):
        yield [(rate * p + (1 - rate) * q, q) for p, q in (atom[::way] for atom in plain(name)[0])]


NO_DUMMIES: dict[int, Any] = {0: 1}
TRUTHS |= {
    **{  # over rounds the target's values may be exchanged in some of them
        f"plain pair, {name}, {rounds}": Truth(
            ordered(*zip(*plain(name)[0], strict=True), symmetric=True),
            partial(moves, partial(plain, name), rounds), -rounds, *[0.999, 1.001] * (rounds == 1),
        )
        for name in PLAIN for rounds in (1, 3)
    },
    **{
        f"ordered pair, {name}, {rounds}": Truth(
            ordered(*zip(*plain(name)[0], strict=True)), partial(plain, name), rounds, 0.999, 1.001, ordered=True
        )
        for name in PLAIN for rounds in (1, 3)
    },
    **{  # also where only the infinite loss is left
        f"rare cohort of a plain pair, {rate}": Truth(
            Subsampled(ordered(*zip(*plain("infinite both ways")[0], strict=True), symmetric=True), rate=rate,
                       analysis="general"),
            partial(amplified, "infinite both ways", F(rate)), 1, 0.999, 1.001,
        )
        for rate in (1e-6, 1e-3, 0.5)
    },
    **{  # shares of those who drop out or collude are not counted
        f"binomial shares {p}, {more}": Truth(
            SummedNoise(Binomial(3, float(p)), 4, **more),
            partial(
                binomial_sums, p, 12 - 3 * (more.get("dropouts", 0) + more.get("colluding", 0)),
                more.get("sensitivity", 1), more.get("modulus"),
            ),
            1, 0.9999 if p == F(1, 2) else 0.0, 1.0001, rtol=1e-5,
        )
        for p in (F(1, 2), F(1, 4), F(7, 8))
        for more in ({}, {"dropouts": 1, "colluding": 1}, {"sensitivity": 2}, {"sensitivity": 3, "dropouts": 1},
                     {"modulus": 5}, {"modulus": 9, "sensitivity": 2}, {"modulus": 50})
    },
    **{  # of other shares the orders are chosen as rounds go: `ADAPTIVE`
        f"binomial shares, modulo {modulus}, up and down": Truth(
            SummedNoise(Binomial(1, 0.5), 4, modulus=modulus),
            partial(moves, partial(binomial_sums, F(1, 2), 4, 1, modulus), 2), -2, 0.998,
        )
        for modulus in (None, 5, 9)
    },
    "two coordinates": Truth(SummedNoise(Binomial(1, 0.25), 4, sensitivity=2, coordinates=2), two_coordinates, 1, 0.0),
    "one norm of three coordinates": Truth(
        SummedNoise(Binomial(1, 0.5), 4, sensitivity=3, coordinates=3, sensitivity_norm="l1"), partial(one_norm, 3), 1,
        0.9999, 1.0001,
    ),
    "sums of one-hot bits": Truth(
        Summed(RAPPOR(k=3, noise=0.0, one_if_zero=0.25, one_if_one=0.75), 3),
        partial(one_hot_sums, 3, F(3, 4), F(1, 4)), 1, 0.0, 1.2,
    ),
    **{
        f"{released} of {least} or more, {rate}": Truth(
            Threshold(float(rate), least, released=released, neighbours="add-or-remove-one"),
            partial(bins, rate, least, NO_DUMMIES, released), 1, 0.0, 1.0001, rtol=1e-4,
        )
        for released in ("counts", "bins") for least, rate in ((1, F(1, 8)), (2, F(1, 2)), (5, F(1, 2)), (5, F(7, 8)))
    },
    **{  # three senders of one coin each: fewer dummies than the threshold, as many, and more
        f"{released} of {least} or more, {rate}, dummies {p}": Truth(
            Threshold(float(rate), least, Binomial(1, float(p)), 3, released=released, neighbours="zero-out"),
            partial(bins, rate, least, o.bernoulli(3, p), released), 1, 0.0, 1.0001, rtol=1e-4,
        )
        for released in ("counts", "bins")
        for least, rate, p in ((1, F(7, 8), F(3, 4)), (1, F(1), F(1, 2)), (3, F(1, 2), F(3, 4)), (3, F(1), F(3, 4)),
                               (6, F(1, 2), F(3, 4)), (6, F(1), F(3, 4)))
    },
    "geometric dummies": Truth(
        Threshold(0.5, 4, NegativeBinomial(1.0, 0.5), neighbours="add-or-remove-one"),
        partial(bins, F(1, 2), 4, {k: F(1, 2 ** (k + 1)) for k in range(60)}, "counts", 30), 1, 0.0, 1.0001, rtol=1e-4,
    ),
    **{
        f"a user changes bins of {least} or more, {share}": Truth(
            Threshold(0.5, least, share), partial(two_bins, least, o.bernoulli(share.trials if share else 0, F(1, 2))),
            1, 0.0,
        )
        for least in (1, 3) for share in (None, Binomial(2))
    },
    **{  # without random answers the pair is exact
        f"dummies {k, n, float(number)}, {gamma}": Truth(
            DummyReports(k, n, float(number), float(gamma)), with_dummies(k, n, number, gamma), 1,
            None if gamma else 0.0, math.inf if gamma else 1.001, rtol=1e-4,
        )
        for k, n, number in ((2, 2, F(1)), (3, 2, F(2)), (3, 3, F(1)), (2, 3, F(1, 2)), (3, 2, F(5, 4)))
        for gamma in (F(0), F(1, 4))
    },
    "fake users": Truth(FakeUsers(k=3, n=2, fakes=1, flip=0.25), with_fakes(3, 2, F(1, 4))),
    **{
        f"{selected} of {number} steps, {name}": Truth(
            RandomAllocation(ordered(*laws), number, selected), partial(steps, *laws, number, selected), 1, least
        )
        for name, laws, least in (("plain", STEP, 1 - 1e-9), ("infinite both ways", BEYOND, 0.0))
        for number, selected in ((4, 2), (5, 2), (5, 4))
    },
    **{
        f"one of {number} steps {name}": Truth(
            RandomAllocation(ordered(*laws), number), partial(steps, *laws, number), 1, 0.0, 1.0002
        )
        for name, laws in (("forwards", STEP), ("backwards", STEP[::-1]), ("beyond", BEYOND)) for number in (1, 2, 5)
    },
}  # fmt: skip


# --- the suites -------------------------------------------------------------------------------


def one_order(pair: Array, losses: Array = LOSSES) -> Array:
    """H at e^losses of two rows of masses."""
    return np.maximum(0.0, pair[0] - np.exp(losses)[:, np.newaxis] * pair[1]).sum(axis=1)


def divergences(pair: Array, losses: Array = LOSSES) -> Array:
    """The larger of both orders."""
    return np.maximum(one_order(pair, losses), one_order(pair[::-1], losses))


def composed(atoms: o.Atoms, rounds: int) -> Array:
    """Both rows of so many independent views."""
    once = np.array([[float(mass) for mass in atom] for atom in atoms]).T
    whole = once
    for _ in range(rounds - 1):
        whole = np.array([np.outer(*rows).ravel() for rows in zip(whole, once, strict=True)])
    return whole


@cache
def worst(name: str) -> Array:
    """Of all pairs, at every loss. Negative rounds are those that the pairs already have."""
    truth = TRUTHS[name]
    read = one_order if truth.ordered else divergences
    return np.max([read(composed(atoms, max(1, truth.rounds))) for atoms in truth.pairs()], axis=0)


def asked(truth: Truth) -> tuple[Any, ...]:
    return truth.asked if isinstance(truth.asked, tuple) else (truth.asked,)


def profiles(pair: Pair) -> Iterator[Array]:
    """Every proven bound of one round by itself."""
    for part in pair.pairs if isinstance(pair, Several) else (pair,):
        if (known := part.as_profile) is not None:
            yield known.profile(np.expm1(LOSSES), 1e-6, 1e-12).upper


@cache
def answers(name: str) -> list[tuple[Array | None, Array]]:
    """Both ends at every loss, of all that was asked; upper ends alone where lower ones are not compared."""
    truth = TRUTHS[name]
    rounds, found = abs(truth.rounds), []
    for one in asked(truth):
        spent: Any = one
        if not isinstance(one, Mechanism):
            spent = one.accountant(rounds)
        elif truth.least is not None:
            spent = Accountant(truth.rtol).compose(one, rounds)
        if truth.least is None and isinstance(one, Mechanism):  # without the attack of lower ends
            found += [(None, Composition([(one.pair, rounds)], 1e-3).deltas(LOSSES).upper)]
            found += [(None, upper) for upper in profiles(one.pair) if rounds == 1]
        else:
            lower, upper = spent.delta_bounds(LOSSES, group=truth.group)
            found += [(None if truth.least is None else lower, upper)]
    return found


# Honesty, not width: with so few users delta is known to a tenth only near the largest loss.
@pytest.mark.filterwarnings("ignore::pld_shuffle.AccuracyWarning")
@pytest.mark.parametrize("name", TRUTHS)
def test_contains(name: str) -> None:
    for lower, upper in answers(name):
        assert np.all(worst(name) <= upper * (1.0 + 1e-12) + 1e-15)
        assert lower is None or np.all(lower <= worst(name) * (1.0 + 1e-12) + 1e-15)


@pytest.mark.filterwarnings("ignore::pld_shuffle.AccuracyWarning")
@pytest.mark.parametrize("name", [n for n, t in TRUTHS.items() if t.least or t.most < math.inf])
def test_tight(name: str) -> None:
    truth = TRUTHS[name]
    for lower, upper in answers(name):
        assert truth.most == math.inf or np.all(upper <= worst(name) * truth.most + 2e-12)
        assert lower is None or np.all(lower >= worst(name) * (truth.least or 0.0) - 1e-12)


# --- attacks are concrete datasets ------------------------------------------------------------


def equal_others(scheme: str, base: str) -> Iterator[o.Atoms]:
    """All others at one value. The worst that a colluder can do is to stay away."""
    others, view, *_ = SCHEMES[scheme]
    for seen in (view, SCHEMES["cohort"][1]) if scheme == "colluder" else (view,):
        for k in (3, 2) if base == "any, 3" else (BASES[base][0],):
            yield from datasets(rr(k), others, seen, [(x,) * others for x in range(k)])()


def held_bins(k: int, n: int, population: int) -> Iterator[o.Atoms]:
    """Others all hold the target's second value, its first one, or a third, whose sum is not looked at."""
    for held in range(k):
        seen = partial(hidden_bins, size=n, k=k if held < 2 else 2)
        yield from datasets(one_hot(k), population - 1, seen, [(held,) * (population - 1)], (0, 1))()


def two_datasets(law: Array, first: int, second: int, others: int, n: int) -> list[o.Atoms]:
    return [o.shuffled_pair(law[first], law[second], [law[others]] * (n - 1))]


def sticky_attack(mechanism: Mechanism, rounds: int) -> Attacks:
    """Of two of four users, in either order."""
    pair = StickyCohort(mechanism, rounds, population=4).attack_pair
    return Attacks((pair, pair.reverse))


def stuck(rows: Sequence[Law], each: int, rounds: int) -> Iterator[o.Atoms]:
    """Others all at one value; who is drawn reports in all rounds."""
    view = partial(drawn, size=2, view=lambda some: together(*[crowd(some, each)] * rounds))
    return datasets(rows, 3, view, [(x,) * 3 for x in range(len(rows))])()


SOME_COUNTS = (*range(11), 19, 36, 43, 80)  # all that the attacks have
ZEROS = DiscreteRandomizer([[0.7, 0.3, 0.0], [0.0, 0.9, 0.1]])
#: The attacks, pairs of views of which each is one, in some order, the rounds, and how near they are.
ATTACKS: dict[str, tuple[Callable[[], Pair], Callable[[], Iterable[o.Atoms]], int, float]] = {
    **{
        f"{scheme} of {base}": (
            lambda base=base, n=n, wrap=wrap: wrap(BASES[base][1](n)).attack_pair, partial(equal_others, scheme, base),
            2, math.inf,
        )
        for scheme, (_, _, n, wrap) in SCHEMES.items() for base in ("any, 3", "bits", "counts", "k-RR")
    },
    **{
        f"sums of {k} bits, {n} of {population}": (
            lambda k=k, n=n, of=population: counted(k, n).sampled_attack(Cohort(n / of)),
            partial(held_bins, k, n, population), 1, 2e-5,
        )
        for k, n, population in ((3, 2, 4), (2, 2, 4), (3, 1, 2), (3, 3, 3))
    },
    **{
        f"threshold, {name}": (lambda mechanism=mechanism: mechanism.attack_pair, pairs, 1, 1e-6)
        for name, mechanism, pairs in (
            ("two bins", Threshold(0.5, 2), partial(two_bins, 2, NO_DUMMIES, SOME_COUNTS)),
            ("dummies", Threshold(0.5, 3, Binomial(2)), partial(two_bins, 3, o.bernoulli(2, F(1, 2)), SOME_COUNTS)),
            ("one bin", Threshold(0.5, 2, neighbours="add-or-remove-one"),
             partial(bins, F(1, 2), 2, NO_DUMMIES, "counts", 30)),
            ("whether there is one", Threshold(0.5, 3, Binomial(1), 3, "bins", "zero-out"),
             partial(bins, F(1, 2), 3, o.bernoulli(3, F(1, 2)), "bins", 30)),
        )
    },
    **{
        f"sticky cohort, {name}": (
            partial(sticky_attack, mechanism, rounds), partial(stuck, rows, each, rounds), 1, 0.01,
        )
        for name, mechanism, rows, each, rounds in (
            *((f"{k}-RR", Shuffled(KRandomizedResponse(k=k, eps0=EPS0), 2), rr(k), 1, 2) for k in (2, 3)),
            ("uneven bits", bits(2), BITS, 1, 2), ("uneven bits of two", bits(2, bits=2), BITS, 2, 2),
        )
    },
    **{  # infinite losses where masses are 0
        f"{values} of {one!r}, {n}, {rounds}": (
            lambda one=one, n=n, values=values: attack_law(one, n, values).ordered_pair(),
            partial(two_datasets, one.law(), *values, n), rounds, 1e-3,
        )
        for one, n, values, rounds in (
            *((random_randomizer(seed)[0], n, (0, 1, len(random_randomizer(seed)[0].matrix) - 1), rounds)
              for seed, n in ((0, 2), (3, 3), (4, 3)) for rounds in (1, 3)),
            *((ZEROS, n, values, 1) for n in (1, 2, 4) for values in ((0, 1, 0), (1, 0, 0), (1, 0, 1), (0, 1, 1))),
        )
    },
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::pld_shuffle.AccuracyWarning")  # of deltas next to 0
@pytest.mark.parametrize("name", ATTACKS)
def test_attacks_are_datasets(name: str) -> None:
    """Each of them is one order of two concrete ones, neither more nor less, over all rounds."""
    found, pairs, rounds, near = ATTACKS[name]
    laws = [composed(atoms, rounds) for atoms in pairs()]
    truths = [one_order(one) for law in laws for one in (law, law[::-1])]
    attack, met = found(), set()
    attacks = attack.pairs if isinstance(attack, Attacks) else (attack,)
    for one in attacks[:8]:
        ends = Composition([(one, rounds)], min(near, 1e-3)).deltas(LOSSES)
        fits = [
            np.all(ends.lower <= truth * (1 + 1e-9) + 1e-14) and np.all(truth <= ends.upper * (1 + 1e-9) + 1e-14)
            for truth in truths
        ]
        assert any(fits) and (near == math.inf or np.all(ends.upper <= ends.lower * (1 + near) + 1e-9))
        met.add(fits.index(True))
    assert "sums" not in name or len(met) == len(attacks) == min(int(name.split()[2]), 3)
    assert "threshold" not in name or len(attacks) > 8


@pytest.mark.parametrize("scheme", ["coins", "dropouts", "cohort"])
@pytest.mark.parametrize("name", RANDOMIZERS)
def test_attacks_on_any_cohort_are_below(scheme: str, name: str) -> None:
    rows = RANDOMIZERS[name]
    n, given = {"coins": (4, Cohort(1.0, 0.375)), "dropouts": (3, Cohort(0.6, 0.75))}.get(scheme, (3, Cohort(0.6)))
    attack = Shuffled(DiscreteRandomizer(np.array(rows, dtype=float).tolist()), n)
    found = Composition([(attack.sampled_attack(given), 1)], 1e-3).deltas(LOSSES)
    assert np.all(found.lower <= worst(f"{scheme} of {name}") * (1.0 + 1e-12))


REPLACE = "replace-one"


class Adaptive(NamedTuple):
    """Rounds of a mechanism and its pairs, which may be chosen, in either order, by what was published before."""

    rounds: Sequence[tuple[Mechanism, Callable[[], Iterable[o.Atoms]]]]
    most: float = math.inf  # as in `Truth`
    rtol: float = 1e-2


def shares(p: F, clients: int, sensitivity: int = 1, modulus: int | None = None) -> Any:
    mechanism = SummedNoise(Binomial(1, float(p)), clients, sensitivity, modulus=modulus)
    return mechanism, partial(binomial_sums, p, clients, sensitivity, modulus)


def one_bin(clients: int, p: F) -> Any:
    mechanism = Threshold(1.0, 1, Binomial(clients, float(p)), neighbours="zero-out")
    return mechanism, partial(bins, F(1), 1, o.bernoulli(clients, p), "counts", 2)


def sums_of_bits(one: F, zero: F) -> Any:
    randomizer = RAPPOR(k=3, noise=0.0, one_if_zero=float(zero), one_if_one=float(one))
    return Summed(randomizer, 3), partial(one_hot_sums, 3, one, zero)


ADAPTIVE = {  # of bits: test_bits.py
    "thresholds": Adaptive(
        [(Threshold(0.5, 2, neighbours="add-or-remove-one"), partial(bins, F(1, 2), 2, NO_DUMMIES, "counts", 9))] * 2,
        1.001,
        1e-3,
    ),
    "two bins": Adaptive([(Threshold(0.5, 2), partial(two_bins, 2, NO_DUMMIES, range(9)))] * 2),
    **{
        f"one-hot bits, {one} and {zero}": Adaptive([sums_of_bits(one, zero)] * 2, 1.001, 1e-3)
        for one, zero in ((F(3, 4), F(1, 4)), (F(3, 4), F(1, 8)))
    },
    "dummies of one bin": Adaptive([one_bin(8, F(1, 4))] * 2, 1.0002, 1e-4),
    **{
        f"sums {p, clients}, {rounds}": Adaptive([shares(p, clients)] * rounds, 1.0002, 1e-4)
        for p, clients, rounds in ((F(1, 2), 4, 2), (F(1, 4), 4, 2), (F(7, 8), 4, 2), (F(1, 4), 4, 3), (F(1, 4), 6, 2))
    },
    **{
        f"{name}, twice": Adaptive([(truth.asked, truth.pairs)] * 2)
        for name, truth in TRUTHS.items()
        if name.startswith(("bins of", "counts of")) and "dummies" in name
    },
    **{  # who takes part is seen
        f"{base}, visible": Adaptive([(BASES[base][1](3), datasets(rr(2), 2))] * 2)
        for base in ("any, 2", "bits", "counts")
    },
    "sums, others in between": Adaptive([shares(F(1, 4), 3), shares(F(7, 8), 3)] * 2),
    **{f"sums modulo {modulus}": Adaptive([shares(F(1, 4), 4, 1, modulus)] * 2) for modulus in (5, 9)},
    "sums of sensitivity 2": Adaptive([shares(F(1, 4), 4, 2)] * 2),
}


@cache
def best_choices(name: str) -> Array:
    """What the best choice of pairs makes of the rounds, at every loss."""
    # Whoever is added to a count can only raise it: then the order is the same in every round.
    kept = any(getattr(mechanism, "neighbours", REPLACE) != REPLACE for mechanism, _ in ADAPTIVE[name].rounds)
    return chosen([pairs for _, pairs in ADAPTIVE[name].rounds], kept)


def chosen(rounds: Sequence[Callable[[], Iterable[o.Atoms]]], kept: bool = False, losses: Array = LOSSES) -> Array:
    """The largest divergence of rounds whose pairs, and their order unless it is kept, are chosen as one goes."""
    found = []
    for way in (1, -1):
        laws = []  # of each round: (pairs, rows of P and Q, atoms)
        for pairs in rounds:
            some = [composed(atoms, 1)[::way] for atoms in pairs()]
            some += [] if kept else [law[::-1] for law in some]
            longest = max(law.shape[1] for law in some)
            laws.append(np.array([np.pad(law, ((0, 0), (0, longest - law.shape[1]))) for law in some]))
        found.append([best_choice(laws, 1.0, 1.0, math.exp(loss)) for loss in losses])
        if not kept:
            break
    return np.max(found, axis=0)


def best_choice(laws: list[Array], p: float, q: float, s: float) -> float:
    """The largest divergence of all strategies, at an outcome of the rounds before."""
    first, *later = laws
    if not later:
        return float(np.maximum(p * first[:, 0] - s * q * first[:, 1], 0.0).sum(axis=1).max())
    return max(sum(best_choice(later, p * a, q * b, s) for a, b in law.T) for law in first)


@pytest.mark.filterwarnings("ignore::pld_shuffle.AccuracyWarning")
@pytest.mark.parametrize("name", ADAPTIVE)
def test_adaptive_rounds(name: str) -> None:
    spent = Accountant(ADAPTIVE[name].rtol)
    for mechanism, _ in ADAPTIVE[name].rounds:
        spent.compose(mechanism)
    truth, bounds = best_choices(name), spent.delta_bounds(LOSSES)
    assert np.all(bounds.lower <= truth * (1 + 1e-9) + 1e-15)
    assert np.all(truth <= bounds.upper * (1 + 1e-9) + 1e-15)
    assert ADAPTIVE[name].most == math.inf or np.all(bounds.upper <= truth * ADAPTIVE[name].most + 2e-12)


@pytest.mark.filterwarnings("ignore::pld_shuffle.AccuracyWarning")  # few users have few losses
@pytest.mark.parametrize("name", [name for name in ADAPTIVE if name.startswith("one-hot bits")])
def test_each_count_of_one_hot_bits_by_itself(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of many users: both counts' others are chosen at once, or each count's apart; not far above."""
    monkeypatch.setattr(two_counts, "FEW", 0)
    [mechanism, _], *_ = ADAPTIVE[name].rounds
    for rounds, most in ((32, 1.02), (0, 1.35)):
        monkeypatch.setattr(two_counts, "FEW_ROUNDS", rounds)
        truth, bounds = best_choices(name), Accountant(1e-3).compose(replace(mechanism), 2).delta_bounds(LOSSES)
        assert np.all(bounds.lower <= truth * (1 + 1e-9) + 1e-15)
        assert np.all(truth <= bounds.upper * (1 + 1e-9) + 1e-15) and np.all(bounds.upper <= most * truth + 2e-12)


def test_who_chooses_signs_beats_every_fixed_list_of_signs() -> None:
    """So the larger one of two fixed orders would be no bound."""
    fixed = [divergences(composed(atoms, 1)) for atoms in moves(partial(binomial_sums, F(1, 4), 6), 2)]
    assert np.any(best_choices(f"sums {F(1, 4), 6}, 2") > np.max(fixed, axis=0) * 1.001)


def test_what_is_not_enough() -> None:
    """Rates of a cohort with dishonest users, a lifetime of memoised RAPPOR for fresh rounds: below the truth."""
    for rate in (1 / 4, 2 / 4):  # given who is dishonest, it is 2 of 3
        mechanism = Subsampled(HONEST.mechanism, rate=rate, analysis="general")
        loss = np.array([mechanism.pair.max_loss.upper * (1 + 1e-6)])
        pairs = TRUTHS["cohorts with dishonest users"].pairs()
        truth = max(divergences(composed(atoms, 1), loss)[0] for atoms in pairs)
        assert Accountant().compose(mechanism).get_delta(loss[0]) < truth
    lifetime = rappor(RAPPORHistogram, 0.75, 1).accountant(3)
    assert np.any(lifetime.get_delta(LOSSES) < worst("fresh RAPPOR, values that change"))
    colluding = TRUTHS["colluder of 3-RR"].asked[0]
    assert colluding.rate == 3 / 5
    hidden = Subsampled(ShuffledLDP(EPS0, 3), population=6).pair
    assert next(profiles(colluding.pair))[1] > next(profiles(hidden))[1]
