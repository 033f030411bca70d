"""Sphinx extension: what a site that is opened from disk cannot load from elsewhere.

Formulas become MathML while the site is built, which browsers show without a script. The texts of all pages
become one script: the search shows excerpts from it and counts in it (``_static/ranking.js``). Fetching the
pages, as Sphinx would, is forbidden to a page that is opened from disk.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.addnodes import pending_xref_condition
from sphinx.util import logging

LOG = logging.getLogger(__name__)


def mathml(node: nodes.Element, display: str) -> str:
    """A formula as MathML. What the converter does not know is a warning, and so fails the build."""
    source = node.astext()
    shown = convert(source, display=display)
    if "\\" in shown:
        LOG.warning("formula with an unknown command: %s", source, location=node)
    return shown


def inline(translator: Any, node: nodes.Element) -> None:
    translator.body.append(mathml(node, "inline"))
    raise nodes.SkipNode


def displayed(translator: Any, node: nodes.Element) -> None:
    translator.body.append(f'<div class="formula">{mathml(node, "block")}</div>\n')
    raise nodes.SkipNode


def text(doctree: nodes.document) -> str:
    """The words of a page; formulas without the signs that only TeX needs."""
    shown = doctree.deepcopy()
    for other in [n for n in shown.findall(pending_xref_condition) if n["condition"] == "*"]:
        other.parent.remove(other)  # a name has two texts until it is known whether it is a link
    for formula in list(shown.findall(lambda node: isinstance(node, nodes.math | nodes.math_block))):
        formula.replace_self(nodes.Text(re.sub(r"[\\{}]", "", formula.astext())))
    return re.sub(r"\s+", " ", shown.astext())


def write_texts(app: Any, exception: Exception | None) -> None:
    if exception or app.builder.format != "html":
        return
    texts = {name: text(app.env.get_doctree(name)) for name in sorted(app.env.found_docs)}
    target = Path(app.outdir) / "_static" / "page_texts.js"
    target.write_text(f"const PAGE_TEXTS = {json.dumps(texts, ensure_ascii=False)};\n", encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (inline, None), (displayed, None))
    app.connect("build-finished", write_texts)
    return {"parallel_read_safe": True}
