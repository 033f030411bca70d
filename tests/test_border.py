"""What is refused, and how: an error of the right kind, that names the argument and what is wrong with it.

One table for mechanisms, pairs and profiles. Of the accountant, of logs and fields, of plans and of the command line:
in their own files. At the end numbers by themselves: which double they become.
"""

from __future__ import annotations

import inspect
import json
import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_checkpoint import MECHANISMS, RANDOMIZERS
from test_protocols import PROTOCOLS, RAPPOR_, UNARY

from pld_shuffle import (
    Accountant,
    AttackRisk,
    CountedBits,
    DiscretePair,
    Epoch,
    Gaussian,
    IndividualFilter,
    Laplace,
    Mechanism,
    MixedRandomizers,
    MixedRR,
    PoissonGaussian,
    PoissonSampled,
    PrivacyFilter,
    PrivacyOdometer,
    RandomAllocation,
    RenyiAccountant,
    Shuffled,
    ShuffledBatches,
    ShuffledLDP,
    ShuffledRandomizer,
    ShuffledRR,
    Side,
    StickyCohort,
    Subsampled,
    Summed,
    SummedNoise,
    Threshold,
    UnlikelyWarning,
    ZeroOut,
    audit,
    audit_randomizer,
    bounds,
    randomizers,
    shares,
    solve,
)
from pld_shuffle.cli import main
from pld_shuffle.comparison import compare
from pld_shuffle.composition.renyi import renyi_bounds
from pld_shuffle.fields import mechanism_from_values, values_of
from pld_shuffle.mechanisms import DummyReports
from pld_shuffle.mechanisms.imported import ImportedPair
from pld_shuffle.mechanisms.shuffled import Blanket
from pld_shuffle.numerics import validation
from pld_shuffle.pairs import swap
from pld_shuffle.pairs.bits import BitShares
from pld_shuffle.pairs.pair import Cohort
from pld_shuffle.protocols import (
    BinarySum,
    BitHistogram,
    FakeUsers,
    PrivateHistogram,
    RAPPORHistogram,
    ZeroSum,
    ZeroSumHistogram,
)
from pld_shuffle.randomizers import BinaryRandomizedResponse, DiscreteRandomizer, KRandomizedResponse, noise_laws
from pld_shuffle.randomizers import Gaussian as LocalGaussian
from pld_shuffle.sweeps import sweep
from pld_shuffle.training import Training
from pld_shuffle.trainlog import LogError, training_log
from pld_shuffle.trajectory import epsilon_trajectory

