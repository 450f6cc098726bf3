"""The tables of a run on a terminal, in the shape of the papers' tables."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from lmdiag.report import numbers
from lmdiag.report.labels import model_label, short_commit
from lmdiag.report.numbers import CHANCE
from lmdiag.report.sections import Section, sections
from lmdiag.report.tables import Table
from lmdiag.results import Results, SettingResults, of_setting
from lmdiag.text import visible

if TYPE_CHECKING:
    import rich.table
    from rich.console import Console
    from rich.text import Text

NARROW = 18
"""Characters that the label of a row keeps where there is little room: the rest wraps."""

GAP = (0, 0, 0, 1)
"""Padding of cells: above, right, below, left; rich itself puts one more blank between columns."""


def print_results(results: Results, console: Console | None = None) -> None:
    """Prints what was asked, then the tables of each diagnostic."""
    console = console or _standard_output()
    _print_heading(results, console)
    for section in sections([results]):
        _print_section(section, console)


def print_setting(
    task: str, setting: str, content: SettingResults, console: Console | None = None
) -> None:
    """Prints the tables of one task in one setting.

    Args:
        task: name of the config.
        setting: perturbation or none.
        content: its figures.
        console: where to print; standard output by default.
    """
    for section in sections([of_setting(task, setting, content)]):
        _print_section(section, console or _standard_output())


def _standard_output() -> Console:
    from rich.console import Console

    return Console(highlight=False)


def _print_heading(results: Results, console: Console) -> None:
    """Model, data and cost in two or three lines."""
    from rich.text import Text

    model = results.model
    facts = [
        model.kind,
        f"{numbers.count(model.n_parameters)} parameters",
        model.dtype,
        *([model.quantization] if model.quantization else []),
        "cased" if model.cased else "uncased",
        f"commit {short_commit(model.commit)}",
    ]
    data = f"data {results.data.source} · {results.n_contexts} contexts"
    console.print()
    console.print(Text(model_label(results), style="bold"))
    console.print(Text(visible(" · ".join(facts)), style="dim"))
    console.print(Text(visible(data), style="dim"))


def _print_section(section: Section, console: Console) -> None:
    from rich.text import Text

    console.print()
    console.print(Text(visible(section.title), style="bold"))
    for table in map(_shown, section.tables):
        console.print()
        caption = Text(f"{table.title}, percent" if table.is_percent else table.title)
        console.print(caption.append(f"  {table.source}", style="dim"))
        for piece in pieces(table, console.width):
            console.print(_drawn(piece, console.width))
    console.print()
    for line in (*section.remarks, *filter(None, section.signatures)):
        console.print(Text(visible(line), style="dim"), soft_wrap=True)


def _shown(table: Table) -> Table:
    """The table with every hidden character of its labels spelled out."""
    return replace(
        table,
        title=visible(table.title),
        columns=tuple(map(visible, table.columns)),
        rows=tuple(replace(row, label=visible(row.label)) for row in table.rows),
    )


class Shape(NamedTuple):
    """How a table is drawn: intervals beside their figures or below, and how wide labels are."""

    beside: bool
    label: int


def pieces(table: Table, width: int) -> list[Table]:
    """Returns the table, or parts of its columns that each fit on the terminal."""
    columns = len(table.columns)
    if columns == 1 or _shape(table, width) is not None:
        return [table]
    half = (columns + 1) // 2
    return pieces(table.part(0, half), width) + pieces(table.part(half, columns), width)


def _shape(table: Table, width: int) -> Shape | None:
    """The best way to draw a table that fits; None where there is none."""
    longest = max(len(row.label) + 2 * row.depth for row in table.rows)
    shapes = (Shape(True, longest), Shape(False, longest), Shape(False, min(longest, NARROW)))
    return next((shape for shape in shapes if _width(table, shape) <= width), None)


def _drawn(table: Table, width: int) -> rich.table.Table:
    """A table as rich draws it: figures with intervals beside or below them, n, published rows."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    shape = _shape(table, width) or Shape(False, NARROW)
    drawn = RichTable(
        box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim", padding=GAP
    )
    drawn.add_column("", overflow="fold", min_width=shape.label)
    if table.n_by == "row":
        drawn.add_column("n", justify="right", style="dim")
    for i, heading in enumerate(table.columns):
        drawn.add_column(Text(_heading(table, i, heading)), justify="right", no_wrap=True)
    if table.chance_by == "row":
        drawn.add_column("chance", justify="right", style="dim")
    columns = [_column(table, i, shape.beside) for i in range(len(table.columns))]
    for at, row in enumerate(table.rows):
        n = [row.n] if table.n_by == "row" else []
        figures = [_styled(column[at]) for column in columns]
        chance = [numbers.chances(row.chances)] if table.chance_by == "row" else []
        drawn.add_row(Text("  " * row.depth + row.label), *n, *figures, *chance)
        if row.is_published:
            paper = [numbers.published(c.published, c.figure) if c else "" for c in row.cells]
            texts = ["  " * (row.depth + 1) + "published", *([""] if n else []), *paper]
            drawn.add_row(*(Text(text, style="dim") for text in texts))
    return drawn


def _heading(table: Table, column: int, heading: str) -> str:
    return "\n".join([heading, *table.column_facts(column)])


def _column(table: Table, column: int, beside: bool) -> list[tuple[str, str]]:
    """The texts of a column: each cell's figure, and its interval beside or below."""
    cells = [row.cells[column] for row in table.rows]
    space = max((len(numbers.interval(cell.figure)) for cell in cells if cell), default=0)
    texts = []
    for cell in cells:
        if cell is None:
            texts.append(("", ""))
            continue
        small = numbers.interval(cell.figure)
        gap = " " + " " * (space - len(small)) if beside else "\n"
        texts.append((numbers.value(cell.figure), gap + small if small else ""))
    marked = any(figure.endswith(CHANCE) for figure, _ in texts)
    return [
        # room for the sign keeps figures with and without it below each other
        (figure + " " if marked and figure and not figure.endswith(CHANCE) else figure, small)
        for figure, small in texts
    ]


def _styled(texts: tuple[str, str]) -> Text:
    from rich.text import Text

    return Text(texts[0], style="bold").append(texts[1], style="not bold dim")


def _width(table: Table, shape: Shape) -> int:
    """Characters that the table takes when it is drawn so."""
    widths = [shape.label]
    if table.n_by == "row":
        widths.append(max(len(row.n) for row in table.rows))
    for i, heading in enumerate(table.columns):
        texts = [figure + small for figure, small in _column(table, i, shape.beside)]
        texts += [
            numbers.published(c.published, c.figure) for row in table.rows if (c := row.cells[i])
        ]
        lines = "\n".join([_heading(table, i, heading), *texts]).split("\n")
        widths.append(max(map(len, lines)))
    if table.chance_by == "row":
        widths.append(
            max(len("chance"), *(len(numbers.chances(row.chances)) for row in table.rows))
        )
    return sum(widths) + (1 + GAP[3]) * (len(widths) - 1)
