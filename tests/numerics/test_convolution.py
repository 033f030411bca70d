"""Tilted products against direct convolution of nonnegative numbers: at deltas no plain transform sees, and
with the certificate (`Law.error`, `Law.relative`) checked as a total variation."""

from __future__ import annotations

import math
from functools import reduce

import numpy as np
import pytest

from pld_shuffle import reference as r
from pld_shuffle.numerics import convolution as c

STEP = 0.02


def lattice_law(n: int, eps0: float, step: float = STEP) -> r.Lattice:
    return r.connect_dots(r.atoms(r.stronger_clones(n, eps0)), step)


QUIET, LOUD = lattice_law(2_000, 1.0), lattice_law(60, 2.0)
LEDGERS = {
    "two": [(QUIET, 1), (LOUD, 1)],
    "many quiet": [(QUIET, 24)],
    "both": [(QUIET, 9), (LOUD, 5)],
}


def direct(ledger: list[tuple[r.Lattice, int]]) -> r.Lattice:
    return reduce(r.compose, [law for law, count in ledger for _ in range(count)])


def saddle(ledger: list[tuple[r.Lattice, int]], eps: float) -> float:
    """The tilt at which the composed loss has mean eps, by bisection."""

    def mean(tilt: float) -> float:
        total = 0.0
        for law, count in ledger:
            loss = law.step * (law.low + np.arange(law.mass.size))
            weight = law.mass * np.exp(tilt * (loss - loss[-1]))
            total += count * float(weight @ loss / weight.sum())
        return total

    low, high = 0.0, 2_000.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if mean(middle) > eps else (middle, high)
    return high


def factors(ledger: list[tuple[r.Lattice, int]], tilt: float) -> list[tuple[c.Law, int]]:
    return [(c.tilted(law.mass, law.low, law.step, tilt), count) for law, count in ledger]


def exact_tilted(laws: list[tuple[c.Law, int]]) -> tuple[np.ndarray, int]:
    """The direct product of the stored tilted masses, and its first index."""
    masses = [law.mass for law, count in laws for _ in range(count)]
    return reduce(np.convolve, masses), sum(law.low * count for law, count in laws)


def variation(found: c.Law, exact: np.ndarray, low: int) -> float:
    """sum_j |mass_j - exact_j| over all of both."""
    first = min(found.low, low)
    size = max(found.low + found.mass.size, low + exact.size) - first
    left, right = np.zeros(size), np.zeros(size)
    left[found.low - first : found.low - first + found.mass.size] = found.mass
    right[low - first : low - first + exact.size] = exact
    return math.fsum(np.abs(left - right))


# --- deltas ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LEDGERS)
@pytest.mark.parametrize("share", [0.0, 0.02, 0.1, 0.3, 0.6, 0.9])
def test_delta_to_relative_accuracy(name: str, share: float) -> None:
    """Down to 1e-100: within the bracket, which is narrow; the direct product is good to 1e-12."""
    ledger = LEDGERS[name]
    whole = direct(ledger)
    eps = share * whole.step * (whole.low + whole.mass.size - 1)
    truth = r.delta(whole, eps)
    law = c.product(factors(ledger, saddle(ledger, eps)), 1e-25)
    lower, upper = c.Reader(law).bracket(eps)
    assert lower * (1.0 - 1e-11) <= truth <= upper * (1.0 + 1e-11)
    if truth > 1e-120:
        assert upper - lower <= 2e-8 * truth, (upper / lower - 1.0, truth)


def test_those_deltas_are_below_the_noise_of_a_transform() -> None:
    whole = direct(LEDGERS["many quiet"])
    top = whole.step * (whole.low + whole.mass.size - 1)
    assert r.delta(whole, 0.1 * top) < 1e-14 and 0.0 < r.delta(whole, 0.3 * top) < 1e-100


@pytest.mark.parametrize("tilt", [0.0, 3.0, 40.0])
def test_reading_one_law(tilt: float) -> None:
    reader = c.Reader(c.tilted(LOUD.mass, LOUD.low, LOUD.step, tilt))
    for eps in np.linspace(-1.0, 2.2, 33):
        lower, upper = reader.bracket(float(eps))
        truth = r.delta(LOUD, float(eps))
        assert lower * (1.0 - 1e-13) <= truth <= upper * (1.0 + 1e-13) + 1e-290
        if tilt == 0.0:
            assert upper - lower <= 1e-12 * upper + 1e-290
    assert reader.noise(math.inf) == 0.0


# --- the certificate ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LEDGERS)
@pytest.mark.parametrize("tail", [1e-2, 1e-6, 1e-12, 1e-30])
@pytest.mark.parametrize("tilt", [0.0, 8.0])
def test_the_error_covers_windows_aliases_and_rounding(name: str, tail: float, tilt: float) -> None:
    laws = factors(LEDGERS[name], tilt)
    found = c.product(laws, tail)
    actual = variation(found, *exact_tilted(laws))
    assert (found.mass >= 0.0).all()
    assert actual <= found.error + found.relative
    assert found.error <= 4.0 * tail + 1e-9  # and it is not merely large


def test_the_error_of_the_factors_is_carried() -> None:
    """A factor stored with a known error, against the product of the true masses."""
    true = factors(LEDGERS["both"], 4.0)
    law, count = true[0]
    wrong = law.mass.copy()
    middle = int(np.argmax(wrong))
    wrong[middle] += 1e-5
    stored = c.Law(wrong, law.low, law.step, law.tilt, law.log_scale, 1e-5, law.relative)
    found = c.product([(stored, count), *true[1:]], 1e-20)
    actual = variation(found, *exact_tilted(true))
    assert 5e-5 < actual <= found.error <= 2.0 * count * 1e-5


