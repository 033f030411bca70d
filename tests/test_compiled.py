"""Compiled loops: the one rule of when, where nothing may be written, and the same answers interpreted."""

from __future__ import annotations

import ast
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pld_shuffle
from pld_shuffle import Accountant, ShuffledLDP
from pld_shuffle.numerics import compiled
from pld_shuffle.numerics.compiled import Kernel
from pld_shuffle.pairs import bit_kernels, coin_kernels, contour_kernels, swap_kernels
from pld_shuffle.pairs.coins import Components, _most_in_a_cell
from pld_shuffle.pairs.pair import ALL_USERS
from pld_shuffle.pairs.swap import NO_JUMP, NOBODY, _extreme_types

COMPILED = "from pld_shuffle.numerics import compiled; compiled.LOADING = compiled.PATIENCE = -1;"
ASKED = (
    "from pld_shuffle import Accountant, ShuffledLDP;"
    "batch = ShuffledLDP(eps0=2.0, n=500, analysis='stronger-clones');"
    "print(*Accountant().compose(batch, 3).epsilon_bounds(1e-6));"
)
#: What only compiling needs takes longer to import than all kernels to load.
LOADED = "import sys; assert 'numba' in sys.modules and 'numba.typed.typeddict' not in sys.modules;"
REMARK = "compiled kernels cannot be kept beside the package"
ANNOUNCED = "once on this machine"
#: Of all modules, whether they are imported here or not.
KERNELS = sum(
    path.read_text(encoding="utf-8").count("\n@kernel(") for path in Path(pld_shuffle.__file__).parent.rglob("*.py")
)


def run(package: Path, home: Path, code: str, **more: str) -> subprocess.CompletedProcess[str]:
    """A new process with that copy of the package and that home, and its own folder of temporary files."""
    temporary = package.parent / "tmp"
    temporary.mkdir(exist_ok=True)
    inherited = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "PYTHONPATH")}
    places = {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"), "TMPDIR": str(temporary)}
    # Of the interpreter's path only what this process has beyond the package's own parent.
    path = os.pathsep.join([str(package.parent), *filter(None, sys.path[1:])])
    return subprocess.run(
        [sys.executable, "-B", "-W", "always", "-c", code],
        env=inherited | places | {"PYTHONPATH": path} | more,
        capture_output=True, text=True, check=True, cwd=temporary,
    )  # fmt: skip


def expect(found: subprocess.CompletedProcess[str]) -> None:
    batch = ShuffledLDP(eps0=2.0, n=500, analysis="stronger-clones")
    expected = list(Accountant().compose(batch, 3).epsilon_bounds(1e-6))
    assert [float(word) for word in found.stdout.split()] == pytest.approx(expected, rel=1e-12)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package without any cache."""
    source, copy = Path(pld_shuffle.__file__).parent, tmp_path / "site" / "pld_shuffle"
    return Path(shutil.copytree(source, copy, ignore=lambda *_: {"__pycache__"}))


def test_a_short_answer_neither_compiles_nor_loads_numba(package: Path, tmp_path: Path) -> None:
    found = run(package, tmp_path, ASKED + "import sys; assert 'numba' not in sys.modules")
    expect(found)
    assert found.stderr == "" and not any(package.rglob("*.nb?"))


#: What the answer asks for.
USED = {"coin_cells", "merge_upwards"}


def hollow(path: Path) -> None:
    """Other kernels with nothing inside: they are compiled in a moment."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        if (
            isinstance(node, ast.FunctionDef)
            and node.name not in USED
            and any(ast.unparse(one).startswith("kernel(") for one in node.decorator_list)
        ):
            node.body = [ast.Pass()]
    path.write_text(ast.unparse(tree), encoding="utf-8")


LOCKED = """
import os
real = os.access
os.access = lambda path, mode: not (mode == os.W_OK and str(path).endswith("kernels")) and real(path, mode)
"""


