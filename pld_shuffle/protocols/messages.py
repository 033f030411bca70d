"""What the shuffler does, and what arrives at the analyzer."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..randomizers.base import IntArray
from ..randomizers.border import generator, integer_array


def shuffled(messages: ArrayLike, rng: np.random.Generator) -> NDArray[Any]:
    """All messages, of all users together, as one array in uniformly random order."""
    return generator(rng).permutation(np.asarray(messages).reshape(-1))


def received(messages: ArrayLike, count: int, alphabet: int) -> IntArray:
    """`messages` as a flat integer array; ValueError unless they are `count` in [0, alphabet)."""
    array = integer_array("messages", messages, alphabet).reshape(-1)
    if array.size != count:
        raise ValueError(f"messages must be {count} in number, got {array.size}")
    return array


def one_per_user(values: NDArray[Any], users: int) -> NDArray[Any]:
    """`values` unchanged; ValueError unless their shape is (users,)."""
    if values.shape != (users,):
        raise ValueError(f"values must have shape ({users},), got {values.shape}")
    return values
