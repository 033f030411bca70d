"""Closed forms: any randomizer, and binary randomized response. docs/bounds.md has statements and proofs.

`Erlingsson` (SODA 2019), as in Balle, Bell, Gascon, Nissim 2019, Theorem 4; *the constants rest on the authors' proof*.
The formula is returned as it stands even where it exceeds eps0. `Cheu` (EUROCRYPT 2019, section 4.2, in its linear
form): with probability lambda/n a user answers a fair coin, lambda = 2n/(e^eps0 + 1). `ClonesClosedForm`,
`StrongerClonesClosedForm` (Feldman, McMillan, Talwar, FOCS 2021 and SODA 2023): nothing here rests on the proof of
2023, which has an erratum. For randomizers chosen adaptively, one user after the other, those of 2021 rest on the
paper's proof; those of 2023 need one randomizer for all users. What these papers evaluate numerically is the pair of
``ShuffledLDP(eps0, n, analysis="clones")``, or "stronger-clones".
"""

from __future__ import annotations

import math

from .bound import Bound, raised


class Erlingsson(Bound):
    """12 eps0 sqrt(log(1/delta)/n), Erlingsson et al. 2019: any eps0-LDP randomizer."""

    name = "shuffling, closed form"
    source = "Erlingsson et al. 2019"
    needs = "eps0 < 1/2, delta < 1/100 and n >= 1000"

    def formula(self, eps0: float, delta: float, n: int) -> float:
        if not (eps0 < 0.5 and delta < 0.01 and n >= 1000):
            return math.inf
        return raised(12 * eps0 * math.sqrt(-math.log(delta) / n))


class Cheu(Bound):
    """(1 - s/n) sqrt(32 log(4/delta)/s), s = lambda - sqrt(2 lambda log(2/delta)): binary randomized response."""

    name = "binary randomized response"
    source = "Cheu et al. 2019"
    only = "binary randomized response"
    needs = "2n/(e^eps0 + 1) >= 14 log(4/delta)"

    def formula(self, eps0: float, delta: float, n: int) -> float:
        coins = 2 * n / (math.exp(eps0) + 1)
        log4, log2 = math.log(4) - math.log(delta), math.log(2) - math.log(delta)
        if not coins >= 14 * log4:
            return math.inf
        sure = coins - math.sqrt(2 * coins * log2)
        return raised((1 - sure / n) * math.sqrt(32 * log4 / sure))


class ClonesClosedForm(Bound):
    """log(1 + tanh(eps0/2) (8 sqrt(e^eps0 log(4/delta)/n) + 8 e^eps0/n)), Feldman et al. 2021, Theorem 3.1."""

    name = "clones, closed form"
    source = "Feldman et al. 2021, Thm 3.1"
    needs = "eps0 <= log(n/(16 log(2/delta)))"

    def formula(self, eps0: float, delta: float, n: int) -> float:
        per_user, log_delta = math.exp(eps0) / n, math.log(delta)
        if not 16 * per_user * (math.log(2) - log_delta) <= 1:
            return math.inf
        bracket = math.sqrt(per_user * (math.log(4) - log_delta)) + per_user
        return raised(math.log1p(8 * math.tanh(eps0 / 2) * bracket))


class StrongerClonesClosedForm(Bound):
    """log(1 + (e^eps0 - 1) (4 sqrt(2 log(4/delta)/((e^eps0 + 1) n)) + 4/n)), Feldman et al. 2023, section 3."""

    name = "stronger clones, closed form"
    source = "Feldman et al. 2023"
    needs = "eps0 <= log(n/(8 log(2/delta)) - 1)"

    def formula(self, eps0: float, delta: float, n: int) -> float:
        both, log_delta = math.exp(eps0) + 1, math.log(delta)
        if not 8 * both * (math.log(2) - log_delta) <= n:
            return math.inf
        root = math.sqrt(2 * (math.log(4) - log_delta) / (both * n))
        return raised(math.log1p(4 * math.expm1(eps0) * (root + 1 / n)))
