"""The numbers of the README are what its blocks and commands print; test_docs.py runs them all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pld_shuffle import Accountant
from pld_shuffle.cli import main

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_the_number_in_the_example() -> None:
    scope: dict[str, Accountant] = {}
    exec(PYTHON[0], scope)
    quoted = float(re.findall(r"# ([\d.]+): certified", PYTHON[0])[0])
    assert scope["acc"].get_epsilon(1e-6) == pytest.approx(quoted, abs=5.1e-4)


def test_the_table_of_the_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (command,) = re.findall(r"^\$ .*pld-shuffle (.*--sample.*)$", README, re.MULTILINE)
    assert main(command.split()) == 0
    row = re.compile(r"^ +1e-06 +(\S+) +(\S+) +\S+ % +(?:< )?\S+ %$", re.MULTILINE)
    quoted, found = row.search(README), row.search(capsys.readouterr().out)
    assert quoted is not None and found is not None
    for one, other in zip(quoted.groups(), found.groups(), strict=True):
        assert float(one) == pytest.approx(float(other), rel=2e-4)
    assert (tmp_path / "spent.png").stat().st_size > 10_000
