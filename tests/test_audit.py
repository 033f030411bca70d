"""Audits: never above the truth but with the stated probability, and both bugs that people had are found."""

from __future__ import annotations

import json
import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from pld_shuffle import Accountant, AuditError, Shuffled, audit, audit_randomizer
from pld_shuffle.audits import _lower
from pld_shuffle.cli import main
from pld_shuffle.randomizers import BinaryRandomizedResponse, KRandomizedResponse, Laplace, LocalRandomizer

SURE = 1.0 - 1e-3


# --- honesty ---------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0.0, 0.05])
@pytest.mark.parametrize(("runs", "others"), [(12, 12), (30, 7)])
def test_the_bound_fails_as_seldom_as_stated(delta: float, runs: int, others: int) -> None:
    """For every p, q on a grid the chance of a bound above log((p - delta)/q), by all outcomes of two binomials."""
    fail = 0.1
    hits, other_hits = np.meshgrid(np.arange(runs + 1), np.arange(others + 1), indexing="ij")
    found = _lower(hits, runs, other_hits, others, delta, fail)
    worst = 0.0
    for p in np.linspace(0.06, 1.0, 40):
        for q in np.linspace(0.02, 1.0, 40):
            truth = math.log((p - delta) / q)
            chance = np.outer(binom.pmf(np.arange(runs + 1), runs, p), binom.pmf(np.arange(others + 1), others, q))
            worst = max(worst, float(chance[found > truth + 1e-12].sum()))
    assert worst <= fail
    assert worst > 0.02


