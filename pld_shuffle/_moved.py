"""Modules of release 0.2.0 under their old names: the same module objects as under the new ones.

Asked only after every other finder has failed, so nothing that exists can be hidden by it.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType

#: Old name below the package -> the module that has its public names now.
MOVED = {
    "atoms": "pairs.atoms",
    "blanket": "pairs.blanket",
    "bracket": "numerics.sides",
    "budget": "composition.would_exceed",
    "central": "mechanisms.central",
    "convolution": "numerics.convolution",
    "interop.imported": "mechanisms.imported",
    "bounds.binomial": "numerics.log_binomial",
    "bounds.solving": "numerics.solving",
    "lattice": "numerics.lattice",
    "mechanism": "mechanisms",
    "pld": "composition.pld",
    "pmfs": "mechanisms.discrete",
    "poisson": "mechanisms.poisson_gaussian",
    "profile": "pairs.profile",
    "protocols.binomial_shift": "mechanisms.binomial_shift",
    "saddle": "composition.sketch",
    "shuffled": "mechanisms.shuffled",
    "files": "storage.files",
    "tables": "storage.tables",
    "tails": "numerics.binomial",
    "validation": "numerics.validation",
}


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the old names and hands out the new modules."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        package, _, name = fullname.partition(".")
        if package != __package__ or name not in MOVED:
            return None
        return importlib.machinery.ModuleSpec(fullname, self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return ModuleType(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        new = importlib.import_module(f"{__package__}.{MOVED[module.__name__.partition('.')[2]]}")
        sys.modules[module.__name__] = new


def install() -> None:
    """Let ``import pld_shuffle.<old name>`` work."""
    sys.meta_path.append(_Finder())
