"""Certificates: what the checker proves is true, what the package writes is proved, and nothing else is accepted.

Truths are sums over all counts, in rationals, of the protocols themselves; they share no code with either program.
"""

from __future__ import annotations

import ast
import itertools
import json
import math
import os
import random
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import oracles
import pytest
import reference
from test_honesty import composed_of
from test_truths import cohort, datasets, rr

pytest.importorskip("flint")

import pld_shuffle_check as checker
from flint import arb, ctx

from pld_shuffle import (
    Accountant,
    Epoch,
    Gaussian,
    Laplace,
    PoissonSampled,
    ShuffledLDP,
    ShuffledRandomizer,
    ShuffledRR,
    Subsampled,
)
from pld_shuffle.certificate import certificate
from pld_shuffle.cli import main
from pld_shuffle.report import registry_entry

#: An hour of ledgers and forgeries instead of minutes.
FULL = "PLD_SHUFFLE_FULL" in os.environ
EACH = 125 if FULL else 6  # by these, every one of the checks rejects some

Ledger = list[tuple[Any, int]]
FILE = Path(checker.__file__)


@pytest.fixture(autouse=True)
def precision() -> Iterator[None]:
    before, ctx.prec = ctx.prec, checker.PRECISION
    yield
    ctx.prec = before


def certified(ledger: Ledger, delta: float) -> tuple[Accountant, str]:
    accountant = composed_of(ledger)
    return accountant, accountant.certificate(delta)


def proved(text: str) -> bool:
    """Whether the checker accepts a text; whatever it is given, it says so or raises Rejected."""
    try:
        checker.verify(text)
    except checker.Rejected:
        return False
    return True


# --- what is written is proved ---------------------------------------------------------------------

KINDS_OF_LEDGERS: dict[str, tuple[Ledger, float]] = {
    "noise": ([(Gaussian(sigma=10.0), 60), (Gaussian(sigma=5.0, sensitivity=0.5), 9)], 1e-6),
    "clones": ([(ShuffledLDP(2.0, 1_000, analysis="clones"), 5)], 1e-5),
    "k-RR": ([(ShuffledRR(5, 700, gamma=0.3), 20), (Laplace(scale=30.0), 4)], 1e-4),
    "conditional": ([(ShuffledRR(3, 500, eps0=1.0, adversary="strong-conditional"), 2)], 1e-5),
    "reduction": ([(ShuffledRandomizer(800, eps0=2.0, tv=0.4), 3), (Epoch(3.0, 10**5, "stronger-clones"), 2)], 1e-7),
    "p and q": ([(ShuffledRandomizer(301, p=3.0, q=2.5, tv=0.3), 2)], 1e-6),
    "cohort": ([(Subsampled(ShuffledLDP(5.0, 800), population=10**5, dropout=0.1), 300)], 1e-6),
    "colluding": ([(Subsampled(ShuffledLDP(1.0, 400), population=900, colluding=90), 6)], 1e-5),
    "general": ([(Subsampled(ShuffledRR(4, 300, eps0=2.0), rate=0.1, analysis="general"), 9)], 1e-6),
    "central sample": ([(Subsampled(Gaussian(sigma=3.0), rate=0.2), 25)], 1e-6),
    "independent": ([(PoissonSampled(ShuffledRR(4, 5_000, eps0=3.0), rate=0.1), 7)], 1e-6),
    "pure": ([(ShuffledLDP(1.0, 2, analysis="stronger-clones"), 3)], 1e-9),
    "swap": ([(ShuffledLDP(0.7, 2_001), 2)], 1e-4),
    "sizes": ([(Subsampled(ShuffledLDP(5.0, n), population=10**5), 20) for n in range(800, 812)], 1e-6),
    "next to the largest loss": (
        [(Laplace(scale=3.0), 3), (Subsampled(ShuffledLDP(5.0, 10**6), population=2 * 10**7), 80)], 1e-9,
    ),
    "far": ([(ShuffledLDP(2.0, 10**4, analysis="stronger-clones"), 50)], 1e-40),
}  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name == "swap" else []) for name in KINDS_OF_LEDGERS]
)
def test_answers_are_proved(name: str) -> None:
    """The claim is at least the accountant's lower end (it is true), near the answer, and accepted."""
    ledger, delta = KINDS_OF_LEDGERS[name]
    accountant, text = certified(ledger, delta)
    claim = json.loads(text)["claim"]
    bounds = accountant.epsilon_bounds(delta)
    assert claim["answer"] == bounds.upper and claim["delta"] == delta
    assert bounds.lower <= claim["epsilon"] <= 1.01 * bounds.upper
    assert checker.verify(text).startswith(f"epsilon <= {claim['epsilon']!r} at delta = {delta!r}")


