"""Every name that release 0.2.0 documents can still be imported from where it was."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

LISTED = (Path(__file__).parent / "data" / "public_names_0.2.0.txt").read_text(encoding="utf-8")
NAMES: dict[str, list[str]] = {}
for line in LISTED.splitlines():
    if not line.startswith("#"):
        module_name, _, public = line.partition(": ")
        NAMES.setdefault(module_name, []).append(public)


def test_the_list_is_there() -> None:
    assert len(NAMES) == 16 and sum(map(len, NAMES.values())) == 156


@pytest.mark.parametrize("module", NAMES)
def test_names_of_0_2_0_are_there(module: str) -> None:
    if ".interop." in module:
        pytest.importorskip("dp_accounting")
    home = importlib.import_module(module)
    assert [name for name in NAMES[module] if not hasattr(home, name)] == []
