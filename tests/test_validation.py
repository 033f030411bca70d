"""Numbers at the border: which double they become, and that what is no number is refused by name."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pld_shuffle.numerics import validation
from pld_shuffle.numerics.sides import Side

LOWER, UPPER = Side.LOWER, Side.UPPER


def neighbours(number):
    """The largest double <= number and the smallest >= number, by exact comparison."""
    nearest = Fraction(float(number))
    below = above = float(number)
    if nearest > number:
        below = math.nextafter(below, -math.inf)
    if nearest < number:
        above = math.nextafter(above, math.inf)
    assert Fraction(below) <= number <= Fraction(above)
    return below, above


@given(st.fractions(-(10**30), 10**30) | st.integers(-(10**40), 10**40))
def test_rationals_round_to_the_side_asked_for(number):
    below, above = neighbours(number)
    assert validation.real("x", number, LOWER) == below
    assert validation.real("x", number, UPPER) == above
    if below == above:
        assert validation.real("x", number) == number
    else:  # no double serves both ends of an answer
        with pytest.raises(ValueError, match="x must be a double"):
            validation.real("x", number)


@given(st.floats(allow_nan=False))
def test_doubles_are_never_changed(number):
    for given_ in (number, np.float64(number)):
        for rounding in (None, LOWER, UPPER):
            assert validation.real("x", given_, rounding) == number
            assert validation.real_array("x", [given_], rounding) == [number]


def test_tiny_huge_and_odd_numbers():
    tiny, huge = Fraction(1, 10**400), 2**1024 - 2**970 - 1  # huge rounds to the largest double
    assert validation.real("x", tiny, LOWER) == 0 < validation.real("x", tiny, UPPER) == 5e-324
    assert validation.real("x", huge, UPPER) == math.inf
    assert validation.real("x", huge, LOWER) == np.finfo(float).max
    assert math.isnan(validation.real("x", math.nan, LOWER))
    # numpy compares its own integers with doubles only after rounding them
    odd = 2**53 + 1
    for given_ in (odd, np.int64(odd), np.uint64(odd)):
        assert validation.real("x", given_, LOWER) == 2**53
        assert validation.real("x", given_, UPPER) == 2**53 + 2


@pytest.mark.skipif(np.finfo(np.longdouble).nmant <= 52, reason="longdouble is double here")
def test_longdoubles_round_to_the_side_asked_for():
    third = np.longdouble(1) / 3
    low, high = validation.real("x", third, LOWER), validation.real("x", third, UPPER)
    assert low < third < high == math.nextafter(low, 1)
    assert np.array_equal(validation.real_array("x", [third, 2.0], LOWER), [low, 2.0])
    assert np.array_equal(validation.real_array("x", np.array([[third]]), UPPER), [[high]])


def test_arrays_round_every_entry():
    numbers = [Fraction(1, 3), 2**53 + 1, 0.5]
    low, high = (validation.real_array("x", numbers, LOWER), validation.real_array("x", numbers, UPPER))
    assert all(a == neighbours(Fraction(x))[0] for a, x in zip(low, numbers, strict=True))
    assert all(b == neighbours(Fraction(x))[1] for b, x in zip(high, numbers, strict=True))
    assert validation.real_array("x", [[2**53 + 1]], UPPER).shape == (1, 1)
    assert validation.real_array("x", Fraction(1, 4), LOWER).shape == ()
    assert validation.probabilities("x", [Fraction(1, 3)], UPPER) > Fraction(1, 3)
    assert validation.nonnegatives("x", [Fraction(1, 3)], LOWER) < Fraction(1, 3)
    with pytest.raises(TypeError, match="x must be a real number or an array"):
        validation.real_array("x", [Fraction(1, 4)])  # nearest would be on no side
    for odd in (2**53 + 1, 2**63 - 1):  # numpy makes doubles of larger ones by itself
        with pytest.raises(ValueError, match="x must be a double"):
            validation.real_array("x", [odd, 2])
    assert np.array_equal(validation.real_array("x", [2**53, 2**63]), [2.0**53, 2.0**63])
    assert np.array_equal(validation.real_array("x", np.float32([0.1, math.inf])), np.float32([0.1, math.inf]))


@pytest.mark.parametrize("check", [
    validation.real, validation.positive_float, validation.open_unit, validation.unit_interval,
    validation.tolerance, validation.real_array, validation.probabilities, validation.nonnegatives,
])  # fmt: skip
@pytest.mark.parametrize("bad", [10**400, Fraction(-(10**400)), "1", None, 1j, True, [None]])
def test_what_is_no_double_is_refused_by_name(check, bad):
    with pytest.raises((TypeError, ValueError), match=r"^some_name must be"):
        check("some_name", bad)


@pytest.mark.parametrize("value", [1e4, np.float64(1e4), np.int32(10_000), 10_000])
def test_integral_floats_are_integers(value) -> None:
    found = validation.users("n", value)
    assert found == 10_000 and type(found) is int
    for wrong in (2.5, math.nan, math.inf, True, np.True_, "3", None):
        with pytest.raises(TypeError, match="n must be an integer"):
            validation.users("n", wrong)
