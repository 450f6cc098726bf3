"""Settings of the documentation site, which `make docs` builds with Sphinx; see contributing.md."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

import lmdiag

DOCS = Path(__file__).resolve().parent

# ---- the site ------------------------------------------------------------------------------------

project = "lmdiag"
author = "the lmdiag contributors"
version = release = lmdiag.__version__
html_title = f"lmdiag {version}"
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
]
exclude_patterns = ["_static"]
smartquotes_action = "D"  # dashes; quotation marks are often code

# Nothing is loaded from another site: the theme uses the fonts of the system, charts are images.
# The colours are those of cards/base.css.
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = html_show_sourcelink = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#2563a8", "color-brand-content": "#2563a8"},
    "dark_css_variables": {"color-brand-primary": "#74b0ef", "color-brand-content": "#74b0ef"},
}
pygments_style = "default"
pygments_dark_style = "github-dark"
copybutton_prompt_text = "$ "
copybutton_exclude = ".linenos, .gp, .go"

# ---- pages and notebooks -------------------------------------------------------------------------

myst_heading_anchors = 4  # the anchors that GitHub gives to headings
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 600
# The tests leave out pages whose blocks are those of another one.
nb_execution_excludepatterns = os.environ.get("NOT_EXECUTED_PAGES", "").split()
nb_merge_streams = True
nb_render_image_options = {"scale": "50%"}  # charts are drawn in twice their size
# Notebooks use no network and no files of the user. Kernels would warn that their messages to this
# process are not encrypted.
ipython = DOCS.parent / "build/site-cache/ipython"
(ipython / "profile_default").mkdir(parents=True, exist_ok=True)
(ipython / "profile_default/ipython_kernel_config.py").write_text(
    "c.IPKernelApp.log_level = 'ERROR'\n"
)
os.environ |= {
    "HF_HUB_OFFLINE": "1",
    "IPYTHONDIR": str(ipython),
    "LMDIAG_CACHE": str(DOCS.parent / "build/site-cache"),
    "PYTHONWARNINGS": "ignore:IProgress not found",  # of tqdm, about a progress bar in notebooks
}

# ---- the reference, from the docstrings ----------------------------------------------------------

default_role = "py:obj"  # `name` in a docstring is code, and a link if the name is documented
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_type_aliases = {name: name for name in ("Comparable", "Items")}
python_maximum_signature_line_length = 80
napoleon_numpy_docstring = False
napoleon_use_ivar = True


def link_to_pages(app: Sphinx, page: str, source: list[str]) -> None:
    """Links a file of the repository that is a page of the site; on GitHub the file is shown."""
    source[0] = source[0].replace("](../CHANGELOG.md)", "](changelog.md)")


def prepare(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Changes what Sphinx would misread in a docstring.

    In `one, two: what both are` it takes the first name for a type, so the space goes; and
    `sensitivity@0.01` would become an e-mail address.
    """
    for i, line in enumerate(lines):
        if match := re.match(r"( +\w+(?:, \w+)+):", line):
            line = match[1].replace(", ", ",") + line[match.end(1) :]
        lines[i] = re.sub(r"(?<=\w)@(?=\w)", r"\\@", line)


def shorten(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, signature: str | None, returns: str
) -> tuple[str, str] | None:
    """Writes a default that is made for each object as `...`; Sphinx cannot read `<factory>`."""
    return (signature.replace("<factory>", "..."), returns) if signature else None


def is_field(
    app: Sphinx, what: str, name: str, thing: Any, skip: bool, options: Any
) -> bool | None:
    """Leaves out the fields of a NamedTuple, which the docstring of the class describes."""
    return True if (getattr(thing, "__doc__", None) or "").startswith("Alias for field") else None


def setup(app: Sphinx) -> None:
    app.connect("source-read", link_to_pages)
    app.connect("autodoc-process-docstring", prepare, priority=100)  # before napoleon
    app.connect("autodoc-process-signature", shorten)
    app.connect("autodoc-skip-member", is_field)
