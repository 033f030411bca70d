"""Pictures of what is certified: epsilon over rounds, privacy and trade-off curves, losses, methods compared.

Every function takes matplotlib axes (``ax=None`` makes new ones with pyplot) and returns the axes
it drew on, so that pictures combine: a second call on the same axes adds a curve in the next
colour.  The line is the bound on the *safe* side (upper for epsilon, delta and true-positive rates,
lower for missed detections).  The other certified bound is drawn where it can be told apart from the
line: an attack's as a dashed line that no analysis can go below, a numerical one as the edge of a band.
Elsewhere the legend says how near it is.

The colours are those of Okabe and Ito (2008), made to be told apart by colour-blind readers.

matplotlib is imported inside the functions: importing this module costs nothing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .numerics.sides import Side
from .numerics.validation import probabilities
from .storage import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

    from .accountant import Accountant
    from .comparison import Comparison
    from .composition.pld import PLD
    from .risk import AttackRisk
    from .trajectory import Trajectory

__all__ = [
    "COLOURS",
    "check_picture_path",
    "epsilon_over_rounds",
    "loss_distribution",
    "methods_compared",
    "privacy_curve",
    "save_figure",
    "trade_off_curve",
]

#: Okabe-Ito without its yellow, which is hard to see as a line on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

#: Marks the curves drawn here, so that the next one takes the next colour.
_CURVE_MARK = "pld_shuffle-curve"
_GUESS_MARK = "pld_shuffle-guess"

_BINS = 120
_LEAST_SHOWN = 1e-15
_LINE = 1 / 200  # of a picture's height: two lines that are nearer look like one
_NOTHING = 1e-290  # stands for 0 on a logarithmic axis; no mass at infinity to speak of
_SIDE_STYLES = {Side.LOWER: "--", Side.UPPER: "-"}

#: Colour and legend entry of a bound's kind in a comparison.
_KINDS = {
    "pld": (COLOURS[0], "privacy loss distribution"),
    "rdp": (COLOURS[1], "Renyi DP"),
    "composed": (COLOURS[2], "single-round bound"),
    "local": (COLOURS[3], "without shuffling"),
}


def _axes(ax: Axes | None, size: tuple[float, float] = (6.4, 4.2)) -> Axes:
    if ax is not None:
        return ax
    from matplotlib import pyplot

    new: Axes = pyplot.subplots(figsize=size, layout="constrained")[1]
    return new


def _next_colour(ax: Axes) -> str:
    drawn = sum(artist.get_gid() == _CURVE_MARK for artist in ax.get_children())
    return COLOURS[drawn % len(COLOURS)]


def _draw_bracket(
    ax: Axes, positions: Any, lower: Any, upper: Any, label: str | None, marker: str | None,
    safe: Side = Side.UPPER, *, attacked: bool = False,
) -> None:  # fmt: skip
    """The bound on the safe side as a line in the next free colour, and the other one if it can be seen.

    attacked : whether the other one is an attack's. With a `label`, which names the curve, neither is explained.
    """
    colour = _next_colour(ax)
    seen, apart = _tell_apart(ax, lower, upper), _widest(lower, upper)
    name = f"certified {safe.value} bound"
    other = f"bracket, truth inside{apart and f' (at most {apart} wide)'}"
    if attacked:
        other = "an attack: no analysis can go below"
    if label is None and not seen and apart:
        what = "an attack, below which no analysis can go,\nis" if attacked else "the truth is"
        name = f"{name};\n{what} at most {apart} away"
    ax.plot(
        positions,
        upper if safe is Side.UPPER else lower,
        color=colour,
        marker=marker,
        markersize=3.5,
        label=name if label is None else label,
        gid=_CURVE_MARK,
    )
    if seen:
        shown = other if label is None else None
        if attacked:
            ax.plot(positions, lower, color=colour, linestyle="--", linewidth=1.2, label=shown)
        # A lower bound of 0 has no place on a logarithmic axis: its band goes down to the smallest upper bound.
        down = np.where((lower > 0) | (ax.get_yscale() != "log"), lower, upper.min())
        ax.fill_between(
            positions, down, upper, color=colour, alpha=0.3, linewidth=0,
            label=None if attacked else shown,
        )  # fmt: skip
    ax.grid(True, alpha=0.3)
    ax.legend(frameon=False, fontsize="small")


def _tell_apart(ax: Axes, lower: Any, upper: Any) -> bool:
    """Whether the two ends are further apart somewhere than a line is thick."""
    if ax.get_yscale() == "log":
        if np.any((lower <= 0) & (upper > 0)):
            return True
        height = np.log(upper.max() / lower.min())
        return bool(np.log(upper / lower).max() > _LINE * height)
    return bool((upper - lower).max() > _LINE * max(upper.max(), 0.0))


def _widest(lower: Any, upper: Any) -> str:
    """The largest relative distance of the ends, for a legend; nothing where it is infinite."""
    if not np.all((lower > 0) | (upper == 0)):
        return ""
    widths = np.divide(upper - lower, lower, out=np.zeros_like(upper), where=lower > 0)
    return f"{100 * widths.max():.2g} %"


def _mark(ax: Axes, epsilon: float, delta: float, name: str = "") -> None:
    """A point of a privacy curve, with thin lines to both axes; a cross and its name if it has one."""
    thin: dict[str, Any] = {"color": "0.4", "linewidth": 0.8, "linestyle": ":", "zorder": 1.0}
    ax.plot([0.0, epsilon], [delta, delta], **thin)
    ax.plot([epsilon, epsilon], [_NOTHING, delta], **thin)
    ax.plot([epsilon], [delta], "x" if name else "o", color="black", markersize=8 if name else 5)
    ax.annotate(
        f"{name}ε = {epsilon:.4g} at δ = {delta:.3g}", (epsilon, delta), textcoords="offset points",
        xytext=(-6, -13) if name else (6, 5), ha="right" if name else "left", fontsize="small",
    )  # fmt: skip


def _say_instead(ax: Axes, text: str) -> None:
    ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center")


def epsilon_over_rounds(
    trajectory: Trajectory,
    ax: Axes | None = None,
    *,
    label: str | None = None,
    target: float | None = None,
) -> Axes:
    """Epsilon spent after each round, with its bracket.

    Parameters
    ----------
    trajectory : Trajectory
        What :func:`pld_shuffle.trajectory.epsilon_trajectory` returned: rounds, and the lower and
        upper bounds on epsilon after them.
    ax : matplotlib axes, optional
        Where to draw; new axes by default.
    label : str, optional
        Legend entry of the curve; by default both bounds are explained.
    target : float, optional
        An epsilon that is not to be exceeded, drawn as a line.

    Returns
    -------
    matplotlib.axes.Axes

    Notes
    -----
    Rounds where epsilon is infinite are left out; where it is infinite throughout, the picture
    says so.
    """
    ax = _axes(ax)
    rounds = np.asarray(trajectory.rounds)
    upper = np.asarray(trajectory.upper, dtype=float)
    lower = np.asarray(trajectory.lower, dtype=float)
    finite = np.isfinite(upper)
    marker = "o" if rounds.size <= 50 else None
    ax.set_xlabel("rounds")
    ax.set_ylabel("ε spent")
    if not finite.any():
        _say_instead(ax, "ε is infinite after every round")
        return ax
    _draw_bracket(
        ax,
        rounds[finite],
        lower[finite],
        upper[finite],
        label,
        marker,
        attacked=trajectory.attacked,
    )
    if target is not None:
        ax.axhline(
            target, color="0.4", linewidth=1.0, linestyle=":", label=f"target ε = {target:g}"
        )
        ax.legend(frameon=False, fontsize="small")
    ax.set_xlim(left=0)
    ax.set_ylim(bottom=0)
    return ax


def privacy_curve(
    accountant: Accountant,
    epsilons: ArrayLike,
    ax: Axes | None = None,
    *,
    label: str | None = None,
    marks: Sequence[tuple[float, float]] = (),
    target: tuple[float, float] | None = None,
) -> Axes:
    """Delta against epsilon (delta on a logarithmic axis), with its bracket.

    Parameters
    ----------
    accountant : Accountant
        Holds the composed rounds; it is asked for ``delta_bounds(epsilons)`` once.
    epsilons : array-like, shape (points,)
        Epsilons at which the curve is computed, in increasing order.
    ax : matplotlib axes, optional
        Where to draw; new axes by default.
    label : str, optional
        Legend entry of the curve; by default both bounds are explained.
    marks : sequence of (epsilon, delta), optional
        Points to mark, such as the deltas that were asked for and their epsilons.
    target : (epsilon, delta), optional
        What is not to be exceeded, drawn as a cross: the curve should pass below it.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError, TypeError
        As ``accountant.delta_bounds``.

    Notes
    -----
    Where delta is exactly 0 (pure differential privacy) a logarithmic axis has no place for it, so
    the curve ends there.
    """
    from .mechanisms.base import attacked

    positions = np.atleast_1d(np.asarray(epsilons, dtype=float))
    bounds = accountant.delta_bounds(positions)
    lower = np.asarray(bounds.lower, dtype=float)
    upper = np.asarray(bounds.upper, dtype=float)
    ax = _axes(ax)
    ax.set_xlabel("ε")
    ax.set_ylabel("δ(ε)")
    positive = upper > 0
    if not positive.any():
        _say_instead(ax, "δ is exactly 0 at every ε shown")
        return ax
    ax.set_yscale("log")
    _draw_bracket(
        ax, positions[positive], lower[positive], upper[positive], label, None,
        attacked=attacked(mechanism for mechanism, _ in accountant.ledger),
    )  # fmt: skip
    limits = ax.get_ylim()
    for epsilon, delta in marks:
        if delta > 0:
            _mark(ax, epsilon, delta)
    if target is not None and target[1] > 0:
        _mark(ax, *target, "target: ")
    ax.set_xlim(left=0)
    ax.set_ylim(limits)
    return ax


def trade_off_curve(
    accountant: Accountant | AttackRisk,
    ax: Axes | None = None,
    alphas: ArrayLike | None = None,
    *,
    log: bool = False,
    label: str | None = None,
) -> Axes:
    """What the best attack errs, or finds: its ROC curve, with the bracket.

    Parameters
    ----------
    accountant : Accountant or AttackRisk
        Holds the composed rounds; what the rates mean is in :mod:`pld_shuffle.risk`.
    ax : matplotlib axes, optional
        Where to draw; new axes by default.
    alphas : array-like, shape (points,), optional
        False-positive rates, in increasing order: by default 101 from 0 to 1, or from 1e-6 to 1 with
        `log`. With `log`, rates of 0 have no place and are left out.
    log : bool
        False: the trade-off curve, the false-negative rate against the false-positive rate on linear
        axes. True: the true-positive rate on logarithmic axes, which shows low false-positive rates.
    label : str, optional
        Legend entry of the curve; by default both bounds are explained.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError, TypeError
        As :meth:`pld_shuffle.risk.AttackRisk.trade_off`.

    Notes
    -----
    The dashed line is guessing without looking: TPR = FPR.
    """
    from .risk import AttackRisk

    risk = accountant if isinstance(accountant, AttackRisk) else AttackRisk(accountant)
    if alphas is None:
        alphas = np.logspace(-6.0, 0.0, 101) if log else np.linspace(0.0, 1.0, 101)
    rates = np.atleast_1d(probabilities("alphas", alphas))
    if log:
        rates = rates[rates > 0.0]
    if rates.size == 0:
        raise ValueError(f"alphas must hold a rate that can be drawn, got {alphas!r}")
    bounds = risk.true_positive_rate(rates) if log else risk.trade_off(rates)
    ax = _axes(ax)
    ax.set_xlabel("false-positive rate")
    ax.set_ylabel("true-positive rate" if log else "false-negative rate")
    if not any(line.get_gid() == _GUESS_MARK for line in ax.get_lines()):
        ends = np.array([rates[0], 1.0]) if log else np.array([0.0, 1.0])
        ax.plot(
            ends, ends if log else 1.0 - ends, color="0.55", linestyle="--", linewidth=1.0,
            label="guessing without looking", gid=_GUESS_MARK, zorder=1.0,
        )  # fmt: skip
    if log:
        ax.set_xscale("log")
        ax.set_yscale("log")
    lower, upper = np.asarray(bounds.lower), np.asarray(bounds.upper)
    _draw_bracket(ax, rates, lower, upper, label, None, Side.UPPER if log else Side.LOWER)
    return ax


def loss_distribution(
    plds: PLD | Sequence[PLD],
    ax: Axes | None = None,
    *,
    log: bool = True,
    label: str | None = None,
) -> Axes:
    """The privacy loss distribution: P-mass against loss.

    Parameters
    ----------
    plds : PLD, or a sequence of them
        For instance both sides of one mechanism, ``[m.pld(side=side) for side in Side]``.
    ax : matplotlib axes, optional
        Where to draw; new axes by default.
    log : bool
        Whether the masses are on a logarithmic axis, which shows the tails.
    label : str, optional
        Put in front of the side in the legend entries.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError, TypeError
        If `plds` is anything else, or empty.

    Notes
    -----
    Neighbouring lattice points share a bin, so that there are about 120; the axis says how wide a bin is.
    The mass at infinite loss has no place on the axis, so the legend says it. On a logarithmic axis, bins
    below 1e-15 of the largest are not shown.
    """
    from .composition.pld import PLD

    shown = [plds] if isinstance(plds, PLD) else list(plds)
    for pld in shown:
        if not isinstance(pld, PLD):
            raise TypeError(f"plds must be a PLD or a sequence of them, got {pld!r}")
    if not shown:
        raise ValueError(f"plds must not be empty, got {plds!r}")
    ax = _axes(ax)
    span = max(pld.losses[-1] for pld in shown) - min(pld.losses[0] for pld in shown)
    widths = set()
    for pld in shown:
        masses, edges = _binned(pld, span / _BINS)
        widths.add(edges[1] - edges[0])
        name = f"{pld.side.value} side" if label is None else f"{label}, {pld.side.value} side"
        if pld.infinity > _NOTHING:
            name += f", and {pld.infinity:.3g} at infinite loss"
        ax.stairs(
            masses, edges, baseline=_NOTHING if log else 0.0, color=_next_colour(ax), label=name,
            gid=_CURVE_MARK, linestyle=_SIDE_STYLES[pld.side], linewidth=1.2,
        )  # fmt: skip
    _leave_room(ax, log)
    ax.set_xlabel("privacy loss")
    alike = max(widths) <= min(widths) * (1.0 + 1e-9)
    ax.set_ylabel(f"mass per {widths.pop():.3g} of loss" if alike else "mass per bin")
    ax.grid(True, alpha=0.3)
    ax.legend(frameon=False, loc="best" if log else "upper right")
    return ax


def _binned(pld: PLD, width: float) -> tuple[Any, Any]:
    """Masses of bins of about `width` and their edges; whole lattice points, loss 0 in mid-bin."""
    points = max(1, round(width / pld.step)) | 1
    index = pld.low + np.arange(pld.masses.size) + points // 2
    first = int(index[0]) // points
    masses = np.bincount(index // points - first, weights=pld.masses)
    return masses, (first - 0.5 + np.arange(masses.size + 1)) * (points * pld.step)


def _leave_room(ax: Axes, log: bool) -> None:
    """Limits of the masses' axis for all distributions drawn on it, and a legend above."""
    from matplotlib.patches import StepPatch

    drawn = [patch.get_data()[0] for patch in ax.patches if isinstance(patch, StepPatch)]
    masses = np.concatenate(drawn)
    masses = masses[masses > 0.0]
    if masses.size == 0:
        ax.set_ylim(0.0, 1.0)
        _say_instead(ax, "all mass is at infinite loss")
        return
    peak = masses.max()
    if log:
        ax.set_yscale("log")
        ax.set_ylim(max(_LEAST_SHOWN * peak, 0.3 * masses.min()), 10.0 * peak)
    else:
        ax.set_ylim(0.0, 1.2 * peak)


