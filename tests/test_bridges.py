"""What the bridges share: their blocks of docs/interop.md, and a package that is not there.

Each runs where its package is installed, and is skipped with a reason elsewhere.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

PAGE = (Path(__file__).parent.parent / "docs" / "interop.md").read_text("utf-8")

#: The bridge, and a module of the package that it imports.
BRIDGES = {
    "dp_accounting": "dp_accounting",
    "flower": "flwr.serverapp",
    "pfl": "pfl.callback.base",
    "opendp": "opendp.measures",
}


EXTRAS = {"dp_accounting": "interop"}


@pytest.fixture(params=BRIDGES)
def bridge(request: pytest.FixtureRequest) -> Any:
    """The module of a bridge whose package is here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        package = BRIDGES[request.param].split(".")[0]
        extra = f"pld-shuffle[{EXTRAS.get(request.param, request.param)}]"
        pytest.importorskip(package, reason=f"needs {package}: pip install '{extra}'")
        return importlib.import_module(f"pld_shuffle.interop.{request.param}")


def test_docs_blocks(bridge: Any) -> None:
    """The short blocks of docs/interop.md run, with the numbers they quote."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    name = bridge.__name__.removeprefix("pld_shuffle.")
    mine = [block for block in blocks if name in block]
    assert mine
    for block in mine:
        if "riskcal" not in block or importlib.util.find_spec("riskcal"):
            exec(block, {})


def test_a_missing_package_is_named(bridge: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the import says what to install."""
    name = bridge.__name__.rpartition(".")[2]
    monkeypatch.setitem(sys.modules, BRIDGES[name], None)
    with pytest.raises(ImportError, match=rf"pld-shuffle\[{EXTRAS.get(name, name)}\]"):
        importlib.reload(bridge)
