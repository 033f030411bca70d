"""Slow, exact answers that share neither code nor method with the library.

Three layers. What the library says is compared with each of them:

1. *Protocols*, enumerated. Every user's output law is written down, every message vector (or every
   histogram) is visited, and what the adversary sees is a dictionary view -> probability.
2. *Pairs*, from the raw formulas: label counts (a, b), (a, b, c), response counts n_1, n_2. A pair
   is a list of atoms (p, q); p and q may be `fractions.Fraction` or `mpmath.mpf` (exact, or to
   `DIGITS` digits).
3. *Composition* without a lattice: products of atom lists, atoms of equal ratio p/q merged. The
   last product is never formed: delta = sum_a p_a H_{alpha q_a / p_a}(B), with the suffix sums of
   the sorted list B ("meet in the middle"), which is exact and costs O(|A| log|B|).

Notation: alpha = e^eps, H_alpha(P||Q) = sum (p - alpha q)_+, e0 = e^eps0, n users with the target.
(P, Q) dominates (P', Q') for every alpha > 0 exactly when it does at the ratios p/q
of (P, Q) and in the limits 0 and infinity: between them H(P||Q) is linear, H(P'||Q') convex.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
from mpmath import mp, mpf

Number = Any  # Fraction or mpf
Atoms = list[tuple[Number, Number]]

DIGITS = 60  # working precision; answers are good to well over 30 digits
mp.dps = DIGITS
KEY_BITS = 150  # ratios of mpf atoms are merged when they agree to this many bits (45 digits)


# --- 1. Protocols, enumerated ----------------------------------------------------------------------------------------


def histogram_law(laws: Sequence[Sequence[Number]]) -> dict[tuple[int, ...], Number]:
    """Exact law of the histogram of one message per user; laws[i][y] = P(user i sends y)."""
    width = len(laws[0])
    current: dict[tuple[int, ...], Number] = {(0,) * width: 1}
    for law in laws:
        following: dict[tuple[int, ...], Number] = {}
        for counts, mass in current.items():
            for message, probability in enumerate(law):
                if probability == 0:
                    continue
                key = counts[:message] + (counts[message] + 1,) + counts[message + 1 :]
                following[key] = following.get(key, 0) + mass * probability
        current = following
    return current


def counts_law(laws: Sequence[Sequence[float]]) -> np.ndarray:
    """The same in doubles, for more users: an array over the numbers of all messages but the last."""
    width = len(laws[0]) - 1
    found = np.ones((1,) * width)
    for law in laws:
        grown = np.zeros([size + 1 for size in found.shape])
        for message, probability in enumerate(law):
            grown[tuple(slice(int(j == message), int(j == message) + found.shape[j]) for j in range(width))] += (
                probability * found
            )
        found = grown
    return found


def mixture(parts: Iterable[tuple[Number, dict[Any, Number]]]) -> dict[Any, Number]:
    """What is seen if one of the views is drawn; parts : their chances, and they."""
    found: dict[Any, Number] = {}
    for weight, view in parts:
        for key, mass in view.items():
            found[key] = found.get(key, 0) + weight * mass
    return found


def drawn(laws: Sequence[Any], size: int, view: Callable[[Sequence[Any]], dict[Any, Number]]) -> dict[Any, Number]:
    """The view of a uniform cohort of that size; nobody sees who is in it."""
    cohorts = list(itertools.combinations(laws, size))
    return mixture((Fraction(1, len(cohorts)), view(cohort)) for cohort in cohorts)


def pair_of_views(view_p: dict[Any, Number], view_q: dict[Any, Number]) -> Atoms:
    """The atoms (p, q) of two view distributions."""
    return [(view_p.get(key, 0), view_q.get(key, 0)) for key in {**view_p, **view_q}]


def shuffled_pair(target_p: Sequence[Number], target_q: Sequence[Number], others: Sequence[Sequence[Number]]) -> Atoms:
    """The shuffled histogram when the target's output law is target_p, or target_q."""
    return pair_of_views(histogram_law([target_p, *others]), histogram_law([target_q, *others]))


