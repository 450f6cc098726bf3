"""Tables as Markdown and LaTeX, and all figures as csv.

Markdown and LaTeX are templates, `cards/tables.*.j2`, over the texts of `grid`. To add a text
format, add its template and what escapes its texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from jinja2 import Environment
from markupsafe import Markup

from lmdiag.files import resource_path
from lmdiag.report.grid import CellText, Section
from lmdiag.report.items import Chosen
from lmdiag.report.latex import latex_tables
from lmdiag.results import Results
from lmdiag.results.figures import figures
from lmdiag.text import csv_cell, visible


def figures_as_csv(runs: Sequence[Results]) -> str:
    """Returns the table of `lmdiag.results.figures.figures` at full precision."""
    texts = figures(runs).map(lambda x: csv_cell(visible(x)) if isinstance(x, str) else x)
    return str(texts.to_csv(index=False, lineterminator="\n"))


def render_tables(
    name: str, sections: Sequence[Section], chosen: Sequence[Chosen] = (), width: float = 8.0
) -> str:
    """Returns tables as `markdown` or `latex`, and the top words of chosen items.

    LaTeX tables fit into `width` centimetres.
    """

    def escaped(value: object) -> Markup:
        is_plain = isinstance(value, Markup) or (name == "markdown" and isinstance(value, CellText))
        text = str(value)
        return Markup(text if is_plain else _ESCAPING[name](visible(" ".join(text.split()))))

    env = Environment(
        "<%", "%>", "<<", ">>", "<%#", "#%>",
        trim_blocks=True, lstrip_blocks=True, autoescape=True, finalize=escaped,
    )  # fmt: skip
    env.filters["literal"] = lambda text: Markup(visible(" ".join(text.split())))
    template = env.from_string(resource_path("cards", f"tables.{name}.j2").read_text("utf-8"))
    tables = latex_tables(sections, width, escaped) if name == "latex" else ()
    text = template.render(sections=sections, chosen=chosen, tables=tables)
    return f"{text.rstrip()}\n"


# ---- what escapes texts --------------------------------------------------------------------------

_MARKUP = re.compile(
    r"[\\`*_{}\[\]<>#|$~]|&(?=#?\w+;)|(?<=http):|(?<=https):|(?<=www)\.", re.IGNORECASE
)
"""What Markdown takes for markup, an entity, or the start of an address that becomes a link."""

_COMMANDS = str.maketrans({
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#",
    "_": r"\_\allowbreak{}", "/": r"/\allowbreak{}", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"$<$", ">": r"$>$",
    "≤": r"$\le$", "±": r"$\pm$", "−": r"$-$", "–": "--", "|": r"\textbar{}\allowbreak{}",
    "†": r"$\dagger$", "↑": r"$\uparrow$", "↓": r"$\downarrow$",
    "●": r"$\bullet$", "…": r"\ldots{}",
})  # fmt: skip

_ESCAPING: dict[str, Callable[[str], str]] = {
    "markdown": lambda text: _MARKUP.sub(r"\\\g<0>", text),
    "latex": lambda text: text.translate(_COMMANDS),
}
"""Format with a template -> what escapes a text on one line."""
