"""Compiled kernels where nothing may be written: one warning, and the same answers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pld_shuffle
from pld_shuffle import Accountant, ShuffledLDP

ASKED = (
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


def test_a_named_folder_is_used_without_a_word(package: Path, tmp_path: Path) -> None:
    kernels = tmp_path / "kernels"
    found = run(package, tmp_path, NUMBA_CACHE_DIR=str(kernels))
    assert [float(word) for word in found.stdout.split()] == pytest.approx(expected(), rel=1e-12)
    assert REMARK not in found.stderr and any(kernels.rglob("*.nbi"))
