"""Slots of few users, whose ratios to the others' law are continuous: sums of ratios instead of a contour.

Local noise has slot laws (`pairs.slots`) of three kinds of reports: on the left R_1 = W, and u = R_0/W varies; on the
right R_0 = W, and v = R_1/W varies; the rest of W says nothing. With L slots on the left and R on the right

    H_s = (1/n) sum over L, R of P(L, R) E (u_1 + ... + u_L + R - s (L + v_1 + ... + v_R))_+ .

The laws of the sums of u and of v do not depend on s: they are made once for each number of slots (`ratio_sums`), told
from the largest u and the smallest v, or both from 1 where ratios have a long tail (docs/theory.md, section 8). Points
of the profile may be as close as one likes; the contour decays slowly where the sum has few terms, and not at all next
to the largest loss.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..numerics.compiled import kernel
from ..numerics.sides import ROUNDOFF, Array, Bounds, Side
from .pair import Cohort
from .ratio_sums import NOTHING, RatioLaw, additions
from .slots import NoiseLaw, SlotLaw, SlotPair, rest_of

MOST_USERS, MOST_TAILED = 32, 12  # the latter if ratios have a long tail
PER_DEVIATION = 500.0  # lattice points, of one slot's ratio, over the root of the number of slots
FEWEST, MOST = 128, 1024  # lattice points of one slot
POINTS = 5_000  # of the sum of all slots, where they are of one kind
# Points next to the largest loss, in steps of the lattice.
GRADED = np.concatenate(([0.0], 0.25 * 0.7 ** np.arange(64.0, 0.0, -1.0), np.arange(0.25, 5.0, 0.25)))
# Of ratios with a long tail: lattice points of a deviation, of the lattice, and those beyond.
TAILED, BULK, DISTANT = 128.0, 1792, 1150


@dataclass(frozen=True, eq=False)
class FewSlots(SlotLaw):
    """A slot law whose profile is asked on one side only, by sums of ratios.

    tailed : the largest ratios are of no account, and far beyond most of them.
    """

    side: Side
    tailed: bool = False

    @classmethod
    def of_side(cls, side: Side, law: SlotLaw, *, tailed: bool = False) -> FewSlots | None:
        """The law's side; None for other kinds of reports, too many users, or a rest that may be none."""
        found = cls(law.n, law.first, law.second, law.others, law.whole, law.error, side, tailed)
        seen, left, right = found._kinds
        other_kinds = np.any(seen & ~(left | right))
        many = law.n > (MOST_TAILED if tailed else MOST_USERS)
        return None if other_kinds or many or 0.0 < found.rest < 1e-9 else found

    @cached_property
    def _kinds(self) -> tuple[NDArray[np.bool_], ...]:
        """Reports that are others' too, and which of these are on the left and on the right."""
        seen = self.others > 0.0
        left = seen & (self.second == self.others)
        return seen, left, seen & (self.first == self.others) & ~left

    @cached_property
    def ratios(self) -> list[tuple[Array, Array]]:
        """The u of left reports, known to twice the masses' error, and the v of right ones; each with their masses."""
        kinds = zip((self.first, self.second), self._kinds[1:], strict=True)
        return [(law[held] / self.others[held], self.others[held]) for law, held in kinds]

    @cached_property
    def rest(self) -> float:
        """The mass of what says nothing."""
        return 0.0 if self.whole else rest_of(self.others)

    def profile(self, expm1_eps: Array, rtol: float = 0.0) -> Bounds:
        """Bounds on H_s of this side's law at s = 1 + growth >= 1; O(n^2) knots each."""
        total, size = np.empty(expm1_eps.size), np.empty(expm1_eps.size)
        drift = (1.0 if self.side is Side.UPPER else -1.0) * (max(sums.drift for sums in self._sums) + 16.0 * ROUNDOFF)
        _positive_parts(
            self.n, self._weight, *self._origins, drift, *self._sums[0][:5], *self._sums[1][:5], expm1_eps, total, size,
        )  # fmt: skip
        terms = self._sums[0].value.size + self._sums[1].value.size + self.n**2 + 16.0
        relative = 2.0 * ROUNDOFF * terms * size + (self._mass_error + 2.0 * abs(drift)) * total
        lower, upper = np.maximum(total - relative, 0.0) / self.n, (total + relative) / self.n
        bare = ~self._kinds[0]
        for first, second in zip(self.first[bare], self.second[bare], strict=True):
            alone = first - second - expm1_eps * second
            term_error = (2.0 * self.error + 8.0 * ROUNDOFF) * (first + second + expm1_eps * second)
            lower += np.maximum(alone - term_error, 0.0)
            upper += np.maximum(alone + term_error, 0.0)
        rounding = 4.0 * ROUNDOFF * (1.0 + float(np.count_nonzero(bare)))
        return Bounds(lower * (1.0 - rounding), upper * (1.0 + rounding))

    @property
    def top_mass(self) -> float:
        """A lower bound on the P-mass at the largest loss: every slot that says anything has the largest ratio."""
        if self.tailed:
            return 0.0
        (top, low), (u, left), (v, right) = self._origins, *self.ratios
        mass, gain = (right[v == low], 1.0) if top * low < 1.0 else (left[u == top], top)
        share = float(mass.sum())
        found = gain * share * (self.rest + share) ** (self.n - 1)
        return found * (1.0 - self._mass_error - 2.0 * self.n * self.error)

    @cached_property
    def _origins(self) -> tuple[float, float]:
        """What u and v are told from: the largest u, or the least one where the tail is long, and the least v."""
        (u, _), (v, _) = self.ratios
        least = float(v.min()) if v.size else 1.0
        return float(u.min() if self._far else u.max(initial=1.0)), least

    @property
    def _far(self) -> bool:
        """Whether sums go to where the tail is: of v, small sums alone matter."""
        return self.tailed and self.ratios[0][0].size > 0

    @cached_property
    def _sums(self) -> tuple[_Sums, _Sums]:
        """Of what the u are short of their origin, and of what the v are above theirs."""
        (origin, low), (u, left), (v, right) = self._origins, *self.ratios
        alone = self.rest == 0.0 and not (u.size and v.size)
        below = above = self._repeated(np.abs(origin - u), left, alone)
        if not (self._far and np.array_equal(u, v) and np.array_equal(left, right)):
            above = self._repeated(v - low, right, alone)
        return _Sums.of(below, -1.0 if self._far else 1.0), _Sums.of(above, 1.0)

    def _repeated(self, gap: Array, mass: Array, alone: bool) -> list[RatioLaw | None]:
        """The sums of 0, ..., n gaps on a lattice; of n only, if all slots are of this kind.

        On the lattice sums stay where they are. Beyond it, in a long tail, points are farther and farther apart.
        """
        n, order = self.n, np.argsort(gap, kind="stable")
        found: list[RatioLaw | None] = [NOTHING, *[None] * n]
        if not gap.size:
            return found
        gap, mass = gap[order], mass[order]
        law = RatioLaw(1, gap, mass, 0.0, self.error + ROUNDOFF, 2.0 * self.error + 4.0 * ROUNDOFF)
        mean, span = float(gap @ mass) / float(mass.sum()), float(gap[-1])
        deviation = math.sqrt(float((gap - mean) ** 2 @ mass) / float(mass.sum()))
        if self._far:
            step = max(deviation, 1e-6 * span) / TAILED or 1.0
            ratio = max(2.0, 2.0 * n * span / step / BULK)
            far = ratio ** np.linspace(0.0, 1.0, DISTANT + 1) ** 2  # closer together where the tail begins
            knots = step * np.concatenate((np.arange(float(BULK)), BULK * far))
        else:
            # No sum of gaps beyond this leaves anything positive.
            reach = n * max(self._origins[0] - 1.0, 1.0 - self._origins[1]) * (1.0 + 1e-9)
            pieces = min(MOST, max(FEWEST, PER_DEVIATION / math.sqrt(n) * span / max(deviation, span / MOST, 1e-300)))
            step = (min(reach, n * span) / POINTS if alone else span / math.ceil(pieces)) or 1.0
            knots = step * np.append(GRADED, np.arange(5.0, reach / step + 1.0))
        one = NOTHING.plus(law, knots, self.side)
        found[1] = one
        steps = additions(n) if alone else [(c, 0) for c in range(n - 1)]
        known = [one]
        for left, right in steps:
            known.append(known[left].plus(known[right], knots, self.side))
            found[known[-1].steps] = known[-1]
        return found

    @cached_property
    def _weight(self) -> Array:
        """Probabilities that the rest has n - L - R slots, over what L and R have of it."""
        found, n, ((u, _), (v, _)) = np.zeros((self.n + 1, self.n + 1)), self.n, self.ratios
        for left in range(n + 1 if u.size else 1):
            for right in range(n + 1 - left if v.size else 1):
                ways = math.comb(n, left) * math.comb(n - left, right)
                found[left, right] = ways * self.rest ** (n - left - right)
        return found

    @cached_property
    def _mass_error(self) -> float:
        """Relative error of products of masses."""
        given = self.error / self.rest if self.rest > 0.0 else 0.0
        return 1.01 * (sum(sums.error for sums in self._sums) + self.n * (given + 16.0 * ROUNDOFF))


