"""The house has one direction: no module imports one that stands on its floor or above it.

Imports are read from the syntax trees, those inside functions included. Only the package's own are looked at.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import pld_shuffle

ROOT = Path(pld_shuffle.__file__).parent

#: From the ground up. What stands on one floor together does not import each other.
FLOORS = [
    {"numerics", "texts", "reference"},
    {"storage"},
    {"randomizers", "bounds"},
    {"pairs"},
    {"composition"},
    {"mechanisms"},
    {"checkpoint", "fields", "trajectory"},
    {"trainlog"},
    {"ledger"},
    {"accountant", "renyi", "risk"},
    {"calibration", "comparison", "sweeps", "protocols", "interop"},
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
    known = modules()
    here = name.split(".") if name else []
    package = here if path.name == "__init__.py" else here[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            targets = [
                alias.name.split(".")[1:]
                for alias in node.names
                if alias.name.startswith("pld_shuffle.")
            ]
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                base = package[: len(package) - node.level + 1]
            elif node.module == "pld_shuffle" or (node.module or "").startswith("pld_shuffle."):
                base = []
            else:
                continue
            stem = (
                (node.module or "").split(".") if node.level else (node.module or "").split(".")[1:]
            )
            base = [*base, *filter(None, stem)]
            targets = [[*base, alias.name] for alias in node.names]
        else:
            continue
        for target in targets:
            while target and ".".join(target) not in known:
                target = target[:-1]
            if target:
                yield ".".join(target)


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
    graph = {
        name: {t for t in imports(name, path) if t != name} for name, path in modules().items()
    }
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " -> ".join([*trail, name])
        if name not in done:
            for target in sorted(graph[name]):
                visit(target, (*trail, name))
            done.add(name)

    for name in graph:
        if name:
            visit(name, ())
