"""Checkpoints: exact round trips, the same doubles after a restart, and clear refusals."""

from __future__ import annotations

import copy
import hashlib
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pld_shuffle
from pld_shuffle import (
    Accountant,
    DiscretePair,
    Gaussian,
    Laplace,
    Mechanism,
    RenyiAccountant,
    Shuffled,
    ShuffledLDP,
    ShuffledRandomizer,
    ShuffledRR,
    Subsampled,
    randomizers,
    shares,
)
from pld_shuffle.checkpoint import CheckpointError, mechanism_from_state, mechanism_state
from pld_shuffle.mechanisms.imported import ImportedPair
from pld_shuffle.mechanisms.shuffled import Blanket
from pld_shuffle.storage import replacing, write_text

SCHEMAS = {
    path.name.split(".")[0]: json.loads(path.read_text())
    for path in (Path(pld_shuffle.__file__).parent / "data").glob("*.schema.json")
}
HALF = (math.log(0.5), math.log(0.5), -math.inf)
SKEW = (math.log(0.3), math.log(0.6), math.log(0.1))

RANDOMIZERS = [
    randomizers.BinaryRandomizedResponse(0.1),
    randomizers.KRandomizedResponse(k=2**60, eps0=1.7),
    randomizers.Gaussian(sigma=0.3),
    randomizers.Laplace(eps0=2.0),
    randomizers.HadamardResponse(k=6, eps0=2.0),
    randomizers.LocalHashing(k=10, buckets=4, eps0=1.0),
    randomizers.RAPPOR(k=5, noise=0.5, one_if_zero=0.25, one_if_one=0.75),
    randomizers.RAPPOR(k=5, noise=0.0, one_if_zero=0.2, one_if_one=0.7),
    randomizers.SubsetSelection(k=10, size=3, eps0=1.0),
    randomizers.UnaryEncoding(k=10, eps0=1.0, variant="optimised"),
    randomizers.DiscreteRandomizer([[0.1, 0.2, 0.7], [1 / 3, 1 / 3, 1 / 3]]),
]

MECHANISMS: list[Mechanism] = [
    ShuffledLDP(eps0=0.1 + 0.2, n=10**13),
    ShuffledLDP(eps0=2.0, n=7, analysis="clones"),
    ShuffledRR(k=4, n=1000, gamma=1 / 3),
    ShuffledRR(k=2**80, n=1000, eps0=1.1, adversary="weak"),
    ShuffledRR(k=3, n=50, eps0=5e-324 + 1e-9, adversary="strong-conditional"),
    ShuffledRandomizer(eps0=1.0, tv=0.3, n=500),
    ShuffledRandomizer(p=3.0, q=4.0, tv=0.3, n=500),
    Subsampled(ShuffledLDP(eps0=3.0, n=100_000), population=2**53 + 1),
    Subsampled(ShuffledRR(k=4, n=1000, gamma=0.25), rate=0.1),
    Gaussian(sigma=0.7, sensitivity=2.0),
    Laplace(scale=1.0 / 3.0),
    Subsampled(Gaussian(sigma=1.0), rate=0.01),
    pld_shuffle.StickyCohort(ShuffledLDP(eps0=3.0, n=100), 50, population=1000),
    pld_shuffle.StickyCohort(Gaussian(sigma=1.0), 5, rate=0.1),
    pld_shuffle.Epoch(eps0=4.0, n=10**6),
    pld_shuffle.RandomAllocation(Gaussian(sigma=1.0), 1000, selected=2),
    pld_shuffle.ShuffledBatches(2.0, 100, 10, 1001),
    pld_shuffle.MixedRR(4, 1.0, ((1.0, 10), (3.0, 5))),
    pld_shuffle.MixedRandomizers(1.0, ((2.0, 10), (3.0, 5)), tv=0.25),
    pld_shuffle.ZeroOut(Subsampled(ShuffledLDP(eps0=3.0, n=100), rate=0.1)),
    Subsampled(ShuffledLDP(3.0, n=100), population=1000, dropout=0.1, colluding=9),
    pld_shuffle.PoissonSampled(ShuffledRR(k=3, n=50, eps0=1.0), rate=1 / 3),
    DiscretePair(HALF, SKEW),
    DiscretePair(SKEW, SKEW, symmetric=False),
    Shuffled(randomizers.KRandomizedResponse(k=4, eps0=2.0), n=1000, analysis="reduction"),
    Subsampled(Blanket(randomizers.Laplace(eps0=2.0), n=100), population=1000),
    pld_shuffle.PoissonGaussian(sigma=1.5, rate=0.01, norm=2.0),
    ImportedPair(step=0.5, low=2, masses=(0.731,), infinity=0.0, neighbours="replace-one"),
    pld_shuffle.CountedBits(100, gamma=0.1, bits=3),
    pld_shuffle.CountedBits(100, one_if_one=0.5, one_if_zero=0.1 + 0.2),
    pld_shuffle.Summed(randomizers.UnaryEncoding(k=5, eps0=1.0 / 3.0), 100),
    pld_shuffle.Threshold(0.1, 20, shares.Poisson(1.0 / 3.0), released="bins"),
    pld_shuffle.SummedNoise(shares.DiscreteGaussian(2.5), 1_000, 3, dropouts=50, modulus=2**20),
    *(Shuffled(randomizer, n=100) for randomizer in RANDOMIZERS),
]


