"""Reference values through the library: published curves, and values computed elsewhere.

A value printed with d digits is met when the certified bracket meets the interval of its rounding;
and the bracket itself has at most the relative width rtol on delta. The values come from Koskela,
Heikkila and Honkela's curves and from exact summations outside of this project.
"""

from __future__ import annotations

import math
from decimal import Decimal

import oracles as o
import pytest

from pld_shuffle import Accountant, Bounds, ShuffledLDP, ShuffledRR, Subsampled

Mechanism = ShuffledLDP | ShuffledRR | Subsampled
RTOL = 1e-3


def spent(mechanism: Mechanism, rounds: int, *, delta: float, rtol: float = RTOL) -> Bounds:
    return Accountant(rtol=rtol).compose(mechanism, rounds).epsilon_bounds(delta)


def agrees(bounds: Bounds, printed: str) -> None:
    """The bracket meets `printed` +- half a unit of its last digit, and is narrow."""
    value = Decimal(printed)
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    half = 0.5 * 10.0**exponent
    assert bounds.lower <= bounds.upper
    assert bounds.lower <= float(value) + half and bounds.upper >= float(value) - half, bounds
    assert bounds.upper - bounds.lower <= max(2e-3 * bounds.upper, half), bounds


def narrow(bounds: Bounds) -> None:
    assert 0.0 < bounds.lower <= bounds.upper <= (1.0 + RTOL) * bounds.lower


# --- n = 10^4, eps0 = 4, clones, ten rounds ---------------------------------------------------


def test_ten_rounds_of_clones() -> None:
    """delta(1) in [3.4446e-3, 3.4484e-3], delta(6) = 3.330e-38 to 0.1%."""
    accountant = Accountant().compose(ShuffledLDP(eps0=4.0, n=10_000, analysis="clones"), 10)
    moderate = accountant.delta_bounds(1.0)
    narrow(moderate)
    assert 3.4446e-3 <= accountant.get_delta(1.0) <= 3.4484e-3
    assert moderate.lower <= 3.44480e-3 <= moderate.upper
    tiny = accountant.delta_bounds(6.0)
    narrow(tiny)
    assert accountant.get_delta(6.0) == pytest.approx(3.330e-38, rel=1e-3)
    assert tiny.lower <= 3.3296e-38 * (1 + 1e-5) and tiny.upper >= 3.3296e-38 * (1 - 1e-5)


def test_ten_rounds_of_clones_independently() -> None:
    """The same two values by direct convolution of positive numbers."""
    pair = o.clones_float(10_000, 4.0)
    for epsilon, cells, digits in ((1.0, 400, 3.444795e-3), (6.0, 1600, 3.3296e-38)):
        value, doubt = o.delta_direct_float([(pair, 10)], epsilon, cells)
        assert value == pytest.approx(digits, rel=5e-5) and doubt <= 2e-3 * value


# --- one round --------------------------------------------------------------------

SINGLE = [
    (1_000, 1.0, 1e-6, "0.1824123", "0.1486706"),
    (10_000, 1.0, 1e-6, "0.0530053", "0.0432062"),
    (100_000, 4.0, 1e-6, "0.1697697", "0.1181531"),
    (1_000_000, 4.0, 1e-8, "0.0641968", "0.0450730"),
]


@pytest.mark.parametrize(("n", "eps0", "delta", "clones", "stronger"), SINGLE)
def test_single_round(n: int, eps0: float, delta: float, clones: str, stronger: str) -> None:
    for analysis, printed in (("clones", clones), ("stronger-clones", stronger)):
        mechanism = ShuffledLDP(eps0=eps0, n=n, analysis=analysis)
        agrees(spent(mechanism, 1, delta=delta), printed)


@pytest.mark.parametrize(("n", "eps0", "delta", "clones", "stronger"), SINGLE)
def test_single_round_sharply(
    n: int, eps0: float, delta: float, clones: str, stronger: str
) -> None:
    """At rtol = 1e-5 the bracket itself is within the printed digits."""
    for analysis, printed in (("clones", clones), ("stronger-clones", stronger)):
        mechanism = ShuffledLDP(eps0=eps0, n=n, analysis=analysis)
        bounds = spent(mechanism, 1, delta=delta, rtol=1e-5)
        assert bounds.lower == pytest.approx(float(printed), abs=1.5e-7)
        assert bounds.upper == pytest.approx(float(printed), abs=1.5e-7)


# --- how near to the best possible --------------------------------------------------


@pytest.mark.parametrize(
    ("n", "eps0", "attack", "stronger", "clones"),
    [
        (100_000, 8.0, 1.1763, "1.1766", "2.1886"),
        (10_000, 4.0, 0.4066, "0.4108", "0.6009"),
        (10_000, 1.0, 0.0380, "0.0432", "0.0530"),
    ],
)
def test_analyses_and_the_attack(
    n: int, eps0: float, attack: float, stronger: str, clones: str
) -> None:
    bounds = spent(ShuffledLDP(eps0=eps0, n=n, analysis="stronger-clones"), 1, delta=1e-6)
    agrees(bounds, stronger)
    assert bounds.lower > attack
    agrees(spent(ShuffledLDP(eps0=eps0, n=n, analysis="clones"), 1, delta=1e-6), clones)


def test_binary_weak_adversary_is_stronger_clones() -> None:
    agrees(spent(ShuffledRR(k=2, n=10_000, eps0=4.0, adversary="weak"), 1, delta=1e-6), "0.4108")


