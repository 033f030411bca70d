"""Fields: declared once, of one type, and the same mechanism whichever way they come."""

from __future__ import annotations

import inspect
import io
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pld_shuffle import (
    CountedBits,
    Gaussian,
    Laplace,
    PoissonGaussian,
    PoissonSampled,
    Shuffled,
    ShuffledLDP,
    ShuffledRandomizer,
    ShuffledRR,
    Subsampled,
    Summed,
    SummedNoise,
    Threshold,
    mechanisms,
    randomizers,
    shares,
)
from pld_shuffle.fields import (
    COLUMNS,
    FIELDS,
    MECHANISMS,
    RANDOMIZERS,
    SHARES,
    FieldError,
    Kind,
    mechanism_from_values,
    near_miss,
    values_of,
)
from pld_shuffle.mechanisms.base import SMALLEST_EPS0, SMALLEST_RATE
from pld_shuffle.numerics.validation import MOST_USERS
from pld_shuffle.randomizers.base import EPS0_MAX
from pld_shuffle.trainlog import training_log

R = randomizers

#: Flags of a kind, and what they mean.
EVERY_KIND: list[tuple[str, Any]] = [
    ("n=9 eps0=1.5", ShuffledLDP(1.5, 9)),
    ("mechanism=ldp n=9 eps0=1.5 analysis=clones population=90",
     Subsampled(ShuffledLDP(1.5, 9, "clones"), population=90)),
    ("n=9 eps0=2 rate=0.1 sampling=poisson", PoissonSampled(ShuffledLDP(2.0, 9), 0.1)),
    ("n=9 eps0=2 population=90 dropout=0.1 sampling=fixed",
     Subsampled(ShuffledLDP(2.0, 9), population=90, dropout=0.1)),
    ("n=9 eps0=2 dropout=0.1", Subsampled(ShuffledLDP(2.0, 9), rate=1.0, dropout=0.1)),
    ("mechanism=randomizer n=9 tv=0.5 p=3 q=2 rate=0.1",
     Subsampled(ShuffledRandomizer(9, tv=0.5, p=3.0, q=2.0), rate=0.1)),
    ("mechanism=rr k=3 n=9 gamma=0.5", ShuffledRR(3, 9, gamma=0.5)),
    ("mechanism=rr k=3 n=9 eps0=2 adversary=weak", ShuffledRR(3, 9, eps0=2.0, adversary="weak")),
    ("mechanism=counted-bits n=9 gamma=0.5 bits=2 population=90",
     Subsampled(CountedBits(9, gamma=0.5, bits=2), population=90)),
    ("mechanism=summed n=9 randomizer=unary-encoding k=4 eps0=1 rate=0.5",
     Subsampled(Summed(R.UnaryEncoding(k=4, eps0=1.0), 9), rate=0.5)),
    ("mechanism=summed-noise n=9 share=binomial trials=20 p=0.25 sensitivity=2 dropouts=1 colluding=1 modulus=64"
     " coordinates=2 neighbours=zero-out",
     SummedNoise(shares.Binomial(20, 0.25), 9, 2, 1, 1, 64, 2, "zero-out")),
    ("mechanism=summed-noise n=9 share=skellam variance=2 coordinates=3 sensitivity_norm=l1",
     SummedNoise(shares.Skellam(2.0), 9, coordinates=3, sensitivity_norm="l1")),
    ("mechanism=summed-noise n=9 share=skellam variance=2 population=90",
     Subsampled(SummedNoise(shares.Skellam(2.0), 9), population=90)),
    ("mechanism=summed-noise n=9 share=discrete-gaussian sigma=2", SummedNoise(shares.DiscreteGaussian(2.0), 9)),
    ("mechanism=summed-noise n=9 share=discrete-laplace scale=2", SummedNoise(shares.DiscreteLaplace(2.0), 9)),
    ("mechanism=threshold rate=0.1 least=20", Threshold(0.1, 20)),
    ("mechanism=threshold rate=0.1 least=20 dummies=poisson mean=2 senders=3 released=bins neighbours=zero-out",
     Threshold(0.1, 20, shares.Poisson(2.0), 3, "bins", "zero-out")),
    ("mechanism=threshold rate=1 least=1 dummies=negative-binomial shape=2 p=0.5",
     Threshold(1.0, 1, shares.NegativeBinomial(2.0, 0.5))),
    ("mechanism=gaussian sigma=2", Gaussian(sigma=2.0)),
    ("mechanism=gaussian sigma=2 sensitivity=3 rate=0.5",
     Subsampled(Gaussian(sigma=2.0, sensitivity=3.0), rate=0.5)),
    ("mechanism=laplace scale=2 sensitivity=0.5", Laplace(scale=2.0, sensitivity=0.5)),
    ("mechanism=poisson-gaussian sigma=2 rate=0.1 norm=3", PoissonGaussian(2.0, 0.1, 3.0)),
    ("mechanism=shuffled randomizer=k-rr k=3 eps0=1 n=50 analysis=reduction population=500",
     Subsampled(Shuffled(R.KRandomizedResponse(k=3, eps0=1.0), 50, "reduction"), population=500)),
]  # fmt: skip
NAMED: list[tuple[str, Any]] = [
    ("randomizer=binary-rr eps0=1", R.BinaryRandomizedResponse(eps0=1.0)),
    ("randomizer=k-rr k=5 eps0=1", R.KRandomizedResponse(k=5, eps0=1.0)),
    ("randomizer=unary-encoding k=4 eps0=1", R.UnaryEncoding(k=4, eps0=1.0)),
    ("randomizer=unary-encoding k=4 eps0=1 variant=optimised", R.UnaryEncoding(k=4, eps0=1.0, variant="optimised")),
    ("randomizer=subset-selection k=5 size=2 eps0=1", R.SubsetSelection(k=5, size=2, eps0=1.0)),
    ("randomizer=local-hashing k=5 buckets=3 eps0=1", R.LocalHashing(k=5, buckets=3, eps0=1.0)),
    ("randomizer=hadamard-response k=6 eps0=1", R.HadamardResponse(k=6, eps0=1.0)),
    ("randomizer=rappor k=4 noise=0.5 one_if_zero=0.25 one_if_one=0.75",
     R.RAPPOR(k=4, noise=0.5, one_if_zero=0.25, one_if_one=0.75)),
    ("randomizer=laplace eps0=1", R.Laplace(eps0=1.0)),
    ("randomizer=gaussian sigma=2", R.Gaussian(sigma=2.0)),
]  # fmt: skip
EVERY_KIND += [(f"{flags} n=100", Shuffled(maker, 100)) for flags, maker in NAMED]


