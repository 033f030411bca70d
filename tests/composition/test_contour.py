"""Compositions by a contour integral: against exact sums, whatever steers the nodes, and against closed forms."""

from __future__ import annotations

import math
from dataclasses import dataclass

import mpmath
import numpy as np
import oracles as o
import pytest

from pld_shuffle import Gaussian
from pld_shuffle.composition.composition import Composition
from pld_shuffle.composition.contour import Integral
from pld_shuffle.composition.moments import Rounds, TooExpensive
from pld_shuffle.numerics.sides import Bounds
from pld_shuffle.pairs.pair import Pair
from pld_shuffle.pairs.profile import Array, ProfilePair


def exact_law(parts: list[Rounds]) -> dict[mpmath.mpf, mpmath.mpf]:
    """Total losses and their masses in high precision, by multiplying out."""
    return o.sum_law(*(
        {mpmath.mpf(x): mpmath.mpf(p) for p, x in zip(part.mass.tolist(), part.loss.tolist(), strict=True)}
        for part in parts
        for _ in range(part.count)
    ))  # fmt: skip


def exact(law: dict[mpmath.mpf, mpmath.mpf], variance: float, eps: float) -> mpmath.mpf:
    """E (1 - e^(eps - L - Z))_+, Z the loss of Gaussian noise with that mu^2."""
    if variance == 0.0:
        return mpmath.fsum(mass * max(mpmath.mpf(0), -mpmath.expm1(eps - loss)) for loss, mass in law.items())
    return mpmath.fsum(mass * o.gaussian(mpmath.sqrt(variance), eps - loss) for loss, mass in law.items())


CASES = [(seed, noisy) for seed in range(12) for noisy in (False, True)]


@pytest.mark.parametrize(("seed", "noisy"), CASES)
def test_the_integral_encloses_exact_sums_wherever_its_nodes_are(seed: int, noisy: bool) -> None:
    """Random atoms, lines, smoothing, tolerances: every answer encloses, at epsilons near and far."""
    random = np.random.default_rng(seed)
    parts = []
    for _ in range(random.integers(1, 3)):
        size = int(random.integers(2, 5))
        mass = random.dirichlet(np.ones(size)) * random.choice([1.0, 0.9])
        loss = np.sort(random.normal(0.1, 1.0, size)) * random.choice([0.01, 1.0, 3.0])
        parts.append(Rounds(mass, loss, 0.0, 0.0, int(random.integers(1, 5))))
    law = exact_law(parts)
    spread = math.sqrt(float(sum(m * x * x for x, m in law.items()))) + 1e-3
    variance = float(random.choice([0.01, 0.3, 4.0])) * spread**2 if noisy else 0.0
    c = float(random.choice([0.3, 1.0, 3.0, 9.0])) / spread
    tau = 0.0 if noisy else float(random.choice([0.03, 0.1, 0.5])) / (c + math.sqrt(c))
    tolerance = float(10.0 ** random.uniform(-9.0, -2.0))
    found = Integral(parts, variance, c, tau, tolerance, 1e-9)
    with mpmath.workdps(40):
        for at in (-1.0, 0.0, 0.3, 1.0, 2.5):
            eps = at * spread
            truth = exact(law, variance, eps)
            place = np.array([eps])
            lower, upper = found.lowers(place)[0], found.uppers(place)[0]
            assert lower <= truth <= upper


@pytest.mark.parametrize("seed", range(12))
def test_every_node_left_out_is_below_the_floor(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Walk all nodes as well: those in between have next to nothing, and the sizes of phi are bounds."""
    random = np.random.default_rng(seed)
    size = int(random.choice([3, 40, 400]))
    if seed % 2:  # on a lattice phi comes back to 1
        loss = np.sort(random.choice(np.arange(-500, 500), size, replace=False)) * 0.01
    else:
        loss = np.sort(random.normal(0.0, 1.0, size))
    counts = [[300], [1000], [20, 100]][seed % 3]
    parts = [
        Rounds(random.dirichlet(np.ones(size)), loss * float(random.choice([0.3, 1.0])), 0.0, 0.0, count)
        for count in counts
    ]
    kept: list[np.ndarray] = []
    nodes = Integral._nodes

    def recorded(self: Integral, y: np.ndarray):  # type: ignore[no-untyped-def]
        kept.append(np.round(y / self.h))
        return nodes(self, y)

    monkeypatch.setattr(Integral, "_nodes", recorded)
    if seed >= 6:
        monkeypatch.setattr("pld_shuffle.composition.contour.FEW_LAWS", 1)
    found = Integral(parts, 0.0, 0.05, 0.05, 1e-6, 1e-9)
    walked = np.concatenate(kept)
    last = 12.0 / (found._tau * found.h)
    every = np.setdiff1d(np.arange(1, last), walked)
    assert every.size > 5 * walked.size
    monkeypatch.undo()
    monkeypatch.setattr(Integral, "_charge", lambda self, nodes: None)
    every = random.choice(every, 3000, replace=False) if every.size > 3000 else every
    y = every * found.h
    (_, log_phi, error), _ = found._nodes(y)
    assert np.all(np.exp(log_phi.real) * found._weight(y) <= found._floor + error)
    value, _ = found._tilted.values(y)
    most = found._tilted.most(y, len(parts))
    assert np.all(np.exp(value.real) <= most)
    assert np.all(most <= np.exp(value.real) + 2.1e-3)
    assert np.array_equal(found._tilted.most(y, 1), most[:1])


@dataclass(frozen=True)
class Unnamed(ProfilePair):
    """Gaussian noise that is not known as such."""

    known: Pair
    max_loss = Bounds(math.inf, math.inf)

    def profile(self, expm1_eps: Array, rtol: float, truncated_mass: float) -> Bounds:
        assert isinstance(self.known, ProfilePair)
        return self.known.profile(expm1_eps, rtol, truncated_mass)

    @property
    def scale(self) -> float:
        return self.known.scale


@pytest.mark.parametrize("rounds", [1000, 10**6])
@pytest.mark.parametrize("z", [0.0, 3.0, 12.0])
def test_points_of_a_gaussian_profile_compose_to_the_closed_form(rounds: int, z: float) -> None:
    """The pair as any other profile, its closed form forgotten, over many rounds."""
    mu = 3.0 / math.sqrt(rounds)
    pair = Unnamed(Gaussian(sigma=1.0 / mu).pair)
    eps = 4.5 + 3.0 * z
    with mpmath.workdps(60):
        truth = o.gaussian(mpmath.mpf(1.0 / (1.0 / mu)) * mpmath.sqrt(rounds), eps)
    lower, upper = Composition([(pair, rounds)], 1e-3).deltas(eps)
    assert lower <= truth <= upper
    assert upper <= 1.001 * lower


def test_dear_integrals_are_left_to_lattices() -> None:
    """One round of many atoms has no decay: refused before it is walked to the end."""
    random = np.random.default_rng(1)
    loss = np.sort(random.normal(0.0, 1.0, 4000))
    with pytest.raises(TooExpensive):
        Integral([Rounds(np.full(4000, 1 / 4000), loss, 0.0, 0.0, 1)], 0.0, 4.0, 1e-4, 1e-7, 0.1)
