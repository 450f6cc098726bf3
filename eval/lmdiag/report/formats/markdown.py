"""Tables as Markdown: those of the terminal, all further figures, and the top words of items."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from lmdiag.report.formats.grid import Grid, grid_of, single_line
from lmdiag.report.qualitative import Chosen
from lmdiag.report.sections import sections
from lmdiag.results import Results


def render(runs: Sequence[Results], chosen: Sequence[Chosen] = ()) -> str:
    """Returns the tables of one or several runs, and the top words of chosen items."""
    lines: list[str] = []
    for section in sections(runs):
        lines += [f"## {markdown_text(section.title)}", ""]
        for table in section.all_tables:
            grid = grid_of(table, len(runs))
            lines += [f"**{markdown_text(grid.caption)}**", "", *_table(grid), ""]
        lines += [f"- {markdown_text(remark)}" for remark in section.remarks]
        lines += [f"- `{single_line(line).replace('`', '′')}`" for line in section.signatures]
        lines += [""]
    if chosen:
        lines += ["## Predictions for chosen items", "", *_chosen_items(chosen), ""]
    return "\n".join(lines).rstrip() + "\n"


def _table(grid: Grid) -> Iterator[str]:
    headings = grid.heading_texts(markdown_text)
    yield _row(headings)
    yield f"|{'|'.join([' --- ', *([' ---: '] * (len(headings) - 1))])}|"
    for row in grid.rows:
        yield _row(row.texts("&emsp;", markdown_text, str))


def _chosen_items(chosen: Sequence[Chosen]) -> Iterator[str]:
    models = [markdown_text(model) for model, _ in chosen[0].said]
    yield _row(["Context", *models])
    yield f"|{' --- |' * (1 + len(models))}"
    for item in chosen:
        words = [markdown_text(", ".join(entry.word for entry in top)) for _, top in item.said]
        yield _row([markdown_text(item.sentence), *words])


def _row(texts: Iterable[str]) -> str:
    return f"| {' | '.join(texts)} |"


def markdown_text(text: str) -> str:
    """Returns text that Markdown shows as it is: no markup, no end of a cell or a line."""
    return _MARKUP.sub(r"\\\g<0>", single_line(text))


_MARKUP = re.compile(
    r"[\\`*_{}\[\]<>#|$~]|&(?=#?\w+;)|(?<=http):|(?<=https):|(?<=www)\.", re.IGNORECASE
)
"""What Markdown takes for markup, an entity, or the start of an address that becomes a link."""