BATCH = ShuffledLDP(1.0, 10)
NAN, INF, HALF = math.nan, math.inf, [0.5, 0.5]
PAIR = DiscretePair(np.log([0.75, 0.25]), np.log([0.25, 0.75]))
ONE_ORDER = DiscretePair(PAIR.log_p, PAIR.log_q, symmetric=False)
RR = KRandomizedResponse(k=4, eps0=2.0)
BLANKET = Shuffled(RR, 10, analysis="blanket")
STUCK = StickyCohort(BATCH, 2, rate=0.5)
NOISE, COIN, ZEROS = Gaussian(sigma=1.0), shares.Binomial(1), [0] * 20
gaussian_groups = partial(noise_laws.gaussian_groups, side=Side.UPPER)

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
    (lambda: Subsampled(BATCH, population=100, colluding=90), "colluding must leave"),
    (lambda: Subsampled(BATCH, rate=0.1, colluding=1), "colluding needs a population"),
    (lambda: Subsampled(BATCH, rate=0.1, dropout=0.1, dropout_limit=0.1), "give one of dropout and dropout_limit"),
    (lambda: Subsampled(BATCH, rate=0.1, dropout_limit=1.0), r"dropout_limit must be in \[0, 1\)"),
    (lambda: Subsampled(CountedBits(9, eps0=1.0, bits=2), rate=0.1, dropout_limit=0.1), "one bit each", TypeError),
    (lambda: Subsampled(BATCH, rate=0.1, dropout=0.1, analysis="general"), "general"),
    (lambda: Subsampled(Laplace(scale=1.0), rate=0.1, dropout=0.1), "need labels or laws", TypeError),
    (lambda: ZeroOut(Subsampled(Gaussian(sigma=2.0), rate=0.1)), "zero-out relation, got .*Gaussian", TypeError),
    (lambda: ZeroOut(StickyCohort(Gaussian(sigma=2.0), 2, rate=0.1)), "zero-out relation, got .*Gaussian", TypeError),
    (lambda: Subsampled(ZeroOut(BATCH), rate=0.5), "inside of ZeroOut", TypeError),
    (lambda: Accountant().compose(ZeroOut(BATCH)).compose(BATCH), "neighbouring relation 'zero-out'"),
    (lambda: DummyReports(3, 10, 1.0, 1.0), r"gamma must be in \[0, 1\), got 1\.0"),
    (lambda: FakeUsers(k=3, n=10, fakes=1, flip=0.5), r"flip must be in \(0, 0.5\), got 0\.5"),
    *((lambda q=q: MixedRandomizers(1.0, ((q, 1),)), "ratio") for q in (0.9, INF, NAN)),
    (lambda: MixedRandomizers(1.0, "2"), r"pairs \(ratio, count\)", TypeError),
    (lambda: Subsampled(MixedRandomizers(1.0, ((2.0, 1),)), rate=0.5), "mixed randomizers", TypeError),
    (lambda: MixedRR(3, 1.0, ((1.0, 0),)), "count"),
    # Groups.
    *((lambda a=a: getattr(Accountant().compose(BATCH), a)(1e-6, group=10**90), r"at most 10\*\*13, got 1000")
      for a in ("get_epsilon", "epsilon_bounds", "delta_bounds")),
    # Counts of bits.
    *((lambda g=g: CountedBits(10, **g), "give eps0, or gamma, or one_if_one and")
      for g in ({}, {"eps0": 1.0, "gamma": 0.5}, {"one_if_one": 0.5})),
    *((lambda e=e: CountedBits(10, eps0=e), "eps0 must")
      for e in (0.0, -1.0, NAN, 281.0)),
    *((lambda p=p: CountedBits(10, one_if_one=p[0], one_if_zero=p[1]), "one_if_one must")
      for p in ((0.5, 0.5), (1.0, 0.5), (0.5, 0.0), (NAN, 0.5))),
    *((lambda g=g: CountedBits(10, eps0=1.0).attack_bounds(**g), "give exactly one of delta and epsilon")
      for g in ({}, {"delta": 1e-6, "epsilon": 1.0})),
    # Named randomizers.
    (lambda: Shuffled(3.0, 10), r"randomizer .*3\.0", TypeError),
    (lambda: Shuffled(LocalGaussian(sigma=9.0), 100, "stronger-clones"), "needs pure LDP"),
    (lambda: Shuffled(LocalGaussian(sigma=9.0), 100, "reduction"), "needs pure LDP"),
    (lambda: BLANKET.attack_bounds(), "exactly one of delta"),
    (lambda: Blanket(BinaryRandomizedResponse(400.0), 10), "eps0 of at most 150"),
    (lambda: ShuffledRandomizer(10, tv=0.5, p=2.0), "either eps0, or p and q"),
    # Comparisons: no published bound covers fewer reports. Filters, protocols, trajectories.
    *((lambda g=g: compare(Subsampled(BATCH, population=20, **g), delta=1e-6), "no dropout and no colluding")
      for g in ({"dropout": 0.5}, {"colluding": 2}, {"dropout_limit": 0.5})),
    (lambda: compare(ShuffledRandomizer(100, p=3.0, q=4.0, tv=0.3), delta=1e-6), "given by its eps0", TypeError),
    (lambda: compare(Shuffled(LocalGaussian(sigma=1.0), 10_000, "blanket"), delta=1e-6), "pure randomizer", TypeError),
    (lambda: PrivacyFilter(1.0, 1e-6, order=1.0), "order must be greater than 1"),
    (lambda: PrivacyFilter(1.0, 1e-6, order=2.0, reserved=[(BATCH, 1)]), "order must be None"),
    (lambda: IndividualFilter([1.0] * 5, 1e-6).compose(BATCH, [1, 1]), "users must be different"),
    (lambda: PrivacyFilter.least_epsilon([], 1e-6), "planned must lose"),
    *((lambda o=o, r=r: bounds.rdp_to_epsilon(orders=o, rdp=r, delta=0.1), w) for o, r, w in (
        ([2, 3], [0.1], "equal length"), ([2.0], [NAN], "rdp"), ([2.0], [10**400], "rdp"))),
    (lambda: BinarySum.from_budget(1.0, 1e-6, 100, honest_fraction=0.001), "no honest user"),
    (lambda: epsilon_trajectory([], 1e-6), "rounds"),
    # Central noise and plain pairs.
    (lambda: randomizers.Laplace(2.0, 3), r"keywords only, got 2.0, 3: randomizers.*\(eps0=.*pld_shuffle.*\(scale=",
     TypeError),
    (lambda: LocalGaussian(2.0, 3), r"only, got 2.0, 3: randomizers.*\(sigma=.*pld_shuffle.*\(sigma=", TypeError),
    *((lambda g=g: randomizers.Laplace(**g), "scale|eps0", TypeError) for g in ({"scale": 2.0}, {})),
    (lambda: Gaussian(1.0), r"Gaussian\(sigma=\.\.\.\) is central noise; randomizers.Gaussian", TypeError),
    (lambda: Laplace(1.0), r"randomizers.Laplace\(eps0=\.\.\.\) is a local randomizer", TypeError),
    (lambda: Subsampled(Gaussian(sigma=1.0), population=10, analysis="general"), "population needs"),
    (lambda: DiscretePair([-1.0, -1.0], PAIR.log_q), "log_p must be the logarithms of masses that sum to 1"),
    (lambda: DiscretePair(PAIR.log_p, [0.0]), "log_q must have as many outcomes"),
    (lambda: DiscretePair([0.5, -1.0], [0.0, -INF]), "log_p must hold logarithms"),
    (lambda: Subsampled(ONE_ORDER, rate=0.5, analysis="general"), "symmetric pair", TypeError),
    (lambda: Subsampled(PAIR, population=10, analysis="general"), "population needs"),
    # What to give instead.
    (lambda: Accountant().compose(randomizers.Laplace(eps0=1.0)),
     r"run is Shuffled\(randomizer, n\), .*pld_shuffle.Laplace", TypeError),
    (lambda: Shuffled(Laplace(scale=1.0), 100), r"randomizers.Laplace\(eps0=\.\.\.\)", TypeError),
    (lambda: Shuffled(Gaussian(sigma=1.0), 100), r"randomizers.Gaussian\(sigma=\.\.\.\)", TypeError),
    (lambda: Shuffled(lambda x: x, 100), r"ShuffledLDP\(eps0, n\), or with its total variation", TypeError),
    (lambda: ShuffledLDP(eps0=1.0, n="10,000"), "n must be an integer, got '10,000'", TypeError),
    (lambda: solve("eps0", {"n": "10,000"}, epsilon=1, delta=1e-6), "digits are not grouped"),
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
    # Sums, thresholds, steps.
    (lambda: SummedNoise(COIN, 10, 11), "sensitivity must be below the 11 values.*got 11"),
    (lambda: SummedNoise(COIN, 10, dropouts=10), "dropouts and colluding.*clients=10.*dropouts=10"),
    (lambda: SummedNoise(COIN, 10, dropouts=5, colluding=5), "got dropouts=5 and colluding=5"),
    (lambda: SummedNoise(COIN, 10, 3, modulus=30), r"modulus must exceed.*= 30.*got 30"),
    (lambda: SummedNoise(COIN, 10, 2, coordinates=4, sensitivity_norm="l2"), "'linf' or 'l1' for several coord.*'l2'"),
    (lambda: SummedNoise(shares.Binomial(1, 0.25), 10, 2, coordinates=4, sensitivity_norm="l1"),
     "sensitivity_norm must be 'linf' for noise that is not symm.*got 'l1'"),
    (lambda: Subsampled(SummedNoise(COIN, 10, neighbours="zero-out"), rate=0.1), "replace-one", TypeError),
    (lambda: shares.DiscreteGaussian(0.01).total(1), r"sigma must be in \[0\.1, 1e\+06\], got 0\.01"),
    (lambda: shares.Poisson(1e15).total(1), r"mean must be in \[1e-12, 1e\+14\], got 1e\+15|1000000000000000"),
    (lambda: shares.Poisson(1e14).total(1), "over the limit of", MemoryError),
    (lambda: Threshold(1.0, 20), r"rate must be below 1 without dummies, got 1\.0"),
    (lambda: Threshold(0.5, 2, shares.DiscreteLaplace(2.0)), "never negative, got DiscreteLaplace", TypeError),
    (lambda: Threshold(0.5, 2, shares.NegativeBinomial(0.1, 0.5), 3), "dummies must have shapes that add up"),
    (lambda: Summed(randomizers.LocalHashing(k=9, buckets=4, eps0=1.0), 9), "one whose reports have a sum", TypeError),
    (lambda: Subsampled(Summed(RR, 10), population=100), "no pair is known for the sum of a hidden cohort", TypeError),
    (lambda: compare(SummedNoise(shares.Skellam(1.0), 50, coordinates=2), delta=1e-6), "must have one coordinate"),
    (lambda: bounds.cpsgd_epsilon(shares=80, trials=1, p=0.5, sensitivity=1, delta=1e-6),
     r"variance of the coins must be at least 370\.7, got 20", bounds.OutOfRange),
    (lambda: bounds.discrete_gaussian_rdp(order=2.0, shares=3, sigma=0.4, sensitivity=1),
     r"sigma must be at least 1/2, got 0\.4", bounds.OutOfRange),
    (lambda: RandomAllocation(NOISE, 10, 11), "selected"),
    (lambda: RandomAllocation(Laplace(scale=1.0), 5, relation="replace-one"), "relation"),
    (lambda: RandomAllocation(BATCH, 5), "mechanism", TypeError),
    (lambda: RandomAllocation(Gaussian(sigma=0.05), 5), "sigma"),
    # Certificates.
    (lambda: Accountant().compose(PoissonGaussian(1.0, 0.1)).certificate(1e-6), "covers PoissonGaussian"),
    (lambda: Accountant().compose(Subsampled(BATCH, rate=0.1, dropout_limit=0.1)).certificate(1e-6), "covers"),
    (lambda: Accountant().compose(Epoch(1.0, 10**4)).certificate(1e-6), "epochs by stronger clones"),
    (lambda: Accountant().compose(BATCH).certificate(0.0), "delta in"),
    (lambda: Accountant().certificate(1e-6), "needs rounds"),
    # Audits.
    (lambda: audit(ZEROS, [0] * 3), "second must have at least 16 runs"),
    (lambda: audit([[0, 1]] * 20, ZEROS), "second must have as many numbers"),
    (lambda: audit([NAN] * 20, ZEROS), "first must be finite"),
    (lambda: audit(["yes"] * 20, ZEROS), "first must be rows of numbers", TypeError),
    (lambda: audit(ZEROS, ZEROS, delta=1.0), "delta must be in"),
    (lambda: audit(ZEROS, ZEROS, confidence=1.0), "confidence"),
    (lambda: audit(ZEROS, ZEROS, proved=-1.0), "proved"),
    (lambda: audit_randomizer(3), "reports must be", TypeError),  # type: ignore[arg-type]
    (lambda: audit_randomizer({0: ZEROS}), "of 2 to 32 inputs"),
    (lambda: audit_randomizer({0: ZEROS, 1: [[1, 2]] * 20}), "of one length"),
    # Matrices, filters, inputs of randomizers.
    *((lambda m=m: DiscreteRandomizer(m), "matrix") for m in (
        [HALF], HALF, [[], []], [[0.5, 0.4], HALF], [[1.5, -0.5], HALF], [[NAN, 0.5], HALF], [[INF, 0.5], HALF])),
    *((lambda m=m: DiscreteRandomizer(m), "matrix", TypeError) for m in (
        [[True, False], [False, True]], [["a", "b"], ["c", "d"]], [[0.5 + 0j, 0.5], HALF], "matrix", None)),
    (lambda: replace(RAPPOR_, noise=0.0, one_if_zero=0.0), "eps0=inf"),
    (lambda: replace(RAPPOR_, noise=0.0).memoised, "eps0"),
    (lambda: RAPPOR_.instantaneous([0, 1, 0, 2], np.random.default_rng(0)), "memoised"),
    *((lambda x=x: RR.joint_law(x), "inputs") for x in ([], [4], [-1], [[0, 1]])),
    (lambda: RR.joint_law([0.5]), "inputs", TypeError),
    (lambda: randomizers.LocalHashing(k=2**25, buckets=3, eps0=1.0).joint_law([0, 1, 2, 3, 4]),
     "at most 4 different ones"),
    # Protocols.
    (lambda: RAPPORHistogram(randomizer=replace(RAPPOR_, noise=0.0), n=3), "noise > 0"),
    (lambda: RAPPORHistogram(randomizer=UNARY, n=3), "randomizer must be a RAPPOR", TypeError),
    (lambda: BitHistogram(randomizer=BinaryRandomizedResponse(1.0), n=3), "randomizer", TypeError),
    *((lambda c=c: PrivateHistogram(k=3, gamma=0.5, n=5).bin_errors(c), "counts")
      for c in ([1, 1], [3, 3, -1], [2, 2, 2])),
    (lambda: ZeroSum(rate=0.5, n=5).expected_error(6), "true_sum"),
    (lambda: ZeroSumHistogram(k=2, rate=0.5, n=1).analyze([0, 1, 1, 3]), "messages must be 2 for every bin"),
    # Renyi divergences and risks.
    (lambda: AttackRisk(Accountant().compose(ONE_ORDER)).advantage(), "symmetric"),
    (lambda: AttackRisk(Accountant().compose(ONE_ORDER)).true_positive_rate(0.1), "symmetric"),
]  # fmt: skip


