"""What mechanisms share: sentences for `assumptions`, limits of eps0 and of rates, bounds of a largest loss."""

from __future__ import annotations

from typing import Any

from ..numerics.sides import Bounds
from ..numerics.validation import positive_float, unit_interval
from ..randomizers.border import EPS0_MAX

SMALLEST_EPS0 = 1e-9
SMALLEST_RATE = 1e-12  # of a hidden cohort, or of a Poisson sample
SUBSTITUTION = "neighbouring datasets differ in the value of one user (substitution)"
OUTPUTS_ONLY = "what users send may depend on what was published before, but not on who took part"
CONCURRENT = (
    "rounds of other entries may come in between (concurrent composition, Vadhan and Zhang 2023)"
)
EVERYBODY = "all n users take part; n counts the users whose reports are shuffled together"


def local_epsilon(value: Any) -> float:
    """`value` as a local epsilon in [SMALLEST_EPS0, EPS0_MAX]."""
    eps0 = positive_float("eps0", value)
    if not SMALLEST_EPS0 <= eps0 <= EPS0_MAX:
        raise ValueError(f"eps0 must be in [{SMALLEST_EPS0:g}, {EPS0_MAX:g}], got {value!r}")
    return eps0


def sampling_rate(value: Any) -> float:
    """`value` as the share of users who take part, in [SMALLEST_RATE, 1]."""
    rate = unit_interval("rate", value)
    if not rate >= SMALLEST_RATE:
        raise ValueError(f"rate must be at least {SMALLEST_RATE:g}, got {rate!r}")
    return rate


def exactly(loss: float) -> Bounds:
    """The bounds of a largest loss that is known exactly."""
    return Bounds(loss, loss)


def nearly(loss: float) -> Bounds:
    """The bounds of a largest loss that was rounded a few times."""
    return Bounds(loss * (1.0 - 4e-15), loss * (1.0 + 1e-15))
