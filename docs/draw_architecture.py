"""The five ideas, and the way of a question through them: docs/architecture.png.

Run:  python docs/draw_architecture.py [--output DIR]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

BOXES = (  # title, what it says, where
    ("1  Slots", "a round: n terms with masses\n(first, second, others)", "pairs/coins, slots,\nswap, bits"),
    ("2  Atoms", "a profile becomes masses\nand losses, on a side", "pairs/profile"),
    ("3  Moments", "log E e^(zL), with its error:\ntilt, Chernoff, Renyi", "composition/moments"),
    ("4  One integral", "products of moments along a line;\non a lattice, a Fourier sum",
     "composition/contour,\nproduct"),
)  # fmt: skip
BLUE, RED, GREY = "#1f6fb2", "#b03a48", "#555555"


def box(axes: plt.Axes, x: float, y: float, texts: tuple[str, str, str], colour: str) -> None:
    axes.add_patch(FancyBboxPatch((x, y), 2.5, 1.7, boxstyle="round,pad=0.05", fill=False, color=colour))
    title, says, where = texts
    axes.text(x + 1.25, y + 1.42, title, ha="center", weight="bold", size=10, color=colour)
    axes.text(x + 1.25, y + 0.88, says, ha="center", va="center", size=7.5)
    axes.text(x + 1.25, y + 0.27, where, ha="center", va="center", size=7, family="monospace")


def arrow(axes: plt.Axes, begin: tuple[float, float], end: tuple[float, float]) -> None:
    axes.add_patch(FancyArrowPatch(begin, end, arrowstyle="-|>", mutation_scale=12, color=GREY, lw=1.2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    home = Path(__file__).parent
    parser.add_argument("--output", type=Path, default=home)
    folder = parser.parse_args().output
    figure, axes = plt.subplots(figsize=(9.6, 3.7))
    for place, texts in enumerate(BOXES):
        box(axes, 3.1 * place, 0.0, texts, BLUE)
        if place:
            arrow(axes, (3.1 * place - 0.53, 0.85), (3.1 * place - 0.07, 0.85))
    several = ("5  Several proven pairs", "the smallest moment at the tilt\nis composed", "composition/composition")
    box(axes, 4.65, 2.55, several, RED)
    arrow(axes, (1.25, 1.8), (4.58, 3.1))
    arrow(axes, (7.22, 3.1), (10.5, 1.8))
    axes.text(2.3, 2.75, "mechanisms: pairs and attacks", size=8, color=GREY, ha="center")
    axes.text(9.6, 2.75, "reading: both ends,\nmeasured", size=8, color=GREY, ha="center")
    axes.set_xlim(-0.15, 12.05)
    axes.set_ylim(-0.15, 4.4)
    axes.axis("off")
    figure.tight_layout(pad=0.2)
    figure.savefig(folder / "architecture.png", dpi=150)


if __name__ == "__main__":
    main()
