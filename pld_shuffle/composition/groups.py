"""Groups: g users at once, or one user who sends g of the reports (docs/people.md, section 8).

Between two datasets that differ in g users lie g steps of one user each, and H_{ab}(P||R) <= H_a(P||Q) + a H_b(Q||R).
So on the composed profile of one user

    delta_g(eps) <= delta_1(eps/g) (1 + e^(eps/g) + ... + e^((g-1) eps/g)) = delta_1(eps/g) (e^eps - 1)/(e^(eps/g) - 1).

An upper end. The lower end of one user is one of the group too: the others of it may hold the same in both.

Each of these steps must be a change of *one user* whom the mechanism draws like every other. Where who takes part is
hidden and the reports of one user are drawn together, the dataset in between is none: so there a group is refused
unless it is `DrawnApart`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..numerics.search import crossing
from .composition import Composition

Array = NDArray[np.float64]


class DrawnApart(int):
    """A group's size, where each of its users (or of one user's reports) is drawn by itself, like everybody's.

    >>> from pld_shuffle import Accountant, ShuffledLDP, Subsampled
    >>> acc = Accountant().compose(Subsampled(ShuffledLDP(eps0=1.0, n=1_000), population=10_000))
    >>> round(acc.get_epsilon(1e-6, group=DrawnApart(2)), 3)
    0.023
    """


_DOWN = 1.0 - 4e-16
LARGEST = 700.0  # of the group's epsilon: beyond it, delta is 1 or the losses end
STRIDE = 1.25


def group_deltas(composition: Composition, epsilon: Array, group: int) -> Any:
    """Upper bounds on delta at epsilon in [0, inf], of any shape, for `group` users."""
    found = [_delta(composition, float(eps) / group, group) for eps in epsilon.ravel()]
    return np.reshape(found, epsilon.shape) if epsilon.ndim else found[0]


def group_epsilons(composition: Composition, delta: Array, group: int) -> Any:
    """Upper bounds on the epsilon of delta in [0, 1], of any shape, for `group` users; inf where none is found."""
    found = [_epsilon(composition, float(allowed), group) for allowed in delta.ravel()]
    return np.reshape(found, delta.shape) if delta.ndim else found[0]


def _delta(composition: Composition, share: float, group: int) -> float:
    """The bound at epsilon = group * share."""
    one = float(composition.deltas(share * _DOWN).upper)
    if one == 0.0:
        return 0.0
    if group * share > LARGEST:
        return 1.0
    steps = math.expm1(group * share) / math.expm1(share) if share > 1e-300 else float(group)
    return min(1.0, one * steps * (1.0 + 4e-16 * (8.0 + 2.0 * group * share)))


def _epsilon(composition: Composition, allowed: float, group: int) -> float:
    """Any epsilon whose bound is at most `allowed` is one."""

    def excess(share: Any) -> float:
        return _delta(composition, float(share), group) - allowed

    end = composition.max_loss
    if allowed == 0.0:
        return group * end * (1.0 + 4e-16)
    if excess(0.0) <= 0.0:
        return 0.0
    low, high = 0.0, float(composition.epsilons(allowed).upper)
    if high == math.inf:
        return math.inf
    while excess(high) > 0.0:
        low, high = high, min(max(STRIDE * high, 1e-9), end * (1.0 + 1e-15))
        if group * high > LARGEST and high < end:
            return group * end * (1.0 + 4e-16)
    found = crossing(excess, (low, excess(low)), (high, excess(high)), rtol=1e-9)
    return group * float(found) * (1.0 + 4e-16)
