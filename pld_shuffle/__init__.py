"""Certified privacy accounting for the shuffle model of differential privacy.

Read docs/reference.py first: the whole idea in plain Python. Then `pairs.pair`, the one abstraction (a dominating pair
that can be asked for atoms on a side), `composition.composition` (from pairs to a bracket), `mechanisms.base` (what was
run, and its pair) and `accountant`. CONTRIBUTING.md has the other rooms and the life of a query.
"""

from __future__ import annotations

import ast
import importlib
from typing import Any

__version__ = "1.0.0rc1"

# Names are imported when first used. The stub is the one list of them, for us and for type checkers.
with open(f"{__file__}i", encoding="utf-8") as _stub:
    _HOME = {
        alias.name: f"{__name__}.{node.module}"
        for node in ast.parse(_stub.read()).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
