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

from pld_shuffle import Accountant, ShuffledLDP, ShuffledRR, Side  # noqa: E402
from pld_shuffle.composition.pld import PLD  # noqa: E402
from pld_shuffle.numerics.sides import Bounds  # noqa: E402
from pld_shuffle.plots import (  # noqa: E402
    COLOURS,
    check_picture_path,
    epsilon_over_rounds,
    loss_distribution,
    methods_compared,
    privacy_curve,
    save_figure,
    trade_off_curve,
)
from pld_shuffle.risk import AttackRisk  # noqa: E402

TRAJECTORY = SimpleNamespace(
    rounds=np.array([1, 2, 3]),
    lower=np.array([0.1, 0.15, 0.2]),
    upper=np.array([0.11, 0.16, 0.21]),
    attacked=False,
)


class FixedCurve:
    """Stands for an accountant: hands out the bounds it was made with."""

    ledger = ()

    def __init__(self, lower, upper):
        self.bounds = Bounds(np.array(lower), np.array(upper))

    def delta_bounds(self, epsilons):
        assert np.shape(epsilons) == self.bounds.upper.shape
        return self.bounds


class FixedRisk(AttackRisk):
    """Hands out curves a little apart from each other."""

    def __init__(self):
        super().__init__(Accountant())

    def trade_off(self, alpha):
        return Bounds(0.99 * (1.0 - np.sqrt(alpha)), 1.0 - np.sqrt(alpha))

    def true_positive_rate(self, fpr):
        return Bounds(0.99 * np.sqrt(fpr), np.sqrt(fpr))


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
    assert "rounds" in ax.get_xlabel() and "ε" in ax.get_ylabel() and len(legend(ax)) == 2
    assert epsilon_over_rounds(TRAJECTORY) is pyplot.gca()  # new axes by default


def test_a_second_curve_takes_the_next_colour(ax):
    epsilon_over_rounds(TRAJECTORY, ax, label="one")
    ax.axhline(0.2, color="grey")
    epsilon_over_rounds(TRAJECTORY, ax, label="two")
    first, _, second = ax.get_lines()
    assert [first.get_color(), second.get_color()] == list(COLOURS[:2])
    assert legend(ax) == ["one", "two"]


def test_infinite_epsilons_are_left_out(ax):
    """Where there is nothing else, the picture says so."""
    ends = {"rounds": [1, 2], "lower": np.array([0.1, np.inf]), "upper": np.array([0.2, np.inf])}
    epsilon_over_rounds(trajectory(**ends), ax)
    assert list(ax.get_lines()[0].get_xdata()) == [1]
    epsilon_over_rounds(trajectory(rounds=[1], lower=[np.inf], upper=[np.inf]), ax)
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


def test_trade_off_curve_draws_the_lower_bound_and_the_guess(ax):
    alphas = [0.0, 0.1, 0.5, 1.0]
    assert trade_off_curve(FixedRisk(), ax, alphas) is ax
    guess, curve = ax.get_lines()
    assert np.array_equal(guess.get_ydata(), [1.0, 0.0])
    assert np.array_equal(curve.get_xdata(), alphas)
    assert np.array_equal(curve.get_ydata(), FixedRisk().trade_off(alphas).lower)
    heights = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (0.0, 1.0)
    assert "lower" in curve.get_label()
    assert curve.get_color() == COLOURS[0]
    assert len(legend(ax)) == 3


def test_low_false_positive_rates_on_logarithmic_axes(ax):
    alphas = [0.0, 1e-9, 1e-3, 1.0]
    trade_off_curve(FixedRisk(), ax, alphas, log=True, label="one")
    trade_off_curve(FixedRisk(), ax, alphas, log=True, label="two")
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    guess, first, second = ax.get_lines()  # guessing is drawn once
    assert np.array_equal(guess.get_xdata(), guess.get_ydata())
    assert np.array_equal(first.get_xdata(), alphas[1:])  # a rate of 0 has no place on the axis
    assert np.array_equal(first.get_ydata(), np.sqrt(alphas[1:]))
    assert [first.get_color(), second.get_color()] == list(COLOURS[:2])


def test_trade_off_curve_at_default_rates(ax):
    accountant = Accountant().compose(ShuffledRR(k=2, n=3, gamma=0.5))
    trade_off_curve(accountant, ax)
    rates, missed = ax.get_lines()[-1].get_data()
    assert (rates[0], rates[-1], missed[-1]) == (0.0, 1.0, 0.0)
    assert missed[0] < 1.0  # infinite losses: some targets are found without any false alarm
    assert np.all(np.diff(missed) <= 0.0)


@pytest.mark.parametrize("alphas", [[], [2.0], [float("nan")]])
def test_rates_that_cannot_be_drawn(ax, alphas):
    with pytest.raises(ValueError, match="alphas"):
        trade_off_curve(Accountant(), ax, alphas)
    with pytest.raises(ValueError, match="alphas"):
        trade_off_curve(Accountant(), ax, [0.0], log=True)