@pytest.mark.parametrize("row", REFUSED, ids=[f"{i}: {row[1]}" for i, row in enumerate(REFUSED)])
def test_refused(row: Row) -> None:
    call, words, error = (*row, ValueError)[:3]
    with pytest.raises(error, match=words):
        call()


# --- every argument of everything ------------------------------------------------------------------

#: Where one number is as good as an array of them.
F64 = np.float64
WHOLE = (1.5, NAN, True, "1", [1])
#: What stands for no value of a type; nothing here is below 0.
WRONG: dict[type, tuple[Any, ...]] = {
    bool: (2, "yes", None), int: (-1, 10**400, *WHOLE), tuple: (3.0,),
    float: (-1.0, NAN, INF, 10**400, Fraction(10**400), True, "1", [1.0], 1j),
    F64: (-1.0, NAN, 10**400, Fraction(10**400), True, "1", None, BATCH, [0.5, NAN]), str: ("no such word", 3),
}  # fmt: skip
LOCAL = (0, 0.0, -0.0, 701)
OPEN = (0.0, 1.0)
#: Of arguments of a class, or of all that have them: what is no value either.
BEYOND: dict[tuple[type | None, str], tuple[Any, ...]] = {
    (None, "eps0"): LOCAL, (None, "n"): (0,), (ShuffledLDP, "n"): (10**14,), (None, "k"): (0,),
    (None, "rate"): (0.0, 1.5), (None, "tv"): (1.5,),
    (None, "dropout"): (1.0,), (None, "rounds"): (0,), (None, "count"): (0,), (None, "sensitivity"): (0.0,),
    (None, "gamma"): (0.0, 1.1), (None, "bits"): (0,), (None, "scale"): (0.0,), (None, "sigma"): (0.0,),
    (None, "p"): (0.0, 1.0), (None, "clients"): (0,), (None, "least"): (0,), (None, "steps"): (0,),
    (None, "q"): (0.5,), (None, "infinity"): (1.5,), (None, "rtol"): (0.0, 2.0),
    (None, "mechanism"): ("ldp", 0.5), (None, "group"): (0,), (None, "honest_fraction"): (0.0, 1.5),
    (CountedBits, "gamma"): (1.0, 1e-140), (ShuffledRR, "k"): (1,), (KRandomizedResponse, "k"): (1,),
    (Laplace, "scale"): (1e-4,), (PoissonGaussian, "sigma"): (1e-4,),
    (PoissonGaussian, "rate"): (1e-13,), (PoissonSampled, "rate"): (1e-13,),
    (ImportedPair, "step"): (0.0,), (ImportedPair, "low"): (0,), (ImportedPair, "masses"): ((-0.1,), (0.8, 0.3)),
    (ImportedPair, "neighbours"): ("replace",), (randomizers.UnaryEncoding, "k"): (1, 2**24 + 1),
    (randomizers.SubsetSelection, "size"): (0, 10), (randomizers.LocalHashing, "k"): (1, 2**31),
    (randomizers.LocalHashing, "buckets"): (1, 2**31), (randomizers.HadamardResponse, "k"): (1, 2**48 + 1),
    (randomizers.HadamardResponse, "blocks"): (0, 3), (randomizers.RAPPOR, "noise"): (1.0,),
    (randomizers.RAPPOR, "one_if_zero"): (0.75,), (randomizers.RAPPOR, "one_if_one"): (1.1,),
}  # fmt: skip

