"""Tables as Markdown, LaTeX and csv.

Markdown and LaTeX are templates, `cards/tables.*.j2`, over the texts of `grid`; csv has all figures
at full precision. To add a text format, add its template and what escapes its texts.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from lmdiag.files import resource_path
from lmdiag.report.grid import CellText, Grid, signs
from lmdiag.report.items import Chosen
from lmdiag.report.tables import sections
from lmdiag.results import Place, Results
from lmdiag.results.published import published_beside
from lmdiag.text import csv_cell, visible


def render_tables(
    name: str,
    runs: Sequence[Results],
    chosen: Sequence[Chosen] = (),
    designs: Sequence[Grid] = (),
    rows: Mapping[str, Mapping[str, Sequence[Any]]] = {},
) -> str:
    """Returns the tables of one or several runs in a format, and the top words of chosen items.

    `designs` are the tables of effects and cells of own data, `rows` the columns of tasks whose
    predictions are shown by their formulas; csv has neither, and nothing but the items if there
    are any.
    """
    if name == "csv":
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator="\n").writerows(
            [csv_cell(visible(value) if isinstance(value, str) else value) for value in record]
            for record in (_items(chosen) if chosen else _figures(runs))
        )
        return buffer.getvalue()

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
    text = template.render(
        sections=sections(runs, rows), chosen=chosen, designs=designs, signs=signs,
        label_of=lambda task, i: f"{re.sub(r'[^A-Za-z0-9]+', '-', task)}-{i}",
    )  # fmt: skip
    return f"{text.rstrip()}\n"


# ---- what escapes texts --------------------------------------------------------------------------

_MARKUP = re.compile(
    r"[\\`*_{}\[\]<>#|$~]|&(?=#?\w+;)|(?<=http):|(?<=https):|(?<=www)\.", re.IGNORECASE
)
"""What Markdown takes for markup, an entity, or the start of an address that becomes a link."""

_COMMANDS = str.maketrans({
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"$<$", ">": r"$>$", "≤": r"$\le$", "±": r"$\pm$", "−": r"$-$", "–": "--",
    "|": r"\textbar{}", "†": r"$\dagger$", "↑": r"$\uparrow$", "↓": r"$\downarrow$",
})  # fmt: skip

_ESCAPING: dict[str, Callable[[str], str]] = {
    "markdown": lambda text: _MARKUP.sub(r"\\\g<0>", text),
    "latex": lambda text: text.translate(_COMMANDS),
}
"""Format with a template -> what escapes a text on one line."""


# ---- csv -----------------------------------------------------------------------------------------


def _figures(runs: Sequence[Results]) -> Iterator[Iterable[Any]]:
    """Every figure at full precision, `published` in percent."""
    facts = (
        "value", "n", "ci_low", "ci_high", "chance", "versus_chance", "p_chance", "sd", "runs",
    )  # fmt: skip
    yield "model", "revision", "commit", *Place._fields, *facts, "published", "signature"
    for run in runs:
        published, model = published_beside(run), run.model
        for place, figure in run.figures():
            yield (
                *(model.name or model.id, model.revision, model.commit, *place),
                *(getattr(figure, name) for name in facts),
                published[place].value if place in published else None,
                run.tasks[place.task][place.setting].signature,
            )


def _items(chosen: Sequence[Chosen]) -> Iterator[Iterable[Any]]:
    """The top words at blanks; of sentences, their words or regions with surprisals."""
    if chosen[0][0].is_sentence:
        yield "id", "sentence", "model", "place", "region", "start", "text", "bits"
    else:
        yield "context", "right_context", "model", "place", "word", "probability", "expected"
    for choice, answers in chosen:
        for model, answer in answers.items():
            if answer and answer.is_sentence:
                for i, (start, text, bits, name) in enumerate(answer.parts, start=1):
                    yield choice.id, choice.sentence, model, i, name or None, start, text, bits
            elif answer:
                for i, entry in enumerate(answer.top, start=1):
                    yield choice.context, choice.right_context, model, i, *entry