@pytest.mark.slow
def test_all_is_compiled_at_once_and_announced_once(package: Path, tmp_path: Path) -> None:
    """In a folder with a name; the next process only loads, without a word, and so do `warm_up` and a locked container.

    Numba refuses to read a folder that it cannot write; it reads a copy, which is gone in the end. It would go on to
    the home, if that can be written, and compile again.
    """
    folder = tmp_path / "kernels"
    for path in (*package.glob("pairs/*.py"), *package.glob("numerics/*.py")):
        hollow(path)
    found = run(package, tmp_path, COMPILED + ASKED, NUMBA_CACHE_DIR=str(folder))
    expect(found)
    assert found.stderr.count(ANNOUNCED) == 1 and REMARK not in found.stderr
    kept = {path: path.stat().st_mtime_ns for path in folder.rglob("*.nb?")}
    assert sum(path.suffix == ".nbi" for path in kept) == KERNELS
    for code in (COMPILED, "import pld_shuffle; pld_shuffle.warm_up();", LOCKED + COMPILED):
        found = run(package, tmp_path, code + ASKED + LOADED, NUMBA_CACHE_DIR=str(folder))
        expect(found)
        assert found.stderr == ""
        assert {path: path.stat().st_mtime_ns for path in folder.rglob("*.nb?")} == kept
        assert not any(package.rglob("*.nb?")) and not (tmp_path / "cache").exists()
        assert not any((package.parent / "tmp").iterdir())


#: Two kernels alone; of all of them: the test above.
TWO = "from pld_shuffle.numerics.kernels import lower_hull, merge_upwards; lower_hull.compiled, merge_upwards.compiled;"


@pytest.mark.slow
@pytest.mark.parametrize("named", [False, True], ids=["home", "name"])
def test_no_place_for_compiled_kernels(named: bool, package: Path, tmp_path: Path) -> None:
    """Neither beside the source, nor at home, nor where NUMBA_CACHE_DIR says: files stand where folders should.

    A read-only container gives the very same error, but would not stop an administrator, who often runs these tests.
    The temporary folder is removed in the end.
    """
    for folder in (package, *(path for path in package.rglob("*") if path.is_dir())):
        (folder / "__pycache__").write_text("in the way")
    blocked = tmp_path / "blocked"
    blocked.write_text("in the way")
    more = {"NUMBA_CACHE_DIR": str(blocked / "kernels")} if named else {}
    found = run(package, blocked, TWO + ASKED, **more)
    expect(found)
    assert found.stderr.count(REMARK) == 1
    assert not any((tmp_path / "site" / "tmp").iterdir())


# -- interpreted at first --------------------------------------------------------------------------

GROWTH = np.expm1([0.0, 0.01, 0.05, 0.2, 0.9])
LAWS = np.array([[0.5, 0.3, 0.2], [0.3, 0.5, 0.2], [0.2, 0.2, 0.1]])
#: Kernel, arguments in front of the outputs, shapes of the outputs that are compared.
NOBODIES = (NOBODY, NO_JUMP)
CASES: list[tuple[Kernel, list[Any], int]] = [
    *(
        (swap_kernels.profile, [n, *_extreme_types(e, ALL_USERS), *NOBODIES, 3, u, rate, coins, 2.0**-50, GROWTH], 1)
        for n in (64.0, 1001.0, 1e9) for e in (0.1, 1.0, 4.0)
        for u, rate, coins in ((0.98 * np.exp(-e), 1.0, False), (0.0, 0.3, False), (0.0, 0.3, True))
    ),
    *(
        (contour_kernels.profile, [n, *LAWS, 0.5, GROWTH, 1e-4, 1e-14], 2)
        for n in (4.0, 1001.0, 1e8)
    ),
    *(
        (bit_kernels.all_expm1_epsilons, [GROWTH, bits, 0.75, 0.25, 0.25, 0.75, 0.5, 999.0, 0.0, 999.0, 1e-6, 40], 2)
        for bits in (1.0, 3.0)
    ),
]  # fmt: skip