def methods_compared(comparison: Comparison, ax: Axes | None = None) -> Axes:
    """A dot per valid bound on epsilon, the smallest on top, on a logarithmic axis.

    Parameters
    ----------
    comparison : Comparison
        What :func:`pld_shuffle.comparison.compare` returned.
    ax : matplotlib axes, optional
        Where to draw; new axes by default, high enough for all rows.

    Returns
    -------
    matplotlib.axes.Axes

    Notes
    -----
    The dashed line is the lower end of the tight bracket: where it is an attack's, no analysis can go
    below it. Bounds that are 0 or infinite have no place on the axis and are left out.
    """
    from .mechanisms.base import attacked

    ax = _axes(ax, (8.0, 1.2 + 0.3 * len(comparison.methods)))
    shown = [m for m in comparison.methods if 0.0 < m.epsilon < np.inf]
    ax.set_yticks(range(len(shown)), [m.name for m in shown], fontsize="small")
    ax.invert_yaxis()
    ax.set_xlabel(f"upper bound on ε at δ = {comparison.delta:g}")
    if not shown:
        _say_instead(ax, "no bound is finite")
        return ax
    for kind, (colour, legend) in _KINDS.items():
        rows = [(m.epsilon, place) for place, m in enumerate(shown) if m.kind == kind]
        if rows:
            ax.plot(*zip(*rows, strict=True), "o", color=colour, label=legend)
    for place, method in enumerate(shown):
        ax.annotate(
            f"{method.epsilon:.4g}", (method.epsilon, place), xytext=(6, 0),
            textcoords="offset points", va="center", fontsize="small",
        )  # fmt: skip
    least = float(comparison.tight.lower)
    if 0.0 < least < np.inf:
        below = "an attack: no analysis can go below"
        if not attacked([comparison.mechanism]):
            below = "exact value, from below"
        ax.axvline(
            least,
            color="0.3",
            linestyle="--",
            linewidth=1.0,
            label=f"{below} {least:.4g}",
            zorder=1,
        )
    ax.set_xscale("log")
    ax.set_xlim(0.8 * min(least or shown[0].epsilon, shown[0].epsilon), 2.5 * shown[-1].epsilon)
    ax.grid(True, alpha=0.3)
    ax.legend(frameon=False, fontsize="small", loc="upper right")
    return ax


