"""Small cases of hidden steps, enumerated: is the truth between the ends of every bracket?

Nothing below is shared with the package but the constructors that are asked.

* allocation, rationals: steps with random rational masses, every step of an adaptive run another processing of the
  stated pair, chosen by all earlier outputs; one or two steps selected, one or two epochs, both orders. The lower end
  is compared with the stated pair in every step, where it has one order.
* allocation and batches, Gaussian: all outcomes of the real protocol (every arrangement of the records) whose outputs
  are rounded to bins, contributions of norm 1 chosen by earlier outputs, on the line or in the plane, zero-out and
  replacement. Rounding outputs can only hide more. The lower end is compared with an integral for equal others.
* Theorem D and Theorem S of docs/shuffled_batches.md, rationals: the protocol with noise on a finite group in place
  of Gaussian noise, against what the theorem says before any evaluation: the largest game, and the integral over u,
  from below, by Jensen's inequality on pieces (up to 1e-14: for the attack it is attained).

Run:  python benchmarks/exact_steps.py [--cases 10000] [--seed 0]     (twenty minutes)
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.special import ndtr

from pld_shuffle import Accountant, DiscretePair, Gaussian, RandomAllocation, ShuffledBatches

ONE, CELLS = Fraction(1), 3
ROUNDED = Fraction(1, 10**14)  # logarithms of masses, and e^eps, are rounded before the package sees them
QUADRATURE = {2: 2e-6, 3: 1e-4}  # relative error of the integrals that lower ends are compared with
BEYOND = 1e-13  # and what is outside of their window
Case = Iterator[tuple[float, float, float]]  # lower end, truth, upper end; comparisons that say nothing have 0 or inf


def draw_law(rng: random.Random, size: int, least: int = 1) -> list[Fraction]:
    masses = [rng.randrange(least, 9) for _ in range(size - 1)] + [rng.randrange(1, 9)]
    return [Fraction(mass, sum(masses)) for mass in masses]


def above(first: Any, second: Any, s: Any) -> Any:
    """The sum of the positive parts of first - s second."""
    both = zip(np.ravel(first), np.ravel(second), strict=True)
    return sum((p - s * q for p, q in both if p > s * q), 0 * s)


# --- random allocation in rationals ---------------------------------------------------------------------


def allocated(epochs: int, steps: int, selected: int, step: Callable[[tuple], Any]) -> tuple[list, list]:
    """Masses of all histories with the contribution and without it; step(history) lists (with, without)."""
    known = [((), ONE, ONE)]
    for _ in range(epochs):
        # entry j: the sum over all sets of j steps so far
        paths = [(seen, [p] + [0 * ONE] * selected, q) for seen, p, q in known]
        for _ in range(steps):
            paths = [
                ((*seen, z), [w * b + (v * a if v else 0) for v, w in zip([0, *ways], ways, strict=False)], q * b)
                for seen, ways, q in paths for z, (a, b) in enumerate(step(seen))
            ]  # fmt: skip
        known = [(seen, ways[selected] / math.comb(steps, selected), q) for seen, ways, q in paths]
    return [p for _, p, _ in known], [q for *_, q in known]


def allocation_in_rationals(rng: random.Random) -> Case:
    size, epochs = rng.choice([2, 2, 3]), rng.choice([1, 1, 1, 2])
    selected = rng.choice([1] * 9 + [2])
    if selected == 2 and rng.random() < 0.95:  # compositions of compositions take a minute
        epochs = 1
    steps = rng.randint(max(2, selected), 3 if epochs == 2 else (5 if size == 2 else 4))
    p, q = (draw_law(rng, size, rng.choice([0, 1, 1, 1])) for _ in range(2))
    either = rng.random() < 0.3  # the stated pair is for both orders
    eps = rng.choice([0.0, 0.01, 0.1, 0.3, 0.7, 1.5])
    chosen: dict[tuple, list] = {}

    def adaptive(seen: tuple) -> list:
        if seen not in chosen:
            laws = (q, p) if either and rng.random() < 0.5 else (p, q)
            kernel = [draw_law(rng, size, 0) for _ in range(size)]
            if rng.random() < 0.5:
                kernel = [[ONE * (i == j) for j in range(size)] for i in range(size)]
            chosen[seen] = [tuple(sum(x * row[z] for x, row in zip(law, kernel, strict=True)) for law in laws)
                            for z in range(size)]  # fmt: skip
        return chosen[seen]

    kind = RandomAllocation(
        DiscretePair(*([math.log(x) if x else -math.inf for x in law] for law in (p, q)), symmetric=either),
        steps, selected,
    )  # fmt: skip
    runs = [allocated(epochs, steps, selected, step) for step in (lambda _: list(zip(p, q, strict=True)), adaptive)]
    high, low = (Fraction(math.exp(eps)) * (1 + sign * 4 * ROUNDED) for sign in (1, -1))
    found = Accountant().compose(kind, epochs).delta_bounds(eps)
    stated = [float(above(*run, low)) for run in (runs[0], runs[0][::-1])]
    if not either:
        yield float(found.lower), max(stated) * (1 + 1e-14), math.inf
    for run in runs:
        for order, (one, two) in enumerate((run, run[::-1])):
            truth = float(above(one, two, high)) * (1 - 1e-14)
            yield 0.0, truth, float(found.upper)
            if epochs == selected == 1 and hasattr(kind.pair, "pairs"):
                ends = kind.pair.pairs[order].profile(np.array([math.expm1(eps)]), 1e-4, 1e-15)
                yield float(ends.lower[0]) if run is runs[0] and not either else 0.0, stated[order], math.inf
                yield 0.0, truth, float(ends.upper[0])


# --- the protocol, arrangement by arrangement -----------------------------------------------------------


def arrangements(records: tuple[int, ...], sizes: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], ...]]:
    if not sizes:
        yield ()
        return
    for batch in itertools.combinations(records, sizes[0]):
        rest = tuple(i for i in records if i not in batch)
        yield from ((batch, *later) for later in arrangements(rest, sizes[1:]))


def outputs(places: list, given: list, cell: np.ndarray, law: Callable[[Any], np.ndarray]) -> np.ndarray:
    """Masses of the outputs of all batches, the places being equally likely.

    given[i][t] : what record i gives to batch t, one entry for every sequence of cells of earlier outputs.
    """
    total: Any = 0
    for batches in places:
        masses, seen = np.array(ONE if law(given[0][0]).dtype == object else 1.0), np.array(0)
        for t, members in enumerate(batches):
            laws = law(sum((given[i][t] for i in members), np.zeros_like(given[0][t])))
            masses = masses[..., None] * laws[seen]
            seen = seen[..., None] * (cell.max() + 1) + cell
        total = total + masses
    return np.asarray(total / len(places))


def integral(sigma: float, steps: int, rate: float, s: float, centres: tuple[int, int, int]) -> float:
    """E((rate/steps) sum L + (1 - rate)(1 - s))_+, L = (N(first) - s N(second))/N(others): closed in the last step."""
    points = {2: 20001, 3: 801}[steps]
    first, second, others = centres
    z, h = np.linspace(-8.0 * sigma - 2.0, 8.0 * sigma + 2.0, points, retstep=True)
    weight = np.exp(-0.5 * (z / sigma) ** 2) * h / sigma / math.sqrt(2.0 * math.pi)
    ratio = [np.exp((c - others) * (z - 0.5 * (c - others)) / sigma**2) for c in (first, second)]
    gained, mass = np.array([(1 - rate) * (1 - s)]), np.array([1.0])
    for _ in range(steps - 1):
        gained = (gained[:, None] + rate / steps * (ratio[0] - s * ratio[1])).ravel()
        mass = (mass[:, None] * weight).ravel()
    # coefficients of N(-1), N(0), N(1); relative to the first they are a quadratic in t = e^(z/sigma^2)
    a = [np.zeros(gained.size) for _ in range(3)]
    for centre, amount in ((others, gained), (first, rate / steps), (second, -s * rate / steps)):
        a[centre + 1] = a[centre + 1] + amount
    c, b, d = a[0], a[1] * math.exp(0.5 / sigma**2), a[2]
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.sqrt(b * b - 4.0 * c * d)
        far = -0.5 * (b + np.copysign(root, b))
        roots = np.array([far / d, c / far])
    roots = np.sort(np.where(roots > 0.0, roots, np.nan), axis=0)  # nan is last
    place = sigma**2 * np.log(np.where(np.isnan(roots), np.inf, roots))
    ends = np.concatenate((np.full((1, gained.size), -np.inf), place, np.full((1, gained.size), np.inf)))
    value = 0.0
    for low, high in itertools.pairwise(ends):
        part = sum(x * (ndtr((high - m) / sigma) - ndtr((low - m) / sigma)) for m, x in zip((-1, 0, 1), a, strict=True))
        value += float(mass @ np.maximum(part, 0.0))  # one sign between roots
    return value


def gaussian(rng: random.Random, shuffled: bool) -> Case:
    steps, replaced, plane = rng.choice([2, 2, 3, 4]), rng.random() < 0.4, rng.random() < 0.2
    plane, sigma = plane and steps == 2, rng.choice([0.5, 0.7, 1.0, 1.5, 2.5])
    size = rng.choice([1, 2]) if shuffled and steps == 2 else 1
    left_out = rng.choice([0, 1, 1, 1, 2]) if shuffled else 0
    records = steps * size + left_out - (size == 2 and left_out == 0 and rng.random() < 0.5)
    sizes = (*[size] * (steps - 1), min(size, records - size * (steps - 1)))
    relation, eps = ("zero-out", "replace-one")[replaced], rng.choice([0.0, 0.05, 0.3, 0.8, 2.0])
    attack, numbers = rng.random() < 0.3, np.random.default_rng(rng.randrange(2**32))
    kind: Any = RandomAllocation(Gaussian(sigma=sigma), steps, relation=relation)
    if shuffled:
        kind = ShuffledBatches(sigma, steps, size, records, relation)
    places = list(arrangements(tuple(range(records)), sizes))
    if not shuffled:  # the others give nothing that is not known
        places = [tuple((0,) if i == t else () for i in range(steps)) for t in range(steps)]
    bins = 14 if plane else {2: 160, 3: 36, 4: 14}[steps]
    edges = np.concatenate(([-np.inf], np.linspace(-size - 3.5 * sigma, size + 3.5 * sigma, bins - 1), [np.inf]))
    cut = np.array([rng.randrange(bins) for _ in range(CELLS - 1)])
    cell = np.searchsorted(np.sort(cut), np.arange(bins))

    def law(centre: np.ndarray) -> np.ndarray:
        each = np.diff(ndtr((edges - centre[..., None]) / sigma), axis=-1)
        return np.einsum("ca,cb->cab", each[:, 0], each[:, 1]).reshape(len(each), -1) if plane else each[:, 0]

    def gifts() -> list[np.ndarray]:
        found = [numbers.normal(size=(CELLS**t, 1 + plane)) for t in range(steps)]
        return [x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), numbers.choice([1e-9, 1.0])) for x in found]

    if plane:
        cell = np.tile(cell, bins)
    given, other = [gifts() for _ in range(records if shuffled else 1)], gifts()
    if attack:  # everybody else at the end opposite to the target's
        along = [np.eye(1, 1 + plane) * np.ones((CELLS**t, 1)) for t in range(steps)]
        given, other = [along] + [[-x for x in along]] * (len(given) - 1), [-x for x in along]
    absent = other if replaced else [0.0 * x for x in other]
    masses = [outputs(places, one, cell, law) for one in (given, [absent, *given[1:]])]
    s, asked = math.exp(eps), np.array([math.expm1(eps)])
    found, bounds = Accountant().compose(kind).delta_bounds(eps), getattr(kind.pair, "pairs", (kind.pair,) * 2)
    far, near = 1, -1 if replaced else 0
    whole = len(set(sizes)) == 1 and steps < 4  # the integral is for equal batches, and too coarse for four
    rate = steps * size / records if shuffled else 1.0
    for order, pair in enumerate(bounds):
        truth = float(np.maximum(masses[order] - s * masses[1 - order], 0.0).sum())
        yield 0.0, max(truth - 1e-14, 0.0), float(found.upper)
        yield 0.0, max(truth - 1e-14, 0.0), float(pair.profile(asked, 1e-4, 1e-15).upper[0])
    if whole:
        centres = [(*pair, -1 if shuffled else 0) for pair in ((far, near), (near, far))]
        exact = [integral(sigma, steps, rate, s, one) for one in centres]
        yield float(found.lower), max(exact) * (1 + QUADRATURE[steps]) + BEYOND, math.inf
        for truth, pair in zip(exact, bounds, strict=True):
            yield (
                0.0,
                max(truth * (1 - QUADRATURE[steps]) - BEYOND, 0.0),
                float(pair.profile(asked, 1e-4, 1e-15).upper[0]),
            )


# --- the theorems in rationals --------------------------------------------------------------------------


def finite(rng: random.Random, left_out: int, most: int) -> tuple:
    """A protocol with noise on a cyclic group: laws of outputs, contributions of all, and the places."""
    group, steps = rng.choice([3, 4]), rng.choice([2, 2, most])
    size = rng.choice([1, 2]) if steps == 2 and left_out else 1
    noise = draw_law(rng, group)
    laws = np.array([[noise[(z - c) % group] for z in range(group)] for c in range(group)], dtype=object)
    allowed = [0, *rng.sample(range(1, group), 1 + (steps == 2))]
    records = steps * size + left_out
    given = [[np.array([rng.choice(allowed) for _ in range(group**t)]) for t in range(steps)] for _ in range(records)]
    if rng.random() < 0.3:  # the attack
        pair = rng.sample(allowed, 2)
        given = [[np.full(group**t, pair[i > 0]) for t in range(steps)] for i in range(records)]
    places = list(arrangements(tuple(range(records)), (size,) * steps))
    absent = [np.zeros_like(x) for x in given[0]]
    masses = [
        outputs(places, one, np.arange(group), lambda c: laws[c % group]) for one in (given, [absent, *given[1:]])
    ]
    return laws, allowed, given, masses, steps, Fraction(steps * size, records), Fraction(rng.choice([3, 4, 5, 8]), 3)


def theorem_d(rng: random.Random) -> Case:
    laws, allowed, _, masses, steps, rate, s = finite(rng, rng.choice([1, 2]), 3)
    for order in (1, -1):
        types = set()
        for x, w in itertools.product(allowed, repeat=2):
            one, two = (laws[x], laws[0])[::order]
            types.add(
                tuple(sorted((rate / steps * (a - s * b) / c, c) for a, b, c in zip(one, two, laws[w], strict=True)))
            )

        def most(gained: Fraction, left: int, types: set = types) -> Fraction:
            if not left:
                return max(gained, 0 * ONE)
            return max(sum((p * most(gained + x, left - 1) for x, p in kind), 0 * ONE) for kind in types)

        bound = most((1 - rate) * (1 - s), steps)
        truth = above(*masses[::order], s)
        yield 0.0, float(truth), float(bound) if truth <= bound else -1.0


def theorem_s(rng: random.Random) -> Case:
    laws, allowed, given, masses, steps, _, s = finite(rng, 0, 3)
    group = len(laws)
    histories = list(itertools.product(range(group), repeat=steps))
    guest = {}  # V and the masses' sum, for every history
    for seen in itertools.chain(*(itertools.product(range(group), repeat=t) for t in range(steps))):
        at = sum(z * group**i for i, z in enumerate(reversed(seen)))
        lowest = [min(laws[one[len(seen)][at]][z] for one in given[1:]) for z in range(group)]
        guest[seen] = lowest, sum(lowest)
    last = min(total for _, total in guest.values())  # 1/c
    apart = [max(above(*(laws[x], laws[0])[::order], s) for x in allowed) for order in (1, -1)]

    def terms(order: int, arranged: tuple[int, ...], seen: tuple) -> list[tuple[Fraction, Fraction, Fraction]]:
        """For every slot D = dP - s dQ, W, which is not read in the target's, and V at this outcome."""
        found = []
        for t, z in enumerate(seen):
            at = sum(y * group**i for i, y in enumerate(reversed(seen[:t])))
            one, two = (laws[given[0][t][at]][z], laws[0][z])[::order]
            lowest, total = guest[seen[:t]]
            found.append((one - s * two, laws[given[arranged[t]][t][at]][z], lowest[z] / total))
        return found

    def inside(u: Fraction, known: list, target: int) -> Fraction:
        value = 0 * ONE
        for t, (gain, _, _) in enumerate(known):
            part = gain if t == target else gain * (1 - u) * known[target][2]
            for r, (_, law, low) in enumerate(known):
                part *= ONE if r in (t, target) else law - u * low
            value += part
        return value

    for order in (1, -1):
        truth = above(*masses[::order], s)
        for pieces in (2, 8, 32, 128, 512):
            cuts = [last * i / pieces for i in range(pieces + 1)]
            bound = (1 - last) ** steps * apart[order < 0]
            for arranged in itertools.permutations(range(steps)):
                for seen in histories:
                    known, target = terms(order, arranged, seen), arranged.index(0)
                    for a, b in itertools.pairwise(cuts):  # Simpson's rule is exact
                        f = [inside(u, known, target) for u in (a, (a + b) / 2, b)]
                        bound += max(0, (f[0] + 4 * f[1] + f[2]) * (b - a) / 6) / math.factorial(steps)
            if truth <= bound * (1 + ROUNDED):  # they may be equal
                break
        else:
            bound = -ONE
        yield 0.0, float(truth) * (1 - 1e-14), float(bound)