def rr_law(k: int, gamma: Number, value: int) -> list[Number]:
    """k-RR: with probability gamma uniform over [k] (the true value included), else the truth."""
    return [gamma / k + (1 - gamma if message == value else 0) for message in range(k)]


def adversary_view(k: int, gammas: Sequence[Number], values: Sequence[int], told: int = 0) -> dict[Any, Number]:
    """What an adversary of k-RR sees: who of the users from number `told` on answered at random, and the histogram.

    The strong adversary is told of all, the weak one of all but the target, user 0.
    """
    view: dict[Any, Number] = {}
    for randomised in itertools.product((False, True), repeat=len(values) - told):
        weight = math.prod(gamma if flag else 1 - gamma for flag, gamma in zip(randomised, gammas[told:], strict=True))
        laws = [rr_law(k, gamma, value) for gamma, value in zip(gammas[:told], values[:told], strict=True)]
        for flag, value in zip(randomised, values[told:], strict=True):
            laws.append(rr_law(k, Fraction(flag), value))
        for counts, mass in histogram_law(laws).items():
            view[randomised, counts] = weight * mass
    return view


def sum_law(*laws: dict[int, Number]) -> dict[int, Number]:
    """The law of a sum of independent integers."""
    found: dict[int, Number] = {0: 1}
    for law in laws:
        more: dict[int, Number] = {}
        for (i, a), (j, b) in itertools.product(found.items(), law.items()):
            more[i + j] = more.get(i + j, 0) + a * b
        found = more
    return found


def bernoulli(trials: int, p: Number) -> dict[int, Number]:
    """The law of the number of ones."""
    return {k: binomial(trials, k, p) for k in range(trials + 1)}


def moved_sums(noise: dict[int, Number], sensitivity: int, modulus: int | None = None) -> list[Atoms]:
    """A sum with that noise, of neighbouring data: all moves up to the sensitivity, either way."""

    def seen(shift: int) -> dict[int, Number]:
        found: dict[int, Number] = {}
        for value, mass in noise.items():
            place = value + shift if modulus is None else (value + shift) % modulus
            found[place] = found.get(place, 0) + mass
        return found

    return [pair_of_views(seen(d), seen(0)) for d in range(-sensitivity, sensitivity + 1) if d]


def published(count: int, rate: Number, least: int, dummies: dict[int, Number], only_bins: bool) -> dict[int, Number]:
    """What sample and threshold shows of a bin of so many users: its count, 1 for "it is there", or -1 for nothing."""
    found: dict[int, Number] = {}
    for number, mass in sum_law(bernoulli(count, rate), dummies).items():
        seen = -1 if number < least else 1 if only_bins else number
        found[seen] = found.get(seen, 0) + mass
    return found


def dummy_laws(uniform: Sequence[Number], n: int, dummies: Number) -> list[list[Number]]:
    """Of what n users send next to their reports: the whole part of `dummies` for certain, else perhaps nothing."""
    chances = [1] * (n * math.floor(dummies)) + [dummies - math.floor(dummies)] * n
    return [[*(chance * mass for mass in uniform), 1 - chance] for chance in chances if chance]


def allocation_view(
    own: Sequence[Number], others: Sequence[Number], steps: int, selected: int = 1
) -> dict[tuple[int, ...], Number]:
    """The multiset of all steps' outputs: of law `own` in `selected` of them, drawn uniformly, else of law `others`."""
    chosen = list(itertools.combinations(range(steps), selected))
    view: dict[tuple[int, ...], Number] = {}
    for seen in itertools.combinations_with_replacement(range(len(own)), steps):
        ways = math.factorial(steps) // math.prod(math.factorial(seen.count(z)) for z in set(seen))
        hidden = sum(math.prod((own if t in some else others)[z] for t, z in enumerate(seen)) for some in chosen)
        view[seen] = hidden * ways / len(chosen)
    return view