# --- the curve of Koskela et al., figure 1 -----------------------------------------

MIDDLE = 0.1 + 0.9 * 20 / 59


@pytest.mark.parametrize(
    ("rounds", "epsilon", "printed"),
    [
        (1, 0.1, "9.209162e-3"),
        (1, MIDDLE, "1.262021e-6"),
        (1, 1.0, "1.923059e-21"),
        (4, 0.1, "4.278778e-2"),
        (4, MIDDLE, "2.175990e-3"),
        # Printed as 3.31353e-8 in the theory notes; connect-the-dots on plain atoms with h = 1e-4, 5e-5,
        # 2.5e-5, extrapolated, gives this.
        (4, 1.0, "3.3135466e-8"),
    ],
)
def test_figure_one(rounds: int, epsilon: float, printed: str) -> None:
    mechanism = ShuffledLDP(eps0=4.0, n=10_000, analysis="stronger-clones")
    bounds = Accountant().compose(mechanism, rounds).delta_bounds(epsilon)
    narrow(bounds)
    agrees(bounds, printed)
    sharp = Accountant(rtol=1e-5).compose(mechanism, rounds).delta_bounds(epsilon)
    assert sharp.lower <= float(printed) * (1 + 2e-6)
    assert sharp.upper >= float(printed) * (1 - 2e-6)
    assert sharp.upper <= float(printed) * (1 + 1.5e-5)
    assert sharp.lower >= float(printed) * (1 - 1.5e-5)


# --- k-RR -------------------------------------------------------------------

RR_ROUNDS = (1, 4, 16)
RR_VALUES = {
    "strong": (".530762", "1.074038", "2.255169"),
    "strong-conditional": (".54733", "1.17464", "2.58666"),
    "weak": (".389063", ".842216", "1.847519"),
}


@pytest.mark.parametrize("adversary", RR_VALUES)
@pytest.mark.parametrize("place", range(3))
def test_randomised_response(adversary: str, place: int) -> None:
    mechanism = ShuffledRR(k=4, n=1_000, gamma=0.25, adversary=adversary)
    bounds = spent(mechanism, RR_ROUNDS[place], delta=1e-4)
    agrees(bounds, RR_VALUES[adversary][place])


@pytest.mark.parametrize(
    ("adversary", "printed"),
    [("strong", "2.838"), ("strong-conditional", "3.200"), ("weak", "2.309")],
)
def test_sixteen_rounds_of_randomised_response(adversary: str, printed: str) -> None:
    mechanism = ShuffledRR(k=4, n=1_000, gamma=0.25, adversary=adversary)
    agrees(spent(mechanism, 16, delta=10.0**-5.5), printed)


# --- subsampling --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rounds", "clones", "stronger"),
    [
        (10, "0.02622", "0.01703"),
        (100, "0.08872", "0.05949"),
        (1_000, "0.30947", "0.20898"),
        (10_000, "1.0874", "0.7328"),
    ],
)
def test_subsampled_rounds(rounds: int, clones: str, stronger: str) -> None:
    """Cohorts of 1000 of 10^5, eps0 = 3, delta = 1e-5."""
    for analysis, printed in (("clones", clones), ("stronger-clones", stronger)):
        cohort = ShuffledLDP(eps0=3.0, n=1_000, analysis=analysis)
        bounds = spent(
            Subsampled(cohort, population=100_000, analysis="general"), rounds, delta=1e-5
        )
        agrees(bounds, printed)
        if analysis == "clones" and rounds == 10_000:
            assert bounds.lower > 1.08  # with one half of the pair only it would be 0.986


def test_rate_and_population_are_the_same() -> None:
    cohort = ShuffledLDP(eps0=3.0, n=1_000, analysis="stronger-clones")
    by_rate = spent(Subsampled(cohort, rate=0.01, analysis="general"), 100, delta=1e-5)
    by_population = spent(
        Subsampled(cohort, population=100_000, analysis="general"), 100, delta=1e-5
    )
    assert by_rate == by_population


# --- pure DP -----------------------------------------------------------------------------------


def test_largest_losses() -> None:
    """eps0 for clones and the weak adversary, infinite for the strong one, log(1 + q(e^eps0 - 1))
    on a cohort."""
    assert ShuffledLDP(
        eps0=4.0, n=10_000, analysis="stronger-clones"
    ).pair.max_loss.upper == pytest.approx(4.0, rel=1e-14)
    weak = ShuffledRR(k=4, n=1_000, eps0=2.0, adversary="weak")
    assert weak.pair.max_loss.upper == pytest.approx(2.0, rel=1e-12)
    assert ShuffledRR(k=4, n=1_000, gamma=0.25).pair.max_loss.upper == math.inf
    cohort = Subsampled(
        ShuffledLDP(eps0=4.0, n=10_000, analysis="stronger-clones"), rate=0.01, analysis="general"
    )
    assert cohort.pair.max_loss.upper == pytest.approx(
        math.log1p(0.01 * math.expm1(4.0)), rel=1e-12
    )
    accountant = Accountant().compose(
        ShuffledLDP(eps0=4.0, n=10_000, analysis="stronger-clones"), 10
    )
    assert accountant.delta_bounds(40.0) == Bounds(0.0, 0.0)
    assert accountant.get_epsilon(0.0) == pytest.approx(40.0, rel=1e-12)