SHARES_OF_NOISE = [shares.Binomial(3, 0.25), shares.Skellam(1.0), shares.NegativeBinomial(1.0, 0.3)]
SHARES_OF_NOISE += [shares.DiscreteGaussian(1.0), shares.DiscreteLaplace(1.0), shares.Poisson(1.0)]


def made(thing: Any) -> tuple[Callable[..., Any], dict[str, Any], dict[str, Any]]:
    """The constructor of a thing, its arguments, and what they may not be."""
    names = thing.arguments() if isinstance(thing, Mechanism) else inspect.signature(type(thing)).parameters
    # Shares are checked where they are added up.
    call = (lambda **given: type(thing)(**given).total(1)) if thing in SHARES_OF_NOISE else type(thing)
    return call, {name: getattr(thing, name) for name in names}, {n: BEYOND.get((type(thing), n), ()) for n in names}


SPENT = Accountant().compose(BATCH)
LAW = BATCH.pld(step=0.1)
#: A call, good arguments, and of some of them more that is no value.
CALLS: list[tuple[Callable[..., Any], dict[str, Any], dict[str, Any]]] = [
    *map(made, [*MECHANISMS, *RANDOMIZERS, *SHARES_OF_NOISE]),
    (KRandomizedResponse.from_gamma, {"k": 4, "gamma": 0.5}, {"gamma": (1.0,)}),
    (DummyReports, {"k": 3, "n": 10, "dummies": 1.0}, {"dummies": (0.0,)}),
    (ShuffledBatches, {"sigma": 1.0, "batches": 10, "batch_size": 10, "records": 101, "relation": "replace-one"},
     {"sigma": (0.01,), "records": (90,), "batches": (0,)}),
    (Training, {"data_size": 1000, "batch_size": 100, "epochs": 1, "noise_multiplier": 1.0, "sampler": "shuffle",
                "drop_last": True}, {"batch_size": (1001,), "epochs": (0,)}),
    (Accountant, {"rtol": 1e-3}, {}),
    (SPENT.compose, {"mechanism": BATCH, "count": 1}, {}),
    *((ask, {"delta": F64(0.5), "group": 1}, {"delta": (1.1, INF, [0.5, 2.0])})
      for ask in (SPENT.get_epsilon, SPENT.epsilon_bounds)),
    *((ask, {"epsilon": F64(0.5), "group": 1}, {}) for ask in (SPENT.get_delta, SPENT.delta_bounds)),
    (SPENT.gap_bounds, {"delta": F64(0.5)}, {}),
    (CountedBits(10, eps0=1.0).attack_bounds, {"delta": F64(0.1), "rounds": 1}, {}),
    (SPENT.would_exceed, {"mechanism": BATCH, "epsilon": F64(1.0), "delta": 0.5, "count": 1}, {"delta": (1.5,)}),
    (BATCH.pld, {"step": 0.1, "side": Side.UPPER, "truncated_mass": 1e-9}, {"step": (0.0,), "truncated_mass": (0.5,)}),
    (LAW.self_compose, {"count": 1}, {}),
    (LAW.compose, {"other": LAW}, {}),
    (partial(epsilon_trajectory, [(BATCH, 1)]), {"delta": 0.5, "every": 1}, {"delta": (2.0,), "every": (0,)}),
    (compare, {"mechanism": BATCH, "delta": 1e-6, "rounds": 1, "rtol": 1e-3}, {"delta": OPEN}),
    (solve, {"parameter": "rounds", "plan": {"n": 9, "eps0": 1.0}, "epsilon": 1.0, "delta": 1e-6},
     {"parameter": ("k",), "delta": (2.0,)}),
    (partial(sweep, [], delta=0.5), {"rtol": 1e-3, "workers": 1}, {"workers": (0,)}),
    (PrivacyFilter, {"epsilon": 1.0, "delta": 1e-6, "planned": [], "reserved": []},
     {"epsilon": (0.0,), "delta": OPEN, "planned": ([BATCH],), "reserved": ([BATCH],)}),
    (PrivacyFilter.least_epsilon, {"planned": [(BATCH, 1)], "delta": 1e-6}, {"planned": ([BATCH], []), "delta": OPEN}),
    (PrivacyOdometer, {"delta": 1e-6, "orders": F64(2.0)}, {"delta": OPEN, "orders": ([], [0.5], INF)}),
    (PrivacyOdometer.planned, {"planned": [(BATCH, 1)], "delta": 1e-6}, {"planned": ([BATCH],), "delta": OPEN}),
    (IndividualFilter, {"epsilon": [1.0], "delta": 1e-6}, {"epsilon": ([0.0], [NAN], 1.0), "delta": OPEN}),
    (RenyiAccountant().compose, {"mechanism": BATCH, "count": 1}, {}),
    (RenyiAccountant().get_epsilon, {"delta": F64(0.5)}, {"delta": (1.5,)}),
    (bounds.Hoeffding().delta, {"epsilon": 0.5, "eps0": 1.0, "n": 100}, {"epsilon": (0.0,)}),
    (bounds.Bennett().epsilon, {"eps0": 1.0, "delta": 0.1, "n": 100}, {"delta": OPEN}),
    (bounds.Cheu().epsilon, {"eps0": 1.0, "delta": 0.1, "n": 100}, {"delta": OPEN}),
    (bounds.girgis_rdp, {"order": 2, "eps0": 1.0, "cohort": 10, "population": 10, "residue": "theorem"},
     {"order": (1,), "cohort": (0, 11)}),
    (bounds.optimal_composition_epsilon, {"epsilon": 0.1, "delta": 1e-9, "rounds": 10, "total_delta": 0.1},
     {"epsilon": (0.0,), "total_delta": (0.0,)}),
    (bounds.rdp_to_epsilon, {"orders": F64(2.0), "rdp": F64(0.1), "delta": 0.1}, {"orders": ([1.0],), "delta": (0.0,)}),
    (bounds.RRBlanket, {"k": 2}, {}),
    (partial(renyi_bounds, BATCH.pair), {"alpha": F64(2.0), "rtol": 1e-3}, {"alpha": (1.0, 0.5, [2.0, 1.0])}),
    (AttackRisk, {"accountant": Accountant(), "rtol": 1e-3}, {}),
    (AttackRisk(Accountant()).true_positive_rate, {"fpr": F64(0.5)}, {"fpr": (1.5,)}),
    *((maker, {**noise, **({} if "randomizer" in noise else design), "n": 4, "honest_fraction": 1.0},
       dict.fromkeys({"gamma", "rate", "flip"} & noise.keys(), OPEN)) for maker, noise, design in PROTOCOLS.values()),
    *((partial(maker.from_budget, **design),
       {"epsilon": 1.0, "delta": 1e-6, "n": 100, "rounds": 1, "honest_fraction": 1.0},
       {"epsilon": (0.0,), "delta": (0.0, 1.5)}) for maker, _, design in PROTOCOLS.values()),
]  # fmt: skip