# -- round trips


def test_every_public_mechanism_is_tried_here() -> None:
    """A mechanism that is added to the package must be added to the list above."""
    public = [getattr(pld_shuffle, name) for name in pld_shuffle.__all__]
    kinds = {t for t in public if isinstance(t, type) and issubclass(t, Mechanism)}
    assert kinds - {Mechanism} <= {type(mechanism) for mechanism in MECHANISMS}


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(1e-12, 1.0), min_size=2, max_size=40))
def test_a_normalised_matrix_is_not_normalised_again(weights: list[float]) -> None:
    """The constructor is idempotent, which the round trip needs."""
    total = math.fsum(weights) * (1.0 + 3e-10)
    row = [weight / total for weight in weights]
    once = randomizers.DiscreteRandomizer([row, row[::-1]])
    assert randomizers.DiscreteRandomizer(once.matrix) == once


def test_the_state_is_small_and_readable() -> None:
    """Mechanisms and counts, no arrays, whatever has been asked."""
    acc = Accountant().compose(ShuffledLDP(eps0=1.0, n=1000), 100)
    before = acc.state_dict()
    acc.epsilon_bounds(1e-6)
    arguments = {"eps0": 1.0, "n": 1000, "analysis": "tightest"}
    entry = {"mechanism": {"kind": "ShuffledLDP", "arguments": arguments}, "count": 100}
    head = {"schema": "pld_shuffle/checkpoint/3", "owner": "Accountant", "rtol": 1e-3, "logs": []}
    assert acc.state_dict() == before == head | {"ledger": [entry]}
    local = mechanism_state(Shuffled(randomizers.Gaussian(sigma=0.3), n=100))  # not the central one
    assert local["arguments"]["randomizer"]["kind"] == "randomizers.Gaussian"


# -- a run that is interrupted half way gives the same doubles


def rounds() -> list[Mechanism]:
    """Rounds of different mechanisms."""
    rows: list[Mechanism] = []
    for i in range(4):
        base = ShuffledLDP(eps0=1.0 + i % 3 / 7, n=900 + 37 * i)
        rows.append(Subsampled(base, population=10_000) if i % 2 else base)
    return rows


def continued(acc: Accountant | RenyiAccountant, rows: list[Mechanism]) -> Any:
    for mechanism in rows:
        acc.compose(mechanism)
    return acc


DELTA = 1e-6


