"""OpenDP (0.14 or later): what an accountant has proved, as a `PrivacyProfile` of OpenDP.

Our curve delta(epsilon) is above the truth everywhere, so what OpenDP reads off it is an upper bound as well. The
neighbours differ in one user's value: in OpenDP the change-one distance at 1, of data whose size is known.

OpenDP's bisection asks about sixty epsilons. So the accountant is asked on a grid of relative width 2^-11 only, and
between two grid points the curve is the chord: delta is convex in e^epsilon, so the chord of two upper bounds is an
upper bound. Eight standard deviations out it is 1e-4 too high; the accountant's own brackets are 1e-3 wide.
"""

from __future__ import annotations

import copy
import math
import warnings
from functools import cache
from typing import Any

try:
    from opendp.measures import new_privacy_profile
except ImportError as error:
    raise ImportError(
        "pld_shuffle.interop.opendp needs OpenDP 0.14 or later: pip install 'pld-shuffle[opendp]'"
    ) from error

from ..accountant import Accountant
from ..composition.composition import AccuracyWarning

GRID = 2**12  # of mantissas, which are in [1/2, 1); from this epsilon on the cells are too wide for chords


def to_opendp(accountant: Accountant) -> Any:
    """The privacy profile of everything that `accountant` has composed so far; later rounds do not count.

    ``profile.delta(epsilon)`` asks the accountant at most two questions, ``profile.epsilon(delta)`` about
    thirty; answers are kept. The curve is 0 from the sum of the largest losses on, if that is finite. Raises
    TypeError for anything but an Accountant; for epsilon below 0 or nan OpenDP reports our ValueError.
    OpenDP wants its features "contrib" and "honest-but-curious" enabled for curves that it did not make.
    """
    if not isinstance(accountant, Accountant):
        raise TypeError(f"accountant must be an Accountant, got {accountant!r}")
    frozen = copy.copy(accountant)

    @cache
    def asked(epsilon: float) -> float:
        with warnings.catch_warnings():
            # A wide bracket is no worry here: its upper end is asked for, not its width.
            warnings.simplefilter("ignore", AccuracyWarning)
            return float(frozen.get_delta(epsilon))

    def curve(epsilon: float) -> float:
        if not 0.0 < epsilon < GRID:  # also refuses what is no epsilon
            return asked(epsilon)
        mantissa, exponent = math.frexp(epsilon)
        place = math.floor(mantissa * GRID)
        left, right = (math.ldexp((place + i) / GRID, exponent) for i in (0, 1))
        if left == epsilon:
            return asked(epsilon)
        above = asked(left)
        width = math.expm1(right - left)
        near_right = math.expm1(epsilon - left) / width
        near_left = math.exp(epsilon - left) * math.expm1(right - epsilon) / width
        chord = (near_left * above + near_right * asked(right)) * (1.0 + 1e-14)
        return min(chord, above)

    return new_privacy_profile(curve)


__all__ = ["to_opendp"]