def random_mechanism(draw: np.random.Generator) -> Any:
    n, eps0 = int(10 ** draw.uniform(2, 6)), round(float(draw.uniform(0.3, 6.0)), 3)
    alphabet = int(draw.integers(2, 20))
    return [
        lambda: ShuffledLDP(eps0, n),
        lambda: ShuffledLDP(eps0, n, analysis=str(draw.choice(["stronger-clones", "clones"]))),
        lambda: ShuffledRR(alphabet, n, eps0=eps0, adversary=str(draw.choice(["weak", "strong"]))),
        lambda: ShuffledRandomizer(n, eps0=eps0, tv=round(float(draw.uniform(0.1, 1.0)), 3)),
        lambda: Gaussian(sigma=round(float(10 ** draw.uniform(0.7, 2.0)), 3)),
        lambda: Laplace(scale=round(float(10 ** draw.uniform(0.5, 2.0)), 3)),
        lambda: Subsampled(
            ShuffledLDP(eps0, n), population=n * int(draw.integers(2, 200)), dropout=float(draw.choice([0.0, 0.1]))
        ),
        lambda: Subsampled(ShuffledRR(4, n, eps0=eps0), rate=round(float(draw.uniform(0.01, 0.5)), 3)),
        lambda: Epoch(eps0, 10 * n, "stronger-clones"),
        lambda: PoissonSampled(ShuffledLDP(eps0, 100 * n), rate=0.01),
    ][int(draw.integers(0, 10))]()  # fmt: skip


def random_ledger(seed: int) -> tuple[Ledger, float]:
    draw = np.random.default_rng(seed)
    rounds = [(random_mechanism(draw), int(10 ** draw.uniform(0.0, 2.5))) for _ in range(draw.integers(1, 4))]
    return rounds, float(10.0 ** -draw.uniform(4.0, 9.0))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:delta=")  # at least 1/n
@pytest.mark.filterwarnings("ignore:at delta=")  # an answer may be wider than rtol; what is claimed is proved
@pytest.mark.parametrize("seed", range(210) if FULL else (1, 2, 3, 6))
def test_random_ledgers_are_proved(seed: int) -> None:
    ledger, delta = random_ledger(seed)
    accountant = composed_of(ledger)
    answer = accountant.get_epsilon(delta)
    if answer == math.inf:  # the strong adversary of k-RR may see everything
        with pytest.raises(ValueError, match="finite epsilon"):
            accountant.certificate(delta)
        return
    text = accountant.certificate(delta)
    assert proved(text)
    assert json.loads(text)["claim"]["epsilon"] <= 1.01 * answer


# --- what the checker proves is true ---------------------------------------------------------------

P = Fraction(3)  # e^eps0
GROWTHS = [Fraction(0), Fraction(1, 9), Fraction(1, 2), Fraction(3, 2)]


def ball(value: Fraction) -> arb:
    return arb(value.numerator) / value.denominator


def line(held: Any, g: Fraction) -> tuple[arb, arb, arb]:
    """Some line; any will do for a bound."""
    return (arb(0.9 / math.sqrt(held.users)), arb(15.0 * math.sqrt(held.users)), arb(0.02 * math.sqrt(held.users)))


KINDS = [
    ("ShuffledLDP", {"eps0": math.log(3), "n": 4, "analysis": "stronger-clones"}),
    ("ShuffledLDP", {"eps0": math.log(3), "n": 4, "analysis": "clones"}),
    ("ShuffledRandomizer", {"p": 3.0, "q": 2.0, "tv": 0.25, "n": 4}),
    ("ShuffledRR", {"k": 4, "n": 4, "gamma": 0.5, "adversary": "weak"}),
    ("ShuffledRR", {"k": 4, "n": 4, "gamma": 0.5, "adversary": "strong"}),
]


