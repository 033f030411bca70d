"""The pages of docs/: api.md is what the docstrings say, code runs, links and section numbers resolve."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import pld_shuffle

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
SOURCES = sorted((ROOT / "pld_shuffle").rglob("*.py"))
CHOICES = re.findall(
    r"```python\n(.*?)```", (DOCS / "choices.md").read_text(encoding="utf-8"), re.DOTALL
)


def _builder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_api", DOCS / "build_api.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


BUILDER = _builder()


def test_api_page_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    """docs/api.md is what docs/build_api.py would write."""
    status = BUILDER.main(["--check"])
    assert status == 0, capsys.readouterr().err


def test_check_sees_a_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """--check fails on a page that differs or is not there, and passes on one just written."""
    monkeypatch.setattr(BUILDER, "TARGET", tmp_path / "api.md")
    assert BUILDER.main(["--check"]) == 1
    assert BUILDER.main([]) == 0 == BUILDER.main(["--check"])
    (tmp_path / "api.md").write_text("# API reference\n", encoding="utf-8")
    assert BUILDER.main(["--check"]) == 1
    assert "out of date" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["api.md"]


def test_api_page_has_every_public_name() -> None:
    """What the sources were parsed for is what importing the modules gives."""
    listed = {(entry.module, entry.name) for entry in BUILDER.entries()}
    shown = {name for _, name in listed}
    assert set(pld_shuffle.__all__) <= {name for module, name in listed if not module}
    for name in BUILDER.MODULES:
        if name.startswith("interop"):
            pytest.importorskip("dp_accounting")
        module = importlib.import_module(f"pld_shuffle.{name}".rstrip("."))
        for public in getattr(module, "__all__", ()):
            assert public in shown, (name, public)
            assert hasattr(module, public)


def test_every_public_name_has_a_docstring() -> None:
    """Classes, functions, methods and properties; a base's docstring counts."""
    assert BUILDER.bare() == []


def test_signatures_and_docstrings_on_the_page() -> None:
    """Spot checks: keyword-only fields, defaults, inherited members, sections, examples."""
    page = BUILDER.page()
    assert "class Accountant(rtol: float = 1e-3)" in page
    assert "Accountant.compose(mechanism: Mechanism, count: int = 1) -> Self" in page
    assert "class Gaussian(sigma: float, sensitivity: float = 1.0)" in page
    assert re.search(r"class UnarySum\(\*, bits: int, gamma: float, n: int", page)
    assert "**Parameters**" in page and ">>> " in page
    assert " at 0x" not in page


@pytest.mark.parametrize(
    ("doc", "expected"),
    [
        ("One *word* and a*b, x_1 or _y.", "One *word* and a\\*b, x_1 or \\_y."),
        ("Keep `a*b` and ``_c``.", "Keep `a*b` and ``_c``."),
        ("a < b, <tag>, [0, 1], [x](y)", "a < b, \\<tag>, [0, 1], [x\\](y)"),
        ("Head\n----\nn : users,\n    all of them.\nk, m : more.",
         "**Head**\n\n* `n`: users, all of them.\n* `k, m`: more."),
        ("Text\n\n    y = x\n\nmore", "Text\n\n```text\ny = x\n```\n\nmore"),
        ("Text:\n\n>>> 1\n1", "Text:\n\n```pycon\n>>> 1\n1\n```"),
        ("* one\n  two\n* three", "* one two\n* three"),
    ],
)  # fmt: skip
def test_docstrings_become_markdown(doc: str, expected: str) -> None:
    """Every kind of block, and what must be escaped."""
    assert BUILDER.markdown(doc) == expected


def _anchors(page: str) -> set[str]:
    """GitHub's anchors of the headings of a page."""
    plain = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
    titles = re.findall(r"^#+ (.*)$", plain, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("path", [*PAGES, ROOT / "README.md"], ids=lambda path: path.name)
def test_links_resolve(path: Path) -> None:
    """Links to files exist; links to headings name one."""
    page = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", page):
        if target.startswith("http"):
            continue
        name, _, anchor = target.partition("#")
        file = path.parent / name if name else path
        assert file.exists(), f"{path.name}: {target}"
        if anchor:
            assert anchor in _anchors(file.read_text(encoding="utf-8")), f"{path.name}: {target}"


def _numbers(name: str) -> list[int]:
    """The numbers of a page's numbered headings, in order."""
    text = (DOCS / name).read_text(encoding="utf-8")
    return [int(n) for n in re.findall(r"^###? (\d+)\. ", text, re.MULTILINE)]


@pytest.mark.parametrize("name", ["theory.md", "certificates.md", "choices.md"])
def test_sections_are_numbered_in_order(name: str) -> None:
    """1, 2, 3, ... without gaps."""
    numbers = _numbers(name)
    assert numbers == list(range(1, len(numbers) + 1)) and len(numbers) > 5


def _mentions(pattern: str) -> Callable[[Path], list[int]]:
    def found(path: Path) -> list[int]:
        # Text may be wrapped anywhere, in comments too.
        text = re.sub(r"\s+(?:# )?", " ", path.read_text(encoding="utf-8"))
        groups = re.findall(pattern, text)
        return [int(n) for group in groups for n in re.findall(r"\d+", group)]

    return found


@pytest.mark.parametrize(
    ("pattern", "target"),
    [
        (r"theory\.md(?:\]\(theory\.md\))?,? sections? (\d+(?:(?:, | and )\d+)*)", "theory.md"),
        (r"\(theory (\d+(?:, \d+)*)\)", "theory.md"),
    ],
)
def test_references_to_sections_resolve(pattern: str, target: str) -> None:
    """A section of theory.md that a page or a docstring names exists."""
    mentions = _mentions(pattern)
    found = [(path.name, n) for path in [*PAGES, *SOURCES] for n in mentions(path)]
    assert found
    assert {n for _, n in found} <= set(_numbers(target)), found


@pytest.mark.parametrize(
    ("name", "pattern"),
    [("theory.md", r"\bsections? (\d+)\b"), ("choices.md", r"\bquestion (\d+)\b")],
)
def test_a_page_refers_to_its_own_sections(name: str, pattern: str) -> None:
    """Section numbers inside a page exist."""
    found = _mentions(pattern)(DOCS / name)
    assert found and set(found) <= set(_numbers(name))


def test_no_other_name_for_the_theory() -> None:
    """The package refers to docs/theory.md by that name, with a section."""
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        assert "THEORY" not in text, path.name
        for match in re.finditer(r"docs/theory\.md", text):
            assert re.match(r",\s+(?:# )?section \d", text[match.end() :]), path.name


@pytest.mark.parametrize("block", CHOICES, ids=range(len(CHOICES)))
def test_blocks_of_choices_run(block: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every block runs on its own, and the numbers it quotes are right (it asserts them)."""
    exec(block, {})
