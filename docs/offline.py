"""Sphinx extension: the texts of all pages as one script, for the search of a site that is opened from disk.

The search shows excerpts from it and counts words in it (``_static/ranking.js``). Sphinx's own excerpts are fetched
from the pages, which is forbidden to a page that is opened from disk.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref_condition


def text(doctree: nodes.document) -> str:
    """The words of a page; formulas without the signs that only TeX needs."""
    shown = doctree.deepcopy()
    for formula in list(shown.findall(lambda node: isinstance(node, nodes.math | nodes.math_block))):
        formula.replace_self(nodes.Text(re.sub(r"[\\{}]", "", formula.astext())))
    for other in [name for name in shown.findall(pending_xref_condition) if name["condition"] == "*"]:
        other.parent.remove(other)  # a name has two texts until it is known whether it is a link
    return re.sub(r"\s+", " ", shown.astext())


def write_texts(app: Any, exception: Exception | None) -> None:
    if exception or app.builder.format != "html":
        return
    texts = {name: text(app.env.get_doctree(name)) for name in sorted(app.env.found_docs)}
    target = Path(app.outdir) / "_static" / "page_texts.js"
    target.write_text(f"const PAGE_TEXTS = {json.dumps(texts, ensure_ascii=False)};\n", encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    app.connect("build-finished", write_texts)
    return {"parallel_read_safe": True}
