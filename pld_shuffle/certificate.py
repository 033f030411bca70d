"""Certificates: what an accountant says about its ledger, with all that a small program needs to prove it anew.

The program is `pld-shuffle-check` (folder checker/), which shares no code with this package and believes nothing that
a certificate says. So what is here decides how tight a claim is and how fast it is checked, never whether it is true:

* a polygon above the privacy profile of each round, at dots j h of one lattice, and for every dot a straight contour
  Re z = c, on which the profile is a sum with positive aliases;
* a tilt and a lattice, on which all rounds are convolved;
* the epsilon that this proof gives. It lies a little above the accountant's own answer, because contours are straight,
  and a little normal noise cuts their sums off.

Everything is done here once in doubles, by the checker's formulas, to know what it will find. The format and its
proofs: docs/certificate_format.md.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import __version__
from .checkpoint import mechanism_state
from .mechanisms import (
    Epoch,
    Gaussian,
    Laplace,
    Mechanism,
    PoissonSampled,
    ShuffledLDP,
    ShuffledRandomizer,
    ShuffledRR,
    Subsampled,
)
from .numerics.sides import Side
from .pairs.coins import CoinMixture
from .pairs.gaussian import GaussianPair, LaplacePair, with_one_noise
from .pairs.pair import Pair
from .pairs.profile import AmplifiedPair, ProfilePair, ProfilePoints, Several, profile_atoms
from .pairs.slots import SlotLaw, SlotPair
from .pairs.swap import _hexagon
from .pairs.swap_pairs import AnyLDPPair, stronger_clones

Array = NDArray[np.float64]
Rounds = Sequence[tuple[Mechanism, int]]

SCHEMA = "pld-shuffle-certificate/1"
COVERED = (ShuffledLDP, Epoch, ShuffledRR, ShuffledRandomizer, Gaussian, Laplace)
NEAR = 0.01  # of the answer: a checker lets a claim be above it by so much
REACH = 6.4  # nodes go on to where the smoothing has fallen to exp(-REACH^2/2), as in the checker
MARGIN = (
    5e-7  # of delta, for the difference between doubles and balls: half of what the checker allows
)
# The rest decides how near a claim is to the answer, and how long it takes to check.
SPACING, PERIOD, SMOOTHING = (
    0.1,
    12.0,
    0.03,
)  # of dots, in deviations of a loss; of contours, in those of the sum
LEFT = (
    1.0,
    0.95,
    0.9,
    0.84,
    0.78,
    0.72,
    0.66,
    0.6,
)  # places of contours of a modulus, in saddle points
FEW_BINS = np.array(
    [1.0, 3.0, 8.0, 20.0, 50.0, 120.0, 300.0, 750.0]
)  # ends of bins of n u, where u matters little
BINS = np.union1d(FEW_BINS, [0.25, 0.5, 0.75, 1.5, 2.0, 4.0, 6.0, 12.0, 30.0])
FEW_PER_USER = 1e-3  # e^eps0/n below which it does
AIM = 0.45  # of NEAR: the lattice gets finer until a claim is as near as that, or it does not help
MOST_NODES, MOST_ATTEMPTS = 2**17, 9

#: What has to be believed, in words, and where it is proved. Word for word what the checker has.
THEOREMS = {
    "labels": "n slots show labels of mass W or nothing, the target's with laws R_0, R_1: H_s <= E(sum_i L_i)_+/n with"
    " L = (R_0 - s R_1)/W. docs/theory.md, section 2 (clones, k-RR) and section 4 (stronger clones, reduction)",
    "swap": "Theorem S: if V <= c W_i for all others, H_s <= int_0^(1/c) n (1-u)^(n-1) G(u) du"
    " + (1-1/c)^n H_s(R_0||R_1), G(u) = E(sum_i (R_0 - s R_1)/W_i^u)_+/n, W^u = (W - uV)/(1-u). docs/swap.md",
    "cohort": "Theorem C: a fresh hidden uniform cohort of n out of N users has (n/N) R_b + (1-n/N) W_i for R_b, and u"
    " = 0. Who takes part independently sends one more report, 'absent'. docs/swap.md",
    "amplification": "A symmetric pair at rate r has H_s = r H_t(P||Q), t = 1 + (s-1)/r, for s >= 1, and its mirror"
    " image (Zhu, Dong, Wang 2022, Proposition 30). docs/theory.md, section 5",
    "noise": "Gaussian: H = Phi(m/2 - e/m) - s Phi(-m/2 - e/m), m = sensitivity/sigma, e = log s (Balle, Wang 2018,"
    " Theorem 8); rounds add their m^2. Laplace: H = 1 - exp((e - m)/2), m = sensitivity/scale, for e <= m",
    "composition": "Products of dominating pairs dominate the adaptive composition (Zhu, Dong, Wang 2022, Theorem 10)."
    " A convex polygon above a profile is one (Doroshenko et al. 2022). docs/certificate_format.md",
}  # fmt: skip


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

    def values(self, growth: Array) -> Array:
        """L at growths, shape (growths, groups)."""
        return self.gain - np.outer(growth, self.fall)

    def log_moment(self, c: Array, growth: Array) -> Array:
        """log E exp(cL) at growths, each with its own c."""
        return np.log1p(np.expm1(c[:, None] * self.values(growth)) @ self.mass)

    def positive_part(self, growth: Array, line: Array, *, modulus: bool) -> Array:
        """E (sum L_i)_+/n by the sum over the nodes of a line (c, period, eta) for every growth, as in the checker.

        modulus : that of the integrand is summed, for Hoelder's inequality.
        """
        c, period, eta = (part[:, None] for part in line)
        step = 2.0 * math.pi / period
        count = (REACH / (eta * step)).astype(int) + 1
        value, n = self.values(growth), self.n
        log_total = self.log_moment(line[0], growth)[:, None]
        tilted = self.mass * np.exp(c * value - log_total)
        node = np.arange(1, int(count.max()) + 1)
        t, mean = step * node, np.zeros((growth.size, node.size), complex)
        for j in range(self.mass.size):
            mean += tilted[:, j, None] * np.expm1(1j * t * value[:, j, None])
        mean = np.log1p(mean)
        if modulus:
            power = np.exp((n - n % 2) * mean.real)
            if n % 2 == 1:
                power *= 0.5 * (1.0 + np.exp(2.0 * mean.real))
            wave = power / (c * c + t * t)
        else:
            wave = (np.exp(n * mean + 1j * eta**2 * c * t) / (c + 1j * t) ** 2).real
        wave *= np.exp(-0.5 * (eta * t) ** 2) * (node <= count)
        last = step * count
        total = (1.0 / c**2 + 2.0 * wave.sum(axis=1, keepdims=True)) * step / (2.0 * math.pi)
        total += np.exp(-0.5 * (eta * last) ** 2) / (math.pi * last)
        found: Array = (np.exp(n * log_total + 0.5 * (eta * c) ** 2) / n * total)[:, 0]
        return found


def contours(kinds: Sequence[Slots], growth: Array) -> Array:
    """Lines (c, period, eta), shape (3, growths), that suit all the kinds: near the saddle point of E exp(cX)/c^2."""
    n = kinds[0].n
    highest = np.max([np.abs(slots.values(growth)).max(axis=1) for slots in kinds], axis=0)
    low, high = np.log(1e-4 / n / highest), np.log(500.0 / highest)

    def height(exponent: Array) -> Array:
        logs = [slots.log_moment(np.exp(exponent), growth) for slots in kinds]
        return np.asarray(n * np.max(logs, axis=0) - 2.0 * exponent)

    golden = 0.5 * (math.sqrt(5.0) - 1.0)
    for _ in range(45):
        one, two = high - golden * (high - low), low + golden * (high - low)
        left = height(one) <= height(two)
        low, high = np.where(left, low, one), np.where(left, two, high)
    c = np.exp(low)
    spread = 1e-3 / c
    for slots in kinds:
        value = slots.values(growth)
        weight = slots.mass * np.exp(c[:, None] * (value - value.max(axis=1, keepdims=True)))
        weight /= weight.sum(axis=1, keepdims=True)
        off = value - (weight * value).sum(axis=1, keepdims=True)
        spread = np.maximum(spread, np.sqrt(n * (weight * off**2).sum(axis=1)))
    return _short(np.array([c, PERIOD * spread, SMOOTHING * spread]))


def _short(numbers: Array) -> Array:
    """To five digits."""
    digits = np.vectorize(lambda x: float(f"{x:.5g}"), otypes=[np.float64])
    return np.asarray(digits(numbers))


# --- one round -------------------------------------------------------------------------------------


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
        inner: Pair = pair
        inner, swap, general = pair, None, 1.0
        if isinstance(inner, AmplifiedPair):
            general, inner = inner.rate, inner.pair
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

    def dots(
        self, step: float, spacing: float, least: float
    ) -> tuple[ProfilePoints, dict[str, Any]]:
        """Upper values at dots j (losses j step), to where they are below `least`; and what a certificate says."""
        scale, top = self.pair.scale, float(self.pair.max_loss.upper)
        last = math.ceil(top / step * (1.0 + 1e-9)) if top < math.inf else 2**40
        where = [0]
        while where[-1] < last and where[-1] * step < 60.0 * scale + step and len(where) < 1500:
            wide = max(1.0, where[-1] * step / (6.0 * scale)) * spacing * scale
            where.append(min(last, where[-1] + max(1, round(wide / step))))
        closing = ["closed" if self.closed else "zero"]
        ends = where[-1] == last
        asked = np.array(where[:-1] if ends else where)
        values, proofs, bins = self._proved(np.expm1(step * asked), least)
        enough = np.flatnonzero(values <= least)
        if enough.size:
            asked = asked[: int(enough[0]) + 1]
            values = values[: asked.size]
        elif ends:
            asked, values, proofs = (
                np.append(asked, last),
                np.append(values, 0.0),
                [*proofs, closing],
            )
        said = [[j, *proof] for j, proof in zip(asked.tolist(), proofs, strict=False)]
        points = ProfilePoints(np.expm1(step * asked), values, values)
        return points, {"bins": bins, "dots": said}

    def _proved(self, growth: Array, least: float) -> tuple[Array, list[list[Any]], list[float]]:
        """Values, for each of them how it is proved, the least that is known; and bins of u."""
        inner = growth / self.general
        if self.closed is not None or growth.size == 0:
            values = self.closed.profile(inner, 1e-12, 0.0).upper if self.closed else growth
            return self.general * values, [["closed"] for _ in growth], []
        assert self.labels is not None
        line = contours([self.labels], inner)
        found = self.labels.positive_part(inner, line, modulus=False)
        proofs: list[list[Any]] = [["labels", *column] for column in line.T.tolist()]
        swapped, bins = False, self._bins(least)
        if self.swap is not None:
            near = np.flatnonzero(inner < 0.999 * math.expm1(self.swap.eps0))
            line = self._shared_contours(inner[near])
            other = self._swapped(inner[near], line, bins)
            for i in np.flatnonzero(other < found[near]).tolist():
                swapped = True
                found[near[i]], proofs[near[i]] = other[i], ["swap", *line[:, i].tolist()]
        return self.general * found, proofs, bins if swapped else []

    # -- the swap theorem, by types of laws moved by u -----------------------------------------------

    def _types(self, u: float) -> list[Slots]:
        assert self.swap is not None
        cohort, v = self.swap.cohort, u / (1.0 - u)
        weight, excess, base, slope, _ = _hexagon(math.expm1(self.swap.eps0), cohort.absence, False)
        beta, q = 1.0 - v * excess, cohort.rate
        rows = zip(weight * beta, q * base / beta, q * slope / beta + (1.0 - q), strict=True)
        return [Slots(self.swap.n, *(part[row[0] > 0.0] for part in row)) for row in rows]

    def _shared_contours(self, growth: Array) -> Array:
        """Lines on which the modulus has a small sum: near growth 0 they lie left of the saddle point."""
        kinds = self._types(0.0)[:3]
        line = contours(kinds, growth)
        best, least = line, np.full(growth.size, np.inf)
        for factor in LEFT:
            moved = np.array([_short(factor * line[0]), *line[1:]])
            sums = [slots.positive_part(growth, moved, modulus=True) for slots in kinds]
            found = np.max(sums, axis=0)
            best, least = np.where(found < least, moved, best), np.minimum(found, least)
        return best

    def _bins(self, least: float) -> list[float]:
        """Ends of bins of u, to where no more than `least` is beyond; none for a hidden cohort, where u is 0."""
        if self.swap is None or self.swap.cohort.rate < 1.0:
            return []
        n, p = self.swap.n, math.exp(self.swap.eps0)
        bins = FEW_BINS if p < FEW_PER_USER * n else BINS
        ends = bins[: int(np.searchsorted(bins, 3.0 - math.log(least))) + 1] / n
        return [u for u in _short(ends).tolist() if u < 0.9 / p]

    def _swapped(self, growth: Array, line: Array, bins: Sequence[float]) -> Array:
        assert self.swap is not None
        n, over = self.swap.n, math.expm1(self.swap.eps0)

        def worst(u: float) -> Array:
            few = u * (1.0 + over) * (1.0 + growth) <= 1.0
            found = [slots.positive_part(growth, line, modulus=True) for slots in self._types(u)]
            found = [*found[:3], *(np.where(few, 0.0, one) for one in found[3:])]
            return np.asarray(np.max(found, axis=0))

        if self.swap.cohort.rate < 1.0:
            return worst(0.0)
        alone = self.swap.cohort.presence * (over - growth) / (over + 2.0)
        total, left = np.zeros(growth.size), 1.0
        for u in bins:
            after = math.exp(n * math.log1p(-u))
            total += (left - after) * np.minimum(alone, worst(u))
            left = after
        return np.asarray(total + left * alone)


# --- all rounds -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Composed:
    """All rounds on a lattice, tilted: the checker's sum in doubles."""

    step: float
    tilt: float
    log_scale: float
    masses: Array
    infinite: float

    def parts(self, epsilon: float) -> tuple[float, float]:
        """delta at `epsilon`, and what of it is beyond the window."""
        first, nodes = math.floor(epsilon / self.step) - 1, self.masses.size
        loss = self.step * (first + np.arange(nodes)) - epsilon
        weight = np.exp(-self.tilt * loss) * np.maximum(-np.expm1(-loss), 0.0)
        inside = float(self.masses[(first + np.arange(nodes)) % nodes] @ weight)
        scale = math.exp(self.log_scale - self.tilt * epsilon)
        beyond = scale * math.exp(-self.tilt * (self.step * (first + nodes) - epsilon))
        return scale * inside + beyond + self.infinite, beyond


