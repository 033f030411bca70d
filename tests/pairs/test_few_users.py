"""`few_users`: slots of few users by sums of ratios, against enumeration, quadratures and the contour."""

from __future__ import annotations

import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from mpmath import mpf
from oracles import mean_part

from pld_shuffle import Side
from pld_shuffle.mechanisms.shuffled import Blanket, strongest_attack
from pld_shuffle.pairs.few_users import MOST_USERS, FewSlots
from pld_shuffle.pairs.pair import Atoms, Resolution
from pld_shuffle.pairs.slots import SlotLaw
from pld_shuffle.randomizers import Gaussian as GaussianNoise
from pld_shuffle.randomizers import Laplace
from pld_shuffle.randomizers.noise import Noise

ROUNDING = 1e-14  # of the conversion of a reference to double


def enumerated(law: SlotLaw, expm1_eps: float) -> float:
    """E (1/n)(sum of n slots' L)_+, the rest one more group."""
    x = (law.first - law.second - expm1_eps * law.second) / law.others
    return float(mean_part(x.tolist(), law.others.tolist(), law.n))


def random_law(rng: np.random.Generator, n: int, kinds: str) -> SlotLaw:
    """Ratios at random on the left ("l"), on the right ("r"), and a rest ("0") or none."""
    sizes = [int(rng.integers(1, 4)) * (kind in kinds) for kind in "lr"]
    masses = rng.dirichlet(np.ones(sum(sizes))) * (0.7 if "0" in kinds else 1.0)
    ratios = np.exp(rng.uniform(-1.5, 1.5, sum(sizes)))
    left = np.arange(sum(sizes)) < sizes[0]
    first, second = np.where(left, ratios, 1.0) * masses, np.where(left, 1.0, ratios) * masses
    return SlotLaw(n, first, second, masses, "0" not in kinds, 1e-15)


def both(law: SlotLaw, *, tailed: bool = False) -> tuple[FewSlots, FewSlots]:
    lower, upper = (FewSlots.of_side(side, law, tailed=tailed) for side in (Side.LOWER, Side.UPPER))
    assert lower is not None and upper is not None
    return lower, upper


def side_laws(noise: Noise, n: int, truncated_mass: float = 0.0) -> list[SlotLaw]:
    """The blanket's law of noise on either side."""
    return [
        SlotLaw.of(n, masses, noise.mass_error, whole=False)
        for side in Side
        for masses in noise.slot_laws(side, truncated_mass)
    ]


CASES = [(n, kinds, seed, False) for n in (1, 2, 4) for kinds in ("lr0", "l0", "r", "l") for seed in range(3)]
CASES += [(n, kinds, n - 1, True) for n in (1, 2, 3, 4) for kinds in ("lr0", "l", "r", "lr")]


@pytest.mark.parametrize(("n", "kinds", "seed", "tailed"), CASES)
def test_either_side_is_around_the_enumeration(n: int, kinds: str, seed: int, tailed: bool) -> None:
    """With a tail a rare ratio of 1,000, hundreds of deviations out, and reports that nobody else makes."""
    law = covered = random_law(np.random.default_rng([n, len(kinds), ord(kinds[0]), seed]), n, kinds)
    if tailed:
        rare = np.array([1000.0, 1.0, 1.0]) if "l" in kinds else np.array([1.0, 1000.0, 1.0])
        extra = np.stack((1e-5 * rare, np.array([1e-4, 2e-5, 0.0])), axis=1)
        whole = np.concatenate((np.stack((law.first, law.second, law.others)) * (1.0 - 1e-5), extra), axis=1)
        law, covered = (SlotLaw(n, *rows, law.whole, 1e-15) for rows in (whole, whole[:, :-1]))
    lower, upper = both(law, tailed=tailed)
    expm1_eps = np.expm1([0.0, 0.3, 1.0, 3.0, 6.0] if tailed else [0.0, 0.1, 0.5, 1.0, 1.4])
    low, high = lower.profile(expm1_eps).lower, upper.profile(expm1_eps).upper
    for i, g in enumerate(expm1_eps.tolist()):
        truth = enumerated(covered, g) + tailed * max(0.0, 1e-4 - (1.0 + g) * 2e-5)
        assert low[i] <= truth * (1.0 + ROUNDING) and truth * (1.0 - ROUNDING) <= high[i]
        assert high[i] - low[i] <= (1e-2 if tailed else 1e-3) * truth + 1e-6


def laplace_of_two(eps0: float, expm1_eps: float) -> mpf:
    """(1/2) E(X + X')_+ of the blanket law of Laplace noise: E(X - t)_+ in closed form, X' by quadrature.

    In q = sqrt(u), from 1 to e^(eps0/2), blanket mass is c dq/q^2, c = e^(-eps0/2)/2; X = q^2 - s on the left,
    1 - s q^2 on the right, and there are atoms of mass e^-eps0/2 at either end.
    """
    s, top = 1 + mpf(expm1_eps), mpmath.exp(mpf(eps0) / 2)
    c, end = 1 / top / 2, 1 / top**2 / 2
    rest = 1 - 1 / top

    def stop_loss(t: mpf) -> mpf:
        found = rest * max(-t, 0) + end * max(top**2 - s - t, 0) + end * max(1 - s * top**2 - t, 0)
        low = min(top, mpmath.sqrt(max(s + t, 1)))
        found += c * ((top - low) - (s + t) * (1 / low - 1 / top))
        high = min(top, mpmath.sqrt(max((1 - t) / s, 1)))
        return found + c * ((1 - t) * (1 - 1 / high) - s * (high - 1))

    total = rest * stop_loss(mpf(0))
    total += end * (stop_loss(s - top**2) + stop_loss(s * top**2 - 1))
    # Kinks: where -X' passes an atom or an end of the other's range.
    kinks = {mpf(1), top}
    for place in (top**2 - s, 1 - s * top**2, 1 - s, mpf(0)):
        for square in (s - place, (1 + place) / s):
            if 1 < square < top**2:
                kinks.add(mpmath.sqrt(square))
    ends = sorted(kinks)
    total += mpmath.quad(lambda q: c / q**2 * stop_loss(s - q**2), ends)
    total += mpmath.quad(lambda q: c / q**2 * stop_loss(s * q**2 - 1), ends)
    return total / 2


