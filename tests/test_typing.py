"""Type checkers know every public name: right code passes, wrong code does not.

mypy and pyright come with the "lint" extra; where one is not installed, its tests are skipped.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import pld_shuffle

ROOT = Path(__file__).parent.parent
# Run as installed or from the checkout: the checkers see the package that is tested.
PACKAGE = Path(pld_shuffle.__file__).parent.parent

# A line is wrong if it says so.
SCRIPT = """
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pld_shuffle
from pld_shuffle import AttackRisk, Accountant, Bounds, RenyiAccountant, ShuffledLDP, Subsampled, solve, sweep

acc = Accountant(rtol=1e-2).compose(ShuffledLDP(eps0=4.0, n=10_000), 10)
acc.compose(Subsampled(ShuffledLDP(eps0=3.0, n=1_000), population=100_000), count=500)
bounds: Bounds = acc.epsilon_bounds(1e-6)
again: Accountant = Accountant.from_json(acc.to_json())
full: bool = acc.would_exceed(ShuffledLDP(1.0, 100), epsilon=1.0, delta=1e-6)
found = solve("eps0", {"n": 5_000, "rounds": 20}, epsilon=2.0, delta=1e-6)
value: float = found.value
rows = sweep([{"n": 1_000, "eps0": 1.0}], delta=1e-6, workers=1)
version: str = pld_shuffle.__version__

# A number in, a float out; an array in, an array out.
Array = NDArray[np.float64]
one: float = acc.get_epsilon(1e-6)
exact: float = acc.get_delta(Fraction(1, 3))
small: float = acc.get_delta(np.float32(0.5), group=2)
many: Array = acc.get_epsilon([1e-6, 1e-5])
grid: Array = acc.get_delta(np.linspace(0.0, 1.0, 5), group=2)
ends: Bounds[float] = acc.epsilon_bounds(1e-6)
low, middle, high = acc.gap_bounds(1e-6)
width: float = high - low
curve: Bounds[Array] = acc.delta_bounds((0.5, 1.0))
peak: float = curve.upper.max()
order: float = RenyiAccountant().get_rdp(2)
orders: Array = RenyiAccountant().get_rdp([2.0, 3.0])
ideal: float = RenyiAccountant().get_epsilon(1e-6)
power: float = AttackRisk(acc).true_positive_rate(1e-3).upper


def untyped(delta: Any) -> Bounds:
    return acc.epsilon_bounds(delta)


ShuffledLDP(epsilon="four", n=10_000)  # wrong
ShuffledLDP(eps0="four", n=10_000)  # wrong
acc.get_epsilonn("x")  # wrong
acc.compose(4.0)  # wrong
Accountant(tolerance=1e-3)  # wrong
Subsampled(4.0, population=100)  # wrong
solve("eps0", 5_000, epsilon=2.0, delta=1e-6)  # wrong
pld_shuffle.Acountant  # wrong
acc.get_epsilon("1e-6")  # wrong
acc.get_epsilon([1e-6]).is_integer()  # wrong
float_wanted: float = acc.get_delta([0.5, 1.0])  # wrong
array_wanted: Array = acc.get_delta(0.5)  # wrong
float_ends: Bounds[float] = acc.epsilon_bounds([1e-6])  # wrong
acc.delta_bounds(0.5).upper.max()  # wrong
acc.get_delta(0.5, group=1.5)  # wrong
"""
NAMES = "import pld_shuffle\n" + "".join(f"reveal_type(pld_shuffle.{name})\n" for name in pld_shuffle.__all__)

Found = tuple[set[int], list[str]]


def run(*command: str, folder: Path) -> str:
    environment = os.environ | {"MYPYPATH": str(PACKAGE)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert not done.stderr, done.stderr
    return done.stdout


def mypy(folder: Path) -> Found:
    """Lines of script.py with an error, and the types of the names."""
    config = f"--config-file={ROOT / 'pyproject.toml'}"
    cache = f"--cache-dir={folder / 'cache'}"
    shown = run(sys.executable, "-m", "mypy", config, cache, "script.py", "names.py", folder=folder)
    errors = {int(n) for n in re.findall(r"^script\.py:(\d+): error:", shown, re.MULTILINE)}
    return errors, re.findall(r'^names\.py:\d+: note: Revealed type is "(.*)"$', shown, re.MULTILINE)


def pyright(folder: Path) -> Found:
    """The same; from pyright's JSON, which counts lines from 0."""
    settings = {"extraPaths": [str(PACKAGE)], "pythonVersion": "3.10"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    python = ("--pythonpath", sys.executable, "--outputjson")
    shown = run(sys.executable, "-m", "pyright", *python, "script.py", "names.py", folder=folder)
    errors, types = set(), []
    for entry in json.loads(shown)["generalDiagnostics"]:
        if Path(entry["file"]).name == "names.py":
            types += re.findall(r'^Type of ".*" is "(.*)"$', entry["message"], re.DOTALL)
        elif entry["severity"] == "error":
            errors.add(entry["range"]["start"]["line"] + 1)
    return errors, types


@pytest.mark.parametrize(
    "checker", [pytest.param(mypy, id="mypy"), pytest.param(pyright, id="pyright", marks=pytest.mark.slow)]
)
def test_right_code_passes_and_wrong_code_does_not(checker: Callable[[Path], Found], tmp_path: Path) -> None:
    if importlib.util.find_spec(checker.__name__) is None:
        pytest.skip(f"{checker.__name__} is not installed")
    (tmp_path / "script.py").write_text(SCRIPT, encoding="utf-8")
    (tmp_path / "names.py").write_text(NAMES, encoding="utf-8")
    errors, types = checker(tmp_path)
    wrong = {i for i, line in enumerate(SCRIPT.splitlines(), 1) if line.endswith("# wrong")}
    assert errors == wrong
    assert len(types) == len(pld_shuffle.__all__)
    assert not {"Any", "Unknown"} & set(types)


def test_every_public_name_is_there() -> None:
    """The stub names what exists, sorted and once; other names are an AttributeError."""
    assert pld_shuffle.__all__ == sorted(set(pld_shuffle.__all__)) == dir(pld_shuffle)
    for name in pld_shuffle.__all__:
        assert getattr(pld_shuffle, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'Acountant'"):
        _ = pld_shuffle.Acountant