@pytest.mark.parametrize(("kind", "given"), KINDS, ids=lambda x: x if isinstance(x, str) else "")
@pytest.mark.parametrize("rate", [1.0, 0.25])
def test_labels_are_bounded_and_nearly_exact(kind: str, given: dict[str, Any], rate: float) -> None:
    """By sums over all sequences of the groups that the format's table gives."""
    state = {"kind": kind, "arguments": given}
    if rate < 1.0:
        state = {"kind": "Subsampled", "arguments": {"mechanism": state, "rate": rate, "dropout": 0.5}}
    held = checker.mechanism(state, "here")
    one, zero, half, q = Fraction(1), Fraction(0), Fraction(1, 2), Fraction(rate)
    table = {
        "stronger-clones": [(1 / (P + 1), P, one), (1 / (P + 1), one, P), ((P - 1) / (P + 1), zero, zero)],
        "clones": [(1 / (2 * P), 2 * P * P / (P + 1), 2 * P / (P + 1)), (1 - 1 / P, zero, zero),
                   (1 / (2 * P), 2 * P / (P + 1), 2 * P * P / (P + 1))],
        # alpha = 1/8: coins 3/16 each, a neutral label 1/4, else silent
        "": [(Fraction(3, 16), Fraction(2), Fraction(2, 3)), (Fraction(3, 16), Fraction(2, 3), Fraction(2)),
             (Fraction(1, 4), Fraction(2), Fraction(2)), (Fraction(3, 8), zero, zero)],
        "weak": [(Fraction(1, 8), Fraction(5), one), (Fraction(1, 8), one, Fraction(5)),
                 (Fraction(1, 4), one, one), (half, zero, zero)],
        "strong": [(Fraction(1, 8), Fraction(4), zero), (Fraction(1, 8), zero, Fraction(4)),
                   (Fraction(3, 4), zero, zero)],
    }  # fmt: skip
    name = given.get("analysis", given.get("adversary", ""))
    groups = table["weak" if rate < 1.0 and name == "strong" else name]
    if rate < 1.0:
        groups = [(half * m, a, b) for m, a, b in groups] + [(half, one, one)]
        groups = [(m, q * a + 1 - q, q * b + 1 - q) for m, a, b in groups]
    for g in GROWTHS:
        exact = oracles.mean_part([a - (1 + g) * b for _, a, b in groups], [m for m, _, _ in groups], 4)
        value = checker.profile(held, "labels", ball(g), line(held, g), [])
        assert value >= ball(exact) * (1 - arb(1e-12))  # eps0 = log 3 is rounded
        assert float(value) <= 1.05 * float(exact) + 0.03


@pytest.mark.parametrize("n", [4, 5])
def test_the_swap_theorem_bounds_every_dataset(n: int) -> None:
    """Of binary and ternary randomized response, all of whose datasets are enumerated."""
    held = checker.Round(n, budget=arb(3))
    bins = [arb(u) for u in (0.05, 0.1, 0.15, 0.2, 0.25, 0.3)]
    for k, g in itertools.product((2, 3), GROWTHS):
        laws = rr(k, P)
        crowds = itertools.combinations_with_replacement(laws, n - 1)
        worst = max(oracles.hockey_stick(oracles.shuffled_pair(*laws[:2], others), 1 + g) for others in crowds)
        assert checker.profile(held, "swap", ball(g), line(held, g), bins) >= ball(worst)
        # Without the bins all that is left is the target's own divergence.
        alone = checker.profile(held, "swap", ball(g), line(held, g), [])
        assert alone >= ball((P - 1 - g) / (P + 1)) and float(alone) <= float((P - 1 - g) / (P + 1)) + 1e-12


@pytest.mark.parametrize("n", [2, 3])
def test_a_hidden_cohort_bounds_every_dataset(n: int) -> None:
    """n of N users are drawn; the target is among them with probability n/N. A larger cohort covers a smaller one."""
    largest, population = 3, 5
    held = checker.Round(largest, budget=arb(3), share=arb(largest) / population)
    for k, g in itertools.product((2, 3), GROWTHS[:3]):
        value = checker.profile(held, "swap", ball(g), line(held, g), [])
        for pair in datasets(rr(k, P), population - 1, cohort(n), target=(0, 1))():
            assert value >= ball(oracles.hockey_stick(pair, 1 + g))