@pytest.mark.parametrize("eps0", [0.1, 1.0, 4.0])
def test_laplace_noise_of_two_users_is_a_quadrature(eps0: float) -> None:
    """Up to next to the largest loss, where hardly anything is left."""
    pair = Blanket(Laplace(eps0=eps0), 2).pair
    eps = eps0 * np.array([0.01, 0.3, 0.8, 0.99, 0.9999, 1.0 - 1e-7])
    found = pair.profile(np.expm1(eps), 1e-5, 0.0)
    with mpmath.workdps(30):
        for i, expm1_eps in enumerate(np.expm1(eps)):
            truth = laplace_of_two(eps0, float(expm1_eps))
            assert found.lower[i] <= truth * (1 + mpf(ROUNDING))
            assert truth * (1 - mpf(ROUNDING)) <= found.upper[i]
            assert found.upper[i] <= (1.0 + 1e-3) * found.lower[i]


@pytest.mark.parametrize(("noise", "n"), [
    (Laplace(eps0=1.0), 3), (Laplace(eps0=0.1), 8), (Laplace(eps0=2.0), MOST_USERS),
    (GaussianNoise(sigma=1.0), 2), (GaussianNoise(sigma=1.0), 5), (GaussianNoise(sigma=3.0), 12),
], ids=repr)  # fmt: skip
def test_it_agrees_with_the_contour(noise: Noise, n: int) -> None:
    """The same finite laws, of few cells, so that nothing but sums and lattices differs."""
    tailed = isinstance(noise, GaussianNoise)
    scale = 1.0 / noise.sigma if isinstance(noise, GaussianNoise) else noise.eps0
    expm1_eps = np.expm1(scale * np.array([0.05, 0.4, 0.8]))
    for law in side_laws(noise, n, 1e-12 * tailed):
        contour = law.profile(expm1_eps, 1e-6)
        lower, upper = both(law, tailed=tailed)
        low, high = lower.profile(expm1_eps).lower, upper.profile(expm1_eps).upper
        assert np.all(low <= contour.upper) and np.all(contour.lower <= high)
        assert np.all(high <= low * (1.0 + 3e-4))


def divergence(atoms: Atoms, side: Side, eps: float) -> float:
    """H at e^eps of atoms on a side, everything that they leave out included."""
    kept = atoms.loss > eps
    finite = math.fsum(atoms.mass[kept] * -np.expm1(eps - atoms.loss[kept]))
    return finite + atoms.infinity_mass + (atoms.truncated_mass if side is Side.UPPER else 0.0)


@pytest.mark.parametrize("eps0", [0.5, 2.0])
def test_atoms_are_on_their_side_at_every_epsilon(eps0: float) -> None:
    """Of two users against the quadrature, negative losses included: H(1/s) = 1 - 1/s + H(s)/s."""
    pair = Blanket(Laplace(eps0=eps0), 2).pair
    resolution = Resolution(pair.scale / 50.0, truncated_mass=1e-12)
    low, high = pair.atoms(list(Side), resolution)
    assert list(Side) == [Side.LOWER, Side.UPPER]
    # Between points, at them, and on either side of 0.
    for eps in eps0 * np.array([-0.7, -0.011, -1e-3, 0.0, 1e-3, 0.013, 0.21, 0.68, 0.93, 0.999]):
        expm1_eps = math.expm1(abs(eps))
        with mpmath.workdps(20):
            truth = laplace_of_two(eps0, expm1_eps)
            if eps < 0.0:
                truth = (expm1_eps + truth) / (1 + mpf(expm1_eps))
        assert divergence(low, Side.LOWER, eps - low.loss_error) <= truth * (1 + mpf(1e-13)) + mpf(2e-12)
        assert truth * (1 - mpf(1e-13)) <= divergence(high, Side.UPPER, eps - high.loss_error) + 1e-15
        assert divergence(high, Side.UPPER, eps) - divergence(low, Side.LOWER, eps) < 1e-3


def test_the_largest_loss_has_its_mass() -> None:
    """All slots at the end where the ratio is e^eps0, or in the rest; 2 users: u w (w + rest) with w = e^-eps0/2."""
    pair = Blanket(Laplace(eps0=1.0), 2).pair
    w = 0.5 * math.exp(-1.0)
    exact = math.e * w * (w + 1.0 - math.exp(-0.5))
    assert exact * (1.0 - 1e-9) < pair.top_mass <= exact
    attack = strongest_attack(Laplace(eps0=1.0), 3)
    assert 0.125 * (1.0 - 1e-9) < attack.top_mass <= 0.125


def test_other_laws_are_none() -> None:
    law = random_law(np.random.default_rng(0), 3, "lr0")
    for other in (replace(law, n=MOST_USERS + 1), replace(law, second=1.1 * law.second)):
        assert FewSlots.of_side(Side.UPPER, other) is None