# --- 2. Pairs from the raw formulas, exactly -------------------------------------------------------------------------


def binomial(trials: int, successes: int, chance: Number) -> Number:
    return math.comb(trials, successes) * chance**successes * (1 - chance) ** (trials - successes)


def clone_pair(n: int, e0: Number, chance: Number) -> Atoms:
    """(A + D, C - A + 1 - D) against (A + 1 - D, C - A + D): C ~ Bin(n-1, chance),
    A ~ Bin(C, 1/2), D ~ Bernoulli(e0/(e0+1)). Feldman-McMillan-Talwar 2021, Theorem 3.2."""
    low, half = 1 / (e0 + 1), chance / 2
    return shuffled_pair([1 - low, low, 0], [low, 1 - low, 0], [[half, half, 1 - chance]] * (n - 1))


def clones(n: int, e0: Number) -> Atoms:
    """Any eps0-LDP randomizer, Feldman-McMillan-Talwar 2021: clone probability e^-eps0."""
    return clone_pair(n, e0, 1 / e0)


def stronger_clones(n: int, e0: Number) -> Atoms:
    """Any eps0-LDP randomizer, the theorem: clone probability 2/(e^eps0 + 1)."""
    return clone_pair(n, e0, 2 / (e0 + 1))


def reduction_laws(p: Number, beta: Number, q: Number) -> tuple[list[Number], list[Number], list[Number]]:
    """Label laws over (0, 1, *, nothing): the target's two, and that of every other user."""
    alpha = beta / (p - 1)
    star = 1 - alpha * (p + 1)
    return (
        [alpha * p, alpha, star, 0],
        [alpha, alpha * p, star, 0],
        [alpha * p / q, alpha * p / q, star / q, 1 - (1 + beta) / q],
    )


def reduction(n: int, p: Number, beta: Number, q: Number) -> Atoms:
    """The pair of label counts (a, b, c) of the theorem, beta = TV or a bound on it."""
    target_p, target_q, other = reduction_laws(p, beta, q)
    return shuffled_pair(target_p, target_q, [other] * (n - 1))


def strong(n: int, k: int, gamma: Number, *, conditional: bool = False) -> Atoms:
    """k-RR, strong adversary: loss log(n_1/n_2); the target answers at random (loss 0) with
    probability gamma, unless the view is conditioned on a truthful target."""
    truthful = 1 if conditional else 1 - gamma
    other = [gamma / k, gamma / k, 1 - 2 * gamma / k]
    seen = shuffled_pair([1, 0, 0], [0, 1, 0], [other] * (n - 1))
    atoms = [(truthful * mass_p, truthful * mass_q) for mass_p, mass_q in seen]
    return atoms if conditional else [*atoms, (gamma, gamma)]


def blanket(first: Sequence[Number], second: Sequence[Number], cover: Sequence[Number], n: int) -> Atoms:
    """The target's two laws among the others' messages of the cover; how many send none of these is seen."""
    rest = 1 - sum(cover)
    return shuffled_pair([*first, 0], [*second, 0], [[*cover, rest]] * (n - 1))


def weak(n: int, k: int, gamma: Number) -> Atoms:
    """k-RR, weak adversary: the counts of two values among the reports at random and the target's own."""
    low, rest = gamma / k, [gamma * (k - 2) / k] * (k > 2)
    return blanket([1 - gamma + low, low, *rest], [low, 1 - gamma + low, *rest], [low, low, *rest], n)