def texts_of(flags: str) -> dict[str, str]:
    return dict(flag.split("=") for flag in flags.split())


@pytest.mark.parametrize(("flags", "mechanism"), EVERY_KIND, ids=lambda v: str(v)[:60])
def test_values_and_logs_give_the_same_mechanism(flags: str, mechanism: Any) -> None:
    texts = texts_of(flags)
    assert mechanism_from_values(values_of(texts, COLUMNS)) == mechanism
    log = ",".join(texts) + ",count\n" + ",".join(texts.values()) + ",4\n"
    assert training_log(io.StringIO(log)).rounds == ((mechanism, 4),)


def test_every_kind_is_tried_above() -> None:
    """And every randomizer that can be shuffled has a name; a matrix is no number."""
    tried = {texts_of(flags).get("mechanism", "ldp") for flags, _ in EVERY_KIND}
    assert tried == set(MECHANISMS)
    assert {texts_of(flags)["randomizer"] for flags, _ in NAMED} == set(RANDOMIZERS)
    inner = [texts_of(flags) for flags, _ in EVERY_KIND]
    assert {t.get("share", t.get("dummies")) for t in inner} - {None} == set(SHARES)
    public = {getattr(randomizers, name) for name in randomizers.__all__}
    concrete = {c for c in public if hasattr(c, "sample") and not inspect.isabstract(c)}
    assert {type(one) for _, one in NAMED} == concrete - {randomizers.DiscreteRandomizer}


@pytest.mark.parametrize("kind", [*MECHANISMS.values(), *RANDOMIZERS.values()], ids=lambda k: k.name)
def test_fields_are_the_arguments_of_the_constructor(kind: Kind) -> None:
    """No argument is out of reach, and what may be left out there may be left out here."""
    home: Any = randomizers if kind in RANDOMIZERS.values() else mechanisms
    maker = Shuffled if kind.name == "shuffled" else getattr(home, kind.maker)
    parameters = inspect.signature(maker).parameters
    words = dict(kind.called)
    assert {words.get(name, name) for name in kind.arguments} == set(parameters)
    needed = {n for n, p in parameters.items() if p.default is inspect.Parameter.empty}
    assert {words.get(name, name) for name in kind.required} == needed
    assert set(kind.fields) <= set(COLUMNS)


# --- refusals -------------------------------------------------------------------------------


