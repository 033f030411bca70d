"""The house has one direction: no module imports one that stands on its floor or above it.

Imports are read from the syntax trees, those inside functions included. Only the package's own are looked at. Calls
are traced while four questions are answered. And what is slow to load is loaded by what uses it.
"""

from __future__ import annotations

import ast
import graphlib
import importlib.util
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType

import pytest
from test_honesty import composed_of

import pld_shuffle
from pld_shuffle import Accountant, Shuffled, ShuffledLDP, Subsampled, solve
from pld_shuffle.randomizers import Laplace

ROOT = Path(pld_shuffle.__file__).parent

#: From the ground up. What stands on one floor together does not import each other.
FLOORS = [
    {"numerics", "storage"},
    {"randomizers", "bounds"},
    {"shares"},
    {"pairs"},
    {"composition"},
    {"mechanisms"},
    {"checkpoint", "fields", "trajectory"},
    {"trainlog", "certificate"},
    {"ledger"},
    {"accountant", "renyi"},
    {"audits", "filter", "risk"},
    {"calibration", "comparison", "sweeps", "protocols", "interop", "training"},
    {"plots"},
    {"report"},
    {"cli"},
    {"__main__"},
]


def modules() -> dict[str, Path]:
    """Dotted names below the package; a sub-package is its __init__."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(name: str, path: Path) -> Iterator[str]:
    """Modules of the package that a module imports anywhere in its text."""
    known, home = modules(), f"pld_shuffle.{name}".rstrip(".")
    package = home if path.name == "__init__.py" else home.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            targets = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        for target in targets:
            house, _, inner = target.partition(".")
            while inner and inner not in known:
                inner = inner.rpartition(".")[0]
            if house == "pld_shuffle" and inner:
                yield inner


def room(name: str) -> str:
    """The sub-package, or the module itself."""
    return name.partition(".")[0]


def test_every_room_has_a_floor() -> None:
    rooms = {room(name) for name in modules()} - {""}
    listed = set().union(*FLOORS)
    assert rooms - listed == set()


@pytest.mark.parametrize("name", sorted(set(modules()) - {""}))
def test_imports_point_downwards(name: str) -> None:
    level = {entry: i for i, floor in enumerate(FLOORS) for entry in floor}
    for target in imports(name, modules()[name]):
        if room(target) != room(name):
            assert level[room(target)] < level[room(name)], f"{name} imports {target}"


def test_no_circle_inside_a_room() -> None:
    graph = {name: {t for t in imports(name, path) if t != name} for name, path in modules().items() if name}
    graphlib.TopologicalSorter(graph).prepare()  # or its error names the circle


QUERIES: dict[str, tuple[Accountant, Callable[[Accountant], object]]] = {
    "equal rounds": (
        Accountant().compose(ShuffledLDP(1.0, 1_000), 10),
        lambda a: a.epsilon_bounds(1e-6),
    ),
    "varied log": (
        composed_of((Subsampled(ShuffledLDP(1.0, n), population=10**6), 1) for n in (2_467, 3_001, 3_003, 4_000)),
        lambda a: a.epsilon_bounds(1e-6),
    ),
    "solve": (
        Accountant(),
        lambda _: solve(
            "eps0", lambda eps0: [(ShuffledLDP(eps0, 1_000), 4)], epsilon=1.0, delta=1e-6, value_rtol=0.1
        ),
    ),
    "noise": (Accountant().compose(Shuffled(Laplace(eps0=1.0), 100)), lambda a: a.delta_bounds(0.3)),
}  # fmt: skip


@pytest.mark.parametrize("query", QUERIES)
def test_calls_point_downwards(query: str) -> None:
    """What answers a question, from the pairs on: no function of `mechanisms` is called from a room below it."""
    accountant, ask = QUERIES[query]
    upwards, below = set(), {"pairs", "composition", "numerics", "randomizers"}

    def place(code: CodeType) -> tuple[str, str]:
        path = Path(code.co_filename)
        return (path.relative_to(ROOT).parts[0] if path.is_relative_to(ROOT) else "", code.co_name)

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_back is not None:
            callee, caller = place(frame.f_code), place(frame.f_back.f_code)
            if callee[0] == "mechanisms" and caller[0] in below:
                upwards.add((caller, callee))

    pld_shuffle.warm_up()  # compiling is not to be watched
    sys.setprofile(watch)
    try:
        ask(accountant)
    finally:
        sys.setprofile(None)
    assert not upwards


HEAVY = {"numpy", "scipy", "numba", "matplotlib", "tqdm"}


@pytest.mark.parametrize(("code", "absent"), [
    ("import pld_shuffle", HEAVY), ("import pld_shuffle.plots; pld_shuffle.Bounds", {"matplotlib"}),
    ("from pld_shuffle.cli import main; assert main(['account', '--help']) == 0", HEAVY),
    ("import pld_shuffle.accountant, pld_shuffle.mechanisms.imported", {"dp_accounting", "attr"}),
])  # fmt: skip
def test_nothing_is_loaded_before_it_is_used(code: str, absent: set[str]) -> None:
    code += f"; import sys; heavy = {absent!r} & sys.modules.keys(); assert not heavy, heavy"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stderr == b""
