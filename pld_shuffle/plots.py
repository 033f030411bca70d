"""Pictures of what is certified: epsilon over rounds, privacy curves, methods compared.

Every function takes matplotlib axes (``ax=None`` makes new ones with pyplot) and returns the axes it drew on. The line
is the upper bound, the safe side. The lower one is an attack's, dashed, or a numerical one, the edge of a band; the
legend says how near it is.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .mechanisms.base import attacked
from .numerics.sides import lower_text, upper_text
from .storage import replacing, writable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .accountant import Accountant
    from .comparison import Comparison
    from .trajectory import Trajectory

#: Okabe-Ito without its yellow, which is hard to see as a line on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

#: Points of a privacy curve, if they are not given, and characters in a line of a title, at most.
CURVE_POINTS, TITLE_WIDTH = 60, 80

_NOTHING = 1e-290  # stands for 0 on a logarithmic axis
_ATTACK = "an attack: no analysis can go below"
_LEGEND: dict[str, Any] = {"frameon": False, "fontsize": "small"}
_NOTE: dict[str, Any] = {"textcoords": "offset points", "fontsize": "small"}
_THIN: dict[str, Any] = {"color": "0.4", "linewidth": 1.0, "linestyle": ":"}

#: Colour and legend entry of a bound's kind in a comparison.
_KINDS = {
    "pld": (COLOURS[0], "privacy loss distribution"),
    "rdp": (COLOURS[1], "Renyi DP"),
    "composed": (COLOURS[2], "single-round bound"),
    "local": (COLOURS[3], "without shuffling"),
}


def epsilon_over_rounds(trajectory: Trajectory, ax: Axes | None = None) -> Axes:
    """Epsilon spent after each round, with its bracket.

    trajectory : what `trajectory.epsilon_trajectory` returned. Rounds where epsilon is infinite are left out; where it
    is infinite throughout, the picture says so.
    """
    ax = _axes(ax, "rounds", "ε spent")
    rounds, lower, upper = map(np.asarray, (trajectory.rounds, trajectory.lower, trajectory.upper))
    finite = np.isfinite(upper)
    if not finite.any():
        return _say_instead(ax, "ε is infinite after every round")
    ends, marker = (rounds[finite], lower[finite], upper[finite]), "o" if rounds.size <= 50 else None
    _draw_bracket(ax, *ends, attacked=trajectory.attacked, marker=marker)
    ax.set_xlim(left=0)
    ax.set_ylim(bottom=0)
    return ax


def privacy_curve(
    accountant: Accountant, ax: Axes | None = None, *, marks: Sequence[tuple[float, float]] = (),
    target: tuple[float, float] | None = None,
) -> Axes:  # fmt: skip
    """Delta (on a logarithmic axis) against epsilon, with its bracket.

    Epsilon runs from 0 to half as far again as the largest mark, or the target. marks : points (epsilon, delta) to
    mark, those with finite epsilon. target : the one that is not to be exceeded, drawn as a cross: the curve should
    pass below it. Raises as `Accountant.delta_bounds`. Where delta is exactly 0 (pure differential privacy) a
    logarithmic axis has no place for it: the curve ends there.
    """
    marks = [point for point in marks if point[0] < np.inf]
    targets = [] if target is None else [target]
    farthest = 1.5 * max((epsilon for epsilon, _ in [*marks, *targets]), default=0.0)
    positions = np.linspace(0.0, farthest or 1.0, CURVE_POINTS)
    lower, upper = map(np.asarray, accountant.delta_bounds(positions))
    ax = _axes(ax, "ε", "δ(ε)")
    positive = upper > 0
    if not positive.any():
        return _say_instead(ax, "δ is exactly 0 at every ε shown")
    ax.set_yscale("log")
    by_attack = attacked(mechanism for mechanism, _ in accountant.ledger)
    _draw_bracket(ax, positions[positive], lower[positive], upper[positive], attacked=by_attack)
    limits = ax.get_ylim()
    for name, points in (("", marks), ("target: ", targets)):
        for epsilon, delta in points:
            if delta <= 0:
                continue
            # Thin lines to both axes; a point that has a name is a cross.
            ax.plot([0.0, epsilon, epsilon], [delta, delta, _NOTHING], **_THIN, zorder=1.0)
            ax.plot([epsilon], [delta], "x" if name else "o", color="black", markersize=8 if name else 5)
            place: dict[str, Any] = {"xytext": (-6, -13), "ha": "right"} if name else {"xytext": (6, 5), "ha": "left"}
            ax.annotate(f"{name}ε = {epsilon:.4g} at δ = {delta:.3g}", (epsilon, delta), **place, **_NOTE)
    ax.set_xlim(left=0)
    ax.set_ylim(limits)
    return ax


def methods_compared(comparison: Comparison, ax: Axes | None = None) -> Axes:
    """A dot per valid bound on epsilon of `comparison.compare`, the smallest on top, on a logarithmic axis.

    The dashed line is the lower end of the tight bracket: where it is an attack's, no analysis can go
    below it. Bounds that are 0 or infinite have no place on the axis and are left out.
    """
    ax = _axes(ax, f"upper bound on ε at δ = {comparison.delta:g}", "", comparison)
    shown = [m for m in comparison.methods if 0.0 < m.epsilon < np.inf]
    ax.set_yticks(range(len(shown)), [m.name for m in shown], fontsize="small")
    ax.invert_yaxis()
    if not shown:
        return _say_instead(ax, "no bound is finite")
    for kind, (colour, legend) in _KINDS.items():
        rows = [(m.epsilon, place) for place, m in enumerate(shown) if m.kind == kind]
        if rows:
            ax.plot(*zip(*rows, strict=True), "o", color=colour, label=legend)
    for place, method in enumerate(shown):
        ax.annotate(upper_text(method.epsilon), (method.epsilon, place), xytext=(6, 0), va="center", **_NOTE)
    least = float(comparison.tight.lower)
    if 0.0 < least < np.inf:
        below = _ATTACK if attacked([comparison.mechanism]) else "exact value, from below"
        name = f"{below} {lower_text(least)}"
        ax.axvline(least, color="0.3", linestyle="--", linewidth=1.0, label=name, zorder=1)
    ax.set_xscale("log")
    ax.set_xlim(0.8 * min(least or shown[0].epsilon, shown[0].epsilon), 5.0 * shown[-1].epsilon)
    ax.grid(True, alpha=0.3)
    ax.legend(**_LEGEND, loc="upper right")
    return ax


def _axes(ax: Axes | None, x: str, y: str, drawn: Any = None) -> Axes:
    """The axes, or new ones, with what is on them."""
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.subplots(figsize=_size(drawn), layout="constrained")[1]
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    return ax


def _size(drawn: Any) -> tuple[float, float]:
    """Inches; a comparison has a line for every method."""
    methods = getattr(drawn, "methods", None)
    return (6.4, 4.2) if methods is None else (8.0, 1.4 + 0.3 * len(methods))


def _say_instead(ax: Axes, text: str) -> Axes:
    ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center")
    return ax


def _draw_bracket(
    ax: Axes, positions: Any, lower: Any, upper: Any, *, attacked: bool, marker: str | None = None
) -> None:
    """The upper bound as a line; the lower one dashed if it is an attack's, and the edge of a band."""
    colour, near = COLOURS[0], ""
    if np.all((lower > 0) | (upper == 0)):
        widths = np.divide(upper - lower, lower, out=np.zeros_like(upper), where=lower > 0)
        near = f" (at most {100 * widths.max():.2g} % away)"
    ax.plot(positions, upper, color=colour, marker=marker, markersize=3.5, label="certified upper bound")
    if attacked:
        ax.plot(positions, lower, color=colour, linestyle="--", linewidth=1.2, label=f"{_ATTACK}{near}")
    # A lower bound of 0 has no place on a logarithmic axis: its band goes down to the smallest upper bound.
    down = np.where((lower > 0) | (ax.get_yscale() != "log"), lower, upper.min())
    band = None if attacked else f"bracket, truth inside{near}"
    ax.fill_between(positions, down, upper, color=colour, alpha=0.3, linewidth=0, label=band)
    ax.grid(True, alpha=0.3)
    ax.legend(**_LEGEND)


