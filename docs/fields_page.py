"""Writes docs/fields.md from the tables of `pld_shuffle.fields`: python docs/fields_page.py > docs/fields.md"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pld_shuffle.fields import FIELDS, MECHANISMS, RANDOMIZERS, SHARES

GROUPS = {"Mechanisms": MECHANISMS, "Randomizers": RANDOMIZERS, "Shares": SHARES}
KIND_NAMES = {int: "integer", float: "number", str: "word"}


def markdown() -> str:
    """The page docs/fields.md: every kind, every field."""
    page = [
        "# Fields",
        "What describes a round, under the same names in a training log's columns, in the flags of"
        " `pld-shuffle` (with dashes for underscores), in `solve` and in `sweep`. This page is written by"
        " `python docs/fields_page.py`.",
    ]
    for title, kinds in GROUPS.items():
        rows = [(f"`{k.name}`", f"`{k.usage}`", k.help) for k in kinds.values()]
        page += [f"## {title}", _markdown_table(("name", "fields", "what it is"), rows)]
    page.append("Fields in brackets may be left out; of those in parentheses exactly one is given.")
    fields = [
        (f"`{f.name}`", KIND_NAMES[f.kind], f.help, f"the {f.range.end}" if f.range else "") for f in FIELDS.values()
    ]
    page += [
        "## Fields",
        _markdown_table(("name", "kind", "meaning", "`solve` finds"), fields),
        "`round` and `count` are a log's, `rounds`, `delta`, `epsilon` and `rtol` those of plans and flags."
        " With a fixed population `solve` finds the largest `n`.",
    ]
    return "\n\n".join(page) + "\n"


def _markdown_table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [" | ".join(cell.replace("|", "\\|") for cell in row) for row in (titles, *rows)]
    lines = [f"| {line} |" for line in lines]
    return "\n".join([lines[0], "|---" * len(titles) + "|", *lines[1:]])


if __name__ == "__main__":
    print(markdown(), end="")