def test_resumed_half_way_bit_identical(tmp_path: Path) -> None:
    """In another process too. Answers are compared with ==; a question before the save must not matter."""
    rows, path = rounds(), tmp_path / "run.json"
    straight, first = continued(Accountant(2e-3), rows), continued(Accountant(2e-3), rows[:2])
    first.epsilon_bounds(DELTA)
    first.save(path)
    code = (
        "import sys; sys.path.insert(0, sys.argv[2]); import test_checkpoint as t;"
        "acc = t.continued(t.Accountant.load(sys.argv[1]), t.rounds()[2:]);"
        "print(*(x.hex() for x in acc.epsilon_bounds(t.DELTA)))"
    )
    command = [sys.executable, "-c", code, str(path), str(Path(__file__).parent)]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    resumed = continued(Accountant.load(path), rows[2:])
    assert found.stdout.split() == [x.hex() for x in straight.epsilon_bounds(DELTA)]
    assert resumed.epsilon_bounds(DELTA) == straight.epsilon_bounds(DELTA)
    ends, others = (acc.delta_bounds([0.5, 1.0]) for acc in (resumed, straight))
    assert np.array_equal(ends.lower, others.lower) and np.array_equal(ends.upper, others.upper)


def test_loading_forgets_what_was_asked_of_the_object() -> None:
    """The answers of an object that is loaded into are those of a new one, its caches included."""
    saved = Accountant(1e-4).compose(ShuffledLDP(eps0=2.0, n=3000), 3)
    used = Accountant(0.5).compose(ShuffledLDP(eps0=2.0, n=3000), 3)
    used.epsilon_bounds(1e-3)
    used.load_state_dict(saved.state_dict())
    assert used.rtol == 1e-4 and used == saved
    assert used.epsilon_bounds(DELTA) == saved.epsilon_bounds(DELTA)


def test_renyi_accountant_resumed() -> None:
    rows = rounds()
    half = continued(RenyiAccountant(), rows[:2])
    half.get_epsilon(DELTA)
    resumed = continued(RenyiAccountant.from_json(half.to_json()), rows[2:])
    assert resumed.get_epsilon(DELTA) == continued(RenyiAccountant(), rows).get_epsilon(DELTA)
    assert "rtol" not in half.state_dict()


# -- what identifies a result


def test_checkpoints_say_who_wrote_them_and_follow_their_schema(tmp_path: Path) -> None:
    """Package, version, date, and the hash of the log; the JSON Schema in the package holds for all mechanisms."""
    log = tmp_path / "log.csv"
    log.write_text("n,eps0\n1000,2.0\n")
    acc = Accountant().compose_log(log)
    for mechanism in MECHANISMS:
        if mechanism.relation == "replace-one":
            acc.compose(mechanism, 2)
    state = json.loads(acc.to_json())
    jsonschema.validate(state, SCHEMAS["checkpoint"])
    assert SCHEMAS["checkpoint"]["$id"] == state["schema"]
    digest = hashlib.sha256(log.read_bytes()).hexdigest()
    assert state["logs"] == [{"name": "log.csv", "sha256": digest}]
    assert state["written"]["version"] == pld_shuffle.__version__
    assert datetime.fromisoformat(state["written"]["date"]).utcoffset() == timedelta(0)
    again = Accountant.from_json(json.dumps(state))
    assert again.state_dict() == acc.state_dict() == copy.copy(acc).state_dict()
    assert Accountant().compose_log(log) == Accountant().compose_log([{"n": 1000, "eps0": 2.0}])
    for wrong in ({**state, "ledger": [{"count": 0}]}, {**state, "more": 1}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, SCHEMAS["checkpoint"])


# -- refusals


def nested(depth: int) -> Any:
    state: Any = 1
    for _ in range(depth):
        state = {"kind": "Subsampled", "arguments": {"mechanism": state, "rate": 0.5}}
    return state


OTHER = ImportedPair(step=0.5, low=1, masses=(0.1,), infinity=0.0, neighbours="add-or-remove-one")
LAPLACE = {"kind": "randomizers.Laplace", "arguments": {"eps0": 1.0}}
BAD_RR = mechanism_state(MECHANISMS[8])
BAD_RR["arguments"]["mechanism"]["arguments"]["k"] = 1
GONE: Any = object()

