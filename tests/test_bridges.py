"""What the bridges to Flower, pfl and OpenDP share: their block of docs/interop.md, and a package that is not there.

Each runs where its package is installed, and is skipped with a reason elsewhere.
"""

from __future__ import annotations

import importlib
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

PAGE = (Path(__file__).parent.parent / "docs" / "interop.md").read_text("utf-8")

#: The bridge, and a module of the package that it imports.
BRIDGES = {"flower": "flwr.serverapp", "pfl": "pfl.callback.base", "opendp": "opendp.measures"}


@pytest.fixture(params=BRIDGES)
def bridge(request: pytest.FixtureRequest) -> Any:
    """The module of a bridge whose package is here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        package, extra = BRIDGES[request.param].split(".")[0], f"pld-shuffle[{request.param}]"
        pytest.importorskip(package, reason=f"needs {package}: pip install '{extra}'")
        return importlib.import_module(f"pld_shuffle.interop.{request.param}")


def test_docs_block(bridge: Any) -> None:
    """The one short block of docs/interop.md runs, with the numbers it quotes."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (block,) = (block for block in blocks if bridge.__name__.removeprefix("pld_shuffle.") in block)
    exec(block, {})


def test_a_missing_package_is_named(bridge: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the import says what to install."""
    extra = bridge.__name__.rpartition(".")[2]
    monkeypatch.setitem(sys.modules, BRIDGES[extra], None)
    with pytest.raises(ImportError, match=rf"pld-shuffle\[{extra}\]"):
        importlib.reload(bridge)
