"""Pictures: what is drawn, on whose axes, and that files appear whole or not at all."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

from pld_shuffle.bracket import Bounds  # noqa: E402
from pld_shuffle.plots import (  # noqa: E402
    COLOURS,
    check_picture_path,
    epsilon_over_rounds,
    privacy_curve,
    save_figure,
)

TRAJECTORY = SimpleNamespace(
    rounds=np.array([1, 2, 3]),
    lower=np.array([0.1, 0.15, 0.2]),
    upper=np.array([0.11, 0.16, 0.21]),
)


class FixedCurve:
    """Stands for an accountant: hands out the bounds it was made with."""

    def __init__(self, lower, upper):
        self.bounds = Bounds(np.array(lower), np.array(upper))

    def delta_bounds(self, epsilons):
        assert np.shape(epsilons) == self.bounds.upper.shape
        return self.bounds


@pytest.fixture(autouse=True)
def _no_figures_left():
    yield
    pyplot.close("all")


@pytest.fixture
def ax():
    return Figure().add_subplot()


def test_epsilon_over_rounds_draws_upper_line_and_bracket(ax):
    assert epsilon_over_rounds(TRAJECTORY, ax) is ax
    (line,) = ax.get_lines()
    assert np.array_equal(line.get_xdata(), TRAJECTORY.rounds)
    assert np.array_equal(line.get_ydata(), TRAJECTORY.upper)
    (band,) = ax.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert heights.min() == 0.1
    assert heights.max() == 0.21
    assert "rounds" in ax.get_xlabel()
    assert "ε" in ax.get_ylabel()
    assert len(ax.get_legend().get_texts()) == 2


def test_new_axes_by_default():
    assert epsilon_over_rounds(TRAJECTORY) is pyplot.gca()


def test_a_second_curve_takes_the_next_colour(ax):
    epsilon_over_rounds(TRAJECTORY, ax, label="one")
    ax.axhline(0.2, color="grey")
    epsilon_over_rounds(TRAJECTORY, ax, label="two")
    first, _, second = ax.get_lines()
    assert [first.get_color(), second.get_color()] == list(COLOURS[:2])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["one", "two"]


def test_infinite_epsilons_are_left_out(ax):
    trajectory = SimpleNamespace(
        rounds=[1, 2], lower=np.array([0.1, np.inf]), upper=np.array([0.2, np.inf])
    )
    epsilon_over_rounds(trajectory, ax)
    assert list(ax.get_lines()[0].get_xdata()) == [1]


def test_infinite_throughout_is_said(ax):
    trajectory = SimpleNamespace(rounds=[1], lower=[np.inf], upper=[np.inf])
    epsilon_over_rounds(trajectory, ax)
    assert "infinite" in ax.texts[0].get_text()


def test_privacy_curve_on_a_logarithmic_axis(ax):
    accountant = FixedCurve([1e-2, 0.0, 0.0], [2e-2, 1e-90, 0.0])
    assert privacy_curve(accountant, [0.0, 1.0, 2.0], ax) is ax
    assert ax.get_yscale() == "log"
    (line,) = ax.get_lines()
    assert list(line.get_xdata()) == [0.0, 1.0]  # delta = 0 has no place on the axis
    assert list(line.get_ydata()) == [2e-2, 1e-90]
    low, high = ax.get_ylim()
    assert 0 < low <= 1e-90
    assert high >= 2e-2


def test_privacy_curve_that_is_zero(ax):
    privacy_curve(FixedCurve([0.0], [0.0]), [3.0], ax)
    assert "exactly 0" in ax.texts[0].get_text()


@pytest.mark.parametrize("ending", ["png", "pdf", "svg", "PNG"])
def test_files_are_written_whole(tmp_path, ax, ending):
    epsilon_over_rounds(TRAJECTORY, ax)
    path = tmp_path / f"spent.{ending}"
    save_figure(ax.figure, path)
    assert path.stat().st_size > 1000
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_keeps_the_old_file_and_leaves_nothing(tmp_path, ax):
    path = tmp_path / "spent.png"
    path.write_text("old")
    broken = ax.figure
    broken.savefig = lambda file, **_: (file.write(b"half"), 1 / 0)
    with pytest.raises(ZeroDivisionError):
        save_figure(broken, path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_permissions_follow_the_umask_or_the_old_file(tmp_path, ax):
    umask = os.umask(0o027)
    try:
        save_figure(ax.figure, tmp_path / "new.png")
    finally:
        os.umask(umask)
    assert stat.S_IMODE((tmp_path / "new.png").stat().st_mode) == 0o640
    (tmp_path / "new.png").chmod(0o604)
    save_figure(ax.figure, tmp_path / "new.png")
    assert stat.S_IMODE((tmp_path / "new.png").stat().st_mode) == 0o604


def test_a_link_is_followed(tmp_path, ax):
    (tmp_path / "real.png").write_text("old")
    (tmp_path / "link.png").symlink_to(tmp_path / "real.png")
    save_figure(ax.figure, tmp_path / "link.png")
    assert (tmp_path / "link.png").is_symlink()
    assert (tmp_path / "real.png").stat().st_size > 1000


@pytest.mark.parametrize("name", ["spent", "spent.csv", "none/spent.png", "directory.png"])
def test_paths_that_cannot_be_written(tmp_path, name):
    (tmp_path / "directory.png").mkdir()
    with pytest.raises(ValueError, match=name):
        check_picture_path(tmp_path / name)


def test_importing_does_not_import_matplotlib():
    code = "import sys, pld_shuffle.plots; sys.exit('matplotlib' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
