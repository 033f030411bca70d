"""Pictures: what is drawn, on whose axes, and that files appear whole or not at all."""

from __future__ import annotations

import os
import stat
from types import SimpleNamespace

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

from pld_shuffle import ShuffledLDP, plots  # noqa: E402
from pld_shuffle.numerics.sides import Bounds  # noqa: E402
from pld_shuffle.plots import (  # noqa: E402
    check_picture_path,
    draw,
    epsilon_over_rounds,
    methods_compared,
    privacy_curve,
)

TRAJECTORY = SimpleNamespace(
    rounds=np.array([1, 2, 3]), lower=np.array([0.1, 0.15, 0.2]), upper=np.array([0.11, 0.16, 0.21]), attacked=False
)


class FixedCurve:
    """Stands for an accountant: hands out the bounds it was made with."""

    ledger = ()

    def __init__(self, lower, upper):
        self.bounds = Bounds(np.array(lower), np.array(upper))

    def delta_bounds(self, epsilons):
        assert np.shape(epsilons) == self.bounds.upper.shape
        return self.bounds


def trajectory(**other):
    return SimpleNamespace(**{**vars(TRAJECTORY), **other})


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


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
    assert np.array_equal(line.get_data(), (TRAJECTORY.rounds, TRAJECTORY.upper))
    (band,) = ax.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (0.1, 0.21)
    assert (
        "rounds" in ax.get_xlabel()
        and "ε" in ax.get_ylabel()
        and legend(ax)[1] == "bracket, truth inside (at most 10 % away)"
    )
    assert epsilon_over_rounds(TRAJECTORY) is pyplot.gca()  # new axes by default


def test_what_is_infinite_or_zero_is_left_out(ax, monkeypatch):
    """Where there is nothing else, the picture says so."""
    ends = {"rounds": [1, 2], "lower": np.array([0.1, np.inf]), "upper": np.array([0.2, np.inf])}
    epsilon_over_rounds(trajectory(**ends), ax)
    assert list(ax.get_lines()[0].get_xdata()) == [1]
    epsilon_over_rounds(trajectory(rounds=[1], lower=[np.inf], upper=[np.inf]), ax)
    assert "infinite" in ax.texts[0].get_text()
    monkeypatch.setattr(plots, "CURVE_POINTS", 1)
    zero = privacy_curve(FixedCurve([0.0], [0.0]), Figure().add_subplot())
    assert "exactly 0" in zero.texts[0].get_text()


def test_privacy_curve_on_a_logarithmic_axis(ax, monkeypatch):
    monkeypatch.setattr(plots, "CURVE_POINTS", 3)
    accountant = FixedCurve([1e-2, 0.0, 0.0], [2e-2, 1e-90, 0.0])
    assert privacy_curve(accountant, ax) is ax
    assert ax.get_yscale() == "log"
    (line,) = ax.get_lines()  # delta = 0 has no place on the axis
    assert np.array_equal(line.get_data(), ([0.0, 0.5], [2e-2, 1e-90]))
    low, high = ax.get_ylim()
    assert 0 < low <= 1e-90 and high >= 2e-2
    curve = FixedCurve([1e-3, 1e-5, 0.0], [2e-3, 2e-5, 2e-7])
    privacy_curve(curve, ax, marks=[(0.2, 2e-5), (0.4, 0.0)], target=(0.25, 1e-5))
    assert [text.get_text() for text in ax.texts] == ["ε = 0.2 at δ = 2e-05", "target: ε = 0.25 at δ = 1e-05"]


def test_an_attack_is_a_dashed_line_that_no_analysis_can_go_below(ax):
    epsilon_over_rounds(trajectory(attacked=True), ax)
    analysis, attack = ax.get_lines()
    assert attack.get_linestyle() == "--"
    assert list(attack.get_ydata()) == list(TRAJECTORY.lower)
    assert list(analysis.get_ydata()) == list(TRAJECTORY.upper)
    assert legend(ax) == ["certified upper bound", "an attack: no analysis can go below (at most 10 % away)"]


def test_methods_compared_draws_a_dot_per_finite_bound(ax):
    methods = [
        SimpleNamespace(name=name, kind=kind, epsilon=epsilon)
        for name, kind, epsilon in [
            ("a", "pld", 0.5), ("b", "rdp", 0.6), ("c", "rdp", 0.9), ("d", "local", np.inf),
        ]
    ]  # fmt: skip
    found = SimpleNamespace(methods=methods, delta=1e-6, tight=Bounds(0.4, 0.5), mechanism=ShuffledLDP(4.0, 10_000))
    assert methods_compared(found, ax) is ax
    pld, renyi, attack = ax.get_lines()
    assert list(pld.get_xdata()) == [0.5]
    assert list(renyi.get_xdata()) == [0.6, 0.9]
    assert attack.get_xdata()[0] == 0.4
    assert attack.get_label() == "an attack: no analysis can go below 0.4"
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b", "c"]
    assert len(legend(ax)) == 3
    nothing = SimpleNamespace(**{**vars(found), "methods": methods[3:]})
    methods_compared(nothing, Figure().add_subplot())


@pytest.mark.parametrize("ending", ["png", "pdf", "svg", "PNG"])
def test_files_are_written_whole_or_not_at_all(tmp_path, monkeypatch, ending):
    """A failure keeps the old file and leaves nothing; a link is followed."""
    real, link = tmp_path / f"real.{ending}", tmp_path / f"link.{ending}"
    real.write_text("old")
    link.symlink_to(real)
    with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError):
        patch.setattr(Figure, "savefig", lambda self, file, **_: (file.write(b"half"), 1 / 0))
        draw(link, "", epsilon_over_rounds, TRAJECTORY)
    assert real.read_text() == "old"
    draw(link, "", epsilon_over_rounds, TRAJECTORY)
    assert link.is_symlink() and real.stat().st_size > 1000
    assert sorted(tmp_path.iterdir()) == [link, real]


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_permissions_follow_the_umask_or_the_old_file(tmp_path):
    umask = os.umask(0o027)
    try:
        draw(tmp_path / "new.png", "", epsilon_over_rounds, TRAJECTORY)
    finally:
        os.umask(umask)
    assert stat.S_IMODE((tmp_path / "new.png").stat().st_mode) == 0o640
    (tmp_path / "new.png").chmod(0o604)
    draw(tmp_path / "new.png", "", epsilon_over_rounds, TRAJECTORY)
    assert stat.S_IMODE((tmp_path / "new.png").stat().st_mode) == 0o604


@pytest.mark.parametrize("name", ["spent", "spent.csv", "none/spent.png", "directory.png"])
def test_paths_that_cannot_be_written(tmp_path, name):
    (tmp_path / "directory.png").mkdir()
    with pytest.raises(ValueError, match=name):
        check_picture_path(tmp_path / name)
