"""Certified privacy accounting for the shuffle model of differential privacy.

The idea in four files: `crowd` (a shuffled round is one mixture of tilted coins) or `profile` (a pair known
by its privacy profile becomes atoms, from above and from below), `lattice` (two placements, one that
dominates and one that is dominated) and `convolution` (exponentially tilted FFT, with a bound on everything
it neglects). `composition` puts them together for a question; `accountant` asks it. The README's
Architecture section has the other rooms and the life of a query.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.2.0"

_HOME = {
    "Accountant": "accountant",
    "AttackRisk": "risk",
    "AccuracyWarning": "composition",
    "Bounds": "bracket",
    "Side": "bracket",
    "CheckpointError": "checkpoint",
    "InfeasibleError": "calibration",
    "PLD": "pld",
    "PoissonGaussian": "poisson",
    "RenyiAccountant": "renyi",
    "solve": "calibration",
    "sweep": "sweeps",
    "DiscretePair": "pmfs",
    "Gaussian": "central",
    "Laplace": "central",
    "Mechanism": "mechanism",
    "Shuffled": "shuffled",
    "ShuffledLDP": "mechanisms",
    "ShuffledRR": "mechanisms",
    "ShuffledRandomizer": "mechanisms",
    "Subsampled": "mechanisms",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