@pytest.mark.parametrize("kernel,known,outputs", CASES)
def test_the_same_interpreted_and_compiled(kernel: Kernel, known: list[Any], outputs: int) -> None:
    found = []
    for way in (kernel.compiled, lambda *arguments: kernel._interpreted(arguments)):
        out = [np.full(GROWTH.size, np.nan) for _ in range(outputs)]
        way(*known, *out)
        assert np.all(np.isfinite(out))
        found.append(np.array(out))
    assert found[1] == pytest.approx(found[0], rel=1e-12, abs=1e-300)


def test_every_entry_has_one_compiled_version() -> None:
    compiled.warm_up()
    assert len(compiled._entries) == KERNELS
    for kernel in compiled._entries:
        assert len(kernel.compiled.signatures) == 1
        assert len(kernel._takes) == kernel._function.__code__.co_argcount


def local(function: Callable[..., None], seconds: float, **options: Any) -> Kernel:
    """A kernel of this file alone, over points."""
    kernel = Kernel(function, "1p o1 o1p", lambda *arguments: seconds, **options)
    compiled._entries.remove(kernel)
    return kernel


def reciprocals(x, total, out):  # type: ignore[no-untyped-def]
    for i in range(x.shape[0]):
        total[0] += x[i]
        out[i] = 1.0 / x[i]


@pytest.mark.parametrize("seconds", [0.0, 10.0])
def test_long_work_is_compiled_and_so_is_what_python_refuses(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what was filled until then is forgotten."""
    monkeypatch.setattr(Kernel, "spent", 0.0)
    monkeypatch.setattr(compiled, "warm_up", lambda: None)
    kernel = local(reciprocals, seconds, error_model="numpy")
    for last in (8.0, 0.0):
        total, out = np.zeros(1), np.empty(3)
        kernel(np.array([2.0, last, 4.0]), total, out)
        assert total[0] == 6.0 + last
        assert list(out) == [0.5, 1.0 / last if last else np.inf, 0.25]
        assert ("compiled" in kernel.__dict__) == (seconds > 0.0 or last == 0.0)


# --- sums of many atoms: laws of coins by themselves are in pairs/test_coins.py ---


@pytest.mark.parametrize("cells_per_unit", [5, 100])
def test_sums_of_many_components_keep_their_bits(cells_per_unit: int) -> None:
    """Against exact sums of the atoms that the recurrence gives, component by component."""
    generator = np.random.default_rng(1)
    coins = generator.integers(300, 400, 700)
    bias = generator.uniform(0.3, 0.5, 700)
    weight = generator.exponential(1e-3, 700)
    edges = np.expm1(np.arange(1.1 * cells_per_unit) / cells_per_unit) / 2
    edges[0] = -1.0

    def run(chosen: slice) -> np.ndarray:
        cells = np.zeros((4, edges.size - 1))
        parts = coins[chosen], bias[chosen], 1 - bias[chosen], weight[chosen]
        coin_kernels.coin_cells(*parts, 8.0, edges, 1.0, 0.0, cells)
        return cells

    cells = run(slice(None))
    alone = [run(slice(j, j + 1)) for j in range(700)]
    most = _most_in_a_cell(Components(coins, bias, 1 - bias, weight, 0.0, 0.0), edges, 4.0)
    for k in range(2):
        for i in range(edges.size - 1):
            exact = math.fsum(one[k, i] for one in alone)
            error = abs(cells[k, i] + cells[k + 2, i] - exact)
            assert error <= 2.0**-53 * 3.0 * exact
    for m, theta in zip(coins.tolist(), bias.tolist(), strict=True):
        heads = np.arange(m // 2 + 1, m + 1)
        t = (2 * heads - m) / m
        held = np.histogram(theta * t / (1 - theta * t), np.append(0.0, edges[1:]))[0]
        assert np.all(held <= most)