@dataclass(frozen=True, eq=False)
class FewLaws:
    """A slot law of local noise known by finite laws below and above, each with a profile by sums of ratios.

    usual : the law by the contour. tail : what the finite laws leave out; where less may be missed, it is asked.
    """

    usual: SlotLaw | NoiseLaw
    below: FewSlots
    above: FewSlots
    tail: float

    def at(self, side: Side, tail: float) -> SlotLaw:
        """The law on a side, where the target's tail of that mass may be given away."""
        if tail < self.tail:
            return self.usual.at(side, tail)
        return self.above if side is Side.UPPER else self.below

    @cached_property
    def _mirror(self) -> FewLaws:
        below, above = self.below.reversed(), self.above.reversed()
        assert isinstance(below, FewSlots) and isinstance(above, FewSlots)
        return FewLaws(self.usual.reversed(), below, above, self.tail)

    def reversed(self) -> FewLaws:
        """R_0 and R_1 exchanged."""
        return self._mirror

    def sampled(self, cohort: Cohort) -> SlotLaw | NoiseLaw:
        """The law of a hidden cohort of n."""
        return self.usual.sampled(cohort)


def among_few(pair: SlotPair, below: SlotLaw, above: SlotLaw, *, tailed: bool = False, tail: float = 0.0) -> SlotPair:
    """The pair by sums of ratios; `pair` itself where users are many, or the kinds of reports others."""
    lower, upper = (FewSlots.of_side(side, law, tailed=tailed) for side, law in zip(Side, (below, above), strict=True))
    if lower is None or upper is None:
        return pair
    assert not isinstance(pair.law, FewLaws)
    return replace(pair, law=FewLaws(pair.law, lower, upper, tail))