# --- all cases ------------------------------------------------------------------------------------------

KINDS: dict[str, tuple[Callable[[random.Random], Case], float]] = {
    "random allocation, rationals": (allocation_in_rationals, 0.66),
    "random allocation, Gaussian": (lambda rng: gaussian(rng, False), 0.03),
    "shuffled batches, Gaussian": (lambda rng: gaussian(rng, True), 0.03),
    "Theorem D, rationals": (theorem_d, 0.22),
    "Theorem S, rationals": (theorem_s, 0.06),
}


def run(seed: int, cases: range) -> list[list[Any]]:
    """For every kind: cases, comparisons, how many failed, the least upper/truth - 1 and 1 - lower/truth."""
    rows = {name: [name, 0, 0, 0, math.inf, math.inf] for name in KINDS}
    for i in cases:
        rng = random.Random(f"{seed}/{i}")
        [name] = rng.choices(list(KINDS), [share for _, share in KINDS.values()])
        row = rows[name]
        row[1] += 1
        for lower, truth, upper in KINDS[name][0](rng):
            row[2] += 1
            if not lower <= truth <= upper:
                row[3] += 1
                print(f"NOT BETWEEN: --seed {seed} --start {i} --cases 1: {lower!r} {truth!r} {upper!r}", flush=True)
            if truth > 1e-9:
                row[4] = min(row[4], float(upper / truth) - 1.0)
                row[5] = min(row[5], 1.0 - float(lower / truth))
    return list(rows.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rows = run(arguments.seed, range(arguments.start, arguments.start + arguments.cases))
    print(
        "| kind | cases | comparisons | failed | least upper/truth - 1 | least 1 - lower/truth |\n|--|--|--|--|--|--|"
    )
    for name, *counts, high, low in rows:
        print(f"| {name} | " + " | ".join(f"{count:,}" for count in counts) + f" | {high:.1e} | {low:.1e} |")


if __name__ == "__main__":
    main()
