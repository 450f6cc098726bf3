"""The tables of a result as Markdown; the template is `cards/tables.markdown.j2`."""

from __future__ import annotations

import re

from lmdiag.report.formats.templates import template
from lmdiag.report.output import Output

_MARKUP = re.compile(
    r"[\\`*_{}\[\]<>#|$~]|&(?=#?\w+;)|(?<=http):|(?<=https):|(?<=www)\.", re.IGNORECASE
)
"""What Markdown takes for markup, an entity, or the start of an address that becomes a link."""


def render(output: Output, width: float) -> str:
    """Returns all sections of a result as Markdown; `width`, that of charts, is not used."""
    text = template("markdown", _escape).render(output=output)
    return f"{text.rstrip()}\n"


def _escape(text: str) -> str:
    """Returns a text with a backslash before everything that Markdown takes for markup."""
    return _MARKUP.sub(r"\\\g<0>", text)
