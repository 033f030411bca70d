"""Published privacy bounds of the shuffle model: one function for each bound and unknown.

Each module has the statement, its range and where it is proved (docs/bounds.md).

| module | source | covers |
|---|---|---|
| `erlingsson2019` | Erlingsson et al., SODA 2019 | any randomizer, eps0 < 1/2 |
| `balle2019` | Balle et al., CRYPTO 2019 | generic, k-RR and Laplace; Hoeffding and Bennett |
| `cheu2019` | Cheu et al., EUROCRYPT 2019 | binary randomized response |
| `feldman2021` | Feldman et al., FOCS 2021 | any randomizer, closed form and numerical |
| `feldman2023` | Feldman et al., SODA 2023 | any randomizer, closed form and numerical |
| `girgis2021` | Girgis et al., CCS, NeurIPS 2021 | Renyi DP, subsampled; lower bound by 2-RR |
| `rdp` | Canonne et al. 2020 | RDP to (epsilon, delta), best order |
| `naive` | Dwork et al. 2006, 2010; Kairouz et al. 2015 | composition of (epsilon, delta) |

All are upper bounds unless the name says `lower`, all arguments are keywords, and arguments
outside a theorem's range raise `OutOfRange` (a ValueError). This package does not use the
accountant: it is the opponent in every comparison.
"""

from __future__ import annotations

from .balle2019 import (
    GenericBlanket,
    LaplaceBlanket,
    RRBlanket,
    balle_bennett_delta,
    balle_bennett_eps0,
    balle_bennett_epsilon,
    balle_generic_delta,
    balle_generic_eps0,
    balle_generic_epsilon,
    balle_hoeffding_delta,
    balle_hoeffding_eps0,
    balle_hoeffding_epsilon,
    balle_rr_delta,
    balle_rr_eps0,
    balle_rr_epsilon,
    balle_rr_gamma,
)
from .cheu2019 import cheu_delta, cheu_eps0, cheu_epsilon
from .domain import OutOfRange
from .erlingsson2019 import erlingsson_delta, erlingsson_eps0, erlingsson_epsilon
from .feldman2021 import (
    feldman2021_delta,
    feldman2021_eps0,
    feldman2021_epsilon,
    feldman2021_numerical_delta,
    feldman2021_numerical_epsilon,
)
from .feldman2023 import (
    feldman2023_delta,
    feldman2023_eps0,
    feldman2023_epsilon,
    feldman2023_numerical_delta,
    feldman2023_numerical_epsilon,
)
from .girgis2021 import GIRGIS_ORDERS, girgis_epsilon, girgis_rdp, girgis_rdp_lower
from .naive import (
    Guarantee,
    advanced_composition,
    basic_composition,
    optimal_composition_delta,
    optimal_composition_epsilon,
)
from .rdp import DeltaAtOrder, EpsilonAtOrder, rdp_to_delta, rdp_to_epsilon

__all__ = [
    "GIRGIS_ORDERS",
    "DeltaAtOrder",
    "EpsilonAtOrder",
    "GenericBlanket",
    "Guarantee",
    "LaplaceBlanket",
    "OutOfRange",
    "RRBlanket",
    "advanced_composition",
    "balle_bennett_delta",
    "balle_bennett_eps0",
    "balle_bennett_epsilon",
    "balle_generic_delta",
    "balle_generic_eps0",
    "balle_generic_epsilon",
    "balle_hoeffding_delta",
    "balle_hoeffding_eps0",
    "balle_hoeffding_epsilon",
    "balle_rr_delta",
    "balle_rr_eps0",
    "balle_rr_epsilon",
    "balle_rr_gamma",
    "basic_composition",
    "cheu_delta",
    "cheu_eps0",
    "cheu_epsilon",
    "erlingsson_delta",
    "erlingsson_eps0",
    "erlingsson_epsilon",
    "feldman2021_delta",
    "feldman2021_eps0",
    "feldman2021_epsilon",
    "feldman2021_numerical_delta",
    "feldman2021_numerical_epsilon",
    "feldman2023_delta",
    "feldman2023_eps0",
    "feldman2023_epsilon",
    "feldman2023_numerical_delta",
    "feldman2023_numerical_epsilon",
    "girgis_epsilon",
    "girgis_rdp",
    "girgis_rdp_lower",
    "optimal_composition_delta",
    "optimal_composition_epsilon",
    "rdp_to_delta",
    "rdp_to_epsilon",
]
