"""Settings of the documentation site, which `make docs` builds with Sphinx; see contributing.md."""

from __future__ import annotations

import os
from pathlib import Path

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

# Nothing is loaded from another site: the theme uses the fonts of the system, and the charts of
# the notebook are SVG. The colours are those of cards/base.css.
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
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
nb_merge_streams = True
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
    """Files of the repository that are pages of the site: GitHub shows the file, the site the page."""
    source[0] = source[0].replace("](../CHANGELOG.md)", "](changelog.md)")


def setup(app: Sphinx) -> None:
    app.connect("source-read", link_to_pages)
