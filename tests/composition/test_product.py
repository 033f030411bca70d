"""Products at all or few frequencies, against direct convolutions of the same laws in long doubles."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from pld_shuffle.composition import product as module
from pld_shuffle.composition.moments import TooExpensive
from pld_shuffle.composition.plan import Plan
from pld_shuffle.composition.pld import PLD
from pld_shuffle.composition.product import LatticeIntegral, LatticeProducts
from pld_shuffle.numerics.sides import Side

STEP = 0.01


def law(seed: int, side: Side, points: int = 60, infinity: float = 0.0) -> PLD:
    """Random masses, most of them around loss 0."""
    rng = np.random.default_rng(seed)
    low = -points // 2 + int(rng.integers(-4, 5))
    masses = rng.random(points) * np.exp(-0.5 * (np.linspace(-3.0, 3.0, points)) ** 2)
    masses *= (1.0 - infinity) / masses.sum()
    return PLD.build(masses, low, step=STEP, side=side, infinity=infinity, max_loss=math.inf, loss_error=0.0)


def exact(laws: list[PLD], counts: list[int], eps: float) -> float:
    """delta of the product, by convolutions in long doubles: nothing is subtracted."""
    total, low, finite = np.ones(1, np.longdouble), 0, 1.0
    for one, count in zip(laws, counts, strict=True):
        for _ in range(count):
            total = np.convolve(total, one.masses.astype(np.longdouble))
            low += one.low
            finite *= 1.0 - one.infinity
    x = (low + np.arange(total.size)) * np.longdouble(STEP) - np.longdouble(eps)
    return float((total * -np.expm1(-np.maximum(x, 0.0))).sum()) + 1.0 - finite


def plan_of(laws: list[PLD], counts: list[int], eps: float) -> Plan:
    """A plan whose tilt has its mean near eps."""
    variance = mean = 0.0
    for one, count in zip(laws, counts, strict=True):
        weight = one.masses / one.masses.sum()
        mean += count * float(weight @ one.losses)
        variance += count * float(weight @ (one.losses - weight @ one.losses) ** 2)
    tilt = max((eps - mean) / variance, 0.0)
    return Plan(tilt=tilt, variance=variance, log_delta=-10.0, rounds=sum(counts), rtol=1e-3)


def read(
    laws: list[PLD], counts: list[int], plan: Plan, eps: list[float], sure: int = 2
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Bounds on delta of the product; the first `sure` laws choose the frequencies."""
    number = np.array(counts, np.float64)
    times = float(number.sum() / number[:sure].sum())
    integral = LatticeIntegral(laws[:sure], number[:sure], plan, times=times, terms=len(laws))
    rows = np.stack([*integral.rows, *(integral.row(one) for one in laws[sure:])])
    products = LatticeProducts(integral, (number @ rows)[None, :])
    return products.lowers(np.array(eps)), products.uppers(np.array(eps))


COUNTS = [7, 5, 1, 3]
EPSILONS = [0.0, 0.137, 0.5, 1.0, 1.9]


@pytest.mark.parametrize("few", [True, False])
@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize("eps", [0.3, 1.2])
def test_both_bounds_enclose_the_exact_product(
    side: Side, eps: float, few: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums of waves one by one, and by a transform back."""
    monkeypatch.setattr(module, "TRANSFORM_WORK", 1e9 if few else 0)
    laws = [law(seed, side, 50 + 7 * seed, 1e-9 * seed) for seed in range(4)]
    lower, upper = read(laws, COUNTS, plan_of(laws, COUNTS, eps), EPSILONS)
    for k, at in enumerate(EPSILONS):
        truth = exact(laws, COUNTS, at)
        assert lower[k] <= truth * (1.0 + 1e-15)
        assert upper[k] >= truth * (1.0 - 1e-15)


@pytest.mark.parametrize("what", ["period", "frequencies", "both"])
def test_what_is_left_out_is_booked(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A period far too short, and far too few frequencies: wide, but valid."""
    if what != "frequencies":
        monkeypatch.setattr(module, "MARGIN", 0.35)
    if what != "period":
        monkeypatch.setattr(module, "BOOKED_SHARE", 1e3)
    laws = [law(seed, Side.UPPER) for seed in range(4)]
    for tilted in (0.1, 0.4, 0.9):
        eps = [tilted, 0.8 * tilted, 1.3 * tilted]
        lower, upper = read(laws, COUNTS, plan_of(laws, COUNTS, tilted), eps)
        truth = [exact(laws, COUNTS, at) for at in eps]
        assert np.all(lower <= truth) and np.all(upper >= truth)
        assert np.any(upper > lower * (1.0 + 1e-6))


def test_frequencies_at_which_a_law_has_another_peak_are_kept() -> None:
    """Masses at every tenth point: |phi| is 1 again at ten frequencies."""
    masses = np.zeros(61)
    masses[::10] = np.array([1.0, 6.0, 15.0, 20.0, 15.0, 6.0, 1.0]) / 64.0
    regular = PLD.build(masses, -30, step=STEP, side=Side.UPPER, infinity=0.0, max_loss=0.3, loss_error=0.0)
    laws, counts = [regular, law(1, Side.UPPER)], [12, 1]
    eps = [0.4, 0.55]
    lower, upper = read([regular], [12], plan_of([regular], [12], 0.5), eps, 1)
    truth = [exact([regular], [12], at) for at in eps]
    assert np.all(lower <= truth) and np.all(upper >= truth)
    assert np.all(upper <= lower * (1.0 + 1e-6))
    lower, upper = read(laws, counts, plan_of(laws, counts, 0.5), eps)
    truth = [exact(laws, counts, at) for at in eps]
    assert np.all(lower <= truth) and np.all(upper >= truth)


def test_too_many_nodes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "NUMBERS", 10)
    one = law(3, Side.UPPER)
    with pytest.raises(TooExpensive):
        LatticeIntegral([one], np.ones(1), plan_of([one], [1], 0.2))
