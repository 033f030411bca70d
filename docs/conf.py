"""How Sphinx builds the site: ``sphinx-build -c docs . build/site`` from the top of the repository.

The sources are the whole repository, so a link between README, pages and notebooks that works in a
checkout works on the site too. Nothing is executed and nothing is loaded from the network.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from sphinx.ext.autodoc.mock import mock  # noqa: E402

import pld_shuffle  # noqa: E402

project = "pld_shuffle"
author = "the pld_shuffle authors"
copyright = f"{author}, Apache-2.0"
version = release = pld_shuffle.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "docstrings", "offline"]
root_doc = "docs/index"
include_patterns = ["docs/**", "notebooks/*.ipynb", "benchmarks/README.md", "CHANGELOG.md"]
exclude_patterns = ["docs/_*"]

nb_execution_mode = "off"  # the tests run the notebooks
myst_heading_anchors = 4
myst_enable_extensions = ["dollarmath"]
myst_links_external_new_tab = False

templates_path = [str(HERE / "_templates")]
autosummary_generate = True
autodoc_member_order = "bysource"
# Bridges to packages whose pins conflict: their pages need the names only.
autodoc_mock_imports = ["flwr", "pfl", "opendp"]
# Overloads tell a number from an array; which types count as either is for type checkers.
autodoc_type_aliases = {"Scalar": "float", "Numbers": "ArrayLike", "Array": "ndarray"}
autodoc_typehints = "signature"
autodoc_class_signature = "mixed"
default_role = "py:obj"
smartquotes = False  # "eps0" is a string
python_use_unqualified_type_names = True
add_module_names = False


def public_names() -> dict[str, list[str]]:
    """The names on each module's page: its public ones, unless the package itself has them."""
    found = {}
    for name in re.findall(r"^   (pld_shuffle\S*)$", (HERE / "api.md").read_text(), re.MULTILINE):
        with mock(autodoc_mock_imports):
            module = importlib.import_module(name)
        if name.rpartition(".")[2] in ("flower", "pfl", "opendp"):
            for thing in filter(inspect.isclass, map(vars(module).get, module.__all__)):
                # A base class that is a mock would hide the arguments.
                whole = inspect.signature(thing.__init__)
                _, *arguments = whole.parameters.values()
                thing.__signature__ = whole.replace(parameters=arguments)
        names = getattr(module, "__all__", None) or [
            key
            for key, value in vars(module).items()
            if getattr(value, "__module__", None) == name and not key.startswith("_")
        ]
        top = pld_shuffle.__all__ if module is not pld_shuffle else []
        here = [n for n in names if n not in top or getattr(module, n) is not getattr(pld_shuffle, n)]
        found[name] = sorted(here, key=str.lower)
    return found


autosummary_context = {"public_names": public_names()}
# One class has several import paths; any of them may be the target of a name in a docstring.
suppress_warnings = ["ref.python"]

html_theme = "furo"
# MathJax in one file, with its fonts, for formulas without a network.
MATHJAX = Path(str(importlib.util.find_spec("sphinx-mathjax-offline").origin)).parent / "static/mathjax/tex-svg.js"
mathjax_path = MATHJAX.name
html_static_path = ["_static", str(MATHJAX)]
html_css_files = ["site.css"]
html_extra_path = ["_root"]  # index.html, where the site begins
html_title = f"pld_shuffle {release}"
html_copy_source = False
html_show_search_summary = False  # docs/offline.py has another one
html_theme_options = {"source_repository": "", "top_of_page_buttons": []}
