"""Published privacy bounds of the shuffle model: one object for each, asked in one way.

    Bennett().epsilon(eps0=1.0, delta=1e-6, n=10_000)

Beside them, functions that are about more than one round (Renyi bounds, and the optimal composition of (epsilon, delta)
guarantees), or about noise in a sum. All are upper bounds, all arguments are keywords, and arguments outside a
theorem's range raise `OutOfRange` (a ValueError). docs/bounds.md says what each covers and whose proof it rests on.
This package does not use the accountant: it is the opponent in every comparison.
"""

from __future__ import annotations

from .balle2019 import BalleTheorem1, BalleTheorem6, Bennett, GenericBlanket, Hoeffding, LaplaceBlanket, RRBlanket
from .bound import (
    Adversary,
    Bound,
    Cheu,
    ClonesClosedForm,
    Erlingsson,
    OutOfRange,
    StrongerClonesClosedForm,
    cpsgd_epsilon,
    discrete_gaussian_rdp,
    skellam_rdp,
)
from .composing import EpsilonAtOrder, girgis_epsilon, girgis_rdp, optimal_composition_epsilon, rdp_to_epsilon


def published(k: int = 2) -> tuple[Bound, ...]:
    """Every bound for one round; where it is about randomized response, over k values."""
    return (
        StrongerClonesClosedForm(), ClonesClosedForm(), Erlingsson(),
        BalleTheorem6(), Hoeffding(), Bennett(), BalleTheorem1(k), Hoeffding(RRBlanket(k)),
        Bennett(RRBlanket(k)), Cheu(), Bennett(LaplaceBlanket()),
    )  # fmt: skip


__all__ = [
    "Adversary", "BalleTheorem1", "BalleTheorem6", "Bennett", "Bound", "Cheu", "ClonesClosedForm",
    "EpsilonAtOrder", "Erlingsson", "GenericBlanket", "Hoeffding", "LaplaceBlanket", "OutOfRange",
    "RRBlanket", "StrongerClonesClosedForm", "cpsgd_epsilon", "discrete_gaussian_rdp",
    "girgis_epsilon", "girgis_rdp", "optimal_composition_epsilon", "published", "rdp_to_epsilon",
    "skellam_rdp",
]  # fmt: skip
