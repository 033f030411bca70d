"""The README's code blocks run, and its numbers are what they print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pld_shuffle import Accountant
from pld_shuffle.cli import main

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
COMMANDS = re.findall(r"^\$ (?:.*&& )?pld-shuffle (.*)$", README, re.MULTILINE)


def test_python_blocks_run() -> None:
    assert PYTHON
    for block in PYTHON:
        exec(block, {})


def test_the_number_in_the_example() -> None:
    scope: dict[str, Accountant] = {}
    exec(PYTHON[0], scope)
    quoted = float(re.findall(r"# ([\d.]+): certified", PYTHON[0])[0])
    assert scope["acc"].get_epsilon(1e-6) == pytest.approx(quoted, abs=5.1e-4)


@pytest.mark.parametrize("command", [c for c in COMMANDS if "LOG.csv" not in c])
def test_commands_run(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(command.split()) == 0
    printed = capsys.readouterr().out
    if "--sample" in command:
        row = re.compile(r"^ +1e-06 +(\S+) +(\S+) +\S+ % +\S+ %$", re.MULTILINE)
        quoted, found = row.search(README), row.search(printed)
        assert quoted is not None and found is not None
        for one, other in zip(quoted.groups(), found.groups(), strict=True):
            assert float(one) == pytest.approx(float(other), rel=2e-4)
        assert (tmp_path / "spent.png").stat().st_size > 10_000