def composed(points: Sequence[tuple[ProfilePoints, int]], step: float, epsilon: float) -> Composed:
    """The polygons' atoms, composed on a lattice and with a tilt that suit `epsilon`."""
    held = [(profile_atoms(one, one, Side.UPPER), count) for one, count in points]
    laws = [(np.rint(law.loss / step).astype(int), law.mass, count) for law, count in held]

    def moments(tilt: float) -> tuple[float, float]:
        """Mean and variance of the loss of all rounds."""
        mean = variance = 0.0
        for index, mass, count in laws:
            weight = mass * np.exp(step * (tilt * index - (tilt * index).max()))
            weight /= weight.sum()
            centre = float(weight @ index)
            mean += count * step * centre
            variance += count * step**2 * float(weight @ (index - centre) ** 2)
        return mean, variance

    deviation = math.sqrt(moments(0.0)[1]) or 1.0
    low, high = 0.0, 1.0 / deviation
    while moments(high)[0] < epsilon and high * deviation < 1e3:
        low, high = high, 2.0 * high
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if moments(middle)[0] < epsilon else (low, middle)
    tilt = float(f"{max(high, 1.0 / deviation):.6g}")
    wide = max(18.0 * math.sqrt(moments(tilt)[1]), 40.0 / tilt)
    nodes = 2 ** math.ceil(math.log2(max(16.0, wide / step)))
    if nodes > MOST_NODES:
        raise ValueError(f"the ledger needs a lattice of {nodes} nodes, more than {MOST_NODES}")
    spectrum, log_scale = np.ones(nodes // 2 + 1, complex), 0.0
    for index, mass, count in laws:
        tilted = mass * np.exp(tilt * step * index)
        total = math.fsum(tilted)
        wrapped = np.bincount(index % nodes, tilted / total, nodes)
        spectrum *= np.fft.rfft(wrapped) ** count
        log_scale += count * math.log(total)
    infinite = math.fsum(count * law.infinite for law, count in held)
    return Composed(step, tilt, log_scale, np.fft.irfft(spectrum, nodes), infinite)


def certificate(rounds: Rounds, delta: float, answer: float) -> str:
    """A certificate of what `rounds` spend at `delta`, about as tight as `answer`; JSON text.

    rounds : mechanisms with their counts. delta : in (0, 1). answer : the accountant's epsilon, finite; the claim is
    within NEAR of it. Raises ValueError for a mechanism that the checker does not know, and where no claim as near as
    that is found.
    """
    if not (rounds and 0.0 < delta < 1.0 and answer < math.inf):
        raise ValueError(
            f"a certificate needs rounds, a delta in (0, 1) and a finite epsilon, got {len(rounds)} mechanisms,"
            f" delta={delta!r}, epsilon={answer!r}"
        )
    ledger = [
        {"mechanism": mechanism_state(_covered(mechanism)), "count": count}
        for mechanism, count in rounds
    ]
    known = [
        (Known.of(pair), count)
        for pair, count in with_one_noise([(held.pair, count) for held, count in rounds])
    ]
    found, said, epsilon = _nearest(known, delta, answer)
    _, beyond = found.parts(epsilon)
    held: dict[str, Any] = {
        "schema": SCHEMA,
        "package": __version__,
        "claim": {"epsilon": epsilon, "delta": delta, "answer": answer},
        "theorems": THEOREMS,
        "assumptions": _assumptions(rounds),
        "ledger": ledger,
        "pairs": said,
        "lattice": {"step": found.step, "tilt": found.tilt, "nodes": found.masses.size},
        "errors": {"infinite": found.infinite, "beyond": beyond},
    }
    return json.dumps(held | {"digest": digest(held)}, allow_nan=False)


def _nearest(
    known: Sequence[tuple[Known, int]], delta: float, answer: float
) -> tuple[Composed, list[dict[str, Any]], float]:
    """The coarsest lattice on which epsilon is near enough, what it says of the pairs, and that epsilon."""
    total = sum(count for _, count in known)
    least = 1e-4 * delta / total
    heavy = max(known, key=lambda item: item[1] * item[0].pair.scale ** 2)[0].pair
    scale, top = heavy.scale or 1.0, float(heavy.max_loss.upper)
    gap = math.inf
    for attempt in range(MOST_ATTEMPTS):
        spacing = SPACING * 0.7**attempt
        step = spacing * scale * 0.7**attempt
        if 0.0 < top < math.inf:  # an atom, for which there is a lattice point
            step = top / math.ceil(top / step) * (1.0 + 1e-8)
        dots = [one.dots(step, spacing, least) for one, _ in known]
        points = [(one, count) for (one, _), (_, count) in zip(dots, known, strict=True)]
        found = composed(points, step, answer)
        epsilon = _solved(found, delta * (1.0 - MARGIN), answer)
        before, gap = gap, epsilon / answer - 1.0 if answer > 0.0 else 0.0
        if gap <= AIM * NEAR or (gap <= 0.8 * NEAR and gap > 0.7 * before):
            return found, [said for _, said in dots], epsilon
    raise ValueError(
        f"epsilon={answer!r} at delta={delta!r} cannot be certified to within {NEAR:.0%}; the claim would be"
        f" {gap:.1%} larger"
    )


def _solved(found: Composed, delta: float, answer: float) -> float:
    """The least epsilon at which all rounds spend delta, next to `answer`; inf if it is not near."""
    if answer == 0.0:
        return 0.0 if found.parts(0.0)[0] <= delta else math.inf
    low, high = 0.95 * answer, 1.05 * answer
    if not found.parts(high)[0] <= delta < found.parts(low)[0]:
        return math.inf
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (low, middle) if found.parts(middle)[0] <= delta else (middle, high)
    return high


def _covered(mechanism: Mechanism) -> Mechanism:
    inner = mechanism
    unequal = False
    while isinstance(inner, (Subsampled, PoissonSampled)):
        unequal = isinstance(inner, Subsampled) and inner.dropout_limit > 0.0
        inner = inner.mechanism
    if unequal or not isinstance(inner, COVERED):
        raise ValueError(f"no certificate covers {mechanism!r}")
    return mechanism


def _assumptions(rounds: Rounds) -> dict[str, list[str]]:
    """What the claim rests on, by topic, each sentence once."""
    found: dict[str, dict[str, None]] = {}
    for mechanism, _ in rounds:
        for topic, sentence in mechanism.assumptions().items():
            found.setdefault(topic, {})[sentence] = None
    return {topic: [*sentences] for topic, sentences in found.items()}


def digest(held: dict[str, Any]) -> str:
    """SHA-256 of a certificate without its digest."""
    text = json.dumps(held, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
