"""Writes docs/api.md, the reference of the public names, from signatures and docstrings.

    python docs/build_api.py            write docs/api.md
    python docs/build_api.py --check    exit status 1 if it is out of date
    python docs/build_api.py --bare     list public names and members without a docstring

The sources are parsed, not imported, and annotations and defaults are copied from their text, so the
result depends on nothing but the sources. A module's public names are its `__all__`, or the classes
and functions it defines without a leading underscore; for the package, the names in `_HOME`. A class
shows its own public members and those of bases that are not on the page; the others are named only.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "pld_shuffle"
TARGET = ROOT / "docs" / "api.md"
WIDTH = 100

#: Modules on the page, in this order, with a heading each.
MODULES = {
    "": "The package",
    "shuffled": "Named randomizers in a shuffler",
    "randomizers": "Local randomizers",
    "protocols": "Protocols",
    "mechanism": "Mechanisms of your own",
    "risk": "Attack risk",
    "calibration": "Planning",
    "trajectory": "Trajectories",
    "comparison": "Comparison with the literature",
    "bounds": "Bounds of the literature",
    "sweeps": "Sweeps",
    "plots": "Pictures",
    "trainlog": "Training logs",
    "checkpoint": "Checkpoints",
    "interop.dp_accounting": "dp_accounting",
    "interop.imported": "Imported pairs",
}

Definition = ast.ClassDef | ast.FunctionDef | ast.Assign | ast.AnnAssign
FENCE = "```"


@dataclass(frozen=True)
class Source:
    """One module: its dotted name below the package, its text, its tree."""

    name: str
    text: str
    tree: ast.Module
    is_package: bool

    @property
    def dotted(self) -> str:
        return f"{PACKAGE}.{self.name}" if self.name else PACKAGE

    @cached_property
    def definitions(self) -> dict[str, Definition]:
        """Top-level classes, functions and assignments by name."""
        found: dict[str, Definition] = {}
        for node in self.tree.body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                found[node.name] = node
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                found[node.targets[0].id] = node
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                found[node.target.id] = node
        return found

    @cached_property
    def imports(self) -> dict[str, tuple[str, str]]:
        """Names imported from modules of the package: (module, name there)."""
        found = {}
        parts = self.name.split(".") if self.name else []
        for node in self.tree.body:
            if not (isinstance(node, ast.ImportFrom) and node.level):
                continue
            up = node.level - (1 if self.is_package else 0)
            base = parts[: len(parts) - up] if up else parts
            module = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                found[alias.asname or alias.name] = (module, alias.name)
        return found

    @cached_property
    def lines(self) -> list[bytes]:
        return self.text.encode().splitlines(keepends=True)

    def written(self, node: ast.expr | ast.stmt) -> str:
        """The text of a node (`ast.get_source_segment`, which splits the whole text every time)."""
        assert node.end_lineno is not None
        lines = self.lines[node.lineno - 1 : node.end_lineno]
        lines[-1] = lines[-1][: node.end_col_offset]
        lines[0] = lines[0][node.col_offset :]
        return b"".join(lines).decode()

    def segment(self, node: ast.expr | ast.stmt) -> str:
        """The text of a node, on one line."""
        return " ".join(self.written(node).split())


@cache
def source(name: str) -> Source:
    """The module of that dotted name below the package."""
    folder = ROOT.joinpath(PACKAGE, *name.split(".")) if name else ROOT / PACKAGE
    is_package = folder.is_dir()
    path = folder / "__init__.py" if is_package else folder.with_suffix(".py")
    text = path.read_text(encoding="utf-8")
    return Source(name, text, ast.parse(text), is_package)


def resolved(module: str, name: str) -> tuple[Source, Definition] | None:
    """Where a name that a module has is defined; None if that is not in the package."""
    here = source(module)
    if name in here.definitions:
        return here, here.definitions[name]
    if name in here.imports:
        return resolved(*here.imports[name])
    return None


def public(module: str) -> list[tuple[str, Source, Definition]]:
    """The public names of a module, with their definitions."""
    here = source(module)
    homes = here.definitions.get("_HOME")
    if homes is not None and isinstance(homes, ast.Assign):
        pairs = [(name, home) for name, home in ast.literal_eval(homes.value).items()]
    elif "__all__" in here.definitions:
        listed = here.definitions["__all__"]
        assert isinstance(listed, ast.Assign)
        pairs = [(name, module) for name in ast.literal_eval(listed.value)]
    else:
        pairs = [
            (name, module)
            for name, node in here.definitions.items()
            if not name.startswith("_") and isinstance(node, ast.ClassDef | ast.FunctionDef)
        ]
    found = []
    for name, home in sorted(pairs, key=lambda pair: pair[0].lower()):
        place = resolved(home, name)
        if place is None:
            raise LookupError(f"{here.dotted}.{name} is public, but nothing defines it")
        found.append((name, *place))
    return found


# --- signatures -------------------------------------------------------------------------------------


def _parameters(here: Source, arguments: ast.arguments, bound: bool) -> list[str]:
    """Parameters as written, without self or cls."""
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(plain) - len(arguments.defaults))
    defaults += arguments.defaults
    shown = [_parameter(here, one, default) for one, default in zip(plain, defaults, strict=True)]
    if arguments.posonlyargs:
        shown.insert(len(arguments.posonlyargs), "/")
    if bound:
        shown = shown[1:]
        if shown[:1] == ["/"]:
            shown = shown[1:]
    if arguments.vararg is not None:
        shown.append("*" + _parameter(here, arguments.vararg, None))
    elif arguments.kwonlyargs:
        shown.append("*")
    for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        shown.append(_parameter(here, one, default))
    if arguments.kwarg is not None:
        shown.append("**" + _parameter(here, arguments.kwarg, None))
    return shown


def _parameter(here: Source, one: ast.arg, default: ast.expr | None) -> str:
    text = one.arg if one.annotation is None else f"{one.arg}: {here.segment(one.annotation)}"
    if default is None:
        return text
    return f"{text}{' = ' if one.annotation else '='}{here.segment(default)}"


def _laid_out(head: str, parameters: list[str], tail: str = "") -> str:
    """A signature on one line, or one parameter a line."""
    line = f"{head}({', '.join(parameters)}){tail}"
    if len(line) <= WIDTH:
        return line
    return f"{head}(\n" + "".join(f"    {one},\n" for one in parameters) + f"){tail}"


def function_signature(here: Source, node: ast.FunctionDef, name: str, bound: bool) -> str:
    """As written, with annotations."""
    returns = f" -> {here.segment(node.returns)}" if node.returns is not None else ""
    return _laid_out(name, _parameters(here, node.args, bound), returns)


def _decorators(node: ast.ClassDef | ast.FunctionDef) -> dict[str, dict[str, object]]:
    """Names of decorators, with the constants they were given."""
    found: dict[str, dict[str, object]] = {}
    for one in node.decorator_list:
        call = one if isinstance(one, ast.Call) else None
        target = call.func if call is not None else one
        name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
        found[name] = {
            word.arg: word.value.value
            for word in (call.keywords if call is not None else [])
            if word.arg is not None and isinstance(word.value, ast.Constant)
        }
    return found


def lineage(here: Source, node: ast.ClassDef) -> list[tuple[Source, ast.ClassDef]]:
    """The class and its bases in the package, nearest first (simple depth-first order)."""
    found = [(here, node)]
    for base in node.bases:
        if isinstance(base, ast.Name):
            place = resolved(here.name, base.id)
            if place is not None and isinstance(place[1], ast.ClassDef):
                found += [one for one in lineage(place[0], place[1]) if one not in found]
    return found


def _base_names(node: ast.ClassDef) -> list[str]:
    return [base.id for base in node.bases if isinstance(base, ast.Name)]


def _fields(here: Source, node: ast.ClassDef) -> list[tuple[str, bool]]:
    """Annotated fields of a class body as parameters, and whether each is keyword-only."""
    found = []
    options = _decorators(node).get("dataclass", {})
    for item in node.body:
        if not (isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)):
            continue
        annotation = here.segment(item.annotation)
        if item.target.id.startswith("_") or annotation.startswith("ClassVar"):
            continue
        text = f"{item.target.id}: {annotation}"
        if isinstance(item.value, ast.Call) and getattr(item.value.func, "id", "") == "field":
            given = {word.arg: word.value for word in item.value.keywords}
            init = given.get("init")
            if isinstance(init, ast.Constant) and init.value is False:
                continue
            if "default" in given:
                text += f" = {here.segment(given['default'])}"
            elif "default_factory" in given:
                text += " = ..."
        elif item.value is not None:
            text += f" = {here.segment(item.value)}"
        found.append((text, bool(options.get("kw_only", False))))
    return found


def class_signature(here: Source, node: ast.ClassDef, name: str) -> str:
    """The constructor, from the nearest `__init__` or from the fields of a dataclass and its bases."""
    fields: dict[str, tuple[str, bool]] = {}
    for place, ancestor in lineage(here, node):
        for item in ancestor.body:
            if isinstance(item, ast.FunctionDef) and item.name == "__init__":
                return _laid_out(f"class {name}", _parameters(place, item.args, True))
        if "dataclass" in _decorators(ancestor) or "NamedTuple" in _base_names(ancestor):
            known = {
                text.split(":")[0]: (text, keyword) for text, keyword in _fields(place, ancestor)
            }
            fields = known | fields  # bases come first, and may be overridden
    if not fields:
        bases = ", ".join(here.segment(base) for base in node.bases)
        return f"class {name}({bases})" if bases else f"class {name}"
    plain = [text for text, keyword in fields.values() if not keyword]
    keywords = [text for text, keyword in fields.values() if keyword]
    return _laid_out(f"class {name}", plain + (["*", *keywords] if keywords else []))


# --- docstrings to markdown -------------------------------------------------------------------------


def documentation(node: ast.AST) -> str:
    """The docstring without its indentation; empty if there is none."""
    assert isinstance(node, ast.ClassDef | ast.FunctionDef | ast.Module)
    return inspect.cleandoc(ast.get_docstring(node, clean=False) or "")


#: Asterisks that emphasise no word, underscores outside of names, tags, links.
MARKUP = re.compile(
    r"(?<![\w*])\*(?![\w-]+\*)|(?<=\w)\*(?=\w)|(?<!\w)_|_(?!\w)|<(?=[a-zA-Z/!])|\](?=\()"
)


def escaped(text: str) -> str:
    """Prose with what markdown would read as markup made plain, outside of backticks."""
    parts = re.split(r"(``.+?``|`.+?`)", text)
    for i in range(0, len(parts), 2):
        parts[i] = MARKUP.sub(r"\\\g<0>", parts[i])
    return "".join(parts)


def _filled(text: str, first: str = "", rest: str = "") -> str:
    return textwrap.fill(
        escaped(" ".join(text.split())),
        WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


ITEM = re.compile(r"^(\*{0,2}\w+(?:(?:, | \| )\*{0,2}\w+)*) : (.*)$")


def markdown(doc: str) -> str:
    """A docstring as markdown: sections, items, bullets, examples, displays, paragraphs."""
    lines = doc.split("\n")
    blocks: list[str] = []
    i = 0
    while i < len(lines):
        line = lines[i]
        if not line.strip():
            i += 1
        elif i + 1 < len(lines) and re.fullmatch(r"-{3,}", lines[i + 1].strip()):
            blocks.append(f"**{line.strip()}**")
            i += 2
        elif line.startswith(">>>"):
            end = i
            while end < len(lines) and lines[end].strip():
                end += 1
            blocks.append("\n".join([FENCE + "pycon", *lines[i:end], FENCE]))
            i = end
        elif line.startswith("    "):
            end = i
            while end < len(lines) and (not lines[end].strip() or lines[end].startswith("    ")):
                end += 1
            display = textwrap.dedent("\n".join(lines[i:end])).rstrip()
            blocks.append("\n".join([FENCE + "text", display, FENCE]))
            i = end
        elif line.startswith("|"):
            end = i
            while end < len(lines) and lines[end].startswith("|"):
                end += 1
            blocks.append("\n".join(lines[i:end]))
            i = end
        elif ITEM.match(line) or line.startswith("* "):
            item, i = _list(lines, i)
            blocks.append(item)
        else:
            end = i + 1
            while end < len(lines) and lines[end].strip() and not _starts(lines[end]):
                end += 1
            blocks.append(_filled("\n".join(lines[i:end])))
            i = end
    return "\n\n".join(blocks)


def _starts(line: str) -> bool:
    """Whether a line begins a block of its own although the one before is not blank."""
    return bool(line.startswith((">>>", "* ", "    ", "|")) or ITEM.match(line))


def _list(lines: list[str], i: int) -> tuple[str, int]:
    """The bullets or items from line i on, and the line after them."""
    shown = []
    while i < len(lines):
        match = ITEM.match(lines[i])
        if match is None and not lines[i].startswith("* "):
            break
        head = f"* `{match[1]}`: " if match is not None else "* "
        text = match[2] if match is not None else lines[i][2:]
        end = i + 1
        while end < len(lines) and lines[end].strip():
            if match is None and not lines[end].startswith("  "):
                break
            if lines[end].startswith(("* ", ">>>")) or ITEM.match(lines[end]):
                break
            if not lines[end].startswith("  "):
                break
            text += " " + lines[end]
            end += 1
        shown.append(_filled(text, head, "  "))
        i = end
    return "\n".join(shown), i


# --- the page ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """A public name on the page, with the module under which it stands."""

    module: str
    name: str
    here: Source
    node: Definition

    @property
    def title(self) -> str:
        return f"{PACKAGE}.{self.module}.{self.name}" if self.module else self.name

    @property
    def anchor(self) -> str:
        """GitHub's anchor of the heading."""
        return re.sub(r"[^\w\- ]", "", self.title.lower()).replace(" ", "-")

    @property
    def link(self) -> str:
        return f"[`{self.name}`](#{self.anchor})"


