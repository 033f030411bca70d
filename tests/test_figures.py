"""Every figure script runs, in its quick version, and writes its picture and its table."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import pytest
from test_docs import loaded

FIGURES = Path(__file__).resolve().parent.parent / "benchmarks" / "figures"
SCRIPTS = sorted(path.stem for path in FIGURES.glob("*.py"))
#: What has to appear in the output of a script that knows reference values.
SAID = {
    "attack_gap": "k-RR, n = 10000: analysis over attack from 1.000",
    "blanket_laplace": "stronger clones is 1.203",
    "ipa_noise": "1483 coins by theorem, 80 are enough",
    "nebula_threshold": "[0.3180, 0.3180] at delta 1e-08",
    "gap_to_truth": "telemetry at 1e-5: 0.8299 to 0.8300",
    "koskela_figure1": "1.923059e-21",
    "koskela_figure2": "12.85",
    "koskela_figure3": "published 3.1996, ours [2.838",
    "koskela_figure4": "3.829249e-01",
    "tiny_delta_curve": "3.330e-38",
    "value_of_information": "0.547330",
}


#: Seconds each, or minutes; their numbers are asserted by other tests too.
SLOW = {"blanket_laplace", "epsilon_over_rounds", "koskela_figure3", "protocol_real_sum", "tiny_delta_curve"}
SLOW |= {"gap_to_truth", "protocol_error", "training_epochs", "training_run"}


def test_there_are_figures() -> None:
    assert {"balle_figure3", "epsilon_over_rounds", *SAID, *SLOW} <= set(SCRIPTS)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in SCRIPTS]
)
def test_quick_version(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [name, "--quick", "--output", str(tmp_path)])
    loaded(FIGURES / f"{name}.py").main()
    assert SAID.get(name, "") in capsys.readouterr().out
    picture = tmp_path / f"{name}.png"
    assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size > 10_000
    with (tmp_path / f"{name}.csv").open(newline="") as handle:
        rows = list(csv.reader(handle))
    assert len(rows) > 2
    assert all(len(row) == len(rows[0]) and all(row) for row in rows)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{name}.csv", f"{name}.png"]


@pytest.mark.parametrize("name", SCRIPTS)
def test_committed_outputs(name: str) -> None:
    for ending in (".png", ".csv"):
        assert (FIGURES / f"{name}{ending}").is_file()