def test_many_users_are_bounded_tightly() -> None:
    """All atoms of stronger clones, n = 400; a factor 1 + 1e-3 in the wrong place would show."""
    n, arguments = 400, {"eps0": 1.0, "n": 400, "analysis": "stronger-clones"}
    held = checker.mechanism({"kind": "ShuffledLDP", "arguments": arguments}, "")
    pair = reference.atoms(reference.stronger_clones(n, 1.0))
    deviation = math.sqrt(n * (math.e - 1) ** 2 * 2 / (math.e + 1))
    for g in (0.0, 0.05, 0.2):
        exact = reference.hockey_stick(pair, math.log1p(g))
        where = (arb((2.0 + 15.0 * g) / deviation), arb(12 * deviation), arb(0.01 * deviation))
        value = float(checker.profile(held, "labels", arb(g), where, []))
        assert exact * (1 - 1e-9) <= value <= exact * (1 + 1e-3)


def polygon_at(law: Any, step: float, s: float) -> float:
    masses, infinity_mass = law
    return float(infinity_mass) + sum(max(float(m) * (1 - s * math.exp(-j * step)), 0.0) for j, m in masses.items())


def test_atoms_are_above_the_values_and_their_mirror_images() -> None:
    """Also where a value at 0, or in between, is too high, and where the last one rises."""
    step = 0.25
    values = {0: 0.5, 1: 0.2, 2: 0.19, 4: 0.03, 7: 0.004, 9: 0.005}
    law = checker.atoms({j: arb(v) for j, v in values.items()}, arb(step))
    assert abs(sum(float(m) for m in law[0].values()) + float(law[1]) - 1.0) < 1e-12
    lowest = min((math.expm1(j * step) + 2 * v) / (2 + math.expm1(j * step)) for j, v in values.items())
    assert polygon_at(law, step, 1.0) == pytest.approx(lowest, rel=1e-12)
    for j in (1, 4, 7):
        s = math.exp(j * step)
        assert polygon_at(law, step, s) == pytest.approx(values[j], rel=1e-12)
        assert polygon_at(law, step, 1 / s) == pytest.approx((values[j] - 1 + s) / s, rel=1e-12)


def test_composition_is_that_of_all_sums() -> None:
    """Atoms of two rounds convolved in rationals; the window's alias and end are booked."""
    law = {-2: Fraction(1, 16), 0: Fraction(9, 16), 2: Fraction(5, 16), 3: Fraction(1, 16) - Fraction(1, 1000)}
    masses, infinity_mass = {j: ball(m) for j, m in law.items()}, ball(Fraction(1, 1000))
    step, epsilon = 0.5, 1.2
    exact = oracles.sum_law(*[law] * 5)
    truth = sum(float(m) * max(0.0, -math.expm1(epsilon - j * step)) for j, m in exact.items())
    truth += 1.0 - (1.0 - 1e-3) ** 5
    for nodes, near in ((256, 1e-4), (8, math.inf)):
        at, at_infinity = checker.composed([((masses, infinity_mass), 5)], arb(step), arb(1.1), nodes)
        found, beyond = at(arb(epsilon))
        assert truth <= float(found.upper()) <= truth * (1 + near)
        assert float(at_infinity.upper()) == pytest.approx(5e-3) and beyond > 0


# --- what is not proved is rejected ----------------------------------------------------------------


def digit_changed(text: str, draw: random.Random) -> str:
    place = draw.choice([i for i, c in enumerate(text) if c.isdigit()])
    other = draw.choice([c for c in "0123456789" if c != text[place]])
    return text[:place] + other + text[place + 1 :]


def resealed(held: dict[str, Any]) -> str:
    """With a digest of its own: as somebody would who wants to deceive."""
    return json.dumps(held | {"digest": checker.digest(held)})