def entries() -> list[Entry]:
    """All public names, each definition once, under the first module that has it."""
    found: list[Entry] = []
    seen: set[tuple[str, str]] = set()
    for module in MODULES:
        for name, here, node in public(module):
            key = (here.name, name)
            if key not in seen:
                seen.add(key)
                found.append(Entry(module, name, here, node))
    return found


def members(entry: Entry) -> Iterator[tuple[Source, ast.FunctionDef]]:
    """Public methods and properties, each where it is defined nearest."""
    assert isinstance(entry.node, ast.ClassDef)
    seen: set[str] = set()
    for here, node in lineage(entry.here, entry.node):
        for item in node.body:
            if not isinstance(item, ast.FunctionDef) or item.name.startswith("_"):
                continue
            if item.name not in seen:
                seen.add(item.name)
                yield here, item


def lender(entry: Entry, item: ast.FunctionDef, by_class: dict[str, Entry]) -> str | None:
    """The base on the page whose description of a member holds, as the class has none of its own."""
    assert isinstance(entry.node, ast.ClassDef)
    for _, node in lineage(entry.here, entry.node):
        for other in node.body:
            if isinstance(other, ast.FunctionDef) and other.name == item.name:
                on_page = node.name in by_class and by_class[node.name].node is node
                if on_page and node is not entry.node:
                    return node.name
                if documentation(other):
                    return None
    return None


