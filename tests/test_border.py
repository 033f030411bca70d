"""What is refused, and how: an error of the right kind, that names the argument and what is wrong with it.

One table for mechanisms, pairs and profiles. Of the accountant, of logs and fields, of plans and of the command line:
in their own files. Numbers by themselves: test_validation.py.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from test_checkpoint import MECHANISMS, RANDOMIZERS

from pld_shuffle import (
    Accountant,
    AttackRisk,
    CountedBits,
    DiscretePair,
    Epoch,
    Gaussian,
    Laplace,
    Mechanism,
    MixedRandomizers,
    MixedRR,
    PoissonGaussian,
    PoissonSampled,
    RenyiAccountant,
    Shuffled,
    ShuffledLDP,
    ShuffledRandomizer,
    ShuffledRR,
    Side,
    StickyCohort,
    Subsampled,
    ZeroOut,
    shares,
)
from pld_shuffle.composition.renyi import renyi_bounds
from pld_shuffle.mechanisms import DummyReports
from pld_shuffle.mechanisms.imported import ImportedPair
from pld_shuffle.mechanisms.shuffled import Blanket
from pld_shuffle.pairs import swap
from pld_shuffle.pairs.bits import BitShares
from pld_shuffle.pairs.cohort import Cohort
from pld_shuffle.protocols import FakeUsers
from pld_shuffle.randomizers import BinaryRandomizedResponse, DiscreteRandomizer, KRandomizedResponse, noise_laws
from pld_shuffle.randomizers import Gaussian as LocalGaussian

BATCH = ShuffledLDP(1.0, 10)
NAN, INF, HALF = math.nan, math.inf, [0.5, 0.5]
PAIR = DiscretePair(np.log([0.75, 0.25]), np.log([0.25, 0.75]))
ONE_ORDER = DiscretePair(PAIR.log_p, PAIR.log_q, symmetric=False)
RR = KRandomizedResponse(k=4, eps0=2.0)
BLANKET = Shuffled(RR, 10, analysis="blanket")
STUCK = StickyCohort(BATCH, 2, rate=0.5)
SHARES = BitShares.of(0.75, 0.25)
RENYI = RenyiAccountant()
imported = partial(ImportedPair, step=0.1, low=1, masses=(0.2,), infinity=0.0, neighbours="replace-one")
gaussian_groups = partial(noise_laws.gaussian_groups, side=Side.UPPER)
sure = AttackRisk(Accountant())

#: A call, the words of its message (a pattern), and the error.
Row = tuple[Callable[[], Any], str] | tuple[Callable[[], Any], str, type[Exception]]
REFUSED: list[Row] = [
    # Who took part.
    (lambda: StickyCohort(BATCH, 2), "exactly one of population and rate"),
    *((lambda g=g: Subsampled(BATCH, **g), "exactly one of population and rate")
      for g in ({}, {"population": 20, "rate": 0.5})),
    *((lambda g=g: ShuffledRR(3, 10, **g), "exactly one of gamma and eps0")
      for g in ({}, {"gamma": 0.5, "eps0": 1.0})),
    (lambda: StickyCohort(BATCH, 2, population=9), "population must be at least n=10, got 9"),
    (lambda: StickyCohort(BATCH, 0, rate=0.5), "rounds"),
    (lambda: DiscreteRandomizer([[0.5, 0.5], [1.0]]), "matrix must be a number or an array with rows of one length"),
    (lambda: StickyCohort(Subsampled(BATCH, rate=0.5), 2, population=100), "give rate"),
    (lambda: StickyCohort(STUCK, 2, rate=0.5), "one round", TypeError),
    (lambda: Subsampled(STUCK, rate=0.5), "drawn once", TypeError),
    (lambda: Subsampled(Epoch(4.0, 100), rate=0.5), "everybody must take part", TypeError),
    (lambda: PoissonSampled(Gaussian(sigma=1.0), 0.1), "PoissonGaussian.*got Gaussian", TypeError),
    (lambda: PoissonSampled(Laplace(scale=1.0), 0.1), "got Laplace", TypeError),
    (lambda: PoissonSampled(PAIR, 0.1), "got DiscretePair", TypeError),
    (lambda: PoissonSampled(Subsampled(BATCH, rate=0.5), 0.1), "not sampled", TypeError),
    (lambda: PoissonSampled(CountedBits(9, gamma=0.5, bits=2), 0.1), "bits=2", TypeError),
    (lambda: Subsampled(PoissonSampled(BATCH, 0.1), rate=0.5), "not sampled", TypeError),
    *((lambda r=r: PoissonSampled(BATCH, r), "rate") for r in (0.0, 1.5, NAN, 1e-13)),
    *((lambda d=d: Subsampled(BATCH, population=99, dropout=d), "dropout") for d in (1.0, -0.1, NAN)),
    (lambda: Subsampled(BATCH, population=100, colluding=90), "colluding must leave"),
    (lambda: Subsampled(BATCH, rate=0.1, colluding=1), "colluding needs a population"),
    (lambda: Subsampled(BATCH, rate=0.1, dropout=0.1, analysis="general"), "general"),
    (lambda: Subsampled(Laplace(scale=1.0), rate=0.1, dropout=0.1), "need labels or laws", TypeError),
    (lambda: ZeroOut(Subsampled(Gaussian(sigma=2.0), rate=0.1)), "zero-out relation, got .*Gaussian", TypeError),
    (lambda: ZeroOut(StickyCohort(Gaussian(sigma=2.0), 2, rate=0.1)), "zero-out relation, got .*Gaussian", TypeError),
    (lambda: Subsampled(ZeroOut(BATCH), rate=0.5), "inside of ZeroOut", TypeError),
    (lambda: Accountant().compose(ZeroOut(BATCH)).compose(BATCH), "neighbouring relation 'zero-out'"),
    (lambda: DummyReports(3, 10, 0.0), r"dummies must be in .* got 0\.0"),
    (lambda: DummyReports(3, 10, 1.0, 1.0), r"gamma must be in \[0, 1\), got 1\.0"),
    (lambda: FakeUsers(k=3, n=10, fakes=1, flip=0.5), r"flip must be in \(0, 0.5\), got 0\.5"),
    *((lambda q=q: MixedRandomizers(1.0, ((q, 1),)), "ratio") for q in (0.9, INF, NAN)),
    (lambda: MixedRandomizers(1.0, ((2.0, 1),), tv=1.5), "tv must be"),
    (lambda: MixedRandomizers(1.0, "2"), r"pairs \(ratio, count\)", TypeError),
    (lambda: Subsampled(MixedRandomizers(1.0, ((2.0, 1),)), rate=0.5), "mixed randomizers", TypeError),
    (lambda: MixedRR(3, 1.0, {1.0: 2}), "others must be pairs", TypeError),
    (lambda: MixedRR(3, 1.0, ((1.0, 0),)), "count"),
    # Groups.
    (lambda: Accountant().compose(BATCH).get_epsilon(1e-6, group=0), "group"),
    *((lambda a=a: getattr(Accountant().compose(BATCH), a)(1e-6, group=10**90), r"at most 10\*\*13, got 1000")
      for a in ("get_epsilon", "epsilon_bounds", "delta_bounds")),
    (lambda: Accountant().compose(BATCH).get_epsilon(1e-6, group=True), "group", TypeError),
    # Counts of bits.
    *((lambda g=g: CountedBits(10, **g), "give eps0, or gamma, or one_if_one and")
      for g in ({}, {"eps0": 1.0, "gamma": 0.5}, {"one_if_one": 0.5})),
    *((lambda e=e: CountedBits(10, eps0=e), "eps0 must")
      for e in (0.0, -1.0, NAN, 281.0)),
    *((lambda g=g: CountedBits(10, gamma=g), "gamma must")
      for g in (0.0, 1.0, NAN, 1e-140)),
    *((lambda p=p: CountedBits(10, one_if_one=p[0], one_if_zero=p[1]), "one_if_one must")
      for p in ((0.5, 0.5), (1.0, 0.5), (0.5, 0.0), (NAN, 0.5))),
    (lambda: CountedBits(10, gamma="0.5"), "gamma must", TypeError),
    (lambda: CountedBits(0, gamma=0.5), "n must"),
    (lambda: CountedBits(10, gamma=0.5, bits=0), "bits must"),
    *((lambda g=g: CountedBits(10, eps0=1.0).attack_bounds(**g), "give exactly one of delta and epsilon")
      for g in ({}, {"delta": 1e-6, "epsilon": 1.0})),
    (lambda: CountedBits(10, eps0=1.0).attack_bounds(delta=0.1, rounds=0), "rounds"),
    # Named randomizers.
    (lambda: Shuffled(3.0, 10), r"randomizer .*3\.0", TypeError),
    (lambda: Shuffled(RR, 0), "n must be at least 1"),
    (lambda: Shuffled(RR, 10, "best"), "analysis must be one of"),
    (lambda: Shuffled(LocalGaussian(sigma=9.0), 100, "stronger-clones"), "needs pure LDP"),
    (lambda: Shuffled(LocalGaussian(sigma=9.0), 100, "reduction"), "needs pure LDP"),
    (lambda: BLANKET.attack_bounds(), "exactly one of delta"),
    (lambda: Blanket(BinaryRandomizedResponse(400.0), 10), "eps0 of at most 150"),
    (lambda: ShuffledRandomizer(10, tv=1.5, eps0=1.0), r"tv must be in \[0, 1\]"),
    (lambda: ShuffledRandomizer(10, tv=0.5, p=2.0), "either eps0, or p and q"),
    (lambda: ShuffledRandomizer(10, tv=0.5, p=1.0, q=2.0), "p must be in"),
    (lambda: ShuffledRandomizer(10, tv=0.5, p=2.0, q=0.5), "q must be in"),
    # Central noise and plain pairs.
    (lambda: Gaussian(1.0), r"Gaussian\(sigma=\.\.\.\) is central noise; randomizers.Gaussian", TypeError),
    (lambda: Laplace(1.0), r"randomizers.Laplace\(eps0=\.\.\.\) is a local randomizer", TypeError),
    (lambda: Gaussian(sigma=0.0), r"sigma must be positive.*0\.0"),
    (lambda: Gaussian(sigma=1.0, sensitivity=-1.0), r"sensitivity must be positive.*-1\.0"),
    (lambda: Laplace(scale="1"), "scale must be a real number.*'1'", TypeError),
    (lambda: Laplace(scale=1e-4), "scale must be between"),
    (lambda: Subsampled(Gaussian(sigma=1.0), population=10, analysis="general"), "population needs"),
    *((lambda g=g: PoissonGaussian(**{"sigma": 1.0, "rate": 0.1, **g}), next(iter(g))) for g in (
        {"sigma": 0.0}, {"sigma": 1e-4}, {"rate": 0.0}, {"rate": 1e-13}, {"norm": INF})),
    (lambda: DiscretePair([-1.0, -1.0], PAIR.log_q), "log_p must be the logarithms of masses that sum to 1"),
    (lambda: DiscretePair(PAIR.log_p, [0.0]), "log_q must have as many outcomes"),
    (lambda: DiscretePair([0.5, -1.0], [0.0, -INF]), "log_p must hold logarithms"),
    (lambda: DiscretePair(PAIR.log_p, PAIR.log_q, symmetric=1), "symmetric", TypeError),
    (lambda: Subsampled(ONE_ORDER, rate=0.5, analysis="general"), "symmetric pair", TypeError),
    (lambda: Subsampled(PAIR, population=10, analysis="general"), "population needs"),
    *((lambda g=g: imported(**g), next(iter(g))) for g in (
        {"step": 0.0}, {"low": 0}, {"masses": (-0.1,)}, {"masses": (0.8, 0.3)}, {"masses": 0.2},
        {"infinity": 1.5}, {"neighbours": "replace"})),
    # Profiles.
    (lambda: swap.typed_profile([np.array([HALF, HALF, HALF, [0.6, 0.6]])], 10, 0.1), "w must sum"),
    (lambda: Cohort(0.0), "rate"),
    (lambda: BitShares.of(0.25, 0.75), "one must be above zero"),
    (lambda: BitShares.of(1.0, 0.5), "complements must be positive"),
    (lambda: BitShares(0.75, 0.25, 0.25, 0.5, 0.5), "must sum to 1"),
    (lambda: BitShares.randomized_response(0.0), "eps0 must be positive"),
    # Laws of noise.
    (lambda: gaussian_groups(0.02), "must be|needs"),
    (lambda: noise_laws.gaussian_types(0.02, 10), "sigma"),
    (lambda: Shuffled(LocalGaussian(sigma=0.06), 30), r"sigma must be at least 0\.1 .* got 0\.06"),
    # Renyi divergences and risks.
    *((lambda a=a: renyi_bounds(BATCH.pair, a), "alpha must be greater than 1") for a in (1.0, 0.5, NAN, -2.0)),
    (lambda: renyi_bounds(BATCH.pair, [2.0, 1.0]), "alpha must be greater than 1"),
    (lambda: renyi_bounds(BATCH.pair, "2"), "alpha", TypeError),
    (lambda: renyi_bounds(BATCH.pair, 2.0, rtol=0.0), "rtol"),
    (lambda: RENYI.compose(BATCH, 0), "count"),
    (lambda: RENYI.compose(BATCH, True), "count", TypeError),
    *((lambda d=d: RENYI.get_epsilon(d), "delta") for d in (-0.1, 1.5, NAN)),
    *((lambda f=f: sure.true_positive_rate(f), "fpr") for f in (1.5, NAN, -0.1)),
    (lambda: sure.true_positive_rate("0.1"), "fpr", TypeError),
    (lambda: AttackRisk(Accountant(), rtol=0.0), "rtol"),
    (lambda: AttackRisk(0.5), "accountant", TypeError),
    (lambda: AttackRisk(Accountant().compose(ONE_ORDER)).advantage(), "symmetric"),
    (lambda: AttackRisk(Accountant().compose(ONE_ORDER)).true_positive_rate(0.1), "symmetric"),
]  # fmt: skip


@pytest.mark.parametrize("row", REFUSED, ids=[f"{i}: {row[1]}" for i, row in enumerate(REFUSED)])
def test_refused(row: Row) -> None:
    call, words, error = (*row, ValueError)[:3]
    with pytest.raises(error, match=words):
        call()
    assert RENYI.ledger == ()


# --- every argument of everything that is constructed ---------------------------------------------

SHARES_OF_NOISE = [shares.Binomial(3, 0.25), shares.Skellam(1.0), shares.NegativeBinomial(1.0, 0.3)]
SHARES_OF_NOISE += [shares.DiscreteGaussian(1.0), shares.DiscreteLaplace(1.0), shares.Poisson(1.0)]
THINGS = [*MECHANISMS, *RANDOMIZERS, *SHARES_OF_NOISE]
#: What stands for no value of a type.
WRONG: dict[type, tuple[Any, ...]] = {
    bool: (2, "yes", None), int: (-1, 10**400, 1.5, NAN, True, "1", [1]), str: ("no such word", 3), tuple: (3.0,),
    float: (-1.0, NAN, 10**400, True, "1", [1.0], 1j),
}  # fmt: skip


@pytest.mark.parametrize("thing", THINGS, ids=lambda one: type(one).__name__)
def test_every_argument_is_named_where_it_is_wrong(thing: Any) -> None:
    """ValueError for a negative number or an unknown word, TypeError for another type; numbers are shown."""
    names = thing.arguments() if isinstance(thing, Mechanism) else inspect.signature(type(thing)).parameters
    given = {name: getattr(thing, name) for name in names}
    for name, value in given.items():
        for wrong in () if value is None else WRONG.get(type(value), (3.0, "x")):
            with pytest.raises((TypeError, ValueError), match=name) as caught:
                made = type(thing)(**{**given, name: wrong})
                made.total(1)  # shares are checked where they are added up
            number = isinstance(wrong, int | float) and wrong is not True and abs(wrong) < 10
            out_of_range = number and isinstance(value, int | float) and not isinstance(value, bool)
            assert not out_of_range or repr(wrong) in str(caught.value)
            assert caught.type is TypeError or isinstance(wrong, int | float) or isinstance(value, str)