#: A place in the state, what stands there instead, and what is said of it.
REFUSED: list[tuple[str, Any, str]] = [
    ("schema", "pld_shuffle/checkpoint/2", "schema: expected 'pld_shuffle/checkpoint/3', got .*2"),
    ("schema", GONE, "missing field 'schema'"),
    ("schema", nested(10**5), "nested too deeply"),
    ("owner", "RenyiAccountant", "owner: .*Renyi"),
    ("logs", 1, "logs: expected a list"),
    ("logs", [{"name": "a.csv"}], r"logs\[0\]: missing field 'sha256'"),
    ("grid", 1, "unknown field 'grid'"),
    ("rtol", GONE, "missing field 'rtol'"),
    ("rtol", 2.0, "rtol must be in"),
    ("rtol", "0.1", "rtol must be a real number"),
    ("ledger", {}, "ledger: expected a list"),
    ("ledger 1", [1], r"ledger\[1\]: expected a mapping"),
    ("ledger 1 n", 1, r"ledger\[1\]: unknown field 'n'"),
    ("ledger 1 count", GONE, r"ledger\[1\]: missing field 'count'"),
    ("ledger 1 count", 0, r"ledger\[1\]: count must be at least 1"),
    ("ledger 1 count", 2.5, r"\[1\]: count must be an integer"),
    ("ledger 1 mechanism", mechanism_state(ShuffledLDP(1.0, 10)), r"ledger\[1\]: .* comes twice"),
    ("ledger 1 mechanism", mechanism_state(OTHER), r"ledger\[1\]: .* neighbouring relation"),
    ("ledger 1 mechanism", BAD_RR, r"\[1\]\.mechanism\.mechanism \(ShuffledRR\): k must be"),
    ("ledger 1 mechanism arguments population", 10**6, "exactly one of population"),
    ("ledger 0 mechanism", nested(10**5), "nested too deeply"),
    ("ledger 0 mechanism", LAPLACE, r"ledger\[0\]\.mechanism: expected a mechanism"),
    ("ledger 0 mechanism", "LDP", "expected a mechanism"),
    *(
        ("ledger 0 mechanism kind", kind, f"unknown kind {re.escape(repr(kind))}")
        for kind in ("X", "Side", "Mechanism", "__getattr__", [1])
    ),
    ("ledger 0 mechanism arguments", [1], "arguments: expected a mapping"),
    ("ledger 0 mechanism arguments m", 1, r"ledger\[0\].*ShuffledLDP.*'m'"),
    ("ledger 0 mechanism arguments n", GONE, r"ledger\[0\].*ShuffledLDP.*'n'"),
    ("ledger 0 mechanism arguments n", 10.5, "n must be an integer"),
    ("ledger 0 mechanism arguments analysis", GONE, "missing field 'analysis'"),
    ("ledger 0 mechanism arguments eps0", -1.0, "eps0 must be in"),
    ("ledger 0 mechanism arguments eps0", 10**400, r"ledger\[0\].*too large"),
    ("ledger 0 mechanism arguments eps0", math.nan, r"mechanism\.eps0: .* nan"),
    ("ledger 0 mechanism arguments eps0", math.inf, r"mechanism\.eps0: .* inf"),
    ("ledger 0 mechanism arguments eps0", "inf", "eps0 must be in .* got inf"),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_a_state_of_another_form_is_refused_and_nothing_changes(case: int) -> None:
    """The message says where; the object and its answers stay as they were."""
    place, value, message = REFUSED[case]
    whole = Accountant().compose(ShuffledLDP(eps0=1.0, n=10)).compose(MECHANISMS[8], 3).state_dict()
    state: Any = whole
    *path, last = place.split()
    for step in path:
        state = state[int(step) if step.isdigit() else step]
    if value is GONE:
        del state[last]
    else:
        state[int(last) if last.isdigit() else last] = value
    acc = Accountant(0.01).compose(ShuffledLDP(eps0=3.0, n=100), 2)
    before = acc.state_dict()
    with pytest.raises(CheckpointError, match=message):
        acc.load_state_dict(whole)
    assert acc.state_dict() == before and acc.rtol == 0.01


def test_state_must_be_a_mapping_and_text_must_be_json() -> None:
    text = Accountant().compose(ShuffledLDP(eps0=1.0, n=10)).to_json()
    with pytest.raises(CheckpointError, match="expected a mapping"):
        Accountant.from_json("[1]")
    for bad, message in (
        (text[:-3], "not JSON"),
        ("", "not JSON"),
        (text.replace("1.0", "NaN"), "got nan"),
        (text.replace("1.0", "Infinity"), "got inf"),
        (text.replace('"n": 10', '"n": 10, "n": 11'), "'n' comes twice"),
        ("[" * 10**5 + "]" * 10**5, "nested too deeply"),
        ('{"a":' * 10**5 + "1" + "}" * 10**5, "nested too deeply"),
    ):
        with pytest.raises(CheckpointError, match=message):
            Accountant.from_json(bad)
    with pytest.raises(CheckpointError, match="nested too deeply"):
        mechanism_from_state(nested(10**5))
    with pytest.raises(TypeError, match="text must be a str"):
        Accountant.from_json(3)  # type: ignore[arg-type]


class Own(ShuffledLDP):
    """A mechanism the package does not know."""


# -- files


def test_files_are_replaced_in_one_step(tmp_path: Path) -> None:
    """A failure half way keeps the old content and leaves no other file."""
    path = tmp_path / "run.json"
    acc = Accountant().compose(MECHANISMS[0])
    acc.save(path)
    with pytest.raises(CheckpointError, match=r"cannot save .*Own is no public mechanism"):
        Accountant().compose(Own(eps0=1.0, n=10)).save(path)
    with pytest.raises(ZeroDivisionError), replacing(path) as file:
        file.write(b"half")
        1 / 0  # noqa: B018
    assert Accountant.load(path).ledger == acc.ledger
    assert list(tmp_path.iterdir()) == [path]
    write_text(path, "a\r\nü\n")
    assert path.read_bytes() == b"a\r\n\xc3\xbc\n"
    with pytest.raises(ValueError, match="regular file"):
        write_text(tmp_path, "text")
    with pytest.raises(CheckpointError, match="not JSON"):
        path.write_bytes(b"\xff\xfe{}")
        Accountant.load(path)
    with pytest.raises(OSError):
        Accountant.load(tmp_path / "none.json")


# --- What a crash or a full disk leaves behind: the old file or the new one, whole ---

POSIX = pytest.mark.skipif(os.name != "posix", reason="signals and limits of POSIX")

SAVE_FOREVER = """
import sys
from pld_shuffle import Accountant, ShuffledLDP
acc = Accountant()
while True:
    acc = acc.compose(ShuffledLDP(1.0, 100 + acc.rounds % 99))
    acc.save(sys.argv[1])
    print(flush=True)
"""

FULL_DISK = """
import resource, signal, sys
from pld_shuffle import Accountant, ShuffledLDP
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
acc = Accountant()
for n in range(2, 400):
    acc.compose(ShuffledLDP(1.0, n))
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    acc.save(sys.argv[1])
except OSError as error:
    print(error.errno)
"""


def started(script: str, path: Path) -> subprocess.Popen[bytes]:
    environment = dict(os.environ, PYTHONPATH=str(Path(pld_shuffle.__file__).parents[1]))
    command = [sys.executable, "-c", script, str(path)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)


@POSIX
def test_killed_while_saving(tmp_path: Path) -> None:
    """kill -9 at random moments of a loop that does nothing but save."""
    path = tmp_path / "ledger.json"
    rng = random.Random(20)
    for _ in range(3):
        path.unlink(missing_ok=True)
        process = started(SAVE_FOREVER, path)
        assert process.stdout is not None
        for _ in range(rng.randint(1, 60)):
            process.stdout.readline()  # after each save
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        process.communicate()
        assert Accountant.load(path).rounds > 0


@POSIX
def test_no_room_for_a_file(tmp_path: Path) -> None:
    """A limit on the size of files stands for a full disk: the write fails half way. What was there stays."""
    path = tmp_path / "ledger.json"
    acc = Accountant().compose(ShuffledLDP(1.0, 10))
    acc.save(path)
    process = started(FULL_DISK, path)
    output, _ = process.communicate()
    assert process.returncode == 0 and len(output.split()) == 1  # refused, by an OSError
    assert Accountant.load(path).ledger == acc.ledger
    assert list(tmp_path.iterdir()) == [path]  # no half of a file
