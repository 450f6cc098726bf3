"""The tables as text: Markdown and LaTeX for a paper, csv for a spreadsheet.

Markdown and LaTeX hold what the terminal shows and the further measures; csv is one long table with
every figure of the run at full precision.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from lmdiag.report import numbers
from lmdiag.report.numbers import CHANCE
from lmdiag.report.qualitative import Chosen
from lmdiag.report.sections import sections, signs
from lmdiag.report.tables import Cell, Table, TableRow
from lmdiag.results import Results
from lmdiag.results.published import published_beside
from lmdiag.text import visible

Lines = Iterator[str]

COLUMNS = (
    "model", "revision", "commit", "task", "setting", "measure", "by", "level",
    "value", "n", "ci_low", "ci_high", "chance", "sd", "runs", "published", "signature",
)  # fmt: skip
"""Columns of the csv: values are as in `results.json`, `published` is percent."""


class Style(NamedTuple):
    """How a format writes what stands in a table: an indent, any text, and our own figures."""

    indent: str
    text: Callable[[str], str]
    figure: Callable[[str], str]


# ---- Markdown ------------------------------------------------------------------------------------


def markdown(runs: Sequence[Results], chosen: Sequence[Chosen] = ()) -> str:
    """Returns the tables of one or several runs, and the top words of chosen items."""
    lines: list[str] = []
    for section in sections(runs):
        lines += [f"## {markdown_text(section.title)}", ""]
        for table in section.all_tables:
            lines += [
                f"**{markdown_text(caption(table))}**",
                "",
                *_markdown_table(table, len(runs)),
                "",
            ]
        lines += [f"- {markdown_text(remark)}" for remark in section.remarks]
        lines += [f"- {_markdown_code(signature)}" for signature in section.signatures]
        lines += [""]
    if chosen:
        lines += ["## Predictions for chosen items", "", *_markdown_chosen(chosen), ""]
    return "\n".join(lines).rstrip() + "\n"


def _markdown_table(table: Table, runs: int) -> Lines:
    heads = [markdown_text(text) for text in headings(table, runs)]
    yield f"| {' | '.join(heads)} |"
    yield f"|{'|'.join([' --- ', *([' ---: '] * (len(heads) - 1))])}|"
    for row in table.rows:
        yield _markdown_row(row_texts(table, row, runs, IN_MARKDOWN))
        if row.is_published:
            yield _markdown_row(published_texts(table, row, runs, IN_MARKDOWN))


def _markdown_row(texts: Sequence[str]) -> str:
    return f"| {' | '.join(texts)} |"


def _markdown_chosen(chosen: Sequence[Chosen]) -> Lines:
    models = [markdown_text(model) for model, _ in chosen[0].said]
    yield _markdown_row(["Context", *models])
    yield f"|{' --- |' * (1 + len(models))}"
    for item in chosen:
        words = [markdown_text(", ".join(entry.word for entry in top)) for _, top in item.said]
        yield _markdown_row([markdown_text(item.sentence), *words])


def _markdown_code(text: str) -> str:
    return f"`{one_line(text).replace('`', '′')}`"


def markdown_text(text: str) -> str:
    """Returns text that Markdown shows as it is: no markup, no end of a cell or a line."""
    return _MARKUP.sub(r"\\\g<0>", one_line(text))


_MARKUP = re.compile(
    r"[\\`*_{}\[\]<>#|$~]|&(?=#?\w+;)|(?<=http):|(?<=https):|(?<=www)\.", re.IGNORECASE
)
"""What Markdown takes for markup, an entity, or the start of an address that becomes a link."""


IN_MARKDOWN = Style("&emsp;", markdown_text, str)


# ---- LaTeX ---------------------------------------------------------------------------------------


def latex(runs: Sequence[Results], chosen: Sequence[Chosen] = ()) -> str:
    r"""Returns the tables as LaTeX `table` environments with booktabs rules, ready to \input."""
    lines = [r"% \usepackage{booktabs} in the preamble"]
    for section in sections(runs):
        lines += ["", *(f"% {one_line(signature)}" for signature in section.signatures)]
        for i, table in enumerate(section.all_tables, start=1):
            label = f"tab:{re.sub(r'[^A-Za-z0-9]+', '-', section.task)}-{i}"
            notes = "".join(f". {note}" for note in signs([table]))
            title = latex_text(f"{section.title}. {caption(table)}{notes}")
            lines += ["", *_latex_table(table, len(runs), title, label)]
    if chosen:
        lines += ["", *_latex_chosen(chosen)]
    return "\n".join(lines) + "\n"


def _latex_table(table: Table, runs: int, title: str, label: str) -> Lines:
    heads = [latex_text(text) for text in headings(table, runs)]
    left = 2 if runs > 1 else 1
    yield from _latex_open(title, label, "l" * left + "r" * (len(heads) - left))
    yield _latex_row(heads)
    yield r"\midrule"
    for row in table.rows:
        yield _latex_row(row_texts(table, row, runs, IN_LATEX))
        if row.is_published:
            yield _latex_row(published_texts(table, row, runs, IN_LATEX))
    yield from _latex_close()


def _latex_chosen(chosen: Sequence[Chosen]) -> Lines:
    models = [latex_text(model) for model, _ in chosen[0].said]
    wide = f"p{{{0.9 / (1 + len(models)):.2f}\\linewidth}}"
    yield from _latex_open("Predictions for chosen items.", "tab:items", wide * (1 + len(models)))
    yield _latex_row(["Context", *models])
    yield r"\midrule"
    for item in chosen:
        words = [latex_text(", ".join(entry.word for entry in top)) for _, top in item.said]
        yield _latex_row([latex_text(item.sentence), *words])
    yield from _latex_close()


def _latex_row(texts: Sequence[str]) -> str:
    line = " & ".join(texts) + r" \\"
    return "{}" + line if line.startswith("[") else line  # else the row above takes it for a length


def _latex_open(title: str, label: str, columns: str) -> Lines:
    yield r"\begin{table}[t]"
    yield r"\centering"
    yield f"\\caption{{{title}}}"
    yield f"\\label{{{label}}}"
    yield f"\\begin{{tabular}}{{{columns}}}"
    yield r"\toprule"


def _latex_close() -> Lines:
    yield r"\bottomrule"
    yield r"\end{tabular}"
    yield r"\end{table}"


LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"$<$", ">": r"$>$", "≤": r"$\le$", "±": r"$\pm$", "−": r"$-$", "–": "--",
    "|": r"\textbar{}", CHANCE: r"$\dagger$",
}  # fmt: skip


def latex_text(text: str) -> str:
    """Returns text that LaTeX shows as it is."""
    return "".join(LATEX.get(character, character) for character in one_line(text))


IN_LATEX = Style(r"\quad ", latex_text, latex_text)


# ---- what both share -----------------------------------------------------------------------------


def one_line(text: str) -> str:
    """Returns a text on one line, with every hidden character spelled out."""
    return visible(" ".join(text.split()))


def caption(table: Table) -> str:
    """Returns what stands over a table."""
    unit = ", percent with 95% interval" if table.is_percent else ", with 95% interval"
    return f"{table.title}{unit}{f' ({table.source})' if table.source else ''}"


def headings(table: Table, runs: int) -> list[str]:
    """Returns the heads of all columns: label, model where there are several, n, figures."""
    columns = [
        f"{name} ({', '.join(said)})" if (said := table.column_facts(i)) else name
        for i, name in enumerate(table.columns)
    ]
    n = ["n"] if table.n_by == "row" else []
    chance = ["chance"] if table.chance_by == "row" else []
    return ["", *(["model"] if runs > 1 else []), *n, *columns, *chance]


def row_texts(table: Table, row: TableRow, runs: int, style: Style) -> list[str]:
    """Returns the texts of a row, parallel to `headings`."""
    figures = [_with_interval(cell) for cell in row.cells]
    return [
        style.indent * row.depth + style.text(row.label),
        *([style.text(row.model)] if runs > 1 else []),
        *([style.figure(row.n)] if table.n_by == "row" else []),
        *map(style.figure, figures),
        *([style.figure(numbers.chances(row.chances))] if table.chance_by == "row" else []),
    ]


def _with_interval(cell: Cell | None) -> str:
    if cell is None:
        return ""
    return f"{numbers.value(cell.figure)} {numbers.interval(cell.figure)}".strip()


def published_texts(table: Table, row: TableRow, runs: int, style: Style) -> list[str]:
    """Returns the texts of the published figures below a row."""
    empty = [""] * ((runs > 1) + (table.n_by == "row"))
    figures = [numbers.published(c.published, c.figure) if c else "" for c in row.cells]
    chance = [""] if table.chance_by == "row" else []
    label = style.indent * (row.depth + 1) + "published"
    return [label, *empty, *map(style.figure, figures), *chance]


# ---- csv -----------------------------------------------------------------------------------------


def table_csv(runs: Sequence[Results]) -> str:
    """Returns one line per figure: every measure, setting and level of every run."""
    return _csv(COLUMNS, (record for run in runs for record in _records(run)))


def _records(run: Results) -> Iterator[list[Any]]:
    published = published_beside(run)
    for place, figure in run.figures():
        paper = published[place].value if place in published else None
        numbers = [getattr(figure, key) for key in COLUMNS[8:15]]
        signature = run.tasks[place.task][place.setting].signature
        model = [run.model.id, run.model.revision, run.model.commit]
        yield [*model, *place, *numbers, paper, signature]


def chosen_csv(chosen: Sequence[Chosen]) -> str:
    """Returns one line per top word of the chosen items."""
    columns = ("context", "right_context", "model", "place", "word", "probability", "expected")
    return _csv(
        columns,
        (
            [
                item.context,
                item.right_context,
                model,
                place,
                entry.word,
                entry.probability,
                entry.expected,
            ]
            for item in chosen
            for model, top in item.said
            for place, entry in enumerate(top, start=1)
        ),
    )


def _csv(columns: Sequence[str], records: Iterator[list[Any]]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([csv_cell(value) for value in record] for record in records)
    return buffer.getvalue()


def csv_cell(value: Any) -> Any:
    """Returns a text that no spreadsheet takes for a formula and no terminal for a command.

    One that begins with `=`, `+`, `-` or `@` gets an apostrophe in front; numbers stay numbers.

    >>> csv_cell("=1+1"), csv_cell(-0.5)
    ("'=1+1", -0.5)
    """
    if not isinstance(value, str):
        return value
    text = visible(value)
    return f"'{text}" if text.lstrip().startswith(FORMULA) else text


FORMULA = tuple("=+-@＝＋－＠")
"""Characters that a spreadsheet takes for the start of a formula."""