def binomial_excess(trials: int, p: mpf, ahead: Number, behind: Number) -> mpf:
    """sum over k of (ahead b(k-1) - behind b(k))_+, b a binomial law: its terms by their ratios."""
    odds, total = p / (1 - p), mpf(0)
    k = int(mpmath.floor((trials + 1) * odds * behind / (ahead + odds * behind))) + 1
    log = mpmath.loggamma(trials + 1) - mpmath.loggamma(k) - mpmath.loggamma(trials - k + 2)
    before = mpmath.exp(log + (k - 1) * mpmath.log(p) + (trials - k + 1) * mpmath.log(1 - p))
    while k <= trials + 1:
        after = before * (trials - k + 1) / k * odds
        term = ahead * before - behind * after
        assert term >= 0
        total, before, k = total + term, after, k + 1
        if term < total * mpf(10) ** -30:
            break
    return total


def subsampled(atoms: Atoms, rate: Number) -> Atoms:
    """Both halves of Zhu-Dong-Wang 2022, Proposition 30, in one pair, for a symmetric (P, Q): the
    atoms (M, Q) where P > Q, M = rate P + (1 - rate) Q, their mirror image, loss 0 for the rest."""
    merged: Atoms = []
    for mass_p, mass_q in canonical(atoms):
        if mass_q == 0 or _ratio_key(mass_p, mass_q) > 1:  # of equal masses rounding may be the larger one
            mixed = rate * mass_p + (1 - rate) * mass_q
            merged += [(mixed, mass_q), (mass_q, mixed)]
    null = 1 - sum(mass_p for mass_p, _ in merged)
    return [*merged, (null, null)]


def hidden_cohort(
    first: Sequence[Number], second: Sequence[Number], others: Sequence[Number], n: int, rate: Number
) -> Atoms:
    """Theorem C with equal others: a user is absent with probability 1 - rate, and replaced by another."""
    laws = [[rate * a + (1 - rate) * b for a, b in zip(law, others, strict=True)] for law in (first, second)]
    return shuffled_pair(*laws, [others] * (n - 1))


def mean_part(values: Sequence[Number], masses: Sequence[Number], n: int, last: Number = 0) -> Number:
    """E (mean of n independent values)_+ by their counts; what the masses lack of 1 is at `last`."""
    rest = max(0, 1 - sum(masses))
    found: list[Number] = []
    for counts in itertools.product(range(n + 1), repeat=len(values)):
        none = n - sum(counts)
        value = sum((c * v for c, v in zip(counts, values, strict=True)), start=none * last)
        if none >= 0 and value > 0 and (none == 0 or rest > 0):
            ways = math.factorial(n) // math.prod(map(math.factorial, (*counts, none)))
            found.append(value * ways * rest**none * math.prod(m**c for c, m in zip(counts, masses, strict=True)))
    return math.fsum(found) / n if found and isinstance(found[0], float) else Fraction(sum(found)) / n


def gaussian(mu: Number, eps: Number) -> mpf:
    """H at e^eps of N(mu, 1) and N(0, 1)."""
    mu, eps = mpf(mu), mpf(eps)
    return mpmath.ncdf(mu / 2 - eps / mu) - mpmath.exp(eps) * mpmath.ncdf(-mu / 2 - eps / mu)


# --- 3. Divergences and composition, exactly -------------------------------------------------------------------------


def hockey_stick(atoms: Atoms, alpha: Number) -> Number:
    return sum((max(mass_p - alpha * mass_q, 0) for mass_p, mass_q in atoms), start=0)


def _ratio_key(mass_p: Number, mass_q: Number) -> Any:
    if mass_q == 0:
        return None
    ratio = mass_p / mass_q
    if isinstance(ratio, mpf):
        with mp.workprec(KEY_BITS):
            return +ratio
    return ratio


def canonical(atoms: Atoms) -> Atoms:
    """Atoms of equal ratio p/q merged, sorted by ratio, the infinite ratio last."""
    merged: dict[Any, tuple[Number, Number]] = {}
    for mass_p, mass_q in atoms:
        if mass_p == 0 and mass_q == 0:
            continue
        key = _ratio_key(mass_p, mass_q)
        before = merged.get(key, (0, 0))
        merged[key] = (before[0] + mass_p, before[1] + mass_q)
    finite = sorted(key for key in merged if key is not None)
    return [merged[key] for key in finite] + ([merged[None]] if None in merged else [])


