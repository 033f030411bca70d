"""Certificates: what an accountant says about its ledger, with all that a small program needs to prove it anew.

The program is `pld-shuffle-check` (folder checker/), which shares no code with this package and believes nothing that
a certificate says. So what is here decides how tight a claim is and how fast it is checked, never whether it is true:
a polygon above the privacy profile of each round, at dots j h of one lattice, and for every dot a straight contour
Re z = c, on which the profile is a sum with positive aliases; a tilt and a lattice, on which all rounds are convolved;
and the epsilon that this proof gives, a little above the accountant's own answer. Everything is done here once in
doubles, by the checker's formulas, to know what it will find (docs/certificate_format.md).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import __version__
from .checkpoint import rounds_state
from .composition.plan import Sketch
from .mechanisms import Epoch, Gaussian, Laplace, Mechanism, ShuffledLDP, ShuffledRandomizer, ShuffledRR
from .mechanisms.base import assumed
from .mechanisms.sampling import PoissonSampled, Subsampled
from .numerics.search import crossing
from .numerics.sides import Array, Side
from .numerics.tuning import CERTIFICATE
from .pairs.gaussian import with_one_noise
from .pairs.pair import Pair
from .pairs.profile import ProfilePoints, profile_atoms
from .pairs.straight import SPACING, Known

Rounds = Sequence[tuple[Mechanism, int]]

SCHEMA = "pld-shuffle-certificate/1"
COVERED = (ShuffledLDP, Epoch, ShuffledRR, ShuffledRandomizer, Gaussian, Laplace)
NEAR = 0.01  # of the answer: a checker lets a claim be above it by so much
MARGIN = 4e-10  # of epsilon, for what doubles are off: less than half of what the checker allows
MOST_NODES = 2**18
LARGEST_LOG = 700.0  # of a double, nearly; delta is far above 1 before
SIZES, AIM, MOST_ATTEMPTS = CERTIFICATE[4:]
FINER = 0.7  # dots, smoothing and steps shrink by this until a claim is near enough

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
class Composed:
    """All rounds on a lattice, tilted: the checker's sum in doubles."""

    step: float
    tilt: float
    log_scale: float
    masses: Array
    infinity_mass: float

    def parts(self, epsilon: float) -> tuple[float, float]:
        """delta at `epsilon`, and what of it is beyond the window."""
        first, nodes = math.floor(epsilon / self.step) - 1, self.masses.size
        loss = self.step * (first + np.arange(nodes)) - epsilon
        weight = np.exp(-self.tilt * loss) * np.maximum(-np.expm1(-loss), 0.0)
        inside = float(self.masses[(first + np.arange(nodes)) % nodes] @ weight)
        log_scale = min(self.log_scale - self.tilt * epsilon, LARGEST_LOG)
        scale, beyond = math.exp(log_scale), math.exp(log_scale - self.tilt * (self.step * (first + nodes) - epsilon))
        return scale * inside + beyond + self.infinity_mass, beyond


