"""The notebooks run from top to bottom, and their committed outputs are there and without errors.

Needs nbclient, nbformat and ipykernel (the "test" extra).
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_there_are_notebooks() -> None:
    expected = {"federated", "papers", "planning", "protocols", "quickstart", "theory"}
    assert expected <= {path.stem for path in NOTEBOOKS}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_committed_outputs(path: Path) -> None:
    cells = code_cells(nbformat.read(path, as_version=4))
    counts = [cell.execution_count for cell in cells]
    assert counts == list(range(1, len(cells) + 1)), "run all cells in order before committing"
    for cell in cells:
        for output in cell.outputs:
            assert output.output_type != "error"
            assert output.get("name") != "stderr", output.text
            assert str(ROOT) not in str(output)


def test_a_notebook_runs_in_its_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = nbformat.read(ROOT / "notebooks" / "protocols.ipynb", as_version=4)
    client = nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(ROOT / "notebooks")}}
    )
    # The kernel of this very interpreter, whatever kernels are installed.
    client.create_kernel_manager()
    client.km.kernel_spec.argv[0] = sys.executable
    client.execute()
    for cell in code_cells(notebook):
        for output in cell.outputs:
            announced = "compiling" in output.get("text", "")  # once on a machine
            assert output.get("name") != "stderr" or announced, output.text


#: The figures of papers with fewer points than are committed: curves(20), curves(16), panels(16), curves(21).
FEWER = r"\b(curves|panels)\(\d+\)", r"\1(3)"


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=[pytest.mark.slow] * (path.stem in ("papers", "planning"))) for path in NOTEBOOKS],
    ids=lambda path: path.stem,
)
def test_cells_run(path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """One after the other, in one namespace of this process, where the library is loaded; magics are left out."""
    monkeypatch.chdir(path.parent)
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.setattr(plt, "show", lambda: plt.close("all"))
    space: dict[str, Any] = {"__name__": "__main__"}
    for cell in code_cells(nbformat.read(path, as_version=4)):
        exec(re.sub(*FEWER, re.sub("(?m)^%.*", "", cell.source)), space)
    if "SCRATCH" in space:  # before it complains that nobody did
        space["SCRATCH"].cleanup()
    errors = capsys.readouterr().err
    assert not errors or "compiling" in errors
