"""Rounding of the transforms (docs/certificates.md, row 10): the numbers of the proof, and the library in balls."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy import fft
from scipy.fft import next_fast_len

from pld_shuffle.composition.product import FFT_CONSTANT
from pld_shuffle.numerics.lattice import fast_length
from pld_shuffle.numerics.sides import ROUNDOFF

flint = pytest.importorskip("flint")
acb, ctx = flint.acb, flint.ctx

TWIDDLE = 7.5  # units of roundoff that a twiddle factor may be off: docs/certificates.md, 10
PRODUCT = math.sqrt(5.0)  # of a complex product: Brent, Percival, Zimmermann 2007
SIZES = [16, 18, 20, 24, 25, 27, 30, 64, 75, 81, 96, 125, 240, 243, 256, 360, 625, 1000, 1024]


@pytest.fixture(autouse=True)
def _digits() -> Iterator[None]:
    before = ctx.prec
    ctx.prec = 120
    yield
    ctx.prec = before


class Program:
    """A butterfly as a straight-line program: each value is a linear form of the inputs, some with rounding errors."""

    def __init__(self, radix: int) -> None:
        self.forms = [np.eye(radix, dtype=complex)[i] for i in range(radix)]
        self.made: list[list[tuple[int, complex]]] = [[] for _ in range(radix)]
        self.errors = [0.0] * radix

    def combine(self, *terms: tuple[int, complex], errors: float) -> int:
        """A combination of earlier values, wrong by `errors` u relative to itself."""
        self.forms.append(sum(factor * self.forms[i] for i, factor in terms))
        self.made.append(list(terms))
        self.errors.append(errors)
        return len(self.forms) - 1

    def add(self, i: int, j: int, sign: complex = 1.0) -> int:
        return self.combine((i, 1.0), (j, sign), errors=1.0)  # 1, i, -1, -i: no rounding of their own

    def times(self, i: int, factor: float) -> int:
        return self.combine((i, factor), errors=2.0)  # of the constant, and of the product

    def bound(self, outputs: list[int]) -> float:
        """Norm of the errors over the norm of the outputs, in u: |sum_i B_i delta_i|, |delta_i| <= u |A_i x|."""
        radix = len(outputs)
        back = np.zeros((radix, len(self.forms)), dtype=complex)
        for row, value in enumerate(outputs):
            back[row, value] = 1.0
        for value in reversed(range(radix, len(self.forms))):
            for i, factor in self.made[value]:
                back[:, i] += factor * back[:, value]
        total = sum(
            error * np.outer(np.abs(back[:, i]), np.abs(form))
            for i, (form, error) in enumerate(zip(self.forms, self.errors, strict=True))
        )
        exact = np.array([[cmath.exp(-2j * math.pi * j * k / radix) for k in range(radix)] for j in range(radix)])
        found = np.array([self.forms[value] for value in outputs])
        assert np.allclose(found, exact)  # it is the transform
        return float(np.linalg.norm(total, 2)) / math.sqrt(radix)


def two() -> float:
    p = Program(2)
    return p.bound([p.add(0, 1), p.add(0, 1, -1.0)])


def three() -> float:
    p = Program(3)
    t, d = p.add(1, 2), p.add(1, 2, -1.0)
    c = p.add(0, p.combine((t, -0.5), errors=0.0))
    s = p.times(d, math.sqrt(0.75))
    return p.bound([p.add(0, t), p.add(c, s, -1j), p.add(c, s, 1j)])


def four() -> float:
    p = Program(4)
    a, b, c, d = p.add(0, 2), p.add(0, 2, -1.0), p.add(1, 3), p.add(1, 3, -1.0)
    return p.bound([p.add(a, c), p.add(b, d, -1j), p.add(a, c, -1.0), p.add(b, d, 1j)])


def five() -> float:
    p = Program(5)
    c1, c2 = math.cos(0.4 * math.pi), math.cos(0.8 * math.pi)
    s1, s2 = math.sin(0.4 * math.pi), math.sin(0.8 * math.pi)
    t1, t4, t2, t3 = p.add(1, 4), p.add(1, 4, -1.0), p.add(2, 3), p.add(2, 3, -1.0)
    a1 = p.add(p.add(0, p.times(t1, c1)), p.times(t2, c2))
    a2 = p.add(p.add(0, p.times(t1, c2)), p.times(t2, c1))
    b1 = p.add(p.times(t4, s1), p.times(t3, s2))
    b2 = p.add(p.times(t4, s2), p.times(t3, s1), -1.0)
    return p.bound(
        [p.add(p.add(0, t1), t2), p.add(a1, b1, -1j), p.add(a2, b2, -1j), p.add(a2, b2, 1j), p.add(a1, b1, 1j)]
    )


@pytest.mark.parametrize(("radix", "butterfly"), [(2, two), (3, three), (4, four), (5, five)])
def test_every_stage_is_within_the_constant(radix: int, butterfly: Callable[[], float]) -> None:
    """Twiddle factors, their products and the butterfly of a stage: at most FFT_CONSTANT log2(radix) u, with room."""
    stage = TWIDDLE + PRODUCT + butterfly()
    # The room, 2 u from N = 16 on, is for the factor 1/N of an inverse; the last digits, for u^2.
    assert stage * (1.0 + 1e-9) <= (FFT_CONSTANT - 0.5) * math.log2(radix)


def exact_transform(values: list[Any]) -> list[Any]:
    """The discrete Fourier transform in balls."""
    n = len(values)
    radix = next((r for r in (2, 3, 5) if n % r == 0), 1)
    if n == 1:
        return values
    parts = [exact_transform(values[k::radix]) for k in range(radix)]
    roots = [(acb(-2 * k) / n).exp_pi_i() for k in range(n)]
    m = n // radix
    return [sum((roots[j * k % n] * parts[k][j % m] for k in range(radix)), acb(0)) for j in range(n)]


def stages(size: int) -> int:
    """How many a plan has that takes as many radices 4 as it can."""
    count = 0
    for radix in (4, 2, 3, 5):
        while size % radix == 0:
            size, count = size // radix, count + 1
    assert size == 1
    return count


def distance(found: np.ndarray, exact: list[Any]) -> float:
    total = sum((abs(acb(complex(a)) - b) ** 2 for a, b in zip(found, exact, strict=True)), acb(0).real)
    return float(total.sqrt().upper())


@pytest.mark.parametrize("size", SIZES)
def test_twiddle_factors(size: int) -> None:
    """A unit vector meets no addition: its transform shows the product of the twiddle factors on the way."""
    rng = np.random.default_rng(size)
    for place in {1, size // 2, size - 1, *rng.integers(0, size, 6).tolist()}:
        unit = np.zeros(size)
        unit[place] = 1.0
        for j, value in enumerate(fft.rfft(unit)):
            error = abs(acb(complex(value)) - (acb(-2 * (j * place % size)) / size).exp_pi_i())
            assert float(error.upper()) <= (TWIDDLE + PRODUCT) * stages(size) * ROUNDOFF


def vectors(size: int) -> Iterator[np.ndarray]:
    """Random ones, laws, and such that all output meets in one place or everything cancels."""
    rng = np.random.default_rng(size)
    index = np.arange(size)
    yield rng.uniform(-1.0, 1.0, size)
    yield rng.uniform(0.0, 1.0, size) ** 20
    yield np.ones(size) / 3.0
    yield (-1.0) ** index / 3.0
    yield np.cos(2.0 * math.pi * (1 + size // 5) * index / size)
    yield np.cos(math.pi * index * index / size)
    yield np.exp(-0.5 * ((index - size / 2) / (0.1 * size)) ** 2)
    yield rng.choice([-1.0, 1.0], size) * (1.0 + 2.0**-52 * rng.integers(0, 9, size))


@pytest.mark.parametrize("size", SIZES)
def test_transforms_and_their_inverses(size: int) -> None:
    """Both directions within eta = FFT_CONSTANT u log2 N, in the 2-norm, relative."""
    assert fast_length(size) == size
    eta = FFT_CONSTANT * ROUNDOFF * math.log2(size)
    worst = 0.0
    for vector in vectors(size):
        found = fft.rfft(vector)
        exact = exact_transform([acb(float(x)) for x in vector])
        norm = math.sqrt(size) * float(np.linalg.norm(vector))
        whole = np.concatenate((found, found[1 : (size + 1) // 2][::-1].conj()))
        forward = distance(whole, exact) / norm
        spectrum = [acb(complex(x)).conjugate() for x in whole]
        back = [value.conjugate() / size for value in exact_transform(spectrum)]
        backward = distance(fft.irfft(found, size), back) / float(np.linalg.norm(vector))
        assert forward <= eta and backward <= eta
        worst = max(worst, forward / eta, backward / eta)
    assert worst >= 1e-3  # the norms above are the right ones


def test_lengths_in_use_have_no_other_factors() -> None:
    for size in [*range(16, 3000), 10**5 + 1, 2**23 - 1]:
        assert stages(fast_length(size)) > 0 and fast_length(size) == next_fast_len(size, real=True)