def product(first: Atoms, second: Atoms) -> Atoms:
    """Two independent views together, atoms of equal ratio merged."""
    return canonical([(a * c, b * d) for a, b in first for c, d in second])


def power(atoms: Atoms, count: int) -> Atoms:
    """`count` independent views together."""
    result: Atoms = [(1, 1)]
    square = canonical(atoms)
    while count:
        if count & 1:
            result = product(result, square)
        count >>= 1
        if count:
            square = product(square, square)
    return result


def violation(large: Atoms, small: Atoms) -> Number:
    """The largest H_alpha(small) - H_alpha(large), over alpha > 0."""
    large, small = canonical(large), canonical(small)
    alphas = [mass_p / mass_q for mass_p, mass_q in large if mass_q != 0]
    gaps = [hockey_stick(small, alpha) - hockey_stick(large, alpha) for alpha in alphas]
    at_infinity = [sum(p for p, q in pair if q == 0) for pair in (small, large)]
    covered = [sum(q for p, q in pair if p != 0) for pair in (large, small)]  # minus the slopes at alpha = 0
    return max(*gaps, at_infinity[0] - at_infinity[1], covered[0] - covered[1])


class Composition:
    """Exact delta(eps) of a list of (atoms, count); the product of its two halves is not formed."""

    def __init__(self, rounds: Iterable[tuple[Atoms, int]]) -> None:
        left: Atoms = [(1, 1)]
        right: Atoms = [(1, 1)]
        for atoms, count in rounds:
            half = power(atoms, count // 2)
            other = product(half, canonical(atoms)) if count % 2 else half
            left, right = product(right, half), product(left, other)  # the odd round where there are fewer
        self._left = [(mass_p, mass_q) for mass_p, mass_q in left if mass_p != 0]
        right = [(mass_p, mass_q) for mass_p, mass_q in right if mass_p != 0]
        self._never = sum((mass_p for mass_p, mass_q in right if mass_q == 0), start=0)
        finite = [(mass_p, mass_q) for mass_p, mass_q in right if mass_q != 0]
        self._ratios = [mass_p / mass_q for mass_p, mass_q in finite]
        self._tail_p, self._tail_q = (
            [*itertools.accumulate((atom[i] for atom in reversed(finite)), initial=0)][::-1] for i in (0, 1)
        )
        self._all = self._tail_p[0] + self._never

    def hockey_stick(self, alpha: Number) -> Number:
        total: Number = 0
        for mass_p, mass_q in self._left:
            if mass_q == 0:
                total += mass_p * self._all
                continue
            start = bisect_right(self._ratios, alpha * mass_q / mass_p)
            total += mass_p * (self._never + self._tail_p[start])
            total -= alpha * mass_q * self._tail_q[start]
        return total

    def delta(self, epsilon: float | mpf) -> mpf:
        """delta(eps) to more than 30 digits (atoms given as mpf), epsilon taken as exact."""
        return to_mpf(self.hockey_stick(mp.exp(mpf(epsilon))))

    def largest_loss(self) -> mpf:
        """The largest privacy loss (inf where Q misses some of P)."""
        if self._never != 0 or any(mass_q == 0 for _, mass_q in self._left):
            return mp.inf
        return mp.log(to_mpf(max(p / q for p, q in self._left) * self._ratios[-1]))


def to_mpf(value: Number) -> mpf:
    return mpf(value.numerator) / value.denominator if isinstance(value, Fraction) else mpf(value)


def exp_of(eps0: float) -> mpf:
    """e^eps0 of exactly this float, to DIGITS digits."""
    return mpmath.exp(mpf(eps0))