def reports(randomizer: BinaryRandomizedResponse, n: int, runs: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Numbers of ones of `runs` shuffled rounds: the target holds 1 or 0, all others 0."""
    values = np.zeros((2, runs, n), np.int64)
    values[0, :, 0] = 1
    return list(randomizer.sample(values, rng).sum(axis=2))


def test_a_right_implementation_is_never_rejected() -> None:
    """1,000 trials at 1 - 1e-3: 500 shuffled rounds, 500 local randomizers, against what is exact for them."""
    rng = np.random.default_rng(11)
    randomizer = BinaryRandomizedResponse(2.0)
    proved = Accountant().compose(Shuffled(randomizer, 20)).get_epsilon(0.01)
    rejected = 0
    for _ in range(500):
        found = audit(*reports(randomizer, 20, 400, rng), delta=0.01, confidence=SURE, proved=proved)
        rejected += found.violated
        response = KRandomizedResponse(k=3, eps0=0.7)
        rows = {x: response.sample(np.full(400, x), rng) for x in range(3)}
        rejected += audit_randomizer(rows, response.eps0, confidence=SURE).violated
    assert rejected == 0


def drawn(randomizer: LocalRandomizer, runs: int, rng: np.random.Generator) -> dict[int, np.ndarray]:
    return {x: randomizer.sample(np.full(runs, x), rng) for x in (0, 1)}


def test_chance_rejects_no_more_often_than_stated() -> None:
    """At confidence 1/2, of 400 audits of one bit against its exact epsilon, at most half; and some are near."""
    rng = np.random.default_rng(5)
    response = BinaryRandomizedResponse(1.0)
    found = [audit_randomizer(drawn(response, 2_000, rng), 1.0, confidence=0.5).epsilon for _ in range(400)]
    share = float(np.mean(np.array(found) > 1.0))
    assert share < 0.5 and max(found) > 0.95


# --- what is found ---------------------------------------------------------------------------


def bit_vectors(x: int, right: bool, rng: np.random.Generator) -> np.ndarray:
    """Bit x of eight is 1; every bit is flipped with probability 1/4, the last one only if `right`."""
    bits = np.zeros((100_000, 8), np.int64)
    bits[:, x] = 1
    flipped = rng.random(bits.shape) < 0.25
    flipped[:, 7] &= right
    return bits ^ flipped


def unary(x: int, right: bool, rng: np.random.Generator, eps: float) -> np.ndarray:
    """Four bits as in pure-LDP: all are 1 with probability q, then the true one is set with probability p.

    right : whether it was set to 0 before.
    """
    p = 1.0 / (1.0 + math.exp(-0.5 * eps))
    bits = (rng.random((100_000, 4)) < 1.0 - p).astype(np.int64)
    if right:
        bits[:, x] = 0
    bits[rng.random(len(bits)) < p, x] = 1
    return bits


@pytest.mark.parametrize(("claimed", "send", "inputs", "shares"), [
    (2.0 * math.log(3.0), bit_vectors, (0, 3, 7), (0.9, 3.0)),
    *((eps, partial(unary, eps=eps), (0, 1), (0.8, 0.8)) for eps in (0.5, 1.0, 2.0)),
])  # fmt: skip
def test_bugs_that_people_had(claimed: float, send: Any, inputs: tuple[int, ...], shares: tuple[float, ...]) -> None:
    """opendp#2707, #2708: noise for n - 1 of n bits, zero-extended. Claimed: 2 log((2 - f)/f) at weight 1, f = 1/2.

    pure-LDP#11: the true bit is 1 with probability p + (1 - p) q, not p. Found by Arcolezi and Gambs 2023.
    """
    rng = np.random.default_rng(1)
    for right, share in zip((True, False), shares, strict=True):
        found = audit_randomizer({x: send(x, right, rng) for x in inputs}, claimed, confidence=SURE)
        assert found.violated == (not right)
        assert found.epsilon > share * claimed
    with pytest.raises(AuditError, match="measured epsilon is at least"):
        found.require()


@pytest.mark.parametrize(("right", "weak", "share"), [
    (BinaryRandomizedResponse(1.0), BinaryRandomizedResponse(2.0), 0.95), (Laplace(eps0=1.0), Laplace(eps0=2.0), 0.85),
])  # fmt: skip
def test_most_of_epsilon_is_measured(right: LocalRandomizer, weak: LocalRandomizer, share: float) -> None:
    """Noise is cut at quantiles."""
    found = audit_randomizer(drawn(right, 100_000, np.random.default_rng(5)), 1.0, confidence=SURE)
    assert share < found.epsilon <= found.proved == 1.0
    assert found.require() is found and found.runs == (50_000, 50_000)
    assert audit_randomizer(drawn(weak, 100_000, np.random.default_rng(6)), 1.0).violated


def test_a_shuffler_that_does_not_shuffle() -> None:
    """Reports in order show the first user; their counts do not. Shuffled, both are within what is proved."""
    rng, n = np.random.default_rng(9), 25
    randomizer = KRandomizedResponse(k=4, eps0=2.0)
    values = np.zeros((2, 20_000, n), np.int64)
    values[1, :, 0] = 1
    sent = randomizer.sample(values, rng)
    proved = Shuffled(randomizer, n)
    in_order = audit(*sent, delta=1e-3, proved=proved, confidence=SURE)
    assert in_order.violated and in_order.epsilon > 1.5
    shuffled = audit(*rng.permuted(sent, axis=2), delta=1e-3, proved=proved, confidence=SURE)
    assert not shuffled.violated and shuffled.epsilon > 0.1
    assert shuffled.statistic == "counts"


def test_a_score_of_ones_own() -> None:
    """The sum of two numbers tells what none of them does, nor any sum over columns of their ranges."""
    rng = np.random.default_rng(10)
    hidden = rng.integers(0, 1_000_003, (2, 20_000))
    noise = rng.random((2, 20_000)) < [[0.2], [0.8]]
    rows = np.stack([hidden, (noise - hidden) % 1_000_003], axis=2)
    assert audit(*rows).epsilon == 0.0
    found = audit(*(-(part.sum(axis=1) % 1_000_003) for part in rows))
    assert 1.2 < found.epsilon <= math.log(4.0)


# --- input, files, the command line ----------------------------------------------------------


def test_files_are_arrays(tmp_path: Path) -> None:
    rows = reports(BinaryRandomizedResponse(3.0), 10, 2_000, np.random.default_rng(12))
    np.save(tmp_path / "first.npy", rows[0])
    np.savetxt(tmp_path / "second.csv", rows[1][:, None], delimiter=",", fmt="%d")
    assert audit(tmp_path / "first.npy", str(tmp_path / "second.csv")) == audit(*rows)


def test_equal_outputs_say_nothing() -> None:
    found = audit(np.ones(100), np.ones(100), proved=0.0)
    assert found.epsilon == 0.0 and not found.violated


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    status = main([str(word) for word in words])
    return status, *capsys.readouterr()


def test_the_command_line_refuses_what_was_not_proved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Status 3, the claim or the mechanism next to the measured value; status 0 for the right implementation."""
    rng, files = np.random.default_rng(13), {}
    for eps in (2.0, 5.0):
        for part, rows in zip(("first", "second"), reports(BinaryRandomizedResponse(eps), 20, 4_000, rng), strict=True):
            files[eps, part] = tmp_path / f"{part}{eps}.csv"
            np.savetxt(files[eps, part], rows, fmt="%d")
    what = ("--delta", "1e-3", "--randomizer", "binary-rr", "--eps0", "2", "--n", "20")
    status, shown, _ = run(capsys, "audit", files[2.0, "first"], files[2.0, "second"], *what)
    assert status == 0 and "proved or claimed: at most" in shown
    status, shown, _ = run(capsys, "audit", files[5.0, "first"], files[5.0, "second"], *what, "--json")
    assert status == 3
    found = json.loads(shown)["audit"]
    assert found["violated"] and found["epsilon"] > found["proved"] > 0.0
    status, shown, _ = run(capsys, "audit", files[5.0, "first"], files[5.0, "second"], "--epsilon", 0.1)
    assert status == 3 and "MORE WAS MEASURED" in shown
    status, _, error = run(capsys, "audit", tmp_path / "none.csv", files[5.0, "second"])
    assert status == 2 and "none.csv" in error
    status, _, error = run(capsys, "audit", files[2.0, "first"], files[2.0, "second"], *what, "--epsilon", 1)
    assert status == 2 and "got both" in error
