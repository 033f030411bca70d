"""A sum of integers of which every client has added a share of noise, and of which only the total is seen.

Secure aggregation shows no more than the sum, often modulo M. What hides a user are the shares of those clients whose
noise is really in the sum and unknown to the adversary: all but the dropouts and the colluding ones. The law of their
total is known exactly (`shares`); the pair is that law against itself moved by the sensitivity (docs/sums.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar

from ..numerics.integer_laws import IntegerLaw
from ..numerics.validation import choice, integer_in, positive_int
from ..pairs.discrete import Together
from ..pairs.pair import Pair
from ..pairs.shifted import at_most, shifted, shifted_around, with_attack
from ..shares import Share
from .base import NEIGHBOURS, Mechanism

MOST_STEPS = 64  # sensitivity up to which every step is a pair of its own, modulo M


@dataclass(frozen=True, repr=False)
class SummedNoise(Mechanism):
    """The sum of integers, each client having added a share of noise; only the total is seen, possibly modulo M.

    Parameters
    ----------
    share : the noise of one client, a `pld_shuffle.shares.Share`.
    clients : how many add a share (in a system where servers add the noise: how many servers).
    sensitivity : Delta, an integer; how far neighbouring datasets can move a coordinate of the exact sum.
    dropouts, colluding : of the clients' shares so many at most are missing, and so many known to the adversary.
    modulus : M, if the total is taken modulo M. It must exceed clients * sensitivity, or exact sums would wrap around.
    coordinates : of a vector of sums with noise of their own, how many a user can move.
    sensitivity_norm : what `sensitivity` is of such a move. "linf" (default): of the largest coordinate, and all of
        them move by Delta at worst. "l1": of the sum of all, and one of them moves by Delta at worst, which is proved
        for noise that is symmetric and log-concave (docs/sums.md, Theorem 3). An L2 norm is refused: no split of it is
        proved to be the worst.
    neighbours : "replace-one" (default), "add-or-remove-one" or "zero-out": the relation that `sensitivity` is for.
        Who adds shares is the same in both datasets: a user who comes or goes brings no share that is counted.

    The pair is exact for one round of one coordinate, in either order (and for any number of rounds where the noise is
    symmetric); modulo M the upper end is the larger of all steps up to Delta, or without M where M is larger than the
    noise. Raises ValueError or TypeError naming the argument. The law costs O(its width), up to 2^22 integers.

    >>> from pld_shuffle import Accountant
    >>> from pld_shuffle.shares import Binomial
    >>> coins = SummedNoise(Binomial(trials=1), clients=80)
    >>> round(Accountant().compose(coins).get_epsilon(1e-6), 3)
    0.999
    """

    share: Share
    clients: int
    sensitivity: int = 1
    dropouts: int = 0
    colluding: int = 0
    modulus: int | None = None
    coordinates: int = 1
    neighbours: str = "replace-one"
    sensitivity_norm: str = "linf"

    rarely = ("dropouts", "colluding", "coordinates", "sensitivity_norm")
    CHECKS: ClassVar = {
        "clients": positive_int, "sensitivity": positive_int, "coordinates": positive_int,
        "dropouts": partial(integer_in, lowest=0), "colluding": partial(integer_in, lowest=0),
        "neighbours": partial(choice, options=tuple(NEIGHBOURS)),
        "sensitivity_norm": partial(choice, options=("linf", "l1", "l2")),
    }  # fmt: skip

    def __post_init__(self) -> None:
        if not isinstance(self.share, Share):
            raise TypeError(f"share must be a pld_shuffle.shares.Share, got {self.share!r}")
        super().__post_init__()
        if not self.dropouts + self.colluding < self.clients:
            raise ValueError(
                f"dropouts and colluding must leave some of clients={self.clients!r}, got"
                f" dropouts={self.dropouts!r} and colluding={self.colluding!r}"
            )
        if self.modulus is not None:
            modulus = integer_in("modulus", self.modulus, 2)
            if not modulus > self.clients * self.sensitivity:
                raise ValueError(
                    f"modulus must exceed clients * sensitivity = {self.clients * self.sensitivity}, the range of"
                    f" the exact sum, got {self.modulus!r}"
                )
            object.__setattr__(self, "modulus", modulus)
        if self.sensitivity_norm == "l2" and self.coordinates > 1:
            raise ValueError(
                "sensitivity_norm must be 'linf' or 'l1' for several coordinates: moves such as (2, 0, 0, 0) and"
                " (1, 1, 1, 1) have one L2 norm, neither is always the worse, and no pair is proved for both, got 'l2'"
            )
        symmetric = self.law.symmetric
        if self.sensitivity_norm == "l1" and self.coordinates > 1 and not symmetric:
            raise ValueError(
                f"sensitivity_norm must be 'linf' for noise that is not symmetric, {self.share!r}: one coordinate may"
                " rise as another falls, and no worst split is proved for that, got 'l1'"
            )

    @cached_property
    def law(self) -> IntegerLaw:
        """The law of the noise that counts. ValueError where nothing is proven for it."""
        law = self.share.total(self.clients - self.dropouts - self.colluding)
        if self.sensitivity > 1 and not law.log_concave:
            raise ValueError(
                "sensitivity must be 1 where the total noise is not log-concave (negative binomial shapes that add up"
                f" to less than 1), got {self.sensitivity!r}"
            )
        if not self.sensitivity < law.masses.size:
            raise ValueError(
                f"sensitivity must be below the {law.masses.size} values of the noise, got {self.sensitivity!r}"
            )
        return law

    @cached_property
    def _wraps(self) -> bool:
        """Whether the upper end is computed modulo M."""
        law, modulus = self.law, self.modulus
        if modulus is None or law.masses.size + self.sensitivity <= modulus:
            return False
        if self.sensitivity > MOST_STEPS:
            return False
        return law.below + law.above == 0.0 or 2 * modulus <= law.masses.size

    @cached_property
    def _pairs(self) -> tuple[Pair, Pair]:
        """The pair and the attack, of one coordinate."""
        if self._wraps:
            assert self.modulus is not None
            return at_most(self.law, self.sensitivity, self.modulus)
        pair, attack = with_attack(shifted(self.law, self.sensitivity))
        if self.modulus is not None:
            attack = with_attack(shifted_around(self.law, self.sensitivity, self.modulus))[1]
        return pair, attack

    @cached_property
    def pair(self) -> Pair:  # type: ignore[override]
        return self._all(self._pairs[0])

    @cached_property
    def attack_pair(self) -> Pair:  # type: ignore[override]
        pair, attack = self._pairs
        return self.pair if attack is pair else self._all(attack)

    def _all(self, pair: Pair) -> Pair:
        return pair if self.coordinates == 1 or self.sensitivity_norm == "l1" else Together(((pair, self.coordinates),))

    @property
    def users(self) -> int | None:
        return self.clients

    def require_sampling(self) -> None:
        super().require_sampling()
        if self.coordinates > 1:
            raise TypeError(f"mechanism must have one coordinate to be sampled, got {self!r}")

    def assumptions(self) -> dict[str, str]:
        whole = f"the total of {self.clients} clients' sums"
        around = "" if self.modulus is None else f" modulo {self.modulus}"
        each = (
            f" in each of {self.coordinates} coordinates"
            if self.sensitivity_norm == "linf"
            else " in all coordinates together"
        )
        each = "" if self.coordinates == 1 else each
        return {
            "neighbours": f"{NEIGHBOURS[self.neighbours]}; the exact sum moves by at most {self.sensitivity}{each},"
            " and who adds noise is the same",
            "adversary": f"sees {whole}{around}, and the shares of {self.colluding} colluding clients",
            "analysis": f"exact law of at least {self.clients - self.dropouts - self.colluding} shares {self.share!r},"
            " moved by the sensitivity, in either order",
            "sampling": f"at most {self.dropouts} clients drop out, whatever the data; the shares are independent",
        }