@pytest.mark.parametrize("log", [True, False])
def test_loss_distribution_keeps_all_mass(ax, log):
    """Bins add up to the masses of the lattice, and are centred on loss 0."""
    pld = ShuffledRR(k=4, n=100, gamma=0.25).pld()
    assert loss_distribution(pld, ax, log=log) is ax
    (stairs,) = ax.patches
    masses, edges, _ = stairs.get_data()
    assert masses.sum() == pytest.approx(pld.masses.sum(), rel=1e-12)
    assert masses.size < 150
    width = edges[1] - edges[0]
    assert np.allclose(edges / width - 0.5, np.round(edges / width - 0.5), atol=1e-9)
    centres = 0.5 * (edges[1:] + edges[:-1])
    mean = float(masses @ centres)
    assert mean == pytest.approx(float(pld.masses @ pld.losses), abs=0.6 * width)
    assert f"{pld.infinity:.3g} at infinite loss" in legend(ax)[0]
    assert ax.get_yscale() == ("log" if log else "linear")


def test_both_sides_of_a_loss_distribution(ax):
    mechanism = ShuffledLDP(eps0=1.0, n=2)
    loss_distribution([mechanism.pld(side=side) for side in Side], ax, label="pair")
    lower, upper = ax.patches
    assert [lower.get_linestyle(), upper.get_linestyle()] == ["--", "-"]
    assert legend(ax) == ["pair, lower side", "pair, upper side"]  # no mass at infinity to speak of
    assert "loss" in ax.get_xlabel()
    assert "mass per" in ax.get_ylabel()


def test_loss_distribution_of_a_single_point(ax):
    loss_distribution(ShuffledLDP(eps0=1.0, n=2).pld(step=5.0, side=Side.LOWER), ax)
    assert ax.patches[0].get_data()[0].sum() == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(("plds", "error"), [([], ValueError), ([0.5], TypeError)])
def test_loss_distribution_of_something_else(ax, plds, error):
    with pytest.raises(error, match="plds"):
        loss_distribution(plds, ax)


def test_loss_distribution_without_finite_mass(ax):
    """All mass at infinite loss: nothing to draw, and the legend says so."""
    nothing = PLD.build(
        np.zeros(1), 0, step=0.1, side=Side.UPPER, infinity=1.0, max_loss=np.inf, slack=0.0
    )
    loss_distribution(nothing, ax)
    assert "1 at infinite loss" in legend(ax)[0]


def test_brackets_are_drawn_where_they_can_be_seen(ax):
    """A bracket thinner than the line is said in the legend only."""
    thin = TRAJECTORY.upper * (1 - 1e-4)
    epsilon_over_rounds(trajectory(lower=thin), ax)
    assert not ax.collections
    assert legend(ax) == ["certified upper bound;\nthe truth is at most 0.01 % away"]


def test_an_attack_is_a_dashed_line_that_no_analysis_can_go_below(ax):
    epsilon_over_rounds(trajectory(attacked=True), ax, target=0.3)
    analysis, attack, target = ax.get_lines()
    assert attack.get_linestyle() == "--"
    assert list(attack.get_ydata()) == list(TRAJECTORY.lower)
    assert list(analysis.get_ydata()) == list(TRAJECTORY.upper)
    assert target.get_ydata()[0] == 0.3
    assert legend(ax)[1:] == ["an attack: no analysis can go below", "target ε = 0.3"]


def test_marks_and_target_of_a_privacy_curve(ax):
    curve = FixedCurve([1e-3, 1e-5, 0.0], [2e-3, 2e-5, 2e-7])
    privacy_curve(curve, [0.1, 0.2, 0.3], ax, marks=[(0.2, 2e-5), (0.4, 0.0)], target=(0.25, 1e-5))
    assert [text.get_text() for text in ax.texts] == [
        "ε = 0.2 at δ = 2e-05",
        "target: ε = 0.25 at δ = 1e-05",
    ]


def test_methods_compared_draws_a_dot_per_finite_bound(ax):
    methods = [
        SimpleNamespace(name=name, kind=kind, epsilon=epsilon)
        for name, kind, epsilon in [
            ("a", "pld", 0.5), ("b", "rdp", 0.6), ("c", "rdp", 0.9), ("d", "local", np.inf),
        ]
    ]  # fmt: skip
    found = SimpleNamespace(
        methods=methods, delta=1e-6, tight=Bounds(0.4, 0.5), mechanism=ShuffledLDP(4.0, 10_000)
    )
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
def test_files_are_written_whole_or_not_at_all(tmp_path, ax, ending):
    """A failure keeps the old file and leaves nothing; a link is followed."""
    epsilon_over_rounds(TRAJECTORY, ax)
    real, link = tmp_path / f"real.{ending}", tmp_path / f"link.{ending}"
    real.write_text("old")
    link.symlink_to(real)
    save, ax.figure.savefig = ax.figure.savefig, lambda file, **_: (file.write(b"half"), 1 / 0)
    with pytest.raises(ZeroDivisionError):
        save_figure(ax.figure, link)
    assert real.read_text() == "old"
    ax.figure.savefig = save
    save_figure(ax.figure, link)
    assert link.is_symlink() and real.stat().st_size > 1000
    assert sorted(tmp_path.iterdir()) == [link, real]


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


@pytest.mark.parametrize("name", ["spent", "spent.csv", "none/spent.png", "directory.png"])
def test_paths_that_cannot_be_written(tmp_path, name):
    (tmp_path / "directory.png").mkdir()
    with pytest.raises(ValueError, match=name):
        check_picture_path(tmp_path / name)


def test_importing_does_not_import_matplotlib():
    code = "import sys, pld_shuffle.plots; sys.exit('matplotlib' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
