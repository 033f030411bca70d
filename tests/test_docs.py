"""The pages of docs/: public names have docstrings, code runs, links and section numbers resolve."""

from __future__ import annotations

import csv
import importlib
import importlib.util
import inspect
import math
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import pld_shuffle
from pld_shuffle import Accountant, Shuffled, ShuffledLDP, ShuffledRandomizer, cli, from_training, solve
from pld_shuffle.cli import main
from pld_shuffle.numerics import tuning
from pld_shuffle.randomizers import BinaryRandomizedResponse

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
HOWTO = DOCS / "howto"
PAGES = sorted(DOCS.rglob("*.md"))
README = ROOT / "README.md"
SOURCES = sorted((ROOT / "pld_shuffle").rglob("*.py"))
# Pages whose code runs here; test_interop.py and test_bridges.py run that of interop.md.
BLOCKS = {
    f"{path.relative_to(ROOT)}-{i}": block
    for path in [*PAGES, README]
    if path.name != "interop.md"
    for i, block in enumerate(re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL))
}


def _documented() -> list[str]:
    """The modules that the API page lists."""
    listed = re.findall(r"^   (pld_shuffle\S*)$", (DOCS / "api.md").read_text("utf-8"), re.MULTILINE)
    assert len(listed) == len(set(listed)) > 10
    return listed


@pytest.mark.parametrize("module", _documented())
def test_every_public_name_has_a_docstring(module: str) -> None:
    """Modules, classes, functions, methods and properties; a base's docstring counts."""
    if ".interop." in module:
        pytest.importorskip(module, reason="a bridge", exc_type=ImportError)
    home = importlib.import_module(module)
    bare = [] if inspect.getdoc(home) else [module]
    for name, thing in vars(home).items():
        origin = getattr(thing, "__module__", None)  # None of constants
        listed = name in home.__all__ if hasattr(home, "__all__") else origin == module
        if origin is None or not listed or name.startswith("_"):
            continue
        if not inspect.getdoc(thing):
            bare.append(name)
        members = vars(thing).items() if inspect.isclass(thing) else ()
        for key, member in members:
            public = not key.startswith("_") and (callable(member) or isinstance(member, property))
            if public and not inspect.getdoc(getattr(thing, key)):
                bare.append(f"{name}.{key}")
    assert bare == []


@pytest.mark.parametrize(("doc", "expected"), [
    ("One *word* and a*b, x_1 or _y_.", r"One *word* and a\*b, x_1 or _y\_."),
    ("Keep `a*b|` and ``_c_``, not |x|.", r"Keep `a*b|` and ``_c_``, not \|x\|."),
    (
        "n : users,\n    all of them.\nk, m : more.\n\nText.",
        "``n``\n    users,\n    all of them.\n\n``k``, ``m``\n    more.\n\nText.",
    ),
    ("Text\n\n    y = x*\n\nmore", "Text\n\n::\n\n    y = x*\n\nmore"),
    ("Text::\n\n    y = x", "Text::\n\n    y = x"),
    ("Text:\n\n>>> 1\n1", "Text:\n\n>>> 1\n1"),
    ("* one\n  two\n* three", "*   one\n    two\n\n*   three"),
    ("ValueError\n    If so.", "ValueError\n    If so."),
    (
        "| a | b |\n|---|---|\n| 1 | 2 |",
        ".. list-table::\n    :header-rows: 1\n\n    * - a\n      - b\n    * - 1\n      - 2",
    ),
])  # fmt: skip
def test_docstrings_become_restructured_text(doc: str, expected: str) -> None:
    """Every kind of block, and what must be escaped."""
    shown = "\n".join(loaded(DOCS / "docstrings.py").restructured(doc.split("\n"))).strip()
    assert re.sub(r"\n{3,}", "\n\n", shown) == expected


def loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _anchors(page: str) -> set[str]:
    """GitHub's anchors of the headings of a page."""
    plain = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
    titles = re.findall(r"^#+ (.*)$", plain, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("path", [*PAGES, README], ids=lambda path: path.name)
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


@pytest.mark.parametrize("path", [*PAGES, ROOT / "CHANGELOG.md"], ids=lambda path: path.name)
def test_long_pages_begin_with_their_contents(path: Path) -> None:
    """A page of more than 2,500 words lists its sections, all of them and in order."""
    text = path.read_text(encoding="utf-8")
    listed = re.search(r"^\*\*On this page\*\*\n\n((?:\* \[.*\n)+)", text, re.MULTILINE)
    assert listed or len(text.split()) <= 2_500
    if listed:
        sections = re.findall(r"^## (.*)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
        assert re.findall(r"^\* \[(.*)\]\(#", listed[1], re.MULTILINE) == sections


def _numbers(name: str) -> list[int]:
    """The numbers of a page's numbered headings, in order."""
    text = (DOCS / name).read_text(encoding="utf-8")
    return [int(n) for n in re.findall(r"^###? (\d+)\. ", text, re.MULTILINE)]


@pytest.mark.parametrize("name", ["theory.md", "certificates.md", "choices.md"])
def test_sections_are_numbered_in_order(name: str) -> None:
    """1, 2, 3, ... without gaps."""
    numbers = _numbers(name)
    assert numbers == list(range(1, len(numbers) + 1)) and len(numbers) > 5


def _mentions(pattern: str, path: Path) -> list[int]:
    # Text may be wrapped anywhere, in comments too.
    text = re.sub(r"\s+(?:# )?", " ", path.read_text(encoding="utf-8"))
    return [int(n) for group in re.findall(pattern, text) for n in re.findall(r"\d+", group)]


@pytest.mark.parametrize(
    ("pattern", "target", "paths"),
    [
        (r"theory\.md(?:\]\(theory\.md\))?,? sections? (\d+(?:(?:, | and )\d+)*)", "theory.md", [*PAGES, *SOURCES]),
        (r"\(theory (\d+(?:, \d+)*)\)", "theory.md", [*PAGES, *SOURCES]),
        (r"\bsections? (\d+)\b", "theory.md", [DOCS / "theory.md"]),
        (r"\bquestion (\d+)\b", "choices.md", [DOCS / "choices.md"]),
    ],
    ids=["by name", "in brackets", "own sections", "own questions"],
)
def test_references_to_sections_resolve(pattern: str, target: str, paths: list[Path]) -> None:
    """A section that a page or a docstring names exists, its own page's included."""
    found = [(path.name, n) for path in paths for n in _mentions(pattern, path)]
    assert found
    assert {n for _, n in found} <= set(_numbers(target)), found


def test_no_other_name_for_the_theory() -> None:
    """The package refers to docs/theory.md by that name, with a section."""
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        assert "THEORY" not in text, path.name
        for match in re.finditer(r"docs/theory\.md", text):
            assert re.match(r",\s+(?:# )?section \d", text[match.end() :]), path.name


SLOW = {"docs/howto/planning.md-2", "docs/howto/comparing.md-0"}  # seconds each


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else []) for name in BLOCKS]
)
def test_blocks_of_pages_run(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every block runs on its own, and the numbers it quotes are right (it asserts them)."""
    if "dp_accounting" in BLOCKS[name]:
        pytest.importorskip("dp_accounting")
    exec(BLOCKS[name], {})


def test_batch_sizes_of_telemetry() -> None:
    """The table's batch sizes are proven to do, and not much larger than needed."""
    text = (DOCS / "telemetry.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| (\d+) \|$", text, re.MULTILINE)
    assert len(rows) == 4
    for eps0, quoted in rows:
        bit = BinaryRandomizedResponse(float(eps0))
        smallest = solve("n", lambda n, b=bit: [(Shuffled(b, n), 1)], epsilon=1.0, delta=1e-6)
        assert smallest.value <= int(quoted) <= 1.01 * smallest.value


COMMANDS = {
    command
    for path in [*PAGES, README]
    for command in re.findall(r"^\$ (?:.*&& )?pld-shuffle (.*)$", path.read_text("utf-8"), re.MULTILINE)
    if any(word in command for word in ("--adaptive", "--registry"))
    or not any(word in command for word in ("LOG.csv", ">", "spent.png"))  # the last: below
}


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(command, marks=pytest.mark.slow if "compare --eps0 6.3" in command else [])
        for command in sorted(COMMANDS)
    ],
)
def test_commands_of_pages_run(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("FIRST.csv", "SECOND.csv"):
        Path(name).write_text("1\n2\n" * 20, encoding="utf-8")
    for name in ("LOG.csv", "PLAN.csv"):
        Path(name).write_text("n,eps0,count\n10000,2.0,20\n", encoding="utf-8")
    assert main(command.split()) == 0


def test_rounds_within_the_budget_in_flower() -> None:
    """What the pages say of the training in Flower is what the committed table of epsilons says."""
    rounds: dict[str, int] = {}
    with (ROOT / "benchmarks/results/flower_digits_epsilon.csv").open(encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            if float(row["epsilon"]) <= 1.0:
                rounds[row["label"]] = int(row["rounds"])
    table = (ROOT / "benchmarks/README.md").read_text("utf-8")
    told = (DOCS / "howto/federated.md").read_text("utf-8")
    assert f"| release 0.2.0 | {rounds['release 0.2.0']} |" in table
    assert f"| **this package** | **{rounds['this package']}** |" in table
    for label in ("best published bound", "this package", "an attack: no analysis can go below"):
        assert str(rounds[label]) in told


def test_the_version_is_written_alike() -> None:
    """The package, what is cited, and the recipe."""
    for name in ("CITATION.cff", "CITATION.bib", "packaging/conda/meta.yaml"):
        assert pld_shuffle.__version__ in (ROOT / name).read_text(encoding="utf-8"), name


# --- The numbers of the README are what its blocks and commands print; test_docs.py runs them all ---

README_TEXT = README.read_text(encoding="utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", README_TEXT, re.DOTALL)


def test_the_number_in_the_example() -> None:
    scope: dict[str, Accountant] = {}
    exec(PYTHON[0], scope)
    quoted = float(re.findall(r"# ([\d.]+): certified", PYTHON[0])[0])
    assert scope["acc"].get_epsilon(1e-6) == pytest.approx(quoted, abs=5.1e-4)


def test_numbers_of_the_training_run() -> None:
    """The README's are those of the picture: the last row of its table, to four digits on the safe side."""
    figures = ROOT / "benchmarks" / "figures"
    script = loaded(figures / "training_run.py")
    with (figures / "training_run.csv").open(encoding="utf-8", newline="") as handle:
        *_, last = csv.DictReader(handle)
    told = {name: script.told(name, float(value)) for name, value in last.items() if name != "rounds"}
    published, clones, stronger, proved, attack = told.values()
    text = " ".join(README_TEXT.split())
    assert f"epsilon = {clones}; stronger clones: {stronger}. What we prove: **{proved}**" in text
    assert f"an attack reaches {attack}." in text
    for number in (proved, stronger, published):
        assert f"| {number} |" in README_TEXT
    assert (figures / "training_run.png").read_bytes() == (DOCS / "training_run.png").read_bytes()


def test_numbers_of_shuffled_training_and_of_telemetry() -> None:
    """The README's are the accountant's, rounded to the safe side."""
    run = {"data_size": 10_000_001, "batch_size": 1_000, "epochs": 1, "noise_multiplier": 1.0}
    reported = from_training(**run, sampler="poisson").get_epsilon(1e-6)
    shuffled = from_training(**run, sampler="shuffle").epsilon_bounds(1e-6)
    bit = Accountant().compose(Shuffled(BinaryRandomizedResponse(8.0), n=100_000)).epsilon_bounds(1e-6)
    clones, stronger = (
        Accountant().compose(ShuffledLDP(8.0, 100_000, analysis)).get_epsilon(1e-6)
        for analysis in ("clones", "stronger-clones")
    )
    text = " ".join(README_TEXT.split())
    for upper, digits in ((reported, 4), (shuffled.upper, 4), (bit.upper, 4), (clones, 2), (stronger, 2)):
        assert f" {math.ceil(upper * 10**digits) / 10**digits:.{digits}f}" in text.replace("**", " ")
    for lower in (shuffled.lower, bit.lower):
        assert f"an attack reaches {math.floor(lower * 1e4) / 1e4:.4f}." in text


def test_the_table_of_the_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (command,) = re.findall(r"^\$ .*pld-shuffle (.*--sample .*)$", README_TEXT, re.MULTILINE)
    assert main(command.split()) == 0
    row = re.compile(r"^ +1e-06 +(\S+) +(\S+) +\S+ % +(?:< )?\S+ %$", re.MULTILINE)
    quoted, found = row.search(README_TEXT), row.search(capsys.readouterr().out)
    assert quoted is not None and found is not None
    for one, other in zip(quoted.groups(), found.groups(), strict=True):
        assert float(one) == pytest.approx(float(other), rel=2e-4)
    assert (tmp_path / "spent.png").stat().st_size > 10_000


# --- What the how-to pages claim, by brute force; their recipe is of commands we have --------------


def priv_unit(d: int, p: float, g: float) -> dict[str, float]:
    """The function of the page."""
    [code] = re.findall(r"```python\n(.*?)```", (HOWTO / "gradients.md").read_text("utf-8"), re.DOTALL)
    space: dict[str, object] = {"__name__": "page"}
    exec(code[: code.index("known =")], space)
    found: dict[str, float] = space["priv_unit"](d, p, g)  # type: ignore[operator]
    return found


@pytest.mark.parametrize(("p", "g"), [(0.75, 0.2), (0.9, 0.5), (0.6, 0.0), (0.99, 0.9)])
def test_priv_unit_on_the_circle(p: float, g: float) -> None:
    """In two dimensions: densities on 36,000 arcs, all other inputs at 360 angles."""
    angle = 2 * math.pi * (np.arange(36_000) + 0.5) / 36_000

    def density(x: float) -> np.ndarray:
        inside = np.cos(angle - x) >= g
        q = math.acos(g) / math.pi
        return np.where(inside, p / q, (1 - p) / (1 - q)) / angle.size

    known, first = priv_unit(2, p, g), density(0.0)
    assert first.sum() == pytest.approx(1.0, abs=2e-4)
    others = [density(x) for x in 2 * math.pi * np.arange(1, 360) / 360]
    ratio = max(float(np.max(first / other)) for other in others)
    distance = max(0.5 * float(np.abs(first - other).sum()) for other in others)
    assert math.log(ratio) == pytest.approx(known["eps0"], rel=1e-9)
    assert known["tv"] * (1 - 1e-3) <= distance <= known["tv"] * (1 + 1e-3)


def test_priv_unit_in_many_dimensions() -> None:
    """The share of the cap, against uniform points on the sphere; and knowing tv helps."""
    points = np.random.default_rng(3).normal(size=(200_000, 5))
    share = np.mean(points[:, 0] >= 0.3 * np.linalg.norm(points, axis=1))
    known = priv_unit(5, 0.7, 0.3)
    assert (0.7 - share) / (1 - share) == pytest.approx(known["tv"], abs=5e-3)
    found = [
        Accountant().compose(mechanism).get_epsilon(1e-6)
        for mechanism in (ShuffledRandomizer(5_000, **known), ShuffledLDP(known["eps0"], 5_000))
    ]
    assert found[0] <= found[1]


def test_the_recipe_for_containers_runs_our_commands() -> None:
    text = (HOWTO / "containers.md").read_text("utf-8")
    [recipe] = re.findall(r"```dockerfile\n(.*?)```", text, re.DOTALL)
    assert len(recipe.splitlines()) == 5
    assert set(re.findall(r"pld-shuffle ([a-z][a-z-]*)", recipe)) <= {command.name for command in cli.COMMANDS}
    folder = re.search(r"NUMBA_CACHE_DIR=(\S+)", recipe)
    assert folder is not None and f"chmod -R a+rX {folder[1]}" in recipe


def test_the_page_of_the_command_line_states_the_limits_that_hold() -> None:
    text = (HOWTO.parent / "command_line.md").read_text("utf-8")
    limits = (tuning.MOST_ATTEMPTS, tuning.INTEGRAL_WORK, tuning.NUMBERS, tuning.DIRECT_WORK)
    assert limits == (16, 2e8, 2**23, 4e9)
    for words in ("16 attempts", "2 10^8 terms", "2^23 numbers", "4 10^9 multiplications"):
        assert words in text
