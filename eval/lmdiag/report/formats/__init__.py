"""The formats of tables.

Markdown and LaTeX are templates, `cards/tables.*.j2`, over the texts of `grid`; `csv` has all
figures at full precision; `terminal` prints. To add a text format, add its template and what
escapes its texts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lmdiag.text import visible

if TYPE_CHECKING:
    from lmdiag.report.formats.grid import Grid
    from lmdiag.report.listing import Chosen
    from lmdiag.results import Results


def format_names() -> list[str]:
    """Returns the names of the formats that are written to a file."""
    return [*_ESCAPING, "csv"]


def render_tables(
    name: str,
    runs: Sequence[Results],
    chosen: Sequence[Chosen] = (),
    designs: Sequence[Grid] = (),
) -> str:
    """Returns the tables of one or several runs in a format, and the top words of chosen items.

    `designs` are the tables of effects and cells of own data; csv does not have them.
    """
    from jinja2 import Environment
    from markupsafe import Markup

    from lmdiag.files import resource_path
    from lmdiag.report.formats import csv
    from lmdiag.report.formats.grid import CellText, grid_of
    from lmdiag.report.sections import sections, signs

    if name == "csv":
        return csv.render(runs, chosen)

    def escaped(value: object) -> Markup:
        is_plain = isinstance(value, Markup) or (name == "markdown" and isinstance(value, CellText))
        return Markup(str(value) if is_plain else _ESCAPING[name](str(value)))

    env = Environment(
        "<%", "%>", "<<", ">>", "<%#", "#%>",
        trim_blocks=True, lstrip_blocks=True, autoescape=True, finalize=escaped,
    )  # fmt: skip
    env.filters["literal"] = lambda text: Markup(_single_line(text))
    template = env.from_string(resource_path("cards", f"tables.{name}.j2").read_text("utf-8"))
    text = template.render(
        sections=sections(runs), chosen=chosen, runs=len(runs), grid_of=grid_of, signs=signs,
        designs=designs,
        label_of=lambda task, i: f"{re.sub(r'[^A-Za-z0-9]+', '-', task)}-{i}",
    )  # fmt: skip
    return f"{text.rstrip()}\n"


def _single_line(text: str) -> str:
    """The text on one line, with every hidden character spelled out."""
    return visible(" ".join(text.split()))


def markdown_text(text: str) -> str:
    """Returns text that Markdown shows as it is: no markup, no end of a cell or a line."""
    return _MARKUP.sub(r"\\\g<0>", _single_line(text))


_MARKUP = re.compile(
    r"[\\`*_{}\[\]<>#|$~]|&(?=#?\w+;)|(?<=http):|(?<=https):|(?<=www)\.", re.IGNORECASE
)
"""What Markdown takes for markup, an entity, or the start of an address that becomes a link."""


def latex_text(text: str) -> str:
    """Returns text that LaTeX shows as it is."""
    return "".join(_ESCAPED.get(character, character) for character in _single_line(text))


_ESCAPED = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"$<$", ">": r"$>$", "≤": r"$\le$", "±": r"$\pm$", "−": r"$-$", "–": "--",
    "|": r"\textbar{}", "†": r"$\dagger$", "↑": r"$\uparrow$", "↓": r"$\downarrow$",
}  # fmt: skip

_ESCAPING = {"markdown": markdown_text, "latex": latex_text}
"""Format with a template -> what escapes its texts."""