def inherited_documentation(entry: Entry, name: str) -> str | None:
    """The docstring of a member, or of the nearest base's member of that name that has one."""
    assert isinstance(entry.node, ast.ClassDef)
    for _, node in lineage(entry.here, entry.node):
        for item in node.body:
            if isinstance(item, ast.FunctionDef) and item.name == name and documentation(item):
                return documentation(item)
    return None


def _member(entry: Entry, here: Source, node: ast.FunctionDef) -> str:
    kinds = _decorators(node)
    name = f"{entry.name}.{node.name}"
    if "property" in kinds or "cached_property" in kinds:
        returns = f": {here.segment(node.returns)}" if node.returns is not None else ""
        signature = f"{name}{returns}  # property"
    else:
        signature = function_signature(here, node, name, "staticmethod" not in kinds)
    text = markdown(inherited_documentation(entry, node.name) or "")
    return "\n\n".join(part for part in (f"#### `{name}`", _code(signature), text) if part)


def _code(text: str) -> str:
    return f"{FENCE}python\n{text}\n{FENCE}"


def _shown(entry: Entry, by_class: dict[str, Entry]) -> str:
    """One entry of the page."""
    parts = [f"### `{entry.title}`"]
    node, here = entry.node, entry.here
    if isinstance(node, ast.FunctionDef):
        parts += [_code(function_signature(here, node, entry.name, False))]
        parts += [markdown(documentation(node))]
    elif isinstance(node, ast.ClassDef):
        parts += [_code(class_signature(here, node, entry.name)), markdown(documentation(node))]
        own: list[str] = []
        borrowed: dict[str, list[str]] = {}
        for place, item in members(entry):
            base = lender(entry, item, by_class)
            if base is None:
                own.append(_member(entry, place, item))
            else:
                borrowed.setdefault(base, []).append(f"`{item.name}`")
        for base, names in borrowed.items():
            parts.append(_wrapped(f"As {by_class[base].link} has it: {', '.join(names)}."))
        parts += own
    else:
        parts += [_code(here.written(node))]
    return "\n\n".join(part for part in parts if part)


