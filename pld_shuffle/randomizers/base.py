"""What every local randomizer of this package knows about itself: a family of output laws mu_x, one per input x.

    eps0    sup over inputs x, x' and reports y of log(mu_x(y) / mu_x'(y)); inf without pure LDP
    tv      beta, the total variation of the worst pair of inputs
    gamma   the total mass of inf_x mu_x, the probability of the privacy blanket

Guarantee: eps0 and tv are never below and gamma never above the true value, up to the rounding of a few floating-point
operations (relative 1e-14 or so). They equal it unless a docstring says otherwise. Reports are drawn with ordinary
floating-point arithmetic, for simulation; no defence is attempted against attacks on the low-order bits of noise.

Source: Balle, Bell, Gascon, Nissim, CRYPTO 2019, sections 5.1-5.2; Wang et al., VLDB 2024 (total variations).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..numerics.sides import ROUNDOFF, Array, Side
from ..numerics.validation import Checked, between

IntArray = NDArray[np.int64]

EPS0_MAX = 700.0  # exp(eps0) must be a finite double, and log(2^1024) = 709.8


class LocalRandomizer(Checked, ABC):
    """A family of output laws that knows its privacy parameters (see the top of the file)."""

    eps0: float  #: local epsilon of one report, natural logarithm; inf if no pure guarantee exists

    @property
    @abstractmethod
    def tv(self) -> float:
        """Total variation of the worst pair of inputs (beta), in [0, 1]."""

    @property
    @abstractmethod
    def gamma(self) -> float:
        """Total mass of inf_x mu_x (blanket probability), in [0, 1]."""

    @abstractmethod
    def sample(self, x: ArrayLike, rng: np.random.Generator) -> NDArray[Any]:
        """One independent report for every entry of `x`: shape x.shape, then that of a report."""

    @property
    def pure(self) -> bool:
        """Whether it is eps0-LDP with 0 < eps0 < inf."""
        return 0.0 < self.eps0 < np.inf

    @property
    def eps0_error(self) -> float:
        """How far eps0 may be off: 0 where it was given, and is no logarithm of ratios of masses."""
        if any(field.name == "eps0" for field in fields(self)):  # type: ignore[arg-type]
            return 0.0
        return 1e-14 * self.eps0 + 32.0 * ROUNDOFF

    # What analyses of shuffled reports ask for, in finite laws:

    mass_error: ClassVar[float] = 2e-14  #: bound on the relative error of masses
    continuous: ClassVar[bool] = False  #: whether reports are real numbers; then finite laws are on a side only
    tailed: ClassVar[bool] = False  #: whether likelihood ratios are unbounded
    #: The number of values of k-ary randomised response: a report is the value, or any other alike. Else 0.
    k_ary: int = 0
    #: Among up to so many users sums of likelihood ratios are sharper than a contour.
    few_users: int = 0
    unhidden: str | None = None  #: why shuffling hides nothing, if there is too little noise for it

    @abstractmethod
    def slot_laws(self, side: Side = Side.UPPER, truncated_mass: float = 0.0, *, refined: float = 1.0) -> list[Array]:
        """The target's two laws next to the blanket, shape (3, groups), for every ordered pair that may be the worst.

        Of noise: finite laws on a side, up to so much mass of the target's, which is given away; with so many times as
        many cells as usual.
        """

    @abstractmethod
    def types(self, users: int = 1) -> Iterator[Any]:
        """What the swap theorem needs, for every kind of target (see `joint.Types`); none where it is not asked.

        users : for how many the types of noise are made. They are right for any number.
        """

    @abstractmethod
    def attacks(self, most: int) -> Iterable[tuple[float, float, float]]:
        """(first, second, others) of up to so many attacks: the target's two inputs, and that of everybody else."""

    @abstractmethod
    def attack_law(
        self, first: float, second: float, others: float, *, truncated_mass: float = 1e-15, refined: float = 1.0
    ) -> Array:
        """Masses of reports under three inputs, shape (3, groups); reports of noise are merged.

        Of unbounded noise also all that one of the target's inputs sends with probability `truncated_mass`, far out.
        """


def read_only(array: Array) -> Array:
    """The same array with its write flag cleared."""
    array.setflags(write=False)
    return array


def settle(instance: object, **values: object) -> None:
    """Put checked values into the fields of a frozen dataclass."""
    for name, value in values.items():
        object.__setattr__(instance, name, value)


LocalEpsilon = Annotated[float, between(0.0, EPS0_MAX, "(]")]


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


def bit_array(name: str, values: ArrayLike, length: int) -> NDArray[np.uint8]:
    """`values` as a uint8 array of zeros and ones, shape (..., length)."""
    array: NDArray[Any] = np.asarray(values)
    if array.ndim == 0 or array.shape[-1] != length:
        raise ValueError(f"{name} must have shape (..., {length}), got {array.shape}")
    return integer_array(name, array, 2).astype(np.uint8)
