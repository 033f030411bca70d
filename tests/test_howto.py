"""What the how-to pages claim about vectors, by brute force; the recipe for containers is of commands we have."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest

from pld_shuffle import Accountant, ShuffledLDP, ShuffledRandomizer
from pld_shuffle.cli import COMMANDS
from pld_shuffle.numerics import tuning

HOWTO = Path(__file__).parents[1] / "docs" / "howto"


def priv_unit(d: int, p: float, g: float) -> dict[str, float]:
    """The function of the page."""
    [code] = re.findall(r"```python\n(.*?)```", (HOWTO / "gradients.md").read_text("utf-8"), re.DOTALL)
    space: dict[str, object] = {"__name__": "page"}
    exec(code[: code.index("known =")], space)
    found: dict[str, float] = space["priv_unit"](d, p, g)  # type: ignore[operator]
    return found


@pytest.mark.parametrize(("p", "g"), [(0.75, 0.2), (0.9, 0.5), (0.6, 0.0), (0.99, 0.9)])
def test_priv_unit_on_the_circle(p: float, g: float) -> None:
    """In two dimensions: densities on 36,000 arcs, all other inputs at 360 angles."""
    angle = 2 * math.pi * (np.arange(36_000) + 0.5) / 36_000

    def density(x: float) -> np.ndarray:
        inside = np.cos(angle - x) >= g
        q = math.acos(g) / math.pi
        return np.where(inside, p / q, (1 - p) / (1 - q)) / angle.size

    known, first = priv_unit(2, p, g), density(0.0)
    assert first.sum() == pytest.approx(1.0, abs=2e-4)
    others = [density(x) for x in 2 * math.pi * np.arange(1, 360) / 360]
    ratio = max(float(np.max(first / other)) for other in others)
    distance = max(0.5 * float(np.abs(first - other).sum()) for other in others)
    assert math.log(ratio) == pytest.approx(known["eps0"], rel=1e-9)
    assert known["tv"] * (1 - 1e-3) <= distance <= known["tv"] * (1 + 1e-3)


def test_priv_unit_in_many_dimensions() -> None:
    """The share of the cap, against uniform points on the sphere; and knowing tv helps."""
    points = np.random.default_rng(3).normal(size=(200_000, 5))
    share = np.mean(points[:, 0] >= 0.3 * np.linalg.norm(points, axis=1))
    known = priv_unit(5, 0.7, 0.3)
    assert (0.7 - share) / (1 - share) == pytest.approx(known["tv"], abs=5e-3)
    found = [
        Accountant().compose(mechanism).get_epsilon(1e-6)
        for mechanism in (ShuffledRandomizer(5_000, **known), ShuffledLDP(known["eps0"], 5_000))
    ]
    assert found[0] <= found[1]


def test_the_recipe_for_containers_runs_our_commands() -> None:
    text = (HOWTO / "containers.md").read_text("utf-8")
    [recipe] = re.findall(r"```dockerfile\n(.*?)```", text, re.DOTALL)
    assert len(recipe.splitlines()) == 5
    assert set(re.findall(r"pld-shuffle ([a-z][a-z-]*)", recipe)) <= {command.name for command in COMMANDS}
    folder = re.search(r"NUMBA_CACHE_DIR=(\S+)", recipe)
    assert folder is not None and f"chmod -R a+rX {folder[1]}" in recipe


def test_the_page_of_the_command_line_states_the_limits_that_hold() -> None:
    text = (HOWTO.parent / "command_line.md").read_text("utf-8")
    limits = (tuning.MOST_ATTEMPTS, tuning.INTEGRAL_WORK, tuning.NUMBERS, tuning.DIRECT_WORK)
    assert limits == (16, 2e8, 2**23, 4e9)
    for words in ("16 attempts", "2 10^8 terms", "2^23 numbers", "4 10^9 multiplications"):
        assert words in text