def check_picture_path(path: str | os.PathLike[str]) -> Path:
    """The file that :func:`save_figure` would write, if it can; nothing is written here.

    Raises
    ------
    ValueError
        If the ending is of no format that matplotlib writes, if `path` is there and no regular
        file, or if its directory is not there.
    """
    from matplotlib.backend_bases import FigureCanvasBase

    target = Path(os.path.realpath(path))
    formats = FigureCanvasBase.get_supported_filetypes()
    if target.suffix.removeprefix(".").lower() not in formats:
        known = ", ".join("." + ending for ending in sorted(formats))
        raise ValueError(f"path must end in one of {known}; got {os.fspath(path)!r}")
    if target.exists() and not target.is_file():
        raise ValueError(f"path must be a regular file, got {os.fspath(path)!r}")
    if not target.parent.is_dir():
        raise ValueError(f"path must lie in a directory that exists, got {os.fspath(path)!r}")
    return target


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure to a file, in the format that the ending says, all of it or nothing.

    The picture goes into a temporary file of the same directory, which then takes the place of
    `path` in one step, so that a crash never leaves half a picture nor spoils an old one.

    Raises
    ------
    ValueError
        As :func:`check_picture_path`.
    OSError
        If the directory cannot be written.
    """
    target = check_picture_path(path)
    with replacing(target) as file:
        figure.savefig(file, format=target.suffix.removeprefix(".").lower(), dpi=150)
