"""Checks at the border of the randomizers; everything behind it may rely on them.

Every check is in positive form, so that nan fails, and its message names argument and value.
Booleans are not numbers here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..numerics.validation import real, real_array
from .base import FloatArray, IntArray

EPS0_MAX = 700.0
"""Largest local epsilon accepted: exp(eps0) must be a finite double, and log(2^1024) = 709.8."""


def local_epsilon(value: object) -> float:
    """`value` as a local epsilon in (0, EPS0_MAX]."""
    eps0 = real("eps0", value)
    if not 0 < eps0 <= EPS0_MAX:
        raise ValueError(f"eps0 must be in (0, {EPS0_MAX:g}], got {value!r}")
    return eps0


def generator(value: object) -> np.random.Generator:
    """`value` if it is a numpy Generator; TypeError otherwise."""
    if not isinstance(value, np.random.Generator):
        raise TypeError(f"rng must be a numpy.random.Generator, got {value!r}")
    return value


def integer_array(name: str, values: ArrayLike, count: int) -> IntArray:
    """`values` as an int64 array with entries in [0, count), any shape; no floats, no booleans."""
    array: NDArray[Any] = np.asarray(values)
    if not (np.issubdtype(array.dtype, np.integer) or array.size == 0):
        raise TypeError(f"{name} must hold integers, got dtype {array.dtype}")
    if array.size and not (array.min() >= 0 and array.max() < count):
        outside = array.max() if array.max() >= count else array.min()
        raise ValueError(f"{name} must lie in [0, {count}), got {outside}")
    return array.astype(np.int64)


def unit_array(name: str, values: ArrayLike) -> FloatArray:
    """`values` as a float64 array with entries in [0, 1], any shape."""
    array = real_array(name, values)
    inside = (array >= 0) & (array <= 1)
    if not bool(np.all(inside)):
        raise ValueError(f"{name} must lie in [0, 1], got {array[~inside].flat[0]}")
    return array


def bit_array(name: str, values: ArrayLike, length: int) -> NDArray[np.uint8]:
    """`values` as a uint8 array of zeros and ones, shape (..., length)."""
    array: NDArray[Any] = np.asarray(values)
    if array.ndim == 0 or array.shape[-1] != length:
        raise ValueError(f"{name} must have shape (..., {length}), got {array.shape}")
    return integer_array(name, array, 2).astype(np.uint8)
