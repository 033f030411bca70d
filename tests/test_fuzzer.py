"""The fuzzer of benchmarks/ draws all that is public, and finds nothing in a few cases of the cheap kinds."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import numpy as np
import pytest

import pld_shuffle
from pld_shuffle import mechanisms, protocols, randomizers
from pld_shuffle.mechanisms.base import Mechanism
from pld_shuffle.protocols.protocol import Protocol

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

fuzz = pytest.importorskip("fuzz_certificates", reason="needs a file lock of POSIX")

SAMPLING = {"Subsampled", "PoissonSampled", "StickyCohort"}


def concrete(module: object, base: type) -> set[type]:
    names = getattr(module, "__all__", dir(module))
    found = (getattr(module, name) for name in names)
    return {one for one in found if isinstance(one, type) and issubclass(one, base) and not inspect.isabstract(one)}


def test_everything_public_is_drawn() -> None:
    """Every mechanism and sampling scheme, every randomizer and every protocol."""
    drawn = {one for _, _, covered in fuzz.KINDS for one in covered}
    public = concrete(pld_shuffle, Mechanism) | concrete(mechanisms, Mechanism)
    public |= concrete(protocols, Protocol) | concrete(protocols, Mechanism)
    public |= {
        getattr(randomizers, name) for name in randomizers.__all__ if hasattr(getattr(randomizers, name), "sample")
    } - {randomizers.LocalRandomizer, randomizers.FiniteRandomizer}
    assert len(public) > 30
    assert public <= drawn
    assert {one.__name__ for one in public} >= SAMPLING


@pytest.mark.parametrize("kind", fuzz.KINDS, ids=lambda kind: kind[0].__name__)
def test_a_kind_draws_what_it_names(kind) -> None:
    """The table is no promise: by some seed, each of the named classes is in a drawn mechanism (or names it)."""
    draw, _, covered = kind
    missing = {one.__name__ for one in covered}
    for seed in range(300):
        one = draw(np.random.default_rng([seed, 3]))
        shown = f"{one.name} {one.mechanism!r}"
        missing -= {name for name in missing if name in shown}
        if not missing:
            break
    assert not missing


#: Kinds of which one lattice takes seconds.
DEAR = {"sticky", "users_noise", "threshold", "allocation", "shuffled_batches", "summed_reports", "coming_and_going"}
EACH = [pytest.param(k[0].__name__, marks=[pytest.mark.slow] * (k[0].__name__ in DEAR)) for k in fuzz.KINDS]


@pytest.mark.filterwarnings("ignore::pld_shuffle.AccuracyWarning")  # of an analysis that is compared, not of the law
@pytest.mark.parametrize("name", EACH)
def test_a_few_laws_of_each_kind(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One lattice for each ledger; what an accountant answers is for the fuzzer itself."""
    monkeypatch.setattr(fuzz, "KINDS", [kind for kind in fuzz.KINDS if kind[0].__name__ == name])
    monkeypatch.setattr(fuzz, "READINGS", 20)
    monkeypatch.setattr(fuzz, "LATTICES", 1)
    monkeypatch.setattr(fuzz.Case, "ask", lambda case: None)
    found = fuzz.Found()
    for seed in (4,) if name in DEAR else (1, 4):
        fuzz.Case(seed, found, show=False).run()
    assert not found.violations
    assert found.brackets["all"] >= (fuzz.POINTS if name in DEAR else fuzz.READINGS)


@pytest.mark.parametrize("seed", [24])
def test_what_it_once_found(seed: int) -> None:
    """24: one imported mass next to a large one at infinity, an upper end too low by rounding."""
    found = fuzz.Found()
    fuzz.Case(seed, found, show=False).run()
    assert found.brackets["all"] > 0 and not found.violations
