"""The whole idea in one plain file. Read it first; tests hold the fast code to it, as its slow twin.

**The question.** Each of n users randomizes one report with budget eps0, and a trusted shuffler hides who
sent which. Two datasets differ in the value of one user, the target; P and Q are the laws of what an
adversary then sees. The protocol is (eps, delta)-DP if for all such datasets the hockey-stick divergence

    H(P || Q) = sum over views of (P - e^eps Q)_+  =  E_P (1 - e^(eps - L))_+ ,    L = log(P/Q),

is at most delta. L is the privacy loss; its law under P is the privacy loss distribution (PLD). A pair
(P, Q) *dominates* a protocol if its H is at least the protocol's at every real eps. Products of dominating
pairs dominate the composition of the protocols (Zhu, Dong, Wang 2022, Theorem 10), and their losses add up.

**One pair for everything: tilted coins T(m, theta).** Toss m fair coins; t = (heads - tails)/m. Relative
to the fair coins, P has density 1 + theta t and Q has 1 - theta t, so L = 2 artanh(theta t). In words: the
target is one coin of bias theta or -theta among m - 1 fair ones, and only the number of heads is seen. To
exchange heads and tails exchanges P and Q: the pair is symmetric. A *mixture* draws (m, theta) with the same
weights under P and Q, and shows them; m = 0 says nothing (loss 0). Every pair of shuffled reports below is
such a mixture: `clones`, `stronger_clones`, the `reduction` by (p, beta, q), and k-ary randomized response
(k-RR) as seen by a `strong` or a `weak` adversary. A cohort hidden in a population tilts less (`tilt`).

**Two facts prove the rest.** Hiding (to merge views) lowers H. Revealing (to split a view, its P-mass and
its Q-mass kept) raises H. So T(m, theta) dominates T(m + 1, theta), because a fair coin can be added, and H
grows with theta. This certifies *buckets* from both sides: replace every m of a bucket by the smallest one
for an upper bound, by the largest for a lower bound. The fast code does so; this file keeps every m. The same
two facts certify *lattices*: losses move to multiples of a step, from above by revealing (`connect_dots`),
from below by hiding (`merge_up`). Then composition is a convolution (`compose`).

Both answers are bounds up to floating-point rounding, which is not accounted for here, and up to counts rarer
than RAREST, which are left out. The fast code books both. The proofs begin in docs/theory.md, section 1, with
the table of pairs in section 2, buckets in 3, the reduction in 4 and lattices in 6.

>>> lower, upper = composed(stronger_clones(n=1000, eps0=1.0), rounds=4, step=1e-3)
>>> print(f"{epsilon(lower, 1e-6):.4f} <= epsilon <= {epsilon(upper, 1e-6):.4f}")
0.3115 <= epsilon <= 0.3116
"""

from __future__ import annotations

import math
from functools import cache, reduce
from typing import NamedTuple

import numpy as np

RAREST = 1e-40  # counts of smaller probability are left out
ULP = 1e-12  # losses within so many steps of a lattice point are on it, as far as rounding can tell
Atoms = tuple[np.ndarray, np.ndarray]  # P-masses and Q-masses of the views


class Coins(NamedTuple):
    """One component of a mixture: T(m, theta), drawn with this weight."""

    m: int
    theta: float
    weight: float


class Lattice(NamedTuple):
    """A PLD on multiples of the step: P-mass mass[j] at loss (low + j) step, and the P-mass at loss +inf."""

    step: float
    low: int
    mass: np.ndarray
    infinity: float


# --- coins: what was run -> a mixture --------------------------------------------------------------


@cache
def binomial(n: int, chance: float) -> Atoms:
    """Outcomes k of Bin(n, chance) and their probabilities, by ratios of neighbours from the mode."""
    k = np.arange(n + 1)
    if not 0.0 < chance < 1.0:
        return k[k == n * chance], np.ones(1)
    log_ratio = np.log((n + 1 - k[1:]) / k[1:]) + math.log(chance / (1.0 - chance))
    mode = int((n + 1) * chance)
    below = -np.cumsum(log_ratio[:mode][::-1])[::-1]
    weight = np.exp(np.concatenate((below, [0.0], np.cumsum(log_ratio[mode:]))))
    probability = weight / weight.sum()
    seen = probability > RAREST
    return k[seen], probability[seen]


