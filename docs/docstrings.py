"""Sphinx extension: our docstrings are plain prose; this makes them the reStructuredText they mean.

    name, other : what they are      an entry
    * an item                        a list
    text, and below it a block       a formula or a program
    | a | table |                    as in Markdown

Bars, stars and trailing underscores outside backquotes are themselves.
"""

from __future__ import annotations

import re
import textwrap
from typing import Any

# Backquoted text, emphasis, or one character that reStructuredText would take for markup.
MARKUP = re.compile(r"``.*?``|`[^`]*`|(?<![\w*])\*\*?[^\s*](?:[^*]*[^\s*])?\*\*?(?![\w*])|[|*\\]|_(?!\w)", re.DOTALL)
BETWEEN = r"(?:, | \| | / | and )"
ENTRY = re.compile(rf"(\*{{0,2}}\w+(?:{BETWEEN}\*{{0,2}}\w+)*) : +(?=\S)")
ITEM = re.compile(r"(?:\*|\d+\.) +(?=\S)")


def escaped(text: str) -> str:
    """Text whose characters are themselves; backquoted text and *emphasis* stay."""
    return MARKUP.sub(lambda found: f"\\{found[0]}" if len(found[0]) == 1 else found[0], text)


def indented(text: str) -> str:
    return textwrap.indent(text, "    ")


def table(lines: list[str]) -> str:
    """A Markdown table as a list-table."""
    rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines]
    cells = [
        "\n".join(f"{'*' if i == 0 else ' '} - {escaped(cell)}" for i, cell in enumerate(row))
        for row in [rows[0], *rows[2:]]
    ]
    return ".. list-table::\n    :header-rows: 1\n\n" + indented("\n".join(cells))


def starts_block(line: str) -> bool:
    return bool(ENTRY.match(line) or ITEM.match(line) or line.startswith((">>> ", "|")))


def blocks(lines: list[str]) -> list[list[str]]:
    """Lines in groups. What is indented belongs to the line above it, across blank lines too."""
    found: list[list[str]] = []
    grid = False  # inside a table drawn with rules of equality signs
    for i, line in enumerate(lines):
        above = found[-1] if found else [""]
        free = not above[-1] or above[-1].startswith(" ")
        verbatim = above[0].startswith((">>> ", "|")) and above[-1]
        if not line or line.startswith(" ") or grid or verbatim:
            above.append(line)
        elif free or starts_block(line):
            found.append([line])
        else:
            above.append(line)
        if line.startswith("===="):
            grid = i + 1 < len(lines) and bool(lines[i + 1])
    return found


def restructured(lines: list[str]) -> list[str]:
    """A docstring as reStructuredText."""
    shown: list[str] = []
    for block in blocks(lines):
        first = block[0]
        below = textwrap.dedent("\n".join(block[1:])).strip("\n")
        if first.startswith((">>> ", "====")):
            text = "\n".join(block).rstrip()
        elif first.startswith("|"):
            text = table([line for line in block if line])
        elif entry := ENTRY.match(first):
            names = ", ".join(f"``{name}``" for name in re.split(BETWEEN, entry[1]))
            text = names + "\n" + indented(escaped(f"{first[entry.end() :]}\n{below}"))
        elif item := ITEM.match(first):
            body = indented(escaped(f"{first[item.end() :]}\n{below}")).strip()
            text = item[0].rstrip().ljust(4) + body
        elif len(block) > 1 and block[1].startswith(" "):  # a term, and what it is
            text = escaped(first) + "\n" + indented(escaped(below))
        else:
            end = next((i for i, line in enumerate(block) if line.startswith(" ")), len(block))
            text = escaped("\n".join(block[:end])).rstrip()
            if end < len(block):
                display = textwrap.dedent("\n".join(block[end:])).strip("\n")
                text += ("" if text.endswith("::") else "\n\n::") + "\n\n" + indented(display)
        shown += [*text.split("\n"), ""]
    return shown


def _process(app: Any, what: str, name: str, target: Any, options: Any, lines: list[str]) -> None:
    lines[:] = restructured(lines)


def setup(app: Any) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", _process)
    return {"parallel_read_safe": True}
