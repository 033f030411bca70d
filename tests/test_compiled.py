"""Compiled kernels where nothing may be written: one warning, and the same answers. Interpreted ones are the same."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pld_shuffle
from pld_shuffle import Accountant, ShuffledLDP
from pld_shuffle.numerics.compiled import Gradual, gradual
from pld_shuffle.pairs import bit_kernels, contour_kernels, swap_kernels
from pld_shuffle.pairs.swap import NOBODY, _hexagon

ASKED = (
    "from pld_shuffle.numerics import compiled; compiled.LOADING = compiled.COMPILING = -1;"  # none interpreted
    "from pld_shuffle import Accountant, ShuffledLDP;"
    "batch = ShuffledLDP(eps0=2.0, n=500, analysis='stronger-clones');"
    "print(*Accountant().compose(batch, 3).epsilon_bounds(1e-6))"
)
REMARK = "compiled kernels cannot be kept beside the package"


def run(package: Path, home: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """A new process with that copy of the package and that home, and its own folder of temporary files."""
    temporary = package.parent / "tmp"
    temporary.mkdir(exist_ok=True)
    inherited = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "PYTHONPATH")}
    places = {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"), "TMPDIR": str(temporary)}
    # Of the interpreter's path only what this process has beyond the package's own parent.
    path = os.pathsep.join([str(package.parent), *filter(None, sys.path[1:])])
    return subprocess.run(
        [sys.executable, "-B", "-W", "always", "-c", ASKED],
        env=inherited | places | {"PYTHONPATH": path} | more,
        capture_output=True, text=True, check=True, cwd=temporary,
    )  # fmt: skip


def expected() -> list[float]:
    batch = ShuffledLDP(eps0=2.0, n=500, analysis="stronger-clones")
    return list(Accountant().compose(batch, 3).epsilon_bounds(1e-6))


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package without any cache."""
    source = Path(pld_shuffle.__file__).parent
    return Path(
        shutil.copytree(
            source, tmp_path / "site" / "pld_shuffle", ignore=lambda *_: {"__pycache__"}
        )
    )


def folders(package: Path) -> list[Path]:
    return [package, *(path for path in package.rglob("*") if path.is_dir())]


@pytest.mark.parametrize(
    "named",
    [pytest.param(False, id="home"), pytest.param(True, id="name", marks=pytest.mark.slow)],
)
def test_no_place_for_compiled_kernels(named: bool, package: Path, tmp_path: Path) -> None:
    """Neither beside the source, nor at home, nor where NUMBA_CACHE_DIR says: files stand where folders should.

    Permissions would not stop an administrator, who often runs these tests. The very same error comes of them.
    """
    for folder in folders(package):
        (folder / "__pycache__").write_text("in the way")
    blocked = tmp_path / "blocked"
    blocked.write_text("in the way")
    more = {"NUMBA_CACHE_DIR": str(blocked / "kernels")} if named else {}
    found = run(package, blocked, **more)
    assert [float(word) for word in found.stdout.split()] == pytest.approx(expected(), rel=1e-12)
    assert found.stderr.count(REMARK) == 1
    assert any((tmp_path / "site" / "tmp").rglob("*.nbi"))


def test_a_read_only_container(package: Path, tmp_path: Path) -> None:
    """The same by permissions."""
    if os.name != "posix" or os.geteuid() == 0:
        pytest.skip("permissions do not stop an administrator")
    home = tmp_path / "home"
    home.mkdir()
    (package.parent / "tmp").mkdir()
    closed = [*folders(package), home]
    for folder in closed:
        folder.chmod(0o555)
    try:
        found = run(package, home)
    finally:
        for folder in closed:
            folder.chmod(0o755)
    assert [float(word) for word in found.stdout.split()] == pytest.approx(expected(), rel=1e-12)
    assert found.stderr.count(REMARK) == 1


@pytest.mark.slow
def test_a_named_folder_is_used_without_a_word(package: Path, tmp_path: Path) -> None:
    kernels = tmp_path / "kernels"
    found = run(package, tmp_path, NUMBA_CACHE_DIR=str(kernels))
    assert [float(word) for word in found.stdout.split()] == pytest.approx(expected(), rel=1e-12)
    assert REMARK not in found.stderr and any(kernels.rglob("*.nbi"))


# -- interpreted at first --------------------------------------------------------------------------

GROWTH = np.expm1([0.0, 0.01, 0.05, 0.2, 0.9])


@pytest.mark.parametrize("n", [64.0, 1001.0, 1e9])
@pytest.mark.parametrize("eps0", [0.1, 1.0, 4.0])
def test_the_swap_profile_is_the_same_interpreted_and_compiled(eps0: float, n: float) -> None:
    types = _hexagon(np.expm1(eps0), 0.0)
    known = [n, *types, NOBODY, 3, 0.98 * np.exp(-eps0), 1.0, 2.0**-50, GROWTH]
    agree(swap_kernels.profile, known, 1)


@pytest.mark.parametrize("n", [4, 1001, 10**8])
def test_the_blanket_profile_is_the_same_interpreted_and_compiled(n: int) -> None:
    laws = np.array([[0.5, 0.3, 0.2], [0.3, 0.5, 0.2], [0.2, 0.2, 0.1]])
    agree(contour_kernels.profile, [n, *laws, 0.5, GROWTH, 1e-4, 1e-14], 3)


@pytest.mark.parametrize("bits", [1.0, 3.0])
def test_the_bits_profile_is_the_same_interpreted_and_compiled(bits: float) -> None:
    known = [GROWTH, bits, 0.75, 0.25, 0.25, 0.75, 0.5, 999.0, 0.0, 999.0, 1e-6, 40]
    agree(bit_kernels.all_growths, known, 2)


def agree(kernel: object, known: list[object], outputs: int) -> None:
    assert isinstance(kernel, Gradual)
    found = []
    for way in (kernel.compiled, lambda *arguments: kernel._tried(arguments, arguments)):
        out = [np.full(GROWTH.size, np.nan) for _ in range(outputs)]
        way(*known, *out)
        assert np.all(np.isfinite(out))
        found.append(np.array(out[:2]))  # not how many nodes were looked at
    assert found[1] == pytest.approx(found[0], rel=1e-12, abs=1e-300)


def test_what_python_refuses_is_compiled() -> None:
    """And what was filled until then is forgotten."""

    @gradual(lambda *arguments: 0.0, error_model="numpy")
    def reciprocals(x, total, out):  # type: ignore[no-untyped-def]
        for i in range(x.shape[0]):
            total[0] += x[i]
            out[i] = 1.0 / float(x[i])

    total, out = np.zeros(1), np.empty(3)
    reciprocals(np.array([2.0, 0.0, 4.0]), total, out)
    assert total[0] == 6.0 and list(out) == [0.5, np.inf, 0.25]


def test_long_work_is_compiled_and_short_work_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Gradual, "spent", 0.0)
    ways = []
    for seconds in (0.1, 1.0, 10.0):

        @gradual(lambda *arguments, seconds=seconds: seconds, "x", "out", lean=True)
        def doubled(x, out):  # type: ignore[no-untyped-def]
            for i in range(x.shape[0]):
                out[i] = 2.0 * x[i]

        x, out = np.arange(1.0, 2.0), np.empty(1)
        doubled(x, out)
        assert out == 2.0 * x
        ways.append(bool(doubled.compiled.signatures))
    assert ways == [False, False, True]
