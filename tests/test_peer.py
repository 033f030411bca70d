"""An independent peer: dp_accounting composes the same single-round pair on its own grid."""

from __future__ import annotations

import math
import warnings

import pytest

from pld_shuffle import Accountant, ShuffledLDP, ShuffledRR, Side
from pld_shuffle.mechanisms import Mechanism

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")


@pytest.mark.parametrize(
    "mechanism,rounds",
    [
        (ShuffledLDP(2.0, 800, analysis="stronger-clones"), 20),
        (ShuffledLDP(1.0, 300, "clones"), 50),
        (ShuffledRR(4, 500, gamma=0.4, adversary="weak"), 10),
    ],
)
def test_dp_accounting_agrees_within_its_grid(mechanism: Mechanism, rounds: int) -> None:
    one = mechanism.pld(step=mechanism.pair.scale / 400, side=Side.UPPER)
    grid = mechanism.pair.scale / 500
    log_p, log_q = {}, {}
    for i, (loss, mass) in enumerate(zip(one.losses, one.masses, strict=True)):
        if mass > 1e-25:
            log_p[i] = math.log(mass)
            log_q[i] = math.log(mass) - loss
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        above = pld.from_two_probability_mass_functions(
            log_p, log_q, pessimistic_estimate=True, value_discretization_interval=grid
        ).self_compose(rounds)
        below = pld.from_two_probability_mass_functions(
            log_p, log_q, pessimistic_estimate=False, value_discretization_interval=grid
        ).self_compose(rounds)
    ours = Accountant().compose(mechanism, rounds)
    drift = rounds * grid  # it rounds every loss up (or down) to its grid
    noise = 1e-11  # of its transforms and truncations
    for multiple in (1.0, 3.0, 5.0):
        eps = multiple * math.sqrt(rounds) * mechanism.pair.scale + drift
        bounds = ours.delta_bounds(eps)
        assert above.get_delta_for_epsilon(eps) >= bounds.lower * (1 - 1e-3) - noise
        assert above.get_delta_for_epsilon(eps + drift) <= bounds.upper * (1 + 1e-3) + noise
        assert below.get_delta_for_epsilon(eps) <= bounds.upper * (1 + 1e-3) + noise
        assert below.get_delta_for_epsilon(eps - drift) >= bounds.lower * (1 - 1e-3) - noise
