"""Upper values of privacy profiles by sums over straight lines, as whoever trusts nothing would prove them.

Elsewhere contours are curved, and their error of quadrature is booked (`contour_kernels`, `swap_kernels`). On a line
Re z = c whatever the trapezoidal rule adds is positive, by Poisson's summation formula, for the integral of
E exp(zX)/z^2 as for that of its modulus. So a sum over nodes is a bound that a page of text proves, and a small
program checks: docs/certificate_format.md, section 4. The price is up to 1 % of a divergence.

Everything here is in doubles, without bounds of rounding: it is what a certificate expects its checker to find. Three
kinds of proofs, by which `Known` finds values at dots of a lattice of losses:

* "labels": the slots of a mixture of coins, exactly;
* "swap": Theorems S and C for any eps0-LDP randomizer, by Hoelder's inequality on one line for all types;
* "closed" and "zero": a closed form, and where no slot has a positive L.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..numerics.sides import Array
from ..numerics.tuning import CERTIFICATE
from .coins import CoinMixture
from .gaussian import GaussianPair, LaplacePair
from .pair import Pair
from .profile import AmplifiedPair, ProfilePair, ProfilePoints, Several
from .slots import SlotLaw, SlotPair
from .swap import extreme_laws
from .swap_pairs import AnyLDPPair, stronger_clones

REACH = 6.4  # nodes go on to where the smoothing has fallen to exp(-REACH^2/2), as in the checker
SPACING, PERIOD, SMOOTHING, FEW_PER_USER = CERTIFICATE[:4]


@dataclass(frozen=True)
class Slots:
    """n slots: masses of groups of reports, and gain and fall of L = gain - growth fall on them (`pairs.slots`)."""

    n: int
    mass: Array
    gain: Array
    fall: Array

    @classmethod
    def of(cls, law: SlotLaw, share: float) -> Slots:
        """A slot law, on a hidden cohort that the target belongs to with probability `share`."""
        held = law.others > 0.0
        first, second, others = law.first[held], law.second[held], law.others[held]
        gain, fall = share * (first - second) / others, share * second / others + (1.0 - share)
        return cls(law.n, others, gain, fall)

    def values(self, expm1_eps: Array) -> Array:
        """L at growths, shape (growths, groups)."""
        return self.gain - np.outer(expm1_eps, self.fall)

    def log_moment(self, c: Array, expm1_eps: Array) -> Array:
        """log E exp(cL) at growths, each with its own c."""
        return np.log1p(np.expm1(c[:, None] * self.values(expm1_eps)) @ self.mass)

    def positive_part(self, expm1_eps: Array, line: Array, *, modulus: bool) -> Array:
        """E (sum L_i)_+/n by the sum over the nodes of a line (c, period, eta) for every growth, as in the checker.

        modulus : that of the integrand is summed, for Hoelder's inequality.
        """
        c, period, eta = (part[:, None] for part in line)
        step = 2.0 * math.pi / period
        count = (REACH / (eta * step)).astype(int) + 1
        value, n = self.values(expm1_eps), self.n
        log_total = self.log_moment(line[0], expm1_eps)[:, None]
        tilted = self.mass * np.exp(c * value - log_total)
        node = np.arange(1, int(count.max()) + 1)
        t, versine, sine = step * node, *np.zeros((2, expm1_eps.size, node.size))  # 1 - Re and Im of E exp(itL)
        for j in range(self.mass.size):
            turn = t * value[:, j, None]
            versine += 2.0 * tilted[:, j, None] * np.sin(0.5 * turn) ** 2
            sine += tilted[:, j, None] * np.sin(turn)
        log_size = 0.5 * np.log1p(versine * (versine - 2.0) + sine * sine)
        if modulus:
            power = np.exp((n - n % 2) * log_size)
            if n % 2 == 1:
                power *= 0.5 * (1.0 + np.exp(2.0 * log_size))
            wave = power / (c * c + t * t)
        else:
            angle = n * np.arctan2(sine, 1.0 - versine) + eta**2 * c * t
            wave = (np.exp(n * log_size + 1j * angle) / (c + 1j * t) ** 2).real
        wave *= np.exp(-0.5 * (eta * t) ** 2) * (node <= count)
        last = step * count
        total = (1.0 / c**2 + 2.0 * wave.sum(axis=1, keepdims=True)) * step / (2.0 * math.pi)
        total += np.exp(-0.5 * (eta * last) ** 2) / (math.pi * last)
        with np.errstate(over="ignore"):  # an infinite bound is one, and no better one is lost
            found: Array = (np.exp(n * log_total + 0.5 * (eta * c) ** 2) / n * total)[:, 0]
        return found


def contours(kinds: Sequence[Slots], expm1_eps: Array, noise: float) -> Array:
    """Lines (c, period, eta), shape (3, growths), that suit all the kinds: near the saddle point of E exp(cX)/c^2.

    noise : eta in deviations of the sum.
    """
    n = kinds[0].n
    highest = np.max([np.abs(slots.values(expm1_eps)).max(axis=1) for slots in kinds], axis=0)
    low, high = np.log(1e-4 / n / highest), np.log(500.0 / highest)

    def height(exponent: Array) -> Array:
        logs = [slots.log_moment(np.exp(exponent), expm1_eps) for slots in kinds]
        return np.asarray(n * np.max(logs, axis=0) - 2.0 * exponent)

    golden = 0.5 * (math.sqrt(5.0) - 1.0)
    for _ in range(45):
        one, two = high - golden * (high - low), low + golden * (high - low)
        left = height(one) <= height(two)
        low, high = np.where(left, low, one), np.where(left, two, high)
    c = np.exp(low)
    spread = 1e-3 / c
    for slots in kinds:
        value = slots.values(expm1_eps)
        weight = slots.mass * np.exp(c[:, None] * (value - value.max(axis=1, keepdims=True)))
        weight /= weight.sum(axis=1, keepdims=True)
        off = value - (weight * value).sum(axis=1, keepdims=True)
        spread = np.maximum(spread, np.sqrt(n * (weight * off**2).sum(axis=1)))
    return _short(np.array([c, PERIOD * spread, noise * spread]))


def _short(numbers: Array) -> Array:
    """To five digits."""
    digits = np.vectorize(lambda x: float(f"{x:.5g}"), otypes=[np.float64])
    return np.asarray(digits(numbers))


@dataclass(frozen=True)
class Known:
    """What is known of one round: labels, the swap theorem, or a closed form; each amplified at rate `general`."""

    pair: Pair
    labels: Slots | None = None
    swap: AnyLDPPair | None = None
    closed: ProfilePair | None = None
    general: float = 1.0

    @classmethod
    def of(cls, pair: Any) -> Known:
        """TypeError for a pair that is not covered."""
        inner, swap, general = pair, None, 1.0
        if isinstance(inner, AmplifiedPair):
            general, inner = inner.rate, inner.ahead
        if isinstance(inner, Several):
            inner = inner.pairs[0]
        if isinstance(inner, AnyLDPPair):
            swap = inner
            inner = stronger_clones(swap.eps0, swap.n).sampled(swap.cohort)
        if isinstance(inner, CoinMixture):
            labels = Slots.of(inner.slot_law(), inner.participation)
            return cls(pair, labels, swap, general=general * inner.amplification)
        if isinstance(inner, SlotPair) and isinstance(inner.law, SlotLaw):
            return cls(pair, Slots.of(inner.law, 1.0), general=general)
        if isinstance(inner, (GaussianPair, LaplacePair)):
            return cls(pair, closed=inner, general=general)
        raise TypeError(f"pair must be one of labels, types or noise, got {pair!r}")

    def dots(self, step: float, spacing: float, least: float) -> tuple[ProfilePoints, dict[str, Any]]:
        """Upper values at dots j (losses j step), to where they are below `least`; and what a certificate says."""
        scale, top = self.pair.scale, float(self.pair.max_loss.upper)
        last = math.ceil(top / step * (1.0 + 1e-9)) if top < math.inf else 2**40
        where = [0]
        while where[-1] < last and where[-1] * step < 60.0 * scale + step and len(where) < 1500:
            wide = max(1.0, where[-1] * step / (6.0 * scale)) * spacing * scale
            where.append(min(last, where[-1] + max(1, round(wide / step))))
        closing = ["closed" if self.closed else "zero"]
        ends = where[-1] == last
        asked = np.array(where[:-1] if ends else where, np.int64)
        values, proofs, bins = self._proved(np.expm1(step * asked), least, SMOOTHING * spacing)
        enough = np.flatnonzero(values <= least)
        if enough.size:
            asked = asked[: int(enough[0]) + 1]
            values = values[: asked.size]
        elif ends:
            asked, values, proofs = (np.append(asked, last), np.append(values, 0.0), [*proofs, closing])
        said = [[j, *proof] for j, proof in zip(asked.tolist(), proofs, strict=False)]
        points = ProfilePoints(np.expm1(step * asked), values, values)
        return points, {"bins": bins, "dots": said}

    def _proved(self, expm1_eps: Array, least: float, noise: float) -> tuple[Array, list[list[Any]], list[float]]:
        """Values, for each of them how it is proved, the least that is known; and bins of u."""
        inner = expm1_eps / self.general
        if self.closed is not None or expm1_eps.size == 0:
            values = self.closed.profile(inner, 1e-12, 0.0).upper if self.closed else expm1_eps
            return self.general * values, [["closed"] for _ in expm1_eps], []
        assert self.labels is not None
        line = contours([self.labels], inner, noise)
        found = self.labels.positive_part(inner, line, modulus=False)
        proofs: list[list[Any]] = [["labels", *column] for column in line.T.tolist()]
        swapped, bins = False, self._bins(least)
        if self.swap is not None:
            near = np.flatnonzero(inner < 0.999 * math.expm1(self.swap.eps0))
            line, other = self._shared_contours(inner[near], noise)
            if self.swap.cohort.rate == 1.0:
                other = self._swapped(inner[near], line, bins)
            for i in np.flatnonzero(other < found[near]).tolist():
                swapped = True
                found[near[i]], proofs[near[i]] = other[i], ["swap", *line[:, i].tolist()]
        return self.general * found, proofs, bins if swapped else []

    # -- the swap theorem, by types of laws moved by u -----------------------------------------------

    def _types(self, u: float) -> list[Slots]:
        assert self.swap is not None
        cohort, v, found = self.swap.cohort, u / (1.0 - u), []
        for law in extreme_laws(self.swap.eps0):
            first, second, shared, other = cohort.with_absence(law)
            mass, q = other - v * (shared - other), cohort.rate
            found.append(Slots(self.swap.n, mass, q * (first - second) / mass, q * second / mass + (1.0 - q)))
        return found

    def _shared_contours(self, expm1_eps: Array, noise: float) -> tuple[Array, Array]:
        """Lines on which the modulus has a small sum, and the largest sum of the types where u is 0.

        Near growth 0 they lie left of the saddle point: they move there as long as the sum falls.
        """
        kinds = self._types(0.0)[:3]
        line = contours(kinds, expm1_eps, noise)
        best, least, falling = line.copy(), np.full(expm1_eps.size, np.inf), np.arange(expm1_eps.size)
        for factor in np.geomspace(1.0, 0.6, 8):
            moved = np.array([_short(factor * line[0]), *line[1:]])[:, falling]
            sums = [slots.positive_part(expm1_eps[falling], moved, modulus=True) for slots in kinds]
            found = np.max(sums, axis=0)
            better = found < least[falling]
            falling = falling[better]
            best[:, falling], least[falling] = moved[:, better], found[better]
            if not falling.size:
                break
        return best, least

    def _bins(self, least: float) -> list[float]:
        """Ends of bins of u, to where no more than `least` is beyond; none for a hidden cohort, where u is 0."""
        if self.swap is None or self.swap.cohort.rate < 1.0:
            return []
        n, p = self.swap.n, math.exp(self.swap.eps0)
        # At 1/n and so on to where nothing is left; half as many where few users of type p are in a bin.
        ends = 0.3 * 1.6 ** np.arange(math.ceil(math.log(10.0 * (3.0 - math.log(least)), 1.6))) / n
        return [u for u in _short(ends[:: 2 if p < FEW_PER_USER * n else 1]).tolist() if u < 0.9 / p]

    def _swapped(self, expm1_eps: Array, line: Array, bins: Sequence[float]) -> Array:
        """Values for everybody, by bins of u."""
        assert self.swap is not None
        n, over = self.swap.n, math.expm1(self.swap.eps0)

        def worst(u: float) -> Array:
            few = u * (1.0 + over) * (1.0 + expm1_eps) <= 1.0
            found = [slots.positive_part(expm1_eps, line, modulus=True) for slots in self._types(u)]
            found = [*found[:3], *(np.where(few, 0.0, one) for one in found[3:])]
            return np.asarray(np.max(found, axis=0))

        alone = self.swap.cohort.presence * (over - expm1_eps) / (over + 2.0)
        total, left = np.zeros(expm1_eps.size), 1.0
        for u in bins:
            after = math.exp(n * math.log1p(-u))
            total += (left - after) * np.minimum(alone, worst(u))
            left = after
        return np.asarray(total + left * alone)