def composed(points: Sequence[tuple[ProfilePoints, int]], step: float, sketch: Sketch, epsilon: float) -> Composed:
    """The polygons' atoms, composed on a lattice and with a tilt that suit `epsilon`."""
    held = [(profile_atoms(one, one, Side.UPPER), count) for one, count in points]
    laws = [(np.rint(law.loss / step).astype(int), law.mass, count) for law, count in held]
    tilt = float(f"{max(sketch.saddle(epsilon), 1.0 / sketch.scale):.6g}")
    wide = max(18.0 * math.sqrt(sketch.moments(tilt)[2]), 40.0 / tilt)
    nodes = 2 ** math.ceil(math.log2(max(16.0, wide / step)))
    if nodes > MOST_NODES:
        raise ValueError(f"the ledger needs a lattice of {nodes} nodes, more than {MOST_NODES}")
    spectrum, log_scale = np.ones(nodes // 2 + 1, complex), 0.0
    for index, mass, count in laws:
        shift = tilt * step * float(index.max())
        tilted = mass * np.exp(tilt * step * index - shift)
        total = math.fsum(tilted)
        spectrum *= np.fft.rfft(np.bincount(index % nodes, tilted / total, nodes)) ** count
        log_scale += count * (math.log(total) + shift)
    infinity_mass = math.fsum(count * law.infinity_mass for law, count in held)
    masses = np.maximum(np.fft.irfft(spectrum, nodes), 0.0)  # rounding below 0 would count against what is far
    return Composed(step, tilt, log_scale, masses, infinity_mass)


def certificate(
    rounds: Rounds, delta: float, answer: float, progress: Callable[[int, int], None] = lambda done, total: None
) -> str:
    """A certificate of what `rounds` spend at `delta`, about as tight as `answer`; JSON text.

    rounds : mechanisms with their counts. delta : in (0, 1). answer : the accountant's epsilon, finite; the claim is
    within NEAR of it. progress : called with (mechanisms done, in all), and anew for a finer lattice. Raises
    ValueError for a mechanism that the checker does not know, and where no claim as near as that is found.
    """
    if not (rounds and 0.0 < delta < 1.0 and answer < math.inf):
        raise ValueError(
            f"a certificate needs rounds, a delta in (0, 1) and a finite epsilon, got {len(rounds)} mechanisms,"
            f" delta={delta!r}, epsilon={answer!r}"
        )
    ledger = rounds_state((covered(mechanism), count) for mechanism, count in rounds)
    pooled = _pooled(rounds)
    known = [(Known.of(pair), count) for _, pair, count in pooled]
    if any(float(pair.max_loss.upper) == 0.0 for _, pair, _ in pooled):
        raise ValueError("a certificate needs mechanisms that give something away, all of them")
    ends = np.cumsum([len(held) for held, _, _ in pooled]).tolist()
    found, dots, epsilon = _nearest(known, delta, answer, lambda pairs: progress(ends[pairs - 1], len(rounds)))
    said = [{"covers": held, **row} for (held, _, _), row in zip(pooled, dots, strict=True)]
    _, beyond = found.parts(epsilon)
    held: dict[str, Any] = {
        "schema": SCHEMA,
        "package": __version__,
        "claim": {"epsilon": epsilon, "delta": delta, "answer": answer},
        "theorems": THEOREMS,
        "assumptions": assumed(mechanism for mechanism, _ in rounds),
        "ledger": ledger,
        "pairs": said,
        "lattice": {"step": found.step, "tilt": found.tilt, "nodes": found.masses.size},
        "errors": {"infinite": found.infinity_mass, "beyond": beyond},
    }
    return json.dumps(held | {"digest": digest(held)}, allow_nan=False)


def _pooled(rounds: Rounds) -> list[tuple[list[int], Pair, int]]:
    """Entries that one pair covers, the pair and its count: Gaussian noise, and hidden cohorts of almost one size.

    Out of one population the largest cohort is the worst (docs/swap.md, Theorem C).
    """
    families: dict[Hashable, list[int]] = {}
    for i, (mechanism, _) in enumerate(rounds):
        families.setdefault(_family(mechanism) or i, []).append(i)
    found = []
    for members in families.values():
        left = sorted(members, key=lambda i: rounds[i][0].users or 0)
        while left:
            most = SIZES * (rounds[left[0]][0].users or 0)
            held = [i for i in left if (rounds[i][0].users or 0) <= most]
            left = left[len(held) :]
            if isinstance(rounds[held[0]][0], Gaussian):
                alike = [(rounds[i][0].pair, rounds[i][1]) for i in held]
            else:
                alike = [(rounds[held[-1]][0].pair, sum(rounds[i][1] for i in held))]
            [(pair, count)] = with_one_noise(alike)
            found.append((held, pair, count))
    return found


def _family(mechanism: Mechanism) -> Hashable:
    """What mechanisms have in common that one pair may cover; None for one that stands alone."""
    if isinstance(mechanism, Gaussian):
        return "noise"
    if not (isinstance(mechanism, Subsampled) and mechanism.population and mechanism.rate < 1.0):
        return None
    given = mechanism.arguments()
    inner = given.pop("mechanism")
    sizeless = inner.arguments() | {"n": None}
    return None if mechanism.analysis == "general" else (type(inner), *given.items(), *sizeless.items())


def _nearest(
    known: Sequence[tuple[Known, int]], delta: float, answer: float, tell: Callable[[int], None]
) -> tuple[Composed, list[dict[str, Any]], float]:
    """The coarsest lattice on which epsilon is near enough, what it says of the pairs, and that epsilon."""
    total = sum(count for _, count in known)
    least = 1e-4 * delta / total
    heavy = max(known, key=lambda item: item[1] * item[0].pair.scale ** 2)[0].pair
    scale, top = heavy.scale or 1.0, float(heavy.max_loss.upper)
    sketch, gap = Sketch.at_delta([(one.pair, count) for one, count in known], delta, total), math.inf
    for attempt in range(MOST_ATTEMPTS):
        spacing = SPACING * FINER**attempt
        step = spacing * scale * FINER**attempt
        if 0.0 < top < math.inf:  # an atom, for which there is a lattice point
            step = top / math.ceil(top / step) * (1.0 + 1e-8)
        dots = []
        for one, _ in known:
            dots.append(one.dots(step, spacing, least))
            tell(len(dots))
        points = [(one, count) for (one, _), (_, count) in zip(dots, known, strict=True)]
        found = composed(points, step, sketch, answer)
        epsilon = _solved(found, delta, answer) * (1.0 + MARGIN)
        before, gap = gap, epsilon / answer - 1.0 if answer > 0.0 else 0.0
        enough = AIM if attempt + 1 < MOST_ATTEMPTS else 0.99
        if gap <= enough * NEAR or (gap <= 0.8 * NEAR and gap > 0.7 * before):
            return found, [said for _, said in dots], epsilon
    raise ValueError(
        f"epsilon={answer!r} at delta={delta!r} cannot be certified to within {NEAR:.0%}; the claim would be"
        f" {gap:.1%} larger"
    )


def _solved(found: Composed, delta: float, answer: float) -> float:
    """The least epsilon at which all rounds spend delta, next to `answer`; inf if it is not near."""
    if answer == 0.0:
        return 0.0 if found.parts(0.0)[0] <= delta else math.inf

    def excess(epsilon: Any) -> float:
        return found.parts(float(epsilon))[0] - delta

    wrong, right = ((end, excess(end)) for end in (0.95 * answer, 1.05 * answer))
    return float(crossing(excess, wrong, right)) if right[1] <= 0.0 < wrong[1] else math.inf


def covered(mechanism: Mechanism) -> Mechanism:
    """The mechanism, if the checker knows it; else ValueError."""
    inner = mechanism
    unequal = False
    while isinstance(inner, (Subsampled, PoissonSampled)):
        unequal = isinstance(inner, Subsampled) and inner.dropout_limit > 0.0
        inner = inner.mechanism
    unknown = isinstance(inner, Epoch) and inner.analysis != "stronger-clones"
    if unequal or unknown or not isinstance(inner, COVERED):
        known = ", ".join(kind.__name__ for kind in COVERED)
        raise ValueError(
            f"no certificate covers {mechanism!r}; the checker knows {known}, sampled or not, without dropout_limit,"
            " epochs by stronger clones (for a randomizer that is named, ShuffledLDP with its eps0 is an upper bound"
            " that it knows)"
        )
    return mechanism


def digest(held: dict[str, Any]) -> str:
    """SHA-256 of a certificate without its digest."""
    text = json.dumps(held, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