@pytest.mark.parametrize(("call", "good", "beyond"), CALLS, ids=lambda value: getattr(value, "__qualname__", ""))
def test_every_argument_is_named_where_it_is_wrong(call: Any, good: Any, beyond: Any) -> None:
    """ValueError for a number out of range or an unknown word, TypeError for another type; numbers are shown."""
    for name, value in good.items():
        more = (*beyond.get(name, ()), *BEYOND.get((None, name), ()))
        for wrong in () if value is None else (*WRONG.get(type(value), (3.0, "x")), *more):
            with pytest.raises((TypeError, ValueError), match=name) as caught:
                call(**{**good, name: wrong})
            number = isinstance(wrong, int | float) and wrong is not True and abs(wrong) < 10
            out_of_range = number and isinstance(value, int | float) and not isinstance(value, bool)
            assert not out_of_range or repr(wrong) in str(caught.value)
            assert caught.type is TypeError or isinstance(wrong, int | float | Fraction | list | tuple | str | None)


# --- values that are allowed and probably not what was meant, and what is said of them ----------------

ROUND = ShuffledLDP(eps0=1.0, n=1000)
COHORT = Subsampled(ROUND, population=10**6)


def said(ask: Callable[[], Any]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UnlikelyWarning)
        ask()
    return [str(warning.message) for warning in caught]


