"""Check a certificate of pld_shuffle: that its ledger spends at most `epsilon` at `delta`.

Every number is a ball of FLINT's Arb: a midpoint and a radius that contain the true value, whatever was rounded. The
certificate says where to look (dots, contours, a tilt, a lattice) and what it claims; nothing in it is believed. This
file shares no code with pld_shuffle, and follows docs/certificate_format.md, whose section numbers are quoted below.

1. *Slots* (section 3). A round of a mechanism is n slots, each of a few groups of reports: the others' mass, and the
   ratios a, b of the target's two laws to it. The hockey-stick divergence at s = 1 + g is at most

       H_s <= (1/n) E (L_1 + ... + L_n)_+ ,    L = a - b - g b .

2. *Contour* (section 4). E(.)_+ is a sum over nodes on a line in the complex plane. What the sum has too much is
   positive: no error of quadrature has to be booked.
3. *Polygon* (section 5). Upper values at dots e^(jh), joined, are the atoms of a pair that dominates the round.
4. *Composition* (section 6). Atoms are tilted and transformed, powers are multiplied, and delta is read off the inverse
   transform. What wraps around is positive, too.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from flint import acb, arb, ctx

SCHEMA = "pld-shuffle-certificate/1"
PRECISION = 128  # bits of a ball's midpoint
TIGHT = 1e-9  # relative: the claim is the least epsilon of its proof; else it would be another ledger's
NEAR = 0.01  # relative, of the answer that the accountant gave
REACH = 6.4  # nodes go on until the smoothing has fallen to exp(-REACH^2/2); the rest is booked
AFRESH = 16  # steps around the circle until exponentials are taken anew: every step widens a ball
MOST_NODES, MOST_CONTOUR, MOST_DOTS, MOST_ROUNDS = 2**21, 20_000, 5_000, 10**12

#: What has to be believed, in words, and where it is proved. Every certificate quotes it.
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


class Rejected(Exception):
    """The certificate does not prove its claim; the text says where."""


def require(holds: bool, why: str) -> None:
    if not holds:
        raise Rejected(why)


# --- reading ---------------------------------------------------------------------------------------


def fields(value: Any, place: str, *names: str, also: tuple[str, ...] = ()) -> list[Any]:
    """The values of an object that has exactly these names, and maybe some others."""
    require(isinstance(value, dict), f"{place}: expected an object, got {value!r}")
    require(set(names) <= set(value), f"{place}: lacks {sorted(set(names) - set(value))}")
    extra = set(value) - set(names) - set(also)
    require(not extra, f"{place}: unknown {sorted(extra)}")
    return [value[name] for name in names]


def real(value: Any, place: str, low: float, high: float) -> arb:
    """A number in [low, high], which stands for the double that it is read as."""
    good = type(value) in (int, float) and low <= value <= high
    require(good, f"{place}: expected a number in [{low:g}, {high:g}], got {value!r}")
    return arb(value)


def whole(value: Any, place: str, low: int, high: int) -> int:
    good = type(value) is int and low <= value <= high
    require(good, f"{place}: expected an integer in [{low}, {high}], got {value!r}")
    return int(value)


def rows(value: Any, place: str, most: int) -> list[Any]:
    require(isinstance(value, list) and len(value) <= most, f"{place}: expected a short list")
    return list(value)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    require(len(dict(pairs)) == len(pairs), "a name stands twice in one object")
    return dict(pairs)


def parsed(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise Rejected(f"no JSON: {error}") from error
    require(isinstance(value, dict), "expected one object")
    return dict(value)


def digest(certificate: dict[str, Any]) -> str:
    """SHA-256 of everything but the digest itself, in the one form that section 2 says."""
    rest = {name: value for name, value in certificate.items() if name != "digest"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


# --- slots: what was run (section 3) ---------------------------------------------------------------

ZERO, ONE = arb(0), arb(1)
Slot = list[tuple[arb, arb, arb]]  # groups: mass of the others' law, ratios a and b
Line = tuple[arb, arb, arb]  # c, period, eta: nodes c + 2 pi i k/period, noise of deviation eta
Atoms = tuple[dict[int, arb], arb]  # P-masses at losses j h, and at infinity


@dataclass(frozen=True)
class Round:
    """What is known of one round.

    labels : the groups of a slot, for which the bound is exact. budget : e^eps0, if the swap theorem holds.
    share, presence : of a hidden cohort, and of its members. general : the rate of the general amplification.
    closed : the profile as a function of g. square : of sensitivity over sigma, for Gaussian noise.
    """

    users: int = 0
    labels: Slot | None = None
    budget: arb | None = None
    closed: Callable[[arb], arb] | None = None
    square: arb | None = None
    share: arb = ONE
    presence: arb = ONE
    general: arb = ONE

    def losses(self, slot: Slot, g: arb) -> list[tuple[arb, arb]]:
        """(mass, value of L) of groups at s = 1 + g, for users who may be absent, or another user may stand in."""
        here = [(self.presence * mass, a, b) for mass, a, b in slot]
        absent, q = 1 - self.presence, self.share
        if not absent.is_zero():
            here.append((absent, ONE, ONE))
        return [(mass, q * (a - b) - g * (q * b + 1 - q)) for mass, a, b in here]


def mechanism(state: Any, place: str) -> Round:
    """The slots of a mechanism, from its own parameters."""
    kind, given = fields(state, place, "kind", "arguments")
    require(isinstance(kind, str) and kind in MECHANISMS, f"{place}: unknown kind {kind!r}")
    require(isinstance(given, dict), f"{place}: arguments must be an object")
    return MECHANISMS[kind](given, place)


def _budget(value: Any, place: str) -> arb:
    return real(value, place, 1e-9, 700.0).exp()


def _users(value: Any, place: str) -> int:
    return whole(value, place, 1, 10**13)


def _ldp(given: dict[str, Any], place: str) -> Round:
    """Labels of clones, or of stronger clones, and with "tightest" the swap theorem."""
    eps0, n, analysis = fields(given, place, "eps0", "n", "analysis")
    known = analysis in ("tightest", "stronger-clones", "clones")
    require(known, f"{place}: unknown analysis {analysis!r}")
    p = _budget(eps0, place)
    mass = 1 / (2 * p) if analysis == "clones" else 1 / (p + 1)
    high, low = p / (p + 1) / mass, 1 / (p + 1) / mass
    slot = [(mass, high, low), (mass, low, high), (1 - 2 * mass, ZERO, ZERO)]
    return Round(_users(n, place), slot, p if analysis == "tightest" else None)


def _rr(given: dict[str, Any], place: str) -> Round:
    """k-RR by the labels of its adversary."""
    form = "gamma" if "gamma" in given else "eps0"
    k, n, value, adversary = fields(given, place, "k", "n", form, "adversary")
    k, n = whole(k, place, 2, 10**13), _users(n, place)
    if form == "eps0":
        gamma = k / (_budget(value, place) + (k - 1))
    else:
        gamma = real(value, place, 1e-300, 1.0)
    require(adversary in ("strong", "weak", "strong-conditional"), f"{place}: unknown adversary")
    mass, rest = gamma / k, (ONE, ONE)
    if adversary == "weak":
        high, low, silent = 1 + (1 - gamma) / mass, ONE, 1 - gamma
    else:  # who told the truth is seen, and for the target that it did
        high = (ONE if adversary == "strong-conditional" else 1 - gamma) / mass
        low, silent, rest = ZERO, 1 - gamma, (ZERO, ZERO)
    slot = [(mass, high, low), (mass, low, high), ((k - 2) * mass, *rest), (silent, ZERO, ZERO)]
    return Round(n, slot)


def _reduction(given: dict[str, Any], place: str, hidden: bool = False) -> Round:
    if "eps0" in given:
        n, tv, eps0 = fields(given, place, "n", "tv", "eps0")
        p = q = _budget(eps0, place)
    else:
        n, tv, p, q = fields(given, place, "n", "tv", "p", "q")
        p, q = real(p, place, 1.0 + 1e-9, 1e304), real(q, place, 1.0, 1e304)
    n, beta, most = _users(n, place), real(tv, place, 0.0, 1.0), (p - 1) / (p + 1)
    if n > 1 or hidden:
        most = most.min(q - 1)
    beta = beta.min(most)
    mass = beta / (p - 1) * p / q
    rest, silent = 1 - beta * (p + 1) / (p - 1), 1 - (1 + beta) / q
    slot = [(mass, q, q / p), (mass, q / p, q), (rest / q, q, q), (silent, ZERO, ZERO)]
    return Round(n, slot)


def _noise(given: dict[str, Any], place: str, name: str) -> arb:
    """Sensitivity over noise."""
    noise, size = (real(x, place, 1e-150, 1e150) for x in fields(given, place, name, "sensitivity"))
    return size / noise


def gaussian(square: arb) -> Round:
    """Noise by the square of sensitivity over sigma."""

    def profile(g: arb) -> arb:
        near, far = (g.log1p() + sign * square / 2 for sign in (-1, 1))
        root = (2 * square).sqrt()
        return ((near / root).erfc() - (1 + g) * (far / root).erfc()) / 2

    return Round(closed=profile, square=square)


def _laplace(given: dict[str, Any], place: str) -> Round:
    top = _noise(given, place, "scale")
    return Round(closed=lambda g: (-((g.log1p() - top) / 2).expm1()).max(ZERO))


def _subsampled(given: dict[str, Any], place: str) -> Round:
    form = "population" if "population" in given else "rate"
    also = ("analysis", "dropout", "colluding")
    state, size = fields(given, place, "mechanism", form, also=also)
    analysis = given.get("analysis", "tightest")
    require(analysis in ("tightest", "general"), f"{place}: unknown analysis {analysis!r}")
    dropout = real(given.get("dropout", 0.0), place, 0.0, 1.0 - 2.0**-53)
    colluding = whole(given.get("colluding", 0), place, 0, 10**13)
    inner = _inner(state, place, analysis)
    if form == "population":
        require(inner.users > 0, f"{place}: a population needs users")
        population = whole(size, place, inner.users + colluding + (colluding > 0), 10**15)
        share = arb(inner.users) / (population - colluding)
    else:
        require(colluding == 0, f"{place}: colluding needs a population")
        share = real(size, place, 1e-12, 1.0)
    if analysis == "general" or inner.closed is not None:
        require(dropout == 0 and colluding == 0, f"{place}: dropout and colluding need tightest")
        return replace(inner, budget=None, general=share)
    require(share == 1 or share < 1, f"{place}: a rate that balls cannot tell from 1")
    return replace(inner, share=share, presence=1 - dropout)


def _poisson(given: dict[str, Any], place: str) -> Round:
    state, rate = fields(given, place, "mechanism", "rate")
    inner = _inner(state, place, "tightest")
    require(inner.users > 0, f"{place}: a mechanism that has no users")
    return replace(inner, presence=real(rate, place, 1e-12, 1.0))


def _inner(state: Any, place: str, analysis: str) -> Round:
    """The mechanism of a hidden cohort: labels that do not show who took part, if they are used."""
    kind, given = fields(state, place, "kind", "arguments")
    require(kind not in ("Subsampled", "PoissonSampled", "Epoch"), f"{place}: {kind} in a cohort")
    if kind == "ShuffledRandomizer":
        return _reduction(given, place, hidden=True)
    if kind == "ShuffledRR" and analysis == "tightest":
        require(isinstance(given, dict), f"{place}: arguments must be an object")
        state = {"kind": kind, "arguments": {**given, "adversary": "weak"}}
    return mechanism(state, place)


MECHANISMS: dict[str, Callable[[dict[str, Any], str], Round]] = {
    "ShuffledLDP": _ldp,
    "Epoch": lambda given, place: _ldp({**given, "analysis": "stronger-clones"}, place),
    "ShuffledRR": _rr,
    "ShuffledRandomizer": _reduction,
    "Gaussian": lambda given, place: gaussian(_noise(given, place, "sigma") ** 2),
    "Laplace": _laplace,
    "Subsampled": _subsampled,
    "PoissonSampled": _poisson,
}


# --- contours: from slots to a profile (section 4) -------------------------------------------------


def positive_part(n: int, losses: list[tuple[arb, arb]], line: Line, modulus: bool) -> arb:
    """At least (1/n) E (L_1 + ... + L_n)_+; with `modulus` at least its bound by Hoelder's inequality.

    The sum over the nodes, and what is beyond the last one. Aliases are positive (section 4).
    """
    c, period, eta = line
    step = 2 * arb.pi() / period
    require(REACH / (eta * step) < MOST_CONTOUR, f"a contour of more than {MOST_CONTOUR} nodes")
    count = int(float((REACH / (eta * step)).upper())) + 1
    tilted = [mass * (c * value).exp() for mass, value in losses]
    total = sum(tilted, ZERO)
    require(total > 0, "masses that are lost in rounding")
    parts = [(mass / total, step * value) for mass, (_, value) in zip(tilted, losses, strict=True)]
    turn = [acb(0, angle).exp() for _, angle in parts]
    now = [acb(mass) for mass, _ in parts]
    wave = 1 / (c * c)
    fall, phase = (-((eta * step) ** 2) / 2).exp(), acb(0, eta * eta * c * step).exp()
    square, ratio, rotated = ONE, fall, acb(1)
    for k in range(1, count + 1):
        if k % AFRESH:
            now, rotated = [mass * by for mass, by in zip(now, turn, strict=True)], rotated * phase
        else:
            now = [mass * acb(0, k * angle).exp() for mass, angle in parts]
            rotated = acb(0, k * eta * eta * c * step).exp()
        square, ratio = square * ratio, ratio * fall * fall  # exp(-(eta t)^2 / 2)
        t, mean = k * step, sum(now, acb(0))
        if modulus:
            size = mean.real * mean.real + mean.imag * mean.imag
            power = size ** (n // 2) if n % 2 == 0 else size ** ((n - 1) // 2) * (1 + size) / 2
            wave += 2 * square * power / (c * c + t * t)
        else:
            wave += 2 * square * (mean**n * rotated / acb(c, t) ** 2).real
    beyond = square / (arb.pi() * count * step)
    factor = (n * total.log() + (eta * c) ** 2 / 2).exp() / n
    return upper(factor * (wave * step / (2 * arb.pi()) + beyond))


def upper(value: arb) -> arb:
    """The upper end of a ball, as an exact number."""
    require(value.is_finite(), "a ball without ends")
    return arb(value.upper())


#: Corners (a, b) of the hexagon as powers of p; types as corners with their masses, up to a factor, as powers of p.
CORNERS = {"A": (1, 0), "B": (0, 1), "C": (-1, 0), "D": (0, -1), "E": (1, 1), "F": (-1, -1)}
TYPES = (
    {"A": 0, "C": 1}, {"B": 0, "D": 1}, {"A": 0, "B": 0, "F": 1}, {"E": 0, "F": 1},
    {"E": 0, "C": 1, "D": 1},
)  # fmt: skip


def types(p: arb, u: arb) -> list[Slot]:
    """The extreme laws of any randomizer with ratios up to p, moved by u (V = R_0)."""
    v = u / (1 - u)
    found = []
    for law in TYPES:
        total = sum((p**power for power in law.values()), ZERO)
        slot = []
        for corner, power in law.items():
            a, b = (p**exponent for exponent in CORNERS[corner])
            beta = 1 - v * (a - 1)
            require(beta > 0, "a bin of u beyond 1/p")
            slot.append((beta * p**power / total, a / beta, b / beta))
        found.append(slot)
    return found


def swapped(held: Round, p: arb, g: arb, line: Line, bins: list[arb]) -> arb:
    """Theorem S, or Theorem C for a hidden cohort."""
    n, (c, _, eta) = held.users, line
    require(g <= p - 1, "the swap theorem beyond the largest loss")

    def worst(u: arb) -> arb:
        few = u * p * (1 + g) <= 1
        found = ZERO
        for slot in types(p, u)[: 3 if few else 5]:
            losses = held.losses(slot, g)
            # On the line |M| <= M(c), and 1/|z|^2 has integral pi/c: a type that cannot be the worst needs no nodes.
            total = sum((mass * (c * value).exp() for mass, value in losses), ZERO)
            height = (n * total.log() + (eta * c) ** 2 / 2).exp()
            if not height / (2 * n * c) <= found:
                found = found.max(positive_part(n, losses, line, modulus=True))
        return found

    if held.share < 1:
        return worst(ZERO)
    alone = held.presence * (p - 1 - g) / (p + 1)
    bound, left = ZERO, ONE
    for u in bins:
        after = (1 - u) ** n
        bound += (left - after) * alone.min(worst(u))
        left = after
    return bound + left * alone


def profile(held: Round, proof: str, g: arb, line: Line, bins: list[arb]) -> arb:
    """An upper value of H_s at s = 1 + g, exact as a number."""
    inner, labels = g / held.general, held.labels
    if proof == "closed" and held.closed is not None:
        value = held.closed(inner)
    elif proof == "zero" and labels is not None:
        value = ZERO
        require(all(x <= 0 for _, x in held.losses(labels, inner)), "the divergence is not 0 there")
    elif proof == "labels" and labels is not None:
        value = positive_part(held.users, held.losses(labels, inner), line, modulus=False)
    elif proof == "swap" and held.budget is not None:
        value = swapped(held, held.budget, inner, line, bins)
    else:
        raise Rejected(f"{proof!r} is no proof for this mechanism")
    return upper((held.general * value).max(ZERO))


# --- from dots to atoms (section 5) ----------------------------------------------------------------


def atoms(values: dict[int, arb], step: arb) -> Atoms:
    """The pair of the convex polygon above the values at losses j h, j >= 0, and their mirror images."""
    growth = {j: (j * step).expm1() for j in values}
    top = ONE
    for j, value in values.items():  # chords between the mirror images; at j = 0 the value itself
        top = top.min((growth[j] + 2 * value) / (2 + growth[j]))
    kept: list[tuple[int, arb, arb]] = [(0, ZERO, upper(top))]
    slopes: list[arb] = []

    def slope(j: int, g: arb, value: arb) -> arb:
        return (value - kept[-1][2]) / (g - kept[-1][1])

    for j in sorted(values.keys() - {0}):
        while slopes and slope(j, growth[j], values[j]) < slopes[-1]:
            kept.pop()
            slopes.pop()
        slopes.append(slope(j, growth[j], values[j]))
        kept.append((j, growth[j], values[j]))
    while slopes and slopes[-1] > 0:
        kept.pop()
        slopes.pop()
    infinite = kept[-1][2]
    masses, centre = {}, 1 - infinite
    for (j, g, _), before, after in zip(kept[1:], slopes, [*slopes[1:], ZERO], strict=True):
        mass = upper((after - before).max(ZERO))
        masses[j], masses[-j] = (1 + g) * mass, mass
        centre -= (2 + g) * mass
    masses[0] = upper(centre.max(ZERO))
    return masses, infinite


# --- composition (section 6) -----------------------------------------------------------------------


def composed(
    pairs: list[tuple[Atoms, int]], step: arb, tilt: arb, nodes: int
) -> tuple[Callable[[arb], tuple[arb, arb]], arb]:
    """All rounds: delta from above and what of it is beyond the window, as a function of epsilon; mass at infinity."""
    spectrum = [acb(1)] * nodes
    height, infinite = ZERO, ZERO
    for (law, lost), count in pairs:
        tilted = {j: mass * (tilt * step * j).exp() for j, mass in law.items()}
        total = sum(tilted.values(), ZERO)
        height += count * total.log()
        infinite += count * lost
        wrapped = [ZERO] * nodes
        for j, mass in tilted.items():
            wrapped[j % nodes] += mass / total
        waves = acb.dft([acb(mass) for mass in wrapped])
        spectrum = [found * wave**count for found, wave in zip(spectrum, waves, strict=True)]
    masses = acb.dft(spectrum, inverse=True)

    def delta(epsilon: arb) -> tuple[arb, arb]:
        first = int(float((epsilon / step).mid()) // 1) - 1
        near = first * step - epsilon
        require(near <= 0, "a lattice that epsilon is lost on")
        inside, fall, fade = ZERO, (-tilt * step).exp(), (-step).exp()
        weight, share = (-tilt * near).exp(), (-near).exp()
        for r in range(nodes):
            inside += masses[(first + r) % nodes].real * weight * (1 - share).max(ZERO)
            weight, share = weight * fall, share * fade
        scale = (height - tilt * epsilon).exp()
        beyond = scale * (-tilt * (step * nodes + near)).exp()
        return scale * inside + beyond + infinite, beyond

    return delta, infinite


# --- the certificate (section 2) -------------------------------------------------------------------


def _atoms(ends: Any, dots: Any, held: Round, step: arb, place: str) -> Atoms:
    """The atoms of one round, by its dots."""
    bins: list[arb] = []
    for u in rows(ends, f"{place}.bins", 1000):
        bins.append(real(u, f"{place}.bins", 1e-300, 1.0))
        require(len(bins) == 1 or bins[-1] > bins[-2], f"{place}.bins: must ascend")
    values: dict[int, arb] = {}
    for i, row in enumerate(rows(dots, f"{place}.dots", MOST_DOTS)):
        where = f"{place}.dots[{i}]"
        require(isinstance(row, list) and len(row) in (2, 5), f"{where}: expected 2 or 5 values")
        j, proof = whole(row[0], where, 0, 2**40), row[1]
        good = proof in (("closed", "zero") if len(row) == 2 else ("labels", "swap"))
        require(good and j not in values, f"{where}: unknown proof, or a dot twice")
        c, period, eta = (real(x, where, 1e-300, 1e300) for x in row[2:] or (1, 1, 1))
        try:
            values[j] = profile(held, proof, (j * step).expm1(), (c, period, eta), bins)
        except Rejected as error:
            raise Rejected(f"{where}: {error}") from error
    return atoms(values, step)


def verify(text: str) -> str:
    """What the certificate proves, in one line; Rejected, which says why, if it does not prove its claim."""
    ctx.prec = PRECISION
    held = parsed(text)
    schema, package, theorems, claim, ledger, pairs, lattice, errors, assumed, seal = fields(
        held, "certificate", "schema", "package", "theorems", "claim", "ledger", "pairs", "lattice",
        "errors", "assumptions", "digest",
    )  # fmt: skip
    require(schema == SCHEMA, f"schema: expected {SCHEMA!r}, got {schema!r}")
    require(digest(held) == seal, "digest: the certificate has been changed")
    require(isinstance(package, str) and isinstance(assumed, dict), "package, assumptions: wrong")
    said, asked, near = fields(claim, "claim", "epsilon", "delta", "answer")
    epsilon = real(said, "claim.epsilon", 0.0, 1e6)
    delta, answer = real(asked, "claim.delta", 1e-300, 1.0), real(near, "claim.answer", 0.0, 1e6)
    good = abs(epsilon - answer) <= NEAR * answer
    require(good, f"claim: epsilon {said!r} is not within {NEAR:.0%} of the answer {near!r}")
    fields(errors, "errors", "infinite", "beyond")
    step, tilt, nodes = fields(lattice, "lattice", "step", "tilt", "nodes")
    step, tilt = real(step, "lattice.step", 1e-12, 100.0), real(tilt, "lattice.tilt", 1e-9, 1e12)
    nodes = whole(nodes, "lattice.nodes", 2, MOST_NODES)
    composition, rounds = _rounds(ledger, pairs, step)
    require(theorems == THEOREMS, "theorems: not those that are proved here")
    at, infinite = composed(composition, step, tilt, nodes)
    found, beyond = at(epsilon)
    require(found.is_finite(), "claim: nothing is left of delta but rounding")
    top = float(found.upper())
    require(found <= delta, f"claim: no more is proved there than delta <= {top:.9g}")
    # Something that is true, but of another ledger or by another proof, claims too much.
    tight = epsilon == 0 or at(epsilon * (1 - arb(TIGHT)))[0] > delta
    require(tight, f"claim: a lower epsilon than {said!r} is proved, with delta <= {top:.9g}")
    for name, ball in (("infinite", infinite), ("beyond", beyond)):
        value = real(errors[name], f"errors.{name}", 0.0, 1.0)
        good = abs(ball - value) <= value * arb(1e-6) + arb(1e-300)
        require(good, f"errors.{name}: is {float(ball.upper()):.9g}")
    return f"epsilon <= {said!r} at delta = {asked!r}: {rounds} rounds, delta <= {top:.9g}"


def _rounds(ledger: Any, pairs: Any, step: arb) -> tuple[list[tuple[Atoms, int]], int]:
    """The atoms of the pairs with their counts, and the number of rounds."""
    entries, found, total = [], [], 0
    for i, entry in enumerate(rows(ledger, "ledger", 10_000)):
        state, count = fields(entry, f"ledger[{i}]", "mechanism", "count")
        entries.append((state, whole(count, f"ledger[{i}].count", 1, MOST_ROUNDS)))
        total += entries[-1][1]
    left = set(range(len(entries)))
    for i, known in enumerate(rows(pairs, "pairs", 10_000)):
        place = f"pairs[{i}]"
        covers, bins, dots = fields(known, place, "covers", "bins", "dots")
        for j in rows(covers, f"{place}.covers", 10_000):
            require(type(j) is int and j in left, f"{place}.covers: {j!r} is no entry that is left")
            left.remove(j)
        one, count = _worst([entries[j] for j in covers], place)
        found.append((_atoms(bins, dots, one, step, place), count))
    require(bool(found) and not left, f"pairs: nothing covers {sorted(left)}")
    return found, total


def _worst(entries: list[tuple[Any, int]], place: str) -> tuple[Round, int]:
    """A round that is at least as bad as each of the entries, and how many of it (section 3)."""
    held = [mechanism(state, place) for state, _ in entries]
    counts = [count for _, count in entries]
    squares = [one.square for one in held if one.square is not None and one.general == 1]
    if held and len(squares) == len(held):
        square = sum((n * one for one, n in zip(squares, counts, strict=True)), ZERO)
        return gaussian(square), 1
    if len(held) != 1:
        alike = {json.dumps(_unsized(state), sort_keys=True) for state, _ in entries}
        good = len(alike) == 1 and all(one.share < 1 for one in held)
        require(good, f"{place}.covers: not hidden cohorts of one population")
    return max(held, key=lambda one: one.users), sum(counts)


def _unsized(state: Any) -> Any:
    """A hidden cohort out of a population, without its size."""
    given = dict(state["arguments"])
    if "population" not in given or "analysis" in given:
        return [state]
    inner = given.pop("mechanism")
    return [given, inner["kind"], {**inner["arguments"], "n": None}]


def main(arguments: list[str] | None = None) -> int:
    """Exit status 0: proved. 1: not proved. 2: no file."""
    parser = argparse.ArgumentParser(prog="pld-shuffle-check", description=__doc__.splitlines()[0])
    parser.add_argument("certificate", help="a file that pld-shuffle wrote; - for standard input")
    path = parser.parse_args(arguments).certificate
    try:
        with open(0 if path == "-" else path, encoding="utf-8") as file:
            print(f"proved: {verify(file.read())}")
    except (OSError, UnicodeDecodeError, Rejected) as error:
        print(f"pld-shuffle-check: {path}: {error}", file=sys.stderr)
        return 1 if isinstance(error, Rejected) else 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
