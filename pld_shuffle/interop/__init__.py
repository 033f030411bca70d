"""Bridges to other libraries: a file for each, which needs that library only when it is imported.

* `dp_accounting` (``pip install 'pld-shuffle[interop]'``): privacy loss distributions both ways, and a
  `PrivacyAccountant` for Google's events.
* `flower`, `pfl`, `opendp` (extras of the same names): Flower's accountant and strategy, a callback of pfl-research, a
  `PrivacyProfile` of OpenDP.

What an imported distribution becomes here is `mechanisms.imported`. docs/interop.md has examples.
"""

from __future__ import annotations

from typing import Any

from ..mechanisms import Mechanism, as_mechanism


def symmetric(name: str, mechanism: Any) -> Mechanism:
    """The mechanism, if its pair covers both orders of two neighbours; TypeError or ValueError otherwise."""
    known = as_mechanism(mechanism)
    if not known.pair.symmetric:
        raise ValueError(f"{name} must have a symmetric pair, got {mechanism!r}")
    return known