def tilt(m: int, chance: float, level: float, slope: float, rate: float = 1.0) -> Coins:
    """m fair coins, seen with this chance, with P : Q = level + slope t : level - slope t.

    Hidden cohort: the n users are a random sample of a population, n = rate * population, nobody sees which.
    With probability 1 - rate the target is absent, and the density relative to the fair coins is then 1.
    """
    level = rate * level + 1.0 - rate
    return Coins(m, rate * slope / level if level else 0.0, chance * level)


def labels(n: int, label: float, theta: float, rate: float) -> list[Coins]:
    """m of n users show a coin, each with the chance `label`; the target is any of them, so m/(n label)."""
    mixture = []
    for m, chance in zip(*binomial(n, label), strict=True):
        level = m / (n * label)
        mixture.append(tilt(m, chance, level, theta * level, rate))
    return mixture


def clones(n: int, eps0: float, rate: float = 1.0) -> list[Coins]:
    """Any eps0-LDP randomizer: m = 1 + Bin(n-1, e^-eps0) (Feldman, McMillan, Talwar 2021, Thm 3.2)."""
    return labels(n, math.exp(-eps0), math.tanh(eps0 / 2.0), rate)


def stronger_clones(n: int, eps0: float, rate: float = 1.0) -> list[Coins]:
    """Any eps0-LDP randomizer, sharper: m = 1 + Bin(n-1, 2/(e^eps0 + 1)) (docs/theory.md, section 4)."""
    return labels(n, 2.0 / (math.exp(eps0) + 1.0), math.tanh(eps0 / 2.0), rate)


def reduction(n: int, p: float, beta: float, q: float, rate: float = 1.0) -> list[Coins]:
    """The target's two laws have ratios up to p and total variation beta; others cover them up to a factor q.

    m users show a coin, c a neutral label. beta = (p-1)/(p+1), p = q = e^eps0 is stronger clones.
    """
    alpha = beta / (p - 1.0)
    neutral = 1.0 - alpha * (p + 1.0)
    mixture = []
    for c, chance in zip(*binomial(n, neutral / q), strict=True):
        for m, given in zip(*binomial(int(n - c), 2.0 * alpha * p / (q - neutral)), strict=True):
            half = q / n * m / 2.0
            level, slope = half * (1.0 + 1.0 / p) + q / n * c, half * (1.0 - 1.0 / p)
            mixture.append(tilt(m, chance * given, level, slope, rate))
    return mixture


def strong(n: int, k: int, gamma: float) -> list[Coins]:
    """k-RR (with probability gamma uniform over k values, else the truth), who did which being seen.

    m reports, of the target and of others at random, have one of the target's two values.
    """
    truthful = labels(n, 2.0 * gamma / k, 1.0, 1.0)
    return [Coins(0, 0.0, gamma)] + [Coins(m, 1.0, (1.0 - gamma) * w) for m, _, w in truthful]


def weak(n: int, k: int, gamma: float) -> list[Coins]:
    """k-RR, seen who of the *others* answered at random: the privacy blanket (Balle et al. 2019)."""
    mixture = []
    for random, chance in zip(*binomial(n - 1, gamma), strict=True):
        for m, given in zip(*binomial(int(random + 1), 2.0 / k), strict=True):
            r = (1.0 - gamma) * k * m / (2.0 * (random + 1))
            mixture.append(tilt(m, chance * given, r + gamma, r))
    return mixture


# --- atoms: a mixture -> masses under P and Q ------------------------------------------------------


def atoms(mixture: list[Coins]) -> Atoms:
    """P-mass and Q-mass of every view (component, number of heads)."""
    masses_p, masses_q = [], []
    for m, theta, weight in mixture:
        heads, fair = binomial(int(m), 0.5)
        t = (2 * heads - m) / max(m, 1)
        masses_p.append(weight * fair * (1.0 + theta * t))
        masses_q.append(weight * fair * (1.0 - theta * t))
    return np.concatenate(masses_p), np.concatenate(masses_q)


def hockey_stick(pair: Atoms, eps: float) -> float:
    """delta of one round, without any lattice: the definition."""
    return float(np.maximum(pair[0] - math.exp(eps) * pair[1], 0.0).sum())


# --- lattices: masses -> a PLD on multiples of a step, from above and from below -------------------