def accountant(mechanism: Any = ROUND, maker: Any = Accountant) -> Any:
    return maker().compose(mechanism, 2)


@pytest.mark.parametrize(("ask", "text"), [
    (lambda: Accountant().get_epsilon(1e-6), "nothing has been composed"),
    (lambda: Accountant().delta_bounds(1.0), "nothing has been composed"),
    (lambda: RenyiAccountant().get_epsilon(1e-6), "nothing has been composed"),
    (lambda: accountant().get_epsilon(1), "every epsilon holds at delta=1"),
    (lambda: accountant(maker=RenyiAccountant).get_epsilon(1.0), "every epsilon holds"),
    (lambda: accountant().epsilon_bounds(1e-3), "delta=0.001 is at least 1/n with n=1,000"),
    (lambda: accountant(COHORT).gap_bounds([0.5, 0.9]), "delta=0.5 is at least 1/n"),
    (lambda: accountant(Gaussian(sigma=2.0)).get_epsilon(0.5), "delta=0.5 is large"),
    (lambda: accountant().get_delta(1e-6), "epsilon=1e-06 is small; was a delta meant?"),
    (lambda: Subsampled(ROUND, rate=1), "one per cent is rate=0.01"),
    (lambda: PoissonSampled(ROUND, 1), "one per cent is rate=0.01"),
    (lambda: mechanism_from_values({"n": 1000, "eps0": 1.0, "rate": 1, "sampling": "poisson"}), "one per cent"),
    (lambda: mechanism_from_values({"n": 1000, "eps0": 1.0, "rate": 1}), "one per cent"),
])  # fmt: skip
def test_a_question_that_was_hardly_meant(ask: Callable[[], Any], text: str) -> None:
    found = said(ask)
    assert len(found) == 1 and text in found[0]


