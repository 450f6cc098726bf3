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


def template(name: str, escape: Callable[[str], str]) -> Template:
    """Returns the template `cards/tables.NAME.j2`; it escapes texts and puts each on one line."""

    def escaped(value: object) -> Markup:
        text = str(value)
        is_number = isinstance(value, CellText) and _NUMBER.fullmatch(text)
        is_plain = isinstance(value, Markup) or (name == "markdown" and is_number)
        return Markup(text if is_plain else escape(visible(" ".join(text.split()))))

    env = Environment(
        "<%", "%>", "<<", ">>", "<%#", "#%>",
        trim_blocks=True, lstrip_blocks=True, autoescape=True, finalize=escaped,
    )  # fmt: skip
    env.filters["literal"] = lambda text: Markup(visible(" ".join(text.split())))
    return env.from_string(resource_path("cards", f"tables.{name}.j2").read_text("utf-8"))