def check_picture_path(path: str | os.PathLike[str]) -> Path:
    """The file that `draw` would write, if it can; nothing is written here.

    Raises ValueError if the ending is of no format that matplotlib writes, and as `storage.writable`.
    """
    from matplotlib.backend_bases import FigureCanvasBase

    formats = sorted(FigureCanvasBase.get_supported_filetypes())
    if Path(path).suffix.removeprefix(".").lower() not in formats:
        endings = ", ".join("." + ending for ending in formats)
        raise ValueError(f"path must end in one of {endings}; got {os.fspath(path)!r}")
    return writable(path)


def draw(path: str | os.PathLike[str], title: str, picture: Callable[..., Axes], *what: Any, **options: Any) -> None:
    """Write one picture of this module to a file; no window system and no pyplot state.

    In the format that the ending says, all of it or nothing. Raises ValueError as `check_picture_path`, OSError.
    """
    target = check_picture_path(path)
    from matplotlib.figure import Figure

    figure = Figure(figsize=_size(what[0]), layout="constrained")
    picture(*what, ax=figure.add_subplot(), **options)
    figure.suptitle(textwrap.fill(title, TITLE_WIDTH), fontsize="small")  # as wide as the picture
    with replacing(target) as file:
        figure.savefig(file, format=target.suffix.removeprefix(".").lower(), dpi=150)