def numbers(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of all numbers."""
    if isinstance(value, (dict, list)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from numbers(inner, (*path, key))
    elif isinstance(value, (int, float)):
        yield path


def forged(held: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    """Another ledger, claim, lattice, or witness; a term dropped. The digest is made anew by `resealed`."""
    held = json.loads(json.dumps(held))
    kinds = ("ledger", "dot", "cover", "error", "proof", "statement")
    how = draw.choice(("number", "number", "number", *kinds))
    if how == "number":
        part = draw.choice(("claim", "lattice", "ledger", "ledger"))
        path = draw.choice([path for path in numbers(held[part], (part,)) if path[-1] != "answer"])
        inner = held
        for key in path[:-1]:
            inner = inner[key]
        value = inner[path[-1]]
        change = draw.choice((-1, 1)) * 10.0 ** draw.uniform(-4.0, 0.5)
        inner[path[-1]] = (
            value + draw.choice((-1, 1)) * draw.randint(1, 9) if isinstance(value, int) else value * (1.0 + change)
        )
    elif how == "ledger":
        i = draw.randrange(len(held["ledger"]))
        if draw.random() < 0.5:
            del held["ledger"][i]
            for pair in held["pairs"]:
                pair["covers"] = [j - (j > i) for j in pair["covers"] if j != i]
            held["pairs"] = [pair for pair in held["pairs"] if pair["covers"]]
        else:
            held["ledger"][i]["count"] += draw.choice((-1, 1))
    elif how == "dot":
        dots = draw.choice(held["pairs"])["dots"]
        i = draw.randrange(len(dots) // 3)
        if draw.random() < 0.5:
            del dots[i]
        else:
            dots[i][0] += 1
    elif how == "cover":
        covers = draw.choice(held["pairs"])["covers"]
        if draw.random() < 0.5:
            del covers[draw.randrange(len(covers))]
        else:
            covers.append(draw.randrange(len(held["ledger"]) + 1))
    elif how == "error":
        held["errors"][draw.choice(("infinite", "beyond"))] += draw.uniform(1e-5, 1.0) * held["claim"]["delta"]
    elif how == "proof":
        pair = draw.choice(held["pairs"])
        dot = draw.choice(pair["dots"][:20])
        dot[1] = draw.choice([x for x in ("zero", "closed", "swap", "labels", "trust me") if x != dot[1]])
    else:
        name = draw.choice(list(held["theorems"]))
        held["theorems"][name] = held["theorems"][name].replace("s", "t", 1)
    return held


BASES = {
    "k-RR": [(ShuffledRR(5, 700, gamma=0.3), 20)],
    "cohort": [(Subsampled(ShuffledLDP(5.0, 300, analysis="clones"), population=10**4), 50), (Gaussian(sigma=20.0), 9)],
    "sizes": [(Subsampled(ShuffledLDP(4.0, n, analysis="clones"), population=9000), 9) for n in (300, 301, 350)],
    "reduction": [(ShuffledRandomizer(300, eps0=2.0, tv=0.4), 2)],
}  # fmt: skip


@pytest.mark.parametrize(
    ("base", "digits", "forgeries"),
    [
        ("k-RR", max(30, EACH), EACH),
        *(pytest.param(name, max(15, EACH), EACH, marks=pytest.mark.slow) for name in BASES if name != "k-RR"),
    ],
)
def test_changed_certificates_are_rejected(base: str, digits: int, forgeries: int) -> None:
    """Every one; half of the slow ones have a digest that is right, and with `FULL` they are 1,000."""
    _, text = certified(BASES[base], 1e-5)
    assert proved(text)
    held, draw = json.loads(text), random.Random(f"{base}, {digits}")
    for _ in range(digits):
        assert not proved(digit_changed(text, draw))
    tried = 0
    while tried < forgeries:
        other = forged(held, draw)
        if other != held:
            tried += 1
            assert not proved(resealed(other)), other


def test_a_lower_claim_is_no_proof() -> None:
    """By a hundred-millionth; and neither is a higher one, which is true but another certificate's."""
    _, text = certified([(Gaussian(sigma=10.0), 60)], 1e-6)
    held = json.loads(text)
    for factor in (1.0 - 1e-8, 1.0 + 1e-8):
        claim = held["claim"] | {"epsilon": held["claim"]["epsilon"] * factor}
        with pytest.raises(checker.Rejected, match="claim"):
            checker.verify(resealed(held | {"claim": claim}))


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"a": 1, "a": 1}', '{"schema": NaN}', "[" * 10_000, '{"digest": 1e999}', "null", "\ud800"],
)  # fmt: skip
def test_other_texts_are_rejected(text: str) -> None:
    assert not proved(text)


@pytest.mark.parametrize(
    "path", [("claim", "epsilon"), ("lattice", "nodes"), ("ledger", 0), ("pairs", 0, "dots", 3, 2)]
)
@pytest.mark.parametrize("value", [None, "1", True, [], {}, -1.0, 1e300, 10**400])
def test_values_of_other_types_are_rejected(path: tuple[Any, ...], value: Any) -> None:
    _, text = certified([(ShuffledRR(5, 700, gamma=0.3), 20)], 1e-5)
    held = json.loads(text)
    inner = held
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    assert not proved(resealed(held))