class _Sums(NamedTuple):
    """Laws of sums of 0, 1, ..., n gaps: atoms start[k] to start[k + 1], ascending, and sums up to each atom.

    error, drift : the largest ones of the laws.
    """

    start: NDArray[np.int64]
    value: Array
    mass: Array
    prefix: Array
    moment: Array
    error: float
    drift: float

    @classmethod
    def of(cls, laws: Sequence[RatioLaw | None], sign: float) -> _Sums:
        """Of gaps with this sign. None stands for a sum that nobody asks for."""
        known = [law for law in laws if law is not None]
        start = np.append(0, np.cumsum([0 if law is None else law.value.size for law in laws])).astype(np.int64)
        order = slice(None, None, int(sign))
        value, mass = ([getattr(law, name)[order] for law in known] for name in ("value", "mass"))
        terms = [(q, q * (sign * x)) for x, q in zip(value, mass, strict=True)]
        prefix, moment = (np.concatenate([np.cumsum(term[k]) for term in terms]) for k in (0, 1))
        error, drift = (max(getattr(law, name) for law in known) for name in ("error", "drift"))
        return cls(start, sign * np.concatenate(value), np.concatenate(mass), prefix, moment, error, drift)


@kernel(
    "i 2 f f f k1 1 1 1 1 k1 1 1 1 1 1p o1p o1p", lambda n, weight, top, low, drift, start, *rest: 2e-7 * n * start[-1]
)
def _positive_parts(
    n, weight, top, low, drift, u_start, u_value, u_alone, u_mass, u_moment, v_start, v_value, v_alone, v_mass,
    v_moment, expm1_eps, total, size,
):  # fmt: skip
    """total[i] = sum over l + r <= n of weight[l, r] E(l top - D_l + r - s (l + r low + C_r))_+, s = 1 + growth[i].

    D_l and C_r as in `_Sums`. Ratios are `drift` larger (relative, with the side's sign), or less large than given:
    of (1 + drift) U + r - s (l + (1 - drift) V) the factor 1 + drift is booked elsewhere. size[i] is the sum of all
    that is added and subtracted: rounding is relative to it.
    """
    for i in range(expm1_eps.shape[0]):
        s = 1.0 + expm1_eps[i]
        slope = s * (1.0 - 3.0 * drift)
        found = 0.0
        spent = 0.0
        for left in range(n + 1):
            first = u_start[left]
            last = u_start[left + 1]
            for right in range(n + 1 - left):
                share = weight[left, right]
                if share == 0.0:
                    continue
                place = left * ((top - 1.0) - expm1_eps[i]) + right * ((1.0 - low) - expm1_eps[i] * low)
                place += 3.0 * drift * (left * (top + s) + right * (1.0 + 2.0 * s * low))
                k = last
                part = 0.0
                whole = 0.0
                for j in range(v_start[right], v_start[right + 1]):
                    reach = place - slope * v_value[j]
                    while k > first and u_value[k - 1] >= reach:
                        k -= 1
                    if k == first:
                        break
                    bulk = reach * u_mass[k - 1]
                    part += v_alone[j] * (bulk - u_moment[k - 1])
                    whole += v_alone[j] * (abs(bulk) + abs(u_moment[k - 1]))
                found += share * part
                spent += share * whole
        total[i] = found
        size[i] = spent