def test_masses_beyond_the_window_are_folded_and_booked() -> None:
    """A law that is wider than the transform: what wraps around is in the error."""
    mass = np.exp(-0.5 * (np.arange(-80, 81) / 10.0) ** 2)
    law = c.tilted(mass / mass.sum(), -80, STEP, 0.0)
    found = c.product([(law, 2)], 1e-2)
    assert found.mass.size < 110 < law.mass.size
    actual = variation(found, *exact_tilted([(law, 2)]))
    assert 1e-5 < actual <= found.error + found.relative


# --- windows -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LEDGERS)
@pytest.mark.parametrize("tail", [0.3, 1e-3, 1e-9, 1e-60])
@pytest.mark.parametrize("tilt", [0.0, 8.0])
def test_windows_hold_all_but_the_tail(name: str, tail: float, tilt: float) -> None:
    laws = factors(LEDGERS[name], tilt)
    exact, low = exact_tilted(laws)
    tails = c.Tails(math.sqrt(sum(count * c.variance(law) for law, count in laws)), tail)
    for law, count in laws:
        tails.add(law, count)
    first, last = tails.window()
    assert low <= first <= last <= low + exact.size - 1
    assert tails.points() == last - first + 1
    assert math.fsum(exact[: first - low]) + math.fsum(exact[last - low + 1 :]) <= tail
    deviation = math.sqrt(sum(count * c.variance(law) for law, count in laws))
    normal = 2.0 * math.sqrt(2.0 * math.log(2.0 / tail)) * deviation
    assert last - first <= 2.0 * normal + 60.0  # not merely everything


# --- running products, direct products ------------------------------------------------------------------


def test_a_running_product_after_every_factor() -> None:
    laws = [law for law, _ in factors(LEDGERS["both"], 4.0)] * 3
    deviation = math.sqrt(sum(c.variance(law) for law in laws))
    all_tails = c.Tails(deviation, 1e-20)
    for law in laws:
        all_tails.add(law, 1)
    tails = c.Tails(deviation, 1e-20)
    running = c.RunningProduct(all_tails.points(), tails)
    for number, law in enumerate(laws, 1):
        tails.add(law, 1)
        running.multiply(law)
        found = running.value()
        exact, low = exact_tilted([(one, 1) for one in laws[:number]])
        assert variation(found, exact, low) <= found.error + found.relative <= 1e-9
        assert found.log_scale == pytest.approx(sum(one.log_scale for one in laws[:number]))


def test_limits_raise_before_memory_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MemoryError, match="lattice points is over the limit"):
        c.RunningProduct(c.MAX_POINTS + 1, c.Tails(1.0, 1e-6))
    law = c.tilted(QUIET.mass, QUIET.low, STEP, 0.0)
    tails = c.Tails(100.0, 1e-6)
    tails.add(law, 30)
    small = c.RunningProduct(16, tails)
    small.multiply(law, 30)
    with pytest.raises(MemoryError, match="does not fit a transform"):
        small.value()
    monkeypatch.setattr(c, "MAX_DIRECT", 1e4)
    with pytest.raises(MemoryError, match="direct convolution of 30 laws"):
        c.direct_product([(law, 30)])


@pytest.mark.parametrize("name", LEDGERS)
def test_direct_products_keep_every_digit(name: str) -> None:
    """Relative accuracy of every entry, also without a tilt."""
    laws = factors(LEDGERS[name], 0.0)
    found = c.direct_product(laws)
    exact, low = exact_tilted(laws)
    assert found.low == low and found.relative < 1e-11 and found.error < 1e-280
    np.testing.assert_allclose(found.mass, exact, rtol=1e-12, atol=1e-290)
    whole = direct(LEDGERS[name])
    eps = 0.2 * STEP * (low + exact.size)
    lower, upper = c.Reader(found).bracket(eps)
    assert lower * (1.0 - 1e-12) <= r.delta(whole, eps) <= upper * (1.0 + 1e-12)
    assert upper <= lower * (1.0 + 1e-10)


# --- single laws ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("tilt", [0.0, 2.5, 300.0])
def test_tilting_can_be_undone(tilt: float) -> None:
    law = c.tilted(LOUD.mass, LOUD.low, STEP, tilt)
    assert math.fsum(law.mass) == pytest.approx(1.0, rel=1e-14)
    loss = STEP * (LOUD.low + np.arange(LOUD.mass.size))
    kept = law.mass > c.UNDERFLOW  # what is smaller has lost digits, and is in the error
    plain = np.exp(np.log(law.mass[kept]) + law.log_scale - tilt * loss[kept])
    np.testing.assert_allclose(plain, LOUD.mass[kept], rtol=law.relative + 1e-13)
    lost = ~kept & (LOUD.mass > 0.0)
    assert np.count_nonzero(lost) * c.UNDERFLOW <= law.error
    assert lost.any() == (tilt == 300.0)


def test_no_mass_at_all() -> None:
    law = c.tilted(np.zeros(3), 5, STEP, 1.0)
    assert c.Reader(law).bracket(0.0)[1] <= c.UNDERFLOW


def test_variance_is_the_moment() -> None:
    law = c.tilted(LOUD.mass, LOUD.low, STEP, 0.0)
    index = np.arange(law.mass.size)
    mean = math.fsum(law.mass * index)
    assert c.variance(law) == pytest.approx(math.fsum(law.mass * (index - mean) ** 2), rel=1e-12)