# --- the checker itself, and the commands ----------------------------------------------------------


def test_the_checker_is_small_and_stands_alone() -> None:
    source = FILE.read_text(encoding="utf-8")
    assert len(source.splitlines()) <= 600
    names = {
        alias.name if isinstance(node, ast.Import) else node.module
        for node in ast.walk(ast.parse(source))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    assert {str(name).partition(".")[0] for name in names} - set(sys.stdlib_module_names) == {"flint"}


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, out, entry = (str(tmp_path / name) for name in ("log.csv", "out.json", "entry.json"))
    Path(log).write_text("eps0,n,population,count\n6,500,10000,20\n5,400,10000,10\n")
    assert main(["account", log, "--delta", "1e-6", "--certificate", out, "--registry", entry]) == 0
    capsys.readouterr()
    assert checker.main([out]) == 0
    said = capsys.readouterr().out
    assert said.startswith("proved: epsilon <= ") and "30 rounds" in said
    deployment = json.loads(Path(entry).read_text())["deployment"]
    assert deployment["privacy_loss"]["privacy_parameters"]["delta"] == 1e-6
    assert "30 rounds" in deployment["accounting"]["composition"]

    Path(out).write_text(Path(out).read_text().replace('"count": 20', '"count": 19'))
    assert checker.main([out]) == 1 and "digest" in capsys.readouterr().err
    assert checker.main([str(tmp_path / "none.json")]) == 2


def test_progress_is_that_of_all_mechanisms() -> None:
    """Twelve cohorts of almost one size are one pair; noise is another."""
    ledger, delta = KINDS_OF_LEDGERS["sizes"]
    rounds, told = [*ledger, (Gaussian(sigma=30.0), 2)], list[tuple[int, int]]()
    accountant = composed_of(rounds)
    text = certificate(rounds, delta, accountant.get_epsilon(delta), lambda done, total: told.append((done, total)))
    assert text == accountant.certificate(delta)
    assert {done for done, _ in told} >= {12, 13} and told[-1] == (13, 13) and {total for _, total in told} == {13}


def test_registry_entry_of_both_models() -> None:
    accountant = Accountant().compose(ShuffledLDP(1.0, 1_000), 2).compose(Gaussian(sigma=30.0))
    entry = registry_entry(accountant, 1e-6)["deployment"]
    assert entry["deployment_model"]["model_name"] == "Varies"
    assert all(f"{name}: " in entry["deployment_model"]["model_name_details"] for name in ("Shuffle", "Central"))
    assert entry["privacy_loss"]["privacy_parameters"]["epsilon"] == accountant.get_epsilon(1e-6)
    assert "2 x ShuffledLDP(eps0=1.0" in entry["implementation"]["mechanisms"]
    for mechanism, _ in accountant.ledger:
        assert mechanism.assumptions()["analysis"] in entry["privacy_loss"]["privacy_parameters_details"]
    for wrong, delta in ((Accountant(), 1e-6), (accountant, 0.0)):
        with pytest.raises(ValueError, match="ledger with rounds and a finite epsilon"):
            registry_entry(wrong, delta)


def completed(held: Any, schema: dict[str, Any]) -> Any:
    """With something allowed for all that only the curator knows."""
    if isinstance(held, dict):
        return {key: completed(value, schema["properties"][key]) for key, value in held.items()}
    if held is not None:
        return held
    plain = {"string": "2026-01-01", "integer": 3, "array": ["somebody"]}[schema["type"]]
    return schema.get("enum", [plain])[0]


@pytest.mark.parametrize("ledger", [[(ShuffledLDP(1.0, 1_000), 1)], [(Gaussian(sigma=30.0), 2)]])
def test_an_entry_is_what_the_registry_asks_for(ledger: Ledger) -> None:
    """Keys, types and words are those of the registry's own schema, and no key of it is unknown here."""
    schema = json.loads((Path(__file__).parent / "data" / "registry_schema.json").read_text(encoding="utf-8"))
    accountant = composed_of(ledger)
    entry = completed(json.loads(json.dumps(registry_entry(accountant, 1e-6))), schema)
    jsonschema.validate(entry, schema)
    assert entry["deployment"]["deployment_model"]["model_name"] in ("Shuffle", "Central")
    assert set(entry["deployment"]) == set(schema["properties"]["deployment"]["properties"])