@pytest.mark.parametrize(
    "ask",
    [
        lambda: accountant().get_epsilon(9e-4),
        lambda: accountant().get_epsilon([1e-6, 0.5]),  # a curve
        lambda: accountant(COHORT).epsilon_bounds(1e-4),
        lambda: accountant(Gaussian(sigma=2.0)).get_epsilon(0.05),
        lambda: accountant().get_delta(0.1),
        lambda: accountant().get_delta(0.0),
        lambda: Subsampled(ROUND, rate=1.0, dropout=0.1),
        lambda: Subsampled(ROUND, population=1000),
        lambda: solve("rate", {"n": 1000, "eps0": 1.0}, epsilon=1, delta=1e-6),  # a rate of 1 is the answer
    ],
)
def test_ordinary_questions_are_answered_in_silence(ask: Callable[[], Any]) -> None:
    assert said(ask) == []


@pytest.mark.parametrize(("flags", "text"), [
    ("--eps0 1 --n 100 --delta 1", "every epsilon holds"),
    ("--eps0 1 --n 100 --delta 0.5", "at least 1/n"),
    ("--eps0 1 --n 100 --rate 1 --delta 1e-6", "one per cent"),
])  # fmt: skip
def test_the_command_line_says_it_in_one_line(flags: str, text: str, capsys: Any) -> None:
    assert main(["epsilon", *flags.split(), "--json"]) == 0
    out, err = capsys.readouterr()
    [remark] = json.loads(out)["warnings"]
    assert text in remark and err == f"pld-shuffle: warning: {remark}\n"


def test_numbers_are_accepted_in_the_same_forms_everywhere() -> None:
    """1e6 and 10**6 are one number, as an argument, in a plan and in a log; grouped digits are none anywhere."""
    truth = ShuffledLDP(eps0=1.0, n=10**6)
    forms: list[Any] = [1e6, 1_000_000, np.int64(10**6), np.float64(1e6)]
    for n in forms:
        assert ShuffledLDP(eps0=1.0, n=n) == truth
    for n in [*forms, "1e6", "1000000.0"]:
        assert mechanism_from_values(values_of({"n": n, "eps0": 1}, ("n", "eps0"))) == truth
        assert training_log([{"n": n, "eps0": 1}]).rounds == ((truth, 1),)
    for bad in ("1_000_000", "1,000,000", "1 000 000"):
        with pytest.raises(LogError, match="digits are not grouped"):
            training_log([{"n": bad, "eps0": 1}])


# --- numbers by themselves ---------------------------------------------------------------------------

