"""Pictures: epsilon over the rounds, the privacy curve; both with the bracket that is certified.

Every function takes matplotlib axes (``ax=None`` makes new ones with pyplot) and returns the axes
it drew on, so that pictures combine: a second call on the same axes adds a curve in the next
colour.  The line is the certified *upper* bound; the shaded band below it reaches down to the
certified *lower* bound, the truth lies in between.  At the default accuracy the band is thinner
than the line, which is the point.

The colours are those of Okabe and Ito (2008), made to be told apart by colour-blind readers.

matplotlib is imported inside the functions: importing this module costs nothing.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

    from pld_shuffle.accountant import Accountant
    from pld_shuffle.trajectory import Trajectory

__all__ = ["COLOURS", "check_picture_path", "epsilon_over_rounds", "privacy_curve", "save_figure"]

#: Okabe-Ito without its yellow, which is hard to see as a line on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

#: Marks the curves drawn here, so that the next one takes the next colour.
_CURVE_MARK = "pld_shuffle-curve"


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    from matplotlib import pyplot

    new: Axes = pyplot.subplots(figsize=(6.4, 4.2), layout="constrained")[1]
    return new


def _draw_bracket(
    ax: Axes, positions: Any, lower: Any, upper: Any, label: str | None, marker: str | None
) -> None:
    """The upper bound as a line and the bracket as a band, in the next free colour."""
    drawn = sum(line.get_gid() == _CURVE_MARK for line in ax.get_lines())
    colour = COLOURS[drawn % len(COLOURS)]
    ax.plot(
        positions,
        upper,
        color=colour,
        marker=marker,
        markersize=3.5,
        label="certified upper bound" if label is None else label,
        gid=_CURVE_MARK,
    )
    ax.fill_between(
        positions,
        lower,
        upper,
        color=colour,
        alpha=0.3,
        linewidth=0,
        label=f"bracket, truth inside{_widest(lower, upper)}" if label is None else None,
    )
    ax.grid(True, alpha=0.3)
    ax.legend(frameon=False)


def _widest(lower: Any, upper: Any) -> str:
    """The largest relative width of the brackets, for a legend; nothing where it is infinite."""
    if not np.all((lower > 0) | (upper == 0)):
        return ""
    widths = np.divide(upper - lower, lower, out=np.zeros_like(upper), where=lower > 0)
    return f" (at most {100 * widths.max():.2g}% wide)"


def _say_instead(ax: Axes, text: str) -> None:
    ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center")


def epsilon_over_rounds(
    trajectory: Trajectory, ax: Axes | None = None, *, label: str | None = None
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
        Legend entry of the curve; by default line and band are explained.

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
    _draw_bracket(ax, rounds[finite], lower[finite], upper[finite], label, marker)
    ax.set_xlim(left=0)
    ax.set_ylim(bottom=0)
    return ax


def privacy_curve(
    accountant: Accountant,
    epsilons: ArrayLike,
    ax: Axes | None = None,
    *,
    label: str | None = None,
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
        Legend entry of the curve; by default line and band are explained.

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
    # A lower bound of 0 below a positive upper bound is drawn down to the smallest upper bound.
    floor = float(upper[positive].min())
    shown = np.where(lower > 0, lower, np.minimum(floor, upper))
    _draw_bracket(ax, positions[positive], shown[positive], upper[positive], label, None)
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
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()
    handle, temporary = tempfile.mkstemp(prefix=f".{target.stem}-", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            figure.savefig(file, format=target.suffix.removeprefix(".").lower(), dpi=150)
        os.chmod(temporary, mode)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask() -> int:
    umask = os.umask(0o022)
    os.umask(umask)
    return umask
