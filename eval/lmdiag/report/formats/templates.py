"""Templates of formats that are not HTML."""

from __future__ import annotations

import re
from collections.abc import Callable

from jinja2 import Environment, Template
from markupsafe import Markup

from lmdiag.files.reading import resource_path
from lmdiag.report.grid import CellText
from lmdiag.text import visible

_NUMBER = re.compile(r"[\d .,()\[\]−+±*≈↑↓●–<]*( [msp])?")
"""Matches cells of figures and tests, whose signs are not markup."""


def _visible_on_one_line(text: str) -> str:
    """A text with invisible characters spelled out, and blanks in place of the ends of lines."""
    return visible(" ".join(text.split()))


def template(name: str, escape: Callable[[str], str]) -> Template:
    """Returns the template `cards/tables.NAME.j2`, which puts each text on one line and escapes it.

    Args:
        name: "latex" or "markdown".
        escape: returns a text without what the format takes for markup.
    """

    def finalized(value: object) -> Markup:
        """What the template prints for a value: markup as it is, any other text escaped.

        Figures in Markdown are not escaped, since their signs, such as "*" behind a figure, are
        not markup there.
        """
        text = str(value)
        is_number = isinstance(value, CellText) and _NUMBER.fullmatch(text)
        if isinstance(value, Markup) or (name == "markdown" and is_number):
            return Markup(text)
        return Markup(escape(_visible_on_one_line(text)))

    env = Environment(
        "<%", "%>", "<<", ">>", "<%#", "#%>",  # of statements, values and comments
        trim_blocks=True, lstrip_blocks=True, autoescape=True, finalize=finalized,
    )  # fmt: skip
    # for signatures, which Markdown shows as code: nothing in them is markup
    env.filters["literal"] = lambda text: Markup(_visible_on_one_line(text))
    return env.from_string(resource_path("cards", f"tables.{name}.j2").read_text("utf-8"))