LOWER, UPPER = Side.LOWER, Side.UPPER


def neighbours(number):
    """The largest double <= number and the smallest >= number, by exact comparison."""
    nearest = Fraction(float(number))
    below = above = float(number)
    if nearest > number:
        below = math.nextafter(below, -math.inf)
    if nearest < number:
        above = math.nextafter(above, math.inf)
    assert Fraction(below) <= number <= Fraction(above)
    return below, above


@given(st.fractions(-(10**30), 10**30) | st.integers(-(10**40), 10**40))
def test_rationals_round_to_the_side_asked_for(number):
    below, above = neighbours(number)
    assert validation.real("x", number, LOWER) == below
    assert validation.real("x", number, UPPER) == above
    if below == above:
        assert validation.real("x", number) == number
    else:  # no double serves both ends of an answer
        with pytest.raises(ValueError, match="x must be a double"):
            validation.real("x", number)


@given(st.floats(allow_nan=False))
def test_doubles_are_never_changed(number):
    for given_ in (number, np.float64(number)):
        for rounding in (None, LOWER, UPPER):
            assert validation.real("x", given_, rounding) == number
            assert validation.real_array("x", [given_], rounding) == [number]


def test_tiny_huge_and_odd_numbers():
    tiny, huge = Fraction(1, 10**400), 2**1024 - 2**970 - 1  # huge rounds to the largest double
    assert validation.real("x", tiny, LOWER) == 0 < validation.real("x", tiny, UPPER) == 5e-324
    assert validation.real("x", huge, UPPER) == math.inf
    assert validation.real("x", huge, LOWER) == np.finfo(float).max
    assert math.isnan(validation.real("x", math.nan, LOWER))
    # numpy compares its own integers with doubles only after rounding them
    odd = 2**53 + 1
    for given_ in (odd, np.int64(odd), np.uint64(odd)):
        assert validation.real("x", given_, LOWER) == 2**53
        assert validation.real("x", given_, UPPER) == 2**53 + 2


@pytest.mark.skipif(np.finfo(np.longdouble).nmant <= 52, reason="longdouble is double here")
def test_longdoubles_round_to_the_side_asked_for():
    third = np.longdouble(1) / 3
    low, high = validation.real("x", third, LOWER), validation.real("x", third, UPPER)
    assert low < third < high == math.nextafter(low, 1)
    assert np.array_equal(validation.real_array("x", [third, 2.0], LOWER), [low, 2.0])
    assert np.array_equal(validation.real_array("x", np.array([[third]]), UPPER), [[high]])


def test_arrays_round_every_entry():
    numbers = [Fraction(1, 3), 2**53 + 1, 0.5]
    low, high = (validation.real_array("x", numbers, LOWER), validation.real_array("x", numbers, UPPER))
    assert all(a == neighbours(Fraction(x))[0] for a, x in zip(low, numbers, strict=True))
    assert all(b == neighbours(Fraction(x))[1] for b, x in zip(high, numbers, strict=True))
    assert validation.real_array("x", [[2**53 + 1]], UPPER).shape == (1, 1)
    assert validation.real_array("x", Fraction(1, 4), LOWER).shape == ()
    assert validation.probabilities("x", [Fraction(1, 3)], UPPER) > Fraction(1, 3)
    assert validation.nonnegatives("x", [Fraction(1, 3)], LOWER) < Fraction(1, 3)
    with pytest.raises(TypeError, match="x must be a real number or an array"):
        validation.real_array("x", [Fraction(1, 4)])  # nearest would be on no side
    for odd in (2**53 + 1, 2**63 - 1):  # numpy makes doubles of larger ones by itself
        with pytest.raises(ValueError, match="x must be a double"):
            validation.real_array("x", [odd, 2])
    assert np.array_equal(validation.real_array("x", [2**53, 2**63]), [2.0**53, 2.0**63])
    assert np.array_equal(validation.real_array("x", np.float32([0.1, math.inf])), np.float32([0.1, math.inf]))


@pytest.mark.parametrize("check", [
    validation.real, validation.positive_float, validation.open_unit, validation.unit_interval,
    validation.tolerance, validation.real_array, validation.probabilities, validation.nonnegatives,
])  # fmt: skip
@pytest.mark.parametrize("bad", [10**400, Fraction(-(10**400)), "1", None, 1j, True, [None]])
def test_what_is_no_double_is_refused_by_name(check, bad):
    with pytest.raises((TypeError, ValueError), match=r"^some_name must be"):
        check("some_name", bad)


@pytest.mark.parametrize("value", [1e4, np.float64(1e4), np.int32(10_000), 10_000])
def test_integral_floats_are_integers(value) -> None:
    found = validation.users("n", value)
    assert found == 10_000 and type(found) is int
    for wrong in (2.5, math.nan, math.inf, True, np.True_, "3", None):
        with pytest.raises(TypeError, match="n must be an integer"):
            validation.users("n", wrong)