def cells(pair: Atoms, step: float) -> tuple[int, np.ndarray, np.ndarray, float]:
    """First i, P- and Q-masses of the losses in each [i step, (i+1) step), and the P-mass at loss +inf."""
    p, q = (masses[pair[0] > 0.0] for masses in pair)
    infinity = float(p[q == 0.0].sum())
    p, q = p[q > 0.0], q[q > 0.0]
    index = np.floor(np.log(p / q) / step + ULP).astype(int)
    low = int(index.min())
    return low, np.bincount(index - low, p), np.bincount(index - low, q), infinity


def connect_dots(pair: Atoms, step: float) -> Lattice:
    """From above: split a cell between its two ends, keeping P-mass and Q-mass (Doroshenko et al. 2022).

    H of the result joins the dots of the true curve, as a function of e^eps, at multiples of the step.
    """
    low, p, q, infinity = cells(pair, step)
    ratio = np.divide(q, p, out=np.ones(p.size), where=p > 0.0)
    offset = np.clip(-np.log(ratio) - step * (low + np.arange(p.size)), 0.0, step)
    raised = np.where(p > 0.0, p * np.expm1(-offset) / math.expm1(-step), 0.0)
    return Lattice(step, low, np.append(p - raised, 0.0) + np.append(0.0, raised), infinity)


def merge_up(pair: Atoms, step: float) -> Lattice:
    """From below: merge the lowest mass with as much higher mass as makes the ratio that of the next point.

    Total mass is kept; what finds nothing higher is rounded down. The error is second order in the step where
    losses are dense; where they are sparse, choose a step that divides the largest loss.
    """
    low, p, q, infinity = cells(pair, step)
    mass = np.zeros(p.size + 1)
    point = np.exp(-step * (low + np.arange(p.size + 1)))  # Q/P at the lattice points
    j = 0  # the first cell from which something higher may be taken
    for i in range(p.size):
        if point[i] * p[i] - q[i] <= ULP * q[i]:  # on point i already
            mass[i] += p[i]
            continue
        merged, excess = p[i], q[i] - point[i + 1] * p[i]  # too much Q-mass for point i + 1
        j = max(j, i + 1)
        while excess > 0.0 and j < p.size:
            lack = point[i + 1] * p[j] - q[j]
            share = excess / lack if lack > excess else 1.0
            if lack > ULP * point[i + 1] * p[j]:
                # Otherwise the cell is empty, or at point i + 1 already.
                merged, excess = merged + share * p[j], excess - share * lack
                p[j], q[j] = (1.0 - share) * p[j], (1.0 - share) * q[j]
            if share < 1.0:
                break
            j += 1
        mass[i if excess > ULP * point[i + 1] * merged else i + 1] += merged
    return Lattice(step, low, mass, infinity)


# --- composition: losses add up --------------------------------------------------------------------


def compose(first: Lattice, second: Lattice) -> Lattice:
    """Both rounds. All terms are nonnegative, so the smallest delta keeps its digits (no transform does)."""
    mass = np.convolve(first.mass, second.mass)
    infinity = first.infinity + (1.0 - first.infinity) * second.infinity
    return Lattice(first.step, first.low + second.low, mass, infinity)


def composed(mixture: list[Coins], rounds: int, step: float) -> tuple[Lattice, Lattice]:
    """The PLDs of all rounds: from below, from above."""
    pair = atoms(mixture)
    lower, upper = ([place(pair, step)] * rounds for place in (merge_up, connect_dots))
    return reduce(compose, lower), reduce(compose, upper)


def delta(pld: Lattice, eps: float) -> float:
    """E_P (1 - e^(eps - L))_+ on the lattice."""
    loss = pld.step * (pld.low + np.arange(pld.mass.size))
    gain = -np.expm1(np.minimum(eps - loss, 0.0))
    return pld.infinity + float((pld.mass * gain).sum())


def epsilon(pld: Lattice, target: float) -> float:
    """The least eps >= 0 with delta(eps) <= target, by bisection; inf if there is none."""
    if pld.infinity > target:
        return math.inf
    if delta(pld, 0.0) <= target:
        return 0.0
    low, high = 0.0, pld.step * (pld.low + pld.mass.size)
    for _ in range(100):
        middle = (low + high) / 2.0
        low, high = (low, middle) if delta(pld, middle) <= target else (middle, high)
    return high