def _wrapped(text: str, rest: str = "") -> str:
    return textwrap.fill(
        text, WIDTH, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )


def page() -> str:
    """The text of docs/api.md."""
    found = entries()
    by_class = {one.name: one for one in found if isinstance(one.node, ast.ClassDef)}
    parts = [
        "# API reference",
        "Written by `docs/build_api.py` from the docstrings; do not edit. What to use when:\n"
        "[choices.md](choices.md).",
    ]
    contents = []
    for module, title in MODULES.items():
        listed = [one for one in found if one.module == module]
        links = ", ".join(one.link for one in listed)
        contents.append(_wrapped(f"* **{title}** (`{source(module).dotted}`): {links}", "  "))
    parts.append("\n".join(contents))
    for module, title in MODULES.items():
        here = source(module)
        parts.append(f"## {title}")
        first = documentation(here.tree).split("\n\n")[0]
        parts.append(_wrapped(f"`{here.dotted}`: " + escaped(" ".join(first.split()))))
        parts += [_shown(one, by_class) for one in found if one.module == module]
    return "\n\n".join(parts) + "\n"


def bare() -> list[str]:
    """Public names and members without a docstring of their own or of a base."""
    names = []
    for entry in entries():
        if isinstance(entry.node, ast.ClassDef | ast.FunctionDef) and not documentation(entry.node):
            names.append(entry.title)
        if isinstance(entry.node, ast.ClassDef):
            names += [
                f"{entry.title}.{item.name}"
                for _, item in members(entry)
                if inherited_documentation(entry, item.name) is None
            ]
    return names


def main(arguments: Iterable[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    parser.add_argument("--bare", action="store_true", help="list what has no docstring")
    given = parser.parse_args(None if arguments is None else list(arguments))
    if given.bare:
        print("\n".join(bare()))
        return 0
    text = page()
    if given.check:
        same = TARGET.exists() and TARGET.read_text(encoding="utf-8") == text
        if not same:
            print(f"{TARGET.name} is out of date: run python docs/build_api.py", file=sys.stderr)
        return 0 if same else 1
    partial = TARGET.with_suffix(".md.part")
    partial.write_text(text, encoding="utf-8", newline="\n")
    partial.replace(TARGET)
    return 0


if __name__ == "__main__":
    sys.exit(main())
