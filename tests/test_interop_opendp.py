"""OpenDP: whatever is read off the profile is an upper bound, and close to ours."""

from __future__ import annotations

import math
from typing import Any

import mpmath as mp
import pytest
from oracles import gaussian

from pld_shuffle import Accountant, Gaussian, ShuffledLDP, ShuffledRR, Subsampled

dp: Any = pytest.importorskip("opendp.prelude", reason="needs OpenDP: pip install 'pld-shuffle[opendp]'")

from pld_shuffle.interop.opendp import to_opendp  # noqa: E402

dp.enable_features("contrib", "honest-but-curious")


@pytest.mark.parametrize(
    ("mechanism", "rounds"),
    [
        (ShuffledLDP(2.0, 300, analysis="stronger-clones"), 1),
        (ShuffledLDP(4.0, 10_000, analysis="stronger-clones"), 10),
        (Subsampled(ShuffledLDP(3.0, 100), population=1000, analysis="general"), 50),
        (ShuffledRR(3, 20, gamma=0.5), 2),  # mass at infinite loss
        (Gaussian(sigma=2.0), 3),
    ],
)
def test_the_profile_is_above_the_truth_and_close(mechanism: Any, rounds: int) -> None:
    """Against a more accurate accountant: at least its lower ends, at most 0.12 % above its upper ones."""
    profile = to_opendp(Accountant().compose(mechanism, rounds))
    exact = Accountant(1e-4).compose(mechanism, rounds)
    for eps in (0.0, 0.2, 1.0, 2.5):
        truth = exact.delta_bounds(eps)
        assert truth.lower <= profile.delta(epsilon=eps) <= truth.upper * 1.0012
    for delta in (1e-2, 1e-5, 1e-8):
        truth = exact.epsilon_bounds(delta)
        found = profile.epsilon(delta=delta)
        if math.isinf(truth.lower):
            assert found == math.inf
        else:
            assert truth.lower <= found <= truth.upper * 1.0012


def test_gaussian_noise_has_its_closed_form() -> None:
    """Between grid points too: never below delta(eps) = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu)."""
    profile = to_opendp(Accountant().compose(Gaussian(sigma=2.0), 3))
    for i in range(60):
        eps = 0.003 + 0.0973 * i
        exact = gaussian(mp.sqrt(3) / 2, eps)
        assert exact <= profile.delta(epsilon=eps) <= exact * (1 + 1.2e-3)


def test_pure_rounds_end_at_their_largest_loss() -> None:
    """At delta = 0 the sum of the largest losses, on the safe side."""
    profile = to_opendp(Accountant().compose(ShuffledLDP(1.5, 50, analysis="stronger-clones"), 4))
    assert 6.0 <= profile.epsilon(delta=0.0) <= 6.0 * (1 + 1e-12)
    assert profile.delta(epsilon=6.5) == 0.0


def test_later_rounds_do_not_change_a_profile() -> None:
    """The profile is of the ledger as it was."""
    accountant = Accountant().compose(ShuffledLDP(1.0, 100, analysis="stronger-clones"))
    profile = to_opendp(accountant)
    before = profile.delta(epsilon=0.3)
    accountant.compose(ShuffledLDP(3.0, 100, analysis="stronger-clones"), 5)
    assert profile.delta(epsilon=0.3) == before < to_opendp(accountant).delta(epsilon=0.3)


def test_bad_questions_and_arguments() -> None:
    """Refused by name."""
    profile = to_opendp(Accountant().compose(ShuffledLDP(1.0, 100, analysis="stronger-clones")))
    for bad in (-0.5, math.nan):
        with pytest.raises(dp.OpenDPException, match="epsilon must"):
            profile.delta(epsilon=bad)
    with pytest.raises(TypeError, match="accountant must"):
        to_opendp(ShuffledLDP(1.0, 100, analysis="stronger-clones"))  # type: ignore[arg-type]