@pytest.mark.parametrize(("flags", "blamed", "reason"), [
    ("mechanism=shuffled n=9", "randomizer", "required for the mechanism 'shuffled'"),
    ("randomizer=krr n=9", "randomizer", "expected one of binary-rr, k-rr"),
    ("randomizer=k-rr n=9 eps0=1", "k", "required for the randomizer 'k-rr'"),
    ("randomizer=k-rr k=3 eps0=1", "n", "required for the mechanism 'shuffled'"),
    ("randomizer=k-rr n=9 k=3 eps0=1 bits=4", "bits", "no meaning for the randomizer 'k-rr'"),
    (
        "mechanism=ldp randomizer=k-rr n=9 k=3 eps0=1",
        "randomizer",
        "has no meaning for the mechanism 'ldp'",
    ),
    ("randomizer=k-rr n=9 k=1 eps0=1", "k", "1"),
    ("randomizer=laplace n=9 eps0=900", "eps0", "900"),
    ("mechanism=randomizer n=10 eps0=1", "tv", "required"),
    ("mechanism=randomizer n=10 tv=0.5", "eps0", "give exactly one of eps0 and (p, q)"),
    ("mechanism=randomizer n=10 tv=0.5 p=2", "eps0", "got a part"),
    ("mechanism=randomizer n=10 tv=0.5 eps0=1 p=2 q=2", "eps0", "got both"),
    ("mechanism=gaussian n=9 sigma=1", "n", "has no meaning"),
    ("mechanism=gaussian", "sigma", "required"),
    ("mechanism=gaussian sigma=1 population=9", "population", "no meaning"),
    ("mechanism=poisson-gaussian sigma=1", "rate", "required"),
    ("n=9 eps0=1 Rate=0.5", "Rate", "did you mean 'rate'"),
    ("n=9 eps0=2 sampling=poisson", "rate", "required for sampling poisson"),
    ("n=9 eps0=2 sampling=poisson rate=0.1 dropout=0.1", "dropout", "no meaning with sampling poisson"),
    ("n=9 eps0=2 sampling=poisson population=90", "population", "no meaning with sampling poisson"),
    ("n=9 eps0=2 sampling=bernoulli rate=0.1", "sampling", "one of fixed, poisson"),
    ("n=9 eps0=2 rate=0.1 dropout=1", "dropout", "must be in [0, 1)"),
    ("n=9 eps0=x", "eps0", "expected a number, got 'x'"),
])  # fmt: skip
def test_refusals_name_the_field(flags: str, blamed: str, reason: str) -> None:
    with pytest.raises(FieldError, match=re.escape(reason)) as caught:
        mechanism_from_values(values_of(texts_of(flags), COLUMNS))
    assert caught.value.field == blamed
    with pytest.raises(FieldError, match="did you mean 'rate'"):  # by a caller who has not asked `values_of`
        mechanism_from_values({"n": 9, "eps0": 1.0, "Rate": 0.5})


def test_values_have_the_type_of_their_field() -> None:
    given = {"n": np.int64(7), "eps0": np.float32(0.5), "k": 5e3, "rate": " 1e-3 ", "p": None, "q": ""}
    found = values_of(given, COLUMNS)
    assert found == {"n": 7, "eps0": 0.5, "k": 5000, "rate": 1e-3}
    assert [type(value) for value in found.values()] == [int, float, int, float]
    assert values_of({"n": 10**25}, COLUMNS) == {"n": 10**25}
    for value in (True, np.bool_(True), [1], 1j):
        with pytest.raises(TypeError, match="n must be a number or a text"):
            values_of({"n": value}, COLUMNS)
    for name, value in (("n", 1.5), ("n", math.nan), ("n", math.inf), ("adversary", 3), ("N", 3)):
        with pytest.raises(FieldError) as caught:
            values_of({name: value}, COLUMNS)
        assert caught.value.field == name


def test_near_misses() -> None:
    """Every name is its own nearest; a name that is there takes its aliases with it."""
    for name in COLUMNS:
        assert near_miss(name.upper()) == name
    assert near_miss("epsilon") == "eps0" and near_miss("epsilon", taken=["eps0"]) is None
    assert near_miss("counts", taken=["count"]) == "count"


# --- ranges of `solve` -----------------------------------------------------------------------


def test_ranges_are_those_of_the_mechanisms() -> None:
    """The ends of every range are accepted; the constants are the mechanisms' own."""
    ends = {name: (f.range.low, f.range.high) for name, f in FIELDS.items() if f.range is not None}
    assert ends["eps0"] == (SMALLEST_EPS0, EPS0_MAX)
    assert ends["n"] == (1, MOST_USERS)
    assert ends["rate"] == (SMALLEST_RATE, 1.0)
    for low_or_high in (0, 1):
        for name, kind, others in (
            ("eps0", "ldp", {"n": 9}),
            ("n", "ldp", {"eps0": 1.0}),
            ("gamma", "rr", {"n": 9, "k": 2}),
            ("rate", "poisson-gaussian", {"sigma": 1.0}),
            ("rate", "ldp", {"n": 9, "eps0": 1.0}),
            ("sigma", "gaussian", {}),
            ("scale", "laplace", {}),
            ("sigma", "poisson-gaussian", {"rate": 0.1}),
        ):
            mechanism_from_values({"mechanism": kind, name: ends[name][low_or_high], **others})
    for flags, _ in NAMED:
        values = values_of(texts_of(flags), COLUMNS)
        for end in ends["eps0"] if "eps0" in values else ():
            mechanism_from_values({**values, "n": 9, "eps0": end})


# --- for people -----------------------------------------------------------------------------


def test_the_page_is_what_the_table_says() -> None:
    docs = Path(__file__).parent.parent / "docs"
    command = [sys.executable, str(docs / "fields_page.py")]
    environment = os.environ | {"PYTHONPATH": str(docs.parent)}
    written = subprocess.run(command, capture_output=True, check=True, env=environment)
    assert (docs / "fields.md").read_bytes() == written.stdout
